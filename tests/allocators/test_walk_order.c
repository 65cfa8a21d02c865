/* The order in which a std::unordered_map walks numbers, as one of libstdc++ was seen to have it.
 */
#include "allocators/index/walk_order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define PAGE 4096u

enum { NUMBERS_MAX = 1000 };

static void open_order(frag_walk_order *order, frag_arena *arena)
{
    frag_error error = {0};
    assert_true(frag_arena_create(arena, frag_walk_order_bytes(NUMBERS_MAX), &error));
    frag_walk_order_create(order, arena, NUMBERS_MAX);
}

/* Adds count numbers, pages of 5 i^2 + 3 i + first, and expects them in the order of pages. */
static void expect_walk(frag_walk_order *order, uint64_t first, uint32_t count,
                        const uint32_t *pages)
{
    uint32_t seen_count = 0;
    for (uint64_t i = 0; i < count; i++)
        frag_walk_order_add(order, (5 * i * i + 3 * i + first) * PAGE);
    const uint64_t *seen = frag_walk_order_take(order, &seen_count);
    assert_int_equal(seen_count, count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(seen[i], (uint64_t)pages[i] * PAGE);
}

static void walks_as_the_table_does_while_it_grows_and_after_it_was_emptied(void **state)
{
    (void)state;
    static const uint32_t fourteen[] = {885, 757, 1,   639, 9,   531, 141,
                                        199, 27,  433, 93,  267, 55,  345};
    static const uint32_t six[] = {142, 94, 56, 28, 10, 2};
    static const uint32_t thirty_one[] = {
        4593, 4295, 641,  759, 4007, 533, 887,  3729, 435,  1025, 3461, 347, 1173, 3203, 269, 1331,
        2955, 201,  1499, 3,   2717, 143, 1677, 11,   2489, 95,   1865, 29,  2271, 57,   2063};
    frag_arena arena;
    frag_walk_order order;
    open_order(&order, &arena);
    expect_walk(&order, 1, 14, fourteen);
    expect_walk(&order, 2, 6, six);
    expect_walk(&order, 3, 31, thirty_one);
    frag_arena_destroy(&arena);
}

static void numbers_of_one_bucket_stand_together_the_latest_first(void **state)
{
    (void)state;
    frag_arena arena;
    frag_walk_order order;
    uint32_t count = 0;
    open_order(&order, &arena);
    frag_walk_order_add(&order, 13);
    frag_walk_order_add(&order, 1);
    frag_walk_order_add(&order, 26);
    const uint64_t *seen = frag_walk_order_take(&order, &count);
    assert_true(count == 3 && seen[0] == 1 && seen[1] == 26 && seen[2] == 13);
    frag_arena_destroy(&arena);
}

static void ascending_is_another_order_of_the_same_numbers(void **state)
{
    (void)state;
    frag_arena arena;
    frag_walk_order order;
    uint32_t count = 0;
    open_order(&order, &arena);
    for (uint64_t number = NUMBERS_MAX; number > 0; number--)
        frag_walk_order_add(&order, number * number);
    const uint64_t *seen = frag_walk_order_take_sorted(&order, &count);
    assert_int_equal(count, NUMBERS_MAX);
    for (uint64_t number = 1; number <= NUMBERS_MAX; number++)
        assert_int_equal(seen[number - 1], number * number);
    (void)frag_walk_order_take(&order, &count);
    assert_int_equal(count, 0);
    frag_arena_destroy(&arena);
}

static void as_many_numbers_as_it_was_made_for_fit(void **state)
{
    (void)state;
    frag_arena arena;
    frag_walk_order order;
    uint32_t count = 0;
    open_order(&order, &arena);
    for (int round = 0; round < 2; round++) {
        for (uint64_t number = 1; number <= NUMBERS_MAX; number++)
            frag_walk_order_add(&order, number * PAGE);
        const uint64_t *seen = frag_walk_order_take(&order, &count);
        uint64_t sum = 0;
        for (uint32_t i = 0; i < count; i++)
            sum += seen[i] / PAGE;
        assert_int_equal(sum, NUMBERS_MAX * (NUMBERS_MAX + 1) / 2);
    }
    frag_arena_destroy(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walks_as_the_table_does_while_it_grows_and_after_it_was_emptied),
        cmocka_unit_test(numbers_of_one_bucket_stand_together_the_latest_first),
        cmocka_unit_test(ascending_is_another_order_of_the_same_numbers),
        cmocka_unit_test(as_many_numbers_as_it_was_made_for_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
