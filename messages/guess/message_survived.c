#include "messages/guess/message_survived.h"

#include <string.h>

#include "messages/guess/message_failure.h"

/* "Warning: Device memory exhausted.\nfailed to create the image, exiting" */
static bool is_fatal_below(const frag_message_split_line *read, size_t at)
{
    frag_message_split_line below;
    size_t end = frag_message_text_line_end(read->text, at, FRAG_MESSAGE_LINE_REACH);
    if (end >= read->text->length || read->text->bytes[end] != '\n')
        return false;
    frag_message_line_read(
        &below, read->text, end + 1,
        frag_message_text_line_end(read->text, end + 1, FRAG_MESSAGE_LINE_REACH));
    return (below.kinds & (FRAG_WORD_FAIL | FRAG_WORD_ERROR)) != 0 &&
           (below.kinds & FRAG_WORD_WARNING) == 0;
}

/* "\nContinuing without it": the line below says that the program goes on. */
static bool goes_on_below(const frag_message_split_line *read, size_t at)
{
    static frag_word_list acts = {"continuing", "proceeding", "retrying", "falling", NULL};
    frag_message_split_line below;
    size_t end = frag_message_text_line_end(read->text, at, FRAG_MESSAGE_LINE_REACH);
    if (end >= read->text->length || read->text->bytes[end] != '\n')
        return false;
    frag_message_line_read(
        &below, read->text, end + 1,
        frag_message_text_line_end(read->text, end + 1, FRAG_MESSAGE_LINE_REACH));
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
bool frag_message_goes_on(const frag_message_split_line *read, size_t at)
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
