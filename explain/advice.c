#include "explain/advice.h"

#include <string.h>

#include "sim/base/bytes.h"

/* Which frameworks a step is for, as bits. */
#define BIT(name) (1u << FRAG_FRAMEWORK_##name)
#define NATIVE (BIT(PYTORCH) | BIT(PYTORCH_HIP) | BIT(PYTORCH_NPU))
#define SNAPSHOTS (BIT(PYTORCH) | BIT(PYTORCH_HIP))
#define TORCH (NATIVE | BIT(PYTORCH_ASYNC) | BIT(PYTORCH_XPU) | BIT(PYTORCH_MPS))
#define ALL (~0u)

/* Which verdicts. */
#define FOR(name) (1u << FRAG_OOM_VERDICT_##name)

/* What a step can gain at most. */
typedef enum gain_source {
    GAIN_UNKNOWN,
    GAIN_IDLE,
    GAIN_OUTSIDE,
    GAIN_FREE,
    GAIN_PRIVATE,
    GAIN_MISSING /* not a gain, but what must be gained */
} gain_source;

/* The variable that PyTorch's settings are read from. */
typedef enum conf_variable { CONF_CUDA, CONF_HIP, CONF_NPU, CONF_PLAIN, CONF_COUNT } conf_variable;

#define CONF_SETTINGS(value)                                                                       \
    {                                                                                              \
        [CONF_CUDA] = "PYTORCH_CUDA_ALLOC_CONF=" value,                                            \
        [CONF_HIP] = "PYTORCH_HIP_ALLOC_CONF=" value,                                              \
        [CONF_NPU] = "PYTORCH_NPU_ALLOC_CONF=" value, [CONF_PLAIN] = "PYTORCH_ALLOC_CONF=" value   \
    }

static const char *const expandable_segments[CONF_COUNT] =
    CONF_SETTINGS("expandable_segments:True");
static const char *const max_split_size[CONF_COUNT] = CONF_SETTINGS("max_split_size_mb:512");

typedef struct rule {
    unsigned verdicts;
    unsigned frameworks;
    frag_setting setting_id; /* left out when it is in force */
    const char *action;
    const char *setting;             /* what to set, literally, */
    const char *const *conf_setting; /* or by the variable that it is set in; NULL: none */
    gain_source gain;
    const char *text; /* '@': the setting, '<': what lists processes, '>': what picks devices */
    const char *with_gain; /* goes on after the text; one %s for the bytes */
    bool (*applies)(const frag_messages *messages, const frag_message *message,
                    const frag_diagnosis *diagnosis);
} rule;

/* ---- conditions */
static bool has_release(const frag_message *message, const char *old)
{
    return message != NULL && message->release != NULL && strcmp(message->release, old) == 0;
}

static bool is_of(const frag_message *message, frag_framework framework)
{
    return message != NULL && message->framework == framework;
}

/* Which name works, whatever the release: the newer one was ignored up to 2.9. */
static conf_variable variable_of(const frag_message *message)
{
    return is_of(message, FRAG_FRAMEWORK_PYTORCH_HIP)   ? CONF_HIP
           : is_of(message, FRAG_FRAMEWORK_PYTORCH_NPU) ? CONF_NPU
           : has_release(message, "PyTorch 2.10")       ? CONF_PLAIN
                                                        : CONF_CUDA;
}

typedef struct tools {
    const char *look; /* lists the processes that hold a device */
    const char *pick; /* the variable that names the devices a program may see */
} tools;

static tools tools_of(const frag_message *message)
{
    switch (message != NULL ? message->framework : FRAG_FRAMEWORK_UNKNOWN) {
    case FRAG_FRAMEWORK_PYTORCH_HIP:
        return (tools){"rocm-smi --showpids", "HIP_VISIBLE_DEVICES"};
    case FRAG_FRAMEWORK_PYTORCH_XPU:
        return (tools){"xpu-smi ps", "ZE_AFFINITY_MASK"};
    case FRAG_FRAMEWORK_PYTORCH_NPU:
        return (tools){"npu-smi info", "ASCEND_RT_VISIBLE_DEVICES"};
    case FRAG_FRAMEWORK_GGML:
    case FRAG_FRAMEWORK_ONNXRUNTIME:
    case FRAG_FRAMEWORK_UNKNOWN:
        return (tools){"nvidia-smi (or rocm-smi, xpu-smi)", "CUDA_VISIBLE_DEVICES"};
    default:
        return (tools){"nvidia-smi", "CUDA_VISIBLE_DEVICES"};
    }
}

/* Expandable segments came with 2.1, to ROCm much later; and Windows has none. */
static bool can_expand(const frag_messages *messages, const frag_message *message,
                       const frag_diagnosis *diagnosis)
{
    (void)diagnosis;
    if (is_of(message, FRAG_FRAMEWORK_PYTORCH_HIP))
        return !messages->is_windows && has_release(message, "PyTorch 2.11 or later");
    return !messages->is_windows && !has_release(message, "PyTorch 1.0 to 1.3") &&
           !has_release(message, "PyTorch 1.4 to 2.0") &&
           !has_release(message, "PyTorch 1.10 to 2.0");
}

static bool must_upgrade(const frag_messages *messages, const frag_message *message,
                         const frag_diagnosis *diagnosis)
{
    return !messages->is_windows && !can_expand(messages, message, diagnosis);
}

static bool can_split(const frag_messages *messages, const frag_message *message,
                      const frag_diagnosis *diagnosis)
{
    return !can_expand(messages, message, diagnosis) && !has_release(message, "PyTorch 1.0 to 1.3");
}

/* The setting came with 1.10; a message without the hint to it may be older. */
static bool may_split(const frag_messages *messages, const frag_message *message,
                      const frag_diagnosis *diagnosis)
{
    return can_split(messages, message, diagnosis) && has_release(message, "PyTorch 1.4 to 2.0");
}

static bool does_split(const frag_messages *messages, const frag_message *message,
                       const frag_diagnosis *diagnosis)
{
    return can_split(messages, message, diagnosis) && !may_split(messages, message, diagnosis);
}

/* Even with all holes gone little would be left. */
static bool is_nearly_full(const frag_messages *messages, const frag_message *message,
                           const frag_diagnosis *diagnosis)
{
    (void)messages;
    (void)message;
    const frag_amount *figures = diagnosis->figures;
    uint64_t total = figures[FRAG_FIGURE_TOTAL].bytes;
    return figures[FRAG_FIGURE_TOTAL].is_known && figures[FRAG_FIGURE_ALLOCATED].is_known &&
           figures[FRAG_FIGURE_ALLOCATED].bytes + figures[FRAG_FIGURE_REQUESTED].bytes >=
               total - total / 8;
}

static bool has_block_max(const frag_messages *messages, const frag_message *message,
                          const frag_diagnosis *diagnosis)
{
    (void)messages;
    (void)diagnosis;
    return message != NULL && (message->says & FRAG_SAYS_BLOCK_MAX) != 0;
}

static bool has_no_block_max(const frag_messages *messages, const frag_message *message,
                             const frag_diagnosis *diagnosis)
{
    return !has_block_max(messages, message, diagnosis);
}

/* The device is as good as free already. */
static bool is_mostly_free(const frag_messages *messages, const frag_message *message,
                           const frag_diagnosis *diagnosis)
{
    (void)messages;
    (void)message;
    const frag_amount *figures = diagnosis->figures;
    uint64_t total = figures[FRAG_FIGURE_TOTAL].bytes;
    return figures[FRAG_FIGURE_FREE].is_known &&
           figures[FRAG_FIGURE_FREE].bytes >= total - total / 4;
}

static bool is_partly_held(const frag_messages *messages, const frag_message *message,
                           const frag_diagnosis *diagnosis)
{
    return !is_mostly_free(messages, message, diagnosis);
}

static bool is_unsure(const frag_messages *messages, const frag_message *message,
                      const frag_diagnosis *diagnosis)
{
    (void)messages;
    (void)message;
    return diagnosis->confidence != FRAG_CONFIDENCE_HIGH;
}

static bool needs_cache(const frag_messages *messages, const frag_message *message,
                        const frag_diagnosis *diagnosis)
{
    (void)messages;
    (void)message;
    return diagnosis->figures[FRAG_FIGURE_REQUESTED].is_known;
}

static bool is_expanding(const frag_messages *messages, const frag_message *message,
                         const frag_diagnosis *diagnosis)
{
    (void)message;
    (void)diagnosis;
    return messages->is_on[FRAG_SETTING_EXPANDABLE];
}

static bool is_library(const frag_messages *messages, const frag_message *message,
                       const frag_diagnosis *diagnosis)
{
    (void)messages;
    (void)diagnosis;
    return message != NULL && (message->says & FRAG_SAYS_LIBRARY) != 0;
}

static bool is_pool_full(const frag_messages *messages, const frag_message *message,
                         const frag_diagnosis *diagnosis)
{
    (void)messages;
    (void)diagnosis;
    return message != NULL && (message->says & FRAG_SAYS_POOL_FULL) != 0;
}

static bool is_not_pool_full(const frag_messages *messages, const frag_message *message,
                             const frag_diagnosis *diagnosis)
{
    return !is_pool_full(messages, message, diagnosis);
}

static bool has_outside(const frag_messages *messages, const frag_message *message,
                        const frag_diagnosis *diagnosis)
{
    (void)messages;
    (void)message;
    return diagnosis->outside.is_known && diagnosis->outside.bytes >= FRAG_GIB / 2;
}

static bool has_idle(const frag_messages *messages, const frag_message *message,
                     const frag_diagnosis *diagnosis)
{
    (void)messages;
    (void)message;
    const frag_amount *idle = &diagnosis->figures[FRAG_FIGURE_IDLE];
    const frag_amount *requested = &diagnosis->figures[FRAG_FIGURE_REQUESTED];
    return idle->is_known && idle->bytes >= requested->bytes / 2 && idle->bytes > 64 * FRAG_MIB;
}

static bool can_expand_idle(const frag_messages *messages, const frag_message *message,
                            const frag_diagnosis *diagnosis)
{
    return can_expand(messages, message, diagnosis) && has_idle(messages, message, diagnosis);
}

/* The figures are of a compiled program, before it took anything. */
static bool needs_more(const frag_messages *messages, const frag_message *message,
                       const frag_diagnosis *diagnosis)
{
    (void)messages;
    (void)diagnosis;
    return message != NULL && (message->says & FRAG_SAYS_WHOLE) != 0;
}

static bool may_preallocate(const frag_messages *messages, const frag_message *message,
                            const frag_diagnosis *diagnosis)
{
    return !needs_more(messages, message, diagnosis);
}

static bool is_spilling(const frag_messages *messages, const frag_message *message,
                        const frag_diagnosis *diagnosis)
{
    const frag_amount *total = &diagnosis->figures[FRAG_FIGURE_TOTAL];
    return !needs_more(messages, message, diagnosis) && total->is_known &&
           diagnosis->figures[FRAG_FIGURE_ALLOCATED].bytes > total->bytes;
}

/* In the order in which they are worth trying. Sources: docs/explain.md, "Advice". */
static const rule rules[] = {
    /* fragmentation */
    {.verdicts = FOR(FRAGMENTATION),
     .frameworks = NATIVE,
     .setting_id = FRAG_SETTING_EXPANDABLE,
     .action = "expandable-segments",
     .conf_setting = expandable_segments,
     .gain = GAIN_IDLE,
     .text = "Set @: memory then grows page by page and holes can be given back",
     .with_gain = "; at most the %s idle now",
     .applies = can_expand},
    {.verdicts = FOR(FRAGMENTATION),
     .frameworks = BIT(PYTORCH),
     .setting_id = FRAG_SETTING_EXPANDABLE,
     .action = "upgrade",
     .gain = GAIN_IDLE,
     .text = "Move to PyTorch 2.1 or later, whose expandable segments can give holes back",
     .with_gain = "; at most the %s idle now",
     .applies = must_upgrade},
    {.verdicts = FOR(FRAGMENTATION),
     .frameworks = BIT(PYTORCH_HIP),
     .setting_id = FRAG_SETTING_EXPANDABLE,
     .action = "upgrade",
     .gain = GAIN_IDLE,
     .text = "Move to a recent PyTorch for ROCm 7, whose expandable segments can give holes back; "
             "older builds for ROCm ignore that setting",
     .with_gain = "; at most the %s idle now",
     .applies = must_upgrade},
    {.verdicts = FOR(FRAGMENTATION),
     .frameworks = NATIVE,
     .setting_id = FRAG_SETTING_MAX_SPLIT,
     .action = "max-split-size",
     .conf_setting = max_split_size,
     .gain = GAIN_IDLE,
     .text = "Set @, so that large blocks are not cut up; small values such as 128 often make it "
             "worse",
     .with_gain = "; at most the %s idle now",
     .applies = does_split},
    {.verdicts = FOR(FRAGMENTATION),
     .frameworks = NATIVE,
     .setting_id = FRAG_SETTING_MAX_SPLIT,
     .action = "max-split-size",
     .conf_setting = max_split_size,
     .gain = GAIN_IDLE,
     .text = "Set @ (PyTorch 1.10 or later), so that large blocks are not cut up; small values "
             "such as 128 often make it worse",
     .with_gain = "; at most the %s idle now",
     .applies = may_split},
    {.verdicts = FOR(FRAGMENTATION),
     .frameworks = SNAPSHOTS,
     .action = "record-and-explain",
     .gain = GAIN_UNKNOWN,
     .text = "Expandable segments are on and holes remain: record a snapshot "
             "(torch.cuda.memory._record_memory_history, _dump_snapshot) and give it to fraglab "
             "explain, which names the blocks that hold them",
     .applies = is_expanding},
    {.verdicts = FOR(FRAGMENTATION),
     .frameworks = BIT(TENSORFLOW),
     .setting_id = FRAG_SETTING_TF_ASYNC,
     .action = "cuda-malloc-async",
     .setting = "TF_GPU_ALLOCATOR=cuda_malloc_async",
     .gain = GAIN_IDLE,
     .text = "Set @, which can move free memory together",
     .with_gain = "; at most the %s free now"},
    {.verdicts = FOR(FRAGMENTATION),
     .frameworks = ALL,
     .action = "smaller-batch",
     .gain = GAIN_UNKNOWN,
     .text = "The device is nearly full besides, so ask for less at a time too: smaller batch "
             "(with gradient accumulation), shorter sequences, smaller images",
     .applies = is_nearly_full},
    {.verdicts = FOR(FRAGMENTATION),
     .frameworks = ALL,
     .action = "same-sizes",
     .gain = GAIN_UNKNOWN,
     .text = "Let sizes repeat: pad or bucket sequence lengths and image sizes, and run the "
             "largest batch first, so that its blocks serve all others"},
    {.verdicts = FOR(FRAGMENTATION),
     .frameworks = TORCH,
     .action = "free-early",
     .gain = GAIN_UNKNOWN,
     .text = "Drop what outlives its step (outputs kept for logs, losses with their graph) before "
             "the large request; empty_cache() alone gains nothing, PyTorch has just done it"},

    /* somebody else */
    {.verdicts = FOR(OTHER_MEMORY),
     .frameworks = BIT(VLLM),
     .action = "lower-utilisation",
     .gain = GAIN_FREE,
     .text = "Lower gpu_memory_utilization to what is free",
     .with_gain = ", %s",
     .applies = is_mostly_free},
    {.verdicts = FOR(OTHER_MEMORY),
     .frameworks = ALL & ~BIT(PYTORCH_MPS),
     .action = "find-others",
     .gain = GAIN_OUTSIDE,
     .text = "Look with < who holds the device, dead processes and notebooks among them, and end "
             "those that should not be there",
     .with_gain = "; up to %s"},
    {.verdicts = FOR(OTHER_MEMORY),
     .frameworks = BIT(PYTORCH_MPS),
     .action = "find-others",
     .gain = GAIN_UNKNOWN,
     .text = "Much of it is not PyTorch's: compiled graphs and libraries that use Metal in the "
             "same process. Start the process anew, let shapes repeat (each compiles a graph that "
             "is kept), and close other programs, with which the GPU shares memory"},
    {.verdicts = FOR(OTHER_MEMORY),
     .frameworks = ALL & ~BIT(PYTORCH_MPS),
     .action = "other-device",
     .gain = GAIN_UNKNOWN,
     .text = "Take another device: start the program with >=N, N the number of one that < shows "
             "to be free"},
    {.verdicts = FOR(OTHER_MEMORY),
     .frameworks = BIT(VLLM),
     .action = "lower-utilisation",
     .gain = GAIN_FREE,
     .text = "Or lower gpu_memory_utilization to what is free",
     .with_gain = ", %s",
     .applies = is_partly_held},
    {.verdicts = FOR(OTHER_MEMORY),
     .frameworks = ALL & ~BIT(GGML),
     .action = "smaller-batch",
     .gain = GAIN_MISSING,
     .text = "If nobody else is there, ask for less at a time: smaller batch (with gradient "
             "accumulation), shorter sequences, smaller images",
     .with_gain = "; at least %s must go",
     .applies = is_unsure},

    /* a limit */
    {.verdicts = FOR(LIMIT),
     .frameworks = TORCH,
     .action = "raise-reserve",
     .gain = GAIN_FREE,
     .text = "Leave expandable_segments_reserve out, or let it reserve more than a request can be",
     .with_gain = "; the device has %s free",
     .applies = is_pool_full},
    {.verdicts = FOR(LIMIT),
     .frameworks = TORCH,
     .action = "raise-limit",
     .gain = GAIN_FREE,
     .text = "Raise what set_per_process_memory_fraction (or the key per_process_memory_fraction) "
             "allows",
     .with_gain = "; the device has %s free",
     .applies = is_not_pool_full},
    {.verdicts = FOR(LIMIT),
     .frameworks = BIT(CUPY),
     .action = "raise-limit",
     .gain = GAIN_UNKNOWN,
     .text = "Raise the pool's limit: CUPY_GPU_MEMORY_LIMIT or "
             "cupy.get_default_memory_pool().set_limit()"},
    {.verdicts = FOR(LIMIT),
     .frameworks = BIT(RMM),
     .action = "raise-limit",
     .gain = GAIN_UNKNOWN,
     .text = "Give the pool a larger maximum_pool_size, or a larger initial_pool_size: a pool that "
             "grows in pieces cannot serve a request larger than its pieces"},
    {.verdicts = FOR(LIMIT),
     .frameworks = BIT(ONNXRUNTIME),
     .action = "raise-limit",
     .gain = GAIN_UNKNOWN,
     .text = "Raise gpu_mem_limit of the execution provider, or set arena_extend_strategy to "
             "kSameAsRequested"},
    {.verdicts = FOR(LIMIT),
     .frameworks = BIT(VLLM),
     .action = "shorter-context",
     .gain = GAIN_MISSING,
     .text = "Lower max_model_len, which the cache is sized for, or keep it in 8 bits "
             "(kv_cache_dtype)",
     .with_gain = "; at least %s must go",
     .applies = needs_cache},
    {.verdicts = FOR(LIMIT),
     .frameworks = BIT(VLLM),
     .action = "raise-limit",
     .gain = GAIN_UNKNOWN,
     .text = "Raise gpu_memory_utilization, or leave less to weights and context "
             "(max_model_len, quantised weights)"},

    {.verdicts = FOR(LIMIT),
     .frameworks = BIT(SGLANG),
     .action = "raise-limit",
     .gain = GAIN_UNKNOWN,
     .text = "Raise --mem-fraction-static, or leave less to the weights: more devices (--tp), "
             "quantised weights"},

    {.verdicts = FOR(LIMIT),
     .frameworks =
         ALL & ~(BIT(SGLANG) | TORCH | BIT(CUPY) | BIT(RMM) | BIT(ONNXRUNTIME) | BIT(VLLM)),
     .action = "raise-limit",
     .gain = GAIN_FREE,
     .text = "Raise the limit that the program was given, or make it ask for less",
     .with_gain = "; the device has %s free"},

    /* the request itself */
    {.verdicts = FOR(OVERSIZED),
     .frameworks = ALL,
     .action = "check-shapes",
     .gain = GAIN_UNKNOWN,
     .text = "Look at the line that asked: a tensor of this size is a product of dimensions, and "
             "one of them is likely wrong (attention over all positions, an outer product by "
             "broadcasting, an image at full size)"},
    {.verdicts = FOR(OVERSIZED),
     .frameworks = ALL,
     .action = "in-pieces",
     .gain = GAIN_UNKNOWN,
     .text = "Do it in pieces: tiles, chunks of the batch, attention that does not write the whole "
             "matrix (scaled_dot_product_attention, FlashAttention)"},
    {.verdicts = FOR(OVERSIZED),
     .frameworks = ALL,
     .action = "no-setting",
     .gain = GAIN_UNKNOWN,
     .text = "No allocator setting helps: the device is smaller than the request"},

    /* platform */
    {.verdicts = FOR(PLATFORM),
     .frameworks = BIT(GGML),
     .action = "smaller-blocks",
     .gain = GAIN_UNKNOWN,
     .text = "Make the largest block smaller: a smaller context (-c) or micro-batch (-ub), fewer "
             "layers on the GPU (-ngl); newer releases split large buffers themselves",
     .applies = has_block_max},
    {.verdicts = FOR(PLATFORM),
     .frameworks = ALL & ~BIT(GGML),
     .action = "in-pieces",
     .gain = GAIN_UNKNOWN,
     .text = "Do it in pieces, each below that size: tiles, chunks of the batch, attention that "
             "does not write the whole matrix",
     .applies = has_block_max},
    {.verdicts = FOR(PLATFORM),
     .frameworks = ALL,
     .action = "one-allocation",
     .gain = GAIN_UNKNOWN,
     .text = "Try the same size alone in a fresh process: if that fails too, it is driver, "
             "container or platform (WSL, virtual GPU, unified memory), not the program",
     .applies = has_no_block_max},
    {.verdicts = FOR(PLATFORM),
     .frameworks = ALL,
     .action = "check-platform",
     .gain = GAIN_UNKNOWN,
     .text = "Check that the device is the one meant (an integrated GPU?), the limits of the "
             "container or partition, host memory and swap, and update the driver"},
    {.verdicts = FOR(PLATFORM),
     .frameworks = ALL & ~BIT(PYTORCH_MPS),
     .action = "find-others",
     .gain = GAIN_OUTSIDE,
     .text = "Look with < who else holds the device: others may have held at that moment what was "
             "free when the message was written",
     .applies = has_no_block_max},

    /* caches */
    {.verdicts = FOR(CACHE_HELD),
     .frameworks = ALL,
     .action = "fewer-graphs",
     .gain = GAIN_PRIVATE,
     .text = "Capture fewer CUDA graphs, let them share a pool, or do without them",
     .with_gain = "; up to %s"},

    /* shortage, and what helps with any other */
    {.verdicts = FOR(SHORTAGE),
     .frameworks = ALL,
     .action = "host-spill",
     .gain = GAIN_UNKNOWN,
     .text = "The driver is already using host memory in the device's place, which is slow: turn "
             "its fallback off to see the true limit",
     .applies = is_spilling},
    {.verdicts = FOR(SHORTAGE) | FOR(NO_FIGURES) | FOR(CACHE_HELD),
     .frameworks = ALL & ~BIT(GGML),
     .action = "smaller-batch",
     .gain = GAIN_MISSING,
     .text = "Ask for less at a time: smaller batch (with gradient accumulation), shorter "
             "sequences, smaller images, fewer at once",
     .with_gain = "; at least %s must go"},
    {.verdicts = FOR(SHORTAGE) | FOR(NO_FIGURES),
     .frameworks = BIT(GGML),
     .action = "fewer-layers",
     .gain = GAIN_MISSING,
     .text = "Ask for less: a smaller context (-c), fewer layers on the GPU (-ngl), a smaller "
             "micro-batch (-ub), a quantised cache (-ctk, -ctv)",
     .with_gain = "; at least %s must go"},
    {.verdicts = FOR(SHORTAGE),
     .frameworks = TORCH,
     .action = "lighter-model",
     .gain = GAIN_UNKNOWN,
     .text = "For training: bfloat16, activation checkpointing, an optimizer with smaller state; "
             "for inference: no_grad or inference_mode, half precision, quantised weights"},
    {.verdicts = FOR(SHORTAGE),
     .frameworks = NATIVE,
     .setting_id = FRAG_SETTING_EXPANDABLE,
     .action = "expandable-segments",
     .conf_setting = expandable_segments,
     .gain = GAIN_IDLE,
     .text = "@ helps a little",
     .with_gain = ": at most the %s idle now, which is not enough alone",
     .applies = can_expand_idle},
    {.verdicts = FOR(SHORTAGE),
     .frameworks = ALL & ~BIT(PYTORCH_MPS),
     .action = "find-others",
     .gain = GAIN_OUTSIDE,
     .text = "Free what others hold on the device (desktop, notebooks, other jobs)",
     .with_gain = "; up to %s, less what the driver needs",
     .applies = has_outside},
    {.verdicts = FOR(SHORTAGE) | FOR(OTHER_MEMORY),
     .frameworks = BIT(PYTORCH_MPS),
     .setting_id = FRAG_SETTING_MPS_WATERMARK,
     .action = "mps-watermark",
     .setting = "PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0",
     .gain = GAIN_UNKNOWN,
     .text = "@ lifts the limit; the computer may then swap or stall"},
    {.verdicts = FOR(NO_FIGURES),
     .frameworks = TORCH | BIT(UNKNOWN),
     .action = "leave-room",
     .gain = GAIN_UNKNOWN,
     .text = "A library asked the driver while PyTorch's cache may hold the rest: leave room with "
             "torch.cuda.set_per_process_memory_fraction, or call torch.cuda.empty_cache() before",
     .applies = is_library},
    {.verdicts = FOR(NO_FIGURES) | FOR(OTHER_MEMORY) | FOR(SHORTAGE),
     .frameworks = BIT(JAX),
     .setting_id = FRAG_SETTING_XLA_FRACTION,
     .action = "preallocation",
     .setting = "XLA_PYTHON_CLIENT_MEM_FRACTION=.95",
     .gain = GAIN_UNKNOWN,
     .text = "JAX takes three quarters of the device at its start and keeps to them: "
             "@ gives it more",
     .applies = may_preallocate},
    {.verdicts = FOR(SHORTAGE),
     .frameworks = BIT(JAX),
     .action = "shard",
     .gain = GAIN_UNKNOWN,
     .text = "Spread arrays over more devices (jax.sharding), or recompute instead of keeping "
             "(jax.checkpoint)",
     .applies = needs_more},
    {.verdicts = FOR(NO_FIGURES),
     .frameworks = ALL,
     .action = "more-figures",
     .gain = GAIN_UNKNOWN,
     .text = "Look with < what the device holds at that moment, and paste the whole message with "
             "what stands around it; a snapshot or a trace tells most"},
    {.verdicts = FOR(SHORTAGE),
     .frameworks = SNAPSHOTS,
     .action = "record-and-explain",
     .gain = GAIN_UNKNOWN,
     .text = "To see what holds the memory, record a snapshot (torch.cuda.memory"
             "._record_memory_history, _dump_snapshot) and give it to fraglab explain"},
};

static frag_amount gain_of(gain_source source, const frag_diagnosis *diagnosis)
{
    switch (source) {
    case GAIN_IDLE:
        return diagnosis->figures[FRAG_FIGURE_IDLE];
    case GAIN_OUTSIDE:
        return diagnosis->outside;
    case GAIN_FREE:
        return diagnosis->figures[FRAG_FIGURE_FREE];
    case GAIN_PRIVATE:
        return diagnosis->figures[FRAG_FIGURE_PRIVATE];
    case GAIN_MISSING:
        return diagnosis->missing;
    case GAIN_UNKNOWN:
        break;
    }
    return (frag_amount){0};
}

static void add_marked(frag_text *text, const char *from, const char *setting, tools names)
{
    while (*from != '\0') {
        size_t before = strcspn(from, "@<>");
        frag_text_add(text, "%.*s", (int)before, from);
        from += before;
        if (*from == '\0')
            break;
        frag_text_add(text, "%s", *from == '@' ? setting : *from == '<' ? names.look : names.pick);
        from++;
    }
}

static void add_step(frag_advice *advice, const rule *from, const frag_message *message,
                     const frag_diagnosis *diagnosis)
{
    char bytes[FRAG_BYTES_TEXT_MAX];
    frag_advice_step *step = &advice->steps[advice->count++];
    const char *setting =
        from->conf_setting != NULL ? from->conf_setting[variable_of(message)] : from->setting;
    *step = (frag_advice_step){.action = from->action, .setting = setting};
    frag_amount gain = gain_of(from->gain, diagnosis);
    add_marked(&step->text, from->text, setting, tools_of(message));
    if (from->with_gain != NULL && gain.is_known && gain.bytes > 0) {
        const char *rest = strstr(from->with_gain, "%s");
        frag_text_add(&step->text, "%.*s%s%s", (int)(rest - from->with_gain), from->with_gain,
                      frag_bytes_text(gain.bytes, bytes), rest + 2);
        if (from->gain != GAIN_MISSING)
            step->gain = gain;
    }
    frag_text_add(&step->text, ".");
}

void frag_advise(const frag_messages *messages, const frag_message *message,
                 const frag_diagnosis *diagnosis, frag_advice *advice)
{
    *advice = (frag_advice){.count = 0};
    frag_framework framework = message != NULL ? message->framework : FRAG_FRAMEWORK_UNKNOWN;
    for (size_t i = 0; i < sizeof rules / sizeof *rules && advice->count < FRAG_ADVICE_MAX; i++) {
        const rule *from = &rules[i];
        if ((from->verdicts & (1u << diagnosis->verdict)) == 0 ||
            (from->frameworks & (1u << framework)) == 0 ||
            (from->setting_id != FRAG_SETTING_NONE && messages->is_on[from->setting_id]) ||
            (from->applies != NULL && !from->applies(messages, message, diagnosis)))
            continue;
        add_step(advice, from, message, diagnosis);
    }
}

void frag_advice_destroy(frag_advice *advice)
{
    for (size_t i = 0; i < advice->count; i++)
        frag_text_destroy(&advice->steps[i].text);
    advice->count = 0;
}
