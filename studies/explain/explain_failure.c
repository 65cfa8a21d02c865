/* A request failed, and the recording does not say what the device or the pool could hold: what is
 * known without that. */
#include <string.h>

#include "base/bytes.h"
#include "base/json.h"
#include "sim/trace/demand.h"
#include "studies/explain/explain_json.h"
#include "studies/explain/explain_recording.h"
#include "studies/explain/explain_text.h"

typedef struct failure {
    uint64_t event;
    uint64_t asked_bytes;
    uint64_t live_bytes; /* when it failed */
    uint64_t peak_bytes; /* live at most until then: so much was there */
} failure;

static failure look(const frag_trace *trace, uint64_t failed)
{
    failure found = {.event = failed, .asked_bytes = trace->events[failed].bytes};
    frag_demand demand;
    frag_demand_change change;
    frag_demand_begin(&demand, trace);
    for (uint64_t i = 0; i < failed; i++) {
        if (frag_demand_step(&demand, i, &change))
            found.live_bytes += change.is_free ? 0 - change.bytes : change.bytes;
        if (found.live_bytes > found.peak_bytes)
            found.peak_bytes = found.live_bytes;
    }
    frag_demand_end(&demand);
    return found;
}

/* A line that RMM's log has about it is judged as any message is; the requests say the rest. */
static bool diagnose_line(const frag_recording *recording, const failure *found,
                          frag_diagnosis *diagnosis, frag_advice *advice)
{
    const char *line = frag_recording_get(recording, "rmm.failure");
    frag_messages messages;
    if (line == NULL)
        return false;
    frag_messages_read(&messages, line, strlen(line));
    const frag_message *best = frag_messages_best(&messages);
    if (best != NULL) {
        frag_diagnose_text(&messages, diagnosis);
        frag_advise(&messages, best, diagnosis, advice);
        frag_text_add(&diagnosis->because, " The requests of the log held %s then.",
                      FRAG_BYTES(found->live_bytes));
    }
    frag_messages_destroy(&messages);
    return best != NULL;
}

static void diagnose(const failure *found, frag_diagnosis *diagnosis)
{
    *diagnosis = (frag_diagnosis){.verdict = FRAG_OOM_VERDICT_NO_FIGURES,
                                  .confidence = FRAG_CONFIDENCE_HIGH};
    frag_text_add(&diagnosis->because,
                  "%s were asked for while %s were live; at most %s had been live before. The "
                  "recording does not say how much the device or the pool could hold.",
                  FRAG_BYTES(found->asked_bytes), FRAG_BYTES(found->live_bytes),
                  FRAG_BYTES(found->peak_bytes));
}

static void advise_capacity(frag_advice *advice)
{
    if (advice->count == FRAG_ADVICE_MAX)
        return;
    frag_advice_step *step = &advice->steps[advice->count++];
    *step = (frag_advice_step){.action = "give-capacity"};
    frag_text_add(&step->text,
                  "Say how much the program could have, with --capacity SIZE: then the same "
                  "requests are replayed, and it is shown what holds the memory and which settings "
                  "and policies get past this request.");
}

static void print_json(FILE *stream, const frag_recording *recording, const frag_trace *trace,
                       const failure *found, const frag_diagnosis *diagnosis,
                       const frag_advice *advice)
{
    frag_json *json = frag_explain_begin_json("recording", diagnosis);
    frag_json_text(json, "source.name", recording->name);
    frag_json_number(json, "source.device", trace->device);
    frag_json_text(json, "source.digest", trace->digest);
    frag_json_null(json, "device.capacity_bytes");
    frag_json_number(json, "figures.requested_bytes", found->asked_bytes);
    frag_json_number(json, "figures.allocated_bytes", found->live_bytes);
    frag_json_number(json, "live_peak_bytes", found->peak_bytes);
    frag_json_number(json, "oom.event", found->event);
    frag_json_number(json, "oom.requested_bytes", found->asked_bytes);
    frag_json_flag(json, "oom.is_recorded", true);
    frag_json_array(json, "candidates");
    frag_explain_add_advice(json, advice);
    frag_json_write(json, stream, false);
}

void frag_explain_failure(const frag_recording *recording, const frag_trace *trace, uint64_t failed,
                          FILE *stream, bool is_json)
{
    failure found = look(trace, failed);
    frag_diagnosis diagnosis;
    frag_advice advice = {.count = 0};
    if (!diagnose_line(recording, &found, &diagnosis, &advice))
        diagnose(&found, &diagnosis);
    advise_capacity(&advice);
    if (is_json) {
        print_json(stream, recording, trace, &found, &diagnosis, &advice);
    } else {
        frag_explain_print_verdict(stream, &diagnosis, false);
        fprintf(stream, "asked      %10s  in one request, at event %s\n",
                FRAG_BYTES(found.asked_bytes),
                frag_count_text(failed, (char[FRAG_BYTES_TEXT_MAX]){0}));
        fprintf(stream, "in use     %10s  by live requests\n", FRAG_BYTES(found.live_bytes));
        frag_explain_print_steps(stream, &advice);
        fprintf(stream, "\nrecording  %s, device %u\n", recording->name, trace->device);
    }
    frag_diagnosis_destroy(&diagnosis);
    frag_advice_destroy(&advice);
}
