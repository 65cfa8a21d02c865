/* What a replay is given and what it tells: inputs, options, results, and those who watch it. */
#ifndef FRAG_REPLAY_REPLAY_TYPES_H
#define FRAG_REPLAY_REPLAY_TYPES_H

#include "base/bits.h"
#include "base/context.h"
#include "sim/policy_engine.h"
#include "sim/trace/repeats.h"
#include "sim/trace/trace.h"

typedef struct frag_level {
    uint64_t requested_bytes; /* of allocations the program holds */
    uint64_t allocated_bytes; /* of their blocks */
    uint64_t active_bytes;    /* allocated, and blocks whose free waits for a stream */
    uint64_t reserved_bytes;  /* of segments */
} frag_level;

typedef enum frag_initial {
    FRAG_INITIAL_NONE,     /* the trace begins with nothing live */
    FRAG_INITIAL_ADOPTED,  /* the policy took over the recorded layout */
    FRAG_INITIAL_ALLOCATED /* blocks from before the trace were requested first, by address */
} frag_initial;

#define FRAG_OOM_MESSAGE_BYTES 1536u

typedef struct frag_oom {
    bool has_happened;
    uint64_t event;
    uint64_t requested_bytes;
    uint64_t segment_bytes; /* what the device was asked for last */
    uint64_t free_bytes;    /* free on the device then; FRAG_UNLIMITED: not limited by the device */
    uint64_t largest_hole_bytes;
    uint64_t total_hole_bytes; /* free inside segments, whole cached segments included */
    uint64_t hole_count;
    frag_level level;
    char message[FRAG_OOM_MESSAGE_BYTES]; /* as the framework words it; "": the policy has none */
} frag_oom;

typedef struct frag_replay_result {
    frag_level peak; /* each at its own time */
    uint64_t peak_requested_event;
    uint64_t reserved_at_event; /* first event after which reserved had its peak */
    frag_level final;
    frag_level at_reserved_peak;
    uint64_t events; /* replayed, prologue included */
    uint64_t requests;
    uint64_t failed_requests; /* with on-oom skip there can be many */
    frag_oom oom;             /* the first */
    frag_wide requested_sum;  /* over events: divide by events for the mean */
    frag_wide allocated_sum;
    frag_wide reserved_sum;
    double external_ratio_max; /* largest share of reserved that was free when that happened */
    frag_initial initial;
    uint64_t ignored_events; /* events of the trace that this policy has no use for */
    bool is_interrupted;
} frag_replay_result;

/* Called after each event in the observed variant of the loop, where the layout can be walked. */
typedef void frag_replay_observer(void *context, const frag_replay *replay, uint64_t event,
                                  const frag_level *level);

/* Called for every request the policy has answered; grant is NULL when it was out of memory. */
typedef void frag_grant_observer(void *context, const frag_request *request,
                                 const frag_grant *grant);

/* ---- notes: everything that happens, in order, in the terms of the allocator's own history */
typedef enum frag_note_kind {
    FRAG_NOTE_ALLOC,
    FRAG_NOTE_FREE_REQUESTED,
    FRAG_NOTE_FREE_COMPLETED,
    FRAG_NOTE_SEGMENT_ALLOC,
    FRAG_NOTE_SEGMENT_FREE,
    FRAG_NOTE_SEGMENT_MAP,
    FRAG_NOTE_SEGMENT_UNMAP,
    FRAG_NOTE_OOM,
    /* only when asked for: segments that the policy got when it was made, and what it took over
     * from before the trace, each segment before its blocks */
    FRAG_NOTE_HELD_SEGMENT,
    FRAG_NOTE_HELD_RANGE, /* mapped, may grow */
    FRAG_NOTE_HELD_BLOCK
} frag_note_kind;

typedef struct frag_note {
    frag_note_kind kind;
    uint64_t event;         /* of the trace, that was being replayed */
    uint64_t alloc_event;   /* blocks: the event that requested it */
    uint64_t address;       /* OOM: bytes free on the device */
    uint64_t bytes;         /* blocks: as requested; OOM: the rounded request */
    uint64_t block_bytes;   /* blocks */
    uint64_t rounded_bytes; /* blocks granted or held: the request by the policy's rule */
    uint32_t stream;
    uint32_t pool; /* blocks: of the request; segments: as the policy says */
    frag_handle handle;
} frag_note;

typedef void frag_note_taker(void *context, const frag_note *note);

/* A call that the policy made to the device, whatever came of it. */
typedef struct frag_call_note {
    uint64_t event; /* of the trace, that was being replayed */
    frag_device_call call;
    frag_device_result result;
    uint64_t address;
    uint64_t bytes;
    double modelled_ns; /* by the device's table of latencies; 0 without one */
} frag_call_note;

typedef void frag_call_taker(void *context, const frag_call_note *call);

typedef struct frag_replay_options {
    bool is_oom_skipped;  /* go on without the block after an OOM */
    bool is_attempt_kept; /* when the last event is a request that failed when recorded but is
                             served now: keep its block, so that the layout shows it */
    uint64_t stop_after;  /* events; FRAG_UNLIMITED: all */
    uint64_t check_every; /* audit policy and counts every so many events; 0: never */
    frag_replay_observer *observer; /* NULL: none; costs nothing then */
    void *observer_context;
    frag_grant_observer *on_grant; /* NULL: none; costs nothing then */
    void *on_grant_context;
    frag_note_taker *on_note; /* NULL: none; costs nothing then */
    void *on_note_context;
    frag_call_taker *on_call; /* gets the context of on_note, and what follows of a call after it;
                                 NULL, or no on_note: none */
    bool is_start_noted;      /* the notes begin with what was taken over */
    bool keeps_stats;         /* the policy keeps its own statistics, for frag_replay_stats */
    const frag_repeats *repeats; /* of the trace; NULL: none is known. Only frag_replay_run uses
                                    them, and its result is the same without */
    const frag_context *context; /* asked now and then whether to stop; NULL: never */
} frag_replay_options;

/* What a run is made of; all of it is borrowed. A replay on a device that is there already leaves
 * `device` NULL. */
typedef struct frag_run_setup {
    const frag_recording *recording;
    const frag_trace *trace; /* one of the recording's */
    const frag_policy_ops *ops;
    const frag_option_value *values; /* of the policy's options */
    const struct frag_device_spec *device;
} frag_run_setup;

/* ---- the layout of a replay, for those who look on */

typedef struct frag_block_view {
    uint32_t slot; /* FRAG_SLOT_NONE: freed, and its slot may be another's by now */
    uint64_t requested_bytes;
    bool is_waiting; /* freed by the program, but still waiting for a stream */
} frag_block_view;

typedef void frag_layout_visitor(void *context, const frag_span *span,
                                 const frag_block_view *block);

/* Where reserved bytes are: the parts add up to reserved. Formulas: docs/metrics.md. */
typedef struct frag_decomposition {
    uint64_t requested_bytes;
    uint64_t rounding_bytes;   /* rounded size less requested */
    uint64_t unsplit_bytes;    /* block less rounded size */
    uint64_t holes_bytes;      /* free inside segments that hold blocks */
    uint64_t cached_bytes;     /* segments without any block */
    uint64_t waiting_bytes;    /* blocks freed but waiting for a stream */
    uint64_t page_slack_bytes; /* lost because the device gives whole pages */
    uint64_t reserved_bytes;
    uint64_t largest_hole_bytes;
    uint64_t hole_count;
    uint64_t segment_count;
} frag_decomposition;

#endif
