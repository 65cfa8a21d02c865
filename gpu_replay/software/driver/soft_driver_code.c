/* libcuda.so.1: modules, libraries and kernels. None is ever looked into: every one loads, and has
 * every function but no variable; launches count as work and do nothing. */
#include <stdio.h>
#include <string.h>

#include "gpu_replay/software/soft_entry.h"
#include "gpu_replay/software/soft_order.h"

#define MODULE_BASE 0x2000u
#define STEP 16u
#define LINK_NUMBER 0x4000u
#define TENSOR_MAP_BYTES 128

/* Modules, libraries, kernels and functions are numbers, another one each time. */
static void *new_number(void)
{
    static uint64_t count;
    int32_t ignored = 0;
    frag_soft_enter(&ignored);
    uint64_t number = MODULE_BASE + STEP * ++count;
    frag_soft_leave();
    return frag_soft_pointer(number);
}

/* ---- launches */

FRAG_ENTRY(int32_t, cuLaunchKernel,
           (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
            unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream))
{
    (void)function, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y;
    (void)block_z, (void)shared_bytes;
    return frag_soft_order_launch(FRAG_CALL_cuLaunchKernel, stream);
}

FRAG_ENTRY(int32_t, cuLaunchCooperativeKernel,
           (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
            unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream))
{
    (void)function, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y;
    (void)block_z, (void)shared_bytes;
    return frag_soft_order_launch(FRAG_CALL_cuLaunchKernel, stream);
}

/* CUlaunchConfig */
typedef struct launch_configuration {
    unsigned grid[3];
    unsigned block[3];
    unsigned shared_bytes;
    void *stream;
} launch_configuration;

FRAG_ENTRY(int32_t, cuLaunchKernelEx,
           (const launch_configuration *configuration, void *function, void **arguments,
            void **extra))
{
    (void)function, (void)arguments, (void)extra;
    return frag_soft_order_launch(FRAG_CALL_cuLaunchKernel, configuration->stream);
}

FRAG_ENTRY(int32_t, cuLaunchHostFunc, (void *stream, void (*function)(void *), void *data))
{
    return frag_soft_order_host(FRAG_CALL_cuLaunchHostFunc, stream, function, data);
}

/* ---- modules and libraries */

static int32_t load(void **out, const void *image)
{
    if (out == NULL)
        return FRAG_CUDA_INVALID_VALUE;
    *out = image == NULL ? NULL : new_number();
    return image == NULL ? FRAG_CUDA_INVALID_VALUE : FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuModuleLoadData, (void **module, const void *image))
{
    return load(module, image);
}

FRAG_ENTRY(int32_t, cuModuleLoadDataEx,
           (void **module, const void *image, unsigned option_count, int32_t *options,
            void **values))
{
    (void)option_count, (void)options, (void)values;
    return load(module, image);
}

FRAG_ENTRY(int32_t, cuModuleLoadFatBinary, (void **module, const void *image))
{
    return load(module, image);
}

/* A file that is not there is an error here too. */
static int32_t load_file(void **out, const char *path)
{
    enum { FILE_NOT_FOUND = 301 };
    FILE *file = path == NULL ? NULL : fopen(path, "rb");
    if (file == NULL) {
        *out = NULL;
        return path == NULL ? FRAG_CUDA_INVALID_VALUE : FILE_NOT_FOUND;
    }
    fclose(file);
    return load(out, path);
}

FRAG_ENTRY(int32_t, cuModuleLoad, (void **module, const char *path))
{
    return load_file(module, path);
}

FRAG_ENTRY(int32_t, cuModuleUnload, (void *module))
{
    (void)module;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuModuleGetLoadingMode, (int32_t * mode))
{
    enum { LAZY = 2 };
    *mode = LAZY;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuModuleGetFunction, (void **function, void *module, const char *name))
{
    (void)module;
    return load(function, name);
}

FRAG_ENTRY(int32_t, cuModuleGetFunctionCount, (unsigned *count, void *module))
{
    (void)module;
    *count = 0;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuModuleEnumerateFunctions, (void **functions, unsigned count, void *module))
{
    (void)module;
    for (unsigned i = 0; i < count; i++)
        functions[i] = NULL;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuModuleGetGlobal_v2,
           (uint64_t * address, size_t *bytes, void *module, const char *name))
{
    (void)module, (void)name;
    if (address != NULL)
        *address = 0;
    if (bytes != NULL)
        *bytes = 0;
    return FRAG_CUDA_NOT_FOUND;
}

FRAG_ENTRY(int32_t, cuLibraryLoadData,
           (void **library, const void *image, int32_t *compiler_options, void **compiler_values,
            unsigned compiler_count, int32_t *options, void **values, unsigned count))
{
    (void)compiler_options, (void)compiler_values, (void)compiler_count;
    (void)options, (void)values, (void)count;
    return load(library, image);
}

FRAG_ENTRY(int32_t, cuLibraryLoadFromFile, (void **library, const char *path))
{
    return load_file(library, path);
}

FRAG_ENTRY(int32_t, cuLibraryUnload, (void *library))
{
    (void)library;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuLibraryGetKernel, (void **kernel, void *library, const char *name))
{
    (void)library;
    return load(kernel, name);
}

FRAG_ENTRY(int32_t, cuLibraryGetModule, (void **module, void *library))
{
    *module = library;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuLibraryGetGlobal,
           (uint64_t * address, size_t *bytes, void *library, const char *name))
{
    return cuModuleGetGlobal_v2(address, bytes, library, name);
}

FRAG_ENTRY(int32_t, cuLibraryGetKernelCount, (unsigned *count, void *library))
{
    return cuModuleGetFunctionCount(count, library);
}

FRAG_ENTRY(int32_t, cuKernelGetFunction, (void **function, void *kernel))
{
    *function = kernel;
    return FRAG_CUDA_OK;
}

/* ---- what functions are */

FRAG_ENTRY(int32_t, cuFuncGetAttribute, (int32_t * value, int32_t attribute, void *function))
{
    int32_t result = 0;
    (void)function;
    *value = 0;
    if (frag_soft_enter(&result))
        *value = frag_soft_function_attribute(attribute);
    frag_soft_leave();
    return result;
}

FRAG_ENTRY(int32_t, cuKernelGetAttribute,
           (int32_t * value, int32_t attribute, void *kernel, int32_t device))
{
    (void)device;
    return cuFuncGetAttribute(value, attribute, kernel);
}

/* Dynamic shared memory beyond what a block may have is refused, as tuning programs rely on. */
FRAG_ENTRY(int32_t, cuFuncSetAttribute, (void *function, int32_t attribute, int32_t value))
{
    const frag_software_card *card = frag_software_get_card(0);
    (void)function;
    return attribute == FRAG_FUNCTION_DYNAMIC_SHARED && card != NULL &&
                   (value < 0 || (uint32_t)value > card->shared_bytes_per_block_opt_in)
               ? FRAG_CUDA_INVALID_VALUE
               : FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuKernelSetAttribute,
           (int32_t attribute, int32_t value, void *kernel, int32_t device))
{
    (void)device;
    return cuFuncSetAttribute(kernel, attribute, value);
}

FRAG_ENTRY(int32_t, cuFuncSetCacheConfig, (void *function, int32_t configuration))
{
    (void)function, (void)configuration;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuKernelSetCacheConfig, (void *kernel, int32_t configuration))
{
    return cuFuncSetCacheConfig(kernel, configuration);
}

FRAG_ENTRY(int32_t, cuFuncSetSharedMemConfig, (void *function, int32_t configuration))
{
    return cuFuncSetCacheConfig(function, configuration);
}

FRAG_ENTRY(int32_t, cuFuncGetModule, (void **module, void *function))
{
    *module = function;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuFuncGetName, (const char **name, void *function))
{
    (void)function;
    *name = "unknown";
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuKernelGetName, (const char **name, void *kernel))
{
    return cuFuncGetName(name, kernel);
}

FRAG_ENTRY(int32_t, cuFuncIsLoaded, (int32_t * state, void *function))
{
    enum { LOADED = 1 };
    (void)function;
    *state = LOADED;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuFuncLoad, (void *function))
{
    (void)function;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuFuncGetParamInfo,
           (void *function, size_t place, size_t *offset, size_t *bytes))
{
    (void)function, (void)place;
    *offset = 0;
    if (bytes != NULL)
        *bytes = 0;
    return FRAG_CUDA_INVALID_VALUE; /* that it has no such parameter */
}

FRAG_ENTRY(int32_t, cuKernelGetParamInfo,
           (void *kernel, size_t place, size_t *offset, size_t *bytes))
{
    return cuFuncGetParamInfo(kernel, place, offset, bytes);
}

/* ---- occupancy */

FRAG_ENTRY(int32_t, cuOccupancyMaxActiveBlocksPerMultiprocessor,
           (int32_t * count, void *function, int32_t threads, size_t shared_bytes))
{
    int32_t result = 0;
    (void)function;
    *count = 0;
    if (frag_soft_enter(&result))
        *count = frag_soft_occupancy(threads, shared_bytes);
    frag_soft_leave();
    return result;
}

FRAG_ENTRY(int32_t, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
           (int32_t * count, void *function, int32_t threads, size_t shared_bytes, unsigned flags))
{
    (void)flags;
    return cuOccupancyMaxActiveBlocksPerMultiprocessor(count, function, threads, shared_bytes);
}

FRAG_ENTRY(int32_t, cuOccupancyMaxActiveClusters,
           (int32_t * count, void *function, const launch_configuration *configuration))
{
    enum { BLOCKS_PER_CLUSTER = 8 }; /* the most that is portable */
    int32_t result = 0;
    const unsigned *block = configuration->block;
    (void)function;
    *count = 0;
    if (frag_soft_enter(&result))
        *count = frag_soft_occupancy((int32_t)(block[0] * block[1] * block[2]),
                                     configuration->shared_bytes) *
                 frag_soft_attribute(FRAG_ATTRIBUTE_MULTIPROCESSORS, frag_soft_device_current()) /
                 BLOCKS_PER_CLUSTER;
    frag_soft_leave();
    return result;
}

FRAG_ENTRY(int32_t, cuOccupancyMaxPotentialClusterSize,
           (int32_t * size, void *function, const launch_configuration *configuration))
{
    (void)function, (void)configuration;
    *size = 8;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuOccupancyMaxPotentialBlockSize,
           (int32_t * grid, int32_t *block, void *function, size_t (*shared_of)(int32_t),
            size_t shared_bytes, int32_t limit))
{
    int32_t result = 0;
    (void)function, (void)shared_of;
    *grid = 0;
    *block = limit > 0 && limit < 1024 ? limit : 1024;
    if (frag_soft_enter(&result))
        *grid = frag_soft_occupancy(*block, shared_bytes) *
                frag_soft_attribute(FRAG_ATTRIBUTE_MULTIPROCESSORS, frag_soft_device_current());
    frag_soft_leave();
    return result;
}

FRAG_ENTRY(int32_t, cuOccupancyMaxPotentialBlockSizeWithFlags,
           (int32_t * grid, int32_t *block, void *function, size_t (*shared_of)(int32_t),
            size_t shared_bytes, int32_t limit, unsigned flags))
{
    (void)flags;
    return cuOccupancyMaxPotentialBlockSize(grid, block, function, shared_of, shared_bytes, limit);
}

FRAG_ENTRY(int32_t, cuOccupancyAvailableDynamicSMemPerBlock,
           (size_t * bytes, void *function, int32_t block_count, int32_t threads))
{
    int32_t result = 0;
    (void)function, (void)threads;
    *bytes = 0;
    if (frag_soft_enter(&result))
        *bytes = frag_soft_shared_left(block_count);
    frag_soft_leave();
    return result;
}

/* ---- linking */

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

FRAG_ENTRY(int32_t, cuLinkAddFile_v2, (void *link))
{
    (void)link;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuLinkComplete, (void *link, void **image, size_t *bytes))
{
    static char empty[8];
    (void)link;
    *image = empty;
    if (bytes != NULL)
        *bytes = sizeof empty;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuLinkDestroy, (void *link))
{
    (void)link;
    return FRAG_CUDA_OK;
}

/* ---- descriptors of tensors */

static int32_t describe_tensor(unsigned char *map)
{
    if (map == NULL)
        return FRAG_CUDA_INVALID_VALUE;
    memset(map, 0, TENSOR_MAP_BYTES);
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuTensorMapEncodeTiled, (unsigned char *map))
{
    return describe_tensor(map);
}

FRAG_ENTRY(int32_t, cuTensorMapEncodeIm2col, (unsigned char *map))
{
    return describe_tensor(map);
}

FRAG_ENTRY(int32_t, cuTensorMapEncodeIm2colWide, (unsigned char *map))
{
    return describe_tensor(map);
}

FRAG_ENTRY(int32_t, cuTensorMapReplaceAddress, (unsigned char *map, void *address))
{
    (void)address;
    return map == NULL ? FRAG_CUDA_INVALID_VALUE : FRAG_CUDA_OK;
}
