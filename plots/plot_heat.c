/* A heat map of one field of result rows over two others. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/text.h"
#include "plots/parts/plot_rows.h"
#include "plots/plot.h"
#include "plots/plot_options.h"
#include "sim/rows/result.h"

#define CELLS_MAX 100000u
#define AXIS_MAX 2000u
#define CELLS_NAMED 400u /* with more of them there is no room for their values */

typedef enum cell_kind { CELL_MISSING, CELL_REFUSED, CELL_OOM, CELL_VALUE } cell_kind;

static const char *const kind_names[] = {"missing", "refused", "oom", "value"};

typedef struct cell {
    cell_kind kind;
    size_t row; /* + 1; 0: none */
    double z;
} cell;

typedef struct axis {
    const char *name; /* as typed */
    char *path;
    bool is_size;       /* its numbers count bytes */
    frag_field *values; /* in order */
    size_t count;
    size_t capacity;
} axis;

typedef struct heat_figure {
    frag_plot plot;
    frag_json **rows;  /* those that --where leaves */
    uint64_t *numbers; /* of each, from 1 over all files */
    size_t row_count;
    size_t row_capacity;
    size_t number_capacity;
    uint64_t read_count;
    axis x;
    axis y;
    const char *z_name;
    char *z_path;
    cell *cells; /* x fastest */
    double z_min;
    double z_max;
    size_t value_count;
} heat_figure;

/* ---- rows */

/* How far reserved bytes are above each bound, as fields of the row: a row says both, and who looks
 * at it wants the one over the other. */
static void add_distances(frag_json *row)
{
    static const struct {
        const char *bound;
        const char *distance;
    } distances[] = {{"bounds.peak_requested_bytes", "over.bound_ratio"},
                     {"bounds.packing_bytes", "over.packing_ratio"}};
    frag_field reserved = frag_plot_field(row, "peak.reserved_bytes");
    for (size_t i = 0; i < sizeof distances / sizeof *distances; i++) {
        frag_field bound = frag_plot_field(row, distances[i].bound);
        if (reserved.kind == FRAG_FIELD_NUMBER && bound.kind == FRAG_FIELD_NUMBER &&
            bound.number > 0)
            frag_json_ratio(row, distances[i].distance, reserved.number / bound.number - 1);
    }
}

static bool take_row(void *context, frag_json *row, frag_error *error)
{
    heat_figure *state = context;
    (void)error;
    state->read_count++;
    if (frag_result_is_comparison(row)) {
        frag_json_destroy(row);
        return true;
    }
    state->rows =
        frag_grow(state->rows, &state->row_capacity, state->row_count + 1, sizeof *state->rows);
    state->numbers = frag_grow(state->numbers, &state->number_capacity, state->row_count + 1,
                               sizeof *state->numbers);
    state->rows[state->row_count] = row;
    add_distances(row);
    state->numbers[state->row_count++] = state->read_count;
    return true;
}

static bool read_rows(heat_figure *state, const frag_plot_request *request, frag_error *error)
{
    bool ok = true;
    for (size_t i = 0; ok && i < request->operand_count; i++) {
        const char *path = request->operands[i];
        frag_input *input = frag_input_open(path, error);
        ok = input != NULL && frag_plot_each_row(input, take_row, state, error);
        frag_input_close(input);
        if (!ok)
            frag_error_in(error, path);
    }
    return ok && (state->row_count > 0 ||
                  frag_fail(error, FRAG_E_INPUT, "there are no rows; there is nothing to draw"));
}

/* Is the value of a row what the user wrote: as it is shown, as a size, or as a number? */
static bool is_value(const char *path, bool is_size, const frag_field *field, const char *wanted)
{
    frag_text shown = {0};
    frag_text_add(&shown, "%s", "");
    frag_plot_field_text(path, is_size, field, &shown);
    bool is_same = strcmp(shown.bytes, wanted) == 0;
    frag_text_destroy(&shown);
    uint64_t bytes = 0;
    double number = 0;
    if (field->kind == FRAG_FIELD_NUMBER && !is_same)
        is_same = (frag_bytes_parse(wanted, &bytes, NULL) && (double)bytes == field->number) ||
                  (frag_ratio_parse(wanted, -HUGE_VAL, HUGE_VAL, &number, NULL) &&
                   number == field->number);
    return is_same;
}

static bool keep_where(heat_figure *state, const char *condition, frag_error *error)
{
    const char *equals = strchr(condition, '=');
    if (equals == NULL || equals == condition)
        return frag_fail_in(error, FRAG_E_USAGE, "--where",
                            "'%.100s' names no field and value; write FIELD=VALUE", condition);
    frag_text name = {0};
    frag_text_add_bytes(&name, condition, (size_t)(equals - condition));
    char *path = frag_plot_find_path(state->rows, state->row_count, name.bytes, error);
    frag_text_destroy(&name);
    if (path == NULL)
        return frag_error_in(error, "--where");
    size_t kept = 0;
    for (size_t i = 0; i < state->row_count; i++) {
        frag_field field = frag_plot_field(state->rows[i], path);
        if (field.kind != FRAG_FIELD_MISSING &&
            is_value(path, frag_plot_is_size(state->rows[i], path), &field, equals + 1)) {
            state->numbers[kept] = state->numbers[i];
            state->rows[kept++] = state->rows[i];
        } else {
            frag_json_destroy(state->rows[i]);
        }
    }
    state->row_count = kept;
    frag_free(path);
    if (kept > 0)
        return true;
    return frag_fail_in(error, FRAG_E_USAGE, "--where", "no row has %.200s", condition);
}

static bool choose_rows(heat_figure *state, const frag_plot_request *request, frag_error *error)
{
    const char *where = NULL;
    for (size_t i = 0; (where = frag_plot_setting_at(request, "where", i)) != NULL; i++)
        if (!keep_where(state, where, error))
            return false;
    return true;
}

/* ---- axes */

/* Numbers ascend, what is without limit comes after them; texts keep the order of the rows. */
static bool comes_before(const frag_field *a, const frag_field *b)
{
    if (a->kind == FRAG_FIELD_TEXT || b->kind == FRAG_FIELD_TEXT)
        return false;
    if (a->kind == FRAG_FIELD_NULL || b->kind == FRAG_FIELD_NULL)
        return a->kind != FRAG_FIELD_NULL && b->kind == FRAG_FIELD_NULL;
    return a->number < b->number;
}

static bool is_equal(const frag_field *a, const frag_field *b)
{
    if (a->kind != b->kind)
        return false;
    return a->kind == FRAG_FIELD_TEXT   ? strcmp(a->text, b->text) == 0
           : a->kind == FRAG_FIELD_NULL ? true
                                        : !(a->number < b->number) && !(b->number < a->number);
}

static size_t place_of(const axis *along, const frag_field *value)
{
    size_t at = 0;
    while (at < along->count && !is_equal(&along->values[at], value))
        at++;
    return at;
}

static void add_value(axis *along, const frag_field *value)
{
    if (place_of(along, value) < along->count)
        return;
    along->values =
        frag_grow(along->values, &along->capacity, along->count + 1, sizeof *along->values);
    size_t at = along->count++;
    for (; at > 0 && comes_before(value, &along->values[at - 1]); at--)
        along->values[at] = along->values[at - 1];
    along->values[at] = *value;
}

static bool fill_axis(heat_figure *state, axis *along, const char *option, frag_error *error)
{
    along->path = frag_plot_find_path(state->rows, state->row_count, along->name, error);
    if (along->path == NULL)
        return frag_error_in(error, option);
    along->is_size = frag_plot_is_size(state->rows[0], along->path);
    for (size_t i = 0; i < state->row_count; i++) {
        frag_field value = frag_plot_field(state->rows[i], along->path);
        if (value.kind == FRAG_FIELD_MISSING)
            return frag_fail(
                error, FRAG_E_INPUT,
                "row %" PRIu64
                " has no %.150s; leave such rows out, for example with --where policy.name=NAME",
                state->numbers[i], along->path);
        add_value(along, &value);
        if (along->count > AXIS_MAX)
            return frag_fail(error, FRAG_E_INPUT,
                             "%.150s has more than %u values; a figure has no room for them",
                             along->path, AXIS_MAX);
    }
    return true;
}

/* ---- cells */

typedef struct difference {
    frag_json *left;
    frag_json *right;
    char path[256]; /* of the first input that differs; "": none so far */
} difference;

static void look_at_field(void *context, const char *path, const frag_json_value *value)
{
    static const char *const inputs[] = {"trace.", "policy.", "device.", "seed", "tool."};
    difference *state = context;
    bool is_input = false;
    (void)value;
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        is_input = is_input || strncmp(path, inputs[i], strlen(inputs[i])) == 0;
    /* A label says again what the options say. */
    if (state->path[0] != '\0' || !is_input || strcmp(path, "policy.label") == 0)
        return;
    frag_field left = frag_plot_field(state->left, path);
    frag_field right = frag_plot_field(state->right, path);
    if (!is_equal(&left, &right))
        snprintf(state->path, sizeof state->path, "%s", path);
}

/* Two rows for one cell: the user must choose by a field in which they differ. */
static bool fail_twice(const heat_figure *state, size_t first, size_t second, frag_error *error)
{
    difference between = {.left = state->rows[first], .right = state->rows[second]};
    frag_json_visit(state->rows[first], look_at_field, &between);
    if (between.path[0] == '\0')
        return frag_fail(
            error, FRAG_E_INPUT, "rows %" PRIu64 " and %" PRIu64 " have the same %.100s and %.100s",
            state->numbers[first], state->numbers[second], state->x.path, state->y.path);
    const char *path = between.path;
    frag_field field = frag_plot_field(state->rows[first], path);
    frag_text value = {0};
    frag_plot_field_text(path, frag_plot_is_size(state->rows[first], path), &field, &value);
    frag_fail(
        error, FRAG_E_INPUT,
        "rows %" PRIu64 " and %" PRIu64
        " have the same %.80s and %.80s, but another %.80s; choose with --where '%.80s=%.60s'",
        state->numbers[first], state->numbers[second], state->x.path, state->y.path, path, path,
        value.bytes != NULL ? value.bytes : "");
    frag_text_destroy(&value);
    return false;
}

static void read_cell(heat_figure *state, frag_json *row, cell *at)
{
    const char *schema = NULL;
    frag_field z = frag_plot_field(row, state->z_path);
    bool is_of_oom = strncmp(state->z_path, "oom.", 4) == 0;
    if (frag_json_find_text(row, "schema", &schema) && strcmp(schema, "fraglab.refused/1") == 0)
        at->kind = CELL_REFUSED;
    else if (!is_of_oom && frag_plot_field(row, "oom.event").kind == FRAG_FIELD_NUMBER)
        at->kind = CELL_OOM;
    else if (z.kind == FRAG_FIELD_NUMBER || z.kind == FRAG_FIELD_FLAG)
        at->kind = CELL_VALUE;
    at->z = z.number;
    if (at->kind != CELL_VALUE)
        return;
    state->z_min = state->value_count == 0 || z.number < state->z_min ? z.number : state->z_min;
    state->z_max = state->value_count == 0 || z.number > state->z_max ? z.number : state->z_max;
    state->value_count++;
}

static bool fill_cells(heat_figure *state, frag_error *error)
{
    size_t count = state->x.count * state->y.count;
    if (state->x.count < 2 && state->y.count < 2)
        return frag_fail(error, FRAG_E_INPUT,
                         "all rows have the same %.100s and %.100s; there is nothing to compare",
                         state->x.path, state->y.path);
    if (count / state->x.count != state->y.count || count > CELLS_MAX ||
        state->row_count * 2 < count)
        return frag_fail(error, FRAG_E_INPUT,
                         "the rows are no grid: %zu rows for %zu values of %.100s times %zu of "
                         "%.100s; sweep every combination",
                         state->row_count, state->x.count, state->x.path, state->y.count,
                         state->y.path);
    state->cells = frag_alloc(count, sizeof *state->cells);
    for (size_t i = 0; i < state->row_count; i++) {
        frag_field x = frag_plot_field(state->rows[i], state->x.path);
        frag_field y = frag_plot_field(state->rows[i], state->y.path);
        cell *at =
            &state->cells[place_of(&state->y, &y) * state->x.count + place_of(&state->x, &x)];
        if (at->row != 0)
            return fail_twice(state, at->row - 1, i, error);
        at->row = i + 1;
        read_cell(state, state->rows[i], at);
    }
    if (state->value_count > 0)
        return true;
    return frag_fail(error, FRAG_E_INPUT,
                     "no row has a number as %.150s; every run ended in an OOM, was refused, or "
                     "does not know it",
                     state->z_path);
}

/* ---- how axes and values are shown */

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-6 * (fabs(a) + fabs(b));
}

/* Cells are equally wide; the steps between their values show whether that is a linear
 * scale, a logarithmic one, or neither. */
static const char *scale_of(const axis *along)
{
    size_t count = 0;
    while (count < along->count && along->values[count].kind == FRAG_FIELD_NUMBER)
        count++;
    if (count < 3)
        return "";
    const frag_field *v = along->values;
    bool is_linear = true;
    bool is_log = v[0].number > 0;
    for (size_t i = 2; i < count; i++) {
        is_linear =
            is_linear && is_near(v[i].number - v[i - 1].number, v[i - 1].number - v[i - 2].number);
        is_log =
            is_log && is_near(v[i].number * v[i - 2].number, v[i - 1].number * v[i - 1].number);
    }
    return is_linear ? "" : is_log ? ", log scale" : ", values in order, not to scale";
}

/* "policy.options.max_split_size_mb" as "max_split_size_mb", "device.capacity_bytes" as
 * "device capacity". */
static void add_title(const char *path, frag_text *text)
{
    static const char options_of[] = "policy.options.";
    if (strncmp(path, options_of, sizeof options_of - 1) == 0)
        path += sizeof options_of - 1;
    size_t length = strlen(path);
    length -= frag_text_ends(path, "_bytes")   ? 6
              : frag_text_ends(path, "_ratio") ? 6
              : frag_text_ends(path, "_ns")    ? 3
                                               : 0;
    for (size_t i = 0; i < length; i++)
        frag_text_add(text, "%c", path[i] == '.' ? ' ' : path[i]);
}

static void define_axis(heat_figure *state, const axis *along, const char *letter)
{
    frag_text *names = frag_alloc(along->count, sizeof *names);
    const char **texts = frag_alloc(along->count, sizeof *texts);
    frag_text variable = {0};
    frag_text title = {0};
    for (size_t i = 0; i < along->count; i++) {
        frag_plot_field_text(along->path, along->is_size, &along->values[i], &names[i]);
        texts[i] = names[i].bytes;
    }
    frag_text_add(&variable, "%s_values", letter);
    frag_plot_define_texts(&state->plot, variable.bytes, texts, along->count);
    frag_text_clear(&variable);
    frag_text_add(&variable, "%s_count", letter);
    frag_plot_define_number(&state->plot, variable.bytes, (double)along->count);
    frag_text_clear(&variable);
    frag_text_add(&variable, "%s_title", letter);
    add_title(along->path, &title);
    frag_text_add(&title, "%s", scale_of(along));
    frag_plot_define_text(&state->plot, variable.bytes, title.bytes);
    frag_text_destroy(&title);
    frag_text_destroy(&variable);
    for (size_t i = 0; i < along->count; i++)
        frag_text_destroy(&names[i]);
    frag_free(names);
    frag_free(texts);
}

typedef struct unit {
    const char *name;
    double size;
} unit;

static unit unit_of(const heat_figure *state)
{
    double most = fabs(state->z_max) > fabs(state->z_min) ? fabs(state->z_max) : fabs(state->z_min);
    if (frag_text_ends(state->z_path, "_bytes"))
        return most >= 1024.0 * FRAG_MIB   ? (unit){"GiB", (double)FRAG_GIB}
               : most >= 1024.0 * FRAG_KIB ? (unit){"MiB", (double)FRAG_MIB}
               : most >= 1024              ? (unit){"KiB", (double)FRAG_KIB}
                                           : (unit){"bytes", 1};
    if (frag_text_ends(state->z_path, "_ns"))
        return most >= 1e9 ? (unit){"s", 1e9} : (unit){"ms", 1e6};
    if (frag_text_ends(state->z_path, "_ratio"))
        return (unit){"%", 0.01};
    return (unit){"", 1};
}

/* As many decimals for all cells as give the largest three digits; none where all are whole. */
static int decimals_of(const heat_figure *state)
{
    double size = unit_of(state).size;
    double most = fabs(state->z_max) > fabs(state->z_min) ? fabs(state->z_max) : fabs(state->z_min);
    bool is_whole = true;
    for (size_t i = 0; i < state->x.count * state->y.count; i++) {
        const cell *at = &state->cells[i];
        double value = at->z / size;
        is_whole = is_whole && (at->kind != CELL_VALUE || is_near(value, round(value)));
    }
    return is_whole || most / size >= 100 ? 0 : most / size >= 10 ? 1 : 2;
}

static void add_cell(const heat_figure *state, const cell *at, int decimals, frag_text *text)
{
    double value = at->z / unit_of(state).size;
    if (at->kind == CELL_VALUE && fabs(value) < 1e7)
        frag_text_add(text, "%.*f", decimals, value);
    else if (at->kind == CELL_VALUE)
        frag_text_add(text, "%.3g", value);
    else
        frag_text_add(text, "%s",
                      at->kind == CELL_OOM       ? "OOM"
                      : at->kind == CELL_REFUSED ? "refused"
                                                 : "-");
}

/* The value that all rows have there, or NULL. */
static const char *common_text(const heat_figure *state, const char *path)
{
    frag_field first = frag_plot_field(state->rows[0], path);
    for (size_t i = 1; i < state->row_count; i++) {
        frag_field other = frag_plot_field(state->rows[i], path);
        if (!is_equal(&first, &other))
            return NULL;
    }
    return first.kind == FRAG_FIELD_TEXT ? first.text : NULL;
}

static void add_figure_title(const heat_figure *state, frag_text *title)
{
    const char *trace = common_text(state, "trace.name");
    const char *policy = common_text(state, "policy.name");
    frag_text_add(title, "%s%s%s", trace != NULL ? trace : "",
                  trace != NULL && policy != NULL ? ", " : "", policy != NULL ? policy : "");
    frag_text_make_plain(title->bytes);
}

/* ---- data */

static void write_data(const heat_figure *state)
{
    FILE *stream = state->plot.data;
    int decimals = decimals_of(state);
    fputs("kind,x_index,y_index,", stream);
    frag_text_write_csv(stream, state->x.path);
    fputc(',', stream);
    frag_text_write_csv(stream, state->y.path);
    fputs(",z,oom_event,row,shown\n", stream);
    for (size_t i = 0; i < state->x.count * state->y.count; i++) {
        const cell *at = &state->cells[i];
        frag_text x = {0};
        frag_text y = {0};
        frag_text shown = {0};
        frag_plot_field_text(state->x.path, state->x.is_size, &state->x.values[i % state->x.count],
                             &x);
        frag_plot_field_text(state->y.path, state->y.is_size, &state->y.values[i / state->x.count],
                             &y);
        fprintf(stream, "%s,%zu,%zu,", kind_names[at->kind], i % state->x.count,
                i / state->x.count);
        frag_text_write_csv(stream, x.bytes);
        fputc(',', stream);
        frag_text_write_csv(stream, y.bytes);
        fputc(',', stream);
        if (at->kind == CELL_VALUE)
            fprintf(stream, "%.12g", at->z);
        add_cell(state, at, decimals, &shown);
        fputc(',', stream);
        if (at->kind == CELL_OOM)
            fprintf(stream, "%.0f", frag_plot_field(state->rows[at->row - 1], "oom.event").number);
        fputc(',', stream);
        if (at->row != 0)
            fprintf(stream, "%" PRIu64, state->numbers[at->row - 1]);
        fprintf(stream, ",%s\n", shown.bytes);
        frag_text_destroy(&x);
        frag_text_destroy(&y);
        frag_text_destroy(&shown);
    }
}

static bool has_kind(const heat_figure *state, cell_kind kind)
{
    for (size_t i = 0; i < state->x.count * state->y.count; i++)
        if (state->cells[i].kind == kind)
            return true;
    return false;
}

static void define(heat_figure *state)
{
    frag_plot *plot = &state->plot;
    unit shown_in = unit_of(state);
    frag_text title = {0};
    frag_text z_title = {0};
    define_axis(state, &state->x, "x");
    define_axis(state, &state->y, "y");
    add_title(state->z_path, &z_title);
    if (shown_in.name[0] != '\0')
        frag_text_add(&z_title, " (%s)", shown_in.name);
    frag_plot_define_text(plot, "z_title", z_title.bytes);
    frag_plot_define_number(plot, "z_min", state->z_min / shown_in.size);
    frag_plot_define_number(plot, "z_max", state->z_max / shown_in.size);
    frag_plot_define_number(plot, "z_unit", shown_in.size);
    frag_plot_define_number(plot, "has_values",
                            state->x.count * state->y.count <= CELLS_NAMED ? 1 : 0);
    frag_plot_define_number(plot, "has_oom", has_kind(state, CELL_OOM) ? 1 : 0);
    frag_plot_define_number(plot, "has_refused", has_kind(state, CELL_REFUSED) ? 1 : 0);
    frag_plot_define_number(plot, "has_missing", has_kind(state, CELL_MISSING) ? 1 : 0);
    add_figure_title(state, &title);
    frag_plot_define_title(plot, title.bytes);
    frag_text_destroy(&z_title);
    frag_text_destroy(&title);
}

/* With characters: a table. */
static void print_characters(const heat_figure *state)
{
    FILE *stream = state->plot.characters;
    unit shown_in = unit_of(state);
    int decimals = decimals_of(state);
    frag_text title = {0};
    frag_text text = {0};
    add_figure_title(state, &title);
    frag_text_add(&title, "%s", title.length > 0 ? ": " : "");
    add_title(state->z_path, &title);
    fprintf(stream, "%s%s%s%s\n\n%22s", title.bytes, shown_in.name[0] != '\0' ? " in " : "",
            shown_in.name, "", "");
    frag_text_clear(&title);
    add_title(state->x.path, &title);
    fprintf(stream, "%s\n", title.bytes);
    frag_text_clear(&title);
    add_title(state->y.path, &title);
    fprintf(stream, "%20.20s  ", title.bytes);
    for (size_t x = 0; x < state->x.count; x++) {
        frag_text_clear(&text);
        frag_plot_field_text(state->x.path, state->x.is_size, &state->x.values[x], &text);
        fprintf(stream, " %9.9s", text.bytes);
    }
    fputc('\n', stream);
    for (size_t y = state->y.count; y-- > 0;) {
        frag_text_clear(&text);
        frag_plot_field_text(state->y.path, state->y.is_size, &state->y.values[y], &text);
        fprintf(stream, "%20.20s  ", text.bytes);
        for (size_t x = 0; x < state->x.count; x++) {
            const cell *at = &state->cells[y * state->x.count + x];
            frag_text_clear(&text);
            add_cell(state, at, decimals, &text);
            fprintf(stream, " %9s", text.bytes);
        }
        fputc('\n', stream);
    }
    frag_text_destroy(&title);
    frag_text_destroy(&text);
}

static bool fill(void *context, frag_error *error)
{
    heat_figure *state = context;
    const frag_plot_request *request = state->plot.request;
    if (!read_rows(state, request, error) || !choose_rows(state, request, error))
        return false;
    state->z_path = frag_plot_find_path(state->rows, state->row_count, state->z_name, error);
    if (state->z_path == NULL)
        return frag_error_in(error, "--z");
    if (!fill_axis(state, &state->x, "--x", error) || !fill_axis(state, &state->y, "--y", error) ||
        !fill_cells(state, error))
        return false;
    write_data(state);
    state->plot.is_written = state->plot.format == FRAG_PLOT_TERMINAL;
    if (state->plot.is_written)
        print_characters(state);
    else
        define(state);
    return true;
}

static bool check_options(heat_figure *state, const frag_plot_request *request, frag_error *error)
{
    state->x.name = frag_plot_setting_text(request, "x");
    state->y.name = frag_plot_setting_text(request, "y");
    state->z_name = frag_plot_setting_text(request, "z");
    if (state->z_name == NULL)
        state->z_name = "peak.reserved_bytes";
    return (state->x.name != NULL && state->y.name != NULL) ||
           frag_fail(error, FRAG_E_USAGE,
                     "a heat map needs --x and --y: fields of the rows, such as --x "
                     "policy.max_split_size_mb --y capacity");
}

static bool draw(const frag_plot_request *request, frag_error *error)
{
    heat_figure state = {.row_count = 0};
    bool ok = check_options(&state, request, error) &&
              frag_plot_draw(&state.plot, "heat", request, fill, &state, error);
    for (size_t i = 0; i < state.row_count; i++)
        frag_json_destroy(state.rows[i]);
    frag_free(state.rows);
    frag_free(state.numbers);
    frag_free(state.cells);
    frag_free(state.x.path);
    frag_free(state.x.values);
    frag_free(state.y.path);
    frag_free(state.y.values);
    frag_free(state.z_path);
    return ok;
}

static const frag_command_option options[] = {
    {"x", "FIELD",
     .help = "the horizontal axis: a field of the rows, such as policy.max_split_size_mb"},
    {"y", "FIELD", .help = "the vertical axis: a field of the rows, such as capacity"},
    {"z", "FIELD",
     .help = "what the colour shows (default: peak.reserved_bytes): a field, or over_bound or "
             "over_packing: how far peak reserved is above that bound of the row"},
    {"where", "FIELD=VALUE", .help = "only rows with that value; repeat it for several fields"},
    FRAG_PLOT_OPTIONS,
    {.name = NULL},
};

const frag_plot_kind frag_plot_heat = {
    .command =
        {
            .name = "heat",
            .operands = "ROWS...",
            .summary = "a figure of result rows over two options of a sweep",
            .description =
                "Draws rows of 'fraglab sweep' or 'fraglab run --format jsonl' as a grid of two of "
                "their fields, coloured by a third. Fields are named by their path in the rows, or "
                "by the end of it if that is unambiguous. A run that ended in an OOM shows that "
                "instead of a value; a combination without a row is grey. Rows that also differ in "
                "another field are refused: choose with --where.",
            .examples = "fraglab plot heat rows.jsonl --x policy.max_split_size_mb --y capacity -o "
                        "heat.svg\n"
                        "fraglab plot heat rows.jsonl --x sli --y grow --z utilisation --where "
                        "trace.name=unet.pickle.zst -o heat.pdf",
            .options = options,
            .operand_min = 1,
            .operand_max = UINT32_MAX,
        },
    .draw = draw,
};
