#include "traces/torch/profile_plot.h"

#include <inttypes.h>

#include "traces/exchange/live_blocks.h"

typedef struct plot_emitter {
    const frag_snapshot_device *device;
    frag_snapshot_sites *sites;
    frag_live_blocks live;
    frag_number_map seen; /* addresses that are live where the walk is */
    uint64_t before_count;
    uint64_t before_bytes;
} plot_emitter;

bool frag_profile_plot_is_one(const frag_snapshot *snapshot)
{
    return (snapshot->entry_keys >> FRAG_SNAPSHOT_CATEGORY & 1) != 0;
}

static bool is_release(const frag_snapshot_entry *entry)
{
    return entry->action == FRAG_SNAPSHOT_FREE_COMPLETED || entry->action == FRAG_SNAPSHOT_FREE;
}

static void add_before(plot_emitter *state, uint64_t address, uint64_t bytes, uint32_t frames)
{
    uint64_t unused = 0;
    if (bytes == 0 || frag_number_map_get(&state->live.by_address, address, &unused))
        return;
    state->before_count++;
    state->before_bytes += bytes;
    frag_live_alloc(&state->live, &(frag_live_call){
                                      .address = address,
                                      .bytes = bytes,
                                      .text = "block",
                                      .site = frag_snapshot_sites_site(state->sites, frames),
                                  });
}

/* What is released without having been allocated, or is there at the end without it. */
static void add_all_before(plot_emitter *state, const frag_snapshot *snapshot)
{
    const frag_snapshot_device *device = state->device;
    uint64_t unused = 0;
    for (uint64_t i = 0; i < device->entry_count; i++) {
        const frag_snapshot_entry *entry = &device->entries[i];
        if (entry->action == FRAG_SNAPSHOT_ALLOC) {
            frag_number_map_set(&state->seen, entry->address, i);
        } else if (is_release(entry)) {
            if (!frag_number_map_get(&state->seen, entry->address, &unused))
                add_before(state, entry->address, entry->bytes, entry->frames);
            frag_number_map_remove(&state->seen, entry->address);
        }
    }
    for (size_t i = 0; i < device->segment_count; i++) {
        const frag_snapshot_segment *segment = &device->segments[i];
        for (size_t k = 0; k < segment->block_count; k++) {
            const frag_snapshot_block *block = &snapshot->blocks[segment->first_block + k];
            if (!frag_number_map_get(&state->seen, block->address, &unused))
                add_before(state, block->address, block->bytes, block->frames);
        }
    }
}

static void add_entry(plot_emitter *state, const frag_snapshot_entry *entry, uint64_t index)
{
    frag_live_call call = {
        .time_ns = frag_snapshot_time_ns(entry),
        .address = entry->address,
        .bytes = entry->bytes,
        .entry = index,
        .text = is_release(entry) ? "release" : "allocation",
        .site = frag_snapshot_sites_site(state->sites, entry->frames),
    };
    if (entry->bytes == 0)
        return;
    if (entry->action == FRAG_SNAPSHOT_ALLOC)
        frag_live_alloc(&state->live, &call);
    else if (is_release(entry))
        frag_live_free(&state->live, &call);
}

void frag_profile_plot_emit(const frag_snapshot *snapshot, uint32_t ordinal,
                            frag_snapshot_sites *sites, frag_builder *builder,
                            frag_findings *findings)
{
    plot_emitter state = {
        .device = &snapshot->devices[ordinal],
        .sites = sites,
        .live = {.builder = builder, .findings = findings, .device = ordinal},
    };
    frag_builder_device(builder, ordinal);
    frag_findings_add(findings, "profile-plot",
                      "the snapshot was made by profile_plot of what the profiler saw of tensors; "
                      "its segments are made up and were left out",
                      false, ordinal, 0, "%" PRIu64 " entries", state.device->entry_count);
    add_all_before(&state, snapshot);
    if (state.before_count > 0)
        frag_findings_add(
            findings, "began-in-use",
            "memory was in use before the profiler was started; it was taken as asked for first",
            false, ordinal, 0, "%" PRIu64 " blocks, %" PRIu64 " bytes", state.before_count,
            state.before_bytes);
    for (uint64_t i = 0; i < state.device->entry_count; i++)
        add_entry(&state, &state.device->entries[i], i);
    frag_number_map_destroy(&state.seen);
    frag_live_destroy(&state.live);
}
