/* What the library writes and verifies, as a program sees it. That the bytes are those of the
 * commands says library.bats; here, that calls end as the header says on wrong arguments, when they
 * are told to, on hostile recordings and without host memory, and that nothing stays of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/fraglab.h"
#include "tests/api/failing_memory.h"

#define SMALL_SAMPLE "tests/data/snapshots/empty-with-gc.pickle"
#define OOM_SAMPLE "traces/samples/gpt-varlen-oom.pickle.zst"

static fraglab_recording *open_sample(const char *path)
{
    fraglab_error error = FRAGLAB_ERROR_INIT;
    fraglab_recording *recording = NULL;
    fraglab_open_options options = {.size = sizeof options, .with_sites = 1};
    if (fraglab_open_path(NULL, path, &options, &recording, &error) != FRAGLAB_OK)
        fail_msg("%s: %s", error.where, error.sentence);
    return recording;
}

static fraglab_policy *parse(const char *text)
{
    fraglab_policy *policy = NULL;
    assert_int_equal(fraglab_policy_parse(text, &policy, NULL), FRAGLAB_OK);
    return policy;
}

typedef struct subject {
    const fraglab_context *context;
    fraglab_recording *recording;
    fraglab_policy *policy;
} subject;

static subject make_subject(const char *path, const char *policy)
{
    return (subject){.recording = open_sample(path), .policy = parse(policy)};
}

static void destroy_subject(subject *of)
{
    fraglab_policy_destroy(of->policy);
    fraglab_recording_close(of->recording);
}

/* ---- runs */

static int write_run(const subject *of, const char *format, size_t trace,
                     const fraglab_run_file_options *options, uint64_t capacity_bytes,
                     fraglab_error *error)
{
    fraglab_run_options run = FRAGLAB_RUN_OPTIONS_INIT;
    run.capacity_bytes = capacity_bytes;
    void *bytes = NULL;
    size_t count = 0;
    int code = fraglab_run_write_memory(of->context, of->recording, trace, of->policy, &run, format,
                                        options, &bytes, &count, error);
    assert_int_equal(bytes != NULL, code == FRAGLAB_OK);
    assert_int_equal(count > 0, code == FRAGLAB_OK);
    fraglab_free(bytes);
    return code;
}

static void refuses_what_cannot_be_written(void **state)
{
    (void)state;
    static const struct {
        const char *format;
        const char *at;
        size_t trace;
        uint64_t capacity_bytes;
        const char *where;
        const char *part;
    } wrong[] = {
        {"pdf", NULL, 0, 0, "format", "expected snapshot, chrome, placement or driver-log"},
        {"snapshot", "now", 0, 0, "at", "expected peak, oom, end or the number of an event"},
        {"snapshot", "99999999", 0, 0, "at", "the trace has no event 99999999"},
        {"snapshot", "oom", 0, 0, "at", "no request of this run failed"},
        {"chrome", "peak", 0, 0, "at", "only a snapshot ends at a point"},
        {"placement", NULL, FRAGLAB_ALL_TRACES, 0, "trace", "a placement is that of one trace"},
        {"driver-log", NULL, FRAGLAB_ALL_TRACES, 0, "trace", "a driver log is that of one trace"},
        {"driver-log", "end", 0, 0, "at", "only a snapshot ends at a point"},
        {"placement", NULL, 0, 64 << 20, "", "could not be placed"},
        {"chrome", NULL, 7, 0, "", "there is no trace 7"},
    };
    subject of = make_subject(OOM_SAMPLE, "best-fit");
    long before = frag_live_memory();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        fraglab_error error = FRAGLAB_ERROR_INIT;
        fraglab_run_file_options options = {.size = sizeof options, .at = wrong[i].at};
        assert_int_equal(write_run(&of, wrong[i].format, wrong[i].trace, &options,
                                   wrong[i].capacity_bytes, &error),
                         FRAGLAB_E_USAGE);
        if (wrong[i].where[0] != '\0')
            assert_string_equal(error.where, wrong[i].where);
        if (strstr(error.sentence, wrong[i].part) == NULL)
            fail_msg("%s: expected %s", error.sentence, wrong[i].part);
    }
    assert_int_equal(frag_live_memory(), before);
    destroy_subject(&of);
}

/* A file that is there stays as it was until all of the new one is written. */
static void a_file_is_whole_or_as_it_was(void **state)
{
    (void)state;
    subject of = make_subject(SMALL_SAMPLE, "best-fit");
    fraglab_run_file_options options = {.size = sizeof options};
    char path[] = "/tmp/fraglab-test-library-XXXXXX";
    int descriptor = mkstemp(path);
    assert_int_equal(write(descriptor, "mine", 4), 4);
    close(descriptor);
    for (int overwrite = 0; overwrite < 2; overwrite++) {
        char text[5] = "";
        fraglab_error error = FRAGLAB_ERROR_INIT;
        options.overwrite = overwrite;
        options.at = overwrite ? "99999999" : NULL; /* ends in the middle of writing */
        assert_int_equal(fraglab_run_write(NULL, of.recording, 0, of.policy, NULL, "snapshot", path,
                                           &options, &error),
                         FRAGLAB_E_USAGE);
        FILE *file = fopen(path, "r");
        assert_int_equal(fread(text, 1, sizeof text, file), 4);
        fclose(file);
        assert_memory_equal(text, "mine", 4);
    }
    options.at = NULL;
    assert_int_equal(
        fraglab_run_write(NULL, of.recording, 0, of.policy, NULL, "snapshot", path, &options, NULL),
        FRAGLAB_OK);
    fraglab_recording_close(open_sample(path));
    unlink(path);
    assert_int_equal(fraglab_run_write(NULL, of.recording, 0, of.policy, NULL, "snapshot",
                                       "/no/such/folder/file", NULL, NULL),
                     FRAGLAB_E_SYSTEM);
    destroy_subject(&of);
}

/* Of the process that the library is in. */
static void nothing_goes_to_stdout(void **state)
{
    (void)state;
    static const char *const names[] = {"-", "/dev/stdout"};
    static const char *const figure[] = {SMALL_SAMPLE};
    subject of = make_subject(SMALL_SAMPLE, "best-fit");
    const fraglab_report_options report = {.size = sizeof report,
                                           .recordings =
                                               (const fraglab_recording *const *)&of.recording,
                                           .recording_count = 1};
    const fraglab_drawing_options svg = {.size = sizeof svg, .format = "svg"};
    for (size_t i = 0; i < 2; i++) {
        const char *path = names[i];
        fraglab_error errors[4] = {FRAGLAB_ERROR_INIT, FRAGLAB_ERROR_INIT, FRAGLAB_ERROR_INIT,
                                   FRAGLAB_ERROR_INIT};
        const int codes[4] = {
            fraglab_recording_write(of.recording, "text", path, 1, &errors[0]),
            fraglab_run_write(NULL, of.recording, 0, of.policy, NULL, "chrome", path, NULL,
                              &errors[1]),
            fraglab_report_write(NULL, NULL, 0, NULL, &report, path, &errors[2]),
            fraglab_figure_draw(NULL, "timeline", figure, 1, NULL, NULL, &svg, path, &errors[3]),
        };
        for (size_t call = 0; call < 4; call++) {
            assert_int_equal(codes[call], FRAGLAB_E_USAGE);
            assert_string_equal(errors[call].where, "path");
            assert_non_null(strstr(errors[call].sentence, "name a file"));
        }
    }
    destroy_subject(&of);
}

static int call_snapshot(void *argument)
{
    fraglab_run_file_options options = {.size = sizeof options, .at = "peak"};
    return write_run(argument, "snapshot", FRAGLAB_ALL_TRACES, &options, 0, NULL);
}

static int call_packed_snapshot(void *argument)
{
    const subject *of = argument;
    fraglab_run_file_options options = {.size = sizeof options, .overwrite = 1};
    char path[64];
    snprintf(path, sizeof path, "/tmp/fraglab-test-library-%d.zst", (int)getpid());
    int code = fraglab_run_write(of->context, of->recording, 0, of->policy, NULL, "snapshot", path,
                                 &options, NULL);
    assert_int_equal(access(path, F_OK) == 0, code == FRAGLAB_OK);
    unlink(path);
    return code;
}

static int call_chrome(void *argument)
{
    return write_run(argument, "chrome", 0, NULL, 0, NULL);
}

static int call_placement(void *argument)
{
    return write_run(argument, "placement", 0, NULL, 0, NULL);
}

static int call_driver_log(void *argument)
{
    return write_run(argument, "driver-log", 0, NULL, 0, NULL);
}

static int run_with_stats(const subject *of, const char *at, fraglab_result **result,
                          fraglab_error *error)
{
    fraglab_run_options options = FRAGLAB_RUN_OPTIONS_INIT;
    options.stats_at = at;
    options.with_timing = 1;
    return fraglab_run(of->context, of->recording, 0, of->policy, &options, result, error);
}

static int call_statistics(void *argument)
{
    fraglab_result *result = NULL;
    int code = run_with_stats(argument, "peak", &result, NULL);
    assert_int_equal(result != NULL, code == FRAGLAB_OK);
    fraglab_result_destroy(result);
    return code;
}

static void adds_statistics_and_times_where_asked(void **state)
{
    (void)state;
    subject of = make_subject(SMALL_SAMPLE, "pytorch:version=2.8");
    fraglab_result *result = NULL;
    uint64_t wall_ns = 0, event = 0;
    assert_int_equal(run_with_stats(&of, "end", &result, NULL), FRAGLAB_OK);
    assert_non_null(strstr(fraglab_result_json(result), "\"reserved_bytes.all.peak\":"));
    assert_int_equal(fraglab_result_u64(result, "replay.wall_ns", &wall_ns, NULL), FRAGLAB_OK);
    assert_true(wall_ns > 0);
    fraglab_result_destroy(result);
    /* Right after the event that is named. */
    assert_int_equal(run_with_stats(&of, "3", &result, NULL), FRAGLAB_OK);
    assert_int_equal(fraglab_result_u64(result, "memory_stats_event", &event, NULL), FRAGLAB_OK);
    assert_int_equal(event, 3);
    fraglab_result_destroy(result);
    /* A run that does not get to the point says so. */
    assert_int_equal(run_with_stats(&of, "oom", &result, NULL), FRAGLAB_OK);
    assert_null(strstr(fraglab_result_json(result), "reserved_bytes.all.peak"));
    fraglab_result_destroy(result);
    assert_int_equal(fraglab_run(NULL, of.recording, 0, of.policy, NULL, &result, NULL),
                     FRAGLAB_OK);
    assert_int_equal(fraglab_result_u64(result, "replay.wall_ns", &wall_ns, NULL), FRAGLAB_E_USAGE);
    fraglab_result_destroy(result);
    static const char *const wrong[] = {"now", "99999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        fraglab_error error = FRAGLAB_ERROR_INIT;
        assert_int_equal(run_with_stats(&of, wrong[i], &result, &error), FRAGLAB_E_USAGE);
        assert_string_equal(error.where, "stats_at");
        assert_null(result);
    }
    destroy_subject(&of);
}

/* ---- against what was recorded */

/* A run of PyTorch's policy as a recording that does not say with which settings it was made. */
static fraglab_recording *without_settings(void)
{
    subject of = make_subject(OOM_SAMPLE, "pytorch:roundup_power2_divisions=4");
    fraglab_open_options with_sites = {.size = sizeof with_sites, .with_sites = 1};
    fraglab_recording *made = NULL;
    void *bytes = NULL;
    size_t count = 0;
    assert_int_equal(fraglab_run_write_memory(NULL, of.recording, 0, of.policy, NULL, "snapshot",
                                              NULL, &bytes, &count, NULL),
                     FRAGLAB_OK);
    destroy_subject(&of);
    assert_int_equal(fraglab_open_memory(NULL, bytes, count, &with_sites, &made, NULL), FRAGLAB_OK);
    fraglab_free(bytes);
    assert_int_equal(fraglab_recording_write_memory(made, "text", &bytes, &count, NULL),
                     FRAGLAB_OK);
    fraglab_recording_close(made);
    for (char *at = bytes; (at = strstr(at, "\"torch.")) != NULL; at++)
        memcpy(at, "\"other.", 7);
    assert_int_equal(fraglab_open_memory(NULL, bytes, count, &with_sites, &made, NULL), FRAGLAB_OK);
    fraglab_free(bytes);
    return made;
}

static void concludes_what_a_recording_does_not_say(void **state)
{
    (void)state;
    fraglab_recording *recording = without_settings();
    fraglab_policy *plain = parse("pytorch:roundup_power2_divisions=1");
    fraglab_verification found = {.size = sizeof found};
    assert_int_equal(fraglab_verify(NULL, recording, 0, NULL, 0, &found, NULL), FRAGLAB_OK);
    assert_true(found.is_identical);
    assert_true(found.requests > 0);
    assert_string_equal(found.inferred_settings, "roundup_power2_divisions=4");
    assert_int_equal(fraglab_verify(NULL, recording, 0, plain, 0, &found, NULL), FRAGLAB_OK);
    assert_false(found.is_identical); /* what was given stays */
    assert_string_equal(found.inferred_settings, "");
    fraglab_policy_destroy(plain);
    fraglab_recording_close(recording);
}

static void tells_the_first_difference(void **state)
{
    (void)state;
    subject of = make_subject(SMALL_SAMPLE, "best-fit");
    fraglab_verification found = {.size = sizeof found};
    fraglab_verify_options options = {.size = sizeof options, .count_all = 1};
    char *json = NULL;
    assert_int_equal(fraglab_verify(NULL, of.recording, 0, of.policy, 0, &found, NULL), FRAGLAB_OK);
    assert_false(found.is_identical);
    assert_int_equal(found.differences, 1);
    assert_string_equal(found.first_kind, "failed");
    assert_string_equal(found.inferred_settings, "");
    assert_int_equal(fraglab_verify_json(NULL, of.recording, 0, of.policy, &options, &json, NULL),
                     FRAGLAB_OK);
    assert_non_null(strstr(json, "\"is_identical\":false"));
    assert_null(strstr(json, "\"differences\":1,"));
    fraglab_free(json);
    destroy_subject(&of);
}

static void refuses_what_cannot_be_verified(void **state)
{
    (void)state;
    static const char requests[] = "# fraglab trace 1\nalloc 0 1024\nfree 0\n";
    fraglab_open_options with_sites = {.size = sizeof with_sites, .with_sites = 1};
    fraglab_recording *recording = NULL;
    fraglab_error error = FRAGLAB_ERROR_INIT;
    char *json = NULL;
    assert_int_equal(fraglab_open_path(NULL, SMALL_SAMPLE, NULL, &recording, NULL), FRAGLAB_OK);
    assert_int_equal(fraglab_verify_json(NULL, recording, 0, NULL, NULL, &json, &error),
                     FRAGLAB_E_USAGE);
    assert_non_null(strstr(error.sentence, "set with_sites"));
    fraglab_recording_close(recording);
    assert_int_equal(
        fraglab_open_memory(NULL, requests, sizeof requests - 1, &with_sites, &recording, NULL),
        FRAGLAB_OK);
    assert_int_equal(fraglab_verify_json(NULL, recording, 0, NULL, NULL, &json, &error),
                     FRAGLAB_E_INPUT);
    assert_non_null(strstr(error.sentence, "there is nothing to verify"));
    assert_null(json);
    fraglab_recording_close(recording);
}

static int call_verify(void *argument)
{
    const subject *of = argument;
    char *json = NULL;
    int code = fraglab_verify_json(of->context, of->recording, 0, NULL, NULL, &json, NULL);
    assert_int_equal(json != NULL, code == FRAGLAB_OK);
    fraglab_free(json);
    return code;
}

/* Settings that are looked for in vain, too. */
static int call_verify_other(void *argument)
{
    const subject *of = argument;
    static const char text[] = "# fraglab trace 1\nsegment_alloc 2097152 addr=0x100000\n"
                               "alloc 0 1024 addr=0x100000\nalloc 1 700 addr=0x100600\nfree 0\n";
    fraglab_open_options with_sites = {.size = sizeof with_sites, .with_sites = 1};
    fraglab_recording *recording = NULL;
    char *json = NULL;
    int code =
        fraglab_open_memory(of->context, text, sizeof text - 1, &with_sites, &recording, NULL);
    if (code == FRAGLAB_OK)
        code = fraglab_verify_json(of->context, recording, 0, NULL, NULL, &json, NULL);
    if (code == FRAGLAB_OK)
        assert_non_null(strstr(json, "\"tried\":\""));
    fraglab_free(json);
    fraglab_recording_close(recording);
    return code;
}

/* ---- against golden logs */

#define GOLDEN_SAMPLE "tests/data/golden-nasty/limit-digits-2.9.1.jsonl.zst"

static int verify_golden(const subject *of, const void *bytes, size_t count, fraglab_golden *golden,
                         fraglab_error *error)
{
    char *json = NULL;
    int code = bytes != NULL ? fraglab_verify_golden_memory(of->context, bytes, count, NULL, NULL,
                                                            0, golden, &json, error)
                             : fraglab_verify_golden_path(of->context, GOLDEN_SAMPLE, NULL, 1,
                                                          golden, &json, error);
    assert_int_equal(json != NULL, code == FRAGLAB_OK);
    fraglab_free(json);
    return code;
}

static int call_golden(void *argument)
{
    return verify_golden(argument, NULL, 0, NULL, NULL);
}

static const char golden_log[] =
    "{\"golden\":\"c10\",\"schema\":1,\"torch\":\"2.9.1\",\"conf\":\"\",\"capacity\":"
    "67108864,\"granularity\":2097152,\"devices\":1,\"va\":\"firstfit\",\"malloc_base"
    "\":\"0x700000000000\",\"vmm_base\":\"0x600000000000\",\"events\":true}\n"
    "{\"op\":\"alloc\",\"id\":0,\"size\":1000,\"stream\":0,\"addr\":\"0x700000000000"
    "\",\"drv\":[[\"malloc\",\"0x700000000000\",2097152,0]],\"ev\":[[\"SA\",\"0x70000"
    "0000000\",2097152,0],[\"A\",\"0x700000000000\",1000,0]]}\n"
    "{\"op\":\"alloc\",\"id\":1,\"size\":0,\"stream\":0,\"addr\":\"0x0\"}\n"
    "{\"op\":\"alloc\",\"id\":2,\"size\":512,\"stream\":0,\"addr\":\"0x700000000400\""
    "}\n"
    "{\"op\":\"free\",\"id\":0}\n"
    "{\"op\":\"free\",\"id\":1}\n"
    "{\"op\":\"snapshot\",\"at\":5,\"segments\":1}\n"
    "{\"op\":\"segment\",\"dev\":0,\"addr\":\"0x700000000000\",\"size\":2097152,\"str"
    "eam\":0,\"pool\":\"small\",\"expandable\":false,\"private\":[0,0],\"allocated\":"
    "512,\"active\":512,\"requested\":512,\"blocks\":[[\"0x700000000000\",1024,0,\"I"
    "\"],[\"0x700000000400\",512,512,\"A\"],[\"0x700000000600\",2095616,0,\"I\"]]}\n"
    "{\"op\":\"end\",\"done\":5,\"mallocs\":1,\"malloc_fails\":0,\"frees\":0,\"create"
    "s\":0,\"create_fails\":0,\"unmaps\":0,\"ooms\":0}\n";

static void compares_with_golden_logs(void **state)
{
    (void)state;
    const subject none = {.policy = NULL};
    fraglab_golden found = {.size = sizeof found};
    fraglab_error error = FRAGLAB_ERROR_INIT;
    assert_int_equal(verify_golden(&none, NULL, 0, &found, NULL), FRAGLAB_OK);
    assert_true(found.is_identical && found.requests > 0);
    assert_int_equal(found.first_line, FRAGLAB_UNLIMITED);
    assert_string_equal(found.first_kind, "");
    assert_int_equal(verify_golden(&none, golden_log, sizeof golden_log - 1, &found, NULL),
                     FRAGLAB_OK);
    assert_true(found.is_identical);
    assert_int_equal(found.requests, 5);
    assert_int_equal(found.segments, 1);
    assert_int_equal(verify_golden(&none, "{}", 2, &found, &error), FRAGLAB_E_INPUT);
    assert_string_equal(error.where, "memory");
    assert_int_equal(error.line, 1);
    assert_int_equal(verify_golden(&none, "", 0, &found, &error), FRAGLAB_E_INPUT);
    found.size = 3;
    assert_int_equal(verify_golden(&none, NULL, 0, &found, &error), FRAGLAB_E_USAGE);
    assert_int_equal(fraglab_verify_golden_path(NULL, "no/such/log", NULL, 0, NULL, NULL, &error),
                     FRAGLAB_E_INPUT);
    assert_string_equal(error.where, "no/such/log");
    subject other = {.policy = parse("best-fit")};
    found.size = sizeof found;
    assert_int_equal(
        fraglab_verify_golden_path(NULL, GOLDEN_SAMPLE, other.policy, 0, &found, NULL, NULL),
        FRAGLAB_OK);
    assert_false(found.is_identical);
    assert_true(found.first_line > 1 && found.first_kind[0] != '\0');
    fraglab_policy_destroy(other.policy);
}

/* ---- a piece */

static int call_cut(void *argument)
{
    const subject *of = argument;
    fraglab_cut_options options = {.size = sizeof options, .first_event = 1};
    fraglab_recording *piece = NULL;
    int code = fraglab_recording_cut(of->recording, 0, &options, &piece, NULL);
    assert_int_equal(piece != NULL, code == FRAGLAB_OK);
    fraglab_recording_close(piece);
    return code;
}

static int call_problem(void *argument)
{
    const subject *of = argument;
    void *bytes = NULL;
    size_t count = 0;
    int code = fraglab_recording_write_memory(of->recording, "minimalloc", &bytes, &count, NULL);
    assert_int_equal(bytes != NULL, code == FRAGLAB_OK);
    fraglab_free(bytes);
    return code;
}

static void cuts_by_events_times_or_marks(void **state)
{
    (void)state;
    static const char text[] =
        "# fraglab trace 1\nalloc 0 1024 time=1000\nmark \"step\" begin time=1500\n"
        "alloc 1 512 time=2000\nmark \"step\" end time=2500\nfree 0 time=3000\n";
    fraglab_open_options with_sites = {.size = sizeof with_sites, .with_sites = 1};
    fraglab_recording *recording = NULL;
    fraglab_recording *piece = NULL;
    fraglab_trace_facts facts = {.size = sizeof facts};
    fraglab_error error = FRAGLAB_ERROR_INIT;
    static const struct {
        fraglab_cut_options options;
        uint64_t events;   /* 0: refused */
        const char *where; /* of what is refused */
    } cases[] = {
        {{.first_event = 2}, 3, NULL},
        {{.start_ns = 2000, .end_ns = 3000}, 2, NULL},
        {{.first_mark = "step"}, 3, NULL},
        {{.first_event = 2, .first_mark = "step"}, 0, "first_mark"},
        {{.first_event = 2, .end_ns = 3000}, 0, "start_ns"},
        {{.first_mark = "epoch"}, 0, "first_mark"},
        {{.last_mark = "step"}, 0, "last_mark"},
        {{.first_event = 1, .last_mark = "step"}, 0, "last_mark"},
        {{.first_event = 9}, 0, "first_event"},
        {{.first_event = 5, .end_event = 3}, 0, "first_event"},
    };
    if (fraglab_open_memory(NULL, text, sizeof text - 1, &with_sites, &recording, &error) !=
        FRAGLAB_OK)
        fail_msg("%s", error.sentence);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fraglab_cut_options options = cases[i].options;
        options.size = sizeof options;
        int code = fraglab_recording_cut(recording, 0, &options, &piece, &error);
        assert_int_equal(code, cases[i].events > 0 ? FRAGLAB_OK : FRAGLAB_E_USAGE);
        if (code != FRAGLAB_OK) {
            assert_string_equal(error.where, cases[i].where);
            continue;
        }
        assert_int_equal(fraglab_recording_trace_facts(piece, 0, &facts, NULL), FRAGLAB_OK);
        assert_int_equal(facts.event_count, cases[i].events + 1); /* with what was held */
        assert_int_equal(facts.initial_bytes, 1024);
        fraglab_recording_close(piece);
    }
    fraglab_recording_close(recording);
}

/* ---- the page of a report */

static int write_report(const fraglab_context *context, const char *const *paths, size_t count,
                        const fraglab_report_options *options, fraglab_error *error)
{
    fraglab_run_options run = FRAGLAB_RUN_OPTIONS_INIT;
    run.capacity_bytes = 24 << 20;
    run.with_bounds = 1;
    void *bytes = NULL;
    size_t length = 0;
    int code =
        fraglab_report_write_memory(context, paths, count, &run, options, &bytes, &length, error);
    assert_int_equal(bytes != NULL, code == FRAGLAB_OK);
    fraglab_free(bytes);
    return code;
}

static int call_report(void *argument)
{
    const subject *of = argument;
    static const char *const paths[] = {SMALL_SAMPLE, "tests/data/exchange/rmm.csv"};
    const fraglab_policy *const policies[] = {of->policy};
    fraglab_report_options options = {
        .size = sizeof options, .policies = policies, .policy_count = 1, .title = "a page"};
    if (of->recording != NULL) {
        options.recordings = (const fraglab_recording *const *)&of->recording;
        options.recording_count = 1;
    }
    return write_report(of->context, paths, 2, &options, NULL);
}

static void refuses_what_cannot_be_reported(void **state)
{
    (void)state;
    static const char *const missing[] = {"no/such/file"};
    static const char *const source[] = {"tests/api/library.bats"};
    fraglab_report_options options = {.size = sizeof options, .format = "novel"};
    fraglab_error error = FRAGLAB_ERROR_INIT;
    assert_int_equal(write_report(NULL, missing, 1, NULL, &error), FRAGLAB_E_INPUT);
    assert_string_equal(error.where, "no/such/file");
    assert_int_equal(write_report(NULL, source, 1, NULL, &error), FRAGLAB_E_INPUT);
    assert_string_equal(error.where, source[0]);
    assert_int_equal(write_report(NULL, NULL, 0, NULL, &error), FRAGLAB_E_USAGE);
    assert_string_equal(error.where, "paths");
    assert_int_equal(write_report(NULL, source, 1, &options, &error), FRAGLAB_E_USAGE);
    assert_string_equal(error.where, "format");
}

/* ---- every call */

static const struct {
    const char *name;
    frag_call_to_try *call;
} entries[] = {
    {"snapshot", call_snapshot},     {"packed snapshot", call_packed_snapshot},
    {"chrome", call_chrome},         {"placement", call_placement},
    {"verify", call_verify},         {"driver log", call_driver_log},
    {"statistics", call_statistics}, {"golden", call_golden},
};

/* These ask no context, or soon have no more to ask. */
static const struct {
    const char *name;
    frag_call_to_try *call;
} short_entries[] = {{"cut", call_cut},
                     {"problem", call_problem},
                     {"verify another", call_verify_other},
                     {"report", call_report}};

enum { ENTRY_COUNT = sizeof entries / sizeof *entries };

static void failing_memory_is_an_error_and_leaves_nothing(void **state)
{
    (void)state;
    subject of = make_subject(SMALL_SAMPLE, "pytorch:version=2.8");
    for (size_t i = 0; i < ENTRY_COUNT; i++)
        frag_expect_memory_may_fail(entries[i].name, entries[i].call, &of);
    for (size_t i = 0; i < sizeof short_entries / sizeof *short_entries; i++)
        frag_expect_memory_may_fail(short_entries[i].name, short_entries[i].call, &of);
    destroy_subject(&of);
}

/* Says that the call is to end when it is asked so often; goes on to say so. */
static int count_down(void *user)
{
    atomic_int *left = user;
    return atomic_load(left) == 0 || atomic_fetch_sub(left, 1) == 1;
}

static fraglab_context *cancelled_by(atomic_int *left)
{
    fraglab_context *context = NULL;
    fraglab_context_options options = {
        .size = sizeof options, .user = left, .is_cancelled = count_down, .threads = 2};
    assert_int_equal(fraglab_context_create(&options, &context, NULL), FRAGLAB_OK);
    return context;
}

static void ends_when_it_is_told_to(void **state)
{
    (void)state;
    atomic_int left = 1;
    fraglab_context *context = cancelled_by(&left);
    subject of = make_subject(OOM_SAMPLE, "best-fit");
    of.context = context;
    long before = frag_live_memory();
    for (size_t i = 0; i < ENTRY_COUNT; i++) {
        for (int after = 1; after <= 3; after++) {
            atomic_store(&left, after);
            if (entries[i].call(&of) != FRAGLAB_E_CANCELLED)
                fail_msg("%s went on after question %d", entries[i].name, after);
        }
        atomic_store(&left, -1); /* never */
        assert_int_equal(entries[i].call(&of), FRAGLAB_OK);
    }
    assert_int_equal(frag_live_memory(), before);
    destroy_subject(&of);
    fraglab_context_destroy(context);
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void hostile_recordings_end_in_an_error_or_a_file(void **state)
{
    (void)state;
    unsigned char whole[1 << 16];
    unsigned char broken[sizeof whole];
    FILE *file = fopen(SMALL_SAMPLE, "rb");
    size_t count = fread(whole, 1, sizeof whole, file);
    fclose(file);
    subject of = {.policy = parse("pytorch")};
    uint32_t seed = 7;
    uint32_t used = 0;
    long before = frag_live_memory();
    for (int round = 0; round < 400; round++) {
        fraglab_open_options options = {.size = sizeof options, .with_sites = round % 2};
        memcpy(broken, whole, count);
        for (int i = 0; i < 1 + round % 3; i++)
            broken[next_random(&seed) % count] = (unsigned char)next_random(&seed);
        if (fraglab_open_memory(NULL, broken, count, &options, &of.recording, NULL) != FRAGLAB_OK)
            continue;
        for (size_t i = 0; i < ENTRY_COUNT; i++)
            assert_in_range(entries[i].call(&of), FRAGLAB_OK, FRAGLAB_E_SYSTEM);
        for (size_t i = 0; i < sizeof short_entries / sizeof *short_entries; i++)
            assert_in_range(short_entries[i].call(&of), FRAGLAB_OK, FRAGLAB_E_SYSTEM);
        fraglab_recording_close(of.recording);
        used++;
    }
    assert_true(used > 20);
    assert_int_equal(frag_live_memory(), before);
    fraglab_policy_destroy(of.policy);
}

static void hostile_golden_logs_end_in_an_error_or_an_answer(void **state)
{
    (void)state;
    char broken[sizeof golden_log];
    const subject none = {.policy = NULL};
    uint32_t seed = 11;
    uint32_t used = 0;
    uint32_t differ = 0;
    long before = frag_live_memory();
    for (int round = 0; round < 2000; round++) {
        fraglab_golden found = {.size = sizeof found};
        memcpy(broken, golden_log, sizeof broken);
        /* Digits for digits: a log that is still one. */
        size_t at = next_random(&seed) % (sizeof broken - 1);
        bool is_digit = broken[at] >= '0' && broken[at] <= '9';
        broken[at] = (char)(is_digit ? '0' + next_random(&seed) % 10 : next_random(&seed));
        int code = verify_golden(&none, broken, sizeof broken - 1, &found, NULL);
        assert_true(code == FRAGLAB_OK || code == FRAGLAB_E_INPUT || code == FRAGLAB_E_USAGE);
        used += code == FRAGLAB_OK;
        differ += code == FRAGLAB_OK && !found.is_identical;
    }
    assert_true(used > 100);
    assert_true(differ > 50);
    assert_int_equal(frag_live_memory(), before);
}

/* ---- threads */

typedef struct threaded {
    subject of;
    bool is_cancelled; /* in the end */
    int code[ENTRY_COUNT];
} threaded;

static void *call_on_thread(void *argument)
{
    threaded *calls = argument;
    while (calls->is_cancelled && calls->code[0] == FRAGLAB_OK)
        calls->code[0] = call_chrome(&calls->of);
    for (size_t i = 0; !calls->is_cancelled && i < ENTRY_COUNT; i++)
        if (entries[i].call != call_packed_snapshot) /* all would write one file */
            calls->code[i] = entries[i].call(&calls->of);
    return NULL;
}

/* Contexts of their own, one recording; one of them is cancelled from here. */
static void threads_share_a_recording(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    subject shared = make_subject(OOM_SAMPLE, "best-fit");
    pthread_t threads[THREADS];
    threaded calls[THREADS];
    atomic_int left[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        atomic_init(&left[i], -1);
        calls[i] = (threaded){.of = shared, .is_cancelled = i == 0};
        calls[i].of.context = cancelled_by(&left[i]);
        assert_int_equal(pthread_create(&threads[i], NULL, call_on_thread, &calls[i]), 0);
    }
    atomic_store(&left[0], 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(calls[0].code[0], FRAGLAB_E_CANCELLED);
    for (size_t i = 0; i < THREADS; i++) {
        for (size_t k = 0; i > 0 && k < ENTRY_COUNT; k++)
            assert_int_equal(calls[i].code[k], FRAGLAB_OK);
        fraglab_context_destroy((fraglab_context *)(uintptr_t)calls[i].of.context);
    }
    destroy_subject(&shared);
}

/* The last test: the limit is the process's. */
static void memory_is_limited_where_files_can_be_made(void **state)
{
    (void)state;
    fraglab_error error = FRAGLAB_ERROR_INIT;
    assert_int_equal(fraglab_limit_memory(0, "/nowhere", &error), FRAGLAB_E_SYSTEM);
    assert_non_null(strstr(error.sentence, "/nowhere"));
    assert_int_equal(fraglab_limit_memory(0, NULL, &error), FRAGLAB_OK);
    fraglab_recording_close(open_sample(OOM_SAMPLE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_what_cannot_be_written),
        cmocka_unit_test(a_file_is_whole_or_as_it_was),
        cmocka_unit_test(nothing_goes_to_stdout),
        cmocka_unit_test(adds_statistics_and_times_where_asked),
        cmocka_unit_test(concludes_what_a_recording_does_not_say),
        cmocka_unit_test(tells_the_first_difference),
        cmocka_unit_test(refuses_what_cannot_be_verified),
        cmocka_unit_test(compares_with_golden_logs),
        cmocka_unit_test(cuts_by_events_times_or_marks),
        cmocka_unit_test(refuses_what_cannot_be_reported),
        cmocka_unit_test(failing_memory_is_an_error_and_leaves_nothing),
        cmocka_unit_test(ends_when_it_is_told_to),
        cmocka_unit_test(hostile_recordings_end_in_an_error_or_a_file),
        cmocka_unit_test(hostile_golden_logs_end_in_an_error_or_an_answer),
        cmocka_unit_test(threads_share_a_recording),
        cmocka_unit_test(memory_is_limited_where_files_can_be_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
