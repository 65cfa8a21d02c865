/* Packing problems for tests: tilings whose best packing is known, and small random ones. */
#ifndef FRAG_SUPPORT_INSTANCES_H
#define FRAG_SUPPORT_INSTANCES_H

#include "planner/sections.h"

enum { INSTANCE_MAX = 4096 };

typedef struct instance {
    frag_buffer buffers[INSTANCE_MAX];
    uint32_t count;
    uint64_t chance; /* of the generator: the same seed gives the same instance */
} instance;

uint64_t instance_draw(instance *of, uint64_t below);

/* Cuts a rectangle of time x bytes by straight cuts into about `count` buffers and shuffles them:
 * the best packing is as high as the rectangle, without a hole. */
void instance_tile(instance *of, uint64_t seed, uint32_t count, uint64_t width, uint64_t height);

/* Nested pinwheels: five rectangles that no straight cut takes apart, one of them cut again. The
 * best packing is height bytes high. width and height are at least 3^depth. */
void instance_pinwheel(instance *of, uint64_t seed, uint32_t depth, uint64_t width,
                       uint64_t height);

/* count buffers of up to size_max bytes at random times below time_max. */
void instance_random(instance *of, uint64_t seed, uint32_t count, uint64_t time_max,
                     uint64_t size_max, uint64_t alignment_max);

/* The height of the best packing, by trying every offset of every buffer: for a handful. */
uint64_t instance_brute_force(const instance *of);

#endif
