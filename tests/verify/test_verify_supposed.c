/* Tests of verify_supposed.c: inferred calls of empty_cache that may be wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "studies/verify/verify_supposed.h"
#include "tests/support/text_recording.h"

/* Before a large segment, before a small one, before nothing, and one that was recorded. */
static const char recorded[] = "segment_alloc 20971520 addr=0x10000000\n"
                               "alloc 0 9000000 addr=0x10000000\n"
                               "free 0\n"
                               "empty_cache inferred\n"
                               "segment_free 20971520 addr=0x10000000\n"
                               "segment_alloc 62914560 addr=0x20000000\n"
                               "alloc 0 62914560 addr=0x20000000\n"
                               "empty_cache inferred\n"
                               "segment_free 2097152 addr=0x30000000\n"
                               "segment_alloc 20971520 addr=0x40000000\n"
                               "alloc 1 9000000 addr=0x40000000\n"
                               "empty_cache inferred\n"
                               "segment_free 20971520 addr=0x50000000\n"
                               "free 1\n"
                               "empty_cache\n"
                               "segment_free 20971520 addr=0x40000000\n"
                               "segment_alloc 20971520 addr=0x60000000\n"
                               "alloc 1 9000000 addr=0x60000000\n";

static void expect(bool is_large_only, uint64_t count, bool keeps_small)
{
    frag_recording recording;
    frag_trace copy;
    frag_test_recording(recorded, &recording);
    const frag_trace *trace = &recording.traces[0];
    assert_int_equal(frag_supposed_leave_out(trace, is_large_only, &copy), count);
    assert_int_equal(copy.event_count, trace->event_count);
    assert_int_equal(copy.events[3].op, FRAG_OP_MARK);
    assert_int_equal(copy.events[7].op, keeps_small ? FRAG_OP_EMPTY_CACHE : FRAG_OP_MARK);
    assert_int_equal(copy.events[11].op, FRAG_OP_EMPTY_CACHE);
    assert_int_equal(copy.events[14].op, FRAG_OP_EMPTY_CACHE);
    assert_int_equal(trace->events[3].op, FRAG_OP_EMPTY_CACHE);
    frag_supposed_destroy(&copy);
    frag_recording_destroy(&recording);
}

static void leaves_out_what_may_have_been_for_the_next_request(void **state)
{
    (void)state;
    expect(false, 2, false);
}

static void leaves_out_what_garbage_collection_can_have_done(void **state)
{
    (void)state;
    expect(true, 1, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves_out_what_may_have_been_for_the_next_request),
        cmocka_unit_test(leaves_out_what_garbage_collection_can_have_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
