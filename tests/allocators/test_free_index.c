/* Tests of free_index.c: free blocks by size, against a plain list. */
#include "allocators/index/free_index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "allocators/index/index_audit.h"
#include "tests/support/xorshift.h"

enum { IDS = 2600, INDEXES = 3 };

/* With ties by number, then by address, a block's link is its number. */
typedef struct world {
    frag_arena arena;
    frag_free_index_store store;
    frag_free_index indexes[INDEXES];
    frag_block *blocks;
    uint32_t homes[IDS]; /* what a plain list says: index + 1, 0: none */
    uint64_t random;
} world;

_Static_assert(offsetof(frag_block, link) == offsetof(frag_free_record, rank), "a block's rank");

static void open_world(world *w, bool is_ranked)
{
    memset(w, 0, sizeof *w);
    frag_error error = {0};
    assert_true(frag_arena_create(
        &w->arena, frag_free_records_bytes(IDS) + frag_free_index_store_bytes(IDS, INDEXES),
        &error));
    w->blocks = frag_free_records_take(&w->arena, IDS);
    frag_free_index_store_create(&w->store, &w->arena, w->blocks, IDS, INDEXES, is_ranked);
    w->random = 88172645463325252u;
}

static uint64_t draw(world *w, uint64_t limit)
{
    return xorshift_next(&w->random) % limit;
}

static uint32_t draw_id(world *w)
{
    return 1 + (uint32_t)draw(w, IDS - 1);
}

/* Few sizes, so that bins grow long and ties matter, and now and then any size at all. */
static uint64_t draw_size(world *w)
{
    uint64_t kind = draw(w, 4);
    if (kind == 0)
        return 1 + draw(w, 64);
    if (kind == 1)
        return 4096 + draw(w, 3) * 100;
    if (kind == 2)
        return 512 * (1 + draw(w, 8));
    return 1 + draw(w, (uint64_t)1 << (1 + draw(w, 50)));
}

typedef enum question { BEST, LAST, AFTER } question;

/* In the order of (size, tie). */
static bool is_less(const world *w, uint32_t a, uint32_t b)
{
    if (w->blocks[a].bytes != w->blocks[b].bytes)
        return w->blocks[a].bytes < w->blocks[b].bytes;
    if (w->store.is_ranked && w->blocks[a].link != w->blocks[b].link)
        return w->blocks[a].link < w->blocks[b].link;
    return w->blocks[a].address < w->blocks[b].address;
}

static bool is_better(const world *w, question what, uint32_t a, uint32_t b)
{
    return what == LAST ? is_less(w, b, a) : is_less(w, a, b);
}

/* size: the least; for AFTER, after: the block behind which to look. */
static bool plain_answer(const world *w, uint32_t home, question what, uint64_t size,
                         uint32_t after, uint32_t *id)
{
    bool is_found = false;
    for (uint32_t i = 1; i < IDS; i++) {
        if (w->homes[i] != home + 1 || (what == BEST && w->blocks[i].bytes < size) ||
            (what == AFTER && !is_less(w, after, i)))
            continue;
        if (!is_found || is_better(w, what, i, *id))
            *id = i;
        is_found = true;
    }
    return is_found;
}

static void ask(world *w, uint32_t home)
{
    const frag_free_index *index = &w->indexes[home];
    uint64_t size = draw_size(w);
    uint32_t after = draw_id(w);
    for (question what = BEST; what <= AFTER; what++) {
        uint32_t wanted = UINT32_MAX;
        uint32_t got = UINT32_MAX;
        if (what == AFTER && w->homes[after] != home + 1)
            continue;
        bool is_there = plain_answer(w, home, what, size, after, &wanted);
        bool is_found = false;
        if (what == BEST)
            is_found = frag_free_index_best(&w->store, index, size, &got);
        if (what == LAST)
            is_found = frag_free_index_last(&w->store, index, &got);
        if (what == AFTER)
            is_found = frag_free_index_after(&w->store, index, after, &got);
        assert_int_equal(is_found, is_there);
        if (is_there)
            assert_int_equal(got, wanted);
    }
}

static void shape(world *w, uint32_t id, uint64_t bytes)
{
    w->blocks[id].bytes = bytes;
    w->blocks[id].address = id * 2 + draw(w, 2);
    w->blocks[id].link = (uint32_t)draw(w, 5);
}

static void change_something(world *w, uint32_t rising)
{
    uint32_t id = draw_id(w);
    if (w->homes[id] == 0) {
        if (draw(w, 100) >= rising)
            return;
        uint32_t home = (uint32_t)draw(w, INDEXES);
        shape(w, id, draw_size(w));
        w->homes[id] = home + 1;
        frag_free_index_insert(&w->store, &w->indexes[home], id);
        return;
    }
    frag_free_index *index = &w->indexes[w->homes[id] - 1];
    if (draw(w, 100) < 30) {
        uint64_t old = w->blocks[id].bytes;
        uint64_t cut = old > 1 ? old - 1 : old;
        shape(w, id, draw(w, 2) == 0 ? draw_size(w) : draw(w, 2) == 0 ? cut : old + 1);
        frag_free_table_change(&w->store, index->heads, id, w->blocks[id].bytes);
    } else if (draw(w, 100) >= rising) {
        frag_free_index_remove(&w->store, index, id);
        w->homes[id] = 0;
    }
}

/* Questions come in turns of 1000 steps: each time, and seldom, so that much waits to be put in
 * order.
 */
static void compare_with_a_plain_list(bool is_ranked)
{
    world w;
    open_world(&w, is_ranked);
    frag_error error = {0};
    for (uint32_t step = 0; step < 60000; step++) {
        change_something(&w, (step / 5000) % 2 == 0 ? 90 : 10);
        if ((step / 1000) % 2 == 0 || step % 97 == 0)
            ask(&w, (uint32_t)draw(&w, INDEXES));
        if (step % 500 == 0)
            for (uint32_t i = 0; i < INDEXES; i++) {
                assert_true(frag_free_index_check(&w.store, &w.indexes[i], &error));
                bool is_empty = frag_free_index_count(&w.store, &w.indexes[i]) == 0;
                assert_int_equal(w.indexes[i].heads == 0, is_empty);
            }
    }
    frag_arena_destroy(&w.arena);
}

static void answers_as_a_plain_list_would(void **state)
{
    (void)state;
    compare_with_a_plain_list(false);
}

static void answers_as_a_plain_list_would_in_an_order_of_the_callers(void **state)
{
    (void)state;
    compare_with_a_plain_list(true);
}

/* Few blocks at a time among the many of a bin, so that walks take its lane. */
static void finds_its_way_along_a_list_of_thousands(void **state)
{
    (void)state;
    world w;
    open_world(&w, false);
    frag_error error = {0};
    for (uint32_t step = 0; step < 6000; step++) {
        for (uint64_t changes = draw(&w, 60); changes > 0; changes--) {
            uint32_t id = draw_id(&w);
            if (w.homes[id] != 0) {
                frag_free_index_remove(&w.store, &w.indexes[0], id);
            } else {
                shape(&w, id, 4096 + draw(&w, 256));
                frag_free_index_insert(&w.store, &w.indexes[0], id);
            }
            w.homes[id] ^= 1;
        }
        uint64_t size = 4096 + draw(&w, 256);
        uint32_t wanted = 0;
        uint32_t got = 0;
        bool is_there = plain_answer(&w, 0, BEST, size, 0, &wanted);
        assert_int_equal(frag_free_index_best(&w.store, &w.indexes[0], size, &got), is_there);
        assert_int_equal(got, wanted);
        if (step % 100 == 0)
            assert_true(frag_free_index_check(&w.store, &w.indexes[0], &error));
    }
    frag_arena_destroy(&w.arena);
}

static void asks_a_table_that_stays_open_while_it_is_empty(void **state)
{
    (void)state;
    world w;
    open_world(&w, false);
    frag_free_index *index = &w.indexes[0];
    uint32_t heads = frag_free_table_open(&w.store, index);
    for (uint32_t round = 0; round < 2; round++) {
        uint32_t id = 0;
        assert_false(frag_free_index_best(&w.store, index, 1, &id));
        assert_false(frag_free_index_last(&w.store, index, &id));
        assert_int_equal(frag_free_index_count(&w.store, index), 0);
        assert_true(frag_free_index_check(&w.store, index, NULL));
        shape(&w, 3, 4096);
        frag_free_table_insert(&w.store, heads, 3, 4096);
        assert_true(frag_free_index_last(&w.store, index, &id));
        assert_int_equal(id, 3);
        assert_true(frag_free_table_take_out(&w.store, heads, 3));
        assert_int_equal(index->heads, heads);
    }
    frag_arena_destroy(&w.arena);
}

static void orders_every_size_by_its_bin(void **state)
{
    (void)state;
    uint32_t before = 0;
    for (uint64_t size = 1; size < 100000; size++) {
        uint32_t bin = frag_free_bin_of(size);
        /* Small sizes have bins of their own, with unused ones between. */
        assert_true(size <= 32 ? bin > before || size == 1 : bin == before || bin == before + 1);
        before = bin;
    }
    assert_true(frag_free_bin_of((uint64_t)1 << 62) < FRAG_FREE_BIN_COUNT);
}

typedef struct sum_of {
    const world *w;
    uint64_t bytes;
    uint64_t address; /* of the block before */
} sum_of;

static void add_block(void *context, uint32_t id)
{
    sum_of *sum = context;
    sum->bytes += sum->w->blocks[id].bytes;
    assert_true(sum->w->blocks[id].address > sum->address);
    sum->address = sum->w->blocks[id].address;
}

static void holds_every_block_in_one_bin_and_gives_the_memory_back(void **state)
{
    (void)state;
    world w;
    open_world(&w, false);
    frag_error error = {0};
    /* Each size in turn takes all blocks, so that they travel from bin to bin. */
    for (uint64_t size = 1; size < ((uint64_t)1 << 40); size *= 3) {
        frag_free_index *index = &w.indexes[size % INDEXES];
        for (uint32_t id = 1; id < IDS; id++) {
            w.blocks[id] = (frag_block){.bytes = size, .address = id * 101 % 2609};
            frag_free_index_insert(&w.store, index, id);
        }
        sum_of sum = {&w, 0, 0};
        frag_free_index_visit(&w.store, index, add_block, &sum);
        assert_int_equal(sum.bytes, size * (IDS - 1));
        uint32_t id = 0;
        assert_true(frag_free_index_best(&w.store, index, size, &id));
        assert_int_equal(w.blocks[id].address, 1);
        assert_true(frag_free_index_check(&w.store, index, &error));
        for (uint32_t i = 1; i < IDS; i++)
            frag_free_index_remove(&w.store, index, i);
        assert_int_equal(frag_free_index_count(&w.store, index), 0);
        assert_false(frag_free_index_best(&w.store, index, 1, &id));
        assert_int_equal(w.store.table_count, 1);
    }
    frag_arena_destroy(&w.arena);
}

static void sees_what_has_been_broken(void **state)
{
    (void)state;
    world w;
    open_world(&w, false);
    frag_error error = {0};
    for (uint32_t id = 7; id < 9; id++) {
        w.blocks[id] = (frag_block){.bytes = 4096, .address = id * 10};
        frag_free_index_insert(&w.store, &w.indexes[0], id);
    }
    frag_free_index *index = &w.indexes[0];
    assert_true(frag_free_index_check(&w.store, index, &error));
    /* They lie in no order until somebody asks. */
    uint32_t head = index->heads + frag_free_bin_of(4096);
    assert_int_equal(w.store.links[head].next, 8);
    w.store.links[head].previous = 0;
    assert_false(frag_free_index_check(&w.store, index, &error));
    w.store.links[head].previous = 1;
    uint32_t least = 0;
    assert_true(frag_free_index_best(&w.store, index, 4096, &least));
    assert_int_equal(least, 7);
    assert_int_equal(w.store.links[head].next, 7);
    w.store.links[7].previous = 5;
    assert_false(frag_free_index_check(&w.store, index, &error));
    w.store.links[7].previous = head;
    assert_true(frag_free_index_check(&w.store, index, &error));
    w.blocks[7].address = 90;
    assert_false(frag_free_index_check(&w.store, index, &error));
    w.blocks[7].address = 70;
    w.blocks[7].bytes = 16384;
    assert_false(frag_free_index_check(&w.store, index, &error));
    w.blocks[7].bytes = 4096;
    uint64_t *words = frag_free_words(&w.store, index->heads);
    words[0] |= 1;
    assert_false(frag_free_index_check(&w.store, index, &error));
    words[0] = 0;
    words[FRAG_FREE_WORD_COUNT] = 0;
    assert_false(frag_free_index_check(&w.store, index, &error));
    words[FRAG_FREE_WORD_COUNT] = ~(uint64_t)0;
    w.blocks[0].bytes = 0;
    assert_false(frag_free_index_check(&w.store, index, &error));
    frag_arena_destroy(&w.arena);
}

static bool is_even_in_the_first(const void *context, uint32_t id, uint32_t number)
{
    (void)context;
    return id % 2 == number;
}

/* What an audit says of the first index, which holds block 8 alone. */
static bool is_found_wrong(const world *w, uint32_t number)
{
    frag_error error = {0};
    frag_index_audit audit = {
        .blocks = w->blocks, .state = FRAG_BLOCK_HOLE, .belongs = is_even_in_the_first};
    assert_true(frag_index_audit_take(&audit, &w->store, &w->indexes[0], number, &error));
    assert_int_equal(audit.count, 1);
    return audit.is_wrong;
}

static void sees_where_the_blocks_are_others(void **state)
{
    (void)state;
    world w;
    open_world(&w, false);
    w.blocks[8] = (frag_block){.state = FRAG_BLOCK_HOLE, .bytes = 4096, .address = 20};
    frag_free_index_insert(&w.store, &w.indexes[0], 8);
    assert_false(is_found_wrong(&w, 0));
    assert_true(is_found_wrong(&w, 1));
    w.blocks[8].state = FRAG_BLOCK_BUSY;
    assert_true(is_found_wrong(&w, 0));
    frag_arena_destroy(&w.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_as_a_plain_list_would),
        cmocka_unit_test(answers_as_a_plain_list_would_in_an_order_of_the_callers),
        cmocka_unit_test(finds_its_way_along_a_list_of_thousands),
        cmocka_unit_test(asks_a_table_that_stays_open_while_it_is_empty),
        cmocka_unit_test(orders_every_size_by_its_bin),
        cmocka_unit_test(holds_every_block_in_one_bin_and_gives_the_memory_back),
        cmocka_unit_test(sees_what_has_been_broken),
        cmocka_unit_test(sees_where_the_blocks_are_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
