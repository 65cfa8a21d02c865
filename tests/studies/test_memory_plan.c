/* Tests of memory_plan.c: what a plan that is not sure hangs on. */
#include "studies/plan/memory_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_doubt_says_what_it_hangs_on)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
