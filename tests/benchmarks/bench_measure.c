#include "tests/benchmarks/bench_measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "base/error.h"

void bench_samples_add(bench_samples *samples, double value)
{
    FRAG_ASSERT(samples->count < BENCH_REPETITIONS_MAX);
    samples->values[samples->count++] = value;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return a < b ? -1 : a > b;
}

bench_spread bench_samples_spread(const bench_samples *samples)
{
    FRAG_ASSERT(samples->count > 0);
    bench_samples sorted = *samples;
    qsort(sorted.values, sorted.count, sizeof *sorted.values, compare);
    uint32_t high = sorted.count / 2;
    uint32_t low = (sorted.count - 1) / 2;
    return (bench_spread){
        .median = (sorted.values[low] + sorted.values[high]) / 2,
        .min = sorted.values[0],
        .max = sorted.values[sorted.count - 1],
    };
}

uint64_t bench_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void bench_spread_json(frag_json *json, const char *path, bench_spread spread)
{
    char name[128];
    snprintf(name, sizeof name, "%s.median", path);
    frag_json_ratio(json, name, spread.median);
    snprintf(name, sizeof name, "%s.min", path);
    frag_json_ratio(json, name, spread.min);
    snprintf(name, sizeof name, "%s.max", path);
    frag_json_ratio(json, name, spread.max);
}

/* What stands behind "key ... : " on the first line of a /proc file that begins with key. */
static bool find_line(const char *path, const char *key, char *value, size_t value_bytes)
{
    FILE *file = fopen(path, "r");
    char line[512];
    bool is_found = false;
    while (file != NULL && !is_found && fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');
        is_found = strncmp(line, key, strlen(key)) == 0 && colon != NULL;
        if (is_found) {
            const char *start = colon + 1 + strspn(colon + 1, " \t");
            snprintf(value, value_bytes, "%.*s", (int)strcspn(start, "\n"), start);
        }
    }
    if (file != NULL)
        fclose(file);
    return is_found;
}

void bench_processor(char *name, size_t name_bytes)
{
    if (!find_line("/proc/cpuinfo", "model name", name, name_bytes))
        snprintf(name, name_bytes, "unknown");
}

uint64_t bench_resident_peak_bytes(void)
{
    char value[64];
    uint64_t kilobytes = 0;
    if (!find_line("/proc/self/status", "VmHWM", value, sizeof value))
        return 0;
    value[strcspn(value, " ")] = '\0';
    return frag_count_parse(value, 0, UINT64_MAX / FRAG_KIB, &kilobytes, NULL)
               ? kilobytes * FRAG_KIB
               : 0;
}
