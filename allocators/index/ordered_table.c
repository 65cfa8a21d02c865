#include "allocators/index/ordered_table.h"

#include "base/bits.h"

#define MULTIPLIER 0x9e3779b97f4a7c15u
#define SLOTS_MIN 4u
#define PROBES_MIN 4

/* Twice as many slots as keys, and three doublings more for keys that crowd. */
static uint32_t slots_for(uint32_t key_count)
{
    uint32_t slots = SLOTS_MIN;
    while (slots < (1u << 27) && slots < 16 * (uint64_t)key_count)
        slots *= 2;
    return slots;
}

size_t frag_ordered_table_bytes(uint32_t key_count)
{
    return ((size_t)slots_for(key_count) + 2 * (size_t)key_count + 1) * sizeof(frag_ordered_entry) +
           128;
}

void frag_ordered_table_create(frag_ordered_table *table, frag_arena *arena, uint32_t key_count)
{
    uint32_t slots = slots_for(key_count);
    *table = (frag_ordered_table){
        .entries = frag_arena_take(arena, (size_t)slots + key_count + 1, sizeof *table->entries),
        .moved = frag_arena_take(arena, key_count, sizeof *table->moved),
        .slot_max = slots,
        .key_max = key_count,
    };
}

static uint32_t home_of(const frag_ordered_table *table, uint64_t key)
{
    return (uint32_t)(key * MULTIPLIER >> (64 - frag_bit_high(table->slot_count)));
}

/* How far from home an entry may lie before the table grows. */
static int32_t probes_of(const frag_ordered_table *table)
{
    int32_t bits = (int32_t)frag_bit_high(table->slot_count);
    return bits < PROBES_MIN ? PROBES_MIN : bits;
}

static bool is_largest(const frag_ordered_table *table)
{
    return table->slot_count == table->slot_max;
}

/* Slots that can be in use: entries may lie behind the last one that is a home; in a table that
 * may grow no further, as far behind as there are keys. */
static uint32_t end_of(const frag_ordered_table *table)
{
    if (table->slot_count == 0)
        return 0;
    if (is_largest(table) || (uint32_t)probes_of(table) > table->key_max)
        return table->slot_count + table->key_max;
    return table->slot_count + (uint32_t)probes_of(table);
}

static uint32_t find(const frag_ordered_table *table, uint64_t key, uint32_t value)
{
    if (table->slot_count == 0)
        return FRAG_ORDERED_END;
    uint32_t slot = home_of(table, key);
    for (int32_t distance = 0; table->entries[slot].distance >= distance; distance++, slot++)
        if (table->entries[slot].key == key && table->entries[slot].value == value)
            return slot;
    return FRAG_ORDERED_END;
}

/* The slot behind the last one stays empty: searches end there. */
static void empty_slots(frag_ordered_table *table)
{
    uint32_t end = end_of(table);
    for (uint32_t i = 0; i <= end; i++)
        table->entries[i] = (frag_ordered_entry){.distance = -1};
    table->count = 0;
}

/* Robin Hood: who is farther from home takes the place, and the other one goes on. false: probed
 * too far; *moving is then the entry left over. */
static bool place(frag_ordered_table *table, frag_ordered_entry *moving)
{
    uint32_t slot = home_of(table, moving->key);
    for (moving->distance = 0;; slot++, moving->distance++) {
        if (!is_largest(table) && moving->distance == probes_of(table))
            return false;
        frag_ordered_entry *at = &table->entries[slot];
        if (at->distance < 0) {
            *at = *moving;
            table->count++;
            return true;
        }
        if (at->distance < moving->distance) {
            frag_ordered_entry other = *at;
            *at = *moving;
            *moving = other;
        }
    }
}

uint32_t frag_ordered_next(const frag_ordered_table *table, uint32_t slot)
{
    for (uint32_t end = end_of(table); slot < end; slot++)
        if (table->entries[slot].distance >= 0)
            return slot;
    return FRAG_ORDERED_END;
}

/* More slots; the entries go over in the order of their old slots. */
static void grow(frag_ordered_table *table)
{
    uint32_t count = 0;
    for (uint32_t i = frag_ordered_next(table, 0); i != FRAG_ORDERED_END;
         i = frag_ordered_next(table, i + 1))
        table->moved[count++] = table->entries[i];
    bool is_placed = false;
    while (!is_placed) {
        FRAG_ASSERT(!is_largest(table));
        table->slot_count = table->slot_count == 0 ? SLOTS_MIN : 2 * table->slot_count;
        empty_slots(table);
        is_placed = true;
        for (uint32_t i = 0; i < count && is_placed; i++) {
            frag_ordered_entry entry = table->moved[i];
            is_placed = place(table, &entry);
        }
    }
}

bool frag_ordered_has(const frag_ordered_table *table, uint64_t key, uint32_t value)
{
    return find(table, key, value) != FRAG_ORDERED_END;
}

void frag_ordered_insert(frag_ordered_table *table, uint64_t key, uint32_t value)
{
    if (frag_ordered_has(table, key, value))
        return;
    FRAG_ASSERT(table->count < table->key_max);
    frag_ordered_entry entry = {key, value, 0};
    if (2 * ((uint64_t)table->count + 1) > table->slot_count && !is_largest(table))
        grow(table);
    while (!place(table, &entry))
        grow(table);
}

void frag_ordered_erase_at(frag_ordered_table *table, uint32_t slot)
{
    frag_ordered_entry *entries = table->entries;
    for (; entries[slot + 1].distance > 0; slot++) {
        entries[slot] = entries[slot + 1];
        entries[slot].distance--;
    }
    entries[slot].distance = -1;
    table->count--;
}

bool frag_ordered_erase(frag_ordered_table *table, uint64_t key, uint32_t value)
{
    uint32_t slot = find(table, key, value);
    if (slot == FRAG_ORDERED_END)
        return false;
    frag_ordered_erase_at(table, slot);
    return true;
}

void frag_ordered_clear(frag_ordered_table *table)
{
    if (table->slot_count > 0)
        empty_slots(table);
}

void frag_ordered_reset(frag_ordered_table *table)
{
    table->slot_count = 0;
    table->count = 0;
}
