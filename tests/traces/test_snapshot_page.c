/* Tests of snapshot_page.c: recordings inside web pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "tests/support/text_recording.h"
#include "traces/torch/snapshot_page.h"

#define HEAD "<!DOCTYPE html>\n<html>\n<head>\n</head>\n<body>\n<script type=\"module\">\n"

/* {"segments": [one of 2 MiB], "device_traces": [[segment_alloc, alloc]]}, as json.dump writes it:
 * what a page holds may be in either syntax. */
static const char snapshot[] =
    "{\"segments\": [{\"device\": 0, \"address\": 4096, \"total_size\": 2097152, \"stream\": 0, "
    "\"segment_type\": \"small\", \"blocks\": [{\"size\": 512, \"state\": \"active_allocated\"}, "
    "{\"size\": 2096640, \"state\": \"inactive\"}]}], \"device_traces\": [[{\"action\": "
    "\"segment_alloc\", \"addr\": 4096, \"size\": 2097152, \"stream\": 0, \"frames\": []}, "
    "{\"action\": \"alloc\", \"addr\": 4096, \"size\": 512, \"stream\": 0, \"frames\": []}]]}";

static void encode(const char *bytes, size_t count, frag_text *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < count; i += 3) {
        uint32_t bits = 0;
        for (size_t k = 0; k < 3; k++)
            bits = bits << 8 | (i + k < count ? (unsigned char)bytes[i + k] : 0u);
        for (size_t k = 0; k < 4; k++)
            frag_text_add(text, "%c", i + k > count ? '=' : digits[bits >> (18 - 6 * k) & 63]);
    }
}

/* As _format_viz of PyTorch writes it, with so many blanks before the snapshot and zeros behind. */
static char *make_page(size_t blanks, size_t zeros, const char *colon)
{
    frag_text text = {0};
    char bytes[sizeof snapshot + 8] = {0};
    memset(bytes, ' ', blanks);
    memcpy(bytes + blanks, snapshot, sizeof snapshot - 1);
    frag_text_add(&text,
                  HEAD "import {add_local_files} from \"https://example.org/MemoryViz.js\"\n"
                       "const local_files = [{\"name\": \"snapshot.pickle\", \"base64\"%s\"",
                  colon);
    encode(bytes, blanks + sizeof snapshot - 1 + zeros, &text);
    frag_text_add(&text, "\"}]\nadd_local_files(local_files, 'Active Memory Timeline')\n</script>");
    return text.bytes;
}

static void a_page_is_read_like_the_snapshot_in_it(void **state)
{
    (void)state;
    frag_recording plain;
    frag_findings findings;
    frag_test_load_well(snapshot, &plain, &findings);
    for (size_t i = 0; i < 12; i++) {
        frag_recording recording;
        char *page = make_page(i / 4, i % 4, i % 2 == 0 ? ": " : " :\n");
        frag_test_load_well(page, &recording, &findings);
        assert_string_equal(recording.traces[0].digest, plain.traces[0].digest);
        frag_recording_destroy(&recording);
        free(page);
    }
    frag_recording_destroy(&plain);
}

/* A page of more than the quarter of a mebibyte that is searched at a time. */
static void a_snapshot_far_into_a_page_is_found(void **state)
{
    (void)state;
    static char blanks[(1 << 18) + 4096];
    memset(blanks, ' ', sizeof blanks - 1);
    frag_recording plain;
    frag_recording recording;
    frag_findings findings;
    frag_test_load_well(snapshot, &plain, &findings);
    char *page = make_page(0, 0, ": ");
    frag_text text = {0};
    frag_text_add(&text, "%s// add_local_files\n%s%s", HEAD, blanks, page + strlen(HEAD));
    frag_test_load_well(text.bytes, &recording, &findings);
    assert_string_equal(recording.traces[0].digest, plain.traces[0].digest);
    frag_recording_destroy(&recording);
    frag_recording_destroy(&plain);
    frag_text_destroy(&text);
    free(page);
}

/* The drawing of 2.0: allocation 1 was there before; 0 comes, 1 goes, 2 comes and goes. */
#define PLOT(actions)                                                                              \
    HEAD "import * as d3 from \"https://example.org\";\n\nlet alloc_data = {\"actions\": " actions \
         ", \"elements\": [{\"size\": 1024, \"info\": 1}, {\"size\": 512, \"info\": null}, "       \
         "{\"size\": 2048, \"info\": 3}], \"suffix_table\": [[1, null], [0, 0], [3, null], "       \
         "[2, 2]], \"string_table\": [\"1.0KiB allocation\", \"/home/me/train.py:12:step\", "      \
         "\"2.0KiB allocation\", \"at::native::relu\"], \"initially_allocated\": [1]}\n"           \
         "function process_alloc_data() {"

static void the_drawing_of_2_0_is_a_trace(void **state)
{
    (void)state;
    frag_recording recording;
    frag_findings findings;
    frag_test_load_well(PLOT("[0, 1, 2, 2]"), &recording, &findings);
    const frag_trace *trace = &recording.traces[0];
    assert_string_equal(frag_recording_get(&recording, "source"), "torch-plot");
    assert_int_equal(trace->event_count, 5);
    assert_int_equal(trace->events[0].bytes, 512);
    assert_int_equal(trace->events[1].bytes, 1024);
    assert_int_equal(trace->events[2].op, FRAG_OP_FREE);
    assert_int_equal(trace->events[2].slot, trace->events[0].slot);
    assert_int_equal(trace->events[3].bytes, 2048);
    assert_int_equal(trace->events[4].op, FRAG_OP_FREE);
    assert_int_equal(frag_test_found(&findings, "drawing-only"), 1);
    assert_int_equal(frag_test_found(&findings, "began-in-use"), 1);
    frag_site site = recording.sites[trace->sites[1]];
    frag_frame frame = recording.frames[recording.site_frames[site.first]];
    assert_int_equal(site.count, 1);
    assert_string_equal(frag_strings_get(&recording.strings, frame.file), "/home/me/train.py");
    assert_string_equal(frag_strings_get(&recording.strings, frame.name), "step");
    assert_int_equal(frame.line, 12);
    frame = recording.frames[recording.site_frames[recording.sites[trace->sites[3]].first]];
    assert_string_equal(frag_strings_get(&recording.strings, frame.name), "at::native::relu");
    frag_recording_destroy(&recording);
}

/* "file.py:12:function" as PyTorch writes a frame; what has another form is a name. */
static void a_frame_is_split_at_its_line_number(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *file;
        const char *name;
        uint32_t line;
    } cases[] = {
        {"a.py:7:step", "a.py", "step", 7},
        {"C:/a.py:120:step", "C:/a.py", "step", 120},
        {"a.py:123456789:step", "a.py", "step", 123456789},
        {"a.py:1234567890:step", "", "a.py:1234567890:step", 0},
        {"a.py::step", "", "a.py::step", 0},
        {"a.py:x1:step", "", "a.py:x1:step", 0},
        {"12:step", "", "12:step", 0},
        {"at::native::relu", "", "at::native::relu", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        frag_recording recording;
        frag_findings findings;
        snprintf(text, sizeof text,
                 HEAD "let alloc_data = {\"actions\": [0], \"elements\": [{\"size\": 512, "
                      "\"info\": 1}], \"suffix_table\": [[1, null], [0, 0]], \"string_table\": "
                      "[\"0.5KiB allocation\", \"%s\"], \"initially_allocated\": []}\nfunction "
                      "process_alloc_data() {",
                 cases[i].text);
        frag_test_load_well(text, &recording, &findings);
        frag_site site = recording.sites[recording.traces[0].sites[0]];
        frag_frame frame = recording.frames[recording.site_frames[site.first]];
        assert_string_equal(frag_strings_get(&recording.strings, frame.file), cases[i].file);
        assert_string_equal(frag_strings_get(&recording.strings, frame.name), cases[i].name);
        assert_int_equal(frame.line, cases[i].line);
        frag_recording_destroy(&recording);
    }
}

static void refuses(const char *text, const char *sentence)
{
    frag_recording recording;
    frag_findings findings;
    frag_error error;
    if (frag_test_load(text, strlen(text), FRAG_FORMAT_AUTO, &recording, &findings, &error))
        fail_msg("%s was taken", text);
    assert_int_equal(error.code, FRAG_E_INPUT);
    if (strstr(error.sentence, sentence) == NULL)
        fail_msg("%s: %s", text, error.sentence);
}

static void broken_pages_are_refused(void **state)
{
    (void)state;
    char *page = make_page(0, 1, ": ");
    char *digit = strstr(page, "base64") + 40;
    *digit = '!';
    refuses(page, "found byte 0x21 in the snapshot that the page holds; expected base64");
    *digit = '\0';
    refuses(page, "the page ends inside the snapshot");
    free(page);
    refuses(HEAD "add_local_files()", "the web page holds no snapshot");
    refuses(HEAD "\"base64\", \"eyJh\"", "the web page holds no snapshot");
    refuses(HEAD "\"base64\": eyJh", "the web page holds no snapshot");
    refuses(HEAD "\"base64\": \"eyJh\"", "in the snapshot that the page holds: ");
    refuses(HEAD "\"base64\": \"eyJ=A\"", "expected base64");
    refuses(PLOT("[3]"), "actions[0] of the drawing is not the number of an allocation");
    refuses(PLOT("7"), "no list 'actions'");
    refuses(HEAD "alloc_data = {\"actions\": [", "the file ends early");
    refuses(HEAD "alloc_data = {\"string_table\": [], \"suffix_table\": [[0, null]]}",
            "suffix_table[0] of the drawing");
    refuses(HEAD "alloc_data = {\"string_table\": [\"\"], \"suffix_table\": [[0, 0]]}",
            "suffix_table[0] of the drawing");
    refuses(HEAD "alloc_data = {\"string_table\": [], \"suffix_table\": [], \"elements\": "
                 "[{\"size\": 0, \"info\": null}]}",
            "elements[0] of the drawing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_is_read_like_the_snapshot_in_it),
        cmocka_unit_test(a_snapshot_far_into_a_page_is_found),
        cmocka_unit_test(the_drawing_of_2_0_is_a_trace),
        cmocka_unit_test(a_frame_is_split_at_its_line_number),
        cmocka_unit_test(broken_pages_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
