/* `fraglab diff`: what differs between two recordings, or two moments of one. */
#include "base/file.h"
#include "base/memory.h"
#include "cli/inputs.h"
#include "cli/search/diff_print.h"
#include "studies/diff/diff_json.h"

enum { ROWS_SHOWN = 20 };

static const frag_command_option options[] = {
    {"at", "WHERE",
     .help =
         "the moment to compare: peak (of requested bytes), end, or N (right after event N). A..B, "
         "a mark's name ('step 3') or NAME[N] (from its N-th mark to the next) take the peak "
         "within these events. Give it twice for another moment in the second recording (default: "
         "peak)"},
    {"by", "GROUP", .choices = "site|stack|purpose|size",
     .help = "how blocks are grouped: by call site, whole call stack, purpose or size (default: "
             "site)"},
    {"policy", "NAME[:KEY=VALUE,...]", .letter = 'p',
     .help = "policy for the replay of both, which gives allocated and reserved memory (default: "
             "pytorch, with the settings in the recording, if any)"},
    FRAG_DEVICE_OPTIONS,
    FRAG_TRACE_DEVICE_OPTION,
    FRAG_LOAD_OPTIONS,
    {"fail-above", "AMOUNT",
     .help = "exit 1 if requested, allocated or reserved memory grew by more than this: 1%, 16MiB, "
             "or 1%,16MiB, where both must be exceeded"},
    {"stacks", "FILE",
     .help = "also write collapsed stacks with the bytes of both, for difffolded.pl and "
             "flamegraph.pl",
     .writes = "stacks"},
    {"rows", "N", .help = "lines of the table of call sites (default: 20)", .min = 1,
     .max = 1000000},
    {"format", "FORMAT", .choices = "table|jsonl|json",
     .help = "table: for people; jsonl: a JSON object for each call site that changed, in "
             "the order of the table; json: one object with everything (default: table)"},
    FRAG_OUTPUT_OPTIONS,
    {.name = NULL},
};

typedef struct diff_state {
    const frag_arguments *arguments;
    frag_recording recordings[2];
    size_t recording_count;
    frag_policy_list policies;
    frag_device_spec device;
    frag_device_description gpu;
    bool has_threshold;
    frag_comparison_wishes wishes; /* of --fail-above */
    frag_diff_options options;
    frag_diff_source sources[2];
    frag_diff diff;
    frag_output *output;
    frag_output *stacks;
} diff_state;

static frag_use_grouping read_grouping(const frag_arguments *arguments)
{
    for (uint32_t i = FRAG_USES_BY_STACK; i <= (uint32_t)FRAG_USES_BY_SIZE; i++)
        if (frag_arguments_is(arguments, "by", frag_use_grouping_name((frag_use_grouping)i)))
            return (frag_use_grouping)i;
    return FRAG_USES_BY_SITE;
}

static bool read_options(diff_state *state, frag_error *error)
{
    const frag_arguments *arguments = state->arguments;
    const char *amount = frag_arguments_value(arguments, "fail-above");
    const frag_wish_texts none = {0};
    if (!frag_inputs_one_policy(arguments, &state->policies, error) ||
        !frag_inputs_device(arguments, &state->device, &state->gpu, error))
        return false;
    state->has_threshold = amount != NULL;
    state->options = (frag_diff_options){.context = frag_arguments_context(arguments),
                                         .grouping = read_grouping(arguments),
                                         .is_replayed = true,
                                         .spec = state->policies.specs,
                                         .device = &state->device};
    return amount == NULL || frag_comparison_wishes_parse("--fail-above", amount, &none, &none,
                                                          &state->wishes, error);
}

static bool load(diff_state *state, frag_error *error)
{
    const frag_arguments *arguments = state->arguments;
    size_t operands = frag_arguments_operand_count(arguments);
    size_t places = frag_arguments_value_count(arguments, "at");
    frag_trace_format format = FRAG_FORMAT_AUTO;
    if (places > 2)
        return frag_fail(error, FRAG_E_USAGE, "--at is given %zu times; expected two at most",
                         places);
    if (operands == 1 && places < 2)
        return frag_fail(error, FRAG_E_USAGE,
                         "one recording needs two moments: --at WHERE --at WHERE");
    if (!frag_inputs_format(arguments, &format, error))
        return false;
    for (size_t i = 0; i < operands; i++) {
        if (!frag_recording_load_plain(frag_arguments_operand(arguments, i), format, true,
                                       &state->recordings[i], error))
            return false;
        state->recording_count++;
    }
    for (size_t i = 0; i < 2; i++) {
        frag_diff_source *source = &state->sources[i];
        source->recording = &state->recordings[operands > 1 ? i : 0];
        if (places > 0)
            source->at = frag_arguments_value_at(arguments, "at", places > 1 ? i : 0);
        if (!frag_inputs_trace(arguments, source->recording, &source->trace, error))
            return false;
    }
    return true;
}

static bool open_stacks(diff_state *state, frag_error *error)
{
    const char *path = frag_arguments_value(state->arguments, "stacks");
    if (path == NULL)
        return true;
    state->stacks = frag_output_open(path, frag_arguments_has(state->arguments, "force"), error);
    return state->stacks != NULL || frag_error_in(error, path);
}

static bool print(diff_state *state, frag_error *error)
{
    FILE *stream = frag_output_stream(state->output);
    if (frag_arguments_is(state->arguments, "format", "jsonl"))
        frag_diff_print_rows(stream, &state->diff);
    else if (frag_arguments_is(state->arguments, "format", "json"))
        frag_diff_print_json(stream, &state->diff);
    else
        frag_diff_print(stream, &state->diff,
                        frag_arguments_number(state->arguments, "rows", ROWS_SHOWN));
    if (state->stacks != NULL)
        frag_diff_write_stacks(frag_output_stream(state->stacks), &state->diff);
    frag_output *output = state->output, *stacks = state->stacks;
    state->output = state->stacks = NULL;
    bool ok = frag_output_finish(output, error);
    return frag_output_end(stacks, ok, error) && ok;
}

static void destroy(diff_state *state)
{
    frag_output_abandon(state->output);
    frag_output_abandon(state->stacks);
    frag_diff_destroy(&state->diff);
    for (size_t i = 0; i < state->recording_count; i++)
        frag_recording_destroy(&state->recordings[i]);
    frag_policy_list_destroy(&state->policies);
    frag_comparison_wishes_destroy(&state->wishes);
}

static int diff_command(const frag_arguments *arguments)
{
    diff_state state = {.arguments = arguments};
    frag_error error = {0};
    bool ok = frag_inputs_places(arguments, true, &error) && read_options(&state, &error) &&
              load(&state, &error) &&
              (state.output = frag_inputs_output(arguments, &error)) != NULL &&
              open_stacks(&state, &error) &&
              frag_diff_make(&state.options, state.sources, &state.diff, &error);
    int code = 130;
    if (!frag_is_cancelled(frag_arguments_context(arguments)))
        code = ok && print(&state, &error) ? 0 : frag_report(&error);
    if (code == 0 && state.has_threshold &&
        frag_diff_has_finding(&state.diff, &state.wishes.options.general))
        code = 1;
    destroy(&state);
    return code;
}

const frag_command frag_command_diff = {
    .name = "diff",
    .operands = "TRACE [TRACE]",
    .summary = "what differs between two recordings: who holds the memory, the requests, the peaks",
    .description =
        "Compares what two recordings of one program hold at their peaks, by call site, the "
        "largest change first; what has no line of code, as the backward pass, is last. Says how "
        "many requests are equal from the start, and replays both "
        "for allocated and reserved memory. Call sites are matched by function and file, so moved "
        "lines and other folders do not matter; without call stacks blocks are grouped by size. "
        "With one recording, two moments of it are compared, such as two steps. docs/diff.md has "
        "examples.\n"
        "\n"
        "Exit: 0; 1 --fail-above is exceeded; 2 usage; 3 bad input; 4 the system refused.",
    .examples = "fraglab diff before.pickle after.pickle  # what did the change do?\n"
                "fraglab diff run.fgt --at 'step 2' --at 'step 9'  # what grew between the steps?\n"
                "fraglab diff base.pickle new.pickle --fail-above 0%  # in CI",
    .options = options,
    .operand_min = 1,
    .operand_max = 2,
    .run = diff_command,
};
