#include "messages/message_words.h"

#include <string.h>

#include "messages/message_size.h"

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static bool is_letter(char byte)
{
    return byte >= 'a' && byte <= 'z';
}

/* In order, for the search. */
static const struct {
    const char *name;
    uint32_t kinds;
} vocabulary[] = {
    {"abort", FRAG_WORD_ERROR},
    {"aborted", FRAG_WORD_ERROR},
    {"aborting", FRAG_WORD_ERROR},
    {"accelerator", FRAG_WORD_DEVICE},
    {"acl", FRAG_WORD_DEVICE},
    {"adreno", FRAG_WORD_DEVICE},
    {"alias", FRAG_WORD_CODE},
    {"alloc", FRAG_WORD_ALLOCATE},
    {"allocable", FRAG_WORD_ALLOCATE},
    {"allocatable", FRAG_WORD_ALLOCATE},
    {"allocate", FRAG_WORD_ALLOCATE},
    {"allocates", FRAG_WORD_ALLOCATE},
    {"allocating", FRAG_WORD_ALLOCATE},
    {"allocation", FRAG_WORD_ALLOCATE},
    {"allocations", FRAG_WORD_ALLOCATE},
    {"allocs", FRAG_WORD_ALLOCATE},
    {"amdgpu", FRAG_WORD_DEVICE},
    {"arena", FRAG_WORD_UNIT},
    {"array", FRAG_WORD_UNIT},
    {"ascend", FRAG_WORD_DEVICE},
    {"assertion", FRAG_WORD_ERROR},
    {"attempting", FRAG_WORD_WARNING},
    {"avoid", FRAG_WORD_PROSE},
    {"because", FRAG_WORD_PROSE},
    {"beyond", FRAG_WORD_EXCEED},
    {"bigger", FRAG_WORD_EXCEED},
    {"blob", FRAG_WORD_UNIT},
    {"block", FRAG_WORD_UNIT},
    {"breaker", FRAG_WORD_HOST},
    {"buffer", FRAG_WORD_UNIT},
    {"buffers", FRAG_WORD_UNIT},
    {"byte", FRAG_WORD_UNIT},
    {"bytes", FRAG_WORD_UNIT},
    {"cache", FRAG_WORD_UNIT},
    {"calloc", FRAG_WORD_ALLOCATE | FRAG_WORD_HOST},
    {"cann", FRAG_WORD_DEVICE},
    {"cannot", FRAG_WORD_FAIL},
    {"case", FRAG_WORD_CODE},
    {"catch", FRAG_WORD_CODE},
    {"cgroup", FRAG_WORD_HOST},
    {"chunk", FRAG_WORD_UNIT},
    {"cicc", FRAG_WORD_HOST},
    {"cl", FRAG_WORD_DEVICE},
    {"clamping", FRAG_WORD_WARNING},
    {"clickhouse", FRAG_WORD_HOST},
    {"couldn", FRAG_WORD_FAIL},
    {"cpu", FRAG_WORD_HOST},
    {"crashed", FRAG_WORD_ERROR},
    {"critical", FRAG_WORD_ERROR},
    {"cu", FRAG_WORD_DEVICE},
    {"cublas", FRAG_WORD_DEVICE},
    {"cuda", FRAG_WORD_DEVICE},
    {"cudnn", FRAG_WORD_DEVICE},
    {"cufft", FRAG_WORD_DEVICE},
    {"cusolver", FRAG_WORD_DEVICE},
    {"cuvid", FRAG_WORD_DEVICE},
    {"def", FRAG_WORD_CODE},
    {"define", FRAG_WORD_CODE},
    {"depends", FRAG_WORD_PROSE},
    {"device", FRAG_WORD_DEVICE},
    {"devices", FRAG_WORD_DEVICE},
    {"devmem", FRAG_WORD_MEMORY | FRAG_WORD_DEVICE},
    {"dimm", FRAG_WORD_HOST},
    {"directml", FRAG_WORD_DEVICE},
    {"directx", FRAG_WORD_DEVICE},
    {"disk", FRAG_WORD_HOST},
    {"dmesg", FRAG_WORD_HOST},
    {"dml", FRAG_WORD_DEVICE},
    {"documentation", FRAG_WORD_PROSE},
    {"drm", FRAG_WORD_DEVICE},
    {"duckdb", FRAG_WORD_HOST},
    {"dxgi", FRAG_WORD_DEVICE},
    {"elif", FRAG_WORD_CODE},
    {"enum", FRAG_WORD_CODE},
    {"err", FRAG_WORD_ERROR},
    {"errno", FRAG_WORD_HOST},
    {"error", FRAG_WORD_ERROR},
    {"errors", FRAG_WORD_ERROR},
    {"example", FRAG_WORD_PROSE},
    {"exceed", FRAG_WORD_EXCEED},
    {"exceeded", FRAG_WORD_EXCEED},
    {"exceeding", FRAG_WORD_EXCEED},
    {"exceeds", FRAG_WORD_EXCEED},
    {"except", FRAG_WORD_CODE},
    {"exception", FRAG_WORD_ERROR},
    {"exhausted", FRAG_WORD_LACK},
    {"exhaustion", FRAG_WORD_LACK},
    {"explained", FRAG_WORD_PROSE},
    {"fail", FRAG_WORD_FAIL},
    {"failed", FRAG_WORD_FAIL},
    {"failing", FRAG_WORD_FAIL},
    {"fails", FRAG_WORD_FAIL},
    {"failure", FRAG_WORD_FAIL},
    {"fallback", FRAG_WORD_WARNING},
    {"falling", FRAG_WORD_WARNING},
    {"fatal", FRAG_WORD_ERROR},
    {"fork", FRAG_WORD_HOST},
    {"fprintf", FRAG_WORD_CODE},
    {"gaudi", FRAG_WORD_DEVICE},
    {"gcu", FRAG_WORD_DEVICE},
    {"gddr", FRAG_WORD_MEMORY | FRAG_WORD_DEVICE},
    {"geforce", FRAG_WORD_DEVICE},
    {"gfp", FRAG_WORD_HOST},
    {"ggml", FRAG_WORD_DEVICE},
    {"gl", FRAG_WORD_DEVICE},
    {"gmem", FRAG_WORD_MEMORY},
    {"gpu", FRAG_WORD_DEVICE},
    {"gpuassert", FRAG_WORD_DEVICE},
    {"gpus", FRAG_WORD_DEVICE},
    {"graphic", FRAG_WORD_DEVICE},
    {"graphics", FRAG_WORD_DEVICE},
    {"greater", FRAG_WORD_EXCEED},
    {"gtx", FRAG_WORD_DEVICE},
    {"guide", FRAG_WORD_PROSE},
    {"hbm", FRAG_WORD_MEMORY | FRAG_WORD_DEVICE},
    {"heap", FRAG_WORD_HOST},
    {"hello", FRAG_WORD_PROSE},
    {"help", FRAG_WORD_PROSE},
    {"hi", FRAG_WORD_PROSE},
    {"hip", FRAG_WORD_DEVICE},
    {"host", FRAG_WORD_HOST},
    {"hostalloc", FRAG_WORD_HOST},
    {"how", FRAG_WORD_PROSE},
    {"hpu", FRAG_WORD_DEVICE},
    {"i", FRAG_WORD_PROSE},
    {"ibv", FRAG_WORD_HOST},
    {"if", FRAG_WORD_PROSE},
    {"illegal", FRAG_WORD_OTHER},
    {"image", FRAG_WORD_UNIT},
    {"import", FRAG_WORD_CODE},
    {"instead", FRAG_WORD_PROSE},
    {"insufficient", FRAG_WORD_LACK},
    {"invalid", FRAG_WORD_OTHER},
    {"java", FRAG_WORD_HOST},
    {"javac", FRAG_WORD_HOST},
    {"javascript", FRAG_WORD_HOST},
    {"jemalloc", FRAG_WORD_HOST},
    {"jvm", FRAG_WORD_HOST},
    {"kgsl", FRAG_WORD_DEVICE},
    {"killed", FRAG_WORD_HOST},
    {"kmalloc", FRAG_WORD_HOST},
    {"lack", FRAG_WORD_LACK},
    {"lacks", FRAG_WORD_LACK},
    {"larger", FRAG_WORD_EXCEED},
    {"launch", FRAG_WORD_OTHER},
    {"layer", FRAG_WORD_UNIT},
    {"layers", FRAG_WORD_UNIT},
    {"ld", FRAG_WORD_HOST},
    {"leak", FRAG_WORD_PROSE},
    {"leaks", FRAG_WORD_PROSE},
    {"let", FRAG_WORD_PROSE},
    {"lets", FRAG_WORD_PROSE},
    {"lld", FRAG_WORD_HOST},
    {"llvm", FRAG_WORD_HOST},
    {"looks", FRAG_WORD_PROSE},
    {"lua", FRAG_WORD_HOST},
    {"luajit", FRAG_WORD_HOST},
    {"mach", FRAG_WORD_HOST},
    {"mali", FRAG_WORD_DEVICE},
    {"malloc", FRAG_WORD_ALLOCATE},
    {"matrix", FRAG_WORD_UNIT},
    {"maybe", FRAG_WORD_PROSE},
    {"mem", FRAG_WORD_MEMORY},
    {"memeory", FRAG_WORD_MEMORY}, /* as people mistype it */
    {"memories", FRAG_WORD_MEMORY},
    {"memory", FRAG_WORD_MEMORY},
    {"memroy", FRAG_WORD_MEMORY},
    {"memry", FRAG_WORD_MEMORY},
    {"metal", FRAG_WORD_DEVICE},
    {"misaligned", FRAG_WORD_OTHER},
    {"mlu", FRAG_WORD_DEVICE},
    {"mlx", FRAG_WORD_DEVICE},
    {"mmap", FRAG_WORD_HOST},
    {"more", FRAG_WORD_EXCEED},
    {"mps", FRAG_WORD_DEVICE},
    {"mtl", FRAG_WORD_DEVICE},
    {"musa", FRAG_WORD_DEVICE},
    {"my", FRAG_WORD_PROSE},
    {"mysql", FRAG_WORD_HOST},
    {"mysqld", FRAG_WORD_HOST},
    {"nccl", FRAG_WORD_DEVICE},
    {"neuron", FRAG_WORD_DEVICE},
    {"nodejs", FRAG_WORD_HOST},
    {"nouveau", FRAG_WORD_DEVICE},
    {"npp", FRAG_WORD_DEVICE},
    {"npu", FRAG_WORD_DEVICE},
    {"numa", FRAG_WORD_HOST},
    {"numpy", FRAG_WORD_HOST},
    {"nv", FRAG_WORD_DEVICE},
    {"nvidia", FRAG_WORD_DEVICE},
    {"nvmap", FRAG_WORD_DEVICE},
    {"nvme", FRAG_WORD_HOST},
    {"nvrtc", FRAG_WORD_DEVICE},
    {"ocl", FRAG_WORD_DEVICE},
    {"often", FRAG_WORD_PROSE},
    {"oom", FRAG_WORD_LACK},
    {"opencl", FRAG_WORD_DEVICE},
    {"optix", FRAG_WORD_DEVICE},
    {"our", FRAG_WORD_PROSE},
    {"over", FRAG_WORD_EXCEED},
    {"pagelocked", FRAG_WORD_HOST},
    {"panic", FRAG_WORD_ERROR},
    {"people", FRAG_WORD_PROSE},
    {"permission", FRAG_WORD_OTHER},
    {"pinned", FRAG_WORD_HOST},
    {"please", FRAG_WORD_PROSE},
    {"pod", FRAG_WORD_HOST},
    {"pool", FRAG_WORD_UNIT},
    {"possible", FRAG_WORD_PROSE},
    {"postgres", FRAG_WORD_HOST},
    {"prevent", FRAG_WORD_PROSE},
    {"print", FRAG_WORD_CODE},
    {"printf", FRAG_WORD_CODE},
    {"ptxas", FRAG_WORD_HOST},
    {"pxg", FRAG_WORD_DEVICE},
    {"question", FRAG_WORD_PROSE},
    {"radeon", FRAG_WORD_DEVICE},
    {"ram", FRAG_WORD_MEMORY | FRAG_WORD_HOST},
    {"reclaiming", FRAG_WORD_WARNING},
    {"recommend", FRAG_WORD_PROSE},
    {"reduce", FRAG_WORD_PROSE},
    {"remains", FRAG_WORD_PROSE},
    {"reservation", FRAG_WORD_ALLOCATE},
    {"reserve", FRAG_WORD_ALLOCATE},
    {"reserving", FRAG_WORD_ALLOCATE | FRAG_WORD_WARNING},
    {"retry", FRAG_WORD_WARNING},
    {"retrying", FRAG_WORD_WARNING},
    {"rlimit", FRAG_WORD_HOST},
    {"rocm", FRAG_WORD_DEVICE},
    {"rt", FRAG_WORD_DEVICE},
    {"rtx", FRAG_WORD_DEVICE},
    {"rustc", FRAG_WORD_HOST},
    {"sbrk", FRAG_WORD_HOST},
    {"scratch", FRAG_WORD_UNIT},
    {"seems", FRAG_WORD_PROSE},
    {"segment", FRAG_WORD_UNIT},
    {"shm", FRAG_WORD_HOST},
    {"shortage", FRAG_WORD_LACK},
    {"should", FRAG_WORD_PROSE},
    {"shutting", FRAG_WORD_OTHER},
    {"skip", FRAG_WORD_WARNING},
    {"skipped", FRAG_WORD_WARNING},
    {"skipping", FRAG_WORD_WARNING},
    {"solution", FRAG_WORD_PROSE},
    {"sometimes", FRAG_WORD_PROSE},
    {"staying", FRAG_WORD_WARNING},
    {"storage", FRAG_WORD_UNIT},
    {"suggest", FRAG_WORD_PROSE},
    {"swap", FRAG_WORD_HOST},
    {"swapping", FRAG_WORD_WARNING},
    {"switching", FRAG_WORD_WARNING},
    {"sycl", FRAG_WORD_DEVICE},
    {"synapse", FRAG_WORD_DEVICE},
    {"tcmalloc", FRAG_WORD_HOST},
    {"tensor", FRAG_WORD_UNIT},
    {"tensorrt", FRAG_WORD_DEVICE},
    {"tensors", FRAG_WORD_UNIT},
    {"terminate", FRAG_WORD_ERROR},
    {"terminated", FRAG_WORD_ERROR},
    {"terminating", FRAG_WORD_ERROR},
    {"texture", FRAG_WORD_DEVICE},
    {"thanks", FRAG_WORD_PROSE},
    {"this", FRAG_WORD_PROSE},
    {"tips", FRAG_WORD_PROSE},
    {"tpu", FRAG_WORD_DEVICE},
    {"traceback", FRAG_WORD_ERROR},
    {"trt", FRAG_WORD_DEVICE},
    {"tutorial", FRAG_WORD_PROSE},
    {"ulimit", FRAG_WORD_HOST},
    {"unable", FRAG_WORD_FAIL},
    {"unless", FRAG_WORD_PROSE},
    {"unspecified", FRAG_WORD_OTHER},
    {"unsufficient", FRAG_WORD_LACK},
    {"unsupported", FRAG_WORD_OTHER},
    {"usually", FRAG_WORD_PROSE},
    {"video", FRAG_WORD_DEVICE},
    {"virtual", FRAG_WORD_HOST},
    {"vk", FRAG_WORD_DEVICE},
    {"vmalloc", FRAG_WORD_HOST},
    {"vmem", FRAG_WORD_MEMORY | FRAG_WORD_DEVICE},
    {"vram", FRAG_WORD_MEMORY | FRAG_WORD_DEVICE},
    {"vulkan", FRAG_WORD_DEVICE},
    {"warn", FRAG_WORD_WARNING},
    {"warning", FRAG_WORD_WARNING},
    {"wasm", FRAG_WORD_HOST},
    {"we", FRAG_WORD_PROSE},
    {"webassembly", FRAG_WORD_HOST},
    {"webgl", FRAG_WORD_DEVICE},
    {"webgpu", FRAG_WORD_DEVICE},
    {"wgpu", FRAG_WORD_DEVICE},
    {"what", FRAG_WORD_PROSE},
    {"when", FRAG_WORD_PROSE},
    {"where", FRAG_WORD_PROSE},
    {"whether", FRAG_WORD_PROSE},
    {"which", FRAG_WORD_PROSE},
    {"who", FRAG_WORD_PROSE},
    {"why", FRAG_WORD_PROSE},
    {"wondering", FRAG_WORD_PROSE},
    {"workspace", FRAG_WORD_UNIT},
    {"would", FRAG_WORD_PROSE},
    {"xcalloc", FRAG_WORD_HOST},
    {"xmalloc", FRAG_WORD_HOST},
    {"xpu", FRAG_WORD_DEVICE},
    {"xrealloc", FRAG_WORD_HOST},
    {"you", FRAG_WORD_PROSE},
    {"your", FRAG_WORD_PROSE},
    {"zmalloc", FRAG_WORD_HOST},
};

static int compare(const char *word, size_t length, const char *name)
{
    int order = strncmp(word, name, length);
    return order != 0 ? order : name[length] == '\0' ? 0 : -1;
}

static bool ends_in(const char *word, size_t length, const char *part)
{
    size_t bytes = strlen(part);
    return length > bytes && memcmp(word + length - bytes, part, bytes) == 0;
}

static bool begins_with(const char *word, size_t length, const char *part)
{
    size_t bytes = strlen(part);
    return length > bytes && memcmp(word, part, bytes) == 0;
}

/* Names that programs glue together: "gpumem", "hipmalloc", "vkallocate", "cudacustomallocator". */
static uint32_t kinds_of_parts(const char *word, size_t length)
{
    static const struct {
        const char *part;
        uint32_t kinds;
    } heads[] = {
        {"gpu", FRAG_WORD_DEVICE},
        {"cuda", FRAG_WORD_DEVICE},
        {"vulkan", FRAG_WORD_DEVICE},
        {"opencl", FRAG_WORD_DEVICE},
    };
    static const struct {
        const char *part;
        uint32_t kinds;
    } tails[] = {
        {"mem", FRAG_WORD_MEMORY},        {"memory", FRAG_WORD_MEMORY},
        {"vram", FRAG_WORD_MEMORY},       {"gpu", FRAG_WORD_DEVICE},
        {"mach", FRAG_WORD_HOST},         {"malloc", FRAG_WORD_ALLOCATE},
        {"memalloc", FRAG_WORD_ALLOCATE}, {"allocator", FRAG_WORD_ALLOCATE},
        {"allocate", FRAG_WORD_ALLOCATE},
    };
    uint32_t kinds = 0;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        kinds |= begins_with(word, length, heads[i].part) ? heads[i].kinds : 0;
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++)
        kinds |= ends_in(word, length, tails[i].part) ? tails[i].kinds : 0;
    /* "nvjpeg", "nvbuf", but not a disk ("nvme") */
    bool is_nvidia = begins_with(word, length, "nv") && strchr("bcdeijt", word[2]) != NULL;
    kinds |= is_nvidia ? FRAG_WORD_DEVICE : 0;
    return begins_with(word, length, "dealloc") || begins_with(word, length, "unalloc") ? 0 : kinds;
}

static uint32_t kinds_of(const char *word, size_t length)
{
    size_t low = 0;
    size_t high = sizeof vocabulary / sizeof *vocabulary;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare(word, length, vocabulary[middle].name);
        if (order == 0)
            return vocabulary[middle].kinds;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    /* "RuntimeError" is split at its capitals, "runtimeerror" is not. */
    return ends_in(word, length, "error") || ends_in(word, length, "exception")
               ? FRAG_WORD_ERROR
               : kinds_of_parts(word, length);
}

static bool is_small(const frag_message_text *text, size_t at)
{
    return at < text->length && is_letter(text->bytes[at]) &&
           (text->marks[at] & (FRAG_MESSAGE_CAPITAL | FRAG_MESSAGE_WORD)) == 0;
}

/* "GPUassert": the small letters go on with a name that is all capitals. */
static bool ends_acronym(const frag_message_text *text, size_t at)
{
    static const char *const names[] = {"gpu", "cuda", "hip", "vram"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t length = strlen(names[i]);
        if (at + 1 >= length && memcmp(text->bytes + at + 1 - length, names[i], length) == 0)
            return true;
    }
    return false;
}

/* "NotEnoughVRamError": one word, not the RAM of a V. */
static bool is_inside_vram(const frag_message_text *text, size_t at)
{
    return at > 0 && text->bytes[at - 1] == 'v' && strncmp(text->bytes + at, "ram", 3) == 0 &&
           (text->marks[at] & FRAG_MESSAGE_WORD) == 0 &&
           (text->marks[at - 1] & (FRAG_MESSAGE_CAPITAL | FRAG_MESSAGE_WORD)) != 0;
}

static bool starts_word(const frag_message_text *text, size_t at)
{
    if (is_inside_vram(text, at))
        return false;
    bool is_capital = (text->marks[at] & FRAG_MESSAGE_CAPITAL) != 0;
    bool was_capital = at > 0 && (text->marks[at - 1] & FRAG_MESSAGE_CAPITAL) != 0;
    /* "CUDAError" is two words, "ROCm" is one. */
    bool is_last_capital =
        is_small(text, at + 1) && is_small(text, at + 2) && !ends_acronym(text, at);
    return (text->marks[at] & FRAG_MESSAGE_WORD) != 0 ||
           (is_capital && (!was_capital || is_last_capital));
}

static size_t letters_at(const frag_message_text *text, size_t at, size_t to)
{
    size_t end = at + 1;
    while (end < to && is_letter(text->bytes[end]) && !starts_word(text, end))
        end++;
    return end - at;
}

static uint64_t hex_digit(char byte)
{
    return is_digit(byte)               ? (uint64_t)(byte - '0')
           : byte >= 'a' && byte <= 'f' ? (uint64_t)(byte - 'a') + 10
                                        : 16;
}

/* "0xc0fb4000": addresses look the same, so the words before it have to say that it is a size. */
static size_t read_hex(const frag_message_text *text, size_t from, frag_amount *amount)
{
    size_t at = from + 2;
    *amount = (frag_amount){.is_known = true};
    if (text->bytes[from] != '0' || text->bytes[from + 1] != 'x')
        return 0;
    /* "[mem size 0x400000000 64bit pref]" */
    for (; hex_digit(text->bytes[at]) < 16 && (text->marks[at] & FRAG_MESSAGE_WORD) == 0; at++) {
        amount->is_known = amount->is_known && amount->bytes >> 60 == 0;
        amount->bytes = amount->bytes << 4 | hex_digit(text->bytes[at]);
    }
    return at > from + 2 ? at - from : 0;
}

/* A unit ends where its word does: "5 MCU" is no size. */
static bool is_cut_word(const frag_message_text *text, size_t end)
{
    return is_letter(text->bytes[end]) && (text->marks[end] & FRAG_MESSAGE_WORD) == 0 &&
           is_letter(text->bytes[end - 1]);
}

/* "6103.52 MBs" */
static bool is_plural(const frag_message_text *text, size_t end)
{
    return text->bytes[end] == 's' && text->bytes[end - 1] == 'b' &&
           (text->marks[end] & FRAG_MESSAGE_WORD) == 0 && !is_cut_word(text, end + 1);
}

/* "40Gi", of Kubernetes */
static bool is_short_unit(const frag_message_text *text, size_t end)
{
    return text->bytes[end] == 'i' && strchr("kmgt", text->bytes[end - 1]) != NULL &&
           (text->marks[end] & FRAG_MESSAGE_WORD) == 0 && !is_cut_word(text, end + 1);
}

/* "free: -2.36 GiB", but not "- 2.36 GiB" and "2-4 GiB" */
static bool is_negative(const frag_message_text *text, size_t at)
{
    return at > 1 && text->bytes[at - 1] == '-' && (text->marks[at] & FRAG_MESSAGE_WORD) == 0 &&
           ((text->marks[at - 1] & FRAG_MESSAGE_WORD) != 0 ||
            strchr(":=(", text->bytes[at - 2]) != NULL);
}

/* "RTX 3060 12GB", "RTX 3070, 7827/7982 MB": how long the first of two numbers is; 0: there is one,
 * with thousands ("1 048 576 bytes") or a status where a line broke */
static size_t first_number(const frag_message_text *text, size_t at)
{
    const char *bytes = text->bytes;
    size_t first = 0;
    size_t group = at;
    bool is_one = true;
    size_t i = at + 1;
    for (; is_one; i++) {
        bool is_sign = (bytes[i] == ',' || bytes[i] == '.') && is_digit(bytes[i + 1]);
        if (!is_digit(bytes[i]) && !is_sign)
            break;
        if ((text->marks[i + is_sign] & FRAG_MESSAGE_WORD) == 0)
            continue;
        first = first == 0 ? i : first;
        is_one = !is_sign && (i - group == 3 || (group == at && i - group < 3));
        group = i;
    }
    bool is_whole = (is_one && i - group == 3) || strncmp(bytes + at, "8007000e", 8) == 0;
    return first == 0 || is_whole ? 0 : first - at;
}

static size_t number_at(const frag_message_text *text, size_t at, frag_message_word *word)
{
    enum { DIGITS = 32 };
    const char *bytes = text->bytes + at;
    size_t taken = read_hex(text, at, &word->amount);
    word->kinds = FRAG_WORD_NUMBER;
    size_t first = taken > 0 ? 0 : first_number(text, at);
    if (first > 0 && first < DIGITS) {
        char number[DIGITS] = {0};
        memcpy(number, bytes, first);
        frag_message_number(number, &word->amount);
        return first;
    }
    if (taken > 0) {
        if (strncmp(bytes + taken, "bytes", 5) == 0)
            word->kinds = FRAG_WORD_SIZE;
        return taken;
    }
    taken = frag_message_size(bytes, &word->amount);
    size_t named = taken > 0 ? 0 : frag_message_size_named(text->bytes, at, &word->amount);
    if (named > 0) {
        word->kinds = FRAG_WORD_SIZE;
        return named;
    }
    taken += taken > 0 && (is_plural(text, at + taken) || is_short_unit(text, at + taken));
    /* "a 268435456 byte staging buffer" */
    taken -= taken > 1 && is_cut_word(text, at + taken) && bytes[taken - 1] == 's';
    if (taken > 0 && !is_cut_word(text, at + taken)) {
        word->kinds = FRAG_WORD_SIZE;
        if (is_negative(text, at))
            word->amount = (frag_amount){.is_known = true}; /* less than nothing is left */
        return taken;
    }
    return frag_message_number(bytes, &word->amount);
}

/* "not enough memory8053063680": the blank is missing. */
static bool is_glued_size(const frag_message_text *text, size_t at, const frag_message_word *before)
{
    enum { DIGITS = 7 };
    return before->end == at && (before->kinds & FRAG_WORD_MEMORY) != 0 &&
           strspn(text->bytes + at, "0123456789") >= DIGITS;
}

/* The "i" of "belleği": a letter of a word of another language */
static bool is_foreign_letter(const frag_message_text *text, size_t at, size_t taken)
{
    bool is_behind = at > 0 && text->bytes[at - 1] == FRAG_MESSAGE_FOREIGN &&
                     (text->marks[at] & FRAG_MESSAGE_WORD) == 0;
    bool is_before = text->bytes[at + taken] == FRAG_MESSAGE_FOREIGN &&
                     (text->marks[at + taken] & FRAG_MESSAGE_WORD) == 0;
    return taken == 1 && is_letter(text->bytes[at]) && (is_behind || is_before);
}

size_t frag_message_words(const frag_message_text *text, size_t from, size_t to,
                          frag_message_word *words)
{
    size_t count = 0;
    for (size_t at = from; at < to && count < FRAG_MESSAGE_WORDS_MAX;) {
        frag_message_word word = {.at = at};
        char byte = text->bytes[at];
        bool is_name = at > from && (text->marks[at] & FRAG_MESSAGE_WORD) == 0 &&
                       (is_letter(text->bytes[at - 1]) || is_digit(text->bytes[at - 1]) ||
                        text->bytes[at - 1] == '.');
        size_t taken = 0;
        if (is_letter(byte)) {
            taken = letters_at(text, at, to);
            word.kinds = kinds_of(text->bytes + at, taken);
        } else if (is_digit(byte) &&
                   (!is_name || (count > 0 && is_glued_size(text, at, &words[count - 1])))) {
            taken = number_at(text, at, &word);
        }
        taken = is_foreign_letter(text, at, taken) ? 0 : taken;
        if (taken == 0) {
            at++;
            continue;
        }
        at += taken;
        word.end = at;
        words[count++] = word;
    }
    return count;
}

bool frag_message_word_is(const frag_message_text *text, const frag_message_word *word,
                          const char *name)
{
    size_t length = strlen(name);
    return word->end - word->at == length && memcmp(text->bytes + word->at, name, length) == 0;
}
