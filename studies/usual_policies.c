#include "studies/usual_policies.h"

#include "allocators/pytorch/pytorch_options.h"
#include "base/memory.h"

static const char *const usual[] = {"pytorch", "pytorch:expandable_segments=true", "best-fit",
                                    "frugal"};

/* Does the release that made the recording have these settings? */
static bool has_release_settings(const frag_policy_spec *spec, const frag_recording *recording)
{
    const char *hint = frag_recording_get(recording, "torch.version_hint");
    frag_pytorch_settings settings;
    return !frag_pytorch_is_set_by(spec->ops) || spec->wants_recorded ||
           frag_pytorch_settings_of(&settings, spec->ops, spec->values, hint);
}

void frag_usual_policies(const frag_recording *recording, frag_policy_list *policies)
{
    bool has_settings = frag_recording_get(recording, "torch.conf") != NULL;
    size_t count = sizeof usual / sizeof usual[0];
    *policies = (frag_policy_list){.specs = frag_alloc(count, sizeof *policies->specs)};
    for (size_t i = 0; i < count; i++) {
        frag_policy_spec *spec = &policies->specs[policies->count];
        frag_error error = {0};
        const char *text = i == 0 && has_settings ? "pytorch:recorded" : usual[i];
        bool ok = frag_policy_spec_parse(text, spec, &error);
        FRAG_ASSERT(ok);
        if (has_release_settings(spec, recording))
            policies->count++;
        else
            frag_policy_spec_destroy(spec);
    }
}

bool frag_usual_policy_resolve(const frag_context *context, const frag_policy_spec *given,
                               const frag_recording *recording, frag_policy_spec *resolved,
                               frag_error *error)
{
    frag_policy_list policies = {0};
    if (given == NULL)
        frag_usual_policies(recording, &policies);
    bool ok = frag_policy_resolve(context, given != NULL ? given : &policies.specs[0], recording,
                                  resolved, error);
    frag_policy_list_destroy(&policies);
    return ok;
}
