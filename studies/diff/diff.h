/* What differs between two recordings of one program, or two moments of one recording: who holds
 * the memory, the requests, and what an allocator makes of them. */
#ifndef FRAG_DIFF_DIFF_H
#define FRAG_DIFF_DIFF_H

#include "sim/run.h"
#include "studies/compare/comparison_wishes.h"
#include "studies/diff/site_uses.h"
#include "studies/policy_settings.h"

typedef struct frag_diff_source {
    const frag_recording *recording; /* with call sites */
    const frag_trace *trace;         /* one of the recording's */
    /* What is looked at: "peak" (NULL): the peak of requested bytes; "end"; "N": right after that
     * event; the peak in the events "A..B", of the mark "NAME", or from the N-th mark of a name,
     * "NAME[N]", up to the next. */
    const char *at;
} frag_diff_source;

typedef struct frag_diff_options {
    const frag_context *context;
    frag_use_grouping grouping; /* where a recording has no stacks, it is by size instead */
    bool is_replayed;
    const frag_policy_spec *spec;   /* what with; NULL: pytorch, with the settings of the recording
                                       where it holds some */
    const frag_device_spec *device; /* of the replays */
} frag_diff_options;

typedef struct frag_diff_side {
    frag_diff_source source;
    frag_use_range range;
    uint64_t requested_bytes; /* live at the moment of the range */
    uint64_t request_count;   /* in the range, those that failed too */
    frag_site_uses uses;
    char *policy;        /* what it was replayed with; NULL: nothing */
    frag_run_result run; /* of the whole trace */
} frag_diff_side;

typedef struct frag_diff {
    frag_diff_side sides[2];
    frag_use_grouping grouping;
    bool is_without_stacks; /* grouped by size, though something else was asked for */
    char *files[2];         /* of one program, which are compared as one file; NULL: none */
    bool is_one_trace;      /* two moments of one trace: one replay tells nothing of them */
    /* Requests of both ranges, one by one, by size and stream. */
    uint64_t same_requests; /* before the first that differs */
    bool has_parting;
    uint64_t part_events[2]; /* of the first that differs; FRAG_UNLIMITED: that side has no more */
} frag_diff;

/* false: a place that is not there, a policy that does not fit, a cancelled context (then the
 * context says so). The caller destroys, either way; the sources outlive the diff. */
bool frag_diff_make(const frag_diff_options *options, const frag_diff_source sources[2],
                    frag_diff *diff, frag_error *error);
void frag_diff_destroy(frag_diff *diff);

/* The figures of the two sides that can be findings, in order: requested bytes at the moment, and
 * with replays the peaks of allocated and reserved bytes. */
enum { FRAG_DIFF_FIGURES = 3 };
typedef struct frag_diff_figure {
    const char *name; /* as a path in JSON: "requested_bytes", "peak.allocated_bytes" */
    const char *title;
    bool is_known;
    uint64_t values[2];
} frag_diff_figure;
void frag_diff_figures(const frag_diff *diff, frag_diff_figure figures[FRAG_DIFF_FIGURES]);

/* Did a known figure grow by more than the threshold allows? */
bool frag_diff_has_finding(const frag_diff *diff, const frag_threshold *allowed);

#endif
