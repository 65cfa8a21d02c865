/* Workspaces of convolutions: what cuDNN needs beside the tensors, as far as it can be known.
 *
 * Measured: a CNN of 3 x 3 convolutions of 32-bit numbers in NCHW on a card of compute capability
 * 7.5, torch 2.9.1 (cuDNN 9.10), batch 1, public recording of github.com/JasperSolt/EoR_NN
 * (snapshot.pickle), run_conv_plan of each layer:
 *
 *   channels in, out, pixels   forward   backward data
 *   30, 16, 256 x 256           82,880          50,168
 *   16, 32, 128 x 128           51,328          84,032
 *   32, 64, 64 x 64            205,056         204,928
 *
 * All six are 100 x in x out + 4 x out (Winograd: 5 x 5 transformed filter values of 4 bytes, and a
 * bias), and 32,768 more where 16 channels come out, 2,048 more where 30 go in or out: the pictures
 * have no part in it. (Backward, the gradient's channels go in.) The weights' gradient was not
 * computed there. BatchNorm in the same recording: no workspace and no reserve.
 *
 * Known of cards with tensor cores: kernels want channels last, and without it the library converts
 * what it reads and writes inside the workspace, to a multiple of 8 channels of 16 bits or 4 of 32.
 * Names of kernels that profilers print say what is written: "f16f16_f16f32_f32_nhwckrsc_nhwc" is
 * converted back, "tf32f32_tf32f32_f32_nhwckrsc_nchw" need not be, other TF32 kernels
 * ("nhwckrsc_nhwc", cutlass' "nhwc_align4") must. InvokeAI's peaks (tests/truth/recordings.tsv)
 * on 8.9, 3 x 3: in 16 bits the copies and up to 512 bytes; in TF32 input and filter with up to 256
 * channels in, and with 512 three times the output besides (and up to 1 MiB), as a sum in three
 * parts needs it. Nothing was seen between sums of 2,304 and of 4,608 products; 4.5 GiB were not
 * taken in this way.
 * github.com/tensorflow/tensorflow/pull/56055: "TF32 cudnn kernels might need larger workspace";
 * github.com/sonots/cumo/pull/502: half precision with 32 x 64 channels x 56 x 56 takes its tensor
 * core algorithms with 128 MB of workspace, not with 8. github.com/LBANN/lbann/pull/437: forward
 * Winograd of 64 x 64 channels on cuDNN 7 wants 256 KiB, which is 16 x 4 bytes x 64 x 64. */
#include "sim/device/convolution_workspace.h"

#include "base/bits.h"
/* Of TF32, see above. The rest is what the peaks leave open, as PyTorch splits nothing smaller off
 * a block; the last lies between the most that was seen and the least that was not taken. */
#define SUM_PARTS 3
#define UNSPLIT_PRODUCTS_MAX (256 * 9)
#define PARTS_REST_BYTES_MAX ((uint64_t)1 << 20)
#define PARTS_BYTES_MAX ((uint64_t)1 << 32)

static uint64_t winograd_bytes(uint64_t in, uint64_t out)
{
    return 100 * in * out + 4 * out + (out == 16 ? 32768 : 0) +
           (in % 4 != 0 || out % 4 != 0 ? 2048 : 0);
}

typedef struct operands {
    uint64_t input, filter, output;
} operands;

/* As the kernels of tensor cores want them: channels rounded up. */
static operands operand_bytes(const frag_convolution *problem)
{
    uint64_t bytes = problem->element_bytes;
    uint64_t multiple = bytes >= 4 ? 4 : 8;
    uint64_t groups = problem->group_count;
    uint64_t in = frag_round_up(problem->input_channels / groups, multiple);
    uint64_t out = frag_round_up(problem->output_channels / groups, multiple);
    return (operands){
        .input = bytes * problem->batch_count * problem->input_pixels * in * groups,
        .filter = bytes * problem->filter_pixels * in * out * groups,
        .output = bytes * problem->batch_count * problem->output_pixels * out * groups,
    };
}

/* The output is the gradient of the input where that is what is computed. A long sum of 32-bit
 * numbers may be taken in parts, each of the size of the output. */
static uint64_t converted_bytes(const frag_convolution *problem)
{
    operands bytes = operand_bytes(problem);
    uint64_t read = bytes.input, written = bytes.output, channels = problem->input_channels;
    if (problem->pass == FRAG_CONVOLUTION_BACKWARD_DATA) {
        read = bytes.output;
        written = bytes.input;
        channels = problem->output_channels;
    }
    uint64_t whole = read + bytes.filter + written + 512;
    uint64_t parts = read + bytes.filter + SUM_PARTS * written + PARTS_REST_BYTES_MAX;
    bool is_long = channels / problem->group_count * problem->filter_pixels > UNSPLIT_PRODUCTS_MAX;
    bool may_split = problem->element_bytes == 4 && is_long && parts <= PARTS_BYTES_MAX &&
                     problem->pass != FRAG_CONVOLUTION_BACKWARD_FILTER;
    return may_split ? parts : whole;
}

/* Without tensor cores: the matrix product reads the pictures by an index of the filter's
 * positions; Winograd transforms the filter. */
static uint64_t plain_bytes(const frag_convolution *problem)
{
    uint64_t in = problem->input_channels, out = problem->output_channels;
    if (problem->is_winograd_shape && problem->pass == FRAG_CONVOLUTION_FORWARD)
        return winograd_bytes(in, out);
    if (problem->is_winograd_shape && problem->pass == FRAG_CONVOLUTION_BACKWARD_DATA)
        return winograd_bytes(out, in);
    return 8 * frag_round_up(in / problem->group_count * problem->filter_pixels, 128);
}

/* The gradient of the weights is a sum over all pixels, taken in parts that are then added: one
 * part of 32-bit numbers for as many blocks of 64 x 64 results as fill the card twice. */
static uint64_t filter_sum_bytes(const frag_convolution *problem, uint32_t multiprocessors)
{
    uint64_t values = problem->filter_pixels * problem->input_channels / problem->group_count *
                      problem->output_channels;
    uint64_t tiles = frag_larger(values / (64 * 64), 1);
    uint64_t parts = frag_larger(2 * (uint64_t)multiprocessors / tiles, 1);
    uint64_t pixels = problem->batch_count * problem->output_pixels;
    if (parts > frag_larger(pixels / 64, 1))
        parts = frag_larger(pixels / 64, 1);
    return 4 * values * parts;
}

uint64_t frag_convolution_workspace(const frag_convolution *problem, uint32_t capability,
                                    uint32_t multiprocessors)
{
    bool has_tensor_cores = problem->element_bytes < 4
                                ? capability >= 70
                                : capability >= 80 && problem->element_bytes == 4;
    uint64_t high = 0;
    if (has_tensor_cores && problem->may_use_tensor_cores && !problem->is_channels_last)
        high = converted_bytes(problem);
    if (problem->element_bytes >= 4)
        high = frag_larger(high, plain_bytes(problem));
    if (problem->pass == FRAG_CONVOLUTION_BACKWARD_FILTER)
        high += filter_sum_bytes(problem, multiprocessors);
    return high;
}
