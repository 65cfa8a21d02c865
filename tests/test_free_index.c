#include "allocators/free_index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "allocators/index_audit.h"

enum { IDS = 600, INDEXES = 3 };

typedef struct world {
    frag_arena arena;
    frag_free_index_store store;
    frag_free_index indexes[INDEXES];
    /* What a plain list says. */
    uint64_t sizes[IDS];
    uint64_t ties[IDS];
    uint32_t homes[IDS]; /* index + 1, 0: none */
    uint64_t random;
} world;

static void open_world(world *w, bool keeps_least)
{
    memset(w, 0, sizeof *w);
    frag_error error = {0};
    assert_true(frag_arena_create(&w->arena, frag_free_index_store_bytes(IDS, INDEXES, keeps_least),
                                  &error));
    frag_free_index_store_create(&w->store, &w->arena, IDS, INDEXES, keeps_least);
    for (uint32_t i = 0; i < INDEXES; i++)
        w->indexes[i].store = &w->store;
    w->random = 88172645463325252u;
}

static uint64_t draw(world *w, uint64_t limit)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return (w->random >> 11) % limit;
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

typedef enum question { BEST, FIRST, NEXT, WORST, ABOVE } question;

static bool is_better(const world *w, question what, uint32_t a, uint32_t b, uint64_t from)
{
    switch (what) {
    case FIRST:
        return w->ties[a] < w->ties[b];
    case NEXT:
        if ((w->ties[a] >= from) != (w->ties[b] >= from))
            return w->ties[a] >= from;
        return w->ties[a] < w->ties[b];
    case WORST:
        return w->sizes[a] > w->sizes[b] || (w->sizes[a] == w->sizes[b] && w->ties[a] < w->ties[b]);
    default:
        return w->sizes[a] < w->sizes[b] || (w->sizes[a] == w->sizes[b] && w->ties[a] < w->ties[b]);
    }
}

static bool plain_answer(const world *w, uint32_t home, question what, uint64_t size, uint64_t from,
                         uint32_t *id)
{
    bool is_found = false;
    for (uint32_t i = 0; i < IDS; i++) {
        if (w->homes[i] != home + 1 || w->sizes[i] < size)
            continue;
        if (what == ABOVE && w->sizes[i] == size && w->ties[i] <= from)
            continue;
        if (!is_found || is_better(w, what, i, *id, from))
            *id = i;
        is_found = true;
    }
    return is_found;
}

static void ask(world *w, uint32_t home, bool keeps_least)
{
    const frag_free_index *index = &w->indexes[home];
    uint64_t size = draw_size(w);
    uint64_t from = draw(w, IDS * 2);
    for (question what = BEST; what <= ABOVE; what++) {
        uint32_t wanted = UINT32_MAX;
        uint32_t got = UINT32_MAX;
        bool is_there = plain_answer(w, home, what, size, from, &wanted);
        bool is_found = false;
        if (what != NEXT && (what == FIRST) != keeps_least)
            continue;
        if (what == BEST)
            is_found = frag_free_index_best(index, size, &got);
        if (what == FIRST)
            is_found = frag_free_index_first(index, size, &got);
        if (what == NEXT)
            is_found = frag_free_index_next(index, size, from, &got);
        if (what == WORST)
            is_found = frag_free_index_worst(index, size, &got);
        if (what == ABOVE)
            is_found = frag_free_index_above(index, size, from, &got);
        assert_int_equal(is_found, is_there);
        if (is_there)
            assert_int_equal(got, wanted);
    }
}

static void change_something(world *w, uint32_t rising)
{
    uint32_t id = (uint32_t)draw(w, IDS);
    if (w->homes[id] == 0) {
        if (draw(w, 100) >= rising)
            return;
        uint32_t home = (uint32_t)draw(w, INDEXES);
        w->sizes[id] = draw_size(w);
        w->ties[id] = id * 2 + draw(w, 2);
        w->homes[id] = home + 1;
        frag_free_index_insert(&w->indexes[home], id, w->sizes[id], w->ties[id]);
        return;
    }
    frag_free_index *index = &w->indexes[w->homes[id] - 1];
    if (draw(w, 100) < 30) {
        uint64_t old = w->sizes[id];
        w->sizes[id] = draw(w, 2) == 0 ? draw_size(w) : old + 1;
        w->ties[id] = id * 2 + draw(w, 2);
        frag_free_index_change(index, id, old, w->sizes[id], w->ties[id]);
    } else if (draw(w, 100) >= rising) {
        frag_free_index_remove(index, id, w->sizes[id]);
        w->homes[id] = 0;
    }
}

static void compare_with_a_plain_list(bool keeps_least)
{
    world w;
    open_world(&w, keeps_least);
    frag_error error = {0};
    for (uint32_t step = 0; step < 60000; step++) {
        change_something(&w, (step / 5000) % 2 == 0 ? 90 : 10);
        ask(&w, (uint32_t)draw(&w, INDEXES), keeps_least);
        if (step % 500 == 0)
            for (uint32_t i = 0; i < INDEXES; i++)
                assert_true(frag_free_index_check(&w.indexes[i], &error));
    }
    frag_arena_destroy(&w.arena);
}

static void answers_as_a_plain_list_would(void **state)
{
    (void)state;
    compare_with_a_plain_list(false);
}

static void answers_as_a_plain_list_would_with_least_ties_kept(void **state)
{
    (void)state;
    compare_with_a_plain_list(true);
}

static void orders_every_size_by_its_bin(void **state)
{
    (void)state;
    uint32_t before = 0;
    for (uint64_t size = 1; size < 100000; size++) {
        uint32_t bin = frag_free_bin_of(size);
        /* Small sizes have bins of their own, with unused ones between. */
        assert_true(size <= 16 ? bin > before || size == 1 : bin == before || bin == before + 1);
        before = bin;
    }
    assert_true(frag_free_bin_of((uint64_t)1 << 62) < FRAG_FREE_BIN_COUNT);
}

static void count_entry(void *context, const frag_free_entry *entry)
{
    uint64_t *sum = context;
    *sum += entry->size;
}

static void holds_every_block_in_one_bin_and_gives_the_memory_back(void **state)
{
    (void)state;
    world w;
    open_world(&w, true);
    frag_error error = {0};
    /* Each size in turn takes all blocks, so that arrays travel from bin to bin within the bound.
     */
    for (uint64_t size = 1; size < ((uint64_t)1 << 40); size *= 3) {
        for (uint32_t id = 0; id < IDS; id++)
            frag_free_index_insert(&w.indexes[0], id, size, IDS - id);
        uint64_t sum = 0;
        frag_free_index_visit(&w.indexes[0], count_entry, &sum);
        assert_int_equal(sum, size * IDS);
        uint32_t id = 0;
        assert_true(frag_free_index_best(&w.indexes[0], size, &id));
        assert_int_equal(id, IDS - 1);
        assert_true(frag_free_index_check(&w.indexes[0], &error));
        for (uint32_t i = 0; i < IDS; i++)
            frag_free_index_remove(&w.indexes[0], i, size);
        assert_int_equal(frag_free_index_count(&w.indexes[0]), 0);
        assert_false(frag_free_index_best(&w.indexes[0], 1, &id));
    }
    frag_arena_destroy(&w.arena);
}

static void sees_what_has_been_broken(void **state)
{
    (void)state;
    world w;
    open_world(&w, true);
    frag_error error = {0};
    frag_free_index_insert(&w.indexes[0], 7, 4096, 10);
    frag_free_index_insert(&w.indexes[0], 8, 4096, 20);
    assert_true(frag_free_index_check(&w.indexes[0], &error));
    w.store.links[8].previous = 5;
    assert_false(frag_free_index_check(&w.indexes[0], &error));
    w.store.links[8].previous = 9;
    w.store.nodes[8].tie = 30;
    assert_false(frag_free_index_check(&w.indexes[0], &error));
    w.store.nodes[8].tie = 10;
    w.indexes[0].table->words[0] |= 1;
    assert_false(frag_free_index_check(&w.indexes[0], &error));
    w.indexes[0].table->words[0] = 0;
    frag_arena_destroy(&w.arena);
}

static bool is_even_in_the_first(const void *context, uint32_t id, uint32_t number)
{
    (void)context;
    return id % 2 == number;
}

/* What an audit says of one index with one free block, which is block 8 at 20, of 4096 bytes. */
static bool is_found_wrong(const world *w, const frag_block *block, uint32_t number)
{
    frag_block blocks[IDS] = {{0}};
    blocks[8] = *block;
    frag_error error = {0};
    frag_index_audit audit = {
        .blocks = blocks, .state = FRAG_BLOCK_HOLE, .belongs = is_even_in_the_first};
    assert_true(frag_index_audit_take(&audit, &w->indexes[0], number, &error));
    assert_int_equal(audit.count, 1);
    return audit.is_wrong;
}

static void sees_where_the_blocks_are_others(void **state)
{
    (void)state;
    world w;
    open_world(&w, false);
    frag_free_index_insert(&w.indexes[0], 8, 4096, 20);
    const frag_block right = {.state = FRAG_BLOCK_HOLE, .bytes = 4096, .address = 20};
    frag_block busy = right, longer = right, elsewhere = right;
    busy.state = FRAG_BLOCK_BUSY;
    longer.bytes = 8192;
    elsewhere.address = 30;
    assert_false(is_found_wrong(&w, &right, 0));
    assert_true(is_found_wrong(&w, &right, 1));
    assert_true(is_found_wrong(&w, &busy, 0));
    assert_true(is_found_wrong(&w, &longer, 0));
    assert_true(is_found_wrong(&w, &elsewhere, 0));
    frag_arena_destroy(&w.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_as_a_plain_list_would),
        cmocka_unit_test(answers_as_a_plain_list_would_with_least_ties_kept),
        cmocka_unit_test(orders_every_size_by_its_bin),
        cmocka_unit_test(holds_every_block_in_one_bin_and_gives_the_memory_back),
        cmocka_unit_test(sees_what_has_been_broken),
        cmocka_unit_test(sees_where_the_blocks_are_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
