/* Tests of uncertain_size.c: ends, steps, and numbers that are the same everywhere. */
#include "sim/device/uncertain_size.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void draws_lie_between_the_ends_in_steps(void **state)
{
    (void)state;
    uint64_t lowest = UINT64_MAX;
    uint64_t highest = 0;
    assert_int_equal(frag_uncertain_bytes(100, 4195, 3, 0), 100);
    for (uint64_t draw = 1; draw <= 200; draw++) {
        uint64_t bytes = frag_uncertain_bytes(100, 4195, 3, draw);
        assert_int_equal((bytes - 100) % 512, 0);
        assert_int_equal(bytes, frag_uncertain_bytes(100, 4195, 3, draw));
        lowest = bytes < lowest ? bytes : lowest;
        highest = bytes > highest ? bytes : highest;
    }
    assert_int_equal(lowest, 100);
    assert_int_equal(highest, 100 + 7 * 512); /* 100 + 8 * 512 is one byte above the most */
    assert_int_equal(frag_uncertain_bytes(7, 7, 1, 9), 7);
    assert_int_equal(frag_uncertain_bytes(7, 0, 1, 9), 7);
}

static void each_size_is_drawn_by_itself(void **state)
{
    (void)state;
    const uint64_t most = (uint64_t)1 << 30;
    const uint64_t pinned[2][2] = {{0x19835400, 0x10f20400}, {0x32e6ac00, 0x0a399800}};
    for (uint64_t draw = 1; draw <= 2; draw++)
        for (uint64_t which = 0; which < 2; which++)
            assert_int_equal(frag_uncertain_bytes(0, most, which, draw), pinned[draw - 1][which]);
}

static void long_traces_are_drawn_less_often(void **state)
{
    (void)state;
    assert_int_equal(frag_uncertain_draws(0, 1000), 15);
    assert_int_equal(frag_uncertain_draws(62, 1000), 15);
    assert_int_equal(frag_uncertain_draws(99, 1000), 10);
    assert_int_equal(frag_uncertain_draws(249, 1000), 4);
    assert_int_equal(frag_uncertain_draws(100000, 1000), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_lie_between_the_ends_in_steps),
        cmocka_unit_test(each_size_is_drawn_by_itself),
        cmocka_unit_test(long_traces_are_drawn_less_often),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
