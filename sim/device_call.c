#include "sim/device_call.h"

#include "base/error.h"
#include "base/text.h"

static const char *const call_names[FRAG_DEVICE_CALL_COUNT] = {FRAG_DEVICE_CALLS(FRAG_SECOND_OF_2)};

const char *frag_device_call_name(frag_device_call call)
{
    FRAG_ASSERT(call < FRAG_DEVICE_CALL_COUNT);
    return call_names[call];
}
