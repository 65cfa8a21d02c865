#include "sim/replay/series.h"

#include <string.h>

#include "base/memory.h"

/* A row is its event, then its figures. */
struct frag_series {
    frag_series_shape shape;
    size_t row_items;
    uint64_t bucket_events;
    uint64_t bucket;    /* being filled */
    uint64_t *extremes; /* of the bucket: the lowest and the highest row of each tracked figure */
    uint64_t *last;     /* row */
    bool is_filling;
    uint64_t *rows;
    size_t count;
    size_t capacity; /* in items */
};

uint64_t frag_series_row_min(uint32_t tracked_count)
{
    return 2 + 2 * (uint64_t)tracked_count;
}

frag_series *frag_series_create(const frag_series_shape *shape)
{
    FRAG_ASSERT(shape->tracked_count > 0 && shape->tracked_count <= shape->figure_count);
    FRAG_ASSERT(shape->row_max >= frag_series_row_min(shape->tracked_count));
    frag_series *series = frag_alloc(1, sizeof *series);
    uint64_t bucket_count = (shape->row_max - 2) / (2 * (uint64_t)shape->tracked_count);
    series->shape = *shape;
    series->row_items = 1 + (size_t)shape->figure_count;
    series->bucket_events = 1;
    if (shape->event_count > shape->row_max)
        series->bucket_events = (shape->event_count - 1) / bucket_count + 1;
    series->extremes =
        frag_alloc(2 * (size_t)shape->tracked_count * series->row_items, sizeof *series->extremes);
    series->last = frag_alloc(series->row_items, sizeof *series->last);
    return series;
}

static void copy_row(const frag_series *series, uint64_t *to, const uint64_t *row)
{
    memcpy(to, row, series->row_items * sizeof *row);
}

static void keep(frag_series *series, const uint64_t *row)
{
    size_t items = series->row_items;
    if (series->count > 0 && series->rows[(series->count - 1) * items] >= row[0])
        return;
    FRAG_ASSERT(series->count < series->shape.row_max);
    series->rows = frag_grow(series->rows, &series->capacity, (series->count + 1) * items,
                             sizeof *series->rows);
    copy_row(series, &series->rows[series->count * items], row);
    series->count++;
}

/* Keeps the extremes in the order of their events; one event may be several of them. */
static void close_bucket(frag_series *series)
{
    size_t count = 2 * (size_t)series->shape.tracked_count;
    uint64_t kept = 0;
    for (size_t turn = 0; turn < count; turn++) {
        const uint64_t *next = NULL;
        for (size_t i = 0; i < count; i++) {
            const uint64_t *row = &series->extremes[i * series->row_items];
            bool is_left = turn == 0 || row[0] > kept;
            if (is_left && (next == NULL || row[0] < next[0]))
                next = row;
        }
        if (next == NULL)
            break;
        kept = next[0];
        keep(series, next);
    }
    series->is_filling = false;
}

void frag_series_observe(frag_series *series, uint64_t event, const uint64_t *figures)
{
    FRAG_ASSERT(event < series->shape.event_count);
    uint64_t bucket = event / series->bucket_events;
    if (series->is_filling && bucket != series->bucket)
        close_bucket(series);
    series->last[0] = event;
    memcpy(series->last + 1, figures, (series->row_items - 1) * sizeof *figures);
    if (series->count == 0 && !series->is_filling)
        keep(series, series->last);
    size_t items = series->row_items;
    bool is_first = !series->is_filling;
    series->is_filling = true;
    series->bucket = bucket;
    for (size_t i = 0; i < series->shape.tracked_count; i++) {
        uint64_t *lowest = &series->extremes[2 * i * items];
        uint64_t *highest = lowest + items;
        if (is_first || figures[i] < lowest[1 + i])
            copy_row(series, lowest, series->last);
        if (is_first || figures[i] > highest[1 + i])
            copy_row(series, highest, series->last);
    }
}

size_t frag_series_finish(frag_series *series)
{
    if (series->is_filling) {
        close_bucket(series);
        keep(series, series->last);
    }
    return series->count;
}

uint64_t frag_series_event(const frag_series *series, size_t row)
{
    return series->rows[row * series->row_items];
}

const uint64_t *frag_series_figures(const frag_series *series, size_t row)
{
    return &series->rows[row * series->row_items + 1];
}

void frag_series_destroy(frag_series *series)
{
    if (series == NULL)
        return;
    frag_free(series->extremes);
    frag_free(series->last);
    frag_free(series->rows);
    frag_free(series);
}
