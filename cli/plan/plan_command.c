/* `fraglab plan`: what a described model needs of cards, and what to do where that is too much. */
#include <string.h>

#include "base/file.h"
#include "base/folder.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/inputs.h"
#include "cli/workload_options.h"
#include "sim/device/card_table.h"
#include "studies/plan/gallery_table.h"
#include "studies/plan/memory_plan.h"
#include "workload/tape_card.h"

static const frag_command_option options[] = {
    {"gpu", "NAME|SIZE|all",
     .help = "the card: one of 'fraglab device list', a file of one, or a size such as 12GiB; "
             "several are joined by commas, 'all' is every card for CUDA"},
    {"conf", "SETTINGS", .help = "PYTORCH_CUDA_ALLOC_CONF of the program"},
    {"explain", "FIX", .help = "what one fix does, costs, and does here"},
    {"table", .help = "the largest batch of well-known models on cards of 8 to 80 GiB; takes no "
                      "MODEL and no knobs"},
    {"format", "FORMAT", .choices = "table|jsonl",
     .help = "for a person, or one JSON object a card (default: table)"},
    FRAG_WORKLOAD_OPTIONS,
    FRAG_OUTPUT_OPTIONS,
    {.name = NULL},
};

typedef struct plan_state {
    const frag_arguments *arguments;
    frag_workload workload;
    const char *name;
    const frag_fix *explained; /* NULL: all of it */
    frag_dryrun_gpu *cards;
    size_t card_count;
    frag_fitter *fitter;
    FILE *stream;
    size_t printed;
    bool fits; /* on every card */
} plan_state;

static bool add_card(plan_state *state, size_t *capacity, const char *name, frag_error *error)
{
    state->cards = frag_grow(state->cards, capacity, state->card_count + 1, sizeof *state->cards);
    return frag_dryrun_gpu_find(name, &state->cards[state->card_count++], NULL, error);
}

/* Of 'all', those for CUDA whose multiprocessors are stored. */
static bool add_all_cards(plan_state *state, size_t *capacity, frag_error *error)
{
    size_t count = 0;
    char **names = frag_card_names(&count, error);
    bool ok = names != NULL;
    for (size_t i = 0; ok && i < count; i++) {
        frag_device_description card;
        frag_tape_card tape_card;
        frag_device_description_clear(&card);
        ok = frag_card_load(names[i], &card, NULL, error) &&
             (card.total_bytes == 0 || !frag_tape_card_read(&card, names[i], &tape_card, NULL) ||
              add_card(state, capacity, names[i], error));
    }
    if (names != NULL)
        frag_folder_names_destroy(names, count);
    return ok;
}

static bool list_cards(plan_state *state, frag_error *error)
{
    const char *list = frag_arguments_value(state->arguments, "gpu");
    size_t capacity = 0;
    bool ok = true;
    if (list == NULL)
        return frag_fail_in(error, FRAG_E_USAGE, "--gpu",
                            "no card is named; expected a card such as rtx3060, a size "
                            "such as 12GiB, or all");
    if (strcmp(list, "all") == 0)
        return add_all_cards(state, &capacity, error);
    char *copy = frag_copy_text(list);
    for (char *at = copy; ok && at != NULL;) {
        char *comma = strchr(at, ',');
        if (comma != NULL)
            *comma = '\0';
        ok = add_card(state, &capacity, at, error);
        at = comma != NULL ? comma + 1 : NULL;
    }
    frag_free(copy);
    return ok;
}

/* --table takes no card and no knob of a workload. */
static bool read_table_arguments(plan_state *state, frag_error *error)
{
    static const char *const others[] = {"gpu", "explain", NULL};
    for (size_t i = 0; others[i] != NULL; i++)
        if (frag_arguments_has(state->arguments, others[i]))
            return frag_fail(error, FRAG_E_USAGE,
                             "--table has cards and models of its own; leave "
                             "--%s out",
                             others[i]);
    state->fitter = frag_fitter_create(frag_arguments_context(state->arguments),
                                       frag_arguments_value(state->arguments, "conf"), error);
    return state->fitter != NULL &&
           frag_workload_options_refuse(state->arguments, "--table has workloads of its own",
                                        (const char *const[]){NULL}, error);
}

static bool read_arguments(plan_state *state, frag_error *error)
{
    const frag_arguments *arguments = state->arguments;
    size_t operands = frag_arguments_operand_count(arguments);
    bool is_table = frag_arguments_has(arguments, "table");
    if (is_table && operands > 0)
        return frag_fail(error, FRAG_E_USAGE, "--table has models of its own; leave '%s' out",
                         frag_arguments_operand(arguments, 0));
    if (!is_table && operands == 0)
        return frag_fail(error, FRAG_E_USAGE,
                         "no model is named; expected a workload file or a "
                         "config.json");
    if (is_table)
        return read_table_arguments(state, error);
    const char *path = frag_arguments_operand(arguments, 0);
    const char *explained = frag_arguments_value(arguments, "explain");
    state->name = frag_path_name(path);
    state->explained = explained != NULL ? frag_fix_named(explained, error) : NULL;
    if (explained != NULL && state->explained == NULL)
        return frag_error_in(error, "--explain");
    if (explained != NULL && frag_arguments_is(arguments, "format", "jsonl"))
        return frag_fail(
            error, FRAG_E_USAGE,
            "--explain is for a person; leave --format jsonl out, which has every fix");
    state->fitter = frag_fitter_create(frag_arguments_context(arguments),
                                       frag_arguments_value(arguments, "conf"), error);
    return state->fitter != NULL && list_cards(state, error) &&
           frag_workload_options_read(arguments, path, &state->workload, NULL, error);
}

static void print_plan(plan_state *state, const frag_memory_plan *plan)
{
    if (frag_arguments_is(state->arguments, "format", "jsonl")) {
        frag_memory_plan_print_json(plan, state->stream);
        return;
    }
    if (state->printed++ > 0)
        fputc('\n', state->stream);
    if (state->explained != NULL)
        frag_memory_plan_explain(plan, state->fitter, state->explained, state->stream);
    else
        frag_memory_plan_print(plan, state->stream);
}

static bool plan_card(plan_state *state, const frag_dryrun_gpu *gpu, frag_error *error)
{
    frag_memory_plan *plan = frag_alloc(1, sizeof *plan);
    bool ok = frag_memory_plan_make(state->fitter, &state->workload,
                                    frag_arguments_value(state->arguments, "conf"), gpu,
                                    state->name, plan, error);
    if (ok)
        print_plan(state, plan);
    state->fits = state->fits && ok && plan->verdict.fits == FRAG_FITS_YES;
    frag_free(plan);
    return ok;
}

/* --table */
static bool print_gallery(plan_state *state, frag_error *error)
{
    if (frag_arguments_is(state->arguments, "format", "jsonl"))
        return frag_gallery_print_json(state->fitter, state->stream, error);
    return frag_gallery_print(state->fitter, false, state->stream, error);
}

static int plan_command(const frag_arguments *arguments)
{
    plan_state state = {.arguments = arguments, .fits = true};
    frag_error error = {0};
    frag_output *output = NULL;
    bool ok =
        read_arguments(&state, &error) && (output = frag_inputs_output(arguments, &error)) != NULL;
    if (ok)
        state.stream = frag_output_stream(output);
    if (ok && frag_arguments_has(arguments, "table"))
        ok = print_gallery(&state, &error);
    for (size_t i = 0; ok && i < state.card_count; i++)
        ok = plan_card(&state, &state.cards[i], &error);
    int code = frag_is_interrupted() ? 130 : !ok ? frag_report(&error) : state.fits ? 0 : 1;
    if (!frag_output_end(output, ok && !frag_is_interrupted(), &error))
        code = frag_report(&error);
    frag_fitter_destroy(state.fitter);
    frag_free(state.cards);
    return code;
}

const frag_command frag_command_plan = {
    .name = "plan",
    .operands = "[MODEL]",
    .summary = "does a described model fit on a card, and if not, what to change",
    .description =
        "MODEL is a workload file in YAML (docs/workloads.md), or the config.json of a model of "
        "Hugging Face; neither PyTorch nor a GPU is needed. Prints whether its training or "
        "evaluation fits on a card and with what margin, what the bytes at the peak are for, what "
        "each fix saves, the cheapest combination of fixes that fits with the lines to paste, and "
        "the largest batch and length. Every figure comes from a replay of the requests that "
        "PyTorch would make; docs/plan.md describes it.\n"
        "\n"
        "Exit: 0 fits on every card; 1 does not, or it is not known; 2 usage; 3 bad input; 4 the "
        "system refused; 130 interrupted.",
    .examples = "fraglab plan config.json --batch 4 --tokens 2048 --gpu rtx3060\n"
                "fraglab plan traces/workloads/gpt2-small.yaml --gpu 8GiB,12GiB  # two sizes\n"
                "fraglab plan config.json --gpu rtx4090 --explain checkpoint  # one fix\n"
                "fraglab plan --table  # what guides print by hand\n",
    .options = options,
    .operand_min = 0,
    .operand_max = 1,
    .run = plan_command,
};
