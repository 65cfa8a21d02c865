/* Descriptors of tensors and filters. */
#include "gpu_replay/software/libraries/cudnn/cudnn_types.h"

#include <string.h>

#define FORMAT_NHWC 1

uint64_t frag_cudnn_element_bytes(int data_type)
{
    /* float, double, half, int8, int32, int8x4, uint8, uint8x4, int8x32, bfloat16, int64, boolean,
     * two of 8-bit floats, fast float for these; then newer 8- and 4-bit kinds, one byte each */
    static const unsigned char bytes[] = {4, 8, 2, 1, 4, 4, 1, 4, 32, 2, 8, 1, 1, 1, 4, 1, 1, 1};
    return data_type >= 0 && (size_t)data_type < sizeof bytes ? bytes[data_type] : 0;
}

uint64_t frag_cudnn_tensor_elements(const frag_cudnn_tensor *tensor)
{
    uint64_t elements = tensor->dimension_count > 0;
    for (int i = 0; i < tensor->dimension_count; i++)
        elements *= (uint64_t)tensor->dimensions[i];
    return elements;
}

uint64_t frag_cudnn_tensor_bytes(const frag_cudnn_tensor *tensor)
{
    if (frag_cudnn_tensor_elements(tensor) == 0)
        return 0;
    uint64_t last = 0;
    for (int i = 0; i < tensor->dimension_count; i++)
        last += (uint64_t)(tensor->dimensions[i] - 1) * (uint64_t)tensor->strides[i];
    return (last + 1) * frag_cudnn_element_bytes(tensor->data_type);
}

bool frag_cudnn_tensor_is_channels_last(const frag_cudnn_tensor *tensor)
{
    return tensor->dimension_count > 2 && tensor->strides[1] == 1 &&
           tensor->strides[tensor->dimension_count - 1] != 1 && tensor->dimensions[1] > 1;
}

/* Of a packed tensor; order of the dimensions in memory: batch, pixels, channels for NHWC. */
static void set_packed_strides(frag_cudnn_tensor *tensor)
{
    int count = tensor->dimension_count;
    int stride = 1;
    bool is_channels_last = tensor->format == FORMAT_NHWC && count > 2;
    if (is_channels_last) {
        tensor->strides[1] = 1;
        stride = tensor->dimensions[1];
    }
    for (int i = count - 1; i >= 0; i--) {
        if (is_channels_last && i == 1)
            continue;
        tensor->strides[i] = stride;
        stride *= tensor->dimensions[i];
    }
}

bool frag_cudnn_tensor_set(frag_cudnn_tensor *tensor, int data_type, int count,
                           const int *dimensions, const int *strides)
{
    if (frag_cudnn_element_bytes(data_type) == 0 || count < 1 ||
        count > FRAG_CUDNN_DIMENSIONS_MAX || dimensions == NULL)
        return false;
    for (int i = 0; i < count; i++)
        if (dimensions[i] < 0 || (strides != NULL && strides[i] < 0))
            return false;
    tensor->data_type = data_type;
    tensor->dimension_count = count;
    memcpy(tensor->dimensions, dimensions, (size_t)count * sizeof *dimensions);
    if (strides != NULL)
        memcpy(tensor->strides, strides, (size_t)count * sizeof *strides);
    else
        set_packed_strides(tensor);
    return true;
}

/* What was not set has no dimensions, and the getters give zeros; so they do of what is no tensor.
 */
static int get_tensor(const frag_cudnn_tensor *tensor, int wanted, int *data_type, int *count,
                      int *dimensions, int *strides)
{
    static const frag_cudnn_tensor none;
    bool is_tensor = frag_cudnn_is(tensor, FRAG_CUDNN_TENSOR);
    if (!is_tensor)
        tensor = &none;
    if (data_type != NULL)
        *data_type = tensor->data_type;
    if (count != NULL)
        *count = tensor->dimension_count;
    for (int i = 0; i < wanted; i++) {
        bool is_set = i < tensor->dimension_count;
        if (dimensions != NULL)
            dimensions[i] = is_set ? tensor->dimensions[i] : 0;
        if (strides != NULL)
            strides[i] = is_set ? tensor->strides[i] : 0;
    }
    return is_tensor && wanted >= 0 ? FRAG_CUDNN_SUCCESS : FRAG_CUDNN_BAD_PARAM;
}

FRAG_CUDNN_CALL(int, cudnnCreateTensorDescriptor, (frag_cudnn_tensor * *tensor))
{
    return frag_cudnn_make((void **)tensor, FRAG_CUDNN_TENSOR, sizeof **tensor);
}

FRAG_CUDNN_CALL(int, cudnnDestroyTensorDescriptor, (frag_cudnn_tensor * tensor))
{
    return frag_cudnn_end(tensor, FRAG_CUDNN_TENSOR);
}

FRAG_CUDNN_CALL(int, cudnnSetTensorNdDescriptor,
                (frag_cudnn_tensor * tensor, int data_type, int count, const int *dimensions,
                 const int *strides))
{
    if (!frag_cudnn_is(tensor, FRAG_CUDNN_TENSOR) || strides == NULL ||
        !frag_cudnn_tensor_set(tensor, data_type, count, dimensions, strides))
        return FRAG_CUDNN_BAD_PARAM;
    return FRAG_CUDNN_SUCCESS;
}

FRAG_CUDNN_CALL(int, cudnnSetTensorNdDescriptorEx,
                (frag_cudnn_tensor * tensor, int format, int data_type, int count,
                 const int *dimensions))
{
    if (!frag_cudnn_is(tensor, FRAG_CUDNN_TENSOR))
        return FRAG_CUDNN_BAD_PARAM;
    tensor->format = format;
    return frag_cudnn_tensor_set(tensor, data_type, count, dimensions, NULL) ? FRAG_CUDNN_SUCCESS
                                                                             : FRAG_CUDNN_BAD_PARAM;
}

FRAG_CUDNN_CALL(int, cudnnSetTensor4dDescriptor,
                (frag_cudnn_tensor * tensor, int format, int data_type, int n, int c, int h, int w))
{
    return cudnnSetTensorNdDescriptorEx(tensor, format, data_type, 4, (int[]){n, c, h, w});
}

FRAG_CUDNN_CALL(int, cudnnSetTensor4dDescriptorEx,
                (frag_cudnn_tensor * tensor, int data_type, int n, int c, int h, int w,
                 int n_stride, int c_stride, int h_stride, int w_stride))
{
    return cudnnSetTensorNdDescriptor(tensor, data_type, 4, (int[]){n, c, h, w},
                                      (int[]){n_stride, c_stride, h_stride, w_stride});
}

FRAG_CUDNN_CALL(int, cudnnGetTensorNdDescriptor,
                (const frag_cudnn_tensor *tensor, int wanted, int *data_type, int *count,
                 int *dimensions, int *strides))
{
    return get_tensor(tensor, wanted, data_type, count, dimensions, strides);
}

FRAG_CUDNN_CALL(int, cudnnGetTensor4dDescriptor,
                (const frag_cudnn_tensor *tensor, int *data_type, int *n, int *c, int *h, int *w,
                 int *n_stride, int *c_stride, int *h_stride, int *w_stride))
{
    int dimensions[4], strides[4], count = 0;
    int *const outputs[4] = {n, c, h, w};
    int *const stride_outputs[4] = {n_stride, c_stride, h_stride, w_stride};
    int status = get_tensor(tensor, 4, data_type, &count, dimensions, strides);
    for (int i = 0; i < 4; i++) {
        if (outputs[i] != NULL)
            *outputs[i] = dimensions[i];
        if (stride_outputs[i] != NULL)
            *stride_outputs[i] = strides[i];
    }
    return status;
}

FRAG_CUDNN_CALL(int, cudnnGetTensorSizeInBytes, (const frag_cudnn_tensor *tensor, size_t *bytes))
{
    if (bytes == NULL)
        return FRAG_CUDNN_NULL_POINTER;
    *bytes = 0;
    if (!frag_cudnn_is(tensor, FRAG_CUDNN_TENSOR))
        return FRAG_CUDNN_BAD_PARAM;
    *bytes = frag_cudnn_tensor_bytes(tensor);
    return FRAG_CUDNN_SUCCESS;
}

FRAG_CUDNN_CALL(int, cudnnCreateFilterDescriptor, (frag_cudnn_tensor * *filter))
{
    return frag_cudnn_make((void **)filter, FRAG_CUDNN_TENSOR, sizeof **filter);
}

FRAG_CUDNN_CALL(int, cudnnDestroyFilterDescriptor, (frag_cudnn_tensor * filter))
{
    return frag_cudnn_end(filter, FRAG_CUDNN_TENSOR);
}

FRAG_CUDNN_CALL(int, cudnnSetFilterNdDescriptor,
                (frag_cudnn_tensor * filter, int data_type, int format, int count,
                 const int *dimensions))
{
    if (!frag_cudnn_is(filter, FRAG_CUDNN_TENSOR))
        return FRAG_CUDNN_BAD_PARAM;
    filter->format = format;
    return frag_cudnn_tensor_set(filter, data_type, count, dimensions, NULL) ? FRAG_CUDNN_SUCCESS
                                                                             : FRAG_CUDNN_BAD_PARAM;
}

FRAG_CUDNN_CALL(int, cudnnSetFilter4dDescriptor,
                (frag_cudnn_tensor * filter, int data_type, int format, int k, int c, int h, int w))
{
    return cudnnSetFilterNdDescriptor(filter, data_type, format, 4, (int[]){k, c, h, w});
}

FRAG_CUDNN_CALL(int, cudnnGetFilterNdDescriptor,
                (const frag_cudnn_tensor *filter, int wanted, int *data_type, int *format,
                 int *count, int *dimensions))
{
    int status = get_tensor(filter, wanted, data_type, count, dimensions, NULL);
    if (format != NULL)
        *format = status == FRAG_CUDNN_SUCCESS ? filter->format : 0;
    return status;
}

FRAG_CUDNN_CALL(int, cudnnGetFilterSizeInBytes, (const frag_cudnn_tensor *filter, size_t *bytes))
{
    return cudnnGetTensorSizeInBytes(filter, bytes);
}
