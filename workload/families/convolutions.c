/* Convolutions with a batch norm behind each, as networks over images have them. */
#include "workload/families/family.h"

frag_picture frag_picture_keep(frag_tape *tape, frag_picture x)
{
    return (frag_picture){frag_tape_keep(tape, x.pixels), x.side};
}

void frag_picture_set(frag_tape *tape, frag_picture *name, frag_picture value)
{
    frag_tape_drop(tape, name->pixels);
    *name = value;
}

void frag_picture_max_pool(frag_tape *tape, frag_picture *x, frag_window window)
{
    frag_tape_set(tape, &x->pixels, frag_aten_max_pool(tape, x->pixels, &window));
    x->side = frag_aten_window_side(&window);
}

/* Running statistics are buffers: two in the type of the model, and a count. */
frag_pair frag_walk_batch_norm(frag_walk *at, uint64_t channels)
{
    frag_pair next = frag_walk_norm(at, channels);
    if (at->model != NULL) {
        for (uint32_t i = 0; i < 2; i++)
            frag_walk_buffer(at, channels, at->model->dtype);
        frag_walk_buffer(at, 1, FRAG_I64);
    }
    return next;
}

frag_normed frag_walk_normed(frag_walk *at, frag_normed shape)
{
    frag_normed next = shape;
    uint64_t groups = next.groups > 0 ? next.groups : 1;
    next.weight = frag_walk_kernels(
        at, (frag_kernels){next.kernel, next.is_depthwise ? 1 : next.in / groups, next.out});
    next.norm = frag_walk_batch_norm(at, next.out);
    return next;
}

frag_picture frag_normed_apply(const frag_image_pass *in, const frag_normed *at, frag_picture x)
{
    frag_tape *tape = in->tape;
    const frag_aten_convolution of = {.weight = at->weight,
                                      .batch = in->batch,
                                      .in_channels = at->in,
                                      .out_channels = at->out,
                                      .window = {x.side, at->kernel, at->stride, at->kernel / 2},
                                      .groups = at->groups,
                                      .is_depthwise = at->is_depthwise};
    frag_picture made = {frag_aten_convolve(tape, x.pixels, &of),
                         frag_aten_window_side(&of.window)};
    frag_tape_drop(tape, x.pixels);
    frag_tape_set(tape, &made.pixels,
                  frag_aten_batch_norm(tape, made.pixels, &at->norm, made.side * made.side,
                                       in->model->workload->task == FRAG_TASK_TRAIN));
    return made;
}

static frag_tensor apply_in_place(frag_tape *tape, frag_tensor x, frag_in_place activation)
{
    if (activation == FRAG_IN_PLACE_NONE)
        return x;
    return activation == FRAG_IN_PLACE_RELU ? frag_aten_relu_in_place(tape, x)
                                            : frag_aten_map_in_place(tape, x);
}

frag_picture frag_unit_apply(const frag_image_pass *in, const frag_normed *at, frag_picture x)
{
    frag_picture made = frag_normed_apply(in, at, frag_picture_keep(in->tape, x));
    made.pixels = apply_in_place(in->tape, made.pixels, at->activation);
    return made;
}

static frag_pair walk_pixel(frag_walk *at, uint64_t in, uint64_t out)
{
    frag_pair next = {.weight = frag_walk_kernels(at, (frag_kernels){1, in, out})};
    next.bias = frag_walk_parameter(at, (frag_shape){0, out});
    return next;
}

frag_squeeze frag_walk_squeeze(frag_walk *at, frag_squeeze shape)
{
    frag_squeeze next = shape;
    next.narrow = walk_pixel(at, next.channels, next.squeezed);
    next.widen = walk_pixel(at, next.squeezed, next.channels);
    return next;
}

static frag_tensor convolve_pixel(frag_tape *tape, frag_tensor x, const frag_pair *at,
                                  const uint64_t channels[2], uint64_t batch)
{
    return frag_aten_convolve(tape, x,
                              &(frag_aten_convolution){.weight = at->weight,
                                                       .bias = at->bias,
                                                       .batch = batch,
                                                       .in_channels = channels[0],
                                                       .out_channels = channels[1],
                                                       .window = {1, 1, 1, 0}});
}

frag_picture frag_squeeze_apply(const frag_image_pass *in, const frag_squeeze *at, frag_picture x)
{
    frag_tape *tape = in->tape;
    const uint64_t narrow[] = {at->channels, at->squeezed}, widen[] = {at->squeezed, at->channels};
    uint64_t pixels = x.side * x.side;
    frag_tensor scale = frag_aten_mean_last(tape, x.pixels, pixels);
    frag_tape_set(tape, &scale, convolve_pixel(tape, scale, &at->narrow, narrow, in->batch));
    if (at->is_silu)
        scale = frag_aten_map_in_place(tape, scale);
    else
        frag_tape_set(tape, &scale, frag_aten_relu(tape, scale));
    frag_tape_set(tape, &scale, convolve_pixel(tape, scale, &at->widen, widen, in->batch));
    frag_tape_set_column(tape, scale);
    frag_tape_set(tape, &scale,
                  at->is_hard ? frag_aten_hardsigmoid(tape, scale)
                              : frag_aten_sigmoid(tape, scale));
    frag_picture made = {frag_aten_mul(tape, scale, x.pixels), x.side};
    frag_tape_drop(tape, scale);
    return made;
}

uint64_t frag_round_channels(double asked, uint64_t step)
{
    uint64_t made = (uint64_t)(asked + (double)step / 2) / step * step;
    made = made > step ? made : step;
    return (double)made >= 0.9 * asked ? made : made + step;
}
