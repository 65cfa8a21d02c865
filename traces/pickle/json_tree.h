/* JSON into the tree of traces/pickle/pickle_tree.h: the second syntax of a snapshot.
 *
 * Objects become dictionaries, arrays lists (two whole numbers: a tuple, as in a pickle), and null
 * None. Written by Python's json.dump, a snapshot may also hold NaN and Infinity; whole numbers
 * that do not fit 64 bits become decimal ones, and decimal ones without a fraction (512.0, as other
 * languages write a size) whole ones. The text is read through a window and never kept; jansson
 * would build all of it first, ten times as large. */
#ifndef FRAG_PICKLE_JSON_TREE_H
#define FRAG_PICKLE_JSON_TREE_H

#include "base/error.h"
#include "base/file.h"
#include "traces/pickle/pickle.h"

typedef struct frag_json_tree_options {
    frag_pickle_visitor visitor; /* NULL: none */
    void *context;
    /* Bit i: arrays under the key with string id i that have the same text are one object. JSON
     * repeats the whole stack in every entry, which a pickle only names. */
    uint64_t shared_keys;
    bool is_part; /* something else follows the value, which stays unread */
} frag_json_tree_options;

/* Reads one value from where the input stands into an empty tree. FRAG_E_INPUT with the offset. */
bool frag_json_tree_read(frag_pickle *tree, frag_input *input,
                         const frag_json_tree_options *options, frag_pickle_value *root,
                         frag_error *error);

#endif
