/* BART as transformers 5 has it (models/bart/modeling_bart.py): an encoder, and a decoder that
 * looks at what the encoder made; with attention by scaled_dot_product_attention. */
#include "workload/families/family.h"

enum { TAKEN_POSITIONS = 2 }; /* before the first that is used */

/* What stands before the blocks of encoder or decoder. */
typedef struct stack {
    frag_stack of;
    frag_tensor places;
    frag_pair first;
} stack;

static void build(frag_walk *at, const frag_network *of)
{
    (void)frag_walk_parameter(at, (frag_shape){of->vocabulary, of->width});
    for (uint32_t i = 0; i < 2; i++) {
        const frag_stack in = frag_stack_name(of, i == 1);
        (void)frag_walk_parameter(at, (frag_shape){of->positions + TAKEN_POSITIONS, of->width});
        for (uint64_t layer = 0; layer < in.layers; layer++)
            (void)frag_walk_stack_block(at, of, &in);
        (void)frag_walk_norm(at, of->width);
    }
    frag_walk_buffer(at, of->vocabulary, frag_model_loaded_type(at->model));
    at->model->logits_bias = at->model->buffers[at->model->buffer_count - 1];
}

/* A block in its stack, with what it looks at besides its hidden states. */
typedef struct block_call {
    const frag_model *model;
    frag_stack in;
    frag_stack_block at;
    frag_batch batch;
    uint64_t tokens;     /* of this stack */
    frag_tensor encoded; /* 0: in the encoder */
} block_call;

/* seen: what keys and values are made of. */
static frag_tensor attend(frag_tape *tape, const block_call *call, const frag_attention_layer *at,
                          frag_tensor x, frag_tensor seen)
{
    const frag_network *of = &call->model->workload->network;
    uint64_t count = call->batch.count;
    frag_tensor qkv[3] = {frag_walk_apply(tape, x, &at->q)};
    /* Flash's gradients lie as its inputs do, which come back from the host in one piece. */
    bool is_laid =
        frag_aten_is_flash(tape, frag_tape_dtype(tape, qkv[0])) && frag_tape_saves_on_host(tape);
    qkv[0] =
        frag_walk_split_heads(tape, qkv[0], is_laid || frag_aten_is_turned(tape, qkv[0], 0, count));
    qkv[1] = frag_walk_apply(tape, seen, &at->k);
    if (frag_aten_is_turned(tape, qkv[1], 1, count))
        frag_tape_set(tape, &qkv[1], frag_aten_view_copied(tape, qkv[1]));
    qkv[2] = frag_walk_apply(tape, seen, &at->v);
    qkv[1] = frag_walk_split_heads(tape, qkv[1], is_laid);
    qkv[2] =
        frag_walk_split_heads(tape, qkv[2], is_laid || frag_aten_is_turned(tape, qkv[2], 2, count));
    frag_attention_shape shape = {
        .batch = count,
        .heads = call->in.heads,
        .key_heads = call->in.heads,
        .queries = call->tokens,
        .keys = frag_tape_count(tape, seen) / of->width / count,
        .width = of->width / call->in.heads,
        .has_dropout = frag_model_drops(call->model, of->attention_dropout),
        .is_causal = call->in.is_decoder && x == seen,
    };
    return frag_walk_attend(tape, qkv, &shape, &at->out);
}

/* norm(residual + dropout(made)); made is used up. */
static frag_tensor join(frag_tape *tape, const frag_model *model, frag_tensor residual,
                        frag_tensor made, const frag_pair *last)
{
    frag_tape_set(tape, &made, frag_model_drop_residual(tape, model, made));
    frag_tape_set(tape, &made, frag_aten_add(tape, residual, made));
    frag_tape_set(tape, &made,
                  frag_aten_layer_norm(tape, made, last, model->workload->network.width));
    return made;
}

static frag_tensor feed(frag_tape *tape, const block_call *call, frag_tensor x)
{
    const frag_network *of = &call->model->workload->network;
    frag_tensor made = frag_walk_apply(tape, x, &call->at.feed);
    frag_tape_set(tape, &made, frag_family_activate(tape, made, (frag_activation)of->activation));
    frag_tape_set(tape, &made,
                  frag_model_drop_out(tape, call->model, made, of->activation_dropout));
    frag_tape_set(tape, &made, frag_walk_apply(tape, made, &call->at.back));
    return made;
}

/* torch.isfinite(hidden).all(), in fp16: (hidden == hidden) * (hidden.abs() != inf). All are. */
static void see_finite(frag_tape *tape, frag_tensor hidden)
{
    const uint64_t count = frag_tape_count(tape, hidden);
    if (frag_tape_dtype(tape, hidden) != FRAG_F16)
        return;
    frag_tensor absolute = frag_tape_empty(tape, count, FRAG_F16);
    const frag_tensor parts[] = {absolute, frag_tape_empty(tape, count, FRAG_BOOL),
                                 frag_tape_empty(tape, count, FRAG_BOOL)};
    frag_tensor is_finite = frag_tape_empty(tape, count, FRAG_BOOL);
    frag_tape_drop_all(tape, parts, sizeof parts / sizeof *parts);
    frag_tensor all = frag_tape_empty(tape, 1, FRAG_BOOL);
    frag_aten_reduce_buffers(tape, &(frag_reduction){1, count, true, 1});
    frag_tape_drop(tape, is_finite);
    frag_tape_drop(tape, all);
}

static frag_tensor run_block(frag_tape *tape, const void *context, frag_tensor input)
{
    const block_call *call = context;
    const frag_stack_block *at = &call->at;
    frag_tensor hidden = frag_tape_keep(tape, input);
    frag_tape_set(tape, &hidden,
                  join(tape, call->model, hidden, attend(tape, call, &at->self, hidden, hidden),
                       &at->self.norm));
    if (call->in.is_decoder)
        frag_tape_set(tape, &hidden,
                      join(tape, call->model, hidden,
                           attend(tape, call, &at->cross, hidden, call->encoded), &at->cross.norm));
    frag_tensor residual = hidden;
    hidden = join(tape, call->model, residual, feed(tape, call, residual), &at->norm);
    if (!call->in.is_decoder)
        see_finite(tape, hidden);
    frag_tape_drop(tape, residual);
    return hidden;
}

/* A mask of ones, which is seen to mask nothing: mask.bool().sum() == mask.numel() */
static void pass_mask(frag_tape *tape, uint64_t count)
{
    frag_tensor mask = frag_tape_empty(tape, count, FRAG_F32);
    frag_tensor is_seen = frag_tape_empty(tape, count, FRAG_BOOL);
    frag_tensor sum = frag_tape_empty(tape, 1, FRAG_I64);
    frag_tape_drop(tape, frag_tape_empty(tape, count, FRAG_I64));
    frag_tape_drop(tape, frag_tape_empty(tape, 1, FRAG_BOOL));
    frag_tape_drop(tape, sum);
    frag_tape_drop(tape, is_seen);
    frag_tape_drop(tape, mask);
}

/* Numbers of positions, moved by those that are taken, which is what the module of places begins
 * with; an encoder's counts them as well. */
static frag_tensor count_positions(frag_tape *tape, const frag_batch *batch, const stack *in,
                                   uint64_t tokens, frag_tensor *held)
{
    if (!in->of.is_decoder) {
        frag_tape_fetch(tape, &in->places, 1);
        *held = frag_tape_empty(tape, tokens, FRAG_I64);
        return frag_tape_empty(tape, batch->count * tokens, FRAG_I64);
    }
    *held = frag_family_positions(tape, tokens);
    pass_mask(tape, batch->count * tokens);
    frag_tape_fetch(tape, &in->places, 1);
    return frag_tape_empty(tape, tokens, FRAG_I64);
}

/* words(ids) * scale + places(positions), normalised */
static frag_tensor embed(frag_tape *tape, const frag_model *model, const stack *in,
                         const frag_batch *batch, frag_tensor ids, frag_tensor names[3])
{
    const frag_network *of = &model->workload->network;
    frag_tape_fetch(tape, &model->parameters[0], 1); /* its module multiplies */
    names[0] = frag_aten_embedding(tape, model->parameters[0], ids, of->width);
    frag_tape_set(tape, &names[0], frag_aten_mul_scalar(tape, names[0]));
    frag_tape_send_back(tape, &model->parameters[0], 1);
    frag_model_require_inputs(tape, model, names[0]);
    uint64_t tokens = frag_tape_count(tape, ids) / batch->count;
    frag_tensor moved = count_positions(tape, batch, in, tokens, &names[2]);
    names[1] = frag_aten_embedding(tape, in->places, moved, of->width);
    frag_tape_drop(tape, moved);
    frag_tape_send_back(tape, &in->places, 1);
    if (!in->of.is_decoder) /* there they last to the end */
        frag_tape_clear(tape, &names[2]);
    frag_tensor made = frag_aten_add(tape, names[0], names[1]);
    frag_tape_set(tape, &made, frag_aten_layer_norm(tape, made, &in->first, of->width));
    frag_tape_set(tape, &made, frag_model_drop_residual(tape, model, made));
    return made;
}

static frag_tensor run_stack(frag_tape *tape, const frag_model *model, frag_walk *at,
                             const frag_batch *batch, frag_tensor ids, frag_tensor encoded)
{
    const frag_network *of = &model->workload->network;
    stack in = {.of = frag_stack_name(of, encoded != 0)};
    in.places = frag_walk_parameter(at, (frag_shape){0, 0});
    frag_walk behind = *at; /* the norm comes behind the blocks */
    for (uint64_t i = 0; i < in.of.layers; i++)
        (void)frag_walk_stack_block(&behind, of, &in.of);
    in.first = frag_walk_norm(&behind, of->width);
    frag_tensor names[3];
    frag_tensor hidden = embed(tape, model, &in, batch, ids, names);
    for (uint64_t i = 0; i < in.of.layers; i++) {
        block_call call = {.model = model,
                           .in = in.of,
                           .at = frag_walk_stack_block(at, of, &in.of),
                           .batch = *batch,
                           .encoded = encoded};
        call.tokens = frag_tape_count(tape, ids) / batch->count;
        const frag_region_call next = {run_block, &call, sizeof call, &encoded, 1};
        frag_tape_set(tape, &hidden, frag_model_call(tape, model, &next, hidden));
    }
    *at = behind;
    frag_tape_drop(tape, names[0]);
    frag_tape_drop(tape, names[1]);
    frag_tape_drop(tape, names[2]);
    return hidden;
}

static frag_tensor compute_loss(frag_tape *tape, const frag_model *model, const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    frag_walk at = {.tape = tape, .workload = model->workload, .at = model->parameters};
    (void)frag_walk_parameter(&at, (frag_shape){0, 0});
    frag_tensor shifted = frag_family_shift(tape, batch);
    frag_tensor encoded = run_stack(tape, model, &at, batch, batch->ids, 0);
    frag_tensor hidden = run_stack(tape, model, &at, batch, shifted, encoded);
    frag_tape_fetch(tape, &model->parameters[0], 1);
    frag_tensor logits = frag_aten_linear(tape, hidden, model->parameters[0], 0, of->vocabulary);
    frag_tape_send_back(tape, &model->parameters[0], 1);
    frag_tape_set(tape, &logits, frag_aten_add(tape, logits, model->logits_bias));
    frag_tensor loss = frag_family_loss(tape, logits, batch);
    frag_tape_drop(tape, hidden);
    frag_tape_drop(tape, encoded);
    frag_tape_drop(tape, shifted);
    return loss;
}

const frag_family frag_family_bart = {build, frag_family_load_pairs, compute_loss, NULL};
