/* The traces that speed is measured on are what docs/performance.md says they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "tests/benchmarks/bench_traces.h"

typedef bool make_trace(uint64_t event_count, frag_recording *recording, frag_error *error);

static void make(make_trace *maker, uint64_t event_count, frag_recording *recording)
{
    frag_error error = {0};
    if (!maker(event_count, recording, &error))
        fail_msg("%s", error.sentence);
    assert_int_equal(recording->trace_count, 1);
}

static void expect_length(make_trace *maker, uint64_t event_count)
{
    frag_recording recording;
    make(maker, event_count, &recording);
    assert_int_equal(recording.traces[0].event_count, event_count);
    frag_error error = {0};
    assert_true(frag_trace_check(&recording, &recording.traces[0], &error));
    frag_recording_destroy(&recording);
}

static void have_the_length_that_was_asked_for(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {1, 2, 289, 1000, 54321, BENCH_TRACE_EVENTS};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        expect_length(bench_trace_training, lengths[i]);
        expect_length(bench_trace_serving, lengths[i]);
    }
}

/* A digest that changes makes older figures incomparable: change it here only with that in mind. */
static void are_the_same_on_every_machine(void **state)
{
    (void)state;
    frag_recording recording;
    make(bench_trace_training, BENCH_TRACE_EVENTS, &recording);
    assert_string_equal(recording.traces[0].digest, "b2a86f53f44691f5956ef5e69f59e7d1");
    frag_recording_destroy(&recording);
    make(bench_trace_serving, BENCH_TRACE_EVENTS, &recording);
    assert_string_equal(recording.traces[0].digest, "c3c0acb6ff38f07787513500e51bd380");
    frag_recording_destroy(&recording);
}

/* Of the frees, how many give back one of the newest few live blocks, in percent? */
static uint64_t share_of_young_frees(const frag_trace *trace)
{
    uint64_t *born = calloc(trace->slot_count, sizeof *born);
    assert_non_null(born);
    uint64_t young = 0;
    uint64_t requests = 0;
    for (uint64_t i = 0; i < trace->event_count; i++) {
        const frag_event *event = &trace->events[i];
        if (event->op == FRAG_OP_ALLOC)
            born[event->slot] = requests++;
        else
            young += requests - born[event->slot] <= 8 ? 1 : 0;
    }
    uint64_t share = 100 * young / trace->stats.op_counts[FRAG_OP_FREE];
    free(born);
    return share;
}

static void training_frees_most_blocks_soon_and_fits_a_large_device(void **state)
{
    (void)state;
    frag_recording recording;
    make(bench_trace_training, 200000, &recording);
    const frag_trace *trace = &recording.traces[0];
    assert_in_range(share_of_young_frees(trace), 60, 95);
    assert_in_range(trace->stats.peak_requested_bytes, 1 * FRAG_GIB, 80 * FRAG_GIB);
    assert_in_range(trace->stats.live_count_max, 500, 1000);
    assert_int_equal(trace->stream_count, 1);
    assert_non_null(trace->times_ns);
    assert_non_null(trace->sites);
    frag_recording_destroy(&recording);
}

static void serving_holds_thousands_of_blocks_on_four_streams(void **state)
{
    (void)state;
    frag_recording recording;
    make(bench_trace_serving, 200000, &recording);
    const frag_trace *trace = &recording.traces[0];
    assert_in_range(share_of_young_frees(trace), 0, 5);
    assert_in_range(trace->stats.peak_requested_bytes, 10 * FRAG_MIB, 80 * FRAG_GIB);
    assert_int_equal(trace->stats.live_count_max, 12000);
    assert_int_equal(trace->stream_count, 4);
    frag_recording_destroy(&recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(have_the_length_that_was_asked_for),
        cmocka_unit_test(are_the_same_on_every_machine),
        cmocka_unit_test(training_frees_most_blocks_soon_and_fits_a_large_device),
        cmocka_unit_test(serving_holds_thousands_of_blocks_on_four_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
