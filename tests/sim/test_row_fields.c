/* Tests of the tables of fields: what is in no table cannot be written, read or compared, what is
 * in one is written and read back, and docs/result-format.md shows the tables (--write puts them
 * there). */
#include "sim/rows/row_fields.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "sim/device/device_description.h"
#include "sim/rows/result.h"
#include "sim/rows/result_schema.h"
#include "studies/compare/comparison.h"
#include "studies/rows/result_rows.h"

#define PAGE "docs/result-format.md"

/* ---- a row with another value in every field */

static void put_value(frag_json *json, const frag_row_field *field, size_t number)
{
    char text[32];
    snprintf(text, sizeof text, "%s%zu", "text", number);
    if (strcmp(field->path, "schema") == 0)
        frag_json_text(json, field->path, FRAG_SCHEMA_RUN);
    else if (strcmp(field->path, "device.name") == 0)
        frag_json_text(json, field->path, "cuda");
    else if (field->place.name != NULL)
        frag_json_text(json, field->path, field->place.name(1));
    else if (field->type == FRAG_ROW_TEXT)
        frag_json_text(json, field->path, text);
    else if (field->type == FRAG_ROW_RATIO)
        frag_json_ratio(json, field->path, (double)number / 1024);
    else if (field->type == FRAG_ROW_FLAG)
        frag_json_flag(json, field->path, true);
    else if (field->type == FRAG_ROW_NULL)
        frag_json_null(json, field->path);
    else
        frag_json_number(json, field->path, 1000 + number);
}

/* changed: a field that gets another text (NULL: is left out). NULL: none. The caller frees. */
static char *full_line(const char *changed, const char *text)
{
    char *line = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&line, &length);
    frag_json *json = frag_json_create();
    for (size_t i = 0; frag_row_kind_run->fields[i].path != NULL; i++) {
        const frag_row_field *field = &frag_row_kind_run->fields[i];
        if (changed == NULL || strcmp(changed, field->path) != 0)
            put_value(json, field, i);
        else if (text != NULL)
            frag_json_text(json, field->path, text);
    }
    frag_json_object(json, "policy.options");
    frag_json_write(json, stream, false);
    fclose(stream);
    char *copy = frag_copy_text(line);
    frag_free(line);
    return copy;
}

static bool read_line(const char *line, frag_stored_rows *rows, frag_error *error)
{
    frag_input *input = frag_input_from_memory(line, strlen(line), "rows");
    bool ok = frag_stored_rows_read(input, rows, error);
    frag_input_close(input);
    return ok;
}

static frag_json *parsed(const char *line)
{
    frag_error error = {0};
    frag_json *json = frag_json_parse(line, strlen(line), &error);
    assert_non_null(json);
    return json;
}

/* Every value goes through the member that keeps it: two fields that shared one, or a field that
 * is not read, would come back as something else. */
static void what_is_read_is_written_again(void **state)
{
    (void)state;
    frag_stored_rows rows = {0};
    frag_error error = {0};
    char *line = full_line(NULL, NULL);
    assert_true(read_line(line, &rows, &error));
    frag_row row = rows.items[0]->row;
    row.stored = NULL;
    size_t kept = 0;
    for (const frag_row_field *field = frag_row_kind_run->fields; field->path != NULL; field++) {
        frag_row_value told = frag_row_get(&rows.items[0]->row, field);
        frag_row_value value = frag_row_get(&row, field);
        assert_int_equal(told.is_known, field->type != FRAG_ROW_NULL);
        if (field->place.compute != NULL || field->type == FRAG_ROW_NULL)
            continue;
        kept++;
        if (!value.is_known || value.number != told.number || value.ratio != told.ratio ||
            (field->type == FRAG_ROW_TEXT &&
             strcmp(frag_row_value_text(&value), frag_row_value_text(&told)) != 0))
            fail_msg("%s: not kept as it was read", field->path);
    }
    assert_true(kept > 90);
    frag_stored_rows_destroy(&rows);
    frag_free(line);
}

static void a_value_of_another_type_is_refused(void **state)
{
    (void)state;
    size_t refused = 0;
    for (const frag_row_field *field = frag_row_kind_run->fields; field->path != NULL; field++) {
        frag_stored_rows rows = {0};
        frag_error error = {0};
        if (field->type == FRAG_ROW_TEXT)
            continue;
        char *line = full_line(field->path, "many");
        assert_false(read_line(line, &rows, &error));
        assert_non_null(strstr(error.sentence, field->path));
        assert_int_equal(rows.count + rows.group_count, 0);
        refused++;
        frag_stored_rows_destroy(&rows);
        frag_free(line);
    }
    assert_true(refused > 80);
}

static void the_measured_time_is_that_of_all_calls(void **state)
{
    (void)state;
    frag_run_result result = {0};
    uint64_t sum = 0;
    for (uint32_t i = 0; i < FRAG_DEVICE_CALL_COUNT; i++) {
        result.call_ns[i] = (uint64_t)1 << i;
        sum += result.call_ns[i];
    }
    assert_int_equal(frag_run_measured_ns(&result), sum);
}

static void a_plan_has_what_others_leave_of_the_device(void **state)
{
    (void)state;
    const frag_trace trace = {.page_bytes = 0};
    frag_device_spec spec = {.capacity_bytes = FRAG_UNLIMITED, .used_by_others_bytes = 4096};
    assert_int_equal(frag_device_plan_bytes(&spec, &trace), FRAG_UNLIMITED);
    spec.capacity_bytes = 4096;
    assert_int_equal(frag_device_plan_bytes(&spec, &trace), 0);
    spec.capacity_bytes = 5 * FRAG_DEVICE_PAGE_BYTES;
    assert_int_equal(frag_device_plan_bytes(&spec, &trace), 4 * FRAG_DEVICE_PAGE_BYTES);
}

static void events_per_second_are_of_the_time_that_was_measured(void **state)
{
    (void)state;
    frag_run_result result = {.wall_ns = 2000, .replay.events = 1000};
    frag_row row = {.result = &result, .has_timing = true};
    size_t hint = 0;
    const frag_row_field *field =
        frag_row_field_find(frag_row_kind_run, "replay.events_per_second", &hint);
    assert_non_null(field);
    assert_int_equal(frag_row_get(&row, field).number, 500000000);
    result.wall_ns = 0;
    assert_false(frag_row_get(&row, field).is_known);
    result.wall_ns = 1;
    row.has_timing = false;
    assert_false(frag_row_get(&row, field).is_known);
}

/* ---- nothing but what the tables have */

static void an_unlisted_field_cannot_be_written(void **state)
{
    (void)state;
    char path[96] = "";
    char *line = full_line(NULL, NULL);
    frag_json *json = parsed(line);
    assert_false(frag_row_find_unlisted(json, path, sizeof path));
    frag_json_number(json, "peak.more_bytes", 1);
    assert_true(frag_row_find_unlisted(json, path, sizeof path));
    assert_string_equal(path, "peak.more_bytes");
    frag_json_destroy(json);
    frag_free(line);
    line = full_line("peak.active_bytes", NULL);
    json = parsed(line);
    assert_true(frag_row_find_unlisted(json, path, sizeof path));
    assert_string_equal(path, "peak.active_bytes");
    frag_json_destroy(json);
    frag_free(line);
}

static void the_schema_is_the_one_that_is_stored(void **state)
{
    (void)state;
    char *written = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&written, &bytes);
    frag_row_schema_write(stream);
    fclose(stream);
    char *stored = frag_alloc(bytes + 1, 1);
    FILE *file = fopen("schemas/run.json", "r");
    assert_non_null(file);
    if (fread(stored, 1, bytes + 1, file) != bytes || memcmp(stored, written, bytes) != 0)
        fail_msg("schemas/run.json is not what is written; python3 schemas/write.py writes it");
    fclose(file);
    frag_free(stored);
    free(written);
}

static void a_row_without_a_schema_says_so(void **state)
{
    (void)state;
    char path[64];
    frag_json *row = frag_json_create();
    frag_json_text(row, "policy", "best-fit");
    assert_true(frag_row_find_unlisted(row, path, sizeof path));
    assert_string_equal(path, "schema");
    frag_json_destroy(row);
}

static void formats_are_known_by_name(void **state)
{
    (void)state;
    frag_result_format format = FRAG_RESULT_FORMAT_COUNT;
    assert_true(frag_result_format_find("table", &format));
    assert_int_equal(format, FRAG_RESULT_TABLE);
    assert_true(frag_result_format_find("markdown", &format));
    assert_int_equal(format, FRAG_RESULT_MARKDOWN);
    assert_false(frag_result_format_find("tables", &format));
}

static void an_unlisted_field_cannot_be_read(void **state)
{
    (void)state;
    const char *paths[] = {"peak.more_bytes",  "peak",         "oom",
                           "device_calls.sim", "memory_stats", ""};
    size_t hint = 0;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        assert_null(frag_row_field_find(frag_row_kind_run, paths[i], &hint));
    assert_non_null(frag_row_field_find(frag_row_kind_run, "memory_stats.active.all", &hint));
    assert_non_null(frag_row_field_find(frag_row_kind_run, "policy.options.align", &hint));
    assert_null(frag_row_kind_find("fraglab.verify/1"));
}

static void write_file(const char *path, const char *line, const char *more)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "%.*s,%s}\n", (int)(strrchr(line, '}') - line), line, more);
    fclose(file);
}

/* And what a table has is compared by its direction. */
static void an_unlisted_field_cannot_be_compared(void **state)
{
    (void)state;
    const char *metrics[] = {"peak.*", "more_*"};
    const frag_comparison_options all = {.general = {.pattern = "*"}};
    const frag_comparison_options asked = {
        .general = {.pattern = "*"}, .metrics = metrics, .metric_count = 2};
    char *line = full_line(NULL, NULL);
    char folder[] = "/tmp/row_fields.XXXXXX";
    char base[64];
    char now[64];
    assert_non_null(mkdtemp(folder));
    snprintf(base, sizeof base, "%s/base", folder);
    snprintf(now, sizeof now, "%s/now", folder);
    write_file(base, line, "\"more_bytes\":1,\"memory_stats\":{\"a\":5}");
    write_file(now, line, "\"more_bytes\":2,\"memory_stats\":{\"a\":4}");
    frag_comparison comparison;
    frag_error error = {0};
    assert_true(frag_comparison_read(base, now, &all, &comparison, &error));
    size_t expected = 1; /* memory_stats.a */
    for (const frag_row_field *field = frag_row_kind_run->fields; field->path != NULL; field++)
        expected += field->better == FRAG_LESS_IS_BETTER || field->better == FRAG_MORE_IS_BETTER ||
                    field->better == FRAG_EQUAL_IS_BETTER;
    assert_int_equal(comparison.rows[0].metric_count, expected);
    assert_int_equal(comparison.verdicts[FRAG_VERDICT_BETTER], 1);
    assert_int_equal(comparison.verdicts[FRAG_VERDICT_SAME], expected - 1);
    frag_comparison_destroy(&comparison);
    assert_true(frag_comparison_read(base, now, &asked, &comparison, &error));
    assert_int_equal(comparison.rows[0].metric_count, 4);
    frag_comparison_destroy(&comparison);
    remove(base);
    remove(now);
    remove(folder);
    frag_free(line);
}

/* ---- the tables themselves */

static void every_path_is_there_once(void **state)
{
    (void)state;
    size_t count = 0;
    const frag_row_kind *kinds = frag_row_kinds(&count);
    for (size_t k = 0; k < count; k++)
        for (const frag_row_field *a = kinds[k].fields; a->path != NULL; a++)
            for (const frag_row_field *b = kinds[k].fields; b < a; b++)
                assert_string_not_equal(a->path, b->path);
}

/* A number that nobody judges is a choice, a text that is judged a mistake. */
static void versions_of_cuda_are_told_as_people_write_them(void **state)
{
    (void)state;
    static const struct {
        int version;
        const char *text; /* NULL: not known */
    } cases[] = {{0, NULL}, {12040, "12.4"}, {13000, "13.0"}, {11080, "11.8"}, {12120, "12.12"}};
    size_t hint = 0;
    const frag_row_field *runtime =
        frag_row_field_find(frag_row_kind_run, "card.runtime_version", &hint);
    const frag_row_field *driver =
        frag_row_field_find(frag_row_kind_run, "card.driver_version", &hint);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        frag_row_gpu gpu = {
            .facts = {.runtime_version = cases[i].version, .driver_version = cases[i].version}};
        frag_row row = {.gpu = &gpu};
        frag_row_value values[] = {frag_row_get(&row, runtime), frag_row_get(&row, driver)};
        for (size_t k = 0; k < 2; k++) {
            assert_int_equal(values[k].is_known, cases[i].text != NULL);
            if (cases[i].text != NULL)
                assert_string_equal(frag_row_value_text(&values[k]), cases[i].text);
        }
    }
}

static void only_numbers_are_metrics(void **state)
{
    (void)state;
    for (const frag_row_field *field = frag_row_kind_run->fields; field->path != NULL; field++)
        if (field->type == FRAG_ROW_TEXT || field->type == FRAG_ROW_FLAG ||
            field->type == FRAG_ROW_NULL)
            assert_int_equal(field->better, FRAG_NO_METRIC);
}

static void every_device_call_has_its_fields(void **state)
{
    (void)state;
    char path[64];
    size_t hint = 0;
    for (uint32_t i = 0; i < FRAG_DEVICE_CALL_COUNT; i++) {
        const char *name = frag_device_call_name((frag_device_call)i);
        snprintf(path, sizeof path, "device_calls.%s", name);
        const frag_row_field *calls = frag_row_field_find(frag_row_kind_run, path, &hint);
        assert_int_equal(calls->place.offset,
                         offsetof(frag_run_result, calls) + i * sizeof(uint64_t));
        snprintf(path, sizeof path, "device_times.%s_ns", name);
        const frag_row_field *times = frag_row_field_find(frag_row_kind_run, path, &hint);
        assert_int_equal(times->place.offset,
                         offsetof(frag_run_result, call_ns) + i * sizeof(uint64_t));
    }
}

/* ---- the tables on the page */

static const char *const type_names[] = {
    [FRAG_ROW_TEXT] = "text",   [FRAG_ROW_COUNT] = "number",  [FRAG_ROW_BYTES] = "bytes",
    [FRAG_ROW_NS] = "ns",       [FRAG_ROW_SIGNED] = "number", [FRAG_ROW_SIGNED_BYTES] = "bytes",
    [FRAG_ROW_RATIO] = "ratio", [FRAG_ROW_FLAG] = "flag",     [FRAG_ROW_NULL] = "null",
};

static const char *const better_names[] = {
    [FRAG_NO_METRIC] = "",           [FRAG_LESS_IS_BETTER] = "less",
    [FRAG_MORE_IS_BETTER] = "more",  [FRAG_EQUAL_IS_BETTER] = "equal",
    [FRAG_LESS_IF_ASKED] = "(less)", [FRAG_MORE_IF_ASKED] = "(more)",
};

/* Options and paths of fields stand in backquotes. */
static void add_meaning(frag_text *page, const char *meaning)
{
    while (*meaning != '\0') {
        size_t word = strcspn(meaning, " ;:,()");
        size_t hint = 0;
        char path[96];
        snprintf(path, sizeof path, "%.*s", (int)word, meaning);
        bool is_code = strncmp(path, "--", 2) == 0 ||
                       (strchr(path, '.') != NULL &&
                        frag_row_field_find(frag_row_kind_run, path, &hint) != NULL);
        frag_text_add(page, is_code ? "`%s`" : "%s", path);
        meaning += word;
        size_t between = strspn(meaning, " ;:,()");
        frag_text_add(page, "%.*s", (int)between, meaning);
        meaning += between;
    }
}

static bool is_said_above(const frag_row_kind *kind, const frag_row_field *field)
{
    size_t hint = 0;
    const frag_row_field *above = frag_row_field_find(frag_row_kind_run, field->path, &hint);
    return kind != frag_row_kind_run && above != NULL &&
           strcmp(above->meaning, field->meaning) == 0;
}

static void add_field(frag_text *page, const frag_row_kind *kind, const frag_row_field *field)
{
    frag_text_add(page, "| `%s` | %s%s | %s | ", field->path, type_names[field->type],
                  field->is_nullable ? " or null" : "", better_names[field->better]);
    if (strcmp(field->path, "schema") == 0)
        frag_text_add(page, "`%s`", kind->schema);
    else if (is_said_above(kind, field))
        frag_text_add(page, "as above");
    else
        add_meaning(page, field->meaning);
    frag_text_add(page, " |\n");
}

/* An open object is one line. */
static void add_open(frag_text *page, const frag_row_field *field)
{
    size_t length = strlen(field->path);
    bool is_object = strchr(field->path, '*') != NULL;
    bool is_always = strncmp(field->path, "policy.", 7) == 0;
    frag_text_add(page, "| `%.*s` | %s | %s | ", (int)(length - (is_object ? 2 : 0)), field->path,
                  !is_object  ? "number or null"
                  : is_always ? "object"
                              : "object or null",
                  better_names[field->better]);
    add_meaning(page, field->meaning);
    frag_text_add(page, " |\n");
}

static void add_table(frag_text *page, const frag_row_kind *kind)
{
    frag_text_add(page, "| field | type | better | meaning |\n| --- | --- | --- | --- |\n");
    for (const frag_row_field *field = kind->fields; field->path != NULL; field++) {
        add_field(page, kind, field);
        if (kind->open_fields[0].path != NULL && strcmp(field->path, "policy.label") == 0)
            add_open(page, &kind->open_fields[0]);
    }
    for (size_t i = 1; kind == frag_row_kind_run && kind->open_fields[i].path != NULL; i++)
        add_open(page, &kind->open_fields[i]);
}

static char *read_page(void)
{
    FILE *file = fopen(PAGE, "r");
    char *text = frag_alloc(1 << 20, 1);
    assert_non_null(file);
    size_t length = fread(text, 1, (1 << 20) - 1, file);
    assert_true(length > 0 && length < (1 << 20) - 1);
    fclose(file);
    return text;
}

/* The page with every table between its two marks as it should be. */
static void fill_page(const char *from, frag_text *page)
{
    size_t count = 0;
    const frag_row_kind *kinds = frag_row_kinds(&count);
    for (size_t i = 0; i < count; i++) {
        char mark[64];
        snprintf(mark, sizeof mark, "<!-- fields of %s -->\n", kinds[i].name);
        const char *begin = strstr(from, mark);
        const char *end = begin != NULL ? strstr(begin, "<!-- end -->") : NULL;
        if (begin == NULL || end == NULL)
            fail_msg(PAGE " has no table between '%.*s' and '<!-- end -->'", (int)strlen(mark) - 1,
                     mark);
        begin += strlen(mark);
        frag_text_add_bytes(page, from, (size_t)(begin - from));
        add_table(page, &kinds[i]);
        from = end;
    }
    frag_text_add(page, "%s", from);
}

static void the_page_shows_the_tables(void **state)
{
    (void)state;
    frag_text now = {0};
    char *page = read_page();
    fill_page(page, &now);
    if (strcmp(page, now.bytes) != 0)
        fail_msg(PAGE " shows other fields than the tables; 'make golden-update' writes them");
    frag_text_destroy(&now);
    frag_free(page);
}

static int write_page(void)
{
    frag_text now = {0};
    char *page = read_page();
    fill_page(page, &now);
    FILE *file = fopen(PAGE, "w");
    bool ok = file != NULL && fputs(now.bytes, file) >= 0;
    ok = file != NULL && fclose(file) == 0 && ok;
    frag_text_destroy(&now);
    frag_free(page);
    return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--write") == 0)
        return write_page();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_is_written_again),
        cmocka_unit_test(a_value_of_another_type_is_refused),
        cmocka_unit_test(the_measured_time_is_that_of_all_calls),
        cmocka_unit_test(a_plan_has_what_others_leave_of_the_device),
        cmocka_unit_test(events_per_second_are_of_the_time_that_was_measured),
        cmocka_unit_test(an_unlisted_field_cannot_be_written),
        cmocka_unit_test(an_unlisted_field_cannot_be_read),
        cmocka_unit_test(the_schema_is_the_one_that_is_stored),
        cmocka_unit_test(a_row_without_a_schema_says_so),
        cmocka_unit_test(formats_are_known_by_name),
        cmocka_unit_test(an_unlisted_field_cannot_be_compared),
        cmocka_unit_test(every_path_is_there_once),
        cmocka_unit_test(versions_of_cuda_are_told_as_people_write_them),
        cmocka_unit_test(only_numbers_are_metrics),
        cmocka_unit_test(every_device_call_has_its_fields),
        cmocka_unit_test(the_page_shows_the_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
