/* Copies between host and device: what the host wrote can be read back. */
#include <cublas_calls.h>

enum { INVALID_VALUE = 7 };

/* Where things lie: counts of elements and lines, and the distance of lines in elements. */
typedef struct layout {
    uint64_t row_count;
    uint64_t column_count;
    uint64_t element_bytes;
    uint64_t device_stride;
    uint64_t host_stride;
} layout;

static int32_t read_columns(const layout *shape, const unsigned char *device, unsigned char *host)
{
    if (device == NULL || host == NULL)
        return INVALID_VALUE;
    for (uint64_t column = 0; column < shape->column_count; column++)
        frag_software_read(device + column * shape->device_stride * shape->element_bytes,
                           host + column * shape->host_stride * shape->element_bytes,
                           shape->row_count * shape->element_bytes);
    return 0;
}

static int32_t write_columns(const layout *shape, const unsigned char *host, unsigned char *device)
{
    if (device == NULL || host == NULL)
        return INVALID_VALUE;
    for (uint64_t column = 0; column < shape->column_count; column++)
        frag_software_write(device + column * shape->device_stride * shape->element_bytes,
                            host + column * shape->host_stride * shape->element_bytes,
                            shape->row_count * shape->element_bytes);
    return 0;
}

/* A matrix of the caller's is in columns; a vector is one with a single row. */
static layout shape_of(int32_t rows, int32_t columns, int32_t bytes, int32_t device_stride,
                       int32_t host_stride)
{
    return (layout){frag_standin_count(rows), frag_standin_count(columns),
                    frag_standin_count(bytes), frag_standin_count(device_stride),
                    frag_standin_count(host_stride)};
}

int32_t cublasGetVector(int32_t n, int32_t bytes, const void *device, int32_t device_stride,
                        void *host, int32_t host_stride)
{
    layout shape = shape_of(1, n, bytes, device_stride, host_stride);
    return read_columns(&shape, device, host);
}

int32_t cublasGetVectorAsync(int32_t n, int32_t bytes, const void *device, int32_t device_stride,
                             void *host, int32_t host_stride, void *stream)
{
    (void)stream;
    return cublasGetVector(n, bytes, device, device_stride, host, host_stride);
}

int32_t cublasSetVector(int32_t n, int32_t bytes, const void *host, int32_t host_stride,
                        void *device, int32_t device_stride)
{
    layout shape = shape_of(1, n, bytes, device_stride, host_stride);
    return write_columns(&shape, host, device);
}

int32_t cublasSetVectorAsync(int32_t n, int32_t bytes, const void *host, int32_t host_stride,
                             void *device, int32_t device_stride, void *stream)
{
    (void)stream;
    return cublasSetVector(n, bytes, host, host_stride, device, device_stride);
}

int32_t cublasGetMatrix(int32_t rows, int32_t columns, int32_t bytes, const void *device,
                        int32_t device_stride, void *host, int32_t host_stride)
{
    layout shape = shape_of(rows, columns, bytes, device_stride, host_stride);
    return read_columns(&shape, device, host);
}

int32_t cublasGetMatrixAsync(int32_t rows, int32_t columns, int32_t bytes, const void *device,
                             int32_t device_stride, void *host, int32_t host_stride, void *stream)
{
    (void)stream;
    return cublasGetMatrix(rows, columns, bytes, device, device_stride, host, host_stride);
}

int32_t cublasSetMatrix(int32_t rows, int32_t columns, int32_t bytes, const void *host,
                        int32_t host_stride, void *device, int32_t device_stride)
{
    layout shape = shape_of(rows, columns, bytes, device_stride, host_stride);
    return write_columns(&shape, host, device);
}

int32_t cublasSetMatrixAsync(int32_t rows, int32_t columns, int32_t bytes, const void *host,
                             int32_t host_stride, void *device, int32_t device_stride, void *stream)
{
    (void)stream;
    return cublasSetMatrix(rows, columns, bytes, host, host_stride, device, device_stride);
}
