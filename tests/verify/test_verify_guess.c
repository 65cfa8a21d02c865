/* Tests of verify_guess.c: the limits of a guess against what a mark and a limit mean. A mark is a
 * share of a limit, a limit is a share of a capacity; both are cut off to whole bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "studies/verify/verify_guess.h"
#include "tests/support/xorshift.h"

enum { GUESSES = 20000 };

#define PEAK (1000 * FRAG_MIB)

typedef struct facts {
    double given_threshold;
    double limit_ratio;
    double memory_fraction; /* 0: none was given */
    uint64_t peak;
} facts;

static bool find(facts known, frag_guess tried, frag_guess_limits *found)
{
    frag_trace trace = {.stats.observed_reserved_peak_bytes = known.peak};
    frag_guessing search = {.trace = &trace, .limit_ratio = known.limit_ratio};
    search.given.gc_threshold = known.given_threshold;
    search.given.has_fraction = known.memory_fraction > 0;
    search.given.memory_fraction = known.memory_fraction;
    return frag_guess_find_limits(&search, &tried, found);
}

static frag_guess guess(uint64_t mark, uint64_t limit, uint64_t capacity)
{
    return (frag_guess){.mark_bytes = mark, .limit_bytes = limit, .capacity_bytes = capacity};
}

static void expect(facts known, frag_guess tried, double threshold, uint64_t limit,
                   uint64_t capacity)
{
    frag_guess_limits found;
    assert_true(find(known, tried, &found));
    assert_true(found.threshold == threshold);
    assert_int_equal(found.limit_bytes, limit);
    assert_int_equal(found.capacity_bytes, capacity);
}

static void refuse(facts known, frag_guess tried)
{
    frag_guess_limits found;
    assert_false(find(known, tried, &found));
}

static void a_mark_lies_below_the_limit(void **state)
{
    (void)state;
    const facts plain = {.peak = PEAK};
    const uint64_t none = FRAG_UNLIMITED, all = FRAG_GUESS_CAPACITY;
    expect(plain, guess(none, none, none), 0, none, none);
    expect(plain, guess(FRAG_GIB / 2, FRAG_GIB, none), 0.5, FRAG_GIB, all);
    expect(plain, guess(FRAG_GIB / 2, FRAG_GIB, 4 * FRAG_GIB), 0.5, FRAG_GIB, 4 * FRAG_GIB);
    refuse(plain, guess(FRAG_GIB, FRAG_GIB, none));
    refuse(plain, guess(FRAG_GIB + 1, FRAG_GIB, none));
    refuse(plain, guess(0, FRAG_GIB, none));
    refuse((facts){.peak = 0}, guess(1, none, none));
    /* One that is given cannot be another share too. */
    refuse((facts){.peak = PEAK, .given_threshold = 0.5}, guess(FRAG_GIB / 2, FRAG_GIB, none));
}

static void without_a_limit_the_usual_share_is_taken(void **state)
{
    (void)state;
    const uint64_t none = FRAG_UNLIMITED, all = FRAG_GUESS_CAPACITY;
    for (uint64_t tenths = 1; tenths <= 10; tenths++) {
        uint64_t mark = tenths * 100 * FRAG_MIB;
        double usual = tenths > 8 ? 0.8 : (double)tenths / 10;
        frag_guess_limits at, below;
        assert_true(find((facts){.peak = PEAK}, guess(mark, none, none), &at));
        assert_true(find((facts){.peak = PEAK}, guess(mark - 1, none, none), &below));
        assert_true(at.threshold == usual);
        assert_true(at.limit_bytes >= mark);
        assert_int_equal(at.capacity_bytes, all);
        assert_true(tenths > 8 || below.threshold < usual);
    }
    expect((facts){.peak = PEAK, .given_threshold = 0.25}, guess(FRAG_GIB, none, none), 0.25,
           4 * FRAG_GIB, all);
}

static void the_capacity_has_room_for_the_limit(void **state)
{
    (void)state;
    const uint64_t none = FRAG_UNLIMITED, all = FRAG_GUESS_CAPACITY;
    const facts plain = {.peak = PEAK};
    expect(plain, guess(none, all - 1, none), 0, all - 1, all);
    expect(plain, guess(none, all, none), 0, all, 2 * all);
    expect(plain, guess(none, FRAG_GIB, FRAG_GIB + 1), 0, FRAG_GIB, FRAG_GIB + 1);
    expect(plain, guess(none, FRAG_GIB, FRAG_GIB), 0, FRAG_GIB, all);
    expect(plain, guess(none, none, FRAG_GIB), 0, none, FRAG_GIB);
}

static void a_share_that_is_known_binds_limit_and_capacity(void **state)
{
    (void)state;
    const uint64_t none = FRAG_UNLIMITED;
    const facts set = {.peak = PEAK, .limit_ratio = 0.5, .memory_fraction = 0.25};
    const facts given = {.peak = PEAK, .memory_fraction = 0.25};
    expect(set, guess(none, none, FRAG_GIB), 0, FRAG_GIB / 2, FRAG_GIB);
    expect(given, guess(none, none, FRAG_GIB), 0, FRAG_GIB / 4, FRAG_GIB);
    expect(set, guess(none, FRAG_GIB, none), 0, FRAG_GIB, 2 * FRAG_GIB);
    expect(given, guess(none, FRAG_GIB, none), 0, FRAG_GIB, 4 * FRAG_GIB);
    expect((facts){.peak = PEAK, .limit_ratio = 1}, guess(none, none, FRAG_GIB), 0, FRAG_GIB,
           FRAG_GIB);
    expect(given, guess(none, none, none), 0, none, FRAG_GUESS_CAPACITY);
    expect(given, guess(FRAG_GIB / 8, none, FRAG_GIB), 0.5, FRAG_GIB / 4, FRAG_GIB);
    refuse(given, guess(none, FRAG_GUESS_LARGEST / 4, none));
    expect(given, guess(none, FRAG_GUESS_LARGEST / 4 - 4096, none), 0,
           FRAG_GUESS_LARGEST / 4 - 4096, FRAG_GUESS_LARGEST - 4 * 4096);
}

/* Whatever the numbers: with the share that is found, the limit leads to no less than the mark, and
 * a byte less of it would not. */
static void the_limit_is_the_least_that_has_the_mark(void **state)
{
    (void)state;
    uint64_t bits = 20261127;
    for (unsigned i = 0; i < GUESSES; i++) {
        frag_guess_limits found;
        uint64_t mark = 1 + xorshift_next(&bits) % (64 * FRAG_GIB);
        double share = (double)(1 + xorshift_next(&bits) % 999) / 1000;
        assert_true(find((facts){.peak = PEAK, .given_threshold = share},
                         guess(mark, FRAG_UNLIMITED, FRAG_UNLIMITED), &found));
        assert_true((uint64_t)(share * (double)found.limit_bytes) >= mark);
        assert_true((uint64_t)(share * (double)(found.limit_bytes - 1)) < mark);
    }
}

static void options_are_found_by_name(void **state)
{
    (void)state;
    frag_policy_spec spec;
    frag_error error = {0};
    assert_true(frag_policy_spec_parse("pytorch:max_split_size_mb=40", &spec, &error));
    assert_non_null(frag_policy_spec_value(&spec, frag_guess_keys[FRAG_GUESS_MAX_SPLIT]));
    assert_null(frag_policy_spec_value(&spec, "max_split"));
    frag_policy_spec_destroy(&spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mark_lies_below_the_limit),
        cmocka_unit_test(without_a_limit_the_usual_share_is_taken),
        cmocka_unit_test(the_capacity_has_room_for_the_limit),
        cmocka_unit_test(a_share_that_is_known_binds_limit_and_capacity),
        cmocka_unit_test(the_limit_is_the_least_that_has_the_mark),
        cmocka_unit_test(options_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
