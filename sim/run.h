/* One run: a trace, a policy with options, a simulated device with options; and what came of it.
 *
 * The replay is done twice when the layout at the peak is wanted: once for the counts, at full
 * speed, and once up to the event at which reserved bytes had their peak, where the layout is
 * looked at. Both give the same, since a run is a function of its inputs. */
#ifndef FRAG_SIM_RUN_H
#define FRAG_SIM_RUN_H

#include "sim/device.h"
#include "sim/policy_engine.h"
#include "sim/replay/replay.h"

/* Opens another device than the simulated one. */
typedef struct frag_device_opener {
    /* rule holds all that the simulated device would be made with; what it points to lives as long
     * as the device. NULL: error is filled. */
    frag_device *(*open)(void *context, const frag_trace *trace,
                         const frag_sim_device_options *rule, frag_error *error);
    void (*close)(void *context, frag_device *device); /* NULL: frag_device_destroy */
    void *context;
} frag_device_opener;

typedef struct frag_device_spec {
    uint64_t capacity_bytes; /* FRAG_UNLIMITED: none */
    uint64_t used_by_others_bytes;
    uint64_t page_bytes; /* 0: 2 MiB */
    frag_address_rule address_rule;
    bool is_rule_given; /* false: recorded addresses where the trace has them, else the lowest */
    uint64_t fail_call;
    const frag_latency_table *latency; /* NULL: time is not modelled */
    /* The card that the figures above were taken from, which also tells the footprint; NULL: none.
     * Borrowed, like the table of latencies. */
    const struct frag_device_description *gpu;
    FILE *driver_log;                 /* NULL: none; the counting pass writes it */
    const frag_device_opener *opener; /* NULL: the simulated device */
} frag_device_spec;

typedef struct frag_run_options {
    bool is_oom_skipped;
    bool is_layout_skipped; /* true: no second pass, no decomposition */
    uint64_t check_every;
    frag_replay_observer *observer;
    void *observer_context;
    const frag_context *context; /* NULL: the run is never cancelled, and takes no time */
    bool is_timed;               /* measure wall time, by the clock of the context */
    /* Of the counting pass; NULL: none. */
    frag_grant_observer *on_grant;
    void *on_grant_context;
    /* Of a policy that plans: a plan made before (borrowed); NULL: one is made, for as little
     * memory as can be. */
    const frag_policy_plan *plan;
    const frag_repeats *repeats; /* of the trace; NULL: none is known */
    /* Memory of runs that follow each other on one thread; NULL: each run has its own. */
    frag_arena_spare *spare;
} frag_run_options;

typedef struct frag_run_result {
    frag_replay_result replay;
    frag_decomposition at_peak;
    bool has_at_peak;
    /* device, at the end of the counting pass */
    uint64_t calls[FRAG_DEVICE_CALL_COUNT];
    uint64_t failed_calls[FRAG_DEVICE_CALL_COUNT];
    double modelled_time_ns;
    bool is_time_modelled;
    uint64_t call_ns[FRAG_DEVICE_CALL_COUNT]; /* measured */
    bool is_time_measured;
    frag_address_rule address_rule;
    /* Every capacity from need_max_bytes to below refused_need_min_bytes gives exactly this run,
     * unless the policy asked for the capacity (is_capacity_read). Both count whole pages and bytes
     * of others. */
    uint64_t need_max_bytes;
    uint64_t refused_need_min_bytes;
    bool is_capacity_read;
    frag_policy_met met; /* where the policy has met: what other options would give this run */
    uint64_t wall_ns;    /* of the counting pass */
    bool has_plan;
    frag_policy_plan_facts plan;
} frag_run_result;

/* Calls that asked for memory or address space, or gave some back. */
uint64_t frag_run_memory_calls(const frag_run_result *result);
/* Time of all calls, as measured. */
uint64_t frag_run_measured_ns(const frag_run_result *result);

/* false: see frag_replay_create and frag_replay_run. An OOM is a result. */
bool frag_run(const frag_run_setup *setup, const frag_run_options *options, frag_run_result *result,
              frag_error *error);

/* The two halves of frag_run: the counts, and the layout at the peak, which needs the counts in
 * result. */
bool frag_run_count(const frag_run_setup *setup, const frag_run_options *options,
                    frag_run_result *result, frag_error *error);
bool frag_run_layout(const frag_run_setup *setup, const frag_run_options *options,
                     frag_run_result *result, frag_error *error);

/* What a result says of the device; has_recorded: it was given recorded segments. */
void frag_run_keep_device(frag_run_result *result, const frag_device *device,
                          const frag_device_spec *spec, bool has_recorded);

/* Sees a run that has ended, as it stands. */
typedef void frag_run_looker(void *context, const frag_replay *replay,
                             const frag_replay_result *result);

/* One replay on a fresh device, as the options say; look (NULL: none) is called at its end. false:
 * as frag_run. */
bool frag_run_look(const frag_run_setup *setup, const frag_replay_options *options,
                   frag_run_looker *look, void *context, frag_error *error);

/* As frag_run_look, by a plan that is there already (NULL: the policy does not plan), in the memory
 * of an earlier run (NULL: none). */
bool frag_run_look_planned(const frag_run_setup *setup, const frag_policy_plan *plan,
                           frag_arena_spare *spare, const frag_replay_options *options,
                           frag_run_looker *look, void *context, frag_error *error);

/* The head of a driver log, before its run. is_timed: of a real card, whose calls are timed. */
void frag_driver_log_begin(FILE *stream, bool is_timed);

/* What a device of the spec gives memory in, for the trace. */
uint64_t frag_device_page(const frag_device_spec *spec, const frag_trace *trace);

/* What a plan may use: what the device has for the policy, in whole pages; FRAG_UNLIMITED: no
 * limit.
 */
uint64_t frag_device_plan_bytes(const frag_device_spec *spec, const frag_trace *trace);

/* A fresh device as the spec says, with the addresses of the trace. The caller closes it, then
 * frees *segments. NULL: the opener of the spec failed. */
frag_device *frag_device_open(const frag_trace *trace, const frag_device_spec *spec,
                              frag_recorded_segment **segments, frag_error *error);

void frag_device_close(const frag_device_spec *spec, frag_device *device);

/* The segments of a recording in order of their mallocs, those held at the start first; for
 * FRAG_ADDRESS_RECORDED. The caller frees. */
frag_recorded_segment *frag_recorded_segments(const frag_trace *trace, size_t *count,
                                              size_t *initial_count);

/* ---- the least capacity that survives */
typedef struct frag_capacity_result {
    bool is_found;
    uint64_t capacity_bytes;      /* the least, a multiple of the page */
    frag_oom below;               /* the OOM with one page less */
    bool has_below;               /* false: capacity_bytes is one page or the start state's size */
    bool is_monotone;             /* false: some larger capacity fails again */
    uint64_t failing_above_bytes; /* the largest capacity that fails */
    uint64_t enough_bytes;        /* from here on no call of the policy ever fails; 0: unknown */
    frag_level peak;              /* with that and above, but where the capacity is read */
    bool is_capacity_read;        /* then the policy asked for it */
    uint64_t runs;                /* replays it took */
    bool is_given_up;             /* of frag_find_least_capacity */
} frag_capacity_result;

/* Exact: each run gives the interval of capacities with the same behaviour, and the search jumps
 * from interval to interval, upward from the peak of requested bytes to where nothing fails.
 * repeats: of the trace; NULL: none is known. */
bool frag_find_capacity(const frag_run_setup *setup, const frag_repeats *repeats,
                        const frag_context *context, frag_capacity_result *result,
                        frag_error *error);

/* As frag_find_capacity, for comparing many settings: the same capacity, without facts about
 * smaller ones and whether larger ones fail; if it is above give_up_bytes, only that is reported
 * (is_given_up). */
bool frag_find_least_capacity(const frag_run_setup *setup, const frag_repeats *repeats,
                              uint64_t give_up_bytes, const frag_context *context,
                              frag_capacity_result *result, frag_error *error);
/* A capacity that survives, where one less by a page, or by 1/parts of the trace's bound if that
 * is more, does not; with its peak and enough_bytes, and no other facts. It is searched for as the
 * least is, as long as that replays no more than so many events, and exactly; then by guesses from
 * what failed, and by halves. So it may not be the least, where some larger capacity than that
 * fails again. */
bool frag_find_border_capacity(const frag_run_setup *setup, uint64_t events, uint64_t parts,
                               const frag_context *context, frag_capacity_result *result,
                               frag_error *error);

#endif
