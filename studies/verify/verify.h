/* Does a policy do what the recorded allocator did, event by event?
 *
 * The requests are replayed on an oracle device (sim/device/oracle_device.h), and after every event
 * the policy must have made exactly the device calls that were recorded up to there, at the
 * recorded addresses, have given each request its recorded address, and have run out of memory
 * where the recording did. */
#ifndef FRAG_VERIFY_VERIFY_H
#define FRAG_VERIFY_VERIFY_H

#include "sim/device/oracle_device.h"
#include "sim/policy_engine.h"
#include "sim/replay/replay.h"

typedef enum frag_difference_kind {
    FRAG_DIFFERENCE_NONE,
    FRAG_DIFFERENCE_ADDRESS, /* a block elsewhere */
    FRAG_DIFFERENCE_CALL,    /* the policy gave something back that was not given back */
    FRAG_DIFFERENCE_MISSING, /* the recorded allocator called the device, the policy did not */
    FRAG_DIFFERENCE_EARLY,   /* the policy made a call that was recorded only later */
    FRAG_DIFFERENCE_FAILED,  /* a request failed that was served when recorded */
    FRAG_DIFFERENCE_SERVED   /* a request was served that failed when recorded */
} frag_difference_kind;

/* What one side holds. */
typedef struct frag_side {
    uint64_t reserved_bytes;
    uint64_t requested_bytes; /* of requests that are served and not freed */
    uint64_t live_count;      /* of those */
} frag_side;

typedef struct frag_difference {
    frag_difference_kind kind;
    uint64_t event;            /* of the trace, during which it showed */
    frag_oracle_call recorded; /* MISSING, CALL, EARLY: the next recorded device event */
    bool has_recorded;
    frag_oracle_call
        simulated; /* CALL: what the policy did; FAILED: what it asked the device for */
    bool has_simulated;
    uint64_t address_recorded; /* ADDRESS */
    uint64_t address_simulated;
    /* Right after the event. */
    frag_side side_recorded;
    frag_side side_simulated;
    uint64_t hole_bytes; /* the policy's largest free block; 0: it has none */
    uint64_t hole_address;
    /* ADDRESS: bytes that are free in the policy from the recorded address on, and were where it
     * put the block; 0: none, or not known. */
    uint64_t room_recorded_bytes;
    uint64_t room_simulated_bytes;
} frag_difference;

typedef struct frag_verify_result {
    bool is_identical;
    uint64_t requests;      /* compared, up to the first difference */
    uint64_t device_events; /* met */
    uint64_t ooms;
    uint64_t difference_count; /* events at which something differed; 1 when the run stops at the
                                  first */
    frag_difference first;
    frag_initial initial;
    frag_policy_met met; /* where the policy has met the limits that its options set */
} frag_verify_result;

/* goes_on: count all differences instead of stopping at the first. false: as frag_replay_create; or
 * the context is cancelled, then error stays as it is. */
bool frag_verify(const frag_context *context, const frag_recording *recording,
                 const frag_trace *trace, const frag_policy_ops *ops,
                 const frag_option_value *values, uint64_t capacity_bytes, bool goes_on,
                 frag_verify_result *result, frag_error *error);

const char *frag_difference_name(frag_difference_kind kind);

#endif
