/* The segments of a policy as a golden log writes them down, by device and address. */
#ifndef FRAG_VERIFY_GOLDEN_LAYOUT_H
#define FRAG_VERIFY_GOLDEN_LAYOUT_H

#include "base/text.h"
#include "sim/replay/replay.h"
#include "traces/golden/golden_log.h"

typedef struct frag_held_segment {
    frag_golden_segment segment;
    uint32_t device;
    frag_golden_list blocks;
} frag_held_segment;

/* Starts from {0}. */
typedef struct frag_golden_layout {
    frag_held_segment *segments;
    size_t segment_count;
    size_t segment_capacity;
    frag_golden_block *blocks;
    size_t block_count;
    size_t block_capacity;
} frag_golden_layout;

/* Appends what the policy of a replay holds, in order of address. */
void frag_golden_layout_add(frag_golden_layout *layout, const frag_replay *replay,
                            const frag_trace *trace);
/* The segment at an index against that of a line of the log. false: they differ, and the texts say
 * in what. */
bool frag_golden_layout_compare(const frag_golden_layout *layout, size_t index,
                                const frag_golden_log *log, const frag_golden_line *line,
                                frag_text *library, frag_text *policy);
void frag_golden_layout_destroy(frag_golden_layout *layout);

#endif
