#include "messages/guess/message_presume.h"

#include <string.h>

#include "messages/guess/message_aside.h"

enum {
    NEAR = 8,         /* words between two that belong together */
    OBJECT = 5,       /* words from "out of" to what ran out */
    ARTICLE = 3,      /* words from "the" to the name of an error */
    ALONE = 2,        /* lines of a paste that is nothing but the message */
    SHORT = 12,       /* lines of a paste that somebody chose */
    COLUMNS = 5,      /* words of the head of a table, at least */
    LEVEL = 8,        /* words of a prefix in which a logger names its level */
    LABEL_BEFORE = 4, /* so far off a word that says what a size is stands before it, */
    LABEL_BEHIND = 3, /* or behind it */
    BIG = 1 << 20     /* bytes of which a program tells the size */
};

/* Behind a colon or a quotation mark another begins to speak: a person names what a program said.
 */
#define CLAUSE_ENDS ".!?;:`\"'"

/* ---- sentences */
/* Does one of the signs stand between the word before i and the word i, as the end of something: a
 * blank or a quote behind it? "2.5", "f.cu", "you're" and "std::bad" go on. */
static bool ends_before(const frag_message_split_line *read, size_t i, const char *signs)
{
    const frag_message_text *text = read->text;
    for (size_t at = read->words[i - 1].end; at < read->words[i].at; at++) {
        char sign = text->bytes[at];
        bool is_apostrophe = sign == '\'' && at == read->words[i - 1].end &&
                             at + 1 == read->words[i].at &&
                             ((text->marks[at] | text->marks[at + 1]) & FRAG_MESSAGE_WORD) == 0;
        if (is_apostrophe)
            continue;
        bool is_last = (text->marks[at + 1] & FRAG_MESSAGE_WORD) != 0 ||
                       strchr("\"'`)", text->bytes[at + 1]) != NULL;
        if (strchr(signs, sign) != NULL && (is_last || strchr("\"'`", sign) != NULL))
            return true;
    }
    return false;
}

static frag_word_range range_around(const frag_message_split_line *read, size_t i,
                                    const char *signs)
{
    frag_word_range range = {.from = i, .to = i + 1};
    while (range.from > 0 && !ends_before(read, range.from, signs))
        range.from--;
    while (range.to < read->count && !ends_before(read, range.to, signs))
        range.to++;
    return range;
}

static frag_word_range near(frag_word_range sentence, size_t i)
{
    size_t from = i > NEAR ? i - NEAR : 0;
    return (frag_word_range){.from = from > sentence.from ? from : sentence.from,
                             .to = i + NEAR + 1 < sentence.to ? i + NEAR + 1 : sentence.to};
}

/* ---- what a sentence is about */
static bool is_negation(const frag_message_split_line *read, size_t i)
{
    static frag_word_list words = {"not",     "cannot",     "unable", "t",    "never", "cant",
                                   "couldnt", "impossible", "doesnt", "isnt", NULL};
    return frag_message_line_is_any(read, i, words);
}

static bool is_memory(const frag_message_split_line *read, size_t i)
{
    static frag_word_list words = {"vram*", "memor*", "hbm*", "heap", "arena", NULL};
    bool is_pool =
        frag_message_line_is(read, i, "pool") && frag_message_line_is(read, i + 1, "size");
    static frag_word_list caches = {"cache", "pool", "block*", "page*", "slot*", NULL};
    bool is_cache =
        frag_message_line_is(read, i, "kv") && frag_message_line_is_any(read, i + 1, caches);
    return (frag_message_line_has(read, i, FRAG_WORD_MEMORY | FRAG_WORD_ALLOCATE) &&
            !frag_message_is_example(read, i)) ||
           is_pool || is_cache || frag_message_line_is_any(read, i, words);
}

static bool is_resource(const frag_message_split_line *read, size_t i)
{
    return frag_message_line_is(read, i, "resource") || frag_message_line_is(read, i, "resources");
}

static bool has_memory(const frag_message_split_line *read, frag_word_range range)
{
    for (size_t i = range.from; i < range.to; i++)
        if (is_memory(read, i))
            return true;
    return false;
}

/* Not "0x80070057": a status or an address. */
static bool has_big_figure(const frag_message_split_line *read, frag_word_range range)
{
    for (size_t i = range.from; i < range.to; i++)
        if (frag_message_line_has(read, i, FRAG_WORD_SIZE | FRAG_WORD_NUMBER) &&
            read->words[i].amount.is_known && read->words[i].amount.bytes >= BIG &&
            strncmp(read->text->bytes + read->words[i].at, "0x", 2) != 0)
            return true;
    return false;
}

/* "Error: ", "[ERROR]" before the word to: a mark, not only a word. */
static bool is_marked(const frag_message_split_line *read, size_t to)
{
    for (size_t i = 0; i < to; i++) {
        const char *behind = read->text->bytes + read->words[i].end;
        if (frag_message_line_has(read, i, FRAG_WORD_ERROR) && *behind != '\0' &&
            strchr(":]", *behind) != NULL)
            return true;
    }
    return false;
}

/* ---- words of scarcity, which need memory beside them */
/* "the merge buffer is too big for this device", "createBuffer failed, size is too large": what is
 * too big stands beside a device. */
static bool is_oversized(const frag_message_split_line *read, size_t i, frag_word_range sentence)
{
    static frag_word_list much = {"large", "big", NULL};
    static frag_word_list units = {"buffer*", "texture*", "image*", "tensor*", "allocation*", NULL};
    static frag_word_list shapes = {"dimension*", "width", "height", "resolution", NULL};
    /* "BufferTooBig(2156988480)": the name of an error */
    bool is_name = i > 0 && read->words[i - 1].end == read->words[i].at &&
                   (read->text->marks[read->words[i].at] & FRAG_MESSAGE_WORD) == 0 &&
                   frag_message_line_is_any(read, i - 1, units) &&
                   has_big_figure(read, (frag_word_range){.from = i, .to = read->count});
    bool is_unit = is_name;
    bool is_device = is_name;
    for (size_t j = sentence.from; j < sentence.to; j++) {
        is_unit |= j < i && frag_message_line_is_any(read, j, units);
        is_device |= frag_message_line_has(read, j, FRAG_WORD_DEVICE);
    }
    return frag_message_line_is(read, i, "too") && frag_message_line_is_any(read, i + 1, much) &&
           is_unit && is_device &&
           (has_big_figure(read, (frag_word_range){.from = 0, .to = read->count}) ||
            ((read->kinds & FRAG_WORD_FAIL) != 0 &&
             !frag_message_line_has_any(read, 0, read->count, shapes)));
}

/* "uses too much memory": it is much, and nothing has failed. */
static bool is_only_used(const frag_message_split_line *read, size_t i)
{
    static frag_word_list uses = {"use", "uses", "used", "using", "usage", "tak*", "consum*", NULL};
    return frag_message_line_has_any(read, i > ARTICLE ? i - 1 - ARTICLE : 0, i, uses) &&
           (read->kinds & (FRAG_WORD_FAIL | FRAG_WORD_ERROR)) == 0;
}

/* "insufficient", "exhausted", "not enough", "too large", "not possible", "no more", "is full" */
static bool is_scarce(const frag_message_split_line *read, size_t i)
{
    static frag_word_list plain = {"insufficient*", "insuficient", "inadequate", "exhaust*",
                                   "deplet*",       "oom",         "shortage",   "shortfall",
                                   "lack",          "lacks",       "lacking",    "overcommit*",
                                   "oversubscri*",  NULL};
    static frag_word_list wanted = {"enough",      "sufficient", "available", "possible", "fit",
                                    "accommodate", "satisf*",    "hold",      "left",     NULL};
    static frag_word_list much = {"large", "big", "small", "little", "much", "low", "high", NULL};
    static frag_word_list queries = {"get", "determine", "query", "read", "retriev*", NULL};
    static frag_word_list faults = {"leak*", "error*", "issue*", "problem*", "corrupt*", NULL};
    static frag_word_list gone = {"more", "free", "available", "memory",
                                  "vram", "room", "space",     NULL};
    if (frag_message_line_is_any(read, i, plain) && !frag_message_line_is_joined(read, i))
        return !frag_message_line_is(read, i, "insufficient") ||
               frag_message_line_has(read, i, FRAG_WORD_LACK);
    bool is_query = frag_message_line_is_any(read, i + 1, queries) &&
                    (frag_message_line_is(read, i + 2, "available") ||
                     frag_message_line_is(read, i + 3, "available"));
    if (is_negation(read, i) && frag_message_line_has_any(read, i + 1, i + 4, wanted))
        return !is_query; /* "could not determine available memory" */
    if (frag_message_line_is(read, i, "too") && frag_message_line_is_any(read, i + 1, much))
        return !is_only_used(read, i);
    if (frag_message_line_is(read, i, "no") && frag_message_line_is_any(read, i + 1, gone))
        return !frag_message_line_has_any(read, i + 2, i + 4, faults);
    /* "KV pool has no pages left" */
    static frag_word_list left = {"left", "available", "remaining", NULL};
    if (frag_message_line_is(read, i, "no") && frag_message_line_is_any(read, i + 2, left))
        return true;
    if (i > 0 && frag_message_line_is(read, i, "low") && is_memory(read, i - 1))
        return is_marked(read, i); /* "Error: GPU memory low" */
    return i > 0 && frag_message_line_is(read, i, "full") &&
           (is_memory(read, i - 1) || frag_message_line_is(read, i - 1, "is"));
}

/* "the adapter does not fit on cuda:0 (0.96 GiB free)", "The model would not fit on the GPU." */
static bool is_unfit(const frag_message_split_line *read, size_t i, frag_word_range sentence)
{
    static frag_word_list cards = {"gpu", "gpus", "card", "device", "vram", NULL};
    return is_negation(read, i) && frag_message_line_is(read, i + 1, "fit") &&
           (frag_message_line_has_within(read, i + 2, sentence.to, FRAG_WORD_DEVICE) ||
            frag_message_line_has_any(read, i + 2, sentence.to, cards)) &&
           (frag_message_line_has_within(read, sentence.from, sentence.to, FRAG_WORD_SIZE) ||
            (read->text->line_count <= ALONE && sentence.from == 0 &&
             frag_message_line_has_any(read, i + 2, sentence.to, cards)));
}

/* "Error: only 0.9 GB free on GPU", "cannot stage it: only 300 MB of device memory left" */
static bool is_only_left(const frag_message_split_line *read, size_t i)
{
    static frag_word_list left = {"free", "available", "left", "remaining", NULL};
    return frag_message_line_is(read, i, "only") &&
           frag_message_line_has(read, i + 1, FRAG_WORD_SIZE) &&
           frag_message_line_has_any(read, i + 2, i + 6, left) &&
           (is_marked(read, i) || frag_message_line_has_within(read, 0, i, FRAG_WORD_FAIL)) &&
           (read->kinds & (FRAG_WORD_DEVICE | FRAG_WORD_MEMORY)) != 0;
}

/* "there is not enough space on the GPU" */
static bool is_without_room(const frag_message_split_line *read, size_t i)
{
    static frag_word_list spaces = {"space", "room", NULL};
    static frag_word_list cards = {"gpu", "gpus", "card", "accelerator", NULL};
    return is_negation(read, i) && frag_message_line_is(read, i + 1, "enough") &&
           frag_message_line_is_any(read, i + 2, spaces) &&
           frag_message_line_has_any(read, i + 3, i + 3 + ARTICLE, cards);
}

/* "out of memory", "ran out of it", but not "swapped out of memory" */
static bool is_out(const frag_message_split_line *read, size_t i)
{
    static frag_word_list motions = {"in",     "swap*",     "mov*",  "cop*",   "read",
                                     "load*",  "tak*",      "pag*",  "evict*", "fetch*",
                                     "served", "allocated", "going", NULL};
    if (!frag_message_line_is(read, i, "out") || !frag_message_line_is(read, i + 1, "of") ||
        frag_message_is_pool_name(read, i + 2) || frag_message_line_is_any(read, i - 1, motions))
        return false;
    for (size_t j = i + 2; j < i + 2 + OBJECT; j++)
        if (is_memory(read, j) || is_resource(read, j))
            return true;
    return false;
}

/* "Resource exhausted" */
static bool is_spent(const frag_message_split_line *read, size_t i)
{
    static frag_word_list spent = {"exhaust*", NULL};
    /* of a service on a network, which says so, too */
    static const char *const services[] = {"quota",       "ratelimit",       "429",
                                           "largerthanm", "toomanyrequests", NULL};
    return i > 0 && frag_message_line_is_any(read, i, spent) && is_resource(read, i - 1) &&
           !frag_message_stands_near(read->text, read->words[i].at, services);
}

/* "pool size exceeded", "exceeds the limit", "limit reached" */
static bool is_over(const frag_message_split_line *read, size_t i)
{
    static frag_word_list limits = {"limit*",  "quota", "budget", "capacity",
                                    "maximum", "cap",   NULL};
    static frag_word_list ends = {"reached", "hit", NULL};
    static frag_word_list excess = {"exceed*", NULL};
    bool is_denied = i > 0 && is_negation(read, i - 1);
    bool is_reached = frag_message_line_is_any(read, i, ends) &&
                      frag_message_line_has_any(read, i + 1, i + 4, limits);
    return !is_denied && (is_reached || frag_message_line_is_any(read, i, excess) ||
                          (frag_message_line_is_any(read, i, limits) &&
                           frag_message_line_has_any(read, i + 1, i + 4, ends)));
}

/* "is larger than the available memory (1 GiB)", "free memory is less than" */
static bool is_compared(const frag_message_split_line *read, size_t i)
{
    static frag_word_list words = {"less",   "lower",   "smaller", "fewer",  "larger",
                                   "bigger", "greater", "more",    "higher", NULL};
    static frag_word_list owns = {"with", "have", "having", NULL};
    if (frag_message_line_is_any(read, i - 1, owns) &&
        (read->kinds & (FRAG_WORD_FAIL | FRAG_WORD_ERROR)) == 0)
        return false; /* "on cards with less than 4 GB" */
    return frag_message_line_is(read, i, "beyond") ||
           (frag_message_line_is_any(read, i, words) && frag_message_line_is(read, i + 1, "than"));
}

/* "size (3414061312) is larger than the maximum buffer size (2147483648)" */
static bool is_beyond_maximum(const frag_message_split_line *read, size_t i,
                              frag_word_range sentence)
{
    frag_word_range before = {.from = sentence.from, .to = i};
    frag_word_range behind = {.from = i, .to = sentence.to};
    return is_compared(read, i) && has_big_figure(read, before) && has_big_figure(read, behind) &&
           frag_message_line_has_within(read, sentence.from, sentence.to, FRAG_WORD_UNIT);
}

/* "memory cannot be allocated on the GPU" */
static bool is_unallocated(const frag_message_split_line *read, size_t i, frag_word_range around)
{
    return is_negation(read, i) && frag_message_line_is(read, i + 1, "be") &&
           frag_message_line_is(read, i + 2, "allocated") && has_memory(read, around);
}

/* "newLength: 2248163328 must not exceed 256 MB": and it does */
static bool is_forbidden(const frag_message_split_line *read, size_t i)
{
    return i > 2 && frag_message_line_is(read, i, "exceed") && is_negation(read, i - 1) &&
           frag_message_line_is(read, i - 2, "must") &&
           frag_message_line_has(read, i + 1, FRAG_WORD_SIZE | FRAG_WORD_NUMBER) &&
           read->words[i - 3].amount.bytes >= BIG &&
           read->words[i - 3].amount.bytes > read->words[i + 1].amount.bytes;
}

/* ---- words of failing, which need an allocation beside them */
static bool has_allocation(const frag_message_split_line *read, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (frag_message_line_has(read, i, FRAG_WORD_ALLOCATE) && !frag_message_is_example(read, i))
            return true;
    return false;
}

/* "GPU 0: request of 2048MiB refused" */
static bool is_request(const frag_message_split_line *read, frag_word_range around)
{
    for (size_t i = around.from; i < around.to; i++)
        if (frag_message_line_is(read, i, "request") &&
            frag_message_line_has_within(read, i + 1, i + 4, FRAG_WORD_SIZE))
            return (read->kinds & FRAG_WORD_DEVICE) != 0;
    return false;
}

/* "cannot allocate", "allocation was refused", "Error allocating" */
static bool is_failing(const frag_message_split_line *read, size_t i, frag_word_range around)
{
    static frag_word_list words = {"refused", "rejected", "denied", "impossible", "unsuccessful",
                                   "bad",     "null",     "nil",    "nullptr",    NULL};
    static frag_word_list compared = {"within", "equal", "close", "between", "same", NULL};
    bool is_contrast = i > 0 && read->text->bytes[read->words[i - 1].end] == ',';
    bool is_wanted = frag_message_line_is(read, i - 1, "to"); /* "so as to not allocate" */
    if (frag_message_line_is(read, i, "not") && /* "the precision, not allocated memory" */
        (is_contrast || is_wanted || frag_message_line_is_any(read, i + 1, compared)))
        return false;
    if (frag_message_line_has(read, i, FRAG_WORD_ERROR))
        return has_allocation(read, i > 0 ? i - 1 : 0, i + 1 + ARTICLE);
    return (frag_message_line_has(read, i, FRAG_WORD_FAIL) || is_negation(read, i) ||
            frag_message_line_is_any(read, i, words)) &&
           (has_allocation(read, around.from, around.to) || is_request(read, around));
}

/* "Maximum variable size allowed on the device is exceeded" */
static bool is_device_size_over(const frag_message_split_line *read, size_t i,
                                frag_word_range sentence)
{
    static frag_word_list sizes = {"size", "bytes", NULL};
    static frag_word_list devices = {"device", "gpu", "card", NULL};
    return is_over(read, i) && frag_message_line_has_any(read, sentence.from, sentence.to, sizes) &&
           frag_message_line_has_any(read, sentence.from, sentence.to, devices);
}

/* "failed to get memory buffer", but not "failed to get memory info" */
static bool is_not_got(const frag_message_split_line *read, size_t i)
{
    static frag_word_list gets = {"get", "obtain", "acquire", "grab", "reserve", "find", NULL};
    static frag_word_list facts = {"usage",     "info*",   "stat*", "temp*",  "clock*",
                                   "bandwidth", "map*",    "page*", "handle", "address",
                                   "budget",    "region*", "type*", NULL};
    bool is_failing = frag_message_line_has(read, i, FRAG_WORD_FAIL) || is_negation(read, i);
    for (size_t j = i + 1; is_failing && j < i + 4; j++)
        for (size_t k = j + 1; frag_message_line_is_any(read, j, gets) && k < j + 4; k++)
            if (frag_message_line_has(read, k, FRAG_WORD_MEMORY))
                return !frag_message_line_has_any(read, k + 1, k + 3, facts);
    return false;
}

/* "RuntimeError: nrt_load_collectives status=4 message="Allocation Failure"" */
static bool is_bare_failure(const frag_message_split_line *read, size_t i)
{
    static frag_word_list words = {"refused", "rejected", "denied", NULL};
    return frag_message_line_has(read, i, FRAG_WORD_ALLOCATE) && is_marked(read, read->count) &&
           (frag_message_line_has(read, i + 1, FRAG_WORD_FAIL) ||
            frag_message_line_is_any(read, i + 1, words));
}

/* "Can't create buffer of size: 26357760": so large that only memory can be missing. */
static bool is_unmade(const frag_message_split_line *read, size_t i, frag_word_range around)
{
    static frag_word_list makes = {"creat*", "make",   "grow*", "resiz*", "reserv*",
                                   "get",    "obtain", "new",   NULL};
    static frag_word_list things = {"buffer*", "texture*", "image*",  "tensor*", "surface*",
                                    "heap*",   "pool",     "memory*", "array*",  NULL};
    /* "glBufferData failed (536870912 bytes)" */
    static frag_word_list contents = {"data", "storage", "image", NULL};
    /* "newBufferWithLength returned nil" */
    static frag_word_list nulls = {"nil", "null", "nullptr", NULL};
    static frag_word_list news = {"new", "make", NULL};
    for (size_t j = around.from; j + 1 < i && frag_message_line_is_any(read, i, nulls); j++)
        if (frag_message_line_is_any(read, j, news) &&
            read->words[j].end == read->words[j + 1].at &&
            frag_message_line_is_any(read, j + 1, things))
            return true;
    bool is_made = frag_message_line_has_any(read, around.from, around.to, makes);
    for (size_t j = around.from; j < around.to; j++)
        is_made |= frag_message_line_is(read, j, "gl") &&
                   frag_message_line_has_any(read, j + 1, j + 4, contents);
    bool is_failed = frag_message_line_has(read, i, FRAG_WORD_FAIL) ||
                     (is_negation(read, i) && !frag_message_line_is(read, i, "never"));
    return is_failed && is_made &&
           frag_message_line_has_any(read, around.from, around.to, things) &&
           has_big_figure(read, around);
}

/* ---- sizes that contradict */
typedef enum size_role { ROLE_NONE, ROLE_NEED, ROLE_HAVE } size_role;

static size_role role_of_word(const frag_message_split_line *read, size_t i)
{
    static frag_word_list needs = {"need*",   "requir*", "request*", "want*",
                                   "demand*", "asked",   "asks",     NULL};
    static frag_word_list haves = {"offer*",    "provid*", "has",     "have",      "only",
                                   "available", "avail",   "free",    "remaining", "total",
                                   "capacity",  "got",     "granted", "received",  NULL};
    static frag_word_list limits = {"limit", "allowed", "budget", NULL};
    bool is_limit = (read->kinds & (FRAG_WORD_DEVICE | FRAG_WORD_MEMORY)) != 0 &&
                    frag_message_line_is_any(read, i, limits);
    return frag_message_line_is_any(read, i, needs)               ? ROLE_NEED
           : is_limit || frag_message_line_is_any(read, i, haves) ? ROLE_HAVE
                                                                  : ROLE_NONE;
}

/* "needs 5 GB", "free: 5 GB", "5 GB available" */
static size_role role_of_size(const frag_message_split_line *read, size_t size)
{
    /* "3 GB free, 8 GB required": the label before a comma is that of the size before it */
    bool is_listed = size > 0 && read->text->bytes[read->words[size - 1].end] == ',';
    for (size_t i = size; !is_listed && i > 0 && i + LABEL_BEFORE > size; i--) {
        size_role role = role_of_word(read, i - 1);
        if (role != ROLE_NONE)
            return role;
    }
    for (size_t i = size + 1; i < read->count && i <= size + LABEL_BEHIND; i++) {
        size_role role = role_of_word(read, i);
        if (role != ROLE_NONE)
            return role;
    }
    return ROLE_NONE;
}

/* "needs 18.4 GB but the GPU only has 12 GB": do the sizes of the sentence say so, and is i the
 * first of them? */
static bool falls_short(const frag_message_split_line *read, size_t i, frag_word_range sentence)
{
    static frag_word_list others = {"disk", "storage", "download",   "directory", "partition",
                                    "if",   "minimum", "recommend*", NULL};
    uint64_t need = 0;
    uint64_t have = UINT64_MAX;
    bool is_first = frag_message_line_has(read, i, FRAG_WORD_SIZE);
    for (size_t j = sentence.from; j < i && is_first; j++)
        is_first = !frag_message_line_has(read, j, FRAG_WORD_SIZE);
    /* A log that names both goes on with less. */
    static frag_word_list only = {"only", NULL};
    static frag_word_list contrasts = {"but", "only", "have", "has", "needs", NULL};
    bool is_contrast =
        (read->kinds & (FRAG_WORD_FAIL | FRAG_WORD_ERROR | FRAG_WORD_LACK | FRAG_WORD_EXCEED)) !=
            0 ||
        frag_message_line_has_any(read, 0, read->count, contrasts) || read->text->line_count == 1;
    if (!is_first || !is_contrast || frag_message_line_has_any(read, 0, read->count, others))
        return false;
    /* "Insufficient space: 48 GB needed, only 31 GB free": of a disk */
    static frag_word_list spaces = {"space", NULL};
    if ((read->kinds & (FRAG_WORD_DEVICE | FRAG_WORD_MEMORY | FRAG_WORD_UNIT)) == 0 &&
        frag_message_line_has_any(read, 0, i, spaces))
        return false;
    /* "needs at least 64 GB" is a page's; "has only 8 GB, needs at least 64 GB" is not */
    bool is_told = frag_message_line_has_any(read, 0, read->count, only) ||
                   (read->kinds & FRAG_WORD_ERROR) != 0;
    for (size_t j = 0; j < read->count; j++)
        if ((frag_message_line_is(read, j, "at") && frag_message_line_is(read, j + 1, "least") &&
             !is_told) ||
            (frag_message_line_is(read, j, "space") &&
             read->text->bytes[read->words[j + 1 < read->count ? j + 1 : j].end] == '/'))
            return false;
    for (size_t j = i; j < read->count; j++) {
        /* "request 96 MiB, got 0" */
        bool is_nothing = frag_message_line_has(read, j, FRAG_WORD_NUMBER) &&
                          read->words[j].amount.bytes == 0 &&
                          role_of_word(read, j - 1) == ROLE_HAVE;
        if ((!frag_message_line_has(read, j, FRAG_WORD_SIZE) && !is_nothing) ||
            !read->words[j].amount.is_known)
            continue;
        size_role role = is_nothing ? ROLE_HAVE : role_of_size(read, j);
        uint64_t bytes = read->words[j].amount.bytes;
        need = role == ROLE_NEED && bytes > need ? bytes : need;
        have = role == ROLE_HAVE && bytes < have ? bytes : have;
    }
    return need > have && need >= BIG;
}

/* "VRAM preflight failed\n  required: 25 GB\n  budget: 21 GB": do the lines below say so? */
static bool falls_short_below(const frag_message_split_line *read, size_t i)
{
    static frag_word_list needs = {"requir*", "needed", "need", "needs", "request*", NULL};
    static frag_word_list haves = {"available", "free", "budget", "limit", NULL};
    const frag_message_text *text = read->text;
    if (!frag_message_line_has(read, i, FRAG_WORD_FAIL) || (read->kinds & FRAG_WORD_MEMORY) == 0)
        return false;
    uint64_t need = 0;
    uint64_t have = UINT64_MAX;
    size_t end = frag_message_text_line_end(text, read->words[i].at, NEAR * NEAR);
    for (size_t line = 0; line < NEAR && text->bytes[end] == '\n'; line++) {
        frag_message_split_line below;
        size_t from = end + 1;
        end = frag_message_text_line_end(text, from, NEAR * NEAR);
        frag_message_line_read(&below, text, from, end);
        for (size_t j = 1; j < below.count && j <= ARTICLE; j++) {
            uint64_t bytes = below.words[j].amount.bytes;
            if (!frag_message_line_has(&below, j, FRAG_WORD_SIZE) ||
                !below.words[j].amount.is_known)
                continue;
            if (frag_message_line_has_any(&below, 0, j, needs))
                need = bytes > need ? bytes : need;
            else if (frag_message_line_has_any(&below, 0, j, haves))
                have = bytes < have ? bytes : have;
        }
    }
    return need > have && need >= BIG;
}

/* ---- memory that a program was not given */
static bool is_refused(const frag_message_split_line *read, size_t i)
{
    static frag_word_list words = {"refused", "denied", "rejected", "not", "t", "couldnt", NULL};
    return frag_message_line_has(read, i, FRAG_WORD_FAIL) ||
           frag_message_line_is_any(read, i, words);
}

/* What is done with memory that is there. */
static bool has_other_act(const frag_message_split_line *read, frag_word_range range)
{
    static frag_word_list acts = {
        "read*",   "writ*",  "copy*",  "copie*", "memcpy", "free",     "freed",   "freeing",
        "releas*", "unmap*", "query*", "info*",  "access", "accesses", "regist*", "import*",
        "export*", "share*", "clock*", "test*",  "check*", "type*",    "stat*",   "usage",
        "leak*",   "load*",  "open*",  "handle", "props",  "propert*", "address", NULL};
    return frag_message_line_has_any(read, range.from, range.to, acts);
}

static bool is_enomem(const frag_message_split_line *read, size_t i)
{
    return frag_message_line_is(read, i, "enomem") &&
           (read->kinds & (FRAG_WORD_FAIL | FRAG_WORD_ERROR)) != 0;
}

/* "unable to commit 268435456 bytes of GPU memory", "memory request of 5 GB denied", "-ENOMEM" */
static bool is_unserved(const frag_message_split_line *read, size_t i, frag_word_range sentence)
{
    static frag_word_list makes = {"get",      "obtain*", "acquir*", "grab*", "find",
                                   "request*", "creat*",  "hold",    "plac*", "pin",
                                   "lock",     "map",     "mapp*",   "bind",  NULL};
    static frag_word_list gives = {"commit*", "grow*",   "extend*", "expand*", "secur*",
                                   "provid*", "satisf*", "fulfil*", "mmap",    "reserv*",
                                   "resiz*",  "serve",   NULL};
    static frag_word_list pools = {"vram*", "memor*", "hbm*", "allocator", "enomem", NULL};
    static frag_word_list stores = {"buffer*", "pool", "heap", "arena", NULL};
    size_t from = i > NEAR ? i - NEAR : 0;
    frag_word_range around = {.from = from > sentence.from ? from : sentence.from,
                              .to = i + NEAR + 1 < sentence.to ? i + NEAR + 1 : sentence.to};
    if (is_enomem(read, i))
        return true;
    if (!is_refused(read, i) || has_other_act(read, around))
        return false;
    bool has_memory =
        frag_message_line_has_within(read, around.from, around.to, FRAG_WORD_MEMORY) ||
        frag_message_line_has_any(read, around.from, around.to, pools);
    bool is_given = frag_message_line_has_any(read, around.from, around.to, gives);
    for (size_t j = around.from; j < around.to && is_given; j++) /* "failed to grow GPU buffer" */
        has_memory |= frag_message_line_has(read, j, FRAG_WORD_DEVICE) &&
                      frag_message_line_is_any(read, j + 1, stores);
    bool is_made = frag_message_line_has_any(read, around.from, around.to, makes);
    bool is_about = (read->kinds & FRAG_WORD_DEVICE) != 0;
    return has_memory && ((is_given && (is_about || has_big_figure(read, sentence))) ||
                          (is_made && has_big_figure(read, sentence)));
}

/* ---- what else a line may be */
/* A heading of advice, and what belongs to a program's text, not to its run. */
static bool is_documentation(const frag_message_split_line *read)
{
    static frag_word_list words = {"troubleshooting", "faq",      "tips",       "known",
                                   "cause",           "causes",   "undeclared", "undefined",
                                   "identifier",      "argument", "attribute",  "assert",
                                   "condition",       "guide",    "solution*",  NULL};
    for (size_t i = 0; i < read->count; i++)
        if (frag_message_line_is(read, i, "assertion") &&
            !frag_message_line_is(read, i + 1, "error") && /* the name of an exception of Python */
            !is_unmade(read, i + 1, (frag_word_range){i + 2, read->count}))
            return true;
    return frag_message_line_has_any(read, 0, read->count, words);
}

/* "[info] reached memory limit while trying to allocate 414853888 bytes": all that an error says */
static bool is_full_report(const frag_message_split_line *read)
{
    static frag_word_list ends = {"reached", "exceeded", "exhausted", "failed", NULL};
    return (read->kinds & FRAG_WORD_ALLOCATE) != 0 && (read->kinds & FRAG_WORD_DEVICE) != 0 &&
           frag_message_line_has_any(read, 0, read->count, ends) &&
           has_big_figure(read, (frag_word_range){.from = 0, .to = read->count});
}

/* "INFO: some tactics lack memory" */
static bool is_remark(const frag_message_split_line *read)
{
    static frag_word_list levels = {"info", "debug", "trace", "verbose", "note", NULL};
    for (size_t i = 0; i < LEVEL && i < read->count; i++) {
        /* no part of a name: "pCreateInfo" */
        const frag_message_word *word = &read->words[i];
        bool is_whole = word->at == 0 || (read->text->marks[word->at] & FRAG_MESSAGE_WORD) != 0 ||
                        strchr("[(|<", read->text->bytes[word->at - 1]) != NULL;
        if (is_whole && frag_message_line_is_any(read, i, levels))
            return (read->kinds & FRAG_WORD_ERROR) == 0 && !is_full_report(read);
    }
    return false;
}

/* "AirLLM activates when:\n- Model size exceeds ...": of a list, or a heading, a comment. */
static bool is_of_page(const frag_message_split_line *read, size_t failure)
{
    const frag_message_text *text = read->text;
    size_t start = frag_message_text_line_start(text, read->words[0].at);
    char first = text->bytes[start];
    bool is_below = start > 1 && text->bytes[start - 2] == ':';
    if (first == '#' || (first == FRAG_MESSAGE_FOREIGN && is_below))
        return (read->kinds & FRAG_WORD_ERROR) == 0;
    if (!frag_message_is_item(read))
        return false;
    /* "- Device #1: not enough memory", and "**Cause:** too little memory" */
    bool is_bold = strncmp(text->bytes + start, "**", 2) == 0;
    size_t end = frag_message_text_line_end(text, start, NEAR * NEAR);
    bool is_closed = false;
    bool is_named = is_bold;
    for (size_t at = start + 2; at < end; at++) {
        is_closed |= is_bold && strncmp(text->bytes + at, "**", 2) == 0;
        is_named |= at < read->words[failure].at && text->bytes[at] == ':';
    }
    return is_below || is_closed || !is_named;
}

/* "pCreateInfo->size (3414061312) is larger": an expression in a message, with its value */
static bool is_code(const frag_message_split_line *read)
{
    const frag_message_text *text = read->text;
    if (!frag_message_is_source(read))
        return false;
    size_t end = frag_message_text_line_end(text, read->words[read->count - 1].at, NEAR * NEAR);
    bool is_ended = strchr(";{", text->bytes[end - 1]) != NULL;
    return is_ended || !has_big_figure(read, (frag_word_range){.from = 0, .to = read->count});
}

static bool is_aside(const frag_message_split_line *read)
{
    if ((read->kinds & FRAG_WORD_CODE) != 0 || frag_message_is_other(read) ||
        frag_message_is_of_system(read) || frag_message_has_placeholder(read) || is_remark(read) ||
        is_documentation(read))
        return true;
    return (!is_marked(read, read->count) && (frag_message_is_table_row(read) || is_code(read) ||
                                              frag_message_is_statement(read))) ||
           (frag_message_is_question(read) &&
            !(is_marked(read, read->count) && (read->kinds & FRAG_WORD_SIZE) != 0));
}

/* "if", "may", "when ... is" */
static bool is_condition(const frag_message_split_line *read, size_t i)
{
    static frag_word_list words = {"if",     "maybe",     "may",     "might",     "whenever",
                                   "until",  "often",     "depends", "sometimes", "usually",
                                   "likely", "typically", "issue*",  "normally",  NULL};
    bool is_can =
        (frag_message_line_is(read, i, "can") || frag_message_line_is(read, i, "could")) &&
        !is_negation(read, i + 1);
    bool is_even = frag_message_line_is(read, i - 1, "even"); /* "even if I reboot" */
    return is_can || (frag_message_line_is(read, i, "when") && !frag_message_is_doing(read, i)) ||
           (frag_message_line_is_any(read, i, words) && !is_even);
}

/* What may happen, what to do about it, what somebody thinks. Advice that follows the failure makes
 * it no less real: "out of memory, please reduce the batch size". */
static bool is_supposed(const frag_message_split_line *read, size_t failure)
{
    frag_word_range clause = range_around(read, failure, CLAUSE_ENDS);
    /* "Out of memory: this happens when ..." */
    if (clause.to < read->count && !is_marked(read, failure) && ends_before(read, clause.to, ":"))
        clause.to = range_around(read, clause.to, CLAUSE_ENDS).to;
    for (size_t i = clause.from; i < failure; i++) /* "if it has 30, but memory is short" */
        clause.from = frag_message_line_is(read, i, "but") ? i : clause.from;
    static frag_word_list words = {
        "should",   "avoid*",   "prevent*", "unless",   "whether", "how",     "why",
        "what",     "possibly", "example",  "consider", "try",     "without", "please",
        "help",     "perhaps",  "such",     "fix",      "before",  "detect*", "never",
        "probably", "question", "hello",    "i",        "we",      "my",      "our",
        "handle*",  "handling", "ll",       "will",     "careful", NULL};
    for (size_t i = clause.from; i < clause.to; i++) {
        bool is_that =
            frag_message_line_is(read, i, "that") &&
            (frag_message_line_has(read, i + 1, FRAG_WORD_FAIL) ||
             frag_message_line_is(read, i + 1, "does") || frag_message_line_is(read, i + 1, "do"));
        /* "failed when mapped": what it was doing, where a mark says that it happened */
        bool is_circumstance =
            i > failure && frag_message_line_is(read, i, "when") && is_marked(read, failure);
        if ((is_condition(read, i) && !is_circumstance) ||
            (i < failure && !frag_message_is_reason(read, i) &&
             (is_that || frag_message_line_is_any(read, i, words))))
            return true;
    }
    return false;
}

/* "46 GPU OOM, 65 cuts", "0 done, 2 out of memory", but not "4090, out of memory", "GPU 0 out of
 * memory", "720p" */
static bool is_counted(const frag_message_split_line *read, size_t i)
{
    static frag_word_list statuses = {"returns", "returned", "status",
                                      "code",    "http",     NULL}; /* "returns 500" */
    const frag_message_text *text = read->text;
    for (size_t j = i; j > 0 && j + 2 > i; j--) {
        size_t end = read->words[j - 1].end;
        char behind = text->bytes[end];
        bool is_counting =
            frag_message_line_has(read, j - 1, FRAG_WORD_NUMBER) &&
            !frag_message_line_has(read, j, FRAG_WORD_SIZE) && /* "3090 24g" */
            (j < 2 || !(frag_message_line_has(read, j - 2, FRAG_WORD_DEVICE) ||
                        frag_message_line_is_any(read, j - 2, statuses))) &&
            strchr(j == i ? ":])," : ":])", behind) == NULL &&
            (behind < 'a' || behind > 'z' || (text->marks[end] & FRAG_MESSAGE_WORD) != 0);
        for (size_t at = end; at < read->words[i].at; at++)
            is_counting &=
                text->bytes[at] != FRAG_MESSAGE_FOREIGN && (j == i || text->bytes[at] != ',');
        if (is_counting)
            return true;
    }
    return false;
}

/* "the dreaded out of memory error", "OutOfMemoryError" alone */
static bool is_mentioned(const frag_message_split_line *read, size_t i)
{
    static frag_word_list articles = {"the", "a", "an", "any", "this", "that", "those", NULL};
    static frag_word_list events = {"occurred", "happened", "was",    "encounter*", "raised",
                                    "thrown",   "caught",   "hit",    "got",        "reported",
                                    "during",   "while",    "failed", NULL};
    const frag_message_text *text = read->text;
    size_t start = frag_message_text_line_start(text, read->words[i].at);
    size_t end = frag_message_text_line_end(text, read->words[i].at, NEAR * NEAR);
    bool is_token = text->line_count > ALONE || !frag_message_line_is(read, i + 2, "vram");
    for (size_t at = start + 1; at < end && is_token; at++)
        is_token = (text->marks[at] & FRAG_MESSAGE_WORD) == 0 &&
                   text->bytes[at] != FRAG_MESSAGE_FOREIGN; /* a script without blanks */
    size_t before = i > ARTICLE ? i - ARTICLE : 0;
    bool has_article = false;
    for (size_t j = before; j < i; j++) /* "30B-A3B" is a name */
        has_article |= frag_message_line_is_any(read, j, articles) &&
                       !frag_message_line_has(read, j + 1, FRAG_WORD_NUMBER) && /* "a 1650: OOM" */
                       (j == 0 || text->bytes[read->words[j].at - 1] != '-');
    bool is_event = frag_message_line_has_any(read, 0, read->count, events);
    bool is_killer = frag_message_line_is(read, i + 1, "killer"); /* of the computer's system */
    return is_token || is_killer || (has_article && !is_event) ||
           (!is_marked(read, read->count) && is_counted(read, i));
}

/* "Is this caused by insufficient memory?", but not "memory is not enough, how do I mend it?" */
static bool is_asked(const frag_message_split_line *read, size_t i)
{
    static frag_word_list questions = {"how", "what", "why", NULL};
    for (size_t j = i + 1; j < range_around(read, i, CLAUSE_ENDS).to; j++)
        if (read->text->bytes[read->words[j - 1].end] == ',' &&
            frag_message_line_is_any(read, j, questions))
            return false;
    size_t last = range_around(read, i, CLAUSE_ENDS).to - 1;
    const char *behind = read->text->bytes + read->words[last].end;
    return behind[strspn(behind, "\"'`)")] == '?' && !is_marked(read, read->count);
}

/* In a long text only what is about a device: manuals and sources speak of memory everywhere. */
static bool is_at_home(const frag_message_split_line *read, size_t i)
{
    return read->text->line_count <= SHORT || (read->kinds & FRAG_WORD_DEVICE) != 0 ||
           frag_message_is_about_device(read->text, read->words[i].at);
}

/* ---- one line */
/* Does the line speak of memory at all, or of what is in it? */
static bool has_topic(const frag_message_split_line *read)
{
    const uint32_t topics =
        FRAG_WORD_MEMORY | FRAG_WORD_ALLOCATE | FRAG_WORD_DEVICE | FRAG_WORD_UNIT | FRAG_WORD_SIZE;
    for (size_t i = 0; i < read->count; i++)
        if (frag_message_line_has(read, i, topics) || is_memory(read, i) || is_resource(read, i) ||
            frag_message_is_status_number(read, i))
            return true;
    return frag_message_is_title(read) ||
           frag_message_is_lost_work(read); /* "OOM on batch 12, skipping" */
}

/* A word that may tell a failure, before the rules are asked in turn. */
static bool is_candidate(const frag_message_split_line *read, size_t i)
{
    static frag_word_list words = {
        "out*",     "only",    "low",      "too",     "no",      "full",    "ran",     "limit*",
        "quota",    "budget",  "cap*",     "max*",    "less",    "lower",   "smaller", "fewer",
        "higher",   "refused", "rejected", "denied",  "unsucc*", "bad",     "null",    "inadequ*",
        "insuf*",   "deplet*", "short*",   "reached", "hit",     "lacking", "overco*", "oversub*",
        "exhaust*", "nomem",   "cant",     "never",   "couldnt", "doesnt",  "isnt",    "not",
        "t",        "imposs*", "nil",      "nullptr", "enomem",  NULL};
    const uint32_t failing = FRAG_WORD_FAIL | FRAG_WORD_ERROR | FRAG_WORD_LACK | FRAG_WORD_EXCEED |
                             FRAG_WORD_ALLOCATE | FRAG_WORD_MEMORY | FRAG_WORD_NUMBER |
                             FRAG_WORD_SIZE;
    return frag_message_line_has(read, i, failing) || frag_message_line_is_any(read, i, words);
}

/* "Error allocating even gauge field": nothing else is said */
static bool is_begun(const frag_message_split_line *read, size_t i)
{
    return i == 0 && read->text->line_count <= ALONE &&
           frag_message_line_has(read, i, FRAG_WORD_ERROR) &&
           frag_message_line_is(read, i + 1, "allocating");
}

/* "tries to allocate more memory than the available size" */
static bool is_beyond_available(const frag_message_split_line *read, size_t i)
{
    static frag_word_list haves = {"available", "has", "have", NULL};
    size_t from = i > ARTICLE ? i - ARTICLE : 0;
    if (!frag_message_line_is(read, i, "more") || !has_allocation(read, from, i) ||
        !frag_message_line_has_within(read, i + 1, i + ARTICLE, FRAG_WORD_MEMORY))
        return false;
    for (size_t j = i + 2; j < i + NEAR; j++)
        if (frag_message_line_is(read, j, "than"))
            return frag_message_line_has_any(read, j + 1, j + OBJECT, haves);
    return false;
}

static bool is_told_at(const frag_message_split_line *read, size_t i)
{
    frag_word_range sentence = range_around(read, i, ".?;");
    /* "Attempting to allocate 1.2G. That was not possible." */
    if (frag_message_line_is(read, sentence.from, "that") ||
        frag_message_line_is(read, sentence.from, "this"))
        sentence.from = 0;
    frag_word_range around = near(sentence, i);
    bool is_about = (read->kinds & (FRAG_WORD_DEVICE | FRAG_WORD_MEMORY | FRAG_WORD_SIZE)) != 0 ||
                    has_big_figure(read, sentence);
    /* "Strategy allocation limit exceeded": of money */
    bool is_counted = is_about || !has_allocation(read, around.from, around.to);
    return is_out(read, i) || frag_message_is_out_of(read, i) || is_spent(read, i) ||
           frag_message_is_status_number(read, i) || falls_short(read, i, sentence) ||
           falls_short_below(read, i) || is_unserved(read, i, sentence) ||
           ((is_scarce(read, i) || (is_over(read, i) && is_counted)) && has_memory(read, around)) ||
           (is_compared(read, i) && has_memory(read, around) && has_big_figure(read, sentence)) ||
           is_oversized(read, i, sentence) || is_unmade(read, i, around) ||
           is_beyond_maximum(read, i, sentence) || is_forbidden(read, i) ||
           is_unallocated(read, i, around) || is_only_left(read, i) ||
           is_device_size_over(read, i, sentence) || is_without_room(read, i) ||
           is_beyond_available(read, i) || is_unfit(read, i, sentence) || is_not_got(read, i) ||
           is_bare_failure(read, i) ||
           ((is_about || is_begun(read, i)) && is_failing(read, i, around));
}

/* "policy   peak reserved   utilisation   OOM": of a table */
static bool is_heading(const frag_message_split_line *read, size_t i)
{
    if (i + 1 < read->count || read->count < COLUMNS ||
        (read->kinds & (FRAG_WORD_ERROR | FRAG_WORD_FAIL)) != 0)
        return false;
    for (size_t at = read->words[0].at; at < read->words[i].end; at++)
        if (strchr("0123456789:.,;!()[]{}<>=\"'", read->text->bytes[at]) != NULL)
            return false;
    return true;
}

frag_message_failure frag_message_presume(const frag_message_split_line *read)
{
    frag_message_failure found = {.is_name = false};
    if (!has_topic(read) || is_aside(read))
        return found;
    for (size_t i = 0; i < read->count; i++) {
        if (!is_candidate(read, i) || frag_message_is_of_test(read, i) ||
            frag_message_is_of_trace(read, i))
            continue;
        bool is_name = frag_message_is_out_of(read, i);
        if (is_told_at(read, i) && !is_supposed(read, i) && !(is_name && is_mentioned(read, i)) &&
            !(is_name && is_heading(read, i)) && !is_asked(read, i) &&
            !frag_message_is_narrated(read, i) && !is_of_page(read, i) && is_at_home(read, i))
            return (frag_message_failure){.is_found = true, .is_name = is_name, .at = i};
    }
    return found;
}
