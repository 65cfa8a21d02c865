/* GPT-NeoX and Pythia as transformers 5 has them (models/gpt_neox/modeling_gpt_neox.py), with
 * attention by scaled_dot_product_attention. */
#include "workload/families/family.h"

typedef struct block {
    frag_pair first, second;
    frag_linear mix, out, feed, back;
} block;

static block walk_block(frag_walk *at, const frag_network *of)
{
    const uint64_t width = of->width;
    block next = {.first = frag_walk_norm(at, of->width)};
    next.second = frag_walk_norm(at, of->width);
    next.mix = frag_walk_linear(at, (frag_shape){3 * width, width}, of->has_attention_bias,
                                FRAG_LORA_QUERY_KEY_VALUE);
    next.out =
        frag_walk_linear(at, (frag_shape){width, width}, of->has_attention_bias, FRAG_LORA_DENSE);
    next.feed = frag_walk_linear(at, (frag_shape){of->inner, width}, true, FRAG_LORA_H_TO_4H);
    next.back = frag_walk_linear(at, (frag_shape){width, of->inner}, true, FRAG_LORA_4H_TO_H);
    return next;
}

static void build(frag_walk *at, const frag_network *of)
{
    (void)frag_walk_parameter(at, (frag_shape){of->vocabulary, of->width});
    for (uint64_t i = 0; i < of->layers; i++) {
        frag_model_mark_block(at->model);
        (void)walk_block(at, of);
    }
    frag_model_mark_block(at->model);
    (void)frag_walk_norm(at, of->width);
    /* Two buffers of the rotary embedding, always fp32. */
    for (uint32_t i = 0; i < 2; i++)
        frag_walk_buffer(at, frag_rope_width(of) / 2, FRAG_F32);
    frag_decoder_walk_head(at, of);
}

typedef struct block_call {
    const frag_model *model;
    block at;
    frag_rope angles;
    frag_batch batch;
    frag_cache *past; /* NULL: none */
    frag_tensor mask; /* of eager attention; 0: none */
} block_call;

/* What is handed out in *weights lasts to the end of the block. */
static frag_tensor attend(frag_tape *tape, const block_call *call, frag_tensor x,
                          frag_tensor *weights)
{
    const frag_network *of = &call->model->workload->network;
    frag_tensor mixed = frag_walk_apply(tape, x, &call->at.mix);
    /* .view(heads).transpose(1, 2): its gradient comes with heads before tokens. */
    mixed = frag_walk_split_heads(tape, mixed, true);
    frag_tensor qkv[3] = {0};
    frag_aten_split(tape, mixed, qkv, 3);
    frag_rope_turn_parts(tape, of, qkv, call->angles);
    frag_cache_append(tape, of, call->past, &qkv[1], &qkv[2]);
    frag_attention_shape shape = frag_model_attention(call->model, &call->batch);
    shape.is_causal = call->batch.tokens > 1;
    shape.is_cached = call->past != NULL;
    shape.is_heads_first = shape.is_value_apart = true; /* as cat has put them */
    const frag_eager_attention how = {
        .shape = shape, .mask = call->mask, .is_cached = shape.is_cached};
    frag_tensor mixed_values = frag_decoder_attend(tape, of, qkv, &how, weights);
    frag_tensor made = frag_walk_put_out(tape, mixed_values, qkv, &call->at.out);
    frag_tape_drop(tape, mixed);
    return made;
}

/* dropout(back(act(feed(norm(x))))) */
static frag_tensor feed(frag_tape *tape, const frag_model *model, const block *at, frag_tensor x)
{
    const frag_network *of = &model->workload->network;
    frag_tensor normed = frag_aten_layer_norm(tape, x, &at->second, of->width);
    frag_tensor made = frag_walk_apply(tape, normed, &at->feed);
    frag_tape_set(tape, &made, frag_family_activate(tape, made, (frag_activation)of->activation));
    frag_tape_set(tape, &made, frag_walk_apply(tape, made, &at->back));
    frag_tape_drop(tape, normed);
    frag_tape_set(tape, &made, frag_model_drop_residual(tape, model, made));
    return made;
}

static frag_tensor run_block(frag_tape *tape, const void *context, frag_tensor x)
{
    const block_call *call = context;
    const frag_model *model = call->model;
    const block *at = &call->at;
    const frag_network *of = &model->workload->network;
    frag_tensor normed = frag_aten_layer_norm(tape, x, &at->first, of->width);
    frag_tensor weights = 0;
    frag_tensor attended = attend(tape, call, normed, &weights);
    frag_tape_drop(tape, normed);
    frag_tape_set(tape, &attended, frag_model_drop_residual(tape, model, attended));
    if (!of->is_parallel)
        frag_tape_set(tape, &attended, frag_aten_add(tape, attended, x));
    frag_tensor fed = feed(tape, model, at, of->is_parallel ? x : attended);
    frag_tensor made = frag_aten_add(tape, fed, attended);
    if (of->is_parallel)
        frag_tape_set(tape, &made, frag_aten_add(tape, made, x));
    frag_tape_drop(tape, attended);
    frag_tape_drop(tape, fed);
    frag_tape_drop(tape, weights);
    return made;
}

static frag_tensor run_blocks(frag_tape *tape, const frag_model *model, const frag_batch *batch,
                              frag_cache *past)
{
    const frag_network *of = &model->workload->network;
    frag_walk at = {.tape = tape, .workload = model->workload, .at = model->parameters};
    frag_tensor words = frag_walk_parameter(&at, (frag_shape){of->vocabulary, of->width});
    frag_tensor embedded = frag_aten_embedding(tape, words, batch->ids, of->width);
    frag_model_require_inputs(tape, model, embedded);
    frag_tensor positions = frag_family_positions(tape, batch->tokens);
    frag_model_find_packed(tape, model, batch, past);
    frag_tensor mask = frag_decoder_see_before(tape, model, batch, frag_tape_dtype(tape, embedded));
    frag_tensor hidden = frag_model_drop_residual(tape, model, embedded);
    frag_rope angles =
        frag_rope_make(tape, frag_rope_width(of), batch->tokens, frag_tape_dtype(tape, hidden));
    const frag_tensor kept[] = {positions, angles.cosine, angles.sine, mask};
    for (uint64_t i = 0; i < of->layers; i++) {
        const block_call call = {model, walk_block(&at, of), angles, *batch, past, mask};
        const frag_region_call next = {run_block, &call, sizeof call, kept, 4};
        frag_cache_pass_block(tape, model, past, (frag_block_place){i, 0}, &next, &hidden);
    }
    const frag_pair last = frag_walk_norm(&at, of->width);
    frag_tape_set(tape, &hidden, frag_aten_layer_norm(tape, hidden, &last, of->width));
    frag_tape_drop(tape, positions);
    frag_tape_drop(tape, embedded);
    frag_tape_drop(tape, angles.cosine);
    frag_tape_drop(tape, angles.sine);
    frag_tape_drop(tape, mask);
    return hidden;
}

const frag_family frag_family_gpt_neox = {build, frag_family_load_tokens, NULL, run_blocks};
