/* Expandable segments: one reserved address range per list, mapped page by page.
 *
 * A request that no free block can serve maps pages behind (or between) free blocks, lowest place
 * first; releasing cached memory unmaps the whole pages inside free blocks. Unmapped parts are
 * blocks too, in a list of their own by address. Source: ExpandableSegment in
 * c10/cuda/CUDACachingAllocator.cpp. */
#include "allocators/pytorch/pytorch_state.h"
#include "base/bits.h"

#define NONE FRAG_PYTORCH_NONE

static bool is_unmapped(const frag_pytorch_block *at)
{
    return (at->list & FRAG_PYTORCH_UNMAPPED) != 0;
}

static bool is_in_use(const frag_pytorch_block *at)
{
    return (at->list & FRAG_PYTORCH_IN_USE) != 0;
}

/* ---- the list of unmapped blocks: short, in address order, linked through ages */

static void insert_unmapped(frag_policy *policy, uint32_t id)
{
    frag_pytorch_block *at = frag_pytorch_at(policy, id);
    uint32_t *link = &frag_pytorch_list_at(policy, at)->first_unmapped;
    while (*link != NONE && frag_pytorch_at(policy, *link)->address < at->address)
        link = &policy->ages[*link];
    policy->ages[id] = *link;
    *link = id;
}

static void remove_unmapped(frag_policy *policy, uint32_t id)
{
    uint32_t *link = &frag_pytorch_list_at(policy, frag_pytorch_at(policy, id))->first_unmapped;
    while (*link != id) {
        FRAG_ASSERT(*link != NONE);
        link = &policy->ages[*link];
    }
    *link = policy->ages[id];
}

/* ---- ranges */

/* The range a block lies in: of its list, the nearest that begins at or before it. */
static frag_pytorch_range *range_of(const frag_policy *policy, const frag_pytorch_block *at)
{
    frag_pytorch_range *found = NULL;
    for (uint32_t i = 1; i < policy->range_count; i++) {
        frag_pytorch_range *range = &policy->ranges[i];
        bool is_candidate = range->bytes > 0 &&
                            range->list == (at->list & FRAG_PYTORCH_LIST_MASK) &&
                            range->base <= at->address && at->address - range->base < range->bytes;
        if (is_candidate && (found == NULL || range->base > found->base))
            found = range;
    }
    return found;
}

static void add_range(frag_policy *policy, frag_pytorch_range range)
{
    uint32_t id = policy->spare_range;
    if (id != 0) {
        policy->spare_range = policy->ranges[id].next;
    } else {
        FRAG_ASSERT(policy->range_count < policy->range_max);
        id = policy->range_count++;
    }
    policy->ranges[id] = range;
}

static void drop_range(frag_policy *policy, frag_pytorch_range *range)
{
    if (!range->is_adopted)
        frag_device_unreserve(policy->device, range->base, range->bytes);
    *range = (frag_pytorch_range){.next = policy->spare_range};
    policy->spare_range = (uint32_t)(range - policy->ranges);
}

/* Pages of new ranges; a range keeps those it was made with. */
static uint64_t page_bytes_of(const frag_policy *policy, const frag_pytorch_list *list)
{
    return list->is_small ? FRAG_PYTORCH_SMALL_SEGMENT : policy->settings.large_segment_bytes;
}

static uint32_t add_unmapped(frag_policy *policy, uint32_t list, uint64_t address, uint64_t bytes)
{
    uint32_t id = frag_pytorch_take_record(policy);
    *frag_pytorch_at(policy, id) = (frag_pytorch_block){
        .address = address,
        .bytes = bytes,
        .list = list | FRAG_PYTORCH_EXPANDABLE | FRAG_PYTORCH_UNMAPPED,
        .number = frag_pytorch_next_number(policy),
    };
    insert_unmapped(policy, id);
    return id;
}

/* 9/8 of the capacity or what the settings say. */
static uint64_t range_at(const frag_pytorch_settings *settings, uint64_t capacity)
{
    uint64_t most = capacity + capacity / 8;
    if (settings->reserve_bytes == 0 && settings->reserve_ratio <= 0)
        return most;
    double wanted = (double)settings->reserve_bytes + settings->reserve_ratio * (double)capacity;
    return wanted < (double)most ? (uint64_t)wanted : most;
}

/* A device without a limit has no more address space than others: there it is what the trace could
 * fill. */
uint64_t frag_pytorch_range_bytes(const frag_policy *policy)
{
    uint64_t capacity = frag_device_range_capacity(policy->device);
    return capacity > FRAG_PYTORCH_RANGE_MAX / 2 ? policy->unlimited_range_bytes
                                                 : range_at(&policy->settings, capacity);
}

/* The least capacity with ranges of so many bytes; none has them: FRAG_PYTORCH_RANGE_MAX. */
static uint64_t capacity_for(const frag_pytorch_settings *settings, uint64_t bytes)
{
    uint64_t low = 0;
    uint64_t high = FRAG_PYTORCH_RANGE_MAX;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (range_at(settings, middle) >= bytes)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* What was decided takes a range of so many bytes, or one that has fewer (is_refused): on which
 * capacities that is so. */
static void note_range(const frag_policy *policy, uint64_t page_bytes, uint64_t bytes,
                       bool is_refused)
{
    const frag_pytorch_settings *settings = &policy->settings;
    const frag_device_needs *needs = &policy->device->needs;
    uint64_t least = (bytes - 1) / page_bytes * page_bytes + 1; /* before it is rounded up */
    bool is_known = is_refused ? needs->refused_min_bytes != FRAG_UNLIMITED &&
                                     range_at(settings, needs->refused_min_bytes - 1) < least
                               : range_at(settings, needs->max_bytes) >= least;
    if (!is_known)
        frag_device_note_need(policy->device, capacity_for(settings, least), is_refused);
}

/* A new range, all of it unmapped; NONE when no address space is left, the settings leave none, or
 * (from 2.14 on) the request is larger. */
static uint32_t reserve_range(frag_policy *policy, uint32_t list, uint64_t bytes)
{
    uint64_t page = page_bytes_of(policy, &policy->lists[list]);
    uint64_t size = frag_round_up(frag_pytorch_range_bytes(policy), page);
    uint64_t base = 0;
    if (size == 0)
        return NONE;
    if (frag_device_reserve(policy->device, size, &base) != FRAG_DEVICE_OK)
        return NONE;
    if (policy->settings.version >= 215) {
        note_range(policy, page, bytes, size < bytes);
        if (size < bytes) {
            frag_device_unreserve(policy->device, base, size);
            return NONE;
        }
    }
    add_range(policy,
              (frag_pytorch_range){.base = base, .bytes = size, .page_bytes = page, .list = list});
    return add_unmapped(policy, list, base, size);
}

/* ---- mapping */

/* Joins a free neighbour of the same kind (mapped or not) into a block that is in no list itself.
 */
static void absorb(frag_policy *policy, uint32_t id, uint32_t other)
{
    if (other == NONE)
        return;
    frag_pytorch_block *at = frag_pytorch_at(policy, id);
    const frag_pytorch_block *beside = frag_pytorch_at(policy, other);
    if (is_in_use(beside) || is_unmapped(beside) != is_unmapped(at))
        return;
    if (is_unmapped(beside))
        remove_unmapped(policy, other);
    else
        frag_pytorch_remove_free(policy, other);
    if (other == at->prev) {
        at->address = beside->address;
        at->prev = beside->prev;
        if (at->prev != NONE)
            frag_pytorch_at(policy, at->prev)->next = id;
    } else {
        at->next = beside->next;
        if (at->next != NONE)
            frag_pytorch_at(policy, at->next)->prev = id;
    }
    at->bytes += beside->bytes;
    frag_pytorch_give_record(policy, other);
}

/* Cuts the end of a block off as a block of its own, in no list. */
static uint32_t cut_behind(frag_policy *policy, uint32_t id, uint64_t bytes)
{
    uint32_t behind = frag_pytorch_take_record(policy);
    frag_pytorch_block *at = frag_pytorch_at(policy, id);
    *frag_pytorch_at(policy, behind) = (frag_pytorch_block){
        .address = at->address + bytes,
        .bytes = at->bytes - bytes,
        .prev = id,
        .next = at->next,
        .list = at->list,
        .number = frag_pytorch_number_beside(policy, at),
    };
    if (at->next != NONE)
        frag_pytorch_at(policy, at->next)->prev = behind;
    at->next = behind;
    at->bytes = bytes;
    return behind;
}

/* Maps the first pages of an unmapped block, at least wanted bytes; the block then is free and
 * merged. What was mapped before the trace need not end where a page ends, so the last page may be
 * a short one. false: refused; releases up to 2.12 take any refusal as out of memory, later ones
 * end the program where it is another. */
static bool map_front(frag_policy *policy, uint32_t id, uint64_t wanted)
{
    frag_pytorch_block *at = frag_pytorch_at(policy, id);
    const frag_pytorch_list *list = frag_pytorch_list_at(policy, at);
    const frag_pytorch_range *range = range_of(policy, at);
    uint64_t page_bytes = range->page_bytes;
    uint64_t bytes = frag_smaller(frag_round_up(wanted, page_bytes), at->bytes);
    /* large_segment_size_mb:21: the driver has no such pages. */
    if (page_bytes % policy->device->page_bytes != 0)
        return false;
    frag_device_set_map_unit(policy->device, page_bytes);
    if (frag_device_map(policy->device, at->address, bytes) != FRAG_DEVICE_OK)
        return false;
    note_range(policy, page_bytes, at->address + bytes - range->base, false);
    /* On a larger device there would be more of it. */
    if (at->address + bytes == range->base + range->bytes)
        policy->device->needs.is_capacity_read = true;
    remove_unmapped(policy, id);
    if (bytes < at->bytes)
        insert_unmapped(policy, cut_behind(policy, id, bytes));
    at->list &= ~FRAG_PYTORCH_UNMAPPED;
    absorb(policy, id, at->prev);
    absorb(policy, id, at->next);
    frag_pytorch_insert_free(policy, id);
    policy->reserved_bytes += bytes;
    if (policy->stats != NULL)
        frag_pytorch_count_device(policy, list, (int64_t)bytes, false);
    return true;
}

/* The first block, free or unmapped, from which free and unmapped blocks in a row reach the size.
 */
static uint32_t find_room(const frag_policy *policy, uint32_t list, uint64_t bytes)
{
    const frag_pytorch_block *blocks = policy->store.records;
    for (uint32_t at = policy->lists[list].first_unmapped; at != NONE; at = policy->ages[at]) {
        uint32_t first =
            blocks[at].prev != NONE && !is_in_use(&blocks[blocks[at].prev]) ? blocks[at].prev : at;
        uint64_t room = 0;
        for (uint32_t next = first; next != NONE && !is_in_use(&blocks[next]);
             next = blocks[next].next) {
            room += blocks[next].bytes;
            if (blocks[next].next == NONE) {
                const frag_pytorch_range *range = range_of(policy, &blocks[first]);
                note_range(policy, range->page_bytes, blocks[first].address - range->base + bytes,
                           room < bytes);
            }
            if (room >= bytes)
                return first;
        }
    }
    return NONE;
}

uint32_t frag_pytorch_expand(frag_policy *policy, uint32_t list, uint64_t bytes)
{
    uint32_t id = find_room(policy, list, bytes);
    if (id == NONE)
        id = reserve_range(policy, list, bytes);
    if (id == NONE)
        return NONE;
    if (is_unmapped(frag_pytorch_at(policy, id)) &&
        !map_front(policy, id, frag_smaller(frag_pytorch_at(policy, id)->bytes, bytes)))
        return NONE;
    while (frag_pytorch_at(policy, id)->bytes < bytes) {
        uint32_t next = frag_pytorch_at(policy, id)->next;
        if (next == NONE || !map_front(policy, next,
                                       frag_smaller(bytes - frag_pytorch_at(policy, id)->bytes,
                                                    frag_pytorch_at(policy, next)->bytes)))
            return NONE;
        id = next; /* it has absorbed the block before */
    }
    frag_pytorch_remove_free(policy, id);
    return id;
}

/* ---- searching */

/* A free block's bytes, and those of the unmapped block behind it into which it could grow. */
typedef struct reach {
    uint64_t bytes;
    const frag_pytorch_block *at;
    bool is_to_end; /* of its range */
} reach;

static reach reach_of(const frag_policy *policy, uint32_t id)
{
    const frag_pytorch_block *at = frag_pytorch_at(policy, id);
    const frag_pytorch_block *behind = at->next != NONE ? frag_pytorch_at(policy, at->next) : NULL;
    bool can_grow = behind != NULL && is_unmapped(behind);
    return (reach){at->bytes + (can_grow ? behind->bytes : 0), at,
                   can_grow && behind->next == NONE};
}

/* Does the next larger block reach less far? Where one of them reaches to the end of its range,
 * that depends on the capacity. */
static bool reaches_less(const frag_policy *policy, reach next, reach best)
{
    bool is_less = next.bytes < best.bytes;
    if (next.is_to_end == best.is_to_end)
        return is_less;
    reach end = next.is_to_end ? next : best;
    uint64_t other = next.is_to_end ? best.bytes : next.bytes + 1;
    const frag_pytorch_range *range = range_of(policy, end.at);
    note_range(policy, range->page_bytes, end.at->address - range->base + other,
               next.is_to_end == is_less);
    return is_less;
}

static uint32_t next_larger(const frag_policy *policy, const frag_pytorch_list *list, uint32_t id)
{
    uint32_t next = NONE;
    return frag_free_index_after(&policy->store, frag_pytorch_index_of(policy, list), id, &next)
               ? next
               : NONE;
}

uint32_t frag_pytorch_least_reach(const frag_policy *policy, const frag_pytorch_list *list,
                                  uint32_t id)
{
    while ((frag_pytorch_at(policy, id)->list & FRAG_PYTORCH_EXPANDABLE) != 0) {
        /* A block that cannot grow is the best already: what follows is at least as large. */
        reach best = reach_of(policy, id);
        if (best.bytes == best.at->bytes)
            break;
        uint32_t next = next_larger(policy, list, id);
        if (next == NONE || !reaches_less(policy, reach_of(policy, next), best))
            break;
        id = next;
    }
    return id;
}

uint32_t frag_pytorch_skip_expandable(const frag_policy *policy, const frag_pytorch_list *list,
                                      uint32_t id)
{
    while (id != NONE && (frag_pytorch_at(policy, id)->list & FRAG_PYTORCH_EXPANDABLE) != 0)
        id = next_larger(policy, list, id);
    return id;
}

/* ---- unmapping */

void frag_pytorch_unmap(frag_policy *policy, uint32_t id)
{
    frag_pytorch_block *at = frag_pytorch_at(policy, id);
    frag_pytorch_range *range = range_of(policy, at);
    FRAG_ASSERT(range != NULL);
    uint64_t start = range->base + frag_round_up(at->address - range->base, range->page_bytes);
    uint64_t end = at->address + at->bytes;
    end -= (end - range->base) % range->page_bytes;
    if (end <= start)
        return;
    const frag_pytorch_list *list = frag_pytorch_list_at(policy, at);
    frag_pytorch_call_for(policy, list);
    frag_device_stream_wait(policy->device, list->stream);
    frag_device_unmap(policy->device, start, end - start);
    frag_pytorch_remove_free(policy, id);
    if (at->address < start)
        frag_pytorch_insert_free(policy, frag_pytorch_cut_front(policy, id, start - at->address));
    if (at->address + at->bytes > end)
        frag_pytorch_insert_free(policy, cut_behind(policy, id, end - start));
    at->list |= FRAG_PYTORCH_UNMAPPED;
    absorb(policy, id, at->prev);
    absorb(policy, id, at->next);
    insert_unmapped(policy, id);
    policy->reserved_bytes -= end - start;
    frag_pytorch_pool *pool = frag_pytorch_pool_at(policy, list);
    if (pool != NULL)
        pool->device_count--;
    if (policy->stats != NULL)
        frag_pytorch_count_device(policy, list, -(int64_t)(end - start), false);
    if (at->prev == NONE && at->next == NONE) {
        remove_unmapped(policy, id);
        drop_range(policy, range);
        frag_pytorch_give_record(policy, id);
    }
}

/* ---- state from before a trace */

/* The unmapped end of a range; NONE when it is mapped up to its end. */
static uint32_t find_tail(const frag_policy *policy, const frag_pytorch_range *range)
{
    for (uint32_t id = policy->lists[range->list].first_unmapped; id != NONE;
         id = policy->ages[id]) {
        const frag_pytorch_block *at = frag_pytorch_at(policy, id);
        if (at->next == NONE && at->address > range->base &&
            at->address + at->bytes == range->base + range->bytes)
            return id;
    }
    return NONE;
}

void frag_pytorch_end_ranges(frag_policy *policy, uint64_t address)
{
    for (uint32_t i = 1; i < policy->range_count; i++) {
        frag_pytorch_range *range = &policy->ranges[i];
        uint32_t tail = find_tail(policy, range);
        if (tail == NONE ||
            frag_pytorch_at(policy, tail)->address + frag_pytorch_at(policy, tail)->bytes <=
                address)
            continue;
        frag_pytorch_block *at = frag_pytorch_at(policy, tail);
        range->bytes = address - range->base;
        at->bytes = address - at->address;
        if (at->bytes == 0) {
            remove_unmapped(policy, tail);
            frag_pytorch_at(policy, at->prev)->next = NONE;
            frag_pytorch_give_record(policy, tail);
        }
    }
}

/* Whether memory from before the trace lies in a range that began below it. */
static void note_adopted(const frag_policy *policy, uint32_t list, uint64_t address, uint64_t bytes,
                         bool is_beyond)
{
    for (uint32_t i = 1; i < policy->range_count; i++) {
        const frag_pytorch_range *range = &policy->ranges[i];
        if (range->bytes > 0 && range->list == list && range->base < address &&
            (is_beyond || address - range->base < range->bytes))
            note_range(policy, range->page_bytes, address + bytes - range->base, is_beyond);
    }
}

uint32_t frag_pytorch_adopt_range(frag_policy *policy, uint32_t list, uint64_t address,
                                  uint64_t bytes)
{
    uint64_t page = page_bytes_of(policy, &policy->lists[list]);
    uint32_t id = policy->lists[list].first_unmapped;
    while (id != NONE && (address < frag_pytorch_at(policy, id)->address ||
                          address + bytes > frag_pytorch_at(policy, id)->address +
                                                frag_pytorch_at(policy, id)->bytes))
        id = policy->ages[id];
    note_adopted(policy, list, address, bytes, id == NONE);
    if (id == NONE) {
        /* Where the range began is not recorded; the lowest mapped address is the likeliest place.
         */
        uint64_t size = frag_round_up(
            frag_pytorch_range_bytes(policy) > bytes ? frag_pytorch_range_bytes(policy) : bytes,
            page);
        frag_pytorch_end_ranges(policy, address);
        add_range(policy, (frag_pytorch_range){.base = address,
                                               .bytes = size,
                                               .page_bytes = page,
                                               .list = list,
                                               .is_adopted = true});
        frag_device_keep_clear(policy->device, address, size);
        id = add_unmapped(policy, list, address, size);
    }
    if (frag_pytorch_at(policy, id)->address < address) {
        uint32_t front =
            frag_pytorch_cut_front(policy, id, address - frag_pytorch_at(policy, id)->address);
        remove_unmapped(policy, id);
        insert_unmapped(policy, front);
    } else {
        remove_unmapped(policy, id);
    }
    if (frag_pytorch_at(policy, id)->bytes > bytes)
        insert_unmapped(policy, cut_behind(policy, id, bytes));
    frag_pytorch_at(policy, id)->list &= ~FRAG_PYTORCH_UNMAPPED;
    return id;
}

bool frag_pytorch_check_ranges(const frag_policy *policy, frag_error *error)
{
    for (uint32_t i = 0; i < policy->list_count; i++) {
        uint64_t last = 0;
        for (uint32_t id = policy->lists[i].first_unmapped; id != NONE; id = policy->ages[id]) {
            const frag_pytorch_block *at = frag_pytorch_at(policy, id);
            if (!is_unmapped(at) || at->address < last || range_of(policy, at) == NULL)
                return frag_fail(error, FRAG_E_INPUT,
                                 "unmapped block %u is out of order or in no range", id);
            last = at->address + at->bytes;
        }
    }
    return true;
}
