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

#include "allocators/registry.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "base/text.h"
#include "sim/run.h"
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

/* Ranges are 9/8 of the device and whole pages; where one begins is not recorded. */
static void memory_from_before_the_trace_needs_ranges_that_reach_it(void **state)
{
    (void)state;
    const uint64_t endless = FRAG_UNLIMITED / FRAG_MIB;
    const struct {
        uint64_t at_mib, need_mib, refused_mib;
    } cases[] = {{20, 40, endless}, {600, 533, endless}, {1060, 942, endless}, {2000, 40, 1777}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        frag_recording recording;
        frag_policy_spec spec;
        frag_run_result result;
        frag_error error = {0};
        frag_text text = {0};
        const uint64_t base = (uint64_t)1 << 45;
        const frag_device_spec device = {.capacity_bytes = FRAG_GIB};
        for (unsigned k = 0; k < 2; k++) {
            uint64_t at = base + k * cases[i].at_mib * FRAG_MIB;
            frag_text_add(&text,
                          "segment_map 20971520 addr=%" PRIu64 " initial\n"
                          "alloc %u 2097152 initial addr=%" PRIu64 " block=2097152\n",
                          at, k, at);
        }
        frag_test_recording(text.bytes, &recording);
        assert_true(frag_policy_spec_parse(settings[0], &spec, &error));
        const frag_run_setup setup = {&recording, &recording.traces[0], spec.ops, spec.values,
                                      &device};
        const frag_run_options options = {.is_layout_skipped = true};
        assert_true(frag_run(&setup, &options, &result, &error));
        assert_int_equal(result.need_max_bytes / FRAG_MIB, cases[i].need_mib);
        assert_int_equal(result.refused_need_min_bytes / FRAG_MIB, cases[i].refused_mib);
        frag_policy_spec_destroy(&spec);
        frag_recording_destroy(&recording);
        frag_text_destroy(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_that_should_do_the_same_do),
        cmocka_unit_test(memory_from_before_the_trace_needs_ranges_that_reach_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
