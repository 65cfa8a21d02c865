/* What a recording has in use at its peak, against what the device has: where that alone is too
 * much, no layout of the memory would have helped, whatever the request that failed shows. */
#ifndef FRAG_EXPLAIN_EXPLAIN_PEAK_H
#define FRAG_EXPLAIN_EXPLAIN_PEAK_H

#include "studies/explain/verdict.h"

typedef struct frag_explain_peak {
    uint64_t live_bytes; /* asked for and not freed, at most at once */
    uint64_t capacity_bytes;
    uint64_t allowed_bytes; /* of the capacity, by a limit that the program set */
    bool is_whole;          /* false: no further than the request that failed when recorded */
} frag_explain_peak;

/* Corrects what the figures at the failure say. Nothing changes where the peak is not too much. */
void frag_explain_peak_diagnose(const frag_explain_peak *peak, frag_diagnosis *diagnosis);

#endif
