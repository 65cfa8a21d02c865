/* Runs as Chrome traces, for Perfetto and chrome://tracing: the levels of memory as counters,
 * requests and segments as slices, out of memory as points. Time is the number of the event in the
 * trace: a microsecond in the viewer is one event. */
#ifndef FRAG_TRACES_CHROME_WRITE_H
#define FRAG_TRACES_CHROME_WRITE_H

#include <stdio.h>

#include "sim/replay.h"
#include "sim/trace.h"

/* Start from {.stream = ...}; traces of one file ascend by device. Errors of writing stay with the
 * stream. */
typedef struct frag_chrome_writer {
    FILE *stream;
    const frag_trace *trace; /* being run */
    frag_level level;        /* written last */
    bool has_level;
    bool has_events;
} frag_chrome_writer;

/* A trace is run from here on, which outlives that. */
void frag_chrome_writer_begin(frag_chrome_writer *writer, const frag_trace *trace,
                              const char *name);
/* A frag_note_taker and a frag_replay_observer; context is the writer. */
void frag_chrome_writer_note(void *context, const frag_note *note);
void frag_chrome_writer_observe(void *context, uint64_t event, const frag_level *level);
void frag_chrome_writer_finish(frag_chrome_writer *writer, const char *tool);

#endif
