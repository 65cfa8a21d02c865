/* Tests of snapshot_ranges.c: which range holds an address, on its borders and across pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "traces/torch/history/snapshot_ranges.h"

enum { BYTES = 4096, COUNT = 200 };

/* Every second page is held, so that each border has a neighbour that is not. */
static uint64_t address_of(uint64_t i)
{
    return (2 * i + 1) * BYTES;
}

static frag_held_ranges hold_every_second(void)
{
    frag_held_ranges ranges = {0};
    for (uint64_t i = 0; i < COUNT; i++) /* not in their order */
        assert_true(frag_held_ranges_add(
            &ranges,
            &(frag_held_range){.address = address_of(i * 7 % COUNT), .bytes = BYTES, .stream = i}));
    return ranges;
}

static void a_range_holds_its_first_byte_and_its_last(void **state)
{
    (void)state;
    frag_held_ranges ranges = hold_every_second();
    for (uint64_t i = 0; i < COUNT; i++) {
        uint64_t address = address_of(i);
        assert_null(frag_held_ranges_find(&ranges, address - 1));
        assert_int_equal(frag_held_ranges_find(&ranges, address)->address, address);
        assert_int_equal(frag_held_ranges_find(&ranges, address + BYTES - 1)->address, address);
        assert_null(frag_held_ranges_find(&ranges, address + BYTES));
    }
    frag_held_ranges_destroy(&ranges);
}

static void what_overlaps_is_the_lowest_and_is_not_added(void **state)
{
    (void)state;
    frag_held_ranges ranges = hold_every_second();
    for (uint64_t i = 0; i + 1 < COUNT; i++) {
        uint64_t gap = address_of(i) + BYTES;
        assert_null(frag_held_ranges_overlap(&ranges, gap, BYTES));
        assert_int_equal(frag_held_ranges_overlap(&ranges, gap - 1, 2 * BYTES)->address,
                         address_of(i));
        assert_int_equal(frag_held_ranges_overlap(&ranges, gap, BYTES + 1)->address,
                         address_of(i + 1));
        assert_false(frag_held_ranges_add(
            &ranges, &(frag_held_range){.address = gap, .bytes = BYTES + 1, .stream = 0}));
    }
    assert_int_equal(ranges.count, COUNT);
    frag_held_ranges_destroy(&ranges);
}

static void what_is_removed_is_gone_and_the_rest_stays_in_order(void **state)
{
    (void)state;
    frag_held_ranges ranges = hold_every_second();
    for (uint64_t i = 0; i < COUNT; i += 2)
        frag_held_ranges_remove(&ranges, address_of(i));
    assert_int_equal(ranges.count, COUNT / 2);
    frag_held_range *list = frag_held_ranges_list(&ranges);
    for (uint64_t i = 0; i < COUNT / 2; i++)
        assert_int_equal(list[i].address, address_of(2 * i + 1));
    frag_free(list);
    frag_held_ranges_destroy(&ranges);
}

static void expandable_ranges_join_where_they_touch_and_are_cut(void **state)
{
    (void)state;
    frag_held_ranges ranges = {0};
    const frag_held_range first = {.address = BYTES, .bytes = BYTES, .is_expandable = true};
    const frag_held_range third = {.address = 3 * BYTES, .bytes = BYTES, .is_expandable = true};
    const frag_held_range second = {.address = 2 * BYTES, .bytes = BYTES, .is_expandable = true};
    assert_true(frag_held_ranges_map(&ranges, &first));
    assert_true(frag_held_ranges_map(&ranges, &third));
    assert_int_equal(ranges.count, 2);
    assert_true(frag_held_ranges_map(&ranges, &second));
    assert_int_equal(ranges.count, 1);
    assert_int_equal(frag_held_ranges_find(&ranges, 4 * BYTES - 1)->bytes, 3 * BYTES);
    assert_false(frag_held_ranges_cut(&ranges, 3 * BYTES, BYTES + 1));
    assert_true(frag_held_ranges_cut(&ranges, 2 * BYTES, BYTES));
    assert_int_equal(ranges.count, 2);
    assert_null(frag_held_ranges_find(&ranges, 2 * BYTES));
    assert_int_equal(frag_held_ranges_find(&ranges, 3 * BYTES)->bytes, BYTES);
    /* Nothing lies below address 0. */
    const frag_held_range lowest = {.address = 0, .bytes = BYTES, .is_expandable = true};
    assert_true(frag_held_ranges_map(&ranges, &lowest));
    assert_int_equal(frag_held_ranges_find(&ranges, 0)->bytes, 2 * BYTES);
    frag_held_ranges_destroy(&ranges);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_range_holds_its_first_byte_and_its_last),
        cmocka_unit_test(what_overlaps_is_the_lowest_and_is_not_added),
        cmocka_unit_test(what_is_removed_is_gone_and_the_rest_stays_in_order),
        cmocka_unit_test(expandable_ranges_join_where_they_touch_and_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
