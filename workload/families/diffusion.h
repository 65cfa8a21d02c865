/* What networks of diffusion have in common, as diffusers 0.42 has it: numbers of time as waves and
 * vectors, the loss, and generation. */
#ifndef FRAG_FAMILIES_DIFFUSION_H
#define FRAG_FAMILIES_DIFFUSION_H

#include "workload/families/family.h"

/* Sines and cosines of count numbers, width of each, in fp32 (models/embeddings.py,
 * get_timestep_embedding); is_wide: the numbers are in fp32. */
frag_tensor frag_diffusion_waves(frag_tape *tape, uint64_t count, uint64_t width, bool is_wide);
/* linear(silu(linear(x))); x is borrowed. */
frag_tensor frag_diffusion_embed(frag_tape *tape, const frag_linear layers[2], frag_tensor x);
/* mse_loss(prediction.float(), noise.float()); prediction is used up. */
frag_tensor frag_diffusion_loss(frag_tape *tape, frag_tensor prediction, const frag_batch *batch);
/* From noise to latents in so many steps: with the text and without it, or of a transformer with
 * guidance as a number. */
void frag_unet_denoise(frag_tape *tape, const frag_model *model, frag_batch *batch, uint64_t steps);
void frag_flux_denoise(frag_tape *tape, const frag_model *model, frag_batch *batch, uint64_t steps);
void frag_flux2_denoise(frag_tape *tape, const frag_model *model, frag_batch *batch,
                        uint64_t steps);

#endif
