#include "sim/cli/verify_infer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/pytorch_settings.h"
#include "sim/base/bits.h"
#include "sim/base/bytes.h"
#include "sim/base/memory.h"
#include "sim/cli/command.h"
#include "sim/cli/verify_evidence.h"
#include "sim/cli/verify_rounding.h"

/* A capacity for limits that are known in bytes; powers of two keep the share exact. */
#define ROUND_CAPACITY ((uint64_t)1 << 40)

typedef enum dimension {
    VERSION,
    EXPANDABLE,
    LARGE_SEGMENT,
    DIVISIONS,
    MAX_SPLIT,
    SLACK,
    DIMENSIONS
} dimension;

static const char *const keys[DIMENSIONS] = {
    [VERSION] = "version",
    [EXPANDABLE] = "expandable_segments",
    [LARGE_SEGMENT] = "large_segment_size_mb",
    [DIVISIONS] = "roundup_power2_divisions",
    [MAX_SPLIT] = "max_split_size_mb",
    [SLACK] = "max_non_split_rounding_mb",
};

/* Settings that may have been those of the recording. */
typedef struct guess {
    char texts[DIMENSIONS][FRAG_ROUNDING_TEXT_BYTES]; /* "": as given */
    uint64_t mark_bytes;     /* more than this makes it collect garbage; FRAG_UNLIMITED: none */
    uint64_t capacity_bytes; /* FRAG_UNLIMITED: not known */
    frag_rounding rounding;  /* what texts[DIVISIONS] stands for */
} guess;

/* What a mark comes to: a share of a limit, which is a share of a capacity. */
typedef struct limits {
    double threshold;
    uint64_t limit_bytes;
    uint64_t capacity_bytes;
} limits;

typedef struct inference {
    const frag_recording *recording;
    const frag_trace *trace;
    const frag_policy_spec *spec;
    frag_pytorch_settings given;
    uint64_t unit;      /* of all segments */
    double limit_ratio; /* a share that the program set as its limit; 0: it did not */
    bool is_free[DIMENSIONS];
    bool is_mark_free;
    bool is_capacity_free;
    uint64_t events_left; /* to be replayed before it gives up */
    uint64_t replays;
    guess best;
    uint64_t best_reach; /* the event at which the best guess differs */
    frag_verify_result best_result;
} inference;

static const frag_option_value *value_of(const frag_policy_spec *spec, const char *key)
{
    for (uint32_t i = 0; i < spec->value_count; i++)
        if (strcmp(spec->ops->options[i].key, key) == 0)
            return &spec->values[i];
    return NULL;
}

/* ---- one guess */

/* The largest share in tenths that leaves room for all that was ever held. */
static double tenths(double most)
{
    for (int i = 9; i > 0; i--)
        if ((double)i / 10 <= most)
            return (double)i / 10;
    return most;
}

static uint64_t limit_of(uint64_t mark, double threshold)
{
    uint64_t limit = (uint64_t)((double)mark / threshold);
    return limit + ((uint64_t)(threshold * (double)limit) < mark ? 1 : 0);
}

/* false: there is no limit with such a mark. */
static bool find_limits(const inference *search, const guess *tried, limits *found)
{
    const frag_pytorch_settings *given = &search->given;
    uint64_t peak = search->trace->stats.observed_reserved_peak_bytes;
    uint64_t mark = tried->mark_bytes;
    double share = search->limit_ratio > 0 ? search->limit_ratio
                   : given->has_fraction   ? given->memory_fraction
                                           : 0;
    if (mark == 0 || peak == 0)
        return false;
    found->capacity_bytes = tried->capacity_bytes;
    found->threshold = given->gc_threshold;
    if (share > 0 && tried->capacity_bytes != FRAG_UNLIMITED) {
        found->limit_bytes = (uint64_t)(share * (double)tried->capacity_bytes);
        found->threshold = (double)mark / (double)found->limit_bytes;
        return given->gc_threshold <= 0 && found->threshold < 1;
    }
    if (found->threshold <= 0)
        found->threshold = tenths((double)mark / (double)peak);
    found->limit_bytes = limit_of(mark, found->threshold);
    if (share > 0)
        found->capacity_bytes = (uint64_t)((double)found->limit_bytes / share) + 1;
    else if (found->capacity_bytes == FRAG_UNLIMITED || found->capacity_bytes <= found->limit_bytes)
        found->capacity_bytes =
            ROUND_CAPACITY > found->limit_bytes ? ROUND_CAPACITY : 2 * found->limit_bytes;
    return true;
}

static bool set_ratio(frag_policy_spec *spec, const char *key, double ratio)
{
    char text[64];
    frag_error ignored = {0};
    snprintf(text, sizeof text, "%.17f", ratio);
    return frag_policy_spec_set(spec, key, text, &ignored);
}

/* false: no release has such settings. */
static bool set_guess(const inference *search, const guess *tried, frag_policy_spec *spec,
                      uint64_t *capacity)
{
    frag_error ignored = {0};
    *capacity = tried->capacity_bytes;
    for (uint32_t i = 0; i < DIMENSIONS; i++)
        if (tried->texts[i][0] != '\0' &&
            !frag_policy_spec_set(spec, keys[i], tried->texts[i], &ignored))
            return false;
    if (tried->mark_bytes == FRAG_UNLIMITED)
        return true;
    limits found = {0};
    if (!find_limits(search, tried, &found))
        return false;
    *capacity = found.capacity_bytes;
    return (search->given.gc_threshold > 0 ||
            set_ratio(spec, "garbage_collection_threshold", found.threshold)) &&
           (search->limit_ratio > 0 || search->given.has_fraction ||
            set_ratio(spec, "per_process_memory_fraction",
                      (double)found.limit_bytes / (double)found.capacity_bytes));
}

static bool replay(inference *search, const guess *tried, frag_verify_result *result)
{
    frag_policy_spec spec;
    frag_error ignored = {0};
    uint64_t capacity = 0;
    frag_policy_spec_copy(search->spec, &spec);
    bool ok = set_guess(search, tried, &spec, &capacity) &&
              frag_verify(search->recording, search->trace, spec.ops, spec.values, capacity, false,
                          result, &ignored);
    frag_policy_spec_destroy(&spec);
    return ok;
}

static bool is_over(const inference *search)
{
    return search->best_result.is_identical || search->events_left == 0 || frag_is_interrupted();
}

/* What beginning a replay takes, in events. */
#define START_EVENTS 2000u

/* Keeps the guess if it goes along with the recording longer than all before. false: it cannot be
 * made. */
static bool try_guess(inference *search, const guess *tried, frag_verify_result *result)
{
    if (is_over(search) || !replay(search, tried, result))
        return false;
    uint64_t events = search->trace->event_count;
    uint64_t reach = result->is_identical ? FRAG_UNLIMITED : result->first.event;
    uint64_t cost = START_EVENTS + (reach < events ? reach + 1 : events);
    search->events_left -= cost < search->events_left ? cost : search->events_left;
    search->replays++;
    if (reach > search->best_reach) {
        search->best = *tried;
        search->best_reach = reach;
        search->best_result = *result;
    }
    return true;
}

static void try_text(inference *search, const guess *base, dimension which, const char *text)
{
    guess tried = *base;
    frag_verify_result result;
    if (!search->is_free[which] || strcmp(base->texts[which], text) == 0)
        return;
    snprintf(tried.texts[which], sizeof tried.texts[which], "%s", text);
    try_guess(search, &tried, &result);
}

static void try_number(inference *search, const guess *base, dimension which, uint64_t number)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, number);
    try_text(search, base, which, text);
}

/* ---- values that can be listed */

#define MINOR_NEWEST 15u

/* The minor of "2.9"; without the key what is given. */
static uint32_t minor_of(const frag_recording *recording, const char *key, uint32_t otherwise)
{
    const char *text = frag_recording_get(recording, key);
    if (text == NULL || strncmp(text, "2.", 2) != 0)
        return otherwise;
    return (uint32_t)strtoul(text + 2, NULL, 10);
}

/* The releases that the recording may be of, the newest first. */
static void scan_versions(inference *search, const guess *base)
{
    uint32_t least = minor_of(search->recording, "torch.version_min", 0);
    uint32_t minor = minor_of(search->recording, "torch.version_max", MINOR_NEWEST);
    minor = minor < MINOR_NEWEST ? minor : MINOR_NEWEST;
    for (uint32_t i = minor + 1; i > least; i--) {
        char text[16];
        snprintf(text, sizeof text, "2.%" PRIu32, i - 1);
        try_text(search, base, VERSION, text);
    }
}

static void set_rounding(guess *tried, const frag_rounding *rounding)
{
    tried->rounding = *rounding;
    frag_rounding_text(rounding, tried->texts[DIVISIONS]);
}

/* Every octave in every other way that its sizes do not contradict. */
static void scan_divisions(inference *search, const guess *base)
{
    for (uint32_t i = 0; i < FRAG_ROUNDING_OCTAVES && search->is_free[DIVISIONS]; i++)
        for (uint32_t way = 0; way < FRAG_ROUNDING_WAYS; way++) {
            guess tried = *base;
            frag_verify_result result;
            frag_rounding changed = base->rounding;
            bool is_possible = (changed.possible[i] >> way & 1) != 0 && changed.ways[i] != way;
            changed.ways[i] = way;
            if (!is_possible ||
                frag_rounding_is_old(&changed) != frag_rounding_is_old(&base->rounding))
                continue;
            set_rounding(&tried, &changed);
            try_guess(search, &tried, &result);
        }
}

static void scan_segment_sizes(inference *search, const guess *base)
{
    uint64_t sizes[FRAG_EVIDENCE_SIZES_MAX];
    uint32_t count = frag_evidence_segment_sizes(search->trace, sizes);
    for (uint32_t i = 0; i < count; i++)
        try_number(search, base, LARGE_SEGMENT, sizes[i]);
}

/* The capacity whose share a range of that size is. */
static uint64_t capacity_of_range(const frag_pytorch_settings *given, uint64_t distance)
{
    return given->reserve_ratio > 0 ? (uint64_t)((double)distance / given->reserve_ratio)
                                    : distance / 9 * 8;
}

static void scan_capacities(inference *search, const guess *base)
{
    uint64_t distance = frag_evidence_range_distance(search->trace);
    const uint64_t capacities[] = {frag_evidence_capacity(search->trace),
                                   capacity_of_range(&search->given, distance)};
    for (size_t i = 0; i < sizeof capacities / sizeof capacities[0]; i++) {
        guess tried = *base;
        frag_verify_result result;
        tried.capacity_bytes = capacities[i];
        if (search->is_capacity_free && base->capacity_bytes == FRAG_UNLIMITED && capacities[i] > 0)
            try_guess(search, &tried, &result);
    }
}

/* ---- values that can be any: of two that no comparison of a run lies between, one is enough */

enum { KNOWN_MAX = 2048 };

typedef struct known_intervals {
    frag_pytorch_interval items[KNOWN_MAX];
    uint32_t count;
} known_intervals;

static bool is_known(const known_intervals *known, uint64_t bytes)
{
    for (uint32_t i = 0; i < known->count; i++)
        if (bytes >= known->items[i].least && bytes <= known->items[i].most)
            return true;
    return false;
}

/* A block or request of this size there was, perhaps. */
static uint64_t largest_bytes(const inference *search)
{
    const frag_trace *trace = search->trace;
    uint64_t most = 0;
    if (trace->stats.op_counts[FRAG_OP_SEGMENT_MAP] > 0)
        return trace->stats.observed_reserved_peak_bytes;
    for (uint64_t i = 0; i < trace->event_count; i++)
        if (trace->events[i].op == FRAG_OP_SEGMENT_ALLOC && trace->events[i].bytes > most)
            most = trace->events[i].bytes;
    return most;
}

typedef frag_pytorch_interval interval_reader(const frag_policy_met *met);

static void try_size(inference *search, const guess *base, dimension which, uint64_t mib,
                     known_intervals *known, interval_reader *read)
{
    guess tried = *base;
    frag_verify_result result;
    if (is_known(known, mib * FRAG_MIB) || known->count == KNOWN_MAX)
        return;
    snprintf(tried.texts[which], sizeof tried.texts[which], "%" PRIu64, mib);
    if (try_guess(search, &tried, &result))
        known->items[known->count++] = read(&result.met);
}

/* Sizes in MiB: those that guides name, then all. */
static void scan_sizes(inference *search, const guess *base, dimension which, interval_reader *read)
{
    static const uint64_t usual[] = {128, 256, 512, 64, 32, 1024, 100, 200, 500, 50, 40, 2048};
    enum { SIZES_MAX = 1 << 16 };
    if (!search->is_free[which])
        return;
    uint64_t most = largest_bytes(search) / FRAG_MIB + 1;
    known_intervals *known = frag_alloc(1, sizeof *known);
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        try_size(search, base, which, usual[i], known, read);
    for (uint64_t mib = most < SIZES_MAX ? most : SIZES_MAX; mib >= 20; mib--)
        try_size(search, base, which, mib, known, read);
    free(known);
}

/* Marks from all that was ever held downwards. A lower one makes collection begin earlier; once it
 * has long begun too early no lower one is tried. */
static void scan_marks(inference *search, const guess *base)
{
    enum { WORSE_MAX = 48 };
    if (!search->is_mark_free || search->trace->stats.op_counts[FRAG_OP_LIMIT] > 1)
        return;
    uint64_t half = search->unit > 1 ? search->unit / 2 : 1;
    guess tried = *base;
    tried.mark_bytes = search->trace->stats.observed_reserved_peak_bytes;
    uint64_t before = search->best_reach;
    uint32_t worse = 0;
    frag_verify_result result;
    while (worse < WORSE_MAX && try_guess(search, &tried, &result)) {
        uint64_t least = frag_pytorch_met_mark(&result.met).least;
        worse = result.first.event < before ? worse + 1 : 0;
        if (least <= half)
            break;
        tried.mark_bytes = least - half;
    }
}

/* Where the program changes its limit the mark changes with it, and the threshold alone stays. */
static void scan_thresholds(inference *search, const guess *base)
{
    enum { STEPS = 20 };
    guess tried = *base;
    frag_verify_result result;
    if (tried.capacity_bytes == FRAG_UNLIMITED)
        tried.capacity_bytes = frag_evidence_capacity(search->trace);
    if (!search->is_mark_free || search->trace->stats.op_counts[FRAG_OP_LIMIT] < 2 ||
        tried.capacity_bytes == 0 || search->given.gc_threshold > 0)
        return;
    double limit = search->limit_ratio * (double)tried.capacity_bytes;
    for (uint32_t step = STEPS - 1; step > 0; step--) {
        tried.mark_bytes = (uint64_t)(limit * step / STEPS) + 1;
        try_guess(search, &tried, &result);
    }
}

/* ---- the search */

/* Are settings that are not given known to be the defaults? */
static bool knows_settings(const inference *search)
{
    const frag_option_value *conf = value_of(search->spec, "conf");
    return frag_recording_get(search->recording, "torch.conf") != NULL ||
           (conf != NULL && conf->is_given);
}

static void see_what_is_free(inference *search, uint64_t capacity)
{
    bool is_known = knows_settings(search);
    for (uint32_t i = 0; i < DIMENSIONS; i++) {
        const frag_option_value *option = value_of(search->spec, keys[i]);
        search->is_free[i] = option != NULL && !option->is_given && (i == VERSION || !is_known);
    }
    const frag_option_value *threshold = value_of(search->spec, "garbage_collection_threshold");
    bool is_threshold_known =
        is_known || (threshold != NULL && threshold->is_given) || search->given.gc_threshold > 0;
    bool is_limit_known =
        capacity != FRAG_UNLIMITED && (search->given.has_fraction || search->limit_ratio > 0);
    search->is_capacity_free =
        capacity == FRAG_UNLIMITED && search->trace->stats.op_counts[FRAG_OP_SEGMENT_MAP] > 0;
    search->is_mark_free =
        is_threshold_known ? search->given.gc_threshold > 0 && !is_limit_known : true;
}

/* What needs no trying. */
static guess first_guess(const inference *search, uint64_t capacity)
{
    guess first = {.mark_bytes = FRAG_UNLIMITED, .capacity_bytes = capacity};
    uint64_t sizes[FRAG_EVIDENCE_SIZES_MAX];
    frag_rounding rounding;
    frag_rounding_read(search->trace, &rounding);
    if (search->is_free[EXPANDABLE] && search->trace->stats.op_counts[FRAG_OP_SEGMENT_MAP] > 0)
        snprintf(first.texts[EXPANDABLE], sizeof first.texts[0], "true");
    if (search->is_free[LARGE_SEGMENT] && frag_evidence_segment_sizes(search->trace, sizes) == 1)
        snprintf(first.texts[LARGE_SEGMENT], sizeof first.texts[0], "%" PRIu64, sizes[0]);
    if (search->is_free[DIVISIONS]) {
        set_rounding(&first, &rounding);
        if (frag_rounding_is_old(&rounding) && search->is_free[VERSION])
            snprintf(first.texts[VERSION], sizeof first.texts[0], "2.3");
    }
    return first;
}

static void scan_all(inference *search, const guess *base)
{
    scan_capacities(search, base);
    scan_versions(search, base);
    scan_segment_sizes(search, base);
    scan_marks(search, base);
    scan_thresholds(search, base);
    scan_sizes(search, base, MAX_SPLIT, frag_pytorch_met_split);
    if (base->texts[MAX_SPLIT][0] != '\0' || search->given.max_split_bytes != FRAG_UNLIMITED)
        scan_sizes(search, base, SLACK, frag_pytorch_met_slack);
    scan_divisions(search, base);
}

/* From a guess on, setting after setting, each the one with which the policy goes along longest;
 * what was taken before may change again. */
static void climb(inference *search, const guess *from)
{
    enum { ROUNDS_MAX = 8 };
    guess best = search->best;
    uint64_t best_reach = search->best_reach;
    frag_verify_result result;
    search->best_reach = 0;
    try_guess(search, from, &result);
    for (uint32_t round = 0; round < ROUNDS_MAX && !is_over(search); round++) {
        guess base = search->best;
        uint64_t reach = search->best_reach;
        scan_all(search, &base);
        if (search->best_reach == reach)
            break;
    }
    if (search->best_reach <= best_reach) {
        search->best = best;
        search->best_reach = best_reach;
    }
}

/* Leaves out what is not needed. */
static void simplify(inference *search)
{
    frag_verify_result result;
    for (uint32_t i = 0; i <= DIMENSIONS; i++) {
        guess less = search->best;
        if (i == DIMENSIONS)
            less.mark_bytes = FRAG_UNLIMITED;
        else
            less.texts[i][0] = '\0';
        if (memcmp(&less, &search->best, sizeof less) != 0 && replay(search, &less, &result) &&
            result.is_identical) {
            search->best = less;
            search->best_result = result;
        }
    }
}

/* ---- telling */

static void add_setting(frag_inferred *inferred, const char *key, const char *value)
{
    size_t used = strlen(inferred->settings);
    snprintf(inferred->settings + used, sizeof inferred->settings - used, "%s%s=%s",
             used > 0 ? "," : "", key, value);
}

static void tell(const inference *search, uint64_t capacity, frag_inferred *inferred)
{
    const guess *best = &search->best;
    for (uint32_t i = 0; i < DIMENSIONS; i++)
        if (best->texts[i][0] != '\0')
            add_setting(inferred, keys[i], best->texts[i]);
    if (best->texts[MAX_SPLIT][0] != '\0')
        inferred->split = frag_pytorch_met_split(&search->best_result.met);
    if (best->texts[SLACK][0] != '\0')
        inferred->slack = frag_pytorch_met_slack(&search->best_result.met);
    if (capacity == FRAG_UNLIMITED)
        inferred->capacity_bytes = best->capacity_bytes;
    limits found = {0};
    if (best->mark_bytes == FRAG_UNLIMITED || !find_limits(search, best, &found))
        return;
    if (search->trace->stats.op_counts[FRAG_OP_LIMIT] < 2) {
        inferred->mark = frag_pytorch_met_mark(&search->best_result.met);
        inferred->limit_bytes = found.limit_bytes;
    }
    inferred->capacity_bytes = found.capacity_bytes;
    if (search->given.gc_threshold <= 0) {
        char text[32];
        snprintf(text, sizeof text, "%.6g", found.threshold);
        add_setting(inferred, "garbage_collection_threshold", text);
    }
}

static void tell_tried(const inference *search, frag_inferred *inferred)
{
    size_t used = 0;
    for (uint32_t i = 0; i < DIMENSIONS; i++)
        if (search->is_free[i])
            used += (size_t)snprintf(inferred->tried + used, sizeof inferred->tried - used, "%s%s",
                                     used > 0 ? ", " : "", keys[i]);
    if (search->is_mark_free)
        snprintf(inferred->tried + used, sizeof inferred->tried - used, "%s%s",
                 used > 0 ? ", " : "",
                 search->given.gc_threshold > 0 ? "memory limit" : "garbage_collection_threshold");
    if (search->is_capacity_free)
        snprintf(inferred->tried + strlen(inferred->tried),
                 sizeof inferred->tried - strlen(inferred->tried), "%scapacity",
                 inferred->tried[0] != '\0' ? ", " : "");
    inferred->replays = inferred->tried[0] != '\0' ? search->replays : 0;
    inferred->event = search->best_reach;
}

#define EVENTS_LEAST ((uint64_t)15000000)
#define REPLAYS_LEAST 32u

bool frag_verify_infer(const frag_recording *recording, const frag_trace *trace,
                       const frag_policy_spec *spec, uint64_t capacity_bytes,
                       frag_verify_result *result, frag_inferred *inferred)
{
    const frag_inferred_interval none = {FRAG_UNLIMITED, FRAG_UNLIMITED};
    const char *hint = frag_recording_get(recording, "torch.version_hint");
    inference search = {.recording = recording, .trace = trace, .spec = spec};
    *inferred = (frag_inferred){.capacity_bytes = FRAG_UNLIMITED,
                                .limit_bytes = FRAG_UNLIMITED,
                                .mark = none,
                                .split = none,
                                .slack = none};
    if (strcmp(spec->ops->name, "pytorch") != 0 ||
        !frag_pytorch_settings_create(&search.given, spec->values, hint != NULL ? hint : "", NULL))
        return false;
    search.unit = frag_evidence_unit(trace);
    search.limit_ratio = frag_evidence_limit_ratio(trace);
    search.events_left = trace->event_count * REPLAYS_LEAST;
    if (search.events_left < EVENTS_LEAST)
        search.events_left = EVENTS_LEAST;
    search.best = (guess){.mark_bytes = FRAG_UNLIMITED, .capacity_bytes = capacity_bytes};
    search.best_reach = result->first.event;
    search.best_result = *result;
    see_what_is_free(&search, capacity_bytes);
    guess plain = search.best;
    guess seen = first_guess(&search, capacity_bytes);
    climb(&search, &seen);
    if (memcmp(&plain, &seen, sizeof plain) != 0)
        climb(&search, &plain);
    tell_tried(&search, inferred);
    if (!search.best_result.is_identical) {
        if (search.best_reach > result->first.event)
            tell(&search, capacity_bytes, inferred);
        return false;
    }
    simplify(&search);
    tell(&search, capacity_bytes, inferred);
    *result = search.best_result;
    return true;
}
