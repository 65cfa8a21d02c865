/* One policy on one simulated device, for tests that say in a few lines what is asked and what must
 * come. */
#ifndef FRAG_SUPPORT_SMALL_WORLD_H
#define FRAG_SUPPORT_SMALL_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "allocators/registry.h"
#include "sim/device.h"

typedef struct small_world {
    frag_policy_spec spec;
    frag_arena arena;
    frag_device *device;
    frag_policy *policy;
    uint64_t complete_count; /* calls of on_complete */
} small_world;

enum { SMALL_WORLD_STREAMS = 3, SMALL_WORLD_POOLS = 2 };

/* policy as after --policy. Up to 1000 blocks at once of up to 1 GiB. Fails the test when refused.
 */
void small_world_open(small_world *world, const char *policy, uint64_t capacity_bytes);
/* For a trace with so many requests, on a device without a limit. */
void small_world_open_for(small_world *world, const char *policy, uint64_t request_count);
void small_world_close(small_world *world);

/* Is the policy, or an option value, refused with a sentence that has these words in it? */
bool small_world_refuses(const char *policy, const char *words);

/* Fails the test when the policy is out of memory. */
frag_grant small_world_alloc(small_world *world, uint64_t bytes);
bool small_world_has_room(small_world *world, uint64_t bytes);
void small_world_free(small_world *world, frag_grant grant);
/* The same on a stream; those above are on stream 0. */
frag_grant small_world_alloc_on(small_world *world, uint32_t stream, uint64_t bytes);
void small_world_free_on(small_world *world, uint32_t stream, frag_grant grant);
void small_world_empty_cache(small_world *world);

/* Holes inside segments. */
uint64_t small_world_hole_count(const small_world *world);
uint64_t small_world_segment_count(const small_world *world);

#endif
