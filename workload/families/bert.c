/* BERT with its head for masked words, as transformers 5 has it (models/bert/modeling_bert.py),
 * with attention by scaled_dot_product_attention. */
#include "workload/families/family.h"

/* Places of parameters: of the embeddings, of each layer behind them, of the head. */
enum { WORDS, PLACES, TYPES, NORM_WEIGHT, NORM_BIAS, LAYERS };
enum {
    QUERY_WEIGHT,
    QUERY_BIAS,
    KEY_WEIGHT,
    KEY_BIAS,
    VALUE_WEIGHT,
    VALUE_BIAS,
    OUT_WEIGHT,
    OUT_BIAS,
    NORM1_WEIGHT,
    NORM1_BIAS,
    FEED_WEIGHT,
    FEED_BIAS,
    BACK_WEIGHT,
    BACK_BIAS,
    NORM2_WEIGHT,
    NORM2_BIAS,
    LAYER_PARAMETERS
};
enum { WORD_BIAS, HEAD_WEIGHT, HEAD_BIAS, HEAD_NORM_WEIGHT, HEAD_NORM_BIAS, HEAD_PARAMETERS };

static void build_layer(frag_tape *tape, frag_model *model)
{
    const frag_network *of = &model->workload->network;
    const uint64_t width = of->width;
    const uint64_t counts[LAYER_PARAMETERS] = {
        [QUERY_WEIGHT] = width * width,
        [QUERY_BIAS] = width,
        [KEY_WEIGHT] = width * width,
        [KEY_BIAS] = width,
        [VALUE_WEIGHT] = width * width,
        [VALUE_BIAS] = width,
        [OUT_WEIGHT] = width * width,
        [OUT_BIAS] = width,
        [NORM1_WEIGHT] = width,
        [NORM1_BIAS] = width,
        [FEED_WEIGHT] = width * of->inner,
        [FEED_BIAS] = of->inner,
        [BACK_WEIGHT] = of->inner * width,
        [BACK_BIAS] = width,
        [NORM2_WEIGHT] = width,
        [NORM2_BIAS] = width,
    };
    for (uint32_t i = 0; i < LAYER_PARAMETERS; i++)
        frag_model_add(tape, model, counts[i]);
}

static void build(frag_tape *tape, frag_model *model)
{
    const frag_network *of = &model->workload->network;
    frag_model_add(tape, model, of->vocabulary * of->width);
    frag_model_add(tape, model, of->positions * of->width);
    frag_model_add(tape, model, of->types * of->width);
    frag_model_add(tape, model, of->width);
    frag_model_add(tape, model, of->width);
    /* Buffers: numbers of positions, types of tokens. */
    for (uint32_t i = 0; i < 2; i++)
        (void)frag_tape_empty(tape, of->positions, FRAG_I64);
    for (uint64_t layer = 0; layer < of->layers; layer++)
        build_layer(tape, model);
    frag_model_add(tape, model, of->width * of->width);
    for (uint32_t i = 0; i < 3; i++)
        frag_model_add(tape, model, of->width);
    /* The bias of the words moves to the GPU last, but is named before the rest of the head. */
    frag_tensor bias = frag_model_add(tape, model, of->vocabulary);
    frag_tensor *head = model->parameters + model->parameter_count - HEAD_PARAMETERS;
    for (uint32_t i = HEAD_PARAMETERS - 1; i > WORD_BIAS; i--)
        head[i] = head[i - 1];
    head[WORD_BIAS] = bias;
}

static bool has_dropout(const frag_model *model)
{
    return model->workload->task == FRAG_TASK_TRAIN &&
           model->workload->network.residual_dropout > 0;
}

static frag_tensor embed(frag_tape *tape, const frag_model *model, const frag_batch *batch)
{
    const frag_tensor *at = model->parameters;
    uint64_t width = model->workload->network.width;
    /* Types are gathered for one sequence, and repeated for the others. */
    frag_tensor types = frag_tape_empty(tape, batch->tokens, FRAG_I64);
    frag_tensor words = frag_aten_embedding(tape, at[WORDS], batch->ids, width);
    frag_tensor all_types = frag_tape_view(tape, types, batch->count * batch->tokens);
    frag_tensor typed = frag_aten_embedding(tape, at[TYPES], all_types, width);
    frag_tensor sum = frag_aten_add(tape, words, typed);
    frag_tensor places = frag_aten_embedding(tape, at[PLACES], types, width);
    frag_tape_set(tape, &sum, frag_aten_add(tape, sum, places));
    frag_tape_set(tape, &sum,
                  frag_aten_layer_norm(tape, sum, at[NORM_WEIGHT], at[NORM_BIAS], width));
    frag_tape_set(tape, &sum, frag_aten_dropout(tape, sum, has_dropout(model)));
    frag_tape_drop(tape, all_types);
    frag_tape_drop(tape, types);
    frag_tape_drop(tape, words);
    frag_tape_drop(tape, typed);
    frag_tape_drop(tape, places);
    return sum;
}

static frag_tensor attend(frag_tape *tape, const frag_model *model, const frag_tensor *at,
                          frag_tensor x, const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    frag_tensor qkv[3];
    for (uint32_t i = 0; i < 3; i++) {
        qkv[i] =
            frag_aten_linear(tape, x, at[QUERY_WEIGHT + 2 * i], at[QUERY_BIAS + 2 * i], of->width);
        frag_tape_set(tape, &qkv[i], frag_aten_view(tape, qkv[i]));
        frag_tape_set(tape, &qkv[i], frag_aten_view(tape, qkv[i]));
    }
    frag_attention_shape shape = {
        .batch = batch->count,
        .heads = of->heads,
        .key_heads = of->heads,
        .queries = batch->tokens,
        .keys = batch->tokens,
        .width = of->width / of->heads,
        .has_dropout = model->workload->task == FRAG_TASK_TRAIN && of->attention_dropout > 0,
    };
    frag_tensor made = frag_aten_attention(tape, qkv, &shape);
    frag_tape_set(tape, &made, frag_aten_view(tape, made));
    for (uint32_t i = 0; i < 3; i++)
        frag_tape_drop(tape, qkv[i]);
    return made;
}

/* norm(dropout(dense(x)) + residual); at: weight and bias of dense, and two places on of the norm.
 */
static frag_tensor join(frag_tape *tape, const frag_model *model, const frag_tensor *at,
                        frag_tensor x, frag_tensor residual)
{
    uint64_t width = model->workload->network.width;
    frag_tensor hidden = frag_aten_linear(tape, x, at[0], at[1], width);
    frag_tape_set(tape, &hidden, frag_aten_dropout(tape, hidden, has_dropout(model)));
    frag_tensor sum = frag_aten_add(tape, hidden, residual);
    frag_tensor made = frag_aten_layer_norm(tape, sum, at[2], at[3], width);
    frag_tape_drop(tape, sum);
    frag_tape_drop(tape, hidden);
    return made;
}

static frag_tensor run_layer(frag_tape *tape, const frag_model *model, const frag_tensor *at,
                             frag_tensor x, const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    frag_tensor attended = attend(tape, model, at, x, batch);
    frag_tape_set(tape, &attended, join(tape, model, at + OUT_WEIGHT, attended, x));
    frag_tensor inner = frag_aten_linear(tape, attended, at[FEED_WEIGHT], at[FEED_BIAS], of->inner);
    frag_tape_set(tape, &inner, frag_family_activate(tape, inner, (frag_activation)of->activation));
    frag_tensor made = join(tape, model, at + BACK_WEIGHT, inner, attended);
    frag_tape_drop(tape, inner);
    frag_tape_drop(tape, attended);
    return made;
}

typedef struct layer_call {
    const frag_model *model;
    const frag_tensor *at;
    frag_batch batch;
} layer_call;

static frag_tensor run_region(frag_tape *tape, const void *context, frag_tensor input)
{
    const layer_call *call = context;
    return run_layer(tape, call->model, call->at, input, &call->batch);
}

static frag_tensor call_layer(frag_tape *tape, const layer_call *call, frag_tensor input)
{
    if (!frag_model_has_checkpoints(call->model))
        return run_region(tape, call, input);
    return frag_tape_checkpoint(tape, &(frag_region_call){run_region, call, sizeof *call, NULL, 0},
                                input);
}

static frag_tensor predict(frag_tape *tape, const frag_model *model, frag_tensor hidden)
{
    const frag_network *of = &model->workload->network;
    const frag_tensor *at = model->parameters + model->parameter_count - HEAD_PARAMETERS;
    frag_tensor made = frag_aten_linear(tape, hidden, at[HEAD_WEIGHT], at[HEAD_BIAS], of->width);
    frag_tape_set(tape, &made, frag_family_activate(tape, made, (frag_activation)of->activation));
    frag_tape_set(
        tape, &made,
        frag_aten_layer_norm(tape, made, at[HEAD_NORM_WEIGHT], at[HEAD_NORM_BIAS], of->width));
    frag_tape_set(
        tape, &made,
        frag_aten_linear(tape, made, model->parameters[WORDS], at[WORD_BIAS], of->vocabulary));
    return made;
}

static frag_tensor compute_loss(frag_tape *tape, const frag_model *model, const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    frag_tensor hidden = embed(tape, model, batch);
    frag_tensor embedded = frag_tape_keep(tape, hidden);
    layer_call call = {model, model->parameters + LAYERS, *batch};
    for (uint64_t layer = 0; layer < of->layers; layer++, call.at += LAYER_PARAMETERS)
        frag_tape_set(tape, &hidden, call_layer(tape, &call, hidden));
    frag_tape_drop(tape, embedded);
    frag_tensor logits = predict(tape, model, hidden);
    frag_tensor flat = frag_aten_view(tape, logits);
    frag_tensor loss = frag_aten_cross_entropy(tape, flat, batch->labels);
    frag_tape_drop(tape, flat);
    frag_tape_drop(tape, hidden);
    frag_tape_drop(tape, logits);
    return loss;
}

const frag_family frag_family_bert = {build, frag_family_load_tokens, compute_loss};
