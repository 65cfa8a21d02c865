/* MobileNetV2, MobileNetV3 and EfficientNet as torchvision 0.24 has them (models/mobilenetv2.py,
 * mobilenetv3.py, efficientnet.py): inverted residuals, each a convolution that widens, a depthwise
 * one, one that narrows, and before that, but for V2, squeeze and excitation. */
#include "workload/families/family.h"

enum {
    BLOCKS_MAX = 64,
    STEP = 8,
    SQUEEZING = 4,
    LAST_V2 = 1280,
    STEM_V3 = 16,
    LAST_FACTOR_V3 = 6,
    LAST_FACTOR = 4,
};

typedef struct block {
    uint64_t in, wide, out, kernel, stride, squeezed;
    frag_in_place activation;
    bool begins_stage; /* what goes into the stage is held until it is through */
} block;

/* A network as it is built. */
typedef struct plan {
    block blocks[BLOCKS_MAX];
    uint64_t count;
    uint64_t stem;
    uint64_t last;   /* channels of the convolution behind all blocks */
    uint64_t hidden; /* width of a linear layer before the classifier; 0: none */
    frag_in_place activation;
    bool is_v2;
} plan;

/* Alike blocks but for the first, which may have a stride. */
typedef struct stack {
    uint64_t widening, kernel, stride, channels, depth;
} stack;

static const stack stacks_v2[] = {{1, 3, 1, 16, 1}, {6, 3, 2, 24, 2}, {6, 3, 2, 32, 3},
                                  {6, 3, 2, 64, 4}, {6, 3, 1, 96, 3}, {6, 3, 2, 160, 3},
                                  {6, 3, 1, 320, 1}};
static const stack stacks_efficient[] = {{1, 3, 1, 16, 1}, {6, 3, 2, 24, 2},  {6, 5, 2, 40, 2},
                                         {6, 3, 2, 80, 3}, {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4},
                                         {6, 3, 1, 320, 1}};
enum { STACKS = 7, STACKS_STEM = 32 };

/* Of EfficientNet B0 to B7: by what channels and depths are multiplied. */
static const double efficient_factors[][2] = {{1.0, 1.0}, {1.0, 1.1}, {1.1, 1.2}, {1.2, 1.4},
                                              {1.4, 1.8}, {1.6, 2.2}, {1.8, 2.6}, {2.0, 3.1}};

/* A block of MobileNetV3. */
typedef struct row {
    uint64_t kernel, wide, out;
    bool has_squeeze, is_hardswish;
    uint64_t stride;
} row;

static const row rows_small[] = {
    {3, 16, 16, true, false, 2}, {3, 72, 24, false, false, 2}, {3, 88, 24, false, false, 1},
    {5, 96, 40, true, true, 2},  {5, 240, 40, true, true, 1},  {5, 240, 40, true, true, 1},
    {5, 120, 48, true, true, 1}, {5, 144, 48, true, true, 1},  {5, 288, 96, true, true, 2},
    {5, 576, 96, true, true, 1}, {5, 576, 96, true, true, 1}};
static const row rows_large[] = {
    {3, 16, 16, false, false, 1}, {3, 64, 24, false, false, 2}, {3, 72, 24, false, false, 1},
    {5, 72, 40, true, false, 2},  {5, 120, 40, true, false, 1}, {5, 120, 40, true, false, 1},
    {3, 240, 80, false, true, 2}, {3, 200, 80, false, true, 1}, {3, 184, 80, false, true, 1},
    {3, 184, 80, false, true, 1}, {3, 480, 112, true, true, 1}, {3, 672, 112, true, true, 1},
    {5, 672, 160, true, true, 2}, {5, 960, 160, true, true, 1}, {5, 960, 160, true, true, 1}};
enum {
    ROWS_SMALL = sizeof rows_small / sizeof *rows_small,
    ROWS_LARGE = sizeof rows_large / sizeof *rows_large,
    HIDDEN_SMALL = 1024,
    HIDDEN_LARGE = 1280,
};

static uint64_t scale(uint64_t channels, double by)
{
    return frag_round_channels((double)channels * by, STEP);
}

/* The blocks of stacks, of whose channels and depths there are so many times as many. */
static void plan_stacks(plan *next, const stack stacks[STACKS], const double factors[2])
{
    next->stem = scale(STACKS_STEM, factors[0]);
    uint64_t in = next->stem;
    for (uint64_t i = 0; i < STACKS; i++) {
        const stack *of = &stacks[i];
        double asked = (double)of->depth * factors[1];
        uint64_t depth = (uint64_t)asked;
        depth += (double)depth < asked;
        for (uint64_t k = 0; k < depth; k++) {
            uint64_t squeezed = in / SQUEEZING > 0 ? in / SQUEEZING : 1;
            next->blocks[next->count++] = (block){.in = in,
                                                  .wide = in * of->widening,
                                                  .out = scale(of->channels, factors[0]),
                                                  .kernel = of->kernel,
                                                  .stride = k > 0 ? 1 : of->stride,
                                                  .squeezed = next->is_v2 ? 0 : squeezed,
                                                  .activation = next->activation,
                                                  .begins_stage = k == 0};
            in = next->blocks[next->count - 1].out;
        }
    }
}

static void plan_rows(plan *next, const row *rows, uint64_t count, double by)
{
    next->stem = scale(STEM_V3, by);
    uint64_t in = next->stem;
    for (uint64_t i = 0; i < count; i++) {
        const row *of = &rows[i];
        uint64_t wide = scale(of->wide, by);
        next->blocks[next->count++] = (block){
            .in = in,
            .wide = wide,
            .out = scale(of->out, by),
            .kernel = of->kernel,
            .stride = of->stride,
            .squeezed = of->has_squeeze ? frag_round_channels((double)(wide / SQUEEZING), STEP) : 0,
            .activation = of->is_hardswish ? FRAG_IN_PLACE_COPIED : FRAG_IN_PLACE_RELU,
        };
        in = next->blocks[next->count - 1].out;
    }
}

static plan make_plan(const frag_network *of)
{
    plan next = {.activation = FRAG_IN_PLACE_COPIED};
    if (of->family == FRAG_FAMILY_MOBILENET_V2) {
        next.is_v2 = true;
        next.activation = FRAG_IN_PLACE_COPIED;
        plan_stacks(&next, stacks_v2, (const double[]){of->alpha, 1});
        next.last = scale(LAST_V2, of->alpha > 1 ? of->alpha : 1);
        return next;
    }
    if (of->family == FRAG_FAMILY_EFFICIENTNET)
        plan_stacks(&next, stacks_efficient, efficient_factors[of->variant]);
    else if (of->variant == 0)
        plan_rows(&next, rows_small, ROWS_SMALL, of->alpha);
    else
        plan_rows(&next, rows_large, ROWS_LARGE, of->alpha);
    uint64_t out = next.blocks[next.count - 1].out;
    bool is_v3 = of->family == FRAG_FAMILY_MOBILENET_V3;
    next.last = (is_v3 ? LAST_FACTOR_V3 : LAST_FACTOR) * out;
    if (is_v3)
        next.hidden = scale(of->variant == 0 ? HIDDEN_SMALL : HIDDEN_LARGE, of->alpha);
    return next;
}

/* Parameters of a block. */
typedef struct layer {
    frag_normed widen; /* no weight: there is none */
    frag_normed depth;
    frag_squeeze squeeze;
    frag_normed narrow;
} layer;

static layer walk_layer(frag_walk *at, const frag_network *network, const block *of)
{
    layer next = {0};
    if (of->wide != of->in)
        next.widen = frag_walk_normed(at, (frag_normed){.in = of->in,
                                                        .out = of->wide,
                                                        .kernel = 1,
                                                        .stride = 1,
                                                        .activation = of->activation});
    next.depth = frag_walk_normed(at, (frag_normed){.in = of->wide,
                                                    .out = of->wide,
                                                    .kernel = of->kernel,
                                                    .stride = of->stride,
                                                    .is_depthwise = true,
                                                    .activation = of->activation});
    if (of->squeezed > 0)
        next.squeeze = frag_walk_squeeze(
            at, (frag_squeeze){.channels = of->wide,
                               .squeezed = of->squeezed,
                               .is_silu = network->family == FRAG_FAMILY_EFFICIENTNET,
                               .is_hard = network->family == FRAG_FAMILY_MOBILENET_V3});
    next.narrow = frag_walk_normed(
        at, (frag_normed){.in = of->wide, .out = of->out, .kernel = 1, .stride = 1});
    return next;
}

static frag_normed walk_stem(frag_walk *at, const frag_network *network, const plan *of)
{
    return frag_walk_normed(at, (frag_normed){.in = network->image_channels,
                                              .out = of->stem,
                                              .kernel = 3,
                                              .stride = 2,
                                              .activation = of->activation});
}

typedef struct head {
    frag_normed widen;
    frag_linear hidden;
    frag_linear classes;
} head;

static head walk_head(frag_walk *at, const frag_network *network, const plan *of)
{
    head next = {.widen = frag_walk_normed(at, (frag_normed){.in = of->blocks[of->count - 1].out,
                                                             .out = of->last,
                                                             .kernel = 1,
                                                             .stride = 1,
                                                             .activation = of->activation})};
    if (of->hidden > 0)
        next.hidden = frag_walk_linear(at, (frag_shape){of->hidden, of->last}, true, 0);
    uint64_t width = of->hidden > 0 ? of->hidden : of->last;
    next.classes = frag_walk_linear(at, (frag_shape){network->classes, width}, true, 0);
    return next;
}

static void build(frag_walk *at, const frag_network *network)
{
    const plan of = make_plan(network);
    (void)walk_stem(at, network, &of);
    for (uint64_t i = 0; i < of.count; i++)
        (void)walk_layer(at, network, &of.blocks[i]);
    (void)walk_head(at, network, &of);
}

static void run_unit(const frag_image_pass *in, const frag_normed *at, frag_picture *x)
{
    frag_picture_set(in->tape, x, frag_unit_apply(in, at, *x));
}

/* StochasticDepth: a number for each image, which keeps it or not. */
static void drop_path(const frag_image_pass *in, uint64_t number, frag_picture *x)
{
    if (number == 0 || !frag_model_drops(in->model, in->network->drop_path))
        return;
    frag_tensor noise = frag_tape_empty(in->tape, in->batch, frag_tape_dtype(in->tape, x->pixels));
    frag_tensor made = frag_aten_mul(in->tape, x->pixels, noise);
    frag_tape_drop(in->tape, noise);
    frag_tape_set(in->tape, &x->pixels, made);
}

/* x is borrowed, and held until the block is through. */
static frag_picture run_block(const frag_image_pass *in, const plan *as, const layer *at,
                              uint64_t number, frag_picture x)
{
    const block *of = &as->blocks[number];
    frag_tape *tape = in->tape;
    frag_picture hidden = frag_picture_keep(tape, x);
    if (at->widen.weight != 0)
        run_unit(in, &at->widen, &hidden);
    run_unit(in, &at->depth, &hidden);
    if (of->squeezed > 0)
        frag_picture_set(tape, &hidden, frag_squeeze_apply(in, &at->squeeze, hidden));
    if (as->is_v2)
        hidden = frag_normed_apply(in, &at->narrow, hidden);
    else
        run_unit(in, &at->narrow, &hidden);
    if (of->stride != 1 || of->in != of->out)
        return hidden;
    if (as->is_v2) {
        frag_tape_set(tape, &hidden.pixels, frag_aten_add(tape, x.pixels, hidden.pixels));
        return hidden;
    }
    if (in->network->family == FRAG_FAMILY_EFFICIENTNET)
        drop_path(in, number, &hidden);
    hidden.pixels = frag_aten_add_in_place(tape, hidden.pixels, x.pixels);
    return hidden;
}

/* EfficientNet's stages are modules, which hold what goes into them. */
static frag_picture run_blocks(const frag_image_pass *in, const plan *of, frag_walk *at,
                               frag_picture x)
{
    frag_picture held = {0, 0};
    for (uint64_t i = 0; i < of->count; i++) {
        if (of->blocks[i].begins_stage && in->network->family == FRAG_FAMILY_EFFICIENTNET)
            frag_picture_set(in->tape, &held, frag_picture_keep(in->tape, x));
        const layer next = walk_layer(at, in->network, &of->blocks[i]);
        frag_picture_set(in->tape, &x, run_block(in, of, &next, i, x));
    }
    frag_tape_drop(in->tape, held.pixels);
    return x;
}

/* pooled is used up, and held until its classes are there. */
static frag_tensor classify(const frag_image_pass *in, const plan *of, const head *at,
                            frag_tensor pooled)
{
    frag_tape *tape = in->tape;
    double share = in->network->residual_dropout;
    bool is_dropping = frag_model_drops(in->model, share);
    frag_tensor hidden = frag_tape_keep(tape, pooled);
    if (of->is_v2)
        frag_tape_set(tape, &hidden, frag_model_drop_out(tape, in->model, hidden, share));
    else if (of->hidden == 0) {
        frag_tape_drop(tape, hidden);
        pooled = frag_aten_dropout_in_view(tape, pooled, is_dropping);
        hidden = frag_tape_keep(tape, pooled);
    } else {
        frag_tape_set(tape, &hidden, frag_walk_apply(tape, hidden, &at->hidden));
        hidden = frag_aten_map_in_place(tape, hidden);
        hidden = frag_aten_dropout_in_place(tape, hidden, is_dropping);
    }
    frag_tape_set(tape, &hidden, frag_walk_apply(tape, hidden, &at->classes));
    frag_tape_drop(tape, pooled);
    return hidden;
}

static frag_tensor compute_loss(frag_tape *tape, const frag_model *model, const frag_batch *batch)
{
    const frag_network *network = &model->workload->network;
    const plan of = make_plan(network);
    const frag_image_pass in = {tape, model, network, batch->count};
    frag_walk at = {.tape = tape, .workload = model->workload, .at = model->parameters};
    frag_picture x = {frag_tape_keep(tape, batch->ids), network->image};
    const frag_normed stem = walk_stem(&at, network, &of);
    run_unit(&in, &stem, &x);
    x = run_blocks(&in, &of, &at, x);
    const head last = walk_head(&at, network, &of);
    run_unit(&in, &last.widen, &x);
    frag_tape_set(tape, &x.pixels, frag_aten_mean_last(tape, x.pixels, x.side * x.side));
    frag_tape_set(tape, &x.pixels, frag_aten_view(tape, x.pixels));
    return frag_family_loss(tape, classify(&in, &of, &last, x.pixels), batch);
}

const frag_family frag_family_inverted = {build, frag_family_load_images, compute_loss, NULL};
