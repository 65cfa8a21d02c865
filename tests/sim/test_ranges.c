/* Tests of ranges.c: free address ranges, against a table of bytes. */
#include "sim/device/ranges.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/xorshift.h"

enum { BASE = 100, BYTES = 64, STEPS = 20000 };

static void assert_free(const frag_ranges *ranges, const bool *is_free)
{
    frag_error error = {0};
    uint64_t largest = 0;
    uint64_t run = 0;
    for (uint64_t i = 0; i < BYTES; i++) {
        run = is_free[i] ? run + 1 : 0;
        largest = run > largest ? run : largest;
    }
    assert_true(frag_ranges_check(ranges, &error));
    assert_int_equal(ranges->nodes[ranges->root].bytes_max, largest);
}

/* Every node in use is a stretch of the table, and no stretch has two. */
static uint64_t stretches(const bool *is_free)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < BYTES; i++)
        count += is_free[i] && (i == 0 || !is_free[i - 1]) ? 1 : 0;
    return count;
}

static uint64_t nodes_below(const frag_ranges *ranges, uint32_t at)
{
    const frag_range_node *node = &ranges->nodes[at];
    return at == 0 ? 0 : 1 + nodes_below(ranges, node->left) + nodes_below(ranges, node->right);
}

static bool all_are(const bool *is_free, uint64_t first, uint64_t count, bool wanted)
{
    for (uint64_t i = first; i < first + count; i++)
        if (is_free[i] != wanted)
            return false;
    return true;
}

static uint64_t lowest(const bool *is_free, uint64_t bytes)
{
    uint64_t first = 0;
    while (first + bytes <= BYTES && !all_are(is_free, first, bytes, true))
        first++;
    return first;
}

static void ranges_are_those_of_a_table_of_bytes(void **state)
{
    (void)state;
    frag_ranges ranges;
    bool is_free[BYTES];
    uint64_t bits = 1;
    memset(is_free, true, sizeof is_free);
    frag_ranges_create(&ranges, BASE, BYTES);
    for (unsigned step = 0; step < STEPS; step++) {
        uint64_t draw = xorshift_next(&bits);
        uint64_t first = draw % BYTES;
        uint64_t bytes = 1 + (draw >> 8) % (draw >> 16 & 1 ? 4 : BYTES - first);
        uint64_t address = 0;
        bytes = bytes > BYTES - first ? BYTES - first : bytes;
        switch (draw >> 20 & 3) {
        case 0:
            frag_ranges_clear(&ranges, BASE + first, bytes);
            memset(is_free + first, false, bytes);
            break;
        case 1:
            assert_int_equal(frag_ranges_take_at(&ranges, BASE + first, bytes),
                             all_are(is_free, first, bytes, true));
            if (all_are(is_free, first, bytes, true))
                memset(is_free + first, false, bytes);
            break;
        case 2:
            first = lowest(is_free, bytes);
            assert_int_equal(frag_ranges_take_lowest(&ranges, bytes, &address),
                             first + bytes <= BYTES);
            if (first + bytes <= BYTES) {
                assert_int_equal(address, BASE + first);
                memset(is_free + first, false, bytes);
            }
            break;
        default:
            if (!all_are(is_free, first, bytes, false))
                continue;
            frag_ranges_give(&ranges, BASE + first, bytes);
            memset(is_free + first, true, bytes);
        }
        assert_free(&ranges, is_free);
        assert_int_equal(nodes_below(&ranges, ranges.root), stretches(is_free));
    }
    frag_ranges_destroy(&ranges);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_are_those_of_a_table_of_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
