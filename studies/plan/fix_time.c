#include "studies/plan/fix_time.h"

#include <math.h>

static const double bus_bytes_per_second = 25e9;

/* Two operations a weight and token forward; backward four, and two of weights that are frozen;
 * attention's products besides. */
double frag_fix_recomputing_ratio(const frag_workload *workload)
{
    const frag_network *of = &workload->network;
    /* Families with learnt positions have feed-forward parts of two layers, without a gate. */
    bool is_plain = frag_families[of->family].has_learnt_positions;
    bool has_sounds = frag_families[of->family].has_sounds; /* the encoder has other widths */
    if (of->layers == 0 || of->heads == 0 || of->width == 0 || has_sounds)
        return NAN;
    double width = (double)of->width;
    double heads = is_plain ? width : (double)(of->heads * of->head_width);
    double keys = is_plain ? width : (double)(of->key_heads * of->head_width);
    double inner = (double)(of->experts > 0 ? of->experts_chosen * of->expert_inner : of->inner);
    double block = width * (2 * heads + 2 * keys) + (is_plain ? 2 : 3) * width * inner;
    bool has_images = frag_families[of->family].has_images;
    uint64_t tokens = has_images                           ? of->positions
                      : frag_workload_has_tokens(workload) ? frag_lengths_largest(&workload->tokens)
                                                           : 0;
    double attention = 2 * (double)tokens * heads;
    double blocks = (double)of->layers * (block + attention);
    double passes = workload->lora_rank > 0 ? 2 : 3;
    return blocks / (passes * (blocks + width * (double)of->vocabulary));
}

/* A device's shards come for each pass, and gradients of what is trained go. Of shards the weights
 * are a little more, with what is gathered. */
static uint64_t count_moved_shards(const frag_workload *workload, uint64_t weights)
{
    bool is_sharded = workload->parallel == FRAG_PARALLEL_FSDP;
    uint64_t shards = is_sharded ? weights : weights / workload->devices;
    bool is_training = workload->task == FRAG_TASK_TRAIN;
    return (1 + (uint64_t)is_training + (is_training && workload->lora_rank == 0)) * shards;
}

uint64_t frag_fix_moved_bytes(frag_fix_transfer what, const frag_workload *workload,
                              const frag_fit_parts *parts)
{
    const uint64_t *bytes = parts->bytes;
    switch (what) {
    case FRAG_FIX_MOVES_ACTIVATIONS:
        return 2 * bytes[FRAG_REQUEST_ACTIVATION];
    case FRAG_FIX_MOVES_GRADIENTS: /* of adapters, which are small, it is not told */
        return workload->lora_rank == 0 ? 2 * bytes[FRAG_REQUEST_WEIGHT] : 0;
    case FRAG_FIX_MOVES_SHARDS:
        return count_moved_shards(workload, bytes[FRAG_REQUEST_WEIGHT]);
    case FRAG_FIX_MOVES_WEIGHTS:
        return bytes[FRAG_REQUEST_WEIGHT];
    case FRAG_FIX_MOVES_NOTHING:
        break;
    }
    return 0;
}

double frag_fix_moving_seconds(uint64_t bytes)
{
    return (double)bytes / bus_bytes_per_second;
}
