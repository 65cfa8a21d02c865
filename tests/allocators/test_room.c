/* Every policy has room for the traces that take the most of it: its own estimate of the records
 * that it will need (arena_bytes) is all it gets, and a record too many ends the program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "allocators/registry.h"
#include "base/bytes.h"
#include "sim/run.h"
#include "tests/support/text_recording.h"
#include "traces/builder.h"

/* Beside the defaults of every policy. */
static const char *const variants[] = {
    "pytorch:expandable_segments=true",
    "pytorch:version=2.12",
    "pytorch:garbage_collection_threshold=0.5",
    "composed:lists=by-stream,merge=never",
    "composed:lists=by-size,split=never,grow=reserve",
    "rmm-binning:min_size_exponent=10,max_size_exponent=24",
    "rmm-fixed-size:block_size=4194304,blocks_to_preallocate=1",
    "size-class:keep=0",
    "buddy:sizes=fibonacci",
    "gmlake:fragLimit=2MiB",
    "vma:dedicated=always",
};

static void add_alloc(frag_builder *builder, uint32_t slot, uint64_t bytes, uint64_t stream,
                      uint32_t pool)
{
    frag_builder_add(
        builder,
        &(frag_build_event){
            .op = FRAG_OP_ALLOC, .slot = slot, .bytes = bytes, .stream = stream, .pool = pool});
}

static void add_free(frag_builder *builder, uint32_t slot)
{
    frag_builder_add(builder, &(frag_build_event){.op = FRAG_OP_FREE, .slot = slot});
}

/* Blocks of as many sizes, every other one freed, and the holes filled with smaller ones. */
static void make_sizes(frag_builder *builder)
{
    enum { COUNT = 6000 };
    for (uint32_t i = 0; i < COUNT; i++)
        add_alloc(builder, i, 512 * (1 + (uint64_t)i * 7919 % COUNT), 0, 0);
    for (uint32_t i = 0; i < COUNT; i += 2)
        add_free(builder, i);
    for (uint32_t i = 0; i < COUNT; i += 2)
        add_alloc(builder, i, 256 * (1 + (uint64_t)i * 7919 % COUNT), 0, 0);
    for (uint32_t i = 0; i < COUNT; i++)
        add_free(builder, i);
    frag_builder_add(builder, &(frag_build_event){.op = FRAG_OP_EMPTY_CACHE});
}

/* Every block on a stream of its own. */
static void make_streams(frag_builder *builder)
{
    enum { COUNT = 3000 };
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < COUNT; i++)
            add_alloc(builder, i, 1000 + 4096 * (uint64_t)(i % 5), 1 + (uint64_t)i * 64, 0);
        for (uint32_t i = 0; i < COUNT; i++)
            add_free(builder, i);
    }
}

/* Every block in a private pool of its own. */
static void make_pools(frag_builder *builder)
{
    enum { COUNT = 3000 };
    for (uint32_t i = 0; i < COUNT; i++)
        add_alloc(builder, i, 3000 + 100 * (uint64_t)i, 0,
                  frag_builder_pool(builder, (frag_pool_id){.high = 0, .low = 1 + i}));
    for (uint32_t i = 0; i < COUNT; i++)
        add_free(builder, i);
}

/* Segments from before the trace began, few of them with a block: more records than requests. */
static void make_prologue(frag_builder *builder)
{
    enum { COUNT = 3000, EVERY = 50 };
    const uint64_t base = (uint64_t)1 << 44;
    for (uint32_t i = 0; i < COUNT; i++) {
        uint64_t address = base + 4 * FRAG_MIB * (uint64_t)i;
        frag_builder_add(builder, &(frag_build_event){.op = FRAG_OP_SEGMENT_ALLOC,
                                                      .flags = FRAG_EVENT_INITIAL,
                                                      .bytes = 2 * FRAG_MIB,
                                                      .address = address});
        if (i % EVERY == 0)
            frag_builder_add(builder, &(frag_build_event){.op = FRAG_OP_ALLOC,
                                                          .flags = FRAG_EVENT_INITIAL,
                                                          .slot = i / EVERY,
                                                          .bytes = 1000,
                                                          .block_bytes = 1024,
                                                          .address = address + FRAG_MIB});
    }
    for (uint32_t i = 0; i < COUNT / EVERY; i++) {
        add_free(builder, i);
        add_alloc(builder, i, 1000 + i, 0, 0);
    }
}

/* From one byte to the largest request that a trace can hold, one at a time. */
static void make_powers(frag_builder *builder)
{
    for (int power = 0; power < 56; power++)
        for (int more = -1; more <= 1; more++) {
            uint64_t bytes = ((uint64_t)1 << power) + (uint64_t)(int64_t)more;
            if (bytes == 0)
                continue;
            add_alloc(builder, 0, bytes, 0, 0);
            add_free(builder, 0);
        }
}

static void check(const char *policy, const frag_recording *recording, uint64_t capacity)
{
    frag_policy_spec spec;
    frag_error error = {.code = FRAG_E_NONE};
    if (!frag_policy_spec_parse(policy, &spec, &error))
        fail_msg("%s: %s", policy, error.sentence);
    frag_device_spec device = {.capacity_bytes = capacity};
    frag_run_options options = {.check_every = 2048, .is_oom_skipped = true};
    frag_run_result result;
    const frag_trace *trace = &recording->traces[0];
    /* A policy may say that a trace is more than it can take. */
    if (!frag_run(&(frag_run_setup){recording, trace, spec.ops, spec.values, &device}, &options,
                  &result, &error) &&
        error.code != FRAG_E_USAGE)
        fail_msg("%s: %s", policy, error.sentence);
    frag_policy_spec_destroy(&spec);
}

static void check_all(void (*make)(frag_builder *builder), uint64_t capacity)
{
    frag_recording recording = {0};
    frag_error error = {.code = FRAG_E_NONE};
    frag_builder *builder = frag_builder_create(&recording);
    make(builder);
    if (!frag_builder_finish(builder, "made", &error))
        fail_msg("%s", error.sentence);
    for (size_t i = 0; frag_policy_table[i] != NULL; i++)
        check(frag_policy_table[i]->name, &recording, capacity);
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        check(variants[i], &recording, capacity);
    frag_recording_destroy(&recording);
}

static void of_every_size(void **state)
{
    (void)state;
    check_all(make_sizes, FRAG_UNLIMITED);
    check_all(make_sizes, 2 * FRAG_GIB);
}

static void of_many_streams(void **state)
{
    (void)state;
    check_all(make_streams, FRAG_UNLIMITED);
}

static void of_many_pools(void **state)
{
    (void)state;
    check_all(make_pools, FRAG_UNLIMITED);
}

static void of_many_segments_from_before(void **state)
{
    (void)state;
    check_all(make_prologue, FRAG_UNLIMITED);
}

static void of_every_power_of_two(void **state)
{
    (void)state;
    check_all(make_powers, FRAG_UNLIMITED);
    check_all(make_powers, FRAG_GIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_every_size),         cmocka_unit_test(of_many_streams),
        cmocka_unit_test(of_many_pools),         cmocka_unit_test(of_many_segments_from_before),
        cmocka_unit_test(of_every_power_of_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
