/* What is there besides or in place of tensors: offload, checkpoints, masks. */
#include <inttypes.h>

#include "workload/description/checks.h"

static bool check_activations(const frag_workload *workload, frag_error *error)
{
    const frag_family_fields *family = &frag_families[workload->network.family];
    bool is_graph = workload->task == FRAG_TASK_TRAIN ||
                    (workload->task == FRAG_TASK_EVALUATE && !workload->has_no_grad);
    if (workload->task == FRAG_TASK_RLHF)
        return frag_fail(error, FRAG_E_INPUT,
                         "offload is activations, which is not described in task rlhf; expected "
                         "optimizer or none");
    if (!is_graph)
        return frag_fail(error, FRAG_E_INPUT,
                         "offload is activations, and none are saved without gradients; expected "
                         "task train, or evaluate with no_grad false");
    if (family->has_no_offload)
        return frag_fail(error, FRAG_E_INPUT,
                         "offload is activations, which is not described for %s; expected none",
                         family->name);
    if (workload->loss == FRAG_LOSS_CHUNKED)
        return frag_fail(error, FRAG_E_INPUT,
                         "loss is chunked; expected no offload of activations with it");
    return true;
}

/* torchao's CPUOffloadOptimizer takes all parameters of one device, and asks for set_to_none. */
static bool check_optimizer(const frag_workload *workload, frag_error *error)
{
    bool is_stepped = workload->task == FRAG_TASK_TRAIN || workload->task == FRAG_TASK_RLHF;
    if (!is_stepped)
        return frag_fail(error, FRAG_E_INPUT,
                         "offload is optimizer, and there is none; expected task train with it");
    if (workload->optimizer > FRAG_OPTIMIZER_RMSPROP ||
        workload->optimizer_loop != FRAG_LOOP_FOREACH)
        return frag_fail(error, FRAG_E_INPUT,
                         "offload is optimizer, which is described for adamw, adam, sgd, momentum "
                         "and rmsprop, with optimizer_loop left out");
    if (workload->precision == FRAG_PRECISION_AMP_FP16)
        return frag_fail(error, FRAG_E_INPUT,
                         "offload is optimizer, whose gradients a GradScaler would look at before "
                         "they are on the host; expected another precision than amp-fp16");
    if (workload->keeps_gradients)
        return frag_fail(error, FRAG_E_INPUT,
                         "offload is optimizer, which gives gradients back; expected "
                         "keep_gradients false");
    if ((workload->offload & FRAG_OFFLOAD_GRADIENTS) != 0 && workload->accumulate > 1)
        return frag_fail(error, FRAG_E_INPUT,
                         "offload has gradients and accumulate is %" PRIu64
                         "; each batch would overwrite those before: expected accumulate 1",
                         workload->accumulate);
    return true;
}

/* accelerate's cpu_offload: hooks around the forward pass of each module. */
static bool check_parameters(const frag_workload *workload, frag_error *error)
{
    const frag_family_fields *family = &frag_families[workload->network.family];
    bool is_read = (workload->task == FRAG_TASK_EVALUATE && workload->has_no_grad) ||
                   workload->task == FRAG_TASK_GENERATE || workload->task == FRAG_TASK_SERVE;
    if (!is_read)
        return frag_fail(error, FRAG_E_INPUT,
                         "offload is parameters, which are not there for a backward pass; expected "
                         "task evaluate or generate with it, or parallel fsdp");
    if (frag_workload_has_autocast(workload))
        return frag_fail(error, FRAG_E_INPUT,
                         "offload is parameters, of which autocast would keep a copy for each "
                         "pass; expected precision bf16, fp16 or fp32");
    if (workload->quantize != FRAG_QUANTIZE_NONE || workload->lora_rank > 0)
        return frag_fail(error, FRAG_E_INPUT,
                         "offload is parameters, which is not described beside quantize and "
                         "lora_rank");
    const frag_network *of = &workload->network;
    bool is_read_otherwise = (family->has_images && !family->is_diffusion) || family->has_samples ||
                             family->has_graphs || family->has_sounds;
    if (is_read_otherwise || of->family == FRAG_FAMILY_DEBERTA_V2 || of->experts > 0 ||
        of->key_rank > 0 || of->has_sinks)
        return frag_fail(error, FRAG_E_INPUT,
                         "offload is parameters, which is not described for %s; expected none",
                         family->name);
    return true;
}

/* FSDP's CPUOffloadPolicy, which takes the optimizer along. */
static bool check_sharded_parameters(const frag_workload *workload, frag_error *error)
{
    return workload->optimizer <= FRAG_OPTIMIZER_RMSPROP ||
           frag_fail(error, FRAG_E_INPUT,
                     "offload is parameters with parallel fsdp, whose optimizer runs on the host; "
                     "it is described for adamw, adam, sgd, momentum and rmsprop");
}

static bool check_offload(const frag_workload *workload, frag_error *error)
{
    const uint64_t offload = workload->offload;
    if (offload == FRAG_OFFLOAD_NONE)
        return true;
    bool is_sharded = workload->parallel == FRAG_PARALLEL_FSDP;
    uint64_t others = offload & ~(uint64_t)FRAG_OFFLOAD_ACTIVATIONS;
    if (workload->parallel != FRAG_PARALLEL_NONE && others != 0 &&
        !(is_sharded && others == FRAG_OFFLOAD_PARAMETERS))
        return frag_fail(error, FRAG_E_INPUT,
                         "parallel is given, beside which only activations are offloaded, and "
                         "parameters with fsdp, the optimizer and gradients with them; expected "
                         "one of these, or parallel none");
    if (workload->precision == FRAG_PRECISION_FP8)
        return frag_fail(error, FRAG_E_INPUT,
                         "precision is fp8, beside which offload is not described");
    if ((offload & FRAG_OFFLOAD_GRADIENTS) != 0 && (offload & FRAG_OFFLOAD_OPTIMIZER) == 0)
        return frag_fail(error, FRAG_E_INPUT,
                         "offload is gradients, which the optimizer takes there; expected "
                         "optimizer,gradients");
    if ((offload & FRAG_OFFLOAD_ACTIVATIONS) != 0 && !check_activations(workload, error))
        return false;
    if ((offload & FRAG_OFFLOAD_OPTIMIZER) != 0 && !check_optimizer(workload, error))
        return false;
    if ((offload & FRAG_OFFLOAD_PARAMETERS) == 0)
        return true;
    return is_sharded ? check_sharded_parameters(workload, error)
                      : check_parameters(workload, error);
}

/* ---- checkpoints */
static bool are_blocks_alike(const frag_network *of)
{
    for (uint64_t i = 1; i < of->layers; i++)
        if (frag_network_has_window(of, i) != frag_network_has_window(of, 0) ||
            frag_network_has_experts(of, i) != frag_network_has_experts(of, 0))
            return false;
    return of->unturned_every == 0;
}

/* One checkpoint around several blocks is the program's own. */
static bool check_groups(const frag_workload *workload, frag_error *error)
{
    const frag_family_fields *family = &frag_families[workload->network.family];
    bool is_one_list = !family->has_pairs && !family->has_sounds && !family->is_diffusion &&
                       workload->network.family != FRAG_FAMILY_MODERNBERT;
    if (workload->task != FRAG_TASK_TRAIN)
        return frag_fail(error, FRAG_E_INPUT,
                         "checkpoint is sqrt; expected task train with it, or checkpoint blocks");
    if (!is_one_list || !are_blocks_alike(&workload->network))
        return frag_fail(error, FRAG_E_INPUT,
                         "checkpoint is sqrt, which is described for models of one list of blocks "
                         "of one kind, not for %s; expected blocks",
                         family->name);
    if (workload->checkpoint_every > 1)
        return frag_fail(error, FRAG_E_INPUT,
                         "checkpoint_every is %" PRIu64
                         " and checkpoint sqrt, which says how many blocks are made anew together; "
                         "expected 1",
                         workload->checkpoint_every);
    return true;
}

static bool check_selective(const frag_workload *workload, frag_error *error)
{
    const frag_family_fields *family = &frag_families[workload->network.family];
    if (family->is_diffusion)
        return frag_fail(error, FRAG_E_INPUT,
                         "checkpoint is selective, and diffusers has checkpoints of whole blocks; "
                         "expected blocks");
    bool is_t5 =
        workload->network.family == FRAG_FAMILY_T5 || workload->network.family == FRAG_FAMILY_MT5;
    if (is_t5)
        return frag_fail(error, FRAG_E_INPUT,
                         "checkpoint is selective, which is not described for %s; expected blocks",
                         family->name);
    if (workload->quantize != FRAG_QUANTIZE_NONE || workload->precision == FRAG_PRECISION_FP8)
        return frag_fail(error, FRAG_E_INPUT,
                         "checkpoint is selective, which is not described beside quantize and fp8; "
                         "expected blocks");
    return true;
}

static bool check_checkpoint(const frag_workload *workload, frag_error *error)
{
    const frag_family_fields *family = &frag_families[workload->network.family];
    const uint64_t checkpoint = workload->checkpoint;
    if (workload->checkpoint_every > 1 && family->is_diffusion)
        return frag_fail(error, FRAG_E_INPUT,
                         "checkpoint_every is %" PRIu64
                         ", and diffusers has checkpoints in all blocks or in none; expected 1",
                         workload->checkpoint_every);
    if (workload->checkpoint_every > 1 && checkpoint == FRAG_CHECKPOINT_NONE)
        return frag_fail(error, FRAG_E_INPUT,
                         "checkpoint_every is %" PRIu64 "; expected checkpoint blocks with it",
                         workload->checkpoint_every);
    if (family->has_no_blocks && checkpoint != FRAG_CHECKPOINT_NONE)
        return frag_fail(error, FRAG_E_INPUT,
                         "checkpoint is %s, and %s has no blocks for it; expected none",
                         checkpoint == FRAG_CHECKPOINT_SQRT        ? "sqrt"
                         : checkpoint == FRAG_CHECKPOINT_SELECTIVE ? "selective"
                                                                   : "blocks",
                         family->name);
    bool is_whole = checkpoint == FRAG_CHECKPOINT_NONE || checkpoint == FRAG_CHECKPOINT_BLOCKS;
    bool is_copied = workload->parallel == FRAG_PARALLEL_NONE ||
                     workload->parallel == FRAG_PARALLEL_DDP ||
                     workload->parallel == FRAG_PARALLEL_ZERO1;
    if (!is_whole && !is_copied)
        return frag_fail(error, FRAG_E_INPUT,
                         "checkpoint is sqrt or selective, which is described on one device, and "
                         "with parallel ddp and zero1; expected blocks");
    if (checkpoint == FRAG_CHECKPOINT_SQRT)
        return check_groups(workload, error);
    return checkpoint != FRAG_CHECKPOINT_SELECTIVE || check_selective(workload, error);
}

/* ---- masks */
/* Linear layers that stand in no block are named as others are, or not at all. */
static bool has_named_layers(const frag_workload *workload)
{
    const frag_network *of = &workload->network;
    const frag_family_fields *family = &frag_families[of->family];
    bool is_narrow = of->embedding_width > 0 && of->embedding_width != of->width;
    bool is_other = of->family == FRAG_FAMILY_DISTILBERT || of->family == FRAG_FAMILY_ELECTRA ||
                    of->family == FRAG_FAMILY_ALBERT;
    return !family->has_no_blocks && !family->is_diffusion && !is_narrow && !is_other &&
           of->experts == 0 && of->key_rank == 0;
}

static bool check_prune(const frag_workload *workload, frag_error *error)
{
    if (workload->prune <= 0)
        return true;
    if (!has_named_layers(workload))
        return frag_fail(error, FRAG_E_INPUT, "prune is given, which is not described for %s",
                         frag_families[workload->network.family].name);
    if (workload->lora_rank > 0 || workload->quantize != FRAG_QUANTIZE_NONE ||
        workload->precision == FRAG_PRECISION_FP8 || workload->parallel != FRAG_PARALLEL_NONE ||
        workload->optimizer == FRAG_OPTIMIZER_GALORE_ADAMW ||
        (workload->offload & FRAG_OFFLOAD_PARAMETERS) != 0 || workload->task == FRAG_TASK_RLHF)
        return frag_fail(error, FRAG_E_INPUT,
                         "prune is given, which is not described beside lora_rank, quantize, fp8, "
                         "parallel, galore-adamw, offload parameters and task rlhf; expected none "
                         "of them");
    return true;
}

bool frag_workload_check_memory(const frag_workload *workload, frag_error *error)
{
    return check_checkpoint(workload, error) && check_offload(workload, error) &&
           check_prune(workload, error);
}
