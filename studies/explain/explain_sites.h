/* Who holds the memory when it runs out: live blocks by call site, and the idle memory that lies
 * in their segments and cannot be given back because of them. */
#ifndef FRAG_EXPLAIN_EXPLAIN_SITES_H
#define FRAG_EXPLAIN_EXPLAIN_SITES_H

#include "sim/run.h"
#include "studies/explain/explain_purpose.h"

enum { FRAG_SITES_SHOWN = 5 };

/* Blocks requested at one place of the program; without call stacks, blocks of one size. */
typedef struct frag_live_site {
    uint64_t key; /* the frame that names the call site and 1 (0: no stack), or requested bytes */
    uint64_t live_bytes;
    uint64_t live_count;
    uint64_t held_open_bytes; /* idle in segments that its blocks keep, by their share of them */
} frag_live_site;

typedef struct frag_sites {
    bool is_by_size;    /* the recording has no call stacks */
    uint32_t *frame_of; /* by site: the frame that names it, and 1; NULL: by size */
    frag_live_site *items;
    size_t count;
    frag_live_site biggest[FRAG_SITES_SHOWN]; /* by live bytes */
    size_t biggest_count;
    frag_live_site pinning[FRAG_SITES_SHOWN]; /* by what they hold open */
    size_t pinning_count;
    uint64_t hole_count; /* in segments that are in use */
    uint64_t largest_hole_bytes;
    uint64_t pinned_segments;              /* hold blocks and holes */
    uint64_t purposes[FRAG_PURPOSE_COUNT]; /* live bytes of each; without call stacks none */
} frag_sites;

/* What the replay holds now; event is the last that was replayed. */
void frag_sites_look(frag_sites *sites, const frag_recording *recording, const frag_trace *trace,
                     const frag_replay *replay, uint64_t event);
void frag_sites_destroy(frag_sites *sites);

/* "model.py:12 forward", or "blocks of 1.50 MiB". The text is the caller's. */
void frag_site_text(const frag_recording *recording, const frag_sites *sites, uint64_t key,
                    frag_text *text);

/* A copy of the trace's events in which requests of the biggest sites ask for half (rounded up).
 * The caller frees it. */
frag_event *frag_sites_halve(const frag_sites *sites, const frag_trace *trace);

#endif
