/* Tests of pytorch_repeat.c: a run that is claimed to repeat another is made anyway, and must have
 * the same row. */
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
#include "sim/policy_engine.h"
#include "sim/rows/result.h"
#include "tests/support/text_recording.h"
#include "tests/support/xorshift.h"

enum { SETTINGS = 24, SLOTS = 24, EVENTS = 160 };

static uint64_t draw(uint64_t *random, uint64_t below)
{
    return xorshift_next(random) % below;
}

/* Sizes of both pools, of middle and of oversize requests, few enough to come again. */
static uint64_t draw_size(uint64_t *random)
{
    static const uint64_t largest[] = {4096, 1 << 20, 12 << 20, 48 << 20, 200 << 20};
    uint64_t most = largest[draw(random, sizeof largest / sizeof largest[0])];
    return (1 + draw(random, 16)) * most / 16;
}

static void draw_trace(uint64_t *random, frag_recording *recording)
{
    frag_text text = {0};
    bool is_live[SLOTS] = {false};
    for (int i = 0; i < EVENTS; i++) {
        uint64_t slot = draw(random, SLOTS);
        if (draw(random, 40) == 0)
            frag_text_add(&text, "empty_cache\n");
        else if (is_live[slot])
            frag_text_add(&text, "free %llu\n", (unsigned long long)slot);
        else
            frag_text_add(&text, "alloc %llu %llu stream=%llu\n", (unsigned long long)slot,
                          (unsigned long long)draw_size(random),
                          (unsigned long long)(draw(random, 8) == 0));
        if (strncmp(strrchr(text.bytes, '\n') - 5, "cache", 5) != 0)
            is_live[slot] = !is_live[slot];
    }
    frag_test_recording(text.bytes, recording);
    frag_text_destroy(&text);
}

static void draw_option(uint64_t *random, frag_text *policy, const char *key,
                        const char *const *values, size_t count)
{
    if (draw(random, 2) == 0)
        frag_text_add(policy, "%c%s=%s", strchr(policy->bytes, ':') == NULL ? ':' : ',', key,
                      values[draw(random, count)]);
}

#define DRAW(key, ...)                                                                             \
    draw_option(random, &policy, key, (const char *const[]){__VA_ARGS__},                          \
                sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void draw_settings(uint64_t *random, bool has_capacity, frag_policy_spec *spec)
{
    frag_text policy = {0};
    frag_error error = {0};
    frag_text_add(&policy, "pytorch");
    DRAW("max_split_size_mb", "unlimited", "64", "100", "130", "190", "256", "300", "1024");
    DRAW("max_non_split_rounding_mb", "64", "80", "128", "512");
    DRAW("roundup_power2_divisions", "1", "2", "4", "8", "64");
    DRAW("garbage_collection_threshold", "0.2", "0.5", "0.6", "0.8", "0.9", "0.99");
    if (draw(random, 4) == 0)
        DRAW("version", "2.4", "2.9", "2.12", "2.15");
    if (draw(random, 3) == 0)
        DRAW("large_segment_size_mb", "12", "20", "64");
    if (draw(random, 3) == 0)
        DRAW("expandable_segments", "true", "false");
    if (draw(random, 3) == 0)
        DRAW("throw_on_cudamalloc_oom", "true", "false");
    if (draw(random, 3) == 0)
        DRAW("expandable_segments_reserve", "0.5", "0.75", "8G", "64G");
    if (has_capacity && draw(random, 2) == 0)
        DRAW("per_process_memory_fraction", "0.5", "0.8", "0.9", "0.95", "1");
    if (!frag_policy_spec_parse(policy.bytes, spec, &error))
        fail_msg("%s: %s", policy.bytes, error.sentence);
    frag_text_destroy(&policy);
}

/* The row of a run, without what it says of the options. */
static char *row_of(const frag_recording *recording, const frag_policy_spec *said,
                    const frag_device_spec *device, const frag_run_result *result)
{
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    frag_row row = {.tool_version = "",
                    .tool_commit = "",
                    .trace_name = "",
                    .trace = &recording->traces[0],
                    .ops = said->ops,
                    .values = said->values,
                    .label = "",
                    .device = device,
                    .result = result};
    frag_result_write(FRAG_RESULT_JSONL, stream, &row);
    fclose(stream);
    return text;
}

typedef struct tried {
    frag_policy_spec spec;
    frag_policy_terms terms;
    frag_run_result result;
    bool is_run; /* false: refused */
} tried;

static void run_all(const frag_recording *recording, const frag_device_spec *device,
                    bool is_oom_skipped, tried *all)
{
    frag_run_options options = {.is_oom_skipped = is_oom_skipped};
    for (size_t i = 0; i < SETTINGS; i++) {
        frag_error error = {0};
        tried *at = &all[i];
        at->is_run =
            frag_policy_engine_of(at->spec.ops)->repeats->terms(at->spec.values, "", &at->terms) &&
            frag_run(&(frag_run_setup){recording, &recording->traces[0], at->spec.ops,
                                       at->spec.values, device},
                     &options, &at->result, &error);
    }
}

/* Of all pairs those that are said to be the same. */
static size_t compare_all(const frag_recording *recording, const frag_device_spec *device,
                          const tried *all, const uint64_t *sizes, size_t size_count)
{
    size_t same = 0;
    for (size_t i = 0; i < SETTINGS; i++)
        for (size_t j = 0; j < SETTINGS; j++) {
            if (i == j || !all[i].is_run || !all[j].is_run)
                continue;
            frag_policy_pair pair = {.terms = &all[i].terms,
                                     .met = &all[i].result.met,
                                     .other = &all[j].terms,
                                     .capacity_bytes = device->capacity_bytes,
                                     .sizes = sizes,
                                     .size_count = size_count};
            if (!frag_policy_engine_of(all[i].spec.ops)->repeats->proves(&pair))
                continue;
            char *one = row_of(recording, &all[j].spec, device, &all[i].result);
            char *other = row_of(recording, &all[j].spec, device, &all[j].result);
            if (strcmp(one, other) != 0)
                fail_msg("%s is not as %s on %llu bytes:\n%s%s", all[j].spec.text, all[i].spec.text,
                         (unsigned long long)device->capacity_bytes, one, other);
            same += strcmp(all[i].spec.text, all[j].spec.text) != 0 ? 1 : 0;
            free(one);
            free(other);
        }
    return same;
}

static void what_is_said_to_be_the_same_is_the_same(void **state)
{
    (void)state;
    uint64_t random = 1;
    size_t same = 0;
    for (int round = 0; round < 200; round++) {
        frag_recording recording = {0};
        draw_trace(&random, &recording);
        const frag_trace *trace = &recording.traces[0];
        uint64_t *sizes = calloc(trace->event_count, sizeof *sizes);
        for (uint64_t i = 0; i < trace->event_count; i++)
            sizes[i] = trace->events[i].op == FRAG_OP_ALLOC ? trace->events[i].bytes : 1;
        uint64_t peak = trace->stats.peak_requested_bytes;
        frag_device_spec device = {
            .capacity_bytes =
                round % 3 == 0 ? FRAG_UNLIMITED : peak * (9 + draw(&random, 12)) / 10 + FRAG_MIB};
        static tried all[SETTINGS];
        for (size_t i = 0; i < SETTINGS; i++)
            draw_settings(&random, device.capacity_bytes != FRAG_UNLIMITED, &all[i].spec);
        run_all(&recording, &device, round % 2 == 0, all);
        same += compare_all(&recording, &device, all, sizes, trace->event_count);
        for (size_t i = 0; i < SETTINGS; i++)
            frag_policy_spec_destroy(&all[i].spec);
        free(sizes);
        frag_recording_destroy(&recording);
    }
    /* Else it was not tested. */
    assert_true(same > 4000);
    print_message("%zu pairs of settings gave the same runs\n", same);
}

/* On a trace and device, is the run with the second policy said to be the same as with the first?
 */
static bool repeats(const char *text, const char *first, const char *second, uint64_t capacity)
{
    frag_recording recording = {0};
    frag_test_recording(text, &recording);
    tried pair[2] = {{.is_run = false}};
    const char *policies[] = {first, second};
    frag_error error = {0};
    uint64_t sizes[16] = {0};
    size_t size_count = 0;
    frag_device_spec device = {.capacity_bytes = capacity};
    frag_run_options options = {.is_layout_skipped = true};
    for (int i = 0; i < 2; i++) {
        assert_true(frag_policy_spec_parse(policies[i], &pair[i].spec, &error));
        assert_true(frag_policy_engine_of(pair[i].spec.ops)
                        ->repeats->terms(pair[i].spec.values, "", &pair[i].terms));
    }
    assert_true(frag_run(&(frag_run_setup){&recording, &recording.traces[0], pair[0].spec.ops,
                                           pair[0].spec.values, &device},
                         &options, &pair[0].result, &error));
    assert_true(recording.traces[0].event_count <= 16);
    for (uint64_t i = 0; i < recording.traces[0].event_count; i++)
        if (recording.traces[0].events[i].op == FRAG_OP_ALLOC)
            sizes[size_count++] = recording.traces[0].events[i].bytes;
    frag_policy_pair asked = {.terms = &pair[0].terms,
                              .met = &pair[0].result.met,
                              .other = &pair[1].terms,
                              .capacity_bytes = capacity,
                              .sizes = sizes,
                              .size_count = size_count};
    bool is = frag_policy_engine_of(pair[0].spec.ops)->repeats->proves(&asked);
    for (int i = 0; i < 2; i++)
        frag_policy_spec_destroy(&pair[i].spec);
    frag_recording_destroy(&recording);
    return is;
}

static void a_limit_that_nothing_reaches_makes_no_difference(void **state)
{
    (void)state;
    const char *text = "alloc 0 104857600\nalloc 1 3145728\nfree 0\nalloc 0 62914560\n";
    uint64_t all = FRAG_UNLIMITED;
    assert_true(repeats(text, "pytorch", "pytorch:max_split_size_mb=200", all));
    assert_false(repeats(text, "pytorch", "pytorch:max_split_size_mb=80", all));
    assert_true(repeats(text, "pytorch:max_split_size_mb=70", "pytorch:max_split_size_mb=90", all));
    assert_false(
        repeats(text, "pytorch:max_split_size_mb=70", "pytorch:max_split_size_mb=50", all));
    /* A share of no limit is none. */
    assert_true(repeats(text, "pytorch", "pytorch:garbage_collection_threshold=0.1", all));
    uint64_t card = 400 * FRAG_MIB;
    assert_true(repeats(text, "pytorch", "pytorch:per_process_memory_fraction=0.5", card));
    assert_false(repeats(text, "pytorch", "pytorch:per_process_memory_fraction=0.25", card));
    assert_true(repeats(text, "pytorch",
                        "pytorch:per_process_memory_fraction=0.9,garbage_collection_threshold=0.5",
                        card));
    assert_false(repeats(text, "pytorch",
                         "pytorch:per_process_memory_fraction=0.9,garbage_collection_threshold=0.2",
                         card));
    /* 3 MiB come out of a segment of that size. */
    assert_false(repeats(text, "pytorch", "pytorch:large_segment_size_mb=32", all));
    assert_true(repeats("alloc 0 104857600\nalloc 1 1000\n", "pytorch",
                        "pytorch:large_segment_size_mb=32", all));
    assert_true(repeats(text, "pytorch", "pytorch:roundup_power2_divisions=1", all) ==
                repeats(text, "pytorch:roundup_power2_divisions=1", "pytorch", all));
    assert_false(repeats(text, "pytorch", "pytorch:roundup_power2_divisions=2", all));
    assert_true(repeats("alloc 0 67108864\nalloc 1 100663296\n", "pytorch",
                        "pytorch:roundup_power2_divisions=2", all));
    assert_false(repeats(text, "pytorch", "pytorch:expandable_segments=true", all));
    assert_false(repeats("alloc 0 104857600\n", "pytorch:expandable_segments=true",
                         "pytorch:expandable_segments=true,large_segment_size_mb=64", all));
    assert_false(repeats(text, "pytorch:version=2.4", "pytorch:version=2.9", all));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_said_to_be_the_same_is_the_same),
        cmocka_unit_test(a_limit_that_nothing_reaches_makes_no_difference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
