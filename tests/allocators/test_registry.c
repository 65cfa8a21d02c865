/* Tests of registry.c: policies and options as the user types them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocators/policy_json.h"
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

static void a_policy_in_json_has_its_options(void **state)
{
    (void)state;
    for (size_t i = 0; frag_policy_table[i] != NULL; i++) {
        const frag_policy_ops *ops = frag_policy_table[i];
        char *bytes = NULL;
        size_t count = 0;
        FILE *stream = open_memstream(&bytes, &count);
        assert_non_null(stream);
        frag_policy_write_json(ops, stream);
        fclose(stream);
        char part[128];
        snprintf(part, sizeof part, "\"name\":\"%s\"", ops->name);
        assert_non_null(strstr(bytes, part));
        for (uint32_t k = 0; k < frag_policy_option_count(ops); k++) {
            snprintf(part, sizeof part, "\"key\":\"%s\"", ops->options[k].key);
            assert_non_null(strstr(bytes, part));
        }
        free(bytes);
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

static void blanks_around_what_is_typed_do_not_matter(void **state)
{
    (void)state;
    frag_policy_spec spec =
        parse("pytorch: max_split_size_mb = 32  ,  garbage_collection_threshold=0.5 ");
    assert_int_equal(value_of(&spec, "max_split_size_mb")->number, 32);
    assert_string_equal(value_of(&spec, "max_split_size_mb")->text, "32");
    assert_string_equal(value_of(&spec, "garbage_collection_threshold")->text, "0.5");
    frag_policy_spec_destroy(&spec);
}

static void expect_refusal(const frag_policy_export *export, const char *part)
{
    frag_error error = {0};
    assert_false(frag_policy_export_check(export, &error));
    assert_int_equal(error.code, FRAG_E_INPUT);
    if (strstr(error.sentence, part) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error.sentence, part);
}

static void refuses_a_table_that_lacks_what_others_read(void **state)
{
    (void)state;
#define PART(field) offsetof(frag_policy_ops, field), " ." #field ";"
#define RULE(field) offsetof(frag_policy_rules, field), ".rules->" #field ";"
    static const struct {
        size_t at;
        const char *name;
    } parts[] = {{PART(name)},  {PART(summary)},     {PART(source)},
                 {PART(bound)}, {PART(arena_bytes)}, {PART(create)},
                 {PART(alloc)}, {PART(free)},        {PART(walk)}},
      rules[] = {{RULE(rounding)}, {RULE(takes)}, {RULE(cuts)},
                 {RULE(joins)},    {RULE(grows)}, {RULE(streams)}};
    static const char *const nothing = NULL;
    const frag_policy_ops *whole = frag_policy_find("pytorch");
    frag_policy_ops ops = *whole;
    frag_policy_rules some;
    frag_option options[] = {{.key = "a", .default_text = "1", .help = "h"},
                             {.key = "b", .default_text = "1", .help = "h"},
                             {.key = NULL}};
    const frag_policy_export export = {FRAG_POLICY_ABI, sizeof ops, &ops};
    frag_error error = {0};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        memcpy((char *)&ops + parts[i].at, &nothing, sizeof nothing);
        expect_refusal(&export, parts[i].name);
        ops = *whole;
        assert_true(frag_policy_export_check(&export, &error));
    }
    ops.name = "";
    expect_refusal(&export, " .name;");
    ops = *whole;
    ops.options = NULL;
    expect_refusal(&export, " option that .conf_option names;");
    ops = *whole;
    ops.rules = &some;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        some = *whole->rules;
        memcpy((char *)&some + rules[i].at, &nothing, sizeof nothing);
        expect_refusal(&export, rules[i].name);
    }
    ops.rules = NULL; /* needs none; nor options, where nothing names one */
    ops.options = NULL;
    ops.conf_option = ops.fraction_option = NULL;
    assert_true(frag_policy_export_check(&export, &error));
    ops.options = options;
    ops.conf_option = "a";
    ops.fraction_option = "b";
    assert_true(frag_policy_export_check(&export, &error));
    ops.fraction_option = "c";
    expect_refusal(&export, "option that .fraction_option names");
    ops.fraction_option = "b";
    options[1].type = FRAG_OPTION_ENUM;
    expect_refusal(&export, "option 'b' with .choices");
    options[1].choices = "1|2";
    assert_true(frag_policy_export_check(&export, &error));
    options[1].help = NULL;
    expect_refusal(&export, ".help");
    options[1] = (frag_option){.key = "b", .help = "h"};
    expect_refusal(&export, ".default_text");
    options[1].default_text = "1";
    options[0].type = FRAG_OPTION_TEXT + 1;
    expect_refusal(&export, ".type that there is");
}

/* 'fraglab policies' knows it by its file alone, so that the sentence itself lists the options. */
static void options_of_a_policy_from_outside_are_listed_where_one_is_unknown(void **state)
{
    (void)state;
    frag_option options[] = {{.key = "first"}, {.key = "second"}, {.key = NULL}};
    frag_policy_ops ops = {.name = "mine", .options = options};
    frag_policy_spec spec = {.ops = &ops, .value_count = 2};
    frag_error error = {0};
    assert_false(frag_policy_spec_set(&spec, "qqqqqqqq", "1", &error));
    assert_int_equal(error.code, FRAG_E_USAGE);
    assert_string_equal(error.sentence,
                        "mine has no option 'qqqqqqqq'; expected one of first, second");
    spec.value_count = 0;
    options[0].key = NULL;
    assert_false(frag_policy_spec_set(&spec, "qqqqqqqq", "1", &error));
    assert_string_equal(error.sentence, "mine has no option 'qqqqqqqq'");
}

static void refuses_a_table_of_another_header(void **state)
{
    (void)state;
    const frag_policy_ops *ops = frag_policy_table[0];
    expect_refusal(&(frag_policy_export){FRAG_POLICY_ABI + 1, sizeof *ops, ops}, "policy ABI");
    expect_refusal(&(frag_policy_export){FRAG_POLICY_ABI, sizeof *ops, NULL}, "no table");
    expect_refusal(&(frag_policy_export){FRAG_POLICY_ABI, sizeof *ops - 1, ops}, "another");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_policy_has_a_complete_entry),
        cmocka_unit_test(what_is_said_to_be_a_default_is_one),
        cmocka_unit_test(every_policy_says_its_rules),
        cmocka_unit_test(a_policy_in_json_has_its_options),
        cmocka_unit_test(keeps_a_literal_pytorch_setting_string_and_shows_what_it_says),
        cmocka_unit_test(takes_the_setting_string_out_of_a_mixed_list),
        cmocka_unit_test(what_the_user_wrote_wins_over_a_string_that_was_found),
        cmocka_unit_test(another_string_leaves_nothing_of_the_one_before),
        cmocka_unit_test(colons_still_name_options_of_other_policies),
        cmocka_unit_test(joins_bare_names_and_knows_all),
        cmocka_unit_test(blanks_around_what_is_typed_do_not_matter),
        cmocka_unit_test(refuses_what_it_does_not_know_and_names_the_nearest),
        cmocka_unit_test(refuses_a_table_that_lacks_what_others_read),
        cmocka_unit_test(refuses_a_table_of_another_header),
        cmocka_unit_test(options_of_a_policy_from_outside_are_listed_where_one_is_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
