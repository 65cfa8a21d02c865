/* Llama as transformers 5 has it (models/llama/modeling_llama.py), with attention by
 * scaled_dot_product_attention. */
#include "workload/families/family.h"

typedef struct block {
    /* Fused: q makes all three, gate both. */
    frag_linear q, k, v, o, gate, up, down;
    frag_tensor query_norm, key_norm;  /* of each head; 0: not there */
    frag_tensor sinks;                 /* a score of each head; 0: not there */
    frag_tensor norm, norm2;           /* before attention and feed-forward part; 0: not there */
    frag_tensor post_norm, post_norm2; /* behind them */
    bool has_experts;
    frag_experts experts; /* in the place of gate, up and down */
} block;

/* Sinks move to the GPU behind the layers of attention, and are named before them, which is the
 * same where only adapters are trained. */
static frag_tensor walk_sinks(frag_walk *at, const frag_network *of, bool is_behind)
{
    enum { LAYERS = 4 };
    bool is_named_first = at->workload->lora_rank == 0 && at->workload->quantize == 0;
    bool is_built = at->model != NULL;
    if (!of->has_sinks || is_behind != (is_built || !is_named_first))
        return 0;
    frag_tensor made = frag_walk_parameter(at, (frag_shape){0, of->heads});
    if (is_built && is_named_first)
        frag_model_name_first(at->model, LAYERS * (of->has_attention_bias ? 2 : 1) + 1, 1);
    return made;
}

static void walk_attention(frag_walk *at, const frag_network *of, block *next)
{
    const uint64_t keys = of->key_heads * of->head_width;
    const uint64_t queries = of->heads * of->head_width;
    bool has_bias = of->has_attention_bias || of->has_query_bias;
    if (of->is_fused) {
        next->o = frag_walk_linear(at, (frag_shape){of->width, queries}, of->has_attention_bias,
                                   FRAG_LORA_O);
        next->q = frag_walk_linear(at, (frag_shape){queries + 2 * keys, of->width}, has_bias,
                                   FRAG_LORA_QKV);
        return;
    }
    frag_tensor sinks = walk_sinks(at, of, false);
    next->q = frag_walk_linear(at, (frag_shape){queries, of->width}, has_bias, FRAG_LORA_Q);
    next->k = frag_walk_linear(at, (frag_shape){keys, of->width}, has_bias, FRAG_LORA_K);
    next->v = frag_walk_linear(at, (frag_shape){keys, of->width}, has_bias, FRAG_LORA_V);
    next->o =
        frag_walk_linear(at, (frag_shape){of->width, queries}, of->has_attention_bias, FRAG_LORA_O);
    next->sinks = sinks != 0 ? sinks : walk_sinks(at, of, true);
    if (of->has_head_norms || of->has_whole_norms) {
        next->query_norm = frag_walk_parameter(
            at, (frag_shape){0, of->has_whole_norms ? queries : of->head_width});
        next->key_norm =
            frag_walk_parameter(at, (frag_shape){0, of->has_whole_norms ? keys : of->head_width});
    }
}

static void walk_feed(frag_walk *at, const frag_network *of, uint64_t layer, block *next)
{
    if (next->has_experts) {
        next->experts = frag_walk_experts(at, of, (layer + 1) / of->expert_every - 1);
        return;
    }
    if (of->is_fused) {
        next->gate = frag_walk_linear(at, (frag_shape){2 * of->inner, of->width},
                                      of->has_inner_bias, FRAG_LORA_GATE_UP);
    } else {
        next->gate = frag_walk_linear(at, (frag_shape){of->inner, of->width}, of->has_inner_bias,
                                      FRAG_LORA_GATE);
        next->up = frag_walk_linear(at, (frag_shape){of->inner, of->width}, of->has_inner_bias,
                                    FRAG_LORA_UP);
    }
    next->down = frag_walk_linear(at, (frag_shape){of->width, of->inner}, of->has_inner_bias,
                                  FRAG_LORA_DOWN);
}

static block walk_block(frag_walk *at, const frag_network *of, uint64_t layer)
{
    block next = {.has_experts = of->experts > 0 && (layer + 1) % of->expert_every == 0};
    walk_attention(at, of, &next);
    walk_feed(at, of, layer, &next);
    const frag_shape width = {0, of->width};
    next.norm = of->has_pre_norms ? frag_walk_parameter(at, width) : 0;
    next.post_norm = of->has_post_norms ? frag_walk_parameter(at, width) : 0;
    next.norm2 = of->has_pre_norms ? frag_walk_parameter(at, width) : 0;
    next.post_norm2 = of->has_post_norms ? frag_walk_parameter(at, width) : 0;
    return next;
}

/* nn.Embedding, and the number that it is multiplied by. */
static frag_tensor walk_words(frag_walk *at, const frag_network *of)
{
    frag_tensor words = frag_walk_parameter(at, (frag_shape){of->vocabulary, of->width});
    if (of->has_embedding_scale && at->model != NULL)
        frag_model_add_buffer(at->tape, at->model, 1, frag_model_loaded_type(at->model));
    return words;
}

/* words(ids) * scale.to(the type of the words); the scale is in the type of loading. */
static frag_tensor embed(frag_tape *tape, const frag_model *model, frag_tensor words,
                         const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    frag_tensor made = frag_aten_embedding(tape, words, batch->ids, of->width);
    if (of->has_scales)
        frag_tape_set(tape, &made, frag_aten_mul_scalar(tape, made));
    if (!of->has_embedding_scale)
        return made;
    bool is_typed = frag_model_loaded_type(model) == frag_tape_dtype(tape, words);
    frag_tensor scale = is_typed ? 0 : frag_tape_empty(tape, 1, frag_tape_dtype(tape, words));
    frag_tensor buffer = model->scale != 0 ? model->scale : model->buffers[0];
    frag_tape_set(tape, &made, frag_aten_mul(tape, made, scale != 0 ? scale : buffer));
    frag_tape_drop(tape, scale);
    return made;
}

/* How much of a head is turned by its position. */
static uint64_t rotary_width(const frag_network *of)
{
    return (uint64_t)((double)of->head_width * of->rotary_share) / 2 * 2;
}

/* Layers with a window have angles of their own, and there are others. */
static bool has_two_ropes(const frag_network *of)
{
    bool has_full = of->full_layers > 0 || (of->full_every > 0 && of->full_every <= of->layers);
    return of->has_local_rope && of->window > 0 && has_full;
}

static void build(frag_tape *tape, frag_model *model)
{
    const frag_network *of = &model->workload->network;
    frag_walk at = {.tape = tape, .workload = model->workload, .model = model};
    const frag_stage *stage = &model->stage;
    if (stage->is_first)
        (void)walk_words(&at, of);
    for (uint64_t i = stage->first; i < stage->end; i++) {
        frag_model_mark_block(model);
        (void)walk_block(&at, of, i);
    }
    frag_model_mark_block(model);
    if (stage->is_last)
        (void)frag_walk_parameter(&at, (frag_shape){0, of->width});
    /* Two buffers of each rotary embedding, always fp32. */
    for (uint32_t i = 0; i < (has_two_ropes(of) ? 4 : 2); i++)
        frag_model_add_buffer(tape, model, rotary_width(of) / 2, FRAG_F32);
    if (stage->is_last && !(of->is_tied && stage->is_first))
        (void)frag_walk_parameter(&at, (frag_shape){of->vocabulary, of->width});
}

/* is_exact: the product with the weight is in fp32. */
static frag_tensor rms_norm(frag_tape *tape, frag_tensor x, frag_tensor weight, uint64_t width,
                            bool is_exact)
{
    frag_dtype dtype = frag_tape_dtype(tape, x);
    frag_tensor hidden = frag_tape_to(tape, x, FRAG_F32);
    frag_tensor power = frag_aten_pow(tape, hidden);
    frag_tensor variance = frag_aten_mean_last(tape, power, width);
    frag_tape_drop(tape, power);
    frag_tensor shifted = frag_aten_add_scalar(tape, variance);
    frag_tensor root = frag_aten_rsqrt(tape, shifted);
    frag_tape_drop(tape, shifted);
    frag_tensor scaled = frag_aten_mul(tape, hidden, root);
    frag_tape_drop(tape, root);
    frag_tape_set(tape, &hidden, scaled);
    frag_tensor typed = frag_tape_to(tape, hidden, is_exact ? FRAG_F32 : dtype);
    frag_tensor made = frag_aten_mul(tape, weight, typed);
    frag_tape_drop(tape, typed);
    if (is_exact)
        frag_tape_set(tape, &made, frag_tape_to(tape, made, dtype));
    frag_tape_drop(tape, hidden);
    frag_tape_drop(tape, variance);
    return made;
}

/* Gemma's: (x * rsqrt(mean of squares)) * (1 + weight), in fp32 to the end. */
static frag_tensor wide_norm(frag_tape *tape, frag_tensor x, frag_tensor weight, uint64_t width)
{
    bool is_strided = frag_tape_is_strided(tape, x);
    frag_tensor hidden = frag_tape_to(tape, x, FRAG_F32);
    if (is_strided)
        frag_tape_set_strided(tape, hidden);
    frag_family_will_save(tape, hidden);
    frag_tensor made = frag_aten_pow(tape, hidden);
    frag_tape_set(tape, &made, frag_aten_mean_last(tape, made, width));
    frag_tape_set(tape, &made, frag_aten_add_scalar(tape, made));
    frag_tape_set(tape, &made, frag_aten_rsqrt(tape, made));
    frag_family_will_save(tape, hidden);
    frag_tape_set(tape, &made, frag_aten_mul(tape, hidden, made));
    if (is_strided)
        frag_tape_set_strided(tape, made);
    frag_tape_drop(tape, hidden);
    frag_tensor factor = frag_tape_to(tape, weight, FRAG_F32);
    frag_tape_set(tape, &factor, frag_aten_add_scalar(tape, factor));
    if (frag_tape_needs_gradient(tape, factor))
        frag_tape_will_save(tape, made);
    frag_tensor product = frag_aten_mul(tape, made, factor);
    frag_tape_drop(tape, factor); /* has no name, and goes before the old output */
    frag_tape_set(tape, &made, product);
    frag_tape_set(tape, &made, frag_tape_to(tape, made, frag_tape_dtype(tape, x)));
    return made;
}

static frag_tensor normalise(frag_tape *tape, const frag_network *of, frag_tensor x,
                             frag_tensor weight, uint64_t width)
{
    return of->has_wide_norms ? wide_norm(tape, x, weight, width)
                              : rms_norm(tape, x, weight, width, of->has_exact_parts);
}

static bool is_rope_partial(const frag_network *of)
{
    return of->is_fused || of->rotary_share < 1;
}

/* The first part of each head is turned, the rest (which may be nothing) put behind it: as Phi has
 * it. */
static void apply_partial_rope(frag_tape *tape, const frag_network *of, frag_tensor qkv[3],
                               frag_rope angles)
{
    frag_rope_parts parts[2];
    for (uint32_t i = 0; i < 2; i++)
        parts[i] = frag_rope_split(tape, qkv[i], of->head_width, rotary_width(of));
    frag_tensor made[2];
    for (uint32_t i = 0; i < 2; i++) {
        frag_tensor straight = frag_rope_apply(tape, parts[i].turned, angles);
        made[i] = frag_aten_cat(tape, straight, parts[i].passed, frag_tape_dtype(tape, straight));
        frag_tape_drop(tape, straight);
    }
    for (uint32_t i = 0; i < 2; i++) {
        frag_tape_drop(tape, parts[i].turned);
        frag_tape_drop(tape, parts[i].passed);
        frag_tape_set(tape, &qkv[i], made[i]);
    }
}

static bool has_exact_rope(const frag_network *of)
{
    return of->has_exact_parts && !of->has_half_rope;
}

static void turn(frag_tape *tape, const frag_network *of, frag_tensor qkv[3], frag_rope angles)
{
    if (is_rope_partial(of)) {
        apply_partial_rope(tape, of, qkv, angles);
        return;
    }
    frag_tensor turned[2];
    frag_tensor typed[2]; /* as they were, if the angles are in fp32 */
    for (uint32_t i = 0; i < 2; i++)
        turned[i] =
            (of->has_half_rope ? frag_rope_apply_half : frag_rope_apply)(tape, qkv[i], angles);
    for (uint32_t i = 0; i < 2; i++)
        typed[i] = has_exact_rope(of) ? frag_tape_to(tape, turned[i], frag_tape_dtype(tape, qkv[i]))
                                      : frag_tape_keep(tape, turned[i]);
    for (uint32_t i = 0; i < 2; i++) {
        frag_tape_set(tape, &qkv[i], typed[i]);
        frag_tape_drop(tape, turned[i]);
    }
}

/* norm(x.view(heads)).transpose(1, 2) */
static frag_tensor split_normed_heads(frag_tape *tape, const frag_network *of, frag_tensor x,
                                      frag_tensor weight)
{
    frag_tensor shaped = frag_aten_view_copied(tape, x);
    frag_tape_drop(tape, x);
    frag_tape_set(tape, &shaped, normalise(tape, of, shaped, weight, of->head_width));
    frag_tape_set(tape, &shaped, frag_aten_view(tape, shaped));
    return shaped;
}

/* norm(x), or x where there is none: values have none. */
static void normalise_heads(frag_tape *tape, const frag_network *of, frag_tensor weight,
                            frag_tensor *x)
{
    if (weight != 0)
        frag_tape_set(tape, x, normalise(tape, of, *x, weight, frag_tape_count(tape, weight)));
}

typedef struct projection {
    bool is_cached; /* keys and values come out of a cache */
    bool is_masked;
    bool is_turned; /* queries and keys are turned by their positions */
} projection;

/* Queries, keys and values as attention wants them: heads before tokens. What comes back is a name
 * that holds them all, or 0. */
static frag_tensor project(frag_tape *tape, const frag_network *of, const block *at, frag_tensor x,
                           const projection *how, frag_tensor qkv[3])
{
    const uint64_t counts[] = {of->heads, of->key_heads, of->key_heads};
    const frag_linear layers[] = {at->q, at->k, at->v};
    const frag_tensor norms[] = {at->query_norm, at->key_norm, 0};
    frag_tensor fused = of->is_fused ? frag_walk_apply(tape, x, &at->q) : 0;
    uint64_t rows = frag_tape_count(tape, x) / of->width;
    for (uint32_t i = 0; i < 3 && of->is_fused; i++)
        qkv[i] = frag_aten_slice(tape, fused, rows * counts[i] * of->head_width);
    bool is_copied[3];
    for (uint32_t i = 0; i < 3; i++) {
        if (!of->is_fused)
            qkv[i] = frag_walk_apply(tape, x, &layers[i]);
        bool is_flash = !how->is_masked && frag_aten_is_flash(tape, frag_tape_dtype(tape, qkv[i]));
        /* Flash's gradients lie as its inputs do, the memory-efficient kernel's have tokens
         * first. */
        bool is_math = of->is_eager || (!is_flash && of->heads != of->key_heads) ||
                       frag_aten_is_unknown(tape, frag_tape_dtype(tape, qkv[i]));
        is_copied[i] = counts[i] > 1 && ((i < 2 && how->is_turned) || is_math ||
                                         (i > 0 && how->is_cached && is_flash) ||
                                         (is_flash && frag_tape_saves_on_host(tape)));
        if (of->has_whole_norms)
            normalise_heads(tape, of, norms[i], &qkv[i]);
        else if (norms[i] != 0 && !of->has_late_norms)
            qkv[i] = split_normed_heads(tape, of, qkv[i], norms[i]);
        else
            qkv[i] = frag_walk_split_heads(tape, qkv[i], is_copied[i]);
    }
    for (uint32_t i = 0; i < 3; i++) {
        if (of->has_whole_norms)
            qkv[i] = frag_walk_split_heads(tape, qkv[i], is_copied[i]);
        else if (of->has_late_norms) {
            if (norms[i] != 0 && counts[i] > 1 && rows > 1) /* heads lie between tokens */
                frag_tape_set_strided(tape, qkv[i]);
            normalise_heads(tape, of, norms[i], &qkv[i]);
        }
    }
    return fused;
}

/* What a block is called with besides hidden states. */
typedef struct block_call {
    const frag_model *model;
    block at;
    frag_rope angles; /* of 0: queries and keys are not turned */
    bool has_window;
    frag_tensor mask; /* of eager attention, or frag_aten_seen; 0: none */
    frag_batch batch;
    frag_cache *past; /* NULL: none */
} block_call;

/* What is handed out in *weights lasts to the end of the block. */
static frag_tensor mix(frag_tape *tape, const block_call *call, const frag_tensor qkv[3],
                       frag_tensor *weights)
{
    bool is_cached = call->past != NULL;
    const frag_network *of = &call->model->workload->network;
    const frag_batch *batch = &call->batch;
    frag_attention_shape shape = frag_model_attention(call->model, batch);
    shape.keys = frag_network_keys(of, call->has_window, batch);
    shape.is_causal = batch->tokens > 1;
    shape.is_cached = is_cached;
    shape.is_heads_first = is_rope_partial(of) || of->has_half_rope; /* as cat has put them */
    if (!of->is_eager)
        return frag_decoder_attend(tape, qkv, shape, call->mask);
    const frag_eager_attention how = {shape, call->mask, of->score_cap > 0, is_cached,
                                      call->at.sinks};
    return frag_aten_eager_attention(tape, qkv, &how, weights);
}

static frag_tensor attend(frag_tape *tape, const block_call *call, frag_tensor x,
                          frag_tensor *weights)
{
    frag_cache *past = call->past;
    const frag_network *of = &call->model->workload->network;
    frag_tensor qkv[3] = {0};
    const projection how = {past != NULL, call->mask != 0, call->angles.cosine != 0};
    frag_tensor fused = project(tape, of, &call->at, x, &how, qkv);
    if (how.is_turned)
        turn(tape, of, qkv, call->angles);
    if (past != NULL)
        frag_cache_append(tape, of, past, &qkv[1], &qkv[2]);
    frag_tensor made = mix(tape, call, qkv, weights);
    frag_tape_set(tape, &made, frag_aten_view(tape, made));
    frag_tape_set(tape, &made, frag_walk_apply(tape, made, &call->at.o));
    for (uint32_t i = 0; i < 3; i++)
        frag_tape_drop(tape, qkv[i]);
    frag_tape_drop(tape, fused);
    return made;
}

/* down(up * act(gate)), both out of one layer */
static frag_tensor feed_fused(frag_tape *tape, frag_activation activation, const block *at,
                              frag_tensor x)
{
    frag_tensor both = frag_walk_apply(tape, x, &at->gate);
    frag_tensor parts[2];
    frag_aten_split(tape, both, parts, 2);
    for (uint32_t i = 0; i < 2; i++)
        frag_tape_set_strided(tape, parts[i]); /* halves of each row */
    frag_family_will_save(tape, parts[0]);
    frag_tensor active = frag_family_activate(tape, parts[0], activation);
    frag_family_will_save(tape, parts[1]);
    frag_tensor inner = frag_aten_mul(tape, parts[1], active);
    frag_tape_drop(tape, active);
    frag_tape_drop(tape, parts[1]);
    frag_tensor made = frag_walk_apply(tape, inner, &at->down);
    frag_tape_drop(tape, inner);
    frag_tape_drop(tape, parts[0]);
    frag_tape_drop(tape, both);
    return made;
}

/* down(act(gate(x)) * up(x)) */
static frag_tensor feed(frag_tape *tape, const frag_model *model, const block *at, frag_tensor x)
{
    frag_activation activation = (frag_activation)model->workload->network.activation;
    if (model->workload->network.is_fused)
        return feed_fused(tape, activation, at, x);
    frag_tensor gate = frag_walk_apply(tape, x, &at->gate);
    frag_tensor active = frag_family_activate(tape, gate, activation);
    frag_tape_drop(tape, gate);
    frag_tensor up = frag_walk_apply(tape, x, &at->up);
    frag_tensor inner = frag_aten_mul(tape, active, up);
    frag_tape_drop(tape, active);
    frag_tape_drop(tape, up);
    frag_tensor made = frag_walk_apply(tape, inner, &at->down);
    frag_tape_drop(tape, inner);
    return made;
}

/* What goes into a part, or comes out of it, through its norm, if there is one. */
static frag_tensor normalise_part(frag_tape *tape, const frag_network *of, frag_tensor x,
                                  frag_tensor norm)
{
    return norm != 0 ? normalise(tape, of, x, norm, of->width) : frag_tape_keep(tape, x);
}

/* residual + norm(hidden), or residual + hidden * number */
static void add_part(frag_tape *tape, const frag_network *of, frag_tensor residual,
                     frag_tensor norm, frag_tensor *hidden)
{
    frag_tape_set(tape, hidden, normalise_part(tape, of, *hidden, norm));
    frag_tensor scaled =
        of->has_scales ? frag_aten_mul_scalar(tape, *hidden) : frag_tape_keep(tape, *hidden);
    frag_tape_set(tape, hidden, frag_aten_add(tape, residual, scaled));
    frag_tape_drop(tape, scaled);
}

static frag_tensor run_block(frag_tape *tape, const void *context, frag_tensor x)
{
    const block_call *call = context;
    const frag_network *of = &call->model->workload->network;
    const block *at = &call->at;
    frag_tensor weights = 0;
    frag_tensor residual = frag_tape_keep(tape, x);
    frag_tensor hidden = normalise_part(tape, of, x, at->norm);
    frag_tape_set(tape, &hidden, attend(tape, call, hidden, &weights));
    add_part(tape, of, residual, at->post_norm, &hidden);
    frag_tape_set(tape, &residual, frag_tape_keep(tape, hidden));
    frag_tape_set(tape, &hidden, normalise_part(tape, of, hidden, at->norm2));
    frag_tape_set(tape, &hidden,
                  at->has_experts
                      ? frag_experts_apply(tape, call->model, &at->experts, hidden, &call->batch,
                                           of->has_clipped_experts ? &weights : NULL)
                      : feed(tape, call->model, at, hidden));
    add_part(tape, of, residual, at->post_norm2, &hidden);
    frag_tape_drop(tape, residual);
    frag_tape_drop(tape, weights);
    return hidden;
}

/* Masks of layers without a window and with one. Where no cache is used, it is looked for packed
 * sequences before each. Only eager attention needs one where a query sees all before it. */
static void make_masks(frag_tape *tape, const frag_model *model, const frag_batch *batch,
                       const frag_cache *past, frag_dtype dtype, frag_tensor masks[2])
{
    const frag_network *of = &model->workload->network;
    bool has_window = of->window > 0 && of->full_layers < of->layers;
    for (uint32_t i = 0; i < 2; i++) {
        if (i == 0 ? has_window && !frag_families[of->family].has_two_masks : !has_window)
            continue;
        if (frag_model_finds_packed(model, past))
            frag_family_find_packed(tape, batch);
        if (of->is_eager) {
            const frag_attention_shape shape = {.batch = batch->count,
                                                .queries = batch->tokens,
                                                .keys = frag_network_keys(of, i == 1, batch)};
            masks[i] = frag_aten_causal_mask(tape, &shape, i == 1, dtype);
        } else if (i == 1)
            masks[i] = frag_decoder_see_window(tape, of, batch);
    }
}

static frag_tensor run_blocks(frag_tape *tape, const frag_model *model, const frag_batch *batch,
                              frag_cache *past)
{
    const frag_network *of = &model->workload->network;
    frag_walk at = {.tape = tape, .workload = model->workload, .at = model->parameters};
    const frag_stage *stage = &model->stage;
    frag_tensor hidden = stage->is_first ? embed(tape, model, walk_words(&at, of), batch)
                                         : frag_tape_keep(tape, batch->hidden);
    if (stage->is_first)
        frag_model_require_inputs(tape, model, hidden);
    frag_tensor embedded = frag_tape_keep(tape, hidden);
    frag_tensor positions = frag_model_positions(tape, model, batch->tokens);
    frag_tensor masks[2] = {0, 0};
    make_masks(tape, model, batch, past, frag_tape_dtype(tape, hidden), masks);
    frag_dtype angle_type = has_exact_rope(of) ? FRAG_F32 : frag_tape_dtype(tape, hidden);
    frag_rope ropes[2] = {(of->has_half_rope ? frag_rope_make_half : frag_rope_make)(
        tape, rotary_width(of), batch->tokens, angle_type)};
    if (has_two_ropes(of))
        ropes[1] = frag_rope_make(tape, rotary_width(of), batch->tokens, angle_type);
    for (uint64_t i = stage->first; i < stage->end; i++) {
        bool has_window = frag_network_has_window(of, i);
        bool is_turned = of->unturned_every == 0 || (i + 1) % of->unturned_every != 0;
        const frag_rope *angles = &ropes[has_window && has_two_ropes(of)];
        const block_call call = {
            model,      walk_block(&at, of, i), is_turned ? *angles : (frag_rope){0},
            has_window, masks[has_window],      *batch,
            past};
        const frag_tensor kept[] = {positions, angles->cosine, angles->sine, call.mask};
        const frag_region_call next = {run_block, &call, sizeof call, kept, 4};
        const frag_block_place place = {i, 2 * (uint32_t)has_window + (uint32_t)is_turned};
        frag_cache_pass_block(tape, model, past, place, &next, &hidden);
    }
    if (stage->is_last)
        frag_tape_set(tape, &hidden,
                      normalise(tape, of, hidden,
                                frag_walk_parameter(&at, (frag_shape){0, of->width}), of->width));
    frag_tape_drop(tape, positions);
    frag_tape_drop(tape, embedded);
    for (uint32_t i = 0; i < 2; i++) {
        frag_tape_drop(tape, ropes[i].cosine);
        frag_tape_drop(tape, ropes[i].sine);
        frag_tape_drop(tape, masks[i]);
    }
    return hidden;
}

const frag_family frag_family_llama = {build, frag_family_load_tokens, NULL, run_blocks};
