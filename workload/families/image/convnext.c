/* ConvNeXt with a classifier, as transformers 5 has it (models/convnext/modeling_convnext.py).
 * Behind the first layer norm images lie with channels last, as convolutions then keep them. */
#include "workload/families/family.h"

enum { DEPTH_KERNEL = 7, DEPTH_PADDING = 3, HALVING = 2, WIDENING = 4 };

typedef struct layer {
    frag_tensor scale; /* of each channel; 0: none */
    frag_pair depthwise, norm;
    frag_linear feed, back;
    uint64_t width;
} layer;

/* A norm, and a convolution that makes the image smaller. */
typedef struct reduction {
    frag_pair norm, convolution;
} reduction;

/* in: of each output. */
static frag_pair walk_convolution(frag_walk *at, uint64_t in, uint64_t out, uint64_t kernel)
{
    frag_pair next = {.weight = frag_walk_kernels(at, (frag_kernels){kernel, in, out})};
    next.bias = frag_walk_parameter(at, (frag_shape){0, out});
    return next;
}

/* The scale moves to the GPU last, but is named first. */
static layer walk_layer(frag_walk *at, const frag_network *of, uint64_t width)
{
    enum { PARTS = 9 };
    bool has_scale = of->layer_scale > 0;
    layer next = {.width = width};
    if (has_scale && at->model == NULL)
        next.scale = frag_walk_parameter(at, (frag_shape){0, width});
    next.depthwise = walk_convolution(at, 1, width, DEPTH_KERNEL);
    next.norm = frag_walk_norm(at, width);
    next.feed = frag_walk_linear(at, (frag_shape){WIDENING * width, width}, true, 0);
    next.back = frag_walk_linear(at, (frag_shape){width, WIDENING * width}, true, 0);
    if (has_scale && at->model != NULL) {
        next.scale = frag_walk_parameter(at, (frag_shape){0, width});
        frag_model_name_first(at->model, PARTS, 1);
    }
    return next;
}

/* In the first stage the patches are made, and the norm comes behind them. */
static reduction walk_reduction(frag_walk *at, const frag_network *of, uint64_t stage)
{
    const uint64_t *channels = of->channels.values;
    reduction next = {{0, 0}, {0, 0}};
    if (stage == 0) {
        next.convolution = walk_convolution(at, of->image_channels, channels[0], of->patch);
        next.norm = frag_walk_norm(at, channels[0]);
        return next;
    }
    next.norm = frag_walk_norm(at, channels[stage - 1]);
    next.convolution = walk_convolution(at, channels[stage - 1], channels[stage], HALVING);
    return next;
}

typedef struct head {
    frag_pair norm;
    frag_linear classes;
} head;

static head walk_head(frag_walk *at, const frag_network *of)
{
    uint64_t width = of->channels.values[of->channels.count - 1];
    head next = {.norm = frag_walk_norm(at, width)};
    next.classes = frag_walk_linear(at, (frag_shape){of->classes, width}, true, 0);
    return next;
}

static void build(frag_walk *at, const frag_network *of)
{
    for (uint64_t i = 0; i < of->depths.count; i++) {
        (void)walk_reduction(at, of, i);
        for (uint64_t k = 0; k < of->depths.values[i]; k++)
            (void)walk_layer(at, of, of->channels.values[i]);
    }
    (void)walk_head(at, of);
}

/* The gradient of the mean of pixels has channels before them, up to where the last stage begins.
 */
static bool is_last(const frag_image_pass *in, uint64_t stage)
{
    return stage + 1 == in->network->depths.count;
}

/* ConvNextDropPath: a number for each image, which keeps it or not. */
static frag_tensor drop_path(const frag_image_pass *in, uint64_t number, frag_tensor x)
{
    if (number == 0 ||
        !frag_model_drops(in->model, in->network->drop_path)) /* the first has none */
        return frag_tape_keep(in->tape, x);
    frag_dtype dtype = frag_tape_dtype(in->tape, x);
    frag_tensor random = frag_tape_empty(in->tape, in->batch, dtype);
    frag_tensor moved = frag_tape_empty(in->tape, in->batch, dtype);
    frag_tape_set(in->tape, &random, frag_tape_empty(in->tape, in->batch, dtype));
    frag_tape_drop(in->tape, moved);
    frag_tensor scaled = frag_aten_mul_scalar(in->tape, x);
    frag_tensor made = frag_aten_mul(in->tape, scaled, random);
    frag_tape_drop(in->tape, scaled);
    frag_tape_drop(in->tape, random);
    return made;
}

/* A layer's first convolution. An image of one pixel that comes out of another layer is not seen to
 * have channels last. */
static frag_tensor convolve(const frag_image_pass *in, const layer *at, frag_picture x,
                            bool is_first)
{
    bool is_seen = x.side > 1 || is_first;
    return frag_aten_convolve(
        in->tape, x.pixels,
        &(frag_aten_convolution){.weight = at->depthwise.weight,
                                 .bias = at->depthwise.bias,
                                 .batch = in->batch,
                                 .in_channels = at->width,
                                 .out_channels = at->width,
                                 .window = {x.side, DEPTH_KERNEL, 1, DEPTH_PADDING},
                                 .is_depthwise = true,
                                 .is_channels_last = is_seen,
                                 .is_turned = !is_seen});
}

/* Where a layer stands: in its stage, and among all of them. */
typedef struct place {
    uint64_t stage, in_stage, number;
} place;

/* x + drop_path(scale * back(activation(feed(norm(depthwise(x)))))) */
static frag_tensor run_layer(const frag_image_pass *in, const layer *at, const place *where,
                             frag_picture x)
{
    frag_tape *tape = in->tape;
    bool has_turned_gradient = is_last(in, where->stage) && x.side > 1;
    frag_linear back = at->back;
    back.images = has_turned_gradient ? in->batch : 0;
    frag_tensor made = convolve(in, at, x, where->in_stage == 0);
    frag_tape_set(tape, &made, frag_aten_view(tape, made));
    frag_tape_set(tape, &made, frag_aten_layer_norm(tape, made, &at->norm, at->width));
    frag_tape_set(tape, &made, frag_walk_apply(tape, made, &at->feed));
    frag_tape_set(tape, &made,
                  frag_family_activate(tape, made, (frag_activation)in->network->activation));
    frag_tape_set(tape, &made, frag_walk_apply(tape, made, &back));
    if (at->scale != 0)
        frag_tape_set(tape, &made, frag_aten_scale(tape, at->scale, made, has_turned_gradient));
    frag_tape_set(tape, &made, frag_aten_view(tape, made));
    frag_tensor kept = drop_path(in, where->number, made);
    frag_tape_set(tape, &made, frag_aten_add(tape, x.pixels, kept));
    frag_tape_drop(tape, kept);
    return made;
}

/* Patches become pixels, of which the norm makes a copy with channels last. */
static frag_picture embed(const frag_image_pass *in, const reduction *at, frag_tensor images)
{
    const frag_network *of = in->network;
    frag_tape *tape = in->tape;
    const frag_aten_convolution how = {.weight = at->convolution.weight,
                                       .bias = at->convolution.bias,
                                       .batch = in->batch,
                                       .in_channels = of->image_channels,
                                       .out_channels = of->channels.values[0],
                                       .window = {of->image, of->patch, of->patch, 0},
                                       .is_turned = true};
    frag_picture made = {frag_aten_convolve(tape, images, &how),
                         frag_aten_window_side(&how.window)};
    frag_tape_set(tape, &made.pixels, frag_aten_view(tape, made.pixels));
    frag_tape_set(
        tape, &made.pixels,
        frag_aten_layer_norm_laid(tape, made.pixels, &at->norm, of->channels.values[0],
                                  is_last(in, 0) ? FRAG_NORM_TURNED_BOTH : FRAG_NORM_TURNED));
    frag_tape_set(tape, &made.pixels, frag_aten_view(tape, made.pixels));
    return made;
}

/* An image of half the side; x stays. */
static frag_picture halve(const frag_image_pass *in, const reduction *at, uint64_t stage,
                          frag_picture x)
{
    frag_tape *tape = in->tape;
    const uint64_t *channels = in->network->channels.values;
    const frag_aten_convolution how = {.weight = at->convolution.weight,
                                       .bias = at->convolution.bias,
                                       .batch = in->batch,
                                       .in_channels = channels[stage - 1],
                                       .out_channels = channels[stage],
                                       .window = {x.side, HALVING, HALVING, 0},
                                       .is_channels_last = true,
                                       .is_turned = is_last(in, stage)};
    frag_picture made = {0, frag_aten_window_side(&how.window)};
    frag_tensor normed = frag_aten_view(tape, x.pixels);
    frag_tape_set(tape, &normed,
                  frag_aten_layer_norm(tape, normed, &at->norm, channels[stage - 1]));
    frag_tape_set(tape, &normed, frag_aten_view(tape, normed));
    made.pixels = frag_aten_convolve(tape, normed, &how);
    frag_tape_drop(tape, normed);
    return made;
}

/* number: of the layers before it. */
static frag_picture run_stage(const frag_image_pass *in, frag_walk *at, uint64_t stage,
                              uint64_t number, frag_picture x)
{
    frag_picture made = x;
    if (stage > 0) {
        const reduction before = walk_reduction(at, in->network, stage);
        made = halve(in, &before, stage, x);
    } else
        (void)frag_tape_keep(in->tape, x.pixels);
    for (uint64_t i = 0; i < in->network->depths.values[stage]; i++) {
        const layer next = walk_layer(at, in->network, in->network->channels.values[stage]);
        const place where = {stage, i, number + i};
        frag_tape_set(in->tape, &made.pixels, run_layer(in, &next, &where, made));
    }
    return made;
}

static frag_tensor pool(const frag_image_pass *in, const frag_pair *norm, frag_picture x)
{
    frag_tensor mean = frag_aten_mean_pixels(in->tape, x.pixels, x.side * x.side);
    uint64_t width = in->network->channels.values[in->network->channels.count - 1];
    frag_tape_set(in->tape, &mean, frag_aten_layer_norm(in->tape, mean, norm, width));
    return mean;
}

static frag_tensor compute_loss(frag_tape *tape, const frag_model *model, const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    const frag_image_pass in = {tape, model, of, batch->count};
    frag_walk at = {.tape = tape, .workload = model->workload, .at = model->parameters};
    const reduction stem = walk_reduction(&at, of, 0);
    frag_picture embedded = embed(&in, &stem, batch->ids);
    frag_picture hidden = frag_picture_keep(tape, embedded);
    uint64_t number = 0;
    for (uint64_t i = 0; i < of->depths.count; i++) {
        frag_picture_set(tape, &hidden, run_stage(&in, &at, i, number, hidden));
        number += of->depths.values[i];
    }
    const head last = walk_head(&at, of);
    frag_tensor pooled = pool(&in, &last.norm, hidden);
    frag_tape_drop(tape, embedded.pixels);
    frag_tensor loss =
        frag_family_classify(tape, &last.classes, frag_tape_keep(tape, pooled), batch);
    frag_tape_drop(tape, hidden.pixels);
    frag_tape_drop(tape, pooled);
    return loss;
}

const frag_family frag_family_convnext = {build, frag_family_load_images, compute_loss, NULL};
