#include "allocators/free_index.h"

#include <string.h>

/* Capacities are FRAG_FREE_ARRAY_MIN << class. */
static uint32_t array_class(uint32_t capacity)
{
    return frag_bit_high(capacity / FRAG_FREE_ARRAY_MIN);
}

static size_t whole_lines(uint64_t bytes)
{
    return (size_t)frag_align_up(bytes, 64);
}

/* Short arrays stay with their bin. A longer one is at least a quarter full, so that at most
 * 4 x id_count entries of each capacity are in use at once. Recycling makes the most ever in use of
 * each capacity all that is taken. */
size_t frag_free_index_store_bytes(uint32_t id_count, uint64_t index_count, bool keeps_least)
{
    uint64_t table_count = index_count < id_count ? index_count : id_count;
    uint64_t table_bytes =
        whole_lines(sizeof(frag_free_table)) +
        FRAG_FREE_BIN_COUNT * whole_lines(FRAG_FREE_ARRAY_MIN * sizeof(frag_free_entry)) +
        (keeps_least ? whole_lines(sizeof(frag_free_least)) : 0);
    uint64_t arrays_bytes = 0;
    for (uint64_t capacity = FRAG_FREE_ARRAY_MIN * 2;
         capacity <= FRAG_FREE_ARRAY_KEPT || capacity <= 4 * (uint64_t)id_count; capacity *= 2) {
        uint64_t count = capacity <= FRAG_FREE_ARRAY_KEPT ? table_count * FRAG_FREE_BIN_COUNT
                                                          : 4 * (uint64_t)id_count / capacity + 2;
        arrays_bytes += count * whole_lines(capacity * sizeof(frag_free_entry));
    }
    return whole_lines((uint64_t)id_count * sizeof(uint32_t)) + table_count * table_bytes +
           arrays_bytes + 64;
}

void frag_free_index_store_create(frag_free_index_store *store, frag_arena *arena,
                                  uint32_t id_count, bool keeps_least)
{
    *store =
        (frag_free_index_store){.arena = arena, .id_count = id_count, .keeps_least = keeps_least};
    store->positions = frag_arena_take(arena, id_count, sizeof(uint32_t));
}

frag_free_table *frag_free_table_open(frag_free_index *index)
{
    frag_free_index_store *store = index->store;
    frag_free_table *table = store->spare_tables;
    if (table != NULL) {
        store->spare_tables = table->next_spare;
    } else {
        table = frag_arena_take(store->arena, 1, sizeof *table);
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

void frag_free_bin_resize(frag_free_index_store *store, frag_free_bin *bin, uint32_t capacity)
{
    uint32_t class = array_class(capacity);
    frag_free_entry *entries = store->spare_arrays[class];
    if (entries != NULL)
        memcpy(&store->spare_arrays[class], entries, sizeof(void *));
    else
        entries = frag_arena_take(store->arena, capacity, sizeof *entries);
    if (bin->capacity != 0) {
        memcpy(entries, bin->entries, bin->count * sizeof *entries);
        uint32_t old_class = array_class(bin->capacity);
        memcpy(bin->entries, &store->spare_arrays[old_class], sizeof(void *));
        store->spare_arrays[old_class] = bin->entries;
    }
    bin->entries = entries;
    bin->capacity = capacity;
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
void frag_free_least_repair(frag_free_table *table, uint32_t bin, uint32_t id)
{
    frag_free_least *least = table->least;
    uint64_t tie = UINT64_MAX;
    uint32_t tie_id = UINT32_MAX;
    const frag_free_bin *rest = &table->bins[bin];
    for (uint32_t i = 0; i < rest->count; i++) {
        if (rest->entries[i].tie < tie) {
            tie = rest->entries[i].tie;
            tie_id = rest->entries[i].id;
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

/* A block has stayed in its bin, but its tie has changed. */
void frag_free_least_change(frag_free_table *table, uint32_t bin, uint64_t tie, uint32_t id)
{
    frag_free_least *least = table->least;
    if (tie <= least->bin_ties[bin])
        frag_free_least_insert(least, bin, tie, id);
    else if (least->bin_ids[bin] == id)
        frag_free_least_repair(table, bin, id);
}

bool frag_free_index_first(const frag_free_index *index, uint64_t size, uint32_t *id)
{
    const frag_free_table *table = index->table;
    if (table == NULL)
        return false;
    uint64_t tie = UINT64_MAX;
    uint32_t number = frag_free_bin_of(size);
    const frag_free_bin *bin = &table->bins[number];
    for (uint32_t i = 0; i < bin->count; i++) {
        if (bin->entries[i].size >= size && bin->entries[i].tie < tie) {
            tie = bin->entries[i].tie;
            *id = bin->entries[i].id;
        }
    }
    const frag_free_least *least = table->least;
    uint32_t octave = number / 16;
    uint64_t above = octave_bits(table, octave) & (~(uint64_t)1 << (number % 16));
    for (; above != 0; above &= above - 1) {
        uint32_t i = octave * 16 + frag_bit_low(above);
        bool is_lower = least->bin_ties[i] < tie;
        tie = is_lower ? least->bin_ties[i] : tie;
        *id = is_lower ? least->bin_ids[i] : *id;
    }
    uint32_t top_word = frag_bit_high(table->summary);
    uint32_t top = (top_word * 64 + frag_bit_high(table->words[top_word])) / 16;
    for (uint32_t i = octave + 1; i <= top; i++) {
        bool is_lower = least->octave_ties[i] < tie;
        tie = is_lower ? least->octave_ties[i] : tie;
        *id = is_lower ? least->octave_ids[i] : *id;
    }
    return tie != UINT64_MAX;
}

bool frag_free_index_next(const frag_free_index *index, uint64_t size, uint64_t from, uint32_t *id)
{
    const frag_free_table *table = index->table;
    if (table == NULL)
        return false;
    /* Distances from the rover, wrapping around, put what lies below it last. */
    uint64_t distance = 0;
    bool is_found = false;
    uint32_t number = frag_free_bin_of(size);
    if (table->bins[number].count == 0)
        number = frag_free_bin_above(table, number);
    for (; number < FRAG_FREE_BIN_COUNT; number = frag_free_bin_above(table, number)) {
        const frag_free_bin *bin = &table->bins[number];
        for (uint32_t i = 0; i < bin->count; i++) {
            const frag_free_entry *entry = &bin->entries[i];
            if (entry->size >= size && (!is_found || entry->tie - from < distance)) {
                distance = entry->tie - from;
                *id = entry->id;
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
    uint32_t top_word = frag_bit_high(table->summary);
    const frag_free_bin *bin = &table->bins[top_word * 64 + frag_bit_high(table->words[top_word])];
    const frag_free_entry *worst = bin->entries;
    for (uint32_t i = 1; i < bin->count; i++) {
        const frag_free_entry *entry = &bin->entries[i];
        if (entry->size > worst->size || (entry->size == worst->size && entry->tie < worst->tie))
            worst = entry;
    }
    *id = worst->id;
    return worst->size >= size;
}

bool frag_free_index_above(const frag_free_index *index, uint64_t size, uint64_t tie, uint32_t *id)
{
    const frag_free_table *table = index->table;
    if (table == NULL)
        return false;
    uint32_t number = frag_free_bin_of(size);
    const frag_free_bin *bin = &table->bins[number];
    const frag_free_entry *least = NULL;
    for (uint32_t i = 0; i < bin->count; i++) {
        const frag_free_entry *entry = &bin->entries[i];
        bool is_above = entry->size > size || (entry->size == size && entry->tie > tie);
        if (is_above && (least == NULL || entry->size < least->size ||
                         (entry->size == least->size && entry->tie < least->tie)))
            least = entry;
    }
    if (least == NULL) {
        number = frag_free_bin_above(table, number);
        if (number == FRAG_FREE_BIN_COUNT)
            return false;
        least = frag_free_bin_best(&table->bins[number], size);
    }
    *id = least->id;
    return true;
}

void frag_free_index_visit(const frag_free_index *index, frag_free_index_visitor *visit,
                           void *context)
{
    if (index->table == NULL)
        return;
    for (uint32_t number = 0; number < FRAG_FREE_BIN_COUNT; number++) {
        const frag_free_bin *bin = &index->table->bins[number];
        for (uint32_t i = 0; i < bin->count; i++)
            visit(context, &bin->entries[i]);
    }
}

static bool check_least(const frag_free_table *table, uint32_t number, frag_error *error)
{
    const frag_free_bin *bin = &table->bins[number];
    uint64_t tie = UINT64_MAX;
    for (uint32_t i = 0; i < bin->count; i++)
        tie = bin->entries[i].tie < tie ? bin->entries[i].tie : tie;
    if (table->least->bin_ties[number] != tie)
        return frag_fail(error, FRAG_E_INPUT, "free index: bin %u does not know its least tie",
                         number);
    if (table->least->octave_ties[number / 16] > tie)
        return frag_fail(error, FRAG_E_INPUT,
                         "free index: the octave of bin %u misses its least tie", number);
    return true;
}

static bool check_bin(const frag_free_index *index, uint32_t number, frag_error *error)
{
    const frag_free_table *table = index->table;
    const frag_free_bin *bin = &table->bins[number];
    bool is_marked = (table->words[number / 64] >> (number % 64) & 1) != 0;
    if (is_marked != (bin->count != 0))
        return frag_fail(error, FRAG_E_INPUT, "free index: bin %u holds %u blocks against its bit",
                         number, bin->count);
    if (bin->count > bin->capacity)
        return frag_fail(error, FRAG_E_INPUT, "free index: bin %u is over its capacity", number);
    for (uint32_t i = 0; i < bin->count; i++) {
        const frag_free_entry *entry = &bin->entries[i];
        if (frag_free_bin_of(entry->size) != number)
            return frag_fail(error, FRAG_E_INPUT, "free index: block %u is in the wrong bin",
                             entry->id);
        if (entry->id >= index->store->id_count || index->store->positions[entry->id] != i)
            return frag_fail(error, FRAG_E_INPUT, "free index: block %u does not know its place",
                             entry->id);
    }
    return table->least == NULL || check_least(table, number, error);
}

bool frag_free_index_check(const frag_free_index *index, frag_error *error)
{
    const frag_free_table *table = index->table;
    if (table == NULL || index->count == 0)
        return (table == NULL && index->count == 0) ||
               frag_fail(error, FRAG_E_INPUT, "free index: %u blocks against its table",
                         index->count);
    uint64_t count = 0;
    for (uint32_t number = 0; number < FRAG_FREE_BIN_COUNT; number++) {
        if (!check_bin(index, number, error))
            return false;
        count += table->bins[number].count;
    }
    for (uint32_t at = 0; at < FRAG_FREE_WORD_COUNT; at++)
        if ((table->words[at] != 0) != ((table->summary >> at & 1) != 0))
            return frag_fail(error, FRAG_E_INPUT, "free index: word %u and the summary differ", at);
    return count == index->count ||
           frag_fail(error, FRAG_E_INPUT, "free index: %llu blocks found, %u counted",
                     (unsigned long long)count, index->count);
}
