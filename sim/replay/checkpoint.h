/* Checkpoints: a replay goes on from the state that it was in before.
 *
 * Runs of one trace that can only differ from some event on need not all begin at the first one.
 * The replay that comes to that event keeps its state there, runs on to its end, and returns. What
 * is kept is a copy of the memory that was written: slots, the policy's records, the device's
 * lists. Pages that hold nothing cost nothing. */
#ifndef FRAG_REPLAY_CHECKPOINT_H
#define FRAG_REPLAY_CHECKPOINT_H

#include "sim/replay/replay.h"

typedef struct frag_checkpoint frag_checkpoint;

frag_checkpoint *frag_checkpoint_create(void);
/* NULL is allowed. */
void frag_checkpoint_destroy(frag_checkpoint *checkpoint);

/* Keeps the state of a replay that has been started and not finished, in place of an earlier one.
 * false: it cannot be kept, since the policy is from a shared object (which may have memory of its
 * own), the device is another than the simulated one, somebody watches, or the system does not tell
 * which pages were written. */
bool frag_checkpoint_keep(frag_checkpoint *checkpoint, const frag_replay *replay);

/* The same replay and its device are as they were when kept; as often as wanted. */
void frag_checkpoint_return(frag_checkpoint *checkpoint, frag_replay *replay);

#endif
