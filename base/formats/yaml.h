/* YAML documents as small trees; the only file that knows libyaml.
 *
 * What people write for fraglab (latency tables, experiments, workloads) is read whole, at most
 * 1 MiB of it. Every node knows its line and column, so that whoever reads a value can say where
 * it is wrong. Refused: more than one document, anchors and aliases, tags, keys given twice, keys
 * that are not plain words, more than 32 levels. */
#ifndef FRAG_FORMATS_YAML_H
#define FRAG_FORMATS_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

typedef enum frag_yaml_kind {
    FRAG_YAML_SCALAR,
    FRAG_YAML_SEQUENCE,
    FRAG_YAML_MAPPING
} frag_yaml_kind;

typedef struct frag_yaml_node {
    frag_yaml_kind kind;
    uint64_t line; /* from 1; of the value */
    uint64_t column;
    uint64_t key_line; /* of the key, inside a mapping */
    uint64_t key_column;
    char *key;  /* inside a mapping, else NULL */
    char *text; /* SCALAR: UTF-8, no zero byte inside */
    bool is_quoted;
    struct frag_yaml_node *first; /* of the items, in order of the document */
    struct frag_yaml_node *next;  /* beside this one */
    uint64_t count;               /* of the items */
} frag_yaml_node;

/* The root of the document, or NULL with file, line and column in error. "-" is stdin. */
frag_yaml_node *frag_yaml_load(const char *path, frag_error *error);
frag_yaml_node *frag_yaml_parse(const void *bytes, size_t count, frag_error *error);
void frag_yaml_destroy(frag_yaml_node *root);

/* The value of a key of a mapping, or NULL. */
const frag_yaml_node *frag_yaml_find(const frag_yaml_node *mapping, const char *key);

/* Is it of that kind? what names it in the sentence: "calls". */
bool frag_yaml_expect(const frag_yaml_node *node, frag_yaml_kind kind, const char *what,
                      frag_error *error);

/* Every key of a mapping must be one of these; the nearest is suggested. names ends with NULL. */
bool frag_yaml_check_keys(const frag_yaml_node *mapping, const char *const *names,
                          frag_error *error);

/* Values of scalars, in the forms of base/bytes.h; the error is at the node. */
bool frag_yaml_text(const frag_yaml_node *node, const char **text, frag_error *error);
bool frag_yaml_bytes(const frag_yaml_node *node, uint64_t *bytes, frag_error *error);
bool frag_yaml_count(const frag_yaml_node *node, uint64_t min, uint64_t max, uint64_t *count,
                     frag_error *error);
bool frag_yaml_ratio(const frag_yaml_node *node, double min, double max, double *ratio,
                     frag_error *error);
bool frag_yaml_flag(const frag_yaml_node *node, bool *flag, frag_error *error); /* true or false */

/* ---- writing */
/* "key: 'value'" and a line's end, quoted so that nothing in it has a meaning; one line of text.
 * Nothing for "". */
void frag_yaml_write_text(frag_text *text, const char *key, const char *value);
/* "key: 2MiB", in the largest unit that comes out whole. */
void frag_yaml_write_bytes(frag_text *text, const char *key, uint64_t bytes);

/* "0.2.5", as linked. */
const char *frag_yaml_library_version(void);

#endif
