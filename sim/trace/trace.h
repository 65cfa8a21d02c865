/* Traces in memory: what a program asked of its allocator, in the form that is replayed.
 *
 * A recording is a file someone's program produced; it holds one trace per device. A trace is an
 * array of 16-byte events and optional columns beside it, all validated by its reader
 * (frag_trace_check), so that replay decides nothing about input. On disk: docs/trace-format.md. */
#ifndef FRAG_TRACE_TRACE_H
#define FRAG_TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"
#include "sim/pool_id.h"

/* X(enumerator, text name) in the order of their codes on disk. */
#define FRAG_OPS(X)                                                                                \
    X(ALLOC, "alloc")               /* slot, stream, bytes requested */                            \
    X(FREE, "free")                 /* slot; DEFERRED: the block stays busy until its complete */  \
    X(USE, "use")                   /* slot; stream that now uses the block too */                 \
    X(COMPLETE, "complete")         /* slot whose deferred free has become safe */                 \
    X(SYNC, "sync")                 /* stream, or FRAG_STREAM_ALL */                               \
    X(EMPTY_CACHE, "empty_cache")   /* slot = pool index, or FRAG_SLOT_NONE: every pool */         \
    X(LIMIT, "limit")               /* bytes = limit; RATIO: frag_ratio_code of the capacity */    \
    X(POOL_BEGIN, "pool_begin")     /* slot = pool index; stream routed to it, or ALL */           \
    X(POOL_END, "pool_end")         /* slot = pool index */                                        \
    X(POOL_RELEASE, "pool_release") /* slot = pool index: its owner is gone */                     \
    X(CONFIG, "config")             /* slot = string: settings from here on */                     \
    X(MARK, "mark")                 /* slot = string: a point; BEGIN, END: a phase */              \
    X(SEGMENT_ALLOC,                                                                               \
      "segment_alloc")              /* observed: address, bytes, stream; INITIAL: held at start */ \
    X(SEGMENT_FREE, "segment_free") /* observed */                                                 \
    X(SEGMENT_MAP, "segment_map")   /* observed; INITIAL: an expandable range held at start */     \
    X(SEGMENT_UNMAP, "segment_unmap") /* observed */                                               \
    X(OOM, "oom")                 /* observed: bytes asked of the device; address = bytes free */  \
    X(POOL_CREATE, "pool_create") /* slot = pool index: an owner holds it */                       \
    X(POOL_ON_OOM, "pool_on_oom") /* slot = pool index; BEGIN, END: it serves others' OOMs */      \
    X(POOL_NO_SPLIT, "pool_no_split") /* slot = pool index: its blocks are whole segments */       \
    X(CAPTURE_BEGIN, "capture_begin") /* a CUDA graph is captured from here on */                  \
    X(CAPTURE_END, "capture_end")                                                                  \
    X(STATS_RESET, "stats_reset") /* bytes: FRAG_RESET_PEAKS, FRAG_RESET_SUMS */

typedef enum frag_op {
#define FRAG_OP_ENUM(name, text) FRAG_OP_##name,
    FRAG_OPS(FRAG_OP_ENUM)
#undef FRAG_OP_ENUM
        FRAG_OP_COUNT
} frag_op;

enum {
    FRAG_EVENT_INITIAL = 1,  /* state from before the recording began; only in the prologue */
    FRAG_EVENT_DEFERRED = 2, /* free: a complete follows later */
    FRAG_EVENT_FAILED = 4,   /* alloc: ran out of memory when recorded; slot is FRAG_SLOT_NONE */
    FRAG_EVENT_BEGIN = 8,    /* mark, pool_on_oom */
    FRAG_EVENT_END = 16,     /* mark, pool_on_oom */
    FRAG_EVENT_RATIO = 32,   /* limit */
    /* Concluded by the importer, not recorded. An INITIAL alloc is there, but the size of its
     * block is a guess. */
    FRAG_EVENT_INFERRED = 64,
    /* alloc: no place is looked for; the program names one, which had the same address when it was
     * recorded: that of an earlier alloc of its pool, or right behind the placed one before. */
    FRAG_EVENT_PLACED = 128
};

/* What a stats_reset resets; a program can do each apart. */
enum { FRAG_RESET_PEAKS = 1, FRAG_RESET_SUMS = 2 };

#define FRAG_SLOT_NONE UINT32_MAX
#define FRAG_STREAM_ALL UINT16_MAX
#define FRAG_REQUEST_BYTES_MAX (((uint64_t)1 << 56) - 1)
/* For people: what a request may have, and why no more. */
#define FRAG_REQUEST_BYTES_RANGE "1 to 2^56 - 1, which is more than any GPU can address"
/* Of all requests of a trace that were served. */
#define FRAG_TRACE_BYTES_MAX ((uint64_t)1 << 62)

typedef struct frag_event {
    uint8_t op;
    uint8_t flags;
    uint16_t stream; /* index into stream_handles */
    uint32_t slot;
    uint64_t bytes;
} frag_event;

/* The op, and above it the flags that make an alloc or a free another one. */
static inline uint32_t frag_event_kind(const frag_event *event)
{
    uint32_t flags = FRAG_EVENT_FAILED | FRAG_EVENT_DEFERRED | FRAG_EVENT_PLACED;
    return (event->op | (uint32_t)event->flags << 8) & (flags << 8 | 0xffu);
}

typedef struct frag_frame {
    uint32_t name; /* string ids */
    uint32_t file;
    uint32_t line;
} frag_frame;

typedef struct frag_site {
    uint32_t first; /* into site_frames, innermost frame first */
    uint32_t count;
} frag_site;

typedef struct frag_trace_stats {
    uint64_t op_counts[FRAG_OP_COUNT];
    uint64_t request_count; /* allocs of the program: not INITIAL; FAILED ones included */
    uint64_t initial_count; /* blocks live at the start */
    uint64_t initial_bytes;
    uint64_t failed_count;
    uint64_t requested_bytes_total;
    uint64_t peak_requested_bytes; /* FAILED requests do not count */
    uint64_t peak_requested_event;
    uint64_t peak_attempted_bytes; /* a FAILED request and what was held then; 0 when none failed */
    uint64_t end_requested_bytes;  /* still live at the end */
    uint64_t live_count_max;
    uint64_t observed_reserved_peak_bytes; /* from observed events; 0 when none */
    uint64_t observed_reserved_end_bytes;
    uint64_t time_first_ns;
    uint64_t time_last_ns;
} frag_trace_stats;

/* ---- what a shortened trace does once more
 * A generated trace that is replayed and never written need not hold what its program does again:
 * an event of this op does events that stand before it once more. No reader makes such events, and
 * whatever is not of replays refuses them. */
#define FRAG_OP_AGAIN FRAG_OP_COUNT /* slot: index of agains */
/* An alloc that is done no more while its slot is held. */
#define FRAG_OP_ONCE (FRAG_OP_COUNT + 1)

enum { FRAG_STRETCH_TENSORS_MAX = 3 };

/* Events [first, end), which may hold shorter stretches. Each of its allocs has a slot of its own,
 * which nothing outside uses. It gives back all that it takes, but for what it takes once, and for
 * some blocks that it leaves in the place of others that were there before. */
typedef struct frag_stretch {
    uint64_t first;
    uint64_t end;
    uint64_t request; /* its first alloc (or what is taken once), among those in the trace */
    uint32_t count;   /* of blocks in the place of others */
    uint32_t from[FRAG_STRETCH_TENSORS_MAX]; /* slots of the others, which it gives back, */
    uint32_t to[FRAG_STRETCH_TENSORS_MAX];   /* and of these */
    /* What doing it once more does (frag_trace_measure_short); requests is 0: it is not done. */
    uint64_t from_bytes[FRAG_STRETCH_TENSORS_MAX];
    uint64_t to_bytes[FRAG_STRETCH_TENSORS_MAX];
    uint64_t rise_bytes; /* the most that is requested in it, beyond what was before */
    uint64_t requests;
    uint64_t total_bytes; /* of these */
} frag_stretch;

/* A stretch is done again: the blocks of slots `at` move to its slots `from`, and when it is over
 * those of its slots `to` come back there. */
typedef struct frag_again {
    uint32_t stretch;
    bool is_done; /* false: its first time is just over, and its blocks only go from `to` to `at` */
    uint32_t at[FRAG_STRETCH_TENSORS_MAX];
} frag_again;

/* The events of one device. Columns are NULL or event_count long; 0 means "none" in each. */
typedef struct frag_trace {
    uint32_t device;
    uint32_t slot_count; /* slots are below this */
    uint64_t event_count;
    frag_event *events;
    uint64_t *addresses;   /* observed address of allocs, frees and segment events */
    uint64_t *times_ns;    /* Unix time */
    uint32_t *sites;       /* call-site id */
    uint32_t *pools;       /* pool index */
    uint32_t *notes;       /* string id: annotation of the event itself */
    uint64_t *block_bytes; /* observed block size of INITIAL allocs */
    uint64_t *stream_handles;
    uint32_t stream_count;
    frag_pool_id *pool_ids; /* [0] is the default pool */
    uint32_t pool_count;
    uint64_t page_bytes; /* of the device that it was made for; 0: as devices have it */
    frag_trace_stats stats;
    char digest[FRAG_DIGEST_TEXT_BYTES];
    struct frag_trace_figures *figures; /* instead of events, when they are enough */
    /* ---- of a shortened trace */
    frag_stretch *stretches;
    uint32_t stretch_count;
    frag_again *agains;
    uint32_t again_count;
} frag_trace;

typedef struct frag_recording {
    char *name; /* for people: the file's name without folders */
    /* Key and value string ids: facts about the recorded program and allocator, in order. */
    uint32_t (*metadata)[2];
    uint32_t metadata_count;
    frag_strings strings; /* id 0 is "" */
    frag_frame *frames;
    uint32_t frame_count;
    uint32_t *site_frames;
    uint32_t site_frame_count;
    frag_site *sites; /* id 0 is the empty stack */
    uint32_t site_count;
    frag_trace *traces; /* in order of device */
    uint32_t trace_count;
} frag_recording;

const char *frag_op_name(frag_op op);
bool frag_op_find(const char *name, size_t length, frag_op *op);

/* The raw handle behind a stream's number; 0, the first stream, where the trace has none. */
static inline uint64_t frag_trace_stream_handle(const frag_trace *trace, uint32_t stream)
{
    return stream < trace->stream_count ? trace->stream_handles[stream] : 0;
}

/* 0 where the trace has no pools. */
static inline uint32_t frag_trace_pool(const frag_trace *trace, uint64_t event)
{
    return trace->pools != NULL ? trace->pools[event] : 0;
}

/* The first event behind the state at the start, from where on there is something to see; the last
 * event where there is none behind it, 0 of a trace without events. */
uint64_t frag_trace_start(const frag_trace *trace);

/* What no policy can serve every request with less than: the most bytes that are requested at one
 * time. A request that failed when recorded counts while it is tried, as everywhere in a run. */
static inline uint64_t frag_trace_bound_bytes(const frag_trace *trace)
{
    const frag_trace_stats *stats = &trace->stats;
    return stats->peak_attempted_bytes > stats->peak_requested_bytes ? stats->peak_attempted_bytes
                                                                     : stats->peak_requested_bytes;
}

/* The trace that a command takes where one is wanted and no device is named: that with the greatest
 * peak of requested bytes, the first of equals. NULL: the recording holds none. */
const frag_trace *frag_recording_main_trace(const frag_recording *recording);
/* The trace of that device; NULL: the recording has none. */
const frag_trace *frag_recording_device_trace(const frag_recording *recording, uint64_t device);

/* Is this something the recorded allocator did (never an input of a policy)? */
static inline bool frag_op_is_observed(uint32_t op)
{
    return op >= FRAG_OP_SEGMENT_ALLOC && op <= FRAG_OP_OOM;
}

/* Does the op say something about a stream, a slot (or what stands in its place)? Those that do not
 * have 0 there. */
bool frag_op_has_stream(uint32_t op);
bool frag_op_has_slot(uint32_t op);
/* Is its slot that of a block which an alloc before it took: free, use and complete? */
bool frag_op_is_of_block(uint32_t op);

/* The flags that may stand beside an op. */
uint8_t frag_op_flags(uint32_t op);

/* The value of a metadata key, or NULL. The string lives as long as the recording is not changed.
 */
const char *frag_recording_get(const frag_recording *recording, const char *key);

/* Metadata of a recording that is a packing problem: where it comes from. Its times are the
 * problem's own, and each alloc has a note: the name of the buffer and, where it is not 1,
 * " alignment=N". Loading keeps both whatever else is dropped. */
#define FRAG_PROBLEM_KEY "problem"
/* Of a recording with PLACED requests: without its addresses their places are not known. */
#define FRAG_PLACED_KEY "placed"
bool frag_recording_is_problem(const frag_recording *recording);
/* Is it another one without the columns that a replay mostly has no need of? */
bool frag_recording_needs_columns(const frag_recording *recording);

/* A share of the capacity, 0 to 1, as the number stored in the bytes of a limit with RATIO. Whole
 * billionths are that number of them, as in files from before format 3; any other share is the bits
 * of its double, which are a larger number. Shares below 2^-1022 are less than a byte of any
 * capacity and are taken as 0. */
uint64_t frag_ratio_code(double ratio);
double frag_ratio_value(uint64_t code);
/* Is it a number that frag_ratio_code gives? */
bool frag_ratio_is_code(uint64_t code);

/* Validates a whole trace: ops, flags, slots in their life cycle, streams, pools, strings, sites,
 * sizes. On failure the sentence names the event. */
bool frag_trace_check(const frag_recording *recording, const frag_trace *trace, frag_error *error);

/* Looks at events while their reader still has them in the nearest cache. It reports nothing: at an
 * event that does not pass (yet: a table may be missing) it stops, for frag_trace_accept to judge.
 */
typedef struct frag_trace_scan frag_trace_scan;
frag_trace_scan *frag_trace_scan_create(void);
/* Goes on to the event before event_count; those before it are there to stay. */
void frag_trace_scan_to(frag_trace_scan *scan, const frag_recording *recording,
                        const frag_trace *trace, uint64_t event_count);
void frag_trace_scan_destroy(frag_trace_scan *scan);

/* frag_trace_check and frag_trace_measure in one pass: what readers of large files use. scan is
 * NULL or has gone over some of the events, or all. */
bool frag_trace_accept(const frag_recording *recording, frag_trace *trace, frag_trace_scan *scan,
                       frag_error *error);

/* Fills stats and slot_count from the events of a checked trace. */
void frag_trace_measure(frag_trace *trace);

/* What replays and bounds need of the stats of a shortened trace: requests, their bytes and their
 * peak. Our own generator made it: what cannot be is an assertion. */
void frag_trace_measure_short(frag_trace *trace);

/* Fills trace->digest: XXH3-128 over everything the trace says (docs/trace-format.md, "digest"). */
void frag_trace_digest(const frag_recording *recording, frag_trace *trace);

/* Room for so many events, at least one, in the columns that a trace has; old: what there was.
 * Zeros are added. */
void frag_trace_resize_columns(frag_trace *trace, size_t old, size_t capacity);
void frag_trace_destroy(frag_trace *trace);
void frag_recording_destroy(frag_recording *recording);

#endif
