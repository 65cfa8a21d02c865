/* Growing text, interned strings, nearest names. */
#ifndef FRAG_BASE_TEXT_H
#define FRAG_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

/* ---- texts of an enumeration, out of the list X(enumerator, text, ...) that it is made of: they
 * stand in its order */
#define FRAG_SECOND_OF_2(value, text) text,
#define FRAG_SECOND_OF_3(value, text, title) text,
#define FRAG_THIRD_OF_3(value, text, title) title,

/* ---- growing text; start from {0}, always zero-terminated once something was added */
typedef struct frag_text {
    char *bytes;
    size_t length;
    size_t capacity;
} frag_text;

void frag_text_add(frag_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void frag_text_add_bytes(frag_text *text, const char *bytes, size_t length);
/* One word of a command line, in quotes where a shell would not read it as it is. */
void frag_text_add_word(frag_text *text, const char *word);
void frag_text_clear(frag_text *text);
void frag_text_destroy(frag_text *text);

bool frag_text_ends(const char *text, const char *ending);
/* What stands behind the last '/' of a path, and how many bytes up to it, with it. */
const char *frag_path_name(const char *path);
size_t frag_path_folder_bytes(const char *path);

/* The length of the UTF-8 sequence that bytes begin with, 0 when there is none. */
size_t frag_text_sequence(const unsigned char *bytes, size_t count);
/* The bytes of the mark with which some editors begin a text in UTF-8; 0: there is none. */
size_t frag_text_mark_bytes(const void *bytes, size_t count);

/* A CSV field (RFC 4180), quoted where it must be. */
void frag_text_write_csv(FILE *stream, const char *field);

/* ---- interned strings: equal bytes have equal ids, ids count up from 0 in order of first use.
 * Start from {0}. Strings may hold any byte but are stored with a terminator beside. */
typedef struct frag_strings {
    char *bytes;
    size_t bytes_used;
    size_t bytes_capacity;
    size_t *offsets; /* of string i; offsets[count] == bytes_used */
    size_t offsets_capacity;
    uint32_t count;
    uint32_t *table; /* open addressing, id + 1, 0 empty */
    uint32_t table_capacity;
} frag_strings;

uint32_t frag_strings_add(frag_strings *strings, const char *bytes, size_t length);
bool frag_strings_find(const frag_strings *strings, const char *bytes, size_t length, uint32_t *id);
const char *frag_strings_get(const frag_strings *strings, uint32_t id);
size_t frag_strings_length(const frag_strings *strings, uint32_t id);
void frag_strings_destroy(frag_strings *strings);

/* The name nearest to text by edit distance (at most a third of its length, at least 1), or NULL.
 */
const char *frag_nearest_name(const char *text, const char *const *names, size_t count);

#endif
