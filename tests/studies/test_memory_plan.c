/* Tests of memory_plan.c: what a plan that is not sure hangs on, and what limits lengths. */
#include "studies/plan/memory_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"

static void a_doubt_says_what_it_hangs_on(void **state)
{
    (void)state;
    static const struct {
        bool is_sure;
        bool is_workspace_split;
        frag_fits fits;
        bool is_fitting; /* as it is */
        uint64_t needed;
        const char *doubt; /* NULL: none; of 1,000 usable bytes */
    } cases[] = {
        {true, true, FRAG_FITS_UNKNOWN, false, 900, NULL},
        {false, true, FRAG_FITS_UNKNOWN, false, 900, "workspaces that cuDNN takes"},
        {false, false, FRAG_FITS_UNKNOWN, false, 900, "lengths that are drawn"},
        {false, false, FRAG_FITS_NO, false, 900, "on some smaller cards it fits"},
        {false, false, FRAG_FITS_NO, false, 1000, "on some smaller cards it fits"},
        {false, false, FRAG_FITS_NO, false, 1001, "the context of another driver"},
        {false, false, FRAG_FITS_YES, true, 900, "the context of another driver"},
    };
    static frag_memory_plan plan;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memset(&plan, 0, sizeof plan);
        plan.is_sure = cases[i].is_sure;
        plan.is_workspace_split = cases[i].is_workspace_split;
        plan.fits = cases[i].fits;
        plan.usable_bytes = 1000;
        plan.as_is.fits = cases[i].is_fitting;
        plan.as_is.result.needed_bytes = cases[i].needed;
        const char *doubt = frag_plan_doubt(&plan);
        assert_int_equal(frag_plan_margin(&plan, &plan.as_is), 1000 - (int64_t)cases[i].needed);
        if (cases[i].doubt == NULL)
            assert_null(doubt);
        else if (doubt == NULL || strstr(doubt, cases[i].doubt) == NULL)
            fail_msg("%zu: %s", i, doubt);
    }
}

/* Of a small model on 1 GiB. */
static frag_plan_largest largest_of(uint64_t positions)
{
    char yaml[200];
    frag_workload workload;
    frag_dryrun_gpu gpu;
    frag_error error = {0};
    frag_workload_init(&workload);
    snprintf(yaml, sizeof yaml,
             "model: {family: llama, vocabulary: 512, width: 64, inner: 256, layers: 1, heads: 4, "
             "positions: %llu}\nrun: {task: evaluate, tokens: 64}\n",
             (unsigned long long)positions);
    if (!frag_workload_parse(yaml, strlen(yaml), &workload, NULL, &error))
        fail_msg("%s", error.sentence);
    assert_true(frag_dryrun_gpu_find("1GiB", &gpu, NULL, &error));
    frag_fitter *fitter = frag_fitter_create(NULL, NULL, &error);
    frag_memory_plan *plan = frag_alloc(1, sizeof *plan);
    assert_true(frag_memory_plan_make(fitter, &workload, NULL, &gpu, "model", plan, &error));
    frag_plan_largest largest = plan->largest;
    frag_free(plan);
    frag_fitter_destroy(fitter);
    return largest;
}

static void lengths_are_limited_by_memory_up_to_the_positions_of_the_model(void **state)
{
    (void)state;
    frag_plan_largest free = largest_of(1 << 20);
    assert_false(free.is_tokens_limited);
    for (uint64_t more = 0; more < 3; more++) {
        frag_plan_largest found = largest_of(free.tokens + more);
        assert_int_equal(found.tokens, free.tokens);
        assert_int_equal(found.is_tokens_limited, more == 0);
    }
    assert_int_equal(largest_of(100).tokens, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_doubt_says_what_it_hangs_on),
        cmocka_unit_test(lengths_are_limited_by_memory_up_to_the_positions_of_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
