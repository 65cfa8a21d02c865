/* `fraglab plot`: its kinds of figures as subcommands, and what all share from options to exit. */
#include "plots/plot.h"

#include <inttypes.h>

#include "base/memory.h"

/* ---- from the options to the exit code */

typedef struct plot_load {
    const frag_arguments *arguments;
    bool with_columns;
    frag_recording *recording;
    const frag_trace **trace;
    frag_plot_filler *fill;
    void *state;
} plot_load;

/* The only trace operand, and which of its devices is meant. */
static bool load(const plot_load *drawn, frag_error *error)
{
    frag_trace_format format = FRAG_FORMAT_AUTO;
    uint64_t device = 0;
    const frag_arguments *arguments = drawn->arguments;
    const char *path = frag_arguments_operand(arguments, 0);
    frag_recording *recording = drawn->recording;
    if (!frag_inputs_format(arguments, &format, error) ||
        !frag_arguments_count(arguments, "trace-device", 0, UINT32_MAX, &device, error) ||
        !frag_recording_load_plain(path, format, drawn->with_columns, recording, error))
        return false;
    bool is_named = frag_arguments_has(arguments, "trace-device");
    const frag_trace *trace = is_named ? NULL : frag_recording_main_trace(recording);
    for (uint32_t i = 0; is_named && i < recording->trace_count; i++)
        if (recording->traces[i].device == device)
            trace = &recording->traces[i];
    if (trace == NULL) {
        if (is_named)
            frag_fail(error, FRAG_E_USAGE,
                      "the recording has no device %" PRIu64 "; leave --trace-device out", device);
        else
            frag_fail(error, FRAG_E_INPUT, "the recording holds no trace");
        frag_recording_destroy(recording);
        return frag_error_in(error, path);
    }
    if (!is_named && recording->trace_count > 1)
        frag_warn(arguments,
                  "%s holds %" PRIu32 " devices; device %" PRIu32
                  ", which requests most, is drawn; name another with --trace-device",
                  recording->name, recording->trace_count, trace->device);
    *drawn->trace = trace;
    return true;
}

static bool fill_loaded(void *context, frag_error *error)
{
    const plot_load *drawn = context;
    if (!load(drawn, error))
        return false;
    bool ok = drawn->fill(drawn->state, error);
    frag_recording_destroy(drawn->recording);
    return ok;
}

int frag_plot_draw(frag_plot *plot, const char *kind, const frag_arguments *arguments,
                   frag_plot_filler *fill, void *state)
{
    frag_error error = {0};
    bool ok = frag_plot_begin(plot, kind, arguments, &error);
    if (ok) {
        ok = fill(state, &error);
        if (!ok || frag_is_interrupted())
            frag_plot_abandon(plot);
        else
            ok = frag_plot_finish(plot, &error);
    }
    int code = ok ? 0 : frag_report(&error);
    return frag_is_interrupted() ? 130 : code;
}

int frag_plot_draw_trace(frag_plot *plot, const char *kind, const frag_arguments *arguments,
                         bool with_columns, frag_recording *recording, const frag_trace **trace,
                         frag_plot_filler *fill, void *state)
{
    plot_load drawn = {arguments, with_columns, recording, trace, fill, state};
    return frag_plot_draw(plot, kind, arguments, fill_loaded, &drawn);
}

/* ---- the axis to the right */

uint64_t *frag_plot_times(const frag_trace *trace, frag_error *error)
{
    if (trace->times_ns == NULL || trace->stats.time_last_ns == 0) {
        frag_fail(error, FRAG_E_USAGE, "the recording has no times; use events");
        frag_error_in(error, "--x");
        return NULL;
    }
    uint64_t *times = frag_alloc(trace->event_count, sizeof *times);
    uint64_t first = 0;
    uint64_t latest = 0;
    for (uint64_t i = 0; i < trace->event_count; i++) {
        uint64_t time = trace->times_ns[i];
        if (first == 0)
            first = time;
        if (latest < first)
            latest = first;
        if (time > latest)
            latest = time;
        times[i] = latest - first;
    }
    return times;
}

double frag_plot_x(const uint64_t *times_ns, uint64_t event)
{
    return times_ns != NULL ? (double)times_ns[event] / 1e9 : (double)event;
}

/* ---- the command */

static const frag_command *const kinds[] = {
    &frag_command_plot_timeline, &frag_command_plot_map,   &frag_command_plot_bars,
    &frag_command_plot_survival, &frag_command_plot_front, &frag_command_plot_fragmentation,
    &frag_command_plot_sites,    &frag_command_plot_heat,  NULL,
};

const frag_command frag_command_plot = {
    .name = "plot",
    .operands = "KIND",
    .summary = "draw timelines, memory maps, holes, call sites, sweeps, survival curves, fronts",
    .description =
        "Draws a figure with gnuplot: svg, pdf or png for a paper, characters for a terminal, or "
        "the "
        "data alone as CSV. The scripts are in plots/; docs/plots.md says how to draw from the CSV "
        "by hand.",
    .subcommands = kinds,
};
