/* Plans of the library: they end as the header says on wrong arguments and without host memory.
 * That they are those of the command says test_api.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "include/fraglab.h"
#include "tests/api/failing_memory.h"

#define MODEL "tests/workload/models/gpt2-tiny.json"

static int plan(const char *path, const char *gpu, const char *conf, const char *knob,
                fraglab_error *error)
{
    char *json = NULL;
    const char *const knobs[] = {"task=evaluate", "steps=1", knob};
    const fraglab_plan_options options = {.size = sizeof options,
                                          .gpu = gpu,
                                          .conf = conf,
                                          .knobs = knobs,
                                          .knob_count = knob != NULL ? 3 : 2};
    int code = fraglab_plan(NULL, path, &options, &json, error);
    assert_int_equal(json != NULL, code == FRAGLAB_OK);
    fraglab_free(json);
    return code;
}

static void expect_refusal(int code, const fraglab_error *error, int expected, const char *where,
                           const char *part)
{
    assert_int_equal(code, expected);
    assert_string_equal(error->where, where);
    if (strstr(error->sentence, part) == NULL)
        fail_msg("'%s' has no '%s'", error->sentence, part);
}

static void refuses_what_it_does_not_know_by_name(void **state)
{
    (void)state;
    fraglab_error error = FRAGLAB_ERROR_INIT;
    char *json = NULL;
    expect_refusal(plan(MODEL, NULL, NULL, NULL, &error), &error, FRAGLAB_E_USAGE, "gpu",
                   "no card is named");
    expect_refusal(plan(MODEL, "rtx3061", NULL, NULL, &error), &error, FRAGLAB_E_USAGE, "--gpu",
                   "did you mean rtx3060");
    expect_refusal(plan(MODEL, "8GiB", NULL, "batc=4", &error), &error, FRAGLAB_E_USAGE, "knobs",
                   "did you mean batch");
    expect_refusal(plan(MODEL, "8GiB", NULL, "batch", &error), &error, FRAGLAB_E_USAGE, "knobs",
                   "such as batch=4");
    expect_refusal(plan(MODEL, "8GiB", NULL, "batch=x", &error), &error, FRAGLAB_E_USAGE, "knobs",
                   "expected a whole number");
    expect_refusal(plan("tests/workload/models/none.json", "8GiB", NULL, NULL, &error), &error,
                   FRAGLAB_E_INPUT, "tests/workload/models/none.json", "");
    assert_int_equal(plan(MODEL, "8GiB", "max_split_size:1", NULL, &error), FRAGLAB_E_USAGE);
    assert_int_equal(fraglab_plan(NULL, MODEL, NULL, &json, &error), FRAGLAB_E_USAGE);
    assert_null(json);
}

static int call_plan(void *argument)
{
    return plan(MODEL, "8GiB", argument, NULL, NULL);
}

static void failing_memory_is_an_error_and_leaves_nothing(void **state)
{
    (void)state;
    frag_expect_memory_may_fail("plan", call_plan, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_what_it_does_not_know_by_name),
        cmocka_unit_test(failing_memory_is_an_error_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
