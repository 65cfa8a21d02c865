/* Layers of an encoder alone; blocks of an encoder and of a decoder that looks at what it made. */
#include "workload/families/family.h"

void frag_encoder_project(frag_tape *tape, const frag_encoder_layer *at, frag_tensor x,
                          const frag_batch *batch, frag_tensor qkv[3])
{
    for (uint32_t i = 0; i < 3; i++) {
        qkv[i] = frag_walk_apply(tape, x, &at->qkv[i]);
        /* Flash's gradients lie as its inputs do, which come back from the host in one piece. */
        bool is_laid = frag_aten_is_flash(tape, frag_tape_dtype(tape, qkv[i])) &&
                       frag_tape_saves_on_host(tape);
        bool is_turned = frag_aten_is_turned(tape, qkv[i], i, batch->count);
        qkv[i] = frag_walk_split_heads(tape, qkv[i], is_laid || is_turned);
    }
}

frag_tensor frag_encoder_mix(frag_tape *tape, const frag_model *model, const frag_tensor qkv[3],
                             const frag_batch *batch, frag_tensor *weights)
{
    const frag_attention_shape shape = frag_model_attention(model, batch);
    const frag_network *of = &model->workload->network;
    const frag_eager_attention how = {.shape = shape,
                                      .softmax = of->family == FRAG_FAMILY_VIT ? FRAG_EAGER_WIDE
                                                                               : FRAG_EAGER_OWN};
    return of->is_eager ? frag_aten_eager_attention(tape, qkv, &how, weights)
                        : frag_aten_attention(tape, qkv, &shape);
}

frag_tensor frag_encoder_attend(frag_tape *tape, const frag_model *model,
                                const frag_encoder_layer *at, frag_tensor x,
                                const frag_batch *batch, const frag_linear *out,
                                frag_tensor *weights)
{
    frag_tensor qkv[3];
    frag_encoder_project(tape, at, x, batch, qkv);
    frag_tensor made = frag_encoder_mix(tape, model, qkv, batch, weights);
    return frag_walk_put_out(tape, made, qkv, out);
}

frag_stack frag_stack_name(const frag_network *of, bool is_decoder)
{
    frag_stack next = {.layers = of->encoder_layers,
                       .heads = of->encoder_heads,
                       .inner = of->encoder_inner,
                       .is_decoder = is_decoder,
                       .has_key_bias = of->family != FRAG_FAMILY_WHISPER};
    if (is_decoder) {
        next.layers = of->layers;
        next.heads = of->heads;
        next.inner = of->inner;
    }
    return next;
}

static frag_attention_layer walk_attention(frag_walk *at, const frag_network *of, bool has_key_bias)
{
    const frag_shape square = {of->width, of->width};
    frag_attention_layer next = {.k = frag_walk_linear(at, square, has_key_bias, FRAG_LORA_K)};
    next.v = frag_walk_linear(at, square, true, FRAG_LORA_V);
    next.q = frag_walk_linear(at, square, true, FRAG_LORA_Q);
    next.out = frag_walk_linear(at, square, true, FRAG_LORA_OUT_PROJ);
    next.norm = frag_walk_norm(at, of->width);
    return next;
}

frag_stack_block frag_walk_stack_block(frag_walk *at, const frag_network *of, const frag_stack *in)
{
    frag_stack_block next = {.self = walk_attention(at, of, in->has_key_bias)};
    if (in->is_decoder)
        next.cross = walk_attention(at, of, in->has_key_bias);
    next.feed = frag_walk_linear(at, (frag_shape){in->inner, of->width}, true, FRAG_LORA_FC1);
    next.back = frag_walk_linear(at, (frag_shape){of->width, in->inner}, true, FRAG_LORA_FC2);
    next.norm = frag_walk_norm(at, of->width);
    return next;
}
