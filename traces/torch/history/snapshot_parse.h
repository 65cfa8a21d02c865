/* A torch.cuda.memory snapshot as flat arrays: what the pickle or JSON holds, checked for types and
 * ranges but not yet for sense.
 *
 * The format: torch.cuda.memory._snapshot of PyTorch 1.13 to 2.15. Keys may come in any order, and
 * unknown ones are skipped. */
#ifndef FRAG_HISTORY_SNAPSHOT_PARSE_H
#define FRAG_HISTORY_SNAPSHOT_PARSE_H

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "sim/trace/trace.h"
#include "traces/formats.h"
#include "traces/pickle/pickle_tree.h"

/* Every string that is asked for by name; X(enumerator, text). */
#define FRAG_SNAPSHOT_NAMES(X)                                                                     \
    X(ACTION, "action")                                                                            \
    X(ADDR, "addr")                                                                                \
    X(SIZE, "size")                                                                                \
    X(STREAM, "stream")                                                                            \
    X(TIME_US, "time_us")                                                                          \
    X(FRAMES, "frames")                                                                            \
    X(CPP_FRAMES, "cpp_frames")                                                                    \
    X(FORWARD_FRAMES, "forward_frames")                                                            \
    X(COMPILE_CONTEXT, "compile_context")                                                          \
    X(USER_METADATA, "user_metadata")                                                              \
    X(POOL_ID, "pool_id")                                                                          \
    X(CATEGORY, "category")                                                                        \
    X(DEVICE_FREE, "device_free")                                                                  \
    X(ALLOC, "alloc")                                                                              \
    X(FREE_REQUESTED, "free_requested")                                                            \
    X(FREE_COMPLETED, "free_completed")                                                            \
    X(FREE, "free")                                                                                \
    X(SEGMENT_ALLOC, "segment_alloc")                                                              \
    X(SEGMENT_FREE, "segment_free")                                                                \
    X(SEGMENT_MAP, "segment_map")                                                                  \
    X(SEGMENT_UNMAP, "segment_unmap")                                                              \
    X(SNAPSHOT, "snapshot")                                                                        \
    X(OOM, "oom")                                                                                  \
    X(EMPTY, "")                                                                                   \
    X(SEGMENTS, "segments")                                                                        \
    X(DEVICE_TRACES, "device_traces")                                                              \
    X(ALLOCATOR_SETTINGS, "allocator_settings")                                                    \
    X(EXTERNAL_ANNOTATIONS, "external_annotations")                                                \
    X(HOST_SEGMENTS, "host_segments")                                                              \
    X(HOST_TRACES, "host_traces")                                                                  \
    X(DEVICE, "device")                                                                            \
    X(ADDRESS, "address")                                                                          \
    X(TOTAL_SIZE, "total_size")                                                                    \
    X(SEGMENT_TYPE, "segment_type")                                                                \
    X(SMALL, "small")                                                                              \
    X(LARGE, "large")                                                                              \
    X(SEGMENT_POOL_ID, "segment_pool_id")                                                          \
    X(IS_EXPANDABLE, "is_expandable")                                                              \
    X(BLOCKS, "blocks")                                                                            \
    X(REQUESTED_SIZE, "requested_size")                                                            \
    X(STATE, "state")                                                                              \
    X(ACTIVE_ALLOCATED, "active_allocated")                                                        \
    X(ACTIVE_PENDING_FREE, "active_pending_free")                                                  \
    X(ACTIVE_AWAITING_FREE, "active_awaiting_free")                                                \
    X(INACTIVE, "inactive")                                                                        \
    X(HISTORY, "history")                                                                          \
    X(REAL_SIZE, "real_size")                                                                      \
    X(NAME, "name")                                                                                \
    X(FILENAME, "filename")                                                                        \
    X(LINE, "line")                                                                                \
    X(STAGE, "stage")                                                                              \
    X(START, "START")                                                                              \
    X(END, "END")                                                                                  \
    X(NOT_AVAILABLE, "N/A")                                                                        \
    X(CONF, "PYTORCH_CUDA_ALLOC_CONF")                                                             \
    X(MAX_SPLIT_SIZE, "max_split_size")                                                            \
    X(GC_THRESHOLD, "garbage_collection_threshold")                                                \
    X(EXPANDABLE_SEGMENTS, "expandable_segments")                                                  \
    X(ROUNDUP, "roundup_power2_divisions")                                                         \
    X(STREAM_REUSE, "graph_capture_record_stream_reuse")                                           \
    X(MAX_ROUND_THRESHOLD, "max_round_threshold")

enum {
#define FRAG_SNAPSHOT_NAME_ENUM(name, text) FRAG_SNAPSHOT_##name,
    FRAG_SNAPSHOT_NAMES(FRAG_SNAPSHOT_NAME_ENUM)
#undef FRAG_SNAPSHOT_NAME_ENUM
        FRAG_SNAPSHOT_NAME_COUNT
};

/* Sizes and addresses beyond these are no device's. */
#define FRAG_SNAPSHOT_ADDRESS_MAX (((uint64_t)1 << 62) - 1)
#define FRAG_SNAPSHOT_DEVICE_MAX 1023u
#define FRAG_SNAPSHOT_TIME_US_MAX (UINT64_MAX / 1000) /* as ns they fit a number */
#define FRAG_SNAPSHOT_ORIGIN_MAX (((uint32_t)1 << 30) - 1)

/* What many entries have in common. No padding: these are bytes that are compared. */
typedef struct frag_snapshot_origin {
    uint64_t stream;
    uint32_t forward; /* object of the list of the forward pass's frames + 1; 0 none */
    uint32_t note;    /* string of the pickle; FRAG_SNAPSHOT_EMPTY none */
} frag_snapshot_origin;

/* There are as many as the recording has entries: its size is most of the memory of an import. */
typedef struct frag_snapshot_entry {
    uint64_t address; /* oom: bytes free on the device */
    uint64_t bytes;
    uint64_t time_us : 55;
    uint64_t action : 5; /* FRAG_SNAPSHOT_ALLOC ... OOM; FRAG_SNAPSHOT_EMPTY: an unknown one */
    bool has_pool : 1;
    bool is_dropped : 1;  /* set by the rewind: does not fit what is around it */
    bool is_inferred : 1; /* put in for one that was not recorded */
    bool is_placed : 1;   /* an alloc that had to be where it is */
    uint32_t origin;      /* index into origins */
    uint32_t frames;      /* object of the list of frames + 1; 0 none */
    uint32_t pool;        /* index into pools */
    uint32_t block;       /* set by the rewind */
} frag_snapshot_entry;

_Static_assert(sizeof(frag_snapshot_entry) == 40, "an entry has 40 bytes");
_Static_assert(FRAG_SNAPSHOT_TIME_US_MAX >> 55 == 0, "a time has 55 bits");
_Static_assert(FRAG_SNAPSHOT_OOM < 32 && FRAG_SNAPSHOT_EMPTY < 32, "an action has 5 bits");

typedef struct frag_snapshot_block {
    uint64_t address;
    uint64_t bytes;
    uint64_t requested_bytes; /* 0 not known */
    uint32_t frames;          /* as in an entry */
    bool is_active;
    bool is_pending; /* freed, waiting for a stream */
} frag_snapshot_block;

typedef struct frag_snapshot_segment {
    uint32_t device;
    uint32_t pool;
    uint64_t address;
    uint64_t bytes;
    uint64_t stream;
    size_t first_block;
    size_t block_count;
    bool is_expandable;
    bool is_small;
} frag_snapshot_segment;

typedef struct frag_snapshot_mark {
    uint64_t time_us;
    uint32_t device;
    uint32_t name;  /* string of the pickle */
    uint8_t flags;  /* FRAG_EVENT_BEGIN, FRAG_EVENT_END */
    uint64_t order; /* in the file */
} frag_snapshot_mark;

typedef struct frag_snapshot_device {
    frag_snapshot_entry *entries;
    uint64_t entry_count;
    uint64_t recorded_count; /* entries that the file has; those that it leaves out come to them */
    bool is_own;             /* the entries are an array of their own */
    const frag_snapshot_segment *segments;
    size_t segment_count;
    const frag_snapshot_mark *marks;
    size_t mark_count;
} frag_snapshot_device;

typedef struct frag_snapshot_settings {
    uint64_t max_split_bytes; /* UINT64_MAX: unlimited */
    double gc_threshold;
    uint64_t divisions[16];
} frag_snapshot_settings;

enum { FRAG_SNAPSHOT_ENTRY_NAMES = FRAG_SNAPSHOT_DEVICE_FREE + 1 };

/* Where the keys of an entry stand in it, for the next, which mostly has the same. */
typedef struct frag_snapshot_shape {
    frag_pickle_value keys[FRAG_PICKLE_KEYS_MAX];
    size_t key_count; /* 0: the next is to be looked at key by key */
    uint64_t names;   /* bit i: the key with name i is there */
    uint8_t place[FRAG_SNAPSHOT_ENTRY_NAMES];
    uint8_t address_place; /* of 'addr' or 'device_free' */
    bool has_all_numbers;  /* also 'stream' and 'time_us' */
} frag_snapshot_shape;

typedef struct frag_snapshot {
    const frag_input *input;
    frag_pickle *pickle;
    frag_strings pools;   /* 16 bytes each, a frag_pool_id; 0 is {0, 0} */
    frag_strings origins; /* each a frag_snapshot_origin */
    frag_snapshot_entry *entries;
    size_t entry_count;
    size_t entry_capacity;
    uint8_t
        *is_used; /* by entry: part of a device's trace; apart, so that entries are not touched */
    size_t is_used_capacity;
    frag_snapshot_segment *segments; /* by device and address */
    size_t segment_count;
    size_t segment_capacity;
    frag_snapshot_block *blocks;
    size_t block_count;
    size_t block_capacity;
    frag_snapshot_mark *marks; /* by device and time */
    size_t mark_count;
    size_t mark_capacity;
    frag_snapshot_device *devices; /* by ordinal */
    uint32_t device_count;
    frag_snapshot_settings settings;
    frag_pickle_value settings_dict; /* None: absent */
    uint64_t host_segment_count;
    uint64_t host_entry_count;
    uint64_t entry_keys; /* bit i: an entry has the key with name i (< 64) */
    bool has_annotations;
    bool has_host;
    bool has_settings;
    bool has_blocks;
    bool has_block_addresses;
    bool has_expandable_key;
    /* of the last pool id read */
    frag_pickle_value last_pool_value;
    uint32_t last_pool;
    /* that was added last */
    frag_snapshot_origin last_origin;
    uint32_t last_origin_id;
    frag_snapshot_shape shape; /* of the last entry */
} frag_snapshot;

/* Does it begin like JSON with a snapshot in it? */
bool frag_snapshot_json_is_like(const unsigned char *bytes, size_t count);

bool frag_snapshot_parse(frag_input *input, frag_snapshot *snapshot, frag_error *error);
void frag_snapshot_destroy(frag_snapshot *snapshot);

frag_pool_id frag_snapshot_pool_id(const frag_snapshot *snapshot, uint32_t pool);

uint32_t frag_snapshot_add_origin(frag_snapshot *snapshot, frag_snapshot_origin origin);
/* Of an entry or a block. */
frag_snapshot_origin frag_snapshot_get_origin(const frag_snapshot *snapshot, uint32_t origin);

static inline uint64_t frag_snapshot_stream(const frag_snapshot *snapshot,
                                            const frag_snapshot_entry *entry)
{
    return frag_snapshot_get_origin(snapshot, entry->origin).stream;
}

static inline uint64_t frag_snapshot_time_ns(const frag_snapshot_entry *entry)
{
    return (uint64_t)entry->time_us * 1000;
}

/* The value of a key, or false. */
bool frag_snapshot_get(const frag_pickle *pickle, frag_pickle_value dict, uint32_t name,
                       frag_pickle_value *value);

/* ---- trace entries (snapshot_entries.c) */

/* Turns entries into records while the pickle is read; context is the frag_snapshot. */
bool frag_snapshot_visit(void *context, const frag_pickle *pickle, const frag_pickle_value *pairs,
                         size_t pair_count, bool has_last_keys, uint32_t *record);
/* The index of the record of an entry, which may be one that the visitor could not take. */
bool frag_snapshot_entry_of(frag_snapshot *snapshot, frag_pickle_value value, uint64_t *record,
                            frag_error *error);
bool frag_snapshot_pool_of(frag_snapshot *snapshot, const frag_pickle *pickle,
                           frag_pickle_value value, uint32_t *pool);

#endif
