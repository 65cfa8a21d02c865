/* Tests of snapshot_pools.c: private pools that a recording does not name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "traces/load.h"

/* The pools of the requests of a snapshot, in order: a digit each. */
static void expect_pools(const char *name, const char *pools, uint64_t concluded)
{
    char path[128];
    frag_error error = {0};
    frag_load_options options = {.with_columns = true};
    frag_recording recording;
    frag_findings findings = {0};
    snprintf(path, sizeof path, "tests/data/snapshots/%s.pickle", name);
    if (!frag_recording_load(path, &options, &recording, &findings, &error))
        fail_msg("%s: %s", name, error.sentence);
    const frag_trace *trace = &recording.traces[0];
    frag_text text = {0};
    for (uint64_t i = 0; i < trace->event_count; i++) {
        uint32_t pool = trace->pools == NULL ? 0 : trace->pools[i];
        if (trace->events[i].op == FRAG_OP_ALLOC)
            frag_text_add(&text, "%llu", (unsigned long long)trace->pool_ids[pool].low);
        if (trace->events[i].op == FRAG_OP_POOL_RELEASE)
            frag_text_add(&text, "r");
    }
    assert_string_equal(text.bytes, pools);
    uint64_t count = 0;
    for (uint32_t i = 0; i < findings.count; i++)
        if (strcmp(findings.items[i].kind, "pool-concluded") == 0)
            count = findings.items[i].count;
    assert_int_equal(count, concluded);
    assert_int_equal(frag_findings_inconsistencies(&findings), 0);
    frag_text_destroy(&text);
    frag_recording_destroy(&recording);
}

static void finds_a_pool_by_what_did_not_serve_its_requests(void **state)
{
    (void)state;
    expect_pools("gone-pool", "00110r", 1);
}

static void rounds_requests_before_it_concludes(void **state)
{
    (void)state;
    expect_pools("gone-pool-rounded", "0000", 0);
    expect_pools("gone-pool-unrounded", "0001r", 1);
}

static void concludes_nothing_from_blocks_set_free_after_the_search(void **state)
{
    (void)state;
    expect_pools("gone-pool-late", "000000", 0);
}

static void finds_a_graph_by_the_order_in_which_memory_went(void **state)
{
    (void)state;
    expect_pools("gone-stream", "0110r", 2);
}

static void finds_a_pool_by_its_own_reserved_range(void **state)
{
    (void)state;
    expect_pools("gone-range", "010r", 1);
}

/* The library fills the segments of the pool one after the other, where a search would have found
 * the other one. */
static void marks_what_brings_a_pool_back_as_placed(void **state)
{
    (void)state;
    const frag_load_options options = {.with_columns = true};
    frag_error error = {0};
    frag_findings findings = {0};
    frag_recording recording;
    assert_true(frag_recording_load("tests/data/snapshots/restored.pickle", &options, &recording,
                                    &findings, &error));
    const frag_trace *trace = &recording.traces[0];
    frag_text text = {0};
    for (uint64_t i = 0; i < trace->event_count; i++)
        if (trace->events[i].op == FRAG_OP_ALLOC)
            frag_text_add(&text, (trace->events[i].flags & FRAG_EVENT_PLACED) != 0 ? "p" : ".");
    assert_string_equal(text.bytes, "...ppppp..");
    frag_text_destroy(&text);
    frag_recording_destroy(&recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_a_pool_by_what_did_not_serve_its_requests),
        cmocka_unit_test(rounds_requests_before_it_concludes),
        cmocka_unit_test(concludes_nothing_from_blocks_set_free_after_the_search),
        cmocka_unit_test(finds_a_graph_by_the_order_in_which_memory_went),
        cmocka_unit_test(finds_a_pool_by_its_own_reserved_range),
        cmocka_unit_test(marks_what_brings_a_pool_back_as_placed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
