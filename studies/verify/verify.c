#include "studies/verify/verify.h"

#include "base/bytes.h"
#include "base/memory.h"

typedef struct verification {
    const frag_trace *trace;
    frag_device *device;
    frag_verify_result *result;
    bool goes_on;
    bool has_answer; /* the event being replayed was a request */
    bool is_served;
    uint64_t address;
} verification;

static const char *const difference_names[] = {
    [FRAG_DIFFERENCE_NONE] = "none",     [FRAG_DIFFERENCE_ADDRESS] = "address",
    [FRAG_DIFFERENCE_CALL] = "call",     [FRAG_DIFFERENCE_MISSING] = "missing",
    [FRAG_DIFFERENCE_EARLY] = "early",   [FRAG_DIFFERENCE_FAILED] = "failed",
    [FRAG_DIFFERENCE_SERVED] = "served",
};

const char *frag_difference_name(frag_difference_kind kind)
{
    return difference_names[kind];
}

/* Events. */
#define ASKED_EVERY 4096u

static void note_grant(void *context, const frag_request *request, const frag_grant *grant)
{
    (void)request;
    verification *state = context;
    state->has_answer = true;
    state->is_served = grant != NULL;
    state->address = grant != NULL ? grant->address : 0;
}

/* The recorded device event at an index, or none. */
static bool recorded_at(const frag_trace *trace, uint64_t index, frag_oracle_call *call)
{
    if (index >= trace->event_count)
        return false;
    const frag_event *event = &trace->events[index];
    *call = (frag_oracle_call){
        (frag_op)event->op, trace->addresses != NULL ? trace->addresses[index] : 0, event->bytes};
    return true;
}

static bool is_failed_request(const frag_event *event)
{
    return event->op == FRAG_OP_ALLOC && (event->flags & FRAG_EVENT_FAILED) != 0;
}

/* What, if anything, is different after this event? */
static frag_difference compare(verification *state, uint64_t index)
{
    const frag_event *event = &state->trace->events[index];
    frag_difference found = {.kind = FRAG_DIFFERENCE_NONE, .event = index};
    bool was_asked = event->op == FRAG_OP_ALLOC && state->has_answer;
    uint64_t recorded_address =
        state->trace->addresses != NULL ? state->trace->addresses[index] : 0;
    if (is_failed_request(event) && was_asked && !state->is_served)
        /* The requests of a recording that failed carry the size the oom event has. */
        state->result->ooms += frag_oracle_meet_oom(state->device, event->bytes) ? 1 : 0;
    uint64_t position = frag_oracle_position(state->device);
    found.has_recorded = recorded_at(state->trace, position, &found.recorded);
    /* What a request made the allocator do is recorded before it, if it was served. So by then all
     * device events up to it must have been met, and none beyond. */
    bool is_served = was_asked && state->is_served && !is_failed_request(event);
    bool is_behind = is_served && position <= index;
    bool is_ahead = is_served && frag_oracle_last(state->device) > index;
    if (frag_oracle_difference(state->device, &found.simulated)) {
        found.kind = FRAG_DIFFERENCE_CALL;
        found.has_simulated = true;
    } else if (was_asked && !state->is_served && !is_failed_request(event)) {
        found.kind = FRAG_DIFFERENCE_FAILED;
        found.has_simulated = frag_oracle_refused(state->device, &found.simulated);
    } else if (was_asked && state->is_served && is_failed_request(event)) {
        found.kind = FRAG_DIFFERENCE_SERVED;
    } else if (was_asked && state->is_served && recorded_address != 0 &&
               recorded_address != state->address) {
        found.kind = FRAG_DIFFERENCE_ADDRESS;
        found.address_recorded = recorded_address;
        found.address_simulated = state->address;
    } else if (is_behind) {
        found.kind = FRAG_DIFFERENCE_MISSING;
    } else if (is_ahead) {
        found.kind = FRAG_DIFFERENCE_EARLY;
    }
    return found;
}

/* ---- the state of both sides */

/* What the recording says is held after an event. */
static frag_side recorded_side(const frag_trace *trace, uint64_t event)
{
    frag_side side = {0};
    uint64_t *live_bytes = frag_alloc(trace->slot_count, sizeof *live_bytes);
    for (uint64_t i = 0; i <= event && i < trace->event_count; i++) {
        const frag_event *now = &trace->events[i];
        uint64_t given = now->bytes < side.reserved_bytes ? now->bytes : side.reserved_bytes;
        if (now->op == FRAG_OP_SEGMENT_ALLOC || now->op == FRAG_OP_SEGMENT_MAP) {
            side.reserved_bytes += now->bytes;
        } else if (now->op == FRAG_OP_SEGMENT_FREE || now->op == FRAG_OP_SEGMENT_UNMAP) {
            side.reserved_bytes -= given;
        } else if (now->op == FRAG_OP_ALLOC && now->slot != FRAG_SLOT_NONE) {
            live_bytes[now->slot] = now->bytes;
            side.requested_bytes += now->bytes;
            side.live_count++;
        } else if (now->op == FRAG_OP_FREE) {
            side.requested_bytes -= live_bytes[now->slot];
            side.live_count--;
        }
    }
    frag_free(live_bytes);
    return side;
}

static void look_at_block(void *context, const frag_span *span, const frag_block_view *block)
{
    frag_difference *found = context;
    if (span->kind == FRAG_SPAN_SEGMENT)
        found->side_simulated.reserved_bytes += span->bytes;
    if (block != NULL && block->slot != FRAG_SLOT_NONE && !block->is_waiting) {
        found->side_simulated.requested_bytes += block->requested_bytes;
        found->side_simulated.live_count++;
    }
    if (span->kind == FRAG_SPAN_HOLE && span->bytes > found->hole_bytes) {
        found->hole_bytes = span->bytes;
        found->hole_address = span->address;
    }
    if (found->kind != FRAG_DIFFERENCE_ADDRESS)
        return;
    uint64_t end = span->address + span->bytes;
    if (span->kind == FRAG_SPAN_HOLE && found->address_recorded >= span->address &&
        found->address_recorded < end)
        found->room_recorded_bytes = end - found->address_recorded;
    /* A block is split at its low end, so the remainder lies behind it. */
    if (span->kind == FRAG_SPAN_BLOCK && found->address_simulated == span->address)
        found->room_simulated_bytes = span->bytes;
    else if (span->kind == FRAG_SPAN_HOLE && found->room_simulated_bytes > 0 &&
             span->address == found->address_simulated + found->room_simulated_bytes)
        found->room_simulated_bytes += span->bytes;
}

static void look_at_sides(const verification *state, const frag_replay *replay,
                          frag_difference *found)
{
    found->side_recorded = recorded_side(state->trace, found->event);
    frag_replay_walk(replay, look_at_block, found);
}

static void check_event(void *context, const frag_replay *replay, uint64_t index,
                        const frag_level *level)
{
    (void)level;
    verification *state = context;
    frag_verify_result *result = state->result;
    frag_oracle_serve(state->device, index + 1);
    if (frag_op_is_observed(state->trace->events[index].op)) {
        state->has_answer = false;
        return;
    }
    frag_difference found = compare(state, index);
    if (state->trace->events[index].op == FRAG_OP_ALLOC && result->difference_count == 0)
        result->requests++;
    state->has_answer = false;
    if (found.kind == FRAG_DIFFERENCE_NONE)
        return;
    if (result->difference_count == 0) {
        look_at_sides(state, replay, &found);
        result->first = found;
    }
    result->difference_count++;
    frag_oracle_resume(state->device, index + 1);
}

/* The next device event that was not met. Memory taken behind the last request was for one that the
 * trace, cut off there, does not hold. */
static bool find_unmet(const verification *state, frag_oracle_call *call)
{
    const frag_trace *trace = state->trace;
    uint64_t position = frag_oracle_position(state->device);
    uint64_t end = trace->event_count;
    while (end > position && (trace->events[end - 1].op == FRAG_OP_SEGMENT_ALLOC ||
                              trace->events[end - 1].op == FRAG_OP_SEGMENT_MAP))
        end--;
    return position < end && recorded_at(trace, position, call);
}

/* Device events that were never met; called once the replay is over. */
static void check_end(verification *state, const frag_replay *replay)
{
    frag_verify_result *result = state->result;
    frag_difference found = {.kind = FRAG_DIFFERENCE_MISSING, .event = state->trace->event_count};
    found.has_recorded = find_unmet(state, &found.recorded);
    if (!found.has_recorded || (result->difference_count > 0 && !state->goes_on))
        return;
    if (result->difference_count == 0) {
        look_at_sides(state, replay, &found);
        result->first = found;
    }
    result->difference_count++;
}

/* To the end, or to the first difference where that is all that is wanted. */
static bool follow(const frag_context *context, const verification *state, frag_replay *replay,
                   const frag_replay_options *options, frag_replay_result *result,
                   frag_error *error)
{
    uint64_t count = state->trace->event_count;
    if (!frag_replay_start(replay, options, error))
        return false;
    bool ok = true;
    for (uint64_t i = 0; ok && i < count; i++) {
        ok = (i % ASKED_EVERY != 0 || !frag_is_cancelled(context)) &&
             frag_replay_advance(replay, i + 1, error);
        if (state->result->difference_count > 0 && !state->goes_on)
            break;
    }
    frag_replay_finish(replay, result);
    return ok;
}

bool frag_verify(const frag_context *context, const frag_recording *recording,
                 const frag_trace *trace, const frag_policy_ops *ops,
                 const frag_option_value *values, uint64_t capacity_bytes, bool goes_on,
                 frag_verify_result *result, frag_error *error)
{
    *result = (frag_verify_result){0};
    frag_device *device = frag_oracle_device_create(trace, capacity_bytes);
    frag_replay *replay =
        frag_replay_create(&(frag_run_setup){recording, trace, ops, values, NULL}, device, error);
    bool ok = replay != NULL;
    if (ok) {
        verification state = {
            .trace = trace, .device = device, .result = result, .goes_on = goes_on};
        frag_replay_options options = {
            .is_oom_skipped = true,
            .stop_after = FRAG_UNLIMITED,
            .observer = check_event,
            .observer_context = &state,
            .on_grant = note_grant,
            .on_grant_context = &state,
        };
        frag_replay_result replay_result;
        ok = follow(context, &state, replay, &options, &replay_result, error);
        if (ok) {
            check_end(&state, replay);
            frag_replay_met(replay, &result->met);
            result->initial = replay_result.initial;
            result->device_events = frag_oracle_met(device);
            result->is_identical = result->difference_count == 0;
        }
    }
    frag_replay_destroy(replay);
    frag_device_destroy(device);
    return ok;
}
