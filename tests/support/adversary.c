#include "tests/support/adversary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bits.h"
#include "base/bytes.h"

void word_world_open(word_world *world, const char *policy, uint64_t capacity_words,
                     uint32_t live_max, uint64_t request_max, uint64_t words_max)
{
    memset(world, 0, sizeof *world);
    frag_error error = {0};
    if (!frag_policy_spec_parse(policy, &world->spec, &error))
        fail_msg("%s: %s", policy, error.sentence);
    frag_sim_device_options options = {.capacity_bytes = capacity_words, .page_bytes = 1};
    world->device = frag_sim_device_create(&options);
    frag_policy_limits limits = {.request_count = request_max,
                                 .live_count_max = live_max,
                                 .stream_count = 1,
                                 .pool_count = 1,
                                 .requested_bytes_total = request_max * words_max};
    const frag_policy_ops *ops = world->spec.ops;
    assert_true(
        frag_arena_create(&world->arena, ops->arena_bytes(&limits, world->spec.values), &error));
    frag_policy_setup setup = {.values = world->spec.values,
                               .device = world->device,
                               .arena = &world->arena,
                               .limits = limits,
                               .recorded_version = ""};
    world->policy = ops->create(&setup, &error);
    if (world->policy == NULL)
        fail_msg("%s: %s", policy, error.sentence);
    world->blocks = frag_alloc(live_max, sizeof *world->blocks);
    world->block_max = live_max;
    world->base = UINT64_MAX;
}

void word_world_close(word_world *world)
{
    frag_error error = {0};
    if (!world->spec.ops->check(world->policy, &error))
        fail_msg("%s: %s", world->spec.text, error.sentence);
    frag_device_destroy(world->device);
    frag_arena_destroy(&world->arena);
    frag_policy_spec_destroy(&world->spec);
    free(world->blocks);
}

/* The lowest number that names no block; block numbers are searched from where the last one was
 * found. */
static size_t free_number(const word_world *world, size_t from)
{
    for (size_t i = 0; i < world->block_max; i++) {
        size_t at = (from + i) % world->block_max;
        if (world->blocks[at].words == 0)
            return at;
    }
    fail_msg("the world is too small");
    return 0;
}

bool word_world_alloc(word_world *world, uint64_t words, size_t *block)
{
    frag_request request = {.bytes = words};
    frag_grant grant = {0};
    if (!world->spec.ops->alloc(world->policy, &request, &grant))
        return false;
    if (world->base == UINT64_MAX)
        world->base = grant.address;
    *block = free_number(world, *block);
    world->blocks[*block] =
        (word_block){.start = grant.address - world->base, .words = words, .handle = grant.handle};
    world->live_words += words;
    uint64_t end = world->blocks[*block].start + grant.block_bytes;
    world->high_water = end > world->high_water ? end : world->high_water;
    return true;
}

void word_world_free(word_world *world, size_t block)
{
    assert_true(world->blocks[block].words != 0);
    world->live_words -= world->blocks[block].words;
    world->blocks[block].words = 0;
    world->spec.ops->free(world->policy, world->blocks[block].handle, 0);
}

static void fill(word_world *world, uint64_t live_max, uint64_t words)
{
    size_t block = 0;
    while (world->live_words + words <= live_max)
        assert_true(word_world_alloc(world, words, &block));
}

static bool covers(const word_block *block, uint64_t residue, uint64_t modulus)
{
    uint64_t first = block->start % modulus;
    uint64_t distance = residue >= first ? residue - first : residue + modulus - first;
    return distance < block->words;
}

static uint64_t robson_score(const word_world *world, uint64_t residue, uint64_t modulus)
{
    uint64_t score = 0;
    for (size_t i = 0; i < world->block_max; i++)
        if (world->blocks[i].words != 0 && covers(&world->blocks[i], residue, modulus))
            score += modulus - world->blocks[i].words;
    return score;
}

uint64_t adversary_robson(const char *policy, uint64_t live_words, uint64_t size_max)
{
    word_world world;
    word_world_open(&world, policy, FRAG_UNLIMITED, (uint32_t)live_words, live_words * 8, size_max);
    fill(&world, live_words, 1);
    uint64_t residue = 0;
    for (uint64_t size = 2; size <= size_max; size *= 2) {
        if (robson_score(&world, residue + size / 2, size) > robson_score(&world, residue, size))
            residue += size / 2;
        for (size_t i = 0; i < world.block_max; i++)
            if (world.blocks[i].words != 0 && !covers(&world.blocks[i], residue, size))
                word_world_free(&world, i);
        fill(&world, live_words, size);
    }
    uint64_t high_water = world.high_water;
    word_world_close(&world);
    return high_water;
}

typedef struct placed {
    uint64_t start;
    uint64_t words;
    size_t block;
} placed;

static int compare_placed(const void *left, const void *right)
{
    const placed *a = left;
    const placed *b = right;
    return a->start < b->start ? -1 : a->start > b->start;
}

static size_t in_order(const word_world *world, placed *list)
{
    size_t count = 0;
    for (size_t i = 0; i < world->block_max; i++)
        if (world->blocks[i].words != 0)
            list[count++] = (placed){world->blocks[i].start, world->blocks[i].words, i};
    qsort(list, count, sizeof *list, compare_placed);
    return count;
}

/* Frees pins from the bottom up as long as no hole grows beyond the given size. */
static void thin(word_world *world, uint64_t hole_max, placed *list)
{
    size_t count = in_order(world, list);
    uint64_t hole_start = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t hole_end = i + 1 < count ? list[i + 1].start : list[i].start + 1;
        if (i + 1 < count && hole_end - hole_start <= hole_max)
            word_world_free(world, list[i].block);
        else
            hole_start = list[i].start + list[i].words;
    }
}

/* Frees every other one of the row, puts a block one word shorter into each hole and fills the
 * words that are left over with pins; pins that went elsewhere are taken back. */
static void pin_row(word_world *world, uint64_t live_max, uint64_t size, size_t *row, size_t count,
                    size_t parity)
{
    size_t *strays = frag_alloc(live_max, sizeof *strays);
    size_t stray_count = 0;
    size_t wanted = 0;
    size_t *shorter = frag_alloc(count + 1, sizeof *shorter);
    uint64_t lowest = UINT64_MAX;
    for (size_t i = parity; i < count; i += 2) {
        uint64_t start = world->blocks[row[i]].start;
        lowest = start < lowest ? start : lowest;
        word_world_free(world, row[i]);
        wanted++;
    }
    for (size_t i = 0; i < wanted; i++) {
        shorter[i] = 0;
        assert_true(word_world_alloc(world, size - 1, &shorter[i]));
    }
    size_t pinned = 0;
    while (pinned < wanted && world->live_words < live_max) {
        size_t pin = 0;
        assert_true(word_world_alloc(world, 1, &pin));
        if (world->blocks[pin].start >= lowest)
            pinned++;
        else
            strays[stray_count++] = pin;
    }
    for (size_t i = 0; i < stray_count; i++)
        word_world_free(world, strays[i]);
    for (size_t i = 0, at = parity; i < wanted; i++, at += 2)
        row[at] = shorter[i];
    free(shorter);
    free(strays);
}

uint64_t adversary_best_fit(const char *policy, uint64_t live_words, uint64_t size_max)
{
    word_world world;
    word_world_open(&world, policy, FRAG_UNLIMITED, (uint32_t)live_words, live_words * size_max * 8,
                    size_max);
    placed *list = frag_alloc(live_words, sizeof *list);
    size_t *row = frag_alloc(live_words, sizeof *row);
    fill(&world, live_words, 1);
    for (uint64_t size = 2; size <= size_max; size++) {
        thin(&world, size - 2, list);
        size_t count = (size_t)((live_words - world.live_words) / size);
        for (size_t i = 0; i < count; i++) {
            row[i] = 0;
            assert_true(word_world_alloc(&world, size, &row[i]));
        }
        for (size_t parity = 0; parity < 2; parity++)
            pin_row(&world, live_words, size, row, count, parity);
        for (size_t i = 0; i < count; i++)
            word_world_free(&world, row[i]);
    }
    uint64_t high_water = world.high_water;
    free(list);
    free(row);
    word_world_close(&world);
    return high_water;
}

/* ---- all layouts that can be reached. A layout is one bit a word for "in use" and one for "a
 * block starts here"; worlds are below 32 words. */

typedef struct layout_set {
    uint64_t
        *table; /* open addressing; a layout is never 0 but the empty one, which is not stored */
    size_t capacity;
    uint64_t *queue;
    size_t queue_count;
    size_t queue_capacity;
} layout_set;

#define USED(layout) ((uint32_t)(layout))
#define STARTS(layout) ((uint32_t)((layout) >> 32))

static bool insert_into(uint64_t *table, size_t capacity, uint64_t layout)
{
    size_t at = (size_t)((layout * 0x9e3779b97f4a7c15u) >> 32) % capacity;
    while (table[at] != 0 && table[at] != layout)
        at = (at + 1) % capacity;
    bool is_new = table[at] == 0;
    table[at] = layout;
    return is_new;
}

static void add_layout(layout_set *set, uint64_t layout)
{
    if (layout == 0)
        return;
    if ((set->queue_count + 1) * 2 > set->capacity) {
        size_t capacity = set->capacity == 0 ? 1024 : set->capacity * 2;
        uint64_t *table = frag_alloc(capacity, sizeof *table);
        for (size_t i = 0; i < set->queue_count; i++)
            insert_into(table, capacity, set->queue[i]);
        free(set->table);
        set->table = table;
        set->capacity = capacity;
    }
    if (!insert_into(set->table, set->capacity, layout))
        return;
    *FRAG_APPEND(set->queue, set->queue_count, set->queue_capacity) = layout;
}

static uint64_t block_mask(uint64_t layout, uint32_t start)
{
    uint32_t end = start + 1;
    while (end < 32 && (USED(layout) >> end & 1) != 0 && (STARTS(layout) >> end & 1) == 0)
        end++;
    uint32_t used =
        (end == 32 ? UINT32_MAX : ((uint32_t)1 << end) - 1) & ~(((uint32_t)1 << start) - 1);
    return (uint64_t)1 << (32 + start) | used;
}

/* Brings an empty world into the layout: words up to the top are filled one by one, then those of
 * each block are freed and the block takes their place, the only one that fits. */
static void restore(word_world *world, uint64_t layout)
{
    uint32_t top = frag_bit_high(USED(layout)) + 1;
    size_t words[32];
    for (uint32_t i = 0; i < top; i++) {
        words[i] = i;
        assert_true(word_world_alloc(world, 1, &words[i]));
        assert_int_equal(world->blocks[words[i]].start, i);
    }
    for (uint32_t i = 0; i < top; i++) {
        if ((STARTS(layout) >> i & 1) == 0)
            continue;
        uint32_t size = frag_bit_count(USED(block_mask(layout, i)));
        for (uint32_t j = i; j < i + size; j++)
            word_world_free(world, words[j]);
        assert_true(word_world_alloc(world, size, &words[i]));
        assert_int_equal(world->blocks[words[i]].start, i);
    }
    for (uint32_t i = 0; i < top; i++)
        if ((USED(layout) >> i & 1) == 0)
            word_world_free(world, words[i]);
    world->spec.ops->empty_cache(world->policy, FRAG_POOL_ALL);
}

static void clear(word_world *world)
{
    for (size_t i = 0; i < world->block_max; i++)
        if (world->blocks[i].words != 0)
            word_world_free(world, i);
    world->spec.ops->empty_cache(world->policy, FRAG_POOL_ALL);
}

uint64_t adversary_exhaustive(const char *policy, uint64_t live_words, const uint64_t *sizes,
                              size_t size_count)
{
    word_world world;
    word_world_open(&world, policy, FRAG_UNLIMITED, 64, (uint64_t)1 << 20, 32);
    layout_set set = {0};
    uint64_t high_water = 0;
    for (size_t done = 0; done <= set.queue_count; done++) {
        /* The empty layout comes first and is not in the queue. */
        uint64_t layout = done == 0 ? 0 : set.queue[done - 1];
        if (layout != 0)
            restore(&world, layout);
        for (size_t i = 0; i < size_count; i++) {
            if (world.live_words + sizes[i] > live_words)
                continue;
            size_t block = 0;
            assert_true(word_world_alloc(&world, sizes[i], &block));
            uint64_t start = world.blocks[block].start;
            uint64_t end = start + sizes[i];
            assert_true(end <= 32);
            high_water = end > high_water ? end : high_water;
            uint64_t used = (((uint64_t)1 << sizes[i]) - 1) << start;
            add_layout(&set, layout | used | (uint64_t)1 << (32 + start));
            word_world_free(&world, block);
            world.spec.ops->empty_cache(world.policy, FRAG_POOL_ALL);
        }
        for (uint32_t start = 0; start < 32; start++)
            if ((STARTS(layout) >> start & 1) != 0)
                add_layout(&set, layout & ~block_mask(layout, start));
        clear(&world);
    }
    free(set.table);
    free(set.queue);
    word_world_close(&world);
    return high_water;
}
