#include "plots/parts/plot_layout.h"

#include <stdlib.h>

#include "base/memory.h"
#include "sim/replay/history.h"

/* What was there before the trace was there from its first event on. */
static uint64_t begin_of(const frag_trace *trace, uint64_t event)
{
    bool is_start =
        event < trace->event_count && (trace->events[event].flags & FRAG_EVENT_INITIAL) != 0;
    return is_start ? 0 : event;
}

/* What was never given back ends with the run. */
static uint64_t end_of(const frag_layout *layout, uint64_t event)
{
    return event < layout->event_end ? event : layout->event_end;
}

static void take_segments(frag_layout *layout, const frag_trace *trace, const frag_history *history)
{
    layout->segments = frag_alloc(history->segment_count, sizeof *layout->segments);
    layout->segment_count = history->segment_count;
    for (size_t i = 0; i < history->segment_count; i++) {
        const frag_held_segment *held = &history->segments[i];
        layout->segments[i] = (frag_life){
            .begin = begin_of(trace, held->begin),
            .end = end_of(layout, held->end),
            .address = held->address,
            .bytes = held->bytes,
            .is_mapped = held->is_mapped,
        };
    }
}

static void take_blocks(frag_layout *layout, const frag_trace *trace,
                        const frag_request_list *requests, const frag_history *history)
{
    layout->blocks = frag_alloc(requests->count, sizeof *layout->blocks);
    for (uint32_t i = 0; i < requests->count; i++) {
        const frag_placement *placed = &history->placements[i];
        uint64_t event = requests->events[i];
        if (placed->block_bytes == 0)
            continue;
        layout->blocks[layout->block_count++] = (frag_life){
            .begin = begin_of(trace, event),
            .end = end_of(layout, placed->end),
            .address = placed->address,
            .bytes = placed->block_bytes,
            .requested_bytes = trace->events[event].bytes,
            .stream = trace->events[event].stream,
            .site = trace->sites != NULL ? trace->sites[event] : 0,
        };
    }
}

/* ---- offsets */

static int compare_addresses(const void *left, const void *right)
{
    const frag_life *a = left, *b = right;
    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return a->bytes < b->bytes ? -1 : a->bytes > b->bytes;
}

/* Ranges that some segment covered at some time, in order, each with its offset. */
static frag_life *merge_segments(const frag_layout *layout, size_t *count, uint64_t *offset_end)
{
    frag_life *ranges = frag_alloc(layout->segment_count, sizeof *ranges);
    for (size_t i = 0; i < layout->segment_count; i++)
        ranges[i] = layout->segments[i];
    qsort(ranges, layout->segment_count, sizeof *ranges, compare_addresses);
    *count = 0;
    for (size_t i = 0; i < layout->segment_count; i++) {
        frag_life *last = *count > 0 ? &ranges[*count - 1] : NULL;
        uint64_t end = ranges[i].address + ranges[i].bytes;
        if (last == NULL || ranges[i].address > last->address + last->bytes)
            ranges[(*count)++] = ranges[i];
        else if (end > last->address + last->bytes)
            last->bytes = end - last->address;
    }
    uint64_t offset = 0;
    for (size_t i = 0; i < *count; i++) {
        ranges[i].offset = offset;
        offset += ranges[i].bytes;
    }
    *offset_end = offset;
    return ranges;
}

static uint64_t offset_of(const frag_life *ranges, size_t count, uint64_t address)
{
    size_t low = 0;
    size_t high = count;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (ranges[middle].address <= address)
            low = middle;
        else
            high = middle;
    }
    return ranges[low].offset + (address - ranges[low].address);
}

static void find_offsets(frag_layout *layout)
{
    if (layout->segment_count == 0)
        return;
    size_t count = 0;
    frag_life *ranges = merge_segments(layout, &count, &layout->offset_end);
    for (size_t i = 0; i < layout->segment_count; i++)
        layout->segments[i].offset = offset_of(ranges, count, layout->segments[i].address);
    for (size_t i = 0; i < layout->block_count; i++)
        layout->blocks[i].offset = offset_of(ranges, count, layout->blocks[i].address);
    frag_free(ranges);
}

bool frag_layout_record(const frag_recording *recording, const frag_trace *trace,
                        const frag_policy_ops *ops, const frag_option_value *values,
                        const frag_device_spec *device, const frag_context *context,
                        frag_layout *layout, frag_error *error)
{
    frag_run_options options = {.context = context};
    frag_request_list requests;
    frag_history history;
    *layout = (frag_layout){0};
    if (!frag_request_list_create(&requests, trace, error))
        return false;
    bool ok = frag_history_record(&(frag_run_setup){recording, trace, ops, values, device},
                                  &requests, &options, &history, error);
    if (ok) {
        layout->event_end = history.result.events;
        layout->oom = history.result.oom;
        take_segments(layout, trace, &history);
        take_blocks(layout, trace, &requests, &history);
        frag_history_destroy(&history);
        find_offsets(layout);
    }
    frag_request_list_destroy(&requests);
    return ok;
}

void frag_layout_destroy(frag_layout *layout)
{
    frag_free(layout->segments);
    frag_free(layout->blocks);
    *layout = (frag_layout){0};
}
