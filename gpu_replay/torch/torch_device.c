#include "gpu_replay/torch/torch_device.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "gpu_replay/device/cuda_device.h"
#include "gpu_replay/torch/torch_streams.h"
#include "sim/policy_engine.h"

#define CAPTURE_MODE_RELAXED 2 /* cudaStreamCaptureModeRelaxed */

/* ---- opening */

/* A function pointer may not be cast from void * in ISO C; its bytes may be copied. */
static void find(const frag_gpu *gpu, const char *name, void *function)
{
    void *found = dlsym(gpu->cuda.library, name);
    memcpy(function, &found, sizeof found);
}

/* The runtime that the program has loaded already, before whatever else the machine has. */
static const char *runtime_of_program(void)
{
    static const char *const names[] = {"libcudart.so.13", "libcudart.so.12"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *library = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);
        if (library == NULL)
            continue;
        dlclose(library);
        return names[i];
    }
    return NULL;
}

static void note_call(void *context, const frag_device_report *report)
{
    static const struct {
        frag_device_call call;
        frag_op op;
        bool is_gain;
    } moves[] = {
        {FRAG_DEVICE_MALLOC, FRAG_OP_SEGMENT_ALLOC, true},
        {FRAG_DEVICE_FREE, FRAG_OP_SEGMENT_FREE, false},
        {FRAG_DEVICE_MAP, FRAG_OP_SEGMENT_MAP, true},
        {FRAG_DEVICE_UNMAP, FRAG_OP_SEGMENT_UNMAP, false},
    };
    frag_torch_device *device = context;
    if (report->call == FRAG_DEVICE_STREAM_WAIT || report->call == FRAG_DEVICE_SYNCHRONIZE)
        device->has_waited = true;
    for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++) {
        if (moves[i].call != report->call || report->result != FRAG_DEVICE_OK ||
            report->is_second_map)
            continue;
        frag_torch_counts *counts = &device->counts;
        (moves[i].is_gain ? frag_torch_count_add : frag_torch_count_remove)(&counts->reserved_bytes,
                                                                            report->bytes);
        (moves[i].is_gain ? frag_torch_count_add : frag_torch_count_remove)(&counts->segments, 1);
        frag_torch_log_add(device->log, &(frag_torch_event){.op = (uint8_t)moves[i].op,
                                                            .stream = (uint16_t)report->stream,
                                                            .pool = (uint16_t)report->pool,
                                                            .bytes = report->bytes,
                                                            .address = report->address});
    }
}

/* Pages that go must not be written to any more. Policies that know streams have waited for the
 * right one; for the others the whole card is. */
static void wait_for_work(frag_torch_device *device)
{
    if (!device->has_waited)
        device->gpu->cuda.cudaDeviceSynchronize();
    device->has_waited = false;
}

static frag_device_result unmap_idle(frag_device *base, uint64_t address, uint64_t bytes)
{
    frag_torch_device *device = base->watch.on_call_context;
    wait_for_work(device);
    return device->card_ops->unmap(base, address, bytes);
}

static frag_device_result unmap_again_idle(frag_device *base, uint64_t address, uint64_t bytes)
{
    frag_torch_device *device = base->watch.on_call_context;
    wait_for_work(device);
    return device->card_ops->unmap_again(base, address, bytes);
}

static void deliver_all(void *context)
{
    frag_torch_wait_all(context);
}

static bool open_card(frag_torch_device *device, const frag_torch_settings *settings,
                      frag_error *error)
{
    const char *path = settings->runtime_path;
    device->gpu = frag_gpu_open(path != NULL ? path : runtime_of_program(), device->ordinal, error);
    if (device->gpu == NULL)
        return false;
    find(device->gpu, "cudaGetDevice", &device->calls.cudaGetDevice);
    find(device->gpu, "cudaThreadExchangeStreamCaptureMode",
         &device->calls.cudaThreadExchangeStreamCaptureMode);
    frag_gpu_device_options options = {
        .capacity_bytes = settings->capacity_bytes,
        .has_driver_addresses = true,
        .has_program_streams = true,
        .rule = {.device = device->ordinal},
    };
    device->device = frag_cuda_device_create(device->gpu, &options, error);
    if (device->device == NULL)
        return false;
    device->card_ops = device->device->ops;
    device->ops = *device->card_ops;
    device->ops.unmap = unmap_idle;
    device->ops.unmap_again = unmap_again_idle;
    device->device->ops = &device->ops;
    device->device->ordinal = device->ordinal;
    device->device->watch.on_call = note_call;
    device->device->watch.on_call_context = device;
    device->device->watch.on_synchronize = deliver_all;
    device->device->watch.on_synchronize_context = device;
    return true;
}

static void destroy(frag_torch_device *device)
{
    frag_torch_policy_destroy(&device->policy);
    frag_device_destroy(device->device);
    frag_gpu_close(device->gpu);
    frag_torch_log_destroy(device->log);
    free(device->streams);
    free(device);
}

/* The thread's current device is the program's, and opening a card changes it. */
static int current_of(const frag_torch_device *device)
{
    int current = -1;
    if (device->calls.cudaGetDevice == NULL ||
        device->calls.cudaGetDevice(&current) != FRAG_CUDA_OK)
        current = -1;
    return current;
}

/* Which device is current before any card is open here; -1: not known. */
static int current_of_program(const frag_torch_settings *settings)
{
    const char *path =
        settings->runtime_path != NULL ? settings->runtime_path : runtime_of_program();
    void *library = path != NULL ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (library == NULL)
        return -1;
    frag_torch_device probe = {0};
    frag_gpu gpu = {.cuda = {.library = library}};
    find(&gpu, "cudaGetDevice", &probe.calls.cudaGetDevice);
    int current = current_of(&probe);
    dlclose(library);
    return current;
}

frag_torch_device *frag_torch_device_create(const frag_torch_settings *settings, uint32_t ordinal,
                                            frag_error *error)
{
    int current = current_of_program(settings);
    frag_torch_device *device = frag_alloc(1, sizeof *device);
    device->ordinal = ordinal;
    device->unused_block = FRAG_TORCH_NONE;
    frag_torch_streams_create(device);
    device->log = settings->record_path != NULL ? frag_torch_log_create() : NULL;
    bool ok = open_card(device, settings, error);
    ok = ok && frag_torch_policy_create(&device->policy, &settings->policy, settings->torch_version,
                                        device->device, error);
    if (device->gpu != NULL && current >= 0)
        device->gpu->cuda.cudaSetDevice(current);
    if (!ok) {
        destroy(device);
        return NULL;
    }
    if (frag_policy_engine_of(device->policy.ops)->statistics != NULL)
        frag_policy_engine_of(device->policy.ops)->statistics->keep(device->policy.policy);
    return device;
}

/* Device calls go to the thread's current device, so that it must be this one while the policy
 * works. Returns what to go back to, -1: nothing to do. */
static int enter(const frag_torch_device *device)
{
    int current = current_of(device);
    if (current < 0 || (uint32_t)current == device->ordinal)
        return -1;
    return device->gpu->cuda.cudaSetDevice((int)device->ordinal) == FRAG_CUDA_OK ? current : -1;
}

static void leave(const frag_torch_device *device, int previous)
{
    if (previous >= 0)
        device->gpu->cuda.cudaSetDevice(previous);
}

/* ---- requests */

static void log_oom(frag_torch_device *device, const frag_request *request, bool is_counted)
{
    if (device->log == NULL)
        return;
    frag_torch_event event = {.stream = (uint16_t)request->stream,
                              .pool = (uint16_t)request->pool,
                              .bytes = request->bytes};
    if (is_counted) {
        uint64_t free_bytes = 0;
        uint64_t total_bytes = 0;
        device->device->ops->memory_info(device->device, true, &free_bytes, &total_bytes);
        event.op = FRAG_OP_OOM;
        event.address = free_bytes;
        frag_torch_log_add(device->log, &event);
    }
    event.op = FRAG_OP_ALLOC;
    event.address = 0;
    event.flags = FRAG_EVENT_FAILED;
    event.slot = FRAG_SLOT_NONE;
    frag_torch_log_add(device->log, &event);
}

/* The policy has given up. */
static void describe_refusal(frag_torch_device *device, const frag_request *request, char *message)
{
    if (device->device->has_failed) {
        snprintf(message, FRAG_TORCH_MESSAGE_BYTES, "GPU %" PRIu32 " serves nothing any more: %s",
                 device->ordinal, device->device->failure);
        return;
    }
    const frag_torch_policy *policy = &device->policy;
    bool is_counted = true;
    message[0] = '\0';
    if (policy->ops->describe_oom != NULL)
        is_counted =
            policy->ops->describe_oom(policy->policy, request, message, FRAG_TORCH_MESSAGE_BYTES);
    if (message[0] == '\0') {
        char asked[FRAG_BYTES_TEXT_MAX];
        char held[FRAG_BYTES_TEXT_MAX];
        char used[FRAG_BYTES_TEXT_MAX];
        char capacity[FRAG_BYTES_TEXT_MAX];
        snprintf(message, FRAG_TORCH_MESSAGE_BYTES,
                 "CUDA out of memory. Tried to allocate %s. GPU %" PRIu32 " may hold %s in all; "
                 "the policy %s holds %s of it, of which %s is in use.",
                 frag_bytes_text(request->bytes, asked), device->ordinal,
                 frag_bytes_text(device->device->capacity_bytes, capacity), policy->ops->name,
                 frag_bytes_text(device->counts.reserved_bytes.current, held),
                 frag_bytes_text(device->counts.active_bytes.current, used));
    }
    device->counts.oom_count += is_counted ? 1 : 0;
    log_oom(device, request, is_counted);
}

static uint64_t keep(frag_torch_device *device, const frag_request *request,
                     const frag_grant *grant)
{
    uint32_t number = frag_torch_block_take(device);
    device->blocks[number] = (frag_torch_block){
        .address = grant->address,
        .requested_bytes = request->bytes,
        .block_bytes = grant->block_bytes,
        .handle = grant->handle,
        .first_use = FRAG_TORCH_NONE,
        .stream = (uint16_t)request->stream,
        .pool = (uint16_t)request->pool,
    };
    frag_torch_pointers_add(&device->pointers, grant->address, number);
    frag_torch_counts *counts = &device->counts;
    frag_torch_count_add(&counts->requested_bytes, request->bytes);
    frag_torch_count_add(&counts->allocated_bytes, grant->block_bytes);
    frag_torch_count_add(&counts->active_bytes, grant->block_bytes);
    frag_torch_count_add(&counts->allocations, 1);
    frag_torch_count_add(&counts->active, 1);
    frag_torch_log_add(device->log, &(frag_torch_event){.op = FRAG_OP_ALLOC,
                                                        .slot = number,
                                                        .stream = (uint16_t)request->stream,
                                                        .pool = (uint16_t)request->pool,
                                                        .bytes = request->bytes,
                                                        .address = grant->address});
    return grant->address;
}

/* The policy is asked. While a graph is captured a device malloc would break the capture, unless
 * the thread says that it knows what it does. */
static bool ask(frag_torch_device *device, const frag_request *request, frag_grant *grant)
{
    int mode = CAPTURE_MODE_RELAXED;
    bool is_captured =
        device->pools.scope_count > 0 && device->calls.cudaThreadExchangeStreamCaptureMode != NULL;
    if (is_captured)
        device->calls.cudaThreadExchangeStreamCaptureMode(&mode);
    frag_device_for(device->device, request->stream, request->pool);
    bool is_served = device->policy.ops->alloc(device->policy.policy, request, grant);
    if (is_captured)
        device->calls.cudaThreadExchangeStreamCaptureMode(&mode);
    return is_served;
}

static bool number_request(frag_torch_device *device, frag_cuda_stream stream,
                           frag_request *request, char *message)
{
    message[0] = '\0';
    if (request->bytes > FRAG_REQUEST_BYTES_MAX)
        snprintf(message, FRAG_TORCH_MESSAGE_BYTES,
                 "CUDA out of memory. Tried to allocate %" PRIu64 " bytes, which no GPU has.",
                 request->bytes);
    else if (device->held_count == FRAG_TORCH_LIVE_MAX)
        snprintf(message, FRAG_TORCH_MESSAGE_BYTES,
                 "fraglab serves at most %" PRIu32 " blocks at once.", FRAG_TORCH_LIVE_MAX);
    else if (!frag_torch_stream_number(device, stream, &request->stream))
        snprintf(message, FRAG_TORCH_MESSAGE_BYTES,
                 "fraglab serves at most %u streams on a device.", FRAG_TORCH_STREAM_MAX);
    return message[0] == '\0';
}

static void log_pool(frag_torch_device *device, frag_op op, uint32_t pool, uint32_t stream)
{
    frag_torch_log_add(
        device->log,
        &(frag_torch_event){.op = (uint8_t)op, .slot = pool, .stream = (uint16_t)stream});
}

/* The first request of a capture says which stream is captured. */
static uint32_t route(frag_torch_device *device, const frag_request *request,
                      frag_cuda_stream stream)
{
    frag_torch_scope *scope = frag_torch_pools_route(&device->pools, stream);
    if (scope == NULL)
        return 0;
    if (!scope->is_used)
        log_pool(device, FRAG_OP_POOL_BEGIN, scope->pool, request->stream);
    scope->is_used = true;
    return scope->pool;
}

uint64_t frag_torch_device_alloc(frag_torch_device *device, uint64_t bytes, frag_cuda_stream stream,
                                 char message[FRAG_TORCH_MESSAGE_BYTES])
{
    frag_request request = {.bytes = bytes};
    if (!number_request(device, stream, &request, message))
        return 0;
    request.pool = route(device, &request, stream);
    int previous = enter(device);
    frag_torch_wait_poll(device);
    frag_torch_stream_join(device, request.stream);
    frag_grant grant;
    bool is_served = ask(device, &request, &grant);
    if (!is_served)
        describe_refusal(device, &request, message);
    leave(device, previous);
    return is_served ? keep(device, &request, &grant) : 0;
}

bool frag_torch_device_free(frag_torch_device *device, uint64_t address, frag_cuda_stream stream)
{
    uint32_t number = 0;
    if (!frag_torch_pointers_take(&device->pointers, address, &number))
        return false;
    frag_torch_block *block = &device->blocks[number];
    frag_torch_count_remove(&device->counts.requested_bytes, block->requested_bytes);
    frag_torch_count_remove(&device->counts.allocated_bytes, block->block_bytes);
    frag_torch_count_remove(&device->counts.allocations, 1);
    if (device->is_closed)
        return true;
    uint32_t freed_on = block->stream;
    (void)frag_torch_stream_number(device, stream, &freed_on);
    block->freed_on = (uint16_t)freed_on;
    int previous = enter(device);
    bool is_waiting = frag_torch_wait_begin(device, number);
    frag_torch_log_add(device->log,
                       &(frag_torch_event){.op = FRAG_OP_FREE,
                                           .flags = is_waiting ? FRAG_EVENT_DEFERRED : 0,
                                           .slot = number,
                                           .stream = (uint16_t)freed_on,
                                           .address = address});
    if (!is_waiting)
        frag_torch_block_release(device, number);
    else if (device->policy.ops->defer != NULL)
        device->policy.ops->defer(device->policy.policy, device->blocks[number].handle);
    leave(device, previous);
    return true;
}

bool frag_torch_device_use(frag_torch_device *device, uint64_t address, frag_cuda_stream stream)
{
    uint32_t block = 0;
    uint32_t number = 0;
    if (!frag_torch_pointers_find(&device->pointers, address, &block))
        return false;
    if (frag_torch_stream_number(device, stream, &number)) {
        frag_torch_use_add(device, block, number);
    } else {
        /* No number is left for it: its work so far is waited for at once. */
        device->gpu->cuda.cudaStreamSynchronize(stream);
    }
    return true;
}

typedef struct segment_search {
    uint64_t address;
    uint64_t base;
    uint64_t bytes;
} segment_search;

static void look_at_span(void *context, const frag_span *span)
{
    segment_search *search = context;
    if (span->kind == FRAG_SPAN_SEGMENT && search->address >= span->address &&
        search->address - span->address < span->bytes) {
        search->base = span->address;
        search->bytes = span->bytes;
    }
}

bool frag_torch_device_segment(const frag_torch_device *device, uint64_t address, uint64_t *base,
                               uint64_t *bytes)
{
    uint32_t number = 0;
    if (!frag_torch_pointers_find(&device->pointers, address, &number))
        return false;
    segment_search search = {.address = address};
    device->policy.ops->walk(device->policy.policy, look_at_span, &search);
    *base = search.base;
    *bytes = search.bytes;
    return search.bytes > 0;
}

/* ---- what else the program can ask */

void frag_torch_device_empty_cache(frag_torch_device *device)
{
    frag_torch_log_add(device->log,
                       &(frag_torch_event){.op = FRAG_OP_EMPTY_CACHE, .slot = FRAG_SLOT_NONE});
    int previous = enter(device);
    frag_torch_wait_poll(device);
    if (device->policy.ops->empty_cache != NULL)
        device->policy.ops->empty_cache(device->policy.policy, FRAG_POOL_ALL);
    leave(device, previous);
}

bool frag_torch_device_limit(frag_torch_device *device, double fraction)
{
    if (!(fraction >= 0 && fraction <= 1) ||
        !frag_policy_set_share(device->policy.ops, device->policy.policy, device->device, fraction))
        return false;
    frag_torch_log_add(device->log, &(frag_torch_event){.op = FRAG_OP_LIMIT,
                                                        .flags = FRAG_EVENT_RATIO,
                                                        .bytes = frag_ratio_code(fraction)});
    return true;
}

static void change_capture(frag_torch_device *device, bool begins)
{
    if (device->policy.ops->capture == NULL)
        return;
    device->policy.ops->capture(device->policy.policy, begins);
    frag_torch_log_add(device->log, &(frag_torch_event){.op = begins ? FRAG_OP_CAPTURE_BEGIN
                                                                     : FRAG_OP_CAPTURE_END});
}

bool frag_torch_device_pool_begin(frag_torch_device *device, frag_pool_id id,
                                  const frag_torch_filter *filter,
                                  char message[FRAG_TORCH_MESSAGE_BYTES])
{
    if (device->policy.ops->pool_change == NULL) {
        snprintf(message, FRAG_TORCH_MESSAGE_BYTES,
                 "the policy %s knows no private pools, which CUDA graphs need; use pytorch, or "
                 "run without graphs",
                 device->policy.ops->name);
        return false;
    }
    uint32_t pool = frag_torch_pool_number(&device->pools, device->policy.pool_ids, id);
    if (pool == 0) {
        snprintf(message, FRAG_TORCH_MESSAGE_BYTES,
                 "fraglab serves at most %u private pools on a device", FRAG_TORCH_POOL_MAX - 1);
        return false;
    }
    if (!frag_torch_pools_open(&device->pools, pool, filter)) {
        snprintf(message, FRAG_TORCH_MESSAGE_BYTES,
                 "requests go to the private pool (%" PRIu64 ", %" PRIu64 ") already", id.high,
                 id.low);
        return false;
    }
    /* Which requests go there is decided here: the policy is told with each of them. */
    device->policy.ops->pool_change(device->policy.policy, FRAG_POOL_BEGUN, pool,
                                    FRAG_TORCH_STREAM_NOBODY);
    change_capture(device, true);
    return true;
}

void frag_torch_device_pool_end(frag_torch_device *device, frag_pool_id id)
{
    uint32_t pool = frag_torch_pool_find(&device->pools, device->policy.pool_ids, id);
    bool is_used = false;
    if (pool == 0 || !frag_torch_pools_close(&device->pools, pool, &is_used))
        return;
    change_capture(device, false);
    if (!is_used)
        log_pool(device, FRAG_OP_POOL_BEGIN, pool, 0);
    log_pool(device, FRAG_OP_POOL_END, pool, 0);
    device->policy.ops->pool_change(device->policy.policy, FRAG_POOL_ENDED, pool,
                                    FRAG_STREAM_EVERY);
}

void frag_torch_device_pool_release(frag_torch_device *device, frag_pool_id id)
{
    uint32_t pool = frag_torch_pool_find(&device->pools, device->policy.pool_ids, id);
    if (pool == 0)
        return;
    log_pool(device, FRAG_OP_POOL_RELEASE, pool, 0);
    device->policy.ops->pool_change(device->policy.policy, FRAG_POOL_RELEASED, pool,
                                    FRAG_STREAM_EVERY);
}

void frag_torch_device_close(frag_torch_device *device)
{
    int previous = enter(device);
    frag_torch_wait_all(device);
    if (device->held_count == 0 && !device->is_closed) {
        for (size_t i = 0; i < device->spare_event_count; i++)
            device->gpu->cuda.cudaEventDestroy(device->spare_events[i]);
        device->spare_event_count = 0;
        device->device->watch.on_call = NULL;
        if (device->policy.ops->empty_cache != NULL)
            device->policy.ops->empty_cache(device->policy.policy, FRAG_POOL_ALL);
        frag_device_destroy(device->device);
        device->device = NULL;
        device->is_closed = true;
    }
    leave(device, previous);
}
