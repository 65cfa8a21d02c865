/* The answer of a dry run as JSON Lines. */
#include "cli/dryrun/dryrun_print.h"

#include "base/bytes.h"
#include "base/json.h"
#include "studies/explain/explain_json.h"
#include "studies/explain/explain_trace.h"

static void add_peak(frag_json *item, const frag_level *level)
{
    frag_json_number(item, "requested_bytes", level->requested_bytes);
    frag_json_number(item, "allocated_bytes", level->allocated_bytes);
    frag_json_number(item, "reserved_bytes", level->reserved_bytes);
}

static void add_fits(frag_json *json, const char *name, frag_dryrun_fits fits)
{
    if (fits == FRAG_DRYRUN_FITS_UNKNOWN)
        frag_json_null(json, name);
    else
        frag_json_flag(json, name, fits == FRAG_DRYRUN_FITS);
}

/* The run with the smallest of the uncertain sizes, where there was one. */
static void add_low_run(frag_json *json, const frag_dryrun_result *result)
{
    if (!result->is_low_run) {
        frag_json_null(json, "low_run");
        return;
    }
    add_fits(json, "low_run.fits", result->low_fits);
    frag_json_number(json, "low_run.reserved_bytes", result->low_reserved_bytes);
}

static void add_oom(frag_json *json, const frag_dryrun_process *process)
{
    const frag_dryrun_answer *answer = process->answer;
    if (answer == NULL || (!answer->has_failed && process->facts.oom_count == 0)) {
        frag_json_null(json, "oom");
        return;
    }
    const frag_oom *oom = &answer->run.oom;
    const char *text = process->facts.oom_text;
    frag_json_number(json, "oom.requested_bytes",
                     oom->has_happened ? oom->requested_bytes : FRAG_UNLIMITED);
    frag_json_number(json, "oom.event", oom->has_happened ? oom->event : FRAG_UNLIMITED);
    frag_json_number(json, "oom.count", process->facts.oom_count);
    frag_json_text(json, "oom.message",
                   text != NULL                                   ? text
                   : oom->has_happened && oom->message[0] != '\0' ? oom->message
                                                                  : NULL);
    frag_json_flag(json, "oom.is_caught", text == NULL);
}

static void add_phases(frag_json *json, const frag_dryrun_answer *answer)
{
    frag_json_array(json, "phases");
    for (size_t i = 0; i < answer->phase_count; i++) {
        frag_json *item = frag_json_add(json, "phases");
        frag_json_text(item, "name", answer->phases[i].name);
        add_peak(item, &answer->phases[i].peak);
    }
}

static void add_devices(frag_json *json, const frag_dryrun_process *process)
{
    frag_json_array(json, "devices");
    for (uint32_t i = 0; i < process->recording.trace_count; i++) {
        frag_json *item = frag_json_add(json, "devices");
        frag_json_number(item, "device", process->recording.traces[i].device);
        frag_json_number(item, "requests", process->recording.traces[i].stats.request_count);
        add_peak(frag_json_object(item, "peak"), &process->answers[i].run.peak);
    }
}

static void add_notes(frag_json *json, const frag_dryrun_facts *facts)
{
    frag_json_array(json, "uncertain");
    for (size_t i = 0; i < facts->uncertain_count; i++) {
        const frag_dryrun_uncertain *size = &facts->uncertain[i];
        frag_json *item = frag_json_add(json, "uncertain");
        frag_json_text(item, "function", size->function);
        frag_json_text(item, "what", size->what);
        frag_json_number(item, "low_bytes", size->low_bytes);
        frag_json_number(item, "high_bytes", size->high_bytes);
        frag_json_number(item, "answered_bytes", size->answered_bytes);
        frag_json_number(item, "count", size->count);
    }
    frag_json_array(json, "selections");
    for (size_t i = 0; i < facts->selection_count; i++) {
        frag_json *item = frag_json_add(json, "selections");
        frag_json_text(item, "where", facts->selections[i].where);
        frag_json_number(item, "elements", facts->selections[i].elements);
        frag_json_number(item, "count", facts->selections[i].count);
    }
    frag_json_array(json, "notes");
    for (size_t i = 0; i < facts->note_count; i++) {
        frag_json *item = frag_json_add(json, "notes");
        frag_json_text(item, "kind", facts->notes[i].kind);
        frag_json_text(item, "text", facts->notes[i].text);
        frag_json_number(item, "count", facts->notes[i].count);
    }
}

static void add_explanation(void *user, const frag_trace_explanation *explanation)
{
    frag_json *json = user;
    frag_json_text(json, "verdict", frag_oom_verdict_name(explanation->diagnosis.verdict));
    frag_explain_add_advice(json, &explanation->advice);
}

static void add_advice(frag_json *json, const frag_dryrun_shown *shown,
                       const frag_dryrun_process *process)
{
    frag_dryrun_card card = frag_dryrun_limited(shown->gpu, &process->facts);
    frag_explain_options options = {.capacity_bytes = card.capacity_bytes - card.context_bytes};
    frag_error error = {0};
    if (process->answer != NULL && process->answer->has_failed && !frag_dryrun_is_crowded(process))
        frag_explain_trace(shown->context, &process->recording, process->main, &options,
                           add_explanation, json, &error);
}

static void add_answer(frag_json *json, const frag_dryrun_shown *shown,
                       const frag_dryrun_process *process)
{
    const frag_dryrun_answer *answer = process->answer;
    add_peak(frag_json_object(json, "peak"), &answer->run.peak);
    frag_json_number(json, "peak_interval.reserved_low_bytes", answer->reserved_min_bytes);
    frag_json_number(json, "peak_interval.reserved_high_bytes", answer->reserved_max_bytes);
    frag_json_number(json, "peak_interval.draws", answer->draws);
    frag_json_number(json, "peak_interval.draws_served", answer->draws_served);
    frag_json_number(json, "uncertain_bytes.low", answer->uncertain_low_bytes);
    frag_json_number(json, "uncertain_bytes.high", answer->uncertain_high_bytes);
    frag_json_number(json, "remaining_bytes",
                     shown->gpu->is_given ? frag_dryrun_left(shown->gpu, process) : FRAG_UNLIMITED);
    frag_json_number(json, "requests", process->main->stats.request_count);
    if (!answer->is_repeated && frag_dryrun_is_crowded(process))
        frag_json_null(json, "is_repeated");
    else
        frag_json_flag(json, "is_repeated", answer->is_repeated);
    add_phases(json, answer);
    add_devices(json, process);
}

static void print_process(FILE *stream, const frag_dryrun_shown *shown,
                          const frag_dryrun_process *process)
{
    const frag_dryrun_facts *facts = &process->facts;
    frag_json *json = frag_json_create();
    frag_json_number(json, "schema", 1);
    frag_json_text(json, "kind", "dryrun");
    add_fits(json, "fits", process->fits);
    add_oom(json, process);
    if (process->answer != NULL)
        add_answer(json, shown, process);
    else
        frag_json_null(json, "peak");
    frag_json_number(json, "rank", facts->rank);
    frag_json_number(json, "process", facts->pid);
    frag_json_text(json, "torch", facts->release);
    frag_json_text(json, "gpu", shown->gpu->is_given ? shown->gpu->card.name : NULL);
    frag_json_number(json, "capacity_bytes",
                     shown->gpu->is_given ? shown->gpu->memory.capacity_bytes : FRAG_UNLIMITED);
    frag_json_number(json, "context_bytes", shown->gpu->memory.context_bytes);
    frag_json_text(json, "conf", shown->conf);
    frag_json_number(json, "steps", facts->steps);
    frag_json_text(json, "ended_by", facts->ended_by);
    frag_json_text(json, "exception", facts->exception);
    frag_json_number(json, "exit_code", (uint64_t)shown->result->end.code);
    frag_json_text(json, "recording", shown->keeps_recording ? process->path : NULL);
    add_low_run(json, shown->result);
    add_notes(json, facts);
    add_advice(json, shown, process);
    frag_json_write(json, stream, false);
}

void frag_dryrun_print_json(FILE *stream, const frag_dryrun_shown *shown)
{
    for (size_t i = 0; i < shown->result->count; i++)
        print_process(stream, shown, &shown->result->processes[i]);
}
