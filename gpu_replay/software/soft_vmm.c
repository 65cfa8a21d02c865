/* Virtual memory management: address reservations, physical memory, mappings. Memory of a handle is
 * given back when neither a handle nor a mapping is left. */
#include "gpu_replay/software/soft_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/memory.h"

#define RESERVATION_BASE 0x600000000000u
#define RECORDED_RESERVATION_BASE 0x300000000000u
#define RESERVATION_WINDOW ((uint64_t)1 << 44)
#define HOST_PAGE_BYTES 4096u
#define RESERVATION_MAX ((uint64_t)1 << 43)

enum {
    PINNED = 1,
    ON_DEVICE = 1,
    POSIX_DESCRIPTOR = 1,
    ACCESS_NONE = 0,
    ACCESS_READ = 1,
    ACCESS_READ_WRITE = 3,
};

void frag_soft_vmm_start(void)
{
    bool is_recorded = frag_soft.settings.addresses == FRAG_SOFT_SNAPSHOT;
    frag_soft_arena_start(&frag_soft.reservations,
                          is_recorded ? RECORDED_RESERVATION_BASE : RESERVATION_BASE,
                          RESERVATION_WINDOW);
    frag_soft.memory_handles.base = 0;
}

void frag_soft_vmm_stop(void)
{
    frag_soft_arena_destroy(&frag_soft.reservations);
    frag_soft_handles_destroy(&frag_soft.memory_handles);
    free(frag_soft.memories);
    free(frag_soft.mappings);
}

static bool is_multiple(uint64_t value)
{
    return value % frag_soft.settings.granularity_bytes == 0;
}

static void refuse(frag_soft_call *call)
{
    frag_soft_fail(call, FRAG_CUDA_INVALID_VALUE);
}

/* ---- addresses */

void frag_soft_reserve(frag_soft_call *call, uint64_t bytes, uint64_t alignment, uint64_t flags,
                       uint64_t *address)
{
    uint64_t granularity = frag_soft.settings.granularity_bytes;
    if (bytes == 0 || bytes % HOST_PAGE_BYTES != 0 || flags != 0 ||
        (alignment != 0 && !frag_is_power_of_two(alignment)) || alignment > RESERVATION_MAX) {
        refuse(call);
        return;
    }
    if (bytes > RESERVATION_MAX) {
        frag_soft_fail(call, FRAG_CUDA_OUT_OF_MEMORY);
        return;
    }
    frag_soft_range *range =
        frag_soft_arena_add(&frag_soft.reservations, frag_align_up(bytes, granularity),
                            alignment > granularity ? alignment : granularity,
                            frag_soft.settings.addresses != FRAG_SOFT_FIRST_FIT);
    range->asked_bytes = bytes;
    *address = range->address;
}

/* The place of the first mapping that ends above address. */
static size_t mapping_place(uint64_t address)
{
    size_t low = 0;
    size_t high = frag_soft.mapping_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const frag_soft_mapping *mapping = &frag_soft.mappings[middle];
        if (mapping->address + mapping->bytes <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Some mapping lies in the range, at least partly. */
static bool is_mapped(uint64_t address, uint64_t bytes)
{
    size_t place = mapping_place(address);
    return place < frag_soft.mapping_count && frag_soft.mappings[place].address < address + bytes;
}

void frag_soft_unreserve(frag_soft_call *call, uint64_t address, uint64_t bytes)
{
    frag_soft_arena *arena = &frag_soft.reservations;
    const frag_soft_range *range = frag_soft_arena_find(arena, address);
    if (range == NULL || range->address != address || range->asked_bytes != bytes ||
        is_mapped(address, range->bytes)) {
        refuse(call);
        return;
    }
    frag_soft_arena_remove(arena, (size_t)(range - arena->ranges));
}

/* ---- physical memory */

void frag_soft_create(frag_soft_call *call, uint64_t bytes, const int32_t properties[4],
                      uint64_t flags, uint64_t *handle)
{
    int32_t device = properties[3];
    frag_soft_torch_find();
    if (bytes == 0 || !is_multiple(bytes) || flags != 0 || properties[0] != PINNED ||
        properties[2] != ON_DEVICE) {
        refuse(call);
        return;
    }
    if (device < 0 || device >= (int32_t)frag_soft.settings.device_count) {
        frag_soft_fail(call, FRAG_CUDA_INVALID_DEVICE);
        return;
    }
    if (!frag_soft.settings.takes_any_handle_type && (properties[1] & ~POSIX_DESCRIPTOR) != 0) {
        frag_soft_fail(call, FRAG_CUDA_NOT_SUPPORTED);
        return;
    }
    if (!frag_soft_charge((uint32_t)device, bytes)) {
        frag_soft_fail(call, FRAG_CUDA_OUT_OF_MEMORY);
        return;
    }
    uint32_t place = frag_soft_handle_take(&frag_soft.memory_handles);
    frag_soft.memories = frag_grow(frag_soft.memories, &frag_soft.memory_capacity,
                                   (size_t)place + 1, sizeof frag_soft.memories[0]);
    frag_soft.memories[place] = (frag_soft_memory){
        .bytes = bytes,
        .device = (uint32_t)device,
        .handle_types = (uint32_t)properties[1],
        .open_count = 1,
    };
    *handle = frag_soft_handle_number(&frag_soft.memory_handles, place);
}

static void drop_unused(uint32_t place)
{
    frag_soft_memory *memory = &frag_soft.memories[place];
    if (memory->open_count > 0 || memory->map_count > 0)
        return;
    frag_soft_uncharge(memory->device, memory->bytes);
    memory->bytes = 0;
    frag_soft_handle_give(&frag_soft.memory_handles, place);
}

/* The handle is live as long as its memory is mapped; the program holds it only while it is open.
 */
static bool find_open(uint64_t handle, uint32_t *place)
{
    return frag_soft_handle_find(&frag_soft.memory_handles, handle, place) &&
           frag_soft.memories[*place].open_count > 0;
}

void frag_soft_release(frag_soft_call *call, uint64_t handle)
{
    uint32_t place = 0;
    if (!find_open(handle, &place)) {
        refuse(call);
        return;
    }
    frag_soft_note(call, "bytes", frag_soft.memories[place].bytes);
    frag_soft.memories[place].open_count--;
    drop_unused(place);
}

void frag_soft_retain(frag_soft_call *call, uint64_t address, uint64_t *handle)
{
    size_t at = mapping_place(address);
    if (at == frag_soft.mapping_count || frag_soft.mappings[at].address > address) {
        refuse(call);
        return;
    }
    uint32_t place = frag_soft.mappings[at].memory;
    frag_soft.memories[place].open_count++;
    *handle = frag_soft_handle_number(&frag_soft.memory_handles, place);
}

void frag_soft_properties(frag_soft_call *call, uint64_t handle, int32_t properties[4])
{
    uint32_t place = 0;
    if (!find_open(handle, &place)) {
        refuse(call);
        return;
    }
    properties[0] = PINNED;
    properties[1] = (int32_t)frag_soft.memories[place].handle_types;
    properties[2] = ON_DEVICE;
    properties[3] = (int32_t)frag_soft.memories[place].device;
}

/* ---- mappings */

void frag_soft_map(frag_soft_call *call, frag_soft_extent range, uint64_t offset, uint64_t handle,
                   uint64_t flags)
{
    uint32_t memory = 0;
    if (range.bytes == 0 || !is_multiple(range.bytes) || !is_multiple(range.address) ||
        offset != 0 || flags != 0 || !find_open(handle, &memory) ||
        range.bytes > frag_soft.memories[memory].bytes) {
        refuse(call);
        return;
    }
    const frag_soft_range *reserved = frag_soft_arena_find(&frag_soft.reservations, range.address);
    if (reserved == NULL || is_mapped(range.address, range.bytes) ||
        range.bytes > reserved->bytes - (range.address - reserved->address)) {
        refuse(call);
        return;
    }
    size_t place = mapping_place(range.address);
    frag_soft.mappings = frag_grow(frag_soft.mappings, &frag_soft.mapping_capacity,
                                   frag_soft.mapping_count + 1, sizeof frag_soft.mappings[0]);
    frag_soft_mapping *mapping = &frag_soft.mappings[place];
    memmove(mapping + 1, mapping, (frag_soft.mapping_count - place) * sizeof *mapping);
    frag_soft.mapping_count++;
    *mapping =
        (frag_soft_mapping){.address = range.address, .bytes = range.bytes, .memory = memory};
    frag_soft.memories[memory].map_count++;
}

typedef struct span {
    size_t first;
    size_t count;
} span;

/* The mappings that make up the range exactly, with no gap. false: they do not. */
static bool find_whole(uint64_t address, uint64_t bytes, span *out)
{
    uint64_t at = address;
    *out = (span){.first = mapping_place(address)};
    if (bytes == 0 || bytes > RESERVATION_WINDOW)
        return false;
    for (size_t i = out->first; at < address + bytes; i++) {
        if (i == frag_soft.mapping_count || frag_soft.mappings[i].address != at)
            return false;
        at += frag_soft.mappings[i].bytes;
        out->count++;
    }
    return at == address + bytes;
}

void frag_soft_unmap(frag_soft_call *call, uint64_t address, uint64_t bytes)
{
    span whole;
    if (!find_whole(address, bytes, &whole)) {
        refuse(call);
        return;
    }
    frag_soft_mapping *first = &frag_soft.mappings[whole.first];
    frag_soft_shadow_forget(address, bytes);
    for (size_t i = 0; i < whole.count; i++) {
        frag_soft.memories[first[i].memory].map_count--;
        drop_unused(first[i].memory);
    }
    frag_soft.mapping_count -= whole.count;
    memmove(first, first + whole.count, (frag_soft.mapping_count - whole.first) * sizeof *first);
}

static bool has_access(const frag_soft_mapping *mapping)
{
    for (int d = 0; d < FRAG_SOFT_DEVICES_MAX; d++)
        if (mapping->access[d] != ACCESS_NONE)
            return true;
    return false;
}

/* Mappings that some device may use, once the span is among them: what a limit counts. */
static uint64_t usable_count_with(span added)
{
    uint64_t count = added.count;
    for (size_t i = 0; i < frag_soft.mapping_count; i++)
        if (i < added.first || i - added.first >= added.count)
            count += has_access(&frag_soft.mappings[i]);
    return count;
}

void frag_soft_set_access(frag_soft_call *call, frag_soft_extent range,
                          const frag_soft_access *access, uint64_t count)
{
    span whole;
    if (count == 0 || !find_whole(range.address, range.bytes, &whole)) {
        refuse(call);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        int32_t flags = access[i].flags;
        if (access[i].location.type != ON_DEVICE || access[i].location.id < 0 ||
            access[i].location.id >= (int32_t)frag_soft.settings.device_count ||
            (flags != ACCESS_NONE && flags != ACCESS_READ && flags != ACCESS_READ_WRITE)) {
            refuse(call);
            return;
        }
    }
    if (frag_soft.settings.mapping_count_max != 0 &&
        usable_count_with(whole) > frag_soft.settings.mapping_count_max) {
        frag_soft_fail(call, FRAG_CUDA_OUT_OF_MEMORY);
        return;
    }
    for (size_t m = 0; m < whole.count; m++)
        for (uint64_t i = 0; i < count; i++)
            frag_soft.mappings[whole.first + m].access[access[i].location.id] =
                (unsigned char)access[i].flags;
}

void frag_soft_get_access(frag_soft_call *call, uint64_t address,
                          const frag_soft_location *location, uint64_t *flags)
{
    size_t at = mapping_place(address);
    if (at == frag_soft.mapping_count || frag_soft.mappings[at].address > address ||
        location->type != ON_DEVICE || location->id < 0 || location->id >= FRAG_SOFT_DEVICES_MAX) {
        refuse(call);
        return;
    }
    *flags = frag_soft.mappings[at].access[location->id];
}

bool frag_soft_mapping_find(uint64_t address, frag_soft_extent *extent)
{
    size_t at = mapping_place(address);
    if (at == frag_soft.mapping_count || frag_soft.mappings[at].address > address)
        return false;
    const frag_soft_mapping *mapping = &frag_soft.mappings[at];
    *extent = (frag_soft_extent){
        .address = mapping->address,
        .bytes = mapping->bytes,
        .device = frag_soft.memories[mapping->memory].device,
    };
    return true;
}
