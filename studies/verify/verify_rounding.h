/* roundup_power2_divisions, read off a recording.
 *
 * A request is followed in memory by another one no nearer than its rounded size, and often just
 * there; a segment of its own has its rounded size in whole pages. So the sizes of each octave
 * contradict some divisions and are explained best by others. */
#ifndef FRAG_VERIFY_VERIFY_ROUNDING_H
#define FRAG_VERIFY_VERIFY_ROUNDING_H

#include <stdbool.h>
#include <stddef.h>

#include "sim/trace/trace.h"

enum {
    FRAG_ROUNDING_OCTAVES =
        16, /* by powers of two of MiB; the first holds all smaller sizes, too */
    /* What sizes may have been rounded to: multiples of 512; nothing, as a division of 1 does it
     * before 2.4; shares of a power of two: way w is a division of 2^(w - 1). */
    FRAG_ROUNDING_PLAIN = 0,
    FRAG_ROUNDING_NONE = 1,
    FRAG_ROUNDING_WAYS = 10
};

typedef struct frag_rounding {
    uint32_t ways[FRAG_ROUNDING_OCTAVES];     /* as far as one can see */
    uint32_t possible[FRAG_ROUNDING_OCTAVES]; /* bit of each way that is not contradicted; 0: there
                                                 was no request whose size tells */
} frag_rounding;

/* Looks as far as the first change of settings. */
void frag_rounding_read(const frag_trace *trace, frag_rounding *rounding);

/* Does it need a release before 2.4? */
bool frag_rounding_is_old(const frag_rounding *rounding);

#define FRAG_ROUNDING_TEXT_BYTES 192u

/* As a value of the option: "8", or "[8:1,16:2,256:8]" where octaves differ; "" for multiples of
 * 512. In a list 1 stands for those, and octaves that do not tell are not named. */
void frag_rounding_text(const frag_rounding *rounding, char text[FRAG_ROUNDING_TEXT_BYTES]);

#endif
