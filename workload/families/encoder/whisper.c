/* Whisper as transformers 5 has it (models/whisper/modeling_whisper.py): two convolutions make
 * states of a spectrogram, an encoder reads them, and a decoder looks at what the encoder made;
 * with attention by scaled_dot_product_attention. The encoder's hidden states lie as the
 * convolutions left them, each channel in one piece, so that norms copy them. */
#include "workload/families/family.h"

enum { KERNEL = 3, PADDING = 1, FRAMES = 2 }; /* frames of a spectrogram for each position */

static frag_pair walk_convolution(frag_walk *at, const frag_network *of, uint64_t in)
{
    frag_pair next = {.weight = frag_walk_stack(at, (frag_shape){in, KERNEL}, of->width)};
    next.bias = frag_walk_parameter(at, (frag_shape){0, of->width});
    return next;
}

/* What stands before the encoder's blocks. */
typedef struct ears {
    frag_pair convolutions[2];
    frag_tensor places; /* which are not trained */
} ears;

static ears walk_ears(frag_walk *at, const frag_network *of)
{
    ears next = {.convolutions = {walk_convolution(at, of, of->mels)}};
    next.convolutions[1] = walk_convolution(at, of, of->width);
    next.places = frag_walk_frozen(at, (frag_shape){of->encoder_positions, of->width});
    return next;
}

/* What stands before the decoder's blocks; the head shares the weight of words. */
typedef struct embeddings {
    frag_tensor words, places;
} embeddings;

static embeddings walk_embeddings(frag_walk *at, const frag_network *of)
{
    embeddings next = {.words = frag_walk_parameter(at, (frag_shape){of->vocabulary, of->width})};
    next.places = frag_walk_parameter(at, (frag_shape){of->positions, of->width});
    return next;
}

static void walk_stack(frag_walk *at, const frag_network *of, bool is_decoder)
{
    const frag_stack in = frag_stack_name(of, is_decoder);
    for (uint64_t i = 0; i < in.layers; i++)
        (void)frag_walk_stack_block(at, of, &in);
    (void)frag_walk_norm(at, of->width);
}

static void build(frag_walk *at, const frag_network *of)
{
    (void)walk_ears(at, of);
    walk_stack(at, of, false);
    (void)walk_embeddings(at, of);
    walk_stack(at, of, true);
}

/* Spectrograms, and what was said. */
static void load(frag_tape *tape, const frag_model *model, frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    uint64_t numbers = batch->count * of->mels * FRAMES * of->encoder_positions;
    frag_tape_set(tape, &batch->ids, frag_tape_empty(tape, numbers, model->dtype));
    frag_tape_set(tape, &batch->labels,
                  frag_tape_empty(tape, batch->count * batch->tokens, FRAG_I64));
}

/* Hidden states of the encoder in fp16 are kept within numbers. Gradients come out of that as these
 * states lie. */
static bool is_clamped(const frag_model *model)
{
    return model->dtype == FRAG_F16;
}

/* A block in its stack, with what it looks at besides its hidden states. */
typedef struct block_call {
    const frag_model *model;
    frag_stack in;
    frag_stack_block at;
    uint64_t count;      /* of sequences */
    uint64_t tokens;     /* of this stack */
    frag_tensor encoded; /* 0: in the encoder */
    frag_cache *self;    /* NULL: none */
    frag_cache *cross;
} block_call;

static frag_tensor normalise(frag_tape *tape, const block_call *call, frag_tensor x,
                             const frag_pair *at)
{
    return frag_aten_layer_norm_laid(tape, x, at, call->model->workload->network.width,
                                     call->in.is_decoder ? FRAG_NORM_PLAIN : FRAG_NORM_TURNED);
}

/* x.view(shape).transpose(1, 2).contiguous(); flash's gradient has heads before tokens. */
static frag_tensor split_heads(frag_tape *tape, const block_call *call, frag_tensor x,
                               uint64_t tokens)
{
    bool is_moved = call->in.heads > 1 && tokens > 1;
    bool is_flash = frag_aten_is_flash(tape, frag_tape_dtype(tape, x));
    x = frag_walk_split_heads(tape, x, is_moved && is_flash);
    if (is_moved)
        frag_tape_set(tape, &x, frag_aten_contiguous(tape, x));
    return x;
}

/* seen: what keys and values are made of. */
static frag_tensor attend(frag_tape *tape, const block_call *call, const frag_attention_layer *at,
                          frag_tensor x, frag_tensor seen)
{
    const frag_network *of = &call->model->workload->network;
    bool is_cross = x != seen;
    uint64_t keys = frag_tape_count(tape, seen) / of->width / call->count;
    frag_tensor qkv[3] = {frag_walk_apply(tape, x, &at->q)};
    frag_tape_set(tape, &qkv[0], frag_aten_mul_scalar(tape, qkv[0]));
    qkv[0] = split_heads(tape, call, qkv[0], call->tokens);
    qkv[1] = split_heads(tape, call, frag_walk_apply(tape, seen, &at->k), keys);
    qkv[2] = split_heads(tape, call, frag_walk_apply(tape, seen, &at->v), keys);
    frag_cache *cache = is_cross ? call->cross : call->self;
    frag_cache_append(tape, of, cache, &qkv[1], &qkv[2]);
    const frag_attention_shape shape = {
        .batch = call->count,
        .heads = call->in.heads,
        .key_heads = call->in.heads,
        .queries = call->tokens,
        .keys = keys,
        .width = of->width / call->in.heads,
        .has_dropout = frag_model_drops(call->model, of->attention_dropout),
        .is_causal = call->in.is_decoder && !is_cross && call->tokens > 1,
        .is_cached = cache != NULL,
        .is_heads_first = call->in.heads > 1,
    };
    return frag_walk_attend(tape, qkv, &shape, &at->out);
}

/* residual + dropout(made); made is used up. */
static frag_tensor join(frag_tape *tape, const frag_model *model, frag_tensor residual,
                        frag_tensor made)
{
    frag_tape_set(tape, &made, frag_model_drop_residual(tape, model, made));
    frag_tape_set(tape, &made, frag_aten_add(tape, residual, made));
    return made;
}

/* x + attention(norm(x)); seen: 0: of the same. */
static frag_tensor add_attention(frag_tape *tape, const block_call *call,
                                 const frag_attention_layer *at, frag_tensor x, frag_tensor seen)
{
    frag_tensor made = normalise(tape, call, x, &at->norm);
    frag_tape_set(tape, &made, attend(tape, call, at, made, seen != 0 ? seen : made));
    return join(tape, call->model, x, made);
}

static frag_tensor add_feed(frag_tape *tape, const block_call *call, frag_tensor x)
{
    const frag_network *of = &call->model->workload->network;
    frag_tensor made = normalise(tape, call, x, &call->at.norm);
    frag_tensor wide = frag_walk_apply(tape, made, &call->at.feed);
    frag_tape_set(tape, &made, frag_family_activate(tape, wide, (frag_activation)of->activation));
    frag_tape_drop(tape, wide);
    frag_tape_set(tape, &made,
                  frag_model_drop_out(tape, call->model, made, of->activation_dropout));
    frag_tape_set(tape, &made, frag_walk_apply(tape, made, &call->at.back));
    return join(tape, call->model, x, made);
}

static frag_tensor run_block(frag_tape *tape, const void *context, frag_tensor input)
{
    const block_call *call = context;
    frag_tensor hidden = add_attention(tape, call, &call->at.self, input, 0);
    if (call->in.is_decoder)
        frag_tape_set(tape, &hidden,
                      add_attention(tape, call, &call->at.cross, hidden, call->encoded));
    frag_tensor made = add_feed(tape, call, hidden);
    if (!call->in.is_decoder && is_clamped(call->model))
        frag_tape_set(tape, &made, frag_aten_clamp(tape, made, 0, 0)); /* to numbers */
    frag_tape_drop(tape, hidden);
    return made;
}

/* hidden is used up. */
static frag_tensor run_blocks(frag_tape *tape, frag_walk *at, block_call *call, frag_tensor hidden)
{
    const frag_network *of = &call->model->workload->network;
    for (uint64_t i = 0; i < call->in.layers; i++) {
        call->at = frag_walk_stack_block(at, of, &call->in);
        if (!call->in.is_decoder && is_clamped(call->model))
            call->at.self.out.images = call->at.back.images = call->count;
        const frag_region_call next = {run_block, call, sizeof *call, &call->encoded, 1};
        frag_tape_set(tape, &hidden, frag_model_call(tape, call->model, &next, hidden));
    }
    const frag_pair last = frag_walk_norm(at, of->width);
    frag_tape_set(tape, &hidden, normalise(tape, call, hidden, &last));
    return hidden;
}

/* gelu(convolution(x)); number: of the convolution. */
static frag_tensor convolve(frag_tape *tape, const block_call *call, const ears *at,
                            uint64_t number, frag_tensor x)
{
    const frag_network *of = &call->model->workload->network;
    frag_tensor made = frag_aten_convolve(
        tape, x,
        &(frag_aten_convolution){
            .weight = at->convolutions[number].weight,
            .bias = at->convolutions[number].bias,
            .batch = call->count,
            .in_channels = number == 0 ? of->mels : of->width,
            .out_channels = of->width,
            .window = {FRAMES * of->encoder_positions, KERNEL, number == 0 ? 1 : FRAMES, PADDING},
            .is_line = true,
            .is_turned = number > 0 && !is_clamped(call->model)});
    if (number == 0)
        frag_model_require_inputs(tape, call->model, made);
    frag_tape_set(tape, &made, frag_aten_gelu(tape, made));
    return made;
}

static frag_tensor encode(frag_tape *tape, const frag_model *model, frag_walk *at,
                          const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    block_call call = {.model = model,
                       .in = frag_stack_name(of, false),
                       .count = batch->count,
                       .tokens = of->encoder_positions};
    const ears first = walk_ears(at, of);
    frag_tensor embedded = convolve(tape, &call, &first, 0, batch->ids);
    frag_tape_set(tape, &embedded, convolve(tape, &call, &first, 1, embedded));
    frag_tape_set(tape, &embedded, frag_aten_view(tape, embedded));
    frag_tensor numbers = frag_tape_empty(tape, of->encoder_positions, FRAG_I64);
    frag_tensor places = frag_aten_embedding(tape, first.places, numbers, of->width);
    frag_tensor hidden = frag_aten_add(tape, embedded, places);
    frag_tape_drop(tape, places);
    frag_tape_set(tape, &hidden, frag_model_drop_residual(tape, model, hidden));
    hidden = run_blocks(tape, at, &call, hidden);
    frag_tape_drop(tape, numbers);
    frag_tape_drop(tape, embedded);
    return hidden;
}

/* Numbers of positions, for each sequence. */
static frag_tensor count_positions(frag_tape *tape, const frag_batch *batch)
{
    frag_tensor row = frag_family_positions(tape, batch->tokens);
    frag_tensor made = frag_tape_empty(tape, batch->count * batch->tokens, FRAG_I64);
    frag_tape_drop(tape, row);
    return made;
}

/* What the decoder's forward pass needs besides the model. */
typedef struct decoding {
    const frag_batch *batch;
    frag_tensor ids;
    frag_tensor encoded;
    frag_cache *caches; /* two; NULL: none */
} decoding;

static frag_tensor decode(frag_tape *tape, const frag_model *model, frag_walk *at,
                          const embeddings *first, const decoding *of)
{
    uint64_t width = model->workload->network.width;
    block_call call = {.model = model,
                       .in = frag_stack_name(&model->workload->network, true),
                       .count = of->batch->count,
                       .tokens = of->batch->tokens,
                       .encoded = of->encoded,
                       .self = of->caches,
                       .cross = of->caches != NULL ? of->caches + 1 : NULL};
    frag_tensor embedded = frag_aten_embedding(tape, first->words, of->ids, width);
    frag_model_require_inputs(tape, model, embedded);
    frag_tensor numbers = count_positions(tape, of->batch);
    frag_tensor places = frag_aten_gather(tape, first->places, numbers, width);
    frag_tensor hidden = frag_aten_add(tape, embedded, places);
    frag_tape_set(tape, &hidden, frag_model_drop_residual(tape, model, hidden));
    frag_model_find_packed(tape, model, of->batch, of->caches);
    hidden = run_blocks(tape, at, &call, hidden);
    frag_tape_drop(tape, places);
    frag_tape_drop(tape, numbers);
    frag_tape_drop(tape, embedded);
    return hidden;
}

static frag_tensor compute_loss(frag_tape *tape, const frag_model *model, const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    frag_walk at = {.tape = tape, .workload = model->workload, .at = model->parameters};
    frag_tensor shifted = frag_family_shift(tape, batch);
    frag_tensor encoded = encode(tape, model, &at, batch);
    const embeddings first = walk_embeddings(&at, of);
    frag_cache caches[2] = {frag_cache_create(model, batch->count),
                            frag_cache_create(model, batch->count)};
    const decoding how = {batch, shifted, encoded,
                          frag_model_has_checkpoints(model) ? NULL : caches};
    frag_tensor hidden = decode(tape, model, &at, &first, &how);
    frag_tape_fetch(tape, &first.words, 1);
    frag_tensor logits = frag_aten_linear(tape, hidden, first.words, 0, of->vocabulary);
    frag_tape_send_back(tape, &first.words, 1);
    frag_tensor loss = frag_family_loss(tape, logits, batch);
    frag_tape_drop(tape, hidden);
    frag_cache_destroy(tape, &caches[1]);
    frag_cache_destroy(tape, &caches[0]);
    frag_tape_drop(tape, encoded);
    frag_tape_drop(tape, shifted);
    return loss;
}

const frag_family frag_family_whisper = {build, load, compute_loss, NULL};
