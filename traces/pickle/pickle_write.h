/* Writing a pickle as it comes: protocol 4, nothing but what torch.cuda.memory snapshots are made
 * of, which is also all that their viewers in the browser read.
 *
 * Nothing is kept but a memo: a string is written once, and whatever the caller has memoized is
 * referred to by number from then on, so that what thousands of entries share costs them two to
 * five bytes each. Errors of the stream are left to whoever closes it. */
#ifndef FRAG_PICKLE_PICKLE_WRITE_H
#define FRAG_PICKLE_PICKLE_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/text.h"

#define FRAG_PICKLE_WRITE_DEPTH_MAX 16

typedef struct frag_pickle_writer {
    FILE *stream;
    frag_strings strings;  /* written so far */
    uint32_t *string_memo; /* by string */
    size_t string_capacity;
    uint32_t memo_count;
    uint32_t item_counts[FRAG_PICKLE_WRITE_DEPTH_MAX]; /* of the open lists */
    uint32_t depth;
} frag_pickle_writer;

void frag_pickle_writer_begin(frag_pickle_writer *writer, FILE *stream);
/* Ends the pickle and frees the memo; the stream stays open. */
void frag_pickle_writer_end(frag_pickle_writer *writer);

/* A list, each of its items announced before it is written. Lists and dicts nest. */
void frag_pickle_list_begin(frag_pickle_writer *writer);
void frag_pickle_list_item(frag_pickle_writer *writer);
void frag_pickle_list_end(frag_pickle_writer *writer);

/* A dict of at most some dozen pairs: key, value, key, value. */
void frag_pickle_dict_begin(frag_pickle_writer *writer);
void frag_pickle_dict_end(frag_pickle_writer *writer);

/* Bytes that are no UTF-8 become '?'. */
void frag_pickle_put_bytes(frag_pickle_writer *writer, const char *bytes, size_t length);
void frag_pickle_put_text(frag_pickle_writer *writer, const char *text);
void frag_pickle_put_unsigned(frag_pickle_writer *writer, uint64_t value);
void frag_pickle_put_signed(frag_pickle_writer *writer, int64_t value);
void frag_pickle_put_float(frag_pickle_writer *writer, double value);
void frag_pickle_put_bool(frag_pickle_writer *writer, bool is_true);
void frag_pickle_put_pair(frag_pickle_writer *writer, uint64_t first, uint64_t second);

/* Remembers the value just written; returns its number. */
uint32_t frag_pickle_memoize(frag_pickle_writer *writer);
/* The very same value again. */
void frag_pickle_put_again(frag_pickle_writer *writer, uint32_t memo);

#endif
