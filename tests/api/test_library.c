/* The library as a program sees it: what it gives, that it ends with an error on hostile input, on
 * failing host memory and when it is told to, and that it keeps nothing of a call that failed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/fraglab.h"
#include "tests/api/failing_memory.h"

#define SAMPLE "tests/data/snapshots/empty-with-gc.pickle"
#define LARGE_SAMPLE "traces/samples/gpt-varlen-oom.pickle.zst"

/* ---- what tests share */

static fraglab_recording *open_sample(const char *path)
{
    fraglab_error error = FRAGLAB_ERROR_INIT;
    fraglab_recording *recording = NULL;
    if (fraglab_open_path(NULL, path, NULL, &recording, &error) != FRAGLAB_OK)
        fail_msg("%s: %s", error.where, error.sentence);
    return recording;
}

static fraglab_policy *parse(const char *text)
{
    fraglab_policy *policy = NULL;
    assert_int_equal(fraglab_policy_parse(text, &policy, NULL), FRAGLAB_OK);
    return policy;
}

static void *read_file(const char *path, size_t *count)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    unsigned char *bytes = malloc(1 << 20);
    *count = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

/* ---- */

static void runs_a_recording(void **state)
{
    (void)state;
    fraglab_recording *recording = open_sample(LARGE_SAMPLE);
    fraglab_policy *policy = parse("best-fit");
    fraglab_result *result = NULL;
    uint64_t reserved = 0;
    double ratio = 0;
    const char *name = NULL;
    fraglab_error error = FRAGLAB_ERROR_INIT;
    assert_int_equal(fraglab_run(NULL, recording, 0, policy, NULL, &result, NULL), FRAGLAB_OK);
    fraglab_recording_close(recording);
    fraglab_policy_destroy(policy);
    assert_int_equal(fraglab_result_u64(result, "peak.reserved_bytes", &reserved, NULL), 0);
    assert_true(reserved > 1 << 20);
    assert_int_equal(fraglab_result_double(result, "peak.reserved_bytes", &ratio, NULL), 0);
    assert_true(ratio > 1 << 20);
    assert_int_equal(fraglab_result_text(result, "policy.name", &name, NULL), 0);
    assert_string_equal(name, "best-fit");
    assert_int_equal(fraglab_result_u64(result, "policy.name", &reserved, &error), FRAGLAB_E_USAGE);
    assert_string_equal(error.where, "policy.name");
    assert_string_equal(error.sentence, "the field is \"best-fit\"; expected a whole number");
    assert_int_equal(fraglab_result_u64(result, "no.such", &reserved, NULL), FRAGLAB_E_USAGE);
    char path[400];
    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = '\0';
    assert_int_equal(fraglab_result_u64(result, path, &reserved, NULL), FRAGLAB_E_USAGE);
    fraglab_result_destroy(result);
}

static const fraglab_event own_events[] = {
    {.op = FRAGLAB_ALLOC, .id = 7, .bytes = 3 << 20},
    {.op = FRAGLAB_ALLOC, .id = 0x7f0000000000, .bytes = 5 << 20, .stream = 9},
    {.op = FRAGLAB_USE, .id = 7, .stream = 9},
    {.op = FRAGLAB_FREE, .id = 7},
    {.op = FRAGLAB_SYNC},
    {.op = FRAGLAB_ALLOC, .id = 7, .bytes = 2 << 20},
    {.op = FRAGLAB_EMPTY_CACHE},
};
enum { OWN_COUNT = sizeof own_events / sizeof own_events[0] };

static void builds_a_recording_of_own_events(void **state)
{
    (void)state;
    fraglab_builder *builder = NULL;
    fraglab_recording *recording = NULL;
    fraglab_error error = FRAGLAB_ERROR_INIT;
    fraglab_trace_facts facts = {.size = sizeof facts};
    const fraglab_event wrong[] = {{.op = FRAGLAB_FREE, .id = 8}, {.op = 99}};
    assert_int_equal(fraglab_builder_create(NULL, &builder, NULL), 0);
    assert_int_equal(fraglab_builder_set(builder, "torch.conf", "", NULL), 0);
    assert_int_equal(fraglab_builder_set(builder, NULL, "", NULL), FRAGLAB_E_USAGE);
    assert_int_equal(fraglab_builder_set(builder, "torch.conf", NULL, NULL), FRAGLAB_E_USAGE);
    assert_int_equal(fraglab_builder_add(builder, own_events, OWN_COUNT, &error), 0);
    assert_int_equal(fraglab_builder_add(builder, &own_events[0], 1, &error), FRAGLAB_E_INPUT);
    assert_string_equal(error.sentence, "event 7: the id is live already; free it first (7)");
    assert_int_equal(fraglab_builder_add(builder, wrong, 2, NULL), FRAGLAB_E_INPUT);
    assert_int_equal(fraglab_builder_add(builder, &wrong[1], 1, NULL), FRAGLAB_E_INPUT);
    assert_int_equal(fraglab_builder_set(builder, "late", "", NULL), FRAGLAB_E_USAGE);
    assert_int_equal(fraglab_builder_mark(builder, "", 0, NULL), FRAGLAB_E_USAGE);
    assert_int_equal(fraglab_builder_stack(builder, NULL, 4097, NULL), FRAGLAB_E_USAGE);
    assert_int_equal(fraglab_builder_finish(builder, &recording, &error), 0);
    assert_int_equal(fraglab_builder_add(builder, own_events, 1, NULL), FRAGLAB_E_USAGE);
    fraglab_builder_destroy(builder);
    assert_int_equal(fraglab_recording_trace_facts(recording, 0, &facts, NULL), 0);
    assert_int_equal(facts.request_count, 3);
    assert_int_equal(facts.event_count, OWN_COUNT);
    assert_int_equal(facts.peak_requested_bytes, 8 << 20);
    assert_int_equal(fraglab_recording_trace_facts(recording, 1, &facts, NULL), FRAGLAB_E_USAGE);
    fraglab_policy *policy = parse("pytorch:recorded");
    fraglab_result *result = NULL;
    assert_int_equal(fraglab_run(NULL, recording, 0, policy, NULL, &result, &error), 0);
    fraglab_result_destroy(result);
    fraglab_policy_destroy(policy);
    fraglab_recording_close(recording);
}

/* Marks and stacks are those of the text form, event by event. */
static void keeps_marks_and_stacks_of_own_events(void **state)
{
    (void)state;
    static const fraglab_frame frames[] = {{"load", "own.py", 12}, {NULL, "main.py", 0}};
    static const char *const expected[] = {"frame \"load\" \"own.py\" 12\n",
                                           "frame \"\" \"main.py\" 0\n",
                                           "site 0 1\n",
                                           "mark \"step\" time=5\n",
                                           "alloc 0 3145728 site=1\n",
                                           "free 0 site=1\n",
                                           "alloc 0 2097152\n"};
    fraglab_builder *builder = NULL;
    fraglab_recording *recording = NULL;
    void *text = NULL;
    size_t count = 0;
    assert_int_equal(fraglab_builder_create(NULL, &builder, NULL), 0);
    assert_int_equal(fraglab_builder_mark(builder, "step", 5, NULL), 0);
    assert_int_equal(fraglab_builder_stack(builder, frames, 2, NULL), 0);
    assert_int_equal(fraglab_builder_add(builder, &own_events[0], 1, NULL), 0);
    assert_int_equal(fraglab_builder_add(builder, &own_events[3], 1, NULL), 0);
    assert_int_equal(fraglab_builder_stack(builder, NULL, 0, NULL), 0);
    assert_int_equal(fraglab_builder_add(builder, &own_events[5], 1, NULL), 0);
    assert_int_equal(fraglab_builder_finish(builder, &recording, NULL), 0);
    fraglab_builder_destroy(builder);
    assert_int_equal(fraglab_recording_write_memory(recording, "text", &text, &count, NULL), 0);
    char copy[4096];
    assert_true(count < sizeof copy);
    memcpy(copy, text, count);
    copy[count] = '\0';
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        if (strstr(copy, expected[i]) == NULL)
            fail_msg("no %s in %s", expected[i], copy);
    fraglab_free(text);
    fraglab_recording_close(recording);
}

static void gives_histories_and_layouts(void **state)
{
    (void)state;
    fraglab_recording *recording = open_sample(LARGE_SAMPLE);
    fraglab_policy *policy = parse("pytorch");
    fraglab_history *history = NULL;
    fraglab_layout *layout = NULL;
    fraglab_result *result = NULL;
    fraglab_error error = FRAGLAB_ERROR_INIT;
    uint64_t reserved = 0;
    assert_int_equal(fraglab_run(NULL, recording, 0, policy, NULL, &result, NULL), 0);
    fraglab_result_u64(result, "peak.reserved_bytes", &reserved, NULL);
    fraglab_result_destroy(result);
    assert_int_equal(fraglab_history_record(NULL, recording, 0, policy, NULL, 100, &history, NULL),
                     0);
    size_t count = fraglab_history_samples(history, NULL, 0);
    assert_in_range(count, 10, 100);
    fraglab_sample *samples = calloc(count, sizeof *samples);
    assert_int_equal(fraglab_history_samples(history, samples, count), count);
    uint64_t most = 0;
    for (size_t i = 0; i < count; i++)
        most = samples[i].reserved_bytes > most ? samples[i].reserved_bytes : most;
    assert_int_equal(most, reserved);
    free(samples);
    assert_true(fraglab_history_placements(history, NULL, 0) > 1000);
    assert_true(fraglab_history_segments(history, NULL, 0) > 10);
    fraglab_history_destroy(history);
    assert_int_equal(fraglab_history_record(NULL, recording, 0, policy, NULL, 3, &history, NULL),
                     FRAGLAB_E_USAGE);
    assert_int_equal(fraglab_layout_at(NULL, recording, 0, policy, NULL, 1000, &layout, NULL), 0);
    count = fraglab_layout_spans(layout, NULL, 0);
    fraglab_span *spans = calloc(count, sizeof *spans);
    fraglab_layout_spans(layout, spans, count);
    uint64_t segments = 0;
    uint64_t inside = 0;
    for (size_t i = 0; i < count; i++)
        if (spans[i].kind == FRAGLAB_SPAN_SEGMENT)
            segments += spans[i].bytes;
        else
            inside += spans[i].bytes;
    assert_true(segments > 0);
    assert_int_equal(segments, inside);
    free(spans);
    fraglab_layout_destroy(layout);
    assert_int_equal(fraglab_layout_at(NULL, recording, 0, policy, NULL, 1u << 30, &layout, &error),
                     FRAGLAB_E_USAGE);
    assert_string_equal(error.where, "event");
    fraglab_policy_destroy(policy);
    fraglab_recording_close(recording);
}

static void finds_the_least_capacity(void **state)
{
    (void)state;
    fraglab_recording *recording = open_sample(SAMPLE);
    fraglab_policy *policy = parse("best-fit");
    fraglab_capacity capacity = {.size = sizeof capacity};
    fraglab_result *result = NULL;
    fraglab_run_options options = FRAGLAB_RUN_OPTIONS_INIT;
    uint64_t event = 0;
    assert_int_equal(fraglab_min_capacity(NULL, recording, 0, policy, NULL, &capacity, NULL), 0);
    options.capacity_bytes = capacity.capacity_bytes;
    assert_int_equal(fraglab_run(NULL, recording, 0, policy, &options, &result, NULL), 0);
    assert_int_equal(fraglab_result_u64(result, "oom.event", &event, NULL), FRAGLAB_E_USAGE);
    fraglab_result_destroy(result);
    options.capacity_bytes -= 2 << 20;
    assert_int_equal(fraglab_run(NULL, recording, 0, policy, &options, &result, NULL), 0);
    assert_int_equal(fraglab_result_u64(result, "oom.event", &event, NULL), FRAGLAB_OK);
    assert_int_equal(event, capacity.below_event);
    fraglab_result_destroy(result);
    fraglab_policy_destroy(policy);
    fraglab_recording_close(recording);
}

static void refuses_what_a_caller_gets_wrong(void **state)
{
    (void)state;
    fraglab_error error = FRAGLAB_ERROR_INIT;
    fraglab_recording *recording = NULL;
    fraglab_policy *policy = NULL;
    fraglab_result *result = NULL;
    fraglab_run_options options = FRAGLAB_RUN_OPTIONS_INIT;
    char text[200];
    assert_int_equal(fraglab_open_path(NULL, "no/such/file", NULL, &recording, &error),
                     FRAGLAB_E_INPUT);
    assert_string_equal(error.where, "no/such/file");
    assert_non_null(strstr(fraglab_error_text(&error, text, sizeof text), "no/such/file: "));
    assert_int_equal(fraglab_open_memory(NULL, NULL, 0, NULL, &recording, NULL), FRAGLAB_E_INPUT);
    assert_int_equal(fraglab_open_descriptor(NULL, -1, NULL, &recording, NULL), FRAGLAB_E_INPUT);
    fraglab_open_options wrong_format = {.size = sizeof wrong_format, .format = "gpt"};
    assert_int_equal(fraglab_open_path(NULL, SAMPLE, &wrong_format, &recording, NULL),
                     FRAGLAB_E_USAGE);
    assert_int_equal(fraglab_policy_parse("bestfit", &policy, &error), FRAGLAB_E_USAGE);
    assert_null(policy);
    assert_int_equal(fraglab_policy_parse("./no.so", &policy, NULL), FRAGLAB_E_INPUT);
    recording = open_sample(SAMPLE);
    policy = parse("best-fit");
    assert_int_equal(fraglab_run(NULL, recording, 5, policy, NULL, &result, NULL), FRAGLAB_E_USAGE);
    options.gpu = "no-such-card";
    assert_int_equal(fraglab_run(NULL, recording, 0, policy, &options, &result, NULL),
                     FRAGLAB_E_USAGE);
    options.gpu = NULL;
    options.address_rule = "highest";
    assert_int_equal(fraglab_run(NULL, recording, 0, policy, &options, &result, &error),
                     FRAGLAB_E_USAGE);
    assert_string_equal(error.where, "address_rule");
    options.address_rule = NULL;
    options.size = 0;
    assert_int_equal(fraglab_run(NULL, recording, 0, policy, &options, &result, NULL),
                     FRAGLAB_E_USAGE);
    options.size = 16; /* of an older header: only the capacity */
    options.capacity_bytes = (uint64_t)1 << 40;
    assert_int_equal(fraglab_run(NULL, recording, 0, policy, &options, &result, NULL), FRAGLAB_OK);
    fraglab_result_destroy(result);
    unsigned char newer[sizeof options + 8] = {0};
    size_t size = sizeof newer;
    memcpy(newer, &size, sizeof size);
    assert_int_equal(fraglab_run(NULL, recording, 0, policy,
                                 (const fraglab_run_options *)(void *)newer, &result, NULL),
                     FRAGLAB_OK);
    fraglab_result_destroy(result);
    newer[sizeof options] = 1; /* a member that this library does not know */
    assert_int_equal(fraglab_run(NULL, recording, 0, policy,
                                 (const fraglab_run_options *)(void *)newer, &result, NULL),
                     FRAGLAB_E_USAGE);
    fraglab_policy_destroy(policy);
    fraglab_recording_close(recording);
    fraglab_recording_close(NULL);
    fraglab_result_destroy(NULL);
    fraglab_free(NULL);
}

/* ---- cancel */

static int count_down(void *user)
{
    int *left = user;
    return *left == 0 || --*left == 0;
}

/* In the middle of a long file, and at the beginning. */
static void expect_opening_ends(const fraglab_context *context, int *left)
{
    enum { LINES = 1 << 16, LINE_BYTES = 24 };
    char *text = malloc(LINES * LINE_BYTES);
    size_t count = (size_t)sprintf(text, "# fraglab trace 2\n");
    for (int line = 0; line + 1 < LINES; line++)
        count += (size_t)sprintf(text + count, "alloc %d 512\n", line);
    fraglab_error error = FRAGLAB_ERROR_INIT;
    fraglab_recording *opened = NULL;
    *left = 2;
    assert_int_equal(fraglab_open_memory(context, text, count, NULL, &opened, &error),
                     FRAGLAB_E_CANCELLED);
    assert_null(opened);
    assert_string_equal(error.sentence, "the call was cancelled");
    *left = 1;
    assert_int_equal(fraglab_open_path(context, LARGE_SAMPLE, NULL, &opened, NULL),
                     FRAGLAB_E_CANCELLED);
    free(text);
}

static void ends_when_it_is_told_to(void **state)
{
    (void)state;
    int left = 3;
    fraglab_context_options given = {
        .size = sizeof given, .user = &left, .is_cancelled = count_down};
    fraglab_context *context = NULL;
    fraglab_recording *recording = open_sample(LARGE_SAMPLE);
    fraglab_policy *policy = parse("pytorch");
    fraglab_result *result = NULL;
    fraglab_capacity capacity = {.size = sizeof capacity};
    assert_int_equal(fraglab_context_create(&given, &context, NULL), 0);
    assert_int_equal(fraglab_run(context, recording, 0, policy, NULL, &result, NULL),
                     FRAGLAB_E_CANCELLED);
    assert_null(result);
    left = 5;
    assert_int_equal(fraglab_min_capacity(context, recording, 0, policy, NULL, &capacity, NULL),
                     FRAGLAB_E_CANCELLED);
    expect_opening_ends(context, &left);
    left = -1; /* not again */
    assert_int_equal(fraglab_run(context, recording, 0, policy, NULL, &result, NULL), FRAGLAB_OK);
    fraglab_result_destroy(result);
    fraglab_policy_destroy(policy);
    fraglab_recording_close(recording);
    fraglab_context_destroy(context);
}

/* ---- hostile files */

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void use_all(const fraglab_recording *recording)
{
    fraglab_policy *policy = parse("best-fit");
    fraglab_run_options options = FRAGLAB_RUN_OPTIONS_INIT;
    char *json = NULL;
    options.capacity_bytes = (uint64_t)1 << 30;
    for (size_t i = 0; i < fraglab_recording_trace_count(recording) && i < 4; i++) {
        fraglab_result *result = NULL;
        fraglab_run(NULL, recording, i, policy, &options, &result, NULL);
        fraglab_result_destroy(result);
    }
    if (fraglab_recording_json(recording, &json, NULL) == FRAGLAB_OK)
        fraglab_free(json);
    fraglab_policy_destroy(policy);
}

static void hostile_files_end_in_an_error_or_a_recording(void **state)
{
    (void)state;
    static const char *const paths[] = {SAMPLE,
                                        "traces/samples/pr193400.pickle.zst",
                                        "tests/data/exchange/rmm.csv",
                                        "tests/data/exchange/nsys.sqlite",
                                        "tests/data/exchange/snapshot.json.gz",
                                        "tests/data/exchange/stalloc.txt"};
    uint32_t seed = 1;
    uint32_t refused = 0;
    uint32_t read = 0;
    long before = frag_live_memory();
    for (size_t p = 0; p < sizeof paths / sizeof paths[0]; p++) {
        size_t count = 0;
        unsigned char *whole = read_file(paths[p], &count);
        unsigned char *broken = malloc(count);
        for (uint32_t round = 0; round < 120; round++) {
            size_t kept = round % 3 == 0 ? next_random(&seed) % count : count;
            memcpy(broken, whole, count);
            for (uint32_t i = 0; i < 1 + round % 7 && round % 3 != 0; i++)
                broken[next_random(&seed) % count] = (unsigned char)next_random(&seed);
            fraglab_recording *recording = NULL;
            fraglab_error error = FRAGLAB_ERROR_INIT;
            int code = fraglab_open_memory(NULL, broken, kept, NULL, &recording, &error);
            if (code == FRAGLAB_OK) {
                use_all(recording);
                fraglab_recording_close(recording);
                read++;
            } else {
                assert_in_range(code, FRAGLAB_E_USAGE, FRAGLAB_E_SYSTEM);
                assert_int_not_equal(error.sentence[0], '\0');
                refused++;
            }
        }
        free(broken);
        free(whole);
    }
    assert_true(refused > 100 && read > 20);
    assert_int_equal(frag_live_memory(), before);
}

/* ---- failing memory: each entry point with each of its allocations refused */

typedef int entry_point(fraglab_recording *recording, fraglab_policy *policy);

static int call_open(fraglab_recording *recording, fraglab_policy *policy)
{
    static const char *const paths[] = {SAMPLE, "tests/data/exchange/snapshot.json.gz",
                                        "tests/data/exchange/nsys.sqlite",
                                        "tests/data/exchange/rmm.csv"};
    (void)recording;
    (void)policy;
    int code = FRAGLAB_OK;
    for (size_t i = 0; code == FRAGLAB_OK && i < sizeof paths / sizeof paths[0]; i++) {
        fraglab_recording *opened = NULL;
        fraglab_open_options options = {.size = sizeof options, .with_sites = 1, .name = "a name"};
        code = fraglab_open_path(NULL, paths[i], &options, &opened, NULL);
        fraglab_recording_close(opened);
    }
    return code;
}

static int call_facts(fraglab_recording *recording, fraglab_policy *policy)
{
    char *json = NULL;
    (void)policy;
    int code = fraglab_recording_json(recording, &json, NULL);
    fraglab_free(json);
    return code;
}

static int call_write(fraglab_recording *recording, fraglab_policy *policy)
{
    void *bytes = NULL;
    size_t count = 0;
    (void)policy;
    int code = fraglab_recording_write_memory(recording, "fgt", &bytes, &count, NULL);
    fraglab_free(bytes);
    bytes = NULL;
    if (code == FRAGLAB_OK)
        code = fraglab_recording_write_memory(recording, "text", &bytes, &count, NULL);
    fraglab_free(bytes);
    return code != FRAGLAB_OK ? code
                              : fraglab_recording_write(recording, "fgt", "/dev/null", 1, NULL);
}

static int call_build(fraglab_recording *recording, fraglab_policy *policy)
{
    fraglab_builder *builder = NULL;
    fraglab_recording *built = NULL;
    (void)recording;
    (void)policy;
    int code = fraglab_builder_create(NULL, &builder, NULL);
    if (code == FRAGLAB_OK)
        code = fraglab_builder_set(builder, "a", "fact", NULL);
    if (code == FRAGLAB_OK)
        code = fraglab_builder_mark(builder, "step", 0, NULL);
    if (code == FRAGLAB_OK)
        code = fraglab_builder_stack(builder, &(fraglab_frame){"f", "a.py", 1}, 1, NULL);
    if (code == FRAGLAB_OK)
        code = fraglab_builder_add(builder, own_events, OWN_COUNT, NULL);
    if (code == FRAGLAB_OK)
        code = fraglab_builder_finish(builder, &built, NULL);
    else if (builder != NULL && code == FRAGLAB_E_MEMORY)
        assert_int_equal(fraglab_builder_add(builder, own_events, 1, NULL), FRAGLAB_E_USAGE);
    fraglab_builder_destroy(builder);
    fraglab_recording_close(built);
    return code;
}

static int call_policies(fraglab_recording *recording, fraglab_policy *policy)
{
    char *json = NULL;
    fraglab_policy *parsed = NULL;
    (void)recording;
    (void)policy;
    int code = fraglab_policies_json("pytorch", &json, NULL);
    fraglab_free(json);
    json = NULL;
    if (code == FRAGLAB_OK)
        code = fraglab_policy_parse("pytorch:max_split_size_mb:64,version=2.1", &parsed, NULL);
    fraglab_policy_destroy(parsed);
    return code;
}

static int call_run(fraglab_recording *recording, fraglab_policy *policy)
{
    fraglab_result *result = NULL;
    fraglab_run_options options = FRAGLAB_RUN_OPTIONS_INIT;
    options.label = "a label";
    options.with_bounds = 1;
    options.gpu = "l4";
    int code = fraglab_run(NULL, recording, 0, policy, &options, &result, NULL);
    fraglab_result_destroy(result);
    return code;
}

static int call_capacity(fraglab_recording *recording, fraglab_policy *policy)
{
    fraglab_capacity capacity = {.size = sizeof capacity};
    return fraglab_min_capacity(NULL, recording, 0, policy, NULL, &capacity, NULL);
}

static int call_history(fraglab_recording *recording, fraglab_policy *policy)
{
    fraglab_history *history = NULL;
    fraglab_layout *layout = NULL;
    int code = fraglab_history_record(NULL, recording, 0, policy, NULL, 0, &history, NULL);
    fraglab_history_destroy(history);
    if (code == FRAGLAB_OK)
        code =
            fraglab_layout_at(NULL, recording, 0, policy, NULL, FRAGLAB_UNLIMITED, &layout, NULL);
    fraglab_layout_destroy(layout);
    return code;
}

static int call_explain(fraglab_recording *recording, fraglab_policy *policy)
{
    static const char text[] =
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
        "capacity of 23.69 GiB of which 1.20 GiB is free. Of the allocated memory 20.00 GiB is "
        "allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.";
    char *json = NULL;
    (void)recording;
    (void)policy;
    int code = fraglab_explain_text(text, sizeof text - 1, &json, NULL);
    fraglab_free(json);
    return code;
}

static int call_context(fraglab_recording *recording, fraglab_policy *policy)
{
    fraglab_context *context = NULL;
    (void)recording;
    (void)policy;
    int code = fraglab_context_create(NULL, &context, NULL);
    fraglab_context_destroy(context);
    return code;
}

typedef struct subject {
    entry_point *call;
    fraglab_recording *recording;
    fraglab_policy *policy;
} subject;

static int call_entry(void *argument)
{
    const subject *of = argument;
    return of->call(of->recording, of->policy);
}

static void failing_memory_is_an_error_and_leaves_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        entry_point *call;
    } entries[] = {{"open", call_open},         {"facts", call_facts},
                   {"write", call_write},       {"build", call_build},
                   {"policies", call_policies}, {"run", call_run},
                   {"capacity", call_capacity}, {"history", call_history},
                   {"explain", call_explain},   {"context", call_context}};
    fraglab_recording *recording = open_sample(SAMPLE);
    fraglab_policy *policy = parse("pytorch");
    for (size_t e = 0; e < sizeof entries / sizeof entries[0]; e++) {
        subject to = {entries[e].call, recording, policy};
        frag_expect_memory_may_fail(entries[e].name, call_entry, &to);
    }
    fraglab_policy_destroy(policy);
    fraglab_recording_close(recording);
}

/* ---- threads */

typedef struct shared_run {
    const fraglab_recording *recording;
    const fraglab_policy *policy;
    char *line;
} shared_run;

static void *run_on_thread(void *argument)
{
    shared_run *run = argument;
    for (int i = 0; i < 3; i++) {
        fraglab_result *result = NULL;
        fraglab_recording *own = NULL;
        fraglab_run(NULL, run->recording, 0, run->policy, NULL, &result, NULL);
        fraglab_open_path(NULL, SAMPLE, NULL, &own, NULL);
        fraglab_free(run->line);
        run->line = result != NULL ? strdup(fraglab_result_json(result)) : NULL;
        fraglab_result_destroy(result);
        fraglab_recording_close(own);
    }
    return NULL;
}

static void threads_share_recordings_and_policies(void **state)
{
    (void)state;
    fraglab_recording *recording = open_sample(LARGE_SAMPLE);
    fraglab_policy *policy = parse("pytorch:recorded");
    shared_run runs[4];
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) {
        runs[i] = (shared_run){recording, policy, NULL};
        assert_int_equal(pthread_create(&threads[i], NULL, run_on_thread, &runs[i]), 0);
    }
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(runs[i].line, runs[0].line);
    for (size_t i = 0; i < 4; i++)
        fraglab_free(runs[i].line);
    fraglab_policy_destroy(policy);
    fraglab_recording_close(recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_a_recording),
        cmocka_unit_test(builds_a_recording_of_own_events),
        cmocka_unit_test(keeps_marks_and_stacks_of_own_events),
        cmocka_unit_test(gives_histories_and_layouts),
        cmocka_unit_test(finds_the_least_capacity),
        cmocka_unit_test(refuses_what_a_caller_gets_wrong),
        cmocka_unit_test(ends_when_it_is_told_to),
        cmocka_unit_test(hostile_files_end_in_an_error_or_a_recording),
        cmocka_unit_test(failing_memory_is_an_error_and_leaves_nothing),
        cmocka_unit_test(threads_share_recordings_and_policies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
