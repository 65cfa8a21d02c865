/* How far a dry run is, on the last line of a terminal. That line is taken out of what scrolls, and
 * the cursor is back where it was after each drawing: nothing is mixed into the script's own lines,
 * finished or not. */
#ifndef FRAG_DRYRUN_DRYRUN_PROGRESS_H
#define FRAG_DRYRUN_DRYRUN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct frag_dryrun_progress {
    const char *folder; /* where processes write PID.progress */
    uint64_t begin_ns;
    uint64_t drawn_ns;
    unsigned rows; /* for which the last line is taken; 0: it is not */
} frag_dryrun_progress;

/* false: it is not wanted, or stderr is no terminal. */
bool frag_dryrun_progress_begin(frag_dryrun_progress *progress, const char *folder, bool is_wanted);
/* Draws twice a second at most, from the second second on. */
void frag_dryrun_progress_draw(frag_dryrun_progress *progress);
/* Gives the line back. */
void frag_dryrun_progress_end(frag_dryrun_progress *progress);

#endif
