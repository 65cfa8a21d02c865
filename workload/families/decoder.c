/* What decoders share: transformers' DynamicCache, keys and values of past tokens, of which each
 * pass makes a longer copy; and the head on the hidden states. */
#include "base/memory.h"
#include "workload/families/family.h"

frag_cache frag_cache_create(const frag_model *model)
{
    const frag_network *of = &model->workload->network;
    return (frag_cache){.layers = frag_alloc(of->layers, sizeof(frag_cached)),
                        .layer_count = of->layers};
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
    if (cache->paged_tokens > 0) {
        frag_tensor keys = gather(tape, of, cache->paged_tokens, *key);
        frag_tensor values = gather(tape, of, cache->paged_tokens, *value);
        frag_tape_set(tape, key, keys);
        frag_tape_set(tape, value, values);
        return;
    }
    uint64_t layer = cache->next++ % cache->layer_count;
    frag_cached *at = &cache->layers[layer];
    bool has_window =
        of->window > 0 && layer >= of->full_layers && (!of->is_alternating || layer % 2 == 0);
    /* Both begin as empty tensors of the keys' type. */
    frag_dtype dtype = frag_tape_dtype(tape, *key);
    if (has_window && at->window == 0)
        at->window = frag_tape_empty(tape, 1, FRAG_I64);
    frag_request_kind was = frag_tape_set_kind(tape, FRAG_REQUEST_ACTIVATION);
    frag_tensor keys = frag_aten_cat(tape, at->keys, *key, dtype);
    if (!has_window) /* with a window the old keys go when the new values are there */
        frag_tape_set(tape, &at->keys, frag_tape_keep(tape, keys));
    frag_tensor values = frag_aten_cat(tape, at->values, *value, dtype);
    frag_tape_set_kind(tape, was);
    if (has_window)
        frag_tape_set(tape, &at->keys, frag_tape_keep(tape, keys));
    frag_tape_set(tape, &at->values, frag_tape_keep(tape, values));
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

static frag_tensor run_head(frag_tape *tape, const frag_model *model, frag_tensor hidden)
{
    const frag_network *of = &model->workload->network;
    frag_tensor head = model->parameters[of->is_tied ? 0 : model->parameter_count - 1];
    frag_tensor logits = frag_aten_linear(tape, hidden, head, 0, of->vocabulary);
    if (of->logit_cap > 0) { /* cap * tanh(logits / cap) */
        frag_tape_set(tape, &logits, frag_aten_mul_scalar(tape, logits));
        frag_tape_set(tape, &logits, frag_aten_tanh(tape, logits));
        frag_tape_set(tape, &logits, frag_aten_mul_scalar(tape, logits));
    }
    return logits;
}

frag_tensor frag_decoder_loss(frag_tape *tape, const frag_family *family, const frag_model *model,
                              const frag_batch *batch)
{
    frag_cache past = frag_cache_create(model);
    frag_tensor hidden = family->hidden(tape, model, batch, &past);
    frag_tensor logits = run_head(tape, model, hidden);
    frag_tensor loss = frag_family_causal_loss(tape, logits, batch);
    frag_tape_drop(tape, hidden);
    frag_tape_drop(tape, logits);
    frag_cache_destroy(tape, &past);
    return loss;
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
