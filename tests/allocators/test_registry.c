/* Tests of registry.c: policies and options as the user types them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocators/pytorch/pytorch_options.h"
#include "allocators/registry.h"
#include "base/bytes.h"

static frag_policy_spec parse(const char *text)
{
    frag_policy_spec spec;
    frag_error error = {0};
    if (!frag_policy_spec_parse(text, &spec, &error))
        fail_msg("%s: %s", text, error.sentence);
    return spec;
}

static void refuse(const char *text, const char *part)
{
    frag_policy_spec spec;
    frag_error error = {0};
    assert_false(frag_policy_spec_parse(text, &spec, &error));
    assert_int_equal(error.code, FRAG_E_USAGE);
    if (strstr(error.sentence, part) == NULL)
        fail_msg("'%s' gives \"%s\", which does not say \"%s\"", text, error.sentence, part);
}

static const frag_option_value *value_of(const frag_policy_spec *spec, const char *key)
{
    for (uint32_t i = 0; i < spec->value_count; i++)
        if (strcmp(spec->ops->options[i].key, key) == 0)
            return &spec->values[i];
    fail_msg("no option %s", key);
    return NULL;
}

static void every_policy_has_a_complete_entry(void **state)
{
    (void)state;
    for (size_t i = 0; frag_policy_table[i] != NULL; i++) {
        const frag_policy_ops *ops = frag_policy_table[i];
        assert_true(ops->summary[0] != '\0' && ops->source[0] != '\0');
        assert_non_null(ops->bound);
        assert_true(ops->alloc != NULL && ops->free != NULL && ops->walk != NULL &&
                    ops->check != NULL);
        assert_true(ops->create != NULL && ops->arena_bytes != NULL);
        assert_ptr_equal(frag_policy_find(ops->name), ops);
        frag_policy_spec spec = parse(ops->name);
        frag_policy_spec_destroy(&spec);
    }
}

/* The page of a policy shows default_text, which nothing else may contradict. */
static void what_is_said_to_be_a_default_is_one(void **state)
{
    (void)state;
    for (size_t i = 0; frag_policy_table[i] != NULL; i++) {
        const frag_policy_ops *ops = frag_policy_table[i];
        frag_policy_spec bare = parse(ops->name);
        for (uint32_t j = 0; j < bare.value_count; j++) {
            const frag_option *option = &ops->options[j];
            char text[128];
            assert_true(snprintf(text, sizeof text, "%s:%s=%s", ops->name, option->key,
                                 option->default_text) < (int)sizeof text);
            frag_policy_spec said = parse(text);
            const frag_option_value *value = value_of(&said, option->key);
            assert_true(value->is_given && !bare.values[j].is_given);
            assert_string_equal(value->text, bare.values[j].text);
            assert_int_equal(value->number, bare.values[j].number);
            assert_true(value->ratio >= bare.values[j].ratio &&
                        value->ratio <= bare.values[j].ratio);
            frag_policy_spec_destroy(&said);
        }
        frag_policy_spec_destroy(&bare);
    }
}

static void every_policy_says_its_rules(void **state)
{
    (void)state;
    for (size_t i = 0; frag_policy_table[i] != NULL; i++) {
        const frag_policy_rules *rules = frag_policy_table[i]->rules;
        if (rules == NULL)
            fail_msg("%s has no rules", frag_policy_table[i]->name);
        assert_true(rules->rounding != NULL && rules->takes != NULL && rules->cuts != NULL);
        assert_true(rules->joins != NULL && rules->grows != NULL && rules->streams != NULL);
    }
}

static void keeps_a_literal_pytorch_setting_string_and_shows_what_it_says(void **state)
{
    (void)state;
    frag_policy_spec spec =
        parse("pytorch:max_split_size_mb:128, "
              "roundup_power2_divisions:[256:1,512:2,>:8],garbage_collection_threshold:0.8,");
    assert_string_equal(
        value_of(&spec, "conf")->text,
        "max_split_size_mb:128, "
        "roundup_power2_divisions:[256:1,512:2,>:8],garbage_collection_threshold:0.8,");
    assert_int_equal(value_of(&spec, "max_split_size_mb")->number, 128);
    assert_false(value_of(&spec, "max_split_size_mb")->is_given);
    assert_string_equal(value_of(&spec, "roundup_power2_divisions")->text, "[256:1,512:2,>:8]");
    assert_true(value_of(&spec, "garbage_collection_threshold")->ratio == 0.8);
    frag_policy_spec_destroy(&spec);
}

static void takes_the_setting_string_out_of_a_mixed_list(void **state)
{
    (void)state;
    frag_policy_spec spec = parse("pytorch:max_split_size_mb:128,version=2.9,recorded,"
                                  "roundup_power2_divisions:[256:1,>:8],expandable_segments=true");
    assert_string_equal(value_of(&spec, "conf")->text,
                        "max_split_size_mb:128,roundup_power2_divisions:[256:1,>:8]");
    assert_string_equal(value_of(&spec, "version")->text, "2.9");
    assert_true(spec.wants_recorded);
    assert_true(value_of(&spec, "expandable_segments")->is_given);
    frag_policy_spec_destroy(&spec);
}

static void what_the_user_wrote_wins_over_a_string_that_was_found(void **state)
{
    (void)state;
    frag_policy_spec spec = parse("pytorch:recorded,max_split_size_mb:64,"
                                  "garbage_collection_threshold=0.5");
    frag_policy_spec_take(&spec, "max_split_size_mb:128,garbage_collection_threshold:0.9,");
    assert_string_equal(
        value_of(&spec, "conf")->text,
        "max_split_size_mb:128,garbage_collection_threshold:0.9,max_split_size_mb:64");
    frag_pytorch_settings settings;
    frag_error error = {0};
    assert_true(frag_pytorch_settings_create(&settings, spec.values, "2.9", &error));
    assert_int_equal(settings.max_split_bytes, 64 * FRAG_MIB);
    assert_true(settings.gc_threshold == 0.5);
    frag_policy_spec_destroy(&spec);
    spec = parse("pytorch:recorded");
    frag_policy_spec_take(&spec, "");
    assert_string_equal(value_of(&spec, "conf")->text, "");
    frag_policy_spec_destroy(&spec);
}

static void another_string_leaves_nothing_of_the_one_before(void **state)
{
    (void)state;
    frag_policy_spec spec = parse("pytorch:max_split_size_mb:128");
    frag_error error = {0};
    assert_true(frag_policy_spec_set(&spec, "conf", "expandable_segments:True", &error));
    assert_int_equal(value_of(&spec, "max_split_size_mb")->number, FRAG_UNLIMITED);
    assert_int_equal(value_of(&spec, "expandable_segments")->number, 1);
    frag_policy_spec_destroy(&spec);
}

static void colons_still_name_options_of_other_policies(void **state)
{
    (void)state;
    frag_policy_spec spec = parse("best-fit:align:4KiB");
    assert_int_equal(value_of(&spec, "align")->number, 4096);
    frag_policy_spec_destroy(&spec);
}

static void joins_bare_names_and_knows_all(void **state)
{
    (void)state;
    frag_policy_spec *specs = NULL;
    size_t count = 0;
    frag_error error = {0};
    assert_true(frag_policy_specs_parse("pytorch,best-fit", &specs, &count, &error));
    assert_int_equal(count, 2);
    assert_string_equal(specs[1].ops->name, "best-fit");
    assert_true(frag_policy_specs_parse("all", &specs, &count, &error));
    size_t total = 0;
    while (frag_policy_table[total] != NULL)
        total++;
    assert_int_equal(count, 2 + total);
    frag_policy_specs_destroy(specs, count);
}

static void refuses_what_it_does_not_know_and_names_the_nearest(void **state)
{
    (void)state;
    refuse("pytorhc", "did you mean 'pytorch'");
    refuse("pytorch:max_split_size=3", "did you mean 'max_split_size_mb'");
    refuse("best-fit:align=64K", "could mean");
    refuse("best-fit:align", "has no value");
    refuse("pytorch:max_split_size_mb=0", "out of range");
    refuse("pytorch:expandable_segments=maybe", "neither true nor false");
    refuse("nothing-like-it-at-all", "lists them");
}

static bool settle(const char *text, const char *recorded, frag_pytorch_settings *settings,
                   frag_error *error)
{
    frag_policy_spec spec = parse(text);
    bool ok = frag_pytorch_settings_create(settings, spec.values, recorded, error);
    frag_policy_spec_destroy(&spec);
    return ok;
}

static frag_pytorch_settings settings_of(const char *text)
{
    frag_pytorch_settings settings;
    frag_error error = {0};
    if (!settle(text, "", &settings, &error))
        fail_msg("%s: %s", text, error.sentence);
    return settings;
}

static void follows_the_recorded_version_unless_told_otherwise(void **state)
{
    (void)state;
    frag_pytorch_settings settings;
    frag_error error = {0};
    assert_true(settle("pytorch", "2.9", &settings, &error));
    assert_int_equal(settings.version, 209);
    assert_int_equal(settings.tie, FRAG_PYTORCH_TIE_ADDRESS);
    assert_true(settle("pytorch:version=2.12.1", "2.9", &settings, &error));
    assert_int_equal(settings.tie, FRAG_PYTORCH_TIE_BLOCK_NUMBER);
    assert_true(settle("pytorch", "", &settings, &error));
    assert_int_equal(settings.version, 215);
    assert_false(settle("pytorch:version=1.9", "", &settings, &error));
    assert_false(settle("pytorch:version=2", "", &settings, &error));
}

static void split_sizes_have_the_least_value_of_their_release(void **state)
{
    (void)state;
    frag_pytorch_settings settings;
    frag_error error = {0};
    assert_false(settle("pytorch:max_split_size_mb=20,version=2.8", "", &settings, &error));
    assert_true(settle("pytorch:max_split_size_mb=20,version=2.11", "", &settings, &error));
    assert_true(settle("pytorch:max_split_size_mb=21,version=2.8", "", &settings, &error));
}

static void refuses_a_key_from_after_the_release(void **state)
{
    (void)state;
    frag_pytorch_settings settings;
    frag_error error = {0};
    assert_false(settle("pytorch:large_segment_size_mb=25,version=2.10", "", &settings, &error));
    assert_string_equal(error.sentence, "large_segment_size_mb came with PyTorch 2.11; version "
                                        "2.10 does not have it");
    assert_true(settle("pytorch:large_segment_size_mb=25,version=2.11", "", &settings, &error));
    assert_int_equal(settings.non_split_rounding_bytes, 25 * FRAG_MIB);
    assert_true(settle("pytorch:expandable_segments=false,version=2.0", "", &settings, &error));
    /* The option stands for the API call, which is older than the key. */
    assert_true(settle("pytorch:per_process_memory_fraction=1,version=2.9", "", &settings, &error));
    assert_true(settings.has_fraction);
}

static void the_fraction_of_the_key_is_kept_apart_from_the_limit(void **state)
{
    (void)state;
    frag_pytorch_settings settings;
    frag_error error = {0};
    assert_true(settle("pytorch:per_process_memory_fraction:0.5", "", &settings, &error));
    assert_true(settings.has_fraction && settings.memory_fraction == 0.5);
    assert_true(settings.key_fraction == 0.5);
    assert_true(settle("pytorch:per_process_memory_fraction:0.5,per_process_memory_fraction=0.25",
                       "", &settings, &error));
    assert_true(settings.has_fraction && settings.memory_fraction == 0.25);
    assert_true(settings.key_fraction == 0.5);
    assert_true(settle("pytorch:per_process_memory_fraction:0.5,per_process_memory_fraction=1", "",
                       &settings, &error));
    assert_false(settings.has_fraction);
    assert_true(settle("pytorch", "", &settings, &error));
    assert_false(settings.has_fraction);
    assert_true(settings.key_fraction == 1);
}

/* Figures of PyTorch's own unit test of the list form. */
static void rounds_by_divisions_of_a_power_of_two(void **state)
{
    (void)state;
    frag_pytorch_settings settings = settings_of("pytorch:roundup_power2_divisions=4");
    assert_int_equal(frag_pytorch_round(&settings, 1200 * FRAG_KIB), 1280 * FRAG_KIB);
    assert_int_equal(frag_pytorch_round(&settings, 1024 * FRAG_KIB), 1024 * FRAG_KIB);
    assert_int_equal(frag_pytorch_round(&settings, 1000), 1024);
    settings = settings_of("pytorch:roundup_power2_divisions=[128:8,256:16,512:1,2048:8,>:2]");
    assert_int_equal(settings.divisions[10], 0);
    assert_int_equal(settings.divisions[12], 2);
    assert_int_equal(settings.divisions[0], 8);
}

static void a_rest_item_overwrites_the_last_interval_up_to_2_9(void **state)
{
    (void)state;
    frag_pytorch_settings settings =
        settings_of("pytorch:roundup_power2_divisions=[256:1,512:2,>:8],version=2.9");
    assert_int_equal(settings.divisions[9], 8);
    settings = settings_of("pytorch:roundup_power2_divisions=[256:1,512:2,>:8],version=2.10");
    assert_int_equal(settings.divisions[9], 2);
}

static void refuses_divisions_that_are_no_powers_of_two(void **state)
{
    (void)state;
    frag_pytorch_settings settings;
    frag_error error = {0};
    static const char *const wrong[] = {"3", "[256:3]", "[100:4]", "[256:4", "4x", "[256]", "[]"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[96];
        snprintf(text, sizeof text, "pytorch:roundup_power2_divisions=%s", wrong[i]);
        frag_policy_spec spec;
        /* An open bracket swallows the rest of the options; what is left must be refused all the
         * same. */
        if (!frag_policy_spec_parse(text, &spec, &error))
            continue;
        assert_false(frag_pytorch_settings_create(&settings, spec.values, "", &error));
        assert_non_null(strstr(error.sentence, "character"));
        frag_policy_spec_destroy(&spec);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_policy_has_a_complete_entry),
        cmocka_unit_test(what_is_said_to_be_a_default_is_one),
        cmocka_unit_test(every_policy_says_its_rules),
        cmocka_unit_test(keeps_a_literal_pytorch_setting_string_and_shows_what_it_says),
        cmocka_unit_test(takes_the_setting_string_out_of_a_mixed_list),
        cmocka_unit_test(what_the_user_wrote_wins_over_a_string_that_was_found),
        cmocka_unit_test(another_string_leaves_nothing_of_the_one_before),
        cmocka_unit_test(colons_still_name_options_of_other_policies),
        cmocka_unit_test(joins_bare_names_and_knows_all),
        cmocka_unit_test(refuses_what_it_does_not_know_and_names_the_nearest),
        cmocka_unit_test(follows_the_recorded_version_unless_told_otherwise),
        cmocka_unit_test(split_sizes_have_the_least_value_of_their_release),
        cmocka_unit_test(refuses_a_key_from_after_the_release),
        cmocka_unit_test(the_fraction_of_the_key_is_kept_apart_from_the_limit),
        cmocka_unit_test(rounds_by_divisions_of_a_power_of_two),
        cmocka_unit_test(a_rest_item_overwrites_the_last_interval_up_to_2_9),
        cmocka_unit_test(refuses_divisions_that_are_no_powers_of_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
