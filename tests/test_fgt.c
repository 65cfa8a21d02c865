#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/base/digest.h"
#include "sim/base/memory.h"
#include "tests/sample_recording.h"
#include "traces/fgt.h"

static void keeps_everything_a_recording_says(void **state)
{
    (void)state;
    frag_recording recording;
    frag_recording again;
    frag_error error = {0};
    sample_recording(&recording);
    size_t bytes = 0;
    char *file = sample_written(&recording, frag_fgt_write, &bytes);
    assert_true(sample_load(file, bytes, true, &again, &error));
    assert_true(same_recording(&recording, &again));
    assert_string_equal(again.name, "sample");
    size_t bytes_again = 0;
    char *file_again = sample_written(&again, frag_fgt_write, &bytes_again);
    assert_int_equal(bytes, bytes_again);
    assert_memory_equal(file, file_again, bytes);
    free(file);
    free(file_again);
    frag_recording_destroy(&recording);
    frag_recording_destroy(&again);
}

static void keeps_what_replay_needs_without_columns(void **state)
{
    (void)state;
    frag_recording recording;
    frag_recording lean;
    frag_error error = {0};
    sample_recording(&recording);
    size_t bytes = 0;
    char *file = sample_written(&recording, frag_fgt_write, &bytes);
    assert_true(sample_load(file, bytes, false, &lean, &error));
    for (uint32_t i = 0; i < 2; i++) {
        const frag_trace *full = &recording.traces[i];
        const frag_trace *trace = &lean.traces[i];
        assert_null(trace->times_ns);
        assert_null(trace->notes);
        assert_null(trace->sites);
        assert_non_null(trace->pools);
        assert_string_equal(trace->digest, full->digest);
        assert_memory_equal(&trace->stats, &full->stats, sizeof full->stats);
        assert_memory_equal(trace->events, full->events, full->event_count * sizeof *full->events);
        for (uint64_t e = 0; e < full->event_count; e++) {
            bool is_held = frag_op_is_observed(full->events[e].op) ||
                           (full->events[e].flags & FRAG_EVENT_INITIAL) != 0;
            assert_int_equal(trace->addresses[e], is_held ? full->addresses[e] : 0);
        }
    }
    assert_memory_equal(lean.traces[1].block_bytes, recording.traces[1].block_bytes,
                        recording.traces[1].event_count * 8);
    free(file);
    frag_recording_destroy(&recording);
    frag_recording_destroy(&lean);
}

static void build_long(frag_recording *recording, uint64_t pairs)
{
    *recording = (frag_recording){0};
    frag_error error = {0};
    frag_builder *builder = frag_builder_create(recording);
    for (uint64_t i = 0; i < pairs; i++) {
        uint32_t slot = frag_builder_slot_take(builder);
        uint64_t bytes = 1 + (i * 0x9e3779b97f4a7c15u >> (i % 3 == 0 ? 30 : 50));
        frag_build_event event = {
            .op = FRAG_OP_ALLOC, .slot = slot, .bytes = bytes, .address = i << 9, .time_ns = i * i};
        frag_builder_add(builder, &event);
        if (i % 5 == 4) {
            frag_build_event release = {.op = FRAG_OP_FREE, .slot = slot, .address = i << 9};
            frag_builder_add(builder, &release);
            frag_builder_slot_give(builder, slot);
        }
    }
    if (!frag_builder_finish(builder, "sample", &error))
        fail_msg("%s", error.sentence);
}

static void keeps_traces_of_many_chunks(void **state)
{
    (void)state;
    frag_recording recording;
    frag_recording again;
    frag_error error = {0};
    build_long(&recording, 200000);
    size_t bytes = 0;
    char *file = sample_written(&recording, frag_fgt_write, &bytes);
    assert_true(sample_load(file, bytes, true, &again, &error));
    assert_true(same_recording(&recording, &again));
    free(file);
    frag_recording_destroy(&recording);
    frag_recording_destroy(&again);
}

static void keeps_a_trace_of_many_equal_events(void **state)
{
    (void)state;
    frag_recording recording = {0};
    frag_recording again;
    frag_error error = {0};
    frag_builder *builder = frag_builder_create(&recording);
    for (uint32_t i = 0; i < 300000; i++)
        frag_builder_add(builder, &(frag_build_event){.op = FRAG_OP_SYNC, .is_stream_all = true});
    assert_true(frag_builder_finish(builder, "sample", &error));
    size_t bytes = 0;
    char *file = sample_written(&recording, frag_fgt_write, &bytes);
    assert_true(sample_load(file, bytes, true, &again, &error));
    assert_true(same_recording(&recording, &again));
    free(file);
    frag_recording_destroy(&recording);
    frag_recording_destroy(&again);
}

static void keeps_an_empty_trace(void **state)
{
    (void)state;
    frag_recording recording = {0};
    frag_recording again;
    frag_error error = {0};
    assert_true(frag_builder_finish(frag_builder_create(&recording), "sample", &error));
    size_t bytes = 0;
    char *file = sample_written(&recording, frag_fgt_write, &bytes);
    assert_true(sample_load(file, bytes, true, &again, &error));
    assert_true(same_recording(&recording, &again));
    free(file);
    frag_recording_destroy(&recording);
    frag_recording_destroy(&again);
}

/* Where the n-th section begins. */
static size_t section_at(const char *file, size_t number)
{
    size_t at = FRAG_FGT_HEADER_BYTES;
    while (number-- > 0)
        at +=
            FRAG_FGT_SECTION_BYTES + (size_t)frag_fgt_get((const unsigned char *)file + at + 8, 8);
    return at;
}

static void skips_sections_of_newer_minor_versions(void **state)
{
    (void)state;
    frag_recording recording;
    frag_recording again;
    frag_error error = {0};
    sample_recording(&recording);
    size_t bytes = 0;
    char *file = sample_written(&recording, frag_fgt_write, &bytes);
    size_t at = section_at(file, 2);
    unsigned char *longer = frag_alloc(bytes + FRAG_FGT_SECTION_BYTES + 5, 1);
    memcpy(longer, file, at);
    frag_fgt_put(longer + 10, 9, 2);
    frag_fgt_put(longer + at, 77, 4);
    frag_fgt_put(longer + at + 8, 5, 8);
    memcpy(longer + at + FRAG_FGT_SECTION_BYTES + 5, file + at, bytes - at);
    assert_true(sample_load(longer, bytes + FRAG_FGT_SECTION_BYTES + 5, true, &again, &error));
    assert_true(same_recording(&recording, &again));
    free(longer);
    free(file);
    frag_recording_destroy(&recording);
    frag_recording_destroy(&again);
}

static void refuses_an_unknown_major_version(void **state)
{
    (void)state;
    frag_recording recording;
    frag_recording again;
    frag_error error = {0};
    sample_recording(&recording);
    size_t bytes = 0;
    char *file = sample_written(&recording, frag_fgt_write, &bytes);
    file[8] = 2;
    assert_false(sample_load(file, bytes, true, &again, &error));
    assert_int_equal(error.code, FRAG_E_INPUT);
    assert_string_equal(error.sentence,
                        "the file has format version 2; this fraglab reads version 1");
    free(file);
    frag_recording_destroy(&recording);
}

/* With the checksum repaired, so that what lies behind it is reached. */
static void refuses_a_summary_that_lies(void **state)
{
    (void)state;
    frag_recording recording;
    frag_recording again;
    sample_recording(&recording);
    size_t bytes = 0;
    char *file = sample_written(&recording, frag_fgt_write, &bytes);
    unsigned char *head = (unsigned char *)file + section_at(file, 0);
    unsigned char *summary = head + FRAG_FGT_SECTION_BYTES;
    size_t summary_bytes = (size_t)frag_fgt_get(head + 8, 8);
    for (size_t i = 0; i < summary_bytes; i++) {
        frag_error error = {0};
        summary[i] ^= 1;
        frag_fgt_put(head + 16, frag_hash_bytes(summary, summary_bytes), 8);
        assert_false(sample_load(file, bytes, true, &again, &error));
        assert_true(error.sentence[0] != '\0');
        summary[i] ^= 1;
    }
    free(file);
    frag_recording_destroy(&recording);
}

static void refuses_a_file_that_is_cut_anywhere(void **state)
{
    (void)state;
    frag_recording recording;
    frag_recording again;
    sample_recording(&recording);
    size_t bytes = 0;
    char *file = sample_written(&recording, frag_fgt_write, &bytes);
    for (size_t count = 0; count < bytes; count++) {
        frag_error error = {0};
        assert_false(sample_load(file, count, false, &again, &error));
        assert_int_equal(error.code, FRAG_E_INPUT);
        assert_true(error.sentence[0] != '\0');
    }
    free(file);
    frag_recording_destroy(&recording);
}

/* Damages bytes behind the checksums, which are repaired: the reader itself must stand it. */
static void repair_checksums(unsigned char *file, size_t bytes)
{
    size_t at = FRAG_FGT_HEADER_BYTES;
    while (bytes - at >= FRAG_FGT_SECTION_BYTES) {
        uint64_t length = frag_fgt_get(file + at + 8, 8);
        if (length > bytes - at - FRAG_FGT_SECTION_BYTES)
            return;
        frag_fgt_put(file + at + 16,
                     frag_hash_bytes(file + at + FRAG_FGT_SECTION_BYTES, (size_t)length), 8);
        at += FRAG_FGT_SECTION_BYTES + (size_t)length;
    }
}

static void stands_any_damage(void **state)
{
    (void)state;
    frag_recording recording;
    frag_recording again;
    sample_recording(&recording);
    size_t bytes = 0;
    char *file = sample_written(&recording, frag_fgt_write, &bytes);
    unsigned char *damaged = frag_alloc(bytes, 1);
    uint64_t seed = 1;
    uint32_t accepted = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        frag_error error = {0};
        memcpy(damaged, file, bytes);
        size_t count = sample_damage(damaged, bytes, &seed);
        if (i % 2 == 0 && count >= FRAG_FGT_HEADER_BYTES)
            repair_checksums(damaged, count);
        if (sample_load(damaged, count, i % 3 != 0, &again, &error)) {
            accepted++;
            frag_recording_destroy(&again);
        } else {
            assert_int_equal(error.code, FRAG_E_INPUT);
            assert_true(strlen(error.sentence) > 10);
        }
    }
    assert_true(accepted < 5000);
    free(damaged);
    free(file);
    frag_recording_destroy(&recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_everything_a_recording_says),
        cmocka_unit_test(keeps_what_replay_needs_without_columns),
        cmocka_unit_test(keeps_traces_of_many_chunks),
        cmocka_unit_test(keeps_a_trace_of_many_equal_events),
        cmocka_unit_test(keeps_an_empty_trace),
        cmocka_unit_test(skips_sections_of_newer_minor_versions),
        cmocka_unit_test(refuses_an_unknown_major_version),
        cmocka_unit_test(refuses_a_summary_that_lies),
        cmocka_unit_test(refuses_a_file_that_is_cut_anywhere),
        cmocka_unit_test(stands_any_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
