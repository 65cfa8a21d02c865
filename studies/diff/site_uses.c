#include "studies/diff/site_uses.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/memory.h"
#include "sim/trace/demand.h"
#include "sim/trace/site_names.h"

#define BLOCK_BYTES ((uint64_t)512) /* what PyTorch rounds requests to */

static int compare_names(const void *left, const void *right)
{
    const frag_site_use *a = left, *b = right;
    int order = strcmp(a->caller, b->caller);
    return order != 0 ? order : strcmp(a->inner, b->inner);
}

/* ---- the walk through the events */

typedef struct uses_walk {
    const frag_recording *recording;
    const frag_trace *trace;
    const frag_use_groups *groups;
    frag_use_range range;
    frag_site_uses *uses;
    uint64_t *live_bytes; /* by group, now */
    uint64_t *live_count;
    uint64_t *site_bytes; /* by site, now; NULL: groups are not made of sites */
} uses_walk;

static void add_to_site(uses_walk *walk, const frag_demand_change *change, uint64_t bytes)
{
    if (walk->site_bytes != NULL && walk->trace->sites != NULL)
        walk->site_bytes[walk->trace->sites[change->alloc_event]] += bytes;
}

static void take(uses_walk *walk, const frag_demand_change *change)
{
    uint32_t group = frag_use_group(walk->groups, change->alloc_event);
    frag_site_use *use = &walk->uses->items[group];
    walk->live_bytes[group] += change->bytes;
    add_to_site(walk, change, change->bytes);
    walk->live_count[group]++;
    if (change->alloc_event < walk->range.first)
        return;
    if ((walk->trace->events[change->alloc_event].flags & FRAG_EVENT_INITIAL) == 0) {
        use->request_count++;
        use->request_bytes += change->bytes;
    }
    if (use->most_bytes < walk->live_bytes[group])
        use->most_bytes = walk->live_bytes[group];
}

static void give_back(uses_walk *walk, uint64_t event, const frag_demand_change *change)
{
    uint32_t group = frag_use_group(walk->groups, change->alloc_event);
    frag_site_use *use = &walk->uses->items[group];
    walk->live_bytes[group] -= change->bytes;
    add_to_site(walk, change, (uint64_t)0 - change->bytes);
    walk->live_count[group]--;
    if (change->alloc_event >= walk->range.first) {
        use->freed_count++;
        use->lifetime_total += event - change->alloc_event;
    }
}

static void begin_range(uses_walk *walk)
{
    for (size_t i = 0; i < walk->uses->count; i++)
        walk->uses->items[i].most_bytes = walk->live_bytes[i];
}

static uint32_t line_of(const frag_recording *recording, uint32_t site)
{
    uint32_t frame = frag_site_frame(recording, site);
    return frame != 0 ? recording->frames[frame - 1].line : 0;
}

static void find_lines(uses_walk *walk)
{
    uint64_t *most = frag_alloc(walk->uses->count, sizeof *most);
    for (uint32_t i = 0; walk->site_bytes != NULL && i < walk->recording->site_count; i++) {
        uint32_t group = walk->groups->of_site[i];
        if (walk->site_bytes[i] > most[group]) {
            most[group] = walk->site_bytes[i];
            walk->uses->items[group].line = line_of(walk->recording, i);
        }
    }
    frag_free(most);
}

static void look(uses_walk *walk)
{
    find_lines(walk);
    for (size_t i = 0; i < walk->uses->count; i++) {
        walk->uses->items[i].live_bytes = walk->live_bytes[i];
        walk->uses->items[i].live_count = walk->live_count[i];
    }
}

static void walk_events(uses_walk *walk)
{
    frag_demand demand;
    frag_demand_change change;
    frag_demand_begin(&demand, walk->trace);
    for (uint64_t i = 0; i < walk->trace->event_count && i < walk->range.end; i++) {
        if (i == walk->range.first)
            begin_range(walk);
        bool is_changed = frag_demand_step(&demand, i, &change);
        if (is_changed && change.is_free)
            give_back(walk, i, &change);
        else if (is_changed)
            take(walk, &change);
        if (i == walk->range.moment)
            look(walk);
    }
    frag_demand_end(&demand);
}

/* The names go over from the groups; groups of which the range knows nothing go. */
static void take_names(frag_use_groups *groups, frag_site_uses *uses)
{
    size_t kept = 0;
    for (size_t i = 0; i < uses->count; i++) {
        frag_site_use use = uses->items[i];
        if (use.live_count == 0 && use.most_bytes == 0 && use.request_count == 0)
            continue;
        use.caller = groups->names[i].caller;
        use.inner = groups->names[i].inner;
        use.has_place = groups->names[i].has_place;
        groups->names[i].caller = groups->names[i].inner = NULL;
        uses->items[kept++] = use;
    }
    uses->count = kept;
}

void frag_site_uses_collect(const frag_recording *recording, const frag_trace *trace,
                            frag_use_grouping grouping, frag_use_range range, frag_site_uses *uses)
{
    frag_use_groups groups;
    frag_use_groups_create(recording, trace, grouping, &groups);
    *uses = (frag_site_uses){.count = groups.count};
    uses->items = frag_alloc(groups.count, sizeof *uses->items);
    uses_walk walk = {
        .recording = recording, .trace = trace, .groups = &groups, .range = range, .uses = uses};
    walk.live_bytes = frag_alloc(groups.count, sizeof *walk.live_bytes);
    walk.live_count = frag_alloc(groups.count, sizeof *walk.live_count);
    if (grouping == FRAG_USES_BY_SITE)
        walk.site_bytes = frag_alloc(recording->site_count, sizeof *walk.site_bytes);
    walk_events(&walk);
    frag_free(walk.live_bytes);
    frag_free(walk.live_count);
    frag_free(walk.site_bytes);
    take_names(&groups, uses);
    frag_use_groups_destroy(&groups);
}

void frag_site_uses_destroy(frag_site_uses *uses)
{
    for (size_t i = 0; i < uses->count; i++) {
        frag_free(uses->items[i].caller);
        frag_free(uses->items[i].inner);
    }
    frag_free(uses->items);
    *uses = (frag_site_uses){.count = 0};
}

void frag_site_uses_sort(frag_site_uses *uses)
{
    qsort(uses->items, uses->count, sizeof *uses->items, compare_names);
}

/* ---- what changed */

static frag_site_use numbers_of(const frag_site_use *use)
{
    frag_site_use numbers = {0};
    if (use != NULL)
        numbers = *use;
    numbers.caller = numbers.inner = NULL;
    return numbers;
}

size_t frag_site_uses_pair(const frag_site_uses *before, const frag_site_uses *after,
                           frag_site_change **pairs)
{
    size_t count = 0;
    *pairs = frag_alloc(before->count + after->count, sizeof **pairs);
    for (size_t i = 0, j = 0; i < before->count || j < after->count;) {
        const frag_site_use *a = i < before->count ? &before->items[i] : NULL;
        const frag_site_use *b = j < after->count ? &after->items[j] : NULL;
        int order = a == NULL ? 1 : b == NULL ? -1 : compare_names(a, b);
        a = order <= 0 ? a : NULL;
        b = order >= 0 ? b : NULL;
        i += a != NULL;
        j += b != NULL;
        (*pairs)[count++] = (frag_site_change){
            .caller = a != NULL ? a->caller : b->caller,
            .inner = a != NULL ? a->inner : b->inner,
            .has_place = (a != NULL && a->has_place) || (b != NULL && b->has_place),
            .before = numbers_of(a),
            .after = numbers_of(b),
        };
    }
    return count;
}

static uint64_t size_of(const frag_site_change *change)
{
    uint64_t before = change->before.live_bytes, after = change->after.live_bytes;
    return after > before ? after - before : before - after;
}

/* Places first, then the largest, the rest by name: an order that no address decides. What has no
 * place, mostly the backward pass, changes along with what the forward pass was given, but not
 * where that moves against it and is small beside it, as where gradients become sparse. */
static int compare_changes(const void *left, const void *right)
{
    const frag_site_change *a = left, *b = right;
    if (a->is_behind != b->is_behind)
        return a->is_behind ? 1 : -1;
    if (size_of(a) != size_of(b))
        return size_of(a) > size_of(b) ? -1 : 1;
    if (a->is_against != b->is_against)
        return a->is_against ? 1 : -1;
    int order = strcmp(a->caller, b->caller);
    return order != 0 || a->inner == NULL ? order : strcmp(a->inner, b->inner);
}

static void add_use(frag_site_use *sum, const frag_site_use *use)
{
    sum->live_bytes += use->live_bytes;
    sum->live_count += use->live_count;
}

/* A caller and its groups, which stand together among the pairs. */
typedef struct caller_change {
    frag_site_change sum; /* first: compared as a change */
    frag_site_change *pairs;
    size_t count;
} caller_change;

static size_t sum_callers(frag_site_change *pairs, size_t pair_count, caller_change *callers)
{
    size_t count = 0;
    for (size_t i = 0; i < pair_count; i++) {
        if (count == 0 || strcmp(callers[count - 1].sum.caller, pairs[i].caller) != 0)
            callers[count++] =
                (caller_change){.sum = {.caller = pairs[i].caller}, .pairs = &pairs[i]};
        caller_change *last = &callers[count - 1];
        last->count++;
        last->sum.has_place |= pairs[i].has_place;
        add_use(&last->sum.before, &pairs[i].before);
        add_use(&last->sum.after, &pairs[i].after);
    }
    return count;
}

/* Which way changes go together, and whether those with a place are worth being first. */
typedef struct drift {
    bool is_growth;
    bool are_places_first;
} drift;

static drift drift_of(const frag_site_change *changes, size_t count)
{
    double sums[2] = {0}, sizes[2] = {0}; /* without and with a place */
    for (size_t i = 0; i < count; i++) {
        double change = (double)changes[i].after.live_bytes - (double)changes[i].before.live_bytes;
        sums[changes[i].has_place] += change;
        sizes[changes[i].has_place] += change < 0 ? -change : change;
    }
    double whole = sums[false] + sums[true];
    bool is_against = whole > 0 ? sums[true] <= 0 : sums[true] >= 0;
    return (drift){.is_growth = whole > 0,
                   .are_places_first = !is_against || 2 * sizes[true] >= sizes[false]};
}

static void place_in(frag_site_change *change, drift all)
{
    change->is_against = (change->after.live_bytes > change->before.live_bytes) != all.is_growth;
    change->is_behind = change->has_place != all.are_places_first;
}

void frag_site_changes_sort(frag_site_change *changes, size_t count)
{
    drift all = drift_of(changes, count);
    for (size_t i = 0; i < count; i++)
        place_in(&changes[i], all);
    qsort(changes, count, sizeof *changes, compare_changes);
}

size_t frag_site_uses_compare(const frag_site_uses *before, const frag_site_uses *after,
                              frag_site_change **changes)
{
    frag_site_change *pairs = NULL;
    size_t pair_count = frag_site_uses_pair(before, after, &pairs);
    caller_change *callers = frag_alloc(pair_count, sizeof *callers);
    size_t caller_count = sum_callers(pairs, pair_count, callers);
    size_t count = 0;
    *changes = frag_alloc(2 * pair_count, sizeof **changes);
    drift all = drift_of(pairs, pair_count);
    for (size_t i = 0; i < caller_count; i++)
        place_in(&callers[i].sum, all);
    qsort(callers, caller_count, sizeof *callers, compare_changes);
    for (size_t i = 0; i < caller_count; i++) {
        frag_site_change *own = callers[i].pairs;
        if (size_of(&callers[i].sum) == 0)
            continue;
        frag_site_changes_sort(own, callers[i].count);
        callers[i].sum.before.line = own[0].before.line;
        callers[i].sum.after.line = own[0].after.line;
        (*changes)[count++] = callers[i].sum;
        for (size_t j = 0; j < callers[i].count; j++)
            if (size_of(&own[j]) > 0 && own[j].inner[0] != '\0')
                (*changes)[count++] = own[j];
    }
    frag_free(pairs);
    frag_free(callers);
    return count;
}

/* The names are those of uses. */
static frag_site_uses most_of(const frag_site_uses *uses)
{
    frag_site_uses most = {.count = uses->count};
    most.items = frag_alloc(uses->count, sizeof *most.items);
    for (size_t i = 0; i < uses->count; i++) {
        most.items[i] = uses->items[i];
        most.items[i].live_bytes = uses->items[i].most_bytes;
        most.items[i].live_count = uses->items[i].request_count;
    }
    return most;
}

size_t frag_site_uses_compare_most(const frag_site_uses *before, const frag_site_uses *after,
                                   frag_site_change **changes)
{
    frag_site_uses from = most_of(before), to = most_of(after);
    size_t count = frag_site_uses_compare(&from, &to, changes);
    frag_free(from.items);
    frag_free(to.items);
    return count;
}

/* ---- the peak */

static uint64_t rounded(uint64_t bytes, bool is_rounded)
{
    return is_rounded ? frag_round_up(bytes, BLOCK_BYTES) : bytes;
}

uint64_t frag_uses_peak_event(const frag_trace *trace, uint64_t first, uint64_t end,
                              bool is_rounded)
{
    frag_demand demand;
    frag_demand_change change;
    uint64_t live = 0;
    uint64_t peak = 0;
    uint64_t found = first;
    frag_demand_begin(&demand, trace);
    for (uint64_t i = 0; i < trace->event_count && i < end; i++) {
        if (frag_demand_step(&demand, i, &change)) {
            uint64_t bytes = rounded(change.bytes, is_rounded);
            live = change.is_free ? live - bytes : live + bytes;
        }
        if (i >= first && live > peak) {
            peak = live;
            found = i;
        }
    }
    frag_demand_end(&demand);
    return found;
}
