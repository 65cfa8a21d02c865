#include "sim/device.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "sim/image.h"
#include "base/memory.h"
#include "sim/device/latency.h"

static const char *const result_names[] = {
    [FRAG_DEVICE_OK] = "ok",
    [FRAG_DEVICE_OUT_OF_MEMORY] = "out_of_memory",
    [FRAG_DEVICE_FAILED] = "failed",
};

/* When a call begins; 0 where calls are not timed. */
static uint64_t start(const frag_device *device)
{
    return device->times.clock_ns != NULL ? device->times.clock_ns() : 0;
}

static void keep_answer(const frag_device *device, frag_answer_kind kind, frag_device_call call,
                        uint64_t address, uint64_t bytes, frag_device_result result)
{
    if (device->watch.on_answer == NULL)
        return;
    frag_device_answer answer = {(uint8_t)kind, (uint8_t)call, (uint8_t)result, address, bytes};
    device->watch.on_answer(device->watch.on_answer_context, &answer);
}

/* The engine looks for failures where reserved bytes change, so this counts as a change. */
static frag_device_result note_failure(frag_device *device, frag_device_result result)
{
    if (result == FRAG_DEVICE_FAILED) {
        device->has_failed = true;
        device->has_changed = true;
    }
    return result;
}

static void log_call(const frag_device *device, frag_device_call call, uint64_t address,
                     uint64_t bytes, frag_device_result result, uint64_t took_ns)
{
    FILE *stream = device->log.stream;
    fprintf(stream, "%" PRIu64 "\t%s\t0x%" PRIx64 "\t%" PRIu64 "\t%s", device->log.event,
            frag_device_call_name(call), address, bytes, result_names[result]);
    if (device->times.clock_ns != NULL)
        fprintf(stream, "\t%" PRIu64, took_ns);
    fputc('\n', stream);
}

/* Counts, times and logs one finished call. */
static void count(frag_device *device, uint64_t started_ns, frag_device_call call, uint64_t address,
                  uint64_t bytes, frag_device_result result)
{
    uint64_t took_ns = start(device) - started_ns;
    device->counts.calls[call]++;
    device->times.call_ns[call] += took_ns;
    if (result == FRAG_DEVICE_OK) {
        device->counts.call_bytes[call] += bytes;
    } else if (result == FRAG_DEVICE_OUT_OF_MEMORY) {
        device->counts.failed_calls[call]++;
        device->needs.refused_bytes = bytes;
    }
    if (device->times.latency != NULL)
        device->times.modelled_ns += frag_latency_ns(&device->times.latency->calls[call], bytes);
    if (device->log.stream != NULL)
        log_call(device, call, address, bytes, result, took_ns);
    if (call != FRAG_DEVICE_MEMORY_INFO)
        keep_answer(device, FRAG_ANSWER_CALL, call, address, bytes, result);
}

/* ... and shows it to those who watch, few as they are. is_second_map: of memory that is mapped
 * elsewhere, too. */
FRAG_INLINE frag_device_result account_as(frag_device *device, bool is_second_map,
                                          uint64_t started_ns, frag_device_call call,
                                          uint64_t address, uint64_t bytes,
                                          frag_device_result result)
{
    count(device, started_ns, call, address, bytes, result);
    if (device->watch.on_call != NULL)
        device->watch.on_call(device->watch.on_call_context,
                              &(frag_device_report){.call = call,
                                                    .address = address,
                                                    .bytes = bytes,
                                                    .result = result,
                                                    .stream = device->for_stream,
                                                    .pool = device->for_pool,
                                                    .is_second_map = is_second_map});
    return note_failure(device, result);
}

static frag_device_result account(frag_device *device, uint64_t started_ns, frag_device_call call,
                                  uint64_t address, uint64_t bytes, frag_device_result result)
{
    return account_as(device, false, started_ns, call, address, bytes, result);
}

static void hold(frag_device *device, uint64_t bytes)
{
    device->has_changed = true;
    device->reserved_bytes += bytes;
    if (device->reserved_bytes > device->reserved_peak_bytes)
        device->reserved_peak_bytes = device->reserved_bytes;
}

static void drop(frag_device *device, uint64_t bytes)
{
    FRAG_ASSERT(bytes <= device->reserved_bytes);
    device->has_changed = true;
    device->reserved_bytes -= bytes;
}

frag_device_result frag_device_malloc(frag_device *device, uint64_t bytes, uint64_t *address)
{
    *address = 0;
    uint64_t started_ns = start(device);
    frag_device_result result = device->ops->malloc(device, bytes, address);
    if (result == FRAG_DEVICE_OK)
        hold(device, bytes);
    return account(device, started_ns, FRAG_DEVICE_MALLOC, *address, bytes, result);
}

frag_device_result frag_device_free(frag_device *device, uint64_t address, uint64_t bytes)
{
    uint64_t started_ns = start(device);
    frag_device_result result = device->ops->free(device, address, bytes);
    if (result == FRAG_DEVICE_OK)
        drop(device, bytes);
    return account(device, started_ns, FRAG_DEVICE_FREE, address, bytes, result);
}

frag_device_result frag_device_reserve(frag_device *device, uint64_t bytes, uint64_t *address)
{
    *address = 0;
    uint64_t started_ns = start(device);
    frag_device_result result = device->ops->reserve(device, bytes, address);
    return account(device, started_ns, FRAG_DEVICE_RESERVE, *address, bytes, result);
}

frag_device_result frag_device_unreserve(frag_device *device, uint64_t address, uint64_t bytes)
{
    uint64_t started_ns = start(device);
    return account(device, started_ns, FRAG_DEVICE_UNRESERVE, address, bytes,
                   device->ops->unreserve(device, address, bytes));
}

frag_device_result frag_device_map(frag_device *device, uint64_t address, uint64_t bytes)
{
    uint64_t started_ns = start(device);
    frag_device_result result = device->ops->map(device, address, bytes);
    if (result == FRAG_DEVICE_OK)
        hold(device, bytes);
    return account(device, started_ns, FRAG_DEVICE_MAP, address, bytes, result);
}

frag_device_result frag_device_unmap(frag_device *device, uint64_t address, uint64_t bytes)
{
    uint64_t started_ns = start(device);
    frag_device_result result = device->ops->unmap(device, address, bytes);
    if (result == FRAG_DEVICE_OK)
        drop(device, bytes);
    return account(device, started_ns, FRAG_DEVICE_UNMAP, address, bytes, result);
}

frag_device_result frag_device_map_again(frag_device *device, uint64_t address, uint64_t bytes,
                                         uint64_t source)
{
    uint64_t started_ns = start(device);
    frag_device_result result = FRAG_DEVICE_OK;
    if (device->ops->map_again != NULL)
        result = device->ops->map_again(device, address, bytes, source);
    return account_as(device, true, started_ns, FRAG_DEVICE_MAP, address, bytes, result);
}

frag_device_result frag_device_unmap_again(frag_device *device, uint64_t address, uint64_t bytes)
{
    uint64_t started_ns = start(device);
    frag_device_result result = FRAG_DEVICE_OK;
    if (device->ops->unmap_again != NULL)
        result = device->ops->unmap_again(device, address, bytes);
    return account_as(device, true, started_ns, FRAG_DEVICE_UNMAP, address, bytes, result);
}

frag_device_result frag_device_memory_info(frag_device *device, uint64_t *free_bytes,
                                           uint64_t *total_bytes)
{
    device->needs.is_capacity_read = true;
    uint64_t started_ns = start(device);
    frag_device_result result = device->ops->memory_info(device, false, free_bytes, total_bytes);
    keep_answer(device, FRAG_ANSWER_CALL, FRAG_DEVICE_MEMORY_INFO, *free_bytes, *total_bytes,
                result);
    return account(device, started_ns, FRAG_DEVICE_MEMORY_INFO, 0, 0, result);
}

frag_device_result frag_device_look_at_memory(frag_device *device, uint64_t *free_bytes,
                                              uint64_t *total_bytes)
{
    frag_device_result result = device->ops->memory_info(device, true, free_bytes, total_bytes);
    return note_failure(device, result);
}

bool frag_device_has_pool(const frag_device *device)
{
    return device->ops->malloc_async != NULL && device->ops->free_async != NULL;
}

frag_device_result frag_device_malloc_async(frag_device *device, uint64_t bytes, uint32_t stream,
                                            uint64_t *address)
{
    *address = 0;
    uint64_t started_ns = start(device);
    frag_device_result result = FRAG_DEVICE_OUT_OF_MEMORY;
    if (frag_device_has_pool(device))
        result = device->ops->malloc_async(device, bytes, stream, address);
    if (result == FRAG_DEVICE_OK)
        hold(device, bytes);
    return account(device, started_ns, FRAG_DEVICE_MALLOC_ASYNC, *address, bytes, result);
}

frag_device_result frag_device_free_async(frag_device *device, uint64_t address, uint64_t bytes,
                                          uint32_t stream)
{
    FRAG_ASSERT(frag_device_has_pool(device));
    uint64_t started_ns = start(device);
    frag_device_result result = device->ops->free_async(device, address, stream);
    if (result == FRAG_DEVICE_OK)
        drop(device, bytes);
    return account(device, started_ns, FRAG_DEVICE_FREE_ASYNC, address, bytes, result);
}

void frag_device_touch(frag_device *device, uint64_t address, uint64_t bytes, uint32_t stream)
{
    if (device->ops->touch != NULL && !device->has_failed)
        note_failure(device, device->ops->touch(device, address, bytes, stream));
}

frag_device_result frag_device_synchronize(frag_device *device)
{
    uint64_t started_ns = start(device);
    frag_device_result result = device->ops->synchronize(device);
    account(device, started_ns, FRAG_DEVICE_SYNCHRONIZE, 0, 0, result);
    if (device->watch.on_synchronize != NULL)
        device->watch.on_synchronize(device->watch.on_synchronize_context);
    return result;
}

static frag_stream_clock *clock_of(frag_device *device, uint32_t stream)
{
    size_t old = device->streams.clock_count;
    if (stream >= old) {
        device->streams.clocks = frag_grow(device->streams.clocks, &device->streams.clock_count,
                                           (size_t)stream + 1, sizeof *device->streams.clocks);
        memset(device->streams.clocks + old, 0,
               (device->streams.clock_count - old) * sizeof *device->streams.clocks);
    }
    return &device->streams.clocks[stream];
}

uint64_t frag_device_event_record(frag_device *device, uint32_t stream)
{
    uint64_t started_ns = start(device);
    uint64_t mark = ++clock_of(device, stream)->recorded;
    frag_device_result result = FRAG_DEVICE_OK;
    if (device->ops->event_record != NULL)
        result = device->ops->event_record(device, stream, mark);
    account(device, started_ns, FRAG_DEVICE_EVENT_RECORD, stream, 0, result);
    return mark;
}

/* A device with a clock is asked whether the event is done. On other devices the caller decides: if
 * the recording shows the event as done, the device waits for it. */
static frag_device_result query(frag_device *device, uint32_t stream, uint64_t event, bool *is_done)
{
    if (device->streams.has_clock && device->ops->event_query != NULL && !*is_done)
        return device->ops->event_query(device, stream, event, is_done);
    if (*is_done && device->ops->event_wait != NULL)
        return device->ops->event_wait(device, stream, event);
    return FRAG_DEVICE_OK;
}

bool frag_device_event_is_done(frag_device *device, uint32_t stream, uint64_t event)
{
    uint64_t started_ns = start(device);
    frag_stream_clock *clock = clock_of(device, stream);
    bool is_done = event <= clock->done;
    frag_device_result result = query(device, stream, event, &is_done);
    if (is_done) {
        clock->done = event > clock->done ? event : clock->done;
        account(device, started_ns, FRAG_DEVICE_EVENT_QUERY, stream, 0, result);
    } else {
        note_failure(device, result);
    }
    return is_done;
}

void frag_device_event_wait(frag_device *device, uint32_t stream, uint64_t event)
{
    uint64_t started_ns = start(device);
    frag_stream_clock *clock = clock_of(device, stream);
    if (event > clock->done)
        clock->done = event;
    frag_device_result result = FRAG_DEVICE_OK;
    if (device->ops->event_wait != NULL)
        result = device->ops->event_wait(device, stream, event);
    account(device, started_ns, FRAG_DEVICE_EVENT_WAIT, stream, 0, result);
}

void frag_device_event_await(frag_device *device, uint32_t stream, uint32_t other, uint64_t event)
{
    uint64_t started_ns = start(device);
    frag_device_result result = FRAG_DEVICE_OK;
    if (device->ops->event_await != NULL)
        result = device->ops->event_await(device, stream, other, event);
    uint32_t for_stream = device->for_stream;
    device->for_stream = stream;
    account(device, started_ns, FRAG_DEVICE_EVENT_WAIT, event, 0, result);
    device->for_stream = for_stream;
}

void frag_device_stream_wait(frag_device *device, uint32_t stream)
{
    uint64_t started_ns = start(device);
    if (!device->streams.waits_elsewhere)
        frag_device_stream_done(device, stream);
    frag_device_result result = FRAG_DEVICE_OK;
    if (device->ops->stream_wait != NULL)
        result = device->ops->stream_wait(device, stream);
    account(device, started_ns, FRAG_DEVICE_STREAM_WAIT, stream, 0, result);
}

void frag_device_stream_done(frag_device *device, uint32_t stream)
{
    frag_stream_clock *clock = clock_of(device, stream);
    clock->done = clock->recorded;
}

frag_device_result frag_device_adopt(frag_device *device, uint64_t address, uint64_t bytes,
                                     bool is_mapped_range)
{
    frag_device_result result = device->ops->adopt(device, address, bytes, is_mapped_range);
    if (result == FRAG_DEVICE_OK)
        hold(device, bytes);
    keep_answer(device, FRAG_ANSWER_ADOPT, FRAG_DEVICE_MALLOC, address, bytes, result);
    return note_failure(device, result);
}

void frag_device_keep_clear(frag_device *device, uint64_t address, uint64_t bytes)
{
    if (device->ops->keep_clear != NULL)
        device->ops->keep_clear(device, address, bytes);
}

uint64_t frag_device_capacity(frag_device *device)
{
    device->needs.is_capacity_read = true;
    return device->capacity_bytes;
}

uint64_t frag_device_range_capacity(frag_device *device)
{
    device->needs.has_sized_ranges = true;
    return device->capacity_bytes;
}

void frag_device_note_need(frag_device *device, uint64_t need_bytes, bool is_refused)
{
    frag_device_needs *needs = &device->needs;
    if (is_refused && need_bytes < needs->refused_min_bytes)
        needs->refused_min_bytes = need_bytes;
    if (!is_refused && need_bytes > needs->max_bytes)
        needs->max_bytes = need_bytes;
}

bool frag_device_is_filled_by(frag_device *device, uint64_t bytes)
{
    bool is_filled = bytes >= device->capacity_bytes;
    if (bytes != FRAG_UNLIMITED)
        frag_device_note_need(device, bytes + 1, is_filled);
    return is_filled;
}

void frag_device_destroy(frag_device *device)
{
    if (device == NULL)
        return;
    frag_free(device->streams.clocks);
    device->ops->destroy(device);
}

bool frag_device_keep(const frag_device *device, struct frag_image *image)
{
    const frag_device_streams *streams = &device->streams;
    const frag_device_watch *watch = &device->watch;
    if (device->ops->keep == NULL || device->log.stream != NULL || watch->on_call != NULL ||
        watch->on_answer != NULL)
        return false;
    frag_image_add(image, device, sizeof *device);
    frag_image_add(image, streams->clocks, streams->clock_count * sizeof *streams->clocks);
    return device->ops->keep(device, image);
}

void frag_device_return(frag_device *device, struct frag_image *image)
{
    frag_device_streams now = device->streams;
    frag_device_streams *streams = &device->streams;
    frag_image_take(image, device, sizeof *device);
    size_t kept = streams->clock_count;
    streams->clocks = now.clocks;
    streams->clock_count = now.clock_count;
    frag_image_take(image, streams->clocks, kept * sizeof *streams->clocks);
    if (now.clock_count > kept)
        memset(streams->clocks + kept, 0, (now.clock_count - kept) * sizeof *streams->clocks);
    device->ops->bring_back(device, image);
}
