/* Finds the wordings of the table in a text made plain. */
#ifndef FRAG_MESSAGES_WORDING_MATCH_H
#define FRAG_MESSAGES_WORDING_MATCH_H

#include "messages/message_text.h"
#include "messages/wordings.h"

enum { FRAG_WORDING_CAPTURES_MAX = 4, FRAG_WORDING_BYTES = 256 };

/* One wording at one place. */
typedef struct frag_wording_match {
    const frag_wording *wording;
    size_t at;
    size_t bytes; /* of the text */
    frag_amount captures[FRAG_WORDING_CAPTURES_MAX];
    size_t capture_count;
} frag_wording_match;

/* The wordings by their first two bytes; those that begin with a size are in the list of two zeros.
 */
typedef struct frag_wording_index {
    uint16_t first[FRAG_WORDING_BYTES][FRAG_WORDING_BYTES]; /* from 1; 0: none */
    uint16_t *next;                                         /* the next that begins so too */
} frag_wording_index;

void frag_wording_index_make(frag_wording_index *index);
void frag_wording_index_destroy(frag_wording_index *index);

/* The first place at or behind from at which a wording fits and ends behind the byte behind, and of
 * those that fit there the one that covers most text. false: there is none. */
bool frag_wording_find(const frag_wording_index *index, const frag_message_text *text, size_t from,
                       size_t behind, frag_wording_match *found);

#endif
