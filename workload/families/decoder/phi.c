/* Phi, StarCoder2, StableLM, GPT-J and Nemotron as transformers 5 has them
 * (models/phi/modeling_phi.py and its like): decoders with LayerNorm and rotary positions, with
 * attention by scaled_dot_product_attention. */
#include "workload/families/family.h"

typedef struct block {
    frag_linear q, k, v, out;
    frag_linear gate; /* of a gated feed-forward part */
    frag_linear feed, back;
    frag_pair first, second; /* second: of no parallel one */
} block;

static bool is_gptj(const frag_network *of)
{
    return of->family == FRAG_FAMILY_GPTJ;
}

static bool is_nemotron(const frag_network *of)
{
    return of->family == FRAG_FAMILY_NEMOTRON;
}

/* Keys come first. */
static block walk_gptj(frag_walk *at, const frag_network *of)
{
    const frag_shape square = {of->width, of->width};
    block next = {.first = frag_walk_norm(at, of->width)};
    next.k = frag_walk_linear(at, square, false, FRAG_LORA_K);
    next.v = frag_walk_linear(at, square, false, FRAG_LORA_V);
    next.q = frag_walk_linear(at, square, false, FRAG_LORA_Q);
    next.out = frag_walk_linear(at, square, false, FRAG_LORA_OUT_PROJ);
    next.feed = frag_walk_linear(at, (frag_shape){of->inner, of->width}, true, FRAG_LORA_FC_IN);
    next.back = frag_walk_linear(at, (frag_shape){of->width, of->inner}, true, FRAG_LORA_FC_OUT);
    return next;
}

static void walk_feed(frag_walk *at, const frag_network *of, block *next)
{
    const frag_shape in = {of->inner, of->width};
    bool has_bias = is_nemotron(of) ? of->has_inner_bias : of->has_attention_bias;
    frag_lora_target feed = FRAG_LORA_UP;
    frag_lora_target back = FRAG_LORA_DOWN;
    if (of->is_gated) {
        next->gate = frag_walk_linear(at, in, has_bias, FRAG_LORA_GATE);
    } else if (!is_nemotron(of)) {
        bool is_phi = of->family == FRAG_FAMILY_PHI;
        feed = is_phi ? FRAG_LORA_FC1 : FRAG_LORA_C_FC;
        back = is_phi ? FRAG_LORA_FC2 : FRAG_LORA_C_PROJ;
    }
    next->feed = frag_walk_linear(at, in, has_bias, feed);
    next->back = frag_walk_linear(at, (frag_shape){of->width, of->inner}, has_bias, back);
}

static block walk_block(frag_walk *at, const frag_network *of)
{
    if (is_gptj(of))
        return walk_gptj(at, of);
    const frag_shape queries = {of->heads * of->head_width, of->width};
    const frag_shape keys = {of->key_heads * of->head_width, of->width};
    bool has_bias = of->has_attention_bias || of->has_query_bias;
    block next = {.q = frag_walk_linear(at, queries, has_bias, FRAG_LORA_Q)};
    next.k = frag_walk_linear(at, keys, has_bias, FRAG_LORA_K);
    next.v = frag_walk_linear(at, keys, has_bias, FRAG_LORA_V);
    next.out = frag_walk_linear(at, (frag_shape){of->width, queries.rows}, of->has_attention_bias,
                                of->family == FRAG_FAMILY_PHI ? FRAG_LORA_DENSE : FRAG_LORA_O);
    walk_feed(at, of, &next);
    next.first = frag_walk_norm(at, of->width);
    if (!of->is_parallel)
        next.second = frag_walk_norm(at, of->width);
    return next;
}

static void build(frag_walk *at, const frag_network *of)
{
    (void)frag_walk_parameter(at, (frag_shape){of->vocabulary, of->width});
    for (uint64_t i = 0; i < of->layers; i++) {
        frag_model_mark_block(at->model);
        (void)walk_block(at, of);
    }
    frag_model_mark_block(at->model);
    bool is_rope_first = of->family == FRAG_FAMILY_PHI;
    if (!is_rope_first)
        (void)frag_walk_norm(at, of->width);
    /* Two buffers of the rotary embedding, always fp32; or one table of all angles. */
    for (uint32_t i = 0; i < 2 && !is_gptj(of); i++)
        frag_walk_buffer(at, frag_rope_width(of) / 2, FRAG_F32);
    if (is_gptj(of))
        frag_walk_buffer(at, of->positions * of->turned_width, FRAG_F32);
    if (is_rope_first)
        (void)frag_walk_norm(at, of->width);
    frag_decoder_walk_head(at, of);
}

typedef struct block_call {
    const frag_model *model;
    block at;
    frag_rope angles;
    frag_tensor mask; /* of sequences as long as the window; 0: none */
    frag_batch batch;
    frag_cache *past; /* NULL: none */
} block_call;

/* The first part of each head is turned, and the rest put behind it; the parts of queries and keys
 * have names to the end of attention. Where all is turned there are none. */
static void turn(frag_tape *tape, const frag_network *of, frag_tensor qkv[3], frag_rope angles,
                 frag_rope_parts parts[2])
{
    bool is_whole = of->rotary_share == 1;
    for (uint32_t i = 0; i < 2 && !is_whole; i++)
        parts[i] = frag_rope_split(tape, qkv[i], of->head_width, frag_rope_width(of));
    frag_tensor straight[2];
    for (uint32_t i = 0; i < 2; i++)
        straight[i] = frag_rope_apply(tape, is_whole ? qkv[i] : parts[i].turned, angles);
    for (uint32_t i = 0; i < 2; i++)
        frag_tape_set(tape, is_whole ? &qkv[i] : &parts[i].turned, straight[i]);
    for (uint32_t i = 0; i < 2 && !is_whole; i++)
        frag_tape_set(tape, &qkv[i],
                      frag_aten_cat(tape, parts[i].turned, parts[i].passed,
                                    frag_tape_dtype(tape, parts[i].turned)));
}

/* As above, with names for the parts and what is made of them until both are done. */
static void turn_named(frag_tape *tape, const frag_network *of, frag_tensor qkv[3],
                       frag_rope angles)
{
    frag_rope_parts parts[2];
    for (uint32_t i = 0; i < 2; i++)
        parts[i] = frag_rope_split(tape, qkv[i], of->head_width, frag_rope_width(of));
    frag_tensor straight[2], made[2];
    for (uint32_t i = 0; i < 2; i++)
        straight[i] = frag_rope_apply(tape, parts[i].turned, angles);
    for (uint32_t i = 0; i < 2; i++)
        made[i] = frag_aten_cat(
            tape, straight[i], parts[i].passed,
            frag_aten_wider(frag_tape_dtype(tape, straight[i]), frag_tape_dtype(tape, qkv[i])));
    for (uint32_t i = 0; i < 2; i++) {
        frag_tape_drop(tape, parts[i].turned);
        frag_tape_drop(tape, parts[i].passed);
        frag_tape_drop(tape, straight[i]);
        frag_tape_set(tape, &qkv[i], made[i]);
    }
}

/* Of each head's first part, keys before queries; each makes the angles of pairs anew, sines first.
 * Tokens lie before heads; the parts have names to the end of attention. */
static void turn_pairs(frag_tape *tape, const frag_network *of, frag_tensor qkv[3],
                       frag_rope angles, frag_rope_parts parts[2])
{
    for (uint32_t i = 2; i > 0; i--)
        parts[i - 1] = frag_rope_split(tape, qkv[i - 1], of->head_width, of->turned_width);
    for (uint32_t i = 2; i > 0; i--) {
        frag_tensor *name = &parts[i - 1].turned;
        frag_rope pairs = {.sine = frag_tape_empty(tape, 2 * frag_tape_count(tape, angles.sine),
                                                   frag_tape_dtype(tape, angles.sine))};
        pairs.cosine = frag_tape_empty(tape, 2 * frag_tape_count(tape, angles.cosine),
                                       frag_tape_dtype(tape, angles.cosine));
        frag_tensor made = frag_rope_apply(tape, *name, pairs);
        frag_tape_drop(tape, pairs.sine);
        frag_tape_drop(tape, pairs.cosine);
        frag_tape_set(tape, name, made);
    }
    for (uint32_t i = 2; i > 0; i--)
        frag_tape_set(tape, &qkv[i - 1],
                      frag_aten_cat(tape, parts[i - 1].turned, parts[i - 1].passed,
                                    frag_aten_wider(frag_tape_dtype(tape, parts[i - 1].turned),
                                                    frag_tape_dtype(tape, parts[i - 1].passed))));
    for (uint32_t i = 0; i < 2; i++)
        frag_tape_set(tape, &qkv[i], frag_aten_view(tape, qkv[i]));
}

/* Heads before tokens; which: 0 queries, 1 keys, 2 values. x is used up. */
static frag_tensor split_heads(frag_tape *tape, const block_call *call, uint32_t which,
                               frag_tensor x)
{
    const frag_network *of = &call->model->workload->network;
    frag_dtype dtype = frag_tape_dtype(tape, x);
    bool is_flash = call->mask == 0 && frag_aten_is_flash(tape, dtype);
    bool is_math = (!is_flash && of->heads != of->key_heads) || frag_aten_is_unknown(tape, dtype);
    bool is_turned = which < 2;
    if (is_turned && is_gptj(of)) {
        frag_tape_set(tape, &x, frag_aten_view(tape, x));
        return x;
    }
    bool is_copied = is_turned || is_math || (call->past != NULL && is_flash);
    uint64_t heads = which == 0 ? of->heads : of->key_heads;
    return frag_walk_split_heads(tape, x, heads > 1 && is_copied);
}

/* Queries, keys and values. StableLM splits them when all three are there. */
static void project(frag_tape *tape, const block_call *call, frag_tensor x, frag_tensor qkv[3])
{
    const frag_linear *layers[] = {&call->at.q, &call->at.k, &call->at.v};
    bool is_split_last = call->model->workload->network.family == FRAG_FAMILY_STABLELM;
    for (uint32_t i = 0; i < 3; i++) {
        qkv[i] = frag_walk_apply(tape, x, layers[i]);
        if (!is_split_last)
            qkv[i] = split_heads(tape, call, i, qkv[i]);
    }
    for (uint32_t i = 0; i < 3 && is_split_last; i++)
        qkv[i] = split_heads(tape, call, i, qkv[i]);
}

/* What is handed out in *weights lasts to the end of the block. */
static frag_tensor attend(frag_tape *tape, const block_call *call, frag_tensor x,
                          frag_tensor *weights)
{
    const frag_network *of = &call->model->workload->network;
    bool is_cached = call->past != NULL;
    frag_attention_shape shape = frag_model_attention(call->model, &call->batch);
    shape.is_causal = call->batch.tokens > 1;
    shape.is_cached = is_cached;
    shape.is_heads_first = shape.is_value_apart = /* as cat has put them */
        is_nemotron(of) || (!is_gptj(of) && of->rotary_share < 1);
    shape.keys = frag_network_keys(of, of->window > 0, &call->batch);
    frag_tensor qkv[3] = {0};
    project(tape, call, x, qkv);
    frag_rope_parts parts[2] = {{0}, {0}};
    if (is_gptj(of))
        turn_pairs(tape, of, qkv, call->angles, parts);
    else if (is_nemotron(of))
        turn_named(tape, of, qkv, call->angles);
    else
        turn(tape, of, qkv, call->angles, parts);
    frag_cache_append(tape, of, call->past, &qkv[1], &qkv[2]);
    const frag_eager_attention how = {
        .shape = shape, .mask = call->mask, .is_cached = shape.is_cached};
    frag_tensor made = frag_decoder_attend(tape, of, qkv, &how, weights);
    frag_tape_set(tape, &made, frag_aten_view(tape, made));
    frag_tape_set(tape, &made, frag_walk_apply(tape, made, &call->at.out));
    if (of->family == FRAG_FAMILY_STARCODER2 || is_gptj(of))
        frag_tape_set(tape, &made, frag_model_drop_residual(tape, call->model, made));
    frag_tape_drop_all(tape, qkv, 3);
    for (uint32_t i = 0; i < 2; i++) {
        frag_tape_drop(tape, parts[i].turned);
        frag_tape_drop(tape, parts[i].passed);
    }
    return made;
}

/* LayerNorm; of Nemotron with 1 + weight, in the type of autocast, which makes a copy of each. */
static frag_tensor normalise(frag_tape *tape, const frag_network *of, frag_tensor x,
                             const frag_pair *at)
{
    if (!is_nemotron(of))
        return frag_aten_layer_norm(tape, x, at, of->width);
    frag_tape_fetch(tape, (frag_tensor[]){at->weight, at->bias}, 2);
    frag_dtype autocast = frag_tape_autocast(tape);
    bool is_cast = autocast != FRAG_F32;
    frag_tensor weight = frag_aten_add_scalar(tape, at->weight);
    frag_tensor typed = is_cast ? frag_tape_to(tape, x, autocast) : frag_tape_keep(tape, x);
    frag_pair pair = {.weight = is_cast ? frag_tape_to(tape, weight, autocast)
                                        : frag_tape_keep(tape, weight)};
    pair.bias = is_cast ? frag_tape_to(tape, at->bias, autocast) : frag_tape_keep(tape, at->bias);
    frag_tape_drop(tape, weight);
    frag_tensor made = frag_aten_layer_norm_typed(tape, typed, &pair, of->width);
    frag_tape_drop(tape, typed);
    frag_tape_drop(tape, pair.weight);
    frag_tape_drop(tape, pair.bias);
    frag_tape_send_back(tape, (frag_tensor[]){at->weight, at->bias}, 2);
    return made;
}

/* back(act(feed(x))), or back(act(gate(x)) * feed(x)), and dropout */
static frag_tensor feed(frag_tape *tape, const frag_model *model, const block *at, frag_tensor x)
{
    const frag_network *of = &model->workload->network;
    frag_tensor first = frag_walk_apply(tape, x, of->is_gated ? &at->gate : &at->feed);
    frag_tensor made = frag_family_activate(tape, first, (frag_activation)of->activation);
    frag_tape_drop(tape, first);
    if (of->is_gated) {
        frag_tensor up = frag_walk_apply(tape, x, &at->feed);
        frag_tape_set(tape, &made, frag_aten_mul(tape, made, up));
        frag_tape_drop(tape, up);
    }
    frag_tape_set(tape, &made, frag_walk_apply(tape, made, &at->back));
    frag_tape_set(tape, &made, frag_model_drop_residual(tape, model, made));
    return made;
}

/* attention(norm(x)) + feed(norm(x)) + x, or the order of StableLM. */
static frag_tensor add_both(frag_tape *tape, const frag_network *of, const frag_tensor parts[2],
                            frag_tensor x)
{
    bool is_input_first = of->family == FRAG_FAMILY_STABLELM;
    frag_tensor made =
        frag_aten_add(tape, is_input_first ? x : parts[0], parts[is_input_first ? 0 : 1]);
    frag_tape_set(tape, &made, frag_aten_add(tape, made, is_input_first ? parts[1] : x));
    return made;
}

static frag_tensor run_block(frag_tape *tape, const void *context, frag_tensor x)
{
    const block_call *call = context;
    const frag_model *model = call->model;
    const block *at = &call->at;
    const frag_network *of = &model->workload->network;
    frag_tensor normed = normalise(tape, of, x, &at->first);
    frag_tensor weights = 0;
    frag_tensor attended = attend(tape, call, normed, &weights);
    if (of->family == FRAG_FAMILY_PHI)
        frag_tape_set(tape, &attended, frag_model_drop_residual(tape, model, attended));
    bool is_kept = of->family == FRAG_FAMILY_STABLELM; /* both have names to the end */
    frag_tensor made = 0;
    if (of->is_parallel) {
        const frag_tensor parts[2] = {attended, feed(tape, model, at, normed)};
        made = add_both(tape, of, parts, x);
        frag_tape_drop(tape, parts[1]);
    } else {
        if (!is_kept)
            frag_tape_clear(tape, &normed);
        frag_tensor residual = frag_aten_add(tape, x, attended);
        if (!is_kept)
            frag_tape_clear(tape, &attended);
        frag_tensor normed2 = normalise(tape, of, residual, &at->second);
        frag_tensor fed = feed(tape, model, at, normed2);
        frag_tape_drop(tape, normed2);
        made = frag_aten_add(tape, residual, fed);
        frag_tape_drop(tape, fed);
        frag_tape_drop(tape, residual);
    }
    frag_tape_drop(tape, normed);
    frag_tape_drop(tape, attended);
    frag_tape_drop(tape, weights);
    return made;
}

/* Of a row of the table for each token, the first half and the second. */
static frag_rope read_angles(frag_tape *tape, const frag_network *of, uint64_t tokens,
                             frag_dtype dtype)
{
    uint64_t count = tokens * of->turned_width;
    frag_tensor rows = frag_tape_empty(tape, count, FRAG_F32);
    frag_tape_set(tape, &rows, frag_tape_to(tape, rows, dtype));
    frag_rope made = {.sine = frag_tape_view(tape, rows, count / 2)};
    made.cosine = frag_tape_view(tape, rows, count / 2);
    frag_tape_drop(tape, rows);
    return made;
}

static frag_tensor run_blocks(frag_tape *tape, const frag_model *model, const frag_batch *batch,
                              frag_cache *past)
{
    const frag_network *of = &model->workload->network;
    frag_walk at = {.tape = tape, .workload = model->workload, .at = model->parameters};
    frag_tensor words = frag_walk_parameter(&at, (frag_shape){of->vocabulary, of->width});
    frag_tensor embedded = frag_aten_embedding(tape, words, batch->ids, of->width);
    frag_model_require_inputs(tape, model, embedded);
    frag_tensor positions = frag_family_positions(tape, batch->tokens);
    frag_model_find_packed(tape, model, batch, past);
    frag_tensor mask =
        of->is_eager ? frag_decoder_see_before(tape, model, batch, frag_tape_dtype(tape, embedded))
        : of->window > 0 ? frag_decoder_see_window(tape, of, batch)
                         : 0;
    frag_tensor hidden = frag_model_drop_out(tape, model, embedded, of->embedding_dropout);
    frag_dtype dtype = frag_tape_dtype(tape, hidden);
    frag_rope angles = is_gptj(of)
                           ? read_angles(tape, of, batch->tokens, dtype)
                           : frag_rope_make(tape, frag_rope_width(of), batch->tokens, dtype);
    const frag_tensor kept[] = {positions, angles.cosine, angles.sine, mask};
    for (uint64_t i = 0; i < of->layers; i++) {
        const block_call call = {model, walk_block(&at, of), angles, mask, *batch, past};
        const frag_region_call next = {run_block, &call, sizeof call, kept, 4};
        frag_model_pass_block(tape, model, i, &next, &hidden);
    }
    const frag_pair last = frag_walk_norm(&at, of->width);
    frag_tape_set(tape, &hidden, normalise(tape, of, hidden, &last));
    frag_tape_drop(tape, positions);
    frag_tape_drop(tape, embedded);
    frag_tape_drop(tape, angles.cosine);
    frag_tape_drop(tape, angles.sine);
    frag_tape_drop(tape, mask);
    return hidden;
}

const frag_family frag_family_phi = {build, frag_family_load_tokens, NULL, run_blocks};
