/* The ranks of one job side by side: which needs most, how uneven they are, which runs out of
 * memory first, and what differs between ranks that are to be alike. */
#ifndef FRAG_RANKS_WORLD_H
#define FRAG_RANKS_WORLD_H

#include "studies/compare/comparison.h"
#include "studies/ranks/rank_numbers.h"
#include "studies/ranks/world_rank.h"

enum { FRAG_WORLD_FIGURES = 3 };

/* A figure over the ranks of a stage. */
typedef struct frag_world_figure {
    const char *name; /* as a path in JSON: "requested_bytes", "peak.reserved_bytes" */
    const char *title;
    uint64_t least;
    uint64_t most;
    size_t least_rank; /* an index into the ranks; of equal ones the lowest number */
    size_t most_rank;
    double mean;
} frag_world_figure;

/* By how much the most is above the mean: 0.1 is 10 %. */
double frag_world_imbalance(const frag_world_figure *figure);

/* Ranks that are to be alike, as those of one pipeline stage. */
typedef struct frag_world_stage {
    size_t *ranks; /* indexes, by number */
    size_t count;
    frag_world_figure figures[FRAG_WORLD_FIGURES];
    /* From the rank with the lowest peak of requested bytes to that with the highest: who holds
     * more, as of frag_site_uses_compare. */
    frag_site_change *changes;
    size_t change_count;
} frag_world_stage;

typedef struct frag_world {
    frag_world_rank *ranks; /* by number; owned by the caller */
    size_t count;
    size_t *alike; /* of each rank the first one with the same requests, replayed with the same
                      policy; itself where there is none before it */
    frag_world_stage *stages;
    size_t stage_count;
    size_t oom_count;
    size_t first_oom;    /* the rank that runs out of memory first, where oom_count > 0 */
    bool is_oom_by_step; /* false: they are told apart by how much of the recording was replayed */
} frag_world;

/* Sorts the ranks by number. stages: of the numbers; ranks in none are a stage of their own, all of
 * them where stage_count is 0. false: FRAG_E_USAGE, a number twice, or a stage names a rank that is
 * not there or in another stage. The caller destroys the world, either way, before the ranks. */
bool frag_world_make(frag_world_rank *ranks, size_t count, const frag_rank_list *stages,
                     size_t stage_count, frag_world *world, frag_error *error);
void frag_world_destroy(frag_world *world);

/* Is step N of one rank step N of the other? So it is where both begin at the same marks, or where
 * about as many were found in both. */
bool frag_world_steps_compare(const frag_world_rank *a, const frag_world_rank *b);

/* One of the policies that were tried, on all ranks. */
typedef struct frag_world_try {
    size_t run_count;        /* ranks whose release does not refuse it */
    size_t failed_count;     /* ranks that run out of memory with it, or whose release refuses it */
    size_t rank;             /* the first of those, else the one that reserves most */
    uint64_t reserved_bytes; /* the most of a rank */
    uint64_t device_calls;   /* of all ranks */
} frag_world_try;
frag_world_try frag_world_try_of(const frag_world *world, size_t index);

/* Of those with which no rank fails, the one that reserves least on its largest rank, then with the
 * fewest calls; count: there is none. */
size_t frag_world_best_try(const frag_world *world, size_t count);

/* Makes the list of what is tried: the settings of explain, and the caller's own (NULL: none). */
bool frag_world_list_tries(const frag_policy_list *own, frag_policy_list *list, frag_error *error);

/* The least that a device of one of the ranks is known to have had where memory ran out;
 * FRAG_UNLIMITED: none did. */
uint64_t frag_world_recorded_capacity(const frag_world_rank *ranks, size_t count);

/* Adds "0-3,8": the numbers of a rank, the first of its kind, and of all that request the same. */
void frag_world_add_alike(frag_text *text, const frag_world *world, size_t first);

/* Does the highest peak of a stage exceed the lowest by more than the threshold allows? */
bool frag_world_is_uneven(const frag_world *world, const frag_threshold *allowed);

#endif
