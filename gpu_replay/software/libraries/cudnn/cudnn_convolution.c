/* Convolutions of the legacy interface: descriptors, dimensions, algorithms, sizes. */
#include "gpu_replay/software/libraries/cudnn/cudnn_types.h"

#include <stdio.h>
#include <string.h>

/* As NVIDIA's headers lay out cudnnConvolutionFwdAlgoPerf_t and its two kin. */
typedef struct frag_cudnn_performance {
    int algorithm;
    int status;
    float milliseconds;
    size_t memory_bytes;
    int determinism;
    int math_type;
    int reserved[3];
} frag_cudnn_performance;

/* Implicit matrix product with an index, or its kin: in all three lists. */
#define ALGORITHM 1
#define ALGORITHM_COUNT 8

FRAG_CUDNN_CALL(int, cudnnCreateConvolutionDescriptor, (frag_cudnn_convolution * *convolution))
{
    int status =
        frag_cudnn_make((void **)convolution, FRAG_CUDNN_CONVOLUTION, sizeof **convolution);
    if (status == FRAG_CUDNN_SUCCESS)
        (*convolution)->group_count = 1;
    return status;
}

FRAG_CUDNN_CALL(int, cudnnDestroyConvolutionDescriptor, (frag_cudnn_convolution * convolution))
{
    return frag_cudnn_end(convolution, FRAG_CUDNN_CONVOLUTION);
}

FRAG_CUDNN_CALL(int, cudnnSetConvolutionNdDescriptor,
                (frag_cudnn_convolution * convolution, int count, const int *pads,
                 const int *strides, const int *dilations, int mode, int compute_type))
{
    if (!frag_cudnn_is(convolution, FRAG_CUDNN_CONVOLUTION) || pads == NULL || strides == NULL ||
        dilations == NULL || count < 1 || count > FRAG_CUDNN_DIMENSIONS_MAX - 2)
        return FRAG_CUDNN_BAD_PARAM;
    for (int i = 0; i < count; i++)
        if (pads[i] < 0 || strides[i] < 1 || dilations[i] < 1)
            return FRAG_CUDNN_BAD_PARAM;
    convolution->spatial_count = count;
    memcpy(convolution->pads, pads, (size_t)count * sizeof *pads);
    memcpy(convolution->strides, strides, (size_t)count * sizeof *strides);
    memcpy(convolution->dilations, dilations, (size_t)count * sizeof *dilations);
    convolution->mode = mode;
    convolution->compute_type = compute_type;
    return FRAG_CUDNN_SUCCESS;
}

FRAG_CUDNN_CALL(int, cudnnSetConvolution2dDescriptor,
                (frag_cudnn_convolution * convolution, int pad_h, int pad_w, int stride_h,
                 int stride_w, int dilation_h, int dilation_w, int mode, int compute_type))
{
    return cudnnSetConvolutionNdDescriptor(convolution, 2, (int[]){pad_h, pad_w},
                                           (int[]){stride_h, stride_w},
                                           (int[]){dilation_h, dilation_w}, mode, compute_type);
}

FRAG_CUDNN_CALL(int, cudnnGetConvolutionNdDescriptor,
                (const frag_cudnn_convolution *convolution, int wanted, int *count, int *pads,
                 int *strides, int *dilations, int *mode, int *compute_type))
{
    static const frag_cudnn_convolution none;
    bool is_convolution = frag_cudnn_is(convolution, FRAG_CUDNN_CONVOLUTION);
    if (wanted < 0 || wanted > FRAG_CUDNN_DIMENSIONS_MAX)
        return FRAG_CUDNN_BAD_PARAM;
    if (!is_convolution)
        convolution = &none;
    if (count != NULL)
        *count = convolution->spatial_count;
    size_t bytes = (size_t)wanted * sizeof *pads;
    if (pads != NULL)
        memcpy(pads, convolution->pads, bytes);
    if (strides != NULL)
        memcpy(strides, convolution->strides, bytes);
    if (dilations != NULL)
        memcpy(dilations, convolution->dilations, bytes);
    if (mode != NULL)
        *mode = convolution->mode;
    if (compute_type != NULL)
        *compute_type = convolution->compute_type;
    return is_convolution ? FRAG_CUDNN_SUCCESS : FRAG_CUDNN_BAD_PARAM;
}

/* One property of the descriptor: its setter and its getter. */
#define PROPERTY(setter, getter, member)                                                           \
    FRAG_CUDNN_CALL(int, setter, (frag_cudnn_convolution * convolution, int value))                \
    {                                                                                              \
        if (!frag_cudnn_is(convolution, FRAG_CUDNN_CONVOLUTION))                                   \
            return FRAG_CUDNN_BAD_PARAM;                                                           \
        convolution->member = value;                                                               \
        return FRAG_CUDNN_SUCCESS;                                                                 \
    }                                                                                              \
    FRAG_CUDNN_CALL(int, getter, (const frag_cudnn_convolution *convolution, int *value))          \
    {                                                                                              \
        bool is_convolution = frag_cudnn_is(convolution, FRAG_CUDNN_CONVOLUTION);                  \
        if (value == NULL)                                                                         \
            return FRAG_CUDNN_NULL_POINTER;                                                        \
        *value = is_convolution ? convolution->member : 0;                                         \
        return is_convolution ? FRAG_CUDNN_SUCCESS : FRAG_CUDNN_BAD_PARAM;                         \
    }
PROPERTY(cudnnSetConvolutionGroupCount, cudnnGetConvolutionGroupCount, group_count)
PROPERTY(cudnnSetConvolutionMathType, cudnnGetConvolutionMathType, math_type)
PROPERTY(cudnnSetConvolutionReorderType, cudnnGetConvolutionReorderType, reorder_type)

FRAG_CUDNN_CALL(int, cudnnGetConvolutionNdForwardOutputDim,
                (const frag_cudnn_convolution *convolution, const frag_cudnn_tensor *input,
                 const frag_cudnn_tensor *filter, int count, int *dimensions))
{
    if (dimensions == NULL || count < 1)
        return FRAG_CUDNN_BAD_PARAM;
    memset(dimensions, 0, (size_t)count * sizeof *dimensions);
    if (!frag_cudnn_is(convolution, FRAG_CUDNN_CONVOLUTION) ||
        !frag_cudnn_is(input, FRAG_CUDNN_TENSOR) || !frag_cudnn_is(filter, FRAG_CUDNN_TENSOR) ||
        count != input->dimension_count || count != filter->dimension_count ||
        count != convolution->spatial_count + 2)
        return FRAG_CUDNN_BAD_PARAM;
    dimensions[0] = input->dimensions[0];
    dimensions[1] = filter->dimensions[0];
    for (int i = 0; i + 2 < count; i++) {
        int extent = (filter->dimensions[i + 2] - 1) * convolution->dilations[i] + 1;
        int room = input->dimensions[i + 2] + 2 * convolution->pads[i] - extent;
        dimensions[i + 2] = room < 0 ? 0 : room / convolution->strides[i] + 1;
    }
    return FRAG_CUDNN_SUCCESS;
}

FRAG_CUDNN_CALL(int, cudnnGetConvolution2dForwardOutputDim,
                (const frag_cudnn_convolution *convolution, const frag_cudnn_tensor *input,
                 const frag_cudnn_tensor *filter, int *n, int *c, int *h, int *w))
{
    int dimensions[4] = {0};
    int status = cudnnGetConvolutionNdForwardOutputDim(convolution, input, filter, 4, dimensions);
    if (n == NULL || c == NULL || h == NULL || w == NULL)
        return FRAG_CUDNN_NULL_POINTER;
    *n = dimensions[0], *c = dimensions[1], *h = dimensions[2], *w = dimensions[3];
    return status;
}

static uint64_t pixels(const frag_cudnn_tensor *tensor)
{
    uint64_t product = 1;
    for (int i = 2; i < tensor->dimension_count; i++)
        product *= (uint64_t)tensor->dimensions[i];
    return product;
}

static bool is_winograd_shape(const frag_cudnn_convolution *convolution,
                              const frag_cudnn_tensor *filter)
{
    bool is = convolution->spatial_count == 2 && convolution->group_count == 1 &&
              filter->dimension_count == 4;
    for (int i = 0; i < 2 && is; i++)
        is = filter->dimensions[i + 2] == 3 && convolution->strides[i] == 1 &&
             convolution->dilations[i] == 1;
    return is;
}

/* PyTorch forbids 32-bit numbers to be rounded by the math type FMA; without one, they are not. */
static bool may_use_tensor_cores(const frag_cudnn_convolution *convolution, int data_type)
{
    return convolution->math_type != FRAG_CUDNN_FMA_MATH &&
           (data_type != FRAG_CUDNN_DOUBLE && data_type != FRAG_CUDNN_FLOAT
                ? convolution->math_type != FRAG_CUDNN_DEFAULT_MATH
                : true);
}

/* The three tensors and the pass give a problem; false: something is missing or does not fit. */
static bool make_problem(frag_convolution_pass pass, const frag_cudnn_tensor *input,
                         const frag_cudnn_tensor *filter, const frag_cudnn_tensor *output,
                         const frag_cudnn_convolution *convolution, frag_convolution *problem)
{
    if (!frag_cudnn_is(input, FRAG_CUDNN_TENSOR) || !frag_cudnn_is(filter, FRAG_CUDNN_TENSOR) ||
        !frag_cudnn_is(output, FRAG_CUDNN_TENSOR) ||
        !frag_cudnn_is(convolution, FRAG_CUDNN_CONVOLUTION) || input->dimension_count < 3 ||
        filter->dimension_count != input->dimension_count ||
        output->dimension_count != input->dimension_count || convolution->group_count < 1)
        return false;
    *problem = (frag_convolution){
        .pass = pass,
        .element_bytes = frag_cudnn_element_bytes(input->data_type),
        .is_channels_last =
            frag_cudnn_tensor_is_channels_last(input) || frag_cudnn_tensor_is_channels_last(output),
        .may_use_tensor_cores = may_use_tensor_cores(convolution, input->data_type),
        .batch_count = (uint64_t)input->dimensions[0],
        .group_count = (uint64_t)convolution->group_count,
        .input_channels = (uint64_t)input->dimensions[1],
        .output_channels = (uint64_t)output->dimensions[1],
        .input_pixels = pixels(input),
        .output_pixels = pixels(output),
        .filter_pixels = pixels(filter),
        .is_winograd_shape = is_winograd_shape(convolution, filter),
    };
    return true;
}

static int give_size(const char *function, const frag_convolution *problem, size_t *bytes)
{
    char what[64];
    snprintf(what, sizeof what, "workspace of a convolution, %s",
             frag_cudnn_pass_name(problem->pass));
    *bytes = frag_cudnn_choose(function, what, frag_cudnn_convolution_range(problem));
    return FRAG_CUDNN_SUCCESS;
}

static int give_algorithm(const char *function, bool is_made, const frag_convolution *problem,
                          const frag_cudnn_convolution *convolution, int wanted, int *found,
                          frag_cudnn_performance *results)
{
    if (found != NULL)
        *found = 0;
    if (found == NULL || results == NULL || wanted < 1)
        return FRAG_CUDNN_BAD_PARAM;
    memset(results, 0, (size_t)wanted * sizeof *results);
    if (!is_made)
        return FRAG_CUDNN_BAD_PARAM;
    size_t bytes = 0;
    give_size(function, problem, &bytes);
    results[0] = (frag_cudnn_performance){
        .algorithm = ALGORITHM,
        .milliseconds = 1.0f,
        .memory_bytes = bytes,
        .determinism = 1,
        .math_type = convolution->math_type,
    };
    *found = 1;
    return FRAG_CUDNN_SUCCESS;
}

/* The functions about one pass: the tensors' order in the real interface differs by pass. */
#define PASS(pass, size, algorithm, find, most, parameters, input, filter, output)                 \
    FRAG_CUDNN_CALL(int, size, (frag_cudnn_handle * handle, parameters, int algo, size_t *bytes))  \
    {                                                                                              \
        frag_convolution problem;                                                                  \
        (void)handle, (void)algo;                                                                  \
        if (bytes == NULL)                                                                         \
            return FRAG_CUDNN_NULL_POINTER;                                                        \
        *bytes = 0;                                                                                \
        if (!make_problem(pass, input, filter, output, convolution, &problem))                     \
            return FRAG_CUDNN_BAD_PARAM;                                                           \
        return give_size(#size, &problem, bytes);                                                  \
    }                                                                                              \
    FRAG_CUDNN_CALL(int, algorithm,                                                                \
                    (frag_cudnn_handle * handle, parameters, int wanted, int *found,               \
                     frag_cudnn_performance *results))                                             \
    {                                                                                              \
        frag_convolution problem;                                                                  \
        (void)handle;                                                                              \
        bool is_made = make_problem(pass, input, filter, output, convolution, &problem);           \
        return give_algorithm(#algorithm, is_made, &problem, convolution, wanted, found, results); \
    }                                                                                              \
    FRAG_CUDNN_CALL(int, find,                                                                     \
                    (frag_cudnn_handle * handle, parameters, int wanted, int *found,               \
                     frag_cudnn_performance *results))                                             \
    {                                                                                              \
        return algorithm(handle, a, b, convolution, c, wanted, found, results);                    \
    }                                                                                              \
    FRAG_CUDNN_CALL(int, most, (frag_cudnn_handle * handle, int *count))                           \
    {                                                                                              \
        (void)handle;                                                                              \
        if (count == NULL)                                                                         \
            return FRAG_CUDNN_NULL_POINTER;                                                        \
        *count = ALGORITHM_COUNT;                                                                  \
        return FRAG_CUDNN_SUCCESS;                                                                 \
    }
#define TENSORS                                                                                    \
    const frag_cudnn_tensor *a, const frag_cudnn_tensor *b,                                        \
        const frag_cudnn_convolution *convolution, const frag_cudnn_tensor *c
PASS(FRAG_CONVOLUTION_FORWARD, cudnnGetConvolutionForwardWorkspaceSize,
     cudnnGetConvolutionForwardAlgorithm_v7, cudnnFindConvolutionForwardAlgorithm,
     cudnnGetConvolutionForwardAlgorithmMaxCount, TENSORS, a, b, c)
PASS(FRAG_CONVOLUTION_BACKWARD_DATA, cudnnGetConvolutionBackwardDataWorkspaceSize,
     cudnnGetConvolutionBackwardDataAlgorithm_v7, cudnnFindConvolutionBackwardDataAlgorithm,
     cudnnGetConvolutionBackwardDataAlgorithmMaxCount, TENSORS, c, a, b)
PASS(FRAG_CONVOLUTION_BACKWARD_FILTER, cudnnGetConvolutionBackwardFilterWorkspaceSize,
     cudnnGetConvolutionBackwardFilterAlgorithm_v7, cudnnFindConvolutionBackwardFilterAlgorithm,
     cudnnGetConvolutionBackwardFilterAlgorithmMaxCount, TENSORS, a, c, b)

/* The same with the data, and a workspace that the algorithms tried must do with. */
#define FIND_EX(name, algorithm)                                                                   \
    FRAG_CUDNN_CALL(int, name,                                                                     \
                    (frag_cudnn_handle * handle, const frag_cudnn_tensor *a, const void *a_data,   \
                     const frag_cudnn_tensor *b, const void *b_data,                               \
                     const frag_cudnn_convolution *convolution, const frag_cudnn_tensor *c,        \
                     void *c_data, int wanted, int *found, frag_cudnn_performance *results,        \
                     void *workspace, size_t workspace_bytes))                                     \
    {                                                                                              \
        (void)a_data, (void)b_data, (void)c_data, (void)workspace;                                 \
        int status = algorithm(handle, a, b, convolution, c, wanted, found, results);              \
        if (status == FRAG_CUDNN_SUCCESS && results[0].memory_bytes > workspace_bytes)             \
            results[0].memory_bytes = workspace_bytes;                                             \
        return status;                                                                             \
    }
FIND_EX(cudnnFindConvolutionForwardAlgorithmEx, cudnnGetConvolutionForwardAlgorithm_v7)
FIND_EX(cudnnFindConvolutionBackwardDataAlgorithmEx, cudnnGetConvolutionBackwardDataAlgorithm_v7)
FIND_EX(cudnnFindConvolutionBackwardFilterAlgorithmEx,
        cudnnGetConvolutionBackwardFilterAlgorithm_v7)
