#include "studies/explain/advice_rules.h"

#include <inttypes.h>
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

/* What can be known of a case; docs/explain.md, "Advice". */
enum {
    EXPANDS, /* expandable segments work: they came with 2.1, to ROCm much later, never to Windows
              */
    WINDOWS,
    OLDEST,      /* before max_split_size_mb, */
    OLD,         /* which came with 1.10: a message without the hint to it may be older */
    NEARLY_FULL, /* even with all holes gone little would be left */
    MOSTLY_FREE, /* the device is as good as free already */
    SPILLING,
    UNSURE,
    REQUEST,
    OTHERS, /* hold something that is worth looking for */
    OWN,    /* this process does, beside its allocator */
    IDLE,
    EXPANDING,
    LOADING, /* the model was being put on the device, and fills it: no setting makes room for it */
    RANKS,
    GRAPHICS, /* a program that draws */
    BLOCK_MAX,
    LIBRARY,
    POOL_FULL,
    TOKENS, /* the message says how long a context fits */
    WHOLE,  /* the figures are of a compiled program, before it took anything */
    /* what else than a device's memory ran out */
    ON_CHIP,
    SHM,
    PINNED,
    DISK,
    HOST,
    FACT_COUNT
};
#define IF(fact) (1u << (fact))

bool frag_advice_has_release(const frag_message *message, const char *release)
{
    return message != NULL && message->release != NULL && strcmp(message->release, release) == 0;
}

static bool can_expand(const frag_messages *messages, const frag_message *message)
{
    if (message != NULL && message->framework == FRAG_FRAMEWORK_PYTORCH_HIP)
        return !messages->is_windows && frag_advice_has_release(message, "PyTorch 2.11 or later");
    return !messages->is_windows && !frag_advice_has_release(message, "PyTorch 1.0 to 1.3") &&
           !frag_advice_has_release(message, "PyTorch 1.4 to 2.0") &&
           !frag_advice_has_release(message, "PyTorch 1.10 to 2.0");
}

/* The message names them; or else what is neither free nor this process's, as far as that is known.
 */
frag_amount frag_advice_others(const frag_diagnosis *diagnosis)
{
    const frag_amount *others = &diagnosis->figures[FRAG_FIGURE_OTHERS];
    frag_amount left = diagnosis->outside;
    if (left.is_known && others->is_known && others->bytes > 0)
        return *others;
    if (left.is_known && diagnosis->context.is_known)
        left.bytes -= diagnosis->context.bytes < left.bytes ? diagnosis->context.bytes : left.bytes;
    return left;
}

uint32_t frag_advice_facts(const frag_messages *messages, const frag_message *message,
                           const frag_diagnosis *diagnosis)
{
    const frag_amount *figures = diagnosis->figures;
    frag_amount total = figures[FRAG_FIGURE_TOTAL], free = figures[FRAG_FIGURE_FREE];
    frag_amount allocated = figures[FRAG_FIGURE_ALLOCATED], idle = figures[FRAG_FIGURE_IDLE];
    frag_amount requested = figures[FRAG_FIGURE_REQUESTED];
    bool is_measured = total.is_known && allocated.is_known;
    uint32_t says = message != NULL ? message->says : 0;
    const uint32_t special = FRAG_SAYS_ON_CHIP | FRAG_SAYS_SHM | FRAG_SAYS_PINNED | FRAG_SAYS_DISK;
    uint32_t of_host =
        message != NULL && message->kind == FRAG_MESSAGE_HOST ? says & special : special;
    const bool holds[FACT_COUNT] = {
        [EXPANDS] = can_expand(messages, message),
        [WINDOWS] = messages->is_windows,
        [OLDEST] = frag_advice_has_release(message, "PyTorch 1.0 to 1.3"),
        [OLD] = frag_advice_has_release(message, "PyTorch 1.4 to 2.0"),
        [NEARLY_FULL] =
            is_measured && allocated.bytes + requested.bytes >= total.bytes - total.bytes / 8,
        [MOSTLY_FREE] = free.is_known && free.bytes >= total.bytes - total.bytes / 4,
        [SPILLING] =
            total.is_known && allocated.bytes > total.bytes && (says & FRAG_SAYS_GUESS) == 0,
        [UNSURE] = diagnosis->confidence != FRAG_CONFIDENCE_HIGH,
        [REQUEST] = requested.is_known,
        [OTHERS] = frag_advice_others(diagnosis).bytes >= FRAG_GIB / 2,
        [OWN] = diagnosis->is_own,
        [IDLE] = idle.is_known && idle.bytes >= requested.bytes / 2 && idle.bytes > 64 * FRAG_MIB,
        [EXPANDING] = messages->is_on[FRAG_SETTING_EXPANDABLE],
        [LOADING] = (messages->scenes & FRAG_SCENE_LOADING) != 0 &&
                    !(is_measured && allocated.bytes < total.bytes / 2),
        [RANKS] = (messages->scenes & FRAG_SCENE_RANKS) != 0,
        [GRAPHICS] = (messages->scenes & FRAG_SCENE_GRAPHICS) != 0 &&
                     (message == NULL || message->framework == FRAG_FRAMEWORK_UNKNOWN),
        [BLOCK_MAX] = (says & FRAG_SAYS_BLOCK_MAX) != 0,
        [LIBRARY] = (says & FRAG_SAYS_LIBRARY) != 0,
        [POOL_FULL] = (says & FRAG_SAYS_POOL_FULL) != 0,
        [TOKENS] = diagnosis->tokens > 0,
        [WHOLE] = (says & FRAG_SAYS_WHOLE) != 0,
        [ON_CHIP] = of_host == FRAG_SAYS_ON_CHIP,
        [SHM] = of_host == FRAG_SAYS_SHM,
        [PINNED] = of_host == FRAG_SAYS_PINNED,
        [DISK] = of_host == FRAG_SAYS_DISK,
        [HOST] = of_host == 0,
    };
    uint32_t facts = 0;
    for (unsigned fact = 0; fact < FACT_COUNT; fact++)
        facts |= holds[fact] ? IF(fact) : 0;
    return facts;
}

/* ---- settings with a number */

unsigned frag_advice_share(const frag_diagnosis *diagnosis)
{
    frag_amount free = diagnosis->figures[FRAG_FIGURE_FREE];
    uint64_t hundredth = diagnosis->figures[FRAG_FIGURE_TOTAL].bytes / 100;
    uint64_t share = hundredth > 0 && free.is_known ? free.bytes / hundredth : 0;
    return share < 100 ? (unsigned)share : 0;
}

static void make_utilisation(const frag_diagnosis *diagnosis, frag_text *setting)
{
    unsigned share = frag_advice_share(diagnosis);
    if (share > 0)
        frag_text_add(setting, "--gpu-memory-utilization 0.%02u", share);
}

static void make_context(const frag_diagnosis *diagnosis, frag_text *setting)
{
    if (diagnosis->tokens > 0)
        frag_text_add(setting, "--max-model-len %" PRIu64, diagnosis->tokens);
}

/* In the order in which they are worth trying. Sources: docs/explain.md, "Advice". */
const frag_advice_rule frag_advice_rules[] = {
    /* a model that does not fit while it is loaded: before any setting */
    {FOR(FRAGMENTATION) | FOR(SHORTAGE) | FOR(NO_FIGURES), TORCH | BIT(UNKNOWN),
     "offload-or-quantise", .when = IF(LOADING),
     .text = "It ran out while a model was put on the device, so the model itself is too large: "
             "load it in 16 bits (torch_dtype=torch.bfloat16) or quantised "
             "(BitsAndBytesConfig(load_in_4bit=True)), or keep part of it on the host "
             "(device_map=\"auto\"; for diffusers pipe.enable_model_cpu_offload() in place of "
             "pipe.to(\"cuda\"))"},
    /* ranks that share a device by mistake */
    {FOR(OTHER_MEMORY) | FOR(SHORTAGE) | FOR(NO_FIGURES) | FOR(FRAGMENTATION), ALL,
     "one-rank-per-device", .when = IF(RANKS),
     .text = "Several ranks run on the same device: let each take its own "
             "(torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"])) before anything uses CUDA, "
             "and map_location=\"cpu\" in torch.load), and start no more ranks than the computer "
             "has devices"},

    /* fragmentation */
    {FOR(FRAGMENTATION), NATIVE, "expandable-segments", .when = IF(EXPANDS),
     .unless_set = FRAG_SETTING_EXPANDABLE, .conf_setting = expandable_segments,
     .gain = FRAG_GAIN_IDLE,
     .text = "Set @: memory then grows page by page and holes can be given back",
     .with_gain = "; at most the %s idle now"},
    {FOR(FRAGMENTATION), BIT(PYTORCH), "upgrade", .unless = IF(WINDOWS) | IF(EXPANDS),
     .unless_set = FRAG_SETTING_EXPANDABLE, .gain = FRAG_GAIN_IDLE,
     .text = "Move to PyTorch 2.1 or later, whose expandable segments can give holes back",
     .with_gain = "; at most the %s idle now"},
    {FOR(FRAGMENTATION), BIT(PYTORCH_HIP), "upgrade", .unless = IF(WINDOWS) | IF(EXPANDS),
     .unless_set = FRAG_SETTING_EXPANDABLE, .gain = FRAG_GAIN_IDLE,
     .text = "Move to a recent PyTorch for ROCm 7, whose expandable segments can give holes back; "
             "older builds for ROCm ignore that setting",
     .with_gain = "; at most the %s idle now"},
    {FOR(FRAGMENTATION), NATIVE, "max-split-size", .unless = IF(EXPANDS) | IF(OLDEST) | IF(OLD),
     .unless_set = FRAG_SETTING_MAX_SPLIT, .conf_setting = max_split_size, .gain = FRAG_GAIN_IDLE,
     .text = "Set @, so that large blocks are not cut up; small values such as 128 often make it "
             "worse",
     .with_gain = "; at most the %s idle now"},
    {FOR(FRAGMENTATION), NATIVE, "max-split-size", .when = IF(OLD), .unless = IF(EXPANDS),
     .unless_set = FRAG_SETTING_MAX_SPLIT, .conf_setting = max_split_size, .gain = FRAG_GAIN_IDLE,
     .text = "Set @ (PyTorch 1.10 or later), so that large blocks are not cut up; small values "
             "such as 128 often make it worse",
     .with_gain = "; at most the %s idle now"},
    {FOR(FRAGMENTATION), SNAPSHOTS, "record-and-explain", .when = IF(EXPANDING),
     .text = "Expandable segments are on and holes remain: record a snapshot "
             "(torch.cuda.memory._record_memory_history, _dump_snapshot) and give it to fraglab "
             "explain, which names the blocks that hold them"},
    {FOR(FRAGMENTATION), BIT(TENSORFLOW), "cuda-malloc-async", .unless_set = FRAG_SETTING_TF_ASYNC,
     .setting = "TF_GPU_ALLOCATOR=cuda_malloc_async", .gain = FRAG_GAIN_IDLE,
     .text = "Set @, which can move free memory together",
     .with_gain = "; at most the %s free now"},
    {FOR(FRAGMENTATION), ALL, "smaller-batch", .when = IF(NEARLY_FULL),
     .text = "The device is nearly full besides, so ask for less at a time too: smaller batch "
             "(with gradient accumulation), shorter sequences, smaller images"},
    {FOR(FRAGMENTATION), ALL, "same-sizes",
     .text = "Let sizes repeat: pad or bucket sequence lengths and image sizes, and run the "
             "largest batch first, so that its blocks serve all others"},
    {FOR(FRAGMENTATION), TORCH, "free-early",
     .text = "Drop what outlives its step (outputs kept for logs, losses with their graph) before "
             "the large request; empty_cache() alone gains nothing, PyTorch has just done it"},

    /* somebody else */
    {FOR(OTHER_MEMORY), BIT(VLLM), "lower-utilisation", .when = IF(MOSTLY_FREE),
     .make_setting = make_utilisation, .gain = FRAG_GAIN_SHARE,
     .text = "Lower gpu_memory_utilization to what is free: @", .with_gain = " is %s"},
    {FOR(OTHER_MEMORY), ALL & ~BIT(PYTORCH_MPS), "own-process", .when = IF(OWN),
     .gain = FRAG_GAIN_CONTEXT,
     .text = "Look what else in this process takes memory of the device: another framework or a "
             "second copy of this one, buffers of NCCL, CUDA graphs, a library that allocates by "
             "itself",
     .with_gain = "; up to %s, less what the driver needs"},
    {FOR(OTHER_MEMORY), ALL & ~BIT(PYTORCH_MPS), "find-others", .when = IF(OWN) | IF(OTHERS),
     .gain = FRAG_GAIN_OTHERS,
     .text = "Look with < who else holds the device, and end what should not be there",
     .with_gain = "; up to %s"},
    {FOR(OTHER_MEMORY), ALL & ~BIT(PYTORCH_MPS), "find-others", .unless = IF(OWN),
     .gain = FRAG_GAIN_OTHERS,
     .text = "Look with < who holds the device, dead processes and notebooks among them, and end "
             "those that should not be there",
     .with_gain = "; up to %s"},
    {FOR(OTHER_MEMORY), BIT(PYTORCH_MPS), "find-others",
     .text = "Much of it is not PyTorch's: compiled graphs and libraries that use Metal in the "
             "same process. Start the process anew, let shapes repeat (each compiles a graph that "
             "is kept), and close other programs, with which the GPU shares memory"},
    {FOR(OTHER_MEMORY), ALL & ~BIT(PYTORCH_MPS), "other-device", .unless = IF(RANKS) | IF(OWN),
     .text = "Take another device: start the program with >=N, N the number of one that < shows "
             "to be free"},
    {FOR(OTHER_MEMORY), BIT(VLLM), "lower-utilisation", .unless = IF(MOSTLY_FREE),
     .make_setting = make_utilisation, .gain = FRAG_GAIN_SHARE,
     .text = "Or lower gpu_memory_utilization to what is free: @", .with_gain = " is %s"},
    {FOR(OTHER_MEMORY), ALL & ~(BIT(GGML) | BIT(OLLAMA)), "smaller-batch", .when = IF(UNSURE),
     .gain = FRAG_GAIN_MISSING,
     .text = "If nobody else is there, ask for less at a time: smaller batch (with gradient "
             "accumulation), shorter sequences, smaller images",
     .with_gain = "; at least %s must go"},

    /* a limit */
    {FOR(LIMIT), TORCH, "raise-reserve", .when = IF(POOL_FULL), .gain = FRAG_GAIN_FREE,
     .text = "Leave expandable_segments_reserve out, or let it reserve more than a request can be",
     .with_gain = "; the device has %s free"},
    {FOR(LIMIT), TORCH, "raise-limit", .unless = IF(POOL_FULL), .gain = FRAG_GAIN_FREE,
     .text = "Raise what set_per_process_memory_fraction (or the key per_process_memory_fraction) "
             "allows",
     .with_gain = "; the device has %s free"},
    {FOR(LIMIT), BIT(CUPY), "raise-limit",
     .text = "Raise the pool's limit: CUPY_GPU_MEMORY_LIMIT or "
             "cupy.get_default_memory_pool().set_limit()"},
    {FOR(LIMIT), BIT(RMM), "raise-limit",
     .text = "Give the pool a larger maximum_pool_size, or a larger initial_pool_size: a pool that "
             "grows in pieces cannot serve a request larger than its pieces"},
    {FOR(LIMIT), BIT(ONNXRUNTIME), "raise-limit",
     .text = "Raise gpu_mem_limit of the execution provider, or set arena_extend_strategy to "
             "kSameAsRequested"},
    {FOR(LIMIT), BIT(VLLM), "shorter-context", .make_setting = make_context,
     .text = "Set @, the longest context that the cache has room for by the message, or keep it in "
             "8 bits (kv_cache_dtype)"},
    {FOR(LIMIT), BIT(VLLM), "shorter-context", .when = IF(REQUEST), .unless = IF(TOKENS),
     .gain = FRAG_GAIN_MISSING,
     .text = "Lower max_model_len, which the cache is sized for, or keep it in 8 bits "
             "(kv_cache_dtype)",
     .with_gain = "; at least %s must go"},
    {FOR(LIMIT), BIT(VLLM), "raise-limit",
     .text = "Raise gpu_memory_utilization above its default of 0.9 (--gpu-memory-utilization "
             "0.95), or leave less to weights and context (--max-model-len, quantised weights)"},

    {FOR(LIMIT), BIT(SGLANG), "raise-limit",
     .text = "Raise --mem-fraction-static, or leave less to the weights: more devices (--tp), "
             "quantised weights"},

    {FOR(LIMIT), BIT(CUDA_JL), "raise-limit", .gain = FRAG_GAIN_FREE,
     .text = "Raise JULIA_CUDA_HARD_MEMORY_LIMIT (JULIA_CUDA_MEMORY_LIMIT before CUDA.jl 4), or "
             "leave it out",
     .with_gain = "; the device has %s free"},
    {FOR(LIMIT), BIT(JAX), "smaller-tiles",
     .text = "Make the blocks of the kernel smaller (BlockSpec of Pallas), or let XLA use less of "
             "that memory at once (--xla_tpu_scoped_vmem_limit_kib in LIBTPU_INIT_ARGS)"},
    {FOR(LIMIT),
     ALL & ~(BIT(SGLANG) | TORCH | BIT(CUPY) | BIT(RMM) | BIT(ONNXRUNTIME) | BIT(VLLM) |
             BIT(CUDA_JL) | BIT(JAX)),
     "raise-limit", .gain = FRAG_GAIN_FREE,
     .text = "Raise the limit that the program was given, or make it ask for less",
     .with_gain = "; the device has %s free"},

    /* the request itself */
    {FOR(OVERSIZED), ALL, "check-shapes",
     .text = "Look at the line that asked: a tensor of this size is a product of dimensions, and "
             "one of them is likely wrong (attention over all positions, an outer product by "
             "broadcasting, an image at full size)"},
    {FOR(OVERSIZED), ALL, "in-pieces",
     .text = "Do it in pieces: tiles, chunks of the batch, attention that does not write the whole "
             "matrix (scaled_dot_product_attention, FlashAttention)"},
    {FOR(OVERSIZED), ALL, "no-setting",
     .text = "No allocator setting helps: the device is smaller than the request"},

    /* platform */
    {FOR(PLATFORM), BIT(GGML), "smaller-blocks", .when = IF(BLOCK_MAX),
     .text = "Make the largest block smaller: a smaller context (-c) or micro-batch (-ub), fewer "
             "layers on the GPU (-ngl); newer releases split large buffers themselves"},
    {FOR(PLATFORM), BIT(OLLAMA), "smaller-blocks", .when = IF(BLOCK_MAX),
     .text = "Make the largest block smaller: a smaller context (num_ctx), fewer layers on the GPU "
             "(num_gpu); newer releases split large buffers themselves"},
    {FOR(PLATFORM), ALL & ~(BIT(GGML) | BIT(OLLAMA)), "in-pieces", .when = IF(BLOCK_MAX),
     .text = "Do it in pieces, each below that size: tiles, chunks of the batch, attention that "
             "does not write the whole matrix"},
    {FOR(PLATFORM), ALL, "one-allocation", .unless = IF(BLOCK_MAX),
     .text = "Try the same size alone in a fresh process: if that fails too, it is driver, "
             "container or platform (WSL, virtual GPU, unified memory), not the program"},
    {FOR(PLATFORM), ALL, "check-platform",
     .text = "Check that the device is the one meant (an integrated GPU?), the limits of the "
             "container or partition, host memory and swap, and update the driver"},
    {FOR(PLATFORM), ALL & ~BIT(PYTORCH_MPS), "find-others", .unless = IF(BLOCK_MAX),
     .gain = FRAG_GAIN_OTHERS,
     .text = "Look with < who else holds the device: others may have held at that moment what was "
             "free when the message was written"},

    /* caches */
    {FOR(CACHE_HELD), ALL, "fewer-graphs", .gain = FRAG_GAIN_PRIVATE,
     .text = "Capture fewer CUDA graphs, let them share a pool, or do without them",
     .with_gain = "; up to %s"},

    /* what a program of its own has to offer */
    {FOR(SHORTAGE) | FOR(NO_FIGURES), BIT(TENSORRT), "smaller-workspace",
     .text = "Let the builder use less: setMemoryPoolLimit(kWORKSPACE, ...), trtexec "
             "--memPoolSize=workspace:1024, a smaller largest shape in the profile, FP16"},
    {FOR(SHORTAGE) | FOR(NO_FIGURES), BIT(TENSORRT_LLM), "smaller-cache",
     .text = "Leave more room beside the cache (kv_cache_free_gpu_mem_fraction, default 0.9), or "
             "build with a smaller max_batch_size, max_num_tokens and max_seq_len"},
    {FOR(SHORTAGE) | FOR(NO_FIGURES) | FOR(OVERSIZED), BIT(ASCEND), "device-memory",
     .text = "Look with npu-smi info who else holds the device, and raise what MindSpore may take "
             "(context.set_context(max_device_memory=\"58GB\"))"},
    {FOR(SHORTAGE) | FOR(NO_FIGURES), BIT(PHYSX), "fewer-environments",
     .text = "Simulate fewer environments (num_envs), and lower PhysX's own buffers "
             "(gpu_max_rigid_contact_count, gpu_found_lost_pairs_capacity, gpu_heap_capacity)"},
    {FOR(PLATFORM), BIT(HASHCAT), "smaller-attack",
     .text = "Make the attack smaller: a lower workload (-w 1), fewer threads or accelerations "
             "(-n, -u, -T), fewer hashes or rules at a time"},
    {FOR(SHORTAGE) | FOR(NO_FIGURES), BIT(MXNET), "smaller-pool",
     .text = "Let the pool give back more (MXNET_GPU_MEM_POOL_RESERVE, "
             "MXNET_GPU_MEM_POOL_TYPE=Round)"},
    {FOR(SHORTAGE) | FOR(NO_FIGURES), BIT(BLENDER), "smaller-scene",
     .text = "Make the scene smaller: Simplify with a texture limit, less subdivision, persistent "
             "data off, tiles"},
    {FOR(SHORTAGE) | FOR(NO_FIGURES) | FOR(PLATFORM), BIT(CUDA_JL), "collect",
     .text = "Free what is no longer used at once (CUDA.unsafe_free!), then GC.gc(true) and "
             "CUDA.reclaim()"},
    {FOR(SHORTAGE) | FOR(NO_FIGURES), BIT(OLLAMA), "fewer-layers", .gain = FRAG_GAIN_MISSING,
     .text = "Ask for less: a smaller context (num_ctx), fewer layers on the GPU (num_gpu), a "
             "smaller quantisation, OLLAMA_NUM_PARALLEL=1",
     .with_gain = "; at least %s must go"},

    /* shortage, and what helps with any other */
    {FOR(SHORTAGE), ALL, "host-spill", .when = IF(SPILLING), .unless = IF(WHOLE),
     .text = "The driver is already using host memory in the device's place, which is slow: turn "
             "its fallback off to see the true limit"},
    {FOR(SHORTAGE) | FOR(NO_FIGURES), BIT(UNKNOWN), "smaller-scene", .when = IF(GRAPHICS),
     .gain = FRAG_GAIN_MISSING,
     .text = "Ask for less at a time: a lower resolution, smaller tiles and textures, a shorter "
             "view distance, fewer objects; and close other programs that draw",
     .with_gain = "; at least %s must go"},
    {FOR(SHORTAGE) | FOR(NO_FIGURES) | FOR(CACHE_HELD),
     ALL & ~(BIT(GGML) | BIT(OLLAMA) | BIT(PHYSX) | BIT(BLENDER) | BIT(HASHCAT)), "smaller-batch",
     .unless = IF(GRAPHICS), .gain = FRAG_GAIN_MISSING,
     .text = "Ask for less at a time: smaller batch (with gradient accumulation), shorter "
             "sequences, smaller images, fewer at once",
     .with_gain = "; at least %s must go"},
    {FOR(SHORTAGE) | FOR(NO_FIGURES), BIT(GGML), "fewer-layers", .gain = FRAG_GAIN_MISSING,
     .text = "Ask for less: a smaller context (-c), fewer layers on the GPU (-ngl), a smaller "
             "micro-batch (-ub), a quantised cache (-ctk, -ctv)",
     .with_gain = "; at least %s must go"},
    {FOR(SHORTAGE), TORCH, "lighter-model",
     .text = "For training: bfloat16, activation checkpointing, an optimizer with smaller state; "
             "for inference: no_grad or inference_mode, half precision, quantised weights"},
    {FOR(SHORTAGE), NATIVE, "expandable-segments", .when = IF(EXPANDS) | IF(IDLE),
     .unless_set = FRAG_SETTING_EXPANDABLE, .conf_setting = expandable_segments,
     .gain = FRAG_GAIN_IDLE, .text = "@ helps a little",
     .with_gain = ": at most the %s idle now, which is not enough alone"},
    {FOR(SHORTAGE), ALL & ~BIT(PYTORCH_MPS), "find-others", .when = IF(OTHERS),
     .gain = FRAG_GAIN_OTHERS,
     .text = "Free what others hold on the device (desktop, notebooks, other jobs)",
     .with_gain = "; up to %s, less what the driver needs"},
    {FOR(SHORTAGE) | FOR(OTHER_MEMORY), BIT(PYTORCH_MPS), "mps-watermark",
     .unless_set = FRAG_SETTING_MPS_WATERMARK, .setting = "PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0",
     .text = "@ lifts the limit; the computer may then swap or stall"},
    {FOR(NO_FIGURES), TORCH | BIT(UNKNOWN), "leave-room", .when = IF(LIBRARY),
     .text = "A library asked the driver while PyTorch's cache may hold the rest: leave room with "
             "torch.cuda.set_per_process_memory_fraction, or call torch.cuda.empty_cache() before"},
    {FOR(NO_FIGURES) | FOR(OTHER_MEMORY) | FOR(SHORTAGE), BIT(JAX), "preallocation",
     .unless = IF(WHOLE), .unless_set = FRAG_SETTING_XLA_FRACTION,
     .setting = "XLA_PYTHON_CLIENT_MEM_FRACTION=.95",
     .text = "JAX takes three quarters of the device at its start and keeps to them: "
             "@ gives it more"},
    {FOR(SHORTAGE), BIT(JAX), "shard", .when = IF(WHOLE),
     .text = "Spread arrays over more devices (jax.sharding), or recompute instead of keeping "
             "(jax.checkpoint)"},
    {FOR(NO_FIGURES), ALL, "more-figures",
     .text = "Look with < what the device holds at that moment, and paste the whole message with "
             "what stands around it; a snapshot or a trace tells most"},
    {FOR(SHORTAGE), SNAPSHOTS, "record-and-explain",
     .text = "To see what holds the memory, record a snapshot (torch.cuda.memory"
             "._record_memory_history, _dump_snapshot) and give it to fraglab explain"},

    /* not a device's memory */
    {FOR(NOT_AN_OOM), ALL, "smaller-kernel", .when = IF(ON_CHIP),
     .text =
         "Give the kernel smaller blocks or fewer stages (BLOCK_SIZE, num_stages, num_warps of "
         "Triton), or take a release that is tuned for this GPU; a smaller batch does not help"},
    {FOR(NOT_AN_OOM), ALL, "more-shared-memory", .when = IF(SHM),
     .text = "Give the container more (docker run --shm-size=16g, or --ipc=host), or use fewer "
             "workers (num_workers=0 needs none)"},
    {FOR(NOT_AN_OOM), ALL, "less-pinned", .when = IF(PINNED),
     .text = "Pin less (pin_memory=False, a smaller offload buffer), and look at ulimit -l and the "
             "container's memory limit"},
    {FOR(NOT_AN_OOM), ALL, "free-disk", .when = IF(DISK),
     .text = "Look with df -h and df -i what is full, caches of models and TMPDIR among them"},
    {FOR(NOT_AN_OOM), ALL, "less-host-memory", .when = IF(HOST),
     .text = "Look with free -h and dmesg what the computer has, and use less of it: fewer workers "
             "of the data loader, data read piece by piece, weights loaded straight to the device "
             "(low_cpu_mem_usage=True, safetensors, mmap)"},
    {FOR(NOT_AN_OOM), ALL, "raise-host-limit", .when = IF(HOST),
     .text = "Or ask for more: --mem of the batch system, the memory limit of the container, swap"},
};

const size_t frag_advice_rule_count = sizeof frag_advice_rules / sizeof *frag_advice_rules;
