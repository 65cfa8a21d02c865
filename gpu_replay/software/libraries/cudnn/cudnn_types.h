/* The stand-in of cuDNN 9: descriptors that remember what was set, real dimensions, and sizes from
 * the rules in sim/device/convolution_workspace.c. Names and numbers are those of NVIDIA's
 * documentation. */
#ifndef FRAG_CUDNN_CUDNN_TYPES_H
#define FRAG_CUDNN_CUDNN_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/device/convolution_workspace.h"

#define FRAG_CUDNN_DIMENSIONS_MAX 8

/* A declaration before each definition: nobody else declares these functions. */
#define FRAG_CUDNN_CALL(type, name, parameters)                                                    \
    type name parameters;                                                                          \
    type name parameters

typedef enum frag_cudnn_status {
    FRAG_CUDNN_SUCCESS = 0,
    FRAG_CUDNN_NOT_INITIALIZED = 1001,
    FRAG_CUDNN_BAD_PARAM = 2000,
    FRAG_CUDNN_NULL_POINTER = 2002,
    FRAG_CUDNN_NOT_FINALIZED = 2004,
    FRAG_CUDNN_OUT_OF_BOUND = 2005,
    FRAG_CUDNN_NOT_SUPPORTED = 3000,
    FRAG_CUDNN_HOST_ALLOCATION_FAILED = 4003,
} frag_cudnn_status;

typedef enum frag_cudnn_data_type {
    FRAG_CUDNN_FLOAT = 0,
    FRAG_CUDNN_DOUBLE = 1,
    FRAG_CUDNN_HALF = 2,
    FRAG_CUDNN_BFLOAT16 = 9,
} frag_cudnn_data_type;

typedef enum frag_cudnn_math {
    FRAG_CUDNN_DEFAULT_MATH = 0,
    FRAG_CUDNN_TENSOR_OP_MATH = 1,
    FRAG_CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION = 2,
    FRAG_CUDNN_FMA_MATH = 3,
} frag_cudnn_math;

/* What an object is: its first field. A pointer to anything else is refused, not read further. */
typedef enum frag_cudnn_kind {
    FRAG_CUDNN_HANDLE = 0x63750001,
    FRAG_CUDNN_TENSOR,
    FRAG_CUDNN_CONVOLUTION,
    FRAG_CUDNN_BACKEND,
    FRAG_CUDNN_RNN,
    FRAG_CUDNN_RNN_DATA,
    FRAG_CUDNN_ACTIVATION,
    FRAG_CUDNN_POOLING,
    FRAG_CUDNN_DROPOUT,
    FRAG_CUDNN_CTC,
    FRAG_CUDNN_TRANSFORMER,
} frag_cudnn_kind;

typedef struct frag_cudnn_handle {
    frag_cudnn_kind kind;
    void *stream;
} frag_cudnn_handle;

/* Tensors and filters alike: a filter has no strides, but a format. */
typedef struct frag_cudnn_tensor {
    frag_cudnn_kind kind;
    int data_type;
    int format;
    int dimension_count;
    int dimensions[FRAG_CUDNN_DIMENSIONS_MAX];
    int strides[FRAG_CUDNN_DIMENSIONS_MAX];
} frag_cudnn_tensor;

typedef struct frag_cudnn_convolution {
    frag_cudnn_kind kind;
    int spatial_count;
    int pads[FRAG_CUDNN_DIMENSIONS_MAX];
    int strides[FRAG_CUDNN_DIMENSIONS_MAX];
    int dilations[FRAG_CUDNN_DIMENSIONS_MAX];
    int mode;
    int compute_type;
    int group_count;
    int math_type;
    int reorder_type;
} frag_cudnn_convolution;

/* A size that only the real library knows lies between these. */
typedef struct frag_cudnn_range {
    uint64_t low_bytes, high_bytes;
} frag_cudnn_range;

/* An object of zeros but for its kind; status as a create function returns it. */
int frag_cudnn_make(void **object, frag_cudnn_kind kind, size_t bytes);
bool frag_cudnn_is(const void *object, frag_cudnn_kind kind);
/* Nothing happens to what is not of that kind. */
int frag_cudnn_end(void *object, frag_cudnn_kind kind);

/* 0: there is no such type. */
uint64_t frag_cudnn_element_bytes(int data_type);
uint64_t frag_cudnn_tensor_elements(const frag_cudnn_tensor *tensor);
/* Bytes from the first element to the last, with the gaps that the strides leave. */
uint64_t frag_cudnn_tensor_bytes(const frag_cudnn_tensor *tensor);
bool frag_cudnn_tensor_is_channels_last(const frag_cudnn_tensor *tensor);
/* false: too many dimensions, or one that is negative; the tensor stays as it was. strides NULL:
 * packed, the last dimension first. */
bool frag_cudnn_tensor_set(frag_cudnn_tensor *tensor, int data_type, int count,
                           const int *dimensions, const int *strides);

struct frag_software_card;
/* The device of the calling thread, as the software CUDA describes it; NULL: there is none. */
const struct frag_software_card *frag_cudnn_card(void);
uint32_t frag_cudnn_compute_capability(void);
uint32_t frag_cudnn_multiprocessor_count(void);

/* The range of a convolution's workspace on the device of the calling thread. */
frag_cudnn_range frag_cudnn_convolution_range(const frag_convolution *problem);
/* What of the range to answer; it is noted in the report. */
uint64_t frag_cudnn_choose(const char *function, const char *what, frag_cudnn_range range);
const char *frag_cudnn_pass_name(frag_convolution_pass pass);

#endif
