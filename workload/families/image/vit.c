/* ViT with a classifier, as transformers 5 has it (models/vit/modeling_vit.py), with attention by
 * scaled_dot_product_attention. A convolution makes a token of each patch of the image. */
#include "workload/families/family.h"

typedef struct embeddings {
    frag_tensor class_token, places, weight, bias;
} embeddings;

typedef struct head {
    frag_pair last;
    frag_linear classes;
} head;

/* The two parts of the convolution move to the GPU first, but are named after the others. */
static embeddings walk_embeddings(frag_walk *at, const frag_network *of)
{
    enum { CLASS, POSITIONS, WEIGHT, BIAS, PARTS };
    const frag_shape shapes[PARTS] = {[CLASS] = {1, of->width},
                                      [POSITIONS] = {of->positions, of->width},
                                      [BIAS] = {0, of->width}};
    frag_tensor parts[PARTS];
    for (uint32_t i = 0; i < PARTS; i++) {
        uint32_t place = at->model != NULL ? (i + PARTS / 2) % PARTS : i;
        if (place == WEIGHT)
            parts[place] =
                frag_walk_kernels(at, (frag_kernels){of->patch, of->image_channels, of->width});
        else
            parts[place] = place == BIAS ? frag_walk_parameter(at, shapes[place])
                                         : frag_walk_stack(at, shapes[place], 1);
    }
    if (at->model != NULL)
        frag_model_name_first(at->model, PARTS, PARTS / 2);
    return (embeddings){parts[CLASS], parts[POSITIONS], parts[WEIGHT], parts[BIAS]};
}

static frag_encoder_layer walk_layer(frag_walk *at, const frag_network *of)
{
    static const frag_lora_target targets[] = {FRAG_LORA_Q, FRAG_LORA_K, FRAG_LORA_V};
    const frag_shape square = {of->width, of->width};
    frag_encoder_layer next = {.first = {0, 0}};
    for (uint32_t i = 0; i < 3; i++)
        next.qkv[i] = frag_walk_linear(at, square, of->has_query_bias, targets[i]);
    next.out = frag_walk_linear(at, square, true, FRAG_LORA_O);
    next.first = frag_walk_norm(at, of->width);
    next.second = frag_walk_norm(at, of->width);
    next.feed = frag_walk_linear(at, (frag_shape){of->inner, of->width}, true, FRAG_LORA_FC1);
    next.back = frag_walk_linear(at, (frag_shape){of->width, of->inner}, true, FRAG_LORA_FC2);
    return next;
}

static head walk_head(frag_walk *at, const frag_network *of)
{
    head next = {.last = frag_walk_norm(at, of->width)};
    next.classes = frag_walk_classes(at, (frag_shape){of->classes, of->width}, true);
    return next;
}

static void build(frag_walk *at, const frag_network *of)
{
    (void)walk_embeddings(at, of);
    for (uint64_t i = 0; i < of->layers; i++) {
        frag_model_mark_block(at->model);
        (void)walk_layer(at, of);
    }
    frag_model_mark_block(at->model);
    (void)walk_head(at, of);
}

/* The convolution's output with tokens before channels, behind the token of the class. */
static frag_tensor embed(frag_tape *tape, const frag_model *model, const embeddings *at,
                         const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    frag_tensor hidden =
        frag_aten_convolve(tape, batch->ids,
                           &(frag_aten_convolution){.weight = at->weight,
                                                    .bias = at->bias,
                                                    .batch = batch->count,
                                                    .in_channels = of->image_channels,
                                                    .out_channels = of->width,
                                                    .window = {of->image, of->patch, of->patch, 0},
                                                    .is_turned = true});
    for (uint32_t i = 0; i < 2; i++)
        frag_tape_set(tape, &hidden, frag_aten_view(tape, hidden));
    frag_tape_set_strided(tape, hidden); /* channels lie before tokens */
    frag_model_require_inputs(tape, model, hidden);
    frag_tensor first = frag_aten_expand(tape, at->class_token, batch->count * of->width);
    /* In the type of the weights, which may be wider than autocast's. */
    frag_tape_set(tape, &hidden, frag_aten_cat(tape, first, hidden, model->dtype));
    frag_tape_set(tape, &hidden, frag_aten_add(tape, hidden, at->places));
    frag_tape_set(tape, &hidden, frag_model_drop_residual(tape, model, hidden));
    frag_tape_drop(tape, first);
    return hidden;
}

static frag_tensor feed(frag_tape *tape, const frag_model *model, const frag_encoder_layer *at,
                        frag_tensor x)
{
    const frag_network *of = &model->workload->network;
    frag_tensor hidden = frag_walk_apply(tape, x, &at->feed);
    frag_tape_set(tape, &hidden,
                  frag_family_activate(tape, hidden, (frag_activation)of->activation));
    frag_tape_set(tape, &hidden, frag_walk_apply(tape, hidden, &at->back));
    return hidden;
}

/* dropout(hidden) + residual; hidden is used up. */
static frag_tensor join(frag_tape *tape, const frag_model *model, frag_tensor hidden,
                        frag_tensor residual)
{
    frag_tape_set(tape, &hidden, frag_model_drop_residual(tape, model, hidden));
    frag_tape_set(tape, &hidden, frag_aten_add(tape, hidden, residual));
    return hidden;
}

static frag_tensor run_layer(frag_tape *tape, const void *context, frag_tensor x)
{
    const frag_encoder_call *call = context;
    const frag_model *model = call->model;
    const frag_encoder_layer *at = &call->at;
    const uint64_t width = model->workload->network.width;
    frag_tensor hidden = frag_aten_layer_norm(tape, x, &at->first, width);
    frag_tensor weights = 0;
    frag_tape_set(tape, &hidden,
                  frag_encoder_attend(tape, model, at, hidden, &call->batch, &at->out, &weights));
    hidden = join(tape, model, hidden, x);
    frag_tensor residual = frag_tape_keep(tape, hidden);
    frag_tape_set(tape, &hidden, frag_aten_layer_norm(tape, hidden, &at->second, width));
    frag_tape_set(tape, &hidden, feed(tape, model, at, hidden));
    hidden = join(tape, model, hidden, residual);
    frag_tape_drop(tape, residual);
    frag_tape_drop(tape, weights);
    return hidden;
}

/* The last hidden state of the class's token, and its logits. */
static frag_tensor classify(frag_tape *tape, const head *at, const frag_batch *batch,
                            frag_tensor hidden, uint64_t width)
{
    frag_tensor pooled = frag_aten_slice(tape, hidden, batch->count * width);
    if (batch->count > 1) /* the first token of each image */
        frag_tape_set_strided(tape, pooled);
    frag_tensor loss =
        frag_family_classify(tape, &at->classes, frag_tape_keep(tape, pooled), batch);
    frag_tape_drop(tape, pooled);
    return loss;
}

static frag_tensor compute_loss(frag_tape *tape, const frag_model *model, const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    frag_walk at = {.tape = tape, .workload = model->workload, .at = model->parameters};
    const embeddings below = walk_embeddings(&at, of);
    frag_tensor embedded = embed(tape, model, &below, batch);
    frag_tensor hidden = frag_tape_keep(tape, embedded);
    for (uint64_t i = 0; i < of->layers; i++) {
        const frag_encoder_call call = {model, walk_layer(&at, of), *batch, {0}};
        const frag_region_call next = {run_layer, &call, sizeof call, NULL, 0};
        frag_model_pass_block(tape, model, i, &next, &hidden);
    }
    const head above = walk_head(&at, of);
    frag_tensor last = frag_aten_layer_norm(tape, hidden, &above.last, of->width);
    frag_tape_drop(tape, embedded);
    frag_tape_drop(tape, hidden);
    frag_tensor loss = classify(tape, &above, batch, last, of->width);
    frag_tape_drop(tape, last);
    return loss;
}

const frag_family frag_family_vit = {build, frag_family_load_images, compute_loss, NULL};
