/* `fraglab tune`: options, recordings, and where what was found is printed. */
#include <stdlib.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/threads.h"
#include "cli/inputs.h"
#include "cli/search/tune_print.h"
#include "studies/tune/tune_json.h"

static const frag_command_option options[] = {
    {"policy", "NAME[:KEY=VALUE,...]", .letter = 'p',
     .help = "whose options are searched (default: pytorch); options given stay as they are; "
             "repeat it for several, or join bare names with commas"},
    {"for", "GOAL", .choices = "peak|min-capacity",
     .help = "what to minimise. peak: peak reserved bytes (with --capacity, among the settings "
             "that do not run out of memory); min-capacity: the least capacity that survives "
             "(default: peak)"},
    {"held-out", "TRACE",
     .help = "report the setting that was found on this trace too, but do not search on it; repeat "
             "it for several"},
    {"runs", "N", .help = "settings to try, each on every trace (default: 400)"},
    {"seconds", "N",
     .help = "end the search after that time; the result then depends on the machine"},
    {"seed", "N", .help = "seed of the random restarts (default: 0)"},
    FRAG_DEVICE_OPTIONS,
    FRAG_LOAD_OPTIONS,
    {"format", "FORMAT", .choices = "table|jsonl",
     .help = "for a person, or one JSON object for each policy (default: table)"},
    FRAG_BOUNDS_OPTION,
    FRAG_OUTPUT_OPTIONS,
    FRAG_JOBS_OPTION,
    {.name = NULL},
};

typedef struct tune_state {
    const frag_arguments *arguments;
    frag_context context;
    frag_policy_list policies;
    frag_device_description gpu;
    frag_tune_options options;
    frag_recording *recordings;
    size_t recording_count;
    frag_tune_subjects subjects;
    FILE *stream;
    size_t printed;
} tune_state;

static bool add_recording(tune_state *state, const char *path, frag_trace_format format,
                          bool is_held_out, frag_error *error)
{
    frag_recording *recording = &state->recordings[state->recording_count];
    if (!frag_recording_load_plain(path, format, false, recording, error))
        return false;
    state->recording_count++;
    frag_tune_subjects_add(&state->subjects, recording, is_held_out);
    return true;
}

static bool load_traces(tune_state *state, frag_error *error)
{
    const frag_arguments *arguments = state->arguments;
    frag_trace_format format = FRAG_FORMAT_AUTO;
    size_t operands = frag_arguments_operand_count(arguments);
    size_t held_out = frag_arguments_value_count(arguments, "held-out");
    state->recordings = frag_alloc(operands + held_out, sizeof *state->recordings);
    if (!frag_inputs_format(arguments, &format, error))
        return false;
    for (size_t i = 0; i < operands; i++)
        if (!add_recording(state, frag_arguments_operand(arguments, i), format, false, error))
            return false;
    for (size_t i = 0; i < held_out; i++)
        if (!add_recording(state, frag_arguments_value_at(arguments, "held-out", i), format, true,
                           error))
            return false;
    return true;
}

static bool read_arguments(tune_state *state, frag_error *error)
{
    const frag_arguments *arguments = state->arguments;
    frag_tune_options *into = &state->options;
    uint64_t threads = frag_core_count();
    *into = (frag_tune_options){.runs = 400,
                                .goal = frag_arguments_is(arguments, "for", "min-capacity")
                                            ? FRAG_TUNE_MIN_CAPACITY
                                            : FRAG_TUNE_PEAK,
                                .has_bounds = frag_arguments_has(arguments, "bounds")};
    if (into->goal == FRAG_TUNE_MIN_CAPACITY && frag_arguments_has(arguments, "capacity"))
        return frag_fail(error, FRAG_E_USAGE,
                         "the capacity is what --for min-capacity looks for; leave --capacity out");
    if (!frag_inputs_policies(arguments, "pytorch", &state->policies, error) ||
        !frag_inputs_device(arguments, &into->device, &state->gpu, error) ||
        !frag_arguments_count(arguments, "runs", 1, 10000, &into->runs, error) ||
        !frag_arguments_count(arguments, "seconds", 1, 1000000, &into->seconds, error) ||
        !frag_arguments_count(arguments, "seed", 0, UINT64_MAX, &into->seed, error) ||
        !frag_arguments_count(arguments, "jobs", 1, 4096, &threads, error))
        return false;
    state->context = *frag_arguments_context(arguments);
    state->context.threads = (uint32_t)threads;
    for (size_t i = 0; i < state->policies.count; i++)
        if (!frag_tune_check_policy(&state->policies.specs[i], error))
            return frag_error_in(error, "--policy");
    return true;
}

static void print_tuned(void *user, const frag_tuned *tuned)
{
    tune_state *state = user;
    if (frag_arguments_is(state->arguments, "format", "jsonl")) {
        frag_tune_print_json(state->stream, tuned);
        return;
    }
    if (state->printed++ > 0)
        fputc('\n', state->stream);
    frag_tune_print_table(state->stream, state->arguments, tuned);
}

static int tune_command(const frag_arguments *arguments)
{
    tune_state state = {.arguments = arguments};
    frag_error error = {0};
    frag_output *output = NULL;
    bool ok = read_arguments(&state, &error) && load_traces(&state, &error) &&
              (output = frag_inputs_output(arguments, &error)) != NULL;
    if (ok) {
        state.stream = frag_output_stream(output);
        ok = frag_tune(&state.context, &state.options, &state.policies, &state.subjects,
                       print_tuned, &state, &error);
    }
    int code = ok || frag_is_interrupted() ? 0 : frag_report(&error);
    if (!frag_output_end(output, ok && !frag_is_interrupted(), &error))
        code = frag_report(&error);
    for (size_t i = 0; i < state.recording_count; i++)
        frag_recording_destroy(&state.recordings[i]);
    frag_free(state.recordings);
    frag_tune_subjects_destroy(&state.subjects);
    frag_policy_list_destroy(&state.policies);
    return frag_is_interrupted() ? 130 : code;
}

const frag_command frag_command_tune = {
    .name = "tune",
    .operands = "TRACE|FOLDER...",
    .summary = "find the settings of a policy that need the least memory",
    .description =
        "Searches the options of a policy for the least peak of reserved bytes, or the least "
        "capacity, over all traces given, and prints the setting to paste: a literal "
        "PYTORCH_CUDA_ALLOC_CONF where it is PyTorch. Of settings that are equally good the one "
        "with the fewest options wins, and a table shows what each further option gains. "
        "max_split_size_mb:128, which many guides advise, is shown beside it for comparison. A "
        "setting found on one trace may be bad for another: --held-out shows that. docs/tune.md "
        "describes the search.\n"
        "\n"
        "Exit: 0 ok; 2 usage; 3 bad input; 4 the system refused; 130 interrupted.",
    .examples =
        "fraglab tune train.pickle --held-out other.pickle  # the setting to paste\n"
        "fraglab tune train.pickle --capacity 24GiB  # what does not run out of memory\n"
        "fraglab tune train.pickle --policy tlsf,best-fit --for min-capacity  # other policies",
    .options = options,
    .operand_min = 1,
    .operand_max = UINT32_MAX,
    .run = tune_command,
};
