/* Tests of json_tree.c: JSON snapshots as the tree a pickle gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "base/formats/codec.h"
#include "base/memory.h"
#include "tests/support/text_recording.h"
#include "traces/pickle/json_tree.h"

static const char *const names[] = {"frames"};

static bool read_text(const char *text, frag_pickle **tree, frag_pickle_value *root,
                      frag_error *error)
{
    const frag_json_tree_options options = {.shared_keys = 1};
    frag_input *input = frag_input_from_memory(text, strlen(text), "test.json");
    *error = (frag_error){0};
    *tree = frag_pickle_create(names, 1);
    bool is_read = frag_json_tree_read(*tree, input, &options, root, error);
    frag_input_close(input);
    return is_read;
}

static frag_pickle *read_well(const char *text, frag_pickle_value *root)
{
    frag_pickle *tree = NULL;
    frag_error error;
    if (!read_text(text, &tree, root, &error))
        fail_msg("%s: byte %llu: %s", text, (unsigned long long)error.offset, error.sentence);
    return tree;
}

static frag_pickle_value item(const frag_pickle *tree, frag_pickle_value container, unsigned index)
{
    frag_pickle_walk walk = frag_pickle_begin(tree, container);
    frag_pickle_value value = 0;
    for (unsigned i = 0; i <= index; i++)
        assert_true(frag_pickle_next(tree, &walk, &value));
    return value;
}

static void numbers_are_whole_where_they_fit(void **state)
{
    (void)state;
    frag_pickle_value root = 0;
    frag_pickle *tree = read_well("[0, 18446744073709551615, -9223372036854775808, 512.0, 1e3, "
                                  "18446744073709551616, 0.5, NaN, -Infinity, 1e400, -7, -512.0]",
                                  &root);
    uint64_t number = 0;
    int64_t negative = 0;
    double ratio = 0;
    assert_true(frag_pickle_unsigned(tree, item(tree, root, 0), &number) && number == 0);
    assert_true(frag_pickle_unsigned(tree, item(tree, root, 1), &number) && number == UINT64_MAX);
    assert_false(frag_pickle_unsigned(tree, item(tree, root, 2), &number));
    assert_true(frag_pickle_signed(tree, item(tree, root, 2), &negative) && negative == INT64_MIN);
    assert_true(frag_pickle_unsigned(tree, item(tree, root, 3), &number) && number == 512);
    assert_true(frag_pickle_unsigned(tree, item(tree, root, 4), &number) && number == 1000);
    assert_int_equal(frag_pickle_kind_of(tree, item(tree, root, 5)), FRAG_PICKLE_FLOAT);
    assert_true(frag_pickle_float(tree, item(tree, root, 5), &ratio) && ratio > 1.8446e19);
    assert_true(frag_pickle_float(tree, item(tree, root, 6), &ratio) && fabs(ratio - 0.5) < 1e-9);
    assert_true(frag_pickle_float(tree, item(tree, root, 7), &ratio) && isnan(ratio));
    assert_true(frag_pickle_float(tree, item(tree, root, 8), &ratio) && isinf(ratio) && ratio < 0);
    assert_true(frag_pickle_float(tree, item(tree, root, 9), &ratio) && isinf(ratio));
    assert_true(frag_pickle_signed(tree, item(tree, root, 10), &negative) && negative == -7);
    assert_true(frag_pickle_signed(tree, item(tree, root, 11), &negative) && negative == -512);
    frag_pickle_destroy(tree);
}

/* Two numbers are kept as the pair that names a pool; all else is a list. */
static void two_whole_numbers_are_a_pair(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t count;
        bool is_pair;
    } cases[] = {{"[[1, 2]]", 2, true},    {"[[1, \"2\"]]", 2, false}, {"[[\"1\", 2]]", 2, false},
                 {"[[1, 0.5]]", 2, false}, {"[[1]]", 1, false},        {"[[1, 2, 3]]", 3, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        frag_pickle_value root = 0;
        frag_pickle *tree = read_well(cases[i].text, &root);
        frag_pickle_value list = item(tree, root, 0);
        assert_int_equal(frag_pickle_kind_of(tree, list) == FRAG_PICKLE_TUPLE, cases[i].is_pair);
        assert_int_equal(frag_pickle_item_count(tree, list), cases[i].count);
        frag_pickle_destroy(tree);
    }
}

static void texts_are_without_their_escapes(void **state)
{
    (void)state;
    static const char expected[] =
        "a\"\\/\b\f\n\r\t\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xef\xbf\xbd.";
    frag_pickle_value root = 0;
    frag_pickle *tree =
        read_well("\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\u20AC\\ud83d\\ude00\\ud83d.\"", &root);
    uint32_t id = 0;
    assert_true(frag_pickle_string(tree, root, &id));
    assert_string_equal(frag_pickle_text(tree, id, NULL), expected);
    frag_pickle_destroy(tree);
}

/* UTF-8 of a code point, as the standard's table has it. */
static size_t utf8_of(uint32_t code, unsigned char out[4])
{
    static const uint32_t firsts[] = {0, 0x80, 0x800, 0x10000, 0x110000};
    static const unsigned char marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t length = 1;
    while (code >= firsts[length])
        length++;
    for (size_t i = 0; i < length; i++)
        out[i] = (unsigned char)((code >> 6 * (length - 1 - i) & (i > 0 ? 0x3f : 0xff)) |
                                 (i > 0 ? 0x80 : marks[length]));
    return length;
}

static void expect_escaped(const char *escaped, const uint32_t *codes, size_t count)
{
    unsigned char expected[16];
    size_t length = 0;
    frag_pickle_value root = 0;
    frag_pickle *tree = read_well(escaped, &root);
    uint32_t id = 0;
    for (size_t i = 0; i < count; i++)
        length += utf8_of(codes[i], expected + length);
    expected[length] = '\0';
    assert_true(frag_pickle_string(tree, root, &id));
    assert_string_equal(frag_pickle_text(tree, id, NULL), (const char *)expected);
    frag_pickle_destroy(tree);
}

/* Every unit about the borders: lengths in UTF-8, and halves of pairs, which alone are U+FFFD. */
static void units_are_code_points_but_for_surrogates(void **state)
{
    (void)state;
    static const uint32_t borders[] = {0x1, 0x7f, 0x800, 0xd800, 0xdc00, 0xe000, 0xffff};
    char text[32];
    for (size_t i = 0; i < sizeof borders / sizeof borders[0]; i++)
        for (uint32_t unit = borders[i] < 3 ? 1 : borders[i] - 2;
             unit <= borders[i] + 2 && unit <= 0xffff; unit++) {
            bool is_half = unit >> 11 == 0xd800 >> 11;
            snprintf(text, sizeof text, "\"\\u%04x\"", (unsigned)unit);
            expect_escaped(text, (uint32_t[]){is_half ? 0xfffd : unit}, 1);
            for (uint32_t low = 0xdbfe; low <= 0xe001; low++) {
                bool is_pair = unit >> 10 == 0xd800 >> 10 && low >> 10 == 0xdc00 >> 10;
                bool is_half_low = low >> 11 == 0xd800 >> 11;
                uint32_t pair = 0x10000 + ((unit & 0x3ff) << 10) + (low & 0x3ff);
                snprintf(text, sizeof text, "\"\\u%04x\\u%04X\"", (unsigned)unit, (unsigned)low);
                if (is_pair)
                    expect_escaped(text, &pair, 1);
                else if (low < 0xdc02 || low > 0xdffd)
                    expect_escaped(
                        text, (uint32_t[]){is_half ? 0xfffd : unit, is_half_low ? 0xfffd : low}, 2);
            }
        }
}

static void equal_stacks_are_one_object(void **state)
{
    (void)state;
    frag_pickle_value root = 0;
    frag_pickle *tree = read_well("[{\"frames\": [{\"a\": \"]\"}]}, {\"frames\": [{\"a\": \"]\"}]},"
                                  "{\"frames\": [{\"a\": 2}]}, {\"other\": [{\"a\": \"]\"}]},"
                                  "{\"frames\": null}, [{\"a\": \"]\"}]]",
                                  &root);
    frag_pickle_value stacks[6];
    for (unsigned i = 0; i < 6; i++)
        stacks[i] = i < 5 ? item(tree, item(tree, root, i), 1) : item(tree, root, i);
    assert_true(stacks[0] == stacks[1]);
    assert_true(stacks[0] != stacks[2]);
    assert_true(stacks[0] != stacks[3]);
    assert_true(stacks[0] != stacks[5]);
    assert_int_equal(frag_pickle_kind_of(tree, stacks[4]), FRAG_PICKLE_NONE);
    frag_pickle_destroy(tree);
}

static void long_values_go_through_the_window(void **state)
{
    (void)state;
    size_t length = 700000;
    char *text = frag_alloc(3 * length + 100, 1);
    size_t at = 0;
    for (int i = 0; i < 2; i++) {
        at += (size_t)sprintf(text + at, "%s{\"frames\": [\"", i == 0 ? "[" : ", ");
        memset(text + at, 'x', length);
        at += length;
        at += (size_t)sprintf(text + at, "\"]}");
    }
    strcpy(text + at, "]");
    frag_pickle_value root = 0;
    frag_pickle *tree = read_well(text, &root);
    assert_true(item(tree, item(tree, root, 0), 1) == item(tree, item(tree, root, 1), 1));
    frag_pickle_destroy(tree);
    free(text);
}

static void what_is_no_json_is_refused_with_its_offset(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t offset;
    } cases[] = {
        {"", 0},
        {"[1,]", 3},
        {"[1 2]", 3},
        {"[1}", 2},
        {"{\"a\" 1}", 5},
        {"{\"a\": 1,}", 8},
        {"{1: 2}", 1},
        {"[1", 2},
        {"[01]", 1},
        {"[1.]", 1},
        {"[-]", 1},
        {"[nul]", 1},
        {"[+1]", 1},
        {"[\"a\nb\"]", 3},
        {"[\"a\\q\"]", 3},
        {"[\"\\u12g4\"]", 2},
        {"[\"abc", 5},
        {"[] []", 3},
        {"{\"frames\": [[1}]}", 14},
        {"{\"frames\": [\"a", 14},
        {"{\"frames\": [[1", 14},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        frag_pickle *tree = NULL;
        frag_pickle_value root = 0;
        frag_error error;
        if (read_text(cases[i].text, &tree, &root, &error))
            fail_msg("%s was taken", cases[i].text);
        assert_int_equal(error.code, FRAG_E_INPUT);
        if (!error.has_offset || error.offset != cases[i].offset)
            fail_msg("%s: byte %llu: %s", cases[i].text, (unsigned long long)error.offset,
                     error.sentence);
        frag_pickle_destroy(tree);
    }
}

static void hostile_depth_and_numbers_are_refused(void **state)
{
    (void)state;
    char text[2000];
    frag_pickle *tree = NULL;
    frag_pickle_value root = 0;
    frag_error error;
    memset(text, '[', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_false(read_text(text, &tree, &root, &error));
    assert_int_equal(error.offset, 128);
    frag_pickle_destroy(tree);
    memset(text, '9', sizeof text - 1);
    assert_false(read_text(text, &tree, &root, &error));
    assert_int_equal(error.offset, 0);
    frag_pickle_destroy(tree);
}

/* Each would take more memory than the bytes that it is made of. */
static void more_brackets_than_a_snapshot_has_are_refused(void **state)
{
    (void)state;
    for (size_t count = 300000; count <= 900000; count += 600000) {
        frag_text text = {0};
        frag_pickle *tree = NULL;
        frag_pickle_value root = 0;
        frag_error error;
        frag_text_add(&text, "[");
        for (size_t i = 0; i < count; i++)
            frag_text_add(&text, "[],");
        frag_text_add(&text, "0]");
        bool is_read = read_text(text.bytes, &tree, &root, &error);
        assert_int_equal(is_read, count < 600000);
        if (!is_read)
            assert_string_equal(error.sentence,
                                "has more brackets than a snapshot of its size can have");
        frag_pickle_destroy(tree);
        frag_text_destroy(&text);
    }
}

/* ---- snapshots */

#define SEGMENT                                                                                    \
    "{\"device\": 0, \"address\": 4096, \"total_size\": 2097152, \"stream\": 0, "                  \
    "\"segment_type\": \"small\", \"blocks\": [{\"size\": 2097152, \"state\": \"inactive\"}]}"
#define ENTRY(action, size)                                                                        \
    "{\"action\": \"" action "\", \"addr\": 4096, \"size\": " size                                 \
    ", \"stream\": 0, \"frames\": [{\"filename\": \"train.py\", \"line\": 7, \"name\": \"f\"}]}"
#define ENTRIES                                                                                    \
    ENTRY("segment_alloc", "2097152")                                                              \
    "," ENTRY("alloc", "512.0") "," ENTRY("free_requested", "512") "," ENTRY("free_completed",     \
                                                                             "512")
#define SNAPSHOT "{\"segments\": [" SEGMENT "], \"device_traces\": [[" ENTRIES "]]}"

static void a_snapshot_is_found_wherever_it_stands(void **state)
{
    (void)state;
    static const char *const texts[] = {
        SNAPSHOT,
        " \n[" SNAPSHOT "]",
        "\n" SNAPSHOT,
        "\r\n" SNAPSHOT,
        "\t" SNAPSHOT,
        "{\"step\": 3, \"loss\": NaN, \"memory\": {\"rank 0\": [" SNAPSHOT "]}, \"segments\": 1}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        frag_recording recording;
        frag_findings findings;
        frag_test_load_well(texts[i], &recording, &findings);
        assert_string_equal(frag_recording_get(&recording, "source"), "torch-snapshot");
        assert_int_equal(recording.traces[0].stats.request_count, 1);
        assert_int_equal(recording.traces[0].stats.requested_bytes_total, 512);
        assert_int_equal(recording.site_count, 2);
        assert_int_equal(frag_findings_inconsistencies(&findings), 0);
        frag_recording_destroy(&recording);
    }
}

/* As profile_plot makes it: 4096 and 6144 were there before, and one of them ends. */
static void a_snapshot_of_the_profiler_has_requests_and_no_segments(void **state)
{
    (void)state;
#define PROFILED(action, address)                                                                  \
    "{\"action\": \"" action "\", \"addr\": " address ", \"size\": 512, \"stream\": 0, "           \
    "\"frames\": [], \"category\": \"input\"}"
    static const char text[] =
        "{\"device_traces\": [[" PROFILED("free_requested", "4096") "," PROFILED(
            "free_completed",
            "4096") "," PROFILED("alloc", "5120") "]], \"segments\": [{\"device\": "
                                                  "0, \"address\": 4096, "
                                                  "\"total_size\": 2560, "
                                                  "\"stream\": 0, \"blocks\": ["
                                                  "{\"size\": 1024, \"state\": \"inactive\"}, "
                                                  "{\"size\": 512, \"state\": "
                                                  "\"active_allocated\", \"requested_size\": 512, "
                                                  "\"frames\": []}, {\"size\": 512, "
                                                  "\"state\": \"inactive\"}, {\"size\": 512, "
                                                  "\"state\": \"active_allocated\", "
                                                  "\"requested_size\": 512, \"frames\": []}]}]}";
    frag_recording recording;
    frag_findings findings;
    frag_test_load_well(text, &recording, &findings);
    const frag_trace *trace = &recording.traces[0];
    assert_string_equal(frag_recording_get(&recording, "source"), "torch-profile-plot");
    assert_null(frag_recording_get(&recording, "torch.version_hint"));
    assert_int_equal(trace->event_count, 4);
    assert_int_equal(trace->addresses[0], 4096);
    assert_int_equal(trace->addresses[1], 6144);
    assert_int_equal(trace->events[2].op, FRAG_OP_FREE);
    assert_int_equal(trace->events[2].slot, trace->events[0].slot);
    assert_int_equal(trace->addresses[3], 5120);
    assert_int_equal(trace->stats.observed_reserved_peak_bytes, 0);
    assert_int_equal(frag_test_found(&findings, "profile-plot"), 1);
    assert_int_equal(frag_test_found(&findings, "began-in-use"), 1);
    assert_int_equal(findings.count, 2);
    frag_recording_destroy(&recording);
}

/* A block that is released twice, or released and there at the end, was there once. */
static void what_was_there_before_is_counted_once(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"device_traces\": [[" PROFILED("free_completed", "4096, \"time_us\": 6") "," PROFILED(
            "free_completed", "4096, \"time_us\": 7") "]], \"segments\": []}",
        "{\"device_traces\": [[" PROFILED(
            "free_completed",
            "4096, \"time_us\": 5") "]], \"segments\": [{\"device\": 0, \"address\": 4096, "
                                    "\"total_size\": 512, "
                                    "\"stream\": 0, \"blocks\": [{\"size\": 512, \"state\": "
                                    "\"active_allocated\", "
                                    "\"requested_size\": 512, \"frames\": []}]}]}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        frag_recording recording;
        frag_findings findings;
        frag_test_load_well(texts[i], &recording, &findings);
        const frag_trace *trace = &recording.traces[0];
        assert_int_equal(trace->times_ns[trace->event_count - 1], i == 0 ? 7000 : 5000);
        bool is_said = false;
        for (uint32_t k = 0; k < findings.count; k++)
            is_said |= strcmp(findings.items[k].kind, "began-in-use") == 0 &&
                       strcmp(findings.items[k].first, "1 blocks, 512 bytes") == 0;
        assert_true(is_said);
        frag_recording_destroy(&recording);
    }
}

static void what_is_no_snapshot_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *sentence;
    } cases[] = {
        {"[" SNAPSHOT ", " SNAPSHOT "]", "holds 2 snapshots"},
        {"[" SEGMENT "]", "holds a list; expected the dictionary"},
        {"{\"segments\": [" SEGMENT "]}", "has no 'segments' or no 'device_traces'"},
        {"{\"segments\": [], \"device_traces\": [[{\"action\": \"alloc\", \"addr\": 1.5, "
         "\"size\": 512}]]}",
         "'addr' or 'device_free' is not an integer"},
        {"{\"segments\": [], \"device_traces\": [[" ENTRIES "]]", "the file ends early"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        frag_recording recording;
        frag_findings findings;
        frag_error error;
        if (frag_test_load(cases[i].text, strlen(cases[i].text), FRAG_FORMAT_AUTO, &recording,
                           &findings, &error))
            fail_msg("%s was taken", cases[i].text);
        assert_int_equal(error.code, FRAG_E_INPUT);
        if (strstr(error.sentence, cases[i].sentence) == NULL)
            fail_msg("%s: %s", cases[i].text, error.sentence);
    }
}

static void a_compressed_text_that_grows_without_end_is_refused(void **state)
{
    (void)state;
    size_t count = (size_t)80 << 20;
    char *text = frag_alloc(count, 1);
    memset(text, ' ', count);
    memcpy(text, SNAPSHOT, sizeof SNAPSHOT - 1);
    size_t packed_count = 0;
    void *packed = frag_codec_pack(FRAG_CODEC_ZSTD, text, count, &packed_count);
    frag_recording recording;
    frag_findings findings;
    frag_error error;
    assert_false(
        frag_test_load(packed, packed_count, FRAG_FORMAT_AUTO, &recording, &findings, &error));
    assert_non_null(strstr(error.sentence, "more than 2000 times its size"));
    free(packed);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_whole_where_they_fit),
        cmocka_unit_test(two_whole_numbers_are_a_pair),
        cmocka_unit_test(texts_are_without_their_escapes),
        cmocka_unit_test(units_are_code_points_but_for_surrogates),
        cmocka_unit_test(equal_stacks_are_one_object),
        cmocka_unit_test(long_values_go_through_the_window),
        cmocka_unit_test(what_is_no_json_is_refused_with_its_offset),
        cmocka_unit_test(hostile_depth_and_numbers_are_refused),
        cmocka_unit_test(more_brackets_than_a_snapshot_has_are_refused),
        cmocka_unit_test(a_snapshot_is_found_wherever_it_stands),
        cmocka_unit_test(a_snapshot_of_the_profiler_has_requests_and_no_segments),
        cmocka_unit_test(what_was_there_before_is_counted_once),
        cmocka_unit_test(what_is_no_snapshot_is_refused),
        cmocka_unit_test(a_compressed_text_that_grows_without_end_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
