/* What decoders share: transformers' DynamicCache, keys and values of past tokens, of which each
 * pass makes a longer copy; and the head on the hidden states. */
#include "base/memory.h"
#include "workload/families/family.h"

frag_cache frag_cache_create(const frag_model *model, uint64_t sequences)
{
    const frag_network *of = &model->workload->network;
    return (frag_cache){.layers = frag_alloc(of->layers, sizeof(frag_cached)),
                        .layer_count = of->layers,
                        .sequences = sequences};
}

uint64_t frag_network_keys(const frag_network *of, bool has_window, const frag_batch *batch)
{
    uint64_t past = has_window && batch->past >= of->window ? of->window - 1 : batch->past;
    return past + batch->tokens;
}

frag_tensor frag_decoder_see_window(frag_tape *tape, const frag_network *of,
                                    const frag_batch *batch)
{
    const frag_attention_shape shape = {.batch = batch->count,
                                        .queries = batch->tokens,
                                        .keys = frag_network_keys(of, true, batch)};
    return shape.keys >= of->window ? frag_aten_seen(tape, &shape, true) : 0;
}

frag_tensor frag_decoder_see_before(frag_tape *tape, const frag_model *model,
                                    const frag_batch *batch, frag_dtype dtype)
{
    const frag_network *of = &model->workload->network;
    if (!of->is_eager)
        return 0;
    bool has_window = of->window > 0;
    const frag_attention_shape shape = {.batch = batch->count,
                                        .queries = batch->tokens,
                                        .keys = frag_network_keys(of, has_window, batch)};
    return frag_aten_causal_mask(tape, &shape, has_window, dtype);
}

/* Keys and values are repeated before, for each query head; of one token heads are packed as
 * queries (pack_gqa). */
static frag_tensor attend(frag_tape *tape, const frag_tensor qkv[3], frag_attention_shape shape,
                          frag_tensor seen)
{
    if (seen == 0)
        return frag_aten_attention(tape, qkv, &shape);
    shape.is_causal = false;
    shape.seen = seen;
    if (shape.queries == 1 && shape.heads > shape.key_heads) {
        shape.is_packed = shape.is_heads_first = true;
        shape.queries = shape.heads / shape.key_heads;
        shape.heads = shape.key_heads;
        return frag_aten_attention(tape, qkv, &shape);
    }
    frag_tensor repeated[3] = {qkv[0], frag_aten_repeat_keys(tape, qkv[1], &shape),
                               frag_aten_repeat_keys(tape, qkv[2], &shape)};
    shape.key_heads = shape.heads;
    frag_tensor made = frag_aten_attention(tape, repeated, &shape);
    frag_tape_drop(tape, repeated[2]);
    frag_tape_drop(tape, repeated[1]);
    return made;
}

frag_tensor frag_decoder_attend(frag_tape *tape, const frag_network *of, const frag_tensor qkv[3],
                                const frag_eager_attention *how, frag_tensor *weights)
{
    return of->is_eager ? frag_aten_eager_attention(tape, qkv, how, weights)
                        : attend(tape, qkv, how->shape, how->mask);
}

frag_tensor frag_decoder_feed(frag_tape *tape, const frag_model *model, const frag_linear *feed,
                              const frag_linear *back, frag_tensor x)
{
    const frag_network *of = &model->workload->network;
    frag_tensor hidden = frag_walk_apply(tape, x, feed);
    frag_tape_set(tape, &hidden,
                  frag_family_activate(tape, hidden, (frag_activation)of->activation));
    frag_tape_set(tape, &hidden, frag_walk_apply(tape, hidden, back));
    frag_tape_set(tape, &hidden, frag_model_drop_residual(tape, model, hidden));
    return hidden;
}

/* keys[:, :, -window + 1:], which holds all of them until the next pass. */
static frag_tensor keep_window(frag_tape *tape, const frag_network *of, const frag_cache *cache,
                               frag_tensor keys)
{
    uint64_t kept = cache->sequences * of->key_heads * of->head_width * (of->window - 1);
    return frag_tape_count(tape, keys) > kept ? frag_tape_view(tape, keys, kept)
                                              : frag_tape_keep(tape, keys);
}

/* What was made is written into the pool, and all are read out of it: index_copy_, index_select. */
static frag_tensor gather(frag_tape *tape, const frag_network *of, uint64_t tokens,
                          frag_tensor made)
{
    return frag_tape_empty(tape, tokens * of->key_heads * of->head_width,
                           frag_tape_dtype(tape, made));
}

void frag_cache_append(frag_tape *tape, const frag_network *of, frag_cache *cache, frag_tensor *key,
                       frag_tensor *value)
{
    if (cache == NULL)
        return;
    if (cache->paged_tokens > 0) {
        frag_tensor keys = gather(tape, of, cache->paged_tokens, *key);
        frag_tensor values = gather(tape, of, cache->paged_tokens, *value);
        frag_tape_set(tape, key, keys);
        frag_tape_set(tape, value, values);
        return;
    }
    uint64_t layer = cache->next++ % cache->layer_count;
    frag_cached *at = &cache->layers[layer];
    bool has_window = frag_network_has_window(of, layer);
    /* Each begins as an empty tensor of its own type. */
    if (has_window && at->window == 0)
        at->window = frag_tape_empty(tape, 1, FRAG_I64);
    frag_request_kind was = frag_tape_set_kind(tape, FRAG_REQUEST_ACTIVATION);
    frag_tensor keys = frag_aten_cat(tape, at->keys, *key, frag_tape_dtype(tape, *key));
    if (!has_window) /* with a window the old keys go when the new values are there */
        frag_tape_set(tape, &at->keys, frag_tape_keep(tape, keys));
    frag_tensor values = frag_aten_cat(tape, at->values, *value, frag_tape_dtype(tape, *value));
    frag_tape_set_kind(tape, was);
    if (has_window)
        frag_tape_set(tape, &at->keys, keep_window(tape, of, cache, keys));
    frag_tape_set(tape, &at->values,
                  has_window ? keep_window(tape, of, cache, values) : frag_tape_keep(tape, values));
    frag_tape_set(tape, key, keys);
    frag_tape_set(tape, value, values);
}

void frag_cache_destroy(frag_tape *tape, frag_cache *cache)
{
    for (uint64_t i = cache->layer_count; i > 0; i--) {
        frag_tape_drop(tape, cache->layers[i - 1].keys);
        frag_tape_drop(tape, cache->layers[i - 1].values);
        frag_tape_drop(tape, cache->layers[i - 1].window);
    }
    frag_free(cache->layers);
}

void frag_cache_pass_block(frag_tape *tape, const frag_model *model, frag_cache *cache,
                           frag_block_place place, const frag_region_call *block,
                           frag_tensor *hidden)
{
    const frag_workload *workload = model->workload;
    bool is_plain = cache != NULL && cache->paged_tokens == 0 && workload->network.experts == 0 &&
                    workload->parallel == FRAG_PARALLEL_NONE && !frag_tape_is_recording(tape) &&
                    !cache->blocks[place.kind].is_open;
    const frag_cached *at = is_plain ? &cache->layers[cache->next % cache->layer_count] : NULL;
    if (at == NULL ||
        !frag_tape_are_alone(tape, (frag_tensor[]){*hidden, at->keys, at->values}, 3)) {
        frag_model_pass_block(tape, model, place.number, block, hidden);
        return;
    }
    uint64_t pass = cache->next / cache->layer_count;
    for (uint32_t i = 0; i < FRAG_BLOCK_KINDS_MAX && pass != cache->pass; i++)
        cache->blocks[i].end = 0;
    cache->pass = pass;
    frag_tape_stretch *first = &cache->blocks[place.kind];
    if (frag_tape_repeat_stretch(tape, (frag_tensor[]){*hidden, at->keys, at->values}, first)) {
        cache->next++;
        return;
    }
    frag_tape_begin_stretch(tape, (frag_tensor[]){*hidden, at->keys, at->values}, 3, first);
    frag_model_pass_block(tape, model, place.number, block, hidden);
    frag_tape_end_stretch(tape, (frag_tensor[]){*hidden, at->keys, at->values}, first);
}

/* A product with a weight that wants a gradient goes over rows that lie in one piece, as a cast of
 * them does. */
static frag_tensor lay_rows(frag_tape *tape, frag_tensor x, frag_tensor weight)
{
    frag_dtype autocast = frag_tape_autocast(tape);
    bool is_cast = autocast != FRAG_F32 && (autocast != frag_tape_dtype(tape, x) ||
                                            !frag_tape_is_recording(tape)); /* so is the weight */
    if (!frag_tape_is_strided(tape, x) || is_cast || !frag_tape_needs_gradient(tape, weight))
        return frag_tape_keep(tape, x);
    frag_tape_drop(tape, frag_tape_cast(tape, weight)); /* which autocast keeps */
    return frag_aten_unsafe_view(tape, frag_aten_contiguous(tape, x));
}

void frag_decoder_walk_head(frag_walk *at, const frag_network *of)
{
    const frag_stage *stage = &at->model->stage;
    const frag_workload *workload = at->workload;
    if (!stage->is_last)
        return;
    if (workload->head != FRAG_HEAD_LM) {
        (void)frag_walk_classes(at, (frag_shape){workload->labels, of->embedding_width}, false);
        return;
    }
    if (!(of->is_tied && stage->is_first))
        (void)frag_walk_parameter(at, (frag_shape){of->vocabulary, of->embedding_width});
    if (of->has_head_bias)
        (void)frag_walk_parameter(at, (frag_shape){0, of->vocabulary});
}

static frag_tensor run_head(frag_tape *tape, const frag_model *model, frag_tensor hidden)
{
    const frag_network *of = &model->workload->network;
    bool is_shared = of->is_tied && model->stage.is_first;
    uint32_t last = model->parameter_count - 1;
    frag_tensor bias = of->has_head_bias ? model->parameters[last--] : 0;
    frag_tensor head = model->parameters[is_shared ? 0 : last];
    const frag_tensor parameters[] = {head, bias};
    frag_tape_fetch(tape, parameters, 2);
    frag_tensor rows = lay_rows(tape, hidden, head);
    /* Of rows with gaps between sequences, which a cast has not, the product is made alone, then
     * the bias is added. */
    const frag_dtype autocast = frag_tape_autocast(tape);
    bool is_cast = autocast != FRAG_F32 && autocast != frag_tape_dtype(tape, hidden);
    bool is_apart = bias != 0 && frag_tape_is_strided(tape, hidden) && !is_cast;
    frag_tensor logits = is_apart
                             ? frag_aten_linear_apart(tape, rows, parameters, of->vocabulary, 1)
                             : frag_aten_linear(tape, rows, head, bias, of->vocabulary);
    frag_tape_drop(tape, rows);
    frag_tape_send_back(tape, parameters, 2);
    if (of->has_scales || of->has_logit_scale)
        frag_tape_set(tape, &logits, frag_aten_mul_scalar(tape, logits));
    if (of->logit_cap > 0) { /* cap * tanh(logits / cap) */
        frag_tape_set(tape, &logits, frag_aten_mul_scalar(tape, logits));
        frag_tape_set(tape, &logits, frag_aten_tanh(tape, logits));
        frag_tape_set(tape, &logits, frag_aten_mul_scalar(tape, logits));
    }
    return logits;
}

/* ---- the loss in chunks (docs/workloads.md has its Python) */
typedef struct chunk_call {
    const frag_model *model;
    frag_tensor labels;
} chunk_call;

/* cross_entropy(head(hidden).float(), labels, reduction="sum") */
static frag_tensor run_chunk(frag_tape *tape, const void *context, frag_tensor hidden)
{
    const chunk_call *call = context;
    frag_tensor logits = run_head(tape, call->model, hidden);
    frag_tape_set(tape, &logits, frag_tape_to(tape, logits, FRAG_F32));
    frag_tensor loss = frag_aten_cross_entropy(tape, logits, call->labels);
    frag_tape_drop(tape, logits);
    return loss;
}

/* The labels moved by one: pad(ids, (0, 1))[:, 1:].flatten() */
static frag_tensor move_labels(frag_tape *tape, const frag_batch *batch)
{
    uint64_t rows = batch->count * batch->tokens;
    frag_tensor padded = frag_tape_empty(tape, rows + batch->count, FRAG_I64);
    frag_tensor labels = batch->count == 1 ? frag_tape_view(tape, padded, rows)
                                           : frag_tape_empty(tape, rows, FRAG_I64);
    frag_tape_drop(tape, padded);
    return labels;
}

/* total / (labels != -100).sum() */
static frag_tensor divide_by_labels(frag_tape *tape, frag_tensor total, uint64_t rows)
{
    frag_tensor is_counted = frag_tape_empty(tape, rows, FRAG_BOOL);
    frag_tensor count = frag_aten_count(tape, 1, rows);
    frag_tape_drop(tape, is_counted);
    frag_tensor made = frag_aten_mul(tape, total, count);
    frag_tape_drop(tape, count);
    return made;
}

static frag_tensor compute_chunks(frag_tape *tape, const frag_model *model, const frag_batch *batch,
                                  frag_tensor hidden)
{
    uint64_t rows = batch->count * batch->tokens;
    uint64_t width = frag_tape_count(tape, hidden) / rows;
    frag_tensor flat = frag_aten_view(tape, hidden);
    frag_tensor labels = move_labels(tape, batch);
    frag_tensor whole = frag_aten_split_begin(tape, flat);
    frag_tensor total = 0;
    frag_tape_begin_checkpoints(tape, 1, 0);
    bool is_selective = frag_tape_set_selective(tape, false);
    for (uint64_t left = rows; left > 0;) {
        uint64_t chunk = left < model->workload->loss_chunk ? left : model->workload->loss_chunk;
        frag_tensor part = frag_aten_split_next(tape, whole, chunk * width);
        chunk_call call = {model, frag_tape_view(tape, labels, chunk)};
        frag_tensor loss = frag_tape_checkpoint(
            tape, &(frag_region_call){run_chunk, &call, sizeof call, &call.labels, 1}, part);
        frag_tape_drop(tape, call.labels);
        frag_tape_drop(tape, part);
        frag_tape_set(tape, &total,
                      total == 0 ? frag_aten_add_scalar(tape, loss)
                                 : frag_aten_add(tape, total, loss));
        frag_tape_drop(tape, loss);
        left -= chunk;
    }
    frag_tape_set_selective(tape, is_selective);
    frag_tape_set(tape, &total, divide_by_labels(tape, total, rows));
    frag_tape_drop(tape, whole);
    frag_tape_drop(tape, labels);
    frag_tape_drop(tape, flat);
    return total;
}

/* ---- classes of a sequence (GenericForSequenceClassification) */
/* places: (arange(tokens) * (ids != pad)).argmax(-1), the last token that is no padding, then what
 * it was made of. */
static void find_last(frag_tape *tape, const frag_batch *batch, frag_tensor places[3])
{
    const uint64_t count = batch->count * batch->tokens;
    frag_tensor is_word = frag_tape_empty(tape, count, FRAG_BOOL);
    places[1] = frag_tape_empty(tape, count, FRAG_I32);
    frag_tape_drop(tape, is_word);
    places[2] = frag_tape_empty(tape, batch->tokens, FRAG_I32);
    frag_tensor masked = frag_tape_empty(tape, count, FRAG_I32);
    places[0] = frag_aten_argmax(tape, batch->count, batch->tokens);
    frag_tape_drop(tape, masked);
}

/* The score of every token, of which that of the last one counts. */
static frag_tensor classify(frag_tape *tape, const frag_model *model, const frag_batch *batch,
                            frag_tensor hidden)
{
    const uint64_t labels = model->workload->labels;
    frag_tensor score = model->parameters[model->parameter_count - 1];
    frag_tape_fetch(tape, &score, 1);
    frag_tensor logits = frag_aten_linear(tape, hidden, score, 0, labels);
    frag_tape_send_back(tape, &score, 1);
    frag_tensor places[3];
    find_last(tape, batch, places);
    frag_tensor pooled = frag_aten_pick_rows(tape, logits, places[0], labels);
    frag_tensor loss = frag_family_class_loss(tape, model, pooled, batch);
    frag_tape_drop_all(tape, places, 3);
    frag_tape_drop(tape, logits);
    return loss;
}

frag_tensor frag_decoder_loss(frag_tape *tape, const frag_family *family, const frag_model *model,
                              const frag_batch *batch)
{
    frag_cache past = frag_cache_create(model, batch->count);
    bool is_cached = !frag_model_has_checkpoints(model) &&
                     !frag_families[model->workload->network.family].has_no_cache;
    frag_tensor hidden = family->hidden(tape, model, batch, is_cached ? &past : NULL);
    if (model->workload->loss == FRAG_LOSS_CHUNKED) {
        frag_cache_destroy(tape, &past);
        frag_tensor total = compute_chunks(tape, model, batch, hidden);
        frag_tape_drop(tape, hidden);
        return total;
    }
    bool is_lm = model->workload->head == FRAG_HEAD_LM;
    frag_tensor logits = is_lm ? run_head(tape, model, hidden) : 0;
    frag_tensor loss =
        is_lm ? frag_family_causal_loss(tape, logits, batch) : classify(tape, model, batch, hidden);
    if (is_lm)
        frag_family_return(tape, batch, logits);
    for (uint64_t i = 0; i < past.layer_count; i++) {
        frag_family_return(tape, batch, past.layers[i].keys);
        frag_family_return(tape, batch, past.layers[i].values);
        frag_family_return(tape, batch, past.layers[i].window);
    }
    frag_tape_drop(tape, hidden);
    frag_tape_drop(tape, logits);
    frag_cache_destroy(tape, &past);
    return loss;
}

frag_tensor frag_decoder_stage(frag_tape *tape, const frag_family *family, const frag_model *model,
                               const frag_batch *batch)
{
    frag_tensor hidden = family->hidden(tape, model, batch, NULL);
    if (model->stage.is_last)
        frag_tape_set(tape, &hidden, run_head(tape, model, hidden));
    return hidden;
}

frag_tensor frag_decoder_replica(frag_tape *tape, const frag_family *family,
                                 const frag_model *model, const frag_batch *batch,
                                 frag_tensor *loss)
{
    frag_tensor hidden = family->hidden(tape, model, batch, NULL);
    frag_tensor logits = run_head(tape, model, hidden);
    *loss = frag_family_causal_loss(tape, logits, batch);
    frag_tape_drop(tape, hidden);
    return logits;
}

/* hidden[:, -1:] goes through the head, as with logits_to_keep=1. */
frag_tensor frag_decoder_logits(frag_tape *tape, const frag_family *family, const frag_model *model,
                                const frag_batch *batch, frag_cache *past)
{
    frag_tensor hidden = family->hidden(tape, model, batch, past);
    frag_tensor last = frag_aten_slice(tape, hidden, frag_tape_count(tape, hidden) / batch->tokens);
    frag_tensor logits = run_head(tape, model, last);
    frag_tape_drop(tape, last);
    frag_tape_drop(tape, hidden);
    return logits;
}

/* Some tokens of each sequence: in one piece where there is one. */
static frag_tensor cut_rows(frag_tape *tape, const frag_batch *batch, frag_tensor of,
                            uint64_t count)
{
    frag_tensor made = frag_aten_slice(tape, of, count);
    if (batch->count > 1)
        frag_tape_set_strided(tape, made);
    return made;
}

/* log_softmax(model(ids, logits_to_keep=answer + 1).logits[:, :-1]).gather(-1, ids[:, -answer:]) */
frag_tensor frag_decoder_score(frag_tape *tape, const frag_family *family, const frag_model *model,
                               const frag_batch *batch, uint64_t answer)
{
    const frag_network *of = &model->workload->network;
    frag_tensor hidden = family->hidden(tape, model, batch, NULL);
    frag_tensor kept =
        cut_rows(tape, batch, hidden, frag_tape_count(tape, hidden) / batch->tokens * (answer + 1));
    frag_tensor logits = run_head(tape, model, kept);
    frag_tape_drop(tape, kept);
    frag_tape_drop(tape, hidden);
    uint64_t rows = batch->count * answer;
    frag_tape_set(tape, &logits, cut_rows(tape, batch, logits, rows * of->vocabulary));
    frag_tensor scores = frag_aten_log_softmax(tape, logits);
    frag_tensor tokens = frag_tape_view(tape, batch->ids, rows);
    frag_tape_set(tape, &scores, frag_aten_choose(tape, scores, tokens));
    frag_tape_set(tape, &scores, frag_aten_view(tape, scores));
    frag_tape_drop(tape, tokens);
    frag_tape_drop(tape, logits);
    return scores;
}
