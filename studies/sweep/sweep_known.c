#include "studies/sweep/sweep_known.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/threads.h"
#include "base/memory.h"
#include "sim/policy_engine.h"

/* Looking through all of them must stay far cheaper than a run. */
#define KEPT_MAX 4096

typedef struct known_run {
    frag_sweep_key key;
    uint64_t capacity_bytes; /* that it was made on */
    /* Capacities with the same result; empty if unknown. */
    uint64_t least_bytes;
    uint64_t over_bytes;
    frag_run_result *result;
} known_run;

struct frag_sweep_known {
    const frag_recording *recording;
    uint64_t *sizes; /* of the requests, ascending, each once */
    size_t size_count;
    frag_repeats repeats;
    frag_lock *lock;
    known_run *runs; /* a ring */
    size_t count;    /* that were ever added */
};

static void collect_sizes(frag_sweep_known *known, const frag_trace *trace)
{
    uint64_t *sizes = frag_alloc(trace->stats.op_counts[FRAG_OP_ALLOC], sizeof *sizes);
    size_t count = 0;
    size_t kept = 0;
    for (uint64_t i = 0; i < trace->event_count; i++)
        if (trace->events[i].op == FRAG_OP_ALLOC)
            sizes[count++] = trace->events[i].bytes;
    qsort(sizes, count, sizeof *sizes, frag_compare_numbers);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || sizes[kept - 1] != sizes[i])
            sizes[kept++] = sizes[i];
    known->sizes = sizes;
    known->size_count = kept;
}

frag_sweep_known *frag_sweep_known_create(const frag_recording *recording, const frag_trace *trace)
{
    frag_sweep_known *known = frag_alloc(1, sizeof *known);
    known->recording = recording;
    known->runs = frag_alloc(KEPT_MAX, sizeof *known->runs);
    collect_sizes(known, trace);
    frag_repeats_find(trace, &known->repeats);
    known->lock = frag_lock_create();
    return known;
}

void frag_sweep_known_destroy(frag_sweep_known *known)
{
    for (size_t i = 0; i < KEPT_MAX; i++)
        frag_free(known->runs[i].result);
    frag_lock_destroy(known->lock);
    frag_free(known->runs);
    frag_free(known->sizes);
    frag_repeats_destroy(&known->repeats);
    frag_free(known);
}

const frag_repeats *frag_sweep_known_repeats(const frag_sweep_known *known)
{
    return &known->repeats;
}

void frag_sweep_key_make(const frag_sweep_known *known, uint64_t number, const frag_policy_ops *ops,
                         const frag_option_value *values, const frag_option_value *lasting,
                         frag_sweep_key *key)
{
    *key = (frag_sweep_key){.number = number, .ops = ops, .values = lasting};
    key->has_terms = frag_policy_engine_of(ops)->repeats != NULL &&
                     frag_policy_engine_of(ops)->repeats->terms(
                         values, frag_recorded_version(known->recording), &key->terms);
}

static bool has_same_values(const frag_sweep_key *left, const frag_sweep_key *right)
{
    if (left->number == right->number)
        return true;
    if (left->values == NULL || right->values == NULL)
        return false;
    for (size_t i = 0; left->ops->options[i].key != NULL; i++) {
        const frag_option_value *a = &left->values[i];
        const frag_option_value *b = &right->values[i];
        /* Number and ratio are what the text says. */
        if (a->is_given != b->is_given || strcmp(a->text, b->text) != 0)
            return false;
    }
    return true;
}

/* After an OOM the row also has the free bytes, which differ for every capacity. */
static bool is_same_elsewhere(const frag_run_result *result)
{
    return !result->is_capacity_read && result->replay.failed_requests == 0;
}

void frag_sweep_known_add(frag_sweep_known *known, const frag_sweep_key *key,
                          uint64_t capacity_bytes, const frag_run_result *result)
{
    bool is_same = is_same_elsewhere(result);
    frag_lock_take(known->lock);
    known_run *at = &known->runs[known->count++ % KEPT_MAX];
    frag_run_result *kept = at->result != NULL ? at->result : frag_alloc(1, sizeof *kept);
    *kept = *result;
    *at = (known_run){.key = *key,
                      .capacity_bytes = capacity_bytes,
                      .least_bytes = is_same ? result->need_max_bytes : 0,
                      .over_bytes = is_same ? result->refused_need_min_bytes : 0,
                      .result = kept};
    frag_lock_give(known->lock);
}

static bool is_repeated(const frag_sweep_known *known, const known_run *at,
                        const frag_sweep_key *key, uint64_t capacity_bytes)
{
    if (at->key.ops != key->ops ||
        (at->capacity_bytes != capacity_bytes &&
         (capacity_bytes < at->least_bytes || capacity_bytes >= at->over_bytes)))
        return false;
    frag_policy_pair pair = {.terms = &at->key.terms,
                             .met = &at->result->met,
                             .other = &key->terms,
                             .capacity_bytes = capacity_bytes,
                             .sizes = known->sizes,
                             .size_count = known->size_count};
    return has_same_values(&at->key, key) ||
           (at->key.has_terms && key->has_terms &&
            frag_policy_engine_of(key->ops)->repeats->proves(&pair));
}

bool frag_sweep_known_find(frag_sweep_known *known, const frag_sweep_key *key,
                           uint64_t capacity_bytes, frag_run_result *result)
{
    bool is_found = false;
    frag_lock_take(known->lock);
    size_t kept = known->count < KEPT_MAX ? known->count : KEPT_MAX;
    /* The nearest relatives were run last. */
    for (size_t i = 1; i <= kept && !is_found; i++) {
        const known_run *at = &known->runs[(known->count - i) % KEPT_MAX];
        is_found = is_repeated(known, at, key, capacity_bytes);
        if (is_found)
            *result = *at->result;
    }
    frag_lock_give(known->lock);
    return is_found;
}
