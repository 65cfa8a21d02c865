/* Expandable segments lie in ranges of addresses that are as large as the device, and a block that
 * could grow to the end of one is compared with others by how far it could. Runs on devices of
 * other capacities are the same as long as the policy says so. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/text.h"
#include "tests/support/policy_case.h"
#include "tests/support/text_recording.h"
#include "tests/support/xorshift.h"

enum { TRACES = 300, SLOTS_MAX = 16, EVENTS_MAX = 120, CAPACITIES = 4 };

static const char *const settings[] = {
    "pytorch:expandable_segments=true",
    "pytorch:expandable_segments=true,version=2.15",
    "pytorch:expandable_segments=true,max_split_size_mb=64",
    "pytorch:expandable_segments=true,per_process_memory_fraction=0.8",
    "pytorch:expandable_segments=true,version=2.15,expandable_segments_reserve=0.5",
    "pytorch:expandable_segments=true,version=2.15,expandable_segments_reserve=1G",
    "buddy",
    "buddy:sizes=fibonacci",
};

static uint64_t draw(uint64_t *bits, uint64_t below)
{
    return xorshift_next(bits) % below;
}

static uint64_t draw_size(uint64_t *bits)
{
    switch (draw(bits, 4)) {
    case 0:
        return 1 + draw(bits, FRAG_MIB);
    case 1:
        return 1 + draw(bits, 60 * FRAG_MIB);
    case 2:
        return (1 + draw(bits, 200)) * FRAG_MIB;
    default:
        return 512 * (1 + draw(bits, 4096));
    }
}

static void write_trace(uint64_t *bits, frag_text *text)
{
    bool is_live[SLOTS_MAX] = {false};
    uint64_t slots = 5 + draw(bits, SLOTS_MAX - 4);
    uint64_t events = 40 + draw(bits, EVENTS_MAX - 40);
    for (uint64_t i = 0; i < events; i++) {
        uint64_t slot = draw(bits, slots);
        if (is_live[slot])
            frag_text_add(text, "free %u\n", (unsigned)slot);
        else
            frag_text_add(text, "alloc %u %" PRIu64 "%s\n", (unsigned)slot, draw_size(bits),
                          draw(bits, 10) == 0 ? " stream=1" : "");
        is_live[slot] = !is_live[slot];
    }
}

static void devices_that_should_do_the_same_do(void **state)
{
    (void)state;
    uint64_t bits = 20;
    for (int i = 0; i < TRACES; i++) {
        frag_recording recording = {0};
        frag_text text = {0};
        write_trace(&bits, &text);
        frag_test_recording(text.bytes, &recording);
        uint64_t peak = recording.traces[0].stats.peak_requested_bytes;
        for (size_t s = 0; s < CAPACITIES * sizeof settings / sizeof *settings; s++) {
            policy_outcome outcome;
            char *policy = frag_copy_text(settings[s / CAPACITIES]);
            const policy_case what = {.policy = policy,
                                      .capacity_bytes = peak + draw(&bits, 2 * peak),
                                      .page_bytes = 2 * FRAG_MIB,
                                      .is_oom_skipped = draw(&bits, 2) == 0};
            policy_case_run(&what, &recording, 97, &outcome);
            if (outcome.problem[0] != '\0')
                print_error("%s, %" PRIu64 " bytes: %s\n%s", policy, what.capacity_bytes,
                            outcome.problem, text.bytes);
            assert_string_equal(outcome.problem, "");
            assert_false(outcome.is_refused);
            frag_free(policy);
        }
        frag_text_destroy(&text);
        frag_recording_destroy(&recording);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(devices_that_should_do_the_same_do)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
