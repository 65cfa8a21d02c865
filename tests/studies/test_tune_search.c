/* Tests of tune_search.c and tune.c: the search over settings, and what is tuned on which traces.
 */
#include "studies/tune/tune_search.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "studies/tune/tune.h"
#include "tests/support/text_recording.h"
#include "traces/builder.h"

enum { AXES = 4, VALUES = 6 };

static const uint32_t value_counts[AXES] = {VALUES, VALUES, VALUES, VALUES};

/* A bowl with its bottom at wanted; weights decide which axes matter. */
typedef struct bowl {
    uint8_t wanted[AXES];
    double weights[AXES];
    size_t calls;
    size_t calls_max; /* then it says to stop; 0: never */
    bool gives_up;    /* tells no size that is of no use */
    uint32_t fails;   /* points with fewer axes changed run out of memory */
    size_t given_up;
} bowl;

static double depth(const bowl *of, const uint8_t *choices)
{
    double size = 1;
    for (uint32_t axis = 0; axis < AXES; axis++) {
        double off = (double)choices[axis] - (double)of->wanted[axis];
        size += of->weights[axis] * off * off;
    }
    return size;
}

static bool has_failed(const bowl *of, const uint8_t *choices)
{
    uint32_t changed = 0;
    for (uint32_t axis = 0; axis < AXES; axis++)
        changed += choices[axis] != 0;
    return changed < of->fails;
}

static size_t score_bowl(void *context, frag_tune_point *points, size_t count)
{
    bowl *of = context;
    if (of->calls_max > 0 && of->calls++ == of->calls_max)
        count = count / 2;
    for (size_t i = 0; i < count; i++) {
        points[i].score = (frag_tune_score){.size = depth(of, points[i].choices)};
        if (has_failed(of, points[i].choices)) {
            points[i].score.failed = 1;
            points[i].score.size /= 1000;
        } else if (of->gives_up && points[i].score.size > points[i].size_of_use) {
            points[i].score = (frag_tune_score){.size = points[i].size_of_use, .is_given_up = true};
            of->given_up++;
        }
    }
    return count;
}

static frag_tune_search_setup setup_of(bowl *of, size_t tries_max)
{
    return (frag_tune_search_setup){.value_counts = value_counts,
                                    .axis_count = AXES,
                                    .tries_max = tries_max,
                                    .score = score_bowl,
                                    .context = of};
}

static void finds_the_bottom_axis_by_axis(void **state)
{
    (void)state;
    bowl of = {.wanted = {3, 0, 5, 1}, .weights = {1, 2, 3, 4}};
    /* The default, five other values of each axis, and once around again. */
    frag_tune_search_setup setup = setup_of(&of, 1 + 2 * AXES * (VALUES - 1));
    frag_tune_found found;
    frag_tune_search(&setup, &found);
    const frag_tune_point *best = &found.points[found.best];
    assert_memory_equal(best->choices, of.wanted, AXES);
    assert_int_equal(best->changed, 3);
    free(found.points);
}

static void of_equal_settings_the_one_with_fewest_options_wins(void **state)
{
    (void)state;
    bowl of = {.wanted = {0, 0, 2, 0}, .weights = {0, 0, 1, 0}};
    frag_tune_point start = {.choices = {4, 4, 2, 4}};
    frag_tune_search_setup setup = setup_of(&of, 60);
    frag_tune_found found;
    setup.starts = &start;
    setup.start_count = 1;
    frag_tune_search(&setup, &found);
    assert_int_equal(found.points[1].changed, 4);
    assert_int_equal(found.points[found.best].changed, 1);
    assert_int_equal(found.points[found.best].choices[2], 2);
    free(found.points);
}

static void what_runs_out_of_memory_is_never_better(void **state)
{
    (void)state;
    frag_tune_point fits = {.score = {.size = 9, .calls = 9}, .changed = 9};
    frag_tune_point fails = {.score = {.failed = 1}};
    frag_tune_point fails_late = {.score = {.failed = 1, .unreached = 0.1, .size = 1}};
    frag_tune_point fails_early = {.score = {.failed = 1, .unreached = 0.2}};
    frag_tune_point refused = {.score = {.is_refused = true}};
    assert_true(frag_tune_compare(&fits, &fails) < 0);
    assert_true(frag_tune_compare(&fails_late, &fails_early) < 0);
    assert_true(frag_tune_compare(&fails_early, &refused) < 0);
    frag_tune_point fewer_calls = fits;
    fewer_calls.score.calls--;
    assert_true(frag_tune_compare(&fewer_calls, &fits) < 0);
    assert_int_equal(frag_tune_compare(&fits, &fits), 0);
}

static void tries_nothing_twice_and_no_more_than_it_may(void **state)
{
    (void)state;
    bowl of = {.wanted = {5, 5, 5, 5}, .weights = {1, 1, 1, 1}};
    for (size_t tries = 1; tries < 200; tries += 33) {
        frag_tune_search_setup setup = setup_of(&of, tries);
        frag_tune_found found;
        frag_tune_search(&setup, &found);
        assert_int_equal(found.count, tries);
        for (size_t i = 0; i < found.count; i++)
            for (size_t j = 0; j < i; j++)
                assert_memory_not_equal(found.points[i].choices, found.points[j].choices,
                                        sizeof found.points[i].choices);
        free(found.points);
    }
}

static void ends_when_every_point_was_tried(void **state)
{
    (void)state;
    static const uint32_t small[2] = {2, 3};
    bowl of = {.weights = {1, 1}};
    frag_tune_search_setup setup = setup_of(&of, 1000);
    frag_tune_found found;
    setup.value_counts = small;
    setup.axis_count = 2;
    frag_tune_search(&setup, &found);
    assert_int_equal(found.count, 6);
    assert_int_equal(found.best, 0);
    free(found.points);
}

static void the_seed_decides_the_restarts_and_nothing_else_does(void **state)
{
    (void)state;
    bowl of = {.wanted = {1, 2, 3, 4}, .weights = {1, 1, 1, 1}};
    frag_tune_found found[3];
    for (size_t i = 0; i < 3; i++) {
        frag_tune_search_setup setup = setup_of(&of, 150);
        setup.seed = i == 2 ? 2 : 1;
        frag_tune_search(&setup, &found[i]);
        assert_int_equal(found[i].count, 150);
    }
    bool differs = false;
    for (size_t i = 0; i < 150; i++) {
        assert_memory_equal(found[0].points[i].choices, found[1].points[i].choices, AXES);
        differs =
            differs || memcmp(found[0].points[i].choices, found[2].points[i].choices, AXES) != 0;
    }
    assert_true(differs);
    for (size_t i = 0; i < 3; i++)
        free(found[i].points);
}

static void a_search_that_is_stopped_keeps_what_was_scored(void **state)
{
    (void)state;
    bowl of = {.wanted = {5, 5, 5, 5}, .weights = {1, 1, 1, 1}, .calls_max = 2};
    frag_tune_search_setup setup = setup_of(&of, 1000);
    frag_tune_found found;
    frag_tune_search(&setup, &found);
    /* The default, all other values of the first axis, and two of the second. */
    assert_int_equal(found.count, 1 + VALUES - 1 + 2);
    assert_int_equal(found.points[found.best].choices[0], 5);
    assert_int_equal(found.points[found.best].choices[1], 2);
    free(found.points);
}

static void the_front_is_the_best_with_so_many_options(void **state)
{
    (void)state;
    bowl of = {.wanted = {1, 1, 0, 0}, .weights = {1, 10, 1, 1}};
    frag_tune_search_setup setup = setup_of(&of, 200);
    frag_tune_found found;
    frag_tune_search(&setup, &found);
    const frag_tune_point *one = &found.points[frag_tune_best_within(&found, 1)];
    assert_int_equal(frag_tune_best_within(&found, 0), 0);
    assert_int_equal(one->choices[0], 0);
    assert_int_equal(one->choices[1], 1);
    assert_int_equal(frag_tune_best_within(&found, 4), found.best);
    free(found.points);
}

/* The search lets settings go that are of no use; which ones are best must not depend on that. */
static size_t check_given_up(uint32_t fails)
{
    size_t given_up = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        bowl of = {.wanted = {(uint8_t)(seed % 6), (uint8_t)(seed / 6), 3, 2},
                   .weights = {1, 7, (double)seed, 3},
                   .fails = fails,
                   .gives_up = true};
        const frag_tune_point starts[] = {{.choices = {5, 5, 5, 5}}, {.choices = {1, 1, 0, 0}}};
        frag_tune_search_setup setup = setup_of(&of, 150);
        frag_tune_found found;
        setup.seed = seed;
        setup.starts = starts;
        setup.start_count = 2;
        frag_tune_search(&setup, &found);
        for (uint32_t changed = fails; changed <= AXES; changed++) {
            const frag_tune_point *best = &found.points[frag_tune_best_within(&found, changed)];
            assert_false(best->score.is_given_up);
            for (size_t i = 0; i < found.count; i++)
                if (found.points[i].changed <= changed && found.points[i].changed >= fails)
                    assert_true(best->score.size <= depth(&of, found.points[i].choices));
        }
        given_up += of.given_up;
        free(found.points);
    }
    return given_up;
}

static void what_was_given_up_would_not_have_been_the_best(void **state)
{
    (void)state;
    for (uint32_t fails = 0; fails < AXES; fails++)
        assert_true(check_given_up(fails) > 500);
}

/* ---- policies and traces */

static void take_name(void *user, const frag_tuned *tuned)
{
    frag_text_add(user, "%s %zu; ", tuned->space->base->ops->name, tuned->subject_count);
}

static bool tune_both(frag_tune_subjects *subjects, frag_text *taken, frag_error *error)
{
    const frag_tune_options options = {.device = {.capacity_bytes = FRAG_UNLIMITED}, .runs = 3};
    frag_policy_spec specs[2];
    const frag_policy_list policies = {.specs = specs, .count = 2};
    assert_true(frag_policy_spec_parse("best-fit", &specs[0], error));
    assert_true(frag_policy_spec_parse("pytorch", &specs[1], error));
    frag_text_add(taken, "%s", "");
    bool ok = frag_tune(NULL, &options, &policies, subjects, take_name, taken, error);
    frag_policy_spec_destroy(&specs[0]);
    frag_policy_spec_destroy(&specs[1]);
    return ok;
}

static void each_policy_is_tuned_on_all_traces_that_it_can_replay(void **state)
{
    (void)state;
    enum { STREAMS = 1100, POOLS = 1000 };
    frag_recording one, many = {0};
    frag_tune_subjects subjects = {0};
    frag_error error = {0};
    frag_text taken = {0};
    frag_test_recording("alloc 0 512\nalloc 1 4096\nfree 0\n", &one);
    frag_tune_subjects_add(&subjects, &one, false);
    assert_true(tune_both(&subjects, &taken, &error));
    assert_string_equal(taken.bytes, "best-fit 1; pytorch 1; ");
    frag_text_clear(&taken);
    /* More lists of free blocks than PyTorch's policy takes. */
    frag_builder *builder = frag_builder_create(&many);
    for (uint32_t i = 0; i < STREAMS; i++) {
        frag_pool_id pool = {.high = 0, .low = i % POOLS};
        frag_builder_add(builder, &(frag_build_event){.op = FRAG_OP_ALLOC,
                                                      .slot = i,
                                                      .bytes = 512,
                                                      .stream = i,
                                                      .pool = frag_builder_pool(builder, pool)});
    }
    assert_true(frag_builder_finish(builder, "many", &error));
    frag_tune_subjects_add(&subjects, &many, true);
    assert_false(tune_both(&subjects, &taken, &error));
    assert_string_equal(taken.bytes, "best-fit 2; ");
    assert_string_equal(error.where, "many");
    frag_text_destroy(&taken);
    frag_tune_subjects_destroy(&subjects);
    frag_recording_destroy(&one);
    frag_recording_destroy(&many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_bottom_axis_by_axis),
        cmocka_unit_test(of_equal_settings_the_one_with_fewest_options_wins),
        cmocka_unit_test(what_runs_out_of_memory_is_never_better),
        cmocka_unit_test(tries_nothing_twice_and_no_more_than_it_may),
        cmocka_unit_test(ends_when_every_point_was_tried),
        cmocka_unit_test(the_seed_decides_the_restarts_and_nothing_else_does),
        cmocka_unit_test(a_search_that_is_stopped_keeps_what_was_scored),
        cmocka_unit_test(what_was_given_up_would_not_have_been_the_best),
        cmocka_unit_test(the_front_is_the_best_with_so_many_options),
        cmocka_unit_test(each_policy_is_tuned_on_all_traces_that_it_can_replay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
