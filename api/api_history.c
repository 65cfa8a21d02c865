/* Histories and layouts: the arrays that figures are drawn from. */
#include <string.h>

#include "api/api_run.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "sim/replay/history.h"
#include "sim/replay/timeline.h"

struct fraglab_history {
    frag_scope *scope;
    fraglab_sample *samples;
    size_t sample_count;
    fraglab_placement *placements;
    size_t placement_count;
    fraglab_segment *segments;
    size_t segment_count;
};

typedef struct history_call {
    frag_replay_call replay;
    size_t samples;
    fraglab_history *made;
    fraglab_history **history; /* the caller's */
} history_call;

static void keep_samples(fraglab_history *made, frag_timeline *timeline)
{
    const frag_sample *samples = frag_timeline_finish(timeline, &made->sample_count);
    made->samples = frag_alloc(made->sample_count, sizeof *made->samples);
    for (size_t i = 0; i < made->sample_count; i++)
        made->samples[i] = (fraglab_sample){
            samples[i].event, samples[i].level.requested_bytes, samples[i].level.allocated_bytes,
            samples[i].level.active_bytes, samples[i].level.reserved_bytes};
}

static bool record_levels(history_call *call, frag_error *error)
{
    frag_replay_call *replay = &call->replay;
    size_t wanted = call->samples == 0 ? FRAG_TIMELINE_SAMPLES_DEFAULT : call->samples;
    frag_run_options run = replay->run;
    frag_run_result result;
    if (wanted < FRAG_TIMELINE_SAMPLES_MIN)
        return frag_fail_in(error, FRAG_E_USAGE, "samples",
                            "%zu samples lose the peaks; ask for %u or more", wanted,
                            FRAG_TIMELINE_SAMPLES_MIN);
    frag_timeline *timeline = frag_timeline_create(replay->trace->event_count, wanted);
    run.observer = frag_timeline_observe;
    run.observer_context = timeline;
    if (!frag_run_count(&replay->setup, &run, &result, error))
        return false;
    keep_samples(call->made, timeline);
    frag_timeline_destroy(timeline);
    return frag_replay_call_goes_on(replay, error);
}

static void keep_history(fraglab_history *made, const frag_request_list *requests,
                         const frag_history *history)
{
    made->placement_count = requests->count;
    made->placements = frag_alloc(requests->count, sizeof *made->placements);
    for (uint32_t i = 0; i < requests->count; i++) {
        const frag_placement *placement = &history->placements[i];
        made->placements[i] = (fraglab_placement){
            .event = requests->events[i],
            .free_event = requests->free_events[i],
            .end_event = placement->end,
            .address = placement->address,
            .block_bytes = placement->block_bytes,
            .rounded_bytes = placement->rounded_bytes,
        };
    }
    made->segment_count = history->segment_count;
    made->segments = frag_alloc(history->segment_count, sizeof *made->segments);
    for (size_t i = 0; i < history->segment_count; i++) {
        const frag_held_segment *segment = &history->segments[i];
        made->segments[i] = (fraglab_segment){segment->begin, segment->end,    segment->address,
                                              segment->bytes, segment->stream, segment->pool};
    }
}

static bool record_places(history_call *call, frag_error *error)
{
    frag_replay_call *replay = &call->replay;
    frag_request_list requests = {0};
    frag_history history = {0};
    if (!frag_request_list_create(&requests, replay->trace, error) ||
        !frag_history_record(&replay->setup, &requests, &replay->run, &history, error))
        return false;
    keep_history(call->made, &requests, &history);
    frag_history_destroy(&history);
    frag_request_list_destroy(&requests);
    return frag_replay_call_goes_on(replay, error);
}

static bool history_work(void *arguments, frag_error *error)
{
    history_call *call = arguments;
    if (!frag_replay_call_begin(&call->replay, error))
        return false;
    call->made = frag_alloc(1, sizeof *call->made);
    call->made->scope = frag_scope_active();
    if (!record_levels(call, error) || !record_places(call, error))
        return false;
    *call->history = call->made;
    return true;
}

int fraglab_history_record(const fraglab_context *context, const fraglab_recording *recording,
                           size_t trace, const fraglab_policy *policy,
                           const fraglab_run_options *options, size_t samples,
                           fraglab_history **history, fraglab_error *error)
{
    history_call call = {.replay = frag_replay_call_of(context, recording, trace, policy, options),
                         .samples = samples,
                         .history = history};
    *history = NULL;
    return frag_call_new(history_work, &call, error);
}

void fraglab_history_destroy(fraglab_history *history)
{
    if (history != NULL)
        frag_scope_destroy(history->scope);
}

static size_t copy_out(const void *items, size_t count, size_t item_bytes, void *out,
                       size_t capacity)
{
    size_t copied = count < capacity ? count : capacity;
    if (copied > 0 && out != NULL)
        memcpy(out, items, copied * item_bytes);
    return count;
}

size_t fraglab_history_samples(const fraglab_history *history, fraglab_sample *out, size_t capacity)
{
    return copy_out(history->samples, history->sample_count, sizeof *out, out, capacity);
}

size_t fraglab_history_placements(const fraglab_history *history, fraglab_placement *out,
                                  size_t capacity)
{
    return copy_out(history->placements, history->placement_count, sizeof *out, out, capacity);
}

size_t fraglab_history_segments(const fraglab_history *history, fraglab_segment *out,
                                size_t capacity)
{
    return copy_out(history->segments, history->segment_count, sizeof *out, out, capacity);
}

/* ---- the layout after one event */

struct fraglab_layout {
    frag_scope *scope;
    fraglab_span *spans;
    size_t count;
    size_t capacity;
};

typedef struct layout_call {
    frag_replay_call replay;
    uint64_t event;
    fraglab_layout **made;
} layout_call;

static void add_span(void *context, const frag_span *span, const frag_block_view *block)
{
    fraglab_layout *made = context;
    static const uint32_t kinds[] = {[FRAG_SPAN_SEGMENT] = FRAGLAB_SPAN_SEGMENT,
                                     [FRAG_SPAN_BLOCK] = FRAGLAB_SPAN_BLOCK,
                                     [FRAG_SPAN_HOLE] = FRAGLAB_SPAN_HOLE};
    *FRAG_APPEND(made->spans, made->count, made->capacity) = (fraglab_span){
        .kind = kinds[span->kind],
        .stream = span->stream,
        .pool = span->pool,
        .is_waiting = block != NULL && block->is_waiting,
        .address = span->address,
        .bytes = span->bytes,
        .requested_bytes = block != NULL ? block->requested_bytes : 0,
    };
}

static void look_at_layout(void *context, const frag_replay *replay,
                           const frag_replay_result *result)
{
    (void)result;
    frag_replay_walk(replay, add_span, context);
}

static bool layout_work(void *arguments, frag_error *error)
{
    layout_call *call = arguments;
    frag_replay_call *replay = &call->replay;
    if (!frag_replay_call_begin(replay, error))
        return false;
    if (call->event != FRAGLAB_UNLIMITED && call->event >= replay->trace->event_count)
        return frag_fail_in(
            error, FRAG_E_USAGE, "event", "there is no event %llu; the trace has %llu",
            (unsigned long long)call->event, (unsigned long long)replay->trace->event_count);
    frag_replay_options options = {
        .is_oom_skipped = replay->run.is_oom_skipped,
        .stop_after = call->event == FRAGLAB_UNLIMITED ? FRAG_UNLIMITED : call->event + 1,
        .check_every = replay->run.check_every,
        .context = replay->below,
    };
    fraglab_layout *made = frag_alloc(1, sizeof *made);
    made->scope = frag_scope_active();
    if (!frag_run_look(&replay->setup, &options, look_at_layout, made, error) ||
        !frag_replay_call_goes_on(replay, error))
        return false;
    *call->made = made;
    return true;
}

int fraglab_layout_at(const fraglab_context *context, const fraglab_recording *recording,
                      size_t trace, const fraglab_policy *policy,
                      const fraglab_run_options *options, uint64_t event, fraglab_layout **layout,
                      fraglab_error *error)
{
    layout_call call = {.replay = frag_replay_call_of(context, recording, trace, policy, options),
                        .event = event,
                        .made = layout};
    *layout = NULL;
    return frag_call_new(layout_work, &call, error);
}

void fraglab_layout_destroy(fraglab_layout *layout)
{
    if (layout != NULL)
        frag_scope_destroy(layout->scope);
}

size_t fraglab_layout_spans(const fraglab_layout *layout, fraglab_span *out, size_t capacity)
{
    return copy_out(layout->spans, layout->count, sizeof *out, out, capacity);
}
