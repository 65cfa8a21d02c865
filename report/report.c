#include "report/report.h"

#include "base/memory.h"
#include "report/report_state.h"
#include "sim/policy_engine.h"
#include "sim/version.h"

static frag_row row_of(const frag_report_state *report, const frag_report_run *run)
{
    const frag_report_trace *of = &report->traces[run->trace];
    if (run->stored != NULL)
        return run->stored->row;
    const frag_report_source *source = of->source;
    return (frag_row){
        .tool_version = frag_version(),
        .tool_commit = frag_commit(),
        .trace_name = source->recording.name,
        .trace = of->trace,
        .recorded_by = source->recorded_by[0] != '\0' ? source->recorded_by : NULL,
        .ops = run->spec.ops,
        .values = run->spec.values,
        .label = run->spec.text,
        .device = &run->device,
        .result = &run->result,
        .packing = of->has_packing ? &of->packing : NULL,
    };
}

/* A trace of which nothing is drawn needs no data. */
static bool is_drawn(const frag_report_state *report, const frag_report_trace *trace)
{
    bool is_any = false;
    for (size_t i = 0; i < trace->run_count; i++)
        is_any = is_any || report->runs[trace->first_run + i].is_drawn;
    return is_any;
}

static bool write_page(const frag_report_state *report, FILE *stream, frag_error *error)
{
    frag_page_trace *traces = frag_alloc(report->trace_count, sizeof *traces);
    frag_page_run *runs = frag_alloc(report->run_count, sizeof *runs);
    for (size_t i = 0; i < report->run_count; i++) {
        const frag_report_run *run = &report->runs[i];
        runs[i] = (frag_page_run){
            .row = row_of(report, run),
            .note = run->note.length > 0 ? run->note.bytes : NULL,
            .history = run->is_drawn ? &run->history : NULL,
        };
    }
    for (size_t i = 0; i < report->trace_count; i++) {
        const frag_report_trace *trace = &report->traces[i];
        traces[i] = (frag_page_trace){
            .name = trace->name.bytes,
            .recording = is_drawn(report, trace) ? &trace->source->recording : NULL,
            .trace = trace->trace,
            .requests = &trace->requests,
            .runs = runs + trace->first_run,
            .run_count = trace->run_count,
            .explanation = trace->explanation,
        };
    }
    const char *title = report->wishes->title;
    frag_page page = {.title = title != NULL ? title : "fraglab report",
                      .command = report->wishes->command,
                      .traces = traces,
                      .trace_count = report->trace_count,
                      .data_folder = report->wishes->data_folder,
                      .limit_bytes =
                          report->wishes->page_limit_bytes > 0  ? report->wishes->page_limit_bytes
                          : report->wishes->data_folder != NULL ? FRAG_UNLIMITED
                                                                : FRAG_REPORT_PAGE_LIMIT_BYTES};
    frag_page_write(&page, stream);
    frag_free(traces);
    frag_free(runs);
    if (page.has_failed)
        *error = page.error;
    return !page.has_failed;
}

static void destroy(frag_report_state *report)
{
    for (size_t i = 0; i < report->run_count; i++) {
        frag_report_run *run = &report->runs[i];
        frag_policy_plan_destroy(run->spec.ops, run->plan);
        frag_policy_spec_destroy(&run->spec);
        frag_history_destroy(&run->history);
        frag_text_destroy(&run->note);
    }
    for (size_t i = 0; i < report->trace_count; i++) {
        frag_request_list_destroy(&report->traces[i].requests);
        frag_text_destroy(&report->traces[i].name);
        frag_free(report->traces[i].explanation);
    }
    for (size_t i = 0; i < report->source_count; i++) {
        if (report->sources[i].is_loaded && !report->sources[i].is_borrowed)
            frag_recording_destroy(&report->sources[i].recording);
        frag_free(report->sources[i].path);
        frag_free(report->sources[i].explanation);
    }
    frag_stored_rows_destroy(&report->rows);
    frag_free(report->runs);
    frag_free(report->traces);
    frag_free(report->sources);
}

bool frag_report_write(const frag_report_wishes *wishes, FILE *stream, frag_error *error)
{
    frag_report_state report = {.wishes = wishes};
    bool ok = frag_report_load(&report, error) && frag_report_replay(&report, error);
    if (ok && !frag_is_cancelled(wishes->context))
        frag_report_explain(&report);
    if (ok && !frag_is_cancelled(wishes->context))
        ok = write_page(&report, stream, error);
    destroy(&report);
    return ok;
}
