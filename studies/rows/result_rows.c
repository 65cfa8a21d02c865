#include "studies/rows/result_rows.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/formats/lines.h"
#include "base/memory.h"
#include "base/text.h"
#include "sim/rows/row_fields.h"
#include "studies/rows/row_policy.h"

#define LOOK_BYTES 64

/* ---- fields */

static const char *text_at(const frag_json *json, const char *path)
{
    const char *text = NULL;
    frag_json_find_text(json, path, &text);
    return text;
}

static bool is_of_card(const frag_json *json)
{
    const char *name = text_at(json, "device.name");
    return name != NULL && strcmp(name, "cuda") == 0;
}

/* ---- groups */

static bool is_same_text(const frag_json *one, const frag_json *other, const char *path)
{
    const char *a = text_at(one, path);
    const char *b = text_at(other, path);
    return strcmp(a != NULL ? a : "", b != NULL ? b : "") == 0;
}

static bool is_same_group(const frag_json *one, const frag_json *other)
{
    static const char *const texts[] = {"trace.name", "trace.digest",      "device.name",
                                        "device.gpu", "device.gpu_digest", "device.latency",
                                        "card.name"};
    static const char *const numbers[] = {"trace.device", "device.capacity_bytes",
                                          "device.used_by_others_bytes", "card.ordinal"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (!is_same_text(one, other, texts[i]))
            return false;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (frag_json_number_at(one, numbers[i], FRAG_UNLIMITED) !=
            frag_json_number_at(other, numbers[i], FRAG_UNLIMITED))
            return false;
    return true;
}

static frag_row_group *group_of(const frag_stored_rows *rows, const frag_json *json)
{
    for (size_t i = rows->count; i-- > 0;)
        if (is_same_group(rows->items[i]->json, json))
            return rows->items[i]->group;
    return NULL;
}

static frag_row_group *add_group(frag_stored_rows *rows, const frag_row_group *read)
{
    frag_row_group *group = frag_alloc(1, sizeof *group);
    *group = *read;
    rows->groups = frag_grow(rows->groups, &rows->group_capacity, rows->group_count + 1,
                             sizeof(frag_row_group *));
    rows->groups[rows->group_count++] = group;
    return group;
}

/* ---- reading */

/* Every field goes where a run would have it; what all rows of a group say is kept once. */
static bool take_fields(frag_stored_rows *rows, frag_stored_row *stored, frag_error *error)
{
    const frag_json *json = stored->json;
    frag_row_group read = {.card = {.limit = "card"}};
    frag_device_description_clear(&read.gpu);
    void *const parts[FRAG_PART_COUNT] = {
        [FRAG_PART_ROW] = &stored->row,       [FRAG_PART_POLICY] = &stored->ops,
        [FRAG_PART_TRACE] = &read.trace,      [FRAG_PART_DEVICE] = &read.device,
        [FRAG_PART_DESCRIPTION] = &read.gpu,  [FRAG_PART_CARD] = &read.card,
        [FRAG_PART_RESULT] = &stored->result, [FRAG_PART_PACKING] = &stored->packing,
    };
    if (!frag_row_take(json, parts, error))
        return false;
    stored->group = group_of(rows, json);
    if (stored->group != NULL)
        return true;
    stored->group = add_group(rows, &read);
    if (text_at(json, "device.gpu") != NULL)
        stored->group->device.gpu = &stored->group->gpu;
    return true;
}

static void connect(frag_stored_row *stored)
{
    const frag_json *json = stored->json;
    frag_row_group *group = stored->group;
    frag_decomposition *parts = &stored->result.at_peak;
    parts->reserved_bytes = parts->requested_bytes + parts->rounding_bytes + parts->unsplit_bytes +
                            parts->holes_bytes + parts->cached_bytes + parts->waiting_bytes +
                            parts->page_slack_bytes;
    stored->row.trace = &group->trace;
    stored->row.ops = &stored->ops;
    stored->row.device = &group->device;
    stored->row.gpu = is_of_card(json) ? &group->card : NULL;
    stored->row.result = &stored->result;
    stored->row.packing =
        frag_json_number_at(json, "bounds.packing_bytes", FRAG_UNLIMITED) != FRAG_UNLIMITED
            ? &stored->packing
            : NULL;
    stored->row.stored = json;
}

static bool add_row(frag_stored_rows *rows, frag_json *json, const char *line, size_t length,
                    frag_error *error)
{
    frag_stored_row *stored = frag_alloc(1, sizeof *stored);
    frag_text text = {0};
    stored->json = json;
    if (!take_fields(rows, stored, error)) {
        frag_free(stored);
        return false;
    }
    connect(stored);
    frag_text_add_bytes(&text, line, length);
    stored->line = text.bytes;
    rows->items =
        frag_grow(rows->items, &rows->capacity, rows->count + 1, sizeof(frag_stored_row *));
    rows->items[rows->count++] = stored;
    return true;
}

static bool read_row(void *context, const char *line, size_t length, frag_error *error)
{
    frag_stored_rows *rows = context;
    static const char *const needed[] = {"trace.name", "trace.digest", "policy.name",
                                         "policy.label", "device.name"};
    frag_json *json = frag_json_parse(line, length, error);
    if (json == NULL)
        return false;
    const char *schema = text_at(json, "schema");
    char found[FRAG_JSON_FOUND_MAX];
    bool ok = true;
    if (schema == NULL || strcmp(schema, FRAG_SCHEMA_RUN) != 0)
        ok = frag_fail(
            error, FRAG_E_INPUT,
            "the schema %s; expected rows of 'fraglab run' or 'fraglab sweep' (" FRAG_SCHEMA_RUN
            ")",
            frag_json_found(frag_json_at(json, "schema"), found));
    for (size_t i = 0; ok && i < sizeof needed / sizeof needed[0]; i++)
        if (text_at(json, needed[i]) == NULL)
            ok =
                frag_fail(error, FRAG_E_INPUT, "%s of the row %s; expected a text, as in every row",
                          needed[i], frag_json_found(frag_json_at_path(json, needed[i]), found));
    ok = ok && add_row(rows, json, line, length, error);
    if (!ok)
        frag_json_destroy(json);
    return ok;
}

bool frag_stored_rows_read(frag_input *input, frag_stored_rows *rows, frag_error *error)
{
    return frag_each_line(input, read_row, rows, error);
}

bool frag_stored_rows_detect(frag_input *input, bool *is_one, frag_error *error)
{
    static const char start[] = "{\"schema\":\"fraglab.";
    const unsigned char *bytes = NULL;
    size_t count = 0;
    if (!frag_input_peek(input, LOOK_BYTES, &bytes, &count, error))
        return false;
    *is_one = count >= strlen(start) && memcmp(bytes, start, strlen(start)) == 0;
    return true;
}

void frag_stored_rows_destroy(frag_stored_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        frag_json_destroy(rows->items[i]->json);
        frag_free(rows->items[i]->line);
        frag_free(rows->items[i]);
    }
    for (size_t i = 0; i < rows->group_count; i++)
        frag_free(rows->groups[i]);
    frag_free(rows->items);
    frag_free(rows->groups);
    *rows = (frag_stored_rows){0};
}

/* ---- printing */

static void print_tables(const frag_stored_rows *rows, frag_result_format format, FILE *stream)
{
    frag_row *together = frag_alloc(rows->count, sizeof *together);
    size_t count = 0;
    for (size_t g = 0; g < rows->group_count; g++)
        for (size_t i = 0; i < rows->count; i++)
            if (rows->items[i]->group == rows->groups[g])
                together[count++] = rows->items[i]->row;
    frag_result_table(format, stream, together, count);
    frag_free(together);
}

/* ---- CSV */

static bool add_option(void *context, const char *key, const frag_json_value *value)
{
    frag_text *text = context;
    char written[4096];
    frag_row_policy_spell(value, written, sizeof written);
    frag_text_add(text, "%s%s=%s", text->length > 0 ? ";" : "", key, written);
    return true;
}

/* As the policy itself names them, where it is known; else as the row does. */
static char *options_text(const frag_json *json)
{
    frag_text text = {0};
    frag_policy_spec spec = {0};
    frag_error none = {0};
    frag_text_add(&text, "%s", "");
    if (frag_row_policy(json, &spec, &none)) {
        for (uint32_t i = 0; i < spec.value_count; i++)
            frag_text_add(&text, "%s%s=%s", i > 0 ? ";" : "", spec.ops->options[i].key,
                          spec.values[i].text);
        frag_policy_spec_destroy(&spec);
    } else {
        frag_json_each_in(frag_json_at_path(json, "policy.options"), add_option, &text);
    }
    return text.bytes;
}

static void print_csv(const frag_stored_rows *rows, FILE *stream)
{
    frag_result_begin(FRAG_RESULT_CSV, stream);
    for (size_t i = 0; i < rows->count; i++) {
        frag_row row = rows->items[i]->row;
        char *options = options_text(row.stored);
        row.options_text = options;
        frag_result_write(FRAG_RESULT_CSV, stream, &row);
        frag_free(options);
    }
}

void frag_stored_rows_print(const frag_stored_rows *rows, frag_result_format format, FILE *stream)
{
    if (format == FRAG_RESULT_CSV)
        print_csv(rows, stream);
    else if (format != FRAG_RESULT_JSONL)
        print_tables(rows, format, stream);
    else
        for (size_t i = 0; i < rows->count; i++)
            fprintf(stream, "%s\n", rows->items[i]->line);
}
