#include "workload/statistical/live_set.h"

#include "base/bytes.h"
#include "base/memory.h"
#include "workload/statistical/draw.h"

void frag_live_set_begin(frag_live_set *set, frag_builder *builder, uint64_t request_max)
{
    *set = (frag_live_set){.builder = builder, .oldest = FRAG_NO_BLOCK, .newest = FRAG_NO_BLOCK};
    set->blocks = frag_alloc((size_t)request_max, sizeof *set->blocks);
    set->live = frag_alloc((size_t)request_max, sizeof *set->live);
    set->due = frag_alloc((size_t)request_max, sizeof *set->due);
    frag_builder_expect(builder, 2 * request_max);
}

void frag_live_set_end(frag_live_set *set)
{
    frag_free(set->blocks);
    frag_free(set->live);
    frag_free(set->due);
}

/* ---- the heap: what is due first is at the top; of equals the newest */
static bool is_before(frag_due_block a, frag_due_block b)
{
    return a.request != b.request ? a.request < b.request : a.block > b.block;
}

static void push_due(frag_live_set *set, frag_due_block added)
{
    uint32_t at = set->due_count++;
    for (; at > 0 && is_before(added, set->due[(at - 1) / 2]); at = (at - 1) / 2)
        set->due[at] = set->due[(at - 1) / 2];
    set->due[at] = added;
}

static uint32_t pop_due(frag_live_set *set)
{
    uint32_t block = set->due[0].block;
    frag_due_block last = set->due[--set->due_count];
    uint32_t at = 0;
    for (uint32_t child = 1; child < set->due_count; child = 2 * at + 1) {
        if (child + 1 < set->due_count && is_before(set->due[child + 1], set->due[child]))
            child++;
        if (!is_before(set->due[child], last))
            break;
        set->due[at] = set->due[child];
        at = child;
    }
    set->due[at] = last;
    return block;
}

static bool is_live(const frag_live_set *set, uint32_t block)
{
    return set->blocks[block].place != FRAG_NO_BLOCK;
}

/* ---- events */
uint32_t frag_live_set_request(frag_live_set *set, uint64_t bytes, uint64_t stream,
                               uint64_t lifetime)
{
    uint32_t number = set->block_count++;
    frag_live_block *block = &set->blocks[number];
    *block = (frag_live_block){.bytes = bytes,
                               .slot = frag_builder_slot_take(set->builder),
                               .place = set->live_count,
                               .older = set->newest,
                               .newer = FRAG_NO_BLOCK};
    set->live[set->live_count++] = number;
    *(set->newest != FRAG_NO_BLOCK ? &set->blocks[set->newest].newer : &set->oldest) = number;
    set->newest = number;
    set->bytes += bytes;
    if (lifetime != FRAG_UNLIMITED)
        push_due(set, (frag_due_block){number + 1 + lifetime, number});
    frag_builder_add(set->builder, &(frag_build_event){.op = FRAG_OP_ALLOC,
                                                       .slot = block->slot,
                                                       .bytes = bytes,
                                                       .stream = stream});
    return number;
}

void frag_live_set_release(frag_live_set *set, uint32_t number)
{
    frag_live_block *block = &set->blocks[number];
    uint32_t moved = set->live[--set->live_count];
    set->live[block->place] = moved;
    set->blocks[moved].place = block->place;
    block->place = FRAG_NO_BLOCK;
    *(block->older != FRAG_NO_BLOCK ? &set->blocks[block->older].newer : &set->oldest) =
        block->newer;
    *(block->newer != FRAG_NO_BLOCK ? &set->blocks[block->newer].older : &set->newest) =
        block->older;
    set->bytes -= block->bytes;
    frag_builder_add(set->builder, &(frag_build_event){.op = FRAG_OP_FREE, .slot = block->slot});
    frag_builder_slot_give(set->builder, block->slot);
}

void frag_live_set_expire(frag_live_set *set)
{
    while (set->due_count > 0 && set->due[0].request <= set->block_count) {
        uint32_t block = pop_due(set);
        if (is_live(set, block))
            frag_live_set_release(set, block);
    }
}

static uint32_t choose(frag_live_set *set, frag_release release, uint64_t *random)
{
    switch (release) {
    case FRAG_RELEASE_RANDOM:
        return set->live[frag_draw_below(set->live_count, random)];
    case FRAG_RELEASE_OLDEST:
        return set->oldest;
    case FRAG_RELEASE_NEWEST:
        break;
    case FRAG_RELEASE_DUE:
        while (set->due_count > 0) {
            uint32_t block = pop_due(set);
            if (is_live(set, block))
                return block;
        }
    }
    return set->newest;
}

void frag_live_set_shrink(frag_live_set *set, uint64_t bytes, frag_release release,
                          uint64_t *random)
{
    while (set->bytes > bytes && set->live_count > 0)
        frag_live_set_release(set, choose(set, release, random));
}
