/* Falcon as transformers 5 has it (models/falcon/modeling_falcon.py): one head of keys and values
 * for all queries, or one for some of them that is copied for each, with a mask that is always
 * there. */
#include "workload/families/family.h"

typedef struct block {
    frag_linear mix, out, feed, back;
    frag_pair norm, feed_norm; /* before attention and feed-forward part; the latter of two norms */
} block;

/* Is there one head of keys and values, which queries share as it is? */
static bool is_shared(const frag_network *of)
{
    return of->key_heads == 1 && !of->has_copied_keys;
}

static block walk_block(frag_walk *at, const frag_network *of)
{
    const uint64_t width = of->width;
    const uint64_t mixed = width + 2 * of->key_heads * of->head_width;
    bool has_bias = of->has_attention_bias;
    block next = {0};
    next.mix =
        frag_walk_linear(at, (frag_shape){mixed, width}, has_bias, FRAG_LORA_QUERY_KEY_VALUE);
    next.out = frag_walk_linear(at, (frag_shape){width, width}, has_bias, FRAG_LORA_DENSE);
    next.feed = frag_walk_linear(at, (frag_shape){of->inner, width}, has_bias, FRAG_LORA_H_TO_4H);
    next.back = frag_walk_linear(at, (frag_shape){width, of->inner}, has_bias, FRAG_LORA_4H_TO_H);
    frag_linear *const layers[] = {&next.mix, &next.out, &next.feed, &next.back};
    for (uint32_t i = 0; i < sizeof layers / sizeof *layers; i++)
        layers[i]->is_apart = true;
    if (!of->is_parallel)
        next.feed_norm = frag_walk_norm(at, width);
    next.norm = frag_walk_norm(at, width);
    if (of->is_parallel && of->parallel_norms == 2)
        next.feed_norm = frag_walk_norm(at, width);
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
    for (uint32_t i = 0; i < 2; i++)
        frag_walk_buffer(at, of->head_width / 2, FRAG_F32);
    frag_decoder_walk_head(at, of);
}

typedef struct block_call {
    const frag_model *model;
    block at;
    frag_rope angles;
    frag_tensor mask;
    frag_batch batch;
    frag_cache *past; /* NULL: none */
} block_call;

/* Queries are a part of each row, keys and values the head behind them and the last one. */
static void split(frag_tape *tape, const frag_network *of, frag_tensor mixed, frag_tensor qkv[3])
{
    uint64_t rows = frag_tape_count(tape, mixed) / (of->width + 2 * of->key_heads * of->head_width);
    frag_tensor shaped = frag_aten_view(tape, mixed);
    qkv[0] = frag_aten_slice(tape, shaped, rows * of->width);
    for (uint32_t i = 1; i < 3; i++) { /* by a list of one number */
        frag_tensor index = frag_tape_empty(tape, 1, FRAG_I64);
        qkv[i] = frag_aten_gather(tape, shaped, index, rows * of->key_heads * of->head_width);
        frag_tape_drop(tape, index);
    }
    bool is_spread = !is_shared(of) && of->heads > of->key_heads;
    for (uint32_t i = 1; i < 3 && is_spread; i++)
        frag_tape_set(tape, &qkv[i], frag_aten_expand(tape, qkv[i], rows * of->width));
    if (is_spread && of->key_heads > 1) { /* flatten(2, 3), else of a dimension of one */
        frag_tensor copies[3];
        for (uint32_t i = 0; i < 3; i++)
            copies[i] = frag_aten_contiguous(tape, qkv[i]);
        for (uint32_t i = 0; i < 3; i++)
            frag_tape_set(tape, &qkv[i], copies[i]);
    }
    frag_tape_drop(tape, shaped);
}

static frag_tensor attend(frag_tape *tape, const block_call *call, frag_tensor x)
{
    const frag_network *of = &call->model->workload->network;
    frag_tensor mixed = frag_walk_apply(tape, x, &call->at.mix);
    frag_tensor qkv[3] = {0};
    split(tape, of, mixed, qkv);
    for (uint32_t i = 0; i < 3; i++)
        frag_tape_set(tape, &qkv[i], frag_aten_view(tape, qkv[i]));
    frag_tensor turned[2];
    for (uint32_t i = 0; i < 2; i++)
        turned[i] = frag_rope_apply(tape, qkv[i], call->angles);
    for (uint32_t i = 0; i < 2; i++)
        frag_tape_set(tape, &qkv[i], turned[i]);
    frag_cache_append(tape, of, call->past, &qkv[1], &qkv[2]);
    frag_attention_shape shape = frag_model_attention(call->model, &call->batch);
    shape.key_heads = is_shared(of) ? 1 : of->heads;
    shape.has_dropout = false;
    shape.is_cached = call->past != NULL;
    shape.seen = call->mask;
    shape.is_shared = is_shared(of) && of->heads > 1;
    frag_tensor made = frag_aten_attention(tape, qkv, &shape);
    frag_tape_set(tape, &made, frag_aten_view(tape, made));
    frag_tape_set(tape, &made, frag_walk_apply(tape, made, &call->at.out));
    frag_tape_drop_all(tape, qkv, 3);
    frag_tape_drop(tape, mixed);
    return made;
}

static frag_tensor feed(frag_tape *tape, const frag_network *of, const block *at, frag_tensor x)
{
    frag_tensor made = frag_walk_apply(tape, x, &at->feed);
    frag_tape_set(tape, &made, frag_family_activate(tape, made, (frag_activation)of->activation));
    frag_tape_set(tape, &made, frag_walk_apply(tape, made, &at->back));
    return made;
}

static frag_tensor run_block(frag_tape *tape, const void *context, frag_tensor x)
{
    const block_call *call = context;
    const block *at = &call->at;
    const frag_network *of = &call->model->workload->network;
    frag_tensor normed = frag_aten_layer_norm(tape, x, &at->norm, of->width);
    frag_tensor fed_from = of->is_parallel && of->parallel_norms == 2
                               ? frag_aten_layer_norm(tape, x, &at->feed_norm, of->width)
                               : frag_tape_keep(tape, normed);
    frag_tensor attended = attend(tape, call, normed);
    frag_tensor residual = frag_tape_keep(tape, x);
    if (!of->is_parallel) {
        frag_tensor dropped =
            frag_model_drop_out(tape, call->model, attended, of->attention_dropout);
        frag_tape_set(tape, &residual, frag_aten_add(tape, x, dropped));
        frag_tape_drop(tape, dropped);
        frag_tape_set(tape, &fed_from,
                      frag_aten_layer_norm(tape, residual, &at->feed_norm, of->width));
    }
    frag_tensor fed = feed(tape, of, at, fed_from);
    if (of->is_parallel)
        fed = frag_aten_add_in_place(tape, fed, attended);
    frag_tensor dropped = frag_model_drop_residual(tape, call->model, fed);
    frag_tensor made = frag_aten_add(tape, residual, dropped);
    const frag_tensor names[] = {normed, fed_from, attended, residual, fed, dropped};
    frag_tape_drop_all(tape, names, sizeof names / sizeof *names);
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
    const frag_attention_shape shape = {
        .batch = batch->count, .queries = batch->tokens, .keys = batch->past + batch->tokens};
    frag_tensor mask = frag_aten_seen(tape, &shape, false);
    frag_tensor hidden = frag_tape_keep(tape, embedded);
    frag_rope angles =
        frag_rope_make(tape, of->head_width, batch->tokens, frag_tape_dtype(tape, hidden));
    const frag_tensor kept[] = {positions, angles.cosine, angles.sine, mask};
    for (uint64_t i = 0; i < of->layers; i++) {
        const block_call call = {model, walk_block(&at, of), angles, mask, *batch, past};
        const frag_region_call next = {run_block, &call, sizeof call, kept, 4};
        frag_model_pass_block(tape, model, i, &next, &hidden);
    }
    const frag_pair last = frag_walk_norm(&at, of->width);
    frag_tape_set(tape, &hidden, frag_aten_layer_norm(tape, hidden, &last, of->width));
    const frag_tensor names[] = {positions, embedded, angles.cosine, angles.sine, mask};
    frag_tape_drop_all(tape, names, sizeof names / sizeof *names);
    return hidden;
}

const frag_family frag_family_falcon = {build, frag_family_load_tokens, NULL, run_blocks};
