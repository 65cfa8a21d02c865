/* Tests of chrome_write.c: runs as Chrome traces, read back by a strict reader. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>

#include "allocators/registry.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "sim/device/latency.h"
#include "sim/run.h"
#include "traces/exchange/chrome_write.h"
#include "traces/load.h"

#define PROCESSES_MAX 8

/* What a strict reader of the Trace Event Format sees of one process. */
typedef struct process {
    bool is_named;
    double time;        /* of the event before */
    double call_end;    /* of the slice before on the thread of device calls */
    json_t *open;       /* slices that have begun, by category and id */
    uint64_t slices[2]; /* begun: requests, segments */
    uint64_t points;    /* out of memory */
    uint64_t calls[FRAG_DEVICE_CALL_COUNT];
    uint64_t refused;
    double modelled_ns;
    json_int_t counter_max[4];
    json_int_t counter_last[4];
} process;

typedef struct chrome_file {
    char *bytes;
    size_t count;
    process processes[PROCESSES_MAX];
} chrome_file;

static const char *const counter_names[] = {"requested", "allocated", "active", "reserved"};

static const char *text_of(const json_t *event, const char *key)
{
    const char *text = json_string_value(json_object_get(event, key));
    if (text == NULL || text[0] == '\0')
        fail_msg("%s is missing", key);
    return text;
}

static void check_counter(process *seen, const json_t *event, const json_t *values)
{
    json_t *bytes = json_object_get(values, "bytes");
    assert_int_equal(json_object_size(values), 1);
    assert_true(json_is_integer(bytes));
    for (size_t i = 0; i < 4; i++) {
        if (strcmp(text_of(event, "name"), counter_names[i]) != 0)
            continue;
        seen->counter_last[i] = json_integer_value(bytes);
        if (seen->counter_last[i] > seen->counter_max[i])
            seen->counter_max[i] = seen->counter_last[i];
        return;
    }
    fail_msg("unknown counter");
}

static void check_slice(process *seen, const json_t *event, bool is_begin)
{
    char key[128];
    const char *category = text_of(event, "cat");
    snprintf(key, sizeof key, "%s %s", category, text_of(json_object_get(event, "id2"), "local"));
    assert_null(json_object_get(event, "id")); /* would be one for all processes */
    if (is_begin) {
        assert_null(json_object_get(seen->open, key));
        json_object_set_new(seen->open, key, json_string(text_of(event, "name")));
        seen->slices[strcmp(category, "segment") == 0]++;
    } else {
        assert_string_equal(json_string_value(json_object_get(seen->open, key)),
                            text_of(event, "name"));
        json_object_del(seen->open, key);
    }
}

static void check_call(process *seen, const json_t *event, const json_t *values)
{
    double time = json_number_value(json_object_get(event, "ts"));
    double length = json_number_value(json_object_get(event, "dur"));
    assert_true(length > 0 && length <= 1);
    assert_true(time >= seen->call_end - 1e-6);
    seen->call_end = time + length;
    seen->modelled_ns += json_number_value(json_object_get(values, "modelled_ns"));
    seen->refused += strcmp(text_of(values, "result"), "out of memory") == 0;
    for (uint32_t i = 0; i < FRAG_DEVICE_CALL_COUNT; i++)
        if (strcmp(frag_device_call_name((frag_device_call)i), text_of(event, "name")) == 0) {
            seen->calls[i]++;
            return;
        }
    fail_msg("unknown call");
}

static void check_event(chrome_file *file, const json_t *event)
{
    const char *phase = text_of(event, "ph");
    const char *name = text_of(event, "name");
    json_int_t pid = json_integer_value(json_object_get(event, "pid"));
    json_t *time = json_object_get(event, "ts");
    json_t *values = json_object_get(event, "args");
    assert_in_range(pid, 1, PROCESSES_MAX - 1);
    assert_true(json_integer_value(json_object_get(event, "tid")) > 0);
    assert_true(json_is_number(time));
    process *seen = &file->processes[pid];
    if (strcmp(phase, "M") == 0) {
        assert_true(strcmp(name, "process_name") == 0 || strcmp(name, "thread_name") == 0);
        (void)text_of(values, "name");
        if (seen->open == NULL)
            seen->open = json_object();
        seen->is_named = true;
        return;
    }
    assert_true(seen->is_named);
    assert_true(json_number_value(time) >= seen->time);
    seen->time = json_number_value(time);
    if (strcmp(phase, "C") == 0) {
        check_counter(seen, event, values);
    } else if (strcmp(phase, "b") == 0 || strcmp(phase, "e") == 0) {
        check_slice(seen, event, phase[0] == 'b');
    } else if (strcmp(phase, "X") == 0) {
        check_call(seen, event, values);
    } else {
        assert_string_equal(phase, "i");
        assert_string_equal(text_of(event, "s"), "p");
        seen->points += strcmp(name, "out of memory") == 0;
    }
}

static void check_file(chrome_file *file)
{
    json_error_t problem;
    size_t index = 0;
    json_t *event = NULL;
    json_t *root = json_loadb(file->bytes, file->count, JSON_REJECT_DUPLICATES, &problem);
    if (root == NULL)
        fail_msg("line %d: %s", problem.line, problem.text);
    assert_string_equal(text_of(root, "displayTimeUnit"), "ns");
    assert_true(json_is_array(json_object_get(root, "traceEvents")));
    json_array_foreach(json_object_get(root, "traceEvents"), index, event)
    {
        check_event(file, event);
    }
    json_decref(root);
}

static void free_file(chrome_file *file)
{
    for (size_t i = 0; i < PROCESSES_MAX; i++)
        json_decref(file->processes[i].open);
    free(file->bytes);
}

/* Runs every trace of a recording twice: counted, and written. */
static void write_runs(const char *path, const char *policy, frag_device_spec *device,
                       chrome_file *file, frag_run_result *results)
{
    frag_load_options load = {.format = FRAG_FORMAT_AUTO};
    frag_recording recording;
    frag_findings findings = {0};
    frag_error error = {0};
    frag_policy_spec spec;
    *file = (chrome_file){0};
    assert_true(frag_recording_load(path, &load, &recording, &findings, &error));
    assert_true(frag_policy_spec_parse(policy, &spec, &error));
    FILE *stream = open_memstream(&file->bytes, &file->count);
    frag_chrome_writer writer = {.stream = stream};
    for (uint32_t i = 0; i < recording.trace_count; i++) {
        const frag_trace *trace = &recording.traces[i];
        frag_run_options count = {.is_layout_skipped = true};
        frag_replay_options again = {
            .stop_after = FRAG_UNLIMITED,
            .observer = frag_chrome_writer_observe,
            .observer_context = &writer,
            .on_note = frag_chrome_writer_note,
            .on_note_context = &writer,
            .on_call = frag_chrome_writer_call,
            .is_start_noted = true,
        };
        assert_true(frag_run(&(frag_run_setup){&recording, trace, spec.ops, spec.values, device},
                             &count, &results[i], &error));
        frag_chrome_writer_begin(&writer, trace, policy);
        assert_true(
            frag_run_look(&(frag_run_setup){&recording, trace, spec.ops, spec.values, device},
                          &again, NULL, NULL, &error));
    }
    frag_chrome_writer_finish(&writer, "fraglab");
    frag_chrome_writer_destroy(&writer);
    fclose(stream);
    frag_policy_spec_destroy(&spec);
    frag_recording_destroy(&recording);
    check_file(file);
}

static void check_against(const process *seen, const frag_run_result *result)
{
    assert_int_equal(seen->counter_max[3], result->replay.peak.reserved_bytes);
    assert_int_equal(seen->counter_last[0], result->replay.final.requested_bytes);
    assert_int_equal(seen->counter_last[3], result->replay.final.reserved_bytes);
    uint64_t refused = 0;
    for (uint32_t i = 0; i < FRAG_DEVICE_CALL_COUNT; i++) {
        assert_int_equal(seen->calls[i], result->calls[i]);
        refused += result->failed_calls[i];
    }
    assert_int_equal(seen->refused, refused);
    assert_int_equal(seen->slices[1],
                     result->calls[FRAG_DEVICE_MALLOC] - result->failed_calls[FRAG_DEVICE_MALLOC]);
}

static void check_peaks(const process *seen, const frag_level *peak)
{
    assert_int_equal(seen->counter_max[0], peak->requested_bytes);
    assert_int_equal(seen->counter_max[1], peak->allocated_bytes);
    assert_int_equal(seen->counter_max[2], peak->active_bytes);
}

static void a_run_has_the_figures_of_its_row(void **state)
{
    (void)state;
    chrome_file file;
    frag_run_result results[2];
    frag_latency_table *latency = frag_alloc(1, sizeof *latency);
    latency->calls[FRAG_DEVICE_MALLOC].points[0] = (frag_latency_point){.median_ns = 12345};
    latency->calls[FRAG_DEVICE_MALLOC].count = 1;
    latency->calls[FRAG_DEVICE_FREE].points[0] = (frag_latency_point){.median_ns = 678};
    latency->calls[FRAG_DEVICE_FREE].count = 1;
    frag_device_spec device = {.capacity_bytes = FRAG_GIB, .latency = latency};
    write_runs("tests/data/exchange/rmm.csv", "pytorch", &device, &file, results);
    const process *seen = &file.processes[1];
    check_against(seen, &results[0]);
    check_peaks(seen, &results[0].replay.peak);
    assert_int_equal(seen->points, 1);
    assert_int_equal(seen->slices[0],
                     results[0].replay.requests - results[0].replay.failed_requests);
    assert_true(results[0].modelled_time_ns > 0);
    assert_true(fabs(seen->modelled_ns - results[0].modelled_time_ns) < 1);
    free_file(&file);
    free(latency);
}

static void devices_are_processes_that_share_nothing(void **state)
{
    (void)state;
    chrome_file file;
    frag_run_result results[2];
    frag_device_spec device = {.capacity_bytes = FRAG_UNLIMITED};
    write_runs("tests/data/exchange/kineto.json", "pytorch", &device, &file, results);
    check_against(&file.processes[1], &results[0]);
    check_against(&file.processes[2], &results[1]);
    /* The last request of the first device failed when recorded. Here it is served inside its
     * event, while counters have the values after events. */
    assert_int_equal(file.processes[1].counter_last[0] + (512 << 20),
                     results[0].replay.peak.requested_bytes);
    check_peaks(&file.processes[2], &results[1].replay.peak);
    assert_int_equal(file.processes[1].points + file.processes[2].points, 0);
    free_file(&file);
}

static void expandable_segments_and_a_full_device_are_well_formed(void **state)
{
    (void)state;
    chrome_file file;
    frag_run_result results[2];
    frag_device_spec device = {.capacity_bytes = 512 * FRAG_MIB};
    write_runs("tests/data/exchange/kineto.json", "pytorch:expandable_segments=true", &device,
               &file, results);
    assert_true(file.processes[1].calls[FRAG_DEVICE_MAP] > 0);
    assert_int_equal(file.processes[1].counter_max[3], results[0].replay.peak.reserved_bytes);
    assert_int_equal(file.processes[1].points, results[0].replay.failed_requests);
    free_file(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_has_the_figures_of_its_row),
        cmocka_unit_test(devices_are_processes_that_share_nothing),
        cmocka_unit_test(expandable_segments_and_a_full_device_are_well_formed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
