/* libcuda.so.1: copies, fills, pinned memory, and what lies where. */
#include <string.h>

#include "base/bits.h"
#include "gpu_replay/software/driver/soft_driver.h"

#define WAITING ((frag_soft_way){NULL, true, FRAG_CALLER()})
#define ON_STREAM ((frag_soft_way){stream, false, FRAG_CALLER()})

/* ---- copies of rows */

static int32_t copy(uint64_t to, frag_soft_extent from, frag_soft_way how)
{
    return frag_soft_copy_area(how.waits ? FRAG_CALL_cuMemcpy : FRAG_CALL_cuMemcpyAsync,
                               frag_soft_row(to, from.address, from.bytes), how);
}

static frag_soft_extent of(uint64_t address, size_t bytes)
{
    return (frag_soft_extent){.address = address, .bytes = bytes};
}

FRAG_ENTRY(int32_t, cuMemcpy, (uint64_t to, uint64_t from, size_t bytes))
{
    return copy(to, of(from, bytes), WAITING);
}

FRAG_ENTRY(int32_t, cuMemcpyAsync, (uint64_t to, uint64_t from, size_t bytes, void *stream))
{
    return copy(to, of(from, bytes), ON_STREAM);
}

FRAG_ENTRY(int32_t, cuMemcpyHtoD_v2, (uint64_t to, const void *from, size_t bytes))
{
    return copy(to, of(frag_soft_number(from), bytes), WAITING);
}

FRAG_ENTRY(int32_t, cuMemcpyHtoDAsync_v2,
           (uint64_t to, const void *from, size_t bytes, void *stream))
{
    return copy(to, of(frag_soft_number(from), bytes), ON_STREAM);
}

FRAG_ENTRY(int32_t, cuMemcpyDtoH_v2, (void *to, uint64_t from, size_t bytes))
{
    return copy(frag_soft_number(to), of(from, bytes), WAITING);
}

FRAG_ENTRY(int32_t, cuMemcpyDtoHAsync_v2, (void *to, uint64_t from, size_t bytes, void *stream))
{
    return copy(frag_soft_number(to), of(from, bytes), ON_STREAM);
}

FRAG_ENTRY(int32_t, cuMemcpyDtoD_v2, (uint64_t to, uint64_t from, size_t bytes))
{
    return copy(to, of(from, bytes), WAITING);
}

FRAG_ENTRY(int32_t, cuMemcpyDtoDAsync_v2, (uint64_t to, uint64_t from, size_t bytes, void *stream))
{
    return copy(to, of(from, bytes), ON_STREAM);
}

FRAG_ENTRY(int32_t, cuMemcpyPeer,
           (uint64_t to, void *to_context, uint64_t from, void *from_context, size_t bytes))
{
    (void)to_context, (void)from_context;
    return copy(to, of(from, bytes), WAITING);
}

FRAG_ENTRY(int32_t, cuMemcpyPeerAsync,
           (uint64_t to, void *to_context, uint64_t from, void *from_context, size_t bytes,
            void *stream))
{
    (void)to_context, (void)from_context;
    return copy(to, of(from, bytes), ON_STREAM);
}

/* ---- copies of planes and boxes */

enum { IN_HOST = 1, IN_DEVICE = 2, IN_ARRAY = 3, ANYWHERE = 4 };

/* CUDA_MEMCPY2D: two ends, of which one sort of memory is used. */
typedef struct plane_end {
    size_t x, y;
    int32_t sort;
    const void *host;
    uint64_t device;
    void *array;
    size_t pitch;
} plane_end;

typedef struct plane_copy {
    plane_end from;
    plane_end to;
    size_t width, height;
} plane_copy;

static uint64_t plane_start(const plane_end *end)
{
    uint64_t base = end->sort == IN_HOST ? frag_soft_number(end->host) : end->device;
    return base + end->y * end->pitch + end->x;
}

static int32_t copy_plane(const plane_copy *plane, frag_soft_way how)
{
    if (plane == NULL || plane->from.sort == IN_ARRAY || plane->to.sort == IN_ARRAY)
        return plane == NULL ? FRAG_CUDA_INVALID_VALUE : FRAG_CUDA_NOT_SUPPORTED;
    return frag_soft_copy_area(how.waits ? FRAG_CALL_cuMemcpy : FRAG_CALL_cuMemcpyAsync,
                               (frag_soft_area){.to = plane_start(&plane->to),
                                                .to_pitch = plane->to.pitch,
                                                .from = plane_start(&plane->from),
                                                .from_pitch = plane->from.pitch,
                                                .width = plane->width,
                                                .height = plane->height,
                                                .depth = 1},
                               how);
}

FRAG_ENTRY(int32_t, cuMemcpy2D_v2, (const plane_copy *plane))
{
    return copy_plane(plane, WAITING);
}

FRAG_ENTRY(int32_t, cuMemcpy2DUnaligned_v2, (const plane_copy *plane))
{
    return copy_plane(plane, WAITING);
}

FRAG_ENTRY(int32_t, cuMemcpy2DAsync_v2, (const plane_copy *plane, void *stream))
{
    return copy_plane(plane, ON_STREAM);
}

/* CUDA_MEMCPY3D */
typedef struct box_end {
    size_t x, y, z, level;
    int32_t sort;
    const void *host;
    uint64_t device;
    void *array;
    void *reserved;
    size_t pitch;
    size_t height;
} box_end;

typedef struct box_copy {
    box_end from;
    box_end to;
    size_t width, height, depth;
} box_copy;

static uint64_t box_start(const box_end *end)
{
    uint64_t base = end->sort == IN_HOST ? frag_soft_number(end->host) : end->device;
    return base + (end->z * end->height + end->y) * end->pitch + end->x;
}

int32_t frag_driver_area_of(const void *parameters, frag_soft_area *area)
{
    const box_copy *box = parameters;
    if (box == NULL || box->from.sort == IN_ARRAY || box->to.sort == IN_ARRAY)
        return box == NULL ? FRAG_CUDA_INVALID_VALUE : FRAG_CUDA_NOT_SUPPORTED;
    *area = (frag_soft_area){.to = box_start(&box->to),
                             .to_pitch = box->to.pitch,
                             .to_plane = box->to.pitch * box->to.height,
                             .from = box_start(&box->from),
                             .from_pitch = box->from.pitch,
                             .from_plane = box->from.pitch * box->from.height,
                             .width = box->width,
                             .height = box->height,
                             .depth = box->depth};
    return FRAG_CUDA_OK;
}

static int32_t copy_box(const box_copy *box, frag_soft_way how)
{
    frag_soft_area area;
    int32_t result = frag_driver_area_of(box, &area);
    return result != FRAG_CUDA_OK
               ? result
               : frag_soft_copy_area(how.waits ? FRAG_CALL_cuMemcpy : FRAG_CALL_cuMemcpyAsync, area,
                                     how);
}

FRAG_ENTRY(int32_t, cuMemcpy3D_v2, (const box_copy *box))
{
    return copy_box(box, WAITING);
}

FRAG_ENTRY(int32_t, cuMemcpy3DAsync_v2, (const box_copy *box, void *stream))
{
    return copy_box(box, ON_STREAM);
}

/* ---- fills */

static int32_t fill(frag_soft_call_id id, frag_soft_filling what, const void *stream)
{
    return frag_soft_fill_area(id, frag_soft_filled(&what), what.value, what.value_bytes, stream);
}

#define FILLS(bits, bytes, type)                                                                   \
    FRAG_ENTRY(int32_t, cuMemsetD##bits##_v2, (uint64_t address, type value, size_t count))        \
    {                                                                                              \
        return fill(FRAG_CALL_cuMemsetD##bits,                                                     \
                    (frag_soft_filling){address, 0, value, bytes, count, 1}, NULL);                \
    }                                                                                              \
    FRAG_ENTRY(int32_t, cuMemsetD##bits##Async,                                                    \
               (uint64_t address, type value, size_t count, void *stream))                         \
    {                                                                                              \
        return fill(FRAG_CALL_cuMemsetD##bits,                                                     \
                    (frag_soft_filling){address, 0, value, bytes, count, 1}, stream);              \
    }                                                                                              \
    FRAG_ENTRY(int32_t, cuMemsetD2D##bits##_v2,                                                    \
               (uint64_t address, size_t pitch, type value, size_t width, size_t height))          \
    {                                                                                              \
        return fill(FRAG_CALL_cuMemsetD##bits,                                                     \
                    (frag_soft_filling){address, pitch, value, bytes, width, height}, NULL);       \
    }                                                                                              \
    FRAG_ENTRY(                                                                                    \
        int32_t, cuMemsetD2D##bits##Async,                                                         \
        (uint64_t address, size_t pitch, type value, size_t width, size_t height, void *stream))   \
    {                                                                                              \
        return fill(FRAG_CALL_cuMemsetD##bits,                                                     \
                    (frag_soft_filling){address, pitch, value, bytes, width, height}, stream);     \
    }

FILLS(8, 1, unsigned char)
FILLS(16, 2, unsigned short)
FILLS(32, 4, unsigned)

/* ---- pinned memory */

static int32_t allocate_host(void **out, size_t bytes)
{
    frag_soft_call call;
    uint64_t address = 0;
    bool may = frag_soft_begin(&call, FRAG_CALL_cuMemHostAlloc);
    frag_soft_note(&call, "bytes", bytes);
    if (may)
        frag_soft_fail(&call, frag_soft_host_new(bytes, &address));
    frag_soft_note_address(&call, "address", address);
    *out = frag_soft_pointer(address);
    return frag_soft_end(&call);
}

FRAG_ENTRY(int32_t, cuMemAllocHost_v2, (void **out, size_t bytes))
{
    return allocate_host(out, bytes);
}

FRAG_ENTRY(int32_t, cuMemHostAlloc, (void **out, size_t bytes, unsigned flags))
{
    (void)flags;
    return allocate_host(out, bytes);
}

FRAG_ENTRY(int32_t, cuMemFreeHost, (void *address))
{
    frag_soft_call call;
    bool may = frag_soft_begin(&call, FRAG_CALL_cuMemFreeHost);
    frag_soft_note_address(&call, "address", frag_soft_number(address));
    if (may && !frag_soft_host_give(frag_soft_number(address)))
        frag_soft_fail(&call, FRAG_CUDA_INVALID_VALUE);
    return frag_soft_end(&call);
}

FRAG_ENTRY(int32_t, cuMemHostRegister_v2, (void *address, size_t bytes, unsigned flags))
{
    frag_soft_call call;
    (void)flags;
    bool may = frag_soft_begin(&call, FRAG_CALL_cuMemHostRegister);
    frag_soft_note_address(&call, "address", frag_soft_number(address));
    frag_soft_note(&call, "bytes", bytes);
    if (may && (address == NULL || bytes == 0))
        frag_soft_fail(&call, FRAG_CUDA_INVALID_VALUE);
    else if (may && !frag_soft_host_register(frag_soft_number(address), bytes))
        frag_soft_fail(&call, FRAG_CUDA_HOST_REGISTERED);
    return frag_soft_end(&call);
}

FRAG_ENTRY(int32_t, cuMemHostUnregister, (void *address))
{
    frag_soft_call call;
    bool may = frag_soft_begin(&call, FRAG_CALL_cuMemHostUnregister);
    frag_soft_note_address(&call, "address", frag_soft_number(address));
    if (may && !frag_soft_host_unregister(frag_soft_number(address)))
        frag_soft_fail(&call, FRAG_CUDA_HOST_NOT_REGISTERED);
    return frag_soft_end(&call);
}

FRAG_ENTRY(int32_t, cuMemHostGetDevicePointer_v2, (uint64_t * out, void *address, unsigned flags))
{
    (void)flags;
    *out = frag_soft_number(address);
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuMemHostGetFlags, (unsigned *flags, void *address))
{
    (void)address;
    *flags = 0;
    return FRAG_CUDA_OK;
}

/* ---- what lies where */

/* Attributes of a pointer that is written with so many bytes. */
enum {
    CONTEXT = 1,
    MEMORY_TYPE = 2,
    DEVICE_POINTER = 3,
    HOST_POINTER = 4,
    SYNC_MEMOPS = 6,
    BUFFER_ID = 7,
    IS_MANAGED = 8,
    DEVICE_ORDINAL = 9,
    LEGACY_IPC = 10,
    RANGE_START = 11,
    RANGE_BYTES = 12,
    IS_MAPPED = 13,
    MEMPOOL_HANDLE = 17,
};

typedef struct fact {
    uint64_t value;
    uint32_t bytes; /* 0: no such attribute */
} fact;

static fact fact_of(int32_t attribute, uint64_t address, const frag_soft_extent *extent,
                    bool is_host)
{
    switch (attribute) {
    case CONTEXT:
        return (fact){frag_soft_number(frag_driver_context(extent->device)), 8};
    case MEMORY_TYPE:
        return (fact){is_host ? IN_HOST : IN_DEVICE, 4};
    case DEVICE_POINTER:
        return (fact){address, 8};
    case HOST_POINTER:
        return (fact){is_host ? address : 0, 8};
    case BUFFER_ID:
        return (fact){extent->address, 8};
    case DEVICE_ORDINAL:
        return (fact){extent->device, 4};
    case RANGE_START:
        return (fact){extent->address, 8};
    case RANGE_BYTES:
        return (fact){extent->bytes, 8};
    case IS_MAPPED:
    case LEGACY_IPC:
        return (fact){1, 4};
    case SYNC_MEMOPS:
    case IS_MANAGED:
        return (fact){0, 4};
    case MEMPOOL_HANDLE:
        return (fact){0, 8};
    default:
        return (fact){0, 0};
    }
}

static bool find_memory(uint64_t address, frag_soft_extent *extent, bool *is_host)
{
    frag_soft_host host;
    *is_host = false;
    *extent = (frag_soft_extent){0};
    if (frag_soft_extent_find(address, extent))
        return true;
    *is_host = frag_soft_host_find(address, &host);
    if (*is_host)
        *extent = (frag_soft_extent){
            .address = host.address, .bytes = host.bytes, .device = frag_soft_device_current()};
    return *is_host;
}

FRAG_ENTRY(int32_t, cuPointerGetAttribute, (void *data, int32_t attribute, uint64_t address))
{
    int32_t result = 0;
    frag_soft_extent extent = {0};
    bool is_host = false;
    if (frag_soft_enter(&result) && !find_memory(address, &extent, &is_host))
        result = FRAG_CUDA_INVALID_VALUE;
    fact answer = fact_of(attribute, address, &extent, is_host);
    frag_soft_leave();
    if (answer.bytes == 0)
        return result == FRAG_CUDA_OK ? FRAG_CUDA_NOT_SUPPORTED : result;
    if (result != FRAG_CUDA_OK)
        answer.value = 0;
    memcpy(data, &answer.value, answer.bytes); /* low bytes first */
    return result;
}

/* Of memory that nobody knows all attributes are 0, and that is no error. */
FRAG_ENTRY(int32_t, cuPointerGetAttributes,
           (unsigned count, int32_t *attributes, void **data, uint64_t address))
{
    int32_t result = 0;
    frag_soft_extent extent = {0};
    bool is_host = false;
    frag_soft_enter(&result);
    bool is_known = find_memory(address, &extent, &is_host);
    for (unsigned i = 0; i < count; i++) {
        fact answer = fact_of(attributes[i], address, &extent, is_host);
        if (!is_known)
            answer.value = 0;
        memcpy(data[i], &answer.value, answer.bytes);
    }
    frag_soft_leave();
    return result;
}

FRAG_ENTRY(int32_t, cuPointerSetAttribute, (const void *value, int32_t attribute, uint64_t address))
{
    (void)value, (void)attribute, (void)address;
    return FRAG_CUDA_OK;
}
