/* Tests of number_map.c: numbers by address. */
#include "traces/number_map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ADDRESSES 300
#define STEPS 200000

/* All different, and spread without order, so that some have to share a place. */
static uint64_t address_of(uint64_t index)
{
    return 0x700000000000 + index * index * 4096;
}

static void knows_what_was_set_and_not_removed(void **state)
{
    (void)state;
    frag_number_map map = {0};
    uint64_t values[ADDRESSES] = {0}; /* 0: not there */
    uint64_t random = 1;
    for (uint64_t i = 1; i <= STEPS; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint64_t index = (random >> 33) % ADDRESSES;
        uint64_t address = address_of(index);
        if ((random >> 60) < 8) {
            frag_number_map_set(&map, address, i);
            values[index] = i;
        } else {
            frag_number_map_remove(&map, address);
            values[index] = 0;
        }
        if (i % 997 != 0)
            continue;
        for (uint64_t at = 0; at < ADDRESSES; at++) {
            uint64_t value = 0;
            bool is_there = frag_number_map_get(&map, address_of(at), &value);
            assert_int_equal(is_there, values[at] != 0);
            assert_int_equal(value, values[at]);
        }
    }
    frag_number_map_destroy(&map);
}

static void an_empty_map_knows_nothing(void **state)
{
    (void)state;
    frag_number_map map = {0};
    uint64_t value = 7;
    assert_false(frag_number_map_get(&map, 0, &value));
    frag_number_map_remove(&map, 0);
    assert_int_equal(value, 7);
    frag_number_map_set(&map, 0, 5);
    assert_true(frag_number_map_get(&map, 0, &value));
    assert_int_equal(value, 5);
    frag_number_map_destroy(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_what_was_set_and_not_removed),
        cmocka_unit_test(an_empty_map_knows_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
