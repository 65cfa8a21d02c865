/* Tests of address_index.c: holes by address, against a plain walk. */
#include "allocators/index/address_index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "allocators/index/index_audit.h"
#include "tests/support/xorshift.h"

/* The address space has rooms for one hole each: a walk over the rooms is the truth. */
enum { ROOMS = 3000, INDEXES = 3, UNIT = 256 };

#define ROOM_BYTES ((uint64_t)1 << 50)

typedef struct world {
    frag_arena arena;
    frag_address_index_store store;
    frag_address_index indexes[INDEXES];
    frag_block *blocks;
    uint32_t homes[ROOMS]; /* index + 1, 0: none */
    uint64_t random;
    uint64_t large_units; /* sizes go up to here */
} world;

static void open_world(world *w)
{
    memset(w, 0, sizeof *w);
    frag_error error = {0};
    assert_true(frag_arena_create(
        &w->arena, ROOMS * sizeof(frag_block) + frag_address_index_store_bytes(ROOMS, INDEXES),
        &error));
    w->blocks = frag_arena_take(&w->arena, ROOMS, sizeof *w->blocks);
    frag_address_index_store_create(&w->store, &w->arena, w->blocks, ROOMS, INDEXES, UNIT);
    for (uint32_t i = 0; i < INDEXES; i++)
        w->indexes[i] = (frag_address_index){&w->store, FRAG_ADDRESS_NONE};
    w->random = 88172645463325252u;
    w->large_units = 1 << 20;
}

static uint64_t draw(world *w, uint64_t limit)
{
    return xorshift_next(&w->random) % limit;
}

static uint64_t draw_bytes(world *w)
{
    uint64_t kind = draw(w, 3);
    uint64_t limit = kind == 0 ? 4 : kind == 1 ? 300 : w->large_units;
    return UNIT * (1 + draw(w, limit));
}

static void put_hole(world *w, uint32_t room)
{
    w->blocks[room] = (frag_block){.address = room * ROOM_BYTES + UNIT * draw(w, 1000),
                                   .bytes = draw_bytes(w),
                                   .state = FRAG_BLOCK_HOLE};
}

static void insert(world *w, uint32_t home, uint32_t room)
{
    put_hole(w, room);
    w->homes[room] = home + 1;
    frag_address_index_insert(&w->indexes[home], room);
}

static void take_out(world *w, uint32_t room)
{
    frag_address_index_remove(&w->indexes[w->homes[room] - 1], room);
    w->homes[room] = 0;
}

static bool is_fit(const world *w, uint32_t home, uint32_t room, uint64_t bytes)
{
    return w->homes[room] == home + 1 && w->blocks[room].bytes >= bytes;
}

typedef enum question { FIRST, ABOVE, NEXT, LARGEST } question;

static bool plain_answer(const world *w, uint32_t home, question what, uint64_t bytes,
                         uint64_t from, uint32_t *id)
{
    bool is_found = false;
    for (uint32_t room = 0; room < ROOMS; room++) {
        if (!is_fit(w, home, room, bytes))
            continue;
        uint64_t address = w->blocks[room].address;
        bool is_above = address >= from;
        bool is_better = !is_found;
        if (what == NEXT)
            is_better = is_better || (is_above && w->blocks[*id].address < from);
        if (what == LARGEST)
            is_better = is_better || w->blocks[room].bytes > w->blocks[*id].bytes;
        if (is_better && (what != ABOVE || is_above)) {
            *id = room;
            is_found = true;
        }
    }
    return is_found;
}

static void ask(world *w, uint32_t home)
{
    const frag_address_index *index = &w->indexes[home];
    uint64_t bytes = draw_bytes(w);
    uint32_t room = (uint32_t)draw(w, ROOMS);
    uint64_t from = w->homes[room] == 0 ? room * ROOM_BYTES : w->blocks[room].address;
    for (question what = FIRST; what <= LARGEST; what++) {
        uint32_t wanted = 0;
        uint32_t got = 0;
        bool is_found = false;
        if (what == ABOVE && w->homes[room] != home + 1)
            continue;
        bool is_there =
            plain_answer(w, home, what, bytes, what == ABOVE ? from + 1 : from, &wanted);
        if (what == FIRST)
            is_found = frag_address_index_first(index, bytes, &got);
        if (what == ABOVE)
            is_found = frag_address_index_above(index, bytes, room, &got);
        if (what == NEXT)
            is_found = frag_address_index_next(index, bytes, from, &got);
        if (what == LARGEST)
            is_found = frag_address_index_largest(index, bytes, &got);
        assert_int_equal(is_found, is_there);
        if (is_there)
            assert_int_equal(got, wanted);
    }
}

static void change_something(world *w, uint32_t rising)
{
    uint32_t room = (uint32_t)draw(w, ROOMS);
    if (w->homes[room] == 0) {
        if (draw(w, 100) < rising)
            insert(w, (uint32_t)draw(w, INDEXES), room);
    } else if (draw(w, 100) < 30) {
        put_hole(w, room);
        frag_address_index_change(&w->indexes[w->homes[room] - 1], room);
    } else if (draw(w, 100) >= rising) {
        take_out(w, room);
    }
}

static void check_all(const world *w)
{
    frag_error error = {0};
    for (uint32_t i = 0; i < INDEXES; i++)
        assert_true(frag_address_index_check(&w->indexes[i], &error));
}

static void compare_with_a_plain_walk(uint64_t large_units)
{
    world w;
    open_world(&w);
    w.large_units = large_units;
    for (uint32_t step = 0; step < 60000; step++) {
        change_something(&w, (step / 15000) % 2 == 0 ? 95 : 5);
        if (step % 10 == 0)
            ask(&w, (uint32_t)draw(&w, INDEXES));
        if (step % 500 == 0)
            check_all(&w);
    }
    frag_arena_destroy(&w.arena);
}

static void answers_as_a_plain_walk_would(void **state)
{
    (void)state;
    compare_with_a_plain_walk(1 << 20);
}

static void tells_sizes_apart_that_are_too_large_for_a_node(void **state)
{
    (void)state;
    compare_with_a_plain_walk((uint64_t)1 << 36);
}

static void count_hole(void *context, uint32_t id)
{
    uint32_t *next = context;
    assert_int_equal(id, *next);
    (*next)++;
}

/* The order in which rooms fill and empty is what decides how nodes split and join. */
static void holds_every_hole_in_any_order_and_gives_the_nodes_back(void **state)
{
    (void)state;
    world w;
    open_world(&w);
    static const uint32_t steps[] = {1, ROOMS - 1, 7, 1201};
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t k = 0; k < 4; k++) {
            for (uint32_t n = 0; n < ROOMS; n++)
                insert(&w, 0, (uint32_t)((uint64_t)n * steps[i] % ROOMS));
            check_all(&w);
            uint32_t next = 0;
            frag_address_index_visit(&w.indexes[0], count_hole, &next);
            assert_int_equal(next, ROOMS);
            for (uint32_t n = 0; n < ROOMS; n++) {
                take_out(&w, (uint32_t)((uint64_t)n * steps[k] % ROOMS));
                if (n % 100 == 0)
                    check_all(&w);
            }
            assert_int_equal(w.indexes[0].root, FRAG_ADDRESS_NONE);
        }
    uint32_t id = 0;
    assert_false(frag_address_index_first(&w.indexes[0], UNIT, &id));
    assert_false(frag_address_index_next(&w.indexes[0], UNIT, 0, &id));
    frag_arena_destroy(&w.arena);
}

static void sees_what_has_been_broken(void **state)
{
    (void)state;
    world w;
    open_world(&w);
    frag_error error = {0};
    const frag_address_index *index = &w.indexes[0];
    for (uint32_t room = 0; room < 40; room++)
        insert(&w, 0, room);
    assert_true(frag_address_index_check(index, &error));
    w.blocks[20].bytes += UNIT;
    assert_false(frag_address_index_check(index, &error));
    w.blocks[20].bytes -= UNIT;
    w.blocks[20].address -= 2 * ROOM_BYTES;
    assert_false(frag_address_index_check(index, &error));
    w.blocks[20].address += 2 * ROOM_BYTES;
    uint32_t *place = &w.store.places[w.store.node_max + 20];
    *place += 1;
    assert_false(frag_address_index_check(index, &error));
    *place -= 1;
    frag_address_node *root = &w.store.nodes[index->root];
    root->sizes.values[1]++;
    assert_false(frag_address_index_check(index, &error));
    root->sizes.values[1]--;
    root->sizes.values[FRAG_ADDRESS_NODE_WIDTH - 1] = 1;
    assert_false(frag_address_index_check(index, &error));
    root->sizes.values[FRAG_ADDRESS_NODE_WIDTH - 1] = 0;
    assert_true(frag_address_index_check(index, &error));
    frag_arena_destroy(&w.arena);
}

static bool is_even_in_the_first(const void *context, uint32_t id, uint32_t number)
{
    (void)context;
    return id % 2 == number;
}

static bool is_found_wrong(const world *w, uint32_t number)
{
    frag_error error = {0};
    frag_index_audit audit = {
        .blocks = w->blocks, .state = FRAG_BLOCK_HOLE, .belongs = is_even_in_the_first};
    assert_true(frag_index_audit_take_by_address(&audit, &w->indexes[0], number, &error));
    assert_int_equal(audit.count, 1);
    return audit.is_wrong;
}

static void sees_where_a_block_is_no_hole_or_in_a_foreign_index(void **state)
{
    (void)state;
    world w;
    open_world(&w);
    insert(&w, 0, 8);
    assert_false(is_found_wrong(&w, 0));
    assert_true(is_found_wrong(&w, 1));
    w.blocks[8].state = FRAG_BLOCK_BUSY;
    assert_true(is_found_wrong(&w, 0));
    frag_arena_destroy(&w.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_as_a_plain_walk_would),
        cmocka_unit_test(tells_sizes_apart_that_are_too_large_for_a_node),
        cmocka_unit_test(holds_every_hole_in_any_order_and_gives_the_nodes_back),
        cmocka_unit_test(sees_what_has_been_broken),
        cmocka_unit_test(sees_where_a_block_is_no_hole_or_in_a_foreign_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
