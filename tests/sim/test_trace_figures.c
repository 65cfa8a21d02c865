/* Tests of a trace's figures: counted from events, and as .fgt files have them, whole or damaged.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/digest.h"
#include "base/formats/codec.h"
#include "base/memory.h"
#include "tests/support/sample_recording.h"
#include "traces/fgt/fgt.h"

/* With checksums repaired, what lies behind them is reached. */
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

static const frag_load_options figures_only = {.with_columns = true, .figures_only = true};

/* The start of the first section of the kind; the file has it. */
static unsigned char *section_of(char *file, unsigned kind)
{
    unsigned char *at = (unsigned char *)file + FRAG_FGT_HEADER_BYTES;
    while (frag_fgt_get(at, 4) != kind)
        at += FRAG_FGT_SECTION_BYTES + (size_t)frag_fgt_get(at + 8, 8);
    return at;
}

static void assert_same_figures(const frag_trace_figures *a, const frag_trace_figures *b)
{
    assert_int_equal(a->stream_count, b->stream_count);
    assert_int_equal(a->pool_count, b->pool_count);
    assert_int_equal(a->mark_count, b->mark_count);
    assert_memory_equal(a->sizes, b->sizes, sizeof a->sizes);
    assert_memory_equal(a->lifetimes, b->lifetimes, sizeof a->lifetimes);
    assert_int_equal(a->freed_count, b->freed_count);
    assert_int_equal(a->unfreed_count, b->unfreed_count);
    assert_int_equal(a->inferred_count, b->inferred_count);
    assert_int_equal(a->guessed_count, b->guessed_count);
    for (uint32_t i = 0; i < a->stream_count; i++)
        assert_memory_equal(&a->streams[i], &b->streams[i], sizeof *a->streams);
    for (uint32_t i = 0; i < a->pool_count; i++)
        assert_memory_equal(&a->pools[i], &b->pools[i], sizeof *a->pools);
    for (uint32_t i = 0; i < a->mark_count; i++) {
        assert_int_equal(a->marks[i].name, b->marks[i].name);
        assert_int_equal(a->marks[i].count, b->marks[i].count);
        assert_int_equal(a->marks[i].first_event, b->marks[i].first_event);
    }
}

/* The figures alone say what all events say, and come without them. */
static void has_the_figures_of_each_trace(void **state)
{
    (void)state;
    frag_recording recording;
    frag_recording again;
    frag_error error = {0};
    sample_recording(&recording);
    size_t bytes = 0;
    char *file = sample_written(&recording, frag_fgt_write, &bytes);
    assert_true(sample_load_as(file, bytes, &figures_only, &again, &error));
    for (uint32_t i = 0; i < 2; i++) {
        const frag_trace *trace = &again.traces[i];
        assert_null(trace->events);
        assert_int_equal(trace->event_count, recording.traces[i].event_count);
        assert_int_equal(trace->slot_count, recording.traces[i].slot_count);
        frag_trace_stats expected = recording.traces[i].stats;
        expected.peak_attempted_bytes = 0; /* which no summary has */
        assert_memory_equal(&trace->stats, &expected, sizeof expected);
        frag_trace_figures *figures = frag_trace_figures_find(&recording, &recording.traces[i]);
        assert_same_figures(trace->figures, figures);
        frag_free(figures);
    }
    frag_recording_destroy(&again);
    assert_true(sample_load(file, bytes, true, &again, &error));
    assert_null(again.traces[0].figures);
    frag_recording_destroy(&again);
    /* A file from before it had them: its section is one that nobody knows. */
    for (uint32_t i = 0; i < 2; i++)
        frag_fgt_put(section_of(file, FRAG_FGT_FIGURES), 77, 4);
    assert_true(sample_load_as(file, bytes, &figures_only, &again, &error));
    assert_non_null(again.traces[0].events);
    assert_null(again.traces[0].figures);
    frag_recording_destroy(&again);
    free(file);
    frag_recording_destroy(&recording);
}

/* Lifetimes by hand: 300 blocks that live 1 event, one that lives 70000, one that stays. */
static void counts_lifetimes_of_any_length(void **state)
{
    (void)state;
    frag_recording recording = {0};
    frag_error error = {0};
    frag_builder *builder = frag_builder_create(&recording);
    uint32_t slots[3] = {frag_builder_slot_take(builder), frag_builder_slot_take(builder),
                         frag_builder_slot_take(builder)};
    frag_build_event event = {.op = FRAG_OP_ALLOC, .bytes = 1024};
    for (uint32_t i = 0; i < 2; i++) {
        event.slot = slots[i];
        frag_builder_add(builder, &event);
    }
    for (uint32_t i = 0; i < 69998; i++) {
        bool is_pair = i < 600;
        event = (frag_build_event){.op = !is_pair     ? FRAG_OP_CAPTURE_BEGIN
                                         : i % 2 == 0 ? FRAG_OP_ALLOC
                                                      : FRAG_OP_FREE,
                                   .slot = is_pair ? slots[2] : 0,
                                   .bytes = is_pair && i % 2 == 0 ? 512 : 0};
        if (!is_pair && i % 2 == 1)
            event.op = FRAG_OP_CAPTURE_END;
        frag_builder_add(builder, &event);
    }
    event = (frag_build_event){.op = FRAG_OP_FREE, .slot = slots[0]};
    frag_builder_add(builder, &event);
    assert_true(frag_builder_finish(builder, "lifetimes", &error));
    frag_trace_figures *figures = frag_trace_figures_find(&recording, &recording.traces[0]);
    assert_int_equal(figures->freed_count, 301);
    assert_int_equal(figures->unfreed_count, 1);
    assert_int_equal(figures->lifetimes[FRAG_LIFETIME_P99], 1);
    assert_int_equal(figures->lifetimes[FRAG_LIFETIME_MAX], 70000);
    assert_int_equal(figures->sizes[9].count, 300);
    assert_int_equal(figures->sizes[10].bytes, 2048);
    assert_null(frag_trace_figures_doubt(figures, &recording, &recording.traces[0]));
    frag_free(figures);
    frag_recording_destroy(&recording);
}

/* What was there before the recording is guessed; the rest follows from what was recorded. */
static void tells_guessed_events_from_inferred_ones(void **state)
{
    (void)state;
    enum { INITIAL = FRAG_EVENT_INITIAL, INFERRED = FRAG_EVENT_INFERRED };
    static const uint8_t flags[] = {INITIAL | INFERRED, INITIAL, 0, INFERRED, INFERRED};
    frag_recording recording = {0};
    frag_error error = {0};
    frag_builder *builder = frag_builder_create(&recording);
    for (size_t i = 0; i < sizeof flags; i++) {
        frag_build_event event = {.op = FRAG_OP_ALLOC,
                                  .slot = frag_builder_slot_take(builder),
                                  .bytes = 512,
                                  .flags = flags[i]};
        frag_builder_add(builder, &event);
    }
    assert_true(frag_builder_finish(builder, "inferred", &error));
    frag_trace_figures *figures = frag_trace_figures_find(&recording, &recording.traces[0]);
    assert_int_equal(figures->guessed_count, 1);
    assert_int_equal(figures->inferred_count, 2);
    frag_free(figures);
    frag_recording_destroy(&recording);
}

/* Each is as it should be until one number is changed. */
static void doubts_marks_that_cannot_be(void **state)
{
    (void)state;
    frag_recording recording;
    sample_recording(&recording);
    const frag_trace *trace = &recording.traces[0];
    frag_trace_figures *figures = frag_trace_figures_find(&recording, trace);
    assert_true(figures->mark_count > 0);
    assert_null(frag_trace_figures_doubt(figures, &recording, trace));
    frag_mark_share *mark = &figures->marks[figures->mark_count - 1];
    const frag_mark_share good = *mark;
    const frag_mark_share bad[] = {
        {recording.strings.count, good.count, good.first_event},
        {good.name, 0, good.first_event},
        {good.name, (uint32_t)trace->stats.op_counts[FRAG_OP_MARK] + 1, good.first_event},
        {good.name, good.count, trace->event_count},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        *mark = bad[i];
        const char *doubt = frag_trace_figures_doubt(figures, &recording, trace);
        assert_non_null(doubt);
        assert_string_equal(doubt, "the figures of a trace have marks that cannot be");
    }
    mark->name = recording.strings.count - 1;
    mark->count = good.count;
    mark->first_event = trace->event_count - 1;
    assert_null(frag_trace_figures_doubt(figures, &recording, trace));
    frag_free(figures);
    frag_recording_destroy(&recording);
}

/* Takes the section at `at` out of the file; how many bytes it has then. */
static size_t without_section(unsigned char *file, size_t bytes, size_t at)
{
    size_t gone = FRAG_FGT_SECTION_BYTES + (size_t)frag_fgt_get(file + at + 8, 8);
    memmove(file + at, file + at + gone, bytes - at - gone);
    return bytes - gone;
}

/* With the checksum repaired: counts that no events can have are refused, with figures alone and
 * with all. */
static void refuses_figures_that_cannot_be(void **state)
{
    (void)state;
    static const struct {
        size_t at; /* in the table */
        const char *sentence;
    } lies[] = {
        {0, "figures are given for no trace, or twice for one"},
        {4, "the figures of a trace have the wrong size"},
        {8, "the figures of a trace have the wrong size"},
        {20, "the figures of a trace have lifetimes that cannot be"},
        {24, "the figures of a trace have lifetimes that cannot be"},
        {43, "the figures of a trace infer more events than it has"},
        {59, "the figures of a trace have lifetimes that cannot be"},
        {84, "the figures of a trace count other requests than its summary"},
    };
    frag_recording recording;
    frag_recording again;
    sample_recording(&recording);
    size_t bytes = 0;
    char *file = sample_written(&recording, frag_fgt_write, &bytes);
    unsigned char *head = section_of(file, FRAG_FGT_FIGURES);
    size_t at = (size_t)(head - (unsigned char *)file) + FRAG_FGT_SECTION_BYTES;
    size_t packed = (size_t)frag_fgt_get(head + 8, 8);
    size_t raw = (size_t)frag_fgt_get(head + FRAG_FGT_SECTION_BYTES, 8);
    /* The same file with this table as it is before compression. */
    size_t longer_bytes = bytes - packed + 8 + raw;
    unsigned char *longer = frag_alloc(longer_bytes, 1);
    memcpy(longer, file, at + 8);
    frag_unpacker *unpacker = frag_unpacker_create();
    assert_true(frag_decompress(unpacker, longer + at + 8, raw, (unsigned char *)file + at + 8,
                                packed - 8, NULL));
    frag_unpacker_destroy(unpacker);
    memcpy(longer + at + 8 + raw, file + at + packed, bytes - at - packed);
    frag_fgt_put(longer + at - FRAG_FGT_SECTION_BYTES + 8, 8 + raw, 8);
    /* An index would no longer tell where the chunks are, and be refused before the figures. */
    unsigned char *index = section_of((char *)longer, FRAG_FGT_INDEX);
    longer_bytes = without_section(longer, longer_bytes, (size_t)(index - longer));
    repair_checksums(longer, longer_bytes);
    for (size_t i = 0; i < 2 * sizeof lies / sizeof lies[0]; i++) {
        frag_error error = {0};
        unsigned char *byte = longer + at + 8 + lies[i / 2].at;
        *byte ^= 0x40;
        repair_checksums(longer, longer_bytes);
        assert_false(i % 2 == 0
                         ? sample_load_as(longer, longer_bytes, &figures_only, &again, &error)
                         : sample_load(longer, longer_bytes, true, &again, &error));
        assert_int_equal(error.code, FRAG_E_INPUT);
        assert_non_null(strstr(error.sentence, lies[i / 2].sentence));
        *byte ^= 0x40;
    }
    repair_checksums(longer, longer_bytes);
    frag_error error = {0};
    assert_true(sample_load_as(longer, longer_bytes, &figures_only, &again, &error));
    frag_recording_destroy(&again);
    free(longer);
    free(file);
    frag_recording_destroy(&recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_the_figures_of_each_trace),
        cmocka_unit_test(counts_lifetimes_of_any_length),
        cmocka_unit_test(tells_guessed_events_from_inferred_ones),
        cmocka_unit_test(doubts_marks_that_cannot_be),
        cmocka_unit_test(refuses_figures_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
