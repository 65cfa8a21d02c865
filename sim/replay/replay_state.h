/* What the parts of a replay share: its slots, and the steps that change them. */
#ifndef FRAG_REPLAY_REPLAY_STATE_H
#define FRAG_REPLAY_REPLAY_STATE_H

#include "base/bits.h"
#include "sim/image.h"
#include "sim/replay/replay_types.h"

#define FRAG_HANDLE_NONE UINT32_MAX
#define FRAG_SURPLUS_ELSEWHERE UINT32_MAX

/* One live allocation; 16 bytes, because the table is the replay's largest and is hit at random. */
typedef struct frag_slot {
    uint64_t requested_bytes; /* and FRAG_SLOT_WAITING */
    uint32_t surplus_bytes;   /* block less requested, or FRAG_SURPLUS_ELSEWHERE */
    uint32_t handle;          /* FRAG_HANDLE_NONE: nothing is held for this slot; of a request that
                                 failed, the surplus is elsewhere */
} frag_slot;

/* Bit of slot.requested_bytes: freed by the program, not yet safe to reuse. */
#define FRAG_SLOT_WAITING ((uint64_t)1 << 63)

typedef struct frag_large_surplus {
    uint32_t slot;
    uint64_t bytes;
} frag_large_surplus;

/* A free that waits: the block of a slot, freed on a stream. A slot can be taken again and wait
 * again while an entry from before is in the queue, so entries are numbered. */
typedef struct frag_wait {
    uint64_t number; /* from 1 */
    uint32_t slot;
    uint32_t stream;
} frag_wait;

/* Where a stretch that is done again asks for, or gives back, what is not of the small requests; of
 * these the levels, as they have changed since it began. */
typedef struct frag_stretch_part {
    uint64_t event;         /* or its end */
    uint64_t requested_max; /* since the part before */
    uint64_t allocated_max;
    uint64_t requested_bytes; /* now */
    uint64_t allocated_bytes;
} frag_stretch_part;

enum { FRAG_STRETCH_PARTS_MAX = 64, FRAG_AGAIN_PERIOD_MAX = 8 };

/* Stretches that are done again, one right behind the other (replay_again.c). */
typedef struct frag_again_run {
    const frag_event *next; /* the run goes on if it is the next event; NULL: there is none */
    uint32_t stretch;
    uint64_t version; /* of small memory, when the last one began */
    /* Where the small block was that the last ones began with, the last one first. */
    uint64_t addresses[FRAG_AGAIN_PERIOD_MAX];
    uint32_t period;     /* after so many it is where it was */
    uint32_t behind;     /* of so many the small requests are still to be replayed */
    uint32_t parted;     /* the stretch that parts are of, from 1 */
    uint32_t part_count; /* 0: it has none that could be used */
    uint32_t small;      /* which of its tensors is small; FRAG_STRETCH_TENSORS_MAX: none */
    frag_stretch_part parts[FRAG_STRETCH_PARTS_MAX];
} frag_again_run;

typedef struct frag_note_keeper frag_note_keeper;   /* replay_notes.c */
typedef struct frag_use_keeper frag_use_keeper;     /* replay_use.c */
typedef struct frag_place_keeper frag_place_keeper; /* replay_places.c */
typedef struct frag_audit_keeper frag_audit_keeper; /* replay_audit.c */

struct frag_replay {
    const frag_recording *recording;
    const frag_trace *trace;
    const frag_policy_ops *ops;
    frag_policy *policy;
    frag_policy_plan *own_plan; /* made for this replay alone; NULL: none */
    bool is_watched;            /* requests and frees go by frag_notes_alloc and frag_notes_free */
    frag_grant_observer *on_grant;
    void *on_grant_context;
    frag_note_keeper *notes;   /* NULL: nobody takes notes */
    frag_use_keeper *uses;     /* NULL: no block was used by another stream so far */
    frag_place_keeper *places; /* NULL: no request names its place, or the policy does not care */
    frag_audit_keeper *audit;  /* NULL: the policy is not checked */
    frag_device *device;
    frag_arena arena;
    frag_slot *slots;
    /* Surpluses of 4 GiB and more: a short list, since there is no room for many such blocks. */
    frag_large_surplus *large;
    size_t large_count;
    size_t large_capacity;
    frag_wait *waiting; /* in order of the frees; stale entries are skipped */
    size_t waiting_start;
    size_t waiting_end;
    size_t waiting_capacity;
    uint64_t *wait_numbers; /* by slot: its entry; NULL: nothing has waited so far */
    uint64_t wait_count;    /* entries ever made */
    uint64_t waiting_count;
    uint64_t waiting_bytes; /* of their blocks: active is allocated and these */
    const frag_event *now;  /* the event being replayed */
    frag_level level;
    uint64_t attempt_bytes;  /* of the block of a request that failed when recorded, while held */
    uint64_t reserved_seen;  /* device->reserved_bytes then */
    uint64_t reserved_since; /* the event from which it has been so */
    /* The peak is what is held at the start, and nothing has changed since. It is told at the first
     * event, as it is there behind it, unless that gives some of it back. */
    bool is_peak_of_start;
    bool is_oom_skipped;
    bool is_attempt_kept;
    uint64_t end; /* events to replay */
    uint64_t since_check;
    bool has_stopped;
    frag_again_run again;
    frag_replay_result result;
    frag_replay_options options;
    char oom_message[FRAG_OOM_MESSAGE_BYTES]; /* of the last OOM, where notes are taken */
    char named[256];                          /* the policy, and of which shared object */
    bool is_foreign;                          /* it is of one */
};

/* Around what calls the policy: an assertion that fails there blames one that is not ours. */
static inline const char *frag_replay_blame(const frag_replay *replay)
{
    return frag_assert_blame(replay->is_foreign ? replay->named : NULL);
}

/* The number of the event being replayed. */
static inline uint64_t frag_replay_event(const frag_replay *replay)
{
    return (uint64_t)(replay->now - replay->trace->events);
}

static inline void frag_replay_go_to(frag_replay *replay, uint64_t event)
{
    replay->now = replay->trace->events + event;
}

/* Surpluses of 4 GiB and more, and those of blocks in use by other streams, which are kept apart.
 */
uint64_t frag_slot_large_surplus(const frag_replay *replay, uint32_t number);
void frag_slot_keep_large(frag_replay *replay, uint32_t number, uint64_t bytes);
void frag_slot_forget_large(frag_replay *replay, uint32_t number);

/* Block bytes less requested bytes. */
static inline uint64_t frag_slot_surplus(const frag_replay *replay, uint32_t number)
{
    uint32_t surplus = replay->slots[number].surplus_bytes;
    if (FRAG_LIKELY(surplus != FRAG_SURPLUS_ELSEWHERE))
        return surplus;
    return frag_slot_large_surplus(replay, number);
}

static inline void frag_slot_fill(frag_replay *replay, uint32_t number, uint64_t requested,
                                  uint64_t block, uint32_t handle)
{
    uint64_t surplus = block - requested;
    replay->slots[number] = (frag_slot){requested, (uint32_t)surplus, handle};
    if (FRAG_UNLIKELY(surplus >= FRAG_SURPLUS_ELSEWHERE))
        frag_slot_keep_large(replay, number, surplus);
}

/* Is a block held for this slot? Slots that were never used are zero, which is no one's handle 0.
 */
static inline bool frag_slot_is_held(const frag_replay *replay, uint32_t number)
{
    const frag_slot *at = &replay->slots[number];
    return at->handle != FRAG_HANDLE_NONE && (at->requested_bytes & ~FRAG_SLOT_WAITING) != 0;
}

/* The request of a slot has failed. */
static inline void frag_slot_lack(frag_replay *replay, uint32_t number)
{
    replay->slots[number] = (frag_slot){0, FRAG_SURPLUS_ELSEWHERE, FRAG_HANDLE_NONE};
}

static inline void frag_slot_clear(frag_replay *replay, uint32_t number)
{
    frag_slot *at = &replay->slots[number];
    at->handle = FRAG_HANDLE_NONE;
    if (FRAG_UNLIKELY(at->surplus_bytes == FRAG_SURPLUS_ELSEWHERE))
        frag_slot_forget_large(replay, number);
}

/* Brings the level up to date with the two sums that the loop keeps for itself. */
static inline void frag_replay_set_level(frag_replay *replay, uint64_t requested_bytes,
                                         uint64_t allocated_bytes)
{
    replay->level.requested_bytes = requested_bytes;
    replay->level.allocated_bytes = allocated_bytes;
    replay->level.active_bytes = allocated_bytes + replay->waiting_bytes;
}

/* ---- replay_use.c: blocks used by other streams than their own (use, sync events) */

bool frag_use_has(const frag_replay *replay, uint32_t number);
uint64_t frag_use_surplus(const frag_replay *replay, uint32_t number);
/* A stream uses the block of a slot. */
void frag_use_add(frag_replay *replay, uint32_t number, uint32_t stream);
/* The program has freed such a block on a stream: it is handed to a policy that takes uses, and
 * waits here for other policies. Its slot is free at once. */
void frag_use_free(frag_replay *replay, uint32_t number, uint32_t stream);
/* The block is safe to reuse: policies that take uses call this. */
void frag_use_complete(void *context, frag_handle handle);
/* A stream (or FRAG_STREAM_ALL) has done its work so far. */
void frag_use_sync(frag_replay *replay, uint32_t stream);
/* A block that is waiting, by handle; NULL: none. */
typedef struct frag_held {
    uint64_t requested_bytes;
    uint64_t block_bytes;
    uint32_t handle; /* FRAG_HANDLE_NONE: recycled */
    uint32_t stream; /* on which it was freed */
    uint32_t waits;  /* streams it waits for, where the engine does the waiting */
    uint32_t next;   /* recycled records */
} frag_held;
const frag_held *frag_use_held(const frag_replay *replay, uint32_t handle);
uint32_t frag_use_handle_max(const frag_replay *replay);
void frag_use_destroy(frag_use_keeper *uses);
/* For checkpoints; of a replay that has uses. */
void frag_use_keep(const frag_replay *replay, frag_image *image);
void frag_use_return(frag_replay *replay, frag_image *image);

/* ---- replay_places.c: requests that name their place */

/* All are of the event being replayed, and of a replay that has places, but for the first. */
void frag_places_create(frag_replay *replay);
/* Before the request is made. */
void frag_places_tell(frag_replay *replay);
/* A request was served, whether it named its place or not. */
void frag_places_note(frag_replay *replay, uint64_t address);
/* For checkpoints. */
void frag_places_keep(const frag_replay *replay, frag_image *image);
void frag_places_return(frag_replay *replay, frag_image *image);

/* ---- replay_again.c */

/* The event of a shortened trace that does a stretch again. */
void frag_replay_do_again(frag_replay *replay, const frag_event *event);
/* Events up to end, at once (replay.c). */
void frag_replay_run_batch(frag_replay *replay, uint64_t end);

/* ---- replay_audit.c: does the policy keep its contract? */

frag_audit_keeper *frag_audit_create(void);
void frag_audit_destroy(frag_audit_keeper *audit); /* NULL is allowed */
/* All are of a replay that is checked. A request was answered, or a block taken over. */
void frag_audit_note(frag_replay *replay, uint64_t requested_bytes, const frag_grant *grant);
/* Was one of these answers against the rules? */
bool frag_audit_has_failed(const frag_replay *replay);
/* Examines the policy as it is now. false: what it was found to break, and after which event. */
bool frag_audit_run(const frag_replay *replay, frag_error *error);

/* ---- replay_notes.c: notes of everything that happens */

void frag_notes_begin(frag_replay *replay, const frag_replay_options *options);
void frag_notes_end(frag_replay *replay);
/* Ask the policy, and show its answer to those who watch. */
bool frag_notes_alloc(frag_replay *replay, const frag_request *request, frag_grant *grant);
void frag_notes_free(frag_replay *replay, frag_handle handle, uint32_t stream);

/* Every request and free that is not one of the loop goes this way. */
static inline bool frag_replay_ask(frag_replay *replay, const frag_request *request,
                                   frag_grant *grant)
{
    return replay->is_watched ? frag_notes_alloc(replay, request, grant)
                              : replay->ops->alloc(replay->policy, request, grant);
}

static inline void frag_replay_give_back(frag_replay *replay, frag_handle handle, uint32_t stream)
{
    if (replay->is_watched)
        frag_notes_free(replay, handle, stream);
    else
        replay->ops->free(replay->policy, handle, stream);
}

/* The program has freed a block which waits for a stream. */
void frag_note_requested(frag_replay *replay, uint32_t handle);
void frag_note_completed(frag_replay *replay, uint32_t handle);
void frag_note_adopted(frag_replay *replay, uint32_t handle, uint64_t address, uint64_t block_bytes,
                       uint64_t event);
void frag_note_adopted_segment(frag_replay *replay, const frag_span *segment, uint64_t event);
void frag_note_oom(frag_replay *replay, const frag_request *request);

/* The program has freed the block of a slot on a stream; it waits. */
void frag_replay_wait(frag_replay *replay, uint32_t number, uint32_t stream);
/* Reserved bytes may have a new peak. */
void frag_replay_note_peak(frag_replay *replay);
/* A request of so many bytes could not be served: keeps the first OOM, and stops the run unless it
 * is to continue. */
void frag_replay_run_out(frag_replay *replay, const frag_request *request);
/* replay_start.c: makes the state from before the trace. false: it does not fit together. */
bool frag_replay_begin(frag_replay *replay, frag_error *error);

#endif
