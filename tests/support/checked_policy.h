/* A policy that passes everything on to another one and holds each answer against the slow checker,
 * so that whatever drives policies (the replay engine, with its deferred frees) is checked too. */
#ifndef FRAG_SUPPORT_CHECKED_POLICY_H
#define FRAG_SUPPORT_CHECKED_POLICY_H

#include "sim/policy_engine.h"
#include "sim/run.h"
#include "tests/support/slow_checker.h"

typedef struct checked_policy {
    slow_checker checker;
    frag_policy_ops ops; /* what the engine is given */
    frag_policy_engine engine;
    uint64_t audit_every; /* grants and frees */
    uint64_t step_count;
    void (*on_complete)(void *context, frag_handle handle);
    void *on_complete_context;
    frag_device_opener opener;
} checked_policy;

/* The next run by checked->ops with checked->opener in its frag_device_spec is checked. Every
 * refuse_every-th call for memory fails (0: none). The capacity comes from the spec. */
void checked_policy_create(checked_policy *checked, const frag_policy_ops *ops,
                           uint64_t refuse_every, uint64_t audit_every);
/* What is wrong, "": nothing. */
const char *checked_policy_problem(const checked_policy *checked);
void checked_policy_destroy(checked_policy *checked);

#endif
