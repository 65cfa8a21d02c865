#include "sim/device.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/yaml.h"

#define MICROSECONDS_MAX 1e9

/* "base_us" or "us_per_mib" of one call, in nanoseconds; absent: nothing. */
static bool read_cost(const frag_yaml_node *call, const char *key, double *ns, frag_error *error)
{
    const frag_yaml_node *node = frag_yaml_find(call, key);
    double microseconds = 0;
    if (node != NULL && !frag_yaml_ratio(node, 0, MICROSECONDS_MAX, &microseconds, error))
        return false;
    *ns = microseconds * 1000;
    return true;
}

static bool read_call(const frag_yaml_node *node, frag_latency *latency, frag_error *error)
{
    static const char *const keys[] = {"base_us", "us_per_mib", NULL};
    if (!frag_yaml_expect(node, FRAG_YAML_MAPPING, node->key, error) ||
        !frag_yaml_check_keys(node, keys, error))
        return false;
    if (node->count == 0)
        return frag_fail_line(error, node->line, node->column,
                              "'%s' has no cost; expected base_us, us_per_mib or both", node->key);
    return read_cost(node, "base_us", &latency->base_ns, error) &&
           read_cost(node, "us_per_mib", &latency->ns_per_mib, error);
}

static bool read_calls(const frag_yaml_node *calls, frag_latency_table *table, frag_error *error)
{
    const char *names[FRAG_DEVICE_CALL_COUNT + 1] = {NULL};
    for (int call = 0; call < FRAG_DEVICE_CALL_COUNT; call++)
        names[call] = frag_device_call_name((frag_device_call)call);
    if (!frag_yaml_expect(calls, FRAG_YAML_MAPPING, "calls", error) ||
        !frag_yaml_check_keys(calls, names, error))
        return false;
    for (int call = 0; call < FRAG_DEVICE_CALL_COUNT; call++) {
        const frag_yaml_node *node = frag_yaml_find(calls, names[call]);
        if (node != NULL && !read_call(node, &table->calls[call], error))
            return false;
    }
    return true;
}

static bool read_table(const frag_yaml_node *root, frag_latency_table *table, frag_error *error)
{
    static const char *const keys[] = {"name", "calls", NULL};
    if (!frag_yaml_expect(root, FRAG_YAML_MAPPING, "a latency table", error) ||
        !frag_yaml_check_keys(root, keys, error))
        return false;
    const frag_yaml_node *name = frag_yaml_find(root, "name");
    const frag_yaml_node *calls = frag_yaml_find(root, "calls");
    if (name == NULL || calls == NULL)
        return frag_fail_line(error, root->line, root->column,
                              "'%s' is missing; a latency table has name and calls",
                              name == NULL ? "name" : "calls");
    const char *text = NULL;
    if (!frag_yaml_text(name, &text, error))
        return false;
    if (text[0] == '\0' || strlen(text) >= sizeof table->name)
        return frag_fail_line(error, name->line, name->column,
                              "the name has %zu bytes; expected 1 to %zu", strlen(text),
                              sizeof table->name - 1);
    snprintf(table->name, sizeof table->name, "%s", text);
    return read_calls(calls, table, error);
}

bool frag_latency_load(const char *path, frag_latency_table *table, frag_error *error)
{
    frag_yaml_node *root = frag_yaml_load(path, error);
    if (root == NULL)
        return false;
    frag_latency_table read = {.calls = {{0, 0}}};
    bool ok = read_table(root, &read, error) || frag_error_in(error, path);
    if (ok)
        *table = read;
    frag_yaml_destroy(root);
    return ok;
}
