#include "plots/parts/plot_rows.h"

#include <string.h>

#include "allocators/registry.h"
#include "base/bytes.h"
#include "base/formats/lines.h"
#include "base/memory.h"
#include "base/text.h"

/* ---- lines */

typedef struct row_taker {
    bool (*take)(void *context, frag_json *row, frag_error *error);
    void *context;
} row_taker;

static bool take_line(void *context, const char *line, size_t length, frag_error *error)
{
    const row_taker *taker = context;
    frag_json *row = frag_json_parse(line, length, error);
    return row != NULL && taker->take(taker->context, row, error);
}

bool frag_plot_each_row(frag_input *input,
                        bool (*take)(void *context, frag_json *row, frag_error *error),
                        void *context, frag_error *error)
{
    row_taker taker = {take, context};
    return frag_each_line(input, take_line, &taker, error);
}

/* ---- fields */

typedef struct field_search {
    const char *path;
    frag_field field;
} field_search;

static void find_field(void *context, const char *path, const frag_json_value *value)
{
    field_search *state = context;
    frag_field *field = &state->field;
    bool is_true = false;
    if (strcmp(path, state->path) != 0)
        return;
    if (frag_json_is_null(value)) {
        field->kind = FRAG_FIELD_NULL;
    } else if (frag_json_read_ratio(value, &field->number)) {
        field->kind = FRAG_FIELD_NUMBER;
    } else if (frag_json_read_flag(value, &is_true)) {
        field->kind = FRAG_FIELD_FLAG;
        field->number = is_true ? 1 : 0;
    } else if (frag_json_read_text(value, &field->text)) {
        field->kind = FRAG_FIELD_TEXT;
    }
}

frag_field frag_plot_field(frag_json *row, const char *path)
{
    field_search state = {.path = path};
    frag_json_visit(row, find_field, &state);
    return state.field;
}

/* Without the zeros behind the point: "4.00 GiB" is "4 GiB". */
static void add_bytes(uint64_t bytes, frag_text *text)
{
    char buffer[FRAG_BYTES_TEXT_MAX];
    frag_bytes_text(bytes, buffer);
    char *point = strstr(buffer, ".00 ");
    if (point != NULL)
        memmove(point, point + 3, strlen(point + 3) + 1);
    frag_text_add(text, "%s", buffer);
}

#define OPTIONS "policy.options."

bool frag_plot_is_size(const frag_json *row, const char *path)
{
    const char *name = NULL;
    if (strncmp(path, OPTIONS, sizeof OPTIONS - 1) != 0)
        return frag_text_ends(path, "_bytes");
    const frag_policy_ops *ops =
        frag_json_find_text(row, "policy.name", &name) ? frag_policy_find(name) : NULL;
    for (uint32_t i = 0; ops != NULL && i < frag_policy_option_count(ops); i++)
        if (strcmp(ops->options[i].key, path + sizeof OPTIONS - 1) == 0)
            return ops->options[i].type == FRAG_OPTION_BYTES;
    return false;
}

void frag_plot_field_text(const char *path, bool is_size, const frag_field *field, frag_text *text)
{
    switch (field->kind) {
    case FRAG_FIELD_MISSING:
        break;
    case FRAG_FIELD_NULL:
        frag_text_add(text, "%s", is_size || frag_text_ends(path, "_mb") ? "unlimited" : "none");
        break;
    case FRAG_FIELD_NUMBER:
        if (is_size && field->number >= 0 && field->number < 1e19)
            add_bytes((uint64_t)field->number, text);
        else
            frag_text_add(text, "%.6g", field->number);
        break;
    case FRAG_FIELD_FLAG:
        frag_text_add(text, "%s", field->number > 0 ? "true" : "false");
        break;
    case FRAG_FIELD_TEXT: {
        char *plain = frag_copy_text(field->text[0] != '\0' ? field->text : "none");
        frag_text_make_plain(plain);
        frag_text_add(text, "%s", plain);
        frag_free(plain);
        break;
    }
    }
}

/* ---- names of fields */

/* "policy.options.x_bytes" is "policy_x": what a person would call it. */
static void add_plain(const char *path, frag_text *plain)
{
    static const char *const units[] = {"_bytes", "_ns", "_ratio"};
    static const char options[] = "options.";
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (frag_text_ends(path, units[i])) {
            length -= strlen(units[i]);
            break;
        }
    frag_text_add_bytes(plain, "", 0);
    for (size_t i = 0; i < length;) {
        if (strncmp(path + i, options, sizeof options - 1) == 0) {
            i += sizeof options - 1;
            continue;
        }
        char at = path[i] == '.' ? '_' : path[i];
        frag_text_add_bytes(plain, &at, 1);
        i++;
    }
}

typedef struct name_search {
    const char *name;
    frag_text plain; /* of the name */
    bool is_exact;   /* only those that are the name as a whole */
    char *paths[4];
    size_t count;
} name_search;

static void match(void *context, const char *path, const frag_json_value *value)
{
    name_search *state = context;
    frag_text plain = {0};
    (void)value;
    for (const char *at = path; *at != '\0'; at++)
        if ((unsigned char)*at < ' ')
            return; /* a name that nobody types */
    add_plain(path, &plain);
    size_t wanted = state->plain.length;
    bool is_same = strcmp(plain.bytes, state->plain.bytes) == 0 || strcmp(path, state->name) == 0;
    bool is_end = plain.length > wanted && plain.bytes[plain.length - wanted - 1] == '_' &&
                  strcmp(plain.bytes + plain.length - wanted, state->plain.bytes) == 0;
    bool is_known = false;
    for (size_t i = 0; i < state->count; i++)
        is_known = is_known || strcmp(state->paths[i], path) == 0;
    if ((state->is_exact ? is_same : is_end) && !is_known &&
        state->count < sizeof state->paths / sizeof *state->paths)
        state->paths[state->count++] = frag_copy_text(path);
    frag_text_destroy(&plain);
}

static void match_rows(name_search *state, frag_json *const *rows, size_t count, bool is_exact)
{
    state->is_exact = is_exact;
    for (size_t i = 0; i < count && state->count == 0; i++)
        frag_json_visit(rows[i], match, state);
}

char *frag_plot_find_path(frag_json *const *rows, size_t count, const char *name, frag_error *error)
{
    name_search state = {.name = name};
    add_plain(name, &state.plain);
    match_rows(&state, rows, count, true);
    if (state.count == 0 && state.plain.length > 0)
        match_rows(&state, rows, count, false);
    char *path = NULL;
    for (size_t i = 0; i < state.count; i++)
        if (strcmp(state.paths[i], name) == 0 || state.count == 1)
            path = frag_copy_text(state.paths[i]);
    if (path == NULL && state.count > 1)
        frag_fail(error, FRAG_E_USAGE, "'%.100s' may be %.150s or %.150s; write it out", name,
                  state.paths[0], state.paths[1]);
    else if (path == NULL)
        frag_fail(error, FRAG_E_USAGE,
                  "the rows have no field '%.100s'; name one by its path, such as "
                  "peak.reserved_bytes or policy.options.max_split_size_mb",
                  name);
    for (size_t i = 0; i < state.count; i++)
        frag_free(state.paths[i]);
    frag_text_destroy(&state.plain);
    return path;
}
