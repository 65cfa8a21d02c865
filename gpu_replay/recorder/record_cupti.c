/* The recorder as a library that the CUDA driver itself loads, named by CUDA_INJECTION64_PATH.
 *
 * CUPTI calls back before and after each call of the driver that takes or gives back memory, also
 * where the program's runtime is linked statically, and tells results and failures. Activities of
 * kind MEMORY2 are kept beside: they tell of memory after the fact, and serve only where the
 * callbacks saw nothing of it. Source: CUPTI of CUDA 13.0, cupti_callbacks.h, cupti_activity.h. */
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu_replay/device/cuda_abi.h"
#include "gpu_replay/recorder/record_log.h"

#define ACTIVITY_BUFFER_BYTES ((size_t)1 << 20)
#define PER_THREAD_STREAM 2

/* What an activity of kind MEMORY2 begins with in every CUPTI since 11.2; later ones only add at
 * its end. */
typedef struct memory_activity {
    uint32_t kind;
    uint32_t operation; /* 1 allocation, 2 release */
    uint32_t memory_kind;
    uint32_t correlation;
    uint64_t address;
    uint64_t bytes;
    uint64_t timestamp;
    uint64_t program_counter;
    uint32_t process;
    uint32_t device;
    uint32_t context;
    uint32_t stream;
} memory_activity;

#if CUPTI_API_VERSION >= 130000
_Static_assert(offsetof(memory_activity, address) == offsetof(CUpti_ActivityMemory4, address), "");
_Static_assert(offsetof(memory_activity, device) == offsetof(CUpti_ActivityMemory4, deviceId), "");
_Static_assert(offsetof(memory_activity, stream) == offsetof(CUpti_ActivityMemory4, streamId), "");
#endif

enum { MEMORY_IS_ALLOCATION = 1, MEMORY_OF_DEVICE = 3 };

/* The driver calls that are followed, and whether they give memory back. */
static const struct {
    CUpti_CallbackId id;
    bool is_giving_back;
} followed[] = {
    {CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2, false},
    {CUPTI_DRIVER_TRACE_CBID_cuMemAllocPitch_v2, false},
    {CUPTI_DRIVER_TRACE_CBID_cuMemAllocManaged, false},
    {CUPTI_DRIVER_TRACE_CBID_cuMemAllocHost_v2, false},
    {CUPTI_DRIVER_TRACE_CBID_cuMemHostAlloc, false},
    {CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2, true},
    {CUPTI_DRIVER_TRACE_CBID_cuMemFreeHost, true},
    {CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync, false},
    {CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync_ptsz, false},
    {CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync, false},
    {CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync_ptsz, false},
    {CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync, true},
    {CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync_ptsz, true},
    {CUPTI_DRIVER_TRACE_CBID_cuMemPoolCreate, false},
    {CUPTI_DRIVER_TRACE_CBID_cuMemPoolDestroy, true},
    {CUPTI_DRIVER_TRACE_CBID_cuMemPoolTrimTo, true},
    {CUPTI_DRIVER_TRACE_CBID_cuMemPoolSetAttribute, false},
    {CUPTI_DRIVER_TRACE_CBID_cuMemAddressReserve, false},
    {CUPTI_DRIVER_TRACE_CBID_cuMemAddressFree, true},
    {CUPTI_DRIVER_TRACE_CBID_cuMemCreate, false},
    {CUPTI_DRIVER_TRACE_CBID_cuMemRelease, true},
    {CUPTI_DRIVER_TRACE_CBID_cuMemRetainAllocationHandle, false},
    {CUPTI_DRIVER_TRACE_CBID_cuMemMap, false},
    {CUPTI_DRIVER_TRACE_CBID_cuMemUnmap, true},
    {CUPTI_DRIVER_TRACE_CBID_cuMemSetAccess, false},
    {CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxReset_v2, true},
};

/* Both clocks, read together at the start. */
static uint64_t cupti_start_ns;
static uint64_t record_start_ns;

static _Thread_local struct {
    uint32_t depth; /* followed calls that this thread is inside of */
    bool is_claimed;
    uint64_t place;
    uint64_t start_ns;
} current;

static uint16_t device_of(CUcontext context)
{
    uint32_t device = 0;
    return context != NULL && cuptiGetDeviceId(context, &device) == CUPTI_SUCCESS &&
                   device < FRAG_DEVICE_UNKNOWN
               ? (uint16_t)device
               : FRAG_DEVICE_UNKNOWN;
}

static uint64_t number_of(const void *handle)
{
    return (uint64_t)(uintptr_t)handle;
}

static void describe_taking(frag_device_record *record, frag_log_call call, bool is_done,
                            const CUdeviceptr *pointer, uint64_t bytes)
{
    record->call = (uint8_t)call;
    record->address = is_done && pointer != NULL ? *pointer : 0;
    record->bytes = bytes;
}

static void describe_host(frag_device_record *record, bool is_done, void *const *pointer,
                          uint64_t bytes)
{
    record->call = FRAG_LOG_HOST_MALLOC;
    record->address = is_done && pointer != NULL ? number_of(*pointer) : 0;
    record->bytes = bytes;
}

static void describe_giving_back(frag_device_record *record, frag_log_call call, uint64_t address,
                                 uint64_t bytes)
{
    record->call = (uint8_t)call;
    record->device = FRAG_DEVICE_UNKNOWN;
    record->address = address;
    record->bytes = bytes;
}

static uint64_t stream_of(const void *stream, uint64_t default_stream)
{
    return stream != NULL ? number_of(stream) : default_stream;
}

static void describe_pool(frag_device_record *record, frag_log_call call, const void *pool,
                          uint64_t bytes)
{
    record->call = (uint8_t)call;
    record->device = FRAG_DEVICE_UNKNOWN;
    record->other = number_of(pool);
    record->bytes = bytes;
}

/* Memory calls that are not about virtual memory. What a call hands back is there only when it
 * succeeded. */
static void describe_plain(frag_device_record *record, CUpti_CallbackId id, const void *given,
                           bool is_done)
{
    switch (id) {
    case CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2: {
        const cuMemAlloc_v2_params *call = given;
        describe_taking(record, FRAG_LOG_MALLOC, is_done, call->dptr, call->bytesize);
        return;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemAllocPitch_v2: {
        const cuMemAllocPitch_v2_params *call = given;
        size_t row = is_done && call->pPitch != NULL ? *call->pPitch : call->WidthInBytes;
        describe_taking(record, FRAG_LOG_MALLOC, is_done, call->dptr, row * call->Height);
        return;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemAllocManaged: {
        const cuMemAllocManaged_params *call = given;
        describe_taking(record, FRAG_LOG_MANAGED, is_done, call->dptr, call->bytesize);
        return;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemAllocHost_v2: {
        const cuMemAllocHost_v2_params *call = given;
        describe_host(record, is_done, call->pp, call->bytesize);
        return;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemHostAlloc: {
        const cuMemHostAlloc_params *call = given;
        describe_host(record, is_done, call->pp, call->bytesize);
        return;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2:
        describe_giving_back(record, FRAG_LOG_FREE, ((const cuMemFree_v2_params *)given)->dptr, 0);
        return;
    case CUPTI_DRIVER_TRACE_CBID_cuMemFreeHost:
        describe_giving_back(record, FRAG_LOG_HOST_FREE,
                             number_of(((const cuMemFreeHost_params *)given)->p), 0);
        return;
    default:
        record->call = FRAG_LOG_DEVICE_RESET;
        record->device = (uint16_t)((const cuDevicePrimaryCtxReset_v2_params *)given)->dev;
        return;
    }
}

static void describe_async(frag_device_record *record, CUpti_CallbackId id, const void *given,
                           bool is_done)
{
    bool is_per_thread = id == CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync_ptsz ||
                         id == CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync_ptsz ||
                         id == CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync_ptsz;
    uint64_t default_stream = is_per_thread ? PER_THREAD_STREAM : 0;
    switch (id) {
    case CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync:
    case CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync_ptsz: {
        const cuMemAllocAsync_params *call = given;
        describe_taking(record, FRAG_LOG_MALLOC_ASYNC, is_done, call->dptr, call->bytesize);
        record->stream = stream_of(call->hStream, default_stream);
        return;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync:
    case CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync_ptsz: {
        const cuMemAllocFromPoolAsync_params *call = given;
        describe_taking(record, FRAG_LOG_MALLOC_ASYNC, is_done, call->dptr, call->bytesize);
        record->stream = stream_of(call->hStream, default_stream);
        record->other = number_of(call->pool);
        return;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync:
    case CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync_ptsz: {
        const cuMemFreeAsync_params *call = given;
        describe_giving_back(record, FRAG_LOG_FREE_ASYNC, call->dptr, 0);
        record->stream = stream_of(call->hStream, default_stream);
        return;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemPoolCreate: {
        const cuMemPoolCreate_params *call = given;
        describe_pool(record, FRAG_LOG_POOL_CREATE, is_done ? *call->pool : NULL, 0);
        if (call->poolProps != NULL &&
            call->poolProps->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
            record->device = (uint16_t)call->poolProps->location.id;
        return;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemPoolDestroy:
        describe_pool(record, FRAG_LOG_POOL_DESTROY, ((const cuMemPoolDestroy_params *)given)->pool,
                      0);
        return;
    case CUPTI_DRIVER_TRACE_CBID_cuMemPoolTrimTo: {
        const cuMemPoolTrimTo_params *call = given;
        describe_pool(record, FRAG_LOG_POOL_TRIM, call->pool, call->minBytesToKeep);
        return;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemPoolSetAttribute: {
        const cuMemPoolSetAttribute_params *call = given;
        bool is_wide = call->attr >= CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        uint64_t value = call->value == NULL ? 0
                         : is_wide           ? *(const uint64_t *)call->value
                                             : (uint64_t) * (const int *)call->value;
        describe_pool(record, FRAG_LOG_POOL_SET, call->pool, value);
        record->address = (uint64_t)call->attr;
        return;
    }
    default:
        describe_plain(record, id, given, is_done);
        return;
    }
}

static void describe_virtual(frag_device_record *record, CUpti_CallbackId id, const void *given,
                             bool is_done)
{
    switch (id) {
    case CUPTI_DRIVER_TRACE_CBID_cuMemAddressReserve: {
        const cuMemAddressReserve_params *call = given;
        describe_taking(record, FRAG_LOG_RESERVE, is_done, call->ptr, call->size);
        record->device = FRAG_DEVICE_UNKNOWN;
        return;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemAddressFree: {
        const cuMemAddressFree_params *call = given;
        describe_giving_back(record, FRAG_LOG_UNRESERVE, call->ptr, call->size);
        return;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemCreate: {
        const cuMemCreate_params *call = given;
        bool is_on_device =
            call->prop != NULL && call->prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
        record->call = FRAG_LOG_CREATE;
        record->bytes = call->size;
        record->other = is_done && call->handle != NULL ? *call->handle : 0;
        record->device = is_on_device ? (uint16_t)call->prop->location.id : FRAG_DEVICE_UNKNOWN;
        if (call->prop != NULL && !is_on_device)
            record->flags |= FRAG_LOG_OF_HOST;
        return;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemRelease:
        describe_giving_back(record, FRAG_LOG_RELEASE, 0, 0);
        record->other = ((const cuMemRelease_params *)given)->handle;
        return;
    case CUPTI_DRIVER_TRACE_CBID_cuMemRetainAllocationHandle: {
        const cuMemRetainAllocationHandle_params *call = given;
        describe_giving_back(record, FRAG_LOG_RETAIN, number_of(call->addr), 0);
        record->other = is_done && call->handle != NULL ? *call->handle : 0;
        return;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemMap: {
        const cuMemMap_params *call = given;
        describe_giving_back(record, FRAG_LOG_MAP, call->ptr, call->size);
        record->other = call->handle;
        return;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemUnmap: {
        const cuMemUnmap_params *call = given;
        describe_giving_back(record, FRAG_LOG_UNMAP, call->ptr, call->size);
        return;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemSetAccess: {
        const cuMemSetAccess_params *call = given;
        describe_giving_back(record, FRAG_LOG_SET_ACCESS, call->ptr, call->size);
        return;
    }
    default:
        describe_async(record, id, given, is_done);
        return;
    }
}

static bool is_giving_back(CUpti_CallbackId id)
{
    for (size_t i = 0; i < sizeof followed / sizeof *followed; i++)
        if (followed[i].id == id)
            return followed[i].is_giving_back;
    return false;
}

static void CUPTIAPI follow_call(void *context, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                 const void *told)
{
    (void)context;
    const CUpti_CallbackData *data = told;
    if (domain != CUPTI_CB_DOMAIN_DRIVER_API)
        return;
    if (data->callbackSite == CUPTI_API_ENTER) {
        if (current.depth++ > 0)
            return;
        current.is_claimed = is_giving_back(id);
        current.place = current.is_claimed ? frag_record_claim() : FRAG_RECORD_NONE;
        current.start_ns = frag_record_now();
        return;
    }
    if (current.depth == 0 || --current.depth > 0)
        return;
    int result = data->functionReturnValue != NULL
                     ? (int)*(const CUresult *)data->functionReturnValue
                     : FRAG_CUDA_UNKNOWN;
    uint64_t duration = frag_record_now() - current.start_ns;
    frag_device_record record = {
        .time_ns = current.start_ns,
        .duration_ns = duration < UINT32_MAX ? (uint32_t)duration : UINT32_MAX,
        .result = result,
        .device = device_of(data->context),
        .flags = FRAG_LOG_BY_DRIVER,
    };
    describe_virtual(&record, id, data->functionParams, result == FRAG_CUDA_OK);
    frag_record_write(current.is_claimed ? current.place : frag_record_claim(), &record);
}

/* ---- activities */

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *bytes, size_t *records_max)
{
    *buffer = aligned_alloc(8, ACTIVITY_BUFFER_BYTES);
    *bytes = *buffer != NULL ? ACTIVITY_BUFFER_BYTES : 0;
    *records_max = 0;
}

static void write_activity(const memory_activity *activity)
{
    bool is_allocation = activity->operation == MEMORY_IS_ALLOCATION;
    frag_device_record record = {
        .time_ns = record_start_ns + (activity->timestamp - cupti_start_ns),
        .address = activity->address,
        .bytes = activity->bytes,
        .stream = activity->stream != UINT32_MAX ? activity->stream : 0,
        .device = activity->device < FRAG_DEVICE_UNKNOWN ? (uint16_t)activity->device
                                                         : FRAG_DEVICE_UNKNOWN,
        .call = is_allocation ? FRAG_LOG_ACTIVITY_ALLOC : FRAG_LOG_ACTIVITY_FREE,
        .flags = activity->memory_kind == MEMORY_OF_DEVICE ? 0 : (uint8_t)FRAG_LOG_OF_HOST,
    };
    frag_record_write(frag_record_claim(), &record);
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes,
                                 size_t valid_bytes)
{
    (void)context;
    (void)stream;
    (void)bytes;
    CUpti_Activity *activity = NULL;
    while (cuptiActivityGetNextRecord(buffer, valid_bytes, &activity) == CUPTI_SUCCESS)
        if (activity->kind == CUPTI_ACTIVITY_KIND_MEMORY2)
            write_activity((const memory_activity *)(const void *)activity);
    free(buffer);
}

/* ---- beginning and end */

static void end(void)
{
    cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    frag_record_end(true);
}

static bool subscribe(CUptiResult *result)
{
    CUpti_SubscriberHandle subscriber;
    *result = cuptiSubscribe(&subscriber, follow_call, NULL);
    for (size_t i = 0; *result == CUPTI_SUCCESS && i < sizeof followed / sizeof *followed; i++)
        *result = cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, followed[i].id);
    return *result == CUPTI_SUCCESS;
}

/* The oldest driver that this CUPTI works with, as cuDriverGetVersion counts: `fraglab record`
 * looks before it relies on it. */
__attribute__((visibility("default"))) extern const int frag_cupti_needs_version;
const int frag_cupti_needs_version = CUDA_VERSION / 1000 * 1000;

/* What the driver calls when it starts. Whatever happens here, the program goes on: 1 is the answer
 * that it expects. */
__attribute__((visibility("default"))) int InitializeInjection(void);
int InitializeInjection(void)
{
    CUptiResult result = CUPTI_SUCCESS;
    frag_record_start(FRAG_RECORDED_BY_CUPTI);
    if (!subscribe(&result)) {
        const char *reason = NULL;
        cuptiGetResultString(result, &reason);
        fprintf(stderr,
                "fraglab: nothing is recorded, as CUPTI refuses (%s); is a profiler at work? "
                "'fraglab record --by preload' does without CUPTI\n",
                reason != NULL ? reason : "unknown error");
        return 1;
    }
    record_start_ns = frag_record_now();
    if (cuptiGetTimestamp(&cupti_start_ns) == CUPTI_SUCCESS &&
        cuptiActivityRegisterCallbacks(give_buffer, take_buffer) == CUPTI_SUCCESS)
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMORY2);
    atexit(end);
    return 1;
}
