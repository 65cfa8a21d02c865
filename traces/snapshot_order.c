#include "traces/snapshot_order.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/bits.h"
#include "sim/base/memory.h"

enum { PAGE_KEYS = 32, RANK_MAX = INT32_MAX };

struct frag_free_page {
    size_t count;
    int32_t ranks[PAGE_KEYS]; /* what rank_of says of each key; behind the last, RANK_MAX */
    frag_free_key keys[PAGE_KEYS];
};

/* Where a key is, or would go: index may be one behind the last of the page. */
typedef struct key_place {
    size_t page;
    size_t index;
} key_place;

/* Sizes in the order of their ranks, of which many are compared at once; PyTorch's are multiples of
 * 512, so that few different ones share a rank. */
static int32_t rank_of(uint64_t bytes)
{
    uint64_t rank = bytes / 512;
    return rank < RANK_MAX ? (int32_t)rank : RANK_MAX;
}

static inline bool is_below(const frag_free_key *key, uint64_t bytes, uint64_t address)
{
    return frag_pair_is_below(key->bytes, key->address, bytes, address);
}

/* In the last page that begins below size and address, else the first, the first key that is not
 * below them. What a comparison says no processor can guess, so that none decides a branch but
 * among equal sizes. */
static key_place find_place(const frag_free_order *order, uint64_t bytes, uint64_t address)
{
    key_place place = {0};
    for (size_t count = order->page_count; count > 1;) {
        size_t half = count / 2;
        const frag_free_key *first = &order->pages[place.page + half]->keys[0];
        place.page += half & ((size_t)0 - (is_below(first, bytes, address) ? 1 : 0));
        count -= half;
    }
    const frag_free_page *page = order->pages[place.page];
    int32_t rank = rank_of(bytes);
    int32_t below = 0;
    for (uint32_t i = 0; i < PAGE_KEYS; i++)
        below += page->ranks[i] < rank ? 1 : 0;
    place.index = (size_t)below;
    while (place.index < page->count && is_below(&page->keys[place.index], bytes, address))
        place.index++;
    return place;
}

/* Makes all of a page behind its keys what it is to be there. */
static void clear_ranks(frag_free_page *page)
{
    for (size_t i = page->count; i < PAGE_KEYS; i++)
        page->ranks[i] = RANK_MAX;
}

static frag_free_page *insert_page(frag_free_order *order, size_t at)
{
    order->pages =
        frag_grow(order->pages, &order->page_capacity, order->page_count + 1, sizeof *order->pages);
    memmove(order->pages + at + 1, order->pages + at,
            (order->page_count - at) * sizeof *order->pages);
    order->pages[at] = frag_alloc(1, sizeof **order->pages);
    order->page_count++;
    clear_ranks(order->pages[at]);
    return order->pages[at];
}

static void split_page(frag_free_order *order, size_t at)
{
    frag_free_page *right = insert_page(order, at + 1);
    frag_free_page *left = order->pages[at];
    right->count = left->count / 2;
    left->count -= right->count;
    memcpy(right->keys, left->keys + left->count, right->count * sizeof *right->keys);
    memcpy(right->ranks, left->ranks + left->count, right->count * sizeof *right->ranks);
    clear_ranks(left);
}

void frag_free_order_add(frag_free_order *order, const frag_free_key *key)
{
    if (order->page_count == 0)
        insert_page(order, 0);
    key_place place = find_place(order, key->bytes, key->address);
    if (order->pages[place.page]->count == PAGE_KEYS) {
        split_page(order, place.page);
        place = find_place(order, key->bytes, key->address);
    }
    frag_free_page *page = order->pages[place.page];
    size_t behind = page->count - place.index;
    frag_free_key *at = page->keys + place.index;
    int32_t *rank = page->ranks + place.index;
    memmove(at + 1, at, behind * sizeof *at);
    memmove(rank + 1, rank, behind * sizeof *rank);
    *at = *key;
    *rank = rank_of(key->bytes);
    page->count++;
}

/* A place behind the last key of a page is the first of the next. */
static key_place step_over_end(const frag_free_order *order, key_place place)
{
    if (place.index < order->pages[place.page]->count)
        return place;
    return (key_place){.page = place.page + 1};
}

static bool is_at(const frag_free_order *order, key_place place, uint64_t bytes, uint64_t address)
{
    if (place.page >= order->page_count || place.index >= order->pages[place.page]->count)
        return false;
    const frag_free_key *key = &order->pages[place.page]->keys[place.index];
    return key->bytes == bytes && key->address == address;
}

void frag_free_order_remove(frag_free_order *order, uint64_t bytes, uint64_t address)
{
    FRAG_ASSERT(order->page_count > 0);
    key_place place = {.page = order->found_page, .index = order->found_index};
    if (!is_at(order, place, bytes, address))
        place = step_over_end(order, find_place(order, bytes, address));
    FRAG_ASSERT(is_at(order, place, bytes, address));
    frag_free_page *page = order->pages[place.page];
    frag_free_key *at = page->keys + place.index;
    int32_t *rank = page->ranks + place.index;
    page->count--;
    size_t behind = page->count - place.index;
    memmove(at, at + 1, behind * sizeof *at);
    memmove(rank, rank + 1, behind * sizeof *rank);
    page->ranks[page->count] = RANK_MAX;
    if (page->count > 0)
        return;
    free(page);
    order->page_count--;
    memmove(order->pages + place.page, order->pages + place.page + 1,
            (order->page_count - place.page) * sizeof *order->pages);
}

uint32_t frag_free_order_from(frag_free_order *order, uint64_t bytes, uint64_t address)
{
    if (order->page_count == 0)
        return 0;
    key_place place = step_over_end(order, find_place(order, bytes, address));
    order->found_page = place.page;
    order->found_index = place.index;
    return place.page < order->page_count ? order->pages[place.page]->keys[place.index].block : 0;
}

void frag_free_order_destroy(frag_free_order *order)
{
    for (size_t i = 0; i < order->page_count; i++)
        free(order->pages[i]);
    free(order->pages);
    *order = (frag_free_order){0};
}
