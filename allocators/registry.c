/* For dladdr; some builds define it for all files. */
#define _GNU_SOURCE 1

#include "allocators/registry.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/text.h"

/* Every policy: the end of its table's name. The order is that of lists and of --policy all. */
#define POLICIES(X)                                                                                \
    X(pytorch)                                                                                     \
    X(best_fit)                                                                                    \
    X(first_fit)                                                                                   \
    X(next_fit)                                                                                    \
    X(worst_fit)                                                                                   \
    X(size_class)                                                                                  \
    X(slab)                                                                                        \
    X(buddy)                                                                                       \
    X(tlsf)                                                                                        \
    X(tlsf_conte)                                                                                  \
    X(tlsf_vma)                                                                                    \
    X(half_fit)                                                                                    \
    X(direct)                                                                                      \
    X(composed)                                                                                    \
    X(tf_bfc)                                                                                      \
    X(ort_arena)                                                                                   \
    X(rmm_pool)                                                                                    \
    X(rmm_binning)                                                                                 \
    X(rmm_fixed_size)                                                                              \
    X(rmm_arena)                                                                                   \
    X(cupy)                                                                                        \
    X(paddle)                                                                                      \
    X(vma)                                                                                         \
    X(mxnet_naive)                                                                                 \
    X(mxnet_round)                                                                                 \
    X(cuda_async)                                                                                  \
    X(gmlake)                                                                                      \
    X(frugal)                                                                                      \
    X(offline)                                                                                     \
    X(planned)

#define DECLARE(name) extern const frag_policy_ops frag_policy_##name;
POLICIES(DECLARE)
#undef DECLARE

#define ADDRESS(name) &frag_policy_##name,
const frag_policy_ops *const frag_policy_table[] = {POLICIES(ADDRESS) NULL};
#undef ADDRESS

const frag_policy_ops *frag_policy_find(const char *name)
{
    for (size_t i = 0; frag_policy_table[i] != NULL; i++)
        if (strcmp(frag_policy_table[i]->name, name) == 0)
            return frag_policy_table[i];
    return NULL;
}

uint32_t frag_policy_option_count(const frag_policy_ops *ops)
{
    uint32_t count = 0;
    while (ops->options != NULL && ops->options[count].key != NULL)
        count++;
    return count;
}

uint32_t frag_policy_option_find(const frag_policy_ops *ops, const char *key)
{
    uint32_t count = frag_policy_option_count(ops);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(ops->options[i].key, key) == 0)
            return i;
    return count;
}

static bool parse_flag(const char *text, uint64_t *number, frag_error *error)
{
    static const char *const words[] = {"false", "true", "False", "True", "0",
                                        "1",     "no",   "yes",   "off",  "on"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(text, words[i]) == 0) {
            *number = i & 1;
            return true;
        }
    return frag_fail(error, FRAG_E_USAGE, "'%s' is neither true nor false", text);
}

static bool parse_enum(const char *choices, const char *text, uint64_t *number, frag_error *error)
{
    size_t length = strlen(text);
    uint64_t index = 0;
    for (const char *at = choices;; index++) {
        const char *end = strchr(at, '|');
        size_t size = end == NULL ? strlen(at) : (size_t)(end - at);
        if (size == length && memcmp(at, text, length) == 0) {
            *number = index;
            return true;
        }
        if (end == NULL)
            return frag_fail(error, FRAG_E_USAGE, "'%s' is not one of %s", text, choices);
        at = end + 1;
    }
}

static bool parse_value(const frag_option *option, const char *text, frag_option_value *value,
                        frag_error *error)
{
    frag_option_value parsed = *value;
    bool ok = true;
    switch (option->type) {
    case FRAG_OPTION_BYTES:
        ok = frag_bytes_parse(text, &parsed.number, error);
        if (ok && (parsed.number < option->min || parsed.number > option->max)) {
            ok = frag_fail(error, FRAG_E_USAGE, "%s is out of range; expected %s to %s", text,
                           FRAG_BYTES(option->min), FRAG_BYTES(option->max));
        }
        break;
    case FRAG_OPTION_COUNT:
        if (option->max == FRAG_UNLIMITED && strcmp(text, "unlimited") == 0)
            parsed.number = FRAG_UNLIMITED;
        else
            ok = frag_count_parse(text, option->min, option->max, &parsed.number, error);
        break;
    case FRAG_OPTION_RATIO:
        ok = frag_ratio_parse(text, option->ratio_min, option->ratio_max, &parsed.ratio, error);
        break;
    case FRAG_OPTION_FLAG:
        ok = parse_flag(text, &parsed.number, error);
        break;
    case FRAG_OPTION_ENUM:
        ok = parse_enum(option->choices, text, &parsed.number, error);
        break;
    case FRAG_OPTION_TEXT:
        break;
    }
    if (!ok)
        return false;
    parsed.text = frag_copy_text(text);
    *value = parsed;
    return true;
}

static bool fill_defaults(frag_policy_spec *spec, const frag_policy_ops *ops, frag_error *error)
{
    spec->ops = ops;
    spec->value_count = frag_policy_option_count(ops);
    spec->values = frag_alloc(spec->value_count, sizeof *spec->values);
    for (uint32_t i = 0; i < spec->value_count; i++)
        if (!parse_value(&ops->options[i], ops->options[i].default_text, &spec->values[i], error))
            return frag_error_in(error, ops->options[i].key);
    return true;
}

/* The texts are copies made by parse_value. */
static void replace_value(frag_option_value *old, const frag_option_value *fresh)
{
    union {
        const char *borrowed;
        char *owned;
    } text = {.borrowed = old->text};
    frag_free(text.owned);
    *old = *fresh;
}

void frag_policy_spec_destroy(frag_policy_spec *spec)
{
    const frag_option_value none = {.text = NULL};
    for (uint32_t i = 0; i < spec->value_count; i++)
        replace_value(&spec->values[i], &none);
    frag_free(spec->values);
    frag_free(spec->text);
    *spec = (frag_policy_spec){0};
}

static frag_option_value *find_value(frag_policy_spec *spec, const char *key,
                                     const frag_option **option)
{
    uint32_t i = frag_policy_option_find(spec->ops, key);
    if (i >= spec->value_count)
        return NULL;
    *option = &spec->ops->options[i];
    return &spec->values[i];
}

const frag_option_value *frag_policy_spec_value(const frag_policy_spec *spec, const char *key)
{
    uint32_t i = frag_policy_option_find(spec->ops, key);
    return i < spec->value_count ? &spec->values[i] : NULL;
}

const char *frag_policy_spec_text(const frag_policy_spec *spec, const char *key)
{
    const frag_option_value *value = frag_policy_spec_value(spec, key);
    return value != NULL ? value->text : NULL;
}

static bool has_conf(const frag_policy_spec *spec)
{
    return spec->ops->conf_option != NULL;
}

/* Cuts the next item off, up to a comma outside of brackets, and the blanks around it. NULL at the
 * end. */
static char *next_item(char **rest)
{
    char *item = *rest;
    if (item == NULL)
        return NULL;
    int depth = 0;
    char *at = item;
    for (; *at != '\0' && (*at != ',' || depth > 0); at++)
        depth += *at == '[' ? 1 : *at == ']' ? -1 : 0;
    *rest = *at == '\0' ? NULL : at + 1;
    while (at > item && at[-1] == ' ')
        at--;
    *at = '\0';
    while (*item == ' ')
        item++;
    return item;
}

/* Cuts "key = value" at the first separator into key and value. NULL: there is none. */
static char *split_item(char *item)
{
    size_t length = strcspn(item, "=:");
    if (item[length] == '\0')
        return NULL;
    char *value = item + length + 1;
    while (*value == ' ')
        value++;
    while (length > 0 && item[length - 1] == ' ')
        length--;
    item[length] = '\0';
    return value;
}

/* Shows in the options not given what the settings string says, for rows and searches. It is read
 * in earnest when the policy is created: only then is the release known. */
static void show_conf(frag_policy_spec *spec, const char *conf)
{
    const frag_option *option = NULL;
    for (uint32_t i = 0; i < spec->value_count; i++) {
        frag_option_value fresh = {.text = NULL};
        option = &spec->ops->options[i];
        if (!spec->values[i].is_given && parse_value(option, option->default_text, &fresh, NULL))
            replace_value(&spec->values[i], &fresh);
    }
    char *copy = frag_copy_text(conf);
    char *rest = copy;
    for (char *item = next_item(&rest); item != NULL; item = next_item(&rest)) {
        const char *text = split_item(item);
        frag_option_value *value = text == NULL ? NULL : find_value(spec, item, &option);
        frag_option_value fresh = {.text = NULL};
        if (value != NULL && !value->is_given && parse_value(option, text, &fresh, NULL))
            replace_value(value, &fresh);
    }
    frag_free(copy);
}

/* 'fraglab policies' knows a policy from outside the tree by its file alone. */
static bool fail_in_loaded(const frag_policy_spec *spec, const char *key, frag_error *error)
{
    frag_text known = {0};
    for (uint32_t i = 0; i < spec->value_count; i++)
        frag_text_add(&known, "%s%s", i > 0 ? ", " : "; expected one of ",
                      spec->ops->options[i].key);
    frag_fail(error, FRAG_E_USAGE, "%s has no option '%s'%s", spec->ops->name, key,
              known.length > 0 ? known.bytes : "");
    frag_text_destroy(&known);
    return false;
}

bool frag_policy_spec_set(frag_policy_spec *spec, const char *key, const char *value,
                          frag_error *error)
{
    const frag_option *option = NULL;
    frag_option_value *old = find_value(spec, key, &option);
    if (old != NULL) {
        frag_option_value fresh = {.is_given = true};
        frag_error problem = {0};
        if (!parse_value(option, value, &fresh, &problem))
            return frag_fail(error, problem.code, "option '%s' of %s: %s", key, spec->ops->name,
                             problem.sentence);
        replace_value(old, &fresh);
        if (has_conf(spec) && strcmp(key, spec->ops->conf_option) == 0)
            show_conf(spec, value);
        return true;
    }
    const char **names = frag_alloc(spec->value_count, sizeof *names);
    for (uint32_t i = 0; i < spec->value_count; i++)
        names[i] = spec->ops->options[i].key;
    const char *nearest = frag_nearest_name(key, names, spec->value_count);
    frag_free(names);
    if (nearest != NULL)
        return frag_fail(error, FRAG_E_USAGE, "%s has no option '%s'; did you mean '%s'?",
                         spec->ops->name, key, nearest);
    if (has_conf(spec) && strstr(key, "_ALLOC_CONF") != NULL)
        return frag_fail(error, FRAG_E_USAGE,
                         "%s has no option '%s'; write only what is set, as in "
                         "pytorch:expandable_segments:True",
                         spec->ops->name, key);
    if (frag_policy_find(spec->ops->name) != spec->ops)
        return fail_in_loaded(spec, key, error);
    return frag_fail(error, FRAG_E_USAGE, "%s has no option '%s'; 'fraglab policies %s' lists them",
                     spec->ops->name, key, spec->ops->name);
}

/* Joins two settings strings; one of them may end with a comma, as PyTorch allows. */
static void set_conf(frag_policy_spec *spec, const char *before, const char *after)
{
    frag_text joined = {.bytes = NULL};
    size_t length = strlen(before);
    if (length > 0 && after[0] != '\0' && before[length - 1] == ',')
        length--;
    frag_text_add_bytes(&joined, before, length);
    frag_text_add(&joined, "%s%s", length > 0 && after[0] != '\0' ? "," : "", after);
    frag_policy_spec_set(spec, spec->ops->conf_option, joined.bytes, NULL);
    frag_text_destroy(&joined);
}

void frag_policy_spec_take(frag_policy_spec *spec, const char *conf)
{
    FRAG_ASSERT(has_conf(spec));
    set_conf(spec, conf, frag_policy_spec_text(spec, spec->ops->conf_option));
}

static bool apply_item(frag_policy_spec *spec, char *item, frag_error *error)
{
    const char *value = split_item(item);
    if (value != NULL)
        return frag_policy_spec_set(spec, item, value, error);
    if (item[0] == '\0')
        return true; /* PyTorch accepts a trailing comma too */
    if (has_conf(spec) && strcmp(item, "recorded") == 0)
        spec->wants_recorded = true;
    else if (has_conf(spec) && strcmp(item, "env") == 0)
        spec->wants_env = true;
    else if (frag_policy_find(item) != NULL)
        return frag_fail(
            error, FRAG_E_USAGE,
            "'%s' is a policy, behind settings of another; give it a --policy of its own", item);
    else
        return frag_fail(error, FRAG_E_USAGE, "'%s' has no value; write %s=value", item, item);
    return true;
}

/* An item of a settings string. version is no key of PyTorch, however it is written. */
static bool is_literal(const char *item)
{
    return item[strcspn(item, "=:")] == ':' && strncmp(item, "version", strlen("version")) != 0;
}

bool frag_policy_spec_apply(frag_policy_spec *spec, const char *options, frag_error *error)
{
    char *copy = frag_copy_text(options);
    char *rest = copy;
    bool ok = true;
    bool is_whole = true; /* nothing but a settings string */
    frag_text literal = {.bytes = NULL};
    for (char *item = next_item(&rest); ok && item != NULL; item = next_item(&rest)) {
        if (has_conf(spec) && is_literal(item)) {
            frag_text_add(&literal, "%s%s", literal.length > 0 ? "," : "", item);
            continue;
        }
        is_whole = is_whole && item[0] == '\0';
        ok = apply_item(spec, item, error);
    }
    if (ok && literal.length > 0)
        set_conf(spec, frag_policy_spec_text(spec, spec->ops->conf_option),
                 is_whole ? options : literal.bytes);
    frag_text_destroy(&literal);
    frag_free(copy);
    return ok;
}

static bool unknown_name(const char *name, frag_error *error)
{
    const char *names[64];
    size_t count = 0;
    for (size_t i = 0; frag_policy_table[i] != NULL && count < 64; i++)
        names[count++] = frag_policy_table[i]->name;
    const char *nearest = frag_nearest_name(name, names, count);
    const char *last = strrchr(name, ',');
    if (strstr(name, "_ALLOC_CONF") != NULL ||
        (last != NULL && strncmp(name, "pytorch,", 8) == 0 && frag_policy_find(last + 1) == NULL))
        return frag_fail(error, FRAG_E_USAGE,
                         "there is no policy '%s'; settings of PyTorch stand behind pytorch and a "
                         "colon, as in pytorch:expandable_segments:True",
                         name);
    if (last != NULL)
        return frag_fail(error, FRAG_E_USAGE,
                         "there is no policy '%s'; only names without options may be joined by "
                         "commas: repeat --policy",
                         name);
    if (nearest != NULL)
        return frag_fail(error, FRAG_E_USAGE, "there is no policy '%s'; did you mean '%s'?", name,
                         nearest);
    return frag_fail(error, FRAG_E_USAGE, "there is no policy '%s'; 'fraglab policies' lists them",
                     name);
}

static bool is_shared_object(const char *name)
{
    size_t length = strlen(name);
    return length > 3 && strcmp(name + length - 3, ".so") == 0;
}

/* What a policy calls is looked up in what the process shows to all: the program, but not a library
 * that was opened for one user alone, as Python opens them. */
static void show_to_policies(void)
{
    Dl_info ours;
    if (dladdr(&frag_policy_table, &ours) == 0 || ours.dli_fname == NULL)
        return;
    void *object = dlopen(ours.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
    if (object != NULL)
        dlclose(object);
}

/* ---- a table from outside the tree: is all in it that other code reads without a question? */

typedef struct needed_field {
    const char *name;
    bool is_there;
} needed_field;

static bool has_fields(const needed_field *fields, size_t count, const char *where,
                       frag_error *error)
{
    for (size_t i = 0; i < count; i++)
        if (!fields[i].is_there)
            return frag_fail(error, FRAG_E_INPUT,
                             "the table of its policy has no %s%s; docs/adding-a-policy.md says "
                             "what it needs",
                             where, fields[i].name);
    return true;
}

static bool is_text(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static bool has_option(const frag_policy_ops *ops, const char *key)
{
    return frag_policy_option_find(ops, key) < frag_policy_option_count(ops);
}

static bool check_rules(const frag_policy_rules *rules, frag_error *error)
{
    const needed_field fields[] = {
        {"rounding", rules->rounding != NULL}, {"takes", rules->takes != NULL},
        {"cuts", rules->cuts != NULL},         {"joins", rules->joins != NULL},
        {"grows", rules->grows != NULL},       {"streams", rules->streams != NULL},
    };
    return has_fields(fields, sizeof fields / sizeof fields[0], ".rules->", error);
}

static bool check_option(const frag_option *option, frag_error *error)
{
    const needed_field fields[] = {
        {".default_text", option->default_text != NULL},
        {".choices", option->type != FRAG_OPTION_ENUM || option->choices != NULL},
        {".help", option->help != NULL},
        {".type that there is", option->type <= FRAG_OPTION_TEXT},
    };
    char where[128];
    snprintf(where, sizeof where, "option '%s' with ", option->key);
    return has_fields(fields, sizeof fields / sizeof fields[0], where, error);
}

static bool check_table(const frag_policy_ops *ops, frag_error *error)
{
    const needed_field fields[] = {
        {".name", is_text(ops->name)},
        {".summary", ops->summary != NULL},
        {".source", ops->source != NULL},
        {".bound", ops->bound != NULL},
        {".arena_bytes", ops->arena_bytes != NULL},
        {".create", ops->create != NULL},
        {".alloc", ops->alloc != NULL},
        {".free", ops->free != NULL},
        {".walk", ops->walk != NULL},
        {"option that .conf_option names",
         ops->conf_option == NULL || has_option(ops, ops->conf_option)},
        {"option that .fraction_option names",
         ops->fraction_option == NULL || has_option(ops, ops->fraction_option)},
    };
    bool ok = has_fields(fields, sizeof fields / sizeof fields[0], "", error) &&
              (ops->rules == NULL || check_rules(ops->rules, error));
    for (uint32_t i = 0; ok && i < frag_policy_option_count(ops); i++)
        ok = check_option(&ops->options[i], error);
    return ok;
}

bool frag_policy_export_check(const frag_policy_export *export, frag_error *error)
{
    if (export->abi != FRAG_POLICY_ABI)
        return frag_fail(error, FRAG_E_INPUT,
                         "was built for policy ABI %u; this fraglab has %u: build it anew",
                         export->abi, (unsigned)FRAG_POLICY_ABI);
    if (export->ops == NULL)
        return frag_fail(error, FRAG_E_INPUT, "exports no table");
    if (export->ops_bytes != sizeof(frag_policy_ops))
        return frag_fail(
            error, FRAG_E_INPUT,
            "was built with another sim/policy.h (its table has %u bytes; %zu here): build it anew",
            export->ops_bytes, sizeof(frag_policy_ops));
    return check_table(export->ops, error);
}

/* A policy from outside the tree. The object stays loaded: its tables are used until the program
 * ends. */
static const frag_policy_ops *load_shared_object(const char *path, frag_error *error)
{
    /* Without a slash dlopen would search the system's folders. */
    frag_text place = {0};
    frag_text_add(&place, "%s%s", strchr(path, '/') == NULL ? "./" : "", path);
    show_to_policies();
    void *object = dlopen(place.bytes, RTLD_NOW | RTLD_LOCAL);
    frag_text_destroy(&place);
    if (object == NULL) {
        frag_fail(error, FRAG_E_INPUT, "cannot be loaded (%s)", dlerror());
        return NULL;
    }
    const frag_policy_export *export = dlsym(object, "frag_policy_exported");
    if (export == NULL) {
        frag_fail(error, FRAG_E_INPUT,
                  "exports no 'frag_policy_exported'; docs/adding-a-policy.md shows how");
        return NULL;
    }
    return frag_policy_export_check(export, error) ? export->ops : NULL;
}

const frag_policy_ops *frag_policy_find_or_load(const char *name, frag_error *error)
{
    const frag_policy_ops *ops = frag_policy_find(name);
    if (ops == NULL && is_shared_object(name))
        return load_shared_object(name, error);
    if (ops == NULL)
        unknown_name(name, error);
    return ops;
}

bool frag_policy_spec_parse(const char *text, frag_policy_spec *spec, frag_error *error)
{
    *spec = (frag_policy_spec){0};
    char *name = frag_copy_text(text);
    char *options = strchr(name, ':');
    if (options != NULL)
        *options++ = '\0';
    const frag_policy_ops *ops = frag_policy_find_or_load(name, error);
    bool ok = ops != NULL && fill_defaults(spec, ops, error);
    if (ok && options != NULL)
        ok = frag_policy_spec_apply(spec, options, error);
    frag_free(name);
    if (!ok) {
        frag_policy_spec_destroy(spec);
        return frag_error_in(error, "--policy");
    }
    spec->text = frag_copy_text(text);
    return true;
}

bool frag_policy_spec_copy(const frag_policy_spec *from, frag_policy_spec *to)
{
    *to = *from;
    to->text = frag_copy_text(from->text);
    to->values = frag_alloc(from->value_count, sizeof *to->values);
    for (uint32_t i = 0; i < from->value_count; i++) {
        to->values[i] = from->values[i];
        to->values[i].text = frag_copy_text(from->values[i].text);
    }
    return true;
}

void frag_policy_spec_label(frag_policy_spec *spec, const char *label)
{
    frag_free(spec->text);
    spec->text = frag_copy_text(label);
}

static bool append(const char *text, frag_policy_spec **specs, size_t *count, frag_error *error)
{
    frag_policy_spec spec;
    if (!frag_policy_spec_parse(text, &spec, error))
        return false;
    *specs = frag_realloc(*specs, *count + 1, sizeof **specs);
    (*specs)[(*count)++] = spec;
    return true;
}

bool frag_policy_specs_parse(const char *text, frag_policy_spec **specs, size_t *count,
                             frag_error *error)
{
    if (strchr(text, ':') != NULL)
        return append(text, specs, count, error);
    char *copy = frag_copy_text(text);
    bool ok = true;
    char *next = copy;
    while (ok && next != NULL) {
        char *name = next;
        next = strchr(name, ',');
        if (next != NULL)
            *next++ = '\0';
        if (strcmp(name, "all") == 0)
            for (size_t i = 0; ok && frag_policy_table[i] != NULL; i++)
                ok = append(frag_policy_table[i]->name, specs, count, error);
        else
            ok = append(name, specs, count, error);
    }
    frag_free(copy);
    return ok;
}

void frag_policy_specs_destroy(frag_policy_spec *specs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        frag_policy_spec_destroy(&specs[i]);
    frag_free(specs);
}
