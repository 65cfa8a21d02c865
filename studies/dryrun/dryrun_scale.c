#include "studies/dryrun/dryrun_scale.h"

#include <string.h>

#include "base/memory.h"

bool frag_dryrun_scales(const frag_dryrun_scaled *smaller, const frag_dryrun_scaled *larger)
{
    const frag_trace *a = smaller->trace, *b = larger->trace;
    if (smaller->value >= larger->value || a->event_count != b->event_count ||
        a->slot_count != b->slot_count)
        return false;
    for (uint64_t i = 0; i < a->event_count; i++)
        if (a->events[i].op != b->events[i].op || a->events[i].slot != b->events[i].slot ||
            a->events[i].stream != b->events[i].stream || a->events[i].flags != b->events[i].flags)
            return false;
    return true;
}

/* The line through two sizes, at a third value; at least a byte. */
static uint64_t scale_bytes(uint64_t a, uint64_t b, double steps)
{
    double bytes = (double)b + ((double)b - (double)a) * steps;
    return bytes < 1                                ? 1
           : bytes > (double)FRAG_REQUEST_BYTES_MAX ? FRAG_REQUEST_BYTES_MAX
                                                    : (uint64_t)(bytes + 0.5);
}

typedef struct scale_run {
    const frag_context *context;
    const frag_dryrun_scaled *smaller;
    const frag_dryrun_scaled *larger;
    const frag_dryrun_card *card;
    frag_policy_spec policy;
    frag_event *events;
} scale_run;

static bool fits_with(scale_run *run, uint64_t value, bool *fits, frag_error *error)
{
    const frag_trace *a = run->smaller->trace, *b = run->larger->trace;
    double distance = (double)(run->larger->value - run->smaller->value);
    double steps = (double)(value - run->larger->value) / distance;
    frag_trace scaled = *b;
    frag_dryrun_level level;
    memcpy(run->events, b->events, b->event_count * sizeof *run->events);
    for (uint64_t i = 0; i < b->event_count; i++)
        if (b->events[i].op == FRAG_OP_ALLOC)
            run->events[i].bytes = scale_bytes(a->events[i].bytes, b->events[i].bytes, steps);
    scaled.events = run->events;
    frag_trace_measure(&scaled);
    if (!frag_dryrun_replay(run->context, run->larger->recording, &scaled, &run->policy, run->card,
                            &level, error))
        return false;
    *fits = level.fits;
    return true;
}

bool frag_dryrun_guess_max(const frag_context *context, const frag_dryrun_scaled *smaller,
                           const frag_dryrun_scaled *larger, const frag_dryrun_card *card,
                           const char *torch, uint64_t last, uint64_t *value, frag_error *error)
{
    scale_run run = {.context = context, .smaller = smaller, .larger = larger, .card = card};
    if (!frag_dryrun_policy(context, larger->recording, torch, &run.policy, error))
        return false;
    run.events = frag_alloc(larger->trace->event_count, sizeof *run.events);
    uint64_t low = larger->value;
    uint64_t high = last + 1;
    bool ok = true;
    while (ok && low + 1 < high) {
        uint64_t middle = low + (high - low) / 2;
        bool fits = false;
        ok = fits_with(&run, middle, &fits, error);
        if (fits)
            low = middle;
        else
            high = middle;
    }
    frag_free(run.events);
    frag_policy_spec_destroy(&run.policy);
    *value = low;
    return ok;
}
