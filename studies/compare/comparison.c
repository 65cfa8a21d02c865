#include "studies/compare/comparison.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/formats/lines.h"
#include "base/memory.h"
#include "base/text.h"
#include "sim/rows/result.h"

/* One '*' stands for any text. */
bool frag_metric_matches(const char *pattern, const char *path)
{
    const char *star = strchr(pattern, '*');
    if (star == NULL)
        return strcmp(pattern, path) == 0;
    size_t head = (size_t)(star - pattern);
    size_t tail = strlen(star + 1);
    size_t length = strlen(path);
    return length >= head + tail && strncmp(pattern, path, head) == 0 &&
           strcmp(path + length - tail, star + 1) == 0;
}

const char *frag_verdict_name(frag_verdict verdict)
{
    static const char *const names[FRAG_VERDICT_COUNT] = {
        [FRAG_VERDICT_SAME] = "same",       [FRAG_VERDICT_WITHIN] = "within",
        [FRAG_VERDICT_BETTER] = "better",   [FRAG_VERDICT_WORSE] = "worse",
        [FRAG_VERDICT_UNKNOWN] = "unknown",
    };
    return names[verdict];
}

/* ---- rows as they are in a file */

typedef struct value {
    char path[96];
    frag_direction direction;
    double number;
} value;

typedef struct row {
    char *name;  /* schema, trace, ordinal, label: what makes it the same row */
    char *trace; /* for people */
    char *policy;
    char *device; /* parameters, as text */
    char *digest;
    char *version; /* of fraglab; empty: not said */
    char *options;
    value *values;
    size_t value_count;
    size_t value_capacity;
    bool is_taken;
} row;

typedef struct table {
    row *rows;
    size_t count;
    size_t capacity;
} table;

typedef struct kept {
    table tables[2];
    char **texts;
    size_t text_count;
    size_t text_capacity;
} kept;

typedef struct row_fill {
    row *into;
    const frag_row_kind *kind;
    size_t field; /* the next of the kind */
    frag_text device;
    frag_text options;
} row_fill;

static void add_fact(frag_text *text, const char *name, const frag_json_value *found)
{
    const char *words = NULL;
    double number = 0;
    bool flag = false;
    if (frag_json_read_text(found, &words))
        frag_text_add(text, "%s=%s;", name, words);
    else if (frag_json_read_ratio(found, &number))
        frag_text_add(text, "%s=%.*g;", name, DBL_DECIMAL_DIG, number);
    else if (frag_json_read_flag(found, &flag))
        frag_text_add(text, "%s=%s;", name, flag ? "true" : "false");
}

static void take_field(void *context, const char *path, const frag_json_value *found)
{
    row_fill *state = context;
    row *into = state->into;
    double number = 0;
    bool is_number = frag_json_read_ratio(found, &number);
    if (strncmp(path, "device.", 7) == 0)
        add_fact(&state->device, path + 7, found);
    if (strncmp(path, "policy.options.", 15) == 0)
        add_fact(&state->options, path + 15, found);
    const frag_row_field *field = frag_row_field_find(state->kind, path, &state->field);
    if (field == NULL || field->better == FRAG_NO_METRIC || !is_number ||
        strlen(path) >= sizeof into->values->path)
        return;
    value *item = FRAG_APPEND(into->values, into->value_count, into->value_capacity);
    *item = (value){.direction = field->better, .number = number};
    snprintf(item->path, sizeof item->path, "%s", path);
}

static char *copy_of(const char *text)
{
    return frag_copy_text(text != NULL ? text : "");
}

static bool take_row(frag_json *json, row *into, frag_error *error)
{
    const char *schema = NULL;
    const char *trace = NULL;
    const char *label = NULL;
    const char *digest = NULL;
    const char *version = NULL;
    uint64_t ordinal = 0;
    if (!frag_json_find_text(json, "schema", &schema) || frag_row_kind_find(schema) == NULL ||
        !frag_json_find_text(json, "trace.name", &trace) ||
        !frag_json_find_text(json, "trace.digest", &digest) ||
        !frag_json_find_text(json, "policy.label", &label))
        return frag_fail(
            error, FRAG_E_INPUT,
            "is not a result row; expected lines as 'fraglab run --format jsonl' writes");
    frag_json_find_number(json, "trace.device", &ordinal);
    frag_json_find_text(json, "tool.version", &version);
    frag_text name = {0};
    frag_text_add(&name, "%s\n%s\n%" PRIu64 "\n%s", schema, trace, ordinal, label);
    into->name = name.bytes;
    frag_text shown = {0};
    frag_text_add(&shown, "%s", trace);
    if (ordinal != 0)
        frag_text_add(&shown, " device %" PRIu64, ordinal);
    into->trace = shown.bytes;
    into->policy = copy_of(label);
    into->digest = copy_of(digest);
    into->version = copy_of(version);
    row_fill state = {.into = into, .kind = frag_row_kind_find(schema)};
    frag_json_visit(json, take_field, &state);
    into->device = copy_of(state.device.bytes);
    into->options = copy_of(state.options.bytes);
    frag_text_destroy(&state.device);
    frag_text_destroy(&state.options);
    return true;
}

static void free_table(table *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        frag_free(rows->rows[i].name);
        frag_free(rows->rows[i].trace);
        frag_free(rows->rows[i].policy);
        frag_free(rows->rows[i].device);
        frag_free(rows->rows[i].digest);
        frag_free(rows->rows[i].version);
        frag_free(rows->rows[i].options);
        frag_free(rows->rows[i].values);
    }
    frag_free(rows->rows);
}

static bool is_blank(const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (bytes[i] != ' ' && bytes[i] != '\t' && bytes[i] != '\r')
            return false;
    return true;
}

/* A recording or a table does not begin so. */
static bool is_object(const char *bytes, size_t length)
{
    size_t at = 0;
    while (at < length && (bytes[at] == ' ' || bytes[at] == '\t'))
        at++;
    return at < length && bytes[at] == '{';
}

static bool take_line(void *context, const char *bytes, size_t length, frag_error *error)
{
    table *into = context;
    if (is_blank(bytes, length))
        return true;
    if (into->count == 0 && !is_object(bytes, length))
        return frag_fail(error, FRAG_E_INPUT,
                         "is not a result row; expected lines as 'fraglab run --format jsonl' "
                         "writes ('fraglab diff' compares recordings)");
    frag_json *json = frag_json_parse(bytes, length, error);
    if (json == NULL)
        return false;
    if (frag_result_is_comparison(json)) {
        frag_json_destroy(json);
        return true;
    }
    into->rows = frag_grow(into->rows, &into->capacity, into->count + 1, sizeof *into->rows);
    into->rows[into->count] = (row){0};
    bool ok = take_row(json, &into->rows[into->count], error);
    into->count += ok ? 1 : 0;
    frag_json_destroy(json);
    return ok;
}

static bool read_table(frag_input *input, table *into, frag_error *error)
{
    bool ok = frag_each_line(input, take_line, into, error);
    if (ok && into->count == 0)
        ok = frag_fail(error, FRAG_E_INPUT, "has no result rows");
    return ok || frag_error_in(error, frag_input_name(input));
}

/* ---- comparing */

static const value *find_value(const row *in, const char *path, size_t guess)
{
    if (guess < in->value_count && strcmp(in->values[guess].path, path) == 0)
        return &in->values[guess];
    for (size_t i = 0; i < in->value_count; i++)
        if (strcmp(in->values[i].path, path) == 0)
            return &in->values[i];
    return NULL;
}

static bool is_wanted(const frag_comparison_options *options, const char *path,
                      frag_direction direction)
{
    for (size_t i = 0; i < options->metric_count; i++)
        if (frag_metric_matches(options->metrics[i], path))
            return true;
    return options->metric_count == 0 && direction != FRAG_LESS_IF_ASKED &&
           direction != FRAG_MORE_IF_ASKED;
}

/* Of a fact of the trace any change counts, unless a threshold names it. */
static frag_threshold threshold_of(const frag_comparison_options *options, const char *path,
                                   frag_direction direction)
{
    frag_threshold found = options->general;
    if (direction == FRAG_EQUAL_IS_BETTER)
        found = (frag_threshold){.amount = 0};
    for (size_t i = 0; i < options->threshold_count; i++)
        if (frag_metric_matches(options->thresholds[i].pattern, path))
            found = options->thresholds[i];
    return found;
}

static frag_verdict judge(const frag_compared_metric *metric)
{
    if (metric->base == metric->now)
        return FRAG_VERDICT_SAME;
    double change = metric->now - metric->base;
    bool is_more_better =
        metric->direction == FRAG_MORE_IS_BETTER || metric->direction == FRAG_MORE_IF_ASKED;
    bool is_worse =
        metric->direction == FRAG_EQUAL_IS_BETTER || (is_more_better ? change < 0 : change > 0);
    bool is_beyond = fabs(change) > metric->threshold.amount &&
                     fabs(metric->change_ratio) > metric->threshold.ratio;
    return !is_beyond ? FRAG_VERDICT_WITHIN : is_worse ? FRAG_VERDICT_WORSE : FRAG_VERDICT_BETTER;
}

static void add_metric(frag_compared_row *into, size_t *capacity, const char *path,
                       const value *base, const value *now, const frag_comparison_options *options)
{
    bool has_base = base != NULL;
    bool has_now = now != NULL;
    if (!has_base && !has_now)
        return;
    into->metrics =
        frag_grow(into->metrics, capacity, into->metric_count + 1, sizeof *into->metrics);
    frag_compared_metric *metric = &into->metrics[into->metric_count++];
    *metric = (frag_compared_metric){
        .direction = (base != NULL ? base : now)->direction,
        .has_base = has_base,
        .has_now = has_now,
        .base = has_base ? base->number : 0,
        .now = has_now ? now->number : 0,
        .threshold = threshold_of(options, path, (base != NULL ? base : now)->direction),
        .verdict = FRAG_VERDICT_UNKNOWN,
    };
    snprintf(metric->path, sizeof metric->path, "%s", path);
    if (has_base && has_now) {
        double change = metric->now - metric->base;
        metric->change_ratio = change == 0 ? 0 : change / fabs(metric->base);
        metric->verdict = judge(metric);
    } else if (strcmp(path, "oom.event") == 0) {
        /* No OOM is better than one at any event. */
        metric->verdict = has_now ? FRAG_VERDICT_WORSE : FRAG_VERDICT_BETTER;
    }
    into->verdicts[metric->verdict]++;
}

/* null stands for "no OOM" only where oom itself is null: the field of the object is then missing.
 */
static bool ended_elsewhere(const row *base, const row *now)
{
    const value *before = find_value(base, "replay.events", 0);
    const value *after = find_value(now, "replay.events", 0);
    return before != NULL && after != NULL && before->number != after->number;
}

static void compare_rows(const row *base, const row *now, const frag_comparison_options *options,
                         frag_compared_row *into)
{
    size_t capacity = 0;
    bool is_oom_only = ended_elsewhere(base, now);
    const value *first = find_value(base, "oom.event", 0);
    const value *second = find_value(now, "oom.event", 0);
    if (is_wanted(options, "oom.event", FRAG_MORE_IS_BETTER))
        add_metric(into, &capacity, "oom.event", first, second, options);
    for (size_t i = 0; !is_oom_only && i < base->value_count; i++) {
        const char *path = base->values[i].path;
        if (is_wanted(options, path, base->values[i].direction) && strcmp(path, "oom.event") != 0)
            add_metric(into, &capacity, path, &base->values[i], find_value(now, path, i), options);
    }
    for (size_t i = 0; !is_oom_only && i < now->value_count; i++) {
        const char *path = now->values[i].path;
        if (is_wanted(options, path, now->values[i].direction) && strcmp(path, "oom.event") != 0 &&
            find_value(base, path, i) == NULL)
            add_metric(into, &capacity, path, NULL, &now->values[i], options);
    }
}

static const char *keep_text(kept *in, frag_text *text)
{
    *FRAG_APPEND(in->texts, in->text_count, in->text_capacity) = text->bytes;
    return text->bytes;
}

/* The parts of two lists "key=value;" that are not in both, as "key=value against key=value". */
static void add_unequal(frag_text *text, const char *base, const char *now)
{
    const char *lists[] = {base, now};
    for (size_t side = 0; side < 2; side++) {
        const char *other = lists[1 - side];
        frag_text_add(text, "%s", side == 0 ? "" : " against ");
        bool is_first = true;
        for (const char *at = lists[side]; *at != '\0';) {
            size_t length = strcspn(at, ";");
            bool is_there = false;
            for (const char *look = other; *look != '\0' && !is_there;) {
                size_t other_length = strcspn(look, ";");
                is_there = other_length == length && strncmp(look, at, length) == 0;
                look += other_length + (look[other_length] == ';' ? 1 : 0);
            }
            if (!is_there)
                frag_text_add(text, "%s%.*s", is_first ? "" : " ", (int)length, at);
            is_first = is_first && is_there;
            at += length + (at[length] == ';' ? 1 : 0);
        }
        if (is_first)
            frag_text_add(text, "none");
    }
}

static void compare_pair(kept *in, const row *base, const row *now,
                         const frag_comparison_options *options, frag_compared_row *into)
{
    frag_text words = {0};
    *into =
        (frag_compared_row){.trace = base->trace, .policy = base->policy, .device = base->device};
    if (strcmp(base->digest, now->digest) != 0) {
        frag_text_add(&words, "other trace: its digest is %s, was %s", now->digest, base->digest);
        into->problem = keep_text(in, &words);
    } else if (strcmp(base->device, now->device) != 0) {
        frag_text_add(&words, "other device: ");
        add_unequal(&words, base->device, now->device);
        into->problem = keep_text(in, &words);
    } else {
        if (strcmp(base->options, now->options) != 0) {
            frag_text_add(&words, "other options: ");
            add_unequal(&words, base->options, now->options);
        }
        if (base->version[0] != '\0' && strcmp(base->version, now->version) != 0)
            frag_text_add(
                &words, "%smade with fraglab %s, before with %s: a change may be fraglab's own",
                words.length > 0 ? "; " : "",
                now->version[0] != '\0' ? now->version : "of an unknown version", base->version);
        if (ended_elsewhere(base, now))
            frag_text_add(&words, "%sthe runs ended at different events: only the OOM is compared",
                          words.length > 0 ? "; " : "");
        if (words.length > 0)
            into->note = keep_text(in, &words);
        compare_rows(base, now, options, into);
    }
}

/* The first row of that name that is not taken; the device must agree when asked. */
static row *find_row(table *in, const row *like, bool needs_device)
{
    for (size_t i = 0; i < in->count; i++)
        if (!in->rows[i].is_taken && strcmp(in->rows[i].name, like->name) == 0 &&
            (!needs_device || strcmp(in->rows[i].device, like->device) == 0))
            return &in->rows[i];
    return NULL;
}

/* Rows whose devices agree find each other first, so that one capacity more disturbs no other. */
static void match(table *base, table *now, row **partners)
{
    for (int needs_device = 1; needs_device >= 0; needs_device--)
        for (size_t i = 0; i < base->count; i++) {
            row *found =
                partners[i] == NULL ? find_row(now, &base->rows[i], needs_device != 0) : NULL;
            if (found != NULL) {
                found->is_taken = true;
                partners[i] = found;
            }
        }
}

static frag_compared_row *add_row(frag_comparison *comparison, size_t *capacity)
{
    comparison->rows =
        frag_grow(comparison->rows, capacity, comparison->row_count + 1, sizeof *comparison->rows);
    return &comparison->rows[comparison->row_count++];
}

static void compare_tables(kept *in, const frag_comparison_options *options,
                           frag_comparison *comparison)
{
    table *base = &in->tables[0];
    table *now = &in->tables[1];
    row **partners = frag_alloc(base->count, sizeof *partners);
    size_t capacity = 0;
    match(base, now, partners);
    for (size_t i = 0; i < base->count; i++) {
        const row *from = &base->rows[i];
        frag_compared_row *into = add_row(comparison, &capacity);
        if (partners[i] != NULL)
            compare_pair(in, from, partners[i], options, into);
        else
            *into = (frag_compared_row){.trace = from->trace,
                                        .policy = from->policy,
                                        .device = from->device,
                                        .problem = "the new results have no such row",
                                        .is_missing = true};
        comparison->problems += into->problem != NULL ? 1 : 0;
        comparison->compared += into->problem == NULL ? 1 : 0;
        for (size_t v = 0; v < FRAG_VERDICT_COUNT; v++)
            comparison->verdicts[v] += into->verdicts[v];
    }
    for (size_t i = 0; i < now->count; i++)
        if (!now->rows[i].is_taken) {
            *add_row(comparison, &capacity) =
                (frag_compared_row){.trace = now->rows[i].trace,
                                    .policy = now->rows[i].policy,
                                    .device = now->rows[i].device,
                                    .problem = "the base has no such row",
                                    .is_new = true};
            comparison->fresh++;
        }
    frag_free(partners);
}

bool frag_comparison_read_inputs(frag_input *base, frag_input *now,
                                 const frag_comparison_options *options,
                                 frag_comparison *comparison, frag_error *error)
{
    kept *in = frag_alloc(1, sizeof *in);
    *comparison = (frag_comparison){.kept = in};
    if (!read_table(base, &in->tables[0], error) || !read_table(now, &in->tables[1], error)) {
        frag_comparison_destroy(comparison);
        return false;
    }
    compare_tables(in, options, comparison);
    return true;
}

bool frag_comparison_read(const char *base_path, const char *now_path,
                          const frag_comparison_options *options, frag_comparison *comparison,
                          frag_error *error)
{
    frag_input *base = frag_input_open(base_path, error);
    frag_input *now = base != NULL ? frag_input_open(now_path, error) : NULL;
    bool ok = now != NULL && frag_comparison_read_inputs(base, now, options, comparison, error);
    frag_input_close(now);
    frag_input_close(base);
    return ok;
}

bool frag_comparison_has_finding(const frag_comparison *comparison, bool is_missing_a_fault)
{
    return comparison->verdicts[FRAG_VERDICT_WORSE] > 0 ||
           (is_missing_a_fault && comparison->problems > 0);
}

void frag_comparison_destroy(frag_comparison *comparison)
{
    kept *in = comparison->kept;
    for (size_t i = 0; i < comparison->row_count; i++)
        frag_free(comparison->rows[i].metrics);
    frag_free(comparison->rows);
    if (in != NULL) {
        for (size_t i = 0; i < in->text_count; i++)
            frag_free(in->texts[i]);
        frag_free(in->texts);
        free_table(&in->tables[0]);
        free_table(&in->tables[1]);
        frag_free(in);
    }
    *comparison = (frag_comparison){0};
}
