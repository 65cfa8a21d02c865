/* libcudart: copies and fills. They act on what is known of the memory of devices. */
#include <string.h>

#include "base/bits.h"
#include "gpu_replay/software/runtime/soft_runtime.h"

#define WAITING ((frag_soft_way){NULL, true, FRAG_CALLER()})
#define ON_STREAM ((frag_soft_way){stream, false, FRAG_CALLER()})

static int32_t copy(frag_soft_call_id id, frag_soft_area area, frag_soft_way how)
{
    return frag_runtime_return(frag_soft_copy_area(id, area, how));
}

static frag_soft_area one_row(const void *to, const void *from, size_t bytes)
{
    return frag_soft_row(frag_soft_number(to), frag_soft_number(from), bytes);
}

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

typedef struct plane {
    void *to;
    size_t to_pitch;
    const void *from;
    size_t from_pitch;
    size_t width;
    size_t height;
} plane;

static frag_soft_area rows_of(plane copied)
{
    return (frag_soft_area){.to = frag_soft_number(copied.to),
                            .to_pitch = copied.to_pitch,
                            .from = frag_soft_number(copied.from),
                            .from_pitch = copied.from_pitch,
                            .width = copied.width,
                            .height = copied.height,
                            .depth = 1};
}

FRAG_ENTRY(int32_t, cudaMemcpy2DAsync,
           (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
            size_t height, int32_t kind, void *stream))
{
    (void)kind;
    return copy(FRAG_CALL_cudaMemcpyAsync,
                rows_of((plane){to, to_pitch, from, from_pitch, width, height}), ON_STREAM);
}

FRAG_ENTRY(int32_t, cudaMemcpy2D,
           (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
            size_t height, int32_t kind))
{
    (void)kind;
    return copy(FRAG_CALL_cudaMemcpy,
                rows_of((plane){to, to_pitch, from, from_pitch, width, height}), WAITING);
}

/* ---- boxes */

typedef struct pitched {
    void *address;
    size_t pitch;
    size_t width;
    size_t height;
} pitched;

typedef struct box_place {
    void *array;
    size_t x, y, z;
    pitched memory;
} box_place;

/* cudaMemcpy3DParms; that of peers has a device behind each place. */
typedef struct box_copy {
    box_place from;
    box_place to;
    size_t width, height, depth;
    int32_t kind;
} box_copy;

typedef struct box_copy_of_peers {
    box_place from;
    int32_t from_device;
    box_place to;
    int32_t to_device;
    size_t width, height, depth;
} box_copy_of_peers;

static uint64_t start_of(const box_place *place)
{
    return frag_soft_number(place->memory.address) + place->x +
           place->memory.pitch * (place->y + place->z * place->memory.height);
}

int32_t frag_runtime_area_of(const void *parameters, frag_soft_area *area)
{
    const box_copy *box = parameters;
    if (box == NULL || box->from.array != NULL || box->to.array != NULL)
        return box == NULL ? FRAG_CUDA_INVALID_VALUE : FRAG_CUDA_NOT_SUPPORTED;
    *area = (frag_soft_area){.to = start_of(&box->to),
                             .to_pitch = box->to.memory.pitch,
                             .to_plane = box->to.memory.pitch * box->to.memory.height,
                             .from = start_of(&box->from),
                             .from_pitch = box->from.memory.pitch,
                             .from_plane = box->from.memory.pitch * box->from.memory.height,
                             .width = box->width,
                             .height = box->height,
                             .depth = box->depth};
    return FRAG_CUDA_OK;
}

static int32_t copy_box(frag_soft_call_id id, const box_copy *box, frag_soft_way how)
{
    frag_soft_area area;
    int32_t result = frag_runtime_area_of(box, &area);
    return result == FRAG_CUDA_OK ? copy(id, area, how) : frag_runtime_return(result);
}

FRAG_ENTRY(int32_t, cudaMemcpy3D, (const box_copy *box))
{
    return copy_box(FRAG_CALL_cudaMemcpy, box, WAITING);
}

FRAG_ENTRY(int32_t, cudaMemcpy3DAsync, (const box_copy *box, void *stream))
{
    return copy_box(FRAG_CALL_cudaMemcpyAsync, box, ON_STREAM);
}

static box_copy without_peers(const box_copy_of_peers *box)
{
    return (box_copy){.from = box->from,
                      .to = box->to,
                      .width = box->width,
                      .height = box->height,
                      .depth = box->depth};
}

FRAG_ENTRY(int32_t, cudaMemcpy3DPeer, (const box_copy_of_peers *box))
{
    box_copy plain = without_peers(box);
    return copy_box(FRAG_CALL_cudaMemcpyPeer, &plain, WAITING);
}

FRAG_ENTRY(int32_t, cudaMemcpy3DPeerAsync, (const box_copy_of_peers *box, void *stream))
{
    box_copy plain = without_peers(box);
    return copy_box(FRAG_CALL_cudaMemcpyPeerAsync, &plain, ON_STREAM);
}

/* ---- batches */

typedef struct batch {
    void *const *to;
    const void *const *from;
    const size_t *bytes;
    size_t count;
} batch;

static int32_t copy_batch(batch all, size_t *failed, frag_soft_way how)
{
    for (size_t i = 0; i < all.count; i++) {
        int32_t result =
            copy(FRAG_CALL_cudaMemcpyAsync, one_row(all.to[i], all.from[i], all.bytes[i]), how);
        if (result == FRAG_CUDA_OK)
            continue;
        if (failed != NULL)
            *failed = i;
        return result;
    }
    return FRAG_CUDA_OK;
}

#if FRAG_CUDART >= 13
FRAG_ENTRY(int32_t, cudaMemcpyBatchAsync,
           (void *const *to, const void *const *from, const size_t *bytes, size_t count,
            void *attributes, size_t *places, size_t attribute_count, void *stream))
{
    (void)attributes, (void)places, (void)attribute_count;
    return copy_batch((batch){to, from, bytes, count}, NULL, ON_STREAM);
}
#else
FRAG_ENTRY(int32_t, cudaMemcpyBatchAsync,
           (void *const *to, const void *const *from, const size_t *bytes, size_t count,
            void *attributes, size_t *places, size_t attribute_count, size_t *failed, void *stream))
{
    (void)attributes, (void)places, (void)attribute_count;
    return copy_batch((batch){to, from, bytes, count}, failed, ON_STREAM);
}
#endif

/* ---- variables of device code */

FRAG_ENTRY(int32_t, cudaGetSymbolAddress, (void **out, const void *symbol))
{
    frag_soft_extent found = {0};
    int32_t result = 0;
    if (frag_soft_enter(&result) && !frag_soft_symbol_find(frag_soft_number(symbol), &found))
        result = FRAG_RUNTIME_INVALID_SYMBOL;
    frag_soft_leave();
    *out = frag_soft_pointer(found.address);
    return frag_runtime_return(result);
}

FRAG_ENTRY(int32_t, cudaGetSymbolSize, (size_t * bytes, const void *symbol))
{
    frag_soft_extent found = {0};
    int32_t result = 0;
    if (frag_soft_enter(&result) && !frag_soft_symbol_find(frag_soft_number(symbol), &found))
        result = FRAG_RUNTIME_INVALID_SYMBOL;
    frag_soft_leave();
    *bytes = found.bytes;
    return frag_runtime_return(result);
}

uint64_t frag_runtime_part_of(const void *symbol, size_t bytes, size_t offset)
{
    frag_soft_extent found = {0};
    int32_t result = 0;
    bool is_inside = frag_soft_enter(&result) &&
                     frag_soft_symbol_find(frag_soft_number(symbol), &found) &&
                     offset <= found.bytes && bytes <= found.bytes - offset;
    frag_soft_leave();
    return is_inside ? found.address + offset : 0;
}

static int32_t copy_to_symbol(const void *symbol, frag_soft_area area, size_t offset,
                              frag_soft_way how)
{
    area.to = frag_runtime_part_of(symbol, area.width, offset);
    if (area.to == 0)
        return frag_runtime_return(FRAG_RUNTIME_INVALID_SYMBOL);
    return copy(how.waits ? FRAG_CALL_cudaMemcpy : FRAG_CALL_cudaMemcpyAsync, area, how);
}

static int32_t copy_from_symbol(const void *symbol, frag_soft_area area, size_t offset,
                                frag_soft_way how)
{
    area.from = frag_runtime_part_of(symbol, area.width, offset);
    if (area.from == 0)
        return frag_runtime_return(FRAG_RUNTIME_INVALID_SYMBOL);
    return copy(how.waits ? FRAG_CALL_cudaMemcpy : FRAG_CALL_cudaMemcpyAsync, area, how);
}

FRAG_ENTRY(int32_t, cudaMemcpyToSymbol,
           (const void *symbol, const void *from, size_t bytes, size_t offset, int32_t kind))
{
    (void)kind;
    return copy_to_symbol(symbol, one_row(NULL, from, bytes), offset, WAITING);
}

FRAG_ENTRY(int32_t, cudaMemcpyToSymbolAsync,
           (const void *symbol, const void *from, size_t bytes, size_t offset, int32_t kind,
            void *stream))
{
    (void)kind;
    return copy_to_symbol(symbol, one_row(NULL, from, bytes), offset, ON_STREAM);
}

FRAG_ENTRY(int32_t, cudaMemcpyFromSymbol,
           (void *to, const void *symbol, size_t bytes, size_t offset, int32_t kind))
{
    (void)kind;
    return copy_from_symbol(symbol, one_row(to, NULL, bytes), offset, WAITING);
}

FRAG_ENTRY(int32_t, cudaMemcpyFromSymbolAsync,
           (void *to, const void *symbol, size_t bytes, size_t offset, int32_t kind, void *stream))
{
    (void)kind;
    return copy_from_symbol(symbol, one_row(to, NULL, bytes), offset, ON_STREAM);
}

/* ---- fills */

static int32_t fill(frag_soft_call_id id, frag_soft_area area, int32_t value, const void *stream)
{
    return frag_runtime_return(frag_soft_fill_area(id, area, (uint32_t)value & 0xff, 1, stream));
}

FRAG_ENTRY(int32_t, cudaMemset, (void *address, int32_t value, size_t bytes))
{
    return fill(FRAG_CALL_cudaMemset, one_row(address, NULL, bytes), value, NULL);
}

FRAG_ENTRY(int32_t, cudaMemsetAsync, (void *address, int32_t value, size_t bytes, void *stream))
{
    return fill(FRAG_CALL_cudaMemsetAsync, one_row(address, NULL, bytes), value, stream);
}

FRAG_ENTRY(int32_t, cudaMemset2D,
           (void *address, size_t pitch, int32_t value, size_t width, size_t height))
{
    return fill(FRAG_CALL_cudaMemset, rows_of((plane){address, pitch, NULL, 0, width, height}),
                value, NULL);
}

FRAG_ENTRY(int32_t, cudaMemset2DAsync,
           (void *address, size_t pitch, int32_t value, size_t width, size_t height, void *stream))
{
    return fill(FRAG_CALL_cudaMemsetAsync, rows_of((plane){address, pitch, NULL, 0, width, height}),
                value, stream);
}

typedef struct extent {
    size_t width, height, depth;
} extent;

static frag_soft_area box_of(pitched memory, extent of)
{
    return (frag_soft_area){.to = frag_soft_number(memory.address),
                            .to_pitch = memory.pitch,
                            .to_plane = memory.pitch * memory.height,
                            .width = of.width,
                            .height = of.height,
                            .depth = of.depth};
}

FRAG_ENTRY(int32_t, cudaMemset3D, (pitched memory, int32_t value, extent of))
{
    return fill(FRAG_CALL_cudaMemset, box_of(memory, of), value, NULL);
}

FRAG_ENTRY(int32_t, cudaMemset3DAsync, (pitched memory, int32_t value, extent of, void *stream))
{
    return fill(FRAG_CALL_cudaMemsetAsync, box_of(memory, of), value, stream);
}
