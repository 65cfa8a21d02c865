/* Tests of plot_names.c: placing labels beside points. */
#include "plots/parts/plot_names.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"

#define TAGS 30u

typedef struct box {
    double left, right, low, high;
} box;

static box box_of(const frag_tag *tag)
{
    double left = tag->side > 0   ? tag->name_x
                  : tag->side < 0 ? tag->name_x - tag->width
                                  : tag->name_x - tag->width / 2;
    return (box){left, left + tag->width, tag->name_y - 6.5, tag->name_y + 6.5};
}

static bool overlaps(const box *a, const box *b)
{
    return a->left < b->right && b->left < a->right && a->low < b->high && b->low < a->high;
}

static box mark_of(const frag_tag *tag)
{
    return (box){tag->x - tag->radius, tag->x + tag->radius, tag->y - tag->radius,
                 tag->y + tag->radius};
}

/* Points that are nearer to one another than their names are wide. */
static void crowd(frag_tag *tags, size_t count, double step)
{
    for (size_t i = 0; i < count; i++)
        tags[i] = (frag_tag){.x = 300 + step * (double)(i % 5),
                             .y = 150 + step * (double)(i / 5),
                             .radius = 4,
                             .width = 25 + 7 * (double)(i % 9),
                             .is_important = i % 7 == 0};
    frag_plot_place_names(tags, count, &(frag_tag_field){.width = 700, .height = 400});
}

static void names_of_a_crowd_cover_no_other_and_no_point(void **state)
{
    (void)state;
    frag_tag tags[TAGS] = {{0}};
    crowd(tags, TAGS, 16);
    for (size_t i = 0; i < TAGS; i++) {
        box a = box_of(&tags[i]);
        assert_false(tags[i].is_left_out);
        assert_true(a.left >= 0 && a.right <= 700 && a.low >= 0 && a.high <= 400);
        for (size_t j = 0; j < TAGS; j++) {
            box b = box_of(&tags[j]);
            box mark = mark_of(&tags[j]);
            assert_false(i != j && overlaps(&a, &b));
            assert_false(overlaps(&a, &mark));
        }
    }
}

static void a_line_leads_from_a_point_to_a_name_that_is_apart(void **state)
{
    (void)state;
    frag_tag tags[TAGS] = {{0}};
    crowd(tags, TAGS, 16);
    size_t apart = 0;
    for (size_t i = 0; i < TAGS; i++) {
        const frag_tag *tag = &tags[i];
        bool is_near = hypot(tag->name_x - tag->x, tag->name_y - tag->y) <= 14;
        assert_true(tag->is_apart != is_near);
        apart += tag->is_apart;
        frag_tag_line line = frag_tag_leader(tag);
        double gap = tag->side > 0 ? tag->name_x - line.to_x : line.to_x - tag->name_x;
        assert_true(!tag->is_apart || (gap > 2 && gap < 4));
    }
    assert_true(apart > 0);
}

static void what_finds_no_room_is_left_out_unless_it_is_important(void **state)
{
    (void)state;
    enum { COUNT = 90 };
    frag_tag tags[COUNT] = {{0}};
    crowd(tags, COUNT, 6);
    size_t left_out = 0;
    for (size_t i = 0; i < COUNT; i++) {
        assert_false(tags[i].is_left_out && tags[i].is_important);
        left_out += tags[i].is_left_out;
        for (size_t j = 0; j < i; j++) {
            box a = box_of(&tags[i]);
            box b = box_of(&tags[j]);
            bool is_seen = !tags[i].is_left_out && !tags[j].is_left_out;
            bool may_overlap = tags[i].is_important && tags[j].is_important;
            assert_false(is_seen && !may_overlap && overlaps(&a, &b));
        }
    }
    assert_true(left_out > 0 && left_out < COUNT - 15);
}

static void a_text_is_as_wide_as_its_letters(void **state)
{
    (void)state;
    assert_true(frag_plot_text_width("illicit") < frag_plot_text_width("memory"));
    assert_true(frag_plot_text_width("mmmm") > 4 * 10);
    assert_true(frag_plot_text_width("paddle-auto-growth") > 103);
    assert_true(fabs(frag_plot_text_width("\xC3\xA9") - frag_plot_text_width("A")) < 0.01);
    assert_true(fabs(frag_plot_text_width("")) < 0.01);
}

static void a_text_that_is_too_wide_keeps_its_begin_and_its_end(void **state)
{
    (void)state;
    static const char text[] =
        "pytorch:max_split_size_mb=32,\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9,threshold:0.8";
    double whole = frag_plot_text_width(text);
    char *shown = frag_plot_text_within(text, whole);
    assert_string_equal(shown, text);
    frag_free(shown);
    for (double width = 0; width < whole; width += 1) {
        shown = frag_plot_text_within(text, width);
        char *gap = strstr(shown, "\xE2\x80\xA6");
        assert_non_null(gap);
        /* No letter is cut, and none is left out that there is room for. */
        assert_true(((unsigned char)gap[3] & 0xC0) != 0x80);
        assert_memory_equal(shown, text, (size_t)(gap - shown));
        assert_string_equal(gap + 3, text + strlen(text) - strlen(gap + 3));
        if (width > 20)
            assert_true(frag_plot_text_width(shown) <= width &&
                        frag_plot_text_width(shown) > width - 12);
        frag_free(shown);
    }
}

static void a_name_alone_stands_to_the_right(void **state)
{
    (void)state;
    frag_tag tag = {.x = 100, .y = 100, .radius = 4, .width = 30};
    frag_plot_place_names(&tag, 1, &(frag_tag_field){.width = 700, .height = 400});
    assert_int_equal(tag.side, 1);
    assert_true(tag.name_x > 100 && tag.name_x < 115);
    assert_false(tag.is_apart);
}

static void a_name_at_the_edge_stays_inside(void **state)
{
    (void)state;
    frag_tag tag = {.x = 690, .y = 398, .radius = 4, .width = 72};
    frag_plot_place_names(&tag, 1, &(frag_tag_field){.width = 700, .height = 400});
    box a = box_of(&tag);
    assert_true(a.right <= 700 && a.high <= 400);
}

static void what_is_important_chooses_first(void **state)
{
    (void)state;
    frag_tag tags[2] = {{.x = 100, .y = 100, .radius = 4, .width = 30},
                        {.x = 100, .y = 100, .radius = 4, .width = 30, .is_important = true}};
    frag_plot_place_names(tags, 2, &(frag_tag_field){.width = 700, .height = 400});
    assert_int_equal(tags[1].side, 1);
    assert_true(tags[1].name_x < 115);
    assert_true(tags[0].side != 1 || tags[0].name_y < 90 || tags[0].name_y > 110);
}

static void a_line_is_rather_not_covered(void **state)
{
    (void)state;
    frag_tag_line line = {100, 100, 400, 100};
    frag_tag tag = {.x = 100, .y = 100, .radius = 4, .width = 30};
    frag_plot_place_names(&tag, 1, &(frag_tag_field){700, 400, &line, 1});
    box a = box_of(&tag);
    assert_true(a.right <= 100 || a.low > 100 || a.high < 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_a_crowd_cover_no_other_and_no_point),
        cmocka_unit_test(a_line_leads_from_a_point_to_a_name_that_is_apart),
        cmocka_unit_test(what_finds_no_room_is_left_out_unless_it_is_important),
        cmocka_unit_test(a_text_is_as_wide_as_its_letters),
        cmocka_unit_test(a_text_that_is_too_wide_keeps_its_begin_and_its_end),
        cmocka_unit_test(a_name_alone_stands_to_the_right),
        cmocka_unit_test(a_name_at_the_edge_stays_inside),
        cmocka_unit_test(what_is_important_chooses_first),
        cmocka_unit_test(a_line_is_rather_not_covered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
