/* Columns of whole numbers in few bytes: what the page of a report draws from.
 *
 * Numbers are written as little-endian base-128 varints, one column after the other, compressed
 * with gzip and printed in base64, which every browser can undo by itself. report/page/columns.js
 * reads them. Numbers are below 2^53, the largest that a page counts exactly. */
#ifndef FRAG_REPORT_COLUMNS_H
#define FRAG_REPORT_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define FRAG_COLUMN_MAX (((uint64_t)1 << 53) - 1)

typedef struct frag_columns {
    unsigned char *bytes;
    size_t count;
    size_t capacity;
    uint64_t last; /* of the column being written, for differences */
} frag_columns;    /* start from {0} */

/* Each column begins with this: differences are to 0 at first. */
void frag_columns_begin(frag_columns *columns);
void frag_columns_add(frag_columns *columns, uint64_t value);
/* The difference to the value before: 0, -1, 1, -2, ... become 0, 1, 2, 3, ... */
void frag_columns_add_step(frag_columns *columns, uint64_t value);
/* Text that stands in place of numbers. */
void frag_columns_add_bytes(frag_columns *columns, const char *bytes, size_t count);

/* Columns, compressed. */
typedef struct frag_packed_columns {
    unsigned char *bytes;
    size_t count;
} frag_packed_columns;

void frag_columns_pack(const frag_columns *columns, frag_packed_columns *packed);
/* How many characters they take on a page. */
uint64_t frag_packed_columns_printed(const frag_packed_columns *packed);
/* In base64, in lines of one length. */
void frag_packed_columns_print(const frag_packed_columns *packed, FILE *stream);
void frag_packed_columns_destroy(frag_packed_columns *packed);
void frag_columns_destroy(frag_columns *columns);

#endif
