#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/codec.h"
#include "sim/base/digest.h"
#include "sim/base/memory.h"
#include "traces/fgt.h"
#include "traces/load.h"

/* Tables are cut into sections of about this size. */
#define TABLE_BYTES ((size_t)1 << 20)

typedef struct fgt_writer {
    const frag_recording *recording;
    FILE *stream;
    frag_text payload; /* of the section being made */
    frag_text table;
    unsigned char *raw;
    unsigned char *packed;
    uint64_t *values;
    uint64_t *guesses;
    uint32_t *slots;
} fgt_writer;

static void add_number(frag_text *text, uint64_t value, uint32_t bytes)
{
    unsigned char number[8];
    frag_fgt_put(number, value, bytes);
    frag_text_add_bytes(text, (const char *)number, bytes);
}

/* Write errors stay in the stream and are looked at once, at the end. */
static void write_section(fgt_writer *writer, frag_fgt_section kind)
{
    unsigned char head[FRAG_FGT_SECTION_BYTES];
    frag_fgt_put(head, kind, 4);
    frag_fgt_put(head + 4, 0, 4);
    frag_fgt_put(head + 8, writer->payload.length, 8);
    frag_fgt_put(head + 16, frag_hash_bytes(writer->payload.bytes, writer->payload.length), 8);
    fwrite(head, 1, sizeof head, writer->stream);
    fwrite(writer->payload.bytes, 1, writer->payload.length, writer->stream);
    frag_text_clear(&writer->payload);
}

static void write_summary(fgt_writer *writer, const frag_trace *trace)
{
    const frag_trace_stats *stats = &trace->stats;
    const uint64_t numbers[] = {
        stats->request_count,
        stats->initial_count,
        stats->initial_bytes,
        stats->failed_count,
        stats->requested_bytes_total,
        stats->peak_requested_bytes,
        stats->peak_requested_event,
        stats->end_requested_bytes,
        stats->live_count_max,
        stats->observed_reserved_peak_bytes,
        stats->observed_reserved_end_bytes,
        stats->time_first_ns,
        stats->time_last_ns,
    };
    frag_text *out = &writer->payload;
    add_number(out, trace->device, 4);
    add_number(out, trace->slot_count, 4);
    add_number(out, trace->event_count, 8);
    frag_text_add_bytes(out, trace->digest, FRAG_DIGEST_TEXT_BYTES - 1);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        add_number(out, numbers[i], 8);
    add_number(out, FRAG_OP_COUNT, 4);
    for (uint32_t i = 0; i < FRAG_OP_COUNT; i++)
        add_number(out, stats->op_counts[i], 8);
    write_section(writer, FRAG_FGT_SUMMARY);
}

/* Compresses the table built so far into one section. */
static void write_table(fgt_writer *writer, frag_fgt_section kind)
{
    frag_text *table = &writer->table;
    if (table->length == 0)
        return;
    size_t bound = frag_compress_bound(table->length);
    unsigned char *packed = frag_alloc(bound, 1);
    size_t size = frag_compress(packed, bound, table->bytes, table->length);
    bool is_packed = size < table->length && table->length <= size * FRAG_FGT_TABLE_RATIO;
    add_number(&writer->payload, table->length, 8);
    frag_text_add_bytes(&writer->payload, is_packed ? (const char *)packed : table->bytes,
                        is_packed ? size : table->length);
    free(packed);
    frag_text_clear(table);
    write_section(writer, kind);
}

static void write_strings(fgt_writer *writer)
{
    const frag_strings *strings = &writer->recording->strings;
    for (uint32_t id = 1; id < strings->count; id++) {
        size_t length = frag_strings_length(strings, id);
        add_number(&writer->table, length, 8);
        frag_text_add_bytes(&writer->table, frag_strings_get(strings, id), length);
        if (writer->table.length >= TABLE_BYTES)
            write_table(writer, FRAG_FGT_STRINGS);
    }
    write_table(writer, FRAG_FGT_STRINGS);
}

static void write_stacks(fgt_writer *writer)
{
    const frag_recording *recording = writer->recording;
    for (uint32_t i = 0; i < recording->metadata_count; i++) {
        add_number(&writer->table, recording->metadata[i][0], 4);
        add_number(&writer->table, recording->metadata[i][1], 4);
    }
    write_table(writer, FRAG_FGT_METADATA);
    for (uint32_t i = 0; i < recording->frame_count; i++) {
        add_number(&writer->table, recording->frames[i].name, 4);
        add_number(&writer->table, recording->frames[i].file, 4);
        add_number(&writer->table, recording->frames[i].line, 4);
        if (writer->table.length >= TABLE_BYTES)
            write_table(writer, FRAG_FGT_FRAMES);
    }
    write_table(writer, FRAG_FGT_FRAMES);
    for (uint32_t i = 1; i < recording->site_count; i++) {
        frag_site site = recording->sites[i];
        add_number(&writer->table, site.count, 4);
        for (uint32_t j = 0; j < site.count; j++)
            add_number(&writer->table, recording->site_frames[site.first + j], 4);
        if (writer->table.length >= TABLE_BYTES)
            write_table(writer, FRAG_FGT_SITES);
    }
    write_table(writer, FRAG_FGT_SITES);
}

static void write_trace_tables(fgt_writer *writer, uint32_t number)
{
    const frag_trace *trace = &writer->recording->traces[number];
    frag_text *table = &writer->table;
    add_number(table, number, 4);
    add_number(table, trace->stream_count, 4);
    add_number(table, trace->pool_count, 4);
    for (uint32_t i = 0; i < trace->stream_count; i++)
        add_number(table, trace->stream_handles[i], 8);
    for (uint32_t i = 0; i < trace->pool_count; i++) {
        add_number(table, trace->pool_ids[i].high, 8);
        add_number(table, trace->pool_ids[i].low, 8);
    }
    write_table(writer, FRAG_FGT_TABLES);
}

static bool is_held_event(const frag_event *event)
{
    return frag_op_is_observed(event->op) || (event->flags & FRAG_EVENT_INITIAL) != 0;
}

static uint64_t column_value(const frag_trace *trace, frag_fgt_column column, uint64_t index)
{
    const frag_event *event = &trace->events[index];
    switch (column) {
    case FRAG_FGT_COLUMN_OP:
        return event->op;
    case FRAG_FGT_COLUMN_FLAGS:
        return event->flags;
    case FRAG_FGT_COLUMN_STREAM:
        return event->stream;
    case FRAG_FGT_COLUMN_SLOT:
        return (uint32_t)(event->slot + 1);
    case FRAG_FGT_COLUMN_BYTES_ASKED:
        return event->bytes;
    case FRAG_FGT_COLUMN_POOL:
        return trace->pools == NULL ? 0 : trace->pools[index];
    case FRAG_FGT_COLUMN_BLOCK_BYTES:
        return trace->block_bytes == NULL ? 0 : trace->block_bytes[index];
    case FRAG_FGT_COLUMN_HELD_ADDRESS:
        return trace->addresses == NULL || !is_held_event(event) ? 0 : trace->addresses[index];
    case FRAG_FGT_COLUMN_ADDRESS:
        return trace->addresses == NULL || is_held_event(event) ? 0 : trace->addresses[index];
    case FRAG_FGT_COLUMN_TIME:
        return trace->times_ns == NULL ? 0 : trace->times_ns[index];
    case FRAG_FGT_COLUMN_SITE:
        return trace->sites == NULL ? 0 : trace->sites[index];
    case FRAG_FGT_COLUMN_NOTE:
        return trace->notes == NULL ? 0 : trace->notes[index];
    default:
        return 0;
    }
}

static frag_fgt_encoding column_encoding(frag_fgt_column column)
{
    switch (column) {
    case FRAG_FGT_COLUMN_OP:
    case FRAG_FGT_COLUMN_SLOT:
        return FRAG_FGT_PLAIN;
    case FRAG_FGT_COLUMN_HELD_ADDRESS:
    case FRAG_FGT_COLUMN_ADDRESS:
    case FRAG_FGT_COLUMN_TIME:
        return FRAG_FGT_PLANES;
    default:
        return FRAG_FGT_DICTIONARY;
    }
}

/* Appends the column's header to heads and its bytes to data; a column of zeros is left out. */
static void add_column(fgt_writer *writer, const frag_trace *trace, uint64_t first, uint32_t count,
                       frag_fgt_column column, frag_text *heads, frag_text *data)
{
    uint64_t any = column == FRAG_FGT_COLUMN_OP ? 1 : 0;
    for (uint32_t i = 0; i < count; i++) {
        writer->values[i] = column_value(trace, column, first + i);
        any |= writer->values[i];
    }
    if (any == 0)
        return;
    if (column == FRAG_FGT_COLUMN_TIME)
        frag_fgt_difference(writer->values, count, false);
    if (column == FRAG_FGT_COLUMN_ADDRESS) {
        for (uint32_t i = 0; i < count; i++)
            writer->slots[i] = trace->events[first + i].slot;
        frag_fgt_guess(writer->values, writer->slots, count, writer->guesses, false);
    }
    frag_fgt_encoding encoding = column_encoding(column);
    uint8_t width = 0;
    size_t raw_bytes = frag_fgt_encode(encoding, writer->values, count, writer->raw, &width);
    size_t packed_bytes = frag_compress(writer->packed, frag_compress_bound(FRAG_FGT_RAW_BYTES_MAX),
                                        writer->raw, raw_bytes);
    /* Little saved is not worth the time it takes to load. */
    bool is_packed = packed_bytes < raw_bytes - raw_bytes / 4;
    size_t stored_bytes = is_packed ? packed_bytes : raw_bytes;
    add_number(heads, column, 1);
    add_number(heads, encoding, 1);
    add_number(heads, width, 1);
    add_number(heads, 0, 1);
    add_number(heads, raw_bytes, 4);
    add_number(heads, stored_bytes, 4);
    frag_text_add_bytes(data, (const char *)(is_packed ? writer->packed : writer->raw),
                        stored_bytes);
}

static void write_chunk(fgt_writer *writer, uint32_t number, uint64_t first, uint32_t count)
{
    frag_text heads = {0};
    frag_text data = {0};
    for (uint32_t column = 1; column < FRAG_FGT_COLUMN_COUNT; column++)
        add_column(writer, &writer->recording->traces[number], first, count,
                   (frag_fgt_column)column, &heads, &data);
    frag_text *payload = &writer->payload;
    add_number(payload, number, 4);
    add_number(payload, count, 4);
    add_number(payload, heads.length / FRAG_FGT_COLUMN_BYTES, 4);
    frag_text_add_bytes(payload, heads.bytes, heads.length);
    frag_text_add_bytes(payload, data.bytes, data.length);
    while (payload->length * FRAG_FGT_EVENTS_PER_BYTE < count)
        add_number(payload, 0, 8);
    frag_text_destroy(&heads);
    frag_text_destroy(&data);
    write_section(writer, FRAG_FGT_EVENTS);
}

static void write_header(fgt_writer *writer)
{
    unsigned char head[FRAG_FGT_HEADER_BYTES];
    memcpy(head, FRAG_FGT_MAGIC, FRAG_FGT_MAGIC_BYTES);
    frag_fgt_put(head + 8, FRAG_FGT_MAJOR, 2);
    frag_fgt_put(head + 10, FRAG_FGT_MINOR, 2);
    frag_fgt_put(head + 12, writer->recording->trace_count, 4);
    fwrite(head, 1, sizeof head, writer->stream);
}

bool frag_fgt_write(const frag_recording *recording, FILE *stream, frag_error *error)
{
    fgt_writer writer = {.recording = recording, .stream = stream};
    writer.raw = frag_alloc(FRAG_FGT_RAW_BYTES_MAX, 1);
    writer.packed = frag_alloc(frag_compress_bound(FRAG_FGT_RAW_BYTES_MAX), 1);
    writer.values = frag_alloc(FRAG_FGT_CHUNK_EVENTS, sizeof *writer.values);
    writer.guesses = frag_alloc(FRAG_FGT_GUESSES, sizeof *writer.guesses);
    writer.slots = frag_alloc(FRAG_FGT_CHUNK_EVENTS, sizeof *writer.slots);
    write_header(&writer);
    for (uint32_t i = 0; i < recording->trace_count; i++)
        write_summary(&writer, &recording->traces[i]);
    write_strings(&writer);
    write_stacks(&writer);
    for (uint32_t i = 0; i < recording->trace_count; i++)
        write_trace_tables(&writer, i);
    for (uint32_t i = 0; i < recording->trace_count; i++) {
        uint64_t left = recording->traces[i].event_count;
        for (uint64_t first = 0; left > 0;) {
            uint32_t count = left < FRAG_FGT_CHUNK_EVENTS ? (uint32_t)left : FRAG_FGT_CHUNK_EVENTS;
            write_chunk(&writer, i, first, count);
            first += count;
            left -= count;
        }
    }
    write_section(&writer, FRAG_FGT_END);
    frag_text_destroy(&writer.payload);
    frag_text_destroy(&writer.table);
    free(writer.raw);
    free(writer.packed);
    free(writer.values);
    free(writer.guesses);
    free(writer.slots);
    if (ferror(stream) != 0)
        return frag_fail(error, FRAG_E_SYSTEM, "writing failed (%s); is the disk full?",
                         strerror(errno));
    return true;
}
