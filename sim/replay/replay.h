/* Replay: one trace through one policy on one device.
 *
 * The loop decides nothing about its input (readers have validated it), does no I/O and takes no
 * host memory. It counts requested, allocated and active bytes from requests and grants, and
 * reserved bytes from device calls, so that a policy cannot misreport them. A free that waits for a
 * stream reaches the policy when its complete event comes, or when the policy synchronises the
 * device. */
#ifndef FRAG_REPLAY_REPLAY_H
#define FRAG_REPLAY_REPLAY_H

#include "base/bits.h"
#include "base/context.h"
#include "sim/policy_engine.h"
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

/* recording and trace outlive the replay; so does the device, which must be fresh. NULL on failure:
 * an option the policy refuses, a start state that does not fit together, no host memory. */
frag_replay *frag_replay_create(const frag_run_setup *setup, frag_device *device,
                                frag_error *error);
/* What a policy that plans makes of the trace; NULL in *plan where it does not plan. limits NULL:
 * none. false: as the
 * policy's plan, or the state at the start does not fit together. */
bool frag_replay_plan(const frag_run_setup *setup, const frag_plan_limits *limits,
                      frag_policy_plan **plan, frag_error *error);
/* As frag_replay_create, by a plan that is there already and outlives the replay, in the memory of
 * an earlier replay (NULL: none). */
frag_replay *frag_replay_create_planned(const frag_run_setup *setup, const frag_policy_plan *plan,
                                        frag_arena_spare *spare, frag_device *device,
                                        frag_error *error);
/* Host memory that slots and policy have touched; see frag_arena_touched_bytes. */
size_t frag_replay_host_bytes(const frag_replay *replay);
/* Runs from the start (call once). false: a check failed, which is a bug of the policy. */
bool frag_replay_run(frag_replay *replay, const frag_replay_options *options,
                     frag_replay_result *result, frag_error *error);
void frag_replay_destroy(frag_replay *replay);

/* The same in steps, for those who look on in between or run several devices side by side: start
 * once, advance as often as wanted, finish once. advance replays the events below `until`, fewer
 * where the run stops; false as frag_replay_run. */
bool frag_replay_start(frag_replay *replay, const frag_replay_options *options, frag_error *error);
bool frag_replay_advance(frag_replay *replay, uint64_t until, frag_error *error);
void frag_replay_finish(frag_replay *replay, frag_replay_result *result);
/* Of blocks that are equally right for the next request the policy is to take the one at this
 * address; nothing happens where it does not listen (`prefer` in sim/policy.h). */
void frag_replay_prefer(frag_replay *replay, uint64_t address);

/* The release of the program's library, for policies that follow it: "2.9"; "": not known. */
const char *frag_recorded_version(const frag_recording *recording);

/* ---- the current state of the run */

/* Where the run has met the limits that its options set; nothing when the policy does not tell. */
void frag_replay_met(const frag_replay *replay, frag_policy_met *met);

/* The message of the program's last OOM, if notes are taken; "" when it has not, or the policy has
 * no words for it. Good until the next step. */
const char *frag_replay_oom_message(const frag_replay *replay);

/* The policy's own statistics, in the framework's names and order; nothing when the policy keeps
 * none or the run was not told to. */
void frag_replay_stats(const frag_replay *replay, frag_stat_visitor *visit, void *context);

typedef struct frag_block_view {
    uint32_t slot; /* FRAG_SLOT_NONE: freed, and its slot may be another's by now */
    uint64_t requested_bytes;
    bool is_waiting; /* freed by the program, but still waiting for a stream */
} frag_block_view;

typedef void frag_layout_visitor(void *context, const frag_span *span,
                                 const frag_block_view *block);

/* The policy's walk, with what the program knows of each block (NULL for segments and holes). */
void frag_replay_walk(const frag_replay *replay, frag_layout_visitor *visit, void *context);

/* The policy's walk alone, which is many times faster. */
void frag_replay_walk_spans(const frag_replay *replay, frag_span_visitor *visit, void *context);

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

void frag_replay_decompose(const frag_replay *replay, frag_decomposition *decomposition);

#endif
