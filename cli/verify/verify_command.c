/* `fraglab verify`: options, and what the policy is compared with (a recording, golden logs, a
 * card). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/text_stream.h"
#include "base/threads.h"
#include "cli/gpu_run.h"
#include "cli/inputs.h"
#include "cli/verify/verify_golden.h"
#include "cli/verify/verify_gpu.h"
#include "studies/verify/verify_json.h"
#include "studies/verify/verify_reason.h"
#include "studies/verify/verify_recorded.h"

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

typedef struct job {
    frag_text out;
    frag_error error;
    bool is_ok;
    uint64_t counts[FRAG_OUTCOME_COUNT]; /* of comparisons, by outcome */
} job;

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
    frag_text_add(out, ", inferred from the recording");
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
                       const frag_trace *trace, const frag_verification *found)
{
    const frag_policy_spec *spec = &found->spec;
    const frag_verify_result *result = &found->result;
    const frag_inferred *inferred = &found->inferred;
    frag_text_add(&task->out, "%s", recording->name);
    if (recording->trace_count > 1)
        frag_text_add(&task->out, " device %" PRIu32, trace->device);
    frag_text_add(&task->out, " %s: ", spec->text);
    if (frag_verification_outcome(found) == FRAG_NOTHING_COMPARED) {
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
    /* Among the requests that were compared is the one that differs, if it is one. */
    bool is_request = result->first.event < trace->event_count &&
                      trace->events[result->first.event].op == FRAG_OP_ALLOC;
    uint64_t identical = result->requests - (is_request ? 1 : 0);
    frag_text_add(&task->out, "different at event %s, after %s identical request%s",
                  FRAG_COUNT(result->first.event), FRAG_COUNT(identical),
                  identical == 1 ? "" : "s");
    if (state->goes_on)
        frag_text_add(&task->out, "; %s events differ", FRAG_COUNT(result->difference_count));
    frag_text_add(&task->out, ": ");
    add_difference(&task->out, trace, &result->first);
    frag_text_add(&task->out, "  likely: ");
    frag_verify_add_reason(&task->out, recording, trace, spec, result);
    frag_text_add(&task->out, "\n");
    add_tried(&task->out, inferred);
}

static bool verify_one(verify_run *state, job *task, const frag_recording *recording,
                       const frag_trace *trace, const frag_policy_spec *spec)
{
    frag_verification found;
    bool is_named = frag_arguments_has(state->arguments, "policy");
    if (!frag_verify_recorded(frag_arguments_context(state->arguments), recording, trace,
                              is_named ? spec : NULL, state->capacity_bytes, state->goes_on, &found,
                              &task->error))
        return false;
    task->counts[frag_verification_outcome(&found)]++;
    if (state->is_json) {
        frag_text_stream *stream = frag_text_stream_open();
        size_t length = 0;
        frag_verification_print_json(frag_text_stream_file(stream), recording, trace, &found);
        char *line = frag_text_stream_close(stream, &length);
        frag_text_add_bytes(&task->out, line, length);
        frag_free(line);
    } else {
        print_text(state, task, recording, trace, &found);
    }
    frag_verification_destroy(&found);
    return true;
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
                  frag_verify_check_observed(&recording, &task->error);
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
static void print_summary(const uint64_t counts[FRAG_OUTCOME_COUNT])
{
    static const char *const words[FRAG_OUTCOME_COUNT] = {
        [FRAG_IDENTICAL] = "identical",
        [FRAG_DIFFERENT] = "different",
        [FRAG_NOTHING_COMPARED] = "with nothing to compare",
    };
    uint64_t sum = counts[FRAG_IDENTICAL] + counts[FRAG_DIFFERENT] + counts[FRAG_NOTHING_COMPARED];
    if (sum < 2)
        return;
    printf("%s comparisons:", FRAG_COUNT(sum));
    const char *separator = " ";
    for (size_t i = 0; i < FRAG_OUTCOME_COUNT; i++) {
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
static int print_jobs(const verify_run *state, size_t count, uint64_t counts[FRAG_OUTCOME_COUNT])
{
    int code = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < FRAG_OUTCOME_COUNT; k++)
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
    uint64_t counts[FRAG_OUTCOME_COUNT] = {0};
    int code = print_jobs(&state, count, counts);
    frag_free(state.jobs);
    frag_policy_list_destroy(&state.policies);
    if (frag_is_interrupted())
        return 130;
    /* Input that could not be read weighs more than a difference. */
    return code != 0 ? code : counts[FRAG_DIFFERENT] > 0 ? 1 : 0;
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
        "fraglab verify --against golden logs/  # logs of the library itself\n"
        "fraglab verify --against golden tests/data/golden-peers  # those of other frameworks\n"
        "fraglab verify --against cuda train.pickle --policy best-fit --capacity 8GiB --ballast\n"
        "fraglab verify train.pickle --policy pytorch:version=2.9  # is it as 2.9 would have done?",
    .options = options,
    .operand_min = 1,
    .operand_max = UINT32_MAX,
    .run = verify_command,
};
