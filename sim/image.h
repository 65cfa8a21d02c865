/* Copies of memory, taken in one order and brought back in the same order: the state of a run at
 * some point, to which it can return (sim/replay/checkpoint.h). */
#ifndef FRAG_SIM_IMAGE_H
#define FRAG_SIM_IMAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/memory.h"

typedef struct frag_image {
    unsigned char *bytes;
    size_t count;
    size_t capacity;
    size_t at; /* where frag_image_take reads next */
} frag_image;

/* Forgets what is in it, and keeps the memory. */
void frag_image_empty(frag_image *image);
/* What was added first is taken next. */
void frag_image_rewind(frag_image *image);
void frag_image_destroy(frag_image *image);

void frag_image_add(frag_image *image, const void *memory, size_t bytes);
/* The next bytes; as many must be taken as were added. */
void frag_image_take(frag_image *image, void *memory, size_t bytes);

/* All that was written to an arena since it began. false: the system does not tell which pages
 * those are (it must be Linux, with /proc), and nothing was added. */
bool frag_image_add_arena(frag_image *image, const frag_arena *arena);
/* Everything in the arena, what was never written included, is again as it was added. */
void frag_image_take_arena(frag_image *image, const frag_arena *arena);

#endif
