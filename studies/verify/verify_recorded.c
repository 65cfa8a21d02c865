#include "studies/verify/verify_recorded.h"

#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "studies/policy_settings.h"

bool frag_verify_check_observed(const frag_recording *recording, frag_error *error)
{
    static const frag_op observed[] = {FRAG_OP_SEGMENT_ALLOC, FRAG_OP_SEGMENT_FREE,
                                       FRAG_OP_SEGMENT_MAP, FRAG_OP_SEGMENT_UNMAP, FRAG_OP_OOM};
    uint64_t requests = 0;
    bool has_observed = false;
    for (uint32_t t = 0; t < recording->trace_count; t++) {
        const frag_trace_stats *stats = &recording->traces[t].stats;
        requests += stats->op_counts[FRAG_OP_ALLOC];
        for (size_t i = 0; i < sizeof observed / sizeof observed[0]; i++)
            has_observed = has_observed || stats->op_counts[observed[i]] > 0;
    }
    if (requests == 0 && frag_recording_get(recording, "torch.conf") == NULL)
        return frag_fail(error, FRAG_E_INPUT,
                         "it holds no requests that a policy could be asked; there is nothing to "
                         "verify");
    return requests == 0 || has_observed ||
           frag_fail(error, FRAG_E_INPUT,
                     "it holds requests, but no segments that an allocator took for them; there is "
                     "nothing to verify");
}

/* Golden logs hold the capacity of their device; other recordings do not. */
static uint64_t recorded_capacity(const frag_recording *recording)
{
    const char *text = frag_recording_get(recording, "golden.capacity");
    uint64_t capacity = FRAG_UNLIMITED;
    if (text != NULL)
        frag_count_parse(text, 0, UINT64_MAX, &capacity, NULL);
    return capacity;
}

/* The name comes from the recording, which must not make us load a shared object. */
static bool parse_named(const char *text, frag_policy_spec *spec, frag_error *error)
{
    char *name = frag_copy_text(text);
    name[strcspn(name, ":")] = '\0';
    bool is_ours = frag_policy_find(name) != NULL;
    frag_free(name);
    if (!is_ours)
        return frag_fail(error, FRAG_E_INPUT,
                         "it names '%s' as its policy, which fraglab does not have; name one with "
                         "--policy",
                         text);
    return frag_policy_spec_parse(text, spec, error);
}

/* A recording without settings of PyTorch is held against the policy that it names, or against
 * PyTorch's defaults, where what the settings were is looked for. */
static bool resolve(const frag_context *context, const frag_policy_spec *policy,
                    const frag_recording *recording, frag_policy_spec *resolved, frag_error *error)
{
    frag_policy_spec as_recorded = {0};
    if (policy != NULL)
        return frag_policy_resolve(context, policy, recording, resolved, error);
    if (frag_recording_get(recording, "torch.conf") == NULL) {
        const char *named = frag_recording_get(recording, "golden.policy");
        return parse_named(named != NULL ? named : "pytorch", resolved, error);
    }
    bool ok = frag_policy_spec_parse("pytorch:recorded", &as_recorded, error) &&
              frag_policy_resolve(context, &as_recorded, recording, resolved, error);
    frag_policy_spec_destroy(&as_recorded);
    return ok;
}

bool frag_verify_recorded(const frag_context *context, const frag_recording *recording,
                          const frag_trace *trace, const frag_policy_spec *policy,
                          uint64_t capacity_bytes, bool goes_on, frag_verification *found,
                          frag_error *error)
{
    *found = (frag_verification){.result = {.is_identical = false}};
    frag_inferred_create(&found->inferred);
    if (!resolve(context, policy, recording, &found->spec, error))
        return false;
    uint64_t capacity =
        capacity_bytes != FRAG_UNLIMITED ? capacity_bytes : recorded_capacity(recording);
    const frag_policy_spec *spec = &found->spec;
    bool ok = frag_verify(context, recording, trace, spec->ops, spec->values,
                          frag_verify_capacity(recording, spec, capacity), goes_on, &found->result,
                          error);
    if (ok && !found->result.is_identical)
        frag_verify_infer(context, recording, trace, spec, capacity, &found->result,
                          &found->inferred);
    ok = ok && !frag_is_cancelled(context);
    if (!ok)
        frag_verification_destroy(found);
    return ok;
}

frag_outcome frag_verification_outcome(const frag_verification *found)
{
    const frag_verify_result *result = &found->result;
    if (!result->is_identical)
        return FRAG_DIFFERENT;
    return result->requests + result->device_events + result->ooms > 0 ? FRAG_IDENTICAL
                                                                       : FRAG_NOTHING_COMPARED;
}

void frag_verification_destroy(frag_verification *found)
{
    frag_policy_spec_destroy(&found->spec);
}
