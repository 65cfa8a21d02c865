/* Tests of snapshot_layout.c: the recorded allocator's free blocks, against a search of all memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "traces/torch/history/snapshot_rewind.h"
#include "traces/torch/pools/snapshot_layout.h"

enum { UNITS = 256, UNIT = 512, BASE = 1 << 20 };

/* The best fit by looking at every unit: of maximal runs of free units, the smallest that is large
 * enough, the lowest of equals. */
static uint64_t best_by_hand(const bool *is_used, uint32_t units)
{
    uint32_t best = UNITS + 1;
    uint64_t address = 0;
    for (uint32_t at = 0; at < UNITS;) {
        uint32_t end = at;
        while (end < UNITS && !is_used[end])
            end++;
        if (end - at >= units && end - at < best) {
            best = end - at;
            address = BASE + (uint64_t)at * UNIT;
        }
        at = end == at ? at + 1 : end;
    }
    return address;
}

static void finds_what_a_search_of_all_memory_finds(void **state)
{
    (void)state;
    frag_free_layout layout;
    frag_free_layout_create(&layout);
    uint32_t list = frag_free_layout_list_of(&layout, 0, 7, true);
    assert_int_not_equal(frag_free_layout_add(&layout, list, BASE, UNITS * UNIT, 3, 0), 0);
    assert_int_equal(frag_free_layout_add(&layout, list, BASE + UNIT, UNIT, 4, 0), 0);
    bool is_used[UNITS] = {false};
    uint32_t live[UNITS];
    uint32_t live_count = 0;
    uint32_t random = 1;
    for (uint64_t step = 1; step < 20000; step++) {
        random = random * 1664525u + 1013904223u;
        uint32_t units = 1 + (random >> 8) % 9;
        if ((random >> 28) % 2 == 0 && live_count > 0) {
            uint32_t at = (random >> 8) % live_count;
            uint32_t block = live[at];
            live[at] = live[--live_count];
            uint64_t first = (layout.blocks[block].address - BASE) / UNIT;
            for (uint64_t i = 0; i < layout.blocks[block].bytes / UNIT; i++)
                is_used[first + i] = false;
            frag_free_layout_give(&layout, block, step);
            continue;
        }
        uint32_t best = frag_free_layout_best(&layout, list, (uint64_t)units * UNIT);
        uint64_t address = best_by_hand(is_used, units);
        assert_int_equal(best == 0 ? 0 : layout.blocks[best].address, address);
        if (best == 0)
            continue;
        assert_int_equal(frag_free_layout_find(&layout, address + UNIT - 1), best);
        live[live_count++] = frag_free_layout_take(&layout, best, address, (uint64_t)units * UNIT);
        for (uint32_t i = 0; i < units; i++)
            is_used[(address - BASE) / UNIT + i] = true;
    }
    while (live_count > 0)
        frag_free_layout_give(&layout, live[--live_count], 0);
    assert_int_equal(frag_free_layout_remove(&layout, BASE), 3);
    assert_int_equal(frag_free_layout_best(&layout, list, UNIT), 0);
    frag_free_layout_destroy(&layout);
}

static void takes_from_the_middle_of_a_block(void **state)
{
    (void)state;
    frag_free_layout layout;
    frag_free_layout_create(&layout);
    uint32_t list = frag_free_layout_list_of(&layout, 0, 0, false);
    uint32_t whole = frag_free_layout_add(&layout, list, BASE, 10 * UNIT, 0, 1);
    uint32_t taken = frag_free_layout_take(&layout, whole, BASE + 4 * UNIT, UNIT);
    uint32_t first = frag_free_layout_best(&layout, list, UNIT);
    assert_int_equal(layout.blocks[first].bytes, 4 * UNIT);
    uint32_t second = frag_free_layout_after(&layout, first);
    assert_int_equal(layout.blocks[second].address, BASE + 5 * UNIT);
    assert_int_equal(frag_free_layout_after(&layout, second), 0);
    assert_int_equal(frag_free_layout_remove(&layout, BASE), UINT32_MAX);
    frag_free_layout_give(&layout, taken, 9);
    assert_int_equal(layout.blocks[frag_free_layout_best(&layout, list, 1)].since, 9);
    assert_int_equal(frag_free_layout_remove(&layout, BASE), 0);
    frag_free_layout_destroy(&layout);
}

/* Counts the free blocks of a list by going from each to the next, which must come behind it. */
static uint32_t count_in_order(frag_free_layout *layout, uint32_t list)
{
    uint32_t count = 0;
    uint32_t before = 0;
    for (uint32_t at = frag_free_layout_best(layout, list, 1); at != 0; count++) {
        const frag_free_layout_block *block = &layout->blocks[at];
        const frag_free_layout_block *last = &layout->blocks[before];
        assert_true(block->is_free);
        assert_true(before == 0 || last->bytes < block->bytes ||
                    (last->bytes == block->bytes && last->address < block->address));
        before = at;
        at = frag_free_layout_after(layout, at);
    }
    return count;
}

static void keeps_thousands_of_few_sizes_in_order(void **state)
{
    (void)state;
    enum { SEGMENTS = 3000 };
    frag_free_layout layout;
    frag_free_layout_create(&layout);
    uint32_t list = frag_free_layout_list_of(&layout, 0, 0, true);
    uint32_t random = 7;
    uint32_t count = 0;
    for (uint32_t i = 0; i < SEGMENTS; i++) {
        random = random * 1664525u + 1013904223u;
        uint64_t units = 17 + (random >> 8) % 4;
        uint64_t address = BASE + (uint64_t)((random >> 12) % SEGMENTS) * 64 * UNIT;
        if (frag_free_layout_add(&layout, list, address, units * UNIT, i, 0) != 0)
            count++;
    }
    assert_int_equal(count_in_order(&layout, list), count);
    for (uint32_t i = 0; i < SEGMENTS; i += 2)
        if (frag_free_layout_remove(&layout, BASE + (uint64_t)i * 64 * UNIT) != UINT32_MAX)
            count--;
    assert_int_equal(count_in_order(&layout, list), count);
    assert_int_equal(layout.steps, 0);
    frag_free_layout_destroy(&layout);
}

static void rounds_as_the_recorded_allocator_did(void **state)
{
    (void)state;
    static const struct {
        uint64_t division;
        uint64_t bytes;
        uint64_t rounded;
    } cases[] = {{0, 1, 512},     {0, 512, 512},    {0, 513, 1024},  {0, 3000, 3072},
                 {1, 3000, 3072}, {4, 3000, 3072},  {4, 1500, 1536}, {4, 2048, 2048},
                 {4, 2049, 2560}, {4, 9000, 10240}, {3, 9000, 9216}, {8, 9000, 9216}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        frag_snapshot_settings settings = {.divisions = {cases[i].division}};
        assert_int_equal(frag_snapshot_round(&settings, cases[i].bytes), cases[i].rounded);
    }
    /* Each power of two from 2 MiB on has its own. */
    frag_snapshot_settings settings = {.divisions = {[0] = 1, [1] = 2, [15] = 4}};
    assert_int_equal(frag_snapshot_round(&settings, 2097153), 3145728);
    assert_int_equal(frag_snapshot_round(&settings, 4194305), 4194816);
    assert_int_equal(frag_snapshot_round(&settings, ((uint64_t)1 << 36) + 1), (uint64_t)5 << 34);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_a_search_of_all_memory_finds),
        cmocka_unit_test(takes_from_the_middle_of_a_block),
        cmocka_unit_test(keeps_thousands_of_few_sizes_in_order),
        cmocka_unit_test(rounds_as_the_recorded_allocator_did),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
