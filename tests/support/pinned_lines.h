/* Answers that are pinned: many lines of text, compared with a compressed file of the tree. What
 * was changed on purpose is pinned anew, and the difference read. */
#ifndef FRAG_SUPPORT_PINNED_LINES_H
#define FRAG_SUPPORT_PINNED_LINES_H

#include <stdint.h>

#include "base/text.h"
#include "sim/trace/trace.h"
#include "traces/load.h"

typedef struct pinned_lines {
    const char *path; /* of the compressed file */
    void (*tell)(frag_text *out);
    const char *target; /* of make, that pins anew */
} pinned_lines;

/* The whole main() of a test: its exit code. It fails, and prints the first few lines that differ,
 * where the answers are not those of the file or memory is left behind. With the argument --write
 * it prints what the file should hold. */
int pinned_lines_test(const pinned_lines *pinned, int argc, char **argv);

/* For many more cases than a reader wants to see: makes one line of all that was told from a place
 * on, its name and a sum. With FRAG_PINNED_WHOLE in the environment it stays as it is, so that
 * --write before and after a change shows what the change was. */
void pinned_fold(frag_text *out, size_t from, const char *name);

/* For what would be too much to pin word by word: a sum that depends on every number and on their
 * order. Begins with 0. */
void pinned_add(uint64_t *sum, uint64_t number);
void pinned_add_text(uint64_t *sum, const char *text);
/* All that a recording says: facts, events, and the columns and stacks beside them. */
void pinned_add_recording(uint64_t *sum, const frag_recording *recording);

/* Appends what a reader makes of the bytes, as a line: the error with its place and sentence, or a
 * sum of all that was read, statistics and findings included. Words of zstd are left out. */
void pinned_tell_load(frag_text *out, const void *bytes, size_t count,
                      const frag_load_options *options);

#endif
