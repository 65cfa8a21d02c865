/* The lines of an input, one after another: what readers of text share. */
#ifndef FRAG_FORMATS_LINES_H
#define FRAG_FORMATS_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/file.h"

/* More than a row of any command has. */
#define FRAG_LINE_BYTES_MAX ((size_t)4 << 20)

/* Start from {0}. */
typedef struct frag_line {
    uint64_t number; /* from 1 */
    const char *bytes;
    size_t length; /* without "\n" or "\r\n" */
    size_t taken;  /* with them, for frag_input_skip; 0: the input has no more */
    bool is_ended; /* false: the input ends inside the line or directly behind its last byte */
} frag_line;

typedef struct frag_line_limit {
    size_t bytes;
    const char *expected; /* of a message about a longer line */
} frag_line_limit;

/* Shows the next line, whose bytes are there until the input is read on. false: reading failed, or
 * the line is too long (FRAG_E_INPUT with its number). */
bool frag_line_find(frag_input *input, const frag_line_limit *limit, frag_line *line,
                    frag_error *error);

/* Calls take for each line that is not empty, without "\n" or "\r\n"; the bytes are there until it
 * returns. false: take said so, or reading failed, or a line has FRAG_LINE_BYTES_MAX bytes
 * (FRAG_E_INPUT); the error has the number of the line. */
bool frag_each_line(frag_input *input,
                    bool (*take)(void *context, const char *line, size_t length, frag_error *error),
                    void *context, frag_error *error);

#endif
