#include "studies/leaks/steps.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/memory.h"
#include "sim/trace/demand.h"

/* ---- marks */

/* "step 12" is "step #". The caller frees it. */
static char *without_numbers(const char *name)
{
    frag_text text = {0};
    for (const char *at = name; *at != '\0';) {
        size_t digits = strspn(at, "0123456789");
        frag_text_add_bytes(&text, digits > 0 ? "#" : at, 1);
        at += digits > 0 ? digits : 1;
    }
    frag_text_add_bytes(&text, "", 0);
    return text.bytes != NULL ? text.bytes : frag_copy_text("");
}

static bool is_begin(const frag_event *event)
{
    return event->op == FRAG_OP_MARK && (event->flags & FRAG_EVENT_END) == 0;
}

/* A name of marks, with numbers left out. */
typedef struct mark_name {
    char *name;
    uint64_t count;
} mark_name;

typedef struct mark_names {
    uint32_t *of_string; /* by string id: its name's number + 1; 0: not met */
    mark_name *items;
    size_t count;
    size_t capacity;
} mark_names;

static void add_mark(mark_names *names, const frag_recording *recording, uint32_t string)
{
    if (names->of_string[string] == 0) {
        char *name = without_numbers(frag_strings_get(&recording->strings, string));
        size_t i = 0;
        while (i < names->count && strcmp(names->items[i].name, name) != 0)
            i++;
        if (i < names->count) {
            frag_free(name);
        } else {
            *FRAG_APPEND(names->items, names->count, names->capacity) = (mark_name){.name = name};
        }
        names->of_string[string] = (uint32_t)i + 1;
    }
    names->items[names->of_string[string] - 1].count++;
}

/* A name with "step" in it is meant before any other, then the most frequent, the first of equals.
 * least: how many marks with "step" are enough. */
static const mark_name *choose_mark(const mark_names *names, const char *wanted, size_t least)
{
    const mark_name *best = NULL;
    bool is_best_step = false;
    for (size_t i = 0; i < names->count; i++) {
        const mark_name *at = &names->items[i];
        bool is_step = strstr(at->name, "step") != NULL || strstr(at->name, "Step") != NULL;
        if (wanted != NULL ? strcmp(at->name, wanted) == 0
                           : at->count >= (is_step ? least : FRAG_STEPS_MIN) &&
                                 (best == NULL || is_step > is_best_step ||
                                  (is_step == is_best_step && at->count > best->count))) {
            best = at;
            is_best_step = is_step;
        }
    }
    return best;
}

/* Fills spans with the events at which marks of that name begin and end, in turn. Returns their
 * number; 0: they are not in turn. */
static size_t list_spans(const frag_trace *trace, const mark_names *names, const mark_name *chosen,
                         uint64_t *spans)
{
    size_t count = 0;
    for (uint64_t i = 0; i < trace->event_count; i++) {
        const frag_event *event = &trace->events[i];
        uint32_t name = event->op == FRAG_OP_MARK ? names->of_string[event->slot] : 0;
        if (name == 0 || &names->items[name - 1] != chosen)
            continue;
        if (is_begin(event) != (count % 2 == 0))
            return 0;
        spans[count++] = i;
    }
    return count;
}

static bool has_demand(const frag_trace *trace, uint64_t first, uint64_t end)
{
    while (first < end && trace->events[first].op != FRAG_OP_ALLOC &&
           trace->events[first].op != FRAG_OP_FREE)
        first++;
    return first < end;
}

/* Where the last step ends, if its mark does, and all the marks before hold whole steps: nothing is
 * requested or freed between one and the next. 0: that is not known. */
static uint64_t find_last_end(const frag_trace *trace, const mark_names *names,
                              const mark_name *chosen)
{
    uint64_t *spans = frag_alloc(2 * (size_t)chosen->count + 1, sizeof *spans);
    size_t count = list_spans(trace, names, chosen, spans);
    bool is_known = count > 0 && count == 2 * chosen->count;
    for (size_t i = 2; is_known && i < count; i += 2)
        is_known = !has_demand(trace, spans[i - 1] + 1, spans[i]);
    uint64_t end = is_known ? spans[count - 1] + 1 : 0;
    frag_free(spans);
    return end;
}

static void keep_marks(const frag_recording *recording, const frag_trace *trace,
                       const mark_names *names, const mark_name *chosen, frag_steps *steps)
{
    size_t most = (size_t)chosen->count + 1;
    uint64_t last_end = find_last_end(trace, names, chosen);
    steps->by = FRAG_STEPS_BY_MARKS;
    steps->name = frag_copy_text(chosen->name);
    steps->begin = frag_alloc(most, sizeof *steps->begin);
    steps->marks = frag_alloc(most, sizeof *steps->marks);
    for (uint64_t i = 0; i < trace->event_count; i++) {
        const frag_event *event = &trace->events[i];
        if (!is_begin(event) || &names->items[names->of_string[event->slot] - 1] != chosen)
            continue;
        steps->marks[steps->count] = frag_strings_get(&recording->strings, event->slot);
        steps->begin[steps->count++] = i;
    }
    steps->has_ended = last_end > 0;
    if (steps->has_ended)
        steps->begin[steps->count++] = last_end;
}

static bool find_marks(const frag_recording *recording, const frag_trace *trace, const char *mark,
                       size_t least, frag_steps *steps, frag_error *error)
{
    mark_names names = {.of_string = frag_alloc(recording->strings.count, sizeof(uint32_t))};
    for (uint64_t i = 0; i < trace->event_count; i++)
        if (is_begin(&trace->events[i]))
            add_mark(&names, recording, trace->events[i].slot);
    char *wanted = mark != NULL ? without_numbers(mark) : NULL;
    const mark_name *chosen = choose_mark(&names, wanted, least);
    bool ok = chosen != NULL && (mark == NULL || chosen->count >= least);
    uint64_t count = chosen != NULL ? chosen->count : 0;
    if (mark != NULL && !ok)
        frag_fail(error, FRAG_E_USAGE,
                  "there %s %" PRIu64 " mark%s '%s'; expected %d or more ('fraglab trace info' "
                  "lists them)",
                  count == 1 ? "is" : "are", count, count == 1 ? "" : "s", mark, FRAG_STEPS_MIN);
    if (ok)
        keep_marks(recording, trace, &names, chosen, steps);
    for (size_t i = 0; i < names.count; i++)
        frag_free(names.items[i].name);
    frag_free(names.items);
    frag_free(names.of_string);
    frag_free(wanted);
    return ok;
}

/* ---- requests that come again */

enum { CANDIDATES = 48, FEW_STEPS = 2 };

typedef struct candidate {
    uint32_t group;
    uint64_t count;
    double height; /* 0: always where least is live, 1: where most is */
} candidate;

#define NO_REQUEST UINT32_MAX

/* Requests of each group, and the live bytes before each event. */
typedef struct repeat_search {
    const frag_trace *trace;
    const frag_use_groups *groups;
    uint64_t *counts;   /* by group */
    uint64_t *live;     /* by event, before it */
    uint32_t *group_of; /* by event; NO_REQUEST: it is none */
    uint64_t requests;
} repeat_search;

static void measure(repeat_search *search)
{
    const frag_trace *trace = search->trace;
    frag_demand demand;
    frag_demand_change change;
    uint64_t live = 0;
    search->counts = frag_alloc(search->groups->count, sizeof *search->counts);
    search->live = frag_alloc((size_t)trace->event_count + 1, sizeof *search->live);
    search->group_of = frag_alloc((size_t)trace->event_count + 1, sizeof *search->group_of);
    frag_demand_begin(&demand, trace);
    for (uint64_t i = 0; i < trace->event_count; i++) {
        search->live[i] = live;
        search->group_of[i] = NO_REQUEST;
        if (!frag_demand_step(&demand, i, &change))
            continue;
        live = change.is_free ? live - change.bytes : live + change.bytes;
        if (change.is_free || (trace->events[i].flags & FRAG_EVENT_INITIAL) != 0)
            continue;
        search->group_of[i] = frag_use_group(search->groups, i);
        search->counts[search->group_of[i]]++;
        search->requests++;
    }
    search->live[trace->event_count] = live;
    frag_demand_end(&demand);
}

/* Do the events come at about equal distances, over half of the trace and up to its end? Steps that
 * end long before are a phase of the program. */
static bool is_regular(const repeat_search *search, const uint64_t *begin, size_t count)
{
    uint64_t *gaps = frag_alloc(count, sizeof *gaps);
    uint64_t events = search->trace->event_count;
    size_t near = 0;
    for (size_t i = 1; i < count; i++)
        gaps[i - 1] = begin[i] - begin[i - 1];
    qsort(gaps, count - 1, sizeof *gaps, frag_compare_numbers);
    uint64_t median = gaps[(count - 1) / 2];
    for (size_t i = 0; i + 1 < count; i++)
        near += gaps[i] >= median / 3 && gaps[i] <= 3 * median;
    frag_free(gaps);
    uint64_t behind = events - begin[count - 1];
    return 10 * near >= 9 * (count - 1) && begin[count - 1] - begin[0] >= events / 2 &&
           (behind <= 3 * median || behind <= events / 8);
}

/* How much is live where the steps would begin: the mean over them, as a part of the way from the
 * least to the most of the steps before and behind. */
static double height_of(const repeat_search *search, const uint64_t *begin, size_t count)
{
    double sum = 0;
    for (size_t i = 1; i + 1 < count; i++) {
        uint64_t least = UINT64_MAX, most = 0;
        for (uint64_t event = begin[i - 1]; event < begin[i + 1]; event++) {
            least = search->live[event] < least ? search->live[event] : least;
            most = search->live[event] > most ? search->live[event] : most;
        }
        uint64_t here = search->live[begin[i]];
        sum += here <= least || most == least ? 0 : (double)(here - least) / (double)(most - least);
    }
    return sum / (double)(count - 2);
}

static size_t list_requests(const repeat_search *search, uint32_t group, uint64_t *begin)
{
    size_t count = 0;
    for (uint64_t i = 0; i < search->trace->event_count; i++)
        if (search->group_of[i] == group)
            begin[count++] = i;
    return count;
}

/* The first group of each number of requests. */
static size_t list_candidates(const repeat_search *search, candidate *candidates)
{
    size_t count = 0;
    for (uint32_t group = 0; group < search->groups->count; group++) {
        uint64_t requests = search->counts[group];
        size_t i = 0;
        if (requests < FRAG_STEPS_MIN + 1 || requests > search->requests / 2)
            continue;
        while (i < count && candidates[i].count != requests)
            i++;
        if (i == count && count < CANDIDATES)
            candidates[count++] = (candidate){.group = group, .count = requests};
    }
    return count;
}

/* Of the groups whose requests begin steps about as low as the lowest, the most frequent. */
static const candidate *choose_candidate(const candidate *candidates, size_t count)
{
    double lowest = 2;
    const candidate *best = NULL;
    for (size_t i = 0; i < count; i++)
        lowest = candidates[i].height < lowest ? candidates[i].height : lowest;
    for (size_t i = 0; lowest < 0.3 && i < count; i++)
        if (candidates[i].height <= lowest + 0.05 &&
            (best == NULL || candidates[i].count > best->count))
            best = &candidates[i];
    return best;
}

static bool find_repeats(const frag_trace *trace, const frag_use_groups *groups, frag_steps *steps)
{
    repeat_search search = {.trace = trace, .groups = groups};
    candidate candidates[CANDIDATES];
    measure(&search);
    size_t count = list_candidates(&search, candidates);
    uint64_t *begin = frag_alloc((size_t)search.requests + 1, sizeof *begin);
    for (size_t i = 0; i < count; i++) {
        size_t found = list_requests(&search, candidates[i].group, begin);
        candidates[i].height =
            is_regular(&search, begin, found) ? height_of(&search, begin, found) : 2;
    }
    const candidate *best = choose_candidate(candidates, count);
    if (best != NULL) {
        const frag_use_name *name = &groups->names[best->group];
        steps->by = FRAG_STEPS_BY_REQUESTS;
        steps->name = frag_copy_text(name->caller);
        steps->begin = begin;
        steps->count = list_requests(&search, best->group, begin);
    } else {
        frag_free(begin);
    }
    frag_free(search.counts);
    frag_free(search.live);
    frag_free(search.group_of);
    return best != NULL;
}

/* ---- */

/* Is most of what is taken given back, in each third? Where it is not, a model is loaded, or runs
 * once: that it takes ever more is no leak. */
static bool is_going_round(const frag_trace *trace, uint64_t first)
{
    frag_demand demand;
    frag_demand_change change;
    uint64_t taken[3] = {0}, given[3] = {0};
    uint64_t count = trace->event_count - first;
    frag_demand_begin(&demand, trace);
    for (uint64_t i = 0; i < trace->event_count; i++)
        if (frag_demand_step(&demand, i, &change) && i >= first)
            (change.is_free ? given : taken)[(i - first) * 3 / count] += change.bytes;
    frag_demand_end(&demand);
    for (size_t i = 0; i < 3; i++)
        if (taken[i] == 0 || (double)given[i] < 0.8 * (double)taken[i])
            return false;
    return true;
}

/* Are the three thirds made of the same requests, by their groups? */
static bool is_of_one_kind(const frag_trace *trace, const frag_use_groups *groups, uint64_t first)
{
    uint64_t *counts = frag_alloc(3 * groups->count, sizeof *counts);
    uint64_t count = trace->event_count - first;
    bool is_alike = true;
    for (uint64_t i = first; i < trace->event_count; i++)
        if (frag_use_is_served(&trace->events[i]))
            counts[(i - first) * 3 / count * groups->count + frag_use_group(groups, i)]++;
    for (size_t third = 0; third < 2; third++) {
        uint64_t common = 0, all = 0;
        for (size_t i = 0; i < groups->count; i++) {
            uint64_t a = counts[third * groups->count + i];
            uint64_t b = counts[(third + 1) * groups->count + i];
            common += a < b ? a : b;
            all += a < b ? b : a;
        }
        is_alike = is_alike && common * 2 >= all;
    }
    frag_free(counts);
    return is_alike;
}

static bool make_parts(const frag_trace *trace, const frag_use_groups *groups, frag_steps *steps,
                       frag_error *error)
{
    uint64_t first = frag_trace_start(trace);
    uint64_t count = trace->event_count - first;
    if (trace->stats.request_count < 10 * FRAG_STEPS_PARTS)
        return frag_fail(
            error, FRAG_E_INPUT, "%" PRIu64 " %s without marks %s too few to find steps in",
            trace->stats.request_count, trace->stats.request_count == 1 ? "request" : "requests",
            trace->stats.request_count == 1 ? "is" : "are");
    if (!is_going_round(trace, first) || !is_of_one_kind(trace, groups, first))
        return frag_fail(error, FRAG_E_INPUT,
                         "no steps were found: there are not %d marks or repetitions, and the "
                         "thirds of the trace are not alike, as while a model is loaded; record "
                         "more steps, or name their marks with --mark",
                         FRAG_STEPS_MIN);
    steps->by = FRAG_STEPS_BY_PARTS;
    steps->begin = frag_alloc(FRAG_STEPS_PARTS + 1, sizeof *steps->begin);
    for (uint64_t i = 0; i <= FRAG_STEPS_PARTS; i++)
        steps->begin[steps->count++] = first + count * i / FRAG_STEPS_PARTS;
    return true;
}

bool frag_steps_find(const frag_recording *recording, const frag_trace *trace,
                     const frag_use_groups *groups, const char *mark, frag_steps *steps,
                     frag_error *error)
{
    *steps = (frag_steps){.by = FRAG_STEPS_BY_PARTS};
    bool ok = find_marks(recording, trace, mark, FRAG_STEPS_MIN, steps, error);
    ok = ok || (mark == NULL &&
                (find_repeats(trace, groups, steps) || make_parts(trace, groups, steps, error)));
    if (ok)
        steps->count--;
    return ok;
}

bool frag_steps_find_few(const frag_recording *recording, const frag_trace *trace,
                         const frag_use_groups *groups, frag_steps *steps)
{
    frag_error none = {0};
    *steps = (frag_steps){.by = FRAG_STEPS_BY_PARTS};
    if (!find_marks(recording, trace, NULL, FEW_STEPS, steps, &none) &&
        !find_repeats(trace, groups, steps))
        return false;
    steps->count--;
    return true;
}

const char *frag_steps_mark(const frag_steps *steps, uint64_t step)
{
    const char *mark = steps->marks != NULL && step <= steps->count ? steps->marks[step] : NULL;
    bool has_number = false;
    for (const char *at = mark; at != NULL && *at != '\0';) {
        size_t digits = strspn(at, "0123456789");
        if (digits > 0 && strtoull(at, NULL, 10) == step + 1)
            return NULL;
        has_number = has_number || digits > 0;
        at += digits > 0 ? digits : 1;
    }
    return has_number ? mark : NULL;
}

void frag_steps_destroy(frag_steps *steps)
{
    frag_free(steps->name);
    frag_free(steps->marks);
    frag_free(steps->begin);
    *steps = (frag_steps){.by = FRAG_STEPS_BY_PARTS};
}
