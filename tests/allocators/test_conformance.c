/* Every policy of the registry, with its more interesting options, against the slow checker. With
 * arguments, `test_conformance POLICY [ALIGN]`, only the given one: as after --policy, so that a
 * shared object does as well; ALIGN is what its blocks are multiples of, 256 when not said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocators/registry.h"
#include "base/bytes.h"
#include "tests/support/slow_checker.h"
#include "tests/support/xorshift.h"

enum { STEPS = 4000, STREAMS = 3, POOLS = 3, LIVE_MAX = 700 };

typedef struct variant {
    const char *text; /* as after --policy */
    uint64_t align;   /* of every block */
    uint64_t page_bytes;
} variant;

/* Beside the defaults of every policy. */
static const variant variants[] = {
    {"best-fit:space=segments", 512, 0},
    {"best-fit:space=segments,max_split=8MiB,min_split=4KiB", 512, 0},
    {"best-fit:align=1,grow=1,min_split=100", 1, 1},
    {"best-fit:grow=30MB", 512, 0},
    {"first-fit:space=segments,grow=20MiB", 512, 0},
    {"first-fit:align=4KiB,min_split=64KiB", 4096, 0},
    {"next-fit:space=segments,max_split=32MiB", 512, 0},
    {"worst-fit:space=segments", 512, 0},
    {"worst-fit:align=256,grow=100MiB", 256, 0},
    {"tlsf:sli=1", 512, 0},
    {"tlsf:sli=6,align=256,grow=64MiB", 256, 0},
    {"tlsf:align=1,grow=1", 1, 1},
    {"tlsf:sli=0,search_own=true", 512, 0},
    {"half-fit:align=1,grow=1", 1, 1},
    {"tlsf-conte:align=1KiB,grow=30MiB", 1024, 0},
    {"tlsf-conte:align=16,grow=1", 16, 0},
    {"tlsf-conte:size=150000001", 8, 0},
    {"tlsf-conte:size=150MiB,align=4KiB", 4096, 0},
    {"tlsf-vma:align=1,grow=1", 1, 1},
    {"tlsf-vma:align=4KiB,round=false,strategy=min_memory", 4096, 0},
    {"tlsf-vma:align=256,round=false,strategy=min_time", 256, 0},
    {"tlsf-vma:size=150MiB,strategy=min_time", 64, 0},
    {"tlsf-vma:strategy=min_offset,grow=64MiB", 64, 0},
    {"vma:strategy=min_memory,heap_size=500MiB", 256, 0},
    {"vma:strategy=min_time,preferred_block_size=10MB,align=16", 16, 0},
    {"vma:strategy=min_offset,memory_budget=true", 256, 0},
    {"vma:dedicated=always", 256, 0},
    {"vma:dedicated=preferred,max_memory_allocation_count=30", 256, 0},
    {"vma:heap_size_limit=300MiB,align=1", 1, 1},
    {"vma:pool_block_size=30MiB,min_block_count=2,max_block_count=5", 256, 0},
    {"buddy:min_block=1,grow=1", 1, 1},
    {"buddy:min_block=4MiB", 4 * FRAG_MIB, 0},
    {"buddy:grow=50MiB", 512, 0},
    {"buddy:sizes=weighted", 512, 0},
    {"buddy:sizes=weighted,min_block=1,grow=1", 1, 1},
    {"buddy:sizes=fibonacci", 512, 0},
    {"buddy:sizes=fibonacci,min_block=1,grow=1", 1, 1},
    {"size-class:classes=1,surplus=0", 512, 0},
    {"size-class:classes=[512,5KiB,100KiB,2MiB],slab=3MiB,large=2MiB", 512, 0},
    {"size-class:classes=32,slab=64MiB,large=64MiB,surplus=3", 512, 0},
    {"size-class:keep=0", 512, 0},
    {"slab:keep=70MiB,slab=3MiB,surplus=2", 512, 0},
    {"direct", 512, 512},
    {"pytorch:max_split_size_mb=32", 512, 0},
    {"pytorch:roundup_power2_divisions=4", 512, 0},
    {"pytorch:garbage_collection_threshold=0.6", 512, 0},
    {"pytorch:expandable_segments=true", 512, 0},
    {"pytorch:expandable_segments=true,version=2.9", 512, 0},
    {"pytorch:version=2.2,max_split_size_mb=25", 512, 0},
    {"pytorch:version=2.12", 512, 0},
    {"composed", 256, 0},
    {"composed:lists=shared,grow=double,give_back=at-once", 256, 0},
    {"composed:lists=by-stream,split=high,grow=chunk,give_back=before-growing", 256, 0},
    {"composed:lists=by-size,split=twice,surplus=1MiB,grow=region,merge=touching", 256, 512},
    {"composed:rounding=power,pick=exact,split=never,merge=never,grow=reserve", 256, 0},
    {"composed:merge=never", 256, 0},
    {"composed:merge=never,split=never,give_back=at-once,limit=500MiB", 256, 0},
    {"tf-bfc:memory_limit=1GiB,allow_growth=false", 256, 0},
    {"tf-bfc:memory_limit=700MiB,garbage_collection=true,fragmentation_fraction=0.01", 256, 0},
    {"tf-bfc:sub_allocator_coalesces=true", 256, 512},
    {"ort-arena:arena_extend_strategy=kSameAsRequested", 256, 0},
    {"ort-arena:max_dead_bytes_per_chunk=0,max_power_of_two_extend_bytes=10MB", 256, 0},
    {"rmm-pool:initial_pool_size=100MiB,event_order=down", 256, 0},
    {"rmm-pool:maximum_pool_size=1073741568", 256, 0},
    {"rmm-binning:upstream=cuda,min_size_exponent=8,max_size_exponent=12", 16, 0},
    {"rmm-binning:min_size_exponent=10,max_size_exponent=10,initial_pool_size=1GiB", 256, 0},
    {"rmm-fixed-size:block_size=70000,blocks_to_preallocate=1", 256, 0},
    {"rmm-arena:arena_size=300MB,size_classes=true", 256, 0},
    {"cupy:limit=300MiB", 512, 0},
    {"paddle-auto-growth:chunk_size=10MB,free_idle_chunk=true", 256, 0},
    {"paddle-auto-growth:small_pool_size_in_mb=1,small_pool_auto_growth_chunk_size_in_mb=2", 256,
     0},
    {"paddle-auto-growth:free_when_no_cache_hit=true,alignment=1", 1, 0},
    {"mxnet-naive:reserve=0,page_size=48,large_alloc_round_size=5000", 1, 0},
    {"mxnet-naive:version=2.0", 4096, 0},
    {"mxnet-round:round_linear_cutoff=20,page_size=32", 32, 0},
    {"composed:rounding=stepped,linear=4KiB", 256, 0},
    {"cuda-async:release_threshold=64MiB,grow=2MiB,opportunistic=false", 512, 0},
    {"cuda-async:follow_events=false,internal_waits=false,retry_after_sync=true", 512, 0},
    {"gmlake:fragLimit=2MiB", 512, 0},
    {"gmlake:fragLimit=4MiB,reuseLimit=1.5,autoGC=0", 512, 0},
    {"gmlake:fragLimit=0,defragLevel=1,reuseLimit=1", 512, 512},
    {"gmlake:fragLimit=2MiB,defragLevel=2", 512, 8 * FRAG_MIB},
    {"cuda-async:max_size=150MiB,release_threshold=unlimited", 512, 0},
    {"offline:align=4MiB", 512, 0},
    {"frugal:call_worth=1,grow=1", 512, 0},
    {"frugal:call_worth=unlimited,small=0,align=4KiB", 4096, 0},
    {"frugal:call_worth=1,align=1,grow=1,small=100", 1, 1},
};

typedef struct plan {
    uint64_t seed;
    uint64_t capacity_bytes;
    uint64_t refuse_every;
} plan;

static const plan plans[] = {
    {1, FRAG_UNLIMITED, 0}, {2, FRAG_UNLIMITED, 0}, {3, 1024 * FRAG_MIB, 0},
    {4, 200 * FRAG_MIB, 0}, {5, FRAG_UNLIMITED, 3},
};

typedef struct random_state {
    uint64_t bits;
    uint64_t doublings; /* of sizes */
    uint64_t popular[16];
    uint64_t burst_bytes;
    uint32_t burst_left;
    bool is_rising;
    uint32_t owners[POOLS]; /* of private pools, as the program made them */
    bool is_open[POOLS];
    uint32_t captures;
} random_state;

static uint64_t draw(random_state *random, uint64_t limit)
{
    return xorshift_next(&random->bits) % limit;
}

/* 1 byte to 64 MiB, every order of size alike. */
static uint64_t draw_any_size(random_state *random)
{
    uint64_t top = (uint64_t)1 << draw(random, random->doublings + 1);
    return top / 2 + 1 + draw(random, top - top / 2);
}

static uint64_t draw_size(random_state *random)
{
    if (random->burst_left == 0 && draw(random, 100) == 0) {
        random->burst_left = (uint32_t)draw(random, 100);
        random->burst_bytes = draw_any_size(random) / 4 + 1;
    }
    if (random->burst_left != 0) {
        random->burst_left--;
        return random->burst_bytes;
    }
    return draw(random, 3) == 0 ? draw_any_size(random) : random->popular[draw(random, 16)];
}

/* What else a program does with a policy that listens: streams, pools, captures, settings. */
static void step_aside(slow_checker *checker, random_state *random)
{
    const frag_policy_ops *ops = checker->ops;
    frag_policy *policy = checker->policy;
    uint32_t pool = 1 + (uint32_t)draw(random, POOLS - 1);
    uint64_t what = draw(random, 10);
    if (what < 4 && ops->use != NULL && checker->block_count > 0) {
        slow_checker_use(checker, (size_t)draw(random, checker->block_count),
                         (uint32_t)draw(random, STREAMS));
    } else if (what == 4) {
        frag_device_stream_done(&checker->device.base, (uint32_t)draw(random, STREAMS));
    } else if (what == 5) {
        ops->pool_change(policy, FRAG_POOL_CREATED, pool, FRAG_STREAM_EVERY);
        random->owners[pool]++;
    } else if (what == 6 && random->owners[pool] > 1) {
        ops->pool_change(policy, FRAG_POOL_RELEASED, pool, FRAG_STREAM_EVERY);
        random->owners[pool]--;
    } else if (what == 7) {
        random->owners[pool] += random->is_open[pool] ? 0 : 1;
        ops->pool_change(policy, random->is_open[pool] ? FRAG_POOL_ENDED : FRAG_POOL_BEGUN, pool,
                         draw(random, 2) == 0 ? FRAG_STREAM_EVERY : 1);
        random->is_open[pool] = !random->is_open[pool];
    } else if (what == 8) {
        ops->pool_change(policy,
                         draw(random, 2) == 0 ? FRAG_POOL_SERVES_OOM : FRAG_POOL_KEEPS_TO_IT, pool,
                         FRAG_STREAM_EVERY);
    } else if (what == 9) {
        bool begins = random->captures == 0;
        ops->capture(policy, begins);
        random->captures = begins ? 1 : 0;
    }
}

static void step(slow_checker *checker, random_state *random)
{
    if (checker->ops->pool_change != NULL && draw(random, 30) == 0)
        step_aside(checker, random);
    else if (checker->ops->use != NULL && checker->block_count > 0 && draw(random, 20) == 0)
        slow_checker_use(checker, (size_t)draw(random, checker->block_count),
                         (uint32_t)draw(random, STREAMS));
    if (draw(random, 200) == 0)
        random->is_rising = !random->is_rising;
    bool is_alloc = draw(random, 100) < (random->is_rising ? 70u : 40u);
    if (draw(random, 400) == 0 && checker->ops->empty_cache != NULL) {
        checker->ops->empty_cache(checker->policy, draw(random, 2) == 0 ? FRAG_POOL_ALL : 1);
    } else if (checker->ops->sync != NULL && draw(random, 100) == 0) {
        uint32_t stream = (uint32_t)draw(random, STREAMS);
        frag_device_stream_done(&checker->device.base, stream);
        checker->ops->sync(checker->policy, stream);
    } else if (is_alloc && checker->block_count < LIVE_MAX) {
        frag_request request = {.bytes = draw_size(random),
                                .stream = (uint32_t)draw(random, STREAMS),
                                .pool = draw(random, 10) == 0};
        if (request.pool == 1 && random->owners[1] == 0)
            random->owners[1] = 1; /* a pool that is used has an owner */
        slow_checker_alloc(checker, &request);
    } else if (checker->block_count != 0) {
        /* The newest dies first more often than not. */
        uint64_t back = draw(random, 2) == 0 ? draw(random, 4) : draw(random, checker->block_count);
        size_t block = (size_t)(back < checker->block_count ? checker->block_count - 1 - back : 0);
        if (!checker->blocks[block].is_waiting)
            slow_checker_free(checker, block, (uint32_t)draw(random, STREAMS));
    }
}

/* Libraries that give their memory back only when they end, or all but the first segment. */
static bool keeps_memory(const char *text)
{
    static const char *const names[] = {"tf-bfc",         "ort-arena",       "rmm-pool",
                                        "rmm-binning",    "rmm-fixed-size",  "rmm-arena",
                                        "tlsf-vma:size=", "tlsf-conte:size="};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(names[i], text, strlen(names[i])) == 0)
            return true;
    return false;
}

static void empty(slow_checker *checker, random_state *random, const char *text)
{
    const frag_policy_ops *ops = checker->ops;
    for (uint32_t pool = 1; pool < POOLS && ops->pool_change != NULL; pool++) {
        ops->pool_change(checker->policy, FRAG_POOL_ENDED, pool, FRAG_STREAM_EVERY);
        for (; random->owners[pool] > 0; random->owners[pool]--)
            ops->pool_change(checker->policy, FRAG_POOL_RELEASED, pool, FRAG_STREAM_EVERY);
    }
    if (random->captures > 0)
        ops->capture(checker->policy, false);
    for (size_t i = checker->block_count; i-- > 0;)
        if (i < checker->block_count && !checker->blocks[i].is_waiting)
            slow_checker_free(checker, i, (uint32_t)draw(random, STREAMS));
    if (ops->empty_cache != NULL)
        ops->empty_cache(checker->policy, FRAG_POOL_ALL);
    if (checker->block_count != 0 && checker->problem[0] == '\0')
        snprintf(checker->problem, sizeof checker->problem,
                 "%zu blocks wait when all streams are done", checker->block_count);
    if (ops->empty_cache != NULL && !keeps_memory(text) && checker->device.policy_bytes != 0 &&
        checker->problem[0] == '\0')
        snprintf(checker->problem, sizeof checker->problem,
                 "%llu bytes are held when nothing is live",
                 (unsigned long long)checker->device.policy_bytes);
}

static void run_plan(const frag_policy_spec *spec, const variant *what, const plan *how)
{
    /* Where pages are bytes everything is smaller: the device marks every page. */
    uint64_t shift = what->page_bytes == 1 ? 14 : 0;
    uint64_t capacity =
        how->capacity_bytes == FRAG_UNLIMITED ? FRAG_UNLIMITED : how->capacity_bytes >> shift;
    slow_checker checker;
    slow_checker_create(&checker, capacity,
                        what->page_bytes == 0 ? 2 * FRAG_MIB : what->page_bytes);
    checker.device.refuse_every = how->refuse_every;
    checker.ops = spec->ops;
    checker.align = what->align;
    frag_error error = {0};
    frag_arena arena;
    frag_policy_limits limits = {.request_count = STEPS,
                                 .live_count_max = LIVE_MAX,
                                 .stream_count = STREAMS,
                                 .pool_count = POOLS,
                                 .requested_bytes_total = STEPS * 64 * FRAG_MIB >> shift,
                                 .use_count = STEPS};
    static const uint64_t handles[STREAMS] = {0, 0x7f0000, 0x1000};
    static const frag_pool_id pools[POOLS] = {{0, 0}, {0, 7}, {1, 0}};
    assert_true(frag_arena_create(&arena, spec->ops->arena_bytes(&limits, spec->values), &error));
    frag_policy_setup setup = {.values = spec->values,
                               .device = &checker.device.base,
                               .arena = &arena,
                               .limits = limits,
                               .recorded_version = "",
                               .stream_handles = handles,
                               .pool_ids = pools,
                               .on_complete = slow_checker_complete,
                               .on_complete_context = &checker};
    checker.policy = spec->ops->create(&setup, &error);
    if (checker.policy == NULL)
        fail_msg("%s: %s", what->text, error.sentence);
    random_state random = {
        .bits = how->seed * 0x9e3779b97f4a7c15u, .doublings = 26 - shift, .is_rising = true};
    for (int i = 0; i < 16; i++)
        random.popular[i] = draw_any_size(&random);
    uint32_t at = 0;
    for (; at < STEPS && checker.problem[0] == '\0'; at++) {
        step(&checker, &random);
        if (at % 64 == 0)
            slow_checker_audit(&checker);
    }
    slow_checker_audit(&checker);
    empty(&checker, &random, what->text);
    slow_checker_audit(&checker);
    if (checker.problem[0] != '\0')
        fail_msg("%s, seed %llu, step %u: %s", what->text, (unsigned long long)how->seed, at,
                 checker.problem);
    slow_checker_destroy(&checker);
    frag_arena_destroy(&arena);
}

static void run_variant(const variant *what)
{
    frag_policy_spec spec;
    frag_error error = {0};
    if (!frag_policy_spec_parse(what->text, &spec, &error))
        fail_msg("%s: %s", what->text, error.sentence);
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++)
        run_plan(&spec, what, &plans[i]);
    frag_policy_spec_destroy(&spec);
}

/* Of the blocks of a policy with its defaults. Those that are held against a framework's own logs
 * align as that framework does. */
static uint64_t align_of(const frag_policy_ops *ops)
{
    static const struct {
        const char *name;
        uint64_t align;
    } others[] = {{"composed", 256}, {"tlsf-conte", 8}, {"tlsf-vma", 64}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(others[i].name, ops->name) == 0)
            return others[i].align;
    return ops->checked != NULL && strstr(ops->checked, "golden-peers") != NULL ? 256 : 512;
}

static void every_policy_of_the_registry_conforms(void **state)
{
    (void)state;
    for (size_t i = 0; frag_policy_table[i] != NULL; i++) {
        const frag_policy_ops *ops = frag_policy_table[i];
        variant defaults = {ops->name, align_of(ops), 0};
        run_variant(&defaults);
    }
}

static void options_change_no_promise(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
        run_variant(&variants[i]);
}

/* ---- room: what a policy asks for is enough for the tables that it makes */

enum { MANY = 3000 };

static void create_with(const char *text, const frag_policy_limits *limits)
{
    static uint64_t handles[MANY];
    static frag_pool_id pools[MANY];
    for (uint32_t i = 0; i < MANY; i++) {
        handles[i] = i;
        pools[i].low = i;
    }
    slow_checker checker;
    slow_checker_create(&checker, FRAG_UNLIMITED, 2 * FRAG_MIB);
    frag_policy_spec spec;
    frag_error error = {0};
    frag_arena arena;
    assert_true(frag_policy_spec_parse(text, &spec, &error));
    assert_true(frag_arena_create(&arena, spec.ops->arena_bytes(limits, spec.values), &error));
    frag_policy_setup setup = {.values = spec.values,
                               .device = &checker.device.base,
                               .arena = &arena,
                               .limits = *limits,
                               .recorded_version = "",
                               .stream_handles = handles,
                               .pool_ids = pools,
                               .on_complete = slow_checker_complete,
                               .on_complete_context = &checker};
    if (spec.ops->create(&setup, &error) == NULL)
        fail_msg("%s: %s", text, error.sentence);
    frag_arena_destroy(&arena);
    frag_policy_spec_destroy(&spec);
    slow_checker_destroy(&checker);
}

/* A few bytes too little for each would be found by the arena, which ends the program. */
static void create_with_many(const char *text)
{
    static const frag_policy_limits many[] = {
        {.request_count = 3000000, .live_count_max = 1000000, .stream_count = 1, .pool_count = 1},
        {.request_count = 3000000, .live_count_max = 10, .stream_count = 1, .pool_count = 1},
        {.request_count = 10, .live_count_max = 10, .stream_count = MANY, .pool_count = 1},
        {.request_count = 10, .live_count_max = 10, .stream_count = 1, .pool_count = MANY},
        {.request_count = 10, .live_count_max = 10, .stream_count = 50, .pool_count = 50},
        {.request_count = 10,
         .live_count_max = 10,
         .stream_count = 2,
         .pool_count = 1,
         .use_count = 1000000},
        {.request_count = 10,
         .live_count_max = 10,
         .stream_count = 1,
         .pool_count = 1,
         .initial_segment_count = 1000000},
        {.request_count = 10,
         .live_count_max = 10,
         .stream_count = 1,
         .pool_count = 1,
         .requested_bytes_total = (uint64_t)1 << 50,
         .peak_requested_bytes = (uint64_t)1 << 40},
    };
    for (size_t i = 0; i < sizeof many / sizeof many[0]; i++)
        create_with(text, &many[i]);
}

static void the_room_is_enough_for_many(void **state)
{
    (void)state;
    for (size_t i = 0; frag_policy_table[i] != NULL; i++)
        create_with_many(frag_policy_table[i]->name);
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
        create_with_many(variants[i].text);
}

static void the_given_policy_conforms(void **state)
{
    run_variant(*state);
}

int main(int count, char **arguments)
{
    if (count > 1) {
        variant given = {arguments[1], 256, 0};
        frag_error error = {0};
        if (count > 3 ||
            (count == 3 && !frag_count_parse(arguments[2], 1, FRAG_GIB, &given.align, &error))) {
            fprintf(stderr, "test_conformance: expected POLICY [ALIGN], ALIGN from 1\n");
            return 2;
        }
        const struct CMUnitTest test[] = {
            cmocka_unit_test_prestate(the_given_policy_conforms, &given)};
        return cmocka_run_group_tests(test, NULL, NULL);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_policy_of_the_registry_conforms),
        cmocka_unit_test(options_change_no_promise),
        cmocka_unit_test(the_room_is_enough_for_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
