/* Who asks for memory and who holds it, by groups of requests. Two such lists are compared name by
 * name. */
#ifndef FRAG_DIFF_SITE_USES_H
#define FRAG_DIFF_SITE_USES_H

#include "studies/diff/use_groups.h"

typedef struct frag_site_use {
    char *caller; /* as of frag_use_name */
    char *inner;
    bool has_place;         /* as of frag_use_name */
    uint64_t live_bytes;    /* requested bytes held at the moment of the range */
    uint64_t live_count;    /* of blocks */
    uint64_t most_bytes;    /* that it ever holds at one time in the range */
    uint64_t request_count; /* in the range; failed ones do not count */
    uint64_t request_bytes;
    uint64_t freed_count;    /* of those, how many are freed in the range */
    uint64_t lifetime_total; /* of the freed ones together, in events */
    uint32_t line;           /* by site: of caller, the one of the stack that holds the most at the
                                moment; 0: it holds nothing, or no line is recorded */
} frag_site_use;

typedef struct frag_site_uses {
    frag_site_use *items; /* by caller, then inner */
    size_t count;
} frag_site_uses;

/* Events first to end - 1; the moment is the end of one of them. */
typedef struct frag_use_range {
    uint64_t first;
    uint64_t end;
    uint64_t moment;
} frag_use_range;

/* The caller destroys uses. */
void frag_site_uses_collect(const frag_recording *recording, const frag_trace *trace,
                            frag_use_grouping grouping, frag_use_range range, frag_site_uses *uses);
void frag_site_uses_destroy(frag_site_uses *uses);

/* After names were changed, none into one that is there: by caller, then inner again. Not empty. */
void frag_site_uses_sort(frag_site_uses *uses);

/* A group in both lists (a use of zeros where one does not have it), or with inner NULL a caller
 * with all of its inner ones. The names are those of the lists. */
typedef struct frag_site_change {
    const char *caller;
    const char *inner;
    bool has_place;
    bool is_against;      /* when sorted: it moved against the changes that it was sorted with */
    bool is_behind;       /* when sorted: it stands behind all that are not */
    frag_site_use before; /* without names */
    frag_site_use after;
} frag_site_change;

/* Callers whose live bytes differ, with the line of the first of their groups, each followed by its
 * groups that differ, in the order of frag_site_changes_sort; both lists outlive the changes. The
 * caller frees *changes. Returns how many. */
size_t frag_site_uses_compare(const frag_site_uses *before, const frag_site_uses *after,
                              frag_site_change **changes);

/* As before, of the most that each group ever holds, where it holds it: live_bytes are these, added
 * up for a caller, live_count the requests. */
size_t frag_site_uses_compare_most(const frag_site_uses *before, const frag_site_uses *after,
                                   frag_site_change **changes);

/* All groups of both lists, in order of their names. The caller frees *pairs. Returns how many. */
size_t frag_site_uses_pair(const frag_site_uses *before, const frag_site_uses *after,
                           frag_site_change **pairs);

/* Those with a place first (last, where together they move against the whole and are less than
 * half of the others), of these and of the others the largest change of live bytes first. Of
 * equal ones, what goes the way of all together first (what shrank, if they come to nothing), then
 * by name. */
void frag_site_changes_sort(frag_site_change *changes, size_t count);

/* The event of a range, first to end - 1, after which most is live, the first of equals: with sizes
 * as requested, or rounded as PyTorch rounds them. */
uint64_t frag_uses_peak_event(const frag_trace *trace, uint64_t first, uint64_t end,
                              bool is_rounded);

#endif
