/* The ranks of one job side by side. */
#include "api/api_run.h"
#include "base/memory.h"
#include "base/text_stream.h"
#include "studies/explain/explain_trace.h"
#include "studies/ranks/world_json.h"

typedef struct ranks_call {
    const fraglab_recording *const *recordings;
    size_t count;
    const fraglab_ranks_options *given;
    fraglab_ranks_options options;
    frag_replay_call replay; /* its context and device */
    frag_world_rank *ranks;
    size_t rank_count;
    frag_rank_list *stages;
    frag_policy_list tried;
    char *json;
} ranks_call;

static uint32_t *number(const ranks_call *call)
{
    uint32_t *numbers = frag_alloc(call->count, sizeof *numbers);
    const char **names = frag_alloc(call->count, sizeof *names);
    for (size_t i = 0; i < call->count; i++)
        names[i] = call->recordings[i]->recording.name;
    frag_rank_numbers(names, call->count, numbers);
    for (size_t i = 0; i < call->count && call->options.numbers != NULL; i++)
        numbers[i] = call->options.numbers[i];
    frag_free(names);
    return numbers;
}

static bool measure_devices(ranks_call *call, const frag_world_options *wanted, frag_error *error)
{
    return frag_world_rank_measure_devices(wanted, &call->recordings[0]->recording, &call->ranks,
                                           &call->rank_count, error) &&
           (call->rank_count > 1 ||
            frag_fail_in(
                error, FRAG_E_USAGE, "recordings",
                "there is one recording, of one device; expected the recordings of several "
                "ranks, or one of several devices"));
}

static bool measure(ranks_call *call, frag_error *error)
{
    const frag_world_options wanted = {
        .context = call->replay.below,
        .spec = call->options.policy != NULL ? &call->options.policy->spec : NULL,
        .device = &call->replay.device,
        .tried = call->options.tries_settings != 0 ? &call->tried : NULL,
    };
    if (call->count == 1)
        return measure_devices(call, &wanted, error);
    uint32_t *numbers = number(call);
    bool ok = true;
    call->ranks = frag_alloc(call->count, sizeof *call->ranks);
    for (size_t i = 0; i < call->count && ok; i++) {
        const frag_recording *recording = &call->recordings[i]->recording;
        const frag_trace *trace = frag_recording_main_trace(recording);
        if (trace == NULL)
            ok = frag_fail_in(error, FRAG_E_INPUT, recording->name, "the recording holds no trace");
        else
            ok = frag_world_rank_measure(&wanted, recording, trace, numbers[i],
                                         &call->ranks[call->rank_count++], error);
    }
    frag_free(numbers);
    return ok;
}

static bool list_tries(ranks_call *call, frag_error *error)
{
    const frag_explain_options none = {.capacity_bytes = FRAG_UNLIMITED};
    uint64_t *capacity = &call->replay.device.capacity_bytes;
    bool is_given = *capacity != FRAG_UNLIMITED;
    if (call->options.tries_settings == 0)
        return true;
    for (size_t i = 0; i < call->count && !is_given; i++) {
        const frag_trace *trace = frag_recording_main_trace(&call->recordings[i]->recording);
        uint64_t recorded = trace != NULL ? frag_explain_capacity(trace, &none) : FRAG_UNLIMITED;
        *capacity = recorded < *capacity ? recorded : *capacity;
    }
    if (*capacity == FRAG_UNLIMITED)
        return frag_fail_in(error, FRAG_E_USAGE, "tries_settings",
                            "no rank ran out of memory on a device whose size is "
                            "recorded; give a capacity");
    return frag_world_list_tries(NULL, &call->tried, error);
}

static bool read_stages(ranks_call *call, frag_error *error)
{
    call->stages = frag_alloc(call->options.stage_count + 1, sizeof *call->stages);
    for (size_t i = 0; i < call->options.stage_count; i++) {
        const char *text = call->options.stages[i];
        if (text == NULL)
            frag_fail(error, FRAG_E_USAGE, "one is NULL; expected a list of ranks, 0-3,8");
        if (text == NULL || !frag_rank_list_parse(text, &call->stages[i], error))
            return frag_error_in(error, "stages");
    }
    return true;
}

/* What makes no world, of ranks in order: two of one number, else a stage. */
static const char *wrong_place(const ranks_call *call)
{
    for (size_t i = 1; i < call->rank_count; i++)
        if (call->ranks[i - 1].number == call->ranks[i].number)
            return "numbers";
    return "stages";
}

static bool conclude(ranks_call *call, frag_error *error)
{
    frag_world world;
    if (!frag_world_make(call->ranks, call->rank_count, call->stages, call->options.stage_count,
                         &world, error))
        return frag_error_in(error, wrong_place(call));
    frag_text_stream *stream = frag_text_stream_open();
    frag_world_print_json(frag_text_stream_file(stream), &world,
                          call->options.tries_settings != 0 ? &call->tried : NULL,
                          call->replay.device.capacity_bytes);
    call->json = frag_call_hand_out(frag_text_stream_close(stream, NULL));
    return true;
}

/* What was made goes with the scope of the call. */
static bool ranks_work(void *arguments, frag_error *error)
{
    ranks_call *call = arguments;
    if (!frag_call_read(call->given, &call->options, sizeof call->options, "fraglab_ranks_options",
                        error))
        return false;
    if (call->count == 0)
        return frag_fail_in(error, FRAG_E_USAGE, "recordings",
                            "there is no recording; expected the recordings of several ranks");
    if (call->count == 1 && call->options.numbers != NULL)
        return frag_fail_in(error, FRAG_E_USAGE, "numbers",
                            "numbers are of several recordings; one has those of its devices");
    if (!frag_replay_call_device(&call->replay, error) || !read_stages(call, error) ||
        !list_tries(call, error))
        return false;
    bool ok = measure(call, error);
    return frag_replay_call_goes_on(&call->replay, error) && ok && conclude(call, error);
}

int fraglab_ranks(const fraglab_context *context, const fraglab_recording *const *recordings,
                  size_t count, const fraglab_run_options *run_options,
                  const fraglab_ranks_options *options, char **json, fraglab_error *error)
{
    ranks_call call = {.recordings = recordings,
                       .count = count,
                       .given = options,
                       .replay = {.context = context, .given = run_options}};
    int code = frag_call_once(ranks_work, &call, error);
    *json = call.json;
    return code;
}
