#include "api/api_recording.h"

#include <inttypes.h>
#include <string.h>

#include "api/api_target.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text_stream.h"
#include "traces/write.h"

typedef struct open_call {
    const fraglab_context *context;
    const fraglab_open_options *options;
    const char *path;  /* NULL: not a path */
    const void *bytes; /* NULL: a descriptor */
    size_t count;
    int descriptor;
    fraglab_recording **made;
} open_call;

static frag_input *open_input(const open_call *call, const fraglab_open_options *options,
                              frag_error *error)
{
    const char *name = options->name != NULL ? options->name : "memory";
    if (call->path != NULL)
        return frag_input_open(call->path, error);
    return call->bytes != NULL ? frag_input_from_memory(call->bytes, call->count, name)
                               : frag_input_from_descriptor(call->descriptor, name, error);
}

bool frag_call_format(const char *name, frag_trace_format *format, frag_error *error)
{
    *format = FRAG_FORMAT_AUTO;
    if (name == NULL || frag_trace_format_find(name, format))
        return true;
    return frag_fail_in(error, FRAG_E_USAGE, "format",
                        "'%s' is not a trace format; expected " FRAG_FORMAT_LIST, name);
}

static void warn_of_findings(const frag_context *context, const fraglab_recording *made)
{
    uint64_t count = frag_findings_inconsistencies(&made->findings);
    if (count > 0)
        frag_context_warn(context, "%s: %" PRIu64 " inconsistencies; the findings explain them",
                          made->recording.name, count);
}

static bool open_work(void *arguments, frag_error *error)
{
    open_call *call = arguments;
    const frag_context *below = frag_call_context(call->context);
    fraglab_open_options options;
    frag_load_options load = {.format = FRAG_FORMAT_AUTO};
    fraglab_recording *made = frag_alloc(1, sizeof *made);
    if (!frag_call_read(call->options, &options, sizeof options, "fraglab_open_options", error) ||
        !frag_call_format(options.format, &load.format, error))
        return false;
    load.with_sites = load.with_columns = options.with_sites != 0;
    frag_input *input = open_input(call, &options, error);
    if (input == NULL)
        return false;
    frag_input_stop_by(input, below);
    bool ok = frag_recording_load_input(input, &load, &made->recording, &made->findings, error);
    frag_input_close(input);
    if (!frag_call_goes_on(below, error))
        return false;
    if (!ok)
        return frag_error_in(error, call->path != NULL ? call->path : "memory");
    if (options.name != NULL) {
        frag_free(made->recording.name);
        made->recording.name = frag_copy_text(options.name);
        frag_text_make_plain(made->recording.name);
    }
    made->has_columns = load.with_columns;
    frag_recorded_by(&made->recording, made->recorded_by);
    warn_of_findings(below, made);
    made->scope = frag_scope_active();
    *call->made = made;
    return true;
}

static int open_by(open_call *call, fraglab_recording **recording, fraglab_error *error)
{
    *recording = NULL;
    call->made = recording;
    return frag_call_new(open_work, call, error);
}

int fraglab_open_path(const fraglab_context *context, const char *path,
                      const fraglab_open_options *options, fraglab_recording **recording,
                      fraglab_error *error)
{
    open_call call = {.context = context, .options = options, .path = path};
    return open_by(&call, recording, error);
}

int fraglab_open_memory(const fraglab_context *context, const void *bytes, size_t count,
                        const fraglab_open_options *options, fraglab_recording **recording,
                        fraglab_error *error)
{
    open_call call = {.context = context,
                      .options = options,
                      .bytes = bytes != NULL && count > 0 ? bytes : "",
                      .count = bytes != NULL ? count : 0};
    return open_by(&call, recording, error);
}

int fraglab_open_descriptor(const fraglab_context *context, int descriptor,
                            const fraglab_open_options *options, fraglab_recording **recording,
                            fraglab_error *error)
{
    open_call call = {.context = context, .options = options, .descriptor = descriptor};
    return open_by(&call, recording, error);
}

void fraglab_recording_close(fraglab_recording *recording)
{
    if (recording != NULL)
        frag_scope_destroy(recording->scope);
}

/* ---- what is in it */

size_t fraglab_recording_trace_count(const fraglab_recording *recording)
{
    return recording->recording.trace_count;
}

size_t fraglab_recording_main_trace(const fraglab_recording *recording)
{
    const frag_trace *trace = frag_recording_main_trace(&recording->recording);
    return trace != NULL ? (size_t)(trace - recording->recording.traces) : 0;
}

const frag_trace *frag_recording_trace_at(const fraglab_recording *recording, size_t number,
                                          frag_error *error)
{
    if (number < recording->recording.trace_count)
        return &recording->recording.traces[number];
    uint32_t count = recording->recording.trace_count;
    frag_fail(error, FRAG_E_USAGE,
              "there is no trace %zu; the recording has %" PRIu32 " trace%s, counted from 0",
              number, count, count == 1 ? "" : "s");
    frag_error_in(error, recording->recording.name);
    return NULL;
}

const frag_recording *const *frag_call_recordings(const fraglab_recording *const *recordings,
                                                  size_t count)
{
    const frag_recording **below = frag_alloc(count, sizeof *below);
    for (size_t i = 0; i < count; i++)
        below[i] = &recordings[i]->recording;
    return below;
}

static void fill_facts(const frag_trace *trace, fraglab_trace_facts *facts)
{
    const frag_trace_stats *stats = &trace->stats;
    *facts = (fraglab_trace_facts){
        .size = sizeof *facts,
        .device = trace->device,
        .event_count = trace->event_count,
        .request_count = stats->request_count,
        .failed_count = stats->failed_count,
        .stream_count = trace->stream_count,
        .pool_count = trace->pool_count > 0 ? trace->pool_count : 1,
        .initial_bytes = stats->initial_bytes,
        .peak_requested_bytes = stats->peak_requested_bytes,
        .peak_requested_event = stats->peak_requested_event,
        .bound_bytes = frag_trace_bound_bytes(trace),
        .observed_reserved_peak_bytes = stats->observed_reserved_peak_bytes,
    };
    memcpy(facts->digest, trace->digest, sizeof facts->digest);
}

typedef struct facts_call {
    const fraglab_recording *recording;
    size_t trace;
    fraglab_trace_facts *facts;
} facts_call;

static bool facts_work(void *arguments, frag_error *error)
{
    facts_call *call = arguments;
    fraglab_trace_facts facts;
    const frag_trace *trace = frag_recording_trace_at(call->recording, call->trace, error);
    if (trace == NULL)
        return false;
    fill_facts(trace, &facts);
    return frag_call_write(&facts, sizeof facts, call->facts, "fraglab_trace_facts", error);
}

int fraglab_recording_trace_facts(const fraglab_recording *recording, size_t trace,
                                  fraglab_trace_facts *facts, fraglab_error *error)
{
    facts_call call = {recording, trace, facts};
    return frag_call_once(facts_work, &call, error);
}

typedef struct json_call {
    const fraglab_recording *recording;
    char *json;
} json_call;

static void add_findings(frag_json *json, const frag_findings *findings)
{
    frag_json_array(json, "findings");
    for (uint32_t i = 0; i < findings->count; i++) {
        const frag_finding *finding = &findings->items[i];
        frag_json *item = frag_json_add(json, "findings");
        frag_json_text(item, "kind", finding->kind);
        frag_json_text(item, "meaning", finding->meaning);
        frag_json_number(item, "count", finding->count);
        frag_json_number(item, "device", finding->device);
        frag_json_number(item, "entry", finding->event);
        frag_json_text(item, "first", finding->first);
        frag_json_flag(item, "is_inconsistency", finding->is_inconsistency);
    }
}

static void add_trace(frag_json *json, const frag_trace *trace)
{
    fraglab_trace_facts facts;
    frag_json *item = frag_json_add(json, "traces");
    fill_facts(trace, &facts);
    frag_json_number(item, "device", facts.device);
    frag_json_text(item, "digest", facts.digest);
    frag_json_number(item, "event_count", facts.event_count);
    frag_json_number(item, "request_count", facts.request_count);
    frag_json_number(item, "failed_count", facts.failed_count);
    frag_json_number(item, "stream_count", facts.stream_count);
    frag_json_number(item, "pool_count", facts.pool_count);
    frag_json_number(item, "initial_bytes", facts.initial_bytes);
    frag_json_number(item, "peak_requested_bytes", facts.peak_requested_bytes);
    frag_json_number(item, "peak_requested_event", facts.peak_requested_event);
    frag_json_number(item, "bound_bytes", facts.bound_bytes);
    frag_json_number(item, "observed_reserved_peak_bytes", facts.observed_reserved_peak_bytes);
}

static bool json_work(void *arguments, frag_error *error)
{
    json_call *call = arguments;
    const fraglab_recording *from = call->recording;
    frag_text_stream *stream = frag_text_stream_open();
    frag_json *json = frag_json_create();
    (void)error;
    frag_json_text(json, "schema", "fraglab.recording/1");
    frag_json_text(json, "name", from->recording.name);
    frag_json_text(json, "recorded_by", from->recorded_by[0] != '\0' ? from->recorded_by : NULL);
    frag_recording_add_metadata(json, &from->recording);
    add_findings(json, &from->findings);
    frag_json_array(json, "traces");
    for (uint32_t i = 0; i < from->recording.trace_count; i++)
        add_trace(json, &from->recording.traces[i]);
    frag_json_write(json, frag_text_stream_file(stream), false);
    call->json = frag_call_hand_out(frag_text_stream_close(stream, NULL));
    return true;
}

int fraglab_recording_json(const fraglab_recording *recording, char **json, fraglab_error *error)
{
    json_call call = {recording, NULL};
    int code = frag_call_once(json_work, &call, error);
    *json = call.json;
    return code;
}

/* ---- writing */

typedef struct write_call {
    const fraglab_recording *recording;
    const char *format;
    frag_target target;
} write_call;

static bool write_to(void *state, FILE *stream, frag_error *error)
{
    const write_call *call = state;
    return frag_recording_write(&call->recording->recording, call->format, stream, error);
}

static bool write_work(void *arguments, frag_error *error)
{
    write_call *call = arguments;
    return frag_target_write(&call->target, write_to, call, error);
}

int fraglab_recording_write(const fraglab_recording *recording, const char *format,
                            const char *path, int overwrite, fraglab_error *error)
{
    write_call call = {.recording = recording,
                       .format = format,
                       .target = {.path = path, .may_overwrite = overwrite != 0}};
    return frag_call_once(write_work, &call, error);
}

int fraglab_recording_write_memory(const fraglab_recording *recording, const char *format,
                                   void **bytes, size_t *count, fraglab_error *error)
{
    write_call call = {.recording = recording, .format = format};
    int code = frag_call_once(write_work, &call, error);
    *bytes = call.target.bytes;
    *count = call.target.count;
    return code;
}
