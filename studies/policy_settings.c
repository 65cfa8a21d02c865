#include "studies/policy_settings.h"

#include "allocators/pytorch/pytorch_conf.h"
#include "allocators/pytorch/pytorch_options.h"

#define NO_CONF "pytorch:env finds no PYTORCH_CUDA_ALLOC_CONF; set it or leave :env out"

void frag_policy_list_destroy(frag_policy_list *policies)
{
    frag_policy_specs_destroy(policies->specs, policies->count);
    *policies = (frag_policy_list){0};
}

bool frag_policy_check_environment(const frag_context *context, const frag_policy_spec *spec,
                                   frag_error *error)
{
    if (!spec->wants_env || frag_pytorch_conf_of(FRAG_PYTORCH_SEVERAL_NAMES, context) != NULL)
        return true;
    return frag_fail_in(error, FRAG_E_USAGE, "--policy", NO_CONF);
}

/* Which variables count depends on the release, and that perhaps on the recording. */
static bool take_environment(const frag_context *context, frag_policy_spec *spec,
                             const frag_recording *recording, frag_error *error)
{
    const char *recorded = frag_recording_get(recording, "torch.version_hint");
    uint32_t version = 0;
    if (!frag_pytorch_version(frag_policy_spec_text(spec, "version"),
                              recorded != NULL ? recorded : "", &version, error))
        return false;
    const char *conf = frag_pytorch_conf_of(version, context);
    if (conf == NULL)
        return frag_fail(error, FRAG_E_USAGE, NO_CONF " (PyTorch %u.%u reads no other variable)",
                         version / 100, version % 100);
    frag_policy_spec_take(spec, conf);
    return true;
}

static bool take_recorded(frag_policy_spec *spec, const frag_recording *recording,
                          frag_error *error)
{
    const char *conf = frag_recording_get(recording, "torch.conf");
    if (conf == NULL)
        return frag_fail(error, FRAG_E_USAGE,
                         "%s holds no settings for pytorch:recorded; name the settings instead",
                         recording->name);
    frag_policy_spec_take(spec, conf);
    return true;
}

bool frag_policy_resolve(const frag_context *context, const frag_policy_spec *spec,
                         const frag_recording *recording, frag_policy_spec *resolved,
                         frag_error *error)
{
    frag_policy_spec_copy(spec, resolved);
    if ((!spec->wants_env || take_environment(context, resolved, recording, error)) &&
        (!spec->wants_recorded || take_recorded(resolved, recording, error)))
        return true;
    frag_policy_spec_destroy(resolved);
    return frag_error_in(error, "--policy");
}
