#include "gpu_replay/software/libraries/cupti.h"

#include <time.h>

#include <cupti_calls.h>

const char *frag_cupti_result_name(int32_t result)
{
    switch (result) {
    case 0:
        return "CUPTI_SUCCESS";
    case 3:
        return "CUPTI_ERROR_INVALID_CONTEXT";
    case 4:
        return "CUPTI_ERROR_INVALID_EVENT_DOMAIN_ID";
    case 12:
        return "CUPTI_ERROR_MAX_LIMIT_REACHED";
    case 13:
        return "CUPTI_ERROR_NOT_READY";
    default:
        return "CUPTI_ERROR_UNKNOWN";
    }
}

/* Nanoseconds of the clock that CUPTI's records would have. */
int32_t cuptiGetTimestamp(int64_t *out)
{
    struct timespec now = {0};
    if (out == NULL)
        return 1;
    clock_gettime(CLOCK_REALTIME, &now);
    *out = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    return 0;
}
