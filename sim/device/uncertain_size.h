/* Sizes of which only two ends are known, such as workspaces that libraries choose by rules that
 * are not published. What lies between is drawn: what a pool reserves need not lie between what it
 * reserves at the ends. Dry runs and plans draw the same. */
#ifndef FRAG_DEVICE_UNCERTAIN_SIZE_H
#define FRAG_DEVICE_UNCERTAIN_SIZE_H

#include <stdint.h>

/* Draw 0: least; above, a place of its own between the ends, in steps of 512 bytes. which: the
 * number of the size among those that are uncertain, from 0; the same one has the same place
 * whenever it is asked for. */
uint64_t frag_uncertain_bytes(uint64_t least, uint64_t most, uint64_t which, uint64_t draw);

/* How many draws above 0 are worth replaying: up to 15 while their events stay below events_max,
 * and never fewer than 3. */
uint64_t frag_uncertain_draws(uint64_t event_count, uint64_t events_max);

#endif
