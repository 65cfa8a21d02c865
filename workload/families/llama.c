/* Llama as transformers 5 has it (models/llama/modeling_llama.py), with attention by
 * scaled_dot_product_attention. */
#include "base/memory.h"
#include "workload/families/family.h"

typedef struct layer {
    frag_tensor weight; /* 0: not there */
    frag_tensor bias;
    uint64_t columns;
} layer;

typedef struct block {
    layer q, k, v, o, gate, up, down;
    frag_tensor norm;
    frag_tensor norm2;
} block;

typedef struct rope {
    frag_tensor cosine;
    frag_tensor sine;
} rope;

/* Where the next parameter stands, while a pass goes through them in order. */
typedef struct walk {
    const frag_tensor *at;
} walk;

static void add_linear(frag_tape *tape, frag_model *model, uint64_t inputs, uint64_t outputs,
                       bool has_bias)
{
    frag_model_add(tape, model, inputs * outputs);
    if (has_bias)
        frag_model_add(tape, model, outputs);
}

static void build(frag_tape *tape, frag_model *model)
{
    const frag_network *of = &model->workload->network;
    const uint64_t keys = of->key_heads * of->head_width;
    const uint64_t queries = of->heads * of->head_width;
    frag_model_add(tape, model, of->vocabulary * of->width);
    for (uint64_t i = 0; i < of->layers; i++) {
        add_linear(tape, model, of->width, queries, of->has_attention_bias);
        add_linear(tape, model, of->width, keys, of->has_attention_bias);
        add_linear(tape, model, of->width, keys, of->has_attention_bias);
        add_linear(tape, model, queries, of->width, of->has_attention_bias);
        add_linear(tape, model, of->width, of->inner, of->has_inner_bias);
        add_linear(tape, model, of->width, of->inner, of->has_inner_bias);
        add_linear(tape, model, of->inner, of->width, of->has_inner_bias);
        frag_model_add(tape, model, of->width);
        frag_model_add(tape, model, of->width);
    }
    frag_model_add(tape, model, of->width);
    /* Two buffers of the rotary embedding, always fp32. */
    for (uint32_t i = 0; i < 2; i++)
        (void)frag_tape_empty(tape, of->head_width / 2, FRAG_F32);
    if (!of->is_tied)
        frag_model_add(tape, model, of->vocabulary * of->width);
}

static layer next_linear(walk *at, uint64_t columns, bool has_bias)
{
    layer next = {.weight = *at->at++, .columns = columns};
    if (has_bias)
        next.bias = *at->at++;
    return next;
}

static block next_block(walk *at, const frag_network *of)
{
    const uint64_t keys = of->key_heads * of->head_width;
    block next = {.q = next_linear(at, of->heads * of->head_width, of->has_attention_bias)};
    next.k = next_linear(at, keys, of->has_attention_bias);
    next.v = next_linear(at, keys, of->has_attention_bias);
    next.o = next_linear(at, of->width, of->has_attention_bias);
    next.gate = next_linear(at, of->inner, of->has_inner_bias);
    next.up = next_linear(at, of->inner, of->has_inner_bias);
    next.down = next_linear(at, of->width, of->has_inner_bias);
    next.norm = *at->at++;
    next.norm2 = *at->at++;
    return next;
}

static frag_tensor linear(frag_tape *tape, frag_tensor x, layer of)
{
    return frag_aten_linear(tape, x, of.weight, of.bias, of.columns);
}

static frag_tensor rms_norm(frag_tape *tape, frag_tensor x, frag_tensor weight, uint64_t width)
{
    frag_dtype dtype = frag_tape_dtype(tape, x);
    frag_tensor hidden = frag_tape_to(tape, x, FRAG_F32);
    frag_tensor power = frag_aten_pow(tape, hidden);
    frag_tensor variance = frag_aten_mean_last(tape, power, width);
    frag_tape_drop(tape, power);
    frag_tensor shifted = frag_aten_add_scalar(tape, variance);
    frag_tensor root = frag_aten_rsqrt(tape, shifted);
    frag_tape_drop(tape, shifted);
    frag_tensor scaled = frag_aten_mul(tape, hidden, root);
    frag_tape_drop(tape, root);
    frag_tape_set(tape, &hidden, scaled);
    frag_tensor typed = frag_tape_to(tape, hidden, dtype);
    frag_tensor made = frag_aten_mul(tape, weight, typed);
    frag_tape_drop(tape, typed);
    frag_tape_drop(tape, hidden);
    frag_tape_drop(tape, variance);
    return made;
}

/* Angles of each position: cos and sin, in the type of the hidden states. Without gradients. */
static rope make_rope(frag_tape *tape, const frag_network *of, uint64_t tokens, frag_dtype dtype)
{
    bool was = frag_tape_set_recording(tape, false);
    frag_tensor positions = frag_tape_empty(tape, tokens, FRAG_F32);
    frag_tensor angles = frag_tape_empty(tape, tokens * (of->head_width / 2), FRAG_F32);
    frag_tape_drop(tape, positions);
    frag_tensor both = frag_aten_cat(tape, angles, angles, FRAG_F32);
    frag_tensor made[2];
    for (uint32_t i = 0; i < 2; i++) {
        made[i] = frag_aten_mul_scalar(tape, both);
        frag_tape_set(tape, &made[i], frag_aten_mul_scalar(tape, made[i]));
    }
    rope result = {.cosine = frag_tape_to(tape, made[0], dtype)};
    result.sine = frag_tape_to(tape, made[1], dtype);
    frag_tape_drop(tape, angles);
    frag_tape_drop(tape, both);
    frag_tape_drop(tape, made[0]);
    frag_tape_drop(tape, made[1]);
    frag_tape_set_recording(tape, was);
    return result;
}

/* torch.cat((-x2, x1), dim=-1) */
static frag_tensor rotate_half(frag_tape *tape, frag_tensor x)
{
    uint64_t half = frag_tape_count(tape, x) / 2;
    frag_tensor first = frag_aten_slice(tape, x, half);
    frag_tensor second = frag_aten_slice(tape, x, half);
    frag_tensor negative = frag_aten_mul_scalar(tape, second);
    frag_tensor made = frag_aten_cat(tape, negative, first, frag_tape_dtype(tape, x));
    frag_tape_drop(tape, negative);
    frag_tape_drop(tape, first);
    frag_tape_drop(tape, second);
    return made;
}

static frag_tensor apply_rope(frag_tape *tape, frag_tensor x, rope angles)
{
    frag_tensor straight = frag_aten_mul(tape, x, angles.cosine);
    frag_tensor turned = rotate_half(tape, x);
    frag_tape_set(tape, &turned, frag_aten_mul(tape, turned, angles.sine));
    frag_tensor made = frag_aten_add(tape, straight, turned);
    frag_tape_drop(tape, straight);
    frag_tape_drop(tape, turned);
    return made;
}

/* .view(shape).transpose(1, 2); is_copied: the gradient comes with heads before tokens. */
static frag_tensor split_heads(frag_tape *tape, frag_tensor x, bool is_copied)
{
    frag_tensor shaped = is_copied ? frag_aten_view_copied(tape, x) : frag_aten_view(tape, x);
    frag_tensor turned = frag_aten_view(tape, shaped);
    frag_tape_drop(tape, shaped);
    frag_tape_drop(tape, x);
    return turned;
}

/* Keys and values that the model hands back: kept until its output goes. */
typedef struct cache {
    frag_tensor *items;
    uint32_t count;
} cache;

static void remember(frag_tape *tape, cache *past, frag_tensor *key, frag_tensor *value)
{
    /* Both caches begin as empty tensors of the keys' type. */
    frag_dtype dtype = frag_tape_dtype(tape, *key);
    frag_tensor keys = frag_aten_cat(tape, 0, *key, dtype);
    frag_tensor values = frag_aten_cat(tape, 0, *value, dtype);
    past->items[past->count++] = frag_tape_keep(tape, keys);
    past->items[past->count++] = frag_tape_keep(tape, values);
    frag_tape_set(tape, key, keys);
    frag_tape_set(tape, value, values);
}

static frag_tensor attend(frag_tape *tape, const frag_model *model, const block *at, frag_tensor x,
                          rope angles, const frag_batch *batch, cache *past)
{
    const frag_network *of = &model->workload->network;
    frag_tensor qkv[3] = {split_heads(tape, linear(tape, x, at->q), true), 0, 0};
    qkv[1] = split_heads(tape, linear(tape, x, at->k), true);
    frag_tensor value = linear(tape, x, at->v);
    bool is_flash = frag_aten_is_flash(tape, frag_tape_dtype(tape, value));
    /* Flash's gradients lie as its inputs do, the memory-efficient kernel's have tokens first. */
    bool is_math = !is_flash && of->heads != of->key_heads;
    qkv[2] = split_heads(tape, value, is_math || (past != NULL && is_flash));
    frag_tensor query = apply_rope(tape, qkv[0], angles);
    frag_tensor key = apply_rope(tape, qkv[1], angles);
    frag_tape_set(tape, &qkv[0], query);
    frag_tape_set(tape, &qkv[1], key);
    if (past != NULL)
        remember(tape, past, &qkv[1], &qkv[2]);
    frag_attention_shape shape = {
        .batch = batch->count,
        .heads = of->heads,
        .key_heads = of->key_heads,
        .queries = batch->tokens,
        .keys = batch->tokens,
        .width = of->head_width,
        .is_causal = true,
    };
    frag_tensor made = frag_aten_attention(tape, qkv, &shape);
    frag_tape_set(tape, &made, frag_aten_view(tape, made));
    frag_tape_set(tape, &made, linear(tape, made, at->o));
    for (uint32_t i = 0; i < 3; i++)
        frag_tape_drop(tape, qkv[i]);
    return made;
}

/* down(act(gate(x)) * up(x)) */
static frag_tensor feed(frag_tape *tape, const frag_model *model, const block *at, frag_tensor x)
{
    frag_tensor gate = linear(tape, x, at->gate);
    frag_tensor active =
        frag_family_activate(tape, gate, (frag_activation)model->workload->network.activation);
    frag_tape_drop(tape, gate);
    frag_tensor up = linear(tape, x, at->up);
    frag_tensor inner = frag_aten_mul(tape, active, up);
    frag_tape_drop(tape, active);
    frag_tape_drop(tape, up);
    frag_tensor made = linear(tape, inner, at->down);
    frag_tape_drop(tape, inner);
    return made;
}

static frag_tensor run_block(frag_tape *tape, const frag_model *model, const block *at,
                             frag_tensor x, rope angles, const frag_batch *batch, cache *past)
{
    uint64_t width = model->workload->network.width;
    frag_tensor residual = frag_tape_keep(tape, x);
    frag_tensor hidden = rms_norm(tape, x, at->norm, width);
    frag_tape_set(tape, &hidden, attend(tape, model, at, hidden, angles, batch, past));
    frag_tape_set(tape, &hidden, frag_aten_add(tape, residual, hidden));
    frag_tape_set(tape, &residual, frag_tape_keep(tape, hidden));
    frag_tape_set(tape, &hidden, rms_norm(tape, hidden, at->norm2, width));
    frag_tape_set(tape, &hidden, feed(tape, model, at, hidden));
    frag_tape_set(tape, &hidden, frag_aten_add(tape, residual, hidden));
    frag_tape_drop(tape, residual);
    return hidden;
}

typedef struct block_call {
    const frag_model *model;
    block at;
    rope angles;
    frag_batch batch;
} block_call;

static frag_tensor run_region(frag_tape *tape, const void *context, frag_tensor input)
{
    const block_call *call = context;
    return run_block(tape, call->model, &call->at, input, call->angles, &call->batch, NULL);
}

/* With checkpointing no keys and values are handed back. */
static frag_tensor call_block(frag_tape *tape, const block_call *call, frag_tensor input,
                              frag_tensor positions, cache *past)
{
    if (!frag_model_has_checkpoints(call->model))
        return run_block(tape, call->model, &call->at, input, call->angles, &call->batch, past);
    const frag_tensor kept[] = {positions, call->angles.cosine, call->angles.sine};
    return frag_tape_checkpoint(tape, &(frag_region_call){run_region, call, sizeof *call, kept, 3},
                                input);
}

static frag_tensor run_blocks(frag_tape *tape, const frag_model *model, const frag_batch *batch,
                              cache *past)
{
    const frag_network *of = &model->workload->network;
    walk at = {model->parameters};
    frag_tensor words = *at.at++;
    frag_tensor hidden = frag_aten_embedding(tape, words, batch->ids, of->width);
    frag_tensor embedded = frag_tape_keep(tape, hidden);
    frag_tensor positions = frag_family_positions(tape, batch->tokens);
    if (frag_model_has_checkpoints(model))
        frag_family_find_packed(tape, batch);
    rope angles = make_rope(tape, of, batch->tokens, frag_tape_dtype(tape, hidden));
    for (uint64_t i = 0; i < of->layers; i++) {
        block_call call = {model, next_block(&at, of), angles, *batch};
        frag_tape_set(tape, &hidden, call_block(tape, &call, hidden, positions, past));
    }
    frag_tape_set(tape, &hidden, rms_norm(tape, hidden, *at.at, of->width));
    frag_tape_drop(tape, positions);
    frag_tape_drop(tape, embedded);
    frag_tape_drop(tape, angles.cosine);
    frag_tape_drop(tape, angles.sine);
    return hidden;
}

static frag_tensor compute_loss(frag_tape *tape, const frag_model *model, const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    cache past = {.items = frag_alloc(2 * of->layers, sizeof *past.items)};
    frag_tensor hidden = run_blocks(tape, model, batch, &past);
    frag_tensor head = model->parameters[of->is_tied ? 0 : model->parameter_count - 1];
    frag_tensor logits = frag_aten_linear(tape, hidden, head, 0, of->vocabulary);
    frag_tensor loss = frag_family_causal_loss(tape, logits, batch);
    frag_tape_drop(tape, hidden);
    frag_tape_drop(tape, logits);
    for (uint32_t i = past.count; i > 0; i -= 2) {
        frag_tape_drop(tape, past.items[i - 2]);
        frag_tape_drop(tape, past.items[i - 1]);
    }
    frag_free(past.items);
    return loss;
}

const frag_family frag_family_llama = {build, frag_family_load_tokens, compute_loss};
