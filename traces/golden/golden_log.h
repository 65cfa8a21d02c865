/* Golden logs: what an allocator library itself did, request by request.
 *
 * JSON Lines, plain or compressed: a head, then one line for each request of a random script with
 * the address or the OOM it got, the device calls and the trace events it caused; between them
 * statistics, at the end the segments (docs/trace-format.md, "golden logs"). A log is read into
 * memory whole, in proportion to the file, and can be made a recording, whose events the lines
 * know. Logs of the pools of other frameworks have a form of their own (golden_peers.c): no
 * messages, trace events and segments, but waits; their head names a policy and its options. */
#ifndef FRAG_GOLDEN_GOLDEN_LOG_H
#define FRAG_GOLDEN_GOLDEN_LOG_H

#include "base/file.h"
#include "base/formats/lines.h"
#include "sim/trace/trace.h"

#define FRAG_GOLDEN_DEVICES_MAX 16u

/* X(enumerator, name in the log) */
#define FRAG_GOLDEN_OPS(X)                                                                         \
    X(ALLOC, "alloc")                                                                              \
    X(FREE, "free")                                                                                \
    X(RECORD_STREAM, "record_stream")                                                              \
    X(COMPLETE, "complete")                                                                        \
    X(EMPTY_CACHE, "empty_cache")                                                                  \
    X(FRACTION, "fraction")                                                                        \
    X(POOL_CREATE, "pool_create")                                                                  \
    X(POOL_BEGIN, "pool_begin")                                                                    \
    X(POOL_END, "pool_end")                                                                        \
    X(POOL_RELEASE, "pool_release")                                                                \
    X(POOL_USE_ON_OOM, "pool_use_on_oom")                                                          \
    X(POOL_NO_SPLIT, "pool_no_split")                                                              \
    X(CAPTURE_BEGIN, "capture_begin")                                                              \
    X(CAPTURE_END, "capture_end")                                                                  \
    X(RESET_PEAK, "reset_peak")                                                                    \
    X(RESET_ACCUMULATED, "reset_accumulated")                                                      \
    X(SETTINGS, "settings")                                                                        \
    X(STATS, "stats") /* from here on no requests: what was seen after them */                     \
    X(SNAPSHOT, "snapshot")                                                                        \
    X(SEGMENT, "segment")                                                                          \
    X(END, "end")                                                                                  \
    X(ERROR, "error") /* the library itself failed, or did not return; nothing follows */

typedef enum frag_golden_op {
#define FRAG_GOLDEN_OP_ENUM(name, text) FRAG_GOLDEN_##name,
    FRAG_GOLDEN_OPS(FRAG_GOLDEN_OP_ENUM)
#undef FRAG_GOLDEN_OP_ENUM
        FRAG_GOLDEN_OP_COUNT
} frag_golden_op;

/* Device calls that are compared. Of those that only look or wait none is kept from logs of
 * PyTorch; the last five are in logs of other pools. */
#define FRAG_GOLDEN_CALLS(X)                                                                       \
    X(MALLOC, "malloc")                                                                            \
    X(FREE, "free")                                                                                \
    X(RESERVE, "reserve")                                                                          \
    X(VFREE, "vfree")                                                                              \
    X(CREATE, "create")                                                                            \
    X(RELEASE, "release")                                                                          \
    X(MAP, "map")                                                                                  \
    X(UNMAP, "unmap")                                                                              \
    X(WAIT, "wait") /* a stream waits for an event */                                              \
    X(SYNC, "sync") /* the program waits for a stream */                                           \
    X(DEVSYNC, "devsync")                                                                          \
    X(ALIAS, "alias") /* maps chunks that are mapped elsewhere, too */                             \
    X(UNALIAS, "unalias")

typedef enum frag_golden_call_kind {
#define FRAG_GOLDEN_CALL_ENUM(name, text) FRAG_GOLDEN_CALL_##name,
    FRAG_GOLDEN_CALLS(FRAG_GOLDEN_CALL_ENUM)
#undef FRAG_GOLDEN_CALL_ENUM
        FRAG_GOLDEN_CALL_COUNT
} frag_golden_call_kind;

typedef struct frag_golden_call {
    frag_golden_call_kind kind;
    bool is_refused;  /* malloc, create: out of memory */
    uint64_t address; /* 0: the kind has none; wait, sync: handle of the stream */
    uint64_t bytes;   /* of one page where pages are counted; free: 0 in logs of PyTorch, which do
                         not say; wait: handle of the event */
    uint64_t count;   /* of pages; 1 for the others */
} frag_golden_call;

/* The allocator's own trace: A FR FC SA SF SM SU OOM. */
typedef enum frag_golden_note_kind {
    FRAG_GOLDEN_NOTE_A,
    FRAG_GOLDEN_NOTE_FR,
    FRAG_GOLDEN_NOTE_FC,
    FRAG_GOLDEN_NOTE_SA,
    FRAG_GOLDEN_NOTE_SF,
    FRAG_GOLDEN_NOTE_SM,
    FRAG_GOLDEN_NOTE_SU,
    FRAG_GOLDEN_NOTE_OOM,
    FRAG_GOLDEN_NOTE_COUNT
} frag_golden_note_kind;

typedef struct frag_golden_note {
    frag_golden_note_kind kind;
    uint64_t address; /* OOM: bytes free on the device */
    uint64_t bytes;
    uint64_t stream; /* raw handle */
} frag_golden_note;

/* One figure of a stats line, named as torch.cuda.memory_stats does, or of the end line. */
typedef struct frag_golden_figure {
    uint32_t name; /* string */
    int64_t value;
} frag_golden_figure;

typedef struct frag_golden_block {
    uint64_t address;
    uint64_t bytes;
    uint64_t requested_bytes; /* 0: free */
    char state;               /* A allocated, P waiting for a stream, I free */
} frag_golden_block;

typedef struct frag_golden_segment {
    uint64_t address;
    uint64_t bytes;
    uint64_t stream;
    uint64_t allocated_bytes;
    uint64_t active_bytes;
    uint64_t requested_bytes;
    frag_pool_id pool;
    bool is_small;
    bool is_expandable;
} frag_golden_segment;

typedef struct frag_golden_list {
    size_t first;
    size_t count;
} frag_golden_list;

/* One line behind the head. What an op does not have is 0. */
typedef struct frag_golden_line {
    uint8_t op;         /* frag_golden_op */
    bool is_oom;        /* alloc */
    bool is_on;         /* pool_use_on_oom */
    bool is_stream_all; /* pool_begin */
    bool has_pool;      /* empty_cache */
    bool has_notes;     /* false: only the events that follow from the request */
    bool is_hang;       /* alloc: the library did not return; counts as is_oom */
    uint32_t device;    /* of the request; of the block for free and record_stream */
    uint32_t owner;     /* alloc and what names one: index of the alloc line */
    uint32_t text;      /* string: OOM message, settings, what failed */
    uint64_t bytes;     /* alloc; fraction: frag_ratio_code; snapshot: segments */
    uint64_t stream;    /* raw handle */
    uint64_t address;   /* alloc */
    frag_pool_id pool;
    frag_golden_list calls;
    frag_golden_list notes;
    frag_golden_list items; /* stats, end: figures; segment: blocks, and segment_index */
    size_t segment;         /* index of the segment */
} frag_golden_line;

typedef struct frag_golden_log {
    char torch[16];             /* "2.9.1"; "": a log of another framework's pool */
    uint32_t library;           /* string: "tf-bfc 2.21.0"; 0: PyTorch */
    uint32_t policy;            /* string: "tf-bfc:memory_limit=1073741824,..."; 0: PyTorch */
    uint64_t page_bytes;        /* what a malloc is charged and placed in multiples of */
    uint64_t gap_bytes;         /* left free between one malloc and the next */
    uint64_t malloc_base;       /* where addresses begin; 0: PyTorch, see docs/trace-format.md */
    bool is_descending;         /* each malloc lies below the one before */
    bool are_events_descending; /* each new event has a lower handle */
    bool has_hung;              /* the last request is one from which the library did not return */
    bool has_waits;             /* calls that wait are among the device calls of the log */
    bool creates_first;         /* pages, and then reserves a range for them */
    bool is_choice_free; /* among equal blocks the library took any, and the log says which */
    frag_golden_list start_calls; /* device calls of construction */
    uint32_t conf;                /* string: the settings */
    uint64_t capacity_bytes;
    uint32_t device_count;
    bool is_bump;    /* addresses are never used again; else the lowest free range */
    bool has_events; /* the library has trace events */
    frag_golden_line *lines;
    uint32_t line_count;
    frag_golden_call *calls;
    size_t call_count;
    frag_golden_note *notes;
    size_t note_count;
    frag_golden_figure *figures;
    size_t figure_count;
    frag_golden_block *blocks;
    size_t block_count;
    frag_golden_segment *segments;
    size_t segment_count;
    frag_strings strings;
} frag_golden_log;

/* Line number in the file of lines[index]: the head is line 1. */
static inline uint64_t frag_golden_line_number(uint32_t index)
{
    return (uint64_t)index + 2;
}

static inline bool frag_golden_is_request(uint32_t op)
{
    return op < FRAG_GOLDEN_STATS;
}

const char *frag_golden_call_name(frag_golden_call_kind kind);
const char *frag_golden_note_name(frag_golden_note_kind kind);

/* The COUNT of the enumeration when there is no such name. */
uint32_t frag_golden_op_find(const char *name);
uint32_t frag_golden_call_find(const char *name);
uint32_t frag_golden_note_find(const char *name);
const char *frag_golden_op_nearest(const char *name); /* NULL: none is near */

void frag_golden_log_destroy(frag_golden_log *log);

/* Does the next call go into the last one, as the log writes it: pages of the same size, one behind
 * the other? Then it is added there. */
bool frag_golden_call_merge(frag_golden_call *last, const frag_golden_call *next);

/* ---- golden_reader.c: from a file */

/* A request a line. */
#define FRAG_GOLDEN_LINE_LIMIT ((frag_line_limit){(size_t)1 << 24, "one request a line"})

/* FRAG_E_INPUT names the line. *log is {0} on failure. */
bool frag_golden_log_read(frag_input *input, frag_golden_log *log, frag_error *error);

/* ---- golden_record.c: as a recording */

/* One trace per device. ends[device x line_count + index] is the number of events of that trace
 * when the line is over; NULL: not wanted. The caller frees it. */
bool frag_golden_log_record(const frag_golden_log *log, const char *name, frag_recording *recording,
                            uint64_t **ends, frag_error *error);

#endif
