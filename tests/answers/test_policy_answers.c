/* What every policy does with random traces: each grant and its address, each call to the device,
 * the layout in between and the figures at the end, on devices with and without enough memory. A
 * change of any decision shows here. What was changed on purpose is pinned anew:
 *
 *   test_policy_answers            compares with tests/data/answers/policies.txt.zst
 *   test_policy_answers --write    prints what that file should hold (make answers-golden)
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/pytorch/pytorch_met.h"
#include "allocators/pytorch/pytorch_settings.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "sim/policy_engine.h"
#include "tests/support/pinned_lines.h"
#include "tests/support/policy_case.h"
#include "tests/support/random_trace.h"
#include "tests/support/text_recording.h"
#include "tests/support/xorshift.h"

enum {
    TRACES = 6,
    FOLDED_TRACES = 294,
    PROGRAMS = 30,
    RELEASE_TRACES = 40,
    EVENTS_MAX = 3000,
    PLANNED_EVENTS_MAX = 300, /* plans of longer ones take long */
    LAYOUT_EVERY = 32
};

/* Sums of what was seen, apart, so that a difference says where to look. */
typedef struct sums {
    uint64_t notes;
    uint64_t layouts;
    uint64_t end;
} sums;

static void add_note(void *context, const frag_note *note)
{
    uint64_t *sum = &((sums *)context)->notes;
    pinned_add(sum, note->kind);
    pinned_add(sum, note->event);
    pinned_add(sum, note->alloc_event);
    pinned_add(sum, note->address);
    pinned_add(sum, note->bytes);
    pinned_add(sum, note->block_bytes);
    pinned_add(sum, note->rounded_bytes);
    pinned_add(sum, (uint64_t)note->stream << 32 | note->pool);
}

static void add_call(void *context, const frag_call_note *call)
{
    uint64_t *sum = &((sums *)context)->notes;
    pinned_add(sum, call->event);
    pinned_add(sum, (uint64_t)call->call << 8 | call->result);
    pinned_add(sum, call->address);
    pinned_add(sum, call->bytes);
}

static void add_span(void *context, const frag_span *span, const frag_block_view *block)
{
    uint64_t *sum = context;
    pinned_add(sum, span->kind);
    pinned_add(sum, span->address);
    pinned_add(sum, span->bytes);
    pinned_add(sum, (uint64_t)span->stream << 32 | span->pool);
    pinned_add(sum, span->page_slack_bytes);
    pinned_add(sum, (uint64_t)(span->is_growing << 1 | span->is_small_pool));
    if (block != NULL) {
        pinned_add(sum, block->slot);
        pinned_add(sum, block->requested_bytes);
        pinned_add(sum, block->is_waiting);
    }
}

static void add_decomposition(uint64_t *sum, const frag_replay *replay)
{
    frag_decomposition parts;
    frag_replay_decompose(replay, &parts);
    pinned_add(sum, parts.rounding_bytes);
    pinned_add(sum, parts.unsplit_bytes);
    pinned_add(sum, parts.holes_bytes);
    pinned_add(sum, parts.cached_bytes);
    pinned_add(sum, parts.waiting_bytes);
    pinned_add(sum, parts.page_slack_bytes);
    pinned_add(sum, parts.largest_hole_bytes);
    pinned_add(sum, parts.hole_count);
    pinned_add(sum, parts.segment_count);
}

static void add_layout(void *context, const frag_replay *replay, uint64_t event,
                       const frag_level *level)
{
    uint64_t *sum = &((sums *)context)->layouts;
    pinned_add(sum, level->active_bytes);
    if (event % LAYOUT_EVERY != 0)
        return;
    frag_replay_walk(replay, add_span, sum);
    add_decomposition(sum, replay);
}

static void add_stat(void *context, const char *name, int64_t value)
{
    pinned_add_text(context, name);
    pinned_add(context, (uint64_t)value);
}

static void add_level(uint64_t *sum, const frag_level *level)
{
    pinned_add(sum, level->requested_bytes);
    pinned_add(sum, level->allocated_bytes);
    pinned_add(sum, level->active_bytes);
    pinned_add(sum, level->reserved_bytes);
}

static void add_oom(uint64_t *sum, const frag_oom *oom)
{
    pinned_add(sum, oom->event);
    pinned_add(sum, oom->segment_bytes);
    pinned_add(sum, oom->free_bytes);
    pinned_add(sum, oom->largest_hole_bytes);
    pinned_add(sum, oom->total_hole_bytes);
    pinned_add(sum, oom->hole_count);
    add_level(sum, &oom->level);
    pinned_add_text(sum, oom->message);
}

typedef struct told_run {
    frag_text *out;
    sums sums;
} told_run;

static void tell_end(void *context, const frag_replay *replay, const frag_replay_result *result)
{
    told_run *at = context;
    uint64_t *sum = &at->sums.end;
    frag_policy_met met = {{0}};
    frag_replay_met(replay, &met);
    for (size_t i = 0; i < sizeof met.words / sizeof met.words[0]; i++)
        pinned_add(sum, met.words[i]);
    frag_replay_stats(replay, add_stat, sum);
    frag_replay_walk(replay, add_span, sum);
    add_decomposition(sum, replay);
    add_level(sum, &result->peak);
    add_level(sum, &result->final);
    add_level(sum, &result->at_reserved_peak);
    pinned_add(sum, result->peak_requested_event);
    pinned_add(sum, result->reserved_at_event);
    pinned_add(sum, result->requested_sum.low);
    pinned_add(sum, result->reserved_sum.low);
    pinned_add(sum, (uint64_t)(result->external_ratio_max * 1e6));
    add_oom(sum, &result->oom);
    frag_text_add(at->out,
                  "%" PRIu64 " events, %" PRIu64 " ignored, %" PRIu64 " requests, %" PRIu64
                  " failed, %" PRIu64 " reserved, notes %08" PRIx32 ", layouts %08" PRIx32
                  ", end %08" PRIx32 "\n",
                  result->events, result->ignored_events, result->requests, result->failed_requests,
                  result->peak.reserved_bytes, (uint32_t)(at->sums.notes >> 32),
                  (uint32_t)(at->sums.layouts >> 32), (uint32_t)(at->sums.end >> 32));
}

/* ---- which other settings and capacities would give the same run */

typedef struct repeat_case {
    const frag_policy_ops *ops;
    frag_policy_pair pair;
    frag_pytorch_settings run; /* settings of the run that was made */
    uint64_t bits;             /* the answers, the last one lowest */
} repeat_case;

static void ask(repeat_case *at, const frag_pytorch_settings *other)
{
    frag_policy_terms terms = {{0}};
    memcpy(&terms, other, sizeof *other);
    at->pair.other = &terms;
    at->bits = at->bits << 1 | frag_policy_engine_of(at->ops)->repeats->proves(&at->pair);
}

/* On both sides of the ends of what the run has met. */
static void ask_interval(repeat_case *at, frag_pytorch_settings *other, uint64_t *number,
                         frag_pytorch_interval all)
{
    const uint64_t numbers[] = {all.least - 1, all.least, all.most, all.most + 1, FRAG_UNLIMITED};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        *number = numbers[i];
        ask(at, other);
    }
}

static void ask_limits(repeat_case *at)
{
    const frag_policy_met *met = at->pair.met;
    frag_pytorch_settings other = at->run;
    ask_interval(at, &other, &other.max_split_bytes, frag_pytorch_met_split(met));
    other = at->run;
    ask_interval(at, &other, &other.non_split_rounding_bytes, frag_pytorch_met_slack(met));
    const frag_pytorch_interval limit = frag_pytorch_met_limit(met);
    const uint64_t limits[] = {limit.least - 1, limit.least, limit.most};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        if (limits[i] > at->pair.capacity_bytes)
            continue;
        other = at->run;
        other.has_fraction = true;
        other.memory_fraction = (double)limits[i] / (double)at->pair.capacity_bytes;
        ask(at, &other);
    }
    other = at->run;
    for (int i = 0; i < 10; i++) {
        other.gc_threshold = i / 10.0;
        ask(at, &other);
    }
}

/* The size of large segments is for requests between the small ones and those with a segment of
 * their own; divisions are for those that they round up. */
static void ask_sizes(repeat_case *at)
{
    static const uint64_t sizes[] = {FRAG_PYTORCH_SMALL_MAX, FRAG_PYTORCH_SMALL_MAX + 1,
                                     FRAG_PYTORCH_LARGE_MIN - 512, FRAG_PYTORCH_LARGE_MIN,
                                     FRAG_PYTORCH_LARGE_MIN + 512};
    at->pair.size_count = 1;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        at->pair.sizes = &sizes[i];
        frag_pytorch_settings other = at->run;
        other.large_segment_bytes += 2 * FRAG_MIB;
        ask(at, &other);
        other = at->run;
        other.has_divisions = true;
        for (int j = 0; j < 16; j++)
            other.divisions[j] = 4;
        ask(at, &other);
    }
}

static void tell_repeats(frag_text *out, const policy_case *what, const frag_policy_spec *spec,
                         const frag_run_result *result)
{
    repeat_case at = {.ops = spec->ops,
                      .pair = {.met = &result->met, .capacity_bytes = what->capacity_bytes}};
    frag_policy_terms terms;
    if (!frag_policy_engine_of(spec->ops)->repeats->terms(spec->values, "", &terms))
        return;
    memcpy(&at.run, &terms, sizeof at.run);
    at.pair.terms = &terms;
    ask(&at, &at.run);
    ask_limits(&at);
    ask_sizes(&at);
    frag_text_add(out, ", repeats %" PRIx64, at.bits);
}

static void tell_elsewhere(frag_text *out, const policy_case *what, const frag_policy_spec *spec,
                           const frag_recording *recording)
{
    frag_run_result result;
    frag_error error = {0};
    frag_device_spec device = {.capacity_bytes = what->capacity_bytes,
                               .page_bytes = what->page_bytes};
    frag_run_options options = {.is_oom_skipped = what->is_oom_skipped};
    if (!frag_run(
            &(frag_run_setup){recording, &recording->traces[0], spec->ops, spec->values, &device},
            &options, &result, &error))
        return;
    frag_text_add(out, "    same from %" PRIu64 " to %" PRIu64 "%s", result.need_max_bytes,
                  result.refused_need_min_bytes, result.is_capacity_read ? ", reads it" : "");
    if (frag_policy_engine_of(spec->ops)->repeats != NULL)
        tell_repeats(out, what, spec, &result);
    frag_text_add(out, "\n");
}

static void tell_case(frag_text *out, const policy_case *what, const frag_recording *recording)
{
    frag_policy_spec spec;
    frag_error error = {0};
    frag_text_add(out, "  %s on %" PRIu64 "/%" PRIu64 "%s, call %" PRIu64 ": ", what->policy,
                  what->capacity_bytes, what->page_bytes, what->is_oom_skipped ? " skip" : "",
                  what->fail_call);
    if (!frag_policy_spec_parse(what->policy, &spec, &error)) {
        frag_text_add(out, "no such options\n");
        return;
    }
    told_run at = {.out = out};
    frag_device_spec device = {.capacity_bytes = what->capacity_bytes,
                               .page_bytes = what->page_bytes,
                               .fail_call = what->fail_call};
    frag_replay_options options = {.is_oom_skipped = what->is_oom_skipped,
                                   .stop_after = FRAG_UNLIMITED,
                                   .observer = add_layout,
                                   .observer_context = &at.sums,
                                   .on_note = add_note,
                                   .on_note_context = &at.sums,
                                   .on_call = add_call,
                                   .is_start_noted = true,
                                   .keeps_stats = true};
    if (!frag_run_look(
            &(frag_run_setup){recording, &recording->traces[0], spec.ops, spec.values, &device},
            &options, tell_end, &at, &error))
        frag_text_add(out, "refused\n");
    tell_elsewhere(out, what, &spec, recording);
    frag_policy_spec_destroy(&spec);
}

/* Every policy once, on devices and with options by chance; those that look for what repeats with
 * their defaults too. */
static void tell_policies(frag_text *out, const frag_recording *recording, uint64_t seed)
{
    const frag_trace *trace = &recording->traces[0];
    uint64_t bits = seed * 0x9e3779b97f4a7c15u;
    for (size_t i = 0; frag_policy_table[i] != NULL; i++) {
        const frag_policy_ops *ops = frag_policy_table[i];
        policy_case what = policy_case_draw(ops, trace, &bits);
        if (frag_policy_engine_of(ops)->planner == NULL ||
            trace->event_count <= PLANNED_EVENTS_MAX) {
            tell_case(out, &what, recording);
            free(what.policy);
            what = (policy_case){.policy = frag_copy_text(ops->name),
                                 .capacity_bytes = FRAG_UNLIMITED,
                                 .page_bytes = FRAG_DEVICE_PAGE_BYTES};
            if (frag_policy_engine_of(ops)->planner != NULL)
                tell_case(out, &what, recording);
        }
        free(what.policy);
    }
}

static void tell_text(frag_text *out, const char *text, uint64_t seed)
{
    frag_recording recording;
    frag_findings findings;
    frag_test_load_well(text, &recording, &findings);
    tell_policies(out, &recording, seed);
    frag_recording_destroy(&recording);
}

static void tell_random(frag_text *out)
{
    random_trace trace = {0};
    unsigned count = 0;
    for (uint64_t seed = 1; count < TRACES + FOLDED_TRACES; seed++) {
        frag_text text = {0};
        size_t from = out->length;
        random_trace_draw(&trace, seed);
        if (trace.count > EVENTS_MAX)
            continue;
        frag_text_add(out, "trace %" PRIu64 ", %zu events\n", seed, trace.count);
        random_trace_write(&trace, &text);
        tell_text(out, text.bytes, seed);
        if (count >= TRACES)
            pinned_fold(out, from, "one more trace");
        frag_text_destroy(&text);
        count++;
    }
    random_trace_destroy(&trace);
}

/* A program that repeats itself, with a stranger or another size now and then: slots are weights,
 * then layers, the last ones for what lives shortly. */
static void write_program(frag_text *text, uint64_t seed)
{
    enum { STRANGER = 98, SHORT = 99, PHASE_SLOTS = 6 };
    uint64_t bits = seed * 0x9e3779b97f4a7c15u;
    uint64_t layers = 2 + xorshift_next(&bits) % 5;
    uint64_t iterations = 3 + xorshift_next(&bits) % 5;
    uint64_t odd = xorshift_next(&bits) % iterations;
    uint64_t unit = xorshift_next(&bits) % 3 != 0 ? FRAG_MIB : 1000;
    frag_text_add(text, "# fraglab trace 1\n");
    for (uint64_t i = 0; i < layers; i++)
        frag_text_add(text, "alloc %" PRIu64 " %" PRIu64 "\n", i, unit * (200 + 70 * i));
    for (uint64_t step = 0; step < iterations; step++) {
        uint64_t more = step == odd && seed % 3 == 0 ? 512 : 0;
        for (uint64_t i = 0; i < layers; i++)
            frag_text_add(text, "alloc %" PRIu64 " %" PRIu64 "\nalloc %d %" PRIu64 "\nfree %d\n",
                          layers + i, unit * (90 - 3 * i) + more, (int)SHORT, unit * (50 + 4 * i),
                          (int)SHORT);
        if (step == odd && seed % 3 == 1)
            frag_text_add(text, "alloc %d %" PRIu64 "\n", (int)STRANGER, unit * 7);
        if (seed % 5 == 0)
            frag_text_add(text, "empty_cache\n");
        for (uint64_t i = layers; i-- > 0;)
            frag_text_add(text, "alloc %d %" PRIu64 "\nfree %" PRIu64 "\nfree %d\n", (int)SHORT,
                          unit * (70 + 5 * i), layers + i, (int)SHORT);
        if (step == odd && seed % 3 == 1)
            frag_text_add(text, "free %d\n", (int)STRANGER);
    }
    /* Another phase, in which the same sizes come in any order. */
    bool is_live[PHASE_SLOTS] = {false};
    for (int i = 0; i < 60 && seed % 2 == 0; i++) {
        uint64_t slot = xorshift_next(&bits) % PHASE_SLOTS;
        uint64_t layer = xorshift_next(&bits) % layers;
        uint64_t size = unit * (xorshift_next(&bits) % 2 == 0 ? 90 - 3 * layer : 50 + 4 * layer);
        if (is_live[slot])
            frag_text_add(text, "free %" PRIu64 "\n", 100 + slot);
        else
            frag_text_add(text, "alloc %" PRIu64 " %" PRIu64 "\n", 100 + slot, size);
        is_live[slot] = !is_live[slot];
    }
}

static void tell_programs(frag_text *out)
{
    for (uint64_t seed = 1; seed <= PROGRAMS; seed++) {
        frag_text text = {0};
        frag_text_add(out, "program %" PRIu64 "\n", seed);
        write_program(&text, seed);
        tell_text(out, text.bytes, seed);
        frag_text_destroy(&text);
    }
}

static bool has_private_pools(const random_trace *trace)
{
    for (size_t i = 0; i < trace->count; i++)
        if (trace->events[i].op == FRAG_OP_POOL_BEGIN)
            return true;
    return false;
}

/* Private pools on each side of the releases that changed them. */
static void tell_releases(frag_text *out)
{
    static const char *const settings[] = {
        "version=2.9",
        "version=2.10",
        "version=2.11",
        "version=2.12,graph_capture_record_stream_reuse=true",
        "version=2.13,graph_capture_record_stream_reuse=true",
        "version=2.10,expandable_segments=true,per_process_memory_fraction=1",
        "version=2.11,expandable_segments=true,max_split_size_mb=40",
        "version=2.15,expandable_segments=true"};
    random_trace trace = {0};
    unsigned count = 0;
    for (uint64_t seed = 90001; count < RELEASE_TRACES; seed++) {
        random_trace_draw(&trace, seed);
        if (trace.count > EVENTS_MAX || !has_private_pools(&trace))
            continue;
        frag_text text = {0};
        frag_recording recording;
        frag_findings findings;
        size_t from = out->length;
        random_trace_write(&trace, &text);
        frag_test_load_well(text.bytes, &recording, &findings);
        for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
            frag_text policy = {0};
            frag_text_add(&policy, "pytorch:%s", settings[i]);
            uint64_t peak = recording.traces[0].stats.peak_requested_bytes;
            tell_case(out,
                      &(policy_case){.policy = policy.bytes,
                                     .capacity_bytes = peak + (count + i) % 4 * 16 * FRAG_MIB,
                                     .page_bytes = FRAG_DEVICE_PAGE_BYTES,
                                     .is_oom_skipped = true},
                      &recording);
            frag_text_destroy(&policy);
        }
        pinned_fold(out, from, "releases");
        frag_recording_destroy(&recording);
        frag_text_destroy(&text);
        count++;
    }
    random_trace_destroy(&trace);
}

static void tell_all(frag_text *out)
{
    tell_random(out);
    tell_programs(out);
    tell_releases(out);
}

static const pinned_lines pinned = {"tests/data/answers/policies.txt.zst", tell_all,
                                    "answers-golden"};

int main(int argc, char **argv)
{
    return pinned_lines_test(&pinned, argc, argv);
}
