#include "studies/run/run_point.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"

bool frag_run_point_parse(const char *text, frag_run_point *point, frag_error *error)
{
    static const struct {
        const char *word;
        frag_run_point_kind kind;
    } words[] = {
        {"end", FRAG_RUN_POINT_END},
        {"peak", FRAG_RUN_POINT_PEAK},
        {"oom", FRAG_RUN_POINT_OOM},
    };
    *point = (frag_run_point){0};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(text, words[i].word) == 0) {
            point->kind = words[i].kind;
            return true;
        }
    point->kind = FRAG_RUN_POINT_EVENT;
    if (text[0] < '0' || text[0] > '9')
        return frag_fail(
            error, FRAG_E_USAGE,
            "'%s' is not a point of a run; expected peak, oom, end or the number of an "
            "event",
            text);
    return frag_count_parse(text, 0, UINT64_MAX - 1, &point->event, error);
}

bool frag_run_point_find(const frag_run_point *point, const frag_trace *trace,
                         const frag_replay_result *first, frag_replay_options *options,
                         frag_error *error)
{
    options->stop_after = FRAG_UNLIMITED;
    /* A request that failed when recorded may be what made the peak; elsewhere the program goes on
     * without its block. */
    options->is_attempt_kept = point->kind == FRAG_RUN_POINT_PEAK;
    switch (point->kind) {
    case FRAG_RUN_POINT_END:
        return true;
    case FRAG_RUN_POINT_PEAK:
        options->stop_after = first->reserved_at_event + 1;
        return true;
    case FRAG_RUN_POINT_OOM:
        options->stop_after = first->oom.event + 1;
        return first->oom.has_happened ||
               frag_fail(error, FRAG_E_USAGE,
                         "no request of this run failed; give a --capacity that is too small");
    case FRAG_RUN_POINT_EVENT:
        options->stop_after = point->event + 1;
        break;
    }
    if (trace->event_count == 0)
        return frag_fail(error, FRAG_E_USAGE, "the trace has no events");
    if (point->event >= trace->event_count)
        return frag_fail(error, FRAG_E_USAGE,
                         "the trace has no event %" PRIu64 "; its last is event %" PRIu64,
                         point->event, trace->event_count - 1);
    return point->event < first->events ||
           frag_fail(error, FRAG_E_USAGE,
                     "the run ran out of memory at event %" PRIu64 " and did not get to event "
                     "%" PRIu64 "; '--on-oom skip' goes on",
                     first->oom.event, point->event);
}
