#include "messages/guess/message_host.h"

#include <string.h>

/* "pinned_memory_size="30gb"": what somebody set, not what ran out. */
static bool is_of_setting(const frag_message_split_line *read, size_t i)
{
    while (frag_message_line_is_joined(read, i + 1))
        i++;
    return i > 0 && frag_message_line_is_joined(read, i) &&
           read->text->bytes[read->words[i].end] == '=';
}

/* "OOM on cpu instead of gpu", but not "OOM on cpu and gpu" */
static bool is_place_of_failure(const frag_message_split_line *read, size_t i)
{
    static frag_word_list ins = {"on", "in", NULL};
    static frag_word_list ands = {"and", "or", NULL};
    return i > 1 && frag_message_line_is_any(read, i - 1, ins) &&
           !frag_message_line_is_any(read, i + 1, ands) &&
           (frag_message_is_out_of(read, i - 2) || (i > 3 && frag_message_is_out_of(read, i - 4)));
}

/* "pinned memory", "cudaMallocHost", "host memory", "system memory": the computer's, even where a
 * device is named. */
static bool is_of_computer(const frag_message_split_line *read)
{
    static frag_word_list disks = {"sd*", "dm", "md", "loop", "vda", "xvda", "nvme", NULL};
    for (size_t i = 0; i < read->count; i++) {
        static frag_word_list hosts = {"host", "system", "resident", "cpu", "ram", NULL};
        bool is_host = frag_message_line_is_any(read, i, hosts);
        if (is_of_setting(read, i))
            continue;
        if (frag_message_line_is(read, i, "device") && frag_message_line_is_any(read, i + 1, disks))
            return true;
        /* "cannot allocate 8 bytes for USM Host" */
        if (frag_message_line_is(read, i, "host") && i > 1 &&
            (frag_message_line_is(read, i - 1, "for") || frag_message_line_is(read, i - 2, "for")))
            return true;
        if (is_host && is_place_of_failure(read, i))
            return true;
        bool was_allocation = frag_message_line_has(read, i - 1, FRAG_WORD_ALLOCATE);
        /* "GPU or CPU memory", "GPU and shared host memory" */
        size_t before = i > 3 ? i - 3 : 0;
        bool is_both = false;
        for (size_t j = before; j + 1 < i; j++)
            is_both |= frag_message_line_has(read, j, FRAG_WORD_DEVICE) &&
                       (frag_message_line_is(read, j + 1, "or") ||
                        frag_message_line_is(read, j + 1, "and"));
        /* "GPU RAM", "a GPU card with 4 GB RAM" */
        static frag_word_list cards = {"gpu", "card", "gtx", "rtx", NULL};
        static frag_word_list owns = {"with", "has", "of", NULL};
        bool is_ram = frag_message_line_is(read, i, "ram") && i > 0;
        bool is_owned = i > 2 && frag_message_line_has(read, i - 1, FRAG_WORD_SIZE) &&
                        frag_message_line_is_any(read, i - 2, owns) &&
                        frag_message_line_has_any(read, before > 1 ? before - 2 : 0, i, cards);
        bool is_video =
            is_ram && (frag_message_line_has(read, i - 1, FRAG_WORD_DEVICE) || is_owned);
        if (is_both || is_video)
            continue;
        static frag_word_list others = {"main", "shared", NULL}; /* on a chip, too */
        bool is_other = frag_message_line_is_any(read, i, others);
        if ((is_other && frag_message_line_is(read, i + 1, "memory")) ||
            (frag_message_line_is(read, i, "pinned") &&
             frag_message_line_has(read, i, FRAG_WORD_HOST)) ||
            frag_message_line_is(read, i, "pagelocked") ||
            (frag_message_line_is(read, i, "page") &&
             frag_message_line_is(read, i + 1, "locked")) ||
            frag_message_line_is(read, i, "hostalloc") || frag_message_line_is(read, i, "ram") ||
            (is_host &&
             (was_allocation || frag_message_is_out_of(read, i + 1) ||
              frag_message_line_has(read, i + 1, FRAG_WORD_MEMORY | FRAG_WORD_ALLOCATE) ||
              /* "host context memory" */
              (frag_message_line_is(read, i, "host") &&
               frag_message_line_has(read, i + 2, FRAG_WORD_MEMORY)))))
            return true;
    }
    return false;
}

/* The system's own words for ENOMEM. */
static bool is_enomem(const frag_message_split_line *read)
{
    for (size_t i = 0; i + 2 < read->count; i++)
        if (frag_message_line_is(read, i, "cannot") &&
            frag_message_line_has(read, i + 1, FRAG_WORD_ALLOCATE) &&
            frag_message_line_is(read, i + 2, "memory") &&
            !frag_message_line_has(read, i + 3, FRAG_WORD_SIZE))
            return true;
    return false;
}

/* Do two words stand side by side, joined ("RangeError") or not ("physical memory")? */
static bool has_pair(const frag_message_split_line *read, const char *first, const char *second,
                     bool is_joined)
{
    for (size_t i = 0; i + 1 < read->count; i++)
        if (frag_message_line_is(read, i, first) && frag_message_line_is(read, i + 1, second) &&
            (!is_joined || read->words[i].end == read->words[i + 1].at))
            return true;
    return false;
}

/* "malloc(5)", "malloc: ***", but not "cudaMalloc(5)": of the computer's own library */
static bool is_library_call(const frag_message_split_line *read)
{
    static frag_word_list calls = {"malloc", "calloc", "realloc", "memalign", "mmap", NULL};
    for (size_t i = 0; i < read->count; i++) {
        const char behind = read->text->bytes[read->words[i].end];
        bool is_whole = i == 0 || read->words[i - 1].end != read->words[i].at ||
                        (read->text->marks[read->words[i].at] & FRAG_MESSAGE_WORD) != 0;
        if (frag_message_line_is_any(read, i, calls) && (behind == '(' || behind == ':') &&
            is_whole)
            return true;
    }
    return false;
}

/* "Memory limit exceeded", "exceeded the memory limit of 512 MB": of a program, where no device is
 * named. */
static bool is_memory_limit(const frag_message_split_line *read, size_t i)
{
    static frag_word_list limits = {"limit*", "quota*", "capacity", NULL};
    return frag_message_line_is(read, i, "memory") &&
           (frag_message_line_is_any(read, i + 1, limits) ||
            (frag_message_line_is(read, i + 1, "usage") &&
             frag_message_line_has(read, i + 2, FRAG_WORD_EXCEED)));
}

/* "install more RAM", "'device': 'CPU'" beside a line that names no device: the text says where the
 * program ran, or what to buy. */
static bool is_run_on_cpu(const frag_message_split_line *read, size_t at)
{
    static const char *const near[] = {"installmoreram", "addmoreram", "'device':'cpu'",
                                       "\"device\":\"cpu\"", NULL};
    for (size_t i = 0; i < read->count; i++)
        if (frag_message_line_has(read, i, FRAG_WORD_DEVICE) &&
            !frag_message_line_is(read, i, "device"))
            return false;
    return frag_message_stands_near(read->text, at, near);
}

/* "CPU mode is applied in this batch", "with offload to the CPU": where a program puts what is too
 * much for the device did not fail. */
static bool is_refuge(const frag_message_split_line *read, size_t i)
{
    static frag_word_list refuges = {"mode", "fallback", "offload*", NULL};
    static frag_word_list moves = {"offload*", NULL};
    size_t before = i > 3 ? i - 3 : 0;
    return frag_message_line_is(read, i, "cpu") &&
           (frag_message_line_is_any(read, i + 1, refuges) ||
            frag_message_line_has_any(read, before, i, moves));
}

static bool names_host(const frag_message_split_line *read)
{
    for (size_t i = 0; i < read->count; i++)
        if (frag_message_line_has(read, i, FRAG_WORD_HOST) && !is_refuge(read, i))
            return true;
    return false;
}

/* "killed by OOM on my A6000" */
static bool names_device(const frag_message_split_line *read)
{
    bool is_model = false;
    for (size_t i = 0; i < read->count; i++)
        is_model |= frag_message_line_is_model(read, i);
    return is_model || (read->kinds & FRAG_WORD_DEVICE) != 0;
}

/* "You ran out of memory", "突然报错out of memory": told, not the name of an error */
static bool is_sentence(const frag_message_split_line *read, size_t failure)
{
    static frag_word_list runs = {"ran", "runs", NULL};
    const frag_message_text *text = read->text;
    size_t from = frag_message_text_line_start(text, read->words[0].at);
    size_t end = frag_message_text_line_end(text, read->words[0].at, FRAG_MESSAGE_LINE_REACH);
    return memchr(text->bytes + from, FRAG_MESSAGE_FOREIGN, end - from) != NULL ||
           frag_message_line_is_any(read, failure - 1, runs);
}

/* Where nothing says whose memory it was, a failed allocation is taken for a device's: the text was
 * given to a reader of such messages. The bare name of the error is anybody's, but not of a person
 * who tells of it (is_witnessed). */
static bool is_host(const frag_message_split_line *read, const frag_message_failure *found,
                    size_t at, bool is_witnessed)
{
    for (size_t i = 0; i < read->count; i++)
        if (frag_message_is_status(read, i))
            return false;
    /* "NCCL WARN Call to ibv_create_cq failed with error Cannot allocate memory" */
    bool is_system_call = is_enomem(read) && (read->kinds & FRAG_WORD_HOST) != 0;
    static const char *const ggml[] = {"ggml_aligned_malloc:", NULL};
    if (is_run_on_cpu(read, at))
        return true;
    if (names_device(read))
        return is_of_computer(read) || is_system_call ||
               frag_message_stands_near(read->text, at, ggml);
    /* OpenCV's name for what malloc() refused; of a device it says "Gpu API call" */
    static const char *const opencv[] = {"(-4:insufficientmemory", NULL};
    /* a process of a browser was ended */
    static const char *const ends[] = {"exitedwith'oom'", "reason:oom", "reason:'oom'", NULL};
    if (names_host(read) || is_of_computer(read) || is_library_call(read) ||
        has_pair(read, "range", "error", true) || has_pair(read, "physical", "memory", false) ||
        frag_message_stands_near(read->text, at, opencv) ||
        frag_message_stands_near(read->text, at, ends))
        return true;
    const uint32_t more = FRAG_WORD_UNIT | FRAG_WORD_SIZE | FRAG_WORD_NUMBER | FRAG_WORD_FAIL |
                          FRAG_WORD_ALLOCATE | FRAG_WORD_HOST;
    bool is_bare = found->is_name && (read->kinds & more) == 0 &&
                   !frag_message_is_lost_work(read) && !frag_message_is_title(read) &&
                   !is_witnessed && !is_sentence(read, found->at);
    for (size_t i = 0; i < read->count; i++)
        is_bare |= is_memory_limit(read, i);
    return (is_bare || is_enomem(read)) && !frag_message_is_about_device(read->text, at);
}

/* "64 GB RAM but not enough memory", "cudaHostAlloc ok, cudaMalloc failed": of what stands before
 * "but" and "ok" there is plenty. */
static frag_message_split_line contrasted(const frag_message_split_line *read, size_t failure)
{
    frag_message_split_line part = *read;
    static frag_word_list plenty = {"but", "ok", "okay", "succeeded", "fine", NULL};
    for (size_t i = 1; i < failure; i++)
        if (frag_message_line_is_any(read, i, plenty))
            frag_message_line_read(&part, read->text, read->words[i].at,
                                   read->words[read->count - 1].end);
    return part;
}

bool frag_message_is_of_host(const frag_message_split_line *read, const frag_message_failure *found,
                             size_t at, bool is_witnessed)
{
    frag_message_split_line part = contrasted(read, found->at);
    return is_host(&part, found, at, is_witnessed);
}

uint32_t frag_message_host_says(const frag_message_split_line *read)
{
    static frag_word_list pins = {"pinned", "pagelocked", "hostalloc", NULL};
    if (frag_message_line_has_any(read, 0, read->count, pins) ||
        has_pair(read, "page", "locked", false))
        return FRAG_SAYS_PINNED;
    bool is_kernel = (read->kinds & FRAG_WORD_DEVICE) != 0;
    return is_kernel && has_pair(read, "shared", "memory", false) ? FRAG_SAYS_ON_CHIP : 0;
}
