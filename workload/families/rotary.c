/* Rotary positions: angles of each position, and the turning of queries and keys by them, as
 * transformers has them for Llama and all that came after it. */
#include "workload/families/family.h"

/* Angles of each position: cos and sin, in the type of the hidden states. Without gradients. */
static frag_rope make_angles(frag_tape *tape, uint64_t width, uint64_t tokens, frag_dtype dtype,
                             bool is_half)
{
    bool was = frag_tape_set_recording(tape, false);
    frag_tensor positions = frag_tape_empty(tape, tokens, FRAG_F32);
    frag_tensor angles = frag_tape_empty(tape, tokens * (width / 2), FRAG_F32);
    frag_tape_drop(tape, positions);
    frag_tensor both =
        is_half ? frag_tape_keep(tape, angles) : frag_aten_cat(tape, angles, angles, FRAG_F32);
    frag_tensor made[2];
    for (uint32_t i = 0; i < 2; i++) {
        made[i] = frag_aten_mul_scalar(tape, both);
        frag_tape_set(tape, &made[i], frag_aten_mul_scalar(tape, made[i]));
    }
    frag_rope result = {.cosine = frag_tape_to(tape, made[0], dtype)};
    result.sine = frag_tape_to(tape, made[1], dtype);
    frag_tape_drop(tape, angles);
    frag_tape_drop(tape, both);
    frag_tape_drop(tape, made[0]);
    frag_tape_drop(tape, made[1]);
    frag_tape_set_recording(tape, was);
    return result;
}

frag_rope frag_rope_make(frag_tape *tape, uint64_t width, uint64_t tokens, frag_dtype dtype)
{
    return make_angles(tape, width, tokens, dtype, false);
}

frag_rope frag_rope_make_half(frag_tape *tape, uint64_t width, uint64_t tokens, frag_dtype dtype)
{
    return make_angles(tape, width, tokens, dtype, true);
}

frag_rope frag_rope_make_complex(frag_tape *tape, uint64_t width, uint64_t tokens)
{
    frag_tensor positions = frag_tape_empty(tape, tokens, FRAG_F32);
    frag_tensor angles = frag_tape_empty(tape, tokens * (width / 2), FRAG_F32);
    frag_tape_drop(tape, positions);
    frag_tensor ones = frag_tape_empty(tape, tokens * (width / 2), FRAG_F32);
    frag_tensor made = frag_tape_empty(tape, tokens * width, FRAG_F32);
    frag_tape_drop(tape, ones);
    frag_tape_set(tape, &made, frag_tape_empty(tape, tokens * width, FRAG_F32));
    frag_tape_drop(tape, angles);
    return (frag_rope){.cosine = made};
}

frag_rope frag_rope_pair(frag_tape *tape, frag_rope angles)
{
    frag_rope made = {.cosine = frag_tape_empty_like(tape, angles.cosine)};
    made.sine = frag_tape_empty_like(tape, angles.sine);
    return made;
}

/* torch.cat((-x2, x1), dim=-1), or a stack of both, which takes the same. */
static frag_tensor rotate_half(frag_tape *tape, frag_tensor x)
{
    uint64_t half = frag_tape_count(tape, x) / 2;
    frag_tensor first = frag_aten_slice(tape, x, half);
    frag_tensor second = frag_aten_slice(tape, x, half);
    frag_tensor negative = frag_aten_mul_scalar(tape, second);
    frag_tensor made = frag_aten_cat(tape, negative, first, frag_tape_dtype(tape, x));
    frag_tape_drop(tape, negative);
    frag_tape_drop(tape, first);
    frag_tape_drop(tape, second);
    return made;
}

frag_tensor frag_rope_apply(frag_tape *tape, frag_tensor x, frag_rope angles)
{
    frag_tensor straight = frag_aten_mul(tape, x, angles.cosine);
    frag_tensor turned = rotate_half(tape, x);
    frag_tape_set(tape, &turned, frag_aten_mul(tape, turned, angles.sine));
    frag_tensor made = frag_aten_add(tape, straight, turned);
    frag_tape_drop(tape, straight);
    frag_tape_drop(tape, turned);
    return made;
}

/* a * cos - b * sin, or a * cos + b * sin */
static frag_tensor combine(frag_tape *tape, const frag_tensor of[2], frag_rope angles, bool is_sum)
{
    frag_tensor one = frag_aten_mul(tape, of[0], angles.cosine);
    frag_tensor other = frag_aten_mul(tape, of[1], angles.sine);
    frag_tensor made = (is_sum ? frag_aten_add : frag_aten_sub)(tape, one, other);
    frag_tape_drop(tape, other);
    frag_tape_drop(tape, one);
    return made;
}

static frag_tensor turn_halves(frag_tape *tape, const frag_tensor halves[2], frag_rope angles)
{
    frag_tensor first = combine(tape, halves, angles, false);
    frag_tensor second = combine(tape, (frag_tensor[]){halves[1], halves[0]}, angles, true);
    frag_tensor made = frag_aten_cat(tape, first, second, frag_tape_dtype(tape, first));
    frag_tape_drop(tape, first);
    frag_tape_drop(tape, second);
    return made;
}

frag_tensor frag_rope_apply_half(frag_tape *tape, frag_tensor x, frag_rope angles)
{
    frag_tensor halves[2];
    frag_aten_split(tape, x, halves, 2);
    frag_tensor made = turn_halves(tape, halves, angles);
    frag_tape_drop(tape, halves[0]);
    frag_tape_drop(tape, halves[1]);
    return made;
}

frag_tensor frag_rope_apply_wide(frag_tape *tape, frag_tensor x, frag_rope angles)
{
    frag_tensor wide = frag_tape_to(tape, x, FRAG_F32);
    frag_tensor straight = frag_aten_mul(tape, wide, angles.cosine);
    frag_tape_drop(tape, wide);
    wide = frag_tape_to(tape, x, FRAG_F32);
    frag_tensor turned = rotate_half(tape, wide);
    frag_tape_drop(tape, wide);
    frag_tape_set(tape, &turned, frag_aten_mul(tape, turned, angles.sine));
    frag_tensor made = frag_aten_add(tape, straight, turned);
    frag_tape_drop(tape, straight);
    frag_tape_drop(tape, turned);
    return made;
}

uint64_t frag_rope_width(const frag_network *of)
{
    return ((uint64_t)((double)of->head_width * of->rotary_share) + 1) / 2 * 2;
}

frag_rope_parts frag_rope_split(frag_tape *tape, frag_tensor x, uint64_t head_width, uint64_t width)
{
    uint64_t rows = frag_tape_count(tape, x) / head_width;
    frag_rope_parts made = {.turned = width == head_width ? frag_aten_alias(tape, x)
                                                          : frag_aten_slice(tape, x, rows * width)};
    made.passed = frag_aten_slice(tape, x, rows * (head_width - width));
    return made;
}

void frag_rope_apply_apart(frag_tape *tape, frag_tensor *const names[2], frag_rope angles,
                           bool is_paired)
{
    frag_tensor halves[2][2] = {{0}};
    const frag_rope half = {
        frag_tape_view(tape, angles.cosine, frag_tape_count(tape, angles.cosine) / 2),
        frag_tape_view(tape, angles.sine, frag_tape_count(tape, angles.sine) / 2)};
    for (uint32_t i = 0; i < 4 && is_paired; i++) {
        frag_tensor x = *names[i / 2];
        halves[i / 2][i % 2] = frag_aten_slice(tape, x, frag_tape_count(tape, x) / 2);
        frag_tape_set_strided(tape, halves[i / 2][i % 2]);
    }
    frag_tensor made[2];
    for (uint32_t i = 0; i < 2; i++)
        made[i] = is_paired ? turn_halves(tape, halves[i], half)
                            : frag_rope_apply(tape, *names[i], angles);
    for (uint32_t i = 0; i < 2; i++) {
        frag_tape_drop(tape, halves[i][0]);
        frag_tape_drop(tape, halves[i][1]);
        frag_tape_set(tape, names[i], made[i]);
    }
    frag_tape_drop(tape, half.cosine);
    frag_tape_drop(tape, half.sine);
}

void frag_rope_apply_complex(frag_tape *tape, frag_tensor *const names[2], frag_rope angles,
                             bool is_moved)
{
    frag_tensor wide[2];
    for (uint32_t i = 0; i < 2; i++)
        wide[i] = frag_tape_to(tape, *names[i], FRAG_F32);
    for (uint32_t i = 0; i < 2; i++) {
        frag_dtype dtype = frag_tape_dtype(tape, *names[i]);
        frag_tensor turned = frag_aten_mul_complex(tape, wide[i], angles.cosine);
        /* The gradient of queries is a part of each row, of which a cast makes rows. */
        bool is_copied = i == 0 && (dtype == FRAG_F32 || is_moved);
        frag_tensor real =
            is_copied ? frag_aten_view_copied(tape, turned) : frag_aten_view(tape, turned);
        frag_tape_drop(tape, turned);
        frag_tape_set(tape, names[i], frag_tape_to(tape, real, dtype));
        frag_tape_drop(tape, real);
    }
    frag_tape_drop(tape, wide[0]);
    frag_tape_drop(tape, wide[1]);
}

void frag_rope_turn_parts(frag_tape *tape, const frag_network *of, frag_tensor qkv[3],
                          frag_rope angles)
{
    frag_rope_parts parts[2];
    for (uint32_t i = 0; i < 2; i++)
        parts[i] = frag_rope_split(tape, qkv[i], of->head_width, frag_rope_width(of));
    frag_tensor made[2];
    for (uint32_t i = 0; i < 2; i++)
        made[i] = frag_rope_apply(tape, parts[i].turned, angles);
    for (uint32_t i = 0; i < 2; i++)
        frag_tape_set(
            tape, &made[i],
            frag_aten_cat(tape, made[i], parts[i].passed, frag_tape_dtype(tape, made[i])));
    for (uint32_t i = 0; i < 2; i++) {
        frag_tape_drop(tape, parts[i].turned);
        frag_tape_drop(tape, parts[i].passed);
        frag_tape_set(tape, &qkv[i], made[i]);
    }
}
