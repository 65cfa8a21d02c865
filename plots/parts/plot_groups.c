#include "plots/parts/plot_groups.h"

#include <inttypes.h>

#include "base/bits.h"
#include "base/memory.h"
#include "sim/trace/site_names.h"
#include "studies/explain/explain_purpose.h"

#define SIZE_CLASSES 64u

static uint32_t *purposes_of_sites(const frag_recording *recording)
{
    frag_purpose *purposes = frag_purposes_of_sites(recording);
    uint32_t *of_site = frag_alloc((size_t)recording->site_count + 1, sizeof *of_site);
    for (uint32_t site = 0; site < recording->site_count; site++)
        of_site[site] = purposes[site];
    frag_free(purposes);
    return of_site;
}

void frag_groups_create(frag_groups *groups, frag_grouping grouping,
                        const frag_recording *recording, const frag_trace *trace)
{
    *groups = (frag_groups){.grouping = grouping, .recording = recording, .trace = trace};
    switch (grouping) {
    case FRAG_GROUP_SITE:
        groups->count = recording->frame_count + 1;
        groups->of_site = frag_alloc((size_t)recording->site_count + 1, sizeof *groups->of_site);
        for (uint32_t site = 0; site < recording->site_count; site++)
            groups->of_site[site] = frag_site_frame(recording, site);
        break;
    case FRAG_GROUP_PURPOSE:
        groups->count = FRAG_PURPOSE_COUNT;
        groups->of_site = purposes_of_sites(recording);
        break;
    case FRAG_GROUP_STREAM:
        groups->count = trace->stream_count;
        break;
    case FRAG_GROUP_POOL:
        groups->count = trace->pool_count;
        break;
    case FRAG_GROUP_SIZE_CLASS:
        groups->count = SIZE_CLASSES;
        break;
    }
    groups->count = groups->count > 0 ? groups->count : 1;
}

void frag_groups_destroy(frag_groups *groups)
{
    frag_free(groups->of_site);
    *groups = (frag_groups){0};
}

uint32_t frag_groups_of_site(const frag_groups *groups, uint32_t site)
{
    return site < groups->recording->site_count ? groups->of_site[site] : 0;
}

uint32_t frag_groups_of_event(const frag_groups *groups, uint64_t alloc_event)
{
    const frag_trace *trace = groups->trace;
    const frag_event *event = &trace->events[alloc_event];
    switch (groups->grouping) {
    case FRAG_GROUP_SITE:
    case FRAG_GROUP_PURPOSE:
        return trace->sites != NULL ? frag_groups_of_site(groups, trace->sites[alloc_event]) : 0;
    case FRAG_GROUP_STREAM:
        return event->stream < groups->count ? event->stream : 0;
    case FRAG_GROUP_POOL:
        return trace->pools != NULL && trace->pools[alloc_event] < groups->count
                   ? trace->pools[alloc_event]
                   : 0;
    case FRAG_GROUP_SIZE_CLASS:
        return event->bytes > 1 ? frag_bit_high(event->bytes - 1) + 1 : 0;
    }
    return 0;
}

/* A power of two. */
static void add_size(uint32_t log, frag_text *text)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    frag_text_add(text, "≤ %u %s", 1u << log % 10, units[log / 10]);
}

void frag_groups_text(const frag_groups *groups, uint32_t key, size_t characters, frag_text *text)
{
    switch (groups->grouping) {
    case FRAG_GROUP_SITE:
        if (key == 0)
            frag_text_add(text, "no call site");
        else
            frag_frame_text(groups->recording, key - 1, characters, text);
        break;
    case FRAG_GROUP_PURPOSE:
        frag_text_add(text, "%s", frag_purpose_name((frag_purpose)key));
        break;
    case FRAG_GROUP_STREAM:
        frag_text_add(text, "stream 0x%" PRIx64, frag_trace_stream_handle(groups->trace, key));
        break;
    case FRAG_GROUP_POOL:
        if (key == 0 || key >= groups->trace->pool_count)
            frag_text_add(text, "default pool");
        else
            frag_text_add(text, "pool %" PRIu64 ":%" PRIu64, groups->trace->pool_ids[key].high,
                          groups->trace->pool_ids[key].low);
        break;
    case FRAG_GROUP_SIZE_CLASS:
        add_size(key, text);
        break;
    }
}
