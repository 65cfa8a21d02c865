/* Pinned host memory, which is real, and copies. */
#include "gpu_replay/software/soft_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define PAGE_BYTES 4096u

static unsigned char *host_pointer(uint64_t address)
{
    return (unsigned char *)(uintptr_t)address;
}

static size_t host_place(uint64_t address)
{
    size_t low = 0;
    size_t high = frag_soft.host_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (frag_soft.hosts[middle].address + frag_soft.hosts[middle].bytes <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert(frag_soft_host host)
{
    size_t place = host_place(host.address);
    frag_soft.hosts = frag_grow(frag_soft.hosts, &frag_soft.host_capacity, frag_soft.host_count + 1,
                                sizeof frag_soft.hosts[0]);
    frag_soft_host *at = &frag_soft.hosts[place];
    memmove(at + 1, at, (frag_soft.host_count - place) * sizeof *at);
    *at = host;
    frag_soft.host_count++;
}

static void take_out(size_t place)
{
    frag_soft_host *at = &frag_soft.hosts[place];
    frag_soft.host_count--;
    memmove(at, at + 1, (frag_soft.host_count - place) * sizeof *at);
}

int32_t frag_soft_host_new(uint64_t bytes, uint64_t *address)
{
    void *memory = NULL;
    *address = 0;
    if (bytes == 0)
        return FRAG_CUDA_OK;
    if (bytes > SIZE_MAX / 2 || posix_memalign(&memory, PAGE_BYTES, (size_t)bytes) != 0)
        return FRAG_CUDA_OUT_OF_MEMORY;
    *address = (uint64_t)(uintptr_t)memory;
    insert((frag_soft_host){.address = *address, .bytes = bytes});
    return FRAG_CUDA_OK;
}

static bool find_start(uint64_t address, bool is_registered, size_t *place)
{
    *place = host_place(address);
    return *place < frag_soft.host_count && frag_soft.hosts[*place].address == address &&
           frag_soft.hosts[*place].is_registered == is_registered;
}

bool frag_soft_host_give(uint64_t address)
{
    size_t place = 0;
    if (!find_start(address, false, &place))
        return false;
    free(host_pointer(address));
    take_out(place);
    return true;
}

bool frag_soft_host_register(uint64_t address, uint64_t bytes)
{
    size_t place = host_place(address);
    if (place < frag_soft.host_count && frag_soft.hosts[place].address < address + bytes)
        return false;
    insert((frag_soft_host){.address = address, .bytes = bytes, .is_registered = true});
    return true;
}

bool frag_soft_host_unregister(uint64_t address)
{
    size_t place = 0;
    if (!find_start(address, true, &place))
        return false;
    take_out(place);
    return true;
}

bool frag_soft_host_find(uint64_t address, frag_soft_host *host)
{
    size_t place = host_place(address);
    if (place == frag_soft.host_count || frag_soft.hosts[place].address > address)
        return false;
    *host = frag_soft.hosts[place];
    return true;
}

frag_soft_known frag_soft_copy(uint64_t to, uint64_t from, uint64_t bytes)
{
    frag_soft_known known = {.bytes = bytes};
    bool is_to_device = frag_soft_is_device_address(to);
    bool is_from_device = frag_soft_is_device_address(from);
    if (bytes == 0)
        return known;
    if (is_to_device && is_from_device)
        frag_soft_shadow_copy(to, from, bytes);
    else if (is_to_device)
        frag_soft_shadow_write(to, host_pointer(from), bytes);
    else if (is_from_device)
        known = frag_soft_shadow_read(from, host_pointer(to), bytes);
    else
        memmove(host_pointer(to), host_pointer(from), (size_t)bytes);
    return known;
}

void frag_soft_hosts_stop(void)
{
    for (size_t i = 0; i < frag_soft.host_count; i++)
        if (!frag_soft.hosts[i].is_registered)
            free(host_pointer(frag_soft.hosts[i].address));
    free(frag_soft.hosts);
}
