/* Float8Linear of torchao 0.14 (float8_linear.py) with a scale for each tensor, without
 * torch.compile: factors of all three products are brought into 8 bits anew for each. */
#include "workload/tape/aten.h"

/* A tensor in 8 bits and its scale. */
typedef struct small_tensor {
    frag_tensor bits;
    frag_tensor scale;
} small_tensor;

static void drop_small(frag_tape *tape, const small_tensor *of)
{
    frag_tape_drop(tape, of->bits);
    frag_tape_drop(tape, of->scale);
}

/* torch.max(torch.abs(x)), which lays out what is turned. */
static frag_tensor find_largest(frag_tape *tape, frag_tensor of, bool is_turned)
{
    uint64_t count = frag_tape_count(tape, of);
    frag_dtype dtype = frag_tape_dtype(tape, of);
    frag_tensor positive = frag_tape_empty(tape, count, dtype);
    frag_tensor largest = frag_tape_empty(tape, 1, dtype);
    frag_tensor laid = is_turned ? frag_tape_empty(tape, count, dtype) : 0;
    frag_aten_reduce_buffers(tape, &(frag_reduction){1, count, true, frag_dtype_bytes(dtype)});
    frag_tape_drop(tape, laid);
    frag_tape_drop(tape, positive);
    return largest;
}

/* tensor_to_scale: in fp64, then fp32. */
static frag_tensor find_scale(frag_tape *tape, frag_tensor of, bool is_turned)
{
    frag_tensor largest = find_largest(tape, of, is_turned);
    frag_tensor wide = frag_tape_empty(tape, 1, FRAG_I64);
    frag_tensor clamped = frag_tape_empty(tape, 1, FRAG_I64);
    frag_tensor inverse = frag_tape_empty(tape, 1, FRAG_I64);
    frag_tensor result = frag_tape_empty(tape, 1, FRAG_I64);
    frag_tape_drop(tape, clamped);
    frag_tape_drop(tape, inverse);
    frag_tensor scale = frag_tape_empty(tape, 1, FRAG_F32);
    frag_tape_drop(tape, largest);
    frag_tape_drop(tape, wide);
    frag_tape_drop(tape, result);
    return scale;
}

/* hp_tensor_to_float8_dynamic */
static small_tensor shrink(frag_tape *tape, frag_tensor of, bool is_turned)
{
    uint64_t count = frag_tape_count(tape, of);
    frag_tensor scale = find_scale(tape, of, is_turned);
    frag_tensor wide = frag_tape_empty(tape, count, FRAG_F32);
    frag_tensor scaled = frag_tape_empty(tape, count, FRAG_F32);
    frag_tape_drop(tape, wide);
    frag_tensor clamped = frag_tape_empty(tape, count, FRAG_F32);
    small_tensor made = {frag_tape_empty(tape, count, FRAG_BOOL), scale};
    frag_tape_drop(tape, scaled);
    frag_tape_drop(tape, clamped);
    return made;
}

/* torch._scaled_mm: the left factor must lie in rows, the right one in columns; those that do not
 * are copied. */
static frag_tensor multiply(frag_tape *tape, const small_tensor factors[2],
                            const bool are_copied[2], frag_tensor like, uint64_t count)
{
    frag_tensor kept[4] = {0};
    for (uint32_t i = 0; i < 2; i++)
        kept[i] = are_copied[i]
                      ? frag_tape_empty(tape, frag_tape_count(tape, factors[i].bits), FRAG_BOOL)
                      : 0;
    for (uint32_t i = 2; i < 4; i++)
        kept[i] = frag_tape_empty(tape, 1, FRAG_F32);
    frag_tensor made = frag_tape_empty(tape, count, frag_tape_dtype(tape, like));
    frag_tape_use_blas(tape);
    frag_tape_use_blas_lt(tape);
    frag_tape_drop_all(tape, kept, 4);
    return made;
}

/* saved: x, weight; so are the gradients. */
static void float8_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                            frag_tensor *out)
{
    const frag_tensor x = node->saved[0];
    const frag_tensor weight = node->saved[1];
    const small_tensor first[2] = {shrink(tape, in[0], false), shrink(tape, weight, true)};
    frag_tensor made =
        multiply(tape, first, (bool[]){false, true}, in[0], frag_tape_count(tape, x));
    const small_tensor second[2] = {shrink(tape, in[0], false), shrink(tape, x, false)};
    frag_tensor turned =
        multiply(tape, second, (bool[]){true, true}, in[0], frag_tape_count(tape, weight));
    for (uint32_t i = 0; i < 2; i++) {
        drop_small(tape, &first[i]);
        drop_small(tape, &second[i]);
    }
    out[0] = frag_tape_view(tape, made, frag_tape_count(tape, x));
    out[1] = frag_tape_view(tape, turned, frag_tape_count(tape, weight));
    frag_tape_drop(tape, made);
    frag_tape_drop(tape, turned);
}

static frag_tensor apply(frag_tape *tape, frag_tensor x, frag_tensor weight, uint64_t columns)
{
    uint64_t inner = frag_tape_count(tape, weight) / columns;
    uint64_t count = frag_tape_count(tape, x) / inner * columns;
    const small_tensor factors[2] = {shrink(tape, x, false), shrink(tape, weight, true)};
    frag_tensor made = multiply(tape, factors, (bool[]){false, false}, x, count);
    drop_small(tape, &factors[0]);
    drop_small(tape, &factors[1]);
    return made;
}

frag_tensor frag_aten_linear_float8(frag_tape *tape, frag_tensor x, frag_tensor weight,
                                    frag_tensor bias, uint64_t columns)
{
    frag_tensor turned = frag_aten_view(tape, weight);
    frag_tape_set_strided(tape, turned);
    frag_tensor made = apply(tape, x, turned, columns);
    frag_node *node =
        frag_tape_record(tape, float8_backward, (frag_tensor[]){x, turned}, 2, &made, 1);
    /* A function of Python saves when it is through. */
    frag_tape_save_made(tape, node, x);
    frag_tape_save_made(tape, node, turned);
    frag_tape_drop(tape, turned);
    if (bias != 0)
        frag_tape_set(tape, &made, frag_aten_add(tape, made, bias));
    return made;
}
