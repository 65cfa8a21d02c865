/* Tests of the index of .fgt files: windows read with it, and what it may not say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "tests/fgt/fgt_sections.h"
#include "tests/support/sample_recording.h"
#include "tests/support/text_recording.h"
#include "traces/cut.h"

/* So that a small trace has many chunks and openings. */
static char *small_sections(const frag_recording *recording, size_t *bytes)
{
    char *file = NULL;
    frag_error error = {0};
    FILE *stream = open_memstream(&file, bytes);
    const frag_fgt_sizes sizes = {.chunk_events = 3, .opening_events = 3, .opening_ratio = 0};
    assert_non_null(stream);
    assert_true(frag_fgt_write_sized(recording, sizes, stream, &error));
    assert_int_equal(fclose(stream), 0);
    return file;
}

static void assert_is_cut(const frag_recording *recording, frag_window *window, const char *file,
                          size_t bytes)
{
    frag_recording piece;
    frag_recording wanted;
    frag_error error = {0};
    frag_window all = *window;
    all.is_found = false;
    const frag_load_options options = {.with_sites = true, .with_columns = true, .window = window};
    if (!sample_load_as(file, bytes, &options, &piece, &error))
        fail_msg("%llu..%llu: %s", (unsigned long long)window->first,
                 (unsigned long long)window->end, error.sentence);
    assert_true(frag_cut_window(recording, &all, &wanted, &error));
    if (!same_recording(&wanted, &piece))
        fail_msg("events %llu..%llu of device %u are others", (unsigned long long)window->first,
                 (unsigned long long)window->end, window->device);
    frag_recording_destroy(&piece);
    frag_recording_destroy(&wanted);
}

static void a_window_is_what_is_cut_out_of_everything(void **state)
{
    (void)state;
    frag_recording recording;
    sample_recording(&recording);
    size_t bytes = 0;
    char *file = small_sections(&recording, &bytes);
    uint32_t found = 0;
    for (uint32_t i = 0; i < recording.trace_count; i++) {
        uint64_t count = recording.traces[i].event_count;
        for (uint64_t first = 0; first <= count; first++)
            for (uint64_t end = first; end <= count; end++) {
                frag_window window = {.kind = FRAG_WINDOW_EVENTS,
                                      .has_device = true,
                                      .device = recording.traces[i].device,
                                      .first = first,
                                      .end = end};
                assert_is_cut(&recording, &window, file, bytes);
                found += window.is_found && window.left_out > 0;
            }
    }
    assert_true(found > 500);
    free(file);
    frag_recording_destroy(&recording);
}

static void windows_of_times_and_marks_are_found(void **state)
{
    (void)state;
    frag_recording recording;
    frag_test_recording("alloc 0 512 time=10\nmark \"a\" time=20\nalloc 1 512 time=30\n"
                        "mark \"step\" begin time=40\nalloc 2 64 time=50\nfree 0 time=60\n"
                        "mark \"in\" begin time=70\nmark \"in\" end time=80\nfree 2 time=90\n"
                        "mark \"step\" end time=100\nalloc 0 9 time=110\nmark \"last\" time=120\n"
                        "free 1 time=115\nfree 0 time=130\n",
                        &recording);
    size_t bytes = 0;
    char *file = small_sections(&recording, &bytes);
    uint32_t found = 0;
    for (uint64_t start = 0; start < 140; start += 5)
        for (uint64_t end = start + 6; end < 150; end += 7) {
            frag_window window = {.kind = FRAG_WINDOW_TIMES, .first = start, .end = end};
            frag_cut_range range;
            frag_error error = {0};
            if (frag_cut_find_times(&recording.traces[0], (frag_cut_times){start, end}, &range,
                                    &error))
                assert_is_cut(&recording, &window, file, bytes);
            found += window.is_found && window.left_out > 0;
        }
    assert_true(found > 100);
    static const char *const marks[][2] = {{"a", NULL}, {"step", NULL}, {"in", NULL},
                                           {"a", "in"}, {"in", "last"}, {"last", NULL}};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        frag_window window = {
            .kind = FRAG_WINDOW_MARKS, .first_mark = marks[i][0], .last_mark = marks[i][1]};
        assert_is_cut(&recording, &window, file, bytes);
        assert_true(window.is_found);
    }
    free(file);
    frag_recording_destroy(&recording);
}

/* Blocks that are released in another order than they came, before all slots are taken again. */
static void slots_that_are_free_where_a_window_begins_are_taken_again(void **state)
{
    (void)state;
    static const char steps[] = "abcdeBDfEAghijGCklm"; /* small: alloc, large: free */
    frag_recording recording = {0};
    frag_error error = {0};
    frag_builder *builder = frag_builder_create(&recording);
    uint32_t slots[26];
    for (const char *step = steps; *step != '\0'; step++) {
        bool is_free = *step < 'a';
        uint32_t *slot = &slots[*step - (is_free ? 'A' : 'a')];
        if (!is_free)
            *slot = frag_builder_slot_take(builder);
        frag_builder_add(builder, &(frag_build_event){.op = is_free ? FRAG_OP_FREE : FRAG_OP_ALLOC,
                                                      .slot = *slot,
                                                      .bytes = is_free ? 0 : 512});
        if (is_free)
            frag_builder_slot_give(builder, *slot);
    }
    assert_true(frag_builder_finish(builder, "sample", &error));
    size_t bytes = 0;
    char *file = small_sections(&recording, &bytes);
    for (uint64_t first = 0; first < sizeof steps - 1; first++) {
        frag_window window = {.kind = FRAG_WINDOW_EVENTS, .first = first, .end = sizeof steps - 1};
        assert_is_cut(&recording, &window, file, bytes);
        assert_true(first < 6 || window.left_out > 0);
    }
    free(file);
    frag_recording_destroy(&recording);
}

/* Blocks of all ages, in a trace long enough for openings of the usual size. */
static void windows_of_long_traces_leave_events_out(void **state)
{
    (void)state;
    frag_recording recording = {0};
    frag_error error = {0};
    frag_builder *builder = frag_builder_create(&recording);
    uint64_t random = 1;
    uint32_t live[3000];
    uint32_t live_count = 0;
    for (uint32_t i = 0; i < 900000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint32_t at = (uint32_t)(random >> 33) % 3000;
        frag_build_event event = {.op = FRAG_OP_FREE, .time_ns = i, .stream = random >> 61};
        if (at < live_count) {
            event.slot = live[at];
            live[at] = live[--live_count];
            frag_builder_slot_give(builder, event.slot);
        } else {
            event.op = FRAG_OP_ALLOC;
            event.slot = live[live_count++] = frag_builder_slot_take(builder);
            event.bytes = 1 + (random >> 40);
            event.address = random >> 20 << 9;
        }
        frag_builder_add(builder, &event);
    }
    assert_true(frag_builder_finish(builder, "sample", &error));
    size_t bytes = 0;
    char *file = sample_written(&recording, frag_fgt_write, &bytes);
    uint64_t count = recording.traces[0].event_count;
    for (uint64_t i = 0; i < 4; i++) {
        frag_window window = {.kind = FRAG_WINDOW_EVENTS,
                              .first = count * (2 * i + 1) / 9,
                              .end = count * (2 * i + 1) / 9 + 5000};
        assert_is_cut(&recording, &window, file, bytes);
        assert_true(window.is_found);
        assert_true(i == 0 || window.left_out > 200000);
    }
    free(file);
    frag_recording_destroy(&recording);
}

/* Whatever an index says, a window is one of the trace, or the file is refused. */
static void stands_any_damage_of_an_index(void **state)
{
    (void)state;
    frag_recording recording;
    sample_recording(&recording);
    size_t bytes = 0;
    char *file = small_sections(&recording, &bytes);
    unsigned char *damaged = frag_alloc(bytes, 1);
    size_t index = index_at(file, bytes);
    uint64_t seed = 1;
    uint32_t refused = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        frag_recording piece;
        frag_error error = {0};
        frag_window window = {.kind = FRAG_WINDOW_EVENTS,
                              .has_device = true,
                              .device = i % 2 * 3,
                              .first = i % 29,
                              .end = i % 29 + 3};
        const frag_load_options options = {.with_sites = true, .window = &window};
        memcpy(damaged, file, bytes);
        if (i % 3 == 0)
            sample_damage(damaged + index, bytes - index, &seed);
        else
            sample_damage(damaged, bytes, &seed);
        if (i % 4 != 0)
            repair_checksums(damaged, bytes);
        if (sample_load_as(damaged, bytes, &options, &piece, &error)) {
            frag_recording_destroy(&piece);
        } else {
            assert_true(error.code == FRAG_E_INPUT || error.code == FRAG_E_USAGE);
            refused++;
        }
    }
    assert_true(refused > 5000);
    free(damaged);
    free(file);
    frag_recording_destroy(&recording);
}

/* Places that are not those of the chunks are told by those who read everything, too. */
static void refuses_an_index_that_lies(void **state)
{
    (void)state;
    frag_recording recording;
    frag_recording again;
    sample_recording(&recording);
    size_t bytes = 0;
    char *file = small_sections(&recording, &bytes);
    unsigned char *payload = (unsigned char *)file + index_at(file, bytes) + FRAG_FGT_SECTION_BYTES;
    size_t payload_bytes =
        bytes - FRAG_FGT_SECTION_BYTES - (size_t)(payload - (unsigned char *)file);
    static const size_t fields[] = {0, 4, 8, 16, 40}; /* not the times */
    for (size_t entry = 0; entry < 4; entry++)
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
            frag_error error = {0};
            unsigned char *at = payload + 8 + entry * FRAG_FGT_INDEX_ENTRY_BYTES + fields[i];
            *at ^= 1;
            repair_checksums((unsigned char *)file, bytes);
            assert_false(sample_load(file, bytes, true, &again, &error));
            assert_string_equal(error.sentence, "the index does not tell where the events are; "
                                                "the file is damaged");
            *at ^= 1;
        }
    assert_int_equal(frag_fgt_get(payload + payload_bytes - 8, 8), payload_bytes);
    repair_checksums((unsigned char *)file, bytes);
    frag_error error = {0};
    assert_true(sample_load(file, bytes, true, &again, &error));
    assert_true(same_recording(&recording, &again));
    free(file);
    frag_recording_destroy(&recording);
    frag_recording_destroy(&again);
}

/* Seven bytes are no length of a string, and nothing lies behind them. */
static void refuses_a_table_of_strings_that_ends_in_a_length(void **state)
{
    (void)state;
    frag_recording recording;
    frag_recording again;
    frag_text table = {0};
    sample_recording(&recording);
    size_t bytes = 0;
    char *file = small_sections(&recording, &bytes);
    size_t number = 0;
    while (file[section_at(file, number)] != FRAG_FGT_STRINGS)
        number++;
    frag_text_add_bytes(&table, file, section_at(file, number) + 8);
    for (uint64_t left = 1; left < 8; left++) {
        frag_error error = {0};
        size_t before = table.length;
        frag_fgt_add(&table, 8 + left, 8); /* of the section, */
        frag_fgt_add(&table, 0, 8);        /* its checksum, */
        frag_fgt_add(&table, left, 8);     /* and of the table */
        frag_fgt_add(&table, 0, (uint32_t)left);
        repair_checksums((unsigned char *)table.bytes, table.length);
        assert_false(sample_load(table.bytes, table.length, true, &again, &error));
        assert_string_equal(error.sentence,
                            "a string reaches beyond its table; the file is damaged");
        table.length = before;
    }
    frag_text_destroy(&table);
    free(file);
    frag_recording_destroy(&recording);
}

/* The mark that is looked for does not end before the one without a name. */
static void refuses_a_mark_without_a_name_before_it_is_compared(void **state)
{
    (void)state;
    frag_recording recording;
    frag_recording piece;
    frag_error error = {0};
    frag_test_recording("alloc 0 512\nmark \"step\" begin\nalloc 1 64\nmark \"in\"\nfree 1\n"
                        "mark \"step\" end\nfree 0\n",
                        &recording);
    recording.traces[0].events[3].slot = recording.strings.count;
    size_t bytes = 0;
    char *file = small_sections(&recording, &bytes);
    frag_window window = {.kind = FRAG_WINDOW_MARKS, .first_mark = "step"};
    const frag_load_options options = {.window = &window};
    assert_false(sample_load_as(file, bytes, &options, &piece, &error));
    assert_int_equal(error.code, FRAG_E_INPUT);
    assert_non_null(strstr(error.sentence, "which is not in the table of strings"));
    free(file);
    frag_recording_destroy(&recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_is_what_is_cut_out_of_everything),
        cmocka_unit_test(windows_of_times_and_marks_are_found),
        cmocka_unit_test(slots_that_are_free_where_a_window_begins_are_taken_again),
        cmocka_unit_test(windows_of_long_traces_leave_events_out),
        cmocka_unit_test(stands_any_damage_of_an_index),
        cmocka_unit_test(refuses_an_index_that_lies),
        cmocka_unit_test(refuses_a_table_of_strings_that_ends_in_a_length),
        cmocka_unit_test(refuses_a_mark_without_a_name_before_it_is_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
