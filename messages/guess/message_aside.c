#include "messages/guess/message_aside.h"

#include <string.h>

enum {
    NEAR = 8,     /* words between two that belong together */
    NAME = 4,     /* words of the name of an error */
    QUOTED = 4096 /* of a quote */
};

bool frag_message_is_doing(const frag_message_split_line *read, size_t i)
{
    return frag_message_line_is(read, i, "when") && frag_message_line_ends(read, i + 1, "ing");
}

bool frag_message_is_reason(const frag_message_split_line *read, size_t i)
{
    static frag_word_list people = {"we", "you", "your", "this", NULL};
    size_t because = frag_message_line_is_any(read, i, people) && i > 0 ? i - 1 : i;
    static frag_word_list nots = {"not", "t", NULL};
    return frag_message_line_is(read, because, "because") &&
           (frag_message_line_has_within(read, 0, because, FRAG_WORD_FAIL) ||
            frag_message_line_has_any(read, 0, because, nots));
}

/* "of a request that failed", "a block that does not fit" is told of some request, too. */
static bool is_of_prose(const frag_message_split_line *read, size_t i)
{
    if (frag_message_is_reason(read, i))
        return false;
    bool is_clause =
        frag_message_line_is(read, i, "that") &&
        (frag_message_line_has(read, i + 1, FRAG_WORD_FAIL) ||
         frag_message_line_is(read, i + 1, "does") || frag_message_line_is(read, i + 1, "do"));
    return frag_message_line_has(read, i, FRAG_WORD_PROSE) || is_clause;
}

bool frag_message_is_prose(const frag_message_split_line *read, const frag_message_failure *found)
{
    size_t reach = found->at + (found->is_name ? NEAR : NAME + 2);
    for (size_t i = 0; i < read->count && i < reach; i++) {
        size_t before = i > found->at ? read->words[i - 1].end : read->words[i].at;
        for (size_t at = before; at < read->words[i].at; at++)
            if (strchr(".!?", read->text->bytes[at]) != NULL)
                return false;
        /* "Your GPU ran out of memory", "You ran out of memory on the GPU" are no sentences about
         * one */
        bool is_your = frag_message_line_is(read, 0, "your") && found->at < NAME &&
                       frag_message_line_has(read, 1, FRAG_WORD_DEVICE);
        bool is_you = frag_message_line_is(read, 0, "you") && frag_message_line_is(read, 1, "ran");
        bool is_addressed = i == 0 && (is_your || (is_you && !found->is_name));
        /* "Not enough VRAM to load this model" */
        bool is_object = i > found->at && frag_message_line_is(read, i, "this");
        if (is_of_prose(read, i) && !is_addressed && !is_object &&
            !(i > found->at && frag_message_is_doing(read, i)))
            return true;
    }
    return false;
}

bool frag_message_has_prose(const frag_message_split_line *read)
{
    for (size_t i = 0; i < read->count; i++)
        if (is_of_prose(read, i))
            return true;
    return false;
}

/* "%s", "%.2f", "%zu": the form of a message in a source. */
static bool has_format(const frag_message_split_line *read)
{
    const char *text = read->text->bytes;
    size_t to = read->count > 0 ? read->words[read->count - 1].end : 0;
    for (size_t at = read->count > 0 ? read->words[0].at : 0; at < to; at++) {
        if (text[at] != '%')
            continue;
        bool is_share = at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9'; /* "99% used" */
        size_t flags = strspn(text + at + 1, ".0123456789lzhj");
        char kind = text[at + 1 + flags];
        /* "%flash_attention" is a name, "%dMB" is none */
        size_t name = strspn(text + at + 1, "abcdefghijklmnopqrstuvwxyz");
        bool is_name = flags == 0 && name > NAME && text[at + 1 + name] == '_';
        if (!is_share && !is_name && kind != '\0' && strchr("sdiufgx", kind) != NULL)
            return true;
    }
    return false;
}

bool frag_message_has_placeholder(const frag_message_split_line *read)
{
    if (has_format(read))
        return true;
    for (size_t i = 0; i + 1 < read->count; i++) {
        const frag_message_word *word = &read->words[i];
        size_t same = 0;
        while (word->at + same < word->end && strchr("xy", read->text->bytes[word->at + same]))
            same++;
        if (same >= 2 && same == word->end - word->at &&
            frag_message_line_has(read, i + 1, FRAG_WORD_UNIT))
            return true;
    }
    return false;
}

/* Where the line begins, or a little before the words of a line without end: a log of one line is
 * read in linear time. */
static size_t near_start(const frag_message_split_line *read)
{
    size_t start = frag_message_text_line_start(read->text, read->words[0].at);
    return read->words[0].at > start + FRAG_MESSAGE_LINE_REACH
               ? read->words[0].at - FRAG_MESSAGE_LINE_REACH
               : start;
}

/* The bars that stand between columns: "{ DEVICE_LOCAL | HOST_VISIBLE }" are flags. */
static size_t column_count(const frag_message_text *text, size_t from, size_t to)
{
    size_t bars = 0;
    size_t depth = 0;
    for (size_t at = from; at < to; at++) {
        depth += strchr("{([", text->bytes[at]) != NULL;
        depth -= depth > 0 && strchr("})]", text->bytes[at]) != NULL;
        bars += depth == 0 && text->bytes[at] == '|';
    }
    return bars;
}

/* "| `Out of Memory` | too little VRAM | a smaller model |": a row of a table that somebody wrote.
 */
bool frag_message_is_table_row(const frag_message_split_line *read)
{
    const frag_message_text *text = read->text;
    size_t from = frag_message_text_line_start(text, read->words[0].at);
    size_t to = frag_message_text_line_end(text, read->words[0].at, FRAG_MESSAGE_LINE_REACH);
    /* "|  ERROR | Failed to" is a logger's */
    bool is_logged =
        frag_message_line_has(read, 0, FRAG_WORD_ERROR) && text->bytes[read->words[0].end] == '|';
    bool has_bar = (text->marks[from] & FRAG_MESSAGE_BAR) != 0 && !is_logged;
    bool is_quoted = false;
    size_t bars = column_count(text, near_start(read), to);
    for (size_t at = near_start(read); at < to; at++)
        is_quoted |= text->bytes[at] == '`' || text->bytes[at] == '*';
    return (bars >= 2 && is_quoted) || (bars >= 1 && has_bar);
}

/* "2. GPU memory exhausted", below a line that begins with 1, or above one with 3 */
static size_t item_number(const frag_message_text *text, size_t line)
{
    const char *bytes = text->bytes + line;
    size_t digits = strspn(bytes, "0123456789");
    bool is_item = digits > 0 && digits < 3 && bytes[digits] == '.' &&
                   (text->marks[line + digits + 1] & FRAG_MESSAGE_WORD) != 0;
    return !is_item     ? 0
           : digits > 1 ? (size_t)(bytes[0] - '0') * 10 + (size_t)(bytes[1] - '0')
                        : (size_t)(bytes[0] - '0');
}

static bool is_numbered(const frag_message_text *text, size_t line)
{
    size_t number = item_number(text, line);
    size_t end = frag_message_text_line_end(text, line, FRAG_MESSAGE_LINE_REACH);
    size_t above = line > 0 ? frag_message_text_line_start(text, line - 1) : line;
    return number > 0 && ((above < line && item_number(text, above) + 1 == number && number > 1) ||
                          (text->bytes[end] == '\n' && item_number(text, end + 1) == number + 1));
}

/* "- RTX 3060 (too little VRAM)", "### VRAM exhausted", "**Cause:** ...": of a list or a page, and
 * no error. */
bool frag_message_is_item(const frag_message_split_line *read)
{
    size_t start =
        read->count > 0 ? frag_message_text_line_start(read->text, read->words[0].at) : 0;
    const char *text = read->text->bytes + start;
    size_t signs = strspn(text, "-*#");
    bool is_set_off = (read->text->marks[start + signs] & FRAG_MESSAGE_WORD) != 0;
    bool is_bold = signs == 2 && *text == '*';
    bool is_listed = (signs > 0 && (is_set_off || is_bold)) || is_numbered(read->text, start);
    return is_listed && (read->kinds & FRAG_WORD_ERROR) == 0;
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
bool frag_message_is_statement(const frag_message_split_line *read)
{
    static frag_word_list keywords = {"class", "throw", "return", "struct", NULL};
    static const char *const starts[] = {"//", "/*", "#[", "*@"};
    const frag_message_text *text = read->text;
    size_t from = frag_message_text_line_start(text, read->words[0].at);
    size_t to = frag_message_text_line_end(text, read->words[0].at, FRAG_MESSAGE_LINE_REACH);
    size_t first = from + strspn(text->bytes + from, "+-"); /* of a change */
    if (read->words[0].at == first && frag_message_line_is_any(read, 0, keywords))
        return true;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (strncmp(text->bytes + from, starts[i], 2) == 0)
            return true;
    /* "OutOfDeviceMemory," alone: one of a list of names */
    bool is_name = to > from && text->bytes[to - 1] == ',';
    for (size_t at = from + 1; at < to && is_name; at++)
        is_name = (text->marks[at] & FRAG_MESSAGE_WORD) == 0;
    bool has_comment =
        to > from + 1 && strncmp(text->bytes + to - 2, "*/", 2) == 0; /* at its end */
    return is_name || has_comment || has_within(text, near_start(read), to, "\"\"\"");
}

/* A line of a program, or of its comments, or a row of a table without quotes. */
bool frag_message_is_source(const frag_message_split_line *read)
{
    static const char *const signs[] = {"->", "+=", "();", "){", "&&", "||"};
    for (size_t i = 0; i < read->count; i++)
        if (frag_message_is_status(read, i))
            return false;
    const frag_message_text *text = read->text;
    size_t from = near_start(read);
    size_t to =
        frag_message_text_line_end(text, read->words[read->count - 1].end, FRAG_MESSAGE_LINE_REACH);
    /* "ASSERT(p != NULL && "no device memory") failed": printed */
    if (has_within(text, from, to, "\")failed") || has_within(text, from, to, "\"'failed") ||
        has_within(text, from, to, "assert:")) /* "GGML_ASSERT: backend.c:460: p && "no room"" */
        return false;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (has_within(text, from, to, signs[i]))
            return true;
    /* "OOM_MARKERS = (" */
    bool is_list = strchr("([", text->bytes[to - 1]) != NULL && text->bytes[to - 2] == '=';
    return column_count(text, from, to) >= 2 || is_list ||
           strchr(";{", text->bytes[to - 1]) != NULL;
}

bool frag_message_is_asked(const frag_message_split_line *read, frag_word_range sentence)
{
    static frag_word_list openers = {"is",  "are", "was",  "were",  "do",  "does",
                                     "did", "has", "have", "could", "can", NULL};
    return frag_message_line_is_any(read, sentence.from, openers) &&
           read->text->bytes[read->words[sentence.to - 1].end] == '?';
}

/* "What to do if ...": of a person, whatever is quoted in it. */
bool frag_message_is_question(const frag_message_split_line *read)
{
    static frag_word_list words = {"how",  "what",   "why",  "when",  "if",       "given",
                                   "note", "should", "does", "while", "although", NULL};
    size_t first = frag_message_line_has(read, 0, FRAG_WORD_NUMBER) ? 1 : 0; /* "3. Does it fit" */
    static frag_word_list heads = {"faq", "q", "question", NULL};
    if (frag_message_line_is_any(read, 0, heads) && read->text->bytes[read->words[0].end] == ':')
        first = 1;
    if (first >= read->count)
        return false;
    /* "whyCUDA out of memory": a blank was lost, and the error follows */
    bool is_blank = first + 1 >= read->count;
    for (size_t at = read->words[first].end; !is_blank && at <= read->words[first + 1].at; at++)
        is_blank = (read->text->marks[at] & FRAG_MESSAGE_WORD) != 0;
    /* "When loading the scene, the driver runs out of memory." */
    if (!is_blank || frag_message_is_doing(read, first))
        return false;
    if (frag_message_is_asked(read, frag_message_line_sentence(read, first, ".?!;")))
        return true;
    return frag_message_line_is_any(read, first, words) &&
           read->text->bytes[read->words[first].end] != '(';
}

bool frag_message_is_handled(const frag_message_split_line *read)
{
    static frag_word_list words = {"handle", "handles", "handling", NULL};
    return frag_message_line_has_any(read, 0, read->count, words);
}

/* The first word of the name in which the word at stands: "D3D11_ERROR_OUT_OF_MEMORY" is one. */
static size_t name_start(const frag_message_split_line *read, size_t at)
{
    const char *bytes = read->text->bytes;
    while (at > 0 && (read->text->marks[read->words[at].at] & FRAG_MESSAGE_WORD) == 0 &&
           (read->words[at - 1].end == read->words[at].at || bytes[read->words[at - 1].end] == '_'))
        at--;
    return at;
}

/* "if "out of memory." in message": a source looks for it; "'out of memory' in f.cu" came. */
static bool is_looked_up(const frag_message_split_line *read, size_t at)
{
    static frag_word_list texts = {"str",     "e",         "err",  "error", "msg",
                                   "message", "exception", "exc",  "ex",    "repr",
                                   "output",  "stderr",    "text", "log",   NULL};
    for (size_t i = at; i < read->count && i < at + NEAR; i++) {
        const char *behind = read->text->bytes + read->words[i].end;
        behind += strspn(behind, ".:!");
        if ((*behind == '"' || *behind == '\'') && frag_message_line_is(read, i + 1, "in") &&
            frag_message_line_is_any(read, i + 2, texts))
            return true;
    }
    return false;
}

/* "always look for GL_OUT_OF_MEMORY", "fix: catch CL_OUT_OF_MEMORY", "Mitigate CUDA out of memory":
 * what a program has to do, or a change of it does */
bool frag_message_is_sought(const frag_message_split_line *read, size_t at)
{
    static frag_word_list searches = {"look*", "check*", "test*", "watch*", "wait*", NULL};
    static frag_word_list orders = {"catch",    "handle", "ignore", "report",  "treat",
                                    "mitigate", "fix",    "avoid",  "prevent", NULL};
    const char *bytes = read->text->bytes;
    size_t name = name_start(read, at);
    bool is_searched = frag_message_line_is(read, name - 1, "for") &&
                       frag_message_line_is_any(read, name - 2, searches);
    for (size_t i = name > NAME ? name - NAME : 0; i < name; i++)
        if ((i == 0 || bytes[read->words[i - 1].end] == ':') && bytes[read->words[i].end] != ':' &&
            frag_message_line_is_any(read, i, orders))
            return true;
    return is_searched || is_looked_up(read, at);
}

/* "+    "not enough memory, 64 GB are required"": a literal in a change of a source */
static bool is_change(const frag_message_split_line *read)
{
    const frag_message_text *text = read->text;
    size_t start = frag_message_text_line_start(text, read->words[0].at);
    char next = text->bytes[start] != '\0' ? text->bytes[start + 1] : '\0';
    return strchr("+-", text->bytes[start]) != NULL && next != '\0' && strchr("\"'`", next) != NULL;
}

bool frag_message_find_quote(const frag_message_split_line *read, size_t at, frag_text_range *quote)
{
    const frag_message_text *text = read->text;
    size_t open = read->words[at].at;
    size_t codes = 0;
    for (size_t i = near_start(read); i < read->words[at].at; i++) {
        codes += text->bytes[i] == '`';
        open = text->bytes[i] == '`' ? i : open;
    }
    if (codes % 2 == 0)
        return false;
    size_t blanks = 0;
    size_t end = open + 1;
    size_t to = frag_message_text_line_end(text, open + 1, QUOTED);
    for (; end < to && text->bytes[end] != '`'; end++)
        blanks += (text->marks[end] & FRAG_MESSAGE_WORD) != 0;
    *quote = (frag_text_range){.from = open + 1, .to = end};
    return blanks >= 2;
}

/* "One more update: dug into `f`'s `Alloc` failure": names set in code amid a sentence are a
 * person's. */
static bool is_beside_code(const frag_message_split_line *read, size_t at)
{
    size_t codes = 0;
    bool is_value = false; /* "called `unwrap()` on an `Err` value: OutOfDeviceMemory" */
    frag_word_range sentence = frag_message_line_sentence(read, at, ".?!");
    size_t to = read->words[sentence.to - 1].at;
    for (size_t i = read->words[sentence.from].end; i < to; i++) {
        bool is_code = read->text->bytes[i] == '`';
        codes += is_code;
        is_value = !is_code && (is_value || read->text->bytes[i] == ':');
    }
    frag_text_range quote;
    return codes >= 2 && !is_value && !frag_message_find_quote(read, at, &quote);
}

/* "throws an error when the memory is insufficient" */
static bool is_rule(const frag_message_split_line *read, size_t i, size_t to)
{
    static frag_word_list throws = {"throws", "raises", NULL};
    static frag_word_list states = {"is", "are", NULL};
    static frag_word_list people = {"i", "we", "my", "our", NULL};
    if (!frag_message_line_is_any(read, i, throws) ||
        frag_message_line_has_any(read, 0, to, people))
        return false;
    for (size_t j = i + 1; j + 3 < to; j++)
        if (frag_message_line_is(read, j, "when") && frag_message_line_is(read, j + 1, "the") &&
            frag_message_line_has_any(read, j + 2, to, states))
            return true;
    return false;
}

/* "The out of memory error occurs when the card is full" */
static bool is_explanation(const frag_message_split_line *read, size_t at)
{
    static frag_word_list verbs = {"occurs",    "happens",    "appears", "arises", "indicates",
                                   "indicated", "indicating", "signals", NULL};
    static frag_word_list links = {"when", "if", "that", "because", "whenever", "as", NULL};
    static frag_word_list addressed = {"you", "your", NULL}; /* a program says that, too */
    static frag_word_list people = {"i", "we", NULL};        /* "occurs when I run it" */
    frag_word_range sentence = frag_message_line_sentence(read, at, ".?!");
    for (size_t i = sentence.from; i < sentence.to; i++)
        if ((frag_message_line_is(read, i, "means") &&
             !frag_message_line_is_any(read, i + 1, addressed)) ||
            (frag_message_line_is_any(read, i, verbs) &&
             frag_message_line_is_any(read, i + 1, links) &&
             !frag_message_line_is_any(read, i + 2, people)) ||
            is_rule(read, i, sentence.to))
            return true;
    return false;
}

/* "collect() # GPU OOM": a comment behind a line of a source */
static bool is_comment(const frag_message_split_line *read, size_t at)
{
    const frag_message_text *text = read->text;
    for (size_t i = read->words[0].end; i < read->words[at].at; i++) {
        bool is_sign = text->bytes[i] == '#' || strncmp(text->bytes + i, "//", 2) == 0;
        size_t behind = text->bytes[i] == '#' ? i + 1 : i + 2;
        if (is_sign && (text->marks[i] & FRAG_MESSAGE_WORD) != 0 &&
            (text->marks[behind] & FRAG_MESSAGE_WORD) != 0)
            return true;
    }
    return false;
}

/* "cudaErrorMemoryAllocation = 2", "E_OUTOFMEMORY => -2147024882" */
bool frag_message_is_defined(const frag_message_split_line *read, size_t i)
{
    const char *text = read->text->bytes;
    size_t last = i;
    while (
        last + 1 < read->count &&
        (read->words[last + 1].at == read->words[last].end || text[read->words[last].end] == '_') &&
        (read->text->marks[read->words[last + 1].at] & FRAG_MESSAGE_WORD) == 0)
        last++;
    return text[read->words[last].end] == '=' &&
           frag_message_line_has(read, last + 1, FRAG_WORD_NUMBER);
}

/* "It is frustrating to get errors such as": of any of them */
static bool is_instance(const frag_message_split_line *read, size_t from, size_t at)
{
    static frag_word_list people = {"i", "we", "my", "our", NULL};
    static frag_word_list kinds = {"errors", "messages", "problems", "issues", NULL};
    for (size_t i = from + 1; i + 1 < at; i++)
        if (frag_message_line_is(read, i, "such") && frag_message_line_is(read, i + 1, "as") &&
            frag_message_line_is_any(read, i - 1, kinds))
            return !frag_message_line_has_any(read, from, i, people);
    return false;
}

/* "Blender may display an error that reads": what a reader may meet */
static bool is_foretold(const frag_message_split_line *read, frag_word_range sentence, size_t at)
{
    static frag_word_list chances = {"may", "might", "can", NULL};
    static frag_word_list people = {"i", "we", NULL};
    static frag_word_list verbs = {"display", "show",    "see",    "encounter", "get",   "appear",
                                   "occur",   "receive", "report", "meet",      "throw", NULL};
    for (size_t i = sentence.from; i + 1 < at; i++)
        if (frag_message_line_is_any(read, i, chances) &&
            frag_message_line_is_any(read, i + 1, verbs) &&
            !frag_message_line_is_any(read, i - 1, people)) /* "I can see" */
            return true;
    return false;
}

/* "which causes 'CUDA out of memory' errors": of any of them, where nobody says "I" */
static bool is_of_many(const frag_message_split_line *read, frag_word_range sentence, size_t at)
{
    static frag_word_list people = {"i", "we", "my", "our", NULL};
    static frag_word_list many = {"errors",   "events", "issues",     "crashes",
                                  "failures", "kills",  "exceptions", NULL};
    static frag_word_list verbs = {"cause*",    "lead*",   "trigger*", "produc*", "result*",
                                   "suffer*",   "face",    "meet",     "see",     "encounter",
                                   "premature", "random",  "frequent", "cryptic", "of",
                                   "common",    "typical", "and",      NULL};
    return frag_message_line_has_any(read, at + 1, at + 1 + NAME, many) &&
           frag_message_line_has_any(read, at > NAME ? at - NAME : 0, at, verbs) &&
           !frag_message_line_has_any(read, sentence.from, sentence.to, people);
}

/* "The "GPU memory full" error is a common frustration" */
static bool is_described(const frag_message_split_line *read, frag_word_range sentence, size_t at)
{
    static frag_word_list people = {"i", "we", "my", "our", NULL};
    static frag_word_list names = {"error", "errors", "message", "warning", NULL};
    static frag_word_list states = {"is", "are", NULL};
    static frag_word_list kinds = {"common", "frustrat*", "usually", "often", "typical*",
                                   "one",    "known",     "among",   NULL};
    for (size_t i = at + 1; i < at + NEAR; i++)
        if (frag_message_line_is_any(read, i, names) &&
            frag_message_line_is_any(read, i + 1, states))
            return frag_message_line_has_any(read, i + 2, i + 2 + NAME, kinds) &&
                   !frag_message_line_has_any(read, sentence.from, sentence.to, people);
    return false;
}

/* "Clarifies that OUT_OF_MEMORY should be returned": what a program is to do */
static bool is_rule_of_interface(const frag_message_split_line *read, size_t at)
{
    static frag_word_list musts = {"should", "shall", "must", NULL};
    static frag_word_list ends = {"returned", "reported", "thrown", "raised", "generated", NULL};
    static frag_word_list heads = {"clarif*", "document*", NULL};
    if (frag_message_line_is_any(read, 0, heads) ||
        (frag_message_line_is(read, 0, "testing") && frag_message_line_is(read, 1, "needed")))
        return true;
    for (size_t i = at; i < at + NEAR + 2; i++)
        if (frag_message_line_is_any(read, i, musts) && frag_message_line_is(read, i + 1, "be") &&
            frag_message_line_is_any(read, i + 2, ends))
            return true;
    return false;
}

/* "Out of Memory: GPU Fix", "CUDA OOM - Quick Guide": the heading of a page */
static bool is_title_of_guide(const frag_message_split_line *read, size_t at)
{
    static frag_word_list guides = {"fix",    "fixes",     "guide",      "explained",
                                    "tips",   "solutions", "solution",   "fixed",
                                    "solved", "tutorial",  "cheatsheet", "troubleshooting",
                                    NULL};
    static frag_word_list asked = {"please", "pls", "no", "any", "to", "a", NULL};
    const frag_message_text *text = read->text;
    size_t last = read->count - 1;
    size_t end = frag_message_text_line_end(text, read->words[last].end, FRAG_MESSAGE_LINE_REACH);
    if (last <= at || end != read->words[last].end || last > at + NEAR ||
        !frag_message_line_is_any(read, last, guides) ||
        frag_message_line_has_any(read, last - 1, last, asked))
        return false;
    if (frag_message_line_is(read, last, "explained"))
        return true;
    for (size_t i = read->words[at].end; i < read->words[last].at; i++)
        if (strchr(":-|\x01", text->bytes[i]) != NULL)
            return true;
    return false;
}

/* "When you ask for a tensor, the allocation fails", "You have, say, 4 GB": what would happen */
static bool is_supposition(const frag_message_split_line *read, frag_word_range sentence, size_t at)
{
    static frag_word_list starts = {"when", "if", "whenever", "suppose", "imagine", NULL};
    static frag_word_list you = {"you", "a", "an", "that", "your", NULL};
    if (frag_message_line_is_any(read, sentence.from, starts) && at > sentence.from &&
        frag_message_line_is_any(read, sentence.from + 1, you))
        return true;
    for (size_t i = sentence.from + 1; i < at; i++)
        if (frag_message_line_is(read, i, "say") &&
            read->text->bytes[read->words[i - 1].end] == ',' &&
            read->text->bytes[read->words[i].end] == ',')
            return true;
    return false;
}

bool frag_message_is_explained(const frag_message_split_line *read, size_t at)
{
    static frag_word_list articles = {"the", "a", "an", "this", NULL};
    frag_word_range sentence = frag_message_line_sentence(read, at, ".?!");
    bool is_free =
        frag_message_line_is_any(read, 0, articles) || !frag_message_has_mark(read, read->count);
    return is_instance(read, sentence.from, at) ||
           (is_free && (is_explanation(read, at) || is_foretold(read, sentence, at) ||
                        is_of_many(read, sentence, at) || is_supposition(read, sentence, at) ||
                        is_title_of_guide(read, at) || is_rule_of_interface(read, at) ||
                        is_described(read, sentence, at)));
}

bool frag_message_is_narrated(const frag_message_split_line *read, size_t at)
{
    if (at >= read->count)
        return false;
    /* "with `x` and `y` it runs out of VRAM": what happened, not a name */
    bool is_name = !frag_message_line_is(read, at, "out") ||
                   read->text->bytes[read->words[at].end] == '-' || /* "out-of-memory messages" */
                   (read->text->marks[read->words[at].at] & FRAG_MESSAGE_WORD) == 0;
    bool is_told =
        (is_name && is_beside_code(read, at)) || is_explanation(read, at) || is_comment(read, at);
    return is_change(read) || frag_message_is_explained(read, at) ||
           (is_told && !frag_message_has_mark(read, read->count));
}
