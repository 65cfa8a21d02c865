/* Stretches of a shortened trace that are done again (sim/trace/trace.h).
 *
 * Where a policy keeps small requests apart (frag_policy_small), most of a stretch need not be
 * replayed. One that leaves at most one small block, in the place of another, changes nothing else
 * of small memory. So if such a block lies where it lay when the stretch was done right before, and
 * no device call has moved small memory since, its small requests do the same again, and end where
 * they began. Then only the others are replayed, and the levels of the small ones are added to the
 * peaks. As soon as one of the others needs a call of the device, which might be refused and give
 * back what is cached, the small ones before it are made up for, and the rest of the stretch is
 * replayed as it stands. */
#include "sim/policy_engine.h"
#include "sim/replay/replay_loop.h"
#include "sim/replay/replay_state.h"

enum { NO_TENSOR = FRAG_STRETCH_TENSORS_MAX };

static void move_slot(frag_replay *replay, uint32_t from, uint32_t to)
{
    frag_slot *at = &replay->slots[from];
    uint64_t block = at->requested_bytes + frag_slot_surplus(replay, from);
    uint32_t handle = at->handle;
    frag_slot_clear(replay, from);
    frag_slot_fill(replay, to, at->requested_bytes, block, handle);
}

static void replay_part(frag_replay *replay, uint64_t first, uint64_t end)
{
    if (replay->has_stopped)
        return;
    frag_replay_go_to(replay, first);
    frag_replay_run_batch(replay, end);
}

/* ---- what of a stretch is not small */

/* Adds a part at that event; false: there are too many. */
static bool add_part(frag_again_run *run, frag_stretch_part *now, uint64_t event)
{
    if (run->part_count == FRAG_STRETCH_PARTS_MAX)
        return false;
    now->event = event;
    run->parts[run->part_count++] = *now;
    now->requested_max = now->requested_bytes;
    now->allocated_max = now->allocated_bytes;
    return true;
}

/* false: it has more than allocs and frees, or too many that are not small. */
static bool find_parts(frag_replay *replay, const frag_stretch *stretch, frag_again_run *run)
{
    const frag_policy_small *small = frag_policy_engine_of(replay->ops)->small;
    const frag_event *events = replay->trace->events;
    frag_slot *slots = replay->slots;
    frag_stretch_part now = {.event = 0};
    for (uint64_t i = stretch->first; i < stretch->end; i++) {
        const frag_event *event = &events[i];
        bool is_alloc = event->op == FRAG_OP_ALLOC;
        if (event->op == FRAG_OP_MARK)
            continue;
        if ((!is_alloc && event->op != FRAG_OP_FREE) || event->flags != 0)
            return false;
        /* The slots were those of the stretch before, and hold what it asked for. */
        uint64_t bytes = is_alloc ? event->bytes : slots[event->slot].requested_bytes;
        if (!small->is_small(replay->policy, bytes)) {
            if (!add_part(run, &now, i))
                return false;
            continue;
        }
        uint64_t block = replay->ops->rounded(replay->policy, bytes);
        now.requested_bytes += is_alloc ? bytes : 0 - bytes;
        now.allocated_bytes += is_alloc ? block : 0 - block;
        if ((int64_t)now.requested_bytes > (int64_t)now.requested_max)
            now.requested_max = now.requested_bytes;
        if ((int64_t)now.allocated_bytes > (int64_t)now.allocated_max)
            now.allocated_max = now.allocated_bytes;
    }
    return now.requested_bytes == 0 && now.allocated_bytes == 0 &&
           add_part(run, &now, stretch->end);
}

/* Which of its tensors is small; false: more than one is. */
static bool find_small(const frag_replay *replay, const frag_stretch *stretch, uint32_t *small)
{
    const frag_policy_engine *engine = frag_policy_engine_of(replay->ops);
    uint32_t count = 0;
    *small = NO_TENSOR;
    for (uint32_t i = 0; i < stretch->count; i++) {
        bool is_small = engine->small->is_small(replay->policy, stretch->from_bytes[i]);
        if (is_small != engine->small->is_small(replay->policy, stretch->to_bytes[i]))
            return false;
        count += is_small;
        *small = is_small ? i : *small;
    }
    return count <= 1;
}

/* Is all that decides in the policy, and nobody looks on? */
static uint64_t version_of(const frag_replay *replay)
{
    const frag_policy_small *small = frag_policy_engine_of(replay->ops)->small;
    bool is_free = small != NULL && replay->options.observer == NULL &&
                   replay->options.check_every == 0 && !replay->options.keeps_stats &&
                   !replay->is_watched && replay->notes == NULL && replay->uses == NULL &&
                   replay->places == NULL && replay->waiting_count == 0 &&
                   replay->result.failed_requests == 0;
    return is_free ? small->version(replay->policy) : 0;
}

/* ---- the others alone */

static void note_levels(frag_replay *replay, uint64_t requested, uint64_t allocated)
{
    frag_level *peak = &replay->result.peak;
    if (replay->level.requested_bytes + requested > peak->requested_bytes)
        peak->requested_bytes = replay->level.requested_bytes + requested;
    (void)frag_replay_note_allocated(replay, replay->level.allocated_bytes + allocated);
}

/* The small ones before a part, whose levels have been noted. */
static void make_up(frag_replay *replay, const frag_stretch *stretch, uint32_t part)
{
    const frag_again_run *run = &replay->again;
    uint64_t first = stretch->first;
    for (uint32_t i = 0; i <= part; i++) {
        replay_part(replay, first, run->parts[i].event);
        first = run->parts[i].event + 1;
    }
}

/* false: it stands before a part that needs the device. */
static bool replay_large(frag_replay *replay, const frag_event *event,
                         const frag_stretch_part *part)
{
    const frag_policy_small *small = frag_policy_engine_of(replay->ops)->small;
    note_levels(replay, part->requested_max, part->allocated_max);
    if (event->op == FRAG_OP_ALLOC) {
        frag_request request = {event->bytes, event->stream, 0};
        frag_grant grant;
        if (!small->alloc_cached(replay->policy, &request, &grant))
            return false;
        replay->result.requests++;
        frag_slot_fill(replay, event->slot, event->bytes, grant.block_bytes, grant.handle);
        frag_replay_set_level(replay, replay->level.requested_bytes + event->bytes,
                              replay->level.allocated_bytes + grant.block_bytes);
        note_levels(replay, part->requested_bytes, part->allocated_bytes);
        return true;
    }
    uint64_t requested = replay->slots[event->slot].requested_bytes;
    uint64_t block = requested + frag_slot_surplus(replay, event->slot);
    frag_replay_set_level(replay, replay->level.requested_bytes - requested,
                          replay->level.allocated_bytes - block);
    replay->ops->free(replay->policy, replay->slots[event->slot].handle, event->stream);
    frag_slot_clear(replay, event->slot);
    return true;
}

/* true: all was replayed but the small ones. behind: nor were those of so many before. */
static bool replay_others(frag_replay *replay, const frag_stretch *stretch, uint32_t behind)
{
    const frag_again_run *run = &replay->again;
    uint32_t last = run->part_count - 1;
    for (uint32_t i = 0; i < last; i++) {
        const frag_event *event = &replay->trace->events[run->parts[i].event];
        if (replay_large(replay, event, &run->parts[i]))
            continue;
        frag_replay_result noted = replay->result;
        for (; behind > 0; behind--) {
            make_up(replay, stretch, last);
            move_slot(replay, stretch->to[run->small], stretch->from[run->small]);
        }
        make_up(replay, stretch, i);
        replay->result = noted;
        replay_part(replay, run->parts[i].event, stretch->end);
        return false;
    }
    note_levels(replay, run->parts[last].requested_max, run->parts[last].allocated_max);
    return true;
}

/* ---- one that is done again */

static void find_run(frag_replay *replay, const frag_again *again)
{
    frag_again_run *run = &replay->again;
    const frag_stretch *stretch = &replay->trace->stretches[again->stretch];
    run->parted = again->stretch + 1;
    run->part_count = 0;
    if (!find_small(replay, stretch, &run->small) || !find_parts(replay, stretch, run))
        run->part_count = 0;
}

/* Are so many further events the same again? */
static bool is_followed(const frag_replay *replay, const frag_event *event, uint32_t count)
{
    const frag_trace *trace = replay->trace;
    uint32_t stretch = trace->agains[event->slot].stretch;
    const frag_event *end = trace->events + trace->event_count;
    uint32_t i = 0;
    while (i < count && event + i + 1 < end && event[i + 1].op == FRAG_OP_AGAIN &&
           trace->agains[event[i + 1].slot].is_done &&
           trace->agains[event[i + 1].slot].stretch == stretch)
        i++;
    return i == count;
}

/* How many before it began with the small block in that place? 0: none. */
static uint32_t find_period(const frag_again_run *run, uint64_t address)
{
    uint32_t period = 1;
    while (period <= FRAG_AGAIN_PERIOD_MAX && run->addresses[period - 1] != address)
        period++;
    return period <= FRAG_AGAIN_PERIOD_MAX ? period : 0;
}

static void note_address(frag_again_run *run, uint64_t address, bool goes_on)
{
    for (uint32_t i = FRAG_AGAIN_PERIOD_MAX - 1; i > 0; i--)
        run->addresses[i] = goes_on ? run->addresses[i - 1] : UINT64_MAX;
    run->addresses[0] = address;
}

/* Is small memory as it was when the stretch began some times before, and does it come as often
 * from here on? Those all together end where they begin. */
static bool is_settled(frag_replay *replay, const frag_event *event, const frag_again *again)
{
    frag_again_run *run = &replay->again;
    const frag_policy_small *small = frag_policy_engine_of(replay->ops)->small;
    uint64_t version = version_of(replay);
    bool goes_on = run->next == event && run->stretch == again->stretch && version != 0 &&
                   run->version == version;
    if (version != 0 && run->parted != again->stretch + 1)
        find_run(replay, again);
    bool has_parts = version != 0 && run->part_count > 0;
    uint64_t address = 0;
    if (run->behind > 0)
        address = run->addresses[run->period - 1];
    else if (has_parts && run->small != NO_TENSOR)
        address = small->address(replay->policy, replay->slots[again->at[run->small]].handle);
    if (run->behind == 0) {
        uint32_t period = goes_on && has_parts ? find_period(run, address) : 0;
        run->period = period > 0 && is_followed(replay, event, period - 1) ? period : 0;
    }
    run->behind = run->period > 0 ? (run->behind + 1) % run->period : 0;
    run->next = event + 1;
    run->stretch = again->stretch;
    run->version = version;
    note_address(run, address, goes_on);
    return run->period > 0;
}

/* Returns which of its tensors stays in its place, though the stretch moves it. */
static uint32_t replay_stretch(frag_replay *replay, const frag_event *event,
                               const frag_again *again)
{
    frag_again_run *run = &replay->again;
    const frag_stretch *stretch = &replay->trace->stretches[again->stretch];
    uint32_t behind = run->behind;
    bool is_left = is_settled(replay, event, again);
    for (uint32_t i = 0; i < stretch->count; i++)
        move_slot(replay, again->at[i], stretch->from[i]);
    if (is_left && replay_others(replay, stretch, behind))
        return run->small;
    run->behind = 0;
    if (!is_left)
        replay_part(replay, stretch->first, stretch->end);
    return NO_TENSOR;
}

void frag_replay_do_again(frag_replay *replay, const frag_event *event)
{
    const frag_again *again = &replay->trace->agains[event->slot];
    const frag_stretch *stretch = &replay->trace->stretches[again->stretch];
    uint32_t left = again->is_done ? replay_stretch(replay, event, again) : NO_TENSOR;
    replay->now = event;
    for (uint32_t i = 0; i < stretch->count && !replay->has_stopped; i++)
        move_slot(replay, i == left ? stretch->from[i] : stretch->to[i], again->at[i]);
}
