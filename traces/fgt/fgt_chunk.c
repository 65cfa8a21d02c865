#include "traces/fgt/fgt_chunk.h"

#include <string.h>

#include "base/memory.h"

#define BLOCK_EVENTS FRAG_FGT_BLOCK_EVENTS
#define BLOCKS (FRAG_FGT_CHUNK_EVENTS / BLOCK_EVENTS)

/* What a block holds of each kind of event. */
typedef struct block_counts {
    uint32_t alloc_count;
    uint32_t take_count;
    uint32_t held_count;
    bool is_plain; /* allocs that take a slot and frees that give it back, and nothing else */
} block_counts;

struct frag_fgt_chunk_reader {
    frag_unpacker *unpacker;
    unsigned char *raw; /* decompressed columns */
    size_t raw_used;
    size_t raw_capacity;
    block_counts blocks[BLOCKS];
    uint8_t ops[FRAG_FGT_CHUNK_EVENTS];
    uint8_t flags[FRAG_FGT_CHUNK_EVENTS];
    uint8_t streams[FRAG_FGT_CHUNK_EVENTS]; /* where none is above 255 */
    uint64_t *guesses;                      /* FRAG_FGT_GUESSES, once they are needed */
};

/* The columns that events are made of. */
typedef struct event_columns {
    frag_fgt_cursor streams;
    frag_fgt_cursor slots;
    frag_fgt_cursor taken_slots;
    frag_fgt_cursor bytes;
    frag_fgt_cursor other_bytes;
} event_columns;

/* ---- columns */
frag_fgt_chunk_reader *frag_fgt_chunk_reader_create(void)
{
    /* Not set to zero: of a small file most of it is never touched. */
    frag_fgt_chunk_reader *reader = frag_realloc(NULL, 1, sizeof *reader);
    reader->unpacker = frag_unpacker_create();
    reader->raw = NULL;
    reader->raw_used = 0;
    reader->raw_capacity = 0;
    reader->guesses = NULL;
    return reader;
}

void frag_fgt_chunk_reader_destroy(frag_fgt_chunk_reader *reader)
{
    frag_unpacker_destroy(reader->unpacker);
    frag_free(reader->raw);
    frag_free(reader->guesses);
    frag_free(reader);
}

frag_unpacker *frag_fgt_chunk_unpacker(frag_fgt_chunk_reader *reader)
{
    return reader->unpacker;
}

static void reserve_raw(frag_fgt_chunk_reader *reader, const frag_fgt_place *places)
{
    size_t together = 0;
    size_t alone = 0;
    /* The columns that events are made of are open at once; of all others one at a time. */
    for (uint32_t i = 0; i < FRAG_FGT_COLUMN_COUNT; i++) {
        size_t bytes = places[i].raw_bytes != places[i].stored_bytes ? places[i].raw_bytes : 0;
        if (frag_fgt_is_of_event((frag_fgt_column)i))
            together += bytes;
        else
            alone = bytes > alone ? bytes : alone;
    }
    size_t bytes = together > alone ? together : alone;
    if (bytes > reader->raw_capacity) {
        frag_free(reader->raw);
        reader->raw = frag_realloc(NULL, bytes, 1);
        reader->raw_capacity = bytes;
    }
    reader->raw_used = 0;
}

static bool open_column(frag_fgt_chunk_reader *reader, const frag_fgt_place *place,
                        uint64_t value_max, uint32_t count, frag_fgt_cursor *cursor,
                        frag_error *error)
{
    *cursor = (frag_fgt_cursor){.count = count};
    const unsigned char *raw = place->stored;
    if (raw == NULL)
        return true;
    if (place->raw_bytes != place->stored_bytes) {
        unsigned char *out = reader->raw + reader->raw_used;
        if (!frag_decompress(reader->unpacker, out, place->raw_bytes, place->stored,
                             place->stored_bytes, error))
            return false;
        reader->raw_used += place->raw_bytes;
        raw = out;
    }
    return frag_fgt_cursor_open(cursor, place->coding, raw, place->raw_bytes, value_max, count,
                                error);
}

/* ---- events */
static uint32_t block_size(uint32_t count, uint32_t first)
{
    return count - first < BLOCK_EVENTS ? count - first : BLOCK_EVENTS;
}

static bool read_small(frag_fgt_chunk_reader *reader, const frag_fgt_place *place, uint32_t count,
                       uint8_t *out, frag_error *error)
{
    frag_fgt_cursor cursor;
    bool ok = open_column(reader, place, UINT8_MAX, count, &cursor, error) &&
              frag_fgt_cursor_bytes(&cursor, out, error);
    frag_fgt_cursor_close(&cursor);
    return ok;
}

/* Counts so few at a time that a byte holds the count, and many are counted at once. */
static uint32_t count_allocs(const uint8_t *ops, uint32_t size)
{
    uint32_t alloc_count = 0;
    for (uint32_t first = 0; first < size; first += 128) {
        uint32_t end = size - first < 128 ? size : first + 128;
        uint8_t part_count = 0;
        for (uint32_t i = first; i < end; i++)
            part_count = (uint8_t)(part_count + (ops[i] == FRAG_OP_ALLOC ? 1 : 0));
        alloc_count += part_count;
    }
    return alloc_count;
}

static block_counts count_block(const uint8_t *ops, const uint8_t *flags, uint32_t size)
{
    uint8_t any_op = 0;
    uint8_t any_flags = 0;
    for (uint32_t i = 0; i < size; i++) {
        any_op |= ops[i];
        any_flags |= flags[i];
    }
    block_counts counts = {.alloc_count = count_allocs(ops, size)};
    counts.take_count = counts.alloc_count;
    counts.is_plain = any_op <= FRAG_OP_FREE && any_flags == 0;
    bool has_others = any_op >= FRAG_OP_SEGMENT_ALLOC || any_flags != 0;
    for (uint32_t i = 0; has_others && i < size; i++) {
        counts.take_count -= ops[i] == FRAG_OP_ALLOC && !frag_fgt_takes_slot(ops[i], flags[i]);
        counts.held_count += frag_fgt_is_held(ops[i], flags[i]);
    }
    return counts;
}

/* Ops and flags determine which columns have a value for which event. */
static bool read_kinds(frag_fgt_chunk_reader *reader, const frag_fgt_chunk *chunk,
                       block_counts *total, frag_error *error)
{
    uint32_t count = chunk->count;
    if (!read_small(reader, &chunk->places[FRAG_FGT_COLUMN_OP], count, reader->ops, error) ||
        !read_small(reader, &chunk->places[FRAG_FGT_COLUMN_FLAGS], count, reader->flags, error))
        return false;
    *total = (block_counts){0};
    for (uint32_t first = 0; first < count; first += BLOCK_EVENTS) {
        block_counts block =
            count_block(reader->ops + first, reader->flags + first, block_size(count, first));
        reader->blocks[first / BLOCK_EVENTS] = block;
        total->alloc_count += block.alloc_count;
        total->take_count += block.take_count;
        total->held_count += block.held_count;
    }
    return true;
}

static bool open_streams(frag_fgt_chunk_reader *reader, const frag_fgt_chunk *chunk,
                         event_columns *columns, frag_error *error)
{
    if (!open_column(reader, &chunk->places[FRAG_FGT_COLUMN_STREAM], UINT16_MAX, chunk->count,
                     &columns->streams, error))
        return false;
    return columns->streams.value_max > UINT8_MAX ||
           frag_fgt_cursor_bytes(&columns->streams, reader->streams, error);
}

static bool open_events(frag_fgt_chunk_reader *reader, const frag_fgt_chunk *chunk,
                        const block_counts *total, event_columns *columns, frag_error *error)
{
    const frag_fgt_place *places = chunk->places;
    bool is_old = chunk->major == 1;
    uint32_t count = chunk->count;
    return open_streams(reader, chunk, columns, error) &&
           open_column(reader, &places[FRAG_FGT_COLUMN_SLOT], UINT32_MAX,
                       is_old ? count : count - total->take_count, &columns->slots, error) &&
           open_column(reader, &places[FRAG_FGT_COLUMN_TAKEN_SLOT], UINT32_MAX,
                       is_old ? 0 : total->take_count, &columns->taken_slots, error) &&
           open_column(reader, &places[FRAG_FGT_COLUMN_BYTES_ASKED], UINT64_MAX,
                       is_old ? count : total->alloc_count, &columns->bytes, error) &&
           open_column(reader, &places[FRAG_FGT_COLUMN_OTHER_BYTES], UINT64_MAX,
                       is_old ? 0 : count - total->alloc_count, &columns->other_bytes, error);
}

/* Values of a column that is not there stay 0. */
static bool next_64(frag_fgt_cursor *cursor, uint64_t *values, uint32_t count, frag_error *error)
{
    return frag_fgt_cursor_is_zero(cursor) || frag_fgt_cursor_next(cursor, values, count, error);
}

/* Slots are stored plus one. */
static bool next_slots(frag_fgt_cursor *cursor, uint32_t *slots, uint32_t count, frag_error *error)
{
    if (!frag_fgt_cursor_next_32(cursor, slots, count, error))
        return false;
    for (uint32_t i = 0; i < count; i++)
        slots[i]--;
    return true;
}

/* The heads of a block; *largest becomes the largest stream of its plain events, or something
 * above. */
static bool fill_heads(const frag_fgt_chunk_reader *reader, event_columns *columns, uint32_t first,
                       frag_fgt_block *block, uint32_t *largest, frag_error *error)
{
    const uint8_t *ops = reader->ops + first;
    const uint8_t *flags = reader->flags + first;
    const uint8_t *streams = reader->streams + first;
    uint32_t *heads = block->heads;
    uint32_t size = block->size;
    if (columns->streams.value_max > UINT8_MAX) {
        uint32_t wide[BLOCK_EVENTS];
        if (!frag_fgt_cursor_next_32(&columns->streams, wide, size, error))
            return false;
        *largest = 0;
        for (uint32_t i = 0; i < size; i++) {
            uint32_t plain = ops[i] <= FRAG_OP_FREE ? wide[i] : 0;
            *largest = plain > *largest ? plain : *largest;
            heads[i] = frag_fgt_event_head(ops[i], flags[i], wide[i]);
        }
        return true;
    }
    *largest = (uint32_t)columns->streams.value_max;
    if (block->is_plain && *largest == 0)
        for (uint32_t i = 0; i < size; i++)
            heads[i] = frag_fgt_event_head(ops[i], 0, 0);
    else
        for (uint32_t i = 0; i < size; i++)
            heads[i] = frag_fgt_event_head(ops[i], flags[i], streams[i]);
    return true;
}

static bool fill_values(event_columns *columns, const block_counts *counts, frag_fgt_block *block,
                        frag_error *error)
{
    uint32_t other_count = block->size - counts->alloc_count;
    if (!next_slots(&columns->slots, block->slots, block->size - counts->take_count, error) ||
        (!block->is_foreseen &&
         !next_slots(&columns->taken_slots, block->taken_slots, counts->take_count, error)) ||
        !next_64(&columns->bytes, block->bytes, counts->alloc_count, error) ||
        !next_64(&columns->other_bytes, block->other_bytes, other_count, error))
        return false;
    block->has_other_bytes = !frag_fgt_cursor_is_zero(&columns->other_bytes) &&
                             frag_fgt_has_value(block->other_bytes, other_count);
    return true;
}

static bool read_events(frag_fgt_chunk_reader *reader, const frag_fgt_chunk *chunk,
                        event_columns *columns, frag_error *error)
{
    frag_trace *trace = chunk->trace;
    uint32_t stream_largest = 0;
    frag_fgt_block block;
    memset(&block, 0, sizeof block);
    block.is_foreseen = chunk->places[FRAG_FGT_COLUMN_TAKEN_SLOT].stored == NULL;
    for (uint32_t at = 0; at < chunk->count; at += BLOCK_EVENTS) {
        const block_counts *counts = &reader->blocks[at / BLOCK_EVENTS];
        uint64_t first = chunk->first + at;
        block.size = block_size(chunk->count, at);
        block.is_plain = counts->is_plain;
        if (!fill_heads(reader, columns, at, &block, &stream_largest, error))
            return false;
        /* Without streams all are 0, which is the first or the only one. */
        block.has_known_streams = stream_largest == 0 || stream_largest < trace->stream_count;
        if (chunk->major > 1) {
            if (!fill_values(columns, counts, &block, error))
                return false;
            frag_fgt_block_make(&block, chunk->slots, chunk->recording, trace, first, chunk->scan);
            continue;
        }
        if (!next_slots(&columns->slots, block.slots, block.size, error) ||
            !next_64(&columns->bytes, block.bytes, block.size, error))
            return false;
        frag_fgt_block_make_old(&block, trace->events + first);
        if (chunk->scan != NULL)
            frag_trace_scan_to(chunk->scan, chunk->recording, trace, first + block.size);
    }
    return true;
}

/* ---- columns beside the events */

/* Which events a column has values for; version 1 has one for each in every column. */
typedef enum column_share { SHARE_ALL, SHARE_HELD, SHARE_OTHERS } column_share;

static column_share share_of(const frag_fgt_chunk *chunk, frag_fgt_column which)
{
    if (chunk->major == 1)
        return SHARE_ALL;
    return which == FRAG_FGT_COLUMN_BLOCK_BYTES || which == FRAG_FGT_COLUMN_HELD_ADDRESS
               ? SHARE_HELD
           : which == FRAG_FGT_COLUMN_ADDRESS ? SHARE_OTHERS
                                              : SHARE_ALL;
}

/* Lists the events of a block that have a value. Returns their number. */
static uint32_t list_events(const frag_fgt_chunk_reader *reader, uint32_t first, uint32_t size,
                            column_share share, uint32_t *listed)
{
    bool holds_none = reader->blocks[first / BLOCK_EVENTS].held_count == 0;
    uint32_t count = 0;
    if (share == SHARE_HELD && holds_none)
        return 0;
    for (uint32_t i = first; i < first + size; i++) {
        listed[count] = i;
        count += share == SHARE_ALL || holds_none ||
                         frag_fgt_is_held(reader->ops[i], reader->flags[i]) == (share == SHARE_HELD)
                     ? 1
                     : 0;
    }
    return count;
}

/* Clears what the slots of the chunk reach. */
static void clear_guesses(frag_fgt_chunk_reader *reader, const frag_event *events, uint32_t count)
{
    uint32_t slot_max = 0;
    for (uint32_t i = 0; i < count; i++)
        slot_max = events[i].slot > slot_max ? events[i].slot : slot_max;
    uint32_t reached = slot_max < FRAG_FGT_GUESSES ? slot_max + 1 : FRAG_FGT_GUESSES;
    if (reader->guesses == NULL)
        reader->guesses = frag_realloc(NULL, FRAG_FGT_GUESSES, sizeof *reader->guesses);
    memset(reader->guesses, 0, reached * sizeof *reader->guesses);
}

static bool read_64(frag_fgt_chunk_reader *reader, const frag_fgt_chunk *chunk,
                    const block_counts *total, frag_fgt_column which, uint64_t **column,
                    frag_error *error)
{
    if (chunk->places[which].stored == NULL)
        return true;
    reader->raw_used = 0;
    column_share share = share_of(chunk, which);
    uint32_t count = share == SHARE_HELD     ? total->held_count
                     : share == SHARE_OTHERS ? chunk->count - total->held_count
                                             : chunk->count;
    frag_fgt_cursor cursor;
    bool ok = open_column(reader, &chunk->places[which], UINT64_MAX, count, &cursor, error);
    if (*column == NULL)
        *column = frag_alloc((size_t)chunk->capacity, sizeof **column);
    const frag_event *events = chunk->trace->events + chunk->first;
    uint64_t *out = *column + chunk->first;
    uint64_t last = 0;
    if (which == FRAG_FGT_COLUMN_ADDRESS)
        clear_guesses(reader, events, chunk->count);
    for (uint32_t first = 0; ok && first < chunk->count; first += BLOCK_EVENTS) {
        uint64_t values[BLOCK_EVENTS];
        uint32_t listed[BLOCK_EVENTS];
        uint32_t size = list_events(reader, first, block_size(chunk->count, first), share, listed);
        ok = frag_fgt_cursor_next(&cursor, values, size, error);
        if (!ok)
            break;
        if (which == FRAG_FGT_COLUMN_TIME)
            last = frag_fgt_difference(values, size, last, true);
        for (uint32_t i = 0; which == FRAG_FGT_COLUMN_ADDRESS && i < size; i++)
            values[i] = frag_fgt_guess(reader->guesses, events[listed[i]].slot, values[i], true);
        /* The two address columns share one array; version 1 has zeros where the other has its
         * values. */
        for (uint32_t i = 0; i < size; i++)
            out[listed[i]] |= values[i];
    }
    frag_fgt_cursor_close(&cursor);
    return ok;
}

static bool read_32(frag_fgt_chunk_reader *reader, const frag_fgt_chunk *chunk,
                    frag_fgt_column which, uint32_t **column, frag_error *error)
{
    if (chunk->places[which].stored == NULL)
        return true;
    reader->raw_used = 0;
    frag_fgt_cursor cursor;
    bool ok = open_column(reader, &chunk->places[which], UINT32_MAX, chunk->count, &cursor, error);
    if (*column == NULL)
        *column = frag_alloc((size_t)chunk->capacity, sizeof **column);
    uint32_t *out = *column + chunk->first;
    ok = ok && frag_fgt_cursor_next_32(&cursor, out, chunk->count, error);
    frag_fgt_cursor_close(&cursor);
    return ok;
}

static bool read_optional(frag_fgt_chunk_reader *reader, const frag_fgt_chunk *chunk,
                          const block_counts *total, frag_error *error)
{
    frag_trace *trace = chunk->trace;
    bool ok =
        read_32(reader, chunk, FRAG_FGT_COLUMN_POOL, &trace->pools, error) &&
        read_64(reader, chunk, total, FRAG_FGT_COLUMN_BLOCK_BYTES, &trace->block_bytes, error) &&
        read_64(reader, chunk, total, FRAG_FGT_COLUMN_HELD_ADDRESS, &trace->addresses, error);
    if (ok && chunk->with_sites)
        ok = read_32(reader, chunk, FRAG_FGT_COLUMN_SITE, &trace->sites, error);
    if (!ok || !chunk->with_columns)
        return ok;
    return read_64(reader, chunk, total, FRAG_FGT_COLUMN_ADDRESS, &trace->addresses, error) &&
           read_64(reader, chunk, total, FRAG_FGT_COLUMN_TIME, &trace->times_ns, error) &&
           read_32(reader, chunk, FRAG_FGT_COLUMN_NOTE, &trace->notes, error);
}

bool frag_fgt_chunk_read(frag_fgt_chunk_reader *reader, const frag_fgt_chunk *chunk,
                         frag_error *error)
{
    event_columns columns = {0};
    block_counts total;
    reserve_raw(reader, chunk->places);
    bool ok = read_kinds(reader, chunk, &total, error) &&
              open_events(reader, chunk, &total, &columns, error) &&
              read_events(reader, chunk, &columns, error);
    frag_fgt_cursor_close(&columns.streams);
    frag_fgt_cursor_close(&columns.slots);
    frag_fgt_cursor_close(&columns.taken_slots);
    frag_fgt_cursor_close(&columns.bytes);
    frag_fgt_cursor_close(&columns.other_bytes);
    return ok && read_optional(reader, chunk, &total, error);
}
