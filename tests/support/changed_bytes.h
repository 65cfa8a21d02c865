/* Files with one thing changed, for tests of readers: a byte, a number, a line, a record. The same
 * number makes the same change. */
#ifndef FRAG_SUPPORT_CHANGED_BYTES_H
#define FRAG_SUPPORT_CHANGED_BYTES_H

#include "base/text.h"

typedef struct changed_file {
    const unsigned char *bytes;
    size_t count;
    bool is_binary; /* no lines, and numbers are bytes */
} changed_file;

/* Appends the file with its change of that number to *to, and in a few words what it is to *what.
 */
void changed_bytes(const changed_file *file, uint64_t number, frag_text *to, frag_text *what);

/* As changed_bytes, but always a word of a text: left out, said twice, moved, put on a line of its
 * own, or one of those that messages about memory are made of. */
void changed_words(const changed_file *file, uint64_t number, frag_text *to, frag_text *what);

/* As changed_bytes, but always a figure of a text, with its fraction: another one of the text, the
 * half, twice as much, nothing, a little more. Two figures change where the number is odd. */
void changed_figures(const changed_file *file, uint64_t number, frag_text *to, frag_text *what);

/* As changed_bytes, but the numbers of a text in turn, each as every number that is a limit
 * somewhere, one less and one more. false: it has no number left. */
bool changed_borders(const changed_file *file, uint64_t number, frag_text *to, frag_text *what);

/* As changed_bytes, but always a number of a text, as another number of it, one less or one more;
 * or as the sum or the difference of the two. */
void changed_pairs(const changed_file *file, uint64_t number, frag_text *to, frag_text *what);

/* As changed_bytes, but the bytes of a file in turn, each one more and one less. false: it has no
 * byte left. */
bool changed_in_turn(const changed_file *file, uint64_t number, frag_text *to, frag_text *what);

#endif
