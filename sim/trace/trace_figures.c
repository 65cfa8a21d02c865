#include "sim/trace/trace_figures.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/memory.h"

/* Lifetimes below this are counted one by one, so that only the few others need to be sorted. */
#define COUNTED_LIFETIMES 65536u

typedef struct lifetime_counts {
    uint64_t *counts; /* of each lifetime below COUNTED_LIFETIMES */
    uint64_t *longer;
    size_t longer_count;
    size_t longer_capacity;
    uint64_t total;
} lifetime_counts;

frag_trace_figures *frag_trace_figures_create(uint32_t stream_count, uint32_t pool_count,
                                              uint32_t mark_count)
{
    size_t shares = (size_t)stream_count + pool_count;
    frag_trace_figures *figures = frag_alloc(1, sizeof *figures + shares * sizeof(frag_share) +
                                                    mark_count * sizeof(frag_mark_share));
    figures->stream_count = stream_count;
    figures->pool_count = pool_count;
    figures->mark_count = mark_count;
    figures->streams = (frag_share *)(figures + 1);
    figures->pools = figures->streams + stream_count;
    figures->marks = (frag_mark_share *)(figures->pools + pool_count);
    return figures;
}

static void add_lifetime(lifetime_counts *all, uint64_t lifetime)
{
    all->total++;
    if (lifetime < COUNTED_LIFETIMES) {
        all->counts[lifetime]++;
        return;
    }
    *FRAG_APPEND(all->longer, all->longer_count, all->longer_capacity) = lifetime;
}

/* The one that has so many below it; longer is sorted. */
static uint64_t lifetime_at(const lifetime_counts *all, uint64_t place)
{
    for (uint32_t i = 0; i < COUNTED_LIFETIMES; i++) {
        if (place < all->counts[i])
            return i;
        place -= all->counts[i];
    }
    return all->longer[place];
}

static void find_quantiles(lifetime_counts *all, frag_trace_figures *figures)
{
    static const uint64_t percents[FRAG_LIFETIME_QUANTILES] = {50, 90, 99, 100};
    if (all->longer_count > 0)
        qsort(all->longer, all->longer_count, sizeof *all->longer, frag_compare_numbers);
    for (uint32_t i = 0; all->total > 0 && i < FRAG_LIFETIME_QUANTILES; i++)
        figures->lifetimes[i] = lifetime_at(all, (all->total - 1) * percents[i] / 100);
    figures->freed_count = all->total;
}

static void add_share(frag_share *share, uint64_t bytes)
{
    share->count++;
    share->bytes += bytes;
}

/* Writers do not check what they write; an event that no reader would accept has no figures. */
static bool is_in_range(const frag_trace *trace, const frag_event *event)
{
    bool has_slot =
        event->op == FRAG_OP_FREE || (event->op == FRAG_OP_ALLOC && event->slot != FRAG_SLOT_NONE);
    return (!has_slot || event->slot < trace->slot_count) &&
           (event->op != FRAG_OP_ALLOC ||
            (event->stream < trace->stream_count && event->bytes - 1 < FRAG_REQUEST_BYTES_MAX));
}

static void collect_requests(const frag_trace *trace, frag_trace_figures *figures)
{
    lifetime_counts lifetimes = {.counts = frag_alloc(COUNTED_LIFETIMES, sizeof *lifetimes.counts)};
    uint64_t *born = frag_alloc(trace->slot_count, sizeof *born); /* event + 1 */
    for (uint64_t i = 0; i < trace->event_count; i++) {
        const frag_event *event = &trace->events[i];
        if (!is_in_range(trace, event))
            continue;
        if (event->op == FRAG_OP_FREE && born[event->slot] != 0) {
            add_lifetime(&lifetimes, i + 1 - born[event->slot]);
            born[event->slot] = 0;
        }
        if (event->op != FRAG_OP_ALLOC || (event->flags & FRAG_EVENT_INITIAL) != 0)
            continue;
        add_share(&figures->sizes[frag_bit_high(event->bytes)], event->bytes);
        add_share(&figures->streams[event->stream], event->bytes);
        uint32_t pool = trace->pools == NULL ? 0 : trace->pools[i];
        if (pool < trace->pool_count)
            add_share(&figures->pools[pool], event->bytes);
        if (event->slot != FRAG_SLOT_NONE)
            born[event->slot] = i + 1;
    }
    for (uint32_t slot = 0; slot < trace->slot_count; slot++)
        figures->unfreed_count += born[slot] != 0 ? 1 : 0;
    find_quantiles(&lifetimes, figures);
    frag_free(born);
    frag_free(lifetimes.counts);
    frag_free(lifetimes.longer);
}

/* The caller frees. */
static frag_mark_share *collect_marks(const frag_recording *recording, const frag_trace *trace,
                                      uint32_t *count)
{
    uint32_t *places = frag_alloc(recording->strings.count, sizeof *places); /* index + 1 */
    frag_mark_share *marks = NULL;
    size_t capacity = 0;
    *count = 0;
    for (uint64_t i = 0; i < trace->event_count; i++) {
        const frag_event *event = &trace->events[i];
        if (event->op != FRAG_OP_MARK || (event->flags & FRAG_EVENT_END) != 0 ||
            event->slot >= recording->strings.count)
            continue;
        uint32_t *place = &places[event->slot];
        if (*place == 0) {
            marks = frag_grow(marks, &capacity, (size_t)*count + 1, sizeof *marks);
            marks[(*count)++] = (frag_mark_share){.name = event->slot, .first_event = i};
            *place = *count;
        }
        marks[*place - 1].count++;
    }
    frag_free(places);
    return marks;
}

static void count_inferred(const frag_trace *trace, frag_trace_figures *figures)
{
    for (uint64_t i = 0; i < trace->event_count; i++)
        if ((trace->events[i].flags & FRAG_EVENT_INFERRED) == 0)
            continue;
        else if ((trace->events[i].flags & FRAG_EVENT_INITIAL) != 0)
            figures->guessed_count++;
        else
            figures->inferred_count++;
}

frag_trace_figures *frag_trace_figures_find(const frag_recording *recording,
                                            const frag_trace *trace)
{
    uint32_t mark_count = 0;
    frag_mark_share *marks = collect_marks(recording, trace, &mark_count);
    frag_trace_figures *figures =
        frag_trace_figures_create(trace->stream_count, trace->pool_count, mark_count);
    if (mark_count > 0)
        memcpy(figures->marks, marks, mark_count * sizeof *marks);
    frag_free(marks);
    collect_requests(trace, figures);
    count_inferred(trace, figures);
    return figures;
}

/* ---- figures that came from elsewhere */
static bool adds_up(const frag_share *shares, uint32_t count, uint64_t total)
{
    for (uint32_t i = 0; i < count; i++) {
        if (shares[i].count > total)
            return false;
        total -= shares[i].count;
    }
    return total == 0;
}

static bool has_lifetimes(const frag_trace_figures *figures, const frag_trace *trace)
{
    const frag_trace_stats *stats = &trace->stats;
    uint64_t served = stats->request_count - stats->failed_count;
    if (figures->freed_count > served || figures->unfreed_count != served - figures->freed_count)
        return false;
    for (uint32_t i = 0; i < FRAG_LIFETIME_QUANTILES; i++) {
        uint64_t least = i > 0 ? figures->lifetimes[i - 1] : figures->freed_count > 0 ? 1 : 0;
        uint64_t most = figures->freed_count > 0 ? trace->event_count : 0;
        if (figures->lifetimes[i] < least || figures->lifetimes[i] > most)
            return false;
    }
    return true;
}

static bool has_marks(const frag_trace_figures *figures, const frag_recording *recording,
                      const frag_trace *trace)
{
    uint64_t left = trace->stats.op_counts[FRAG_OP_MARK];
    uint64_t next_event = 0;
    for (uint32_t i = 0; i < figures->mark_count; i++) {
        const frag_mark_share *mark = &figures->marks[i];
        if (mark->name >= recording->strings.count || mark->count == 0 || mark->count > left ||
            mark->first_event < next_event || mark->first_event >= trace->event_count)
            return false;
        left -= mark->count;
        next_event = mark->first_event + 1;
    }
    return true;
}

const char *frag_trace_figures_doubt(const frag_trace_figures *figures,
                                     const frag_recording *recording, const frag_trace *trace)
{
    uint64_t requests = trace->stats.request_count;
    if (figures->stream_count != trace->stream_count || figures->pool_count != trace->pool_count)
        return "the figures of a trace have other streams or pools than its tables";
    if (!adds_up(figures->sizes, FRAG_SIZE_CLASSES, requests) ||
        !adds_up(figures->streams, figures->stream_count, requests) ||
        !adds_up(figures->pools, figures->pool_count, requests))
        return "the figures of a trace count other requests than its summary";
    if (!has_lifetimes(figures, trace))
        return "the figures of a trace have lifetimes that cannot be";
    if (!has_marks(figures, recording, trace))
        return "the figures of a trace have marks that cannot be";
    return figures->inferred_count > trace->event_count ||
                   figures->guessed_count > trace->event_count - figures->inferred_count
               ? "the figures of a trace infer more events than it has"
               : NULL;
}
