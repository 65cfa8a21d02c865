/* Pinned host memory, which is real, and copies. */
#include "gpu_replay/software/graphs/soft_graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define PAGE_BYTES 4096u
#define HOST_BYTES_MAX ((uint64_t)1 << 40) /* no host pins more */

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
    if (bytes > HOST_BYTES_MAX || posix_memalign(&memory, PAGE_BYTES, (size_t)bytes) != 0)
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

/* Memory of a device has to be held. Whether host memory is the program's, nobody can tell. */
static bool is_reachable(uint64_t address, uint64_t bytes)
{
    return !frag_soft_is_device_address(address) || frag_soft_range_is_usable(address, bytes);
}

/* Row by row until one cannot be reached: false. */
static bool copy_rows(const frag_soft_area *area, frag_soft_known *known)
{
    for (uint64_t i = 0; i < area->height * area->depth; i++) {
        uint64_t row = i % area->height;
        uint64_t plane = i / area->height;
        uint64_t to = area->to + plane * area->to_plane + row * area->to_pitch;
        uint64_t from = area->from + plane * area->from_plane + row * area->from_pitch;
        if (!is_reachable(to, area->width) || !is_reachable(from, area->width))
            return false;
        *known = frag_soft_copy(to, from, area->width);
    }
    return true;
}

static bool fill_rows(const frag_soft_area *area, frag_soft_filler with)
{
    for (uint64_t i = 0; i < area->height * area->depth; i++) {
        uint64_t to =
            area->to + i / area->height * area->to_plane + i % area->height * area->to_pitch;
        if (!is_reachable(to, area->width))
            return false;
        frag_soft_shadow_fill(to, with.value, with.value_bytes, area->width / with.value_bytes);
    }
    return true;
}

/* From the first byte of an area to its last. */
static uint64_t spanned_bytes(const frag_soft_area *area, uint64_t pitch, uint64_t plane)
{
    if (area->width == 0 || area->height == 0 || area->depth == 0)
        return 0;
    return (area->depth - 1) * plane + (area->height - 1) * pitch + area->width;
}

/* What is asked of those who put off writes, before the lock is taken. */
static void ask_late(bool is_copy, const frag_soft_area *area)
{
    if (is_copy)
        frag_soft_late_ask(area->from, spanned_bytes(area, area->from_pitch, area->from_plane),
                           true);
    frag_soft_late_ask(area->to, spanned_bytes(area, area->to_pitch, area->to_plane), false);
}

/* Only a single row is asked about. */
static frag_soft_scalar scalar_of(const frag_soft_area *area)
{
    bool is_row = area->height * area->depth == 1;
    return (frag_soft_scalar){
        .to = area->to, .from = area->from, .bytes = is_row ? area->width : 0};
}

int32_t frag_soft_copy_area(frag_soft_call_id id, frag_soft_area area, frag_soft_way how)
{
    frag_soft_call call;
    frag_soft_known known = {0};
    uint32_t stream = 0;
    frag_soft_scalar scalar = scalar_of(&area);
    ask_late(true, &area);
    bool may = frag_soft_begin(&call, id);
    frag_soft_note_address(&call, "to", area.to);
    frag_soft_note_address(&call, "from", area.from);
    frag_soft_note(&call, "bytes", area.width * area.height * area.depth);
    if (frag_soft_call_stream(&call, may, how.stream, &stream)) {
        frag_soft_step step = {.kind = FRAG_SOFT_STEP_COPY, .area = area, .caller = how.caller};
        bool is_captured = frag_soft_graph_add(frag_soft_stream_graph(stream), step) != 0;
        if (!is_captured && !copy_rows(&area, &known))
            frag_soft_fail(&call, FRAG_CUDA_INVALID_VALUE);
        else if (!is_captured)
            frag_soft_scalar_note(&scalar, known);
        frag_soft_stream_work(stream);
        if (how.waits) {
            frag_soft_stream_complete(stream, frag_soft.streams[stream].position);
            frag_soft_pools_settle();
        }
    }
    int32_t result = frag_soft_end(&call);
    frag_soft_scalar_ask(&scalar, how.caller);
    return result;
}

int32_t frag_soft_fill_area(frag_soft_call_id id, frag_soft_area area, uint32_t value,
                            uint32_t value_bytes, const void *stream_handle)
{
    frag_soft_call call;
    uint32_t stream = 0;
    ask_late(false, &area);
    bool may = frag_soft_begin(&call, id);
    frag_soft_note_address(&call, "address", area.to);
    frag_soft_note(&call, "bytes", area.width * area.height * area.depth);
    if (frag_soft_call_stream(&call, may, stream_handle, &stream)) {
        frag_soft_step step = {
            .kind = FRAG_SOFT_STEP_FILL, .area = area, .value = value, .value_bytes = value_bytes};
        if (frag_soft_graph_add(frag_soft_stream_graph(stream), step) != 0 ||
            fill_rows(&area, (frag_soft_filler){value, value_bytes}))
            frag_soft_stream_work(stream);
        else
            frag_soft_fail(&call, FRAG_CUDA_INVALID_VALUE);
    }
    return frag_soft_end(&call);
}

void frag_soft_area_carry_out(bool is_copy, const frag_soft_area *area, frag_soft_filler with,
                              const void *caller)
{
    frag_soft_known known = {0};
    int32_t ignored = 0;
    frag_soft_scalar scalar = scalar_of(area);
    ask_late(is_copy, area);
    frag_soft_enter(&ignored);
    if (!is_copy)
        fill_rows(area, with);
    else if (copy_rows(area, &known))
        frag_soft_scalar_note(&scalar, known);
    frag_soft_leave();
    if (is_copy)
        frag_soft_scalar_ask(&scalar, caller);
}

void frag_soft_hosts_stop(void)
{
    for (size_t i = 0; i < frag_soft.host_count; i++)
        if (!frag_soft.hosts[i].is_registered)
            free(host_pointer(frag_soft.hosts[i].address));
    free(frag_soft.hosts);
}
