#include "allocators/index/free_index.h"

/* So many blocks or fewer, as nearly always, are put in order by moving each behind those that come
 * before it; more by merging, which takes longer for few. */
enum { MOVED_ONE_BY_ONE = 8 };

static size_t whole_lines(uint64_t bytes)
{
    return (size_t)frag_align_up(bytes, 64);
}

size_t frag_free_records_bytes(uint32_t count)
{
    return whole_lines((uint64_t)count * sizeof(frag_free_record));
}

/* Tables are never needed for more indexes than there are blocks. */
static size_t link_count(uint32_t id_count, uint64_t index_count)
{
    uint64_t table_count = index_count < id_count ? index_count : id_count;
    return (size_t)(id_count + FRAG_FREE_PAGE_LINKS + table_count * FRAG_FREE_TABLE_LINKS);
}

size_t frag_free_index_store_bytes(uint32_t id_count, uint64_t index_count)
{
    return whole_lines(link_count(id_count, index_count) * sizeof(frag_free_link)) +
           whole_lines((id_count / FRAG_FREE_LANE_EVERY + 1) * sizeof(frag_free_link));
}

void *frag_free_records_take(frag_arena *arena, uint32_t count)
{
    frag_free_record *records = frag_arena_take(arena, count, sizeof *records);
    records[0].bytes = UINT64_MAX;
    return records;
}

void frag_free_index_store_create(frag_free_index_store *store, frag_arena *arena, void *records,
                                  uint32_t id_count, uint64_t index_count, bool is_ranked)
{
    *store = (frag_free_index_store){
        .records = records,
        .is_ranked = is_ranked,
        .links = frag_arena_take(arena, link_count(id_count, index_count), sizeof(frag_free_link)),
        .lanes =
            frag_arena_take(arena, id_count / FRAG_FREE_LANE_EVERY + 1, sizeof(frag_free_link)),
        .id_count = id_count,
    };
    uintptr_t end = (uintptr_t)(store->links + id_count) / sizeof *store->links;
    store->first_table = id_count + (uint32_t)(frag_align_up(end, FRAG_FREE_PAGE_LINKS) - end);
}

/* The head of the bin that is always empty links spare tables. */
static frag_free_link *spare_link(const frag_free_index_store *store, uint32_t heads)
{
    return &store->links[heads];
}

uint32_t frag_free_table_open(frag_free_index_store *store, frag_free_index *index)
{
    uint32_t heads = store->spare_table;
    if (heads != 0) {
        store->spare_table = spare_link(store, heads)->previous;
        spare_link(store, heads)->previous = 0;
    } else {
        heads =
            store->first_table + store->table_count * FRAG_FREE_TABLE_LINKS + FRAG_FREE_TABLE_WORDS;
        frag_free_words(store, heads)[FRAG_FREE_WORD_COUNT] = ~(uint64_t)0;
        store->table_count++;
    }
    index->heads = heads;
    return heads;
}

void frag_free_table_close_if_empty(frag_free_index_store *store, frag_free_index *index)
{
    uint32_t heads = index->heads;
    if (frag_free_bin_from(store, heads, 0) < FRAG_FREE_BIN_COUNT)
        return;
    spare_link(store, heads)->previous = store->spare_table;
    store->spare_table = heads;
    index->heads = 0;
}

/* Does the block at a place come before another one? The place that is none comes last. */
static inline bool precedes(const frag_free_index_store *store, uint32_t place, uint32_t other)
{
    const uint64_t *records = store->records;
    const uint64_t *one = &records[(size_t)place * FRAG_FREE_RECORD_WORDS];
    const uint64_t *two = &records[(size_t)other * FRAG_FREE_RECORD_WORDS];
    if (!store->is_ranked)
        return frag_pair_is_below(one[1], one[0], two[1], two[0]);
    uint32_t rank = ((const uint32_t *)one)[FRAG_FREE_RANK_WORD];
    uint32_t other_rank = ((const uint32_t *)two)[FRAG_FREE_RANK_WORD];
    return frag_triple_is_below(one[1], rank, one[0], two[1], other_rank, two[0]);
}

/* ---- lanes */

/* The heads of the table that this head belongs to. */
static uint32_t heads_of(const frag_free_index_store *store, uint32_t head)
{
    uint32_t number = (head - store->first_table) / FRAG_FREE_TABLE_LINKS;
    return store->first_table + number * FRAG_FREE_TABLE_LINKS + FRAG_FREE_TABLE_WORDS;
}

/* What follows a block in its lane, or where the lane of a head begins. */
static uint32_t *after_in_lane(const frag_free_index_store *store, uint32_t heads, uint32_t place)
{
    if (place < store->id_count)
        return &store->lanes[place / FRAG_FREE_LANE_EVERY].next;
    return (uint32_t *)(void *)(store->links + heads + FRAG_FREE_BIN_COUNT) + (place - heads);
}

static void join_lane(const frag_free_index_store *store, uint32_t heads, uint32_t previous,
                      uint32_t place)
{
    uint32_t *after = after_in_lane(store, heads, previous);
    store->lanes[place / FRAG_FREE_LANE_EVERY] = (frag_free_link){*after, previous};
    if (*after != 0)
        store->lanes[*after / FRAG_FREE_LANE_EVERY].previous = place;
    *after = place;
    frag_free_words(store, heads)[FRAG_FREE_LANE_WORD]++;
}

void frag_free_lane_leave(const frag_free_index_store *store, uint32_t heads, uint32_t id)
{
    uint64_t *in_lanes = &frag_free_words(store, heads)[FRAG_FREE_LANE_WORD];
    if (*in_lanes == 0)
        return;
    frag_free_link *link = &store->lanes[id / FRAG_FREE_LANE_EVERY];
    if (link->previous == 0)
        return;
    *after_in_lane(store, heads, link->previous) = link->next;
    if (link->next != 0)
        store->lanes[link->next / FRAG_FREE_LANE_EVERY].previous = link->previous;
    *link = (frag_free_link){0, 0};
    --*in_lanes;
}

/* Does a place come before another one, or, where that is 0, has it fewer bytes than size? */
static bool is_short_of(const frag_free_index_store *store, uint32_t place, uint32_t other,
                        uint64_t size)
{
    return other != 0 ? precedes(store, place, other) : frag_free_bytes_at(store, place) < size;
}

/* The last place of a head's list that is short of that. It is `previous`, which is, or behind it;
 * all is in order from there on. */
static FRAG_NOINLINE uint32_t walk_far(const frag_free_index_store *store, uint32_t head,
                                       uint32_t previous, uint32_t other, uint64_t size)
{
    uint32_t heads = heads_of(store, head);
    FRAG_ASSERT(head - heads < FRAG_FREE_LANE_COUNT);
    uint32_t in_lane = head;
    if (frag_free_words(store, heads)[FRAG_FREE_LANE_WORD] != 0) {
        uint32_t next = *after_in_lane(store, heads, head);
        for (; next != 0 && is_short_of(store, next, other, size);
             next = *after_in_lane(store, heads, next))
            in_lane = next;
    }
    if (in_lane != head && (previous == head || precedes(store, previous, in_lane)))
        previous = in_lane;
    for (uint32_t next = store->links[previous].next; is_short_of(store, next, other, size);
         next = store->links[next].next) {
        previous = next;
        if (next % FRAG_FREE_LANE_EVERY == 0) {
            join_lane(store, heads, in_lane, next);
            store->links[head].previous |= FRAG_FREE_HAS_LANE;
            in_lane = next;
        }
    }
    return previous;
}

/* ---- lists */

/* Two lists in order made one, linked forward only. */
static uint32_t joined(const frag_free_index_store *store, uint32_t one, uint32_t two)
{
    uint32_t first = 0;
    uint32_t *end = &first;
    while (one != 0 && two != 0) {
        uint32_t *least = precedes(store, two, one) ? &two : &one;
        *end = *least;
        end = &store->links[*least].next;
        *least = *end;
    }
    *end = one != 0 ? one : two;
    return first;
}

/* The first count blocks of a list of as many at least, in order and linked forward only; the list
 * begins behind them then. */
static uint32_t sorted(const frag_free_index_store *store, uint32_t heads, uint32_t *list,
                       uint32_t count)
{
    if (count > 1) {
        uint32_t half = sorted(store, heads, list, count / 2);
        return joined(store, half, sorted(store, heads, list, count - count / 2));
    }
    uint32_t first = *list;
    if (first % FRAG_FREE_LANE_EVERY == 0)
        frag_free_lane_leave(store, heads, first);
    *list = store->links[first].next;
    store->links[first].next = 0;
    return first;
}

/* Links a block that no list holds behind those that come before it, from a place on behind which
 * all is in order. */
static inline void put_from(const frag_free_index_store *store, uint32_t head, uint32_t previous,
                            uint32_t place)
{
    for (uint32_t steps = 0; precedes(store, store->links[previous].next, place); steps++) {
        previous = store->links[previous].next;
        if (FRAG_UNLIKELY(steps == FRAG_FREE_STEPS_NEAR)) {
            previous = walk_far(store, head, previous, place, 0);
            break;
        }
    }
    frag_free_link_behind(store->links, previous, place);
}

/* Puts the first count blocks of a list among those behind them, which are in order: n log n
 * comparisons and one walk. */
static void merge_in(const frag_free_index_store *store, uint32_t head, uint32_t count)
{
    frag_free_link *links = store->links;
    uint32_t rest = links[head].next;
    uint32_t place = sorted(store, heads_of(store, head), &rest, count);
    links[head].next = rest;
    links[rest].previous = head;
    uint32_t previous = head;
    while (place != 0) {
        uint32_t following = links[place].next;
        put_from(store, head, previous, place);
        previous = place;
        place = following;
    }
}

/* Longer lists that are put in order at once get a lane before anybody walks them. */
#define LANE_FROM 256u

/* The first blocks of a list, up to so many, may be out of order. */
static void put_in_order(const frag_free_index_store *store, uint32_t head, uint32_t unsorted)
{
    const frag_free_link *links = store->links;
    uint32_t place = links[head].next;
    FRAG_ASSERT(place != 0);
    /* Of the blocks counted some may have gone again; then some that are in order are among these.
     */
    uint32_t count = 1;
    for (; count < unsorted && links[place].next != 0; count++)
        place = links[place].next;
    if (FRAG_UNLIKELY(count > MOVED_ONE_BY_ONE)) {
        merge_in(store, head, count);
        if (count > LANE_FROM)
            (void)walk_far(store, head, head, 0, UINT64_MAX);
        return;
    }
    while (place != head) {
        uint32_t before = links[place].previous;
        if (precedes(store, links[place].next, place))
            put_from(store, head, frag_free_unlink(store->links, place).next, place);
        place = before;
    }
}

uint32_t frag_free_list_settle(const frag_free_index_store *store, uint32_t head, uint64_t bytes)
{
    frag_free_link *links = store->links;
    uint32_t unsorted = links[head].previous & ~FRAG_FREE_HAS_LANE;
    links[head].previous &= FRAG_FREE_HAS_LANE;
    if (unsorted != 0)
        put_in_order(store, head, unsorted);
    if (FRAG_LIKELY(links[head].previous == 0))
        return links[head].next;
    if (*after_in_lane(store, heads_of(store, head), head) == 0)
        links[head].previous = 0; /* all have left it */
    return bytes > 0 ? links[walk_far(store, head, head, 0, bytes)].next : links[head].next;
}

/* The first place of the highest bin; 0: the index is empty. */
static uint32_t first_of_top(const frag_free_index_store *store, uint32_t heads)
{
    if (heads == 0)
        return 0;
    const uint64_t *words = frag_free_words(store, heads);
    for (uint32_t at = FRAG_FREE_WORD_COUNT; at-- > 0;)
        if (words[at] != 0)
            return frag_free_list_first(store, heads + at * 64 + frag_bit_high(words[at]));
    return 0;
}

bool frag_free_index_last(const frag_free_index_store *store, const frag_free_index *index,
                          uint32_t *id)
{
    uint32_t last = first_of_top(store, index->heads);
    if (last == 0)
        return false;
    while (store->links[last].next != 0)
        last = store->links[last].next;
    *id = last;
    return true;
}

void frag_free_index_visit(const frag_free_index_store *store, const frag_free_index *index,
                           frag_free_index_visitor *visit, void *context)
{
    uint32_t heads = index->heads;
    if (heads == 0)
        return;
    for (uint32_t number = frag_free_bin_from(store, heads, 0); number < FRAG_FREE_BIN_COUNT;
         number = frag_free_bin_from(store, heads, number + 1))
        for (uint32_t place = frag_free_list_first(store, heads + number); place != 0;
             place = store->links[place].next)
            visit(context, place);
}

static void count_block(void *context, uint32_t id)
{
    (void)id;
    uint32_t *count = context;
    (*count)++;
}

uint32_t frag_free_index_count(const frag_free_index_store *store, const frag_free_index *index)
{
    uint32_t count = 0;
    frag_free_index_visit(store, index, count_block, &count);
    return count;
}

/* Audits one bin and adds the blocks in it to *count. */
static bool check_bin(const frag_free_index_store *store, uint32_t heads, uint32_t number,
                      uint64_t *count, frag_error *error)
{
    const frag_free_link *links = store->links;
    uint32_t head = heads + number;
    bool is_marked = (frag_free_words(store, heads)[number / 64] >> (number % 64) & 1) != 0;
    if (is_marked != (links[head].next != 0))
        return frag_fail(error, FRAG_E_INPUT, "free index: bin %u is marked against what it holds",
                         number);
    uint64_t unsorted =
        (uint64_t)(links[head].previous & ~FRAG_FREE_HAS_LANE) + 1; /* and the one behind those */
    uint32_t previous = head;
    bool has_lane =
        number < FRAG_FREE_LANE_COUNT && frag_free_words(store, heads)[FRAG_FREE_LANE_WORD] != 0;
    uint32_t in_lane = has_lane ? *after_in_lane(store, heads, head) : 0;
    for (uint32_t place = links[head].next; place != 0; place = links[place].next) {
        in_lane = place == in_lane ? *after_in_lane(store, heads, place) : in_lane;
        if (place >= store->id_count || links[place].previous != previous ||
            ++*count >= store->id_count)
            return frag_fail(error, FRAG_E_INPUT, "free index: the list of bin %u is broken",
                             number);
        if (frag_free_bin_of(frag_free_bytes_at(store, place)) != number)
            return frag_fail(error, FRAG_E_INPUT, "free index: block %u is in the wrong bin",
                             place);
        if (unsorted == 0 && !precedes(store, previous, place))
            return frag_fail(error, FRAG_E_INPUT, "free index: block %u is out of order", place);
        unsorted -= unsorted != 0 ? 1 : 0;
        previous = place;
    }
    if (in_lane != 0)
        return frag_fail(error, FRAG_E_INPUT, "free index: the lane of bin %u leaves its list",
                         number);
    return true;
}

bool frag_free_index_check(const frag_free_index_store *store, const frag_free_index *index,
                           frag_error *error)
{
    uint32_t heads = index->heads;
    if (frag_free_bytes_at(store, 0) != UINT64_MAX)
        return frag_fail(error, FRAG_E_INPUT, "free index: no record ends the walks");
    if (heads == 0)
        return true;
    uint64_t count = 0;
    for (uint32_t number = 0; number < FRAG_FREE_BIN_COUNT; number++)
        if (!check_bin(store, heads, number, &count, error))
            return false;
    if (frag_free_words(store, heads)[FRAG_FREE_WORD_COUNT] != ~(uint64_t)0)
        return frag_fail(error, FRAG_E_INPUT, "free index: searches would not end");
    return true;
}
