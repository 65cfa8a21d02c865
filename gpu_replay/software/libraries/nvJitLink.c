/* Handles end through the place they lie in, which becomes NULL. */
#include <nvJitLink_calls.h>

static int32_t destroy(const void *place)
{
    void **handle = (void **)(uintptr_t)place;
    if (handle == NULL)
        return 3; /* NVJITLINK_ERROR_INVALID_INPUT */
    if (*handle == NULL)
        return 0;
    frag_standin_end(*handle);
    *handle = NULL;
    return 0;
}

#if FRAG_CUDART == 12
int32_t __nvJitLinkDestroy_12_0(const void *place)
{
    return destroy(place);
}

int32_t __nvJitLinkDestroy_12_4(const void *place)
{
    return destroy(place);
}
#else
int32_t __nvJitLinkDestroy_13_0(const void *place)
{
    return destroy(place);
}
#endif
