/* Tests of pytorch_options.c: options written with "=" have the effect of the settings string. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "allocators/pytorch/pytorch_conf.h"
#include "allocators/pytorch/pytorch_options.h"
#include "allocators/registry.h"

static bool read_options(const char *options, const char *recorded, frag_pytorch_settings *settings,
                         frag_error *error)
{
    char text[160];
    frag_policy_spec spec;
    snprintf(text, sizeof text, "pytorch%s%s", options[0] == '\0' ? "" : ":", options);
    if (!frag_policy_spec_parse(text, &spec, error))
        return false;
    assert_true(frag_pytorch_is_set_by(spec.ops));
    bool ok = frag_pytorch_settings_create(settings, spec.values, recorded, error);
    frag_policy_spec_destroy(&spec);
    return ok;
}

static frag_pytorch_settings settings_of(const char *options)
{
    frag_pytorch_settings settings;
    frag_error error = {.code = FRAG_E_NONE};
    if (!read_options(options, "", &settings, &error))
        fail_msg("%s: %s", options, error.sentence);
    return settings;
}

static bool is_close(double a, double b)
{
    return a - b < 1e-12 && b - a < 1e-12;
}

static void expect_same(const char *options, const frag_pytorch_settings *found,
                        const frag_pytorch_settings *expected)
{
    print_message("%s\n", options);
    assert_int_equal(found->version, expected->version);
    assert_int_equal(found->tie, expected->tie);
    assert_int_equal(found->max_split_bytes, expected->max_split_bytes);
    assert_int_equal(found->non_split_rounding_bytes, expected->non_split_rounding_bytes);
    assert_int_equal(found->large_segment_bytes, expected->large_segment_bytes);
    assert_true(is_close(found->gc_threshold, expected->gc_threshold));
    assert_true(is_close(found->reserve_ratio, expected->reserve_ratio));
    assert_int_equal(found->reserve_bytes, expected->reserve_bytes);
    assert_int_equal(found->throws_on_oom, expected->throws_on_oom);
    assert_int_equal(found->is_expandable, expected->is_expandable);
    assert_int_equal(found->reuses_at_end, expected->reuses_at_end);
    assert_int_equal(found->has_divisions, expected->has_divisions);
    assert_memory_equal(found->divisions, expected->divisions, sizeof found->divisions);
}

static void an_option_does_what_its_key_does(void **state)
{
    (void)state;
    static const struct {
        const char *option;
        const char *conf;
    } cases[] = {
        {"", ""},
        {"max_split_size_mb=32", "max_split_size_mb:32"},
        {"max_split_size_mb=unlimited", ""},
        {"max_non_split_rounding_mb=64", "max_non_split_rounding_mb:64"},
        {"large_segment_size_mb=32", "large_segment_size_mb:32"},
        {"large_segment_size_mb=32,max_non_split_rounding_mb=40",
         "large_segment_size_mb:32,max_non_split_rounding_mb:40"},
        {"roundup_power2_divisions=8", "roundup_power2_divisions:8"},
        {"roundup_power2_divisions=[256:1,512:2,>:4]",
         "roundup_power2_divisions:[256:1,512:2,>:4]"},
        {"roundup_power2_divisions=0", ""},
        {"garbage_collection_threshold=0.75", "garbage_collection_threshold:0.75"},
        {"expandable_segments=true", "expandable_segments:True"},
        {"expandable_segments=false", "expandable_segments:False"},
        {"expandable_segments_reserve=0.5", "expandable_segments_reserve:0.5"},
        {"expandable_segments_reserve=40G", "expandable_segments_reserve:40G"},
        {"expandable_segments_reserve=0.5G", "expandable_segments_reserve:0.5G"},
        {"throw_on_cudamalloc_oom=true", "throw_on_cudamalloc_oom:True"},
        {"graph_capture_record_stream_reuse=true", "graph_capture_record_stream_reuse:True"},
        {"graph_capture_record_stream_reuse=false", ""},
        {"pinned_num_register_threads=8", "pinned_num_register_threads:8"},
        {"backend=native", "backend:native"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        frag_pytorch_settings found;
        frag_pytorch_settings expected;
        frag_error error = {.code = FRAG_E_NONE};
        frag_pytorch_settings_reset(&expected, 215);
        assert_true(frag_pytorch_conf_parse(&expected, cases[i].conf, &error));
        if (!read_options(cases[i].option, "2.15", &found, &error))
            fail_msg("%s: %s", cases[i].option, error.sentence);
        expect_same(cases[i].option, &found, &expected);
    }
}

static void an_option_wins_over_the_settings_string(void **state)
{
    (void)state;
    frag_pytorch_settings settings;
    frag_error error = {.code = FRAG_E_NONE};
    frag_policy_spec spec;
    assert_true(frag_policy_spec_parse("pytorch:expandable_segments=false,"
                                       "expandable_segments_reserve=,roundup_power2_divisions=0,"
                                       "graph_capture_record_stream_reuse=false",
                                       &spec, &error));
    frag_policy_spec_take(&spec, "expandable_segments:True,expandable_segments_reserve:40G,"
                                 "roundup_power2_divisions:8,max_split_size_mb:64,"
                                 "graph_capture_record_stream_reuse:True");
    assert_true(frag_pytorch_settings_create(&settings, spec.values, "2.15", &error));
    assert_false(settings.is_expandable);
    assert_false(settings.reuses_at_end);
    assert_false(settings.has_divisions);
    assert_int_equal(settings.divisions[3], 0);
    assert_int_equal(settings.reserve_bytes, 0);
    assert_int_equal(settings.max_split_bytes, 64 * FRAG_MIB);
    frag_policy_spec_destroy(&spec);
}

static void a_fraction_is_a_limit_as_the_release_has_it(void **state)
{
    (void)state;
    static const struct {
        const char *recorded;
        const char *option;
        double fraction;
        bool is_limit;
    } cases[] = {
        {"2.9", "per_process_memory_fraction=0.5", 0.5, true},
        {"2.9", "per_process_memory_fraction=1", 1, true},
        {"2.9", "", 1, false},
        {"2.10", "per_process_memory_fraction=1", 1, false},
        {"2.10", "per_process_memory_fraction=0.25", 0.25, true},
        {"2.10", "conf=per_process_memory_fraction:0.5", 0.5, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        frag_pytorch_settings settings;
        frag_error error = {.code = FRAG_E_NONE};
        assert_true(read_options(cases[i].option, cases[i].recorded, &settings, &error));
        assert_true(is_close(settings.memory_fraction, cases[i].fraction));
        assert_int_equal(settings.has_fraction, cases[i].is_limit);
    }
}

static void the_fraction_of_the_key_is_kept_apart_from_the_limit(void **state)
{
    (void)state;
    frag_pytorch_settings settings;
    frag_error error = {0};
    assert_true(read_options("per_process_memory_fraction:0.5", "", &settings, &error));
    assert_true(settings.has_fraction && settings.memory_fraction == 0.5);
    assert_true(settings.key_fraction == 0.5);
    assert_true(read_options("per_process_memory_fraction:0.5,per_process_memory_fraction=0.25", "",
                             &settings, &error));
    assert_true(settings.has_fraction && settings.memory_fraction == 0.25);
    assert_true(settings.key_fraction == 0.5);
    assert_true(read_options("per_process_memory_fraction:0.5,per_process_memory_fraction=1", "",
                             &settings, &error));
    assert_false(settings.has_fraction);
    assert_true(read_options("", "", &settings, &error));
    assert_false(settings.has_fraction);
    assert_true(settings.key_fraction == 1);
}

/* Figures of PyTorch's own unit test of the list form. */
static void rounds_by_divisions_of_a_power_of_two(void **state)
{
    (void)state;
    frag_pytorch_settings settings = settings_of("roundup_power2_divisions=4");
    assert_int_equal(frag_pytorch_round(&settings, 1200 * FRAG_KIB), 1280 * FRAG_KIB);
    assert_int_equal(frag_pytorch_round(&settings, 1024 * FRAG_KIB), 1024 * FRAG_KIB);
    assert_int_equal(frag_pytorch_round(&settings, 1000), 1024);
    settings = settings_of("roundup_power2_divisions=[128:8,256:16,512:1,2048:8,>:2]");
    assert_int_equal(settings.divisions[10], 0);
    assert_int_equal(settings.divisions[12], 2);
    assert_int_equal(settings.divisions[0], 8);
}

static void a_rest_item_overwrites_the_last_interval_up_to_2_9(void **state)
{
    (void)state;
    frag_pytorch_settings settings =
        settings_of("roundup_power2_divisions=[256:1,512:2,>:8],version=2.9");
    assert_int_equal(settings.divisions[9], 8);
    settings = settings_of("roundup_power2_divisions=[256:1,512:2,>:8],version=2.10");
    assert_int_equal(settings.divisions[9], 2);
}

static void a_release_is_found_in_what_a_recording_says(void **state)
{
    (void)state;
    static const struct {
        const char *recorded;
        uint32_t version; /* 0: an option of that text is refused */
    } cases[] = {
        {"2.9", 209},
        {"2.9.1", 209},
        {"2.10.0+cu128", 210},
        {"2.4.0a0+git1", 204},
        {"2.0", 200},
        {"2.15", 215},
        {"2.16", 0},
        {"1.13", 0},
        {"2.100", 0},
        {"2", 0},
        {"2.", 0},
        {"x", 0},
        {"2.9rc", 0},
        {".9", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t version = 0;
        frag_error error = {.code = FRAG_E_NONE};
        bool is_known = frag_pytorch_version(cases[i].recorded, "", &version, &error);
        assert_int_equal(is_known, cases[i].version != 0);
        if (is_known)
            assert_int_equal(version, cases[i].version);
        else
            assert_non_null(strstr(error.sentence, "expected 2.0 to 2.15"));
        assert_true(frag_pytorch_version("auto", cases[i].recorded, &version, &error));
        uint32_t nearest = strcmp(cases[i].recorded, "1.13") == 0 ? 200 : 215;
        assert_int_equal(version, cases[i].version != 0 ? cases[i].version : nearest);
    }
}

static void what_pytorch_would_refuse_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *recorded;
        const char *option;
        const char *words; /* NULL: it is taken */
    } cases[] = {
        {"2.15", "backend=cudaMallocAsync", "backend=cudaMallocAsync"},
        {"2.15", "max_split_size_mb=19", "max_split_size_mb=19 is too small"},
        {"2.15", "max_split_size_mb=20", NULL},
        {"2.9", "max_split_size_mb=20", "expected 21 or more"},
        {"2.9", "max_split_size_mb=21", NULL},
        {"2.15", "max_split_size_mb=8796093022207", NULL},
        {"2.15", "max_split_size_mb=8796093022208", "more than 64 bits"},
        {"2.15", "max_non_split_rounding_mb=19", "max_non_split_rounding_mb=19 is too small"},
        {"2.15", "roundup_power2_divisions=3", "at character 1"},
        {"2.15", "roundup_power2_divisions=8x", "at character 2"},
        {"2.15", "roundup_power2_divisions=[]", "at character 2"},
        {"2.15", "garbage_collection_threshold=1", "more than 0 and less than 1"},
        {"2.15", "expandable_segments_reserve=40M", "a share of the capacity such as 0.5, or 40G"},
        {"2.15", "expandable_segments_reserve=G", "a share of the capacity"},
        {"2.15", "expandable_segments_reserve=11111111111111111111111111111111", "a share"},
        {"2.9", "max_split_size_mb=20,version=2.11", NULL},
        {"2.15", "max_split_size_mb=20,version=2.8", "expected 21 or more"},
        {"2.15", "roundup_power2_divisions=[256:3]", "character"},
        {"2.15", "roundup_power2_divisions=[100:4]", "character"},
        {"2.15", "roundup_power2_divisions=[256]", "character"},
        {"2.14", "expandable_segments_reserve=0.5", "came with PyTorch 2.15; version 2.14"},
        {"2.14", "expandable_segments_reserve=", NULL},
        {"2.10", "large_segment_size_mb=32", "came with PyTorch 2.11"},
        {"2.10", "large_segment_size_mb=20", NULL},
        {"2.0", "expandable_segments=true", "came with PyTorch 2.1"},
        {"2.0", "expandable_segments=false", NULL},
        {"2.1", "expandable_segments=true", NULL},
        {"2.9", "per_process_memory_fraction=0.5", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        frag_pytorch_settings settings;
        frag_error error = {.code = FRAG_E_NONE};
        bool ok = read_options(cases[i].option, cases[i].recorded, &settings, &error);
        if (ok != (cases[i].words == NULL) ||
            (!ok && (error.code != FRAG_E_USAGE || strstr(error.sentence, cases[i].words) == NULL)))
            fail_msg("%s in %s: %s", cases[i].option, cases[i].recorded,
                     ok ? "taken" : error.sentence);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_option_does_what_its_key_does),
        cmocka_unit_test(an_option_wins_over_the_settings_string),
        cmocka_unit_test(a_fraction_is_a_limit_as_the_release_has_it),
        cmocka_unit_test(the_fraction_of_the_key_is_kept_apart_from_the_limit),
        cmocka_unit_test(rounds_by_divisions_of_a_power_of_two),
        cmocka_unit_test(a_rest_item_overwrites_the_last_interval_up_to_2_9),
        cmocka_unit_test(a_release_is_found_in_what_a_recording_says),
        cmocka_unit_test(what_pytorch_would_refuse_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
