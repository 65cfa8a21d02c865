/* BERT with its head for masked words, as transformers 5 has it (models/bert/modeling_bert.py),
 * with attention by scaled_dot_product_attention; RoBERTa; DistilBERT, which has no types of tokens
 * (models/distilbert/modeling_distilbert.py); ALBERT, whose layers share parameters
 * (models/albert/modeling_albert.py); MPNet, whose scores have numbers of distances added
 * (models/mpnet/modeling_mpnet.py). */
#include "base/memory.h"
#include "workload/families/family.h"

typedef struct embeddings {
    frag_tensor words, positions, types;
    frag_pair last;
    frag_linear widen; /* of a narrow embedding (ELECTRA); no weight: there is none */
} embeddings;

/* On top: a layer, a norm, and the embedding of the words turned around. */
typedef struct head {
    frag_tensor bias;  /* of the words */
    frag_tensor words; /* where it comes first; 0: among the embeddings */
    frag_linear dense;
    frag_pair last;
} head;

static bool is_distilled(const frag_network *of)
{
    return of->family == FRAG_FAMILY_DISTILBERT;
}

static bool knows_distances(const frag_network *of)
{
    return of->distances > 0;
}

static bool is_electra(const frag_network *of)
{
    return of->family == FRAG_FAMILY_ELECTRA;
}

static bool is_albert(const frag_network *of)
{
    return of->family == FRAG_FAMILY_ALBERT;
}

static bool is_mpnet(const frag_network *of)
{
    return of->family == FRAG_FAMILY_MPNET;
}

static bool has_types(const frag_network *of)
{
    return !is_distilled(of) && !knows_distances(of) && !is_mpnet(of);
}

/* Of the embeddings, and of ELECTRA's and ALBERT's head. */
static uint64_t embedding_width(const frag_network *of)
{
    return is_electra(of) || is_albert(of) ? of->embedding_width : of->width;
}

/* That have parameters of their own. */
static uint64_t layer_count(const frag_network *of)
{
    return is_albert(of) ? of->layer_groups * of->group_layers : of->layers;
}

/* RoBERTa names its positions last; buffers are numbers of positions, types of tokens. */
static embeddings walk_embeddings(frag_walk *at, const frag_network *of)
{
    const uint64_t width = embedding_width(of);
    const frag_shape places = {of->positions, width};
    embeddings next = {.words = 0};
    if (!of->is_head_first || at->workload->head != FRAG_HEAD_LM)
        next.words = frag_walk_parameter(at, (frag_shape){of->vocabulary, width});
    bool is_place_last = of->counts_positions && !is_mpnet(of);
    if (!is_place_last && !knows_distances(of))
        next.positions = frag_walk_parameter(at, places);
    if (has_types(of))
        next.types = frag_walk_parameter(at, (frag_shape){of->types, width});
    next.last = frag_walk_norm(at, width);
    if (is_place_last)
        next.positions = frag_walk_parameter(at, places);
    for (uint32_t i = 0; i < (has_types(of) ? 2 : 1); i++)
        frag_walk_buffer(at, of->positions, FRAG_I64);
    if (width != of->width || is_albert(of))
        next.widen = frag_walk_linear(at, (frag_shape){of->width, width}, true, FRAG_LORA_REST);
    return next;
}

static frag_encoder_layer walk_layer(frag_walk *at, const frag_network *of)
{
    enum { PARTS = 3 };
    static const uint64_t targets[][PARTS] = {
        {FRAG_LORA_QUERY, FRAG_LORA_KEY, FRAG_LORA_VALUE},
        {FRAG_LORA_Q_LIN, FRAG_LORA_K_LIN, FRAG_LORA_V_LIN},
        {FRAG_LORA_QUERY_PROJ, FRAG_LORA_KEY_PROJ, FRAG_LORA_VALUE_PROJ},
        {FRAG_LORA_Q, FRAG_LORA_K, FRAG_LORA_V},
    };
    bool is_small = is_distilled(of);
    uint32_t names = is_small ? 1 : knows_distances(of) ? 2 : is_mpnet(of) ? 3 : 0;
    uint64_t out = is_small ? FRAG_LORA_OUT_LIN : is_mpnet(of) ? FRAG_LORA_O : FRAG_LORA_DENSE;
    uint64_t feed = is_small ? FRAG_LORA_LIN1 : is_albert(of) ? FRAG_LORA_REST : FRAG_LORA_DENSE;
    uint64_t back = is_small ? FRAG_LORA_LIN2 : is_albert(of) ? FRAG_LORA_REST : FRAG_LORA_DENSE;
    const frag_shape square = {of->width, of->width};
    frag_encoder_layer next = {.first = {0, 0}};
    if (is_albert(of))
        next.second = frag_walk_norm(at, of->width);
    for (uint32_t i = 0; i < PARTS; i++)
        next.qkv[i] = frag_walk_linear(at, square, true, targets[names][i]);
    next.out = frag_walk_linear(at, square, true, out);
    next.first = frag_walk_norm(at, of->width);
    next.feed = frag_walk_linear(at, (frag_shape){of->inner, of->width}, true, feed);
    next.back = frag_walk_linear(at, (frag_shape){of->width, of->inner}, true, back);
    if (!is_albert(of))
        next.second = frag_walk_norm(at, of->width);
    return next;
}

/* Of DeBERTa, behind the layers: a row for each bucket of distances, and the norm of them. */
typedef struct distance_rows {
    frag_tensor rows;
    frag_pair norm;
} distance_rows;

static distance_rows walk_rows(frag_walk *at, const frag_network *of)
{
    distance_rows next = {.rows =
                              frag_walk_parameter(at, (frag_shape){2 * of->distances, of->width})};
    next.norm = frag_walk_norm(at, of->width);
    return next;
}

/* Of MPNet, behind the layers: a number for each head and bucket of distances. */
static frag_tensor walk_bias(frag_walk *at, const frag_network *of)
{
    return frag_walk_parameter(at, (frag_shape){of->bias_buckets, of->heads});
}

/* DistilBERT has the bias of the words last. */
static head walk_head(frag_walk *at, const frag_network *of)
{
    const frag_shape words = {0, of->vocabulary};
    if (is_electra(of)) {
        head narrow = {.last = frag_walk_norm(at, of->embedding_width)};
        narrow.dense = frag_walk_linear(at, (frag_shape){of->embedding_width, of->width}, true,
                                        FRAG_LORA_DENSE);
        narrow.bias = frag_walk_parameter(at, words);
        return narrow;
    }
    uint32_t first = at->model != NULL ? at->model->parameter_count : 0;
    bool is_first = !is_distilled(of) && at->model == NULL;
    head next = {.bias = is_first ? frag_walk_parameter(at, words) : 0};
    if (is_albert(of))
        next.last = frag_walk_norm(at, of->embedding_width);
    next.dense = frag_walk_linear(at, (frag_shape){embedding_width(of), of->width}, true,
                                  is_distilled(of) ? FRAG_LORA_REST : FRAG_LORA_DENSE);
    if (!is_albert(of))
        next.last = frag_walk_norm(at, of->width);
    if (of->is_head_first)
        next.words = frag_walk_parameter(at, (frag_shape){of->vocabulary, of->width});
    if (!is_first)
        next.bias = frag_walk_parameter(at, words);
    if (!is_distilled(of) && at->model != NULL) /* the bias is named before the rest of the head */
        frag_model_name_first(at->model, at->model->parameter_count - first, 1);
    return next;
}

/* What the model ends in: one of both. */
typedef struct top {
    head words;
    frag_class_head classes;
} top;

static top walk_top(frag_walk *at, const frag_network *of)
{
    top next = {.words = {.bias = 0}};
    if (at->workload->head == FRAG_HEAD_LM)
        next.words = walk_head(at, of);
    else
        next.classes = frag_walk_class_head(at, of);
    return next;
}

static void build(frag_walk *at, const frag_network *of)
{
    if (of->is_head_first)
        (void)walk_top(at, of);
    (void)walk_embeddings(at, of);
    for (uint64_t i = 0; i < layer_count(of); i++) {
        frag_model_mark_block(at->model);
        (void)walk_layer(at, of);
    }
    frag_model_mark_block(at->model);
    if (knows_distances(of))
        (void)walk_rows(at, of);
    if (is_mpnet(of))
        (void)walk_bias(at, of);
    if (!of->is_head_first)
        (void)walk_top(at, of);
}

/* RoBERTa's create_position_ids_from_input_ids: a running sum over what is no padding, to which
 * those of the past are added, if any may be. */
static frag_tensor count_positions(frag_tape *tape, const frag_batch *batch, bool has_past)
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
    for (uint32_t i = 0; i < (has_past ? 3 : 2); i++)
        frag_tape_set(tape, &sums, frag_tape_empty(tape, count, FRAG_I32));
    frag_tensor made = frag_tape_empty(tape, count, FRAG_I64);
    frag_tape_set(tape, &made, frag_tape_empty(tape, count, FRAG_I64));
    frag_tape_drop(tape, sums);
    frag_tape_drop(tape, mask);
    return made;
}

static frag_tensor embed(frag_tape *tape, const frag_model *model, const embeddings *at,
                         const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    const uint64_t width = embedding_width(of);
    uint64_t count = batch->count * batch->tokens;
    bool is_counted = of->counts_positions;
    frag_tensor positions = is_counted ? count_positions(tape, batch, true) : 0;
    /* Types are gathered for one sequence, and repeated for the others; RoBERTa's for each. */
    frag_tensor types = frag_tape_empty(tape, is_counted ? count : batch->tokens, FRAG_I64);
    frag_tensor words = frag_aten_embedding(tape, at->words, batch->ids, width);
    frag_model_require_inputs(tape, model, words);
    frag_tensor all_types = frag_tape_view(tape, types, count);
    frag_tensor typed = frag_aten_embedding(tape, at->types, all_types, width);
    frag_tensor sum = frag_aten_add(tape, words, typed);
    /* BERT's positions are a buffer: types have as many. */
    frag_tensor places =
        frag_aten_embedding(tape, at->positions, is_counted ? positions : types, width);
    frag_tape_set(tape, &sum, frag_aten_add(tape, sum, places));
    frag_tape_set(tape, &sum, frag_aten_layer_norm(tape, sum, &at->last, width));
    frag_tape_set(tape, &sum, frag_model_drop_residual(tape, model, sum));
    frag_tape_drop(tape, all_types);
    frag_tape_drop(tape, types);
    frag_tape_drop(tape, positions);
    frag_tape_drop(tape, words);
    frag_tape_drop(tape, typed);
    frag_tape_drop(tape, places);
    return sum;
}

/* Words and positions, which are used up, without types. */
static frag_tensor embed_placed(frag_tape *tape, const frag_model *model, const embeddings *at,
                                const frag_batch *batch, frag_tensor positions)
{
    const uint64_t width = model->workload->network.width;
    frag_tensor words = frag_aten_embedding(tape, at->words, batch->ids, width);
    frag_model_require_inputs(tape, model, words);
    frag_tensor places = frag_aten_embedding(tape, at->positions, positions, width);
    frag_tensor sum = frag_aten_add(tape, words, places);
    frag_tape_set(tape, &sum, frag_aten_layer_norm(tape, sum, &at->last, width));
    frag_tape_set(tape, &sum, frag_model_drop_residual(tape, model, sum));
    frag_tape_drop(tape, positions);
    frag_tape_drop(tape, words);
    frag_tape_drop(tape, places);
    return sum;
}

/* Numbers of positions are a buffer, of which a slice allocates nothing, as the ids here do not. */
static frag_tensor embed_distilled(frag_tape *tape, const frag_model *model, const embeddings *at,
                                   const frag_batch *batch)
{
    frag_tensor positions = frag_tape_view(tape, batch->ids, batch->tokens);
    return embed_placed(tape, model, at, batch, positions);
}

static frag_tensor embed_mpnet(frag_tape *tape, const frag_model *model, const embeddings *at,
                               const frag_batch *batch)
{
    return embed_placed(tape, model, at, batch, count_positions(tape, batch, false));
}

/* What DeBERTa has by name as long as its layers run. */
typedef struct disentangled {
    frag_tensor mask, types;
    frag_distances distances;
    frag_tensor *states; /* hidden states between layers, all of which are kept */
    uint64_t state_count;
} disentangled;

/* LayerNorm(words) * mask; zeros stand for positions. */
static frag_tensor embed_masked(frag_tape *tape, const frag_model *model, const embeddings *at,
                                const frag_batch *batch, disentangled *beside)
{
    const uint64_t width = model->workload->network.width;
    const uint64_t count = batch->count * batch->tokens;
    frag_family_look_for_padding(tape, batch);
    beside->mask = frag_tape_empty(tape, count, FRAG_F32);
    beside->types = frag_tape_empty(tape, count, FRAG_I64);
    frag_tensor words = frag_aten_embedding(tape, at->words, batch->ids, width);
    frag_model_require_inputs(tape, model, words);
    frag_tensor zeros = frag_tape_empty(tape, count * width, frag_tape_dtype(tape, words));
    frag_tensor made = frag_aten_layer_norm(tape, words, &at->last, width);
    frag_tensor mask = frag_tape_to(tape, beside->mask, frag_tape_dtype(tape, made));
    frag_tape_set(tape, &made, frag_aten_mul(tape, made, mask));
    frag_tape_set(tape, &made, frag_model_drop_residual(tape, model, made));
    frag_tape_drop(tape, mask);
    frag_tape_drop(tape, words);
    frag_tape_drop(tape, zeros);
    return made;
}

/* at: where the layers' parameters begin. */
static void begin_distances(frag_tape *tape, const frag_model *model, const frag_walk *at,
                            const frag_batch *batch, disentangled *beside)
{
    const frag_network *of = &model->workload->network;
    frag_walk behind = *at;
    for (uint64_t i = 0; i < of->layers; i++)
        (void)walk_layer(&behind, of);
    beside->distances = frag_distances_make(tape, batch, beside->mask);
    const distance_rows table = walk_rows(&behind, of);
    beside->distances.rows = frag_aten_layer_norm(tape, table.rows, &table.norm, of->width);
    beside->states = frag_alloc(of->layers, sizeof *beside->states);
}

static void end_distances(frag_tape *tape, disentangled *beside)
{
    const frag_tensor names[] = {beside->distances.mask, beside->distances.places,
                                 beside->distances.rows, beside->mask, beside->types};
    frag_tape_drop_all(tape, names, sizeof names / sizeof *names);
    frag_tape_drop_all(tape, beside->states, beside->state_count);
    frag_free(beside->states);
}

/* norm(x + residual) */
static frag_tensor add_and_norm(frag_tape *tape, const frag_pair *at, frag_tensor x,
                                frag_tensor residual, uint64_t width)
{
    frag_tensor sum = frag_aten_add(tape, x, residual);
    frag_tensor made = frag_aten_layer_norm(tape, sum, at, width);
    frag_tape_drop(tape, sum);
    return made;
}

/* norm(dropout(dense(x)) + residual) */
static frag_tensor join(frag_tape *tape, const frag_model *model, const frag_linear *dense,
                        const frag_pair *last, frag_tensor x, frag_tensor residual)
{
    frag_tensor hidden = frag_walk_apply(tape, x, dense);
    frag_tape_set(tape, &hidden, frag_model_drop_residual(tape, model, hidden));
    frag_tensor made = add_and_norm(tape, last, hidden, residual, model->workload->network.width);
    frag_tape_drop(tape, hidden);
    return made;
}

static frag_tensor activate(frag_tape *tape, const frag_model *model, frag_tensor x)
{
    return frag_family_activate(tape, x, (frag_activation)model->workload->network.activation);
}

/* norm(dropout(back(act(feed(x)))) + x); x is used up. */
static frag_tensor feed(frag_tape *tape, const frag_encoder_call *call, frag_tensor x)
{
    frag_tensor inner = frag_walk_apply(tape, x, &call->at.feed);
    frag_tape_set(tape, &inner, activate(tape, call->model, inner));
    frag_tensor made = join(tape, call->model, &call->at.back, &call->at.second, inner, x);
    frag_tape_drop(tape, inner);
    frag_tape_drop(tape, x);
    return made;
}

static frag_tensor run_layer(frag_tape *tape, const void *context, frag_tensor x)
{
    const frag_encoder_call *call = context;
    const frag_model *model = call->model;
    const frag_encoder_layer *at = &call->at;
    frag_tensor weights = 0;
    frag_tensor attended =
        call->distances.rows != 0
            ? frag_distances_attend(tape, call, x)
            : frag_encoder_attend(tape, model, at, x, &call->batch, NULL, &weights);
    frag_tape_set(tape, &attended, join(tape, model, &at->out, &at->first, attended, x));
    frag_tensor made = feed(tape, call, attended);
    frag_tape_drop(tape, weights);
    return made;
}

static frag_tensor run_distilled_layer(frag_tape *tape, const void *context, frag_tensor x)
{
    const frag_encoder_call *call = context;
    const frag_model *model = call->model;
    const frag_encoder_layer *at = &call->at;
    const uint64_t width = model->workload->network.width;
    /* One module with the layer behind. */
    frag_tensor weights = 0;
    frag_tensor attended =
        frag_encoder_attend(tape, model, at, x, &call->batch, &at->out, &weights);
    frag_tape_set(tape, &attended, add_and_norm(tape, &at->first, attended, x, width));
    frag_tensor fed = frag_walk_apply(tape, attended, &at->feed);
    frag_tape_set(tape, &fed, activate(tape, model, fed));
    frag_tape_set(tape, &fed, frag_walk_apply(tape, fed, &at->back));
    frag_tape_set(tape, &fed, frag_model_drop_residual(tape, model, fed));
    frag_tape_set(tape, &fed, add_and_norm(tape, &at->second, fed, attended, width));
    frag_tape_drop(tape, attended);
    frag_tape_drop(tape, weights);
    return fed;
}

/* Queries, keys and values have names until the norm behind attention is done. */
static frag_tensor run_albert_layer(frag_tape *tape, const frag_encoder_call *call, frag_tensor x)
{
    const frag_model *model = call->model;
    const frag_encoder_layer *at = &call->at;
    const frag_network *of = &model->workload->network;
    frag_tensor qkv[3];
    frag_tensor weights = 0;
    frag_encoder_project(tape, at, x, &call->batch, qkv);
    frag_tensor attended = frag_encoder_mix(tape, model, qkv, &call->batch, &weights);
    frag_tape_set(tape, &attended, frag_aten_view(tape, attended));
    frag_tape_set(tape, &attended, frag_walk_apply(tape, attended, &at->out));
    frag_tape_set(tape, &attended, frag_model_drop_residual(tape, model, attended));
    frag_tape_set(tape, &attended, add_and_norm(tape, &at->first, x, attended, of->width));
    frag_tape_drop_all(tape, qkv, 3);
    frag_tensor fed = frag_walk_apply(tape, attended, &at->feed);
    frag_tape_set(tape, &fed, activate(tape, model, fed));
    frag_tape_set(tape, &fed, frag_walk_apply(tape, fed, &at->back));
    frag_tensor made = add_and_norm(tape, &at->second, fed, attended, of->width);
    frag_tape_drop(tape, fed);
    frag_tape_drop(tape, attended);
    frag_tape_drop(tape, weights);
    return made;
}

/* The groups of layers one after the other, as often as there are layers; hidden becomes what comes
 * out. */
static void run_groups(frag_tape *tape, const frag_model *model, frag_walk *at,
                       const frag_batch *batch, frag_tensor *hidden)
{
    const frag_network *of = &model->workload->network;
    frag_encoder_layer *layers = frag_alloc(layer_count(of), sizeof *layers);
    for (uint64_t i = 0; i < layer_count(of); i++)
        layers[i] = walk_layer(at, of);
    for (uint64_t i = 0; i < of->layers; i++) {
        uint64_t group = (uint64_t)((double)i / ((double)of->layers / (double)of->layer_groups));
        frag_tensor made = frag_tape_keep(tape, *hidden);
        for (uint64_t k = 0; k < of->group_layers; k++) {
            const frag_encoder_call call = {
                model, layers[group * of->group_layers + k], *batch, {0}};
            frag_tape_set(tape, &made, run_albert_layer(tape, &call, made));
        }
        frag_tape_set(tape, hidden, made);
    }
    frag_free(layers);
}

/* ---- MPNet */
static void replace(frag_tape *tape, frag_tensor *name, uint64_t count, frag_dtype dtype)
{
    frag_tape_set(tape, name, frag_tape_empty(tape, count, dtype));
}

/* relative_position_bucket: of how far each pair of tokens is apart */
static frag_tensor find_buckets(frag_tape *tape, uint64_t count)
{
    frag_tensor distance = frag_tape_empty(tape, count, FRAG_I64);
    frag_tensor is_behind = frag_tape_empty(tape, count, FRAG_BOOL);
    frag_tensor made = frag_tape_empty(tape, count, FRAG_I64);
    frag_tape_drop(tape, is_behind);
    for (uint32_t i = 0; i < 2; i++) /* times so many, and 0 + */
        replace(tape, &made, count, FRAG_I64);
    replace(tape, &distance, count, FRAG_I64); /* abs */
    frag_tensor is_small = frag_tape_empty(tape, count, FRAG_BOOL);
    frag_tensor far = frag_tape_empty(tape, count, FRAG_F32);
    for (uint32_t i = 0; i < 4; i++) /* divided, its logarithm, divided, multiplied */
        replace(tape, &far, count, FRAG_F32);
    for (uint32_t i = 0; i < 2; i++) /* as whole numbers, to which one is added */
        replace(tape, &far, count, FRAG_I64);
    frag_tensor most = frag_tape_empty(tape, count, FRAG_I64);
    frag_tensor least = frag_tape_empty(tape, count, FRAG_I64);
    frag_tape_drop(tape, most);
    frag_tape_set(tape, &far, least);
    frag_tape_drop(tape, frag_tape_empty(tape, count, FRAG_I64)); /* where, which is added */
    frag_tape_drop(tape, far);
    frag_tape_drop(tape, is_small);
    frag_tape_drop(tape, distance);
    return made;
}

/* compute_position_bias: a number for each head and pair of tokens, for each sequence */
static frag_tensor make_bias(frag_tape *tape, const frag_network *of, const frag_batch *batch,
                             frag_tensor table)
{
    uint64_t pairs = batch->tokens * batch->tokens;
    frag_tensor places[2];
    for (uint32_t i = 0; i < 2; i++)
        places[i] = frag_tape_empty(tape, batch->tokens, FRAG_I64);
    frag_tensor distance = frag_tape_empty(tape, pairs, FRAG_I64);
    frag_tensor buckets = find_buckets(tape, pairs);
    frag_tensor made = (of->heads > 1 ? frag_aten_embedding_turned
                                      : frag_aten_embedding)(tape, table, buckets, of->heads);
    frag_tape_set(tape, &made, frag_aten_view(tape, made));
    frag_tape_set(tape, &made, frag_aten_expand(tape, made, batch->count * of->heads * pairs));
    frag_tape_set(tape, &made, frag_aten_contiguous(tape, made));
    frag_tape_drop(tape, buckets);
    frag_tape_drop(tape, distance);
    frag_tape_drop(tape, places[0]);
    frag_tape_drop(tape, places[1]);
    return made;
}

static frag_tensor attend_biased(frag_tape *tape, const frag_encoder_call *call, frag_tensor x,
                                 frag_tensor bias)
{
    const frag_network *of = &call->model->workload->network;
    const frag_batch *batch = &call->batch;
    bool is_moved = of->heads > 1 && batch->tokens > 1;
    bool is_copied = batch->count > 1 && is_moved;
    frag_tensor qkv[3];
    for (uint32_t i = 0; i < 3; i++) {
        frag_linear layer = call->at.qkv[i];
        layer.images = i == 1 && batch->tokens > 1 ? batch->count : 0; /* what a product turned */
        qkv[i] = frag_walk_apply(tape, x, &layer);
        qkv[i] = frag_walk_split_heads(tape, qkv[i], i != 1 && is_moved);
    }
    const frag_matmul scoring = {.count = batch->count * of->heads * batch->tokens * batch->tokens,
                                 .is_self_copied = is_copied,
                                 .is_other_copied = is_copied,
                                 .is_other_turned = true};
    frag_tensor scores = frag_aten_matmul(tape, qkv[0], qkv[1], &scoring);
    frag_tape_set(tape, &scores, frag_aten_mul_scalar(tape, scores));
    scores = frag_aten_add_in_place(tape, scores, bias);
    bool is_wide = frag_tape_autocast(tape) != FRAG_F32;
    frag_tensor shares =
        is_wide ? frag_aten_softmax(tape, scores, false) : frag_aten_softmax_typed(tape, scores);
    frag_tape_set(tape, &shares,
                  frag_model_drop_out(tape, call->model, shares, of->attention_dropout));
    const frag_matmul mixing = {.count = frag_tape_count(tape, x),
                                .is_other_copied = is_copied,
                                .is_gradient_copied = is_copied};
    frag_tensor mixed = frag_aten_matmul(tape, shares, qkv[2], &mixing);
    if (is_moved)
        frag_tape_set(tape, &mixed, frag_aten_contiguous(tape, mixed));
    frag_tape_set(tape, &mixed, frag_aten_view(tape, mixed));
    frag_tensor made = frag_walk_apply(tape, mixed, &call->at.out);
    const frag_tensor names[] = {qkv[0], qkv[1], qkv[2], scores, shares, mixed};
    frag_tape_drop_all(tape, names, sizeof names / sizeof *names);
    return made;
}

static frag_tensor run_mpnet_layer(frag_tape *tape, const frag_encoder_call *call, frag_tensor x,
                                   frag_tensor bias)
{
    const frag_model *model = call->model;
    const frag_encoder_layer *at = &call->at;
    const uint64_t width = model->workload->network.width;
    frag_tensor mixed = attend_biased(tape, call, x, bias);
    frag_tensor dropped = frag_model_drop_residual(tape, model, mixed);
    frag_tensor sum = frag_aten_add(tape, dropped, x);
    frag_tape_drop(tape, dropped);
    frag_tensor attended = frag_aten_layer_norm(tape, sum, &at->first, width);
    frag_tape_drop(tape, sum);
    frag_tape_drop(tape, mixed);
    return feed(tape, call, attended);
}

/* The table of the bias comes behind the layers. */
static void run_mpnet(frag_tape *tape, const frag_model *model, frag_walk *at,
                      const frag_batch *batch, frag_tensor *hidden)
{
    const frag_network *of = &model->workload->network;
    frag_walk behind = *at;
    for (uint64_t i = 0; i < of->layers; i++)
        (void)walk_layer(&behind, of);
    frag_tensor bias = make_bias(tape, of, batch, walk_bias(&behind, of));
    for (uint64_t i = 0; i < of->layers; i++) {
        const frag_encoder_call call = {model, walk_layer(at, of), *batch, {0}};
        frag_tape_set(tape, hidden, run_mpnet_layer(tape, &call, *hidden, bias));
    }
    frag_tape_drop(tape, bias);
    (void)walk_bias(at, of);
}

static frag_tensor predict(frag_tape *tape, const frag_model *model, const head *at,
                           frag_tensor words, frag_tensor hidden)
{
    const frag_network *of = &model->workload->network;
    const frag_tensor parameters[] = {words, at->bias};
    /* The head has the decoder's bias as well: brought from the host they are two. */
    bool has_bias = !is_electra(of) && of->family != FRAG_FAMILY_DISTILBERT;
    frag_tensor own =
        has_bias && frag_tape_is_hosted(tape, at->bias) ? frag_tape_empty_like(tape, at->bias) : 0;
    if (own != 0)
        frag_tape_empty_cache(tape);
    frag_tensor made = frag_walk_apply(tape, hidden, &at->dense);
    frag_tape_set(tape, &made,
                  is_electra(of) || is_mpnet(of) ? frag_aten_gelu(tape, made)
                                                 : activate(tape, model, made));
    frag_tape_set(tape, &made, frag_aten_layer_norm(tape, made, &at->last, embedding_width(of)));
    frag_tape_fetch(tape, parameters, 2);
    frag_tape_set(tape, &made, frag_aten_linear(tape, made, words, at->bias, of->vocabulary));
    frag_tape_send_back(tape, parameters, 2);
    frag_tape_drop(tape, own);
    return made;
}

static frag_tensor compute_loss(frag_tape *tape, const frag_model *model, const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    frag_walk at = {.tape = tape, .workload = model->workload, .at = model->parameters};
    bool is_lm = model->workload->head == FRAG_HEAD_LM;
    top above = {.words = {.bias = 0}};
    if (of->is_head_first)
        above = walk_top(&at, of);
    embeddings below = walk_embeddings(&at, of);
    if (of->is_head_first && is_lm)
        below.words = above.words.words;
    disentangled beside = {.mask = 0};
    frag_tensor hidden = knows_distances(of) ? embed_masked(tape, model, &below, batch, &beside)
                                             : (is_distilled(of) ? embed_distilled
                                                : is_mpnet(of)   ? embed_mpnet
                                                               : embed)(tape, model, &below, batch);
    frag_tensor narrow = is_albert(of) ? frag_tape_keep(tape, hidden) : 0;
    if (below.widen.weight != 0)
        frag_tape_set(tape, &hidden, frag_walk_apply(tape, hidden, &below.widen));
    frag_tensor embedded = is_albert(of) ? narrow : frag_tape_keep(tape, hidden);
    if (knows_distances(of))
        begin_distances(tape, model, &at, batch, &beside);
    const frag_tensor kept[] = {beside.distances.mask, beside.distances.places,
                                beside.distances.rows};
    if (is_albert(of))
        run_groups(tape, model, &at, batch, &hidden);
    if (is_mpnet(of))
        run_mpnet(tape, model, &at, batch, &hidden);
    bool is_done = is_albert(of) || is_mpnet(of);
    for (uint64_t i = 0; i < of->layers && !is_done; i++) {
        const frag_encoder_call call = {model, walk_layer(&at, of), *batch, beside.distances};
        const frag_region_call next = {is_distilled(of) ? run_distilled_layer : run_layer, &call,
                                       sizeof call, kept, knows_distances(of) ? 3 : 0};
        if (knows_distances(of))
            beside.states[beside.state_count++] = frag_tape_keep(tape, hidden);
        frag_model_pass_block(tape, model, i, &next, &hidden);
    }
    if (knows_distances(of))
        (void)walk_rows(&at, of);
    if (!of->is_head_first)
        above = walk_top(&at, of);
    frag_tensor pooled =
        is_lm ? 0 : frag_class_head_pool(tape, model, &above.classes, batch, hidden);
    frag_tape_drop(tape, embedded);
    end_distances(tape, &beside);
    if (!is_lm)
        return frag_class_head_loss(tape, model, &above.classes, batch,
                                    &(frag_class_input){hidden, pooled});
    frag_tensor logits = predict(tape, model, &above.words, below.words, hidden);
    frag_tensor flat = frag_aten_view(tape, logits);
    frag_tensor loss = frag_aten_cross_entropy(tape, flat, batch->labels);
    frag_family_return(tape, batch, logits);
    frag_tape_drop(tape, flat);
    frag_tape_drop(tape, hidden);
    frag_tape_drop(tape, logits);
    return loss;
}

const frag_family frag_family_bert = {build, frag_family_load_tokens, compute_loss, NULL};
