/* Tests of the three tlsf policies: which list a request is served from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "tests/support/small_world.h"

#define KIB(n) ((uint64_t)(n)*FRAG_KIB)
#define MIB(n) ((uint64_t)(n)*FRAG_MIB)

/* Leaves holes of the given sizes, freed in this order, and nothing else that is free. */
static void leave_holes(small_world *world, const uint64_t *sizes, uint64_t *addresses,
                        size_t count)
{
    frag_grant grants[8];
    uint64_t used = 0;
    for (size_t i = 0; i < count; i++) {
        grants[i] = small_world_alloc(world, sizes[i]);
        addresses[i] = grants[i].address;
        small_world_alloc(world, 512);
        used += sizes[i] + 512;
    }
    small_world_alloc(world, MIB(8) - used);
    for (size_t i = 0; i < count; i++)
        small_world_free(world, grants[i]);
    assert_int_equal(small_world_hole_count(world), count);
}

static void takes_the_newest_hole_of_a_list(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "tlsf", FRAG_UNLIMITED);
    static const uint64_t sizes[] = {KIB(4), KIB(4), KIB(4)};
    uint64_t addresses[3];
    leave_holes(&world, sizes, addresses, 3);
    assert_int_equal(small_world_alloc(&world, KIB(4)).address, addresses[2]);
    assert_int_equal(small_world_alloc(&world, KIB(4)).address, addresses[1]);
    assert_int_equal(small_world_alloc(&world, KIB(4)).address, addresses[0]);
    small_world_close(&world);
}

static void takes_a_good_fit_not_the_best(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "tlsf", FRAG_UNLIMITED);
    /* Both in one list, which holds sizes from 1 MiB to 1 MiB + 32 KiB. */
    static const uint64_t sizes[] = {MIB(1) + KIB(1), MIB(1) + KIB(30)};
    uint64_t addresses[2];
    leave_holes(&world, sizes, addresses, 2);
    assert_int_equal(small_world_alloc(&world, MIB(1)).address, addresses[1]);
    small_world_close(&world);
}

static void looks_into_the_list_of_its_own_size_before_memory_grows_if_told_to(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "tlsf:search_own=true", FRAG_UNLIMITED);
    static const uint64_t sizes[] = {MIB(1) + KIB(30), MIB(1) + KIB(1)};
    uint64_t addresses[2];
    leave_holes(&world, sizes, addresses, 2);
    uint64_t reserved_bytes = world.device->reserved_bytes;
    assert_int_equal(small_world_alloc(&world, MIB(1) + KIB(20)).address, addresses[0]);
    assert_int_equal(world.device->reserved_bytes, reserved_bytes);
    small_world_close(&world);
}

static void half_fit_takes_the_newest_hole_of_the_first_list_above_the_request(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "half-fit", FRAG_UNLIMITED);
    /* Lists from 1 MiB on, from 512 KiB on, from 2 MiB on. */
    static const uint64_t sizes[] = {MIB(1) + KIB(1), MIB(1) + KIB(500), KIB(900), MIB(2)};
    uint64_t addresses[4];
    leave_holes(&world, sizes, addresses, 4);
    assert_int_equal(small_world_alloc(&world, KIB(520)).address, addresses[1]);
    assert_int_equal(small_world_alloc(&world, MIB(1)).address, addresses[0]);
    /* 900 KiB would do, but so would not all of its list. */
    assert_int_equal(small_world_alloc(&world, KIB(890)).address, addresses[3]);
    small_world_close(&world);
}

static void small_lists_of_the_host_version_are_8_bytes_apart(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "tlsf-conte", FRAG_UNLIMITED);
    frag_grant first = small_world_alloc(&world, 200);
    frag_grant between = small_world_alloc(&world, 512);
    frag_grant second = small_world_alloc(&world, 208);
    assert_int_equal(between.address, first.address + 208);
    assert_int_equal(second.address, between.address + 520);
    (void)small_world_alloc(&world, MIB(2) - 952);
    small_world_free(&world, second);
    small_world_free(&world, first);
    assert_int_equal(small_world_alloc(&world, 193).address, first.address);
    assert_int_equal(small_world_alloc(&world, 201).address, second.address);
    small_world_close(&world);
}

static void the_host_version_keeps_records_in_its_memory(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "tlsf-conte:size=1KiB", FRAG_UNLIMITED);
    assert_int_equal(world.device->reserved_bytes, KIB(1));
    frag_grant first = small_world_alloc(&world, 1);
    assert_int_equal(first.block_bytes, 32);
    assert_int_equal(first.address % 4096, 8);
    /* What is left would be smaller than a hole may be. */
    frag_grant rest = small_world_alloc(&world, 1024 - 16 - 32 - 24);
    assert_int_equal(rest.block_bytes, 1024 - 8 - 32);
    assert_false(small_world_has_room(&world, 1));
    small_world_free(&world, first);
    assert_true(small_world_has_room(&world, 24));
    small_world_close(&world);
}

static void an_aligned_block_of_the_host_version_leaves_room_for_a_hole_before_it(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "tlsf-conte:align=16,size=1MiB", FRAG_UNLIMITED);
    frag_grant first = small_world_alloc(&world, 24);
    /* The pool begins 8 bytes behind an aligned place; the next one is too near. */
    assert_int_equal(first.address % 4096, 48);
    assert_int_equal(small_world_hole_count(&world), 3);
    small_world_close(&world);
}

static void does_not_look_for_a_fit_in_the_list_of_its_own_size(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "tlsf", FRAG_UNLIMITED);
    static const uint64_t sizes[] = {MIB(1) + KIB(10)};
    uint64_t addresses[1];
    leave_holes(&world, sizes, addresses, 1);
    uint64_t reserved = world.device->reserved_bytes;
    small_world_alloc(&world, MIB(1) + KIB(5));
    assert_int_equal(world.device->reserved_bytes, reserved + MIB(2));
    small_world_close(&world);
}

static void uses_a_last_hole_that_no_search_finds(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "tlsf", MIB(8));
    /* 4 MiB + 70 KiB are free at the end; a request just below that is rounded up past them. */
    frag_grant first = small_world_alloc(&world, MIB(4) - KIB(70));
    frag_grant rest = small_world_alloc(&world, MIB(4) + KIB(70));
    assert_int_equal(world.device->reserved_bytes, MIB(8));
    small_world_free(&world, rest);
    frag_grant again = small_world_alloc(&world, MIB(4) + KIB(68));
    assert_int_equal(again.address, first.address + MIB(4) - KIB(70));
    assert_int_equal(world.device->reserved_bytes, MIB(8));
    small_world_close(&world);
}

static void merges_on_both_sides_and_gives_the_end_back(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "tlsf", FRAG_UNLIMITED);
    frag_grant a = small_world_alloc(&world, MIB(2));
    frag_grant b = small_world_alloc(&world, MIB(2));
    frag_grant c = small_world_alloc(&world, MIB(2));
    small_world_free(&world, a);
    small_world_free(&world, c);
    assert_int_equal(small_world_hole_count(&world), 2);
    small_world_empty_cache(&world);
    assert_int_equal(world.device->reserved_bytes, MIB(4));
    small_world_free(&world, b);
    assert_int_equal(small_world_hole_count(&world), 1);
    small_world_empty_cache(&world);
    assert_int_equal(world.device->reserved_bytes, 0);
    small_world_close(&world);
}

static void refuses_options_out_of_range(void **state)
{
    (void)state;
    assert_true(small_world_refuses("tlsf:sli=7", "7"));
    assert_true(small_world_refuses("tlsf:align=3", "not a power of two"));
    assert_true(small_world_refuses("tlsf-conte:align=24", "not a power of two"));
    assert_true(small_world_refuses("tlsf-conte:size=5GiB", "more than 4 GiB"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_the_newest_hole_of_a_list),
        cmocka_unit_test(takes_a_good_fit_not_the_best),
        cmocka_unit_test(looks_into_the_list_of_its_own_size_before_memory_grows_if_told_to),
        cmocka_unit_test(half_fit_takes_the_newest_hole_of_the_first_list_above_the_request),
        cmocka_unit_test(small_lists_of_the_host_version_are_8_bytes_apart),
        cmocka_unit_test(the_host_version_keeps_records_in_its_memory),
        cmocka_unit_test(an_aligned_block_of_the_host_version_leaves_room_for_a_hole_before_it),
        cmocka_unit_test(does_not_look_for_a_fit_in_the_list_of_its_own_size),
        cmocka_unit_test(uses_a_last_hole_that_no_search_finds),
        cmocka_unit_test(merges_on_both_sides_and_gives_the_end_back),
        cmocka_unit_test(refuses_options_out_of_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
