/* Tests of history.c: what a run holds at any event, against the policy itself. */
#include "sim/policy_engine.h"
#include "sim/replay/history.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocators/registry.h"
#include "base/bytes.h"
#include "tests/support/text_recording.h"
#include "traces/load.h"

/* What a run holds right after an event: as the policy says, or as its history says. */
typedef struct holdings {
    uint64_t reserved_bytes;
    uint64_t segment_bytes;
    uint64_t requested_bytes;
    uint64_t waiting_bytes;
    uint64_t block_bytes;
    uint64_t block_count;
    uint64_t rounded_bytes;
} holdings;

static void add_span(void *context, const frag_span *span, const frag_block_view *block)
{
    holdings *into = context;
    if (span->kind == FRAG_SPAN_SEGMENT)
        into->segment_bytes += span->bytes;
    if (span->kind != FRAG_SPAN_BLOCK)
        return;
    into->block_bytes += span->bytes;
    into->block_count++;
    if (block->is_waiting)
        into->waiting_bytes += span->bytes;
    else
        into->requested_bytes += block->requested_bytes;
}

static void look(void *context, const frag_replay *replay, const frag_replay_result *result)
{
    holdings *into = context;
    frag_decomposition parts;
    frag_replay_walk(replay, add_span, into);
    frag_replay_decompose(replay, &parts);
    into->reserved_bytes = result->final.reserved_bytes;
    into->rounded_bytes = parts.requested_bytes + parts.rounding_bytes + parts.page_slack_bytes;
}

static void add_blocks(const frag_request_list *requests, const frag_trace *trace,
                       const frag_history *history, uint64_t event, holdings *into)
{
    for (uint32_t i = 0; i < requests->count && requests->events[i] <= event; i++) {
        const frag_placement *at = &history->placements[i];
        if (at->block_bytes == 0 || at->end <= event)
            continue;
        into->block_bytes += at->block_bytes;
        into->block_count++;
        if (requests->free_events[i] <= event) {
            into->waiting_bytes += at->block_bytes;
            continue;
        }
        into->requested_bytes += trace->events[requests->events[i]].bytes;
        into->rounded_bytes += at->rounded_bytes;
    }
}

static holdings holdings_at(const frag_request_list *requests, const frag_trace *trace,
                            const frag_history *history, uint64_t event)
{
    holdings found = {0};
    add_blocks(requests, trace, history, event, &found);
    for (size_t i = 0; i < history->segment_count; i++)
        if (history->segments[i].begin <= event && history->segments[i].end > event)
            found.segment_bytes += history->segments[i].bytes;
    for (size_t i = 0; i < history->step_count && history->steps[i].event <= event; i++)
        found.reserved_bytes = history->steps[i].reserved_bytes;
    return found;
}

typedef struct world {
    frag_recording recording;
    const frag_trace *trace;
    frag_request_list requests;
    frag_policy_spec spec;
    frag_policy_plan *plan;
    frag_device_spec device;
    frag_history history;
} world;

static void check_event(const world *in, uint64_t event)
{
    frag_error error = {0};
    holdings policy = {0};
    frag_replay_options options = {.is_oom_skipped = true, .stop_after = event + 1};
    assert_true(frag_run_look_planned(
        &(frag_run_setup){&in->recording, in->trace, in->spec.ops, in->spec.values, &in->device},
        in->plan, NULL, &options, look, &policy, &error));
    /* A run that has stopped stays as it is; what the trace frees afterwards it never saw. */
    uint64_t last = in->history.result.events > 0 ? in->history.result.events - 1 : 0;
    holdings told =
        holdings_at(&in->requests, in->trace, &in->history, event < last ? event : last);
    if (memcmp(&policy, &told, sizeof told) != 0)
        print_error("%s of %s at event %llu\n", in->spec.text, in->recording.name,
                    (unsigned long long)event);
    assert_int_equal(told.reserved_bytes, policy.reserved_bytes);
    assert_int_equal(told.segment_bytes, policy.segment_bytes);
    assert_int_equal(told.requested_bytes, policy.requested_bytes);
    assert_int_equal(told.waiting_bytes, policy.waiting_bytes);
    assert_int_equal(told.block_bytes, policy.block_bytes);
    assert_int_equal(told.block_count, policy.block_count);
    /* A policy that tells no rounded size has the block's own. */
    if (in->spec.ops->rounded != NULL)
        assert_int_equal(told.rounded_bytes, policy.rounded_bytes);
}

static void check_policy(world *in, const char *policy, uint64_t capacity_bytes)
{
    enum { LOOKS = 7 };
    /* The state at the start is there at once. */
    uint64_t start = frag_trace_start(in->trace);
    frag_error error = {0};
    frag_plan_limits limits = {.capacity_bytes = capacity_bytes};
    in->device = (frag_device_spec){.capacity_bytes = capacity_bytes};
    assert_true(frag_policy_spec_parse(policy, &in->spec, &error));
    assert_true(frag_replay_plan(
        &(frag_run_setup){&in->recording, in->trace, in->spec.ops, in->spec.values, NULL}, &limits,
        &in->plan, &error));
    frag_run_options options = {.is_oom_skipped = true, .plan = in->plan};
    if (!frag_history_record(&(frag_run_setup){&in->recording, in->trace, in->spec.ops,
                                               in->spec.values, &in->device},
                             &in->requests, &options, &in->history, &error))
        fail_msg("%s: %s", policy, error.sentence);
    for (uint64_t i = 0; i < LOOKS; i++)
        check_event(in, start + (in->trace->event_count - 1 - start) * i / (LOOKS - 1));
    frag_history_destroy(&in->history);
    if (in->plan != NULL)
        frag_policy_engine_of(in->spec.ops)->planner->destroy(in->plan);
    frag_policy_spec_destroy(&in->spec);
}

static void check_recording(const char *path)
{
    frag_error error = {0};
    frag_findings findings = {0};
    frag_load_options options = {.with_columns = true};
    world in = {0};
    assert_true(frag_recording_load(path, &options, &in.recording, &findings, &error));
    in.trace = &in.recording.traces[0];
    assert_true(frag_request_list_create(&in.requests, in.trace, &error));
    for (size_t i = 0; frag_policy_table[i] != NULL; i++)
        check_policy(&in, frag_policy_table[i]->name, FRAG_UNLIMITED);
    check_policy(&in, "pytorch:expandable_segments=true", FRAG_UNLIMITED);
    check_policy(&in, "gmlake:fragLimit=2MiB", FRAG_UNLIMITED);
    /* Memory runs out, again and again. */
    uint64_t little = in.trace->stats.peak_requested_bytes / 2;
    check_policy(&in, "pytorch", little);
    check_policy(&in, "pytorch:expandable_segments=true", little);
    check_policy(&in, "best-fit", little);
    check_policy(&in, "gmlake:fragLimit=2MiB", little);
    frag_request_list_destroy(&in.requests);
    frag_recording_destroy(&in.recording);
}

static void a_history_is_what_every_policy_holds_at_any_event(void **state)
{
    (void)state;
    check_recording("traces/samples/truncated.pickle.zst");
    check_recording("traces/samples/pr193400.pickle.zst");
}

static void streams_and_private_pools_are_in_it(void **state)
{
    (void)state;
    check_recording("traces/samples/cuda-graphs.pickle.zst");
}

static void requests_end_where_they_are_freed(void **state)
{
    (void)state;
    frag_error error = {0};
    frag_request_list requests;
    frag_recording recording;
    frag_test_recording("alloc 0 100\n"
                        "alloc 1 200\n"
                        "free 0 deferred\n"
                        "alloc - 300 failed\n"
                        "complete 0\n"
                        "alloc 0 400\n",
                        &recording);
    assert_true(frag_request_list_create(&requests, &recording.traces[0], &error));
    assert_int_equal(requests.count, 4);
    assert_int_equal(requests.events[3], 5);
    assert_int_equal(requests.free_events[0], 2);
    assert_true(requests.free_events[1] == FRAG_UNLIMITED);
    assert_int_equal(requests.free_events[2], 3);
    assert_int_equal(requests.by_event[5], 3);
    assert_int_equal(requests.by_event[2], FRAG_REQUEST_NONE);
    frag_request_list_destroy(&requests);
    frag_recording_destroy(&recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_history_is_what_every_policy_holds_at_any_event),
        cmocka_unit_test(streams_and_private_pools_are_in_it),
        cmocka_unit_test(requests_end_where_they_are_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
