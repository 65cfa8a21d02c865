/* The runs of `fraglab report`: recordings are loaded, replayed and explained side by side. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/bytes.h"
#include "sim/base/json.h"
#include "sim/base/memory.h"
#include "sim/cli/explain_trace.h"
#include "sim/cli/report_state.h"

static void load_source(void *context, uint64_t index)
{
    frag_report_state *report = context;
    frag_report_source *source = &report->sources[index];
    source->is_loaded =
        frag_inputs_load(source->path, report->format, true, &source->recording, &source->error);
    if (source->is_loaded)
        frag_inputs_recorded_by(&source->recording, source->recorded_by);
    frag_progress_add(report->progress, 1);
}

static int load(frag_report_state *report)
{
    report->progress =
        frag_progress_start(report->arguments, "loading", "recordings", report->source_count);
    frag_for_each(report->threads, report->source_count, load_source, report);
    frag_progress_end(report->progress);
    for (size_t i = 0; i < report->source_count; i++)
        if (!report->sources[i].is_loaded)
            return frag_report(&report->sources[i].error);
    return 0;
}

static void list_traces(frag_report_state *report)
{
    size_t count = 0;
    for (size_t i = 0; i < report->source_count; i++)
        count += report->sources[i].recording.trace_count;
    report->traces = frag_alloc(count, sizeof *report->traces);
    for (size_t i = 0; i < report->source_count; i++) {
        frag_recording *recording = &report->sources[i].recording;
        for (uint32_t t = 0; t < recording->trace_count; t++) {
            frag_report_trace *trace = &report->traces[report->trace_count++];
            frag_text name = {0};
            frag_text_add(&name, "%s", recording->name);
            if (recording->trace_count > 1)
                frag_text_add(&name, ", device %" PRIu32, recording->traces[t].device);
            *trace = (frag_report_trace){
                .source = &report->sources[i], .trace = &recording->traces[t], .name = name.bytes};
        }
    }
}

static void add_run(frag_report_state *report, frag_report_trace *trace,
                    const frag_policy_spec *spec)
{
    report->runs =
        frag_grow(report->runs, &report->run_capacity, report->run_count + 1, sizeof *report->runs);
    frag_report_run *run = &report->runs[report->run_count++];
    *run = (frag_report_run){
        .of = trace, .device = report->device, .is_oom_skipped = report->is_oom_skipped};
    if (!frag_inputs_resolve(spec, &trace->source->recording, &run->spec, &run->error))
        frag_policy_spec_copy(spec, &run->spec);
}

/* What was recorded, the setting that is tried first, and two other allocators. */
static void add_usual_runs(frag_report_state *report, frag_report_trace *trace)
{
    static const char *const usual[] = {"pytorch:recorded", "pytorch",
                                        "pytorch:expandable_segments=true", "best-fit", "frugal"};
    bool has_settings = frag_recording_get(&trace->source->recording, "torch.conf") != NULL;
    for (size_t i = has_settings ? 0 : 1; i < sizeof usual / sizeof usual[0]; i++) {
        frag_policy_spec spec = {0};
        frag_error none = {0};
        if (has_settings && i == 1)
            continue;
        if (frag_policy_spec_parse(usual[i], &spec, &none))
            add_run(report, trace, &spec);
        frag_policy_spec_destroy(&spec);
    }
}

static void list_runs(frag_report_state *report)
{
    for (size_t i = 0; i < report->trace_count; i++) {
        frag_report_trace *trace = &report->traces[i];
        trace->first_run = report->run_count;
        if (!report->has_policies)
            add_usual_runs(report, trace);
        for (size_t p = 0; report->has_policies && p < report->policies.count; p++)
            add_run(report, trace, &report->policies.specs[p]);
        trace->run_count = report->run_count - trace->first_run;
    }
}

static void prepare_trace(void *context, uint64_t index)
{
    frag_report_state *report = context;
    frag_report_trace *trace = &report->traces[index];
    if (frag_request_list_create(&trace->requests, trace->trace, &trace->error) &&
        report->has_bounds)
        trace->has_packing = frag_bounds_find(&trace->source->recording, trace->trace,
                                              &trace->packing, &trace->error);
}

static void replay_run(void *context, uint64_t index)
{
    frag_report_state *report = context;
    frag_report_run *run = &report->runs[index];
    const frag_recording *recording = &run->of->source->recording;
    const frag_trace *trace = run->of->trace;
    frag_plan_limits limits = {.capacity_bytes = frag_device_plan_bytes(&run->device, trace)};
    frag_run_options options = {.is_oom_skipped = run->is_oom_skipped,
                                .is_interrupted = frag_is_interrupted};
    bool ok = run->error.code == FRAG_E_NONE && run->of->error.code == FRAG_E_NONE &&
              frag_replay_plan(recording, trace, run->spec.ops, run->spec.values, &limits,
                               &run->plan, &run->error);
    options.plan = run->plan;
    run->is_ok = ok &&
                 frag_run(recording, trace, run->spec.ops, run->spec.values, &run->device, &options,
                          &run->result, &run->error) &&
                 frag_history_record(recording, trace, &run->of->requests, run->spec.ops,
                                     run->spec.values, run->plan, &run->device, run->is_oom_skipped,
                                     frag_is_interrupted, &run->history, &run->error);
    frag_progress_add(report->progress, 1);
}

static int report_problems(const frag_report_state *report)
{
    for (size_t i = 0; i < report->trace_count; i++) {
        frag_error error = report->traces[i].error;
        if (error.code == FRAG_E_NONE)
            continue;
        frag_error_in(&error, report->traces[i].source->path);
        return frag_report(&error);
    }
    for (size_t i = 0; i < report->run_count; i++) {
        frag_error error = report->runs[i].error;
        if (error.code == FRAG_E_NONE)
            continue;
        frag_error_in(&error, report->runs[i].of->source->path);
        return frag_report(&error);
    }
    return 0;
}

/* ---- explanations */

static bool has_failed_request(const frag_recording *recording)
{
    for (uint32_t t = 0; t < recording->trace_count; t++)
        if (recording->traces[t].stats.failed_count > 0)
            return true;
    return false;
}

static void explain_source(frag_report_state *report, frag_report_source *source)
{
    const frag_device_spec *device = &report->device;
    frag_explain_options options = {.capacity_bytes = device->capacity_bytes,
                                    .threads = report->threads};
    if (options.capacity_bytes != FRAG_UNLIMITED)
        options.capacity_bytes -= device->used_by_others_bytes < options.capacity_bytes
                                      ? device->used_by_others_bytes
                                      : 0;
    if (!frag_explain_can(&source->recording, &options))
        return;
    size_t length = 0;
    FILE *stream = open_memstream(&source->explanation, &length);
    if (stream == NULL)
        return;
    frag_explain_recording(&source->recording, &options, stream, true);
    fclose(stream);
}

/* The line about one device. */
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

/* Where a run of the page, or the recorded program, ran out of memory. */
static void explain(frag_report_state *report)
{
    for (size_t i = 0; i < report->source_count && !frag_is_interrupted(); i++) {
        frag_report_source *source = &report->sources[i];
        bool is_worth_it = has_failed_request(&source->recording);
        for (size_t r = 0; r < report->run_count; r++)
            is_worth_it = is_worth_it || (report->runs[r].of->source == source &&
                                          report->runs[r].result.replay.oom.has_happened);
        if (is_worth_it || report->device.capacity_bytes != FRAG_UNLIMITED)
            explain_source(report, source);
    }
    for (size_t i = 0; i < report->trace_count; i++)
        report->traces[i].explanation =
            line_of(report->traces[i].source->explanation, report->traces[i].trace->device);
}

int frag_report_replay(frag_report_state *report)
{
    int code = load(report);
    if (code != 0)
        return code;
    list_traces(report);
    list_runs(report);
    report->progress =
        frag_progress_start(report->arguments, "replaying", "runs", report->run_count);
    frag_for_each(report->threads, report->trace_count, prepare_trace, report);
    frag_for_each(report->threads, report->run_count, replay_run, report);
    frag_progress_end(report->progress);
    code = report_problems(report);
    if (code == 0 && !frag_is_interrupted())
        explain(report);
    return code;
}

void frag_report_destroy(frag_report_state *report)
{
    for (size_t i = 0; i < report->run_count; i++) {
        frag_report_run *run = &report->runs[i];
        if (run->plan != NULL)
            run->spec.ops->plan_destroy(run->plan);
        frag_policy_spec_destroy(&run->spec);
        frag_history_destroy(&run->history);
    }
    for (size_t i = 0; i < report->trace_count; i++) {
        frag_request_list_destroy(&report->traces[i].requests);
        free(report->traces[i].name);
        free(report->traces[i].explanation);
    }
    for (size_t i = 0; i < report->source_count; i++) {
        if (report->sources[i].is_loaded)
            frag_recording_destroy(&report->sources[i].recording);
        free(report->sources[i].explanation);
    }
    free(report->runs);
    free(report->traces);
    free(report->sources);
}
