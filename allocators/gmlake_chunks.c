#include "allocators/gmlake_state.h"

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
    policy->sides[header] = (frag_lake_side){.stream = stream, .runs = NONE, .kind = kind};
    uint32_t hole = frag_block_space_append_hole(&policy->space, header, address, bytes);
    policy->space.blocks[hole].link = header;
    frag_lake_insert(policy, hole);
    return header;
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
        if (becomes_busy && range->busy_bytes == 0)
            frag_lake_take_out(policy, whole);
        range->busy_bytes =
            becomes_busy ? range->busy_bytes + (to - from) : range->busy_bytes - (to - from);
        if (range->busy_bytes == 0)
            frag_lake_insert(policy, whole);
    }
}

uint32_t frag_lake_cut(frag_policy *policy, uint32_t hole, uint64_t bytes, frag_lake_use use)
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
    policy->sides[id].use = use;
    turn(policy, space->blocks[id].link, space->blocks[id].address, bytes, true);
    return id;
}

void frag_lake_put(frag_policy *policy, uint32_t id)
{
    frag_block_space *space = &policy->space;
    frag_block *block = &space->blocks[id];
    uint32_t next = block->next;
    uint32_t low = block->previous;
    block->state = FRAG_BLOCK_HOLE;
    turn(policy, block->link, block->address, block->bytes, false);
    if (space->blocks[next].state == FRAG_BLOCK_HOLE) {
        frag_lake_take_out(policy, next);
        block->bytes += space->blocks[next].bytes;
        frag_block_unlink(space, next);
    }
    if (space->blocks[low].state == FRAG_BLOCK_HOLE) {
        frag_lake_take_out(policy, low);
        space->blocks[low].bytes += block->bytes;
        frag_block_unlink(space, id);
        id = low;
    }
    frag_lake_insert(policy, id);
}

/* ---- where chunks are */

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

/* Makes a range inside a free piece busy, and no more than that. Returns the block. */
static uint32_t cut_out(frag_policy *policy, uint32_t home, uint64_t address, uint64_t bytes,
                        frag_lake_use use)
{
    uint32_t piece = find_piece(policy, home, address);
    uint64_t before = address - policy->space.blocks[piece].address;
    if (before == 0)
        return frag_lake_cut(policy, piece, bytes, use);
    uint32_t low = frag_lake_cut(policy, piece, before, use);
    uint32_t id = frag_lake_cut(policy, piece, bytes, use);
    frag_lake_put(policy, low);
    return id;
}

/* Moves the chunks of a run; neither place may be in use. The last work on them may still be on its
 * way on their stream, so the first move of a request waits for that. false: they were lost. */
static bool move(frag_policy *policy, frag_lake_run *run, bool goes_home)
{
    frag_device *device = policy->space.device;
    uint64_t from = goes_home ? run->place : run->address;
    uint64_t to = goes_home ? run->address : run->place;
    if (!policy->has_waited)
        frag_device_stream_wait(device, policy->sides[run->home].stream);
    policy->has_waited = true;
    device->for_stream = policy->sides[run->home].stream;
    bool is_gone = frag_device_unmap(device, from, run->bytes) == FRAG_DEVICE_OK;
    FRAG_ASSERT(is_gone || device->has_failed);
    run->is_here = !goes_home;
    if (frag_device_map(device, to, run->bytes) == FRAG_DEVICE_OK)
        return true;
    run->is_here = false;
    policy->held_bytes -= run->bytes;
    (void)cut_out(policy, run->home, run->address, run->bytes, FRAG_LAKE_LOST);
    return false;
}

/* Brings all runs that reach into this range home, whole. */
static bool bring_range_home(frag_policy *policy, uint32_t home, uint64_t address, uint64_t bytes)
{
    bool are_kept = true;
    for (uint32_t at = policy->sides[home].runs; at != NONE; at = policy->runs[at].next_of_home) {
        frag_lake_run *run = &policy->runs[at];
        if (run->is_here && run->address < address + bytes && address < run->address + run->bytes)
            are_kept = move(policy, run, true) && are_kept;
    }
    return are_kept;
}

bool frag_lake_bring_home(frag_policy *policy, uint32_t hole, uint64_t bytes)
{
    const frag_block *block = &policy->space.blocks[hole];
    return bring_range_home(policy, block->link, block->address, bytes);
}

/* ---- stitched ranges */

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

uint32_t frag_lake_stitch(frag_policy *policy, uint32_t first_chosen, uint64_t bytes)
{
    const frag_block *blocks = policy->space.blocks;
    uint64_t address = 0;
    if (!has_runs(policy, first_chosen) ||
        frag_device_reserve(policy->space.device, bytes, &address) != FRAG_DEVICE_OK)
        return NONE;
    uint32_t stream = policy->sides[blocks[first_chosen].link].stream;
    uint32_t header = frag_lake_add(policy, address, bytes, FRAG_LAKE_STITCHED, stream);
    uint32_t last = NONE;
    uint64_t done = 0;
    for (uint32_t id = first_chosen; done < bytes; id = policy->sides[id].next_chosen) {
        uint64_t left = bytes - done;
        frag_lake_run run = {.address = blocks[id].address,
                             .bytes = blocks[id].bytes < left ? blocks[id].bytes : left,
                             .place = address + done,
                             .home = blocks[id].link,
                             .stitched = header,
                             .piece = NONE};
        add_run(policy, run, &last);
        done += run.bytes;
    }
    policy->stitched_bytes += bytes;
    return header;
}

bool frag_lake_grant_stitched(frag_policy *policy, uint32_t header)
{
    frag_lake_run *runs = policy->runs;
    for (uint32_t at = policy->sides[header].runs; at != NONE; at = runs[at].next_of_range)
        if (!runs[at].is_here &&
            (!bring_range_home(policy, runs[at].home, runs[at].address, runs[at].bytes) ||
             !move(policy, &runs[at], false)))
            return false;
    for (uint32_t at = policy->sides[header].runs; at != NONE; at = runs[at].next_of_range)
        runs[at].piece =
            cut_out(policy, runs[at].home, runs[at].address, runs[at].bytes, FRAG_LAKE_LENT);
    uint32_t whole = policy->space.blocks[header].next;
    policy->space.blocks[whole].state = FRAG_BLOCK_BUSY;
    policy->sides[whole].use = FRAG_LAKE_GRANTED;
    return true;
}

void frag_lake_free_stitched(frag_policy *policy, uint32_t header)
{
    policy->space.blocks[policy->space.blocks[header].next].state = FRAG_BLOCK_HOLE;
    for (uint32_t at = policy->sides[header].runs; at != NONE;
         at = policy->runs[at].next_of_range) {
        frag_lake_put(policy, policy->runs[at].piece);
        policy->runs[at].piece = NONE;
    }
}

void frag_lake_unstitch(frag_policy *policy)
{
    frag_block_space *space = &policy->space;
    bool has_gone = false;
    for (uint32_t id = space->first_header; id != NONE; id = space->blocks[id].link) {
        frag_block *header = &space->blocks[id];
        uint32_t whole = header->next;
        if (policy->sides[id].kind != FRAG_LAKE_STITCHED ||
            space->blocks[whole].state == FRAG_BLOCK_BUSY)
            continue;
        /* A run that is lost takes the range out of its index by itself. */
        for (uint32_t at = policy->sides[id].runs; at != NONE; at = policy->runs[at].next_of_range)
            if (policy->runs[at].is_here)
                (void)move(policy, &policy->runs[at], true);
        if (frag_lake_is_usable(policy, id))
            frag_lake_take_out(policy, whole);
        for (uint32_t at = policy->sides[id].runs; at != NONE;)
            at = drop_run(policy, at);
        (void)frag_device_unreserve(space->device, header->address, header->bytes);
        policy->stitched_bytes -= header->bytes;
        frag_block_give_record(space, whole);
        header->state = FRAG_BLOCK_UNUSED;
        has_gone = true;
    }
    if (has_gone)
        frag_block_space_sweep(space);
}

/* ---- giving back */

static bool has_live_block(const frag_policy *policy, uint32_t header)
{
    const frag_block *blocks = policy->space.blocks;
    for (uint32_t id = blocks[header].next; id != header; id = blocks[id].next)
        if (blocks[id].state == FRAG_BLOCK_BUSY && policy->sides[id].use != FRAG_LAKE_LOST)
            return true;
    return false;
}

static void release_segment(frag_policy *policy, uint32_t header)
{
    frag_block_space *space = &policy->space;
    frag_device *device = space->device;
    device->for_stream = policy->sides[header].stream;
    for (uint32_t id = space->blocks[header].next; id != header;) {
        const frag_block *block = &space->blocks[id];
        uint32_t next = block->next;
        if (block->state == FRAG_BLOCK_HOLE) {
            frag_lake_take_out(policy, id);
            policy->held_bytes -= block->bytes;
            if (policy->sides[header].kind == FRAG_LAKE_HOME)
                (void)frag_device_unmap(device, block->address, block->bytes);
            else
                (void)frag_device_free(device, block->address, block->bytes);
        }
        frag_block_give_record(space, id);
        id = next;
    }
    if (policy->sides[header].kind == FRAG_LAKE_HOME)
        (void)frag_device_unreserve(device, space->blocks[header].address,
                                    space->blocks[header].bytes);
    space->blocks[header].state = FRAG_BLOCK_UNUSED;
}

void frag_lake_release(frag_policy *policy)
{
    bool has_gone = false;
    const frag_block *blocks = policy->space.blocks;
    for (uint32_t id = policy->space.first_header; id != NONE; id = blocks[id].link) {
        if (policy->sides[id].kind == FRAG_LAKE_STITCHED || has_live_block(policy, id))
            continue;
        FRAG_ASSERT(policy->sides[id].runs == NONE);
        release_segment(policy, id);
        has_gone = true;
    }
    if (has_gone)
        frag_block_space_sweep(&policy->space);
}
