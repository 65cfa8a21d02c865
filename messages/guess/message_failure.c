#include "messages/guess/message_failure.h"

#include <string.h>

enum {
    NEAR = 8,      /* words between two that belong together */
    NAME = 4,      /* words of the name of an error */
    PREFIX = 3,    /* words between the sign that ends a prefix and the failure */
    BIG = 1 << 24, /* bytes that only a device's memory is short of */
    HEAD = 6,      /* words from the name of an interface to its status */
    WORK = 5,      /* words from "skip" to what is skipped */
    TITLE = 4,     /* words before what a title tells, */
    TITLE_LINES = 2
};

/* E_OUTOFMEMORY of Windows, as a number: "HRESULT=8007000e", "0x8007000E", "-2147024882", and
 * D3DERR_OUTOFVIDEOMEMORY, "0x8876017C" */
bool frag_message_is_status(const frag_message_split_line *read, size_t i)
{
    uint64_t number =
        frag_message_line_has(read, i, FRAG_WORD_NUMBER) ? read->words[i].amount.bytes : 0;
    return number == 0x8007000e || number == 0x8876017c || number == 2147024882 ||
           (number == 8007000 && frag_message_line_is(read, i + 1, "e"));
}

/* "ErrorOutOfMemory" written small, "AF_ERR_NO_MEM" */
static bool is_glued(const frag_message_split_line *read, size_t i)
{
    static const char out[] = "outof";
    if (i >= read->count)
        return false;
    const frag_message_word *word = &read->words[i];
    const char *text = read->text->bytes;
    for (size_t at = word->at; at + sizeof out + 2 <= word->end; at++)
        if (memcmp(text + at, out, sizeof out - 1) == 0 &&
            memchr(text + at, 'm', word->end - at) != NULL)
            return frag_message_line_has(read, i, FRAG_WORD_MEMORY);
    return frag_message_line_is(read, i, "nomem") ||
           (frag_message_line_has(read, i - 1, FRAG_WORD_ERROR) &&
            frag_message_line_is(read, i, "no") &&
            frag_message_line_has(read, i + 1, FRAG_WORD_MEMORY));
}

/* "CUDA out of memo": the paste ends in the middle of the word. */
static bool is_cut_memory(const frag_message_split_line *read, size_t i)
{
    static const char whole[] = "memory";
    if (i + 1 != read->count)
        return false;
    const frag_message_word *word = &read->words[i];
    size_t length = word->end - word->at;
    const char *behind = read->text->bytes + word->end;
    return length > 1 && length < sizeof whole - 1 && behind[strspn(behind, ".\n")] == '\0' &&
           memcmp(read->text->bytes + word->at, whole, length) == 0 &&
           frag_message_is_about_device(read->text, word->at);
}

/* "VK_ERROR_OUT_OF_POOL_MEMORY": a pool of descriptors, which holds no memory of the device */
bool frag_message_is_pool_name(const frag_message_split_line *read, size_t i)
{
    return frag_message_line_is(read, i, "pool") && read->text->bytes[read->words[i].end] == '_';
}

/* "tests/pool.py::test_out_of_memory_is_raised" */
bool frag_message_is_of_test(const frag_message_split_line *read, size_t i)
{
    while (frag_message_line_is_joined(read, i))
        i--;
    return frag_message_line_is(read, i, "test");
}

/* "oom_kill_process from out_of_memory+0x218/0x34c": functions in the back trace of a kernel */
bool frag_message_is_of_trace(const frag_message_split_line *read, size_t i)
{
    static const char hex[] = "0123456789abcdef";
    static const char mark[] = "+0x";
    const char *bytes = read->text->bytes;
    if (bytes[read->words[i].end] != '_')
        return false;
    for (size_t j = i; j < read->count; j++) {
        const char *behind = bytes + read->words[j].end;
        if (strncmp(behind, mark, strlen(mark)) == 0 &&
            strncmp(behind + strlen(mark) + strspn(behind + strlen(mark), hex), "/0x", 3) == 0)
            return true;
    }
    return false;
}

/* "out of [GPU] memory", "OutOfMemory", "OUT_OF_DEVICE_MEMORY", "OOM" */
bool frag_message_is_out_of(const frag_message_split_line *read, size_t i)
{
    return frag_message_is_status(read, i) || is_glued(read, i) ||
           (frag_message_line_is(read, i, "out") && frag_message_line_is(read, i + 1, "of") &&
            !frag_message_is_pool_name(read, i + 2) && !frag_message_is_of_test(read, i) &&
            !frag_message_is_of_trace(read, i) &&
            (frag_message_line_has_within(read, i + 2, i + 6, FRAG_WORD_MEMORY) ||
             is_cut_memory(read, i + 2))) ||
           frag_message_line_is(read, i, "outofmemory") ||
           (frag_message_line_is(read, i, "oom") && !frag_message_line_is_joined(read, i) &&
            !frag_message_is_of_trace(read, i) && !frag_message_line_is(read, i + 1, "score") &&
            !frag_message_line_is(read, i + 1, "adj"));
}

/* "not enough memory", "insufficient VRAM", "too little memory", "no free memory" */
static bool is_lack(const frag_message_split_line *read, size_t i)
{
    static frag_word_list nots = {"not", "no", "t", "doesnt", "dont", "isnt", NULL};
    static frag_word_list wanted = {"sufficient", "available", "free", NULL};
    static frag_word_list enough = {"enough*", "enougth", NULL};
    static frag_word_list little = {"little", "small", NULL};
    static frag_word_list states = {"is", "was", "are", "isn", "still", NULL};
    bool is_not = frag_message_line_is_any(read, i, nots) &&
                  (frag_message_line_is_any(read, i + 1, wanted) ||
                   frag_message_line_has_any(read, i + 1, i + 4, enough));
    bool is_little =
        frag_message_line_is(read, i, "too") && frag_message_line_is_any(read, i + 1, little);
    bool is_lacking =
        frag_message_line_has(read, i, FRAG_WORD_LACK) && !frag_message_line_is(read, i, "oom");
    bool is_state = is_not && i > 0 && frag_message_line_has_any(read, i + 1, i + 3, enough) &&
                    frag_message_line_is_any(read, i - 1, states); /* "memory left is not enough" */
    size_t reach = is_lacking ? NEAR : is_state ? 4 : 0;
    size_t from = i > reach ? i - reach : 0;
    return (is_not || is_little || is_lacking) &&
           frag_message_line_has_within(read, from, i + 7, FRAG_WORD_MEMORY);
}

/* "leaves no GPU memory", "no memory left" */
static bool is_none_left(const frag_message_split_line *read, size_t i)
{
    bool leaves =
        frag_message_line_is(read, i - 1, "leave") || frag_message_line_is(read, i - 1, "leaves");
    for (size_t j = i + 1; frag_message_line_is(read, i, "no") && j <= i + 2; j++)
        if (frag_message_line_has(read, j, FRAG_WORD_MEMORY))
            return leaves || frag_message_line_is(read, i + 1, "more") ||
                   frag_message_line_is(read, j + 1, "left") ||
                   frag_message_line_is(read, j + 1, "available");
    return false;
}

/* "cannot fit in GPU memory", "too large for GPU memory" */
static bool is_unfit(const frag_message_split_line *read, size_t i)
{
    bool is_large =
        frag_message_line_is(read, i, "too") &&
        (frag_message_line_is(read, i + 1, "large") || frag_message_line_is(read, i + 1, "big"));
    bool is_not = frag_message_line_has(read, i, FRAG_WORD_FAIL) ||
                  frag_message_line_is(read, i, "not") || frag_message_line_is(read, i, "t");
    size_t fit = frag_message_line_is(read, i + 1, "fit") ? i + 1 : i + 2;
    static frag_word_list settings = {"param*", "option*", NULL}; /* are fitted to it */
    bool has_fit = frag_message_line_is(read, fit, "fit") &&
                   !frag_message_line_is_any(read, fit + 1, settings);
    return (is_large || (is_not && has_fit)) &&
           frag_message_line_has_within(read, i + 2, i + 3 + NEAR, FRAG_WORD_MEMORY);
}

/* "couldn't keep the working set of columns in GPU memory" */
static bool is_not_kept(const frag_message_split_line *read, size_t i)
{
    static frag_word_list keeps = {"keep", "hold", "store", "place", "put", "fit", NULL};
    bool is_not = frag_message_line_has(read, i, FRAG_WORD_FAIL) ||
                  frag_message_line_is(read, i, "not") || frag_message_line_is(read, i, "t");
    for (size_t j = i + 2;
         is_not && frag_message_line_has_any(read, i + 1, i + 3, keeps) && j < i + 2 * NEAR; j++)
        if (frag_message_line_is(read, j, "in") &&
            frag_message_line_has(read, j + 1, FRAG_WORD_DEVICE) &&
            frag_message_line_has_within(read, j + 1, j + 3, FRAG_WORD_MEMORY))
            return true;
    return false;
}

/* "request for more GPU memory than is available", but not "takes more GPU memory than SGD" */
static bool is_more_than(const frag_message_split_line *read, size_t i)
{
    if (!frag_message_line_is(read, i, "more") ||
        !frag_message_line_has_within(read, i + 1, i + 4, FRAG_WORD_MEMORY))
        return false;
    static frag_word_list haves = {"is",       "are",       "was",       "were",      "has",
                                   "have",     "available", "exists",    "max*",      "capacity",
                                   "free",     "limit*",    "allowed",   "permitted", "total",
                                   "physical", "what",      "installed", NULL};
    for (size_t j = i + 2; j < i + NEAR; j++)
        if (frag_message_line_is(read, j, "than"))
            return frag_message_line_has_any(read, j + 1, j + 5, haves) ||
                   frag_message_line_has_within(read, j + 1, j + 4,
                                                FRAG_WORD_DEVICE | FRAG_WORD_SIZE);
    return false;
}

/* "Failed to allocate again.": where the text around it is about a device, no more is needed. */
static bool is_of_device(const frag_message_split_line *read, size_t i)
{
    bool is_next = frag_message_line_has_within(read, i > 2 ? i - 2 : 0, i + 2, FRAG_WORD_FAIL);
    return is_next && frag_message_is_about_device(read->text, read->words[i].at);
}

/* "rows activation alloc failed on card 1" */
static bool is_on_card(const frag_message_split_line *read, size_t i)
{
    for (size_t j = i + 1; j < i + NAME; j++)
        if (frag_message_line_is(read, j, "card") &&
            frag_message_line_has(read, j + 1, FRAG_WORD_NUMBER))
            return true;
    return false;
}

/* "memory isn't enough", "memory is full", "VRAM overflow" */
static bool is_memory_short(const frag_message_split_line *read, size_t i)
{
    static frag_word_list overflows = {"overflow", "overflows", "overflowed", "overflowing", NULL};
    static frag_word_list nots = {"not", "no", "never", "hardly", "barely", NULL};
    return frag_message_line_has(read, i, FRAG_WORD_MEMORY) &&
           (frag_message_line_is_any(read, i + 1, overflows) ||
            (frag_message_line_is(read, i + 1, "isn") &&
             frag_message_line_is(read, i + 3, "enough")) ||
            (frag_message_line_is(read, i + 1, "is") &&
             (frag_message_line_is(read, i + 2, "full") ||
              (frag_message_line_is_any(read, i + 2, nots) &&
               frag_message_line_is(read, i + 3, "enough")))));
}

/* "assertion 'allocs == 0' failed" is a failure of another kind. */
static bool has_asserted(const frag_message_split_line *read)
{
    size_t to = read->count > 0 ? read->words[read->count - 1].at : 0;
    bool is_found = false;
    for (size_t i = 0; i < read->count; i++) {
        is_found |=
            frag_message_line_is(read, i, "assertion") || frag_message_line_is(read, i, "assert");
        /* "GGML_ASSERT: backend.c:460: failed to allocate buffer": of what it is about */
        if (frag_message_line_has(read, i, FRAG_WORD_FAIL) &&
            frag_message_line_is(read, i + 1, "to") &&
            frag_message_line_has(read, i + 2, FRAG_WORD_ALLOCATE))
            return false;
    }
    /* "`p != NULL && "unable to allocate"' failed": what its author says of it */
    for (size_t at = is_found ? read->words[0].at : to; at < to; at++)
        if (strncmp(read->text->bytes + at, "&&\"", 3) == 0)
            return false;
    return is_found;
}

/* Does the address of a device on a bus stand at at: "0000:3b:00.0", "10003000.pcie:"? */
static bool is_bus_address(const char *text)
{
    enum { HEX_DIGITS = 4 };
    static const char hex[] = "0123456789abcdef";
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-_";
    size_t digits = strspn(text, hex);
    const char *behind = text + digits;
    if (digits == HEX_DIGITS && *behind == ':')
        return strspn(behind + 1, hex) == 2 && behind[3] == ':' && strspn(behind + 4, hex) == 2 &&
               behind[6] == '.';
    bool is_name = *behind == '.' && behind[1] >= 'a' && behind[1] <= 'z';
    return digits > HEX_DIGITS && is_name && behind[1 + strspn(behind + 1, letters)] == ':';
}

/* "tegra-pcie 10003000.pcie: Failed", "octeon 0000:03:00.0: Unable": a driver of the kernel, which
 * is of a GPU where it is called so. */
static bool is_of_kernel(const frag_message_split_line *read)
{
    static frag_word_list gpus = {"amdgpu", "radeon", "nvidia",   "nouveau", "drm",  "xe",
                                  "msm",    "mali",   "panfrost", "etna*",   "lima", "v3d",
                                  "kgsl",   "nvgpu",  "nvmap",    "habana*", "nvrm", NULL};
    for (size_t i = 1; i < read->count && i < HEAD; i++) {
        const frag_message_word *word = &read->words[i];
        if (!is_bus_address(read->text->bytes +
                            word->at) && /* "fe800000" is a word from its f on */
            !is_bus_address(read->text->bytes + read->words[i - 1].end))
            continue;
        return !frag_message_line_has_any(read, 0, i, gpus) &&
               !(frag_message_line_is(read, 0, "i") &&
                 frag_message_line_has(read, 1, FRAG_WORD_NUMBER)) && /* i915 */
               !frag_message_line_has_within(read, i, read->count, FRAG_WORD_DEVICE);
    }
    return false;
}

/* "unable to allocate port", "port allocation failed": numbers, names and rights, not memory,
 * unless it is that of ports. */
static bool is_of_thing(const frag_message_split_line *read, size_t i)
{
    static frag_word_list things = {
        "port",    "ports",   "pty",   "irq*",   "msi",      "minor", "major",       "id",
        "ids",     "number*", "name",  "names",  "address*", "ip",    "ips",         "subnet*",
        "socket*", "inode*",  "pid",   "vlan*",  "license*", "slice", "channel",     "quota*",
        "gpus",    "job*",    "task*", "struct", "node",     "nodes", "descriptor*", NULL};
    /* what stands before it is allocated only where the word is "allocation" */
    size_t from = !frag_message_line_is(read, i, "allocation") ? i : i > 2 ? i - 2 : 0;
    size_t to = i + 1;
    while (to < i + 4 && to < read->count &&
           strchr(",;:.(", read->text->bytes[read->words[to - 1].end]) == NULL)
        to++;
    static frag_word_list rooms = {"space", "room", "storage", NULL};
    /* "could not allocate enough operations" */
    const uint32_t of_memory =
        FRAG_WORD_MEMORY | FRAG_WORD_SIZE | FRAG_WORD_UNIT | FRAG_WORD_DEVICE;
    if (frag_message_line_is(read, i + 1, "enough"))
        return !frag_message_line_has_within(read, i + 2, to + 1, of_memory) &&
               !frag_message_line_has_any(read, i + 2, to + 1, rooms);
    return !frag_message_line_has_within(read, from, to + 1, FRAG_WORD_MEMORY | FRAG_WORD_SIZE) &&
           frag_message_line_has_any(read, from, to, things);
}

/* "Could not reserve memory region", "reserve memory within 2GB of the exe" */
static bool is_place(const frag_message_split_line *read, size_t i)
{
    static frag_word_list places = {"region*", "range*", "within", "at", NULL};
    return frag_message_line_is(read, i, "reserve") &&
           frag_message_line_has(read, i + 1, FRAG_WORD_MEMORY) &&
           frag_message_line_is_any(read, i + 2, places);
}

/* "memory region [0x00f00000-0x00f0ffff]": of the machine's addresses */
static bool is_address_range(const frag_message_split_line *read, size_t i)
{
    if (i == 0 || !frag_message_line_has(read, i, FRAG_WORD_NUMBER))
        return false;
    const char *last = read->text->bytes + read->words[i].at;
    return read->words[i - 1].end + 1 == read->words[i].at && last[-1] == '-' &&
           strncmp(last, "0x", 2) == 0 &&
           strncmp(read->text->bytes + read->words[i - 1].at, "0x", 2) == 0;
}

/* "could not allocate device number", "Unable to allocate device", "Platform device allocation
 * failed": what a kernel keeps of a device; "allocate gpu resource to pod", "allocate 2 GPUs",
 * "allocate GPU for job 7": what a scheduler hands out, as is "allocate GPU quota"; "descriptor
 * heap full": a table */
bool frag_message_is_of_system(const frag_message_split_line *read)
{
    static frag_word_list parts = {"number*", "name", "struct*", "private", "info", NULL};
    static frag_word_list resources = {"resource", "resources", "gpus", NULL};
    static frag_word_list places = {"pod", "pods", "node", "nodes", NULL};
    static frag_word_list buses = {"platform", "iio", "input", "net", NULL};
    static frag_word_list tables = {"heap", "pool", NULL};
    static frag_word_list ends = {"for", "to", "on", "in", "within", "using", "slice", NULL};
    static frag_word_list seats = {"slot", "slots", "capacity", "table", NULL};
    static frag_word_list folders = {"directory", "folder", "writable", NULL};
    /* "Failed to allocate workspace. Ensure the workspace directory is writable." */
    if (frag_message_line_has_any(read, 0, read->count, folders) &&
        (read->kinds & (FRAG_WORD_MEMORY | FRAG_WORD_DEVICE | FRAG_WORD_SIZE)) == 0)
        return true;
    for (size_t i = 0; i < read->count; i++) {
        bool is_allocated = frag_message_line_has(read, i, FRAG_WORD_ALLOCATE);
        if ((frag_message_line_is_any(read, i, buses) &&
             frag_message_line_is(read, i + 1, "device") &&
             frag_message_line_has(read, i + 2, FRAG_WORD_ALLOCATE)) ||
            (frag_message_line_is(read, i, "descriptor") &&
             frag_message_line_is_any(read, i + 1, tables) &&
             frag_message_line_is(read, i + 2, "full")))
            return true;
        if (is_allocated && frag_message_line_is(read, i + 1, "device") &&
            (i + 2 == read->count || frag_message_line_is(read, i + 2, "for") ||
             frag_message_line_has_any(read, i + 2, i + 4, parts)))
            return true;
        if (is_allocated && frag_message_line_has_any(read, i + 1, i + 4, resources) &&
            frag_message_line_has_any(read, i + 2, read->count, places))
            return true;
        /* "unable to reserve GPU slot" */
        if (is_allocated && frag_message_line_is(read, i + 1, "gpu") &&
            frag_message_line_is_any(read, i + 2, seats))
            return true;
        /* "allocate a GPU for the stage", but not "a GPU buffer" */
        if (is_allocated && frag_message_line_is(read, i + 1, "a") &&
            frag_message_line_is(read, i + 2, "gpu") &&
            (i + 3 == read->count || frag_message_line_is_any(read, i + 3, ends)))
            return true;
        if ((is_allocated && (is_of_thing(read, i) || is_place(read, i))) ||
            is_address_range(read, i))
            return true;
    }
    return is_of_kernel(read);
}

/* "(e.g. socket, malloc)", "(socket, malloc, munmap, etc)": of what such a call may be */
bool frag_message_is_example(const frag_message_split_line *read, size_t i)
{
    const char *bytes = read->text->bytes;
    size_t from = read->words[i].at;
    while (from > read->words[0].at && bytes[from] != '(' && bytes[from] != ')')
        from--;
    if (bytes[from] != '(')
        return false;
    size_t to = read->words[i].end;
    while (to < read->words[read->count - 1].end && bytes[to] != ')')
        to++;
    return strncmp(bytes + from, "(e.g", strlen("(e.g")) == 0 ||
           strncmp(bytes + to - strlen("etc"), "etc", strlen("etc")) == 0 ||
           strncmp(bytes + to - strlen("etc."), "etc.", strlen("etc.")) == 0;
}

/* "cudaHostAlloc ok, cudaMalloc failed": the first did not. */
static bool has_succeeded(const frag_message_split_line *read, size_t i)
{
    static frag_word_list ends = {"ok", "okay", "succeed*", "success*", "passed", "fine", NULL};
    return frag_message_line_is_any(read, i + 1, ends);
}

/* "failed to allocate", "allocation failed", "allocation error", "cannot be allocated" */
static bool is_failed(const frag_message_split_line *read, size_t i)
{
    bool is_passive =
        frag_message_line_is(read, i, "allocated") && frag_message_line_is(read, i - 1, "be");
    size_t from = i > NEAR ? i - NEAR : 0;
    if (frag_message_line_is(read, i, "allocator") &&
        frag_message_line_has(read, i + 1, FRAG_WORD_FAIL))
        return true;
    if (!frag_message_line_has(read, i, FRAG_WORD_ALLOCATE) && !is_passive)
        return false;
    if (frag_message_line_is(read, i - 2, "ip") && frag_message_line_is(read, i - 1, "address"))
        return false;
    /* "allocations succeed and fail": told of many, not of one */
    if (frag_message_line_is(read, i, "allocations") &&
        !frag_message_line_has(read, i + 1, FRAG_WORD_FAIL))
        return false;
    if (frag_message_is_of_system(read) || frag_message_is_of_test(read, i) ||
        frag_message_is_example(read, i) || has_succeeded(read, i))
        return false;
    if (has_asserted(read) && (read->kinds & (FRAG_WORD_MEMORY | FRAG_WORD_SIZE)) == 0)
        return false;
    if (frag_message_line_has_within(read, from, i + NEAR, FRAG_WORD_FAIL) ||
        frag_message_line_has(read, i + 1, FRAG_WORD_ERROR))
        return true;
    static frag_word_list verbs = {"could", "can", "did", NULL};
    static frag_word_list nots = {"not", "t", NULL};
    for (size_t j = from; j < i + NEAR; j++)
        if (frag_message_line_is_any(read, j, verbs) && frag_message_line_is_any(read, j + 1, nots))
            return true;
    return false;
}

/* "aclrtMalloc", "cnrtMalloc": the call of a runtime, whose memory is a device's unless it says
 * otherwise. */
static bool is_runtime_call(const frag_message_split_line *read, size_t i)
{
    static frag_word_list hosts = {"host", "x", "k", "v", "py", "sys", "je", "tc", "g", "my", NULL};
    if (i == 0 || !frag_message_line_has(read, i, FRAG_WORD_ALLOCATE) ||
        read->words[i - 1].end != read->words[i].at ||
        (read->text->marks[read->words[i].at] & FRAG_MESSAGE_WORD) != 0)
        return false;
    return !frag_message_line_is_any(read, i - 1, hosts) &&
           frag_message_line_has(read, i + 1, FRAG_WORD_FAIL) &&
           !frag_message_line_is(read, i - 1, "memory");
}

static bool has_big_figure(const frag_message_split_line *read)
{
    for (size_t i = 0; i < read->count; i++)
        if (frag_message_line_has(read, i, FRAG_WORD_NUMBER | FRAG_WORD_SIZE) &&
            read->words[i].amount.is_known && read->words[i].amount.bytes >= BIG)
            return true;
    return false;
}

/* "alloc size : 2 is more than total mem size : 1" */
static bool is_exceeding(const frag_message_split_line *read, size_t i)
{
    bool is_about = frag_message_line_has(read, i, FRAG_WORD_EXCEED) &&
                    (read->kinds & (FRAG_WORD_MEMORY | FRAG_WORD_UNIT | FRAG_WORD_SIZE)) != 0 &&
                    (read->kinds & (FRAG_WORD_SIZE | FRAG_WORD_NUMBER)) != 0;
    static frag_word_list exceeds = {"exceed", "exceeds", "exceeded", NULL};
    bool is_than =
        frag_message_line_is(read, i + 1, "than") || frag_message_line_is_any(read, i, exceeds);
    bool is_share = i + 2 < read->count && frag_message_line_is(read, i + 1, "than") &&
                    read->text->bytes[read->words[i + 2].end] == '%'; /* "more than 100%" */
    bool is_plain = (read->kinds & (FRAG_WORD_MEMORY | FRAG_WORD_ALLOCATE)) != 0;
    static frag_word_list denials = {"not", "cannot", NULL};
    static frag_word_list others = {"body", "line", "message", "packet", "payload", "header", NULL};
    bool is_harmless = (read->kinds & (FRAG_WORD_ERROR | FRAG_WORD_LACK)) == 0;
    bool is_denied = frag_message_line_is(read, i - 1, "never") ||
                     (is_harmless && frag_message_line_is_any(read, i - 1, denials));
    bool is_of_others = (read->kinds & FRAG_WORD_DEVICE) == 0 &&
                        frag_message_line_has_any(read, i > NEAR ? i - NEAR : 0, i, others);
    return is_about && is_than && !is_share && !is_denied && !is_of_others &&
           (is_plain || has_big_figure(read)) &&
           (read->kinds & (FRAG_WORD_ALLOCATE | FRAG_WORD_UNIT | FRAG_WORD_DEVICE)) != 0;
}

/* "out of GPU memory", "Out of memory on device": more than the name of an error */
static bool is_out_of_device(const frag_message_split_line *read, size_t i)
{
    size_t last = frag_message_line_is(read, i, "out") ? i + 2 : i;
    /* a sentence comes to it later */
    bool is_first = i == 0 || frag_message_line_is(read, i - 1, "ran");
    bool is_on = is_first && frag_message_line_is(read, last + 1, "on") &&
                 frag_message_line_has_within(read, last + 2, last + 5, FRAG_WORD_DEVICE);
    return frag_message_is_out_of(read, i) &&
           (is_on || (frag_message_line_has(read, i + 2, FRAG_WORD_DEVICE) &&
                      frag_message_line_has(read, i + 3, FRAG_WORD_MEMORY)));
}

/* "GpuRetryOOM: ", "OutOfMemoryError   Traceback": the class of an exception that was thrown. */
bool frag_message_is_thrown(const frag_message_split_line *read, size_t i)
{
    size_t last = frag_message_line_is(read, i, "out") ? i + 2 : i;
    if (!frag_message_is_out_of(read, i) || frag_message_is_status(read, i))
        return false;
    /* of one name with what stands before it */
    const frag_message_word *end = &read->words[last];
    unsigned char marks = read->text->marks[end->at];
    bool is_part = (marks & FRAG_MESSAGE_WORD) == 0 && (marks & FRAG_MESSAGE_CAPITAL) != 0;
    /* "OutOfMemoryError        Traceback (most recent call last)": the head of a notebook's */
    bool is_head = frag_message_line_is(read, last + 1, "error") &&
                   frag_message_line_is(read, last + 2, "traceback");
    return is_part && (is_head || read->text->bytes[end->end] == ':');
}

/* "OOM(dev=2): asked=3221225472": figures behind the name of the error, each with its own */
static bool has_keyed_figure(const frag_message_split_line *read, size_t at)
{
    for (size_t i = at + 1; i < read->count; i++)
        if (read->words[i].amount.is_known && read->words[i].amount.bytes >= BIG &&
            frag_message_line_has(read, i, FRAG_WORD_NUMBER | FRAG_WORD_SIZE) &&
            read->text->bytes[read->words[i].at - 1] == '=')
            return true;
    return false;
}

bool frag_message_is_lost_work(const frag_message_split_line *read)
{
    static frag_word_list skips = {"skip", "skips", "skipping", "skipped", NULL};
    static frag_word_list objects = {"it", "this", NULL};
    static frag_word_list works = {
        "batch*",    "minibatch*", "sample*", "step",     "steps",  "image", "images",
        "tile",      "tiles",      "frame",   "frames",   "iter",   "iters", "iteration*",
        "update",    "updates",    "prompt*", "example*", "epoch*", "clip",  "sequence*",
        "video",     "videos",     "scene",   "scan",     "volume", "slide", "patch*",
        "chunk",     "document*",  "page",    "request",  "file",   "files", "instance",
        "molecule*", "protein*",   "subject", "trial",    "row",    "rows",  "utterance*",
        "sentence*", "generation", NULL};
    /* what a program does without */
    static frag_word_list options = {
        "cache",    "warm*",   "tun*",    "autotun*", "profil*", "tactic*", "graph", "fus*",
        "preview*", "compil*", "optimi*", "preload*", "check*",  "test*",   "load*", NULL};
    for (size_t i = 0; i < read->count; i++) {
        if (!frag_message_line_is_any(read, i, skips) || frag_message_line_is_joined(read, i) ||
            frag_message_line_is_joined(read, i + 1))
            continue;
        size_t to = i + 1 + WORK < read->count ? i + 1 + WORK : read->count;
        bool is_last = i + 1 == read->count || frag_message_line_is_any(read, i + 1, objects);
        if (frag_message_line_has_any(read, i + 1, to, options))
            continue;
        if (frag_message_line_has_any(read, i + 1, to, works) ||
            /* "batch 12 skipped", "OOM on image 3, skip it" */
            ((is_last || frag_message_line_is(read, i, "skipped")) &&
             frag_message_line_has_any(read, 0, i, works)))
            return true;
    }
    return false;
}

frag_message_failure frag_message_find_failure(const frag_message_split_line *read)
{
    frag_message_failure found = {.is_name = true};
    for (size_t i = 0; i < read->count; i++) {
        bool failed = is_failed(read, i) &&
                      ((read->kinds & (FRAG_WORD_MEMORY | FRAG_WORD_SIZE | FRAG_WORD_DEVICE |
                                       FRAG_WORD_UNIT)) != 0 ||
                       is_of_device(read, i) || is_runtime_call(read, i) || is_on_card(read, i));
        bool lacks = is_lack(read, i) || is_none_left(read, i) || is_memory_short(read, i) ||
                     is_exceeding(read, i) || is_unfit(read, i) || is_not_kept(read, i) ||
                     is_out_of_device(read, i) || is_more_than(read, i);
        failed |= frag_message_is_out_of(read, i) && has_keyed_figure(read, i);
        found.is_allocation |= failed;
        found.is_name = found.is_name && !failed && !lacks && !frag_message_is_status(read, i) &&
                        !frag_message_is_thrown(read, i);
        bool is_here = failed || lacks || frag_message_is_out_of(read, i);
        found.at = is_here && !found.is_found ? i : found.at;
        found.is_found |= is_here;
    }
    return found;
}

/* "vkAllocateMemory failed -4": not memory, nor a pool or a count of allocations, that ran out */
static bool is_vulkan_fault(const frag_message_split_line *read, size_t i)
{
    static const uint64_t out[] = {2, 10, 12, 1000069000, 1000161000};
    for (size_t j = 0; j < sizeof out / sizeof *out; j++)
        if (out[j] == read->words[i].amount.bytes)
            return false;
    static frag_word_list calls = {"vk", NULL};
    return read->text->bytes[read->words[i].at - 1] == '-' &&
           frag_message_line_is(read, i - 1, "failed") &&
           frag_message_line_has_any(read, i > NEAR ? i - NEAR : 0, i, calls);
}

/* "cuMemAlloc failed: 700", "cudaMalloc returned status 999": a number of three digits is a fault
 * of another kind. */
static bool is_fault_number(const frag_message_split_line *read, size_t i)
{
    static frag_word_list calls = {"cu", "cuda", "hip", NULL};
    static frag_word_list heads = {"failed", "error", "status", "result", "code", "returned", NULL};
    uint64_t number =
        frag_message_line_has(read, i, FRAG_WORD_NUMBER) ? read->words[i].amount.bytes : 0;
    if (i > 1 && number > 0 && is_vulkan_fault(read, i))
        return true;
    return i > 1 && number >= 100 && number <= 999 &&
           read->text->bytes[read->words[i].at - 1] != '-' &&
           frag_message_line_is_any(read, i - 1, heads) &&
           frag_message_line_has_any(read, i > NEAR ? i - NEAR : 0, i, calls) &&
           (i + 1 == read->count || !frag_message_line_has(read, i + 1, FRAG_WORD_UNIT));
}

/* "(unknown error) in allocate", but not "unknown error: out of memory" */
static bool is_unknown(const frag_message_split_line *read, size_t i)
{
    return frag_message_line_is(read, i, "unknown") && frag_message_line_is(read, i + 1, "error") &&
           read->text->bytes[read->words[i + 1].end] != ':';
}

/* "IllegalStateException", "invalid_request_error", "InvalidInput("not enough memory")",
 * "InvalidParameter { reason: "exceeds GPU memory" }" are thrown for anything, and so is
 * "Unsupported: " at the start of a line. */
static bool is_any_class(const frag_message_split_line *read, size_t i)
{
    static frag_word_list kinds = {"illegal", "invalid", NULL};
    static frag_word_list things = {"state", "operation", "argument", "request",
                                    "input", "parameter", NULL};
    static frag_word_list ends = {"exception", "error", NULL};
    bool is_first = i == 0 || read->text->bytes[read->words[i].at - 1] == '.';
    if (is_first && i + 1 < read->count && frag_message_line_is(read, i, "unsupported"))
        return read->text->bytes[read->words[i].end] == ':';
    if (!frag_message_line_is_any(read, i, kinds) || !frag_message_line_is_any(read, i + 1, things))
        return false;
    const char *behind = read->text->bytes + read->words[i + 1].end;
    return frag_message_line_is_any(read, i + 2, ends) || strncmp(behind, "(\"", 2) == 0 ||
           *behind == '{' ||
           /* "InvalidInput: " is the name of a class, "invalid input: " an error */
           (*behind == ':' && (read->text->marks[read->words[i + 1].at] & FRAG_MESSAGE_WORD) == 0);
}

/* "driver version is insufficient", "no CUDA-capable device is detected", "initialization error",
 * "devices are busy or unavailable": why a call fails before there is a device */
static bool is_unready(const frag_message_split_line *read, size_t i)
{
    static frag_word_list devices = {"device", "devices", "gpu", "gpus", NULL};
    static frag_word_list seen = {"detected", "found", NULL};
    return (frag_message_line_is(read, i, "version") &&
            frag_message_line_is(read, i + 2, "insufficient")) ||
           (frag_message_line_is(read, i, "no") &&
            frag_message_line_has_any(read, i + 1, i + 4, devices) &&
            frag_message_line_has_any(read, i + 2, i + 6, seen) &&
            !frag_message_line_has_within(read, i + 1, i + 5, FRAG_WORD_MEMORY)) ||
           (frag_message_line_is(read, i, "initialization") &&
            frag_message_line_has(read, i + 1, FRAG_WORD_ERROR)) ||
           (frag_message_line_is(read, i, "forward") &&
            frag_message_line_is(read, i + 1, "compatibility")) ||
           (frag_message_line_is(read, i, "operation") &&
            frag_message_line_is(read, i + 1, "not") &&
            frag_message_line_is(read, i + 2, "supported")) ||
           (frag_message_line_is(read, i, "busy") &&
            frag_message_line_is(read, i + 2, "unavailable"));
}

/* "Executor task launch worker" is the name of a thread; only what is said to fail is a failure of
 * another kind. */
bool frag_message_is_other(const frag_message_split_line *read)
{
    for (size_t i = 0; i < read->count; i++) {
        if (is_fault_number(read, i))
            return true;
        bool is_launch = frag_message_word_is(read->text, &read->words[i], "launch");
        size_t from = i > 2 ? i - 2 : 0;
        bool is_failure =
            frag_message_line_has_within(read, from, i + 4, FRAG_WORD_FAIL | FRAG_WORD_ERROR);
        if (is_unknown(read, i) || is_unready(read, i) ||
            ((read->words[i].kinds & FRAG_WORD_OTHER) != 0 && !is_any_class(read, i) &&
             (!is_launch || is_failure)))
            return true;
    }
    return false;
}

/* "CUDA error at f.cu:3", "Error on cuCtxCreate" */
static bool is_placed(const frag_message_split_line *read, size_t i)
{
    static frag_word_list behind = {"at", "in", "on", "during", "code", NULL};
    bool is_headed = i == 0 || frag_message_line_has(read, i - 1, FRAG_WORD_DEVICE);
    return is_headed && frag_message_line_is_any(read, i + 1, behind);
}

/* "Error:", "[error]", "CUDAError(2)", "CUDA error at f.cu:3": a mark that a program sets before
 * what it reports. */
bool frag_message_has_mark(const frag_message_split_line *read, size_t to)
{
    size_t start = frag_message_text_line_start(read->text, read->words[0].at);
    if ((read->text->marks[start] & FRAG_MESSAGE_ERROR) != 0)
        return true;
    for (size_t i = 0; i < to && i < read->count; i++) {
        char behind = read->text->bytes[read->words[i].end];
        bool is_mark = (behind != '\0' && strchr(":]>=|(,", behind) != NULL) || is_placed(read, i);
        if (frag_message_is_thrown(read, i))
            return true;
        bool is_failing =
            frag_message_line_is(read, i, "failed") && behind != '\0' && strchr(":", behind);
        static frag_word_list ends = {"crashed", "aborted", "terminated", NULL};
        bool is_pause =
            behind == ',' && frag_message_line_is_any(read, i, ends); /* "crashed, or" */
        if ((frag_message_line_has(read, i, FRAG_WORD_ERROR) && is_mark && !is_pause) || is_failing)
            return true;
        if ((frag_message_line_is(read, i, "e") && behind == ']') ||
            (frag_message_line_is(read, i, "outofmemory") && behind == ':'))
            return true;
    }
    return false;
}

/* Do a few words stand before it, where a name of many, as "<Texture::init:421>", counts as one?
 * JSON has no blanks between its words either. */
static bool is_behind_names(const frag_message_split_line *read, size_t at)
{
    size_t count = 0;
    for (size_t i = read->words[0].at + 1; i <= read->words[at].at; i++) {
        count += (read->text->marks[i] & FRAG_MESSAGE_WORD) != 0;
        if (count > NAME || strchr("{\"", read->text->bytes[i]) != NULL)
            return false;
    }
    return true;
}

/* "glTexImage2D: GL_OUT_OF_MEMORY", "CUDA_OUT_OF_MEMORY in" */
static bool is_called(const frag_message_split_line *read, size_t at)
{
    bool is_near = at <= NEAR || is_behind_names(read, at);
    if (at == 0 || !is_near || !frag_message_line_has_within(read, 0, at, FRAG_WORD_DEVICE))
        return false;
    size_t first = 0; /* behind the date and time of a log */
    while (first + 1 < at && frag_message_line_has(read, first, FRAG_WORD_NUMBER))
        first++;
    for (size_t i = read->words[first].end; i < read->words[at].at; i++) {
        if (strchr(":]>", read->text->bytes[i]) != NULL)
            return true;
        if ((read->text->marks[i] & FRAG_MESSAGE_WORD) != 0)
            break; /* one word stands before the sign, not a sentence */
    }
    return at == 1 && frag_message_line_has(read, 0, FRAG_WORD_DEVICE);
}

/* "ran out of memory", "died due to out of memory": it is told as something that happened. */
bool frag_message_is_told(const frag_message_split_line *read, size_t at)
{
    if (is_called(read, at))
        return true;
    if (frag_message_line_is(read, at - 2, "without"))
        return false;
    static frag_word_list before = {"ran", "running", "to", NULL};
    return at > 0 && at <= NEAR + NAME && (read->kinds & FRAG_WORD_DEVICE) != 0 &&
           frag_message_line_is_any(read, at - 1, before);
}

/* Stands near the start of its line, or behind the sign that ends a prefix: a sentence comes to the
 * point later. */
bool frag_message_is_headed(const frag_message_split_line *read, size_t at)
{
    if (at <= NEAR)
        return true;
    for (size_t i = read->words[at - PREFIX].end; i < read->words[at].at; i++)
        if (strchr(":]\"=>", read->text->bytes[i]) != NULL)
            return true;
    return false;
}

/* ---- status numbers */
typedef struct status {
    frag_word_list *interfaces; /* before it, in the same line */
    const char *const *near;    /* or somewhere near, which end with NULL; NULL: nowhere */
    uint64_t number;
    bool is_negative;
} status;

static frag_word_list cuda = {"cuda",     "hip",  "cu",    "cufft", "cusolver",
                              "cusparse", "musa", "cuvid", NULL};
static frag_word_list cublas = {"cublas", "hipblas", "blas", NULL};
static frag_word_list cl = {"opencl", "cl", NULL};
static frag_word_list vulkan = {"vk", "vulkan", "vma", "vkresult", NULL};
static frag_word_list gl = {"gl", "opengl", "glerror", NULL};
static frag_word_list ze = {"ze", "zeresult", "level", "ur", NULL};
static frag_word_list drivers = {"drm", "gem", "ttm", "nvmap", "amdgpu", "nouveau", "rga",
                                 "npu", "gpu", "mpp", "kgsl",  "rknpu",  NULL};
static frag_word_list nvmap = {"nv", NULL};
static frag_word_list mfx = {"mfx", "qsv", NULL};
static frag_word_list nvenc = {"nvenc", "nvencapi", NULL};
static const char *const near_cl[] = {"opencl", "clenqueue", "clcreate", NULL};
static const char *const near_vulkan[] = {"vulkan", "vkcreate", "vkallocate", NULL};

static const char *const near_nvmap[] = {"nvmapmemalloc", NULL};

static const status statuses[] = {
    {&cuda, NULL, 2, false},         /* cudaErrorMemoryAllocation, CUFFT_ALLOC_FAILED */
    {&cublas, NULL, 3, false},       /* CUBLAS_STATUS_ALLOC_FAILED */
    {&cl, near_cl, 4, true},         /* CL_MEM_OBJECT_ALLOCATION_FAILURE */
    {&cl, near_cl, 61, true},        /* CL_INVALID_BUFFER_SIZE: more than the device allows */
    {&vulkan, near_vulkan, 2, true}, /* VK_ERROR_OUT_OF_DEVICE_MEMORY */
    {&gl, NULL, 0x505, false},       /* GL_OUT_OF_MEMORY */
    {&ze, NULL, 0x70000003, false},  /* ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY */
    {&drivers, NULL, 12, true},      /* ENOMEM */
    {&nvmap, near_nvmap, 12, false}, /* of Jetson */
    {&mfx, NULL, 4, true},           /* MFX_ERR_MEMORY_ALLOC */
    {&nvenc, NULL, 10, false},       /* NV_ENC_ERR_OUT_OF_MEMORY */
};

/* The words before the number that make it a status, up to the one that decides; read->count: none
 * does. "failed" alone may be followed by any count, so it decides only for a number that is
 * negative or hexadecimal. */
static size_t status_head(const frag_message_split_line *read, size_t i, bool is_code)
{
    static frag_word_list between = {"code", "number", "status", "no",    "result",   "err",
                                     "res",  "ret",    "rc",     "errno", "vkresult", NULL};
    static frag_word_list heads = {"returned", "returns", "return",   "status", "result",
                                   "res",      "ret",     "vkresult", "code",   NULL};
    size_t at = i;
    bool is_head = false;
    /* "clCreateBuffer (-61)" */
    if (is_code && strncmp(read->text->bytes + read->words[i - 1].end, "(-", 2) == 0 &&
        read->text->bytes[read->words[i].end] == ')')
        return i - 1;
    /* "failed to pin it, -12", "Failed creating a CUDA context for NVENC: 0x2", "opencl could not
     * copy buffer: -4" */
    char apart = read->text->bytes[read->words[i - 1].end];
    bool is_apart = apart == ',' || (apart == ':' && i + 1 == read->count);
    static frag_word_list nots = {"not", "cannot", NULL};
    for (size_t j = i; is_apart && is_code && j > 0 && j + NEAR > i; j--)
        if (frag_message_line_has(read, j - 1, FRAG_WORD_ERROR | FRAG_WORD_FAIL) ||
            frag_message_line_is_any(read, j - 1, nots))
            return i - 1;
    /* "failed ec=-2" */
    const frag_message_word *name = &read->words[i - 1];
    if (is_code && name->end - name->at <= 3 && read->text->bytes[name->end] == '=' &&
        frag_message_line_has(read, i - 2, FRAG_WORD_FAIL | FRAG_WORD_ERROR))
        return i - 1;
    while (frag_message_line_is_any(read, at - 1, between) ||
           frag_message_line_has(read, at - 1, FRAG_WORD_ERROR | FRAG_WORD_FAIL) ||
           frag_message_line_is_any(read, at - 1, heads)) {
        at--;
        is_head |= frag_message_line_is_any(read, at, heads) ||
                   frag_message_line_has(read, at, FRAG_WORD_ERROR) ||
                   (is_code && frag_message_line_has(read, at, FRAG_WORD_FAIL));
    }
    return is_head ? at : read->count;
}

static bool is_of_interface(const frag_message_split_line *read, size_t head, const status *known)
{
    /* "[drm:prepare_fb [amdgpu]] *ERROR* Failed to pin framebuffer with error -12" */
    size_t from = head > HEAD && !known->is_negative ? head - HEAD : 0;
    /* a call with its arguments begins farther off */
    for (size_t at = read->words[0].end; at < read->words[head].at; at++)
        from = read->text->bytes[at] == ')' ? 0 : from;
    return frag_message_line_has_any(read, from, head + 1, *known->interfaces) ||
           (known->near != NULL &&
            frag_message_stands_near(read->text, read->words[head].at, known->near));
}

bool frag_message_is_status_number(const frag_message_split_line *read, size_t i)
{
    if (!frag_message_line_has(read, i, FRAG_WORD_NUMBER) || !read->words[i].amount.is_known ||
        i == 0)
        return false;
    const frag_message_word *word = &read->words[i];
    bool is_negative = read->text->bytes[word->at - 1] == '-';
    char behind = read->text->bytes[word->end];
    bool is_whole = behind == '\0' || strchr(".:/%", behind) == NULL ||
                    strchr("\n", read->text->bytes[word->end + 1]) != NULL || /* "error -2." */
                    (read->text->marks[word->end + 1] & FRAG_MESSAGE_WORD) != 0;
    bool is_code = is_negative || strncmp(read->text->bytes + word->at, "0x", 2) == 0;
    size_t head = is_whole ? status_head(read, i, is_code) : read->count;
    for (size_t j = 0; head < read->count && j < sizeof statuses / sizeof *statuses; j++)
        if (statuses[j].number == word->amount.bytes && statuses[j].is_negative == is_negative &&
            is_of_interface(read, head, &statuses[j]))
            return true;
    return false;
}

bool frag_message_is_title(const frag_message_split_line *read)
{
    static frag_word_list kinds = {"error", "errors", "issue", "problem", "exception", NULL};
    static frag_word_list links = {"while", "when", "during", "in", "with", "at", NULL};
    static frag_word_list models = {"train*",      "finetun*", "tuning",  "inferenc*", "evaluat*",
                                    "lora",        "lo",       "qlora",   "epoch*",    "batch",
                                    "checkpoint*", "run",      "weights", "llm",       "llama*",
                                    "model",       "running",  NULL};
    if (read->text->line_count > TITLE_LINES)
        return false;
    for (size_t i = 0; i < TITLE; i++) {
        size_t link = frag_message_line_is_any(read, i + 1, kinds) ? i + 2 : i + 1;
        if (frag_message_line_is(read, i, "oom") && frag_message_line_is_any(read, link, links))
            return frag_message_line_has_any(read, link + 1, read->count, models);
    }
    return false;
}
