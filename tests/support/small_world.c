#include "tests/support/small_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"

enum { REQUESTS = 10000 };

static void count_complete(void *context, frag_handle handle)
{
    small_world *world = context;
    (void)handle;
    world->complete_count++;
}

static bool make(small_world *world, const char *policy, uint64_t capacity_bytes,
                 uint64_t request_count, frag_error *error)
{
    memset(world, 0, sizeof *world);
    if (!frag_policy_spec_parse(policy, &world->spec, error))
        return false;
    static const uint64_t handles[SMALL_WORLD_STREAMS] = {0, 4096, 8192};
    static const frag_pool_id pools[SMALL_WORLD_POOLS] = {{0, 0}, {0, 1}};
    frag_sim_device_options options = {.capacity_bytes = capacity_bytes};
    world->device = frag_sim_device_create(&options);
    frag_policy_limits limits = {.request_count = request_count,
                                 .live_count_max = 1000,
                                 .stream_count = SMALL_WORLD_STREAMS,
                                 .pool_count = SMALL_WORLD_POOLS,
                                 .requested_bytes_total = 1000 * FRAG_GIB};
    const frag_policy_ops *ops = world->spec.ops;
    assert_true(
        frag_arena_create(&world->arena, ops->arena_bytes(&limits, world->spec.values), error));
    frag_policy_setup setup = {.values = world->spec.values,
                               .device = world->device,
                               .arena = &world->arena,
                               .limits = limits,
                               .recorded_version = "",
                               .stream_handles = handles,
                               .pool_ids = pools,
                               .on_complete = count_complete,
                               .on_complete_context = world};
    world->policy = ops->create(&setup, error);
    return world->policy != NULL;
}

void small_world_open(small_world *world, const char *policy, uint64_t capacity_bytes)
{
    frag_error error = {0};
    if (!make(world, policy, capacity_bytes, REQUESTS, &error))
        fail_msg("%s: %s", policy, error.sentence);
}

void small_world_open_for(small_world *world, const char *policy, uint64_t request_count)
{
    frag_error error = {0};
    if (!make(world, policy, FRAG_UNLIMITED, request_count, &error))
        fail_msg("%s: %s", policy, error.sentence);
}

static void destroy(small_world *world)
{
    frag_device_destroy(world->device);
    if (world->arena.base != NULL)
        frag_arena_destroy(&world->arena);
    frag_policy_spec_destroy(&world->spec);
}

void small_world_close(small_world *world)
{
    frag_error error = {0};
    if (!world->spec.ops->check(world->policy, &error))
        fail_msg("%s: %s", world->spec.text, error.sentence);
    destroy(world);
}

bool small_world_refuses(const char *policy, const char *words)
{
    small_world world;
    frag_error error = {0};
    bool is_made = make(&world, policy, FRAG_UNLIMITED, REQUESTS, &error);
    destroy(&world);
    return !is_made && error.code == FRAG_E_USAGE && strstr(error.sentence, words) != NULL;
}

frag_grant small_world_alloc_on(small_world *world, uint32_t stream, uint64_t bytes)
{
    frag_request request = {.bytes = bytes, .stream = stream};
    frag_grant grant = {0};
    if (!world->spec.ops->alloc(world->policy, &request, &grant))
        fail_msg("%s: out of memory for %llu bytes", world->spec.text, (unsigned long long)bytes);
    frag_error error = {0};
    if (!world->spec.ops->check(world->policy, &error))
        fail_msg("%s: %s", world->spec.text, error.sentence);
    return grant;
}

frag_grant small_world_alloc(small_world *world, uint64_t bytes)
{
    return small_world_alloc_on(world, 0, bytes);
}

bool small_world_has_room(small_world *world, uint64_t bytes)
{
    frag_request request = {.bytes = bytes};
    frag_grant grant = {0};
    if (!world->spec.ops->alloc(world->policy, &request, &grant))
        return false;
    world->spec.ops->free(world->policy, grant.handle, 0);
    return true;
}

void small_world_free_on(small_world *world, uint32_t stream, frag_grant grant)
{
    world->spec.ops->free(world->policy, grant.handle, stream);
}

void small_world_free(small_world *world, frag_grant grant)
{
    small_world_free_on(world, 0, grant);
}

void small_world_empty_cache(small_world *world)
{
    world->spec.ops->empty_cache(world->policy, FRAG_POOL_ALL);
}

typedef struct span_count {
    frag_span_kind kind;
    uint64_t count;
} span_count;

static void count_span(void *context, const frag_span *span)
{
    span_count *state = context;
    state->count += span->kind == state->kind;
}

uint64_t small_world_hole_count(const small_world *world)
{
    span_count holes = {.kind = FRAG_SPAN_HOLE};
    world->spec.ops->walk(world->policy, count_span, &holes);
    return holes.count;
}

uint64_t small_world_segment_count(const small_world *world)
{
    span_count segments = {.kind = FRAG_SPAN_SEGMENT};
    world->spec.ops->walk(world->policy, count_span, &segments);
    return segments.count;
}
