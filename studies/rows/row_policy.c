#include "studies/rows/row_policy.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

static bool is_value(const frag_option *option, const frag_option_value *held,
                     const frag_json_value *value)
{
    const char *text = NULL;
    uint64_t number = FRAG_UNLIMITED;
    double ratio = 0;
    bool flag = false;
    switch (option->type) {
    case FRAG_OPTION_BYTES:
    case FRAG_OPTION_COUNT:
        return (frag_json_is_null(value) || frag_json_read_number(value, &number)) &&
               number == held->number;
    case FRAG_OPTION_RATIO:
        return frag_json_read_ratio(value, &ratio) && fabs(ratio - held->ratio) < 1e-9;
    case FRAG_OPTION_FLAG:
        return frag_json_read_flag(value, &flag) && flag == (held->number != 0);
    case FRAG_OPTION_ENUM:
    case FRAG_OPTION_TEXT:
        break;
    }
    return frag_json_read_text(value, &text) && strcmp(text, held->text) == 0;
}

static const frag_json_value *option_of(const frag_json *row, const char *key)
{
    char path[128];
    snprintf(path, sizeof path, "policy.options.%.100s", key);
    return frag_json_at_path(row, path);
}

/* The index of the first option from `from` on that is not as in the row; the count: none. */
static uint32_t find_other(const frag_policy_spec *spec, const frag_json *row, uint32_t from)
{
    uint32_t i = from;
    while (i < spec->value_count && is_value(&spec->ops->options[i], &spec->values[i],
                                             option_of(row, spec->ops->options[i].key)))
        i++;
    return i;
}

/* Labels are often what was typed: then sizes keep the words that they were typed with. */
static bool take_label(const frag_json *row, const char *name, const char *label,
                       frag_policy_spec *spec)
{
    frag_error none = {0};
    size_t length = strlen(name);
    if (strncmp(label, name, length) != 0 || (label[length] != ':' && label[length] != '\0') ||
        !frag_policy_spec_parse(label, spec, &none))
        return false;
    if (!spec->wants_recorded && !spec->wants_env && find_other(spec, row, 0) == spec->value_count)
        return true;
    frag_policy_spec_destroy(spec);
    return false;
}

void frag_row_policy_spell(const frag_json_value *value, char *text, size_t size)
{
    const char *plain = NULL;
    uint64_t number = 0;
    double ratio = 0;
    bool flag = false;
    if (frag_json_read_text(value, &plain))
        snprintf(text, size, "%s", plain);
    else if (frag_json_read_number(value, &number))
        snprintf(text, size, "%" PRIu64, number);
    else if (frag_json_read_ratio(value, &ratio))
        snprintf(text, size, "%.12g", ratio);
    else if (frag_json_read_flag(value, &flag))
        snprintf(text, size, "%s", flag ? "true" : "false");
    else
        snprintf(text, size, "unlimited");
}

static bool set_options(const frag_json *row, frag_policy_spec *spec, frag_error *error)
{
    char text[4096];
    for (uint32_t i = find_other(spec, row, 0); i < spec->value_count;
         i = find_other(spec, row, i + 1)) {
        const char *key = spec->ops->options[i].key;
        const frag_json_value *value = option_of(row, key);
        if (value == NULL)
            continue; /* younger than the row: its default is what the row ran with */
        frag_row_policy_spell(value, text, sizeof text);
        if (!frag_policy_spec_set(spec, key, text, error))
            return false;
    }
    return true;
}

bool frag_row_policy(const frag_json *row, frag_policy_spec *spec, frag_error *error)
{
    const char *name = "";
    const char *label = "";
    frag_json_find_text(row, "policy.name", &name);
    frag_json_find_text(row, "policy.label", &label);
    if (frag_policy_find(name) == NULL)
        return frag_fail(error, FRAG_E_INPUT, "the policy %.60s is not built in", name);
    if (take_label(row, name, label, spec))
        return true;
    if (!frag_policy_spec_parse(name, spec, error))
        return false;
    if (!set_options(row, spec, error)) {
        frag_policy_spec_destroy(spec);
        return false;
    }
    frag_policy_spec_label(spec, label);
    return true;
}
