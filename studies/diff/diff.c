#include "studies/diff/diff.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "studies/usual_policies.h"
#include "traces/cut.h"

/* ---- the place that is meant */

static bool read_events(const frag_trace *trace, const char *text, frag_use_range *range,
                        bool *is_range, frag_error *error)
{
    frag_error ignored = {0};
    const char *dots = strstr(text, "..");
    uint64_t count = trace->event_count;
    if (dots == NULL) {
        if (!frag_count_parse(text, 0, UINT64_MAX, &range->moment, &ignored))
            return false;
        *is_range = false;
        if (range->moment >= count)
            frag_fail(error, FRAG_E_USAGE, "there is no event %" PRIu64 "; the trace has %" PRIu64,
                      range->moment, count);
        return true;
    }
    char *first = frag_copy_text(text);
    first[dots - text] = '\0';
    bool ok = frag_count_parse(first, 0, UINT64_MAX, &range->first, &ignored) &&
              frag_count_parse(dots + 2, 0, UINT64_MAX, &range->end, &ignored);
    frag_free(first);
    if (ok && (range->first >= range->end || range->end > count))
        frag_fail(error, FRAG_E_USAGE,
                  "%s are no events of the trace; expected A..B with A below B and B at most "
                  "%" PRIu64,
                  text, count);
    return ok;
}

static bool is_begin(const frag_diff_source *source, uint64_t event, const char *name,
                     size_t length)
{
    const frag_event *mark = &source->trace->events[event];
    if (mark->op != FRAG_OP_MARK || (mark->flags & FRAG_EVENT_END) != 0)
        return false;
    const char *text = frag_strings_get(&source->recording->strings, mark->slot);
    return strncmp(text, name, length) == 0 && text[length] == '\0';
}

/* "NAME[N]": from the N-th mark of that name up to the next, or to the end of the trace. false: the
 * text is no such place. */
static bool find_nth_mark(const frag_diff_source *source, const char *text, frag_use_range *range,
                          frag_error *error)
{
    frag_error ignored = {0};
    const char *open = strrchr(text, '[');
    size_t length = strlen(text);
    uint64_t wanted = 0;
    uint64_t seen = 0;
    if (open == NULL || open == text || text[length - 1] != ']')
        return false;
    char *digits = frag_copy_text(open + 1);
    digits[strlen(digits) - 1] = '\0';
    bool is_number = frag_count_parse(digits, 1, UINT64_MAX, &wanted, &ignored);
    frag_free(digits);
    if (!is_number)
        return false;
    for (uint64_t i = 0; i < source->trace->event_count; i++) {
        if (!is_begin(source, i, text, (size_t)(open - text)))
            continue;
        seen++;
        if (seen == wanted)
            range->first = i;
        if (seen == wanted + 1)
            range->end = i;
    }
    if (seen < wanted)
        frag_fail(error, FRAG_E_USAGE, "there are %" PRIu64 " marks '%.*s', and no %s", seen,
                  (int)(open - text), text, open);
    return true;
}

/* A place other than the peak and the end. */
static bool read_place(frag_diff_side *side, const char *at, bool *is_range, frag_error *error)
{
    const frag_diff_source *source = &side->source;
    frag_cut_range found;
    if (read_events(source->trace, at, &side->range, is_range, error) ||
        find_nth_mark(source, at, &side->range, error))
        return error->code == FRAG_E_NONE;
    if (!frag_cut_find_marks(source->recording, source->trace, at, NULL, &found, error))
        return false;
    side->range.first = found.first;
    side->range.end = found.end;
    return true;
}

static bool find_range(frag_diff_side *side, frag_error *error)
{
    const frag_trace *trace = side->source.trace;
    const char *at = side->source.at != NULL ? side->source.at : "peak";
    bool is_range = true;
    side->range = (frag_use_range){0, trace->event_count, 0};
    if (trace->stats.request_count + trace->stats.initial_count == 0) {
        frag_fail(error, FRAG_E_INPUT, "the trace requests nothing; there is nothing to compare");
        return frag_error_in(error, side->source.recording->name);
    }
    if (strcmp(at, "end") == 0) {
        side->range.moment = trace->event_count - 1;
        return true;
    }
    if (strcmp(at, "peak") != 0 && !read_place(side, at, &is_range, error))
        return frag_error_in(error, side->source.recording->name);
    if (is_range)
        side->range.moment =
            frag_uses_peak_event(trace, side->range.first, side->range.end, false, NULL);
    return true;
}

/* ---- what each side holds */

static bool has_stacks(const frag_diff_side *side)
{
    return side->source.trace->sites != NULL && side->source.recording->site_count > 1;
}

static void collect(frag_diff_side *side, frag_use_grouping grouping)
{
    frag_site_uses_collect(side->source.recording, side->source.trace, grouping, side->range,
                           &side->uses);
    for (size_t i = 0; i < side->uses.count; i++) {
        side->requested_bytes += side->uses.items[i].live_bytes;
        side->request_count += side->uses.items[i].request_count;
    }
}

/* ---- where the requests part */

/* The next request from *event on in the side's range; FRAG_UNLIMITED: there is none. */
static uint64_t next_request(const frag_diff_side *side, uint64_t event)
{
    const frag_trace *trace = side->source.trace;
    for (; event < side->range.end; event++)
        if (trace->events[event].op == FRAG_OP_ALLOC &&
            (trace->events[event].flags & FRAG_EVENT_INITIAL) == 0)
            return event;
    return FRAG_UNLIMITED;
}

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

static bool replay_with(const frag_diff_options *options, const frag_policy_spec *spec,
                        frag_diff_side *side, frag_error *error)
{
    const frag_recording *recording = side->source.recording;
    frag_policy_spec resolved = {0};
    frag_run_options run = {.context = options->context};
    if (!frag_policy_resolve(options->context, spec, recording, &resolved, error))
        return false;
    side->policy = frag_copy_text(resolved.text);
    bool ok = frag_run(&(frag_run_setup){recording, side->source.trace, resolved.ops,
                                         resolved.values, options->device},
                       &run, &side->run, error);
    frag_policy_spec_destroy(&resolved);
    return ok;
}

static bool replay(const frag_diff_options *options, frag_diff_side *side, frag_error *error)
{
    frag_policy_list usual = {0};
    const frag_policy_spec *spec = options->spec;
    if (frag_is_cancelled(options->context))
        return false;
    if (spec == NULL) {
        frag_usual_policies(side->source.recording, &usual);
        spec = &usual.specs[0];
    }
    bool ok = replay_with(options, spec, side, error);
    frag_policy_list_destroy(&usual);
    return ok || frag_error_in(error, side->source.recording->name);
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
        (!has_stacks(&sides[0]) || !has_stacks(&sides[1]))) {
        diff->grouping = FRAG_USES_BY_SIZE;
        diff->is_without_stacks = true;
    }
    for (size_t i = 0; i < 2; i++)
        collect(&sides[i], diff->grouping);
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
    }
    *diff = (frag_diff){.grouping = FRAG_USES_BY_SITE};
}

/* ---- figures */

uint64_t frag_diff_calls(const frag_diff_side *side)
{
    return frag_run_memory_calls(&side->run);
}

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
    for (size_t i = 0; i < FRAG_DIFF_FIGURES; i++) {
        double before = (double)figures[i].values[0], after = (double)figures[i].values[1];
        if (figures[i].is_known && after > before && after - before > allowed->amount &&
            after - before > allowed->ratio * before)
            return true;
    }
    return false;
}
