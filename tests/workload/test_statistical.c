/* Tests of statistical workloads: what distributions, phases and adversaries are known for. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "tests/support/adversary.h"
#include "tests/support/text_recording.h"
#include "workload/statistical/draw.h"
#include "workload/statistical/likeness.h"
#include "workload/statistical/phases.h"

enum { DRAWS = 200000 };

/* ---- distributions */
static void draw_sorted(const frag_draw *draw, uint64_t *values)
{
    uint64_t random = 1;
    for (uint32_t i = 0; i < DRAWS; i++)
        values[i] = frag_draw_next(draw, (uint64_t)1 << 40, &random);
    qsort(values, DRAWS, sizeof *values, frag_compare_numbers);
}

static double mean_of(const uint64_t *values)
{
    double sum = 0;
    for (uint32_t i = 0; i < DRAWS; i++)
        sum += (double)values[i];
    return sum / DRAWS;
}

static void expect_near(double found, double expected, double share)
{
    if (fabs(found - expected) > fabs(expected) * share)
        fail_msg("%g; expected %g within %g", found, expected, share);
}

static void distributions_have_their_means_and_quantiles(void **state)
{
    (void)state;
    uint64_t *values = frag_alloc(DRAWS, sizeof *values);
    draw_sorted(&(frag_draw){FRAG_DRAW_UNIFORM, 2, {100, 300}}, values);
    expect_near(mean_of(values), 200, 0.005);
    assert_int_equal(values[0], 100);
    assert_int_equal(values[DRAWS - 1], 300);

    draw_sorted(&(frag_draw){FRAG_DRAW_EXPONENTIAL, 1, {1000000}}, values);
    expect_near(mean_of(values), 1e6, 0.01);
    expect_near((double)values[DRAWS / 2], 1e6 * log(2), 0.01);
    expect_near((double)values[DRAWS * 99 / 100], 1e6 * log(100), 0.02);

    /* exp(mean + deviation^2 / 2) */
    draw_sorted(&(frag_draw){FRAG_DRAW_LOGNORMAL, 2, {1000000, 4 * FRAG_DRAW_FACTOR}}, values);
    expect_near(mean_of(values), 1e6 * exp(log(4) * log(4) / 2), 0.03);
    expect_near((double)values[DRAWS / 2], 1e6, 0.02);
    expect_near((double)values[(uint32_t)(DRAWS * 0.8413447)], 4e6, 0.02); /* one deviation */
    expect_near((double)values[(uint32_t)(DRAWS * 0.1586553)], 25e4, 0.02);
    expect_near((double)values[(uint32_t)(DRAWS * 0.9986501)], 64e6, 0.1); /* three */

    draw_sorted(&(frag_draw){FRAG_DRAW_DOUBLING, 2, {3, 50}}, values);
    uint32_t counts[64] = {0};
    for (uint32_t i = 0; i < DRAWS; i++)
        counts[values[i]]++;
    expect_near(counts[3], DRAWS / 2.0, 0.02);
    expect_near(counts[6], DRAWS / 4.0, 0.02);
    expect_near(counts[12], DRAWS / 8.0, 0.02);
    assert_int_equal(counts[3] + counts[6] + counts[12] + counts[24] + counts[48], DRAWS);

    draw_sorted(&(frag_draw){FRAG_DRAW_LIST, 4, {5, 5, 5, 9}}, values);
    expect_near(mean_of(values), 6, 0.01);
    frag_free(values);
}

/* A change here is one of every trace that is drawn. */
static void a_seed_gives_the_same_numbers_everywhere(void **state)
{
    (void)state;
    uint64_t random = 7;
    const frag_draw exponential = {FRAG_DRAW_EXPONENTIAL, 1, {1000000}};
    const frag_draw lognormal = {FRAG_DRAW_LOGNORMAL, 2, {1000000, 3 * FRAG_DRAW_FACTOR}};
    uint64_t sum = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        sum = 31 * sum + frag_draw_next(&exponential, UINT32_MAX, &random);
        sum += frag_draw_next(&lognormal, UINT32_MAX, &random);
    }
    assert_int_equal(sum, UINT64_C(0xe090e2b6864828f5));
}

static void the_largest_draw_is_kept_within_its_limit(void **state)
{
    (void)state;
    uint64_t random = 1;
    const frag_draw wide = {FRAG_DRAW_LOGNORMAL, 2, {(uint64_t)1 << 40, 1000 * FRAG_DRAW_FACTOR}};
    const frag_draw narrow = {FRAG_DRAW_LOGNORMAL, 2, {1, 1000 * FRAG_DRAW_FACTOR}};
    for (uint32_t i = 0; i < DRAWS; i++) {
        assert_in_range(frag_draw_next(&wide, (uint64_t)1 << 40, &random), 0, (uint64_t)1 << 40);
        assert_in_range(frag_draw_next(&narrow, 1000, &random), 0, 1000);
    }
}

static void a_span_goes_from_its_first_to_its_last_value(void **state)
{
    (void)state;
    const frag_draw falling = {FRAG_DRAW_UNIFORM, 2, {(uint64_t)1 << 40, 1}};
    assert_int_equal(frag_draw_at(&falling, 0, 10000000), (uint64_t)1 << 40);
    assert_int_equal(frag_draw_at(&falling, 9999999, 10000000), 1);
    assert_int_equal(frag_draw_at(&(frag_draw){FRAG_DRAW_UNIFORM, 2, {10, 20}}, 2, 5), 15);
    assert_int_equal(frag_draw_at(&(frag_draw){FRAG_DRAW_LIST, 1, {10}}, 0, 1), 10);
}

/* ---- traces */
static void generate(const char *yaml, frag_recording *recording)
{
    frag_error error = {0};
    frag_workload workload;
    frag_statistical described = {0};
    frag_workload_init(&workload);
    if (!frag_workload_parse(yaml, strlen(yaml), &workload, &described, &error) ||
        !frag_statistical_generate(&described, "x", recording, &error))
        fail_msg("%s", error.sentence);
    frag_statistical_destroy(&described);
}

/* Requests are numbered from 0; of a released one the number is given by its slot. */
typedef struct walk {
    frag_recording recording;
    const frag_trace *trace;
    uint64_t *number_of; /* by slot */
    uint64_t *bytes_of;  /* by number */
    uint64_t *end_of;    /* by number: requests before its release; FRAG_UNLIMITED: none */
    uint64_t count;
} walk;

static void walk_over(const char *yaml, walk *of)
{
    *of = (walk){.count = 0};
    generate(yaml, &of->recording);
    of->trace = &of->recording.traces[0];
    size_t events = (size_t)of->trace->event_count;
    of->number_of = frag_alloc(events, sizeof *of->number_of);
    of->bytes_of = frag_alloc(events, sizeof *of->bytes_of);
    of->end_of = frag_alloc(events, sizeof *of->end_of);
    for (size_t i = 0; i < events; i++) {
        const frag_event *event = &of->trace->events[i];
        if (event->op == FRAG_OP_ALLOC) {
            of->number_of[event->slot] = of->count;
            of->bytes_of[of->count] = event->bytes;
            of->end_of[of->count++] = FRAG_UNLIMITED;
        } else if (event->op == FRAG_OP_FREE)
            of->end_of[of->number_of[event->slot]] = of->count;
    }
}

static void end_walk(walk *of)
{
    frag_free(of->number_of);
    frag_free(of->bytes_of);
    frag_free(of->end_of);
    frag_recording_destroy(&of->recording);
}

static void shares_and_counts_are_exact(void **state)
{
    (void)state;
    walk of;
    walk_over("statistical:\n  requests: 1000\n  classes:\n"
              "    - {share: 3, bytes: 1}\n    - {share: 1, bytes: 2}\n"
              "    - {count: 100, bytes: 3}\n    - {share: 0, bytes: 4}\n",
              &of);
    uint64_t counts[5] = {0};
    for (uint64_t i = 0; i < of.count; i++)
        counts[of.bytes_of[i]]++;
    assert_int_equal(counts[1], 675);
    assert_int_equal(counts[2], 225);
    assert_int_equal(counts[3], 100);
    end_walk(&of);
}

static void a_lifetime_is_counted_in_requests(void **state)
{
    (void)state;
    walk of;
    walk_over("statistical: {requests: 100, bytes: 8, lifetime: 3, stretch: 1.5, phases: [{}]}",
              &of);
    for (uint64_t i = 0; i < of.count; i++)
        assert_int_equal(of.end_of[i], i + 5 <= 100 ? i + 5 : FRAG_UNLIMITED);
    end_walk(&of);
}

static void a_checkerboard_has_every_second_block_released(void **state)
{
    (void)state;
    walk of;
    walk_over("statistical:\n  phases:\n"
              "    - {requests: 20, bytes: 1MiB, holes: 2}\n    - {requests: 5, bytes: 2MiB}\n",
              &of);
    assert_int_equal(of.count, 25);
    for (uint64_t i = 0; i < 20; i++)
        assert_int_equal(of.end_of[i], i % 2 == 1 ? 20 : FRAG_UNLIMITED);
    end_walk(&of);
}

static void as_many_blocks_survive_a_phase_as_its_share(void **state)
{
    (void)state;
    walk of;
    walk_over("statistical:\n  phases:\n    - {requests: 50, bytes: 1}\n"
              "    - {requests: 200, bytes: 2, survivors: 0.25}\n    - {requests: 1, bytes: 3}\n",
              &of);
    uint64_t live[4] = {0}; /* at the end, by bytes */
    for (uint64_t i = 0; i < of.count; i++)
        live[of.bytes_of[i]] += of.end_of[i] == FRAG_UNLIMITED;
    assert_int_equal(live[1], 50);
    assert_int_equal(live[2], 50);
    end_walk(&of);
}

static void no_more_is_live_than_may_be_and_who_goes_is_said(void **state)
{
    (void)state;
    walk of;
    walk_over("statistical: {requests: 1000, bytes: 10, live: 100, release: oldest}", &of);
    assert_int_equal(of.trace->stats.peak_requested_bytes, 100);
    for (uint64_t i = 0; i < 990; i++)
        assert_int_equal(of.end_of[i], i + 10);
    end_walk(&of);
    walk_over("statistical: {requests: 1000, bytes: 10, live: 100, release: newest}", &of);
    for (uint64_t i = 0; i < of.count; i++)
        assert_int_equal(of.end_of[i], i < 9 || i == 999 ? FRAG_UNLIMITED : i + 1);
    end_walk(&of);
    walk_over("statistical: {requests: 1000, bytes: 10, live: 100, release: random}", &of);
    uint64_t ages = 0;
    for (uint64_t i = 0; i < of.count; i++)
        ages += of.end_of[i] != FRAG_UNLIMITED ? of.end_of[i] - i : 0;
    expect_near((double)ages, 990 * 10, 0.05); /* a block lives for ten requests */
    end_walk(&of);
    /* What is due first goes first: the even ones, whose lifetime is shorter. */
    walk_over(
        "statistical:\n  requests: 100\n  bytes: 10\n  live: 700\n  release: due\n  classes:\n"
        "    - {lifetime: 5000}\n    - {lifetime: 6000, bytes: 11}\n",
        &of);
    for (uint64_t i = 0; i < of.count; i++)
        assert_true(of.bytes_of[i] == 10 || of.end_of[i] == FRAG_UNLIMITED);
    end_walk(&of);
}

static void a_load_rises_along_its_ramp(void **state)
{
    (void)state;
    walk of;
    walk_over("statistical: {requests: 101, bytes: 10, live: 0..1000, repeat: 2}", &of);
    assert_int_equal(of.trace->stats.peak_requested_bytes, 1000);
    /* The second tooth begins with nothing else live. */
    uint64_t live = 0;
    for (uint64_t i = 0; i <= 101; i++)
        live += of.end_of[i] > 101;
    assert_int_equal(live, 1);
    end_walk(&of);
}

static void robson_reaches_his_bound_on_every_fit(void **state)
{
    (void)state;
    static const struct {
        uint64_t words, size_max, bound; /* M, n, M (1 + log2(n) / 2) - n + 1 */
    } cases[] = {{256, 16, 753}, {1024, 64, 4033}, {2048, 256, 9985}};
    static const char *const fits[] = {"first-fit:align=1,grow=1", "best-fit:align=1,grow=1",
                                       "worst-fit:align=1,grow=1"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t j = 0; j < sizeof fits / sizeof *fits; j++) {
            char yaml[128];
            frag_recording recording = {0};
            snprintf(yaml, sizeof yaml,
                     "statistical: {pattern: robson, bytes: 1B, largest: %uB, live: %u}",
                     (unsigned)cases[i].size_max, (unsigned)cases[i].words);
            generate(yaml, &recording);
            const frag_trace *trace = &recording.traces[0];
            size_t *blocks = frag_alloc(trace->slot_count, sizeof *blocks);
            word_world world;
            word_world_open(&world, fits[j], FRAG_UNLIMITED, (uint32_t)cases[i].words,
                            trace->event_count, cases[i].size_max);
            for (uint64_t k = 0; k < trace->event_count; k++) {
                const frag_event *event = &trace->events[k];
                if (event->op == FRAG_OP_ALLOC)
                    assert_true(word_world_alloc(&world, event->bytes, &blocks[event->slot]));
                else if (event->op == FRAG_OP_FREE)
                    word_world_free(&world, blocks[event->slot]);
            }
            assert_int_equal(trace->stats.peak_requested_bytes, cases[i].words);
            assert_int_equal(world.high_water, cases[i].bound);
            word_world_close(&world);
            frag_free(blocks);
            frag_recording_destroy(&recording);
        }
}

/* ---- fitted to a recording */
static void fit(const frag_recording *recording, const frag_fit_options *options,
                frag_statistical *described, double *ratio)
{
    frag_error error = {0};
    if (!frag_statistical_fit(recording, frag_recording_main_trace(recording), options, described,
                              ratio, &error))
        fail_msg("%s", error.sentence);
}

static void a_fit_has_the_requests_of_the_recording_size_by_size(void **state)
{
    (void)state;
    frag_recording recording = {0};
    frag_statistical described = {0};
    walk of;
    double ratio = 0;
    generate("statistical:\n  requests: 3000\n  seed: 5\n  classes:\n"
             "    - {share: 7, bytes: 512, lifetime: 2}\n"
             "    - {share: 3, bytes: 1MiB, lifetime: 50}\n"
             "    - {count: 40, bytes: 4MiB}\n",
             &recording);
    fit(&recording, &(frag_fit_options){.seed = 1}, &described, &ratio);
    expect_near(ratio, 1, FRAG_FIT_TOLERANCE);
    assert_int_equal(described.phase_count, 1);
    frag_text text = {0};
    frag_statistical_write(&described, &text);
    walk_over(text.bytes, &of);
    uint64_t small = 0, large = 0, kept = 0;
    for (uint64_t i = 0; i < of.count; i++) {
        small += of.bytes_of[i] == 512;
        large += of.bytes_of[i] == FRAG_MIB;
        kept += of.bytes_of[i] == 4 * FRAG_MIB && of.end_of[i] == FRAG_UNLIMITED;
    }
    assert_int_equal(small, 2072);
    assert_int_equal(large, 888);
    assert_int_equal(kept, 40);
    assert_int_equal(small + large + kept, of.count);
    frag_recording again = {0};
    frag_error error = {0};
    assert_true(frag_statistical_generate(&described, "x", &again, &error));
    assert_string_equal(again.traces[0].digest, of.trace->digest);
    frag_recording_destroy(&again);
    end_walk(&of);
    frag_text_destroy(&text);
    frag_statistical_destroy(&described);
    frag_recording_destroy(&recording);
}

static void steps_are_told_by_their_marks(void **state)
{
    (void)state;
    frag_recording recording = {0};
    frag_statistical described = {0};
    double ratio = 0;
    generate("statistical:\n  phases:\n    - {name: load, requests: 30, bytes: 1MiB}\n"
             "    - {name: step, repeat: 8, requests: 100, bytes: 64KiB, lifetime: 20}\n",
             &recording);
    fit(&recording, &(frag_fit_options){.seed = 1}, &described, &ratio);
    assert_int_equal(described.phase_count, 2);
    assert_int_equal(described.phases[0].requests, 30);
    assert_int_equal(described.phases[0].classes[0].count, 30);
    assert_string_equal(described.phases[1].name, "step");
    assert_int_equal(described.phases[1].repeat, 8);
    assert_int_equal(described.phases[1].requests, 100);
    /* Those that the end of the recording cut short are no leak. */
    assert_int_equal(described.phases[1].class_count, 1);
    assert_int_equal(described.phases[1].classes[0].lifetime.values[8], 20);
    frag_statistical_destroy(&described);

    fit(&recording, &(frag_fit_options){.seed = 1, .pieces = 10}, &described, &ratio);
    assert_int_equal(described.phase_count, 10);
    assert_int_equal(described.phases[9].requests, 83);
    frag_statistical_destroy(&described);

    /* A longer one has as many blocks that stay. */
    fit(&recording, &(frag_fit_options){.seed = 1, .requests = 8300}, &described, &ratio);
    assert_int_equal(described.phases[0].requests, 30);
    assert_int_equal(described.phases[1].requests, 1000);
    frag_statistical_destroy(&described);
    frag_recording_destroy(&recording);
}

static void marks_without_requests_are_no_steps(void **state)
{
    (void)state;
    frag_text text = {0};
    frag_recording recording = {0};
    frag_statistical described = {0};
    double ratio = 0;
    for (uint32_t i = 1; i <= 40; i++)
        frag_text_add(&text, "mark \"step %u\" begin\n%smark \"step %u\" end\n", i,
                      i % 20 == 0 ? "alloc 0 512\nfree 0\n" : "", i);
    frag_test_recording(text.bytes, &recording);
    fit(&recording, &(frag_fit_options){.seed = 1}, &described, &ratio);
    assert_int_equal(described.phase_count, 1);
    assert_int_equal(described.phases[0].repeat, 2);
    assert_int_equal(described.phases[0].requests, 1);
    assert_int_equal(frag_statistical_requests(&described), 2);
    frag_statistical_destroy(&described);
    frag_recording_destroy(&recording);
    frag_text_destroy(&text);
}

static void sizes_and_lifetimes_are_fitted_jointly(void **state)
{
    (void)state;
    frag_recording recording = {0};
    frag_statistical described = {0};
    double ratio = 0;
    generate("statistical:\n  requests: 20000\n  classes:\n"
             "    - {bytes: 600..1000, lifetime: 1..9}\n"
             "    - {bytes: 2MiB..3MiB, lifetime: 100..300}\n",
             &recording);
    fit(&recording, &(frag_fit_options){.seed = 1}, &described, &ratio);
    const frag_request_phase *phase = &described.phases[0];
    for (uint32_t i = 0; i < phase->class_count; i++) {
        const frag_request_class *class = &phase->classes[i];
        uint64_t middle = class->lifetime.values[class->lifetime.count / 2];
        for (uint32_t j = 0; j < class->bytes.count; j++)
            assert_true(middle == FRAG_UNLIMITED ||
                        (class->bytes.values[j] <= 1000 ? middle <= 9 : middle >= 100));
    }
    frag_statistical_destroy(&described);
    frag_recording_destroy(&recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distributions_have_their_means_and_quantiles),
        cmocka_unit_test(a_seed_gives_the_same_numbers_everywhere),
        cmocka_unit_test(the_largest_draw_is_kept_within_its_limit),
        cmocka_unit_test(a_span_goes_from_its_first_to_its_last_value),
        cmocka_unit_test(shares_and_counts_are_exact),
        cmocka_unit_test(a_lifetime_is_counted_in_requests),
        cmocka_unit_test(a_checkerboard_has_every_second_block_released),
        cmocka_unit_test(as_many_blocks_survive_a_phase_as_its_share),
        cmocka_unit_test(no_more_is_live_than_may_be_and_who_goes_is_said),
        cmocka_unit_test(a_load_rises_along_its_ramp),
        cmocka_unit_test(robson_reaches_his_bound_on_every_fit),
        cmocka_unit_test(a_fit_has_the_requests_of_the_recording_size_by_size),
        cmocka_unit_test(steps_are_told_by_their_marks),
        cmocka_unit_test(marks_without_requests_are_no_steps),
        cmocka_unit_test(sizes_and_lifetimes_are_fitted_jointly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
