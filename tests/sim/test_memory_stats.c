/* Tests of memory_stats.c: statistics as table, CSV and JSON. */
#include "sim/policy_engine.h"
#include "sim/replay/memory_stats.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "sim/rows/result.h"
#include "tests/support/text_recording.h"

static char *printed; /* what the last test printed; freed by the next */
static size_t printed_size;

static FILE *open_page(void)
{
    free(printed);
    FILE *stream = open_memstream(&printed, &printed_size);
    assert_non_null(stream);
    return stream;
}

/* A group of four figures: current, peak, allocated, freed. */
static void add_figures(frag_stats *stats, const char *group, const int64_t figures[4])
{
    static const char *const names[] = {"current", "peak", "allocated", "freed"};
    for (int i = 0; i < 4; i++) {
        char name[96];
        snprintf(name, sizeof name, "%s.%s", group, names[i]);
        frag_stats_add(stats, name, figures[i]);
    }
}

static void fill(frag_stats *stats)
{
    static const char *const groups[] = {
        "allocated_bytes",      "active_bytes", "requested_bytes", "reserved_bytes",
        "inactive_split_bytes", "allocation",   "active",          "segment",
        "inactive_split"};
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        bool is_bytes = i < 5;
        char name[64];
        snprintf(name, sizeof name, "%s.all", groups[i]);
        add_figures(stats, name,
                    is_bytes ? (const int64_t[]){786431, 786432, (int64_t)3 << 40, 1}
                             : (const int64_t[]){749999, 750000, 750000000, 0});
        snprintf(name, sizeof name, "%s.large_pool", groups[i]);
        add_figures(stats, name,
                    is_bytes ? (const int64_t[]){786431, 1023, (int64_t)2 << 40, 0}
                             : (const int64_t[]){12, 999, 1999999, 0});
        snprintf(name, sizeof name, "%s.small_pool", groups[i]);
        add_figures(stats, name, (const int64_t[]){0, 1024, -1, 1});
    }
    add_figures(stats, "oversize_allocations", (const int64_t[]){1, 2, 3, 2});
    add_figures(stats, "oversize_segments", (const int64_t[]){1, 2, 1000000, 1});
    frag_stats_add(stats, "num_ooms", 1);
    frag_stats_add(stats, "num_alloc_retries", 12);
}

/* Printed by torch.cuda.memory_summary() of PyTorch 2.15 from the same statistics. */
static const char *const first_lines =
    "|===========================================================================|\n"
    "|                  PyTorch CUDA memory summary, device ID 3                 |\n"
    "|---------------------------------------------------------------------------|\n"
    "|            CUDA OOMs: 1            |        cudaMalloc retries: 12        |\n"
    "|===========================================================================|\n"
    "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n"
    "|---------------------------------------------------------------------------|\n";

static void sizes_and_counts_change_units_where_pytorch_does(void **state)
{
    (void)state;
    frag_stats stats = {0};
    fill(&stats);
    FILE *stream = open_page();
    frag_stats_summary(&stats, 3, stream);
    fclose(stream);
    assert_int_equal(strncmp(printed, first_lines, strlen(first_lines)), 0);
    assert_non_null(
        strstr(printed,
               "| Allocated memory      | 786431 B   |    768 KiB |   3072 GiB |      1 B   |\n"
               "|       from large pool | 786431 B   |      0 KiB |   2048 GiB |      0 B   |\n"
               "|       from small pool |      0 B   |      1 KiB |     -1 GiB |      1 B   |\n"));
    assert_non_null(
        strstr(printed,
               "| Active allocs         |  749999    |     750 K  |     750 M  |       0    |\n"
               "|       from large pool |      12    |       0 K  |       1 M  |       0    |\n"
               "|       from small pool |       0    |       1 K  |      -1 M  |       1    |\n"));
    assert_non_null(strstr(
        printed, "| Oversize GPU segments |       1    |       2    |    1000 K  |       1    |\n"
                 "|==="));
    frag_stats_destroy(&stats);
}

static void lines_are_all_as_wide_as_the_frame(void **state)
{
    (void)state;
    frag_stats full = {0};
    fill(&full);
    frag_stats empty = {0};
    const frag_stats *both[] = {&full, &empty};
    for (int i = 0; i < 2; i++) {
        FILE *stream = open_page();
        frag_stats_summary(both[i], 0, stream);
        fclose(stream);
        size_t lines = 0;
        for (const char *at = printed; *at != '\0'; at = strchr(at, '\n') + 1, lines++)
            assert_int_equal(strcspn(at, "\n"), 77);
        assert_int_equal(lines, 6 + 9 * 4 + 2 * 2 + 1);
    }
    frag_stats_destroy(&full);
}

static void statistics_that_are_missing_are_not_shown_as_zero(void **state)
{
    (void)state;
    frag_stats stats = {0};
    frag_stats_add(&stats, "segment.all.current", 3);
    FILE *stream = open_page();
    frag_stats_summary(&stats, 0, stream);
    fclose(stream);
    assert_non_null(strstr(
        printed, "| GPU reserved segments |       3    |          - |          - |          - |"));
    assert_non_null(strstr(printed, "CUDA OOMs: -  "));
    frag_stats_destroy(&stats);
}

static void a_name_given_twice_keeps_its_last_value(void **state)
{
    (void)state;
    frag_stats stats = {0};
    int64_t value = 0;
    assert_false(frag_stats_find(&stats, "num_ooms", &value));
    frag_stats_add(&stats, "num_ooms", 1);
    frag_stats_add(&stats, "max_split_size", -1);
    frag_stats_add(&stats, "num_ooms", 2);
    assert_int_equal(stats.names.count, 2);
    assert_true(frag_stats_find(&stats, "num_ooms", &value));
    assert_int_equal(value, 2);
    assert_true(frag_stats_find(&stats, "max_split_size", &value));
    assert_int_equal(value, -1);
    assert_false(frag_stats_find(&stats, "num", &value));
    frag_stats_destroy(&stats);
}

/* ---- rows */

static const frag_policy_ops ops = {.name = "double"};
static const frag_trace trace = {0};
static const frag_device_spec device = {.capacity_bytes = FRAG_UNLIMITED};

static frag_row row_of(const frag_run_result *result, const frag_row_stats *stats)
{
    return (frag_row){.tool_version = "1",
                      .tool_commit = "c",
                      .trace_name = "t",
                      .trace = &trace,
                      .ops = &ops,
                      .label = "double",
                      .device = &device,
                      .result = result,
                      .stats = stats};
}

static void csv_has_a_column_for_each_statistic_of_any_row(void **state)
{
    (void)state;
    frag_run_result result = {0};
    frag_row_stats none = {.event = FRAG_UNLIMITED, .point = "oom", .problem = ""};
    frag_row_stats early = {.event = 7, .point = "oom", .problem = ""};
    frag_row_stats late = {.event = 9, .point = "oom", .problem = ""};
    frag_stats_add(&early.values, "b", -1);
    frag_stats_add(&early.values, "a.c", 5);
    frag_stats_add(&late.values, "a", 6);
    frag_stats_add(&late.values, "b", 8);
    const frag_row_stats *all[] = {&none, &early, &late};
    frag_stats_columns *columns = frag_stats_columns_create();
    for (int i = 0; i < 3; i++) {
        frag_row row = row_of(&result, all[i]);
        frag_stats_columns_add(columns, &row);
    }
    FILE *stream = open_page();
    frag_stats_columns_write(columns, stream);
    fclose(stream);
    assert_non_null(strstr(printed,
                           ",verify,oom.message,memory_stats_event,memory_stats.a,memory_stats.a.c,"
                           "memory_stats.b\n"));
    const char *line = strchr(printed, '\n') + 1;
    const char *const ends[] = {",,,,,\n", ",,,7,,5,-1\n", ",,,9,6,,8\n"};
    for (int i = 0; i < 3; i++) {
        const char *next = strchr(line, '\n') + 1;
        size_t length = strlen(ends[i]);
        assert_memory_equal(next - length, ends[i], length);
        line = next;
    }
    assert_int_equal(*line, '\0');
    frag_stats_destroy(&early.values);
    frag_stats_destroy(&late.values);
}

static void json_keeps_dots_in_names_and_tells_none_from_nothing(void **state)
{
    (void)state;
    frag_run_result result = {0};
    frag_row_stats stats = {.event = 7, .point = "end", .problem = ""};
    frag_stats_add(&stats.values, "a.b.c", -1);
    frag_row row = row_of(&result, &stats);
    FILE *stream = open_page();
    frag_result_write(FRAG_RESULT_JSONL, stream, &row);
    fclose(stream);
    assert_non_null(strstr(
        printed, "\"verify\":null,\"memory_stats_event\":7,\"memory_stats\":{\"a.b.c\":-1}}\n"));
    frag_row_stats none = {.event = FRAG_UNLIMITED, .point = "end", .problem = ""};
    row.stats = &none;
    stream = open_page();
    frag_result_write(FRAG_RESULT_JSONL, stream, &row);
    fclose(stream);
    assert_non_null(strstr(printed, "\"memory_stats_event\":null,\"memory_stats\":null}\n"));
    row.stats = NULL;
    stream = open_page();
    frag_result_write(FRAG_RESULT_JSONL, stream, &row);
    fclose(stream);
    assert_null(strstr(printed, "memory_stats"));
    frag_stats_destroy(&stats.values);
}

static void rows_carry_the_message_of_the_oom(void **state)
{
    (void)state;
    frag_run_result result = {
        .replay.oom = {.has_happened = true, .message = "out, \"of\" memory"}};
    frag_row row = row_of(&result, NULL);
    FILE *stream = open_page();
    frag_result_write(FRAG_RESULT_JSONL, stream, &row);
    frag_result_write(FRAG_RESULT_CSV, stream, &row);
    fclose(stream);
    assert_non_null(strstr(printed, "\"message\":\"out, \\\"of\\\" memory\"}"));
    assert_non_null(strstr(printed, ",,\"out, \"\"of\"\" memory\"\n"));
    result.replay.oom.message[0] = '\0';
    stream = open_page();
    frag_result_write(FRAG_RESULT_JSONL, stream, &row);
    fclose(stream);
    assert_non_null(strstr(printed, "\"message\":null}"));
}

/* ---- where a run is looked at */

/* Counts what it is asked; room for two blocks of one page. */
struct frag_policy {
    frag_device *device;
    bool keeps_stats;
    uint32_t live;
    int64_t allocs;
    int64_t frees;
    int64_t ooms;
};

static const frag_option no_options[] = {{.key = NULL}};

static size_t double_arena_bytes(const frag_policy_limits *limits, const frag_option_value *values)
{
    (void)limits;
    (void)values;
    return sizeof(frag_policy) + 64;
}

static frag_policy *double_create(const frag_policy_setup *setup, frag_error *error)
{
    (void)error;
    frag_policy *policy = frag_arena_take(setup->arena, 1, sizeof *policy);
    policy->device = setup->device;
    return policy;
}

static bool double_alloc(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    uint64_t address = 0;
    if (policy->live == 2 || policy->device->ops->malloc(policy->device, FRAG_DEVICE_PAGE_BYTES,
                                                         &address) != FRAG_DEVICE_OK) {
        policy->ooms++;
        return false;
    }
    policy->live++;
    policy->allocs++;
    *grant = (frag_grant){address, request->bytes, (frag_handle)policy->allocs};
    return true;
}

static void double_free(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    (void)handle;
    (void)stream;
    policy->live--;
    policy->frees++;
}

static void double_walk(const frag_policy *policy, frag_span_visitor *visit, void *context)
{
    (void)policy;
    (void)visit;
    (void)context;
}

static void double_keep_stats(frag_policy *policy)
{
    policy->keeps_stats = true;
}

static void double_stats(const frag_policy *policy, frag_stat_visitor *visit, void *context)
{
    if (!policy->keeps_stats)
        return;
    visit(context, "allocs", policy->allocs);
    visit(context, "frees", policy->frees);
    visit(context, "ooms", policy->ooms);
}

static void double_reset_stats(frag_policy *policy, bool resets_peaks, bool resets_sums)
{
    (void)policy;
    (void)resets_peaks;
    (void)resets_sums;
}

static const frag_policy_statistics double_statistics = {
    .keep = double_keep_stats,
    .visit = double_stats,
    .reset = double_reset_stats,
};

static const frag_policy_engine double_engine = {.statistics = &double_statistics};

static const frag_policy_ops counting = {
    .name = "double",
    .options = no_options,
    .arena_bytes = double_arena_bytes,
    .create = double_create,
    .alloc = double_alloc,
    .free = double_free,
    .walk = double_walk,
    .engine = &double_engine,
};

static void take(void *context, const char *name, int64_t value)
{
    frag_stats_add(context, name, value);
}

static void look(void *context, const frag_replay *replay, const frag_replay_result *result)
{
    (void)result;
    frag_replay_stats(replay, take, context);
}

static frag_stats stats_after(const frag_recording *recording, uint64_t events, bool keeps_stats)
{
    frag_stats stats = {0};
    frag_error error = {0};
    frag_replay_options options = {.stop_after = events, .keeps_stats = keeps_stats};
    assert_true(
        frag_run_look(&(frag_run_setup){recording, &recording->traces[0], &counting, NULL, &device},
                      &options, look, &stats, &error));
    return stats;
}

static void statistics_are_those_right_after_the_event(void **state)
{
    (void)state;
    frag_recording recording = {0};
    frag_test_recording("alloc 0 512\nfree 0\nalloc 1 512\nalloc 2 512\nalloc 3 512\nfree 1\n",
                        &recording);
    /* The third request in a row fails, is counted, and ends the run. */
    static const int64_t expected[][3] = {{1, 0, 0}, {1, 1, 0}, {2, 1, 0},
                                          {3, 1, 0}, {3, 1, 1}, {3, 1, 1}};
    for (uint64_t events = 1; events <= 6; events++) {
        frag_stats stats = stats_after(&recording, events, true);
        static const char *const names[] = {"allocs", "frees", "ooms"};
        for (int i = 0; i < 3; i++) {
            int64_t value = -1;
            assert_true(frag_stats_find(&stats, names[i], &value));
            assert_int_equal(value, expected[events - 1][i]);
        }
        frag_stats_destroy(&stats);
    }
    frag_recording_destroy(&recording);
}

static void a_policy_that_was_not_told_keeps_none(void **state)
{
    (void)state;
    frag_recording recording = {0};
    frag_test_recording("alloc 0 512\n", &recording);
    frag_stats stats = stats_after(&recording, 1, false);
    assert_int_equal(stats.names.count, 0);
    frag_stats_destroy(&stats);
    frag_recording_destroy(&recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_and_counts_change_units_where_pytorch_does),
        cmocka_unit_test(lines_are_all_as_wide_as_the_frame),
        cmocka_unit_test(statistics_that_are_missing_are_not_shown_as_zero),
        cmocka_unit_test(a_name_given_twice_keeps_its_last_value),
        cmocka_unit_test(csv_has_a_column_for_each_statistic_of_any_row),
        cmocka_unit_test(json_keeps_dots_in_names_and_tells_none_from_nothing),
        cmocka_unit_test(rows_carry_the_message_of_the_oom),
        cmocka_unit_test(statistics_are_those_right_after_the_event),
        cmocka_unit_test(a_policy_that_was_not_told_keeps_none),
    };
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    free(printed);
    return failures;
}
