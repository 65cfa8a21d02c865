/* What a process of a dry run left beside its recording: the facts of gpu_replay/dryrun's Python
 * half (PID.json) and the report of the software CUDA (PID.report). */
#ifndef FRAG_DRYRUN_DRYRUN_FACTS_H
#define FRAG_DRYRUN_DRYRUN_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/file.h"

enum { FRAG_DRYRUN_DEVICES_MAX = 8 };

/* A point in the run: how many requests each device had served. */
typedef struct frag_dryrun_mark {
    char name[32]; /* "load", "step 1" */
    uint64_t requests[FRAG_DRYRUN_DEVICES_MAX];
} frag_dryrun_mark;

/* A size that NVIDIA's library decides. */
typedef struct frag_dryrun_uncertain {
    char *function;
    char *what;
    uint64_t low_bytes;
    uint64_t high_bytes;
    uint64_t answered_bytes;
    uint64_t count;
} frag_dryrun_uncertain;

/* Anything else to know: a function without a meaning, a value that was read, a line of the script
 * that decides by one, a note. */
typedef struct frag_dryrun_note {
    char kind[16]; /* "unknown", "value", "decision", "note" */
    char *text;
    uint64_t count;
} frag_dryrun_note;

/* A place where a mask selects elements, and only a GPU would know how many: as many were taken as
 * --selected says. */
typedef struct frag_dryrun_selection {
    char *where;       /* "train.py:15" */
    uint64_t elements; /* of the largest such mask */
    uint64_t count;
} frag_dryrun_selection;

typedef struct frag_dryrun_facts {
    uint64_t pid;
    uint64_t rank; /* UINT64_MAX: none */
    char *release; /* "2.9.1+cu128" */
    char *ended_by;
    char *exception;    /* NULL: it ended without one */
    char *oom_text;     /* of the exception that ended it; NULL */
    char *no_recording; /* why there is none; NULL */
    uint64_t steps;
    uint64_t oom_count;
    uint64_t limit_bytes; /* of PyTorch's memory, set by the script; UINT64_MAX: none */
    uint64_t used_bytes_max[FRAG_DRYRUN_DEVICES_MAX]; /* of the device, with its context */
    uint64_t cards[FRAG_DRYRUN_DEVICES_MAX];          /* of the machine, by device */
    /* The most that all processes on the card held; 0: no other process did. */
    uint64_t card_bytes_max[FRAG_DRYRUN_DEVICES_MAX];
    /* What others held of it when the last request was refused. */
    uint64_t refused_others_bytes[FRAG_DRYRUN_DEVICES_MAX];
    frag_dryrun_mark *marks;
    size_t mark_count;
    frag_dryrun_uncertain *uncertain;
    size_t uncertain_count;
    uint64_t selected_percent; /* of the elements below, as --selected says */
    frag_dryrun_selection *selections;
    size_t selection_count;
    frag_dryrun_note *notes;
    size_t note_count;
} frag_dryrun_facts;

/* report may not be there. The caller destroys the facts. */
bool frag_dryrun_facts_read(const char *path, const char *report, frag_dryrun_facts *facts,
                            frag_error *error);
/* The same from open inputs; report NULL: there is none. They stay open. */
bool frag_dryrun_facts_read_inputs(frag_input *input, frag_input *report, frag_dryrun_facts *facts,
                                   frag_error *error);
void frag_dryrun_facts_destroy(frag_dryrun_facts *facts);

/* The mark of that name; NULL: it was not reached. */
const frag_dryrun_mark *frag_dryrun_find_mark(const frag_dryrun_facts *facts, const char *name);

#endif
