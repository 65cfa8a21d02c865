/* A run with another batch, guessed from two: where the same requests come in the same order, the
 * size of each lies on a line through its sizes in the two. A guess to be checked by a run: what
 * libraries choose can change with the batch. */
#ifndef FRAG_DRYRUN_DRYRUN_SCALE_H
#define FRAG_DRYRUN_DRYRUN_SCALE_H

#include "studies/dryrun/dryrun_replay.h"

/* A run with a value, which grew from the first to the second of two. */
typedef struct frag_dryrun_scaled {
    const frag_recording *recording;
    const frag_trace *trace;
    uint64_t value;
} frag_dryrun_scaled;

/* Do the two have the same requests but for their sizes, and smaller.value < larger.value? */
bool frag_dryrun_scales(const frag_dryrun_scaled *smaller, const frag_dryrun_scaled *larger);

/* Of runs that scale: the greatest value from larger->value to last whose requests fit on the card,
 * by replay, taken that a greater one never fits where a smaller does not. torch: the release.
 * false: the policy cannot replay them. */
bool frag_dryrun_guess_max(const frag_context *context, const frag_dryrun_scaled *smaller,
                           const frag_dryrun_scaled *larger, const frag_dryrun_card *card,
                           const char *torch, uint64_t last, uint64_t *value, frag_error *error);

#endif
