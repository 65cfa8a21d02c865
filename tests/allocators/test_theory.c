/* Proved bounds, exact worst cases and known equilibria, reached through the policies' own
 * functions. Figures without a paper beside them were computed by exhaustive search. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "tests/support/adversary.h"
#include "tests/support/xorshift.h"

#define WORDS ":align=1,grow=1"
#define BUDDY_WORDS "buddy:min_block=1,grow=1"

static const char *const fits[] = {"first-fit" WORDS, "best-fit" WORDS, "worst-fit" WORDS};

/* ---- Robson, JACM 21(3), 1974 */

typedef struct robson_case {
    uint64_t live_words;
    uint64_t size_max;
    uint64_t bound; /* M (1 + log2(n) / 2) - n + 1 */
} robson_case;

static const robson_case robson_cases[] = {
    {256, 16, 753}, {1024, 16, 3057}, {1024, 64, 4033}, {2048, 256, 9985}};

static void robson_drives_fits_to_his_bound_exactly(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof robson_cases / sizeof robson_cases[0]; i++) {
        const robson_case *at = &robson_cases[i];
        assert_int_equal(at->live_words + at->live_words * frag_bit_high(at->size_max) / 2 -
                             at->size_max + 1,
                         at->bound);
        for (size_t j = 0; j < sizeof fits / sizeof fits[0]; j++)
            assert_int_equal(adversary_robson(fits[j], at->live_words, at->size_max), at->bound);
    }
}

static void robson_spares_no_policy(void **state)
{
    (void)state;
    static const char *const others[] = {"next-fit" WORDS,
                                         "tlsf" WORDS,
                                         "half-fit" WORDS,
                                         BUDDY_WORDS,
                                         BUDDY_WORDS ",sizes=weighted",
                                         BUDDY_WORDS ",sizes=fibonacci"};
    for (size_t i = 0; i < sizeof robson_cases / sizeof robson_cases[0]; i++)
        for (size_t j = 0; j < sizeof others / sizeof others[0]; j++)
            assert_true(adversary_robson(others[j], robson_cases[i].live_words,
                                         robson_cases[i].size_max) >= robson_cases[i].bound);
}

/* M H(n) / ln 2: Knuth, exercise 2.5-43. */
static void first_fit_stays_under_its_bound(void **state)
{
    (void)state;
    for (uint64_t size_max = 8; size_max <= 32; size_max *= 2) {
        double harmonic = 0;
        for (uint64_t k = 1; k <= size_max; k++)
            harmonic += 1.0 / (double)k;
        double bound = 2048 * harmonic / log(2);
        assert_true((double)adversary_robson(fits[0], 2048, size_max) <= bound);
        assert_true((double)adversary_best_fit(fits[0], 2048, size_max) <= bound);
    }
}

/* 2 M (1 + ceil(log2 n)). */
static void half_fit_stays_under_its_bound(void **state)
{
    (void)state;
    for (uint64_t size_max = 8; size_max <= 32; size_max *= 2) {
        uint64_t bound = 2 * 2048 * (1 + (uint64_t)frag_bit_high(size_max));
        assert_true(adversary_robson("half-fit" WORDS, 2048, size_max) <= bound);
        assert_true(adversary_best_fit("half-fit" WORDS, 2048, size_max) <= bound);
    }
}

static void best_fit_can_be_driven_far_beyond_first_fit(void **state)
{
    (void)state;
    assert_true(adversary_best_fit("best-fit" WORDS, 2048, 8) >= 2048 * 325 / 100);
    assert_true(adversary_best_fit("best-fit" WORDS, 2048, 16) >= 2048 * 66 / 10);
    assert_true(adversary_best_fit("best-fit" WORDS, 2048, 32) >= 2048 * 13);
    assert_true(adversary_best_fit("first-fit" WORDS, 2048, 32) < 2048 * 2);
}

/* ---- the highest word over all sequences of requests, by live words */

typedef struct worst_case {
    const char *policy;
    uint64_t sizes[4];
    size_t size_count;
    uint64_t live_first;
    uint64_t high_waters[8]; /* of live_first, live_first + 1, ...; 0 ends */
} worst_case;

static const worst_case worst_cases[] = {
    {"first-fit" WORDS, {1, 2}, 2, 2, {2, 4, 6, 7, 9, 11, 12}},
    {"best-fit" WORDS, {1, 2}, 2, 2, {2, 4, 6, 7, 9, 11, 13}},
    {"worst-fit" WORDS, {1, 2}, 2, 2, {2, 4, 6, 7, 9, 11, 13, 15}},
    {BUDDY_WORDS, {1, 2}, 2, 2, {2, 4, 8, 8, 8, 16, 16}},
    {"first-fit" WORDS, {1, 2, 3}, 3, 3, {4, 6, 8, 10, 13}},
    {"best-fit" WORDS, {1, 2, 3}, 3, 3, {4, 6, 8, 10, 13, 16}},
    {"worst-fit" WORDS, {1, 2, 3}, 3, 3, {4, 6, 8, 10, 13}},
    {"first-fit" WORDS, {1, 2, 3, 4}, 4, 4, {6, 8, 10, 13}},
    {"best-fit" WORDS, {1, 2, 3, 4}, 4, 4, {6, 8, 11, 14}},
    {"worst-fit" WORDS, {1, 2, 3, 4}, 4, 4, {6, 8, 10, 13}},
    {"first-fit" WORDS, {1, 2, 4}, 3, 4, {6, 8, 10, 13}},
    {"best-fit" WORDS, {1, 2, 4}, 3, 4, {6, 8, 11, 13}},
    {BUDDY_WORDS, {1, 2, 4}, 3, 4, {8, 8, 16, 16}},
};

static void worst_cases_of_small_worlds_are_exact(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof worst_cases / sizeof worst_cases[0]; i++) {
        const worst_case *at = &worst_cases[i];
        for (size_t j = 0; j < 8 && at->high_waters[j] != 0; j++)
            assert_int_equal(
                adversary_exhaustive(at->policy, at->live_first + j, at->sizes, at->size_count),
                at->high_waters[j]);
    }
}

/* ---- rounding */

static double rounded_sum(const word_world *world, const uint64_t *sizes, size_t count,
                          double *requested)
{
    double sum = 0;
    *requested = 0;
    for (size_t i = 0; i < count; i++) {
        sum += (double)world->spec.ops->rounded(world->policy, sizes[i]);
        *requested += (double)sizes[i];
    }
    return sum;
}

static double uniform_overallocation(const word_world *world, uint64_t size_max)
{
    uint64_t *sizes = frag_alloc(size_max, sizeof *sizes);
    for (uint64_t i = 0; i < size_max; i++)
        sizes[i] = i + 1;
    double requested = 0;
    double sum = rounded_sum(world, sizes, size_max, &requested);
    free(sizes);
    return sum / requested;
}

/* Sizes of equal logarithmic steps over one doubling, large beside every unit. */
static double logarithmic_overallocation(const word_world *world)
{
    enum { COUNT = 20000 };
    uint64_t *sizes = frag_alloc(COUNT, sizeof *sizes);
    for (uint64_t i = 0; i < COUNT; i++)
        sizes[i] = (uint64_t)(524288.0 * pow(2, ((double)i + 0.5) / COUNT));
    double requested = 0;
    double sum = rounded_sum(world, sizes, COUNT, &requested);
    free(sizes);
    return sum / requested;
}

/* Russell 1977: between 4/3 and 3/2 for requests uniform on 1 to N. */
static void buddies_overallocate_by_a_third_to_a_half(void **state)
{
    (void)state;
    word_world world;
    word_world_open(&world, BUDDY_WORDS, FRAG_UNLIMITED, 4, 4, 4);
    assert_true(fabs(uniform_overallocation(&world, 65536) - 4.0 / 3) < 0.0001);
    assert_true(fabs(uniform_overallocation(&world, 87381) - 1.5) < 0.0001);
    for (uint64_t size_max = 4096; size_max <= 8192; size_max += 64) {
        double ratio = uniform_overallocation(&world, size_max);
        assert_true(ratio > 1.333 && ratio < 1.5001);
    }
    assert_true(fabs(logarithmic_overallocation(&world) - 1.3863) < 0.0005);
    word_world_close(&world);
}

/* Russell 1977: for sizes that grow by a factor x between 2x / (x + 1) and (x + 1) / 2 of what is
 * requested; the weighted sizes grow by 3/2 and 4/3 in turn. */
static void buddies_of_closer_sizes_overallocate_less(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        double low;
        double high;
    } cases[] = {{BUDDY_WORDS ",sizes=fibonacci", 1.23607, 1.30902},
                 {BUDDY_WORDS ",sizes=weighted", 1.16667, 1.22727}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        word_world world;
        word_world_open(&world, cases[i].policy, FRAG_UNLIMITED, 4, 4, 4);
        double low = 2;
        double high = 1;
        /* Two doublings hold each kind of extreme. */
        for (uint64_t size_max = 20000; size_max <= 80000; size_max += 100) {
            double ratio = uniform_overallocation(&world, size_max);
            low = ratio < low ? ratio : low;
            high = ratio > high ? ratio : high;
        }
        assert_true(fabs(low - cases[i].low) < 0.001);
        assert_true(fabs(high - cases[i].high) < 0.001);
        word_world_close(&world);
    }
}

static void finer_classes_overallocate_less(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        double ratio;
    } cases[] = {{"size-class:classes=1", 1.3863},
                 {"size-class:classes=4", 1.0892},
                 {"size-class:classes=8", 1.0439}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        word_world world;
        word_world_open(&world, cases[i].policy, FRAG_UNLIMITED, 4, 4, 4);
        assert_true(fabs(logarithmic_overallocation(&world) - cases[i].ratio) < 0.001);
        word_world_close(&world);
    }
}

/* ---- equilibria: 32768 words, requests of 64 on average, a random block freed while one does not
 * fit */

typedef enum distribution { UNIFORM, NORMAL, EXPONENTIAL, HYPER_EXPONENTIAL } distribution;

typedef struct equilibrium {
    double utilisation;
    double free_per_live;
    double split_share; /* of requests */
} equilibrium;

enum { MEMORY_WORDS = 32768, REQUESTS = 120000, WARM_UP = 20000, SAMPLE_EVERY = 20 };

static double draw_unit(uint64_t *bits)
{
    return ((double)xorshift_next(bits) + 0.5) / 9007199254740992.0;
}

static uint64_t draw_words(distribution kind, uint64_t *bits)
{
    double words = 0;
    double unit = draw_unit(bits);
    switch (kind) {
    case UNIFORM:
        return 1 + (uint64_t)(unit * 127);
    case NORMAL:
        words = 64 + 16 * sqrt(-2 * log(unit)) * cos(6.283185307179586 * draw_unit(bits));
        break;
    case EXPONENTIAL:
        words = -64 * log(unit);
        break;
    case HYPER_EXPONENTIAL:
        words = (draw_unit(bits) < 0.9 ? -32 : -352) * log(unit);
        break;
    }
    words = words < 1 ? 1 : words > MEMORY_WORDS ? MEMORY_WORDS : words;
    return (uint64_t)(words + 0.5);
}

static void count_hole(void *context, const frag_span *span)
{
    if (span->kind == FRAG_SPAN_HOLE)
        ++*(uint64_t *)context;
}

static uint64_t hole_count(const word_world *world)
{
    uint64_t count = 0;
    world->spec.ops->walk(world->policy, count_hole, &count);
    return count;
}

typedef struct live_list {
    size_t *blocks;
    size_t count;
} live_list;

static void free_any(word_world *world, live_list *live, uint64_t *bits)
{
    size_t victim = (size_t)(draw_unit(bits) * (double)live->count);
    word_world_free(world, live->blocks[victim]);
    live->blocks[victim] = live->blocks[--live->count];
}

static equilibrium find_equilibrium(const char *policy, distribution kind, uint64_t seed)
{
    char text[128];
    snprintf(text, sizeof text, "%s:align=1,space=segments,grow=%d", policy, MEMORY_WORDS);
    word_world world;
    word_world_open(&world, text, MEMORY_WORDS, MEMORY_WORDS, REQUESTS, MEMORY_WORDS);
    live_list live = {.blocks = frag_alloc(MEMORY_WORDS, sizeof(size_t))};
    uint64_t bits = seed * 88172645463325252u;
    double live_sum = 0;
    double ratio_sum = 0;
    uint64_t samples = 0;
    uint64_t splits = 0;
    for (uint64_t i = 0; i < REQUESTS; i++) {
        uint64_t words = draw_words(kind, &bits);
        bool is_sampled = i >= WARM_UP && i % SAMPLE_EVERY == 0;
        size_t block = (size_t)i;
        uint64_t holes = is_sampled ? hole_count(&world) : 0;
        while (!word_world_alloc(&world, words, &block)) {
            free_any(&world, &live, &bits);
            holes = is_sampled ? hole_count(&world) : 0;
        }
        live.blocks[live.count++] = block;
        live_sum += i >= WARM_UP ? (double)world.live_words : 0;
        if (!is_sampled)
            continue;
        splits += hole_count(&world) == holes;
        ratio_sum += (double)holes / (double)live.count;
        samples++;
    }
    equilibrium found = {.utilisation = live_sum / (REQUESTS - WARM_UP) / MEMORY_WORDS,
                         .free_per_live = ratio_sum / (double)samples,
                         .split_share = (double)splits / (double)samples};
    free(live.blocks);
    word_world_close(&world);
    return found;
}

static const char *const searches[] = {"first-fit", "best-fit", "next-fit", "worst-fit"};

/* Knuth, The Art of Computer Programming 1, section 2.5: free blocks are half the share of requests
 * that leave a rest, times live blocks. Holds for sizes that vary little. */
static void free_blocks_follow_the_fifty_percent_rule(void **state)
{
    (void)state;
    for (distribution kind = UNIFORM; kind <= NORMAL; kind++) {
        for (size_t i = 0; i < 4; i++) {
            equilibrium found = find_equilibrium(searches[i], kind, 3);
            double ratio = found.free_per_live / (found.split_share / 2);
            if (ratio < 0.98 || ratio > 1.02)
                fail_msg("%s, distribution %d: %.4f times what the rule says", searches[i],
                         (int)kind, ratio);
        }
    }
}

/* For this model of release; figures from an independent program, over five seeds. */
static const double utilisations[4][4] = {
    [UNIFORM] = {.9000, .9290, .8776, .8190},
    [NORMAL] = {.9106, .9327, .9033, .8724},
    [EXPONENTIAL] = {.8621, .8663, .7686, .6891},
    [HYPER_EXPONENTIAL] = {.7717, .7299, .6045, .4866},
};

static void fits_fill_memory_as_far_as_is_known(void **state)
{
    (void)state;
    for (distribution kind = UNIFORM; kind <= HYPER_EXPONENTIAL; kind++) {
        for (size_t i = 0; i < 4; i++) {
            double found = find_equilibrium(searches[i], kind, 1).utilisation;
            double wanted = utilisations[kind][i];
            /* The heavy tail of the last needs more room. */
            double allowed = kind == HYPER_EXPONENTIAL ? 0.02 : 0.01;
            if (fabs(found - wanted) > allowed * wanted)
                fail_msg("%s, distribution %d: %.4f instead of %.4f", searches[i], (int)kind, found,
                         wanted);
        }
    }
}

/* ---- capacity */

/* A fixed program; returns how many requests were served before the first that was not. */
static uint64_t serve(const char *policy, uint64_t capacity_words, uint64_t *peak)
{
    enum { STEPS = 3000, LIVE = 200 };
    word_world world;
    word_world_open(&world, policy, capacity_words, LIVE, STEPS, 127);
    live_list live = {.blocks = frag_alloc(LIVE, sizeof(size_t))};
    uint64_t bits = 88172645463325252u;
    uint64_t served = 0;
    for (; served < STEPS; served++) {
        uint64_t words = draw_words(UNIFORM, &bits);
        if (live.count == LIVE || (live.count != 0 && draw_unit(&bits) < 0.45))
            free_any(&world, &live, &bits);
        size_t block = 0;
        if (!word_world_alloc(&world, words, &block))
            break;
        live.blocks[live.count++] = block;
    }
    *peak = world.device->reserved_peak_bytes;
    free(live.blocks);
    word_world_close(&world);
    return served;
}

static void least_capacity_is_the_peak_of_an_unlimited_run(void **state)
{
    (void)state;
    static const char *const policies[] = {"first-fit" WORDS, "best-fit" WORDS, "worst-fit" WORDS,
                                           "next-fit" WORDS, "tlsf" WORDS};
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        uint64_t peak = 0;
        uint64_t ignored = 0;
        uint64_t all = serve(policies[i], FRAG_UNLIMITED, &peak);
        assert_int_equal(serve(policies[i], peak, &ignored), all);
        assert_true(serve(policies[i], peak - 1, &ignored) < all);
        uint64_t before = 0;
        for (uint64_t capacity = 200; capacity <= peak; capacity += 100) {
            uint64_t served = serve(policies[i], capacity, &ignored);
            assert_true(served >= before);
            before = served;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(robson_drives_fits_to_his_bound_exactly),
        cmocka_unit_test(robson_spares_no_policy),
        cmocka_unit_test(first_fit_stays_under_its_bound),
        cmocka_unit_test(half_fit_stays_under_its_bound),
        cmocka_unit_test(best_fit_can_be_driven_far_beyond_first_fit),
        cmocka_unit_test(worst_cases_of_small_worlds_are_exact),
        cmocka_unit_test(buddies_overallocate_by_a_third_to_a_half),
        cmocka_unit_test(buddies_of_closer_sizes_overallocate_less),
        cmocka_unit_test(finer_classes_overallocate_less),
        cmocka_unit_test(free_blocks_follow_the_fifty_percent_rule),
        cmocka_unit_test(fits_fill_memory_as_far_as_is_known),
        cmocka_unit_test(least_capacity_is_the_peak_of_an_unlimited_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
