/* Private pools: who owns them, which requests go there, and when they are given back. */
#include "allocators/pytorch/pytorch_state.h"

uint32_t frag_pytorch_route(const frag_policy *policy, uint32_t stream)
{
    bool is_innermost_first = policy->settings.version >= 210;
    for (uint32_t i = 0; i < policy->scope_count; i++) {
        const frag_pytorch_scope *scope =
            &policy->scopes[is_innermost_first ? policy->scope_count - 1 - i : i];
        if (scope->stream == FRAG_STREAM_EVERY || scope->stream == stream)
            return scope->pool;
    }
    return 0;
}

static void add_owner(frag_policy *policy, uint32_t pool)
{
    frag_pytorch_pool *at = &policy->pools[pool];
    if (!at->exists)
        *at = (frag_pytorch_pool){.exists = true};
    at->owners++;
}

void frag_pytorch_pool_ensure(frag_policy *policy, uint32_t pool)
{
    if (!policy->pools[pool].exists)
        add_owner(policy, pool);
}

static uint32_t find_scope(const frag_policy *policy, uint32_t pool)
{
    uint32_t i = 0;
    while (i < policy->scope_count && policy->scopes[i].pool != pool)
        i++;
    return i;
}

/* A pool has one scope at a time; the library refuses another one. */
static void open_scope(frag_policy *policy, uint32_t pool, uint32_t stream)
{
    if (find_scope(policy, pool) < policy->scope_count)
        return;
    add_owner(policy, pool);
    policy->scopes[policy->scope_count++] = (frag_pytorch_scope){pool, stream};
    frag_pytorch_settle(policy);
}

/* Scopes may end in any order. */
static void close_scope(frag_policy *policy, uint32_t pool)
{
    uint32_t at = find_scope(policy, pool);
    if (at == policy->scope_count)
        return;
    policy->scope_count--;
    for (; at < policy->scope_count; at++)
        policy->scopes[at] = policy->scopes[at + 1];
    frag_pytorch_end_deferred(policy, pool);
    frag_pytorch_settle(policy);
}

static void drop_owner(frag_policy *policy, uint32_t pool)
{
    frag_pytorch_pool *at = &policy->pools[pool];
    if (!at->exists || at->owners == 0)
        return;
    at->owners--;
    if (at->owners == 0)
        frag_ordered_insert(&policy->freeable, frag_pytorch_pool_key(policy, pool), pool);
}

void frag_pytorch_pool_change(frag_policy *policy, frag_pool_change change, uint32_t pool,
                              uint32_t stream)
{
    if (pool == 0 || pool >= policy->pool_count)
        return;
    switch (change) {
    case FRAG_POOL_CREATED:
        add_owner(policy, pool);
        break;
    case FRAG_POOL_BEGUN:
        open_scope(policy, pool, stream);
        break;
    case FRAG_POOL_ENDED:
        close_scope(policy, pool);
        break;
    case FRAG_POOL_RELEASED:
        drop_owner(policy, pool);
        break;
    case FRAG_POOL_SERVES_OOM:
        frag_ordered_insert(&policy->on_oom, frag_pytorch_pool_key(policy, pool), pool);
        break;
    case FRAG_POOL_KEEPS_TO_IT:
        /* Before 2.11 there is no way to take the mark back. */
        if (policy->settings.version >= 211)
            frag_ordered_erase(&policy->on_oom, frag_pytorch_pool_key(policy, pool), pool);
        break;
    case FRAG_POOL_UNSPLIT:
        policy->pools[pool].is_unsplit = true;
        break;
    }
}

/* A free block of one pool that serves OOMs, as the library looks for it: in a scope of the pool,
 * opened for that and ended. Up to 2.10 this makes a pool anew that was given back, and then nobody
 * owns it. */
static uint32_t find_in_scope(frag_policy *policy, uint32_t pool, const frag_pytorch_list *list,
                              uint64_t rounded)
{
    if (!policy->pools[pool].exists) {
        if (policy->settings.version < 211) {
            add_owner(policy, pool);
            drop_owner(policy, pool);
        }
        return FRAG_PYTORCH_NONE;
    }
    uint32_t other = frag_pytorch_list_of(policy, pool, list->is_small, list->stream);
    uint32_t id =
        frag_pytorch_find(policy, &policy->lists[other], rounded, policy->settings.version < 210);
    /* The block found counts as in use: its neighbours do not coalesce with it. */
    frag_pytorch_at(policy, id)->list |= FRAG_PYTORCH_IN_USE;
    frag_pytorch_end_deferred(policy, pool);
    if (id != FRAG_PYTORCH_NONE)
        frag_pytorch_at(policy, id)->list &= ~FRAG_PYTORCH_IN_USE;
    return id;
}

uint32_t frag_pytorch_fall_back(frag_policy *policy, const frag_pytorch_list *list,
                                uint64_t rounded)
{
    if (list->pool != 0)
        return FRAG_PYTORCH_NONE;
    for (uint32_t slot = frag_ordered_next(&policy->on_oom, 0); slot != FRAG_ORDERED_END;
         slot = frag_ordered_next(&policy->on_oom, slot + 1)) {
        uint32_t pool = policy->on_oom.entries[slot].value;
        uint32_t id = find_in_scope(policy, pool, list, rounded);
        if (id != FRAG_PYTORCH_NONE)
            return id;
    }
    return FRAG_PYTORCH_NONE;
}

/* Has the pool any block at all? */
static bool is_empty(const frag_policy *policy, uint32_t pool)
{
    for (uint32_t id = 1; id < policy->block_count; id++) {
        const frag_pytorch_block *at = frag_pytorch_at(policy, id);
        if (at->list != FRAG_PYTORCH_UNUSED && (at->list & FRAG_PYTORCH_UNMAPPED) == 0 &&
            frag_pytorch_list_at(policy, at)->pool == pool)
            return false;
    }
    return true;
}

void frag_pytorch_pool_forget(frag_policy *policy, uint32_t pool)
{
    /* The library's count can reach 0 while blocks of expandable segments live, and then it crashes
     * sooner or later; here such a pool stays. */
    if (policy->pools[pool].device_count > 0 || !is_empty(policy, pool))
        return;
    frag_ordered_erase(&policy->freeable, frag_pytorch_pool_key(policy, pool), pool);
    policy->pools[pool].exists = false;
}
