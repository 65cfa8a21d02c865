/* How queries meet keys: which choices are described for a network, and go with a run. */
#include "workload/description/checks.h"
#include "workload/description/field_tables.h"

static bool has_eager(const frag_network *of)
{
    switch (of->family) {
    case FRAG_FAMILY_GPT2:
    case FRAG_FAMILY_BERT:
    case FRAG_FAMILY_ROBERTA:
    case FRAG_FAMILY_XLM_ROBERTA:
    case FRAG_FAMILY_DISTILBERT:
    case FRAG_FAMILY_ELECTRA:
    case FRAG_FAMILY_ALBERT:
    case FRAG_FAMILY_OPT:
    case FRAG_FAMILY_GPT_NEOX:
    case FRAG_FAMILY_PHI:
    case FRAG_FAMILY_STARCODER2:
    case FRAG_FAMILY_STABLELM:
    case FRAG_FAMILY_NEMOTRON:
    case FRAG_FAMILY_VIT:
        return true;
    default:
        return frag_families[of->family].fields == frag_llama_fields && of->key_rank == 0;
    }
}

/* Kernels of scaled_dot_product_attention, which families with scores of their own do not call. */
static bool has_kernels(const frag_network *of)
{
    return !of->is_eager && has_eager(of);
}

static bool check_kernel(const frag_workload *workload, frag_error *error)
{
    const frag_network *of = &workload->network;
    bool is_half =
        workload->precision != FRAG_PRECISION_FP32 && workload->precision != FRAG_PRECISION_TF32;
    const char *family = frag_families[of->family].name;
    if (!has_kernels(of))
        return frag_fail(error, FRAG_E_INPUT,
                         "attention is flash, efficient or math, which is not described for %s; "
                         "expected sdpa",
                         family);
    if (workload->attention == FRAG_ATTENTION_FLASH && !is_half)
        return frag_fail(error, FRAG_E_INPUT,
                         "attention is flash, which takes 16 bits alone; expected precision bf16, "
                         "fp16, amp-bf16 or amp-fp16 with it");
    if (workload->attention == FRAG_ATTENTION_EFFICIENT && of->heads != of->key_heads)
        return frag_fail(error, FRAG_E_INPUT,
                         "attention is efficient, and several heads share their keys, which that "
                         "kernel does not take; expected sdpa, flash or math");
    if (of->window > 0)
        return frag_fail(error, FRAG_E_INPUT,
                         "attention is flash, efficient or math, which is not described with a "
                         "window; expected sdpa");
    return true;
}

static bool check_softmax(const frag_workload *workload, frag_error *error)
{
    bool is_beside = workload->task == FRAG_TASK_SERVE ||
                     workload->parallel == FRAG_PARALLEL_TENSOR ||
                     workload->parallel == FRAG_PARALLEL_DATA ||
                     workload->checkpoint == FRAG_CHECKPOINT_SELECTIVE ||
                     (workload->offload & FRAG_OFFLOAD_ACTIVATIONS) != 0;
    return !workload->keeps_softmax_input || !is_beside ||
           frag_fail(error, FRAG_E_INPUT,
                     "softmax_input is true, which is not described for servers, parallel tensors, "
                     "dp, selective checkpoints and offload of activations");
}

bool frag_workload_check_attention(const frag_workload *workload, frag_error *error)
{
    const frag_network *of = &workload->network;
    if (!check_softmax(workload, error))
        return false;
    if (workload->attention == FRAG_ATTENTION_SDPA)
        return true;
    if (workload->task == FRAG_TASK_SERVE || workload->parallel == FRAG_PARALLEL_TENSOR ||
        workload->parallel == FRAG_PARALLEL_PIPELINE || workload->parallel == FRAG_PARALLEL_DATA)
        return frag_fail(error, FRAG_E_INPUT,
                         "attention is given, which is not described for servers, pipelines, "
                         "parallel tensors and dp; expected sdpa");
    bool has_scores =
        workload->attention == FRAG_ATTENTION_EAGER || workload->attention == FRAG_ATTENTION_MATH;
    if (has_scores && (workload->offload & FRAG_OFFLOAD_ACTIVATIONS) != 0)
        return frag_fail(error, FRAG_E_INPUT,
                         "attention is eager or math, beside which offload of activations is not "
                         "described; expected sdpa");
    if (workload->attention != FRAG_ATTENTION_EAGER)
        return check_kernel(workload, error);
    return has_eager(of) || of->is_eager ||
           frag_fail(error, FRAG_E_INPUT,
                     "attention is eager, which is not described for %s; expected sdpa",
                     frag_families[of->family].name);
}
