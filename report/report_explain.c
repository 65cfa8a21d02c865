/* The verdicts of a report: what `fraglab explain` says where memory ran out. */
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/text_stream.h"
#include "report/report_state.h"
#include "studies/explain/explain_recording.h"

/* What the device of a trace has for the policy. */
static uint64_t capacity_of(const frag_report_state *report, const frag_report_trace *trace)
{
    const frag_device_spec *device =
        trace->group != NULL ? &trace->group->device : report->wishes->device;
    if (device->capacity_bytes == FRAG_UNLIMITED ||
        device->capacity_bytes <= device->used_by_others_bytes)
        return FRAG_UNLIMITED;
    return device->capacity_bytes - device->used_by_others_bytes;
}

static bool has_oom(const frag_report_state *report, const frag_report_trace *trace)
{
    for (size_t i = 0; i < trace->run_count; i++) {
        const frag_report_run *run = &report->runs[trace->first_run + i];
        if (run->result.replay.oom.has_happened ||
            (run->stored != NULL && run->stored->result.replay.oom.has_happened))
            return true;
    }
    return trace->trace->stats.failed_count > 0;
}

/* A recording is explained once for each size of device. */
static void explain_source(const frag_report_state *report, frag_report_source *source,
                           uint64_t capacity_bytes)
{
    frag_explain_options options = {.capacity_bytes = capacity_bytes};
    if (source->explanation != NULL && source->explained_bytes == capacity_bytes)
        return;
    frag_free(source->explanation);
    source->explanation = NULL;
    source->explained_bytes = capacity_bytes;
    if (!frag_explain_can(&source->recording, &options))
        return;
    frag_error error = {0};
    frag_text_stream *stream = frag_text_stream_open();
    if (!frag_explain_recording(report->wishes->context, &source->recording, &options,
                                frag_text_stream_file(stream), true, &error))
        frag_context_warn(report->wishes->context, "%s: not explained: %s", source->path,
                          error.sentence);
    source->explanation = frag_text_stream_close(stream, NULL);
}

/* The line about one device; the caller frees. */
static char *line_of(const char *lines, uint32_t device)
{
    while (lines != NULL && *lines != '\0') {
        size_t length = strcspn(lines, "\n");
        frag_error none = {0};
        uint64_t found = FRAG_UNLIMITED;
        frag_json *json = frag_json_parse(lines, length, &none);
        if (json != NULL) {
            frag_json_find_number(json, "source.device", &found);
            frag_json_destroy(json);
        }
        if (found == device) {
            frag_text line = {0};
            frag_text_add_bytes(&line, lines, length);
            return line.bytes;
        }
        lines += length + (lines[length] == '\n');
    }
    return NULL;
}

void frag_report_explain(frag_report_state *report)
{
    for (size_t i = 0; i < report->trace_count && !frag_is_cancelled(report->wishes->context);
         i++) {
        frag_report_trace *trace = &report->traces[i];
        if (trace->source == NULL)
            continue;
        uint64_t capacity = capacity_of(report, trace);
        if (capacity == FRAG_UNLIMITED && !has_oom(report, trace))
            continue;
        explain_source(report, trace->source, capacity);
        trace->explanation = line_of(trace->source->explanation, trace->trace->device);
    }
}
