/* Buffers with known lifetimes, and time cut into the few moments that matter for packing them.
 *
 * Two buffers can only be in each other's way when both are live at some moment. Of all moments
 * those are enough at which the set of live buffers is maximal: just before the first release after
 * an allocation. They are the *sections*, numbered in order of time; a buffer is live in a range of
 * them. Everything in planner/ works on sections, never on times. */
#ifndef FRAG_PLANNER_SECTIONS_H
#define FRAG_PLANNER_SECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/radix.h"

/* Most buffers in one problem, and most bytes in one buffer: sums of sizes stay within 64 bits. */
#define FRAG_BUFFER_COUNT_MAX ((uint32_t)1 << 27)

typedef struct frag_buffer {
    uint64_t lower; /* live in [lower, upper): a release at a time comes before allocations then */
    uint64_t upper;
    uint64_t size;      /* bytes, 1 or more */
    uint64_t alignment; /* of its offset, in bytes; 1: any */
} frag_buffer;

typedef struct frag_sections {
    const frag_buffer *buffers; /* borrowed */
    uint32_t buffer_count;
    uint32_t count;
    uint32_t *lower; /* of each buffer: live in the sections [lower, upper) */
    uint32_t *upper;
    uint64_t load_bytes; /* the largest sum of sizes in a section */
    /* Some best packing has every offset at a multiple of this. */
    uint64_t step_bytes;
} frag_sections;

/* Checks the buffers and finds their sections. FRAG_E_INPUT where a lifetime is empty, a size or an
 * alignment is 0, or the sizes add up to more than 2^62. */
bool frag_sections_create(frag_sections *sections, const frag_buffer *buffers, uint32_t count,
                          frag_error *error);
void frag_sections_destroy(frag_sections *sections);

/* The moments at which buffers begin or end, in order of time, ends first and then by number. */
typedef struct frag_moments {
    const frag_buffer *buffers;
    frag_radix_item *begins; /* value: the number of the buffer; NULL: they are in order */
    frag_radix_item *ends;
    uint32_t count; /* of each */
    uint32_t begun; /* so many have been taken */
    uint32_t ended;
} frag_moments;

typedef struct frag_moment {
    uint32_t buffer;
    bool is_end;
} frag_moment;

/* The buffers outlive the moments. */
frag_moments frag_moments_find(const frag_buffer *buffers, uint32_t count);
void frag_moments_destroy(frag_moments *moments);

/* The next one; false: that was all. */
static inline bool frag_moments_take(frag_moments *moments, frag_moment *moment)
{
    if (moments->ended == moments->count)
        return false;
    const frag_radix_item *begins = moments->begins;
    uint32_t next = moments->begun < moments->count && begins != NULL
                        ? (uint32_t)begins[moments->begun].value
                        : moments->begun;
    moment->is_end = moments->begun == moments->count ||
                     moments->ends[moments->ended].key <= moments->buffers[next].lower;
    moment->buffer = moment->is_end ? (uint32_t)moments->ends[moments->ended].value : next;
    moments->ended += moment->is_end ? 1 : 0;
    moments->begun += moment->is_end ? 0 : 1;
    return true;
}

/* One stretch of time that shares no buffer with any other. */
typedef struct frag_component {
    uint32_t lower; /* sections [lower, upper) */
    uint32_t upper;
    uint32_t first; /* its buffers are order[first .. first + count - 1] */
    uint32_t count;
    uint64_t load_bytes;
} frag_component;

/* Every component in order of time, and all buffers grouped by component, by number within one. The
 * caller frees both arrays. */
frag_component *frag_components_find(const frag_sections *sections, uint32_t **order,
                                     uint32_t *count);

#endif
