#include "allocators/free_index.h"

#include <string.h>

static size_t whole_lines(uint64_t bytes)
{
    return (size_t)frag_align_up(bytes, 64);
}

size_t frag_free_index_store_bytes(uint32_t id_count, uint64_t index_count, bool keeps_least)
{
    uint64_t table_count = index_count < id_count ? index_count : id_count;
    uint64_t table_bytes = whole_lines(sizeof(frag_free_table)) +
                           (keeps_least ? whole_lines(sizeof(frag_free_least)) : 0);
    uint64_t places = (uint64_t)id_count + 1;
    uint64_t heads = table_count * FRAG_FREE_BIN_COUNT;
    return whole_lines(places * sizeof(frag_free_node)) +
           whole_lines((places + heads) * sizeof(frag_free_link)) + table_count * table_bytes + 64;
}

void frag_free_index_store_create(frag_free_index_store *store, frag_arena *arena,
                                  uint32_t id_count, uint64_t index_count, bool keeps_least)
{
    uint64_t table_count = index_count < id_count ? index_count : id_count;
    *store =
        (frag_free_index_store){.arena = arena, .id_count = id_count, .keeps_least = keeps_least};
    store->nodes = frag_arena_take(arena, (size_t)id_count + 1, sizeof *store->nodes);
    store->links = frag_arena_take(
        arena, (size_t)(id_count + 1 + table_count * FRAG_FREE_BIN_COUNT), sizeof *store->links);
    store->nodes[0].size = UINT64_MAX;
}

frag_free_table *frag_free_table_open(frag_free_index *index)
{
    frag_free_index_store *store = index->store;
    frag_free_table *table = store->spare_tables;
    if (table != NULL) {
        store->spare_tables = table->next_spare;
    } else {
        table = frag_arena_take(store->arena, 1, sizeof *table);
        table->first_head = store->id_count + 1 + store->table_count * FRAG_FREE_BIN_COUNT;
        store->table_count++;
        if (store->keeps_least) {
            table->least = frag_arena_take(store->arena, 1, sizeof *table->least);
            memset(table->least, 0xff, sizeof *table->least);
        }
    }
    index->table = table;
    return table;
}

void frag_free_table_close(frag_free_index *index)
{
    index->table->next_spare = index->store->spare_tables;
    index->store->spare_tables = index->table;
    index->table = NULL;
}

void frag_free_least_insert(frag_free_least *least, uint32_t bin, uint64_t tie, uint32_t id)
{
    least->bin_ties[bin] = tie;
    least->bin_ids[bin] = id;
    if (tie < least->octave_ties[bin / 16]) {
        least->octave_ties[bin / 16] = tie;
        least->octave_ids[bin / 16] = id;
    }
}

/* Which bins of an octave hold something. */
static inline uint64_t octave_bits(const frag_free_table *table, uint32_t octave)
{
    return table->words[octave / 4] >> (octave % 4 * 16) & 0xffff;
}

/* The block that was the least of its bin has left it, or has a higher tie now. */
void frag_free_least_repair(const frag_free_index *index, uint32_t bin, uint32_t id)
{
    const frag_free_table *table = index->table;
    const frag_free_node *nodes = index->store->nodes;
    const frag_free_link *links = index->store->links;
    frag_free_least *least = table->least;
    uint64_t tie = UINT64_MAX;
    uint32_t tie_id = UINT32_MAX;
    for (uint32_t place = frag_free_bin_first(index, bin); place != 0; place = links[place].next) {
        if (nodes[place].tie < tie) {
            tie = nodes[place].tie;
            tie_id = place - 1;
        }
    }
    least->bin_ties[bin] = tie;
    least->bin_ids[bin] = tie_id;
    uint32_t octave = bin / 16;
    if (least->octave_ids[octave] != id)
        return;
    tie = UINT64_MAX;
    tie_id = UINT32_MAX;
    for (uint64_t bits = octave_bits(table, octave); bits != 0; bits &= bits - 1) {
        uint32_t i = octave * 16 + frag_bit_low(bits);
        bool is_lower = least->bin_ties[i] < tie;
        tie = is_lower ? least->bin_ties[i] : tie;
        tie_id = is_lower ? least->bin_ids[i] : tie_id;
    }
    least->octave_ties[octave] = tie;
    least->octave_ids[octave] = tie_id;
}

bool frag_free_index_first(const frag_free_index *index, uint64_t size, uint32_t *id)
{
    const frag_free_table *table = index->table;
    if (table == NULL)
        return false;
    const frag_free_node *nodes = index->store->nodes;
    const frag_free_link *links = index->store->links;
    uint64_t tie = UINT64_MAX;
    uint32_t lowest = 0;
    uint32_t number = frag_free_bin_of(size);
    for (uint32_t place = frag_free_bin_first(index, number); place != 0;
         place = links[place].next) {
        bool is_lower = nodes[place].size >= size && nodes[place].tie < tie;
        tie = is_lower ? nodes[place].tie : tie;
        lowest = is_lower ? place - 1 : lowest;
    }
    const frag_free_least *least = table->least;
    uint32_t octave = number / 16;
    uint64_t above = octave_bits(table, octave) & (~(uint64_t)1 << (number % 16));
    for (; above != 0; above &= above - 1) {
        uint32_t i = octave * 16 + frag_bit_low(above);
        bool is_lower = least->bin_ties[i] < tie;
        tie = is_lower ? least->bin_ties[i] : tie;
        lowest = is_lower ? least->bin_ids[i] : lowest;
    }
    uint32_t top_word = frag_bit_high(table->summary);
    uint32_t top = (top_word * 64 + frag_bit_high(table->words[top_word])) / 16;
    for (uint32_t i = octave + 1; i <= top; i += FRAG_FREE_OCTAVE_STEP)
        for (uint32_t k = i; k < i + FRAG_FREE_OCTAVE_STEP; k++) {
            bool is_lower = least->octave_ties[k] < tie;
            tie = is_lower ? least->octave_ties[k] : tie;
            lowest = is_lower ? least->octave_ids[k] : lowest;
        }
    if (tie == UINT64_MAX)
        return false;
    *id = lowest;
    return true;
}

bool frag_free_index_next(const frag_free_index *index, uint64_t size, uint64_t from, uint32_t *id)
{
    const frag_free_table *table = index->table;
    if (table == NULL)
        return false;
    const frag_free_node *nodes = index->store->nodes;
    const frag_free_link *links = index->store->links;
    /* Distances from the rover, wrapping around, put what lies below it last. */
    uint64_t distance = 0;
    bool is_found = false;
    uint32_t number = frag_free_bin_from(table, frag_free_bin_of(size));
    for (; number < FRAG_FREE_BIN_COUNT; number = frag_free_bin_above(table, number)) {
        for (uint32_t place = frag_free_bin_first(index, number); place != 0;
             place = links[place].next) {
            if (nodes[place].size >= size && (!is_found || nodes[place].tie - from < distance)) {
                distance = nodes[place].tie - from;
                *id = place - 1;
                is_found = true;
            }
        }
    }
    return is_found;
}

bool frag_free_index_worst(const frag_free_index *index, uint64_t size, uint32_t *id)
{
    const frag_free_table *table = index->table;
    if (table == NULL)
        return false;
    const frag_free_node *nodes = index->store->nodes;
    const frag_free_link *links = index->store->links;
    uint32_t top_word = frag_bit_high(table->summary);
    uint32_t top = top_word * 64 + frag_bit_high(table->words[top_word]);
    uint32_t worst = frag_free_bin_first(index, top);
    for (uint32_t place = links[worst].next; place != 0; place = links[place].next)
        if (nodes[place].size > nodes[worst].size)
            worst = place;
    *id = worst - 1;
    return nodes[worst].size >= size;
}

void frag_free_index_visit(const frag_free_index *index, frag_free_index_visitor *visit,
                           void *context)
{
    const frag_free_table *table = index->table;
    if (table == NULL)
        return;
    const frag_free_node *nodes = index->store->nodes;
    const frag_free_link *links = index->store->links;
    for (uint32_t number = frag_free_bin_from(table, 0); number < FRAG_FREE_BIN_COUNT;
         number = frag_free_bin_above(table, number))
        for (uint32_t place = frag_free_bin_first(index, number); place != 0;
             place = links[place].next) {
            frag_free_entry entry = {nodes[place].size, nodes[place].tie, place - 1};
            visit(context, &entry);
        }
}

static void count_block(void *context, const frag_free_entry *entry)
{
    (void)entry;
    uint32_t *count = context;
    (*count)++;
}

uint32_t frag_free_index_count(const frag_free_index *index)
{
    uint32_t count = 0;
    frag_free_index_visit(index, count_block, &count);
    return count;
}

static bool check_least(const frag_free_index *index, uint32_t number, frag_error *error)
{
    const frag_free_node *nodes = index->store->nodes;
    const frag_free_link *links = index->store->links;
    const frag_free_least *least = index->table->least;
    uint64_t tie = UINT64_MAX;
    for (uint32_t place = frag_free_bin_first(index, number); place != 0; place = links[place].next)
        tie = nodes[place].tie < tie ? nodes[place].tie : tie;
    if (least->bin_ties[number] != tie)
        return frag_fail(error, FRAG_E_INPUT, "free index: bin %u does not know its least tie",
                         number);
    if (least->octave_ties[number / 16] > tie)
        return frag_fail(error, FRAG_E_INPUT,
                         "free index: the octave of bin %u misses its least tie", number);
    return true;
}

/* Audits one bin and adds the blocks in it to *count. */
static bool check_bin(const frag_free_index *index, uint32_t number, uint64_t *count,
                      frag_error *error)
{
    const frag_free_table *table = index->table;
    const frag_free_index_store *store = index->store;
    bool is_marked = (table->words[number / 64] >> (number % 64) & 1) != 0;
    const frag_free_link *links = store->links;
    uint32_t head = table->first_head + number;
    if (is_marked != (links[head].next != 0))
        return frag_fail(error, FRAG_E_INPUT, "free index: bin %u is marked against what it holds",
                         number);
    uint32_t previous = head;
    for (uint32_t place = links[head].next; place != 0; place = links[place].next) {
        if (place > store->id_count || links[place].previous != previous ||
            ++*count > store->id_count)
            return frag_fail(error, FRAG_E_INPUT, "free index: the list of bin %u is broken",
                             number);
        const frag_free_node *node = &store->nodes[place];
        const frag_free_node *before = &store->nodes[previous == head ? 0 : previous];
        if (frag_free_bin_of(node->size) != number)
            return frag_fail(error, FRAG_E_INPUT, "free index: block %u is in the wrong bin",
                             place - 1);
        if (previous != head && !store->keeps_least &&
            !frag_free_comes_before(before, node->size, node->tie))
            return frag_fail(error, FRAG_E_INPUT, "free index: block %u is out of order",
                             place - 1);
        previous = place;
    }
    return table->least == NULL || check_least(index, number, error);
}

bool frag_free_index_check(const frag_free_index *index, frag_error *error)
{
    const frag_free_table *table = index->table;
    if (table == NULL)
        return true;
    uint64_t count = 0;
    for (uint32_t number = 0; number < FRAG_FREE_BIN_COUNT; number++)
        if (!check_bin(index, number, &count, error))
            return false;
    for (uint32_t at = 0; at < FRAG_FREE_WORD_COUNT; at++)
        if ((table->words[at] != 0) != ((table->summary >> at & 1) != 0))
            return frag_fail(error, FRAG_E_INPUT, "free index: word %u and the summary differ", at);
    return count > 0 || frag_fail(error, FRAG_E_INPUT, "free index: an empty index has a table");
}
