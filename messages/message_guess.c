#include "messages/message_guess.h"

#include <string.h>

#include "messages/message_aside.h"
#include "messages/message_failure.h"
#include "messages/message_form.h"
#include "messages/message_line.h"
#include "messages/message_presume.h"
#include "messages/message_words.h"

enum {
    BEFORE = 160,    /* of a long line so much before a hint is read, */
    BEHIND = 240,    /* and so much behind it */
    OVERLAP = 24,    /* of two pieces of one line */
    NAME = 4,        /* words of the name of an error */
    PREFIX = 3,      /* words between the sign that ends a prefix and the failure */
    BIT = 9,         /* words that explain a name, behind it */
    SHORT = 5,       /* a paste of so few lines is the message itself */
    LETTER = 12,     /* of so few lines what a person writes */
    PAGE = 1000,     /* bytes before and behind a line show what it stands in: */
    PAGE_WORDS = 60, /* of so many words */
    PAGE_SHARE = 5,  /* one in so many small ones is a page of sentences, */
    TALK_WORDS = 20, /* and of so many words */
    TALK_SHARE = 3,  /* one in so many is what a person says */
    REACH = 10,      /* words from what happened to the memory that ran out, */
    MEMORY = 3,      /* words of what ran out, */
    TAIL = 8,        /* and words behind it that may tell whose it is */
};

/* ---- where a line may speak of memory */
static const char *const hints[] = {"memor",  "alloc",  "vram",     "oom",        "hbm",
                                    "gmem",   "buffer", "heap",     "outofmem",   "nomem",
                                    "no_mem", "of_mem", "8007000e", "2147024882", "8876017c"};

static bool is_hint(const char *text)
{
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (text[0] == hints[i][0] && text[1] == hints[i][1] &&
            strncmp(text, hints[i], strlen(hints[i])) == 0)
            return true;
    return false;
}

/* is_any: anywhere, not only at a hint */
static size_t next_hint(const frag_message_text *text, size_t from, bool is_any)
{
    size_t at = from;
    while (at < text->length && (is_any ? text->bytes[at] == '\n' : !is_hint(text->bytes + at)))
        at++;
    return at;
}

/* "OutOfMemory: often the batch is too large": what a name means, from a page about errors. */
static bool is_explained(const frag_message_split_line *read, size_t at)
{
    static frag_word_list words = {"often", "sometimes", "usually", "typically", NULL};
    return frag_message_line_has_any(read, at, at + BIT, words);
}

/* "The problem may be that the memory is not enough." */
static bool is_possible(const frag_message_split_line *read, size_t to)
{
    static frag_word_list chances = {"may", "might", "could", NULL};
    static frag_word_list causes = {"that", "because", "due", NULL};
    size_t from = to > PREFIX + PREFIX ? to - PREFIX - PREFIX : 0;
    for (size_t i = from; i + 2 < to; i++)
        if (frag_message_line_is_any(read, i, chances) && frag_message_line_is(read, i + 1, "be") &&
            frag_message_line_is_any(read, i + 2, causes))
            return true;
    return false;
}

/* "never had an OOM error", "when VRAM is not enough" */
static bool is_condition(const frag_message_split_line *read, const frag_message_failure *found)
{
    static frag_word_list words = {"when", "if", "whenever", NULL};
    static frag_word_list nevers = {"never", "without", NULL};
    size_t from = found->at > PREFIX ? found->at - PREFIX : 0;
    return frag_message_line_has_any(read, from, found->at, nevers) ||
           is_possible(read, found->at) ||
           (!found->is_name && found->at > 0 &&
            frag_message_line_is_any(read, found->at - 1, words));
}

static bool is_reported(const frag_message_split_line *read, const frag_message_failure *found)
{
    bool has_figure = (read->kinds & (FRAG_WORD_SIZE | FRAG_WORD_NUMBER)) != 0;
    bool is_about = (read->kinds & (FRAG_WORD_DEVICE | FRAG_WORD_UNIT | FRAG_WORD_ERROR)) != 0;
    if ((read->kinds & FRAG_WORD_CODE) != 0 || frag_message_is_other(read) ||
        frag_message_has_placeholder(read) || frag_message_is_narrated(read, found->at))
        return false;
    if (frag_message_is_question(read) || frag_message_is_table_row(read) ||
        frag_message_is_statement(read) || (found->is_name && frag_message_is_handled(read)) ||
        is_explained(read, found->at) || is_condition(read, found))
        return false;
    if (found->is_name)
        return (frag_message_has_mark(read, found->at + NAME) ||
                (frag_message_is_told(read, found->at) && !frag_message_is_source(read))) &&
               !frag_message_is_prose(read, found);
    if (frag_message_has_mark(read, read->count))
        return true;
    if (frag_message_is_item(read) ||
        (frag_message_is_source(read) && (read->kinds & FRAG_WORD_ERROR) == 0))
        return false;
    bool is_short = read->text->line_count <= SHORT && found->is_allocation;
    return !frag_message_is_prose(read, found) && frag_message_is_headed(read, found->at) &&
           (is_short || has_figure || is_about);
}

/* A failed allocation or a lack of memory that is told in the form of no error, but not in a
 * sentence either. Where a text has nothing better, that is taken for the message: an out of
 * memory called something else costs more than a false alarm. */
static bool is_likely(const frag_message_split_line *read, const frag_message_failure *found)
{
    if ((read->kinds & (FRAG_WORD_CODE | FRAG_WORD_WARNING)) != 0 || frag_message_is_other(read) ||
        frag_message_has_placeholder(read) || frag_message_is_question(read) ||
        frag_message_is_table_row(read) || frag_message_is_statement(read) ||
        frag_message_is_handled(read) || is_explained(read, found->at) ||
        frag_message_is_narrated(read, found->at) || is_condition(read, found))
        return false;
    bool is_short = read->text->line_count <= SHORT;
    size_t before = found->at > 0 ? found->at - 1 : 0;
    if (frag_message_is_item(read) ||
        (frag_message_is_source(read) && (read->kinds & FRAG_WORD_ERROR) == 0))
        return false;
    /* "0 done, 2 out of memory": a list of what numbers stand for */
    bool is_listed = found->is_name && frag_message_line_has(read, before, FRAG_WORD_NUMBER) &&
                     read->words[before].at > 0 &&
                     read->text->bytes[read->words[before].at - 1] == ',';
    if (is_listed)
        return false;
    /* "the message of the OutOfMemoryError" */
    if (frag_message_line_is(read, before, "the") || frag_message_line_is(read, before, "an"))
        return false;
    bool is_about = !found->is_name || (read->kinds & (FRAG_WORD_DEVICE | FRAG_WORD_SIZE)) != 0;
    bool is_failing = (read->kinds & (FRAG_WORD_ERROR | FRAG_WORD_FAIL)) != 0 && is_about &&
                      (!found->is_name || read->count > NAME + PREFIX);
    return !frag_message_has_prose(read) && (is_failing || (is_short && !found->is_name));
}

/* "Warning: Device memory exhausted.\nfailed to create the image, exiting" */
static bool is_fatal_below(const frag_message_split_line *read, size_t at)
{
    frag_message_split_line below;
    size_t end = frag_message_text_line_end(read->text, at, BEHIND);
    if (end >= read->text->length || read->text->bytes[end] != '\n')
        return false;
    frag_message_line_read(&below, read->text, end + 1,
                           frag_message_text_line_end(read->text, end + 1, BEHIND));
    return (below.kinds & (FRAG_WORD_FAIL | FRAG_WORD_ERROR)) != 0 &&
           (below.kinds & FRAG_WORD_WARNING) == 0;
}

/* "\nContinuing without it": the line below says that the program goes on. */
static bool goes_on_below(const frag_message_split_line *read, size_t at)
{
    static frag_word_list acts = {"continuing", "proceeding", "retrying", "falling", NULL};
    frag_message_split_line below;
    size_t end = frag_message_text_line_end(read->text, at, BEHIND);
    if (end >= read->text->length || read->text->bytes[end] != '\n')
        return false;
    frag_message_line_read(&below, read->text, end + 1,
                           frag_message_text_line_end(read->text, end + 1, BEHIND));
    return frag_message_line_is_any(&below, 0, acts) &&
           (below.kinds & (FRAG_WORD_FAIL | FRAG_WORD_ERROR)) == 0;
}

/* "fell back to the CPU due to GPU OOM": what it did stands before the failure, or behind it: "out
 * of memory, so it ran in pieces". */
static bool has_acted(const frag_message_split_line *read, size_t at)
{
    static frag_word_list acts = {"fell",      "switched", "reverted", "moved",     "reduced",
                                  "retried",   "lowered",  "halved",   "offloaded", "disabled",
                                  "downgrad*", "skipped",  "ran",      NULL};
    for (size_t i = at + 2; i < read->count; i++)
        if (frag_message_line_is(read, i - 2, "so") && frag_message_line_is(read, i - 1, "it") &&
            frag_message_line_is_any(read, i, acts) && !frag_message_line_is(read, i + 1, "out"))
            return true;
    static frag_word_list links = {"due", "because", "after", "since", "on", NULL};
    for (size_t i = 0; i < at; i++)
        if (frag_message_line_is_any(read, i, acts))
            return frag_message_line_has_any(read, i + 1, at, links);
    return false;
}

/* ", retrying with batch 16", ": using managed memory instead", ". Will fall back": behind the
 * failure the program says what it does now. "try reducing the batch" is advice. */
static bool is_next_act(const frag_message_split_line *read, size_t i)
{
    static frag_word_list acts = {
        "reducing",  "halving",   "shrinking",  "lowering",   "decreasing", "using",
        "reverting", "disabling", "continuing", "proceeding", "offloading", "spilling",
        "splitting", "deferring", "waiting",    "pausing",    "dropping",   "ignoring",
        "moving",    "running",   "requeu*",    "limiting",   "capping",    "truncating",
        "keeping",   "leaving",   "backing",    "caching",    "growing",    "streaming",
        "forcing",   "clearing",  "emptying",   "freeing",    "flushing",   NULL};
    static frag_word_list plain = {"retry",    "fall",   "use", "skip",
                                   "continue", "switch", "try", NULL};
    static frag_word_list advice = {"consider*", "try",   "suggest*", "recommend*", "by",
                                    "options",   "could", "please",   NULL};
    const frag_message_text *text = read->text;
    if (i == 0 || frag_message_line_has_any(read, 0, i, advice))
        return false;
    if (frag_message_line_is(read, i - 1, "will") && frag_message_line_is_any(read, i, plain))
        return true;
    if (!frag_message_line_is_any(read, i, acts))
        return false;
    for (size_t at = read->words[i - 1].end; at < read->words[i].at; at++)
        if (strchr(",.;:-!(|\"\x01", text->bytes[at]) !=
            NULL) /* a quotation mark for a dash, too */
            return true;
    return frag_message_line_is(read, i - 1, "so") || frag_message_line_is(read, i - 1, "and") ||
           frag_message_line_is(read, i - 1, "now");
}

/* The program goes on: a line that says what it does instead, and no end of the program below. */
static bool is_harmless(const frag_message_split_line *read, size_t at)
{
    static const char *const ends[] = {"terminatecalled", NULL};
    if (frag_message_is_lost_work(read))
        return false;
    bool goes_on = goes_on_below(
        read, at); /* or only the level of a logger, at which some report failures, too */
    bool has_failed = false;
    for (size_t i = 0; i < read->count; i++) {
        if (frag_message_is_thrown(read, i))
            return false;
        has_failed |=
            frag_message_is_out_of(read, i) ||
            frag_message_line_has(read, i, FRAG_WORD_FAIL | FRAG_WORD_LACK | FRAG_WORD_EXCEED) ||
            frag_message_line_is(read, i, "not") || frag_message_line_is(read, i, "no") ||
            frag_message_line_is(read, i, "too");
        bool is_vain = frag_message_line_has_within(read, i + 1, i + 3, FRAG_WORD_FAIL);
        if (is_vain &&
            (frag_message_line_is(read, i, "retry") || frag_message_line_is(read, i, "retrying")))
            return false;
        goes_on |= has_failed && is_next_act(read, i);
        goes_on |= (frag_message_is_out_of(read, i) || frag_message_line_is(read, i, "enough")) &&
                   has_acted(read, i);
        bool is_tried =
            frag_message_line_has_within(read, i, i + 3, FRAG_WORD_ALLOCATE) &&
            strchr("(:", read->text->bytes[read->words[i].end]) == NULL; /* "SKIP (VRAM ..." */
        goes_on |= frag_message_line_has(read, i, FRAG_WORD_WARNING) && !is_tried &&
                   !frag_message_line_is(read, i, "warn") &&
                   !frag_message_line_is(read, i, "warning");
    }
    uint32_t kinds = 0;
    for (size_t i = 0; i < read->count; i++) /* "OOM error" is the name of it */
        kinds |= i > 0 && frag_message_line_is(read, i, "error") &&
                         (frag_message_line_is(read, i - 1, "oom") ||
                          frag_message_line_is(read, i - 1, "memory") ||
                          /* "falling back to CPU error="out of memory"" */
                          (goes_on && read->text->bytes[read->words[i].end] == '='))
                     ? 0
                     : read->words[i].kinds;
    uint32_t failing = FRAG_WORD_ERROR | (goes_on ? 0 : FRAG_WORD_FAIL | FRAG_WORD_SIZE);
    return (goes_on || (read->kinds & FRAG_WORD_WARNING) != 0) && (kinds & failing) == 0 &&
           (goes_on ||
            !(frag_message_stands_near(read->text, at, ends) || is_fatal_below(read, at)));
}

bool frag_message_is_survived(const frag_message_text *text, size_t at)
{
    frag_message_split_line read;
    size_t start = frag_message_text_line_start(text, at);
    start = start + BEFORE < at ? at - BEFORE : start;
    frag_message_line_read(&read, text, start, frag_message_text_line_end(text, at, BEHIND));
    return is_harmless(&read, at);
}

bool frag_message_is_explained_at(const frag_message_text *text, size_t at)
{
    frag_message_split_line read;
    size_t start = frag_message_text_line_start(text, at);
    if (start + BEFORE < at)
        return false;
    frag_message_line_read(&read, text, start, frag_message_text_line_end(text, at, BEHIND));
    size_t word = 0;
    while (word + 1 < read.count && read.words[word].at < at)
        word++;
    return read.count > 0 && frag_message_is_explained(&read, word);
}

/* ---- whose memory */
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
        bool was_allocation = i > 0 && frag_message_line_has(read, i - 1, FRAG_WORD_ALLOCATE);
        /* "GPU or CPU memory", "GPU and shared host memory" */
        size_t before = i > 3 ? i - 3 : 0;
        bool is_both = false;
        for (size_t j = before; j + 1 < i; j++)
            is_both |= frag_message_line_has(read, j, FRAG_WORD_DEVICE) &&
                       (frag_message_line_is(read, j + 1, "or") ||
                        frag_message_line_is(read, j + 1, "and"));
        /* "GPU RAM" */
        bool is_video = frag_message_line_is(read, i, "ram") && i > 0 &&
                        frag_message_line_has(read, i - 1, FRAG_WORD_DEVICE);
        if (is_both || is_video)
            continue;
        static frag_word_list others = {"main", "shared", NULL}; /* on a chip, too */
        bool is_other = frag_message_line_is_any(read, i, others);
        if ((is_other && frag_message_line_is(read, i + 1, "memory")) ||
            (frag_message_line_is(read, i, "pinned") &&
             frag_message_line_has(read, i, FRAG_WORD_HOST)) ||
            frag_message_line_is(read, i, "pagelocked") ||
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

/* "CPU mode is applied in this batch": where the program goes because of a failure did not fail. */
static bool names_host(const frag_message_split_line *read)
{
    static frag_word_list refuges = {"mode", "fallback", NULL};
    for (size_t i = 0; i < read->count; i++)
        if (frag_message_line_has(read, i, FRAG_WORD_HOST) &&
            !(frag_message_line_is(read, i, "cpu") &&
              frag_message_line_is_any(read, i + 1, refuges)))
            return true;
    return false;
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
    if ((read->kinds & FRAG_WORD_DEVICE) != 0)
        return is_of_computer(read) || is_system_call ||
               frag_message_stands_near(read->text, at, ggml);
    /* OpenCV's name for what malloc() refused; of a device it says "Gpu API call" */
    static const char *const opencv[] = {"(-4:insufficientmemory", NULL};
    if (names_host(read) || is_of_computer(read) || is_library_call(read) ||
        has_pair(read, "range", "error", true) || has_pair(read, "physical", "memory", false) ||
        frag_message_stands_near(read->text, at, opencv))
        return true;
    const uint32_t more = FRAG_WORD_UNIT | FRAG_WORD_SIZE | FRAG_WORD_NUMBER | FRAG_WORD_FAIL |
                          FRAG_WORD_ALLOCATE | FRAG_WORD_HOST;
    bool is_bare = found->is_name && (read->kinds & more) == 0 &&
                   !frag_message_is_lost_work(read) && !frag_message_is_title(read) &&
                   !(is_witnessed && read->text->line_count <= LETTER);
    for (size_t i = 0; i < read->count; i++)
        is_bare |= is_memory_limit(read, i);
    return (is_bare || is_enomem(read)) && !frag_message_is_about_device(read->text, at);
}

/* After a fault of another kind every call fails, allocations too; "failed for a reason other than
 * running out of memory" says so itself. A launch that fails behind an allocation failed for want
 * of it. */
static bool follows_fault(const frag_message_text *text, size_t at)
{
    static const char *const faults[] = {"illegalmemoryaccess",
                                         "illegal_address",
                                         "illegaladdress",
                                         "misalignedaddress",
                                         "device-sideassert`",
                                         "device-sideasserttrigger",
                                         "otherthanrunningoutof",
                                         "otherthanoutof",
                                         "otherthananoutof",
                                         "errorinsufficientdriver",
                                         "errornodevice",
                                         "errorinitialization",
                                         NULL};
    static const char *const launches[] = {"launchfail", "launch_fail", NULL};
    return frag_message_stands_near(text, at, faults) ||
           frag_message_stands_before(text, at, launches);
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

/* Does a text of sentences surround that line: a page, a letter, a comment? What it says of memory
 * that runs out happened to nobody. A log and a message have few of the small words. */
static bool is_in_prose(const frag_message_split_line *read, size_t failure, size_t at)
{
    const frag_message_text *text = read->text;
    static const char *const small[] = {"a",    "an",   "and",   "are",   "as",   "at", "be",
                                        "by",   "can",  "for",   "from",  "has",  "if", "is",
                                        "it",   "its",  "not",   "of",    "on",   "or", "so",
                                        "than", "that", "the",   "they",  "this", "to", "was",
                                        "what", "when", "where", "which", "with", "you"};
    size_t from = at > PAGE ? at - PAGE : 0;
    size_t to = at + PAGE < text->length ? at + PAGE : text->length;
    size_t words = 0;
    size_t smalls = 0;
    for (size_t start = from; start < to; words++) {
        size_t end = start + 1;
        while (end < to && (text->marks[end] & FRAG_MESSAGE_WORD) == 0 && text->bytes[end] != '\n')
            end++;
        for (size_t i = 0; i < sizeof small / sizeof *small; i++)
            smalls += strlen(small[i]) == end - start &&
                      memcmp(text->bytes + start, small[i], end - start) == 0;
        start = end < to && text->bytes[end] == '\n' ? end + 1 : end;
    }
    /* "You've run out of graphics memory. Reduce the number of photos, or ...": a dialog */
    bool is_told_you = read->words[0].at == 0 && frag_message_line_is(read, 0, "you");
    frag_text_range quote;
    return (words >= PAGE_WORDS && smalls * PAGE_SHARE >= words) ||
           (words >= TALK_WORDS && smalls * TALK_SHARE >= words && failure > 0 && !is_told_you &&
            !frag_message_has_mark(read, read->count) &&
            !frag_message_find_quote(read, failure, &quote));
}

/* "With the guide I get `RuntimeError: CUDA out of memory`": what is set in code and marked as an
 * error is what the program printed, whatever a person says around it. */
static void narrow_to_quote(frag_message_split_line *read, const frag_message_text *text)
{
    frag_message_split_line quoted;
    frag_text_range quote;
    for (size_t i = 0; i < read->count; i++) {
        bool is_status = frag_message_is_status(read, i);
        if ((!frag_message_line_has(read, i, FRAG_WORD_MEMORY | FRAG_WORD_ALLOCATE) &&
             !is_status) ||
            !frag_message_find_quote(read, i, &quote))
            continue;
        frag_message_line_read(&quoted, text, quote.from, quote.to);
        if (is_status || frag_message_has_mark(&quoted, quoted.count))
            *read = quoted;
        return;
    }
}

/* "Reasons for the failure: a device lost, out of memory, or an unexpected bug" */
static bool is_one_of_causes(const frag_message_split_line *read, size_t failure)
{
    static frag_word_list causes = {"reasons", "causes", NULL};
    bool is_listed = false;
    for (size_t i = failure; i < read->count; i++)
        is_listed |= frag_message_line_is(read, i, "or");
    return is_listed && frag_message_line_has_any(read, 0, failure, causes);
}

/* ---- what a person tells */
/* Not "3D". */
static bool has_number(const frag_message_split_line *read, size_t from, size_t to)
{
    for (size_t i = from; i < to && i < read->count; i++) {
        size_t end = read->words[i].end;
        char behind = read->text->bytes[end];
        bool is_glued =
            behind >= 'a' && behind <= 'z' && (read->text->marks[end] & FRAG_MESSAGE_WORD) == 0;
        if (frag_message_line_has(read, i, FRAG_WORD_SIZE) ||
            (frag_message_line_has(read, i, FRAG_WORD_NUMBER) && !is_glued))
            return true;
    }
    return false;
}

/* "if the batch is above 64", "with 64 or more": who knows the number has tried it. */
static bool is_tried(const frag_message_split_line *read, size_t from, size_t to)
{
    static frag_word_list conditions = {"if", "when*", "above", "beyond", "after", NULL};
    static frag_word_list more = {"more", "above", "higher", "larger", NULL};
    const uint32_t numbers = FRAG_WORD_NUMBER | FRAG_WORD_SIZE;
    for (size_t i = from; i < to; i++)
        if ((frag_message_line_is_any(read, i, conditions) && has_number(read, i + 1, to)) ||
            (frag_message_line_has(read, i, numbers) && frag_message_line_is(read, i + 1, "or") &&
             frag_message_line_is_any(read, i + 2, more)))
            return true;
    return false;
}

/* "when we train it, we got": another clause than that of the failure */
static bool is_clause_of_us(const frag_message_split_line *read, size_t i, size_t failure)
{
    static frag_word_list subjects = {"we", "it", NULL};
    if (!frag_message_line_is(read, i + 1, "we"))
        return false;
    for (size_t j = i + 2; j < failure; j++)
        if (read->text->bytes[read->words[j].end] == ',')
            return frag_message_line_is_any(read, j + 1, subjects);
    return false;
}

/* What may happen, is asked, mended, avoided, or happens to anybody: up to the failure. What is
 * told with a size has happened, whatever had to be so. */
static bool is_hedged(const frag_message_split_line *read, size_t from, size_t to, bool has_size)
{
    static frag_word_list conditions = {"if", "when*", NULL};
    static frag_word_list tries = {"i", "we", NULL};
    static frag_word_list words = {
        "may",       "might",   "could",    "would",     "should",   "will",       "avoid*",
        "prevent*",  "fix*",    "handl*",   "catch*",    "how",      "what",       "unless",
        "without",   "never",   "no",       "longer",    "users",    "people",     "simulat*",
        "test*",     "example", "mitigat*", "reduc*",    "ensur*",   "sometimes",  "often",
        "usually",   "solve",   "solved",   "solving",   "resolv*",  "possib*",    "caught",
        "you",       "your",    "they",     "someone",   "maybe",    "perhaps",    "thought",
        "suspect",   "assum*",  "probably", "introduc*", "support*", "implement*", "add*",
        "improv*",   "need*",   "want*",    "way",       "try",      "kill*",      "means",
        "indicates", "far",     "not",      "faq",       "rather",   NULL};
    static frag_word_list doubts = {"can", "t", NULL}; /* "can crash", "doesn't crash" */
    for (size_t i = from; i < to; i++) {
        /* "the problem is when it ends, suddenly" */
        bool is_told = i > from && frag_message_line_is(read, i - 1, "is") &&
                       frag_message_line_is(read, i, "when");
        bool is_mine = frag_message_line_is(read, i, "when") &&
                       (frag_message_is_doing(read, i) || frag_message_line_is(read, i + 1, "i") ||
                        is_clause_of_us(read, i, to));
        bool is_seen = frag_message_line_is(read, i + 1, "see");
        bool is_of_name =
            i > from && read->text->bytes[read->words[i].at - 1] == '-'; /* "v1-test" */
        bool is_mine_tried = i > from && frag_message_line_is(read, i, "try") &&
                             frag_message_line_is_any(read, i - 1, tries);    /* "when I try to" */
        bool is_even = i > from && frag_message_line_is(read, i - 1, "even"); /* "even if" */
        if (frag_message_line_is(read, i, "matter") || /* "no matter how low" */
            frag_message_line_is(read, i + 1, "matter") ||
            (i > from && frag_message_line_is(read, i - 1, "matter")))
            continue;
        if ((frag_message_line_is_any(read, i, conditions) && !is_mine && !is_told && !is_even &&
             !has_size && !is_tried(read, i, to)) ||
            (frag_message_line_is_any(read, i, words) && !is_mine_tried && !is_of_name) ||
            (frag_message_line_is_any(read, i, doubts) && !is_seen))
            return true;
    }
    return false;
}

/* "it still runs out", "now it triggers": who says so saw it. */
static bool is_observed(const frag_message_split_line *read, frag_word_range whole, size_t i)
{
    static frag_word_list again = {"still", "always",   "again",        "now",        "immediately",
                                   "keeps", "suddenly", "consistently", "constantly", NULL};
    return frag_message_line_has_any(read, whole.from, i, again) ||
           (i > whole.from && frag_message_line_is(read, i - 1, "it"));
}

static bool is_seen(const frag_message_split_line *read, frag_word_range whole, size_t i)
{
    static frag_word_list people = {"i", "we", "my", "our", "me", NULL};
    return frag_message_line_has_any(read, whole.from, whole.to, people) ||
           is_observed(read, whole, i);
}

/* "crashes with", "I get", "a message that says": does the word i begin what happened? */
static bool is_event(const frag_message_split_line *read, size_t i, frag_word_range whole)
{
    static frag_word_list ends = {"crash*", "fail",  "fails",  "failed",    "failing",
                                  "die*",   "died",  "abort*", "terminat*", "exit*",
                                  "stop*",  "quit*", "broke",  "end*",      NULL};
    static frag_word_list links = {"with", "due", "error", "saying", NULL};
    static frag_word_list leads = {"resulting", "leading", "causing", NULL};
    static frag_word_list meets = {"meet",    "met",   "get",   "gets",    "got",     "getting",
                                   "receiv*", "hit",   "hits",  "see",     "hitting", "encounter*",
                                   "seeing",  "face",  "saw",   "have",    "facing",  "having",
                                   "into",    "lead*", "led",   "result*", "caus*",   "trigger*",
                                   "throw*",  "threw", "giv*",  "gave",    "became",  "prompted",
                                   "greeted", "faced", "seems", NULL};
    static frag_word_list runs = {"ran", "running", "still", "i", NULL};
    static frag_word_list runs_always = {"run", "runs", NULL};
    static frag_word_list tells = {"say*",   "said",  "show*",   "print*",   "pop*",   "appear*",
                                   "throw*", "threw", "report*", "display*", "stated", NULL};
    static frag_word_list things = {"error",  "errors", "message", "popup", "notification",
                                    "window", "dialog", "server",  "issue", NULL};
    static frag_word_list devices = {"cuda", "gpu", "vram", NULL};
    static frag_word_list states = {"is", "was", "goes", "went", "got", NULL};
    static frag_word_list same = {"same", NULL};
    static frag_word_list is = {"is", "s", "was", NULL};
    static frag_word_list befores = {"of",   "about", "the", "a",     "an",
                                     "with", "this",  "any", "those", NULL};
    if (frag_message_line_is_any(read, i, ends))
        return frag_message_line_has_any(read, i + 1, i + REACH, links);
    if (frag_message_line_is_any(read, i, tells) &&
        (frag_message_line_has_any(read, whole.from, whole.to, things) ||
         (frag_message_is_out_of(read, i + 1) && is_seen(read, whole, i)))) /* "it showed OOM" */
        return true;
    static frag_word_list tellers = {"tells", "told", NULL}; /* "it tells me that it" */
    static frag_word_list mine = {"me", "us", NULL};
    if (frag_message_line_is_any(read, i, tellers) && frag_message_line_is_any(read, i + 1, mine))
        return true;
    if (frag_message_is_out_of(read, i + 1) && frag_message_line_is_any(read, i, runs))
        return is_seen(read, whole, i + 1);
    if (frag_message_is_out_of(read, i + 1) && frag_message_line_is_any(read, i, runs_always))
        return is_observed(read, whole, i) || is_tried(read, whole.from, whole.to);
    /* "I tried it on my image and cuda was out of memory": behind a word that begins it */
    size_t named = i + 1;
    size_t out = frag_message_line_is_any(read, named + 1, states) ? named + 2 : named + 1;
    if (frag_message_line_is_any(read, named, devices) && frag_message_is_out_of(read, out) &&
        !frag_message_line_is_any(read, i, befores))
        return is_seen(read, whole, i);
    /* "resulting in CUDA OOM" */
    named = frag_message_line_is(read, i + 1, "in") || frag_message_line_is(read, i + 1, "to")
                ? i + 2
                : i + 1;
    if (frag_message_line_is_any(read, i, leads) &&
        frag_message_line_is_any(read, named, devices) && frag_message_is_out_of(read, named + 1))
        return true;
    /* "Yes, it's a CUDA OOM error" */
    if (i > whole.from && frag_message_line_is(read, whole.from, "yes") &&
        frag_message_line_is(read, i - 1, "it") && frag_message_line_is_any(read, i, is))
        return true;
    /* "when I run it, there is CUDA out of memory" */
    if (frag_message_line_is(read, i, "there") && frag_message_line_is_any(read, i + 1, states))
        return is_seen(read, whole, i);
    bool is_same = frag_message_line_has_any(read, i + 1, i + 3, same); /* "facing the same OOM" */
    return frag_message_line_is_any(read, i, meets) && (is_same || is_seen(read, whole, i));
}

/* "but an OOM error was reported when ...": of what stands before the word i */
static bool is_reported_passive(const frag_message_split_line *read, size_t i)
{
    static frag_word_list reports = {"reported", "raised", "thrown", "shown", "displayed", NULL};
    return i > 0 && frag_message_line_is(read, i - 1, "was") &&
           frag_message_line_is_any(read, i, reports);
}

/* "then an OOM error occurs", "today OOM happened": does what stands before the word i happen? */
static bool is_end_of_event(const frag_message_split_line *read, size_t i, frag_word_range whole)
{
    static frag_word_list happens = {"happen*", "occur*", "appear*", "came", "arose", NULL};
    static frag_word_list links = {"when", "if", "that", "because", "whenever", "as", NULL};
    static frag_word_list days = {"then", "today", "yesterday", "after", NULL};
    if (is_reported_passive(read, i))
        return is_seen(read, whole, i);
    return frag_message_line_is_any(read, i, happens) &&
           !frag_message_line_is_any(read, i + 1, links) &&
           (is_seen(read, whole, i) || frag_message_line_has_any(read, whole.from, i, days) ||
            has_number(read, i + 1, i + 1 + MEMORY)); /* "happens with scene 50" */
}

/* Does a size stand in what is told, near its failure? */
static bool has_size(const frag_message_split_line *part, size_t at)
{
    return frag_message_line_has_within(part, at, at + TAIL, FRAG_WORD_SIZE);
}

/* The words of what is told with the word i, its event. Empty: no event. */
static frag_word_range told_at(const frag_message_split_line *read, size_t i, frag_word_range whole)
{
    if (is_event(read, i, whole) && !is_reported_passive(read, i) && i + 1 < whole.to)
        return (frag_word_range){.from = i + 1, .to = whole.to};
    if (i > whole.from && is_end_of_event(read, i, whole))
        return (frag_word_range){.from = i - whole.from > TAIL ? i - TAIL : whole.from, .to = i};
    return (frag_word_range){0};
}

/* Nothing else failed, nobody doubts it, and the words up to the failure are no system's. */
static bool is_certain(const frag_message_split_line *read, frag_word_range whole, size_t failure,
                       bool has_figure)
{
    static frag_word_list killers = {"kill*", NULL}; /* "killed by the OOM killer" */
    frag_message_split_line part;
    size_t from = failure;
    static frag_word_list turns = {"but", "resulting", "leading", "causing", NULL};
    while (from > whole.from && !frag_message_line_is_any(read, from - 1, turns))
        from--;
    size_t last = failure + MEMORY < whole.to ? failure + MEMORY : whole.to - 1;
    frag_message_line_read(&part, read->text, read->words[from].at, read->words[last].end);
    return !frag_message_is_other(&part) && !is_hedged(read, from, failure, has_figure) &&
           !frag_message_line_is_any(read, failure + 1, killers);
}

/* What a person tells of a program that ran out of memory, as something that happened, not as what
 * may happen, is asked or was mended: leaves what follows "crashed" in read. */
static frag_message_failure find_witness(frag_message_split_line *read)
{
    frag_message_split_line part;
    frag_word_range whole = {0};
    for (size_t i = 0; i < read->count; i++) {
        if (i >= whole.to)
            whole = frag_message_line_sentence(read, i, ".?!;");
        frag_word_range told = told_at(read, i, whole);
        if (told.from >= told.to)
            continue;
        frag_message_line_read(&part, read->text, read->words[told.from].at,
                               read->words[told.to - 1].end);
        frag_message_failure found = frag_message_find_failure(&part);
        if (!found.is_found || found.at > REACH ||
            !is_certain(read, whole, told.from + found.at, has_size(&part, found.at)) ||
            frag_message_is_explained(read, told.from + found.at) ||
            frag_message_is_asked(read, whole))
            continue;
        size_t last = found.at + TAIL < part.count ? found.at + TAIL : part.count - 1;
        frag_message_line_read(read, part.text, part.words[0].at, part.words[last].end);
        return found;
    }
    return (frag_message_failure){.is_found = false};
}

static frag_message_kind kind_of(const frag_message_split_line *read,
                                 const frag_message_failure *found, size_t at, bool is_witnessed)
{
    frag_message_split_line part = contrasted(read, found->at);
    frag_message_split_line told = *read;
    is_witnessed =
        is_witnessed || (read->text->line_count <= LETTER && find_witness(&told).is_found);
    return is_harmless(read, at)                     ? FRAG_MESSAGE_HARMLESS
           : is_host(&part, found, at, is_witnessed) ? FRAG_MESSAGE_HOST
                                                     : FRAG_MESSAGE_OOM;
}

/* ---- the next line */
bool frag_message_guess_next(const frag_message_text *text, size_t from, frag_message_rigour rigour,
                             frag_message_guess *guess, bool *has_failure)
{
    frag_message_split_line read;
    bool is_presumed = rigour == FRAG_MESSAGE_PRESUMED;
    bool is_witnessed = rigour == FRAG_MESSAGE_WITNESSED;
    for (size_t at = next_hint(text, from, is_presumed || is_witnessed); at < text->length;) {
        size_t start = frag_message_text_line_start(text, at);
        size_t end = frag_message_text_line_end(text, at, BEHIND);
        start = start + BEFORE < at ? at - BEFORE : start;
        start = start < from ? from : start;
        frag_message_line_read(&read, text, start, end);
        narrow_to_quote(&read, text);
        frag_message_failure found = is_witnessed  ? find_witness(&read)
                                     : is_presumed ? frag_message_presume(&read)
                                                   : frag_message_find_failure(&read);
        bool is_page = found.is_found && frag_message_is_of_page(text, read.words[found.at].at);
        bool is_meant = found.is_found && !is_page && !follows_fault(text, at) &&
                        !is_one_of_causes(&read, found.at) &&
                        !frag_message_is_sought(&read, found.at) &&
                        !frag_message_is_defined(&read, found.at) &&
                        (is_witnessed                      ? true
                         : is_presumed                     ? !is_in_prose(&read, found.at, at)
                         : rigour == FRAG_MESSAGE_REPORTED ? is_reported(&read, &found)
                                                           : is_likely(&read, &found));
        *has_failure |= found.is_found && (read.kinds & FRAG_WORD_CODE) == 0;
        if (is_meant) {
            *guess = (frag_message_guess){.start = start,
                                          .end = end,
                                          .kind = kind_of(&read, &found, at, is_witnessed),
                                          .is_of_device =
                                              (read.kinds & (FRAG_WORD_DEVICE | FRAG_WORD_HOST)) ==
                                              FRAG_WORD_DEVICE};
            return true;
        }
        /* a hint may be cut in two where the line was */
        bool is_cut = end < text->length && text->bytes[end] != '\n';
        size_t next = is_cut && end > at + OVERLAP ? end - OVERLAP : end;
        at = next_hint(text, next > at ? next : at + 1, is_presumed || is_witnessed);
    }
    return false;
}

/* "  Size: 33554432", below the line that says what failed */
static bool is_size_alone(const frag_message_split_line *read)
{
    static frag_word_list names = {"size",  "requested", "required", "needed",
                                   "bytes", "allocate",  NULL};
    for (size_t i = 0; i + 1 < read->count && i < PREFIX; i++) {
        char behind = read->text->bytes[read->words[i].end];
        if (frag_message_line_is_any(read, i, names) && (behind == ':' || behind == '=') &&
            frag_message_line_has(read, i + 1, FRAG_WORD_NUMBER | FRAG_WORD_SIZE))
            return true;
    }
    return false;
}

bool frag_message_guess_goes_on(const frag_message_text *text, size_t from, size_t to)
{
    frag_message_split_line read;
    frag_message_line_read(&read, text, from, to);
    frag_message_failure found = frag_message_find_failure(&read);
    return (found.is_found && !found.is_name) || is_size_alone(&read);
}

uint32_t frag_message_scenes(const frag_message_text *text)
{
    uint32_t scenes = next_hint(text, 0, false) < text->length ? FRAG_SCENE_MEMORY : 0;
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
