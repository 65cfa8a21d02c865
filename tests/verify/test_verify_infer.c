/* Tests of verify_infer.c: settings that would have done the same. */
#include "studies/verify/verify_infer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/text.h"
#include "tests/support/made_snapshot.h"
#include "tests/support/text_recording.h"

/* Infers the settings of what a policy made of these requests, all live together. */
static void infer(const char *policy, const uint64_t sizes_mib[4], frag_inferred *inferred)
{
    static const made_snapshot_loss none = {.is_old = true};
    const frag_device_spec device = {.capacity_bytes = FRAG_UNLIMITED};
    frag_text text = {0};
    frag_recording requests, recording;
    frag_findings findings;
    frag_policy_spec spec, asked;
    frag_verify_result result = {0};
    frag_error error = {0};
    made_snapshot of = {0};
    for (uint32_t i = 0; i < 4; i++)
        frag_text_add(&text, "alloc %u %llu\n", i, (unsigned long long)(sizes_mib[i] * FRAG_MIB));
    frag_test_recording(text.bytes, &requests);
    assert_true(frag_policy_spec_parse(policy, &spec, &error));
    assert_true(frag_policy_spec_parse("pytorch", &asked, &error));
    const frag_run_setup setup = {&requests, &requests.traces[0], spec.ops, spec.values, &device};
    assert_true(made_snapshot_make(&of, &setup, &error));
    frag_text_clear(&text);
    made_snapshot_write(&text, &of, &none);
    assert_true(frag_test_load(text.bytes, text.length, FRAG_FORMAT_SNAPSHOT, &recording, &findings,
                               &error));
    frag_inferred_create(inferred);
    assert_true(frag_verify_infer(NULL, &recording, &recording.traces[0], &asked, FRAG_UNLIMITED,
                                  &result, inferred));
    made_snapshot_destroy(&of);
    frag_policy_spec_destroy(&spec);
    frag_policy_spec_destroy(&asked);
    frag_recording_destroy(&recording);
    frag_recording_destroy(&requests);
    frag_text_destroy(&text);
}

static void divisions_that_do_the_same_are_listed(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        uint64_t sizes_mib[4];
        const char *settings, *divisions;
    } cases[] = {
        {"pytorch:roundup_power2_divisions=8",
         {37, 37, 74, 148},
         "roundup_power2_divisions=4",
         "4, 8"},
        {"pytorch:roundup_power2_divisions=4", {37, 35, 74, 148}, "roundup_power2_divisions=4", ""},
        {"pytorch:roundup_power2_divisions=2",
         {45, 47, 93, 190},
         "roundup_power2_divisions=2",
         "2, 4, 8"},
        {"pytorch", {37, 37, 74, 148}, "", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        frag_inferred inferred;
        infer(cases[i].policy, cases[i].sizes_mib, &inferred);
        assert_string_equal(inferred.settings, cases[i].settings);
        assert_string_equal(inferred.divisions, cases[i].divisions);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(divisions_that_do_the_same_are_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
