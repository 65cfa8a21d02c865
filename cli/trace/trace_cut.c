/* `fraglab trace cut`: writes a part of a recording as a recording of its own. */
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "cli/inputs.h"
#include "cli/trace/trace_tools.h"
#include "traces/cut.h"

/* Splits "A..B" in a copy that is the caller's; *second is NULL when there is no "..". */
static char *split_range(const char *text, char **second)
{
    char *first = frag_copy_text(text);
    char *dots = strstr(first, "..");
    *second = NULL;
    if (dots != NULL) {
        *dots = '\0';
        *second = dots + 2;
    }
    return first;
}

static bool read_pair(const char *option, const char *text, uint64_t *from, uint64_t *to,
                      frag_error *error)
{
    char *second = NULL;
    char *first = split_range(text, &second);
    bool ok = second != NULL ||
              frag_fail(error, FRAG_E_USAGE, "'%s' is not a range; expected A..B", text);
    /* An end left out is that of the trace. */
    ok = ok && (first[0] == '\0' || frag_count_parse(first, 0, UINT64_MAX, from, error)) &&
         (second[0] == '\0' || frag_count_parse(second, 0, UINT64_MAX, to, error));
    frag_free(first);
    return ok || frag_error_in(error, option);
}

static bool find_range(const frag_arguments *arguments, const frag_recording *recording,
                       const frag_trace *trace, frag_cut_range *range, frag_error *error)
{
    const char *events = frag_arguments_value(arguments, "events");
    const char *time = frag_arguments_value(arguments, "time");
    const char *marks = frag_arguments_value(arguments, "marks");
    int given = (events != NULL) + (time != NULL) + (marks != NULL);
    /* A device alone is a piece, too: all of its trace. */
    if (given == 0 && frag_arguments_has(arguments, "device")) {
        *range = (frag_cut_range){0, trace->event_count};
        return true;
    }
    if (given != 1)
        return frag_fail(error, FRAG_E_USAGE,
                         "expected one of --events, --time and --marks, or --device alone");
    if (events != NULL) {
        *range = (frag_cut_range){0, trace->event_count};
        return read_pair("--events", events, &range->first, &range->end, error);
    }
    if (time != NULL) {
        frag_cut_times times = {0, UINT64_MAX};
        return read_pair("--time", time, &times.start_ns, &times.end_ns, error) &&
               (frag_cut_find_times(trace, times, range, error) || frag_error_in(error, "--time"));
    }
    char *last = NULL;
    char *first = split_range(marks, &last);
    bool ok = frag_cut_find_marks(recording, trace, first, last, range, error);
    frag_free(first);
    return ok || frag_error_in(error, "--marks");
}

static bool find_trace(const frag_arguments *arguments, const frag_recording *recording,
                       const frag_trace **trace, frag_error *error)
{
    const frag_trace *main = frag_recording_main_trace(recording);
    uint64_t device = main->device;
    if (!frag_arguments_count(arguments, "device", 0, UINT32_MAX, &device, error))
        return false;
    if (!frag_arguments_has(arguments, "device") && recording->trace_count > 1) {
        frag_fail(error, FRAG_E_USAGE,
                  "the recording has %u devices; choose one (device %u requests most)",
                  recording->trace_count, main->device);
        return frag_error_in(error, "--device");
    }
    for (uint32_t i = 0; i < recording->trace_count; i++)
        if (recording->traces[i].device == device) {
            *trace = &recording->traces[i];
            return true;
        }
    frag_fail(error, FRAG_E_USAGE,
              "the recording has no device %u; of those it has, device %u requests most",
              (unsigned)device, main->device);
    return frag_error_in(error, "--device");
}

static bool cut(const frag_arguments *arguments, const frag_recording *recording,
                frag_output **output, frag_error *error)
{
    const frag_trace *trace = NULL;
    frag_cut_range range = {0};
    frag_recording piece = {0};
    if (!find_trace(arguments, recording, &trace, error) ||
        !find_range(arguments, recording, trace, &range, error) ||
        !frag_cut(recording, trace, range, &piece, error))
        return false;
    bool ok = frag_trace_tools_write(arguments, &piece, *output, error);
    *output = NULL;
    frag_recording_destroy(&piece);
    return ok;
}

static int run_cut(const frag_arguments *arguments)
{
    frag_error error = {0};
    frag_recording recording = {0};
    frag_findings findings = {0};
    const char *path = frag_arguments_value(arguments, "output");
    if (path == NULL) {
        frag_fail(&error, FRAG_E_USAGE, "no output is named; add -o FILE (- is stdout)");
        return frag_report(&error);
    }
    frag_output *output = frag_inputs_output(arguments, &error);
    if (output == NULL)
        return frag_report(&error);
    bool ok = frag_trace_tools_check(arguments, output, &error) &&
              frag_trace_tools_load(arguments, frag_arguments_operand(arguments, 0), &recording,
                                    &findings, &error) &&
              cut(arguments, &recording, &output, &error);
    frag_output_abandon(output);
    frag_recording_destroy(&recording);
    return ok ? 0 : frag_report(&error);
}

static const frag_command_option options[] = {
    {"events", "A..B",
     .help = "events from index A up to, not including, B; either may be left out"},
    {"time", "S..E",
     .help = "events recorded from time S up to, not including, E, in ns of Unix time"},
    {"marks", "NAME[..NAME]",
     .help = "from the first mark of that name to its end, or to the end of a second one"},
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
