#include "planner/sections.h"

#include "base/bits.h"
#include "base/memory.h"
#include "base/radix.h"

frag_moments frag_moments_find(const frag_buffer *buffers, uint32_t count)
{
    frag_moments moments = {.buffers = buffers, .count = count};
    frag_radix_item *scratch = frag_alloc(count, sizeof *scratch);
    bool is_in_order = true;
    for (uint32_t i = 1; i < count; i++)
        is_in_order = is_in_order && buffers[i - 1].lower <= buffers[i].lower;
    if (!is_in_order) {
        moments.begins = frag_alloc(count, sizeof *moments.begins);
        for (uint32_t i = 0; i < count; i++)
            moments.begins[i] = (frag_radix_item){buffers[i].lower, i};
        frag_radix_sort(moments.begins, scratch, count);
    }
    moments.ends = frag_alloc(count, sizeof *moments.ends);
    for (uint32_t i = 0; i < count; i++)
        moments.ends[i] = (frag_radix_item){buffers[i].upper, i};
    frag_radix_sort(moments.ends, scratch, count);
    frag_free(scratch);
    return moments;
}

void frag_moments_destroy(frag_moments *moments)
{
    frag_free(moments->begins);
    frag_free(moments->ends);
    *moments = (frag_moments){0};
}

static bool check_buffers(const frag_buffer *buffers, uint32_t count, frag_error *error)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        const frag_buffer *buffer = &buffers[i];
        if (buffer->lower >= buffer->upper)
            return frag_fail(error, FRAG_E_INPUT,
                             "buffer %u is live from %llu to %llu; expected an end after its start",
                             i, (unsigned long long)buffer->lower,
                             (unsigned long long)buffer->upper);
        if (buffer->size == 0 || buffer->alignment == 0)
            return frag_fail(error, FRAG_E_INPUT, "buffer %u has %s 0; expected 1 or more", i,
                             buffer->size == 0 ? "size" : "alignment");
        /* An upper bound of the height when all buffers are stacked. */
        if (!frag_add(sum, buffer->size, &sum) || !frag_add(sum, buffer->alignment - 1, &sum) ||
            sum >> 62 != 0)
            return frag_fail(error, FRAG_E_INPUT,
                             "the sizes add up to more than 2^62 bytes at buffer %u", i);
    }
    return true;
}

/* Buffers pushed down as far as they go lie at sums of sizes, each rounded up to an alignment. */
static uint64_t find_step(const frag_buffer *buffers, uint32_t count)
{
    uint64_t of_alignments = 0;
    uint64_t of_all = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t alignment = buffers[i].alignment;
        of_alignments = frag_common_divisor(of_alignments, alignment);
        of_all = frag_common_divisor(of_all, buffers[i].size);
        of_all = alignment > 1 ? frag_common_divisor(of_all, alignment) : of_all;
    }
    uint64_t step = of_alignments > of_all ? of_alignments : of_all;
    return step > 0 ? step : 1;
}

bool frag_sections_create(frag_sections *sections, const frag_buffer *buffers, uint32_t count,
                          frag_error *error)
{
    *sections = (frag_sections){.buffers = buffers, .buffer_count = count};
    FRAG_ASSERT(count <= FRAG_BUFFER_COUNT_MAX);
    if (!check_buffers(buffers, count, error))
        return false;
    sections->lower = frag_alloc(count, sizeof *sections->lower);
    sections->upper = frag_alloc(count, sizeof *sections->upper);
    sections->step_bytes = find_step(buffers, count);
    frag_moments moments = frag_moments_find(buffers, count);
    frag_moment moment;
    uint64_t live = 0;
    bool is_open = false;
    while (frag_moments_take(&moments, &moment)) {
        uint32_t buffer = moment.buffer;
        if (!moment.is_end) {
            sections->lower[buffer] = sections->count;
            live += buffers[buffer].size;
            if (live > sections->load_bytes)
                sections->load_bytes = live;
            is_open = true;
        } else {
            sections->count += is_open ? 1 : 0;
            is_open = false;
            sections->upper[buffer] = sections->count;
            live -= buffers[buffer].size;
        }
    }
    frag_moments_destroy(&moments);
    return true;
}

void frag_sections_destroy(frag_sections *sections)
{
    frag_free(sections->lower);
    frag_free(sections->upper);
    *sections = (frag_sections){0};
}

/* ---- components */

/* For each section, does a buffer live in it and in the one before? */
static unsigned char *find_crossings(const frag_sections *sections)
{
    int64_t *changes = frag_alloc((size_t)sections->count + 1, sizeof *changes);
    unsigned char *is_crossed = frag_alloc(sections->count, 1);
    for (uint32_t i = 0; i < sections->buffer_count; i++) {
        changes[sections->lower[i] + 1]++;
        changes[sections->upper[i]]--;
    }
    int64_t crossing = 0;
    for (uint32_t s = 0; s < sections->count; s++) {
        crossing += changes[s];
        is_crossed[s] = crossing > 0;
    }
    frag_free(changes);
    return is_crossed;
}

frag_component *frag_components_find(const frag_sections *sections, uint32_t **order,
                                     uint32_t *count)
{
    unsigned char *is_crossed = find_crossings(sections);
    uint32_t *owner = frag_alloc(sections->count, sizeof *owner);
    frag_component *components = frag_alloc(sections->count, sizeof *components);
    *count = 0;
    for (uint32_t s = 0; s < sections->count; s++) {
        if (!is_crossed[s])
            components[(*count)++].lower = s;
        owner[s] = *count - 1;
        components[*count - 1].upper = s + 1;
    }
    for (uint32_t i = 0; i < sections->buffer_count; i++)
        components[owner[sections->lower[i]]].count++;
    for (uint32_t i = 1; i < *count; i++)
        components[i].first = components[i - 1].first + components[i - 1].count;
    *order = frag_alloc(sections->buffer_count, sizeof **order);
    uint32_t *next = frag_alloc(*count, sizeof *next);
    for (uint32_t i = 0; i < sections->buffer_count; i++) {
        uint32_t of = owner[sections->lower[i]];
        (*order)[components[of].first + next[of]++] = i;
    }
    /* Live bytes rise and fall at section borders only. */
    int64_t *changes = frag_alloc((size_t)sections->count + 1, sizeof *changes);
    for (uint32_t i = 0; i < sections->buffer_count; i++) {
        changes[sections->lower[i]] += (int64_t)sections->buffers[i].size;
        changes[sections->upper[i]] -= (int64_t)sections->buffers[i].size;
    }
    int64_t live = 0;
    for (uint32_t s = 0; s < sections->count; s++) {
        live += changes[s];
        frag_component *of = &components[owner[s]];
        of->load_bytes = (uint64_t)live > of->load_bytes ? (uint64_t)live : of->load_bytes;
    }
    frag_free(changes);
    frag_free(next);
    frag_free(owner);
    frag_free(is_crossed);
    return components;
}
