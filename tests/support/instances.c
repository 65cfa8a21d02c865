#include "tests/support/instances.h"

#include <string.h>

#include "tests/support/xorshift.h"

typedef struct rectangle {
    uint64_t left;
    uint64_t right;
    uint64_t bottom;
    uint64_t top;
} rectangle;

uint64_t instance_draw(instance *of, uint64_t below)
{
    return xorshift_next(&of->chance) % below;
}

static void begin(instance *of, uint64_t seed)
{
    memset(of, 0, sizeof *of);
    of->chance = (seed + 1) * 0x9e3779b97f4a7c15u;
    for (int i = 0; i < 8; i++)
        (void)instance_draw(of, 2);
}

static void add(instance *of, const rectangle *at)
{
    FRAG_ASSERT(of->count < INSTANCE_MAX);
    of->buffers[of->count++] = (frag_buffer){at->left, at->right, at->top - at->bottom, 1};
}

static void shuffle(instance *of)
{
    for (uint32_t i = of->count; i > 1; i--) {
        uint32_t j = (uint32_t)instance_draw(of, i);
        frag_buffer kept = of->buffers[i - 1];
        of->buffers[i - 1] = of->buffers[j];
        of->buffers[j] = kept;
    }
}

static void cut(instance *of, rectangle at, uint32_t count)
{
    uint64_t width = at.right - at.left;
    uint64_t height = at.top - at.bottom;
    if (count < 2 || (width < 2 && height < 2)) {
        add(of, &at);
        return;
    }
    rectangle one = at;
    rectangle other = at;
    uint32_t share = 1 + (uint32_t)instance_draw(of, count - 1);
    if (height < 2 || (width >= 2 && instance_draw(of, 2) == 0))
        one.right = other.left = at.left + 1 + instance_draw(of, width - 1);
    else
        one.top = other.bottom = at.bottom + 1 + instance_draw(of, height - 1);
    cut(of, one, share);
    cut(of, other, count - share);
}

void instance_tile(instance *of, uint64_t seed, uint32_t count, uint64_t width, uint64_t height)
{
    begin(of, seed);
    cut(of, (rectangle){0, width, 0, height}, count);
    shuffle(of);
}

static void turn(instance *of, rectangle at, uint32_t depth)
{
    uint64_t width = at.right - at.left;
    uint64_t height = at.top - at.bottom;
    if (depth == 0 || width < 3 || height < 3) {
        add(of, &at);
        return;
    }
    uint64_t left = at.left + width / 3 + (width > 8 ? instance_draw(of, width / 9) : 0);
    uint64_t right = at.right - width / 3 + (width > 8 ? instance_draw(of, width / 9) : 0);
    uint64_t bottom = at.bottom + height / 3 + (height > 8 ? instance_draw(of, height / 9) : 0);
    uint64_t top = at.top - height / 3 + (height > 8 ? instance_draw(of, height / 9) : 0);
    add(of, &(rectangle){at.left, right, at.bottom, bottom});
    add(of, &(rectangle){right, at.right, at.bottom, top});
    add(of, &(rectangle){left, at.right, top, at.top});
    add(of, &(rectangle){at.left, left, bottom, at.top});
    turn(of, (rectangle){left, right, bottom, top}, depth - 1);
}

void instance_pinwheel(instance *of, uint64_t seed, uint32_t depth, uint64_t width, uint64_t height)
{
    begin(of, seed);
    turn(of, (rectangle){0, width, 0, height}, depth);
    shuffle(of);
}

void instance_random(instance *of, uint64_t seed, uint32_t count, uint64_t time_max,
                     uint64_t size_max, uint64_t alignment_max)
{
    begin(of, seed);
    for (of->count = 0; of->count < count; of->count++) {
        uint64_t lower = instance_draw(of, time_max);
        uint64_t upper = lower + 1 + instance_draw(of, time_max - lower);
        uint64_t size = 1 + instance_draw(of, size_max);
        uint64_t alignment = 1 + instance_draw(of, alignment_max);
        of->buffers[of->count] = (frag_buffer){lower, upper, size, alignment};
    }
}

/* Tries every offset for buffer `at` such that it ends at or below the height. */
static bool can_place(const instance *of, uint32_t at, uint64_t height, uint64_t *offsets)
{
    if (at == of->count)
        return true;
    const frag_buffer *one = &of->buffers[at];
    for (uint64_t offset = 0; offset + one->size <= height; offset += one->alignment) {
        bool is_free = true;
        for (uint32_t i = 0; i < at && is_free; i++) {
            const frag_buffer *other = &of->buffers[i];
            is_free = one->upper <= other->lower || other->upper <= one->lower ||
                      offset + one->size <= offsets[i] || offsets[i] + other->size <= offset;
        }
        offsets[at] = offset;
        if (is_free && can_place(of, at + 1, height, offsets))
            return true;
    }
    return false;
}

uint64_t instance_brute_force(const instance *of)
{
    uint64_t offsets[INSTANCE_MAX];
    uint64_t height = 0;
    while (!can_place(of, 0, height, offsets))
        height++;
    return height;
}
