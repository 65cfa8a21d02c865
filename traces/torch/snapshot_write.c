#include "traces/torch/snapshot_write.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "traces/pickle/pickle_write.h"
#include "traces/torch/history/snapshot_ranges.h"

/* Readers, ours included, take no larger number for bytes free on a device. */
#define DEVICE_FREE_MAX (((uint64_t)1 << 62) - 1)

/* A segment, block or hole at the end of a run. */
typedef struct end_span {
    frag_span span;
    uint64_t requested_bytes; /* blocks */
    uint32_t site;
    bool is_waiting;
} end_span;

typedef struct end_segment {
    size_t first; /* into spans: the segment itself, then what lies in it */
    size_t end;
    uint64_t address;
} end_segment;

/* What is left to write of a run once its history has been written. */
typedef struct ended_run {
    const frag_trace *trace;
    uint64_t events;
    end_span *spans;
    size_t span_count;
    size_t span_capacity;
    end_segment *segments; /* by address */
    size_t segment_count;
    size_t segment_capacity;
} ended_run;

/* Time of an event: its own, else that of the last one before that has one. */
typedef struct time_walk {
    uint64_t next;
    uint64_t time_us;
} time_walk;

/* A block of the run being written. */
typedef struct told_block {
    uint64_t event; /* that requested it */
    bool is_held;   /* since before the trace began */
} told_block;

struct frag_snapshot_writer {
    const frag_recording *recording;
    frag_pickle_writer pickle;
    uint32_t *frame_memo; /* by frame, + 1 */
    uint32_t *site_memo;  /* by site, + 1 */
    uint32_t device_count;
    ended_run *runs;
    size_t run_count;
    size_t run_capacity;
    /* of the run whose history is being written */
    const frag_trace *trace;
    time_walk time;
    frag_held_ranges ranges; /* segments held now */
    told_block *blocks;      /* by handle */
    size_t handle_count;
    uint32_t *pool_memo; /* by pool, + 1 */
};

/* ---- what entries share */

static void put_string(frag_snapshot_writer *writer, uint32_t string)
{
    const frag_strings *strings = &writer->recording->strings;
    frag_pickle_put_bytes(&writer->pickle, frag_strings_get(strings, string),
                          frag_strings_length(strings, string));
}

static void put_frame(frag_snapshot_writer *writer, uint32_t number)
{
    frag_pickle_writer *pickle = &writer->pickle;
    if (writer->frame_memo[number] != 0) {
        frag_pickle_put_again(pickle, writer->frame_memo[number] - 1);
        return;
    }
    const frag_frame *frame = &writer->recording->frames[number];
    frag_pickle_dict_begin(pickle);
    frag_pickle_put_text(pickle, "name");
    put_string(writer, frame->name);
    frag_pickle_put_text(pickle, "filename");
    put_string(writer, frame->file);
    frag_pickle_put_text(pickle, "line");
    frag_pickle_put_unsigned(pickle, frame->line);
    frag_pickle_dict_end(pickle);
    writer->frame_memo[number] = frag_pickle_memoize(pickle) + 1;
}

/* One list for all that come from the same site. */
static void put_frames(frag_snapshot_writer *writer, uint32_t site)
{
    frag_pickle_writer *pickle = &writer->pickle;
    if (site != 0 && writer->site_memo[site] != 0) {
        frag_pickle_put_again(pickle, writer->site_memo[site] - 1);
        return;
    }
    frag_pickle_list_begin(pickle);
    for (uint32_t i = 0; site != 0 && i < writer->recording->sites[site].count; i++) {
        const frag_site *stack = &writer->recording->sites[site];
        frag_pickle_list_item(pickle);
        put_frame(writer, writer->recording->site_frames[stack->first + i]);
    }
    frag_pickle_list_end(pickle);
    if (site != 0)
        writer->site_memo[site] = frag_pickle_memoize(pickle) + 1;
}

static void put_pool(frag_pickle_writer *pickle, const frag_trace *trace, uint32_t *memo,
                     uint32_t pool)
{
    frag_pool_id id = {0};
    if (memo[pool] != 0) {
        frag_pickle_put_again(pickle, memo[pool] - 1);
        return;
    }
    if (pool < trace->pool_count)
        id = trace->pool_ids[pool];
    frag_pickle_put_pair(pickle, id.high, id.low);
    memo[pool] = frag_pickle_memoize(pickle) + 1;
}

static void put_number(frag_pickle_writer *pickle, const char *key, uint64_t value)
{
    frag_pickle_put_text(pickle, key);
    frag_pickle_put_unsigned(pickle, value);
}

static void put_words(frag_pickle_writer *pickle, const char *key, const char *value)
{
    frag_pickle_put_text(pickle, key);
    frag_pickle_put_text(pickle, value);
}

static uint64_t time_at(time_walk *walk, const frag_trace *trace, uint64_t event)
{
    if (trace->times_ns == NULL)
        return 0;
    for (; walk->next <= event; walk->next++)
        if (trace->times_ns[walk->next] != 0)
            walk->time_us = trace->times_ns[walk->next] / 1000;
    return walk->time_us;
}

static time_walk time_begin(const frag_trace *trace)
{
    return (time_walk){.time_us = trace->stats.time_first_ns / 1000};
}

/* ---- history */

frag_snapshot_writer *frag_snapshot_writer_create(const frag_recording *recording, FILE *stream)
{
    frag_snapshot_writer *writer = frag_alloc(1, sizeof *writer);
    writer->recording = recording;
    writer->frame_memo = frag_alloc(recording->frame_count, sizeof(uint32_t));
    writer->site_memo = frag_alloc(recording->site_count, sizeof(uint32_t));
    frag_pickle_writer_begin(&writer->pickle, stream);
    frag_pickle_dict_begin(&writer->pickle);
    frag_pickle_put_text(&writer->pickle, "device_traces");
    frag_pickle_list_begin(&writer->pickle);
    return writer;
}

void frag_snapshot_writer_begin(frag_snapshot_writer *writer, const frag_trace *trace)
{
    FRAG_ASSERT(trace->device >= writer->device_count && writer->trace == NULL);
    for (; writer->device_count < trace->device; writer->device_count++) {
        frag_pickle_list_item(&writer->pickle);
        frag_pickle_list_begin(&writer->pickle);
        frag_pickle_list_end(&writer->pickle);
    }
    writer->device_count++;
    frag_pickle_list_item(&writer->pickle);
    frag_pickle_list_begin(&writer->pickle);
    writer->trace = trace;
    writer->time = time_begin(trace);
    writer->pool_memo = frag_alloc((size_t)trace->pool_count + 1, sizeof(uint32_t));
}

static uint32_t site_of(const frag_trace *trace, uint64_t event)
{
    return trace->sites != NULL && event < trace->event_count ? trace->sites[event] : 0;
}

/* A segment keeps the stream and pool it was made for, whoever makes the policy give it back. */
static void follow_segment(frag_snapshot_writer *writer, frag_note *note)
{
    frag_held_range range = {
        .address = note->address,
        .bytes = note->bytes,
        .stream = note->stream,
        .pool = note->pool,
        .site = site_of(writer->trace, note->event),
    };
    const frag_held_range *held = NULL;
    switch (note->kind) {
    case FRAG_NOTE_SEGMENT_ALLOC:
    case FRAG_NOTE_HELD_SEGMENT:
        frag_held_ranges_add(&writer->ranges, &range);
        return;
    case FRAG_NOTE_SEGMENT_MAP:
    case FRAG_NOTE_HELD_RANGE:
        range.is_expandable = true;
        frag_held_ranges_map(&writer->ranges, &range);
        return;
    default:
        break;
    }
    held = frag_held_ranges_find(&writer->ranges, note->address);
    FRAG_ASSERT(held != NULL);
    note->stream = (uint32_t)held->stream;
    note->pool = held->pool;
    if (note->kind == FRAG_NOTE_SEGMENT_UNMAP)
        frag_held_ranges_cut(&writer->ranges, note->address, note->bytes);
    else
        frag_held_ranges_remove(&writer->ranges, note->address);
}

/* false: the note tells of what was there when the trace began. */
static bool follow_block(frag_snapshot_writer *writer, const frag_note *note)
{
    size_t old = writer->handle_count;
    if (note->handle >= old) {
        writer->blocks = frag_grow(writer->blocks, &writer->handle_count, (size_t)note->handle + 1,
                                   sizeof *writer->blocks);
        memset(writer->blocks + old, 0, (writer->handle_count - old) * sizeof *writer->blocks);
    }
    told_block *block = &writer->blocks[note->handle];
    if (note->kind == FRAG_NOTE_ALLOC || note->kind == FRAG_NOTE_HELD_BLOCK)
        *block = (told_block){note->alloc_event, note->kind == FRAG_NOTE_HELD_BLOCK};
    bool is_initial = (writer->trace->events[note->event].flags & FRAG_EVENT_INITIAL) != 0;
    return !(block->is_held && is_initial);
}

static const char *const actions[FRAG_NOTE_HELD_BLOCK + 1] = {
    [FRAG_NOTE_ALLOC] = "alloc",
    [FRAG_NOTE_FREE_REQUESTED] = "free_requested",
    [FRAG_NOTE_FREE_COMPLETED] = "free_completed",
    [FRAG_NOTE_SEGMENT_ALLOC] = "segment_alloc",
    [FRAG_NOTE_SEGMENT_FREE] = "segment_free",
    [FRAG_NOTE_SEGMENT_MAP] = "segment_map",
    [FRAG_NOTE_SEGMENT_UNMAP] = "segment_unmap",
    [FRAG_NOTE_OOM] = "oom",
};

static void put_entry(frag_snapshot_writer *writer, const frag_note *note)
{
    frag_pickle_writer *pickle = &writer->pickle;
    const frag_trace *trace = writer->trace;
    bool has_metadata = trace->notes != NULL && note->event < trace->event_count;
    uint32_t site = site_of(trace, note->event);
    uint64_t address = note->address;
    if (note->kind == FRAG_NOTE_OOM && address > DEVICE_FREE_MAX)
        address = DEVICE_FREE_MAX;
    frag_pickle_list_item(pickle);
    frag_pickle_dict_begin(pickle);
    put_words(pickle, "action", actions[note->kind]);
    put_number(pickle, note->kind == FRAG_NOTE_OOM ? "device_free" : "addr", address);
    put_number(pickle, "size", note->bytes);
    put_number(pickle, "stream", frag_trace_stream_handle(trace, note->stream));
    put_number(pickle, "time_us", time_at(&writer->time, trace, note->event));
    put_words(pickle, "compile_context", "N/A");
    frag_pickle_put_text(pickle, "user_metadata");
    put_string(writer, has_metadata ? trace->notes[note->event] : 0);
    frag_pickle_put_text(pickle, "pool_id");
    put_pool(pickle, trace, writer->pool_memo, note->pool);
    if (site != 0) {
        frag_pickle_put_text(pickle, "frames");
        put_frames(writer, site);
    }
    frag_pickle_dict_end(pickle);
}

void frag_snapshot_writer_note(void *context, const frag_note *note)
{
    frag_snapshot_writer *writer = context;
    frag_note told = *note;
    bool is_history = true;
    switch (note->kind) {
    case FRAG_NOTE_ALLOC:
    case FRAG_NOTE_FREE_REQUESTED:
    case FRAG_NOTE_FREE_COMPLETED:
    case FRAG_NOTE_HELD_BLOCK:
        is_history = follow_block(writer, note);
        break;
    case FRAG_NOTE_OOM:
        break;
    default:
        follow_segment(writer, &told);
        is_history = actions[note->kind] != NULL;
        break;
    }
    if (is_history)
        put_entry(writer, &told);
}

/* ---- the memory at the end */

typedef struct final_walk {
    frag_snapshot_writer *writer;
    ended_run *run;
} final_walk;

static void look_span(void *context, const frag_span *span, const frag_block_view *block)
{
    final_walk *state = context;
    ended_run *run = state->run;
    end_span kept = {.span = *span};
    if (span->kind == FRAG_SPAN_SEGMENT) {
        const frag_held_range *held = frag_held_ranges_find(&state->writer->ranges, span->address);
        FRAG_ASSERT(held != NULL);
        kept.site = held->site;
        *FRAG_APPEND(run->segments, run->segment_count, run->segment_capacity) =
            (end_segment){.first = run->span_count, .address = span->address};
    } else if (span->kind == FRAG_SPAN_BLOCK) {
        kept.requested_bytes = block->requested_bytes;
        kept.is_waiting = block->is_waiting;
        kept.site = site_of(state->writer->trace, state->writer->blocks[span->handle].event);
    }
    *FRAG_APPEND(run->spans, run->span_count, run->span_capacity) = kept;
    run->segments[run->segment_count - 1].end = run->span_count;
}

static int compare_segments(const void *left, const void *right)
{
    const end_segment *a = left;
    const end_segment *b = right;
    return frag_compare(a->address, b->address);
}

static void forget_run(frag_snapshot_writer *writer)
{
    frag_held_ranges_destroy(&writer->ranges);
    frag_free(writer->blocks);
    frag_free(writer->pool_memo);
    writer->blocks = NULL;
    writer->handle_count = 0;
    writer->pool_memo = NULL;
    writer->trace = NULL;
}

void frag_snapshot_writer_look(void *context, const frag_replay *replay,
                               const frag_replay_result *result)
{
    frag_snapshot_writer *writer = context;
    const frag_trace *trace = writer->trace;
    ended_run *run = FRAG_APPEND(writer->runs, writer->run_count, writer->run_capacity);
    *run = (ended_run){.trace = trace, .events = result->events};
    final_walk state = {.writer = writer, .run = run};
    frag_replay_walk(replay, look_span, &state);
    if (run->segment_count > 1)
        qsort(run->segments, run->segment_count, sizeof *run->segments, compare_segments);
    frag_pickle_list_end(&writer->pickle);
    forget_run(writer);
}

static void put_block(frag_snapshot_writer *writer, const end_span *block)
{
    frag_pickle_writer *pickle = &writer->pickle;
    const char *state = block->span.kind == FRAG_SPAN_HOLE ? "inactive"
                        : block->is_waiting                ? "active_pending_free"
                                                           : "active_allocated";
    frag_pickle_list_item(pickle);
    frag_pickle_dict_begin(pickle);
    put_number(pickle, "address", block->span.address);
    put_number(pickle, "size", block->span.bytes);
    put_number(pickle, "requested_size", block->requested_bytes);
    put_words(pickle, "state", state);
    frag_pickle_put_text(pickle, "frames");
    put_frames(writer, block->site);
    frag_pickle_dict_end(pickle);
}

static void put_segment(frag_snapshot_writer *writer, const ended_run *run, uint32_t *pool_memo,
                        const end_segment *segment)
{
    frag_pickle_writer *pickle = &writer->pickle;
    const end_span *whole = &run->spans[segment->first];
    uint64_t allocated = 0;
    uint64_t active = 0;
    uint64_t requested = 0;
    for (size_t i = segment->first + 1; i < segment->end; i++) {
        const end_span *block = &run->spans[i];
        if (block->span.kind != FRAG_SPAN_BLOCK)
            continue;
        active += block->span.bytes;
        requested += block->requested_bytes;
        allocated += block->is_waiting ? 0 : block->span.bytes;
    }
    frag_pickle_list_item(pickle);
    frag_pickle_dict_begin(pickle);
    put_number(pickle, "device", run->trace->device);
    put_number(pickle, "address", whole->span.address);
    put_number(pickle, "total_size", whole->span.bytes);
    put_number(pickle, "allocated_size", allocated);
    put_number(pickle, "active_size", active);
    put_number(pickle, "requested_size", requested);
    put_number(pickle, "stream", frag_trace_stream_handle(run->trace, whole->span.stream));
    put_words(pickle, "segment_type", whole->span.is_small_pool ? "small" : "large");
    frag_pickle_put_text(pickle, "segment_pool_id");
    put_pool(pickle, run->trace, pool_memo, whole->span.pool);
    frag_pickle_put_text(pickle, "is_expandable");
    frag_pickle_put_bool(pickle, whole->span.is_growing);
    frag_pickle_put_text(pickle, "frames");
    put_frames(writer, whole->site);
    frag_pickle_put_text(pickle, "blocks");
    frag_pickle_list_begin(pickle);
    for (size_t i = segment->first + 1; i < segment->end; i++)
        put_block(writer, &run->spans[i]);
    frag_pickle_list_end(pickle);
    frag_pickle_dict_end(pickle);
}

static void put_segments(frag_snapshot_writer *writer)
{
    frag_pickle_put_text(&writer->pickle, "segments");
    frag_pickle_list_begin(&writer->pickle);
    for (size_t i = 0; i < writer->run_count; i++) {
        const ended_run *run = &writer->runs[i];
        uint32_t *pool_memo = frag_alloc((size_t)run->trace->pool_count + 1, sizeof *pool_memo);
        for (size_t k = 0; k < run->segment_count; k++)
            put_segment(writer, run, pool_memo, &run->segments[k]);
        frag_free(pool_memo);
    }
    frag_pickle_list_end(&writer->pickle);
}

/* ---- the rest */

static void put_annotation(frag_snapshot_writer *writer, const frag_trace *trace,
                           const frag_event *mark, uint64_t time_us)
{
    frag_pickle_writer *pickle = &writer->pickle;
    frag_pickle_list_item(pickle);
    frag_pickle_dict_begin(pickle);
    if ((mark->flags & (FRAG_EVENT_BEGIN | FRAG_EVENT_END)) != 0)
        put_words(pickle, "stage", (mark->flags & FRAG_EVENT_BEGIN) != 0 ? "START" : "END");
    frag_pickle_put_text(pickle, "name");
    put_string(writer, mark->slot);
    put_number(pickle, "device", trace->device);
    put_number(pickle, "time_us", time_us);
    frag_pickle_dict_end(pickle);
}

/* Only their times say where in the history they belong: without times there are none. */
static void put_annotations(frag_snapshot_writer *writer)
{
    frag_pickle_put_text(&writer->pickle, "external_annotations");
    frag_pickle_list_begin(&writer->pickle);
    for (size_t i = 0; i < writer->run_count; i++) {
        const frag_trace *trace = writer->runs[i].trace;
        time_walk walk = time_begin(trace);
        for (uint64_t k = 0; trace->times_ns != NULL && k < writer->runs[i].events; k++)
            if (trace->events[k].op == FRAG_OP_MARK)
                put_annotation(writer, trace, &trace->events[k], time_at(&walk, trace, k));
    }
    frag_pickle_list_end(&writer->pickle);
}

static void put_flag(frag_pickle_writer *pickle, const char *key, bool is_true)
{
    frag_pickle_put_text(pickle, key);
    frag_pickle_put_bool(pickle, is_true);
}

static void put_unlimited(frag_pickle_writer *pickle, const char *key, uint64_t bytes)
{
    frag_pickle_put_text(pickle, key);
    frag_pickle_put_signed(pickle, bytes > INT64_MAX ? -1 : (int64_t)bytes);
}

static void put_settings(frag_pickle_writer *pickle, const frag_snapshot_about *about)
{
    frag_pickle_put_text(pickle, "allocator_settings");
    frag_pickle_dict_begin(pickle);
    put_words(pickle, "PYTORCH_CUDA_ALLOC_CONF", about->conf);
    put_unlimited(pickle, "max_split_size", about->max_split_bytes);
    frag_pickle_put_text(pickle, "garbage_collection_threshold");
    frag_pickle_put_float(pickle, about->gc_threshold);
    put_flag(pickle, "expandable_segments", about->is_expandable);
    put_number(pickle, "pinned_num_register_threads", 1);
    put_flag(pickle, "release_lock_on_cudamalloc", false);
    put_flag(pickle, "pinned_use_cuda_host_register", false);
    put_flag(pickle, "graph_capture_record_stream_reuse", false);
    put_unlimited(pickle, "max_round_threshold", FRAG_UNLIMITED);
    put_unlimited(pickle, "max_cached_size", FRAG_UNLIMITED);
    frag_pickle_put_text(pickle, "roundup_power2_divisions");
    frag_pickle_dict_begin(pickle);
    for (unsigned i = 0; i < 16; i++) {
        char mib[8];
        snprintf(mib, sizeof mib, "%u", 1u << i);
        put_number(pickle, mib, about->divisions[i]);
    }
    frag_pickle_dict_end(pickle);
    frag_pickle_dict_end(pickle);
}

static void put_nothing(frag_pickle_writer *pickle, const char *key)
{
    frag_pickle_put_text(pickle, key);
    frag_pickle_list_begin(pickle);
    frag_pickle_list_end(pickle);
}

static void destroy(frag_snapshot_writer *writer)
{
    forget_run(writer);
    for (size_t i = 0; i < writer->run_count; i++) {
        frag_free(writer->runs[i].spans);
        frag_free(writer->runs[i].segments);
    }
    frag_free(writer->runs);
    frag_free(writer->frame_memo);
    frag_free(writer->site_memo);
    frag_free(writer);
}

void frag_snapshot_writer_finish(frag_snapshot_writer *writer, const frag_snapshot_about *about)
{
    frag_pickle_writer *pickle = &writer->pickle;
    FRAG_ASSERT(writer->trace == NULL);
    frag_pickle_list_end(pickle);
    put_segments(writer);
    put_settings(pickle, about);
    put_annotations(writer);
    put_nothing(pickle, "host_segments");
    put_nothing(pickle, "host_traces");
    frag_pickle_put_text(pickle, "fraglab");
    frag_pickle_dict_begin(pickle);
    put_words(pickle, "tool", about->tool);
    put_words(pickle, "policy", about->policy);
    put_words(pickle, "trace", about->trace);
    frag_pickle_dict_end(pickle);
    frag_pickle_dict_end(pickle);
    frag_pickle_writer_end(pickle);
    destroy(writer);
}

void frag_snapshot_writer_abandon(frag_snapshot_writer *writer)
{
    if (writer == NULL)
        return;
    writer->pickle.depth = 0;
    frag_pickle_writer_end(&writer->pickle);
    destroy(writer);
}
