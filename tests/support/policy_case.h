/* One policy with options on one device against one random trace: drawing such a case, and running
 * it in every way there is. */
#ifndef FRAG_SUPPORT_POLICY_CASE_H
#define FRAG_SUPPORT_POLICY_CASE_H

#include "allocators/registry.h"
#include "sim/run.h"

enum { POLICY_PROBLEM_BYTES = 400 };

typedef struct policy_case {
    char *policy; /* as after --policy */
    uint64_t capacity_bytes;
    uint64_t page_bytes;
    uint64_t fail_call;    /* this call of the simulated device fails; 0: none */
    uint64_t refuse_every; /* of the slow device */
    bool is_oom_skipped;
} policy_case;

typedef struct policy_outcome {
    uint64_t events;                    /* replayed, in all ways together */
    bool is_refused;                    /* the options do not fit together, or not to this trace */
    char problem[POLICY_PROBLEM_BYTES]; /* "": none */
} policy_outcome;

/* A case for the policy on a trace with these figures. The caller frees policy. */
policy_case policy_case_draw(const frag_policy_ops *ops, const frag_trace *trace, uint64_t *bits);

/* Runs the case five ways: as any run; watched, which takes another loop of the engine and must
 * give the same result; returning to a state that it kept, which must, too; on devices of other
 * capacities that should give the same run; and with every answer held against the slow checker.
 * All are audited every check_every events. */
void policy_case_run(const policy_case *what, const frag_recording *recording, uint64_t check_every,
                     policy_outcome *outcome);

#endif
