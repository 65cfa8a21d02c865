/* What the engine and searches can use of a policy beyond its first table (policy.h): plans made of
 * a whole trace, proofs that runs are equal, statistics of a framework, a loop of its own. All of
 * it is optional. A change here is a change of FRAG_POLICY_ABI, too. */
#ifndef FRAG_SIM_POLICY_ENGINE_H
#define FRAG_SIM_POLICY_ENGINE_H

#include "sim/policy.h"

/* ---- plans: what a policy makes of a whole trace before it is run */

/* From when to when one request holds memory, in order of the policy's alloc calls. */
typedef struct frag_lifetime {
    /* Held in [lower, upper): a release at a time comes before requests then. A request that failed
     * when recorded has upper = lower: it is held during that event alone. */
    uint64_t lower;
    uint64_t upper;
    uint64_t bytes;     /* as requested */
    uint64_t alignment; /* that the trace asks for; 0: it does not say */
} frag_lifetime;

/* A request that failed when recorded. A packing problem has none: its buffers have alignments. */
static inline bool frag_lifetime_is_attempt(const frag_lifetime *lifetime)
{
    return lifetime->lower == lifetime->upper && lifetime->alignment == 0;
}

/* The goal of a plan, and when to stop before it is reached. */
typedef struct frag_plan_limits {
    /* A plan that fits into this memory is good enough; FRAG_UNLIMITED: use as little as possible.
     */
    uint64_t capacity_bytes;
    /* Polled now and then; true: stop with the best plan found so far. NULL: never. */
    bool (*is_stopped)(void *context);
    void *context;
} frag_plan_limits;

typedef struct frag_policy_plan_setup {
    const frag_option_value *values;
    const frag_lifetime *lifetimes;
    uint64_t lifetime_count;
    frag_plan_limits limits;
} frag_policy_plan_setup;

typedef struct frag_policy_plan_facts {
    const char *answer;   /* "optimal", "found", "infeasible", "exhausted"; "none": not planned */
    uint64_t peak_bytes;  /* of the plan */
    uint64_t bound_bytes; /* proved: no plan has a lower one */
    uint64_t load_bytes;  /* largest sum of live blocks */
} frag_policy_plan_facts;

/* Sees the whole trace before it is run. */
typedef struct frag_policy_planner {
    /* A plan that was not stopped is a function of its setup; several runs may share one. NULL:
     * FRAG_E_USAGE for an option value that does not fit, FRAG_E_INPUT for a trace that cannot be
     * planned. */
    frag_policy_plan *(*create)(const frag_policy_plan_setup *setup, frag_error *error);
    void (*facts)(const frag_policy_plan *plan, frag_policy_plan_facts *facts);
    void (*destroy)(frag_policy_plan *plan);
} frag_policy_planner;

/* ---- runs that can be skipped, because a run with other options must give the same result. Each
 * policy defines what these words hold. */

/* The effect of option values. */
typedef struct frag_policy_terms {
    uint64_t words[40];
} frag_policy_terms;

/* Facts of a run: how near it came to the limits set by the options. */
typedef struct frag_policy_met {
    uint64_t words[16];
} frag_policy_met;

/* Two runs of one trace on devices of one capacity. */
typedef struct frag_policy_pair {
    const frag_policy_terms *terms; /* of the run that was made */
    const frag_policy_met *met;
    const frag_policy_terms *other; /* of the one that was not */
    uint64_t capacity_bytes;        /* FRAG_UNLIMITED: none */
    const uint64_t *sizes;          /* of all requests of the trace, each at least once */
    size_t size_count;
} frag_policy_pair;

typedef struct frag_policy_repeats {
    /* false when the values do not fit. */
    bool (*terms)(const frag_option_value *values, const char *recorded_version,
                  frag_policy_terms *terms);
    void (*met)(const frag_policy *policy, frag_policy_met *met); /* of a run at its end */
    /* true proves that both runs make the same device calls, grants and OOM messages; false says
     * nothing. */
    bool (*proves)(const frag_policy_pair *pair);
} frag_policy_repeats;

/* ---- statistics */

/* One statistic, named as the framework names it: "reserved_bytes.all.peak". */
typedef void frag_stat_visitor(void *context, const char *name, int64_t value);

/* The framework's own statistics, in its order; kept from when `keep` was called, which is before
 * anything else. */
typedef struct frag_policy_statistics {
    void (*keep)(frag_policy *policy);
    void (*visit)(const frag_policy *policy, frag_stat_visitor *visit, void *context);
    void (*reset)(frag_policy *policy, bool resets_peaks, bool resets_sums);
} frag_policy_statistics;

/* ---- steps that repeat */

/* What a policy knows of a block or hole and its walk does not show. */
typedef struct frag_policy_memory {
    uint64_t address;
    uint64_t rank; /* which of two is larger is all that decides; new ones are larger than old */
    uint64_t time; /* by the policy's clock: since when there is the hole; of others, now */
} frag_policy_memory;

typedef void frag_memory_visitor(void *context, const frag_policy_memory *memory);

/* As long as the device is not called, times decide nothing. */
typedef struct frag_policy_memories {
    /* At most one for an address, in any order. */
    void (*visit)(const frag_policy *policy, frag_memory_visitor *visit, void *context);
    uint64_t (*clock)(const frag_policy *policy);
    /* The clock goes on by so much, and so do times from `since` on. */
    void (*pass)(frag_policy *policy, uint64_t since, uint64_t by);
} frag_policy_memories;

/* ---- small requests */

/* Of a policy that serves small requests from memory of their own, so that as long as the device is
 * not called they and the others know nothing of each other, and where the small ones lie decides
 * all that comes of further ones. */
typedef struct frag_policy_small {
    /* Changes when memory of small requests comes or goes; 0: small ones are not apart now. */
    uint64_t (*version)(const frag_policy *policy);
    bool (*is_small)(const frag_policy *policy, uint64_t bytes);
    /* As alloc, without a call of the device; false: that cannot be, and nothing has changed. */
    bool (*alloc_cached)(frag_policy *policy, const frag_request *request, frag_grant *grant);
    uint64_t (*address)(const frag_policy *policy, frag_handle handle);
} frag_policy_small;

/* ---- the table */

typedef struct frag_replay frag_replay; /* replay.h */

/* Each may be NULL. */
struct frag_policy_engine {
    const frag_policy_planner *planner;
    const frag_policy_repeats *repeats;
    const frag_policy_statistics *statistics;
    /* Of blocks that are equally right for the next request, the one at this address is to be taken
     * where there is one. For policies that model a library whose own choice follows host pointers,
     * when its log is followed. */
    void (*prefer)(frag_policy *policy, uint64_t address);
    /* The next request is to get the place at this address, the beginning of a free block of its
     * pool, whatever the policy would choose. Where there is no such block, or it is too small, the
     * request is one like any other. For policies of a library with such calls. */
    void (*place)(frag_policy *policy, uint64_t address);
    /* For policies inside fraglab: frag_replay_loop (replay_loop.h) with alloc and free of the
     * first table, so that the compiler joins all three. NULL: the engine's own loop calls them.
     * All that such a policy remembers is in its arena, so that a replay can return to a checkpoint
     * (checkpoint.h). */
    void (*replay)(frag_replay *replay, uint64_t end);
    /* Do the walk and the memories show all that decides how the policy serves allocs and frees
     * from here on, as long as it does not call the device? Then a step that ends in the state in
     * which it began changes nothing, and those that are like it need not be replayed. NULL: no. */
    bool (*shows_all)(const frag_policy *policy);
    const frag_policy_memories *memories; /* NULL: the walk shows all */
    const frag_policy_small *small;       /* NULL: they are not apart */
};

/* The table of a policy; one with nothing in it for a policy that has none. */
static inline const frag_policy_engine *frag_policy_engine_of(const frag_policy_ops *ops)
{
    static const frag_policy_engine none = {.planner = NULL};
    return ops->engine != NULL ? ops->engine : &none;
}

/* A plan that its planner has made; NULL is nothing. */
static inline void frag_policy_plan_destroy(const frag_policy_ops *ops, frag_policy_plan *plan)
{
    if (plan != NULL)
        frag_policy_engine_of(ops)->planner->destroy(plan);
}

#endif
