/* What the reader of messages makes of lines put together by chance from the turns of phrase that
 * it knows, in orders that no program printed yet: whether a line counts as an out of memory must
 * not change unseen. What was changed on purpose is pinned anew:
 *
 *   test_sentence_answers            compares with tests/data/answers/sentences.txt.zst
 *   test_sentence_answers --write    prints what that file should hold (make answers-golden)
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "messages/message.h"
#include "tests/support/pinned_lines.h"
#include "tests/support/xorshift.h"

enum { PIECES_MAX = 4, GROUP = 240, WORDS_BETWEEN_MAX = 14 };

/* What a message is about; each has lines of its own, so that a change names its place. */
static const char *const turns[] = {
    "out of memory",
    "out of GPU memory",
    "Out of memory on device",
    "ran out of memory",
    "ran out of it",
    "You ran out of memory on the GPU",
    "Your GPU ran out of memory",
    "OutOfMemory",
    "OutOfMemoryError:",
    "GpuRetryOOM:",
    "gpuoom:",
    "OutOfMemoryGraphics(",
    "OOM",
    "gpu OOM:",
    "ErrorOutOfMemory",
    "AF_ERR_NO_MEM",
    "OUT_OF_DEVICE_MEMORY",
    "CUDA_OUT_OF_MEMORY in",
    "GL_OUT_OF_MEMORY",
    "NV_ENC_ERR_OUT_OF_MEMORY",
    "ENOMEM",
    "HRESULT=8007000e",
    "0x8007000E",
    "-2147024882",
    "0x887A0005",
    "cudaErrorMemoryAllocation = 2",
    "CUDAError(2)",
    "CUresult 2",
    "status: 2",
    "code=2",
    "VkResult: -2",
    "cl_result -4",
    "CL_MEM_OBJECT_ALLOCATION_FAILURE",
    "not enough memory",
    "memory isn't enough",
    "memory is full",
    "memory was refused",
    "insufficient VRAM",
    "insufficient",
    "exhausted",
    "Resource exhausted",
    "too little memory",
    "no free memory",
    "leaves no GPU memory",
    "no memory left",
    "no GPU memory available",
    "no more memory",
    "cannot fit in GPU memory",
    "does not fit",
    "too large for GPU memory",
    "the merge buffer is too big for this device",
    "size is too large",
    "uses too much memory",
    "request for more GPU memory than is available",
    "is larger than the available memory",
    "free memory is less than",
    "alloc size : 2 is more than total mem size : 1",
    "exceeds the limit",
    "exceeded the device memory",
    "pool size exceeded",
    "limit reached",
    "reached memory limit",
    "failed to allocate",
    "Failed to allocate again.",
    "allocation failed",
    "allocation error",
    "Allocation Failure",
    "cannot be allocated",
    "could not be allocated",
    "allocation was refused",
    "Error allocating",
    "unable to allocate",
    "couldn't allocate",
    "failed to get memory buffer",
    "failed to get memory info",
    "failed to allocate a port",
    "createBuffer failed",
    "aclrtMalloc failed",
    "cudaMalloc(5) failed",
    "malloc(5) failed",
    "cudaMallocHost failed",
    "cuMemCreate returned 2",
    "returned null",
    "hipMalloc: error",
    "mmap failed",
    "bad alloc",
    "Error on cuCtxCreate",
    "nrt_load status=4 message=",
    "assertion 'allocs == 0' failed",
    "swapped out of memory",
    "died due to out of memory",
    "needs 5 GB",
    "5 GB available",
    "free: 5 GB",
    "retrying with tiled decoding",
    "the dreaded out of memory error",
    "handles out of memory",
    "memory pressure is high",
    "illegal memory access",
    "device memory allocation",
};

/* What stands around it. */
static const char *const pieces[] = {
    "the",
    "a",
    "GPU",
    "CUDA",
    "device",
    "memory",
    "VRAM",
    "of",
    "on",
    "for",
    "to",
    "in",
    "is",
    "was",
    "not",
    "no",
    "never",
    "if",
    "when",
    "when allocating",
    "while",
    "because",
    "that fails",
    "that does",
    "may",
    "might",
    "this is",
    "which",
    "with",
    "without",
    "error",
    "Error:",
    "error:",
    "[ERROR]",
    "[info]",
    "WARNING:",
    "fatal:",
    "failed",
    "fails",
    "failure:",
    "request",
    "allocation",
    "allocate",
    "buffer of size",
    "tensor",
    "texture",
    "size:",
    "requested",
    "available",
    "free",
    "left",
    "limit",
    "more than",
    "larger than",
    "less than",
    "5 GB",
    "512 MiB",
    "12",
    "bytes",
    "26357760 bytes",
    "3414061312",
    "(2147483648)",
    "0 bytes",
    "line 34",
    "f.cu:3:",
    "at f.cu:3",
    "host memory",
    "pinned memory",
    "system memory",
    "GPU or CPU memory",
    "RAM",
    "disk",
    "cgroup",
    "malloc",
    "cudaMalloc",
    "cuMemAlloc_v2",
    "vkAllocateMemory",
    "clCreateBuffer",
    "OpenCL",
    "Metal",
    "Vulkan",
    "HIP",
    "NPU 3",
    "TPU",
    "rank 1:",
    "process 12",
    "your",
    "you",
    "your GPU",
    "I",
    "we",
    "how to",
    "please",
    "try",
    "example",
    "instead",
    "usually",
    "sometimes",
    "such as",
    "%s",
    "%zu",
    "XXXX",
    "return",
    "throw",
    "printf(",
    ");",
    "};",
    "==",
    "=",
    "{",
    "|",
    "- ",
    "# ",
    "+ ",
    "\"",
    "'",
    "`",
    "(",
    ")",
    ",",
    ".",
    "!",
    "?",
    ":",
    ";",
    "...",
    "\n",
    "\n",
    "\n  ",
    "std::bad_alloc",
    "RuntimeError:",
    "torch",
    "jax",
    "RESOURCE_EXHAUSTED:",
    "code 2",
    "(error 2)",
    "status 5",
    "exception",
    "abort",
    "crashed",
    "ran",
    "caused by",
    "reason:",
    "policy",
    "pool",
    "arena",
    "heap",
    "kv cache",
    "tokens",
    "model",
    "batch",
    "swap",
    "GiB",
    "total",
    "used",
    "already",
};

/* What counts only as far as a few words from a turn. */
static const char *const companions[] = {
    "could not", "failed",     "error:",    "GPU",       "device",        "host memory", "memory",
    "12 GiB",    "3414061312", "available", "requested", "limit",         "how to",      "if",
    "\n",        "malloc",     "line 34",   "tokens",    "RuntimeError:", "code 2",
};

/* What a person says of it. */
static const char *const told[] = {
    "it OOMs",
    "we OOM",
    "it OOM'd",
    "keeps OOMing",
    "goes OOM",
    "getting OOM",
    "gives OOM",
    "hitting an OOM",
    "I get CUDA out of memory",
    "says out of memory",
    "throws an out of memory exception",
    "crashes with OOM",
    "gets killed by OOM",
    "dies with an out of memory error",
    "same here, OOM",
    "+1 OOM",
    "rank 3 OOM",
    "OOM on",
    "OOM error",
    "CUDA OOM",
    "memory error",
    "memory issues",
    "allocation on device",
    "fills up",
    "maxes out",
    "eats all 24GB",
    "explodes",
    "blows up",
    "goes up to 24 GB",
    "keeps growing until it crashes",
    "grows until OOM",
    "increases and finally OOM",
    "is full",
    "is exhausted",
    "is not enough",
    "isn't enough",
    "12 GB is not enough",
    "too big for my card",
    "too much VRAM for my",
    "needs more than my 12GB",
    "more than the 24GB I have",
    "does not fit on my 3080",
    "can't fit",
    "no longer fits in memory",
    "runs out",
    "runs out of space",
    "ran out of VRAM",
    "running out of memory",
    "out of video memory",
    "exceeds 18 GB",
    "hitting the VRAM limit",
    "reaches the limit",
    "allocates 40 GB",
    "takes 25 GB",
    "tries to allocate more memory than",
    "prompts out of memory",
    "reported an OOM error",
    "an OOM occurs",
    "VRAM overflow",
    "lack of VRAM",
    "not enough VRAM",
    "memory shortage",
    "it crashes at 5.9 GB",
    "leaks until it dies",
    "crashed due to memory",
    "froze because the memory is full",
    "after GPU memory is full",
    "I have an 8G GPU",
    "not enough to run it",
    "fixed out of memory",
    "avoid OOM",
    "handle OOM",
    "see OOM",
    "### Actual behavior\nOOM",
    "显存不足",
    "爆显存",
    "oom了",
    "メモリ不足",
    "메모리 부족",
    "nicht genug Speicher",
    "sin memoria",
    "mémoire insuffisante",
};

/* What a person says around it. */
static const char *const words[] = {
    "it",
    "this",
    "that",
    "which",
    "the",
    "my",
    "our",
    "I",
    "we",
    "me",
    "you",
    "they",
    "people",
    "users",
    "anyone else",
    "someone",
    "a",
    "an",
    "training",
    "inference",
    "validation",
    "the model",
    "the script",
    "the job",
    "the process",
    "the run",
    "the game",
    "the driver",
    "server",
    "worker",
    "rank 0",
    "GPU 1",
    "my GPU",
    "my card",
    "the card",
    "on a T4",
    "on my 3090",
    "on 8xA100",
    "with 24 GB",
    "12GB",
    "16 GB VRAM",
    "VRAM",
    "GPU memory",
    "the GPU memory",
    "video memory",
    "memory",
    "CUDA",
    "RAM",
    "CPU",
    "swap",
    "disk",
    "host memory",
    "host",
    "system",
    "kernel",
    "and then",
    "then",
    "and",
    "but",
    "or",
    "so",
    "also",
    "still",
    "always",
    "even",
    "again",
    "just",
    "now",
    "immediately",
    "as soon as",
    "after 3 epochs",
    "after",
    "before",
    "during",
    "while",
    "when",
    "whenever",
    "when I load it",
    "when loading",
    "once",
    "if",
    "unless",
    "until",
    "because",
    "since",
    "due to",
    "without",
    "with",
    "by",
    "from",
    "of",
    "on",
    "at step 20",
    "at",
    "in",
    "for",
    "to",
    "despite",
    "may",
    "might",
    "can",
    "could",
    "would",
    "should",
    "will",
    "never",
    "not",
    "don't",
    "doesn't",
    "no",
    "no longer",
    "only",
    "too",
    "more",
    "less",
    "fewer",
    "all",
    "every",
    "crashes",
    "crashed",
    "dies",
    "killed",
    "hangs",
    "freezes",
    "stops",
    "exits",
    "fails",
    "fail",
    "failed",
    "errors",
    "error",
    "issue",
    "problem",
    "exception",
    "says",
    "saying",
    "throws",
    "shows",
    "reports",
    "tells",
    "told",
    "reported",
    "occurs",
    "happened",
    "prompts",
    "asks",
    "tries to",
    "wants to",
    "needs",
    "takes",
    "uses",
    "has",
    "have",
    "is",
    "was",
    "isn't",
    "gets",
    "got",
    "keeps",
    "goes",
    "ran",
    "run",
    "I think",
    "maybe",
    "probably",
    "usually",
    "often",
    "sometimes",
    "how",
    "why",
    "what",
    "Does",
    "Is",
    "Why",
    "How",
    "please",
    "help",
    "any idea",
    "solved",
    "fix",
    "fixed",
    "avoid",
    "prevent",
    "handle",
    "test",
    "reduce",
    "add",
    "batch 4",
    "batch size",
    "batch of 1",
    "image",
    "layers",
    "epochs",
    "steps",
    "limit",
    "cap",
    "enough",
    "sufficient",
    "space",
    "room",
    "leak",
    "growing",
    "increasing",
    "high",
    "full",
    "larger",
    "smaller",
    "page",
    "README",
    "guide",
    "FAQ:",
    "Q:",
    "A:",
    "- ",
    "# ",
    "* ",
    "1. ",
    "2. ",
    "> ",
    "`",
    "\"",
    "'",
    "(",
    ")",
    ",",
    ",",
    ",",
    ".",
    ".",
    "!",
    "?",
    "?",
    ":",
    ";",
    "...",
    "\n",
    "\n",
    "\n\n",
    "Error:",
    "RuntimeError:",
    "[ERROR]",
    "WARNING:",
    "line 3",
    "return",
    "raise",
    "if (",
    ");",
    "%s",
    "但是",
    "如果",
    "会",
    "怎么办",
    "时",
    "解决",
    "错误",
    "場合",
    "если",
    "wenn",
    "si",
    "cuando",
};

/* Lines are made of these. */
typedef struct phrases {
    const char *const *turns;
    size_t turn_count;
    const char *const *pieces;
    size_t piece_count;
    unsigned lines; /* of each turn */
} phrases;

static const phrases of_programs = {turns, sizeof turns / sizeof turns[0], pieces,
                                    sizeof pieces / sizeof pieces[0], 960};
static const phrases of_persons = {told, sizeof told / sizeof told[0], words,
                                   sizeof words / sizeof words[0], 480};

static const char *one_of(const char *const *texts, size_t count, uint64_t *chance)
{
    return texts[xorshift_next(chance) % count];
}

static void add_pieces(const phrases *of, frag_text *line, uint64_t *chance)
{
    uint64_t count = xorshift_next(chance) % (PIECES_MAX + 1);
    for (uint64_t i = 0; i < count; i++) {
        const char *blank = xorshift_next(chance) % 16 == 0 ? "" : " ";
        frag_text_add(line, "%s%s", one_of(of->pieces, of->piece_count, chance), blank);
    }
}

/* "error of out of memory: 512 MiB": the turn with something before and behind it, in a third of
 * the lines with a second turn. */
static void make_line(const phrases *of, const char *turn, uint64_t *chance, frag_text *line)
{
    add_pieces(of, line, chance);
    frag_text_add(line, "%s%s", turn, xorshift_next(chance) % 4 == 0 ? "" : " ");
    add_pieces(of, line, chance);
    if (xorshift_next(chance) % 3 == 0) {
        frag_text_add(line, "%s ", one_of(of->turns, of->turn_count, chance));
        add_pieces(of, line, chance);
    }
}

static void tell_line(const frag_text *line, uint64_t *sum, unsigned *oom_count)
{
    frag_messages messages;
    frag_messages_read(&messages, line->bytes, line->length);
    pinned_add(sum, messages.count);
    *oom_count += messages.oom_count > 0 ? 1 : 0;
    for (size_t i = 0; i < messages.count; i++) {
        const frag_message *message = &messages.items[i];
        pinned_add(sum, message->kind);
        pinned_add(sum, message->line);
        pinned_add(sum, message->says);
        pinned_add(sum, message->framework);
        for (size_t j = 0; j < message->size_count; j++)
            pinned_add(sum, message->sizes[j].amount.bytes);
    }
    frag_messages_destroy(&messages);
}

static void tell_turn(frag_text *out, const phrases *of, const char *turn, uint64_t seed)
{
    uint64_t chance = 0x9e3779b97f4a7c15u + seed;
    uint64_t sum = 0;
    unsigned oom_count = 0;
    for (unsigned i = 0; i < of->lines; i++) {
        frag_text line = {0};
        make_line(of, turn, &chance, &line);
        tell_line(&line, &sum, &oom_count);
        frag_text_destroy(&line);
        if ((i + 1) % GROUP != 0)
            continue;
        frag_text_add(out, "%.*s, up to line %u: %u of %u, %08" PRIx64 "\n",
                      (int)strcspn(turn, "\n"), turn, i + 1, oom_count, (unsigned)GROUP, sum >> 32);
        sum = 0;
        oom_count = 0;
    }
}

/* "out of memory foo foo foo GPU": a companion at each distance behind the turn, then before it. */
static void make_apart(const char *turn, const char *companion, unsigned between, bool is_behind,
                       frag_text *line)
{
    frag_text_add(line, "%s", is_behind ? turn : companion);
    for (unsigned i = 0; i < between; i++)
        frag_text_add(line, " foo");
    frag_text_add(line, " %s", is_behind ? companion : turn);
}

static void tell_distances(frag_text *out, const char *companion)
{
    uint64_t sum = 0;
    unsigned oom_count = 0;
    for (size_t i = 0; i < sizeof turns / sizeof turns[0]; i++)
        for (unsigned j = 0; j < 2 * WORDS_BETWEEN_MAX; j++) {
            frag_text line = {0};
            make_apart(turns[i], companion, j / 2, j % 2 == 0, &line);
            tell_line(&line, &sum, &oom_count);
            frag_text_destroy(&line);
        }
    frag_text_add(out, "up to %u words from \"%s\": %u, %08" PRIx64 "\n",
                  (unsigned)WORDS_BETWEEN_MAX, strcmp(companion, "\n") == 0 ? "\\n" : companion,
                  oom_count, sum >> 32);
}

enum { LABEL_WORDS_MAX = 6, LABEL_PLACES = 2 * LABEL_WORDS_MAX };

/* "needs foo 9 GB" or "9 GB foo needs". */
static void add_labelled(frag_text *line, const char *size, const char *label, unsigned place)
{
    bool is_behind = place % 2 == 0;
    frag_text_add(line, " %s", is_behind ? size : label);
    for (unsigned i = 0; i < place / 2; i++)
        frag_text_add(line, " foo");
    frag_text_add(line, " %s", is_behind ? label : size);
}

/* Two sizes that may contradict each other, each with a word that says what it is. */
static void tell_labels(frag_text *out, const char *first, const char *second)
{
    uint64_t sum = 0;
    unsigned oom_count = 0;
    for (unsigned i = 0; i < LABEL_PLACES * LABEL_PLACES; i++) {
        frag_text line = {0};
        frag_text_add(&line, "Error: the model and its cache");
        add_labelled(&line, "9 GB", first, i / LABEL_PLACES);
        frag_text_add(&line, " of memory but");
        add_labelled(&line, "5 GB", second, i % LABEL_PLACES);
        tell_line(&line, &sum, &oom_count);
        frag_text_destroy(&line);
    }
    frag_text_add(out, "9 GB %s, 5 GB %s: %u, %08" PRIx64 "\n", first, second, oom_count,
                  sum >> 32);
}

static void tell_all_labels(frag_text *out)
{
    static const char *const labels[] = {"needs", "requested", "available", "free", "foo"};
    for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++)
        for (size_t j = 0; j < sizeof labels / sizeof labels[0]; j++)
            tell_labels(out, labels[i], labels[j]);
}

static void tell_all(frag_text *out)
{
    for (size_t i = 0; i < of_programs.turn_count; i++)
        tell_turn(out, &of_programs, turns[i], i);
    for (size_t i = 0; i < of_persons.turn_count; i++)
        tell_turn(out, &of_persons, told[i], i);
    for (size_t i = 0; i < sizeof companions / sizeof companions[0]; i++)
        tell_distances(out, companions[i]);
    tell_all_labels(out);
}

static const pinned_lines pinned = {"tests/data/answers/sentences.txt.zst", tell_all,
                                    "answers-golden"};

int main(int argc, char **argv)
{
    return pinned_lines_test(&pinned, argc, argv);
}
