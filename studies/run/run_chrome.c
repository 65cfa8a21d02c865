#include "studies/run/run_chrome.h"

#include "base/bytes.h"
#include "sim/version.h"

bool frag_run_chrome_add(frag_chrome_writer *writer, const frag_recording *recording,
                         const frag_trace *trace, const frag_policy_spec *policy,
                         const frag_policy_plan *plan, const frag_device_spec *device,
                         const frag_run_options *run, frag_error *error)
{
    frag_replay_options again = {
        .is_oom_skipped = run->is_oom_skipped,
        .stop_after = FRAG_UNLIMITED,
        .observer = frag_chrome_writer_observe,
        .observer_context = writer,
        .on_note = frag_chrome_writer_note,
        .on_note_context = writer,
        .on_call = frag_chrome_writer_call,
        .is_start_noted = true,
        .context = run->context,
    };
    frag_chrome_writer_begin(writer, trace, policy->text);
    return frag_run_look_planned(
        &(frag_run_setup){recording, trace, policy->ops, policy->values, device}, plan, NULL,
        &again, NULL, NULL, error);
}

void frag_run_chrome_end(frag_chrome_writer *writer)
{
    char tool[64];
    snprintf(tool, sizeof tool, "fraglab %s", frag_version());
    frag_chrome_writer_finish(writer, tool);
}
