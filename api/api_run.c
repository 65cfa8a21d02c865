#include "api/api_run.h"

#include <stdio.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/text_stream.h"
#include "sim/policy_engine.h"
#include "sim/rows/result.h"
#include "sim/version.h"
#include "studies/capacity/bounds.h"

struct fraglab_result {
    frag_scope *scope;
    char *line;
    frag_json *json; /* the same, to be asked */
};

typedef struct run_call {
    frag_replay_call replay;
    frag_run_result result;
    frag_row_packing packing;
    frag_row_stats stats;
    frag_error stats_error;
    fraglab_result **made;
} run_call;

static bool run_planned(run_call *call, frag_error *error)
{
    frag_replay_call *replay = &call->replay;
    frag_policy_plan *plan = NULL;
    if (!frag_replay_call_plan(replay, &plan, error))
        return false;
    bool ok = frag_run(&replay->setup, &replay->run, &call->result, error) &&
              frag_run_stats_take(&replay->stats_at, &replay->setup, &replay->run, &call->result,
                                  &call->stats_error, &call->stats, error) &&
              (replay->options.with_bounds == 0 ||
               frag_bounds_find(replay->below, &replay->recording->recording, replay->trace,
                                &call->packing, error));
    frag_policy_plan_destroy(replay->spec.ops, plan);
    return ok && frag_replay_call_goes_on(replay, error);
}

static void write_row(const run_call *call, FILE *stream)
{
    const frag_replay_call *replay = &call->replay;
    const fraglab_recording *from = replay->recording;
    const frag_row row = {
        .packing = replay->options.with_bounds != 0 ? &call->packing : NULL,
        .tool_version = frag_version(),
        .tool_commit = frag_commit(),
        .trace_name = from->recording.name,
        .trace = replay->trace,
        .recorded_by = from->recorded_by[0] != '\0' ? from->recorded_by : NULL,
        .ops = replay->spec.ops,
        .values = replay->spec.values,
        .label = replay->spec.text,
        .device = &replay->device,
        .result = &call->result,
        .has_timing = replay->run.is_timed,
        .stats = replay->stats_at.text != NULL ? &call->stats : NULL,
    };
    frag_result_write(FRAG_RESULT_JSONL, stream, &row);
}

static bool run_work(void *arguments, frag_error *error)
{
    run_call *call = arguments;
    size_t length = 0;
    if (!frag_replay_call_begin(&call->replay, error) || !run_planned(call, error))
        return false;
    fraglab_result *made = frag_alloc(1, sizeof *made);
    frag_text_stream *stream = frag_text_stream_open();
    write_row(call, frag_text_stream_file(stream));
    made->line = frag_text_stream_close(stream, &length);
    made->json = frag_json_parse(made->line, length, error);
    frag_policy_spec_destroy(&call->replay.spec);
    frag_stats_destroy(&call->stats.values);
    if (made->json == NULL)
        return false;
    made->scope = frag_scope_active();
    *call->made = made;
    return true;
}

int fraglab_run(const fraglab_context *context, const fraglab_recording *recording, size_t trace,
                const fraglab_policy *policy, const fraglab_run_options *options,
                fraglab_result **result, fraglab_error *error)
{
    run_call call = {.replay = frag_replay_call_of(context, recording, trace, policy, options),
                     .made = result};
    *result = NULL;
    return frag_call_new(run_work, &call, error);
}

void fraglab_result_destroy(fraglab_result *result)
{
    if (result != NULL)
        frag_scope_destroy(result->scope);
}

/* ---- what it says */

const char *fraglab_result_json(const fraglab_result *result)
{
    return result->line;
}

static const frag_json_value *field(const fraglab_result *result, const char *path)
{
    size_t start = 0;
    /* Names of fields are short; the search below expects that. */
    for (size_t i = 0; path[i] != '\0'; i++) {
        start = path[i] == '.' ? i + 1 : start;
        if (i >= start + 100)
            return NULL;
    }
    return frag_json_at_path(result->json, path);
}

static int refuse_field(const fraglab_result *result, const char *path, const char *expected,
                        fraglab_error *error)
{
    char found[FRAG_JSON_FOUND_MAX];
    char sentence[160];
    snprintf(sentence, sizeof sentence, "the field %s; expected %s",
             frag_json_found(field(result, path), found), expected);
    return frag_call_refuse(error, FRAGLAB_E_USAGE, path, sentence);
}

int fraglab_result_u64(const fraglab_result *result, const char *path, uint64_t *value,
                       fraglab_error *error)
{
    return frag_json_read_number(field(result, path), value)
               ? FRAGLAB_OK
               : refuse_field(result, path, "a whole number", error);
}

int fraglab_result_double(const fraglab_result *result, const char *path, double *value,
                          fraglab_error *error)
{
    return frag_json_read_ratio(field(result, path), value)
               ? FRAGLAB_OK
               : refuse_field(result, path, "a number", error);
}

int fraglab_result_text(const fraglab_result *result, const char *path, const char **value,
                        fraglab_error *error)
{
    return frag_json_read_text(field(result, path), value)
               ? FRAGLAB_OK
               : refuse_field(result, path, "a text", error);
}
