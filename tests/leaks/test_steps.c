/* Tests of steps.c: which marks, requests or parts of a trace are its steps. */
#include "studies/leaks/steps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/text_recording.h"

/* "" where no steps are found, else how, the name, the number of steps and where they begin. */
static char *steps_of(const frag_text *text, const char *mark)
{
    static char told[512];
    frag_recording recording;
    frag_use_groups groups;
    frag_steps steps;
    frag_error error = {0};
    frag_text out = {0};
    frag_test_recording(text->bytes, &recording);
    frag_use_groups_create(&recording, &recording.traces[0], FRAG_USES_BY_SIZE, &groups);
    frag_text_add(&out, "%s", "");
    if (frag_steps_find(&recording, &recording.traces[0], &groups, mark, &steps, &error)) {
        frag_text_add(&out, "%d %s %zu:", (int)steps.by, steps.name != NULL ? steps.name : "-",
                      steps.count);
        for (size_t i = 0; i <= steps.count; i++)
            frag_text_add(&out, " %llu", (unsigned long long)steps.begin[i]);
        frag_steps_destroy(&steps);
    }
    snprintf(told, sizeof told, "%s", out.bytes);
    frag_use_groups_destroy(&groups);
    frag_recording_destroy(&recording);
    frag_text_destroy(&out);
    return told;
}

static void add_marks(frag_text *text, const char *form, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        frag_text_add(text, "mark \"");
        frag_text_add(text, form, i);
        frag_text_add(text, "\"\n");
    }
}

static void expect_marks(const char *one, unsigned ones, const char *other, unsigned others,
                         const char *mark, const char *expected)
{
    frag_text text = {0};
    frag_text_add(&text, "alloc 0 512\n");
    add_marks(&text, one, ones);
    add_marks(&text, other, others);
    assert_string_equal(steps_of(&text, mark), expected);
    frag_text_destroy(&text);
}

static void marks_of_one_name_but_for_numbers_are_steps(void **state)
{
    (void)state;
    expect_marks("it %u", 4, "", 0, NULL, "");
    expect_marks("it %u", 5, "", 0, NULL, "0 it # 4: 1 2 3 4 5");
    expect_marks("%u of 900", 11, "", 0, NULL, "0 # of # 10: 1 2 3 4 5 6 7 8 9 10 11");
    /* The most frequent, the first of equals, and steps before all. */
    expect_marks("a", 5, "b", 6, NULL, "0 b 5: 6 7 8 9 10 11");
    expect_marks("a", 5, "b", 5, NULL, "0 a 4: 1 2 3 4 5");
    expect_marks("a", 9, "my step %u", 5, NULL, "0 my step # 4: 10 11 12 13 14");
    expect_marks("Step", 5, "b", 9, NULL, "0 Step 4: 1 2 3 4 5");
    expect_marks("a", 9, "step", 4, NULL, "0 a 8: 1 2 3 4 5 6 7 8 9");
    /* Those that are named. */
    expect_marks("a", 5, "step", 6, "a", "0 a 4: 1 2 3 4 5");
    expect_marks("it %u", 5, "step", 6, "it 70", "0 it # 4: 1 2 3 4 5");
    expect_marks("a", 4, "step", 6, "a", "");
    expect_marks("a", 5, "step", 6, "b", "");
}

/* Steps with ends of their marks; between two of them comes what is told. */
static void expect_ends(const char *between, const char *behind, const char *expected)
{
    frag_text text = {0};
    for (unsigned i = 0; i < 5; i++)
        frag_text_add(&text, "mark \"step %u\" begin\nalloc %u 512\nmark \"step %u\" end\n%s", i, i,
                      i, i < 4 ? between : behind);
    assert_string_equal(steps_of(&text, NULL), expected);
    frag_text_destroy(&text);
}

static void the_last_step_is_whole_where_marks_hold_whole_steps(void **state)
{
    (void)state;
    expect_ends("", "", "0 step # 5: 0 3 6 9 12 15");
    expect_ends("sync\n", "", "0 step # 5: 0 4 8 12 16 19");
    expect_ends("", "alloc 9 1024\nfree 9\n", "0 step # 5: 0 3 6 9 12 15");
    /* They may hold but a part of each. */
    expect_ends("alloc 9 1024\nfree 9\n", "", "0 step # 4: 0 5 10 15 20");
    expect_ends("", "mark \"step 5\" begin\n", "0 step # 5: 0 3 6 9 12 15");
    expect_ends("mark \"step 0\" end\n", "", "0 step # 4: 0 4 8 12 16");
}

static void a_step_is_told_by_its_mark_where_numbers_differ(void **state)
{
    (void)state;
    const char *marks[] = {"step 0 of 2", "step 2 of 9", "step", "step 4 of 5"};
    frag_steps steps = {.marks = marks, .count = 3};
    assert_string_equal(frag_steps_mark(&steps, 0), "step 0 of 2");
    assert_null(frag_steps_mark(&steps, 1));
    assert_null(frag_steps_mark(&steps, 2));
    assert_null(frag_steps_mark(&steps, 3));
    assert_null(frag_steps_mark(&steps, 4));
    steps.marks = NULL;
    assert_null(frag_steps_mark(&steps, 0));
}

/* A request with a size of its own begins each of the steps, in which others live for a while. */
static void expect_repeats(unsigned steps, unsigned inner, unsigned behind, const char *expected)
{
    frag_text text = {0};
    for (unsigned i = 0; i < steps; i++) {
        frag_text_add(&text, "alloc 0 512\nfree 0\n");
        for (unsigned j = 0; j < inner; j++)
            frag_text_add(&text, "alloc %u 4096\n", 1 + j);
        for (unsigned j = 0; j < inner; j++)
            frag_text_add(&text, "free %u\n", 1 + j);
    }
    for (unsigned i = 0; i < behind; i++)
        frag_text_add(&text, "sync\n");
    assert_string_equal(steps_of(&text, NULL), expected);
    frag_text_destroy(&text);
}

static void a_request_that_comes_again_begins_steps(void **state)
{
    (void)state;
    expect_repeats(5, 3, 0, "");
    expect_repeats(6, 3, 0, "1 blocks of 512 B (512 bytes) 5: 0 8 16 24 32 40");
    /* What comes behind may take three steps, or an eighth of the whole. */
    expect_repeats(6, 3, 16, "1 blocks of 512 B (512 bytes) 5: 0 8 16 24 32 40");
    expect_repeats(6, 3, 17, "");
    frag_text many = {0};
    frag_text_add(&many, "1 blocks of 512 B (512 bytes) 29:");
    for (unsigned i = 0; i < 30; i++)
        frag_text_add(&many, " %u", 8 * i);
    expect_repeats(30, 3, 25, many.bytes);
    /* One more, and the trace is cut into equal parts. */
    expect_repeats(30, 3, 26, "2 - 12: 0 22 44 66 88 110 133 155 177 199 221 243 266");
    frag_text_destroy(&many);
    /* Half of the requests may be of one size; of sizes that come as often, the first by name. */
    expect_repeats(6, 1, 0, "1 blocks of 4.00 KiB (4,096 bytes) 5: 2 6 10 14 18 22");
}

/* The requests that come again find 1536 bytes live, of nothing up to these and their own; what is
 * live else has other sizes each time. */
static void expect_at_height(unsigned bytes, const char *expected)
{
    frag_text text = {0};
    for (unsigned i = 0; i < 6; i++)
        frag_text_add(&text, "alloc 1 %u\nalloc 2 %u\nalloc 0 %u\nfree 0\nfree 1\nfree 2\n",
                      16 * (i + 1), 1536 - 16 * (i + 1), bytes);
    assert_string_equal(steps_of(&text, NULL), expected);
    frag_text_destroy(&text);
}

static void steps_begin_where_little_is_live(void **state)
{
    (void)state;
    expect_at_height(3584, ""); /* at 0.3 of the way */
    expect_at_height(3585, "1 blocks of 3.50 KiB (3,585 bytes) 5: 2 8 14 20 26 32");
}

/* Ever other sizes, each freed: nothing comes again often. Before it blocks that stay. */
static void expect_parts(unsigned kept, unsigned requests, const char *expected)
{
    frag_text text = {0};
    for (unsigned i = 0; i < kept; i++)
        frag_text_add(&text, "alloc %u 512 initial\n", 1 + i);
    for (unsigned i = 0; i < requests; i++)
        frag_text_add(&text, "alloc 0 %u\nfree 0\n", 512 * (1 + i % 40));
    assert_string_equal(steps_of(&text, NULL), expected);
    frag_text_destroy(&text);
}

static void parts_need_ten_requests_each(void **state)
{
    (void)state;
    expect_parts(0, 119, "");
    expect_parts(0, 120, "2 - 12: 0 20 40 60 80 100 120 140 160 180 200 220 240");
}

static void parts_are_of_what_was_recorded(void **state)
{
    (void)state;
    expect_parts(100, 120, "2 - 12: 100 120 140 160 180 200 220 240 260 280 300 320 340");
}

static void parts_of_other_requests_are_no_steps(void **state)
{
    (void)state;
    frag_text text = {0};
    for (unsigned i = 0; i < 120; i++) /* one size alone is in each third */
        frag_text_add(&text, "alloc 0 %u\nfree 0\n", 512 * (i % 40 == 0 ? 2 : 3 + i));
    assert_string_equal(steps_of(&text, NULL), "");
    frag_text_destroy(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_of_one_name_but_for_numbers_are_steps),
        cmocka_unit_test(the_last_step_is_whole_where_marks_hold_whole_steps),
        cmocka_unit_test(a_step_is_told_by_its_mark_where_numbers_differ),
        cmocka_unit_test(a_request_that_comes_again_begins_steps),
        cmocka_unit_test(steps_begin_where_little_is_live),
        cmocka_unit_test(parts_need_ten_requests_each),
        cmocka_unit_test(parts_are_of_what_was_recorded),
        cmocka_unit_test(parts_of_other_requests_are_no_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
