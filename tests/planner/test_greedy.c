/* Tests of the greedy packings, against a slow search of every offset. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "planner/greedy.h"
#include "planner/skyline.h"
#include "tests/support/instances.h"
#include "tests/support/xorshift.h"

/* Greedy packing as one would write it down: every candidate offset, every placed buffer. */
static instance problem;

static bool lives_with(uint32_t a, uint32_t b)
{
    return problem.buffers[a].lower < problem.buffers[b].upper &&
           problem.buffers[b].lower < problem.buffers[a].upper;
}

static uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

/* How many bytes are free from the offset on; 0: taken. */
static uint64_t room_at(const uint32_t *placed, uint32_t count, const uint64_t *offsets,
                        uint32_t at, uint64_t offset)
{
    uint64_t room = UINT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t other = placed[i];
        if (!lives_with(at, other) || offsets[other] + problem.buffers[other].size <= offset)
            continue;
        uint64_t free_bytes = offsets[other] > offset ? offsets[other] - offset : 0;
        room = free_bytes < room ? free_bytes : room;
    }
    return room;
}

static uint64_t slow_find(const uint32_t *placed, uint32_t count, const uint64_t *offsets,
                          uint32_t at, frag_gap_choice choice)
{
    const frag_buffer *one = &problem.buffers[at];
    uint64_t best = UINT64_MAX;
    uint64_t best_room = UINT64_MAX;
    for (uint32_t i = 0; i <= count; i++) {
        uint64_t offset = 0;
        if (i > 0)
            offset = round_up(offsets[placed[i - 1]] + problem.buffers[placed[i - 1]].size,
                              one->alignment);
        uint64_t room = room_at(placed, count, offsets, at, offset);
        if (room < one->size || (i > 0 && !lives_with(at, placed[i - 1])))
            continue;
        bool is_better = choice == FRAG_GAP_FIRST ? offset < best
                         : room != best_room      ? room < best_room
                                                  : offset < best;
        if (best == UINT64_MAX || is_better) {
            best = offset;
            best_room = room;
        }
    }
    return best;
}

static void gaps_are_those_that_a_slow_search_finds(void **state)
{
    (void)state;
    static uint64_t offsets[INSTANCE_MAX];
    static uint32_t placed[INSTANCE_MAX];
    for (uint64_t seed = 0; seed < 120; seed++) {
        instance_random(&problem, seed, 2 + (uint32_t)seed, 5 + seed, 40, seed % 4 == 0 ? 9 : 1);
        frag_sections sections;
        frag_error error = {0};
        assert_true(frag_sections_create(&sections, problem.buffers, problem.count, &error));
        frag_gap_tree *tree = frag_gap_tree_create(sections.count);
        frag_gap_choice choice = seed % 2 == 0 ? FRAG_GAP_FIRST : FRAG_GAP_BEST;
        for (uint32_t i = 0; i < problem.count; i++) {
            const frag_buffer *one = &problem.buffers[i];
            offsets[i] = frag_gap_tree_find(tree, sections.lower[i], sections.upper[i], one->size,
                                            one->alignment, choice);
            assert_int_equal(offsets[i], slow_find(placed, i, offsets, i, choice));
            frag_gap_tree_take(tree, sections.lower[i], sections.upper[i], offsets[i], one->size);
            placed[i] = i;
        }
        frag_gap_tree_clear(tree);
        assert_int_equal(frag_gap_tree_find(tree, 0, 1, 100, 1, choice), 0);
        frag_gap_tree_destroy(tree);
        frag_sections_destroy(&sections);
    }
}

/* The buffer that can lie lowest next, the first in the order among equals. */
static uint64_t slow_skyline(const uint32_t *order, uint64_t *offsets)
{
    static bool is_placed[INSTANCE_MAX];
    memset(is_placed, 0, sizeof is_placed);
    uint64_t height = 0;
    for (uint32_t done = 0; done < problem.count; done++) {
        uint64_t lowest = UINT64_MAX;
        uint32_t next = 0;
        for (uint32_t i = 0; i < problem.count; i++) {
            uint64_t least = 0;
            for (uint32_t j = 0; j < problem.count; j++)
                if (is_placed[j] && lives_with(order[i], j) &&
                    offsets[j] + problem.buffers[j].size > least)
                    least = offsets[j] + problem.buffers[j].size;
            if (!is_placed[order[i]] && least < lowest) {
                lowest = least;
                next = order[i];
            }
        }
        is_placed[next] = true;
        offsets[next] = lowest;
        if (lowest + problem.buffers[next].size > height)
            height = lowest + problem.buffers[next].size;
    }
    return height;
}

static void the_skyline_is_filled_from_the_bottom_up(void **state)
{
    (void)state;
    static uint64_t offsets[INSTANCE_MAX];
    static uint64_t slow_offsets[INSTANCE_MAX];
    static uint32_t order[INSTANCE_MAX];
    static const char *const letters[] = {"WAT", "TAW", "Z", "l"};
    for (uint64_t seed = 0; seed < 60; seed++) {
        instance_random(&problem, seed, 2 + (uint32_t)(seed * seed) / 18, 5 + seed, 40, 1);
        frag_sections sections;
        frag_error error = {0};
        assert_true(frag_sections_create(&sections, problem.buffers, problem.count, &error));
        for (uint32_t i = 0; i < problem.count; i++)
            order[i] = i;
        frag_greedy_sort(&sections, letters[seed % 4], order, problem.count);
        frag_skyline *skyline = frag_skyline_create(&sections);
        uint64_t height = 0;
        for (int again = 0; again < 2; again++)
            height = frag_skyline_place(skyline, order, problem.count, offsets);
        assert_int_equal(height, slow_skyline(order, slow_offsets));
        assert_memory_equal(offsets, slow_offsets, problem.count * sizeof *offsets);
        frag_skyline_destroy(skyline);
        frag_sections_destroy(&sections);
    }
}

static void orders_follow_their_letters(void **state)
{
    (void)state;
    static const frag_buffer buffers[] = {
        {0, 10, 5, 1}, {2, 4, 50, 1}, {3, 12, 5, 1}, {11, 12, 7, 1}, {20, 21, 1, 1},
    };
    static const struct {
        const char *letters;
        uint32_t order[5];
    } cases[] = {
        {"Z", {1, 3, 0, 2, 4}},  {"W", {0, 2, 1, 3, 4}}, {"A", {1, 0, 2, 3, 4}},
        {"L", {4, 3, 2, 1, 0}},  {"l", {0, 1, 2, 3, 4}}, {"U", {4, 2, 3, 0, 1}},
        {"ZL", {1, 3, 2, 0, 4}}, {"O", {2, 0, 1, 3, 4}}, {"T", {0, 1, 2, 3, 4}},
    };
    frag_sections sections;
    frag_error error = {0};
    assert_true(frag_sections_create(&sections, buffers, 5, &error));
    assert_int_equal(sections.count, 3);
    assert_int_equal(sections.load_bytes, 60);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t order[5] = {0, 1, 2, 3, 4};
        frag_greedy_sort(&sections, cases[i].letters, order, 5);
        assert_memory_equal(order, cases[i].order, sizeof order);
    }
    frag_sections_destroy(&sections);
}

static uint64_t load_at(uint64_t time)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < problem.count; i++)
        if (problem.buffers[i].lower <= time && time < problem.buffers[i].upper)
            bytes += problem.buffers[i].size;
    return bytes;
}

/* What a letter stands for, as one would count it. */
static uint64_t slow_key(uint32_t at, char letter)
{
    const frag_buffer *one = &problem.buffers[at];
    uint64_t key = 0;
    switch (letter) {
    case 'A':
        return (one->upper - one->lower) * one->size;
    case 'L':
        return one->lower;
    case 'O': /* how many live beside it, itself included */
        for (uint32_t i = 0; i < problem.count; i++)
            key += lives_with(at, i) ? 1 : 0;
        return key;
    case 'T': /* the most that is live at one of its times */
        for (uint64_t time = one->lower; time < one->upper; time++)
            key = load_at(time) > key ? load_at(time) : key;
        return key;
    case 'U':
        return one->upper;
    case 'W':
        return one->upper - one->lower;
    default:
        return one->size;
    }
}

static void orders_fall_by_keys_that_are_counted_slowly(void **state)
{
    (void)state;
    static const char letters[] = "ALOTUWZ";
    for (uint64_t seed = 0; seed < 60; seed++) {
        instance_random(&problem, seed, 40, 30 + seed, 20, 1);
        frag_sections sections;
        frag_error error = {0};
        assert_true(frag_sections_create(&sections, problem.buffers, problem.count, &error));
        for (size_t i = 0; letters[i] != '\0'; i++) {
            const char falling[] = {letters[i], '\0'};
            const char rising[] = {(char)(letters[i] - 'A' + 'a'), '\0'};
            uint32_t down[INSTANCE_MAX];
            uint32_t up[INSTANCE_MAX];
            for (uint32_t at = 0; at < problem.count; at++)
                down[at] = up[at] = at;
            frag_greedy_sort(&sections, falling, down, problem.count);
            frag_greedy_sort(&sections, rising, up, problem.count);
            for (uint32_t at = 1; at < problem.count; at++) {
                assert_true(slow_key(down[at - 1], letters[i]) >= slow_key(down[at], letters[i]));
                assert_true(slow_key(up[at - 1], letters[i]) <= slow_key(up[at], letters[i]));
            }
        }
        frag_sections_destroy(&sections);
    }
}

/* From 65536 on they are sorted letter by letter. */
static void many_buffers_are_ordered_as_few(void **state)
{
    (void)state;
    enum { MANY = 66000 };
    frag_buffer *buffers = calloc(MANY, sizeof *buffers);
    uint32_t *order = calloc(MANY, sizeof *order);
    assert_true(buffers != NULL && order != NULL);
    uint64_t random = 5;
    for (uint32_t i = 0; i < MANY; i++) {
        uint64_t lower = xorshift_next(&random) % 50;
        buffers[i] = (frag_buffer){lower, lower + 1 + xorshift_next(&random) % 9,
                                   1 + xorshift_next(&random) % 60, 1};
        order[i] = MANY - 1 - i;
    }
    frag_sections sections;
    frag_error error = {0};
    assert_true(frag_sections_create(&sections, buffers, MANY, &error));
    frag_greedy_sort(&sections, "ZCl", order, MANY);
    for (uint32_t i = 1; i < MANY; i++) {
        uint32_t numbers[] = {order[i - 1], order[i]};
        uint64_t keys[2][4]; /* ascending */
        for (int side = 0; side < 2; side++) {
            const frag_buffer *at = &buffers[numbers[side]];
            keys[side][0] = UINT64_MAX - at->size;
            keys[side][1] =
                UINT64_MAX - (sections.upper[numbers[side]] - sections.lower[numbers[side]]);
            keys[side][2] = at->lower;
            keys[side][3] = numbers[side];
        }
        int key = 0;
        while (keys[0][key] == keys[1][key])
            key++;
        assert_true(keys[0][key] < keys[1][key]);
    }
    frag_sections_destroy(&sections);
    free(order);
    free(buffers);
}

static void a_release_makes_room_for_what_begins_at_its_time(void **state)
{
    (void)state;
    static const frag_buffer buffers[] = {{0, 5, 8, 1}, {5, 9, 8, 1}, {5, 6, 2, 1}};
    frag_sections sections;
    frag_error error = {0};
    assert_true(frag_sections_create(&sections, buffers, 3, &error));
    assert_int_equal(sections.load_bytes, 10);
    assert_int_equal(sections.step_bytes, 2);
    uint32_t *order = NULL;
    uint32_t count = 0;
    frag_component *components = frag_components_find(&sections, &order, &count);
    assert_int_equal(count, 2);
    assert_int_equal(components[0].load_bytes, 8);
    assert_int_equal(components[1].load_bytes, 10);
    assert_int_equal(components[1].count, 2);
    free(components);
    free(order);
    frag_sections_destroy(&sections);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gaps_are_those_that_a_slow_search_finds),
        cmocka_unit_test(the_skyline_is_filled_from_the_bottom_up),
        cmocka_unit_test(orders_follow_their_letters),
        cmocka_unit_test(orders_fall_by_keys_that_are_counted_slowly),
        cmocka_unit_test(many_buffers_are_ordered_as_few),
        cmocka_unit_test(a_release_makes_room_for_what_begins_at_its_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
