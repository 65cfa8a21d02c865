#include "traces/torch/pools/snapshot_order.h"

#include <stdlib.h>

#include "base/bits.h"
#include "base/error.h"
#include "base/memory.h"

enum { BIN_COUNT = 512, WORD_COUNT = BIN_COUNT / 64, DEPTH_EXPECTED = 64 };

struct frag_free_bins {
    uint64_t words[WORD_COUNT]; /* a bit for each bin that is not empty */
    uint32_t roots[BIN_COUNT];
};

/* 8 bins to an octave. bytes is below 2^63; 0 is taken for 1. */
static inline uint32_t bin_of(uint64_t bytes)
{
    return frag_octave_step(bytes | 1, 3);
}

static inline bool is_below(const frag_free_layout_block *block, uint64_t bytes, uint64_t address)
{
    return frag_pair_is_below(block->bytes, block->address, bytes, address);
}

/* Of two blocks of a tree the one with more weight is nearer to the root. Weights are as good as
 * drawn by lot, and all different. */
static inline uint32_t weight_of(uint32_t block)
{
    return block * 0x9E3779B1u;
}

static inline void count_steps(uint64_t *steps, uint64_t depth)
{
    if (FRAG_UNLIKELY(depth > DEPTH_EXPECTED))
        *steps += depth;
}

void frag_free_order_add(frag_free_order *order, frag_free_layout_block *blocks, uint32_t block,
                         uint64_t *steps)
{
    if (order->bins == NULL)
        order->bins = frag_alloc(1, sizeof *order->bins);
    frag_free_layout_block *added = &blocks[block];
    uint32_t bin = bin_of(added->bytes);
    uint32_t *link = &order->bins->roots[bin];
    uint64_t depth = 0;
    order->bins->words[bin / 64] |= (uint64_t)1 << bin % 64;
    for (; *link != 0 && weight_of(*link) > weight_of(block); depth++) {
        frag_free_layout_block *at = &blocks[*link];
        link = &at->child[is_below(at, added->bytes, added->address)];
    }
    /* What was here is shared out to both sides of the block. */
    uint32_t rest = *link;
    uint32_t *ends[2] = {&added->child[0], &added->child[1]};
    *link = block;
    for (; rest != 0; depth++) {
        frag_free_layout_block *at = &blocks[rest];
        bool is_before = is_below(at, added->bytes, added->address);
        *ends[!is_before] = rest;
        ends[!is_before] = &at->child[is_before];
        rest = at->child[is_before];
    }
    *ends[0] = 0;
    *ends[1] = 0;
    count_steps(steps, depth);
}

void frag_free_order_remove(frag_free_order *order, frag_free_layout_block *blocks, uint32_t block,
                            uint64_t *steps)
{
    const frag_free_layout_block *removed = &blocks[block];
    uint32_t bin = bin_of(removed->bytes);
    FRAG_ASSERT(order->bins != NULL);
    uint32_t *link = &order->bins->roots[bin];
    uint64_t depth = 0;
    for (; *link != block; depth++) {
        FRAG_ASSERT(*link != 0);
        frag_free_layout_block *at = &blocks[*link];
        link = &at->child[is_below(at, removed->bytes, removed->address)];
    }
    uint32_t before = removed->child[0];
    uint32_t behind = removed->child[1];
    for (; before != 0 && behind != 0; depth++) {
        bool is_before = weight_of(before) > weight_of(behind);
        uint32_t *taken = is_before ? &before : &behind;
        *link = *taken;
        link = &blocks[*link].child[is_before];
        *taken = *link;
    }
    *link = before | behind;
    count_steps(steps, depth);
    if (order->bins->roots[bin] == 0)
        order->bins->words[bin / 64] &= ~((uint64_t)1 << bin % 64);
}

/* The first bin that is not empty, from one on; BIN_COUNT when there is none. */
static uint32_t bin_from(const frag_free_bins *bins, uint32_t bin)
{
    uint32_t word = bin / 64;
    if (word == WORD_COUNT)
        return BIN_COUNT;
    uint64_t bits = bins->words[word] >> bin % 64;
    if (bits != 0)
        return bin + frag_bit_low(bits);
    while (++word < WORD_COUNT)
        if (bins->words[word] != 0)
            return word * 64 + frag_bit_low(bins->words[word]);
    return BIN_COUNT;
}

/* The first block of a tree that is not below a size and an address, or 0. */
static uint32_t first_from(const frag_free_layout_block *blocks, uint32_t root, uint64_t bytes,
                           uint64_t address, uint64_t *steps)
{
    uint32_t found = 0;
    uint64_t depth = 0;
    for (uint32_t at = root; at != 0; depth++) {
        bool is_before = is_below(&blocks[at], bytes, address);
        found = is_before ? found : at;
        at = blocks[at].child[is_before];
    }
    count_steps(steps, depth);
    return found;
}

uint32_t frag_free_order_from(const frag_free_order *order, const frag_free_layout_block *blocks,
                              uint64_t bytes, uint64_t address, uint64_t *steps)
{
    const frag_free_bins *bins = order->bins;
    if (bins == NULL)
        return 0;
    uint32_t bin = bin_of(bytes);
    uint32_t found = first_from(blocks, bins->roots[bin], bytes, address, steps);
    if (found != 0)
        return found;
    bin = bin_from(bins, bin + 1);
    return bin == BIN_COUNT ? 0 : first_from(blocks, bins->roots[bin], bytes, address, steps);
}

void frag_free_order_destroy(frag_free_order *order)
{
    frag_free(order->bins);
    *order = (frag_free_order){0};
}
