/* Tests of torch_snapshot.c: importing snapshots of torch.cuda.memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "sim/trace/site_names.h"
#include "tests/support/text_recording.h"
#include "traces/load.h"

typedef struct imported {
    frag_recording recording;
    frag_findings findings;
    frag_text text; /* one line for each event */
} imported;

/* Addresses as distances from the first segment, in KiB; expandable ones begin with E. */
static void describe(frag_text *text, const frag_recording *recording, const frag_trace *trace,
                     uint64_t index)
{
    const frag_event *event = &trace->events[index];
    static const char *const flags[] = {"initial", "deferred", "failed",   "begin",
                                        "end",     "ratio",    "inferred", "placed"};
    frag_text_add(text, "%s", frag_op_name((frag_op)event->op));
    for (unsigned i = 0; i < 8; i++)
        if ((event->flags >> i & 1) != 0)
            frag_text_add(text, " %s", flags[i]);
    if (event->op == FRAG_OP_MARK)
        frag_text_add(text, " '%s'", frag_strings_get(&recording->strings, event->slot));
    else if (!frag_op_is_observed(event->op) && event->slot != FRAG_SLOT_NONE)
        frag_text_add(text, " s%u", event->slot);
    if (event->bytes != 0)
        frag_text_add(text, " %llu", (unsigned long long)event->bytes);
    if (trace->block_bytes != NULL && trace->block_bytes[index] != 0)
        frag_text_add(text, " of %llu", (unsigned long long)trace->block_bytes[index]);
    uint64_t address = trace->addresses == NULL ? 0 : trace->addresses[index];
    if (event->op == FRAG_OP_OOM)
        frag_text_add(text, " with %llu free", (unsigned long long)address);
    else if (address != 0)
        frag_text_add(text, " @%s%g", address >> 44 == 3 ? "E" : "",
                      (double)(address & 0xffffffffffu) / 1024);
    if (trace->stream_handles[event->stream] != 0)
        frag_text_add(text, " on %llu", (unsigned long long)trace->stream_handles[event->stream]);
    if (trace->pools != NULL && trace->pools[index] != 0)
        frag_text_add(text, " in {%llu,%llu}",
                      (unsigned long long)trace->pool_ids[trace->pools[index]].high,
                      (unsigned long long)trace->pool_ids[trace->pools[index]].low);
    if (trace->notes != NULL && trace->notes[index] != 0)
        frag_text_add(text, " \"%s\"", frag_strings_get(&recording->strings, trace->notes[index]));
    if (trace->sites != NULL && trace->sites[index] != 0) {
        frag_site site = recording->sites[trace->sites[index]];
        for (uint32_t i = 0; i < site.count; i++) {
            frag_frame frame = recording->frames[recording->site_frames[site.first + i]];
            frag_text_add(text, " <%s:%u", frag_strings_get(&recording->strings, frame.name),
                          frame.line);
        }
    }
    frag_text_add(text, "\n");
}

static void load(const char *name, imported *import)
{
    char path[128];
    frag_error error = {0};
    frag_load_options options = {.with_sites = true, .with_columns = true};
    memset(import, 0, sizeof *import);
    snprintf(path, sizeof path, "tests/data/snapshots/%s.pickle", name);
    if (!frag_recording_load(path, &options, &import->recording, &import->findings, &error))
        fail_msg("%s: %s", name, error.sentence);
    for (uint32_t i = 0; i < import->recording.trace_count; i++) {
        const frag_trace *trace = &import->recording.traces[i];
        if (import->recording.trace_count > 1)
            frag_text_add(&import->text, "device %u\n", trace->device);
        for (uint64_t k = 0; k < trace->event_count; k++)
            describe(&import->text, &import->recording, trace, k);
    }
}

static void unload(imported *import)
{
    frag_recording_destroy(&import->recording);
    frag_text_destroy(&import->text);
}

static uint64_t found(const imported *import, const char *kind)
{
    for (uint32_t i = 0; i < import->findings.count; i++)
        if (strcmp(import->findings.items[i].kind, kind) == 0)
            return import->findings.items[i].count;
    return 0;
}

/* Nothing in the snapshot contradicts itself, and it says these events. */
static void expect(const char *name, const char *events)
{
    imported import;
    load(name, &import);
    assert_string_equal(import.text.bytes, events);
    assert_int_equal(frag_findings_inconsistencies(&import.findings), 0);
    unload(&import);
}

static void rebuilds_what_was_in_use_before_the_history(void **state)
{
    (void)state;
    expect("late", "segment_alloc initial 2097152 @0\n"
                   "alloc initial s0 100 of 512 @0\n"
                   "alloc initial s1 300 of 512 @0.5\n"
                   "free initial deferred s1 @0.5\n"
                   "segment_alloc initial 20971520 @2048\n"
                   "alloc initial inferred s2 19922949 of 20971520 @2048\n"
                   "complete s1 @0.5\n"
                   "free s2 @2048\n");
    imported import;
    load("late", &import);
    assert_int_equal(found(&import, "block-size-guessed"), 1);
    assert_int_equal(found(&import, "began-in-use"), 1);
    unload(&import);
}

static void later_requests_show_the_size_of_earlier_blocks(void **state)
{
    (void)state;
    expect("late-sizes", "segment_alloc initial 67108864 @0\n"
                         "alloc initial s0 4194304 of 5177344 @0\n"
                         "segment_alloc initial 67108864 @65536\n"
                         "alloc initial s1 4194304 of 4194304 @65536\n"
                         "alloc initial s2 60817408 of 60817408 @71680\n"
                         "segment_alloc initial 67108864 @131072\n"
                         "alloc initial inferred s3 66408864 of 67108864 @131072\n"
                         "alloc s4 8388608 @5056\n"
                         "alloc s5 2097152 @69632\n"
                         "free s0 @0\n"
                         "free s1 @65536\n"
                         "free s3 @131072\n");
    imported import;
    load("late-sizes", &import);
    assert_int_equal(found(&import, "block-size-guessed"), 1);
    unload(&import);
}

static const char deferred_events[] = "segment_alloc 2097152 @0\n"
                                      "alloc s0 1000 @0\n"
                                      "alloc s1 2000 @1\n"
                                      "free deferred s1 @1\n"
                                      "alloc s2 7 @4\n"
                                      "complete s1 @1\n"
                                      "free s2 @4\n"
                                      "free deferred s0 @0\n";

static void tells_late_completions_from_prompt_ones(void **state)
{
    (void)state;
    expect("deferred", deferred_events);
}

static void reads_every_protocol_and_both_picklers_alike(void **state)
{
    (void)state;
    expect("deferred-p2", deferred_events);
    expect("deferred-p3", deferred_events);
    expect("deferred-p5", deferred_events);
    expect("deferred-cpp", deferred_events);
}

static void cuts_and_joins_expandable_ranges(void **state)
{
    (void)state;
    expect("expandable", "segment_map 20971520 @E0\n"
                         "alloc s0 20971520 @E0\n"
                         "segment_map 41943040 @E20480\n"
                         "alloc s1 20971520 @E20480\n"
                         "alloc s2 20971517 @E40960\n"
                         "free s1 @E20480\n"
                         "empty_cache inferred\n"
                         "segment_unmap 20971520 @E20480\n");
}

static void puts_a_failed_request_before_what_was_tried_for_it(void **state)
{
    (void)state;
    expect("oom", "segment_alloc 41943040 @0\n"
                  "alloc s0 41943040 @0\n"
                  "segment_alloc 20971520 @40960\n"
                  "alloc s1 9437184 @40960\n"
                  "free s1 @40960\n"
                  "alloc failed 67108864\n"
                  "segment_free 20971520 @40960\n"
                  "oom 67108864 with 31457280 free\n"
                  "alloc failed 3377699720527872\n"
                  "oom 3377699720527872 with 31457280 free\n");
}

static void concludes_calls_of_empty_cache_only_from_proof(void **state)
{
    (void)state;
    expect("empty-cache", "segment_alloc 134217728 @0\n"
                          "alloc s0 134217728 @0\n"
                          "free s0 @0\n"
                          "empty_cache inferred\n" /* no request follows */
                          "segment_free 134217728 @0\n"
                          "segment_alloc 31457280 @65536\n"
                          "alloc s0 31457280 @65536\n"
                          "free s0 @65536\n"
                          "empty_cache inferred\n" /* the device once held more */
                          "segment_free 31457280 @65536\n"
                          "segment_alloc 73400320 @102400\n"
                          "alloc s0 73400320 @102400\n"
                          "free s0 @102400\n"
                          "empty_cache inferred\n" /* it would have served the next request */
                          "segment_free 73400320 @102400\n"
                          "segment_alloc 62914560 @204800\n"
                          "alloc s0 62914560 @204800\n"
                          "free s0 @204800\n"
                          "empty_cache inferred\n" /* the stack says so */
                          "segment_free 62914560 @204800 <empty_cache:7\n"
                          "segment_alloc 83886080 @307200\n"
                          "alloc s0 83886080 @307200\n"
                          "free s0 @307200\n"
                          "segment_free 83886080 @307200\n" /* perhaps to make room */
                          "segment_alloc 94371840 @409600\n"
                          "alloc s0 94371840 @409600\n");
    imported import;
    load("empty-cache", &import);
    assert_int_equal(found(&import, "empty-cache-or-retry"), 1);
    assert_int_equal(found(&import, "snapshots-taken"), 1);
    unload(&import);
}

static void knows_what_garbage_collection_does_not_give_back(void **state)
{
    (void)state;
    expect("empty-with-gc", "segment_alloc 314572800 @0\n"
                            "alloc s0 314572800 @0\n"
                            "free s0 @0\n"
                            "empty_cache inferred\n"
                            "segment_free 314572800 @0\n"
                            "segment_alloc 104857600 @307200\n"
                            "alloc s0 104857600 @307200\n"
                            "free s0 @307200\n"
                            "empty_cache inferred\n" /* below the share */
                            "segment_free 104857600 @307200\n"
                            "segment_alloc 167772160 @409600\n"
                            "alloc s0 167772160 @409600\n"
                            "segment_alloc 2097152 @614400\n"
                            "alloc s1 512 @614400\n"
                            "free s1 @614400\n"
                            "empty_cache inferred\n" /* small */
                            "segment_free 2097152 @614400\n"
                            "segment_alloc 31457280 @716800\n"
                            "alloc s1 31457280 @716800\n"
                            "free s1 @716800\n"
                            "segment_free 31457280 @716800\n"
                            "segment_alloc 41943040 @819200\n"
                            "alloc s1 41943040 @819200\n");
}

static void knows_what_would_have_served_without_a_wait(void **state)
{
    (void)state;
    expect("empty-waited", "segment_alloc 62914560 @0\n"
                           "alloc s0 20971520 @0\n"
                           "alloc s1 41943040 @20480\n"
                           "free deferred s1 @20480\n"
                           "free s0 @0\n"
                           "complete s1 @20480\n"
                           "empty_cache inferred\n"
                           "segment_free 62914560 @0\n"
                           "segment_alloc 73400320 @102400\n"
                           "alloc s1 15728640 @102400\n"
                           "alloc s0 57671680 @117760\n"
                           "free deferred s1 @102400\n"
                           "free s0 @117760\n"
                           "segment_free 73400320 @102400\n"
                           "segment_alloc 16777216 @204800\n"
                           "alloc s0 15728640 @204800\n"
                           "complete s1 @102400\n");
}

static void knows_what_a_retry_gives_back_first(void **state)
{
    (void)state;
    expect("empty-oversize", "segment_alloc 83886080 @0\n"
                             "alloc s0 83886080 @0\n"
                             "segment_alloc 104857600 @102400\n"
                             "alloc s1 104857600 @102400\n"
                             "free s0 @0\n"
                             "free s1 @102400\n"
                             "empty_cache inferred\n"
                             "segment_free 83886080 @0\n"
                             "segment_free 104857600 @102400\n"
                             "segment_alloc 136314880 @204800\n"
                             "alloc s1 136314880 @204800\n"
                             "segment_alloc 146800640 @409600\n"
                             "alloc s0 146800640 @409600\n"
                             "free s0 @409600\n"
                             "free s1 @204800\n"
                             "segment_free 146800640 @409600\n"
                             "segment_free 136314880 @204800\n"
                             "segment_alloc 209715200 @614400\n"
                             "alloc s1 209715200 @614400\n");
}

static void knows_private_pools_and_when_they_go(void **state)
{
    (void)state;
    expect("pools", "segment_alloc 20971520 @0 in {0,1}\n"
                    "alloc s0 2097152 @0 in {0,1}\n"
                    "segment_alloc 2097152 @20480 on 77 in {2,0}\n"
                    "alloc s1 512 @20480 on 77 in {2,0}\n"
                    "segment_alloc 2097152 @22528\n"
                    "alloc s2 512 @22528 \"step 1\"\n"
                    "free s0 @0 in {0,1}\n"
                    "free s2 @22528\n"
                    "pool_release inferred s1 in {0,1}\n"
                    "empty_cache inferred s1\n"
                    "segment_free 20971520 @0 in {0,1}\n"
                    "empty_cache inferred\n"
                    "segment_free 2097152 @22528\n");
    expect("old-pools", "segment_alloc 2097152 @0 on 5 in {1,0}\n"
                        "alloc s0 512 @0 on 5 in {1,0}\n"
                        "alloc s1 600 @0.5 on 5 in {1,0}\n"
                        "free s1 @0.5 on 5 in {1,0}\n");
    imported import;
    load("pools", &import);
    assert_int_equal(found(&import, "host-memory"), 1);
    unload(&import);
}

static void reads_the_format_of_2_0(void **state)
{
    (void)state;
    expect("torch-2-0", "segment_alloc initial 2097152 @0\n"
                        "alloc initial s0 100 of 512 @0\n"
                        "alloc s1 200 @0.5 <c10::malloc:0\n"
                        "free s1 @0.5 <c10::malloc:0\n");
}

static void keeps_stacks_notes_and_annotations(void **state)
{
    (void)state;
    expect("stacks", "segment_alloc 2097152 @0 <main:3\n"
                     "mark begin 'step'\n"
                     "alloc s0 100 @0 \"graph 0\" <linear:9 <main:3\n"
                     "mark end 'step'\n"
                     "mark 'bad ??? name'\n"
                     "free s0 @0 <main:3\n");
}

static void links_the_backward_pass_to_the_forward_pass(void **state)
{
    (void)state;
    imported import;
    static const char *const names[] = {"model.py:12 backward of forward",
                                        "model.py:12 backward of forward", "backward of Mm",
                                        "autograd thread"};
    load("backward", &import);
    const frag_recording *recording = &import.recording;
    for (uint32_t i = 0; i < 4; i++) {
        frag_text name = {0};
        uint32_t site = recording->traces[0].sites[i + 1];
        frag_frame_add(recording, frag_site_frame(recording, site) - 1, &name);
        assert_string_equal(name.bytes, names[i]);
        frag_text_destroy(&name);
    }
    unload(&import);
}

/* Of long stacks of both passes half of a site is the first frames of the one, the rest the other.
 */
static void a_site_of_both_passes_has_128_frames(void **state)
{
    (void)state;
    frag_text text = {0};
    frag_recording recording;
    frag_findings findings;
    frag_text_add(&text,
                  "{\"segments\": [{\"device\": 0, \"address\": 4096, \"total_size\": 2097152, "
                  "\"stream\": 0, \"blocks\": [{\"size\": 512, \"state\": \"active_allocated\"}, "
                  "{\"size\": 2096640, \"state\": \"inactive\"}]}], \"device_traces\": "
                  "[[{\"action\": \"alloc\", \"addr\": 4096, \"size\": 512, \"stream\": 0, "
                  "\"frames\": [");
    for (int i = 0; i < 200; i++)
        frag_text_add(&text, "%s{\"name\": \"f\", \"filename\": \"a.py\", \"line\": %d}",
                      i > 0 ? ", " : "", 1 + i);
    frag_text_add(&text, "], \"forward_frames\": [");
    for (int i = 0; i < 200; i++)
        frag_text_add(&text, "%s\"  File \\\"b.py\\\", line %d, in g\"", i > 0 ? ", " : "",
                      1001 + i);
    frag_text_add(&text, "]}]]}");
    frag_test_load_well(text.bytes, &recording, &findings);
    const frag_trace *trace = &recording.traces[0];
    frag_site site = recording.sites[trace->sites[trace->event_count - 1]];
    assert_int_equal(site.count, 128);
    for (uint32_t i = 0; i < 128; i++)
        assert_int_equal(recording.frames[recording.site_frames[site.first + i]].line,
                         i < 64 ? 1 + i : 1001 + i - 64);
    frag_recording_destroy(&recording);
    frag_text_destroy(&text);
}

/* Of a recording with Python stacks, what has none was requested by the autograd thread. */
static void requests_without_a_stack_are_the_autograd_threads(void **state)
{
    (void)state;
    static const char text[] =
        "{\"segments\": [{\"device\": 0, \"address\": 4096, \"total_size\": 2097152, \"stream\": "
        "0, "
        "\"segment_type\": \"small\", \"blocks\": [{\"address\": 4096, \"size\": 512, \"state\": "
        "\"active_allocated\"}, {\"address\": 4608, \"size\": 512, \"state\": "
        "\"active_allocated\"}, "
        "{\"address\": 5120, \"size\": 512, \"state\": \"active_allocated\"}, "
        "{\"address\": 5632, \"size\": 2095616, \"state\": \"inactive\"}]}], \"device_traces\": [["
        "{\"action\": \"segment_alloc\", \"addr\": 4096, \"size\": 2097152, \"stream\": 0}, "
        "{\"action\": \"alloc\", \"addr\": 4096, \"size\": 512, \"stream\": 0, \"frames\": "
        "[{\"name\": \"step\", \"filename\": \"train.py\", \"line\": 7}]}, "
        "{\"action\": \"alloc\", \"addr\": 4608, \"size\": 512, \"stream\": 0, \"frames\": []}, "
        "{\"action\": \"alloc\", \"addr\": 5120, \"size\": 512, \"stream\": 0, \"frames\": "
        "[{\"name\": \"eager_router\", \"filename\": \"/e/torch/_native/registry.py\", \"line\": "
        "9}]}]]}";
    frag_recording recording;
    frag_findings findings;
    frag_test_load_well(text, &recording, &findings);
    const frag_trace *trace = &recording.traces[0];
    assert_int_equal(trace->event_count, 4);
    assert_int_equal(trace->sites[3], trace->sites[2]); /* PyTorch's own wrapper names nothing */
    frag_site site = recording.sites[trace->sites[2]];
    assert_int_equal(site.count, 1);
    frag_frame frame = recording.frames[recording.site_frames[site.first]];
    assert_string_equal(frag_strings_get(&recording.strings, frame.name),
                        "autograd thread (no Python stack)");
    assert_int_equal(frag_strings_length(&recording.strings, frame.name),
                     strlen("autograd thread (no Python stack)"));
    frag_recording_destroy(&recording);
}

static void a_line_number_has_32_bits(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        uint32_t kept;
    } cases[] = {{"7", 7}, {"0", 0}, {"4294967295", UINT32_MAX}, {"4294967296", 0}, {"-1", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        frag_recording recording;
        frag_findings findings;
        snprintf(text, sizeof text,
                 "{\"segments\": [], \"device_traces\": [[{\"action\": \"alloc\", \"addr\": 4096, "
                 "\"size\": 512, \"stream\": 0, \"frames\": [{\"name\": \"step\", \"filename\": "
                 "\"train.py\", \"line\": %s}]}, {\"action\": \"free_completed\", \"addr\": 4096, "
                 "\"size\": 512, \"stream\": 0, \"frames\": []}]]}",
                 cases[i].line);
        frag_test_load_well(text, &recording, &findings);
        bool is_found = false;
        for (uint32_t k = 0; k < recording.frame_count; k++)
            if (strcmp(frag_strings_get(&recording.strings, recording.frames[k].name), "step") ==
                0) {
                is_found = true;
                assert_int_equal(recording.frames[k].line, cases[i].kept);
            }
        assert_true(is_found);
        frag_recording_destroy(&recording);
    }
}

static void keeps_devices_apart_and_handles_whole(void **state)
{
    (void)state;
    expect("two-devices", "device 0\n"
                          "segment_alloc 2097152 @0\n"
                          "alloc s0 512 @0\n"
                          "device 1\n"
                          "segment_alloc initial 2097152 @0 on 3\n"
                          "mark begin 'forward' on 3\n"
                          "alloc s0 900 @0 on 3\n");
    imported import;
    load("unsigned", &import);
    assert_non_null(strstr(import.text.bytes, "alloc s0 512 @0 on 9223372036854775813\n"));
    assert_string_equal(frag_recording_get(&import.recording, "torch.max_split_size"), "-1");
    unload(&import);
}

static void reports_and_drops_what_does_not_fit(void **state)
{
    (void)state;
    imported import;
    load("broken", &import);
    static const char *const kinds[] = {
        "alloc-of-nothing",   "free-of-used-address", "free-outside-segments",
        "segment-of-nothing", "segment-freed-twice",  "map-of-nothing",
        "unmapped-twice",     "size-differs",
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (found(&import, kinds[i]) != 1)
            fail_msg("%s: %u", kinds[i], (unsigned)found(&import, kinds[i]));
    assert_int_equal(found(&import, "free-of-nothing"), 2);
    assert_int_equal(found(&import, "unknown-action"), 1);
    assert_int_equal(frag_findings_inconsistencies(&import.findings), 10);
    assert_string_equal(import.text.bytes, "segment_alloc initial 2097152 @0\n"
                                           "alloc initial s0 512 of 512 @0\n"
                                           "free s0 @0\n"
                                           "alloc s0 11 @0.5\n");
    unload(&import);
}

static void expect_versions(const char *name, const char *min, const char *max)
{
    imported import;
    load(name, &import);
    assert_string_equal(frag_recording_get(&import.recording, "source"), "torch-snapshot");
    assert_string_equal(frag_recording_get(&import.recording, "torch.version_min"), min);
    assert_string_equal(frag_recording_get(&import.recording, "torch.version_max"), max);
    assert_string_equal(frag_recording_get(&import.recording, "torch.version_hint"), max);
    unload(&import);
}

static void tells_the_version_by_the_keys(void **state)
{
    (void)state;
    expect_versions("torch-2-0", "2.0", "2.0");
    expect_versions("late", "2.2", "2.5");
    expect_versions("two-devices", "2.6", "2.8");
    expect_versions("pools", "2.15", "2.15");
}

static void records_the_settings(void **state)
{
    (void)state;
    imported import;
    load("late", &import);
    assert_string_equal(frag_recording_get(&import.recording, "torch.conf"), "");
    assert_string_equal(frag_recording_get(&import.recording, "torch.max_split_size"), "-1");
    assert_string_equal(frag_recording_get(&import.recording, "torch.expandable_segments"),
                        "false");
    assert_string_equal(frag_recording_get(&import.recording, "torch.garbage_collection_threshold"),
                        "0");
    assert_null(frag_recording_get(&import.recording, "torch.roundup_power2_divisions"));
    unload(&import);
}

/* ---- what is refused */

static void expect_refused(const void *bytes, size_t count, const char *sentence_part)
{
    frag_error error = {0};
    frag_recording recording;
    frag_findings findings = {0};
    frag_load_options options = {
        .format = FRAG_FORMAT_SNAPSHOT, .with_sites = true, .with_columns = true};
    frag_input *input = frag_input_from_memory(bytes, count, "here.pickle");
    assert_false(frag_recording_load_input(input, &options, &recording, &findings, &error));
    frag_input_close(input);
    assert_int_equal(error.code, FRAG_E_INPUT);
    assert_string_equal(error.where, "here.pickle");
    if (strstr(error.sentence, sentence_part) == NULL)
        fail_msg("'%s' does not say '%s'", error.sentence, sentence_part);
}

static void refuses_every_truncation(void **state)
{
    (void)state;
    FILE *file = fopen("tests/data/snapshots/pools.pickle", "rb");
    assert_non_null(file);
    static unsigned char bytes[1 << 16];
    size_t count = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_in_range(count, 100, sizeof bytes - 1);
    for (size_t cut = 0; cut < count; cut++) {
        unsigned char *part = frag_alloc(cut + 1, 1);
        memcpy(part, bytes, cut);
        expect_refused(part, cut, cut < 2 ? "begin" : "ends before");
        free(part);
    }
    bytes[count] = '.';
    expect_refused(bytes, count + 1, "goes on after the end");
}

static void refuses_what_is_no_snapshot(void **state)
{
    (void)state;
    static const char list[] = "\x80\x04].";
    static const char empty[] = "\x80\x04}.";
    static const char nothing[] = "\x80\x04}(\x8c\x08segments]\x8c\x0d"
                                  "device_traces]u.";
    static const char wrong[] = "\x80\x04}(\x8c\x08segmentsN\x8c\x0d"
                                "device_traces]u.";
    static const char twice[] = "\x80\x04}(\x8c\x08segments](}\x94(\x8c\x06"
                                "deviceK\x00ue]\x94\x8c\x0d"
                                "device_traces]u.";
    expect_refused(list, sizeof list - 1, "memory_snapshot() has no history");
    expect_refused(empty, sizeof empty - 1, "no 'segments'");
    expect_refused(nothing, sizeof nothing - 1, "no segments and no history");
    expect_refused(wrong, sizeof wrong - 1, "'segments' is None; expected a list");
    expect_refused(twice, sizeof twice - 1, "");
}

static void refuses_an_entry_that_lacks_something(void **state)
{
    (void)state;
    static const char no_size[] = "\x80\x04}(\x8c\x08segments]\x8c\x0d"
                                  "device_traces]]}(\x8c\x06"
                                  "action"
                                  "\x8c\x05"
                                  "alloc\x8c\x04"
                                  "addrK\x01u"
                                  "aau.";
    static const char bad_size[] = "\x80\x04}(\x8c\x08segments]\x8c\x0d"
                                   "device_traces]]}(\x8c\x06"
                                   "action"
                                   "\x8c\x05"
                                   "alloc\x8c\x04"
                                   "addrK\x01\x8c\x04sizeNu"
                                   "aau.";
    static const char same[] = "\x80\x04}(\x8c\x08segments]\x8c\x0d"
                               "device_traces]](}(\x8c\x06"
                               "action"
                               "\x8c\x05"
                               "alloc\x8c\x04"
                               "addrK\x01\x8c\x04sizeK\x01u\x94h\x00"
                               "eau.";
#define ENTRY(n)                                                                                   \
    "{\"action\":\"alloc\",\"addr\":" n ",\"size\":" n ",\"stream\":" n ",\"time_us\":" n "}"
    static const char texts[] =
        "{\"segments\":[],\"device_traces\":[[" ENTRY("1") "," ENTRY("\"1\"") "]]}";
    expect_refused(texts, sizeof texts - 1, "is not an integer");
    expect_refused(no_size, sizeof no_size - 1, "device_traces[0] entry [0] has no 'size'");
    expect_refused(bad_size, sizeof bad_size - 1, "'size' is not an integer");
    expect_refused(same, sizeof same - 1, "twice");
}

/* Segments of 40 and 70 MiB side by side: the second would have served 60 MiB, unless its beginning
 * became free by the wait only. What lies in front of it does not matter. */
static void a_wait_counts_for_the_segment_in_which_a_block_lies(void **state)
{
    (void)state;
    static const struct {
        unsigned at_mib, mib; /* the block that is free late */
        bool is_inferred;
    } cases[] = {{40, 40, true}, {80, 10, false}, {90, 60, false}, {140, 10, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const unsigned at = cases[i].at_mib, late = cases[i].mib;
        const struct {
            const char *action;
            unsigned at_mib, mib;
        } entries[] = {
            {"segment_alloc", 20, 20},    {"segment_alloc", 40, 40},    {"segment_alloc", 80, 70},
            {"alloc", at, late},          {"free_requested", at, late}, {"alloc", 20, 20},
            {"free_completed", at, late}, {"segment_free", 80, 70},     {"segment_alloc", 200, 60},
            {"alloc", 200, 60},           {"free_requested", 20, 20},   {"free_completed", 20, 20},
            {"free_requested", 200, 60},  {"free_completed", 200, 60},  {"segment_free", 20, 20},
            {"segment_free", 40, 40},     {"segment_free", 200, 60},
        };
        frag_text text = {0};
        frag_recording recording;
        frag_findings findings;
        frag_text_add(&text, "{\"segments\": [], \"device_traces\": [[");
        for (size_t k = 0; k < sizeof entries / sizeof *entries; k++) {
            frag_text_add(&text,
                          "{\"action\": \"%s\", \"addr\": %llu, \"size\": %llu, \"stream\": 0, "
                          "\"frames\": []}%s",
                          entries[k].action, entries[k].at_mib * 1048576ull,
                          entries[k].mib * 1048576ull, k == 16 ? "]]}" : ", ");
        }
        frag_test_load_well(text.bytes, &recording, &findings);
        const frag_trace *trace = &recording.traces[0];
        if ((trace->stats.op_counts[FRAG_OP_EMPTY_CACHE] == 2) != cases[i].is_inferred)
            fail_msg("%u MiB at %u", late, at);
        frag_recording_destroy(&recording);
        frag_text_destroy(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rebuilds_what_was_in_use_before_the_history),
        cmocka_unit_test(later_requests_show_the_size_of_earlier_blocks),
        cmocka_unit_test(tells_late_completions_from_prompt_ones),
        cmocka_unit_test(reads_every_protocol_and_both_picklers_alike),
        cmocka_unit_test(cuts_and_joins_expandable_ranges),
        cmocka_unit_test(puts_a_failed_request_before_what_was_tried_for_it),
        cmocka_unit_test(concludes_calls_of_empty_cache_only_from_proof),
        cmocka_unit_test(knows_what_garbage_collection_does_not_give_back),
        cmocka_unit_test(knows_what_would_have_served_without_a_wait),
        cmocka_unit_test(knows_what_a_retry_gives_back_first),
        cmocka_unit_test(knows_private_pools_and_when_they_go),
        cmocka_unit_test(reads_the_format_of_2_0),
        cmocka_unit_test(keeps_stacks_notes_and_annotations),
        cmocka_unit_test(links_the_backward_pass_to_the_forward_pass),
        cmocka_unit_test(a_line_number_has_32_bits),
        cmocka_unit_test(a_site_of_both_passes_has_128_frames),
        cmocka_unit_test(requests_without_a_stack_are_the_autograd_threads),
        cmocka_unit_test(keeps_devices_apart_and_handles_whole),
        cmocka_unit_test(reports_and_drops_what_does_not_fit),
        cmocka_unit_test(tells_the_version_by_the_keys),
        cmocka_unit_test(records_the_settings),
        cmocka_unit_test(refuses_every_truncation),
        cmocka_unit_test(refuses_what_is_no_snapshot),
        cmocka_unit_test(refuses_an_entry_that_lacks_something),
        cmocka_unit_test(a_wait_counts_for_the_segment_in_which_a_block_lies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
