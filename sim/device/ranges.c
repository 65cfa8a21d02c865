#include "sim/device/ranges.h"

#include <stdlib.h>

#include "base/memory.h"

typedef struct free_range {
    uint64_t address;
    uint64_t bytes;
} free_range;

static uint32_t priority(uint32_t node)
{
    uint32_t x = node * 2654435769u;
    x ^= x >> 15;
    x *= 2246822519u;
    return x ^ x >> 13;
}

static void update(frag_ranges *ranges, uint32_t at)
{
    frag_range_node *node = &ranges->nodes[at];
    uint64_t most = node->bytes;
    uint64_t left = ranges->nodes[node->left].bytes_max;
    uint64_t right = ranges->nodes[node->right].bytes_max;
    most = left > most ? left : most;
    node->bytes_max = right > most ? right : most;
}

/* Splits a tree into addresses below and from address on. */
static void split(frag_ranges *ranges, uint32_t at, uint64_t address, uint32_t *low, uint32_t *high)
{
    if (at == 0) {
        *low = *high = 0;
        return;
    }
    uint32_t piece = 0;
    if (ranges->nodes[at].address < address) {
        split(ranges, ranges->nodes[at].right, address, &piece, high);
        ranges->nodes[at].right = piece;
        *low = at;
    } else {
        split(ranges, ranges->nodes[at].left, address, low, &piece);
        ranges->nodes[at].left = piece;
        *high = at;
    }
    update(ranges, at);
}

static uint32_t join(frag_ranges *ranges, uint32_t low, uint32_t high)
{
    if (low == 0 || high == 0)
        return low == 0 ? high : low;
    if (priority(low) > priority(high)) {
        ranges->nodes[low].right = join(ranges, ranges->nodes[low].right, high);
        update(ranges, low);
        return low;
    }
    ranges->nodes[high].left = join(ranges, low, ranges->nodes[high].left);
    update(ranges, high);
    return high;
}

static void insert(frag_ranges *ranges, uint64_t address, uint64_t bytes)
{
    uint32_t at = ranges->free_list;
    if (at != 0) {
        ranges->free_list = ranges->nodes[at].left;
    } else {
        ranges->nodes = frag_grow(ranges->nodes, &ranges->capacity, (size_t)ranges->count + 1,
                                  sizeof *ranges->nodes);
        at = ranges->count++;
    }
    ranges->nodes[at] = (frag_range_node){address, bytes, bytes, 0, 0};
    uint32_t low = 0;
    uint32_t high = 0;
    split(ranges, ranges->root, address, &low, &high);
    ranges->root = join(ranges, join(ranges, low, at), high);
}

static void erase(frag_ranges *ranges, uint64_t address)
{
    uint32_t low = 0;
    uint32_t middle = 0;
    uint32_t high = 0;
    split(ranges, ranges->root, address, &low, &high);
    split(ranges, high, address + 1, &middle, &high);
    FRAG_ASSERT(middle != 0);
    ranges->nodes[middle].left = ranges->free_list;
    ranges->free_list = middle;
    ranges->root = join(ranges, low, high);
}

/* In the tree below `at`, the range that begins at `from` becomes another one, which lies between
 * the same two. */
static void change(frag_ranges *ranges, uint32_t at, uint64_t from, const free_range *to)
{
    frag_range_node *node = &ranges->nodes[at];
    FRAG_ASSERT(at != 0);
    if (from == node->address) {
        node->address = to->address;
        node->bytes = to->bytes;
    } else {
        change(ranges, from < node->address ? node->left : node->right, from, to);
    }
    update(ranges, at);
}

/* The last range that begins at or below address; 0: none. */
static uint32_t find_at_or_below(const frag_ranges *ranges, uint64_t address)
{
    uint32_t found = 0;
    for (uint32_t at = ranges->root; at != 0;) {
        const frag_range_node *node = &ranges->nodes[at];
        if (node->address <= address) {
            found = at;
            at = node->right;
        } else {
            at = node->left;
        }
    }
    return found;
}

void frag_ranges_create(frag_ranges *ranges, uint64_t address, uint64_t bytes)
{
    *ranges = (frag_ranges){.count = 1};
    ranges->nodes = frag_grow(NULL, &ranges->capacity, 1, sizeof *ranges->nodes);
    ranges->nodes[0] = (frag_range_node){0};
    insert(ranges, address, bytes);
}

void frag_ranges_destroy(frag_ranges *ranges)
{
    frag_free(ranges->nodes);
    *ranges = (frag_ranges){0};
}

bool frag_ranges_take_lowest(frag_ranges *ranges, uint64_t bytes, uint64_t *address)
{
    uint32_t at = ranges->root;
    if (ranges->nodes[at].bytes_max < bytes)
        return false;
    for (;;) {
        const frag_range_node *node = &ranges->nodes[at];
        if (ranges->nodes[node->left].bytes_max >= bytes)
            at = node->left;
        else if (node->bytes >= bytes)
            break;
        else
            at = node->right;
    }
    *address = ranges->nodes[at].address;
    return frag_ranges_take_at(ranges, *address, bytes);
}

bool frag_ranges_take_at(frag_ranges *ranges, uint64_t address, uint64_t bytes)
{
    uint32_t at = find_at_or_below(ranges, address);
    if (at == 0)
        return false;
    uint64_t start = ranges->nodes[at].address;
    uint64_t end = start + ranges->nodes[at].bytes;
    if (address > end || end - address < bytes)
        return false;
    const free_range below = {start, address - start};
    const free_range above = {address + bytes, end - address - bytes};
    if (below.bytes == 0 && above.bytes == 0)
        erase(ranges, start);
    else
        change(ranges, ranges->root, start, below.bytes > 0 ? &below : &above);
    if (below.bytes > 0 && above.bytes > 0)
        insert(ranges, above.address, above.bytes);
    return true;
}

void frag_ranges_clear(frag_ranges *ranges, uint64_t address, uint64_t bytes)
{
    uint64_t end = address + bytes;
    for (;;) {
        uint32_t at = bytes > 0 ? find_at_or_below(ranges, end - 1) : 0;
        uint64_t start = ranges->nodes[at].address;
        uint64_t last = start + ranges->nodes[at].bytes;
        if (at == 0 || last <= address)
            return;
        erase(ranges, start);
        if (last > end)
            insert(ranges, end, last - end);
        if (start < address)
            insert(ranges, start, address - start);
    }
}

void frag_ranges_give(frag_ranges *ranges, uint64_t address, uint64_t bytes)
{
    uint32_t below = find_at_or_below(ranges, address);
    uint32_t above = find_at_or_below(ranges, address + bytes);
    const frag_range_node low = ranges->nodes[below];
    const frag_range_node high = ranges->nodes[above];
    free_range whole = {address, bytes};
    FRAG_ASSERT(below == 0 || low.address + low.bytes <= address);
    bool is_behind = below != 0 && low.address + low.bytes == address;
    bool is_before = above != 0 && above != below;
    FRAG_ASSERT(!is_before || high.address == address + bytes);
    if (is_behind) {
        whole.address = low.address;
        whole.bytes += low.bytes;
    }
    if (is_before)
        whole.bytes += high.bytes;
    if (is_behind && is_before)
        erase(ranges, high.address);
    if (is_behind || is_before)
        change(ranges, ranges->root, is_behind ? low.address : high.address, &whole);
    else
        insert(ranges, address, bytes);
}

typedef struct audit {
    uint64_t end;
    bool is_right;
} audit;

static void check_subtree(const frag_ranges *ranges, uint32_t at, audit *state)
{
    if (at == 0)
        return;
    const frag_range_node *node = &ranges->nodes[at];
    check_subtree(ranges, node->left, state);
    uint64_t most = node->bytes;
    uint64_t left = ranges->nodes[node->left].bytes_max;
    uint64_t right = ranges->nodes[node->right].bytes_max;
    most = left > most ? left : most;
    most = right > most ? right : most;
    bool is_apart = state->end == 0 || node->address > state->end;
    state->is_right = state->is_right && is_apart && node->bytes > 0 && node->bytes_max == most;
    state->end = node->address + node->bytes;
    check_subtree(ranges, node->right, state);
}

bool frag_ranges_check(const frag_ranges *ranges, frag_error *error)
{
    audit state = {0, true};
    check_subtree(ranges, ranges->root, &state);
    if (!state.is_right)
        return frag_fail(error, FRAG_E_INPUT,
                         "free ranges touch, overlap or are misjudged near 0x%llx",
                         (unsigned long long)state.end);
    return true;
}

void frag_ranges_keep(const frag_ranges *ranges, frag_image *image)
{
    frag_image_add(image, ranges, sizeof *ranges);
    frag_image_add(image, ranges->nodes, ranges->count * sizeof *ranges->nodes);
}

void frag_ranges_return(frag_ranges *ranges, frag_image *image)
{
    frag_ranges now = *ranges;
    frag_image_take(image, ranges, sizeof *ranges);
    ranges->nodes = now.nodes;
    ranges->capacity = now.capacity;
    frag_image_take(image, ranges->nodes, ranges->count * sizeof *ranges->nodes);
}
