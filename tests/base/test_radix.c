/* Tests of radix.h: numbers in order, equal ones as they stood. */
#include "base/radix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { MANY = 5000 };

/* Keys of the pattern; the value of each is its place. */
static void fill(frag_radix_item *items, size_t count, uint64_t mask)
{
    uint64_t chance = 1;
    for (size_t i = 0; i < count; i++) {
        chance = chance * 6364136223846793005u + 1442695040888963407u;
        items[i] = (frag_radix_item){(chance >> 20 | chance << 44) & mask, i};
    }
}

static void check(const frag_radix_item *items, size_t count, uint64_t mask)
{
    static frag_radix_item before[MANY];
    fill(before, count, mask);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(items[i].key, before[items[i].value].key);
    for (size_t i = 1; i < count; i++) {
        assert_true(items[i - 1].key <= items[i].key);
        if (items[i - 1].key == items[i].key)
            assert_true(items[i - 1].value < items[i].value);
    }
}

static void sorts_and_keeps_the_order_of_equals(void **state)
{
    (void)state;
    static const size_t counts[] = {0, 1, 2, 127, 128, 129, 1000, MANY};
    static const uint64_t masks[] = {0,         1, 0x7ff, 0xff00, 0x3ff800, 0xffff000000000000u,
                                     UINT64_MAX};
    static frag_radix_item items[MANY];
    static frag_radix_item scratch[MANY];
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (size_t m = 0; m < sizeof masks / sizeof *masks; m++) {
            fill(items, counts[c], masks[m]);
            frag_radix_sort(items, scratch, counts[c]);
            check(items, counts[c], masks[m]);
            frag_radix_sort(items, scratch, counts[c]); /* now they are in order */
            check(items, counts[c], masks[m]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sorts_and_keeps_the_order_of_equals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
