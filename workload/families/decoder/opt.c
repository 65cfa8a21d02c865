/* OPT as transformers 5 has it (models/opt/modeling_opt.py), with attention by
 * scaled_dot_product_attention. */
#include "workload/families/family.h"

enum { TAKEN_POSITIONS = 2 }; /* before the first that is used */

typedef struct block {
    frag_linear k, v, q, out, feed, back;
    frag_pair first, second;
} block;

/* What stands around the blocks. */
typedef struct frame {
    frag_tensor words;
    frag_tensor places;
    frag_linear project_out, project_in; /* where embeddings have another width */
    frag_pair last;
} frame;

static bool has_projections(const frag_network *of)
{
    return of->embedding_width != of->width;
}

static frame walk_frame(frag_walk *at, const frag_network *of)
{
    frame next = {.words =
                      frag_walk_parameter(at, (frag_shape){of->vocabulary, of->embedding_width})};
    next.places = frag_walk_parameter(at, (frag_shape){of->positions + TAKEN_POSITIONS, of->width});
    if (has_projections(of)) {
        next.project_out = frag_walk_linear(at, (frag_shape){of->embedding_width, of->width}, false,
                                            FRAG_LORA_REST);
        next.project_in = frag_walk_linear(at, (frag_shape){of->width, of->embedding_width}, false,
                                           FRAG_LORA_REST);
    }
    if (of->has_norms_first)
        next.last = frag_walk_norm(at, of->width);
    return next;
}

static block walk_block(frag_walk *at, const frag_network *of)
{
    const frag_shape square = {of->width, of->width};
    bool has_bias = of->has_attention_bias;
    block next = {.k = frag_walk_linear(at, square, has_bias, FRAG_LORA_K)};
    next.v = frag_walk_linear(at, square, has_bias, FRAG_LORA_V);
    next.q = frag_walk_linear(at, square, has_bias, FRAG_LORA_Q);
    next.out = frag_walk_linear(at, square, has_bias, FRAG_LORA_OUT_PROJ);
    next.first = frag_walk_norm(at, of->width);
    next.feed = frag_walk_linear(at, (frag_shape){of->inner, of->width}, has_bias, FRAG_LORA_FC1);
    next.back = frag_walk_linear(at, (frag_shape){of->width, of->inner}, has_bias, FRAG_LORA_FC2);
    next.second = frag_walk_norm(at, of->width);
    return next;
}

static void build(frag_walk *at, const frag_network *of)
{
    (void)walk_frame(at, of);
    for (uint64_t i = 0; i < of->layers; i++) {
        frag_model_mark_block(at->model);
        (void)walk_block(at, of);
    }
    frag_model_mark_block(at->model);
    frag_decoder_walk_head(at, of);
}

typedef struct block_call {
    const frag_model *model;
    block at;
    frag_batch batch;
    frag_cache *past; /* NULL: none */
    frag_tensor mask; /* of eager attention; 0: none */
} block_call;

/* What is handed out in *weights lasts to the end of the block. */
static frag_tensor attend(frag_tape *tape, const block_call *call, frag_tensor x,
                          frag_tensor *weights)
{
    const frag_model *model = call->model;
    const block *at = &call->at;
    const frag_batch *batch = &call->batch;
    frag_cache *past = call->past;
    const frag_network *of = &model->workload->network;
    const frag_linear *layers[3] = {&at->q, &at->k, &at->v};
    frag_tensor qkv[3];
    for (uint32_t i = 0; i < 3; i++) {
        qkv[i] = frag_walk_apply(tape, x, layers[i]);
        if (i == 0) {
            frag_tape_set(tape, &qkv[i], frag_aten_mul_scalar(tape, qkv[i]));
            bool is_laid = frag_aten_is_flash(tape, frag_tape_dtype(tape, qkv[i])) &&
                           frag_tape_saves_on_host(tape);
            bool is_turned = frag_aten_is_turned(tape, qkv[i], i, batch->count);
            qkv[i] = frag_walk_split_heads(tape, qkv[i], is_laid || is_turned);
        } else if (i == 1 && frag_aten_is_turned(tape, qkv[i], i, batch->count)) {
            frag_tape_set(tape, &qkv[i], frag_aten_view_copied(tape, qkv[i]));
        }
    }
    /* Gradients of keys and values that went through the cache lie as they do there. */
    bool is_kept = past != NULL && frag_aten_is_flash(tape, frag_tape_dtype(tape, qkv[1]));
    qkv[1] = frag_walk_split_heads(tape, qkv[1], is_kept);
    qkv[2] = frag_walk_split_heads(tape, qkv[2],
                                   is_kept || frag_aten_is_turned(tape, qkv[2], 2, batch->count));
    frag_cache_append(tape, of, past, &qkv[1], &qkv[2]);
    frag_attention_shape shape = frag_model_attention(model, batch);
    shape.is_causal = batch->tokens > 1;
    shape.is_cached = past != NULL;
    const frag_eager_attention how = {
        .shape = shape, .mask = call->mask, .is_cached = shape.is_cached};
    frag_tensor made = frag_decoder_attend(tape, of, qkv, &how, weights);
    return frag_walk_put_out(tape, made, qkv, &at->out);
}

/* Tokens of all sequences in a row. */
static frag_tensor feed(frag_tape *tape, const frag_model *model, const block *at, frag_tensor x)
{
    const frag_network *of = &model->workload->network;
    frag_tensor hidden = frag_aten_view(tape, x);
    frag_tensor residual = frag_tape_keep(tape, hidden);
    if (of->has_norms_first)
        frag_tape_set(tape, &hidden, frag_aten_layer_norm(tape, hidden, &at->second, of->width));
    frag_tape_set(tape, &hidden, frag_walk_apply(tape, hidden, &at->feed));
    frag_tape_set(tape, &hidden,
                  frag_family_activate(tape, hidden, (frag_activation)of->activation));
    frag_tape_set(tape, &hidden, frag_walk_apply(tape, hidden, &at->back));
    frag_tape_set(tape, &hidden, frag_model_drop_residual(tape, model, hidden));
    frag_tape_set(tape, &hidden, frag_aten_add(tape, residual, hidden));
    frag_tape_set(tape, &hidden, frag_aten_view(tape, hidden));
    if (!of->has_norms_first)
        frag_tape_set(tape, &hidden, frag_aten_layer_norm(tape, hidden, &at->second, of->width));
    frag_tape_drop(tape, residual);
    return hidden;
}

static frag_tensor run_block(frag_tape *tape, const void *context, frag_tensor x)
{
    const block_call *call = context;
    const frag_model *model = call->model;
    const block *at = &call->at;
    const frag_network *of = &model->workload->network;
    frag_tensor weights = 0;
    frag_tensor hidden = of->has_norms_first ? frag_aten_layer_norm(tape, x, &at->first, of->width)
                                             : frag_tape_keep(tape, x);
    frag_tape_set(tape, &hidden, attend(tape, call, hidden, &weights));
    frag_tape_set(tape, &hidden, frag_model_drop_residual(tape, model, hidden));
    frag_tape_set(tape, &hidden, frag_aten_add(tape, x, hidden));
    if (!of->has_norms_first)
        frag_tape_set(tape, &hidden, frag_aten_layer_norm(tape, hidden, &at->first, of->width));
    frag_tape_set(tape, &hidden, feed(tape, model, at, hidden));
    frag_tape_drop(tape, weights);
    return hidden;
}

/* A mask of ones in fp32, and (cumsum(mask) * mask - 1).long(), as long as all tokens so far. */
static frag_tensor count_positions(frag_tape *tape, const frag_batch *batch, frag_tensor *mask)
{
    uint64_t count = batch->count * (batch->past + batch->tokens);
    *mask = frag_tape_empty(tape, count, FRAG_F32);
    frag_tensor sums = frag_tape_empty(tape, count, FRAG_F32);
    if (batch->count == 1)
        frag_aten_scan(tape, count, FRAG_F32);
    frag_tensor product = frag_tape_empty(tape, count, FRAG_F32);
    frag_tape_set(tape, &product, frag_tape_empty(tape, count, FRAG_F32));
    frag_tensor made = frag_tape_empty(tape, count, FRAG_I64);
    frag_tape_drop(tape, product);
    frag_tape_drop(tape, sums);
    return made;
}

/* Names of the forward pass that last to its end. */
typedef struct embedded {
    frag_tensor words;
    frag_tensor mask;
    frag_tensor positions;
    frag_tensor places;
    frag_tensor seen; /* the mask of eager attention; 0: none */
} embedded;

static frag_tensor embed(frag_tape *tape, const frag_model *model, const frame *around,
                         const frag_batch *batch, embedded *names)
{
    const frag_network *of = &model->workload->network;
    names->words = frag_aten_embedding(tape, around->words, batch->ids, of->embedding_width);
    frag_model_require_inputs(tape, model, names->words);
    names->positions = count_positions(tape, batch, &names->mask);
    names->seen = frag_decoder_see_before(tape, model, batch, frag_tape_dtype(tape, names->words));
    frag_tape_fetch(tape, &around->places, 1); /* its module adds the offset */
    frag_tensor moved = frag_tape_empty(tape, batch->count * batch->tokens, FRAG_I64);
    names->places = frag_aten_embedding(tape, around->places, moved, of->width);
    frag_tape_drop(tape, moved);
    frag_tape_send_back(tape, &around->places, 1);
    if (has_projections(of))
        frag_tape_set(tape, &names->words,
                      frag_walk_apply(tape, names->words, &around->project_in));
    return frag_aten_add(tape, names->words, names->places);
}

static frag_tensor run_blocks(frag_tape *tape, const frag_model *model, const frag_batch *batch,
                              frag_cache *past)
{
    const frag_network *of = &model->workload->network;
    frag_walk at = {.tape = tape, .workload = model->workload, .at = model->parameters};
    const frame around = walk_frame(&at, of);
    embedded names;
    frag_tensor hidden = embed(tape, model, &around, batch, &names);
    for (uint64_t i = 0; i < of->layers; i++) {
        const block_call call = {model, walk_block(&at, of), *batch, past, names.seen};
        const frag_tensor kept[] = {names.positions, names.seen};
        const frag_region_call next = {run_block, &call, sizeof call, kept, 2};
        frag_cache_pass_block(tape, model, past, (frag_block_place){i, 0}, &next, &hidden);
    }
    if (of->has_norms_first)
        frag_tape_set(tape, &hidden, frag_aten_layer_norm(tape, hidden, &around.last, of->width));
    if (has_projections(of))
        frag_tape_set(tape, &hidden, frag_walk_apply(tape, hidden, &around.project_out));
    frag_tape_drop(tape, names.words);
    frag_tape_drop(tape, names.mask);
    frag_tape_drop(tape, names.positions);
    frag_tape_drop(tape, names.places);
    frag_tape_drop(tape, names.seen);
    return hidden;
}

const frag_family frag_family_opt = {build, frag_family_load_tokens, NULL, run_blocks};
