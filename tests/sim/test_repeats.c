/* Tests of repeats.c and replay_repeats.c: stretches that repeat are found where they are, and a
 * run that leaves steps out is the run that replays them all, for every policy, wherever it stops.
 */
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
#include "base/memory.h"
#include "base/text.h"
#include "sim/policy_engine.h"
#include "sim/rows/result.h"
#include "sim/run.h"
#include "tests/support/text_recording.h"
#include "tests/support/xorshift.h"

enum {
    SLOTS = 400,
    WEIGHTS = 40,
    CACHED = 8,
    STEP_BLOCKS = 90,
    KEPT = 3,
    STEPS = 40,
    STEP_EVENTS = 182,
    BEFORE = WEIGHTS + 2 * CACHED
};

static uint64_t draw(uint64_t *random, uint64_t below)
{
    return xorshift_next(random) % below;
}

typedef struct program {
    frag_text text;
    uint64_t random;
    bool is_live[SLOTS];
    uint64_t kept[KEPT]; /* slots of the step before */
    size_t kept_count;
    uint64_t sizes[STEP_BLOCKS];
    uint64_t ends[STEP_BLOCKS]; /* how many allocs later a block is freed; 0: in the next step */
} program;

static uint64_t draw_size(uint64_t *random)
{
    static const uint64_t largest[] = {2048, 1 << 20, 6 << 20, 40 << 20};
    return (1 + draw(random, 64)) * largest[draw(random, 4)] / 64;
}

/* Any free slot: those of one step are not those of the next. */
static uint64_t alloc(program *made, uint64_t bytes)
{
    uint64_t slot = draw(&made->random, SLOTS);
    while (made->is_live[slot])
        slot = (slot + 1) % SLOTS;
    made->is_live[slot] = true;
    frag_text_add(&made->text, "alloc %llu %llu stream=%llu\n", (unsigned long long)slot,
                  (unsigned long long)bytes, (unsigned long long)(bytes % 3 == 0));
    return slot;
}

static void give_back(program *made, uint64_t slot)
{
    made->is_live[slot] = false;
    frag_text_add(&made->text, "free %llu\n", (unsigned long long)slot);
}

/* The first step has nothing of one before to give back, and is so no repeat. */
static void add_step(program *made, int number)
{
    uint64_t slots[STEP_BLOCKS];
    uint64_t kept[KEPT];
    size_t kept_count = 0;
    frag_text_add(&made->text, "mark \"step %d\" begin\n", number);
    for (uint64_t i = 0; i < STEP_BLOCKS; i++) {
        slots[i] = alloc(made, made->sizes[i]);
        for (uint64_t k = 0; k <= i; k++)
            if (made->ends[k] != 0 && k + made->ends[k] == i + 1)
                give_back(made, slots[k]);
    }
    for (uint64_t i = 0; i < STEP_BLOCKS; i++) {
        if (made->ends[i] == 0)
            kept[kept_count++] = slots[i];
        else if (i + made->ends[i] > STEP_BLOCKS)
            give_back(made, slots[i]);
    }
    for (size_t i = 0; i < made->kept_count; i++)
        give_back(made, made->kept[i]);
    frag_text_add(&made->text, "mark \"step %d\" end\n", number);
    memcpy(made->kept, kept, kept_count * sizeof *kept);
    made->kept_count = kept_count;
}

/* Weights, steps that are all alike, and an end that uses what they left, and needs more. What is
 * free before the steps may be used by them or not. With an odd seed each
 * step keeps some blocks until the next has been made. */
static void draw_program(uint64_t seed, frag_recording *recording)
{
    program made = {.random = seed};
    uint64_t weights[WEIGHTS];
    uint64_t cached[CACHED];
    for (size_t i = 0; i < STEP_BLOCKS; i++) {
        made.sizes[i] = draw_size(&made.random);
        bool is_kept = seed % 2 == 1 && i % (STEP_BLOCKS / KEPT) == 0;
        made.ends[i] = is_kept ? 0 : 1 + draw(&made.random, STEP_BLOCKS);
    }
    for (size_t i = 0; i < WEIGHTS; i++)
        weights[i] = alloc(&made, draw_size(&made.random));
    for (size_t i = 0; i < CACHED; i++)
        cached[i] = alloc(&made, (41 + draw(&made.random, 20)) << 20);
    for (size_t i = 0; i < CACHED; i++)
        give_back(&made, cached[i]);
    for (int i = 1; i <= STEPS; i++)
        add_step(&made, i);
    for (size_t i = 0; i < WEIGHTS; i++) {
        alloc(&made, i % 8 == 0 ? (60 + i) << 20 : draw_size(&made.random));
        give_back(&made, weights[i]);
        if (i < made.kept_count)
            give_back(&made, made.kept[i]);
    }
    frag_test_recording(made.text.bytes, recording);
    frag_text_destroy(&made.text);
}

static void stretches_that_repeat_are_found(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 20; seed++) {
        frag_recording recording = {0};
        frag_repeats repeats;
        draw_program(seed, &recording);
        frag_trace *trace = &recording.traces[0];
        frag_repeats_find(trace, &repeats);
        assert_int_equal(repeats.count, 1);
        frag_repeat found = repeats.items[0];
        assert_int_equal(found.period, STEP_EVENTS);
        /* From the step on whose frees are those of a whole step before. */
        assert_true(found.first <= BEFORE + 2 * STEP_EVENTS);
        assert_true(found.end >= BEFORE + STEPS * STEP_EVENTS - KEPT);
        assert_true(found.end <= BEFORE + STEPS * STEP_EVENTS + 2);
        frag_repeats_destroy(&repeats);
        /* One other size in the middle leaves the longer part, or none that is worth it. */
        uint64_t at = found.first + 12 * found.period;
        while (trace->events[at].op != FRAG_OP_ALLOC)
            at++;
        ((frag_event *)(uintptr_t)&trace->events[at])->bytes += 1;
        frag_repeats_find(trace, &repeats);
        for (size_t i = 0; i < repeats.count; i++)
            assert_true(repeats.items[i].end <= at || repeats.items[i].first + 1 > at ||
                        repeats.items[i].first + repeats.items[i].period > at);
        frag_repeats_destroy(&repeats);
        frag_recording_destroy(&recording);
    }
}

/* So many steps of 64 events, after and before others that repeat nothing. */
static size_t count_found(unsigned steps)
{
    enum { BLOCKS = 32, OTHERS = 1200 };
    frag_text text = {0};
    frag_recording recording = {0};
    frag_repeats repeats;
    uint64_t random = 7;
    for (unsigned i = 0; i < OTHERS; i++)
        frag_text_add(&text, "alloc 0 %u\nfree 0\n", 1000 + i);
    for (unsigned step = 0; step < steps; step++) {
        uint64_t sizes = 7;
        for (unsigned i = 0; i < BLOCKS; i++)
            frag_text_add(&text, "alloc %u %u\n", i, 1 + (unsigned)draw(&sizes, 100000));
        for (unsigned i = 0; i < BLOCKS; i++)
            frag_text_add(&text, "free %u\n", i);
    }
    for (unsigned i = 0; i < OTHERS / 2; i++)
        frag_text_add(&text, "alloc 0 %u\nfree 0\n", 200000 + (unsigned)draw(&random, 1000000));
    frag_test_recording(text.bytes, &recording);
    frag_repeats_find(&recording.traces[0], &repeats);
    size_t count = repeats.count;
    frag_repeats_destroy(&repeats);
    frag_recording_destroy(&recording);
    frag_text_destroy(&text);
    return count;
}

/* All but two steps: 1,024 events. */
static void it_is_worth_it_from_so_many_events_on(void **state)
{
    (void)state;
    assert_int_equal(count_found(17), 0);
    assert_int_equal(count_found(18), 1);
}

/* ---- runs */

static char *row_of(const frag_recording *recording, const frag_policy_spec *spec,
                    const frag_device_spec *device, const frag_repeats *repeats)
{
    char *text = NULL;
    size_t length = 0;
    frag_error error = {0};
    frag_run_result result;
    frag_run_options options = {.repeats = repeats};
    if (!frag_run(
            &(frag_run_setup){recording, &recording->traces[0], spec->ops, spec->values, device},
            &options, &result, &error))
        return frag_copy_text(error.sentence);
    FILE *stream = open_memstream(&text, &length);
    frag_row row = {.tool_version = "",
                    .tool_commit = "",
                    .trace_name = "",
                    .trace = &recording->traces[0],
                    .ops = spec->ops,
                    .values = spec->values,
                    .label = "",
                    .device = device,
                    .result = &result};
    frag_result_write(FRAG_RESULT_JSONL, stream, &row);
    fclose(stream);
    return text;
}

typedef struct lines {
    char **items;
    size_t count;
    size_t capacity;
} lines;

static void add_line(void *context, const frag_span *span, const frag_block_view *block)
{
    lines *into = context;
    frag_text line = {0};
    frag_text_add(&line, "%llx %d %llu %u %llu", (unsigned long long)span->address, (int)span->kind,
                  (unsigned long long)span->bytes, block != NULL ? block->slot : 0,
                  (unsigned long long)(block != NULL ? block->requested_bytes : 0));
    *FRAG_APPEND(into->items, into->count, into->capacity) = line.bytes;
}

static void look(void *context, const frag_replay *replay, const frag_replay_result *result)
{
    (void)result;
    frag_replay_walk(replay, add_line, context);
}

static int compare_lines(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Where every block of every slot lies after so many events. */
static char *layout_of(const frag_recording *recording, const frag_policy_spec *spec,
                       const frag_device_spec *device, const frag_repeats *repeats,
                       uint64_t stop_after)
{
    lines found = {0};
    frag_text text = {0};
    frag_error error = {0};
    frag_replay_options options = {.stop_after = stop_after, .repeats = repeats};
    if (!frag_run_look(
            &(frag_run_setup){recording, &recording->traces[0], spec->ops, spec->values, device},
            &options, look, &found, &error))
        return frag_copy_text(error.sentence);
    qsort(found.items, found.count, sizeof *found.items, compare_lines);
    frag_text_add(&text, "%zu\n", found.count);
    for (size_t i = 0; i < found.count; i++) {
        frag_text_add(&text, "%s\n", found.items[i]);
        frag_free(found.items[i]);
    }
    frag_free(found.items);
    return text.bytes;
}

static void compare_runs(const frag_recording *recording, const char *policy, uint64_t *random)
{
    frag_policy_spec spec;
    frag_error error = {0};
    frag_repeats repeats;
    const frag_trace *trace = &recording->traces[0];
    frag_repeats_find(trace, &repeats);
    if (!frag_policy_spec_parse(policy, &spec, &error))
        fail_msg("%s: %s", policy, error.sentence);
    for (int i = 0; i < 3; i++) {
        uint64_t peak = trace->stats.peak_requested_bytes;
        frag_device_spec device = {.capacity_bytes =
                                       i == 0 ? FRAG_UNLIMITED : peak * (9 + draw(random, 8)) / 8};
        char *whole = row_of(recording, &spec, &device, NULL);
        char *skipped = row_of(recording, &spec, &device, &repeats);
        if (strcmp(whole, skipped) != 0)
            fail_msg("%s, capacity %d:\n%s%s", policy, i, whole, skipped);
        free(whole);
        free(skipped);
        uint64_t stop_after = i == 0 ? trace->event_count : draw(random, trace->event_count);
        whole = layout_of(recording, &spec, &device, NULL, stop_after);
        skipped = layout_of(recording, &spec, &device, &repeats, stop_after);
        if (strcmp(whole, skipped) != 0)
            fail_msg("%s, after %llu events: the layouts differ", policy,
                     (unsigned long long)stop_after);
        free(whole);
        free(skipped);
    }
    frag_repeats_destroy(&repeats);
    frag_policy_spec_destroy(&spec);
}

static void runs_that_leave_steps_out_are_the_same(void **state)
{
    (void)state;
    static const char *const more[] = {"pytorch:expandable_segments=true",
                                       "pytorch:max_split_size_mb=24",
                                       "pytorch:garbage_collection_threshold=0.6",
                                       "pytorch:version=2.4",
                                       "pytorch:version=2.12",
                                       "best-fit:space=segments",
                                       "worst-fit:space=segments",
                                       "first-fit:space=segments,max_split=8MiB"};
    uint64_t random = 1;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        frag_recording recording = {0};
        draw_program(seed, &recording);
        for (size_t i = 0; frag_policy_table[i] != NULL; i++)
            compare_runs(&recording, frag_policy_table[i]->name, &random);
        for (size_t i = 0; i < sizeof more / sizeof more[0]; i++)
            compare_runs(&recording, more[i], &random);
        frag_recording_destroy(&recording);
    }
}

/* Settings under which the age of free blocks and the order of their records decide. */
static void draw_settings(uint64_t *random, frag_text *policy)
{
    static const char *const versions[] = {"2.4", "2.9", "2.12", "2.12", "2.15"};
    frag_text_add(policy, "pytorch:version=%s", versions[draw(random, 5)]);
    if (draw(random, 4) != 0)
        frag_text_add(policy, ",per_process_memory_fraction=0.%u,garbage_collection_threshold=0.%u",
                      70 + (unsigned)draw(random, 30), 30 + (unsigned)draw(random, 70));
    if (draw(random, 3) == 0)
        frag_text_add(policy, ",expandable_segments=true");
    if (draw(random, 3) == 0)
        frag_text_add(policy, ",max_split_size_mb=%u", 20 + (unsigned)draw(random, 20));
}

static void runs_with_drawn_settings_are_the_same(void **state)
{
    (void)state;
    uint64_t random = 7;
    for (uint64_t seed = 10; seed < 26; seed++) {
        frag_recording recording = {0};
        draw_program(seed, &recording);
        for (int i = 0; i < 12; i++) {
            frag_text policy = {0};
            draw_settings(&random, &policy);
            compare_runs(&recording, policy.bytes, &random);
            frag_text_destroy(&policy);
        }
        frag_recording_destroy(&recording);
    }
}

/* ---- the least capacity */

static char *capacity_of(const frag_recording *recording, const frag_policy_spec *spec,
                         const frag_repeats *repeats)
{
    frag_text text = {0};
    frag_error error = {0};
    frag_capacity_result found;
    frag_device_spec device = {.capacity_bytes = FRAG_UNLIMITED};
    if (!frag_find_capacity(
            &(frag_run_setup){recording, &recording->traces[0], spec->ops, spec->values, &device},
            repeats, NULL, &found, &error))
        return frag_copy_text(error.sentence);
    frag_text_add(
        &text,
        "%d %llu, below %d %llu %llu %llu %llu, above %d %llu, enough %llu %llu, peak %llu %llu, "
        "%llu runs",
        found.is_found, (unsigned long long)found.capacity_bytes, found.has_below,
        (unsigned long long)found.below.event, (unsigned long long)found.below.free_bytes,
        (unsigned long long)found.below.largest_hole_bytes,
        (unsigned long long)found.below.total_hole_bytes, found.is_monotone,
        (unsigned long long)found.failing_above_bytes, (unsigned long long)found.enough_bytes,
        (unsigned long long)found.is_capacity_read, (unsigned long long)found.peak.reserved_bytes,
        (unsigned long long)found.peak.allocated_bytes, (unsigned long long)found.runs);
    return text.bytes;
}

static void compare_capacities(const frag_recording *recording, const char *policy)
{
    frag_policy_spec spec;
    frag_error error = {0};
    frag_repeats repeats;
    frag_repeats_find(&recording->traces[0], &repeats);
    assert_true(frag_policy_spec_parse(policy, &spec, &error));
    char *whole = capacity_of(recording, &spec, NULL);
    char *skipped = capacity_of(recording, &spec, &repeats);
    if (strcmp(whole, skipped) != 0)
        fail_msg("%s:\n%s\n%s", policy, whole, skipped);
    frag_free(whole);
    frag_free(skipped);
    frag_repeats_destroy(&repeats);
    frag_policy_spec_destroy(&spec);
}

static void the_least_capacity_is_the_same(void **state)
{
    (void)state;
    static const char *const names[] = {"pytorch", "best-fit", "first-fit:space=segments",
                                        "worst-fit", "tlsf"};
    uint64_t random = 3;
    for (uint64_t seed = 30; seed < 36; seed++) {
        frag_recording recording = {0};
        draw_program(seed, &recording);
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            compare_capacities(&recording, names[i]);
        for (int i = 0; i < 3; i++) {
            frag_text policy = {0};
            draw_settings(&random, &policy);
            compare_capacities(&recording, policy.bytes);
            frag_text_destroy(&policy);
        }
        frag_recording_destroy(&recording);
    }
}

/* ---- what is replayed */

static const frag_policy_ops *inner;
static uint64_t requests;

static bool count_alloc(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    requests++;
    return inner->alloc(policy, request, grant);
}

/* How many requests a run with repeats has asked the policy for, of how many. */
static uint64_t asked_for(const char *name, const frag_recording *recording, uint64_t *all)
{
    frag_policy_spec spec;
    frag_error error = {0};
    frag_repeats repeats;
    frag_run_result result;
    assert_true(frag_policy_spec_parse(name, &spec, &error));
    inner = spec.ops;
    frag_policy_engine engine = {.shows_all = frag_policy_engine_of(inner)->shows_all,
                                 .memories = frag_policy_engine_of(inner)->memories};
    frag_policy_ops counting = *inner;
    counting.alloc = count_alloc;
    counting.engine = &engine;
    frag_device_spec device = {.capacity_bytes = (uint64_t)1 << 40};
    frag_repeats_find(&recording->traces[0], &repeats);
    requests = 0;
    frag_run_options options = {.is_layout_skipped = true, .repeats = &repeats};
    assert_true(frag_run(
        &(frag_run_setup){recording, &recording->traces[0], &counting, spec.values, &device},
        &options, &result, &error));
    *all = result.replay.requests;
    frag_repeats_destroy(&repeats);
    frag_policy_spec_destroy(&spec);
    return requests;
}

static void steps_are_left_out(void **state)
{
    (void)state;
    static const char *const names[] = {
        "pytorch",
        "best-fit",
        "first-fit",
        "worst-fit",
        "pytorch:version=2.12",
        "pytorch:garbage_collection_threshold=0.6",
        "pytorch:garbage_collection_threshold=0.6,per_process_memory_fraction=0.9"};
    static const char *const none[] = {"next-fit", "tlsf", "buddy"};
    uint64_t all = 0;
    size_t few[sizeof names / sizeof names[0]] = {0};
    for (uint64_t seed = 1; seed <= 8; seed++) {
        frag_recording recording = {0};
        draw_program(seed, &recording);
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            few[i] += asked_for(names[i], &recording, &all) < all * 3 / 4 ? 1 : 0;
        for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
            assert_int_equal(asked_for(none[i], &recording, &all), all);
        assert_true(all >= STEPS * STEP_BLOCKS);
        frag_recording_destroy(&recording);
    }
    /* A state need not come back soon. */
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (few[i] < 2)
            fail_msg("%s: %zu times", names[i], few[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stretches_that_repeat_are_found),
        cmocka_unit_test(it_is_worth_it_from_so_many_events_on),
        cmocka_unit_test(runs_that_leave_steps_out_are_the_same),
        cmocka_unit_test(runs_with_drawn_settings_are_the_same),
        cmocka_unit_test(the_least_capacity_is_the_same),
        cmocka_unit_test(steps_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
