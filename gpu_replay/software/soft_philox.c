/* Philox4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC
 * 2011. curand's generator of that name has the seed as its key, and as its counter how many words
 * a thread has drawn, divided by 4, below the thread's number. */
#include "gpu_replay/software/soft_state.h"

#define ROUNDS 10

typedef struct block {
    uint32_t word[4];
} block;

static block philox(block counter, uint64_t key)
{
    uint32_t key0 = (uint32_t)key;
    uint32_t key1 = (uint32_t)(key >> 32);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t product0 = UINT64_C(0xD2511F53) * counter.word[0];
        uint64_t product1 = UINT64_C(0xCD9E8D57) * counter.word[2];
        counter =
            (block){{(uint32_t)(product1 >> 32) ^ counter.word[1] ^ key0, (uint32_t)product1,
                     (uint32_t)(product0 >> 32) ^ counter.word[3] ^ key1, (uint32_t)product0}};
        key0 += 0x9E3779B9;
        key1 += 0xBB67AE85;
    }
    return counter;
}

/* What curand4 gives a thread that has drawn so many words, a multiple of 4. */
static block draw(uint64_t seed, uint64_t thread, uint64_t drawn)
{
    uint64_t count = drawn / 4;
    block counter = {
        {(uint32_t)count, (uint32_t)(count >> 32), (uint32_t)thread, (uint32_t)(thread >> 32)}};
    return philox(counter, seed);
}

void frag_software_draw(const frag_software_draws *draws, uint64_t *out, size_t count)
{
    uint64_t parts = draws->is_wide ? 2 : 4; /* of a block */
    uint64_t threads = draws->thread_count;
    for (size_t i = 0; i < count; i++) {
        uint64_t turn = threads == 0 ? 0 : i / (threads * parts);
        uint64_t thread = threads == 0 ? i / parts : i % threads;
        uint64_t part = threads == 0 ? i % parts : i / threads % parts;
        block drawn = draw(draws->seed, thread, draws->offset + 4 * turn);
        out[i] = draws->is_wide ? (uint64_t)drawn.word[2 * part] << 32 | drawn.word[2 * part + 1]
                                : drawn.word[part];
        if (draws->range != 0)
            out[i] %= draws->range;
    }
}
