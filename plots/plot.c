#include "plots/plot.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"

/* ---- settings */

const char *frag_plot_setting_text(const frag_plot_request *request, const char *name)
{
    const char *value = NULL;
    for (size_t i = 0; i < request->setting_count; i++)
        if (strcmp(request->settings[i].name, name) == 0)
            value = request->settings[i].value;
    return value;
}

const char *frag_plot_setting_at(const frag_plot_request *request, const char *name, size_t index)
{
    for (size_t i = 0; i < request->setting_count; i++)
        if (strcmp(request->settings[i].name, name) == 0 && index-- == 0)
            return request->settings[i].value;
    return NULL;
}

static bool fail_in_setting(frag_error *error, const char *name)
{
    char where[64];
    snprintf(where, sizeof where, "--%s", name);
    return frag_error_in(error, where);
}

bool frag_plot_setting_count(const frag_plot_request *request, const char *name, uint64_t min,
                             uint64_t max, uint64_t *value, frag_error *error)
{
    const char *text = frag_plot_setting_text(request, name);
    return text == NULL || frag_count_parse(text, min, max, value, error) ||
           fail_in_setting(error, name);
}

const char *frag_plot_source_name(const frag_plot_request *request)
{
    return request->operand_count > 0 ? request->operands[0] : request->recordings[0]->name;
}

/* ---- from the settings to the figure */

typedef struct plot_load {
    frag_plot *plot;
    bool with_columns;
    frag_plot_filler *fill;
    void *state;
} plot_load;

static bool open_recording(const plot_load *drawn, frag_error *error)
{
    const frag_plot_request *request = drawn->plot->request;
    if (request->operand_count == 0) {
        drawn->plot->recording = *request->recordings[0];
        return true;
    }
    const frag_window_texts texts = {
        .events = frag_plot_setting_text(request, "events"),
        .time = frag_plot_setting_text(request, "time"),
        .marks = frag_plot_setting_text(request, "marks"),
        .device = frag_plot_setting_text(request, "trace-device"),
        .device_option = "--trace-device",
    };
    frag_window window;
    bool ok =
        frag_window_parse(&texts, &window, error) &&
        frag_recording_load_part(request->operands[0], request->input_format, drawn->with_columns,
                                 &window, &drawn->plot->recording, error);
    frag_window_destroy(&window);
    return ok;
}

static void close_recording(const plot_load *drawn)
{
    if (drawn->plot->request->operand_count > 0)
        frag_recording_destroy(&drawn->plot->recording);
}

/* The only recording, and which of its devices is meant. */
static bool load(const plot_load *drawn, frag_error *error)
{
    uint64_t device = 0;
    const frag_plot_request *request = drawn->plot->request;
    frag_recording *recording = &drawn->plot->recording;
    if (!frag_plot_setting_count(request, "trace-device", 0, UINT32_MAX, &device, error) ||
        !open_recording(drawn, error))
        return false;
    bool is_named = frag_plot_setting_text(request, "trace-device") != NULL;
    const frag_trace *trace = is_named ? frag_recording_device_trace(recording, device)
                                       : frag_recording_main_trace(recording);
    if (trace == NULL) {
        if (is_named)
            frag_fail(error, FRAG_E_USAGE,
                      "the recording has no device %" PRIu64 "; leave --trace-device out", device);
        else
            frag_fail(error, FRAG_E_INPUT, "the recording holds no trace");
        close_recording(drawn);
        return frag_error_in(error, frag_plot_source_name(request));
    }
    if (!is_named && recording->trace_count > 1)
        frag_context_warn(request->context,
                          "%s holds %" PRIu32 " devices; device %" PRIu32
                          ", which requests most, is drawn; name another with --trace-device",
                          recording->name, recording->trace_count, trace->device);
    drawn->plot->trace = trace;
    return true;
}

static bool fill_loaded(void *context, frag_error *error)
{
    const plot_load *drawn = context;
    if (!load(drawn, error))
        return false;
    bool ok = drawn->fill(drawn->state, error);
    close_recording(drawn);
    return ok;
}

bool frag_plot_draw(frag_plot *plot, const char *kind, const frag_plot_request *request,
                    frag_plot_filler *fill, void *state, frag_error *error)
{
    *plot = (frag_plot){.request = request, .kind = kind, .scale = 1};
    bool ok = request->host->begin(request->user, plot, error);
    if (ok) {
        ok = fill(state, error);
        if (!ok || frag_is_cancelled(request->context))
            request->host->abandon(request->user, plot);
        else
            ok = request->host->finish(request->user, plot, error);
    }
    frag_text_destroy(&plot->definitions);
    return ok;
}

bool frag_plot_draw_trace(frag_plot *plot, const char *kind, const frag_plot_request *request,
                          bool with_columns, frag_plot_filler *fill, void *state, frag_error *error)
{
    plot_load drawn = {plot, with_columns, fill, state};
    return frag_plot_draw(plot, kind, request, fill_loaded, &drawn, error);
}

FILE *frag_plot_picture(frag_plot *plot, frag_error *error)
{
    plot->has_picture = true;
    return plot->request->host->open_picture(plot->request->user, plot, error);
}

/* ---- sizes */

static bool is_of_characters(const frag_plot *plot)
{
    return plot->format == FRAG_PLOT_TERMINAL;
}

void frag_plot_usual_size(frag_plot *plot)
{
    uint64_t scale = plot->format == FRAG_PLOT_PNG ? 2 : 1;
    plot->width = is_of_characters(plot) ? 100 : 800 * scale;
    plot->height = is_of_characters(plot) ? 30 : 500 * scale;
    plot->scale = is_of_characters(plot) ? 1 : (double)scale;
}

void frag_plot_set_width(frag_plot *plot, uint64_t width)
{
    bool is_usual = width == plot->width;
    plot->width = width;
    if (is_of_characters(plot) || is_usual)
        return;
    plot->scale = (double)width / 800.0;
    plot->height = frag_plot_pixels(plot, 500);
}

uint64_t frag_plot_width_min(const frag_plot *plot)
{
    return is_of_characters(plot) ? 40 : 200;
}

uint64_t frag_plot_height_min(const frag_plot *plot)
{
    return is_of_characters(plot) ? 12 : 100;
}

uint64_t frag_plot_pixels(const frag_plot *plot, uint64_t pixels)
{
    uint64_t scaled = (uint64_t)((double)pixels * plot->scale + 0.5);
    return scaled < 100 ? 100 : scaled < FRAG_PLOT_SIDE_MAX ? scaled : FRAG_PLOT_SIDE_MAX;
}

/* plots/style.gp draws letters as wide as those of 12 pixels in Helvetica in every format, and
 * makes them grow with the width of a png. */
double frag_plot_letter_scale(const frag_plot *plot)
{
    return plot->format == FRAG_PLOT_PNG ? plot->scale : 1;
}

double frag_plot_text_room(const frag_plot *plot)
{
    bool is_drawn = plot->format != FRAG_PLOT_CSV && !is_of_characters(plot);
    return is_drawn ? (double)plot->width / frag_plot_letter_scale(plot) : 1e9;
}

/* ---- the axis to the right */

static bool is_setting(const frag_plot *plot, const char *name, const char *value)
{
    const char *given = frag_plot_setting_text(plot->request, name);
    return given != NULL && strcmp(given, value) == 0;
}

bool frag_plot_skips_oom(const frag_plot *plot)
{
    return is_setting(plot, "on-oom", "skip");
}

bool frag_plot_times(const frag_plot *plot, uint64_t **times_ns, frag_error *error)
{
    const frag_trace *trace = plot->trace;
    *times_ns = NULL;
    if (!is_setting(plot, "x", "time"))
        return true;
    if (trace->times_ns == NULL || trace->stats.time_last_ns == 0)
        return frag_fail_in(error, FRAG_E_USAGE, "--x", "the recording has no times; use events");
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
    *times_ns = times;
    return true;
}

double frag_plot_x(const uint64_t *times_ns, uint64_t event)
{
    return times_ns != NULL ? (double)times_ns[event] / 1e9 : (double)event;
}

const frag_plot_kind *frag_plot_kind_find(const char *name)
{
#define ADDRESS(kind) &frag_plot_##kind,
    static const frag_plot_kind *const kinds[] = {FRAG_PLOT_KINDS(ADDRESS)};
#undef ADDRESS
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i]->command.name, name) == 0)
            return kinds[i];
    return NULL;
}
