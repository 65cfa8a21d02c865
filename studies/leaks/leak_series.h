/* Does a figure that was taken once in each step show a leak? */
#ifndef FRAG_LEAKS_LEAK_SERIES_H
#define FRAG_LEAKS_LEAK_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum frag_leak_shape {
    FRAG_SHAPE_FLAT,       /* it does not rise, or falls again */
    FRAG_SHAPE_ONCE,       /* it rises at one time */
    FRAG_SHAPE_LEVELS_OFF, /* it rises less and less, and no more at the end */
    FRAG_SHAPE_LEAK
} frag_leak_shape;

typedef struct frag_leak_judgement {
    frag_leak_shape shape;
    size_t first;     /* value that is higher than the one before it; the leak begins there */
    size_t last_rise; /* the last such value */
    size_t start;     /* values before it are warm-up */
    double rising_ratio;
    bool is_even; /* it grows about as much in each third */
} frag_leak_judgement;

/* count is at least 4. */
frag_leak_judgement frag_leak_judge(const uint64_t *values, size_t count);

#endif
