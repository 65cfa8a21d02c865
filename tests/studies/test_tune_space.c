/* Tests of tune_space.c: which settings are searched. */
#include "studies/tune/tune_space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"

static void every_value_of_every_policy_is_one_it_takes(void **state)
{
    (void)state;
    for (size_t p = 0; frag_policy_table[p] != NULL; p++) {
        frag_policy_spec base;
        frag_tune_space space;
        frag_error error = {0};
        assert_true(frag_policy_spec_parse(frag_policy_table[p]->name, &base, &error));
        frag_tune_space_create(&base, true, &space);
        for (uint32_t axis = 0; axis < space.axis_count; axis++)
            for (uint32_t v = 0; v < space.axes[axis].count; v++) {
                frag_tune_point point = {.choices = {0}};
                frag_policy_spec spec;
                point.choices[axis] = (uint8_t)v;
                if (!frag_tune_space_spec(&space, &point, &spec, &error))
                    fail_msg("%s %s=%s: %s", base.text, space.axes[axis].key,
                             space.axes[axis].values[v], error.sentence);
                frag_policy_spec_destroy(&spec);
            }
        frag_tune_space_destroy(&space);
        frag_policy_spec_destroy(&base);
    }
}

static bool has_axis(const char *policy, bool has_capacity, const char *key)
{
    frag_policy_spec base;
    frag_tune_space space;
    bool is_there = false;
    assert_true(frag_policy_spec_parse(policy, &base, NULL));
    frag_tune_space_create(&base, has_capacity, &space);
    for (uint32_t i = 0; i < space.axis_count; i++)
        is_there = is_there || strcmp(space.axes[i].key, key) == 0;
    frag_tune_space_destroy(&space);
    frag_policy_spec_destroy(&base);
    return is_there;
}

static void only_what_can_change_memory_is_searched(void **state)
{
    (void)state;
    assert_true(has_axis("pytorch", false, "max_split_size_mb"));
    assert_false(has_axis("pytorch", true, "pinned_num_register_threads"));
    assert_false(has_axis("pytorch", true, "version"));
    assert_false(has_axis("pytorch", false, "garbage_collection_threshold"));
    assert_true(has_axis("pytorch", true, "garbage_collection_threshold"));
    assert_true(has_axis("tlsf", false, "sli"));
    assert_false(has_axis("tlsf", false, "align"));
}

static void what_the_user_has_fixed_is_not_searched(void **state)
{
    (void)state;
    assert_false(has_axis("pytorch:max_split_size_mb=512", false, "max_split_size_mb"));
    assert_false(has_axis("pytorch:max_split_size_mb:512", false, "max_split_size_mb"));
    assert_true(has_axis("pytorch:max_split_size_mb:512", false, "expandable_segments"));
    assert_false(has_axis("tlsf:sli=3", false, "sli"));
}

/* A policy can come from outside the tree, with defaults of its own. */
static void ladders_end_wherever_their_default_lies(void **state)
{
    (void)state;
    static const char *const defaults[] = {"0",        "1", "8", "3072", "4611686018427387904",
                                           "unlimited"};
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
        const char *text = defaults[i];
        uint64_t number = 0;
        assert_true(frag_bytes_parse(text, &number, NULL));
        const frag_option options[] = {
            {.key = "bytes",
             .type = FRAG_OPTION_BYTES,
             .default_text = text,
             .max = FRAG_UNLIMITED},
            {.key = "count",
             .type = FRAG_OPTION_COUNT,
             .default_text = text,
             .max = FRAG_UNLIMITED},
            {.key = "ratio", .type = FRAG_OPTION_RATIO, .default_text = text, .ratio_max = 1e6},
            {.key = NULL},
        };
        const frag_policy_ops mine = {.name = "mine", .options = options};
        frag_option_value values[3] = {{.text = text, .number = number},
                                       {.text = text, .number = number},
                                       {.text = text, .ratio = (double)number}};
        frag_policy_spec base = {.ops = &mine, .values = values, .value_count = 3};
        frag_tune_space space;
        frag_tune_space_create(&base, true, &space);
        for (uint32_t axis = 0; axis < space.axis_count; axis++) {
            assert_in_range(space.axes[axis].count, 2, FRAG_TUNE_VALUES_MAX);
            assert_string_equal(space.axes[axis].values[0], defaults[i]);
            /* Counts go from an eighth to 64 times the default. */
            if (number == 8 && strcmp(space.axes[axis].key, "count") == 0)
                assert_string_equal(space.axes[axis].values[space.axes[axis].count - 1], "512");
        }
        assert_true(space.axis_count >= 2);
        frag_tune_space_destroy(&space);
    }
}

static void a_setting_is_written_as_it_is_pasted(void **state)
{
    (void)state;
    frag_policy_spec base;
    frag_tune_space space;
    frag_text text = {0};
    assert_true(frag_policy_spec_parse("pytorch:version=2.15", &base, NULL));
    frag_tune_space_create(&base, true, &space);
    frag_tune_point point = {.choices = {0}};
    frag_tune_space_setting(&space, &point, &text);
    assert_string_equal(text.bytes, "");
    frag_tune_space_label(&space, &point, &text);
    assert_string_equal(text.bytes, "pytorch:version=2.15");
    for (uint32_t i = 0; i < space.axis_count; i++)
        if (strcmp(space.axes[i].key, "expandable_segments") == 0 ||
            strcmp(space.axes[i].key, "per_process_memory_fraction") == 0)
            point.choices[i] = 1;
    frag_tune_space_setting(&space, &point, &text);
    assert_string_equal(text.bytes, "expandable_segments:True");
    assert_string_equal(frag_tune_space_fraction(&space, &point), "0.95");
    frag_tune_space_label(&space, &point, &text);
    assert_string_equal(
        text.bytes,
        "pytorch:version=2.15,per_process_memory_fraction=0.95,expandable_segments:True");
    frag_policy_spec again;
    assert_true(frag_policy_spec_parse(text.bytes, &again, NULL));
    frag_policy_spec_destroy(&again);
    frag_text_destroy(&text);
    frag_tune_space_destroy(&space);
    frag_policy_spec_destroy(&base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_of_every_policy_is_one_it_takes),
        cmocka_unit_test(only_what_can_change_memory_is_searched),
        cmocka_unit_test(what_the_user_has_fixed_is_not_searched),
        cmocka_unit_test(ladders_end_wherever_their_default_lies),
        cmocka_unit_test(a_setting_is_written_as_it_is_pasted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
