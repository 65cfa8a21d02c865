#include "traces/cut.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "traces/builder.h"

/* A piece of device memory that the recorded allocator held. */
typedef struct held_range {
    uint64_t address;
    uint64_t bytes;
    uint64_t event; /* that got it */
    bool is_mapped;
} held_range;

typedef struct block_record {
    uint64_t alloc_event;
    uint64_t free_event; /* the deferred one, when is_waiting */
    bool is_live;
    bool is_waiting;
    uint32_t slot; /* as in the piece */
} block_record;

typedef struct cut_state {
    const frag_recording *recording;
    const frag_trace *trace;
    frag_builder *builder;
    block_record *blocks; /* by slot of the whole trace */
    held_range *held;
    size_t held_capacity;
    size_t held_count;
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

/* ---- what was held and live where the piece starts */
static void hold(cut_state *cutter, held_range range)
{
    cutter->held = frag_grow(cutter->held, &cutter->held_capacity, cutter->held_count + 1,
                             sizeof *cutter->held);
    cutter->held[cutter->held_count++] = range;
}

/* A mapped range may be given back in pieces other than those it was got in. */
static void unhold(cut_state *cutter, uint64_t address, uint64_t bytes, bool is_mapped)
{
    uint64_t end = address + bytes;
    for (size_t i = cutter->held_count; i-- > 0;) {
        held_range range = cutter->held[i];
        uint64_t range_end = range.address + range.bytes;
        if (range.is_mapped != is_mapped || range_end <= address || range.address >= end)
            continue;
        cutter->held[i] = cutter->held[--cutter->held_count];
        if (range.address < address)
            hold(cutter,
                 (held_range){range.address, address - range.address, range.event, is_mapped});
        if (range_end > end)
            hold(cutter, (held_range){end, range_end - end, range.event, is_mapped});
    }
}

static void follow_event(cut_state *cutter, uint64_t index)
{
    const frag_event *event = &cutter->trace->events[index];
    uint64_t address = value_64(cutter->trace->addresses, index);
    block_record *block =
        &cutter->blocks[event->slot < cutter->trace->slot_count ? event->slot : 0];
    switch ((frag_op)event->op) {
    case FRAG_OP_ALLOC:
        if (event->slot != FRAG_SLOT_NONE)
            *block = (block_record){.alloc_event = index, .is_live = true};
        break;
    case FRAG_OP_FREE:
        block->is_live = false;
        block->is_waiting = (event->flags & FRAG_EVENT_DEFERRED) != 0;
        block->free_event = index;
        break;
    case FRAG_OP_COMPLETE:
        block->is_waiting = false;
        break;
    case FRAG_OP_SEGMENT_ALLOC:
    case FRAG_OP_SEGMENT_MAP:
        hold(cutter, (held_range){address, event->bytes, index, event->op == FRAG_OP_SEGMENT_MAP});
        break;
    case FRAG_OP_SEGMENT_FREE:
    case FRAG_OP_SEGMENT_UNMAP:
        unhold(cutter, address, event->bytes, event->op == FRAG_OP_SEGMENT_UNMAP);
        break;
    default:
        break;
    }
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
    if (cutter->start_block_bytes != 0)
        event.block_bytes = cutter->start_block_bytes;
    bool is_release = event.op == FRAG_OP_COMPLETE ||
                      (event.op == FRAG_OP_FREE && (event.flags & FRAG_EVENT_DEFERRED) == 0);
    bool has_block =
        event.op == FRAG_OP_FREE || event.op == FRAG_OP_USE || event.op == FRAG_OP_COMPLETE;
    if (event.op == FRAG_OP_ALLOC && event.slot != FRAG_SLOT_NONE) {
        block_record *block = &cutter->blocks[event.slot];
        block->slot = frag_builder_slot_take(cutter->builder);
        event.slot = block->slot;
    } else if (has_block) {
        event.slot = cutter->blocks[event.slot].slot;
    }
    frag_builder_add(cutter->builder, &event);
    if (is_release)
        frag_builder_slot_give(cutter->builder, event.slot);
}

static int compare_held(const void *left, const void *right)
{
    const held_range *a = left;
    const held_range *b = right;
    if (a->address != b->address)
        return frag_compare(a->address, b->address);
    return frag_compare(a->event, b->event);
}

static bool is_one_range(const cut_state *cutter, const held_range *a, const held_range *b)
{
    const frag_trace *trace = cutter->trace;
    return a->is_mapped && b->is_mapped && a->address + a->bytes == b->address &&
           trace->events[a->event].stream == trace->events[b->event].stream &&
           value_32(trace->pools, a->event) == value_32(trace->pools, b->event);
}

/* Sorts what is held by address and joins mapped pages in a row. */
static void join_held(cut_state *cutter)
{
    size_t count = 0;
    if (cutter->held_count > 0)
        qsort(cutter->held, cutter->held_count, sizeof *cutter->held, compare_held);
    for (size_t i = 0; i < cutter->held_count;) {
        held_range range = cutter->held[i++];
        while (i < cutter->held_count && is_one_range(cutter, &range, &cutter->held[i]) &&
               range.bytes + cutter->held[i].bytes <= FRAG_REQUEST_BYTES_MAX)
            range.bytes += cutter->held[i++].bytes;
        cutter->held[count++] = range;
    }
    cutter->held_count = count;
}

static void add_held(cut_state *cutter, const held_range *range)
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
    if (a->address != b->address)
        return frag_compare(a->address, b->address);
    return frag_compare(a->event, b->event);
}

/* A live block of the start. PyTorch's blocks are multiples of 512 bytes; in a large cudaMalloc'ed
 * segment a remainder of up to 1 MiB is not split off, so a small gap behind a block is taken for
 * its own. */
static void add_live(cut_state *cutter, const live_block *live, const held_range *range,
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
    if (cutter->blocks[live->slot].is_waiting)
        add_event(cutter, cutter->blocks[live->slot].free_event, FRAG_EVENT_INITIAL);
}

/* Each segment held, followed by the blocks that live in it; blocks whose place is not known first.
 */
static void add_start(cut_state *cutter)
{
    const frag_trace *trace = cutter->trace;
    live_block *live = frag_alloc(trace->slot_count, sizeof *live);
    size_t count = 0;
    for (uint32_t slot = 0; slot < trace->slot_count; slot++) {
        const block_record *block = &cutter->blocks[slot];
        if (block->is_live || block->is_waiting)
            live[count++] = (live_block){value_64(trace->addresses, block->alloc_event),
                                         block->alloc_event, slot};
    }
    if (count > 0)
        qsort(live, count, sizeof *live, compare_live);
    join_held(cutter);
    size_t next = 0;
    for (size_t i = 0; i <= cutter->held_count; i++) {
        uint64_t start = i < cutter->held_count ? cutter->held[i].address : UINT64_MAX;
        const held_range *range = i > 0 ? &cutter->held[i - 1] : NULL;
        for (; next < count && live[next].address < start; next++) {
            bool is_inside = range != NULL && live[next].address - range->address < range->bytes;
            uint64_t limit = is_inside ? range->address + range->bytes : 0;
            if (is_inside && next + 1 < count && live[next + 1].address < limit)
                limit = live[next + 1].address;
            add_live(cutter, &live[next], is_inside ? range : NULL, limit);
        }
        if (i < cutter->held_count)
            add_held(cutter, &cutter->held[i]);
    }
    frag_free(live);
}

/* Which events before the cut still have a say behind it. */
typedef struct force_state {
    uint64_t config; /* the last of its kind; UINT64_MAX: none */
    uint64_t limit;
    uint64_t capture;    /* the last capture_begin that has no end */
    uint64_t *on_oom;    /* by pool, event + 1: it serves OOMs since */
    uint64_t *forgotten; /* by pool, event + 1: nobody owned it any more */
    uint32_t *owners;    /* by pool */
} force_state;

static void follow_pool(force_state *state, const frag_event *event, uint64_t index)
{
    uint32_t pool = event->slot;
    switch (event->op) {
    case FRAG_OP_POOL_BEGIN:
    case FRAG_OP_POOL_CREATE:
        state->owners[pool]++;
        break;
    case FRAG_OP_POOL_RELEASE:
        state->owners[pool] -= state->owners[pool] > 0 ? 1 : 0;
        if (state->owners[pool] == 0)
            state->forgotten[pool] = index + 1;
        break;
    case FRAG_OP_POOL_ON_OOM:
        state->on_oom[pool] = (event->flags & FRAG_EVENT_BEGIN) != 0 ? index + 1 : 0;
        break;
    default:
        break;
    }
}

static void follow(force_state *state, const frag_event *event, uint64_t index)
{
    if (event->op == FRAG_OP_CONFIG)
        state->config = index;
    else if (event->op == FRAG_OP_LIMIT)
        state->limit = index;
    else if (event->op == FRAG_OP_CAPTURE_BEGIN)
        state->capture = index;
    else if (event->op == FRAG_OP_CAPTURE_END)
        state->capture = UINT64_MAX;
    else
        follow_pool(state, event, index);
}

/* Owners of a pool that somebody still owns: every event since nobody did is needed to count them.
 */
static bool is_pool_in_force(const force_state *state, const frag_event *event, uint64_t index)
{
    switch (event->op) {
    case FRAG_OP_POOL_ON_OOM:
        return state->on_oom[event->slot] == index + 1;
    case FRAG_OP_POOL_BEGIN:
    case FRAG_OP_POOL_END:
    case FRAG_OP_POOL_CREATE:
    case FRAG_OP_POOL_RELEASE:
    case FRAG_OP_POOL_NO_SPLIT:
        return index >= state->forgotten[event->slot] && state->owners[event->slot] > 0;
    default:
        return false;
    }
}

/* Settings, pools and uses that were in force, in the order in which they came about. */
static void add_in_force(cut_state *cutter, uint64_t first)
{
    const frag_trace *trace = cutter->trace;
    force_state state = {.config = UINT64_MAX, .limit = UINT64_MAX, .capture = UINT64_MAX};
    state.on_oom = frag_alloc(trace->pool_count, sizeof *state.on_oom);
    state.forgotten = frag_alloc(trace->pool_count, sizeof *state.forgotten);
    state.owners = frag_alloc(trace->pool_count, sizeof *state.owners);
    for (uint64_t i = 0; i < first; i++)
        follow(&state, &trace->events[i], i);
    for (uint64_t i = 0; i < first; i++) {
        const frag_event *event = &trace->events[i];
        bool is_in_force = i == state.config || i == state.limit || i == state.capture ||
                           is_pool_in_force(&state, event, i);
        if (event->op == FRAG_OP_USE)
            is_in_force =
                cutter->blocks[event->slot].is_live && cutter->blocks[event->slot].alloc_event < i;
        if (is_in_force)
            add_event(cutter, i, 0);
    }
    frag_free(state.on_oom);
    frag_free(state.forgotten);
    frag_free(state.owners);
}

static void copy_tables(cut_state *cutter, frag_cut_range range)
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
    frag_text_add(&origin, "events %" PRIu64 "..%" PRIu64 " of %s", range.first, range.end,
                  trace->digest);
    frag_builder_metadata(builder, "cut", origin.bytes);
    frag_text_destroy(&origin);
    frag_builder_device(builder, trace->device);
    frag_builder_streams(builder, trace->stream_handles, trace->stream_count);
    for (uint32_t i = 0; i < trace->pool_count; i++)
        frag_builder_pool(builder, trace->pool_ids[i]);
}

bool frag_cut(const frag_recording *recording, const frag_trace *trace, frag_cut_range range,
              frag_recording *piece, frag_error *error)
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
    cutter.blocks = frag_alloc((size_t)trace->slot_count + 1, sizeof *cutter.blocks);
    copy_tables(&cutter, range);
    for (uint64_t i = 0; i < range.first; i++)
        follow_event(&cutter, i);
    add_start(&cutter);
    add_in_force(&cutter, range.first);
    for (uint64_t i = range.first; i < range.end; i++)
        add_event(&cutter, i, 0);
    frag_free(cutter.blocks);
    frag_free(cutter.held);
    return frag_builder_finish(cutter.builder, recording->name, error);
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
