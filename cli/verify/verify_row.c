#include "cli/verify/verify_row.h"

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
