#include "sim/device/device_description.h"

#include <ctype.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/bytes.h"
#include "sim/device.h"

#define TOTAL_BYTES_MAX ((uint64_t)1 << 46)
#define PAGE_BYTES_MIN ((uint64_t)512)

static const char *const origin_names[] = {
    [FRAG_ORIGIN_UNSTATED] = "unstated", [FRAG_ORIGIN_MEASURED] = "measured",
    [FRAG_ORIGIN_SOFTWARE] = "software", [FRAG_ORIGIN_NOMINAL] = "nominal",
    [FRAG_ORIGIN_REPORTED] = "reported",
};
#define ORIGIN_COUNT ((int)(sizeof origin_names / sizeof origin_names[0]))

static const char *const reuse_names[] = {
    [FRAG_REUSE_UNKNOWN] = "unknown", [FRAG_REUSE_LOWEST] = "lowest",
    [FRAG_REUSE_LATEST] = "latest",   [FRAG_REUSE_NEVER] = "never",
    [FRAG_REUSE_OTHER] = "other",
};
#define REUSE_COUNT ((int)(sizeof reuse_names / sizeof reuse_names[0]))

/* ---- what a description says, in the order in which it is written */

typedef enum member_kind {
    MEMBER_TEXT,
    MEMBER_ORIGIN, /* this and the next three are kept in 32 bits; 0: not known */
    MEMBER_REUSE,
    MEMBER_ANSWER,
    MEMBER_COUNT,
    MEMBER_BYTES,
    MEMBER_POWER, /* of two, in bytes */
} member_kind;

typedef struct member {
    const char *group; /* "": none */
    const char *key;
    member_kind kind;
    size_t offset;
    uint64_t min, max; /* max of a text: its room in bytes */
} member;

#define AT(name) offsetof(frag_device_description, name)
#define TEXT(name) MEMBER_TEXT, AT(name), 0, sizeof(((frag_device_description *)0)->name)

static const member members[] = {
    {"", "name", TEXT(name)},
    {"", "origin", MEMBER_ORIGIN, AT(origin), 0, 0},
    {"", "source", TEXT(source)},
    {"", "driver", TEXT(driver)},
    {"", "cuda", TEXT(cuda)},
    {"", "date", TEXT(date)},
    {"", "hardware", TEXT(hardware)},
    {"memory", "total", MEMBER_BYTES, AT(total_bytes), FRAG_DEVICE_PAGE_BYTES, TOTAL_BYTES_MAX},
    {"memory", "context", MEMBER_BYTES, AT(context_bytes), 0, TOTAL_BYTES_MAX},
    {"memory", "nominal", MEMBER_BYTES, AT(nominal_bytes), FRAG_DEVICE_PAGE_BYTES, TOTAL_BYTES_MAX},
    {"memory", "page", MEMBER_POWER, AT(footprint.unit_bytes), PAGE_BYTES_MIN,
     FRAG_DEVICE_PAGE_BYTES},
    {"compute", "capability", TEXT(compute.capability)},
    {"compute", "multiprocessors", MEMBER_COUNT, AT(compute.multiprocessor_count), 1, 65536},
    {"compute", "threads_per_multiprocessor", MEMBER_COUNT, AT(compute.threads_per_multiprocessor),
     1, 65536},
    {"compute", "shared_per_block", MEMBER_BYTES, AT(compute.shared_per_block_bytes), 1024,
     FRAG_GIB},
    {"compute", "l2", MEMBER_BYTES, AT(compute.l2_bytes), 1024, 64 * FRAG_GIB},
    {"compute", "bandwidth", MEMBER_BYTES, AT(compute.bandwidth_bytes), 1000000, (uint64_t)1 << 50},
    {"malloc", "alignment", MEMBER_POWER, AT(alignment_bytes), 1, FRAG_GIB},
    {"malloc", "large_alignment", MEMBER_POWER, AT(large_alignment_bytes), 1, FRAG_GIB},
    {"malloc", "reuse", MEMBER_REUSE, AT(reuse), 0, 0},
    {"malloc", "serves_scattered", MEMBER_ANSWER, AT(serves_scattered), 0, 0},
    {"vmm", "granularity", MEMBER_POWER, AT(vmm_granularity_bytes), PAGE_BYTES_MIN,
     FRAG_DEVICE_PAGE_BYTES},
    {"vmm", "recommended", MEMBER_POWER, AT(vmm_recommended_bytes), PAGE_BYTES_MIN, FRAG_GIB},
    {"pool", "first", MEMBER_BYTES, AT(pool_first_bytes), 1, TOTAL_BYTES_MAX},
    {"pool", "step", MEMBER_BYTES, AT(pool_step_bytes), 1, TOTAL_BYTES_MAX},
    {"pool", "releases_at_synchronize", MEMBER_ANSWER, AT(pool_releases_at_sync), 0, 0},
    {"pool", "keeps_below_threshold", MEMBER_ANSWER, AT(pool_keeps_below_limit), 0, 0},
};
enum { MEMBERS = sizeof members / sizeof members[0] };

_Static_assert(sizeof(frag_origin) == sizeof(uint32_t) && sizeof(frag_reuse) == sizeof(uint32_t) &&
                   sizeof(frag_answer) == sizeof(uint32_t),
               "what is read by its number has 32 bits");

static uint64_t number_of(const frag_device_description *description, const member *of)
{
    const char *at = (const char *)description + of->offset;
    uint64_t wide = 0;
    uint32_t small = 0;
    if (of->kind == MEMBER_BYTES || of->kind == MEMBER_POWER)
        memcpy(&wide, at, sizeof wide);
    else
        memcpy(&small, at, sizeof small);
    return wide + small;
}

const char *frag_origin_name(frag_origin origin)
{
    FRAG_ASSERT((int)origin < ORIGIN_COUNT);
    return origin_names[origin];
}

const char *frag_device_description_mark(const frag_device_description *description)
{
    return description->origin == FRAG_ORIGIN_NOMINAL ? " (nominal)" : "";
}

void frag_device_description_clear(frag_device_description *description)
{
    *description = (frag_device_description){.name = ""};
    description->footprint.unit_bytes = FRAG_DEVICE_PAGE_BYTES;
}

uint64_t frag_device_description_page(const frag_device_description *description)
{
    return description->vmm_granularity_bytes != 0 ? description->vmm_granularity_bytes
                                                   : description->footprint.unit_bytes;
}

/* ---- reading */

/* Line breaks of every kind and other characters that YAML cannot hold as they are. */
static bool is_control(const char *at)
{
    const unsigned char *byte = (const unsigned char *)at;
    return byte[0] < ' ' || byte[0] == 0x7f ||
           (byte[0] == 0xc2 && byte[1] >= 0x80 && byte[1] < 0xa0) ||
           (byte[0] == 0xe2 && byte[1] == 0x80 && (byte[2] == 0xa8 || byte[2] == 0xa9)) ||
           (byte[0] == 0xef && byte[1] == 0xbb && byte[2] == 0xbf) ||
           (byte[0] == 0xef && byte[1] == 0xbf && byte[2] >= 0xbe);
}

static bool read_line(const frag_yaml_node *node, const char *key, char *text, size_t text_bytes,
                      frag_error *error)
{
    const char *value = NULL;
    if (!frag_yaml_text(node, &value, error))
        return false;
    size_t length = strlen(value);
    if (length == 0 || length >= text_bytes)
        return frag_fail_line(error, node->line, node->column,
                              "the %s has %zu bytes; expected 1 to %zu", key, length,
                              text_bytes - 1);
    for (size_t i = 0; i < length; i++)
        if (is_control(value + i))
            return frag_fail_line(error, node->line, node->column,
                                  "the %s holds a control character; expected one line of text",
                                  key);
    memcpy(text, value, length + 1);
    return true;
}

/* What --gpu can be given without quotes, but for blanks. */
static bool read_name(const frag_yaml_node *node, const char *key, char *name, frag_error *error)
{
    if (!read_line(node, key, name, FRAG_CARD_NAME_BYTES, error))
        return false;
    for (const char *at = name; *at != '\0'; at++)
        if (!isalnum((unsigned char)*at) && strchr(" -.", *at) == NULL)
            return frag_fail_line(error, node->line, node->column,
                                  "%s: '%s' has a character that no name of a card has; expected "
                                  "letters, digits, blanks, '-' and '.'",
                                  key, name);
    return true;
}

static bool read_names(const frag_yaml_node *root, const char *key, frag_card_aliases *names,
                       frag_error *error)
{
    const frag_yaml_node *list = frag_yaml_find(root, key);
    if (list == NULL)
        return true;
    if (!frag_yaml_expect(list, FRAG_YAML_SEQUENCE, key, error))
        return false;
    if (list->count > FRAG_CARD_NAMES_MAX)
        return frag_fail_line(error, list->line, list->column,
                              "%s has %" PRIu64 " names; expected at most %u", key, list->count,
                              FRAG_CARD_NAMES_MAX);
    for (const frag_yaml_node *item = list->first; item != NULL; item = item->next)
        if (!read_name(item, key, names->names[names->count++], error))
            return false;
    return true;
}

static bool read_bytes(const frag_yaml_node *node, uint64_t min, uint64_t max, uint64_t *bytes,
                       frag_error *error)
{
    uint64_t value = 0;
    if (!frag_yaml_bytes(node, &value, error))
        return false;
    if (value < min || value > max) {
        char low[FRAG_BYTES_TEXT_MAX];
        char high[FRAG_BYTES_TEXT_MAX];
        return frag_fail_line(error, node->line, node->column,
                              "%s: %s is out of range; expected %s to %s", node->key, node->text,
                              frag_bytes_text(min, low), frag_bytes_text(max, high));
    }
    *bytes = value;
    return true;
}

/* Policies round to pages by powers of two, and map ranges of 2 MiB. */
static bool read_power(const frag_yaml_node *node, uint64_t min, uint64_t max, uint64_t *bytes,
                       frag_error *error)
{
    uint64_t value = 0;
    if (!read_bytes(node, min, max, &value, error))
        return false;
    if ((value & (value - 1)) != 0)
        return frag_fail_line(error, node->line, node->column,
                              "%s: %s is not a power of two; expected one such as 2MiB", node->key,
                              node->text);
    *bytes = value;
    return true;
}

static bool read_choice(const frag_yaml_node *node, const char *const *names, int count,
                        uint32_t *choice, frag_error *error)
{
    const char *text = NULL;
    if (!frag_yaml_text(node, &text, error))
        return false;
    frag_text list = {.bytes = NULL};
    /* The first name stands for an absent key. */
    for (int i = 1; i < count; i++) {
        if (strcmp(text, names[i]) == 0) {
            *choice = (uint32_t)i;
            frag_text_destroy(&list);
            return true;
        }
        frag_text_add(&list, "%s%s", i == 1 ? "" : ", ", names[i]);
    }
    frag_fail_line(error, node->line, node->column, "%s: '%s' is not known; expected one of %s",
                   node->key, text, list.bytes);
    frag_text_destroy(&list);
    return false;
}

static bool read_small(const frag_yaml_node *node, const member *as, uint32_t *small,
                       frag_error *error)
{
    bool flag = false;
    uint64_t count = 0;
    if (as->kind == MEMBER_ORIGIN)
        return read_choice(node, origin_names, ORIGIN_COUNT, small, error);
    if (as->kind == MEMBER_REUSE)
        return read_choice(node, reuse_names, REUSE_COUNT, small, error);
    bool ok = as->kind == MEMBER_ANSWER ? frag_yaml_flag(node, &flag, error)
                                        : frag_yaml_count(node, as->min, as->max, &count, error);
    *small = as->kind != MEMBER_ANSWER ? (uint32_t)count : flag ? FRAG_ANSWER_YES : FRAG_ANSWER_NO;
    return ok;
}

/* The value is left alone where the key is absent. */
static bool read_member(const frag_yaml_node *group, const member *as,
                        frag_device_description *read, frag_error *error)
{
    const frag_yaml_node *node = frag_yaml_find(group, as->key);
    char *at = (char *)read + as->offset;
    /* The context is a part of the total, which is read before it. */
    uint64_t max = as->offset == AT(context_bytes) ? read->total_bytes : as->max;
    uint64_t wide = 0;
    uint32_t small = 0;
    if (node == NULL)
        return true;
    if (as->kind == MEMBER_TEXT)
        return read_line(node, as->key, at, (size_t)max, error);
    if (as->kind == MEMBER_BYTES || as->kind == MEMBER_POWER) {
        bool is_read = as->kind == MEMBER_BYTES ? read_bytes(node, as->min, max, &wide, error)
                                                : read_power(node, as->min, max, &wide, error);
        if (is_read)
            memcpy(at, &wide, sizeof wide);
        return is_read;
    }
    if (!read_small(node, as, &small, error))
        return false;
    memcpy(at, &small, sizeof small);
    return true;
}

static bool read_members(const frag_yaml_node *node, const char *group,
                         frag_device_description *read, frag_error *error)
{
    for (size_t i = 0; i < MEMBERS; i++)
        if (strcmp(members[i].group, group) == 0 && !read_member(node, &members[i], read, error))
            return false;
    return true;
}

static bool read_class(const frag_yaml_node *node, frag_footprint *footprint, frag_error *error)
{
    static const char *const keys[] = {"up_to", "takes", NULL};
    frag_footprint_class read = {0, 0};
    if (!frag_yaml_expect(node, FRAG_YAML_MAPPING, "a class of sizes", error) ||
        !frag_yaml_check_keys(node, keys, error))
        return false;
    const frag_yaml_node *up_to = frag_yaml_find(node, "up_to");
    const frag_yaml_node *takes = frag_yaml_find(node, "takes");
    if (up_to == NULL || takes == NULL)
        return frag_fail_line(error, node->line, node->column,
                              "a class of sizes has up_to and takes; write both");
    if (!read_bytes(up_to, 1, FRAG_GIB, &read.up_to_bytes, error) ||
        !read_bytes(takes, 1, 2 * FRAG_GIB, &read.takes_bytes, error))
        return false;
    if (read.takes_bytes < read.up_to_bytes)
        return frag_fail_line(error, node->line, node->column,
                              "a malloc cannot take less than its size; expected takes >= up_to");
    const frag_footprint_class *below =
        footprint->count > 0 ? &footprint->classes[footprint->count - 1] : NULL;
    if (below != NULL &&
        (read.up_to_bytes <= below->up_to_bytes || read.takes_bytes < below->takes_bytes))
        return frag_fail_line(error, node->line, node->column,
                              "the classes do not ascend; sort them by up_to, takes must not fall");
    footprint->classes[footprint->count++] = read;
    return true;
}

static bool read_footprint(const frag_yaml_node *memory, frag_footprint *footprint,
                           frag_error *error)
{
    const frag_yaml_node *list = frag_yaml_find(memory, "footprint");
    if (list == NULL)
        return true;
    if (!frag_yaml_expect(list, FRAG_YAML_SEQUENCE, "footprint", error))
        return false;
    if (list->count > FRAG_FOOTPRINT_CLASSES_MAX)
        return frag_fail_line(error, list->line, list->column,
                              "the footprint has %" PRIu64 " classes; expected at most %d",
                              list->count, FRAG_FOOTPRINT_CLASSES_MAX);
    for (const frag_yaml_node *item = list->first; item != NULL; item = item->next)
        if (!read_class(item, footprint, error))
            return false;
    return true;
}

/* A group of keys, which may be absent. */
static bool read_group(const frag_yaml_node *root, const char *name, frag_device_description *read,
                       frag_error *error)
{
    const frag_yaml_node *group = frag_yaml_find(root, name);
    bool is_memory = strcmp(name, "memory") == 0;
    const char *keys[MEMBERS + 2] = {NULL};
    size_t count = 0;
    if (group == NULL)
        return true;
    for (size_t i = 0; i < MEMBERS; i++)
        if (strcmp(members[i].group, name) == 0)
            keys[count++] = members[i].key;
    if (is_memory)
        keys[count] = "footprint";
    if (!frag_yaml_expect(group, FRAG_YAML_MAPPING, name, error) ||
        !frag_yaml_check_keys(group, keys, error))
        return false;
    if (is_memory && frag_yaml_find(group, "total") == NULL)
        return frag_fail_line(error, group->line, group->column,
                              "'total' is missing; say what the card has, such as total: 24GiB");
    return read_members(group, name, read, error) &&
           (!is_memory || read_footprint(group, &read->footprint, error));
}

/* "2026-11-21": dates that sort as text. */
static bool check_date(const frag_yaml_node *root, const char *date, frag_error *error)
{
    static const char form[] = "dddd-dd-dd";
    size_t length = strlen(date);
    bool ok = length == 0 || length == sizeof form - 1;
    for (size_t i = 0; ok && i < length; i++)
        ok = form[i] == '-' ? date[i] == '-' : date[i] >= '0' && date[i] <= '9';
    if (ok)
        return true;
    const frag_yaml_node *node = frag_yaml_find(root, "date");
    return frag_fail_line(error, node->line, node->column,
                          "'%s' is not a date; write year, month and day as 2026-11-21", date);
}

/* Figures without their origin cannot be cited; a data sheet tells no times. */
static bool check_origin(const frag_yaml_node *root, const frag_device_description *read,
                         frag_error *error)
{
    const char *missing = NULL;
    if (read->total_bytes > 0 && read->origin == FRAG_ORIGIN_UNSTATED)
        missing = "origin";
    else if ((read->origin == FRAG_ORIGIN_NOMINAL || read->origin == FRAG_ORIGIN_REPORTED) &&
             read->source[0] == '\0')
        missing = "source";
    else if (read->origin == FRAG_ORIGIN_MEASURED && read->driver[0] == '\0')
        missing = "driver";
    else if (read->origin == FRAG_ORIGIN_MEASURED && read->date[0] == '\0')
        missing = "date";
    else if (read->origin == FRAG_ORIGIN_MEASURED && read->hardware[0] == '\0')
        missing = "hardware";
    if (missing != NULL)
        return frag_fail_line(error, root->line, root->column,
                              "'%s' is missing; memory needs an origin, nominal and reported "
                              "figures a source, measured ones driver, date and hardware",
                              missing);
    const frag_yaml_node *calls = frag_yaml_find(root, "calls");
    if (read->origin == FRAG_ORIGIN_NOMINAL && calls != NULL)
        return frag_fail_line(
            error, calls->key_line, calls->key_column,
            "a nominal description has no 'calls'; measure them, or leave them out");
    return true;
}

static bool read_calls(const frag_yaml_node *root, frag_device_description *read, frag_error *error)
{
    const frag_yaml_node *calls = frag_yaml_find(root, "calls");
    read->has_latency = calls != NULL;
    memcpy(read->latency.name, read->name, sizeof read->latency.name);
    return calls == NULL || frag_latency_read(calls, &read->latency, error);
}

static bool read_root(const frag_yaml_node *root, frag_device_description *read, frag_error *error)
{
    static const char *const keys[] = {"name",    "origin", "source",   "driver", "cuda", "date",
                                       "calls",   "memory", "hardware", "malloc", "vmm",  "pool",
                                       "aliases", "means",  "compute",  NULL};
    if (!frag_yaml_expect(root, FRAG_YAML_MAPPING, "a device description", error) ||
        !frag_yaml_check_keys(root, keys, error))
        return false;
    if (frag_yaml_find(root, "name") == NULL)
        return frag_fail_line(error, root->line, root->column,
                              "'name' is missing; say what is described, such as name: NVIDIA L4");
    if (frag_yaml_find(root, "calls") == NULL && frag_yaml_find(root, "memory") == NULL)
        return frag_fail_line(
            error, root->line, root->column,
            "neither 'memory' nor 'calls' is here; a description has at least one of them");
    return read_members(root, "", read, error) && check_date(root, read->date, error) &&
           read_names(root, "aliases", &read->aliases, error) &&
           read_names(root, "means", &read->meanings, error) &&
           read_group(root, "compute", read, error) && read_group(root, "memory", read, error) &&
           read_group(root, "malloc", read, error) && read_group(root, "vmm", read, error) &&
           read_group(root, "pool", read, error) && check_origin(root, read, error) &&
           read_calls(root, read, error);
}

static void add_digest(frag_device_description *description)
{
    frag_text text = {.bytes = NULL};
    frag_device_description_write(description, &text);
    frag_digest *digest = frag_digest_create();
    frag_digest_add(digest, text.bytes, text.length);
    frag_digest_finish(digest, description->digest);
    frag_text_destroy(&text);
}

/* Takes the tree over. */
static bool read_tree(frag_yaml_node *root, frag_device_description *description, frag_error *error)
{
    frag_device_description read;
    frag_device_description_clear(&read);
    bool ok = read_root(root, &read, error);
    frag_yaml_destroy(root);
    if (!ok)
        return false;
    add_digest(&read);
    *description = read;
    return true;
}

bool frag_device_description_parse(const void *bytes, size_t count,
                                   frag_device_description *description, frag_error *error)
{
    frag_yaml_node *root = frag_yaml_parse(bytes, count, error);
    return root != NULL && read_tree(root, description, error);
}

bool frag_device_description_load(const char *path, frag_device_description *description,
                                  frag_error *error)
{
    frag_yaml_node *root = frag_yaml_load(path, error);
    return root != NULL && (read_tree(root, description, error) || frag_error_in(error, path));
}

/* ---- writing */

static void write_member(const frag_device_description *description, const member *as,
                         frag_text *text)
{
    uint64_t number = number_of(description, as);
    switch (as->kind) {
    case MEMBER_TEXT:
        frag_yaml_write_text(text, as->key, (const char *)description + as->offset);
        return;
    case MEMBER_ORIGIN:
    case MEMBER_REUSE:
        frag_text_add(text, "%s: %s\n", as->key,
                      (as->kind == MEMBER_ORIGIN ? origin_names : reuse_names)[number]);
        return;
    case MEMBER_ANSWER:
        frag_text_add(text, "%s: %s\n", as->key, number == FRAG_ANSWER_YES ? "true" : "false");
        return;
    case MEMBER_COUNT:
        frag_text_add(text, "%s: %" PRIu64 "\n", as->key, number);
        return;
    case MEMBER_BYTES:
    case MEMBER_POWER:
        frag_yaml_write_bytes(text, as->key, number);
        frag_text_add(text, "\n");
    }
}

/* What is known of a group, below its name. */
static void write_group(const frag_device_description *description, const char *group,
                        frag_text *text)
{
    bool is_inner = group[0] != '\0';
    bool is_open = !is_inner;
    for (size_t i = 0; i < MEMBERS; i++) {
        const member *as = &members[i];
        bool is_known = as->kind == MEMBER_TEXT ? ((const char *)description)[as->offset] != '\0'
                                                : number_of(description, as) != 0;
        if (strcmp(as->group, group) != 0 || !is_known)
            continue;
        if (!is_open)
            frag_text_add(text, "%s:\n", group);
        is_open = true;
        frag_text_add(text, "%s", is_inner ? "  " : "");
        write_member(description, as, text);
    }
}

static void write_footprint(const frag_footprint *footprint, frag_text *text)
{
    if (footprint->count > 0)
        frag_text_add(text, "  footprint:\n");
    for (uint32_t i = 0; i < footprint->count; i++) {
        frag_text_add(text, "    - {");
        frag_yaml_write_bytes(text, "up_to", footprint->classes[i].up_to_bytes);
        frag_text_add(text, ", ");
        frag_yaml_write_bytes(text, "takes", footprint->classes[i].takes_bytes);
        frag_text_add(text, "}\n");
    }
}

static void write_names(frag_text *text, const char *key, const frag_card_aliases *names)
{
    if (names->count == 0)
        return;
    frag_text_add(text, "%s:\n", key);
    for (uint32_t i = 0; i < names->count; i++)
        frag_text_add(text, "  - \"%s\"\n", names->names[i]);
}

void frag_device_description_write(const frag_device_description *description, frag_text *text)
{
    static const char *const groups[] = {"compute", "malloc", "vmm", "pool"};
    write_group(description, "", text);
    write_names(text, "aliases", &description->aliases);
    write_names(text, "means", &description->meanings);
    if (description->total_bytes != 0) {
        write_group(description, "memory", text);
        write_footprint(&description->footprint, text);
    }
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        write_group(description, groups[i], text);
    if (!description->has_latency)
        return;
    frag_text length = {.bytes = NULL};
    frag_latency_write(&description->latency, &length);
    frag_text_add(text, "calls:%s\n", length.length == 0 ? " {}" : "");
    if (length.length > 0)
        frag_text_add_bytes(text, length.bytes, length.length);
    frag_text_destroy(&length);
}
