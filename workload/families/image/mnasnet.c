/* MnasNet as torchvision 0.24 has it (models/mnasnet.py): depthwise convolutions between two that
 * widen and narrow, with a batch norm behind each and activations in place. */
#include "workload/families/family.h"

enum { PARTS = 3, STACKS = 6, LAST_CHANNELS = 1280, CHANNELS_STEP = 8 };

/* Of the stacks, as the paper has them; channels are multiplied by alpha. */
typedef struct stack {
    uint64_t channels, kernel, stride, widening, depth;
} stack;

static const stack stacks[STACKS] = {{24, 3, 2, 3, 3}, {40, 5, 2, 3, 3},  {80, 5, 2, 6, 3},
                                     {96, 3, 1, 6, 2}, {192, 5, 2, 6, 4}, {320, 3, 1, 6, 1}};

enum { STEM_CHANNELS = 32, FIRST_CHANNELS = 16 };

static uint64_t scale_channels(const frag_network *of, uint64_t channels)
{
    return frag_round_channels((double)channels * of->alpha, CHANNELS_STEP);
}

/* Convolutions one behind the other, an activation between them. */
typedef struct row {
    frag_normed parts[PARTS];
    bool has_residual;
} row;

static row walk_row(frag_walk *at, const frag_normed parts[PARTS])
{
    row next = {.has_residual = false};
    for (uint32_t i = 0; i < PARTS; i++)
        next.parts[i] = frag_walk_normed(at, parts[i]);
    return next;
}

static row walk_stem(frag_walk *at, const frag_network *of)
{
    uint64_t channels = scale_channels(of, STEM_CHANNELS);
    const frag_normed parts[PARTS] = {
        {.in = of->image_channels, .out = channels, .kernel = 3, .stride = 2},
        {.in = channels, .out = channels, .kernel = 3, .stride = 1, .is_depthwise = true},
        {.in = channels, .out = scale_channels(of, FIRST_CHANNELS), .kernel = 1, .stride = 1}};
    return walk_row(at, parts);
}

static row walk_layer(frag_walk *at, const frag_network *of, uint64_t number, uint64_t depth)
{
    const stack *in = &stacks[number];
    uint64_t out = scale_channels(of, in->channels);
    uint64_t before = scale_channels(of, number > 0 ? stacks[number - 1].channels : FIRST_CHANNELS);
    uint64_t channels = depth > 0 ? out : before;
    uint64_t wide = channels * in->widening;
    uint64_t stride = depth > 0 ? 1 : in->stride;
    const frag_normed parts[PARTS] = {
        {.in = channels, .out = wide, .kernel = 1, .stride = 1},
        {.in = wide, .out = wide, .kernel = in->kernel, .stride = stride, .is_depthwise = true},
        {.in = wide, .out = out, .kernel = 1, .stride = 1}};
    row next = walk_row(at, parts);
    next.has_residual = channels == out && stride == 1;
    return next;
}

typedef struct head {
    frag_normed widen;
    frag_linear classes;
} head;

static head walk_head(frag_walk *at, const frag_network *of)
{
    head next = {.widen = frag_walk_normed(
                     at, (frag_normed){.in = scale_channels(of, stacks[STACKS - 1].channels),
                                       .out = LAST_CHANNELS,
                                       .kernel = 1,
                                       .stride = 1})};
    next.classes = frag_walk_linear(at, (frag_shape){of->classes, LAST_CHANNELS}, true, 0);
    return next;
}

static void build(frag_walk *at, const frag_network *of)
{
    (void)walk_stem(at, of);
    for (uint64_t i = 0; i < STACKS; i++)
        for (uint64_t k = 0; k < stacks[i].depth; k++)
            (void)walk_layer(at, of, i, k);
    (void)walk_head(at, of);
}

/* What goes into a row is held until it is through. */
static frag_picture run_row(const frag_image_pass *in, const row *at, frag_picture x)
{
    frag_picture hidden = frag_picture_keep(in->tape, x);
    for (uint32_t i = 0; i < PARTS; i++) {
        hidden = frag_normed_apply(in, &at->parts[i], hidden);
        if (i + 1 < PARTS)
            hidden.pixels = frag_aten_relu_in_place(in->tape, hidden.pixels);
    }
    if (at->has_residual)
        frag_tape_set(in->tape, &hidden.pixels, frag_aten_add(in->tape, hidden.pixels, x.pixels));
    return hidden;
}

/* So is what goes into a stack. */
static frag_picture run_stack(const frag_image_pass *in, frag_walk *at, uint64_t number,
                              frag_picture x)
{
    frag_picture hidden = frag_picture_keep(in->tape, x);
    for (uint64_t i = 0; i < stacks[number].depth; i++) {
        const row next = walk_layer(at, in->network, number, i);
        frag_picture_set(in->tape, &hidden, run_row(in, &next, hidden));
    }
    return hidden;
}

static frag_tensor compute_loss(frag_tape *tape, const frag_model *model, const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    const frag_image_pass in = {tape, model, of, batch->count};
    frag_walk at = {.tape = tape, .workload = model->workload, .at = model->parameters};
    const row stem = walk_stem(&at, of);
    frag_picture hidden = run_row(&in, &stem, (frag_picture){batch->ids, of->image});
    for (uint64_t i = 0; i < STACKS; i++)
        frag_picture_set(tape, &hidden, run_stack(&in, &at, i, hidden));
    const head last = walk_head(&at, of);
    frag_picture wide = frag_normed_apply(&in, &last.widen, hidden);
    wide.pixels = frag_aten_relu_in_place(tape, wide.pixels);
    frag_tensor pooled = frag_aten_mean_last(tape, wide.pixels, wide.side * wide.side);
    frag_tape_drop(tape, wide.pixels);
    bool is_dropping = frag_model_drops(model, of->residual_dropout);
    pooled = frag_aten_dropout_in_place(tape, pooled, is_dropping);
    return frag_family_classify(tape, &last.classes, pooled, batch);
}

const frag_family frag_family_mnasnet = {build, frag_family_load_images, compute_loss, NULL};
