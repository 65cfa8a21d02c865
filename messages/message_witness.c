#include "messages/message_witness.h"

#include <string.h>

#include "messages/message_aside.h"

enum {
    REACH = 10, /* words from what happened to the memory that ran out */
    NAME = 3,   /* words of what ran out */
    TAIL = 8,   /* words behind it that may tell whose it is */
};

/* The words of the sentence in which the word i stands. */
typedef struct sentence {
    size_t from;
    size_t to;
} sentence;

static bool is_end(const frag_message_split_line *read, size_t i)
{
    const frag_message_text *text = read->text;
    for (size_t at = read->words[i].end; at < read->words[i + 1].at; at++)
        if (strchr(".?!;", text->bytes[at]) != NULL &&
            (text->marks[at + 1] & FRAG_MESSAGE_WORD) != 0)
            return true;
    return false;
}

static sentence sentence_of(const frag_message_split_line *read, size_t i)
{
    sentence whole = {.from = i, .to = i + 1};
    while (whole.from > 0 && !is_end(read, whole.from - 1))
        whole.from--;
    while (whole.to < read->count && !is_end(read, whole.to - 1))
        whole.to++;
    return whole;
}

/* What may happen, is asked, mended, avoided, or happens to anybody: up to the failure. What is
 * told with a size has happened, whatever had to be so. */
static bool is_hedged(const frag_message_split_line *read, size_t from, size_t to, bool has_size)
{
    static frag_word_list conditions = {"if", "when*", NULL};
    static frag_word_list words = {
        "may",      "might",     "could",    "would",      "should",  "will",      "avoid*",
        "prevent*", "fix*",      "handl*",   "catch*",     "how",     "what",      "unless",
        "without",  "never",     "no",       "longer",     "users",   "people",    "simulat*",
        "test*",    "example",   "mitigat*", "reduc*",     "ensur*",  "sometimes", "often",
        "usually",  "solv*",     "resolv*",  "possib*",    "caught",  "you",       "your",
        "they",     "someone",   "maybe",    "perhaps",    "thought", "suspect",   "assum*",
        "probably", "introduc*", "support*", "implement*", "add*",    "improv*",   "need*",
        "want*",    "way",       "try",      "kill*",      "means",   "indicates", "far",
        "not",      NULL};
    static frag_word_list doubts = {"can", "t", NULL}; /* "can crash", "doesn't crash" */
    for (size_t i = from; i < to; i++) {
        bool is_mine = frag_message_line_is(read, i, "when") &&
                       (frag_message_is_doing(read, i) || frag_message_line_is(read, i + 1, "i"));
        bool is_seen = frag_message_line_is(read, i + 1, "see");
        bool is_even = i > from && frag_message_line_is(read, i - 1, "even"); /* "even if" */
        if ((frag_message_line_is_any(read, i, conditions) && !is_mine && !is_even && !has_size) ||
            frag_message_line_is_any(read, i, words) ||
            (frag_message_line_is_any(read, i, doubts) && !is_seen))
            return true;
    }
    return false;
}

/* "it still runs out", "now it triggers": who says so saw it. */
static bool is_observed(const frag_message_split_line *read, sentence whole, size_t i)
{
    static frag_word_list again = {"still", "always",   "again",        "now",        "immediately",
                                   "keeps", "suddenly", "consistently", "constantly", NULL};
    return frag_message_line_has_any(read, whole.from, i, again) ||
           (i > whole.from && frag_message_line_is(read, i - 1, "it"));
}

static bool is_seen(const frag_message_split_line *read, sentence whole, size_t i)
{
    static frag_word_list people = {"i", "we", "my", "our", "me", NULL};
    return frag_message_line_has_any(read, whole.from, whole.to, people) ||
           is_observed(read, whole, i);
}

/* "crashes with", "I get", "a message that says": does the word i begin what happened? */
static bool is_event(const frag_message_split_line *read, size_t i, sentence whole)
{
    static frag_word_list ends = {"crash*", "fail",  "fails",  "failed",    "failing",
                                  "die*",   "died",  "abort*", "terminat*", "exit*",
                                  "stop*",  "quit*", "broke",  NULL};
    static frag_word_list links = {"with", "due", "error", "saying", NULL};
    static frag_word_list meets = {"get",  "gets",    "got",     "getting",    "receiv*", "hit",
                                   "hits", "see",     "hitting", "encounter*", "seeing",  "face",
                                   "saw",  "have",    "facing",  "having",     "into",    "lead*",
                                   "led",  "result*", "caus*",   "trigger*",   "throw*",  "threw",
                                   "giv*", "gave",    "became",  NULL};
    static frag_word_list runs = {"ran", "running", "still", "i", NULL};
    static frag_word_list runs_always = {"run", "runs", NULL};
    static frag_word_list tells = {"say*",   "said",  "show*",   "print*",   "pop*", "appear*",
                                   "throw*", "threw", "report*", "display*", NULL};
    static frag_word_list things = {"error",  "errors", "message", "popup", "notification",
                                    "window", "dialog", "server",  NULL};
    if (frag_message_line_is_any(read, i, ends))
        return frag_message_line_has_any(read, i + 1, i + REACH, links);
    if (frag_message_line_is_any(read, i, tells) &&
        frag_message_line_has_any(read, whole.from, whole.to, things))
        return true;
    if (frag_message_is_out_of(read, i + 1) && frag_message_line_is_any(read, i, runs))
        return is_seen(read, whole, i + 1);
    if (frag_message_is_out_of(read, i + 1) && frag_message_line_is_any(read, i, runs_always))
        return is_observed(read, whole, i);
    return frag_message_line_is_any(read, i, meets) && is_seen(read, whole, i);
}

/* "then an OOM error occurs", "today OOM happened": does what stands before the word i happen? */
static bool is_end_of_event(const frag_message_split_line *read, size_t i, sentence whole)
{
    static frag_word_list happens = {"happen*", "occur*", "appear*", "came", "arose", NULL};
    static frag_word_list links = {"when", "if", "that", "because", "whenever", "as", NULL};
    static frag_word_list days = {"then", "today", "yesterday", "after", NULL};
    return frag_message_line_is_any(read, i, happens) &&
           !frag_message_line_is_any(read, i + 1, links) &&
           (is_seen(read, whole, i) || frag_message_line_has_any(read, whole.from, i, days));
}

/* Does a size stand in what is told, near its failure? */
static bool has_size(const frag_message_split_line *part, size_t at)
{
    return frag_message_line_has_within(part, at, at + TAIL, FRAG_WORD_SIZE);
}

/* The words of what is told with the word i, its event. Empty: no event. */
static sentence told_at(const frag_message_split_line *read, size_t i, sentence whole)
{
    if (is_event(read, i, whole) && i + 1 < whole.to)
        return (sentence){.from = i + 1, .to = whole.to};
    if (i > whole.from && is_end_of_event(read, i, whole))
        return (sentence){.from = i - whole.from > TAIL ? i - TAIL : whole.from, .to = i};
    return (sentence){0};
}

/* Nothing else failed, nobody doubts it, and the words up to the failure are no system's. */
static bool is_certain(const frag_message_split_line *read, sentence whole, size_t failure,
                       bool has_figure)
{
    static frag_word_list killers = {"kill*", NULL}; /* "killed by the OOM killer" */
    frag_message_split_line part;
    size_t from = failure;
    while (from > whole.from && !frag_message_line_is(read, from - 1, "but"))
        from--;
    size_t last = failure + NAME < whole.to ? failure + NAME : whole.to - 1;
    frag_message_line_read(&part, read->text, read->words[from].at, read->words[last].end);
    return !frag_message_is_other(&part) && !is_hedged(read, from, failure, has_figure) &&
           !frag_message_line_is_any(read, failure + 1, killers);
}

frag_message_failure frag_message_find_witness(frag_message_split_line *read)
{
    frag_message_split_line part;
    sentence whole = {0};
    for (size_t i = 0; i < read->count; i++) {
        if (i >= whole.to)
            whole = sentence_of(read, i);
        sentence told = told_at(read, i, whole);
        if (told.from >= told.to)
            continue;
        frag_message_line_read(&part, read->text, read->words[told.from].at,
                               read->words[told.to - 1].end);
        frag_message_failure found = frag_message_find_failure(&part);
        if (!found.is_found || found.at > REACH ||
            !is_certain(read, whole, told.from + found.at, has_size(&part, found.at)))
            continue;
        size_t last = found.at + TAIL < part.count ? found.at + TAIL : part.count - 1;
        frag_message_line_read(read, part.text, part.words[0].at, part.words[last].end);
        return found;
    }
    return (frag_message_failure){.is_found = false};
}
