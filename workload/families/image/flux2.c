/* The transformer of FLUX.2, as diffusers 0.42 has it (models/transformers/transformer_flux2.py):
 * as FLUX.1, but for shifts, scales and gates that all blocks of a kind share, gated feed-forward
 * parts, and blocks of one stream whose first and last products are joined. No layer has a bias. */
#include "base/memory.h"
#include "workload/families/diffusion.h"
#include "workload/families/image/flux_parts.h"

enum { DOUBLE_PARTS = 6, SINGLE_PARTS = 3 };
enum { TEXT, IMAGE, STREAMS };

typedef struct stream {
    frag_tensor norms[2];
    frag_linear qkv[3], out;
    frag_linear feed, back;
} stream;

typedef struct pair_block {
    stream of[STREAMS];
} pair_block;

typedef struct single_block {
    frag_tensor norms[2];
    frag_linear in, out;
} single_block;

typedef struct flux2 {
    frag_linear time[2], guidance[2];
    frag_linear modulate[STREAMS], modulate_single;
    frag_linear text, image;
    frag_tensor *blocks; /* parameters of the first block; NULL while the model is built */
    frag_linear norm, out;
} flux2;

static uint64_t inner_of(const frag_network *of)
{
    return (uint64_t)((double)frag_flux_width(of) * of->feed_ratio);
}

/* ---- parameters */
static frag_linear walk_linear(frag_walk *at, uint64_t in, uint64_t out, uint64_t target)
{
    return frag_walk_linear(at, (frag_shape){out, in}, false, target);
}

static void walk_attention(frag_walk *at, const frag_network *of, uint32_t which, stream *next)
{
    static const uint64_t targets[STREAMS][3] = {
        {FRAG_LORA_ADD_Q_PROJ, FRAG_LORA_ADD_K_PROJ, FRAG_LORA_ADD_V_PROJ},
        {FRAG_LORA_TO_Q, FRAG_LORA_TO_K, FRAG_LORA_TO_V}};
    const uint64_t width = frag_flux_width(of);
    if (which == TEXT) /* whose norms stand before */
        frag_flux_walk_norms(at, of, next->norms);
    for (uint32_t i = 0; i < 3; i++)
        next->qkv[i] = walk_linear(at, width, width, targets[which][i]);
    if (which == IMAGE)
        frag_flux_walk_norms(at, of, next->norms);
    next->out =
        walk_linear(at, width, width, which == TEXT ? FRAG_LORA_TO_ADD_OUT : FRAG_LORA_TO_OUT);
}

static pair_block walk_pair(frag_walk *at, const frag_network *of)
{
    const uint64_t width = frag_flux_width(of), inner = inner_of(of);
    pair_block next = {0};
    for (uint32_t i = STREAMS; i > 0; i--)
        walk_attention(at, of, i - 1, &next.of[i - 1]);
    for (uint32_t i = STREAMS; i > 0; i--) {
        next.of[i - 1].feed = walk_linear(at, width, 2 * inner, FRAG_LORA_LINEAR_IN);
        next.of[i - 1].back = walk_linear(at, inner, width, FRAG_LORA_LINEAR_OUT);
    }
    return next;
}

static single_block walk_single(frag_walk *at, const frag_network *of)
{
    const uint64_t width = frag_flux_width(of), inner = inner_of(of);
    single_block next = {
        .in = walk_linear(at, width, 3 * width + 2 * inner, FRAG_LORA_TO_QKV_MLP_PROJ)};
    frag_flux_walk_norms(at, of, next.norms);
    next.out = walk_linear(at, width + inner, width, FRAG_LORA_REST);
    return next;
}

static void walk_embedding(frag_walk *at, uint64_t width, frag_linear layers[2])
{
    layers[0] = walk_linear(at, FRAG_FLUX_TIME_WIDTH, width, FRAG_LORA_REST);
    layers[1] = walk_linear(at, width, width, FRAG_LORA_REST);
}

static flux2 walk_flux2(frag_walk *at, const frag_network *of)
{
    const uint64_t width = frag_flux_width(of);
    flux2 next = {.blocks = NULL};
    walk_embedding(at, width, next.time);
    if (of->has_guidance)
        walk_embedding(at, width, next.guidance);
    for (uint32_t i = STREAMS; i > 0; i--)
        next.modulate[i - 1] = walk_linear(at, width, DOUBLE_PARTS * width, FRAG_LORA_REST);
    next.modulate_single = walk_linear(at, width, SINGLE_PARTS * width, FRAG_LORA_REST);
    next.image = walk_linear(at, of->image_channels, width, FRAG_LORA_REST);
    next.text = walk_linear(at, of->text_width, width, FRAG_LORA_REST);
    next.blocks = at->at;
    for (uint64_t i = 0; i < of->layers; i++)
        (void)walk_pair(at, of);
    for (uint64_t i = 0; i < of->single_layers; i++)
        (void)walk_single(at, of);
    next.norm = walk_linear(at, width, 2 * width, FRAG_LORA_REST);
    next.out = walk_linear(at, width, frag_flux_channels(of), FRAG_LORA_REST);
    return next;
}

static void build(frag_walk *at, const frag_network *of)
{
    (void)walk_flux2(at, of);
}

/* ---- forward pass */
/* (1 + scale) * normed + shift; normed is used up. */
static frag_tensor scale_first(frag_tape *tape, frag_tensor normed, const frag_tensor by[2])
{
    frag_tensor factor = frag_aten_add_scalar(tape, by[1]);
    frag_tensor scaled = frag_aten_mul(tape, factor, normed);
    frag_tape_drop(tape, factor);
    frag_tensor made = frag_aten_add(tape, scaled, by[0]);
    frag_tape_drop(tape, scaled);
    frag_tape_drop(tape, normed);
    return made;
}

static frag_tensor normalise(frag_tape *tape, const frag_flux_pass *in, frag_tensor x)
{
    const frag_pair none = {0, 0};
    return frag_aten_layer_norm(tape, x, &none, frag_flux_width(in->of));
}

/* silu of the first half of each row, times the second half */
static frag_tensor gate(frag_tape *tape, frag_tensor x)
{
    const uint64_t half = frag_tape_count(tape, x) / 2;
    frag_tensor part = frag_aten_slice(tape, x, half);
    frag_tensor active = frag_aten_silu(tape, part);
    frag_tape_drop(tape, part);
    part = frag_aten_slice(tape, x, half);
    frag_tensor made = frag_aten_mul(tape, active, part);
    frag_tape_drop(tape, active);
    frag_tape_drop(tape, part);
    return made;
}

static frag_tensor feed(frag_tape *tape, const stream *at, frag_tensor x)
{
    frag_tensor made = frag_walk_apply(tape, x, &at->feed);
    frag_tape_set(tape, &made, gate(tape, made));
    frag_tape_set(tape, &made, frag_walk_apply(tape, made, &at->back));
    return made;
}

/* The gradients of values, and of what is put out, are parts of another, with gaps between several
 * images; so are what is put out itself. Behind adapters of another type they are casts. */
static frag_linear with_gaps(const frag_tape *tape, const frag_flux_pass *in, const frag_linear *of)
{
    bool is_typed = in->model->dtype == FRAG_F32 || frag_tape_autocast(tape) != FRAG_F32;
    frag_linear layer = *of;
    layer.has_gaps = in->count > 1 && (of->down == 0 || is_typed);
    layer.images = layer.has_gaps ? in->count : 0;
    return layer;
}

/* Both streams look at both; made: what each is handed, before its gate. */
static void look(frag_tape *tape, const frag_flux_pass *in, const pair_block *at,
                 const frag_tensor normed[STREAMS], frag_tensor made[STREAMS])
{
    frag_tensor qkv[STREAMS][3];
    for (uint32_t i = STREAMS; i > 0; i--)
        for (uint32_t j = 0; j < 3; j++) {
            frag_linear layer =
                j == 2 ? with_gaps(tape, in, &at->of[i - 1].qkv[j]) : at->of[i - 1].qkv[j];
            qkv[i - 1][j] = frag_walk_apply(tape, normed[i - 1], &layer);
        }
    const frag_norm_layout layout = in->count > 1 ? FRAG_NORM_GAPS : FRAG_NORM_PLAIN;
    for (uint32_t i = STREAMS; i > 0; i--)
        frag_flux_split_heads(tape, in, at->of[i - 1].norms, layout, qkv[i - 1]);
    frag_tensor joined[3];
    for (uint32_t i = 0; i < 3; i++) {
        joined[i] =
            frag_aten_cat(tape, qkv[TEXT][i], qkv[IMAGE][i], frag_tape_dtype(tape, qkv[TEXT][i]));
        frag_tape_clear(tape, &qkv[IMAGE][i]);
    }
    frag_tensor whole = frag_flux_attend(tape, in, joined, false);
    frag_tensor split = frag_aten_split_begin(tape, whole);
    frag_tape_drop(tape, whole);
    const uint64_t tokens[STREAMS] = {in->of->text_tokens, frag_flux_patches(in->of)};
    for (uint32_t i = 0; i < STREAMS; i++)
        made[i] =
            frag_aten_split_next(tape, split, in->count * frag_flux_width(in->of) * tokens[i]);
    frag_tape_drop(tape, split);
    for (uint32_t i = 0; i < STREAMS; i++) {
        frag_linear out = at->of[i].out;
        out.is_cut = in->count > 1;
        if (out.is_cut)
            frag_tape_set_strided(tape, made[i]);
        frag_tape_set(tape, &made[i], frag_walk_apply(tape, made[i], &out));
    }
    frag_tape_drop_all(tape, joined, 3);
    frag_tape_drop_all(tape, qkv[TEXT], 3);
}

/* mod.unsqueeze(1).chunk(count, dim=-1) */
static void read_shared(frag_tape *tape, const frag_flux_pass *in, frag_tensor shared,
                        frag_tensor *parts, uint32_t count)
{
    frag_tensor row = frag_aten_view(tape, shared);
    frag_flux_chunk(tape, in, row, parts, count);
    frag_tape_drop(tape, row);
}

static void run_pair(frag_tape *tape, const frag_flux_pass *in, const pair_block *at,
                     const frag_tensor shared[STREAMS], frag_tensor states[STREAMS])
{
    frag_tensor by[STREAMS][DOUBLE_PARTS], normed[STREAMS], seen[STREAMS], names[STREAMS][2];
    for (uint32_t i = STREAMS; i > 0; i--)
        read_shared(tape, in, shared[i - 1], by[i - 1], DOUBLE_PARTS);
    for (uint32_t i = STREAMS; i > 0; i--)
        normed[i - 1] = scale_first(tape, normalise(tape, in, states[i - 1]), by[i - 1]);
    look(tape, in, at, normed, seen);
    frag_tensor made[STREAMS];
    for (uint32_t i = STREAMS; i > 0; i--) {
        const frag_tensor *parts = by[i - 1];
        names[i - 1][0] = frag_aten_mul(tape, parts[2], seen[i - 1]);
        frag_tensor hidden = frag_aten_add(tape, states[i - 1], names[i - 1][0]);
        frag_tape_set(tape, &normed[i - 1], normalise(tape, in, hidden));
        frag_tape_set(tape, &normed[i - 1], frag_flux_shift(tape, normed[i - 1], &parts[3], NULL));
        names[i - 1][1] = feed(tape, &at->of[i - 1], normed[i - 1]);
        frag_tensor gated = frag_aten_mul(tape, parts[5], names[i - 1][1]);
        made[i - 1] = frag_aten_add(tape, hidden, gated);
        frag_tape_drop(tape, gated);
        frag_tape_drop(tape, hidden);
    }
    made[TEXT] = frag_flux_clip(tape, made[TEXT]);
    for (uint32_t i = 0; i < STREAMS; i++) {
        frag_tape_drop_all(tape, by[i], DOUBLE_PARTS);
        frag_tape_drop(tape, normed[i]);
        frag_tape_drop(tape, seen[i]);
        frag_tape_drop_all(tape, names[i], 2);
        frag_tape_set(tape, &states[i], made[i]);
    }
}

/* What comes out of the first product is read in parts of its rows. */
static frag_tensor look_and_feed(frag_tape *tape, const frag_flux_pass *in, const single_block *at,
                                 frag_tensor x)
{
    const uint64_t rows = in->count * (in->of->text_tokens + frag_flux_patches(in->of));
    frag_tensor whole = frag_walk_apply(tape, x, &at->in);
    frag_tensor split = frag_aten_split_begin(tape, whole);
    frag_tensor all = frag_aten_split_next(tape, split, rows * 3 * frag_flux_width(in->of));
    frag_tensor fed = frag_aten_split_next(tape, split, rows * 2 * inner_of(in->of));
    frag_tape_drop(tape, split);
    frag_tensor qkv[3];
    frag_aten_split(tape, all, qkv, 3);
    frag_flux_split_heads(tape, in, at->norms, FRAG_NORM_TURNED, qkv);
    frag_tensor seen = frag_flux_attend(tape, in, qkv, true);
    frag_tape_drop(tape, whole);
    frag_tape_set(tape, &fed, gate(tape, fed));
    frag_tensor joined = frag_aten_cat(tape, seen, fed, frag_tape_dtype(tape, seen));
    frag_tape_drop(tape, seen);
    frag_tensor made = frag_walk_apply(tape, joined, &at->out);
    frag_tape_drop(tape, joined);
    frag_tape_drop(tape, all);
    frag_tape_drop(tape, fed);
    frag_tape_drop_all(tape, qkv, 3);
    return made;
}

static frag_tensor run_single(frag_tape *tape, const frag_flux_pass *in, const single_block *at,
                              frag_tensor shared, frag_tensor hidden)
{
    frag_tensor by[SINGLE_PARTS];
    read_shared(tape, in, shared, by, SINGLE_PARTS);
    frag_tensor normed = scale_first(tape, normalise(tape, in, hidden), by);
    frag_tensor seen = look_and_feed(tape, in, at, normed);
    frag_tensor gated = frag_aten_mul(tape, by[2], seen);
    frag_tensor made = frag_aten_add(tape, hidden, gated);
    frag_tape_drop(tape, gated);
    made = frag_flux_clip(tape, made);
    frag_tape_drop_all(tape, by, SINGLE_PARTS);
    frag_tape_drop(tape, normed);
    frag_tape_drop(tape, seen);
    return made;
}

/* A block as a region that may run again. */
typedef struct block_call {
    frag_flux_pass in;
    frag_tensor shared[STREAMS]; /* of a block of one stream the first alone */
    pair_block pair;
    single_block single;
    frag_tensor text;
    frag_tensor *made_text; /* where the text's states go, the first time */
} block_call;

static frag_tensor run_pair_block(frag_tape *tape, const void *context, frag_tensor image)
{
    const block_call *call = context;
    frag_tensor states[STREAMS] = {frag_tape_keep(tape, call->text), frag_tape_keep(tape, image)};
    run_pair(tape, &call->in, &call->pair, call->shared, states);
    if (frag_tape_is_remaking(tape))
        frag_tape_drop(tape, states[TEXT]);
    else
        *call->made_text = states[TEXT];
    return states[IMAGE];
}

static frag_tensor run_single_block(frag_tape *tape, const void *context, frag_tensor hidden)
{
    const block_call *call = context;
    return run_single(tape, &call->in, &call->single, call->shared[0], hidden);
}

static void pass_pair(frag_tape *tape, const frag_flux_pass *in, frag_walk *at,
                      const frag_tensor shared[STREAMS], frag_tensor states[STREAMS])
{
    frag_tensor text = 0;
    block_call call = {.in = *in,
                       .shared = {shared[TEXT], shared[IMAGE]},
                       .pair = walk_pair(at, in->of),
                       .text = states[TEXT],
                       .made_text = &text};
    const frag_tensor kept[] = {states[TEXT], shared[IMAGE], shared[TEXT], in->angles.cosine,
                                in->angles.sine};
    const frag_region_call region = {run_pair_block, &call, sizeof call, kept, 5};
    frag_tensor image = frag_model_call(tape, in->model, &region, states[IMAGE]);
    frag_tape_set(tape, &states[TEXT], text);
    frag_tape_set(tape, &states[IMAGE], image);
}

static void pass_single(frag_tape *tape, const frag_flux_pass *in, frag_walk *at,
                        frag_tensor shared, frag_tensor *hidden)
{
    block_call call = {.in = *in, .shared = {shared}, .single = walk_single(at, in->of)};
    const frag_tensor kept[] = {shared, in->angles.cosine, in->angles.sine};
    const frag_region_call region = {run_single_block, &call, sizeof call, kept, 3};
    frag_tape_set(tape, hidden, frag_model_call(tape, in->model, &region, *hidden));
}

static frag_tensor embed_condition(frag_tape *tape, const frag_flux_pass *in, const flux2 *at,
                                   const frag_tensor numbers[2])
{
    frag_tensor waves[2] = {0};
    frag_tensor made = frag_flux_embed_number(tape, in, at->time, numbers[0], &waves[0]);
    if (in->of->has_guidance) {
        frag_tensor other = frag_flux_embed_number(tape, in, at->guidance, numbers[1], &waves[1]);
        frag_tape_set(tape, &made, frag_aten_add(tape, made, other));
        frag_tape_drop(tape, other);
    }
    frag_tape_drop_all(tape, waves, 2);
    return made;
}

/* Of the text's tokens and of patches, then both; parts: owned by the caller. */
static frag_rope make_angles(frag_tape *tape, const frag_network *of, const frag_batch *batch,
                             frag_rope parts[STREAMS])
{
    for (uint32_t i = STREAMS; i > 0; i--)
        parts[i - 1] = frag_flux_angles(tape, of, batch->places[i - 1]);
    return (frag_rope){.cosine =
                           frag_aten_cat(tape, parts[TEXT].cosine, parts[IMAGE].cosine, FRAG_F32),
                       .sine = frag_aten_cat(tape, parts[TEXT].sine, parts[IMAGE].sine, FRAG_F32)};
}

static frag_tensor run_flux2(frag_tape *tape, const frag_model *model, const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    frag_walk walk = {.tape = tape, .workload = model->workload, .at = model->parameters};
    const flux2 at = walk_flux2(&walk, of);
    frag_flux_pass in = {.model = model, .of = of, .count = batch->count};
    const frag_dtype dtype = frag_tape_dtype(tape, batch->ids);
    frag_tensor numbers[2] = {frag_flux_scale_number(tape, batch->times, dtype),
                              of->has_guidance ? frag_flux_scale_number(tape, batch->sizes, dtype)
                                               : 0};
    in.condition = embed_condition(tape, &in, &at, numbers);
    frag_tensor shared[STREAMS + 1];
    for (uint32_t i = STREAMS; i > 0; i--)
        shared[i - 1] = frag_flux_modulate(tape, &in, &at.modulate[i - 1]);
    shared[STREAMS] = frag_flux_modulate(tape, &in, &at.modulate_single);
    frag_tensor states[STREAMS] = {0, frag_walk_apply(tape, batch->ids, &at.image)};
    states[TEXT] = frag_walk_apply(tape, batch->text, &at.text);
    frag_rope parts[STREAMS];
    in.angles = make_angles(tape, of, batch, parts);
    frag_walk blocks = {.tape = tape, .workload = model->workload, .at = at.blocks};
    for (uint64_t i = 0; i < of->layers; i++)
        pass_pair(tape, &in, &blocks, shared, states);
    frag_tape_set(
        tape, &states[IMAGE],
        frag_aten_cat(tape, states[TEXT], states[IMAGE], frag_tape_dtype(tape, states[TEXT])));
    for (uint64_t i = 0; i < of->single_layers; i++)
        pass_single(tape, &in, &blocks, shared[STREAMS], &states[IMAGE]);
    const uint64_t predicted = batch->count * frag_flux_width(of) * frag_flux_patches(of);
    frag_tape_set(tape, &states[IMAGE], frag_aten_slice(tape, states[IMAGE], predicted));
    const frag_linear ends[] = {at.norm, at.out};
    frag_tensor made = frag_flux_put_out(tape, &in, ends, states[IMAGE]);
    frag_tape_drop(tape, states[TEXT]);
    frag_tape_drop_all(tape, shared, STREAMS + 1);
    for (uint32_t i = 0; i < STREAMS; i++) {
        frag_tape_drop(tape, parts[i].cosine);
        frag_tape_drop(tape, parts[i].sine);
    }
    frag_tape_drop(tape, in.angles.cosine);
    frag_tape_drop(tape, in.angles.sine);
    frag_tape_drop(tape, in.condition);
    frag_tape_drop_all(tape, numbers, 2);
    return made;
}

static frag_tensor compute_loss(frag_tape *tape, const frag_model *model, const frag_batch *batch)
{
    return frag_diffusion_loss(tape, run_flux2(tape, model, batch), batch);
}

void frag_flux2_denoise(frag_tape *tape, const frag_model *model, frag_batch *batch, uint64_t steps)
{
    frag_flux_denoise_with(tape, model, batch, steps, run_flux2);
}

const frag_family frag_family_flux2 = {build, frag_flux_load, compute_loss, NULL};
