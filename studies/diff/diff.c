#include "studies/diff/diff.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "studies/diff/place.h"
#include "studies/diff/program_files.h"
#include "studies/usual_policies.h"

/* ---- the place that is meant */

static bool find_range(frag_diff_side *side, frag_error *error)
{
    const frag_diff_source *source = &side->source;
    const frag_trace *trace = source->trace;
    const frag_place_source place = {source->recording, trace};
    if (trace->stats.request_count + trace->stats.initial_count == 0)
        frag_fail(error, FRAG_E_INPUT, "the trace requests nothing; there is nothing to compare");
    else if (frag_place_find(&place, source->at != NULL ? source->at : "peak", &side->range, error))
        return true;
    return frag_error_in(error, source->recording->name);
}

/* ---- what each side holds */

/* The next request from event on in the side's range; FRAG_UNLIMITED: there is none. */
static uint64_t next_request(const frag_diff_side *side, uint64_t event)
{
    const frag_trace *trace = side->source.trace;
    for (; event < side->range.end; event++)
        if (trace->events[event].op == FRAG_OP_ALLOC &&
            (trace->events[event].flags & FRAG_EVENT_INITIAL) == 0)
            return event;
    return FRAG_UNLIMITED;
}

static void collect(frag_diff_side *side, frag_use_grouping grouping)
{
    frag_site_uses_collect(side->source.recording, side->source.trace, grouping, side->range,
                           &side->uses);
    for (size_t i = 0; i < side->uses.count; i++)
        side->requested_bytes += side->uses.items[i].live_bytes;
    for (uint64_t event = next_request(side, side->range.first); event != FRAG_UNLIMITED;
         event = next_request(side, event + 1))
        side->request_count++;
}

/* ---- where the requests part */

static bool is_same_request(const frag_diff *diff, const uint64_t events[2])
{
    const frag_event *a = &diff->sides[0].source.trace->events[events[0]];
    const frag_event *b = &diff->sides[1].source.trace->events[events[1]];
    return a->bytes == b->bytes && a->stream == b->stream &&
           (a->flags & FRAG_EVENT_FAILED) == (b->flags & FRAG_EVENT_FAILED);
}

static void find_parting(frag_diff *diff)
{
    uint64_t events[2] = {diff->sides[0].range.first, diff->sides[1].range.first};
    for (;;) {
        events[0] = next_request(&diff->sides[0], events[0]);
        events[1] = next_request(&diff->sides[1], events[1]);
        bool has_both = events[0] != FRAG_UNLIMITED && events[1] != FRAG_UNLIMITED;
        if (!has_both || !is_same_request(diff, events))
            break;
        diff->same_requests++;
        events[0]++;
        events[1]++;
    }
    memcpy(diff->part_events, events, sizeof events);
    diff->has_parting = events[0] != FRAG_UNLIMITED || events[1] != FRAG_UNLIMITED;
}

/* ---- replays */

static bool replay(const frag_diff_options *options, frag_diff_side *side, frag_error *error)
{
    const frag_recording *recording = side->source.recording;
    frag_policy_spec resolved = {0};
    frag_run_options run = {.context = options->context};
    if (frag_is_cancelled(options->context))
        return false;
    if (!frag_usual_policy_resolve(options->context, options->spec, recording, &resolved, error))
        return frag_error_in(error, recording->name);
    side->policy = frag_copy_text(resolved.text);
    bool ok = frag_run(&(frag_run_setup){recording, side->source.trace, resolved.ops,
                                         resolved.values, options->device},
                       &run, &side->run, error);
    frag_policy_spec_destroy(&resolved);
    return ok || frag_error_in(error, recording->name);
}

bool frag_diff_make(const frag_diff_options *options, const frag_diff_source sources[2],
                    frag_diff *diff, frag_error *error)
{
    frag_diff_side *sides = diff->sides;
    *diff = (frag_diff){.grouping = options->grouping,
                        .is_one_trace = sources[0].trace == sources[1].trace};
    for (size_t i = 0; i < 2; i++) {
        sides[i].source = sources[i];
        if (!find_range(&sides[i], error))
            return false;
    }
    if (options->grouping != FRAG_USES_BY_SIZE &&
        !(frag_use_has_stacks(sources[0].recording, sources[0].trace) &&
          frag_use_has_stacks(sources[1].recording, sources[1].trace))) {
        diff->grouping = FRAG_USES_BY_SIZE;
        diff->is_without_stacks = true;
    }
    for (size_t i = 0; i < 2; i++)
        collect(&sides[i], diff->grouping);
    if (diff->grouping == FRAG_USES_BY_SITE && !diff->is_one_trace)
        frag_program_files_join(&sides[0].uses, &sides[1].uses, diff->files);
    find_parting(diff);
    for (size_t i = 0; i < 2 && options->is_replayed && !diff->is_one_trace; i++)
        if (!replay(options, &sides[i], error))
            return false;
    return true;
}

void frag_diff_destroy(frag_diff *diff)
{
    for (size_t i = 0; i < 2; i++) {
        frag_site_uses_destroy(&diff->sides[i].uses);
        frag_free(diff->sides[i].policy);
        frag_free(diff->files[i]);
    }
    *diff = (frag_diff){.grouping = FRAG_USES_BY_SITE};
}

/* ---- figures */

void frag_diff_figures(const frag_diff *diff, frag_diff_figure figures[FRAG_DIFF_FIGURES])
{
    const frag_diff_side *a = &diff->sides[0], *b = &diff->sides[1];
    bool has_runs = a->policy != NULL && b->policy != NULL;
    const frag_level *from = &a->run.replay.peak, *to = &b->run.replay.peak;
    figures[0] = (frag_diff_figure){
        "requested_bytes", "requested", true, {a->requested_bytes, b->requested_bytes}};
    figures[1] = (frag_diff_figure){"peak.allocated_bytes",
                                    "peak allocated",
                                    has_runs,
                                    {from->allocated_bytes, to->allocated_bytes}};
    figures[2] = (frag_diff_figure){"peak.reserved_bytes",
                                    "peak reserved",
                                    has_runs,
                                    {from->reserved_bytes, to->reserved_bytes}};
}

bool frag_diff_has_finding(const frag_diff *diff, const frag_threshold *allowed)
{
    frag_diff_figure figures[FRAG_DIFF_FIGURES];
    frag_diff_figures(diff, figures);
    for (size_t i = 0; i < FRAG_DIFF_FIGURES; i++)
        if (figures[i].is_known &&
            frag_threshold_is_exceeded(allowed, figures[i].values[0], figures[i].values[1]))
            return true;
    return false;
}
