/* The other layers of the legacy interface: activation, pooling, dropout, BatchNorm, CTC, spatial
 * transformers. What computes is in the table: results stay on the device, nothing is written. */
#include "gpu_replay/software/libraries/cudnn/cudnn_types.h"

#include <string.h>

#include "gpu_replay/software/software_cuda.h"

typedef struct frag_cudnn_activation {
    frag_cudnn_kind kind;
    int mode, nan;
    double coefficient, swish_beta;
} frag_cudnn_activation;

typedef struct frag_cudnn_pooling {
    frag_cudnn_kind kind;
    int mode, nan, count;
    int windows[FRAG_CUDNN_DIMENSIONS_MAX];
    int pads[FRAG_CUDNN_DIMENSIONS_MAX];
    int strides[FRAG_CUDNN_DIMENSIONS_MAX];
} frag_cudnn_pooling;

typedef struct frag_cudnn_dropout {
    frag_cudnn_kind kind;
    float probability;
    void *states;
    unsigned long long seed;
} frag_cudnn_dropout;

typedef struct frag_cudnn_ctc {
    frag_cudnn_kind kind;
    int compute_type, normalization, gradient_mode, max_label_length;
} frag_cudnn_ctc;

typedef struct frag_cudnn_transformer {
    frag_cudnn_kind kind;
    int sampler, data_type, count;
    int dimensions[FRAG_CUDNN_DIMENSIONS_MAX];
} frag_cudnn_transformer;

#define MAKE_AND_FREE(create, destroy, type, kind)                                                 \
    FRAG_CUDNN_CALL(int, create, (type * *descriptor))                                             \
    {                                                                                              \
        return frag_cudnn_make((void **)descriptor, kind, sizeof **descriptor);                    \
    }                                                                                              \
    FRAG_CUDNN_CALL(int, destroy, (type * descriptor))                                             \
    {                                                                                              \
        return frag_cudnn_end(descriptor, kind);                                                   \
    }
MAKE_AND_FREE(cudnnCreateActivationDescriptor, cudnnDestroyActivationDescriptor,
              frag_cudnn_activation, FRAG_CUDNN_ACTIVATION)
MAKE_AND_FREE(cudnnCreatePoolingDescriptor, cudnnDestroyPoolingDescriptor, frag_cudnn_pooling,
              FRAG_CUDNN_POOLING)
MAKE_AND_FREE(cudnnCreateDropoutDescriptor, cudnnDestroyDropoutDescriptor, frag_cudnn_dropout,
              FRAG_CUDNN_DROPOUT)
MAKE_AND_FREE(cudnnCreateCTCLossDescriptor, cudnnDestroyCTCLossDescriptor, frag_cudnn_ctc,
              FRAG_CUDNN_CTC)
MAKE_AND_FREE(cudnnCreateSpatialTransformerDescriptor, cudnnDestroySpatialTransformerDescriptor,
              frag_cudnn_transformer, FRAG_CUDNN_TRANSFORMER)

FRAG_CUDNN_CALL(int, cudnnSetActivationDescriptor,
                (frag_cudnn_activation * activation, int mode, int nan, double coefficient))
{
    if (!frag_cudnn_is(activation, FRAG_CUDNN_ACTIVATION))
        return FRAG_CUDNN_BAD_PARAM;
    activation->mode = mode;
    activation->nan = nan;
    activation->coefficient = coefficient;
    return FRAG_CUDNN_SUCCESS;
}

FRAG_CUDNN_CALL(int, cudnnGetActivationDescriptor,
                (const frag_cudnn_activation *activation, int *mode, int *nan, double *coefficient))
{
    static const frag_cudnn_activation none;
    bool is_activation = frag_cudnn_is(activation, FRAG_CUDNN_ACTIVATION);
    if (!is_activation)
        activation = &none;
    if (mode == NULL || nan == NULL || coefficient == NULL)
        return FRAG_CUDNN_NULL_POINTER;
    *mode = activation->mode;
    *nan = activation->nan;
    *coefficient = activation->coefficient;
    return is_activation ? FRAG_CUDNN_SUCCESS : FRAG_CUDNN_BAD_PARAM;
}

/* ---- pooling */

FRAG_CUDNN_CALL(int, cudnnSetPoolingNdDescriptor,
                (frag_cudnn_pooling * pooling, int mode, int nan, int count, const int *windows,
                 const int *pads, const int *strides))
{
    if (!frag_cudnn_is(pooling, FRAG_CUDNN_POOLING) || windows == NULL || pads == NULL ||
        strides == NULL || count < 1 || count > FRAG_CUDNN_DIMENSIONS_MAX - 2)
        return FRAG_CUDNN_BAD_PARAM;
    for (int i = 0; i < count; i++)
        if (windows[i] < 1 || pads[i] < 0 || strides[i] < 1)
            return FRAG_CUDNN_BAD_PARAM;
    size_t bytes = (size_t)count * sizeof *windows;
    *pooling =
        (frag_cudnn_pooling){.kind = FRAG_CUDNN_POOLING, .mode = mode, .nan = nan, .count = count};
    memcpy(pooling->windows, windows, bytes);
    memcpy(pooling->pads, pads, bytes);
    memcpy(pooling->strides, strides, bytes);
    return FRAG_CUDNN_SUCCESS;
}

FRAG_CUDNN_CALL(int, cudnnSetPooling2dDescriptor,
                (frag_cudnn_pooling * pooling, int mode, int nan, int window_h, int window_w,
                 int pad_h, int pad_w, int stride_h, int stride_w))
{
    return cudnnSetPoolingNdDescriptor(pooling, mode, nan, 2, (int[]){window_h, window_w},
                                       (int[]){pad_h, pad_w}, (int[]){stride_h, stride_w});
}

FRAG_CUDNN_CALL(int, cudnnGetPoolingNdDescriptor,
                (const frag_cudnn_pooling *pooling, int wanted, int *mode, int *nan, int *count,
                 int *windows, int *pads, int *strides))
{
    static const frag_cudnn_pooling none;
    bool is_pooling = frag_cudnn_is(pooling, FRAG_CUDNN_POOLING);
    if (!is_pooling)
        pooling = &none;
    if (wanted < 0 || wanted > FRAG_CUDNN_DIMENSIONS_MAX || mode == NULL || nan == NULL ||
        count == NULL || windows == NULL || pads == NULL || strides == NULL)
        return FRAG_CUDNN_BAD_PARAM;
    size_t bytes = (size_t)wanted * sizeof *windows;
    *mode = pooling->mode;
    *nan = pooling->nan;
    *count = pooling->count;
    memcpy(windows, pooling->windows, bytes);
    memcpy(pads, pooling->pads, bytes);
    memcpy(strides, pooling->strides, bytes);
    return is_pooling ? FRAG_CUDNN_SUCCESS : FRAG_CUDNN_BAD_PARAM;
}

FRAG_CUDNN_CALL(int, cudnnGetPoolingNdForwardOutputDim,
                (const frag_cudnn_pooling *pooling, const frag_cudnn_tensor *input, int count,
                 int *dimensions))
{
    if (dimensions == NULL || count < 1)
        return FRAG_CUDNN_BAD_PARAM;
    memset(dimensions, 0, (size_t)count * sizeof *dimensions);
    if (!frag_cudnn_is(pooling, FRAG_CUDNN_POOLING) || !frag_cudnn_is(input, FRAG_CUDNN_TENSOR) ||
        count != input->dimension_count || count != pooling->count + 2)
        return FRAG_CUDNN_BAD_PARAM;
    dimensions[0] = input->dimensions[0];
    dimensions[1] = input->dimensions[1];
    for (int i = 0; i + 2 < count; i++) {
        int room = input->dimensions[i + 2] + 2 * pooling->pads[i] - pooling->windows[i];
        dimensions[i + 2] = room < 0 ? 0 : room / pooling->strides[i] + 1;
    }
    return FRAG_CUDNN_SUCCESS;
}

FRAG_CUDNN_CALL(int, cudnnGetPooling2dForwardOutputDim,
                (const frag_cudnn_pooling *pooling, const frag_cudnn_tensor *input, int *n, int *c,
                 int *h, int *w))
{
    int dimensions[4] = {0};
    if (n == NULL || c == NULL || h == NULL || w == NULL)
        return FRAG_CUDNN_NULL_POINTER;
    int status = cudnnGetPoolingNdForwardOutputDim(pooling, input, 4, dimensions);
    *n = dimensions[0], *c = dimensions[1], *h = dimensions[2], *w = dimensions[3];
    return status;
}

/* ---- dropout */

/* A generator of random numbers for each thread that the card holds; one of cuRAND's default kind
 * has 48 bytes, the smallest that could do has 16. Not measured. */
FRAG_CUDNN_CALL(int, cudnnDropoutGetStatesSize, (frag_cudnn_handle * handle, size_t *bytes))
{
    (void)handle;
    if (bytes == NULL)
        return FRAG_CUDNN_NULL_POINTER;
    const frag_software_card *card = frag_cudnn_card();
    uint64_t threads = card != NULL
                           ? (uint64_t)card->multiprocessor_count * card->threads_per_multiprocessor
                           : 108 * 2048;
    *bytes = frag_cudnn_choose("cudnnDropoutGetStatesSize", "states of dropout",
                               (frag_cudnn_range){16 * threads, 48 * threads});
    return FRAG_CUDNN_SUCCESS;
}

FRAG_CUDNN_CALL(int, cudnnDropoutGetReserveSpaceSize,
                (const frag_cudnn_tensor *input, size_t *bytes))
{
    if (bytes == NULL)
        return FRAG_CUDNN_NULL_POINTER;
    *bytes = 0;
    if (!frag_cudnn_is(input, FRAG_CUDNN_TENSOR))
        return FRAG_CUDNN_BAD_PARAM;
    *bytes = (frag_cudnn_tensor_elements(input) + 7) / 8;
    return FRAG_CUDNN_SUCCESS;
}

FRAG_CUDNN_CALL(int, cudnnSetDropoutDescriptor,
                (frag_cudnn_dropout * dropout, frag_cudnn_handle *handle, float probability,
                 void *states, size_t bytes, unsigned long long seed))
{
    (void)handle, (void)bytes;
    if (!frag_cudnn_is(dropout, FRAG_CUDNN_DROPOUT))
        return FRAG_CUDNN_BAD_PARAM;
    *dropout = (frag_cudnn_dropout){FRAG_CUDNN_DROPOUT, probability, states, seed};
    return FRAG_CUDNN_SUCCESS;
}

FRAG_CUDNN_CALL(int, cudnnRestoreDropoutDescriptor,
                (frag_cudnn_dropout * dropout, frag_cudnn_handle *handle, float probability,
                 void *states, size_t bytes, unsigned long long seed))
{
    return cudnnSetDropoutDescriptor(dropout, handle, probability, states, bytes, seed);
}

FRAG_CUDNN_CALL(int, cudnnGetDropoutDescriptor,
                (const frag_cudnn_dropout *dropout, frag_cudnn_handle *handle, float *probability,
                 void **states, unsigned long long *seed))
{
    (void)handle;
    static const frag_cudnn_dropout none;
    bool is_dropout = frag_cudnn_is(dropout, FRAG_CUDNN_DROPOUT);
    if (!is_dropout)
        dropout = &none;
    if (probability == NULL || states == NULL || seed == NULL)
        return FRAG_CUDNN_NULL_POINTER;
    *probability = dropout->probability;
    *states = dropout->states;
    *seed = dropout->seed;
    return is_dropout ? FRAG_CUDNN_SUCCESS : FRAG_CUDNN_BAD_PARAM;
}

/* ---- BatchNorm */

/* In NCHW there is none (measured, see sim/device/convolution_workspace.c). In NHWC the sums of
 * each multiprocessor are added up at the end: two 32-bit numbers a channel. Not measured. */
static int give_batch_norm_workspace(const char *function, const frag_cudnn_tensor *input,
                                     size_t *bytes)
{
    if (bytes == NULL)
        return FRAG_CUDNN_NULL_POINTER;
    *bytes = 0;
    if (!frag_cudnn_is(input, FRAG_CUDNN_TENSOR))
        return FRAG_CUDNN_BAD_PARAM;
    if (!frag_cudnn_tensor_is_channels_last(input))
        return FRAG_CUDNN_SUCCESS;
    uint64_t sums = 8 * (uint64_t)input->dimensions[1] * frag_cudnn_multiprocessor_count();
    *bytes = frag_cudnn_choose(function, "workspace of BatchNorm, channels last",
                               (frag_cudnn_range){0, sums});
    return FRAG_CUDNN_SUCCESS;
}

FRAG_CUDNN_CALL(int, cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize,
                (frag_cudnn_handle * handle, int mode, int operations,
                 const frag_cudnn_tensor *input, const frag_cudnn_tensor *addend,
                 const frag_cudnn_tensor *output, const frag_cudnn_tensor *scale,
                 const frag_cudnn_activation *activation, size_t *bytes))
{
    (void)handle, (void)mode, (void)operations, (void)addend, (void)output, (void)scale;
    (void)activation;
    return give_batch_norm_workspace("cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize",
                                     input, bytes);
}

FRAG_CUDNN_CALL(int, cudnnGetBatchNormalizationBackwardExWorkspaceSize,
                (frag_cudnn_handle * handle, int mode, int operations,
                 const frag_cudnn_tensor *input, const frag_cudnn_tensor *output,
                 const frag_cudnn_tensor *output_gradient, const frag_cudnn_tensor *addend_gradient,
                 const frag_cudnn_tensor *input_gradient, const frag_cudnn_tensor *scale,
                 const frag_cudnn_activation *activation, size_t *bytes))
{
    (void)handle, (void)mode, (void)operations, (void)output, (void)output_gradient;
    (void)addend_gradient, (void)input_gradient, (void)scale, (void)activation;
    return give_batch_norm_workspace("cudnnGetBatchNormalizationBackwardExWorkspaceSize", input,
                                     bytes);
}

/* BatchNorm alone keeps nothing (measured in NCHW); with an activation, a bit for each element. */
FRAG_CUDNN_CALL(int, cudnnGetBatchNormalizationTrainingExReserveSpaceSize,
                (frag_cudnn_handle * handle, int mode, int operations,
                 const frag_cudnn_activation *activation, const frag_cudnn_tensor *input,
                 size_t *bytes))
{
    (void)handle, (void)mode, (void)activation;
    if (bytes == NULL)
        return FRAG_CUDNN_NULL_POINTER;
    *bytes = 0;
    if (!frag_cudnn_is(input, FRAG_CUDNN_TENSOR))
        return FRAG_CUDNN_BAD_PARAM;
    *bytes = operations == 0 ? 0 : (frag_cudnn_tensor_elements(input) + 7) / 8;
    return FRAG_CUDNN_SUCCESS;
}

FRAG_CUDNN_CALL(int, cudnnDeriveBNTensorDescriptor,
                (frag_cudnn_tensor * derived, const frag_cudnn_tensor *input, int mode))
{
    if (!frag_cudnn_is(derived, FRAG_CUDNN_TENSOR) || !frag_cudnn_is(input, FRAG_CUDNN_TENSOR) ||
        input->dimension_count < 2)
        return FRAG_CUDNN_BAD_PARAM;
    int dimensions[FRAG_CUDNN_DIMENSIONS_MAX];
    for (int i = 0; i < input->dimension_count; i++)
        dimensions[i] = i == 1 || (i > 1 && mode == 0) ? input->dimensions[i] : 1;
    int data_type = input->data_type == FRAG_CUDNN_HALF || input->data_type == FRAG_CUDNN_BFLOAT16
                        ? FRAG_CUDNN_FLOAT
                        : input->data_type;
    *derived = (frag_cudnn_tensor){.kind = FRAG_CUDNN_TENSOR};
    frag_cudnn_tensor_set(derived, data_type, input->dimension_count, dimensions, NULL);
    return FRAG_CUDNN_SUCCESS;
}

/* ---- connectionist temporal classification */

FRAG_CUDNN_CALL(int, cudnnSetCTCLossDescriptor_v9,
                (frag_cudnn_ctc * ctc, int compute_type, int normalization, int gradient_mode,
                 int max_label_length))
{
    if (!frag_cudnn_is(ctc, FRAG_CUDNN_CTC))
        return FRAG_CUDNN_BAD_PARAM;
    *ctc = (frag_cudnn_ctc){FRAG_CUDNN_CTC, compute_type, normalization, gradient_mode,
                            max_label_length};
    return FRAG_CUDNN_SUCCESS;
}

FRAG_CUDNN_CALL(int, cudnnSetCTCLossDescriptor_v8,
                (frag_cudnn_ctc * ctc, int compute_type, int normalization, int gradient_mode,
                 int max_label_length))
{
    return cudnnSetCTCLossDescriptor_v9(ctc, compute_type, normalization, gradient_mode,
                                        max_label_length);
}

FRAG_CUDNN_CALL(int, cudnnSetCTCLossDescriptorEx,
                (frag_cudnn_ctc * ctc, int compute_type, int normalization, int gradient_mode))
{
    return cudnnSetCTCLossDescriptor_v9(ctc, compute_type, normalization, gradient_mode, 0);
}

FRAG_CUDNN_CALL(int, cudnnSetCTCLossDescriptor, (frag_cudnn_ctc * ctc, int compute_type))
{
    return cudnnSetCTCLossDescriptor_v9(ctc, compute_type, 0, 0, 0);
}

FRAG_CUDNN_CALL(int, cudnnGetCTCLossDescriptor_v9,
                (const frag_cudnn_ctc *ctc, int *compute_type, int *normalization,
                 int *gradient_mode, int *max_label_length))
{
    static const frag_cudnn_ctc none;
    bool is_ctc = frag_cudnn_is(ctc, FRAG_CUDNN_CTC);
    if (!is_ctc)
        ctc = &none;
    if (compute_type == NULL || normalization == NULL || gradient_mode == NULL ||
        max_label_length == NULL)
        return FRAG_CUDNN_NULL_POINTER;
    *compute_type = ctc->compute_type;
    *normalization = ctc->normalization;
    *gradient_mode = ctc->gradient_mode;
    *max_label_length = ctc->max_label_length;
    return is_ctc ? FRAG_CUDNN_SUCCESS : FRAG_CUDNN_BAD_PARAM;
}

/* The forward and backward variables of each step, over the labels with a blank before, between
 * and after them, in 32-bit numbers: one of both must be kept, at most both and the logarithms of
 * the probabilities. Not measured. */
static int give_ctc_size(const char *function, const frag_cudnn_tensor *probabilities,
                         uint64_t label_length, size_t *bytes)
{
    if (bytes == NULL)
        return FRAG_CUDNN_NULL_POINTER;
    *bytes = 0;
    if (!frag_cudnn_is(probabilities, FRAG_CUDNN_TENSOR) || probabilities->dimension_count != 3)
        return FRAG_CUDNN_BAD_PARAM;
    uint64_t rows = (uint64_t)probabilities->dimensions[0] * (uint64_t)probabilities->dimensions[1];
    uint64_t one = 4 * rows * (2 * label_length + 1);
    uint64_t logarithms = 4 * rows * (uint64_t)probabilities->dimensions[2];
    *bytes = frag_cudnn_choose(function, "workspace of CTC",
                               (frag_cudnn_range){one, 2 * one + logarithms});
    return FRAG_CUDNN_SUCCESS;
}

FRAG_CUDNN_CALL(int, cudnnGetCTCLossWorkspaceSize,
                (frag_cudnn_handle * handle, const frag_cudnn_tensor *probabilities,
                 const frag_cudnn_tensor *gradients, const int *labels, const int *label_lengths,
                 const int *input_lengths, int algorithm, const frag_cudnn_ctc *ctc, size_t *bytes))
{
    (void)handle, (void)gradients, (void)labels, (void)input_lengths, (void)algorithm, (void)ctc;
    int longest = 0;
    if (frag_cudnn_is(probabilities, FRAG_CUDNN_TENSOR) && label_lengths != NULL &&
        probabilities->dimension_count == 3)
        for (int i = 0; i < probabilities->dimensions[1]; i++)
            if (label_lengths[i] > longest)
                longest = label_lengths[i];
    return give_ctc_size("cudnnGetCTCLossWorkspaceSize", probabilities, (uint64_t)longest, bytes);
}

FRAG_CUDNN_CALL(int, cudnnGetCTCLossWorkspaceSize_v8,
                (frag_cudnn_handle * handle, int algorithm, const frag_cudnn_ctc *ctc,
                 const frag_cudnn_tensor *probabilities, const frag_cudnn_tensor *gradients,
                 size_t *bytes))
{
    (void)handle, (void)algorithm, (void)gradients;
    int longest =
        frag_cudnn_is(ctc, FRAG_CUDNN_CTC) && ctc->max_label_length > 0 ? ctc->max_label_length : 0;
    return give_ctc_size("cudnnGetCTCLossWorkspaceSize_v8", probabilities, (uint64_t)longest,
                         bytes);
}

/* ---- spatial transformers */

FRAG_CUDNN_CALL(int, cudnnSetSpatialTransformerNdDescriptor,
                (frag_cudnn_transformer * transformer, int sampler, int data_type, int count,
                 const int *dimensions))
{
    if (!frag_cudnn_is(transformer, FRAG_CUDNN_TRANSFORMER) || dimensions == NULL || count < 1 ||
        count > FRAG_CUDNN_DIMENSIONS_MAX)
        return FRAG_CUDNN_BAD_PARAM;
    *transformer = (frag_cudnn_transformer){FRAG_CUDNN_TRANSFORMER, sampler, data_type, count, {0}};
    memcpy(transformer->dimensions, dimensions, (size_t)count * sizeof *dimensions);
    return FRAG_CUDNN_SUCCESS;
}
