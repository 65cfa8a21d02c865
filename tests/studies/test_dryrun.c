/* Tests of what a dry run's files say about a card: facts, replays, uncertain sizes, phases, and
 * the guess of the largest value that fits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "studies/dryrun/dryrun_card.h"
#include "studies/dryrun/dryrun_facts.h"
#include "studies/dryrun/dryrun_replay.h"
#include "studies/dryrun/dryrun_scale.h"
#include "tests/support/text_recording.h"

#define MIB ((uint64_t)1 << 20)

static bool read_facts(const char *json, const char *lines, frag_dryrun_facts *facts,
                       frag_error *error)
{
    frag_input *input = frag_input_from_memory(json, strlen(json), "facts");
    frag_input *report = lines ? frag_input_from_memory(lines, strlen(lines), "report") : NULL;
    bool ok = frag_dryrun_facts_read_inputs(input, report, facts, error);
    frag_input_close(report);
    frag_input_close(input);
    return ok;
}

static void facts_are_read_whole(void **state)
{
    (void)state;
    frag_error error = {0};
    frag_dryrun_facts facts;
    assert_true(read_facts(
        "{\"pid\":7,\"rank\":1,\"torch\":\"2.9.1+cu128\",\"ended_by\":\"exit\",\"exception\":\"E\","
        "\"oom_text\":\"O\",\"no_recording\":\"N\",\"steps\":3,\"oom_count\":2,\"selected\":40,"
        "\"marks\":[{\"name\":\"load\",\"requests\":[5,6]},{\"requests\":[9]},"
        "{\"name\":\"step 1\",\"requests\":[8]}],"
        "\"memory\":[{\"device\":8,\"card\":3},{\"device\":1,\"card\":4,\"used_bytes_max\":10,"
        "\"card_bytes_max\":11,\"refused_others_bytes\":12},{\"device\":0,\"used_bytes_max\":1}],"
        "\"notes\":[\"a\",\"b\",\"a\"],"
        "\"decisions\":[{\"where\":\"t.py:3\",\"count\":4},{\"where\":\"t.py:9\"},{\"count\":1}],"
        "\"selections\":[{\"where\":\"t.py:5\",\"elements\":100,\"count\":2},{\"where\":\"x\"}]}",
        "{\"kind\":\"unknown\",\"function\":\"f\",\"library\":\"l\",\"count\":2}\n\n"
        "{\"kind\":\"unknown\",\"function\":\"f\",\"library\":\"l\"}\n"
        "{\"kind\":\"unknown\"}\n{\"kind\":\"value\",\"where\":\"t.py:1\",\"count\":6}\n"
        "{\"kind\":\"note\",\"text\":\"a\"}\nnonsense\n"
        "{\"kind\":\"uncertain\",\"function\":\"g\",\"what\":\"w\",\"low\":0,\"high\":1024,"
        "\"answered\":1024,\"count\":3}\n"
        "{\"kind\":\"uncertain\",\"function\":\"g\",\"what\":\"w\",\"answered\":1024,\"count\":4}\n"
        "{\"kind\":\"uncertain\",\"function\":\"h\",\"what\":\"v\",\"answered\":5}\n"
        "{\"kind\":\"uncertain\",\"function\":\"h\",\"what\":\"v\",\"answered\":5}\n"
        "{\"kind\":\"note\",\"te",
        &facts, &error));
    assert_int_equal(facts.pid, 7);
    assert_int_equal(facts.rank, 1);
    assert_string_equal(facts.release, "2.9.1+cu128");
    assert_string_equal(facts.ended_by, "exit");
    assert_string_equal(facts.exception, "E");
    assert_string_equal(facts.oom_text, "O");
    assert_string_equal(facts.no_recording, "N");
    assert_int_equal(facts.steps, 3);
    assert_int_equal(facts.oom_count, 2);
    assert_int_equal(facts.selected_percent, 40);
    assert_int_equal(facts.mark_count, 2);
    assert_int_equal(frag_dryrun_find_mark(&facts, "load")->requests[1], 6);
    assert_int_equal(frag_dryrun_find_mark(&facts, "step 1")->requests[0], 8);
    assert_int_equal(frag_dryrun_find_mark(&facts, "step 1")->requests[1], 0);
    assert_null(frag_dryrun_find_mark(&facts, "step 2"));
    assert_int_equal(facts.cards[0], 0);
    assert_int_equal(facts.used_bytes_max[0], 1);
    assert_int_equal(facts.cards[1], 4);
    assert_int_equal(facts.used_bytes_max[1], 10);
    assert_int_equal(facts.card_bytes_max[1], 11);
    assert_int_equal(facts.refused_others_bytes[1], 12);
    static const struct {
        const char *kind, *text;
        uint64_t count;
    } notes[] = {{"note", "a", 3},
                 {"note", "b", 1},
                 {"decision", "t.py:3", 4},
                 {"unknown", "f of l", 3},
                 {"value", "t.py:1", 6}};
    assert_int_equal(facts.note_count, sizeof notes / sizeof *notes);
    for (size_t i = 0; i < facts.note_count; i++) {
        assert_string_equal(facts.notes[i].kind, notes[i].kind);
        assert_string_equal(facts.notes[i].text, notes[i].text);
        assert_int_equal(facts.notes[i].count, notes[i].count);
    }
    assert_int_equal(facts.selection_count, 1);
    assert_string_equal(facts.selections[0].where, "t.py:5");
    assert_int_equal(facts.selections[0].elements, 100);
    assert_int_equal(facts.selections[0].count, 2);
    assert_int_equal(facts.uncertain_count, 2);
    assert_string_equal(facts.uncertain[0].function, "g");
    assert_int_equal(facts.uncertain[0].high_bytes, 1024);
    assert_int_equal(facts.uncertain[0].count, 7);
    assert_int_equal(facts.uncertain[1].answered_bytes, 5);
    assert_int_equal(facts.uncertain[1].count, 2);
    frag_dryrun_facts_destroy(&facts);
}

static void facts_of_nothing_have_defaults_and_nonsense_is_an_error(void **state)
{
    (void)state;
    frag_error error = {0};
    frag_dryrun_facts facts;
    assert_true(read_facts("{}", NULL, &facts, &error));
    assert_true(facts.rank == UINT64_MAX);
    assert_null(facts.release);
    assert_int_equal(facts.selected_percent, 100);
    assert_int_equal(facts.mark_count + facts.note_count + facts.selection_count, 0);
    frag_dryrun_facts_destroy(&facts);
    assert_false(read_facts("{\"pid\":", NULL, &facts, &error));
    assert_int_equal(error.code, FRAG_E_INPUT);
    assert_false(
        frag_dryrun_facts_read("/nonexistent/1.json", "/nonexistent/1.report", &facts, &error));
    assert_int_equal(error.code, FRAG_E_INPUT);
}

static void releases_are_two_numbers(void **state)
{
    (void)state;
    static const char *const texts[][2] = {{"2.9.1+cu128", "2.9"},
                                           {"2.15", "2.15"},
                                           {"10.0a", "10.0"},
                                           {"2", ""},
                                           {"2.x", ""},
                                           {"a.9", ""},
                                           {"2a.9", ""},
                                           {"", ""},
                                           {"2.12345678901234", ""},
                                           {"2.1234567890123", "2.1234567890123"}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char release[FRAG_DRYRUN_RELEASE_BYTES] = "";
        assert_int_equal(frag_dryrun_release(texts[i][0], release), texts[i][1][0] != '\0');
        assert_string_equal(release, texts[i][1]);
    }
    assert_false(frag_dryrun_release(NULL, (char[FRAG_DRYRUN_RELEASE_BYTES]){0}));
}

static void cards_and_sizes_become_settings(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *settings;
    } cards[] = {
        {"rtx4090", "addresses=snapshot,devices=2,capacity=25382879232,context=524288000,reserved="
                    "386924544,name=NVIDIA GeForce RTX "
                    "4090,compute-capability=8.9,multiprocessors=128,threads-per-multiprocessor="
                    "1536,shared=101376,l2=75497472"},
        {"24GiB", "addresses=snapshot,devices=2,capacity=25769803776,name=GPU of 24GiB,"
                  "compute-capability=8.0,multiprocessors=108,threads-per-multiprocessor=2048,"},
        {"16MiB", "addresses=snapshot,devices=2,capacity=16777216,name=GPU of 16MiB,"},
        {"512GiB", "addresses=snapshot,devices=2,capacity=549755813888,name=GPU of 512GiB,"},
        {NULL, "addresses=snapshot,devices=2,capacity=549755813888,name=GPU of any size,"},
    };
    static const char *const bad[] = {"15MiB", "513GiB", "9B", "24GiBB", "mi300x", "rtx4091"};
    for (size_t i = 0; i < sizeof cards / sizeof *cards; i++) {
        frag_error error = {0};
        frag_dryrun_gpu gpu;
        frag_text note = {0}, settings = {0};
        assert_true(frag_dryrun_gpu_find(cards[i].text, &gpu, &note, &error));
        frag_dryrun_gpu_settings(&gpu, 2, &settings);
        assert_int_equal(gpu.is_nameless, i > 0);
        assert_int_equal(gpu.is_given, cards[i].text != NULL);
        assert_int_equal(gpu.memory.capacity_bytes, gpu.card.total_bytes);
        assert_int_equal(gpu.memory.context_bytes, gpu.card.context_bytes);
        if (strncmp(settings.bytes, cards[i].settings, strlen(cards[i].settings)) != 0)
            fail_msg("%s: %s", cards[i].settings, settings.bytes);
        frag_text_destroy(&settings);
        frag_text_destroy(&note);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        frag_error error = {0};
        frag_dryrun_gpu gpu;
        frag_text note = {0};
        assert_false(frag_dryrun_gpu_find(bad[i], &gpu, &note, &error));
        assert_int_equal(error.code, FRAG_E_USAGE);
        frag_text_destroy(&note);
    }
}

/* Two requests while loading, one in the first step, then steady ones: of 40 MiB, of an uncertain
 * size, and small. */
static const char *const run =
    "alloc 0 20971520\nalloc 1 1024\nalloc 2 41943040\nfree 2\nalloc 3 62914560\nfree 3\n"
    "alloc 4 3145728\nfree 4\nfree 0\nfree 1\n";

static frag_dryrun_answer judged(const char *text, const char *json, const char *report,
                                 uint64_t capacity)
{
    frag_error error = {0};
    frag_dryrun_facts facts;
    frag_recording recording;
    frag_dryrun_answer answer;
    const frag_context context = {.environment = NULL};
    const frag_dryrun_card card = {.capacity_bytes = capacity, .context_bytes = 8 * MIB};
    assert_true(read_facts(json, report, &facts, &error));
    frag_test_recording(text, &recording);
    if (!frag_dryrun_judge(&context, &recording, &recording.traces[0], &facts, &card, &answer,
                           &error))
        fail_msg("%s", error.sentence);
    frag_recording_destroy(&recording);
    frag_dryrun_facts_destroy(&facts);
    return answer;
}

static void a_run_is_judged_by_phases(void **state)
{
    (void)state;
    frag_dryrun_answer answer =
        judged(run,
               "{\"torch\":\"2.9.1\",\"marks\":[{\"name\":\"load\",\"requests\":[2]},"
               "{\"name\":\"step 1\",\"requests\":[3]}]}",
               NULL, FRAG_UNLIMITED);
    static const struct {
        const char *name;
        uint64_t requested, reserved;
    } phases[] = {{"load", 20 * MIB + 1024, 22 * MIB},
                  {"first step", 60 * MIB + 1024, 62 * MIB},
                  {"steady step", 80 * MIB + 1024, 122 * MIB}};
    assert_true(answer.run.fits);
    assert_false(answer.has_failed);
    assert_int_equal(answer.phase_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(answer.phases[i].name, phases[i].name);
        assert_int_equal(answer.phases[i].peak.requested_bytes, phases[i].requested);
        assert_int_equal(answer.phases[i].peak.reserved_bytes, phases[i].reserved);
    }
    assert_int_equal(answer.run.peak.reserved_bytes, 122 * MIB);
    assert_int_equal(answer.run.reserved_at_event, 4);
    assert_int_equal(answer.other.peak.reserved_bytes, answer.run.peak.reserved_bytes);
    assert_int_equal(answer.draws + answer.uncertain_requests, 0);
    answer =
        judged(run, "{\"marks\":[{\"name\":\"load\",\"requests\":[2]}]}", NULL, FRAG_UNLIMITED);
    assert_int_equal(answer.phase_count, 2);
    assert_string_equal(answer.phases[1].name, "run");
    answer =
        judged(run, "{\"marks\":[{\"name\":\"step 1\",\"requests\":[5]}]}", NULL, FRAG_UNLIMITED);
    assert_int_equal(answer.phase_count, 1);
    assert_string_equal(answer.phases[0].name, "first step");
    answer = judged(run, "{}", NULL, FRAG_UNLIMITED);
    assert_int_equal(answer.phase_count, 0);
}

static void the_context_takes_its_part_of_the_card(void **state)
{
    (void)state;
    /* At the peak 22 and 60 MiB, of which 40 can be given back first. */
    assert_true(judged(run, "{}", NULL, 90 * MIB).run.fits);
    frag_dryrun_answer answer = judged(run, "{}", NULL, 90 * MIB - 1);
    assert_false(answer.run.fits);
    assert_int_equal(answer.run.oom.event, 4);
    assert_false(answer.is_repeated);
    assert_true(judged("alloc - 1048576 failed\n", "{}", NULL, FRAG_UNLIMITED).has_failed);
    answer = judged("segment_alloc 2097152 addr=0x7f0000000000\n"
                    "alloc 0 512 addr=0x7f0000000000\n",
                    "{}", NULL, FRAG_UNLIMITED);
    assert_true(answer.is_repeated);
}

static void uncertain_sizes_are_replayed_at_both_ends_and_between(void **state)
{
    (void)state;
    frag_dryrun_answer answer = judged(
        run, "{}", "{\"kind\":\"uncertain\",\"low\":0,\"high\":62914560,\"answered\":62914560}\n",
        FRAG_UNLIMITED);
    assert_int_equal(answer.uncertain_requests, 1);
    assert_int_equal(answer.uncertain_low_bytes, 0);
    assert_int_equal(answer.uncertain_high_bytes, 60 * MIB);
    assert_int_equal(answer.draws, 15);
    assert_int_equal(answer.draws_served, 15);
    assert_int_equal(answer.run.peak.reserved_bytes, 122 * MIB);
    assert_int_equal(answer.other.peak.reserved_bytes, 62 * MIB);
    assert_int_equal(answer.reserved_min_bytes, 62 * MIB);
    assert_int_equal(answer.reserved_max_bytes, 122 * MIB);
    /* Where the card is too small for the greatest, some of the others fit. */
    answer = judged(run, "{}",
                    "{\"kind\":\"uncertain\",\"low\":0,\"high\":62914560,\"answered\":62914560}\n",
                    80 * MIB);
    assert_false(answer.run.fits);
    assert_true(answer.other.fits);
    assert_in_range(answer.draws_served, 5, 14);
    /* A run with the smallest sizes is about that end alone. */
    answer = judged(
        run, "{}",
        "{\"kind\":\"uncertain\",\"low\":62914560,\"high\":92914560,\"answered\":62914560}\n",
        FRAG_UNLIMITED);
    assert_int_equal(answer.draws, 0);
    assert_int_equal(answer.uncertain_requests, 1);
    /* What is narrow does not tell at which end it was. */
    answer = judged(
        run, "{}",
        "{\"kind\":\"uncertain\",\"low\":41943040,\"high\":41943552,\"answered\":41943040}\n"
        "{\"kind\":\"uncertain\",\"low\":62914560,\"high\":92914560,\"answered\":62914560}\n",
        FRAG_UNLIMITED);
    assert_int_equal(answer.draws, 0);
    assert_int_equal(answer.uncertain_requests, 2);
    /* What failed was recorded rounded. */
    answer = judged("alloc 0 1024\nalloc - 1049088 failed\n", "{}",
                    "{\"kind\":\"uncertain\",\"low\":512,\"high\":1048600,\"answered\":1048600}\n",
                    FRAG_UNLIMITED);
    assert_int_equal(answer.uncertain_requests, 1);
    answer = judged("alloc 0 1024\nalloc 1 1049088\n", "{}",
                    "{\"kind\":\"uncertain\",\"low\":512,\"high\":1048600,\"answered\":1048600}\n",
                    FRAG_UNLIMITED);
    assert_int_equal(answer.uncertain_requests + answer.draws, 0);
}

static void a_long_run_is_drawn_less_often(void **state)
{
    (void)state;
    enum { EVENTS = 3000000 };
    frag_text text = {0};
    frag_text_add(&text, "alloc 0 62914560\nfree 0\n");
    for (int i = 2; i < EVENTS; i++)
        frag_text_add(&text, "sync\n");
    frag_dryrun_answer answer =
        judged(text.bytes, "{}",
               "{\"kind\":\"uncertain\",\"low\":0,\"high\":62914560,\"answered\":62914560}\n",
               FRAG_UNLIMITED);
    assert_int_equal(answer.draws, 9);
    frag_text_destroy(&text);
}

static void the_largest_value_that_fits_is_guessed_from_two(void **state)
{
    (void)state;
    /* 4 MiB and 8 MiB a sample: 128 MiB hold ten of them in blocks of their own. */
    static const char *const texts[] = {
        "alloc 0 8388608\nalloc 1 16777216\nfree 0\nfree 1\n",
        "alloc 0 16777216\nalloc 1 33554432\nfree 0\nfree 1\n",
        "alloc 0 16777216\nalloc 1 33554432\nfree 1\nfree 0\n",
        "alloc 0 16777216\nalloc 1 33554432\nfree 0\n",
        "alloc 0 16777216\nalloc 1 33554432\nfree 0\nfree 1 deferred\n",
    };
    frag_recording recordings[5];
    for (size_t i = 0; i < 5; i++)
        frag_test_recording(texts[i], &recordings[i]);
    frag_dryrun_scaled runs[5];
    for (size_t i = 0; i < 5; i++)
        runs[i] = (frag_dryrun_scaled){&recordings[i], &recordings[i].traces[0], i == 0 ? 2 : 4};
    assert_true(frag_dryrun_scales(&runs[0], &runs[1]));
    for (size_t i = 2; i < 5; i++)
        assert_false(frag_dryrun_scales(&runs[0], &runs[i]));
    assert_false(frag_dryrun_scales(&runs[1], &runs[0]));
    runs[0].value = 4;
    assert_false(frag_dryrun_scales(&runs[0], &runs[1]));
    runs[0].value = 2;
    const frag_context context = {.environment = NULL};
    static const uint64_t cases[][3] = {
        {128, 100, 10}, {120, 100, 10}, {119, 100, 9}, {128, 8, 8}, {40, 100, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        frag_error error = {0};
        uint64_t value = 0;
        const frag_dryrun_card card = {.capacity_bytes = cases[i][0] * MIB};
        assert_true(frag_dryrun_guess_max(&context, &runs[0], &runs[1], &card, "2.9.1", cases[i][1],
                                          &value, &error));
        assert_int_equal(value, cases[i][2]);
    }
    for (size_t i = 0; i < 5; i++)
        frag_recording_destroy(&recordings[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_are_read_whole),
        cmocka_unit_test(facts_of_nothing_have_defaults_and_nonsense_is_an_error),
        cmocka_unit_test(releases_are_two_numbers),
        cmocka_unit_test(cards_and_sizes_become_settings),
        cmocka_unit_test(a_run_is_judged_by_phases),
        cmocka_unit_test(the_context_takes_its_part_of_the_card),
        cmocka_unit_test(uncertain_sizes_are_replayed_at_both_ends_and_between),
        cmocka_unit_test(a_long_run_is_drawn_less_often),
        cmocka_unit_test(the_largest_value_that_fits_is_guessed_from_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
