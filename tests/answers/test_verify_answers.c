/* What verify says of recordings that random runs of PyTorch's policy left, as they are and with
 * one thing changed: settings, the capacity, an address, a size; and the statistics that the policy
 * keeps from their beginning on, amid a program or not. What was changed on purpose is pinned anew:
 *
 *   test_verify_answers            compares with tests/data/answers/verify.txt.zst
 *   test_verify_answers --write    prints what that file should hold (make answers-golden)
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "studies/verify/verify.h"
#include "studies/verify/verify_infer.h"
#include "studies/verify/verify_json.h"
#include "studies/verify/verify_reason.h"
#include "studies/verify/verify_recorded.h"
#include "tests/support/pinned_lines.h"
#include "tests/support/policy_case.h"
#include "tests/support/random_trace.h"
#include "tests/support/made_snapshot.h"
#include "tests/support/text_recording.h"
#include "tests/support/xorshift.h"

enum { RUNS = 16, FOLDED_RUNS = 264, CHANGES = 8, EVENTS_MAX = 1200 };

static void add_side(uint64_t *sum, const frag_side *side)
{
    pinned_add(sum, side->reserved_bytes);
    pinned_add(sum, side->requested_bytes);
    pinned_add(sum, side->live_count);
}

static void tell_difference(frag_text *out, const frag_difference *first)
{
    uint64_t sum = 0;
    const frag_oracle_call *calls[] = {&first->recorded, &first->simulated};
    for (int i = 0; i < 2; i++) {
        pinned_add(&sum, calls[i]->op);
        pinned_add(&sum, calls[i]->address);
        pinned_add(&sum, calls[i]->bytes);
    }
    add_side(&sum, &first->side_recorded);
    add_side(&sum, &first->side_simulated);
    pinned_add(&sum, first->hole_bytes);
    pinned_add(&sum, first->hole_address);
    pinned_add(&sum, first->room_recorded_bytes);
    pinned_add(&sum, first->room_simulated_bytes);
    frag_text_add(out, ", %s at %" PRIu64 " (%d%d, %" PRIx64 " for %" PRIx64 ", %08" PRIx32 ")",
                  frag_difference_name(first->kind), first->event, first->has_recorded,
                  first->has_simulated, first->address_simulated, first->address_recorded,
                  (uint32_t)(sum >> 32));
}

static void tell_result(frag_text *out, const frag_verify_result *result)
{
    frag_text_add(out, "%" PRIu64 " requests, %" PRIu64 " calls, %" PRIu64 " ooms, %" PRIu64,
                  result->requests, result->device_events, result->ooms, result->difference_count);
    if (!result->is_identical)
        tell_difference(out, &result->first);
}

static void tell_interval(frag_text *out, const char *name, const frag_pytorch_interval *found)
{
    if (found->least != FRAG_UNLIMITED)
        frag_text_add(out, " %s %" PRIu64 "-%" PRIu64, name, found->least, found->most);
}

static void tell_inferred(frag_text *out, const frag_recording *recording,
                          const frag_policy_spec *spec)
{
    frag_verify_result result = {0};
    frag_inferred inferred;
    frag_inferred_create(&inferred);
    bool is_found = frag_verify_infer(NULL, recording, &recording->traces[0], spec, FRAG_UNLIMITED,
                                      &result, &inferred);
    frag_text_add(out, "  %s '%s' after %" PRIu64 " replays, to %" PRIu64 ", %" PRIu64 " left out,",
                  is_found ? "settings" : "none, nearest", inferred.settings, inferred.replays,
                  inferred.event, inferred.left_out_calls);
    frag_text_add(out, " %" PRIx64 " %" PRIx64 " '%s' '%s'", inferred.capacity_bytes,
                  inferred.limit_bytes, inferred.divisions, inferred.tried);
    tell_interval(out, "limit", &inferred.limit);
    tell_interval(out, "mark", &inferred.mark);
    tell_interval(out, "split", &inferred.split);
    tell_interval(out, "slack", &inferred.slack);
    frag_text_add(out, "\n");
}

static void tell_verify(frag_text *out, const frag_recording *recording,
                        const frag_policy_spec *spec, uint64_t capacity_bytes)
{
    frag_verify_result result = {0};
    for (int goes_on = 0; goes_on < 2; goes_on++) {
        frag_error error = {0};
        frag_text_add(out, goes_on ? "; all: " : "");
        if (!frag_verify(NULL, recording, &recording->traces[0], spec->ops, spec->values,
                         capacity_bytes, goes_on != 0, &result, &error)) {
            frag_text_add(out, "error %d\n", (int)error.code);
            return;
        }
        tell_result(out, &result);
    }
    frag_text reason = {0};
    uint64_t sum = 0;
    if (!result.is_identical)
        frag_verify_add_reason(&reason, recording, &recording->traces[0], spec, &result);
    if (reason.length > 0)
        pinned_add_text(&sum, reason.bytes);
    frag_text_add(out, "; why %08" PRIx32 "\n", (uint32_t)(sum >> 32));
    frag_text_destroy(&reason);
}

/* Changes one thing of an event that tells what the recorded allocator did. */
static void change(frag_text *out, frag_trace *trace, uint64_t *bits)
{
    uint64_t i = xorshift_next(bits) % trace->event_count;
    for (uint64_t tries = 0; trace->events[i].op != FRAG_OP_ALLOC &&
                             trace->events[i].op < FRAG_OP_SEGMENT_ALLOC && tries < 50;
         tries++)
        i = (i + 1) % trace->event_count;
    frag_event *event = &trace->events[i];
    uint64_t what = xorshift_next(bits) % 4;
    frag_text_add(out, "  event %" PRIu64 ", op %d, ", i, event->op);
    if (what <= 1 && event->op == FRAG_OP_ALLOC) {
        event->bytes += what == 0 ? 5000000 : 512;
        frag_text_add(out, "larger: ");
    } else if (trace->addresses != NULL) {
        trace->addresses[i] += what == 2 ? 512 : (uint64_t)1 << 21;
        frag_text_add(out, "elsewhere: ");
    }
}

/* As the command says it of the recording's own settings. */
static void tell_json(frag_text *out, const frag_recording *recording, uint64_t capacity_bytes)
{
    frag_verification found;
    frag_error error = {0};
    char *bytes = NULL;
    size_t count = 0;
    size_t from = out->length;
    if (!frag_verify_recorded(NULL, recording, &recording->traces[0], NULL, capacity_bytes, true,
                              &found, &error)) {
        frag_text_add(out, "  as recorded: error %d\n", (int)error.code);
        return;
    }
    FILE *stream = open_memstream(&bytes, &count);
    assert_non_null(stream);
    frag_verification_print_json(stream, recording, &recording->traces[0], &found);
    fclose(stream);
    frag_text_add(out, "%s", bytes);
    pinned_fold(out, from, "  as recorded");
    free(bytes);
    frag_verification_destroy(&found);
}

/* The recording stays as it was. */
static void tell_changed(frag_text *out, frag_recording *recording, const frag_policy_spec *spec,
                         const policy_case *what, uint64_t *bits)
{
    frag_trace *trace = &recording->traces[0];
    const frag_trace kept = *trace;
    trace->events = frag_alloc(kept.event_count, sizeof *trace->events);
    memcpy(trace->events, kept.events, kept.event_count * sizeof *trace->events);
    if (kept.addresses != NULL) {
        trace->addresses = frag_alloc(kept.event_count, sizeof *trace->addresses);
        memcpy(trace->addresses, kept.addresses, kept.event_count * sizeof *trace->addresses);
    }
    change(out, trace, bits);
    tell_verify(out, recording, spec, what->capacity_bytes);
    if (xorshift_next(bits) % 4 == 0) {
        tell_inferred(out, recording, spec);
        tell_json(out, recording, FRAG_UNLIMITED);
    }
    frag_free(trace->events);
    if (kept.addresses != NULL)
        frag_free(trace->addresses);
    *trace = kept;
}

static void add_stat(void *context, const char *name, int64_t value)
{
    pinned_add_text(context, name);
    pinned_add(context, (uint64_t)value);
}

static void add_stats(void *context, const frag_replay *replay, const frag_replay_result *result)
{
    pinned_add(context, result->events);
    frag_replay_stats(replay, add_stat, context);
}

static void tell_stats(frag_text *out, const frag_recording *recording,
                       const frag_policy_spec *spec)
{
    const frag_device_spec device = {.capacity_bytes = FRAG_UNLIMITED};
    const frag_run_setup setup = {recording, &recording->traces[0], spec->ops, spec->values,
                                  &device};
    const frag_replay_options options = {.stop_after = recording->traces[0].event_count / 2,
                                         .keeps_stats = true};
    frag_error error = {0};
    uint64_t sum = 0;
    bool ok = frag_run_look(&setup, &options, add_stats, &sum, &error);
    frag_text_add(out, "  statistics half way: %d %" PRIx64 "\n", ok, sum);
}

static void tell_recording(frag_text *out, frag_recording *recording, const policy_case *what,
                           uint64_t *bits)
{
    static const char *const others[] = {
        "pytorch",
        "pytorch:recorded",
        "pytorch:version=2.4",
        "pytorch:version=2.13",
        "pytorch:max_split_size_mb=30",
        "pytorch:expandable_segments=true",
        "pytorch:roundup_power2_divisions=4",
        "pytorch:garbage_collection_threshold=0.5,per_process_memory_fraction=0.5",
        "best-fit",
    };
    frag_trace *trace = &recording->traces[0];
    frag_policy_spec spec;
    frag_error error = {0};
    tell_json(out, recording, what->capacity_bytes);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (!frag_policy_spec_parse(others[i], &spec, &error))
            continue;
        frag_text_add(out, "  %s: ", others[i]);
        tell_verify(out, recording, &spec, i % 2 == 0 ? what->capacity_bytes : FRAG_UNLIMITED);
        if (i < 2)
            tell_inferred(out, recording, &spec);
        if (i == 1)
            tell_stats(out, recording, &spec);
        frag_policy_spec_destroy(&spec);
    }
    const char *collects = strstr(what->policy, "garbage_collection_threshold=0.7");
    if (collects != NULL && /* as a snapshot tells it: what is looked for is the limit */
        frag_policy_spec_parse("pytorch:garbage_collection_threshold=0.7", &spec, &error)) {
        frag_text_add(out, "  with its threshold:");
        tell_inferred(out, recording, &spec);
        frag_policy_spec_destroy(&spec);
    }
    if (trace->event_count == 0 || !frag_policy_spec_parse(what->policy, &spec, &error))
        return;
    for (uint64_t share = 1; share <= 4; share++) {
        frag_text_add(out, "  itself, in %" PRIu64 "/4: ", share);
        tell_verify(out, recording, &spec, what->capacity_bytes / 4 * share);
    }
    for (int i = 0; i < CHANGES; i++)
        tell_changed(out, recording, &spec, what, bits);
    frag_policy_spec_destroy(&spec);
}

static void tell_snapshot(frag_text *out, const made_snapshot *of, const policy_case *what,
                          uint64_t *bits)
{
    frag_text text = {0};
    frag_recording recording;
    frag_findings findings;
    frag_error error;
    const made_snapshot_loss lost = {.first = xorshift_next(bits) % 4 == 0 ? of->note_count / 4 : 0,
                                     .has_pools = xorshift_next(bits) % 2 == 0,
                                     .is_old = xorshift_next(bits) % 2 == 0};
    made_snapshot_write(&text, of, &lost);
    if (frag_test_load(text.bytes, text.length, FRAG_FORMAT_SNAPSHOT, &recording, &findings,
                       &error)) {
        tell_recording(out, &recording, what, bits);
        frag_recording_destroy(&recording);
    }
    frag_text_destroy(&text);
}

/* NULL: any. */
static const char *const settings[] = {
    NULL,
    "pytorch:expandable_segments=true",
    "pytorch:max_split_size_mb=21",
    "pytorch:max_split_size_mb=64,max_non_split_rounding_mb=21",
    "pytorch:roundup_power2_divisions=4",
    "pytorch:version=2.13,large_segment_size_mb=12",
    "pytorch:garbage_collection_threshold=0.7,per_process_memory_fraction=0.9",
    "pytorch:version=2.4",
};

static void tell_run(frag_text *out, const random_trace *trace, uint64_t seed)
{
    frag_text text = {0};
    frag_recording recording;
    frag_findings findings;
    frag_policy_spec spec;
    frag_error error = {0};
    random_trace_write(trace, &text);
    frag_test_load_well(text.bytes, &recording, &findings);
    uint64_t bits = seed * 0x9e3779b97f4a7c15u;
    policy_case what = policy_case_draw(frag_policy_find("pytorch"), &recording.traces[0], &bits);
    const char *set = settings[seed % (sizeof settings / sizeof settings[0])];
    if (set != NULL) { /* hardly ever drawn alone */
        free(what.policy);
        what.policy = frag_copy_text(set);
    }
    made_snapshot of = {0};
    frag_device_spec device = {.capacity_bytes = what.capacity_bytes};
    if (frag_policy_spec_parse(what.policy, &spec, &error)) {
        const frag_run_setup setup = {&recording, &recording.traces[0], spec.ops, spec.values,
                                      &device};
        if (made_snapshot_make(&of, &setup, &error)) {
            frag_text_add(out, "trace %" PRIu64 ", %s in %" PRIx64 "\n", seed, what.policy,
                          what.capacity_bytes);
            tell_snapshot(out, &of, &what, &bits);
        }
        frag_policy_spec_destroy(&spec);
    }
    made_snapshot_destroy(&of);
    free(what.policy);
    frag_recording_destroy(&recording);
    frag_text_destroy(&text);
}

static void tell_all(frag_text *out)
{
    random_trace trace = {0};
    unsigned count = 0;
    for (uint64_t seed = 9001; count < RUNS + FOLDED_RUNS; seed++) {
        size_t from = out->length;
        random_trace_draw(&trace, seed);
        if (trace.count > EVENTS_MAX)
            continue;
        tell_run(out, &trace, seed);
        if (count >= RUNS)
            pinned_fold(out, from, "one more");
        count++;
    }
    random_trace_destroy(&trace);
}

static const pinned_lines pinned = {"tests/data/answers/verify.txt.zst", tell_all,
                                    "answers-golden"};

int main(int argc, char **argv)
{
    return pinned_lines_test(&pinned, argc, argv);
}
