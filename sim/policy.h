/* The contract every allocator policy keeps: one constant table of functions, state behind it.
 *
 * A policy serves requests with blocks cut out of segments it gets from the device. It keeps all
 * its records in host memory from the arena it is given and never touches the simulated memory. It
 * knows no trace, no file and no command line. The engine counts bytes by watching grants and
 * device calls. How to add one: docs/adding-a-policy.md. */
#ifndef FRAG_SIM_POLICY_H
#define FRAG_SIM_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/memory.h"
#include "sim/device.h"
#include "sim/pool_id.h"

#define FRAG_POLICY_ABI 13

/* ---- options */
typedef enum frag_option_type {
    FRAG_OPTION_BYTES, /* 64KiB; "unlimited" is FRAG_UNLIMITED */
    FRAG_OPTION_COUNT, /* 12; "unlimited" is FRAG_UNLIMITED when max is FRAG_UNLIMITED */
    FRAG_OPTION_RATIO, /* 0.8 */
    FRAG_OPTION_FLAG,  /* true, false (True, False, 1, 0) */
    FRAG_OPTION_ENUM,  /* one of choices */
    FRAG_OPTION_TEXT   /* checked by the policy's create */
} frag_option_type;

typedef struct frag_option {
    const char *key;
    frag_option_type type;
    const char *default_text; /* parsed like the user's */
    const char *choices;      /* ENUM: "a|b|c" */
    uint64_t min;             /* BYTES, COUNT */
    uint64_t max;
    double ratio_min; /* RATIO */
    double ratio_max;
    const char *help; /* one line */
} frag_option;

typedef struct frag_option_value {
    uint64_t number;  /* BYTES, COUNT; FLAG 0 or 1; ENUM index into choices */
    double ratio;     /* RATIO */
    const char *text; /* as given or the default; never NULL */
    bool is_given;    /* by the user */
} frag_option_value;

/* ---- requests and grants */
typedef uint32_t frag_handle; /* a policy's name for a live block; dense and small */
#define FRAG_HANDLE_LIMIT ((frag_handle)1 << 28) /* all are below it */

typedef struct frag_request {
    uint64_t bytes;  /* 1 to FRAG_REQUEST_BYTES_MAX */
    uint32_t stream; /* dense index; 0 to stream_count - 1 */
    uint32_t pool;   /* dense index; 0 is the default pool */
} frag_request;

typedef struct frag_grant {
    uint64_t address;
    uint64_t block_bytes; /* >= the request's */
    frag_handle handle;
} frag_grant;

/* Upper limits of what a run will ask for, for sizing tables; says nothing about order. */
typedef struct frag_policy_limits {
    uint64_t request_count; /* allocs in all */
    /* Blocks live (or waiting) at once, without those that wait in a policy that takes uses. */
    uint32_t live_count_max;
    uint32_t stream_count; /* at least 1 */
    uint32_t pool_count;   /* at least 1 */
    uint64_t requested_bytes_total;
    uint64_t peak_requested_bytes;
    uint32_t initial_segment_count; /* for adopt */
    uint64_t use_count;             /* uses of blocks by other streams */
} frag_policy_limits;

/* What a policy makes of a whole trace before it is run (policy_engine.h); each defines its own
 * behind this name. */
typedef struct frag_policy_plan frag_policy_plan;

typedef struct frag_policy_setup {
    const frag_option_value *values; /* in the order of the options table */
    frag_device *device;
    frag_arena *arena;
    frag_policy_limits limits;
    /* Facts of the recording that an option value such as "auto" may refer to; "" when not known.
     */
    const char *recorded_version;
    /* How the program names its streams (stream_count) and private pools (pool_count). They outlive
     * the policy. */
    const uint64_t *stream_handles;
    const frag_pool_id *pool_ids;
    /* A policy that takes `use` calls this when a block that was used by another stream, and has
     * been freed since, is free and safe to reuse: once for each. */
    void (*on_complete)(void *context, frag_handle handle);
    void *on_complete_context;
    /* What its planner made of this trace; outlives the policy. NULL: no trace is known in advance,
     * and the policy serves requests as they come. */
    const frag_policy_plan *plan;
    /* The table itself, for one that stands for several policies. */
    const struct frag_policy_ops *ops;
} frag_policy_setup;

/* ---- private pools: what the program does with one */
typedef enum frag_pool_change {
    FRAG_POOL_CREATED,     /* one more owner */
    FRAG_POOL_BEGUN,       /* one more owner, and requests go there: of one stream, or of all */
    FRAG_POOL_ENDED,       /* requests go there no more */
    FRAG_POOL_RELEASED,    /* one owner less */
    FRAG_POOL_SERVES_OOM,  /* may serve requests that find no other memory */
    FRAG_POOL_KEEPS_TO_IT, /* ... and no more */
    FRAG_POOL_UNSPLIT      /* its blocks are whole segments */
} frag_pool_change;

/* ---- walking the layout */
typedef enum frag_span_kind { FRAG_SPAN_SEGMENT, FRAG_SPAN_BLOCK, FRAG_SPAN_HOLE } frag_span_kind;

typedef struct frag_span {
    frag_span_kind kind;
    uint64_t address;
    uint64_t bytes; /* segments: as counted in reserved bytes */
    uint32_t stream;
    uint32_t pool;
    frag_handle handle;        /* BLOCK: granted or waiting for its free */
    uint64_t page_slack_bytes; /* BLOCK: the part lost because the device gives whole pages only */
    bool is_growing;           /* SEGMENT: a mapped range that can grow, not one cudaMalloc */
    bool is_small_pool;        /* SEGMENT: where a policy has such a thing */
} frag_span;

typedef void frag_span_visitor(void *context, const frag_span *span);

/* ---- state taken over from before the trace */
typedef struct frag_adopted_block {
    uint64_t address;
    uint64_t block_bytes;
    uint64_t requested_bytes;
    frag_handle handle; /* out */
} frag_adopted_block;

typedef struct frag_policy frag_policy; /* each policy defines its own behind this name */

/* What the engine and searches can use beyond this table (policy_engine.h). */
typedef struct frag_policy_engine frag_policy_engine;

/* What a policy does, in the six choices that every policy makes; `fraglab policies NAME` prints
 * them. */
typedef struct frag_policy_rules {
    const char *rounding; /* what a request is rounded to */
    const char *takes;    /* which free block a request gets */
    const char *cuts;     /* when a block is split, and which end is handed out */
    const char *joins;    /* when and with what a freed block is coalesced */
    const char *grows;    /* what it asks the device for, and what it gives back when */
    const char *streams;  /* whose blocks a stream gets */
} frag_policy_rules;

typedef struct frag_policy_ops {
    const char *name;               /* as typed by the user: "best-fit" */
    const char *summary;            /* one line of help */
    const char *source;             /* paper, or program and version, that the algorithm follows */
    const char *bound;              /* proved bound, "" when none */
    const char *checked;            /* against what of the real program it is held; NULL: nothing */
    const frag_policy_rules *rules; /* NULL: not described */
    const frag_option *options;     /* ends with key NULL */
    /* The key of the option that takes a whole settings string ("key:value,..."), which a program
     * has in its environment and a recording keeps: NAME:env, NAME:recorded. NULL: there is none.
     */
    const char *conf_option;
    /* The key of the option that limits the program to a share of the capacity; NULL: none. */
    const char *fraction_option;

    /* Bytes of arena the run may need at most (address space, not memory). */
    size_t (*arena_bytes)(const frag_policy_limits *limits, const frag_option_value *values);
    /* NULL on failure (an option value that does not fit, FRAG_E_USAGE). */
    frag_policy *(*create)(const frag_policy_setup *setup, frag_error *error);

    /* false: out of memory, after everything the policy tries before giving up. */
    bool (*alloc)(frag_policy *policy, const frag_request *request, frag_grant *grant);
    /* The block is free and safe to reuse: frees that wait for a stream arrive only when they are
     * over. stream: on which the program freed it; often, but not always, that of the request. */
    void (*free)(frag_policy *policy, frag_handle handle, uint32_t stream);

    /* ---- optional: NULL when the policy does not care */
    void (*empty_cache)(frag_policy *policy,
                        uint32_t pool); /* FRAG_POOL_ALL, or one private pool */
    void (*set_limit)(frag_policy *policy, uint64_t limit_bytes);
    /* The limit is a share, 0 to 1, of the capacity of the device, which has one. NULL: set_limit
     * is called with so many whole bytes. */
    void (*set_share)(frag_policy *policy, double share);
    /* The block is used by another stream from now on: its free will wait for that stream. The
     * policy then keeps the block after free until it is safe, and tells on_complete. false: its
     * free need not wait for that. Policies without this get `free` late instead. */
    bool (*use)(frag_policy *policy, frag_handle handle, uint32_t stream);
    /* The program has freed the block, but it is known that it is not safe yet: free comes later.
     */
    void (*defer)(frag_policy *policy, frag_handle handle);
    /* stream: of which requests go there (BEGUN); FRAG_STREAM_EVERY: all. */
    void (*pool_change)(frag_policy *policy, frag_pool_change change, uint32_t pool,
                        uint32_t stream);
    void (*capture)(frag_policy *policy, bool begins); /* a CUDA graph is captured */
    /* The program has waited for a stream, or for all (FRAG_STREAM_EVERY). Frees that waited for
     * that have arrived. */
    void (*sync)(frag_policy *policy, uint32_t stream);
    /* The program changed the allocator's settings; text is in the framework's form. */
    bool (*configure)(frag_policy *policy, const char *text, frag_error *error);
    /* After alloc has returned false: the message the program got, cut to size - 1 characters.
     * false: the policy refused on its own before the device could, which is no OOM event. */
    bool (*describe_oom)(const frag_policy *policy, const frag_request *request, char *text,
                         size_t size);
    /* Takes over one segment and its live blocks, in address order. Adopt calls come before any
     * alloc. false: the device has no room for it. */
    bool (*adopt)(frag_policy *policy, const frag_span *segment, frag_adopted_block *blocks,
                  uint32_t block_count);
    /* Can it, with its options, take over mapped ranges too (segments with is_growing)? NULL: no.
     */
    bool (*adopts_ranges)(const frag_policy *policy);
    /* The bytes a request is rounded to before a block is looked for; NULL: the block's own size.
     */
    uint64_t (*rounded)(const frag_policy *policy, uint64_t bytes);

    /* Every segment, each followed by its blocks and holes in address order, without gaps; a hole
     * is maximal unless the policy itself keeps neighbours apart. Order of segments: any fixed one.
     */
    void (*walk)(const frag_policy *policy, frag_span_visitor *visit, void *context);
    /* Audits every invariant of the policy's own structures. false: FRAG_E_INPUT with what is
     * broken. */
    bool (*check)(const frag_policy *policy, frag_error *error);
    const frag_policy_engine *engine; /* NULL: nothing of it */
} frag_policy_ops;

/* The program limits the policy to a share of the device's capacity. false: the device has none, or
 * the policy knows no limit. */
static inline bool frag_policy_set_share(const frag_policy_ops *ops, frag_policy *policy,
                                         frag_device *device, double share)
{
    if (ops->set_share == NULL && ops->set_limit == NULL)
        return false;
    if (device->capacity_bytes == FRAG_UNLIMITED)
        return frag_device_capacity(device) != FRAG_UNLIMITED; /* one that has some would limit */
    if (ops->set_share != NULL)
        ops->set_share(policy, share);
    else
        ops->set_limit(policy, (uint64_t)(share * (double)frag_device_capacity(device)));
    return true;
}

#define FRAG_POOL_ALL UINT32_MAX
#define FRAG_STREAM_EVERY UINT32_MAX

/* A policy in a shared object (--policy ./mine.so) exports one of these as `frag_policy_exported`.
 */
typedef struct frag_policy_export {
    uint32_t abi; /* FRAG_POLICY_ABI of the header it was built with */
    uint32_t
        ops_bytes; /* the size of its table, which tells headers apart that differ all the same */
    const frag_policy_ops *ops;
} frag_policy_export;

#define FRAG_POLICY_EXPORT(ops)                                                                    \
    extern const frag_policy_export frag_policy_exported;                                          \
    const frag_policy_export frag_policy_exported = {FRAG_POLICY_ABI, sizeof(frag_policy_ops),     \
                                                     &(ops)}

#endif
