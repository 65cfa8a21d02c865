#include "planner/placement.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/memory.h"
#include "base/radix.h"

typedef struct judge {
    const frag_buffer *buffers;
    const uint64_t *offsets;
    uint32_t *live; /* by offset */
    size_t live_count;
} judge;

/* The first live buffer at or above the offset. */
static size_t find_place(const judge *at, uint64_t offset)
{
    size_t low = 0;
    size_t high = at->live_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (at->offsets[at->live[middle]] < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool overlaps(const judge *at, uint32_t lower, uint32_t upper, frag_error *error)
{
    uint64_t end = at->offsets[lower] + at->buffers[lower].size;
    if (end <= at->offsets[upper])
        return false;
    frag_fail(error, FRAG_E_INPUT,
              "buffers %u and %u are live at the same time and share bytes from %llu on", lower,
              upper, (unsigned long long)at->offsets[upper]);
    return true;
}

static bool begin(judge *at, uint32_t buffer, frag_error *error)
{
    size_t place = find_place(at, at->offsets[buffer]);
    if ((place > 0 && overlaps(at, at->live[place - 1], buffer, error)) ||
        (place < at->live_count && overlaps(at, buffer, at->live[place], error)))
        return false;
    memmove(at->live + place + 1, at->live + place, (at->live_count - place) * sizeof *at->live);
    at->live[place] = buffer;
    at->live_count++;
    return true;
}

static void end(judge *at, uint32_t buffer)
{
    size_t place = find_place(at, at->offsets[buffer]);
    FRAG_ASSERT(place < at->live_count && at->live[place] == buffer);
    at->live_count--;
    memmove(at->live + place, at->live + place + 1, (at->live_count - place) * sizeof *at->live);
}

/* Each buffer on its own. */
static bool check_alone(const frag_buffer *buffer, uint32_t number, uint64_t offset,
                        uint64_t capacity, frag_error *error)
{
    if (buffer->lower >= buffer->upper || buffer->size == 0)
        return frag_fail(error, FRAG_E_INPUT, "buffer %u is live at no time or has no bytes",
                         number);
    if (offset % buffer->alignment != 0)
        return frag_fail(error, FRAG_E_INPUT,
                         "buffer %u is at %llu; expected a multiple of its alignment, %llu", number,
                         (unsigned long long)offset, (unsigned long long)buffer->alignment);
    if (buffer->size > capacity || offset > capacity - buffer->size)
        return frag_fail(error, FRAG_E_INPUT,
                         "buffer %u of %llu bytes is at %llu; it ends above the capacity, %llu",
                         number, (unsigned long long)buffer->size, (unsigned long long)offset,
                         (unsigned long long)capacity);
    return true;
}

bool frag_placement_check(const frag_buffer *buffers, const uint64_t *offsets, uint32_t count,
                          uint64_t capacity, uint64_t *height, frag_error *error)
{
    judge at = {buffers, offsets, frag_alloc((size_t)count + 1, sizeof *at.live), 0};
    bool ok = true;
    *height = 0;
    for (uint32_t i = 0; ok && i < count; i++) {
        ok = check_alone(&buffers[i], i, offsets[i], capacity, error);
        uint64_t top = offsets[i] + buffers[i].size;
        *height = top > *height ? top : *height;
    }
    frag_radix_item *turns = ok ? frag_sections_moments(buffers, count) : NULL;
    for (size_t i = 0; ok && i < (size_t)count * 2; i++) {
        uint32_t buffer = (uint32_t)(turns[i].value / 2);
        if (turns[i].value % 2 != 0)
            ok = begin(&at, buffer, error);
        else
            end(&at, buffer);
    }
    frag_free(turns);
    frag_free(at.live);
    return ok;
}
