/* Tests of verify_reason.c: what is said of a difference, by what is known of the recording. */
#include "studies/verify/verify_reason.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/text_recording.h"

#define CONF "meta \"torch.conf\" \"\"\n"
#define SPLIT "meta \"torch.conf\" \"max_split_size_mb:64\"\n"
#define GUESSED "alloc 0 512 initial inferred addr=0x10000000\n"

static void a_difference_has_a_likely_reason(void **state)
{
    (void)state;
    static const struct {
        const char *recording, *policy;
        frag_initial initial;
        uint64_t room_recorded, room_simulated;
        const char *reason; /* how it begins */
    } cases[] = {
        {"meta \"torch.skipped_actions\" \"free\"\n", "best-fit", FRAG_INITIAL_NONE, 0, 0,
         "the recording leaves out kinds of entries"},
        {"alloc 0 512\n", "best-fit", FRAG_INITIAL_NONE, 0, 0, "the recording was made by another"},
        {"alloc 0 512\n", "pytorch", FRAG_INITIAL_NONE, 0, 0, "the recording does not say with"},
        {"meta \"torch.conf\" \"garbage_collection_threshold:0.5\"\n", "pytorch:recorded",
         FRAG_INITIAL_NONE, 0, 0, "garbage collection depends on a memory limit"},
        {"meta \"torch.conf\" \"garbage_collection_threshold:0.5\"\n",
         "pytorch:per_process_memory_fraction=0.5", FRAG_INITIAL_NONE, 0, 0,
         "the recording was made with other settings"},
        {SPLIT, "pytorch", FRAG_INITIAL_NONE, 0, 0, "the recording was made with other settings"},
        {CONF, "pytorch:max_split_size_mb=64", FRAG_INITIAL_NONE, 0, 0,
         "the recording was made with other settings"},
        /* No settings of the library, or as they are without. */
        {CONF, "pytorch:version=2.9,max_split_size_mb=unlimited,per_process_memory_fraction=0.5",
         FRAG_INITIAL_NONE, 0, 0, "private pools that were gone"},
        {SPLIT, "pytorch:recorded", FRAG_INITIAL_NONE, 0, 0, "private pools that were gone"},
        {CONF GUESSED, "pytorch", FRAG_INITIAL_NONE, 0, 0, "private pools that were gone"},
        {CONF GUESSED, "pytorch", FRAG_INITIAL_ADOPTED, 0, 0, "sizes of blocks from before"},
        {CONF GUESSED, "pytorch", FRAG_INITIAL_ADOPTED, 512, 512, "sizes of blocks from before"},
        {CONF "alloc 0 512 initial addr=0x10000000\nalloc 1 512 inferred\n", "pytorch",
         FRAG_INITIAL_ADOPTED, 0, 0, "the history begins late"},
        {CONF, "pytorch", FRAG_INITIAL_ADOPTED, 512, 512, "another version: which of two equal"},
        {CONF, "pytorch", FRAG_INITIAL_ADOPTED, 512, 1024, "the history begins late"},
        {CONF, "pytorch", FRAG_INITIAL_NONE, 512, 1024, "private pools that were gone"},
        {CONF "meta \"torch.version_min\" \"2.11\"\n", "pytorch", FRAG_INITIAL_NONE, 0, 0,
         "private pools that were gone"},
        {CONF "meta \"torch.version_min\" \"2.12\"\n", "pytorch", FRAG_INITIAL_NONE, 0, 0,
         "other settings (a recording holds those at its end)"},
        {CONF "alloc 0 512 pool=1:0\n", "pytorch", FRAG_INITIAL_NONE, 0, 0,
         "other settings (a recording holds those at its end)"},
        /* What the recording shows, where its settings are taken or not known. */
        {CONF "segment_map 2097152 addr=0x10000000\n", "pytorch:recorded", FRAG_INITIAL_NONE, 0, 0,
         "memory was mapped page by page, as with expandable_segments=true"},
        {"segment_map 2097152 addr=0x10000000\n", "pytorch", FRAG_INITIAL_NONE, 0, 0,
         "memory was mapped page by page, as with expandable_segments=true"},
        {"segment_map 2097152 addr=0x10000000\n", "pytorch:expandable_segments=true",
         FRAG_INITIAL_NONE, 0, 0, "the recording does not say with"},
        {CONF "segment_map 2097152 addr=0x10000000\n", "pytorch", FRAG_INITIAL_NONE, 0, 0,
         "private pools that were gone"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        frag_recording recording;
        frag_policy_spec spec;
        frag_error error = {0};
        frag_text told = {0};
        const frag_verify_result result = {
            .initial = cases[i].initial,
            .first = {.room_recorded_bytes = cases[i].room_recorded,
                      .room_simulated_bytes = cases[i].room_simulated}};
        frag_test_recording(cases[i].recording, &recording);
        assert_true(frag_policy_spec_parse(cases[i].policy, &spec, &error));
        frag_verify_add_reason(&told, &recording, &recording.traces[0], &spec, &result);
        if (strncmp(told.bytes, cases[i].reason, strlen(cases[i].reason)) != 0)
            fail_msg("%zu: '%s', expected '%s'", i, told.bytes, cases[i].reason);
        frag_text_destroy(&told);
        frag_policy_spec_destroy(&spec);
        frag_recording_destroy(&recording);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_difference_has_a_likely_reason)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
