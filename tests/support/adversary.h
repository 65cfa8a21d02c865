/* Worlds in which one byte is one word, and the sequences that are known to drive policies to their
 * worst in them. */
#ifndef FRAG_SUPPORT_ADVERSARY_H
#define FRAG_SUPPORT_ADVERSARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/registry.h"
#include "sim/device.h"

typedef struct word_block {
    uint64_t start; /* from the lowest address */
    uint64_t words; /* asked for; 0: not live */
    frag_handle handle;
} word_block;

/* One policy on a simulated device with pages of one byte. */
typedef struct word_world {
    frag_policy_spec spec;
    frag_arena arena;
    frag_device *device;
    frag_policy *policy;
    uint64_t base; /* of the reserved range, known after the first grant */
    word_block *blocks;
    size_t block_max;
    uint64_t live_words;
    uint64_t high_water; /* end of the highest block ever */
} word_world;

/* policy as after --policy; fails the test when it cannot be made. live_max blocks at once, and
 * request_max requests in all of at most words_max words each. */
void word_world_open(word_world *world, const char *policy, uint64_t capacity_words,
                     uint32_t live_max, uint64_t request_max, uint64_t words_max);
void word_world_close(word_world *world);

/* Returns the number of the block. false: out of memory. */
bool word_world_alloc(word_world *world, uint64_t words, size_t *block);
void word_world_free(word_world *world, size_t block);

/* Robson's program P_R(M, n) of 1974: adapts to any policy. Returns the highest word it used. */
uint64_t adversary_robson(const char *policy, uint64_t live_words, uint64_t size_max);

/* A program that drives best fit to about 0.42 M n words while first fit stays below 2 M. */
uint64_t adversary_best_fit(const char *policy, uint64_t live_words, uint64_t size_max);

/* The highest word over all sequences of requests of the given sizes with at most live_words live.
 */
uint64_t adversary_exhaustive(const char *policy, uint64_t live_words, const uint64_t *sizes,
                              size_t size_count);

#endif
