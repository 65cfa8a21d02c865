#include "messages/guess/message_form.h"

#include <stdint.h>
#include <string.h>

enum {
    NEAR = 200,      /* how far a mark may stand away */
    LINE = 400,      /* of a long line so much is read */
    LABEL_LINES = 2, /* so far above the name of an error in a page stands "**Symptom**:", */
    GUIDE_LINES = 8, /* and so far below it what to do */
    CODE = 5         /* items of a list of codes begin alike, as far as this */
};

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static bool ends_with(const char *text, size_t at, const char *word)
{
    size_t length = strlen(word);
    return at >= length && memcmp(text + at - length, word, length) == 0;
}

static bool is_word(char byte)
{
    return is_digit(byte) || (byte >= 'a' && byte <= 'z') || byte == '_';
}

/* "cuCtxCreate: out of memory" */
static bool has_call_before(const char *text, size_t at)
{
    size_t from = at - 1;
    while (from > 0 && is_word(text[from - 1]))
        from--;
    return strncmp(text + from, "cu", 2) == 0 || strncmp(text + from, "hip", 3) == 0;
}

/* "API error out of memory", "f.cu:3: out of memory", "2 (out of memory", "(2 vs. 0) out of memory"
 */
static bool has_error_before(const char *text, size_t at)
{
    static const char *const before[] = {"error",    "error:",     "err:",    "failed:", "failed(",
                                         "failure:", "exception:", "fatal:",  "reason:", "():",
                                         "string:",  "message:",   "status:", "result:"};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        if (ends_with(text, at, before[i]))
            return true;
    if (at < 2)
        return false;
    bool is_code =
        is_digit(text[at - 2]) || (at > 2 && text[at - 2] == ')' && is_digit(text[at - 3]));
    return text[at - 1] == ']' || (is_code && strchr(":()", text[at - 1]) != NULL) ||
           (text[at - 1] == ':' && has_call_before(text, at));
}

/* "in cuMemAlloc(", "in /src/a.h", "at /src/a.cu:3" */
static bool has_place_behind(const char *text, size_t end)
{
    static const char *const behind[] = {"in/", "incu", "inc:\\", "at/", "atc:\\"};
    for (size_t i = 0; i < sizeof behind / sizeof *behind; i++)
        if (strncmp(text + end, behind[i], strlen(behind[i])) == 0)
            return true;
    return false;
}

/* A sentence goes on with a word. */
static bool is_at_end(const char *text, size_t end)
{
    return text[end] == '\0' || strchr("\n.,;:!?'\"`)]*<[(/", text[end]) != NULL ||
           strncmp(text + end, "code", 4) == 0;
}

static bool has_near(const char *text, size_t at, size_t end, const char *const *words)
{
    size_t from = at > NEAR ? at - NEAR : 0;
    for (size_t i = from; i < end + NEAR && text[i] != '\0'; i++)
        for (size_t j = 0; words[j] != NULL; j++)
            if (strncmp(text + i, words[j], strlen(words[j])) == 0)
                return true;
    return false;
}

/* "Most functions can return `A` and `B`": shortly before, in the same line */
static bool may_return(const char *text, size_t at)
{
    static const char *const words[] = {"canreturn", "mayreturn", "mightreturn", "couldreturn"};
    size_t from = at > NEAR / 2 ? at - NEAR / 2 : 0;
    for (size_t i = at; i > from && text[i - 1] != '\n'; i--)
        for (size_t j = 0; j < sizeof words / sizeof *words; j++)
            if (strncmp(text + i - 1, words[j], strlen(words[j])) == 0)
                return true;
    return false;
}

bool frag_message_is_reported(const char *text, size_t at, size_t end)
{
    static const char *const before[] = {"#define", "case", "==", "!=",      "return\"",
                                         "return",  "when", "if", "whenever"};
    static const char *const behind[] = {"=",  "is",     "means",   "indicates",
                                         "if", "occurs", "occurrs", "happens"};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        if (ends_with(text, at, before[i]))
            return false;
    for (size_t i = 0; i < sizeof behind / sizeof *behind; i++)
        if (strncmp(text + end, behind[i], strlen(behind[i])) == 0)
            return false;
    /* "OutOfDeviceMemory.Register(" */
    size_t member = end;
    while (text[end] == '.' && (member == end || is_word(text[member])))
        member++;
    return !may_return(text, at) && (member == end || text[member] != '(');
}

bool frag_message_is_error(const char *text, size_t at, size_t end)
{
    static const char *const gpu[] = {"cuda",     "gpu",      "optix",    ".cu:",    "cumem",
                                      "custream", "cuctx",    "hiperror", "hipmall", "vulkan",
                                      "opencl",   "tensorrt", "[trt]",    "nccl",    "cublas",
                                      "cudnn",    "thrust",   NULL};
    static const char *const host[] = {"mallochost", "hostalloc", "pinned", "killed", "heap", NULL};
    bool is_form =
        (has_error_before(text, at) && is_at_end(text, end)) || has_place_behind(text, end);
    return is_form && has_near(text, at, end, gpu) && !has_near(text, at, end, host);
}

/* ---- sources and pages */
/* Does the line from on begin with one of the words? Behind it a word or a parenthesis begins. */
static size_t first_word(const frag_message_text *text, size_t from, const char *const *words)
{
    for (size_t i = 0; words[i] != NULL; i++) {
        size_t end = from + strlen(words[i]);
        if (strncmp(text->bytes + from, words[i], end - from) == 0 &&
            ((text->marks[end] & FRAG_MESSAGE_WORD) != 0 || text->bytes[end] == '('))
            return end;
    }
    return 0;
}

/* "raise RuntimeError("out of memory", but not "return code 2: "out of memory"" */
static bool is_statement(const frag_message_text *text, size_t from)
{
    static const char *const conditions[] = {"if",    "elif", "else", "default", "case",
                                             "const", "let",  "var",  NULL};
    static const char *const acts[] = {"raise", "throw", "return", "assert", "print", NULL};
    size_t end = first_word(text, from, acts);
    size_t quote = end;
    while (quote < end + LINE && strchr("\"'`\n", text->bytes[quote]) == NULL)
        quote++;
    return (end > 0 && (quote == end || text->bytes[quote - 1] == '(')) ||
           first_word(text, from, conditions) > 0;
}

/* Is a quotation open at the byte at? */
static bool is_quoted(const frag_message_text *text, size_t from, size_t at)
{
    char open = '\0';
    for (size_t i = from; i < at; i++) {
        char byte = text->bytes[i];
        if (open != '\0' ? byte == open : byte == '"' || byte == '\'' || byte == '`')
            open = open != '\0' ? '\0' : byte;
    }
    return open != '\0';
}

/* "result = classify("out of memory", "code += "not enough memory";": a name, a sign of assignment,
 * a call and its argument or nothing but a literal */
static bool is_assigned(const frag_message_text *text, size_t from)
{
    const char *bytes = text->bytes;
    size_t sign = from;
    while (is_word(bytes[sign]) && (sign == from || (text->marks[sign] & FRAG_MESSAGE_WORD) == 0))
        sign++;
    size_t call = sign + 1;
    bool is_sum = sign > from && bytes[sign] == '+' && bytes[sign + 1] == '=';
    call += is_sum;
    if (sign == from || (!is_sum && bytes[sign] != '=') ||
        (text->marks[call] & FRAG_MESSAGE_WORD) == 0)
        return false;
    size_t end = frag_message_text_line_end(text, from, LINE);
    if (bytes[call] == '"' && ends_with(bytes, end, "\";"))
        return true;
    while (is_word(bytes[call]) || bytes[call] == '.')
        call++;
    return bytes[call] == '(' && (bytes[call + 1] == '"' || bytes[call + 1] == '\'');
}

/* "Log("OUT_OF_MEMORY");", "assertEquals(OOM, reasonOf("out of memory"))", "Memory.Register("out of
 * memory")": a call and nothing else. "OutOfMemory("no room")" is how Rust prints an error. */
static bool is_call(const frag_message_text *text, size_t from)
{
    const char *bytes = text->bytes;
    size_t open = from;
    bool is_wrapped = from > 1 && is_word(bytes[from - 2]); /* "DriverErr\nor("out of memory")" */
    bool is_function = !is_wrapped && (text->marks[from] & FRAG_MESSAGE_CAPITAL) == 0;
    for (; is_word(bytes[open]) ||
           (open > from && bytes[open] != '\0' && strchr(".:->", bytes[open]) != NULL);
         open++) {
        is_function |= bytes[open] == '.';
        if (open > from && (text->marks[open] & FRAG_MESSAGE_WORD) != 0)
            return false;
    }
    if (open == from || bytes[open] != '(' || (text->marks[open] & FRAG_MESSAGE_WORD) != 0)
        return false;
    size_t end = frag_message_text_line_end(text, from, LINE);
    end += strncmp(bytes + end, "\n\")", 3) == 0 ? 3 : 0; /* an escaped line end in the literal */
    bool is_ended = bytes[end - 1] == ';' || bytes[end] == ';';
    end -= bytes[end - 1] == ';';
    size_t depth = 1;
    size_t at = open + 1;
    for (; depth > 0 && at < end; at++)
        depth += bytes[at] == '(' ? 1 : bytes[at] == ')' ? SIZE_MAX : 0;
    return at == end && depth == 0 && (is_ended || is_function);
}

/* ""Memory pool exhausted","; a program's output that is kept as a list has figures and marks */
static bool is_item_of_array(const frag_message_text *text, size_t from)
{
    size_t end = frag_message_text_line_end(text, from, LINE);
    const char *line = text->bytes + from;
    return end > from + 2 && *line == '"' && ends_with(text->bytes, end, "\",") &&
           strcspn(line + 1, "0123456789:\"\n") == end - from - 3;
}

/* "(r"out of memory", "Out of memory"),": nothing but literals; or the line beside it is one, too
 */
static bool is_of_literals(const frag_message_text *text, size_t from)
{
    size_t end = frag_message_text_line_end(text, from, LINE);
    size_t above = from > 0 ? frag_message_text_line_start(text, from - 1) : from;
    if (is_item_of_array(text, from) &&
        ((above < from && is_item_of_array(text, above)) ||
         (text->bytes[end] == '\n' && is_item_of_array(text, end + 1))))
        return true;
    size_t literals = 0;
    char open = '\0';
    bool has_comma = false;
    for (size_t i = from; i < end; i++) {
        char byte = text->bytes[i];
        bool is_quote = open != '\0' ? byte == open : byte == '"' || byte == '\'';
        if (open == '\0' && !is_quote && strchr("()[]{},rbuf", byte) == NULL)
            return false;
        has_comma |= open == '\0' && byte == ',';
        literals += is_quote && open == '\0';
        open = !is_quote ? open : open == '\0' ? byte : '\0';
    }
    return literals > 1 && has_comma;
}

/* "with raises(Error, match="out of memory"):", "'cublas': Error('CUBLAS_STATUS_ALLOC_FAILED'),":
 * in the head of a block, in a table of a source */
static bool is_argument(const frag_message_text *text, size_t from)
{
    static const char *const heads[] = {"with", "for", "while", NULL};
    size_t end = frag_message_text_line_end(text, from, LINE);
    bool has_key = text->bytes[from] == '"' || text->bytes[from] == '\'';
    return (first_word(text, from, heads) > 0 && ends_with(text->bytes, end, "):")) ||
           (has_key && (ends_with(text->bytes, end, "'),") || ends_with(text->bytes, end, "\"),")));
}

/* "raise torch.cuda.OutOfMemoryError(", but not below "File "f.py", line 3": there it was */
static bool is_raised(const frag_message_text *text, size_t from)
{
    static const char *const acts[] = {"raise", "throw", NULL};
    size_t above = frag_message_text_line_start(text, from > 0 ? from - 1 : 0);
    bool is_traceback = strncmp(text->bytes + above, "file\"", 5) == 0;
    size_t end = is_traceback ? 0 : first_word(text, from, acts);
    while (end > 0 && (is_word(text->bytes[end]) || text->bytes[end] == '.'))
        end++;
    return end > 0 && text->bytes[end] == '(';
}

/* "raise ValueError("no room") ValueError: no room": the traceback lost its line ends, and behind
 * the statement comes what was printed. */
static bool is_printed_behind(const frag_message_text *text, size_t from, size_t at)
{
    return ends_with(text->bytes, at, "error:") && !is_quoted(text, from, at);
}

static bool is_literal(const frag_message_text *text, size_t at)
{
    size_t from = frag_message_text_line_start(text, at);
    from += strspn(text->bytes + from, "+-");
    if (at >= from + LINE)
        return false;
    bool is_raw = strncmp(text->bytes + from, "r\"", 2) == 0;
    return is_call(text, from) || (is_raised(text, from) && !is_printed_behind(text, from, at)) ||
           is_argument(text, from) || is_assigned(text, from) ||
           (is_quoted(text, from, at) &&
            (is_raw || is_statement(text, from) || is_of_literals(text, from)));
}

/* What a page puts before a heading, an item or a row. */
static size_t markup_at(const frag_message_text *text, size_t from)
{
    size_t signs = strspn(text->bytes + from, "#*-|");
    size_t digits = strspn(text->bytes + from, "0123456789");
    return signs > 0 ? signs : digits > 0 && text->bytes[from + digits] == '.' ? digits + 1 : 0;
}

/* A page names an error in short; what a program printed has several figures. */
static bool has_sizes(const frag_message_text *text, size_t from)
{
    size_t end = frag_message_text_line_end(text, from, LINE);
    size_t sizes = 0;
    for (size_t i = from + 1; i < end; i++)
        sizes += is_digit(text->bytes[i - 1]) && strchr("gm", text->bytes[i]) != NULL &&
                 (text->bytes[i + 1] == 'b' || text->bytes[i + 1] == 'i');
    return sizes > 1;
}

/* "| **OOM** | RuntimeError: out of memory |": of a table of errors */
static bool is_row(const frag_message_text *text, size_t line)
{
    size_t end = frag_message_text_line_end(text, line, LINE);
    return (text->bytes[line] == '*' || text->bytes[line] == '`') &&
           memchr(text->bytes + line, '|', end - line) != NULL;
}

/* In a heading, an item or a row of a page, or right below a label, and what to do stands below. */
static bool is_of_guide(const frag_message_text *text, size_t at)
{
    static const char *const remedies[] = {"solution", "fix:",   "fix*",  "fixes",     "howtofix",
                                           "remedy",   "remedi", "mitig", "resolution"};
    size_t line = frag_message_text_line_start(text, at);
    size_t above = line;
    for (size_t i = 0; i < LABEL_LINES && above > 0 && markup_at(text, above) == 0; i++)
        above = frag_message_text_line_start(text, above - 1);
    bool has_bar = (text->marks[line] & FRAG_MESSAGE_BAR) != 0;
    if ((markup_at(text, above) == 0 && !has_bar) || has_sizes(text, line))
        return false;
    bool is_told = has_bar && is_row(text, line);
    for (size_t i = 0; i < GUIDE_LINES && !is_told; i++) {
        size_t end = frag_message_text_line_end(text, line, LINE);
        if (text->bytes[end] != '\n')
            return false;
        line = end + 1;
        size_t from = line + markup_at(text, line);
        for (size_t j = 0; j < sizeof remedies / sizeof *remedies; j++)
            is_told |= strncmp(text->bytes + from, remedies[j], strlen(remedies[j])) == 0;
    }
    return is_told;
}

/* "Common causes", "How to fix it": a heading of a page about errors */
static bool is_guide_heading(const frag_message_text *text, size_t line)
{
    static const char *const headings[] = {
        "commoncauses", "possiblecauses", "likelycauses", "whatisthiserror",
        "howtofixit",   "whyithappens",   "causes&fixes", "recommendedsolutions",
        "howtofixthis", "quickfix",       "whatcausesit", "step-by-stepfix"};
    size_t from = line + markup_at(text, line);
    size_t end = frag_message_text_line_end(text, line, LINE);
    while (end > from && strchr(":?*", text->bytes[end - 1]) != NULL)
        end--;
    for (size_t i = 0; i < sizeof headings / sizeof *headings; i++)
        if (strlen(headings[i]) == end - from &&
            memcmp(text->bytes + from, headings[i], end - from) == 0)
            return true;
    return false;
}

/* Beside such a heading nothing is reported but with figures. */
static bool is_beside_heading(const frag_message_text *text, size_t at)
{
    size_t line = frag_message_text_line_start(text, at);
    size_t above = line;
    size_t below = line;
    bool is_beside = false;
    for (size_t i = 0; i < GUIDE_LINES; i++) {
        above = above > 0 ? frag_message_text_line_start(text, above - 1) : 0;
        below = frag_message_text_line_end(text, below, LINE);
        below += text->bytes[below] == '\n';
        is_beside |=
            (above < line && is_guide_heading(text, above)) || is_guide_heading(text, below);
    }
    return is_beside && !has_sizes(text, line);
}

/* "- `VK_ERROR_OUT_OF_DEVICE_MEMORY`: ...": where the code of such an item ends; 0: it is none */
static size_t code_end(const frag_message_text *text, size_t line)
{
    size_t from = line + markup_at(text, line);
    size_t end = from + strspn(text->bytes + from, "`*");
    while (is_word(text->bytes[end]))
        end++;
    end += strspn(text->bytes + end, "`*");
    bool is_item = from > line && memchr(text->bytes + from, '_', end - from) != NULL;
    return is_item && text->bytes[end] == ':' ? end : 0;
}

static bool is_of_codes(const frag_message_text *text, size_t at)
{
    size_t line = frag_message_text_line_start(text, at);
    size_t below = frag_message_text_line_end(text, line, LINE);
    size_t end = code_end(text, line);
    if (end == 0 || text->bytes[below] != '\n' || code_end(text, below + 1) == 0)
        return false;
    const char *memory = strstr(text->bytes + line, "memory");
    return memory != NULL && memory < text->bytes + end &&
           strncmp(text->bytes + line, text->bytes + below + 1, CODE) == 0;
}

/* "// Large photos trip CL_MEM_OBJECT_ALLOCATION_FAILURE": a comment of a source */
static bool is_comment(const frag_message_text *text, size_t at)
{
    size_t line = frag_message_text_line_start(text, at);
    line += strspn(text->bytes + line, "+-");
    return text->bytes[line] == '/' && text->bytes[line + 1] == '/' &&
           (text->marks[line + 2] & FRAG_MESSAGE_WORD) != 0;
}

bool frag_message_is_of_page(const frag_message_text *text, size_t at)
{
    return is_literal(text, at) || is_comment(text, at) || is_of_guide(text, at) ||
           is_beside_heading(text, at) || is_of_codes(text, at);
}
