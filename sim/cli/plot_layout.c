#include "sim/cli/plot_layout.h"

#include <stdlib.h>

#include "sim/base/bytes.h"
#include "sim/base/memory.h"

typedef struct recorder {
    const frag_trace *trace;
    frag_layout *layout;
    size_t *block_of; /* by handle */
    size_t block_of_capacity;
    size_t *open; /* segments held now */
    size_t open_count;
    size_t open_capacity;
} recorder;

/* What was there before the trace was there from its first event on. */
static uint64_t begin_of(const recorder *record, uint64_t event)
{
    return (record->trace->events[event].flags & FRAG_EVENT_INITIAL) != 0 ? 0 : event;
}

static void begin_block(recorder *record, const frag_note *note)
{
    frag_layout *layout = record->layout;
    const uint32_t *sites = record->trace->sites;
    layout->blocks = frag_grow(layout->blocks, &layout->block_capacity, layout->block_count + 1,
                               sizeof *layout->blocks);
    record->block_of = frag_grow(record->block_of, &record->block_of_capacity,
                                 (size_t)note->handle + 1, sizeof *record->block_of);
    record->block_of[note->handle] = layout->block_count;
    layout->blocks[layout->block_count++] = (frag_life){
        .begin = begin_of(record, note->alloc_event),
        .end = UINT64_MAX,
        .address = note->address,
        .bytes = note->block_bytes,
        .requested_bytes = note->bytes,
        .stream = note->stream,
        .site = sites != NULL ? sites[note->alloc_event] : 0,
    };
}

static void open_segment(recorder *record, const frag_life *life)
{
    frag_layout *layout = record->layout;
    layout->segments = frag_grow(layout->segments, &layout->segment_capacity,
                                 layout->segment_count + 1, sizeof *layout->segments);
    record->open = frag_grow(record->open, &record->open_capacity, record->open_count + 1,
                             sizeof *record->open);
    record->open[record->open_count++] = layout->segment_count;
    layout->segments[layout->segment_count++] = *life;
}

static void begin_segment(recorder *record, const frag_note *note)
{
    frag_life life = {
        .begin = begin_of(record, note->event),
        .end = UINT64_MAX,
        .address = note->address,
        .bytes = note->bytes,
        .is_mapped = note->kind == FRAG_NOTE_SEGMENT_MAP || note->kind == FRAG_NOTE_HELD_RANGE,
    };
    open_segment(record, &life);
}

/* Ends what is held of a range; what stands out of it on either side goes on as a segment of its
 * own. */
static void end_range(recorder *record, const frag_note *note)
{
    uint64_t end = note->address + note->bytes;
    for (size_t i = 0; i < record->open_count;) {
        frag_life *found = &record->layout->segments[record->open[i]];
        frag_life whole = *found;
        uint64_t whole_end = whole.address + whole.bytes;
        if (whole_end <= note->address || whole.address >= end) {
            i++;
            continue;
        }
        found->end = note->event;
        record->open[i] = record->open[--record->open_count];
        whole.begin = note->event;
        if (whole.address < note->address) {
            frag_life below = whole;
            below.bytes = note->address - whole.address;
            open_segment(record, &below);
        }
        if (whole_end > end) {
            frag_life above = whole;
            above.address = end;
            above.bytes = whole_end - end;
            open_segment(record, &above);
        }
    }
}

static void take_note(void *context, const frag_note *note)
{
    recorder *record = context;
    switch (note->kind) {
    case FRAG_NOTE_ALLOC:
    case FRAG_NOTE_HELD_BLOCK:
        begin_block(record, note);
        break;
    case FRAG_NOTE_FREE_COMPLETED:
        record->layout->blocks[record->block_of[note->handle]].end = note->event;
        break;
    case FRAG_NOTE_SEGMENT_ALLOC:
    case FRAG_NOTE_SEGMENT_MAP:
    case FRAG_NOTE_HELD_SEGMENT:
    case FRAG_NOTE_HELD_RANGE:
        begin_segment(record, note);
        break;
    case FRAG_NOTE_SEGMENT_FREE:
    case FRAG_NOTE_SEGMENT_UNMAP:
        end_range(record, note);
        break;
    case FRAG_NOTE_FREE_REQUESTED:
    case FRAG_NOTE_OOM:
        break;
    }
}

/* ---- offsets */

static int compare_addresses(const void *left, const void *right)
{
    const frag_life *a = left;
    const frag_life *b = right;
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

static void finish(frag_layout *layout)
{
    for (size_t i = 0; i < layout->segment_count; i++)
        if (layout->segments[i].end > layout->event_end)
            layout->segments[i].end = layout->event_end;
    for (size_t i = 0; i < layout->block_count; i++)
        if (layout->blocks[i].end > layout->event_end)
            layout->blocks[i].end = layout->event_end;
    if (layout->segment_count == 0)
        return;
    size_t count = 0;
    frag_life *ranges = merge_segments(layout, &count, &layout->offset_end);
    for (size_t i = 0; i < layout->segment_count; i++)
        layout->segments[i].offset = offset_of(ranges, count, layout->segments[i].address);
    for (size_t i = 0; i < layout->block_count; i++)
        layout->blocks[i].offset = offset_of(ranges, count, layout->blocks[i].address);
    free(ranges);
}

static void keep_end(void *context, const frag_replay *replay, const frag_replay_result *result)
{
    frag_layout *layout = context;
    (void)replay;
    layout->event_end = result->events;
    layout->oom = result->oom;
}

bool frag_layout_record(const frag_recording *recording, const frag_trace *trace,
                        const frag_policy_ops *ops, const frag_option_value *values,
                        const frag_device_spec *device, bool (*is_interrupted)(void),
                        frag_layout *layout, frag_error *error)
{
    recorder record = {.trace = trace, .layout = layout};
    frag_replay_options options = {
        .stop_after = FRAG_UNLIMITED,
        .on_note = take_note,
        .on_note_context = &record,
        .is_start_noted = true,
        .is_interrupted = is_interrupted,
    };
    *layout = (frag_layout){0};
    bool ok =
        frag_run_look(recording, trace, ops, values, device, &options, keep_end, layout, error);
    free(record.block_of);
    free(record.open);
    if (ok)
        finish(layout);
    else
        frag_layout_destroy(layout);
    return ok;
}

void frag_layout_destroy(frag_layout *layout)
{
    free(layout->segments);
    free(layout->blocks);
    *layout = (frag_layout){0};
}
