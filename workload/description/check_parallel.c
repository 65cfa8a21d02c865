/* Do the fields of a network and the knobs of a run go together with several devices? */
#include <inttypes.h>

#include "workload/description/checks.h"

static bool is_gpt2_or_llama(const frag_network *of)
{
    return of->family == FRAG_FAMILY_GPT2 || frag_network_is_llama(of);
}

uint64_t frag_workload_microbatches(const frag_workload *workload)
{
    return workload->microbatches > 0 ? workload->microbatches : workload->devices;
}

/* What PipelineStage and its schedules take. */
static bool check_pipeline(const frag_workload *workload, frag_error *error)
{
    const frag_network *of = &workload->network;
    uint64_t microbatches = frag_workload_microbatches(workload);
    if (!is_gpt2_or_llama(of))
        return frag_fail(error, FRAG_E_INPUT,
                         "parallel is pipeline; it is described for gpt2 and the families of "
                         "llama, not for %s",
                         frag_families[of->family].name);
    if (workload->accumulate > 1)
        return frag_fail(error, FRAG_E_INPUT,
                         "parallel is pipeline and accumulate %" PRIu64
                         "; expected more microbatches, whose gradients are added up",
                         workload->accumulate);
    if (workload->precision == FRAG_PRECISION_AMP_FP16)
        return frag_fail(error, FRAG_E_INPUT,
                         "parallel is pipeline and precision amp-fp16, whose GradScaler scales a "
                         "loss that the last stage alone has; expected amp-bf16");
    if (workload->tokens.count > 1)
        return frag_fail(error, FRAG_E_INPUT,
                         "parallel is pipeline, whose stages receive into buffers of one size; "
                         "expected tokens of one length");
    if (of->layers < workload->devices)
        return frag_fail(error, FRAG_E_INPUT,
                         "parallel is pipeline with layers %" PRIu64 " and devices %" PRIu64
                         "; expected a layer for each device",
                         of->layers, workload->devices);
    if (microbatches < workload->devices)
        return frag_fail(error, FRAG_E_INPUT,
                         "microbatches is %" PRIu64 " and devices %" PRIu64
                         "; expected one for each device at least",
                         microbatches, workload->devices);
    if (workload->batch % microbatches != 0)
        return frag_fail(error, FRAG_E_INPUT,
                         "batch is %" PRIu64 "; expected a multiple of the microbatches, %" PRIu64,
                         workload->batch, microbatches);
    return true;
}

static bool is_divided(const frag_workload *workload, const char *name, uint64_t count,
                       frag_error *error)
{
    return count % workload->devices == 0 ||
           frag_fail(error, FRAG_E_INPUT,
                     "parallel is tensor, %s %" PRIu64 "; expected a multiple of devices %" PRIu64,
                     name, count, workload->devices);
}

/* Why a network's layers are not cut, or NULL. */
static const char *find_uncut(const frag_network *of)
{
    if (of->is_fused)
        return "fused, whose layer of queries, keys and values would be cut across them";
    if (of->has_whole_norms)
        return "whole_norms, which would see a part of the heads they are over";
    if (of->has_head_norms)
        return "head_norms, whose gradients would differ from device to device";
    if (of->has_attention_bias)
        return "attention_bias";
    if (of->experts > 0)
        return "experts";
    return of->has_inner_bias ? "inner_bias" : NULL;
}

/* What parallelize_module takes, and an optimizer of what comes of it. */
static bool check_tensor(const frag_workload *workload, frag_error *error)
{
    const frag_network *of = &workload->network;
    const char *uncut = find_uncut(of);
    if (!frag_network_is_llama(of))
        return frag_fail(error, FRAG_E_INPUT,
                         "parallel is tensor; it is described for families of llama, not for %s",
                         frag_families[of->family].name);
    if (uncut != NULL)
        return frag_fail(error, FRAG_E_INPUT, "parallel is tensor, and this %s has %s",
                         frag_families[of->family].name, uncut);
    if (workload->keeps_gradients)
        return frag_fail(error, FRAG_E_INPUT,
                         "parallel is tensor; it is described without keep_gradients");
    if (workload->precision == FRAG_PRECISION_AMP_FP16)
        return frag_fail(error, FRAG_E_INPUT,
                         "parallel is tensor and precision amp-fp16, whose GradScaler refuses "
                         "parts of layers beside whole ones; expected amp-bf16");
    if (workload->lora_rank > 0 && workload->checkpoint != FRAG_CHECKPOINT_NONE &&
        (frag_workload_lora_targets(workload) & (FRAG_LORA_DOWN | FRAG_LORA_ALL)) != 0)
        return frag_fail(error, FRAG_E_INPUT,
                         "parallel is tensor with checkpoint and adapters of down_proj, of which "
                         "PyTorch never gives back sums over devices that a block made anew does "
                         "not wait for; expected other lora_targets");
    if (workload->optimizer >= FRAG_OPTIMIZER_ADAFACTOR ||
        workload->optimizer_loop != FRAG_LOOP_SINGLE)
        return frag_fail(error, FRAG_E_INPUT,
                         "parallel is tensor, whose parts of layers torch.optim takes one by one; "
                         "expected optimizer_loop single, and no adafactor or bitsandbytes");
    return is_divided(workload, "heads", of->heads, error) &&
           is_divided(workload, "key_heads", of->key_heads, error) &&
           is_divided(workload, "inner", of->inner, error);
}

static bool is_decoder(const frag_workload *workload)
{
    const frag_family_fields *family = &frag_families[workload->network.family];
    return !family->is_encoder && !family->is_diffusion;
}

/* DataParallel scatters a batch, and runs a thread for each device. */
static bool check_data_parallel(const frag_workload *workload, frag_error *error)
{
    const char *name = frag_families[workload->network.family].name;
    if (!is_decoder(workload) || workload->network.family == FRAG_FAMILY_GPT_NEO)
        return frag_fail(error, FRAG_E_INPUT,
                         "parallel is dp; it is described for decoders but gpt_neo, not for %s",
                         name);
    if (workload->checkpoint != FRAG_CHECKPOINT_NONE)
        return frag_fail(error, FRAG_E_INPUT, "parallel is dp; it is described without checkpoint");
    if (workload->offload != FRAG_OFFLOAD_NONE)
        return frag_fail(error, FRAG_E_INPUT,
                         "parallel is dp with offload, which does not reach the threads that "
                         "DataParallel runs; expected offload none");
    if (workload->keeps_outputs || workload->leak == FRAG_LEAK_OUTPUTS ||
        workload->leak == FRAG_LEAK_CYCLES)
        return frag_fail(error, FRAG_E_INPUT,
                         "parallel is dp; it is described without keep_outputs and leak of "
                         "outputs");
    if (workload->batch % workload->devices != 0)
        return frag_fail(error, FRAG_E_INPUT,
                         "batch is %" PRIu64 "; expected a multiple of devices, %" PRIu64,
                         workload->batch, workload->devices);
    return true;
}

/* fully_shard() of each block, and of the rest. */
static bool check_shards(const frag_workload *workload, frag_error *error)
{
    const frag_family_fields *family = &frag_families[workload->network.family];
    if (family->has_no_blocks || family->has_pairs || family->has_sounds || family->is_diffusion ||
        workload->network.family == FRAG_FAMILY_DEBERTA_V2)
        return frag_fail(error, FRAG_E_INPUT,
                         "parallel is fsdp; it is described for models of one row of blocks, not "
                         "for %s",
                         family->name);
    if (frag_workload_has_autocast(workload) || workload->optimizer == FRAG_OPTIMIZER_ADAFACTOR)
        return frag_fail(error, FRAG_E_INPUT,
                         "parallel is fsdp; it is described without autocast and adafactor");
    if (workload->optimizer >= FRAG_OPTIMIZER_ADAMW_8BIT &&
        workload->optimizer <= FRAG_OPTIMIZER_PAGED_ADAMW_8BIT)
        return frag_fail(error, FRAG_E_INPUT,
                         "parallel is fsdp with an optimizer of bitsandbytes, with which it fails: "
                         "its operators take no shards (DTensor); expected one of torch.optim");
    return true;
}

static bool check_kind(const frag_workload *workload, frag_error *error)
{
    switch (workload->parallel) {
    case FRAG_PARALLEL_PIPELINE:
        return check_pipeline(workload, error);
    case FRAG_PARALLEL_TENSOR:
        return check_tensor(workload, error);
    case FRAG_PARALLEL_DATA:
        return check_data_parallel(workload, error);
    case FRAG_PARALLEL_FSDP:
        return check_shards(workload, error);
    default:
        return true;
    }
}

/* Those that run a part of the model on each device run the words' head themselves. */
static bool check_classes(const frag_workload *workload, frag_error *error)
{
    bool is_whole = workload->parallel == FRAG_PARALLEL_DDP ||
                    workload->parallel == FRAG_PARALLEL_ZERO1 ||
                    workload->parallel == FRAG_PARALLEL_FSDP;
    return is_whole || workload->head == FRAG_HEAD_LM ||
           frag_fail(error, FRAG_E_INPUT,
                     "parallel is given with a head for classes; expected ddp, zero1 or fsdp, or "
                     "head lm");
}

/* Tasks and knobs that the wrapped model is described with. */
static bool check_pass(const frag_workload *workload, frag_error *error)
{
    bool is_whole =
        workload->parallel == FRAG_PARALLEL_DDP || workload->parallel == FRAG_PARALLEL_ZERO1;
    bool is_cut =
        workload->parallel == FRAG_PARALLEL_PIPELINE || workload->parallel == FRAG_PARALLEL_TENSOR;
    if (workload->task != FRAG_TASK_TRAIN && workload->task != FRAG_TASK_EVALUATE)
        return frag_fail(error, FRAG_E_INPUT,
                         "parallel is given; several devices are described in training and "
                         "evaluation, expected task train or evaluate");
    if (workload->task == FRAG_TASK_EVALUATE && workload->parallel == FRAG_PARALLEL_PIPELINE)
        return frag_fail(error, FRAG_E_INPUT,
                         "parallel is pipeline; it is described in training, expected task train");
    if (workload->quantize != FRAG_QUANTIZE_NONE && !is_whole)
        return frag_fail(error, FRAG_E_INPUT,
                         "parallel is given with quantize; expected ddp, or quantize none");
    if (!check_classes(workload, error))
        return false;
    if (workload->loss != FRAG_LOSS_FULL)
        return frag_fail(error, FRAG_E_INPUT,
                         "parallel is given with loss chunked; expected loss full");
    if (is_cut && (workload->offload != FRAG_OFFLOAD_NONE || workload->leak != FRAG_LEAK_NONE ||
                   workload->has_dora || workload->keeps_outputs || workload->is_deleting))
        return frag_fail(error, FRAG_E_INPUT,
                         "parallel is pipeline or tensor with offload, leak, lora_dora, "
                         "keep_outputs or del; expected none of them");
    return true;
}

/* What several devices are described for. */
bool frag_workload_check_parallel(const frag_workload *workload, frag_error *error)
{
    if (workload->parallel != FRAG_PARALLEL_PIPELINE &&
        (workload->microbatches > 0 || workload->schedule != FRAG_SCHEDULE_1F1B))
        return frag_fail(error, FRAG_E_INPUT,
                         "schedule or microbatches is given without a pipeline; expected parallel "
                         "pipeline");
    bool is_mixed = workload->precision == FRAG_PRECISION_MIXED_BF16;
    if (is_mixed && (workload->parallel != FRAG_PARALLEL_FSDP ||
                     frag_families[workload->network.family].has_images))
        return frag_fail(error, FRAG_E_INPUT,
                         "precision is mixed-bf16, which is what FSDP makes of models over text; "
                         "expected parallel fsdp with it, or precision bf16 or amp-bf16");
    if (workload->parallel != FRAG_PARALLEL_FSDP && !workload->is_resharded)
        return frag_fail(error, FRAG_E_INPUT,
                         "reshard is false, and there are no shards; expected parallel fsdp");
    return workload->parallel == FRAG_PARALLEL_NONE ||
           (check_pass(workload, error) && check_kind(workload, error));
}
