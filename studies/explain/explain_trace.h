/* What explains an out of memory in a recording: the state when memory ran out, what holds it, and
 * which settings, policies or sizes would have got the very same requests past that point.
 *
 * A recording that ended in an out of memory says nothing about the requests that would have come
 * after it. What serves the request that failed "gets past it"; that it would have fitted to the
 * end is claimed only where another recording of the same program knows the rest. */
#ifndef FRAG_EXPLAIN_EXPLAIN_TRACE_H
#define FRAG_EXPLAIN_EXPLAIN_TRACE_H

#include "base/context.h"
#include "sim/run.h"
#include "studies/explain/advice.h"
#include "studies/explain/explain_ideal.h"
#include "studies/explain/explain_sites.h"
#include "studies/explain/explain_start.h"
#include "studies/policy_settings.h"

typedef struct frag_explain_options {
    uint64_t capacity_bytes; /* FRAG_UNLIMITED: as the recording shows */
    const char *fraction;    /* set_per_process_memory_fraction; NULL: not called */
    frag_policy_list extra;  /* policies to try beside our own list */
    /* A recording of the same program that goes on, borrowed, or the file of one; NULL: none. */
    const frag_recording *whole;
    const char *whole_path;
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

/* The settings that are tried without a memory fraction, literal, from 0; NULL: no more. */
const char *frag_explain_setting(size_t index);

/* The request that failed when recorded; event_count when none did. */
uint64_t frag_explain_failed_event(const frag_trace *trace);
/* The capacity given, or what the recording tells of its device where a request failed;
 * FRAG_UNLIMITED: neither. */
uint64_t frag_explain_capacity(const frag_trace *trace, const frag_explain_options *options);

/* Did it run out of memory on a device whose size is known, or is a capacity given? */
bool frag_explain_can(const frag_recording *recording, const frag_explain_options *options);
/* Why there is nothing to explain at all, as a sentence without its end. */
const char *frag_explain_why_not(const frag_recording *recording);

/* How much more the recorded settings would have needed; 0: that is not known. */
uint64_t frag_explain_missing_bytes(const frag_trace_explanation *explanation);

/* Gets an explanation, which is there during the call only. */
typedef void frag_explain_taker(void *user, const frag_trace_explanation *explanation);

/* Explains one trace of the recording: take is called once where frag_explain_capacity knows one,
 * but not after the context was cancelled. Where the capacity given serves the request that failed
 * when recorded, what comes later is explained: of the other recording, or of this one where it
 * goes on and a later request fails. false: the other recording or a policy cannot be used,
 * or a run failed. */
bool frag_explain_trace(const frag_context *context, const frag_recording *recording,
                        const frag_trace *trace, const frag_explain_options *options,
                        frag_explain_taker *take, void *user, frag_error *error);

#endif
