/* Tests of fix_search.c: which fixes are tried in which order, and which stay. */
#include "studies/plan/fix_search.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/text.h"
#include "studies/plan/fix_table.h"

enum { FIXES = 4 };

/* Needs what is left of 100 when each level of a fix saves its share. */
typedef struct world {
    int64_t saves[FIXES];
    uint64_t capacity;
    size_t calls_max; /* then it ends; 0: never */
    size_t calls;
    frag_text tried; /* levels of every call: "0100 " */
} world;

static bool judge(void *context, const frag_fix_choice *choice, frag_fix_score *score)
{
    world *of = context;
    int64_t needed = 100;
    if (of->calls_max > 0 && of->calls == of->calls_max)
        return false;
    of->calls++;
    for (size_t i = 0; i < FIXES; i++) {
        needed -= of->saves[i] * (int64_t)choice->levels[i];
        frag_text_add(&of->tried, "%u", (unsigned)choice->levels[i]);
    }
    frag_text_add(&of->tried, " ");
    *score = (frag_fix_score){(uint64_t)needed, (uint64_t)needed <= of->capacity};
    return true;
}

static bool find(world *of, const uint32_t *levels, frag_fix_answer *answer)
{
    frag_fix_search search = {.count = FIXES, .judge = judge, .context = of};
    for (size_t i = 0; i < FIXES; i++)
        search.levels_max[i] = levels[i];
    return frag_fix_find(&search, answer);
}

static void expect_levels(const frag_fix_choice *choice, const uint32_t *expected)
{
    for (size_t i = 0; i < FIXES; i++)
        assert_int_equal(choice->levels[i], expected[i]);
}

static void what_fits_is_left_as_it_is(void **state)
{
    (void)state;
    world of = {{10, 10, 10, 10}, .capacity = 100};
    frag_fix_answer answer;
    assert_true(find(&of, (uint32_t[]){1, 1, 1, 1}, &answer));
    assert_true(answer.fits);
    assert_int_equal(answer.step_count, 0);
    assert_string_equal(of.tried.bytes, "0000 ");
    frag_text_destroy(&of.tried);
}

static void fixes_are_added_in_order_until_it_fits_and_the_dearest_go_first(void **state)
{
    (void)state;
    world of = {{10, 10, 40, 50}, .capacity = 55};
    frag_fix_answer answer;
    assert_true(find(&of, (uint32_t[]){1, 1, 1, 1}, &answer));
    /* The third makes it fit and is needed; the second is taken out, the first is not. */
    assert_string_equal(of.tried.bytes, "0000 1000 1100 1110 1100 1010 0010 1000 0010 ");
    assert_true(answer.fits);
    assert_int_equal(answer.step_count, 3);
    assert_int_equal(answer.steps[2].fix, 2);
    expect_levels(&answer.choice, (uint32_t[]){1, 0, 1, 0});
    assert_int_equal(answer.score.needed_bytes, 50);
    frag_text_destroy(&of.tried);
}

static void the_least_level_that_fits_is_taken(void **state)
{
    (void)state;
    world of = {{0, 10, 0, 0}, .capacity = 75};
    frag_fix_answer answer;
    assert_true(find(&of, (uint32_t[]){0, 9, 1, 1}, &answer));
    expect_levels(&answer.choice, (uint32_t[]){0, 3, 0, 0});
    frag_text_destroy(&of.tried);
}

static void a_level_is_lowered_when_a_dearer_fix_allows_it(void **state)
{
    (void)state;
    world of = {{10, 0, 60, 0}, .capacity = 30};
    frag_fix_answer answer;
    assert_true(find(&of, (uint32_t[]){2, 0, 1, 0}, &answer));
    expect_levels(&answer.choice, (uint32_t[]){1, 0, 1, 0});
    frag_text_destroy(&of.tried);
}

static void what_does_harm_or_nothing_is_left_out(void **state)
{
    (void)state;
    world of = {{-10, 0, 30, 0}, .capacity = 70};
    frag_fix_answer answer;
    assert_true(find(&of, (uint32_t[]){1, 1, 1, 1}, &answer));
    assert_int_equal(answer.step_count, 1);
    expect_levels(&answer.choice, (uint32_t[]){0, 0, 1, 0});
    frag_text_destroy(&of.tried);
}

static void where_nothing_fits_all_that_helps_is_kept(void **state)
{
    (void)state;
    world of = {{10, 0, 30, 5}, .capacity = 1};
    frag_fix_answer answer;
    assert_true(find(&of, (uint32_t[]){1, 1, 1, 1}, &answer));
    assert_false(answer.fits);
    expect_levels(&answer.choice, (uint32_t[]){1, 0, 1, 1});
    assert_int_equal(answer.score.needed_bytes, 55);
    frag_text_destroy(&of.tried);
}

static void ends_where_the_judge_does(void **state)
{
    (void)state;
    for (size_t calls = 1; calls < 7; calls++) {
        world of = {{10, 10, 40, 50}, .capacity = 55, .calls_max = calls};
        frag_fix_answer answer;
        assert_false(find(&of, (uint32_t[]){1, 1, 1, 1}, &answer));
        assert_int_equal(of.calls, calls);
        frag_text_destroy(&of.tried);
    }
}

static void a_fix_is_found_by_its_name_and_another_name_is_refused(void **state)
{
    (void)state;
    frag_error error = {0};
    frag_text all = {0};
    for (size_t i = 0; i < frag_fix_count(); i++) {
        assert_ptr_equal(frag_fix_named(frag_fixes[i].name, &error), &frag_fixes[i]);
        frag_text_add(&all, "%s%s", i > 0 ? ", " : "'zzzzzzzz' is not a fix; expected one of ",
                      frag_fixes[i].name);
    }
    assert_null(frag_fix_named("zzzzzzzz", &error));
    assert_string_equal(error.sentence, all.bytes);
    error = (frag_error){0};
    assert_null(frag_fix_named("acumulate", &error));
    assert_string_equal(error.sentence, "'acumulate' is not a fix; did you mean accumulate?");
    frag_text_destroy(&all);
}

static void another_attention_is_written_as_the_one_that_is_set_is_undone(void **state)
{
    (void)state;
    static const struct {
        uint64_t attention;
        uint32_t levels;
        const char *line; /* of PyTorch, there alone */
    } cases[] = {
        {FRAG_ATTENTION_SDPA, 0, NULL},
        {FRAG_ATTENTION_EAGER, 1, "from_pretrained(..., attn_implementation=\"sdpa\")"},
        {FRAG_ATTENTION_MATH, 1, "no sdpa_kernel(SDPBackend.MATH)"},
    };
    static frag_fix_base base;
    const frag_fix *fix = frag_fix_named("sdpa", NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base.setting.workload.attention = cases[i].attention;
        assert_int_equal(fix->count_levels(&base), cases[i].levels);
        for (frag_fix_place place = 0; cases[i].levels > 0 && place < FRAG_FIX_PLACE_COUNT;
             place++) {
            frag_text text = {0};
            frag_fix_write_line(fix, &base, &base.setting, place, &text);
            assert_int_equal(text.length > 0, place == FRAG_FIX_TORCH);
            if (place == FRAG_FIX_TORCH)
                assert_string_equal(text.bytes, cases[i].line);
            frag_text_destroy(&text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fits_is_left_as_it_is),
        cmocka_unit_test(fixes_are_added_in_order_until_it_fits_and_the_dearest_go_first),
        cmocka_unit_test(the_least_level_that_fits_is_taken),
        cmocka_unit_test(a_level_is_lowered_when_a_dearer_fix_allows_it),
        cmocka_unit_test(what_does_harm_or_nothing_is_left_out),
        cmocka_unit_test(where_nothing_fits_all_that_helps_is_kept),
        cmocka_unit_test(ends_where_the_judge_does),
        cmocka_unit_test(a_fix_is_found_by_its_name_and_another_name_is_refused),
        cmocka_unit_test(another_attention_is_written_as_the_one_that_is_set_is_undone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
