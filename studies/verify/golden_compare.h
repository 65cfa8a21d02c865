/* Does a policy do what an allocator library itself did, request by request?
 *
 * The requests of a golden log are replayed on simulated devices that follow the log's rules for
 * memory and addresses, one for each device of the log and in step with it. After every line the
 * policy must have given the same address or the same out-of-memory message, made the same device
 * calls, wrote the same trace events, and hold the same statistics and segments. */
#ifndef FRAG_VERIFY_GOLDEN_COMPARE_H
#define FRAG_VERIFY_GOLDEN_COMPARE_H

#include "allocators/registry.h"
#include "base/context.h"
#include "base/text.h"
#include "traces/golden/golden_log.h"

typedef struct frag_golden_result {
    bool is_identical;
    bool has_failed;        /* the log ends where the library itself failed */
    uint64_t requests;      /* compared, and the same */
    uint64_t device_events; /* entries of device calls */
    uint64_t trace_events;
    uint64_t ooms;
    uint64_t stat_lines;
    uint64_t segments;
    /* ---- the first difference; start from {0} */
    uint64_t line;    /* of the log, from 1 */
    const char *kind; /* address, oom, message, device_calls, trace_events, stats, segments, end */
    frag_text library;
    frag_text policy;
} frag_golden_result;

typedef struct frag_golden_options {
    uint64_t check_every; /* audit policy and counts every so many events; 0: never */
    const frag_context *context;
} frag_golden_options;

/* spec has the settings of the log already. false: the policy refuses them, or an audit failed. The
 * caller destroys the result's texts, in either case. */
bool frag_golden_compare(const frag_golden_log *log, const frag_recording *recording,
                         const uint64_t *ends, const frag_policy_spec *spec,
                         const frag_golden_options *options, frag_golden_result *result,
                         frag_error *error);

void frag_golden_result_destroy(frag_golden_result *result);

#endif
