#include "studies/explain/advice_rules.h"

#include <string.h>

#include "base/bytes.h"

/* Which frameworks a step is for, as bits. */
#define BIT(name) (1u << FRAG_FRAMEWORK_##name)
#define NATIVE (BIT(PYTORCH) | BIT(PYTORCH_HIP) | BIT(PYTORCH_NPU))
#define SNAPSHOTS (BIT(PYTORCH) | BIT(PYTORCH_HIP))
#define TORCH (NATIVE | BIT(PYTORCH_ASYNC) | BIT(PYTORCH_XPU) | BIT(PYTORCH_MPS))
#define ALL (~0u)

/* Which verdicts. */
#define FOR(name) (1u << FRAG_OOM_VERDICT_##name)

#define CONF_SETTINGS(value)                                                                       \
    {                                                                                              \
        [FRAG_CONF_CUDA] = "PYTORCH_CUDA_ALLOC_CONF=" value,                                       \
        [FRAG_CONF_HIP] = "PYTORCH_HIP_ALLOC_CONF=" value,                                         \
        [FRAG_CONF_NPU] = "PYTORCH_NPU_ALLOC_CONF=" value,                                         \
        [FRAG_CONF_PLAIN] = "PYTORCH_ALLOC_CONF=" value                                            \
    }

static const char *const expandable_segments[FRAG_CONF_COUNT] =
    CONF_SETTINGS("expandable_segments:True");
static const char *const max_split_size[FRAG_CONF_COUNT] = CONF_SETTINGS("max_split_size_mb:512");

/* ---- conditions */
bool frag_advice_has_release(const frag_message *message, const char *release)
{
    return message != NULL && message->release != NULL && strcmp(message->release, release) == 0;
}

static bool is_of(const frag_message *message, frag_framework framework)
{
    return message != NULL && message->framework == framework;
}

/* Expandable segments came with 2.1, to ROCm much later; and Windows has none. */
static bool can_expand(const frag_messages *messages, const frag_message *message,
                       const frag_diagnosis *diagnosis)
{
    (void)diagnosis;
    if (is_of(message, FRAG_FRAMEWORK_PYTORCH_HIP))
        return !messages->is_windows && frag_advice_has_release(message, "PyTorch 2.11 or later");
    return !messages->is_windows && !frag_advice_has_release(message, "PyTorch 1.0 to 1.3") &&
           !frag_advice_has_release(message, "PyTorch 1.4 to 2.0") &&
           !frag_advice_has_release(message, "PyTorch 1.10 to 2.0");
}

static bool must_upgrade(const frag_messages *messages, const frag_message *message,
                         const frag_diagnosis *diagnosis)
{
    return !messages->is_windows && !can_expand(messages, message, diagnosis);
}

static bool can_split(const frag_messages *messages, const frag_message *message,
                      const frag_diagnosis *diagnosis)
{
    return !can_expand(messages, message, diagnosis) &&
           !frag_advice_has_release(message, "PyTorch 1.0 to 1.3");
}

/* The setting came with 1.10; a message without the hint to it may be older. */
static bool may_split(const frag_messages *messages, const frag_message *message,
                      const frag_diagnosis *diagnosis)
{
    return can_split(messages, message, diagnosis) &&
           frag_advice_has_release(message, "PyTorch 1.4 to 2.0");
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

static bool has_scene(const frag_messages *messages, uint32_t scene)
{
    return messages != NULL && (messages->scenes & scene) != 0;
}

/* The model was being put on the device, and it fills it: no setting makes room for it. */
static bool is_loading(const frag_messages *messages, const frag_message *message,
                       const frag_diagnosis *diagnosis)
{
    const frag_amount *figures = diagnosis->figures;
    bool is_small = figures[FRAG_FIGURE_TOTAL].is_known &&
                    figures[FRAG_FIGURE_ALLOCATED].is_known &&
                    figures[FRAG_FIGURE_ALLOCATED].bytes < figures[FRAG_FIGURE_TOTAL].bytes / 2;
    (void)message;
    return has_scene(messages, FRAG_SCENE_LOADING) && !is_small;
}

static bool has_ranks(const frag_messages *messages, const frag_message *message,
                      const frag_diagnosis *diagnosis)
{
    (void)message;
    (void)diagnosis;
    return has_scene(messages, FRAG_SCENE_RANKS);
}

static bool has_no_ranks(const frag_messages *messages, const frag_message *message,
                         const frag_diagnosis *diagnosis)
{
    return !has_ranks(messages, message, diagnosis);
}

/* ---- what else than a device's memory ran out */
static bool is_of_host(const frag_message *message, uint32_t says)
{
    const uint32_t special = FRAG_SAYS_ON_CHIP | FRAG_SAYS_SHM | FRAG_SAYS_PINNED | FRAG_SAYS_DISK;
    return message != NULL && message->kind == FRAG_MESSAGE_HOST &&
           (message->says & special) == says;
}

static bool is_on_chip(const frag_messages *messages, const frag_message *message,
                       const frag_diagnosis *diagnosis)
{
    (void)messages;
    (void)diagnosis;
    return is_of_host(message, FRAG_SAYS_ON_CHIP);
}

static bool is_shm(const frag_messages *messages, const frag_message *message,
                   const frag_diagnosis *diagnosis)
{
    (void)messages;
    (void)diagnosis;
    return is_of_host(message, FRAG_SAYS_SHM);
}

static bool is_pinned(const frag_messages *messages, const frag_message *message,
                      const frag_diagnosis *diagnosis)
{
    (void)messages;
    (void)diagnosis;
    return is_of_host(message, FRAG_SAYS_PINNED);
}

static bool is_disk(const frag_messages *messages, const frag_message *message,
                    const frag_diagnosis *diagnosis)
{
    (void)messages;
    (void)diagnosis;
    return is_of_host(message, FRAG_SAYS_DISK);
}

static bool is_plain_host(const frag_messages *messages, const frag_message *message,
                          const frag_diagnosis *diagnosis)
{
    (void)messages;
    (void)diagnosis;
    return is_of_host(message, 0);
}

/* ---- settings with a number */

/* What is free, as a share of the card, in hundredths and rounded down. */
static void make_utilisation(const frag_diagnosis *diagnosis, frag_text *setting)
{
    uint64_t hundredth = diagnosis->figures[FRAG_FIGURE_TOTAL].bytes / 100;
    uint64_t free = diagnosis->figures[FRAG_FIGURE_FREE].bytes;
    uint64_t share = hundredth > 0 ? free / hundredth : 0;
    if (diagnosis->figures[FRAG_FIGURE_FREE].is_known && share > 0 && share < 100)
        frag_text_add(setting, "--gpu-memory-utilization 0.%02u", (unsigned)share);
}

/* In the order in which they are worth trying. Sources: docs/explain.md, "Advice". */
const frag_advice_rule frag_advice_rules[] = {
    /* a model that does not fit while it is loaded: before any setting */
    {.verdicts = FOR(FRAGMENTATION) | FOR(SHORTAGE) | FOR(NO_FIGURES),
     .frameworks = TORCH | BIT(UNKNOWN),
     .action = "offload-or-quantise",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "It ran out while a model was put on the device, so the model itself is too large: "
             "load it in 16 bits (torch_dtype=torch.bfloat16) or quantised "
             "(BitsAndBytesConfig(load_in_4bit=True)), or keep part of it on the host "
             "(device_map=\"auto\"; for diffusers pipe.enable_model_cpu_offload() in place of "
             "pipe.to(\"cuda\"))",
     .applies = is_loading},
    /* ranks that share a device by mistake */
    {.verdicts = FOR(OTHER_MEMORY) | FOR(SHORTAGE) | FOR(NO_FIGURES) | FOR(FRAGMENTATION),
     .frameworks = ALL,
     .action = "one-rank-per-device",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Several ranks run on the same device: let each take its own "
             "(torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"])) before anything uses CUDA, "
             "and map_location=\"cpu\" in torch.load), and start no more ranks than the computer "
             "has devices",
     .applies = has_ranks},

    /* fragmentation */
    {.verdicts = FOR(FRAGMENTATION),
     .frameworks = NATIVE,
     .setting_id = FRAG_SETTING_EXPANDABLE,
     .action = "expandable-segments",
     .conf_setting = expandable_segments,
     .gain = FRAG_GAIN_IDLE,
     .text = "Set @: memory then grows page by page and holes can be given back",
     .with_gain = "; at most the %s idle now",
     .applies = can_expand},
    {.verdicts = FOR(FRAGMENTATION),
     .frameworks = BIT(PYTORCH),
     .setting_id = FRAG_SETTING_EXPANDABLE,
     .action = "upgrade",
     .gain = FRAG_GAIN_IDLE,
     .text = "Move to PyTorch 2.1 or later, whose expandable segments can give holes back",
     .with_gain = "; at most the %s idle now",
     .applies = must_upgrade},
    {.verdicts = FOR(FRAGMENTATION),
     .frameworks = BIT(PYTORCH_HIP),
     .setting_id = FRAG_SETTING_EXPANDABLE,
     .action = "upgrade",
     .gain = FRAG_GAIN_IDLE,
     .text = "Move to a recent PyTorch for ROCm 7, whose expandable segments can give holes back; "
             "older builds for ROCm ignore that setting",
     .with_gain = "; at most the %s idle now",
     .applies = must_upgrade},
    {.verdicts = FOR(FRAGMENTATION),
     .frameworks = NATIVE,
     .setting_id = FRAG_SETTING_MAX_SPLIT,
     .action = "max-split-size",
     .conf_setting = max_split_size,
     .gain = FRAG_GAIN_IDLE,
     .text = "Set @, so that large blocks are not cut up; small values such as 128 often make it "
             "worse",
     .with_gain = "; at most the %s idle now",
     .applies = does_split},
    {.verdicts = FOR(FRAGMENTATION),
     .frameworks = NATIVE,
     .setting_id = FRAG_SETTING_MAX_SPLIT,
     .action = "max-split-size",
     .conf_setting = max_split_size,
     .gain = FRAG_GAIN_IDLE,
     .text = "Set @ (PyTorch 1.10 or later), so that large blocks are not cut up; small values "
             "such as 128 often make it worse",
     .with_gain = "; at most the %s idle now",
     .applies = may_split},
    {.verdicts = FOR(FRAGMENTATION),
     .frameworks = SNAPSHOTS,
     .action = "record-and-explain",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Expandable segments are on and holes remain: record a snapshot "
             "(torch.cuda.memory._record_memory_history, _dump_snapshot) and give it to fraglab "
             "explain, which names the blocks that hold them",
     .applies = is_expanding},
    {.verdicts = FOR(FRAGMENTATION),
     .frameworks = BIT(TENSORFLOW),
     .setting_id = FRAG_SETTING_TF_ASYNC,
     .action = "cuda-malloc-async",
     .setting = "TF_GPU_ALLOCATOR=cuda_malloc_async",
     .gain = FRAG_GAIN_IDLE,
     .text = "Set @, which can move free memory together",
     .with_gain = "; at most the %s free now"},
    {.verdicts = FOR(FRAGMENTATION),
     .frameworks = ALL,
     .action = "smaller-batch",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "The device is nearly full besides, so ask for less at a time too: smaller batch "
             "(with gradient accumulation), shorter sequences, smaller images",
     .applies = is_nearly_full},
    {.verdicts = FOR(FRAGMENTATION),
     .frameworks = ALL,
     .action = "same-sizes",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Let sizes repeat: pad or bucket sequence lengths and image sizes, and run the "
             "largest batch first, so that its blocks serve all others"},
    {.verdicts = FOR(FRAGMENTATION),
     .frameworks = TORCH,
     .action = "free-early",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Drop what outlives its step (outputs kept for logs, losses with their graph) before "
             "the large request; empty_cache() alone gains nothing, PyTorch has just done it"},

    /* somebody else */
    {.verdicts = FOR(OTHER_MEMORY),
     .frameworks = BIT(VLLM),
     .action = "lower-utilisation",
     .make_setting = make_utilisation,
     .gain = FRAG_GAIN_FREE,
     .text = "Lower gpu_memory_utilization to what is free: @",
     .with_gain = " is %s",
     .applies = is_mostly_free},
    {.verdicts = FOR(OTHER_MEMORY),
     .frameworks = ALL & ~BIT(PYTORCH_MPS),
     .action = "find-others",
     .gain = FRAG_GAIN_OUTSIDE,
     .text = "Look with < who holds the device, dead processes and notebooks among them, and end "
             "those that should not be there",
     .with_gain = "; up to %s"},
    {.verdicts = FOR(OTHER_MEMORY),
     .frameworks = BIT(PYTORCH_MPS),
     .action = "find-others",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Much of it is not PyTorch's: compiled graphs and libraries that use Metal in the "
             "same process. Start the process anew, let shapes repeat (each compiles a graph that "
             "is kept), and close other programs, with which the GPU shares memory"},
    {.verdicts = FOR(OTHER_MEMORY),
     .frameworks = ALL & ~BIT(PYTORCH_MPS),
     .action = "other-device",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Take another device: start the program with >=N, N the number of one that < shows "
             "to be free",
     .applies = has_no_ranks},
    {.verdicts = FOR(OTHER_MEMORY),
     .frameworks = BIT(VLLM),
     .action = "lower-utilisation",
     .make_setting = make_utilisation,
     .gain = FRAG_GAIN_FREE,
     .text = "Or lower gpu_memory_utilization to what is free: @",
     .with_gain = " is %s",
     .applies = is_partly_held},
    {.verdicts = FOR(OTHER_MEMORY),
     .frameworks = ALL & ~BIT(GGML),
     .action = "smaller-batch",
     .gain = FRAG_GAIN_MISSING,
     .text = "If nobody else is there, ask for less at a time: smaller batch (with gradient "
             "accumulation), shorter sequences, smaller images",
     .with_gain = "; at least %s must go",
     .applies = is_unsure},

    /* a limit */
    {.verdicts = FOR(LIMIT),
     .frameworks = TORCH,
     .action = "raise-reserve",
     .gain = FRAG_GAIN_FREE,
     .text = "Leave expandable_segments_reserve out, or let it reserve more than a request can be",
     .with_gain = "; the device has %s free",
     .applies = is_pool_full},
    {.verdicts = FOR(LIMIT),
     .frameworks = TORCH,
     .action = "raise-limit",
     .gain = FRAG_GAIN_FREE,
     .text = "Raise what set_per_process_memory_fraction (or the key per_process_memory_fraction) "
             "allows",
     .with_gain = "; the device has %s free",
     .applies = is_not_pool_full},
    {.verdicts = FOR(LIMIT),
     .frameworks = BIT(CUPY),
     .action = "raise-limit",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Raise the pool's limit: CUPY_GPU_MEMORY_LIMIT or "
             "cupy.get_default_memory_pool().set_limit()"},
    {.verdicts = FOR(LIMIT),
     .frameworks = BIT(RMM),
     .action = "raise-limit",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Give the pool a larger maximum_pool_size, or a larger initial_pool_size: a pool that "
             "grows in pieces cannot serve a request larger than its pieces"},
    {.verdicts = FOR(LIMIT),
     .frameworks = BIT(ONNXRUNTIME),
     .action = "raise-limit",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Raise gpu_mem_limit of the execution provider, or set arena_extend_strategy to "
             "kSameAsRequested"},
    {.verdicts = FOR(LIMIT),
     .frameworks = BIT(VLLM),
     .action = "shorter-context",
     .gain = FRAG_GAIN_MISSING,
     .text = "Lower max_model_len, which the cache is sized for, or keep it in 8 bits "
             "(kv_cache_dtype)",
     .with_gain = "; at least %s must go",
     .applies = needs_cache},
    {.verdicts = FOR(LIMIT),
     .frameworks = BIT(VLLM),
     .action = "raise-limit",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Raise gpu_memory_utilization above its default of 0.9 "
             "(--gpu-memory-utilization 0.95), or leave less to weights and context "
             "(--max-model-len, quantised weights)"},

    {.verdicts = FOR(LIMIT),
     .frameworks = BIT(SGLANG),
     .action = "raise-limit",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Raise --mem-fraction-static, or leave less to the weights: more devices (--tp), "
             "quantised weights"},

    {.verdicts = FOR(LIMIT),
     .frameworks = BIT(CUDA_JL),
     .action = "raise-limit",
     .gain = FRAG_GAIN_FREE,
     .text = "Raise JULIA_CUDA_HARD_MEMORY_LIMIT (JULIA_CUDA_MEMORY_LIMIT before CUDA.jl 4), or "
             "leave it out",
     .with_gain = "; the device has %s free"},
    {.verdicts = FOR(LIMIT),
     .frameworks = BIT(JAX),
     .action = "smaller-tiles",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Make the blocks of the kernel smaller (BlockSpec of Pallas), or let XLA use less of "
             "that memory at once (--xla_tpu_scoped_vmem_limit_kib in LIBTPU_INIT_ARGS)"},
    {.verdicts = FOR(LIMIT),
     .frameworks = ALL & ~(BIT(SGLANG) | TORCH | BIT(CUPY) | BIT(RMM) | BIT(ONNXRUNTIME) |
                           BIT(VLLM) | BIT(CUDA_JL) | BIT(JAX)),
     .action = "raise-limit",
     .gain = FRAG_GAIN_FREE,
     .text = "Raise the limit that the program was given, or make it ask for less",
     .with_gain = "; the device has %s free"},

    /* the request itself */
    {.verdicts = FOR(OVERSIZED),
     .frameworks = ALL,
     .action = "check-shapes",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Look at the line that asked: a tensor of this size is a product of dimensions, and "
             "one of them is likely wrong (attention over all positions, an outer product by "
             "broadcasting, an image at full size)"},
    {.verdicts = FOR(OVERSIZED),
     .frameworks = ALL,
     .action = "in-pieces",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Do it in pieces: tiles, chunks of the batch, attention that does not write the whole "
             "matrix (scaled_dot_product_attention, FlashAttention)"},
    {.verdicts = FOR(OVERSIZED),
     .frameworks = ALL,
     .action = "no-setting",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "No allocator setting helps: the device is smaller than the request"},

    /* platform */
    {.verdicts = FOR(PLATFORM),
     .frameworks = BIT(GGML),
     .action = "smaller-blocks",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Make the largest block smaller: a smaller context (-c) or micro-batch (-ub), fewer "
             "layers on the GPU (-ngl); newer releases split large buffers themselves",
     .applies = has_block_max},
    {.verdicts = FOR(PLATFORM),
     .frameworks = ALL & ~BIT(GGML),
     .action = "in-pieces",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Do it in pieces, each below that size: tiles, chunks of the batch, attention that "
             "does not write the whole matrix",
     .applies = has_block_max},
    {.verdicts = FOR(PLATFORM),
     .frameworks = ALL,
     .action = "one-allocation",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Try the same size alone in a fresh process: if that fails too, it is driver, "
             "container or platform (WSL, virtual GPU, unified memory), not the program",
     .applies = has_no_block_max},
    {.verdicts = FOR(PLATFORM),
     .frameworks = ALL,
     .action = "check-platform",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Check that the device is the one meant (an integrated GPU?), the limits of the "
             "container or partition, host memory and swap, and update the driver"},
    {.verdicts = FOR(PLATFORM),
     .frameworks = ALL & ~BIT(PYTORCH_MPS),
     .action = "find-others",
     .gain = FRAG_GAIN_OUTSIDE,
     .text = "Look with < who else holds the device: others may have held at that moment what was "
             "free when the message was written",
     .applies = has_no_block_max},

    /* caches */
    {.verdicts = FOR(CACHE_HELD),
     .frameworks = ALL,
     .action = "fewer-graphs",
     .gain = FRAG_GAIN_PRIVATE,
     .text = "Capture fewer CUDA graphs, let them share a pool, or do without them",
     .with_gain = "; up to %s"},

    /* what a program of its own has to offer */
    {.verdicts = FOR(SHORTAGE) | FOR(NO_FIGURES),
     .frameworks = BIT(TENSORRT),
     .action = "smaller-workspace",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Let the builder use less: setMemoryPoolLimit(kWORKSPACE, ...), trtexec "
             "--memPoolSize=workspace:1024, a smaller largest shape in the profile, FP16"},
    {.verdicts = FOR(SHORTAGE) | FOR(NO_FIGURES),
     .frameworks = BIT(TENSORRT_LLM),
     .action = "smaller-cache",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Leave more room beside the cache (kv_cache_free_gpu_mem_fraction, default 0.9), or "
             "build with a smaller max_batch_size, max_num_tokens and max_seq_len"},
    {.verdicts = FOR(SHORTAGE) | FOR(NO_FIGURES) | FOR(OVERSIZED),
     .frameworks = BIT(ASCEND),
     .action = "device-memory",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Look with npu-smi info who else holds the device, and raise what MindSpore may take "
             "(context.set_context(max_device_memory=\"58GB\"))"},
    {.verdicts = FOR(SHORTAGE) | FOR(NO_FIGURES),
     .frameworks = BIT(PHYSX),
     .action = "fewer-environments",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Simulate fewer environments (num_envs), and lower PhysX's own buffers "
             "(gpu_max_rigid_contact_count, gpu_found_lost_pairs_capacity, gpu_heap_capacity)"},
    {.verdicts = FOR(PLATFORM),
     .frameworks = BIT(HASHCAT),
     .action = "smaller-attack",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Make the attack smaller: a lower workload (-w 1), fewer threads or accelerations "
             "(-n, -u, -T), fewer hashes or rules at a time"},
    {.verdicts = FOR(SHORTAGE) | FOR(NO_FIGURES),
     .frameworks = BIT(MXNET),
     .action = "smaller-pool",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Let the pool give back more (MXNET_GPU_MEM_POOL_RESERVE, "
             "MXNET_GPU_MEM_POOL_TYPE=Round)"},
    {.verdicts = FOR(SHORTAGE) | FOR(NO_FIGURES),
     .frameworks = BIT(BLENDER),
     .action = "smaller-scene",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Make the scene smaller: Simplify with a texture limit, less subdivision, persistent "
             "data off, tiles"},
    {.verdicts = FOR(SHORTAGE) | FOR(NO_FIGURES) | FOR(PLATFORM),
     .frameworks = BIT(CUDA_JL),
     .action = "collect",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Free what is no longer used at once (CUDA.unsafe_free!), then GC.gc(true) and "
             "CUDA.reclaim()"},
    {.verdicts = FOR(SHORTAGE) | FOR(NO_FIGURES),
     .frameworks = BIT(OLLAMA),
     .action = "fewer-layers",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Ask for less: a smaller context (num_ctx), fewer layers on the GPU (num_gpu), a "
             "smaller quantisation, OLLAMA_NUM_PARALLEL=1"},

    /* shortage, and what helps with any other */
    {.verdicts = FOR(SHORTAGE),
     .frameworks = ALL,
     .action = "host-spill",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "The driver is already using host memory in the device's place, which is slow: turn "
             "its fallback off to see the true limit",
     .applies = is_spilling},
    {.verdicts = FOR(SHORTAGE) | FOR(NO_FIGURES) | FOR(CACHE_HELD),
     .frameworks = ALL & ~(BIT(GGML) | BIT(OLLAMA) | BIT(PHYSX) | BIT(BLENDER) | BIT(HASHCAT)),
     .action = "smaller-batch",
     .gain = FRAG_GAIN_MISSING,
     .text = "Ask for less at a time: smaller batch (with gradient accumulation), shorter "
             "sequences, smaller images, fewer at once",
     .with_gain = "; at least %s must go"},
    {.verdicts = FOR(SHORTAGE) | FOR(NO_FIGURES),
     .frameworks = BIT(GGML),
     .action = "fewer-layers",
     .gain = FRAG_GAIN_MISSING,
     .text = "Ask for less: a smaller context (-c), fewer layers on the GPU (-ngl), a smaller "
             "micro-batch (-ub), a quantised cache (-ctk, -ctv)",
     .with_gain = "; at least %s must go"},
    {.verdicts = FOR(SHORTAGE),
     .frameworks = TORCH,
     .action = "lighter-model",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "For training: bfloat16, activation checkpointing, an optimizer with smaller state; "
             "for inference: no_grad or inference_mode, half precision, quantised weights"},
    {.verdicts = FOR(SHORTAGE),
     .frameworks = NATIVE,
     .setting_id = FRAG_SETTING_EXPANDABLE,
     .action = "expandable-segments",
     .conf_setting = expandable_segments,
     .gain = FRAG_GAIN_IDLE,
     .text = "@ helps a little",
     .with_gain = ": at most the %s idle now, which is not enough alone",
     .applies = can_expand_idle},
    {.verdicts = FOR(SHORTAGE),
     .frameworks = ALL & ~BIT(PYTORCH_MPS),
     .action = "find-others",
     .gain = FRAG_GAIN_OUTSIDE,
     .text = "Free what others hold on the device (desktop, notebooks, other jobs)",
     .with_gain = "; up to %s, less what the driver needs",
     .applies = has_outside},
    {.verdicts = FOR(SHORTAGE) | FOR(OTHER_MEMORY),
     .frameworks = BIT(PYTORCH_MPS),
     .setting_id = FRAG_SETTING_MPS_WATERMARK,
     .action = "mps-watermark",
     .setting = "PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "@ lifts the limit; the computer may then swap or stall"},
    {.verdicts = FOR(NO_FIGURES),
     .frameworks = TORCH | BIT(UNKNOWN),
     .action = "leave-room",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "A library asked the driver while PyTorch's cache may hold the rest: leave room with "
             "torch.cuda.set_per_process_memory_fraction, or call torch.cuda.empty_cache() before",
     .applies = is_library},
    {.verdicts = FOR(NO_FIGURES) | FOR(OTHER_MEMORY) | FOR(SHORTAGE),
     .frameworks = BIT(JAX),
     .setting_id = FRAG_SETTING_XLA_FRACTION,
     .action = "preallocation",
     .setting = "XLA_PYTHON_CLIENT_MEM_FRACTION=.95",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "JAX takes three quarters of the device at its start and keeps to them: "
             "@ gives it more",
     .applies = may_preallocate},
    {.verdicts = FOR(SHORTAGE),
     .frameworks = BIT(JAX),
     .action = "shard",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Spread arrays over more devices (jax.sharding), or recompute instead of keeping "
             "(jax.checkpoint)",
     .applies = needs_more},
    {.verdicts = FOR(NO_FIGURES),
     .frameworks = ALL,
     .action = "more-figures",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Look with < what the device holds at that moment, and paste the whole message with "
             "what stands around it; a snapshot or a trace tells most"},
    {.verdicts = FOR(SHORTAGE),
     .frameworks = SNAPSHOTS,
     .action = "record-and-explain",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "To see what holds the memory, record a snapshot (torch.cuda.memory"
             "._record_memory_history, _dump_snapshot) and give it to fraglab explain"},

    /* not a device's memory */
    {.verdicts = FOR(NOT_AN_OOM),
     .frameworks = ALL,
     .action = "smaller-kernel",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Give the kernel smaller blocks or fewer stages (BLOCK_SIZE, num_stages, num_warps of "
             "Triton), or take a release that is tuned for this GPU; a smaller batch does not help",
     .applies = is_on_chip},
    {.verdicts = FOR(NOT_AN_OOM),
     .frameworks = ALL,
     .action = "more-shared-memory",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Give the container more (docker run --shm-size=16g, or --ipc=host), or use fewer "
             "workers (num_workers=0 needs none)",
     .applies = is_shm},
    {.verdicts = FOR(NOT_AN_OOM),
     .frameworks = ALL,
     .action = "less-pinned",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Pin less (pin_memory=False, a smaller offload buffer), and look at ulimit -l and the "
             "container's memory limit",
     .applies = is_pinned},
    {.verdicts = FOR(NOT_AN_OOM),
     .frameworks = ALL,
     .action = "free-disk",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Look with df -h and df -i what is full, caches of models and TMPDIR among them",
     .applies = is_disk},
    {.verdicts = FOR(NOT_AN_OOM),
     .frameworks = ALL,
     .action = "less-host-memory",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Look with free -h and dmesg what the computer has, and use less of it: fewer workers "
             "of the data loader, data read piece by piece, weights loaded straight to the device "
             "(low_cpu_mem_usage=True, safetensors, mmap)",
     .applies = is_plain_host},
    {.verdicts = FOR(NOT_AN_OOM),
     .frameworks = ALL,
     .action = "raise-host-limit",
     .gain = FRAG_GAIN_UNKNOWN,
     .text = "Or ask for more: --mem of the batch system, the memory limit of the container, swap",
     .applies = is_plain_host},
};

const size_t frag_advice_rule_count = sizeof frag_advice_rules / sizeof *frag_advice_rules;
