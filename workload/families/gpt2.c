/* GPT-2 as transformers 5 has it (models/gpt2/modeling_gpt2.py), with attention by
 * scaled_dot_product_attention. */
#include "workload/families/family.h"

/* Places of parameters: of the model, and of each block behind them. */
enum { WORDS, PLACES, BLOCKS };
enum {
    NORM_WEIGHT,
    NORM_BIAS,
    MIX_WEIGHT,
    MIX_BIAS,
    OUT_WEIGHT,
    OUT_BIAS,
    NORM2_WEIGHT,
    NORM2_BIAS,
    FEED_WEIGHT,
    FEED_BIAS,
    BACK_WEIGHT,
    BACK_BIAS,
    BLOCK_PARAMETERS
};

static void build(frag_tape *tape, frag_model *model)
{
    const frag_network *of = &model->workload->network;
    const uint64_t width = of->width;
    const frag_shape shapes[BLOCK_PARAMETERS] = {
        [NORM_WEIGHT] = {0, width},         [NORM_BIAS] = {0, width},
        [MIX_WEIGHT] = {width, 3 * width},  [MIX_BIAS] = {0, 3 * width},
        [OUT_WEIGHT] = {width, width},      [OUT_BIAS] = {0, width},
        [NORM2_WEIGHT] = {0, width},        [NORM2_BIAS] = {0, width},
        [FEED_WEIGHT] = {width, of->inner}, [FEED_BIAS] = {0, of->inner},
        [BACK_WEIGHT] = {of->inner, width}, [BACK_BIAS] = {0, width},
    };
    frag_model_add(tape, model, (frag_shape){of->vocabulary, width});
    frag_model_add(tape, model, (frag_shape){of->positions, width});
    for (uint64_t layer = 0; layer < of->layers; layer++)
        for (uint32_t i = 0; i < BLOCK_PARAMETERS; i++)
            frag_model_add(tape, model, shapes[i]);
    frag_model_add(tape, model, (frag_shape){0, width});
    frag_model_add(tape, model, (frag_shape){0, width});
    if (!of->is_tied)
        frag_model_add(tape, model, (frag_shape){of->vocabulary, width});
}

static frag_tensor attend(frag_tape *tape, const frag_model *model, const frag_tensor *at,
                          frag_tensor x, const frag_batch *batch, frag_cache *past)
{
    const frag_network *of = &model->workload->network;
    bool is_training = model->workload->task == FRAG_TASK_TRAIN;
    frag_tensor mixed = frag_aten_addmm(tape, at[MIX_BIAS], x, at[MIX_WEIGHT], 3 * of->width);
    frag_tensor qkv[3] = {0};
    frag_aten_split(tape, mixed, qkv, 3);
    frag_tape_drop(tape, mixed);
    /* Flash gives gradients as its inputs lie, and those that went through the cache are turned. */
    bool is_turned = past != NULL && frag_aten_is_flash(tape, frag_tape_dtype(tape, qkv[0]));
    for (uint32_t i = 0; i < 3; i++) {
        frag_tape_set(tape, &qkv[i],
                      is_turned && i > 0 ? frag_aten_view_copied(tape, qkv[i])
                                         : frag_aten_view(tape, qkv[i]));
        frag_tape_set(tape, &qkv[i], frag_aten_view(tape, qkv[i]));
    }
    if (past != NULL)
        frag_cache_append(tape, of, past, &qkv[1], &qkv[2]);
    frag_attention_shape shape = {
        .batch = batch->count,
        .heads = of->heads,
        .key_heads = of->heads,
        .queries = batch->tokens,
        .keys = batch->past + batch->tokens,
        .width = of->width / of->heads,
        .has_dropout = is_training && of->attention_dropout > 0,
        .is_causal = batch->tokens > 1,
    };
    frag_tensor mixed_values = frag_aten_attention(tape, qkv, &shape);
    frag_tape_set(tape, &mixed_values, frag_aten_view(tape, mixed_values));
    frag_tape_set(tape, &mixed_values,
                  frag_aten_addmm(tape, at[OUT_BIAS], mixed_values, at[OUT_WEIGHT], of->width));
    frag_tape_set(tape, &mixed_values,
                  frag_aten_dropout(tape, mixed_values, is_training && of->residual_dropout > 0));
    for (uint32_t i = 0; i < 3; i++)
        frag_tape_drop(tape, qkv[i]);
    return mixed_values;
}

static frag_tensor feed(frag_tape *tape, const frag_model *model, const frag_tensor *at,
                        frag_tensor x)
{
    const frag_network *of = &model->workload->network;
    bool is_training = model->workload->task == FRAG_TASK_TRAIN;
    frag_tensor hidden = frag_aten_addmm(tape, at[FEED_BIAS], x, at[FEED_WEIGHT], of->inner);
    frag_tape_set(tape, &hidden,
                  frag_family_activate(tape, hidden, (frag_activation)of->activation));
    frag_tape_set(tape, &hidden,
                  frag_aten_addmm(tape, at[BACK_BIAS], hidden, at[BACK_WEIGHT], of->width));
    frag_tape_set(tape, &hidden,
                  frag_aten_dropout(tape, hidden, is_training && of->residual_dropout > 0));
    return hidden;
}

static frag_tensor run_block(frag_tape *tape, const frag_model *model, const frag_tensor *at,
                             frag_tensor x, const frag_batch *batch, frag_cache *past)
{
    uint64_t width = model->workload->network.width;
    frag_tensor residual = frag_tape_keep(tape, x);
    frag_tensor hidden = frag_aten_layer_norm(tape, x, at[NORM_WEIGHT], at[NORM_BIAS], width);
    frag_tensor attended = attend(tape, model, at, hidden, batch, past);
    frag_tape_set(tape, &hidden, frag_aten_add(tape, attended, residual));
    frag_tape_set(tape, &residual, frag_tape_keep(tape, hidden));
    frag_tape_set(tape, &hidden,
                  frag_aten_layer_norm(tape, hidden, at[NORM2_WEIGHT], at[NORM2_BIAS], width));
    frag_tensor fed = feed(tape, model, at, hidden);
    frag_tape_set(tape, &hidden, frag_aten_add(tape, residual, fed));
    frag_tape_drop(tape, residual);
    frag_tape_drop(tape, attended);
    frag_tape_drop(tape, fed);
    return hidden;
}

typedef struct block_call {
    const frag_model *model;
    const frag_tensor *at;
    frag_batch batch;
} block_call;

static frag_tensor run_region(frag_tape *tape, const void *context, frag_tensor input)
{
    const block_call *call = context;
    return run_block(tape, call->model, call->at, input, &call->batch, NULL);
}

/* With checkpointing no keys and values are handed back. */
static frag_tensor call_block(frag_tape *tape, const block_call *call, frag_tensor input,
                              frag_tensor positions, frag_cache *past)
{
    if (!frag_model_has_checkpoints(call->model))
        return run_block(tape, call->model, call->at, input, &call->batch, past);
    return frag_tape_checkpoint(
        tape, &(frag_region_call){run_region, call, sizeof *call, &positions, 1}, input);
}

static frag_tensor run_blocks(frag_tape *tape, const frag_model *model, const frag_batch *batch,
                              frag_cache *past)
{
    const frag_network *of = &model->workload->network;
    const frag_tensor *parameters = model->parameters;
    bool is_training = model->workload->task == FRAG_TASK_TRAIN;
    frag_tensor words = frag_aten_embedding(tape, parameters[WORDS], batch->ids, of->width);
    frag_tensor positions = frag_family_positions(tape, batch->tokens);
    frag_tensor places = frag_aten_embedding(tape, parameters[PLACES], positions, of->width);
    frag_tensor hidden = frag_aten_add(tape, words, places);
    if (frag_model_has_checkpoints(model))
        frag_family_find_packed(tape, batch);
    frag_tape_set(tape, &hidden,
                  frag_aten_dropout(tape, hidden, is_training && of->embedding_dropout > 0));
    block_call call = {model, parameters + BLOCKS, *batch};
    for (uint64_t layer = 0; layer < of->layers; layer++, call.at += BLOCK_PARAMETERS)
        frag_tape_set(tape, &hidden, call_block(tape, &call, hidden, positions, past));
    frag_tape_set(tape, &hidden,
                  frag_aten_layer_norm(tape, hidden, call.at[0], call.at[1], of->width));
    frag_tape_drop(tape, positions);
    frag_tape_drop(tape, words);
    frag_tape_drop(tape, places);
    return hidden;
}

const frag_family frag_family_gpt2 = {build, frag_family_load_tokens, NULL, run_blocks};
