#include "cli/trace/trace_tools.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/inputs.h"
#include "planner/placement.h"
#include "sim/policy_engine.h"
#include "sim/replay/lifetimes.h"
#include "traces/write.h"

bool frag_trace_tools_load_as(const frag_arguments *arguments, const char *path,
                              frag_load_options *options, frag_recording *recording,
                              frag_findings *findings, frag_error *error)
{
    return frag_inputs_format(arguments, &options->format, error) &&
           (frag_recording_load(path, options, recording, findings, error) ||
            frag_error_in(error, path));
}

/* Loads with every column and call stack. */
static bool load_all(const frag_arguments *arguments, const char *path, frag_recording *recording,
                     frag_findings *findings, frag_error *error)
{
    frag_load_options options = {.with_sites = true, .with_columns = true};
    return frag_trace_tools_load_as(arguments, path, &options, recording, findings, error);
}

bool frag_trace_tools_check(const frag_arguments *arguments, frag_output *output, frag_error *error)
{
    return frag_arguments_is(arguments, "to", "text") ||
           frag_arguments_is(arguments, "to", "minimalloc") ||
           frag_arguments_is(arguments, "to", "yaml") ||
           frag_inputs_spare_terminal(output, "a .fgt file",
                                      "redirect stdout, name a file, or add --to text", error);
}

bool frag_trace_tools_write(const frag_arguments *arguments, const frag_recording *recording,
                            frag_output *output, frag_error *error)
{
    const char *to = frag_arguments_value(arguments, "to");
    if (frag_recording_write(recording, to != NULL ? to : "fgt", frag_output_stream(output), error))
        return frag_output_finish(output, error);
    frag_output_abandon(output);
    return false;
}

/* ---- convert */
static int run_convert(const frag_arguments *arguments)
{
    frag_error error = {0};
    frag_recording recording = {0};
    frag_findings findings = {0};
    const char *path = frag_arguments_value(arguments, "output");
    if (frag_arguments_operand_count(arguments) == 2) {
        if (path != NULL) {
            frag_fail(&error, FRAG_E_USAGE,
                      "the output is named twice; name it once, as OUT or with -o");
            frag_error_in(&error, "--output");
            return frag_report(&error);
        }
        path = frag_arguments_operand(arguments, 1);
    }
    if (path == NULL) {
        frag_fail(&error, FRAG_E_USAGE, "no output is named; add OUT or -o FILE (- is stdout)");
        return frag_report(&error);
    }
    frag_output *output = NULL;
    if (frag_inputs_spare_one(frag_arguments_operand(arguments, 0), path, &error))
        output = frag_output_open(path, frag_arguments_has(arguments, "force"), &error);
    if (output == NULL)
        return frag_report(&error);
    if (!frag_trace_tools_check(arguments, output, &error) ||
        !load_all(arguments, frag_arguments_operand(arguments, 0), &recording, &findings, &error)) {
        frag_output_abandon(output);
        return frag_report(&error);
    }
    uint64_t inconsistencies = frag_findings_inconsistencies(&findings);
    if (inconsistencies > 0)
        frag_warn(arguments, "%" PRIu64 " inconsistencies; 'fraglab trace check %s' explains them",
                  inconsistencies, frag_arguments_operand(arguments, 0));
    bool ok = frag_trace_tools_write(arguments, &recording, output, &error);
    frag_recording_destroy(&recording);
    return ok ? 0 : frag_report(&error);
}

static const frag_command_option convert_options[] = {
    FRAG_LOAD_OPTIONS,
    FRAG_TRACE_WRITE_OPTIONS,
    {.name = NULL},
};

static const frag_command trace_convert = {
    .name = "convert",
    .operands = "IN [OUT]",
    .summary = "write a recording as .fgt, text or packing problem",
    .description =
        "Reads a recording of any format and writes it as .fgt (compressed columns, loads fast) or "
        "as text (one event a line, to be read and written by people). Both keep everything. As "
        "minimalloc it becomes a packing problem for this and other planners: a CSV line for each "
        "request, with its lifetime and size.",
    .examples = "fraglab trace convert snapshot.pickle run.fgt  # import once, replay often\n"
                "fraglab trace convert --to text run.fgt -  # look at it\n",
    .options = convert_options,
    .operand_min = 1,
    .operand_max = 2,
    .run = run_convert,
};

/* ---- check */
static void print_findings(const frag_findings *findings)
{
    for (uint32_t i = 0; i < findings->count; i++) {
        const frag_finding *finding = &findings->items[i];
        printf("  %-13s %8" PRIu64 "  %s: %s\n",
               finding->is_inconsistency ? "inconsistency" : "note", finding->count, finding->kind,
               finding->meaning);
        printf("  %-13s %8s  first at entry %" PRIu64 " of device %" PRIu32 ": %s\n", "", "",
               finding->event, finding->device, finding->first);
    }
}

/* Judges the placement that a packing problem came with; a fault is an inconsistency. */
static void check_placement(const frag_recording *recording, frag_findings *findings)
{
    frag_error error = {0};
    uint64_t count = 0;
    const frag_trace *trace = &recording->traces[0];
    frag_lifetime *lifetimes = frag_lifetimes_find(recording, trace, &count, &error);
    uint64_t *offsets = lifetimes != NULL ? frag_problem_offsets(recording, trace, count) : NULL;
    frag_buffer *buffers = frag_alloc((size_t)count + 1, sizeof *buffers);
    for (uint64_t i = 0; offsets != NULL && i < count; i++)
        buffers[i] = (frag_buffer){lifetimes[i].lower, lifetimes[i].upper, lifetimes[i].bytes,
                                   lifetimes[i].alignment};
    uint64_t height = 0;
    if (offsets != NULL &&
        !frag_placement_check(buffers, offsets, (uint32_t)count, FRAG_UNLIMITED, &height, &error))
        frag_findings_add(findings, "misplaced-buffer",
                          "the offsets are no packing; runs plan anew, and do not look at them",
                          true, 0, 0, "%s", error.sentence);
    frag_free(buffers);
    frag_free(offsets);
    frag_free(lifetimes);
}

static int check_one(const frag_arguments *arguments, const char *path)
{
    frag_error error = {0};
    frag_recording recording = {0};
    frag_findings findings = {0};
    if (!load_all(arguments, path, &recording, &findings, &error))
        return frag_report(&error);
    uint64_t events = 0;
    if (frag_recording_is_problem(&recording) && recording.trace_count == 1)
        check_placement(&recording, &findings);
    for (uint32_t i = 0; i < recording.trace_count; i++)
        events += recording.traces[i].event_count;
    frag_recording_destroy(&recording);
    uint64_t inconsistencies = frag_findings_inconsistencies(&findings);
    if (!frag_arguments_is_quiet(arguments)) {
        char *shown = frag_copy_text(path);
        frag_text_make_plain(shown);
        printf("%s: %s, %" PRIu64 " events, %" PRIu64 " inconsistencies\n", shown,
               inconsistencies == 0 ? "ok" : "inconsistent", events, inconsistencies);
        frag_free(shown);
        if (inconsistencies > 0 || frag_arguments_is_verbose(arguments))
            print_findings(&findings);
    }
    return inconsistencies > 0 ? 1 : 0;
}

static int run_check(const frag_arguments *arguments)
{
    int first = 0;
    for (size_t i = 0; i < frag_arguments_operand_count(arguments) && !frag_is_interrupted(); i++) {
        int code = check_one(arguments, frag_arguments_operand(arguments, i));
        first = first != 0 ? first : code;
    }
    return frag_is_interrupted() ? 130 : first;
}

static const frag_command_option check_options[] = {
    FRAG_LOAD_OPTIONS,
    {.name = NULL},
};

static const frag_command trace_check = {
    .name = "check",
    .operands = "TRACE...",
    .summary = "read recordings and say whether they are consistent",
    .description = "Exits 0 when every recording is consistent, 1 when a reader found something "
                   "that does not fit together (a table of findings follows), 3 when one cannot be "
                   "read. -q prints nothing; -v also prints notes: what was ambiguous or guessed.",
    .examples = "fraglab trace check *.fgt  # one line each\n",
    .options = check_options,
    .operand_min = 1,
    .operand_max = UINT32_MAX,
    .run = run_check,
};

/* ---- the group */
static const frag_command *const subcommands[] = {
    &frag_command_trace_info,     &trace_convert, &trace_check, &frag_command_trace_cut,
    &frag_command_trace_generate, NULL,
};

const frag_command frag_command_trace = {
    .name = "trace",
    .operands = "info|convert|check|cut|generate",
    .summary = "inspect, convert, check, cut and generate recordings",
    .subcommands = subcommands,
};
