/* RegNet X and Y as torchvision 0.24 has them (models/regnet.py): bottlenecks with convolutions of
 * groups, and, of Y, squeeze and excitation. */
#include "workload/families/family.h"

enum { STAGES = 4, STEM_CHANNELS = 32, SQUEEZING = 4 };

typedef struct design {
    uint64_t widths[STAGES], depths[STAGES], group_width;
    bool has_squeeze;
} design;

/* As the numbers of the paper come out, in the order of the field. */
static const design designs[] = {
    {{48, 104, 208, 440}, {1, 3, 6, 6}, 8, true},
    {{64, 144, 320, 784}, {1, 3, 8, 2}, 16, true},
    {{48, 120, 336, 888}, {2, 6, 17, 2}, 24, true},
    {{72, 216, 576, 1512}, {2, 5, 13, 1}, 24, true},
    {{224, 448, 896, 2016}, {2, 4, 10, 1}, 56, true},
    {{224, 448, 1232, 3024}, {2, 4, 11, 1}, 112, true},
    {{232, 696, 1392, 3712}, {2, 5, 12, 1}, 232, true},
    {{528, 1056, 2904, 7392}, {2, 7, 17, 1}, 264, true},
    {{32, 64, 160, 400}, {1, 2, 7, 12}, 16, false},
    {{64, 128, 288, 672}, {1, 3, 7, 5}, 16, false},
    {{72, 168, 408, 912}, {2, 4, 10, 2}, 24, false},
    {{96, 192, 432, 1008}, {2, 6, 15, 2}, 48, false},
    {{80, 240, 720, 1920}, {2, 5, 15, 1}, 120, false},
    {{256, 512, 896, 2048}, {2, 6, 13, 1}, 128, false},
    {{336, 672, 1344, 2520}, {2, 7, 13, 1}, 168, false},
};

static const design *get_design(const frag_network *of)
{
    return &designs[of->variant];
}

typedef struct layer {
    frag_normed shortcut; /* no weight: none */
    frag_normed narrow, middle, widen;
    frag_squeeze squeeze;
} layer;

static layer walk_layer(frag_walk *at, const design *of, uint64_t stage, uint64_t depth)
{
    uint64_t out = of->widths[stage];
    uint64_t before = stage > 0 ? of->widths[stage - 1] : STEM_CHANNELS;
    uint64_t in = depth > 0 ? out : before;
    uint64_t stride = depth > 0 ? 1 : 2;
    uint64_t group = of->group_width < out ? of->group_width : out;
    layer next = {0};
    if (in != out || stride != 1)
        next.shortcut = frag_walk_normed(
            at, (frag_normed){.in = in, .out = out, .kernel = 1, .stride = stride});
    next.narrow = frag_walk_normed(
        at, (frag_normed){
                .in = in, .out = out, .kernel = 1, .stride = 1, .activation = FRAG_IN_PLACE_RELU});
    next.middle = frag_walk_normed(at, (frag_normed){.in = out,
                                                     .out = out,
                                                     .kernel = 3,
                                                     .stride = stride,
                                                     .groups = out / group,
                                                     .activation = FRAG_IN_PLACE_RELU});
    /* A quarter of what goes in, rounded; a half to the even number, as Python does. */
    uint64_t quarter = in / SQUEEZING, rest = in % SQUEEZING;
    uint64_t rounded =
        quarter + (rest * 2 > SQUEEZING || (rest * 2 == SQUEEZING && quarter % 2 == 1));
    if (of->has_squeeze)
        next.squeeze = frag_walk_squeeze(at, (frag_squeeze){.channels = out, .squeezed = rounded});
    next.widen =
        frag_walk_normed(at, (frag_normed){.in = out, .out = out, .kernel = 1, .stride = 1});
    return next;
}

static frag_normed walk_stem(frag_walk *at, const frag_network *of)
{
    return frag_walk_normed(at, (frag_normed){.in = of->image_channels,
                                              .out = STEM_CHANNELS,
                                              .kernel = 3,
                                              .stride = 2,
                                              .activation = FRAG_IN_PLACE_RELU});
}

static frag_linear walk_head(frag_walk *at, const frag_network *of)
{
    uint64_t width = get_design(of)->widths[STAGES - 1];
    return frag_walk_linear(at, (frag_shape){of->classes, width}, true, 0);
}

static void build(frag_walk *at, const frag_network *of)
{
    const design *as = get_design(of);
    (void)walk_stem(at, of);
    for (uint64_t i = 0; i < STAGES; i++)
        for (uint64_t k = 0; k < as->depths[i]; k++)
            (void)walk_layer(at, as, i, k);
    (void)walk_head(at, of);
}

/* activation(x + f(x)); x is borrowed. */
static frag_picture run_layer(const frag_image_pass *in, const layer *at, frag_picture x)
{
    frag_tape *tape = in->tape;
    frag_picture shortcut = at->shortcut.weight != 0 ? frag_unit_apply(in, &at->shortcut, x)
                                                     : frag_picture_keep(tape, x);
    frag_picture hidden = frag_unit_apply(in, &at->narrow, x);
    frag_picture_set(tape, &hidden, frag_unit_apply(in, &at->middle, hidden));
    if (at->squeeze.squeezed > 0)
        frag_picture_set(tape, &hidden, frag_squeeze_apply(in, &at->squeeze, hidden));
    frag_picture_set(tape, &hidden, frag_unit_apply(in, &at->widen, hidden));
    frag_tensor sum = frag_aten_add(tape, shortcut.pixels, hidden.pixels);
    frag_tape_drop(tape, shortcut.pixels);
    frag_tape_set(tape, &hidden.pixels, sum);
    hidden.pixels = frag_aten_relu_in_place(tape, hidden.pixels);
    return hidden;
}

/* x is borrowed, and held until the stage is through. */
static frag_picture run_stage(const frag_image_pass *in, frag_walk *at, const design *as,
                              uint64_t stage, frag_picture x)
{
    frag_picture hidden = frag_picture_keep(in->tape, x);
    for (uint64_t i = 0; i < as->depths[stage]; i++) {
        const layer next = walk_layer(at, as, stage, i);
        frag_picture_set(in->tape, &hidden, run_layer(in, &next, hidden));
    }
    return hidden;
}

static frag_tensor compute_loss(frag_tape *tape, const frag_model *model, const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    const design *as = get_design(of);
    const frag_image_pass in = {tape, model, of, batch->count};
    frag_walk at = {.tape = tape, .workload = model->workload, .at = model->parameters};
    const frag_normed stem = walk_stem(&at, of);
    frag_picture embedded = frag_unit_apply(&in, &stem, (frag_picture){batch->ids, of->image});
    frag_picture hidden = frag_picture_keep(tape, embedded);
    for (uint64_t i = 0; i < STAGES; i++)
        frag_picture_set(tape, &hidden, run_stage(&in, &at, as, i, hidden));
    frag_tape_drop(tape, embedded.pixels);
    frag_tape_set(tape, &hidden.pixels,
                  frag_aten_mean_last(tape, hidden.pixels, hidden.side * hidden.side));
    frag_tape_set(tape, &hidden.pixels, frag_aten_view(tape, hidden.pixels));
    const frag_linear head = walk_head(&at, of);
    return frag_family_classify(tape, &head, hidden.pixels, batch);
}

const frag_family frag_family_regnet = {build, frag_family_load_images, compute_loss, NULL};
