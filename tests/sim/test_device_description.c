/* Tests of device_description.c: reading and writing the YAML of a card. */
#include "sim/device/device_description.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"

static bool parse(const char *text, frag_device_description *description, frag_error *error)
{
    *error = (frag_error){.code = FRAG_E_NONE};
    return frag_device_description_parse(text, strlen(text), description, error);
}

static void must_load(const char *path, frag_device_description *description)
{
    frag_error error = {.code = FRAG_E_NONE};
    if (!frag_device_description_load(path, description, &error))
        fail_msg("%s:%llu:%llu: %s", path, (unsigned long long)error.line,
                 (unsigned long long)error.column, error.sentence);
}

static void the_latency_table_of_the_documentation_is_a_description(void **state)
{
    (void)state;
    frag_device_description table;
    must_load("docs/latency-example.yaml", &table);
    assert_non_null(strstr(table.latency.name, "illustrative"));
    assert_true(table.has_latency);
    assert_int_equal(table.total_bytes, 0);
    const frag_latency *cost = &table.latency.calls[FRAG_DEVICE_MALLOC];
    assert_true(frag_latency_ns(cost, 0) == 33200);
    assert_true(frag_latency_ns(cost, 100 * FRAG_MIB) > 62199.9);
    assert_true(frag_latency_ns(cost, 100 * FRAG_MIB) < 62200.1);
}

static void names_are_written_as_they_were_read(void **state)
{
    (void)state;
    frag_device_description card;
    frag_device_description again;
    frag_error error = {0};
    frag_text text = {0};
    must_load("tests/data/device/everything.yaml", &card);
    card.aliases = (frag_card_aliases){.names = {"one", "two", "three"}, .count = 3};
    card.meanings = (frag_card_aliases){.names = {"four", "five"}, .count = 2};
    frag_device_description_write(&card, &text);
    assert_true(parse(text.bytes, &again, &error));
    assert_memory_equal(&again.aliases, &card.aliases, sizeof card.aliases);
    assert_memory_equal(&again.meanings, &card.meanings, sizeof card.meanings);
    frag_text_destroy(&text);
}

static void everything_that_can_be_said_is_read(void **state)
{
    (void)state;
    frag_device_description card;
    must_load("tests/data/device/everything.yaml", &card);
    assert_string_equal(card.name, "Example 24 GB");
    assert_int_equal(card.origin, FRAG_ORIGIN_MEASURED);
    assert_string_equal(card.source, "fraglab device probe, 'quoted'");
    assert_string_equal(card.driver, "13.0");
    assert_string_equal(card.cuda, "12.4");
    assert_string_equal(card.date, "2026-11-21");
    assert_string_equal(card.hardware, "Example CPU, 16 cores");
    assert_int_equal(card.total_bytes, 24 * FRAG_GIB);
    assert_int_equal(card.context_bytes, 500 * FRAG_MIB);
    assert_int_equal(card.footprint.unit_bytes, FRAG_MIB);
    assert_int_equal(card.footprint.count, 2);
    assert_int_equal(frag_footprint_bytes(&card.footprint, 1), 8 * FRAG_KIB);
    assert_int_equal(frag_footprint_bytes(&card.footprint, 4 * FRAG_KIB), 8 * FRAG_KIB);
    assert_int_equal(frag_footprint_bytes(&card.footprint, 4 * FRAG_KIB + 1), 104 * FRAG_KIB);
    assert_int_equal(frag_footprint_bytes(&card.footprint, 96 * FRAG_KIB + 1), FRAG_MIB);
    assert_int_equal(frag_footprint_bytes(&card.footprint, FRAG_MIB + 1), 2 * FRAG_MIB);
    assert_int_equal(card.alignment_bytes, 512);
    assert_int_equal(card.large_alignment_bytes, 2 * FRAG_MIB);
    assert_int_equal(card.reuse, FRAG_REUSE_LATEST);
    assert_int_equal(card.serves_scattered, FRAG_ANSWER_NO);
    assert_int_equal(card.vmm_granularity_bytes, 2 * FRAG_MIB);
    assert_int_equal(card.vmm_recommended_bytes, 4 * FRAG_MIB);
    assert_int_equal(frag_device_description_page(&card), 2 * FRAG_MIB);
    assert_int_equal(card.pool_first_bytes, 32 * FRAG_MIB);
    assert_int_equal(card.pool_step_bytes, 16 * FRAG_MIB);
    assert_int_equal(card.pool_releases_at_sync, FRAG_ANSWER_YES);
    assert_int_equal(card.pool_keeps_below_limit, FRAG_ANSWER_NO);
    assert_string_equal(card.latency.name, card.name);
    const frag_latency_point *point = &card.latency.calls[FRAG_DEVICE_MALLOC].points[1];
    assert_int_equal(point->bytes, 2 * FRAG_MIB);
    assert_true(point->median_ns == 5000 && point->p10_ns == 4500 && point->p90_ns == 7000);
    assert_int_equal(point->samples, 41);
    assert_int_equal(strlen(card.digest), 32);
}

static void what_is_written_reads_back_with_the_same_digest(void **state)
{
    (void)state;
    static const char *const paths[] = {"docs/latency-example.yaml",
                                        "tests/data/device/everything.yaml", "devices/l4.yaml"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        frag_device_description card;
        frag_device_description again;
        frag_error error;
        must_load(paths[i], &card);
        frag_text text = {.bytes = NULL};
        frag_device_description_write(&card, &text);
        if (!parse(text.bytes, &again, &error))
            fail_msg("%s: %s\n%s", paths[i], error.sentence, text.bytes);
        assert_string_equal(card.digest, again.digest);
        assert_memory_equal(&card.footprint, &again.footprint, sizeof card.footprint);
        assert_memory_equal(&card.latency, &again.latency, sizeof card.latency);
        frag_text_destroy(&text);
    }
}

/* Limits that come with a compute capability: CUDA C++ Programming Guide, "Technical Specifications
 * per Compute Capability". */
static void check_capability(const frag_compute *compute)
{
    static const struct {
        const char *capability;
        uint32_t threads;
        uint64_t shared_kib;
    } known[] = {
        {"3.7", 2048, 48},  {"6.0", 2048, 48},    {"6.1", 2048, 48},    {"7.0", 2048, 96},
        {"7.5", 1024, 64},  {"8.0", 2048, 163},   {"8.6", 1536, 99},    {"8.7", 1536, 163},
        {"8.9", 1536, 99},  {"9.0", 2048, 227},   {"10.0", 2048, 227},  {"10.3", 2048, 227},
        {"12.0", 1536, 99}, {"gfx908", 2048, 64}, {"gfx90a", 2048, 64}, {"gfx942", 2048, 64}};
    size_t i = 0;
    while (strcmp(known[i].capability, compute->capability) != 0)
        assert_true(++i < sizeof known / sizeof known[0]);
    assert_int_equal(compute->threads_per_multiprocessor, known[i].threads);
    assert_int_equal(compute->shared_per_block_bytes, known[i].shared_kib << 10);
}

static void check_card(const frag_device_description *card)
{
    assert_true(card->source[0] != '\0');
    assert_in_range(card->total_bytes, (uint64_t)5 << 30, (uint64_t)300 << 30);
    if (card->origin == FRAG_ORIGIN_MEASURED)
        return;
    /* A sixteenth goes to error correction, and the driver keeps something: never a quarter. What
     * the data sheet has in GB is never exceeded by more than a card's GB are above its GiB. */
    assert_in_range(card->nominal_bytes, card->total_bytes / 100 * 98, card->total_bytes / 3 * 4);
    assert_true(card->origin == FRAG_ORIGIN_NOMINAL || card->origin == FRAG_ORIGIN_REPORTED);
    if (card->origin == FRAG_ORIGIN_NOMINAL) {
        assert_int_equal(card->total_bytes, card->nominal_bytes);
        assert_non_null(strstr(card->source, "data sheet"));
    }
    assert_true(!card->has_latency && card->footprint.count == 0);
    assert_true(card->context_bytes < (uint64_t)1 << 30);
    const frag_compute *compute = &card->compute;
    assert_in_range(compute->multiprocessor_count, 4, 400);
    assert_in_range(compute->bandwidth_bytes, 50000000000, 10000000000000);
    check_capability(compute);
}

static void every_bundled_card_has_what_is_known_and_no_more(void **state)
{
    (void)state;
    DIR *folder = opendir("devices");
    assert_non_null(folder);
    int count = 0;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (entry->d_name[0] == '.')
            continue;
        char path[512];
        frag_device_description card;
        snprintf(path, sizeof path, "devices/%s", entry->d_name);
        must_load(path, &card);
        check_card(&card);
        count++;
    }
    closedir(folder);
    assert_true(count >= 70);
}

#define MEMORY "name: x\norigin: software\nmemory:\n  total: 8GiB\n"

static void refuses_what_is_wrong_at_its_place_and_leaves_the_old_one_alone(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t line;
        uint64_t column;
        const char *sentence;
    } cases[] = {
        {"[1]\n", 1, 1, "expected 'key: value' lines"},
        {"calls: {}\n", 1, 1, "'name' is missing"},
        {"name: x\n", 1, 1, "neither 'memory' nor 'calls'"},
        {"name: ''\ncalls: {}\n", 1, 7, "expected 1 to 63"},
        {"name: [x]\ncalls: {}\n", 1, 7, "expected a single value"},
        {"name: \"a\\tb\"\ncalls: {}\n", 1, 7, "a control character"},
        {"name: \"a\\Nb\"\ncalls: {}\n", 1, 7, "a control character"},
        {"name: 0123456789012345678901234567890123456789012345678901234567890123\ncalls: {}\n", 1,
         7, "64 bytes"},
        {"name: x\nmemry: {}\n", 2, 1, "did you mean memory"},
        {"name: x\ncalls: 3\n", 2, 8, "expected 'key: value' lines"},
        {"name: x\norigin: guessed\ncalls: {}\n", 2, 9,
         "expected one of measured, software, nominal"},
        {"name: x\norigin: unstated\ncalls: {}\n", 2, 9, "'unstated' is not known"},
        {"name: x\nmemory: {total: 8GiB}\n", 1, 1, "'origin' is missing"},
        {"name: x\norigin: nominal\nmemory: {total: 8GiB}\n", 1, 1, "'source' is missing"},
        {"name: x\norigin: measured\nmemory: {total: 8GiB}\n", 1, 1, "'driver' is missing"},
        {"name: x\norigin: measured\ndriver: 5\nmemory: {total: 8GiB}\n", 1, 1,
         "'date' is missing"},
        {"name: x\norigin: nominal\nsource: s\nmemory: {total: 8GiB}\ncalls: {}\n", 5, 1,
         "has no 'calls'"},
        {"name: x\ndate: 21.11.2026\ncalls: {}\n", 2, 7, "write year, month and day"},
        {"name: x\ndate: 2026-11-2\ncalls: {}\n", 2, 7, "write year, month and day"},
        {"name: x\norigin: software\nmemory: {page: 2MiB}\n", 3, 9, "'total' is missing"},
        {"name: x\norigin: software\nmemory: {total: 1MiB}\n", 3, 17, "out of range"},
        {"name: x\norigin: software\nmemory: {total: unlimited}\n", 3, 17, "out of range"},
        {"name: x\norigin: software\nmemory: {total: 8G}\n", 3, 17, "8G"},
        {MEMORY "  context: 9GiB\n", 5, 12, "out of range; expected 0 B to 8.00 GiB"},
        {MEMORY "  page: 4MiB\n", 5, 9, "out of range"},
        {MEMORY "  page: 3000\n", 5, 9, "not a power of two"},
        {MEMORY "  footprint: {up_to: 3, takes: 8}\n", 5, 14, "expected a list"},
        {MEMORY "  footprint: [3]\n", 5, 15, "expected 'key: value' lines"},
        {MEMORY "  footprint: [{up_to: 3}]\n", 5, 15, "write both"},
        {MEMORY "  footprint: [{up_to: 3, takes: 2}]\n", 5, 15, "expected takes >= up_to"},
        {MEMORY "  footprint:\n  - {up_to: 3, takes: 9}\n  - {up_to: 3, takes: 9}\n", 7, 5,
         "do not ascend"},
        {MEMORY "  footprint:\n  - {up_to: 3, takes: 9}\n  - {up_to: 4, takes: 8}\n", 7, 5,
         "do not ascend"},
        {MEMORY "malloc: {reuse: often}\n", 5, 17, "expected one of lowest, latest, never, other"},
        {MEMORY "malloc: {alignment: 0}\n", 5, 21, "out of range"},
        {MEMORY "malloc: {serves_scattered: yes}\n", 5, 28, "neither true nor false"},
        {MEMORY "vmm: {granularity: 64MiB}\n", 5, 20, "out of range"},
        {MEMORY "vmm: []\n", 5, 6, "expected 'key: value' lines"},
        {MEMORY "pool: {first: 0}\n", 5, 15, "out of range"},
        {MEMORY "pool: {frist: 1}\n", 5, 8, "did you mean first"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        frag_device_description card = {.name = "old"};
        frag_error error;
        if (parse(cases[i].text, &card, &error))
            fail_msg("accepted: %s", cases[i].text);
        assert_int_equal(error.code, FRAG_E_INPUT);
        if (error.line != cases[i].line || error.column != cases[i].column ||
            strstr(error.sentence, cases[i].sentence) == NULL)
            fail_msg("%s gave %llu:%llu: %s", cases[i].text, (unsigned long long)error.line,
                     (unsigned long long)error.column, error.sentence);
        assert_string_equal(card.name, "old");
    }
}

/* Line breaks of every kind, and what YAML cannot hold as it is. */
static void a_footprint_has_as_many_classes_as_there_is_room_for(void **state)
{
    (void)state;
    for (unsigned count = FRAG_FOOTPRINT_CLASSES_MAX; count <= FRAG_FOOTPRINT_CLASSES_MAX + 1;
         count++) {
        frag_text text = {0};
        frag_device_description card;
        frag_error error;
        frag_text_add(&text, MEMORY "  footprint:\n");
        for (unsigned i = 1; i <= count; i++)
            frag_text_add(&text, "  - {up_to: %u, takes: %u}\n", i, i);
        bool ok = parse(text.bytes, &card, &error);
        assert_int_equal(ok, count == FRAG_FOOTPRINT_CLASSES_MAX);
        if (ok)
            assert_int_equal(card.footprint.count, count);
        frag_text_destroy(&text);
    }
}

static void texts_are_one_line_of_characters(void **state)
{
    (void)state;
    for (unsigned unit = 1; unit < 0x10000; unit++) {
        bool is_refused = unit < 0x20 || (unit >= 0x7f && unit < 0xa0) || unit == 0x2028 ||
                          unit == 0x2029 || unit == 0xfeff || unit == 0xfffe || unit == 0xffff;
        frag_device_description card;
        frag_error error;
        char text[96];
        snprintf(text, sizeof text,
                 "name: x\norigin: nominal\nsource: \"a\\u%04xb\"\nmemory: {total: 8GiB}\n", unit);
        bool is_surrogate = unit >= 0xd800 && unit < 0xe000;
        if (!is_surrogate && parse(text, &card, &error) == is_refused)
            fail_msg("U+%04X is %s", unit, is_refused ? "accepted" : "refused");
    }
}

static void files_that_cannot_be_read_are_named(void **state)
{
    (void)state;
    frag_device_description card;
    frag_error error = {.code = FRAG_E_NONE};
    assert_false(frag_device_description_load("tests/data/device/none.yaml", &card, &error));
    assert_string_equal(error.where, "tests/data/device/none.yaml");
    error = (frag_error){.code = FRAG_E_NONE};
    assert_false(
        frag_device_description_load("tests/fuzz/corpus/yaml/experiment.yaml", &card, &error));
    assert_string_equal(error.where, "tests/fuzz/corpus/yaml/experiment.yaml");
    assert_true(error.line > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_latency_table_of_the_documentation_is_a_description),
        cmocka_unit_test(names_are_written_as_they_were_read),
        cmocka_unit_test(everything_that_can_be_said_is_read),
        cmocka_unit_test(what_is_written_reads_back_with_the_same_digest),
        cmocka_unit_test(every_bundled_card_has_what_is_known_and_no_more),
        cmocka_unit_test(refuses_what_is_wrong_at_its_place_and_leaves_the_old_one_alone),
        cmocka_unit_test(a_footprint_has_as_many_classes_as_there_is_room_for),
        cmocka_unit_test(texts_are_one_line_of_characters),
        cmocka_unit_test(files_that_cannot_be_read_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
