/* VGG as torchvision 0.24 has it (models/vgg.py): convolutions of 3 x 3 with biases, with batch
 * norms or without, pooling behind each of five stages, and three linear layers. */
#include "workload/families/family.h"

enum { STAGES = 5, VARIANTS = 4, KERNEL = 3, POOL = 2, POOLED_SIDE = 7, LINEARS = 3, WIDE = 4096 };

/* Convolutions of each stage, for 11, 13, 16 and 19 layers. */
static const uint64_t depths[VARIANTS][STAGES] = {
    {1, 1, 2, 2, 2}, {2, 2, 2, 2, 2}, {2, 2, 3, 3, 3}, {2, 2, 4, 4, 4}};
static const uint64_t channels[STAGES] = {64, 128, 256, 512, 512};

typedef struct layer {
    frag_pair convolution;
    frag_pair norm; /* no weight: none */
    uint64_t in, out;
} layer;

static layer walk_layer(frag_walk *at, const frag_network *of, uint64_t stage, uint64_t depth)
{
    uint64_t before = stage > 0 ? channels[stage - 1] : of->image_channels;
    layer next = {.in = depth > 0 ? channels[stage] : before, .out = channels[stage]};
    next.convolution.weight = frag_walk_kernels(at, (frag_kernels){KERNEL, next.in, next.out});
    next.convolution.bias = frag_walk_parameter(at, (frag_shape){0, next.out});
    if (of->has_batch_norms)
        next.norm = frag_walk_batch_norm(at, next.out);
    return next;
}

typedef struct head {
    frag_linear layers[LINEARS];
} head;

static head walk_head(frag_walk *at, const frag_network *of)
{
    const uint64_t widths[LINEARS + 1] = {channels[STAGES - 1] * POOLED_SIDE * POOLED_SIDE, WIDE,
                                          WIDE, of->classes};
    head next = {0};
    for (uint32_t i = 0; i < LINEARS; i++)
        next.layers[i] = frag_walk_linear(at, (frag_shape){widths[i + 1], widths[i]}, true, 0);
    return next;
}

static void build(frag_walk *at, const frag_network *of)
{
    for (uint64_t i = 0; i < STAGES; i++)
        for (uint64_t k = 0; k < depths[of->variant][i]; k++)
            (void)walk_layer(at, of, i, k);
    (void)walk_head(at, of);
}

/* x is used up. */
static frag_picture run_layer(frag_tape *tape, const frag_model *model, const layer *at,
                              frag_picture x, uint64_t batch)
{
    const frag_aten_convolution of = {.weight = at->convolution.weight,
                                      .bias = at->convolution.bias,
                                      .batch = batch,
                                      .in_channels = at->in,
                                      .out_channels = at->out,
                                      .window = {x.side, KERNEL, 1, KERNEL / 2}};
    frag_tape_set(tape, &x.pixels, frag_aten_convolve(tape, x.pixels, &of));
    if (at->norm.weight != 0)
        frag_tape_set(tape, &x.pixels,
                      frag_aten_batch_norm(tape, x.pixels, &at->norm, x.side * x.side,
                                           model->workload->task == FRAG_TASK_TRAIN));
    x.pixels = frag_aten_relu_in_place(tape, x.pixels);
    return x;
}

/* What goes into the linear layers is held until they are through. */
static frag_tensor classify(frag_tape *tape, const frag_model *model, const head *at, frag_tensor x)
{
    double share = model->workload->network.residual_dropout;
    frag_tensor hidden = frag_tape_keep(tape, x);
    for (uint32_t i = 0; i < LINEARS; i++) {
        frag_tape_set(tape, &hidden, frag_walk_apply(tape, hidden, &at->layers[i]));
        if (i + 1 == LINEARS)
            break;
        hidden = frag_aten_relu_in_place(tape, hidden);
        frag_tape_set(tape, &hidden, frag_model_drop_out(tape, model, hidden, share));
    }
    return hidden;
}

static frag_tensor compute_loss(frag_tape *tape, const frag_model *model, const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    frag_walk at = {.tape = tape, .workload = model->workload, .at = model->parameters};
    frag_picture x = {frag_tape_keep(tape, batch->ids), of->image};
    for (uint64_t i = 0; i < STAGES; i++) {
        for (uint64_t k = 0; k < depths[of->variant][i]; k++) {
            const layer next = walk_layer(&at, of, i, k);
            x = run_layer(tape, model, &next, x, batch->count);
        }
        frag_picture_max_pool(tape, &x, (frag_window){x.side, POOL, POOL, 0});
    }
    frag_tape_set(tape, &x.pixels, frag_aten_average_pool(tape, x.pixels, x.side, POOLED_SIDE));
    frag_tape_set(tape, &x.pixels, frag_aten_view(tape, x.pixels));
    const head last = walk_head(&at, of);
    frag_tape_set(tape, &x.pixels, classify(tape, model, &last, x.pixels));
    return frag_family_loss(tape, x.pixels, batch);
}

const frag_family frag_family_vgg = {build, frag_family_load_images, compute_loss, NULL};
