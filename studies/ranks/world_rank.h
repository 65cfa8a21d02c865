/* One rank of a job: what its recording asks for, and what an allocator makes of it. Nothing of the
 * recording is needed afterwards, so that the ranks of a large job are looked at one by one. */
#ifndef FRAG_RANKS_WORLD_RANK_H
#define FRAG_RANKS_WORLD_RANK_H

#include "base/digest.h"
#include "sim/replay/timeline.h"
#include "sim/run.h"
#include "studies/diff/site_uses.h"
#include "studies/leaks/steps.h"
#include "studies/policy_settings.h"

typedef struct frag_world_options {
    const frag_context *context;
    const frag_policy_spec *spec;   /* what with; NULL: pytorch, with the settings of each recording
                                       where it holds some */
    const frag_device_spec *device; /* of the replays, the same for every rank */
    const frag_policy_list *tried;  /* others to replay each rank with; NULL: none */
    uint64_t samples;               /* of each rank's timeline; 0: none is made */
    bool is_capacity_only;          /* nothing is replayed; of a rank its name, digest, requests
                                       and recorded capacity are there alone */
} frag_world_options;

/* What came of one of the policies that are tried. */
typedef struct frag_rank_try {
    bool is_run; /* false: the recorded release refuses it */
    bool is_oom;
    uint64_t reserved_bytes; /* at their peak */
    uint64_t device_calls;
} frag_rank_try;

typedef struct frag_world_rank {
    uint32_t number;
    char *name; /* of its recording */
    char digest[FRAG_DIGEST_TEXT_BYTES];
    uint32_t device;
    char requests_digest[FRAG_DIGEST_TEXT_BYTES]; /* of the sizes and streams, in order */
    uint64_t request_count;
    uint64_t requested_bytes; /* at their peak */
    uint64_t peak_event;
    bool is_by_size;     /* without call stacks uses are by size */
    frag_site_uses uses; /* at the peak */
    uint64_t step_count; /* 0: no steps were found */
    frag_steps_by steps_by;
    char *steps_name; /* as in frag_steps; NULL: no steps were found */
    /* From 1; 0: before the first step, or there are none. */
    uint64_t peak_step;
    uint64_t oom_step;
    char *policy; /* what it was replayed with */
    frag_run_result run;
    uint64_t
        recorded_capacity;   /* as of frag_explain_capacity; FRAG_UNLIMITED: it ran out on none */
    frag_rank_try *tries;    /* of each that is tried */
    uint64_t needed_bytes;   /* peak reserved where there is room; 0: nothing is tried */
    frag_timeline *timeline; /* of the replay; NULL: none was asked for */
} frag_world_rank;

/* The recording is loaded with call sites. false: a trace without requests, a policy that does not
 * fit, a cancelled context. The caller destroys, either way. */
bool frag_world_rank_measure(const frag_world_options *options, const frag_recording *recording,
                             const frag_trace *trace, uint32_t number, frag_world_rank *rank,
                             frag_error *error);
/* Each device with requests of one recording as a rank. *ranks has room for all of them and is the
 * caller's to free, count the first of them to destroy, either way. */
bool frag_world_rank_measure_devices(const frag_world_options *options,
                                     const frag_recording *recording, frag_world_rank **ranks,
                                     size_t *count, frag_error *error);
void frag_world_rank_destroy(frag_world_rank *rank);

#endif
