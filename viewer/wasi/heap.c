/* The heap of the viewer: that of the C library rounds large blocks up to powers of two and joins
 * nothing that was freed, for which a memory of 4 GB has no room. One thread. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"

enum { PAGE = 65536, HEAD = 8, STEP = 16, USED = 1 };

#define LARGE ((uint32_t)1 << 20)

typedef struct chunk {
    uint32_t before;    /* bytes of the chunk before it, 0 of the first */
    uint32_t bytes;     /* with its head; USED: not free. The last one is only a head */
    struct chunk *next; /* of a free one, in its bin; else the block begins here */
    struct chunk **link;
} chunk;

static chunk *bins[32];
static chunk *last;
static char *fresh; /* from here on, all is zero but the last head */

static chunk *at(void *place, int64_t bytes)
{
    return (chunk *)(uintptr_t)((int64_t)(uintptr_t)place + bytes);
}

static chunk *after(chunk *one)
{
    return at(one, one->bytes & ~USED);
}

static bool is_free(const chunk *one)
{
    return (one->bytes & USED) == 0;
}

static void set_size(chunk *one, uint32_t bytes, uint32_t use)
{
    one->bytes = bytes | use;
    at(one, bytes)->before = bytes;
}

static uint32_t unlink_free(chunk *one)
{
    *one->link = one->next;
    if (one->next != NULL)
        one->next->link = one->link;
    return one->bytes;
}

static void give(chunk *one)
{
    uint32_t bytes = one->bytes & ~USED;
    if (is_free(after(one)))
        bytes += unlink_free(after(one));
    if (one->before != 0 && is_free(at(one, -(int64_t)one->before))) {
        one = at(one, -(int64_t)one->before);
        bytes += unlink_free(one);
    }
    set_size(one, bytes, 0);
    one->link = &bins[frag_bit_high(bytes)];
    one->next = *one->link;
    *one->link = one;
    if (one->next != NULL)
        one->next->link = &one->next;
}

static void *take(chunk *one, uint32_t bytes)
{
    uint32_t whole = one->bytes & ~USED;
    uint32_t rest = whole - bytes < 2 * STEP ? 0 : whole - bytes;
    set_size(one, whole - rest, USED);
    if (rest > 0) {
        set_size(after(one), rest, USED);
        give(after(one));
    }
    char *end = (char *)(after(one) + 1);
    fresh = end > fresh ? end : fresh;
    return at(one, HEAD);
}

static chunk *find(uint32_t bytes)
{
    chunk *best = NULL;
    for (uint32_t bin = frag_bit_high(bytes); best == NULL && bin < 32; bin++) {
        for (chunk *one = bins[bin]; one != NULL; one = one->next)
            if (one->bytes >= bytes && (best == NULL || one->bytes < best->bytes))
                best = one;
    }
    return best;
}

static bool grow(uint32_t bytes)
{
    uint32_t more = (bytes < LARGE * 1024 ? bytes : LARGE * 1024 - 1) / PAGE * PAGE + PAGE;
    if (sbrk((intptr_t)more) == (void *)-1)
        return false;
    chunk *old = last;
    bool is_joined = is_free(at(old, -(int64_t)old->before));
    last = at(old, more);
    last->bytes = USED;
    set_size(old, more, USED);
    give(old);
    if (is_joined)
        memset(old, 0, HEAD);
    return true;
}

static bool begin(void)
{
    char *start = last == NULL ? sbrk(PAGE) : NULL;
    if (start == (void *)-1)
        return false;
    if (start == NULL)
        return true;
    fresh = start + HEAD + sizeof(chunk);
    last = at(start, PAGE - HEAD);
    last->bytes = USED;
    set_size(at(start, HEAD), PAGE - 2 * HEAD, USED);
    give(at(start, HEAD));
    return true;
}

static uint32_t chunk_bytes(size_t bytes)
{
    return bytes < STEP ? 2 * STEP : ((uint32_t)bytes + HEAD + STEP - 1) / STEP * STEP;
}

void *malloc(size_t bytes)
{
    uint32_t whole = chunk_bytes(bytes);
    if (whole < bytes || !begin())
        return NULL;
    chunk *found = find(whole);
    while (found == NULL) {
        chunk *end = at(last, -(int64_t)last->before);
        if (!grow(whole - (is_free(end) ? end->bytes : 0)))
            return NULL;
        found = find(whole);
    }
    unlink_free(found);
    return take(found, whole);
}

void *calloc(size_t count, size_t item_bytes)
{
    uint64_t bytes = 0;
    if (!frag_multiply(count, item_bytes, &bytes) || bytes > UINT32_MAX || !begin())
        return NULL;
    char *zero_from = fresh;
    char *block = malloc((size_t)bytes);
    if (block != NULL && zero_from > block)
        memset(block, 0, zero_from - block < bytes ? zero_from - block : bytes);
    return block;
}

void free(void *block)
{
    if (block != NULL)
        give(at(block, -HEAD));
}

/* A large block that gets its last size goes down, so that what is free above is one piece. */
void *realloc(void *block, size_t bytes)
{
    uint32_t whole = chunk_bytes(bytes);
    chunk *one = at(block, -HEAD);
    if (block == NULL || whole < bytes)
        return block == NULL ? malloc(bytes) : NULL;
    uint32_t had = one->bytes & ~USED;
    chunk *lower = had >= whole && whole >= LARGE ? find(whole) : NULL;
    if (had >= whole && (lower == NULL || lower > one))
        return take(one, whole);
    while (had < whole) {
        chunk *next = after(one);
        uint32_t room = had + (is_free(next) ? next->bytes : 0);
        if (room >= whole) {
            set_size(one, had + unlink_free(next), USED);
            return take(one, whole);
        }
        if ((next != last && (!is_free(next) || after(next) != last)) || !grow(whole - room))
            break;
    }
    void *moved = malloc(bytes);
    if (moved != NULL) {
        memcpy(moved, block, (had < whole ? had : whole) - HEAD);
        free(block);
    }
    return moved;
}
