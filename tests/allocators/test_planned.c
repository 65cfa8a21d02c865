/* Tests of the planned policy: iterations that repeat, and requests that do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocators/registry.h"
#include "base/bytes.h"
#include "base/text.h"
#include "sim/run.h"
#include "tests/support/text_recording.h"

enum { LAYERS = 12, WEIGHTS = 2 * LAYERS };

/* A program in text: weights, and then iterations that keep an activation of each layer until its
 * way back. Slots: weights, activations, one for temporaries. */
static void add_weights(frag_text *trace)
{
    for (int i = 0; i < WEIGHTS; i++)
        frag_text_add(trace, "alloc %d %d\n", i, 1000000 + 70000 * i);
}

static void add_forward(frag_text *trace, int layer)
{
    frag_text_add(trace, "alloc %d %d\n", WEIGHTS + layer, 9000000 - 300000 * layer);
    frag_text_add(trace, "alloc 99 %d\nfree 99\n", 5000000 + 400000 * layer);
}

static void add_iteration(frag_text *trace, bool has_stranger)
{
    for (int layer = 0; layer < LAYERS; layer++)
        add_forward(trace, layer);
    if (has_stranger)
        frag_text_add(trace, "alloc 98 12345\n");
    for (int layer = LAYERS - 1; layer >= 0; layer--) {
        frag_text_add(trace, "alloc 99 %d\n", 7000000 + 500000 * layer);
        frag_text_add(trace, "free %d\nfree 99\n", WEIGHTS + layer);
    }
    if (has_stranger)
        frag_text_add(trace, "free 98\n");
}

static frag_run_result run(const frag_text *trace, const char *policy, uint64_t capacity)
{
    frag_recording recording;
    frag_policy_spec spec;
    frag_error error = {0};
    frag_run_result result;
    frag_test_recording(trace->bytes, &recording);
    assert_true(frag_policy_spec_parse(policy, &spec, &error));
    frag_device_spec device = {.capacity_bytes = capacity};
    frag_run_options options = {.check_every = 1};
    if (!frag_run(
            &(frag_run_setup){&recording, &recording.traces[0], spec.ops, spec.values, &device},
            &options, &result, &error))
        fail_msg("%s", error.sentence);
    frag_policy_spec_destroy(&spec);
    frag_recording_destroy(&recording);
    return result;
}

static void what_repeats_is_served_from_one_malloc(void **state)
{
    (void)state;
    frag_text trace = {0};
    add_weights(&trace);
    for (int i = 0; i < 8; i++)
        add_iteration(&trace, false);
    frag_run_result result = run(&trace, "planned", FRAG_UNLIMITED);
    frag_run_result offline = run(&trace, "offline", FRAG_UNLIMITED);
    frag_run_result best_fit = run(&trace, "best-fit", FRAG_UNLIMITED);
    assert_int_equal(result.calls[FRAG_DEVICE_MALLOC], 1);
    assert_int_equal(result.calls[FRAG_DEVICE_MAP], 0);
    assert_int_equal(result.replay.peak.reserved_bytes, offline.replay.peak.reserved_bytes);
    assert_true(result.replay.peak.reserved_bytes <= best_fit.replay.peak.reserved_bytes);
    assert_true(best_fit.calls[FRAG_DEVICE_MAP] > 5);
    frag_text_destroy(&trace);
}

static void strangers_are_served_by_best_fit(void **state)
{
    (void)state;
    frag_text trace = {0};
    add_weights(&trace);
    for (int i = 0; i < 8; i++)
        add_iteration(&trace, i == 5);
    frag_run_result result = run(&trace, "planned", FRAG_UNLIMITED);
    assert_string_equal(result.plan.answer, "optimal");
    assert_int_equal(result.calls[FRAG_DEVICE_MALLOC], 1);
    assert_int_equal(result.replay.peak.reserved_bytes,
                     (result.plan.peak_bytes + 2 * FRAG_MIB - 1) / (2 * FRAG_MIB) * 2 * FRAG_MIB +
                         2 * FRAG_MIB);
    frag_text_destroy(&trace);
}

/* After a request that is not of the iteration its place is found again by the last requests,
 * however long the iteration is. */
static void finds_its_place_again_in_long_iterations(void **state)
{
    (void)state;
    enum { STRANGER = 999, ITERATIONS = 6 };
    for (int length = 200; length < 230; length += 3) {
        frag_text trace = {0};
        for (int i = 0; i < ITERATIONS; i++) {
            for (int k = 0; k < length; k++) {
                frag_text_add(&trace, "alloc %d %d\n", k, 100000 + 512 * (k * 37 % length));
                if (i == ITERATIONS - 1 && k % 20 == 10)
                    frag_text_add(&trace, "alloc %d 77\nfree %d\n", STRANGER, STRANGER);
            }
            for (int k = length - 1; k >= 0; k--)
                frag_text_add(&trace, "free %d\n", k);
        }
        frag_run_result result = run(&trace, "planned", FRAG_UNLIMITED);
        frag_run_result offline = run(&trace, "offline", FRAG_UNLIMITED);
        assert_true(result.replay.peak.reserved_bytes <=
                    offline.replay.peak.reserved_bytes + 4 * FRAG_MIB);
        frag_text_destroy(&trace);
    }
}

static void another_phase_uses_the_gaps_of_the_plan(void **state)
{
    (void)state;
    frag_text trace = {0};
    add_weights(&trace);
    for (int i = 0; i < 8; i++)
        add_iteration(&trace, false);
    for (int i = 0; i < 60; i++)
        frag_text_add(&trace, "alloc %d %d\nalloc %d %d\nfree %d\nfree %d\n", 98, 3000000 + i * 999,
                      97, 2000000 + i * 777, 98, 97);
    frag_run_result result = run(&trace, "planned", FRAG_UNLIMITED);
    uint64_t plan_pages = (result.plan.peak_bytes + 2 * FRAG_MIB - 1) / (2 * FRAG_MIB);
    assert_true(result.replay.peak.reserved_bytes <= plan_pages * 2 * FRAG_MIB + 8 * FRAG_MIB);
    frag_text_destroy(&trace);
}

static void what_does_not_repeat_is_left_to_best_fit(void **state)
{
    (void)state;
    frag_text trace = {0};
    for (int i = 0; i < 400; i++)
        frag_text_add(&trace, "alloc %d %d\n%s%d%s", i, 100000 + i * i * 37, i > 5 ? "free " : "# ",
                      i - 5, "\n");
    frag_run_result result = run(&trace, "planned", FRAG_UNLIMITED);
    frag_run_result best_fit = run(&trace, "best-fit", FRAG_UNLIMITED);
    assert_string_equal(result.plan.answer, "none");
    assert_int_equal(result.replay.peak.reserved_bytes, best_fit.replay.peak.reserved_bytes);
    frag_text_destroy(&trace);
}

static void a_range_that_does_not_fit_is_done_without(void **state)
{
    (void)state;
    frag_text trace = {0};
    add_weights(&trace);
    for (int i = 0; i < 8; i++)
        add_iteration(&trace, false);
    frag_run_result plan = run(&trace, "planned", FRAG_UNLIMITED);
    uint64_t pages = (plan.plan.peak_bytes + 2 * FRAG_MIB - 1) / (2 * FRAG_MIB);
    frag_run_result result = run(&trace, "planned", pages * 2 * FRAG_MIB);
    assert_false(result.replay.oom.has_happened);
    result = run(&trace, "planned", (pages - 1) * 2 * FRAG_MIB);
    assert_true(result.replay.oom.has_happened);
    assert_true(result.replay.oom.event > WEIGHTS);
    frag_text_destroy(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_repeats_is_served_from_one_malloc),
        cmocka_unit_test(strangers_are_served_by_best_fit),
        cmocka_unit_test(finds_its_place_again_in_long_iterations),
        cmocka_unit_test(another_phase_uses_the_gaps_of_the_plan),
        cmocka_unit_test(what_does_not_repeat_is_left_to_best_fit),
        cmocka_unit_test(a_range_that_does_not_fit_is_done_without),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
