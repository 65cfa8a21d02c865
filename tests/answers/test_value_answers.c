/* What is read of JSON in which the value of one key is another: of the wrong kind, on a border,
 * that of another key; or the key is gone or there twice. What was changed on purpose is pinned
 * anew:
 *
 *   test_value_answers            compares with tests/data/answers/values.txt.zst
 *   test_value_answers --write    prints what that file should hold (make answers-golden);
 *                                 with FRAG_PINNED_WHOLE in the environment every answer whole
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/pinned_lines.h"
#include "tests/support/xorshift.h"

#define ADDRESS "139637976727552"
#define BEHIND "139637976729600"
#define LARGE "139637981970432"

/* Everything occurs that a snapshot can say. */
static const char snapshot[] =
    "{\"segments\": [\n"
    "{\"device\": 0, \"address\": " ADDRESS ", \"total_size\": 2097152, \"stream\": 0, "
    "\"segment_type\": \"small\", \"segment_pool_id\": [0, 0], \"is_expandable\": false, "
    "\"blocks\": [{\"address\": " ADDRESS ", \"size\": 2048, \"requested_size\": 2000, \"state\": "
    "\"active_allocated\", \"frames\": [{\"name\": \"f\", \"filename\": \"a.py\", \"line\": 3}]},\n"
    "{\"address\": " BEHIND ", \"size\": 2095104, \"state\": \"inactive\"}]},\n"
    "{\"device\": 0, \"address\": " LARGE ", \"total_size\": 20971520, \"stream\": 7, "
    "\"segment_type\": \"large\", \"segment_pool_id\": [0, 1], \"is_expandable\": true, "
    "\"blocks\": [{\"size\": 20971520, \"state\": \"active_pending_free\", \"history\": "
    "[{\"addr\": " LARGE ", \"real_size\": 20971000, \"frames\": []}]}]}],\n"
    "\"device_traces\": [[\n"
    "{\"action\": \"segment_alloc\", \"addr\": " ADDRESS ", \"size\": 2097152, \"stream\": 0, "
    "\"time_us\": 5, \"pool_id\": [0, 0], \"frames\": [{\"name\": \"g\", \"filename\": \"b.py\", "
    "\"line\": 4}]},\n"
    "{\"action\": \"alloc\", \"addr\": " ADDRESS ", \"size\": 2000, \"stream\": 0, \"time_us\": 6, "
    "\"category\": \"parameter\", \"user_metadata\": \"layer\", \"compile_context\": \"0/1\", "
    "\"cpp_frames\": [{\"name\": \"h\", \"filename\": \"c.cpp\", \"line\": 5}]},\n"
    "{\"action\": \"alloc\", \"addr\": " BEHIND ", \"size\": 512, \"stream\": 0, \"time_us\": 7},\n"
    "{\"action\": \"free_requested\", \"addr\": " BEHIND ", \"size\": 512, \"stream\": 0, "
    "\"time_us\": 8},\n"
    "{\"action\": \"free_completed\", \"addr\": " BEHIND ", \"size\": 512, \"stream\": 0, "
    "\"time_us\": 9},\n"
    "{\"action\": \"segment_map\", \"addr\": " LARGE ", \"size\": 20971520, \"stream\": 7, "
    "\"time_us\": 10, \"pool_id\": [0, 1]},\n"
    "{\"action\": \"alloc\", \"addr\": " LARGE ", \"size\": 20971000, \"stream\": 7, \"time_us\": "
    "11, \"pool_id\": [0, 1]},\n"
    "{\"action\": \"oom\", \"device_free\": 4096, \"size\": 9000000, \"stream\": 0, \"time_us\": "
    "12},\n"
    "{\"action\": \"snapshot\", \"addr\": 0, \"size\": 0, \"stream\": 0, \"time_us\": 13},\n"
    "{\"action\": \"free_requested\", \"addr\": " LARGE ", \"size\": 20971000, \"stream\": 7, "
    "\"time_us\": 14}]],\n"
    "\"allocator_settings\": {\"PYTORCH_CUDA_ALLOC_CONF\": \"max_split_size_mb:32\", "
    "\"max_split_size\": 33554432, \"garbage_collection_threshold\": 0.5, \"expandable_segments\": "
    "false, \"roundup_power2_divisions\": {\"1\": 0, \"64\": 4, \"256\": 8, \"x\": 2}, "
    "\"graph_capture_record_stream_reuse\": true, \"max_round_threshold\": 1},\n"
    "\"external_annotations\": [{\"name\": \"step\", \"stage\": \"START\", \"device\": 0, "
    "\"time_us\": 6}, {\"name\": \"step\", \"stage\": \"END\", \"device\": 0, \"time_us\": 11}],\n"
    "\"host_segments\": [{\"address\": 4096, \"total_size\": 512}], \"host_traces\": []}\n";

static const char trace[] =
    "{\"schemaVersion\": 1, \"baseTimeNanoseconds\": 5, \"deviceProperties\": [{\"id\": 0, "
    "\"name\": \"A100\", \"totalGlobalMem\": 42298834944}], \"traceEvents\": [\n"
    "{\"ph\": \"X\", \"cat\": \"python_function\", \"name\": \"a.py(3): f\", \"pid\": 1, \"tid\": "
    "1, "
    "\"ts\": 1.5, \"dur\": 90.25, \"args\": {\"Python id\": 1, \"Python parent id\": null}},\n"
    "{\"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"s\": \"t\", \"name\": \"[memory]\", "
    "\"pid\": "
    "1, \"tid\": 1, \"ts\": 2.5, \"args\": {\"Total Reserved\": 2097152, \"Total Allocated\": 512, "
    "\"Bytes\": 512, \"Addr\": " ADDRESS
    ", \"Device Id\": 0, \"Device Type\": 1, \"Ev Idx\": 1}},\n"
    "{\"ph\": \"i\", \"name\": \"[memory]\", \"pid\": 1, \"tid\": 1, \"ts\": 3.5, \"args\": "
    "{\"Total "
    "Reserved\": 2097152, \"Total Allocated\": 0, \"Bytes\": -512, \"Addr\": " ADDRESS
    ", \"Device Id\": 0, \"Device Type\": 1, \"Ev Idx\": 2}},\n"
    "{\"ph\": \"i\", \"name\": \"[OutOfMemory]\", \"pid\": 1, \"tid\": 1, \"ts\": 4, \"args\": "
    "{\"Total Reserved\": 2097152, \"Total Allocated\": 0, \"Bytes\": 9000000, \"Device Id\": 0, "
    "\"Device Type\": 1, \"Ev Idx\": 3}}]}\n";

/* Three devices, of which the second did nothing, and a program with steps. */
static const char devices[] =
    "{\"segments\": [{\"device\": 2, \"address\": " LARGE ", \"total_size\": 20971520, "
    "\"stream\": 0, \"segment_type\": \"large\", \"blocks\": [{\"size\": 20971520, \"state\": "
    "\"inactive\"}]}], \"device_traces\": [[\n"
    "{\"action\": \"alloc\", \"addr\": " ADDRESS
    ", \"size\": 512, \"stream\": 0, \"time_us\": 3},\n"
    "{\"action\": \"oom\", \"device_free\": 512, \"size\": 512, \"stream\": 0, \"time_us\": 4}], "
    "[], [\n"
    "{\"action\": \"segment_alloc\", \"addr\": " LARGE ", \"size\": 20971520, \"stream\": 0, "
    "\"time_us\": 5},\n"
    "{\"action\": \"alloc\", \"addr\": " LARGE ", \"size\": 9000000, \"stream\": 0, \"time_us\": "
    "6},\n"
    "{\"action\": \"free_requested\", \"addr\": " LARGE ", \"size\": 9000000, \"stream\": 0, "
    "\"time_us\": 8},\n"
    "{\"action\": \"free_completed\", \"addr\": " LARGE ", \"size\": 9000000, \"stream\": 0, "
    "\"time_us\": 9}]],\n"
    "\"external_annotations\": [{\"name\": \"a\", \"stage\": \"START\", \"device\": 2, "
    "\"time_us\": 5}, {\"name\": \"b\", \"stage\": \"START\", \"device\": 0, \"time_us\": 4}, "
    "{\"name\": \"c\", \"stage\": \"\", \"device\": 1, \"time_us\": 4}, {\"name\": \"a\", "
    "\"stage\": \"END\", \"device\": 2, \"time_us\": 8}, {\"name\": \"d\", \"stage\": \"START\", "
    "\"device\": 3, \"time_us\": 9}]}\n";

static const struct {
    const char *name;
    const char *text;
    frag_trace_format format;
} texts[] = {
    {"snapshot", snapshot, FRAG_FORMAT_SNAPSHOT},
    {"devices", devices, FRAG_FORMAT_SNAPSHOT},
    {"profiler trace", trace, FRAG_FORMAT_AUTO},
};

static const char *const others[] = {"null",       "true",
                                     "false",      "-1",
                                     "0",          "1",
                                     "2",          "0.0",
                                     "0.5",        "1.0",
                                     "1.5",        "-0.5",
                                     "511",        "512",
                                     "513",        "4095",
                                     "65535",      "65536",
                                     "4294967295", "4294967296",
                                     "1048576",    "2097152",
                                     "2097153",    "20971520",
                                     "20971521",   "9223372036854775807",
                                     "\"\"",       "\"x\"",
                                     "\"N/A\"",    "\"END\"",
                                     "[]",         "{}",
                                     "[0, 0]",     "[1, 0]",
                                     "3",          "4",
                                     "[1]",        "[0, 0, 0]",
                                     "[[0]]",      "{\"a\": 1}",
                                     "[{}]",       "\"inactive\"",
                                     "\"alloc\"",  "\"free\"",
                                     "\"large\"",  "\"expandable_segments:True\"",
                                     ADDRESS,      BEHIND,
                                     LARGE,        "{\"1\": 0, \"2\": 8, \"32768\": 4294967296}"};

enum { OTHERS = sizeof others / sizeof *others, TWO_CHANGES = 20000 };

/* The length of the value that begins there. */
static size_t value_bytes(const char *at)
{
    size_t length = 0;
    int depth = 0;
    bool is_text = false;
    for (; at[length] != '\0'; length++) {
        char letter = at[length];
        if (letter == '"')
            is_text = !is_text;
        if (is_text)
            continue;
        if (depth == 0 && strchr(",]}", letter) != NULL)
            break;
        depth += letter == '[' || letter == '{';
        depth -= letter == ']' || letter == '}';
    }
    return length;
}

static void tell_text(frag_text *out, size_t number, frag_text *text)
{
    const frag_load_options options = {
        .format = texts[number].format, .with_sites = true, .with_columns = true};
    pinned_tell_load(out, text->bytes, text->length, &options);
    frag_text_destroy(text);
}

/* The n-th key's quote; NULL: there is none. */
static const char *key_of(const char *text, size_t number)
{
    const char *colon = strstr(text, "\": ");
    for (; colon != NULL && number > 0; number--)
        colon = strstr(colon + 3, "\": ");
    for (; colon != NULL && (*(colon - 1) != '"' && colon > text); colon--)
        ;
    return colon != NULL ? colon - 1 : NULL;
}

/* Its value is another; or it has another name, or stands there twice. */
static frag_text change(const char *whole, const char *key, size_t choice)
{
    const char *value = strstr(key, "\": ") + 3;
    size_t bytes = value_bytes(value);
    frag_text text = {0};
    frag_text_add_bytes(&text, whole, (size_t)(value - whole));
    if (choice < OTHERS) {
        frag_text_add(&text, "%s", others[choice]);
    } else if (choice == OTHERS) {
        text.length = (size_t)(key - whole);
        frag_text_add(&text, "\"other\": %.*s", (int)bytes, value);
    } else {
        frag_text_add(&text, "%.*s, %.*s0", (int)bytes, value, (int)(value - key), key);
    }
    frag_text_add(&text, "%s", value + bytes);
    return text;
}

static void tell_values(frag_text *out, size_t number)
{
    const char *whole = texts[number].text;
    const char *key = NULL;
    size_t count = 0;
    for (; (key = key_of(whole, count)) != NULL; count++) {
        size_t from = out->length;
        for (size_t i = 0; i < OTHERS + 2; i++) {
            frag_text text = change(whole, key, i);
            tell_text(out, number, &text);
        }
        char name[80];
        snprintf(name, sizeof name, "  %.*s", (int)strcspn(key, ":"), key);
        pinned_fold(out, from, name);
    }
    uint64_t bits = 1;
    size_t from = out->length;
    for (size_t i = 0; i < TWO_CHANGES; i++) {
        key = key_of(whole, (size_t)(xorshift_next(&bits) % count));
        frag_text once = change(whole, key, (size_t)(xorshift_next(&bits) % (OTHERS + 2)));
        key = key_of(once.bytes, (size_t)(xorshift_next(&bits) % (count - 20)));
        if (key != NULL) {
            frag_text text = change(once.bytes, key, (size_t)(xorshift_next(&bits) % (OTHERS + 2)));
            tell_text(out, number, &text);
        }
        frag_text_destroy(&once);
    }
    pinned_fold(out, from, "  two changes");
}

static void tell_all(frag_text *out)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        frag_text text = {0};
        frag_text_add(out, "%s\n", texts[i].name);
        frag_text_add(&text, "%s", texts[i].text);
        tell_text(out, i, &text);
        tell_values(out, i);
    }
}

static const pinned_lines pinned = {"tests/data/answers/values.txt.zst", tell_all,
                                    "answers-golden"};

int main(int argc, char **argv)
{
    return pinned_lines_test(&pinned, argc, argv);
}
