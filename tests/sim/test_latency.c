/* Tests of latency.c: the modelled time of device calls. */
#include "sim/device/latency.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* The calls of a document that has nothing else. */
static bool load(const char *text, frag_latency_table *table, frag_error *error)
{
    *error = (frag_error){.code = FRAG_E_NONE};
    frag_yaml_node *root = frag_yaml_parse(text, strlen(text), error);
    bool ok = root != NULL && frag_latency_read(frag_yaml_find(root, "calls"), table, error);
    frag_yaml_destroy(root);
    return ok;
}

static bool is_near(double a, double b)
{
    return a - b < 1e-6 && b - a < 1e-6;
}

static void every_kind_of_call_can_have_a_cost(void **state)
{
    (void)state;
    for (int call = 0; call < FRAG_DEVICE_CALL_COUNT; call++) {
        char text[128];
        snprintf(text, sizeof text, "calls: {%s: {base_us: 1.5, us_per_mib: 2}}\n",
                 frag_device_call_name((frag_device_call)call));
        frag_latency_table table = {.name = "t"};
        frag_error error;
        assert_true(load(text, &table, &error));
        for (int other = 0; other < FRAG_DEVICE_CALL_COUNT; other++) {
            const frag_latency *cost = &table.calls[other];
            assert_true(is_near(frag_latency_ns(cost, 0), other == call ? 1500 : 0));
            assert_true(is_near(frag_latency_ns(cost, 3 << 20), other == call ? 7500 : 0));
        }
    }
}

#define POINT(bytes, us) "{bytes: " bytes ", median_us: " us ", p10_us: 0, p90_us: 999, samples: 5}"

static void between_measured_points_the_cost_is_interpolated_and_above_them_it_goes_on(void **state)
{
    (void)state;
    frag_latency_table table = {.name = "t"};
    frag_error error;
    assert_true(load("calls: {malloc: [" POINT("1MiB", "10") ", " POINT("3MiB", "20") ", " POINT(
                         "4MiB", "40") "], free: [" POINT("2MiB", "9") "]}\n",
                     &table, &error));
    const frag_latency *cost = &table.calls[FRAG_DEVICE_MALLOC];
    static const struct {
        uint64_t kib;
        double us;
    } cases[] = {{0, 10},    {512, 10},  {1024, 10}, {1536, 12.5}, {2048, 15},
                 {3072, 20}, {3584, 30}, {4096, 40}, {5120, 60},   {6144, 80}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_true(is_near(frag_latency_ns(cost, cases[i].kib << 10), cases[i].us * 1000));
    /* One point says nothing of a slope. */
    assert_true(is_near(frag_latency_ns(&table.calls[FRAG_DEVICE_FREE], 1 << 30), 9000));
    assert_true(is_near(frag_latency_ns(&table.calls[FRAG_DEVICE_MAP], 1 << 30), 0));
}

static void noise_makes_no_large_call_cheaper_than_the_last_point(void **state)
{
    (void)state;
    frag_latency_table table = {.name = "t"};
    frag_error error;
    assert_true(
        load("calls: {map: [" POINT("1MiB", "10") ", " POINT("2MiB", "9") "]}\n", &table, &error));
    assert_true(is_near(frag_latency_ns(&table.calls[FRAG_DEVICE_MAP], 100 << 20), 9000));
}

static void what_is_written_reads_back_the_same(void **state)
{
    (void)state;
    frag_latency_table table = {.name = "t"};
    frag_latency_table again = {.name = "t"};
    frag_error error;
    assert_true(load("calls: {malloc: [" POINT("0", "0.125") ", " POINT(
                         "7", "33.25") "],\n"
                                       "  unmap: {base_us: 100.5}, map: {us_per_mib: 0.52}}\n",
                     &table, &error));
    frag_text text = {.bytes = NULL};
    frag_text_add(&text, "calls:\n");
    frag_latency_write(&table, &text);
    assert_true(load(text.bytes, &again, &error));
    assert_memory_equal(&table, &again, sizeof table);
    frag_text_destroy(&text);
}

static void refuses_what_is_no_cost(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t line;
        const char *sentence;
    } cases[] = {
        {"calls: 3\n", 1, "expected 'key: value' lines"},
        {"calls:\n  malloc: 3\n", 2, "expected 'key: value' lines"},
        {"calls:\n  maloc: {base_us: 3}\n", 2, "did you mean malloc"},
        {"calls:\n  malloc: {base: 3}\n", 2, "unknown key 'base'"},
        {"calls:\n  malloc: {}\n", 2, "has no cost"},
        {"calls:\n  malloc: {base_us: -3}\n", 2, "base_us: '-3' is not a number"},
        {"calls:\n  malloc: {base_us: 1e10}\n", 2, "out of range"},
        {"calls:\n  malloc: {base_us: nan}\n", 2, "is not a number"},
        {"calls:\n  malloc: []\n", 2, "has 0 points; expected 1 to 16"},
        {"calls:\n  malloc: [3]\n", 2, "expected 'key: value' lines"},
        {"calls:\n  malloc:\n    - {bytes: 1, median_us: 1, p10_us: 1, p90_us: 1}\n", 3,
         "'samples' is missing"},
        {"calls:\n  malloc: [{bytes: 1, median_us: 1, p10_us: 2, p90_us: 3, samples: 1}]\n", 2,
         "do not ascend"},
        {"calls:\n  malloc: [{bytes: 1, median_us: 1, p10_us: 1, p90_us: 1, samples: 0}]\n", 2,
         "samples: 0 is out of range"},
        {"calls:\n  free:\n  - " POINT("2", "1") "\n  - " POINT("2", "1") "\n", 4,
         "do not ascend in bytes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        frag_latency_table table = {.name = "t"};
        frag_error error;
        if (load(cases[i].text, &table, &error))
            fail_msg("accepted: %s", cases[i].text);
        assert_int_equal(error.code, FRAG_E_INPUT);
        if (error.line != cases[i].line || strstr(error.sentence, cases[i].sentence) == NULL)
            fail_msg("%s gave %llu: %s", cases[i].text, (unsigned long long)error.line,
                     error.sentence);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_call_can_have_a_cost),
        cmocka_unit_test(
            between_measured_points_the_cost_is_interpolated_and_above_them_it_goes_on),
        cmocka_unit_test(noise_makes_no_large_call_cheaper_than_the_last_point),
        cmocka_unit_test(what_is_written_reads_back_the_same),
        cmocka_unit_test(refuses_what_is_no_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
