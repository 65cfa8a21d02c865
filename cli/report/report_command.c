/* `fraglab report`: collects runs, verdicts and plans and writes them as one HTML page. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/threads.h"
#include "cli/report/report_state.h"
#include "sim/policy_engine.h"
#include "sim/version.h"

static const frag_command_option options[] = {
    FRAG_POLICY_OPTIONS,
    FRAG_DEVICE_OPTIONS,
    FRAG_LOAD_OPTIONS,
    {"on-oom", "WHAT", .choices = "stop|skip",
     .help = "after the first request that cannot be served: stop the run, or skip the request and "
             "go on (default: stop)"},
    {"format", "FORMAT", .choices = "html|table|csv|jsonl|markdown",
     .help =
         "html: the page; the others print rows of result files as 'fraglab run' does (default: "
         "html)"},
    {"title", "TEXT", .help = "title of the page"},
    FRAG_BOUNDS_OPTION,
    FRAG_OUTPUT_OPTIONS,
    FRAG_JOBS_OPTION,
    {.name = NULL},
};

static bool read_options(const frag_arguments *arguments, frag_report_state *report,
                         frag_error *error)
{
    uint64_t threads = frag_core_count();
    report->has_policies = frag_arguments_value_count(arguments, "policy") > 0;
    if ((report->has_policies &&
         !frag_inputs_policies(arguments, NULL, &report->policies, error)) ||
        !frag_inputs_device(arguments, &report->device, &report->gpu, error) ||
        !frag_inputs_format(arguments, &report->format, error) ||
        !frag_arguments_count(arguments, "jobs", 1, 4096, &threads, error))
        return false;
    const char *on_oom = frag_arguments_value(arguments, "on-oom");
    report->is_oom_skipped = on_oom != NULL && strcmp(on_oom, "skip") == 0;
    report->has_bounds = frag_arguments_has(arguments, "bounds");
    report->threads = (uint32_t)threads;
    return true;
}

static void destroy(frag_report_state *report)
{
    for (size_t i = 0; i < report->run_count; i++) {
        frag_report_run *run = &report->runs[i];
        if (run->plan != NULL)
            frag_policy_engine_of(run->spec.ops)->planner->destroy(run->plan);
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
        if (report->sources[i].is_loaded)
            frag_recording_destroy(&report->sources[i].recording);
        frag_free(report->sources[i].path);
        frag_free(report->sources[i].explanation);
    }
    frag_stored_rows_destroy(&report->rows);
    frag_policy_list_destroy(&report->policies);
    frag_free(report->runs);
    frag_free(report->traces);
    frag_free(report->sources);
}

/* ---- the page */

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

/* What makes the page again. Where it is written to is left out: it is the same page anywhere. */
static void spell_command(const frag_report_state *report, frag_text *text)
{
    const frag_arguments *arguments = report->arguments;
    static const char *const kept[] = {"capacity",  "gpu",     "used-by-others", "address-rule",
                                       "fail-call", "latency", "from",           "on-oom"};
    frag_text_add(text, "fraglab report");
    for (size_t i = 0; i < frag_arguments_operand_count(arguments); i++)
        frag_text_add(text, " %s", frag_arguments_operand(arguments, i));
    for (size_t i = 0; i < frag_arguments_value_count(arguments, "policy"); i++)
        frag_text_add(text, " --policy %s", frag_arguments_value_at(arguments, "policy", i));
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        if (frag_arguments_has(arguments, kept[i]))
            frag_text_add(text, " --%s %s", kept[i], frag_arguments_value(arguments, kept[i]));
    if (report->has_bounds)
        frag_text_add(text, " --bounds");
}

/* A trace of which nothing is drawn needs no data. */
static bool is_drawn(const frag_report_state *report, const frag_report_trace *trace)
{
    bool is_any = false;
    for (size_t i = 0; i < trace->run_count; i++)
        is_any = is_any || report->runs[trace->first_run + i].is_drawn;
    return is_any;
}

static void write_page(const frag_report_state *report, FILE *stream)
{
    const char *title = frag_arguments_value(report->arguments, "title");
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
    frag_text command = {0};
    spell_command(report, &command);
    frag_page page = {.title = title != NULL ? title : "fraglab report",
                      .command = command.bytes,
                      .traces = traces,
                      .trace_count = report->trace_count};
    frag_page_write(&page, stream);
    frag_text_destroy(&command);
    frag_free(traces);
    frag_free(runs);
}

/* ---- other views, of result files alone */

static int write_view(frag_report_state *report, const char *format, FILE *stream)
{
    frag_error error = {0};
    frag_result_format view = FRAG_RESULT_TABLE;
    for (size_t i = 0; i < frag_arguments_operand_count(report->arguments); i++) {
        const char *path = frag_arguments_operand(report->arguments, i);
        frag_input *input = frag_input_open(path, &error);
        bool is_rows = false;
        bool ok = input != NULL && frag_stored_rows_detect(input, &is_rows, &error);
        if (ok && !is_rows)
            ok = frag_fail(&error, FRAG_E_USAGE,
                           "is no result file; 'fraglab run --format %s' replays a recording",
                           format);
        ok = ok && frag_stored_rows_read(input, &report->rows, &error);
        if (input != NULL)
            frag_input_close(input);
        if (!ok) {
            frag_error_in(&error, path);
            return frag_report(&error);
        }
    }
    if (frag_result_format_find(format, &view))
        frag_stored_rows_print(&report->rows, view, stream);
    return 0;
}

static bool is_page(const frag_arguments *arguments)
{
    const char *format = frag_arguments_value(arguments, "format");
    return format == NULL || strcmp(format, "html") == 0;
}

static int write_report(frag_report_state *report, FILE *stream)
{
    if (!is_page(report->arguments))
        return write_view(report, frag_arguments_value(report->arguments, "format"), stream);
    int code = frag_report_load(report);
    if (code == 0)
        code = frag_report_replay(report);
    if (code == 0 && !frag_is_interrupted())
        frag_report_explain(report);
    if (code == 0 && !frag_is_interrupted())
        write_page(report, stream);
    return code;
}

/* Nobody reads a page on a terminal. */
static bool check_place(const frag_arguments *arguments, frag_error *error)
{
    const char *path = frag_arguments_value(arguments, "output");
    if (!is_page(arguments) || path != NULL || !frag_is_terminal(1))
        return true;
    return frag_fail(error, FRAG_E_USAGE,
                     "the page is for a browser; write it to a file: -o page.html");
}

static int report_command(const frag_arguments *arguments)
{
    frag_report_state report = {.arguments = arguments};
    frag_error error = {0};
    frag_output *output = NULL;
    int code = 0;
    if (!read_options(arguments, &report, &error) || !check_place(arguments, &error) ||
        (output = frag_inputs_output(arguments, &error)) == NULL) {
        code = frag_report(&error);
    } else {
        code = write_report(&report, frag_output_stream(output));
        if (code != 0 || frag_is_interrupted())
            frag_output_abandon(output);
        else if (!frag_output_finish(output, &error))
            code = frag_report(&error);
    }
    destroy(&report);
    return frag_is_interrupted() ? 130 : code;
}

const frag_command frag_command_report = {
    .name = "report",
    .operands = "TRACE|RESULT...",
    .summary = "one HTML page: results, timeline, memory map at any event, verdict",
    .description =
        "Replays each trace through each policy and writes one page that holds everything: the "
        "results with their bounds, where reserved bytes are, the timeline, the memory map at any "
        "event, who holds the memory there, and the verdict with its advice where memory runs out "
        "(with --capacity, or where the recording did). The page needs no network and no other "
        "file; any browser opens it from any folder. Without --policy it shows the recorded "
        "settings of PyTorch, expandable segments, best-fit and frugal.\n"
        "\n"
        "RESULT is a file of rows (JSON Lines) of 'fraglab run' or 'fraglab sweep'. A row is "
        "replayed if its recording is found by its name beside the file or in the current folder, "
        "or is given as an operand, and has the same digest; otherwise the page shows only the "
        "row and says so. --format prints rows of result files in another form.",
    .examples =
        "fraglab report train.pickle -o train.html  # then open train.html\n"
        "fraglab report train.pickle --capacity 8GiB -o small.html  # on a smaller card\n"
        "fraglab report rows.jsonl train.pickle -o rows.html  # rows, with their recording\n"
        "fraglab report rows.jsonl --format markdown  # a table to paste",
    .options = options,
    .operand_min = 1,
    .operand_max = UINT32_MAX,
    .run = report_command,
};
