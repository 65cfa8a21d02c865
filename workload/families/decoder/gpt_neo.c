/* GPT-Neo as transformers 5 has it (models/gpt_neo/modeling_gpt_neo.py): scores of attention are
 * there as a tensor, made in fp32, and what a query sees lies in a buffer of each layer, so that
 * layers that see everything and those that see a window need as much memory. */
#include "workload/families/family.h"

typedef struct block {
    frag_pair first, second;
    frag_linear qkv[3], out, feed, back;
} block;

/* The buffer of a layer comes behind the parameters of its attention. */
static block walk_block(frag_walk *at, const frag_network *of)
{
    static const uint64_t targets[] = {FRAG_LORA_Q, FRAG_LORA_K, FRAG_LORA_V};
    static const uint32_t order[] = {1, 2, 0}; /* keys, values, queries */
    const uint64_t width = of->width;
    block next = {.first = frag_walk_norm(at, width)};
    for (uint32_t i = 0; i < 3; i++)
        next.qkv[order[i]] =
            frag_walk_linear(at, (frag_shape){width, width}, false, targets[order[i]]);
    next.out = frag_walk_linear(at, (frag_shape){width, width}, true, FRAG_LORA_OUT_PROJ);
    frag_walk_buffer(at, of->positions * of->positions, FRAG_BOOL);
    next.second = frag_walk_norm(at, width);
    next.feed = frag_walk_linear(at, (frag_shape){of->inner, width}, true, FRAG_LORA_C_FC);
    next.back = frag_walk_linear(at, (frag_shape){width, of->inner}, true, FRAG_LORA_C_PROJ);
    return next;
}

static void build(frag_walk *at, const frag_network *of)
{
    (void)frag_walk_parameter(at, (frag_shape){of->vocabulary, of->width});
    (void)frag_walk_parameter(at, (frag_shape){of->positions, of->width});
    for (uint64_t i = 0; i < of->layers; i++) {
        frag_model_mark_block(at->model);
        (void)walk_block(at, of);
    }
    frag_model_mark_block(at->model);
    (void)frag_walk_norm(at, of->width);
    frag_decoder_walk_head(at, of);
}

typedef struct block_call {
    const frag_model *model;
    block at;
    frag_tensor mask;
    frag_batch batch;
    frag_cache *past;     /* NULL: none */
    frag_tensor *weights; /* of the last block, which has a name until the next one is done */
} block_call;

/* Do heads of several sequences make no stack of matrices as they lie? */
static bool is_apart(const block_call *call)
{
    return call->batch.count > 1 && call->model->workload->network.heads > 1;
}

/* _attn: what attention makes of values; *weights: softmax(scores), in the type of values, and
 * dropout. What is not seen is the lowest number, once by the buffer and once by the mask. */
static frag_tensor mix(frag_tape *tape, const block_call *call, const frag_tensor qkv[3],
                       frag_tensor *weights)
{
    const frag_batch *batch = &call->batch;
    const frag_network *of = &call->model->workload->network;
    bool is_copied = is_apart(call) && batch->tokens > 1;
    const frag_matmul score = {.count = batch->count * of->heads * batch->tokens *
                                        (batch->past + batch->tokens),
                               .is_self_copied = is_copied,
                               .is_other_copied = is_copied && call->past == NULL,
                               .is_other_turned = true};
    const frag_matmul read = {.count = frag_tape_count(tape, qkv[0]),
                              .is_other_copied = is_copied && call->past == NULL,
                              .is_gradient_copied = is_copied};
    const frag_tensor wide[] = {frag_tape_to(tape, qkv[0], FRAG_F32),
                                frag_tape_to(tape, qkv[1], FRAG_F32)};
    frag_tensor shares = frag_aten_matmul(tape, wide[0], wide[1], &score);
    frag_tensor lowest = frag_tape_empty(tape, 1, frag_tape_dtype(tape, shares));
    frag_tape_set(tape, &shares, frag_aten_where_other(tape, shares));
    frag_tape_set(tape, &shares, frag_aten_add(tape, shares, call->mask));
    frag_tape_set(tape, &shares, frag_aten_softmax(tape, shares, true));
    frag_tape_set(tape, &shares, frag_tape_to(tape, shares, frag_tape_dtype(tape, qkv[2])));
    frag_tape_set(tape, &shares,
                  frag_model_drop_out(tape, call->model, shares, of->attention_dropout));
    frag_tensor made = frag_aten_matmul(tape, shares, qkv[2], &read);
    const frag_tensor names[] = {wide[0], wide[1], lowest};
    frag_tape_drop_all(tape, names, sizeof names / sizeof *names);
    *weights = shares;
    return made;
}

static frag_tensor attend(frag_tape *tape, const block_call *call, frag_tensor x,
                          frag_tensor *weights)
{
    const frag_network *of = &call->model->workload->network;
    const frag_batch *batch = &call->batch;
    bool is_moved = of->heads > 1 && batch->tokens > 1;
    frag_tensor qkv[3] = {0};
    /* Gradients of keys come as matrices the other way around, one for each sequence, which the
     * layer takes as they are where there is one. */
    for (uint32_t i = 0; i < 3; i++) {
        frag_linear layer = call->at.qkv[i];
        layer.images = i == 1 && batch->tokens > 1 ? batch->count : 0;
        qkv[i] = frag_walk_apply(tape, x, &layer);
    }
    for (uint32_t i = 0; i < 3; i++)
        qkv[i] = frag_walk_split_heads(tape, qkv[i], is_moved && i != 1);
    frag_cache_append(tape, of, call->past, &qkv[1], &qkv[2]);
    frag_tensor made = mix(tape, call, qkv, weights);
    if (is_moved) /* permute(0, 2, 1, 3).contiguous() */
        frag_tape_set(tape, &made, frag_aten_contiguous(tape, made));
    frag_tape_set(tape, &made, frag_aten_view(tape, made));
    frag_tape_set(tape, &made, frag_walk_apply(tape, made, &call->at.out));
    frag_tape_set(tape, &made, frag_model_drop_residual(tape, call->model, made));
    frag_tape_drop_all(tape, qkv, 3);
    return made;
}

static frag_tensor run_block(frag_tape *tape, const void *context, frag_tensor x)
{
    const block_call *call = context;
    const frag_model *model = call->model;
    uint64_t width = model->workload->network.width;
    frag_tensor weights = 0;
    frag_tensor hidden = frag_aten_layer_norm(tape, x, &call->at.first, width);
    frag_tensor attended = attend(tape, call, hidden, &weights);
    frag_tape_set(tape, &hidden, frag_aten_add(tape, attended, x));
    frag_tensor residual = frag_tape_keep(tape, hidden);
    frag_tape_set(tape, &hidden, frag_aten_layer_norm(tape, hidden, &call->at.second, width));
    frag_tensor fed = frag_decoder_feed(tape, model, &call->at.feed, &call->at.back, hidden);
    frag_tape_set(tape, &hidden, frag_aten_add(tape, residual, fed));
    frag_tape_drop(tape, residual);
    frag_tape_drop(tape, attended);
    frag_tape_drop(tape, fed);
    if (frag_tape_is_remaking(tape)) /* they have no name behind it then */
        frag_tape_drop(tape, weights);
    else
        frag_tape_set(tape, call->weights, weights);
    return hidden;
}

static frag_tensor make_mask(frag_tape *tape, const frag_model *model, const frag_batch *batch,
                             const frag_cache *past, frag_dtype dtype)
{
    const frag_attention_shape shape = {
        .batch = batch->count, .queries = batch->tokens, .keys = batch->past + batch->tokens};
    frag_model_find_packed(tape, model, batch, past);
    return frag_aten_causal_mask(tape, &shape, false, dtype);
}

static frag_tensor run_blocks(frag_tape *tape, const frag_model *model, const frag_batch *batch,
                              frag_cache *past)
{
    const frag_network *of = &model->workload->network;
    frag_walk at = {.tape = tape, .workload = model->workload, .at = model->parameters};
    frag_tensor weight = frag_walk_parameter(&at, (frag_shape){of->vocabulary, of->width});
    frag_tensor words = frag_aten_embedding(tape, weight, batch->ids, of->width);
    frag_model_require_inputs(tape, model, words);
    frag_tensor positions = frag_model_positions(tape, model, batch->tokens);
    frag_tensor mask = make_mask(tape, model, batch, past, frag_tape_dtype(tape, words));
    weight = frag_walk_parameter(&at, (frag_shape){of->positions, of->width});
    frag_tensor places = frag_aten_embedding(tape, weight, positions, of->width);
    frag_tensor hidden = frag_aten_add(tape, words, places);
    frag_tape_set(tape, &hidden, frag_model_drop_out(tape, model, hidden, of->embedding_dropout));
    frag_tensor weights = 0;
    for (uint64_t i = 0; i < of->layers; i++) {
        const block_call call = {model, walk_block(&at, of), mask, *batch, past, &weights};
        const frag_region_call next = {run_block, &call, sizeof call, &mask, 1};
        frag_model_pass_block(tape, model, i, &next, &hidden);
    }
    const frag_pair last = frag_walk_norm(&at, of->width);
    frag_tape_set(tape, &hidden, frag_aten_layer_norm(tape, hidden, &last, of->width));
    const frag_tensor names[] = {words, positions, mask, places, weights};
    frag_tape_drop_all(tape, names, sizeof names / sizeof *names);
    return hidden;
}

const frag_family frag_family_gpt_neo = {build, frag_family_load_tokens, NULL, run_blocks};
