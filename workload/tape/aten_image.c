/* What networks do with images besides convolving them: group norm, making them larger. */
#include "workload/tape/aten.h"

/* ---- group norm (ATen/native/cuda/group_norm_kernel.cu): inputs x, weight, bias */
enum { IMAGES, CHANNELS, GROUPS, WEIGHT_TYPE, IS_TURNED };

/* Sums and factors in fp32, for each channel of each image and for each group. */
static void group_norm_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                                frag_tensor *out)
{
    const uint64_t *of = node->numbers;
    uint64_t count = frag_tape_count(tape, in[0]);
    frag_dtype dtype = frag_tape_dtype(tape, in[0]);
    frag_tensor laid = of[IS_TURNED] != 0 ? frag_tape_empty(tape, count, dtype) : 0;
    if (node->edges[0].node != 0)
        out[0] = frag_tape_empty(tape, count, dtype);
    for (uint32_t i = 1; i < 3; i++)
        if (node->edges[i].node != 0)
            out[i] = frag_tape_empty(tape, of[CHANNELS], (frag_dtype)of[WEIGHT_TYPE]);
    const uint64_t counts[] = {of[IMAGES] * of[CHANNELS], of[IMAGES] * of[CHANNELS],
                               of[IMAGES] * of[GROUPS], of[IMAGES] * of[GROUPS],
                               of[IMAGES] * of[CHANNELS]};
    enum { SUMS = 2, PARTS = sizeof counts / sizeof *counts };
    frag_tensor parts[PARTS] = {0};
    for (uint32_t i = 0; i < PARTS && (i < SUMS || out[0] != 0); i++)
        parts[i] = frag_tape_empty(tape, counts[i], FRAG_F32);
    for (uint32_t i = PARTS; i > 0; i--)
        frag_tape_drop(tape, parts[i - 1]);
    frag_tape_drop(tape, laid);
}

frag_tensor frag_aten_group_norm(frag_tape *tape, frag_tensor x, const frag_aten_groups *of)
{
    const frag_tensor parameters[] = {of->weight, of->bias};
    frag_tape_fetch(tape, parameters, 2);
    bool is_cast = frag_tape_autocast(tape) != FRAG_F32;
    frag_tensor typed = is_cast ? frag_tape_to(tape, x, FRAG_F32) : frag_tape_keep(tape, x);
    frag_dtype dtype = frag_tape_dtype(tape, typed);
    uint64_t channels = frag_tape_count(tape, of->weight);
    frag_tensor made = frag_tape_empty(tape, frag_tape_count(tape, typed), dtype);
    frag_tensor mean = frag_tape_empty(tape, of->images * of->groups, dtype);
    frag_tensor deviation = frag_tape_empty(tape, of->images * of->groups, dtype);
    frag_tensor factor = frag_tape_empty(tape, of->images * channels, FRAG_F32);
    frag_tape_drop(tape, frag_tape_empty(tape, of->images * channels, FRAG_F32));
    frag_tape_drop(tape, factor);
    frag_node *node = frag_tape_record(tape, group_norm_backward,
                                       (frag_tensor[]){typed, of->weight, of->bias}, 3, &made, 1);
    frag_tape_save(tape, node, typed);
    frag_tape_save(tape, node, of->weight);
    frag_tape_save_made(tape, node, mean);
    frag_tape_save_made(tape, node, deviation);
    node->numbers[IMAGES] = of->images;
    node->numbers[CHANNELS] = channels;
    node->numbers[GROUPS] = of->groups;
    node->numbers[WEIGHT_TYPE] = frag_tape_dtype(tape, of->weight);
    node->numbers[IS_TURNED] = of->is_turned;
    frag_tape_drop(tape, mean);
    frag_tape_drop(tape, deviation);
    frag_tape_drop(tape, typed);
    frag_tape_send_back(tape, parameters, 2);
    return made;
}

/* ---- twice as many pixels along each side, each the nearest one */
enum { UPSAMPLED = 4 };

static void upsample_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                              frag_tensor *out)
{
    (void)node;
    out[0] = frag_tape_empty(tape, frag_tape_count(tape, in[0]) / UPSAMPLED,
                             frag_tape_dtype(tape, in[0]));
}

frag_tensor frag_aten_upsample(frag_tape *tape, frag_tensor x)
{
    bool is_cast = frag_tape_autocast(tape) != FRAG_F32;
    frag_tensor typed = is_cast ? frag_tape_to(tape, x, FRAG_F32) : frag_tape_keep(tape, x);
    frag_tensor made = frag_tape_empty(tape, frag_tape_count(tape, typed) * UPSAMPLED,
                                       frag_tape_dtype(tape, typed));
    frag_tape_record(tape, upsample_backward, &typed, 1, &made, 1);
    frag_tape_drop(tape, typed);
    return made;
}
