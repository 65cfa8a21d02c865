#include <stdlib.h>
#include <string.h>

#include "sim/base/file.h"
#include "sim/base/memory.h"
#include "sim/cli/report_state.h"
#include "sim/version.h"

static const frag_command_option options[] = {
    FRAG_POLICY_OPTIONS,
    FRAG_DEVICE_OPTIONS,
    FRAG_LOAD_OPTIONS,
    {.name = "on-oom",
     .argument = "WHAT",
     .choices = "stop|skip",
     .help = "after the first request that cannot be served: stop the run, or skip the request and "
             "go on (default: stop)"},
    {.name = "title", .argument = "TEXT", .help = "title of the page"},
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
    report->source_count = frag_arguments_operand_count(arguments);
    report->sources = frag_alloc(report->source_count, sizeof *report->sources);
    for (size_t i = 0; i < report->source_count; i++)
        report->sources[i].path = frag_arguments_operand(arguments, i);
    return true;
}

static void fill_row(const frag_report_run *run, frag_row *row)
{
    const frag_report_trace *of = run->of;
    *row = (frag_row){
        .tool_version = frag_version(),
        .tool_commit = frag_commit(),
        .trace_name = of->source->recording.name,
        .trace = of->trace,
        .recorded_by = of->source->recorded_by[0] != '\0' ? of->source->recorded_by : NULL,
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

static void write_page(const frag_report_state *report, FILE *stream)
{
    const char *title = frag_arguments_value(report->arguments, "title");
    frag_page_trace *traces = frag_alloc(report->trace_count, sizeof *traces);
    frag_page_run *runs = frag_alloc(report->run_count, sizeof *runs);
    for (size_t i = 0; i < report->run_count; i++) {
        fill_row(&report->runs[i], &runs[i].row);
        runs[i].history = &report->runs[i].history;
    }
    for (size_t i = 0; i < report->trace_count; i++) {
        const frag_report_trace *trace = &report->traces[i];
        traces[i] = (frag_page_trace){
            .name = trace->name,
            .recording = &trace->source->recording,
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
    free(traces);
    free(runs);
}

static int report_command(const frag_arguments *arguments)
{
    frag_report_state report = {.arguments = arguments};
    frag_error error = {0};
    frag_output *output = NULL;
    int code = 0;
    if (!read_options(arguments, &report, &error) ||
        (output = frag_inputs_output(arguments, &error)) == NULL) {
        code = frag_report(&error);
    } else {
        code = frag_report_replay(&report);
        if (code != 0 || frag_is_interrupted()) {
            frag_output_abandon(output);
        } else {
            write_page(&report, frag_output_stream(output));
            code = frag_output_finish(output, &error) ? 0 : frag_report(&error);
        }
    }
    frag_report_destroy(&report);
    frag_inputs_policies_destroy(&report.policies);
    return frag_is_interrupted() ? 130 : code;
}

const frag_command frag_command_report = {
    .name = "report",
    .operands = "TRACE...",
    .summary = "one HTML page: results, timeline, memory map at any event, verdict",
    .description =
        "Replays each trace through each policy and writes one page that holds everything: the "
        "results with their bounds, where reserved bytes are, the timeline, the memory map at any "
        "event, who holds the memory there, and the verdict with its advice where memory runs out "
        "(with --capacity, or where the recording did). The page needs no network and no other "
        "file; it opens in a browser from wherever it lies. Without --policy it shows the recorded "
        "settings of PyTorch, expandable segments, best-fit and frugal.",
    .examples = "fraglab report train.pickle -o train.html  # then open train.html\n"
                "fraglab report train.pickle --capacity 8GiB -o small.html  # on a smaller card\n"
                "fraglab report a.fgt b.fgt --policy pytorch,tlsf -o both.html",
    .options = options,
    .operand_min = 1,
    .operand_max = UINT32_MAX,
    .run = report_command,
};
