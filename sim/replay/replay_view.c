/* The current state of a run: the policy's layout, with what the program knows of each block. */
#include <string.h>

#include "base/memory.h"
#include "sim/policy_engine.h"
#include "sim/replay/replay.h"
#include "sim/replay/replay_state.h"

typedef struct walk_state {
    const frag_replay *replay;
    frag_layout_visitor *visit;
    void *context;
    uint32_t *slot_of; /* by handle */
    uint32_t handle_count;
} walk_state;

static void visit_span(void *context, const frag_span *span)
{
    walk_state *state = context;
    if (span->kind != FRAG_SPAN_BLOCK) {
        state->visit(state->context, span, NULL);
        return;
    }
    FRAG_ASSERT(span->handle < state->handle_count);
    const frag_held *held = frag_use_held(state->replay, span->handle);
    if (held != NULL) {
        frag_block_view block = {FRAG_SLOT_NONE, held->requested_bytes, true};
        state->visit(state->context, span, &block);
        return;
    }
    FRAG_ASSERT(state->slot_of[span->handle] != FRAG_SLOT_NONE);
    uint32_t number = state->slot_of[span->handle];
    const frag_slot *at = &state->replay->slots[number];
    frag_block_view block = {number, at->requested_bytes & ~FRAG_SLOT_WAITING,
                             (at->requested_bytes & FRAG_SLOT_WAITING) != 0};
    state->visit(state->context, span, &block);
}

void frag_replay_walk(const frag_replay *replay, frag_layout_visitor *visit, void *context)
{
    walk_state state = {.replay = replay, .visit = visit, .context = context};
    state.handle_count = frag_use_handle_max(replay);
    /* One more than the trace's: the slot of a request that failed when recorded. */
    uint32_t slot_count = replay->trace->slot_count + 1;
    for (uint32_t i = 0; i < slot_count; i++)
        if (frag_slot_is_held(replay, i) && replay->slots[i].handle >= state.handle_count)
            state.handle_count = replay->slots[i].handle + 1;
    FRAG_ASSERT(state.handle_count <= FRAG_HANDLE_LIMIT);
    state.slot_of = frag_alloc(state.handle_count, sizeof *state.slot_of);
    memset(state.slot_of, 0xff, (size_t)state.handle_count * sizeof *state.slot_of);
    for (uint32_t i = 0; i < slot_count; i++)
        if (frag_slot_is_held(replay, i))
            state.slot_of[replay->slots[i].handle] = i;
    frag_replay_walk_spans(replay, visit_span, &state);
    frag_free(state.slot_of);
}

void frag_replay_walk_spans(const frag_replay *replay, frag_span_visitor *visit, void *context)
{
    const char *before = frag_replay_blame(replay);
    replay->ops->walk(replay->policy, visit, context);
    frag_assert_blame(before);
}

typedef struct decomposition_walk {
    const frag_replay *replay;
    frag_decomposition *parts;
    uint64_t segment_holes_bytes; /* of the segment being visited */
    bool has_block;
} decomposition_walk;

static void end_segment(decomposition_walk *state)
{
    if (state->has_block)
        state->parts->holes_bytes += state->segment_holes_bytes;
    else
        state->parts->cached_bytes += state->segment_holes_bytes;
    state->segment_holes_bytes = 0;
    state->has_block = false;
}

static void decompose_span(void *context, const frag_span *span, const frag_block_view *block)
{
    decomposition_walk *state = context;
    frag_decomposition *parts = state->parts;
    if (span->kind == FRAG_SPAN_SEGMENT) {
        end_segment(state);
        parts->segment_count++;
        parts->reserved_bytes += span->bytes;
    } else if (span->kind == FRAG_SPAN_HOLE) {
        state->segment_holes_bytes += span->bytes;
        parts->hole_count++;
        if (span->bytes > parts->largest_hole_bytes)
            parts->largest_hole_bytes = span->bytes;
    } else if (block->is_waiting) {
        state->has_block = true;
        parts->waiting_bytes += span->bytes;
    } else {
        state->has_block = true;
        const frag_policy_ops *ops = state->replay->ops;
        uint64_t whole = span->bytes - span->page_slack_bytes;
        uint64_t rounded = ops->rounded != NULL
                               ? ops->rounded(state->replay->policy, block->requested_bytes)
                               : whole;
        /* A block taken over from before the trace may have been rounded by other settings. */
        rounded = rounded > whole ? whole : rounded;
        parts->requested_bytes += block->requested_bytes;
        parts->rounding_bytes += rounded - block->requested_bytes;
        parts->unsplit_bytes += whole - rounded;
        parts->page_slack_bytes += span->page_slack_bytes;
    }
}

void frag_replay_decompose(const frag_replay *replay, frag_decomposition *decomposition)
{
    *decomposition = (frag_decomposition){0};
    decomposition_walk state = {.replay = replay, .parts = decomposition};
    frag_replay_walk(replay, decompose_span, &state);
    end_segment(&state);
}

void frag_replay_stats(const frag_replay *replay, frag_stat_visitor *visit, void *context)
{
    const frag_policy_statistics *statistics = frag_policy_engine_of(replay->ops)->statistics;
    if (statistics != NULL)
        statistics->visit(replay->policy, visit, context);
}

void frag_replay_met(const frag_replay *replay, frag_policy_met *met)
{
    *met = (frag_policy_met){{0}};
    if (frag_policy_engine_of(replay->ops)->repeats != NULL)
        frag_policy_engine_of(replay->ops)->repeats->met(replay->policy, met);
}

const char *frag_replay_oom_message(const frag_replay *replay)
{
    return replay->oom_message;
}
