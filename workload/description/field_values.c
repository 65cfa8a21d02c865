#include "workload/description/field_values.h"

#include <string.h>

#include "base/bytes.h"

enum { NAMES_MAX = 64 };

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

/* "a,b": bits of the choices. */
static bool read_set(const char *text, const frag_field *field, uint64_t *bits, frag_error *error)
{
    uint64_t read = 0;
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
    frag_fail(error, FRAG_E_INPUT, "%s is '%s'; expected some of %s", field->key, text,
              frag_choices_list(field->choices, &choices));
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
        } else if (field->kind != FRAG_FIELD_LENGTHS)
            frag_field_set_number(field, base, field->initial);
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
                    field->kind == FRAG_FIELD_STAGES);
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
