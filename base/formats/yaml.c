#include "base/formats/yaml.h"

#include <inttypes.h>
#include <string.h>
#include <yaml.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/scope.h"
#include "base/text.h"

#define DOCUMENT_BYTES_MAX ((size_t)1 << 20)
enum { DEPTH_MAX = 32 };

void frag_yaml_destroy(frag_yaml_node *node)
{
    /* Depth is bounded, so this recursion is; items beside each other are walked. */
    while (node != NULL) {
        frag_yaml_node *next = node->next;
        frag_yaml_destroy(node->first);
        frag_free(node->key);
        frag_free(node->text);
        frag_free(node);
        node = next;
    }
}

static bool fail_mark(frag_error *error, const yaml_mark_t *mark, const char *sentence)
{
    return frag_fail_line(error, mark->line + 1, mark->column + 1, "%s", sentence);
}

/* Events and the parser lie in memory that outlasts the stack where host memory fails. */
static void release_event(void *event, size_t bytes)
{
    (void)bytes;
    yaml_event_delete(event);
}

static yaml_event_t *create_event(void)
{
    yaml_event_t *event = frag_alloc(1, sizeof *event);
    frag_scope_own(event, 0, release_event);
    return event;
}

static void destroy_event(yaml_event_t *event)
{
    frag_scope_disown(event);
    yaml_event_delete(event);
    frag_free(event);
}

static void release_parser(void *parser, size_t bytes)
{
    (void)bytes;
    yaml_parser_delete(parser);
}

static bool next_event(yaml_parser_t *parser, yaml_event_t *event, frag_error *error)
{
    if (yaml_parser_parse(parser, event) != 0)
        return true;
    if (parser->error == YAML_MEMORY_ERROR)
        frag_scope_fail(1, sizeof *event);
    const char *problem = parser->problem != NULL ? parser->problem : "it cannot be read";
    if (parser->error == YAML_READER_ERROR)
        return frag_fail_at(error, parser->problem_offset, "not YAML: %s; expected UTF-8 text",
                            problem);
    return frag_fail_line(error, parser->problem_mark.line + 1, parser->problem_mark.column + 1,
                          "not YAML: %s; check indentation, quotes and brackets here", problem);
}

static bool copy_scalar(const yaml_event_t *event, char **text, frag_error *error)
{
    const char *value = (const char *)event->data.scalar.value;
    if (memchr(value, 0, event->data.scalar.length) != NULL)
        return fail_mark(error, &event->start_mark, "a zero byte is not text; leave it out");
    *text = frag_copy_text(value);
    return true;
}

/* Does the value begin with something that we do not read? */
static bool check_plain(const yaml_event_t *event, frag_error *error)
{
    const yaml_char_t *anchor = NULL;
    const yaml_char_t *tag = NULL;
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
        break;
    case YAML_SEQUENCE_START_EVENT:
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
        break;
    case YAML_MAPPING_START_EVENT:
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
        break;
    default:
        return fail_mark(error, &event->start_mark,
                         "aliases (*name) are not read; write the value out");
    }
    if (anchor != NULL)
        return fail_mark(error, &event->start_mark,
                         "anchors (&name) are not read; write the value out where it is used");
    if (tag != NULL)
        return fail_mark(error, &event->start_mark, "tags (!name) are not read; leave the tag out");
    return true;
}

static bool read_node(yaml_parser_t *parser, const yaml_event_t *event, int depth,
                      frag_yaml_node *node, frag_error *error);

static void append(frag_yaml_node *parent, frag_yaml_node **last, frag_yaml_node *item)
{
    if (*last == NULL)
        parent->first = item;
    else
        (*last)->next = item;
    *last = item;
    parent->count++;
}

/* Reads the key in event into item and moves event on to the value. */
static bool read_key(yaml_parser_t *parser, yaml_event_t *event, frag_strings *keys,
                     frag_yaml_node *item, frag_error *error)
{
    item->key_line = event->start_mark.line + 1;
    item->key_column = event->start_mark.column + 1;
    if (event->type != YAML_SCALAR_EVENT && event->type != YAML_ALIAS_EVENT)
        return fail_mark(error, &event->start_mark,
                         "a key is not a plain word; expected 'key: value'");
    if (!check_plain(event, error) || !copy_scalar(event, &item->key, error))
        return false;
    uint32_t before = keys->count;
    frag_strings_add(keys, item->key, strlen(item->key));
    if (keys->count == before)
        return frag_fail_line(error, item->key_line, item->key_column,
                              "'%s' is given twice; keep one of them", item->key);
    yaml_event_delete(event);
    *event = (yaml_event_t){.type = YAML_NO_EVENT};
    return next_event(parser, event, error);
}

static bool read_items(yaml_parser_t *parser, int depth, frag_yaml_node *node, frag_error *error)
{
    yaml_event_type_t end =
        node->kind == FRAG_YAML_MAPPING ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
    frag_strings keys = {.count = 0};
    frag_yaml_node *last = NULL;
    bool is_at_end = false;
    bool ok = true;
    while (ok && !is_at_end) {
        yaml_event_t *event = create_event();
        ok = next_event(parser, event, error);
        is_at_end = ok && event->type == end;
        if (ok && !is_at_end) {
            frag_yaml_node *item = frag_alloc(1, sizeof *item);
            append(node, &last, item);
            ok = (node->kind != FRAG_YAML_MAPPING || read_key(parser, event, &keys, item, error)) &&
                 read_node(parser, event, depth + 1, item, error);
        }
        destroy_event(event);
    }
    frag_strings_destroy(&keys);
    return ok;
}

static bool read_node(yaml_parser_t *parser, const yaml_event_t *event, int depth,
                      frag_yaml_node *node, frag_error *error)
{
    node->line = event->start_mark.line + 1;
    node->column = event->start_mark.column + 1;
    if (!check_plain(event, error))
        return false;
    if (depth > DEPTH_MAX)
        return fail_mark(error, &event->start_mark,
                         "more than 32 levels are nested here; expected a flatter document");
    if (event->type == YAML_SCALAR_EVENT) {
        node->kind = FRAG_YAML_SCALAR;
        node->is_quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
        return copy_scalar(event, &node->text, error);
    }
    node->kind = event->type == YAML_MAPPING_START_EVENT ? FRAG_YAML_MAPPING : FRAG_YAML_SEQUENCE;
    return read_items(parser, depth, node, error);
}

/* The next event must be of that type; it carries nothing. */
static bool pass_event(yaml_parser_t *parser, yaml_event_type_t type, const char *sentence,
                       frag_error *error)
{
    yaml_event_t *event = create_event();
    bool ok = next_event(parser, event, error) &&
              (event->type == type || fail_mark(error, &event->start_mark, sentence));
    destroy_event(event);
    return ok;
}

static bool read_document(yaml_parser_t *parser, frag_yaml_node *root, frag_error *error)
{
    if (!pass_event(parser, YAML_STREAM_START_EVENT, "not YAML", error) ||
        !pass_event(parser, YAML_DOCUMENT_START_EVENT,
                    "the document is empty; expected 'key: value' lines", error))
        return false;
    yaml_event_t *event = create_event();
    bool ok = next_event(parser, event, error) && read_node(parser, event, 1, root, error);
    destroy_event(event);
    return ok && pass_event(parser, YAML_DOCUMENT_END_EVENT, "not YAML", error) &&
           pass_event(parser, YAML_STREAM_END_EVENT,
                      "a second document begins here; expected one only", error);
}

frag_yaml_node *frag_yaml_parse(const void *bytes, size_t count, frag_error *error)
{
    yaml_parser_t *parser = frag_alloc(1, sizeof *parser);
    if (yaml_parser_initialize(parser) == 0)
        frag_scope_fail(1, sizeof *parser);
    frag_scope_own(parser, 0, release_parser);
    yaml_parser_set_input_string(parser, bytes, count);
    frag_yaml_node *root = frag_alloc(1, sizeof *root);
    bool ok = read_document(parser, root, error);
    frag_scope_disown(parser);
    yaml_parser_delete(parser);
    frag_free(parser);
    if (ok)
        return root;
    frag_yaml_destroy(root);
    return NULL;
}

frag_yaml_node *frag_yaml_load(const char *path, frag_error *error)
{
    frag_input *input = frag_input_open(path, error);
    if (input == NULL)
        return NULL;
    const unsigned char *bytes = NULL;
    size_t count = 0;
    frag_yaml_node *root = NULL;
    if (frag_input_peek(input, DOCUMENT_BYTES_MAX + 1, &bytes, &count, error)) {
        if (count > DOCUMENT_BYTES_MAX)
            frag_fail(error, FRAG_E_INPUT,
                      "has more than 1 MiB; expected a document written by hand");
        else
            root = frag_yaml_parse(bytes, count, error);
    }
    if (root == NULL)
        frag_error_in(error, frag_input_name(input));
    frag_input_close(input);
    return root;
}

const frag_yaml_node *frag_yaml_find(const frag_yaml_node *mapping, const char *key)
{
    FRAG_ASSERT(mapping->kind == FRAG_YAML_MAPPING);
    for (const frag_yaml_node *item = mapping->first; item != NULL; item = item->next)
        if (strcmp(item->key, key) == 0)
            return item;
    return NULL;
}

bool frag_yaml_expect(const frag_yaml_node *node, frag_yaml_kind kind, const char *what,
                      frag_error *error)
{
    static const char *const kinds[] = {"a single value", "a list", "'key: value' lines"};
    if (node->kind == kind)
        return true;
    return frag_fail_line(error, node->line, node->column, "'%s' is %s; expected %s", what,
                          kinds[node->kind], kinds[kind]);
}

static bool is_one_of(const char *key, const char *const *names)
{
    while (*names != NULL && strcmp(key, *names) != 0)
        names++;
    return *names != NULL;
}

static bool fail_unknown_key(const frag_yaml_node *item, const char *const *names,
                             frag_error *error)
{
    size_t count = 0;
    frag_text list = {.bytes = NULL};
    for (; names[count] != NULL; count++)
        frag_text_add(&list, "%s%s", count == 0 ? "" : ", ", names[count]);
    const char *nearest = frag_nearest_name(item->key, names, count);
    frag_fail_line(error, item->key_line, item->key_column, "unknown key '%s'; %s%s", item->key,
                   nearest != NULL ? "did you mean " : "expected one of ",
                   nearest != NULL ? nearest : list.bytes);
    frag_text_destroy(&list);
    return false;
}

bool frag_yaml_check_keys(const frag_yaml_node *mapping, const char *const *names,
                          frag_error *error)
{
    for (const frag_yaml_node *item = mapping->first; item != NULL; item = item->next)
        if (!is_one_of(item->key, names))
            return fail_unknown_key(item, names, error);
    return true;
}

bool frag_yaml_text(const frag_yaml_node *node, const char **text, frag_error *error)
{
    if (!frag_yaml_expect(node, FRAG_YAML_SCALAR, node->key != NULL ? node->key : "item", error))
        return false;
    *text = node->text;
    return true;
}

/* A wrong number is about the file here, not about the command line. */
static bool fail_value(const frag_yaml_node *node, const frag_error *cause, frag_error *error)
{
    return frag_fail_line(error, node->line, node->column, "%s%s%s",
                          node->key != NULL ? node->key : "", node->key != NULL ? ": " : "",
                          cause->sentence);
}

bool frag_yaml_bytes(const frag_yaml_node *node, uint64_t *bytes, frag_error *error)
{
    const char *text = NULL;
    frag_error cause = {.code = FRAG_E_NONE};
    return frag_yaml_text(node, &text, error) &&
           (frag_bytes_parse(text, bytes, &cause) || fail_value(node, &cause, error));
}

bool frag_yaml_count(const frag_yaml_node *node, uint64_t min, uint64_t max, uint64_t *count,
                     frag_error *error)
{
    const char *text = NULL;
    frag_error cause = {.code = FRAG_E_NONE};
    return frag_yaml_text(node, &text, error) &&
           (frag_count_parse(text, min, max, count, &cause) || fail_value(node, &cause, error));
}

bool frag_yaml_ratio(const frag_yaml_node *node, double min, double max, double *ratio,
                     frag_error *error)
{
    const char *text = NULL;
    frag_error cause = {.code = FRAG_E_NONE};
    return frag_yaml_text(node, &text, error) &&
           (frag_ratio_parse(text, min, max, ratio, &cause) || fail_value(node, &cause, error));
}

bool frag_yaml_flag(const frag_yaml_node *node, bool *flag, frag_error *error)
{
    const char *text = NULL;
    if (!frag_yaml_text(node, &text, error))
        return false;
    *flag = strcmp(text, "true") == 0;
    if (*flag || strcmp(text, "false") == 0)
        return true;
    frag_error cause = {.code = FRAG_E_NONE};
    frag_fail(&cause, FRAG_E_INPUT, "'%s' is neither true nor false", text);
    return fail_value(node, &cause, error);
}

void frag_yaml_write_text(frag_text *text, const char *key, const char *value)
{
    if (value[0] == '\0')
        return;
    frag_text_add(text, "%s: '", key);
    for (const char *at = value; *at != '\0'; at++)
        frag_text_add(text, "%s%c", *at == '\'' ? "'" : "", *at);
    frag_text_add(text, "'\n");
}

void frag_yaml_write_bytes(frag_text *text, const char *key, uint64_t bytes)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } units[] = {{"GiB", FRAG_GIB}, {"MiB", FRAG_MIB}, {"KiB", FRAG_KIB}, {"", 1}};
    size_t unit = bytes == 0 ? sizeof units / sizeof units[0] - 1 : 0;
    while (bytes % units[unit].bytes != 0)
        unit++;
    frag_text_add(text, "%s: %" PRIu64 "%s", key, bytes / units[unit].bytes, units[unit].name);
}

const char *frag_yaml_library_version(void)
{
    return yaml_get_version_string();
}
