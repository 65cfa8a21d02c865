/* Lines of CSV without quotes, one after another: what the readers of logs and problems share. */
#ifndef FRAG_EXCHANGE_CSV_LINES_H
#define FRAG_EXCHANGE_CSV_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/file.h"

/* A line of the formats read so has well under a hundred bytes. */
#define FRAG_CSV_LINE_BYTES_MAX ((size_t)1 << 16)

/* Start from {.input = ...}. */
typedef struct frag_csv_lines {
    frag_input *input;
    uint64_t line;   /* number of the current one, from 1 */
    size_t taken;    /* its bytes, with what ends it */
    bool is_ended;   /* false: the file ends inside the line or right behind its last byte */
    bool has_failed; /* reading failed, or a line is too long */
} frag_csv_lines;

typedef struct frag_csv_field {
    const char *bytes;
    size_t length;
} frag_csv_field;

/* The next line without "\n" or "\r\n"; it is there until the next call. false: there is none, or
 * has_failed and error says why (FRAG_E_INPUT names the line). */
bool frag_csv_next(frag_csv_lines *lines, const char **text, size_t *length, frag_error *error);

/* Cuts at commas. Returns how many fields there are, -1: more than fields_max. */
int frag_csv_split(const char *text, size_t length, frag_csv_field *fields, int fields_max);

bool frag_csv_is(const frag_csv_field *field, const char *text);
/* Digits alone; false: anything else, or more than max. */
bool frag_csv_number(const frag_csv_field *field, uint64_t max, uint64_t *value);
/* Hexadecimal digits, up to 16, with or without 0x before them. */
bool frag_csv_hexadecimal(const frag_csv_field *field, uint64_t *value);

#endif
