/* Stream-ordered memory pools. A pool holds chunks of device memory, cut into blocks; a free block
 * remembers the point of the stream at which it became free. A request is tried, in the order that
 * NVIDIA's programming guide names (stream-ordered memory allocator, reuse policies), from blocks
 * freed on its own stream, on a stream it waited for, on one that is seen to have got there, from
 * new memory, and last from a block it then has to wait for. */
#include "gpu_replay/software/soft_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/memory.h"

#define POOL_HANDLE_BASE 0x530000000000u
#define BLOCK_BYTES 512u
#define REQUEST_MAX ((uint64_t)1 << 46)

enum { FOLLOW_EVENTS = 0, OPPORTUNISTIC = 1, INTERNAL_DEPENDENCIES = 2 };

/* How far a request goes to find a free block. */
typedef enum effort {
    SAME_STREAM,
    BY_EVENTS,
    SEEN_DONE,
    BY_WAITING,
} effort;

uint32_t frag_soft_pool_new(uint32_t device)
{
    uint32_t place = frag_soft_handle_take(&frag_soft.pool_handles);
    frag_soft.pools = frag_grow(frag_soft.pools, &frag_soft.pool_capacity, (size_t)place + 1,
                                sizeof frag_soft.pools[0]);
    frag_soft.pools[place] = (frag_soft_pool){.device = device, .reuse = {1, 1, 1}};
    return place;
}

void frag_soft_pools_start(void)
{
    frag_soft.pool_handles.base = POOL_HANDLE_BASE;
    for (uint32_t d = 0; d < FRAG_SOFT_DEVICES_MAX; d++) {
        uint32_t pool = frag_soft_pool_new(d);
        frag_soft.pools[pool].is_default = true;
        frag_soft.devices[d].default_pool = pool;
        frag_soft.devices[d].pool = pool;
    }
}

void frag_soft_pools_stop(void)
{
    for (uint32_t p = 0; p < frag_soft.pool_handles.count; p++)
        free(frag_soft.pools[p].blocks);
    free(frag_soft.pools);
    frag_soft_handles_destroy(&frag_soft.pool_handles);
}

bool frag_soft_pool_find(uint64_t handle, uint32_t *pool)
{
    return frag_soft_handle_find(&frag_soft.pool_handles, handle, pool) &&
           !frag_soft.pools[*pool].is_dying;
}

/* ---- blocks */

static size_t block_place(const frag_soft_pool *pool, uint64_t address)
{
    size_t low = 0;
    size_t high = pool->block_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (pool->blocks[middle].address + pool->blocks[middle].bytes <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert_block(frag_soft_pool *pool, size_t place, frag_soft_block block)
{
    pool->blocks = frag_grow(pool->blocks, &pool->block_capacity, pool->block_count + 1,
                             sizeof pool->blocks[0]);
    frag_soft_block *at = &pool->blocks[place];
    memmove(at + 1, at, (pool->block_count - place) * sizeof *at);
    *at = block;
    pool->block_count++;
}

static void remove_blocks(frag_soft_pool *pool, size_t place, size_t count)
{
    frag_soft_block *at = &pool->blocks[place];
    pool->block_count -= count;
    memmove(at, at + count, (pool->block_count - place) * sizeof *at);
}

static bool is_usable(const frag_soft_pool *pool, const frag_soft_block *block, uint32_t stream,
                      effort most)
{
    if (!block->is_free)
        return false;
    const frag_soft_point *point = &block->point;
    if (point->stream == FRAG_SOFT_NO_STREAM || point->stream == stream ||
        point->position <= frag_soft.streams[point->stream].completed)
        return true;
    if (most >= BY_EVENTS && pool->reuse[FOLLOW_EVENTS] != 0 &&
        frag_soft_stream_follows(stream, point))
        return true;
    if (most >= SEEN_DONE && pool->reuse[OPPORTUNISTIC] != 0 && frag_soft_point_is_done(point))
        return true;
    return most >= BY_WAITING && pool->reuse[INTERNAL_DEPENDENCIES] != 0;
}

/* The lowest run of neighbouring usable blocks that holds bytes becomes one allocation. */
static bool take_run(frag_soft_pool *pool, uint64_t bytes, uint32_t stream, effort most,
                     uint64_t *address)
{
    size_t first = 0;
    uint64_t run = 0;
    for (size_t i = 0; i < pool->block_count; i++) {
        const frag_soft_block *block = &pool->blocks[i];
        if (!is_usable(pool, block, stream, most)) {
            run = 0;
            continue;
        }
        if (run == 0 || block->chunk != pool->blocks[first].chunk) {
            first = i;
            run = 0;
        }
        run += block->bytes;
        if (run < bytes)
            continue;
        frag_soft_block last = *block;
        frag_soft_block taken = pool->blocks[first];
        if (most == BY_WAITING)
            for (size_t k = first; k <= i; k++)
                frag_soft_stream_wait(stream, &pool->blocks[k].point);
        remove_blocks(pool, first, i - first + 1);
        if (run > bytes) {
            last.bytes = run - bytes;
            last.address = taken.address + bytes;
            insert_block(pool, first, last);
        }
        taken.bytes = bytes;
        taken.is_free = false;
        insert_block(pool, first, taken);
        *address = taken.address;
        return true;
    }
    return false;
}

/* ---- chunks */

static bool add_chunk(uint32_t place, uint64_t bytes)
{
    frag_soft_pool *pool = &frag_soft.pools[place];
    if ((pool->max_bytes != 0 && bytes > pool->max_bytes - pool->reserved_bytes) ||
        !frag_soft_charge(pool->device, bytes))
        return false;
    frag_soft_range *range = frag_soft_arena_add(
        &frag_soft.devices[pool->device].pages, bytes, frag_soft.settings.granularity_bytes,
        frag_soft.settings.addresses != FRAG_SOFT_FIRST_FIT);
    range->tag = place + 1;
    pool->reserved_bytes += bytes;
    if (pool->reserved_bytes > pool->reserved_bytes_max)
        pool->reserved_bytes_max = pool->reserved_bytes;
    frag_soft_block block = {
        .address = range->address,
        .bytes = bytes,
        .chunk = range->address,
        .is_free = true,
        .point = {.stream = FRAG_SOFT_NO_STREAM},
    };
    insert_block(pool, block_place(pool, range->address), block);
    return true;
}

static void drop_chunk(frag_soft_pool *pool, size_t first, size_t count)
{
    frag_soft_arena *pages = &frag_soft.devices[pool->device].pages;
    const frag_soft_range *range = frag_soft_arena_find(pages, pool->blocks[first].chunk);
    FRAG_ASSERT(range != NULL && range->tag != 0);
    frag_soft_uncharge(pool->device, range->bytes);
    pool->reserved_bytes -= range->bytes;
    frag_soft_arena_remove(pages, (size_t)(range - pages->ranges));
    remove_blocks(pool, first, count);
}

/* From the highest chunk down: those with no allocation, and no free that the host has not seen
 * done. */
void frag_soft_pool_trim(uint32_t place, uint64_t keep)
{
    frag_soft_pool *pool = &frag_soft.pools[place];
    size_t end = pool->block_count;
    while (end > 0) {
        size_t first = end - 1;
        uint64_t chunk = pool->blocks[first].chunk;
        while (first > 0 && pool->blocks[first - 1].chunk == chunk)
            first--;
        bool is_idle = true;
        uint64_t bytes = 0;
        for (size_t i = first; i < end; i++) {
            is_idle = is_idle && pool->blocks[i].is_free &&
                      frag_soft_point_is_done(&pool->blocks[i].point);
            bytes += pool->blocks[i].bytes;
        }
        if (is_idle && pool->reserved_bytes >= keep && pool->reserved_bytes - bytes >= keep)
            drop_chunk(pool, first, end - first);
        end = first;
    }
}

void frag_soft_pool_empty(uint32_t place)
{
    frag_soft_pool *pool = &frag_soft.pools[place];
    for (size_t i = 0; i < pool->block_count; i++) {
        pool->blocks[i].is_free = true;
        pool->blocks[i].point = (frag_soft_point){.stream = FRAG_SOFT_NO_STREAM};
    }
    pool->used_bytes = 0;
    frag_soft_pool_trim(place, 0);
}

void frag_soft_pools_settle(void)
{
    for (uint32_t p = 0; p < frag_soft.pool_handles.count; p++)
        if (frag_soft.pool_handles.slots[p].is_live &&
            frag_soft.pools[p].reserved_bytes > frag_soft.pools[p].threshold_bytes)
            frag_soft_pool_trim(p, frag_soft.pools[p].threshold_bytes);
}

static void finish_dying(uint32_t place)
{
    frag_soft_pool *pool = &frag_soft.pools[place];
    for (size_t i = 0; i < pool->block_count; i++)
        if (!pool->blocks[i].is_free)
            return;
    frag_soft_pool_empty(place);
    free(pool->blocks);
    *pool = (frag_soft_pool){0};
    frag_soft_handle_give(&frag_soft.pool_handles, place);
}

void frag_soft_pool_give(uint32_t place)
{
    frag_soft_pool *pool = &frag_soft.pools[place];
    if (frag_soft.devices[pool->device].pool == place)
        frag_soft.devices[pool->device].pool = frag_soft.devices[pool->device].default_pool;
    pool->is_dying = true;
    finish_dying(place);
}

/* ---- requests */

/* New memory in large steps, in an exact step when that fails, and once more when the pools of the
 * device gave back what they hold unused. */
static bool grow(uint32_t place, uint64_t bytes)
{
    uint64_t large = frag_align_up(bytes, frag_soft.settings.pool_growth_bytes);
    uint64_t exact = frag_align_up(bytes, frag_soft.settings.granularity_bytes);
    if (add_chunk(place, large) || add_chunk(place, exact))
        return true;
    uint32_t device = frag_soft.pools[place].device;
    for (uint32_t p = 0; p < frag_soft.pool_handles.count; p++)
        if (frag_soft.pool_handles.slots[p].is_live && frag_soft.pools[p].device == device)
            frag_soft_pool_trim(p, 0);
    return add_chunk(place, exact);
}

static bool serve(uint32_t place, uint64_t bytes, uint32_t stream, uint64_t *address)
{
    for (int most = SAME_STREAM; most <= SEEN_DONE; most++)
        if (take_run(&frag_soft.pools[place], bytes, stream, (effort)most, address))
            return true;
    if (grow(place, bytes))
        return take_run(&frag_soft.pools[place], bytes, stream, SEEN_DONE, address);
    return take_run(&frag_soft.pools[place], bytes, stream, BY_WAITING, address);
}

void frag_soft_pool_malloc(frag_soft_call *call, uint32_t place, uint64_t bytes, uint32_t stream,
                           uint64_t *address)
{
    *address = 0;
    if (bytes == 0)
        return;
    frag_soft_torch_find();
    uint64_t rounded = frag_align_up(bytes, BLOCK_BYTES);
    if (bytes > REQUEST_MAX || !serve(place, rounded, stream, address)) {
        frag_soft_fail(call, FRAG_CUDA_OUT_OF_MEMORY);
        return;
    }
    frag_soft_pool *pool = &frag_soft.pools[place];
    pool->blocks[block_place(pool, *address)].asked_bytes = bytes;
    pool->used_bytes += rounded;
    if (pool->used_bytes > pool->used_bytes_max)
        pool->used_bytes_max = pool->used_bytes;
}

static bool may_merge(const frag_soft_block *left, const frag_soft_block *right)
{
    return left->is_free && right->is_free && left->chunk == right->chunk &&
           frag_soft_point_is_done(&left->point) && frag_soft_point_is_done(&right->point);
}

bool frag_soft_pool_free(uint32_t place, uint64_t address, uint32_t stream)
{
    frag_soft_pool *pool = &frag_soft.pools[place];
    size_t at = block_place(pool, address);
    if (at == pool->block_count || pool->blocks[at].address != address || pool->blocks[at].is_free)
        return false;
    frag_soft_block *block = &pool->blocks[at];
    frag_soft_shadow_forget(block->address, block->bytes);
    block->is_free = true;
    block->point = stream == FRAG_SOFT_NO_STREAM ? (frag_soft_point){.stream = FRAG_SOFT_NO_STREAM}
                                                 : frag_soft_stream_work(stream);
    pool->used_bytes -= block->bytes;
    if (at + 1 < pool->block_count && may_merge(block, block + 1)) {
        block->bytes += block[1].bytes;
        remove_blocks(pool, at + 1, 1);
    }
    if (at > 0 && may_merge(block - 1, block)) {
        block[-1].bytes += block->bytes;
        remove_blocks(pool, at, 1);
    }
    if (pool->is_dying)
        finish_dying(place);
    return true;
}

bool frag_soft_pool_block_find(uint32_t place, uint64_t address, frag_soft_extent *extent)
{
    const frag_soft_pool *pool = &frag_soft.pools[place];
    size_t at = block_place(pool, address);
    if (at == pool->block_count || pool->blocks[at].is_free)
        return false;
    *extent = (frag_soft_extent){.address = pool->blocks[at].address,
                                 .bytes = pool->blocks[at].asked_bytes,
                                 .device = pool->device};
    return address - extent->address < extent->bytes;
}
