/* `fraglab explain` on a recording: the state when memory ran out, what holds it, and which
 * settings, policies or sizes would have got the very same requests past that point.
 *
 * A recording that ended in an out of memory says nothing about the requests that would have come
 * after it. What serves the request that failed "gets past it"; that it would have fitted to the
 * end is claimed only where another recording of the same program knows the rest. */
#ifndef FRAG_EXPLAIN_EXPLAIN_TRACE_H
#define FRAG_EXPLAIN_EXPLAIN_TRACE_H

#include "cli/inputs.h"
#include "studies/explain/explain_start.h"
#include "studies/explain/advice.h"
#include "studies/explain/explain_ideal.h"
#include "studies/explain/explain_sites.h"

/* What is asked for on the command line. */
typedef struct frag_explain_options {
    frag_trace_format format;
    uint64_t capacity_bytes; /* FRAG_UNLIMITED: as the recording shows */
    const char *fraction;    /* set_per_process_memory_fraction; NULL: not called */
    frag_policy_list extra;  /* policies to try beside our own list */
    const char *whole_path;  /* NULL, or a recording of the same program that goes on */
    uint32_t threads;
} frag_explain_options;

/* One way to run the recording, and what came of it. */
typedef struct frag_candidate {
    frag_policy_spec spec;
    const char *setting;  /* to paste, "" for the defaults; NULL: another policy */
    const char *fraction; /* goes with it; NULL: none */
    bool is_run;          /* false: the release refuses it */
    bool gets_past;       /* the request that failed is served */
    bool fits;            /* nothing fails to the end of the program, where that is known */
    frag_oom oom;
    uint64_t peak_reserved_bytes;
    uint64_t spare_bytes; /* least left of the capacity */
} frag_candidate;

typedef enum frag_rest {
    FRAG_REST_UNKNOWN, /* the recording ends where memory ran out */
    FRAG_REST_HERE,    /* the recording has no failed request: it is the whole program */
    FRAG_REST_GIVEN    /* another recording knows it */
} frag_rest;

typedef struct frag_trace_explanation {
    const frag_recording *recording;
    const frag_trace *trace; /* as far as the request that failed */
    uint64_t capacity_bytes;
    bool is_capacity_given;
    bool is_recorded;       /* the recording itself ran out */
    bool is_reproduced;     /* and so does its replay, at the same event */
    const char *fraction;   /* set_per_process_memory_fraction; NULL: none */
    bool is_fraction_found; /* nobody said so, but only that explains the failure */
    frag_rest rest;
    frag_oom oom; /* of the recorded settings */
    frag_explain_start start;
    frag_message message;
    frag_diagnosis diagnosis;
    frag_advice advice;
    frag_decomposition layout;
    frag_sites sites;
    frag_candidate *candidates; /* the first: the recorded settings */
    size_t candidate_count;
    frag_ideals ideals;
    frag_capacity_result least; /* capacity, with the recorded settings */
    bool has_halved;
    frag_candidate halved; /* recorded settings, the biggest call sites asking for half */
} frag_trace_explanation;

/* Did it run out of memory on a device whose size is known, or is a capacity given? */
bool frag_explain_can(const frag_recording *recording, const frag_explain_options *options);

/* ---- a failure on a device of unknown size (explain_failure.c) */
/* What the log says by itself: how much was asked for, how much was live, the most that was. failed
 * is the event of the request. */
void frag_explain_failure(const frag_recording *recording, const frag_trace *trace, uint64_t failed,
                          FILE *stream, bool is_json);

/* Prints the explanation of every device of the recording that ran out, or would with that
 * capacity. Returns an exit code. */
int frag_explain_recording(frag_recording *recording, const frag_explain_options *options,
                           FILE *stream, bool is_json);

/* ---- printing (explain_trace_print.c) */
void frag_explain_trace_text(FILE *stream, const frag_trace_explanation *explanation);
void frag_explain_trace_json(FILE *stream, const frag_trace_explanation *explanation);

#endif
