#include "sim/rows/result_schema.h"

#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "sim/rows/row_fields.h"

enum { PATH_BYTES = 256 };

/* ---- the types as JSON Schema names them */

static const struct {
    const char *name;
    bool has_minimum; /* 0 */
    const char *unit;
} types[] = {
    [FRAG_ROW_TEXT] = {"string", false, NULL},
    [FRAG_ROW_COUNT] = {"integer", true, NULL},
    [FRAG_ROW_BYTES] = {"integer", true, "bytes"},
    [FRAG_ROW_NS] = {"integer", true, "nanoseconds"},
    [FRAG_ROW_SIGNED] = {"integer", false, NULL},
    [FRAG_ROW_SIGNED_BYTES] = {"integer", false, "bytes"},
    [FRAG_ROW_RATIO] = {"number", false, "ratio"},
    [FRAG_ROW_FLAG] = {"boolean", false, NULL},
    [FRAG_ROW_NULL] = {"null", false, NULL},
};

static const char *join(char path[PATH_BYTES], const char *at, const char *key)
{
    int length = snprintf(path, PATH_BYTES, "%s.%s", at, key);
    FRAG_ASSERT(length > 0 && length < PATH_BYTES);
    return path;
}

static void put_text(frag_json *json, const char *at, const char *key, const char *text)
{
    char path[PATH_BYTES];
    frag_json_text(json, join(path, at, key), text);
}

static void put_type(frag_json *json, const char *at, const char *name, bool is_nullable)
{
    char path[PATH_BYTES];
    join(path, at, "type");
    if (!is_nullable) {
        frag_json_text(json, path, name);
        return;
    }
    frag_json_append_text(json, path, name);
    frag_json_append_text(json, path, "null");
}

static void put_required(frag_json *json, const char *at, const char *name)
{
    char path[PATH_BYTES];
    frag_json_append_text(json, join(path, at, "required"), name);
}

/* at: of the object that has it; name: without the object's. */
static void put_field(frag_json *json, const frag_row_kind *kind, const char *at, const char *name,
                      const frag_row_field *field)
{
    char properties[PATH_BYTES];
    char path[PATH_BYTES];
    char key[PATH_BYTES];
    join(path, join(properties, at, "properties"), name);
    put_required(json, at, name);
    if (strcmp(field->path, "schema") == 0)
        put_text(json, path, "const", kind->schema);
    else
        put_type(json, path, types[field->type].name, field->is_nullable);
    if (types[field->type].has_minimum)
        frag_json_number(json, join(key, path, "minimum"), 0);
    char meaning[512];
    const char *unit = types[field->type].unit;
    snprintf(meaning, sizeof meaning, "%s%s%s%s", field->meaning, unit != NULL ? " [" : "",
             unit != NULL ? unit : "", unit != NULL ? "]" : "");
    put_text(json, path, "description", meaning);
}

/* The object that a field lies in, made when it is first named. */
static void put_nested(frag_json *json, const frag_row_kind *kind, const char *at,
                       const frag_row_field *field, const char *dot)
{
    char group[64];
    snprintf(group, sizeof group, "%.*s", (int)(dot - field->path), field->path);
    char properties[PATH_BYTES];
    char path[PATH_BYTES];
    join(path, join(properties, at, "properties"), group);
    if (frag_json_at_path(json, path) == NULL) {
        put_required(json, at, group);
        put_type(json, path, "object", frag_row_is_absent_group(kind, group));
    }
    put_field(json, kind, path, dot + 1, field);
}

/* What no table of fields has: objects whose members depend on policy and release. */
static void put_policy_options(frag_json *json, const char *at)
{
    char policy[PATH_BYTES];
    char path[PATH_BYTES];
    char key[PATH_BYTES];
    static const char *const values[] = {"string", "number", "boolean", "null"};
    put_required(json, join(policy, at, "properties.policy"), "options");
    join(path, policy, "properties.options");
    put_type(json, path, "object", false);
    put_text(json, path, "description", "every option of the policy with its value");
    join(key, path, "additionalProperties.type");
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        frag_json_append_text(json, key, values[i]);
}

static void put_statistics(frag_json *json, const char *at)
{
    char path[PATH_BYTES];
    char key[PATH_BYTES];
    join(path, at, "properties.memory_stats_event");
    put_type(json, path, "integer", true);
    frag_json_number(json, join(key, path, "minimum"), 0);
    put_text(json, path, "description",
             "with --stats-at: the event right after which the statistics were taken");
    join(path, at, "properties.memory_stats");
    put_type(json, path, "object", true);
    put_text(json, path, "description", "with --stats-at: the statistics of the policy");
    put_text(json, path, "additionalProperties.type", "integer");
}

static void put_kind(frag_json *json, const frag_row_kind *kind)
{
    char at[PATH_BYTES];
    join(at, "$defs", kind->name);
    put_text(json, at, "description", kind->meaning);
    put_type(json, at, "object", false);
    for (const frag_row_field *field = kind->fields; field->path != NULL; field++) {
        const char *dot = strchr(field->path, '.');
        if (dot == NULL)
            put_field(json, kind, at, field->path, field);
        else
            put_nested(json, kind, at, field, dot);
    }
    if (kind->open_fields[0].path != NULL)
        put_policy_options(json, at);
    if (kind == frag_row_kind_run)
        put_statistics(json, at);
}

void frag_row_schema_write(FILE *stream)
{
    size_t count = 0;
    const frag_row_kind *kinds = frag_row_kinds(&count);
    frag_json *json = frag_json_create();
    frag_json_text(json, "$schema", "https://json-schema.org/draft/2020-12/schema");
    frag_json_text(json, "title", "Result rows of fraglab");
    frag_json_text(json, "description",
                   "One row of run, sweep or min-capacity with --format jsonl. Later versions may "
                   "add fields; none changes its meaning.");
    for (size_t i = 0; i < count; i++) {
        char reference[64];
        snprintf(reference, sizeof reference, "#/$defs/%s", kinds[i].name);
        frag_json *item = frag_json_add(json, "oneOf");
        frag_json_text(item, "$ref", reference);
    }
    for (size_t i = 0; i < count; i++)
        put_kind(json, &kinds[i]);
    frag_json_write(json, stream, true);
}
