/* Tests of experiments: what the values, ranges and random choices of a file are, and what is
 * refused with its place. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/text.h"
#include "studies/sweep/experiment.h"

/* An experiment with these options, or with that line at its end. */
static bool parse(const char *options, const char *rest, frag_experiment *experiment,
                  frag_error *error)
{
    frag_text text = {0};
    frag_text_add(&text, "traces: [a.fgt, /b.fgt]\npolicies:\n  - policy: pytorch\n%s%s", options,
                  rest);
    *error = (frag_error){0};
    bool ok = frag_experiment_parse(text.bytes, text.length, "runs/", experiment, error);
    frag_text_destroy(&text);
    return ok;
}

/* The values of the last option of every policy. */
static void expect_values(const char *option, const char *node, const char *expected)
{
    frag_experiment experiment;
    frag_error error;
    frag_text options = {0}, found = {0};
    frag_text_add(&options, "    options:\n      %s: %s\n", option, node);
    if (!parse(options.bytes, "", &experiment, &error))
        fail_msg("%s: %s", node, error.sentence);
    frag_text_add(&found, "%s", "");
    for (size_t i = 0; i < experiment.policy_count; i++) {
        const frag_policy_spec *spec = &experiment.policies[i];
        for (uint32_t k = 0; k < spec->value_count; k++)
            if (strcmp(spec->ops->options[k].key, option) == 0)
                frag_text_add(&found, "%s%s", i > 0 ? " " : "", spec->values[k].text);
    }
    assert_string_equal(found.bytes, expected);
    frag_text_destroy(&found);
    frag_text_destroy(&options);
    frag_experiment_destroy(&experiment);
}

static void ranges_have_both_ends_and_steps_between(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"max_split_size_mb", "{from: 64, to: 512, factor: 2}", "64 128 256 512"},
        {"max_split_size_mb", "{from: 64, to: 511, factor: 2}", "64 128 256"},
        {"max_split_size_mb", "{from: 64, to: 64, factor: 2}", "64"},
        {"max_split_size_mb", "{from: 30, to: 50, step: 10}", "30 40 50"},
        {"max_split_size_mb", "{from: 30, to: 49, step: 10}", "30 40"},
        {"max_split_size_mb", "[unlimited, {from: 30, to: 31, step: 1}, 99]", "unlimited 30 31 99"},
        {"garbage_collection_threshold", "{from: 0.6, to: 0.9, step: 0.1}", "0.6 0.7 0.8 0.9"},
        {"garbage_collection_threshold", "{from: 0.1, to: 0.9, factor: 3}", "0.1 0.3 0.9"},
        {"garbage_collection_threshold", "{from: 0.5, to: 0.5, step: 1}", "0.5"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_values(cases[i][0], cases[i][1], cases[i][2]);
}

static void what_is_no_range_is_refused_with_its_place(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{from: 64, to: 32, step: 1}", "the range does not ascend"},
        {"{from: 64, to: 128, step: 0}", "the range does not ascend"},
        {"{from: 64, to: 128, factor: 1}", "the range does not ascend"},
        {"{from: 0, to: 128, factor: 2}", "the range does not ascend"},
        {"{from: 0.5, to: 0.4, step: 0.1}", "the range does not ascend"},
        {"{from: 0.5, to: 0.6, step: 0.0}", "the range does not ascend"},
        {"{from: 0.5, to: 0.6, factor: 1.0}", "the range does not ascend"},
        {"{from: -0.5, to: 0.6, factor: 1.5}", "expected 0 to 1e+09"},
        {"{from: 0.0, to: 0.6, factor: 1.5}", "the range does not ascend"},
        {"{from: 1, to: 100002, step: 1}", "the range has more than 100000 values"},
        {"{from: 0.5, to: 100001, step: 0.5}", "the range has more than 100000 values"},
        {"{from: 1, to: 2}", "a range needs from, to, and either step or factor"},
        {"{from: 1, to: 2, step: 1, factor: 2}", "a range needs from, to"},
        {"{from: 1, step: 1}", "a range needs from, to"},
        {"{to: 1, step: 1}", "a range needs from, to"},
        {"{from: 1, to: 2, by: 1}", "by"},
        {"{from: x, to: 2, step: 1}", "x"},
        {"{from: [1], to: 2, step: 1}", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        frag_experiment experiment;
        frag_error error;
        frag_text options = {0};
        frag_text_add(&options, "    options:\n      max_split_size_mb: %s\n", cases[i][0]);
        assert_false(parse(options.bytes, "", &experiment, &error));
        assert_int_equal(error.code, FRAG_E_INPUT);
        assert_int_equal(error.line, 5);
        if (strstr(error.sentence, cases[i][1]) == NULL)
            fail_msg("%s: %s", cases[i][0], error.sentence);
        frag_text_destroy(&options);
        frag_experiment_destroy(&experiment);
    }
}

#define GRID                                                                                       \
    "    options:\n      max_split_size_mb: {from: 21, to: 120, step: 1}\n"                        \
    "      roundup_power2_divisions: [1, 2, 4]\n"

/* A thing drawn twice, or an order that is not the file's, would change the rows of a sweep. */
static void some_of_the_combinations_are_drawn_once_each(void **state)
{
    (void)state;
    static const char *const wishes[] = {"",
                                         "    random: {count: 10, seed: 7}\n",
                                         "    random: {count: 10}\n",
                                         "    random: {count: 300}\n",
                                         "    random: {count: 301}\n",
                                         "    random: {count: 1}\n"};
    static const size_t counts[] = {300, 10, 10, 300, 300, 1};
    char *first[2] = {NULL, NULL};
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++) {
        frag_experiment experiment;
        frag_error error;
        assert_true(parse(GRID, wishes[i], &experiment, &error));
        assert_int_equal(experiment.policy_count, counts[i]);
        uint64_t last = 0;
        for (size_t k = 0; k < experiment.policy_count; k++) {
            const frag_policy_spec *spec = &experiment.policies[k];
            uint64_t cap = 0, divisions = 0;
            for (uint32_t v = 0; v < spec->value_count; v++) {
                const char *key = spec->ops->options[v].key;
                if (strcmp(key, "max_split_size_mb") == 0)
                    cap = strtoull(spec->values[v].text, NULL, 10);
                if (strcmp(key, "roundup_power2_divisions") == 0)
                    divisions = strtoull(spec->values[v].text, NULL, 10);
            }
            assert_true(cap * 10 + divisions > last);
            last = cap * 10 + divisions;
        }
        if (i == 1 || i == 2)
            first[i - 1] = frag_copy_text(experiment.policies[0].text);
        frag_experiment_destroy(&experiment);
    }
    assert_string_not_equal(first[0], first[1]);
    frag_free(first[0]);
    frag_free(first[1]);
}

static void random_choices_need_a_count(void **state)
{
    (void)state;
    static const char *const bad[] = {"    random: {seed: 1}\n",
                                      "    random: 5\n",
                                      "    random: {count: 0}\n",
                                      "    random: {count: x}\n",
                                      "    random: {count: 1, seed: -1}\n",
                                      "    random: {count: 1, of: 2}\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        frag_experiment experiment;
        frag_error error;
        assert_false(parse(GRID, bad[i], &experiment, &error));
        assert_int_equal(error.code, FRAG_E_INPUT);
        assert_int_equal(error.line, 7);
        frag_experiment_destroy(&experiment);
    }
}

static void labels_paths_and_the_rest(void **state)
{
    (void)state;
    frag_experiment experiment;
    frag_error error;
    assert_true(parse("    label: mine\n    options:\n      max_split_size_mb: [64, 128]\n",
                      "capacities: [1GiB, unlimited]\non_oom: skip\nbounds: true\n", &experiment,
                      &error));
    static const char *const traces[] = {"runs/a.fgt", "/b.fgt"};
    assert_int_equal(experiment.trace_count, 2);
    for (size_t i = 0; i < 2; i++)
        assert_string_equal(experiment.traces[i], traces[i]);
    assert_int_equal(experiment.policy_count, 2);
    assert_string_equal(experiment.policies[0].text, "mine:max_split_size_mb=64");
    assert_string_equal(experiment.policies[1].text, "mine:max_split_size_mb=128");
    assert_int_equal(experiment.capacity_count, 2);
    assert_true(experiment.capacities[0] == (uint64_t)1 << 30);
    assert_true(experiment.capacities[1] == FRAG_UNLIMITED);
    assert_true(experiment.is_oom_skipped && experiment.has_bounds);
    frag_experiment_destroy(&experiment);
    assert_true(parse("", "on_oom: stop\n", &experiment, &error));
    assert_false(experiment.is_oom_skipped || experiment.has_bounds);
    assert_int_equal(experiment.policy_count, 1);
    assert_string_equal(experiment.policies[0].text, "pytorch");
    frag_experiment_destroy(&experiment);
    assert_false(parse("", "on_oom: never\n", &experiment, &error));
    assert_non_null(strstr(error.sentence, "expected stop or skip"));
    frag_experiment_destroy(&experiment);
    assert_false(frag_experiment_load("/nonexistent/sweep.yaml", &experiment, &error));
    frag_experiment_destroy(&experiment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_have_both_ends_and_steps_between),
        cmocka_unit_test(what_is_no_range_is_refused_with_its_place),
        cmocka_unit_test(some_of_the_combinations_are_drawn_once_each),
        cmocka_unit_test(random_choices_need_a_count),
        cmocka_unit_test(labels_paths_and_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
