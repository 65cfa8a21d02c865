/* Histories without whole kinds of entries, as skip_actions leaves them: recordings of real PyTorch
 * in which the names of actions are changed to unknown ones, which are left out. */
#include "traces/torch/history/snapshot_parse.h"
#include "traces/torch/history/snapshot_skipped.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "tests/support/text_recording.h"
#include "traces/load.h"

typedef struct file_bytes {
    unsigned char *bytes;
    size_t count;
} file_bytes;

typedef struct outcome {
    frag_recording recording;
    frag_findings findings;
} outcome;

/* By bit of FRAG_SKIPPED_. */
static const char *const actions[] = {"free_requested", "free_completed", "alloc", "segment_alloc",
                                      "segment_free"};
enum { ACTIONS = sizeof actions / sizeof *actions };

static file_bytes read_whole(const char *path)
{
    file_bytes file = {0};
    size_t capacity = 0;
    frag_error error = {0};
    frag_input *input = frag_input_open(path, &error);
    assert_non_null(input);
    for (;;) {
        const unsigned char *bytes = NULL;
        size_t count = 0;
        assert_true(frag_input_peek(input, 1, &bytes, &count, &error));
        if (count == 0)
            break;
        file.bytes = frag_grow(file.bytes, &capacity, file.count + count, 1);
        memcpy(file.bytes + file.count, bytes, count);
        file.count += count;
        frag_input_skip(input, count);
    }
    frag_input_close(input);
    return file;
}

/* A string of a pickle stands behind its length; each is written once. */
static void rename_action(file_bytes *file, const char *action)
{
    size_t length = strlen(action);
    for (size_t i = 2; i + length < file->count; i++)
        if (memcmp(file->bytes + i, action, length) == 0 &&
            (file->bytes[i - 1] == length || (file->bytes[i - 4] == length && i >= 5)))
            file->bytes[i] = 'X';
}

static void load_without(const file_bytes *file, uint32_t kinds, outcome *result)
{
    file_bytes copy = {.bytes = malloc(file->count), .count = file->count};
    frag_error error = {0};
    frag_load_options options = {.with_columns = true};
    memcpy(copy.bytes, file->bytes, file->count);
    for (size_t i = 0; i < ACTIONS; i++)
        if ((kinds >> i & 1) != 0)
            rename_action(&copy, actions[i]);
    *result = (outcome){0};
    frag_input *input = frag_input_from_memory(copy.bytes, copy.count, "patched");
    if (!frag_format_snapshot.read(input, &options, &result->recording, &result->findings, &error))
        fail_msg("%s", error.sentence);
    frag_input_close(input);
    free(copy.bytes);
}

static uint64_t count_requests(const outcome *result)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < result->recording.trace_count; i++)
        count += result->recording.traces[i].stats.request_count +
                 result->recording.traces[i].stats.initial_count;
    return count;
}

static void check_file(const char *path)
{
    const uint32_t frees = FRAG_SKIPPED_FREE_REQUESTED | FRAG_SKIPPED_FREE_COMPLETED;
    file_bytes file = read_whole(path);
    outcome whole;
    load_without(&file, 0, &whole);
    assert_null(frag_recording_get(&whole.recording, "torch.skipped_actions"));
    for (uint32_t kinds = 1; kinds < 1u << ACTIONS; kinds++) {
        outcome part;
        load_without(&file, kinds, &part);
        if (frag_findings_inconsistencies(&part.findings) != 0)
            fail_msg("%s without %u: %s", path, kinds, part.findings.items[0].first);
        /* Without allocs and frees only the memory at the end is left. */
        bool has_requests = (kinds & FRAG_SKIPPED_ALLOC) == 0 || (kinds & frees) != frees;
        if (has_requests && count_requests(&part) != count_requests(&whole))
            fail_msg("%s without %u: %llu requests, expected %llu", path, kinds,
                     (unsigned long long)count_requests(&part),
                     (unsigned long long)count_requests(&whole));
        const char *said = frag_recording_get(&part.recording, "torch.skipped_actions");
        if ((kinds & FRAG_SKIPPED_ALLOC) == 0 && (kinds & frees) != 0)
            assert_true(said != NULL && strstr(said, "free_") != NULL);
        frag_recording_destroy(&part.recording);
    }
    frag_recording_destroy(&whole.recording);
    free(file.bytes);
}

static void every_kind_may_be_missing(void **state)
{
    (void)state;
    check_file("traces/samples/gpt-varlen-oom.pickle.zst");
    check_file("traces/samples/prefetch-streams.pickle.zst");
    check_file("traces/samples/model-parallel.pickle.zst");
    check_file("traces/samples/cuda-graphs.pickle.zst");
    check_file("tests/data/recordings/full-expandable.pickle.zst");
}

/* Histories of one and of two entries. */
static void short_histories_are_restored_too(void **state)
{
    (void)state;
#define SEGMENT                                                                                    \
    "{\"segments\": [{\"device\": 0, \"address\": 4096, \"total_size\": 2097152, \"stream\": 0, "  \
    "\"segment_type\": \"small\", \"blocks\": [{\"address\": 4096, \"size\": 2097152, \"state\": " \
    "\"inactive\"}]}], \"device_traces\": [["
#define ENTRY(action, bytes)                                                                       \
    "{\"action\": \"" action "\", \"addr\": 4096, \"size\": " bytes                                \
    ", \"stream\": 0, \"frames\": []}"
    static const struct {
        const char *text;
        uint64_t requests;
        uint64_t frees;
    } cases[] = {
        {SEGMENT ENTRY("free_completed", "512") "]]}", 1, 1},
        {SEGMENT ENTRY("alloc", "512") ", " ENTRY("free_completed", "512") "]]}", 1, 1},
        {SEGMENT ENTRY("free_completed", "512") ", " ENTRY("alloc", "1024") ", " ENTRY(
             "free_completed", "1024") "]]}",
         2, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        outcome result = {0};
        frag_test_load_well(cases[i].text, &result.recording, &result.findings);
        const frag_trace *trace = &result.recording.traces[0];
        uint64_t frees = 0;
        for (uint64_t k = 0; k < trace->event_count; k++)
            frees += trace->events[k].op == FRAG_OP_FREE;
        assert_int_equal(count_requests(&result), cases[i].requests);
        assert_int_equal(frees, cases[i].frees);
        assert_int_equal(frag_findings_inconsistencies(&result.findings), 0);
        frag_recording_destroy(&result.recording);
    }
#undef SEGMENT
#undef ENTRY
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_may_be_missing),
        cmocka_unit_test(short_histories_are_restored_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
