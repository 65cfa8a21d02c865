/* ResNet with a classifier, as transformers 5 has it (models/resnet/modeling_resnet.py). */
#include "workload/families/family.h"

enum { STEM_KERNEL = 7, POOL_KERNEL = 3, NARROWING = 4, PARTS_MAX = 3 };

/* A convolution without a bias, and the batch norm behind it. */
typedef struct part {
    frag_tensor weight, norm_weight, norm_bias;
    uint64_t in, out, kernel, stride;
} part;

typedef struct layer {
    part shortcut; /* no weight: none */
    part parts[PARTS_MAX];
    uint32_t part_count;
} layer;

/* Running statistics of the norm are buffers: two in the type of the model, and a count. */
static part walk_part(frag_walk *at, const part *shape)
{
    part next = *shape;
    next.weight =
        frag_walk_matrices(at, (frag_shape){next.kernel, next.kernel}, next.in * next.out);
    next.norm_weight = frag_walk_parameter(at, (frag_shape){0, next.out});
    next.norm_bias = frag_walk_parameter(at, (frag_shape){0, next.out});
    if (at->model != NULL) {
        for (uint32_t i = 0; i < 2; i++)
            frag_model_add_buffer(at->tape, at->model, next.out, at->model->dtype);
        frag_model_add_buffer(at->tape, at->model, 1, FRAG_I64);
    }
    return next;
}

static layer walk_layer(frag_walk *at, const frag_network *of, uint64_t in, uint64_t out,
                        uint64_t stride)
{
    layer next = {.part_count = of->layer == FRAG_LAYER_BASIC ? 2 : PARTS_MAX};
    if (in != out || stride != 1)
        next.shortcut = walk_part(at, &(part){.in = in, .out = out, .kernel = 1, .stride = stride});
    uint64_t narrow = out / NARROWING;
    bool is_first_halved = of->is_narrowed_halved;
    const part basic[] = {{.in = in, .out = out, .kernel = 3, .stride = stride},
                          {.in = out, .out = out, .kernel = 3, .stride = 1}};
    const part bottleneck[] = {
        {.in = in, .out = narrow, .kernel = 1, .stride = is_first_halved ? stride : 1},
        {.in = narrow, .out = narrow, .kernel = 3, .stride = is_first_halved ? 1 : stride},
        {.in = narrow, .out = out, .kernel = 1, .stride = 1}};
    for (uint32_t i = 0; i < next.part_count; i++)
        next.parts[i] = walk_part(at, of->layer == FRAG_LAYER_BASIC ? &basic[i] : &bottleneck[i]);
    return next;
}

static part walk_stem(frag_walk *at, const frag_network *of)
{
    return walk_part(
        at,
        &(part){.in = of->image_channels, .out = of->width, .kernel = STEM_KERNEL, .stride = 2});
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

static void build(frag_tape *tape, frag_model *model)
{
    const frag_network *of = &model->workload->network;
    frag_walk at = {.tape = tape, .workload = model->workload, .model = model};
    (void)walk_stem(&at, of);
    for (uint64_t i = 0; i < of->depths.count; i++)
        for (uint64_t k = 0; k < of->depths.values[i]; k++)
            (void)walk_next(&at, of, i, k);
    (void)walk_head(&at, of);
}

/* What all of a forward pass knows. */
typedef struct pass {
    frag_tape *tape;
    const frag_network *network;
    bool is_inplace; /* activations lie where their inputs did */
    uint64_t batch;
    bool is_training;
} pass;

/* An image with equal sides on its way through the network. */
typedef struct picture {
    frag_tensor pixels;
    uint64_t side;
} picture;

/* norm(convolution(x)); x stays. */
static picture convolve(const pass *in, const part *at, picture x)
{
    frag_tape *tape = in->tape;
    const frag_aten_convolution of = {.weight = at->weight,
                                      .batch = in->batch,
                                      .in_channels = at->in,
                                      .out_channels = at->out,
                                      .window = {x.side, at->kernel, at->stride, at->kernel / 2}};
    picture made = {frag_aten_convolve(tape, x.pixels, &of), frag_aten_window_side(&of.window)};
    frag_tape_set(
        tape, &made.pixels,
        frag_aten_batch_norm(tape, made.pixels, at->norm_weight, at->norm_bias, in->is_training));
    return made;
}

static void activate(const pass *in, picture *x)
{
    frag_activation activation = (frag_activation)in->network->activation;
    if (in->is_inplace)
        x->pixels = frag_aten_relu_in_place(in->tape, x->pixels);
    else
        frag_tape_set(in->tape, &x->pixels, frag_family_activate(in->tape, x->pixels, activation));
}

static picture keep(const pass *in, picture x)
{
    return (picture){frag_tape_keep(in->tape, x.pixels), x.side};
}

/* name = value */
static void set(const pass *in, picture *name, picture value)
{
    frag_tape_drop(in->tape, name->pixels);
    *name = value;
}

static picture run_layer(const pass *in, const layer *at, picture x)
{
    picture hidden = keep(in, x);
    for (uint32_t i = 0; i < at->part_count; i++) {
        picture next = convolve(in, &at->parts[i], hidden);
        if (i + 1 < at->part_count)
            activate(in, &next);
        set(in, &hidden, next);
    }
    picture residual = at->shortcut.weight != 0 ? convolve(in, &at->shortcut, x) : keep(in, x);
    hidden.pixels = frag_aten_add_in_place(in->tape, hidden.pixels, residual.pixels);
    activate(in, &hidden);
    frag_tape_drop(in->tape, residual.pixels);
    return hidden;
}

/* A stage holds what came into it until it is through. */
static picture run_stage(const pass *in, frag_walk *at, uint64_t stage, picture x)
{
    picture hidden = keep(in, x);
    for (uint64_t i = 0; i < in->network->depths.values[stage]; i++) {
        layer next = walk_next(at, in->network, stage, i);
        set(in, &hidden, run_layer(in, &next, hidden));
    }
    return hidden;
}

static picture embed(const pass *in, const part *stem, frag_tensor images)
{
    picture made = convolve(in, stem, (picture){images, in->network->image});
    activate(in, &made);
    const frag_window window = {made.side, POOL_KERNEL, 2, 1};
    frag_tape_set(in->tape, &made.pixels, frag_aten_max_pool(in->tape, made.pixels, &window));
    made.side = frag_aten_window_side(&window);
    return made;
}

static frag_tensor classify(frag_tape *tape, const frag_linear *head, frag_tensor pooled,
                            const frag_batch *batch, frag_tensor *logits)
{
    frag_tensor flat = frag_aten_view(tape, pooled);
    *logits = frag_walk_apply(tape, flat, head);
    frag_tape_set(tape, &flat, frag_aten_view(tape, *logits));
    frag_tensor loss = frag_aten_cross_entropy(tape, flat, batch->labels);
    frag_family_return(tape, batch, *logits);
    frag_tape_drop(tape, flat);
    return loss;
}

/* Names of the forward pass are given back in the order of Python's frames. */
static frag_tensor compute_loss(frag_tape *tape, const frag_model *model, const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    const frag_workload *workload = model->workload;
    const pass in = {tape, of, workload->is_inplace, batch->count,
                     workload->task == FRAG_TASK_TRAIN};
    frag_walk at = {.tape = tape, .workload = workload, .at = model->parameters};
    const part stem = walk_stem(&at, of);
    picture embedded = embed(&in, &stem, batch->ids);
    picture hidden = keep(&in, embedded);
    for (uint64_t i = 0; i < of->depths.count; i++)
        set(&in, &hidden, run_stage(&in, &at, i, hidden));
    frag_tensor pooled = frag_aten_mean_last(tape, hidden.pixels, hidden.side * hidden.side);
    frag_tape_drop(tape, embedded.pixels);
    const frag_linear head = walk_head(&at, of);
    frag_tensor logits = 0;
    frag_tensor loss = classify(tape, &head, pooled, batch, &logits);
    frag_tape_drop(tape, hidden.pixels);
    frag_tape_drop(tape, pooled);
    frag_tape_drop(tape, logits);
    return loss;
}

const frag_family frag_family_resnet = {build, frag_family_load_images, compute_loss, NULL};
