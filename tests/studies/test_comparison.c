/* Tests of comparison.c: result rows before and after a change. */
#include "studies/compare/comparison.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/json.h"

#define ROWS "tests/data/compare/rows.jsonl"
#define ROW_COUNT 3
#define LINE_MAX_BYTES 16384

static char lines[ROW_COUNT][LINE_MAX_BYTES];
static char base_path[] = "/tmp/fraglab-compare-base-XXXXXX";
static char now_path[] = "/tmp/fraglab-compare-now-XXXXXX";

static int read_rows(void **state)
{
    (void)state;
    FILE *file = fopen(ROWS, "r");
    assert_non_null(file);
    for (size_t i = 0; i < ROW_COUNT; i++)
        assert_non_null(fgets(lines[i], LINE_MAX_BYTES, file));
    fclose(file);
    close(mkstemp(base_path));
    close(mkstemp(now_path));
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    unlink(base_path);
    unlink(now_path);
    return 0;
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static frag_comparison compare(const char *base, const char *now,
                               const frag_comparison_options *options)
{
    frag_error error = {0};
    frag_comparison comparison;
    put(base_path, base);
    put(now_path, now);
    if (!frag_comparison_read(base_path, now_path, options, &comparison, &error))
        fail_msg("%s", error.sentence);
    return comparison;
}

static const frag_comparison_options one_percent = {.general = {.pattern = "*", .ratio = 0.01}};

/* A row with one number changed. */
typedef struct change {
    frag_json *to;
    const char *path; /* NULL: none */
    double factor;
    double number; /* what it was */
} change;

static void copy_value(void *context, const char *path, const frag_json_value *value)
{
    change *state = context;
    const char *text = NULL;
    double number = 0;
    bool flag = false;
    uint64_t whole = 0;
    if (frag_json_read_text(value, &text)) {
        frag_json_text(state->to, path, text);
    } else if (frag_json_read_ratio(value, &number)) {
        if (state->path != NULL && strcmp(state->path, path) == 0) {
            state->number = number;
            frag_json_ratio(state->to, path,
                            number == 0 ? (state->factor > 1 ? 1 : -1) : number * state->factor);
        } else if (frag_json_read_number(value, &whole)) {
            frag_json_number(state->to, path, whole);
        } else {
            frag_json_ratio(state->to, path, number);
        }
    } else if (frag_json_read_flag(value, &flag)) {
        frag_json_flag(state->to, path, flag);
    } else {
        frag_json_null(state->to, path);
    }
}

/* The row with the number at path multiplied; from 0 it goes to 1, or to -1. The caller frees. */
static char *changed(const char *line, const char *path, double factor, double *number)
{
    frag_error error = {0};
    frag_json *json = frag_json_parse(line, strlen(line), &error);
    assert_non_null(json);
    change state = {.to = frag_json_create(), .path = path, .factor = factor};
    frag_json_visit(json, copy_value, &state);
    frag_json_destroy(json);
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    frag_json_write(state.to, stream, false);
    fclose(stream);
    if (number != NULL)
        *number = state.number;
    return text;
}

typedef struct path_list {
    char paths[200][96];
    size_t count;
} path_list;

static void add_path(void *context, const char *path, const frag_json_value *value)
{
    path_list *list = context;
    double number = 0;
    if (!frag_json_read_ratio(value, &number))
        return;
    assert_true(list->count < 200 && strlen(path) < 96);
    strcpy(list->paths[list->count++], path);
}

static void a_run_again_has_no_finding(void **state)
{
    (void)state;
    char all[ROW_COUNT * LINE_MAX_BYTES] = "";
    for (size_t i = 0; i < ROW_COUNT; i++)
        strcat(all, lines[i]);
    const frag_comparison_options nothing = {.general = {.pattern = "*"}};
    frag_comparison comparison = compare(all, all, &nothing);
    assert_int_equal(comparison.compared, ROW_COUNT);
    assert_int_equal(comparison.problems + comparison.fresh, 0);
    assert_true(comparison.verdicts[FRAG_VERDICT_SAME] > 80);
    for (size_t v = 1; v < FRAG_VERDICT_COUNT; v++)
        assert_int_equal(comparison.verdicts[v], 0);
    frag_comparison_destroy(&comparison);
}

static void rows_on_other_devices_are_not_compared(void **state)
{
    (void)state;
    char base[3 * LINE_MAX_BYTES] = "";
    char now[3 * LINE_MAX_BYTES] = "";
    size_t count = 0;
    for (size_t i = 0; i < ROW_COUNT && count < 3; i++) {
        double number = 0;
        char *other = changed(lines[i], "device.capacity_bytes", 2, &number);
        if (number > 0) {
            strcat(base, lines[i]);
            strcat(now, other);
            count++;
        }
        free(other);
    }
    assert_true(count > 1);
    frag_comparison comparison = compare(base, now, &one_percent);
    assert_int_equal(comparison.problems, count);
    assert_int_equal(comparison.compared, 0);
    for (size_t i = 0; i < count; i++)
        assert_non_null(strstr(comparison.rows[i].problem, "other device: capacity_bytes="));
    frag_comparison_destroy(&comparison);
}

static frag_direction direction_of(const char *line, const char *path)
{
    char schema[64];
    size_t hint = 0;
    snprintf(schema, sizeof schema, "%.*s", (int)strcspn(line + 11, "\""), line + 11);
    const frag_row_kind *kind = frag_row_kind_find(schema);
    assert_non_null(kind);
    const frag_row_field *field = frag_row_field_find(kind, path, &hint);
    return field != NULL ? field->better : FRAG_NO_METRIC;
}

/* Every number of every row, two percent up and down: what is no metric changes nothing that is
 * compared, or makes the rows incomparable; every metric is worse in one direction at least. */
static void two_percent_in_any_metric_are_caught(void **state)
{
    (void)state;
    size_t metrics = 0;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        frag_error error = {0};
        frag_json *json = frag_json_parse(lines[i], strlen(lines[i]), &error);
        path_list list = {.count = 0};
        frag_json_visit(json, add_path, &list);
        frag_json_destroy(json);
        for (size_t p = 0; p < list.count; p++) {
            uint64_t worse[2];
            uint64_t better[2];
            bool ends_elsewhere = strcmp(list.paths[p], "replay.events") == 0;
            frag_direction direction = direction_of(lines[i], list.paths[p]);
            if (direction == FRAG_NO_METRIC || direction >= FRAG_LESS_IF_ASKED || ends_elsewhere)
                continue;
            for (size_t side = 0; side < 2; side++) {
                double number = 0;
                char *now = changed(lines[i], list.paths[p], side == 0 ? 1.02 : 0.98, &number);
                frag_comparison comparison = compare(lines[i], now, &one_percent);
                worse[side] = comparison.verdicts[FRAG_VERDICT_WORSE];
                better[side] = comparison.verdicts[FRAG_VERDICT_BETTER];
                assert_int_equal(worse[side] + better[side], 1);
                frag_comparison_destroy(&comparison);
                free(now);
            }
            bool is_fact = direction == FRAG_EQUAL_IS_BETTER;
            assert_int_equal(worse[0] + worse[1], is_fact ? 2 : 1);
            metrics++;
        }
    }
    assert_true(metrics > 80);
}

static void half_a_percent_is_within_one(void **state)
{
    (void)state;
    char *now = changed(lines[0], "peak.reserved_bytes", 1.005, NULL);
    frag_comparison comparison = compare(lines[0], now, &one_percent);
    assert_int_equal(comparison.verdicts[FRAG_VERDICT_WITHIN], 1);
    assert_int_equal(comparison.verdicts[FRAG_VERDICT_WORSE], 0);
    frag_comparison_destroy(&comparison);
    free(now);
}

static void both_parts_of_a_threshold_must_be_exceeded(void **state)
{
    (void)state;
    char *now = changed(lines[0], "peak.reserved_bytes", 1.02, NULL);
    frag_threshold amounts[] = {{"peak.*", 0.01, 1e12}, {"peak.reserved_bytes", 0.01, 1e6}};
    frag_comparison_options options = {.thresholds = amounts, .threshold_count = 1};
    frag_comparison comparison = compare(lines[0], now, &options);
    assert_int_equal(comparison.verdicts[FRAG_VERDICT_WITHIN], 1);
    frag_comparison_destroy(&comparison);
    options.threshold_count = 2;
    comparison = compare(lines[0], now, &options);
    assert_int_equal(comparison.verdicts[FRAG_VERDICT_WORSE], 1);
    frag_comparison_destroy(&comparison);
    free(now);
}

/* The row with one text replaced. The caller frees. */
static char *replaced(const char *line, const char *old, const char *fresh)
{
    const char *at = strstr(line, old);
    assert_non_null(at);
    char *text = malloc(strlen(line) + strlen(fresh) + 1);
    sprintf(text, "%.*s%s%s", (int)(at - line), line, fresh, at + strlen(old));
    return text;
}

static void what_cannot_be_compared_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *old;
        const char *fresh;
        const char *problem;
    } cases[] = {
        {"\"digest\":\"2", "\"digest\":\"3", "other trace"},
        {"\"page_bytes\":2097152", "\"page_bytes\":65536",
         "other device: page_bytes=2097152 against page_bytes=65536"},
        {"\"label\":\"pytorch\"", "\"label\":\"mine\"", "the new results have no such row"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *now = replaced(lines[0], cases[i].old, cases[i].fresh);
        frag_comparison comparison = compare(lines[0], now, &one_percent);
        assert_int_equal(comparison.compared, 0);
        assert_int_equal(comparison.problems, 1);
        assert_int_equal(comparison.fresh, i == 2 ? 1 : 0);
        assert_non_null(strstr(comparison.rows[0].problem, cases[i].problem));
        frag_comparison_destroy(&comparison);
        free(now);
    }
}

static void other_options_under_the_same_label_are_compared_and_noted(void **state)
{
    (void)state;
    char *now = replaced(lines[0], "\"expandable_segments\":false", "\"expandable_segments\":true");
    frag_comparison comparison = compare(lines[0], now, &one_percent);
    assert_int_equal(comparison.compared, 1);
    assert_string_equal(comparison.rows[0].note, "other options: expandable_segments=false against "
                                                 "expandable_segments=true");
    frag_comparison_destroy(&comparison);
    free(now);
}

static void rows_of_another_version_are_compared_and_noted(void **state)
{
    (void)state;
    char *base = replaced(lines[0], "{\"schema\"", "{\"tool\":{\"version\":\"0.0.9\"},\"schema\"");
    char *now = replaced(lines[0], "{\"schema\"", "{\"tool\":{\"version\":\"0.1.0\"},\"schema\"");
    frag_comparison comparison = compare(base, now, &one_percent);
    assert_int_equal(comparison.compared, 1);
    assert_int_equal(comparison.problems, 0);
    assert_string_equal(
        comparison.rows[0].note,
        "made with fraglab 0.1.0, before with 0.0.9: a change may be fraglab's own");
    frag_comparison_destroy(&comparison);
    comparison = compare(base, base, &one_percent);
    assert_null(comparison.rows[0].note);
    frag_comparison_destroy(&comparison);
    free(base);
    free(now);
}

static void an_oom_that_comes_or_goes_is_a_verdict_of_its_own(void **state)
{
    (void)state;
    /* The second row is the first on a smaller device, where it ran out of memory. */
    char *small =
        replaced(lines[1], "\"capacity_bytes\":2147483648", "\"capacity_bytes\":6442450944");
    frag_comparison comparison = compare(lines[0], small, &one_percent);
    assert_int_equal(comparison.compared, 1);
    assert_int_equal(comparison.rows[0].metric_count, 1);
    assert_string_equal(comparison.rows[0].metrics[0].path, "oom.event");
    assert_int_equal(comparison.rows[0].metrics[0].verdict, FRAG_VERDICT_WORSE);
    assert_non_null(comparison.rows[0].note);
    frag_comparison_destroy(&comparison);
    comparison = compare(small, lines[0], &one_percent);
    assert_int_equal(comparison.rows[0].metrics[0].verdict, FRAG_VERDICT_BETTER);
    frag_comparison_destroy(&comparison);
    free(small);
}

static void only_the_metrics_that_are_asked_for_are_compared(void **state)
{
    (void)state;
    static const char *const metrics[] = {"final.*", "peak.allocated_bytes"};
    char *now =
        replaced(lines[0], "\"allocated_bytes\":4941745152", "\"allocated_bytes\":5041745152");
    frag_comparison_options wishes = one_percent;
    wishes.metrics = metrics;
    for (wishes.metric_count = 1; wishes.metric_count <= 2; wishes.metric_count++) {
        frag_comparison comparison = compare(lines[0], now, &wishes);
        assert_int_equal(comparison.verdicts[FRAG_VERDICT_WORSE], wishes.metric_count - 1);
        frag_comparison_destroy(&comparison);
    }
    free(now);
}

static void rows_find_each_other_in_any_order_by_device(void **state)
{
    (void)state;
    char base[3 * LINE_MAX_BYTES];
    char now[3 * LINE_MAX_BYTES];
    snprintf(base, sizeof base, "%s%s", lines[0], lines[1]);
    snprintf(now, sizeof now, "%s\n  \n%s", lines[1], lines[0]);
    frag_comparison comparison = compare(base, now, &one_percent);
    assert_int_equal(comparison.compared, 2);
    assert_int_equal(comparison.verdicts[FRAG_VERDICT_WORSE], 0);
    frag_comparison_destroy(&comparison);
}

static void what_is_no_row_is_refused_with_its_line(void **state)
{
    (void)state;
    static const char *const bad[] = {"{\"schema\":\"else\"}\n", "[]\n", "{\"schema\":1", "x"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[LINE_MAX_BYTES + 64];
        snprintf(text, sizeof text, "%s%s", lines[0], bad[i]);
        put(base_path, lines[0]);
        put(now_path, text);
        frag_error error = {0};
        frag_comparison comparison;
        assert_false(frag_comparison_read(base_path, now_path, &one_percent, &comparison, &error));
        assert_int_equal(error.code, FRAG_E_INPUT);
        assert_int_equal(error.line, 2);
        assert_string_equal(error.where, now_path);
    }
    put(base_path, "\n\n");
    frag_error error = {0};
    frag_comparison comparison;
    assert_false(frag_comparison_read(base_path, now_path, &one_percent, &comparison, &error));
    assert_non_null(strstr(error.sentence, "no result rows"));
}

static void a_star_stands_for_any_text(void **state)
{
    (void)state;
    assert_true(frag_metric_matches("peak.*", "peak.reserved_bytes"));
    assert_true(frag_metric_matches("fragmentation.*_ratio", "fragmentation.utilisation_ratio"));
    assert_true(frag_metric_matches("*", "anything"));
    assert_false(frag_metric_matches("peak.*", "final.reserved_bytes"));
    assert_false(frag_metric_matches("aba*aba", "aba"));
    assert_false(frag_metric_matches("peak", "peak.reserved_bytes"));
}

/* A change as large as the threshold is within it, in bytes and in shares; a percent more is not.
 */
static void a_change_at_its_threshold_is_within(void **state)
{
    (void)state;
    static const char path[] = "peak.reserved_bytes";
    double number = 0;
    free(changed(lines[0], path, 1.5, &number));
    char *half_more = changed(lines[0], path, 1.5, NULL),
         *half = changed(lines[0], path, 0.5, NULL);
    const frag_threshold thresholds[] = {
        {.pattern = "*", .ratio = 0.5},
        {.pattern = "*", .ratio = 0.49},
        {.pattern = "*", .amount = number / 2},
        {.pattern = "*", .amount = number / 2 - 1},
        {.pattern = "*", .amount = number / 2 - 1, .ratio = 0.5},
        {.pattern = "*", .amount = number / 2, .ratio = 0.49},
    };
    for (size_t i = 0; i < sizeof thresholds / sizeof thresholds[0]; i++) {
        const frag_comparison_options options = {.general = thresholds[i]};
        bool is_beyond = i == 1 || i == 3;
        frag_comparison worse = compare(lines[0], half_more, &options);
        frag_comparison better = compare(lines[0], half, &options);
        assert_int_equal(worse.verdicts[is_beyond ? FRAG_VERDICT_WORSE : FRAG_VERDICT_WITHIN], 1);
        assert_int_equal(better.verdicts[is_beyond ? FRAG_VERDICT_BETTER : FRAG_VERDICT_WITHIN], 1);
        frag_comparison_destroy(&worse);
        frag_comparison_destroy(&better);
    }
    free(half_more);
    free(half);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_again_has_no_finding),
        cmocka_unit_test(rows_on_other_devices_are_not_compared),
        cmocka_unit_test(two_percent_in_any_metric_are_caught),
        cmocka_unit_test(half_a_percent_is_within_one),
        cmocka_unit_test(both_parts_of_a_threshold_must_be_exceeded),
        cmocka_unit_test(what_cannot_be_compared_is_said),
        cmocka_unit_test(other_options_under_the_same_label_are_compared_and_noted),
        cmocka_unit_test(rows_of_another_version_are_compared_and_noted),
        cmocka_unit_test(an_oom_that_comes_or_goes_is_a_verdict_of_its_own),
        cmocka_unit_test(only_the_metrics_that_are_asked_for_are_compared),
        cmocka_unit_test(rows_find_each_other_in_any_order_by_device),
        cmocka_unit_test(what_is_no_row_is_refused_with_its_line),
        cmocka_unit_test(a_change_at_its_threshold_is_within),
        cmocka_unit_test(a_star_stands_for_any_text),
    };
    return cmocka_run_group_tests(tests, read_rows, remove_files);
}
