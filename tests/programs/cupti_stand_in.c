/* Stands in for libcupti where no GPU is: it keeps the callback that the recorder subscribes, and
 * stand_in_call makes calls of the driver happen. One activity waits to be flushed. */
#include "tests/programs/cupti_stand_in.h"

#include <cupti.h>
#include <stdbool.h>
#include <string.h>

static CUpti_CallbackFunc callback;
static bool is_enabled[1024];
static CUpti_BuffersCallbackRequestFunc request_buffer;
static CUpti_BuffersCallbackCompleteFunc complete_buffer;
static bool is_taken;

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc function,
                           void *context)
{
    (void)context;
    *subscriber = NULL;
    if (callback != NULL)
        return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    callback = function;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
    (void)subscriber;
    if (domain != CUPTI_CB_DOMAIN_DRIVER_API || id >= sizeof is_enabled)
        return CUPTI_ERROR_INVALID_PARAMETER;
    is_enabled[id] = enable != 0;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetDeviceId(CUcontext context, uint32_t *device)
{
    *device = (uint32_t)((uintptr_t)context & 0xf);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t *timestamp)
{
    *timestamp = 1000;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char **text)
{
    *text =
        result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ? "somebody was first" : "refused";
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete)
{
    request_buffer = request;
    complete_buffer = complete;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    return kind == CUPTI_ACTIVITY_KIND_MEMORY2 ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_KIND;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t bytes, CUpti_Activity **record)
{
    if (is_taken || bytes < sizeof(CUpti_ActivityMemory4))
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    is_taken = true;
    *record = (CUpti_Activity *)(void *)buffer;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
    (void)flag;
    uint8_t *buffer = NULL;
    size_t bytes = 0;
    size_t records_max = 0;
    request_buffer(&buffer, &bytes, &records_max);
    CUpti_ActivityMemory4 activity = {
        .kind = CUPTI_ACTIVITY_KIND_MEMORY2,
        .memoryOperationType = CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION,
        .memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
        .address = 0x5000,
        .bytes = 77,
        .timestamp = 2000,
        .deviceId = 1,
        .streamId = UINT32_MAX,
    };
    memcpy(buffer, &activity, sizeof activity);
    complete_buffer(NULL, 0, buffer, bytes, sizeof activity);
    return CUPTI_SUCCESS;
}

void stand_in_call(uint32_t id, const void *parameters, int device, int result)
{
    CUresult value = (CUresult)result;
    CUpti_CallbackData data = {
        .callbackSite = CUPTI_API_ENTER,
        .functionParams = parameters,
        .functionReturnValue = &value,
        .context = (CUcontext)(uintptr_t)(0x10 + device),
    };
    if (callback == NULL || !is_enabled[id])
        return;
    callback(NULL, CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
    data.callbackSite = CUPTI_API_EXIT;
    callback(NULL, CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
}
