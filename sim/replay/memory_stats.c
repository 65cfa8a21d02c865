#include "sim/replay/memory_stats.h"

#include <string.h>

#include "base/memory.h"

void frag_stats_add(frag_stats *stats, const char *name, int64_t value)
{
    uint32_t id = frag_strings_add(&stats->names, name, strlen(name));
    stats->values =
        frag_grow(stats->values, &stats->capacity, (size_t)id + 1, sizeof *stats->values);
    stats->values[id] = value;
}

bool frag_stats_find(const frag_stats *stats, const char *name, int64_t *value)
{
    uint32_t id = 0;
    if (stats->names.count == 0 || !frag_strings_find(&stats->names, name, strlen(name), &id))
        return false;
    *value = stats->values[id];
    return true;
}

void frag_stats_destroy(frag_stats *stats)
{
    frag_strings_destroy(&stats->names);
    frag_free(stats->values);
    *stats = (frag_stats){0};
}
