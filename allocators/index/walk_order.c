#include "allocators/index/walk_order.h"

#include <stdlib.h>

#include "base/bits.h"
#include "base/error.h"

#define NONE UINT32_MAX

/* How many buckets the table has, one after the other: primes, each about twice the one before. */
static const uint32_t bucket_counts[] = {
    13,       29,        59,        127,       257,       541,        1109,
    2357,     5087,      10273,     20753,     42043,     85229,      172933,
    351061,   712697,    1447153,   2938679,   5967347,   12117689,   24607243,
    49969847, 101473717, 206062531, 418451333, 849749479, 1725587117, 3504151727};

/* The least of them with a bucket for each of so many numbers. */
static uint32_t buckets_for(uint32_t number_count)
{
    size_t at = 0;
    while (bucket_counts[at] < number_count) {
        at++;
        FRAG_ASSERT(at < sizeof bucket_counts / sizeof bucket_counts[0]);
    }
    return bucket_counts[at];
}

size_t frag_walk_order_bytes(uint32_t number_max)
{
    return (size_t)number_max * (2 * sizeof(uint64_t) + 2 * sizeof(uint32_t)) +
           (size_t)buckets_for(number_max) * sizeof(uint32_t) + (size_t)5 * 64;
}

void frag_walk_order_create(frag_walk_order *order, frag_arena *arena, uint32_t number_max)
{
    *order = (frag_walk_order){
        .numbers = frag_arena_take(arena, number_max, sizeof *order->numbers),
        .spare = frag_arena_take(arena, number_max, sizeof *order->spare),
        .newest = frag_arena_take(arena, buckets_for(number_max), sizeof *order->newest),
        .older = frag_arena_take(arena, number_max, sizeof *order->older),
        .used_buckets = frag_arena_take(arena, number_max, sizeof *order->used_buckets),
        .number_max = number_max,
    };
}

void frag_walk_order_add(frag_walk_order *order, uint64_t number)
{
    FRAG_ASSERT(order->number_count < order->number_max);
    order->numbers[order->number_count++] = number;
}

/* The numbers below count as the table walks them with so many buckets, when they are put into it
 * in the order in which they stand here. */
static void walk(frag_walk_order *order, uint32_t count, uint32_t bucket_count)
{
    uint32_t used_count = 0;
    for (uint32_t bucket = 0; bucket < bucket_count; bucket++)
        order->newest[bucket] = NONE;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t bucket = (uint32_t)(order->numbers[i] % bucket_count);
        if (order->newest[bucket] == NONE)
            order->used_buckets[used_count++] = bucket;
        order->older[i] = order->newest[bucket];
        order->newest[bucket] = i;
    }
    uint32_t at = 0;
    while (used_count > 0)
        for (uint32_t i = order->newest[order->used_buckets[--used_count]]; i != NONE;
             i = order->older[i])
            order->spare[at++] = order->numbers[i];
    for (uint32_t i = 0; i < count; i++)
        order->numbers[i] = order->spare[i];
}

const uint64_t *frag_walk_order_take(frag_walk_order *order, uint32_t *count)
{
    *count = order->number_count;
    order->number_count = 0;
    if (*count == 0)
        return order->numbers;
    if (order->bucket_count == 0)
        order->bucket_count = bucket_counts[0];
    /* A number that would have no bucket left makes the table larger before it goes in. */
    while (order->bucket_count < *count) {
        walk(order, order->bucket_count, order->bucket_count);
        order->bucket_count = buckets_for(order->bucket_count + 1);
    }
    walk(order, *count, order->bucket_count);
    return order->numbers;
}

const uint64_t *frag_walk_order_take_sorted(frag_walk_order *order, uint32_t *count)
{
    *count = order->number_count;
    order->number_count = 0;
    if (*count > 1)
        qsort(order->numbers, *count, sizeof *order->numbers, frag_compare_numbers);
    return order->numbers;
}
