/* What the transformers of FLUX.1 (flux.c) and FLUX.2 (flux2.c) have in common. */
#ifndef FRAG_IMAGE_FLUX_PARTS_H
#define FRAG_IMAGE_FLUX_PARTS_H

#include "workload/families/family.h"

enum { FRAG_FLUX_TIME_WIDTH = 256, FRAG_FLUX_AXES_MAX = 4 };

/* What a forward pass has for all its blocks. */
typedef struct frag_flux_pass {
    const frag_model *model;
    const frag_network *of;
    uint64_t count; /* images */
    frag_tensor condition;
    frag_rope angles;
} frag_flux_pass;

/* Numbers of a patch or token inside; of a predicted patch. */
uint64_t frag_flux_width(const frag_network *of);
uint64_t frag_flux_channels(const frag_network *of);
uint64_t frag_flux_patches(const frag_network *of);
/* Weights of the norms of queries and keys. */
void frag_flux_walk_norms(frag_walk *at, const frag_network *of, frag_tensor norms[2]);
/* Patches, text, places and guidance, what training predicts, and times. */
void frag_flux_load(frag_tape *tape, const frag_model *model, frag_batch *batch);
/* Cosines and sines of places, ids of so many axes each. */
frag_rope frag_flux_angles(frag_tape *tape, const frag_network *of, frag_tensor ids);
/* linear(silu(condition)) */
frag_tensor frag_flux_modulate(frag_tape *tape, const frag_flux_pass *in, const frag_linear *at);
/* Parts of that, each of the width: views. */
void frag_flux_chunk(frag_tape *tape, const frag_flux_pass *in, frag_tensor made,
                     frag_tensor *parts, uint32_t count);
/* Both: parts of linear(silu(condition)). */
void frag_flux_modulate_parts(frag_tape *tape, const frag_flux_pass *in, const frag_linear *at,
                              frag_tensor *parts, uint32_t count);
/* normed * (1 + scale) + shift; passing: dropped as soon as it has been read; NULL: normed has
 * another name. */
frag_tensor frag_flux_shift(frag_tape *tape, frag_tensor normed, const frag_tensor by[2],
                            frag_tensor *passing);
/* Heads of their own, and norms of queries and keys; layout: of these. */
void frag_flux_split_heads(frag_tape *tape, const frag_flux_pass *in, const frag_tensor norms[2],
                           frag_norm_layout layout, frag_tensor qkv[3]);
/* is_apart: the gradient is a part of each row of another, and is laid out first. Queries and keys
 * are used up, and others stand in their places. */
frag_tensor frag_flux_attend(frag_tape *tape, const frag_flux_pass *in, frag_tensor qkv[3],
                             bool is_apart);
/* Of fp16, clip(x, -65504, 65504); x is used up. */
frag_tensor frag_flux_clip(frag_tape *tape, frag_tensor x);
/* The vector of a number for each image, made of its sines and cosines, which *name holds. */
frag_tensor frag_flux_embed_number(frag_tape *tape, const frag_flux_pass *in,
                                   const frag_linear layers[2], frag_tensor x, frag_tensor *name);
/* x.to(dtype) * 1000 */
frag_tensor frag_flux_scale_number(frag_tape *tape, frag_tensor x, frag_dtype dtype);

/* out(norm(hidden) * (1 + scale) + shift) of patches, which are a part of each row with the text's
 * tokens; ends: what scale and shift are made by, and out. hidden is used up. */
frag_tensor frag_flux_put_out(frag_tape *tape, const frag_flux_pass *in, const frag_linear ends[2],
                              frag_tensor hidden);

/* What is predicted of a batch. */
typedef frag_tensor frag_flux_predict(frag_tape *tape, const frag_model *model,
                                      const frag_batch *batch);
/* Guidance is a number that the model reads: each step is one pass. */
void frag_flux_denoise_with(frag_tape *tape, const frag_model *model, frag_batch *batch,
                            uint64_t steps, frag_flux_predict *predict);

#endif
