/* libcudart: kernels. Launches do nothing but count. */
#include <string.h>

#include "base/bits.h"
#include "gpu_replay/software/runtime/soft_runtime.h"
#include "gpu_replay/software/soft_order.h"

/* ---- kernels */

typedef struct dimensions {
    unsigned x, y, z;
} dimensions;

static int32_t launch(const void *stream)
{
    return frag_runtime_return(frag_soft_order_launch(FRAG_CALL_cudaLaunchKernel, stream));
}

FRAG_ENTRY(int32_t, cudaLaunchKernel,
           (const void *function, dimensions grid, dimensions block, void **arguments,
            size_t shared_bytes, void *stream))
{
    (void)function, (void)grid, (void)block, (void)arguments, (void)shared_bytes;
    return launch(stream);
}

FRAG_ENTRY(int32_t, cudaLaunchCooperativeKernel,
           (const void *function, dimensions grid, dimensions block, void **arguments,
            size_t shared_bytes, void *stream))
{
    (void)function, (void)grid, (void)block, (void)arguments, (void)shared_bytes;
    return launch(stream);
}

/* What nvcc 12.8 and later generate calls to. */
FRAG_ENTRY(int32_t, __cudaLaunchKernel,
           (const void *function, dimensions grid, dimensions block, void **arguments,
            size_t shared_bytes, void *stream))
{
    (void)function, (void)grid, (void)block, (void)arguments, (void)shared_bytes;
    return launch(stream);
}

/* cudaLaunchConfig_t */
typedef struct launch_configuration {
    dimensions grid;
    dimensions block;
    size_t shared_bytes;
    void *stream;
} launch_configuration;

FRAG_ENTRY(int32_t, cudaLaunchKernelExC,
           (const launch_configuration *configuration, const void *function, void **arguments))
{
    (void)function, (void)arguments;
    return launch(configuration->stream);
}

FRAG_ENTRY(int32_t, cudaLaunchHostFunc, (void *stream, void (*function)(void *), void *data))
{
    return frag_runtime_return(
        frag_soft_order_host(FRAG_CALL_cudaLaunchHostFunc, stream, function, data));
}

FRAG_ENTRY(int32_t, cudaStreamAddCallback,
           (void *stream, void (*function)(void *, int32_t, void *), void *data, unsigned flags))
{
    (void)flags;
    function(stream, FRAG_CUDA_OK, data);
    return FRAG_CUDA_OK;
}

static _Thread_local launch_configuration pushed;

FRAG_ENTRY(unsigned, __cudaPushCallConfiguration,
           (dimensions grid, dimensions block, size_t shared_bytes, void *stream))
{
    pushed = (launch_configuration){
        .grid = grid, .block = block, .shared_bytes = shared_bytes, .stream = stream};
    return 0;
}

FRAG_ENTRY(int32_t, __cudaPopCallConfiguration,
           (dimensions * grid, dimensions *block, size_t *shared_bytes, void **stream))
{
    *grid = pushed.grid;
    *block = pushed.block;
    *shared_bytes = pushed.shared_bytes;
    *stream = pushed.stream;
    return FRAG_CUDA_OK;
}

/* Device code is registered and never looked at; every module has the same handle. */
static void *module_handle;

FRAG_ENTRY(void **, __cudaRegisterFatBinary, (const void *image))
{
    (void)image;
    return &module_handle;
}

FRAG_ENTRY(void, __cudaRegisterFatBinaryEnd, (void **module))
{
    (void)module;
}

FRAG_ENTRY(void, __cudaUnregisterFatBinary, (void **module))
{
    (void)module;
}

FRAG_ENTRY(void, __cudaRegisterFunction, (void))
{
}

FRAG_ENTRY(void, __cudaRegisterVar,
           (void **module, char *variable, char *address, const char *name, int32_t is_external,
            size_t bytes, int32_t is_constant, int32_t is_global))
{
    (void)module, (void)address, (void)name, (void)is_external, (void)is_constant, (void)is_global;
    frag_soft_symbol_add(frag_soft_number(variable), bytes);
}

FRAG_ENTRY(void, __cudaRegisterManagedVar, (void))
{
}

FRAG_ENTRY(void, __cudaRegisterHostVar, (void))
{
}

FRAG_ENTRY(char, __cudaInitModule, (void **module))
{
    (void)module;
    return 0;
}

FRAG_ENTRY(int32_t, __cudaGetKernel, (const void **kernel, const void *function))
{
    *kernel = function;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cudaGetKernel, (const void **kernel, const void *function))
{
    *kernel = function;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cudaGetFuncBySymbol, (const void **out, const void *function))
{
    *out = function;
    return FRAG_CUDA_OK;
}

/* cudaFuncAttributes by offsets, which 12 and 13 share. */
FRAG_ENTRY(int32_t, cudaFuncGetAttributes, (unsigned char *out, const void *function))
{
    enum { BYTES = 144, THREADS = 24, REGISTERS = 28, PTX = 32, BINARY = 36, SHARED = 44 };
    const int32_t offsets[] = {THREADS, REGISTERS, PTX, BINARY, SHARED};
    const int32_t attributes[] = {FRAG_FUNCTION_THREADS, FRAG_FUNCTION_REGISTERS, FRAG_FUNCTION_PTX,
                                  FRAG_FUNCTION_BINARY, FRAG_FUNCTION_DYNAMIC_SHARED};
    int32_t result = 0;
    (void)function;
    memset(out, 0, BYTES);
    if (frag_soft_enter(&result)) {
        for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
            int32_t value = frag_soft_function_attribute(attributes[i]);
            memcpy(out + offsets[i], &value, sizeof value);
        }
    }
    frag_soft_leave();
    return frag_runtime_return(result);
}

static int32_t occupancy(int32_t *count, int32_t threads, size_t shared_bytes)
{
    int32_t result = 0;
    *count = 0;
    if (frag_soft_enter(&result))
        *count = frag_soft_occupancy(threads, shared_bytes);
    frag_soft_leave();
    return frag_runtime_return(result);
}

FRAG_ENTRY(int32_t, cudaOccupancyMaxActiveBlocksPerMultiprocessor,
           (int32_t * count, const void *function, int32_t threads, size_t shared_bytes))
{
    (void)function;
    return occupancy(count, threads, shared_bytes);
}

FRAG_ENTRY(int32_t, cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
           (int32_t * count, const void *function, int32_t threads, size_t shared_bytes,
            unsigned flags))
{
    (void)function, (void)flags;
    return occupancy(count, threads, shared_bytes);
}

FRAG_ENTRY(int32_t, cudaOccupancyMaxActiveClusters,
           (int32_t * count, const void *function, const launch_configuration *configuration))
{
    enum { BLOCKS_PER_CLUSTER = 8 }; /* the most that is portable */
    int32_t result = 0;
    (void)function;
    *count = 0;
    if (frag_soft_enter(&result))
        *count = frag_soft_occupancy((int32_t)(configuration->block.x * configuration->block.y *
                                               configuration->block.z),
                                     configuration->shared_bytes) *
                 frag_soft_attribute(FRAG_ATTRIBUTE_MULTIPROCESSORS, frag_soft_device_current()) /
                 BLOCKS_PER_CLUSTER;
    frag_soft_leave();
    return frag_runtime_return(result);
}

FRAG_ENTRY(int32_t, cudaOccupancyMaxPotentialClusterSize,
           (int32_t * size, const void *function, const launch_configuration *configuration))
{
    (void)function, (void)configuration;
    *size = 8;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cudaOccupancyAvailableDynamicSMemPerBlock,
           (size_t * bytes, const void *function, int32_t block_count, int32_t threads))
{
    int32_t result = 0;
    (void)function, (void)threads;
    *bytes = 0;
    if (frag_soft_enter(&result))
        *bytes = frag_soft_shared_left(block_count);
    frag_soft_leave();
    return frag_runtime_return(result);
}
