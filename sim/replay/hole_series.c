#include "sim/replay/hole_series.h"

#include "base/memory.h"
#include "sim/replay/series.h"

/* Rows of the series: first what is tracked, then what is carried along. */
enum {
    RESERVED,
    FREE,
    LARGEST,
    UTILISATION, /* billionths, as the shares */
    SHARES
};
enum { CARRIED = 4 }; /* requested, allocated, active, holes; then the small bytes */

#define LOGS 65u
#define BILLION 1e9

typedef struct layout {
    uint64_t free_bytes;
    uint64_t largest_bytes;
    uint64_t hole_count;
    uint64_t small_bytes[FRAG_HOLE_SIZES_MAX];
    uint64_t log_bytes[LOGS]; /* of holes from 2^i to below 2^(i+1) */
} layout;

struct frag_hole_series {
    frag_hole_options options;
    frag_series *series;
    layout now;
    bool has_layout;
    uint64_t since;  /* the position from which it has been so */
    uint64_t first;  /* position of the left edge */
    uint64_t end;    /* of the last event */
    double *sums;    /* by column and row: share times how long */
    double *lengths; /* by column: how long something was free */
    uint32_t row_count;
};

static uint32_t tracked_count(uint32_t size_count)
{
    return SHARES + size_count;
}

uint64_t frag_hole_sample_min(uint32_t size_count)
{
    return frag_series_row_min(tracked_count(size_count));
}

static uint64_t position_of(const frag_hole_series *series, uint64_t event)
{
    const uint64_t *positions = series->options.positions;
    return positions != NULL ? positions[event] : event;
}

frag_hole_series *frag_hole_series_create(const frag_hole_options *options)
{
    FRAG_ASSERT(options->size_count <= FRAG_HOLE_SIZES_MAX && options->column_count > 0);
    FRAG_ASSERT(options->log_min <= options->log_max && options->log_max < LOGS);
    FRAG_ASSERT(options->every > 0);
    frag_hole_series *series = frag_alloc(1, sizeof *series);
    uint32_t tracked = tracked_count(options->size_count);
    series->options = *options;
    series->series = frag_series_create(
        &(frag_series_shape){.figure_count = tracked + CARRIED + options->size_count,
                             .tracked_count = tracked,
                             .event_count = options->trace->event_count,
                             .row_max = options->sample_max});
    series->row_count = options->log_max - options->log_min + 1;
    series->sums =
        frag_alloc((size_t)options->column_count * series->row_count, sizeof *series->sums);
    series->lengths = frag_alloc(options->column_count, sizeof *series->lengths);
    series->first = position_of(series, options->start);
    series->end = position_of(series, options->end);
    return series;
}

/* ---- one layout */

typedef struct hole_walk {
    layout *now;
    const frag_hole_options *options;
} hole_walk;

static void add_hole(void *context, const frag_span *span)
{
    const hole_walk *look = context;
    layout *now = look->now;
    if (span->kind != FRAG_SPAN_HOLE || span->bytes == 0)
        return;
    now->free_bytes += span->bytes;
    now->hole_count++;
    now->log_bytes[frag_bit_high(span->bytes)] += span->bytes;
    if (span->bytes > now->largest_bytes)
        now->largest_bytes = span->bytes;
    for (uint32_t i = look->options->size_count; i-- > 0;) {
        if (span->bytes >= look->options->sizes[i])
            break;
        now->small_bytes[i] += span->bytes;
    }
}

static uint64_t billionths(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (uint64_t)((double)part / (double)whole * BILLION) : 0;
}

/* Adds how it was from a position to another to the columns between. */
static void add_stretch(frag_hole_series *series, uint64_t from, uint64_t to)
{
    const frag_hole_options *options = &series->options;
    from = from > series->first ? from : series->first;
    if (series->now.free_bytes == 0 || from >= to)
        return;
    double width = (double)(series->end - series->first) / (double)options->column_count;
    double at = (double)(from - series->first) / width;
    double end = (double)(to - series->first) / width;
    double shares[LOGS];
    uint64_t below = 0;
    for (uint32_t log = 0; log <= options->log_max; log++) {
        if (log >= options->log_min)
            shares[log - options->log_min] = (double)below / (double)series->now.free_bytes;
        below += series->now.log_bytes[log];
    }
    while (at < end) {
        uint32_t column = (uint32_t)at;
        if (column >= options->column_count)
            return;
        double edge = end < column + 1.0 ? end : column + 1.0;
        series->lengths[column] += edge - at;
        for (uint32_t i = 0; i < series->row_count; i++)
            series->sums[(size_t)column * series->row_count + i] += (edge - at) * shares[i];
        at = edge;
    }
}

static void keep_row(frag_hole_series *series, uint64_t event, const frag_level *level)
{
    const layout *now = &series->now;
    uint32_t sizes = series->options.size_count;
    uint64_t figures[SHARES + CARRIED + 2 * FRAG_HOLE_SIZES_MAX] = {
        [RESERVED] = level->reserved_bytes,
        [FREE] = now->free_bytes,
        [LARGEST] = now->largest_bytes,
        [UTILISATION] = billionths(level->allocated_bytes, level->reserved_bytes),
    };
    uint64_t *carried = &figures[SHARES + sizes];
    carried[0] = level->requested_bytes;
    carried[1] = level->allocated_bytes;
    carried[2] = level->active_bytes;
    carried[3] = now->hole_count;
    for (uint32_t i = 0; i < sizes; i++) {
        figures[SHARES + i] = billionths(now->small_bytes[i], now->free_bytes);
        carried[CARRIED + i] = now->small_bytes[i];
    }
    frag_series_observe(series->series, event, figures);
}

/* What the recorded allocator did, and what the program noted, changes nothing. */
static bool can_change(const frag_hole_series *series, uint64_t event)
{
    uint32_t op = series->options.trace->events[event].op;
    return !frag_op_is_observed(op) && op != FRAG_OP_MARK;
}

void frag_hole_series_observe(void *context, const frag_replay *replay, uint64_t event,
                              const frag_level *level)
{
    frag_hole_series *series = context;
    bool is_last = event == series->options.end;
    bool is_due = event % series->options.every == 0 || is_last;
    if (event < series->options.start || (series->has_layout && !is_due))
        return;
    uint64_t position = position_of(series, event);
    if (!series->has_layout || can_change(series, event) || series->options.every > 1) {
        if (series->has_layout)
            add_stretch(series, series->since, position);
        series->now = (layout){0};
        hole_walk look = {&series->now, &series->options};
        frag_replay_walk_spans(replay, add_hole, &look);
        series->has_layout = true;
        series->since = position;
    }
    keep_row(series, event, level);
}

/* ---- what came of it */

size_t frag_hole_series_finish(frag_hole_series *series)
{
    return frag_series_finish(series->series);
}

frag_hole_sample frag_hole_series_sample(const frag_hole_series *series, size_t index)
{
    const uint64_t *figures = frag_series_figures(series->series, index);
    const uint64_t *carried = &figures[SHARES + series->options.size_count];
    frag_hole_sample sample = {
        .event = frag_series_event(series->series, index),
        .level = {carried[0], carried[1], carried[2], figures[RESERVED]},
        .free_bytes = figures[FREE],
        .largest_hole_bytes = figures[LARGEST],
        .hole_count = carried[3],
    };
    for (uint32_t i = 0; i < series->options.size_count; i++)
        sample.small_bytes[i] = carried[CARRIED + i];
    return sample;
}

double frag_hole_series_mean(const frag_hole_series *series, uint32_t column, uint32_t log)
{
    FRAG_ASSERT(log >= series->options.log_min && log <= series->options.log_max);
    double length = series->lengths[column];
    size_t at = (size_t)column * series->row_count + (log - series->options.log_min);
    return length > 0 ? series->sums[at] / length : -1;
}

void frag_hole_series_destroy(frag_hole_series *series)
{
    if (series == NULL)
        return;
    frag_series_destroy(series->series);
    frag_free(series->sums);
    frag_free(series->lengths);
    frag_free(series);
}
