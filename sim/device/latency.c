#include "sim/device/latency.h"

#include <inttypes.h>

#include "base/bytes.h"

#define MICROSECONDS_MAX 1e9

static double mib_of(uint64_t bytes)
{
    return (double)bytes / (double)FRAG_MIB;
}

static double slope_between(const frag_latency_point *low, const frag_latency_point *high)
{
    return (high->median_ns - low->median_ns) / mib_of(high->bytes - low->bytes);
}

double frag_latency_ns(const frag_latency *latency, uint64_t bytes)
{
    if (latency->count == 0)
        return 0;
    const frag_latency_point *last = &latency->points[latency->count - 1];
    if (bytes >= last->bytes)
        return last->median_ns + latency->ns_per_mib * mib_of(bytes - last->bytes);
    const frag_latency_point *point = latency->points;
    if (bytes <= point->bytes)
        return point->median_ns;
    while (point[1].bytes <= bytes)
        point++;
    return point->median_ns + slope_between(point, point + 1) * mib_of(bytes - point->bytes);
}

void frag_latency_extend(frag_latency *latency)
{
    latency->ns_per_mib = 0;
    if (latency->count < 2)
        return;
    const frag_latency_point *last = &latency->points[latency->count - 1];
    double slope = slope_between(last - 1, last);
    /* Noise must not make large calls cheaper than nothing. */
    latency->ns_per_mib = slope > 0 ? slope : 0;
}

/* A time in microseconds as nanoseconds; absent: *ns stays. */
static bool read_time(const frag_yaml_node *call, const char *key, double *ns, frag_error *error)
{
    const frag_yaml_node *node = frag_yaml_find(call, key);
    double microseconds = 0;
    if (node == NULL)
        return true;
    if (!frag_yaml_ratio(node, 0, MICROSECONDS_MAX, &microseconds, error))
        return false;
    *ns = microseconds * 1000;
    return true;
}

static bool read_line(const frag_yaml_node *node, frag_latency *latency, frag_error *error)
{
    static const char *const keys[] = {"base_us", "us_per_mib", NULL};
    if (!frag_yaml_check_keys(node, keys, error))
        return false;
    if (node->count == 0)
        return frag_fail_line(error, node->line, node->column,
                              "'%s' has no cost; expected base_us, us_per_mib or both", node->key);
    latency->count = 1;
    return read_time(node, "base_us", &latency->points[0].median_ns, error) &&
           read_time(node, "us_per_mib", &latency->ns_per_mib, error);
}

static bool read_point(const frag_yaml_node *node, frag_latency_point *point, frag_error *error)
{
    static const char *const keys[] = {"bytes", "median_us", "p10_us", "p90_us", "samples", NULL};
    if (!frag_yaml_expect(node, FRAG_YAML_MAPPING, "a measured point", error) ||
        !frag_yaml_check_keys(node, keys, error))
        return false;
    for (size_t i = 0; keys[i] != NULL; i++)
        if (frag_yaml_find(node, keys[i]) == NULL)
            return frag_fail_line(error, node->line, node->column,
                                  "'%s' is missing; a measured point has bytes, median_us, p10_us, "
                                  "p90_us and samples",
                                  keys[i]);
    if (!frag_yaml_bytes(frag_yaml_find(node, "bytes"), &point->bytes, error) ||
        !read_time(node, "median_us", &point->median_ns, error) ||
        !read_time(node, "p10_us", &point->p10_ns, error) ||
        !read_time(node, "p90_us", &point->p90_ns, error) ||
        !frag_yaml_count(frag_yaml_find(node, "samples"), 1, UINT32_MAX, &point->samples, error))
        return false;
    if (point->p10_ns > point->median_ns || point->median_ns > point->p90_ns)
        return frag_fail_line(error, node->line, node->column,
                              "the times do not ascend; expected p10_us <= median_us <= p90_us");
    return true;
}

static bool read_points(const frag_yaml_node *node, frag_latency *latency, frag_error *error)
{
    if (node->count < 1 || node->count > FRAG_LATENCY_POINTS_MAX)
        return frag_fail_line(error, node->line, node->column,
                              "'%s' has %" PRIu64 " points; expected 1 to %d", node->key,
                              node->count, FRAG_LATENCY_POINTS_MAX);
    for (const frag_yaml_node *item = node->first; item != NULL; item = item->next) {
        frag_latency_point *point = &latency->points[latency->count];
        if (!read_point(item, point, error))
            return false;
        if (latency->count > 0 && point->bytes <= point[-1].bytes)
            return frag_fail_line(error, item->line, item->column,
                                  "the points do not ascend in bytes; sort them");
        latency->count++;
    }
    frag_latency_extend(latency);
    return true;
}

static bool read_call(const frag_yaml_node *node, frag_latency *latency, frag_error *error)
{
    *latency = (frag_latency){.count = 0};
    if (node->kind == FRAG_YAML_SEQUENCE)
        return read_points(node, latency, error);
    return frag_yaml_expect(node, FRAG_YAML_MAPPING, node->key, error) &&
           read_line(node, latency, error);
}

bool frag_latency_read(const frag_yaml_node *calls, frag_latency_table *table, frag_error *error)
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

static void write_call(const frag_latency *latency, const char *name, frag_text *text)
{
    if (latency->points[0].samples == 0) {
        frag_text_add(text, "  %s: {base_us: %.10g, us_per_mib: %.10g}\n", name,
                      latency->points[0].median_ns / 1000, latency->ns_per_mib / 1000);
        return;
    }
    frag_text_add(text, "  %s:\n", name);
    for (uint32_t i = 0; i < latency->count; i++) {
        const frag_latency_point *point = &latency->points[i];
        frag_text_add(text, "    - {");
        frag_yaml_write_bytes(text, "bytes", point->bytes);
        frag_text_add(
            text, ", median_us: %.10g, p10_us: %.10g, p90_us: %.10g, samples: %" PRIu64 "}\n",
            point->median_ns / 1000, point->p10_ns / 1000, point->p90_ns / 1000, point->samples);
    }
}

void frag_latency_write(const frag_latency_table *table, frag_text *text)
{
    for (int call = 0; call < FRAG_DEVICE_CALL_COUNT; call++)
        if (table->calls[call].count > 0)
            write_call(&table->calls[call], frag_device_call_name((frag_device_call)call), text);
}
