/* The figures of a shortened trace: what a stretch does is found the first time that it is done
 * again, and added from then on. */
#include "base/memory.h"
#include "sim/trace/trace.h"

typedef struct short_walk {
    frag_trace *trace;
    uint64_t *bytes; /* by slot; 0: it is free */
    uint64_t live_bytes;
    uint64_t peak_bytes;
} short_walk;

static void walk(short_walk *of, uint64_t first, uint64_t end);

static void move(short_walk *of, uint32_t from, uint32_t to)
{
    FRAG_ASSERT(of->bytes[from] != 0 && of->bytes[to] == 0);
    of->bytes[to] = of->bytes[from];
    of->bytes[from] = 0;
}

static void measure(short_walk *of, frag_stretch *stretch)
{
    frag_trace_stats *stats = &of->trace->stats;
    uint64_t start = of->live_bytes;
    uint64_t peak = of->peak_bytes;
    uint64_t requests = stats->request_count;
    uint64_t total = stats->requested_bytes_total;
    for (uint32_t i = 0; i < stretch->count; i++)
        stretch->from_bytes[i] = of->bytes[stretch->from[i]];
    of->peak_bytes = start;
    walk(of, stretch->first, stretch->end);
    stretch->rise_bytes = of->peak_bytes - start;
    of->peak_bytes = peak > of->peak_bytes ? peak : of->peak_bytes;
    stretch->requests = stats->request_count - requests;
    stretch->total_bytes = stats->requested_bytes_total - total;
    for (uint32_t i = 0; i < stretch->count; i++)
        stretch->to_bytes[i] = of->bytes[stretch->to[i]];
}

static void add(short_walk *of, const frag_stretch *stretch)
{
    frag_trace_stats *stats = &of->trace->stats;
    uint64_t peak = of->live_bytes + stretch->rise_bytes;
    of->peak_bytes = peak > of->peak_bytes ? peak : of->peak_bytes;
    stats->request_count += stretch->requests;
    stats->requested_bytes_total += stretch->total_bytes;
    for (uint32_t i = 0; i < stretch->count; i++) {
        FRAG_ASSERT(of->bytes[stretch->from[i]] == stretch->from_bytes[i]);
        of->live_bytes -= stretch->from_bytes[i];
        of->bytes[stretch->from[i]] = 0;
    }
    for (uint32_t i = 0; i < stretch->count; i++) {
        of->live_bytes += stretch->to_bytes[i];
        of->bytes[stretch->to[i]] = stretch->to_bytes[i];
    }
}

static void do_again(short_walk *of, const frag_again *again)
{
    frag_stretch *stretch = &of->trace->stretches[again->stretch];
    for (uint32_t i = 0; i < stretch->count && again->is_done; i++)
        move(of, again->at[i], stretch->from[i]);
    if (again->is_done && stretch->requests == 0)
        measure(of, stretch);
    else if (again->is_done)
        add(of, stretch);
    for (uint32_t i = 0; i < stretch->count; i++)
        move(of, stretch->to[i], again->at[i]);
}

static void walk(short_walk *of, uint64_t first, uint64_t end)
{
    frag_trace_stats *stats = &of->trace->stats;
    for (uint64_t i = first; i < end; i++) {
        const frag_event *event = &of->trace->events[i];
        if (event->op == FRAG_OP_ALLOC ||
            (event->op == FRAG_OP_ONCE && of->bytes[event->slot] == 0)) {
            FRAG_ASSERT(of->bytes[event->slot] == 0 && event->bytes > 0 && event->flags == 0);
            of->bytes[event->slot] = event->bytes;
            of->live_bytes += event->bytes;
            of->peak_bytes = of->live_bytes > of->peak_bytes ? of->live_bytes : of->peak_bytes;
            stats->request_count++;
            stats->requested_bytes_total += event->bytes;
        } else if (event->op == FRAG_OP_FREE) {
            FRAG_ASSERT(of->bytes[event->slot] != 0 && event->flags == 0);
            of->live_bytes -= of->bytes[event->slot];
            of->bytes[event->slot] = 0;
        } else if (event->op == FRAG_OP_AGAIN) {
            do_again(of, &of->trace->agains[event->slot]);
        }
    }
}

void frag_trace_measure_short(frag_trace *trace)
{
    short_walk of = {.trace = trace};
    trace->stats = (frag_trace_stats){.request_count = 0};
    of.bytes = frag_alloc((size_t)trace->slot_count + 1, sizeof *of.bytes);
    walk(&of, 0, trace->event_count);
    trace->stats.peak_requested_bytes = of.peak_bytes;
    trace->stats.end_requested_bytes = of.live_bytes;
    frag_free(of.bytes);
}
