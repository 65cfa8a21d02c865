/* The Vulkan Memory Allocator: its virtual block (tlsf-vma) and the whole (vma). What the library
 * itself does is in the golden logs; here each rule stands alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "tests/support/small_world.h"
#include "tests/support/xorshift.h"

#define KIB(n) ((uint64_t)(n)*FRAG_KIB)
#define MIB(n) ((uint64_t)(n)*FRAG_MIB)

static uint64_t calls(const small_world *world, frag_device_call call)
{
    return world->device->counts.calls[call];
}

/* Two blocks with one more between them and behind: the first is freed. */
static uint64_t leave_a_hole(small_world *world, uint64_t bytes)
{
    frag_grant hole = small_world_alloc(world, bytes);
    (void)small_world_alloc(world, KIB(4));
    small_world_free(world, hole);
    return hole.address;
}

static void the_end_of_memory_comes_before_a_hole_of_exactly_the_size(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        bool takes_hole;
    } cases[] = {{"tlsf-vma", false},
                 {"tlsf-vma:strategy=min_time", false},
                 {"tlsf-vma:strategy=min_memory", true},
                 {"tlsf-vma:strategy=min_offset", true},
                 {"tlsf-vma:size=8MiB", false},
                 {"vma:heap_size=8GiB", false},
                 {"vma:heap_size=8GiB,strategy=min_memory", true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        small_world world;
        small_world_open(&world, cases[i].policy, FRAG_UNLIMITED);
        uint64_t hole = leave_a_hole(&world, MIB(1));
        uint64_t taken = small_world_alloc(&world, MIB(1)).address;
        assert_int_equal(taken, cases[i].takes_hole ? hole : hole + MIB(1) + KIB(4));
        /* A hole of the next list is large enough whatever it is. */
        uint64_t larger = leave_a_hole(&world, MIB(2));
        assert_int_equal(small_world_alloc(&world, MIB(2) - KIB(64)).address, larger);
        small_world_close(&world);
    }
}

static void a_full_block_looks_into_the_list_of_the_requests_own_size(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "tlsf-vma:size=2MiB", FRAG_UNLIMITED);
    frag_grant hole = small_world_alloc(&world, MIB(1) + KIB(30));
    (void)small_world_alloc(&world, MIB(1) - KIB(30));
    small_world_free(&world, hole);
    assert_int_equal(small_world_alloc(&world, MIB(1) + KIB(20)).address, hole.address);
    assert_false(small_world_has_room(&world, MIB(1)));
    assert_int_equal(calls(&world, FRAG_DEVICE_MALLOC), 1);
    small_world_empty_cache(&world);
    assert_int_equal(world.device->reserved_bytes, MIB(2));
    small_world_close(&world);
}

static void what_lies_before_an_aligned_offset_is_a_hole(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "tlsf-vma:size=1MiB,align=4KiB,round=false", FRAG_UNLIMITED);
    frag_grant first = small_world_alloc(&world, 100);
    frag_grant second = small_world_alloc(&world, 100);
    assert_int_equal(second.address, first.address + KIB(4));
    assert_int_equal(second.block_bytes, 100);
    assert_int_equal(small_world_hole_count(&world), 2);
    small_world_free(&world, first);
    assert_int_equal(small_world_hole_count(&world), 2);
    small_world_free(&world, second);
    assert_int_equal(small_world_hole_count(&world), 1);
    small_world_close(&world);
}

/* Steps of one script in two worlds. */
static void a_range_that_grows_places_as_a_large_block_does(void **state)
{
    (void)state;
    static const char *const options[] = {"", "strategy=min_memory,round=false,",
                                          "strategy=min_time,round=false,", "strategy=min_offset,"};
    enum { STEPS = 2000, LIVE_MAX = 300 };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        char text[80];
        small_world range;
        small_world block;
        snprintf(text, sizeof text, "tlsf-vma:%salign=512", options[i]);
        small_world_open(&range, text, FRAG_UNLIMITED);
        snprintf(text, sizeof text, "tlsf-vma:%salign=512,size=16GiB", options[i]);
        small_world_open(&block, text, FRAG_UNLIMITED);
        frag_grant grants[2][LIVE_MAX];
        uint64_t bits = 7;
        uint64_t count = 0;
        uint64_t distance = 0;
        bool is_known = false;
        for (int step = 0; step < STEPS; step++) {
            if (count < LIVE_MAX && xorshift_next(&bits) % 5 < 3) {
                uint64_t bytes = 1 + xorshift_next(&bits) % ((uint64_t)1 << step % 24);
                grants[0][count] = small_world_alloc(&range, bytes);
                grants[1][count] = small_world_alloc(&block, bytes);
                uint64_t apart = grants[1][count].address - grants[0][count].address;
                distance = is_known ? distance : apart;
                is_known = true;
                assert_int_equal(apart, distance);
                count++;
            } else if (count > 0) {
                uint64_t at = xorshift_next(&bits) % count--;
                small_world_free(&range, grants[0][at]);
                small_world_free(&block, grants[1][at]);
                grants[0][at] = grants[0][count];
                grants[1][at] = grants[1][count];
            }
        }
        small_world_close(&range);
        small_world_close(&block);
    }
}

static void first_blocks_are_small_and_large_requests_apart(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "vma:heap_size=8GiB", FRAG_UNLIMITED);
    static const uint64_t reserved[] = {32, 32, 96, 96, 96, 96, 224, 224};
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++) {
        (void)small_world_alloc(&world, MIB(16));
        assert_int_equal(world.device->reserved_bytes, MIB(reserved[i]));
    }
    frag_grant half = small_world_alloc(&world, MIB(128));
    assert_int_equal(world.device->reserved_bytes, MIB(224 + 256));
    frag_grant above = small_world_alloc(&world, MIB(128) + 1);
    assert_int_equal(above.block_bytes, MIB(128) + 256);
    assert_int_equal(world.device->reserved_bytes, MIB(224 + 256 + 128) + 256);
    small_world_free(&world, above);
    assert_int_equal(calls(&world, FRAG_DEVICE_FREE), 1);
    /* The block is empty, and kept. */
    small_world_free(&world, half);
    assert_int_equal(calls(&world, FRAG_DEVICE_FREE), 1);
    small_world_close(&world);
}

static void a_small_heap_has_blocks_of_an_eighth(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "vma", MIB(512));
    (void)small_world_alloc(&world, MIB(32) + 1);
    (void)small_world_alloc(&world, 1);
    assert_int_equal(world.device->reserved_bytes, MIB(32) + 256 + MIB(8));
    small_world_close(&world);
}

static void of_two_empty_blocks_one_goes_back(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "vma:pool_block_size=8MiB", FRAG_UNLIMITED);
    frag_grant grants[3];
    for (int i = 0; i < 3; i++)
        grants[i] = small_world_alloc(&world, MIB(8));
    small_world_free(&world, grants[1]);
    assert_int_equal(small_world_segment_count(&world), 3);
    small_world_free(&world, grants[0]);
    assert_int_equal(small_world_segment_count(&world), 2);
    small_world_free(&world, grants[2]);
    assert_int_equal(small_world_segment_count(&world), 1);
    small_world_close(&world);
}

static void above_the_budget_requests_get_memory_of_their_own(void **state)
{
    (void)state;
    small_world world;
    /* 80 % of the heap are 8 GiB. */
    small_world_open(&world, "vma:heap_size=10GiB,preferred_block_size=4GiB", FRAG_UNLIMITED);
    (void)small_world_alloc(&world, MIB(3072));
    (void)small_world_alloc(&world, MIB(3072));
    /* Half of the preferred size is more than is left; a quarter would be, and is too small. */
    (void)small_world_alloc(&world, MIB(2000));
    assert_int_equal(world.device->reserved_bytes, MIB(6144 + 2048));
    (void)small_world_alloc(&world, MIB(100));
    assert_int_equal(world.device->reserved_bytes, MIB(6144 + 2048 + 100));
    assert_true(small_world_has_room(&world, MIB(48)));
    small_world_close(&world);
}

static void what_exceeds_the_budget_fails_when_told_to(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "vma:heap_size=100MiB,dedicated=always,within_budget=true",
                     FRAG_UNLIMITED);
    (void)small_world_alloc(&world, MIB(50));
    assert_false(small_world_has_room(&world, MIB(30) + 1));
    (void)small_world_alloc(&world, MIB(30));
    assert_false(small_world_has_room(&world, 1));
    assert_int_equal(calls(&world, FRAG_DEVICE_MALLOC), 2);
    small_world_close(&world);
}

static void near_the_most_segments_large_requests_go_to_blocks(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "vma:preferred_block_size=10MiB,max_memory_allocation_count=8",
                     FRAG_UNLIMITED);
    for (int i = 0; i < 8; i++)
        (void)small_world_alloc(&world, MIB(6));
    assert_int_equal(world.device->reserved_bytes, MIB(7 * 6 + 10));
    assert_false(small_world_has_room(&world, MIB(6)));
    assert_true(small_world_has_room(&world, MIB(4)));
    small_world_close(&world);
}

static void refuses_options_that_do_not_fit(void **state)
{
    (void)state;
    assert_true(small_world_refuses("tlsf-vma:align=3", "not a power of two"));
    assert_true(small_world_refuses("tlsf-vma:size=513GiB", "more than 512 GiB"));
    assert_true(small_world_refuses("tlsf-vma:strategy=best", "not one of"));
    assert_true(small_world_refuses("vma:align=100", "not a power of two"));
    assert_true(small_world_refuses("vma:min_block_count=3,max_block_count=2", "more than"));
    assert_true(small_world_refuses("vma:pool_block_size=1MiB,dedicated=always", "leave out"));
    assert_true(small_world_refuses("vma:heap_size_limit=1GiB,min_block_count=9", "no room for"));
    /* An eighth of it is no block of 0 bytes. */
    assert_true(small_world_refuses("vma:heap_size=1,min_block_count=3", "no room for"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_of_memory_comes_before_a_hole_of_exactly_the_size),
        cmocka_unit_test(a_full_block_looks_into_the_list_of_the_requests_own_size),
        cmocka_unit_test(what_lies_before_an_aligned_offset_is_a_hole),
        cmocka_unit_test(a_range_that_grows_places_as_a_large_block_does),
        cmocka_unit_test(first_blocks_are_small_and_large_requests_apart),
        cmocka_unit_test(a_small_heap_has_blocks_of_an_eighth),
        cmocka_unit_test(of_two_empty_blocks_one_goes_back),
        cmocka_unit_test(above_the_budget_requests_get_memory_of_their_own),
        cmocka_unit_test(what_exceeds_the_budget_fails_when_told_to),
        cmocka_unit_test(near_the_most_segments_large_requests_go_to_blocks),
        cmocka_unit_test(refuses_options_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
