/* Tests of lifetimes.c: from a trace to buffers with lifetimes, and the offline policy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocators/registry.h"
#include "base/bytes.h"
#include "sim/policy_engine.h"
#include "sim/run.h"
#include "sim/replay/lifetimes.h"
#include "tests/support/text_recording.h"

#define MIB "1048576"

static frag_lifetime *find(const char *text, uint64_t *count)
{
    frag_recording recording;
    frag_error error = {0};
    frag_test_recording(text, &recording);
    frag_lifetime *lifetimes = frag_lifetimes_find(&recording, &recording.traces[0], count, &error);
    if (lifetimes == NULL)
        fail_msg("%s", error.sentence);
    frag_recording_destroy(&recording);
    return lifetimes;
}

static void blocks_are_held_until_they_are_safe(void **state)
{
    (void)state;
    uint64_t count = 0;
    frag_lifetime *lifetimes = find("alloc 0 100\n"
                                    "alloc 1 200\n"
                                    "free 0 deferred\n"
                                    "alloc - 300 failed\n"
                                    "free 1\n"
                                    "complete 0\n"
                                    "alloc 1 400\n",
                                    &count);
    assert_int_equal(count, 4);
    assert_int_equal(lifetimes[0].lower, 0);
    assert_int_equal(lifetimes[0].upper, 5);
    assert_int_equal(lifetimes[1].upper, 4);
    assert_int_equal(lifetimes[2].bytes, 300);
    assert_int_equal(lifetimes[2].lower, lifetimes[2].upper);
    assert_int_equal(lifetimes[3].lower, 6);
    assert_int_equal(lifetimes[3].upper, 7);
    assert_int_equal(lifetimes[3].alignment, 0);
    free(lifetimes);
}

static void blocks_of_other_streams_are_held_until_these_are_done(void **state)
{
    (void)state;
    uint64_t count = 0;
    frag_lifetime *lifetimes = find("alloc 0 100\n"
                                    "use 0 stream=1\n"
                                    "free 0\n"
                                    "alloc 0 200\n"
                                    "sync stream=1\n"
                                    "free 0\n",
                                    &count);
    assert_int_equal(count, 2);
    assert_int_equal(lifetimes[0].upper, 4);
    assert_int_equal(lifetimes[1].lower, 3);
    assert_int_equal(lifetimes[1].upper, 5);
    free(lifetimes);
}

static void blocks_from_before_the_trace_come_first(void **state)
{
    (void)state;
    uint64_t count = 0;
    frag_lifetime *lifetimes = find("segment_alloc 2097152 addr=0x7f0000000000 initial\n"
                                    "alloc 0 100 addr=0x7f0000000000 block=512 initial\n"
                                    "alloc 1 300\n"
                                    "free 0\n",
                                    &count);
    assert_int_equal(count, 2);
    assert_int_equal(lifetimes[0].bytes, 100);
    assert_int_equal(lifetimes[0].lower, 0);
    assert_int_equal(lifetimes[0].upper, 3);
    free(lifetimes);
}

/* Runs offline with an audit after every event. */
static frag_run_result run(const char *text, uint64_t capacity)
{
    frag_recording recording;
    frag_policy_spec spec;
    frag_error error = {0};
    frag_run_result result;
    frag_test_recording(text, &recording);
    assert_true(frag_policy_spec_parse("offline", &spec, &error));
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

static void offline_holds_the_height_of_its_plan(void **state)
{
    (void)state;
    /* First fit leaves a hole of 4 MiB that the last request does not fit into. */
    static const char trace[] = "alloc 0 4194304\n"
                                "alloc 1 2097152\n"
                                "free 0\n"
                                "alloc 0 6291456\n";
    frag_run_result result = run(trace, FRAG_UNLIMITED);
    assert_int_equal(result.replay.peak.reserved_bytes, 8388608);
    assert_string_equal(result.plan.answer, "optimal");
    assert_int_equal(result.plan.peak_bytes, 8388608);
    assert_int_equal(result.calls[FRAG_DEVICE_MALLOC], 1);
    assert_true(result.has_at_peak);
    result = run(trace, 6 * FRAG_MIB);
    assert_true(result.replay.oom.has_happened);
    assert_int_equal(result.replay.oom.event, 0);
}

static void offline_has_a_place_for_requests_that_failed_when_recorded(void **state)
{
    (void)state;
    frag_run_result result = run("alloc 0 " MIB "\n"
                                 "alloc - 5000000 failed\n"
                                 "free 0\n"
                                 "empty_cache\n"
                                 "alloc 0 " MIB "\n",
                                 FRAG_UNLIMITED);
    assert_false(result.replay.oom.has_happened);
    assert_int_equal(result.replay.peak.reserved_bytes, 6 * FRAG_MIB);
    assert_int_equal(result.calls[FRAG_DEVICE_MALLOC], 2);
    assert_int_equal(result.calls[FRAG_DEVICE_FREE], 1);
}

static void offline_rounds_to_its_alignment_where_the_trace_has_none(void **state)
{
    (void)state;
    frag_run_result result = run("alloc 0 1\nalloc 1 513\n", FRAG_UNLIMITED);
    assert_int_equal(result.replay.peak.allocated_bytes, 3 * 512);
    assert_int_equal(result.plan.peak_bytes, 3 * 512);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_held_until_they_are_safe),
        cmocka_unit_test(blocks_of_other_streams_are_held_until_these_are_done),
        cmocka_unit_test(blocks_from_before_the_trace_come_first),
        cmocka_unit_test(offline_holds_the_height_of_its_plan),
        cmocka_unit_test(offline_has_a_place_for_requests_that_failed_when_recorded),
        cmocka_unit_test(offline_rounds_to_its_alignment_where_the_trace_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
