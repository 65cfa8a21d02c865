#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void frag_text_make_plain(char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        /* C2 80 to C2 9F are control characters, too. */
        bool is_pair =
            byte == 0xc2 && (unsigned char)text[1] >= 0x80 && (unsigned char)text[1] < 0xa0;
        if (is_pair)
            *text++ = '?';
        if (byte < 0x20 || byte == 0x7f || is_pair)
            *text = '?';
    }
}

static void fill(frag_error *error, frag_error_code code, const char *format, va_list arguments)
{
    error->code = code;
    vsnprintf(error->sentence, sizeof error->sentence, format, arguments);
    /* What is quoted of an input keeps to one line and does not command a terminal. */
    frag_text_make_plain(error->sentence);
}

bool frag_error_in(frag_error *error, const char *where)
{
    if (error != NULL && error->where[0] == '\0') {
        snprintf(error->where, sizeof error->where, "%s", where);
        frag_text_make_plain(error->where);
    }
    return false;
}

bool frag_fail(frag_error *error, frag_error_code code, const char *format, ...)
{
    if (error == NULL)
        return false;
    va_list arguments;
    va_start(arguments, format);
    fill(error, code, format, arguments);
    va_end(arguments);
    return false;
}

bool frag_fail_in(frag_error *error, frag_error_code code, const char *where, const char *format,
                  ...)
{
    if (error == NULL)
        return false;
    va_list arguments;
    va_start(arguments, format);
    fill(error, code, format, arguments);
    va_end(arguments);
    return frag_error_in(error, where);
}

bool frag_fail_at(frag_error *error, uint64_t offset, const char *format, ...)
{
    if (error == NULL)
        return false;
    va_list arguments;
    va_start(arguments, format);
    fill(error, FRAG_E_INPUT, format, arguments);
    va_end(arguments);
    error->offset = offset;
    error->has_offset = true;
    return false;
}

bool frag_fail_line(frag_error *error, uint64_t line, uint64_t column, const char *format, ...)
{
    if (error == NULL)
        return false;
    va_list arguments;
    va_start(arguments, format);
    fill(error, FRAG_E_INPUT, format, arguments);
    va_end(arguments);
    error->line = line;
    error->column = column;
    return false;
}

void frag_error_text(const frag_error *error, char *text, uint64_t text_bytes)
{
    char position[96] = "";
    if (error->line > 0 && error->column > 0)
        snprintf(position, sizeof position, "%" PRIu64 ":%" PRIu64 ": ", error->line,
                 error->column);
    else if (error->line > 0)
        snprintf(position, sizeof position, "%" PRIu64 ": ", error->line);
    else if (error->has_offset)
        snprintf(position, sizeof position, "byte %" PRIu64 ": ", error->offset);
    snprintf(text, (size_t)text_bytes, "%s%s%s%s", error->where,
             error->where[0] == '\0'                   ? ""
             : position[0] == '\0' || error->line == 0 ? ": "
                                                       : ":",
             position, error->sentence);
}

static _Thread_local const char *blamed; /* the policy; NULL: ours */

const char *frag_assert_blame(const char *policy)
{
    const char *before = blamed;
    blamed = policy;
    return before;
}

_Noreturn void frag_assert_failed(const char *file, int line, const char *condition)
{
    if (blamed != NULL)
        fprintf(stderr,
                "fraglab: the policy %s breaks its contract, as seen at %s:%d: '%s' does not hold; "
                "'fraglab run --check 1' may say more, and docs/adding-a-policy.md has the rules\n",
                blamed, file, line, condition);
    else
        fprintf(stderr,
                "fraglab: bug at %s:%d: '%s' does not hold; please report it with the output of "
                "'fraglab doctor'\n",
                file, line, condition);
    abort();
}
