/* Convolutions by cuDNN, batch norm and pooling, over images with equal sides or of one row. */
#include "sim/device/convolution_workspace.h"
#include "workload/tape/aten.h"

/* ---- convolution (ATen/native/cudnn/Conv_v8.cpp) */
/* Numbers that a node keeps. */
enum { BATCH, SIDE, KERNEL, STRIDE, PADDING, IN_CHANNELS, OUT_CHANNELS, FLAGS };

enum { DEPTHWISE = 1, LINE = 2, LAST = 4, TURNED = 8, GAPS = 16, OWN = 32, GROUPS_SHIFT = 8 };

/* Channels that are groups of their own go to cuDNN where they lie last; else only in fp16, and
 * where it is quick (use_cudnn_depthwise in ATen/native/Convolution.cpp). */
static bool is_own(const frag_aten_convolution *of, frag_dtype dtype)
{
    enum { CHANNELS_MIN = 32, SIDE_MIN = 7, WIDE_SIDE = 28, MANY = 256, MOST = 512 };
    const frag_window *window = &of->window;
    if (!of->is_depthwise || of->is_channels_last)
        return false;
    if (dtype != FRAG_F16 || of->in_channels < CHANNELS_MIN)
        return true;
    if (window->side == 1 && window->stride == 1)
        return false;
    if ((window->kernel != 3 && window->kernel != 5) || window->side < SIDE_MIN ||
        window->stride > 2)
        return true;
    return window->stride == 2 && of->batch > 1 && of->in_channels < MOST &&
           (of->in_channels < MANY || window->side < WIDE_SIDE);
}

static uint64_t get_flags(const frag_aten_convolution *of, frag_dtype dtype)
{
    bool is_by_own = is_own(of, dtype);
    return (of->is_depthwise ? DEPTHWISE : 0) | (of->is_line ? LINE : 0) |
           (of->is_channels_last ? LAST : 0) | (of->is_turned && !is_by_own ? TURNED : 0) |
           (of->has_gaps ? GAPS : 0) | (is_by_own ? OWN : 0) | of->groups << GROUPS_SHIFT;
}

static uint64_t count_groups(const frag_aten_convolution *of)
{
    if (of->is_depthwise)
        return of->in_channels;
    return of->groups > 0 ? of->groups : 1;
}

/* Of an image, or a filter, with that side. */
static uint64_t count_pixels(const frag_aten_convolution *of, uint64_t side)
{
    return of->is_line ? side : side * side;
}

/* Of the weight. */
static uint64_t count_values(const frag_aten_convolution *of)
{
    return of->in_channels / count_groups(of) * of->out_channels *
           count_pixels(of, of->window.kernel);
}

/* A weight of several channels and pixels lies in another order than channels last. */
static bool is_weight_turned(const frag_aten_convolution *of)
{
    return of->is_channels_last && !of->is_depthwise && of->in_channels > 1 &&
           of->window.kernel > 1;
}

uint64_t frag_aten_window_side(const frag_window *of)
{
    return (of->side + 2 * of->padding - of->kernel) / of->stride + 1;
}

static frag_convolution get_problem(const frag_aten_convolution *of, frag_dtype dtype)
{
    return (frag_convolution){
        .element_bytes = frag_dtype_bytes(dtype),
        .is_channels_last = of->is_channels_last,
        .may_use_tensor_cores = true, /* torch.backends.cudnn.allow_tf32 is the default */
        .batch_count = of->batch,
        .group_count = count_groups(of),
        .input_channels = of->in_channels,
        .output_channels = of->out_channels,
        .input_pixels = count_pixels(of, of->window.side),
        .output_pixels = count_pixels(of, frag_aten_window_side(&of->window)),
        .filter_pixels = count_pixels(of, of->window.kernel),
        .is_winograd_shape = of->window.kernel == 3 && of->window.stride == 1 && !of->is_line &&
                             count_groups(of) == 1,
    };
}

/* What the kernel takes beside its tensors, at the most, until it has run. An odd size, as the dry
 * run asks for what is uncertain. */
static void use_workspace(frag_tape *tape, const frag_aten_convolution *of, frag_dtype dtype,
                          frag_convolution_pass pass)
{
    const frag_tape_card *card = frag_tape_get_card(tape);
    frag_convolution problem = get_problem(of, dtype);
    problem.pass = pass;
    uint64_t bytes = frag_convolution_workspace(&problem, card->capability, card->multiprocessors);
    if (bytes > 0 && !is_own(of, dtype))
        frag_tape_use_workspace(tape, 0, (bytes + 511) / 512 * 512 - 1);
}

static frag_aten_convolution get_convolution(const frag_node *node)
{
    const uint64_t *of = node->numbers;
    return (frag_aten_convolution){.batch = of[BATCH],
                                   .in_channels = of[IN_CHANNELS],
                                   .out_channels = of[OUT_CHANNELS],
                                   .window = {.side = of[SIDE],
                                              .kernel = of[KERNEL],
                                              .stride = of[STRIDE],
                                              .padding = of[PADDING]},
                                   .groups = of[FLAGS] >> GROUPS_SHIFT,
                                   .is_depthwise = (of[FLAGS] & DEPTHWISE) != 0,
                                   .is_line = (of[FLAGS] & LINE) != 0,
                                   .is_channels_last = (of[FLAGS] & LAST) != 0,
                                   .is_turned = (of[FLAGS] & TURNED) != 0,
                                   .has_gaps = (of[FLAGS] & GAPS) != 0};
}

/* A copy of the weight in the order of x; 0 where it lies in it. */
static frag_tensor lay_weight(frag_tape *tape, const frag_aten_convolution *of, frag_dtype dtype)
{
    return is_weight_turned(of) ? frag_tape_empty(tape, count_values(of), dtype) : 0;
}

/* inputs: x, weight, bias; gradients are made in that order. */
static void convolution_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                                 frag_tensor *out)
{
    frag_aten_convolution of = get_convolution(node);
    of.has_gaps = of.has_gaps && frag_tape_is_view(tape, in[0]); /* a cast lies in one piece */
    frag_dtype dtype = frag_tape_dtype(tape, in[0]);
    uint64_t count = frag_tape_count(tape, in[0]);
    if ((node->numbers[FLAGS] & OWN) != 0 &&
        node->edges[1].node != 0) /* it makes the weight's gradient first */
        out[1] = frag_tape_empty(tape, count_values(&of), dtype);
    frag_tensor laid = of.is_turned ? frag_tape_empty(tape, count, dtype) : 0;
    if (node->edges[0].node != 0) {
        uint64_t pixels = count_pixels(&of, of.window.side);
        out[0] = frag_tape_empty(tape, of.batch * of.in_channels * pixels, dtype);
        if (of.has_gaps)
            laid = frag_tape_empty(tape, count, dtype);
        frag_tensor weight = lay_weight(tape, &of, dtype);
        use_workspace(tape, &of, dtype, FRAG_CONVOLUTION_BACKWARD_DATA);
        frag_tape_drop(tape, weight);
    }
    if (node->edges[1].node != 0 && out[1] == 0) {
        if (of.has_gaps)
            frag_tape_clear(tape, &laid);
        if (of.has_gaps)
            laid = frag_tape_empty(tape, count, dtype);
        out[1] = frag_tape_empty(tape, count_values(&of), dtype);
        if (is_weight_turned(&of))
            frag_tape_set_strided(tape, out[1]);
        use_workspace(tape, &of, dtype, FRAG_CONVOLUTION_BACKWARD_FILTER);
    }
    frag_tape_drop(tape, laid);
    if (node->edge_count > 2 && node->edges[2].node != 0) {
        uint64_t pixels = count_pixels(&of, frag_aten_window_side(&of.window));
        bool is_fastest = of.is_turned == of.is_channels_last && pixels > 1;
        out[2] = frag_tape_empty(tape, of.out_channels, dtype);
        frag_aten_reduce_buffers(
            tape, &(frag_reduction){of.out_channels, of.batch * pixels, is_fastest, 0});
    }
}

frag_tensor frag_aten_convolve(frag_tape *tape, frag_tensor x, const frag_aten_convolution *of)
{
    const frag_tensor parameters[] = {of->weight, of->bias};
    frag_tape_fetch(tape, parameters, 2);
    frag_tensor inputs[3] = {0, 0, frag_tape_cast(tape, of->bias)}; /* from the last to the first */
    inputs[1] = frag_tape_cast(tape, of->weight);
    inputs[0] = frag_tape_cast(tape, x);
    uint64_t pixels = count_pixels(of, frag_aten_window_side(&of->window));
    frag_dtype dtype = frag_tape_dtype(tape, inputs[0]);
    frag_tensor made = frag_tape_empty(tape, of->batch * of->out_channels * pixels, dtype);
    frag_node *node =
        frag_tape_record(tape, convolution_backward, inputs, of->bias != 0 ? 3 : 2, &made, 1);
    frag_tape_save(tape, node, inputs[0]);
    frag_tape_save(tape, node, inputs[1]);
    const uint64_t numbers[FRAG_NODE_NUMBERS_MAX] = {[BATCH] = of->batch,
                                                     [SIDE] = of->window.side,
                                                     [KERNEL] = of->window.kernel,
                                                     [STRIDE] = of->window.stride,
                                                     [PADDING] = of->window.padding,
                                                     [IN_CHANNELS] = of->in_channels,
                                                     [OUT_CHANNELS] = of->out_channels,
                                                     [FLAGS] = get_flags(of, dtype)};
    for (uint32_t i = 0; i < FRAG_NODE_NUMBERS_MAX; i++)
        node->numbers[i] = numbers[i];
    /* Behind the saving, so that a region that is made anew may end before it. */
    frag_tensor weight = lay_weight(tape, of, dtype);
    use_workspace(tape, of, dtype, FRAG_CONVOLUTION_FORWARD);
    frag_tape_drop(tape, weight);
    frag_tape_drop_all(tape, inputs, 3);
    frag_tape_send_back(tape, parameters, 2);
    return made;
}

/* ---- batch norm: inputs x, weight, bias; statistics in fp32 */
enum { NORM_CHANNELS, NORM_TYPE, IS_NORM_APART };

static void batch_norm_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                                frag_tensor *out)
{
    uint64_t channels = node->numbers[NORM_CHANNELS];
    bool is_apart = node->numbers[IS_NORM_APART] != 0;
    frag_tensor sums[2] = {0, 0};
    for (uint32_t i = 0; i < 2 && is_apart; i++)
        sums[i] = frag_tape_empty(tape, channels, FRAG_F32);
    for (uint32_t step = 0; step < 3; step++) {
        uint32_t i = is_apart ? (step + 1) % 3 : step; /* x last, or first */
        out[i] = i == 0 ? frag_tape_empty_like(tape, in[0])
                        : frag_tape_empty(tape, channels, (frag_dtype)node->numbers[NORM_TYPE]);
    }
    frag_tape_drop(tape, sums[0]);
    frag_tape_drop(tape, sums[1]);
}

/* cuDNN, which takes no bf16 and weights in fp32 only, makes no statistics where those of training
 * are used. PyTorch's own kernels see images of one pixel as such with channels last, of which sums
 * are made first. */
frag_tensor frag_aten_batch_norm(frag_tape *tape, frag_tensor x, const frag_pair *of,
                                 uint64_t pixels, bool is_training)
{
    const frag_tensor weight = of->weight;
    bool is_own =
        frag_tape_dtype(tape, weight) != FRAG_F32 || frag_tape_dtype(tape, x) == FRAG_BF16;
    bool has_statistics = is_training || is_own;
    uint64_t channels = frag_tape_count(tape, weight);
    uint64_t kept = has_statistics ? channels : 0;
    frag_tensor made = frag_tape_empty_like(tape, x);
    frag_tensor mean = frag_tape_empty(tape, kept, FRAG_F32);
    frag_tensor deviation = frag_tape_empty(tape, kept, FRAG_F32);
    frag_node *node = frag_tape_record(tape, batch_norm_backward,
                                       (frag_tensor[]){x, weight, of->bias}, 3, &made, 1);
    frag_tape_save(tape, node, x);
    frag_tape_save(tape, node, weight);
    frag_tape_save_made(tape, node, mean);
    frag_tape_save_made(tape, node, deviation);
    node->numbers[NORM_CHANNELS] = channels;
    node->numbers[NORM_TYPE] = frag_tape_dtype(tape, weight);
    node->numbers[IS_NORM_APART] = is_own && pixels == 1;
    frag_tape_drop(tape, mean);
    frag_tape_drop(tape, deviation);
    return made;
}

/* ---- pooling: the place of each largest number is kept */
frag_tensor frag_aten_max_pool(frag_tape *tape, frag_tensor x, const frag_window *window)
{
    uint64_t side = frag_aten_window_side(window);
    uint64_t count = frag_tape_count(tape, x) / (window->side * window->side) * side * side;
    frag_tensor made = frag_tape_empty(tape, count, frag_tape_dtype(tape, x));
    frag_tensor places = frag_tape_empty(tape, count, FRAG_I64);
    frag_node *node = frag_tape_record(tape, frag_aten_resize_backward, &x, 1, &made, 1);
    frag_tape_save(tape, node, x);
    frag_tape_save_made(tape, node, places);
    node->numbers[0] = frag_tape_count(tape, x);
    frag_tape_drop(tape, places);
    return made;
}

frag_tensor frag_aten_average_pool(frag_tape *tape, frag_tensor x, uint64_t side_before,
                                   uint64_t side)
{
    uint64_t count = frag_tape_count(tape, x) / (side_before * side_before) * side * side;
    frag_tensor made = frag_tape_empty(tape, count, frag_tape_dtype(tape, x));
    frag_node *node = frag_tape_record(tape, frag_aten_resize_backward, &x, 1, &made, 1);
    frag_tape_save(tape, node, x);
    node->numbers[0] = frag_tape_count(tape, x);
    return made;
}
