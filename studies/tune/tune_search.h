/* Search for the best point of a grid: of every axis one value, the first of which is its default.
 *
 * The starting points come first. From each of them, best first, every axis in turn takes the value
 * that is best while the others stay, until no axis improves (coordinate descent); then the same
 * from drawn points, in turn far ones and neighbours of the best, until the tries are used up. A
 * point is tried once. The outcome is a function of the setup. */
#ifndef FRAG_TUNE_TUNE_SEARCH_H
#define FRAG_TUNE_TUNE_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAG_TUNE_AXES_MAX 24u
#define FRAG_TUNE_VALUES_MAX 32u /* of one axis */

/* How good a point is; the first member that differs decides, and less is better in each. */
typedef struct frag_tune_score {
    bool is_refused;     /* no setting at all */
    uint32_t failed;     /* traces that ran out of memory */
    double unreached;    /* of those, the shares of events left, added up */
    double size;         /* bytes over the peak requested, mean of the traces that did not */
    uint64_t calls;      /* of the device; after the number of axes that differ from the default */
    double time_ns;      /* of these calls, where it is modelled; decides nothing */
    double over_packing; /* bytes over the packing, mean as of size; decides nothing */
    bool is_given_up;    /* of size only a bound is known: it is over what was of use */
} frag_tune_score;

typedef struct frag_tune_point {
    uint8_t choices[FRAG_TUNE_AXES_MAX]; /* index of each axis's value; 0: default */
    uint32_t changed;                    /* axes that are not 0 */
    /* A larger size is of no use: it is better neither than the point that the search stands at nor
     * than any with as few axes changed. The score may then say so, and no more (is_given_up). */
    double size_of_use;
    frag_tune_score score;
} frag_tune_point;

typedef struct frag_tune_search_setup {
    const uint32_t *value_counts; /* of each axis, 1 to FRAG_TUNE_VALUES_MAX */
    uint32_t axis_count;
    const frag_tune_point *starts; /* choices alone; the default point is tried before them */
    size_t start_count;
    uint64_t seed;
    size_t tries_max; /* 1 or more */
    /* Fills the scores of count points and returns how many it has filled, from the first on; fewer
     * than count end the search, and the others do not count as tried. */
    size_t (*score)(void *context, frag_tune_point *points, size_t count);
    void *context;
} frag_tune_search_setup;

typedef struct frag_tune_found {
    frag_tune_point *points; /* in order of trial; [0] is the default; the caller frees */
    size_t count;            /* 0: score returned 0 at once */
    size_t best;
} frag_tune_found;

/* Below 0: left is better; equal scores: fewer axes changed, then fewer calls. */
int frag_tune_compare(const frag_tune_point *left, const frag_tune_point *right);

void frag_tune_search(const frag_tune_search_setup *setup, frag_tune_found *found);

/* The best point with at most so many axes changed. */
size_t frag_tune_best_within(const frag_tune_found *found, uint32_t changed_max);

#endif
