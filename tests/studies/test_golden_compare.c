/* Policies against logs of the libraries themselves, in every build; all of them, and what is
 * printed: tests/studies/golden.bats, tests/studies/golden_peers.bats. */
#include "studies/verify/golden_compare.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/inputs.h"

typedef struct loaded {
    frag_golden_log log;
    frag_recording recording;
    uint64_t *ends;
    frag_policy_spec spec;
} loaded;

static void load(const char *folder, const char *name, loaded *all)
{
    char path[256];
    frag_error error = {0};
    frag_policy_spec spec;
    snprintf(path, sizeof path, "%s/%s.jsonl.zst", folder, name);
    frag_input *input = frag_input_open(path, &error);
    if (input == NULL || !frag_golden_log_read(input, &all->log, &error) ||
        !frag_golden_log_record(&all->log, name, &all->recording, &all->ends, &error))
        fail_msg("%s: %s", path, error.sentence);
    frag_input_close(input);
    const char *policy = all->log.library == 0
                             ? "pytorch:recorded"
                             : frag_strings_get(&all->log.strings, all->log.policy);
    assert_true(frag_policy_spec_parse(policy, &spec, &error));
    assert_true(frag_policy_resolve(NULL, &spec, &all->recording, &all->spec, &error));
    frag_policy_spec_destroy(&spec);
}

static void unload(loaded *all)
{
    frag_policy_spec_destroy(&all->spec);
    free(all->ends);
    frag_recording_destroy(&all->recording);
    frag_golden_log_destroy(&all->log);
}

static void compare(const loaded *all, frag_golden_result *result)
{
    frag_golden_options options = {.check_every = 500};
    frag_error error = {0};
    if (!frag_golden_compare(&all->log, &all->recording, all->ends, &all->spec, &options, result,
                             &error))
        fail_msg("%s: %s", all->recording.name, error.sentence);
}

static void compare_whole(const loaded *all, const char *name, frag_golden_result *result)
{
    compare(all, result);
    if (!result->is_identical)
        fail_msg("%s:%llu: %s: the library has %s; the policy has %s", name,
                 (unsigned long long)result->line, result->kind, result->library.bytes,
                 result->policy.bytes);
}

static void follows_the_real_library(void **state)
{
    (void)state;
    static const char *const names[] = {
        "2.1.2-streams-exp-2",       "2.1.2-oversize-exp-ms64-1", "2.4.1-nested-def-1",
        "2.4.1-settings-def-2",      "2.6.0-fraction-gc5-1",      "2.6.0-graph-def-3",
        "2.6.0-twodev-exp-1",        "2.9.1-gc-exp-gc5-1",        "2.9.1-mempooloom-def-2",
        "2.12.1-mempool-exp-1",      "2.12.1-tight-exp-toc-1",    "2.15.0-mempoolnosplit-def-1",
        "2.15.0-bounds-exp-lss40-1",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        loaded all;
        frag_golden_result result;
        load("build/golden", names[i], &all);
        compare_whole(&all, names[i], &result);
        assert_true(result.requests > 50);
        assert_true(result.device_events > 0);
        frag_golden_result_destroy(&result);
        unload(&all);
    }
}

static void follows_the_pools_of_other_frameworks(void **state)
{
    (void)state;
    static const char *const names[] = {
        "rmm-pool-streams4-evdown", "rmm-pool-max-odd",     "rmm-binning-pool",
        "rmm-fixed-64K-32",         "rmm-arena-bound-oom",  "tf-bfc-coalesce-down",
        "tf-bfc-refuse-2",          "ort-bfc-shrink-ph-s1", "ort-bfc-huge-s0",
        "cupy-limit-train",         "cupy-streams4",        "paddle-down",
        "paddle-idle-chunk",        "paddle-small-train",   "paddle-trim",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        loaded all;
        frag_golden_result result;
        load("tests/data/golden-peers", names[i], &all);
        compare_whole(&all, names[i], &result);
        assert_true(result.requests > 2000);
        frag_golden_result_destroy(&result);
        unload(&all);
    }
}

/* The index of the n-th line (from 0) of an op. */
static uint32_t find_line(const frag_golden_log *log, frag_golden_op op, uint32_t n)
{
    for (uint32_t i = 0; i < log->line_count; i++)
        if (log->lines[i].op == op && n-- == 0)
            return i;
    fail();
    return 0;
}

/* Compares a log in which something was changed, and expects it to be found where it is. */
static void assert_found(const loaded *all, uint32_t index, const char *kind)
{
    frag_golden_result result;
    compare(all, &result);
    assert_false(result.is_identical);
    assert_string_equal(result.kind, kind);
    assert_int_equal(result.line, frag_golden_line_number(index));
    assert_string_not_equal(result.library.bytes, result.policy.bytes);
    frag_golden_result_destroy(&result);
}

static void finds_what_was_changed_in_a_log(void **state)
{
    (void)state;
    loaded all;
    load("build/golden", "2.9.1-tight-exp-ms64-1", &all);
    frag_golden_log *log = &all.log;
    uint32_t at = find_line(log, FRAG_GOLDEN_ALLOC, 500);
    log->lines[at].address ^= 512;
    assert_found(&all, at, "address");
    log->lines[at].address ^= 512;

    for (at = 0; !log->lines[at].is_oom; at++)
        continue;
    uint32_t words = log->lines[at].text;
    log->lines[at].text = 0;
    assert_found(&all, at, "message");
    log->lines[at].text = words;
    log->lines[at].is_oom = false;
    assert_found(&all, at, "oom");
    log->lines[at].is_oom = true;

    for (size_t i = 0; i < log->call_count; i += log->call_count / 7) {
        for (at = 0; log->lines[at].calls.first + log->lines[at].calls.count <= i; at++)
            continue;
        log->calls[i].count++;
        assert_found(&all, at, "device_calls");
        log->calls[i].count--;
    }
    for (size_t i = 0; i < log->note_count; i += log->note_count / 7) {
        for (at = 0; log->lines[at].notes.first + log->lines[at].notes.count <= i; at++)
            continue;
        log->notes[i].stream ^= 4096;
        assert_found(&all, at, "trace_events");
        log->notes[i].stream ^= 4096;
    }
    at = find_line(log, FRAG_GOLDEN_STATS, 3);
    for (size_t i = 0; i < log->lines[at].items.count; i++) {
        frag_golden_figure *figure = &log->figures[log->lines[at].items.first + i];
        figure->value++;
        assert_found(&all, at, "stats");
        figure->value--;
    }
    at = find_line(log, FRAG_GOLDEN_SEGMENT, 1);
    log->blocks[log->lines[at].items.first].requested_bytes++;
    assert_found(&all, at, "segments");
    log->blocks[log->lines[at].items.first].requested_bytes--;
    at = find_line(log, FRAG_GOLDEN_END, 0);
    log->figures[log->lines[at].items.first + 1].value++;
    assert_found(&all, at, "end");
    log->figures[log->lines[at].items.first + 1].value--;

    frag_golden_result result;
    log->lines[at].op = FRAG_GOLDEN_SEGMENT; /* one more than the snapshot says */
    compare(&all, &result);
    assert_string_equal(result.library.bytes, "a segment more");
    frag_golden_result_destroy(&result);
    log->lines[at].op = FRAG_GOLDEN_END;

    compare(&all, &result);
    assert_true(result.is_identical);
    frag_golden_result_destroy(&result);
    unload(&all);
}

/* A library that did not return repeated its last call until it was stopped. */
static void a_call_repeated_to_the_end_is_made_once(void **state)
{
    (void)state;
    loaded all;
    frag_golden_result result;
    load("build/golden", "2.9.1-tight-exp-ms64-1", &all);
    frag_golden_log *log = &all.log;
    uint32_t at = 20;
    while (log->lines[at].op != FRAG_GOLDEN_ALLOC || log->lines[at].calls.count == 0)
        at++;
    frag_golden_line *line = &log->lines[at];
    frag_golden_call *behind = &log->calls[line->calls.first + line->calls.count];
    log->line_count = at + 1;
    *behind = behind[-1];
    line->calls.count++;
    assert_found(&all, at, "device_calls");
    line->is_hang = true;
    compare(&all, &result);
    assert_true(result.is_identical);
    assert_true(result.has_failed);
    frag_golden_result_destroy(&result);
    behind->bytes += 512;
    assert_found(&all, at, "device_calls");
    unload(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_the_real_library),
        cmocka_unit_test(follows_the_pools_of_other_frameworks),
        cmocka_unit_test(finds_what_was_changed_in_a_log),
        cmocka_unit_test(a_call_repeated_to_the_end_is_made_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
