/* T5 as transformers 5 has it (models/t5/modeling_t5.py): an encoder, and a decoder that looks at
 * what the encoder made; positions are a bias of the scores, which the first block of each makes
 * and the others share. */
#include "workload/families/family.h"

typedef struct attention {
    frag_linear q, k, v, out;
    frag_tensor positions; /* 0: the first block has them */
    frag_tensor norm;      /* before it */
} attention;

typedef struct block {
    attention self, cross;
    frag_linear gate, feed, back; /* a gate, where the feed-forward part has one */
    frag_tensor norm;
} block;

typedef struct stack {
    uint64_t layers;
    bool is_decoder;
} stack;

static stack name_stack(const frag_network *of, bool is_decoder)
{
    return (stack){.layers = is_decoder ? of->layers : of->encoder_layers,
                   .is_decoder = is_decoder};
}

static frag_tensor walk_norm(frag_walk *at, const frag_network *of)
{
    return frag_walk_parameter(at, (frag_shape){0, of->width});
}

static attention walk_attention(frag_walk *at, const frag_network *of, bool has_positions)
{
    uint64_t inner = of->heads * of->head_width;
    attention next = {.q =
                          frag_walk_linear(at, (frag_shape){inner, of->width}, false, FRAG_LORA_Q)};
    next.k = frag_walk_linear(at, (frag_shape){inner, of->width}, false, FRAG_LORA_K);
    next.v = frag_walk_linear(at, (frag_shape){inner, of->width}, false, FRAG_LORA_V);
    next.out = frag_walk_linear(at, (frag_shape){of->width, inner}, false, FRAG_LORA_O);
    if (has_positions)
        next.positions = frag_walk_parameter(at, (frag_shape){of->position_buckets, of->heads});
    next.norm = walk_norm(at, of);
    return next;
}

static block walk_block(frag_walk *at, const frag_network *of, const stack *in, uint64_t index)
{
    const frag_shape wide = {of->inner, of->width};
    block next = {.self = walk_attention(at, of, index == 0)};
    if (in->is_decoder)
        next.cross = walk_attention(at, of, false);
    if (of->is_gated)
        next.gate = frag_walk_linear(at, wide, false, FRAG_LORA_GATE);
    next.feed = frag_walk_linear(at, wide, false, FRAG_LORA_UP);
    next.back = frag_walk_exact_linear(at, (frag_shape){of->width, of->inner}, FRAG_LORA_DOWN);
    next.norm = walk_norm(at, of);
    return next;
}

static void build(frag_walk *at, const frag_network *of)
{
    (void)frag_walk_parameter(at, (frag_shape){of->vocabulary, of->width});
    for (uint32_t i = 0; i < 2; i++) {
        stack in = name_stack(of, i == 1);
        for (uint64_t layer = 0; layer < in.layers; layer++)
            (void)walk_block(at, of, &in, layer);
        (void)walk_norm(at, of);
    }
}

/* weight * (x * rsqrt(mean of squares)), of which the product in brackets is in fp32. */
static frag_tensor normalise(frag_tape *tape, frag_tensor x, frag_tensor weight, uint64_t width)
{
    frag_tape_fetch(tape, &weight, 1);
    frag_tensor power = frag_tape_to(tape, x, FRAG_F32);
    frag_tape_set(tape, &power, frag_aten_pow(tape, power));
    frag_tensor variance = frag_aten_mean_last(tape, power, width);
    frag_tape_drop(tape, power);
    frag_tensor made = frag_aten_add_scalar(tape, variance);
    frag_tape_set(tape, &made, frag_aten_rsqrt(tape, made));
    frag_tape_set(tape, &made, frag_aten_mul(tape, x, made));
    if (frag_tape_dtype(tape, weight) != FRAG_F32)
        frag_tape_set(tape, &made, frag_tape_to(tape, made, frag_tape_dtype(tape, weight)));
    frag_tape_set(tape, &made, frag_aten_mul(tape, weight, made));
    frag_tape_drop(tape, variance);
    frag_tape_send_back(tape, &weight, 1);
    return made;
}

/* ---- positions */
/* What a stack's blocks share: each is made by the first that needs it. */
typedef struct biases {
    frag_tensor self;
    frag_tensor cross;
} biases;

/* A block in its stack, with what it looks at besides its hidden states. */
typedef struct block_call {
    const frag_model *model;
    stack in;
    block at;
    frag_batch batch;
    uint64_t tokens;     /* of this stack */
    frag_tensor encoded; /* 0: in the encoder */
    biases given;        /* 0s in the first block, */
    biases *made;        /* which hands them out */
    frag_cache *self;    /* keys and values are kept; NULL: they are not */
    frag_cache *cross;
} block_call;

/* What a block's names hold to its end. */
typedef struct block_names {
    frag_tensor biases[2];
    frag_tensor limit; /* of hidden states in fp16 */
} block_names;

/* Further operators on what is named, each of which replaces it. */
static void replace(frag_tape *tape, frag_tensor *name, uint64_t count, frag_dtype dtype)
{
    frag_tape_set(tape, name, frag_tape_empty(tape, count, dtype));
}

/* How far a key lies ahead, as numbers of the halves' beginnings, or behind. */
static frag_tensor count_distance(frag_tape *tape, uint64_t count, bool is_decoder,
                                  frag_tensor *half)
{
    if (is_decoder) { /* -min(distance, 0) */
        frag_tensor zeros = frag_tape_empty(tape, count, FRAG_I64);
        frag_tensor made = frag_tape_empty(tape, count, FRAG_I64);
        frag_tape_drop(tape, zeros);
        replace(tape, &made, count, FRAG_I64);
        return made;
    }
    *half = frag_tape_empty(tape, count, FRAG_BOOL); /* 0 + (distance > 0).to(long) * buckets */
    for (uint32_t i = 0; i < 3; i++)
        replace(tape, half, count, FRAG_I64);
    return frag_tape_empty(tape, count, FRAG_I64);
}

/* _relative_position_bucket: which row of the table each pair of tokens has. */
static frag_tensor find_buckets(frag_tape *tape, uint64_t count, bool is_decoder)
{
    frag_tensor half = 0;
    frag_tensor distance = count_distance(tape, count, is_decoder, &half);
    frag_tensor is_small = frag_tape_empty(tape, count, FRAG_BOOL);
    frag_tensor far = frag_tape_empty(tape, count, FRAG_F32);
    for (uint32_t i = 0; i < 4; i++) /* / exact, log, / ratio, * buckets */
        replace(tape, &far, count, FRAG_F32);
    for (uint32_t i = 0; i < 2; i++) /* as whole numbers, + exact */
        replace(tape, &far, count, FRAG_I64);
    frag_tensor last = frag_tape_empty(tape, count, FRAG_I64);
    replace(tape, &far, count, FRAG_I64);
    frag_tape_drop(tape, last);
    frag_tensor made = frag_tape_empty(tape, count, FRAG_I64);
    if (is_decoder)
        replace(tape, &made, count, FRAG_I64);
    else
        frag_tape_set(tape, &made, frag_tape_keep(tape, half));
    frag_tape_drop(tape, far);
    frag_tape_drop(tape, is_small);
    frag_tape_drop(tape, distance);
    frag_tape_drop(tape, half);
    return made;
}

/* compute_bias: of each head for each pair of tokens, heads behind tokens. */
static frag_tensor make_bias(frag_tape *tape, const block_call *call)
{
    uint64_t tokens = call->tokens;
    frag_tensor queries = frag_family_positions(tape, tokens);
    frag_tensor keys = frag_tape_empty(tape, tokens, FRAG_I64);
    frag_tensor distance = frag_tape_empty(tape, tokens * tokens, FRAG_I64);
    frag_tensor buckets = find_buckets(tape, tokens * tokens, call->in.is_decoder);
    frag_tensor table = call->at.self.positions;
    frag_tensor made =
        frag_aten_embedding_turned(tape, table, buckets, call->model->workload->network.heads);
    frag_tape_set(tape, &made, frag_aten_view(tape, made));
    frag_tape_set(tape, &made, frag_aten_view(tape, made));
    frag_tape_drop(tape, buckets);
    frag_tape_drop(tape, distance);
    frag_tape_drop(tape, keys);
    frag_tape_drop(tape, queries);
    return made;
}

/* create_position_bias_mask: what later tokens are hidden by, laid out with heads first. */
static frag_tensor make_mask(frag_tape *tape, const block_call *call, frag_tensor bias,
                             bool is_causal, bool is_cross)
{
    uint64_t tokens = call->tokens;
    frag_tensor made = frag_tape_keep(tape, bias);
    frag_tensor is_seen = 0;
    if (is_causal) {
        frag_tensor queries = frag_tape_empty(tape, tokens, FRAG_I64);
        frag_tensor keys = frag_tape_empty(tape, tokens, FRAG_I64);
        is_seen = frag_tape_empty(tape, tokens * tokens, FRAG_BOOL);
        frag_tape_drop(tape, keys);
        frag_tape_drop(tape, queries);
        frag_tape_set(tape, &made, frag_aten_where(tape, is_seen, made));
    }
    if (!is_cross && call->model->workload->network.heads > 1)
        frag_tape_set(tape, &made, frag_aten_contiguous(tape, made));
    frag_tape_drop(tape, is_seen);
    return made;
}

/* Nothing is added to the scores of cross attention, but by a tensor of zeros. Checkpointed, it
 * wants a gradient. */
static frag_tensor make_zeros(frag_tape *tape, const block_call *call, uint64_t keys,
                              frag_dtype dtype)
{
    uint64_t heads = call->model->workload->network.heads;
    frag_tensor made = frag_tape_empty(tape, heads * call->tokens * keys, dtype);
    if (frag_model_has_checkpoints(call->model))
        frag_tape_require_gradient(tape, made);
    return made;
}

/* ---- blocks */
/* The bias that is given, or is made here and handed out. Owned. */
static frag_tensor take_bias(frag_tape *tape, const block_call *call, bool is_cross, uint64_t keys,
                             frag_dtype dtype)
{
    frag_tensor given = is_cross ? call->given.cross : call->given.self;
    if (given != 0)
        return frag_tape_keep(tape, given);
    frag_tensor made = is_cross ? make_zeros(tape, call, keys, dtype) : make_bias(tape, call);
    if (!frag_tape_is_remaking(tape)) {
        frag_tensor *handed = is_cross ? &call->made->cross : &call->made->self;
        *handed = frag_tape_keep(tape, made);
    }
    return made;
}

/* hidden: what queries are made of; what keys and values are, or 0: of the same. */
static frag_tensor attend(frag_tape *tape, const block_call *call, block_names *names,
                          const frag_tensor hidden[2])
{
    const frag_network *of = &call->model->workload->network;
    bool is_cross = hidden[1] != 0;
    const attention *at = is_cross ? &call->at.cross : &call->at.self;
    frag_tensor x = hidden[0];
    frag_tensor seen = is_cross ? hidden[1] : x;
    frag_tensor qkv[3] = {frag_walk_split_heads(tape, frag_walk_apply(tape, x, &at->q), false)};
    qkv[1] = frag_walk_split_heads(tape, frag_walk_apply(tape, seen, &at->k), false);
    qkv[2] = frag_walk_split_heads(tape, frag_walk_apply(tape, seen, &at->v), false);
    frag_cache *cache = is_cross ? call->cross : call->self;
    frag_cache_append(tape, of, cache, &qkv[1], &qkv[2]);
    frag_attention_shape shape = {
        .batch = call->batch.count,
        .heads = of->heads,
        .key_heads = of->heads,
        .queries = call->tokens,
        .keys = frag_tape_count(tape, seen) / of->width / call->batch.count,
        .width = of->head_width,
        .has_dropout = frag_model_drops(call->model, of->residual_dropout),
        .is_cached = cache != NULL,
    };
    frag_tensor bias = take_bias(tape, call, is_cross, shape.keys, frag_tape_dtype(tape, qkv[0]));
    names->biases[is_cross] = bias;
    bool is_causal = call->in.is_decoder && !is_cross && call->tokens > 1;
    shape.mask = make_mask(tape, call, bias, is_causal, is_cross);
    frag_tensor made = frag_aten_attention(tape, qkv, &shape);
    frag_tape_drop(tape, shape.mask);
    frag_tape_set(tape, &made, frag_aten_view(tape, made));
    frag_tape_set(tape, &made, frag_walk_apply(tape, made, &at->out));
    frag_tape_drop_all(tape, qkv, 3);
    return made;
}

/* x + dropout(made) */
static frag_tensor add_dropped(frag_tape *tape, const frag_model *model, frag_tensor x,
                               frag_tensor made)
{
    frag_tensor dropped = frag_model_drop_residual(tape, model, made);
    frag_tensor sum = frag_aten_add(tape, x, dropped);
    frag_tape_drop(tape, dropped);
    return sum;
}

/* x + dropout(part(norm(x))) */
static frag_tensor add_attention(frag_tape *tape, const block_call *call, block_names *names,
                                 const frag_tensor hidden[2])
{
    frag_tensor x = hidden[0];
    frag_tensor norm = hidden[1] != 0 ? call->at.cross.norm : call->at.self.norm;
    frag_tensor normed = normalise(tape, x, norm, call->model->workload->network.width);
    frag_tensor made = attend(tape, call, names, (frag_tensor[]){normed, hidden[1]});
    frag_tape_set(tape, &made, add_dropped(tape, call->model, x, made));
    frag_tape_drop(tape, normed);
    return made;
}

static frag_tensor feed(frag_tape *tape, const block_call *call, frag_tensor x)
{
    const frag_network *of = &call->model->workload->network;
    frag_activation activation = (frag_activation)of->activation;
    const block *at = &call->at;
    frag_tensor gate = of->is_gated ? frag_walk_apply(tape, x, &at->gate) : 0;
    if (of->is_gated)
        frag_tape_set(tape, &gate, frag_family_activate(tape, gate, activation));
    frag_tensor inner = frag_walk_apply(tape, x, &at->feed);
    frag_tensor made = of->is_gated ? frag_aten_mul(tape, gate, inner)
                                    : frag_family_activate(tape, inner, activation);
    if (!of->is_gated)
        frag_tape_clear(tape, &inner);
    frag_tape_set(tape, &made, frag_model_drop_residual(tape, call->model, made));
    frag_dtype dtype = frag_tape_dtype(tape, at->back.weight);
    if (frag_tape_dtype(tape, made) != dtype)
        frag_tape_set(tape, &made, frag_tape_to(tape, made, dtype));
    frag_tape_set(tape, &made, frag_walk_apply(tape, made, &at->back));
    frag_tape_drop(tape, inner);
    frag_tape_drop(tape, gate);
    return made;
}

static frag_tensor add_feed(frag_tape *tape, const block_call *call, frag_tensor x)
{
    frag_tensor made = normalise(tape, x, call->at.norm, call->model->workload->network.width);
    frag_tape_set(tape, &made, feed(tape, call, made));
    frag_tape_set(tape, &made, add_dropped(tape, call->model, x, made));
    return made;
}

/* Of hidden states in fp16: is one of them infinite? Then they are cut at a lower limit. hidden is
 * used up. */
static frag_tensor limit(frag_tape *tape, block_names *names, frag_tensor hidden)
{
    if (frag_tape_dtype(tape, hidden) != FRAG_F16)
        return hidden;
    uint64_t count = frag_tape_count(tape, hidden);
    frag_tensor absolute = frag_tape_empty(tape, count, FRAG_F16);
    frag_tensor is_infinite = frag_tape_empty(tape, count, FRAG_BOOL);
    frag_tape_drop(tape, absolute);
    frag_tensor any = frag_tape_empty(tape, 1, FRAG_BOOL);
    frag_aten_reduce_buffers(tape, &(frag_reduction){1, count, true, 1});
    frag_tape_drop(tape, is_infinite);
    frag_tensor limits[2] = {frag_tape_empty(tape, 1, FRAG_F32),
                             frag_tape_empty(tape, 1, FRAG_F32)};
    frag_tape_set(tape, &names->limit, frag_tape_empty(tape, 1, FRAG_F32));
    frag_tape_drop(tape, limits[1]);
    frag_tape_drop(tape, limits[0]);
    frag_tape_drop(tape, any);
    frag_tensor lowest = frag_tape_empty(tape, 1, FRAG_F32);
    frag_tape_set(tape, &hidden, frag_aten_clamp(tape, hidden, lowest, names->limit));
    frag_tape_drop(tape, lowest);
    return hidden;
}

static frag_tensor run_block(frag_tape *tape, const void *context, frag_tensor input)
{
    const block_call *call = context;
    block_names names = {0};
    frag_tensor hidden = add_attention(tape, call, &names, (frag_tensor[]){input, 0});
    hidden = limit(tape, &names, hidden);
    if (call->in.is_decoder) {
        frag_tape_set(tape, &hidden,
                      add_attention(tape, call, &names, (frag_tensor[]){hidden, call->encoded}));
        hidden = limit(tape, &names, hidden);
    }
    frag_tape_set(tape, &hidden, add_feed(tape, call, hidden));
    hidden = limit(tape, &names, hidden);
    frag_tape_drop(tape, names.limit);
    frag_tape_drop(tape, names.biases[1]);
    frag_tape_drop(tape, names.biases[0]);
    return hidden;
}

static frag_tensor run_blocks(frag_tape *tape, frag_walk *at, block_call *call, frag_tensor hidden)
{
    const frag_network *of = &call->model->workload->network;
    biases shared = {0};
    call->made = &shared;
    for (uint64_t i = 0; i < call->in.layers; i++) {
        call->at = walk_block(at, of, &call->in, i);
        call->given = shared;
        const frag_tensor kept[] = {shared.self, call->encoded, shared.cross};
        const frag_region_call next = {run_block, call, sizeof *call, kept, 3};
        frag_tape_set(tape, &hidden, frag_model_call(tape, call->model, &next, hidden));
    }
    frag_tape_set(tape, &hidden, normalise(tape, hidden, walk_norm(at, of), of->width));
    frag_tape_set(tape, &hidden, frag_model_drop_residual(tape, call->model, hidden));
    frag_tape_drop(tape, shared.self);
    frag_tape_drop(tape, shared.cross);
    return hidden;
}

/* caches: NULL in the encoder, and where blocks are made anew. */
static frag_tensor run_stack(frag_tape *tape, frag_walk *at, block_call *call, frag_tensor ids)
{
    const frag_model *model = call->model;
    const frag_network *of = &model->workload->network;
    call->tokens = frag_tape_count(tape, ids) / call->batch.count;
    frag_tensor embedded = frag_aten_embedding(tape, model->parameters[0], ids, of->width);
    frag_model_require_inputs(tape, model, embedded);
    frag_tensor made = run_blocks(tape, at, call, frag_model_drop_residual(tape, model, embedded));
    frag_tape_drop(tape, embedded);
    return made;
}

static frag_tensor compute_loss(frag_tape *tape, const frag_model *model, const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    frag_walk at = {.tape = tape, .workload = model->workload, .at = model->parameters};
    (void)frag_walk_parameter(&at, (frag_shape){0, 0});
    block_call call = {.model = model, .in = name_stack(of, false), .batch = *batch};
    frag_tensor encoded = run_stack(tape, &at, &call, batch->ids);
    frag_tensor shifted = frag_family_shift(tape, batch);
    frag_cache caches[2] = {frag_cache_create(model, batch->count),
                            frag_cache_create(model, batch->count)};
    bool is_cached = !frag_model_has_checkpoints(model);
    call = (block_call){.model = model,
                        .in = name_stack(of, true),
                        .batch = *batch,
                        .encoded = encoded,
                        .self = is_cached ? &caches[0] : NULL,
                        .cross = is_cached ? &caches[1] : NULL};
    frag_tensor hidden = run_stack(tape, &at, &call, shifted);
    frag_tensor scaled =
        of->has_output_scale ? frag_aten_mul_scalar(tape, hidden) : frag_tape_keep(tape, hidden);
    frag_tape_fetch(tape, &model->parameters[0], 1);
    frag_tensor logits = frag_aten_linear(tape, scaled, model->parameters[0], 0, of->vocabulary);
    frag_tape_send_back(tape, &model->parameters[0], 1);
    frag_tensor loss = frag_family_loss(tape, logits, batch);
    frag_tape_drop(tape, scaled);
    frag_tape_drop(tape, hidden);
    frag_cache_destroy(tape, &caches[1]);
    frag_cache_destroy(tape, &caches[0]);
    frag_tape_drop(tape, shifted);
    frag_tape_drop(tape, encoded);
    return loss;
}

const frag_family frag_family_t5 = {build, frag_family_load_pairs, compute_loss, NULL};
