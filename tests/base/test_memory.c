/* Tests of memory.c: arenas, address space, growing arrays. */
#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void an_arena_hands_out_zeroed_aligned_pieces_apart(void **state)
{
    (void)state;
    frag_arena arena;
    frag_error error = {.code = FRAG_E_NONE};
    assert_true(frag_arena_create(&arena, 1 << 20, &error));
    unsigned char *before = NULL;
    for (size_t bytes = 1; bytes < 300; bytes += 7) {
        unsigned char *piece = frag_arena_take(&arena, bytes, 1);
        assert_int_equal((uintptr_t)piece % 64, 0);
        assert_true(before == NULL || piece > before);
        for (size_t i = 0; i < bytes; i++)
            assert_int_equal(piece[i], 0);
        memset(piece, 0xff, bytes);
        before = piece + bytes - 1;
    }
    frag_arena_destroy(&arena);
    assert_null(arena.base);
}

static void an_arena_can_be_used_to_its_last_byte(void **state)
{
    (void)state;
    frag_arena arena;
    frag_error error = {.code = FRAG_E_NONE};
    assert_true(frag_arena_create(&arena, 4096, &error));
    unsigned char *all = frag_arena_take(&arena, 4096 / 8, 8);
    all[4095] = 1;
    assert_int_equal(arena.used_bytes, 4096);
    frag_arena_destroy(&arena);
}

/* Dirties the first byte of every third page and a stretch at the end. */
static void scribble(unsigned char *piece, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += 3 * 4096)
        piece[at] = 0xff;
    memset(piece + bytes - 10000, 0xff, 10000);
}

static void spare_memory_is_used_again_and_zero(void **state)
{
    (void)state;
    size_t sizes[] = {(size_t)8 << 20, (size_t)3 << 20, (size_t)8 << 20, (size_t)20 << 20, 40000};
    frag_arena_spare *spare = frag_arena_spare_create();
    frag_error error = {.code = FRAG_E_NONE};
    unsigned char *before = NULL;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        frag_arena arena;
        assert_true(frag_arena_create_from(spare, &arena, sizes[i], &error));
        /* All but the first and the one that is larger than those before it. */
        assert_true(i == 0 || i == 3 || arena.base == before);
        unsigned char *piece = frag_arena_take(&arena, sizes[i], 1);
        size_t dirty = 0;
        for (size_t at = 0; at < sizes[i]; at++)
            dirty += piece[at] != 0;
        assert_int_equal(dirty, 0);
        scribble(piece, sizes[i]);
        before = arena.base;
        frag_arena_destroy(&arena);
    }
    frag_arena_spare_destroy(spare);
}

static void arenas_at_the_same_time_have_memory_of_their_own(void **state)
{
    (void)state;
    frag_arena_spare *spare = frag_arena_spare_create();
    frag_error error = {.code = FRAG_E_NONE};
    for (int round = 0; round < 3; round++) {
        frag_arena first;
        frag_arena second;
        assert_true(frag_arena_create_from(spare, &first, 100000, &error));
        assert_true(frag_arena_create_from(spare, &second, 100000, &error));
        scribble(frag_arena_take(&first, 50000, 1), 50000);
        unsigned char *other = frag_arena_take(&second, 50000, 1);
        for (size_t i = 0; i < 50000; i++)
            assert_int_equal(other[i], 0);
        scribble(other, 50000);
        frag_arena_destroy(&first);
        frag_arena_destroy(&second);
    }
    frag_arena_spare_destroy(spare);
    frag_arena_spare_destroy(NULL);
}

static void address_space_costs_nothing_until_it_is_touched(void **state)
{
    (void)state;
    frag_arena arena;
    frag_error error = {.code = FRAG_E_NONE};
    assert_true(frag_arena_create(&arena, (size_t)64 << 20, &error));
    unsigned char *piece = frag_arena_take(&arena, (size_t)64 << 20, 1);
    assert_true(frag_arena_touched_bytes(&arena) < (size_t)4 << 20);
    memset(piece, 1, (size_t)8 << 20);
    assert_true(frag_arena_touched_bytes(&arena) >= (size_t)8 << 20);
    assert_true(frag_arena_touched_bytes(&arena) < (size_t)16 << 20);
    frag_arena_destroy(&arena);
}

static void more_address_space_than_there_is_is_refused_with_a_sentence(void **state)
{
    (void)state;
    frag_arena arena;
    frag_error error = {.code = FRAG_E_NONE};
    assert_false(frag_arena_create(&arena, SIZE_MAX / 2, &error));
    assert_int_equal(error.code, FRAG_E_SYSTEM);
}

/* Under the address sanitizer an array is as long as it has to be. */
static void growing_keeps_the_items_and_doubles(void **state)
{
    (void)state;
    uint32_t *items = NULL;
    size_t capacity = 0;
    unsigned growths = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        size_t before = capacity;
        items = frag_grow(items, &capacity, (size_t)i + 1, sizeof *items);
        growths += capacity != before;
        items[i] = i;
    }
    assert_true(growths <= 7 || growths == 1000);
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(items[i], i);
    assert_ptr_equal(frag_grow(items, &capacity, 10, sizeof *items), items);
    free(items);
}

static void text_is_copied_whole(void **state)
{
    (void)state;
    char *copy = frag_copy_text("abc");
    assert_string_equal(copy, "abc");
    free(copy);
    copy = frag_copy_text("");
    assert_string_equal(copy, "");
    free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_arena_hands_out_zeroed_aligned_pieces_apart),
        cmocka_unit_test(an_arena_can_be_used_to_its_last_byte),
        cmocka_unit_test(spare_memory_is_used_again_and_zero),
        cmocka_unit_test(arenas_at_the_same_time_have_memory_of_their_own),
        cmocka_unit_test(address_space_costs_nothing_until_it_is_touched),
        cmocka_unit_test(more_address_space_than_there_is_is_refused_with_a_sentence),
        cmocka_unit_test(growing_keeps_the_items_and_doubles),
        cmocka_unit_test(text_is_copied_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
