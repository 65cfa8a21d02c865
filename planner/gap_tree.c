#include "planner/gap_tree.h"

#include <string.h>

#include "base/bits.h"
#include "base/memory.h"

/* Disjoint, ascending, never touching. */
typedef struct range {
    uint64_t start;
    uint64_t end;
} range;

typedef struct range_set {
    range *items;
    uint32_t count;
    uint32_t capacity;
} range_set;

typedef struct node {
    range_set whole; /* taken by what is kept here */
    range_set any;   /* taken by what is kept here or below */
} node;

/* A set as a search goes up through it: items below next end at or below the cursor. */
typedef struct climb {
    const range_set *set;
    uint32_t next;
} climb;

/* At most two nodes of each height make up a lifetime, and each has its path to the root. */
#define CLIMBS_MAX 160u

struct frag_gap_tree {
    uint32_t leaf_count; /* a power of two */
    node *nodes;         /* children of i: 2 i and 2 i + 1; the root is 1 */
    climb climbs[CLIMBS_MAX];
    uint32_t climb_count;
};

/* ---- sets */

/* The first item that ends above the address. */
static uint32_t first_above(const range_set *set, uint64_t address)
{
    uint32_t low = 0;
    uint32_t high = set->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (set->items[middle].end > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void add_range(range_set *set, uint64_t start, uint64_t end)
{
    uint32_t first = start > 0 ? first_above(set, start - 1) : 0;
    uint32_t last = first;
    while (last < set->count && set->items[last].start <= end) {
        start = set->items[last].start < start ? set->items[last].start : start;
        end = set->items[last].end > end ? set->items[last].end : end;
        last++;
    }
    if (last == first) {
        if (set->count == set->capacity) {
            set->capacity = set->capacity > 0 ? set->capacity * 2 : 2;
            set->items = frag_realloc(set->items, set->capacity, sizeof *set->items);
        }
        memmove(set->items + first + 1, set->items + first,
                (set->count - first) * sizeof *set->items);
        set->count++;
    } else if (last - first > 1) {
        memmove(set->items + first + 1, set->items + last,
                (set->count - last) * sizeof *set->items);
        set->count -= last - first - 1;
    }
    set->items[first] = (range){start, end};
}

/* ---- the tree */

frag_gap_tree *frag_gap_tree_create(uint32_t section_count)
{
    frag_gap_tree *tree = frag_alloc(1, sizeof *tree);
    tree->leaf_count = (uint32_t)frag_power_of_two_up(section_count > 0 ? section_count : 1);
    tree->nodes = frag_alloc((size_t)tree->leaf_count * 2, sizeof *tree->nodes);
    return tree;
}

void frag_gap_tree_destroy(frag_gap_tree *tree)
{
    if (tree == NULL)
        return;
    for (size_t i = 0; i < (size_t)tree->leaf_count * 2; i++) {
        frag_free(tree->nodes[i].whole.items);
        frag_free(tree->nodes[i].any.items);
    }
    frag_free(tree->nodes);
    frag_free(tree);
}

void frag_gap_tree_clear(frag_gap_tree *tree)
{
    for (size_t i = 0; i < (size_t)tree->leaf_count * 2; i++) {
        tree->nodes[i].whole.count = 0;
        tree->nodes[i].any.count = 0;
    }
}

/* The nodes that a lifetime is made of, and those above them, each once, from the leaves up. */
static void visit_nodes(frag_gap_tree *tree, uint32_t lower, uint32_t upper,
                        void (*visit)(frag_gap_tree *tree, node *at, bool is_whole,
                                      const range *taken),
                        const range *taken)
{
    uint32_t low = lower + tree->leaf_count;
    uint32_t high = upper + tree->leaf_count;
    /* What is above the last of the nodes, which is above the others of its side, too. */
    uint32_t low_path = 0;
    uint32_t high_path = 0;
    while (low < high || low_path > 0 || high_path > 0) {
        low_path /= 2;
        high_path /= 2;
        high_path = high_path == low_path ? 0 : high_path;
        if (low_path > 0)
            visit(tree, &tree->nodes[low_path], false, taken);
        if (high_path > 0)
            visit(tree, &tree->nodes[high_path], false, taken);
        if (low < high && (low & 1) != 0) {
            visit(tree, &tree->nodes[low], true, taken);
            low_path = low++;
        }
        if (low < high && (high & 1) != 0) {
            high--;
            visit(tree, &tree->nodes[high], true, taken);
            high_path = high;
        }
        low /= 2;
        high /= 2;
    }
}

/* Of the nodes of a lifetime and of those above, the set that conflicts with it. */
static void add_climb(frag_gap_tree *tree, node *at, bool is_whole, const range *taken)
{
    (void)taken;
    const range_set *set = is_whole ? &at->any : &at->whole;
    if (set->count == 0)
        return;
    FRAG_ASSERT(tree->climb_count < CLIMBS_MAX);
    tree->climbs[tree->climb_count++] = (climb){set, 0};
}

static void take_in_node(frag_gap_tree *tree, node *at, bool is_whole, const range *taken)
{
    (void)tree;
    if (is_whole)
        add_range(&at->whole, taken->start, taken->end);
    add_range(&at->any, taken->start, taken->end);
}

/* The lowest address at or above `at` from which size bytes are free in every set. */
static uint64_t find_room(frag_gap_tree *tree, uint64_t at, uint64_t size, uint64_t alignment)
{
    uint32_t agreed = 0;
    uint32_t i = 0;
    at = frag_round_up(at, alignment);
    while (agreed < tree->climb_count) {
        climb *of = &tree->climbs[i];
        const range_set *set = of->set;
        bool has_moved = false;
        while (of->next < set->count && set->items[of->next].start < at + size) {
            if (set->items[of->next].end > at) {
                at = frag_round_up(set->items[of->next].end, alignment);
                has_moved = true;
            }
            of->next++;
        }
        agreed = has_moved ? 1 : agreed + 1;
        i = i + 1 < tree->climb_count ? i + 1 : 0;
    }
    return at;
}

/* Where the free range that begins at `at` ends: UINT64_MAX above everything. */
static uint64_t find_end(const frag_gap_tree *tree)
{
    uint64_t end = UINT64_MAX;
    for (uint32_t i = 0; i < tree->climb_count; i++) {
        const climb *of = &tree->climbs[i];
        if (of->next < of->set->count && of->set->items[of->next].start < end)
            end = of->set->items[of->next].start;
    }
    return end;
}

uint64_t frag_gap_tree_find(frag_gap_tree *tree, uint32_t lower, uint32_t upper, uint64_t size,
                            uint64_t alignment, frag_gap_choice choice)
{
    tree->climb_count = 0;
    visit_nodes(tree, lower, upper, add_climb, NULL);
    uint64_t offset = find_room(tree, 0, size, alignment);
    if (choice == FRAG_GAP_FIRST)
        return offset;
    uint64_t best = offset;
    uint64_t best_rest = UINT64_MAX;
    for (;;) {
        uint64_t end = find_end(tree);
        /* On top of everything comes last. */
        if (end == UINT64_MAX)
            return best_rest == UINT64_MAX ? offset : best;
        if (end - offset - size < best_rest) {
            best = offset;
            best_rest = end - offset - size;
        }
        if (best_rest == 0)
            return best;
        offset = find_room(tree, end, size, alignment);
    }
}

void frag_gap_tree_take(frag_gap_tree *tree, uint32_t lower, uint32_t upper, uint64_t offset,
                        uint64_t size)
{
    visit_nodes(tree, lower, upper, take_in_node, &(range){offset, offset + size});
}
