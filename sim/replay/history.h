/* The whole history of a run, as maps and the page of a report draw it: where every request of the
 * trace was placed and for how long, which segments were held, and how reserved bytes changed.
 *
 * Requests are numbered in order of their alloc events, the same for every policy, so that what a
 * trace says about them is kept once and a history only adds what its policy decided. */
#ifndef FRAG_REPLAY_HISTORY_H
#define FRAG_REPLAY_HISTORY_H

#include "base/bytes.h"
#include "sim/run.h"

#define FRAG_REQUEST_NONE UINT32_MAX

/* What a trace says about its requests. */
typedef struct frag_request_list {
    uint32_t count;
    uint64_t *events;      /* of the alloc */
    uint64_t *free_events; /* of the free; FRAG_UNLIMITED: never freed */
    uint32_t *by_event;    /* number of the request that an event makes, or FRAG_REQUEST_NONE */
} frag_request_list;

/* false: FRAG_E_INPUT, more requests than can be numbered. */
bool frag_request_list_create(frag_request_list *list, const frag_trace *trace, frag_error *error);
void frag_request_list_destroy(frag_request_list *list);

typedef struct frag_placement {
    uint64_t address;
    uint64_t block_bytes;   /* 0: the policy did not serve it */
    uint64_t rounded_bytes; /* of the request, by the policy's rule; at most block_bytes */
    uint64_t end;           /* event at which its place was free again; FRAG_UNLIMITED: never */
} frag_placement;

/* A segment, or a mapped piece of one that grows: held from after `begin` up to `end`. */
typedef struct frag_held_segment {
    uint64_t begin;
    uint64_t end; /* FRAG_UNLIMITED: to the end of the run */
    uint64_t address;
    uint64_t bytes;
    uint32_t stream;
    uint32_t pool;
    bool is_mapped;
} frag_held_segment;

typedef struct frag_reserved_step {
    uint64_t event;
    uint64_t reserved_bytes; /* from right after the event on */
} frag_reserved_step;

typedef struct frag_history {
    frag_placement *placements;  /* one for each request of the list */
    frag_held_segment *segments; /* in order of begin */
    size_t segment_count;
    size_t segment_capacity;
    frag_reserved_step *steps; /* in order of event */
    size_t step_count;
    size_t step_capacity;
    frag_replay_result result;
} frag_history;

/* Replays on a fresh device and keeps what happens. Of the options plan, is_oom_skipped and
 * context count. false: as frag_run. The caller destroys. */
bool frag_history_record(const frag_run_setup *setup, const frag_request_list *requests,
                         const frag_run_options *run, frag_history *history, frag_error *error);
void frag_history_destroy(frag_history *history);

#endif
