#include "cli/run/run_chrome.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/memory.h"
#include "sim/version.h"
#include "traces/exchange/chrome_write.h"

struct frag_run_chrome {
    frag_output *output;
    frag_chrome_writer writer;
    bool is_whole;
};

bool frag_run_chrome_open(const frag_arguments *arguments, const frag_policy_list *policies,
                          frag_run_chrome **chrome, frag_error *error)
{
    const char *path = frag_arguments_value(arguments, "chrome");
    *chrome = NULL;
    if (path == NULL)
        return true;
    if (policies->count != 1 || frag_arguments_operand_count(arguments) != 1) {
        frag_fail(error, FRAG_E_USAGE,
                  "the Chrome trace shows one run; give one trace and one policy");
        return frag_error_in(error, "--chrome");
    }
    frag_output *output = frag_output_open(path, frag_arguments_has(arguments, "force"), error);
    if (output == NULL)
        return false;
    *chrome = frag_alloc(1, sizeof **chrome);
    (*chrome)->output = output;
    (*chrome)->writer.stream = frag_output_stream(output);
    return true;
}

bool frag_run_chrome_add(frag_run_chrome *chrome, const frag_recording *recording,
                         const frag_trace *trace, const frag_policy_spec *policy,
                         const frag_policy_plan *plan, const frag_device_spec *device,
                         const frag_run_options *run, frag_error *error)
{
    frag_replay_options again = {
        .is_oom_skipped = run->is_oom_skipped,
        .stop_after = FRAG_UNLIMITED,
        .observer = frag_chrome_writer_observe,
        .observer_context = &chrome->writer,
        .on_note = frag_chrome_writer_note,
        .on_note_context = &chrome->writer,
        .on_call = frag_chrome_writer_call,
        .is_start_noted = true,
        .context = run->context,
    };
    frag_chrome_writer_begin(&chrome->writer, trace, policy->text);
    return frag_run_look_planned(
        &(frag_run_setup){recording, trace, policy->ops, policy->values, device}, plan, NULL,
        &again, NULL, NULL, error);
}

void frag_run_chrome_end(frag_run_chrome *chrome)
{
    char tool[64];
    snprintf(tool, sizeof tool, "fraglab %s", frag_version());
    frag_chrome_writer_finish(&chrome->writer, tool);
    chrome->is_whole = true;
}

bool frag_run_chrome_close(frag_run_chrome *chrome, frag_error *error)
{
    bool ok = true;
    if (chrome == NULL)
        return true;
    if (chrome->is_whole)
        ok = frag_output_finish(chrome->output, error);
    else
        frag_output_abandon(chrome->output);
    frag_chrome_writer_destroy(&chrome->writer);
    frag_free(chrome);
    return ok;
}
