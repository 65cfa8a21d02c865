#include "allocators/index/exact_lists.h"

#define NONE UINT32_MAX
#define FIRST_SLOTS 64u
/* Fibonacci hashing: the golden ratio spreads sizes that are multiples of a power of two. */
#define SPREAD 0x9e3779b97f4a7c15u

/* At most half of the slots are taken; all tables before the last have as many slots again. */
size_t frag_exact_lists_bytes(uint32_t id_count)
{
    return ((size_t)id_count * 8 + 2 * FIRST_SLOTS) * sizeof(frag_exact_slot) +
           (size_t)id_count * sizeof(frag_exact_link) + frag_walk_order_bytes(id_count) +
           (size_t)34 * 64;
}

void frag_exact_lists_create(frag_exact_lists *lists, frag_arena *arena, uint32_t id_count)
{
    *lists = (frag_exact_lists){
        .arena = arena,
        .slots = frag_arena_take(arena, FIRST_SLOTS, sizeof *lists->slots),
        .slot_count = FIRST_SLOTS,
        .round = 1,
        .links = frag_arena_take(arena, id_count, sizeof *lists->links),
    };
    frag_walk_order_create(&lists->order, arena, id_count);
}

/* The slot of a size, or the empty one where it would be. */
static frag_exact_slot *find_slot(const frag_exact_lists *lists, uint64_t size)
{
    uint32_t at = (uint32_t)((size * SPREAD) >> 32) & (lists->slot_count - 1);
    while (lists->slots[at].size != 0 && lists->slots[at].size != size)
        at = (at + 1) & (lists->slot_count - 1);
    return &lists->slots[at];
}

static void double_slots(frag_exact_lists *lists)
{
    const frag_exact_slot *old = lists->slots;
    uint32_t count = lists->slot_count;
    lists->slot_count = 2 * count;
    lists->slots = frag_arena_take(lists->arena, lists->slot_count, sizeof *lists->slots);
    for (uint32_t i = 0; i < count; i++)
        if (old[i].size != 0)
            *find_slot(lists, old[i].size) = old[i];
}

static frag_exact_slot *make_slot(frag_exact_lists *lists, uint64_t size)
{
    frag_exact_slot *slot = find_slot(lists, size);
    if (slot->size == size)
        return slot;
    if (2 * (lists->size_count + 1) > lists->slot_count) {
        double_slots(lists);
        slot = find_slot(lists, size);
    }
    lists->size_count++;
    *slot = (frag_exact_slot){.size = size, .first = NONE};
    return slot;
}

static void link_first(frag_exact_lists *lists, frag_exact_slot *slot, uint32_t id)
{
    lists->links[id] = (frag_exact_link){slot->first, NONE};
    if (slot->first != NONE)
        lists->links[slot->first].previous = id;
    slot->first = id;
}

void frag_exact_insert_fresh(frag_exact_lists *lists, uint32_t id, uint64_t size)
{
    link_first(lists, make_slot(lists, size), id);
}

void frag_exact_insert(frag_exact_lists *lists, uint32_t id, uint64_t size)
{
    frag_exact_slot *slot = make_slot(lists, size);
    if (slot->round != lists->round) {
        slot->round = lists->round;
        frag_walk_order_add(&lists->order, size);
    }
    link_first(lists, slot, id);
}

void frag_exact_remove(frag_exact_lists *lists, uint32_t id, uint64_t size)
{
    frag_exact_link link = lists->links[id];
    if (link.previous != NONE)
        lists->links[link.previous].next = link.next;
    else
        find_slot(lists, size)->first = link.next;
    if (link.next != NONE)
        lists->links[link.next].previous = link.previous;
}

bool frag_exact_newest(const frag_exact_lists *lists, uint64_t size, uint32_t *id)
{
    const frag_exact_slot *slot = find_slot(lists, size);
    *id = slot->first;
    return slot->size == size && slot->first != NONE;
}

/* From the oldest to the newest; visiting may change nothing. */
static void visit_list(const frag_exact_lists *lists, uint32_t newest,
                       void (*visit)(void *context, uint32_t id), void *context)
{
    uint32_t id = newest;
    while (id != NONE && lists->links[id].next != NONE)
        id = lists->links[id].next;
    for (; id != NONE; id = lists->links[id].previous)
        visit(context, id);
}

void frag_exact_visit_all(frag_exact_lists *lists, bool is_ascending,
                          void (*visit)(void *context, uint32_t id), void *context)
{
    uint32_t count = 0;
    const uint64_t *sizes = is_ascending ? frag_walk_order_take_sorted(&lists->order, &count)
                                         : frag_walk_order_take(&lists->order, &count);
    lists->round++;
    for (uint32_t i = 0; i < count; i++)
        visit_list(lists, find_slot(lists, sizes[i])->first, visit, context);
}

void frag_exact_visit(const frag_exact_lists *lists,
                      void (*visit)(void *context, uint32_t id, uint64_t size), void *context)
{
    for (uint32_t i = 0; i < lists->slot_count; i++)
        if (lists->slots[i].size != 0)
            for (uint32_t id = lists->slots[i].first; id != NONE; id = lists->links[id].next)
                visit(context, id, lists->slots[i].size);
}
