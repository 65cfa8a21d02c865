/* The U-Net of Stable Diffusion and SDXL, as diffusers 0.42 has it (models/unets/
 * unet_2d_condition.py): convolutions and transformers over latents that get smaller and larger
 * again, with cross attention to a text. Parameters have another order than the forward pass. */
#include "base/memory.h"
#include "workload/families/diffusion.h"

enum { LAYERS_MAX = FRAG_UNET_LAYERS_MAX + 1, TIME_FACTOR = 4, INNER_FACTOR = 4, TIME_IDS = 6 };

typedef struct convolution {
    frag_tensor weight, bias;
    uint64_t in, out, kernel, stride;
} convolution;

typedef struct resnet {
    frag_pair first, second;
    convolution enter, leave, shortcut; /* no shortcut's weight: none */
    frag_linear time;
} resnet;

/* A transformer over the pixels. */
typedef struct transformer {
    frag_pair before;
    convolution enter, leave; /* or linear layers */
    frag_linear enter_linear, leave_linear;
    frag_tensor *blocks; /* parameters of the first; NULL while the model is built */
    uint64_t block_count, heads, width;
} transformer;

typedef struct attention {
    frag_linear query, key, value, out;
} attention;

typedef struct block {
    frag_pair norms[3];
    attention own, text;
    frag_linear feed, back;
} block;

typedef struct stage {
    resnet resnets[LAYERS_MAX];
    transformer mixers[LAYERS_MAX];
    uint64_t layer_count;
    bool has_mixers;
    convolution resample; /* no weight: none */
} stage;

typedef struct unet {
    convolution enter, leave;
    frag_linear time[2], added[2];
    stage down[FRAG_STAGES_MAX], up[FRAG_STAGES_MAX], middle;
    frag_pair last;
    uint64_t stage_count;
} unet;

/* ---- parameters */
static convolution walk_convolution(frag_walk *at, convolution next)
{
    next.weight = frag_walk_kernels(at, (frag_kernels){next.kernel, next.in, next.out});
    next.bias = frag_walk_parameter(at, (frag_shape){0, next.out});
    return next;
}

static frag_linear walk_linear(frag_walk *at, uint64_t in, uint64_t out)
{
    return frag_walk_linear(at, (frag_shape){out, in}, true, FRAG_LORA_REST);
}

static resnet walk_resnet(frag_walk *at, uint64_t in, uint64_t out)
{
    uint64_t time = TIME_FACTOR * at->workload->network.channels.values[0];
    resnet next = {.first = frag_walk_norm(at, in)};
    next.enter =
        walk_convolution(at, (convolution){.in = in, .out = out, .kernel = 3, .stride = 1});
    next.time = walk_linear(at, time, out);
    next.second = frag_walk_norm(at, out);
    next.leave =
        walk_convolution(at, (convolution){.in = out, .out = out, .kernel = 3, .stride = 1});
    if (in != out)
        next.shortcut =
            walk_convolution(at, (convolution){.in = in, .out = out, .kernel = 1, .stride = 1});
    return next;
}

static attention walk_attention(frag_walk *at, uint64_t width, uint64_t context)
{
    attention next = {0};
    next.query = frag_walk_linear(at, (frag_shape){width, width}, false, FRAG_LORA_TO_Q);
    next.key = frag_walk_linear(at, (frag_shape){width, context}, false, FRAG_LORA_TO_K);
    next.value = frag_walk_linear(at, (frag_shape){width, context}, false, FRAG_LORA_TO_V);
    next.out = frag_walk_linear(at, (frag_shape){width, width}, true, FRAG_LORA_TO_OUT);
    return next;
}

static block walk_block(frag_walk *at, uint64_t width)
{
    block next = {0};
    next.norms[0] = frag_walk_norm(at, width);
    next.own = walk_attention(at, width, width);
    next.norms[1] = frag_walk_norm(at, width);
    next.text = walk_attention(at, width, at->workload->network.text_width);
    next.norms[2] = frag_walk_norm(at, width);
    next.feed = walk_linear(at, width, 2 * INNER_FACTOR * width);
    next.back = walk_linear(at, INNER_FACTOR * width, width);
    return next;
}

static transformer walk_transformer(frag_walk *at, uint64_t width, uint64_t stage_index)
{
    const frag_network *of = &at->workload->network;
    const convolution pointwise = {.in = width, .out = width, .kernel = 1, .stride = 1};
    transformer next = {.block_count = frag_stages_at(&of->depths, stage_index),
                        .heads = frag_stages_at(&of->stage_heads, stage_index),
                        .width = width};
    next.before = frag_walk_norm(at, width);
    if (of->is_linear)
        next.enter_linear = walk_linear(at, width, width);
    else
        next.enter = walk_convolution(at, pointwise);
    next.blocks = at->at;
    for (uint64_t i = 0; i < next.block_count; i++)
        (void)walk_block(at, width);
    if (of->is_linear)
        next.leave_linear = walk_linear(at, width, width);
    else
        next.leave = walk_convolution(at, pointwise);
    return next;
}

/* What goes into each layer of a stage, and what comes out of all. */
typedef struct stage_shape {
    uint64_t index;
    uint64_t inputs[LAYERS_MAX];
    uint64_t out;
    uint64_t layer_count;
    uint64_t mixer_count;
    bool is_resampled;
    uint64_t stride; /* of the convolution that resamples */
} stage_shape;

static void walk_stage(frag_walk *at, const stage_shape *shape, stage *next)
{
    next->layer_count = shape->layer_count;
    next->has_mixers = shape->mixer_count > 0;
    for (uint64_t i = 0; i < shape->mixer_count; i++)
        next->mixers[i] = walk_transformer(at, shape->out, shape->index);
    for (uint64_t i = 0; i < shape->layer_count; i++)
        next->resnets[i] = walk_resnet(at, shape->inputs[i], shape->out);
    if (shape->is_resampled)
        next->resample = walk_convolution(
            at, (convolution){
                    .in = shape->out, .out = shape->out, .kernel = 3, .stride = shape->stride});
}

static void walk_down(frag_walk *at, uint64_t i, stage *next)
{
    const frag_network *of = &at->workload->network;
    const uint64_t *channels = of->channels.values;
    stage_shape shape = {.index = i,
                         .out = channels[i],
                         .layer_count = of->layers,
                         .mixer_count = of->down_attention.values[i] != 0 ? of->layers : 0,
                         .is_resampled = i + 1 < of->channels.count,
                         .stride = 2};
    for (uint64_t k = 0; k < of->layers; k++)
        shape.inputs[k] = k > 0 ? channels[i] : channels[i > 0 ? i - 1 : 0];
    walk_stage(at, &shape, next);
}

/* On the way up each layer reads what one on the way down has left as well. */
static void walk_up(frag_walk *at, uint64_t i, stage *next)
{
    const frag_network *of = &at->workload->network;
    const uint64_t *channels = of->channels.values;
    uint64_t index = of->channels.count - 1 - i;
    uint64_t before = channels[i > 0 ? index + 1 : index];
    uint64_t skipped = channels[index > 0 ? index - 1 : 0];
    stage_shape shape = {.index = index,
                         .out = channels[index],
                         .layer_count = of->layers + 1,
                         .mixer_count = of->up_attention.values[i] != 0 ? of->layers + 1 : 0,
                         .is_resampled = index > 0,
                         .stride = 1};
    for (uint64_t k = 0; k <= of->layers; k++)
        shape.inputs[k] =
            (k > 0 ? channels[index] : before) + (k < of->layers ? channels[index] : skipped);
    walk_stage(at, &shape, next);
}

static void walk_middle(frag_walk *at, stage *next)
{
    const frag_network *of = &at->workload->network;
    uint64_t index = of->channels.count - 1;
    uint64_t width = of->channels.values[index];
    const stage_shape shape = {
        .index = index, .inputs = {width, width}, .out = width, .layer_count = 2, .mixer_count = 1};
    walk_stage(at, &shape, next);
}

static void walk_unet(frag_walk *at, const frag_network *of, unet *next)
{
    uint64_t first = of->channels.values[0];
    uint64_t time = TIME_FACTOR * first;
    next->stage_count = of->channels.count;
    next->enter = walk_convolution(
        at, (convolution){.in = of->image_channels, .out = first, .kernel = 3, .stride = 1});
    next->time[0] = walk_linear(at, first, time);
    next->time[1] = walk_linear(at, time, time);
    if (of->added_width > 0) {
        next->added[0] = walk_linear(at, of->added_width, time);
        next->added[1] = walk_linear(at, time, time);
    }
    for (uint64_t i = 0; i < next->stage_count; i++)
        walk_down(at, i, &next->down[i]);
    for (uint64_t i = 0; i < next->stage_count; i++)
        walk_up(at, i, &next->up[i]);
    walk_middle(at, &next->middle);
    next->last = frag_walk_norm(at, first);
    next->leave = walk_convolution(
        at, (convolution){.in = first, .out = of->out_channels, .kernel = 3, .stride = 1});
}

static void build(frag_walk *at, const frag_network *of)
{
    unet *made = frag_alloc(1, sizeof *made);
    walk_unet(at, of, made);
    frag_free(made);
}

/* ---- what the program makes: latents and a text for so many images */
static void load_latents(frag_tape *tape, const frag_model *model, frag_batch *batch,
                         uint64_t texts)
{
    const frag_network *of = &model->workload->network;
    uint64_t pixels = of->image * of->image * of->image_channels;
    frag_tape_set(tape, &batch->ids, frag_tape_empty(tape, batch->count * pixels, model->dtype));
    frag_tape_set(tape, &batch->text,
                  frag_tape_empty(tape, texts * of->text_tokens * of->text_width, model->dtype));
    if (of->added_width == 0)
        return;
    uint64_t pooled = of->added_width - TIME_IDS * of->added_time_width;
    frag_tape_clear(tape, &batch->pooled);
    frag_tape_clear(tape, &batch->sizes);
    batch->pooled = frag_tape_empty(tape, texts * pooled, model->dtype);
    batch->sizes = frag_tape_empty(tape, texts * TIME_IDS, model->dtype);
}

static void load(frag_tape *tape, const frag_model *model, frag_batch *batch)
{
    load_latents(tape, model, batch, batch->count);
    frag_tape_set(tape, &batch->labels,
                  frag_tape_empty(tape, frag_tape_count(tape, batch->ids), model->dtype));
    frag_tape_set(tape, &batch->times, frag_tape_empty(tape, batch->count, FRAG_I64));
}

/* ---- forward pass */
typedef struct pass {
    const frag_model *model;
    uint64_t count; /* images */
    frag_tensor text;
    frag_tensor time; /* embedded */
} pass;

/* The gradient of what is joined with a skipped one is a part of another, with gaps between several
 * images. */
static bool is_several(const pass *in)
{
    return in->count > 1;
}

static frag_tensor normalise(frag_tape *tape, const pass *in, const frag_pair *at, frag_tensor x,
                             bool is_turned)
{
    return frag_aten_group_norm(tape, x,
                                &(frag_aten_groups){at->weight, at->bias, in->count,
                                                    in->model->workload->network.groups,
                                                    is_turned});
}

static frag_tensor convolve(frag_tape *tape, const pass *in, const convolution *at, frag_picture x,
                            bool has_gaps)
{
    return frag_aten_convolve(
        tape, x.pixels,
        &(frag_aten_convolution){.weight = at->weight,
                                 .bias = at->bias,
                                 .batch = in->count,
                                 .in_channels = at->in,
                                 .out_channels = at->out,
                                 .window = {x.side, at->kernel, at->stride, at->kernel / 2},
                                 .has_gaps = has_gaps});
}

/* norm, silu, convolution; x stays. */
static frag_tensor run_half(frag_tape *tape, const pass *in, const frag_pair *before,
                            const convolution *at, frag_picture x)
{
    frag_tensor made = normalise(tape, in, before, x.pixels, false);
    frag_tape_set(tape, &made, frag_aten_silu(tape, made));
    frag_tape_set(tape, &made, convolve(tape, in, at, (frag_picture){made, x.side}, false));
    return made;
}

typedef struct resnet_call {
    pass in;
    resnet at;
    uint64_t side;
} resnet_call;

static frag_tensor run_resnet(frag_tape *tape, const void *context, frag_tensor input)
{
    const resnet_call *call = context;
    const pass *in = &call->in;
    const resnet *at = &call->at;
    frag_picture hidden = {
        run_half(tape, in, &at->first, &at->enter, (frag_picture){input, call->side}), call->side};
    frag_tensor time = frag_aten_silu(tape, in->time);
    frag_tape_set(tape, &time, frag_walk_apply(tape, time, &at->time));
    frag_tape_set(tape, &time, frag_aten_view_column(tape, time));
    frag_tape_set(tape, &hidden.pixels, frag_aten_add(tape, hidden.pixels, time));
    frag_tensor made = normalise(tape, in, &at->second, hidden.pixels, false);
    frag_tape_set(tape, &hidden.pixels, made);
    frag_tape_set(tape, &hidden.pixels, frag_aten_silu(tape, hidden.pixels));
    frag_tape_set(tape, &hidden.pixels, convolve(tape, in, &at->leave, hidden, false));
    frag_tensor residual =
        at->shortcut.weight != 0
            ? convolve(tape, in, &at->shortcut, (frag_picture){input, call->side}, false)
            : frag_tape_keep(tape, input);
    made = frag_aten_add(tape, residual, hidden.pixels);
    frag_tape_set(tape, &made, frag_aten_mul_scalar(tape, made));
    frag_tape_drop(tape, residual);
    frag_tape_drop(tape, hidden.pixels);
    frag_tape_drop(tape, time);
    return made;
}

typedef struct block_call {
    pass in;
    block at;
    uint64_t heads, width, pixels;
    bool is_turned; /* what comes in lies with channels before pixels */
} block_call;

/* context: what keys and values are made of. */
static frag_tensor attend(frag_tape *tape, const block_call *call, const attention *at,
                          frag_tensor x, frag_tensor context)
{
    const frag_tensor from[] = {x, context, context};
    const frag_linear *layers[] = {&at->query, &at->key, &at->value};
    frag_tensor qkv[3];
    for (uint32_t i = 0; i < 3; i++)
        qkv[i] = frag_walk_apply(tape, from[i], layers[i]);
    /* What comes back from the host has heads before tokens, and so have gradients of it. */
    bool is_laid = frag_tape_saves_on_host(tape) && call->heads > 1 &&
                   frag_aten_is_flash(tape, frag_tape_dtype(tape, qkv[0]));
    for (uint32_t i = 0; i < 3; i++)
        qkv[i] = frag_walk_split_heads(
            tape, qkv[i], is_laid || frag_aten_is_turned(tape, qkv[i], i, call->in.count));
    const frag_attention_shape shape = {
        .batch = call->in.count,
        .heads = call->heads,
        .key_heads = call->heads,
        .queries = call->pixels,
        .keys = context == x ? call->pixels : call->in.model->workload->network.text_tokens,
        .width = call->width / call->heads,
    };
    frag_tensor made = frag_aten_attention(tape, qkv, &shape);
    frag_tape_set(tape, &made, frag_aten_view(tape, made));
    frag_tape_set(tape, &made, frag_tape_to(tape, made, frag_tape_dtype(tape, qkv[0])));
    frag_tape_set(tape, &made, frag_walk_apply(tape, made, &at->out));
    frag_tape_set(tape, &made, frag_aten_mul_scalar(tape, made));
    frag_tape_drop_all(tape, qkv, 3);
    return made;
}

/* GEGLU: hidden * gelu(gate), both out of one layer. */
static frag_tensor feed(frag_tape *tape, const block *at, frag_tensor x)
{
    frag_tensor both = frag_walk_apply(tape, x, &at->feed);
    frag_tensor parts[2];
    frag_family_halve(tape, both, parts);
    frag_tape_drop(tape, both);
    frag_family_will_save(tape, parts[1]);
    frag_tensor gate = frag_aten_gelu(tape, parts[1]);
    frag_family_will_save(tape, parts[0]);
    frag_tensor made = frag_aten_mul(tape, parts[0], gate);
    frag_tape_drop(tape, gate);
    frag_tape_drop(tape, parts[0]);
    frag_tape_drop(tape, parts[1]);
    frag_tape_set(tape, &made, frag_walk_apply(tape, made, &at->back));
    return made;
}

static frag_tensor run_block(frag_tape *tape, const void *context, frag_tensor input)
{
    const block_call *call = context;
    const block *at = &call->at;
    frag_tensor normed =
        frag_aten_layer_norm_laid(tape, input, &at->norms[0], call->width,
                                  call->is_turned ? FRAG_NORM_TURNED : FRAG_NORM_PLAIN);
    frag_tensor mixed = attend(tape, call, &at->own, normed, normed);
    frag_tensor hidden = frag_aten_add(tape, mixed, input);
    frag_tape_set(tape, &normed, frag_aten_layer_norm(tape, hidden, &at->norms[1], call->width));
    frag_tape_set(tape, &mixed, attend(tape, call, &at->text, normed, call->in.text));
    frag_tape_set(tape, &hidden, frag_aten_add(tape, mixed, hidden));
    frag_tape_set(tape, &normed, frag_aten_layer_norm(tape, hidden, &at->norms[2], call->width));
    frag_tensor fed = feed(tape, at, normed);
    frag_tape_set(tape, &hidden, frag_aten_add(tape, fed, hidden));
    frag_tape_drop(tape, fed);
    frag_tape_drop(tape, normed);
    frag_tape_drop(tape, mixed);
    return hidden;
}

static frag_tensor call_resnet(frag_tape *tape, const pass *in, const resnet *at, frag_picture x)
{
    const resnet_call call = {*in, *at, x.side};
    const frag_region_call region = {run_resnet, &call, sizeof call, &in->time, 1};
    return frag_model_call(tape, in->model, &region, x.pixels);
}

/* Pixels in rows, as tokens. */
static frag_tensor enter(frag_tape *tape, const pass *in, const transformer *at, frag_picture x)
{
    bool is_linear = in->model->workload->network.is_linear;
    /* Gradients of one image come from a plain layer as the norm wants them. */
    bool is_turned = is_linear && (is_several(in) || at->enter_linear.is_packed);
    frag_picture hidden = {normalise(tape, in, &at->before, x.pixels, is_turned), x.side};
    if (!is_linear)
        frag_tape_set(tape, &hidden.pixels, convolve(tape, in, &at->enter, hidden, false));
    for (uint32_t i = 0; i < 2; i++)
        frag_tape_set(tape, &hidden.pixels, frag_aten_view(tape, hidden.pixels));
    if (!at->enter_linear.is_packed || is_several(in))
        frag_tape_set_strided(tape, hidden.pixels);
    if (at->enter_linear.is_packed) {
        frag_tape_set(tape, &hidden.pixels,
                      frag_walk_apply(tape, hidden.pixels, &at->enter_linear));
    } else if (is_linear) {
        const frag_tensor layer[] = {at->enter_linear.weight, at->enter_linear.bias};
        frag_tape_fetch(tape, layer, 2);
        frag_tape_set(tape, &hidden.pixels,
                      frag_aten_linear_apart(tape, hidden.pixels, layer, at->width, in->count));
        frag_tape_send_back(tape, layer, 2);
    }
    return hidden.pixels;
}

static frag_tensor leave(frag_tape *tape, const pass *in, const transformer *at, frag_picture x,
                         bool is_joined)
{
    bool is_linear = in->model->workload->network.is_linear;
    frag_linear last = at->leave_linear;
    last.images = in->count;
    frag_tensor hidden =
        is_linear ? frag_walk_apply(tape, x.pixels, &last) : frag_tape_keep(tape, x.pixels);
    for (uint32_t i = 0; i < 2; i++)
        frag_tape_set(tape, &hidden, frag_aten_view(tape, hidden));
    frag_tape_set(tape, &hidden, frag_aten_contiguous(tape, hidden));
    if (!is_linear)
        frag_tape_set(tape, &hidden,
                      convolve(tape, in, &at->leave, (frag_picture){hidden, x.side},
                               is_joined && is_several(in)));
    return hidden;
}

/* is_joined: what comes out is joined with what was skipped. */
static frag_tensor run_transformer(frag_tape *tape, const pass *in, const transformer *at,
                                   frag_picture x, bool is_joined)
{
    const frag_workload *workload = in->model->workload;
    frag_walk walk = {.tape = tape, .workload = workload, .at = at->blocks};
    frag_tensor hidden = enter(tape, in, at, x);
    for (uint64_t i = 0; i < at->block_count; i++) {
        block next = walk_block(&walk, at->width);
        if (!workload->network.is_linear)
            next.own.out.images = next.text.out.images = next.back.images = in->count;
        const block_call call = {.in = *in,
                                 .at = next,
                                 .heads = at->heads,
                                 .width = at->width,
                                 .pixels = x.side * x.side,
                                 .is_turned = i == 0 && !workload->network.is_linear};
        const frag_region_call region = {run_block, &call, sizeof call, &in->text, 1};
        frag_tape_set(tape, &hidden, frag_model_call(tape, in->model, &region, hidden));
    }
    frag_tensor made = leave(tape, in, at, (frag_picture){hidden, x.side}, is_joined);
    frag_tape_set(tape, &made, frag_aten_add(tape, made, x.pixels));
    frag_tape_drop(tape, hidden);
    return made;
}

/* What the way down leaves for the way up, the last on top. */
typedef struct skips {
    frag_tensor pixels[FRAG_STAGES_MAX * LAYERS_MAX + 1];
    uint32_t count;
} skips;

static void push(frag_tape *tape, skips *left, frag_tensor pixels)
{
    left->pixels[left->count++] = frag_tape_keep(tape, pixels);
}

/* x is used up. */
static frag_picture run_down(frag_tape *tape, const pass *in, const stage *at, frag_picture x,
                             skips *left)
{
    frag_tensor hidden = frag_tape_keep(tape, x.pixels);
    uint64_t side = x.side;
    for (uint64_t i = 0; i < at->layer_count; i++) {
        frag_tape_set(tape, &hidden,
                      call_resnet(tape, in, &at->resnets[i], (frag_picture){hidden, side}));
        if (at->has_mixers)
            frag_tape_set(
                tape, &hidden,
                run_transformer(tape, in, &at->mixers[i], (frag_picture){hidden, side}, false));
        push(tape, left, hidden);
    }
    if (at->resample.weight != 0) {
        frag_tape_set(tape, &hidden,
                      convolve(tape, in, &at->resample, (frag_picture){hidden, side}, false));
        side /= 2;
        push(tape, left, hidden);
    }
    frag_tape_drop(tape, x.pixels);
    return (frag_picture){hidden, side};
}

/* The first layer of the middle has no checkpoint. */
static frag_picture run_middle(frag_tape *tape, const pass *in, const stage *at, frag_picture x)
{
    const resnet_call call = {*in, at->resnets[0], x.side};
    frag_tensor hidden = run_resnet(tape, &call, x.pixels);
    frag_tape_set(tape, &hidden,
                  run_transformer(tape, in, &at->mixers[0], (frag_picture){hidden, x.side}, false));
    frag_tape_set(tape, &hidden,
                  call_resnet(tape, in, &at->resnets[1], (frag_picture){hidden, x.side}));
    frag_tape_drop(tape, x.pixels);
    return (frag_picture){hidden, x.side};
}

/* x is used up. What this stage reads of the way down is held to its end. */
static frag_picture run_up(frag_tape *tape, const pass *in, const stage *at, frag_picture x,
                           const frag_tensor *skipped)
{
    frag_tensor hidden = frag_tape_keep(tape, x.pixels);
    uint64_t side = x.side;
    for (uint64_t i = 0; i < at->layer_count; i++) {
        frag_tensor other = skipped[at->layer_count - 1 - i];
        frag_tape_set(tape, &hidden,
                      frag_aten_cat(tape, hidden, other,
                                    frag_aten_wider(frag_tape_dtype(tape, hidden),
                                                    frag_tape_dtype(tape, other))));
        frag_tape_set(tape, &hidden,
                      call_resnet(tape, in, &at->resnets[i], (frag_picture){hidden, side}));
        if (at->has_mixers)
            frag_tape_set(tape, &hidden,
                          run_transformer(tape, in, &at->mixers[i], (frag_picture){hidden, side},
                                          i + 1 < at->layer_count));
    }
    if (at->resample.weight != 0) {
        side *= 2;
        frag_tensor larger = frag_aten_upsample(tape, hidden);
        frag_tensor made =
            convolve(tape, in, &at->resample, (frag_picture){larger, side}, is_several(in));
        frag_tape_drop(tape, larger);
        frag_tape_set(tape, &hidden, made);
    }
    frag_tape_drop(tape, x.pixels);
    return (frag_picture){hidden, side};
}

/* SDXL: sizes of the image and the pooled text are added to the time. */
static frag_tensor add_sizes(frag_tape *tape, const frag_model *model, const unet *at,
                             const frag_batch *batch, frag_tensor time)
{
    const frag_network *of = &model->workload->network;
    frag_tensor sizes =
        frag_diffusion_waves(tape, frag_tape_count(tape, batch->sizes), of->added_time_width,
                             frag_tape_dtype(tape, batch->sizes) == FRAG_F32);
    frag_tape_set(tape, &sizes, frag_aten_view(tape, sizes));
    frag_tensor joined = frag_aten_cat(tape, batch->pooled, sizes, FRAG_F32);
    frag_tape_set(tape, &joined, frag_tape_to(tape, joined, frag_tape_dtype(tape, time)));
    frag_tensor made = frag_diffusion_embed(tape, at->added, joined);
    frag_tape_drop(tape, joined);
    frag_tape_drop(tape, sizes);
    return made;
}

static frag_tensor run_unet(frag_tape *tape, const frag_model *model, const unet *at,
                            const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    uint64_t count =
        frag_tape_count(tape, batch->ids) / (of->image * of->image * of->image_channels);
    frag_tensor times = frag_diffusion_waves(tape, count, of->channels.values[0], false);
    frag_tape_set(tape, &times, frag_tape_to(tape, times, model->dtype));
    frag_tensor time = frag_diffusion_embed(tape, at->time, times);
    frag_tensor added = of->added_width > 0 ? add_sizes(tape, model, at, batch, time) : 0;
    if (added != 0)
        frag_tape_set(tape, &time, frag_aten_add(tape, time, added));
    const pass in = {model, count, batch->text, time};
    frag_picture hidden = {
        convolve(tape, &in, &at->enter, (frag_picture){batch->ids, of->image}, false), of->image};
    skips left = {.count = 0};
    push(tape, &left, hidden.pixels);
    for (uint64_t i = 0; i < at->stage_count; i++)
        hidden = run_down(tape, &in, &at->down[i], hidden, &left);
    hidden = run_middle(tape, &in, &at->middle, hidden);
    frag_tensor held[LAYERS_MAX] = {0};
    for (uint64_t i = 0; i < at->stage_count; i++) {
        const stage *up = &at->up[i];
        left.count -= (uint32_t)up->layer_count;
        for (uint64_t k = 0; k < up->layer_count; k++)
            frag_tape_set(tape, &held[k], left.pixels[left.count + k]);
        hidden = run_up(tape, &in, up, hidden, held);
    }
    frag_tape_set(tape, &hidden.pixels, normalise(tape, &in, &at->last, hidden.pixels, false));
    frag_tape_set(tape, &hidden.pixels, frag_aten_silu(tape, hidden.pixels));
    frag_tensor made = convolve(tape, &in, &at->leave, hidden, false);
    frag_tape_drop(tape, hidden.pixels);
    frag_tape_drop_all(tape, held, LAYERS_MAX);
    frag_tape_drop(tape, added);
    frag_tape_drop(tape, time);
    frag_tape_drop(tape, times);
    return made;
}

static unet *find_unet(frag_tape *tape, const frag_model *model)
{
    frag_walk at = {.tape = tape, .workload = model->workload, .at = model->parameters};
    unet *found = frag_alloc(1, sizeof *found);
    walk_unet(&at, &model->workload->network, found);
    return found;
}

static frag_tensor compute_loss(frag_tape *tape, const frag_model *model, const frag_batch *batch)
{
    unet *at = find_unet(tape, model);
    frag_tensor prediction = run_unet(tape, model, at, batch);
    frag_tensor loss = frag_diffusion_loss(tape, prediction, batch);
    frag_free(at);
    return loss;
}

/* noise = without + scale * (guided - without); latents - rate * noise */
static void take_step(frag_tape *tape, frag_batch *batch, frag_tensor *noise)
{
    frag_tensor parts[2];
    frag_aten_split(tape, *noise, parts, 2);
    for (uint32_t i = 0; i < 2; i++)
        frag_tape_set(tape, &batch->parts[i], parts[i]);
    frag_tensor change = frag_aten_add(tape, parts[1], parts[0]);
    frag_tape_set(tape, &change, frag_aten_mul_scalar(tape, change));
    frag_tape_set(tape, &change, frag_aten_add(tape, parts[0], change));
    frag_tape_set(tape, noise, change);
    frag_tensor scaled = frag_aten_mul_scalar(tape, *noise);
    frag_tape_set(tape, &batch->ids, frag_aten_add(tape, batch->ids, scaled));
    frag_tape_drop(tape, scaled);
}

/* Classifier-free guidance: each step looks at the latents without the text and with it. */
void frag_unet_denoise(frag_tape *tape, const frag_model *model, frag_batch *batch, uint64_t steps)
{
    load_latents(tape, model, batch, 2 * batch->count);
    frag_tape_set(tape, &batch->times, frag_tape_empty(tape, steps, FRAG_I64));
    unet *at = find_unet(tape, model);
    frag_tensor noise = 0;
    for (uint64_t i = 0; i < steps; i++) {
        frag_batch doubled = *batch;
        frag_tape_begin(tape, "denoise");
        doubled.ids =
            frag_aten_cat(tape, batch->ids, batch->ids, frag_tape_dtype(tape, batch->ids));
        frag_tensor next = run_unet(tape, model, at, &doubled);
        frag_tape_drop(tape, doubled.ids);
        frag_tape_set(tape, &noise, next);
        take_step(tape, batch, &noise);
        frag_tape_end(tape, "denoise");
    }
    for (uint32_t i = 0; i < 2; i++)
        frag_tape_clear(tape, &batch->parts[i]);
    frag_tape_drop(tape, noise);
    frag_free(at);
}

const frag_family frag_family_unet = {build, load, compute_loss, NULL};
