/* Tests of device_log.c: from the device calls of a program to a recording. */
#include "traces/exchange/device_log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/device_log_bytes.h"
#include "tests/support/text_recording.h"

#define NOWHERE .device = FRAG_DEVICE_UNKNOWN

/* What a log is worth as text, to be compared at a glance. */
typedef struct loaded {
    frag_recording recording;
    frag_findings findings;
    frag_error error;
    bool ok;
} loaded;

static loaded load_bytes(const unsigned char *bytes, size_t count, frag_trace_format format)
{
    loaded result = {.ok = false};
    result.ok =
        frag_test_load(bytes, count, format, &result.recording, &result.findings, &result.error);
    return result;
}

static loaded load(const frag_device_record *records, size_t count, frag_trace_format format)
{
    size_t bytes = 0;
    unsigned char *log = frag_device_log_bytes(records, count, &bytes);
    loaded result = load_bytes(log, bytes, format);
    free(log);
    if (!result.ok)
        fail_msg("%s", result.error.sentence);
    return result;
}

/* "alloc 0 100; free 0 100" */
static void assert_events(const frag_trace *trace, const char *expected)
{
    char text[1024] = "";
    for (uint64_t i = 0; i < trace->event_count; i++) {
        const frag_event *event = &trace->events[i];
        char slot[16] = "-";
        if (event->slot != FRAG_SLOT_NONE)
            snprintf(slot, sizeof slot, "%u", event->slot);
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s %s %llu", i == 0 ? "" : "; ",
                 frag_op_name((frag_op)event->op), slot, (unsigned long long)event->bytes);
    }
    assert_string_equal(text, expected);
}

static const frag_finding *find(const loaded *result, const char *kind)
{
    for (uint32_t i = 0; i < result->findings.count; i++)
        if (strcmp(result->findings.items[i].kind, kind) == 0)
            return &result->findings.items[i];
    return NULL;
}

static void assert_found(const loaded *result, const char *kind, uint64_t count)
{
    const frag_finding *finding = find(result, kind);
    if (finding == NULL)
        fail_msg("no %s", kind);
    else
        assert_int_equal(finding->count, count);
}

static void assert_clean(const loaded *result)
{
    if (result->findings.count != 0)
        fail_msg("%s", result->findings.items[0].kind);
}

static void mallocs_and_frees_are_requests(void **state)
{
    (void)state;
    const frag_device_record records[] = {
        {.call = FRAG_LOG_MALLOC, .address = 0x1000, .bytes = 100, .time_ns = 1500},
        {.call = FRAG_LOG_MALLOC_ASYNC, .address = 0x2000, .bytes = 200, .stream = 0x70},
        {.call = FRAG_LOG_FREE, .address = 0x1000, NOWHERE},
        {.call = FRAG_LOG_MALLOC, .address = 0x1000, .bytes = 300},
        {.call = FRAG_LOG_FREE_ASYNC, .address = 0x2000, .stream = 0x80, NOWHERE},
        {.call = FRAG_LOG_FREE, .address = 0, NOWHERE},
    };
    loaded result = load(records, 6, FRAG_FORMAT_AUTO);
    const frag_trace *trace = &result.recording.traces[0];
    assert_clean(&result);
    assert_int_equal(result.recording.trace_count, 1);
    assert_events(trace, "alloc 0 100; alloc 1 200; free 0 100; alloc 0 300; free 1 200");
    assert_int_equal(trace->addresses[0], 0x1000);
    assert_int_equal(trace->times_ns[0], 1000500);
    assert_int_equal(frag_trace_stream_handle(trace, trace->events[1].stream), 0x70);
    assert_int_equal(frag_trace_stream_handle(trace, trace->events[4].stream), 0x80);
    assert_int_equal(trace->stats.peak_requested_bytes, 500);
    assert_string_equal(frag_recording_get(&result.recording, "record.by"), "preload");
    assert_string_equal(frag_recording_get(&result.recording, "record.command"), "./solver -n 3");
    assert_string_equal(frag_recording_get(&result.recording, "record.cuda_runtime"), "12040");
    frag_recording_destroy(&result.recording);
}

static void asked_for_segments_it_has_only_observed_events(void **state)
{
    (void)state;
    const frag_device_record records[] = {
        {.call = FRAG_LOG_MALLOC, .address = 0x1000, .bytes = 100},
        {.call = FRAG_LOG_CREATE, .other = 7, .bytes = 64},
        {.call = FRAG_LOG_MAP, .address = 0x9000, .bytes = 64, .other = 7, NOWHERE},
        {.call = FRAG_LOG_MALLOC, .bytes = 900, .result = 2, .address = 11},
        {.call = FRAG_LOG_UNMAP, .address = 0x9000, .bytes = 64, NOWHERE},
        {.call = FRAG_LOG_RELEASE, .other = 7, NOWHERE},
        {.call = FRAG_LOG_FREE, .address = 0x1000, NOWHERE},
    };
    loaded result = load(records, 7, FRAG_FORMAT_DEVICE_SEGMENTS);
    const frag_trace *trace = &result.recording.traces[0];
    assert_clean(&result);
    assert_events(trace, "segment_alloc 0 100; segment_map 0 64; oom 0 900; segment_unmap 0 64; "
                         "segment_free 0 100");
    assert_int_equal(trace->addresses[2], 11);
    assert_int_equal(trace->stats.observed_reserved_peak_bytes, 164);
    frag_recording_destroy(&result.recording);
}

static void a_failed_request_is_an_observed_oom_and_a_failed_alloc(void **state)
{
    (void)state;
    const frag_device_record records[] = {
        {.call = FRAG_LOG_MALLOC, .bytes = 900, .result = 2, .address = 11},
        {.call = FRAG_LOG_CREATE, .bytes = 800, .result = 2},
        {.call = FRAG_LOG_FREE, .address = 0x5000, .result = 1, NOWHERE},
        {.call = FRAG_LOG_MALLOC, .bytes = 5, .result = 999},
        /* Mapping takes memory too, but is no request; a range of addresses takes none. */
        {.call = FRAG_LOG_CREATE, .other = 7, .bytes = 64},
        {.call = FRAG_LOG_MAP, .address = 0x9000, .bytes = 64, .other = 7, .result = 2, NOWHERE},
        {.call = FRAG_LOG_RESERVE, .bytes = 400, .result = 2, NOWHERE},
    };
    loaded result = load(records, 7, FRAG_FORMAT_AUTO);
    assert_events(&result.recording.traces[0],
                  "oom 0 900; alloc - 900; oom 0 800; alloc - 800; alloc 0 64; oom 0 64");
    assert_found(&result, "failed-call", 3);
    assert_int_equal(frag_findings_inconsistencies(&result.findings), 0);
    frag_recording_destroy(&result.recording);
}

static void virtual_memory_lives_as_long_as_a_handle_or_a_mapping(void **state)
{
    (void)state;
    const frag_device_record records[] = {
        {.call = FRAG_LOG_RESERVE, .address = 0x9000, .bytes = 400, NOWHERE},
        {.call = FRAG_LOG_CREATE, .other = 7, .bytes = 64},
        {.call = FRAG_LOG_MAP, .address = 0x9000, .bytes = 64, .other = 7, NOWHERE},
        {.call = FRAG_LOG_RELEASE, .other = 7, NOWHERE},
        {.call = FRAG_LOG_CREATE, .other = 7, .bytes = 32}, /* the handle is used again */
        {.call = FRAG_LOG_MAP, .address = 0x9040, .bytes = 32, .other = 7, NOWHERE},
        {.call = FRAG_LOG_RETAIN, .address = 0x9000, .other = 8, NOWHERE},
        {.call = FRAG_LOG_UNMAP, .address = 0x9000, .bytes = 96, NOWHERE}, /* both at once */
        {.call = FRAG_LOG_RELEASE, .other = 8, NOWHERE},
        {.call = FRAG_LOG_RELEASE, .other = 7, NOWHERE},
    };
    loaded result = load(records, 10, FRAG_FORMAT_AUTO);
    assert_clean(&result);
    assert_events(&result.recording.traces[0], "alloc 0 64; alloc 1 32; free 0 64; free 1 32");
    frag_recording_destroy(&result.recording);
}

static void each_device_has_its_trace(void **state)
{
    (void)state;
    const frag_device_record records[] = {
        {.call = FRAG_LOG_MALLOC, .device = 3, .address = 0x1000, .bytes = 100},
        {.call = FRAG_LOG_MALLOC, .device = 1, .address = 0x2000, .bytes = 200},
        {.call = FRAG_LOG_FREE, .address = 0x1000, NOWHERE},
    };
    loaded result = load(records, 3, FRAG_FORMAT_AUTO);
    assert_clean(&result);
    assert_int_equal(result.recording.trace_count, 2);
    assert_int_equal(result.recording.traces[0].device, 1);
    assert_events(&result.recording.traces[0], "alloc 0 200");
    assert_int_equal(result.recording.traces[1].device, 3);
    assert_events(&result.recording.traces[1], "alloc 0 100; free 0 100");
    frag_recording_destroy(&result.recording);
}

static void pools_are_told_apart_also_when_a_handle_comes_back(void **state)
{
    (void)state;
    const frag_device_record records[] = {
        {.call = FRAG_LOG_POOL_CREATE, .device = 2, .other = 0x500},
        {.call = FRAG_LOG_MALLOC_ASYNC,
         .device = 0,
         .address = 0x1000,
         .bytes = 10,
         .other = 0x500},
        {.call = FRAG_LOG_FREE_ASYNC, .address = 0x1000, NOWHERE},
        {.call = FRAG_LOG_POOL_TRIM, .other = 0x500, NOWHERE},
        {.call = FRAG_LOG_POOL_DESTROY, .other = 0x500, NOWHERE},
        {.call = FRAG_LOG_POOL_CREATE, .device = 2, .other = 0x500},
        {.call = FRAG_LOG_MALLOC_ASYNC,
         .device = 0,
         .address = 0x2000,
         .bytes = 20,
         .other = 0x500},
        {.call = FRAG_LOG_MALLOC_ASYNC,
         .device = 2,
         .address = 0x3000,
         .bytes = 30,
         .other = 0x999},
    };
    loaded result = load(records, 8, FRAG_FORMAT_AUTO);
    const frag_trace *trace = &result.recording.traces[0];
    assert_clean(&result);
    assert_int_equal(result.recording.trace_count, 1); /* the pool's device, not the thread's */
    assert_int_equal(trace->device, 2);
    assert_events(trace,
                  "pool_create 1 0; alloc 0 10; free 0 10; empty_cache 1 0; pool_release 1 0; "
                  "pool_create 2 0; alloc 0 20; alloc 1 30");
    assert_int_equal(trace->pools[1], 1);
    assert_int_equal(trace->pools[6], 2);
    assert_int_equal(trace->pools[7], 0); /* not a pool that was made: the default one */
    frag_recording_destroy(&result.recording);
}

static void a_reset_frees_what_is_on_its_device(void **state)
{
    (void)state;
    const frag_device_record records[] = {
        {.call = FRAG_LOG_MALLOC, .device = 0, .address = 0x1000, .bytes = 1},
        {.call = FRAG_LOG_MALLOC, .device = 1, .address = 0x2000, .bytes = 2},
        {.call = FRAG_LOG_CREATE, .device = 0, .other = 7, .bytes = 64},
        {.call = FRAG_LOG_MAP, .address = 0x9000, .bytes = 64, .other = 7, NOWHERE},
        {.call = FRAG_LOG_DEVICE_RESET, .device = 0},
        {.call = FRAG_LOG_CREATE, .device = 0, .other = 7, .bytes = 32},
        {.call = FRAG_LOG_MAP, .address = 0x9000, .bytes = 32, .other = 7, NOWHERE},
        {.call = FRAG_LOG_MALLOC, .device = 0, .address = 0x1000, .bytes = 3},
    };
    loaded result = load(records, 8, FRAG_FORMAT_AUTO);
    assert_clean(&result);
    assert_events(&result.recording.traces[0],
                  "alloc 0 1; alloc 1 64; free 1 64; free 0 1; alloc 0 32; alloc 1 3");
    assert_events(&result.recording.traces[1], "alloc 0 2");
    frag_recording_destroy(&result.recording);
    loaded segments = load(records, 8, FRAG_FORMAT_DEVICE_SEGMENTS);
    assert_events(&segments.recording.traces[0],
                  "segment_alloc 0 1; segment_map 0 64; segment_unmap 0 64; segment_free 0 1; "
                  "segment_map 0 32; segment_alloc 0 3");
    frag_recording_destroy(&segments.recording);
}

static void a_reset_leaves_other_devices_alone(void **state)
{
    (void)state;
    const frag_device_record records[] = {
        {.call = FRAG_LOG_MALLOC, .device = 0, .address = 0x1000, .bytes = 1},
        {.call = FRAG_LOG_MALLOC, .device = 1, .address = 0x2000, .bytes = 2},
        {.call = FRAG_LOG_DEVICE_RESET, .device = 1},
        {.call = FRAG_LOG_FREE, .address = 0x1000, NOWHERE},
    };
    loaded result = load(records, 4, FRAG_FORMAT_AUTO);
    assert_clean(&result);
    assert_events(&result.recording.traces[0], "alloc 0 1; free 0 1");
    assert_events(&result.recording.traces[1], "alloc 0 2; free 0 2");
    frag_recording_destroy(&result.recording);
}

static void memory_of_the_host_is_not_the_devices(void **state)
{
    (void)state;
    const frag_device_record records[] = {
        {.call = FRAG_LOG_HOST_MALLOC, .address = 0x1000, .bytes = 100},
        {.call = FRAG_LOG_HOST_FREE, .address = 0x1000, NOWHERE},
        {.call = FRAG_LOG_HOST_MALLOC, .address = 0x1000, .bytes = 100},
        {.call = FRAG_LOG_MANAGED, .address = 0x2000, .bytes = 100},
        {.call = FRAG_LOG_FREE, .address = 0x2000, NOWHERE},
        {.call = FRAG_LOG_CREATE, .flags = FRAG_LOG_OF_HOST, .other = 5, .bytes = 8, NOWHERE},
        {.call = FRAG_LOG_RELEASE, .other = 5, NOWHERE},
        {.call = FRAG_LOG_MALLOC, .address = 0x3000, .bytes = 1},
    };
    loaded result = load(records, 8, FRAG_FORMAT_AUTO);
    assert_events(&result.recording.traces[0], "alloc 0 1");
    assert_int_equal(result.findings.count, 1);
    assert_found(&result, "managed-memory", 1);
    frag_recording_destroy(&result.recording);
}

static void what_does_not_fit_is_counted_and_left_out(void **state)
{
    (void)state;
    const frag_device_record records[] = {
        {.call = FRAG_LOG_FREE, .address = 0x7000, NOWHERE},
        {.call = FRAG_LOG_UNMAP, .address = 0x7000, .bytes = 5, NOWHERE},
        {.call = FRAG_LOG_RELEASE, .other = 9, NOWHERE},
        {.call = FRAG_LOG_MAP, .address = 0x9000, .bytes = 64, .other = 7, NOWHERE},
        {.call = 99},
        {.call = FRAG_LOG_MALLOC, .address = 0x1000, .bytes = 10, NOWHERE},
    };
    loaded result = load(records, 6, FRAG_FORMAT_AUTO);
    assert_events(&result.recording.traces[0], "alloc 0 10");
    assert_found(&result, "free-of-unknown-address", 3);
    assert_found(&result, "map-of-unknown-memory", 1);
    assert_found(&result, "unknown-call", 1);
    assert_found(&result, "device-not-known", 1);
    assert_int_equal(find(&result, "unknown-call")->event, 4);
    assert_int_equal(frag_findings_inconsistencies(&result.findings), 0);
    frag_recording_destroy(&result.recording);
}

static void an_address_served_twice_is_inconsistent(void **state)
{
    (void)state;
    const frag_device_record records[] = {
        {.call = FRAG_LOG_MALLOC, .address = 0x1000, .bytes = 10},
        {.call = FRAG_LOG_MALLOC, .address = 0x1000, .bytes = 20},
        {.call = FRAG_LOG_FREE, .address = 0x1000, NOWHERE},
    };
    loaded result = load(records, 3, FRAG_FORMAT_AUTO);
    assert_events(&result.recording.traces[0], "alloc 0 10; free 0 10; alloc 0 20; free 0 20");
    assert_int_equal(frag_findings_inconsistencies(&result.findings), 1);
    frag_recording_destroy(&result.recording);
}

static void a_log_cut_short_says_how_much_is_missing(void **state)
{
    (void)state;
    const frag_device_record records[] = {
        {.call = FRAG_LOG_MALLOC, .address = 0x1000, .bytes = 10},
        {.number = UINT32_MAX},
        {.call = FRAG_LOG_MALLOC, .address = 0x2000, .bytes = 20},
        {.call = FRAG_LOG_MALLOC, .address = 0x3000, .bytes = 30},
    };
    size_t bytes = 0;
    unsigned char *log = frag_device_log_bytes(records, 4, &bytes);
    loaded result = load_bytes(log, bytes - 70, FRAG_FORMAT_AUTO);
    assert_true(result.ok);
    assert_events(&result.recording.traces[0], "alloc 0 10");
    assert_found(&result, "unfinished-call", 1);
    assert_string_equal(find(&result, "unfinished-call")->first, "1 of 4 calls");
    assert_found(&result, "tail-missing", 1);
    assert_string_equal(find(&result, "tail-missing")->first, "2 of 4 calls");
    assert_null(find(&result, "no-end"));
    frag_recording_destroy(&result.recording);
    memset(log + 72, 0, 8);
    result = load_bytes(log, bytes, FRAG_FORMAT_AUTO);
    assert_found(&result, "no-end", 1);
    assert_null(find(&result, "tail-missing"));
    frag_recording_destroy(&result.recording);
    free(log);
}

static void activities_serve_only_where_no_call_was_seen(void **state)
{
    (void)state;
    frag_device_record records[] = {
        {.call = FRAG_LOG_ACTIVITY_FREE, .address = 0x1000, .time_ns = 1900, NOWHERE},
        {.call = FRAG_LOG_ACTIVITY_ALLOC, .address = 0x1000, .bytes = 5, .time_ns = 1800},
        {.call = FRAG_LOG_CREATE, .bytes = 6, .other = 7, .time_ns = 1850},
    };
    loaded result = load(records, 3, FRAG_FORMAT_AUTO);
    assert_clean(&result);
    assert_events(&result.recording.traces[0], "alloc 0 5; alloc 1 6; free 0 5");
    frag_recording_destroy(&result.recording);
    records[2].call = FRAG_LOG_MALLOC;
    records[2].address = 0x4000;
    result = load(records, 3, FRAG_FORMAT_AUTO);
    assert_clean(&result);
    assert_events(&result.recording.traces[0], "alloc 0 6");
    frag_recording_destroy(&result.recording);
}

static void an_empty_log_is_a_recording_without_events(void **state)
{
    (void)state;
    loaded result = load(NULL, 0, FRAG_FORMAT_AUTO);
    assert_clean(&result);
    assert_int_equal(result.recording.trace_count, 1);
    assert_int_equal(result.recording.traces[0].event_count, 0);
    frag_recording_destroy(&result.recording);
}

static void assert_refused(size_t offset, uint8_t value, size_t bytes_kept, const char *sentence)
{
    const frag_device_record records[] = {
        {.call = FRAG_LOG_MALLOC, .address = 0x1000, .bytes = 10},
    };
    size_t bytes = 0;
    unsigned char *log = frag_device_log_bytes(records, 1, &bytes);
    log[offset] = value;
    loaded result =
        load_bytes(log, bytes_kept < bytes ? bytes_kept : bytes, FRAG_FORMAT_DEVICE_LOG);
    free(log);
    assert_false(result.ok);
    assert_int_equal(result.error.code, FRAG_E_INPUT);
    if (strstr(result.error.sentence, sentence) == NULL)
        fail_msg("'%s' is not in '%s'", sentence, result.error.sentence);
}

static void what_cannot_be_a_log_is_refused(void **state)
{
    (void)state;
    assert_refused(0, 'x', SIZE_MAX, "not a device log");
    assert_refused(8, 2, SIZE_MAX, "has version 2; expected 1");
    assert_refused(13, 0, SIZE_MAX, "the header has 0 bytes");
    assert_refused(14, 2, SIZE_MAX, "expected 4096 to 65536");
    assert_refused(16, 8, SIZE_MAX, "records have 8 bytes");
    assert_refused(4096 + 56, 3, SIZE_MAX, "record 0 has number 3; expected 1");
    assert_refused(4096 + 53, 2, SIZE_MAX, "names device 512; expected one below 256");
    assert_refused(4096 + 16 + 7, 1, SIZE_MAX, "expected at most 2^56 - 1");
    assert_refused(0, 0x89, 1000, "the file ends; expected 3096 more bytes");
}

/* A record of whole 2^56 bytes is refused, one byte less is not; the same for devices and lengths.
 */
static void the_last_number_that_is_allowed_is_accepted(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        uint16_t device;
        int32_t code;
        uint32_t call;
        bool is_sound;
    } cases[] = {
        {FRAG_REQUEST_BYTES_MAX, 0, 0, FRAG_LOG_MALLOC, true},
        {FRAG_REQUEST_BYTES_MAX + 1, 0, 0, FRAG_LOG_MALLOC, false},
        {FRAG_REQUEST_BYTES_MAX + 1, 0, 2, FRAG_LOG_MALLOC, true},
        {UINT64_MAX, 0, 0, FRAG_LOG_POOL_SET, true},
        {UINT64_MAX, 0, 0, FRAG_LOG_POOL_TRIM, true},
        {1, FRAG_DEVICE_LOG_DEVICES_MAX - 1, 0, FRAG_LOG_MALLOC, true},
        {1, FRAG_DEVICE_LOG_DEVICES_MAX, 0, FRAG_LOG_MALLOC, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const frag_device_record record = {.call = (uint8_t)cases[i].call,
                                           .address = 0x1000,
                                           .bytes = cases[i].bytes,
                                           .device = cases[i].device,
                                           .result = cases[i].code};
        size_t bytes = 0;
        unsigned char *log = frag_device_log_bytes(&record, 1, &bytes);
        loaded result = load_bytes(log, bytes, FRAG_FORMAT_DEVICE_LOG);
        free(log);
        if (result.ok != cases[i].is_sound)
            fail_msg("case %zu: %s", i, result.error.sentence);
        if (result.ok)
            frag_recording_destroy(&result.recording);
    }
    /* The header, 4096 bytes; of a log without records only its lengths are looked at. */
    for (unsigned beyond = 0; beyond < 2; beyond++) {
        size_t bytes = 0;
        unsigned char *log = frag_device_log_bytes(NULL, 0, &bytes);
        unsigned char *longer = calloc(1, 65536 + 1);
        assert_non_null(longer);
        memcpy(longer, log, FRAG_DEVICE_LOG_HEADER_BYTES);
        free(log);
        const uint32_t header_bytes = 65536 + beyond;
        memcpy(longer + offsetof(frag_device_log_header, header_bytes), &header_bytes, 4);
        loaded result = load_bytes(longer, header_bytes, FRAG_FORMAT_DEVICE_LOG);
        free(longer);
        assert_int_equal(result.ok, beyond == 0);
        if (result.ok)
            frag_recording_destroy(&result.recording);
    }
}

/* A later version may write a longer header, and a program that is killed leaves bytes behind. */
static void a_longer_header_and_what_follows_the_records_are_passed_over(void **state)
{
    (void)state;
    enum { LONGER = 5000 };
    const frag_device_record records[] = {
        {.call = FRAG_LOG_MALLOC, .address = 0x1000, .bytes = 10},
        {.call = FRAG_LOG_MALLOC, .address = 0x2000, .bytes = 20},
    };
    size_t bytes = 0;
    unsigned char *log = frag_device_log_bytes(records, 2, &bytes);
    unsigned char *longer = calloc(1, bytes + LONGER);
    assert_non_null(longer);
    memcpy(longer, log, FRAG_DEVICE_LOG_HEADER_BYTES);
    memcpy(longer + FRAG_DEVICE_LOG_HEADER_BYTES + LONGER, log + FRAG_DEVICE_LOG_HEADER_BYTES,
           bytes - FRAG_DEVICE_LOG_HEADER_BYTES);
    free(log);
    const uint32_t header_bytes = FRAG_DEVICE_LOG_HEADER_BYTES + LONGER;
    memcpy(longer + offsetof(frag_device_log_header, header_bytes), &header_bytes, 4);
    longer[offsetof(frag_device_log_header, begun_count)] = 1;
    loaded result = load_bytes(longer, bytes + LONGER, FRAG_FORMAT_DEVICE_LOG);
    free(longer);
    assert_true(result.ok);
    assert_clean(&result);
    assert_events(&result.recording.traces[0], "alloc 0 10");
    frag_recording_destroy(&result.recording);
}

static void the_format_is_told_by_content(void **state)
{
    (void)state;
    frag_trace_format format;
    assert_true(frag_trace_format_find("device-log", &format));
    assert_int_equal(format, FRAG_FORMAT_DEVICE_LOG);
    assert_true(frag_trace_format_find("device-segments", &format));
    assert_int_equal(format, FRAG_FORMAT_DEVICE_SEGMENTS);
    assert_string_equal(frag_log_call_name(FRAG_LOG_FREE_ASYNC), "free_async");
    assert_null(frag_log_call_name(0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mallocs_and_frees_are_requests),
        cmocka_unit_test(asked_for_segments_it_has_only_observed_events),
        cmocka_unit_test(a_failed_request_is_an_observed_oom_and_a_failed_alloc),
        cmocka_unit_test(virtual_memory_lives_as_long_as_a_handle_or_a_mapping),
        cmocka_unit_test(each_device_has_its_trace),
        cmocka_unit_test(pools_are_told_apart_also_when_a_handle_comes_back),
        cmocka_unit_test(a_reset_frees_what_is_on_its_device),
        cmocka_unit_test(a_reset_leaves_other_devices_alone),
        cmocka_unit_test(memory_of_the_host_is_not_the_devices),
        cmocka_unit_test(what_does_not_fit_is_counted_and_left_out),
        cmocka_unit_test(an_address_served_twice_is_inconsistent),
        cmocka_unit_test(a_log_cut_short_says_how_much_is_missing),
        cmocka_unit_test(activities_serve_only_where_no_call_was_seen),
        cmocka_unit_test(an_empty_log_is_a_recording_without_events),
        cmocka_unit_test(what_cannot_be_a_log_is_refused),
        cmocka_unit_test(the_last_number_that_is_allowed_is_accepted),
        cmocka_unit_test(a_longer_header_and_what_follows_the_records_are_passed_over),
        cmocka_unit_test(the_format_is_told_by_content),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
