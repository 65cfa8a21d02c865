/* Tests of the .fgt format: recordings written and read back, old versions, damaged files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/digest.h"
#include "base/memory.h"
#include "tests/fgt/fgt_sections.h"
#include "tests/support/sample_recording.h"
#include "tests/support/text_recording.h"
#include "traces/fgt/fgt.h"

static size_t count_sections(const char *file, size_t bytes, unsigned kind)
{
    size_t count = 0;
    for (size_t number = 0; section_at(file, number) < bytes; number++)
        count += (unsigned char)file[section_at(file, number)] == kind;
    return count;
}

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
    assert_int_equal(count_sections(file, bytes, FRAG_FGT_FRAMES), 1);
    assert_int_equal(count_sections(file, bytes, FRAG_FGT_SITES), 1);
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

/* A column with one value, at its very end, is no column of zeros. */
static void keeps_a_single_value_at_the_end_of_a_column(void **state)
{
    (void)state;
    static const struct {
        const char *flag;
        const char *value;
    } columns[] = {{"", "addr=0x1000"}, {"", "time=7"},     {" initial", "block=512"},
                   {"", "pool=3"},      {"", "note=\"x\""}, {"", "site=1"}};
    for (size_t column = 0; column < sizeof columns / sizeof columns[0]; column++) {
        frag_text text = {0};
        frag_text_add(&text, "# fraglab trace 1\nframe \"f\" \"a.py\" 1\nsite 0\n");
        for (int slot = 0; slot < 5; slot++)
            frag_text_add(&text, "alloc %d 5%s %s\n", slot, columns[column].flag,
                          slot == 4 ? columns[column].value : "");
        frag_recording recording;
        frag_recording again;
        frag_error error = {0};
        if (!sample_load(text.bytes, text.length, true, &recording, &error))
            fail_msg("%s: %s", columns[column].value, error.sentence);
        size_t bytes = 0;
        char *file = sample_written(&recording, frag_fgt_write, &bytes);
        assert_true(sample_load(file, bytes, true, &again, &error));
        if (!same_recording(&recording, &again))
            fail_msg("%s is lost", columns[column].value);
        free(file);
        frag_text_destroy(&text);
        frag_recording_destroy(&recording);
        frag_recording_destroy(&again);
    }
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

/* As people and other programs number slots: not the one that was given back last. */
static void keeps_slots_that_nobody_foresees(void **state)
{
    (void)state;
    enum { SLOTS = 3000 };
    static bool is_taken[SLOTS];
    frag_recording recording = {0};
    frag_recording again;
    frag_error error = {0};
    frag_builder *builder = frag_builder_create(&recording);
    uint64_t random = 1;
    for (uint32_t i = 0; i < 150000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint32_t slot = (uint32_t)(random >> 33) % SLOTS;
        frag_builder_add(builder,
                         &(frag_build_event){.op = is_taken[slot] ? FRAG_OP_FREE : FRAG_OP_ALLOC,
                                             .slot = slot,
                                             .bytes = is_taken[slot] ? i % 3 : 1 + i % 7});
        is_taken[slot] = !is_taken[slot];
    }
    assert_true(frag_builder_finish(builder, "sample", &error));
    size_t bytes = 0;
    char *file = sample_written(&recording, frag_fgt_write, &bytes);
    assert_true(sample_load(file, bytes, true, &again, &error));
    assert_true(same_recording(&recording, &again));
    free(file);
    frag_recording_destroy(&recording);
    frag_recording_destroy(&again);
}

/* Each takes another slot than a reader foresees. */
static void keeps_slots_when_none_is_foreseen(void **state)
{
    (void)state;
    frag_recording recording;
    frag_recording again;
    frag_error error = {0};
    size_t bytes = 0;
    frag_test_recording("alloc 1 512\nalloc 0 1024\n", &recording);
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

/* 1,000 sizes that come again and again: a number for each event would take two bytes or more. */
static void what_comes_again_takes_little_room(void **state)
{
    (void)state;
    enum { PAIRS = 50000 };
    frag_recording recording = {0};
    frag_error error = {0};
    frag_builder *builder = frag_builder_create(&recording);
    for (uint64_t i = 0; i < PAIRS; i++) {
        uint32_t slot = frag_builder_slot_take(builder);
        uint64_t bytes = 512 + i % 1000 * 7919 * 7919 % 1000003 * 512;
        frag_builder_add(builder,
                         &(frag_build_event){.op = FRAG_OP_ALLOC, .slot = slot, .bytes = bytes});
        frag_builder_add(builder, &(frag_build_event){.op = FRAG_OP_FREE, .slot = slot});
        frag_builder_slot_give(builder, slot);
    }
    assert_true(frag_builder_finish(builder, "sample", &error));
    size_t bytes = 0;
    char *file = sample_written(&recording, frag_fgt_write, &bytes);
    assert_true(bytes < PAIRS / 2);
    free(file);
    frag_recording_destroy(&recording);
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

/* Chunks in which all events, or all but the requests, are of one kind. */
static void keeps_events_of_one_kind(void **state)
{
    (void)state;
    static const frag_build_event kinds[] = {
        {.op = FRAG_OP_SEGMENT_ALLOC, .bytes = 2097152, .address = 4096},
        {.op = FRAG_OP_SEGMENT_FREE, .bytes = 2097152, .address = 4096},
        {.op = FRAG_OP_SEGMENT_MAP, .bytes = 2097152, .address = 4096},
        {.op = FRAG_OP_SEGMENT_UNMAP, .bytes = 2097152, .address = 4096},
        {.op = FRAG_OP_OOM, .bytes = 512, .address = 5},
        {.op = FRAG_OP_SYNC, .is_stream_all = true},
        {.op = FRAG_OP_EMPTY_CACHE, .slot = FRAG_SLOT_NONE},
        {.op = FRAG_OP_CAPTURE_BEGIN},
        {.op = FRAG_OP_ALLOC, .slot = FRAG_SLOT_NONE, .bytes = 99, .flags = FRAG_EVENT_FAILED},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (uint32_t requests = 0; requests < 3; requests++) {
            frag_recording recording = {0};
            frag_recording again;
            frag_error error = {0};
            frag_builder *builder = frag_builder_create(&recording);
            frag_builder_add(builder, &kinds[i]);
            for (uint32_t k = 0; k < requests; k++)
                frag_builder_add(builder, &(frag_build_event){.op = FRAG_OP_ALLOC,
                                                              .slot = k,
                                                              .bytes = 512,
                                                              .address = 8192 + 512 * k});
            if (!frag_builder_finish(builder, "sample", &error))
                fail_msg("%s", error.sentence);
            size_t bytes = 0;
            char *file = sample_written(&recording, frag_fgt_write, &bytes);
            if (!sample_load(file, bytes, true, &again, &error))
                fail_msg("kind %zu: %s", i, error.sentence);
            assert_true(same_recording(&recording, &again));
            frag_free(file);
            frag_recording_destroy(&recording);
            frag_recording_destroy(&again);
        }
}

/* Tables of a few strings are one section; those of megabytes are cut where they pass one. */
static void cuts_tables_of_megabytes(void **state)
{
    (void)state;
    enum { STRINGS = 30, STRING_BYTES = 100000 };
    char *text = frag_alloc(STRING_BYTES + 1, 1);
    memset(text, 'x', STRING_BYTES);
    for (int is_long = 0; is_long < 2; is_long++) {
        frag_recording recording = {0};
        frag_recording again;
        frag_error error = {0};
        frag_builder *builder = frag_builder_create(&recording);
        for (int i = 0; i < STRINGS; i++) {
            text[0] = (char)('0' + i / 10);
            text[1] = (char)('0' + i % 10);
            text[2] = is_long != 0 ? 'x' : '\0';
            frag_build_event mark = {.op = FRAG_OP_MARK, .slot = sample_string(builder, text)};
            frag_builder_add(builder, &mark);
        }
        assert_true(frag_builder_finish(builder, "sample", &error));
        size_t bytes = 0;
        char *file = sample_written(&recording, frag_fgt_write, &bytes);
        assert_int_equal(count_sections(file, bytes, FRAG_FGT_STRINGS), is_long != 0 ? 3 : 1);
        assert_true(sample_load(file, bytes, true, &again, &error));
        assert_true(same_recording(&recording, &again));
        frag_free(file);
        frag_recording_destroy(&recording);
        frag_recording_destroy(&again);
    }
    frag_free(text);
}

/* Tables that follow the events they are for, so that these cannot be judged as they come. */
static void reads_tables_wherever_they_are(void **state)
{
    (void)state;
    frag_recording recording;
    frag_recording again;
    frag_error error = {0};
    sample_recording(&recording);
    size_t bytes = 0;
    char *file = sample_written(&recording, frag_fgt_write, &bytes);
    size_t tables = section_at(file, 2);
    size_t events = tables;
    for (size_t number = 2; file[events] != FRAG_FGT_EVENTS; number++)
        events = section_at(file, number + 1);
    size_t end = index_at(file, bytes); /* it is left out, as it names places */
    char *turned = frag_alloc(bytes, 1);
    memcpy(turned, file, tables);
    memcpy(turned + tables, file + events, end - events);
    memcpy(turned + tables + (end - events), file + tables, events - tables);
    memcpy(turned + end, file + bytes - FRAG_FGT_SECTION_BYTES, FRAG_FGT_SECTION_BYTES);
    assert_true(sample_load(turned, end + FRAG_FGT_SECTION_BYTES, true, &again, &error));
    assert_true(same_recording(&recording, &again));
    free(turned);
    free(file);
    frag_recording_destroy(&recording);
    frag_recording_destroy(&again);
}

/* The same sample, written when the file's version was the newest. */
static void reads_old_file(const char *path, bool has_newest)
{
    frag_recording recording;
    frag_recording old;
    frag_recording lean;
    frag_error error = {0};
    frag_findings findings = {0};
    const frag_load_options all = {.with_columns = true, .with_sites = true};
    const frag_load_options some = {0};
    sample_recording_of(&recording, has_newest);
    assert_true(frag_recording_load(path, &all, &old, &findings, &error));
    assert_true(same_recording(&recording, &old));
    assert_true(frag_recording_load(path, &some, &lean, &findings, &error));
    assert_string_equal(lean.traces[1].digest, recording.traces[1].digest);
    assert_memory_equal(lean.traces[1].events, recording.traces[1].events,
                        recording.traces[1].event_count * sizeof *recording.traces[1].events);
    assert_memory_equal(lean.traces[1].block_bytes, recording.traces[1].block_bytes,
                        recording.traces[1].event_count * 8);
    frag_recording_destroy(&recording);
    frag_recording_destroy(&old);
    frag_recording_destroy(&lean);
}

static void reads_files_of_every_version(void **state)
{
    (void)state;
    reads_old_file("tests/fuzz/corpus/fgt/version-1.fgt", false);
    reads_old_file("tests/fuzz/corpus/fgt/version-2.fgt", false);
    reads_old_file("tests/fuzz/corpus/fgt/version-3.fgt", true);
}

static size_t encoded(frag_fgt_encoding encoding, const uint64_t *values, uint32_t count,
                      unsigned char *raw, frag_fgt_coding *coding)
{
    frag_fgt_encoder *encoder = frag_fgt_encoder_create();
    frag_fgt_encoder_take(encoder, values, count);
    size_t size = frag_fgt_encode(encoder, encoding, raw, coding);
    frag_fgt_encoder_destroy(encoder);
    return size;
}

static void read_back(const unsigned char *raw, size_t raw_bytes, frag_fgt_coding coding,
                      const uint64_t *values, uint32_t count, uint32_t step)
{
    frag_fgt_cursor cursor;
    frag_error error = {0};
    uint64_t *back = frag_alloc(count, sizeof *back);
    assert_true(frag_fgt_cursor_open(&cursor, coding, raw, raw_bytes, UINT64_MAX, count, &error));
    for (uint32_t first = 0; first < count; first += step)
        assert_true(frag_fgt_cursor_next(&cursor, back + first,
                                         count - first < step ? count - first : step, &error));
    assert_memory_equal(back, values, count * sizeof *values);
    frag_fgt_cursor_close(&cursor);
    uint32_t *narrow = frag_alloc(count, sizeof *narrow);
    bool is_narrow =
        frag_fgt_cursor_open(&cursor, coding, raw, raw_bytes, UINT32_MAX, count, &error);
    for (uint32_t first = 0; is_narrow && first < count; first += step)
        is_narrow = frag_fgt_cursor_next_32(&cursor, narrow + first,
                                            count - first < step ? count - first : step, &error);
    bool fits = true;
    for (uint32_t i = 0; i < count; i++)
        fits = fits && values[i] <= UINT32_MAX && (!is_narrow || narrow[i] == values[i]);
    assert_int_equal(fits, is_narrow);
    frag_fgt_cursor_close(&cursor);
    free(narrow);
    assert_false(
        frag_fgt_cursor_open(&cursor, coding, raw, raw_bytes + 1, UINT64_MAX, count, &error));
    assert_false(
        frag_fgt_cursor_open(&cursor, coding, raw, raw_bytes - 1, UINT64_MAX, count, &error));
    free(back);
}

static void every_encoding_gives_back_what_it_took(void **state)
{
    (void)state;
    static const uint32_t counts[] = {1, 2, 7, 64, 1000, 65536};
    static const uint32_t steps[] = {65536, 512, 3, 1};
    uint64_t *values = frag_alloc(FRAG_FGT_CHUNK_EVENTS, sizeof *values);
    for (uint32_t bits = 0; bits <= 64; bits++)
        for (uint32_t c = 0; c < 6; c++)
            for (uint32_t encoding = FRAG_FGT_PLAIN; encoding <= FRAG_FGT_BITS; encoding++) {
                uint32_t count = counts[c];
                if (count > 1000 && bits % 13 != 3)
                    continue;
                for (uint32_t i = 0; i < count; i++)
                    values[i] = bits == 0 ? 0 : (i + 1) * 0x9e3779b97f4a7c15u >> (64 - bits);
                /* Of the size it has, so that a sanitizer sees what is read behind it. */
                unsigned char *raw = frag_alloc(FRAG_FGT_RAW_BYTES_MAX(count), 1);
                frag_fgt_coding coding;
                size_t raw_bytes =
                    encoded((frag_fgt_encoding)encoding, values, count, raw, &coding);
                assert_true(raw_bytes <= FRAG_FGT_RAW_BYTES_MAX(count));
                raw = frag_realloc(raw, raw_bytes, 1);
                read_back(raw, raw_bytes, coding, values, count, steps[(bits + c) % 4]);
                free(raw);
            }
    free(values);
}

static void columns_of_bytes_are_read_whole(void **state)
{
    (void)state;
    uint64_t values[1001];
    uint8_t bytes[1001];
    unsigned char raw[FRAG_FGT_RAW_BYTES_MAX(1001)];
    for (uint32_t distinct = 1; distinct <= 256; distinct++)
        for (uint32_t encoding = FRAG_FGT_PLAIN; encoding <= FRAG_FGT_BITS; encoding++) {
            frag_error error = {0};
            frag_fgt_coding coding;
            frag_fgt_cursor cursor;
            for (uint32_t i = 0; i < 1001; i++)
                values[i] = 255 - (i * 7 + i / 5) % distinct;
            size_t size = encoded((frag_fgt_encoding)encoding, values, 1001, raw, &coding);
            assert_true(frag_fgt_cursor_open(&cursor, coding, raw, size, 255, 1001, &error));
            assert_true(frag_fgt_cursor_bytes(&cursor, bytes, &error));
            frag_fgt_cursor_close(&cursor);
            for (uint32_t i = 0; i < 1001; i++)
                assert_int_equal(bytes[i], values[i]);
        }
}

/* Numbers of distinct values that leave some places free: no powers of two. */
static void refuses_places_beyond_the_dictionary(void **state)
{
    (void)state;
    static const uint32_t positions[] = {0, 3, 7, 500, 999};
    uint64_t values[1000];
    uint8_t bytes[1000];
    unsigned char raw[FRAG_FGT_RAW_BYTES_MAX(1000)];
    for (uint32_t distinct = 5; distinct <= 250; distinct += 13)
        for (uint32_t encoding = 0; encoding < 2; encoding++)
            for (uint32_t p = 0; p < 5; p++) {
                frag_error error = {0};
                frag_fgt_coding coding;
                frag_fgt_cursor cursor;
                for (uint32_t i = 0; i < 1000; i++)
                    values[i] = i % distinct;
                frag_fgt_encoding named = encoding == 0 ? FRAG_FGT_BITS : FRAG_FGT_DICTIONARY;
                size_t size = encoded(named, values, 1000, raw, &coding);
                uint32_t width = encoding == 0 ? coding.width : coding.width * 8u;
                unsigned char *places = raw + 4 + distinct * coding.value_width;
                uint32_t at = positions[p] * width;
                for (uint32_t bit = at; bit < at + width; bit++)
                    places[bit / 8] = (unsigned char)(places[bit / 8] | 1u << bit % 8);
                assert_true(
                    frag_fgt_cursor_open(&cursor, coding, raw, size, UINT64_MAX, 1000, &error));
                assert_false(frag_fgt_cursor_next(&cursor, values, 1000, &error));
                assert_non_null(strstr(error.sentence, "a place beyond its"));
                frag_fgt_cursor_close(&cursor);
                assert_true(frag_fgt_cursor_open(&cursor, coding, raw, size, 255, 1000, &error));
                assert_false(frag_fgt_cursor_bytes(&cursor, bytes, &error));
                frag_fgt_cursor_close(&cursor);
            }
}

static void refuses_columns_that_cannot_be(void **state)
{
    (void)state;
    uint64_t values[100];
    unsigned char raw[FRAG_FGT_RAW_BYTES_MAX(100)];
    frag_error error = {0};
    frag_fgt_coding coding;
    frag_fgt_cursor cursor;
    for (uint32_t i = 0; i < 100; i++)
        values[i] = i % 5;
    size_t size = encoded(FRAG_FGT_BITS, values, 100, raw, &coding);
    assert_int_equal(coding.width, 3);
    assert_int_equal(coding.value_width, 1);
    assert_true(frag_fgt_cursor_open(&cursor, coding, raw, size, 7, 100, &error));
    frag_fgt_cursor_close(&cursor);
    assert_false(frag_fgt_cursor_open(&cursor, coding, raw, size, 3, 100, &error));
    static const unsigned char distinct[] = {0, 101};
    for (size_t i = 0; i < sizeof distinct; i++) {
        raw[0] = distinct[i];
        assert_false(frag_fgt_cursor_open(&cursor, coding, raw, size, 7, 100, &error));
        assert_non_null(strstr(error.sentence, "distinct values; expected 1 to 100"));
    }
    raw[0] = 5;
    coding.width = 4;
    assert_false(frag_fgt_cursor_open(&cursor, coding, raw, 4 + 5 + 50, 7, 100, &error));
    assert_string_equal(error.sentence,
                        "a column has places of 4 bits among 5 distinct values; expected 3");
    coding.width = 17;
    assert_false(frag_fgt_cursor_open(&cursor, coding, raw, size, 7, 100, &error));
    assert_string_equal(error.sentence, "a column has encoding 3 with widths 17 and 1; expected "
                                        "some that are documented");
    coding.width = 3;
    coding.value_width = 9;
    assert_false(frag_fgt_cursor_open(&cursor, coding, raw, size, 7, 100, &error));
    assert_string_equal(error.sentence, "a column has encoding 3 with widths 3 and 9; expected "
                                        "some that are documented");
    coding.encoding = 4;
    assert_false(frag_fgt_cursor_open(&cursor, coding, raw, size, 7, 100, &error));
    coding = (frag_fgt_coding){.encoding = FRAG_FGT_PLAIN, .width = 3};
    assert_false(frag_fgt_cursor_open(&cursor, coding, raw, 300, 7, 100, &error));
    coding.width = 1;
    raw[42] = 8;
    assert_true(frag_fgt_cursor_open(&cursor, coding, raw, 100, 7, 100, &error));
    memset(raw, 0, 42);
    memset(raw + 43, 0, 57);
    assert_false(frag_fgt_cursor_next(&cursor, values, 100, &error));
    assert_string_equal(error.sentence, "a column holds 8; expected at most 7");
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
    size_t at = bytes - FRAG_FGT_SECTION_BYTES; /* before the end mark: the index stays true */
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
    file[8] = 4;
    assert_false(sample_load(file, bytes, true, &again, &error));
    assert_int_equal(error.code, FRAG_E_INPUT);
    assert_string_equal(error.sentence,
                        "the file has format version 4; this fraglab reads versions 1 to 3");
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

static void refuses_a_chunk_without_events(void **state)
{
    (void)state;
    frag_recording recording;
    frag_recording again;
    frag_error error = {0};
    sample_recording(&recording);
    size_t bytes = 0;
    char *file = sample_written(&recording, frag_fgt_write, &bytes);
    size_t number = 0;
    while (file[section_at(file, number)] != FRAG_FGT_EVENTS)
        number++;
    frag_fgt_put((unsigned char *)file + section_at(file, number) + FRAG_FGT_SECTION_BYTES + 4, 0,
                 4);
    repair_checksums((unsigned char *)file, bytes);
    assert_false(sample_load(file, bytes, true, &again, &error));
    assert_non_null(strstr(error.sentence, "claims more events than its bytes can hold"));
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

static uint32_t damage_often(const frag_recording *recording, uint32_t times)
{
    size_t bytes = 0;
    char *file = sample_written(recording, frag_fgt_write, &bytes);
    unsigned char *damaged = frag_alloc(bytes, 1);
    uint64_t seed = 1;
    uint32_t accepted = 0;
    for (uint32_t i = 0; i < times; i++) {
        frag_recording again;
        frag_error error = {0};
        memcpy(damaged, file, bytes);
        size_t count = sample_damage(damaged, bytes, &seed);
        if (i % 2 == 0 && count >= FRAG_FGT_HEADER_BYTES)
            repair_checksums(damaged, count);
        frag_load_options options = {
            .with_sites = i % 3 != 0, .with_columns = i % 3 != 0, .figures_only = i % 5 == 0};
        if (sample_load_as(damaged, count, &options, &again, &error)) {
            assert_int_equal(error.code, FRAG_E_NONE);
            accepted++;
            frag_recording_destroy(&again);
        } else {
            assert_int_equal(error.code, FRAG_E_INPUT);
            assert_true(strlen(error.sentence) > 10);
        }
    }
    free(damaged);
    free(file);
    return accepted;
}

static void stands_any_damage(void **state)
{
    (void)state;
    frag_recording recording;
    sample_recording(&recording);
    assert_true(damage_often(&recording, 20000) < 5000);
    frag_recording_destroy(&recording);
    build_long(&recording, 3000); /* of which columns are packed */
    assert_true(damage_often(&recording, 2000) < 500);
    frag_recording_destroy(&recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_everything_a_recording_says),
        cmocka_unit_test(keeps_what_replay_needs_without_columns),
        cmocka_unit_test(keeps_a_single_value_at_the_end_of_a_column),
        cmocka_unit_test(keeps_traces_of_many_chunks),
        cmocka_unit_test(keeps_slots_that_nobody_foresees),
        cmocka_unit_test(keeps_slots_when_none_is_foreseen),
        cmocka_unit_test(keeps_a_trace_of_many_equal_events),
        cmocka_unit_test(what_comes_again_takes_little_room),
        cmocka_unit_test(keeps_an_empty_trace),
        cmocka_unit_test(keeps_events_of_one_kind),
        cmocka_unit_test(cuts_tables_of_megabytes),
        cmocka_unit_test(reads_tables_wherever_they_are),
        cmocka_unit_test(reads_files_of_every_version),
        cmocka_unit_test(every_encoding_gives_back_what_it_took),
        cmocka_unit_test(columns_of_bytes_are_read_whole),
        cmocka_unit_test(refuses_places_beyond_the_dictionary),
        cmocka_unit_test(refuses_columns_that_cannot_be),
        cmocka_unit_test(skips_sections_of_newer_minor_versions),
        cmocka_unit_test(refuses_an_unknown_major_version),
        cmocka_unit_test(refuses_a_summary_that_lies),
        cmocka_unit_test(refuses_a_chunk_without_events),
        cmocka_unit_test(refuses_a_file_that_is_cut_anywhere),
        cmocka_unit_test(stands_any_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
