/* A policy for a program whose requests are not known beforehand: with tables for more than any
 * program asks, which cost address space until they are used. */
#ifndef FRAG_TORCH_TORCH_POLICY_H
#define FRAG_TORCH_TORCH_POLICY_H

#include "allocators/registry.h"
#include "sim/policy.h"

/* The library refuses what goes beyond, so that no policy ever runs over its tables. */
#define FRAG_TORCH_LIVE_MAX ((uint32_t)1 << 22) /* blocks, live or waiting for a stream */
#define FRAG_TORCH_STREAM_MAX 256u
#define FRAG_TORCH_STREAM_NOBODY (FRAG_TORCH_STREAM_MAX - 1) /* a number that no stream gets */
#define FRAG_TORCH_POOL_MAX 512u                             /* the default one included */

typedef struct frag_torch_policy {
    const frag_policy_ops *ops;
    frag_policy *policy;
    frag_arena arena;
    uint64_t stream_handles[FRAG_TORCH_STREAM_MAX]; /* filled as streams turn up */
    frag_pool_id pool_ids[FRAG_TORCH_POOL_MAX];
} frag_torch_policy;

/* Creates a policy on a device, in place: the policy keeps addresses of *created.
 * false: an option does not fit, or the system refuses the address space. */
bool frag_torch_policy_create(frag_torch_policy *created, const frag_policy_spec *spec,
                              const char *torch_version, frag_device *device, frag_error *error);
void frag_torch_policy_destroy(frag_torch_policy *policy);

#endif
