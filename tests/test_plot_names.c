#include "sim/cli/plot_names.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define TAGS 30u

typedef struct box {
    double left, right, low, high;
} box;

/* A little less than what a name takes. */
static box box_of(const frag_tag *tag)
{
    double width = 6.0 * (double)tag->characters;
    double left = tag->side > 0   ? tag->name_x
                  : tag->side < 0 ? tag->name_x - width
                                  : tag->name_x - width / 2;
    return (box){left, left + width, tag->name_y - 6, tag->name_y + 6};
}

static bool overlaps(const box *a, const box *b)
{
    return a->left < b->right && b->left < a->right && a->low < b->high && b->low < a->high;
}

static void names_of_a_crowd_stand_apart(void **state)
{
    (void)state;
    frag_tag tags[TAGS] = {{0}};
    for (size_t i = 0; i < TAGS; i++)
        tags[i] = (frag_tag){.x = 300 + 9.0 * (double)(i % 5),
                             .y = 200 + 7.0 * (double)(i / 5),
                             .characters = 4 + i % 9};
    frag_plot_place_names(tags, TAGS, &(frag_tag_field){.width = 700, .height = 400});
    for (size_t i = 0; i < TAGS; i++) {
        box a = box_of(&tags[i]);
        assert_true(a.left >= 0 && a.right <= 700 && a.low >= 0 && a.high <= 400);
        bool is_near = hypot(tags[i].name_x - tags[i].x, tags[i].name_y - tags[i].y) <= 20;
        assert_int_equal(tags[i].is_apart, !is_near);
        for (size_t j = 0; j < i; j++) {
            box b = box_of(&tags[j]);
            assert_false(overlaps(&a, &b));
        }
    }
}

static void a_name_alone_stands_to_the_right(void **state)
{
    (void)state;
    frag_tag tag = {.x = 100, .y = 100, .characters = 5};
    frag_plot_place_names(&tag, 1, &(frag_tag_field){.width = 700, .height = 400});
    assert_int_equal(tag.side, 1);
    assert_true(tag.name_x > 100 && tag.name_x < 115);
    assert_false(tag.is_apart);
}

static void a_name_at_the_edge_stays_inside(void **state)
{
    (void)state;
    frag_tag tag = {.x = 690, .y = 398, .characters = 12};
    frag_plot_place_names(&tag, 1, &(frag_tag_field){.width = 700, .height = 400});
    box a = box_of(&tag);
    assert_true(a.right <= 700 && a.high <= 400);
}

static void what_is_important_chooses_first(void **state)
{
    (void)state;
    frag_tag tags[2] = {{.x = 100, .y = 100, .characters = 5},
                        {.x = 100, .y = 100, .characters = 5, .is_important = true}};
    frag_plot_place_names(tags, 2, &(frag_tag_field){.width = 700, .height = 400});
    assert_int_equal(tags[1].side, 1);
    assert_true(tags[1].name_x < 115);
    assert_true(tags[0].side != 1 || tags[0].name_y < 90 || tags[0].name_y > 110);
}

static void a_line_is_rather_not_covered(void **state)
{
    (void)state;
    frag_tag_line line = {100, 100, 400, 100};
    frag_tag tag = {.x = 100, .y = 100, .characters = 5};
    frag_plot_place_names(&tag, 1, &(frag_tag_field){700, 400, &line, 1});
    box a = box_of(&tag);
    assert_true(a.right <= 100 || a.low > 100 || a.high < 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_a_crowd_stand_apart),
        cmocka_unit_test(a_name_alone_stands_to_the_right),
        cmocka_unit_test(a_name_at_the_edge_stays_inside),
        cmocka_unit_test(what_is_important_chooses_first),
        cmocka_unit_test(a_line_is_rather_not_covered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
