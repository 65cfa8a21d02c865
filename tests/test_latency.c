#include "sim/device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static bool load(const char *text, frag_latency_table *table, frag_error *error)
{
    char path[] = "/tmp/fraglab-latency-XXXXXX";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, text, strlen(text)), (int)strlen(text));
    close(descriptor);
    *error = (frag_error){.code = FRAG_E_NONE};
    bool ok = frag_latency_load(path, table, error);
    remove(path);
    return ok;
}

static bool is_near(double a, double b)
{
    return a - b < 1e-6 && b - a < 1e-6;
}

static void the_example_of_the_documentation_is_read(void **state)
{
    (void)state;
    frag_latency_table table;
    frag_error error = {.code = FRAG_E_NONE};
    if (!frag_latency_load("docs/latency-example.yaml", &table, &error))
        fail_msg("%llu:%llu: %s", (unsigned long long)error.line, (unsigned long long)error.column,
                 error.sentence);
    assert_non_null(strstr(table.name, "illustrative"));
    assert_true(is_near(table.calls[FRAG_DEVICE_MALLOC].base_ns, 33200));
    assert_true(is_near(table.calls[FRAG_DEVICE_MALLOC].ns_per_mib, 290));
    assert_true(is_near(table.calls[FRAG_DEVICE_UNMAP].base_ns, 100500));
    assert_true(is_near(table.calls[FRAG_DEVICE_UNMAP].ns_per_mib, 0));
}

static void every_kind_of_call_can_have_a_cost(void **state)
{
    (void)state;
    for (int call = 0; call < FRAG_DEVICE_CALL_COUNT; call++) {
        char text[128];
        snprintf(text, sizeof text, "name: t\ncalls: {%s: {base_us: 1.5, us_per_mib: 2}}\n",
                 frag_device_call_name((frag_device_call)call));
        frag_latency_table table;
        frag_error error;
        assert_true(load(text, &table, &error));
        for (int other = 0; other < FRAG_DEVICE_CALL_COUNT; other++) {
            assert_true(is_near(table.calls[other].base_ns, other == call ? 1500 : 0));
            assert_true(is_near(table.calls[other].ns_per_mib, other == call ? 2000 : 0));
        }
    }
}

static void refuses_what_is_no_table_and_leaves_the_old_one_alone(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t line;
        const char *sentence;
    } cases[] = {
        {"[1]\n", 1, "expected 'key: value' lines"},
        {"calls: {}\n", 1, "'name' is missing"},
        {"name: x\n", 1, "'calls' is missing"},
        {"name: ''\ncalls: {}\n", 1, "expected 1 to 63"},
        {"name: [x]\ncalls: {}\n", 1, "expected a single value"},
        {"name: x\ncalls: 3\n", 2, "expected 'key: value' lines"},
        {"name: x\ncalls:\n  malloc: 3\n", 3, "expected 'key: value' lines"},
        {"name: x\ncalls:\n  maloc: {base_us: 3}\n", 3, "did you mean malloc"},
        {"name: x\ncalls:\n  malloc: {base: 3}\n", 3, "unknown key 'base'"},
        {"name: x\ncalls:\n  malloc: {}\n", 3, "has no cost"},
        {"name: x\ncalls:\n  malloc: {base_us: -3}\n", 3, "base_us: '-3' is not a number"},
        {"name: x\ncalls:\n  malloc: {base_us: 1e10}\n", 3, "out of range"},
        {"name: x\ncalls:\n  malloc: {base_us: nan}\n", 3, "is not a number"},
        {"name: 0123456789012345678901234567890123456789012345678901234567890123\ncalls: {}\n", 1,
         "64 bytes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        frag_latency_table table = {.name = "old"};
        frag_error error;
        if (load(cases[i].text, &table, &error))
            fail_msg("accepted: %s", cases[i].text);
        assert_int_equal(error.code, FRAG_E_INPUT);
        assert_non_null(strstr(error.where, "fraglab-latency-"));
        if (error.line != cases[i].line || strstr(error.sentence, cases[i].sentence) == NULL)
            fail_msg("%s gave %llu: %s", cases[i].text, (unsigned long long)error.line,
                     error.sentence);
        assert_string_equal(table.name, "old");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_of_the_documentation_is_read),
        cmocka_unit_test(every_kind_of_call_can_have_a_cost),
        cmocka_unit_test(refuses_what_is_no_table_and_leaves_the_old_one_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
