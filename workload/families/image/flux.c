/* The transformer of FLUX, as diffusers 0.42 has it (models/transformers/transformer_flux.py):
 * patches of latents and a text in two streams that attend to each other, then in one. Time,
 * guidance and the pooled text become one vector, of which each block makes shifts, scales and
 * gates. */
#include "base/memory.h"
#include "workload/families/diffusion.h"
#include "workload/families/image/flux_parts.h"

enum { INNER_FACTOR = 4, DOUBLE_PARTS = 6, SINGLE_PARTS = 3 };

typedef struct attention {
    frag_tensor norms[2];
    frag_linear qkv[3], out; /* no weight of out: none */
} attention;

/* A stream's part of a block of two. */
typedef struct stream {
    frag_linear modulate;
    attention look;
    frag_linear feed, back;
} stream;

typedef struct pair_block {
    stream image, text;
} pair_block;

typedef struct single_block {
    frag_linear modulate, feed, back;
    attention look;
} single_block;

typedef struct flux {
    frag_linear time[2], guidance[2], pooled[2];
    frag_linear text, image;
    frag_tensor *pairs, *singles; /* parameters of the first block; NULL while the model is built */
    frag_linear modulate, out;
} flux;

/* ---- parameters */
static frag_linear walk_linear(frag_walk *at, uint64_t in, uint64_t out, uint64_t target)
{
    return frag_walk_linear(at, (frag_shape){out, in}, true, target != 0 ? target : FRAG_LORA_REST);
}

static void walk_attention(frag_walk *at, const frag_network *of, bool is_text, attention *next)
{
    static const uint64_t targets[] = {FRAG_LORA_TO_Q, FRAG_LORA_TO_K, FRAG_LORA_TO_V};
    for (uint32_t i = 0; i < 3; i++)
        next->qkv[i] =
            walk_linear(at, frag_flux_width(of), frag_flux_width(of), is_text ? 0 : targets[i]);
}

static pair_block walk_pair(frag_walk *at, const frag_network *of)
{
    const uint64_t width = frag_flux_width(of), inner = INNER_FACTOR * width;
    pair_block next = {.image = {.modulate = walk_linear(at, width, DOUBLE_PARTS * width, 0)}};
    next.text.modulate = walk_linear(at, width, DOUBLE_PARTS * width, 0);
    frag_flux_walk_norms(at, of, next.image.look.norms);
    walk_attention(at, of, false, &next.image.look);
    next.image.look.out = walk_linear(at, width, width, FRAG_LORA_TO_OUT);
    frag_flux_walk_norms(at, of, next.text.look.norms);
    walk_attention(at, of, true, &next.text.look);
    next.text.look.out = walk_linear(at, width, width, 0);
    for (uint32_t i = 0; i < 2; i++) {
        stream *of_both = i == 0 ? &next.image : &next.text;
        of_both->feed = walk_linear(at, width, inner, 0);
        of_both->back = walk_linear(at, inner, width, 0);
    }
    return next;
}

static single_block walk_single(frag_walk *at, const frag_network *of)
{
    const uint64_t width = frag_flux_width(of), inner = INNER_FACTOR * width;
    single_block next = {.modulate = walk_linear(at, width, SINGLE_PARTS * width, 0)};
    next.feed = walk_linear(at, width, inner, 0);
    next.back = walk_linear(at, width + inner, width, 0);
    frag_flux_walk_norms(at, of, next.look.norms);
    walk_attention(at, of, false, &next.look);
    return next;
}

static void walk_embedding(frag_walk *at, uint64_t in, uint64_t width, frag_linear layers[2])
{
    layers[0] = walk_linear(at, in, width, 0);
    layers[1] = walk_linear(at, width, width, 0);
}

static flux walk_flux(frag_walk *at, const frag_network *of)
{
    const uint64_t width = frag_flux_width(of);
    flux next = {.pairs = NULL};
    walk_embedding(at, FRAG_FLUX_TIME_WIDTH, width, next.time);
    if (of->has_guidance)
        walk_embedding(at, FRAG_FLUX_TIME_WIDTH, width, next.guidance);
    walk_embedding(at, of->added_width, width, next.pooled);
    next.text = walk_linear(at, of->text_width, width, 0);
    next.image = walk_linear(at, of->image_channels, width, 0);
    next.pairs = at->at;
    for (uint64_t i = 0; i < of->layers; i++)
        (void)walk_pair(at, of);
    next.singles = at->at;
    for (uint64_t i = 0; i < of->single_layers; i++)
        (void)walk_single(at, of);
    next.modulate = walk_linear(at, width, 2 * width, 0);
    next.out = walk_linear(at, width, frag_flux_channels(of), 0);
    return next;
}

static void build(frag_walk *at, const frag_network *of)
{
    (void)walk_flux(at, of);
}

/* ---- forward pass */
/* norm(x) * (1 + scale) + shift */
static frag_tensor normalise(frag_tape *tape, const frag_flux_pass *in, frag_tensor x,
                             const frag_tensor by[2])
{
    const frag_pair none = {0, 0};
    frag_tensor normed = frag_aten_layer_norm(tape, x, &none, frag_flux_width(in->of));
    return frag_flux_shift(tape, normed, by, &normed);
}

/* is_joined: the gradient of values is a part of another, with gaps between several images; behind
 * adapters of another type it is a cast of that. */
static void project(frag_tape *tape, const frag_flux_pass *in, const attention *at, bool is_joined,
                    frag_tensor x, frag_tensor qkv[3])
{
    bool is_typed = in->model->dtype == FRAG_F32 || frag_tape_autocast(tape) != FRAG_F32;
    for (uint32_t i = 0; i < 3; i++) {
        frag_linear layer = at->qkv[i];
        layer.has_gaps = is_joined && i == 2 && in->count > 1 && (layer.down == 0 || is_typed);
        layer.images = layer.has_gaps ? in->count : 0;
        qkv[i] = frag_walk_apply(tape, x, &layer);
    }
}

static frag_tensor feed(frag_tape *tape, const stream *at, frag_tensor x)
{
    frag_tensor made = frag_walk_apply(tape, x, &at->feed);
    frag_tape_set(tape, &made, frag_aten_gelu(tape, made));
    frag_tape_set(tape, &made, frag_walk_apply(tape, made, &at->back));
    return made;
}

/* What a block has names for, to its end. */
typedef struct stream_names {
    frag_tensor normed, part, gated, fed;
    frag_tensor by[DOUBLE_PARTS];
} stream_names;

/* Behind the attention: its output, gated, and the feed-forward part, gated. */
static frag_tensor finish(frag_tape *tape, const frag_flux_pass *in, const stream *at,
                          frag_tensor x, bool is_text, stream_names *names)
{
    const frag_tensor *by = names->by;
    names->gated = frag_aten_mul(tape, by[2], names->part);
    frag_tensor hidden = frag_aten_add(tape, x, names->gated);
    const frag_pair none = {0, 0};
    frag_tape_set(tape, &names->normed,
                  frag_aten_layer_norm(tape, hidden, &none, frag_flux_width(in->of)));
    frag_tape_set(tape, &names->normed, frag_flux_shift(tape, names->normed, &by[3], NULL));
    names->fed = feed(tape, at, names->normed);
    frag_tensor gated = frag_aten_mul(tape, by[5], names->fed);
    if (!is_text) /* which has one name for both */
        frag_tape_set(tape, &names->fed, gated);
    frag_tensor made = frag_aten_add(tape, hidden, gated);
    frag_tape_drop(tape, hidden);
    if (is_text)
        frag_tape_drop(tape, gated);
    return is_text ? frag_flux_clip(tape, made) : made;
}

/* The streams, text first, are joined for the attention alone. */
static void run_pair(frag_tape *tape, const frag_flux_pass *in, const pair_block *at,
                     frag_tensor states[2])
{
    const stream *const streams[2] = {&at->text, &at->image};
    stream_names names[2] = {{.normed = 0}};
    frag_tensor qkv[2][3];
    for (uint32_t i = 2; i > 0; i--) {
        frag_flux_modulate_parts(tape, in, &streams[i - 1]->modulate, names[i - 1].by,
                                 DOUBLE_PARTS);
        names[i - 1].normed = normalise(tape, in, states[i - 1], names[i - 1].by);
    }
    for (uint32_t i = 2; i > 0; i--)
        project(tape, in, &streams[i - 1]->look, true, names[i - 1].normed, qkv[i - 1]);
    for (uint32_t i = 2; i > 0; i--)
        frag_flux_split_heads(tape, in, streams[i - 1]->look.norms,
                              in->count > 1 ? FRAG_NORM_GAPS : FRAG_NORM_PLAIN, qkv[i - 1]);
    frag_tensor joined[3];
    for (uint32_t i = 0; i < 3; i++) {
        joined[i] = frag_aten_cat(tape, qkv[0][i], qkv[1][i], frag_tape_dtype(tape, qkv[0][i]));
        frag_tape_clear(tape, &qkv[1][i]);
    }
    const uint64_t patches = frag_flux_patches(in->of);
    frag_tensor whole = frag_flux_attend(tape, in, joined, false);
    frag_tensor split = frag_aten_split_begin(tape, whole);
    frag_tape_drop(tape, whole);
    for (uint32_t i = 0; i < 2; i++)
        names[i].part = frag_aten_split_next(tape, split,
                                             in->count * frag_flux_width(in->of) *
                                                 (i == 0 ? in->of->text_tokens : patches));
    frag_tape_drop(tape, split);
    for (uint32_t i = 2; i > 0; i--) {
        frag_tensor laid = in->count > 1 ? frag_aten_contiguous(tape, names[i - 1].part)
                                         : frag_tape_keep(tape, names[i - 1].part);
        frag_tensor made = frag_walk_apply(tape, laid, &streams[i - 1]->look.out);
        frag_tape_drop(tape, laid);
        frag_tape_set(tape, &names[i - 1].part, made);
    }
    frag_tape_drop_all(tape, joined, 3);
    frag_tape_drop_all(tape, qkv[0], 3);
    frag_tensor made[2];
    for (uint32_t i = 2; i > 0; i--)
        made[i - 1] = finish(tape, in, streams[i - 1], states[i - 1], i == 1, &names[i - 1]);
    for (uint32_t i = 0; i < 2; i++) {
        const frag_tensor rest[] = {names[i].normed, names[i].part, names[i].gated, names[i].fed};
        frag_tape_drop_all(tape, rest, sizeof rest / sizeof *rest);
        frag_tape_drop_all(tape, names[i].by, DOUBLE_PARTS);
        frag_tape_set(tape, &states[i], made[i]);
    }
}

static void run_single(frag_tape *tape, const frag_flux_pass *in, const single_block *at,
                       frag_tensor states[2])
{
    const uint64_t patches = frag_flux_patches(in->of);
    frag_tensor hidden =
        frag_aten_cat(tape, states[0], states[1], frag_tape_dtype(tape, states[0]));
    frag_tensor by[SINGLE_PARTS];
    frag_flux_modulate_parts(tape, in, &at->modulate, by, SINGLE_PARTS);
    frag_tensor normed = normalise(tape, in, hidden, by);
    frag_tensor fed = frag_walk_apply(tape, normed, &at->feed);
    frag_tape_set(tape, &fed, frag_aten_gelu(tape, fed));
    frag_tensor qkv[3];
    project(tape, in, &at->look, false, normed, qkv);
    frag_flux_split_heads(tape, in, at->look.norms, FRAG_NORM_PLAIN, qkv);
    frag_tensor seen = frag_flux_attend(tape, in, qkv, true);
    frag_tape_drop_all(tape, qkv, 3);
    frag_tensor joined = frag_aten_cat(tape, seen, fed, frag_tape_dtype(tape, seen));
    frag_tensor made = frag_walk_apply(tape, joined, &at->back);
    frag_tensor gated = frag_aten_mul(tape, by[2], made);
    frag_tape_drop(tape, made);
    frag_tape_drop(tape, joined);
    frag_tensor sum = frag_aten_add(tape, hidden, gated);
    frag_tape_drop(tape, gated);
    sum = frag_flux_clip(tape, sum);
    frag_tape_drop_all(tape, states, 2);
    states[0] =
        frag_aten_slice(tape, sum, in->count * frag_flux_width(in->of) * in->of->text_tokens);
    states[1] = frag_aten_slice(tape, sum, in->count * frag_flux_width(in->of) * patches);
    frag_tape_drop(tape, sum);
    frag_tape_drop(tape, seen);
    frag_tape_drop(tape, fed);
    frag_tape_drop(tape, normed);
    frag_tape_drop(tape, hidden);
    frag_tape_drop_all(tape, by, SINGLE_PARTS);
}

/* A block as a region that may run again. */
typedef struct block_call {
    frag_flux_pass in;
    bool is_single;
    pair_block pair;
    single_block single;
    frag_tensor text;
    frag_tensor *made_text; /* where the text's states go, the first time */
} block_call;

static frag_tensor run_block(frag_tape *tape, const void *context, frag_tensor image)
{
    const block_call *call = context;
    frag_tensor states[2] = {frag_tape_keep(tape, call->text), frag_tape_keep(tape, image)};
    if (call->is_single)
        run_single(tape, &call->in, &call->single, states);
    else
        run_pair(tape, &call->in, &call->pair, states);
    if (frag_tape_is_remaking(tape))
        frag_tape_drop(tape, states[0]);
    else
        *call->made_text = states[0];
    return states[1];
}

static void pass_block(frag_tape *tape, const frag_flux_pass *in, frag_walk *at, bool is_single,
                       frag_tensor states[2])
{
    frag_tensor text = 0;
    block_call call = {.in = *in, .is_single = is_single, .text = states[0], .made_text = &text};
    if (is_single)
        call.single = walk_single(at, in->of);
    else
        call.pair = walk_pair(at, in->of);
    const frag_tensor kept[] = {states[0], in->condition, in->angles.cosine, in->angles.sine};
    const frag_region_call region = {run_block, &call, sizeof call, kept, 4};
    frag_tensor image = frag_model_call(tape, in->model, &region, states[1]);
    frag_tape_set(tape, &states[0], text);
    frag_tape_set(tape, &states[1], image);
}

static frag_tensor embed_condition(frag_tape *tape, const frag_flux_pass *in, const flux *at,
                                   const frag_batch *batch, const frag_tensor numbers[2])
{
    frag_tensor waves[2] = {0}, made[2] = {0};
    made[0] = frag_flux_embed_number(tape, in, at->time, numbers[0], &waves[0]);
    frag_tensor sum = 0;
    if (in->of->has_guidance) {
        made[1] = frag_flux_embed_number(tape, in, at->guidance, numbers[1], &waves[1]);
        sum = frag_aten_add(tape, made[0], made[1]);
    }
    frag_tensor pooled = frag_diffusion_embed(tape, at->pooled, batch->pooled);
    frag_tensor condition = frag_aten_add(tape, sum != 0 ? sum : made[0], pooled);
    frag_tape_drop_all(tape, waves, 2);
    frag_tape_drop_all(tape, made, 2);
    frag_tape_drop(tape, sum);
    frag_tape_drop(tape, pooled);
    return condition;
}

static frag_tensor run_flux(frag_tape *tape, const frag_model *model, const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    frag_walk walk = {.tape = tape, .workload = model->workload, .at = model->parameters};
    const flux at = walk_flux(&walk, of);
    frag_flux_pass in = {.model = model, .of = of, .count = batch->count};
    frag_tensor states[2] = {0, frag_walk_apply(tape, batch->ids, &at.image)};
    const frag_dtype dtype = frag_tape_dtype(tape, states[1]);
    frag_tensor numbers[2] = {frag_flux_scale_number(tape, batch->times, dtype),
                              of->has_guidance ? frag_flux_scale_number(tape, batch->sizes, dtype)
                                               : 0};
    in.condition = embed_condition(tape, &in, &at, batch, numbers);
    states[0] = frag_walk_apply(tape, batch->text, &at.text);
    frag_tensor ids = frag_aten_cat(tape, batch->places[0], batch->places[1], model->dtype);
    in.angles = frag_flux_angles(tape, of, ids);
    frag_walk blocks = {.tape = tape, .workload = model->workload, .at = at.pairs};
    for (uint64_t i = 0; i < of->layers + of->single_layers; i++)
        pass_block(tape, &in, &blocks, i >= of->layers, states);
    const frag_linear ends[] = {at.modulate, at.out};
    frag_tensor made = frag_flux_put_out(tape, &in, ends, states[1]);
    frag_tape_drop(tape, states[0]);
    frag_tape_drop(tape, in.angles.cosine);
    frag_tape_drop(tape, in.angles.sine);
    frag_tape_drop(tape, ids);
    frag_tape_drop(tape, in.condition);
    frag_tape_drop_all(tape, numbers, 2);
    return made;
}

static frag_tensor compute_loss(frag_tape *tape, const frag_model *model, const frag_batch *batch)
{
    return frag_diffusion_loss(tape, run_flux(tape, model, batch), batch);
}

void frag_flux_denoise(frag_tape *tape, const frag_model *model, frag_batch *batch, uint64_t steps)
{
    frag_flux_denoise_with(tape, model, batch, steps, run_flux);
}

const frag_family frag_family_flux = {build, frag_flux_load, compute_loss, NULL};
