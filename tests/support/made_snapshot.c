#include "tests/support/made_snapshot.h"

#include <inttypes.h>

#include "base/memory.h"

const char *const made_snapshot_actions[FRAG_NOTE_HELD_SEGMENT] = {
    [FRAG_NOTE_ALLOC] = "alloc",
    [FRAG_NOTE_FREE_REQUESTED] = "free_requested",
    [FRAG_NOTE_FREE_COMPLETED] = "free_completed",
    [FRAG_NOTE_SEGMENT_ALLOC] = "segment_alloc",
    [FRAG_NOTE_SEGMENT_FREE] = "segment_free",
    [FRAG_NOTE_SEGMENT_MAP] = "segment_map",
    [FRAG_NOTE_SEGMENT_UNMAP] = "segment_unmap",
    [FRAG_NOTE_OOM] = "oom",
};

static bool makes_segment(frag_note_kind kind)
{
    return kind == FRAG_NOTE_SEGMENT_ALLOC || kind == FRAG_NOTE_SEGMENT_MAP;
}

/* A segment goes with the stream and pool that it came with. */
static void take_note(void *context, const frag_note *note)
{
    made_snapshot *of = context;
    if (note->kind >= FRAG_NOTE_HELD_SEGMENT ||
        (of->trace->events[note->event].flags & FRAG_EVENT_INITIAL) != 0)
        return;
    frag_note *kept = FRAG_APPEND(of->notes, of->note_count, of->note_capacity);
    *kept = *note;
    of->is_expandable |= note->kind == FRAG_NOTE_SEGMENT_MAP;
    if (note->kind != FRAG_NOTE_SEGMENT_FREE && note->kind != FRAG_NOTE_SEGMENT_UNMAP)
        return;
    for (const frag_note *made = kept; made-- != of->notes;)
        if (makes_segment(made->kind) && made->address <= note->address &&
            note->address - made->address < made->bytes) {
            kept->stream = made->stream;
            kept->pool = made->pool;
            return;
        }
}

static void take_span(void *context, const frag_span *span, const frag_block_view *block)
{
    made_snapshot *of = context;
    *FRAG_APPEND(of->spans, of->span_count, of->span_capacity) = (made_span){
        *span, block != NULL ? block->requested_bytes : 0, block != NULL && block->is_waiting};
}

static void take_end(void *context, const frag_replay *replay, const frag_replay_result *result)
{
    (void)result;
    frag_replay_walk(replay, take_span, context);
}

bool made_snapshot_make(made_snapshot *of, const frag_run_setup *setup, frag_error *error)
{
    *of = (made_snapshot){.trace = setup->trace};
    frag_replay_options options = {.is_oom_skipped = true,
                                   .stop_after = FRAG_UNLIMITED,
                                   .on_note = take_note,
                                   .on_note_context = of};
    return frag_run_look(setup, &options, take_end, of, error);
}

void made_snapshot_destroy(made_snapshot *of)
{
    frag_free(of->notes);
    frag_free(of->spans);
}

static void add_pool(frag_text *text, const frag_trace *trace, const char *key, uint32_t pool)
{
    frag_text_add(text, ",\"%s\":[%" PRIu64 ",%" PRIu64 "]", key, trace->pool_ids[pool].high,
                  trace->pool_ids[pool].low);
}

static void add_entry(frag_text *text, const made_snapshot *of, const frag_note *note,
                      bool has_pool)
{
    frag_text_add(text,
                  "{\"action\":\"%s\",\"%s\":%" PRIu64 ",\"size\":%" PRIu64 ",\"stream\":%" PRIu64
                  ",\"time_us\":%" PRIu64,
                  made_snapshot_actions[note->kind],
                  note->kind == FRAG_NOTE_OOM ? "device_free" : "addr", note->address & INT64_MAX,
                  note->bytes, frag_trace_stream_handle(of->trace, note->stream),
                  5000000 + note->event);
    if (has_pool)
        add_pool(text, of->trace, "pool_id", note->pool);
    frag_text_add(text, "},\n");
}

static void add_segment(frag_text *text, const made_snapshot *of, const frag_span *at)
{
    frag_text_add(text,
                  "{\"device\":0,\"address\":%" PRIu64 ",\"total_size\":%" PRIu64
                  ",\"stream\":%" PRIu64 ",\"segment_type\":\"%s\",\"is_expandable\":%s",
                  at->address, at->bytes, frag_trace_stream_handle(of->trace, at->stream),
                  at->is_small_pool ? "small" : "large", at->is_growing ? "true" : "false");
    add_pool(text, of->trace, "segment_pool_id", at->pool);
    frag_text_add(text, ",\"blocks\":[\n");
}

static void add_block(frag_text *text, const made_span *at)
{
    const char *state = at->span.kind == FRAG_SPAN_HOLE ? "inactive"
                        : at->is_waiting                ? "active_pending_free"
                                                        : "active_allocated";
    frag_text_add(text,
                  "{\"address\":%" PRIu64 ",\"size\":%" PRIu64 ",\"requested_size\":%" PRIu64
                  ",\"state\":\"%s\"},\n",
                  at->span.address, at->span.bytes, at->requested_bytes, state);
}

/* A list ends without a comma. */
static void end_list(frag_text *text, const char *end)
{
    if (text->bytes[text->length - 2] == ',')
        text->length -= 2;
    frag_text_add(text, "%s", end);
}

void made_snapshot_write(frag_text *text, const made_snapshot *of, const made_snapshot_loss *lost)
{
    frag_text_add(text, "{\"segments\":[\n");
    for (size_t i = 0; i < of->span_count; i++) {
        if (of->spans[i].span.kind == FRAG_SPAN_SEGMENT)
            add_segment(text, of, &of->spans[i].span);
        else
            add_block(text, &of->spans[i]);
        if (i + 1 == of->span_count || of->spans[i + 1].span.kind == FRAG_SPAN_SEGMENT)
            end_list(text, "]},\n");
    }
    end_list(text, "],\"device_traces\":[[\n");
    for (size_t i = lost->first; i < of->note_count; i++)
        if ((lost->kinds >> of->notes[i].kind & 1) == 0)
            add_entry(text, of, &of->notes[i], lost->has_pools);
    end_list(text, "]]");
    if (!lost->is_old) {
        frag_text_add(text,
                      ",\"allocator_settings\":{\"PYTORCH_CUDA_ALLOC_CONF\":\"\","
                      "\"expandable_segments\":%s",
                      of->is_expandable ? "true" : "false");
        if (lost->max_split_bytes != 0)
            frag_text_add(text, ",\"max_split_size\":%" PRIu64, lost->max_split_bytes);
        if (lost->gc_threshold > 0)
            frag_text_add(text, ",\"garbage_collection_threshold\":%.2f", lost->gc_threshold);
        frag_text_add(text, "}");
    }
    frag_text_add(text, "}");
}
