/* The lines of an input, one after another: what readers of JSON Lines share. */
#ifndef FRAG_BASE_LINES_H
#define FRAG_BASE_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/file.h"

/* More than a row of any command has. */
#define FRAG_LINE_BYTES_MAX ((size_t)4 << 20)

/* Calls take for each line that is not empty, without "\n" or "\r\n"; the bytes are there until it
 * returns. false: take said so, or reading failed, or a line has FRAG_LINE_BYTES_MAX bytes
 * (FRAG_E_INPUT); the error has the number of the line. */
bool frag_each_line(frag_input *input,
                    bool (*take)(void *context, const char *line, size_t length, frag_error *error),
                    void *context, frag_error *error);

#endif
