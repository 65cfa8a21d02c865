/* libcudart: kernels, copies, fills. Launches do nothing but count; copies and fills act on what is
 * known of the memory of devices. */
#include <string.h>

#include "base/bits.h"
#include "gpu_replay/software/runtime/soft_runtime.h"

/* ---- kernels */

typedef struct dimensions {
    unsigned x, y, z;
} dimensions;

static int32_t launch(const void *stream_handle)
{
    frag_soft_call call;
    uint32_t stream = 0;
    bool may = frag_soft_begin(&call, FRAG_CALL_cudaLaunchKernel);
    if (frag_runtime_stream(&call, may, stream_handle, &stream)) {
        frag_soft_shadow_launch();
        frag_soft_stream_work(stream);
    }
    return frag_runtime_end(&call);
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

/* The function is called at once, which a stream without waiting work may do. */
FRAG_ENTRY(int32_t, cudaLaunchHostFunc, (void *stream_handle, void (*function)(void *), void *data))
{
    frag_soft_call call;
    uint32_t stream = 0;
    bool may = frag_soft_begin(&call, FRAG_CALL_cudaLaunchHostFunc);
    if (frag_runtime_stream(&call, may, stream_handle, &stream))
        frag_soft_stream_work(stream);
    int32_t result = frag_runtime_end(&call);
    if (result == FRAG_CUDA_OK)
        function(data);
    return result;
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

FRAG_ENTRY(void, __cudaRegisterVar, (void))
{
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
    int32_t result = 0;
    (void)function;
    if (frag_soft_enter(&result)) {
        const int32_t threads = 1024;
        const int32_t registers = 32;
        const int32_t shared = 49152;
        int32_t capability = (int32_t)frag_soft.settings.card.compute_capability;
        memset(out, 0, BYTES);
        memcpy(out + THREADS, &threads, sizeof threads);
        memcpy(out + REGISTERS, &registers, sizeof registers);
        memcpy(out + PTX, &capability, sizeof capability);
        memcpy(out + BINARY, &capability, sizeof capability);
        memcpy(out + SHARED, &shared, sizeof shared);
    }
    frag_soft_leave();
    return frag_runtime_return(result);
}

FRAG_ENTRY(int32_t, cudaOccupancyMaxActiveBlocksPerMultiprocessor, (int32_t * count))
{
    *count = 2;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, (int32_t * count))
{
    *count = 2;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cudaOccupancyMaxActiveClusters, (int32_t * count))
{
    *count = 2;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cudaOccupancyAvailableDynamicSMemPerBlock, (size_t * bytes))
{
    *bytes = 49152;
    return FRAG_CUDA_OK;
}

/* ---- copies */

typedef struct rows {
    uint64_t to;
    uint64_t to_pitch;
    uint64_t from;
    uint64_t from_pitch;
    uint64_t width;
    uint64_t height;
} rows;

/* Memory of a device has to be held. Whether host memory is the program's, nobody can tell. */
static bool is_reachable(uint64_t address, uint64_t bytes)
{
    return !frag_soft_is_device_address(address) || frag_soft_range_is_usable(address, bytes);
}

typedef struct way {
    const void *stream;
    bool waits;
    const void *caller;
} way;

static int32_t copy(frag_soft_call_id id, rows area, way how)
{
    frag_soft_call call;
    uint32_t stream = 0;
    frag_soft_scalar scalar = {.to = area.to, .from = area.from, .bytes = area.width * area.height};
    bool may = frag_soft_begin(&call, id);
    frag_soft_note_address(&call, "to", area.to);
    frag_soft_note_address(&call, "from", area.from);
    frag_soft_note(&call, "bytes", area.width * area.height);
    if (frag_runtime_stream(&call, may, how.stream, &stream)) {
        for (uint64_t i = 0; i < area.height && call.seen.result == FRAG_CUDA_OK; i++) {
            uint64_t to = area.to + i * area.to_pitch;
            uint64_t from = area.from + i * area.from_pitch;
            if (!is_reachable(to, area.width) || !is_reachable(from, area.width)) {
                frag_soft_fail(&call, FRAG_CUDA_INVALID_VALUE);
                break;
            }
            frag_soft_known known = frag_soft_copy(to, from, area.width);
            if (area.height == 1)
                frag_soft_scalar_note(&scalar, known);
        }
        frag_soft_stream_work(stream);
        if (how.waits) {
            frag_soft_stream_complete(stream, frag_soft.streams[stream].position);
            frag_soft_pools_settle();
        }
    }
    int32_t result = frag_runtime_end(&call);
    frag_soft_scalar_ask(&scalar, how.caller);
    return result;
}

static rows one_row(const void *to, const void *from, size_t bytes)
{
    return (rows){
        .to = frag_soft_number(to), .from = frag_soft_number(from), .width = bytes, .height = 1};
}

#define WAITING ((way){NULL, true, FRAG_CALLER()})
#define ON_STREAM ((way){stream, false, FRAG_CALLER()})

FRAG_ENTRY(int32_t, cudaMemcpy, (void *to, const void *from, size_t bytes, int32_t kind))
{
    (void)kind;
    return copy(FRAG_CALL_cudaMemcpy, one_row(to, from, bytes), WAITING);
}

FRAG_ENTRY(int32_t, cudaMemcpyAsync,
           (void *to, const void *from, size_t bytes, int32_t kind, void *stream))
{
    (void)kind;
    return copy(FRAG_CALL_cudaMemcpyAsync, one_row(to, from, bytes), ON_STREAM);
}

FRAG_ENTRY(int32_t, cudaMemcpyPeer,
           (void *to, int32_t to_device, const void *from, int32_t from_device, size_t bytes))
{
    (void)to_device, (void)from_device;
    return copy(FRAG_CALL_cudaMemcpyPeer, one_row(to, from, bytes), WAITING);
}

FRAG_ENTRY(int32_t, cudaMemcpyPeerAsync,
           (void *to, int32_t to_device, const void *from, int32_t from_device, size_t bytes,
            void *stream))
{
    (void)to_device, (void)from_device;
    return copy(FRAG_CALL_cudaMemcpyPeerAsync, one_row(to, from, bytes), ON_STREAM);
}

FRAG_ENTRY(int32_t, cudaMemcpy2DAsync,
           (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
            size_t height, int32_t kind, void *stream))
{
    (void)kind;
    return copy(
        FRAG_CALL_cudaMemcpyAsync,
        (rows){frag_soft_number(to), to_pitch, frag_soft_number(from), from_pitch, width, height},
        ON_STREAM);
}

FRAG_ENTRY(int32_t, cudaMemcpy2D,
           (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
            size_t height, int32_t kind))
{
    (void)kind;
    return copy(
        FRAG_CALL_cudaMemcpy,
        (rows){frag_soft_number(to), to_pitch, frag_soft_number(from), from_pitch, width, height},
        WAITING);
}

/* Variables of device code do not exist: writing to them is ignored, reading gives zeros. */
FRAG_ENTRY(int32_t, cudaMemcpyToSymbolAsync, (void))
{
    return launch(NULL);
}

FRAG_ENTRY(int32_t, cudaMemcpyToSymbol, (void))
{
    return launch(NULL);
}

/* ---- fills */

static int32_t fill(frag_soft_call_id id, rows area, int32_t value, const void *stream_handle)
{
    frag_soft_call call;
    uint32_t stream = 0;
    bool may = frag_soft_begin(&call, id);
    frag_soft_note_address(&call, "address", area.to);
    frag_soft_note(&call, "bytes", area.width * area.height);
    if (frag_runtime_stream(&call, may, stream_handle, &stream)) {
        for (uint64_t i = 0; i < area.height && call.seen.result == FRAG_CUDA_OK; i++) {
            uint64_t to = area.to + i * area.to_pitch;
            if (!is_reachable(to, area.width))
                frag_soft_fail(&call, FRAG_CUDA_INVALID_VALUE);
            else
                frag_soft_shadow_fill(to, (uint32_t)value & 0xff, 1, area.width);
        }
        if (call.seen.result == FRAG_CUDA_OK)
            frag_soft_stream_work(stream);
    }
    return frag_runtime_end(&call);
}

FRAG_ENTRY(int32_t, cudaMemset, (void *address, int32_t value, size_t bytes))
{
    return fill(FRAG_CALL_cudaMemset, one_row(address, NULL, bytes), value, NULL);
}

FRAG_ENTRY(int32_t, cudaMemsetAsync, (void *address, int32_t value, size_t bytes, void *stream))
{
    return fill(FRAG_CALL_cudaMemsetAsync, one_row(address, NULL, bytes), value, stream);
}

FRAG_ENTRY(int32_t, cudaMemset2DAsync,
           (void *address, size_t pitch, int32_t value, size_t width, size_t height, void *stream))
{
    return fill(
        FRAG_CALL_cudaMemsetAsync,
        (rows){
            .to = frag_soft_number(address), .to_pitch = pitch, .width = width, .height = height},
        value, stream);
}
