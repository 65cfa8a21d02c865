/* The runs of a report: as the wishes say, or as rows say that they were. */
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/threads.h"
#include "report/report_state.h"
#include "sim/device/card_table.h"
#include "sim/policy_engine.h"
#include "studies/rows/row_policy.h"
#include "studies/usual_policies.h"

/* ---- runs of recordings */

static frag_report_run *add_run(frag_report_state *report, size_t trace)
{
    frag_report_run *run = FRAG_APPEND(report->runs, report->run_count, report->run_capacity);
    *run = (frag_report_run){.trace = trace};
    return run;
}

static void add_replay(frag_report_state *report, size_t trace, const frag_policy_spec *spec)
{
    frag_report_run *run = add_run(report, trace);
    run->device = *report->wishes->device;
    run->is_oom_skipped = report->wishes->is_oom_skipped;
    run->is_replayed = true;
    if (!frag_policy_resolve(report->wishes->context, spec,
                             &report->traces[trace].source->recording, &run->spec, &run->error))
        frag_policy_spec_copy(spec, &run->spec);
}

static void add_usual_replays(frag_report_state *report, size_t trace)
{
    frag_policy_list policies;
    frag_usual_policies(&report->traces[trace].source->recording, &policies);
    for (size_t i = 0; i < policies.count; i++)
        add_replay(report, trace, &policies.specs[i]);
    frag_policy_list_destroy(&policies);
}

static frag_report_trace *add_trace(frag_report_state *report, const char *name, uint32_t device,
                                    bool has_several)
{
    frag_report_trace *trace = &report->traces[report->trace_count++];
    *trace = (frag_report_trace){.first_run = report->run_count};
    frag_text_add(&trace->name, "%s", name);
    if (has_several)
        frag_text_add(&trace->name, ", device %" PRIu32, device);
    return trace;
}

static void add_recording(frag_report_state *report, frag_report_source *source)
{
    frag_recording *recording = &source->recording;
    for (uint32_t t = 0; t < recording->trace_count; t++) {
        size_t number = report->trace_count;
        frag_report_trace *trace = add_trace(report, recording->name, recording->traces[t].device,
                                             recording->trace_count > 1);
        trace->source = source;
        trace->trace = &recording->traces[t];
        const frag_policy_list *policies = report->wishes->policies;
        if (policies == NULL)
            add_usual_replays(report, number);
        for (size_t p = 0; policies != NULL && p < policies->count; p++)
            add_replay(report, number, &policies->specs[p]);
        trace->run_count = report->run_count - trace->first_run;
    }
}

/* ---- runs of rows */

/* The description of the rows' card must be a bundled one: a path in a row is not followed. */
static void find_card(frag_report_trace *trace)
{
    size_t count = 0;
    frag_error none = {0};
    char **names = trace->group->device.gpu != NULL ? frag_card_names(&count, &none) : NULL;
    for (size_t i = 0; i < count && !trace->has_card; i++)
        trace->has_card = frag_card_load(names[i], &trace->card, NULL, &none) &&
                          strcmp(trace->card.digest, trace->group->gpu.digest) == 0;
    if (names != NULL)
        frag_folder_names_destroy(names, count);
}

static void take_device(frag_report_run *run, const frag_report_trace *trace)
{
    const char *rule = "";
    run->device = trace->group->device;
    run->device.gpu = trace->has_card ? &trace->card : NULL;
    frag_json_find_text(run->stored->json, "device.address_rule", &rule);
    run->device.is_rule_given = true;
    run->device.address_rule = strcmp(rule, "lowest") == 0 ? FRAG_ADDRESS_LOWEST
                               : strcmp(rule, "bump") == 0 ? FRAG_ADDRESS_BUMP
                                                           : FRAG_ADDRESS_RECORDED;
}

static void add_row(frag_report_state *report, size_t trace, const frag_stored_row *stored)
{
    frag_report_run *run = add_run(report, trace);
    const frag_report_trace *of = &report->traces[trace];
    const frag_replay_result *replay = &stored->result.replay;
    frag_error error = {0};
    run->stored = stored;
    run->is_oom_skipped = replay->oom.has_happened && replay->events > replay->oom.event + 1;
    if (stored->row.gpu != NULL)
        frag_text_add(&run->note, "measured on a card; there is no layout to draw");
    else if (of->source == NULL)
        frag_text_add(&run->note,
                      "its recording is not at hand (beside the result file, here, or named): "
                      "nothing is drawn");
    else if (!frag_row_policy(stored->json, &run->spec, &error))
        frag_text_add(&run->note, "not replayed: %s", error.sentence);
    else if (of->group->device.gpu != NULL && !of->has_card)
        frag_text_add(&run->note, "not replayed: the description of its card is not at hand");
    else
        run->is_replayed = true;
    if (run->is_replayed)
        take_device(run, of);
}

static void add_group(frag_report_state *report, const frag_row_group *group)
{
    const char *name = NULL;
    size_t number = report->trace_count;
    for (size_t i = 0; i < report->rows.count && name == NULL; i++)
        if (report->rows.items[i]->group == group)
            name = report->rows.items[i]->row.trace_name;
    frag_report_trace *trace =
        add_trace(report, name, group->trace.device, group->trace.device > 0);
    trace->group = group;
    trace->trace = frag_report_trace_of(report, group, &trace->source);
    if (trace->trace == NULL)
        trace->trace = &group->trace;
    find_card(trace);
    for (size_t i = 0; i < report->rows.count; i++)
        if (report->rows.items[i]->group == group)
            add_row(report, number, report->rows.items[i]);
    trace->run_count = report->run_count - trace->first_run;
}

static void list_traces(frag_report_state *report)
{
    size_t count = report->rows.group_count;
    for (size_t i = 0; i < report->source_count; i++)
        count += report->sources[i].recording.trace_count;
    report->traces = frag_alloc(count, sizeof *report->traces);
    for (size_t i = 0; i < report->rows.group_count; i++)
        add_group(report, report->rows.groups[i]);
    for (size_t i = 0; i < report->source_count; i++) {
        frag_report_source *source = &report->sources[i];
        bool is_asked_for = report->wishes->policies != NULL || !source->is_for_rows;
        if (source->is_loaded && !source->is_optional && is_asked_for)
            add_recording(report, source);
    }
}

/* ---- replaying */

static void prepare_trace(void *context, uint64_t index)
{
    frag_report_state *report = context;
    frag_report_trace *trace = &report->traces[index];
    if (trace->source != NULL &&
        frag_request_list_create(&trace->requests, trace->trace, &trace->error) &&
        report->wishes->has_bounds && trace->group == NULL)
        trace->has_packing = frag_bounds_find(report->wishes->context, &trace->source->recording,
                                              trace->trace, &trace->packing, &trace->error);
}

/* A row is drawn only as what it says: a run that came out otherwise is another. */
static bool agrees(const frag_run_result *row, const frag_run_result *now)
{
    const frag_replay_result *a = &row->replay;
    const frag_replay_result *b = &now->replay;
    return a->peak.reserved_bytes == b->peak.reserved_bytes &&
           a->peak.requested_bytes == b->peak.requested_bytes && a->events == b->events &&
           a->final.reserved_bytes == b->final.reserved_bytes &&
           a->oom.has_happened == b->oom.has_happened;
}

static void replay_run(void *context, uint64_t index)
{
    frag_report_state *report = context;
    frag_report_run *run = &report->runs[index];
    const frag_report_trace *of = &report->traces[run->trace];
    frag_progress_add(report->progress, 1);
    if (!run->is_replayed || run->error.code != FRAG_E_NONE || of->error.code != FRAG_E_NONE)
        return;
    const frag_recording *recording = &of->source->recording;
    frag_plan_limits limits = {.capacity_bytes = frag_device_plan_bytes(&run->device, of->trace)};
    frag_run_options options = {.is_oom_skipped = run->is_oom_skipped,
                                .context = report->wishes->context};
    if (!frag_replay_plan(
            &(frag_run_setup){recording, of->trace, run->spec.ops, run->spec.values, NULL}, &limits,
            &run->plan, &run->error))
        return;
    options.plan = run->plan;
    if (!frag_run(
            &(frag_run_setup){recording, of->trace, run->spec.ops, run->spec.values, &run->device},
            &options, &run->result, &run->error))
        return;
    if (run->stored != NULL && !agrees(&run->stored->result, &run->result)) {
        frag_text_add(&run->note,
                      "this version of fraglab replays it differently: nothing is drawn");
        return;
    }
    run->is_drawn = frag_history_record(
        &(frag_run_setup){recording, of->trace, run->spec.ops, run->spec.values, &run->device},
        &of->requests, &options, &run->history, &run->error);
}

/* The reason why a row of a file cannot be replayed is printed beside it; all else is a failure. */
static bool find_problems(frag_report_state *report, frag_error *problem)
{
    for (size_t i = 0; i < report->trace_count; i++) {
        frag_error error = report->traces[i].error;
        if (error.code == FRAG_E_NONE)
            continue;
        frag_error_in(&error, report->traces[i].source->path);
        *problem = error;
        return false;
    }
    for (size_t i = 0; i < report->run_count; i++) {
        frag_report_run *run = &report->runs[i];
        frag_error error = run->error;
        if (error.code == FRAG_E_NONE)
            continue;
        if (run->stored == NULL) {
            frag_error_in(&error, report->traces[run->trace].source->path);
            *problem = error;
            return false;
        }
        frag_text_add(&run->note, "not replayed: %s", error.sentence);
    }
    return true;
}

bool frag_report_replay(frag_report_state *report, frag_error *error)
{
    list_traces(report);
    report->progress =
        frag_progress_start(report->wishes->context, "replaying", "runs", report->run_count);
    frag_for_each(frag_context_threads(report->wishes->context), report->trace_count, prepare_trace,
                  report);
    frag_for_each(frag_context_threads(report->wishes->context), report->run_count, replay_run,
                  report);
    frag_progress_end(report->progress);
    return find_problems(report, error);
}
