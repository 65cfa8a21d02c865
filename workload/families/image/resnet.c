/* ResNet with a classifier, as transformers 5 has it (models/resnet/modeling_resnet.py). */
#include "workload/families/family.h"

enum { STEM_KERNEL = 7, POOL_KERNEL = 3, NARROWING = 4, PARTS_MAX = 3 };

typedef struct layer {
    frag_normed shortcut; /* no weight: none */
    frag_normed parts[PARTS_MAX];
    uint32_t part_count;
} layer;

static layer walk_layer(frag_walk *at, const frag_network *of, uint64_t in, uint64_t out,
                        uint64_t stride)
{
    layer next = {.part_count = of->layer == FRAG_LAYER_BASIC ? 2 : PARTS_MAX};
    if (in != out || stride != 1)
        next.shortcut = frag_walk_normed(
            at, (frag_normed){.in = in, .out = out, .kernel = 1, .stride = stride});
    uint64_t narrow = out / NARROWING;
    bool is_first_halved = of->is_narrowed_halved;
    const frag_normed basic[] = {{.in = in, .out = out, .kernel = 3, .stride = stride},
                                 {.in = out, .out = out, .kernel = 3, .stride = 1}};
    const frag_normed bottleneck[] = {
        {.in = in, .out = narrow, .kernel = 1, .stride = is_first_halved ? stride : 1},
        {.in = narrow, .out = narrow, .kernel = 3, .stride = is_first_halved ? 1 : stride},
        {.in = narrow, .out = out, .kernel = 1, .stride = 1}};
    for (uint32_t i = 0; i < next.part_count; i++)
        next.parts[i] =
            frag_walk_normed(at, of->layer == FRAG_LAYER_BASIC ? basic[i] : bottleneck[i]);
    return next;
}

static frag_normed walk_stem(frag_walk *at, const frag_network *of)
{
    return frag_walk_normed(
        at, (frag_normed){
                .in = of->image_channels, .out = of->width, .kernel = STEM_KERNEL, .stride = 2});
}

static frag_linear walk_head(frag_walk *at, const frag_network *of)
{
    uint64_t width = of->channels.values[of->channels.count - 1];
    return frag_walk_linear(at, (frag_shape){of->classes, width}, true, 0);
}

/* Channels that go into a layer of a stage, and by how much it makes the image smaller. */
static uint64_t count_inputs(const frag_network *of, uint64_t stage, uint64_t depth)
{
    if (depth > 0)
        return of->channels.values[stage];
    return stage > 0 ? of->channels.values[stage - 1] : of->width;
}

static uint64_t find_stride(const frag_network *of, uint64_t stage, uint64_t depth)
{
    return depth == 0 && (stage > 0 || of->is_first_halved) ? 2 : 1;
}

static layer walk_next(frag_walk *at, const frag_network *of, uint64_t stage, uint64_t depth)
{
    return walk_layer(at, of, count_inputs(of, stage, depth), of->channels.values[stage],
                      find_stride(of, stage, depth));
}

static void build(frag_walk *at, const frag_network *of)
{
    (void)walk_stem(at, of);
    for (uint64_t i = 0; i < of->depths.count; i++)
        for (uint64_t k = 0; k < of->depths.values[i]; k++)
            (void)walk_next(at, of, i, k);
    (void)walk_head(at, of);
}

static void activate(const frag_image_pass *in, frag_picture *x)
{
    frag_activation activation = (frag_activation)in->network->activation;
    if (in->model->workload->is_inplace)
        x->pixels = frag_aten_relu_in_place(in->tape, x->pixels);
    else
        frag_tape_set(in->tape, &x->pixels, frag_family_activate(in->tape, x->pixels, activation));
}

static frag_picture run_layer(const frag_image_pass *in, const layer *at, frag_picture x)
{
    frag_picture hidden = frag_picture_keep(in->tape, x);
    for (uint32_t i = 0; i < at->part_count; i++) {
        frag_picture next =
            frag_normed_apply(in, &at->parts[i], frag_picture_keep(in->tape, hidden));
        if (i + 1 < at->part_count)
            activate(in, &next);
        frag_picture_set(in->tape, &hidden, next);
    }
    frag_picture residual =
        at->shortcut.weight != 0
            ? frag_normed_apply(in, &at->shortcut, frag_picture_keep(in->tape, x))
            : frag_picture_keep(in->tape, x);
    hidden.pixels = frag_aten_add_in_place(in->tape, hidden.pixels, residual.pixels);
    activate(in, &hidden);
    frag_tape_drop(in->tape, residual.pixels);
    return hidden;
}

/* A stage holds what came into it until it is through. */
static frag_picture run_stage(const frag_image_pass *in, frag_walk *at, uint64_t stage,
                              frag_picture x)
{
    frag_picture hidden = frag_picture_keep(in->tape, x);
    for (uint64_t i = 0; i < in->network->depths.values[stage]; i++) {
        layer next = walk_next(at, in->network, stage, i);
        frag_picture_set(in->tape, &hidden, run_layer(in, &next, hidden));
    }
    return hidden;
}

static frag_picture embed(const frag_image_pass *in, const frag_normed *stem, frag_tensor images)
{
    frag_picture made = frag_normed_apply(
        in, stem, (frag_picture){frag_tape_keep(in->tape, images), in->network->image});
    activate(in, &made);
    frag_picture_max_pool(in->tape, &made, (frag_window){made.side, POOL_KERNEL, 2, 1});
    return made;
}

/* Names of the forward pass are given back in the order of Python's frames. */
static frag_tensor compute_loss(frag_tape *tape, const frag_model *model, const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    const frag_image_pass in = {tape, model, of, batch->count};
    frag_walk at = {.tape = tape, .workload = model->workload, .at = model->parameters};
    const frag_normed stem = walk_stem(&at, of);
    frag_picture embedded = embed(&in, &stem, batch->ids);
    frag_picture hidden = frag_picture_keep(tape, embedded);
    for (uint64_t i = 0; i < of->depths.count; i++)
        frag_picture_set(tape, &hidden, run_stage(&in, &at, i, hidden));
    frag_tensor pooled = frag_aten_mean_last(tape, hidden.pixels, hidden.side * hidden.side);
    frag_tape_drop(tape, embedded.pixels);
    const frag_linear head = walk_head(&at, of);
    frag_tensor loss = frag_family_classify(tape, &head, frag_aten_view(tape, pooled), batch);
    frag_tape_drop(tape, hidden.pixels);
    frag_tape_drop(tape, pooled);
    return loss;
}

const frag_family frag_family_resnet = {build, frag_family_load_images, compute_loss, NULL};
