#include "studies/explain/message/message_guess.h"

#include <string.h>

#include "studies/explain/message/message_words.h"

enum {
    BEFORE = 160,  /* of a long line so much before a hint is read, */
    BEHIND = 240,  /* and so much behind it */
    OVERLAP = 24,  /* of two pieces of one line */
    NEAR = 8,      /* words between two that belong together */
    NAME = 4,      /* words of the name of an error */
    PREFIX = 3,    /* words between the sign that ends a prefix and the failure */
    SHORT = 5,     /* a paste of so few lines is the message itself */
    BIG = 1 << 24, /* bytes that only a device's memory is short of */
    FAR = 1200     /* where else the text may say that it is about a device */
};

/* ---- where a line may speak of memory */
static const char *const hints[] = {"memor",  "alloc",  "vram",     "oom",       "hbm",
                                    "gmem",   "buffer", "heap",     "outofmem",  "nomem",
                                    "no_mem", "of_mem", "8007000e", "2147024882"};

static bool is_hint(const char *text)
{
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (strncmp(text, hints[i], strlen(hints[i])) == 0)
            return true;
    return false;
}

static size_t next_hint(const frag_message_text *text, size_t from)
{
    for (size_t at = from; at < text->length; at++)
        if (strchr("mavohgbn82", text->bytes[at]) != NULL && is_hint(text->bytes + at))
            return at;
    return text->length;
}

/* ---- what stands around it */
static const char *const devices[] = {
    "cuda",  "gpu",     "vulkan", "opencl",  "hip",    "tensorrt", "npu",     "xpu",   "tpu",
    "metal", "ascend",  "vram",   "rocm",    "hpu",    "d3d",      "directx", "gltex", "opengl",
    "nvenc", "hresult", "render", "texture", "shader", "webgl",    "webgpu",  NULL};

static bool stands_near(const frag_message_text *text, size_t at, const char *const *names)
{
    size_t from = at > FAR ? at - FAR : 0;
    size_t to = at + FAR < text->length ? at + FAR : text->length;
    for (size_t i = from; i < to; i++)
        for (size_t j = 0; names[j] != NULL; j++)
            if (text->bytes[i] == names[j][0] &&
                strncmp(text->bytes + i, names[j], strlen(names[j])) == 0)
                return true;
    return false;
}

/* ---- one line, as words */
typedef struct line {
    const frag_message_text *text;
    frag_message_word words[FRAG_MESSAGE_WORDS_MAX];
    size_t count;
    uint32_t kinds; /* of all its words */
} line;

/* "malloc_failed", "on_oom": two words of one small name, which a program gives to a field or an
 * option, not to what it reports. */
static bool is_joined(const line *read, size_t i)
{
    if (i == 0 || i >= read->count)
        return false;
    size_t before = read->words[i - 1].end;
    return read->words[i].at == before + 1 && read->text->bytes[before] == '_' &&
           (read->text->marks[read->words[i].at] & FRAG_MESSAGE_CAPITAL) == 0;
}

static void read_line(line *read, const frag_message_text *text, size_t from, size_t to)
{
    read->text = text;
    read->count = frag_message_words(text, from, to, read->words);
    read->kinds = 0;
    for (size_t i = 0; i < read->count; i++) {
        /* "what(): " is a call */
        if (text->bytes[read->words[i].end] == '(')
            read->words[i].kinds &= ~(uint32_t)FRAG_WORD_PROSE;
        if (is_joined(read, i) || is_joined(read, i + 1))
            read->words[i].kinds &= ~(uint32_t)FRAG_WORD_FAIL;
        read->kinds |= read->words[i].kinds;
    }
}

/* "Executor task launch worker" is the name of a thread; only what is said to fail is a failure of
 * another kind. */
static bool is_other(const line *read)
{
    for (size_t i = 0; i < read->count; i++) {
        bool is_launch = frag_message_word_is(read->text, &read->words[i], "launch");
        size_t from = i > 2 ? i - 2 : 0;
        bool is_failure = false;
        for (size_t j = from; is_launch && j < i + 4 && j < read->count; j++)
            is_failure |= (read->words[j].kinds & (FRAG_WORD_FAIL | FRAG_WORD_ERROR)) != 0;
        if ((read->words[i].kinds & FRAG_WORD_OTHER) != 0 && (!is_launch || is_failure))
            return true;
    }
    return false;
}

static bool is_word(const line *read, size_t index, const char *name)
{
    return index < read->count && frag_message_word_is(read->text, &read->words[index], name);
}

static bool has_kind(const line *read, size_t index, uint32_t kinds)
{
    return index < read->count && (read->words[index].kinds & kinds) != 0;
}

static bool has_kind_within(const line *read, size_t from, size_t to, uint32_t kinds)
{
    for (size_t i = from; i < to && i < read->count; i++)
        if (has_kind(read, i, kinds))
            return true;
    return false;
}

/* E_OUTOFMEMORY of Windows, as a number: "HRESULT=8007000e", "0x8007000E", "-2147024882" */
static bool is_status(const line *read, size_t i)
{
    uint64_t number = has_kind(read, i, FRAG_WORD_NUMBER) ? read->words[i].amount.bytes : 0;
    return number == 0x8007000e || number == 2147024882 ||
           (number == 8007000 && is_word(read, i + 1, "e"));
}

/* "ErrorOutOfMemory" written small, "AF_ERR_NO_MEM" */
static bool is_glued(const line *read, size_t i)
{
    static const char out[] = "outof";
    if (i >= read->count)
        return false;
    const frag_message_word *word = &read->words[i];
    const char *text = read->text->bytes;
    for (size_t at = word->at; at + sizeof out + 2 <= word->end; at++)
        if (memcmp(text + at, out, sizeof out - 1) == 0 &&
            memchr(text + at, 'm', word->end - at) != NULL)
            return has_kind(read, i, FRAG_WORD_MEMORY);
    return is_word(read, i, "nomem") ||
           (i > 0 && has_kind(read, i - 1, FRAG_WORD_ERROR) && is_word(read, i, "no") &&
            has_kind(read, i + 1, FRAG_WORD_MEMORY));
}

/* "out of [GPU] memory", "OutOfMemory", "OUT_OF_DEVICE_MEMORY", "OOM" */
static bool is_out_of(const line *read, size_t i)
{
    return is_status(read, i) || is_glued(read, i) ||
           (is_word(read, i, "out") && is_word(read, i + 1, "of") &&
            has_kind_within(read, i + 2, i + 6, FRAG_WORD_MEMORY)) ||
           is_word(read, i, "outofmemory") || (is_word(read, i, "oom") && !is_joined(read, i));
}

/* "not enough memory", "insufficient VRAM", "too little memory", "no free memory" */
static bool is_lack(const line *read, size_t i)
{
    bool is_not = (is_word(read, i, "not") || is_word(read, i, "no") || is_word(read, i, "t")) &&
                  (is_word(read, i + 1, "enough") || is_word(read, i + 1, "sufficient") ||
                   is_word(read, i + 2, "enough") || is_word(read, i + 3, "enough") ||
                   is_word(read, i + 1, "available") || is_word(read, i + 1, "free"));
    bool is_little = is_word(read, i, "too") &&
                     (is_word(read, i + 1, "little") || is_word(read, i + 1, "small"));
    bool is_lacking = has_kind(read, i, FRAG_WORD_LACK) && !is_word(read, i, "oom");
    size_t from = !is_lacking ? i : i > NEAR ? i - NEAR : 0;
    return (is_not || is_little || is_lacking) &&
           has_kind_within(read, from, i + 7, FRAG_WORD_MEMORY);
}

/* "leaves no GPU memory", "no memory left" */
static bool is_none_left(const line *read, size_t i)
{
    bool leaves = i > 0 && (is_word(read, i - 1, "leave") || is_word(read, i - 1, "leaves"));
    for (size_t j = i + 1; is_word(read, i, "no") && j <= i + 2; j++)
        if (has_kind(read, j, FRAG_WORD_MEMORY))
            return leaves || is_word(read, i + 1, "more") || is_word(read, j + 1, "left") ||
                   is_word(read, j + 1, "available");
    return false;
}

/* "cannot fit in GPU memory", "too large for GPU memory" */
static bool is_unfit(const line *read, size_t i)
{
    bool is_large =
        is_word(read, i, "too") && (is_word(read, i + 1, "large") || is_word(read, i + 1, "big"));
    bool is_not =
        has_kind(read, i, FRAG_WORD_FAIL) || is_word(read, i, "not") || is_word(read, i, "t");
    bool has_fit = is_word(read, i + 1, "fit") || is_word(read, i + 2, "fit");
    return (is_large || (is_not && has_fit)) &&
           has_kind_within(read, i + 2, i + 3 + NEAR, FRAG_WORD_MEMORY);
}

/* "request for more GPU memory than is available" */
static bool is_more_than(const line *read, size_t i)
{
    if (!is_word(read, i, "more") || !has_kind_within(read, i + 1, i + 4, FRAG_WORD_MEMORY))
        return false;
    for (size_t j = i + 2; j < i + 6; j++)
        if (is_word(read, j, "than"))
            return true;
    return false;
}

/* "Failed to allocate again.": where the text around it is about a device, no more is needed. */
static bool is_of_device(const line *read, size_t i)
{
    bool is_next = has_kind_within(read, i > 2 ? i - 2 : 0, i + 2, FRAG_WORD_FAIL);
    return is_next && stands_near(read->text, read->words[i].at, devices);
}

/* "memory isn't enough", "memory is full" */
static bool is_memory_short(const line *read, size_t i)
{
    return has_kind(read, i, FRAG_WORD_MEMORY) &&
           ((is_word(read, i + 1, "isn") && is_word(read, i + 3, "enough")) ||
            (is_word(read, i + 1, "is") &&
             (is_word(read, i + 2, "full") || is_word(read, i + 3, "enough"))));
}

/* "assertion 'allocs == 0' failed" is a failure of another kind. */
static bool has_asserted(const line *read)
{
    for (size_t i = 0; i < read->count; i++)
        if (is_word(read, i, "assertion") || is_word(read, i, "assert"))
            return true;
    return false;
}

/* "failed to allocate", "allocation failed", "allocation error", "cannot be allocated" */
static bool is_failed(const line *read, size_t i)
{
    bool is_passive = is_word(read, i, "allocated") && i > 0 && is_word(read, i - 1, "be");
    size_t from = i > NEAR ? i - NEAR : 0;
    if (!has_kind(read, i, FRAG_WORD_ALLOCATE) && !is_passive)
        return false;
    if (i > 1 && is_word(read, i - 2, "ip") && is_word(read, i - 1, "address"))
        return false;
    /* "allocations succeed and fail": told of many, not of one */
    if (is_word(read, i, "allocations") && !has_kind(read, i + 1, FRAG_WORD_FAIL))
        return false;
    /* "could not allocate device number" */
    if (is_word(read, i + 1, "device") &&
        (is_word(read, i + 2, "number") || is_word(read, i + 2, "numbers") ||
         is_word(read, i + 2, "name") || is_word(read, i + 2, "struct")))
        return false;
    if (has_asserted(read) && (read->kinds & (FRAG_WORD_MEMORY | FRAG_WORD_SIZE)) == 0)
        return false;
    if (has_kind_within(read, from, i + NEAR, FRAG_WORD_FAIL) ||
        has_kind(read, i + 1, FRAG_WORD_ERROR))
        return true;
    for (size_t j = from; j < i + NEAR && j < read->count; j++)
        if ((is_word(read, j, "could") || is_word(read, j, "can") || is_word(read, j, "did")) &&
            (is_word(read, j + 1, "not") || is_word(read, j + 1, "t")))
            return true;
    return false;
}

/* "aclrtMalloc", "cnrtMalloc": the call of a runtime, whose memory is a device's unless it says
 * otherwise. */
static bool is_runtime_call(const line *read, size_t i)
{
    static const char *const hosts[] = {"host", "x", "k", "v", "py", "sys", "je", "tc", "g", "my"};
    if (i == 0 || !has_kind(read, i, FRAG_WORD_ALLOCATE) ||
        read->words[i - 1].end != read->words[i].at ||
        (read->text->marks[read->words[i].at] & FRAG_MESSAGE_WORD) != 0)
        return false;
    for (size_t j = 0; j < sizeof hosts / sizeof *hosts; j++)
        if (is_word(read, i - 1, hosts[j]))
            return false;
    return has_kind(read, i + 1, FRAG_WORD_FAIL) && !is_word(read, i - 1, "memory");
}

static bool has_big_figure(const line *read)
{
    for (size_t i = 0; i < read->count; i++)
        if (has_kind(read, i, FRAG_WORD_NUMBER | FRAG_WORD_SIZE) &&
            read->words[i].amount.is_known && read->words[i].amount.bytes >= BIG)
            return true;
    return false;
}

/* "alloc size : 2 is more than total mem size : 1" */
static bool is_exceeding(const line *read, size_t i)
{
    bool is_about = has_kind(read, i, FRAG_WORD_EXCEED) &&
                    (read->kinds & (FRAG_WORD_MEMORY | FRAG_WORD_UNIT | FRAG_WORD_SIZE)) != 0 &&
                    (read->kinds & (FRAG_WORD_SIZE | FRAG_WORD_NUMBER)) != 0;
    bool is_than = is_word(read, i + 1, "than") || is_word(read, i, "exceeds") ||
                   is_word(read, i, "exceeded") || is_word(read, i, "exceed");
    bool is_plain = (read->kinds & (FRAG_WORD_MEMORY | FRAG_WORD_ALLOCATE)) != 0;
    bool is_denied = i > 0 && is_word(read, i - 1, "never");
    return is_about && is_than && !is_denied && (is_plain || has_big_figure(read)) &&
           (read->kinds & (FRAG_WORD_ALLOCATE | FRAG_WORD_UNIT | FRAG_WORD_DEVICE)) != 0;
}

/* "out of GPU memory": more than the name of an error */
static bool is_out_of_device(const line *read, size_t i)
{
    return is_out_of(read, i) && has_kind(read, i + 2, FRAG_WORD_DEVICE) &&
           has_kind(read, i + 3, FRAG_WORD_MEMORY);
}

/* "GpuRetryOOM: ", "OutOfMemoryGraphics(": the class of an exception that was thrown. */
static bool is_thrown(const line *read, size_t i)
{
    size_t last = is_word(read, i, "out") ? i + 2 : i;
    if (!is_out_of(read, i) || is_status(read, i) || last >= read->count)
        return false;
    /* of one name with what stands before it */
    const frag_message_word *end = &read->words[last];
    unsigned char marks = read->text->marks[end->at];
    bool is_part = (marks & FRAG_MESSAGE_WORD) == 0 && (marks & FRAG_MESSAGE_CAPITAL) != 0;
    return is_part && read->text->bytes[end->end] == ':';
}

/* What was found in a line, and whether it is the mere name of an error, which sources and
 * sentences use too. */
typedef struct failure {
    bool is_found;
    bool is_allocation;
    bool is_name;
    size_t at; /* the first word of it */
} failure;

static failure find_failure(const line *read)
{
    failure found = {.is_name = true};
    for (size_t i = 0; i < read->count; i++) {
        bool failed =
            is_failed(read, i) && ((read->kinds & (FRAG_WORD_MEMORY | FRAG_WORD_SIZE |
                                                   FRAG_WORD_DEVICE | FRAG_WORD_UNIT)) != 0 ||
                                   is_of_device(read, i) || is_runtime_call(read, i));
        bool lacks = is_lack(read, i) || is_none_left(read, i) || is_memory_short(read, i) ||
                     is_exceeding(read, i) || is_unfit(read, i) || is_out_of_device(read, i) ||
                     is_more_than(read, i);
        found.is_allocation |= failed;
        found.is_name =
            found.is_name && !failed && !lacks && !is_status(read, i) && !is_thrown(read, i);
        bool is_here = failed || lacks || is_out_of(read, i);
        found.at = is_here && !found.is_found ? i : found.at;
        found.is_found |= is_here;
    }
    return found;
}

/* "CUDA error at f.cu:3", "Error on cuCtxCreate" */
static bool is_placed(const line *read, size_t i)
{
    static const char *const behind[] = {"at", "in", "on", "during", "code"};
    bool is_headed = i == 0 || has_kind(read, i - 1, FRAG_WORD_DEVICE);
    for (size_t j = 0; j < sizeof behind / sizeof *behind; j++)
        if (is_headed && is_word(read, i + 1, behind[j]))
            return true;
    return false;
}

/* "Error:", "[error]", "CUDAError(2)", "CUDA error at f.cu:3": a mark that a program sets before
 * what it reports. */
static bool has_mark(const line *read, size_t to)
{
    for (size_t i = 0; i < to && i < read->count; i++) {
        char behind = read->text->bytes[read->words[i].end];
        bool is_mark = (behind != '\0' && strchr(":]>=|(,", behind) != NULL) || is_placed(read, i);
        if (is_thrown(read, i))
            return true;
        bool is_failing = is_word(read, i, "failed") && behind != '\0' && strchr(":", behind);
        if ((has_kind(read, i, FRAG_WORD_ERROR) && is_mark) || is_failing)
            return true;
        if ((is_word(read, i, "e") && behind == ']') ||
            (is_word(read, i, "outofmemory") && behind == ':'))
            return true;
    }
    return false;
}

/* "glTexImage2D: GL_OUT_OF_MEMORY", "CUDA_OUT_OF_MEMORY in" */
static bool is_called(const line *read, size_t at)
{
    if (at == 0 || at > NEAR || !has_kind_within(read, 0, at, FRAG_WORD_DEVICE))
        return false;
    for (size_t i = read->words[0].end; i < read->words[at].at; i++) {
        if (strchr(":]>", read->text->bytes[i]) != NULL)
            return true;
        if ((read->text->marks[i] & FRAG_MESSAGE_WORD) != 0)
            break; /* one word stands before the sign, not a sentence */
    }
    return at == 1 && has_kind(read, 0, FRAG_WORD_DEVICE);
}

/* "out of memory in ./grow.cu at line 34" */
static bool is_located(const line *read)
{
    for (size_t i = 1; i < read->count && i < NEAR; i++) {
        bool is_at = is_word(read, i, "in") || is_word(read, i, "at");
        char behind = read->text->bytes[read->words[i].end];
        if (is_at && behind != '\0' && strchr("./", behind) != NULL)
            return true;
    }
    return false;
}

/* "ran out of memory", "died due to out of memory": it is told as something that happened. */
static bool is_told(const line *read, size_t at)
{
    if (is_called(read, at) || (at == 0 && is_located(read)))
        return true;
    if (at > 1 && is_word(read, at - 2, "without"))
        return false;
    return at > 0 && at <= NEAR + NAME && (read->kinds & FRAG_WORD_DEVICE) != 0 &&
           (is_word(read, at - 1, "ran") || is_word(read, at - 1, "running") ||
            is_word(read, at - 1, "to"));
}

/* Stands near the start of its line, or behind the sign that ends a prefix: a sentence comes to the
 * point later. */
static bool is_headed(const line *read, size_t at)
{
    if (at <= NEAR)
        return true;
    for (size_t i = read->words[at - PREFIX].end; i < read->words[at].at; i++)
        if (strchr(":]\"=>", read->text->bytes[i]) != NULL)
            return true;
    return false;
}

/* "of a request that failed", "a block that does not fit" is told of some request, too. */
static bool is_of_prose(const line *read, size_t i)
{
    bool is_clause =
        is_word(read, i, "that") && (has_kind(read, i + 1, FRAG_WORD_FAIL) ||
                                     is_word(read, i + 1, "does") || is_word(read, i + 1, "do"));
    return has_kind(read, i, FRAG_WORD_PROSE) || is_clause;
}

/* Words of a sentence before the failure, or right behind it: what follows is advice. */
static bool is_prose(const line *read, const failure *found)
{
    size_t reach = found->at + (found->is_name ? NEAR : NAME + 2);
    for (size_t i = 0; i < read->count && i < reach; i++) {
        size_t before = i > found->at ? read->words[i - 1].end : read->words[i].at;
        for (size_t at = before; at < read->words[i].at; at++)
            if (strchr(".!?", read->text->bytes[at]) != NULL)
                return false;
        /* "Your GPU ran out of memory" is no sentence about one */
        bool is_addressed = i == 0 && is_word(read, 0, "your") && found->at < NAME &&
                            has_kind(read, 1, FRAG_WORD_DEVICE);
        if (is_of_prose(read, i) && !is_addressed)
            return true;
    }
    return false;
}

static bool has_prose(const line *read)
{
    for (size_t i = 0; i < read->count; i++)
        if (is_of_prose(read, i))
            return true;
    return false;
}

/* "%s", "%.2f", "%zu": the form of a message in a source. */
static bool has_format(const line *read)
{
    const char *text = read->text->bytes;
    size_t to = read->count > 0 ? read->words[read->count - 1].end : 0;
    for (size_t at = read->count > 0 ? read->words[0].at : 0; at < to; at++) {
        bool is_share = at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9'; /* "99% used" */
        size_t flags = strspn(text + at + 1, ".0123456789lzhj");
        char kind = text[at] == '%' ? text[at + 1 + flags] : '\0';
        if (!is_share && kind != '\0' && strchr("sdiufgx", kind) != NULL)
            return true;
    }
    return false;
}

/* "XXXX bytes": a form, not a message. */
static bool has_placeholder(const line *read)
{
    if (has_format(read))
        return true;
    for (size_t i = 0; i + 1 < read->count; i++) {
        const frag_message_word *word = &read->words[i];
        size_t same = 0;
        while (word->at + same < word->end && strchr("xy", read->text->bytes[word->at + same]))
            same++;
        if (same >= 2 && same == word->end - word->at && has_kind(read, i + 1, FRAG_WORD_UNIT))
            return true;
    }
    return false;
}

/* "| `Out of Memory` | too little VRAM | a smaller model |": a row of a table that somebody wrote.
 */
static bool is_table_row(const line *read)
{
    if (read->count == 0)
        return false;
    const frag_message_text *text = read->text;
    size_t from = frag_message_text_line_start(text, read->words[0].at);
    size_t to = frag_message_text_line_end(text, read->words[0].at, BEHIND);
    /* "|  ERROR | Failed to" is a logger's */
    bool is_logged = has_kind(read, 0, FRAG_WORD_ERROR) && text->bytes[read->words[0].end] == '|';
    bool has_bar = (text->marks[from] & FRAG_MESSAGE_BAR) != 0 && !is_logged;
    bool is_quoted = false;
    size_t bars = 0;
    for (size_t at = from; at < to; at++) {
        bars += text->bytes[at] == '|';
        is_quoted |= text->bytes[at] == '`' || text->bytes[at] == '*';
    }
    return (bars >= 2 && is_quoted) || (bars >= 1 && has_bar);
}

/* "- RTX 3060 (too little VRAM)", "### VRAM exhausted", "**Cause:** ...": of a list or a page, and
 * no error. */
static bool is_item(const line *read)
{
    size_t start =
        read->count > 0 ? frag_message_text_line_start(read->text, read->words[0].at) : 0;
    const char *text = read->text->bytes + start;
    size_t signs = strspn(text, "-*#");
    bool is_set_off = (read->text->marks[start + signs] & FRAG_MESSAGE_WORD) != 0;
    bool is_bold = signs == 2 && *text == '*';
    return signs > 0 && (is_set_off || is_bold) && (read->kinds & FRAG_WORD_ERROR) == 0;
}

static bool has_within(const frag_message_text *text, size_t from, size_t to, const char *sign)
{
    size_t length = strlen(sign);
    for (size_t at = from; at + length <= to; at++)
        if (memcmp(text->bytes + at, sign, length) == 0)
            return true;
    return false;
}

/* A line of a source whatever it says: "throw std::runtime_error("out of memory");", "/// out of
 * memory", "#[error("out of memory")]". */
static bool is_statement(const line *read)
{
    static const char *const keywords[] = {"class", "throw", "return", "struct"};
    static const char *const starts[] = {"//", "/*", "#["};
    if (read->count == 0)
        return false;
    const frag_message_text *text = read->text;
    size_t from = frag_message_text_line_start(text, read->words[0].at);
    size_t to = frag_message_text_line_end(text, read->words[0].at, BEHIND);
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (read->words[0].at == from && is_word(read, 0, keywords[i]))
            return true;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (strncmp(text->bytes + from, starts[i], 2) == 0)
            return true;
    /* "OutOfDeviceMemory," alone: one of a list of names */
    bool is_name = to > from && text->bytes[to - 1] == ',';
    for (size_t at = from + 1; at < to; at++)
        is_name = is_name && (text->marks[at] & FRAG_MESSAGE_WORD) == 0;
    return is_name || has_within(text, from, to, "\"\"\"");
}

/* A line of a program, or of its comments, or a row of a table without quotes. */
static bool is_source(const line *read)
{
    static const char *const signs[] = {"->", "+=", "();", "){", "&&", "||"};
    for (size_t i = 0; i < read->count; i++)
        if (is_status(read, i))
            return false;
    if (read->count == 0)
        return false;
    const frag_message_text *text = read->text;
    size_t from = frag_message_text_line_start(text, read->words[0].at);
    size_t to = frag_message_text_line_end(text, read->words[read->count - 1].end, BEHIND);
    size_t bars = 0;
    for (size_t at = from; at < to; at++)
        bars += text->bytes[at] == '|';
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (has_within(text, from, to, signs[i]))
            return true;
    return bars >= 2 || text->bytes[to - 1] == ';' || text->bytes[to - 1] == '{';
}

/* "What to do if ...": of a person, whatever is quoted in it. */
static bool is_question(const line *read)
{
    static const char *const words[] = {"how",    "what", "why",   "when",    "if",
                                        "should", "does", "while", "although"};
    size_t first = has_kind(read, 0, FRAG_WORD_NUMBER) ? 1 : 0; /* "3. Does it fit" */
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is_word(read, first, words[i]) && read->text->bytes[read->words[first].end] != '(')
            return true;
    return false;
}

/* "handle CUDA out of memory errors" */
static bool is_handled(const line *read)
{
    for (size_t i = 0; i < read->count; i++)
        if (is_word(read, i, "handle") || is_word(read, i, "handles") ||
            is_word(read, i, "handling"))
            return true;
    return false;
}

/* "command buffer 6 failed with status 5\nout of memory": the line says nothing else, and the one
 * above says what failed. */
static bool is_reason(const line *read)
{
    line above;
    size_t start =
        read->count > 0 ? frag_message_text_line_start(read->text, read->words[0].at) : 0;
    if (start == 0 || read->count > NAME)
        return false;
    read_line(&above, read->text, frag_message_text_line_start(read->text, start - 1), start - 1);
    return (above.kinds & (FRAG_WORD_FAIL | FRAG_WORD_ERROR)) != 0 &&
           stands_near(read->text, start, devices);
}

static bool is_reported(const line *read, const failure *found)
{
    bool has_figure = (read->kinds & (FRAG_WORD_SIZE | FRAG_WORD_NUMBER)) != 0;
    bool is_about = (read->kinds & (FRAG_WORD_DEVICE | FRAG_WORD_UNIT | FRAG_WORD_ERROR)) != 0;
    if ((read->kinds & FRAG_WORD_CODE) != 0 || is_other(read) || has_placeholder(read))
        return false;
    if (is_question(read) || is_table_row(read) || is_statement(read) ||
        (found->is_name && is_handled(read)))
        return false;
    if (found->is_name)
        return (has_mark(read, found->at + NAME) || is_told(read, found->at) || is_reason(read)) &&
               !is_prose(read, found);
    if (has_mark(read, read->count))
        return true;
    if (is_item(read) || (is_source(read) && (read->kinds & FRAG_WORD_ERROR) == 0))
        return false;
    bool is_short = read->text->line_count <= SHORT && found->is_allocation;
    return !is_prose(read, found) && is_headed(read, found->at) &&
           (is_short || has_figure || is_about);
}

/* A failed allocation or a lack of memory that is told in the form of no error, but not in a
 * sentence either. Where a text has nothing better, that is taken for the message: an out of
 * memory called something else costs more than a false alarm. */
static bool is_likely(const line *read, const failure *found)
{
    if ((read->kinds & (FRAG_WORD_CODE | FRAG_WORD_WARNING)) != 0 || is_other(read) ||
        has_placeholder(read) || is_question(read) || is_table_row(read) || is_statement(read) ||
        is_handled(read))
        return false;
    bool is_short = read->text->line_count <= SHORT;
    size_t before = found->at > 0 ? found->at - 1 : 0;
    if (is_item(read) || (is_source(read) && (read->kinds & FRAG_WORD_ERROR) == 0))
        return false;
    /* "0 done, 2 out of memory": a list of what numbers stand for */
    bool is_listed = found->is_name && has_kind(read, before, FRAG_WORD_NUMBER) &&
                     read->words[before].at > 0 &&
                     read->text->bytes[read->words[before].at - 1] == ',';
    if (is_listed)
        return false;
    /* "the message of the OutOfMemoryError" */
    if (is_word(read, before, "the") || is_word(read, before, "an"))
        return false;
    bool is_about = !found->is_name || (read->kinds & (FRAG_WORD_DEVICE | FRAG_WORD_SIZE)) != 0;
    bool is_failing = (read->kinds & (FRAG_WORD_ERROR | FRAG_WORD_FAIL)) != 0 && is_about &&
                      (!found->is_name || read->count > NAME + PREFIX);
    return !has_prose(read) && (is_failing || (is_short && !found->is_name));
}

/* The program goes on: a line that says what it does instead. */
static bool is_harmless(const line *read)
{
    for (size_t i = 0; i < read->count; i++)
        if (is_thrown(read, i))
            return false;
    return (read->kinds & FRAG_WORD_WARNING) != 0 && (read->kinds & FRAG_WORD_ERROR) == 0;
}

/* ---- whose memory */
/* "pinned memory", "cudaMallocHost", "host memory", "system memory": the computer's, even where a
 * device is named. */
static bool is_of_computer(const line *read)
{
    for (size_t i = 0; i < read->count; i++) {
        bool is_host = is_word(read, i, "host") || is_word(read, i, "system") ||
                       is_word(read, i, "cpu") || is_word(read, i, "ram");
        bool was_allocation = i > 0 && has_kind(read, i - 1, FRAG_WORD_ALLOCATE);
        /* "GPU or CPU memory" */
        if (i > 1 && is_word(read, i - 1, "or") && has_kind(read, i - 2, FRAG_WORD_DEVICE))
            continue;
        if (is_word(read, i, "pinned") || is_word(read, i, "pagelocked") ||
            is_word(read, i, "hostalloc") || is_word(read, i, "ram") ||
            (is_host && (was_allocation || is_out_of(read, i + 1) ||
                         has_kind(read, i + 1, FRAG_WORD_MEMORY | FRAG_WORD_ALLOCATE))))
            return true;
    }
    return false;
}

/* The system's own words for ENOMEM. */
static bool is_enomem(const line *read)
{
    for (size_t i = 0; i + 2 < read->count; i++)
        if (is_word(read, i, "cannot") && has_kind(read, i + 1, FRAG_WORD_ALLOCATE) &&
            is_word(read, i + 2, "memory") && !has_kind(read, i + 3, FRAG_WORD_SIZE))
            return true;
    return false;
}

/* Where nothing says whose memory it was, a failed allocation is taken for a device's: the text was
 * given to a reader of such messages. The bare name of the error is anybody's. */
static bool is_host(const line *read, const failure *found, size_t at)
{
    for (size_t i = 0; i < read->count; i++)
        if (is_status(read, i))
            return false;
    if ((read->kinds & FRAG_WORD_DEVICE) != 0)
        return is_of_computer(read);
    if ((read->kinds & FRAG_WORD_HOST) != 0)
        return true;
    bool is_bare = found->is_name && (read->kinds & FRAG_WORD_UNIT) == 0;
    return (is_bare || is_enomem(read)) && !stands_near(read->text, at, devices);
}

/* After a fault of another kind every call fails, allocations too. */
static bool follows_fault(const frag_message_text *text, size_t at)
{
    static const char *const faults[] = {"illegalmemoryaccess",
                                         "illegal_address",
                                         "illegaladdress",
                                         "launchfail",
                                         "launch_fail",
                                         "device-side",
                                         NULL};
    return stands_near(text, at, faults);
}

static frag_message_kind kind_of(const line *read, const failure *found, size_t at)
{
    return is_harmless(read)          ? FRAG_MESSAGE_HARMLESS
           : is_host(read, found, at) ? FRAG_MESSAGE_HOST
                                      : FRAG_MESSAGE_OOM;
}

bool frag_message_guess_next(const frag_message_text *text, size_t from, bool is_strict,
                             frag_message_guess *guess, bool *has_failure)
{
    line read;
    for (size_t at = next_hint(text, from); at < text->length;) {
        size_t start = frag_message_text_line_start(text, at);
        size_t end = frag_message_text_line_end(text, at, BEHIND);
        start = start + BEFORE < at ? at - BEFORE : start;
        start = start < from ? from : start;
        read_line(&read, text, start, end);
        failure found = find_failure(&read);
        bool is_meant = found.is_found && !follows_fault(text, at) &&
                        (is_strict ? is_reported(&read, &found) : is_likely(&read, &found));
        *has_failure |= found.is_found && (read.kinds & FRAG_WORD_CODE) == 0;
        if (is_meant) {
            *guess = (frag_message_guess){
                .start = start, .end = end, .kind = kind_of(&read, &found, at)};
            return true;
        }
        /* a hint may be cut in two where the line was */
        bool is_cut = end < text->length && text->bytes[end] != '\n';
        size_t next = is_cut && end > at + OVERLAP ? end - OVERLAP : end;
        at = next_hint(text, next > at ? next : at + 1);
    }
    return false;
}

/* "  Size: 33554432", below the line that says what failed */
static bool is_size_alone(const line *read)
{
    static const char *const names[] = {"size", "requested", "required", "needed", "bytes"};
    for (size_t i = 0; i + 1 < read->count && i < PREFIX; i++)
        for (size_t j = 0; j < sizeof names / sizeof *names; j++) {
            char behind = read->text->bytes[read->words[i].end];
            if (is_word(read, i, names[j]) && (behind == ':' || behind == '=') &&
                has_kind(read, i + 1, FRAG_WORD_NUMBER | FRAG_WORD_SIZE))
                return true;
        }
    return false;
}

bool frag_message_guess_goes_on(const frag_message_text *text, size_t from, size_t to)
{
    line read;
    read_line(&read, text, from, to);
    failure found = find_failure(&read);
    return (found.is_found && !found.is_name) || is_size_alone(&read);
}

uint32_t frag_message_scenes(const frag_message_text *text)
{
    uint32_t scenes = next_hint(text, 0) < text->length ? FRAG_SCENE_MEMORY : 0;
    static const char *const errors[] = {"error:",    "exception:",   "error]",
                                         "errorcode", "fatal:",       "failed:",
                                         "assertion", "(coredumped)", "cuda_error_"};
    for (size_t at = 0; at < text->length; at++)
        for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
            if (text->bytes[at] == errors[i][0] &&
                strncmp(text->bytes + at, errors[i], strlen(errors[i])) == 0)
                return scenes | FRAG_SCENE_OTHER_ERROR;
    return scenes;
}
