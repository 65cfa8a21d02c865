/* Settings a recording does not hold, concluded from what it shows. */
#ifndef FRAG_VERIFY_VERIFY_INFER_H
#define FRAG_VERIFY_VERIFY_INFER_H

#include "allocators/pytorch/pytorch_met.h"
#include "allocators/registry.h"
#include "base/context.h"
#include "studies/verify/verify.h"

typedef struct frag_inferred {
    uint64_t capacity_bytes; /* FRAG_UNLIMITED: not needed */
    uint64_t limit_bytes;    /* memory limit; FRAG_UNLIMITED: none */
    /* "version=2.6,max_split_size_mb=128"; "": none but those given. Where nothing was found: those
     * that go along with the recording longest. */
    char settings[400];
    /* Values, in bytes, that all do what was recorded; least FRAG_UNLIMITED: not concluded. */
    frag_pytorch_interval limit;
    frag_pytorch_interval mark; /* of reserved bytes, above which garbage is collected */
    frag_pytorch_interval split;
    frag_pytorch_interval slack;
    uint64_t left_out_calls; /* of empty_cache, which the importer supposed and were none */
    char divisions[48];      /* "2, 4, 8": single values of roundup_power2_divisions; "": not so */
    uint64_t replays;        /* made to find this */
    uint64_t event;          /* up to which the nearest settings go, where nothing was found */
    char tried[200];         /* the settings that were looked for: "version, ..." */
} frag_inferred;

/* Nothing is concluded. */
void frag_inferred_create(frag_inferred *inferred);

/* The capacity to verify with: where none is known, though a share of it is named as the memory
 * limit, one so large that the limit is never reached. */
uint64_t frag_verify_capacity(const frag_recording *recording, const frag_policy_spec *spec,
                              uint64_t capacity_bytes);

/* Looks for what a recording does not say and the pytorch policy needs to do what was recorded.
 * true: result is identical, with what inferred says. A snapshot holds neither the capacity, on
 * which expandable segments depend, nor the memory limit, on which garbage collection does; its
 * release is known to a range; and those of old releases hold no settings. What was given, in the
 * spec or as a capacity, stays. false: result is as it was. */
bool frag_verify_infer(const frag_context *context, const frag_recording *recording,
                       const frag_trace *trace, const frag_policy_spec *spec,
                       uint64_t capacity_bytes, frag_verify_result *result,
                       frag_inferred *inferred);

#endif
