/* What an out-of-memory message can say: its framework, its figures, and what else its words tell.
 */
#ifndef FRAG_MESSAGES_MESSAGE_FACTS_H
#define FRAG_MESSAGES_MESSAGE_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(enumerator, name in JSON, name for people) */
#define FRAG_FRAMEWORKS(X)                                                                         \
    X(UNKNOWN, "unknown", "the GPU driver or a library")                                           \
    X(PYTORCH, "pytorch", "PyTorch")                                                               \
    X(PYTORCH_ASYNC, "pytorch-async", "PyTorch with cudaMallocAsync")                              \
    X(PYTORCH_HIP, "pytorch-hip", "PyTorch on ROCm")                                               \
    X(PYTORCH_XPU, "pytorch-xpu", "PyTorch on XPU")                                                \
    X(PYTORCH_MPS, "pytorch-mps", "PyTorch on MPS")                                                \
    X(PYTORCH_NPU, "pytorch-npu", "PyTorch on NPU")                                                \
    X(TENSORFLOW, "tensorflow", "TensorFlow")                                                      \
    X(JAX, "jax", "JAX or XLA")                                                                    \
    X(CUPY, "cupy", "CuPy")                                                                        \
    X(RMM, "rmm", "RMM")                                                                           \
    X(GGML, "ggml", "ggml")                                                                        \
    X(ONNXRUNTIME, "onnxruntime", "ONNX Runtime")                                                  \
    X(PADDLE, "paddle", "PaddlePaddle")                                                            \
    X(VLLM, "vllm", "vLLM")                                                                        \
    X(SGLANG, "sglang", "SGLang")                                                                  \
    X(TENSORRT, "tensorrt", "TensorRT")                                                            \
    X(TENSORRT_LLM, "tensorrt-llm", "TensorRT-LLM")                                                \
    X(ASCEND, "ascend", "Ascend (MindSpore or CANN)")                                              \
    X(PHYSX, "physx", "PhysX")                                                                     \
    X(HASHCAT, "hashcat", "hashcat")                                                               \
    X(CUDA_JL, "cuda-jl", "CUDA.jl")                                                               \
    X(MXNET, "mxnet", "MXNet")                                                                     \
    X(CAFFE, "caffe", "Caffe")                                                                     \
    X(BLENDER, "blender", "Blender Cycles")                                                        \
    X(HABANA, "habana", "Habana Gaudi")                                                            \
    X(OLLAMA, "ollama", "Ollama")

typedef enum frag_framework {
#define FRAG_FRAMEWORK_ENUM(name, text, person) FRAG_FRAMEWORK_##name,
    FRAG_FRAMEWORKS(FRAG_FRAMEWORK_ENUM)
#undef FRAG_FRAMEWORK_ENUM
        FRAG_FRAMEWORK_COUNT
} frag_framework;

const char *frag_framework_name(frag_framework framework);
const char *frag_framework_title(frag_framework framework);

/* What a figure of a message is about. X(enumerator, JSON field) */
#define FRAG_FIGURES(X)                                                                            \
    X(REQUESTED, "requested_bytes")                                                                \
    X(TOTAL, "total_bytes")                                                                        \
    X(FREE, "free_bytes")            /* by the driver */                                           \
    X(ALLOCATED, "allocated_bytes")  /* in use by the program */                                   \
    X(RESERVED, "reserved_bytes")    /* held by the allocator, in use or not */                    \
    X(IDLE, "idle_bytes")            /* held by the allocator, not in use */                       \
    X(PRIVATE, "private_idle_bytes") /* idle in pools of CUDA graphs */                            \
    X(LIMIT, "limit_bytes")          /* what the program allowed itself */                         \
    X(PROCESS, "process_bytes")      /* all of this process, as the driver sees it */              \
    X(OTHERS, "others_bytes")        /* other programs, as far as the message names them */        \
    X(LARGEST, "largest_hole_bytes") /* largest free piece in the allocator's hands */             \
    X(EXCESS, "excess_bytes")        /* by which the message says that it was too much */

typedef enum frag_figure {
#define FRAG_FIGURE_ENUM(name, field) FRAG_FIGURE_##name,
    FRAG_FIGURES(FRAG_FIGURE_ENUM)
#undef FRAG_FIGURE_ENUM
        FRAG_FIGURE_COUNT
} frag_figure;

const char *frag_figure_field(frag_figure figure);

/* A figure as printed: "1.39 GiB" is only known to half of its last digit. */
typedef struct frag_amount {
    bool is_known;
    uint64_t bytes;
    uint64_t slack_bytes;
} frag_amount;

/* Settings that a text can show to be in force, so that nobody is told to set them. */
typedef enum frag_setting {
    FRAG_SETTING_NONE,
    FRAG_SETTING_EXPANDABLE,
    FRAG_SETTING_MAX_SPLIT,
    FRAG_SETTING_GARBAGE_COLLECTION,
    FRAG_SETTING_ROUNDUP,
    FRAG_SETTING_ASYNC,
    FRAG_SETTING_MPS_WATERMARK,
    FRAG_SETTING_XLA_NO_PREALLOCATE,
    FRAG_SETTING_XLA_FRACTION,
    FRAG_SETTING_TF_ASYNC,
    FRAG_SETTING_TF_GROWTH,
    FRAG_SETTING_COUNT
} frag_setting;

typedef enum frag_message_kind {
    FRAG_MESSAGE_NONE,     /* nothing about memory running out */
    FRAG_MESSAGE_HARMLESS, /* a warning: the program went on */
    FRAG_MESSAGE_HOST,     /* something else than a device's memory ran out: says tells what */
    FRAG_MESSAGE_OOM
} frag_message_kind;

/* What a text shows of the program around its messages. */
enum {
    FRAG_SCENE_LOADING = 1,     /* the model was being moved to the device, or loaded */
    FRAG_SCENE_RANKS = 2,       /* several ranks ran out on one device */
    FRAG_SCENE_OTHER_ERROR = 4, /* an error of another kind */
    FRAG_SCENE_MEMORY = 8,      /* words of memory */
    FRAG_SCENE_MANY = 16,       /* a program of several ranks */
    FRAG_SCENE_FAILURE = 32,    /* words of memory that ran out, but not in the form of an error */
    FRAG_SCENE_GRAPHICS = 64,   /* an interface that draws */
    FRAG_SCENE_METAL = 128,     /* a computer of Apple */
    FRAG_SCENE_TPU = 256,
    FRAG_SCENE_EMPTY = 512,    /* there is no text */
    FRAG_SCENE_BINARY = 1024,  /* zero bytes: a program, an archive or numbers */
    FRAG_SCENE_TRAINING = 2048 /* a step or an epoch of it: what was loaded before is in place */
};

/* What a wording says besides its figures. */
enum {
    FRAG_SAYS_POOL_FULL = 1,    /* a pool reached the most it may grow to */
    FRAG_SAYS_HUGE = 2,         /* the request is beyond anything */
    FRAG_SAYS_BLOCK_MAX = 4,    /* the platform refuses single blocks of that size */
    FRAG_SAYS_WHOLE = 8,        /* the figures are of a whole program, not of one request */
    FRAG_SAYS_LIBRARY = 16,     /* a library beside the framework asked */
    FRAG_SAYS_CACHED = 32,      /* old wording: what is cached is idle */
    FRAG_SAYS_UTILISATION = 64, /* a share of the card that was wanted is not free */
    FRAG_SAYS_DUMP = 128,       /* the table of an allocator, which only a failure prints */
    FRAG_SAYS_GUESS = 256,      /* no wording of the table: words of memory and failure */
    FRAG_SAYS_ON_CHIP = 512,    /* memory inside the chip: of one kernel, not the device's own */
    FRAG_SAYS_SHM = 1024,       /* shared memory between processes of the computer */
    FRAG_SAYS_PINNED = 2048,    /* the computer's memory, pinned for the device */
    FRAG_SAYS_DISK = 4096,      /* a file system */
    FRAG_SAYS_KILLED = 8192     /* the kernel, a container or a batch system ended the program */
};

enum { FRAG_MESSAGE_PROCESSES = 16, FRAG_MESSAGE_SIZES = 64, FRAG_WORDINGS_MAX = 1024 };

/* A size that stands in a message, whatever it is about. */
typedef struct frag_message_quantity {
    frag_amount amount;
    bool is_labelled;
    frag_figure figure; /* what the words around it say it is, if is_labelled */
} frag_message_quantity;

typedef struct frag_message {
    frag_message_kind kind;
    frag_framework framework;
    frag_amount figures[FRAG_FIGURE_COUNT];
    uint64_t processes[FRAG_MESSAGE_PROCESSES]; /* bytes of "Process N has ..." */
    uint64_t process_ids[FRAG_MESSAGE_PROCESSES];
    uint32_t process_count;
    frag_message_quantity
        sizes[FRAG_MESSAGE_SIZES]; /* each size once, those of its own lines first */
    uint32_t size_count;
    uint64_t owner;      /* of its lines, see message_text.h; 0: they do not say */
    uint32_t says;       /* FRAG_SAYS_* */
    bool is_bare;        /* no wording named a figure: what is known stands in its lines */
    uint64_t tokens;     /* of context that the message says to fit; 0: it does not */
    const char *release; /* "PyTorch 2.1", as the wording tells; NULL: it does not */
    bool has_device;
    uint64_t device;
    uint64_t line; /* where it begins, from 1 */
    size_t at;     /* the same as a place in the text made plain */
} frag_message;

#endif
