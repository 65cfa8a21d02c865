#include "traces/cut.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "sim/trace/trace_opening.h"
#include "traces/builder.h"

typedef struct cut_state {
    const frag_recording *recording;
    const frag_trace *trace;
    frag_builder *builder;
    frag_opening *opening;      /* where the piece starts */
    uint32_t *slots;            /* of the piece, by slot of the whole trace */
    bool is_torch;              /* the recorded allocator's sizes of blocks are known */
    uint64_t start_block_bytes; /* of the live block being added; 0: as in the trace */
} cut_state;

static uint64_t value_64(const uint64_t *column, uint64_t index)
{
    return column == NULL ? 0 : column[index];
}

static uint32_t value_32(const uint32_t *column, uint64_t index)
{
    return column == NULL ? 0 : column[index];
}

/* ---- writing the piece */
static frag_build_event copy_of(const cut_state *cutter, uint64_t index)
{
    const frag_trace *trace = cutter->trace;
    const frag_event *event = &trace->events[index];
    bool is_all = event->stream == FRAG_STREAM_ALL;
    return (frag_build_event){
        .op = (frag_op)event->op,
        .flags = event->flags,
        .is_stream_all = is_all,
        .stream = is_all || trace->stream_count == 0 ? 0 : trace->stream_handles[event->stream],
        .slot = event->slot,
        .bytes = event->bytes,
        .address = value_64(trace->addresses, index),
        .time_ns = value_64(trace->times_ns, index),
        .site = value_32(trace->sites, index),
        .pool = value_32(trace->pools, index),
        .note = value_32(trace->notes, index),
        .block_bytes = value_64(trace->block_bytes, index),
    };
}

static void add_event(cut_state *cutter, uint64_t index, uint8_t more_flags)
{
    frag_build_event event = copy_of(cutter, index);
    event.flags |= more_flags;
    if ((more_flags & FRAG_EVENT_INITIAL) != 0)
        event.flags &= (uint8_t)~FRAG_EVENT_PLACED;
    if (cutter->start_block_bytes != 0)
        event.block_bytes = cutter->start_block_bytes;
    bool is_release = event.op == FRAG_OP_COMPLETE ||
                      (event.op == FRAG_OP_FREE && (event.flags & FRAG_EVENT_DEFERRED) == 0);
    bool has_block = frag_op_is_of_block(event.op);
    if (event.op == FRAG_OP_ALLOC && event.slot != FRAG_SLOT_NONE) {
        uint32_t slot = frag_builder_slot_take(cutter->builder);
        cutter->slots[event.slot] = slot;
        event.slot = slot;
    } else if (has_block) {
        event.slot = cutter->slots[event.slot];
    }
    frag_builder_add(cutter->builder, &event);
    if (is_release)
        frag_builder_slot_give(cutter->builder, event.slot);
}

static int compare_held(const void *left, const void *right)
{
    const frag_held_range *a = left;
    const frag_held_range *b = right;
    return frag_compare_then(frag_compare(a->address, b->address),
                             frag_compare(a->event, b->event));
}

static bool is_one_range(const cut_state *cutter, const frag_held_range *a,
                         const frag_held_range *b)
{
    const frag_trace *trace = cutter->trace;
    return a->is_mapped && b->is_mapped && a->address + a->bytes == b->address &&
           trace->events[a->event].stream == trace->events[b->event].stream &&
           value_32(trace->pools, a->event) == value_32(trace->pools, b->event);
}

/* What is held, sorted by address, with mapped pages in a row joined. The caller frees it. */
static frag_held_range *join_held(const cut_state *cutter, size_t *joined)
{
    size_t held_count = 0;
    const frag_held_range *given = frag_opening_held(cutter->opening, &held_count);
    frag_held_range *held = frag_alloc(held_count, sizeof *held);
    size_t count = 0;
    if (held_count > 0) {
        memcpy(held, given, held_count * sizeof *held);
        qsort(held, held_count, sizeof *held, compare_held);
    }
    for (size_t i = 0; i < held_count;) {
        frag_held_range range = held[i++];
        while (i < held_count && is_one_range(cutter, &range, &held[i]) &&
               range.bytes + held[i].bytes <= FRAG_REQUEST_BYTES_MAX)
            range.bytes += held[i++].bytes;
        held[count++] = range;
    }
    *joined = count;
    return held;
}

static void add_held(cut_state *cutter, const frag_held_range *range)
{
    frag_build_event event = copy_of(cutter, range->event);
    event.flags |= FRAG_EVENT_INITIAL;
    event.address = range->address;
    event.bytes = range->bytes;
    frag_builder_add(cutter->builder, &event);
}

typedef struct live_block {
    uint64_t address;
    uint64_t event;
    uint32_t slot;
} live_block;

static int compare_live(const void *left, const void *right)
{
    const live_block *a = left;
    const live_block *b = right;
    return frag_compare_then(frag_compare(a->address, b->address),
                             frag_compare(a->event, b->event));
}

/* A live block of the start. PyTorch's blocks are multiples of 512 bytes; in a large cudaMalloc'ed
 * segment a remainder of up to 1 MiB is not split off, so a small gap behind a block is taken for
 * its own. */
static void add_live(cut_state *cutter, const live_block *live, const frag_held_range *range,
                     uint64_t limit)
{
    const frag_trace *trace = cutter->trace;
    const frag_event *event = &trace->events[live->event];
    uint64_t bytes = value_64(trace->block_bytes, live->event);
    if (bytes == 0 && range != NULL && cutter->is_torch) {
        uint64_t room = limit - live->address;
        bytes = frag_align_up(event->bytes, 512);
        bool is_exact = range->is_mapped || range->bytes <= 2 * FRAG_MIB;
        if (bytes > room || (!is_exact && room - bytes <= FRAG_MIB))
            bytes = room;
        bytes = bytes < event->bytes ? 0 : bytes;
    }
    cutter->start_block_bytes = bytes;
    add_event(cutter, live->event, FRAG_EVENT_INITIAL);
    cutter->start_block_bytes = 0;
    const frag_open_block *block = &frag_opening_blocks(cutter->opening)[live->slot];
    if (block->is_waiting)
        add_event(cutter, block->free_event, FRAG_EVENT_INITIAL);
}

/* Each segment held, followed by the blocks that live in it; blocks whose place is not known first.
 */
static void add_start(cut_state *cutter)
{
    const frag_trace *trace = cutter->trace;
    live_block *live = frag_alloc(trace->slot_count, sizeof *live);
    size_t count = 0;
    for (uint32_t slot = 0; slot < trace->slot_count; slot++) {
        const frag_open_block *block = &frag_opening_blocks(cutter->opening)[slot];
        if (block->is_live || block->is_waiting)
            live[count++] = (live_block){value_64(trace->addresses, block->alloc_event),
                                         block->alloc_event, slot};
    }
    qsort(live, count, sizeof *live, compare_live);
    size_t held_count = 0;
    frag_held_range *held = join_held(cutter, &held_count);
    size_t next = 0;
    for (size_t i = 0; i <= held_count; i++) {
        uint64_t start = i < held_count ? held[i].address : UINT64_MAX;
        const frag_held_range *range = i > 0 ? &held[i - 1] : NULL;
        for (; next < count && live[next].address < start; next++) {
            bool is_inside = range != NULL && live[next].address - range->address < range->bytes;
            uint64_t limit = is_inside ? range->address + range->bytes : 0;
            if (is_inside && next + 1 < count && live[next + 1].address < limit)
                limit = live[next + 1].address;
            add_live(cutter, &live[next], is_inside ? range : NULL, limit);
        }
        if (i < held_count)
            add_held(cutter, &held[i]);
    }
    frag_free(held);
    frag_free(live);
}

/* Settings, pools and uses that were in force, in the order in which they came about. */
static void add_in_force(cut_state *cutter)
{
    size_t count = 0;
    const uint64_t *events = frag_opening_in_force(cutter->opening, &count);
    for (size_t i = 0; i < count; i++)
        add_event(cutter, events[i], 0);
}

static void copy_tables(cut_state *cutter, frag_cut_range range, uint64_t left_out)
{
    const frag_recording *recording = cutter->recording;
    const frag_trace *trace = cutter->trace;
    frag_builder *builder = cutter->builder;
    for (uint32_t i = 0; i < recording->strings.count; i++)
        frag_builder_string(builder, frag_strings_get(&recording->strings, i),
                            frag_strings_length(&recording->strings, i));
    for (uint32_t i = 0; i < recording->metadata_count; i++)
        frag_builder_metadata_strings(builder, recording->metadata[i][0],
                                      recording->metadata[i][1]);
    for (uint32_t i = 0; i < recording->frame_count; i++)
        frag_builder_frame(builder, recording->frames[i]);
    for (uint32_t i = 0; i < recording->site_count; i++)
        frag_builder_site(builder, recording->site_frames + recording->sites[i].first,
                          recording->sites[i].count);
    frag_text origin = {0};
    frag_text_add(&origin, "events %" PRIu64 "..%" PRIu64 " of %s", range.first + left_out,
                  range.end + left_out, trace->digest);
    frag_builder_metadata(builder, "cut", origin.bytes);
    frag_text_destroy(&origin);
    frag_builder_device(builder, trace->device);
    frag_builder_streams(builder, trace->stream_handles, trace->stream_count);
    for (uint32_t i = 0; i < trace->pool_count; i++)
        frag_builder_pool(builder, trace->pool_ids[i]);
}

/* left_out: events of the whole trace before the first that this one lacks. */
static bool cut(const frag_recording *recording, const frag_trace *trace, frag_cut_range range,
                uint64_t left_out, frag_recording *piece, frag_error *error)
{
    *piece = (frag_recording){0};
    if (range.first > range.end || range.end > trace->event_count)
        return frag_fail(error, FRAG_E_USAGE,
                         "events %" PRIu64 "..%" PRIu64
                         " are not in the trace; expected a range within 0..%" PRIu64,
                         range.first, range.end, trace->event_count);
    cut_state cutter = {.recording = recording, .trace = trace};
    const char *source = frag_recording_get(recording, "source");
    cutter.is_torch = source != NULL && strcmp(source, "torch-snapshot") == 0;
    cutter.builder = frag_builder_create(piece);
    cutter.opening = frag_opening_create(trace);
    cutter.slots = frag_alloc(trace->slot_count, sizeof *cutter.slots);
    copy_tables(&cutter, range, left_out);
    frag_opening_follow_to(cutter.opening, range.first);
    add_start(&cutter);
    add_in_force(&cutter);
    for (uint64_t i = range.first; i < range.end; i++)
        add_event(&cutter, i, 0);
    frag_opening_destroy(cutter.opening);
    frag_free(cutter.slots);
    return frag_builder_finish(cutter.builder, recording->name, error);
}

bool frag_cut(const frag_recording *recording, const frag_trace *trace, frag_cut_range range,
              frag_recording *piece, frag_error *error)
{
    return cut(recording, trace, range, 0, piece, error);
}

/* ---- finding the range */
bool frag_cut_find_times(const frag_trace *trace, frag_cut_times times, frag_cut_range *range,
                         frag_error *error)
{
    if (trace->times_ns == NULL)
        return frag_fail(error, FRAG_E_USAGE,
                         "the trace has no times; choose the piece with --events or --marks");
    *range = (frag_cut_range){trace->event_count, 0};
    for (uint64_t i = 0; i < trace->event_count; i++) {
        uint64_t time = trace->times_ns[i];
        if (time == 0 || time < times.start_ns || time >= times.end_ns)
            continue;
        range->first = range->first < i ? range->first : i;
        range->end = i + 1;
    }
    if (range->end == 0)
        return frag_fail(error, FRAG_E_USAGE,
                         "no event is between these times; the trace has %" PRIu64 " to %" PRIu64
                         " (ns)",
                         trace->stats.time_first_ns, trace->stats.time_last_ns);
    return true;
}

static bool is_mark(const frag_recording *recording, const frag_event *event, const char *name)
{
    return event->op == FRAG_OP_MARK &&
           strcmp(frag_strings_get(&recording->strings, event->slot), name) == 0;
}

static bool fail_mark(const frag_recording *recording, const frag_trace *trace, const char *name,
                      frag_error *error)
{
    const char *names[64];
    size_t count = 0;
    for (uint64_t i = 0; i < trace->event_count && count < 64; i++)
        if (trace->events[i].op == FRAG_OP_MARK)
            names[count++] = frag_strings_get(&recording->strings, trace->events[i].slot);
    if (count == 0)
        return frag_fail(error, FRAG_E_USAGE,
                         "the trace has no marks; choose the piece with --events or --time");
    const char *nearest = frag_nearest_name(name, names, count);
    return frag_fail(error, FRAG_E_USAGE,
                     "the mark '%.100s' is not in the trace, or does not end; %s '%.100s'", name,
                     nearest != NULL ? "did you mean" : "the first mark is",
                     nearest != NULL ? nearest : names[0]);
}

/* The end of the phase or point of that name at or after index from; event_count: there is none. */
static uint64_t find_mark_end(const frag_recording *recording, const frag_trace *trace,
                              const char *name, uint64_t from)
{
    uint64_t depth = 0;
    for (uint64_t i = from; i < trace->event_count; i++) {
        const frag_event *event = &trace->events[i];
        if (!is_mark(recording, event, name))
            continue;
        if ((event->flags & FRAG_EVENT_BEGIN) != 0)
            depth++;
        else if ((event->flags & FRAG_EVENT_END) == 0 && depth == 0)
            return i;
        else if ((event->flags & FRAG_EVENT_END) != 0 && (depth == 0 || --depth == 0))
            return i;
    }
    return trace->event_count;
}

bool frag_cut_find_marks(const frag_recording *recording, const frag_trace *trace,
                         const char *first, const char *last, frag_cut_range *range,
                         frag_error *error)
{
    range->first = 0;
    while (range->first < trace->event_count &&
           ((trace->events[range->first].flags & FRAG_EVENT_END) != 0 ||
            !is_mark(recording, &trace->events[range->first], first)))
        range->first++;
    if (range->first == trace->event_count)
        return fail_mark(recording, trace, first, error);
    const char *name = last == NULL ? first : last;
    uint64_t end = find_mark_end(recording, trace, name, range->first);
    if (end == trace->event_count)
        return fail_mark(recording, trace, name, error);
    range->end = end + 1;
    return true;
}

/* ---- a window */
static bool fail_device(const frag_recording *recording, const frag_window *window,
                        frag_error *error)
{
    const frag_trace *main = frag_recording_main_trace(recording);
    if (window->has_device)
        frag_fail(error, FRAG_E_USAGE,
                  "the recording has no device %u; of those it has, device %u requests most",
                  window->device, main->device);
    else
        frag_fail(error, FRAG_E_USAGE,
                  "the recording has %u devices; choose one (device %u requests most)",
                  recording->trace_count, main->device);
    return frag_error_in(error, window->device_option);
}

static bool find_window(const frag_recording *recording, const frag_trace *trace,
                        const frag_window *window, frag_cut_range *range, frag_error *error)
{
    *range = (frag_cut_range){0, trace->event_count};
    switch (window->kind) {
    case FRAG_WINDOW_EVENTS:
        range->first = window->first;
        range->end = window->end == UINT64_MAX ? trace->event_count : window->end;
        return true;
    case FRAG_WINDOW_TIMES:
        return frag_cut_find_times(trace, (frag_cut_times){window->first, window->end}, range,
                                   error) ||
               frag_error_in(error, "--time");
    case FRAG_WINDOW_MARKS:
        return frag_cut_find_marks(recording, trace, window->first_mark, window->last_mark, range,
                                   error) ||
               frag_error_in(error, "--marks");
    default:
        return true;
    }
}

bool frag_cut_window(const frag_recording *recording, const frag_window *window,
                     frag_recording *piece, frag_error *error)
{
    *piece = (frag_recording){0};
    if (window->is_found)
        return cut(recording, &recording->traces[window->trace],
                   (frag_cut_range){window->found_first, window->found_end}, window->left_out,
                   piece, error);
    const frag_trace *trace = window->has_device
                                  ? frag_recording_device_trace(recording, window->device)
                              : recording->trace_count == 1 ? &recording->traces[0]
                                                            : NULL;
    frag_cut_range range;
    if (trace == NULL)
        return fail_device(recording, window, error);
    return find_window(recording, trace, window, &range, error) &&
           frag_cut(recording, trace, range, piece, error);
}
