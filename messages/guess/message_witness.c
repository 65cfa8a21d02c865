#include "messages/guess/message_witness.h"

#include "messages/guess/message_aside.h"
#include "messages/guess/message_speech.h"

enum {
    REACH = 10, /* words from what happened to the memory that ran out, */
    MEMORY = 3, /* words of what ran out, */
    TAIL = 8    /* and words behind it that may tell whose it is */
};

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
static bool is_hedged(const frag_message_split_line *read, size_t from, size_t to, bool has_size,
                      bool is_quoted)
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
        "indicates", "far",     "not",      "faq",       "rather",   "prefer*",    NULL};
    static frag_word_list doubts = {"can", "t", NULL}; /* "can crash", "doesn't crash" */
    static frag_word_list past = {"ran", NULL};        /* "stops when it ran out" */
    static frag_word_list phases = {"on", "in", "at", "during", NULL}; /* "when in validation" */
    static frag_word_list meets = {"get", "run", "meet", "see", "encounter", "hit", NULL};
    static frag_word_list sights = {"see", "reproduce", "confirm", "replicate", NULL};
    static frag_word_list ran = {"ran", "have", "ve", NULL}; /* "the log says that you ran out" */
    for (size_t i = from; i < to; i++) {
        /* "the problem is when it ends, suddenly" */
        bool is_told = i > from && frag_message_line_is(read, i - 1, "is") &&
                       frag_message_line_is(read, i, "when");
        bool is_mine =
            frag_message_line_is(read, i, "when") &&
            (frag_message_is_doing(read, i) || frag_message_line_is(read, i + 1, "i") ||
             frag_message_line_has_any(read, i + 1, i + 3, past) ||
             frag_message_line_is_any(read, i + 1, phases) || is_clause_of_us(read, i, to));
        bool is_seen = frag_message_line_is_any(read, i + 1, sights);
        bool is_of_name =
            i > from && read->text->bytes[read->words[i].at - 1] == '-'; /* "v1-test" */
        bool is_mine_tried = i > from && frag_message_line_is(read, i, "try") &&
                             frag_message_line_is_any(read, i - 1, tries);  /* "when I try to" */
        bool is_will = i > from && frag_message_line_is(read, i, "will") && /* "I will get OOM" */
                       frag_message_line_is_any(read, i - 1, tries) &&
                       frag_message_line_is_any(read, i + 1, meets);
        bool is_even = i > from && frag_message_line_is(read, i - 1, "even"); /* "even if" */
        if (frag_message_line_is(read, i, "matter") || /* "no matter how low" */
            frag_message_line_is(read, i + 1, "matter") ||
            (i > from && frag_message_line_is(read, i - 1, "matter")))
            continue;
        static frag_word_list musts = {"have", "had", NULL};
        bool is_forced = false; /* "I have to take 8, since 16 would cause" */
        for (size_t j = from; j + 1 < i && frag_message_line_is(read, i, "would"); j++)
            is_forced |= frag_message_line_is_any(read, j, musts) &&
                         frag_message_line_is(read, j + 1, "to") && has_number(read, j, i);
        if (is_forced || is_will ||
            (is_quoted && ((frag_message_line_is(read, i, "you") &&
                            frag_message_line_is_any(read, i + 1, ran)) ||
                           frag_message_line_is(read, i, "your"))))
            continue;
        if ((frag_message_line_is_any(read, i, conditions) && !is_mine && !is_told && !is_even &&
             !has_size && !is_tried(read, i, to)) ||
            (frag_message_line_is_any(read, i, words) && !is_mine_tried && !is_of_name) ||
            /* "to stop getting" */
            (frag_message_line_is(read, i, "stop") && frag_message_line_ends(read, i + 1, "ing")) ||
            (frag_message_line_is_any(read, i, doubts) && !is_seen &&
             !frag_message_line_is_model(read, i)))
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
    static frag_word_list meets = {
        "meet",    "met",   "get",   "gets",       "got",     "getting",
        "receiv*", "hit",   "hits",  "see",        "hitting", "encounter*",
        "seeing",  "face",  "saw",   "have",       "facing",  "having",
        "into",    "lead*", "led",   "result*",    "caus*",   "trigger*",
        "throw*",  "threw", "giv*",  "gave",       "became",  "prompted",
        "greeted", "faced", "seems", "experienc*", "suffer*", NULL};
    static frag_word_list runs = {"ran", "running", "still", "i", "am", "m", NULL};
    static frag_word_list runs_always = {"run", "runs", "go", "goes", "went", NULL};
    static frag_word_list tells = {"say*",      "said",    "show*",   "print*", "pop*",
                                   "complain*", "appear*", "throw*",  "threw",  "report*",
                                   "display*",  "stated",  "prompt*", NULL};
    static frag_word_list things = {"error",  "errors", "message", "popup", "notification", "log",
                                    "window", "dialog", "server",  "issue", "logs",         NULL};
    static frag_word_list devices = {"cuda", "gpu", "vram", NULL};
    static frag_word_list same = {"same", NULL};
    static frag_word_list is = {"is", "s", "was", NULL};
    if (frag_message_line_is_any(read, i, ends))
        return frag_message_line_has_any(read, i + 1, i + REACH, links);
    if (frag_message_line_is_any(read, i, tells) &&
        (frag_message_line_has_any(read, whole.from, whole.to, things) ||
         is_seen(read, whole, i) || /* "it showed OOM on my card" */
         (i > whole.from && frag_message_line_is(read, i - 1, "it")))) /* "It says that" */
        return true;
    static frag_word_list tellers = {"tells", "told", NULL}; /* "it tells me that it" */
    static frag_word_list mine = {"me", "us", NULL};
    if (frag_message_line_is_any(read, i, tellers) && frag_message_line_is_any(read, i + 1, mine))
        return true;
    bool is_before_name = frag_message_is_out_of(read, i + 1);
    static frag_word_list past = {"ran", "went", NULL}; /* "The job ran out of memory" */
    if (is_before_name && i > whole.from && frag_message_line_is_any(read, i, past) &&
        read->text->line_count <= FRAG_MESSAGE_LETTER_LINES)
        return true;
    if (is_before_name && frag_message_line_is_any(read, i, runs))
        return is_seen(read, whole, i + 1);
    static frag_word_list owners = {"my", "our", NULL};
    if (is_before_name && frag_message_line_is_any(read, i, runs_always))
        return is_observed(read, whole, i) || is_tried(read, whole.from, whole.to) ||
               frag_message_line_has_any(read, whole.from, i, owners);
    /* "resulting in CUDA OOM" */
    size_t named =
        frag_message_line_is(read, i + 1, "in") || frag_message_line_is(read, i + 1, "to") ? i + 2
                                                                                           : i + 1;
    if (frag_message_line_is_any(read, i, leads) &&
        frag_message_line_is_any(read, named, devices) && frag_message_is_out_of(read, named + 1))
        return true;
    /* "Yes, it's a CUDA OOM error" */
    if (i > whole.from && frag_message_line_is(read, whole.from, "yes") &&
        frag_message_line_is(read, i - 1, "it") && frag_message_line_is_any(read, i, is))
        return true;
    bool is_same = frag_message_line_has_any(read, i + 1, i + 3, same); /* "facing the same OOM" */
    static frag_word_list firsts = {"getting", "got",    "hitting", "hit", "encountered",
                                    "facing",  "seeing", "seems",   NULL};
    bool is_first = i == whole.from && frag_message_line_is_any(read, i, firsts) &&
                    read->text->bytes[read->words[whole.to - 1].end] != '?';
    return frag_message_line_is_any(read, i, meets) &&
           (is_same || is_first || is_seen(read, whole, i));
}

/* "but an OOM error was reported when ...": of what stands before the word i */
static bool is_reported_passive(const frag_message_split_line *read, size_t i)
{
    static frag_word_list reports = {"reported", "raised", "thrown", "shown", "displayed", NULL};
    return frag_message_line_is(read, i - 1, "was") && frag_message_line_is_any(read, i, reports);
}

/* "then an OOM error occurs", "today OOM happened": does what stands before the word i happen? */
static bool is_end_of_event(const frag_message_split_line *read, size_t i, frag_word_range whole)
{
    static frag_word_list happens = {"happen*", "occur*", "appear*", "came", "arose", "pop*", NULL};
    static frag_word_list people = {"i", "we", NULL};
    if (!frag_message_line_is_any(read, i, happens) && !is_reported_passive(read, i))
        return false;
    /* "When training on two, an OOM error occurs" */
    bool is_begun = frag_message_line_is(read, whole.from, "when") &&
                    frag_message_is_doing(read, whole.from) &&
                    !frag_message_line_is(read, i + 1, "in");
    bool is_mine = frag_message_line_is(read, i + 1, "up") /* "pops up when I" */
                       ? frag_message_line_is_any(read, i + 3, people)
                       : frag_message_line_is_any(read, i + 2, people);
    static frag_word_list links = {"when", "if", "that", "because", "whenever", "as", NULL};
    static frag_word_list days = {"then", "today", "yesterday", "after", NULL};
    if (is_reported_passive(read, i))
        return is_seen(read, whole, i);
    return frag_message_line_is_any(read, i, happens) &&
           (is_mine || !frag_message_line_is_any(read, i + 1, links)) &&
           (is_begun || is_seen(read, whole, i) ||
            frag_message_line_has_any(read, whole.from, i, days) ||
            has_number(read, i + 1, i + 1 + MEMORY)); /* "happens with scene 50" */
}

/* Does a size stand in what is told, near its failure? */
static bool has_size(const frag_message_split_line *part, size_t at)
{
    return frag_message_line_has_within(part, at, at + TAIL, FRAG_WORD_SIZE);
}

/* "it keeps growing until OOM", "from 6G to 8G, and finally out of memory": how it ended */
static bool is_last_step(const frag_message_split_line *read, size_t i, frag_word_range whole)
{
    static frag_word_list ends = {"until", "finally", "eventually", NULL};
    static frag_word_list growths = {
        "increas*", "grow*", "grew",  "climb*", "rise*", "rising", "rose",    "accum*",   "goes",
        "went",     "fill*", "leak*", "from",   "up",    "higher", "rocket*", "balloon*", NULL};
    static frag_word_list runs = {"run", "runs", "ran", "it", "goes", "gives", NULL};
    if (!frag_message_line_is_any(read, i, ends))
        return false;
    size_t out = i + 1;
    while (frag_message_line_is_any(read, out, runs))
        out++;
    return frag_message_is_out_of(read, out) &&
           frag_message_line_has_any(read, whole.from, i, growths) &&
           !frag_message_line_has_any(read, whole.from, whole.from + 1, growths);
}

/* "cannot", "can't", "unable", but not "don't" */
static bool is_unable(const frag_message_split_line *read, size_t i)
{
    static frag_word_list words = {"cannot", "cant", "unable", "couldnt", NULL};
    static frag_word_list cans = {"can", "couldn", "could", NULL};
    static frag_word_list nots = {"t", "not", NULL};
    return frag_message_line_is_any(read, i, words) ||
           (frag_message_line_is_any(read, i, cans) && frag_message_line_is_any(read, i + 1, nots));
}

/* "I can't run it with a 4090", "but why is there": what follows is told of what was met, whatever
 * was asked before. */
static bool is_complaint(const frag_message_split_line *read, size_t i, frag_word_range whole)
{
    static frag_word_list acts = {"run",  "train", "load",      "use",    "start",    "generate",
                                  "open", "play",  "inference", "infer",  "finetune", "render",
                                  "even", "get",   "do",        "launch", NULL};
    static frag_word_list people = {"i", "we", NULL};
    static frag_word_list mine = {"i", "we", "my", "our", "me", NULL};
    static frag_word_list tells = {"show", "say",   "report", "give",   "keep",  "run",
                                   "fail", "throw", "always", "prompt", "still", NULL};
    static frag_word_list asks = {"is", "do", "does", "did", "am", "are", "it", "i", "there", NULL};
    bool is_act = frag_message_line_is_any(read, i, acts);
    if (!is_act && !frag_message_line_is(read, i, "why"))
        return false;
    for (size_t j = i > MEMORY ? i - MEMORY : 0; is_act && j + 1 < i; j++)
        if (frag_message_line_is_any(read, j, people) &&
            (is_unable(read, j + 1) || is_unable(read, j + 2)))
            return true;
    static frag_word_list heads = {"faq", "q", NULL};
    return frag_message_line_is(read, i, "why") && !frag_message_line_has_any(read, 0, i, heads) &&
           frag_message_line_is_any(read, i + 1, asks) &&
           (frag_message_line_has_any(read, whole.from, i + 1 + MEMORY, mine) ||
            (frag_message_line_is(read, i + 2, "it") &&
             frag_message_line_is_any(read, i + 3, tells)));
}

/* The words of what is told behind the word i, its event, or before it. Empty: no event. */
static frag_word_range told_behind(const frag_message_split_line *read, size_t i,
                                   frag_word_range whole)
{
    bool is_told = is_last_step(read, i, whole) || is_complaint(read, i, whole) ||
                   (is_event(read, i, whole) && !is_reported_passive(read, i));
    return is_told && i + 1 < whole.to ? (frag_word_range){.from = i + 1, .to = whole.to}
                                       : (frag_word_range){0};
}

static frag_word_range told_before(const frag_message_split_line *read, size_t i,
                                   frag_word_range whole)
{
    if (i > whole.from && is_end_of_event(read, i, whole))
        return (frag_word_range){.from = i - whole.from > TAIL ? i - TAIL : whole.from, .to = i};
    return (frag_word_range){0};
}

/* "What should I do, I get": does a clause that tells of a person begin with the word i? What comes
 * after a condition is told under it. */
static bool is_clause_of_me(const frag_message_split_line *read, size_t i, size_t from)
{
    static frag_word_list subjects = {"i", "we", "it", NULL};
    static frag_word_list people = {"i", "we", NULL};
    static frag_word_list conditions = {"if", "whenever", "unless", NULL};
    for (size_t j = from; j < i; j++)
        if (frag_message_line_is_any(read, j, conditions) ||
            (frag_message_line_is(read, j, "when") &&
             !frag_message_line_is_any(read, j + 1, people)))
            return false;
    bool has_comma = false; /* "on an RTX3090, I got": the number is no word */
    for (size_t at = i > from ? read->words[i - 1].end : 0; i > from && at < read->words[i].at;
         at++)
        has_comma |= read->text->bytes[at] == ',';
    return has_comma && frag_message_line_is_any(read, i, subjects);
}

/* Nothing else failed, nobody doubts it, and the words up to the failure are no system's. */
static bool is_certain(const frag_message_split_line *read, frag_word_range whole, size_t event,
                       size_t failure, bool has_figure)
{
    static frag_word_list killers = {"kill*", NULL}; /* "killed by the OOM killer" */
    frag_message_split_line part;
    size_t from = failure;
    static frag_word_list guesses = {"think", "guess", "maybe", "could", NULL};
    bool is_guessed = /* "I think it is too little?" */
        read->text->bytes[read->words[whole.to - 1].end] == '?' &&
        frag_message_line_has_any(read, whole.from, failure, guesses);
    static frag_word_list turns = {"but", "resulting", "leading", "causing", "saying", NULL};
    static frag_word_list says = {"says", "said", "saying", "tells", NULL};
    bool is_quoted = frag_message_line_is_any(read, event, says);
    bool is_plain = is_complaint(read, event, whole);
    while (from > whole.from && !frag_message_line_is_any(read, from - 1, turns) &&
           !is_clause_of_me(read, from, whole.from) && !(is_plain && from == event + 1) &&
           read->text->bytes[read->words[from].at - 1] != '(') /* "I could not (it ran out)" */
        from--;
    size_t last = failure + MEMORY < whole.to ? failure + MEMORY : whole.to - 1;
    frag_message_line_read(&part, read->text, read->words[from].at, read->words[last].end);
    return !is_guessed && !frag_message_is_other(&part) &&
           !is_hedged(read, from, failure, has_figure, is_quoted) &&
           !frag_message_line_is_any(read, failure + 1, killers);
}

/* A failure, or in what is told of a device a "memory error", "VRAM issues", ComfyUI's "allocation
 * on device". */
static frag_message_failure find_trouble(const frag_message_split_line *part)
{
    frag_message_failure found = frag_message_find_failure(part);
    for (size_t i = 0; i < part->count && !found.is_found; i++)
        if (frag_message_is_memory_trouble(part, i))
            found = (frag_message_failure){.is_found = true, .at = i};
    return found;
}

/* The failure in what is told with the word i: leaves the words of it in read. */
static frag_message_failure find_told(frag_message_split_line *read, frag_word_range told, size_t i,
                                      frag_word_range whole)
{
    frag_message_split_line part;
    frag_message_failure none = {.is_found = false};
    if (told.from >= told.to)
        return none;
    frag_message_line_read(&part, read->text, read->words[told.from].at,
                           read->words[told.to - 1].end);
    frag_message_failure found = find_trouble(&part);
    if (!found.is_found || (found.at > REACH && told.from != i) ||
        !is_certain(read, whole, i, told.from + found.at, has_size(&part, found.at)) ||
        frag_message_is_explained(read, told.from + found.at) || frag_message_is_asked(read, whole))
        return none;
    size_t last = found.at + TAIL < part.count ? found.at + TAIL : part.count - 1;
    frag_message_line_read(read, part.text, part.words[0].at, part.words[last].end);
    return found;
}

/* "With this I am out of memory at once": a sentence of a person in which memory ran out, whatever
 * the verb, that is about no text, cause or list. */
static frag_message_failure find_account(frag_message_split_line *read, frag_word_range whole)
{
    static frag_word_list people = {"i", "my", "me", "mine", NULL};
    static frag_word_list topics = {
        "about",   "guide",   "tutorial",    "article", "read",    "killer", "common", "handler",
        "wonder*", "whether", "understand*", "afraid",  "sorry",   "think",  "guess",  "from",
        "against", "clear*",  "fix*",        "solve*",  "resolv*", NULL};
    if (!frag_message_line_has_any(read, whole.from, whole.to, people) ||
        frag_message_line_has_any(read, whole.from, whole.to, topics))
        return (frag_message_failure){.is_found = false};
    return find_told(read, whole, whole.from, whole);
}

/* Does the line name anything that can run out? */
static bool names_memory(const frag_message_split_line *read)
{
    const uint32_t kinds =
        FRAG_WORD_MEMORY | FRAG_WORD_ALLOCATE | FRAG_WORD_LACK | FRAG_WORD_EXCEED;
    if ((read->kinds & kinds) != 0)
        return true;
    for (size_t i = 0; i < read->count; i++)
        if (frag_message_line_is(read, i, "allocated") || /* "cannot be allocated" */
            (frag_message_line_has(read, i, FRAG_WORD_NUMBER) && frag_message_is_status(read, i)))
            return true;
    return false;
}

/* What a person tells of a program that ran out of memory, as something that happened, not as what
 * may happen, is asked or was mended: leaves what follows "crashed" in read. */
frag_message_failure frag_message_find_witness(frag_message_split_line *read)
{
    frag_word_range whole = {0};
    for (size_t i = names_memory(read) ? 0 : read->count; i < read->count; i++) {
        if (i >= whole.to)
            whole = frag_message_line_sentence(read, i, ".?!;");
        frag_message_failure found = find_told(read, told_behind(read, i, whole), i, whole);
        if (!found.is_found)
            found = find_told(read, told_before(read, i, whole), i, whole);
        if (found.is_found)
            return found;
    }
    frag_message_failure found = frag_message_find_speech(read);
    whole = (frag_word_range){0};
    for (size_t i = names_memory(read) ? 0 : read->count; i < read->count && !found.is_found;
         i = whole.to) {
        whole = frag_message_line_sentence(read, i, ".?!;");
        found = find_account(read, whole);
    }
    return found;
}
