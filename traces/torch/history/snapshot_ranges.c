#include "traces/torch/history/snapshot_ranges.h"

#include <string.h>

#include "base/memory.h"

enum { PAGE_RANGES = 64 };

struct frag_held_page {
    size_t count;
    frag_held_range ranges[PAGE_RANGES];
};

/* Where a range is, or would go. */
typedef struct range_place {
    size_t page;
    size_t index;
} range_place;

/* The last range that begins at or below address; *is_found is false when all begin above it. What
 * the next comparison says no processor can guess, so both halvings choose without a branch. */
static range_place find_place(const frag_held_ranges *ranges, uint64_t address, bool *is_found)
{
    range_place place = {0};
    for (size_t count = ranges->page_count; count > 1;) {
        size_t half = count / 2;
        place.page += ranges->pages[place.page + half]->ranges[0].address <= address ? half : 0;
        count -= half;
    }
    *is_found = ranges->page_count > 0 && ranges->pages[place.page]->ranges[0].address <= address;
    if (!*is_found)
        return (range_place){0};
    const frag_held_page *page = ranges->pages[place.page];
    for (size_t count = page->count; count > 1;) {
        size_t half = count / 2;
        place.index += page->ranges[place.index + half].address <= address ? half : 0;
        count -= half;
    }
    return place;
}

static frag_held_range *range_at(const frag_held_ranges *ranges, range_place place)
{
    return &ranges->pages[place.page]->ranges[place.index];
}

/* The range after a place, or NULL. */
static frag_held_range *range_after(const frag_held_ranges *ranges, range_place place)
{
    if (place.index + 1 < ranges->pages[place.page]->count)
        return &ranges->pages[place.page]->ranges[place.index + 1];
    if (place.page + 1 < ranges->page_count)
        return &ranges->pages[place.page + 1]->ranges[0];
    return NULL;
}

frag_held_range *frag_held_ranges_find(const frag_held_ranges *ranges, uint64_t address)
{
    bool is_found = false;
    range_place place = find_place(ranges, address, &is_found);
    if (!is_found)
        return NULL;
    frag_held_range *range = range_at(ranges, place);
    return address - range->address < range->bytes ? range : NULL;
}

frag_held_range *frag_held_ranges_overlap(const frag_held_ranges *ranges, uint64_t address,
                                          uint64_t bytes)
{
    bool is_found = false;
    if (ranges->page_count == 0)
        return NULL;
    range_place place = find_place(ranges, address, &is_found);
    frag_held_range *next = &ranges->pages[0]->ranges[0];
    if (is_found) {
        frag_held_range *range = range_at(ranges, place);
        if (address - range->address < range->bytes)
            return range;
        next = range_after(ranges, place);
    }
    return next != NULL && next->address - address < bytes ? next : NULL;
}

static void insert_page(frag_held_ranges *ranges, size_t at)
{
    ranges->pages = frag_grow(ranges->pages, &ranges->page_capacity, ranges->page_count + 1,
                              sizeof(frag_held_page *));
    memmove(ranges->pages + at + 1, ranges->pages + at,
            (ranges->page_count - at) * sizeof(frag_held_page *));
    ranges->pages[at] = frag_alloc(1, sizeof(frag_held_page));
    ranges->page_count++;
}

static void split_page(frag_held_ranges *ranges, size_t at)
{
    insert_page(ranges, at + 1);
    frag_held_page *left = ranges->pages[at];
    frag_held_page *right = ranges->pages[at + 1];
    right->count = left->count / 2;
    left->count -= right->count;
    memcpy(right->ranges, left->ranges + left->count, right->count * sizeof *right->ranges);
}

/* Puts a range, which overlaps no other, behind the last one below it. */
static void insert_range(frag_held_ranges *ranges, const frag_held_range *range)
{
    if (ranges->page_count == 0)
        insert_page(ranges, 0);
    bool has_lower = false;
    range_place place = find_place(ranges, range->address, &has_lower);
    if (ranges->page_count == 1 && ranges->pages[0]->count == 0)
        has_lower = false;
    if (ranges->pages[place.page]->count == PAGE_RANGES) {
        split_page(ranges, place.page);
        place = find_place(ranges, range->address, &has_lower);
    }
    size_t index = has_lower ? place.index + 1 : 0;
    frag_held_page *page = ranges->pages[place.page];
    memmove(page->ranges + index + 1, page->ranges + index,
            (page->count - index) * sizeof *page->ranges);
    page->ranges[index] = *range;
    page->count++;
    ranges->count++;
}

static void remove_range(frag_held_ranges *ranges, range_place place)
{
    frag_held_page *page = ranges->pages[place.page];
    page->count--;
    memmove(page->ranges + place.index, page->ranges + place.index + 1,
            (page->count - place.index) * sizeof *page->ranges);
    ranges->count--;
    if (page->count > 0)
        return;
    frag_free(page);
    ranges->page_count--;
    memmove(ranges->pages + place.page, ranges->pages + place.page + 1,
            (ranges->page_count - place.page) * sizeof(frag_held_page *));
}

bool frag_held_ranges_add(frag_held_ranges *ranges, const frag_held_range *range)
{
    bool has_lower = false;
    range_place place = find_place(ranges, range->address, &has_lower);
    const frag_held_range *next = NULL;
    if (has_lower) {
        const frag_held_range *lower = range_at(ranges, place);
        if (range->address - lower->address < lower->bytes)
            return false;
        next = range_after(ranges, place);
    } else if (ranges->page_count > 0) {
        next = &ranges->pages[0]->ranges[0];
    }
    if (next != NULL && next->address - range->address < range->bytes)
        return false;
    insert_range(ranges, range);
    return true;
}

static bool may_join(const frag_held_range *left, const frag_held_range *right)
{
    return left->is_expandable && right->is_expandable && left->stream == right->stream &&
           left->pool == right->pool && left->address + left->bytes == right->address;
}

bool frag_held_ranges_map(frag_held_ranges *ranges, const frag_held_range *range)
{
    if (!frag_held_ranges_add(ranges, range))
        return false;
    bool is_found = false;
    range_place place = find_place(ranges, range->address, &is_found);
    frag_held_range *middle = range_at(ranges, place);
    frag_held_range *right = range_after(ranges, place);
    if (right != NULL && may_join(middle, right)) {
        uint64_t end = right->address;
        middle->bytes += right->bytes;
        middle->is_small = right->is_small;
        remove_range(ranges, find_place(ranges, end, &is_found));
    }
    frag_held_range *left =
        range->address > 0 ? frag_held_ranges_find(ranges, range->address - 1) : NULL;
    place = find_place(ranges, range->address, &is_found);
    middle = range_at(ranges, place);
    if (left != NULL && may_join(left, middle)) {
        left->bytes += middle->bytes;
        remove_range(ranges, place);
    }
    return true;
}

void frag_held_ranges_remove(frag_held_ranges *ranges, uint64_t address)
{
    bool is_found = false;
    range_place place = find_place(ranges, address, &is_found);
    if (is_found && range_at(ranges, place)->address == address)
        remove_range(ranges, place);
}

bool frag_held_ranges_cut(frag_held_ranges *ranges, uint64_t address, uint64_t bytes)
{
    frag_held_range *range = frag_held_ranges_find(ranges, address);
    if (range == NULL || !range->is_expandable)
        return false;
    uint64_t before = address - range->address;
    if (bytes == 0 || bytes > range->bytes - before)
        return false;
    frag_held_range tail = *range;
    tail.address = address + bytes;
    tail.bytes = range->bytes - before - bytes;
    if (before > 0)
        range->bytes = before;
    else
        frag_held_ranges_remove(ranges, address);
    if (tail.bytes > 0)
        insert_range(ranges, &tail);
    return true;
}

frag_held_range *frag_held_ranges_list(const frag_held_ranges *ranges)
{
    frag_held_range *list = frag_alloc(ranges->count, sizeof *list);
    size_t count = 0;
    for (size_t i = 0; i < ranges->page_count; i++) {
        const frag_held_page *page = ranges->pages[i];
        memcpy(list + count, page->ranges, page->count * sizeof *list);
        count += page->count;
    }
    return list;
}

void frag_held_ranges_destroy(frag_held_ranges *ranges)
{
    for (size_t i = 0; i < ranges->page_count; i++)
        frag_free(ranges->pages[i]);
    frag_free(ranges->pages);
    *ranges = (frag_held_ranges){0};
}
