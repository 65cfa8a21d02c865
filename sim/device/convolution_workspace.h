/* How much memory cuDNN may take besides the tensors of a convolution. Its choice is not published:
 * what is told is the most, and the least is nothing. The software cuDNN of dry runs answers by it,
 * and generated traces of networks with convolutions have it. */
#ifndef FRAG_DEVICE_CONVOLUTION_WORKSPACE_H
#define FRAG_DEVICE_CONVOLUTION_WORKSPACE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum frag_convolution_pass {
    FRAG_CONVOLUTION_FORWARD,
    FRAG_CONVOLUTION_BACKWARD_DATA,
    FRAG_CONVOLUTION_BACKWARD_FILTER,
} frag_convolution_pass;

typedef struct frag_convolution {
    frag_convolution_pass pass;
    uint64_t element_bytes; /* of a floating-point number: 2, 4 or 8 */
    bool is_channels_last;
    bool may_use_tensor_cores; /* also where that rounds the inputs of 32-bit numbers */
    uint64_t batch_count, group_count;
    uint64_t input_channels, output_channels; /* all groups together */
    uint64_t input_pixels, output_pixels, filter_pixels;
    bool is_winograd_shape; /* 3 x 3, no stride, no dilation, one group */
} frag_convolution;

/* Bytes at the most. capability: 80 is 8.0. Sources stand in the .c file. */
uint64_t frag_convolution_workspace(const frag_convolution *problem, uint32_t capability,
                                    uint32_t multiprocessors);

#endif
