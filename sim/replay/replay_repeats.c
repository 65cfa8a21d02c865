/* Steps that repeat exactly are replayed until one of them ends in the state that it began in; the
 * others then do the same again, so that they are counted and not replayed.
 *
 * The state is compared as a whole: every segment, block and hole, and what else the policy knows
 * of them (memories). That is all that decides what comes next if the policy says so (shows_all),
 * if nothing waits for a stream, and if the device was not called in between, which then is as it
 * was too. A block at the end of a step is either that of the beginning, which the step did not
 * free, or was requested one step later than the one which lay there; so the frees of the next step
 * find their blocks at the same addresses as well, and the next step ends in that state again. Of
 * ranks the order is compared, which is all that decides. A hole was made in the step, and then is
 * as old as the one before, or it is older than the step: the times of the first go on with the
 * steps that are left out. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sim/policy_engine.h"
#include "sim/replay/replay.h"
#include "sim/replay/replay_state.h"

/* Steps that are replayed in search of a state that comes back. */
enum { TRIES_MAX = 24 };

/* One span of the walk. */
typedef struct piece {
    uint64_t address;
    uint64_t bytes;
    uint64_t requested_bytes;
    uint64_t page_slack_bytes;
    uint32_t kind;
    uint32_t stream;
    uint32_t pool;
    uint32_t slot; /* of a block */
    uint32_t marks;
    uint64_t born; /* the event that requested the block */
} piece;

typedef struct layout {
    piece *pieces;
    size_t count;
    size_t capacity;
    frag_policy_memory *memories;
    size_t memory_count;
    size_t memory_capacity;
    uint64_t clock;
    const uint64_t *born; /* by slot */
    uint64_t event;
    uint64_t calls; /* of the device so far */
    frag_replay_result result;
} layout;

static void add_piece(void *context, const frag_span *span, const frag_block_view *block)
{
    layout *into = context;
    *FRAG_APPEND(into->pieces, into->count, into->capacity) = (piece){
        .address = span->address,
        .bytes = span->bytes,
        .requested_bytes = block != NULL ? block->requested_bytes : 0,
        .page_slack_bytes = span->page_slack_bytes,
        .kind = span->kind,
        .stream = span->stream,
        .pool = span->pool,
        .slot = block != NULL ? block->slot : FRAG_SLOT_NONE,
        .born = block != NULL ? into->born[block->slot] : 0,
        .marks = (span->is_growing ? 1u : 0) | (span->is_small_pool ? 2u : 0),
    };
}

static int compare_pieces(const void *left, const void *right)
{
    const piece *a = left;
    const piece *b = right;
    return frag_compare_then(frag_compare(a->address, b->address), frag_compare(a->kind, b->kind));
}

static void add_memory(void *context, const frag_policy_memory *memory)
{
    layout *into = context;
    *FRAG_APPEND(into->memories, into->memory_count, into->memory_capacity) = *memory;
}

static int compare_memories(const void *left, const void *right)
{
    const frag_policy_memory *a = left;
    const frag_policy_memory *b = right;
    return frag_compare_then(frag_compare(a->rank, b->rank), frag_compare(a->address, b->address));
}

static void keep_memories(const frag_replay *replay, layout *into)
{
    const frag_policy_memories *memories = frag_policy_engine_of(replay->ops)->memories;
    into->memory_count = 0;
    if (memories == NULL)
        return;
    into->clock = memories->clock(replay->policy);
    memories->visit(replay->policy, add_memory, into);
    if (into->memory_count > 0)
        qsort(into->memories, into->memory_count, sizeof *into->memories, compare_memories);
}

/* By address: in what order a policy walks says nothing. */
static void keep(const frag_replay *replay, layout *into)
{
    into->count = 0;
    into->event = frag_replay_event(replay);
    into->calls = 0;
    into->result = replay->result;
    for (uint32_t i = 0; i < FRAG_DEVICE_CALL_COUNT; i++)
        into->calls += replay->device->counts.calls[i];
    frag_replay_walk(replay, add_piece, into);
    if (into->count > 0)
        qsort(into->pieces, into->count, sizeof *into->pieces, compare_pieces);
    keep_memories(replay, into);
}

static bool is_same_piece(const piece *a, const piece *b, uint64_t period)
{
    return (a->born == b->born || a->born + period == b->born) && a->address == b->address &&
           a->bytes == b->bytes && a->requested_bytes == b->requested_bytes &&
           a->page_slack_bytes == b->page_slack_bytes && a->kind == b->kind &&
           a->stream == b->stream && a->pool == b->pool && a->marks == b->marks;
}

/* In the order of their ranks. One that is as old as the clock at the beginning was made then or
 * before: what becomes of its time is not known. */
static bool has_same_memories(const layout *before, const layout *after)
{
    uint64_t passed = after->clock - before->clock;
    if (before->memory_count != after->memory_count)
        return false;
    for (size_t i = 0; i < before->memory_count; i++) {
        const frag_policy_memory *a = &before->memories[i];
        const frag_policy_memory *b = &after->memories[i];
        bool is_made = a->time + passed == b->time;
        bool is_left = a->time == b->time && a->time < before->clock;
        bool is_tied = i > 0 && a[-1].rank == a->rank;
        bool is_tied_after = i > 0 && b[-1].rank == b->rank;
        if (a->address != b->address || is_tied != is_tied_after || (!is_made && !is_left))
            return false;
    }
    return true;
}

static bool is_same(const layout *before, const layout *after)
{
    if (before->calls != after->calls || before->count != after->count)
        return false;
    for (size_t i = 0; i < before->count; i++)
        if (!is_same_piece(&before->pieces[i], &after->pieces[i], after->event - before->event))
            return false;
    return has_same_memories(before, after);
}

/* Is all that decides what comes next in the layout and the device? Nobody may look on, either. */
static bool is_shown(const frag_replay *replay)
{
    const frag_policy_engine *engine = frag_policy_engine_of(replay->ops);
    const frag_replay_options *options = &replay->options;
    return engine->shows_all != NULL && engine->shows_all(replay->policy) &&
           options->observer == NULL && options->check_every == 0 && !options->keeps_stats &&
           !replay->is_watched && replay->notes == NULL && replay->uses == NULL &&
           replay->places == NULL && replay->waiting_count == 0 && replay->large_count == 0 &&
           replay->result.failed_requests == 0;
}

static void count_again(frag_wide *sum, const frag_wide *before, const frag_wide *after,
                        uint64_t times)
{
    frag_wide_add_product(sum, after->low - before->low, times);
}

/* The sums of one repeat fit a number. */
static bool is_countable(const frag_wide *before, const frag_wide *after)
{
    uint64_t carry = after->low < before->low ? 1 : 0;
    return after->high - before->high == carry;
}

/* Blocks that were requested in a step are in the slots of the last one. */
static void move_slots(frag_replay *replay, const layout *before, const layout *after,
                       uint64_t events)
{
    size_t count = (size_t)replay->trace->slot_count + 1;
    frag_slot *slots = frag_alloc(count, sizeof *slots);
    memcpy(slots, replay->slots, count * sizeof *slots);
    for (size_t i = 0; i < after->count; i++)
        if (after->pieces[i].kind == FRAG_SPAN_BLOCK)
            replay->slots[after->pieces[i].slot].handle = FRAG_HANDLE_NONE;
    for (size_t i = 0; i < after->count; i++) {
        const piece *block = &after->pieces[i];
        bool is_moved = block->born != before->pieces[i].born;
        if (block->kind == FRAG_SPAN_BLOCK)
            replay->slots[replay->trace->events[block->born + (is_moved ? events : 0)].slot] =
                slots[block->slot];
    }
    frag_free(slots);
}

static void skip(frag_replay *replay, const layout *before, const layout *after, uint64_t period,
                 uint64_t times)
{
    frag_replay_result *result = &replay->result;
    const frag_replay_result *from = &before->result;
    const frag_replay_result *to = &after->result;
    result->requests += (to->requests - from->requests) * times;
    count_again(&result->requested_sum, &from->requested_sum, &to->requested_sum, times);
    count_again(&result->allocated_sum, &from->allocated_sum, &to->allocated_sum, times);
    move_slots(replay, before, after, period * times);
    uint64_t passed = after->clock - before->clock;
    if (passed > 0)
        frag_policy_engine_of(replay->ops)
            ->memories->pass(replay->policy, before->clock, passed * times);
    frag_replay_go_to(replay, frag_replay_event(replay) + period * times);
}

/* Notes which event requested the block of a slot. */
static void note_born(const frag_trace *trace, uint64_t first, uint64_t end, uint64_t *born)
{
    for (uint64_t i = first; i < end; i++)
        if (trace->events[i].op == FRAG_OP_ALLOC && trace->events[i].slot != FRAG_SLOT_NONE)
            born[trace->events[i].slot] = i;
}

/* Ends the steps that begin where `before` and `after` were taken, which is every so many events.
 */
static bool skip_if_same(frag_replay *replay, const layout *before, const layout *after,
                         uint64_t end)
{
    uint64_t period = after->event - before->event;
    if (!is_same(before, after) ||
        !is_countable(&before->result.requested_sum, &after->result.requested_sum) ||
        !is_countable(&before->result.allocated_sum, &after->result.allocated_sum))
        return false;
    skip(replay, before, after, period, (end - after->event) / period);
    return true;
}

/* From anywhere in a repeat on. What a step keeps until the next has been made lies in two
 * places in turn, so that a state may come back only after several steps: each is compared with one
 * from before, which is a later one whenever twice as many have been (Brent, BIT 20, 1980). */
static bool advance_repeat(frag_replay *replay, uint64_t period, uint64_t end,
                           const frag_replay_advancer *advancer, frag_error *error)
{
    uint64_t *born = frag_alloc((size_t)replay->trace->slot_count + 1, sizeof *born);
    layout layouts[2] = {{.born = born}, {.born = born}};
    layout *before = &layouts[0];
    layout *after = &layouts[1];
    uint64_t at = frag_replay_event(replay);
    uint64_t kept = 0; /* the try that `before` is from */
    note_born(replay->trace, 0, at, born);
    keep(replay, before);
    bool ok = true;
    for (uint64_t i = 1; i <= TRIES_MAX && end - at >= period; i++) {
        ok = advancer->advance(advancer->context, replay, at + period, error);
        if (!ok || replay->has_stopped || replay->result.is_interrupted || !is_shown(replay))
            break;
        note_born(replay->trace, at, at + period, born);
        at += period;
        keep(replay, after);
        if (skip_if_same(replay, before, after, end))
            break;
        if (i >= 2 * kept) {
            layout *other = before;
            before = after;
            after = other;
            kept = i;
        }
    }
    frag_free(born);
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        frag_free(layouts[i].pieces);
        frag_free(layouts[i].memories);
    }
    return ok;
}

static bool has_ended(const frag_replay *replay)
{
    return replay->has_stopped || replay->result.is_interrupted;
}

static bool advance_plainly(void *context, frag_replay *replay, uint64_t end, frag_error *error)
{
    (void)context;
    return frag_replay_advance(replay, end, error);
}

bool frag_replay_advance_repeats(frag_replay *replay, const frag_repeats *repeats,
                                 const frag_replay_advancer *advancer, uint64_t until,
                                 frag_error *error)
{
    static const frag_replay_advancer plain = {.advance = advance_plainly};
    advancer = advancer != NULL ? advancer : &plain;
    uint64_t end = until < replay->end ? until : replay->end;
    for (size_t i = 0; repeats != NULL && i < repeats->count; i++) {
        const frag_repeat *repeat = &repeats->items[i];
        uint64_t last = repeat->end < end ? repeat->end : end;
        if (last < repeat->first + repeat->period || frag_replay_event(replay) >= last)
            continue;
        if (frag_replay_event(replay) < repeat->first &&
            !advancer->advance(advancer->context, replay, repeat->first, error))
            return false;
        if (has_ended(replay))
            return true;
        if (is_shown(replay) && !advance_repeat(replay, repeat->period, last, advancer, error))
            return false;
        if (has_ended(replay))
            return true;
    }
    return advancer->advance(advancer->context, replay, end, error);
}
