#include "gpu_replay/device/cuda_device.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "gpu_replay/device/cuda_ballast.h"
#include "gpu_replay/device/cuda_mapping.h"
#include "gpu_replay/device/cuda_places.h"
#include "gpu_replay/device/cuda_streams.h"

typedef struct cuda_device {
    frag_device base;
    frag_gpu *gpu;
    const frag_cuda_runtime *cuda;
    frag_gpu_device_options options;
    frag_gpu_facts facts;
    frag_device *book;
    frag_device_backing backing;
    /* Of the call being made, for the book to ask for it. */
    uint64_t real;
    uint32_t stream;
    bool is_async;
    frag_cuda_places places;
    frag_cuda_mapper mapper;
    frag_cuda_streams streams;
    frag_cuda_ballast ballast;
    bool has_unwaited; /* touched since the last wait for everything */
    bool is_finished;
    frag_gpu_report report;
} cuda_device;

static cuda_device *from_base(frag_device *device)
{
    return (cuda_device *)(void *)device;
}

/* The code of a call that nothing but a broken context or a mistake of ours makes fail. */
static frag_device_result must(cuda_device *cuda, const char *call, int code)
{
    if (code == FRAG_CUDA_OK)
        return FRAG_DEVICE_OK;
    cuda->cuda->cudaGetLastError();
    frag_cuda_words(cuda->cuda, call, code, cuda->base.failure, sizeof cuda->base.failure);
    return FRAG_DEVICE_FAILED;
}

/* The code of what a stream was asked for. */
static frag_device_result of_stream(cuda_device *cuda, int code)
{
    return must(cuda, cuda->streams.call, code);
}

/* The code of a call that asks for memory. */
static frag_device_result judge(cuda_device *cuda, const char *call, int code)
{
    if (code != FRAG_CUDA_OUT_OF_MEMORY)
        return must(cuda, call, code);
    /* Else whoever checks for errors next would find this one. */
    cuda->cuda->cudaGetLastError();
    return FRAG_DEVICE_OUT_OF_MEMORY;
}

static frag_device_result refuse(frag_device *device, const char *words)
{
    snprintf(device->failure, sizeof device->failure, "%s", words);
    return FRAG_DEVICE_FAILED;
}

/* What the book knows of thresholds holds for the device. */
static void take_thresholds(cuda_device *cuda)
{
    cuda->base.needs.max_bytes = cuda->book->needs.max_bytes;
    cuda->base.needs.refused_min_bytes = cuda->book->needs.refused_min_bytes;
}

/* What was got last is to the policy at that address. */
static void add_place(cuda_device *cuda, frag_cuda_place_kind kind, uint64_t address,
                      uint64_t bytes)
{
    frag_cuda_places_add(
        &cuda->places,
        &(frag_cuda_place){.address = address, .bytes = bytes, .real = cuda->real, .kind = kind});
}

/* ---- mallocs */

static frag_device_result get_malloc(cuda_device *cuda, uint64_t bytes)
{
    void *memory = NULL;
    frag_device_result result = FRAG_DEVICE_OK;
    if (!cuda->is_async) {
        result = judge(cuda, "cudaMalloc", cuda->cuda->cudaMalloc(&memory, (size_t)bytes));
    } else {
        frag_cuda_stream stream = NULL;
        result = of_stream(cuda, frag_cuda_streams_get(&cuda->streams, cuda->stream, &stream));
        if (result == FRAG_DEVICE_OK)
            result = judge(cuda, "cudaMallocAsync",
                           cuda->cuda->cudaMallocAsync(&memory, (size_t)bytes, stream));
    }
    cuda->real = (uint64_t)(uintptr_t)memory;
    return result;
}

static frag_device_result give_malloc(cuda_device *cuda, uint64_t real, bool is_async)
{
    void *memory = (void *)(uintptr_t)real;
    if (!is_async)
        return must(cuda, "cudaFree", cuda->cuda->cudaFree(memory));
    frag_cuda_stream stream = NULL;
    if (of_stream(cuda, frag_cuda_streams_get(&cuda->streams, cuda->stream, &stream)) !=
        FRAG_DEVICE_OK)
        return FRAG_DEVICE_FAILED;
    return must(cuda, "cudaFreeAsync", cuda->cuda->cudaFreeAsync(memory, stream));
}

static frag_device_result malloc_any(frag_device *device, uint64_t bytes, bool is_async,
                                     uint64_t *address)
{
    cuda_device *cuda = from_base(device);
    if (device->has_failed)
        return FRAG_DEVICE_FAILED;
    cuda->is_async = is_async;
    cuda->real = 0;
    frag_device_result result = cuda->book->ops->malloc(cuda->book, bytes, address);
    take_thresholds(cuda);
    if (result == FRAG_DEVICE_OK)
        add_place(cuda, is_async ? FRAG_CUDA_PLACE_POOL : FRAG_CUDA_PLACE_MALLOC, *address, bytes);
    else if (cuda->real != 0 && give_malloc(cuda, cuda->real, is_async) == FRAG_DEVICE_FAILED)
        result = FRAG_DEVICE_FAILED; /* the rule had no address left for it */
    return result;
}

static frag_device_result cuda_malloc(frag_device *device, uint64_t bytes, uint64_t *address)
{
    return malloc_any(device, bytes, false, address);
}

static frag_device_result cuda_malloc_async(frag_device *device, uint64_t bytes, uint32_t stream,
                                            uint64_t *address)
{
    cuda_device *cuda = from_base(device);
    if (!device->has_failed && !cuda->facts.has_pools)
        return refuse(device, "the card or its driver offers no memory pools");
    cuda->stream = stream;
    return malloc_any(device, bytes, true, address);
}

/* The place in the table of what was got there. */
static size_t place_of(const cuda_device *cuda, uint64_t address)
{
    size_t at = frag_cuda_places_find(&cuda->places, address);
    FRAG_ASSERT(at < cuda->places.count);
    return at;
}

static frag_device_result free_any(frag_device *device, uint64_t address, bool is_async)
{
    cuda_device *cuda = from_base(device);
    frag_cuda_place_kind kind = is_async ? FRAG_CUDA_PLACE_POOL : FRAG_CUDA_PLACE_MALLOC;
    if (device->has_failed)
        return FRAG_DEVICE_FAILED;
    size_t at = place_of(cuda, address);
    frag_cuda_place place = cuda->places.items[at];
    FRAG_ASSERT(place.address == address && place.kind == kind);
    frag_device_result result = give_malloc(cuda, place.real, is_async);
    if (result != FRAG_DEVICE_OK)
        return result;
    frag_cuda_places_remove(&cuda->places, at, 1);
    return cuda->book->ops->free(cuda->book, address, place.bytes);
}

static frag_device_result cuda_free(frag_device *device, uint64_t address, uint64_t bytes)
{
    (void)bytes;
    return free_any(device, address, false);
}

static frag_device_result cuda_free_async(frag_device *device, uint64_t address, uint32_t stream)
{
    from_base(device)->stream = stream;
    return free_any(device, address, true);
}

/* ---- virtual memory */

static frag_device_result get_range(cuda_device *cuda, uint64_t bytes)
{
    frag_cuda_address address = 0;
    uint64_t pages = frag_round_up(bytes, cuda->base.page_bytes);
    int code = cuda->cuda->cuMemAddressReserve(&address, (size_t)pages, 0, 0, 0);
    cuda->real = address;
    return judge(cuda, "cuMemAddressReserve", code);
}

static frag_device_result give_range(cuda_device *cuda, uint64_t real, uint64_t bytes)
{
    uint64_t pages = frag_round_up(bytes, cuda->base.page_bytes);
    return must(cuda, "cuMemAddressFree", cuda->cuda->cuMemAddressFree(real, (size_t)pages));
}

static frag_device_result need_virtual_memory(frag_device *device)
{
    if (device->has_failed)
        return FRAG_DEVICE_FAILED;
    return from_base(device)->facts.has_virtual_memory
               ? FRAG_DEVICE_OK
               : refuse(device, "the card or its driver offers no virtual memory management");
}

static frag_device_result cuda_reserve(frag_device *device, uint64_t bytes, uint64_t *address)
{
    cuda_device *cuda = from_base(device);
    frag_device_result result = need_virtual_memory(device);
    if (result != FRAG_DEVICE_OK)
        return result;
    cuda->real = 0;
    result = cuda->book->ops->reserve(cuda->book, bytes, address);
    if (result == FRAG_DEVICE_OK)
        add_place(cuda, FRAG_CUDA_PLACE_RANGE, *address, bytes);
    else if (cuda->real != 0 && give_range(cuda, cuda->real, bytes) == FRAG_DEVICE_FAILED)
        result = FRAG_DEVICE_FAILED;
    return result;
}

static frag_device_result drop_range(cuda_device *cuda, size_t at)
{
    frag_cuda_place place = cuda->places.items[at];
    frag_device_result result = give_range(cuda, place.real, place.bytes);
    if (result == FRAG_DEVICE_OK)
        frag_cuda_places_remove(&cuda->places, at, 1);
    return result;
}

static frag_device_result cuda_unreserve(frag_device *device, uint64_t address, uint64_t bytes)
{
    cuda_device *cuda = from_base(device);
    if (device->has_failed)
        return FRAG_DEVICE_FAILED;
    size_t at = place_of(cuda, address);
    FRAG_ASSERT(cuda->places.items[at].address == address);
    frag_device_result result = drop_range(cuda, at);
    if (result != FRAG_DEVICE_OK)
        return result;
    return cuda->book->ops->unreserve(cuda->book, address, bytes);
}

/* The place that a mapping goes to: the policy's range, or one made for it where the policy took
 * over address space from before the trace. */
static frag_device_result find_range(cuda_device *cuda, uint64_t address, uint64_t bytes,
                                     size_t *range)
{
    *range = frag_cuda_places_find(&cuda->places, address);
    if (*range < cuda->places.count) {
        const frag_cuda_place *place = &cuda->places.items[*range];
        if (address + bytes <= place->address + place->bytes)
            return FRAG_DEVICE_OK;
        return refuse(&cuda->base, "a mapping goes over the end of its reserved range");
    }
    frag_device_result result = get_range(cuda, bytes);
    if (result != FRAG_DEVICE_OK)
        return result;
    add_place(cuda, FRAG_CUDA_PLACE_LOOSE, address, bytes);
    *range = frag_cuda_places_find(&cuda->places, address);
    return FRAG_DEVICE_OK;
}

static frag_device_result get_mapping(cuda_device *cuda, uint64_t address, uint64_t bytes)
{
    size_t at = 0;
    frag_device_result result = find_range(cuda, address, bytes, &at);
    if (result != FRAG_DEVICE_OK)
        return result;
    frag_cuda_place *range = &cuda->places.items[at];
    /* What is taken over may be unmapped at any page. */
    uint64_t unit = range->kind == FRAG_CUDA_PLACE_LOOSE ? 0 : cuda->base.map_unit_bytes;
    unit = unit == 0 ? cuda->base.page_bytes : unit;
    int code = frag_cuda_mapper_map(&cuda->mapper, range, address, bytes, unit);
    result = judge(cuda, cuda->mapper.call, code);
    if (result != FRAG_DEVICE_OK && range->kind == FRAG_CUDA_PLACE_LOOSE &&
        range->mapped_bytes == 0 && drop_range(cuda, at) == FRAG_DEVICE_FAILED)
        return FRAG_DEVICE_FAILED;
    return result;
}

static frag_device_result cuda_map(frag_device *device, uint64_t address, uint64_t bytes)
{
    cuda_device *cuda = from_base(device);
    frag_device_result result = need_virtual_memory(device);
    if (result != FRAG_DEVICE_OK)
        return result;
    result = cuda->book->ops->map(cuda->book, address, bytes);
    take_thresholds(cuda);
    return result;
}

static frag_device_result wait_for_all(cuda_device *cuda)
{
    frag_device_result result =
        must(cuda, "cudaDeviceSynchronize", cuda->cuda->cudaDeviceSynchronize());
    cuda->has_unwaited = cuda->has_unwaited && result != FRAG_DEVICE_OK;
    return result;
}

/* Unmaps what lies in one place of the table. Work that still writes there would fault. */
static frag_device_result unmap_piece(cuda_device *cuda, size_t at, uint64_t address,
                                      uint64_t bytes)
{
    if (cuda->has_unwaited && wait_for_all(cuda) != FRAG_DEVICE_OK)
        return FRAG_DEVICE_FAILED;
    frag_cuda_place *range = &cuda->places.items[at];
    int code = frag_cuda_mapper_unmap(&cuda->mapper, range, address, bytes);
    return must(cuda, cuda->mapper.call, code);
}

static frag_device_result cuda_unmap(frag_device *device, uint64_t address, uint64_t bytes)
{
    cuda_device *cuda = from_base(device);
    if (device->has_failed)
        return FRAG_DEVICE_FAILED;
    /* Taken over range by range, it may go in one piece. */
    for (uint64_t end = address + bytes; address < end;) {
        size_t at = place_of(cuda, address);
        const frag_cuda_place *range = &cuda->places.items[at];
        uint64_t range_end = range->address + range->bytes;
        uint64_t piece = (range_end < end ? range_end : end) - address;
        frag_device_result result = unmap_piece(cuda, at, address, piece);
        if (result == FRAG_DEVICE_OK && range->kind == FRAG_CUDA_PLACE_LOOSE &&
            range->mapped_bytes == 0)
            result = drop_range(cuda, at);
        if (result != FRAG_DEVICE_OK)
            return FRAG_DEVICE_FAILED;
        cuda->book->ops->unmap(cuda->book, address, piece);
        address += piece;
    }
    return FRAG_DEVICE_OK;
}

/* Nothing of this is in the book: no memory is got or given back. */
static frag_device_result cuda_map_again(frag_device *device, uint64_t address, uint64_t bytes,
                                         uint64_t source)
{
    cuda_device *cuda = from_base(device);
    frag_device_result result = need_virtual_memory(device);
    if (result != FRAG_DEVICE_OK)
        return result;
    size_t at = place_of(cuda, address);
    uint64_t unit = device->map_unit_bytes == 0 ? device->page_bytes : device->map_unit_bytes;
    frag_cuda_place place = {.address = address, .bytes = bytes};
    int code =
        frag_cuda_mapper_map_again(&cuda->mapper, &cuda->places.items[at], place, source, unit);
    return judge(cuda, cuda->mapper.call, code);
}

static frag_device_result cuda_unmap_again(frag_device *device, uint64_t address, uint64_t bytes)
{
    cuda_device *cuda = from_base(device);
    if (device->has_failed)
        return FRAG_DEVICE_FAILED;
    size_t at = place_of(cuda, address);
    return unmap_piece(cuda, at, address, bytes);
}

/* ---- the rest */

static uint64_t ballast_leaves(const frag_gpu_device_options *options)
{
    uint64_t others = options->used_by_others_bytes;
    return options->capacity_bytes > others ? options->capacity_bytes - others : 0;
}

static frag_device_result cuda_memory_info(frag_device *device, bool is_look, uint64_t *free_bytes,
                                           uint64_t *total_bytes)
{
    cuda_device *cuda = from_base(device);
    if (device->has_failed)
        return FRAG_DEVICE_FAILED;
    /* Under a budget the card's own figures are not what the policy has to do with. */
    if (cuda->book->capacity_bytes != FRAG_UNLIMITED)
        return cuda->book->ops->memory_info(cuda->book, is_look, free_bytes, total_bytes);
    size_t free_now = 0;
    size_t total = 0;
    frag_device_result result =
        must(cuda, "cudaMemGetInfo", cuda->cuda->cudaMemGetInfo(&free_now, &total));
    *total_bytes = device->capacity_bytes;
    /* A ballast is of whole pages; what it leaves beside the capacity is nobody's. */
    uint64_t start = cuda->report.free_start_bytes;
    uint64_t sum = free_now + (cuda->options.has_ballast ? ballast_leaves(&cuda->options) : start);
    *free_bytes = sum > start ? sum - start : 0;
    return result;
}

static frag_device_result cuda_synchronize(frag_device *device)
{
    return device->has_failed ? FRAG_DEVICE_FAILED : wait_for_all(from_base(device));
}

static frag_device_result cuda_event_record(frag_device *device, uint32_t stream, uint64_t mark)
{
    cuda_device *cuda = from_base(device);
    return device->has_failed
               ? FRAG_DEVICE_FAILED
               : of_stream(cuda, frag_cuda_streams_record(&cuda->streams, stream, mark));
}

static frag_device_result cuda_event_query(frag_device *device, uint32_t stream, uint64_t mark,
                                           bool *is_done)
{
    cuda_device *cuda = from_base(device);
    return device->has_failed
               ? FRAG_DEVICE_FAILED
               : of_stream(cuda, frag_cuda_streams_query(&cuda->streams, stream, mark, is_done));
}

static frag_device_result cuda_event_wait(frag_device *device, uint32_t stream, uint64_t mark)
{
    cuda_device *cuda = from_base(device);
    return device->has_failed
               ? FRAG_DEVICE_FAILED
               : of_stream(cuda, frag_cuda_streams_wait(&cuda->streams, stream, mark));
}

static frag_device_result cuda_event_await(frag_device *device, uint32_t stream, uint32_t other,
                                           uint64_t event)
{
    cuda_device *cuda = from_base(device);
    (void)event;
    return device->has_failed
               ? FRAG_DEVICE_FAILED
               : of_stream(cuda, frag_cuda_streams_await(&cuda->streams, stream, other));
}

static frag_device_result cuda_stream_wait(frag_device *device, uint32_t stream)
{
    cuda_device *cuda = from_base(device);
    return device->has_failed
               ? FRAG_DEVICE_FAILED
               : of_stream(cuda, frag_cuda_streams_synchronize(&cuda->streams, stream));
}

static frag_device_result cuda_touch(frag_device *device, uint64_t address, uint64_t bytes,
                                     uint32_t stream)
{
    cuda_device *cuda = from_base(device);
    frag_cuda_stream handle = NULL;
    int code = frag_cuda_streams_get(&cuda->streams, stream, &handle);
    if (code != FRAG_CUDA_OK)
        return must(cuda, cuda->streams.call, code);
    cuda->has_unwaited = true;
    for (uint64_t end = address + bytes; address < end;) {
        size_t at = frag_cuda_places_find(&cuda->places, address);
        if (at == cuda->places.count)
            return refuse(device, "the policy granted memory that the device did not give");
        const frag_cuda_place *place = &cuda->places.items[at];
        uint64_t place_end = place->address + place->bytes;
        uint64_t piece = (place_end < end ? place_end : end) - address;
        uint64_t real = place->real + (address - place->address);
        code = cuda->cuda->cudaMemsetAsync((void *)(uintptr_t)real, 0, (size_t)piece, handle);
        if (code != FRAG_CUDA_OK)
            return must(cuda, "cudaMemsetAsync", code);
        address += piece;
    }
    return FRAG_DEVICE_OK;
}

static void cuda_keep_clear(frag_device *device, uint64_t address, uint64_t bytes)
{
    frag_device_keep_clear(from_base(device)->book, address, bytes);
}

static frag_device_result adopt_malloc(cuda_device *cuda, uint64_t address, uint64_t bytes)
{
    cuda->is_async = false;
    frag_device_result result = get_malloc(cuda, bytes);
    if (result == FRAG_DEVICE_OK)
        add_place(cuda, FRAG_CUDA_PLACE_MALLOC, address, bytes);
    else if (result == FRAG_DEVICE_OUT_OF_MEMORY)
        cuda->book->ops->free(cuda->book, address, bytes);
    return result;
}

static frag_device_result cuda_adopt(frag_device *device, uint64_t address, uint64_t bytes,
                                     bool is_mapped_range)
{
    cuda_device *cuda = from_base(device);
    frag_device_result result = is_mapped_range ? need_virtual_memory(device) : FRAG_DEVICE_OK;
    if (device->has_failed || result != FRAG_DEVICE_OK)
        return FRAG_DEVICE_FAILED;
    if (cuda->options.has_driver_addresses)
        return refuse(device, "what was held before a trace has recorded addresses; it cannot be "
                              "taken over beside the driver's own");
    result = cuda->book->ops->adopt(cuda->book, address, bytes, is_mapped_range);
    take_thresholds(cuda);
    if (result != FRAG_DEVICE_OK || !is_mapped_range)
        return result != FRAG_DEVICE_OK ? result : adopt_malloc(cuda, address, bytes);
    result = get_mapping(cuda, address, bytes);
    if (result == FRAG_DEVICE_OUT_OF_MEMORY)
        cuda->book->ops->unmap(cuda->book, address, bytes);
    return result;
}

/* ---- beginning and end */

/* The book has counted a call; get what it is for. */
static frag_device_result get_real(void *context, frag_device_call call, uint64_t bytes,
                                   uint64_t *address)
{
    cuda_device *cuda = context;
    if (call == FRAG_DEVICE_MAP)
        return get_mapping(cuda, *address, bytes);
    frag_device_result result =
        call == FRAG_DEVICE_RESERVE ? get_range(cuda, bytes) : get_malloc(cuda, bytes);
    *address = cuda->real;
    return result;
}

static void give_back_places(cuda_device *cuda)
{
    frag_cuda_mapper_empty(&cuda->mapper);
    for (size_t i = 0; i < cuda->places.count; i++) {
        const frag_cuda_place *place = &cuda->places.items[i];
        if (place->kind == FRAG_CUDA_PLACE_MALLOC)
            cuda->cuda->cudaFree((void *)(uintptr_t)place->real);
        else if (place->kind == FRAG_CUDA_PLACE_POOL)
            cuda->cuda->cudaFreeAsync((void *)(uintptr_t)place->real, NULL);
        else
            give_range(cuda, place->real, place->bytes);
    }
    frag_cuda_places_destroy(&cuda->places);
}

static void read_pool(cuda_device *cuda)
{
    frag_cuda_pool pool = NULL;
    if (cuda->base.counts.calls[FRAG_DEVICE_MALLOC_ASYNC] == 0 ||
        cuda->cuda->cudaDeviceGetDefaultMemPool(&pool, cuda->gpu->ordinal) != FRAG_CUDA_OK)
        return;
    cuda->cuda->cudaMemPoolGetAttribute(pool, FRAG_CUDA_POOL_RESERVED_HIGH,
                                        &cuda->report.pool_reserved_peak_bytes);
    cuda->cuda->cudaMemPoolGetAttribute(pool, FRAG_CUDA_POOL_USED_HIGH,
                                        &cuda->report.pool_used_peak_bytes);
    cuda->cuda->cudaDeviceSynchronize();
    cuda->cuda->cudaMemPoolTrimTo(pool, 0);
}

void frag_cuda_device_finish(frag_device *device, frag_gpu_report *report)
{
    cuda_device *cuda = from_base(device);
    if (!cuda->is_finished) {
        cuda->is_finished = true;
        /* Failures from here on are those of a context that is gone already. */
        cuda->cuda->cudaDeviceSynchronize();
        give_back_places(cuda);
        read_pool(cuda);
        frag_cuda_streams_destroy(&cuda->streams);
        frag_cuda_ballast_empty(&cuda->ballast, cuda->gpu);
        frag_cuda_free_bytes(cuda->gpu, &cuda->report.free_after_bytes, NULL);
        if (!device->has_failed)
            refuse(device, "the run on the card is over");
        device->has_failed = true;
    }
    if (report != NULL)
        *report = cuda->report;
}

void frag_cuda_device_set_stream(frag_device *device, uint32_t stream, frag_cuda_stream handle)
{
    frag_cuda_streams_set(&from_base(device)->streams, stream, handle);
}

static void cuda_destroy(frag_device *device)
{
    cuda_device *cuda = from_base(device);
    frag_cuda_device_finish(device, NULL);
    frag_cuda_mapper_destroy(&cuda->mapper);
    frag_device_destroy(cuda->book);
    free(cuda);
}

static const frag_device_ops cuda_ops = {
    .name = "cuda",
    .malloc = cuda_malloc,
    .free = cuda_free,
    .reserve = cuda_reserve,
    .unreserve = cuda_unreserve,
    .map = cuda_map,
    .unmap = cuda_unmap,
    .map_again = cuda_map_again,
    .unmap_again = cuda_unmap_again,
    .malloc_async = cuda_malloc_async,
    .free_async = cuda_free_async,
    .memory_info = cuda_memory_info,
    .synchronize = cuda_synchronize,
    .event_record = cuda_event_record,
    .event_query = cuda_event_query,
    .event_wait = cuda_event_wait,
    .event_await = cuda_event_await,
    .stream_wait = cuda_stream_wait,
    .touch = cuda_touch,
    .adopt = cuda_adopt,
    .keep_clear = cuda_keep_clear,
    .destroy = cuda_destroy,
};

/* The driver's pool keeps what is freed, as frameworks tell it to, and counts its peaks anew. */
static bool set_up_pool(cuda_device *cuda, frag_error *error)
{
    const frag_cuda_runtime *runtime = cuda->cuda;
    uint64_t keep = UINT64_MAX;
    uint64_t zero = 0;
    frag_cuda_pool pool = NULL;
    int code = runtime->cudaDeviceGetDefaultMemPool(&pool, cuda->gpu->ordinal);
    if (code != FRAG_CUDA_OK)
        return frag_cuda_fail(runtime, "cudaDeviceGetDefaultMemPool", code, error);
    code = runtime->cudaMemPoolSetAttribute(pool, FRAG_CUDA_POOL_RELEASE_THRESHOLD, &keep);
    if (code == FRAG_CUDA_OK)
        code = runtime->cudaMemPoolSetAttribute(pool, FRAG_CUDA_POOL_RESERVED_HIGH, &zero);
    if (code == FRAG_CUDA_OK)
        code = runtime->cudaMemPoolSetAttribute(pool, FRAG_CUDA_POOL_USED_HIGH, &zero);
    return code == FRAG_CUDA_OK || frag_cuda_fail(runtime, "cudaMemPoolSetAttribute", code, error);
}

static bool prepare(cuda_device *cuda, frag_error *error)
{
    const frag_gpu_device_options *options = &cuda->options;
    if (!options->has_program_streams &&
        !frag_cuda_warm_up(cuda->gpu, &cuda->facts, cuda->base.page_bytes, error))
        return false;
    if (cuda->facts.has_pools && !options->has_program_streams && !set_up_pool(cuda, error))
        return false;
    if (!frag_cuda_free_bytes(cuda->gpu, &cuda->report.free_before_bytes, error))
        return false;
    cuda->report.free_start_bytes = cuda->report.free_before_bytes;
    if (!options->has_ballast)
        return true;
    bool ok = frag_cuda_ballast_fill(&cuda->ballast, cuda->gpu, ballast_leaves(options),
                                     cuda->base.page_bytes, error) &&
              frag_cuda_free_bytes(cuda->gpu, &cuda->report.free_start_bytes, error);
    cuda->report.ballast_bytes = cuda->ballast.bytes;
    return ok;
}

static frag_device *make_book(cuda_device *cuda)
{
    const frag_gpu_device_options *options = &cuda->options;
    frag_sim_device_options rule = options->rule;
    bool has_budget = !options->has_ballast && options->capacity_bytes != FRAG_UNLIMITED;
    rule.capacity_bytes = has_budget ? options->capacity_bytes : FRAG_UNLIMITED;
    rule.used_by_others_bytes = has_budget ? options->used_by_others_bytes : 0;
    rule.page_bytes = cuda->base.page_bytes;
    if (options->has_driver_addresses)
        rule.address_rule = FRAG_ADDRESS_GIVEN;
    rule.backing = &cuda->backing;
    return frag_sim_device_create(&rule);
}

frag_device *frag_cuda_device_create(frag_gpu *gpu, const frag_gpu_device_options *options,
                                     frag_error *error)
{
    frag_gpu_facts facts;
    if (!frag_gpu_facts_read(gpu, &facts, error))
        return NULL;
    uint64_t page = facts.granularity_bytes != 0 ? facts.granularity_bytes : FRAG_DEVICE_PAGE_BYTES;
    if (options->page_bytes != 0 && options->page_bytes % page != 0) {
        frag_fail(error, FRAG_E_SYSTEM,
                  "pages of %llu bytes do not fit the card, which maps multiples of %llu",
                  (unsigned long long)options->page_bytes, (unsigned long long)page);
        return NULL;
    }
    cuda_device *cuda = frag_alloc(1, sizeof *cuda);
    cuda->gpu = gpu;
    cuda->cuda = &gpu->cuda;
    cuda->options = *options;
    cuda->facts = facts;
    cuda->base = (frag_device){
        .ops = &cuda_ops,
        .capacity_bytes =
            options->capacity_bytes != FRAG_UNLIMITED ? options->capacity_bytes : facts.total_bytes,
        .page_bytes = options->page_bytes != 0 ? options->page_bytes : page,
        .needs.refused_min_bytes = FRAG_UNLIMITED,
        .ordinal = options->rule.device,
        .streams.has_clock = options->has_program_streams,
    };
    snprintf(cuda->base.name, sizeof cuda->base.name, "cuda:%d", gpu->ordinal);
    cuda->backing = (frag_device_backing){.context = cuda, .get = get_real};
    cuda->streams.cuda = cuda->cuda;
    cuda->mapper.cuda = cuda->cuda;
    cuda->mapper.properties = frag_gpu_memory_properties(gpu);
    cuda->book = make_book(cuda);
    if (prepare(cuda, error))
        return &cuda->base;
    cuda_destroy(&cuda->base);
    return NULL;
}
