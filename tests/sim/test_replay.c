/* Tests of replay.c: what a run counts, where it stops, how it starts. */
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
#include "tests/support/xorshift.h"

/* Runs a text trace with a policy on a device of that capacity. */
static frag_run_result run(const char *text, const char *policy, uint64_t capacity,
                           bool is_oom_skipped)
{
    frag_recording recording = {0};
    frag_test_recording(text, &recording);
    frag_policy_spec spec;
    frag_error error = {0};
    if (!frag_policy_spec_parse(policy, &spec, &error))
        fail_msg("%s", error.sentence);
    frag_device_spec device = {.capacity_bytes = capacity};
    frag_run_options options = {.check_every = 1, .is_oom_skipped = is_oom_skipped};
    frag_run_result result;
    if (!frag_run(
            &(frag_run_setup){&recording, &recording.traces[0], spec.ops, spec.values, &device},
            &options, &result, &error))
        fail_msg("%s", error.sentence);
    frag_policy_spec_destroy(&spec);
    frag_recording_destroy(&recording);
    return result;
}

static void parts_at_the_peak_add_up_to_reserved(void **state)
{
    (void)state;
    /* 1000 bytes round to 1024 in a 2 MiB segment; 3 MiB sit in a segment of 20 MiB. */
    frag_run_result result = run("alloc 0 1000\nalloc 1 3145728\nalloc 2 1000\nfree 0\n", "pytorch",
                                 FRAG_UNLIMITED, false);
    const frag_decomposition *parts = &result.at_peak;
    assert_int_equal(result.replay.peak.reserved_bytes, 22 * FRAG_MIB);
    assert_int_equal(result.replay.reserved_at_event, 1);
    assert_int_equal(parts->requested_bytes, 1000 + 3 * FRAG_MIB);
    assert_int_equal(parts->rounding_bytes, 24);
    assert_int_equal(parts->unsplit_bytes, 0);
    assert_int_equal(parts->holes_bytes, 22 * FRAG_MIB - 3 * FRAG_MIB - 1024);
    assert_int_equal(parts->requested_bytes + parts->rounding_bytes + parts->unsplit_bytes +
                         parts->holes_bytes + parts->cached_bytes + parts->waiting_bytes +
                         parts->page_slack_bytes,
                     result.replay.peak.reserved_bytes);
}

/* A private pool is brought back to a layout of before, in which neither of its two segments has a
 * hole for the last request; with its two blocks side by side in one segment it would have one. The
 * recording has the segments in the other order of addresses. */
static void a_request_that_names_its_place_gets_it(void **state)
{
    (void)state;
    static const char form[] = "alloc 0 1000 addr=0x7f0000200000 pool=1\n"
                               "alloc 1 1048576 addr=0x7f0000200400 pool=1\n"
                               "alloc 2 1048576 addr=0x7f0000000000 pool=1\n"
                               "free 0\nfree 1\nfree 2\n"
                               "alloc 2 1048576 addr=0x7f0000000000 pool=1%s\n"
                               "alloc 1 1048576 addr=0x7f0000100000 pool=1%s\nfree 1\n"
                               "alloc 1 1024 addr=0x7f0000200000 pool=1%s\n"
                               "alloc 0 1048576 addr=0x7f0000200400 pool=1%s\n"
                               "alloc 3 1047552 addr=0x7f0000300400 pool=1%s\nfree 1\nfree 3\n"
                               "alloc 1 1048576 pool=1\nalloc 3 1048576 pool=1\n";
    static const char *const words[] = {"", " placed"};
    static const uint64_t reserved[] = {4 * FRAG_MIB, 6 * FRAG_MIB};
    for (size_t i = 0; i < 2; i++) {
        char text[1024];
        snprintf(text, sizeof text, form, words[i], words[i], words[i], words[i], words[i]);
        frag_run_result result = run(text, "pytorch", FRAG_UNLIMITED, false);
        assert_int_equal(result.replay.peak.reserved_bytes, reserved[i]);
        assert_int_equal(result.replay.requests, 10);
        assert_int_equal(result.replay.peak.requested_bytes, 4 * FRAG_MIB);
        /* A policy without such places looks for one. */
        result = run(text, "best-fit", FRAG_UNLIMITED, false);
        assert_int_equal(result.replay.requests, 10);
    }
}

/* A search would find the hole in the second segment, in which the place before is not. */
static void a_place_may_lie_right_behind_the_one_before(void **state)
{
    (void)state;
    frag_run_result result = run("alloc 0 1048576 addr=0x7f0000200000 pool=1\n"
                                 "alloc 1 1048576 addr=0x7f0000300000 pool=1\n"
                                 "alloc 2 786432 addr=0x7f0000000000 pool=1\n"
                                 "alloc 3 524288 addr=0x7f00000c0000 pool=1\nfree 0\nfree 1\n"
                                 "alloc 0 524288 addr=0x7f0000200000 pool=1 placed\n"
                                 "alloc 1 786432 addr=0x7f0000280000 pool=1 placed\n"
                                 "alloc 4 1048576 pool=1\n",
                                 "pytorch", FRAG_UNLIMITED, false);
    assert_int_equal(result.replay.peak.reserved_bytes, 6 * FRAG_MIB);
}

/* Of three pools, with frees and requests that are searched for between: every free block stays to
 * be found by its address, which the policy's audit asks after each event. */
static void places_are_named_between_requests_of_any_kind(void **state)
{
    (void)state;
    static const char *const policies[] = {"pytorch", "pytorch:expandable_segments:True",
                                           "pytorch:max_split_size_mb:32",
                                           "pytorch:per_process_memory_fraction:0.9"};
    enum { SLOTS = 400, ROUNDS = 4000 };
    for (size_t p = 0; p < sizeof policies / sizeof *policies; p++) {
        uint64_t chance = 11 + p;
        bool is_live[SLOTS] = {false};
        bool is_known[SLOTS] = {false};
        frag_text text = {0};
        for (uint64_t i = 0; i < ROUNDS; i++) {
            uint64_t slot = i < SLOTS ? i : xorshift_next(&chance) % SLOTS;
            uint64_t bytes = slot % 2 == 0 ? 700 + slot * 512 : (slot % 30 * 3 + 1) * 600000;
            bool is_placed = is_known[slot] && xorshift_next(&chance) % 3 != 0;
            if (is_live[slot])
                frag_text_add(&text, "free %d\n", (int)slot);
            else
                frag_text_add(&text, "alloc %d %d addr=0x%llx pool=%d%s\n", (int)slot, (int)bytes,
                              0x7f0000000000 + (unsigned long long)slot * 0x8000000,
                              (int)(slot / 2 % 3), is_placed ? " placed" : "");
            is_known[slot] = true;
            is_live[slot] = !is_live[slot];
            if (xorshift_next(&chance) % 100 == 0)
                frag_text_add(&text, "empty_cache\n");
        }
        frag_run_result result = run(text.bytes, policies[p], 3 * FRAG_GIB, true);
        assert_true(result.replay.requests > ROUNDS / 2 - SLOTS);
        frag_text_destroy(&text);
    }
}

/* Each look at the clock is later by a microsecond. */
static uint64_t tick(void *user)
{
    uint64_t *now_ns = user;
    return *now_ns += 1000;
}

static void a_timed_run_counts_from_its_start(void **state)
{
    (void)state;
    frag_recording recording = {0};
    frag_test_recording("alloc 0 1024\nfree 0\n", &recording);
    frag_policy_spec spec;
    frag_error error = {0};
    assert_true(frag_policy_spec_parse("best-fit", &spec, &error));
    frag_device_spec device = {.capacity_bytes = FRAG_UNLIMITED};
    uint64_t now_ns = (uint64_t)1 << 50;
    frag_context context = {.clock_ns = tick, .user = &now_ns};
    frag_run_result result;
    for (int is_timed = 0; is_timed < 2; is_timed++) {
        frag_run_options options = {.is_timed = is_timed != 0, .context = &context};
        assert_true(frag_run(
            &(frag_run_setup){&recording, &recording.traces[0], spec.ops, spec.values, &device},
            &options, &result, &error));
        assert_in_range(result.wall_ns, is_timed ? 1000 : 0, is_timed ? 100000 : 0);
    }
    frag_policy_spec_destroy(&spec);
    frag_recording_destroy(&recording);
}

static void tells_rounding_from_what_was_not_split_off(void **state)
{
    (void)state;
    /* 19.5 MiB in a 20 MiB segment: the remainder is too small to split off. */
    frag_run_result result =
        run("alloc 0 20447232\nalloc 1 100\n", "pytorch", FRAG_UNLIMITED, false);
    assert_int_equal(result.at_peak.unsplit_bytes, FRAG_MIB / 2);
    assert_int_equal(result.at_peak.rounding_bytes, 412);
}

static void counts_waiting_blocks_as_active_but_not_allocated(void **state)
{
    (void)state;
    frag_run_result result = run("alloc 0 1024\nfree 0 deferred\nalloc 1 2097152\ncomplete 0\n",
                                 "pytorch", FRAG_UNLIMITED, false);
    assert_int_equal(result.at_peak.waiting_bytes, 1024);
    assert_int_equal(result.replay.final.active_bytes, result.replay.final.allocated_bytes);
    assert_int_equal(result.replay.peak.active_bytes, 2097152 + 1024);
    assert_int_equal(result.replay.peak.allocated_bytes, 2097152);
}

static void a_full_device_makes_waiting_frees_arrive_early(void **state)
{
    (void)state;
    /* The second request fits only if the waiting block's segment is given back first. */
    frag_run_result result =
        run("alloc 0 20971520\nfree 0 deferred\nalloc 1 22020096\ncomplete 0\nfree 1\n", "pytorch",
            24 * FRAG_MIB, false);
    assert_false(result.replay.oom.has_happened);
    assert_int_equal(result.calls[FRAG_DEVICE_SYNCHRONIZE], 1);
    assert_int_equal(result.calls[FRAG_DEVICE_FREE], 1);
}

static void blocks_may_wait_for_a_stream_though_their_slot_is_taken_again(void **state)
{
    (void)state;
    static const char *const policies[] = {"pytorch",  "best-fit",   "first-fit",
                                           "next-fit", "worst-fit",  "tlsf",
                                           "buddy",    "size-class", "direct"};
    char text[4096] = "";
    for (int i = 0; i < 40; i++)
        strcat(text, "alloc 0 3000000\nuse 0 stream=3\nfree 0\n");
    strcat(text, "sync\nalloc 0 512\n");
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        frag_run_result result = run(text, policies[i], FRAG_UNLIMITED, false);
        assert_true(result.replay.peak.reserved_bytes >= 40 * (uint64_t)3000000);
        assert_int_equal(result.replay.final.active_bytes, result.replay.final.allocated_bytes);
    }
}

static void stops_at_the_first_oom_and_says_where(void **state)
{
    (void)state;
    frag_run_result result = run("alloc 0 2097152\nalloc 1 2097152\nalloc 2 67108864\nfree 0\n",
                                 "pytorch", 32 * FRAG_MIB, false);
    const frag_oom *oom = &result.replay.oom;
    assert_true(oom->has_happened);
    assert_int_equal(oom->event, 2);
    assert_int_equal(oom->requested_bytes, 64 * FRAG_MIB);
    assert_int_equal(oom->segment_bytes, 64 * FRAG_MIB);
    assert_int_equal(oom->free_bytes, 12 * FRAG_MIB);
    assert_int_equal(oom->largest_hole_bytes, 16 * FRAG_MIB);
    assert_int_equal(result.replay.events, 3);
}

static void goes_on_without_the_block_when_told_to_skip(void **state)
{
    (void)state;
    frag_run_result result =
        run("alloc 0 67108864\nalloc 1 1024\nfree 0\nfree 1\n", "pytorch", 32 * FRAG_MIB, true);
    assert_int_equal(result.replay.failed_requests, 1);
    assert_int_equal(result.replay.events, 4);
    assert_int_equal(result.replay.final.requested_bytes, 0);
}

static void takes_over_the_layout_from_before_the_trace(void **state)
{
    (void)state;
    const char *text = "segment_alloc 20971520 addr=0x200000000000 initial\n"
                       "alloc 0 1048576 addr=0x200000200000 block=2097152 initial\n"
                       "alloc 1 16777216\nfree 0\nfree 1\n";
    frag_run_result adopted = run(text, "pytorch", FRAG_UNLIMITED, false);
    assert_int_equal(adopted.replay.initial, FRAG_INITIAL_ADOPTED);
    assert_int_equal(adopted.replay.peak.reserved_bytes, 20 * FRAG_MIB);
    frag_run_result allocated = run(text, "best-fit", FRAG_UNLIMITED, false);
    assert_int_equal(allocated.replay.initial, FRAG_INITIAL_ALLOCATED);
    assert_int_equal(allocated.replay.peak.requested_bytes, 17 * FRAG_MIB);
}

static void ranges_from_before_the_trace_keep_apart(void **state)
{
    (void)state;
    /* Two that touch, one of another stream and a segment in what could have been their ends, where
     * the device would place its own reservations; 22 MiB are no whole pages of 20 MiB. */
    static const char text[] =
        "segment_map 23068672 addr=0x600000400000 initial\n"
        "alloc 0 2097152 addr=0x600000600000 block=2097152 initial\n"
        "segment_map 20971520 addr=0x600001a00000 initial\n"
        "alloc 1 2097152 addr=0x600001c00000 block=2097152 initial\n"
        "segment_map 20971520 addr=0x600003000000 stream=7 initial\n"
        "alloc 2 2097152 addr=0x600003000000 block=2097152 initial\n"
        "segment_alloc 20971520 addr=0x600004800000 stream=7 initial\n"
        "alloc 3 2097152 addr=0x600004800000 block=2097152 initial\n"
        "alloc 4 67108864\nalloc 5 67108864 stream=7\nalloc 6 67108864\nfree 4\nfree 0\n"
        "free 1\nempty_cache\nalloc 0 67108864\nfree 5\nfree 2\nempty_cache\nfree 6\n"
        "alloc 1 2000000000\nfree 1\nempty_cache\n";
    frag_recording recording = {0};
    frag_test_recording(text, &recording);
    frag_policy_spec spec;
    frag_error error = {0};
    assert_true(
        frag_policy_spec_parse("pytorch:version=2.6,expandable_segments=true", &spec, &error));
    static const uint64_t capacities[] = {FRAG_UNLIMITED, FRAG_GIB, 150 * FRAG_MIB};
    for (size_t i = 0; i < sizeof capacities / sizeof capacities[0]; i++) {
        frag_device_spec device = {.capacity_bytes = capacities[i]};
        frag_run_options options = {.check_every = 1, .is_oom_skipped = true};
        frag_run_result result;
        if (!frag_run(
                &(frag_run_setup){&recording, &recording.traces[0], spec.ops, spec.values, &device},
                &options, &result, &error))
            fail_msg("%s", error.sentence);
        assert_int_equal(result.replay.initial, FRAG_INITIAL_ADOPTED);
    }
    frag_policy_spec_destroy(&spec);
    frag_recording_destroy(&recording);
}

/* The queue of waiting frees: slot 0 waits, is over, is taken again and waits again behind slot 1.
 */
static void note_completed(void *context, const frag_note *note)
{
    frag_text *order = context;
    if (note->kind == FRAG_NOTE_FREE_COMPLETED)
        frag_text_add(order, "%llu ", (unsigned long long)note->bytes);
}

static void frees_are_delivered_in_the_order_in_which_they_came_to_wait(void **state)
{
    (void)state;
    frag_recording recording = {0};
    frag_test_recording("streams 0 1\nalloc 0 1000000\nalloc 1 1000001\nfree 0 stream=0 deferred\n"
                        "complete 0\nfree 1 deferred\nalloc 0 500000\nfree 0 stream=1 deferred\n"
                        "alloc 2 700000000\n",
                        &recording);
    frag_policy_spec spec;
    frag_error error = {0};
    assert_true(frag_policy_spec_parse("pytorch:version=2.9", &spec, &error));
    frag_sim_device_options device_options = {.capacity_bytes = 600 * FRAG_MIB};
    frag_device *device = frag_sim_device_create(&device_options);
    frag_replay *replay = frag_replay_create(
        &(frag_run_setup){&recording, &recording.traces[0], spec.ops, spec.values, NULL}, device,
        &error);
    assert_non_null(replay);
    frag_text order = {0};
    frag_replay_options options = {.stop_after = FRAG_UNLIMITED,
                                   .on_note = note_completed,
                                   .on_note_context = &order,
                                   .check_every = 1};
    assert_true(frag_replay_start(replay, &options, &error));
    assert_true(frag_replay_advance(replay, recording.traces[0].event_count, &error));
    assert_string_equal(order.bytes, "1000000 1000001 500000 ");
    frag_text_destroy(&order);
    frag_replay_destroy(replay);
    frag_device_destroy(device);
    frag_policy_spec_destroy(&spec);
    frag_recording_destroy(&recording);
}

static void requests_of_all_there_is_fail_as_any_other(void **state)
{
    (void)state;
    char text[4096] = "";
    for (int i = 0; i < 64; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "alloc %d 72057594037927935\n",
                 i);
    strcat(text, "alloc 64 64\n");
    static const char policy[] = "pytorch:version=2.6,expandable_segments=true";
    frag_run_result result = run(text, policy, FRAG_GIB << 10, true);
    assert_int_equal(result.replay.failed_requests, 64);
    /* Without a capacity they are served while there are addresses. */
    result = run(text, policy, FRAG_UNLIMITED, true);
    assert_int_equal(result.replay.failed_requests, 9);
    result = run(text, "pytorch", FRAG_UNLIMITED, true);
    assert_int_equal(result.replay.failed_requests, 49);
}

static void refuses_a_start_that_does_not_fit_together(void **state)
{
    (void)state;
    frag_recording recording = {0};
    frag_test_recording("segment_alloc 20971520 addr=0x200000000000 initial\n"
                        "alloc 0 1048576 addr=0x200000200000 block=2097152 initial\n"
                        "alloc 1 1048576 addr=0x200000300000 block=1048576 initial\n",
                        &recording);
    frag_policy_spec spec;
    frag_error error = {0};
    assert_true(frag_policy_spec_parse("pytorch", &spec, &error));
    frag_device_spec device = {.capacity_bytes = FRAG_UNLIMITED};
    frag_run_options options = {.check_every = 1};
    frag_run_result result;
    assert_false(frag_run(
        &(frag_run_setup){&recording, &recording.traces[0], spec.ops, spec.values, &device},
        &options, &result, &error));
    assert_non_null(strstr(error.sentence, "overlaps"));
    frag_policy_spec_destroy(&spec);
    frag_recording_destroy(&recording);
}

static void a_request_that_failed_when_recorded_is_tried_and_dropped(void **state)
{
    (void)state;
    frag_run_result result = run("alloc 0 1024\nalloc - 33554432 failed\nalloc 1 1024\n", "pytorch",
                                 FRAG_UNLIMITED, false);
    assert_int_equal(result.replay.peak.reserved_bytes, 34 * FRAG_MIB);
    assert_int_equal(result.replay.final.requested_bytes, 2048);
    assert_false(result.replay.oom.has_happened);
    result = run("alloc 0 1024\nalloc - 33554432 failed\nalloc 1 1024\n", "pytorch", 16 * FRAG_MIB,
                 false);
    assert_int_equal(result.replay.oom.event, 1);
}

static void a_request_that_failed_when_recorded_is_in_every_peak(void **state)
{
    (void)state;
    const char *text = "alloc 0 1024\nalloc - 33554432 failed\nalloc 1 1024\n";
    frag_recording recording = {0};
    frag_test_recording(text, &recording);
    assert_int_equal(recording.traces[0].stats.peak_requested_bytes, 2048);
    assert_int_equal(frag_trace_bound_bytes(&recording.traces[0]), 33554432 + 1024);
    frag_recording_destroy(&recording);
    frag_run_result result = run(text, "offline", FRAG_UNLIMITED, false);
    assert_int_equal(result.replay.peak.requested_bytes, 33554432 + 1024);
    assert_int_equal(result.replay.peak.allocated_bytes, 33554432 + 1024);
    assert_int_equal(result.replay.peak.active_bytes, 33554432 + 1024);
    assert_int_equal(result.replay.peak.reserved_bytes, 34 * FRAG_MIB);
    assert_int_equal(result.replay.final.requested_bytes, 2048);
    result = run(text, "pytorch", FRAG_UNLIMITED, false);
    assert_int_equal(result.replay.peak.reserved_bytes, 34 * FRAG_MIB);
    assert_int_equal(result.replay.at_reserved_peak.requested_bytes, 33554432 + 1024);
    assert_int_equal(result.at_peak.requested_bytes, 33554432 + 1024);
    /* Nothing was free when the segment for it was taken but the rest of the first one. */
    assert_true(result.replay.external_ratio_max < 1);
    /* Where it is not served it is in none. */
    result = run(text, "pytorch", 16 * FRAG_MIB, true);
    assert_int_equal(result.replay.peak.requested_bytes, 2048);
    assert_int_equal(result.replay.peak.reserved_bytes, 2 * FRAG_MIB);
}

static void offline_serves_the_rest_where_a_request_that_failed_has_no_room(void **state)
{
    (void)state;
    const char *text = "alloc 0 4194304\nalloc - 33554432 failed\nalloc 1 4194304\nfree 0\n"
                       "alloc 2 4194304\n";
    frag_run_result whole = run(text, "offline", FRAG_UNLIMITED, false);
    assert_false(whole.replay.oom.has_happened);
    assert_int_equal(whole.replay.peak.reserved_bytes, 36 * FRAG_MIB);
    frag_run_result rest = run(text, "offline", 8 * FRAG_MIB, true);
    assert_int_equal(rest.replay.failed_requests, 1);
    assert_int_equal(rest.replay.oom.event, 1);
    assert_int_equal(rest.replay.peak.reserved_bytes, 8 * FRAG_MIB);
}

/* A policy that takes memory page by page, and keeps what it has when a request fails. */
struct frag_policy {
    frag_device *device;
};

static size_t greedy_arena_bytes(const frag_policy_limits *limits, const frag_option_value *values)
{
    (void)limits;
    (void)values;
    return sizeof(frag_policy) + 128;
}

static frag_policy *greedy_create(const frag_policy_setup *setup, frag_error *error)
{
    (void)error;
    frag_policy *policy = frag_arena_take(setup->arena, 1, sizeof *policy);
    policy->device = setup->device;
    return policy;
}

static bool greedy_alloc(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    uint64_t address = 0;
    for (uint64_t at = 0; at < request->bytes; at += 2 * FRAG_MIB)
        if (frag_device_malloc(policy->device, 2 * FRAG_MIB, &address) != FRAG_DEVICE_OK)
            return false;
    *grant = (frag_grant){.address = address, .block_bytes = request->bytes, .handle = 0};
    return true;
}

static void greedy_free(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    (void)policy;
    (void)handle;
    (void)stream;
}

static void greedy_walk(const frag_policy *policy, frag_span_visitor *visit, void *context)
{
    (void)policy;
    (void)visit;
    (void)context;
}

static const frag_policy_ops greedy_ops = {
    .name = "greedy",
    .arena_bytes = greedy_arena_bytes,
    .create = greedy_create,
    .alloc = greedy_alloc,
    .free = greedy_free,
    .walk = greedy_walk,
};

static frag_run_result run_greedy(const char *text, bool is_oom_skipped)
{
    frag_recording recording = {0};
    frag_test_recording(text, &recording);
    frag_device_spec device = {.capacity_bytes = 16 * FRAG_MIB};
    frag_run_options options = {.is_oom_skipped = is_oom_skipped, .is_layout_skipped = true};
    frag_run_result result;
    frag_error error = {0};
    if (!frag_run(&(frag_run_setup){&recording, &recording.traces[0], &greedy_ops, NULL, &device},
                  &options, &result, &error))
        fail_msg("%s", error.sentence);
    frag_recording_destroy(&recording);
    return result;
}

static bool greedy_check(const frag_policy *policy, frag_error *error)
{
    (void)policy;
    return frag_fail(error, FRAG_E_INPUT, "two blocks overlap");
}

/* --check N asks the policy itself every N events, and nobody asks without it. */
static void what_a_policy_finds_out_about_itself_ends_the_run(void **state)
{
    (void)state;
    frag_policy_ops ops = greedy_ops;
    ops.check = greedy_check;
    for (uint64_t every = 0; every <= 3; every++) {
        frag_recording recording = {0};
        frag_test_recording("alloc 0 4096\nalloc 1 4096\n", &recording);
        frag_device_spec device = {.capacity_bytes = FRAG_UNLIMITED};
        frag_run_options options = {.check_every = every, .is_layout_skipped = true};
        frag_run_result result;
        frag_error error = {0};
        bool ok = frag_run(&(frag_run_setup){&recording, &recording.traces[0], &ops, NULL, &device},
                           &options, &result, &error);
        assert_int_equal(ok, every == 0 || every == 3);
        if (!ok) {
            assert_non_null(strstr(error.sentence, "contract: two blocks overlap"));
            assert_int_equal(atoi(error.sentence + strlen("--check after event ")), every - 1);
        }
        frag_recording_destroy(&recording);
    }
}

static void what_is_reserved_for_a_request_that_fails_is_in_no_peak(void **state)
{
    (void)state;
    const char *text = "alloc 0 4194304\nalloc 1 67108864\nfree 0\n";
    frag_run_result result = run_greedy(text, false);
    assert_true(result.replay.oom.has_happened);
    assert_int_equal(result.replay.peak.reserved_bytes, 4 * FRAG_MIB);
    assert_int_equal(result.replay.reserved_at_event, 0);
    assert_int_equal(result.replay.final.reserved_bytes, 16 * FRAG_MIB);
    /* A run that goes on holds it while it serves what follows. */
    result = run_greedy(text, true);
    assert_int_equal(result.replay.peak.reserved_bytes, 16 * FRAG_MIB);
}

static void empty_cache_gives_whole_segments_back(void **state)
{
    (void)state;
    frag_run_result result = run("alloc 0 2097152\nfree 0\nempty_cache\nalloc 1 100\n", "pytorch",
                                 FRAG_UNLIMITED, false);
    assert_int_equal(result.replay.peak.reserved_bytes, 20 * FRAG_MIB);
    assert_int_equal(result.replay.final.reserved_bytes, 2 * FRAG_MIB);
}

static void means_are_sums_over_events(void **state)
{
    (void)state;
    frag_run_result result =
        run("alloc 0 1024\nalloc 1 1024\nfree 0\nfree 1\n", "pytorch", FRAG_UNLIMITED, false);
    assert_int_equal(result.replay.requested_sum.low, 1024 + 2048 + 1024 + 0);
    assert_int_equal(result.replay.reserved_sum.low, 4 * 2 * FRAG_MIB);
}

/* ---- the least capacity */

/* Counts device calls, as one who watches beside the notes. */
static void count_call(void *context, const frag_device_report *report)
{
    *(uint64_t *)context += frag_device_call_moves_memory(report->call) ? 1 : 0;
}

static void count_note(void *context, const frag_note *note)
{
    *(uint64_t *)context += note->kind == FRAG_NOTE_SEGMENT_ALLOC ? 1 : 0;
}

static void in_steps_it_does_the_same_and_can_be_looked_at(void **state)
{
    (void)state;
    static const char text[] = "alloc 0 1000\nalloc 1 3145728\nfree 0\nalloc 2 30000000\n"
                               "alloc 3 99999999\nfree 1\nempty_cache\n";
    frag_recording recording = {0};
    frag_policy_spec spec;
    frag_error error = {0};
    frag_test_recording(text, &recording);
    assert_true(frag_policy_spec_parse("pytorch", &spec, &error));
    frag_sim_device_options device_options = {.capacity_bytes = 64 * FRAG_MIB};
    frag_device *device = frag_sim_device_create(&device_options);
    uint64_t calls = 0;
    uint64_t segments = 0;
    device->watch.on_call = count_call;
    device->watch.on_call_context = &calls;
    frag_replay *replay = frag_replay_create(
        &(frag_run_setup){&recording, &recording.traces[0], spec.ops, spec.values, NULL}, device,
        &error);
    assert_non_null(replay);
    frag_replay_options options = {.is_oom_skipped = true,
                                   .stop_after = FRAG_UNLIMITED,
                                   .on_note = count_note,
                                   .on_note_context = &segments};
    frag_replay_result result;
    assert_true(frag_replay_start(replay, &options, &error));
    assert_true(frag_replay_advance(replay, 2, &error));
    assert_int_equal(calls, 2);
    assert_int_equal(segments, 2);
    assert_true(frag_replay_advance(replay, 2, &error)); /* nothing is left to do */
    assert_true(frag_replay_advance(replay, 4, &error));
    assert_string_equal(frag_replay_oom_message(replay), "");
    frag_decomposition parts;
    frag_replay_decompose(replay, &parts);
    assert_int_equal(parts.requested_bytes, 3145728 + 30000000);
    assert_true(frag_replay_advance(replay, 5, &error));
    assert_non_null(strstr(frag_replay_oom_message(replay), "out of memory"));
    assert_true(frag_replay_advance(replay, UINT64_MAX, &error));
    frag_replay_finish(replay, &result);
    frag_replay_destroy(replay);
    frag_device_destroy(device);
    frag_policy_spec_destroy(&spec);
    frag_recording_destroy(&recording);
    frag_run_result whole = run(text, "pytorch", 64 * FRAG_MIB, true);
    assert_int_equal(result.events, whole.replay.events);
    assert_int_equal(result.failed_requests, whole.replay.failed_requests);
    assert_memory_equal(&result.peak, &whole.replay.peak, sizeof result.peak);
    assert_memory_equal(&result.final, &whole.replay.final, sizeof result.final);
    assert_memory_equal(&result.reserved_sum, &whole.replay.reserved_sum,
                        sizeof result.reserved_sum);
}

/* It survives, and a page less does not; where larger devices never fail, it is the least. */
static void check_border(const frag_run_setup *setup, uint64_t events,
                         const frag_capacity_result *least)
{
    frag_capacity_result border;
    frag_error error = {0};
    assert_true(frag_find_border_capacity(setup, events, 1024, NULL, &border, &error));
    assert_true(border.is_found);
    assert_true(border.capacity_bytes >= least->capacity_bytes);
    assert_int_equal(border.enough_bytes, least->enough_bytes);
    assert_memory_equal(&border.peak, &least->peak, sizeof border.peak);
    if (least->is_monotone || events == UINT64_MAX)
        assert_int_equal(border.capacity_bytes, least->capacity_bytes);
    for (int fails = 0; fails < 2; fails++) {
        const frag_run_options options = {.is_layout_skipped = true};
        frag_device_spec device = {.capacity_bytes = border.capacity_bytes};
        frag_run_setup at = *setup;
        frag_run_result run_result;
        at.device = &device;
        device.capacity_bytes -= fails ? 2 * FRAG_MIB : 0;
        assert_true(frag_run(&at, &options, &run_result, &error));
        assert_int_equal(run_result.replay.oom.has_happened, fails);
    }
}

static void fail_device(void *context, const frag_device_report *report)
{
    frag_device *device = context;
    device->has_failed = device->has_failed || report->bytes > 20000000;
    strcpy(device->failure, "it broke");
}

/* Watched, so that a call of each event is seen at once. */
static void a_device_that_fails_ends_the_run_at_that_event(void **state)
{
    (void)state;
    frag_recording recording = {0};
    frag_policy_spec spec;
    frag_error error = {0};
    frag_test_recording("alloc 0 1000\nfree 0\nalloc 1 30000000\nalloc 2 1000\n", &recording);
    assert_true(frag_policy_spec_parse("pytorch", &spec, &error));
    frag_sim_device_options device_options = {.capacity_bytes = 64 * FRAG_MIB};
    frag_device *device = frag_sim_device_create(&device_options);
    uint64_t segments = 0;
    device->watch.on_call = fail_device;
    device->watch.on_call_context = device;
    frag_replay *replay = frag_replay_create(
        &(frag_run_setup){&recording, &recording.traces[0], spec.ops, spec.values, NULL}, device,
        &error);
    frag_replay_options options = {
        .stop_after = FRAG_UNLIMITED, .on_note = count_note, .on_note_context = &segments};
    assert_true(frag_replay_start(replay, &options, &error));
    assert_false(frag_replay_advance(replay, UINT64_MAX, &error));
    assert_string_equal(error.sentence, "the run ended at event 2: it broke");
    frag_replay_destroy(replay);
    frag_device_destroy(device);
    frag_policy_spec_destroy(&spec);
    frag_recording_destroy(&recording);
}

static frag_capacity_result least(const char *text, const char *policy)
{
    frag_recording recording = {0};
    frag_test_recording(text, &recording);
    frag_policy_spec spec;
    frag_error error = {0};
    assert_true(frag_policy_spec_parse(policy, &spec, &error));
    frag_device_spec device = {.capacity_bytes = FRAG_UNLIMITED};
    frag_capacity_result result;
    assert_true(frag_find_capacity(
        &(frag_run_setup){&recording, &recording.traces[0], spec.ops, spec.values, &device}, NULL,
        NULL, &result, &error));
    /* Every capacity, one by one, must agree: the search is only a faster way to the same answer.
     */
    uint64_t first = 0;
    uint64_t last_failing = 0;
    uint64_t most =
        result.enough_bytes > result.capacity_bytes ? result.enough_bytes : result.capacity_bytes;
    for (uint64_t capacity = 2 * FRAG_MIB; capacity <= most + 8 * FRAG_MIB;
         capacity += 2 * FRAG_MIB) {
        frag_run_options options = {.is_layout_skipped = true};
        frag_run_result run_result;
        device.capacity_bytes = capacity;
        assert_true(frag_run(
            &(frag_run_setup){&recording, &recording.traces[0], spec.ops, spec.values, &device},
            &options, &run_result, &error));
        if (run_result.replay.oom.has_happened)
            last_failing = capacity;
        else if (first == 0)
            first = capacity;
    }
    assert_int_equal(result.capacity_bytes, first);
    assert_int_equal(result.is_monotone, last_failing < first);
    const frag_run_setup setup = {&recording, &recording.traces[0], spec.ops, spec.values, &device};
    device.capacity_bytes = FRAG_UNLIMITED;
    for (uint64_t tries = 0; tries < 4; tries++)
        check_border(&setup, tries * (recording.traces[0].event_count + 1), &result);
    check_border(&setup, UINT64_MAX, &result);
    if (!result.is_monotone)
        assert_int_equal(result.failing_above_bytes, last_failing);
    /* So must the search for the least alone, which is given up exactly where it should be. */
    for (uint64_t last = first - 4 * FRAG_MIB; last <= first + 2 * FRAG_MIB; last += FRAG_MIB) {
        frag_capacity_result short_way;
        device.capacity_bytes = FRAG_UNLIMITED;
        assert_true(frag_find_least_capacity(
            &(frag_run_setup){&recording, &recording.traces[0], spec.ops, spec.values, &device},
            NULL, last, NULL, &short_way, &error));
        assert_int_equal(short_way.is_found, last >= first);
        assert_int_equal(short_way.is_given_up, last < first);
        assert_int_equal(short_way.capacity_bytes, last >= first ? first : 0);
        assert_true(frag_find_least_capacity(
            &(frag_run_setup){&recording, &recording.traces[0], spec.ops, spec.values, &device},
            NULL, FRAG_UNLIMITED, NULL, &short_way, &error));
        assert_int_equal(short_way.capacity_bytes, first);
    }
    frag_policy_spec_destroy(&spec);
    frag_recording_destroy(&recording);
    return result;
}

static void finds_the_least_capacity_and_the_oom_below_it(void **state)
{
    (void)state;
    const char *text =
        "alloc 0 2097152\nalloc 1 31457280\nfree 1\nalloc 2 33554432\nfree 0\nfree 2\n";
    frag_capacity_result result = least(text, "pytorch");
    /* 20 MiB for the first; the cached 30 MiB can be given back for the 32. */
    assert_int_equal(result.capacity_bytes, 52 * FRAG_MIB);
    assert_true(result.has_below);
    assert_int_equal(result.below.event, 3);
    assert_true(result.is_monotone);
}

/* Its memory blocks are an eighth of a small device, so that a larger one may not be enough. */
static void
a_policy_that_asks_for_the_capacity_may_fail_where_an_ample_device_needs_less(void **state)
{
    (void)state;
    frag_capacity_result result =
        least("alloc 0 7258624\nalloc 1 12597760\nalloc 2 12709376\nalloc 3 26624\n"
              "alloc 4 15257600\nalloc 5 3189571\nalloc 6 7270400\nalloc 7 5519360\n"
              "alloc 8 15257600\n",
              "vma");
    assert_true(result.is_found);
    assert_false(result.is_monotone);
    assert_true(result.failing_above_bytes > result.enough_bytes);
}

static void agrees_with_trying_every_capacity(void **state)
{
    (void)state;
    static const char *const policies[] = {
        "pytorch",
        "best-fit",
        "first-fit:space=segments",
        "buddy",
        "tlsf",
        "pytorch:max_split_size_mb=24",
        "tf-bfc",
        "cupy",
        "pytorch:expandable_segments=true",
        "vma",
        "rmm-pool",
        "best-fit:grow=30MB",
        "pytorch:version=2.12,per_process_memory_fraction=0.6",
        "pytorch:version=2.15,per_process_memory_fraction=0.9,expandable_segments=true",
        "pytorch:version=2.11,per_process_memory_fraction=0.7,garbage_collection_threshold=0.5",
        "pytorch:version=2.13,per_process_memory_fraction=0.9,garbage_collection_threshold=0.8,"
        "max_split_size_mb=21",
        "pytorch:per_process_memory_fraction=0.8,garbage_collection_threshold=0.6,"
        "expandable_segments=true"};
    uint32_t random = 7;
    for (int round = 0; round < 12; round++) {
        char text[8192] = "";
        size_t length = 0;
        bool is_live[12] = {false};
        for (int i = 0; i < 60; i++) {
            random = random * 1664525u + 1013904223u;
            uint32_t slot = (random >> 10) % 12;
            uint32_t bytes = 1 + ((random >> 16) % 64) * ((random >> 24) % 8 == 0 ? 600000 : 90000);
            length += (size_t)(is_live[slot] ? snprintf(text + length, sizeof text - length,
                                                        "free %u\n", slot)
                                             : snprintf(text + length, sizeof text - length,
                                                        "alloc %u %u\n", slot, bytes));
            is_live[slot] = !is_live[slot];
        }
        for (size_t p = 0; p < sizeof policies / sizeof policies[0]; p++)
            least(text, policies[p]);
    }
}

/* Blocks so large that a range of addresses ends before the capacity does, and others begin. */
static void agrees_with_trying_every_capacity_where_ranges_end(void **state)
{
    (void)state;
    uint32_t random = 11;
    for (int round = 0; round < 40; round++) {
        char text[8192] = "";
        size_t length = 0;
        bool is_live[8] = {false};
        for (int i = 0; i < 80; i++) {
            random = random * 1664525u + 1013904223u;
            uint32_t slot = (random >> 10) % 8;
            uint32_t mib = 1 + (random >> 16) % 60;
            length += (size_t)(is_live[slot] ? snprintf(text + length, sizeof text - length,
                                                        "free %u\n", slot)
                                             : snprintf(text + length, sizeof text - length,
                                                        "alloc %u %u\n", slot, mib << 20));
            is_live[slot] = !is_live[slot];
        }
        least(text, "pytorch:expandable_segments=true");
    }
}

static bool always_cancels(void *user)
{
    return user != NULL;
}

static void a_search_ends_when_told_where_no_run_comes_to_its_first_event(void **state)
{
    (void)state;
    frag_recording recording;
    frag_policy_spec spec;
    frag_capacity_result found;
    frag_error error = {0};
    const frag_context context = {.is_cancelled = always_cancels, .user = &spec};
    const frag_device_spec device = {.capacity_bytes = FRAG_UNLIMITED, .page_bytes = 1};
    assert_true(frag_policy_spec_parse("mxnet-round", &spec, &error));
    frag_test_recording("alloc 0 9000000 initial\nfree 0\n", &recording);
    const frag_run_setup setup = {&recording, recording.traces, spec.ops, spec.values, &device};
    assert_true(frag_find_capacity(&setup, NULL, &context, &found, &error) && found.runs < 10);
    frag_policy_spec_destroy(&spec);
    frag_recording_destroy(&recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_search_ends_when_told_where_no_run_comes_to_its_first_event),
        cmocka_unit_test(parts_at_the_peak_add_up_to_reserved),
        cmocka_unit_test(a_request_that_names_its_place_gets_it),
        cmocka_unit_test(a_place_may_lie_right_behind_the_one_before),
        cmocka_unit_test(places_are_named_between_requests_of_any_kind),
        cmocka_unit_test(a_timed_run_counts_from_its_start),
        cmocka_unit_test(tells_rounding_from_what_was_not_split_off),
        cmocka_unit_test(counts_waiting_blocks_as_active_but_not_allocated),
        cmocka_unit_test(a_full_device_makes_waiting_frees_arrive_early),
        cmocka_unit_test(blocks_may_wait_for_a_stream_though_their_slot_is_taken_again),
        cmocka_unit_test(stops_at_the_first_oom_and_says_where),
        cmocka_unit_test(goes_on_without_the_block_when_told_to_skip),
        cmocka_unit_test(takes_over_the_layout_from_before_the_trace),
        cmocka_unit_test(ranges_from_before_the_trace_keep_apart),
        cmocka_unit_test(frees_are_delivered_in_the_order_in_which_they_came_to_wait),
        cmocka_unit_test(requests_of_all_there_is_fail_as_any_other),
        cmocka_unit_test(refuses_a_start_that_does_not_fit_together),
        cmocka_unit_test(a_request_that_failed_when_recorded_is_tried_and_dropped),
        cmocka_unit_test(a_request_that_failed_when_recorded_is_in_every_peak),
        cmocka_unit_test(offline_serves_the_rest_where_a_request_that_failed_has_no_room),
        cmocka_unit_test(what_a_policy_finds_out_about_itself_ends_the_run),
        cmocka_unit_test(what_is_reserved_for_a_request_that_fails_is_in_no_peak),
        cmocka_unit_test(empty_cache_gives_whole_segments_back),
        cmocka_unit_test(means_are_sums_over_events),
        cmocka_unit_test(in_steps_it_does_the_same_and_can_be_looked_at),
        cmocka_unit_test(a_device_that_fails_ends_the_run_at_that_event),
        cmocka_unit_test(finds_the_least_capacity_and_the_oom_below_it),
        cmocka_unit_test(
            a_policy_that_asks_for_the_capacity_may_fail_where_an_ample_device_needs_less),
        cmocka_unit_test(agrees_with_trying_every_capacity),
        cmocka_unit_test(agrees_with_trying_every_capacity_where_ranges_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
