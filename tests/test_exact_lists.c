#include "allocators/exact_lists.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { BLOCKS = 3000 };

static void open_lists(frag_exact_lists *lists, frag_arena *arena)
{
    frag_error error = {0};
    assert_true(frag_arena_create(arena, frag_exact_lists_bytes(BLOCKS), &error));
    frag_exact_lists_create(lists, arena, BLOCKS);
}

static void the_newest_of_a_size_comes_first(void **state)
{
    (void)state;
    frag_arena arena;
    frag_exact_lists lists;
    uint32_t id = 0;
    open_lists(&lists, &arena);
    assert_false(frag_exact_newest(&lists, 512, &id));
    for (uint32_t i = 0; i < 4; i++)
        frag_exact_insert(&lists, i, i == 3 ? 1024 : 512);
    assert_true(frag_exact_newest(&lists, 512, &id));
    assert_int_equal(id, 2);
    frag_exact_remove(&lists, 1, 512); /* from the middle */
    frag_exact_remove(&lists, 2, 512); /* the first */
    assert_true(frag_exact_newest(&lists, 512, &id));
    assert_int_equal(id, 0);
    frag_exact_remove(&lists, 0, 512);
    assert_false(frag_exact_newest(&lists, 512, &id));
    assert_true(frag_exact_newest(&lists, 1024, &id));
    assert_int_equal(id, 3);
    frag_arena_destroy(&arena);
}

static void count_block(void *context, uint32_t id, uint64_t size)
{
    assert_int_equal(size, (uint64_t)(id / 2 + 1) * 4096);
    ++*(uint32_t *)context;
}

static void finds_every_size_when_there_are_many(void **state)
{
    (void)state;
    frag_arena arena;
    frag_exact_lists lists;
    open_lists(&lists, &arena);
    for (uint32_t i = 0; i < BLOCKS; i++)
        frag_exact_insert(&lists, i, (uint64_t)(i / 2 + 1) * 4096);
    uint32_t count = 0;
    frag_exact_visit(&lists, count_block, &count);
    assert_int_equal(count, BLOCKS);
    for (uint32_t i = BLOCKS; i-- > 0;) {
        uint64_t size = (uint64_t)(i / 2 + 1) * 4096;
        uint32_t id = 0;
        assert_true(frag_exact_newest(&lists, size, &id));
        assert_int_equal(id, i);
        frag_exact_remove(&lists, id, size);
    }
    count = 0;
    frag_exact_visit(&lists, count_block, &count);
    assert_int_equal(count, 0);
    frag_arena_destroy(&arena);
}

static void as_many_sizes_as_blocks_fit_into_its_arena(void **state)
{
    (void)state;
    frag_arena arena;
    frag_exact_lists lists;
    open_lists(&lists, &arena);
    for (uint32_t i = 0; i < BLOCKS; i++)
        frag_exact_insert(&lists, i, i + 1);
    uint32_t id = 0;
    for (uint32_t i = 0; i < BLOCKS; i++)
        assert_true(frag_exact_newest(&lists, i + 1, &id) && id == i);
    frag_arena_destroy(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_of_a_size_comes_first),
        cmocka_unit_test(finds_every_size_when_there_are_many),
        cmocka_unit_test(as_many_sizes_as_blocks_fit_into_its_arena),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
