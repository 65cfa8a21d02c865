/* Telling everything that happens in a run, in order: blocks granted and freed, segments got and
 * given back, requests that failed.
 *
 * Stands between the engine and its policy and device only when someone takes notes, so that other
 * runs pay nothing. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sim/device/latency.h"
#include "sim/replay/replay_state.h"

/* What the note of a free says about its block. */
typedef struct noted_block {
    uint64_t address;
    uint64_t bytes;
    uint64_t block_bytes;
    uint64_t event;
    uint32_t stream;
    uint32_t pool;
    bool is_requested; /* the free was noted; its completion is still to come */
} noted_block;

struct frag_note_keeper {
    frag_note_taker *take;
    frag_call_taker *take_call; /* NULL: nobody */
    void *context;
    bool is_start_noted;
    noted_block *blocks; /* by handle */
    size_t block_count;
    /* Who watched the device before. */
    void (*on_call)(void *context, const frag_device_report *report);
    void *on_call_context;
};

/* A block taken over from before the trace may have been rounded by other settings. */
static uint64_t rounded_bytes(const frag_replay *replay, const noted_block *block)
{
    if (replay->ops->rounded == NULL)
        return block->block_bytes;
    uint64_t rounded = replay->ops->rounded(replay->policy, block->bytes);
    return rounded > block->block_bytes ? block->block_bytes : rounded;
}

static void tell_block(frag_replay *replay, frag_note_kind kind, uint32_t handle)
{
    const noted_block *block = &replay->notes->blocks[handle];
    bool begins = kind == FRAG_NOTE_ALLOC || kind == FRAG_NOTE_HELD_BLOCK;
    frag_note note = {.kind = kind,
                      .event = frag_replay_event(replay),
                      .alloc_event = block->event,
                      .address = block->address,
                      .bytes = block->bytes,
                      .block_bytes = block->block_bytes,
                      .rounded_bytes = begins ? rounded_bytes(replay, block) : 0,
                      .stream = block->stream,
                      .pool = block->pool,
                      .handle = handle};
    replay->notes->take(replay->notes->context, &note);
}

static void keep_block(frag_note_keeper *notes, uint32_t handle, noted_block block)
{
    FRAG_ASSERT(handle < FRAG_HANDLE_LIMIT);
    if (handle >= notes->block_count)
        notes->blocks = frag_grow(notes->blocks, &notes->block_count, (size_t)handle + 1,
                                  sizeof *notes->blocks);
    notes->blocks[handle] = block;
}

void frag_note_requested(frag_replay *replay, uint32_t handle)
{
    if (replay->notes->blocks[handle].is_requested)
        return;
    tell_block(replay, FRAG_NOTE_FREE_REQUESTED, handle);
    replay->notes->blocks[handle].is_requested = true;
}

void frag_note_completed(frag_replay *replay, uint32_t handle)
{
    tell_block(replay, FRAG_NOTE_FREE_COMPLETED, handle);
    replay->notes->blocks[handle].is_requested = false;
}

void frag_note_adopted(frag_replay *replay, uint32_t handle, uint64_t address, uint64_t block_bytes,
                       uint64_t event)
{
    const frag_event *alloc = &replay->trace->events[event];
    keep_block(replay->notes, handle,
               (noted_block){.address = address,
                             .bytes = alloc->bytes,
                             .block_bytes = block_bytes,
                             .event = event,
                             .stream = alloc->stream,
                             .pool = frag_trace_pool(replay->trace, event)});
    if (replay->notes->is_start_noted)
        tell_block(replay, FRAG_NOTE_HELD_BLOCK, handle);
}

void frag_note_adopted_segment(frag_replay *replay, const frag_span *segment, uint64_t event)
{
    if (!replay->notes->is_start_noted)
        return;
    frag_note note = {.kind = segment->is_growing ? FRAG_NOTE_HELD_RANGE : FRAG_NOTE_HELD_SEGMENT,
                      .event = event,
                      .alloc_event = event,
                      .address = segment->address,
                      .bytes = segment->bytes,
                      .stream = segment->stream,
                      .pool = segment->pool};
    replay->notes->take(replay->notes->context, &note);
}

void frag_note_oom(frag_replay *replay, const frag_request *request)
{
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;
    /* The engine's own look is not a call of the policy. */
    frag_device_look_at_memory(replay->device, &free_bytes, &total_bytes);
    uint64_t rounded = replay->ops->rounded != NULL
                           ? replay->ops->rounded(replay->policy, request->bytes)
                           : request->bytes;
    frag_note note = {.kind = FRAG_NOTE_OOM,
                      .event = frag_replay_event(replay),
                      .alloc_event = frag_replay_event(replay),
                      .address = free_bytes,
                      .bytes = rounded,
                      .stream = request->stream,
                      .pool = request->pool};
    replay->notes->take(replay->notes->context, &note);
}

static void take_call(frag_replay *replay, const frag_device_report *report)
{
    const frag_latency_table *latency = replay->device->times.latency;
    frag_call_note made = {.event = frag_replay_event(replay),
                           .call = report->call,
                           .result = report->result,
                           .address = report->address,
                           .bytes = report->bytes};
    if (latency != NULL)
        made.modelled_ns = frag_latency_ns(&latency->calls[report->call], report->bytes);
    replay->notes->take_call(replay->notes->context, &made);
}

static void tell_segment(const frag_replay *replay, frag_note_kind kind, uint64_t address,
                         uint64_t bytes)
{
    frag_note note = {.kind = kind,
                      .event = frag_replay_event(replay),
                      .alloc_event = frag_replay_event(replay),
                      .address = address,
                      .bytes = bytes,
                      .stream = replay->device->for_stream,
                      .pool = replay->device->for_pool};
    replay->notes->take(replay->notes->context, &note);
}

static void tell_call(void *context, const frag_device_report *report)
{
    static const struct {
        frag_device_call call;
        frag_note_kind kind;
    } kinds[] = {
        {FRAG_DEVICE_MALLOC, FRAG_NOTE_SEGMENT_ALLOC},
        {FRAG_DEVICE_FREE, FRAG_NOTE_SEGMENT_FREE},
        {FRAG_DEVICE_MAP, FRAG_NOTE_SEGMENT_MAP},
        {FRAG_DEVICE_UNMAP, FRAG_NOTE_SEGMENT_UNMAP},
    };
    frag_replay *replay = context;
    if (replay->notes->on_call != NULL)
        replay->notes->on_call(replay->notes->on_call_context, report);
    if (replay->notes->take_call != NULL)
        take_call(replay, report);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].call == report->call && report->result == FRAG_DEVICE_OK &&
            !report->is_second_map)
            tell_segment(replay, kinds[i].kind, report->address, report->bytes);
}

/* What is seen of memory that is mapped twice: it goes from one place to the other. */
static void tell_use(void *context, uint64_t from, uint64_t to, uint64_t bytes)
{
    tell_segment(context, FRAG_NOTE_SEGMENT_UNMAP, from, bytes);
    tell_segment(context, FRAG_NOTE_SEGMENT_MAP, to, bytes);
}

bool frag_notes_alloc(frag_replay *replay, const frag_request *request, frag_grant *grant)
{
    frag_device_for(replay->device, request->stream, request->pool);
    bool is_served = replay->ops->alloc(replay->policy, request, grant);
    if (replay->on_grant != NULL)
        replay->on_grant(replay->on_grant_context, request, is_served ? grant : NULL);
    if (is_served && replay->audit != NULL)
        frag_audit_note(replay, request->bytes, grant);
    if (is_served && replay->places != NULL)
        frag_places_note(replay, grant->address);
    if (is_served && replay->notes != NULL) {
        keep_block(replay->notes, grant->handle,
                   (noted_block){.address = grant->address,
                                 .bytes = request->bytes,
                                 .block_bytes = grant->block_bytes,
                                 .event = frag_replay_event(replay),
                                 .stream = request->stream,
                                 .pool = request->pool});
        tell_block(replay, FRAG_NOTE_ALLOC, grant->handle);
    }
    return is_served;
}

void frag_notes_free(frag_replay *replay, frag_handle handle, uint32_t stream)
{
    if (replay->notes != NULL) {
        frag_note_requested(replay, handle);
        frag_note_completed(replay, handle);
    }
    replay->ops->free(replay->policy, handle, stream);
}

static void tell_held_segment(void *context, const frag_span *span)
{
    frag_replay *replay = context;
    if (span->kind == FRAG_SPAN_SEGMENT)
        frag_note_adopted_segment(replay, span, frag_replay_event(replay));
}

void frag_notes_begin(frag_replay *replay, const frag_replay_options *options)
{
    replay->on_grant = options->on_grant;
    replay->on_grant_context = options->on_grant_context;
    replay->is_watched = options->on_grant != NULL || options->on_note != NULL ||
                         replay->places != NULL || replay->audit != NULL;
    if (options->on_note == NULL)
        return;
    replay->notes = frag_alloc(1, sizeof *replay->notes);
    replay->notes->take = options->on_note;
    replay->notes->take_call = options->on_call;
    replay->notes->context = options->on_note_context;
    replay->notes->on_call = replay->device->watch.on_call;
    replay->notes->on_call_context = replay->device->watch.on_call_context;
    replay->notes->is_start_noted = options->is_start_noted;
    replay->device->watch.on_call = tell_call;
    replay->device->watch.on_use = tell_use;
    replay->device->watch.on_call_context = replay;
    /* What a policy got for itself when it was made. */
    replay->ops->walk(replay->policy, tell_held_segment, replay);
}

void frag_notes_end(frag_replay *replay)
{
    if (replay->notes == NULL)
        return;
    replay->device->watch.on_call = replay->notes->on_call;
    replay->device->watch.on_use = NULL;
    replay->device->watch.on_call_context = replay->notes->on_call_context;
    frag_free(replay->notes->blocks);
    frag_free(replay->notes);
    replay->notes = NULL;
}
