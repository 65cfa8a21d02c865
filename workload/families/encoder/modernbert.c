/* ModernBERT with its head for masked words, as transformers 5 has it
 * (models/modernbert/modeling_modernbert.py), with attention by scaled_dot_product_attention. */
#include "workload/families/family.h"

typedef struct block {
    frag_pair first, second; /* the first block has no first norm */
    frag_linear mix, out, feed, back;
} block;

/* On top: a layer, a norm, and the embedding of the words turned around. */
typedef struct head {
    frag_linear dense;
    frag_pair last;
    frag_tensor words; /* 0: the embedding */
    frag_tensor bias;
} head;

static frag_pair walk_norm(frag_walk *at, const frag_network *of)
{
    return frag_walk_norm_with(at, of->width, of->has_norm_bias);
}

static block walk_block(frag_walk *at, const frag_network *of, uint64_t layer)
{
    const uint64_t width = of->width;
    block next = {.first = {0, 0}};
    if (layer > 0)
        next.first = walk_norm(at, of);
    next.mix = frag_walk_linear(at, (frag_shape){3 * width, width}, of->has_attention_bias,
                                FRAG_LORA_WQKV);
    next.out =
        frag_walk_linear(at, (frag_shape){width, width}, of->has_attention_bias, FRAG_LORA_WO);
    next.second = walk_norm(at, of);
    next.feed =
        frag_walk_linear(at, (frag_shape){2 * of->inner, width}, of->has_inner_bias, FRAG_LORA_WI);
    next.back =
        frag_walk_linear(at, (frag_shape){width, of->inner}, of->has_inner_bias, FRAG_LORA_WO);
    return next;
}

static head walk_head(frag_walk *at, const frag_network *of)
{
    head next = {.dense = frag_walk_linear(at, (frag_shape){of->width, of->width},
                                           of->has_dense_bias, FRAG_LORA_DENSE)};
    next.last = walk_norm(at, of);
    if (!of->is_tied)
        next.words = frag_walk_parameter(at, (frag_shape){of->vocabulary, of->width});
    if (of->has_head_bias)
        next.bias = frag_walk_parameter(at, (frag_shape){0, of->vocabulary});
    return next;
}

/* All layers but every so many, the first among these, look at their neighbours only. */
static bool is_local(const frag_network *of, uint64_t layer)
{
    return layer % of->full_every != 0;
}

static bool has_two_kinds(const frag_network *of)
{
    return of->full_every > 1 && of->layers > 1;
}

static void build(frag_walk *at, const frag_network *of)
{
    (void)frag_walk_parameter(at, (frag_shape){of->vocabulary, of->width});
    (void)walk_norm(at, of);
    for (uint64_t i = 0; i < of->layers; i++) {
        frag_model_mark_block(at->model);
        (void)walk_block(at, of, i);
    }
    frag_model_mark_block(at->model);
    (void)walk_norm(at, of);
    /* Two buffers of the rotary embedding of each kind of layers, always fp32. */
    for (uint32_t i = 0; i < (has_two_kinds(of) ? 4 : 2); i++)
        frag_walk_buffer(at, of->head_width / 2, FRAG_F32);
    if (at->workload->head == FRAG_HEAD_LM)
        (void)walk_head(at, of);
    else
        (void)frag_walk_class_head(at, of);
}

typedef struct block_call {
    const frag_model *model;
    block at;
    frag_rope angles;
    frag_tensor seen; /* 0: all */
    frag_batch batch;
} block_call;

/* (x.float() * cos) + (rotate_half(x.float()) * sin), in fp32; then both in their own type. */
static void turn(frag_tape *tape, frag_tensor qkv[3], frag_rope angles)
{
    frag_tensor turned[2];
    for (uint32_t i = 0; i < 2; i++)
        turned[i] = frag_rope_apply_wide(tape, qkv[i], angles);
    frag_tensor typed[2];
    for (uint32_t i = 0; i < 2; i++)
        typed[i] = frag_tape_to(tape, turned[i], frag_tape_dtype(tape, qkv[i]));
    for (uint32_t i = 0; i < 2; i++) {
        frag_tape_set(tape, &qkv[i], typed[i]);
        frag_tape_drop(tape, turned[i]);
    }
}

static frag_tensor attend(frag_tape *tape, const block_call *call, frag_tensor x)
{
    const frag_model *model = call->model;
    frag_tensor mixed = frag_walk_apply(tape, x, &call->at.mix);
    frag_tape_set(tape, &mixed, frag_aten_view(tape, mixed));
    frag_tensor qkv[3] = {0};
    frag_aten_split(tape, mixed, qkv, 3); /* unbind; its gradients are stacked */
    for (uint32_t i = 0; i < 3; i++)
        frag_tape_set(tape, &qkv[i], frag_aten_view(tape, qkv[i]));
    turn(tape, qkv, call->angles);
    const frag_eager_attention how = {.shape = frag_model_attention(model, &call->batch),
                                      .mask = call->seen};
    frag_tensor attended = frag_decoder_attend(tape, &model->workload->network, qkv, &how, NULL);
    frag_tape_set(tape, &attended, frag_aten_view(tape, attended));
    frag_tensor made = frag_walk_apply(tape, attended, &call->at.out);
    frag_tape_set(
        tape, &made,
        frag_model_drop_out(tape, model, made, model->workload->network.attention_dropout));
    frag_tape_drop(tape, attended);
    frag_tape_drop_all(tape, qkv, 3);
    frag_tape_drop(tape, mixed);
    return made;
}

/* back(dropout(act(input) * gate)), both out of one layer */
static frag_tensor feed(frag_tape *tape, const frag_model *model, const block *at, frag_tensor x)
{
    const frag_network *of = &model->workload->network;
    frag_tensor both = frag_walk_apply(tape, x, &at->feed);
    frag_tensor parts[2];
    frag_family_halve(tape, both, parts);
    frag_tape_drop(tape, both);
    frag_family_will_save(tape, parts[0]);
    frag_tensor made = frag_family_activate(tape, parts[0], (frag_activation)of->activation);
    frag_family_will_save(tape, parts[1]);
    frag_tape_set(tape, &made, frag_aten_mul(tape, made, parts[1]));
    frag_tape_set(tape, &made, frag_model_drop_residual(tape, model, made));
    frag_tape_set(tape, &made, frag_walk_apply(tape, made, &at->back));
    frag_tape_drop(tape, parts[0]);
    frag_tape_drop(tape, parts[1]);
    return made;
}

static frag_tensor run_block(frag_tape *tape, const void *context, frag_tensor x)
{
    const block_call *call = context;
    const block *at = &call->at;
    const uint64_t width = call->model->workload->network.width;
    frag_tensor normed = at->first.weight != 0 ? frag_aten_layer_norm(tape, x, &at->first, width)
                                               : frag_tape_keep(tape, x);
    frag_tensor attended = attend(tape, call, normed);
    frag_tape_drop(tape, normed);
    frag_tensor hidden = frag_aten_add(tape, x, attended);
    normed = frag_aten_layer_norm(tape, hidden, &at->second, width);
    frag_tensor fed = feed(tape, call->model, at, normed);
    frag_tape_drop(tape, normed);
    frag_tape_set(tape, &hidden, frag_aten_add(tape, hidden, fed));
    frag_tape_drop(tape, fed);
    frag_tape_drop(tape, attended);
    return hidden;
}

static frag_tensor embed(frag_tape *tape, const frag_model *model, frag_walk *at, frag_tensor words,
                         const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    const frag_pair last = walk_norm(at, of);
    frag_tensor made = frag_aten_embedding(tape, words, batch->ids, of->width);
    frag_model_require_inputs(tape, model, made);
    frag_tape_set(tape, &made, frag_aten_layer_norm(tape, made, &last, of->width));
    frag_tape_set(tape, &made, frag_model_drop_out(tape, model, made, of->embedding_dropout));
    return made;
}

static frag_tensor run_blocks(frag_tape *tape, const frag_model *model, frag_walk *at,
                              frag_tensor words, const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    frag_tensor positions = frag_tape_empty(tape, batch->tokens, FRAG_I64);
    frag_tensor hidden = embed(tape, model, at, words, batch);
    frag_tensor embedded = frag_tape_keep(tape, hidden);
    const frag_attention_shape shape = {
        .batch = batch->count, .queries = batch->tokens, .keys = batch->tokens};
    /* Made whether a layer wants it or not. */
    frag_tensor near = batch->tokens >= of->neighbours / 2 ? frag_aten_seen_near(tape, &shape) : 0;
    const frag_dtype dtype = frag_tape_dtype(tape, hidden);
    frag_rope ropes[2] = {frag_rope_make(tape, of->head_width, batch->tokens, dtype)};
    if (has_two_kinds(of))
        ropes[1] = frag_rope_make(tape, of->head_width, batch->tokens, dtype);
    for (uint64_t i = 0; i < of->layers; i++) {
        bool is_near = is_local(of, i);
        const block_call call = {model, walk_block(at, of, i), ropes[is_near], is_near ? near : 0,
                                 *batch};
        const frag_tensor kept[] = {call.angles.cosine, call.angles.sine, call.seen};
        const frag_region_call next = {run_block, &call, sizeof call, kept, 3};
        frag_model_pass_block(tape, model, i, &next, &hidden);
    }
    const frag_pair last = walk_norm(at, of);
    frag_tape_set(tape, &hidden, frag_aten_layer_norm(tape, hidden, &last, of->width));
    frag_tape_drop(tape, positions);
    frag_tape_drop(tape, embedded);
    frag_tape_drop(tape, near);
    for (uint32_t i = 0; i < 2; i++) {
        frag_tape_drop(tape, ropes[i].cosine);
        frag_tape_drop(tape, ropes[i].sine);
    }
    return hidden;
}

static frag_tensor compute_loss(frag_tape *tape, const frag_model *model, const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    frag_walk at = {.tape = tape, .workload = model->workload, .at = model->parameters};
    frag_tensor words = frag_walk_parameter(&at, (frag_shape){of->vocabulary, of->width});
    frag_tensor hidden = run_blocks(tape, model, &at, words, batch);
    if (model->workload->head != FRAG_HEAD_LM) {
        const frag_class_head classes = frag_walk_class_head(&at, of);
        return frag_class_head_loss(tape, model, &classes, batch,
                                    &(frag_class_input){.hidden = hidden});
    }
    const head above = walk_head(&at, of);
    frag_tensor logits = frag_walk_apply(tape, hidden, &above.dense);
    frag_tape_set(tape, &logits, frag_aten_gelu(tape, logits));
    frag_tape_set(tape, &logits, frag_aten_layer_norm(tape, logits, &above.last, of->width));
    const frag_tensor decoder[] = {above.words != 0 ? above.words : words, above.bias};
    frag_tape_fetch(tape, decoder, 2);
    frag_tape_set(tape, &logits,
                  frag_aten_linear(tape, logits, decoder[0], decoder[1], of->vocabulary));
    frag_tape_send_back(tape, decoder, 2);
    /* ForMaskedLMLoss */
    frag_tensor wide = frag_tape_to(tape, logits, FRAG_F32);
    frag_tape_set(tape, &wide, frag_aten_view(tape, wide));
    frag_tensor loss = frag_aten_cross_entropy(tape, wide, batch->labels);
    frag_tape_drop(tape, wide);
    frag_family_return(tape, batch, logits);
    frag_tape_drop(tape, hidden);
    frag_tape_drop(tape, logits);
    return loss;
}

const frag_family frag_family_modernbert = {build, frag_family_load_tokens, compute_loss, NULL};
