/* `fraglab ranks`: the recordings of all ranks of a job, side by side. */
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "base/threads.h"
#include "cli/inputs.h"
#include "cli/search/ranks_print.h"
#include "studies/compare/comparison_wishes.h"
#include "studies/ranks/job.h"
#include "studies/ranks/world_json.h"

enum { ROWS_SHOWN = 20, STAGES_MAX = 1024 };

static const frag_command_option options[] = {
    {"stage", "RANKS",
     .help =
         "ranks that should be equal, such as those of one pipeline stage: 0-3,8. Repeat it for "
         "each stage; all other ranks form one more (default: all ranks are one stage)"},
    {"policy", "NAME[:KEY=VALUE,...]", .letter = 'p',
     .help = "policy for the replays (default: pytorch, with the settings in each recording, if "
             "any)"},
    FRAG_DEVICE_OPTIONS,
    FRAG_LOAD_OPTIONS,
    {"fail-above", "AMOUNT",
     .help = "exit 1 if in a stage the highest peak exceeds the lowest by more than this: 1%, "
             "16MiB, or 1%,16MiB, where both must be exceeded"},
    {"rows", "N", .help = "lines of each table (default: 20)", .min = 1, .max = 1000000},
    {"format", "FORMAT", .choices = "table|jsonl",
     .help = "table: for people; jsonl: one JSON object with every rank and call site (default: "
             "table)"},
    FRAG_OUTPUT_OPTIONS,
    FRAG_JOBS_OPTION,
    {.name = NULL},
};

typedef struct ranks_state {
    const frag_arguments *arguments;
    frag_trace_format format;
    frag_policy_list policies;
    frag_device_spec device;
    frag_device_description gpu;
    frag_world_options options;
    frag_comparison_wishes wishes; /* of --fail-above */
    frag_job job;
    frag_rank_list *stages;
    size_t stage_count;
    frag_world world;
} ranks_state;

/* ---- what is given */

static bool read_stages(ranks_state *state, frag_error *error)
{
    size_t count = frag_arguments_value_count(state->arguments, "stage");
    if (count > STAGES_MAX)
        return frag_fail(error, FRAG_E_USAGE, "--stage is given %zu times; expected %d at most",
                         count, STAGES_MAX);
    state->stages = frag_alloc(count + 1, sizeof *state->stages);
    for (size_t i = 0; i < count; i++) {
        state->stage_count++;
        if (!frag_rank_list_parse(frag_arguments_value_at(state->arguments, "stage", i),
                                  &state->stages[i], error))
            return frag_error_in(error, "--stage");
    }
    return true;
}

static bool read_options(ranks_state *state, frag_error *error)
{
    const frag_arguments *arguments = state->arguments;
    const char *amount = frag_arguments_value(arguments, "fail-above");
    const frag_wish_texts none = {0};
    if (!frag_inputs_one_policy(arguments, &state->policies, error) ||
        !frag_inputs_device(arguments, &state->device, &state->gpu, error) ||
        !frag_inputs_format(arguments, &state->format, error) || !read_stages(state, error))
        return false;
    state->options = (frag_world_options){.context = frag_arguments_context(arguments),
                                          .spec = state->policies.specs,
                                          .device = &state->device};
    return amount == NULL || frag_comparison_wishes_parse("--fail-above", amount, &none, &none,
                                                          &state->wishes, error);
}

/* ---- ranks */

static bool measure(ranks_state *state, frag_error *error)
{
    size_t count = frag_arguments_operand_count(state->arguments);
    const char **operands = frag_alloc(count, sizeof *operands);
    for (size_t i = 0; i < count; i++)
        operands[i] = frag_arguments_operand(state->arguments, i);
    const frag_job_sources sources = {
        .operands = operands,
        .operand_count = count,
        .format = state->format,
        .threads = (uint32_t)frag_arguments_number(state->arguments, "jobs", frag_core_count()),
    };
    bool ok = frag_job_measure(&sources, &state->options, &state->job, error);
    frag_free(operands);
    return ok;
}

static void destroy(ranks_state *state)
{
    frag_world_destroy(&state->world);
    frag_job_destroy(&state->job);
    for (size_t i = 0; i < state->stage_count; i++)
        frag_rank_list_destroy(&state->stages[i]);
    frag_free(state->stages);
    frag_policy_list_destroy(&state->policies);
    frag_comparison_wishes_destroy(&state->wishes);
}

static bool is_finding(const ranks_state *state)
{
    return state->world.oom_count > 0 ||
           (frag_arguments_has(state->arguments, "fail-above") &&
            frag_world_is_uneven(&state->world, &state->wishes.options.general));
}

static int ranks_command(const frag_arguments *arguments)
{
    ranks_state state = {.arguments = arguments};
    frag_error error = {0};
    frag_output *output = NULL;
    bool ok = read_options(&state, &error) &&
              (output = frag_inputs_output(arguments, &error)) != NULL && measure(&state, &error);
    bool is_cancelled = frag_is_cancelled(frag_arguments_context(arguments));
    ok = ok && !is_cancelled &&
         frag_world_make(state.job.ranks, state.job.count, state.stages, state.stage_count,
                         &state.world, &error);
    if (ok && frag_arguments_is(arguments, "format", "jsonl"))
        frag_world_print_json(frag_output_stream(output), &state.world, NULL, 0);
    else if (ok)
        frag_world_print(frag_output_stream(output), &state.world, &state.device,
                         frag_arguments_number(arguments, "rows", ROWS_SHOWN));
    ok = frag_output_end(output, ok, &error) && ok;
    int code = is_cancelled ? 130 : !ok ? frag_report(&error) : is_finding(&state) ? 1 : 0;
    destroy(&state);
    return code;
}

const frag_command frag_command_ranks = {
    .name = "ranks",
    .operands = "TRACE|FOLDER...",
    .summary = "the ranks of a job side by side: peaks, imbalance, who is out of memory first",
    .description =
        "Replays the recordings of all ranks of one job: files, a folder of them, or one recording "
        "of several devices. Says what each rank needs at its peak, which ranks make the same "
        "requests, how far the largest is above the mean, and what the rank with the highest peak "
        "holds that the one with the lowest does not. With --capacity or --gpu it also says which "
        "ranks run out of memory, which of them first, and in which step. A rank's number follows "
        "'rank' in its path; otherwise it is the digits in which the paths differ. docs/ranks.md "
        "has examples.\n"
        "\n"
        "Exit: 0; 1 a rank runs out of memory, or --fail-above is exceeded; 2 usage; 3 bad input; "
        "4 the system refused.",
    .examples = "fraglab ranks snapshots/ --gpu h100-80gb  # does every rank fit?\n"
                "fraglab ranks rank*.pickle --stage 0-3 --stage 4-7  # two pipeline stages\n"
                "fraglab ranks run/ --fail-above 5%  # in CI: no rank needs 5 % more than another",
    .options = options,
    .operand_min = 1,
    .operand_max = UINT32_MAX,
    .run = ranks_command,
};
