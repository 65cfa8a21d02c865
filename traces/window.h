/* Which part of a recording is loaded, as a recording of its own (traces/cut.h). */
#ifndef FRAG_TRACES_WINDOW_H
#define FRAG_TRACES_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef enum frag_window_kind {
    FRAG_WINDOW_ALL, /* of a device */
    FRAG_WINDOW_EVENTS,
    FRAG_WINDOW_TIMES,
    FRAG_WINDOW_MARKS,
} frag_window_kind;

typedef struct frag_window {
    frag_window_kind kind;
    bool has_device; /* else that of the only trace */
    uint32_t device;
    const char *device_option; /* that names it, for messages */
    uint64_t first;            /* event, or Unix time in ns */
    uint64_t end;              /* behind the last; UINT64_MAX: that of the trace */
    const char *first_mark;
    const char *last_mark; /* NULL: the end of first_mark */
    /* A reader that found the part without the events before it has these: how many it left out,
     * and where the part lies among those it read. */
    bool is_found;
    uint32_t trace;
    uint64_t left_out;
    uint64_t found_first;
    uint64_t found_end;
    char *marks; /* that the names of marks lie in */
} frag_window;

/* What the options of commands say: "A..B", "S..E", "NAME[..NAME]", "N"; NULL: not given. */
typedef struct frag_window_texts {
    const char *events;
    const char *time;
    const char *marks;
    const char *device;
    const char *device_option;
} frag_window_texts;

/* More than one of events, time and marks is FRAG_E_USAGE. */
bool frag_window_parse(const frag_window_texts *texts, frag_window *window, frag_error *error);
void frag_window_destroy(frag_window *window);

#endif
