/* `fraglab leaks`: what is kept step after step, and when the device is full. */
#include <inttypes.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/text_table.h"
#include "cli/inputs.h"
#include "studies/leaks/leaks_json.h"

enum { ROWS_SHOWN = 12, LOOKALIKES_SHOWN = 5 };

static const frag_command_option options[] = {
    {"mark", "NAME",
     .help = "steps begin at the marks of this name; numbers in it are ignored, so 'step 1' stands "
             "for every 'step N' (default: marks with step in their name, else a request that "
             "repeats)"},
    {"policy", "NAME[:KEY=VALUE,...]", .letter = 'p',
     .help =
         "policy for the replay (default: pytorch, with the settings in the recording, if any)"},
    FRAG_DEVICE_OPTIONS,
    FRAG_TRACE_DEVICE_OPTION,
    FRAG_LOAD_OPTIONS,
    {"format", "FORMAT", .choices = "table|jsonl|json",
     .help = "table: for people; jsonl: a JSON object for each leak, the fastest first; json: one "
             "object with everything (default: table)"},
    FRAG_OUTPUT_OPTIONS,
    {.name = NULL},
};

/* ---- for a person */

static void print_steps(FILE *stream, const frag_leaks *leaks)
{
    const frag_steps *steps = &leaks->steps;
    if (steps->by == FRAG_STEPS_BY_MARKS)
        fprintf(stream, "%zu steps, by the marks '%s'\n", steps->count, steps->name);
    else if (steps->by == FRAG_STEPS_BY_REQUESTS)
        fprintf(stream, "%zu steps, found by requests of %s\n", steps->count, steps->name);
    else
        fprintf(stream,
                "no steps were found; looked at in %zu parts of equal length (--mark names the "
                "marks of steps)\n",
                steps->count);
}

static void add_rate(frag_text *text, double bytes)
{
    if (bytes >= 1)
        frag_text_add(text, "%s", FRAG_BYTES((uint64_t)(bytes + 0.5)));
    else
        frag_text_add(text, "%.2f B", bytes);
}

/* A step from 0, and its mark where that has another number. */
static void add_step(frag_text *text, const frag_steps *steps, uint64_t step)
{
    const char *mark = frag_steps_mark(steps, step);
    frag_text_add(text, "%" PRIu64, step + 1);
    if (mark != NULL)
        frag_text_add(text, " ('%s')", mark);
}

static void add_leak(frag_text_table *table, const frag_steps *steps, const frag_leak *leak)
{
    const frag_use_name *name = leak->name;
    frag_text *text = frag_text_table_cell(table);
    if (name != NULL && name->inner[0] != '\0')
        frag_text_add(text, "%s, %s", name->caller, name->inner);
    else
        frag_text_add(text, "%s",
                      name != NULL                            ? name->caller
                      : leak->kind == FRAG_LEAK_FRAGMENTATION ? "reserved, but not allocated"
                                                              : "blocks of changing sizes");
    add_rate(frag_text_table_cell(table), leak->bytes_per_step);
    frag_text_add(frag_text_table_cell(table), "%.3g", leak->blocks_per_step);
    frag_text_table_add(table, FRAG_BYTES(leak->end_bytes));
    add_step(frag_text_table_cell(table), steps, leak->first_step);
    frag_text_table_add(table, leak->is_sure ? "sure" : "likely");
    frag_text_table_add(table, frag_leak_kind_name(leak->kind));
}

static void print_kinds(FILE *stream, const frag_leaks *leaks)
{
    bool is_said[FRAG_LEAK_KIND_COUNT] = {false};
    fputc('\n', stream);
    for (size_t i = 0; i < leaks->count && i < ROWS_SHOWN; i++) {
        frag_leak_kind kind = leaks->leaks[i].kind;
        if (!is_said[kind])
            fprintf(stream, "%-14s %s\n", frag_leak_kind_name(kind), frag_leak_kind_title(kind));
        is_said[kind] = true;
    }
}

static void print_leaks(FILE *stream, const frag_leaks *leaks)
{
    static const char *const titles[] = {"kept",       "a step", "blocks", "at the end",
                                         "since step", "",       "kind"};
    frag_text_table table = {.columns = sizeof titles / sizeof *titles, .is_last_text = true};
    frag_text_table_add_line(&table, titles);
    for (size_t i = 0; i < leaks->count && i < ROWS_SHOWN; i++)
        add_leak(&table, &leaks->steps, &leaks->leaks[i]);
    fputc('\n', stream);
    frag_text_table_print(&table, false, stream);
    if (leaks->count > ROWS_SHOWN)
        fprintf(stream, "and %zu more; --format jsonl has all of them\n",
                leaks->count - ROWS_SHOWN);
    print_kinds(stream, leaks);
}

static void print_lookalikes(FILE *stream, const frag_leaks *leaks)
{
    if (leaks->lookalike_count > 0)
        fprintf(stream, "\nno leaks:\n");
    for (size_t i = 0; i < leaks->lookalike_count && i < LOOKALIKES_SHOWN; i++) {
        const frag_leak_lookalike *at = &leaks->lookalikes[i];
        frag_text step = {0};
        add_step(&step, &leaks->steps, at->step);
        fprintf(stream, "  %s%s%s: %s, %s %s\n", at->name->caller,
                at->name->inner[0] != '\0' ? ", " : "", at->name->inner, FRAG_BYTES(at->bytes),
                at->levels_off ? "levels off; its last rise is in step" : "once, in step",
                step.bytes);
        frag_text_destroy(&step);
    }
    if (leaks->lookalike_count > LOOKALIKES_SHOWN)
        fprintf(stream, "  and %zu more\n", leaks->lookalike_count - LOOKALIKES_SHOWN);
}

static void print_forecast(FILE *stream, const frag_leaks *leaks, const frag_device_spec *device)
{
    const char *capacity = FRAG_BYTES(device->capacity_bytes);
    const frag_leak_forecast *forecast = &leaks->forecast;
    if (!leaks->has_forecast)
        return;
    if (forecast->oom_step == FRAG_UNLIMITED)
        fprintf(stream, "\nof %s it is not out of memory within %s steps\n", capacity,
                FRAG_COUNT(forecast->looked_steps));
    else
        fprintf(stream, "\nof %s it is out of memory in %sstep %s%s\n", capacity,
                forecast->is_rough ? "about " : "", FRAG_COUNT(forecast->oom_step),
                forecast->is_recorded ? ""
                : forecast->is_rough  ? ", if as much is kept in each step as on the average"
                                      : ", if the steps go on as the last ones of the recording");
}

static void print_table(FILE *stream, const frag_leaks *leaks, const frag_device_spec *device)
{
    print_steps(stream, leaks);
    if (leaks->count > 0)
        print_leaks(stream, leaks);
    else
        fprintf(stream,
                "\nno leak: at the lowest point of each step no more is kept than before\n");
    print_lookalikes(stream, leaks);
    print_forecast(stream, leaks, device);
    if (leaks->is_by_size)
        fprintf(stream, "\nthe recording holds no call stacks; blocks are added up by size\n");
}

/* ---- the command */

typedef struct leaks_state {
    const frag_arguments *arguments;
    frag_recording recording;
    bool is_loaded;
    const frag_trace *trace;
    frag_policy_list policies;
    frag_device_spec device;
    frag_device_description gpu;
    frag_leaks leaks;
} leaks_state;

static bool read_inputs(leaks_state *state, frag_error *error)
{
    const frag_arguments *arguments = state->arguments;
    frag_trace_format format = FRAG_FORMAT_AUTO;
    if (!frag_inputs_one_policy(arguments, &state->policies, error) ||
        !frag_inputs_device(arguments, &state->device, &state->gpu, error) ||
        !frag_inputs_format(arguments, &format, error))
        return false;
    if (!frag_recording_load_plain(frag_arguments_operand(arguments, 0), format, true,
                                   &state->recording, error))
        return false;
    state->is_loaded = true;
    return frag_inputs_trace(arguments, &state->recording, &state->trace, error);
}

static bool find(leaks_state *state, frag_error *error)
{
    const frag_leaks_options wanted = {
        .context = frag_arguments_context(state->arguments),
        .mark = frag_arguments_value(state->arguments, "mark"),
        .spec = state->policies.specs,
        .device = &state->device,
    };
    return frag_leaks_find(&wanted, &state->recording, state->trace, &state->leaks, error);
}

static int leaks_command(const frag_arguments *arguments)
{
    leaks_state state = {.arguments = arguments};
    frag_error error = {0};
    frag_output *output = NULL;
    bool ok = read_inputs(&state, &error) &&
              (output = frag_inputs_output(arguments, &error)) != NULL && find(&state, &error);
    bool is_cancelled = frag_is_cancelled(frag_arguments_context(arguments));
    if (ok && frag_arguments_is(arguments, "format", "jsonl"))
        frag_leaks_print_rows(frag_output_stream(output), &state.leaks);
    else if (ok && frag_arguments_is(arguments, "format", "json"))
        frag_leaks_print_json(frag_output_stream(output), &state.recording, state.trace,
                              &state.leaks);
    else if (ok)
        print_table(frag_output_stream(output), &state.leaks, &state.device);
    ok = frag_output_end(output, ok, &error) && ok;
    int code = ok ? (state.leaks.count > 0 ? 1 : 0) : is_cancelled ? 130 : frag_report(&error);
    frag_leaks_destroy(&state.leaks);
    if (state.is_loaded)
        frag_recording_destroy(&state.recording);
    frag_policy_list_destroy(&state.policies);
    return code;
}

const frag_command frag_command_leaks = {
    .name = "leaks",
    .operands = "TRACE",
    .summary = "what a program keeps step after step, why, and when its device is full",
    .description =
        "Compares the lowest points of live memory in the steps of a recording, by call site. A "
        "call site whose lowest points rise until the end is a leak; those that rise once, level "
        "off or fall again are listed separately. With --capacity or --gpu the recording is "
        "replayed with its last steps repeated until memory runs out. docs/leaks.md has the rule "
        "and examples.\n"
        "\n"
        "Exit: 0 no leak; 1 a leak; 2 usage; 3 bad input; 4 the system refused.",
    .examples = "fraglab leaks run.pickle --gpu rtx4090  # what is kept, and in which step is it "
                "full?\n"
                "fraglab leaks run.pickle --mark 'train_step'  # steps begin at these marks",
    .options = options,
    .operand_min = 1,
    .operand_max = 1,
    .run = leaks_command,
};
