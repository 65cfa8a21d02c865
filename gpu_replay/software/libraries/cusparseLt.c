/* Matrices with two of four values kept. What compression takes beside the values is the real
 * library's: from nothing to as much as the matrix. */
#include <string.h>

#include <cusparseLt_calls.h>

enum { INVALID_VALUE = 3, DESCRIPTOR_BYTES = 64 };

typedef struct descriptor {
    uint64_t magic;
    uint64_t row_count;
    uint64_t column_count;
    uint64_t element_bytes;
} descriptor;

_Static_assert(sizeof(descriptor) <= DESCRIPTOR_BYTES, "a descriptor fits in the caller's memory");
#define DESCRIPTOR_MAGIC UINT64_C(0x6672616773706172)

static int32_t describe(void *out, int64_t rows, int64_t columns, int32_t type)
{
    if (out == NULL)
        return INVALID_VALUE;
    descriptor made = {DESCRIPTOR_MAGIC, frag_standin_count(rows), frag_standin_count(columns),
                       frag_standin_type_bytes((uint64_t)(uint32_t)type)};
    memset(out, 0, DESCRIPTOR_BYTES);
    memcpy(out, &made, sizeof made);
    return 0;
}

int32_t cusparseLtDenseDescriptorInit(void *handle, void *out, int64_t rows, int64_t columns,
                                      int64_t stride, uint32_t alignment, int32_t type,
                                      int32_t order)
{
    (void)handle, (void)stride, (void)alignment, (void)order;
    return describe(out, rows, columns, type);
}

int32_t cusparseLtStructuredDescriptorInit(void *handle, void *out, int64_t rows, int64_t columns,
                                           int64_t stride, uint32_t alignment, int32_t type,
                                           int32_t order, int32_t sparsity)
{
    (void)handle, (void)stride, (void)alignment, (void)order, (void)sparsity;
    return describe(out, rows, columns, type);
}

/* Half of the values, and two bits for each that is kept. */
int32_t cusparseLtSpMMACompressedSize2(void *handle, void *matrix, int64_t *compressed_bytes,
                                       int64_t *buffer_bytes)
{
    descriptor found = {0};
    (void)handle;
    if (matrix == NULL || compressed_bytes == NULL || buffer_bytes == NULL)
        return INVALID_VALUE;
    memcpy(&found, matrix, sizeof found);
    if (found.magic != DESCRIPTOR_MAGIC)
        found = (descriptor){0};
    uint64_t count = found.row_count * found.column_count;
    *compressed_bytes = (int64_t)(count / 2 * found.element_bytes + (count + 7) / 8);
    *buffer_bytes = (int64_t)frag_standin_size("cusparseLtSpMMACompressedSize2", "buffer", 0,
                                               count * found.element_bytes, 1);
    return 0;
}
