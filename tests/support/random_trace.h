/* Traces drawn by chance, of the kinds that are hard on allocators: streams, deferred frees,
 * private pools inside one another, captures, limits and settings changed midway, sizes from one
 * byte to more than any card has. The same seed makes the same trace, which is valid whatever
 * events are taken out of it. */
#ifndef FRAG_SUPPORT_RANDOM_TRACE_H
#define FRAG_SUPPORT_RANDOM_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "sim/trace/trace.h"

enum { RANDOM_STREAM_ALL = 255, RANDOM_STREAMS_MAX = 5, RANDOM_POOLS_MAX = 5 };

typedef struct random_event {
    uint8_t op;           /* frag_op */
    uint8_t flags;        /* FRAG_EVENT_... */
    uint8_t stream;       /* or RANDOM_STREAM_ALL */
    uint8_t pool;         /* 0: the default pool; EMPTY_CACHE: 0 is every pool */
    uint32_t block;       /* number of the alloc that this is about; each alloc has its own */
    uint64_t bytes;       /* LIMIT (RATIO: in billionths), STATS_RESET */
    const char *settings; /* CONFIG */
} random_event;

typedef struct random_trace {
    random_event *events;
    size_t count;
    size_t capacity;
} random_trace;

/* Replaces what the trace holds. */
void random_trace_draw(random_trace *trace, uint64_t seed);

/* Writes the text form. Events about a block whose alloc (or deferred free) is not there are left
 * out. */
void random_trace_write(const random_trace *trace, frag_text *text);

void random_trace_destroy(random_trace *trace);

#endif
