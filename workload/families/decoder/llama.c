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
    frag_experts experts; /* gate, up and down: those of the shared one */
    frag_linear shared_gate;
    frag_latent latent; /* of a key_rank: in the place of q, k, v and o */
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
    bool has_out_bias = of->has_attention_bias && !of->is_feed_fused;
    if (of->key_rank > 0) {
        next->latent = frag_walk_latent(at, of);
        return;
    }
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
    next->o = frag_walk_linear(at, (frag_shape){of->width, queries}, has_out_bias, FRAG_LORA_O);
    next->sinks = sinks != 0 ? sinks : walk_sinks(at, of, true);
    if (of->has_head_norms || of->has_whole_norms) {
        bool is_wide = of->has_whole_norms || of->has_centred_norms; /* a weight for each head */
        next->query_norm =
            frag_walk_parameter(at, (frag_shape){0, is_wide ? queries : of->head_width});
        next->key_norm = frag_walk_parameter(at, (frag_shape){0, is_wide ? keys : of->head_width});
    }
}

static void walk_feed(frag_walk *at, const frag_network *of, uint64_t layer, block *next)
{
    uint64_t inner = next->has_experts ? of->shared_inner : of->inner;
    if (next->has_experts) {
        uint64_t place = (layer + 1) / of->expert_every - 1 - of->dense_layers;
        next->experts = frag_walk_experts(at, of, place);
        if (inner == 0)
            return;
    }
    if (of->is_fused || of->is_feed_fused) {
        next->gate = frag_walk_linear(at, (frag_shape){2 * inner, of->width}, of->has_inner_bias,
                                      FRAG_LORA_GATE_UP);
    } else {
        const frag_shape shape = {inner, of->width};
        next->gate = frag_walk_linear(at, shape, of->has_inner_bias, FRAG_LORA_GATE);
        next->up = frag_walk_linear(at, shape, of->has_inner_bias, FRAG_LORA_UP);
    }
    next->down =
        frag_walk_linear(at, (frag_shape){of->width, inner}, of->has_inner_bias, FRAG_LORA_DOWN);
    if (next->has_experts && of->has_shared_gate) {
        next->shared_gate = frag_walk_linear(at, (frag_shape){1, of->width}, false, 0);
        next->shared_gate.is_flat = true;
        next->gate.is_flat = next->up.is_flat = next->down.is_flat = true;
    }
}

static block walk_block(frag_walk *at, const frag_network *of, uint64_t layer)
{
    block next = {.has_experts = frag_network_has_experts(of, layer)};
    walk_attention(at, of, &next);
    walk_feed(at, of, layer, &next);
    const frag_shape width = {0, of->width};
    bool has_second = of->has_pre_norms && !of->is_parallel;
    next.norm = of->has_pre_norms ? frag_walk_parameter(at, width) : 0;
    if (of->family == FRAG_FAMILY_GLM4)
        next.norm2 = has_second ? frag_walk_parameter(at, width) : 0;
    next.post_norm = of->has_post_norms ? frag_walk_parameter(at, width) : 0;
    if (of->family != FRAG_FAMILY_GLM4)
        next.norm2 = has_second ? frag_walk_parameter(at, width) : 0;
    next.post_norm2 = of->has_post_norms ? frag_walk_parameter(at, width) : 0;
    return next;
}

/* nn.Embedding, and the number that it is multiplied by. */
static frag_tensor walk_words(frag_walk *at, const frag_network *of)
{
    frag_tensor words = frag_walk_parameter(at, (frag_shape){of->vocabulary, of->width});
    if (of->has_embedding_scale && at->model != NULL)
        frag_walk_buffer(at, 1, frag_model_loaded_type(at->model));
    return words;
}

/* words(ids) * scale.to(the type of the words); the scale is in the type of loading. */
static frag_tensor embed(frag_tape *tape, const frag_model *model, frag_tensor words,
                         const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    bool is_inside = of->has_embedding_scale; /* the module multiplies */
    frag_tape_fetch(tape, &words, is_inside);
    frag_tensor made = frag_aten_embedding(tape, words, batch->ids, of->width);
    if (of->has_scales)
        frag_tape_set(tape, &made, frag_aten_mul_scalar(tape, made));
    if (!is_inside)
        return made;
    bool is_typed = frag_model_loaded_type(model) == frag_tape_dtype(tape, words);
    frag_tensor scale = is_typed ? 0 : frag_tape_empty(tape, 1, frag_tape_dtype(tape, words));
    frag_tensor buffer = model->scale != 0 ? model->scale : model->buffers[0];
    frag_tape_set(tape, &made, frag_aten_mul(tape, made, scale != 0 ? scale : buffer));
    frag_tape_drop(tape, scale);
    frag_tape_send_back(tape, &words, 1);
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

static void build(frag_walk *at, const frag_network *of)
{
    const frag_stage *stage = &at->model->stage;
    if (stage->is_first)
        (void)walk_words(at, of);
    for (uint64_t i = stage->first; i < stage->end; i++) {
        frag_model_mark_block(at->model);
        (void)walk_block(at, of, i);
    }
    frag_model_mark_block(at->model);
    if (stage->is_last)
        (void)frag_walk_parameter(at, (frag_shape){0, of->width});
    /* Two buffers of each rotary embedding, always fp32. */
    for (uint32_t i = 0; i < (has_two_ropes(of) ? 4 : 2); i++)
        frag_walk_buffer(at, rotary_width(of) / 2, FRAG_F32);
    frag_decoder_walk_head(at, of);
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

/* GLM's: both numbers of a pair by one angle, which each layer puts side by side. */
static void turn_pairs(frag_tape *tape, const frag_network *of, frag_tensor qkv[3],
                       frag_rope angles)
{
    frag_rope pairs = frag_rope_pair(tape, angles);
    frag_rope_turn_parts(tape, of, qkv, pairs);
    frag_tape_drop(tape, pairs.cosine);
    frag_tape_drop(tape, pairs.sine);
}

/* Cohere's: queries and keys in fp32, both until both are turned. */
static void turn_wide(frag_tape *tape, frag_tensor qkv[3], frag_rope angles)
{
    frag_tensor wide[2], turned[2], typed[2];
    for (uint32_t i = 0; i < 2; i++)
        wide[i] = frag_tape_to(tape, qkv[i], FRAG_F32);
    for (uint32_t i = 0; i < 2; i++)
        turned[i] = frag_rope_apply(tape, wide[i], angles);
    for (uint32_t i = 0; i < 2; i++)
        typed[i] = frag_tape_to(tape, turned[i], frag_tape_dtype(tape, qkv[i]));
    for (uint32_t i = 0; i < 2; i++) {
        frag_tape_drop(tape, wide[i]);
        frag_tape_drop(tape, turned[i]);
        frag_tape_set(tape, &qkv[i], typed[i]);
    }
}

static void turn(frag_tape *tape, const frag_network *of, frag_tensor qkv[3], frag_rope angles)
{
    if (of->has_paired_rope) {
        if (of->has_centred_norms)
            turn_wide(tape, qkv, angles);
        else
            turn_pairs(tape, of, qkv, angles);
        return;
    }
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
    frag_tape_set(tape, &shaped, frag_network_normalise(tape, of, shaped, weight, of->head_width));
    frag_tape_set(tape, &shaped, frag_aten_view(tape, shaped));
    return shaped;
}

/* norm(x), or x where there is none: values have none. */
static void normalise_heads(frag_tape *tape, const frag_network *of, frag_tensor weight,
                            frag_tensor *x)
{
    if (weight != 0)
        frag_tape_set(tape, x,
                      frag_network_normalise(tape, of, *x, weight,
                                             of->has_whole_norms ? frag_tape_count(tape, weight)
                                                                 : of->head_width));
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
        bool is_math = (!is_flash && of->heads != of->key_heads) ||
                       frag_aten_is_unknown(tape, frag_tape_dtype(tape, qkv[i]));
        is_copied[i] = counts[i] > 1 && ((i < 2 && how->is_turned) || is_math ||
                                         (i > 0 && how->is_cached && is_flash) ||
                                         (is_flash && frag_tape_saves_on_host(tape)));
        if (of->has_whole_norms)
            normalise_heads(tape, of, norms[i], &qkv[i]);
        else if (norms[i] != 0 && !of->has_late_norms && !of->has_centred_norms)
            qkv[i] = split_normed_heads(tape, of, qkv[i], norms[i]);
        else
            qkv[i] = frag_walk_split_heads(tape, qkv[i], is_copied[i]);
    }
    for (uint32_t i = 0; i < 2 && of->has_centred_norms; i++)
        normalise_heads(tape, of, norms[i], &qkv[i]);
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
    shape.is_heads_first = shape.is_value_apart =
        is_rope_partial(of) || of->has_half_rope; /* as cat has put them */
    const frag_eager_attention how = {.shape = shape,
                                      .mask = call->mask,
                                      .has_cap = of->score_cap > 0,
                                      .is_cached = is_cached,
                                      .sinks = call->at.sinks};
    return frag_decoder_attend(tape, of, qkv, &how, weights);
}

static frag_tensor attend(frag_tape *tape, const block_call *call, frag_tensor x,
                          frag_tensor *weights)
{
    frag_cache *past = call->past;
    const frag_network *of = &call->model->workload->network;
    if (of->key_rank > 0)
        return frag_latent_attend(tape, call->model, &call->at.latent, x, call->angles,
                                  &call->batch, past);
    frag_tensor qkv[3] = {0};
    const projection how = {past != NULL, call->mask != 0, call->angles.cosine != 0};
    frag_tensor fused = project(tape, of, &call->at, x, &how, qkv);
    if (how.is_turned)
        turn(tape, of, qkv, call->angles);
    frag_cache_append(tape, of, past, &qkv[1], &qkv[2]);
    frag_tensor made = mix(tape, call, qkv, weights);
    frag_tape_set(tape, &made, frag_aten_view(tape, made));
    frag_tape_set(tape, &made, frag_walk_apply(tape, made, &call->at.o));
    frag_tape_drop_all(tape, qkv, 3);
    frag_tape_drop(tape, fused);
    return made;
}

/* down(up * act(gate)), both out of one layer */
static frag_tensor feed_fused(frag_tape *tape, frag_activation activation, const block *at,
                              frag_tensor x)
{
    frag_tensor both = frag_walk_apply(tape, x, &at->gate);
    frag_tensor parts[2];
    frag_family_halve(tape, both, parts);
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
    if (model->workload->network.is_fused || model->workload->network.is_feed_fused)
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

/* experts(x) + sigmoid(gate(x)) * shared(x), or experts(x) + shared(x) */
static frag_tensor feed_experts(frag_tape *tape, const block_call *call, frag_tensor x,
                                frag_tensor *weights)
{
    const block *at = &call->at;
    const frag_model *model = call->model;
    const frag_network *of = &model->workload->network;
    frag_routing kept;
    frag_tensor rows = of->has_shared_gate ? frag_aten_view(tape, x) : frag_tape_keep(tape, x);
    frag_tensor shared = of->has_shared_gate ? feed(tape, model, at, rows) : 0;
    frag_tensor made = frag_experts_apply(tape, model, &at->experts, rows, &call->batch, &kept);
    if (of->has_clipped_experts) /* handed out */
        frag_tape_set(tape, weights, frag_tape_keep(tape, kept.weights));
    if (of->has_shared_gate) {
        frag_tensor share = frag_walk_apply(tape, rows, &at->shared_gate);
        frag_tape_set(tape, &share, frag_aten_sigmoid(tape, share));
        frag_tape_set_column(tape, share);
        frag_tape_set(tape, &shared, frag_aten_mul(tape, share, shared));
        frag_tape_drop(tape, share);
    } else if (of->shared_inner > 0) {
        shared = feed(tape, model, at, x);
    }
    if (shared != 0)
        frag_tape_set(tape, &made, frag_aten_add(tape, made, shared));
    if (of->has_shared_gate)
        frag_tape_set(tape, &made, frag_aten_view(tape, made));
    frag_tape_drop(tape, rows);
    frag_tape_drop(tape, shared);
    frag_routing_drop(tape, &kept);
    return made;
}

/* What goes into a part, or comes out of it, through its norm, if there is one. */
static frag_tensor normalise_part(frag_tape *tape, const frag_network *of, frag_tensor x,
                                  frag_tensor norm)
{
    return norm != 0 ? frag_network_normalise(tape, of, x, norm, of->width)
                     : frag_tape_keep(tape, x);
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

/* x + attention(norm(x)) + feed(norm(x)) */
static frag_tensor run_parallel(frag_tape *tape, const block_call *call, frag_tensor x)
{
    const frag_network *of = &call->model->workload->network;
    frag_tensor weights = 0;
    frag_tensor normed = normalise_part(tape, of, x, call->at.norm);
    frag_tensor attended = attend(tape, call, normed, &weights);
    frag_tensor fed = feed(tape, call->model, &call->at, normed);
    frag_tensor made = frag_aten_add(tape, x, attended);
    frag_tape_set(tape, &made, frag_aten_add(tape, made, fed));
    const frag_tensor names[] = {normed, attended, fed, weights};
    frag_tape_drop_all(tape, names, sizeof names / sizeof *names);
    return made;
}

static frag_tensor run_block(frag_tape *tape, const void *context, frag_tensor x)
{
    const block_call *call = context;
    const frag_network *of = &call->model->workload->network;
    const block *at = &call->at;
    if (of->is_parallel)
        return run_parallel(tape, call, x);
    frag_tensor weights = 0;
    frag_tensor residual = frag_tape_keep(tape, x);
    frag_tensor hidden = normalise_part(tape, of, x, at->norm);
    frag_tape_set(tape, &hidden, attend(tape, call, hidden, &weights));
    add_part(tape, of, residual, at->post_norm, &hidden);
    frag_tape_set(tape, &residual, frag_tape_keep(tape, hidden));
    frag_tape_set(tape, &hidden, normalise_part(tape, of, hidden, at->norm2));
    frag_tape_set(tape, &hidden,
                  at->has_experts ? feed_experts(tape, call, hidden, &weights)
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
    /* Of a window of 0 tokens, which no layer looks at. */
    bool is_idle = of->family == FRAG_FAMILY_QWEN2_MOE;
    has_window = has_window || is_idle;
    for (uint32_t i = 0; i < 2; i++) {
        if (i == 0 ? has_window && !frag_families[of->family].has_two_masks : !has_window)
            continue;
        frag_model_find_packed(tape, model, batch, past);
        const frag_attention_shape shape = {.batch = batch->count,
                                            .queries = batch->tokens,
                                            .keys =
                                                frag_network_keys(of, i == 1 && !is_idle, batch)};
        if (of->is_eager) {
            masks[i] = frag_aten_causal_mask(tape, &shape, i == 1, dtype);
        } else if (i == 1 && is_idle) {
            masks[i] = frag_aten_seen(tape, &shape, true);
        } else if (i == 1) {
            masks[i] = frag_decoder_see_window(tape, of, batch);
        }
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
    frag_rope ropes[2] = {of->has_complex_rope
                              ? frag_rope_make_complex(tape, rotary_width(of), batch->tokens)
                              : (of->has_half_rope ? frag_rope_make_half : frag_rope_make)(
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
                      frag_network_normalise(tape, of, hidden,
                                             frag_walk_parameter(&at, (frag_shape){0, of->width}),
                                             of->width));
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
