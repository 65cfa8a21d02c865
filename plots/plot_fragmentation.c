/* Utilisation, the largest hole and unusable free memory over time.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "plots/parts/plot_bounds.h"
#include "plots/plot.h"
#include "plots/plot_options.h"
#include "sim/replay/hole_series.h"

#define SIZES_DEFAULT "p50,p90,p99,max"
#define COLUMNS 320u /* of the strip */
#define LOG_LEAST 9u /* of its rows: requests below 512 bytes are of no weight */
#define TALL_PIXELS 640u

typedef struct holes_figure {
    frag_plot plot;
    frag_policy_list policies;
    frag_device_spec device;
    frag_hole_options holes;
    char names[FRAG_HOLE_SIZES_MAX][16]; /* "p90", or "" for a size given as such */
    uint64_t *times_ns;                  /* NULL: x is events */
    uint64_t *requests;                  /* sizes of the requests, ascending */
    uint64_t request_count;
    frag_hole_series *series;
    frag_progress *progress;
    frag_oom oom;
    uint64_t max_bytes;
    frag_row_packing packing; /* with --bounds */
} holes_figure;

/* ---- sizes */

static bool sort_requests(holes_figure *state, frag_error *error)
{
    const frag_trace *trace = state->plot.trace;
    state->requests = frag_alloc(trace->stats.request_count + 1, sizeof *state->requests);
    for (uint64_t i = 0; i < trace->event_count; i++) {
        const frag_event *event = &trace->events[i];
        if (event->op == FRAG_OP_ALLOC && (event->flags & FRAG_EVENT_INITIAL) == 0)
            state->requests[state->request_count++] = event->bytes;
    }
    if (state->request_count == 0)
        return frag_fail_in(error, FRAG_E_INPUT, frag_plot_source_name(state->plot.request),
                            "the trace requests nothing; there is nothing to draw");
    qsort(state->requests, state->request_count, sizeof *state->requests, frag_compare_numbers);
    return true;
}

/* The least size that so many percent of the requests do not exceed. */
static uint64_t percentile(const holes_figure *state, uint64_t percent)
{
    uint64_t rank = (state->request_count * percent + 99) / 100;
    return state->requests[rank > 0 ? rank - 1 : 0];
}

/* "p90", "max" or a size. */
static bool read_size(const holes_figure *state, const char *text, uint64_t *bytes, char name[16],
                      frag_error *error)
{
    name[0] = '\0';
    if (strcmp(text, "max") == 0) {
        *bytes = state->requests[state->request_count - 1];
        snprintf(name, 16, "max");
        return true;
    }
    if (text[0] != 'p')
        return frag_bytes_parse(text, bytes, error) &&
               (*bytes > 0 ||
                frag_fail(error, FRAG_E_USAGE, "'%s' is not the size of a request", text));
    size_t digits = strspn(text + 1, "0123456789");
    uint64_t percent = digits >= 1 && digits <= 3 ? strtoull(text + 1, NULL, 10) : 0;
    if (text[1 + digits] != '\0' || percent < 1 || percent > 100)
        return frag_fail(
            error, FRAG_E_USAGE,
            "'%s' is neither a size nor p1 to p100; write sizes as in p50,p99,max,2MiB", text);
    *bytes = percentile(state, percent);
    snprintf(name, 16, "p%" PRIu64, percent);
    return true;
}

/* Keeps them ascending; of equal ones the first is named. */
static bool add_size(holes_figure *state, uint64_t bytes, const char *name, frag_error *error)
{
    frag_hole_options *holes = &state->holes;
    uint32_t at = 0;
    while (at < holes->size_count && holes->sizes[at] < bytes)
        at++;
    if (at < holes->size_count && holes->sizes[at] == bytes)
        return true;
    if (holes->size_count == FRAG_HOLE_SIZES_MAX)
        return frag_fail(error, FRAG_E_USAGE, "more than %u sizes; leave some out",
                         FRAG_HOLE_SIZES_MAX);
    for (uint32_t i = holes->size_count++; i > at; i--) {
        holes->sizes[i] = holes->sizes[i - 1];
        memcpy(state->names[i], state->names[i - 1], sizeof state->names[i]);
    }
    holes->sizes[at] = bytes;
    snprintf(state->names[at], sizeof state->names[at], "%s", name);
    return true;
}

static bool find_sizes(holes_figure *state, frag_error *error)
{
    const char *list = frag_plot_setting_text(state->plot.request, "sizes");
    char *copy = frag_copy_text(list != NULL ? list : SIZES_DEFAULT);
    char *rest = copy;
    bool ok = true;
    for (char *item = copy; ok && item != NULL; item = rest) {
        uint64_t bytes = 0;
        char name[16];
        rest = strchr(item, ',');
        if (rest != NULL)
            *rest++ = '\0';
        ok = read_size(state, item, &bytes, name, error) && add_size(state, bytes, name, error);
    }
    frag_free(copy);
    return ok || frag_error_in(error, "--sizes");
}

/* From where requests begin to what serves the largest. */
static void find_rows(holes_figure *state)
{
    uint64_t least = state->requests[0];
    uint64_t most = state->requests[state->request_count - 1];
    uint32_t low = frag_bit_high(least);
    uint32_t high = frag_bit_high(most) + (frag_is_power_of_two(most) ? 0 : 1);
    low = low < LOG_LEAST ? LOG_LEAST : low;
    state->holes.log_max = high > low + 1 ? high : low + 1;
    state->holes.log_min = low;
}

/* ---- data */

static void write_head(const holes_figure *state, const char *kind, double event, double time_ns)
{
    fprintf(state->plot.data, "%s,%.0f,", kind, event);
    if (state->times_ns != NULL)
        fprintf(state->plot.data, "%.0f", time_ns);
    fputc(',', state->plot.data);
}

/* Cells come first, in order: an image wants them without other rows between. A cell begins at the
 * left edge of its column. */
static void write_strip(const holes_figure *state)
{
    uint64_t start = state->holes.start;
    uint64_t end = state->holes.end;
    uint64_t first = state->times_ns != NULL ? state->times_ns[start] : start;
    uint64_t last = state->times_ns != NULL ? state->times_ns[end] : end;
    for (uint32_t i = 0; i < COLUMNS; i++)
        for (uint32_t log = state->holes.log_min; log <= state->holes.log_max; log++) {
            double at = (double)first + (double)(last - first) * i / COLUMNS;
            double mean = frag_hole_series_mean(state->series, i, log);
            fprintf(state->plot.data, "strip,");
            if (state->times_ns != NULL)
                fprintf(state->plot.data, ",%.0f", at);
            else
                fprintf(state->plot.data, "%.3f,", at);
            fprintf(state->plot.data, ",,,,,,,,%" PRIu64 ",", (uint64_t)1 << log);
            if (mean >= 0)
                fprintf(state->plot.data, "%.6f", mean);
            for (uint32_t j = 0; j < state->holes.size_count; j++)
                fputc(',', state->plot.data);
            fputc('\n', state->plot.data);
        }
}

static void write_sample(holes_figure *state, const frag_hole_sample *at)
{
    FILE *stream = state->plot.data;
    write_head(state, "sample", (double)at->event,
               state->times_ns != NULL ? (double)state->times_ns[at->event] : 0);
    fprintf(stream,
            "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",,",
            at->level.requested_bytes, at->level.allocated_bytes, at->level.active_bytes,
            at->level.reserved_bytes, at->free_bytes, at->largest_hole_bytes, at->hole_count);
    for (uint32_t i = 0; i < state->holes.size_count; i++)
        fprintf(stream, ",%" PRIu64, at->small_bytes[i]);
    fputc('\n', stream);
    if (at->level.reserved_bytes > state->max_bytes)
        state->max_bytes = at->level.reserved_bytes;
}

/* For the whole run, said once. */
static void write_bound(holes_figure *state)
{
    FILE *stream = state->plot.data;
    write_head(state, "bound", (double)state->holes.end,
               state->times_ns != NULL ? (double)state->times_ns[state->holes.end] : 0);
    fprintf(stream, ",,,%" PRIu64 ",,,,,", state->packing.bytes);
    for (uint32_t i = 0; i < state->holes.size_count; i++)
        fputc(',', stream);
    fputc('\n', stream);
    if (state->packing.bytes > state->max_bytes)
        state->max_bytes = state->packing.bytes;
}

static void write_data(holes_figure *state)
{
    FILE *stream = state->plot.data;
    fputs("kind,event,time_ns,requested_bytes,allocated_bytes,active_bytes,reserved_bytes,free_"
          "bytes,largest_hole_bytes,hole_count,size_bytes,unusable_ratio",
          stream);
    for (uint32_t i = 0; i < state->holes.size_count; i++)
        fprintf(stream, ",unusable_for_%" PRIu64 "_bytes", state->holes.sizes[i]);
    fputc('\n', stream);
    size_t count = frag_hole_series_finish(state->series);
    write_strip(state);
    for (size_t i = 0; i < count; i++) {
        frag_hole_sample sample = frag_hole_series_sample(state->series, i);
        write_sample(state, &sample);
    }
    if (state->packing.bytes > 0)
        write_bound(state);
}

/* ---- the figure */

static void define_sizes(holes_figure *state)
{
    frag_text labels[FRAG_HOLE_SIZES_MAX] = {{0}};
    const char *texts[FRAG_HOLE_SIZES_MAX];
    char bytes[FRAG_BYTES_TEXT_MAX];
    for (uint32_t i = 0; i < state->holes.size_count; i++) {
        frag_bytes_text(state->holes.sizes[i], bytes);
        frag_text_add(&labels[i], "%s%s%s", state->names[i], state->names[i][0] != '\0' ? " " : "",
                      bytes);
        texts[i] = labels[i].bytes;
    }
    frag_plot_define_numbers(&state->plot, "sizes", state->holes.sizes, state->holes.size_count);
    frag_plot_define_texts(&state->plot, "size_names", texts, state->holes.size_count);
    frag_plot_define_number(&state->plot, "size_count", state->holes.size_count);
    for (uint32_t i = 0; i < state->holes.size_count; i++)
        frag_text_destroy(&labels[i]);
}

static void define(holes_figure *state)
{
    frag_plot *plot = &state->plot;
    if (frag_plot_setting_text(plot->request, "height") == NULL &&
        plot->format != FRAG_PLOT_TERMINAL)
        plot->height = frag_plot_pixels(plot, TALL_PIXELS);
    define_sizes(state);
    frag_plot_define_number(plot, "is_by_time", state->times_ns != NULL ? 1 : 0);
    frag_plot_define_number(plot, "x_min", frag_plot_x(state->times_ns, state->holes.start));
    frag_plot_define_number(plot, "x_max", frag_plot_x(state->times_ns, state->holes.end));
    frag_plot_define_number(plot, "columns", COLUMNS);
    frag_plot_define_number(plot, "log_min", state->holes.log_min);
    frag_plot_define_number(plot, "log_max", state->holes.log_max);
    frag_plot_define_number(plot, "max_bytes", (double)state->max_bytes);
    frag_plot_define_unit(plot, state->max_bytes);
    frag_text oom = {0};
    frag_text title = {0};
    frag_text_add(&oom, "%s asked", FRAG_BYTES(state->oom.requested_bytes));
    frag_text_add(&title, "%s, %s%s", state->plot.recording.name, state->policies.specs[0].text,
                  state->oom.has_happened ? ", up to its OOM" : "");
    frag_plot_define_number(plot, "has_oom", state->oom.has_happened ? 1 : 0);
    frag_plot_define_number(plot, "oom_x",
                            state->oom.has_happened ? frag_plot_x(state->times_ns, state->oom.event)
                                                    : 0);
    frag_plot_define_text(plot, "oom_text", oom.bytes);
    frag_plot_define_title(plot, title.bytes);
    frag_text_destroy(&title);
    frag_text_destroy(&oom);
}

/* Where the run ends decides how wide the columns of the strip are. */
static bool find_end(holes_figure *state, const frag_policy_spec *policy, bool is_oom_skipped,
                     frag_error *error)
{
    frag_run_options run = {.is_oom_skipped = is_oom_skipped,
                            .is_layout_skipped = true,
                            .context = state->plot.request->context};
    frag_run_result result;
    if (!frag_run(&(frag_run_setup){&state->plot.recording, state->plot.trace, policy->ops,
                                    policy->values, &state->device},
                  &run, &result, error))
        return false;
    state->oom = result.replay.oom;
    state->holes.end = state->plot.trace->event_count - 1;
    if (state->oom.has_happened && !is_oom_skipped && state->oom.event > state->holes.start)
        state->holes.end = state->oom.event;
    return true;
}

#define PROGRESS_EVENTS 1024u

static void observe(void *context, const frag_replay *at, uint64_t event, const frag_level *level)
{
    holes_figure *state = context;
    frag_hole_series_observe(state->series, at, event, level);
    if ((event + 1) % PROGRESS_EVENTS == 0)
        frag_progress_add(state->progress, PROGRESS_EVENTS);
}

static bool replay(holes_figure *state, frag_error *error)
{
    bool is_oom_skipped = frag_plot_skips_oom(&state->plot);
    frag_policy_spec resolved = {0};
    if (!frag_policy_resolve(state->plot.request->context, &state->policies.specs[0],
                             &state->plot.recording, &resolved, error))
        return false;
    bool ok = find_end(state, &resolved, is_oom_skipped, error);
    if (ok) {
        state->series = frag_hole_series_create(&state->holes);
        state->progress = frag_progress_start(state->plot.request->context, "looking at holes",
                                              "events", state->holes.end + 1);
        frag_replay_options run = {
            .is_oom_skipped = is_oom_skipped,
            .stop_after = FRAG_UNLIMITED,
            .observer = observe,
            .observer_context = state,
            .context = state->plot.request->context,
        };
        ok = frag_run_look(&(frag_run_setup){&state->plot.recording, state->plot.trace,
                                             resolved.ops, resolved.values, &state->device},
                           &run, NULL, NULL, error);
        frag_progress_end(state->progress);
    }
    frag_policy_spec_destroy(&resolved);
    return ok;
}

static bool fill(void *context, frag_error *error)
{
    holes_figure *state = context;
    if (!sort_requests(state, error) || !find_sizes(state, error))
        return false;
    find_rows(state);
    if (!frag_plot_times(&state->plot, &state->times_ns, error))
        return false;
    uint64_t least = frag_hole_sample_min(state->holes.size_count);
    if (state->holes.sample_max < least)
        state->holes.sample_max = least;
    state->holes.trace = state->plot.trace;
    state->holes.start = frag_trace_start(state->plot.trace);
    state->holes.positions = state->times_ns;
    state->holes.column_count = COLUMNS;
    if (!replay(state, error) || !frag_plot_packing(&state->plot, &state->packing, error))
        return false;
    write_data(state);
    define(state);
    return true;
}

static bool check_options(holes_figure *state, const frag_plot_request *request, frag_error *error)
{
    state->holes.every = 1;
    state->holes.sample_max = 3000;
    if (!frag_plot_setting_count(request, "samples", 10, 1000000, &state->holes.sample_max,
                                 error) ||
        !frag_plot_setting_count(request, "every", 1, UINT32_MAX, &state->holes.every, error))
        return false;
    if (state->policies.count == 1)
        return true;
    return frag_fail_in(error, FRAG_E_USAGE, "--policy",
                        "the figure shows the holes of one policy; give one");
}

static bool draw(const frag_plot_request *request, frag_error *error)
{
    holes_figure state = {.request_count = 0};
    state.policies = *request->policies;
    state.device = *request->device;
    bool ok =
        check_options(&state, request, error) &&
        frag_plot_draw_trace(&state.plot, "fragmentation", request, true, fill, &state, error);
    frag_hole_series_destroy(state.series);
    frag_free(state.requests);
    frag_free(state.times_ns);
    return ok;
}

static const frag_command_option options[] = {
    FRAG_PLOT_REPLAY_OPTIONS,
    FRAG_PLOT_OOM_OPTION,
    FRAG_PLOT_AXIS_OPTION,
    {"sizes", "SIZE,...",
     .help = "request sizes to draw, at most 8: sizes, percentiles of the trace's requests (p90: "
             "nine in ten are no larger), max (default: p50,p90,p99,max)"},
    {"samples", "N", .help = "points of a line; peaks are never lost (default: 3000)"},
    {"every", "N",
     .help = "look at the holes only after every N events: faster, but changes in between are "
             "missed (default: 1)"},
    FRAG_BOUNDS_OPTION,
    FRAG_PLOT_OPTIONS,
    {.name = NULL},
};

const frag_plot_kind frag_plot_fragmentation = {
    .command =
        {
            .name = "fragmentation",
            .operands = "TRACE",
            .summary =
                "utilisation, the largest hole, and what free memory is too small for, over time",
            .description = "Draws how one policy uses its memory: blocks, the largest hole and the "
                           "other holes, which add up to reserved bytes; below, utilisation and "
                           "the largest hole as a share of all free memory; and below that, for "
                           "several request sizes, the share of free memory that lies in holes too "
                           "small for them. A hole is a free range inside a segment; policies that "
                           "move pages or stitch holes can use several for one request.",
            .examples = "fraglab plot fragmentation train.pickle -o holes.svg\n"
                        "fraglab plot fragmentation train.pickle --policy best-fit --x time "
                        "--sizes p90,2MiB -o holes.pdf",
            .options = options,
            .operand_min = 1,
            .operand_max = 1,
        },
    .policies = "pytorch",
    .draw = draw,
};
