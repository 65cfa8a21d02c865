/* Devices: where policies get their segments from.
 *
 * A policy makes every device call through the functions below. They count, time and log each call
 * and know what is held, for every device alike; behind them stands a table of functions (the
 * simulated device here, the real GPU in gpu_replay/). */
#ifndef FRAG_SIM_DEVICE_H
#define FRAG_SIM_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "sim/device_call.h"

/* A policy in a shared object may call these. */
#pragma GCC visibility push(default)

#define FRAG_DEVICE_PAGE_BYTES ((uint64_t)2 << 20)

typedef enum frag_device_result {
    FRAG_DEVICE_OK,
    FRAG_DEVICE_OUT_OF_MEMORY,
    FRAG_DEVICE_FAILED /* the driver refused for another reason; device->failure holds its words */
} frag_device_result;

typedef struct frag_device frag_device;
struct frag_image; /* sim/image.h */

/* One constant table per kind of device. Calls not offered are NULL. Sizes are bytes as asked; what
 * a call costs in pages is the device's own affair (held_bytes). */
typedef struct frag_device_ops {
    const char *name;
    frag_device_result (*malloc)(frag_device *device, uint64_t bytes, uint64_t *address);
    frag_device_result (*free)(frag_device *device, uint64_t address, uint64_t bytes);
    frag_device_result (*reserve)(frag_device *device, uint64_t bytes, uint64_t *address);
    frag_device_result (*unreserve)(frag_device *device, uint64_t address, uint64_t bytes);
    frag_device_result (*map)(frag_device *device, uint64_t address, uint64_t bytes);
    frag_device_result (*unmap)(frag_device *device, uint64_t address, uint64_t bytes);
    /* NULL: nothing is behind addresses, and the same memory may be at two of them. */
    frag_device_result (*map_again)(frag_device *device, uint64_t address, uint64_t bytes,
                                    uint64_t source);
    frag_device_result (*unmap_again)(frag_device *device, uint64_t address, uint64_t bytes);
    frag_device_result (*malloc_async)(frag_device *device, uint64_t bytes, uint32_t stream,
                                       uint64_t *address);
    frag_device_result (*free_async)(frag_device *device, uint64_t address, uint32_t stream);
    /* is_look: asked by those who look on, which is no call of the program. */
    frag_device_result (*memory_info)(frag_device *device, bool is_look, uint64_t *free_bytes,
                                      uint64_t *total_bytes);
    frag_device_result (*synchronize)(frag_device *device);
    /* Of devices with real streams; NULL: streams do no work, and what is done is decided by
     * frag_device_stream_done alone. A mark is what frag_device_event_record returned. */
    frag_device_result (*event_record)(frag_device *device, uint32_t stream, uint64_t mark);
    frag_device_result (*event_query)(frag_device *device, uint32_t stream, uint64_t mark,
                                      bool *is_done);
    frag_device_result (*event_wait)(frag_device *device, uint32_t stream, uint64_t mark);
    /* The stream waits for the event recorded last on the other; the program does not. */
    frag_device_result (*event_await)(frag_device *device, uint32_t stream, uint32_t other,
                                      uint64_t event);
    frag_device_result (*stream_wait)(frag_device *device, uint32_t stream);
    /* Writes to memory that the policy granted, as the program would, on this stream. */
    frag_device_result (*touch)(frag_device *device, uint64_t address, uint64_t bytes,
                                uint32_t stream);
    /* Takes over a segment held before the trace began, at its recorded address. */
    frag_device_result (*adopt)(frag_device *device, uint64_t address, uint64_t bytes,
                                bool is_mapped_range);
    /* New addresses stay out of this place from now on; NULL: they never come near such places. */
    void (*keep_clear)(frag_device *device, uint64_t address, uint64_t bytes);
    /* For checkpoints: everything that is not in frag_device. NULL, or false: its state cannot be
     * kept. */
    bool (*keep)(const frag_device *device, struct frag_image *image);
    void (*bring_back)(frag_device *device, struct frag_image *image);
    void (*destroy)(frag_device *device);
} frag_device_ops;

/* What calls cost (sim/device/latency.h), and what small mallocs take (sim/device/footprint.h). */
typedef struct frag_latency_table frag_latency_table;
struct frag_footprint;

/* What a device answered to one call, beside what was asked. */
typedef enum frag_answer_kind {
    FRAG_ANSWER_CALL,  /* one of the counted calls */
    FRAG_ANSWER_ADOPT, /* frag_device_adopt */
    FRAG_ANSWER_GRANT  /* what the policy made of it: kept by those who compare whole runs */
} frag_answer_kind;

typedef struct frag_device_answer {
    uint8_t kind;
    uint8_t call;
    uint8_t result;
    uint64_t address; /* memory info: free bytes */
    uint64_t bytes;   /* memory info: total bytes */
} frag_device_answer;

/* The work of a stream as events see it, for devices that do none themselves. */
typedef struct frag_stream_clock {
    uint64_t recorded; /* events so far */
    uint64_t done;     /* of these, as far as the recording says or someone waited */
} frag_stream_clock;

/* A call that is over, for those who watch. */
typedef struct frag_device_report {
    frag_device_call call;
    uint64_t address;
    uint64_t bytes;
    frag_device_result result;
    uint32_t stream; /* whom it was for: frag_device_for */
    uint32_t pool;
    /* A map or unmap of memory that is mapped elsewhere, too: it holds and gives back nothing. */
    bool is_second_map;
} frag_device_report;

/* What was called how often; kept for every device alike. */
typedef struct frag_device_counts {
    uint64_t calls[FRAG_DEVICE_CALL_COUNT];        /* successful and failed */
    uint64_t failed_calls[FRAG_DEVICE_CALL_COUNT]; /* out of memory */
    uint64_t call_bytes[FRAG_DEVICE_CALL_COUNT];   /* of the successful ones */
} frag_device_counts;

/* What the calls took, measured and modelled. */
typedef struct frag_device_times {
    uint64_t (*clock_ns)(void); /* measures each call; NULL: calls are not timed */
    uint64_t call_ns[FRAG_DEVICE_CALL_COUNT];
    const frag_latency_table *latency; /* NULL: not modelled */
    double modelled_ns;
} frag_device_times;

/* On what capacity the run depends; see sim/run.h. */
typedef struct frag_device_needs {
    uint64_t max_bytes;         /* largest held + others + asked pages over successful calls */
    uint64_t refused_min_bytes; /* smallest need of a refused call; FRAG_UNLIMITED: none refused */
    uint64_t refused_bytes;     /* size of the last refused malloc or map */
    bool is_capacity_read;      /* the policy asked for total or free memory */
    bool has_sized_ranges;      /* frag_device_range_capacity was called */
} frag_device_needs;

/* The driver log. */
typedef struct frag_driver_log {
    FILE *stream;   /* NULL: none */
    uint64_t event; /* being replayed; set by the engine where there is a log */
} frag_driver_log;

/* Those who watch, and those who are told; each may be NULL. */
typedef struct frag_device_watch {
    void (*on_call)(void *context, const frag_device_report *report); /* sees every call */
    /* Told what frag_device_tell_use tells; gets on_call_context. */
    void (*on_use)(void *context, uint64_t from, uint64_t to, uint64_t bytes);
    void *on_call_context;
    /* Gets every answer, for a device that answers so again (sim/device/echo_device.h). */
    void (*on_answer)(void *context, const frag_device_answer *answer);
    void *on_answer_context;
    /* The engine delivers the frees that wait for streams here. */
    void (*on_synchronize)(void *context);
    void *on_synchronize_context;
} frag_device_watch;

/* What streams have done. */
typedef struct frag_device_streams {
    bool has_clock; /* they do work of their own: the device tells which events are done */
    /* The program has another device set just now, so that a wait for a stream is for the stream of
     * that handle there. */
    bool waits_elsewhere;
    frag_stream_clock *clocks; /* by stream */
    size_t clock_count;
} frag_device_streams;

struct frag_device {
    const frag_device_ops *ops;
    /* ---- what it is */
    char name[64];
    uint32_t ordinal;        /* its number in the program */
    uint64_t capacity_bytes; /* FRAG_UNLIMITED: none */
    uint64_t page_bytes;     /* granularity of what a call really takes */
    uint64_t map_unit_bytes; /* frag_device_set_map_unit */
    /* ---- what the policy holds */
    bool has_changed;        /* reserved_bytes, since the replay engine last looked */
    uint64_t reserved_bytes; /* malloc'ed as asked + mapped */
    uint64_t reserved_peak_bytes;
    uint32_t for_stream; /* frag_device_for */
    uint32_t for_pool;
    /* A call was refused for another reason than memory; the run ends there. failure holds the
     * words. */
    bool has_failed;
    char failure[256];
    bool is_misused; /* and that is the mistake of who called: FRAG_E_USAGE, else FRAG_E_SYSTEM */
    /* ---- kept by the functions below for every device */
    frag_device_counts counts;
    frag_device_times times;
    frag_device_needs needs;
    frag_driver_log log;
    frag_device_watch watch;
    frag_device_streams streams;
};

/* Each makes one call, counts and logs it. Addresses and sizes must be ones the device gave. */
frag_device_result frag_device_malloc(frag_device *device, uint64_t bytes, uint64_t *address);
frag_device_result frag_device_free(frag_device *device, uint64_t address, uint64_t bytes);
frag_device_result frag_device_reserve(frag_device *device, uint64_t bytes, uint64_t *address);
frag_device_result frag_device_unreserve(frag_device *device, uint64_t address, uint64_t bytes);
frag_device_result frag_device_map(frag_device *device, uint64_t address, uint64_t bytes);
frag_device_result frag_device_unmap(frag_device *device, uint64_t address, uint64_t bytes);
/* Maps memory that is mapped at source at a second place, and takes it away from there again. They
 * count as map and unmap, though no memory is got or given back; source stays as it is. The second
 * place must be taken away before the first. */
frag_device_result frag_device_map_again(frag_device *device, uint64_t address, uint64_t bytes,
                                         uint64_t source);
frag_device_result frag_device_unmap_again(frag_device *device, uint64_t address, uint64_t bytes);
/* For those who watch: memory that is mapped in two places is now used in the other one, which is
 * where a policy's walk shows it. No call. */
static inline void frag_device_tell_use(const frag_device *device, uint64_t from, uint64_t to,
                                        uint64_t bytes)
{
    if (device->watch.on_use != NULL)
        device->watch.on_use(device->watch.on_call_context, from, to, bytes);
}
frag_device_result frag_device_memory_info(frag_device *device, uint64_t *free_bytes,
                                           uint64_t *total_bytes);
/* For those who look on: neither counted nor a sign that the policy reads the capacity. */
frag_device_result frag_device_look_at_memory(frag_device *device, uint64_t *free_bytes,
                                              uint64_t *total_bytes);
/* Memory of the driver's own pool, in the order of a stream. OUT_OF_MEMORY too where the device
 * has no pool (frag_device_has_pool). */
bool frag_device_has_pool(const frag_device *device);
frag_device_result frag_device_malloc_async(frag_device *device, uint64_t bytes, uint32_t stream,
                                            uint64_t *address);
frag_device_result frag_device_free_async(frag_device *device, uint64_t address, uint64_t bytes,
                                          uint32_t stream);
/* Writes to granted memory where the device has any; not counted. */
void frag_device_touch(frag_device *device, uint64_t address, uint64_t bytes, uint32_t stream);
/* Waits for all streams: every free that waits for one is delivered to the policy before it
 * returns. */
frag_device_result frag_device_synchronize(frag_device *device);
/* Marks the work given to a stream so far; returns the mark, which grows with every call. */
uint64_t frag_device_event_record(frag_device *device, uint32_t stream);
bool frag_device_event_is_done(frag_device *device, uint32_t stream, uint64_t event);
void frag_device_event_wait(frag_device *device, uint32_t stream, uint64_t event);
/* A stream waits for the event recorded last on another, the program does not; event is the
 * policy's number for it. */
void frag_device_event_await(frag_device *device, uint32_t stream, uint32_t other, uint64_t event);
void frag_device_stream_wait(frag_device *device, uint32_t stream);
/* For the engine: the stream has done its work so far. */
void frag_device_stream_done(frag_device *device, uint32_t stream);
frag_device_result frag_device_adopt(frag_device *device, uint64_t address, uint64_t bytes,
                                     bool is_mapped_range);
/* Address space that a range from before the trace is taken to have: no reservation and no malloc
 * at a new address will lie in it. Nothing that the program does, so not counted. */
void frag_device_keep_clear(frag_device *device, uint64_t address, uint64_t bytes);

/* Whom the memory of the next calls is for; those who watch are told. Policies say so that know
 * better than that it is the request being served. */
static inline void frag_device_for(frag_device *device, uint32_t stream, uint32_t pool)
{
    device->for_stream = stream;
    device->for_pool = pool;
}

/* It serves every stream and pool. */
static inline void frag_device_for_all(frag_device *device)
{
    frag_device_for(device, 0, 0);
}

/* Said once by policies that will unmap other pieces than they map: a map call is made of pieces of
 * this size, the last perhaps smaller, each of which is unmapped as a whole. Without: of pages. */
static inline void frag_device_set_map_unit(frag_device *device, uint64_t bytes)
{
    device->map_unit_bytes = bytes;
}

/* Total bytes as a policy may base limits on it; marks that the result depends on the capacity. */
uint64_t frag_device_capacity(frag_device *device);

/* Total bytes for a policy whose state depends on them, such as by a limit that is a share of them
 * or by ranges of addresses as large as the device, and that notes each decision which comes of it
 * (frag_device_note_need, or a range whose end refuses a request). Runs on devices of other
 * capacities then share nothing (sim/capacity_runs.h), though what decides is noted as ever. */
uint64_t frag_device_range_capacity(frag_device *device);

/* A request was refused by the policy itself, or granted, as every capacity below need_bytes, or
 * from there on, does. */
void frag_device_note_need(frag_device *device, uint64_t need_bytes, bool is_refused);

/* Is the capacity at most so many bytes? A question about the capacity that other capacities have
 * the same answer to, which is noted. */
bool frag_device_is_filled_by(frag_device *device, uint64_t bytes);

void frag_device_destroy(frag_device *device);

/* For checkpoints (sim/replay/checkpoint.h): the device is as it was when kept. false: its state
 * cannot be kept, or somebody watches it. */
bool frag_device_keep(const frag_device *device, struct frag_image *image);
void frag_device_return(frag_device *device, struct frag_image *image);

/* ---- the simulated device */
typedef enum frag_address_rule {
    FRAG_ADDRESS_LOWEST, /* the lowest free range that is large enough */
    FRAG_ADDRESS_BUMP,   /* ascending, never reused */
    /* Where the recorded mallocs ascend: their addresses while all mallocs have the recorded
     * sizes; from the first other one on ascending above them, never reused. Elsewhere: the k-th
     * malloc of a size gets the address the k-th one of that size had when recorded, where that
     * is free; else as LOWEST above all recorded ones. */
    FRAG_ADDRESS_RECORDED,
    FRAG_ADDRESS_GIVEN /* as what stands behind the device gives them */
} frag_address_rule;

/* What stands behind a simulated device: devices with real memory keep their count in a simulated
 * one, so that both count alike. */
typedef struct frag_device_backing {
    void *context;
    /* Really gets what the count allows: a malloc, a map or a reserve. *address is where it is, and
     * what the policy sees under FRAG_ADDRESS_GIVEN. Not OK: the call ends so, and nothing is
     * counted. */
    frag_device_result (*get)(void *context, frag_device_call call, uint64_t bytes,
                              uint64_t *address);
} frag_device_backing;

typedef struct frag_recorded_segment {
    uint64_t address;
    uint64_t bytes;
} frag_recorded_segment;

typedef struct frag_sim_device_options {
    uint32_t device;         /* ordinal; moves the address ranges apart */
    uint64_t capacity_bytes; /* FRAG_UNLIMITED: none */
    uint64_t used_by_others_bytes;
    uint64_t page_bytes; /* 0: 2 MiB */
    /* What a malloc takes; borrowed. NULL: whole pages. */
    const struct frag_footprint *footprint;
    frag_address_rule address_rule;
    uint64_t base_address; /* BUMP without recorded segments: the first new address; 0: the usual */
    uint64_t gap_bytes;    /* BUMP: left free between one malloc and the next */
    bool is_descending;    /* BUMP: each malloc lies below the one before, the first one below the
                              base address */
    /* Segments of the recording in order of their mallocs, those held at the start first. Whatever
     * the rule, new addresses stay clear of them, so that adopted segments keep their place.
     * Borrowed. */
    const frag_recorded_segment *recorded;
    size_t recorded_count;
    size_t initial_count; /* how many of them were held at the start */
    uint64_t fail_call;   /* the n-th malloc or map (from 1) fails as if full; 0: none */
    /* Another simulated device, which outlives this one, whose address reservations this one's
     * stand among, as on a machine with several; NULL: it has a space of its own. */
    frag_device *reserves_beside;
    /* Reserved ranges go on where mallocs lie, as on the device of golden logs. */
    bool has_endless_reserves;
    const frag_device_backing *backing; /* NULL: memory is only counted; borrowed */
} frag_sim_device_options;

frag_device *frag_sim_device_create(const frag_sim_device_options *options);

#pragma GCC visibility pop

#endif
