/* The chunks and stitched ranges of gmlake: splitting and coalescing free blocks, stitching, and
 * giving memory back to the device. */
#include <stdlib.h>

#include "allocators/frameworks/gmlake_state.h"
#include "base/bits.h"

#define NONE FRAG_LAKE_NONE

/* ---- free blocks */

void frag_lake_insert(frag_policy *policy, uint32_t id)
{
    const frag_block *block = &policy->space.blocks[id];
    if (!frag_lake_is_usable(policy, block->link))
        return;
    frag_free_index_insert(&policy->store, frag_lake_index(policy, block->link), id);
    if (policy->sides[block->link].kind == FRAG_LAKE_HOME)
        policy->free_bytes[policy->sides[block->link].stream] += block->bytes;
}

void frag_lake_take_out(frag_policy *policy, uint32_t id)
{
    const frag_block *block = &policy->space.blocks[id];
    frag_free_index_remove(&policy->store, frag_lake_index(policy, block->link), id);
    if (policy->sides[block->link].kind == FRAG_LAKE_HOME)
        policy->free_bytes[policy->sides[block->link].stream] -= block->bytes;
}

uint32_t frag_lake_add(frag_policy *policy, uint64_t address, uint64_t bytes, frag_lake_kind kind,
                       uint32_t stream)
{
    uint32_t header = frag_block_space_add_segment(&policy->space, address, bytes);
    policy->sides[header] = (frag_lake_side){.stream = stream, .runs = NONE, .kind = (uint8_t)kind};
    uint32_t hole = frag_block_space_append_hole(&policy->space, header, address, bytes);
    policy->space.blocks[hole].link = header;
    policy->sides[hole] = (frag_lake_side){.freed = 0};
    frag_lake_insert(policy, hole);
    return header;
}

static void enter(frag_policy *policy, uint32_t *entry)
{
    if (*entry == 0)
        *entry = ++policy->entry_count;
}

void frag_lake_enter_both(frag_policy *policy, uint32_t stream)
{
    enter(policy, &policy->entries[stream].broken);
    enter(policy, &policy->entries[stream].whole);
}

/* A range of a home was free and is not, or the other way round: stitched ranges with runs there
 * stop or start to be usable. */
static void turn(frag_policy *policy, uint32_t home, uint64_t address, uint64_t bytes,
                 bool becomes_busy)
{
    uint64_t end = address + bytes;
    for (uint32_t at = policy->sides[home].runs; at != NONE; at = policy->runs[at].next_of_home) {
        const frag_lake_run *run = &policy->runs[at];
        uint64_t from = run->address > address ? run->address : address;
        uint64_t to = run->address + run->bytes < end ? run->address + run->bytes : end;
        if (from >= to)
            continue;
        frag_lake_side *range = &policy->sides[run->stitched];
        uint32_t whole = policy->space.blocks[run->stitched].next;
        if (becomes_busy && frag_lake_is_usable(policy, run->stitched)) {
            frag_lake_take_out(policy, whole);
            enter(policy, &policy->entries[range->stream].broken);
        }
        range->busy_bytes =
            becomes_busy ? range->busy_bytes + (to - from) : range->busy_bytes - (to - from);
        if (!becomes_busy && frag_lake_is_usable(policy, run->stitched)) {
            frag_lake_insert(policy, whole);
            enter(policy, &policy->entries[range->stream].whole);
        }
    }
}

uint32_t frag_lake_cut(frag_policy *policy, uint32_t hole, uint64_t bytes)
{
    frag_block_space *space = &policy->space;
    frag_lake_take_out(policy, hole);
    uint32_t id = hole;
    if (space->blocks[hole].bytes > bytes) {
        id = frag_block_cut(space, hole, bytes);
        space->blocks[id].link = space->blocks[hole].link;
        frag_lake_insert(policy, hole);
    }
    space->blocks[id].state = FRAG_BLOCK_BUSY;
    policy->sides[id].is_lent = false;
    turn(policy, space->blocks[id].link, space->blocks[id].address, bytes, true);
    return id;
}

void frag_lake_put(frag_policy *policy, uint32_t id, uint64_t freed)
{
    frag_block_space *space = &policy->space;
    frag_block *block = &space->blocks[id];
    uint32_t next = block->next;
    uint32_t low = block->previous;
    block->state = FRAG_BLOCK_HOLE;
    /* No free of the stream came later. */
    policy->sides[id].freed = freed;
    turn(policy, block->link, block->address, block->bytes, false);
    if (space->blocks[next].state == FRAG_BLOCK_HOLE) {
        frag_lake_take_out(policy, next);
        block->bytes += space->blocks[next].bytes;
        frag_block_unlink(space, next);
    }
    if (space->blocks[low].state == FRAG_BLOCK_HOLE) {
        frag_lake_take_out(policy, low);
        space->blocks[low].bytes += block->bytes;
        policy->sides[low].freed = freed;
        frag_block_unlink(space, id);
        id = low;
    }
    frag_lake_insert(policy, id);
}

/* ---- stitched ranges */

/* The free piece of a home that holds this address. */
static uint32_t find_piece(const frag_policy *policy, uint32_t home, uint64_t address)
{
    const frag_block *blocks = policy->space.blocks;
    uint32_t id = blocks[home].next;
    while (blocks[id].address + blocks[id].bytes <= address)
        id = blocks[id].next;
    FRAG_ASSERT(id != home && blocks[id].state == FRAG_BLOCK_HOLE);
    return id;
}

/* Makes a range inside a free piece busy: what lies on both sides of it stays free. */
static uint32_t lend(frag_policy *policy, uint32_t home, uint64_t address, uint64_t bytes)
{
    frag_block_space *space = &policy->space;
    uint32_t piece = find_piece(policy, home, address);
    uint64_t before = address - space->blocks[piece].address;
    if (before > 0) {
        frag_lake_take_out(policy, piece);
        uint32_t low = frag_block_cut(space, piece, before);
        space->blocks[low].link = home;
        space->blocks[low].state = FRAG_BLOCK_HOLE;
        policy->sides[low].freed = policy->sides[piece].freed;
        frag_lake_insert(policy, low);
        frag_lake_insert(policy, piece);
    }
    uint32_t id = frag_lake_cut(policy, piece, bytes);
    policy->sides[id].is_lent = true;
    return id;
}

static void add_run(frag_policy *policy, frag_lake_run run, uint32_t *last)
{
    uint32_t id = policy->spare_run;
    if (id != NONE)
        policy->spare_run = policy->runs[id].next_of_range;
    else
        id = policy->run_count++;
    FRAG_ASSERT(id < policy->run_max);
    run.next_of_home = policy->sides[run.home].runs;
    run.last_of_home = NONE;
    run.next_of_range = NONE;
    if (run.next_of_home != NONE)
        policy->runs[run.next_of_home].last_of_home = id;
    policy->sides[run.home].runs = id;
    if (*last == NONE)
        policy->sides[run.stitched].runs = id;
    else
        policy->runs[*last].next_of_range = id;
    *last = id;
    policy->runs[id] = run;
}

/* Returns the next run of the range. */
static uint32_t drop_run(frag_policy *policy, uint32_t id)
{
    frag_lake_run *run = &policy->runs[id];
    uint32_t next = run->next_of_range;
    if (run->last_of_home == NONE)
        policy->sides[run->home].runs = run->next_of_home;
    else
        policy->runs[run->last_of_home].next_of_home = run->next_of_home;
    if (run->next_of_home != NONE)
        policy->runs[run->next_of_home].last_of_home = run->last_of_home;
    run->next_of_range = policy->spare_run;
    policy->spare_run = id;
    return next;
}

/* Spare runs are counted no more than needed. */
static bool has_runs(const frag_policy *policy, uint32_t first_chosen)
{
    uint64_t left = policy->run_max - policy->run_count;
    uint32_t spare = policy->spare_run;
    for (uint32_t id = first_chosen; id != NONE; id = policy->sides[id].next_chosen) {
        if (left > 0) {
            left--;
            continue;
        }
        if (spare == NONE)
            return false;
        spare = policy->runs[spare].next_of_range;
    }
    return true;
}

/* Maps the pieces side by side a second time. */
static bool map_pieces(frag_policy *policy, uint32_t first_chosen, uint64_t address, uint64_t bytes)
{
    const frag_block *blocks = policy->space.blocks;
    frag_device *device = policy->space.device;
    uint64_t done = 0;
    for (uint32_t id = first_chosen; done < bytes; id = policy->sides[id].next_chosen) {
        uint64_t left = bytes - done;
        uint64_t part = blocks[id].bytes < left ? blocks[id].bytes : left;
        if (frag_device_map_again(device, address + done, part, blocks[id].address) !=
            FRAG_DEVICE_OK) {
            if (done > 0)
                (void)frag_device_unmap_again(device, address, done);
            return false;
        }
        done += part;
    }
    return true;
}

uint32_t frag_lake_stitch(frag_policy *policy, uint32_t first_chosen, uint64_t bytes)
{
    const frag_block *blocks = policy->space.blocks;
    frag_device *device = policy->space.device;
    uint32_t stream = policy->sides[blocks[first_chosen].link].stream;
    uint64_t address = 0;
    frag_device_for(device, stream, device->for_pool);
    if (!has_runs(policy, first_chosen) ||
        frag_device_reserve(device, bytes, &address) != FRAG_DEVICE_OK)
        return NONE;
    if (!map_pieces(policy, first_chosen, address, bytes)) {
        (void)frag_device_unreserve(device, address, bytes);
        return NONE;
    }
    uint32_t header = frag_lake_add(policy, address, bytes, FRAG_LAKE_STITCHED, stream);
    uint32_t last = NONE;
    uint64_t done = 0;
    for (uint32_t id = first_chosen; done < bytes; id = policy->sides[id].next_chosen) {
        uint64_t left = bytes - done;
        frag_lake_run run = {.address = blocks[id].address,
                             .bytes = blocks[id].bytes < left ? blocks[id].bytes : left,
                             .home = blocks[id].link,
                             .stitched = header,
                             .piece = NONE};
        add_run(policy, run, &last);
        done += run.bytes;
        if (policy->sides[id].freed > policy->sides[header].freed)
            policy->sides[header].freed = policy->sides[id].freed;
    }
    policy->stitched_bytes += bytes;
    policy->counted_bytes += bytes;
    return header;
}

void frag_lake_lend(frag_policy *policy, uint32_t header, uint64_t bytes)
{
    frag_lake_run *runs = policy->runs;
    frag_device *device = policy->space.device;
    uint32_t whole = policy->space.blocks[header].next;
    uint64_t address = policy->space.blocks[header].address;
    frag_device_for(device, policy->sides[header].stream, device->for_pool);
    frag_lake_take_out(policy, whole);
    policy->sides[header].lent_bytes = bytes;
    policy->space.blocks[whole].state = FRAG_BLOCK_BUSY;
    uint64_t done = 0;
    for (uint32_t at = policy->sides[header].runs; done < bytes; at = runs[at].next_of_range) {
        uint64_t left = bytes - done;
        uint64_t part = runs[at].bytes < left ? runs[at].bytes : left;
        runs[at].piece = lend(policy, runs[at].home, runs[at].address, part);
        frag_device_tell_use(device, runs[at].address, address + done, part);
        done += part;
    }
}

void frag_lake_free_stitched(frag_policy *policy, uint32_t header)
{
    frag_lake_side *range = &policy->sides[header];
    uint32_t whole = policy->space.blocks[header].next;
    frag_device *device = policy->space.device;
    uint64_t place = policy->space.blocks[header].address;
    frag_device_for(device, range->stream, device->for_pool);
    range->freed = ++policy->freed[range->stream];
    for (uint32_t at = range->runs; at != NONE && policy->runs[at].piece != NONE;
         at = policy->runs[at].next_of_range) {
        uint64_t bytes = policy->space.blocks[policy->runs[at].piece].bytes;
        frag_device_tell_use(device, place, policy->runs[at].address, bytes);
        place += bytes;
        frag_lake_put(policy, policy->runs[at].piece, range->freed);
        policy->runs[at].piece = NONE;
    }
    range->lent_bytes = 0;
    policy->space.blocks[whole].state = FRAG_BLOCK_HOLE;
    enter(policy, &policy->entries[range->stream].broken);
    if (range->busy_bytes == 0)
        enter(policy, &policy->entries[range->stream].whole);
    frag_lake_insert(policy, whole);
}

/* Its header stays in the list of segments until that is swept. */
static void take_apart(frag_policy *policy, uint32_t header)
{
    frag_block *at = &policy->space.blocks[header];
    frag_device *device = policy->space.device;
    uint32_t whole = at->next;
    frag_device_for(device, policy->sides[header].stream, device->for_pool);
    if (frag_lake_is_usable(policy, header))
        frag_lake_take_out(policy, whole);
    for (uint32_t run = policy->sides[header].runs; run != NONE;)
        run = drop_run(policy, run);
    (void)frag_device_unmap_again(device, at->address, at->bytes);
    (void)frag_device_unreserve(device, at->address, at->bytes);
    policy->stitched_bytes -= at->bytes;
    frag_block_give_record(&policy->space, whole);
    at->state = FRAG_BLOCK_UNUSED;
}

/* The order in which GMLake comes across them: those with a piece in use first, by the newest entry
 * of their streams, then by their last frees. */
static int compare_doomed(const void *left, const void *right)
{
    const frag_lake_doomed *a = left, *b = right;
    if (a->is_whole != b->is_whole)
        return a->is_whole ? 1 : -1;
    return frag_compare_then(
        frag_compare(b->entry, a->entry),
        frag_compare_then(frag_compare(a->freed, b->freed),
                          frag_compare_then(frag_compare(a->bytes, b->bytes),
                                            frag_compare(a->address, b->address))));
}

void frag_lake_collect(frag_policy *policy)
{
    const frag_block *blocks = policy->space.blocks;
    size_t count = 0;
    for (uint32_t id = policy->space.first_header; id != NONE; id = blocks[id].link) {
        const frag_lake_side *range = &policy->sides[id];
        if (range->kind != FRAG_LAKE_STITCHED || range->lent_bytes > 0)
            continue;
        const frag_lake_entries *entries = &policy->entries[range->stream];
        bool is_whole = range->busy_bytes == 0;
        policy->doomed[count++] = (frag_lake_doomed){
            .is_whole = is_whole,
            .entry = is_whole ? entries->whole : entries->broken,
            .freed = range->freed,
            .bytes = blocks[id].bytes,
            .address = blocks[id].address,
            .header = id,
        };
    }
    if (count == 0)
        return;
    qsort(policy->doomed, count, sizeof *policy->doomed, compare_doomed);
    for (size_t i = 0; i < count; i++) {
        policy->counted_bytes -= policy->doomed[i].bytes;
        take_apart(policy, policy->doomed[i].header);
    }
    frag_block_space_sweep(&policy->space);
}

/* ---- giving back */

/* The stitched range that a walk over the chunks of a home comes across first; of those that begin
 * at one chunk there the oldest. NONE: there is none. */
static uint32_t first_stitched(const frag_policy *policy, uint32_t home)
{
    const frag_lake_run *first = NULL;
    for (uint32_t at = policy->sides[home].runs; at != NONE; at = policy->runs[at].next_of_home)
        if (first == NULL || policy->runs[at].address <= first->address)
            first = &policy->runs[at];
    return first != NULL ? first->stitched : NONE;
}

/* A range that somebody has may reach into a free home beyond what was granted. */
static bool is_mapped_for_someone(const frag_policy *policy, uint32_t home)
{
    for (uint32_t at = policy->sides[home].runs; at != NONE; at = policy->runs[at].next_of_home)
        if (policy->sides[policy->runs[at].stitched].lent_bytes > 0)
            return true;
    return false;
}

static void release_segment(frag_policy *policy, uint32_t hole)
{
    frag_block_space *space = &policy->space;
    frag_device *device = space->device;
    const frag_block *block = &space->blocks[hole];
    uint32_t header = block->link;
    for (uint32_t range = first_stitched(policy, header); range != NONE;
         range = first_stitched(policy, header))
        take_apart(policy, range);
    frag_device_for(device, policy->sides[header].stream, device->for_pool);
    frag_lake_take_out(policy, hole);
    policy->held_bytes -= block->bytes;
    if (policy->sides[header].kind == FRAG_LAKE_HOME) {
        (void)frag_device_unmap(device, block->address, block->bytes);
        (void)frag_device_unreserve(device, block->address, block->bytes);
    } else {
        (void)frag_device_free(device, block->address, block->bytes);
    }
    frag_block_give_record(space, hole);
    space->blocks[header].state = FRAG_BLOCK_UNUSED;
}

typedef struct hole_list {
    frag_policy *policy;
    uint32_t first;
    uint32_t last;
} hole_list;

static void keep_whole(void *context, uint32_t id)
{
    hole_list *list = context;
    const frag_policy *policy = list->policy;
    uint32_t header = policy->space.blocks[id].link;
    if (policy->space.blocks[id].bytes != policy->space.blocks[header].bytes ||
        is_mapped_for_someone(policy, header))
        return;
    policy->sides[id].next_chosen = NONE;
    if (list->last == NONE)
        list->first = id;
    else
        policy->sides[list->last].next_chosen = id;
    list->last = id;
}

void frag_lake_release(frag_policy *policy)
{
    static const frag_lake_kind kinds[] = {FRAG_LAKE_HOME, FRAG_LAKE_SMALL};
    bool has_gone = false;
    for (size_t kind = 0; kind < 2; kind++) {
        hole_list list = {.policy = policy, .first = NONE, .last = NONE};
        for (uint32_t i = 0; i < policy->stream_count; i++)
            frag_free_index_visit(&policy->store,
                                  &policy->indexes[3 * policy->streams[i] + (uint32_t)kinds[kind]],
                                  keep_whole, &list);
        for (uint32_t id = list.first; id != NONE;) {
            uint32_t next = policy->sides[id].next_chosen;
            release_segment(policy, id);
            id = next;
            has_gone = true;
        }
    }
    if (has_gone)
        frag_block_space_sweep(&policy->space);
}
