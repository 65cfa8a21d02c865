#include "sim/device/device_description.h"

#include <ctype.h>
#include <inttypes.h>
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

/* ---- reading; what reads a key leaves its value alone when the key is absent */

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

static bool read_text(const frag_yaml_node *root, const char *key, char *text, size_t text_bytes,
                      frag_error *error)
{
    const frag_yaml_node *node = frag_yaml_find(root, key);
    return node == NULL || read_line(node, key, text, text_bytes, error);
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

static bool read_bytes(const frag_yaml_node *group, const char *key, uint64_t min, uint64_t max,
                       uint64_t *bytes, frag_error *error)
{
    const frag_yaml_node *node = frag_yaml_find(group, key);
    uint64_t value = 0;
    if (node == NULL)
        return true;
    if (!frag_yaml_bytes(node, &value, error))
        return false;
    if (value < min || value > max) {
        char low[FRAG_BYTES_TEXT_MAX];
        char high[FRAG_BYTES_TEXT_MAX];
        return frag_fail_line(error, node->line, node->column,
                              "%s: %s is out of range; expected %s to %s", key, node->text,
                              frag_bytes_text(min, low), frag_bytes_text(max, high));
    }
    *bytes = value;
    return true;
}

/* Policies round to pages by powers of two, and map ranges of 2 MiB. */
static bool read_power(const frag_yaml_node *group, const char *key, uint64_t min, uint64_t max,
                       uint64_t *bytes, frag_error *error)
{
    uint64_t value = *bytes;
    if (!read_bytes(group, key, min, max, &value, error))
        return false;
    if ((value & (value - 1)) != 0) {
        const frag_yaml_node *node = frag_yaml_find(group, key);
        return frag_fail_line(error, node->line, node->column,
                              "%s: %s is not a power of two; expected one such as 2MiB", key,
                              node->text);
    }
    *bytes = value;
    return true;
}

static bool read_choice(const frag_yaml_node *group, const char *key, const char *const *names,
                        int count, int *choice, frag_error *error)
{
    const frag_yaml_node *node = frag_yaml_find(group, key);
    const char *text = NULL;
    if (node == NULL)
        return true;
    if (!frag_yaml_text(node, &text, error))
        return false;
    frag_text list = {.bytes = NULL};
    /* The first name stands for an absent key. */
    for (int i = 1; i < count; i++) {
        if (strcmp(text, names[i]) == 0) {
            *choice = i;
            frag_text_destroy(&list);
            return true;
        }
        frag_text_add(&list, "%s%s", i == 1 ? "" : ", ", names[i]);
    }
    frag_fail_line(error, node->line, node->column, "%s: '%s' is not known; expected one of %s",
                   key, text, list.bytes);
    frag_text_destroy(&list);
    return false;
}

static bool read_answer(const frag_yaml_node *group, const char *key, frag_answer *answer,
                        frag_error *error)
{
    const frag_yaml_node *node = frag_yaml_find(group, key);
    bool flag = false;
    if (node == NULL)
        return true;
    if (!frag_yaml_flag(node, &flag, error))
        return false;
    *answer = flag ? FRAG_ANSWER_YES : FRAG_ANSWER_NO;
    return true;
}

static bool read_class(const frag_yaml_node *node, frag_footprint *footprint, frag_error *error)
{
    static const char *const keys[] = {"up_to", "takes", NULL};
    frag_footprint_class read = {0, 0};
    if (!frag_yaml_expect(node, FRAG_YAML_MAPPING, "a class of sizes", error) ||
        !frag_yaml_check_keys(node, keys, error))
        return false;
    if (node->count != 2)
        return frag_fail_line(error, node->line, node->column,
                              "a class of sizes has up_to and takes; write both");
    if (!read_bytes(node, "up_to", 1, FRAG_GIB, &read.up_to_bytes, error) ||
        !read_bytes(node, "takes", 1, 2 * FRAG_GIB, &read.takes_bytes, error))
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

/* A group of keys; absent: *group is NULL. */
static bool find_group(const frag_yaml_node *root, const char *key, const char *const *keys,
                       const frag_yaml_node **group, frag_error *error)
{
    *group = frag_yaml_find(root, key);
    return *group == NULL || (frag_yaml_expect(*group, FRAG_YAML_MAPPING, key, error) &&
                              frag_yaml_check_keys(*group, keys, error));
}

static bool read_memory(const frag_yaml_node *root, frag_device_description *read,
                        frag_error *error)
{
    static const char *const keys[] = {"total", "context", "page", "footprint", "nominal", NULL};
    const frag_yaml_node *memory = NULL;
    if (!find_group(root, "memory", keys, &memory, error))
        return false;
    if (memory == NULL)
        return true;
    if (frag_yaml_find(memory, "total") == NULL)
        return frag_fail_line(error, memory->line, memory->column,
                              "'total' is missing; say what the card has, such as total: 24GiB");
    if (!read_bytes(memory, "total", FRAG_DEVICE_PAGE_BYTES, TOTAL_BYTES_MAX, &read->total_bytes,
                    error) ||
        !read_power(memory, "page", PAGE_BYTES_MIN, FRAG_DEVICE_PAGE_BYTES,
                    &read->footprint.unit_bytes, error) ||
        !read_bytes(memory, "nominal", FRAG_DEVICE_PAGE_BYTES, TOTAL_BYTES_MAX,
                    &read->nominal_bytes, error) ||
        !read_bytes(memory, "context", 0, read->total_bytes, &read->context_bytes, error))
        return false;
    return read_footprint(memory, &read->footprint, error);
}

static bool read_malloc(const frag_yaml_node *root, frag_device_description *read,
                        frag_error *error)
{
    static const char *const keys[] = {"alignment", "large_alignment", "reuse", "serves_scattered",
                                       NULL};
    const frag_yaml_node *group = NULL;
    int reuse = FRAG_REUSE_UNKNOWN;
    if (!find_group(root, "malloc", keys, &group, error))
        return false;
    if (group == NULL)
        return true;
    if (!read_power(group, "alignment", 1, FRAG_GIB, &read->alignment_bytes, error) ||
        !read_power(group, "large_alignment", 1, FRAG_GIB, &read->large_alignment_bytes, error) ||
        !read_choice(group, "reuse", reuse_names, REUSE_COUNT, &reuse, error) ||
        !read_answer(group, "serves_scattered", &read->serves_scattered, error))
        return false;
    read->reuse = (frag_reuse)reuse;
    return true;
}

static bool read_vmm(const frag_yaml_node *root, frag_device_description *read, frag_error *error)
{
    static const char *const keys[] = {"granularity", "recommended", NULL};
    const frag_yaml_node *group = NULL;
    if (!find_group(root, "vmm", keys, &group, error))
        return false;
    return group == NULL ||
           (read_power(group, "granularity", PAGE_BYTES_MIN, FRAG_DEVICE_PAGE_BYTES,
                       &read->vmm_granularity_bytes, error) &&
            read_power(group, "recommended", PAGE_BYTES_MIN, FRAG_GIB, &read->vmm_recommended_bytes,
                       error));
}

static bool read_pool(const frag_yaml_node *root, frag_device_description *read, frag_error *error)
{
    static const char *const keys[] = {"first", "step", "releases_at_synchronize",
                                       "keeps_below_threshold", NULL};
    const frag_yaml_node *group = NULL;
    if (!find_group(root, "pool", keys, &group, error))
        return false;
    return group == NULL ||
           (read_bytes(group, "first", 1, TOTAL_BYTES_MAX, &read->pool_first_bytes, error) &&
            read_bytes(group, "step", 1, TOTAL_BYTES_MAX, &read->pool_step_bytes, error) &&
            read_answer(group, "releases_at_synchronize", &read->pool_releases_at_sync, error) &&
            read_answer(group, "keeps_below_threshold", &read->pool_keeps_below_limit, error));
}

static bool read_small(const frag_yaml_node *group, const char *key, uint32_t max, uint32_t *count,
                       frag_error *error)
{
    const frag_yaml_node *node = frag_yaml_find(group, key);
    uint64_t value = *count;
    if (node != NULL && !frag_yaml_count(node, 1, max, &value, error))
        return false;
    *count = (uint32_t)value;
    return true;
}

static bool read_compute(const frag_yaml_node *root, frag_compute *compute, frag_error *error)
{
    static const char *const keys[] = {"capability",
                                       "multiprocessors",
                                       "threads_per_multiprocessor",
                                       "shared_per_block",
                                       "l2",
                                       "bandwidth",
                                       NULL};
    const frag_yaml_node *group = NULL;
    if (!find_group(root, "compute", keys, &group, error))
        return false;
    return group == NULL ||
           (read_text(group, "capability", compute->capability, sizeof compute->capability,
                      error) &&
            read_small(group, "multiprocessors", 65536, &compute->multiprocessor_count, error) &&
            read_small(group, "threads_per_multiprocessor", 65536,
                       &compute->threads_per_multiprocessor, error) &&
            read_bytes(group, "shared_per_block", 1024, FRAG_GIB, &compute->shared_per_block_bytes,
                       error) &&
            read_bytes(group, "l2", 1024, 64 * FRAG_GIB, &compute->l2_bytes, error) &&
            read_bytes(group, "bandwidth", 1000000, (uint64_t)1 << 50, &compute->bandwidth_bytes,
                       error));
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
    int origin = FRAG_ORIGIN_UNSTATED;
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
    if (!read_text(root, "name", read->name, sizeof read->name, error) ||
        !read_choice(root, "origin", origin_names, ORIGIN_COUNT, &origin, error) ||
        !read_text(root, "source", read->source, sizeof read->source, error) ||
        !read_text(root, "driver", read->driver, sizeof read->driver, error) ||
        !read_text(root, "cuda", read->cuda, sizeof read->cuda, error) ||
        !read_text(root, "date", read->date, sizeof read->date, error) ||
        !check_date(root, read->date, error) ||
        !read_text(root, "hardware", read->hardware, sizeof read->hardware, error))
        return false;
    read->origin = (frag_origin)origin;
    return read_names(root, "aliases", &read->aliases, error) &&
           read_names(root, "means", &read->meanings, error) &&
           read_compute(root, &read->compute, error) && read_memory(root, read, error) &&
           read_malloc(root, read, error) && read_vmm(root, read, error) &&
           read_pool(root, read, error) && check_origin(root, read, error) &&
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

/* A line of a group, with the group's name before its first one. */
static void open_group(frag_text *text, const char **group)
{
    if (*group != NULL)
        frag_text_add(text, "%s:\n", *group);
    *group = NULL;
    frag_text_add(text, "  ");
}

static void write_group_bytes(frag_text *text, const char **group, const char *key, uint64_t bytes)
{
    if (bytes == 0)
        return;
    open_group(text, group);
    frag_yaml_write_bytes(text, key, bytes);
    frag_text_add(text, "\n");
}

static void write_group_answer(frag_text *text, const char **group, const char *key,
                               frag_answer answer)
{
    if (answer == FRAG_ANSWER_UNKNOWN)
        return;
    open_group(text, group);
    frag_text_add(text, "%s: %s\n", key, answer == FRAG_ANSWER_YES ? "true" : "false");
}

static void write_memory(const frag_device_description *description, frag_text *text)
{
    const frag_footprint *footprint = &description->footprint;
    const char *group = "memory";
    if (description->total_bytes == 0)
        return;
    write_group_bytes(text, &group, "total", description->total_bytes);
    write_group_bytes(text, &group, "context", description->context_bytes);
    write_group_bytes(text, &group, "nominal", description->nominal_bytes);
    write_group_bytes(text, &group, "page", footprint->unit_bytes);
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

static void write_group_count(frag_text *text, const char **group, const char *key, uint32_t count)
{
    if (count == 0)
        return;
    open_group(text, group);
    frag_text_add(text, "%s: %" PRIu32 "\n", key, count);
}

static void write_compute(frag_text *text, const frag_compute *compute)
{
    const char *group = "compute";
    if (compute->capability[0] != '\0') {
        open_group(text, &group);
        frag_yaml_write_text(text, "capability", compute->capability);
    }
    write_group_count(text, &group, "multiprocessors", compute->multiprocessor_count);
    write_group_count(text, &group, "threads_per_multiprocessor",
                      compute->threads_per_multiprocessor);
    write_group_bytes(text, &group, "shared_per_block", compute->shared_per_block_bytes);
    write_group_bytes(text, &group, "l2", compute->l2_bytes);
    write_group_bytes(text, &group, "bandwidth", compute->bandwidth_bytes);
}

void frag_device_description_write(const frag_device_description *description, frag_text *text)
{
    frag_yaml_write_text(text, "name", description->name);
    if (description->origin != FRAG_ORIGIN_UNSTATED)
        frag_text_add(text, "origin: %s\n", origin_names[description->origin]);
    frag_yaml_write_text(text, "source", description->source);
    frag_yaml_write_text(text, "driver", description->driver);
    frag_yaml_write_text(text, "cuda", description->cuda);
    frag_yaml_write_text(text, "date", description->date);
    frag_yaml_write_text(text, "hardware", description->hardware);
    write_names(text, "aliases", &description->aliases);
    write_names(text, "means", &description->meanings);
    write_memory(description, text);
    write_compute(text, &description->compute);
    const char *group = "malloc";
    write_group_bytes(text, &group, "alignment", description->alignment_bytes);
    write_group_bytes(text, &group, "large_alignment", description->large_alignment_bytes);
    if (description->reuse != FRAG_REUSE_UNKNOWN) {
        open_group(text, &group);
        frag_text_add(text, "reuse: %s\n", reuse_names[description->reuse]);
    }
    write_group_answer(text, &group, "serves_scattered", description->serves_scattered);
    group = "vmm";
    write_group_bytes(text, &group, "granularity", description->vmm_granularity_bytes);
    write_group_bytes(text, &group, "recommended", description->vmm_recommended_bytes);
    group = "pool";
    write_group_bytes(text, &group, "first", description->pool_first_bytes);
    write_group_bytes(text, &group, "step", description->pool_step_bytes);
    write_group_answer(text, &group, "releases_at_synchronize", description->pool_releases_at_sync);
    write_group_answer(text, &group, "keeps_below_threshold", description->pool_keeps_below_limit);
    if (!description->has_latency)
        return;
    frag_text length = {.bytes = NULL};
    frag_latency_write(&description->latency, &length);
    frag_text_add(text, "calls:%s\n", length.length == 0 ? " {}" : "");
    if (length.length > 0)
        frag_text_add_bytes(text, length.bytes, length.length);
    frag_text_destroy(&length);
}
