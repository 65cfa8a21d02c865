/* The card that a dry run pretends to be. */
#ifndef FRAG_DRYRUN_DRYRUN_CARD_H
#define FRAG_DRYRUN_DRYRUN_CARD_H

#include "sim/device/device_description.h"
#include "studies/dryrun/dryrun_replay.h"

typedef struct frag_dryrun_gpu {
    frag_device_description card;
    frag_dryrun_card memory;
    bool is_nameless; /* only a size was given, or nothing */
    bool is_given;    /* false: no card was named; memory has no limit that matters */
} frag_dryrun_gpu;

/* text: a card, a size such as "24GiB", or NULL. FRAG_E_USAGE when it is neither, or no card for
 * CUDA. */
bool frag_dryrun_gpu_find(const char *text, frag_dryrun_gpu *gpu, frag_text *note,
                          frag_error *error);

/* The settings of the software CUDA for so many of them. */
void frag_dryrun_gpu_settings(const frag_dryrun_gpu *gpu, uint64_t count, frag_text *settings);

#endif
