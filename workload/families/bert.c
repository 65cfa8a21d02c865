/* BERT with its head for masked words, as transformers 5 has it (models/bert/modeling_bert.py),
 * with attention by scaled_dot_product_attention; RoBERTa; DistilBERT, which has no types of tokens
 * (models/distilbert/modeling_distilbert.py). */
#include "workload/families/family.h"

/* Where the parameters of the embeddings are, behind those of the words, and of the layers. */
typedef struct parameter_places {
    uint32_t positions;
    uint32_t types;
    uint32_t norm;
    uint32_t layers;
} parameter_places;

static bool is_distilled(const frag_network *of)
{
    return of->family == FRAG_FAMILY_DISTILBERT;
}

static parameter_places find_places(const frag_network *of)
{
    if (is_distilled(of))
        return (parameter_places){.positions = 1, .norm = 2, .layers = 4};
    /* RoBERTa names its positions last. */
    if (of->counts_positions)
        return (parameter_places){.types = 1, .norm = 2, .positions = 4, .layers = 5};
    return (parameter_places){.positions = 1, .types = 2, .norm = 3, .layers = 5};
}

/* Places in a layer, and in the head. */
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
enum { HEAD_WEIGHT, HEAD_BIAS, HEAD_NORM_WEIGHT, HEAD_NORM_BIAS, HEAD_LAYERS_END };
enum { HEAD_PARAMETERS = HEAD_LAYERS_END + 1 };

/* Where the head begins behind the bias of the words; DistilBERT has that one last. */
static frag_tensor *find_head(const frag_model *model)
{
    frag_tensor *head = model->parameters + model->parameter_count - HEAD_PARAMETERS;
    return is_distilled(&model->workload->network) ? head : head + 1;
}

static frag_tensor word_bias(const frag_model *model)
{
    frag_tensor *head = find_head(model);
    return is_distilled(&model->workload->network) ? head[HEAD_LAYERS_END] : head[-1];
}

static void build_layer(frag_tape *tape, frag_model *model)
{
    const frag_network *of = &model->workload->network;
    const uint64_t width = of->width;
    const frag_shape shapes[LAYER_PARAMETERS] = {
        [QUERY_WEIGHT] = {width, width},    [QUERY_BIAS] = {0, width},
        [KEY_WEIGHT] = {width, width},      [KEY_BIAS] = {0, width},
        [VALUE_WEIGHT] = {width, width},    [VALUE_BIAS] = {0, width},
        [OUT_WEIGHT] = {width, width},      [OUT_BIAS] = {0, width},
        [NORM1_WEIGHT] = {0, width},        [NORM1_BIAS] = {0, width},
        [FEED_WEIGHT] = {of->inner, width}, [FEED_BIAS] = {0, of->inner},
        [BACK_WEIGHT] = {width, of->inner}, [BACK_BIAS] = {0, width},
        [NORM2_WEIGHT] = {0, width},        [NORM2_BIAS] = {0, width},
    };
    for (uint32_t i = 0; i < LAYER_PARAMETERS; i++)
        frag_model_add(tape, model, shapes[i]);
}

static void build_head(frag_tape *tape, frag_model *model)
{
    const frag_network *of = &model->workload->network;
    frag_model_add(tape, model, (frag_shape){of->width, of->width});
    for (uint32_t i = 0; i < 3; i++)
        frag_model_add(tape, model, (frag_shape){0, of->width});
    frag_tensor bias = frag_model_add(tape, model, (frag_shape){0, of->vocabulary});
    if (is_distilled(of))
        return;
    /* The bias of the words moves to the GPU last, but is named before the rest of the head. */
    frag_tensor *head = model->parameters + model->parameter_count - HEAD_PARAMETERS;
    frag_shape *shapes = model->shapes + model->parameter_count - HEAD_PARAMETERS;
    for (uint32_t i = HEAD_PARAMETERS - 1; i > 0; i--) {
        head[i] = head[i - 1];
        shapes[i] = shapes[i - 1];
    }
    head[0] = bias;
    shapes[0] = (frag_shape){0, of->vocabulary};
}

static void build(frag_tape *tape, frag_model *model)
{
    const frag_network *of = &model->workload->network;
    frag_model_add(tape, model, (frag_shape){of->vocabulary, of->width});
    if (!of->counts_positions)
        frag_model_add(tape, model, (frag_shape){of->positions, of->width});
    if (!is_distilled(of))
        frag_model_add(tape, model, (frag_shape){of->types, of->width});
    frag_model_add(tape, model, (frag_shape){0, of->width});
    frag_model_add(tape, model, (frag_shape){0, of->width});
    if (of->counts_positions)
        frag_model_add(tape, model, (frag_shape){of->positions, of->width});
    /* Buffers: numbers of positions, types of tokens. */
    for (uint32_t i = 0; i < (is_distilled(of) ? 1 : 2); i++)
        (void)frag_tape_empty(tape, of->positions, FRAG_I64);
    for (uint64_t layer = 0; layer < of->layers; layer++)
        build_layer(tape, model);
    build_head(tape, model);
}

static bool has_dropout(const frag_model *model)
{
    return model->workload->task == FRAG_TASK_TRAIN &&
           model->workload->network.residual_dropout > 0;
}

/* RoBERTa's create_position_ids_from_input_ids: a running sum over what is no padding. */
static frag_tensor count_positions(frag_tape *tape, const frag_batch *batch)
{
    uint64_t count = batch->count * batch->tokens;
    frag_tensor is_word = frag_tape_empty(tape, count, FRAG_BOOL);
    frag_tensor mask = frag_tape_empty(tape, count, FRAG_I32);
    frag_tape_drop(tape, is_word);
    frag_tensor sums = frag_tape_empty(tape, count, FRAG_I64);
    frag_tensor wide = frag_tape_empty(tape, count, FRAG_I64);
    if (batch->count == 1)
        frag_aten_scan(tape, count, FRAG_I64);
    frag_tape_drop(tape, wide);
    frag_tape_set(tape, &sums, frag_tape_empty(tape, count, FRAG_I32));
    frag_tape_set(tape, &sums, frag_tape_empty(tape, count, FRAG_I32));
    frag_tape_set(tape, &sums, frag_tape_empty(tape, count, FRAG_I32));
    frag_tensor made = frag_tape_empty(tape, count, FRAG_I64);
    frag_tape_set(tape, &made, frag_tape_empty(tape, count, FRAG_I64));
    frag_tape_drop(tape, sums);
    frag_tape_drop(tape, mask);
    return made;
}

static frag_tensor embed(frag_tape *tape, const frag_model *model, const frag_batch *batch)
{
    const frag_tensor *at = model->parameters;
    const frag_network *of = &model->workload->network;
    uint64_t count = batch->count * batch->tokens;
    const parameter_places places_of = find_places(of);
    bool is_counted = of->counts_positions;
    frag_tensor positions = is_counted ? count_positions(tape, batch) : 0;
    const frag_tensor *norm = at + places_of.norm;
    /* Types are gathered for one sequence, and repeated for the others; RoBERTa's for each. */
    frag_tensor types = frag_tape_empty(tape, is_counted ? count : batch->tokens, FRAG_I64);
    frag_tensor words = frag_aten_embedding(tape, at[0], batch->ids, of->width);
    frag_tensor all_types = frag_tape_view(tape, types, count);
    frag_tensor typed = frag_aten_embedding(tape, at[places_of.types], all_types, of->width);
    frag_tensor sum = frag_aten_add(tape, words, typed);
    /* BERT's positions are a buffer: types have as many. */
    frag_tensor places = frag_aten_embedding(tape, at[places_of.positions],
                                             is_counted ? positions : types, of->width);
    frag_tape_set(tape, &sum, frag_aten_add(tape, sum, places));
    frag_tape_set(tape, &sum, frag_aten_layer_norm(tape, sum, norm[0], norm[1], of->width));
    frag_tape_set(tape, &sum, frag_aten_dropout(tape, sum, has_dropout(model)));
    frag_tape_drop(tape, all_types);
    frag_tape_drop(tape, types);
    frag_tape_drop(tape, positions);
    frag_tape_drop(tape, words);
    frag_tape_drop(tape, typed);
    frag_tape_drop(tape, places);
    return sum;
}

/* Numbers of positions are a buffer, of which a slice allocates nothing, as the ids here do not. */
static frag_tensor embed_distilled(frag_tape *tape, const frag_model *model,
                                   const frag_batch *batch)
{
    const frag_tensor *at = model->parameters;
    const uint64_t width = model->workload->network.width;
    const parameter_places places_of = find_places(&model->workload->network);
    frag_tensor words = frag_aten_embedding(tape, at[0], batch->ids, width);
    frag_tensor positions = frag_tape_view(tape, batch->ids, batch->tokens);
    frag_tensor places = frag_aten_embedding(tape, at[places_of.positions], positions, width);
    frag_tape_drop(tape, positions);
    frag_tensor sum = frag_aten_add(tape, words, places);
    const frag_tensor *norm = at + places_of.norm;
    frag_tape_set(tape, &sum, frag_aten_layer_norm(tape, sum, norm[0], norm[1], width));
    frag_tape_set(tape, &sum, frag_aten_dropout(tape, sum, has_dropout(model)));
    frag_tape_drop(tape, words);
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
    if (is_distilled(of)) /* one module with the layer behind */
        frag_tape_set(tape, &made,
                      frag_aten_linear(tape, made, at[OUT_WEIGHT], at[OUT_BIAS], of->width));
    for (uint32_t i = 0; i < 3; i++)
        frag_tape_drop(tape, qkv[i]);
    return made;
}

/* norm(x + residual) */
static frag_tensor add_and_norm(frag_tape *tape, const frag_tensor *norm, frag_tensor x,
                                frag_tensor residual, uint64_t width)
{
    frag_tensor sum = frag_aten_add(tape, x, residual);
    frag_tensor made = frag_aten_layer_norm(tape, sum, norm[0], norm[1], width);
    frag_tape_drop(tape, sum);
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
    frag_tensor made = add_and_norm(tape, at + 2, hidden, residual, width);
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

static frag_tensor run_distilled_layer(frag_tape *tape, const frag_model *model,
                                       const frag_tensor *at, frag_tensor x,
                                       const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    frag_tensor attended = attend(tape, model, at, x, batch);
    frag_tape_set(tape, &attended, add_and_norm(tape, at + NORM1_WEIGHT, attended, x, of->width));
    frag_tensor fed = frag_aten_linear(tape, attended, at[FEED_WEIGHT], at[FEED_BIAS], of->inner);
    frag_tape_set(tape, &fed, frag_family_activate(tape, fed, (frag_activation)of->activation));
    frag_tape_set(tape, &fed,
                  frag_aten_linear(tape, fed, at[BACK_WEIGHT], at[BACK_BIAS], of->width));
    frag_tape_set(tape, &fed, frag_aten_dropout(tape, fed, has_dropout(model)));
    frag_tape_set(tape, &fed, add_and_norm(tape, at + NORM2_WEIGHT, fed, attended, of->width));
    frag_tape_drop(tape, attended);
    return fed;
}

typedef struct layer_call {
    const frag_model *model;
    const frag_tensor *at;
    frag_batch batch;
} layer_call;

static frag_tensor run_region(frag_tape *tape, const void *context, frag_tensor input)
{
    const layer_call *call = context;
    const frag_model *model = call->model;
    return (is_distilled(&model->workload->network) ? run_distilled_layer : run_layer)(
        tape, model, call->at, input, &call->batch);
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
    const frag_tensor *at = find_head(model);
    frag_tensor made = frag_aten_linear(tape, hidden, at[HEAD_WEIGHT], at[HEAD_BIAS], of->width);
    frag_tape_set(tape, &made, frag_family_activate(tape, made, (frag_activation)of->activation));
    frag_tape_set(
        tape, &made,
        frag_aten_layer_norm(tape, made, at[HEAD_NORM_WEIGHT], at[HEAD_NORM_BIAS], of->width));
    frag_tape_set(
        tape, &made,
        frag_aten_linear(tape, made, model->parameters[0], word_bias(model), of->vocabulary));
    return made;
}

static frag_tensor compute_loss(frag_tape *tape, const frag_model *model, const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    frag_tensor hidden = (is_distilled(of) ? embed_distilled : embed)(tape, model, batch);
    frag_tensor embedded = frag_tape_keep(tape, hidden);
    layer_call call = {model, model->parameters + find_places(of).layers, *batch};
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

const frag_family frag_family_bert = {build, frag_family_load_tokens, compute_loss, NULL};
