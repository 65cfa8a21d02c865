/* A piece of a trace as a recording of its own. */
#include "api/api_recording.h"
#include "base/memory.h"
#include "traces/cut.h"

typedef struct cut_call {
    const fraglab_recording *recording;
    size_t number;
    const fraglab_cut_options *given;
    fraglab_recording **made;
} cut_call;

static bool is_set(uint64_t first, uint64_t end)
{
    return first != 0 || end != 0;
}

static bool find_range(const frag_recording *recording, const frag_trace *trace,
                       const fraglab_cut_options *options, frag_cut_range *range, frag_error *error)
{
    bool has_events = is_set(options->first_event, options->end_event);
    bool has_times = is_set(options->start_ns, options->end_ns);
    *range = (frag_cut_range){0, trace->event_count};
    if ((int)has_events + (int)has_times + (int)(options->first_mark != NULL) > 1)
        return frag_fail_in(error, FRAG_E_USAGE, has_times ? "start_ns" : "first_mark",
                            "the piece is named twice; expected events, times or marks");
    if (options->first_mark == NULL && options->last_mark != NULL)
        return frag_fail_in(error, FRAG_E_USAGE, "last_mark",
                            "there is no first mark; give first_mark, where the piece begins");
    if (options->first_mark != NULL)
        return frag_cut_find_marks(recording, trace, options->first_mark, options->last_mark, range,
                                   error) ||
               frag_error_in(error, "first_mark");
    if (has_times) {
        frag_cut_times times = {options->start_ns,
                                options->end_ns != 0 ? options->end_ns : UINT64_MAX};
        return frag_cut_find_times(trace, times, range, error) || frag_error_in(error, "start_ns");
    }
    if (has_events) {
        range->first = options->first_event;
        range->end = options->end_event != 0 ? options->end_event : trace->event_count;
    }
    return true;
}

static bool cut_work(void *arguments, frag_error *error)
{
    cut_call *call = arguments;
    fraglab_cut_options options;
    frag_cut_range range;
    const frag_recording *recording = &call->recording->recording;
    fraglab_recording *made = frag_alloc(1, sizeof *made);
    const frag_trace *trace = frag_recording_trace_at(call->recording, call->number, error);
    if (trace == NULL ||
        !frag_call_read(call->given, &options, sizeof options, "fraglab_cut_options", error) ||
        !find_range(recording, trace, &options, &range, error))
        return false;
    if (!frag_cut(recording, trace, range, &made->recording, error))
        return frag_error_in(error, error->code == FRAG_E_USAGE ? "first_event" : recording->name);
    made->has_columns = call->recording->has_columns;
    frag_recorded_by(&made->recording, made->recorded_by);
    made->scope = frag_scope_active();
    *call->made = made;
    return true;
}

int fraglab_recording_cut(const fraglab_recording *recording, size_t trace,
                          const fraglab_cut_options *options, fraglab_recording **piece,
                          fraglab_error *error)
{
    cut_call call = {.recording = recording, .number = trace, .given = options, .made = piece};
    *piece = NULL;
    return frag_call_new(cut_work, &call, error);
}
