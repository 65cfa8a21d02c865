/* Replay: one trace through one policy on one device.
 *
 * The loop decides nothing about its input (readers have validated it), does no I/O and takes no
 * host memory. It counts requested, allocated and active bytes from requests and grants, and
 * reserved bytes from device calls, so that a policy cannot misreport them. A free that waits for a
 * stream reaches the policy when its complete event comes, or when the policy synchronises the
 * device. */
#ifndef FRAG_REPLAY_REPLAY_H
#define FRAG_REPLAY_REPLAY_H

#include "sim/replay/replay_types.h"

/* recording and trace outlive the replay; so does the device, which must be fresh. NULL on failure:
 * an option the policy refuses, a start state that does not fit together, no host memory. */
frag_replay *frag_replay_create(const frag_run_setup *setup, frag_device *device,
                                frag_error *error);
/* What a policy that plans makes of the trace; NULL in *plan where it does not plan. limits NULL:
 * none. false: the policy finds no plan, or the state at the start does not fit together. */
bool frag_replay_plan(const frag_run_setup *setup, const frag_plan_limits *limits,
                      frag_policy_plan **plan, frag_error *error);
/* As frag_replay_create, by a plan that is there already and outlives the replay, in the memory of
 * an earlier replay (NULL: none). */
frag_replay *frag_replay_create_planned(const frag_run_setup *setup, const frag_policy_plan *plan,
                                        frag_arena_spare *spare, frag_device *device,
                                        frag_error *error);
/* Runs from the start (call once). false: a check failed, which is a bug of the policy. */
bool frag_replay_run(frag_replay *replay, const frag_replay_options *options,
                     frag_replay_result *result, frag_error *error);
void frag_replay_destroy(frag_replay *replay);

/* The same in steps, for those who look on in between or run several devices side by side: start
 * once, advance as often as wanted, finish once. advance replays the events below `until`, fewer
 * where the run stops; false as frag_replay_run. */
bool frag_replay_start(frag_replay *replay, const frag_replay_options *options, frag_error *error);
bool frag_replay_advance(frag_replay *replay, uint64_t until, frag_error *error);

/* Does what frag_replay_advance does, and something besides. */
typedef struct frag_replay_advancer {
    bool (*advance)(void *context, frag_replay *replay, uint64_t until, frag_error *error);
    void *context;
} frag_replay_advancer;

/* The same, but for steps that are proved to do again what one of them did, without a call of the
 * device: those are left out (replay_repeats.c). repeats NULL: none are known. What is replayed,
 * the advancer advances (NULL: frag_replay_advance). */
bool frag_replay_advance_repeats(frag_replay *replay, const frag_repeats *repeats,
                                 const frag_replay_advancer *advancer, uint64_t until,
                                 frag_error *error);
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

/* The policy's walk, with what the program knows of each block (NULL for segments and holes). */
void frag_replay_walk(const frag_replay *replay, frag_layout_visitor *visit, void *context);

/* The policy's walk alone, which is many times faster. */
void frag_replay_walk_spans(const frag_replay *replay, frag_span_visitor *visit, void *context);

void frag_replay_decompose(const frag_replay *replay, frag_decomposition *decomposition);

#endif
