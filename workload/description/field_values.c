#include "workload/description/field_values.h"

#include <string.h>

#include "base/bytes.h"

enum { NAMES_MAX = 80 };

/* ---- one value as text */
bool frag_choices_find(const char *choices, const char *text, uint64_t *index)
{
    size_t length = strlen(text);
    *index = 0;
    for (const char *at = choices; *at != '\0'; (*index)++) {
        size_t here = strcspn(at, "|");
        if (here == length && memcmp(at, text, length) == 0)
            return true;
        at += here + (at[here] == '|');
    }
    return false;
}

const char *frag_choices_name(const char *choices, uint64_t index, frag_text *text)
{
    for (uint64_t i = 0; i < index; i++)
        choices = strchr(choices, '|') + 1;
    frag_text_clear(text);
    frag_text_add_bytes(text, choices, strcspn(choices, "|"));
    return text->bytes;
}

const char *frag_choices_list(const char *choices, frag_text *text)
{
    for (const char *at = choices; *at != '\0';) {
        size_t here = strcspn(at, "|");
        bool is_last = strchr(at + here, '|') == strrchr(at + here, '|') && at[here] == '|' &&
                       strchr(at + here + 1, '|') == NULL;
        frag_text_add_bytes(text, at, here);
        if (at[here] == '|')
            frag_text_add(text, "%s", is_last ? " or " : ", ");
        at += here + (at[here] == '|');
    }
    return text->bytes;
}

static bool refuse_choice(const frag_field *field, const char *text, frag_error *error)
{
    frag_text choices = {0};
    frag_fail(error, FRAG_E_INPUT, "%s is '%s'; expected %s", field->key, text,
              frag_choices_list(field->choices, &choices));
    frag_text_destroy(&choices);
    return false;
}

static bool read_length(const char *text, size_t length, const frag_field *field, uint64_t *value)
{
    char part[32];
    if (length == 0 || length >= sizeof part)
        return false;
    memcpy(part, text, length);
    part[length] = '\0';
    return frag_count_parse(part, (uint64_t)field->min, (uint64_t)field->max, value, NULL);
}

/* "128", "128,64", "64..768" */
static bool read_lengths(const char *text, const frag_field *field, frag_lengths *lengths,
                         frag_error *error)
{
    frag_lengths read = {0};
    const char *dots = strstr(text, "..");
    bool is_good = true;
    if (dots != NULL) {
        read.is_range = true;
        read.count = 2;
        is_good = read_length(text, (size_t)(dots - text), field, &read.values[0]) &&
                  read_length(dots + 2, strlen(dots + 2), field, &read.values[1]) &&
                  read.values[0] <= read.values[1];
    } else {
        for (const char *at = text; is_good;) {
            size_t here = strcspn(at, ",");
            is_good = read.count < FRAG_TOKENS_MAX &&
                      read_length(at, here, field, &read.values[read.count++]);
            if (at[here] == '\0')
                break;
            at += here + 1;
        }
    }
    if (!is_good)
        return frag_fail(
            error, FRAG_E_INPUT,
            "%s is '%s'; expected N, a list of up to %d or MIN..MAX, each %.0f to %.0f", field->key,
            text, FRAG_TOKENS_MAX, field->min, field->max);
    *lengths = read;
    return true;
}

/* Of linear layers: T5 has short names for what others spell out. */
static const char *full_name(const char *name)
{
    static const char *const same[][2] = {
        {"q", "q_proj"},       {"k", "k_proj"},     {"v", "v_proj"},   {"o", "o_proj"},
        {"wi_0", "gate_proj"}, {"wi_1", "up_proj"}, {"wi", "up_proj"}, {"wo", "down_proj"}};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (strcmp(name, same[i][0]) == 0)
            return same[i][1];
    return name;
}

/* "a,b": bits of the choices; where none may be taken (max is 1), "none". */
static bool read_set(const char *text, const frag_field *field, uint64_t *bits, frag_error *error)
{
    uint64_t read = 0;
    bool may_be_empty = field->max > 0;
    if (may_be_empty && strcmp(text, "none") == 0) {
        *bits = 0;
        return true;
    }
    for (const char *at = text;;) {
        size_t here = strcspn(at, ",");
        char name[32] = "";
        uint64_t index = 0;
        if (here < sizeof name)
            memcpy(name, at, here);
        if (!frag_choices_find(field->choices, full_name(name), &index))
            break;
        read |= UINT64_C(1) << index;
        if (at[here] == '\0') {
            *bits = read;
            return true;
        }
        at += here + 1;
    }
    frag_text choices = {0};
    frag_fail(error, FRAG_E_INPUT, "%s is '%s'; expected %ssome of %s", field->key, text,
              may_be_empty ? "none, or " : "", frag_choices_list(field->choices, &choices));
    frag_text_destroy(&choices);
    return false;
}

/* "3,4,6,3" */
static bool read_stages(const char *text, const frag_field *field, frag_stages *stages,
                        frag_error *error)
{
    frag_stages read = {0};
    for (const char *at = text;;) {
        size_t here = strcspn(at, ",");
        if (read.count == FRAG_STAGES_MAX ||
            !read_length(at, here, field, &read.values[read.count++]))
            return frag_fail(error, FRAG_E_INPUT,
                             "%s is '%s'; expected a list of up to %d numbers, each %.0f to %.0f",
                             field->key, text, FRAG_STAGES_MAX, field->min, field->max);
        if (at[here] == '\0')
            break;
        at += here + 1;
    }
    *stages = read;
    return true;
}

/* ---- how a number is drawn */
static bool read_drawn(const char *text, size_t length, const frag_field *field, uint64_t *value)
{
    char part[32];
    if (field->choices[0] != 'b') {
        bool is_forever = field->choices[0] == 'l' && length == strlen("forever") &&
                          memcmp(text, "forever", length) == 0;
        *value = FRAG_UNLIMITED;
        return is_forever || read_length(text, length, field, value);
    }
    if (length == 0 || length >= sizeof part)
        return false;
    memcpy(part, text, length);
    part[length] = '\0';
    return frag_bytes_parse(part, value, NULL) && (double)*value >= field->min &&
           (double)*value <= field->max;
}

/* Have the values the number and the order that their kind wants? */
static bool is_draw(const frag_draw *draw, bool is_span)
{
    uint64_t low = draw->values[0], high = draw->values[1];
    if (draw->kind == FRAG_DRAW_LIST)
        return !is_span || draw->count == 1;
    if (low == FRAG_UNLIMITED || high == FRAG_UNLIMITED)
        return false;
    if (draw->kind == FRAG_DRAW_EXPONENTIAL)
        return draw->count == 1 && !is_span;
    if (draw->kind == FRAG_DRAW_DOUBLING && low == 0)
        return false;
    return draw->count == 2 && (is_span ? draw->kind == FRAG_DRAW_UNIFORM
                                        : low <= high || draw->kind == FRAG_DRAW_LOGNORMAL);
}

static bool read_draw(const char *text, const frag_field *field, frag_draw *draw)
{
    static const char *const words[] = {[FRAG_DRAW_EXPONENTIAL] = "exponential ",
                                        [FRAG_DRAW_LOGNORMAL] = "lognormal ",
                                        [FRAG_DRAW_DOUBLING] = "doubling "};
    for (uint32_t kind = FRAG_DRAW_EXPONENTIAL; kind <= FRAG_DRAW_DOUBLING; kind++)
        if (strncmp(text, words[kind], strlen(words[kind])) == 0) {
            draw->kind = (frag_draw_kind)kind;
            text += strlen(words[kind]);
            break;
        }
    const char *between = draw->kind == FRAG_DRAW_LOGNORMAL ? " "
                          : strstr(text, "..") != NULL      ? ".."
                                                            : ",";
    if (draw->kind == FRAG_DRAW_LIST && between[0] == '.')
        draw->kind = FRAG_DRAW_UNIFORM;
    for (;;) {
        const char *end = strstr(text, between);
        size_t length = end != NULL ? (size_t)(end - text) : strlen(text);
        double factor = 0;
        if (draw->count == FRAG_DRAW_VALUES_MAX)
            return false;
        if (draw->kind == FRAG_DRAW_LOGNORMAL && draw->count == 1) {
            if (!frag_ratio_parse(text, 1, 1000, &factor, NULL))
                return false;
            draw->values[draw->count++] = (uint64_t)(factor * FRAG_DRAW_FACTOR);
        } else if (!read_drawn(text, length, field, &draw->values[draw->count++]))
            return false;
        if (end == NULL)
            return is_draw(draw, field->kind == FRAG_FIELD_SPAN);
        text = end + strlen(between);
    }
}

static bool set_draw(const frag_field *field, const char *text, frag_draw *draw, frag_error *error)
{
    frag_draw read = {.count = 0};
    if (read_draw(text, field, &read)) {
        *draw = read;
        return true;
    }
    if (field->kind == FRAG_FIELD_SPAN)
        return frag_fail(error, FRAG_E_INPUT,
                         "%s is '%s'; expected a size up to 1 TiB, or FIRST..LAST", field->key,
                         text);
    return frag_fail(error, FRAG_E_INPUT,
                     "%s is '%s'; expected %s, a list of up to %d, MIN..MAX, doubling MIN..MAX, "
                     "exponential MEAN or lognormal MEDIAN FACTOR",
                     field->key, text,
                     field->choices[0] == 'b'   ? "a size of 1 B to 1 TiB"
                     : field->choices[0] == 'l' ? "requests, 0 to 10000000, or forever"
                                                : "a number 0 to 65534",
                     FRAG_DRAW_VALUES_MAX);
}

/* ---- any value */
void frag_field_set_number(const frag_field *field, void *base, double value)
{
    char *at = (char *)base + field->offset;
    if (field->kind == FRAG_FIELD_RATIO)
        *(double *)(void *)at = value;
    else if (field->kind == FRAG_FIELD_FLAG)
        *(bool *)(void *)at = value != 0;
    else
        *(uint64_t *)(void *)at = (uint64_t)value;
}

bool frag_field_set_text(const frag_field *field, void *base, const char *text, frag_error *error)
{
    char *at = (char *)base + field->offset;
    uint64_t count = 0;
    double ratio = 0;
    switch (field->kind) {
    case FRAG_FIELD_COUNT:
        if (!frag_count_parse(text, (uint64_t)field->min, (uint64_t)field->max, &count, NULL))
            return frag_fail(error, FRAG_E_INPUT,
                             "%s is '%s'; expected a whole number %.0f to %.0f", field->key, text,
                             field->min, field->max);
        *(uint64_t *)(void *)at = count;
        return true;
    case FRAG_FIELD_RATIO:
        if (!frag_ratio_parse(text, field->min, field->max, &ratio, NULL))
            return frag_fail(error, FRAG_E_INPUT, "%s is '%s'; expected a number %g to %g",
                             field->key, text, field->min, field->max);
        *(double *)(void *)at = ratio;
        return true;
    case FRAG_FIELD_FLAG:
        if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
            return frag_fail(error, FRAG_E_INPUT, "%s is '%s'; expected true or false", field->key,
                             text);
        *(bool *)(void *)at = text[0] == 't';
        return true;
    case FRAG_FIELD_CHOICE:
        if (!frag_choices_find(field->choices, text, &count))
            return refuse_choice(field, text, error);
        *(uint64_t *)(void *)at = count;
        return true;
    case FRAG_FIELD_SET:
        return read_set(text, field, (uint64_t *)(void *)at, error);
    case FRAG_FIELD_STAGES:
        return read_stages(text, field, (frag_stages *)(void *)at, error);
    case FRAG_FIELD_BYTES:
        if (!frag_bytes_parse(text, &count, NULL) || (double)count < field->min ||
            (double)count > field->max)
            return frag_fail(error, FRAG_E_INPUT, "%s is '%s'; expected a size %s to %s",
                             field->key, text, FRAG_BYTES((uint64_t)field->min),
                             FRAG_BYTES((uint64_t)field->max));
        *(uint64_t *)(void *)at = count;
        return true;
    case FRAG_FIELD_NAME:
        if (text[0] == '\0' || strlen(text) >= FRAG_NAME_BYTES)
            return frag_fail(error, FRAG_E_INPUT, "%s is '%s'; expected 1 to %d letters",
                             field->key, text, FRAG_NAME_BYTES - 1);
        memcpy(at, text, strlen(text) + 1);
        return true;
    case FRAG_FIELD_DRAW:
    case FRAG_FIELD_SPAN:
        return set_draw(field, text, (frag_draw *)(void *)at, error);
    case FRAG_FIELD_LENGTHS:
        break;
    }
    return read_lengths(text, field, (frag_lengths *)(void *)at, error);
}

void frag_fields_set_initial(const frag_field *fields, void *base)
{
    for (const frag_field *field = fields; field->key != NULL; field++)
        if (field->kind == FRAG_FIELD_STAGES) {
            bool ok = frag_field_set_text(field, base, field->choices, NULL);
            FRAG_ASSERT(ok);
        } else if (field->kind == FRAG_FIELD_DRAW || field->kind == FRAG_FIELD_SPAN)
            *(frag_draw *)(void *)((char *)base + field->offset) = (frag_draw){.count = 0};
        else if (field->kind == FRAG_FIELD_NAME)
            *((char *)base + field->offset) = '\0';
        else if (field->kind != FRAG_FIELD_LENGTHS)
            frag_field_set_number(field, base, field->initial);
        else if (field->initial > 0)
            *(frag_lengths *)(void *)((char *)base + field->offset) =
                (frag_lengths){.values = {(uint64_t)field->initial}, .count = 1};
}

const frag_field *frag_field_find(const frag_field *fields, const char *key)
{
    for (const frag_field *field = fields; field->key != NULL; field++)
        if (strcmp(field->key, key) == 0)
            return field;
    return NULL;
}

/* ---- YAML */
/* A list of single values as "a,b,c". */
static bool join(const frag_yaml_node *node, frag_text *text, frag_error *error)
{
    for (const frag_yaml_node *item = node->first; item != NULL; item = item->next) {
        if (!frag_yaml_expect(item, FRAG_YAML_SCALAR, node->key, error))
            return false;
        frag_text_add(text, "%s%s", item == node->first ? "" : ",", item->text);
    }
    return true;
}

bool frag_field_read_node(const frag_field *field, void *base, const frag_yaml_node *node,
                          frag_error *error)
{
    frag_text text = {0};
    bool is_list = node->kind == FRAG_YAML_SEQUENCE &&
                   (field->kind == FRAG_FIELD_LENGTHS || field->kind == FRAG_FIELD_SET ||
                    field->kind == FRAG_FIELD_STAGES || field->kind == FRAG_FIELD_DRAW);
    bool ok = is_list ? join(node, &text, error)
                      : frag_yaml_expect(node, FRAG_YAML_SCALAR, node->key, error);
    if (ok && !is_list)
        frag_text_add(&text, "%s", node->text);
    if (ok && !frag_field_set_text(field, base, text.bytes != NULL ? text.bytes : "", error)) {
        error->line = node->line;
        error->column = node->column;
        ok = false;
    }
    frag_text_destroy(&text);
    return ok;
}

bool frag_fields_read(const frag_yaml_node *mapping, const frag_field_group *groups,
                      const char *const *also, frag_error *error)
{
    const char *names[NAMES_MAX] = {0};
    uint32_t count = 0;
    for (const frag_field_group *group = groups; group->fields != NULL; group++)
        for (const frag_field *field = group->fields; field->key != NULL; field++)
            names[count++] = field->key;
    while (*also != NULL)
        names[count++] = *also++;
    FRAG_ASSERT(count < NAMES_MAX);
    if (!frag_yaml_check_keys(mapping, names, error))
        return false;
    for (const frag_yaml_node *node = mapping->first; node != NULL; node = node->next)
        for (const frag_field_group *group = groups; group->fields != NULL; group++) {
            const frag_field *field = frag_field_find(group->fields, node->key);
            if (field != NULL && !frag_field_read_node(field, group->base, node, error))
                return false;
        }
    return true;
}
