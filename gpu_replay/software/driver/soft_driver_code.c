/* libcuda.so.1: modules and kernels. A module is never looked into: every one loads, and has every
 * function; launches count as work and do nothing. */
#include <string.h>

#include "gpu_replay/software/soft_entry.h"

#define MODULE_NUMBER 0x2000u
#define FUNCTION_NUMBER 0x3000u
#define LINK_NUMBER 0x4000u
#define TENSOR_MAP_BYTES 128

FRAG_ENTRY(int32_t, cuLaunchKernel,
           (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
            unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream))
{
    (void)function, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y;
    (void)block_z, (void)shared_bytes;
    return frag_soft_driver_work(FRAG_CALL_cuLaunchKernel, stream);
}

FRAG_ENTRY(int32_t, cuLaunchCooperativeKernel,
           (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
            unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream))
{
    (void)function, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y;
    (void)block_z, (void)shared_bytes;
    return frag_soft_driver_work(FRAG_CALL_cuLaunchKernel, stream);
}

FRAG_ENTRY(int32_t, cuModuleLoadData, (void **module, const void *image))
{
    (void)image;
    *module = frag_soft_pointer(MODULE_NUMBER);
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuModuleLoadDataEx, (void **module, const void *image))
{
    return cuModuleLoadData(module, image);
}

FRAG_ENTRY(int32_t, cuModuleUnload, (void *module))
{
    (void)module;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuModuleGetFunction, (void **function, void *module, const char *name))
{
    (void)module, (void)name;
    *function = frag_soft_pointer(FUNCTION_NUMBER);
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuFuncGetAttribute, (int32_t * value, int32_t attribute, void *function))
{
    (void)attribute, (void)function;
    *value = 32;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuFuncSetAttribute, (void *function, int32_t attribute, int32_t value))
{
    (void)function, (void)attribute, (void)value;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuOccupancyMaxActiveBlocksPerMultiprocessor, (int32_t * count))
{
    *count = 2;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuModuleLoad, (void **module, const char *path))
{
    return cuModuleLoadData(module, path);
}

FRAG_ENTRY(int32_t, cuFuncSetCacheConfig, (void *function, int32_t configuration))
{
    (void)function, (void)configuration;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuLinkCreate_v2,
           (unsigned option_count, int32_t *options, void **values, void **link))
{
    (void)option_count, (void)options, (void)values;
    *link = frag_soft_pointer(LINK_NUMBER);
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuLinkAddData_v2, (void *link))
{
    (void)link;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuLinkComplete, (void *link, void **image, size_t *bytes))
{
    static char empty[8];
    (void)link;
    *image = empty;
    *bytes = sizeof empty;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuLinkDestroy, (void *link))
{
    (void)link;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuTensorMapEncodeTiled, (unsigned char *map))
{
    memset(map, 0, TENSOR_MAP_BYTES);
    return FRAG_CUDA_OK;
}
