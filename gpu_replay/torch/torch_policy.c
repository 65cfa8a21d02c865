#include "gpu_replay/torch/torch_policy.h"

#include "base/bytes.h"

/* The library waits for streams itself (see torch_streams.h), so no block is ever used through the
 * policy. */
static void complete_nothing(void *context, frag_handle handle)
{
    (void)context;
    (void)handle;
    FRAG_ASSERT(false);
}

bool frag_torch_policy_create(frag_torch_policy *created, const frag_policy_spec *spec,
                              const char *torch_version, frag_device *device, frag_error *error)
{
    *created = (frag_torch_policy){.ops = spec->ops};
    frag_policy_setup setup = {
        .values = spec->values,
        .device = device,
        .arena = &created->arena,
        /* Requests over time have no end; what is sized by their number is bounded by what can be
         * held at once, since records are used again. */
        .limits = {.request_count = FRAG_TORCH_LIVE_MAX,
                   .live_count_max = FRAG_TORCH_LIVE_MAX,
                   .stream_count = FRAG_TORCH_STREAM_MAX,
                   .pool_count = FRAG_TORCH_POOL_MAX,
                   .requested_bytes_total = (uint64_t)1 << 60,
                   .peak_requested_bytes = (uint64_t)1 << 40},
        .recorded_version = torch_version,
        .stream_handles = created->stream_handles,
        .pool_ids = created->pool_ids,
        .on_complete = complete_nothing,
    };
    size_t bytes = created->ops->arena_bytes(&setup.limits, setup.values);
    if (!frag_arena_create(&created->arena, bytes, error))
        return false;
    created->policy = created->ops->create(&setup, error);
    if (created->policy != NULL)
        return true;
    frag_torch_policy_destroy(created);
    return false;
}

void frag_torch_policy_destroy(frag_torch_policy *policy)
{
    frag_arena_destroy(&policy->arena);
    *policy = (frag_torch_policy){0};
}
