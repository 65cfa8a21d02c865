/* The small pool by itself: what a replay needs to know so that it can leave out small requests
 * that come again (sim/replay/replay_again.c). A block of that pool is cut to its size, and a free
 * one joins its neighbours at once: where segments and blocks in use lie is all that there is to
 * know, as long as ties go by address. */
#include "allocators/pytorch/pytorch_state.h"

static uint64_t small_version(const frag_policy *policy)
{
    bool is_apart = policy->is_plain && policy->settings.tie == FRAG_PYTORCH_TIE_ADDRESS;
    return is_apart ? policy->small_calls + 1 : 0;
}

static bool is_small(const frag_policy *policy, uint64_t bytes)
{
    return frag_pytorch_round(&policy->settings, bytes) <= FRAG_PYTORCH_SMALL_MAX;
}

static uint64_t address_of(const frag_policy *policy, frag_handle handle)
{
    return frag_pytorch_at(policy, handle)->address;
}

const frag_policy_small frag_pytorch_small = {
    .version = small_version,
    .is_small = is_small,
    .alloc_cached = frag_pytorch_alloc_cached,
    .address = address_of,
};
