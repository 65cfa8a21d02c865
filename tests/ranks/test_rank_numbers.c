/* Tests of rank_numbers.c: which rank a recording is of, and lists of ranks; and whether steps of
 * two ranks are the same ones. */
#include "studies/ranks/rank_numbers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "studies/ranks/world.h"

static void expect_numbers(const char *const *paths, const uint32_t *expected, size_t count)
{
    uint32_t numbers[8];
    frag_rank_numbers(paths, count, numbers);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(numbers[i], expected[i]);
}

static void the_number_behind_the_word_counts(void **state)
{
    (void)state;
    expect_numbers((const char *const[]){"a/rank12.pickle", "a/Rank_3.pickle", "a/x-rank=0.fgt"},
                   (const uint32_t[]){12, 3, 0}, 3);
    expect_numbers((const char *const[]){"rank_1/step7/s.pickle", "rank_0/step7/s.pickle"},
                   (const uint32_t[]){1, 0}, 2);
    expect_numbers((const char *const[]){"frank9/rank2.pickle", "frank9/rank1.pickle"},
                   (const uint32_t[]){2, 1}, 2);
}

static void what_has_no_word_among_those_that_have_is_rank_0(void **state)
{
    (void)state;
    expect_numbers((const char *const[]){"run.pickle", "run.pickle-rank1", "run.pickle-rank2"},
                   (const uint32_t[]){0, 1, 2}, 3);
    expect_numbers((const char *const[]){"rank4/run.pickle", "rank4/run.pickle-rank1"},
                   (const uint32_t[]){0, 1}, 2);
    expect_numbers((const char *const[]){"rank4.pickle", "rank4.pickle.gz"},
                   (const uint32_t[]){4, 4}, 2);
    /* There is a rank 0: by order. */
    expect_numbers((const char *const[]){"x.pickle", "run-rank0.pickle", "run-rank2.pickle"},
                   (const uint32_t[]){0, 1, 2}, 3);
    expect_numbers((const char *const[]){"x.pickle", "y.pickle", "run-rank7.pickle"},
                   (const uint32_t[]){0, 1, 2}, 3);
}

static void else_the_digits_in_which_names_differ(void **state)
{
    (void)state;
    expect_numbers((const char *const[]){"s10.pickle", "s9.pickle", "s100.pickle"},
                   (const uint32_t[]){10, 9, 100}, 3);
    expect_numbers((const char *const[]){"node2.8", "node2.9"}, (const uint32_t[]){8, 9}, 2);
    expect_numbers((const char *const[]){"s1.pickle", "s2.fgt"}, (const uint32_t[]){0, 1}, 2);
    expect_numbers((const char *const[]){"a.pickle", "a.pickle"}, (const uint32_t[]){0, 1}, 2);
    expect_numbers((const char *const[]){"s1", "s4294967295"}, (const uint32_t[]){0, 1}, 2);
    expect_numbers((const char *const[]){"s1", "s4294967294"}, (const uint32_t[]){1, 4294967294u},
                   2);
    expect_numbers((const char *const[]){"only7.pickle"}, (const uint32_t[]){0}, 1);
}

static void reads_lists(void **state)
{
    (void)state;
    frag_rank_list list;
    frag_error error = {0};
    assert_true(frag_rank_list_parse("0-3,8", &list, &error));
    for (uint32_t i = 0; i < 10; i++)
        assert_int_equal(frag_rank_list_has(&list, i), i <= 3 || i == 8);
    frag_rank_list_destroy(&list);
    static const char *const wrong[] = {"",      "a",  "1,",  ",1",          "1-",           "3-1",
                                        "1-2-3", "-1", "1 2", "99999999999", "1-99999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        error = (frag_error){0};
        assert_false(frag_rank_list_parse(wrong[i], &list, &error));
        assert_non_null(strstr(error.sentence, "is not a list of ranks; expected 0-3,8"));
        frag_rank_list_destroy(&list);
    }
}

/* Up to one and a tenth more, unless marks of one name count them. */
static void steps_of_ranks_are_compared_by_their_number(void **state)
{
    (void)state;
    static const struct {
        uint32_t fewer, more;
        bool is_same;
    } cases[] = {{0, 1, false},   {1, 2, true},   {1, 3, false},   {9, 10, true},
                 {9, 11, false},  {10, 12, true}, {10, 13, false}, {19, 21, true},
                 {19, 22, false}, {20, 23, true}, {20, 24, false}, {7, 7, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char names[2][8] = {"step", "step"};
        frag_world_rank one = {.step_count = cases[i].fewer, .steps_name = names[0]};
        frag_world_rank other = {.step_count = cases[i].more, .steps_name = names[1]};
        one.steps_by = other.steps_by = FRAG_STEPS_BY_REQUESTS;
        assert_int_equal(frag_world_steps_compare(&one, &other), cases[i].is_same);
        assert_int_equal(frag_world_steps_compare(&other, &one), cases[i].is_same);
        one.steps_by = FRAG_STEPS_BY_MARKS;
        assert_int_equal(frag_world_steps_compare(&one, &other), cases[i].is_same);
        other.steps_by = FRAG_STEPS_BY_MARKS;
        assert_int_equal(frag_world_steps_compare(&one, &other), cases[i].fewer > 0);
        names[1][0] = 'S';
        assert_int_equal(frag_world_steps_compare(&one, &other), cases[i].is_same);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_number_behind_the_word_counts),
        cmocka_unit_test(what_has_no_word_among_those_that_have_is_rank_0),
        cmocka_unit_test(else_the_digits_in_which_names_differ),
        cmocka_unit_test(reads_lists),
        cmocka_unit_test(steps_of_ranks_are_compared_by_their_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
