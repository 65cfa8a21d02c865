/* Sizes between two ends, drawn by their number. */
#include "sim/device/uncertain_size.h"

#include "base/random.h"

#define BLOCK_BYTES ((uint64_t)512) /* what PyTorch rounds requests to */
enum { DRAWS_MIN = 3, DRAWS_MAX = 15 };

uint64_t frag_uncertain_bytes(uint64_t least, uint64_t most, uint64_t which, uint64_t draw)
{
    uint64_t width = most > least ? (most - least) / BLOCK_BYTES + 1 : 1;
    uint64_t number = frag_random_at(draw << 32 | which);
    return draw == 0 ? least : least + number % width * BLOCK_BYTES;
}

uint64_t frag_uncertain_draws(uint64_t event_count, uint64_t events_max)
{
    uint64_t draws = events_max / (event_count + 1);
    return draws > DRAWS_MAX ? DRAWS_MAX : draws < DRAWS_MIN ? DRAWS_MIN : draws;
}
