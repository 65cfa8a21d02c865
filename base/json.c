#include "base/json.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/scope.h"
#include "base/text.h"

/* The library's object is ours; only the name is hidden from callers. */
static json_t *root_of(frag_json *json)
{
    return (json_t *)(void *)json;
}

static void release_root(void *root, size_t bytes)
{
    (void)bytes;
    json_decref(root);
}

/* What the library makes or takes in, when it had the memory for it. */
static json_t *have(json_t *value)
{
    if (value == NULL)
        frag_scope_fail(1, sizeof *value);
    return value;
}

static void done(int result)
{
    if (result != 0)
        frag_scope_fail(1, sizeof(json_t));
}

frag_json *frag_json_create(void)
{
    json_t *root = have(json_object());
    frag_scope_own(root, 0, release_root);
    return (frag_json *)(void *)root;
}

/* The object of that name, made when first named. */
static json_t *child_of(json_t *parent, const char *name)
{
    json_t *child = json_object_get(parent, name);
    if (child == NULL) {
        child = have(json_object());
        done(json_object_set_new(parent, name, child));
    }
    return child;
}

/* The object that holds the last name of a path; *name points into path. */
static json_t *parent_of(frag_json *json, const char *path, const char **name)
{
    json_t *at = root_of(json);
    for (const char *dot = strchr(path, '.'); dot != NULL; dot = strchr(path, '.')) {
        char key[128];
        size_t length = (size_t)(dot - path);
        FRAG_ASSERT(length < sizeof key);
        memcpy(key, path, length);
        key[length] = '\0';
        at = child_of(at, key);
        path = dot + 1;
    }
    *name = path;
    return at;
}

static void set(frag_json *json, const char *path, json_t *value)
{
    const char *name = NULL;
    frag_scope_own(have(value), 0, release_root);
    json_t *parent = parent_of(json, path, &name);
    frag_scope_disown(value);
    done(json_object_set_new(parent, name, value));
}

/* What is not UTF-8 becomes U+FFFD. */
static json_t *text_of(const char *value)
{
    frag_text clean = {0};
    frag_text_add_bytes(&clean, "", 0);
    const char *end = value + strlen(value);
    for (const char *at = value; at < end;) {
        size_t length = frag_text_sequence((const unsigned char *)at, (size_t)(end - at));
        if (length == 0)
            frag_text_add_bytes(&clean, "\xef\xbf\xbd", 3);
        else
            frag_text_add_bytes(&clean, at, length);
        at += length == 0 ? 1 : length;
    }
    json_t *text = json_stringn_nocheck(clean.bytes, clean.length);
    frag_text_destroy(&clean);
    return have(text);
}

void frag_json_text(frag_json *json, const char *path, const char *value)
{
    if (value == NULL)
        frag_json_null(json, path);
    else
        set(json, path, text_of(value));
}

void frag_json_number(frag_json *json, const char *path, uint64_t value)
{
    set(json, path, value > INT64_MAX ? json_null() : json_integer((json_int_t)value));
}

void frag_json_ratio(frag_json *json, const char *path, double value)
{
    set(json, path, isfinite(value) ? json_real(value) : json_null());
}

void frag_json_flag(frag_json *json, const char *path, bool value)
{
    set(json, path, json_boolean(value));
}

void frag_json_entry(frag_json *json, const char *path, const char *name, int64_t value)
{
    json_t *group = root_of(frag_json_object(json, path));
    done(json_object_set_new(group, name, have(json_integer(value))));
}

void frag_json_signed(frag_json *json, const char *path, int64_t value)
{
    set(json, path, json_integer(value));
}

void frag_json_null(frag_json *json, const char *path)
{
    set(json, path, json_null());
}

frag_json *frag_json_object(frag_json *json, const char *path)
{
    const char *name = NULL;
    json_t *parent = parent_of(json, path, &name);
    return (frag_json *)(void *)child_of(parent, name);
}

void frag_json_array(frag_json *json, const char *path)
{
    set(json, path, json_array());
}

static json_t *array_at(frag_json *json, const char *path)
{
    const char *name = NULL;
    json_t *parent = parent_of(json, path, &name);
    json_t *array = json_object_get(parent, name);
    if (array == NULL) {
        array = have(json_array());
        done(json_object_set_new(parent, name, array));
    }
    return array;
}

frag_json *frag_json_add(frag_json *json, const char *path)
{
    json_t *array = array_at(json, path);
    json_t *item = have(json_object());
    done(json_array_append_new(array, item));
    return (frag_json *)(void *)item;
}

void frag_json_append_text(frag_json *json, const char *path, const char *value)
{
    json_t *array = array_at(json, path);
    done(json_array_append_new(array, text_of(value)));
}

void frag_json_append_number(frag_json *json, const char *path, uint64_t value)
{
    json_t *array = array_at(json, path);
    done(json_array_append_new(array, json_integer((json_int_t)value)));
}

void frag_json_write(frag_json *json, FILE *stream, bool is_indented)
{
    size_t layout = is_indented ? (size_t)JSON_INDENT(2) : (size_t)JSON_COMPACT;
    /* A stream that cannot be written to is for its owner to find. */
    if (json_dumpf(root_of(json), stream, layout | JSON_REAL_PRECISION(12)) != 0 && !ferror(stream))
        frag_scope_fail(1, sizeof(json_t));
    fputc('\n', stream);
    frag_json_destroy(json);
}

void frag_json_destroy(frag_json *json)
{
    frag_scope_disown(json);
    json_decref(root_of(json));
}

/* The library takes some failures of memory for faults of the text, and in others goes on without
 * a character (strbuffer_append_byte in its lexer). Both do not come again, so that in a call of
 * ours, which must tell, the text is read twice. */
static json_t *load(const char *bytes, size_t length, json_error_t *found)
{
    json_t *root = json_loadb(bytes, length, JSON_REJECT_DUPLICATES, found);
    if (frag_scope_active() == NULL)
        return root;
    json_t *again = json_loadb(bytes, length, JSON_REJECT_DUPLICATES, found);
    bool is_same = root != NULL ? json_equal(root, again) != 0 : again == NULL;
    json_decref(again);
    if (!is_same) {
        json_decref(root);
        frag_scope_fail(1, length);
    }
    return root;
}

frag_json *frag_json_parse(const char *bytes, size_t length, frag_error *error)
{
    json_error_t found;
    json_t *root = load(bytes, length, &found);
    if (root != NULL && json_is_object(root)) {
        frag_scope_own(root, 0, release_root);
        return (frag_json *)(void *)root;
    }
    /* Where memory fails in the middle, the library says nothing of the text. */
    if (root == NULL &&
        (found.text[0] == '\0' || json_error_code(&found) == json_error_out_of_memory))
        frag_scope_fail(1, length);
    if (root != NULL)
        frag_fail(error, FRAG_E_INPUT, "expected a JSON object, {...}");
    else
        frag_fail_line(error, found.line > 1 ? (uint64_t)found.line : 0,
                       found.column > 0 ? (uint64_t)found.column : 0, "expected a JSON object (%s)",
                       found.text);
    json_decref(root);
    return NULL;
}

static const json_t *find(const frag_json *json, const char *path)
{
    const json_t *at = (const json_t *)(const void *)json;
    while (at != NULL) {
        const char *dot = strchr(path, '.');
        size_t length = dot != NULL ? (size_t)(dot - path) : strlen(path);
        char key[128];
        FRAG_ASSERT(length < sizeof key);
        memcpy(key, path, length);
        key[length] = '\0';
        at = json_object_get(at, key);
        if (dot == NULL)
            break;
        path = dot + 1;
    }
    return at;
}

static const json_t *value_of(const frag_json_value *value)
{
    return (const json_t *)(const void *)value;
}

static const frag_json_value *to_value(const json_t *value)
{
    return (const frag_json_value *)(const void *)value;
}

bool frag_json_find_text(const frag_json *json, const char *path, const char **value)
{
    return frag_json_read_text(to_value(find(json, path)), value);
}

bool frag_json_find_number(const frag_json *json, const char *path, uint64_t *value)
{
    return frag_json_read_number(to_value(find(json, path)), value);
}

uint64_t frag_json_number_at(const frag_json *json, const char *path, uint64_t otherwise)
{
    frag_json_find_number(json, path, &otherwise);
    return otherwise;
}

const frag_json_value *frag_json_at(const frag_json *json, const char *key)
{
    return to_value(json_object_get((const json_t *)(const void *)json, key));
}

const frag_json_value *frag_json_at_path(const frag_json *json, const char *path)
{
    return to_value(find(json, path));
}

bool frag_json_is_null(const frag_json_value *value)
{
    return json_is_null(value_of(value));
}

bool frag_json_is_array(const frag_json_value *value)
{
    return json_is_array(value_of(value));
}

size_t frag_json_count(const frag_json_value *array)
{
    return json_array_size(value_of(array));
}

const frag_json_value *frag_json_item(const frag_json_value *array, size_t index)
{
    return to_value(json_array_get(value_of(array), index));
}

bool frag_json_read_number(const frag_json_value *value, uint64_t *out)
{
    const json_t *found = value_of(value);
    if (!json_is_integer(found) || json_integer_value(found) < 0)
        return false;
    *out = (uint64_t)json_integer_value(found);
    return true;
}

bool frag_json_read_signed(const frag_json_value *value, int64_t *out)
{
    const json_t *found = value_of(value);
    if (!json_is_integer(found))
        return false;
    *out = (int64_t)json_integer_value(found);
    return true;
}

bool frag_json_read_ratio(const frag_json_value *value, double *out)
{
    const json_t *found = value_of(value);
    if (!json_is_number(found))
        return false;
    *out = json_number_value(found);
    return true;
}

bool frag_json_read_flag(const frag_json_value *value, bool *out)
{
    const json_t *found = value_of(value);
    if (!json_is_boolean(found))
        return false;
    *out = json_is_true(found);
    return true;
}

bool frag_json_read_text(const frag_json_value *value, const char **out)
{
    const char *text = json_string_value(value_of(value));
    if (text != NULL)
        *out = text;
    return text != NULL;
}

static bool is_whole(double value)
{
    return fabs(value) < 1e12 && value == trunc(value);
}

const char *frag_json_found(const frag_json_value *value, char text[FRAG_JSON_FOUND_MAX])
{
    const json_t *found = value_of(value);
    const size_t max = FRAG_JSON_FOUND_MAX;
    if (found == NULL)
        snprintf(text, max, "is missing");
    else if (json_is_null(found))
        snprintf(text, max, "is null");
    else if (json_is_boolean(found))
        snprintf(text, max, "is %s", json_is_true(found) ? "true" : "false");
    else if (json_is_integer(found))
        snprintf(text, max, "is %lld", (long long)json_integer_value(found));
    else if (json_is_real(found)) /* 1000.0 is no whole number where one is expected */
        snprintf(text, max, is_whole(json_real_value(found)) ? "is %.1f" : "is %.12g",
                 json_real_value(found));
    else if (json_is_string(found) && json_string_length(found) > 40)
        snprintf(text, max, "is a text of %zu bytes", json_string_length(found));
    else if (json_is_string(found))
        snprintf(text, max, "is \"%s\"", json_string_value(found));
    else
        snprintf(text, max, "is an %s", json_is_array(found) ? "array" : "object");
    return text;
}

bool frag_json_each_in(const frag_json_value *object,
                       bool (*visit)(void *context, const char *key, const frag_json_value *value),
                       void *context)
{
    /* Only the iterator's type wants an object that may be changed. */
    union {
        const json_t *read;
        json_t *walked;
    } members = {.read = value_of(object)};
    bool ok = json_is_object(members.read);
    for (void *at = json_object_iter(members.walked); ok && at != NULL;
         at = json_object_iter_next(members.walked, at))
        ok = visit(context, json_object_iter_key(at), to_value(json_object_iter_value(at)));
    return ok;
}

bool frag_json_each(frag_json *json,
                    bool (*visit)(void *context, const char *key, const frag_json_value *value),
                    void *context)
{
    return frag_json_each_in(to_value(root_of(json)), visit, context);
}

typedef struct json_walk {
    void (*visit)(void *context, const char *path, const frag_json_value *value);
    void *context;
    char path[256];
} json_walk;

/* length: of the path so far. Depth is bounded by the path, of which each level takes a part.
 */
static void visit_object(json_walk *state, json_t *object, size_t length)
{
    for (void *at = json_object_iter(object); at != NULL; at = json_object_iter_next(object, at)) {
        const char *key = json_object_iter_key(at);
        size_t key_length = strlen(key);
        if (length + key_length + 2 > sizeof state->path)
            continue;
        memcpy(state->path + length, key, key_length + 1);
        json_t *value = json_object_iter_value(at);
        if (json_is_object(value)) {
            state->path[length + key_length] = '.';
            visit_object(state, value, length + key_length + 1);
        } else {
            state->visit(state->context, state->path, to_value(value));
        }
    }
}

void frag_json_visit(frag_json *json,
                     void (*visit)(void *context, const char *path, const frag_json_value *value),
                     void *context)
{
    json_walk state = {.visit = visit, .context = context};
    visit_object(&state, root_of(json), 0);
}

const char *frag_json_library_version(void)
{
    return jansson_version_str();
}
