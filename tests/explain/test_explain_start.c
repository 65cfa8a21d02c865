/* Tests of explain_start.c: recordings that begin with more memory held than a device has. */
#include "studies/explain/explain_start.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "tests/support/text_recording.h"

static const char begun[] = "segment_alloc 2097152 addr=0x200000 initial\n"
                            "segment_map 2097152 addr=0x600000 initial\n"
                            "alloc 0 1000 initial block=1024\n"
                            "alloc 1 3000 initial\n"
                            "alloc 2 5000\n"
                            "segment_alloc 2097152 addr=0xa00000\n";

static frag_explain_start find(const char *text, uint64_t failed, uint64_t allowed_bytes)
{
    frag_explain_start start;
    frag_recording recording;
    frag_test_recording(text, &recording);
    frag_explain_start_find(&recording.traces[0], failed, allowed_bytes, &start);
    frag_recording_destroy(&recording);
    return start;
}

static void what_is_held_at_the_start_is_too_large_where_that_fails(void **state)
{
    (void)state;
    frag_explain_start start = find(begun, 3, 3 * FRAG_MIB);
    assert_true(start.is_too_large);
    assert_int_equal(start.live_bytes, 1024 + 3000);
    assert_int_equal(start.held_bytes, 4 * FRAG_MIB);
    assert_int_equal(start.missing_bytes, FRAG_MIB);
    start = find("alloc 0 1000 initial\nalloc 1 3000 initial\n", 1, 3999);
    assert_int_equal(start.held_bytes, 4000);
    assert_int_equal(start.missing_bytes, 1);
}

static void a_start_that_did_not_fail_is_not_summed_up(void **state)
{
    (void)state;
    for (uint64_t failed = 4; failed < 7; failed++) {
        frag_explain_start start = find(begun, failed, FRAG_MIB);
        assert_false(start.is_too_large);
        assert_int_equal(start.held_bytes + start.live_bytes + start.missing_bytes, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_held_at_the_start_is_too_large_where_that_fails),
        cmocka_unit_test(a_start_that_did_not_fail_is_not_summed_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
