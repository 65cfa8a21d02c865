#include "messages/message_form.h"

#include <string.h>

enum { NEAR = 200 }; /* how far a mark may stand away */

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
    return !may_return(text, at);
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
