/* The events of a Chrome trace, one after another: of a JSON array, or of the array "traceEvents"
 * of a JSON object. Traces of profilers have gigabytes; only one event is in memory at a time. */
#ifndef FRAG_TORCH_CHROME_EVENTS_H
#define FRAG_TORCH_CHROME_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

/* No event of a profiler comes near this. */
#define FRAG_CHROME_EVENT_BYTES_MAX ((size_t)1 << 24)

/* Start from {.input = ..., .error = ...}; the rest is the reader's, where not said otherwise. */
typedef struct frag_chrome_events {
    frag_input *input;
    frag_error *error;
    uint64_t event_line;   /* for all: of the current event, from 1 */
    uint64_t base_time_ns; /* for all, at the end: "baseTimeNanoseconds" of the object, else 0 */
    bool has_failed;       /* for all: error says why */
    bool is_cut_off;       /* for all: an array, and the file ends in place of its "]" */
    bool is_object;
    int state;
    uint64_t line;
    const unsigned char *bytes; /* what is visible of the input, from byte `at` on not yet read */
    size_t count;
    size_t at;
    size_t mark; /* from here to `at` is to be kept */
    bool is_keeping;
    frag_text text;
} frag_chrome_events;

/* The text of the next event, a JSON object as far as its brackets and strings go, which is there
 * until the next call and ends in '\0'. false: there is none, or has_failed. */
bool frag_chrome_next(frag_chrome_events *events, const char **text, size_t *length);
void frag_chrome_destroy(frag_chrome_events *events);

#endif
