/* Tests of exact_lists.c: free blocks by exact size. */
#include "allocators/index/exact_lists.h"

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

/* One size more than a power of two takes the most room: the table has just been doubled. */
static void as_many_sizes_as_blocks_fit_into_its_arena(void **state)
{
    (void)state;
    static const uint32_t counts[] = {1, 2, 31, 32, 33, 2048, 2049, 3000, 4097};
    for (size_t n = 0; n < sizeof counts / sizeof *counts; n++) {
        frag_arena arena;
        frag_exact_lists lists;
        frag_error error = {0};
        assert_true(frag_arena_create(&arena, frag_exact_lists_bytes(counts[n]), &error));
        frag_exact_lists_create(&lists, &arena, counts[n]);
        for (uint32_t i = 0; i < counts[n]; i++)
            frag_exact_insert(&lists, i, i + 1);
        uint32_t id = 0;
        for (uint32_t i = 0; i < counts[n]; i++)
            assert_true(frag_exact_newest(&lists, i + 1, &id) && id == i);
        frag_arena_destroy(&arena);
    }
}

static void note_block(void *context, uint32_t id)
{
    uint32_t **next = context;
    *(*next)++ = id;
}

static void expect_all(frag_exact_lists *lists, bool is_ascending, const uint32_t *ids,
                       size_t count)
{
    uint32_t seen[16] = {0};
    uint32_t *next = seen;
    frag_exact_visit_all(lists, is_ascending, note_block, &next);
    assert_int_equal(next - seen, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(seen[i], ids[i]);
}

static void all_are_visited_by_size_or_as_the_modelled_table_has_them(void **state)
{
    (void)state;
    frag_arena arena;
    frag_exact_lists lists;
    uint32_t ascending[] = {2, 0, 3, 1};
    uint32_t latest_first[] = {2, 1, 0, 3};
    open_lists(&lists, &arena);
    expect_all(&lists, true, NULL, 0);
    for (int round = 0; round < 2; round++) {
        frag_exact_insert(&lists, 0, 8192);
        frag_exact_insert(&lists, 1, 12288);
        frag_exact_insert(&lists, 2, 4096);
        frag_exact_insert(&lists, 3, 8192);
        expect_all(&lists, round == 0, round == 0 ? ascending : latest_first, 4);
        for (uint32_t id = 0; id < 4; id++)
            frag_exact_remove(&lists, id, id == 1 ? 12288 : id == 2 ? 4096 : 8192);
    }
    frag_arena_destroy(&arena);
}

static void a_size_takes_its_place_in_that_table_when_a_used_block_is_freed(void **state)
{
    (void)state;
    frag_arena arena;
    frag_exact_lists lists;
    uint32_t ids[] = {0, 1};
    open_lists(&lists, &arena);
    frag_exact_insert_fresh(&lists, 0, 4096);
    frag_exact_remove(&lists, 0, 4096);
    frag_exact_insert(&lists, 1, 8192);
    frag_exact_insert(&lists, 0, 4096); /* later than the other size */
    expect_all(&lists, false, ids, 2);
    frag_arena_destroy(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_of_a_size_comes_first),
        cmocka_unit_test(finds_every_size_when_there_are_many),
        cmocka_unit_test(as_many_sizes_as_blocks_fit_into_its_arena),
        cmocka_unit_test(all_are_visited_by_size_or_as_the_modelled_table_has_them),
        cmocka_unit_test(a_size_takes_its_place_in_that_table_when_a_used_block_is_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
