#include "cli/gpu_load.h"

#include "cli/module_load.h"

#define MODULE_FILE "fraglab_cuda.so"

const frag_gpu_module *frag_gpu_module_load(frag_error *error)
{
    void *object =
        frag_module_open(MODULE_FILE, false, "this fraglab was built with CUDA=no", error);
    if (object == NULL)
        return NULL;
    return frag_module_table(object, MODULE_FILE, FRAG_GPU_MODULE_SYMBOL, FRAG_GPU_MODULE_ABI,
                             error);
}
