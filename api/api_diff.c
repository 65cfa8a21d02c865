/* What differs between two recordings, or two moments of one. */
#include <string.h>

#include "api/api_run.h"
#include "base/text_stream.h"
#include "studies/diff/diff_json.h"

typedef struct diff_call {
    const fraglab_recording *recordings[2];
    size_t numbers[2];
    const fraglab_diff_options *given;
    fraglab_diff_options options;
    frag_replay_call replay; /* its context and device */
    char *json;
} diff_call;

static bool read_grouping(const char *by, frag_use_grouping *grouping, frag_error *error)
{
    *grouping = FRAG_USES_BY_SITE;
    for (uint32_t i = 0; by != NULL && i <= (uint32_t)FRAG_USES_BY_SIZE; i++)
        if (strcmp(by, frag_use_grouping_name((frag_use_grouping)i)) == 0) {
            *grouping = (frag_use_grouping)i;
            return true;
        }
    if (by == NULL)
        return true;
    return frag_fail_in(error, FRAG_E_USAGE, "by",
                        "'%s' is not a group; expected site, stack, purpose or size", by);
}

static bool diff_work(void *arguments, frag_error *error)
{
    diff_call *call = arguments;
    fraglab_diff_options *options = &call->options;
    frag_diff_options wanted = {0};
    frag_diff_source sources[2] = {{0}};
    frag_diff diff;
    if (!frag_call_read(call->given, options, sizeof *options, "fraglab_diff_options", error) ||
        !read_grouping(options->by, &wanted.grouping, error) ||
        !frag_replay_call_device(&call->replay, error))
        return false;
    const char *const places[2] = {options->at_before, options->at_after};
    for (size_t i = 0; i < 2; i++) {
        sources[i].recording = &call->recordings[i]->recording;
        sources[i].trace = frag_recording_trace_at(call->recordings[i], call->numbers[i], error);
        sources[i].at = places[i];
        if (sources[i].trace == NULL)
            return false;
    }
    wanted.context = call->replay.below;
    wanted.device = &call->replay.device;
    wanted.is_replayed = options->without_replays == 0;
    wanted.spec = options->policy != NULL ? &options->policy->spec : NULL;
    bool ok = frag_diff_make(&wanted, sources, &diff, error);
    if (!frag_replay_call_goes_on(&call->replay, error) || !ok)
        return false;
    frag_text_stream *stream = frag_text_stream_open();
    frag_diff_print_json(frag_text_stream_file(stream), &diff);
    frag_diff_destroy(&diff);
    call->json = frag_call_hand_out(frag_text_stream_close(stream, NULL));
    return true;
}

int fraglab_diff(const fraglab_context *context, const fraglab_recording *before,
                 size_t before_trace, const fraglab_recording *after, size_t after_trace,
                 const fraglab_run_options *run_options, const fraglab_diff_options *options,
                 char **json, fraglab_error *error)
{
    diff_call call = {.recordings = {before, after},
                      .numbers = {before_trace, after_trace},
                      .given = options,
                      .replay = {.context = context, .given = run_options}};
    int code = frag_call_once(diff_work, &call, error);
    *json = call.json;
    return code;
}
