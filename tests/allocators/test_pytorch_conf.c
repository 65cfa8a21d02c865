/* Tests of pytorch_conf.c: the settings string as each release reads it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "allocators/pytorch/pytorch_conf.h"
#include "base/bytes.h"
#include "base/text.h"

/* What differs from the defaults, sizes in MiB; divisions as "value*intervals". */
static void add_summary(frag_text *text, const frag_pytorch_settings *settings)
{
    frag_text_clear(text);
    frag_text_add(text, "%s", "");
    if (settings->max_split_bytes != FRAG_UNLIMITED)
        frag_text_add(text, "split=%llu ",
                      (unsigned long long)(settings->max_split_bytes / FRAG_MIB));
    if (settings->non_split_rounding_bytes != 20 * FRAG_MIB)
        frag_text_add(text, "slack=%llu ",
                      (unsigned long long)(settings->non_split_rounding_bytes / FRAG_MIB));
    if (settings->large_segment_bytes != 20 * FRAG_MIB)
        frag_text_add(text, "large=%llu ",
                      (unsigned long long)(settings->large_segment_bytes / FRAG_MIB));
    if (settings->gc_threshold > 0)
        frag_text_add(text, "gc=%g ", settings->gc_threshold);
    for (uint32_t i = 0, first = 0; settings->has_divisions && i < 16; i++)
        if (i == 15 || settings->divisions[i + 1] != settings->divisions[first]) {
            frag_text_add(text, "%s%llu*%u%s", first == 0 ? "div=" : "",
                          (unsigned long long)settings->divisions[first], i + 1 - first,
                          i == 15 ? " " : ",");
            first = i + 1;
        }
    if (settings->is_expandable)
        frag_text_add(text, "exp ");
    if (settings->key_fraction < 1)
        frag_text_add(text, "fraction=%g ", settings->key_fraction);
    if (settings->throws_on_oom)
        frag_text_add(text, "throw ");
    if (settings->reuses_at_end)
        frag_text_add(text, "reuse ");
    if (settings->reserve_bytes > 0)
        frag_text_add(text, "reserve=%llu ",
                      (unsigned long long)(settings->reserve_bytes / FRAG_MIB));
    if (settings->reserve_ratio > 0)
        frag_text_add(text, "reserve=%g* ", settings->reserve_ratio);
    if (text->length > 0)
        text->bytes[text->length - 1] = '\0';
}

typedef struct parse_case {
    uint32_t first; /* releases, 2.13 is 213 */
    uint32_t last;
    const char *text;
    const char *expected; /* summary, or the words of the refusal */
    uint32_t column;      /* of the refusal; 0: none */
} parse_case;

static void check_case(const parse_case *one, uint32_t version)
{
    frag_pytorch_settings settings;
    frag_pytorch_settings_reset(&settings, version);
    frag_error error = {.code = FRAG_E_NONE};
    frag_text found = {.bytes = NULL};
    if (frag_pytorch_conf_parse(&settings, one->text, &error)) {
        add_summary(&found, &settings);
    } else {
        assert_int_equal(error.code, FRAG_E_USAGE);
        const char *words = strstr(error.sentence, ": ");
        assert_non_null(words);
        frag_text_add(&found, "%s", words + 2);
    }
    if (strcmp(found.bytes, one->expected) != 0 || error.column != one->column)
        fail_msg("'%s' in %u gives '%s' at %llu, not '%s' at %u", one->text, version, found.bytes,
                 (unsigned long long)error.column, one->expected, one->column);
    frag_text_destroy(&found);
}

static void check_cases(const parse_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (uint32_t version = cases[i].first; version <= cases[i].last; version++)
            check_case(&cases[i], version);
}

#define CHECK(cases) check_cases(cases, sizeof(cases) / sizeof(cases)[0])

static void reads_sizes(void **state)
{
    (void)state;
    static const parse_case cases[] = {
        {200, 215, "", "", 0},
        {200, 215, "max_split_size_mb:128", "split=128", 0},
        {200, 215, "max_split_size_mb:21", "split=21", 0},
        {200, 209, "max_split_size_mb:20",
         "CachingAllocator option max_split_size_mb too small, must be > 20", 19},
        {210, 215, "max_split_size_mb:20", "split=20", 0},
        {210, 215, "max_split_size_mb:19",
         "CachingAllocator option max_split_size_mb too small, must be >= 20", 19},
        {206, 215, "max_non_split_rounding_mb:40", "slack=40", 0},
        {206, 209, "max_non_split_rounding_mb:20",
         "CachingAllocator option max_non_split_rounding_mb too small, must be > 20", 27},
        {210, 215, "max_non_split_rounding_mb:19",
         "CachingAllocator option max_non_split_rounding_mb too small, must be >= 20", 27},
        {211, 215, "large_segment_size_mb:25", "slack=25 large=25", 0},
        {211, 215, "large_segment_size_mb:11,max_split_size_mb:11", "split=11 slack=11 large=11",
         0},
        {211, 215, "large_segment_size_mb:10",
         "CachingAllocator option large_segment_size_mb must be > 10 MB", 23},
        {211, 215, "max_split_size_mb:24,large_segment_size_mb:25",
         "CachingAllocator option max_split_size_mb too small, must be >= 25", 19},
        {211, 215, "large_segment_size_mb:64,max_non_split_rounding_mb:20,large_segment_size_mb:16",
         "large=16", 0},
        {211, 215, "max_split_size_mb:25,large_segment_size_mb:25", "split=25 slack=25 large=25",
         0},
    };
    CHECK(cases);
}

static void overlooks_what_the_library_overlooks_in_numbers(void **state)
{
    (void)state;
    static const parse_case cases[] = {
        {200, 215, "max_split_size_mb:40MB", "split=40", 0},
        {200, 215, "max_split_size_mb:-1", "split=17592186044415", 0},
        {200, 215, "max_split_size_mb:4 0", "split=40", 0},
        {200, 215, "max_split_size_mb:+40", "split=40", 0},
        {200, 209, "max_split_size_mb:x", "stoi", 19},
        {210, 215, "max_split_size_mb:x", "stoull", 19},
        {200, 209, "max_split_size_mb:4294967296", "stoi", 19},
        {210, 215, "max_split_size_mb:99999999999999999999", "stoull", 19},
        {200, 215, "garbage_collection_threshold:x", "stod", 30},
        {200, 215, "garbage_collection_threshold:0.5x", "gc=0.5", 0},
        {200, 215, "garbage_collection_threshold:1e-1", "gc=0.1", 0},
    };
    CHECK(cases);
}

static void overlooks_what_the_library_overlooks_between_words(void **state)
{
    (void)state;
    static const parse_case cases[] = {
        {200, 215, "max_split_size_mb:128,", "split=128", 0},
        {200, 215, " max_split_size_mb : 128 , garbage_collection_threshold : 0.5 ",
         "split=128 gc=0.5", 0},
        {200, 209, "max_split_size_mb:128,,garbage_collection_threshold:0.5",
         "Unrecognized CachingAllocator option: ,", 23},
        {210, 215, "max_split_size_mb:128,,garbage_collection_threshold:0.5",
         "Unrecognized key ',' in CUDA allocator config.", 23},
        {200, 209, "max_split_size_mb,128",
         "Error parsing CachingAllocator settings, expected :", 18},
        {210, 215, "max_split_size_mb,128", "split=128", 0},
        {200, 209, "max_split_size_mb:128:garbage_collection_threshold:0.5",
         "Error parsing CachingAllocator settings, expected ,", 22},
        {210, 215, "max_split_size_mb:128:garbage_collection_threshold:0.5", "split=128 gc=0.5", 0},
        {200, 209, "max_split_size_mb", "Error parsing CachingAllocator settings, expected :", 18},
        {200, 209, "max_split_size_mb:", "Error, expecting max_split_size_mb value", 19},
        {210, 215, "max_split_size_mb:", "Index out of bounds in ConfigTokenizer", 19},
        {210, 215, "max_split_size_mb", "Index out of bounds in ConfigTokenizer", 18},
        {200, 215, "max_split_size_mb:40,garbage_collection_threshold:0.5", "split=40 gc=0.5", 0},
        {200, 209, "max_split_size_mb:\t128", "split=128", 0},
        {200, 209, "\tmax_split_size_mb:128",
         "Unrecognized CachingAllocator option: ?max_split_size_mb", 1},
        {210, 215, "\tmax_split_size_mb:\t128\n", "split=128", 0},
    };
    CHECK(cases);
}

static void reads_a_threshold_between_0_and_1(void **state)
{
    (void)state;
    static const parse_case cases[] = {
        {200, 215, "garbage_collection_threshold:0.8", "gc=0.8", 0},
        {200, 209, "garbage_collection_threshold:0",
         "garbage_collect_threshold too small, set it 0.0~1.0", 30},
        {200, 209, "garbage_collection_threshold:1",
         "garbage_collect_threshold too big, set it 0.0~1.0", 30},
        {200, 209, "garbage_collection_threshold:nan",
         "garbage_collect_threshold too small, set it 0.0~1.0", 30},
        {210, 215, "garbage_collection_threshold:0",
         "garbage_collect_threshold is invalid, set it in (0.0, 1.0)", 30},
        {210, 215, "garbage_collection_threshold:1",
         "garbage_collect_threshold is invalid, set it in (0.0, 1.0)", 30},
    };
    CHECK(cases);
}

static void reads_divisions(void **state)
{
    (void)state;
    static const parse_case cases[] = {
        {200, 215, "roundup_power2_divisions:4", "div=4*16", 0},
        {200, 209, "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]", "div=1*9,2*1,8*6", 0},
        {210, 215, "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]", "div=1*9,2*1,4*1,8*5", 0},
        {210, 215, "roundup_power2_divisions:[128:8,256:16,512:1,2048:8,>:2]",
         "div=8*8,16*1,1*1,0*1,8*1,2*4", 0},
        {200, 209, "roundup_power2_divisions:[>:4]", "div=4*16", 0},
        {210, 215, "roundup_power2_divisions:[>:4]", "div=0*1,4*15", 0},
        {200, 209, "roundup_power2_divisions:[>:4,4:2]", "div=2*3,4*13", 0},
        {200, 215, "roundup_power2_divisions:[]", "", 0},
        {200, 215, "roundup_power2_divisions:[4:2,]", "div=2*3,0*13", 0},
        {200, 215, "roundup_power2_divisions:[65536:2]", "div=2*16", 0},
        {200, 209, "roundup_power2_divisions:[", "", 0},
        {200, 209, "roundup_power2_divisions:[4:2,", "div=2*3,0*13", 0},
        {200, 209, "roundup_power2_divisions:[4:2",
         "Error parsing CachingAllocator settings, expected ,", 30},
        {200, 209, "roundup_power2_divisions:[4:", "Error parsing roundup_power2_divisions value",
         29},
        {210, 215, "roundup_power2_divisions:[4:2,",
         "Expected closing bracket ']' in ConfigTokenizer but reached end of config", 31},
        {200, 209, "roundup_power2_divisions:[4,2]",
         "Error parsing CachingAllocator settings, expected :", 28},
        {210, 215, "roundup_power2_divisions:[4,2]", "div=2*3,0*13", 0},
        {200, 209, "roundup_power2_divisions:[x:2]", "stoul", 27},
        {210, 215, "roundup_power2_divisions:[x:2]", "stoull", 27},
        {200, 209, "roundup_power2_divisions:[4:x]", "stoi", 29},
        {200, 209, "roundup_power2_divisions:", "Error, expecting roundup_power2_divisions value",
         26},
        {204, 207, "roundup_power2_divisions:[4:3]",
         "For roundups, the divisons has to be power of 2 or 0 to disable roundup ", 29},
        {208, 215, "roundup_power2_divisions:[4:3]",
         "For roundups, the divisions has to be power of 2 or 0 to disable roundup ", 29},
        {210, 215, "roundup_power2_divisions:-9223372036854775808", "div=9223372036854775808*16",
         0},
        {200, 203, "roundup_power2_divisions:[4:0]",
         "For roundups, the divisons has to be power of 2 ", 29},
        {204, 215, "roundup_power2_divisions:[4:0,8:2]", "div=0*3,2*1,0*12", 0},
        {200, 207, "roundup_power2_divisions:0", "For roundups, the divisons has to be power of 2 ",
         26},
        {208, 215, "roundup_power2_divisions:0",
         "For roundups, the divisions has to be power of 2 ", 26},
        {200, 215, "roundup_power2_divisions:[3:2]",
         "For roundups, the intervals have to be power of 2 ", 27},
    };
    CHECK(cases);
}

static void reads_flags_as_true_and_false_only(void **state)
{
    (void)state;
    static const parse_case cases[] = {
        {201, 215, "expandable_segments:True", "exp", 0},
        {201, 215, "expandable_segments:False", "", 0},
        {201, 209, "expandable_segments:true",
         "Expected a single True/False argument for expandable_segments", 21},
        {210, 215, "expandable_segments:true",
         "Expected 'True' or 'False' at index 2 in ConfigTokenizer but got 'true'", 21},
        {201, 209, "expandable_segments:",
         "Expected a single True/False argument for expandable_segments", 21},
        {202, 209, "release_lock_on_hipmalloc:1",
         "Expected a single True/False argument for release_lock_on_cudamalloc", 27},
        {202, 209, "pinned_use_hip_host_register:",
         "Error, expecting pinned_use_cuda_host_register value", 30},
        {202, 209, "pinned_use_cuda_host_register:1",
         "Expected a single True/False argument for pinned_use_cuda_host_register", 31},
        {206, 209, "pinned_use_background_threads:",
         "Error, expecting pinned_use_background_threads value", 31},
        {212, 215, "throw_on_cudamalloc_oom:True", "throw", 0},
    };
    CHECK(cases);
}

static void knows_the_keys_of_each_release(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        const char *value;
        const char *expected;
        uint32_t since;
    } keys[] = {
        {"expandable_segments", "False", "", 201},
        {"pinned_use_cuda_host_register", "True", "", 202},
        {"pinned_use_hip_host_register", "True", "", 202},
        {"release_lock_on_hipmalloc", "True", "", 202},
        {"release_lock_on_cudamalloc", "True", "", 202},
        {"pinned_num_register_threads", "8", "", 202},
        {"max_non_split_rounding_mb", "30", "slack=30", 206},
        {"pinned_use_background_threads", "True", "", 206},
        {"graph_capture_record_stream_reuse", "True", "reuse", 209},
        {"per_process_memory_fraction", "0.5", "fraction=0.5", 210},
        {"pinned_reserve_segment_size_mb", "4", "", 210},
        {"large_segment_size_mb", "25", "slack=25 large=25", 211},
        {"throw_on_cudamalloc_oom", "True", "throw", 212},
        {"pinned_free_catch_all", "True", "", 212},
        {"pinned_max_round_threshold_mb", "4", "", 213},
        {"pinned_max_cached_size_mb", "4", "", 213},
        {"expandable_segments_reserve", "40G", "reserve=40960", 215},
        {"expandable_segments_reserve_by_class", "[a:0.5]", "", 215},
        {"foo", "1", "", 999},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        char text[96];
        char old[128];
        char fresh[128];
        snprintf(text, sizeof text, "%s:%s", keys[i].key, keys[i].value);
        snprintf(old, sizeof old, "Unrecognized CachingAllocator option: %s", keys[i].key);
        snprintf(fresh, sizeof fresh, "Unrecognized key '%s' in CUDA allocator config.",
                 keys[i].key);
        for (uint32_t version = 200; version <= 215; version++) {
            bool is_known = version >= keys[i].since;
            parse_case one = {version, version, text,
                              is_known         ? keys[i].expected
                              : version >= 210 ? fresh
                                               : old,
                              is_known ? 0 : 1};
            check_case(&one, version);
        }
    }
}

static void reads_a_fraction_from_0_to_1(void **state)
{
    (void)state;
    static const parse_case cases[] = {
        {210, 215, "per_process_memory_fraction:0", "fraction=0", 0},
        {210, 215, "per_process_memory_fraction:1", "", 0},
        {210, 215, "per_process_memory_fraction:1.5",
         "per_process_memory_fraction is invalid, set it in [0.0, 1.0]", 29},
        {210, 215, "per_process_memory_fraction:x", "stod", 29},
    };
    CHECK(cases);
}

static void reads_the_reserve_of_2_15(void **state)
{
    (void)state;
    static const parse_case cases[] = {
        {215, 215, "expandable_segments_reserve:0.5", "reserve=0.5*", 0},
        {215, 215, "expandable_segments_reserve:40G", "reserve=40960", 0},
        {215, 215, "expandable_segments_reserve:0.5G", "reserve=512", 0},
        {215, 215, "expandable_segments_reserve:17179869183G", "reserve=17592186043392", 0},
        /* 2^64 bytes and more are the most there is. */
        {215, 215, "expandable_segments_reserve:17179869184G", "reserve=17592186044415", 0},
        {215, 215, "expandable_segments_reserve:1e30G", "reserve=17592186044415", 0},
        {215, 215, "expandable_segments_reserve:500000000", "reserve=5e+08*", 0},
        {215, 215, "expandable_segments_reserve:40M", "", 0},
        {215, 215, "expandable_segments_reserve:0", "", 0},
        {215, 215, "expandable_segments_reserve:-1", "", 0},
        {215, 215, "expandable_segments_reserve:x", "", 0},
        {215, 215, "expandable_segments_reserve:0x1p-1", "", 0},
        {215, 215, "expandable_segments_reserve:inf", "", 0},
        {215, 215, "expandable_segments_reserve:2g", "reserve=2048", 0},
        {215, 215, "expandable_segments_reserve:0.5,expandable_segments_reserve:x", "reserve=0.5*",
         0},
        {215, 215, "expandable_segments_reserve_by_class:[a:0.5,b:x,],max_split_size_mb:40",
         "split=40", 0},
        {215, 215, "expandable_segments_reserve_by_class:[a]",
         "Index out of bounds in ConfigTokenizer", 41},
        {215, 215, "expandable_segments_reserve_by_class:[a:0.5",
         "Expected closing bracket ']' in ConfigTokenizer but reached end of config", 44},
        {215, 215, "expandable_segments_reserve_by_class:0.5",
         "Index out of bounds in ConfigTokenizer", 41},
    };
    CHECK(cases);
}

static void takes_only_the_backend_that_is_simulated(void **state)
{
    (void)state;
    static const parse_case cases[] = {
        {200, 215, "backend:native", "", 0},
        {200, 215, "backend:cudaMallocAsync", "backend:cudaMallocAsync " FRAG_PYTORCH_OTHER_BACKEND,
         9},
        {200, 209, "backend:", "Error parsing backend value", 9},
        {200, 215, "backend:x", "Unknown allocator backend, options are native and cudaMallocAsync",
         9},
    };
    CHECK(cases);
}

static void checks_the_numbers_of_pinned_memory(void **state)
{
    (void)state;
    static const parse_case cases[] = {
        {202, 209, "pinned_num_register_threads:3",
         "Number of register threads has to be power of 2 ", 29},
        {210, 215, "pinned_num_register_threads:3",
         "Number of register threads has to be power of 2, got 3", 29},
        {202, 209, "pinned_num_register_threads:256",
         "Number of register threads should be less than or equal to 128", 29},
        {210, 215, "pinned_num_register_threads:256",
         "Number of register threads should be less than or equal to 128, got 256", 29},
        {210, 215, "pinned_reserve_segment_size_mb:0",
         "Pinned reserve segment size has to be greater than 0", 32},
        {213, 215, "pinned_max_cached_size_mb:x", "stoull", 27},
    };
    CHECK(cases);
}

/* From 2.10 on two readers look at the string, each at its own keys. */
static void says_what_the_reader_that_comes_first_finds(void **state)
{
    (void)state;
    const char *text = "max_split_size_mb:3,backend:x";
    frag_pytorch_settings settings;
    frag_error error = {.code = FRAG_E_NONE};
    frag_pytorch_settings_reset(&settings, 209);
    assert_false(frag_pytorch_conf_parse(&settings, text, &error));
    assert_int_equal(error.column, 19);
    frag_pytorch_settings_reset(&settings, 210);
    assert_false(frag_pytorch_conf_parse(&settings, text, &error));
    assert_int_equal(error.column, 29);
    assert_false(frag_pytorch_conf_parse(&settings, "foo:1", &error));
    assert_string_equal(error.sentence, "PyTorch 2.10 refuses these settings at character 1: "
                                        "Unrecognized key 'foo' in CUDA allocator config.");
    assert_true(frag_pytorch_conf_parse(&settings, "", &error));
    assert_false(frag_pytorch_conf_parse(&settings, text, &error));
    assert_int_equal(error.column, 19);
    assert_false(frag_pytorch_conf_parse(&settings, "foo:1", &error));
    assert_string_equal(error.sentence, "PyTorch 2.10 refuses these settings at character 1: "
                                        "Unrecognized key 'foo' in Accelerator allocator config.");
}

/* One string after another on the same settings. */
static void expect_after(uint32_t version, const char *const *texts, const char *expected)
{
    frag_pytorch_settings settings;
    frag_pytorch_settings_reset(&settings, version);
    frag_error error = {.code = FRAG_E_NONE};
    for (; *texts != NULL; texts++)
        frag_pytorch_conf_parse(&settings, *texts, &error);
    frag_text found = {.bytes = NULL};
    add_summary(&found, &settings);
    if (strcmp(found.bytes, expected) != 0)
        fail_msg("%u leaves '%s', not '%s'", version, found.bytes, expected);
    frag_text_destroy(&found);
}

static void some_keys_go_back_to_their_defaults_and_others_stay(void **state)
{
    (void)state;
    const char *const back[] = {"max_split_size_mb:64,garbage_collection_threshold:0.5,"
                                "roundup_power2_divisions:4",
                                "", NULL};
    const char *const stay[] = {
        "expandable_segments:True,large_segment_size_mb:25,per_process_memory_fraction:0.5,"
        "throw_on_cudamalloc_oom:True,expandable_segments_reserve:40G",
        "max_split_size_mb:64", NULL};
    const char *const slack[] = {"max_non_split_rounding_mb:512", "", NULL};
    for (uint32_t version = 200; version <= 215; version++)
        expect_after(version, back, "");
    expect_after(215, stay, "split=64 slack=25 large=25 exp fraction=0.5 throw reserve=40960");
    for (uint32_t version = 206; version <= 215; version++)
        expect_after(version, slack, version <= 210 ? "slack=512" : "");
}

static void a_refused_string_changes_nothing(void **state)
{
    (void)state;
    const char *const texts[] = {"max_split_size_mb:64,expandable_segments:True",
                                 "garbage_collection_threshold:0.5,expandable_segments:False,foo:1",
                                 NULL};
    for (uint32_t version = 201; version <= 215; version++)
        expect_after(version, texts, "split=64 exp");
}

static const char *one_variable(void *user, const char *name)
{
    return strcmp(name, user) == 0 ? "found" : NULL;
}

static void several_variables_hold_the_string_since_2_10(void **state)
{
    (void)state;
    static const char *const names[] = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF",
                                        "PYTORCH_ALLOC_CONF"};
    for (size_t i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s", names[i]);
        frag_context context = {.environment = one_variable, .user = name};
        for (uint32_t version = 200; version <= 215; version++)
            assert_int_equal(frag_pytorch_conf_of(version, &context) != NULL,
                             i == 0 || version >= 210);
    }
}

static void a_share_is_reached_at_its_least_capacity(void **state)
{
    (void)state;
    static const double shares[] = {1e-9, 0.001, 0.3, 0.5, 0.99};
    static const uint64_t wanted[] = {1, 12345, FRAG_GIB + 1};
    for (uint32_t version = 212; version <= 213; version++) { /* truncated, and rounded */
        frag_pytorch_settings settings;
        frag_pytorch_settings_reset(&settings, version);
        for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
            for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++) {
                uint64_t least = frag_pytorch_share_capacity(&settings, shares[i], 1, wanted[k]);
                assert_true(frag_pytorch_share_bytes(&settings, shares[i], least) >= wanted[k]);
                assert_true(frag_pytorch_share_bytes(&settings, shares[i], least - 1) < wanted[k]);
            }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_share_is_reached_at_its_least_capacity),
        cmocka_unit_test(reads_sizes),
        cmocka_unit_test(overlooks_what_the_library_overlooks_in_numbers),
        cmocka_unit_test(overlooks_what_the_library_overlooks_between_words),
        cmocka_unit_test(reads_a_threshold_between_0_and_1),
        cmocka_unit_test(reads_divisions),
        cmocka_unit_test(reads_flags_as_true_and_false_only),
        cmocka_unit_test(knows_the_keys_of_each_release),
        cmocka_unit_test(reads_a_fraction_from_0_to_1),
        cmocka_unit_test(reads_the_reserve_of_2_15),
        cmocka_unit_test(takes_only_the_backend_that_is_simulated),
        cmocka_unit_test(checks_the_numbers_of_pinned_memory),
        cmocka_unit_test(says_what_the_reader_that_comes_first_finds),
        cmocka_unit_test(some_keys_go_back_to_their_defaults_and_others_stay),
        cmocka_unit_test(a_refused_string_changes_nothing),
        cmocka_unit_test(several_variables_hold_the_string_since_2_10),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
