/* GPT-2 as transformers 5 has it (models/gpt2/modeling_gpt2.py), with attention by
 * scaled_dot_product_attention. */
#include "workload/families/family.h"

typedef struct block {
    frag_pair first, second;
    frag_linear mix, out, feed, back;
} block;

static block walk_block(frag_walk *at, const frag_network *of)
{
    const uint64_t width = of->width;
    block next = {.first = frag_walk_norm(at, of->width)};
    next.mix = frag_walk_conv1d(at, (frag_shape){width, 3 * width}, FRAG_LORA_C_ATTN);
    next.out = frag_walk_conv1d(at, (frag_shape){width, width}, FRAG_LORA_C_PROJ);
    next.second = frag_walk_norm(at, of->width);
    next.feed = frag_walk_conv1d(at, (frag_shape){width, of->inner}, FRAG_LORA_C_FC);
    next.back = frag_walk_conv1d(at, (frag_shape){of->inner, width}, FRAG_LORA_C_PROJ);
    return next;
}

static void build(frag_walk *at, const frag_network *of)
{
    const frag_stage *stage = &at->model->stage;
    if (stage->is_first) {
        (void)frag_walk_parameter(at, (frag_shape){of->vocabulary, of->width});
        (void)frag_walk_parameter(at, (frag_shape){of->positions, of->width});
    }
    for (uint64_t layer = stage->first; layer < stage->end; layer++) {
        frag_model_mark_block(at->model);
        (void)walk_block(at, of);
    }
    frag_model_mark_block(at->model);
    if (stage->is_last)
        (void)frag_walk_norm(at, of->width);
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
    const frag_batch *batch = &call->batch;
    const block *at = &call->at;
    frag_cache *past = call->past;
    const frag_network *of = &model->workload->network;
    frag_tensor mixed = frag_walk_apply(tape, x, &at->mix);
    frag_tensor qkv[3] = {0};
    frag_aten_split(tape, mixed, qkv, 3);
    frag_tape_drop(tape, mixed);
    /* Flash gives gradients as its inputs lie: those that went through the cache, or come back from
     * the host, are turned. Separate operators turn those of queries and values. */
    bool is_flash = frag_aten_is_flash(tape, frag_tape_dtype(tape, qkv[0]));
    bool is_math = frag_aten_is_unknown(tape, frag_tape_dtype(tape, qkv[0]));
    bool is_moved = (model->workload->offload & FRAG_OFFLOAD_ACTIVATIONS) != 0;
    for (uint32_t step = 0; step < 3; step++) {
        uint32_t i = (step + 1) % 3; /* queries last */
        bool is_turned = (is_flash && past != NULL && (i > 0 || is_moved)) || (is_math && i != 1);
        qkv[i] = frag_walk_split_heads(tape, qkv[i], is_turned);
    }
    frag_cache_append(tape, of, past, &qkv[1], &qkv[2]);
    frag_attention_shape shape = frag_model_attention(model, batch);
    shape.is_causal = batch->tokens > 1;
    shape.is_cached = past != NULL;
    const frag_eager_attention how = {.shape = shape,
                                      .mask = call->mask,
                                      .is_cached = shape.is_cached,
                                      .softmax = FRAG_EAGER_OWN_BACK,
                                      .is_part = true};
    frag_tensor mixed_values = frag_decoder_attend(tape, of, qkv, &how, weights);
    frag_tape_set(tape, &mixed_values, frag_aten_view(tape, mixed_values));
    frag_tape_set(tape, &mixed_values, frag_walk_apply(tape, mixed_values, &at->out));
    frag_tape_set(tape, &mixed_values, frag_model_drop_residual(tape, model, mixed_values));
    frag_tape_drop_all(tape, qkv, 3);
    return mixed_values;
}

static frag_tensor run_block(frag_tape *tape, const void *context, frag_tensor x)
{
    const block_call *call = context;
    const frag_model *model = call->model;
    const block *at = &call->at;
    frag_tensor weights = 0;
    uint64_t width = model->workload->network.width;
    frag_tensor residual = frag_tape_keep(tape, x);
    frag_tensor hidden = frag_aten_layer_norm(tape, x, &at->first, width);
    frag_tensor attended = attend(tape, call, hidden, &weights);
    frag_tape_set(tape, &hidden, frag_aten_add(tape, attended, residual));
    frag_tape_set(tape, &residual, frag_tape_keep(tape, hidden));
    frag_tape_set(tape, &hidden, frag_aten_layer_norm(tape, hidden, &at->second, width));
    frag_tensor fed = frag_decoder_feed(tape, model, &at->feed, &at->back, hidden);
    frag_tape_set(tape, &hidden, frag_aten_add(tape, residual, fed));
    frag_tape_drop(tape, residual);
    frag_tape_drop(tape, attended);
    frag_tape_drop(tape, fed);
    frag_tape_drop(tape, weights);
    return hidden;
}

/* Words and positions, and what stays of them to the end of the forward pass. */
typedef struct embedded {
    frag_tensor words, places;
    frag_tensor of_blocks[2]; /* positions, and the mask of eager attention */
} embedded;

static frag_tensor embed(frag_walk *at, const frag_model *model, const frag_batch *batch,
                         const frag_cache *past, embedded *kept)
{
    frag_tape *tape = at->tape;
    const frag_network *of = &model->workload->network;
    frag_tensor weight = frag_walk_parameter(at, (frag_shape){of->vocabulary, of->width});
    if (model->workload->head != FRAG_HEAD_LM) /* which asks for a token of padding */
        frag_family_look_for_padding(tape, batch);
    kept->words = frag_aten_embedding(tape, weight, batch->ids, of->width);
    frag_model_require_inputs(tape, model, kept->words);
    kept->of_blocks[0] = frag_model_positions(tape, model, batch->tokens);
    weight = frag_walk_parameter(at, (frag_shape){of->positions, of->width});
    kept->places = frag_aten_embedding(tape, weight, kept->of_blocks[0], of->width);
    frag_tensor hidden = frag_aten_add(tape, kept->words, kept->places);
    frag_model_find_packed(tape, model, batch, past);
    kept->of_blocks[1] = frag_decoder_see_before(tape, model, batch, frag_tape_dtype(tape, hidden));
    frag_tape_set(tape, &hidden, frag_model_drop_out(tape, model, hidden, of->embedding_dropout));
    return hidden;
}

static frag_tensor run_blocks(frag_tape *tape, const frag_model *model, const frag_batch *batch,
                              frag_cache *past)
{
    const frag_network *of = &model->workload->network;
    const frag_stage *stage = &model->stage;
    frag_walk at = {.tape = tape, .workload = model->workload, .at = model->parameters};
    embedded kept = {0};
    frag_tensor hidden = stage->is_first ? embed(&at, model, batch, past, &kept)
                                         : frag_tape_keep(tape, batch->hidden);
    for (uint64_t layer = stage->first; layer < stage->end; layer++) {
        const block_call call = {model, walk_block(&at, of), *batch, past, kept.of_blocks[1]};
        const frag_region_call next = {run_block, &call, sizeof call, kept.of_blocks, 2};
        frag_cache_pass_block(tape, model, past, (frag_block_place){layer, 0}, &next, &hidden);
    }
    if (stage->is_last) {
        const frag_pair last = frag_walk_norm(&at, of->width);
        frag_tape_set(tape, &hidden, frag_aten_layer_norm(tape, hidden, &last, of->width));
    }
    frag_tape_drop_all(tape, kept.of_blocks, 2);
    frag_tape_drop(tape, kept.words);
    frag_tape_drop(tape, kept.places);
    return hidden;
}

const frag_family frag_family_gpt2 = {build, frag_family_load_tokens, NULL, run_blocks};
