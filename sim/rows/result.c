#include "sim/rows/result.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/text.h"
#include "sim/rows/row_fields.h"

static const char *const format_names[FRAG_RESULT_FORMAT_COUNT] = {
    [FRAG_RESULT_TABLE] = "table",
    [FRAG_RESULT_JSONL] = "jsonl",
    [FRAG_RESULT_CSV] = "csv",
    [FRAG_RESULT_MARKDOWN] = "markdown",
};

bool frag_result_format_find(const char *name, frag_result_format *format)
{
    for (size_t i = 0; i < FRAG_RESULT_FORMAT_COUNT; i++)
        if (strcmp(name, format_names[i]) == 0) {
            *format = (frag_result_format)i;
            return true;
        }
    return false;
}

/* ---- JSON Lines */

static void write_json_option(frag_json *json, const frag_option *option,
                              const frag_option_value *value)
{
    char path[96];
    snprintf(path, sizeof path, "policy.options.%s", option->key);
    switch (option->type) {
    case FRAG_OPTION_BYTES:
    case FRAG_OPTION_COUNT:
        frag_json_number(json, path, value->number);
        break;
    case FRAG_OPTION_RATIO:
        frag_json_ratio(json, path, value->ratio);
        break;
    case FRAG_OPTION_FLAG:
        frag_json_flag(json, path, value->number != 0);
        break;
    case FRAG_OPTION_ENUM:
    case FRAG_OPTION_TEXT:
        frag_json_text(json, path, value->text);
        break;
    }
}

static bool is_before_options(const frag_row_field *field)
{
    return strcmp(field->path, "policy.label") == 0;
}

void frag_result_add_options(frag_json *json, const frag_policy_ops *ops,
                             const frag_option_value *values)
{
    frag_json_object(json, "policy.options");
    for (uint32_t i = 0; ops->options != NULL && ops->options[i].key != NULL; i++)
        write_json_option(json, &ops->options[i], &values[i]);
}

static void write_json_stats(frag_json *json, const frag_row_stats *stats)
{
    const frag_stats *values = &stats->values;
    frag_json_number(json, "memory_stats_event", stats->event);
    if (stats->event == FRAG_UNLIMITED)
        frag_json_null(json, "memory_stats");
    else
        frag_json_object(json, "memory_stats");
    for (uint32_t i = 0; i < values->names.count; i++)
        frag_json_entry(json, "memory_stats", frag_strings_get(&values->names, i),
                        values->values[i]);
}

static void write_json_field(frag_json *json, const frag_row *row, const frag_row_field *field)
{
    char group[64];
    snprintf(group, sizeof group, "%.*s", (int)strcspn(field->path, "."), field->path);
    frag_row_value value = frag_row_get(row, field);
    /* One null for a group of fields that are there or not as a whole. */
    if (frag_row_is_absent(row, field) && frag_row_is_absent_group(frag_row_kind_run, group))
        frag_json_null(json, group);
    else if (!value.is_known)
        frag_json_null(json, field->path);
    else if (field->type == FRAG_ROW_TEXT)
        frag_json_text(json, field->path, frag_row_value_text(&value));
    else if (field->type == FRAG_ROW_RATIO)
        frag_json_ratio(json, field->path, value.ratio);
    else if (field->type == FRAG_ROW_FLAG)
        frag_json_flag(json, field->path, value.number != 0);
    else
        frag_json_number(json, field->path, value.number);
}

static void write_jsonl(FILE *stream, const frag_row *row)
{
    frag_json *json = frag_json_create();
    for (const frag_row_field *field = frag_row_kind_run->fields; field->path != NULL; field++) {
        write_json_field(json, row, field);
        if (is_before_options(field))
            frag_result_add_options(json, row->ops, row->values);
    }
    if (row->stats != NULL)
        write_json_stats(json, row->stats);
    frag_json_write(json, stream, false);
}

/* ---- CSV (RFC 4180) */

static void write_csv_value(FILE *stream, const frag_row *row, const frag_row_field *field)
{
    frag_row_value value = frag_row_get(row, field);
    if (!value.is_known)
        return;
    if (field->type == FRAG_ROW_TEXT)
        frag_text_write_csv(stream, frag_row_value_text(&value));
    else if (field->type == FRAG_ROW_RATIO)
        fprintf(stream, "%.12g", value.ratio);
    else if (field->type == FRAG_ROW_FLAG)
        fputs(value.number != 0 ? "true" : "false", stream);
    else
        fprintf(stream, "%" PRIu64, value.number);
}

/* All options of a policy as one column: "align=512;space=growing". */
static void write_csv_options(FILE *stream, const frag_row *row)
{
    frag_text text = {0};
    frag_text_add(&text, "%s", row->options_text != NULL ? row->options_text : "");
    for (uint32_t i = 0; row->ops->options != NULL && row->ops->options[i].key != NULL; i++)
        frag_text_add(&text, "%s%s=%s", i > 0 ? ";" : "", row->ops->options[i].key,
                      row->values[i].text);
    frag_text_write_csv(stream, text.bytes);
    frag_text_destroy(&text);
}

/* row NULL: the header. */
static void write_csv(FILE *stream, const frag_row *row)
{
    const frag_row_field *fields = frag_row_kind_run->fields;
    for (const frag_row_field *field = fields; field->path != NULL; field++) {
        fputs(field > fields ? "," : "", stream);
        if (row == NULL)
            fputs(field->path, stream);
        else
            write_csv_value(stream, row, field);
        if (!is_before_options(field))
            continue;
        fputs(row == NULL ? ",policy.options" : ",", stream);
        if (row != NULL)
            write_csv_options(stream, row);
    }
    fputc('\n', stream);
}

void frag_result_begin(frag_result_format format, FILE *stream)
{
    if (format == FRAG_RESULT_CSV)
        write_csv(stream, NULL);
}

void frag_result_write(frag_result_format format, FILE *stream, const frag_row *row)
{
    if (format == FRAG_RESULT_JSONL)
        write_jsonl(stream, row);
    else
        write_csv(stream, row);
}
