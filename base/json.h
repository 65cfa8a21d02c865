/* Reading and writing JSON: the only file that knows jansson.
 *
 * An object is filled by paths: "peak.reserved_bytes" makes the object "peak" when first named.
 * Members keep the order in which they were added. */
#ifndef FRAG_BASE_JSON_H
#define FRAG_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

typedef struct frag_json frag_json;

frag_json *frag_json_create(void);
/* Bytes that are not UTF-8 become U+FFFD. NULL writes null. */
void frag_json_text(frag_json *json, const char *path, const char *value);
/* FRAG_UNLIMITED (the largest value) writes null: unknown or without limit. */
void frag_json_number(frag_json *json, const char *path, uint64_t value);
void frag_json_signed(frag_json *json, const char *path, int64_t value);
/* 12 significant digits; not finite writes null. */
void frag_json_ratio(frag_json *json, const char *path, double value);
void frag_json_flag(frag_json *json, const char *path, bool value);
/* A whole number below zero or above, under a name that may have dots in it, in the object at path.
 */
void frag_json_entry(frag_json *json, const char *path, const char *name, int64_t value);
void frag_json_null(frag_json *json, const char *path);
/* Appends an object to the array at path, made when first named; it lives as long as json. */
frag_json *frag_json_add(frag_json *json, const char *path);
/* Appends a text to the array at path, made when first named. */
void frag_json_append_text(frag_json *json, const char *path, const char *value);
/* The same with a number of at most 63 bits. */
void frag_json_append_number(frag_json *json, const char *path, uint64_t value);
/* The object at path, made when first named; it lives as long as json. */
frag_json *frag_json_object(frag_json *json, const char *path);
/* Makes an empty array at path. */
void frag_json_array(frag_json *json, const char *path);
/* Prints the object on one line with a newline, or indented, and frees it. */
void frag_json_write(frag_json *json, FILE *stream, bool is_indented);
void frag_json_destroy(frag_json *json);

/* Reading: one object (a line of JSON Lines), no key twice. NULL: FRAG_E_INPUT with the column. */
frag_json *frag_json_parse(const char *bytes, size_t length, frag_error *error);
/* The value at a path. false: not there, null, or of another kind; the value stays. The text
 * lives as long as the object. */
bool frag_json_find_text(const frag_json *json, const char *path, const char **value);
bool frag_json_find_number(const frag_json *json, const char *path, uint64_t *value);
/* The number there, or otherwise. */
uint64_t frag_json_number_at(const frag_json *json, const char *path, uint64_t otherwise);

/* Any value inside a parsed object; it lives as long as that. NULL, as "not there", may be handed
 * to each of these. */
typedef struct frag_json_value frag_json_value;

const frag_json_value *frag_json_at(const frag_json *json, const char *key);
const frag_json_value *frag_json_at_path(const frag_json *json, const char *path);
bool frag_json_is_null(const frag_json_value *value); /* written as null, not missing */
bool frag_json_is_array(const frag_json_value *value);
size_t frag_json_count(const frag_json_value *array);
/* NULL: not that long, or no array. */
const frag_json_value *frag_json_item(const frag_json_value *array, size_t index);
/* false: of another kind or out of range; *out stays. */
bool frag_json_read_number(const frag_json_value *value, uint64_t *out);
bool frag_json_read_signed(const frag_json_value *value, int64_t *out);
bool frag_json_read_ratio(const frag_json_value *value, double *out); /* whole numbers too */
bool frag_json_read_flag(const frag_json_value *value, bool *out);
bool frag_json_read_text(const frag_json_value *value, const char **out);
/* What stands where something else was expected, for a message: "is missing", "is null", "is 7",
 * "is \"left\"", "is an array", "is an object". Returns text. */
#define FRAG_JSON_FOUND_MAX 64
const char *frag_json_found(const frag_json_value *value, char text[FRAG_JSON_FOUND_MAX]);
/* Every member in order, until visit returns false; returns whether none did. */
bool frag_json_each(frag_json *json,
                    bool (*visit)(void *context, const char *key, const frag_json_value *value),
                    void *context);
/* Every value that is no object, null included, in order, under its dotted path from the top
 * ("peak.reserved_bytes"; at most 255 bytes, what is deeper is left out). Arrays are values. */
void frag_json_visit(frag_json *json,
                     void (*visit)(void *context, const char *path, const frag_json_value *value),
                     void *context);

/* As above for the members of an object inside a parsed one; false when value is no object. */
bool frag_json_each_in(const frag_json_value *object,
                       bool (*visit)(void *context, const char *key, const frag_json_value *value),
                       void *context);

/* "2.14", as linked. */
const char *frag_json_library_version(void);

#endif
