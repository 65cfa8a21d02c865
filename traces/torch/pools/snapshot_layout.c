#include "traces/torch/pools/snapshot_layout.h"

#include <string.h>

#include "base/bits.h"
#include "base/error.h"
#include "base/memory.h"

/* A list mostly has a few hundred blocks; moving this many is as short as a search. Longer moves
 * count as a step for each cache line. */
enum { MOVED_EXPECTED = 4096, LINE_BLOCKS = 16 };

/* ---- free blocks in their lists */

/* Where the first block at or behind a size and an address stands in a list. */
static size_t find_place(const frag_free_layout *layout, const frag_free_layout_list *list,
                         uint64_t bytes, uint64_t address)
{
    size_t place = 0;
    for (size_t count = list->count; count > 0;) {
        size_t half = count / 2;
        const frag_free_layout_block *middle = &layout->blocks[list->blocks[place + half]];
        bool is_below = frag_pair_is_below(middle->bytes, middle->address, bytes, address);
        place += is_below ? half + 1 : 0;
        count = is_below ? count - half - 1 : half;
    }
    return place;
}

/* Makes room for a block in its list, or closes its gap. */
static void move_behind(frag_free_layout *layout, frag_free_layout_list *list, size_t from,
                        size_t to)
{
    size_t count = list->count - from;
    memmove(list->blocks + to, list->blocks + from, count * sizeof *list->blocks);
    layout->steps += count > MOVED_EXPECTED ? count / LINE_BLOCKS : 0;
}

static void insert(frag_free_layout *layout, uint32_t id)
{
    frag_free_layout_block *block = &layout->blocks[id];
    frag_free_layout_list *list = &layout->lists[block->list];
    size_t place = find_place(layout, list, block->bytes, block->address);
    list->blocks = frag_grow(list->blocks, &list->capacity, list->count + 1, sizeof *list->blocks);
    move_behind(layout, list, place, place + 1);
    list->blocks[place] = id;
    list->count++;
    block->is_free = true;
}

static void erase(frag_free_layout *layout, uint32_t id)
{
    frag_free_layout_block *block = &layout->blocks[id];
    frag_free_layout_list *list = &layout->lists[block->list];
    size_t place = find_place(layout, list, block->bytes, block->address);
    FRAG_ASSERT(place < list->count && list->blocks[place] == id);
    move_behind(layout, list, place + 1, place);
    list->count--;
    block->is_free = false;
}

static uint32_t block_from(const frag_free_layout *layout, uint32_t number, uint64_t bytes,
                           uint64_t address)
{
    const frag_free_layout_list *list = &layout->lists[number];
    size_t place = find_place(layout, list, bytes, address);
    return place < list->count ? list->blocks[place] : 0;
}

uint32_t frag_free_layout_best(frag_free_layout *layout, uint32_t list, uint64_t bytes)
{
    return block_from(layout, list, bytes, 0);
}

uint32_t frag_free_layout_after(frag_free_layout *layout, uint32_t block)
{
    const frag_free_layout_block *at = &layout->blocks[block];
    return block_from(layout, at->list, at->bytes, at->address + 1);
}

/* ---- blocks in their segments */

static uint32_t new_block(frag_free_layout *layout)
{
    uint32_t id = layout->spare;
    if (id != 0) {
        layout->spare = layout->blocks[id].next;
        return id;
    }
    if (layout->block_count == layout->block_capacity)
        layout->blocks = frag_grow(layout->blocks, &layout->block_capacity, layout->block_count + 1,
                                   sizeof *layout->blocks);
    return (uint32_t)layout->block_count++;
}

static void drop_block(frag_free_layout *layout, uint32_t id)
{
    layout->blocks[id].next = layout->spare;
    layout->spare = id;
}

/* Cuts a block that is in no list; returns the part behind, which is in none either. */
static uint32_t cut(frag_free_layout *layout, uint32_t id, uint64_t front_bytes)
{
    uint32_t behind = new_block(layout);
    frag_free_layout_block *block = &layout->blocks[id];
    layout->blocks[behind] = *block;
    frag_free_layout_block *rest = &layout->blocks[behind];
    rest->address += front_bytes;
    rest->bytes -= front_bytes;
    rest->prev = id;
    rest->is_vague = false;
    if (rest->next != 0)
        layout->blocks[rest->next].prev = behind;
    block->bytes = front_bytes;
    block->next = behind;
    return behind;
}

/* Adds a block to the one before it. */
static void merge(frag_free_layout *layout, uint32_t into, uint32_t id)
{
    frag_free_layout_block *block = &layout->blocks[into];
    block->bytes += layout->blocks[id].bytes;
    block->next = layout->blocks[id].next;
    if (block->next != 0)
        layout->blocks[block->next].prev = into;
    drop_block(layout, id);
}

uint32_t frag_free_layout_take(frag_free_layout *layout, uint32_t block, uint64_t address,
                               uint64_t bytes)
{
    uint32_t taken = block;
    uint64_t before_bytes = address - layout->blocks[block].address;
    erase(layout, block);
    if (before_bytes > 0) {
        taken = cut(layout, block, before_bytes);
        insert(layout, block);
    }
    if (layout->blocks[taken].bytes > bytes)
        insert(layout, cut(layout, taken, bytes));
    return taken;
}

void frag_free_layout_give(frag_free_layout *layout, uint32_t block, uint64_t since)
{
    uint32_t prev = layout->blocks[block].prev;
    uint32_t next = layout->blocks[block].next;
    if (next != 0 && layout->blocks[next].is_free) {
        erase(layout, next);
        merge(layout, block, next);
    }
    if (prev != 0 && layout->blocks[prev].is_free) {
        erase(layout, prev);
        merge(layout, prev, block);
        block = prev;
    }
    layout->blocks[block].since = since;
    insert(layout, block);
}

/* ---- segments */

void frag_free_layout_create(frag_free_layout *layout)
{
    *layout = (frag_free_layout){0};
    layout->blocks = frag_grow(NULL, &layout->block_capacity, 256, sizeof *layout->blocks);
    layout->blocks[0] = (frag_free_layout_block){0};
    layout->block_count = 1;
}

void frag_free_layout_destroy(frag_free_layout *layout)
{
    frag_held_ranges_destroy(&layout->segments);
    for (size_t i = 0; i < layout->list_count; i++)
        frag_free(layout->lists[i].blocks);
    frag_free(layout->blocks);
    frag_free(layout->lists);
    *layout = (frag_free_layout){0};
}

static bool is_list(const frag_free_layout_list *list, uint32_t colour, uint64_t stream,
                    bool is_small)
{
    return list->colour == colour && list->stream == stream && list->is_small == is_small;
}

uint32_t frag_free_layout_list_of(frag_free_layout *layout, uint32_t colour, uint64_t stream,
                                  bool is_small)
{
    if (layout->last_list < layout->list_count &&
        is_list(&layout->lists[layout->last_list], colour, stream, is_small))
        return layout->last_list;
    size_t at = 0;
    while (at < layout->list_count && !is_list(&layout->lists[at], colour, stream, is_small))
        at++;
    if (at == layout->list_count) {
        layout->lists =
            frag_grow(layout->lists, &layout->list_capacity, at + 1, sizeof *layout->lists);
        layout->lists[layout->list_count++] = (frag_free_layout_list){
            .stream = stream,
            .colour = colour,
            .is_small = is_small,
        };
    }
    layout->last_list = (uint32_t)at;
    return (uint32_t)at;
}

uint32_t frag_free_layout_add(frag_free_layout *layout, uint32_t list, uint64_t address,
                              uint64_t bytes, uint32_t piece, uint64_t since)
{
    uint32_t id = new_block(layout);
    frag_held_range range = {.address = address, .bytes = bytes, .pool = id};
    if (!frag_held_ranges_add(&layout->segments, &range)) {
        drop_block(layout, id);
        return 0;
    }
    layout->blocks[id] = (frag_free_layout_block){
        .address = address,
        .bytes = bytes,
        .since = since,
        .list = list,
        .piece = piece,
    };
    insert(layout, id);
    return id;
}

uint32_t frag_free_layout_remove(frag_free_layout *layout, uint64_t address)
{
    const frag_held_range *range = frag_held_ranges_find(&layout->segments, address);
    if (range == NULL || range->address != address)
        return UINT32_MAX;
    uint32_t id = range->pool;
    if (!layout->blocks[id].is_free || layout->blocks[id].next != 0)
        return UINT32_MAX;
    erase(layout, id);
    drop_block(layout, id);
    frag_held_ranges_remove(&layout->segments, address);
    return layout->blocks[id].piece;
}

uint32_t frag_free_layout_find(frag_free_layout *layout, uint64_t address)
{
    const frag_held_range *range = frag_held_ranges_find(&layout->segments, address);
    uint32_t id = range == NULL ? 0 : range->pool;
    while (id != 0 && address - layout->blocks[id].address >= layout->blocks[id].bytes) {
        id = layout->blocks[id].next;
        layout->steps++;
    }
    return id;
}
