/* The writer of .fgt files: summaries, tables, then the events in chunks, and an index of these. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/formats/codec.h"
#include "base/digest.h"
#include "base/memory.h"
#include "sim/trace/trace_opening.h"
#include "traces/fgt/fgt.h"
#include "traces/fgt/fgt_chunk.h"

/* Tables are cut into sections of about this size. */
#define TABLE_BYTES ((size_t)1 << 20)

#define RAW_BYTES_MAX FRAG_FGT_RAW_BYTES_MAX(FRAG_FGT_CHUNK_EVENTS)

typedef struct fgt_writer {
    const frag_recording *recording;
    frag_fgt_sizes sizes;
    FILE *stream;
    frag_text payload; /* of the section being made */
    frag_text table;
    frag_fgt_encoder *encoder;
    unsigned char *raw;
    unsigned char *packed;
    uint64_t *values;
    uint64_t *guesses;
    uint32_t *slots;
    uint64_t offset; /* bytes written */
    frag_fgt_index_entry *index;
    size_t index_count;
    size_t index_capacity;
} fgt_writer;

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
    writer->offset += sizeof head + writer->payload.length;
    frag_text_clear(&writer->payload);
}

static void write_summary(fgt_writer *writer, const frag_trace *trace)
{
    frag_trace_stats stats = trace->stats;
    uint64_t *numbers[FRAG_FGT_SUMMARY_NUMBERS];
    frag_fgt_summary_numbers(&stats, numbers);
    frag_text *out = &writer->payload;
    frag_fgt_add(out, trace->device, 4);
    frag_fgt_add(out, trace->slot_count, 4);
    frag_fgt_add(out, trace->event_count, 8);
    frag_text_add_bytes(out, trace->digest, FRAG_DIGEST_TEXT_BYTES - 1);
    for (size_t i = 0; i < FRAG_FGT_SUMMARY_NUMBERS; i++)
        frag_fgt_add(out, *numbers[i], 8);
    frag_fgt_add(out, FRAG_OP_COUNT, 4);
    for (uint32_t i = 0; i < FRAG_OP_COUNT; i++)
        frag_fgt_add(out, stats.op_counts[i], 8);
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
    frag_fgt_add(&writer->payload, table->length, 8);
    frag_text_add_bytes(&writer->payload, is_packed ? (const char *)packed : table->bytes,
                        is_packed ? size : table->length);
    frag_free(packed);
    frag_text_clear(table);
    write_section(writer, kind);
}

static void write_strings(fgt_writer *writer)
{
    const frag_strings *strings = &writer->recording->strings;
    for (uint32_t id = 1; id < strings->count; id++) {
        size_t length = frag_strings_length(strings, id);
        frag_fgt_add(&writer->table, length, 8);
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
        frag_fgt_add(&writer->table, recording->metadata[i][0], 4);
        frag_fgt_add(&writer->table, recording->metadata[i][1], 4);
    }
    write_table(writer, FRAG_FGT_METADATA);
    for (uint32_t i = 0; i < recording->frame_count; i++) {
        frag_fgt_add(&writer->table, recording->frames[i].name, 4);
        frag_fgt_add(&writer->table, recording->frames[i].file, 4);
        frag_fgt_add(&writer->table, recording->frames[i].line, 4);
        if (writer->table.length >= TABLE_BYTES)
            write_table(writer, FRAG_FGT_FRAMES);
    }
    write_table(writer, FRAG_FGT_FRAMES);
    for (uint32_t i = 1; i < recording->site_count; i++) {
        frag_site site = recording->sites[i];
        frag_fgt_add(&writer->table, site.count, 4);
        for (uint32_t j = 0; j < site.count; j++)
            frag_fgt_add(&writer->table, recording->site_frames[site.first + j], 4);
        if (writer->table.length >= TABLE_BYTES)
            write_table(writer, FRAG_FGT_SITES);
    }
    write_table(writer, FRAG_FGT_SITES);
}

static void write_trace_tables(fgt_writer *writer, uint32_t number)
{
    const frag_trace *trace = &writer->recording->traces[number];
    frag_text *table = &writer->table;
    frag_fgt_add(table, number, 4);
    frag_fgt_add(table, trace->stream_count, 4);
    frag_fgt_add(table, trace->pool_count, 4);
    for (uint32_t i = 0; i < trace->stream_count; i++)
        frag_fgt_add(table, trace->stream_handles[i], 8);
    for (uint32_t i = 0; i < trace->pool_count; i++) {
        frag_fgt_add(table, trace->pool_ids[i].high, 8);
        frag_fgt_add(table, trace->pool_ids[i].low, 8);
    }
    write_table(writer, FRAG_FGT_TABLES);
}

static void write_figures(fgt_writer *writer, uint32_t number)
{
    const frag_recording *recording = writer->recording;
    frag_trace_figures *figures = frag_trace_figures_find(recording, &recording->traces[number]);
    frag_fgt_add(&writer->table, number, 4);
    frag_fgt_figures_put(figures, &writer->table);
    frag_free(figures);
    write_table(writer, FRAG_FGT_FIGURES);
}

/* ---- one chunk of events */
static bool column_has(frag_fgt_column column, const frag_event *event)
{
    bool is_held = frag_fgt_is_held(event->op, event->flags);
    switch (column) {
    case FRAG_FGT_COLUMN_SLOT:
        return !frag_fgt_takes_slot(event->op, event->flags);
    case FRAG_FGT_COLUMN_TAKEN_SLOT:
        return frag_fgt_takes_slot(event->op, event->flags);
    case FRAG_FGT_COLUMN_BYTES_ASKED:
        return event->op == FRAG_OP_ALLOC;
    case FRAG_FGT_COLUMN_OTHER_BYTES:
        return event->op != FRAG_OP_ALLOC;
    case FRAG_FGT_COLUMN_BLOCK_BYTES:
    case FRAG_FGT_COLUMN_HELD_ADDRESS:
        return is_held;
    case FRAG_FGT_COLUMN_ADDRESS:
        return !is_held;
    default:
        return true;
    }
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
    case FRAG_FGT_COLUMN_TAKEN_SLOT:
        return (uint32_t)(event->slot + 1);
    case FRAG_FGT_COLUMN_BYTES_ASKED:
    case FRAG_FGT_COLUMN_OTHER_BYTES:
        return event->bytes;
    case FRAG_FGT_COLUMN_POOL:
        return trace->pools == NULL ? 0 : trace->pools[index];
    case FRAG_FGT_COLUMN_BLOCK_BYTES:
        return trace->block_bytes == NULL ? 0 : trace->block_bytes[index];
    case FRAG_FGT_COLUMN_HELD_ADDRESS:
    case FRAG_FGT_COLUMN_ADDRESS:
        return trace->addresses == NULL ? 0 : trace->addresses[index];
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

/* Takes and gives the slots of a chunk. Does every alloc have the slot that a reader foresees? */
static bool foresee_slots(frag_fgt_slots *slots, const frag_event *events, uint32_t count)
{
    bool is_foreseen = true;
    frag_fgt_slots_reserve(slots, count);
    for (uint32_t i = 0; i < count; i++) {
        if (frag_fgt_takes_slot(events[i].op, events[i].flags))
            is_foreseen = slots->free[--slots->count] == events[i].slot && is_foreseen;
        if (frag_fgt_gives_slot(events[i].op, events[i].flags))
            slots->free[slots->count++] = events[i].slot;
    }
    return is_foreseen;
}

/* A way to store a column. */
typedef struct column_form {
    frag_fgt_coding coding;
    bool is_packed;
    size_t raw_bytes;
    size_t stored_bytes;
} column_form;

/* The encodings that suit a column, the one that is fastest to read first; ends with one twice. */
static const frag_fgt_encoding *column_encodings(frag_fgt_column column)
{
    static const frag_fgt_encoding few[] = {FRAG_FGT_BITS, FRAG_FGT_DICTIONARY,
                                            FRAG_FGT_DICTIONARY};
    static const frag_fgt_encoding many[] = {FRAG_FGT_PLANES, FRAG_FGT_PLAIN, FRAG_FGT_PLAIN};
    static const frag_fgt_encoding wide[] = {FRAG_FGT_PLANES, FRAG_FGT_PLANES};
    switch (column) {
    case FRAG_FGT_COLUMN_SLOT:
    case FRAG_FGT_COLUMN_TAKEN_SLOT:
        return many;
    case FRAG_FGT_COLUMN_HELD_ADDRESS:
    case FRAG_FGT_COLUMN_ADDRESS:
    case FRAG_FGT_COLUMN_TIME:
        return wide;
    default:
        return few;
    }
}

static void encode(fgt_writer *writer, column_form *form)
{
    form->raw_bytes = frag_fgt_encode(writer->encoder, (frag_fgt_encoding)form->coding.encoding,
                                      writer->raw, &form->coding);
    form->stored_bytes = form->raw_bytes;
    if (!form->is_packed)
        return;
    form->stored_bytes = frag_compress(writer->packed, frag_compress_bound(RAW_BYTES_MAX),
                                       writer->raw, form->raw_bytes);
    if (form->stored_bytes < form->raw_bytes)
        return;
    form->is_packed = false; /* stored bytes that are as many as raw ones mean that */
    form->stored_bytes = form->raw_bytes;
}

/* What little is saved is not worth the time it takes to load. Columns that events are made of are
 * read every time; of the others those that take most of a file are mostly skipped. */
static size_t bytes_worth(frag_fgt_column column, size_t least)
{
    return frag_fgt_is_of_event(column) ? least * 5 / 2 : least + least / 3;
}

/* The fastest of all forms that is not too large. It is what writer->raw or packed hold afterwards.
 */
static column_form choose_form(fgt_writer *writer, frag_fgt_column column, uint32_t count)
{
    const frag_fgt_encoding *encodings = column_encodings(column);
    frag_fgt_encoder_take(writer->encoder, writer->values, count);
    column_form forms[6];
    uint32_t form_count = 0;
    size_t least = SIZE_MAX;
    for (uint32_t i = 0; i == 0 || encodings[i] != encodings[i - 1]; i++)
        for (uint32_t packed = 0; packed < 2; packed++) {
            column_form *form = &forms[form_count++];
            *form = (column_form){.coding = {.encoding = (uint8_t)encodings[i]},
                                  .is_packed = packed == 1};
            encode(writer, form);
            least = form->stored_bytes < least ? form->stored_bytes : least;
        }
    uint32_t chosen = 0;
    while (forms[chosen].stored_bytes > bytes_worth(column, least))
        chosen++;
    encode(writer, &forms[chosen]);
    return forms[chosen];
}

/* Appends the column's header to heads and its bytes to data; a column of zeros is left out. */
static void add_column(fgt_writer *writer, const frag_trace *trace, uint64_t first, uint32_t count,
                       frag_fgt_column column, frag_text *heads, frag_text *data)
{
    uint64_t any = column == FRAG_FGT_COLUMN_OP ? 1 : 0;
    uint32_t value_count = 0;
    for (uint64_t i = first; i < first + count; i++)
        if (column_has(column, &trace->events[i])) {
            writer->slots[value_count] = trace->events[i].slot;
            writer->values[value_count] = column_value(trace, column, i);
            any |= writer->values[value_count++];
        }
    if (any == 0)
        return;
    if (column == FRAG_FGT_COLUMN_TIME)
        frag_fgt_difference(writer->values, value_count, 0, false);
    if (column == FRAG_FGT_COLUMN_ADDRESS) {
        memset(writer->guesses, 0, FRAG_FGT_GUESSES * sizeof *writer->guesses);
        for (uint32_t i = 0; i < value_count; i++)
            writer->values[i] =
                frag_fgt_guess(writer->guesses, writer->slots[i], writer->values[i], false);
    }
    column_form form = choose_form(writer, column, value_count);
    frag_fgt_add(heads, column, 1);
    frag_fgt_add(heads, form.coding.encoding, 1);
    frag_fgt_add(heads, form.coding.width, 1);
    frag_fgt_add(heads, form.coding.value_width, 1);
    frag_fgt_add(heads, form.raw_bytes, 4);
    frag_fgt_add(heads, form.stored_bytes, 4);
    frag_text_add_bytes(data, (const char *)(form.is_packed ? writer->packed : writer->raw),
                        form.stored_bytes);
}

/* The piece of a trace that a section holds. */
typedef struct chunk_range {
    uint32_t number; /* of the trace */
    uint32_t count;
    uint64_t first;
} chunk_range;

/* Goes on to the next piece; false: there is none. */
static bool next_chunk(const fgt_writer *writer, const frag_trace *trace, chunk_range *range)
{
    range->first += range->count;
    uint64_t left = trace->event_count - range->first;
    range->count = left < writer->sizes.chunk_events ? (uint32_t)left : writer->sizes.chunk_events;
    return left > 0;
}

static void write_columns(fgt_writer *writer, const frag_trace *trace, chunk_range range,
                          bool is_foreseen, frag_fgt_section kind)
{
    frag_text heads = {0};
    frag_text data = {0};
    for (uint32_t column = 1; column < FRAG_FGT_COLUMN_COUNT; column++)
        if (column != FRAG_FGT_COLUMN_TAKEN_SLOT || !is_foreseen)
            add_column(writer, trace, range.first, range.count, (frag_fgt_column)column, &heads,
                       &data);
    frag_text *payload = &writer->payload;
    frag_fgt_add(payload, range.number, 4);
    frag_fgt_add(payload, range.count, 4);
    frag_fgt_add(payload, heads.length / FRAG_FGT_COLUMN_BYTES, 4);
    frag_text_add_bytes(payload, heads.bytes, heads.length);
    frag_text_add_bytes(payload, data.bytes, data.length);
    while (payload->length * FRAG_FGT_EVENTS_PER_BYTE < range.count)
        frag_fgt_add(payload, 0, 8);
    frag_text_destroy(&heads);
    frag_text_destroy(&data);
    write_section(writer, kind);
}

/* ---- openings and the index */

/* Openings take little of the file, and little is read in vain. */
static const frag_fgt_sizes usual_sizes = {
    .chunk_events = FRAG_FGT_CHUNK_EVENTS,
    .opening_events = 4 * FRAG_FGT_CHUNK_EVENTS,
    .opening_ratio = 16,
};

/* Where keeping track of the memory held costs more than so many steps an event, there are no more
 * openings: a window is then read from the last one on. */
#define OPENING_COST_MAX 256u

typedef struct opening_state {
    frag_opening *opening;
    uint64_t last;      /* event of the last one */
    size_t event_count; /* of the one that was looked at last */
} opening_state;

/* The events of an opening as a trace; the caller frees its columns. */
static frag_trace opening_trace(const frag_trace *whole, const frag_open_event *open, size_t count)
{
    frag_trace trace = {.event_count = count};
    trace.events = frag_alloc(count, sizeof *trace.events);
    trace.addresses = frag_alloc(count, sizeof *trace.addresses);
    trace.times_ns = frag_alloc(count, sizeof *trace.times_ns);
    trace.sites = frag_alloc(count, sizeof *trace.sites);
    trace.pools = frag_alloc(count, sizeof *trace.pools);
    trace.notes = frag_alloc(count, sizeof *trace.notes);
    trace.block_bytes = frag_alloc(count, sizeof *trace.block_bytes);
    for (size_t i = 0; i < count; i++) {
        uint64_t event = open[i].event;
        trace.events[i] = whole->events[event];
        trace.events[i].bytes = open[i].bytes;
        trace.addresses[i] = open[i].address;
        trace.times_ns[i] = column_value(whole, FRAG_FGT_COLUMN_TIME, event);
        trace.sites[i] = (uint32_t)column_value(whole, FRAG_FGT_COLUMN_SITE, event);
        trace.pools[i] = (uint32_t)column_value(whole, FRAG_FGT_COLUMN_POOL, event);
        trace.notes[i] = (uint32_t)column_value(whole, FRAG_FGT_COLUMN_NOTE, event);
        trace.block_bytes[i] = column_value(whole, FRAG_FGT_COLUMN_BLOCK_BYTES, event);
    }
    return trace;
}

/* Slots below fresh that are in the stack just as if they had never been taken are left out. */
static void write_slots(fgt_writer *writer, uint32_t number, const frag_fgt_slots *slots)
{
    size_t first = 0;
    uint32_t fresh = slots->fresh;
    for (; first < slots->count && fresh > 0 && slots->free[first] == fresh - 1; first++)
        fresh--;
    frag_fgt_add(&writer->table, number, 4);
    frag_fgt_add(&writer->table, fresh, 4);
    for (size_t i = first; i < slots->count; i++)
        frag_fgt_add(&writer->table, slots->free[i], 4);
    write_table(writer, FRAG_FGT_OPENING_SLOTS);
}

/* Writes the opening of the chunk that begins at first, if it is time for one. Returns its offset,
 * or 0. */
static uint64_t write_opening(fgt_writer *writer, opening_state *state, uint32_t number,
                              uint64_t first, const frag_fgt_slots *slots)
{
    const frag_trace *trace = &writer->recording->traces[number];
    uint64_t since = first - state->last;
    if (state->opening == NULL)
        return 0;
    frag_opening_follow_to(state->opening, first);
    if (frag_opening_cost(state->opening) / OPENING_COST_MAX > first) {
        frag_opening_destroy(state->opening);
        state->opening = NULL;
        return 0;
    }
    if (since < writer->sizes.opening_events ||
        since < writer->sizes.opening_ratio * state->event_count)
        return 0;
    frag_open_event *open = frag_opening_list(state->opening, &state->event_count);
    uint64_t offset = 0;
    if (since >= writer->sizes.opening_ratio * state->event_count) {
        offset = writer->offset;
        frag_trace opening = opening_trace(trace, open, state->event_count);
        for (chunk_range range = {number, 0, 0}; next_chunk(writer, &opening, &range);)
            write_columns(writer, &opening, range, false, FRAG_FGT_OPENING);
        write_slots(writer, number, slots);
        frag_trace_destroy(&opening);
        state->last = first;
    }
    frag_free(open);
    return offset;
}

static void add_to_index(fgt_writer *writer, chunk_range range, uint64_t opening)
{
    const uint64_t *times = writer->recording->traces[range.number].times_ns;
    frag_fgt_index_entry entry = {
        .trace = range.number,
        .count = range.count,
        .first = range.first,
        .offset = writer->offset,
        .opening = opening,
    };
    for (uint64_t i = range.first; times != NULL && i < range.first + range.count; i++) {
        if (times[i] == 0)
            continue;
        if (entry.time_first_ns == 0 || times[i] < entry.time_first_ns)
            entry.time_first_ns = times[i];
        entry.time_last_ns = times[i] > entry.time_last_ns ? times[i] : entry.time_last_ns;
    }
    *FRAG_APPEND(writer->index, writer->index_count, writer->index_capacity) = entry;
}

static void write_index(fgt_writer *writer)
{
    frag_fgt_index_put(writer->index, writer->index_count, &writer->payload);
    write_section(writer, FRAG_FGT_INDEX);
}

/* ---- the events of a trace */
static void write_events(fgt_writer *writer, uint32_t number)
{
    const frag_trace *trace = &writer->recording->traces[number];
    frag_fgt_slots slots = {0};
    opening_state state = {.opening = frag_opening_create(trace)};
    for (chunk_range range = {number, 0, 0}; next_chunk(writer, trace, &range);) {
        add_to_index(writer, range, write_opening(writer, &state, number, range.first, &slots));
        bool is_foreseen = foresee_slots(&slots, trace->events + range.first, range.count);
        write_columns(writer, trace, range, is_foreseen, FRAG_FGT_EVENTS);
    }
    frag_opening_destroy(state.opening);
    frag_fgt_slots_destroy(&slots);
}

static void write_header(fgt_writer *writer)
{
    unsigned char head[FRAG_FGT_HEADER_BYTES];
    memcpy(head, FRAG_FGT_MAGIC, FRAG_FGT_MAGIC_BYTES);
    frag_fgt_put(head + 8, FRAG_FGT_MAJOR, 2);
    frag_fgt_put(head + 10, FRAG_FGT_MINOR, 2);
    frag_fgt_put(head + 12, writer->recording->trace_count, 4);
    fwrite(head, 1, sizeof head, writer->stream);
    writer->offset += sizeof head;
}

bool frag_fgt_write(const frag_recording *recording, FILE *stream, frag_error *error)
{
    return frag_fgt_write_sized(recording, usual_sizes, stream, error);
}

bool frag_fgt_write_sized(const frag_recording *recording, frag_fgt_sizes sizes, FILE *stream,
                          frag_error *error)
{
    fgt_writer writer = {.recording = recording, .sizes = sizes, .stream = stream};
    writer.encoder = frag_fgt_encoder_create();
    writer.raw = frag_alloc(RAW_BYTES_MAX, 1);
    writer.packed = frag_alloc(frag_compress_bound(RAW_BYTES_MAX), 1);
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
    for (uint32_t i = 0; i < recording->trace_count; i++)
        write_figures(&writer, i);
    for (uint32_t i = 0; i < recording->trace_count; i++)
        write_events(&writer, i);
    write_index(&writer);
    write_section(&writer, FRAG_FGT_END);
    frag_text_destroy(&writer.payload);
    frag_text_destroy(&writer.table);
    frag_fgt_encoder_destroy(writer.encoder);
    frag_free(writer.raw);
    frag_free(writer.packed);
    frag_free(writer.values);
    frag_free(writer.guesses);
    frag_free(writer.slots);
    frag_free(writer.index);
    if (ferror(stream) != 0)
        return frag_fail(error, FRAG_E_SYSTEM, "writing failed (%s); is the disk full?",
                         strerror(errno));
    return true;
}
