#include "messages/guess/message_guess.h"

#include <string.h>

#include "messages/guess/message_aside.h"
#include "messages/guess/message_failure.h"
#include "messages/guess/message_form.h"
#include "messages/guess/message_host.h"
#include "messages/guess/message_presume.h"
#include "messages/guess/message_survived.h"
#include "messages/guess/message_witness.h"
#include "messages/message_line.h"
#include "messages/message_words.h"

enum {
    BEFORE = 160,    /* of a long line so much before a hint is read */
    OVERLAP = 24,    /* of two pieces of one line */
    NAME = 4,        /* words of the name of an error */
    PREFIX = 3,      /* words between the sign that ends a prefix and the failure */
    BIT = 9,         /* words that explain a name, behind it */
    SHORT = 5,       /* a paste of so few lines is the message itself */
    PAGE = 1000,     /* bytes before and behind a line show what it stands in: */
    PAGE_WORDS = 60, /* of so many words */
    PAGE_SHARE = 5,  /* one in so many small ones is a page of sentences, */
    TALK_WORDS = 20, /* and of so many words */
    TALK_SHARE = 3   /* one in so many is what a person says */
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

/* "8 GB cards do not OOM", "it no longer runs out of GPU memory" */
static bool is_denied(const frag_message_split_line *read, size_t failure)
{
    static frag_word_list helpers = {"do", "does", "did", "don", "doesn", "didn", "won", NULL};
    static frag_word_list nots = {"not", "t", NULL};
    static frag_word_list runs = {"run", "runs", "running", "goes", "hits", "gets", NULL};
    size_t verb = frag_message_line_is_any(read, failure - 1, runs) ? failure - 1 : failure;
    return (frag_message_line_is_any(read, verb - 1, nots) &&
            frag_message_line_is_any(read, verb - 2, helpers)) ||
           (frag_message_line_is(read, verb - 1, "longer") &&
            frag_message_line_is(read, verb - 2, "no"));
}

/* "never had an OOM error", "when VRAM is not enough" */
static bool is_condition(const frag_message_split_line *read, const frag_message_failure *found)
{
    static frag_word_list words = {"when", "if", "whenever", NULL};
    static frag_word_list nevers = {"never", "without", NULL};
    size_t from = found->at > PREFIX ? found->at - PREFIX : 0;
    return frag_message_line_has_any(read, from, found->at, nevers) ||
           is_possible(read, found->at) ||
           (!found->is_name && frag_message_line_is_any(read, found->at - 1, words));
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

bool frag_message_is_survived(const frag_message_text *text, size_t at)
{
    frag_message_split_line read;
    size_t start = frag_message_text_line_start(text, at);
    start = start + BEFORE < at ? at - BEFORE : start;
    frag_message_line_read(&read, text, start,
                           frag_message_text_line_end(text, at, FRAG_MESSAGE_LINE_REACH));
    return frag_message_goes_on(&read, at);
}

bool frag_message_is_explained_at(const frag_message_text *text, size_t at)
{
    frag_message_split_line read;
    size_t start = frag_message_text_line_start(text, at);
    if (start + BEFORE < at)
        return false;
    frag_message_line_read(&read, text, start,
                           frag_message_text_line_end(text, at, FRAG_MESSAGE_LINE_REACH));
    size_t word = 0;
    while (word + 1 < read.count && read.words[word].at < at)
        word++;
    return read.count > 0 && frag_message_is_explained(&read, word);
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
                                         "driverversionisinsufficient",
                                         "errornodevice",
                                         "errorinitialization",
                                         NULL};
    static const char *const launches[] = {"launchfail", "launch_fail", NULL};
    return frag_message_stands_near(text, at, faults) ||
           frag_message_stands_before(text, at, launches);
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

static frag_message_kind kind_of(const frag_message_split_line *read,
                                 const frag_message_failure *found, size_t at, bool is_witnessed)
{
    if (frag_message_goes_on(read, at))
        return FRAG_MESSAGE_HARMLESS;
    frag_message_split_line told = *read;
    bool is_letter = read->text->line_count <= FRAG_MESSAGE_LETTER_LINES &&
                     (is_witnessed || frag_message_find_witness(&told).is_found);
    return frag_message_is_of_host(read, found, at, is_letter) ? FRAG_MESSAGE_HOST
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
        size_t end = frag_message_text_line_end(text, at, FRAG_MESSAGE_LINE_REACH);
        start = start + BEFORE < at ? at - BEFORE : start;
        start = start < from ? from : start;
        frag_message_line_read(&read, text, start, end);
        narrow_to_quote(&read, text);
        frag_message_failure found = is_witnessed  ? frag_message_find_witness(&read)
                                     : is_presumed ? frag_message_presume(&read)
                                                   : frag_message_find_failure(&read);
        bool is_page = found.is_found && frag_message_is_of_page(text, read.words[found.at].at);
        bool is_meant = found.is_found && !is_page && !follows_fault(text, at) &&
                        !is_one_of_causes(&read, found.at) && !is_denied(&read, found.at) &&
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
            if (guess->kind == FRAG_MESSAGE_HOST)
                guess->says = frag_message_host_says(&read);
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
    static const char *const errors[] = {"error:",
                                         "exception:",
                                         "error]",
                                         "errorcode",
                                         "fatal:",
                                         "failed:",
                                         "assertion",
                                         "(coredumped)",
                                         "cuda_error_",
                                         "requestedforlaunch",
                                         "versionisinsufficient"};
    for (size_t at = 0; at < text->length; at++)
        for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
            if (text->bytes[at] == errors[i][0] &&
                strncmp(text->bytes + at, errors[i], strlen(errors[i])) == 0)
                return scenes | FRAG_SCENE_OTHER_ERROR;
    return scenes;
}
