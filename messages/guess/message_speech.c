#include "messages/guess/message_speech.h"

#include <string.h>

#include "messages/guess/message_aside.h"

enum {
    NEAR = 4,         /* words between two that belong together */
    CLAUSE = 12,      /* words from what was full to what came of it */
    BEHIND = 80,      /* bytes of the heading of a form */
    SHORT_WORDS = 60, /* of so many words is what a person says in short */
    CARD_MIN = 1000,  /* "3060": the name of a card is a number from here */
    CARD_MAX = 9999   /* to here */
};

/* What a number is tried of, or whose it is. */
static frag_word_list settings = {"batch",  "size", "bs",  "length", "resolution", "tokens",
                                  "frames", "rank", "gpu", "worker", "node",       NULL};
static frag_word_list people = {"i", "we", "my", "our", "me", "mine", "anyone", NULL};

/* "when memory is short", but not "when I load it", "when loading it" */
static bool is_whenever(const frag_message_split_line *read, size_t i)
{
    static frag_word_list me = {"i", "we", "in", "on", "at", NULL}; /* "when in the lobby" */
    return frag_message_line_is(read, i, "when") && !frag_message_line_is_any(read, i + 1, me) &&
           !frag_message_line_ends(read, i + 1, "ing");
}

/* "I can't run this, it OOMs": what is denied ends at a comma, or at "but" */
static bool is_denied(const frag_message_split_line *read, size_t from, size_t to)
{
    static frag_word_list words = {"no", "longer", "never", "without", "not", "t", NULL};
    static frag_word_list subjects = {"it", "i", "we", "my", "always", NULL};
    for (size_t i = from; i < to; i++)
        if (i > from && frag_message_line_is_any(read, i, subjects) &&
            (strchr(",(", read->text->bytes[read->words[i - 1].end]) != NULL ||
             frag_message_line_is(read, i - 1, "but")))
            from = i;
    return frag_message_line_has_any(read, from, to, words);
}

/* What may happen, is asked, mended, avoided, or happens to anybody. */
static bool is_doubted(const frag_message_split_line *read, size_t from, size_t to)
{
    static frag_word_list words = {
        "if",       "whenever", "may",       "might",    "could",     "would",   "should",
        "will",     "ll",       "avoid*",    "prevent*", "fix*",      "how",     "what",
        "you",      "your",     "they",      "users",    "people",    "someone", "unless",
        "example",  "maybe",    "perhaps",   "so",       "until",     "test*",   "handl*",
        "catch*",   "reduc*",   "solve*",    "resolv*",  "can",       "does",    "add*",
        "support*", "often",    "sometimes", "usually",  "typically", "likely",  NULL};
    static frag_word_list behind = {"not", "t", "set", NULL}; /* "could not", "the test set" */
    for (size_t i = from; i < to; i++)
        if ((frag_message_line_is_any(read, i, words) && !frag_message_line_is_model(read, i) &&
             !frag_message_line_is_any(read, i + 1, behind)) ||
            is_whenever(read, i))
            return true;
    return is_denied(read, from, to);
}

/* "Does it OOM on 8 GB?" */
static bool is_asked(const frag_message_split_line *read, frag_word_range sentence)
{
    static frag_word_list openers = {"is",    "does",   "do",   "will", "would", "can",
                                     "could", "has",    "did",  "are",  "why",   "how",
                                     "what",  "should", "have", NULL};
    return frag_message_line_is_any(read, sentence.from, openers) &&
           read->text->bytes[read->words[sentence.to - 1].end] == '?';
}

/* "on a T4", "my 3060", "with 12 GB" */
static bool names_card(const frag_message_split_line *read, size_t from, size_t to)
{
    for (size_t i = from; i < to && i < read->count; i++) {
        const frag_message_word *word = &read->words[i];
        bool is_model = frag_message_line_is_model(read, i);
        bool is_number = frag_message_line_has(read, i, FRAG_WORD_NUMBER) &&
                         word->amount.bytes >= CARD_MIN && word->amount.bytes <= CARD_MAX;
        if (is_model || is_number ||
            frag_message_line_has(read, i, FRAG_WORD_SIZE | FRAG_WORD_DEVICE))
            return true;
    }
    return false;
}

static bool is_short(const frag_message_split_line *read)
{
    size_t words = 0;
    for (size_t at = 0; at < read->text->length && words <= SHORT_WORDS; at++)
        words += (read->text->marks[at] & FRAG_MESSAGE_WORD) != 0;
    return words <= SHORT_WORDS;
}

static bool is_mine(const frag_message_split_line *read, frag_word_range sentence)
{
    return frag_message_line_has_any(read, sentence.from, sentence.to, people);
}

/* "then we OOM.", "rank 3 OOM, the others do not" */
static bool is_of_somebody(const frag_message_split_line *read, size_t i, frag_word_range sentence)
{
    static frag_word_list me = {"i", "we", NULL};
    static frag_word_list ranks = {"rank", "gpu", "worker", "device", "node", NULL};
    bool is_end = i + 1 == sentence.to || read->text->bytes[read->words[i].end] == ',';
    if (!is_end || i == sentence.from || !frag_message_line_is(read, i, "oom"))
        return false;
    return frag_message_line_is_any(read, i - 1, me) ||
           (i > sentence.from + 1 && frag_message_line_has(read, i - 1, FRAG_WORD_NUMBER) &&
            frag_message_line_is_any(read, i - 2, ranks));
}

/* "It OOMs at step 20", "OOM'd after ten minutes", "keeps OOMing"; "fewer OOMs" are only counted.
 */
static bool is_verb(const frag_message_split_line *read, size_t i, frag_word_range sentence)
{
    static frag_word_list verbs = {"oomed", "ooming", NULL};
    static frag_word_list kinds = {
        "fewer",  "no",       "any",    "the",      "of",      "more", "many", "cuda",
        "gpu",    "some",     "these",  "those",    "random",  "all",  "few",  "several",
        "cause*", "avoid*",   "fix*",   "prevent*", "handle*", "for",  "with", "from",
        "about",  "to",       "memory", "kernel",   "host",    "ram",  "cpu",  "zero",
        "or",     "reported", "see",    "known",    NULL};
    static frag_word_list ends = {"d", "ed", "ing", NULL};
    static frag_word_list links = {"at",    "on",          "with", "during", "in",
                                   "after", "when",        "for",  "every",  "while",
                                   "again", "immediately", "even", "right",  NULL};
    static frag_word_list tails = {"med", "ming",
                                   NULL}; /* "OOMed": split before its last capital */
    if (frag_message_line_is_any(read, i, verbs) ||
        (frag_message_line_is(read, i, "oo") && frag_message_line_is_any(read, i + 1, tails) &&
         read->words[i].end == read->words[i + 1].at))
        return true;
    if (frag_message_line_is(read, i, "oom") && frag_message_line_is_any(read, i + 1, ends) &&
        read->words[i + 1].at == read->words[i].end + 1)
        return true;
    bool is_behind = i > sentence.from;
    bool is_split = frag_message_line_is(read, i, "oom") &&
                    frag_message_line_is(read, i + 1, "s") &&
                    read->words[i + 1].at == read->words[i].end + 1; /* "OOM's" */
    size_t behind = is_split ? i + 2 : i + 1;
    bool is_soon = frag_message_line_is(read, behind, "as") && /* "as soon as it starts" */
                   frag_message_line_is(read, behind + 1, "soon");
    /* "2 OOMs on node 3" counts, "batch 16 OOMs on my card" says what happened */
    bool is_count = is_behind && frag_message_line_has(read, i - 1, FRAG_WORD_NUMBER) &&
                    !(i > sentence.from + 1 && frag_message_line_is_any(read, i - 2, settings));
    return (is_split || frag_message_line_is(read, i, "ooms")) && !is_count &&
           !(is_behind && frag_message_line_is_any(read, i - 1, kinds)) &&
           (behind == sentence.to || is_soon || frag_message_line_is_any(read, behind, links));
}

/* "OOM", "an OOM", "CUDA out of memory" stands at the word i. */
static bool is_object(const frag_message_split_line *read, size_t i)
{
    static frag_word_list befores = {"a",   "an",   "the",    "cuda",     "gpu",
                                     "hip", "vram", "random", "constant", NULL};
    size_t end = i + NEAR - 1;
    while (i < end && frag_message_line_is_any(read, i, befores))
        i++;
    return frag_message_is_out_of(read, i) || frag_message_line_is(read, i, "ooms");
}

/* "Without it, even batch size 2 gives": a trial that was made, whatever stands before it */
static bool is_even_tried(const frag_message_split_line *read, size_t i, frag_word_range sentence)
{
    bool has_number = false;
    for (size_t j = i; j > sentence.from && j + CLAUSE > i; j--) {
        if (frag_message_line_is(read, j - 1, "even"))
            return has_number && !is_doubted(read, j, i);
        has_number |= frag_message_line_has(read, j - 1, FRAG_WORD_NUMBER | FRAG_WORD_SIZE);
    }
    return false;
}

/* "with batch size 4 out of memory": what was tried is said in front of it */
static bool is_setting_tried(const frag_message_split_line *read, size_t i,
                             frag_word_range sentence)
{
    return i > sentence.from + 1 && frag_message_is_out_of(read, i) &&
           frag_message_line_has(read, i - 1, FRAG_WORD_NUMBER) &&
           frag_message_line_is_any(read, i - 2, settings) && !is_doubted(read, sentence.from, i);
}

/* "on a T4 it goes OOM", "getting OOM on 12 GB", "will OOM when the batch is above 4" */
static bool goes_out(const frag_message_split_line *read, size_t i, frag_word_range sentence)
{
    static frag_word_list runs = {"training",   "it",         "validation", "inference",
                                  "job",        "process",    "model",      "script",
                                  "finetuning", "evaluation", NULL};
    static frag_word_list links = {"on", "at", "in", "after", "during", "with", "even", NULL};
    bool is_run = i > sentence.from && frag_message_line_is_any(read, i - 1, runs) &&
                  (i + 2 >= sentence.to || frag_message_line_is_any(read, i + 2, links));
    static frag_word_list goes = {"goes", "went", "runs", "run", "ran", "going", NULL};
    static frag_word_list gets = {"gets", "getting", "hits",   "hit", "gives",   "gave",
                                  "got",  "see",     "seeing", "saw", "hitting", NULL};
    bool is_gone =
        frag_message_line_is_any(read, i, goes) && frag_message_line_is(read, i + 1, "oom");
    bool is_got = frag_message_line_is_any(read, i, gets) && is_object(read, i + 1);
    static frag_word_list starts = {"still", "keep", "keeps", "always", NULL};
    bool is_start =
        i == sentence.from || /* "Still hitting OOM": who says it */
        (i == sentence.from + 1 && frag_message_line_is_any(read, sentence.from, starts)) ||
        (i > sentence.from && /* "Started with 16, got OOM" */
         read->text->bytes[read->words[i - 1].end] == ',');
    static frag_word_list conditions = {"when*", "if", "above", "beyond", "with", "after", NULL};
    bool has_number = false;
    for (size_t j = i + 2; j < sentence.to; j++)
        has_number |= frag_message_line_has(read, j, FRAG_WORD_NUMBER | FRAG_WORD_SIZE) &&
                      frag_message_line_has_any(read, i + 2, j, conditions);
    /* "When generating a large image, it will OOM" */
    bool is_tried =
        frag_message_line_is(read, i, "will") && frag_message_line_is(read, i + 1, "oom") &&
        (frag_message_is_doing(read, sentence.from) ||
         (i == sentence.from + 1 && frag_message_line_is(read, sentence.from, "it") && has_number));
    if (is_tried || ((is_gone || is_got) && is_even_tried(read, i, sentence)))
        return true;
    return (is_gone || is_got) && !is_doubted(read, sentence.from, i) &&
           (is_run || is_start || is_mine(read, sentence) ||
            names_card(read, sentence.from, sentence.to));
}

/* "Blender says out of memory", "torch throws an out of memory exception" */
static bool is_reported(const frag_message_split_line *read, size_t i, frag_word_range sentence)
{
    static frag_word_list reports = {"says",  "said",     "throws",  "threw",     "gives", "gave",
                                     "shows", "reported", "reports", "complains", NULL};
    for (size_t j = i + 2; j < sentence.to; j++)
        if (is_whenever(read, j) || frag_message_line_is(read, j, "if"))
            return false; /* what a program does in general */
    return frag_message_line_is_any(read, i, reports) && i > sentence.from &&
           i <= sentence.from + NEAR && is_object(read, i + 1) &&
           !is_doubted(read, sentence.from, i) && is_short(read);
}

/* "Same here, OOM on a 3090", "+1, CUDA out of memory" */
static bool is_agreement(const frag_message_split_line *read, size_t i, frag_word_range sentence)
{
    static frag_word_list heres = {"here", "issue", "problem", "error", "too", "thing", NULL};
    static frag_word_list heads = {"same", "me", "similar", NULL};
    size_t from = sentence.from;
    bool is_counted = frag_message_line_has(read, from, FRAG_WORD_NUMBER) &&
                      read->words[from].at > 0 &&
                      read->text->bytes[read->words[from].at - 1] == '+';
    bool is_same = (frag_message_line_is_any(read, from, heads) &&
                    frag_message_line_is_any(read, from + 1, heres)) ||
                   is_counted;
    return is_same && i > from && i <= from + CLAUSE && frag_message_is_out_of(read, i) &&
           !is_doubted(read, from, i);
}

/* "fills up", "goes up to 24 GB", "gets eaten", "is exhausted", "runs out", "maxed out" */
static bool is_filling(const frag_message_split_line *read, size_t i)
{
    static frag_word_list fills = {"fill*",   "max*",  "eat*", "saturat*",  "satur*",
                                   "explod*", "blow*", "blew", "overflow*", NULL};
    static frag_word_list rises = {"goes",  "went",   "climb*", "rise*",   "rising",
                                   "jump*", "shoot*", "grow*",  "rocket*", NULL};
    static frag_word_list states = {"is", "was", "gets", "got", "are", "becomes", NULL};
    static frag_word_list fulls = {"full", "exhausted", "eaten",    "insufficient",
                                   "gone", "maxed",     "depleted", NULL};
    static frag_word_list runs = {"runs", "ran", "running", "run", NULL};
    static frag_word_list ups = {"up", "to", NULL};
    static frag_word_list alls = {"all", "whole", "entire", "every", NULL};
    static frag_word_list uses = {"use*", "using", "tak*", "consum*", "eat*", "hog*", NULL};
    if (frag_message_line_is_any(read, i, fills))
        return true;
    if (frag_message_line_is_any(read, i, rises))
        return frag_message_line_has_any(read, i + 1, i + NEAR, ups) ||
               frag_message_line_has_within(read, i + 1, i + NEAR, FRAG_WORD_SIZE);
    if (frag_message_line_is_any(read, i, uses))
        return frag_message_line_has_any(read, i + 1, i + NEAR, alls);
    if (frag_message_line_is_any(read, i, runs))
        return frag_message_line_is(read, i + 1, "out") && !frag_message_line_is(read, i + 2, "of");
    static frag_word_list beyond = {"above", "over", "past", "beyond", "around", NULL};
    if (frag_message_line_is(read, i, "exceeds")) /* "the card exceeds 18 GB" */
        return frag_message_line_has(read, i + 1, FRAG_WORD_SIZE);
    return frag_message_line_is_any(read, i, states) &&
           (frag_message_line_is_any(read, i + 1, fulls) ||
            (frag_message_line_has_any(read, i + 1, i + NEAR, beyond) && /* "is above 3950 MB" */
             frag_message_line_has_within(read, i + 2, i + NEAR + 1, FRAG_WORD_SIZE)));
}

/* "VRAM", "GPU memory", "the card's memory" between the words from and to */
static bool has_device_memory(const frag_message_split_line *read, size_t from, size_t to)
{
    static frag_word_list cards = {"card", "gpu", "graphics", "video", NULL};
    for (size_t i = from; i < to && i < read->count; i++)
        if (frag_message_line_is(read, i, "vram") ||
            ((frag_message_line_has(read, i, FRAG_WORD_MEMORY) ||
              frag_message_line_is(read, i, "ram")) &&
             frag_message_line_has_any(read, i > NEAR - 1 ? i - (NEAR - 1) : 0, i, cards)))
            return true;
    return false;
}

static bool has_died(const frag_message_split_line *read, size_t from, size_t to)
{
    static frag_word_list ends = {"crash*", "die*",    "died",   "dying", "fail*",
                                  "freez*", "froze",   "reset*", "hang*", "hung",
                                  "abort*", "stop*",   "quit*",  "kill*", "exit*",
                                  "errors", "errored", "lock*",  NULL};
    return frag_message_line_has_any(read, from, to, ends);
}

/* "VRAM fills up to 100% and then the app crashes", "my GPU memory is exhausted after three
 * epochs": it was full, and something came of it, or it is mine. */
static bool is_full(const frag_message_split_line *read, size_t i, frag_word_range sentence)
{
    static frag_word_list after = {"after", "when", "at", "on", "during", "every", "with", NULL};
    static frag_word_list ends = {"exhausted", "out", "insufficient", "up", NULL};
    static frag_word_list bursts = {"explod*", "blow*", "blew", "overflow*", NULL};
    size_t to = i + CLAUSE < sentence.to ? i + CLAUSE : sentence.to;
    static frag_word_list wholes = {"all", "my", "the", NULL};
    /* "It eats all 24GB and then errors", "maxes out my 8GB card" */
    bool is_all = frag_message_line_has_any(read, i + 1, i + 3, wholes) &&
                  frag_message_line_has_within(read, i + 2, i + NEAR, FRAG_WORD_SIZE);
    if (!is_filling(read, i) || is_doubted(read, sentence.from, i) ||
        !(is_all || has_device_memory(read, sentence.from, i + NEAR + 2)))
        return false;
    bool is_end = frag_message_line_has_any(read, i + 1, i + 2, ends);
    bool is_told = is_mine(read, sentence) || is_short(read);
    return is_told &&
           (has_died(read, i + 1, to) || frag_message_line_is_any(read, i, bursts) ||
            (is_end && (i + 2 >= sentence.to || frag_message_line_is_any(read, i + 2, after))));
}

/* "It crashed after some epochs due to GPU memory that keeps increasing" */
static bool is_cause(const frag_message_split_line *read, size_t i, frag_word_range sentence)
{
    static frag_word_list causes = {"due", "because", "since", "when", "once", "after", NULL};
    static frag_word_list growths = {"increas*", "grow*", "ris*", "accumulat*", "leak*",
                                     "high",     "full",  "all",  NULL};
    return frag_message_line_is_any(read, i, causes) && has_died(read, sentence.from, i) &&
           has_device_memory(read, i + 1, i + NEAR + 2) &&
           frag_message_line_has_any(read, i + 2, i + 2 * NEAR, growths) &&
           !is_doubted(read, sentence.from, i);
}

/* "the job gets killed with an OOM" */
static bool is_killed(const frag_message_split_line *read, size_t i, frag_word_range sentence)
{
    static frag_word_list links = {"with", "by", "due", "to", "of", "from", "because", NULL};
    static frag_word_list wishes = {"need*", "want*", "way", "tell", NULL};
    size_t link = i + 1;
    while (link < i + NEAR && frag_message_line_is_any(read, link, links))
        link++;
    return has_died(read, i, i + 1) && link > i + 1 && is_object(read, link) &&
           !is_doubted(read, sentence.from, i) && is_short(read) &&
           !frag_message_line_has_any(read, sentence.from, i, wishes);
}

/* "My GPU runs out of space when loading the model" */
static bool is_without_space(const frag_message_split_line *read, size_t i,
                             frag_word_range sentence)
{
    static frag_word_list runs = {"runs", "ran", "running", "run", NULL};
    static frag_word_list rooms = {"space", "room", NULL};
    return frag_message_line_is_any(read, i, runs) && frag_message_line_is(read, i + 1, "out") &&
           frag_message_line_is(read, i + 2, "of") &&
           frag_message_line_is_any(read, i + 3, rooms) && is_mine(read, sentence) &&
           names_card(read, sentence.from, i) && !is_doubted(read, sentence.from, i);
}

/* "VRAM leaks until it crashes", "it crashes at 5.9 GB VRAM" */
static bool is_fatal(const frag_message_split_line *read, size_t i, frag_word_range sentence)
{
    static frag_word_list growths = {"leak*", "grow*", "increas*", "ris*", "climb*", NULL};
    static frag_word_list untils = {"until", "till", NULL};
    static frag_word_list outs = {"oom", "ooms", NULL};
    bool is_end = frag_message_line_is_any(read, i, untils) &&
                  (has_died(read, i + 1, i + NEAR) ||
                   frag_message_line_has_any(read, i + 1, i + NEAR, outs)) &&
                  frag_message_line_has_any(read, sentence.from, i, growths);
    bool is_point = has_died(read, i, i + 1) && frag_message_line_is(read, i + 1, "at") &&
                    frag_message_line_has(read, i + 2, FRAG_WORD_SIZE);
    return (is_end || is_point) && has_device_memory(read, sentence.from, i + NEAR + 1) &&
           !is_doubted(read, sentence.from, i);
}

/* "I have an 8G GPU, sometimes it will crash as out of memory" */
static bool is_owner(const frag_message_split_line *read, size_t i, frag_word_range sentence)
{
    static frag_word_list doubts = {"if", "when*",  "may", "might", "could", "would", "not",
                                    "t",  "avoid*", "how", "can",   "what",  "never", NULL};
    bool is_mine = false;
    for (size_t j = sentence.from; j < i; j++)
        is_mine |= frag_message_line_is(read, j, "i") && frag_message_line_is(read, j + 1, "have");
    return is_mine && frag_message_is_out_of(read, i) && names_card(read, sentence.from, i) &&
           has_died(read, i > NEAR ? i - NEAR : 0, i) &&
           !frag_message_line_has_any(read, sentence.from, i, doubts);
}

/* "I keep hitting the VRAM limit" */
static bool is_at_limit(const frag_message_split_line *read, size_t i, frag_word_range sentence)
{
    static frag_word_list hits = {"hit", "hits", "hitting", "reach*", "exceed*", NULL};
    static frag_word_list limits = {"limit", "limits", "cap", "ceiling", NULL};
    return frag_message_line_is_any(read, i, hits) && has_device_memory(read, i + 1, i + NEAR) &&
           frag_message_line_has_any(read, i + 2, i + NEAR + 1, limits) &&
           is_mine(read, sentence) && !is_doubted(read, sentence.from, i);
}

/* "the same model no longer fits in memory" */
static bool is_outgrown(const frag_message_split_line *read, size_t i, frag_word_range sentence)
{
    static frag_word_list fits = {"fit", "fits", NULL};
    return frag_message_line_is(read, i, "no") && frag_message_line_is(read, i + 1, "longer") &&
           frag_message_line_is_any(read, i + 2, fits) &&
           frag_message_line_has_within(read, i + 3, i + 2 + NEAR,
                                        FRAG_WORD_MEMORY | FRAG_WORD_DEVICE) &&
           !is_doubted(read, sentence.from, i);
}

/* "this does not fit on my 3080", "even a batch of 1 doesn't fit" */
static bool is_unfit(const frag_message_split_line *read, size_t i, frag_word_range sentence)
{
    static frag_word_list nots = {"not", "t", "cannot", "cant", "wont", "doesnt", "unable", NULL};
    static frag_word_list my = {"my", "our", "i", "we", NULL};
    static frag_word_list batches = {"batch*", NULL};
    size_t fit = i + 1;
    while (fit < i + NEAR && !frag_message_line_is(read, fit, "fit"))
        fit++;
    if (!frag_message_line_is_any(read, i, nots) || !frag_message_line_is(read, fit, "fit"))
        return false;
    size_t from = i > sentence.from ? i - 1 : i; /* "can't" */
    bool is_even = frag_message_line_is(read, sentence.from, "even");
    bool is_batch = frag_message_line_has_any(read, sentence.from, i, batches);
    bool is_my = frag_message_line_has_any(read, sentence.from, sentence.to, my);
    return !is_doubted(read, sentence.from, from) &&
           ((is_even && is_batch) || (is_my && names_card(read, fit + 1, fit + 2 * NEAR)));
}

/* "needs more than my 12GB", "too big for my card", "12 GB is not enough, it crashes" */
static bool is_above_mine(const frag_message_split_line *read, size_t i, frag_word_range sentence)
{
    static frag_word_list much = {"big", "large", "much", "heavy", NULL};
    static frag_word_list cards = {"card", "gpu", "gpus", "vram", NULL};
    static frag_word_list states = {"is", "was", "isn", "are", NULL};
    static frag_word_list nots = {"not", "t", NULL};
    static frag_word_list enough = {"enough", "sufficient", NULL};
    static frag_word_list others = {"ram", "swap", "disk", NULL};
    static frag_word_list haves = {"have", "has", "got", NULL};
    bool is_more = frag_message_line_is(read, i, "more") &&
                   frag_message_line_is(read, i + 1, "than") &&
                   (frag_message_line_is(read, i + 2, "my") || /* "more than the 24GB I have" */
                    (frag_message_line_is(read, i + 2, "the") &&
                     frag_message_line_has_any(read, i + NEAR, i + 2 * NEAR, haves)));
    size_t last = i + 2; /* "too much VRAM for my" */
    while (last < i + NEAR && !frag_message_line_is(read, last, "for"))
        last++;
    bool is_too =
        frag_message_line_is(read, i, "too") && frag_message_line_is_any(read, i + 1, much) &&
        frag_message_line_is(read, last, "for") && frag_message_line_is(read, last + 1, "my");
    size_t from = is_more ? i + 3 : last + 2;
    if ((is_more || is_too) && !is_doubted(read, sentence.from, i))
        return names_card(read, from, from + 2) ||
               frag_message_line_has_any(read, from, from + 2, cards);
    static frag_word_list my = {"my", "our", NULL};
    static frag_word_list suppositions = {"think", "guess", "believe", "suppose", "say*", NULL};
    size_t state = i + 1;
    while (state < i + 2 * NEAR && !frag_message_line_is_any(read, state, states))
        state++;
    bool is_my = frag_message_line_has_any(read, i > 2 ? i - 2 : 0, state, my) &&
                 !frag_message_line_has_any(read, sentence.from, i, suppositions);
    return frag_message_line_has(read, i, FRAG_WORD_SIZE) && state < sentence.to &&
           frag_message_line_has_any(read, state + 1, state + NEAR, enough) &&
           (frag_message_line_has_any(read, state + 1, state + 3, nots) ||
            frag_message_line_is(read, state, "isn")) &&
           !is_doubted(read, sentence.from, i) &&
           (is_my || has_died(read, state + NEAR, sentence.to)) &&
           !frag_message_line_has_any(read, i + 1, state, others);
}

/* "The model takes 25 GB, my card has 24", "it tries to allocate 40 GB on my 24 GB card" */
static bool is_larger(const frag_message_split_line *read, size_t i, frag_word_range sentence)
{
    static frag_word_list takes = {"take*",    "need*",     "require*", "want*",
                                   "allocate", "allocates", NULL};
    static frag_word_list mine = {"my", "our", "only", NULL};
    static frag_word_list cards = {"card", "gpu", "vram", NULL};
    if (!frag_message_line_is_any(read, i, takes) || is_doubted(read, sentence.from, i))
        return false;
    size_t need = i + 1;
    while (need < i + NEAR && !frag_message_line_has(read, need, FRAG_WORD_SIZE))
        need++;
    if (!frag_message_line_has(read, need, FRAG_WORD_SIZE))
        return false;
    for (size_t j = need + 1; j < sentence.to; j++)
        if (frag_message_line_has(read, j, FRAG_WORD_SIZE))
            return read->words[j].amount.is_known && read->words[need].amount.is_known &&
                   read->words[j].amount.bytes < read->words[need].amount.bytes &&
                   frag_message_line_has_any(read, need + 1, j, mine) &&
                   frag_message_line_has_any(read, need + 1, j + NEAR, cards);
    return false;
}

bool frag_message_is_memory_trouble(const frag_message_split_line *read, size_t i)
{
    static frag_word_list names = {"error",    "errors",   "issue",  "issues",  "problem",
                                   "problems", "shortage", "crash*", "trouble", NULL};
    static frag_word_list others = {"ecc",     "uncorrect*", "host",   "system", "cpu",
                                    "illegal", "shared",     "parity", "ram",    NULL};
    if (frag_message_line_has(read, i, FRAG_WORD_ALLOCATE) &&
        frag_message_line_is(read, i + 1, "on") && frag_message_line_is(read, i + 2, "device"))
        return true;
    /* "My card has 4 GB of VRAM. That is not enough to run it" */
    static frag_word_list acts = {"run", "load", "train", "start", "generate", "render", NULL};
    static const char *const memories[] = {"vram", "gpumemory", "graphicsmemory", "videomemory",
                                           NULL};
    if (frag_message_line_is(read, i, "not") && frag_message_line_is(read, i + 1, "enough") &&
        frag_message_line_is(read, i + 2, "to") && frag_message_line_is_any(read, i + 3, acts) &&
        frag_message_stands_near(read->text, read->words[i].at, memories))
        return true;
    /* "MemoryError" is Python's */
    return frag_message_line_has(read, i, FRAG_WORD_MEMORY) &&
           frag_message_line_is_any(read, i + 1, names) &&
           (read->text->marks[read->words[i + 1].at] & FRAG_MESSAGE_WORD) != 0 &&
           !frag_message_line_has_any(read, 0, read->count, others) &&
           (frag_message_is_about_device(read->text, read->words[i].at) ||
            names_card(read, i + 2, read->count));
}

/* "### Actual behavior\nOOM": what a form asks for */
static bool is_answer(const frag_message_split_line *read, size_t i)
{
    static const char *const asked[] = {"actual",  "current", "happen", "observed",
                                        "problem", "bug",     "error",  NULL};
    const frag_message_text *text = read->text;
    size_t start = frag_message_text_line_start(text, read->words[0].at);
    size_t above = start;
    while (above > 0 && text->bytes[above - 1] == '\n')
        above--;
    size_t head = frag_message_text_line_start(text, above > 0 ? above - 1 : 0);
    if (i > 1 || read->count > NEAR || above == 0 || above - head > BEHIND ||
        strspn(text->bytes + head, "#*") == 0 || !frag_message_is_out_of(read, i) ||
        text->bytes[head + 1] == '[') /* "#[error(...)]" of Rust */
        return false;
    for (size_t at = head; at < above; at++)
        for (size_t j = 0; asked[j] != NULL; j++)
            if (strncmp(text->bytes + at, asked[j], strlen(asked[j])) == 0)
                return true;
    return false;
}

/* Behind "OOM error", "memory issues", "allocation on device" at the word i; 0: none stands there
 */
static size_t name_end(const frag_message_split_line *read, size_t i)
{
    static frag_word_list names = {"error",  "errors",  "issue",    "issues",
                                   "crash*", "problem", "problems", NULL};
    bool is_trouble = frag_message_is_memory_trouble(read, i);
    bool is_on = is_trouble && frag_message_line_is(read, i + 1, "on");
    size_t end = is_on ? i + 3 : i + 1;
    if (!is_trouble && !frag_message_line_is(read, i, "oom"))
        return 0;
    return frag_message_line_is_any(read, end, names) ? end + 1 : end;
}

/* "OOM on the lowest settings", "CUDA OOM error when loading", "Training OOM", "GPU memory error":
 * a title */
static bool is_headline(const frag_message_split_line *read, size_t i, frag_word_range sentence)
{
    static frag_word_list devices = {"cuda", "gpu", "vram", NULL};
    static frag_word_list links = {"on", "with", "when",  "during", "after",   "while",
                                   "at", "even", "again", "in",     "despite", NULL};
    static frag_word_list others = {"about",  "on",    "for",  "the",    "or", "and",     "of",
                                    "detect", "guard", "risk", "issues", "an", "explain", NULL};
    size_t end = read->words[0].at == 0 && is_short(read) ? name_end(read, i) : 0;
    if (end == 0 || frag_message_is_item(read) || frag_message_is_table_row(read))
        return false;
    bool is_word = (read->text->marks[read->words[i].at] & FRAG_MESSAGE_WORD) != 0;
    if (end >= read->count)
        return is_word && (i > 0 || end > i + 1) && read->count <= NEAR &&
               !is_doubted(read, 0, i) && !frag_message_line_has_any(read, 0, i, others);
    bool is_first = i == 0 || (i == 1 && frag_message_line_is_any(read, 0, devices));
    bool is_linked = frag_message_line_is_any(read, end, links) && end + 1 < sentence.to;
    return is_first && (is_linked || names_card(read, end, end + 1)) &&
           !is_doubted(read, end + 1, sentence.to);
}

/* One of these stands in everything that is said so. */
static bool may_say(const frag_message_split_line *read)
{
    static frag_word_list words = {
        "oom*",    "oo",       "fit",     "fill*",      "max*",         "eat*",     "eaten",
        "full",    "out",      "too",     "more",       "enough",       "hit*",     "reach*",
        "have",    "satur*",   "explod*", "gone",       "use*",         "using",    "tak*",
        "consum*", "hog*",     "exceed*", "exhausted",  "insufficient", "depleted", "up",
        "to",      "memory",   "vram",    "allocation", "blow*",        "blew",     "fits",
        "need*",   "require*", "want*",   "allocate*",  "sufficient",   "no",       NULL};
    return frag_message_line_has_any(read, 0, read->count, words);
}

frag_message_failure frag_message_find_speech(const frag_message_split_line *read)
{
    if (!may_say(read) || frag_message_has_placeholder(read))
        return (frag_message_failure){.is_found = false};
    frag_word_range sentence = {0};
    for (size_t i = 0; i < read->count; i++) {
        if (i >= sentence.to)
            sentence = frag_message_line_sentence(read, i, ".?!;");
        bool is_said = ((is_verb(read, i, sentence) || is_of_somebody(read, i, sentence)) &&
                        !is_doubted(read, sentence.from, i)) ||
                       goes_out(read, i, sentence) || is_setting_tried(read, i, sentence) ||
                       is_reported(read, i, sentence) || is_agreement(read, i, sentence) ||
                       is_killed(read, i, sentence) || is_without_space(read, i, sentence) ||
                       is_outgrown(read, i, sentence) || is_full(read, i, sentence) ||
                       is_cause(read, i, sentence) || is_fatal(read, i, sentence) ||
                       is_owner(read, i, sentence) || is_unfit(read, i, sentence) ||
                       is_above_mine(read, i, sentence) || is_larger(read, i, sentence) ||
                       is_headline(read, i, sentence) || is_at_limit(read, i, sentence) ||
                       is_answer(read, i);
        if (is_said && !is_asked(read, sentence))
            return (frag_message_failure){.is_found = true, .at = i};
    }
    return (frag_message_failure){.is_found = false};
}
