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

/* Running statistics of the norm are buffers: two in the type of the model, and a count. */
frag_normed frag_walk_normed(frag_walk *at, frag_normed shape)
{
    frag_normed next = shape;
    next.weight = frag_walk_matrices(at, (frag_shape){next.kernel, next.kernel},
                                     (next.is_depthwise ? 1 : next.in) * next.out);
    next.norm = frag_walk_norm(at, next.out);
    if (at->model != NULL) {
        for (uint32_t i = 0; i < 2; i++)
            frag_model_add_buffer(at->tape, at->model, next.out, at->model->dtype);
        frag_model_add_buffer(at->tape, at->model, 1, FRAG_I64);
    }
    return next;
}

frag_picture frag_normed_apply(frag_tape *tape, const frag_model *model, const frag_normed *at,
                               frag_picture x, uint64_t batch)
{
    const frag_aten_convolution of = {.weight = at->weight,
                                      .batch = batch,
                                      .in_channels = at->in,
                                      .out_channels = at->out,
                                      .window = {x.side, at->kernel, at->stride, at->kernel / 2},
                                      .is_depthwise = at->is_depthwise};
    frag_picture made = {frag_aten_convolve(tape, x.pixels, &of),
                         frag_aten_window_side(&of.window)};
    frag_tape_drop(tape, x.pixels);
    frag_tape_set(tape, &made.pixels,
                  frag_aten_batch_norm(tape, made.pixels, &at->norm,
                                       model->workload->task == FRAG_TASK_TRAIN));
    return made;
}
