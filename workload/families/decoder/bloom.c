/* BLOOM and MPT as transformers 5 has them (models/bloom/modeling_bloom.py, models/mpt/): decoders
 * whose positions are numbers that are added to the scores of attention (ALiBi), which are there as
 * a tensor. */
#include "workload/families/family.h"

typedef struct block {
    frag_pair first, second; /* MPT: without biases */
    frag_linear mix, out, feed, back;
} block;

static bool is_mpt(const frag_network *of)
{
    return of->family == FRAG_FAMILY_MPT;
}

static frag_pair walk_norm(frag_walk *at, const frag_network *of)
{
    return frag_walk_norm_with(at, of->width, !is_mpt(of));
}

static block walk_block(frag_walk *at, const frag_network *of)
{
    const uint64_t width = of->width;
    bool has_bias = !is_mpt(of);
    block next = {.first = walk_norm(at, of)};
    next.mix = frag_walk_linear(at, (frag_shape){3 * width, width}, has_bias,
                                is_mpt(of) ? FRAG_LORA_WQKV : FRAG_LORA_QUERY_KEY_VALUE);
    next.out = frag_walk_linear(at, (frag_shape){width, width}, has_bias,
                                is_mpt(of) ? FRAG_LORA_OUT_PROJ : FRAG_LORA_DENSE);
    next.second = walk_norm(at, of);
    next.feed = frag_walk_linear(at, (frag_shape){of->inner, width}, has_bias,
                                 is_mpt(of) ? FRAG_LORA_UP : FRAG_LORA_H_TO_4H);
    next.back = frag_walk_linear(at, (frag_shape){width, of->inner}, has_bias,
                                 is_mpt(of) ? FRAG_LORA_DOWN : FRAG_LORA_4H_TO_H);
    return next;
}

/* The words, and of BLOOM the norm of them. */
static frag_tensor walk_words(frag_walk *at, const frag_network *of, frag_pair *norm)
{
    frag_tensor words = frag_walk_parameter(at, (frag_shape){of->vocabulary, of->width});
    *norm = is_mpt(of) ? (frag_pair){0, 0} : frag_walk_norm(at, of->width);
    return words;
}

static void build(frag_walk *at, const frag_network *of)
{
    frag_pair norm;
    (void)walk_words(at, of, &norm);
    for (uint64_t i = 0; i < of->layers; i++) {
        frag_model_mark_block(at->model);
        (void)walk_block(at, of);
    }
    frag_model_mark_block(at->model);
    (void)walk_norm(at, of);
    frag_decoder_walk_head(at, of);
}

typedef struct block_call {
    const frag_model *model;
    block at;
    frag_tensor places; /* the numbers of positions */
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

static uint64_t count_scores(const block_call *call)
{
    const frag_batch *batch = &call->batch;
    return batch->count * call->model->workload->network.heads * batch->tokens *
           (batch->past + batch->tokens);
}

/* softmax(scores), in the type of what comes behind, and dropout */
static frag_tensor share(frag_tape *tape, const block_call *call, frag_tensor scores,
                         frag_dtype dtype)
{
    frag_tensor wide = frag_aten_softmax(tape, scores, is_mpt(&call->model->workload->network));
    frag_tensor made = frag_tape_to(tape, wide, dtype);
    frag_tape_drop(tape, wide);
    frag_tape_set(tape, &made,
                  frag_model_drop_out(tape, call->model, made,
                                      call->model->workload->network.attention_dropout));
    return made;
}

/* ---- BLOOM */
/* x.reshape(all heads, tokens, width) */
static void lay_heads(frag_tape *tape, frag_tensor *x, bool is_copied)
{
    frag_tensor laid = is_copied ? frag_aten_unsafe_view(tape, frag_aten_contiguous(tape, *x))
                                 : frag_aten_view(tape, *x);
    frag_tape_set(tape, x, laid);
}

/* Heads of queries, keys and values lie one behind the other. */
static void split(frag_tape *tape, const block_call *call, frag_tensor fused, frag_tensor qkv[3])
{
    frag_tensor shaped = frag_aten_view(tape, fused);
    for (uint32_t i = 0; i < 3; i++) {
        qkv[i] = frag_aten_slice(tape, shaped, frag_tape_count(tape, fused) / 3);
        frag_tape_set(tape, &qkv[i], frag_aten_view(tape, qkv[i]));
    }
    frag_tape_drop(tape, shaped);
    bool is_cached = call->past != NULL;
    frag_cache_append(tape, &call->model->workload->network, call->past, &qkv[1], &qkv[2]);
    for (uint32_t i = 0; i < 3; i++) {
        bool is_copied = is_apart(call) && call->batch.tokens > 1 && !(is_cached && i > 0);
        lay_heads(tape, &qkv[i], is_copied);
        if (i == 1) /* .transpose(-1, -2) */
            frag_tape_set(tape, &qkv[i], frag_aten_view(tape, qkv[i]));
    }
}

/* context: all heads of each token in a row. */
static frag_tensor merge_heads(frag_tape *tape, const block_call *call, frag_tensor context)
{
    bool is_moved = call->batch.tokens > 1 && call->model->workload->network.heads > 1;
    frag_tensor made = is_moved && is_apart(call) ? frag_aten_view_copied(tape, context)
                                                  : frag_aten_view(tape, context);
    frag_tape_set(tape, &made, frag_aten_view(tape, made));
    frag_tensor merged = is_moved ? frag_aten_unsafe_view(tape, frag_aten_contiguous(tape, made))
                                  : frag_aten_view(tape, made);
    frag_tape_drop(tape, made);
    return merged;
}

/* residual + dropout(x); x is used up. */
static frag_tensor add_dropped(frag_tape *tape, const frag_model *model, frag_tensor x,
                               frag_tensor residual)
{
    frag_tensor dropped = frag_model_drop_residual(tape, model, x);
    frag_tensor made = frag_aten_add(tape, residual, dropped);
    frag_tape_drop(tape, dropped);
    frag_tape_drop(tape, x);
    return made;
}

/* residual + what attention makes; *weights: what it hands out besides. */
static frag_tensor attend(frag_tape *tape, const block_call *call, frag_tensor x,
                          frag_tensor residual, frag_tensor *weights)
{
    frag_tensor fused = frag_walk_apply(tape, x, &call->at.mix);
    frag_tensor qkv[3] = {0};
    split(tape, call, fused, qkv);
    frag_tensor scores = frag_aten_baddbmm(tape, call->places, qkv, count_scores(call));
    frag_tensor shaped = frag_aten_view(tape, scores);
    frag_tape_set(tape, &shaped, frag_aten_add(tape, shaped, call->mask));
    *weights = share(tape, call, shaped, frag_tape_dtype(tape, qkv[0]));
    frag_tensor flat = frag_aten_view(tape, *weights);
    frag_tensor value = frag_tape_cast(tape, qkv[2]);
    frag_tensor factor = frag_tape_cast(tape, flat);
    frag_tensor context = frag_aten_bmm(tape, factor, value, frag_tape_count(tape, x));
    frag_tape_drop(tape, factor);
    frag_tape_drop(tape, value);
    frag_tape_set(tape, &context, merge_heads(tape, call, context));
    frag_tensor made = frag_walk_apply(tape, context, &call->at.out);
    made = add_dropped(tape, call->model, made, residual);
    const frag_tensor names[] = {fused, qkv[0], qkv[1], qkv[2], scores, shaped, flat, context};
    frag_tape_drop_all(tape, names, sizeof names / sizeof *names);
    return made;
}

/* a * b; both are used up. */
static frag_tensor multiply(frag_tape *tape, frag_tensor a, frag_tensor b)
{
    frag_tensor made = frag_aten_mul(tape, a, b);
    frag_tape_drop(tape, a);
    frag_tape_drop(tape, b);
    return made;
}

/* tanh(0.79788456 * x * (1 + 0.044715 * x * x)) */
static frag_tensor make_tanh(frag_tape *tape, frag_tensor x)
{
    frag_tensor scaled = frag_aten_mul_scalar(tape, x);
    frag_tensor factor = multiply(tape, frag_aten_mul_scalar(tape, x), frag_tape_keep(tape, x));
    frag_tape_set(tape, &factor, frag_aten_add_scalar(tape, factor));
    frag_tensor made = multiply(tape, scaled, factor);
    frag_tape_set(tape, &made, frag_aten_tanh(tape, made));
    return made;
}

/* bloom_gelu_back: saved: what went in. */
static void gelu_backward(frag_tape *tape, frag_node *node, const frag_tensor *in, frag_tensor *out)
{
    frag_tensor x = node->saved[0];
    frag_tensor tanh = make_tanh(tape, x);
    frag_tensor half = frag_aten_mul_scalar(tape, x);
    frag_tensor slope = frag_aten_mul(tape, tanh, tanh);
    frag_tape_set(tape, &slope, frag_aten_add_scalar(tape, slope));
    frag_tensor inner = multiply(tape, frag_aten_mul_scalar(tape, x), frag_tape_keep(tape, x));
    frag_tape_set(tape, &inner, frag_aten_add_scalar(tape, inner));
    frag_tensor all = multiply(tape, half, multiply(tape, slope, inner));
    frag_tensor rest = frag_aten_add_scalar(tape, tanh);
    frag_tape_set(tape, &rest, frag_aten_mul_scalar(tape, rest));
    frag_tensor sum = frag_aten_add(tape, all, rest);
    frag_tape_drop(tape, all);
    frag_tape_drop(tape, rest);
    out[0] = frag_aten_mul(tape, sum, in[0]);
    frag_tape_drop(tape, sum);
    frag_tape_drop(tape, tanh);
}

/* GeLUFunction: x * 0.5 * (1.0 + tanh(...)) without gradients, and the node that makes them. */
static frag_tensor apply_gelu(frag_tape *tape, frag_tensor x)
{
    bool was = frag_tape_set_recording(tape, false);
    frag_tensor half = frag_aten_mul_scalar(tape, x);
    frag_tensor factor = make_tanh(tape, x);
    frag_tape_set(tape, &factor, frag_aten_add_scalar(tape, factor));
    frag_tensor made = multiply(tape, half, factor);
    frag_tape_set_recording(tape, was);
    frag_node *node = frag_tape_record(tape, gelu_backward, &x, 1, &made, 1);
    frag_tape_save_made(tape, node, x); /* of a function in Python behind all that it makes */
    return made;
}

/* The weights of a block that runs anew have no name behind it. */
static void name_weights(frag_tape *tape, const block_call *call, frag_tensor weights)
{
    if (frag_tape_is_remaking(tape))
        frag_tape_drop(tape, weights);
    else
        frag_tape_set(tape, call->weights, weights);
}

static frag_tensor run_block(frag_tape *tape, const void *context, frag_tensor x)
{
    const block_call *call = context;
    const frag_model *model = call->model;
    const block *at = &call->at;
    const frag_network *of = &model->workload->network;
    frag_tensor weights = 0;
    frag_tensor normed = frag_aten_layer_norm(tape, x, &at->first, of->width);
    frag_tensor attended = attend(tape, call, normed, of->has_norm_residual ? normed : x, &weights);
    frag_tape_set(tape, &normed, frag_aten_layer_norm(tape, attended, &at->second, of->width));
    frag_tensor fed = frag_walk_apply(tape, normed, &at->feed);
    frag_tensor active = apply_gelu(tape, fed);
    frag_tape_drop(tape, fed);
    fed = frag_walk_apply(tape, active, &at->back);
    frag_tensor made = add_dropped(tape, model, fed, of->has_norm_residual ? normed : attended);
    frag_tape_drop(tape, active);
    frag_tape_drop(tape, normed);
    frag_tape_drop(tape, attended);
    name_weights(tape, call, weights);
    return made;
}

/* ---- MPT */
/* scores + places, and the lowest number where nothing is seen, always in fp32 */
static frag_tensor score(frag_tape *tape, const block_call *call, const frag_tensor qkv[3])
{
    bool is_copied = is_apart(call);
    const frag_matmul product = {.count = count_scores(call),
                                 .is_self_copied = is_copied,
                                 .is_other_copied = is_copied && call->past == NULL,
                                 .is_other_turned = true};
    frag_tensor made = frag_aten_matmul(tape, qkv[0], qkv[1], &product);
    frag_tape_set(tape, &made, frag_aten_mul_scalar(tape, made));
    const frag_batch *batch = &call->batch;
    uint64_t keys = batch->past + batch->tokens;
    frag_tensor places =
        frag_tape_view(tape, call->places, call->model->workload->network.heads * keys);
    frag_tape_set(tape, &made, frag_aten_add(tape, made, places));
    frag_tape_drop(tape, places);
    frag_tape_set(tape, &made, frag_aten_masked_fill(tape, made, call->mask));
    return made;
}

static frag_tensor attend_clipped(frag_tape *tape, const block_call *call, frag_tensor x,
                                  frag_tensor *weights)
{
    const frag_network *of = &call->model->workload->network;
    uint64_t tokens = call->batch.tokens;
    frag_tensor mixed = frag_walk_apply(tape, x, &call->at.mix);
    if (of->clip > 0)
        frag_tape_set(tape, &mixed, frag_aten_clamp(tape, mixed, 0, 0));
    frag_tensor qkv[3] = {0};
    frag_aten_split(tape, mixed, qkv, 3);
    /* Gradients of keys come as matrices the other way around, which lie as the keys do. */
    for (uint32_t i = 0; i < 3; i++)
        qkv[i] = frag_walk_split_heads(tape, qkv[i], i != 1 && of->heads > 1 && tokens > 1);
    frag_cache_append(tape, of, call->past, &qkv[1], &qkv[2]);
    frag_tensor scores = score(tape, call, qkv);
    *weights = share(tape, call, scores, frag_tape_dtype(tape, qkv[2]));
    const frag_matmul product = {.count = frag_tape_count(tape, x),
                                 .is_other_copied = is_apart(call) && call->past == NULL,
                                 .is_gradient_copied = is_apart(call) && tokens > 1};
    frag_tensor values = frag_aten_matmul(tape, *weights, qkv[2], &product);
    if (of->heads > 1 && tokens > 1) /* permute(0, 2, 1, 3).contiguous() */
        frag_tape_set(tape, &values, frag_aten_contiguous(tape, values));
    frag_tape_set(tape, &values, frag_aten_view(tape, values));
    frag_tensor made = frag_walk_apply(tape, values, &call->at.out);
    const frag_tensor names[] = {mixed, qkv[0], qkv[1], qkv[2], scores, values};
    frag_tape_drop_all(tape, names, sizeof names / sizeof *names);
    return made;
}

static frag_tensor run_mpt_block(frag_tape *tape, const void *context, frag_tensor x)
{
    const block_call *call = context;
    const block *at = &call->at;
    const uint64_t width = call->model->workload->network.width;
    frag_tensor weights = 0;
    frag_tensor normed = frag_aten_layer_norm(tape, x, &at->first, width);
    frag_tensor attended = attend_clipped(tape, call, normed, &weights);
    frag_tensor residual = frag_aten_add(tape, attended, x);
    frag_tape_set(tape, &normed, frag_aten_layer_norm(tape, residual, &at->second, width));
    frag_tensor fed = frag_walk_apply(tape, normed, &at->feed);
    frag_tape_set(tape, &fed, frag_aten_gelu(tape, fed));
    frag_tensor made = frag_walk_apply(tape, fed, &at->back);
    frag_tape_set(tape, &made, frag_aten_add(tape, made, residual));
    const frag_tensor names[] = {fed, normed, residual, attended};
    frag_tape_drop_all(tape, names, sizeof names / sizeof *names);
    name_weights(tape, call, weights);
    return made;
}

/* ---- positions */
/* A number for each head: powers of two, and where heads are none, of the next one between. */
static frag_tensor make_slopes(frag_tape *tape, const frag_network *of)
{
    uint64_t power = 1;
    while (2 * power <= of->heads)
        power *= 2;
    frag_tensor base = frag_tape_empty(tape, 1, FRAG_F32);
    frag_tensor powers = frag_tape_empty(tape, power, FRAG_I32);
    frag_tensor made = frag_tape_empty(tape, power, FRAG_F32);
    if (power != of->heads) {
        frag_tensor extra_base = frag_tape_empty(tape, 1, FRAG_F32);
        frag_tensor extra = frag_tape_empty(tape, of->heads - power, FRAG_I32);
        frag_tensor between = frag_tape_empty(tape, of->heads - power, FRAG_F32);
        frag_tape_set(tape, &made, frag_tape_empty(tape, of->heads, FRAG_F32));
        frag_tape_drop(tape, between);
        frag_tape_drop(tape, extra);
        frag_tape_drop(tape, extra_base);
    }
    frag_tape_drop(tape, powers);
    frag_tape_drop(tape, base);
    return made;
}

/* A number for each head and key, for each sequence; slopes: what has a name to the end. */
static frag_tensor make_places(frag_tape *tape, const frag_network *of, const frag_batch *batch,
                               frag_dtype dtype, frag_tensor *slopes)
{
    uint64_t keys = batch->past + batch->tokens;
    *slopes = make_slopes(tape, of);
    frag_tensor range = frag_tape_empty(tape, keys, FRAG_I64);
    frag_tensor made = frag_tape_empty(tape, of->heads * keys, FRAG_F32);
    frag_tape_drop(tape, range);
    frag_tensor repeated = frag_aten_repeat(tape, made, batch->count);
    frag_tensor typed = frag_tape_to(tape, repeated, dtype);
    frag_tape_drop(tape, repeated);
    frag_tape_set(tape, &made, typed);
    return made;
}

/* build_mpt_alibi_tensor: of all positions that the model has. */
static frag_tensor make_all_places(frag_tape *tape, const frag_network *of)
{
    uint64_t power = 1;
    while (power < of->heads)
        power *= 2;
    frag_tensor made = frag_tape_empty(tape, of->positions, FRAG_I32);
    frag_tensor range = frag_tape_empty(tape, power, FRAG_I64);
    frag_tensor base = frag_tape_empty(tape, power, FRAG_F32);
    frag_tape_drop(tape, range);
    frag_tape_set(tape, &base, frag_tape_empty(tape, power, FRAG_F32));
    frag_tensor powers = frag_tape_empty(tape, power, FRAG_F32);
    frag_tape_drop(tape, frag_tape_empty(tape, 1, FRAG_I64));    /* 2, of which they are powers */
    frag_tensor slopes = frag_tape_empty(tape, power, FRAG_F32); /* 1 / powers, and that times 1 */
    frag_tape_set(tape, &slopes, frag_tape_empty(tape, power, FRAG_F32));
    frag_tape_drop(tape, powers);
    if (power != of->heads)
        frag_tape_set(tape, &slopes, frag_tape_empty(tape, power, FRAG_F32));
    frag_tape_set(tape, &made, frag_tape_empty(tape, of->heads * of->positions, FRAG_F32));
    frag_tape_drop(tape, slopes);
    frag_tape_drop(tape, base);
    return made;
}

static frag_tensor make_mask(frag_tape *tape, const frag_network *of, const frag_batch *batch,
                             frag_dtype dtype)
{
    const frag_attention_shape shape = {
        .batch = batch->count, .queries = batch->tokens, .keys = batch->past + batch->tokens};
    frag_tensor made = frag_aten_causal_mask(tape, &shape, false, dtype);
    if (is_mpt(of)) /* .to(torch.bool) */
        frag_tape_set(tape, &made, frag_tape_empty(tape, frag_tape_count(tape, made), FRAG_BOOL));
    return made;
}

static frag_tensor run_blocks(frag_tape *tape, const frag_model *model, const frag_batch *batch,
                              frag_cache *past)
{
    const frag_network *of = &model->workload->network;
    frag_walk at = {.tape = tape, .workload = model->workload, .at = model->parameters};
    frag_pair norm;
    frag_tensor words = walk_words(&at, of, &norm);
    frag_tensor embedded = frag_aten_embedding(tape, words, batch->ids, of->width);
    frag_model_require_inputs(tape, model, embedded);
    frag_tensor hidden = is_mpt(of) ? frag_tape_keep(tape, embedded)
                                    : frag_aten_layer_norm(tape, embedded, &norm, of->width);
    frag_tensor slopes = 0;
    frag_tensor places = is_mpt(of)
                             ? make_all_places(tape, of)
                             : make_places(tape, of, batch, frag_tape_dtype(tape, hidden), &slopes);
    frag_tensor mask = make_mask(tape, of, batch, frag_tape_dtype(tape, embedded));
    frag_tensor weights = 0;
    const frag_tensor kept[] = {places, mask};
    for (uint64_t i = 0; i < of->layers; i++) {
        const block_call call = {model, walk_block(&at, of), places, mask, *batch, past, &weights};
        const frag_region_call next = {is_mpt(of) ? run_mpt_block : run_block, &call, sizeof call,
                                       kept, 2};
        frag_model_pass_block(tape, model, i, &next, &hidden);
    }
    const frag_pair last = walk_norm(&at, of);
    frag_tape_set(tape, &hidden, frag_aten_layer_norm(tape, hidden, &last, of->width));
    const frag_tensor names[] = {embedded, slopes, places, mask, weights};
    frag_tape_drop_all(tape, names, sizeof names / sizeof *names);
    return hidden;
}

const frag_family frag_family_bloom = {build, frag_family_load_tokens, NULL, run_blocks};
