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

static void add_side_json(frag_json *json, const char *name, const frag_side *side)
{
    const struct {
        const char *name;
        uint64_t figure;
    } figures[] = {{"reserved_bytes", side->reserved_bytes},
                   {"requested_bytes", side->requested_bytes},
                   {"live_requests", side->live_count}};
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        char path[64];
        snprintf(path, sizeof path, "verify.first.%s.%s", name, figures[i].name);
        frag_json_number(json, path, figures[i].figure);
    }
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
    for (size_t i = 0; i < sizeof intervals / sizeof intervals[0]; i++) {
        char path[80];
        snprintf(path, sizeof path, "verify.may_be.%s.least_bytes", intervals[i].name);
        frag_json_number(json, path, intervals[i].all->least);
        snprintf(path, sizeof path, "verify.may_be.%s.most_bytes", intervals[i].name);
        frag_json_number(json, path, intervals[i].all->most);
    }
    frag_json_text(json, "verify.may_be.roundup_power2_divisions",
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
    add_side_json(json, "recorded", result->is_identical ? &none : &result->first.side_recorded);
    add_side_json(json, "policy", result->is_identical ? &none : &result->first.side_simulated);
    frag_json_write(json, stream, false);
}
