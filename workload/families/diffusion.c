#include "workload/families/diffusion.h"

frag_tensor frag_diffusion_waves(frag_tape *tape, uint64_t count, uint64_t width, bool is_wide)
{
    uint64_t half = width / 2;
    frag_tensor exponent = frag_tape_empty(tape, half, FRAG_F32);
    frag_tape_set(tape, &exponent, frag_tape_empty(tape, half, FRAG_F32));
    frag_tape_set(tape, &exponent, frag_tape_empty(tape, half, FRAG_F32));
    frag_tensor made = frag_tape_empty(tape, half, FRAG_F32);
    frag_tensor typed = is_wide ? 0 : frag_tape_empty(tape, count, FRAG_F32);
    frag_tensor product = frag_tape_empty(tape, count * half, FRAG_F32);
    frag_tape_drop(tape, typed);
    frag_tape_set(tape, &made, product);
    frag_tape_set(tape, &made, frag_tape_empty(tape, count * half, FRAG_F32));
    frag_tensor sine = frag_tape_empty(tape, count * half, FRAG_F32);
    frag_tensor cosine = frag_tape_empty(tape, count * half, FRAG_F32);
    frag_tensor both = frag_tape_empty(tape, count * width, FRAG_F32);
    frag_tape_drop(tape, sine);
    frag_tape_drop(tape, cosine);
    frag_tape_set(tape, &made, both);
    frag_tape_set(tape, &made, frag_tape_empty(tape, count * width, FRAG_F32));
    frag_tape_drop(tape, exponent);
    return made;
}

frag_tensor frag_diffusion_embed(frag_tape *tape, const frag_linear layers[2], frag_tensor x)
{
    frag_tensor made = frag_walk_apply(tape, x, &layers[0]);
    frag_tape_set(tape, &made, frag_aten_silu(tape, made));
    frag_tape_set(tape, &made, frag_walk_apply(tape, made, &layers[1]));
    return made;
}

frag_tensor frag_diffusion_loss(frag_tape *tape, frag_tensor prediction, const frag_batch *batch)
{
    frag_tensor wide = frag_tape_to(tape, prediction, FRAG_F32);
    frag_tensor target = frag_tape_to(tape, batch->labels, FRAG_F32);
    frag_tensor loss = frag_aten_mse_loss(tape, wide, target);
    frag_tape_drop(tape, target);
    frag_tape_drop(tape, wide);
    frag_tape_drop(tape, prediction);
    return loss;
}
