/* Errors of the user's making, and assertions for ours.
 *
 * A function that can be handed bad input returns false and fills a frag_error;
 * main turns it into one line on stderr and an exit code. Running out of
 * *simulated* memory is never an error, it is a result. A broken invariant is
 * our bug: FRAG_ASSERT stops the program in every build. */
#ifndef FRAG_BASE_ERROR_H
#define FRAG_BASE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

/* A policy in a shared object may call these. */
#pragma GCC visibility push(default)

typedef enum frag_error_code {
    FRAG_E_NONE = 0,
    FRAG_E_USAGE = 2,  /* the command line is wrong */
    FRAG_E_INPUT = 3,  /* a file's content is wrong */
    FRAG_E_SYSTEM = 4, /* the operating system or the device refused */
} frag_error_code;

typedef struct frag_error {
    frag_error_code code;
    char where[256]; /* file or option, "" when none */
    uint64_t line;   /* from 1; 0: no line */
    uint64_t column; /* from 1; 0: no column */
    uint64_t offset; /* byte offset in the (decompressed) file */
    bool has_offset;
    char sentence[512]; /* what was found; what would be right */
} frag_error;

/* Fills code and sentence, leaves the position as it is, returns false. NULL error: only returns.
 */
bool frag_fail(frag_error *error, frag_error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As frag_fail, and names the file or option that the error is about, as frag_error_in does. */
bool frag_fail_in(frag_error *error, frag_error_code code, const char *where, const char *format,
                  ...) __attribute__((format(printf, 4, 5)));

/* As frag_fail, at a byte offset of the input. */
bool frag_fail_at(frag_error *error, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As frag_fail, at a line and column (from 1; 0: unknown) of the input. */
bool frag_fail_line(frag_error *error, uint64_t line, uint64_t column, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Names the file or option the error is about, unless one is named already. Returns false. */
bool frag_error_in(frag_error *error, const char *where);

/* Writes "where:line:column: sentence" (what is known of it) into text. */
void frag_error_text(const frag_error *error, char *text, uint64_t text_bytes);

/* Names of files and strings of recordings may hold anything: control characters, which a terminal
 * would obey, become '?', in place. */
void frag_text_make_plain(char *text);

_Noreturn void frag_assert_failed(const char *file, int line, const char *condition);

#define FRAG_ASSERT(condition)                                                                     \
    (__builtin_expect(!(condition), 0) ? frag_assert_failed(__FILE__, __LINE__, #condition)        \
                                       : (void)0)

#ifdef FRAG_SLOW_CHECKS
#define FRAG_ASSERT_SLOW(condition) FRAG_ASSERT(condition)
#else
#define FRAG_ASSERT_SLOW(condition) ((void)0)
#endif

#pragma GCC visibility pop

/* From now on an assertion that fails on this thread blames this policy, which is not ours. NULL:
 * it is a bug of ours. Returns whom it blamed before. The text is not copied. */
const char *frag_assert_blame(const char *policy);

#endif
