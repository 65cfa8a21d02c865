/* What a row says in a field of its table: taken from the run, or from the row as it was stored;
 * and back from there to where a run keeps it. */
#include <string.h>

#include "base/error.h"
#include "sim/device/device_description.h"
#include "sim/rows/row_fields.h"

static const frag_row_value unknown = {0};

const char *frag_row_value_text(const frag_row_value *value)
{
    return value->text != NULL ? value->text : value->own;
}

/* ---- reading from a row */

static const void *part_of(const frag_row *row, frag_row_part part)
{
    switch (part) {
    case FRAG_PART_ROW:
        return row;
    case FRAG_PART_POLICY:
        return row->ops;
    case FRAG_PART_TRACE:
        return row->trace;
    case FRAG_PART_DEVICE:
        return row->device;
    case FRAG_PART_DESCRIPTION:
        return row->device->gpu;
    case FRAG_PART_CARD:
        return row->gpu;
    case FRAG_PART_RESULT:
        return row->result;
    case FRAG_PART_PACKING:
        return row->packing;
    case FRAG_PART_NONE:
    case FRAG_PART_COUNT:
        break;
    }
    return NULL;
}

bool frag_row_is_absent(const frag_row *row, const frag_row_field *field)
{
    const frag_row_place *place = &field->place;
    const char *part = part_of(row, place->part);
    return place->part != FRAG_PART_NONE &&
           (part == NULL || (place->flag > 0 && !*(const bool *)(part + place->flag)));
}

/* Rounded; tables of absurd times do not overflow. */
static uint64_t whole_number(double number)
{
    return number < 1e19 ? (uint64_t)(number + 0.5) : (uint64_t)1e19;
}

static frag_row_value value_at(const frag_row_field *field, const char *member)
{
    const frag_row_place *place = &field->place;
    uint32_t code = 0;
    switch (place->store) {
    case FRAG_STORE_NUMBER:
        return frag_row_of_number(place->is_0_null && *(const uint64_t *)(const void *)member == 0
                                      ? FRAG_UNLIMITED
                                      : *(const uint64_t *)(const void *)member);
    case FRAG_STORE_SHORT:
        memcpy(&code, member, sizeof code);
        return place->name != NULL ? frag_row_of_text(place->name(code)) : frag_row_of_number(code);
    case FRAG_STORE_REAL:
        return field->type == FRAG_ROW_RATIO
                   ? frag_row_of_ratio(*(const double *)(const void *)member)
                   : frag_row_of_number(whole_number(*(const double *)(const void *)member));
    case FRAG_STORE_FLAG:
        return frag_row_of_flag(*(const bool *)member);
    case FRAG_STORE_TEXT:
        return frag_row_of_text(*(const char *const *)(const void *)member);
    case FRAG_STORE_CHARS:
        return frag_row_of_text(field->is_nullable && *member == '\0' ? NULL : member);
    case FRAG_STORE_NONE:
        break;
    }
    return unknown;
}

/* As a stored row tells it; of another type it is not known. */
static frag_row_value stored_value(const frag_json *row, const frag_row_field *field)
{
    const frag_json_value *found = frag_json_at_path(row, field->path);
    frag_row_value value = {0};
    bool flag = false;
    switch (field->type) {
    case FRAG_ROW_TEXT:
        value.is_known = frag_json_read_text(found, &value.text);
        break;
    case FRAG_ROW_COUNT:
    case FRAG_ROW_BYTES:
    case FRAG_ROW_NS:
        value.is_known = frag_json_read_number(found, &value.number);
        break;
    case FRAG_ROW_RATIO:
        value.is_known = frag_json_read_ratio(found, &value.ratio);
        break;
    case FRAG_ROW_FLAG:
        value.is_known = frag_json_read_flag(found, &flag);
        value.number = flag ? 1 : 0;
        break;
    case FRAG_ROW_SIGNED:
    case FRAG_ROW_SIGNED_BYTES:
    case FRAG_ROW_NULL:
        break;
    }
    return value;
}

frag_row_value frag_row_get(const frag_row *row, const frag_row_field *field)
{
    const frag_row_place *place = &field->place;
    if (row->stored != NULL)
        return stored_value(row->stored, field);
    if (frag_row_is_absent(row, field))
        return unknown;
    if (place->compute != NULL)
        return place->compute(row);
    const char *part = part_of(row, place->part);
    return part != NULL ? value_at(field, part + place->offset) : unknown;
}

/* ---- reading rows back */

static uint32_t code_of(const frag_row_place *place, const frag_row_value *value)
{
    uint32_t code = 0;
    if (place->name == NULL)
        return (uint32_t)value->number;
    while (place->name(code) != NULL && strcmp(place->name(code), value->text) != 0)
        code++;
    return place->name(code) != NULL ? code : 0;
}

/* A value that is not known leaves the member as it is, except where "no limit" has a number. */
static void put(char *part, const frag_row_field *field, const frag_row_value *value)
{
    const frag_row_place *place = &field->place;
    char *member = part + place->offset;
    bool *flag = place->flag > 0 ? (bool *)(part + place->flag) : NULL;
    if (flag != NULL)
        *flag = *flag || value->is_known;
    bool is_none =
        !value->is_known && field->is_nullable && !place->is_0_null && (flag == NULL || *flag);
    uint64_t number = is_none ? FRAG_UNLIMITED : value->number;
    uint32_t code = value->is_known && place->store == FRAG_STORE_SHORT ? code_of(place, value) : 0;
    double real = field->type == FRAG_ROW_RATIO ? value->ratio : (double)value->number;
    bool is_set = value->number != 0;
    if (place->store == FRAG_STORE_NUMBER && (value->is_known || is_none))
        memcpy(member, &number, sizeof number);
    else if (place->store == FRAG_STORE_CHARS)
        snprintf(member, place->size, "%s", value->is_known ? value->text : "");
    else if (!value->is_known)
        return;
    else if (place->store == FRAG_STORE_SHORT)
        memcpy(member, &code, sizeof code);
    else if (place->store == FRAG_STORE_REAL)
        memcpy(member, &real, sizeof real);
    else if (place->store == FRAG_STORE_FLAG)
        memcpy(member, &is_set, sizeof is_set);
    else if (place->store == FRAG_STORE_TEXT)
        memcpy(member, &value->text, sizeof value->text);
}

static const char *const type_words[] = {
    [FRAG_ROW_TEXT] = "a text",     [FRAG_ROW_COUNT] = "a whole number",
    [FRAG_ROW_BYTES] = "bytes",     [FRAG_ROW_NS] = "nanoseconds",
    [FRAG_ROW_SIGNED] = "a number", [FRAG_ROW_SIGNED_BYTES] = "bytes",
    [FRAG_ROW_RATIO] = "a number",  [FRAG_ROW_FLAG] = "true or false",
    [FRAG_ROW_NULL] = "null",
};

bool frag_row_take(const frag_json *row, void *const parts[FRAG_PART_COUNT], frag_error *error)
{
    char found[FRAG_JSON_FOUND_MAX];
    for (const frag_row_field *field = frag_row_kind_run->fields; field->path != NULL; field++) {
        const frag_json_value *at = frag_json_at_path(row, field->path);
        frag_row_value value = stored_value(row, field);
        if (at != NULL && !frag_json_is_null(at) && !value.is_known)
            return frag_fail(error, FRAG_E_INPUT, "%s of the row %s; expected %s%s", field->path,
                             frag_json_found(at, found), type_words[field->type],
                             field->is_nullable ? " or null" : "");
        void *part = parts[field->place.part];
        if (part != NULL && field->place.store != FRAG_STORE_NONE)
            put(part, field, &value);
    }
    return true;
}

/* ---- rows of the other kinds: are they what their table says? */

typedef struct listed_check {
    const frag_row_kind *kind;
    size_t hint;
    char *path;
    size_t size;
    bool has_found;
} listed_check;

static void check_listed(void *context, const char *path, const frag_json_value *value)
{
    listed_check *state = context;
    if (state->has_found || frag_row_field_find(state->kind, path, &state->hint) != NULL ||
        (frag_json_is_null(value) && frag_row_is_absent_group(state->kind, path)))
        return;
    state->has_found = true;
    snprintf(state->path, state->size, "%s", path);
}

static bool has_field(const frag_json *row, const frag_row_kind *kind, const char *path)
{
    char group[64];
    snprintf(group, sizeof group, "%.*s", (int)strcspn(path, "."), path);
    return frag_json_at_path(row, path) != NULL ||
           (frag_row_is_absent_group(kind, group) && frag_json_is_null(frag_json_at(row, group)));
}

bool frag_row_find_unlisted(frag_json *row, char *path, size_t size)
{
    const char *name = "";
    frag_json_find_text(row, "schema", &name);
    listed_check state = {.kind = frag_row_kind_find(name), .path = path, .size = size};
    if (state.kind == NULL) {
        snprintf(path, size, "schema");
        return true;
    }
    frag_json_visit(row, check_listed, &state);
    for (const frag_row_field *field = state.kind->fields; field->path != NULL && !state.has_found;
         field++)
        if (!has_field(row, state.kind, field->path)) {
            state.has_found = true;
            snprintf(path, size, "%s", field->path);
        }
    return state.has_found;
}

void frag_row_write(frag_json *row, FILE *stream)
{
    char path[96];
    FRAG_ASSERT(!frag_row_find_unlisted(row, path, sizeof path));
    frag_json_write(row, stream, false);
}
