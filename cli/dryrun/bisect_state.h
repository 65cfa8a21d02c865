/* One call of `fraglab bisect`: what its files share. */
#ifndef FRAG_DRYRUN_BISECT_STATE_H
#define FRAG_DRYRUN_BISECT_STATE_H

#include "cli/dryrun/dryrun_state.h"
#include "studies/diff/site_uses.h"

typedef enum frag_bisect_state {
    FRAG_BISECT_UNTRIED,
    FRAG_BISECT_RUN,
    FRAG_BISECT_FAILED /* says nothing of memory */
} frag_bisect_state;

typedef struct frag_bisect_release {
    char *name;           /* "2.9.1" */
    char *environment;    /* its folder */
    bool is_made;         /* it is there */
    uint64_t wheel_bytes; /* FRAG_UNLIMITED: not known, or nothing to fetch */
    frag_bisect_state state;
    frag_level peak;
    frag_site_uses sites; /* where the peak that is asked for was */
    char failure[256];
} frag_bisect_release;

typedef enum frag_bisect_by {
    FRAG_BISECT_BY_RESERVED,
    FRAG_BISECT_BY_ALLOCATED,
    FRAG_BISECT_BY_REQUESTED
} frag_bisect_by;

typedef struct frag_bisect {
    const frag_arguments *arguments;
    const frag_context *context;
    char **command;
    char *package; /* "torch" */
    char *first;   /* of the range as it was typed */
    char *last;
    frag_bisect_release *releases; /* in order */
    size_t count;
    char *folder; /* of the environments */
    frag_bisect_by by;
    double above; /* percent that a peak may differ by and count as the same */
    size_t low;   /* the last known to be as at the begin */
    size_t high;  /* the first known to differ */
    bool is_json;
    size_t runs;
} frag_bisect;

/* ---- bisect_releases.c */
/* --torch A..B, or --package NAME==A..B. */
bool frag_bisect_read_range(frag_bisect *bisect, frag_error *error);
/* Those of the range that can be had: in --environments, else at the index. At least two, or an
 * error. */
bool frag_bisect_find_releases(frag_bisect *bisect, frag_error *error);
/* Makes the environment of a release, unless it is there. */
bool frag_bisect_make(frag_bisect *bisect, frag_bisect_release *release, frag_error *error);
/* The one of that name; false: an error that names what there is. */
bool frag_bisect_find(const frag_bisect *bisect, const char *name, size_t *index,
                      frag_error *error);

/* ---- bisect_run.c */
/* Runs the command with a release. A run that says nothing of memory leaves its reason in the
 * release; false: nothing can be run, or it was interrupted (error without a code). */
bool frag_bisect_try(frag_bisect *bisect, frag_bisect_release *release, frag_error *error);
uint64_t frag_bisect_peak(const frag_bisect *bisect, const frag_bisect_release *release);
bool frag_bisect_differs(const frag_bisect *bisect, const frag_bisect_release *one,
                         const frag_bisect_release *other);

/* ---- bisect_print.c */
void frag_bisect_print_plan(const frag_bisect *bisect, FILE *stream);
void frag_bisect_print_step(const frag_bisect *bisect, const frag_bisect_release *release);
/* found NULL: the peak is the same at both ends. Between the two lie releases that did not run. */
void frag_bisect_print_end(const frag_bisect *bisect, const frag_bisect_release *before,
                           const frag_bisect_release *found);

#endif
