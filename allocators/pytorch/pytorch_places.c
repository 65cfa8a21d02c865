/* Free blocks by address, for requests that name their place: a hash table with chains. It is kept
 * from the first such request on, since few programs make any. */
#include "allocators/pytorch/pytorch_state.h"
#include "base/bits.h"

/* Chains at the start; there are twice as many whenever as many blocks are free. */
#define BITS_MIN 4u

static uint32_t chain_max(const frag_policy *policy)
{
    return (uint32_t)frag_power_of_two_up(policy->block_max);
}

static uint32_t chain_count(const frag_policy *policy)
{
    return (uint32_t)1 << policy->place_bits;
}

static uint32_t *chain_of(const frag_policy *policy, uint64_t address)
{
    uint64_t hash = address / FRAG_PYTORCH_ROUND * 0x9e3779b97f4a7c15;
    return &policy->place_chains[hash >> (64 - policy->place_bits)];
}

static void push(frag_policy *policy, uint32_t id)
{
    uint32_t *chain = chain_of(policy, frag_pytorch_at(policy, id)->address);
    policy->place_next[id] = *chain;
    *chain = id;
}

/* The blocks of chain i go to the chains 2 i and 2 i + 1. */
static void double_chains(frag_policy *policy)
{
    uint32_t i = chain_count(policy);
    policy->place_bits++;
    while (i-- > 0) {
        uint32_t id = policy->place_chains[i];
        policy->place_chains[(size_t)i * 2] = FRAG_PYTORCH_NONE;
        policy->place_chains[(size_t)i * 2 + 1] = FRAG_PYTORCH_NONE;
        for (uint32_t next = 0; id != FRAG_PYTORCH_NONE; id = next) {
            next = policy->place_next[id];
            push(policy, id);
        }
    }
}

void frag_pytorch_add_place(frag_policy *policy, uint32_t id)
{
    if (policy->place_count++ == chain_count(policy) && chain_count(policy) < chain_max(policy))
        double_chains(policy);
    push(policy, id);
}

void frag_pytorch_remove_place(frag_policy *policy, uint32_t id)
{
    uint32_t *at = chain_of(policy, frag_pytorch_at(policy, id)->address);
    while (*at != id) {
        FRAG_ASSERT(*at != FRAG_PYTORCH_NONE);
        at = &policy->place_next[*at];
    }
    *at = policy->place_next[id];
    policy->place_count--;
}

void frag_pytorch_keep_places(frag_policy *policy)
{
    if (policy->place_bits != 0)
        return;
    policy->place_bits = BITS_MIN;
    for (uint32_t id = 1; id < policy->block_count; id++)
        if (frag_pytorch_is_free(frag_pytorch_at(policy, id)))
            frag_pytorch_add_place(policy, id);
    policy->is_watched = true;
}

uint32_t frag_pytorch_find_place(const frag_policy *policy, uint32_t pool, uint64_t address,
                                 uint64_t bytes)
{
    uint32_t id = *chain_of(policy, address);
    while (id != FRAG_PYTORCH_NONE && frag_pytorch_at(policy, id)->address != address)
        id = policy->place_next[id];
    const frag_pytorch_block *at = frag_pytorch_at(policy, id);
    return id != FRAG_PYTORCH_NONE && at->bytes >= bytes &&
                   frag_pytorch_list_at(policy, at)->pool == pool
               ? id
               : FRAG_PYTORCH_NONE;
}
