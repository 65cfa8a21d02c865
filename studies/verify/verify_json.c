#include "studies/verify/verify_json.h"

void frag_verify_row_head(frag_json *json, const frag_recording *recording, const frag_trace *trace,
                          const frag_policy_spec *policy)
{
    frag_json_text(json, "schema", "fraglab.verify/1");
    frag_json_text(json, "trace.name", recording->name);
    frag_json_text(json, "trace.digest", trace->digest);
    frag_json_number(json, "trace.device", trace->device);
    frag_json_text(json, "policy.name", policy->ops->name);
    frag_json_text(json, "policy.label", policy->text);
}

static void add_side_json(frag_json *json, const frag_side *side)
{
    frag_json_number(json, "reserved_bytes", side->reserved_bytes);
    frag_json_number(json, "requested_bytes", side->requested_bytes);
    frag_json_number(json, "live_requests", side->live_count);
}

static void add_intervals_json(frag_json *json, const frag_inferred *inferred)
{
    const struct {
        const char *name;
        const frag_pytorch_interval *all;
    } intervals[] = {{"memory_limit", &inferred->limit},
                     {"collection", &inferred->mark},
                     {"max_split_size", &inferred->split},
                     {"max_non_split_rounding", &inferred->slack}};
    frag_json *may_be = frag_json_object(json, "verify.may_be");
    for (size_t i = 0; i < sizeof intervals / sizeof intervals[0]; i++) {
        frag_json *item = frag_json_object(may_be, intervals[i].name);
        frag_json_number(item, "least_bytes", intervals[i].all->least);
        frag_json_number(item, "most_bytes", intervals[i].all->most);
    }
    frag_json_text(may_be, "roundup_power2_divisions",
                   inferred->divisions[0] != '\0' ? inferred->divisions : NULL);
}

void frag_verification_print_json(FILE *stream, const frag_recording *recording,
                                  const frag_trace *trace, const frag_verification *found)
{
    const frag_verify_result *result = &found->result;
    const frag_inferred *inferred = &found->inferred;
    frag_json *json = frag_json_create();
    frag_verify_row_head(json, recording, trace, &found->spec);
    if (frag_verification_outcome(found) == FRAG_NOTHING_COMPARED)
        frag_json_text(json, "verify.is_identical", NULL);
    else
        frag_json_flag(json, "verify.is_identical", result->is_identical);
    frag_json_number(json, "verify.requests", result->requests);
    frag_json_number(json, "verify.device_events", result->device_events);
    frag_json_number(json, "verify.ooms", result->ooms);
    frag_json_number(json, "verify.inferred_capacity_bytes",
                     inferred->limit_bytes == FRAG_UNLIMITED ? inferred->capacity_bytes
                                                             : FRAG_UNLIMITED);
    frag_json_number(json, "verify.inferred_limit_bytes", inferred->limit_bytes);
    const char *settings = inferred->settings[0] != '\0' ? inferred->settings : NULL;
    frag_json_text(json, "verify.inferred_settings", result->is_identical ? settings : NULL);
    add_intervals_json(json, inferred);
    frag_json_number(json, "verify.left_out_calls", inferred->left_out_calls);
    frag_json_text(json, "verify.tried", inferred->tried[0] != '\0' ? inferred->tried : NULL);
    frag_json_number(json, "verify.replays", inferred->replays);
    frag_json_text(json, "verify.nearest.settings", result->is_identical ? NULL : settings);
    frag_json_number(json, "verify.nearest.event",
                     result->is_identical || settings == NULL ? FRAG_UNLIMITED : inferred->event);
    frag_json_number(json, "verify.differences", result->difference_count);
    frag_json_text(json, "verify.first.kind",
                   result->is_identical ? NULL : frag_difference_name(result->first.kind));
    frag_json_number(json, "verify.first.event",
                     result->is_identical ? FRAG_UNLIMITED : result->first.event);
    const frag_side none = {FRAG_UNLIMITED, FRAG_UNLIMITED, FRAG_UNLIMITED};
    add_side_json(frag_json_object(json, "verify.first.recorded"),
                  result->is_identical ? &none : &result->first.side_recorded);
    add_side_json(frag_json_object(json, "verify.first.policy"),
                  result->is_identical ? &none : &result->first.side_simulated);
    frag_json_write(json, stream, false);
}
