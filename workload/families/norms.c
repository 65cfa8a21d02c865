/* Norms of Llama and of what came after it, operator by operator as their Python has them. */
#include "workload/families/family.h"

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

/* Cohere's: (x - mean) * rsqrt(mean of squares of that) * weight, in fp32 to the end. */
static frag_tensor centred_norm(frag_tape *tape, frag_tensor x, frag_tensor weight, uint64_t width)
{
    frag_tensor hidden = frag_tape_to(tape, x, FRAG_F32);
    frag_tensor mean = frag_aten_mean_last(tape, hidden, width);
    frag_tensor made = frag_aten_sub(tape, hidden, mean);
    frag_tape_set(tape, &made, frag_aten_pow(tape, made));
    frag_tensor variance = frag_aten_mean_last(tape, made, width);
    frag_tape_clear(tape, &made);
    made = frag_aten_sub(tape, hidden, mean);
    frag_tensor root = frag_aten_add_scalar(tape, variance);
    frag_tape_set(tape, &root, frag_aten_rsqrt(tape, root));
    frag_tensor scaled = frag_aten_mul(tape, made, root);
    frag_tape_drop(tape, root);
    frag_tape_drop(tape, made);
    frag_tape_set(tape, &hidden, scaled);
    frag_tensor factor = frag_tape_to(tape, weight, FRAG_F32);
    frag_tensor product = frag_aten_mul(tape, factor, hidden);
    frag_tape_drop(tape, factor);
    frag_tape_set(tape, &hidden, product);
    made = frag_tape_to(tape, hidden, frag_tape_dtype(tape, x));
    frag_tape_drop(tape, hidden);
    frag_tape_drop(tape, mean);
    frag_tape_drop(tape, variance);
    return made;
}

frag_tensor frag_network_normalise(frag_tape *tape, const frag_network *of, frag_tensor x,
                                   frag_tensor weight, uint64_t width)
{
    frag_tape_fetch(tape, &weight, 1);
    frag_tensor made = of->has_centred_norms ? centred_norm(tape, x, weight, width)
                       : of->has_wide_norms  ? wide_norm(tape, x, weight, width)
                                            : rms_norm(tape, x, weight, width, of->has_exact_parts);
    frag_tape_send_back(tape, &weight, 1);
    return made;
}
