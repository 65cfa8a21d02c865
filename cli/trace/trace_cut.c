/* `fraglab trace cut`: writes a part of a recording as a recording of its own. */
#include "cli/inputs.h"
#include "cli/trace/trace_tools.h"
#include "traces/window.h"

static bool read_window(const frag_arguments *arguments, frag_window *window, frag_error *error)
{
    if (!frag_inputs_window(arguments, "--device", window, error))
        return false;
    /* A device alone is a piece, too: all of its trace. */
    return window->kind != FRAG_WINDOW_ALL || window->has_device ||
           frag_fail(error, FRAG_E_USAGE,
                     "expected one of --events, --time and --marks, or --device alone");
}

static int run_cut(const frag_arguments *arguments)
{
    frag_error error = {0};
    frag_recording piece = {0};
    frag_findings findings = {0};
    frag_window window = {0};
    frag_load_options load = {.with_sites = true, .with_columns = true, .window = &window};
    const char *path = frag_arguments_value(arguments, "output");
    if (path == NULL) {
        frag_fail(&error, FRAG_E_USAGE, "no output is named; add -o FILE (- is stdout)");
        return frag_report(&error);
    }
    frag_output *output = frag_inputs_output(arguments, &error);
    if (output == NULL)
        return frag_report(&error);
    bool ok = frag_trace_tools_check(arguments, output, &error) &&
              read_window(arguments, &window, &error) &&
              frag_trace_tools_load_as(arguments, frag_arguments_operand(arguments, 0), &load,
                                       &piece, &findings, &error);
    if (ok)
        ok = frag_trace_tools_write(arguments, &piece, output, &error);
    else
        frag_output_abandon(output);
    frag_recording_destroy(&piece);
    frag_window_destroy(&window);
    return ok ? 0 : frag_report(&error);
}

static const frag_command_option options[] = {
    FRAG_WINDOW_OPTIONS(""),
    {"device", "N", .help = "the device whose trace is cut, if there are several"},
    FRAG_LOAD_OPTIONS,
    FRAG_TRACE_WRITE_OPTIONS,
    {.name = NULL},
};

const frag_command frag_command_trace_cut = {
    .name = "cut",
    .operands = "TRACE",
    .summary = "take a piece out of a trace",
    .description = "The result is a complete trace: segments held and blocks live where it starts "
                   "become its prologue, at their recorded addresses if those are known.",
    .examples = "fraglab trace cut run.fgt -o step.fgt --marks 'step 12'  # one training step\n"
                "fraglab trace cut run.fgt -o end.fgt --events 500000..  # the last part\n",
    .options = options,
    .operand_min = 1,
    .operand_max = 1,
    .run = run_cut,
};
