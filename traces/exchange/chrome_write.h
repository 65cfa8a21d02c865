/* Runs as Chrome traces, for Perfetto and chrome://tracing: the levels of memory as counters,
 * requests, segments and device calls as slices, out of memory as points. Time is the number of the
 * event in the trace: a microsecond in the viewer is one event, which the device calls made for it
 * share equally; what they cost by a table of latencies stands beside them. */
#ifndef FRAG_EXCHANGE_CHROME_WRITE_H
#define FRAG_EXCHANGE_CHROME_WRITE_H

#include <stdio.h>

#include "sim/replay/replay.h"
#include "sim/trace/trace.h"

/* Start from {.stream = ...}; traces of one file ascend by device. Errors of writing stay with the
 * stream. */
typedef struct frag_chrome_writer {
    FILE *stream;
    const frag_trace *trace; /* being run */
    frag_level level;        /* written last */
    frag_call_note *calls;   /* of the event being run */
    size_t call_count;
    size_t call_capacity;
    bool has_level;
    bool has_events;
} frag_chrome_writer;

/* A trace is run from here on; it must be there until the next is begun, or the end is written. */
void frag_chrome_writer_begin(frag_chrome_writer *writer, const frag_trace *trace,
                              const char *name);
/* A frag_note_taker, a frag_call_taker and a frag_replay_observer; context is the writer. */
void frag_chrome_writer_note(void *context, const frag_note *note);
void frag_chrome_writer_call(void *context, const frag_call_note *call);
void frag_chrome_writer_observe(void *context, const frag_replay *replay, uint64_t event,
                                const frag_level *level);
/* Writes what is left, and the end. */
void frag_chrome_writer_finish(frag_chrome_writer *writer, const char *tool);
/* Frees what the writer holds; the stream is the caller's. */
void frag_chrome_writer_destroy(frag_chrome_writer *writer);

#endif
