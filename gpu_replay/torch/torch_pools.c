#include "gpu_replay/torch/torch_pools.h"

/* _Manager_operation in libstdc++'s std_function.h */
enum { FILTER_CLONE = 2, FILTER_DESTROY = 3 };

uint32_t frag_torch_pool_find(const frag_torch_pools *pools, const frag_pool_id *ids,
                              frag_pool_id id)
{
    for (uint32_t i = pools->count; i > 0; i--)
        if (ids[i].high == id.high && ids[i].low == id.low)
            return i;
    return 0;
}

uint32_t frag_torch_pool_number(frag_torch_pools *pools, frag_pool_id *ids, frag_pool_id id)
{
    uint32_t pool = frag_torch_pool_find(pools, ids, id);
    if (pool != 0 || pools->count + 1 == FRAG_TORCH_POOL_MAX)
        return pool;
    ids[++pools->count] = id;
    return pools->count;
}

static uint32_t find_scope(const frag_torch_pools *pools, uint32_t pool)
{
    uint32_t i = 0;
    while (i < pools->scope_count && pools->scopes[i].pool != pool)
        i++;
    return i;
}

bool frag_torch_pools_open(frag_torch_pools *pools, uint32_t pool, const frag_torch_filter *filter)
{
    if (find_scope(pools, pool) < pools->scope_count)
        return false;
    frag_torch_scope *scope = &pools->scopes[pools->scope_count++];
    *scope = (frag_torch_scope){.pool = pool};
    if (filter == NULL || filter->manage == NULL)
        return true;
    filter->manage(scope->filter.functor, filter->functor, FILTER_CLONE);
    scope->filter.manage = filter->manage;
    scope->filter.call = filter->call;
    return true;
}

bool frag_torch_pools_close(frag_torch_pools *pools, uint32_t pool, bool *is_used)
{
    uint32_t at = find_scope(pools, pool);
    if (at == pools->scope_count)
        return false;
    *is_used = pools->scopes[at].is_used;
    frag_torch_filter *filter = &pools->scopes[at].filter;
    if (filter->manage != NULL)
        filter->manage(filter->functor, filter->functor, FILTER_DESTROY);
    pools->scope_count--;
    for (; at < pools->scope_count; at++)
        pools->scopes[at] = pools->scopes[at + 1];
    return true;
}

frag_torch_scope *frag_torch_pools_route(frag_torch_pools *pools, frag_cuda_stream stream)
{
    for (uint32_t i = pools->scope_count; i > 0; i--) {
        const frag_torch_filter *filter = &pools->scopes[i - 1].filter;
        if (filter->manage == NULL || filter->call(filter->functor, &stream))
            return &pools->scopes[i - 1];
    }
    return NULL;
}
