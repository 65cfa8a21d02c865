/* Tests of policy_settings.c and usual_policies.c: policies that are made complete for a recording,
 * and those that a command takes which was given none. */
#include "studies/policy_settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "studies/usual_policies.h"
#include "tests/support/text_recording.h"

#define USUAL "best-fit frugal "

static void expect_usual(const char *text, const char *expected)
{
    frag_recording recording;
    frag_policy_list policies;
    frag_text names = {0};
    frag_test_recording(text, &recording);
    frag_usual_policies(&recording, &policies);
    for (size_t i = 0; i < policies.count; i++)
        frag_text_add(&names, "%s ", policies.specs[i].text);
    assert_string_equal(names.bytes, expected);
    frag_text_destroy(&names);
    frag_policy_list_destroy(&policies);
    frag_recording_destroy(&recording);
}

static void a_setting_that_the_release_lacks_is_left_out(void **state)
{
    (void)state;
    expect_usual("alloc 0 512\n", "pytorch pytorch:expandable_segments=true " USUAL);
    expect_usual("meta \"torch.version_hint\" \"2.9\"\nalloc 0 512\n",
                 "pytorch pytorch:expandable_segments=true " USUAL);
    expect_usual("meta \"torch.version_hint\" \"2.0\"\nalloc 0 512\n", "pytorch " USUAL);
    expect_usual(
        "meta \"torch.version_hint\" \"2.0\"\nmeta \"torch.conf\" \"max_split_size_mb:64\"\n",
        "pytorch:recorded " USUAL);
}

/* The environment of a program: variables and values in turn. */
static const char *look_up(void *user, const char *name)
{
    const char *const *variables = user;
    for (size_t i = 0; variables[i] != NULL; i += 2)
        if (strcmp(variables[i], name) == 0)
            return variables[i + 1];
    return NULL;
}

/* The settings that the policy gets, or what is said against it. */
static void expect_resolved(const char *policy, const char *text, const char *const *variables,
                            const char *expected)
{
    frag_context context = {.environment = look_up, .user = (void *)(uintptr_t)variables};
    frag_recording recording;
    frag_policy_spec spec, resolved;
    frag_error error = {0};
    frag_test_recording(text, &recording);
    assert_true(frag_policy_spec_parse(policy, &spec, &error));
    if (frag_policy_resolve(&context, &spec, &recording, &resolved, &error)) {
        assert_string_equal(frag_policy_spec_text(&resolved, resolved.ops->conf_option), expected);
        frag_policy_spec_destroy(&resolved);
    } else if (strstr(error.sentence, expected) == NULL) {
        fail_msg("%s: %s", policy, error.sentence);
    }
    frag_policy_spec_destroy(&spec);
    frag_recording_destroy(&recording);
}

static const char *const none[] = {NULL};
static const char *const cuda[] = {"PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64", NULL};
static const char *const any[] = {"PYTORCH_ALLOC_CONF", "max_split_size_mb:96", NULL};

static void settings_come_from_the_environment(void **state)
{
    (void)state;
    expect_resolved("pytorch:env", "alloc 0 512\n", none, "(PyTorch 2.15 reads no other variable)");
    expect_resolved("pytorch:env", "alloc 0 512\n", cuda, "max_split_size_mb:64");
    expect_resolved("pytorch:env", "alloc 0 512\n", any, "max_split_size_mb:96");
    expect_resolved("pytorch:env,version=2.4", "alloc 0 512\n", any, "(PyTorch 2.4 reads no other");
    expect_resolved("pytorch:env", "meta \"torch.version_hint\" \"2.4\"\n", any,
                    "(PyTorch 2.4 reads no");
    expect_resolved("pytorch:env,version=2.10", "meta \"torch.version_hint\" \"2.4\"\n", any,
                    "max_split_size_mb:96");
}

static void settings_come_from_the_recording(void **state)
{
    (void)state;
    expect_resolved("pytorch:recorded", "alloc 0 512\n", cuda, "holds no settings");
    expect_resolved("pytorch:recorded", "meta \"torch.conf\" \"max_split_size_mb:32\"\n", cuda,
                    "max_split_size_mb:32");
}

static void settings_of_no_environment_are_refused_at_once(void **state)
{
    (void)state;
    frag_context context = {.environment = look_up, .user = (void *)(uintptr_t)none};
    frag_policy_spec spec;
    frag_error error = {0};
    assert_true(frag_policy_spec_parse("pytorch:env", &spec, &error));
    assert_false(frag_policy_check_environment(&context, &spec, &error));
    context.user = (void *)(uintptr_t)any;
    assert_true(frag_policy_check_environment(&context, &spec, &error));
    spec.wants_env = false;
    assert_true(frag_policy_check_environment(NULL, &spec, &error));
    frag_policy_spec_destroy(&spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_setting_that_the_release_lacks_is_left_out),
        cmocka_unit_test(settings_come_from_the_environment),
        cmocka_unit_test(settings_come_from_the_recording),
        cmocka_unit_test(settings_of_no_environment_are_refused_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
