/* The heap of the viewer: malloc and its kin for WebAssembly, whose one memory of at most 4 GB only
 * grows.
 *
 * That of the C library rounds a large block up to a power of two, and uses what was freed only for
 * blocks of the same power. Here blocks lie side by side, what is freed joins its neighbours, and a
 * block grows where it stands if there is room beside it. One thread. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"

#define PAGE_BYTES 65536u
#define HEAD_BYTES 8u
#define STEP 16u /* of all sizes and of the places of blocks */
#define USED 1u
#define GROW_PAGES_MIN 16u
#define GROW_PAGES_MAX 16384u
#define SETTLED_MIN (1u << 20)
#define REQUEST_MAX 0xfff00000u

/* Bins of free chunks: one for each size below 1 KiB, eight for each power of two from there on. */
enum { EXACT_BINS = 64, EXACT_BITS = 10, BIN_COUNT = EXACT_BINS + (32 - EXACT_BITS) * 8 };
enum { LOOKED_AT_MAX = 64 }; /* of a bin */

typedef struct chunk {
    uint32_t before;    /* bytes of the chunk before it, 0 of the first */
    uint32_t bytes;     /* with its head; USED: not free. The last one is a head of 0 bytes alone */
    struct chunk *next; /* of a free one: in its bin; else the block begins here */
    struct chunk *previous;
} chunk;

static chunk *bins[BIN_COUNT];
static uint64_t filled[(BIN_COUNT + 63) / 64]; /* bit i: bin i holds something */
static chunk *last;                            /* NULL: nothing was asked for yet */
static unsigned char *fresh;                   /* from here on, all is zero but for the last head */

extern unsigned char __heap_base;

static uint32_t size_of(const chunk *one)
{
    return one->bytes & ~USED;
}

static bool is_used(const chunk *one)
{
    return (one->bytes & USED) != 0;
}

static chunk *at(const chunk *one, int64_t bytes)
{
    return (chunk *)(uintptr_t)((int64_t)(uintptr_t)one + bytes);
}

static chunk *after(const chunk *one)
{
    return at(one, size_of(one));
}

static void *block_of(chunk *one)
{
    return at(one, HEAD_BYTES);
}

static chunk *chunk_of(void *block)
{
    return at(block, -(int64_t)HEAD_BYTES);
}

static uint32_t bin_of(uint32_t bytes)
{
    if (bytes < 1u << EXACT_BITS)
        return bytes / STEP;
    uint32_t high = frag_bit_high(bytes);
    return EXACT_BINS + (high - EXACT_BITS) * 8 + ((bytes >> (high - 3)) & 7);
}

static void set_size(chunk *one, uint32_t bytes, uint32_t use)
{
    one->bytes = bytes | use;
    at(one, bytes)->before = bytes;
}

static void unlink_free(chunk *one)
{
    uint32_t bin = bin_of(one->bytes);
    if (one->next != NULL)
        one->next->previous = one->previous;
    if (one->previous != NULL)
        one->previous->next = one->next;
    else
        bins[bin] = one->next;
    if (bins[bin] == NULL)
        filled[bin / 64] &= ~((uint64_t)1 << bin % 64);
}

/* Makes a chunk free, as one with the free ones on both sides. */
static void give(chunk *one)
{
    uint32_t bytes = size_of(one);
    chunk *next = after(one);
    if (!is_used(next)) {
        bytes += next->bytes;
        unlink_free(next);
    }
    if (one->before != 0 && !is_used(at(one, -(int64_t)one->before))) {
        one = at(one, -(int64_t)one->before);
        bytes += one->bytes;
        unlink_free(one);
    }
    set_size(one, bytes, 0);
    uint32_t bin = bin_of(bytes);
    one->next = bins[bin];
    one->previous = NULL;
    if (bins[bin] != NULL)
        bins[bin]->previous = one;
    bins[bin] = one;
    filled[bin / 64] |= (uint64_t)1 << bin % 64;
}

/* Takes the first bytes of a chunk that is in no bin, and gives back the rest. */
static void *take(chunk *one, uint32_t bytes)
{
    uint32_t rest = size_of(one) - bytes;
    set_size(one, rest < 2 * STEP ? bytes + rest : bytes, USED);
    if (rest >= 2 * STEP) {
        set_size(after(one), rest, USED);
        give(after(one));
    }
    return block_of(one);
}

static chunk *smallest_in(uint32_t bin, uint32_t bytes)
{
    chunk *best = NULL;
    uint32_t seen = 0;
    for (chunk *one = bins[bin]; one != NULL && seen < LOOKED_AT_MAX; one = one->next, seen++)
        if (one->bytes >= bytes && (best == NULL || one->bytes < best->bytes))
            best = one;
    return best;
}

static chunk *find_free(uint32_t bytes)
{
    uint32_t bin = bin_of(bytes);
    chunk *found = smallest_in(bin, bytes);
    for (bin++; found == NULL && bin < BIN_COUNT;) {
        uint64_t above = filled[bin / 64] >> bin % 64;
        if (above == 0) {
            bin = (bin / 64 + 1) * 64;
            continue;
        }
        bin += frag_bit_low(above);
        found = smallest_in(bin, bytes);
    }
    return found;
}

/* So many pages more behind the last chunk, as a free chunk. */
static bool add_pages(uint32_t pages)
{
    if (sbrk((intptr_t)pages * PAGE_BYTES) == (void *)-1)
        return false;
    chunk *old = last;
    last = at(old, (int64_t)pages * PAGE_BYTES);
    last->bytes = USED;
    bool is_joined = !is_used(at(old, -(int64_t)old->before));
    set_size(old, pages * PAGE_BYTES, USED);
    give(old);
    if (is_joined)
        memset(old, 0, HEAD_BYTES);
    return true;
}

/* At least so many bytes more, of which the system is asked for no more at once than it can count.
 */
static bool grow(uint32_t bytes)
{
    uint32_t pages = bytes / PAGE_BYTES + 1;
    if (pages < GROW_PAGES_MIN && add_pages(GROW_PAGES_MIN))
        return true;
    for (; pages > GROW_PAGES_MAX; pages -= GROW_PAGES_MAX)
        if (!add_pages(GROW_PAGES_MAX))
            return false;
    return add_pages(pages);
}

/* What the memory has behind the program's own data is the first free chunk. */
static void begin(void)
{
    uintptr_t start = ((uintptr_t)&__heap_base + STEP - 1) / STEP * STEP + HEAD_BYTES;
    uintptr_t end = (uintptr_t)sbrk(0) - HEAD_BYTES;
    chunk *first = (chunk *)start;
    fresh = (unsigned char *)start + sizeof(chunk);
    first->before = 0;
    last = (chunk *)end;
    last->bytes = USED;
    set_size(first, (uint32_t)(end - start), USED);
    give(first);
}

/* The bytes that the chunk of a request has; 0: there is no such. */
static uint32_t chunk_bytes(size_t bytes)
{
    if (bytes > REQUEST_MAX) {
        errno = ENOMEM;
        return 0;
    }
    uint32_t whole = ((uint32_t)bytes + HEAD_BYTES + STEP - 1) / STEP * STEP;
    return whole < 2 * STEP ? 2 * STEP : whole;
}

/* What has to be there behind the last used chunk. */
static uint32_t missing(uint32_t bytes)
{
    chunk *before_last = at(last, -(int64_t)last->before);
    return is_used(before_last) ? bytes : bytes - before_last->bytes;
}

static chunk *find_or_grow(uint32_t bytes)
{
    if (last == NULL)
        begin();
    chunk *found = find_free(bytes);
    if (found == NULL && grow(missing(bytes)))
        found = find_free(bytes);
    if (found == NULL)
        errno = ENOMEM;
    return found;
}

/* With the head and the links of the chunk behind it. */
static void touch(const chunk *one)
{
    unsigned char *end = (unsigned char *)after(one) + sizeof(chunk);
    fresh = end > fresh ? end : fresh;
}

void *malloc(size_t bytes)
{
    uint32_t whole = chunk_bytes(bytes);
    chunk *found = whole != 0 ? find_or_grow(whole) : NULL;
    if (found == NULL)
        return NULL;
    unlink_free(found);
    void *block = take(found, whole);
    touch(found);
    return block;
}

void *calloc(size_t count, size_t item_bytes)
{
    uint64_t wanted = 0;
    if (!frag_multiply(count, item_bytes, &wanted) || wanted > REQUEST_MAX) {
        errno = ENOMEM;
        return NULL;
    }
    size_t bytes = (size_t)wanted;
    if (last == NULL)
        begin();
    unsigned char *zero_from = fresh;
    unsigned char *block = malloc(bytes);
    if (block != NULL && zero_from > block) {
        size_t used = (size_t)(zero_from - block);
        memset(block, 0, used < bytes ? used : bytes);
    }
    return block;
}

void free(void *block)
{
    if (block != NULL)
        give(chunk_of(block));
}

/* Makes the chunk larger with what is free behind it, also new memory; false: there is too little.
 */
static bool extend(chunk *one, uint32_t bytes)
{
    chunk *next = after(one);
    bool is_at_end = next == last || (!is_used(next) && after(next) == last);
    uint32_t room = size_of(one) + (is_used(next) ? 0 : next->bytes);
    if (room < bytes && (!is_at_end || !grow(bytes - room)))
        return false;
    next = after(one);
    set_size(one, size_of(one) + next->bytes, USED);
    unlink_free(next);
    return true;
}

/* Moves the block down over the free chunk before it; NULL: there is too little room. */
static chunk *move_down(chunk *one, uint32_t bytes)
{
    chunk *next = after(one);
    chunk *before = at(one, -(int64_t)one->before);
    if (one->before == 0 || is_used(before) ||
        before->bytes + size_of(one) + (is_used(next) ? 0 : next->bytes) < bytes)
        return NULL;
    uint32_t whole = before->bytes + size_of(one);
    uint32_t kept = size_of(one) - HEAD_BYTES;
    if (!is_used(next)) {
        whole += next->bytes;
        unlink_free(next);
    }
    unlink_free(before);
    memmove(block_of(before), block_of(one), kept);
    set_size(before, whole, USED);
    return before;
}

/* A large block that gets its last size goes to where others were, so that what is free lies in one
 * piece above it: a replay asks for that. NULL: there is no such place. */
static void *settle(chunk *one, uint32_t bytes)
{
    chunk *lower = size_of(one) >= bytes && bytes >= SETTLED_MIN ? find_free(bytes) : NULL;
    if (lower == NULL || lower > one)
        return NULL;
    unlink_free(lower);
    void *block = memcpy(take(lower, bytes), block_of(one), bytes - HEAD_BYTES);
    touch(lower);
    give(one);
    return block;
}

void *realloc(void *block, size_t bytes)
{
    if (block == NULL)
        return malloc(bytes);
    uint32_t whole = chunk_bytes(bytes);
    if (whole == 0)
        return NULL;
    chunk *one = chunk_of(block);
    void *settled = settle(one, whole);
    if (settled != NULL)
        return settled;
    chunk *grown = size_of(one) >= whole || extend(one, whole) ? one : move_down(one, whole);
    if (grown != NULL) {
        block = take(grown, whole);
        touch(grown);
        return block;
    }
    void *moved = malloc(bytes);
    if (moved == NULL)
        return NULL;
    memcpy(moved, block, size_of(one) - HEAD_BYTES);
    give(one);
    return moved;
}

/* ---- the rest of the C library's heap, so that no block is of another one */

void *aligned_alloc(size_t alignment, size_t bytes)
{
    if (alignment <= STEP)
        return malloc(bytes);
    errno = ENOMEM;
    return NULL;
}

int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    *block = aligned_alloc(alignment, bytes);
    return *block != NULL ? 0 : ENOMEM;
}
