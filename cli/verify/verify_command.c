/* `fraglab verify`: options, and what the policy is compared with (a recording, golden logs, a
 * card). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/threads.h"
#include "cli/gpu_run.h"
#include "cli/inputs.h"
#include "cli/verify/verify_golden.h"
#include "cli/verify/verify_gpu.h"
#include "cli/verify/verify_row.h"
#include "studies/verify/verify.h"
#include "studies/verify/verify_infer.h"
#include "studies/verify/verify_reason.h"

static const frag_command_option options[] = {
    FRAG_POLICY_OPTIONS,
    {"capacity", "SIZE",
     .help = "memory of the recorded device, needed only for settings that are a share of it; "
             "with --against cuda: memory of the card"},
    FRAG_LOAD_OPTIONS,
    {"against", "WHAT", .choices = "recording|golden|cuda",
     .help = "compare with what the recording observed (default), or, request by request, with "
             "golden logs of the library itself: addresses, OOM messages, device calls, trace "
             "events, statistics, segments (folders of logs may be named; the log of another "
             "framework's pool names its policy), or the simulated device with a real card, call "
             "by call"},
    {"device", "cuda[:N]", .help = "with --against cuda: the card of that number (default: 0)"},
    FRAG_GPU_OPTIONS,
    {"check", "N",
     .help = "with --against golden: audit the policy's structures every N events (slow)"},
    {"count", .help = "go on after the first difference and count them all"},
    {"format", "FORMAT", .choices = "text|jsonl",
     .help = "how results are printed (default: text)"},
    FRAG_JOBS_OPTION,
    {.name = NULL},
};

/* What a comparison came to. Nothing was compared where a recording holds neither a request nor a
 * call of its allocator: as it is with a snapshot without history. */
typedef enum outcome { IDENTICAL, DIFFERENT, NOTHING_COMPARED, OUTCOMES } outcome;

typedef struct job {
    frag_text out;
    frag_error error;
    bool is_ok;
    uint64_t counts[OUTCOMES]; /* of comparisons, by outcome */
} job;

static outcome outcome_of(const frag_verify_result *result)
{
    if (!result->is_identical)
        return DIFFERENT;
    return result->requests + result->device_events + result->ooms > 0 ? IDENTICAL
                                                                       : NOTHING_COMPARED;
}

typedef struct verify_run {
    const frag_arguments *arguments;
    frag_policy_list policies;
    uint64_t capacity_bytes;
    frag_trace_format format;
    bool is_json;
    bool goes_on;
    job *jobs;
    frag_progress *progress;
} verify_run;

static void add_call(frag_text *out, const frag_oracle_call *call)
{
    frag_text_add(out, "%s of %s", frag_op_name(call->op), FRAG_BYTES(call->bytes));
    if (call->op != FRAG_OP_OOM && call->address != 0)
        frag_text_add(out, " at 0x%" PRIx64, call->address);
}

static void add_event(frag_text *out, const frag_trace *trace, uint64_t index, bool is_marked)
{
    const frag_event *event = &trace->events[index];
    frag_text_add(out, "%c %10" PRIu64 "  %s", is_marked ? '>' : ' ', index,
                  frag_op_name((frag_op)event->op));
    if (event->op == FRAG_OP_ALLOC || frag_op_is_observed(event->op))
        frag_text_add(out, " %s (%" PRIu64 ")", FRAG_BYTES(event->bytes), event->bytes);
    if (event->slot != FRAG_SLOT_NONE && (event->op == FRAG_OP_ALLOC || event->op == FRAG_OP_FREE))
        frag_text_add(out, " slot %" PRIu32, event->slot);
    if (trace->addresses != NULL && trace->addresses[index] != 0 && event->op != FRAG_OP_OOM)
        frag_text_add(out, " at 0x%" PRIx64, trace->addresses[index]);
    if ((event->flags & FRAG_EVENT_FAILED) != 0)
        frag_text_add(out, " failed");
    frag_text_add(out, "\n");
}

static void add_side(frag_text *out, const char *name, const frag_side *side)
{
    frag_text_add(out, "  %-12s %12s %13s %10s", name, FRAG_BYTES(side->reserved_bytes),
                  FRAG_BYTES(side->requested_bytes), FRAG_COUNT(side->live_count));
}

static void add_sides(frag_text *out, const frag_difference *found)
{
    frag_text_add(out,
                  "  after it         reserved     requested   requests   largest free block\n");
    add_side(out, "  recorded", &found->side_recorded);
    frag_text_add(out, "\n");
    add_side(out, "  policy", &found->side_simulated);
    if (found->hole_bytes > 0)
        frag_text_add(out, "   %s at 0x%" PRIx64, FRAG_BYTES(found->hole_bytes),
                      found->hole_address);
    frag_text_add(out, "\n");
    if (found->room_recorded_bytes > 0 && found->room_simulated_bytes > 0)
        frag_text_add(out,
                      "  the policy took a free block of %s, and left one of %s at the recorded "
                      "address\n",
                      FRAG_BYTES(found->room_simulated_bytes),
                      FRAG_BYTES(found->room_recorded_bytes));
}

static void add_difference(frag_text *out, const frag_trace *trace, const frag_difference *found)
{
    switch (found->kind) {
    case FRAG_DIFFERENCE_ADDRESS:
        frag_text_add(out, "the block is at 0x%" PRIx64 "; recorded at 0x%" PRIx64,
                      found->address_simulated, found->address_recorded);
        break;
    case FRAG_DIFFERENCE_CALL:
        frag_text_add(out, "the policy made a ");
        add_call(out, &found->simulated);
        frag_text_add(out, found->has_recorded ? "; recorded next is a "
                                               : "; no device event is left in the recording");
        if (found->has_recorded)
            add_call(out, &found->recorded);
        break;
    case FRAG_DIFFERENCE_MISSING:
        frag_text_add(out, "the recorded allocator made a ");
        add_call(out, &found->recorded);
        frag_text_add(out, "; the policy made none");
        break;
    case FRAG_DIFFERENCE_EARLY:
        frag_text_add(out,
                      "the policy made a device call that was recorded only for a later request");
        break;
    case FRAG_DIFFERENCE_FAILED:
        frag_text_add(out, "the policy ran out of memory; the recorded request was served");
        if (found->has_simulated) {
            frag_text_add(out, ". It asked for a ");
            add_call(out, &found->simulated);
        }
        break;
    case FRAG_DIFFERENCE_SERVED:
        frag_text_add(out, "the policy served a request that failed when recorded");
        break;
    case FRAG_DIFFERENCE_NONE:
        break;
    }
    frag_text_add(out, "\n");
    uint64_t first = found->event > 4 ? found->event - 4 : 0;
    for (uint64_t i = first; i < found->event + 4 && i < trace->event_count; i++)
        add_event(out, trace, i, i == found->event);
    add_sides(out, found);
}

/* "; max_split_size_mb may be 101 to 131" */
static void add_interval_mib(frag_text *out, const char *key, const frag_pytorch_interval *all)
{
    if (all->least == FRAG_UNLIMITED)
        return;
    uint64_t least = (all->least + FRAG_MIB - 1) / FRAG_MIB;
    frag_text_add(out, "; %s may be %s", key, FRAG_COUNT(least));
    if (all->most == FRAG_UNLIMITED)
        frag_text_add(out, " or more");
    else if (all->most / FRAG_MIB > least)
        frag_text_add(out, " to %s", FRAG_COUNT(all->most / FRAG_MIB));
}

/* "; the memory limit may be 9.67 GiB to 9.87 GiB" */
static void add_interval(frag_text *out, const char *what, const frag_pytorch_interval *all)
{
    char least[FRAG_BYTES_TEXT_MAX];
    char most[FRAG_BYTES_TEXT_MAX];
    if (all->least == FRAG_UNLIMITED)
        return;
    frag_text_add(out, "; %s %s", what, frag_bytes_text(all->least, least));
    if (all->most == FRAG_UNLIMITED)
        frag_text_add(out, " or more");
    else if (strcmp(frag_bytes_text(all->most, most), least) != 0)
        frag_text_add(out, " to %s", most);
}

static void add_inferred(frag_text *out, const frag_inferred *inferred)
{
    bool has_settings = inferred->settings[0] != '\0';
    bool has_limit = inferred->limit_bytes != FRAG_UNLIMITED;
    bool has_capacity = !has_limit && inferred->capacity_bytes != FRAG_UNLIMITED;
    if (!has_settings && !has_limit && !has_capacity)
        return;
    frag_text_add(out, " (with %s", inferred->settings);
    if (has_limit || has_capacity)
        frag_text_add(out, "%sa %s of %s", has_settings ? " and " : "",
                      has_limit ? "memory limit" : "capacity",
                      FRAG_BYTES(has_limit ? inferred->limit_bytes : inferred->capacity_bytes));
    frag_text_add(out, ", concluded from the recording");
    add_interval_mib(out, "max_split_size_mb", &inferred->split);
    add_interval_mib(out, "max_non_split_rounding_mb", &inferred->slack);
    add_interval(out, "the limit may be", &inferred->limit);
    add_interval(out, "collection may begin at", &inferred->mark);
    if (inferred->left_out_calls > 0)
        frag_text_add(out, "; %s supposed calls of empty_cache were none",
                      FRAG_COUNT(inferred->left_out_calls));
    if (inferred->divisions[0] != '\0')
        frag_text_add(out, "; divisions of %s do the same", inferred->divisions);
    frag_text_add(out, ")");
}

/* What was looked for in vain. */
static void add_tried(frag_text *out, const frag_inferred *inferred)
{
    if (inferred->replays == 0)
        return;
    frag_text_add(out, "  tried: %s, in %s replays", inferred->tried,
                  FRAG_COUNT(inferred->replays));
    if (inferred->settings[0] != '\0')
        frag_text_add(out, "; nearest: %s, up to event %s", inferred->settings,
                      FRAG_COUNT(inferred->event));
    frag_text_add(out, "\n");
}

static void print_text(const verify_run *state, job *task, const frag_recording *recording,
                       const frag_trace *trace, const frag_policy_spec *spec,
                       const frag_verify_result *result, const frag_inferred *inferred)
{
    frag_text_add(&task->out, "%s", recording->name);
    if (recording->trace_count > 1)
        frag_text_add(&task->out, " device %" PRIu32, trace->device);
    frag_text_add(&task->out, " %s: ", spec->text);
    if (outcome_of(result) == NOTHING_COMPARED) {
        frag_text_add(&task->out,
                      "nothing to compare: the recording holds no requests, only memory that was "
                      "in use\n");
        return;
    }
    if (result->is_identical) {
        frag_text_add(&task->out, "identical: %s request%s, %s device event%s",
                      FRAG_COUNT(result->requests), result->requests == 1 ? "" : "s",
                      FRAG_COUNT(result->device_events), result->device_events == 1 ? "" : "s");
        if (result->ooms > 0)
            frag_text_add(&task->out, ", %s OOM", FRAG_COUNT(result->ooms));
        add_inferred(&task->out, inferred);
        frag_text_add(&task->out, "\n");
        return;
    }
    frag_text_add(&task->out, "different at event %s, after %s identical requests",
                  FRAG_COUNT(result->first.event),
                  FRAG_COUNT(result->requests > 0 ? result->requests - 1 : 0));
    if (state->goes_on)
        frag_text_add(&task->out, "; %s events differ", FRAG_COUNT(result->difference_count));
    frag_text_add(&task->out, ": ");
    add_difference(&task->out, trace, &result->first);
    frag_text_add(&task->out, "  likely: ");
    frag_verify_add_reason(&task->out, recording, trace, spec, result);
    frag_text_add(&task->out, "\n");
    add_tried(&task->out, inferred);
}

static void add_side_json(frag_json *json, const char *name, const frag_side *side)
{
    const struct {
        const char *name;
        uint64_t figure;
    } figures[] = {{"reserved_bytes", side->reserved_bytes},
                   {"requested_bytes", side->requested_bytes},
                   {"live_requests", side->live_count}};
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        char path[64];
        snprintf(path, sizeof path, "verify.first.%s.%s", name, figures[i].name);
        frag_json_number(json, path, figures[i].figure);
    }
}

static void add_intervals_json(frag_json *json, const frag_inferred *inferred)
{
    const struct {
        const char *name;
        const frag_pytorch_interval *all;
    } intervals[] = {{"memory_limit", &inferred->limit},
                     {"collection", &inferred->mark},
                     {"max_split_size", &inferred->split},
                     {"max_non_split_rounding", &inferred->slack}};
    for (size_t i = 0; i < sizeof intervals / sizeof intervals[0]; i++) {
        char path[80];
        snprintf(path, sizeof path, "verify.may_be.%s.least_bytes", intervals[i].name);
        frag_json_number(json, path, intervals[i].all->least);
        snprintf(path, sizeof path, "verify.may_be.%s.most_bytes", intervals[i].name);
        frag_json_number(json, path, intervals[i].all->most);
    }
    frag_json_text(json, "verify.may_be.roundup_power2_divisions",
                   inferred->divisions[0] != '\0' ? inferred->divisions : NULL);
}

static void print_json(job *task, const frag_recording *recording, const frag_trace *trace,
                       const frag_policy_spec *spec, const frag_verify_result *result,
                       const frag_inferred *inferred)
{
    frag_json *json = frag_json_create();
    frag_verify_row_head(json, recording, trace, spec);
    if (outcome_of(result) == NOTHING_COMPARED)
        frag_json_text(json, "verify.is_identical", NULL);
    else
        frag_json_flag(json, "verify.is_identical", result->is_identical);
    frag_json_number(json, "verify.requests", result->requests);
    frag_json_number(json, "verify.device_events", result->device_events);
    frag_json_number(json, "verify.ooms", result->ooms);
    frag_json_number(json, "verify.inferred_capacity_bytes",
                     inferred->limit_bytes == FRAG_UNLIMITED ? inferred->capacity_bytes
                                                             : FRAG_UNLIMITED);
    frag_json_number(json, "verify.inferred_limit_bytes", inferred->limit_bytes);
    const char *settings = inferred->settings[0] != '\0' ? inferred->settings : NULL;
    frag_json_text(json, "verify.inferred_settings", result->is_identical ? settings : NULL);
    add_intervals_json(json, inferred);
    frag_json_number(json, "verify.left_out_calls", inferred->left_out_calls);
    frag_json_text(json, "verify.tried", inferred->tried[0] != '\0' ? inferred->tried : NULL);
    frag_json_number(json, "verify.replays", inferred->replays);
    frag_json_text(json, "verify.nearest.settings", result->is_identical ? NULL : settings);
    frag_json_number(json, "verify.nearest.event",
                     result->is_identical || settings == NULL ? FRAG_UNLIMITED : inferred->event);
    frag_json_number(json, "verify.differences", result->difference_count);
    frag_json_text(json, "verify.first.kind",
                   result->is_identical ? NULL : frag_difference_name(result->first.kind));
    frag_json_number(json, "verify.first.event",
                     result->is_identical ? FRAG_UNLIMITED : result->first.event);
    const frag_side none = {FRAG_UNLIMITED, FRAG_UNLIMITED, FRAG_UNLIMITED};
    add_side_json(json, "recorded", result->is_identical ? &none : &result->first.side_recorded);
    add_side_json(json, "policy", result->is_identical ? &none : &result->first.side_simulated);
    char *bytes = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&bytes, &size);
    FRAG_ASSERT(stream != NULL);
    frag_json_write(json, stream, false);
    fclose(stream);
    frag_text_add_bytes(&task->out, bytes, size);
    frag_free(bytes);
}

/* Golden logs hold the capacity of their device; other recordings do not. */
static uint64_t recorded_capacity(const frag_recording *recording)
{
    const char *text = frag_recording_get(recording, "golden.capacity");
    uint64_t capacity = FRAG_UNLIMITED;
    if (text != NULL)
        frag_count_parse(text, 0, UINT64_MAX, &capacity, NULL);
    return capacity;
}

/* The name comes from the recording, which must not make us load a shared object. */
static bool parse_named(const char *text, frag_policy_spec *spec, frag_error *error)
{
    char *name = frag_copy_text(text);
    name[strcspn(name, ":")] = '\0';
    bool is_ours = frag_policy_find(name) != NULL;
    frag_free(name);
    if (!is_ours)
        return frag_fail(error, FRAG_E_INPUT,
                         "it names '%s' as its policy, which fraglab does not have; name one with "
                         "--policy",
                         text);
    return frag_policy_spec_parse(text, spec, error);
}

/* A recording without settings of PyTorch is held against the policy that it names, or against
 * PyTorch's defaults, where what the settings were is looked for. */
static bool resolve(const verify_run *state, const frag_policy_spec *spec,
                    const frag_recording *recording, frag_policy_spec *resolved, frag_error *error)
{
    if (frag_arguments_has(state->arguments, "policy") ||
        frag_recording_get(recording, "torch.conf") != NULL)
        return frag_policy_resolve(frag_arguments_context(state->arguments), spec, recording,
                                   resolved, error);
    const char *named = frag_recording_get(recording, "golden.policy");
    return parse_named(named != NULL ? named : "pytorch", resolved, error);
}

static bool verify_one(verify_run *state, job *task, const frag_recording *recording,
                       const frag_trace *trace, const frag_policy_spec *spec)
{
    frag_policy_spec resolved;
    if (!resolve(state, spec, recording, &resolved, &task->error))
        return false;
    frag_verify_result result;
    uint64_t capacity = state->capacity_bytes != FRAG_UNLIMITED ? state->capacity_bytes
                                                                : recorded_capacity(recording);
    bool ok = frag_verify(recording, trace, resolved.ops, resolved.values,
                          frag_verify_capacity(recording, &resolved, capacity), state->goes_on,
                          &result, &task->error);
    frag_inferred inferred;
    frag_inferred_create(&inferred);
    if (ok && !result.is_identical)
        frag_verify_infer(frag_arguments_context(state->arguments), recording, trace, &resolved,
                          capacity, &result, &inferred);
    if (ok) {
        task->counts[outcome_of(&result)]++;
        if (state->is_json)
            print_json(task, recording, trace, &resolved, &result, &inferred);
        else
            print_text(state, task, recording, trace, &resolved, &result, &inferred);
    }
    frag_policy_spec_destroy(&resolved);
    return ok;
}

/* Requests alone say nothing about an allocator: no policy could be held against them. */
static bool check_observed(const frag_recording *recording, frag_error *error)
{
    static const frag_op observed[] = {FRAG_OP_SEGMENT_ALLOC, FRAG_OP_SEGMENT_FREE,
                                       FRAG_OP_SEGMENT_MAP, FRAG_OP_SEGMENT_UNMAP, FRAG_OP_OOM};
    uint64_t requests = 0;
    bool has_observed = false;
    for (uint32_t t = 0; t < recording->trace_count; t++) {
        const frag_trace_stats *stats = &recording->traces[t].stats;
        requests += stats->op_counts[FRAG_OP_ALLOC];
        for (size_t i = 0; i < sizeof observed / sizeof observed[0]; i++)
            has_observed = has_observed || stats->op_counts[observed[i]] > 0;
    }
    if (requests == 0 && frag_recording_get(recording, "torch.conf") == NULL)
        return frag_fail(error, FRAG_E_INPUT,
                         "it holds no requests that a policy could be asked; there is nothing to "
                         "verify");
    return requests == 0 || has_observed ||
           frag_fail(error, FRAG_E_INPUT,
                     "it holds requests, but no segments that an allocator took for them; there is "
                     "nothing to verify");
}

static void verify_file(void *context, uint64_t index)
{
    verify_run *state = context;
    job *task = &state->jobs[index];
    const char *path = frag_arguments_operand(state->arguments, (size_t)index);
    frag_recording recording = {0};
    frag_load_options load = {.format = state->format, .with_columns = true};
    frag_findings findings = {0};
    task->is_ok = !frag_is_interrupted() &&
                  frag_recording_load(path, &load, &recording, &findings, &task->error) &&
                  check_observed(&recording, &task->error);
    for (uint32_t t = 0; task->is_ok && t < recording.trace_count; t++)
        for (size_t p = 0; task->is_ok && p < state->policies.count; p++)
            task->is_ok = verify_one(state, task, &recording, &recording.traces[t],
                                     &state->policies.specs[p]);
    if (!task->is_ok)
        frag_error_in(&task->error, path);
    frag_recording_destroy(&recording);
    frag_progress_add(state->progress, 1);
}

/* Several comparisons are summed up in a line before theirs. */
static void print_summary(const uint64_t counts[OUTCOMES])
{
    static const char *const words[OUTCOMES] = {
        [IDENTICAL] = "identical",
        [DIFFERENT] = "different",
        [NOTHING_COMPARED] = "with nothing to compare",
    };
    uint64_t sum = counts[IDENTICAL] + counts[DIFFERENT] + counts[NOTHING_COMPARED];
    if (sum < 2)
        return;
    printf("%s comparisons:", FRAG_COUNT(sum));
    const char *separator = " ";
    for (size_t i = 0; i < OUTCOMES; i++) {
        if (counts[i] == 0)
            continue;
        printf("%s%s %s", separator, FRAG_COUNT(counts[i]), words[i]);
        separator = ", ";
    }
    printf("\n");
}

/* Golden logs hold their settings, capacity and format; what would contradict them is refused. */
static int verify_golden(const frag_arguments *arguments, const verify_run *state, uint32_t threads)
{
    static const char *const foreign[] = {"capacity", "from",  "count", "device",
                                          "ballast",  "touch", "cudart"};
    frag_error error = {0};
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++)
        if (frag_arguments_has(arguments, foreign[i])) {
            frag_fail(&error, FRAG_E_USAGE, "--against golden takes no --%s; leave it out",
                      foreign[i]);
            return frag_report(&error);
        }
    if (state->policies.count != 1) {
        frag_fail(&error, FRAG_E_USAGE, "--against golden compares one policy; name one");
        return frag_report(&error);
    }
    return frag_verify_golden(arguments, &state->policies.specs[0], state->is_json, threads);
}

static bool refuse_gpu_options(const frag_arguments *arguments, frag_error *error)
{
    static const char *const foreign[] = {"device", "ballast", "touch", "cudart"};
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++)
        if (frag_arguments_has(arguments, foreign[i]))
            return frag_fail(error, FRAG_E_USAGE, "--%s goes with --against cuda; leave it out",
                             foreign[i]);
    return true;
}

/* What the jobs found, in the order of the files; the first failure's exit code. */
static int print_jobs(const verify_run *state, size_t count, uint64_t counts[OUTCOMES])
{
    int code = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < OUTCOMES; k++)
            counts[k] += state->jobs[i].counts[k];
    if (!state->is_json)
        print_summary(counts);
    for (size_t i = 0; i < count; i++) {
        job *task = &state->jobs[i];
        if (task->out.length > 0)
            fputs(task->out.bytes, stdout);
        int failure =
            !task->is_ok && task->error.code != FRAG_E_NONE ? frag_report(&task->error) : 0;
        code = code != 0 ? code : failure;
        frag_text_destroy(&task->out);
    }
    return code;
}

static int verify_command(const frag_arguments *arguments)
{
    verify_run state = {.arguments = arguments, .capacity_bytes = FRAG_UNLIMITED};
    frag_error error = {0};
    uint64_t threads = frag_core_count();
    state.is_json = frag_arguments_is(arguments, "format", "jsonl");
    state.goes_on = frag_arguments_has(arguments, "count");
    if (!frag_inputs_policies(arguments, "pytorch:recorded", &state.policies, &error) ||
        !frag_arguments_bytes(arguments, "capacity", &state.capacity_bytes, &error) ||
        !frag_inputs_format(arguments, &state.format, &error) ||
        !frag_arguments_count(arguments, "jobs", 1, 4096, &threads, &error)) {
        frag_policy_list_destroy(&state.policies);
        return frag_report(&error);
    }
    if (frag_arguments_is(arguments, "against", "golden")) {
        int golden_code = verify_golden(arguments, &state, (uint32_t)threads);
        frag_policy_list_destroy(&state.policies);
        return golden_code;
    }
    if (frag_arguments_is(arguments, "against", "cuda")) {
        int gpu_code = frag_verify_gpu(arguments, &state.policies, state.capacity_bytes,
                                       state.format, state.is_json);
        frag_policy_list_destroy(&state.policies);
        return gpu_code;
    }
    if (!refuse_gpu_options(arguments, &error)) {
        frag_policy_list_destroy(&state.policies);
        return frag_report(&error);
    }
    if (frag_arguments_has(arguments, "check")) {
        frag_policy_list_destroy(&state.policies);
        frag_fail(&error, FRAG_E_USAGE, "--check goes with --against golden; leave it out");
        return frag_report(&error);
    }
    size_t count = frag_arguments_operand_count(arguments);
    state.jobs = frag_alloc(count, sizeof *state.jobs);
    state.progress =
        frag_progress_start(frag_arguments_context(arguments), "verifying", "traces", count);
    frag_for_each((uint32_t)threads, count, verify_file, &state);
    frag_progress_end(state.progress);
    uint64_t counts[OUTCOMES] = {0};
    int code = print_jobs(&state, count, counts);
    frag_free(state.jobs);
    frag_policy_list_destroy(&state.policies);
    if (frag_is_interrupted())
        return 130;
    /* Input that could not be read weighs more than a difference. */
    return code != 0 ? code : counts[DIFFERENT] > 0 ? 1 : 0;
}

const frag_command frag_command_verify = {
    .name = "verify",
    .operands = "TRACE...",
    .summary = "does the policy do what the recording did, event by event?",
    .description =
        "Replays the requests of a recording on a device that answers as the recorded one did, "
        "and compares every address, every segment event and every OOM with what was recorded. "
        "Prints one line if all is identical, else the first difference, the events around it, "
        "what both sides hold after it and the likely reason; for several comparisons, a line of "
        "totals comes first. A snapshot without history has nothing to compare: verify says so, "
        "and does not count it as a difference. The policy is pytorch:recorded unless another is "
        "given; the log of another framework's pool names its own.\n"
        "\n"
        "A snapshot stores neither the capacity nor a memory limit, although expandable segments "
        "depend on the first and garbage collection on the second. Its release is known only as a "
        "range, and old snapshots store no settings. verify searches for values with which all is "
        "identical and prints them, with the other values that give the same result; if there are "
        "none, it prints what it tried. Values given with --policy and --capacity are not "
        "changed.\n"
        "\n"
        "--against cuda replays on a real card, with the addresses that the driver gives, then on "
        "the simulated device with the same addresses, and compares every device call, its result "
        "and every block that was granted.\n"
        "\n"
        "Exit: 0 identical, or nothing to compare; 1 a difference; 2 usage; 3 bad input; 4 the "
        "card refused.",
    .examples =
        "fraglab verify train.pickle\n"
        "fraglab verify --against golden tests/data/golden  # logs of the library itself\n"
        "fraglab verify --against golden tests/data/golden-peers  # those of other frameworks\n"
        "fraglab verify --against cuda train.pickle --policy best-fit --capacity 8GiB --ballast\n"
        "fraglab verify train.pickle --policy pytorch:version=2.9  # is it as 2.9 would have done?",
    .options = options,
    .operand_min = 1,
    .operand_max = UINT32_MAX,
    .run = verify_command,
};
