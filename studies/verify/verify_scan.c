#include "studies/verify/verify_scan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/pytorch/pytorch_met.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "studies/verify/verify_evidence.h"

static void try_text(frag_guessing *search, const frag_guess *base, frag_guess_key which,
                     const char *text)
{
    frag_guess tried = *base;
    frag_verify_result result;
    if (!search->is_free[which] || strcmp(base->texts[which], text) == 0)
        return;
    snprintf(tried.texts[which], sizeof tried.texts[which], "%s", text);
    frag_guess_try(search, &tried, &result);
}

static void try_number(frag_guessing *search, const frag_guess *base, frag_guess_key which,
                       uint64_t number)
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
static void scan_versions(frag_guessing *search, const frag_guess *base)
{
    uint32_t least = minor_of(search->recording, "torch.version_min", 0);
    uint32_t minor = minor_of(search->recording, "torch.version_max", MINOR_NEWEST);
    minor = minor < MINOR_NEWEST ? minor : MINOR_NEWEST;
    for (uint32_t i = minor + 1; i > least; i--) {
        char text[16];
        snprintf(text, sizeof text, "2.%" PRIu32, i - 1);
        try_text(search, base, FRAG_GUESS_VERSION, text);
    }
}

/* Every octave in every other way that its sizes do not contradict. */
static void scan_divisions(frag_guessing *search, const frag_guess *base)
{
    for (uint32_t i = 0; i < FRAG_ROUNDING_OCTAVES && search->is_free[FRAG_GUESS_DIVISIONS]; i++)
        for (uint32_t way = 0; way < FRAG_ROUNDING_WAYS; way++) {
            frag_guess tried = *base;
            frag_verify_result result;
            frag_rounding changed = base->rounding;
            bool is_possible = (changed.possible[i] >> way & 1) != 0 && changed.ways[i] != way;
            changed.ways[i] = way;
            if (!is_possible ||
                frag_rounding_is_old(&changed) != frag_rounding_is_old(&base->rounding))
                continue;
            frag_guess_set_rounding(&tried, &changed);
            frag_guess_try(search, &tried, &result);
        }
}

static void scan_segment_sizes(frag_guessing *search, const frag_guess *base)
{
    uint64_t sizes[FRAG_EVIDENCE_SIZES_MAX];
    uint32_t count = frag_evidence_segment_sizes(search->trace, sizes);
    for (uint32_t i = 0; i < count; i++)
        try_number(search, base, FRAG_GUESS_LARGE_SEGMENT, sizes[i]);
}

/* The capacity whose share a range of that size is; 0: beyond all memory. */
static uint64_t capacity_of_range(const frag_pytorch_settings *given, uint64_t distance)
{
    double capacity = given->reserve_ratio > 0 ? (double)distance / given->reserve_ratio : 0;
    if (given->reserve_ratio > 0)
        return capacity < (double)FRAG_GUESS_LARGEST ? (uint64_t)capacity : 0;
    return distance / 9 * 8;
}

static void scan_capacities(frag_guessing *search, const frag_guess *base)
{
    uint64_t distance = frag_evidence_range_distance(search->trace);
    const uint64_t capacities[] = {frag_evidence_capacity(search->trace),
                                   capacity_of_range(&search->given, distance)};
    for (size_t i = 0; i < sizeof capacities / sizeof capacities[0]; i++) {
        frag_guess tried = *base;
        frag_verify_result result;
        tried.capacity_bytes = capacities[i];
        if (search->is_capacity_free && base->capacity_bytes == FRAG_UNLIMITED && capacities[i] > 0)
            frag_guess_try(search, &tried, &result);
    }
}

/* ---- values that can be any: of two that no comparison of a run lies between, one is enough */

enum { KNOWN_MAX = 2048 };

/* A value that was tried, and what it stands for. */
typedef struct known_value {
    uint64_t mib;
    frag_pytorch_interval all;
    uint64_t reach; /* the event at which it differs */
    bool has_slack; /* the surplus of oversize blocks mattered, or may have */
} known_value;

typedef struct known_values {
    known_value items[KNOWN_MAX];
    uint32_t count;
} known_values;

static const frag_pytorch_interval *find_known(const known_values *known, uint64_t bytes)
{
    for (uint32_t i = 0; i < known->count; i++)
        if (bytes >= known->items[i].all.least && bytes <= known->items[i].all.most)
            return &known->items[i].all;
    return NULL;
}

/* A block or request of this size there was, perhaps. */
static uint64_t largest_bytes(const frag_guessing *search)
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

static void try_size(frag_guessing *search, const frag_guess *base, frag_guess_key which,
                     uint64_t mib, known_values *known)
{
    frag_guess tried = *base;
    frag_verify_result result;
    if (find_known(known, mib * FRAG_MIB) != NULL || known->count == KNOWN_MAX)
        return;
    snprintf(tried.texts[which], sizeof tried.texts[which], "%" PRIu64, mib);
    if (!frag_guess_try(search, &tried, &result))
        return;
    frag_pytorch_interval slack = frag_pytorch_met_slack(&result.met);
    known->items[known->count++] = (known_value){
        .mib = mib,
        .all = which == FRAG_GUESS_SLACK ? slack : frag_pytorch_met_split(&result.met),
        .reach = result.first.event,
        .has_slack = slack.most != FRAG_UNLIMITED || slack.least > 1,
    };
}

/* Sizes in MiB: those that guides name, then all. */
static void scan_sizes(frag_guessing *search, const frag_guess *base, frag_guess_key which,
                       known_values *known)
{
    static const uint64_t usual[] = {128, 256, 512, 64, 32, 1024, 100, 200, 500, 50, 40, 2048};
    enum { SIZES_MAX = 1 << 16 };
    known->count = 0;
    if (!search->is_free[which])
        return;
    uint64_t most = largest_bytes(search) / FRAG_MIB + 1;
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        try_size(search, base, which, usual[i], known);
    uint64_t mib = most < SIZES_MAX ? most : SIZES_MAX;
    while (mib >= 20 && !frag_guessing_is_over(search)) {
        try_size(search, base, which, mib, known);
        const frag_pytorch_interval *all = find_known(known, mib * FRAG_MIB);
        mib = all != NULL && all->least > 0 ? (all->least - 1) / FRAG_MIB : mib - 1;
    }
}

/* Marks from all that was ever held downwards. A lower one makes collection begin earlier; once it
 * has long begun too early no lower one is tried. */
static void scan_marks(frag_guessing *search, const frag_guess *base)
{
    enum { WORSE_MAX = 48 };
    if (!search->is_mark_free || search->trace->stats.op_counts[FRAG_OP_LIMIT] > 1)
        return;
    uint64_t half = search->unit > 1 ? search->unit / 2 : 1;
    frag_guess tried = *base;
    tried.mark_bytes = search->trace->stats.observed_reserved_peak_bytes;
    uint64_t before = search->best_reach;
    uint32_t worse = 0;
    frag_verify_result result;
    while (worse < WORSE_MAX && frag_guess_try(search, &tried, &result)) {
        uint64_t least = frag_pytorch_met_mark(&result.met).least;
        worse = result.first.event < before ? worse + 1 : 0;
        if (least <= half)
            break;
        tried.mark_bytes = least - half;
    }
}

static int compare_reach(const void *left, const void *right)
{
    const known_value *a = left, *b = right;
    int order = (a->reach < b->reach) - (a->reach > b->reach);
    return order != 0 ? order : (a->mib > b->mib) - (a->mib < b->mib);
}

/* The split limit; and with each the surplus of oversize blocks, with the best ones garbage
 * collection: which of them is wrong does not show where a run differs. */
static void scan_splits(frag_guessing *search, const frag_guess *base)
{
    enum { BEST = 8 };
    known_values *known = frag_alloc(2, sizeof *known);
    scan_sizes(search, base, FRAG_GUESS_MAX_SPLIT, &known[0]);
    qsort(known[0].items, known[0].count, sizeof known[0].items[0], compare_reach);
    for (uint32_t i = 0; i < known[0].count && !frag_guessing_is_over(search); i++) {
        frag_guess tried = *base;
        snprintf(tried.texts[FRAG_GUESS_MAX_SPLIT], sizeof tried.texts[0], "%" PRIu64,
                 known[0].items[i].mib);
        if (known[0].items[i].has_slack)
            scan_sizes(search, &tried, FRAG_GUESS_SLACK, &known[1]);
        if (i < BEST)
            scan_marks(search, &tried);
    }
    if (base->texts[FRAG_GUESS_MAX_SPLIT][0] != '\0' ||
        search->given.max_split_bytes != FRAG_UNLIMITED)
        scan_sizes(search, base, FRAG_GUESS_SLACK, &known[1]);
    frag_free(known);
}

/* Of expandable segments a limit is asked for another size than the device is. It was at least
 * what was ever held, and some request was over it. */
static void scan_limits(frag_guessing *search, const frag_guess *base)
{
    if (!search->is_limit_free)
        return;
    uint64_t peak = search->trace->stats.observed_reserved_peak_bytes;
    frag_guess tried = *base;
    frag_verify_result result;
    tried.limit_bytes = FRAG_GUESS_CAPACITY - 1;
    while (tried.limit_bytes >= peak && frag_guess_try(search, &tried, &result)) {
        uint64_t least = frag_pytorch_met_limit(&result.met).least;
        if (least == 0)
            break;
        tried.limit_bytes = least - 1;
    }
}

/* Where the program changes its limit the mark changes with it, and the threshold alone stays. */
static void scan_thresholds(frag_guessing *search, const frag_guess *base)
{
    /* In hundredths: the one that guides name, tenths, then between them. */
    static const double shares[] = {80, 90, 70, 60, 50, 40, 30, 20, 10, 95, 85, 75, 65, 55};
    frag_guess tried = *base;
    frag_verify_result result;
    if (tried.capacity_bytes == FRAG_UNLIMITED)
        tried.capacity_bytes = frag_evidence_capacity(search->trace);
    if (!search->is_mark_free || search->trace->stats.op_counts[FRAG_OP_LIMIT] < 2 ||
        tried.capacity_bytes == 0 || search->given.gc_threshold > 0)
        return;
    double limit = search->limit_ratio * (double)tried.capacity_bytes;
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        tried.mark_bytes = (uint64_t)(limit * shares[i] / 100) + 1;
        frag_guess_try(search, &tried, &result);
    }
}

void frag_guess_scan(frag_guessing *search, const frag_guess *base)
{
    scan_capacities(search, base);
    scan_versions(search, base);
    scan_segment_sizes(search, base);
    scan_marks(search, base);
    scan_limits(search, base);
    scan_thresholds(search, base);
    scan_splits(search, base);
    scan_divisions(search, base);
}
