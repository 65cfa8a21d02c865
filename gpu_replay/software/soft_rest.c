/* Functions of which nothing is done but writing what they give back. */
#include <string.h>

#include "gpu_replay/software/soft_entry.h"

#define HANDLE_BASE 0x560000000000u
#define STEP_BYTES 16

int32_t frag_soft_rest(frag_soft_rest_call call)
{
    static uint64_t handle_count;
    for (size_t i = 0; i < call.out_count; i++)
        if (call.outs[i].bytes > 0 && call.arguments[call.outs[i].place] != NULL)
            memset(call.arguments[call.outs[i].place], 0, call.outs[i].bytes);
    if (call.gives_handle && call.arguments[call.outs[0].place] != NULL) {
        int32_t ignored = 0;
        frag_soft_enter(&ignored);
        uint64_t number = HANDLE_BASE + STEP_BYTES * ++handle_count;
        frag_soft_leave();
        memcpy(call.arguments[call.outs[0].place], &number, sizeof number);
    }
    if (call.code != FRAG_CUDA_OK)
        frag_software_note_unknown(strncmp(call.name, "cuda", 4) == 0 ? "libcudart" : "libcuda",
                                   call.name, call.caller);
    return call.code;
}
