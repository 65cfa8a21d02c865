/* What a recording of a dry run says about a card: its peaks, by phase, on that card or another,
 * and with sizes at the other end of what they can be.
 *
 * Everything comes from replaying the requests under the policy pytorch with the recorded settings,
 * which does what PyTorch's own allocator did: the replay on the card of the dry run has the same
 * peaks, and the same replay tells about other cards, settings and sizes without another run. */
#ifndef FRAG_DRYRUN_DRYRUN_REPLAY_H
#define FRAG_DRYRUN_DRYRUN_REPLAY_H

#include "base/context.h"
#include "sim/run.h"
#include "studies/dryrun/dryrun_facts.h"
#include "studies/policy_settings.h"

/* The device that a replay is on. */
typedef struct frag_dryrun_card {
    uint64_t capacity_bytes; /* FRAG_UNLIMITED: no limit */
    uint64_t context_bytes;  /* and what else is not the allocator's */
} frag_dryrun_card;

typedef struct frag_dryrun_level {
    frag_level peak;
    uint64_t reserved_at_event; /* where reserved had its peak first */
    bool fits;                  /* every request was served */
    frag_oom oom;
} frag_dryrun_level;

/* A part of the run, up to a mark of it. */
typedef struct frag_dryrun_phase {
    const char *name; /* literal */
    frag_level peak;
} frag_dryrun_phase;

enum { FRAG_DRYRUN_PHASES_MAX = 3 };

typedef struct frag_dryrun_answer {
    frag_dryrun_level run;        /* as it was run */
    frag_dryrun_level other;      /* the uncertain sizes at their lower end; as run where none is */
    uint64_t uncertain_requests;  /* in the recording */
    uint64_t uncertain_low_bytes; /* their sum at each end */
    uint64_t uncertain_high_bytes;
    /* Replays with each uncertain size drawn between its ends: what is reserved need not lie
     * between what it is at both. None where no size is uncertain, or it was run with
     * the smallest. */
    uint64_t draws;
    uint64_t draws_served;       /* in which every request was served */
    uint64_t reserved_min_bytes; /* least and greatest peak of all replays, both ends too */
    uint64_t reserved_max_bytes;
    frag_dryrun_phase phases[FRAG_DRYRUN_PHASES_MAX];
    size_t phase_count;
    bool has_failed;  /* a request failed when recorded */
    bool is_repeated; /* the replay reserved what was recorded, to the byte */
} frag_dryrun_answer;

enum { FRAG_DRYRUN_RELEASE_BYTES = 16 };

/* "2.9" of "2.9.1+cu128". false: it is none. */
bool frag_dryrun_release(const char *torch, char release[FRAG_DRYRUN_RELEASE_BYTES]);

/* The policy that a recording of this torch is replayed with. The caller destroys it. */
bool frag_dryrun_policy(const frag_context *context, const frag_recording *recording,
                        const char *torch, frag_policy_spec *spec, frag_error *error);

/* One replay of a trace on a card; a policy that the recording does not fit is an error. */
bool frag_dryrun_replay(const frag_context *context, const frag_recording *recording,
                        const frag_trace *trace, const frag_policy_spec *policy,
                        const frag_dryrun_card *card, frag_dryrun_level *level, frag_error *error);

/* The answer for one device of a process. */
bool frag_dryrun_judge(const frag_context *context, const frag_recording *recording,
                       const frag_trace *trace, const frag_dryrun_facts *facts,
                       const frag_dryrun_card *card, frag_dryrun_answer *answer, frag_error *error);

#endif
