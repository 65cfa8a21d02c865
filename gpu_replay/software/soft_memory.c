/* Capacity, contexts, cudaMalloc. Requests are charged and placed in whole pages (2 MiB), or with
 * footprint=classes as measured on a card of driver series 5xx: up to 512 KiB a sixteenth more, in
 * steps of 8 KiB; up to 1 MiB that; above, multiples of 2 MiB. */
#include "gpu_replay/software/soft_state.h"

#include <string.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "gpu_replay/software/soft_processes.h"

#define MALLOC_BASE 0x700000000000u
#define RECORDED_MALLOC_BASE 0x200000000000u
#define SMALL_BASE 0x580000000000u
#define DEVICE_SHIFT 40 /* between the addresses of two devices */
#define SMALL_SHIFT 36
#define REQUEST_MAX ((uint64_t)1 << 46)

static uint64_t malloc_base(void)
{
    return frag_soft.settings.addresses == FRAG_SOFT_SNAPSHOT ? RECORDED_MALLOC_BASE : MALLOC_BASE;
}

void frag_soft_memory_start(void)
{
    uint64_t window = frag_soft.settings.device_count > 1
                          ? (uint64_t)1 << DEVICE_SHIFT
                          : (uint64_t)FRAG_SOFT_DEVICES_MAX << DEVICE_SHIFT;
    for (uint32_t d = 0; d < FRAG_SOFT_DEVICES_MAX; d++) {
        frag_soft_device *device = &frag_soft.devices[d];
        frag_soft_arena_start(&device->pages, malloc_base() + ((uint64_t)d << DEVICE_SHIFT),
                              window);
        frag_soft_arena_start(&device->small, SMALL_BASE + ((uint64_t)d << SMALL_SHIFT),
                              (uint64_t)1 << SMALL_SHIFT);
    }
}

void frag_soft_memory_stop(void)
{
    for (uint32_t d = 0; d < FRAG_SOFT_DEVICES_MAX; d++) {
        frag_soft_arena_destroy(&frag_soft.devices[d].pages);
        frag_soft_arena_destroy(&frag_soft.devices[d].small);
    }
}

bool frag_soft_charge(uint32_t device, uint64_t bytes)
{
    frag_soft_device *charged = &frag_soft.devices[device];
    uint32_t card = frag_soft.card_of[device];
    frag_soft_processes_lock();
    bool fits = bytes <= frag_soft_free_bytes(device);
    if (fits) {
        charged->used_bytes += bytes;
        if (charged->used_bytes > charged->used_bytes_max)
            charged->used_bytes_max = charged->used_bytes;
        frag_soft_processes_raise(card, charged->used_bytes);
    } else {
        frag_soft_processes_refused(card, bytes);
    }
    frag_soft_processes_unlock();
    return fits;
}

void frag_soft_uncharge(uint32_t device, uint64_t bytes)
{
    FRAG_ASSERT(frag_soft.devices[device].used_bytes >= bytes);
    frag_soft.devices[device].used_bytes -= bytes;
    frag_soft_processes_lower(frag_soft.card_of[device], frag_soft.devices[device].used_bytes);
}

/* A context is there even when others left no room for it: its bytes count all the same. */
void frag_soft_device_touch(uint32_t device)
{
    frag_soft_device *touched = &frag_soft.devices[device];
    if (touched->has_context)
        return;
    touched->has_context = true;
    touched->used_bytes += frag_soft.settings.context_bytes;
    if (touched->used_bytes > touched->used_bytes_max)
        touched->used_bytes_max = touched->used_bytes;
    frag_soft_processes_lock();
    frag_soft_processes_raise(frag_soft.card_of[device], touched->used_bytes);
    frag_soft_processes_unlock();
}

static uint64_t footprint(uint64_t bytes)
{
    if (!frag_soft.settings.has_classes || bytes > FRAG_MIB)
        return frag_align_up(bytes, frag_soft.settings.granularity_bytes);
    if (bytes > 512 * FRAG_KIB)
        return FRAG_MIB;
    return frag_align_up(bytes + bytes / 16, 8 * FRAG_KIB);
}

void frag_soft_malloc(frag_soft_call *call, uint64_t bytes, uint64_t *address)
{
    uint32_t device = frag_soft_device_current();
    *address = 0;
    if (frag_soft_capture_forbids(call) || bytes == 0)
        return;
    frag_soft_torch_find();
    uint64_t charged = bytes > REQUEST_MAX ? 0 : footprint(bytes);
    if (charged == 0 || !frag_soft_charge(device, charged)) {
        frag_soft_fail(call, FRAG_CUDA_OUT_OF_MEMORY);
        return;
    }
    frag_soft_device *from = &frag_soft.devices[device];
    bool is_small = frag_soft.settings.has_classes && charged <= FRAG_MIB;
    frag_soft_range *range =
        frag_soft_arena_add(is_small ? &from->small : &from->pages, charged,
                            is_small ? 512 : frag_soft.settings.granularity_bytes,
                            frag_soft.settings.addresses != FRAG_SOFT_FIRST_FIT);
    range->asked_bytes = bytes;
    *address = range->address;
}

typedef struct found {
    frag_soft_arena *arena;
    frag_soft_range *range;
    uint32_t device;
} found;

static bool find(uint64_t address, found *out)
{
    for (uint32_t d = 0; d < frag_soft.settings.device_count; d++) {
        frag_soft_arena *arenas[] = {&frag_soft.devices[d].pages, &frag_soft.devices[d].small};
        for (int a = 0; a < 2; a++) {
            frag_soft_range *range = frag_soft_arena_find(arenas[a], address);
            if (range == NULL)
                continue;
            *out = (found){.arena = arenas[a], .range = range, .device = d};
            return true;
        }
    }
    return false;
}

void frag_soft_free(frag_soft_call *call, uint64_t address)
{
    found at;
    if (frag_soft_capture_forbids(call) || address == 0)
        return;
    if (!find(address, &at)) {
        frag_soft_fail(call, FRAG_CUDA_INVALID_VALUE);
        return;
    }
    if (at.range->tag != 0) {
        if (!frag_soft_pool_free(at.range->tag - 1, address, FRAG_SOFT_NO_STREAM))
            frag_soft_fail(call, FRAG_CUDA_INVALID_VALUE);
        return;
    }
    if (at.range->address != address) {
        frag_soft_fail(call, FRAG_CUDA_INVALID_VALUE);
        return;
    }
    frag_soft_uncharge(at.device, at.range->bytes);
    frag_soft_shadow_forget(at.range->address, at.range->bytes);
    frag_soft_arena_remove(at.arena, (size_t)(at.range - at.arena->ranges));
}

void frag_soft_free_async(frag_soft_call *call, uint64_t address, uint64_t stream_handle)
{
    uint32_t stream = 0;
    found at;
    if (!frag_soft_stream_find(stream_handle, &stream)) {
        frag_soft_fail(call, FRAG_CUDA_INVALID_HANDLE);
    } else if (address != 0 && find(address, &at) && at.range->tag != 0) {
        if (!frag_soft_pool_free(at.range->tag - 1, address, stream))
            frag_soft_fail(call, FRAG_CUDA_INVALID_VALUE);
    } else {
        frag_soft_free(call, address);
    }
}

bool frag_soft_extent_find(uint64_t address, frag_soft_extent *extent)
{
    found at;
    if (frag_soft_mapping_find(address, extent) || frag_soft_symbol_at(address, extent) ||
        frag_soft_ipc_at(address, extent))
        return true;
    if (!find(address, &at))
        return false;
    if (at.range->tag != 0)
        return frag_soft_pool_block_find(at.range->tag - 1, address, extent);
    *extent = (frag_soft_extent){
        .address = at.range->address, .bytes = at.range->asked_bytes, .device = at.device};
    return address - extent->address < extent->bytes;
}

bool frag_soft_range_is_usable(uint64_t address, uint64_t bytes)
{
    while (bytes > 0) {
        frag_soft_extent extent;
        if (!frag_soft_extent_find(address, &extent))
            return false;
        uint64_t covered = extent.bytes - (address - extent.address);
        if (covered >= bytes)
            return true;
        address += covered;
        bytes -= covered;
    }
    return true;
}

bool frag_soft_is_device_address(uint64_t address)
{
    const frag_soft_arena *reservations = &frag_soft.reservations;
    frag_soft_extent symbol;
    return address - malloc_base() < (uint64_t)FRAG_SOFT_DEVICES_MAX << DEVICE_SHIFT ||
           address - SMALL_BASE < (uint64_t)FRAG_SOFT_DEVICES_MAX << SMALL_SHIFT ||
           address - reservations->base < reservations->window_bytes ||
           frag_soft_symbol_at(address, &symbol) || frag_soft_ipc_is_address(address);
}

/* Every pool of the device goes first, so that no range is left that belongs to one. */
void frag_soft_device_reset(uint32_t device)
{
    frag_soft_device *gone = &frag_soft.devices[device];
    frag_soft_arena *arenas[] = {&gone->pages, &gone->small};
    for (uint32_t p = 0; p < frag_soft.pool_handles.count; p++)
        if (frag_soft.pool_handles.slots[p].is_live && frag_soft.pools[p].device == device)
            frag_soft_pool_empty(p);
    for (int a = 0; a < 2; a++) {
        while (arenas[a]->count > 0) {
            const frag_soft_range *last = &arenas[a]->ranges[arenas[a]->count - 1];
            frag_soft_uncharge(device, last->bytes);
            frag_soft_shadow_forget(last->address, last->bytes);
            frag_soft_arena_remove(arenas[a], arenas[a]->count - 1);
        }
    }
    for (uint32_t s = FRAG_SOFT_DEVICES_MAX; s < frag_soft.stream_count; s++)
        if (frag_soft.streams[s].is_live && frag_soft.streams[s].device == device)
            frag_soft_stream_give(s);
    for (uint32_t e = 0; e < frag_soft.event_handles.count; e++)
        if (frag_soft.event_handles.slots[e].is_live && frag_soft.events[e].device == device)
            frag_soft_handle_give(&frag_soft.event_handles, e);
    if (gone->has_context)
        frag_soft_uncharge(device, frag_soft.settings.context_bytes);
    gone->has_context = false;
}
