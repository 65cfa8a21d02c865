#include "sim/trace/repeats.h"

#include "base/memory.h"

/* A window of so many events is looked for where its hash says so: one in so many. */
enum { WINDOW = 32, ANCHOR_BITS = 5, TABLE_BITS = 12 };
/* Comparisons of events for each event of the trace. */
enum { COMPARISONS_MAX = 4 };
/* A repeat is worth its while when it leaves out this many events, and this part of all. */
enum { LEFT_OUT_MIN = 1024, LEFT_OUT_PART = 32 };

#define HASH_FACTOR 0x9E3779B97F4A7C15u

typedef struct anchor {
    uint64_t hash;
    uint64_t end; /* of the window; 0: none */
} anchor;

typedef struct repeat_finder {
    const frag_trace *trace;
    uint32_t *ages; /* by event: of a free, how many events ago its block was requested */
    frag_repeats *repeats;
    uint64_t from; /* what lies before is taken */
    uint64_t comparisons;
    frag_repeat failed; /* the last that was too short */
    anchor table[1 << TABLE_BITS];
} repeat_finder;

/* Says nothing to a policy. */
static bool is_silent(const frag_event *event)
{
    return event->op == FRAG_OP_MARK || frag_op_is_observed(event->op);
}

static bool may_repeat(const frag_event *event)
{
    uint32_t kind = frag_event_kind(event);
    bool is_plain = (kind == FRAG_OP_ALLOC && event->slot != FRAG_SLOT_NONE) ||
                    kind == FRAG_OP_FREE || is_silent(event);
    return is_plain && (event->flags & FRAG_EVENT_INITIAL) == 0;
}

static bool is_same(const repeat_finder *finder, uint64_t left, uint64_t right)
{
    const frag_trace *trace = finder->trace;
    const frag_event *a = &trace->events[left];
    const frag_event *b = &trace->events[right];
    if (is_silent(a) || is_silent(b))
        return is_silent(a) && is_silent(b);
    return frag_event_kind(a) == frag_event_kind(b) && a->stream == b->stream &&
           finder->ages[left] == finder->ages[right] &&
           (a->op == FRAG_OP_FREE || a->bytes == b->bytes) &&
           frag_trace_pool(trace, left) == frag_trace_pool(trace, right);
}

/* Equal where the events are the same. */
static uint64_t hash_of(const repeat_finder *finder, uint64_t index)
{
    const frag_event *event = &finder->trace->events[index];
    if (is_silent(event))
        return HASH_FACTOR;
    uint64_t what = event->op == FRAG_OP_FREE ? finder->ages[index] : event->bytes;
    uint64_t hash = (what ^ (uint64_t)event->op << 56) * HASH_FACTOR;
    return (hash ^ hash >> 29) * HASH_FACTOR;
}

/* Events up to `end` repeat what was `period` before: how far do they in both directions? */
static void try_period(repeat_finder *finder, uint64_t period, uint64_t end)
{
    const frag_trace *trace = finder->trace;
    if (period == finder->failed.period && end <= finder->failed.end)
        return;
    uint64_t low = end - WINDOW;
    uint64_t high = end;
    uint64_t limit = trace->event_count * COMPARISONS_MAX;
    while (low > finder->from + period && finder->comparisons < limit &&
           may_repeat(&trace->events[low - 1 - period]) &&
           is_same(finder, low - 1, low - 1 - period)) {
        low--;
        finder->comparisons++;
    }
    while (high < trace->event_count && finder->comparisons < limit &&
           may_repeat(&trace->events[high]) && is_same(finder, high, high - period)) {
        high++;
        finder->comparisons++;
    }
    frag_repeat found = {low - period, period, high};
    uint64_t times = (high - found.first) / period;
    uint64_t left_out = times > 2 ? (times - 2) * period : 0;
    if (left_out < LEFT_OUT_MIN || left_out < trace->event_count / LEFT_OUT_PART) {
        finder->failed = found;
        return;
    }
    *FRAG_APPEND(finder->repeats->items, finder->repeats->count, finder->repeats->capacity) = found;
    finder->from = high;
}

static void look_up(repeat_finder *finder, uint64_t hash, uint64_t end)
{
    anchor *at = &finder->table[hash >> (64 - TABLE_BITS)];
    anchor before = *at;
    *at = (anchor){hash, end};
    if (before.hash != hash || before.end < finder->from + WINDOW)
        return;
    for (uint64_t i = 1; i <= WINDOW; i++)
        if (!is_same(finder, end - i, before.end - i))
            return;
    try_period(finder, end - before.end, end);
}

static void find_ages(repeat_finder *finder)
{
    const frag_trace *trace = finder->trace;
    uint64_t *born = frag_alloc(trace->slot_count, sizeof *born);
    finder->ages = frag_alloc(trace->event_count, sizeof *finder->ages);
    for (uint64_t i = 0; i < trace->event_count; i++) {
        const frag_event *event = &trace->events[i];
        if (event->op == FRAG_OP_ALLOC && event->slot != FRAG_SLOT_NONE)
            born[event->slot] = i;
        else if (event->op == FRAG_OP_FREE)
            finder->ages[i] = (uint32_t)(i - born[event->slot]);
    }
    frag_free(born);
}

void frag_repeats_find(const frag_trace *trace, frag_repeats *repeats)
{
    *repeats = (frag_repeats){0};
    repeat_finder *finder = frag_alloc(1, sizeof *finder);
    finder->trace = trace;
    finder->repeats = repeats;
    if (trace->event_count > UINT32_MAX || trace->event_count < 3 * LEFT_OUT_MIN) {
        frag_free(finder);
        return;
    }
    find_ages(finder);
    uint64_t leaving = 1; /* the weight of the event that leaves the window */
    for (int i = 0; i < WINDOW; i++)
        leaving *= HASH_FACTOR;
    uint64_t hash = 0;
    uint64_t length = 0; /* of what may repeat, up to here */
    for (uint64_t i = 0; i < trace->event_count; i++) {
        if (i < finder->from || !may_repeat(&trace->events[i])) {
            length = 0;
            hash = 0;
            continue;
        }
        hash = hash * HASH_FACTOR + hash_of(finder, i);
        if (++length > WINDOW)
            hash -= leaving * hash_of(finder, i - WINDOW);
        uint64_t mixed = (hash ^ hash >> 31) * HASH_FACTOR;
        if (length >= WINDOW && (mixed & ((1 << ANCHOR_BITS) - 1)) == 0)
            look_up(finder, mixed, i + 1);
    }
    frag_free(finder->ages);
    frag_free(finder);
}

void frag_repeats_destroy(frag_repeats *repeats)
{
    frag_free(repeats->items);
    *repeats = (frag_repeats){0};
}
