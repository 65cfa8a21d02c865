/* DenseNet as torchvision 0.24 has it (models/densenet.py, without memory_efficient): a layer reads
 * what all layers of its block before it made, and puts a batch norm before each convolution. */
#include "workload/families/family.h"

enum {
    BLOCKS = 4,
    LAYERS_MAX = 48,
    WIDENING = 4,
    STEM_KERNEL = 7,
    POOL_KERNEL = 3,
    HALVING = 2,
};

typedef struct design {
    uint64_t growth, stem, depths[BLOCKS];
} design;

/* 121, 161, 169 and 201. */
static const design designs[] = {{32, 64, {6, 12, 24, 16}},
                                 {48, 96, {6, 12, 36, 24}},
                                 {32, 64, {6, 12, 32, 32}},
                                 {32, 64, {6, 12, 48, 32}}};

static const design *get_design(const frag_network *of)
{
    return &designs[of->variant];
}

/* A batch norm, relu in place, and a convolution without a bias. */
typedef struct part {
    frag_pair norm;
    frag_tensor weight;
    uint64_t in, out, kernel;
} part;

static part walk_part(frag_walk *at, uint64_t in, uint64_t out, uint64_t kernel)
{
    part next = {.norm = frag_walk_batch_norm(at, in), .in = in, .out = out, .kernel = kernel};
    next.weight = frag_walk_kernels(at, (frag_kernels){kernel, in, out});
    return next;
}

typedef struct layer {
    part parts[2];
} layer;

static layer walk_layer(frag_walk *at, const design *of, uint64_t in)
{
    layer next = {.parts = {walk_part(at, in, WIDENING * of->growth, 1)}};
    next.parts[1] = walk_part(at, WIDENING * of->growth, of->growth, 3);
    return next;
}

static frag_normed walk_stem(frag_walk *at, const frag_network *of)
{
    return frag_walk_normed(at, (frag_normed){.in = of->image_channels,
                                              .out = get_design(of)->stem,
                                              .kernel = STEM_KERNEL,
                                              .stride = 2});
}

static uint64_t count_channels(const design *of, uint64_t block, uint64_t in)
{
    return in + of->depths[block] * of->growth;
}

static void build(frag_walk *at, const frag_network *network)
{
    const design *of = get_design(network);
    (void)walk_stem(at, network);
    uint64_t in = of->stem;
    for (uint64_t i = 0; i < BLOCKS; i++) {
        for (uint64_t k = 0; k < of->depths[i]; k++)
            (void)walk_layer(at, of, in + k * of->growth);
        in = count_channels(of, i, in);
        if (i + 1 == BLOCKS)
            break;
        (void)walk_part(at, in, in / HALVING, 1);
        in /= HALVING;
    }
    (void)frag_walk_batch_norm(at, in);
    (void)frag_walk_linear(at, (frag_shape){network->classes, in}, true, 0);
}

/* What all of a forward pass knows. */
typedef struct pass {
    frag_tape *tape;
    const frag_model *model;
    const design *of;
    uint64_t batch;
    uint64_t side; /* of the images of this block */
    bool is_training;
} pass;

static frag_tensor normalise(const pass *in, const frag_pair *norm, frag_tensor x)
{
    frag_tensor made =
        frag_aten_batch_norm(in->tape, x, norm, in->side * in->side, in->is_training);
    return frag_aten_relu_in_place(in->tape, made);
}

/* has_gaps: the gradient is a part of that of a block's output, which of several images does not
 * lie in one piece. x is borrowed. */
static frag_tensor run_part(const pass *in, const part *at, frag_tensor x, bool has_gaps)
{
    frag_tensor hidden = normalise(in, &at->norm, x);
    frag_tensor made = frag_aten_convolve(
        in->tape, hidden,
        &(frag_aten_convolution){.weight = at->weight,
                                 .batch = in->batch,
                                 .in_channels = at->in,
                                 .out_channels = at->out,
                                 .window = {in->side, at->kernel, 1, at->kernel / 2},
                                 .has_gaps = has_gaps});
    frag_tape_drop(in->tape, hidden);
    return made;
}

static frag_tensor run_layer(const pass *in, const layer *at, const frag_tensor *features,
                             uint64_t count, bool is_last)
{
    double share = in->model->workload->network.residual_dropout;
    bool is_dropping = frag_model_drops(in->model, share);
    frag_tensor joined = frag_aten_cat_parts(in->tape, features, count);
    frag_tensor narrow = run_part(in, &at->parts[0], joined, false);
    frag_tape_drop(in->tape, joined);
    frag_tensor made =
        run_part(in, &at->parts[1], narrow, is_last && in->batch > 1 && !is_dropping);
    if (is_dropping)
        frag_tape_set(in->tape, &made, frag_aten_dropout(in->tape, made, true));
    frag_tape_drop(in->tape, narrow);
    return made;
}

/* x becomes what comes out, and is held until then. channels: of x, then of that. */
static void run_block(const pass *in, frag_walk *at, uint64_t block, frag_tensor *x,
                      uint64_t *channels)
{
    frag_tensor features[LAYERS_MAX + 1] = {frag_tape_keep(in->tape, *x)};
    uint64_t depth = in->of->depths[block];
    for (uint64_t i = 0; i < depth; i++) {
        const layer next = walk_layer(at, in->of, *channels + i * in->of->growth);
        features[i + 1] = run_layer(in, &next, features, i + 1, i + 1 == depth);
    }
    frag_tensor made = frag_aten_cat_parts(in->tape, features, depth + 1);
    for (uint64_t i = 0; i <= depth; i++)
        frag_tape_drop(in->tape, features[i]);
    frag_tape_set(in->tape, x, made);
    *channels = count_channels(in->of, block, *channels);
}

/* Half the channels and half the side; what goes in is held until it is through. */
static void run_transition(pass *in, frag_walk *at, frag_tensor *x, uint64_t *channels)
{
    const part next = walk_part(at, *channels, *channels / HALVING, 1);
    frag_tensor made = run_part(in, &next, *x, false);
    uint64_t side = in->side / HALVING;
    frag_tape_set(in->tape, &made, frag_aten_average_pool(in->tape, made, in->side, side));
    frag_tape_set(in->tape, x, made);
    in->side = side;
    *channels /= HALVING;
}

static frag_picture embed(const frag_image_pass *in, const frag_normed *stem, frag_tensor images)
{
    frag_picture made = frag_normed_apply(
        in, stem, (frag_picture){frag_tape_keep(in->tape, images), in->network->image});
    made.pixels = frag_aten_relu_in_place(in->tape, made.pixels);
    frag_picture_max_pool(in->tape, &made, (frag_window){made.side, POOL_KERNEL, 2, 1});
    return made;
}

static frag_tensor compute_loss(frag_tape *tape, const frag_model *model, const frag_batch *batch)
{
    const frag_network *network = &model->workload->network;
    pass in = {.tape = tape,
               .model = model,
               .of = get_design(network),
               .batch = batch->count,
               .is_training = model->workload->task == FRAG_TASK_TRAIN};
    frag_walk at = {.tape = tape, .workload = model->workload, .at = model->parameters};
    const frag_normed stem = walk_stem(&at, network);
    frag_picture embedded =
        embed(&(frag_image_pass){tape, model, network, batch->count}, &stem, batch->ids);
    frag_tensor x = embedded.pixels;
    uint64_t channels = in.of->stem;
    in.side = embedded.side;
    for (uint64_t i = 0; i < BLOCKS; i++) {
        run_block(&in, &at, i, &x, &channels);
        if (i + 1 < BLOCKS)
            run_transition(&in, &at, &x, &channels);
    }
    const frag_pair norm = frag_walk_batch_norm(&at, channels);
    frag_tape_set(tape, &x,
                  frag_aten_batch_norm(tape, x, &norm, in.side * in.side, in.is_training));
    x = frag_aten_relu_in_place(tape, x);
    frag_tensor pooled = frag_aten_mean_last(tape, x, in.side * in.side);
    frag_tape_set(tape, &pooled, frag_aten_view(tape, pooled));
    const frag_linear head =
        frag_walk_linear(&at, (frag_shape){network->classes, channels}, true, 0);
    frag_tape_set(tape, &pooled, frag_walk_apply(tape, pooled, &head));
    frag_tape_drop(tape, x);
    return frag_family_loss(tape, pooled, batch);
}

const frag_family frag_family_densenet = {build, frag_family_load_images, compute_loss, NULL};
