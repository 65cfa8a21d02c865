#include "studies/explain/explain_sites.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "base/text.h"
#include "sim/trace/site_names.h"

/* One live block of the segment that is being looked at. */
typedef struct held_block {
    uint64_t key;
    uint64_t bytes;
} held_block;

typedef struct site_walk {
    frag_sites *sites;
    const uint64_t *key_of_slot;
    const frag_purpose *purpose_of_slot; /* NULL: by size */
    uint32_t slot_count;
    size_t capacity; /* of sites->items */
    held_block *blocks;
    size_t block_count;
    size_t block_capacity;
    uint64_t segment_live_bytes;
    uint64_t segment_idle_bytes;
    uint64_t segment_holes;
    uint64_t segment_largest;
} site_walk;

static uint64_t key_of_event(const frag_sites *sites, const frag_trace *trace, uint64_t event)
{
    return sites->is_by_size ? trace->events[event].bytes : sites->frame_of[trace->sites[event]];
}

/* Stacks that are named by the same frame are one call site to a reader. */
static uint32_t *frames_of_sites(const frag_recording *recording)
{
    uint32_t *frames = frag_alloc(recording->site_count, sizeof *frames);
    for (uint32_t i = 0; i < recording->site_count; i++)
        frames[i] = frag_site_frame(recording, i);
    return frames;
}

static bool has_sites(const frag_trace *trace)
{
    if (trace->sites == NULL)
        return false;
    for (uint64_t i = 0; i < trace->event_count; i++)
        if (trace->sites[i] != 0)
            return true;
    return false;
}

/* Which site each slot was last requested at. */
static uint64_t *keys_of_slots(const frag_sites *sites, const frag_trace *trace, uint64_t event)
{
    uint64_t *keys = frag_alloc(trace->slot_count, sizeof *keys);
    for (uint64_t i = 0; i <= event && i < trace->event_count; i++)
        if (trace->events[i].op == FRAG_OP_ALLOC && trace->events[i].slot != FRAG_SLOT_NONE)
            keys[trace->events[i].slot] = key_of_event(sites, trace, i);
    return keys;
}

/* What each slot was last requested for. */
static frag_purpose *purposes_of_slots(const frag_recording *recording, const frag_trace *trace,
                                       uint64_t event)
{
    frag_purpose *of_site = frag_purposes_of_sites(recording);
    frag_purpose *purposes = frag_alloc(trace->slot_count, sizeof *purposes);
    for (uint64_t i = 0; i <= event && i < trace->event_count; i++)
        if (trace->events[i].op == FRAG_OP_ALLOC && trace->events[i].slot != FRAG_SLOT_NONE)
            purposes[trace->events[i].slot] = of_site[trace->sites[i]];
    frag_free(of_site);
    return purposes;
}

/* What is idle in a segment is held open by its blocks, each by its share of what is live. */
static void close_segment(site_walk *state)
{
    if (state->block_count > 0 && state->segment_idle_bytes > 0) {
        frag_sites *sites = state->sites;
        sites->pinned_segments++;
        sites->hole_count += state->segment_holes;
        if (state->segment_largest > sites->largest_hole_bytes)
            sites->largest_hole_bytes = state->segment_largest;
    }
    for (size_t i = 0; i < state->block_count; i++) {
        const held_block *block = &state->blocks[i];
        double share = (double)block->bytes / (double)state->segment_live_bytes;
        frag_sites *sites = state->sites;
        *FRAG_APPEND(sites->items, sites->count, state->capacity) = (frag_live_site){
            .key = block->key,
            .live_bytes = block->bytes,
            .live_count = 1,
            .held_open_bytes = (uint64_t)(share * (double)state->segment_idle_bytes),
        };
    }
    state->block_count = 0;
    state->segment_live_bytes = 0;
    state->segment_idle_bytes = 0;
    state->segment_holes = 0;
    state->segment_largest = 0;
}

static void visit(void *context, const frag_span *span, const frag_block_view *view)
{
    site_walk *state = context;
    if (span->kind == FRAG_SPAN_SEGMENT) {
        close_segment(state);
    } else if (span->kind == FRAG_SPAN_HOLE) {
        state->segment_idle_bytes += span->bytes;
        state->segment_holes++;
        if (span->bytes > state->segment_largest)
            state->segment_largest = span->bytes;
    } else {
        bool is_known = view->slot < state->slot_count;
        *FRAG_APPEND(state->blocks, state->block_count, state->block_capacity) =
            (held_block){is_known ? state->key_of_slot[view->slot] : 0, span->bytes};
        state->segment_live_bytes += span->bytes;
        if (state->purpose_of_slot != NULL)
            state->sites
                ->purposes[is_known ? state->purpose_of_slot[view->slot] : FRAG_PURPOSE_UNKNOWN] +=
                span->bytes;
    }
}

static int by_key(const void *a, const void *b)
{
    const frag_live_site *left = a;
    const frag_live_site *right = b;
    return frag_compare(left->key, right->key);
}

/* One item for each key. */
static void merge_items(frag_sites *sites)
{
    if (sites->count == 0)
        return;
    qsort(sites->items, sites->count, sizeof *sites->items, by_key);
    size_t kept = 0;
    for (size_t i = 1; i < sites->count; i++) {
        frag_live_site *last = &sites->items[kept];
        const frag_live_site *item = &sites->items[i];
        if (item->key != last->key) {
            sites->items[++kept] = *item;
            continue;
        }
        last->live_bytes += item->live_bytes;
        last->live_count += item->live_count;
        last->held_open_bytes += item->held_open_bytes;
    }
    sites->count = kept + 1;
}

static uint64_t weight(const frag_live_site *site, bool is_pinning)
{
    return is_pinning ? site->held_open_bytes : site->live_bytes;
}

/* The heaviest, in order; of equals the one with the smaller key. */
static size_t pick(const frag_sites *sites, bool is_pinning, frag_live_site *picked)
{
    size_t count = 0;
    for (size_t i = 0; i < sites->count; i++) {
        const frag_live_site *item = &sites->items[i];
        if (weight(item, is_pinning) == 0)
            continue;
        size_t at = count;
        while (at > 0 && weight(&picked[at - 1], is_pinning) < weight(item, is_pinning))
            at--;
        if (at >= FRAG_SITES_SHOWN)
            continue;
        count += count < FRAG_SITES_SHOWN;
        for (size_t j = count - 1; j > at; j--)
            picked[j] = picked[j - 1];
        picked[at] = *item;
    }
    return count;
}

void frag_sites_look(frag_sites *sites, const frag_recording *recording, const frag_trace *trace,
                     const frag_replay *replay, uint64_t event)
{
    *sites = (frag_sites){.is_by_size = !has_sites(trace)};
    if (!sites->is_by_size)
        sites->frame_of = frames_of_sites(recording);
    uint64_t *keys = keys_of_slots(sites, trace, event);
    frag_purpose *purposes = sites->is_by_size ? NULL : purposes_of_slots(recording, trace, event);
    site_walk state = {.sites = sites,
                       .key_of_slot = keys,
                       .purpose_of_slot = purposes,
                       .slot_count = trace->slot_count};
    frag_replay_walk(replay, visit, &state);
    close_segment(&state);
    merge_items(sites);
    sites->biggest_count = pick(sites, false, sites->biggest);
    sites->pinning_count = pick(sites, true, sites->pinning);
    frag_free(state.blocks);
    frag_free(purposes);
    frag_free(keys);
}

void frag_sites_destroy(frag_sites *sites)
{
    frag_free(sites->items);
    frag_free(sites->frame_of);
    *sites = (frag_sites){0};
}

void frag_site_text(const frag_recording *recording, const frag_sites *sites, uint64_t key,
                    frag_text *text)
{
    if (sites->is_by_size) {
        frag_text_add(text, "blocks of %s", FRAG_BYTES(key));
        return;
    }
    if (key == 0)
        frag_text_add(text, "without a call stack");
    else
        frag_frame_add(recording, (uint32_t)key - 1, text);
}

frag_event *frag_sites_halve(const frag_sites *sites, const frag_trace *trace)
{
    frag_event *events = frag_alloc(trace->event_count, sizeof *events);
    memcpy(events, trace->events, trace->event_count * sizeof *events);
    for (uint64_t i = 0; i < trace->event_count; i++)
        for (size_t j = 0; j < sites->biggest_count; j++)
            if (events[i].op == FRAG_OP_ALLOC && (events[i].flags & FRAG_EVENT_INITIAL) == 0 &&
                key_of_event(sites, trace, i) == sites->biggest[j].key) {
                events[i].bytes = (trace->events[i].bytes + 1) / 2;
                break;
            }
    return events;
}
