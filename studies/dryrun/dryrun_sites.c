#include "studies/dryrun/dryrun_sites.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "sim/trace/site_names.h"

#define BLOCK_BYTES ((uint64_t)512) /* what PyTorch rounds requests to */

static const char no_stack[] = "no call stack";

/* "torch/nn/modules/linear.py" of an installed file, "train.py" of another. */
static const char *file_of(const char *path)
{
    static const char *const folders[] = {"site-packages/", "dist-packages/"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        const char *found = strstr(path, folders[i]);
        if (found != NULL)
            return found + strlen(folders[i]);
    }
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* The name of a frame; the caller frees it. */
static char *name_frame(const frag_recording *recording, uint32_t index)
{
    const frag_frame *frame = &recording->frames[index];
    frag_text text = {0};
    frag_text_add(&text, "%s (%s)", frag_strings_get(&recording->strings, frame->name),
                  file_of(frag_strings_get(&recording->strings, frame->file)));
    frag_text_make_plain(text.bytes);
    return text.bytes;
}

static frag_dryrun_site name_site(const frag_recording *recording, uint32_t id)
{
    uint32_t named = frag_site_frame(recording, id);
    const frag_site *site = &recording->sites[id];
    frag_dryrun_site found = {.caller = named != 0 ? name_frame(recording, named - 1)
                                                   : frag_copy_text(no_stack)};
    found.inner = site->count > 0 ? name_frame(recording, recording->site_frames[site->first])
                                  : frag_copy_text(no_stack);
    return found;
}

static int compare_sites(const void *left, const void *right)
{
    const frag_dryrun_site *a = left, *b = right;
    int order = strcmp(a->caller, b->caller);
    return order != 0 ? order : strcmp(a->inner, b->inner);
}

static void free_site(frag_dryrun_site *site)
{
    frag_free(site->caller);
    frag_free(site->inner);
}

/* Sorts, and makes one of those that have one name; those that hold nothing go. */
static void merge_sites(frag_dryrun_sites *sites)
{
    size_t kept = 0;
    qsort(sites->items, sites->count, sizeof *sites->items, compare_sites);
    for (size_t i = 0; i < sites->count; i++) {
        frag_dryrun_site *site = &sites->items[i];
        if (site->count == 0) {
            free_site(site);
        } else if (kept > 0 && compare_sites(&sites->items[kept - 1], site) == 0) {
            sites->items[kept - 1].bytes += site->bytes;
            sites->items[kept - 1].count += site->count;
            free_site(site);
        } else {
            sites->items[kept++] = *site;
        }
    }
    sites->count = kept;
}

static bool is_served(const frag_event *event)
{
    return event->op == FRAG_OP_ALLOC && (event->flags & FRAG_EVENT_FAILED) == 0 &&
           event->slot != FRAG_SLOT_NONE;
}

void frag_dryrun_sites_look(const frag_recording *recording, const frag_trace *trace,
                            uint64_t event, frag_dryrun_sites *sites)
{
    uint64_t *held_at = frag_alloc((size_t)trace->slot_count + 1, sizeof *held_at); /* event + 1 */
    for (uint64_t i = 0; i <= event && i < trace->event_count; i++) {
        const frag_event *now = &trace->events[i];
        if (is_served(now))
            held_at[now->slot] = i + 1;
        else if (now->op == FRAG_OP_FREE && now->slot < trace->slot_count)
            held_at[now->slot] = 0;
    }
    *sites = (frag_dryrun_sites){.count = recording->site_count > 0 ? recording->site_count : 1};
    sites->items = frag_alloc(sites->count, sizeof *sites->items);
    for (uint32_t slot = 0; slot < trace->slot_count; slot++) {
        if (held_at[slot] == 0)
            continue;
        uint64_t at = held_at[slot] - 1;
        frag_dryrun_site *site = &sites->items[trace->sites != NULL ? trace->sites[at] : 0];
        site->bytes += trace->events[at].bytes;
        site->count++;
    }
    for (uint32_t i = 0; i < sites->count; i++) {
        frag_dryrun_site named = {.caller = NULL};
        if (i < recording->site_count)
            named = name_site(recording, i);
        else
            named = (frag_dryrun_site){frag_copy_text(no_stack), frag_copy_text(no_stack), 0, 0};
        sites->items[i].caller = named.caller;
        sites->items[i].inner = named.inner;
    }
    frag_free(held_at);
    merge_sites(sites);
}

void frag_dryrun_sites_destroy(frag_dryrun_sites *sites)
{
    for (size_t i = 0; i < sites->count; i++)
        free_site(&sites->items[i]);
    frag_free(sites->items);
    *sites = (frag_dryrun_sites){.count = 0};
}

/* ---- what changed */

/* The sites of both in order of their names; one that has no counterpart stands against none. */
static size_t pair_sites(const frag_dryrun_sites *before, const frag_dryrun_sites *after,
                         frag_dryrun_site_change *pairs)
{
    size_t count = 0;
    for (size_t i = 0, j = 0; i < before->count || j < after->count;) {
        const frag_dryrun_site *a = i < before->count ? &before->items[i] : NULL;
        const frag_dryrun_site *b = j < after->count ? &after->items[j] : NULL;
        int order = a == NULL ? 1 : b == NULL ? -1 : compare_sites(a, b);
        a = order <= 0 ? a : NULL;
        b = order >= 0 ? b : NULL;
        i += a != NULL;
        j += b != NULL;
        pairs[count++] = (frag_dryrun_site_change){
            .caller = a != NULL ? a->caller : b->caller,
            .inner = a != NULL ? a->inner : b->inner,
            .bytes_before = a != NULL ? a->bytes : 0,
            .bytes_after = b != NULL ? b->bytes : 0,
            .count_before = a != NULL ? a->count : 0,
            .count_after = b != NULL ? b->count : 0,
        };
    }
    return count;
}

static uint64_t size_of(const frag_dryrun_site_change *change)
{
    return change->bytes_after > change->bytes_before ? change->bytes_after - change->bytes_before
                                                      : change->bytes_before - change->bytes_after;
}

/* The largest first, the rest by name: an order that no address decides. */
static int compare_changes(const void *left, const void *right)
{
    const frag_dryrun_site_change *a = left, *b = right;
    if (size_of(a) != size_of(b))
        return size_of(a) > size_of(b) ? -1 : 1;
    int order = strcmp(a->caller, b->caller);
    return order != 0 || a->inner == NULL ? order : strcmp(a->inner, b->inner);
}

static size_t sum_callers(const frag_dryrun_site_change *pairs, size_t pair_count,
                          frag_dryrun_site_change *callers)
{
    size_t count = 0;
    for (size_t i = 0; i < pair_count; i++) {
        if (count == 0 || strcmp(callers[count - 1].caller, pairs[i].caller) != 0)
            callers[count++] = (frag_dryrun_site_change){.caller = pairs[i].caller};
        frag_dryrun_site_change *sum = &callers[count - 1];
        sum->bytes_before += pairs[i].bytes_before;
        sum->bytes_after += pairs[i].bytes_after;
        sum->count_before += pairs[i].count_before;
        sum->count_after += pairs[i].count_after;
    }
    return count;
}

size_t frag_dryrun_sites_compare(const frag_dryrun_sites *before, const frag_dryrun_sites *after,
                                 frag_dryrun_site_change **changes)
{
    size_t most = before->count + after->count;
    frag_dryrun_site_change *pairs = frag_alloc(most, sizeof *pairs);
    frag_dryrun_site_change *callers = frag_alloc(most, sizeof *callers);
    size_t pair_count = pair_sites(before, after, pairs);
    size_t caller_count = sum_callers(pairs, pair_count, callers);
    size_t count = 0;
    *changes = frag_alloc(2 * most, sizeof **changes);
    if (most > 0) {
        qsort(pairs, pair_count, sizeof *pairs, compare_changes);
        qsort(callers, caller_count, sizeof *callers, compare_changes);
    }
    for (size_t i = 0; i < caller_count && size_of(&callers[i]) > 0; i++) {
        (*changes)[count++] = callers[i];
        for (size_t j = 0; j < pair_count && size_of(&pairs[j]) > 0; j++)
            if (strcmp(pairs[j].caller, callers[i].caller) == 0)
                (*changes)[count++] = pairs[j];
    }
    frag_free(pairs);
    frag_free(callers);
    return count;
}

/* ---- the peak */

static uint64_t rounded(uint64_t bytes, bool is_rounded)
{
    return is_rounded ? (bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES : bytes;
}

uint64_t frag_dryrun_peak_event(const frag_trace *trace, bool is_rounded)
{
    uint64_t *held = frag_alloc((size_t)trace->slot_count + 1, sizeof *held);
    uint64_t live = 0;
    uint64_t peak = 0;
    uint64_t found = 0;
    for (uint64_t i = 0; i < trace->event_count; i++) {
        const frag_event *event = &trace->events[i];
        if (is_served(event)) {
            held[event->slot] = rounded(event->bytes, is_rounded);
            live += held[event->slot];
        } else if (event->op == FRAG_OP_FREE && event->slot < trace->slot_count) {
            live -= held[event->slot];
            held[event->slot] = 0;
        }
        if (live > peak) {
            peak = live;
            found = i;
        }
    }
    frag_free(held);
    return found;
}
