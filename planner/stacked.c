#include "planner/stacked.h"

#include "base/bits.h"
#include "base/memory.h"

enum { CLASS_COUNT = 64 };

/* Heights over sections, which only grow. */
typedef struct height_node {
    uint64_t all;  /* every section of the node is at least so high */
    uint64_t most; /* the highest of them, but for what nodes above say of all */
} height_node;

typedef struct heights {
    height_node *nodes; /* children of i: 2 i and 2 i + 1 */
    uint32_t leaf_count;
} heights;

static uint64_t highest(const heights *known, uint32_t lower, uint32_t upper)
{
    const height_node *nodes = known->nodes;
    uint32_t first = lower + known->leaf_count;
    uint32_t last = upper - 1 + known->leaf_count;
    uint64_t most = 0;
    uint32_t low = first;
    for (uint32_t high = last + 1; low < high; low /= 2, high /= 2) {
        if ((low & 1) != 0)
            most = frag_larger(most, nodes[low++].most);
        if ((high & 1) != 0)
            most = frag_larger(most, nodes[--high].most);
    }
    for (; first != last; first /= 2, last /= 2)
        most = frag_larger(most, frag_larger(nodes[first].all, nodes[last].all));
    for (; first > 0; first /= 2)
        most = frag_larger(most, nodes[first].all);
    return most;
}

/* Nodes above that one, which lies in what was raised. Only nodes outside of it are higher, and so
 * is all above those. */
static void raise_above(const heights *known, uint32_t node, uint64_t height)
{
    height_node *nodes = known->nodes;
    for (node /= 2; node > 0 && nodes[node].most <= height; node /= 2)
        nodes[node].most = height;
}

/* To a height above all that is there. */
static void raise(const heights *known, uint32_t lower, uint32_t upper, uint64_t height)
{
    height_node *nodes = known->nodes;
    uint32_t low = lower + known->leaf_count;
    for (uint32_t high = upper + known->leaf_count; low < high; low /= 2, high /= 2) {
        if ((low & 1) != 0)
            nodes[low++] = (height_node){height, height};
        if ((high & 1) != 0)
            nodes[--high] = (height_node){height, height};
    }
    raise_above(known, lower + known->leaf_count, height);
    raise_above(known, upper - 1 + known->leaf_count, height);
}

static uint32_t class_of(const frag_buffer *buffer)
{
    return CLASS_COUNT - 1 - frag_bit_high(buffer->upper - buffer->lower);
}

static void sort_by_class(const frag_sections *sections, uint32_t *order)
{
    uint32_t first[CLASS_COUNT + 1] = {0};
    for (uint32_t i = 0; i < sections->buffer_count; i++)
        first[class_of(&sections->buffers[i]) + 1]++;
    for (uint32_t i = 0; i < CLASS_COUNT; i++)
        first[i + 1] += first[i];
    for (uint32_t i = 0; i < sections->buffer_count; i++)
        order[first[class_of(&sections->buffers[i])]++] = i;
}

bool frag_stacked_place(const frag_sections *sections, uint64_t limit, uint32_t *order,
                        uint64_t *offsets, uint64_t *height)
{
    heights known = {.leaf_count =
                         (uint32_t)frag_power_of_two_up(sections->count > 0 ? sections->count : 1)};
    known.nodes = frag_alloc((size_t)known.leaf_count * 2, sizeof *known.nodes);
    sort_by_class(sections, order);
    *height = 0;
    for (uint32_t i = 0; i < sections->buffer_count && *height <= limit; i++) {
        uint32_t at = order[i];
        const frag_buffer *buffer = &sections->buffers[at];
        uint32_t lower = sections->lower[at];
        uint32_t upper = sections->upper[at];
        offsets[at] = frag_round_up(highest(&known, lower, upper), buffer->alignment);
        uint64_t end = offsets[at] + buffer->size;
        raise(&known, lower, upper, end);
        *height = frag_larger(*height, end);
    }
    frag_free(known.nodes);
    return *height <= limit;
}
