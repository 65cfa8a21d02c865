#include "studies/verify/golden_check.h"

#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "studies/policy_settings.h"

/* The recorded settings of a log of another framework's pool are a policy with its options. */
static bool choose_policy(const frag_policy_spec *spec, const frag_golden_log *log,
                          frag_golden_check_result *checked, frag_error *error)
{
    if (log->library == 0 || !spec->wants_recorded)
        return frag_policy_spec_copy(spec, &checked->spec);
    return frag_policy_spec_parse(frag_strings_get(&log->strings, log->policy), &checked->spec,
                                  error);
}

static bool compare(const frag_golden_log *log, const char *name, const frag_policy_spec *spec,
                    const frag_golden_options *options, frag_golden_check_result *checked,
                    frag_error *error)
{
    frag_recording recording = {0};
    frag_policy_spec resolved;
    uint64_t *ends = NULL;
    memcpy(checked->torch, log->torch, sizeof checked->torch);
    checked->library = frag_copy_text(frag_strings_get(&log->strings, log->library));
    checked->conf = frag_copy_text(frag_strings_get(&log->strings, log->conf));
    if (!choose_policy(spec, log, checked, error) ||
        !frag_golden_log_record(log, name, &recording, &ends, error))
        return false;
    bool ok = frag_policy_resolve(options->context, &checked->spec, &recording, &resolved, error);
    if (ok) {
        ok =
            frag_golden_compare(log, &recording, ends, &resolved, options, &checked->result, error);
        frag_policy_spec_destroy(&resolved);
    }
    frag_free(ends);
    frag_recording_destroy(&recording);
    return ok;
}

const char *frag_golden_check_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "stdin" : frag_path_name(path);
}

bool frag_golden_check(frag_input *input, const char *name, const frag_policy_spec *spec,
                       const frag_golden_options *options, frag_golden_check_result *checked,
                       frag_error *error)
{
    frag_golden_log log = {0};
    if (!frag_golden_log_read(input, &log, error))
        return false;
    bool ok = compare(&log, name, spec, options, checked, error);
    frag_golden_log_destroy(&log);
    return ok;
}

void frag_golden_check_destroy(frag_golden_check_result *checked)
{
    frag_free(checked->conf);
    frag_free(checked->library);
    frag_policy_spec_destroy(&checked->spec);
    frag_golden_result_destroy(&checked->result);
}

void frag_golden_check_print_json(FILE *stream, const char *name,
                                  const frag_golden_check_result *checked)
{
    const frag_golden_result *result = &checked->result;
    bool is_same = result->is_identical;
    frag_json *json = frag_json_create();
    frag_json_text(json, "schema", "fraglab.verify/1");
    frag_json_text(json, "trace.name", name);
    bool is_torch = checked->torch[0] != '\0';
    frag_json_text(json, "trace.torch", is_torch ? checked->torch : NULL);
    frag_json_text(json, "trace.conf", is_torch ? checked->conf : NULL);
    frag_json_text(json, "trace.library", is_torch ? NULL : checked->library);
    frag_json_text(json, "policy.name", checked->spec.ops->name);
    frag_json_text(json, "policy.label", checked->spec.text);
    frag_json_text(json, "verify.against", "golden");
    frag_json_flag(json, "verify.is_identical", is_same);
    frag_json_number(json, "verify.requests", result->requests);
    frag_json_number(json, "verify.device_events", result->device_events);
    frag_json_number(json, "verify.trace_events", result->trace_events);
    frag_json_number(json, "verify.ooms", result->ooms);
    frag_json_number(json, "verify.stat_lines", result->stat_lines);
    frag_json_number(json, "verify.segments", result->segments);
    frag_json_flag(json, "verify.has_library_failed", result->has_failed);
    frag_json_text(json, "verify.first.kind", is_same ? NULL : result->kind);
    frag_json_number(json, "verify.first.line", is_same ? FRAG_UNLIMITED : result->line);
    frag_json_text(json, "verify.first.library", is_same ? NULL : result->library.bytes);
    frag_json_text(json, "verify.first.fraglab", is_same ? NULL : result->policy.bytes);
    frag_json_write(json, stream, false);
}
