/* Live memory over time, one layer for each call site, purpose, stream, pool or size class. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "plots/parts/plot_bounds.h"
#include "plots/parts/plot_groups.h"
#include "plots/plot.h"
#include "plots/plot_options.h"
#include "sim/replay/series.h"
#include "sim/trace/demand.h"

#define SAMPLES_DEFAULT 1800u
#define TOP_DEFAULT 8u
#define TOP_MAX 20u
#define NAME_CHARACTERS 30u

/* Figures of a row of the series: all of it, each layer, the rest. */
#define LAYERS_MAX (TOP_MAX + 1u)
#define FIGURES_MAX (1u + LAYERS_MAX)

typedef struct layer {
    uint32_t key;
    uint64_t peak_bytes; /* held when all was at its peak */
    bool is_large;       /* then: at least a hundredth of all */
    bool is_used;
    frag_wide held; /* bytes times events */
} layer;

typedef struct row {
    uint64_t event;
    const uint64_t *figures;
} row;

typedef struct sites_figure {
    frag_plot plot;
    frag_groups groups;
    uint64_t top;
    uint64_t samples;
    uint64_t *times_ns; /* NULL: x is events */
    uint64_t start;
    uint64_t peak_event; /* the first drawn at which most was held */
    uint64_t peak_bytes;
    layer *layers;       /* every group; those of their own first, from the bottom up */
    size_t layer_count;  /* of its own: at most top */
    uint32_t *figure_of; /* by key: of the row; the last layer's where it has none */
    bool has_rest;
    frag_row_packing packing; /* with --bounds */
    char *names[LAYERS_MAX];
    frag_series *all;        /* loses no peak of what is held in all: the shape */
    frag_series *layers_too; /* nor of any layer, with fewer buckets */
    row *rows;               /* of both, by event */
    size_t row_count;
} sites_figure;

/* ---- who is large at the peak */

static void find_peak(sites_figure *state)
{
    frag_demand demand;
    frag_demand_change change;
    uint64_t held = 0;
    frag_demand_begin(&demand, state->plot.trace);
    state->start = frag_trace_start(state->plot.trace);
    for (uint64_t i = 0; i < state->plot.trace->event_count; i++) {
        if (frag_demand_step(&demand, i, &change))
            held += change.is_free ? 0 - change.bytes : change.bytes;
        if (i >= state->start && held > state->peak_bytes) {
            state->peak_bytes = held;
            state->peak_event = i;
        }
    }
    frag_demand_end(&demand);
}

/* What lies there all along goes to the bottom, what comes and goes on top of it. */
static int compare_held(const void *left, const void *right)
{
    const layer *a = left, *b = right;
    double held_a = frag_wide_value(a->held);
    double held_b = frag_wide_value(b->held);
    if (held_a > held_b || held_a < held_b)
        return held_a > held_b ? -1 : 1;
    return a->key < b->key ? -1 : a->key > b->key;
}

/* The largest at the peak; then, of those that hold next to nothing there, what is held longest. */
static int compare_layers(const void *left, const void *right)
{
    const layer *a = left, *b = right;
    if (a->is_large != b->is_large)
        return a->is_large ? -1 : 1;
    if (a->is_large && a->peak_bytes != b->peak_bytes)
        return a->peak_bytes > b->peak_bytes ? -1 : 1;
    return compare_held(left, right);
}

/* What is never freed is held to the end. */
static void add_unfreed(sites_figure *state, const frag_demand *demand)
{
    uint64_t end = state->plot.trace->event_count;
    for (uint32_t slot = 0; slot < state->plot.trace->slot_count; slot++) {
        if (demand->alloc_of[slot] == 0)
            continue;
        uint64_t alloc_event = demand->alloc_of[slot] - 1;
        uint32_t key = frag_groups_of_event(&state->groups, alloc_event);
        frag_wide_add_product(&state->layers[key].held,
                              state->plot.trace->events[alloc_event].bytes, end - alloc_event);
    }
}

static void find_layers(sites_figure *state)
{
    uint32_t count = state->groups.count;
    frag_demand demand;
    frag_demand_change change;
    state->layers = frag_alloc(count, sizeof *state->layers);
    for (uint32_t i = 0; i < count; i++)
        state->layers[i].key = i;
    frag_demand_begin(&demand, state->plot.trace);
    for (uint64_t i = 0; i < state->plot.trace->event_count; i++) {
        if (!frag_demand_step(&demand, i, &change))
            continue;
        uint32_t key = frag_groups_of_event(&state->groups, change.alloc_event);
        state->layers[key].is_used = true;
        if (change.is_free)
            frag_wide_add_product(&state->layers[key].held, change.bytes, i - change.alloc_event);
        if (i <= state->peak_event)
            state->layers[key].peak_bytes += change.is_free ? 0 - change.bytes : change.bytes;
    }
    add_unfreed(state, &demand);
    frag_demand_end(&demand);
    for (uint32_t i = 0; i < count; i++)
        state->layers[i].is_large = state->layers[i].peak_bytes >= state->peak_bytes / 100 + 1;
    qsort(state->layers, count, sizeof *state->layers, compare_layers);
    while (state->layer_count < count && state->layer_count < state->top &&
           state->layers[state->layer_count].is_used)
        state->layer_count++;
    qsort(state->layers, state->layer_count, sizeof *state->layers, compare_held);
    state->figure_of = frag_alloc(count, sizeof *state->figure_of);
    for (size_t i = 0; i < count; i++) {
        bool is_rest = i >= state->layer_count;
        state->figure_of[state->layers[i].key] = 1 + (uint32_t)(is_rest ? state->layer_count : i);
        state->has_rest = state->has_rest || (is_rest && state->layers[i].is_used);
    }
}

static void merge_rows(sites_figure *state)
{
    size_t all_count = frag_series_finish(state->all);
    size_t more_count = frag_series_finish(state->layers_too);
    state->rows = frag_alloc(all_count + more_count, sizeof *state->rows);
    for (size_t i = 0, j = 0; i < all_count || j < more_count;) {
        uint64_t event = i < all_count ? frag_series_event(state->all, i) : UINT64_MAX;
        uint64_t other = j < more_count ? frag_series_event(state->layers_too, j) : UINT64_MAX;
        bool is_of_all = event <= other;
        state->rows[state->row_count++] = (row){
            is_of_all ? event : other,
            is_of_all ? frag_series_figures(state->all, i)
                      : frag_series_figures(state->layers_too, j),
        };
        i += event <= other ? 1 : 0;
        j += other <= event ? 1 : 0;
    }
}

static void follow(sites_figure *state)
{
    uint32_t figure_count = 2 + (uint32_t)state->layer_count;
    uint64_t event_count = state->plot.trace->event_count;
    uint64_t least = frag_series_row_min(figure_count);
    uint64_t third = state->samples / 3 > least ? state->samples / 3 : least;
    uint64_t rest = state->samples > third + 4 ? state->samples - third : 4;
    uint64_t figures[FIGURES_MAX] = {0};
    frag_demand demand;
    frag_demand_change change;
    state->all = frag_series_create(&(frag_series_shape){figure_count, 1, event_count, rest});
    state->layers_too =
        frag_series_create(&(frag_series_shape){figure_count, figure_count, event_count, third});
    frag_demand_begin(&demand, state->plot.trace);
    for (uint64_t i = 0; i < event_count; i++) {
        if (frag_demand_step(&demand, i, &change)) {
            uint32_t key = frag_groups_of_event(&state->groups, change.alloc_event);
            uint64_t by = change.is_free ? 0 - change.bytes : change.bytes;
            figures[0] += by;
            figures[state->figure_of[key]] += by;
        }
        if (i < state->start)
            continue;
        frag_series_observe(state->all, i, figures);
        frag_series_observe(state->layers_too, i, figures);
    }
    frag_demand_end(&demand);
    merge_rows(state);
}

/* ---- data */

static void name_layers(sites_figure *state)
{
    for (size_t i = 0; i < state->layer_count; i++) {
        frag_text name = {0};
        frag_groups_text(&state->groups, state->layers[i].key, NAME_CHARACTERS, &name);
        state->names[i] = name.bytes;
    }
    state->names[state->layer_count] = frag_copy_text("other");
}

static uint64_t rest_at_peak(const sites_figure *state)
{
    uint64_t rest = state->peak_bytes;
    for (size_t i = 0; i < state->layer_count; i++)
        rest -= state->layers[i].peak_bytes;
    return rest;
}

static void write_head(const sites_figure *state, const char *kind, uint64_t event, uint64_t bytes)
{
    FILE *stream = state->plot.data;
    fprintf(stream, "%s,%" PRIu64 ",", kind, event);
    if (state->times_ns != NULL)
        fprintf(stream, "%" PRIu64, state->times_ns[event]);
    fprintf(stream, ",%" PRIu64 ",", bytes);
}

/* First who the layers are, with what they hold at the peak; then the samples. */
static void write_data(const sites_figure *state)
{
    FILE *stream = state->plot.data;
    size_t shown = state->layer_count + 1;
    fputs("kind,event,time_ns,requested_bytes,layer,name", stream);
    for (size_t i = 0; i < state->layer_count; i++)
        fprintf(stream, ",layer_%zu_bytes", i + 1);
    fputs(",other_bytes\n", stream);
    for (size_t i = 0; i < shown; i++) {
        uint64_t bytes = i < state->layer_count ? state->layers[i].peak_bytes : rest_at_peak(state);
        write_head(state, "layer", state->peak_event, bytes);
        fprintf(stream, "%zu,", i + 1);
        frag_text_write_csv(stream, state->names[i]);
        for (size_t j = 0; j < shown; j++)
            fputc(',', stream);
        fputc('\n', stream);
    }
    if (state->packing.bytes > 0) {
        write_head(state, "bound", state->peak_event, state->packing.bytes);
        fprintf(stream, ",%s", FRAG_PLOT_PACKING_NAME);
        for (size_t j = 0; j < shown; j++)
            fputc(',', stream);
        fputc('\n', stream);
    }
    for (size_t at = 0; at < state->row_count; at++) {
        const uint64_t *figures = state->rows[at].figures;
        write_head(state, "sample", state->rows[at].event, figures[0]);
        fputc(',', stream);
        for (size_t i = 0; i < shown; i++)
            fprintf(stream, ",%" PRIu64, figures[1 + i]);
        fputc('\n', stream);
    }
}

/* ---- the figure */

static const char *what(const sites_figure *state)
{
    static const char *const names[] = {
        [FRAG_GROUP_SITE] = "call site",
        [FRAG_GROUP_PURPOSE] = "purpose",
        [FRAG_GROUP_STREAM] = "stream",
        [FRAG_GROUP_POOL] = "pool",
        [FRAG_GROUP_SIZE_CLASS] = "size of the request",
    };
    return names[state->groups.grouping];
}

static void define(sites_figure *state)
{
    frag_plot *plot = &state->plot;
    frag_text names[LAYERS_MAX] = {{0}};
    const char *texts[LAYERS_MAX];
    size_t shown = state->layer_count + 1;
    for (size_t i = 0; i < shown; i++) {
        uint64_t held = i < state->layer_count ? state->layers[i].peak_bytes : rest_at_peak(state);
        frag_text_add(&names[i], "%4.1f %%  %s", 100.0 * (double)held / (double)state->peak_bytes,
                      state->names[i]);
        texts[i] = names[i].bytes;
    }
    frag_plot_define_texts(plot, "layers", texts, shown);
    frag_plot_define_number(plot, "layer_count", (double)state->layer_count);
    frag_plot_define_number(plot, "has_rest", state->has_rest ? 1 : 0);
    frag_plot_define_number(plot, "is_by_time", state->times_ns != NULL ? 1 : 0);
    frag_plot_define_number(plot, "x_min", frag_plot_x(state->times_ns, state->start));
    frag_plot_define_number(plot, "x_max",
                            frag_plot_x(state->times_ns, state->plot.trace->event_count - 1));
    frag_plot_define_number(plot, "x_peak", frag_plot_x(state->times_ns, state->peak_event));
    frag_plot_define_text(plot, "peak_text", FRAG_BYTES(state->peak_bytes));
    frag_plot_define_unit(plot, state->peak_bytes);
    frag_text title = {0};
    frag_text_add(&title, "%s, requested memory by %s", state->plot.recording.name, what(state));
    frag_plot_define_title(plot, title.bytes);
    frag_text_destroy(&title);
    for (size_t i = 0; i < shown; i++)
        frag_text_destroy(&names[i]);
}

/* The layer at a height, in the row; layer_count + 1: above all. */
static size_t layer_at(const sites_figure *state, const uint64_t *figures, double bytes)
{
    size_t i = 0;
    for (double below = 0; i <= state->layer_count; i++) {
        below += (double)figures[1 + i];
        if (bytes < below)
            break;
    }
    return i;
}

/* Of the samples of a column the one that holds most. NULL: it has none. */
static const uint64_t *row_of(const sites_figure *state, double from, double to)
{
    const uint64_t *most = NULL;
    for (size_t at = 0; at < state->row_count; at++) {
        const uint64_t *figures = state->rows[at].figures;
        double x = frag_plot_x(state->times_ns, state->rows[at].event);
        if (x >= from && x < to && (most == NULL || figures[0] > most[0]))
            most = figures;
    }
    return most;
}

/* With characters: a letter a layer; the rest is dots. */
static void print_characters(const sites_figure *state)
{
    FILE *stream = state->plot.characters;
    size_t columns = state->plot.width - 12;
    size_t shown = state->layer_count + 1;
    size_t rows = state->plot.height > shown + 10 ? state->plot.height - shown - 5 : 6;
    const uint64_t **at = frag_alloc(columns, sizeof *at);
    double first = frag_plot_x(state->times_ns, state->start);
    double end = frag_plot_x(state->times_ns, state->plot.trace->event_count - 1);
    double width = (end - first) / (double)columns;
    for (size_t i = 0; i < columns; i++) {
        double from = first + width * (double)i;
        at[i] = row_of(state, from, i + 1 < columns ? from + width : HUGE_VAL);
        at[i] = at[i] == NULL && i > 0 ? at[i - 1] : at[i];
    }
    fprintf(stream, "%s, requested memory by %s\n", state->plot.recording.name, what(state));
    for (size_t line = rows; line-- > 0;) {
        double height = (double)state->peak_bytes / (double)rows;
        bool has_mark = line + 1 == rows || line == 0 || line == rows / 2;
        uint64_t top = (uint64_t)(height * (double)(line == 0 ? 0 : line + 1));
        fprintf(stream, "%10s ", has_mark ? FRAG_BYTES(top) : "");
        for (size_t i = 0; i < columns; i++) {
            size_t found =
                at[i] != NULL ? layer_at(state, at[i], height * ((double)line + 0.5)) : shown;
            fputc(found >= shown                ? ' '
                  : found == state->layer_count ? '.'
                                                : (char)('a' + found),
                  stream);
        }
        fputc('\n', stream);
    }
    if (state->times_ns != NULL)
        fprintf(stream, "%11s%.3f to %.3f s\n", "", first, end);
    else
        fprintf(stream, "%11sevents %.0f to %.0f\n", "", first, end);
    fprintf(stream, "\nat the peak, %s:\n", FRAG_BYTES(state->peak_bytes));
    for (size_t i = 0; i < shown; i++) {
        uint64_t held = i < state->layer_count ? state->layers[i].peak_bytes : rest_at_peak(state);
        if (i < state->layer_count || state->has_rest)
            fprintf(stream, "  %c %5.1f%% %12s  %s\n",
                    i < state->layer_count ? (char)('a' + i) : '.',
                    100.0 * (double)held / (double)state->peak_bytes, FRAG_BYTES(held),
                    state->names[i]);
    }
    if (state->packing.bytes > 0)
        fprintf(stream, "%s: %s\n", FRAG_PLOT_PACKING_NAME, FRAG_BYTES(state->packing.bytes));
    frag_free(at);
}

static frag_grouping grouping_of(const frag_plot_request *request)
{
    const char *by = frag_plot_setting_text(request, "by");
    return by == NULL || strcmp(by, "site") == 0 ? FRAG_GROUP_SITE
           : strcmp(by, "purpose") == 0          ? FRAG_GROUP_PURPOSE
           : strcmp(by, "stream") == 0           ? FRAG_GROUP_STREAM
           : strcmp(by, "pool") == 0             ? FRAG_GROUP_POOL
                                                 : FRAG_GROUP_SIZE_CLASS;
}

static bool fill(void *context, frag_error *error)
{
    sites_figure *state = context;
    const frag_plot_request *request = state->plot.request;
    frag_groups_create(&state->groups, grouping_of(request), &state->plot.recording,
                       state->plot.trace);
    if (state->plot.trace->event_count > 0 &&
        !frag_plot_times(&state->plot, &state->times_ns, error))
        return false;
    find_peak(state);
    if (state->peak_bytes == 0)
        return frag_fail_in(error, FRAG_E_INPUT, frag_plot_source_name(request),
                            "the trace requests nothing; there is nothing to draw");
    bool needs_stacks =
        state->groups.grouping == FRAG_GROUP_SITE || state->groups.grouping == FRAG_GROUP_PURPOSE;
    if (needs_stacks && state->plot.recording.site_count < 2)
        frag_context_warn(request->context, "%s holds no call stacks; --by size-class shows more",
                          state->plot.recording.name);
    find_layers(state);
    follow(state);
    name_layers(state);
    if (!frag_plot_packing(&state->plot, &state->packing, error))
        return false;
    write_data(state);
    state->plot.is_written = state->plot.format == FRAG_PLOT_TERMINAL;
    if (state->plot.is_written)
        print_characters(state);
    else
        define(state);
    return true;
}

static bool draw(const frag_plot_request *request, frag_error *error)
{
    sites_figure state = {.top = TOP_DEFAULT, .samples = SAMPLES_DEFAULT};
    bool ok = frag_plot_setting_count(request, "top", 1, TOP_MAX, &state.top, error) &&
              frag_plot_setting_count(request, "samples", 10, 1000000, &state.samples, error) &&
              frag_plot_draw_trace(&state.plot, "sites", request, true, fill, &state, error);
    for (size_t i = 0; i < LAYERS_MAX; i++)
        frag_free(state.names[i]);
    frag_series_destroy(state.all);
    frag_series_destroy(state.layers_too);
    frag_free(state.rows);
    frag_free(state.layers);
    frag_free(state.figure_of);
    frag_free(state.times_ns);
    frag_groups_destroy(&state.groups);
    return ok;
}

static const frag_command_option options[] = {
    FRAG_LOAD_OPTIONS,
    FRAG_WINDOW_OR_ALL_OPTIONS,
    FRAG_PLOT_DEVICE_OPTION,
    {"by", "WHAT", .choices = "site|purpose|stream|pool|size-class",
     .help =
         "what a layer stands for: the place in the program that asked, what it is for as far as "
         "the call stack tells (weights, optimizer, backward, activations, ...), the stream, the "
         "pool, or requests of about one size (default: site)"},
    {"top", "N",
     .help = "number of layers, the largest at the peak first; everything else is one more layer "
             "(default: 8)"},
    FRAG_PLOT_AXIS_OPTION,
    {"samples", "N", .help = "points of a layer's edge; peaks are never lost (default: 1800)"},
    FRAG_BOUNDS_OPTION,
    FRAG_PLOT_OPTIONS,
    {.name = NULL},
};

const frag_plot_kind frag_plot_sites = {
    .command =
        {
            .name = "sites",
            .operands = "TRACE",
            .summary = "requested bytes over events or time, layer by layer: who holds the memory",
            .description =
                "Draws what the program holds as layers that add up to it exactly: the call sites "
                "that hold most at the peak, each with its share, and all others above. Memory "
                "that is held throughout lies at the bottom. A call site is the innermost line of "
                "the program's own code; frames of a framework are skipped. Layers can be "
                "purposes, streams, pools or sizes instead. No policy is involved.",
            .examples =
                "fraglab plot sites train.pickle  # on the terminal\n"
                "fraglab plot sites train.pickle --by purpose -o purposes.svg\n"
                "fraglab plot sites train.pickle --by size-class --top 5 --x time -o sizes.pdf",
            .options = options,
            .operand_min = 1,
            .operand_max = 1,
        },
    .draw = draw,
};
