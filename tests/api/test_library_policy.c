/* Policies that are functions of the caller: they decide, wrong answers end the run with a
 * sentence, and host memory that fails in a device call of theirs ends the call of the library, not
 * in the middle of the caller's function. tests/python/test_policy.py compares with policies in C.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "include/fraglab.h"
#include "include/fraglab_policy.h"
#include "tests/api/failing_memory.h"

#define SEGMENT_BYTES ((uint64_t)2 << 20)

/* A segment for each request, given back at once; or one of the mistakes. */
typedef struct direct_run {
    fraglab_device *device;
    int depth; /* of functions that have been entered and not left */
    int mistake;
    uint64_t segment;
} direct_run;

static int begin(void *user, fraglab_device *device, void **run)
{
    direct_run *direct = user;
    direct->device = device;
    direct->segment = 0;
    *run = direct;
    if (direct->mistake == 8)
        return fraglab_device_free(device, 1) == FRAGLAB_OK ? 0 : -1;
    return direct->mistake == 1 ? -1 : 0;
}

static int answer(direct_run *direct, const fraglab_policy_request *request,
                  fraglab_policy_grant *grant)
{
    uint64_t address = 0;
    for (int more = 0; direct->mistake == 9; more++)
        if (fraglab_device_malloc(direct->device, 1, &address) != FRAGLAB_OK) {
            assert_int_equal(more, 3 + 4096);
            return -1;
        }
    if (fraglab_device_malloc(direct->device, direct->mistake == 2 ? 0 : request->bytes,
                              &address) != FRAGLAB_OK)
        return -1;
    if (address == 0)
        return FRAGLAB_POLICY_OUT_OF_MEMORY;
    if (direct->mistake == 3)
        address++;
    if (direct->mistake == 4 && direct->segment != 0)
        address = direct->segment;
    direct->segment = address;
    *grant = (fraglab_policy_grant){address, request->bytes - (direct->mistake == 5 ? 1 : 0)};
    return FRAGLAB_POLICY_GRANTED;
}

static int alloc(void *run, const fraglab_policy_request *request, fraglab_policy_grant *grant)
{
    direct_run *direct = run;
    direct->depth++;
    int code = answer(direct, request, grant);
    direct->depth--;
    return code;
}

static int give_back(void *run, uint64_t address, uint32_t stream)
{
    direct_run *direct = run;
    (void)stream;
    direct->depth++;
    int code = fraglab_device_free(direct->device, direct->mistake == 6 ? address + 1 : address);
    direct->depth--;
    return code == FRAGLAB_OK && direct->mistake != 7 ? 0 : -1;
}

static fraglab_policy_functions functions_of(direct_run *direct)
{
    return (fraglab_policy_functions){.size = sizeof(fraglab_policy_functions),
                                      .name = "mine",
                                      .user = direct,
                                      .begin = begin,
                                      .alloc = alloc,
                                      .free = give_back};
}

static int open_trace(fraglab_recording **recording)
{
    static const char text[] = "# fraglab trace 2\nalloc 1 3145728\nalloc 2 1048576\nfree 1\n"
                               "alloc 3 1048576\nfree 2\nfree 3\n";
    return fraglab_open_memory(NULL, text, sizeof text - 1, NULL, recording, NULL);
}

static int run_once(direct_run *direct, uint64_t capacity, fraglab_result **result,
                    fraglab_error *error)
{
    fraglab_recording *recording = NULL;
    fraglab_policy *policy = NULL;
    const fraglab_policy_functions functions = functions_of(direct);
    const fraglab_run_options options = {
        .size = sizeof options, .capacity_bytes = capacity, .check_every = 1};
    int code = open_trace(&recording);
    if (code == FRAGLAB_OK)
        code = fraglab_policy_create(&functions, &policy, error);
    if (code == FRAGLAB_OK)
        code = fraglab_run(NULL, recording, 0, policy, &options, result, error);
    fraglab_policy_destroy(policy);
    fraglab_recording_close(recording);
    assert_int_equal(direct->depth, 0);
    return code;
}

static void decides_where_requests_go(void **state)
{
    (void)state;
    direct_run direct = {.mistake = 0};
    fraglab_result *result = NULL;
    const char *name = NULL;
    uint64_t value = 0;
    assert_int_equal(run_once(&direct, 0, &result, NULL), FRAGLAB_OK);
    assert_int_equal(fraglab_result_u64(result, "peak.reserved_bytes", &value, NULL), FRAGLAB_OK);
    assert_int_equal(value, 4 << 20);
    assert_int_equal(fraglab_result_u64(result, "device_calls.free", &value, NULL), FRAGLAB_OK);
    assert_int_equal(value, 3);
    assert_int_equal(fraglab_result_text(result, "policy.name", &name, NULL), FRAGLAB_OK);
    assert_string_equal(name, "mine");
    fraglab_result_destroy(result);
    assert_int_equal(run_once(&direct, 2 * SEGMENT_BYTES, &result, NULL), FRAGLAB_OK);
    assert_int_equal(fraglab_result_u64(result, "oom.event", &value, NULL), FRAGLAB_OK);
    assert_int_equal(value, 1);
    fraglab_result_destroy(result);
}

/* Two of one name, run at the same time: each is tried, and serves what PyTorch's cannot. */
static void is_tried_when_memory_ran_out(void **state)
{
    (void)state;
    direct_run directs[2] = {{.mistake = 0}, {.mistake = 0}};
    fraglab_policy *policies[2] = {NULL};
    fraglab_recording *recording = NULL;
    fraglab_context *context = NULL;
    char *explanation = NULL;
    fraglab_error error = FRAGLAB_ERROR_INIT;
    const fraglab_context_options given = {.size = sizeof given, .threads = 2};
    assert_int_equal(open_trace(&recording), FRAGLAB_OK);
    assert_int_equal(fraglab_context_create(&given, &context, NULL), FRAGLAB_OK);
    for (size_t i = 0; i < 2; i++) {
        const fraglab_policy_functions functions = functions_of(&directs[i]);
        assert_int_equal(fraglab_policy_create(&functions, &policies[i], NULL), FRAGLAB_OK);
    }
    const fraglab_explain_options options = {
        .size = sizeof options,
        .capacity_bytes = 3 * SEGMENT_BYTES,
        .policies = (const fraglab_policy *const *)policies,
        .policy_count = 2,
    };
    if (fraglab_explain_recording(context, recording, &options, &explanation, &error) != FRAGLAB_OK)
        fail_msg("%s: %s", error.where, error.sentence);
    const char *first = strstr(explanation, "\"policy\":\"mine\"");
    assert_non_null(first);
    assert_non_null(strstr(first + 1, "\"policy\":\"mine\""));
    assert_non_null(directs[0].device);
    assert_non_null(directs[1].device);
    fraglab_free(explanation);
    fraglab_policy_destroy(policies[0]);
    fraglab_policy_destroy(policies[1]);
    fraglab_context_destroy(context);
    fraglab_recording_close(recording);
}

static void ends_a_run_whose_answer_makes_no_sense(void **state)
{
    (void)state;
    static const char *const sentences[] = {
        "the function begin of the policy mine failed",
        "expected 1 to 2^56 - 1 bytes",
        "expected one inside a segment that it holds",
        "expected one that overlaps no live block",
        "expected at least the bytes of the request",
        "expected the address of a segment that it holds",
        "the function free of the policy mine failed",
        "expected the address of a segment that it holds",
        ("more than 4099 segments at a time; expected at most one for each request of the trace "
         "and 4096 more"),
    };
    for (int i = 0; i < 9; i++) {
        direct_run direct = {.mistake = i + 1};
        fraglab_error error = FRAGLAB_ERROR_INIT;
        fraglab_result *result = NULL;
        assert_int_equal(run_once(&direct, 0, &result, &error),
                         i == 0 || i == 6 ? FRAGLAB_E_SYSTEM : FRAGLAB_E_USAGE);
        assert_null(result);
        if (strstr(error.sentence, sentences[i]) == NULL)
            fail_msg("%s", error.sentence);
    }
}

static void refuses_functions_and_names_that_are_wrong(void **state)
{
    (void)state;
    direct_run direct = {.mistake = 0};
    static const char *const names[] = {NULL, "", "a b", "pytorch", "x:y", "./mine.so"};
    fraglab_policy *policy = NULL;
    fraglab_error error = FRAGLAB_ERROR_INIT;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        fraglab_policy_functions functions = functions_of(&direct);
        functions.name = names[i];
        assert_int_equal(fraglab_policy_create(&functions, &policy, &error), FRAGLAB_E_USAGE);
        assert_string_equal(error.where, "name");
    }
    fraglab_policy_functions functions = functions_of(&direct);
    functions.free = NULL;
    assert_int_equal(fraglab_policy_create(&functions, &policy, &error), FRAGLAB_E_USAGE);
    functions = functions_of(&direct);
    functions.size = 3;
    assert_int_equal(fraglab_policy_create(&functions, &policy, NULL), FRAGLAB_E_USAGE);
    assert_int_equal(fraglab_policy_create(NULL, &policy, NULL), FRAGLAB_E_USAGE);
    assert_null(policy);
}

static int call_run(void *argument)
{
    fraglab_result *result = NULL;
    int code = run_once(argument, 0, &result, NULL);
    fraglab_result_destroy(result);
    return code;
}

static void leaves_no_function_of_the_caller_when_host_memory_fails(void **state)
{
    (void)state;
    direct_run direct = {.mistake = 0};
    frag_expect_memory_may_fail("run", call_run, &direct);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decides_where_requests_go),
        cmocka_unit_test(is_tried_when_memory_ran_out),
        cmocka_unit_test(ends_a_run_whose_answer_makes_no_sense),
        cmocka_unit_test(refuses_functions_and_names_that_are_wrong),
        cmocka_unit_test(leaves_no_function_of_the_caller_when_host_memory_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
