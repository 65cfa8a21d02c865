/* What the transformers of FLUX.1 and FLUX.2 have in common, as diffusers 0.42 has it: what they
 * read, places of patches and tokens as angles, heads, modulation and the condition. */
#include "workload/families/image/flux_parts.h"

#include "workload/families/diffusion.h"

uint64_t frag_flux_width(const frag_network *of)
{
    return of->heads * of->head_width;
}

uint64_t frag_flux_channels(const frag_network *of)
{
    return of->out_channels > 0 ? of->out_channels : of->image_channels;
}

void frag_flux_walk_norms(frag_walk *at, const frag_network *of, frag_tensor norms[2])
{
    for (uint32_t i = 0; i < 2; i++)
        norms[i] = frag_walk_parameter(at, (frag_shape){0, of->head_width});
}

uint64_t frag_flux_patches(const frag_network *of)
{
    return of->image * of->image;
}

/* Of places along an axis: cosines and sines of each number twice, in fp32; made in fp64. */
static frag_rope make_axis(frag_tape *tape, uint64_t places, uint64_t width)
{
    const uint64_t half = width / 2;
    frag_tensor base = frag_tape_empty(tape, half, FRAG_I64);
    frag_tape_set(tape, &base, frag_tape_empty(tape, half, FRAG_I64)); /* / width */
    frag_tensor power = frag_tape_empty(tape, half, FRAG_I64);         /* theta ** */
    frag_tape_drop(tape, frag_tape_empty(tape, 1, FRAG_I64));
    frag_tape_set(tape, &base, power);
    frag_tensor inverse = frag_tape_empty(tape, half, FRAG_I64); /* 1.0 / */
    frag_tensor product = frag_tape_empty(tape, half, FRAG_I64);
    frag_tape_drop(tape, inverse);
    frag_tape_set(tape, &base, product);
    frag_tape_set(tape, &base, frag_tape_empty(tape, half, FRAG_I64)); /* / 1.0 */
    frag_tape_set(tape, &base, frag_tape_empty(tape, places * half, FRAG_I64));
    frag_tensor made[2];
    for (uint32_t i = 0; i < 2; i++) {
        made[i] = frag_tape_empty(tape, places * half, FRAG_I64);
        frag_tape_set(tape, &made[i], frag_tape_empty(tape, places * width, FRAG_I64));
        frag_tape_set(tape, &made[i], frag_tape_empty(tape, places * width, FRAG_F32));
    }
    frag_tape_drop(tape, base);
    return (frag_rope){.cosine = made[0], .sine = made[1]};
}

frag_rope frag_flux_angles(frag_tape *tape, const frag_network *of, frag_tensor ids)
{
    const uint64_t axes = of->axes.count; /* at most FRAG_FLUX_AXES_MAX, as is checked */
    const uint64_t places = frag_tape_count(tape, ids) / axes;
    frag_tensor wide = frag_tape_to(tape, ids, FRAG_F32);
    frag_tensor cosines[FRAG_FLUX_AXES_MAX], sines[FRAG_FLUX_AXES_MAX];
    for (uint32_t i = 0; i < axes; i++) {
        frag_rope axis = make_axis(tape, places, frag_stages_at(&of->axes, i));
        cosines[i] = axis.cosine;
        sines[i] = axis.sine;
    }
    frag_rope made = {.cosine = frag_aten_cat_parts(tape, cosines, axes)};
    made.sine = frag_aten_cat_parts(tape, sines, axes);
    frag_tape_drop_all(tape, cosines, axes);
    frag_tape_drop_all(tape, sines, axes);
    frag_tape_drop(tape, wide);
    return made;
}

/* x.float() * cos + (-odd, even).float() * sin, of pairs of neighbours; x is used up. */
static frag_tensor turn(frag_tape *tape, frag_tensor x, frag_rope angles)
{
    frag_tensor halves[2];
    frag_aten_split(tape, x, halves, 2);
    frag_tensor negative = frag_aten_mul_scalar(tape, halves[1]);
    frag_tensor other = frag_aten_cat(tape, negative, halves[0], frag_tape_dtype(tape, x));
    frag_tape_drop(tape, negative);
    frag_tensor wide = frag_tape_to(tape, x, FRAG_F32);
    frag_tensor straight = frag_aten_mul(tape, wide, angles.cosine);
    frag_tape_drop(tape, wide);
    wide = frag_tape_to(tape, other, FRAG_F32);
    frag_tensor turned = frag_aten_mul(tape, wide, angles.sine);
    frag_tape_drop(tape, wide);
    frag_tensor sum = frag_aten_add(tape, straight, turned);
    frag_tape_drop(tape, straight);
    frag_tape_drop(tape, turned);
    frag_tensor made = frag_tape_to(tape, sum, frag_tape_dtype(tape, x));
    frag_tape_drop(tape, sum);
    frag_tape_drop(tape, other);
    frag_tape_drop_all(tape, halves, 2);
    frag_tape_drop(tape, x);
    return made;
}

frag_tensor frag_flux_modulate(frag_tape *tape, const frag_flux_pass *in, const frag_linear *at)
{
    frag_tensor active = frag_aten_silu(tape, in->condition);
    frag_tensor made = frag_walk_apply(tape, active, at);
    frag_tape_drop(tape, active);
    return made;
}

void frag_flux_chunk(frag_tape *tape, const frag_flux_pass *in, frag_tensor made,
                     frag_tensor *parts, uint32_t count)
{
    frag_tensor whole = frag_aten_split_begin(tape, made);
    for (uint32_t i = 0; i < count; i++)
        parts[i] = frag_aten_split_next(tape, whole, in->count * frag_flux_width(in->of));
    frag_tape_drop(tape, whole);
}

void frag_flux_modulate_parts(frag_tape *tape, const frag_flux_pass *in, const frag_linear *at,
                              frag_tensor *parts, uint32_t count)
{
    frag_tensor made = frag_flux_modulate(tape, in, at);
    frag_flux_chunk(tape, in, made, parts, count);
    frag_tape_drop(tape, made);
}

frag_tensor frag_flux_shift(frag_tape *tape, frag_tensor normed, const frag_tensor by[2],
                            frag_tensor *passing)
{
    frag_tensor factor = frag_aten_add_scalar(tape, by[1]);
    frag_tensor scaled = frag_aten_mul(tape, normed, factor);
    if (passing != NULL)
        frag_tape_clear(tape, passing);
    frag_tape_drop(tape, factor);
    frag_tensor made = frag_aten_add(tape, scaled, by[0]);
    frag_tape_drop(tape, scaled);
    return made;
}

void frag_flux_split_heads(frag_tape *tape, const frag_flux_pass *in, const frag_tensor norms[2],
                           frag_norm_layout layout, frag_tensor qkv[3])
{
    for (uint32_t i = 0; i < 3; i++)
        frag_tape_set(tape, &qkv[i], frag_aten_view(tape, qkv[i]));
    for (uint32_t i = 0; i < 2; i++)
        frag_tape_set(tape, &qkv[i],
                      frag_aten_rms_norm(tape, qkv[i], norms[i], in->of->head_width, layout));
}

frag_tensor frag_flux_attend(frag_tape *tape, const frag_flux_pass *in, frag_tensor qkv[3],
                             bool is_apart)
{
    for (uint32_t i = 0; i < 2; i++)
        qkv[i] = turn(tape, qkv[i], in->angles);
    const uint64_t tokens = frag_flux_patches(in->of) + in->of->text_tokens;
    const frag_dtype dtype = frag_tape_dtype(tape, qkv[0]);
    const frag_dtype cast = frag_tape_autocast(tape);
    /* The gradient of a cast lies in one piece. */
    bool is_cast = cast != FRAG_F32 && cast != dtype;
    const frag_attention_shape shape = {.batch = in->count,
                                        .heads = in->of->heads,
                                        .key_heads = in->of->heads,
                                        .queries = tokens,
                                        .keys = tokens,
                                        .width = in->of->head_width,
                                        .is_gradient_cut = is_apart && !is_cast};
    frag_tensor made = frag_aten_attention(tape, qkv, &shape);
    frag_tape_set(tape, &made, frag_aten_view(tape, made));
    frag_tape_set(tape, &made, frag_tape_to(tape, made, dtype));
    return made;
}

frag_tensor frag_flux_clip(frag_tape *tape, frag_tensor x)
{
    if (frag_tape_dtype(tape, x) == FRAG_F16)
        frag_tape_set(tape, &x, frag_aten_clamp(tape, x, 0, 0));
    return x;
}

frag_tensor frag_flux_embed_number(frag_tape *tape, const frag_flux_pass *in,
                                   const frag_linear layers[2], frag_tensor x, frag_tensor *name)
{
    frag_tensor waves = frag_diffusion_waves(tape, in->count, FRAG_FLUX_TIME_WIDTH,
                                             frag_tape_dtype(tape, x) == FRAG_F32);
    frag_tensor typed = frag_tape_to(tape, waves, in->model->dtype);
    *name = waves;
    frag_tensor made = frag_diffusion_embed(tape, layers, typed);
    frag_tape_drop(tape, typed);
    return made;
}

frag_tensor frag_flux_scale_number(frag_tape *tape, frag_tensor x, frag_dtype dtype)
{
    frag_tensor typed = frag_tape_to(tape, x, dtype);
    frag_tensor made = frag_aten_mul_scalar(tape, typed);
    frag_tape_drop(tape, typed);
    return made;
}

frag_tensor frag_flux_put_out(frag_tape *tape, const frag_flux_pass *in, const frag_linear ends[2],
                              frag_tensor hidden)
{
    const frag_pair none = {0, 0};
    frag_tensor by[2];
    frag_flux_modulate_parts(tape, in, &ends[0], by, 2);
    /* A part of several images has gaps, a cast of it has none. */
    bool is_cast =
        frag_tape_autocast(tape) != FRAG_F32 && frag_tape_dtype(tape, hidden) != FRAG_F32;
    bool has_gaps = in->count > 1 && !is_cast;
    frag_tensor normed = frag_aten_layer_norm_laid(tape, hidden, &none, frag_flux_width(in->of),
                                                   has_gaps ? FRAG_NORM_TURNED : FRAG_NORM_PLAIN);
    frag_tape_set(tape, &hidden, frag_flux_shift(tape, normed, by, &normed));
    frag_tape_drop_all(tape, by, 2);
    frag_tensor made = frag_walk_apply(tape, hidden, &ends[1]);
    frag_tape_drop(tape, hidden);
    return made;
}

/* FLUX.2 reads no pooled text, and places as integers. */
static void load_inputs(frag_tape *tape, const frag_model *model, frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    const uint64_t patches = frag_flux_patches(of);
    bool is_second = of->family == FRAG_FAMILY_FLUX2;
    frag_tape_set(tape, &batch->ids,
                  frag_tape_empty(tape, batch->count * patches * of->image_channels, model->dtype));
    frag_tape_set(
        tape, &batch->text,
        frag_tape_empty(tape, batch->count * of->text_tokens * of->text_width, model->dtype));
    if (!is_second)
        frag_tape_set(tape, &batch->pooled,
                      frag_tape_empty(tape, batch->count * of->added_width, model->dtype));
    const frag_dtype dtype = is_second ? FRAG_I64 : model->dtype;
    frag_tensor places[2] = {frag_tape_empty(tape, of->axes.count * of->text_tokens, dtype),
                             frag_tape_empty(tape, of->axes.count * patches, dtype)};
    for (uint32_t i = 0; i < 2; i++)
        frag_tape_set(tape, &batch->places[i], places[i]);
    if (of->has_guidance)
        frag_tape_set(tape, &batch->sizes, frag_tape_empty(tape, batch->count, FRAG_F32));
}

void frag_flux_load(frag_tape *tape, const frag_model *model, frag_batch *batch)
{
    load_inputs(tape, model, batch);
    const frag_network *of = &model->workload->network;
    uint64_t predicted = batch->count * frag_flux_patches(of) * frag_flux_channels(of);
    frag_tape_set(tape, &batch->labels, frag_tape_empty(tape, predicted, model->dtype));
    frag_tape_set(tape, &batch->times, frag_tape_empty(tape, batch->count, FRAG_F32));
}

void frag_flux_denoise_with(frag_tape *tape, const frag_model *model, frag_batch *batch,
                            uint64_t steps, frag_flux_predict *predict)
{
    load_inputs(tape, model, batch);
    frag_tensor times = frag_tape_empty(tape, steps * batch->count, FRAG_F32);
    frag_tensor noise = 0;
    for (uint64_t i = 0; i < steps; i++) {
        frag_tape_begin(tape, "denoise");
        frag_tape_set(tape, &batch->times, frag_tape_view(tape, times, batch->count));
        frag_tape_set(tape, &noise, predict(tape, model, batch));
        frag_tensor scaled = frag_aten_mul_scalar(tape, noise);
        frag_tape_set(tape, &batch->ids, frag_aten_sub(tape, batch->ids, scaled));
        frag_tape_drop(tape, scaled);
        frag_tape_end(tape, "denoise");
    }
    frag_tape_clear(tape, &batch->times);
    frag_tape_drop(tape, times);
    frag_tape_drop(tape, noise);
}
