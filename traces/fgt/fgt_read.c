/* The reader of .fgt files: sections, tables and chunks; every count is checked before memory is
 * taken. */
#include <string.h>

#include "base/formats/codec.h"
#include "base/digest.h"
#include "base/memory.h"
#include "traces/fgt/fgt_reader.h"
#include "traces/format_look.h"

#define SUMMARY_BYTES (16 + 32 + FRAG_FGT_SUMMARY_NUMBERS * 8 + 4)

/* What the input shows at once without a copy. */
#define WINDOW_BYTES ((size_t)1 << 20)

/* Most events for each byte of a file that is itself inside gzip or zstd; see
 * FRAG_FGT_EVENTS_PER_BYTE. */
#define OUTER_EVENTS_PER_BYTE 1024
#define OUTER_EVENTS_FREE ((uint64_t)1 << 20)

bool frag_fgt_fail(frag_fgt_reader *reader, const char *what)
{
    return frag_fail_at(reader->error, frag_input_offset(reader->input), "%s; the file is damaged",
                        what);
}

/* A large payload is read piece by piece: a length that the file does not keep costs no memory. */
static bool copy_payload(frag_fgt_reader *reader, uint64_t bytes)
{
    while (bytes > 0) {
        size_t piece = bytes < WINDOW_BYTES ? (size_t)bytes : WINDOW_BYTES;
        reader->copy =
            frag_grow(reader->copy, &reader->copy_capacity, reader->payload_bytes + piece, 1);
        if (!frag_input_read(reader->input, reader->copy + reader->payload_bytes, piece,
                             reader->error))
            return false;
        reader->payload_bytes += piece;
        bytes -= piece;
    }
    reader->payload = reader->copy;
    return true;
}

static bool read_payload(frag_fgt_reader *reader, uint64_t bytes)
{
    reader->payload_bytes = 0;
    if (bytes > WINDOW_BYTES)
        return copy_payload(reader, bytes);
    size_t visible = 0;
    if (!frag_input_peek(reader->input, (size_t)bytes, &reader->payload, &visible, reader->error))
        return false;
    if (visible < bytes)
        return copy_payload(reader, bytes); /* which says how much is missing */
    reader->payload_bytes = (size_t)bytes;
    frag_input_skip(reader->input, (size_t)bytes);
    return true;
}

static bool skip_payload(frag_fgt_reader *reader, uint64_t bytes)
{
    while (bytes > 0) {
        const unsigned char *seen = NULL;
        size_t count = 0;
        if (!frag_input_peek(reader->input, 1, &seen, &count, reader->error))
            return false;
        if (count == 0)
            return frag_fgt_fail(reader, "the file ends inside a section");
        count = count < bytes ? count : (size_t)bytes;
        frag_input_skip(reader->input, count);
        bytes -= count;
    }
    return true;
}

static bool read_summary(frag_fgt_reader *reader)
{
    const unsigned char *in = reader->payload;
    if (reader->payload_bytes < SUMMARY_BYTES)
        return frag_fgt_fail(reader, "the summary of a trace is too short");
    frag_recording *recording = reader->recording;
    uint32_t number = recording->trace_count;
    if (number == reader->trace_count)
        return frag_fgt_fail(reader, "there are more summaries than traces");
    reader->states = frag_grow(reader->states, &reader->state_capacity, (size_t)number + 1,
                               sizeof *reader->states);
    recording->traces = frag_grow(recording->traces, &reader->trace_capacity, (size_t)number + 1,
                                  sizeof *recording->traces);
    frag_trace *trace = &recording->traces[number];
    frag_fgt_trace_state *state = &reader->states[number];
    *trace = (frag_trace){.device = (uint32_t)frag_fgt_get(in, 4)};
    *state = (frag_fgt_trace_state){0};
    recording->trace_count++;
    state->slot_count = (uint32_t)frag_fgt_get(in + 4, 4);
    state->event_count = frag_fgt_get(in + 8, 8);
    memcpy(trace->digest, in + 16, FRAG_DIGEST_TEXT_BYTES - 1);
    if (strspn(trace->digest, "0123456789abcdef") != FRAG_DIGEST_TEXT_BYTES - 1)
        return frag_fgt_fail(reader, "the digest of a trace is not 32 hexadecimal digits");
    if (number > 0 && trace->device <= trace[-1].device)
        return frag_fgt_fail(reader, "the devices of the traces do not ascend");
    frag_trace_stats *stats = &state->stats;
    uint64_t *numbers[FRAG_FGT_SUMMARY_NUMBERS];
    frag_fgt_summary_numbers(stats, numbers);
    for (uint32_t i = 0; i < FRAG_FGT_SUMMARY_NUMBERS; i++)
        *numbers[i] = frag_fgt_get(in + 48 + 8 * i, 8);
    uint64_t op_count = frag_fgt_get(in + SUMMARY_BYTES - 4, 4);
    if (reader->payload_bytes - SUMMARY_BYTES < op_count * 8)
        return frag_fgt_fail(reader, "the summary of a trace is too short");
    for (uint32_t i = 0; i < op_count && i < FRAG_OP_COUNT; i++)
        stats->op_counts[i] = frag_fgt_get(in + SUMMARY_BYTES + 8 * i, 8);
    return true;
}

/* Opens a table section: *table is the caller's to free. */
static bool unpack_table(frag_fgt_reader *reader, unsigned char **table, size_t *bytes)
{
    if (reader->payload_bytes < 8)
        return frag_fgt_fail(reader, "a table is too short");
    uint64_t raw_bytes = frag_fgt_get(reader->payload, 8);
    size_t stored = reader->payload_bytes - 8;
    if (raw_bytes < stored || raw_bytes / FRAG_FGT_TABLE_RATIO > stored)
        return frag_fgt_fail(reader, "a table has an impossible size");
    *bytes = (size_t)raw_bytes;
    *table = frag_alloc(*bytes, 1);
    if (raw_bytes == stored)
        memcpy(*table, reader->payload + 8, stored);
    else if (!frag_decompress(frag_fgt_chunk_unpacker(reader->chunks), *table, *bytes,
                              reader->payload + 8, stored, reader->error)) {
        frag_free(*table);
        return false;
    }
    return true;
}

static bool read_strings(frag_fgt_reader *reader, const unsigned char *in, size_t left)
{
    frag_strings *strings = &reader->recording->strings;
    while (left > 0) {
        uint64_t length = left < 8 ? 0 : frag_fgt_get(in, 8);
        if (left < 8 || length > left - 8)
            return frag_fgt_fail(reader, "a string reaches beyond its table");
        uint32_t expected = strings->count;
        if (frag_strings_add(strings, (const char *)in + 8, (size_t)length) != expected)
            return frag_fgt_fail(reader, "a string is in the table twice");
        in += 8 + length;
        left -= 8 + (size_t)length;
    }
    return true;
}

/* A packing problem is nothing without its times and names, for instance. */
static bool keeps_columns(const frag_fgt_reader *reader)
{
    return reader->options->with_columns || frag_recording_needs_columns(reader->recording);
}

static bool read_metadata(frag_fgt_reader *reader, const unsigned char *in, size_t left)
{
    frag_recording *recording = reader->recording;
    for (; left >= 8; left -= 8, in += 8) {
        recording->metadata =
            frag_grow(recording->metadata, &reader->metadata_capacity,
                      (size_t)recording->metadata_count + 1, sizeof *recording->metadata);
        recording->metadata[recording->metadata_count][0] = (uint32_t)frag_fgt_get(in, 4);
        recording->metadata[recording->metadata_count][1] = (uint32_t)frag_fgt_get(in + 4, 4);
        recording->metadata_count++;
    }
    return left == 0 || frag_fgt_fail(reader, "the metadata table ends inside an entry");
}

static bool read_frames(frag_fgt_reader *reader, const unsigned char *in, size_t left)
{
    frag_recording *recording = reader->recording;
    for (; left >= 12; left -= 12, in += 12) {
        *FRAG_APPEND(recording->frames, recording->frame_count, reader->frame_capacity) =
            (frag_frame){
                .name = (uint32_t)frag_fgt_get(in, 4),
                .file = (uint32_t)frag_fgt_get(in + 4, 4),
                .line = (uint32_t)frag_fgt_get(in + 8, 4),
            };
    }
    return left == 0 || frag_fgt_fail(reader, "the table of frames ends inside a frame");
}

static bool read_sites(frag_fgt_reader *reader, const unsigned char *in, size_t left)
{
    frag_recording *recording = reader->recording;
    while (left > 0) {
        uint64_t count = left < 4 ? UINT64_MAX : frag_fgt_get(in, 4);
        if (left < 4 || count > (left - 4) / 4 || count > UINT32_MAX - recording->site_frame_count)
            return frag_fgt_fail(reader, "a call site reaches beyond its table");
        *FRAG_APPEND(recording->sites, recording->site_count, reader->site_capacity) =
            (frag_site){recording->site_frame_count, (uint32_t)count};
        recording->site_frames =
            frag_grow(recording->site_frames, &reader->site_frame_capacity,
                      recording->site_frame_count + (size_t)count, sizeof *recording->site_frames);
        for (uint32_t i = 0; i < count; i++)
            recording->site_frames[recording->site_frame_count++] =
                (uint32_t)frag_fgt_get(in + 4 + 4 * i, 4);
        in += 4 + 4 * count;
        left -= 4 + 4 * (size_t)count;
    }
    return true;
}

static bool read_trace_tables(frag_fgt_reader *reader, const unsigned char *in, size_t bytes)
{
    if (bytes < 12)
        return frag_fgt_fail(reader, "the tables of a trace are too short");
    uint64_t number = frag_fgt_get(in, 4);
    uint64_t streams = frag_fgt_get(in + 4, 4);
    uint64_t pools = frag_fgt_get(in + 8, 4);
    if (number >= reader->recording->trace_count || reader->states[number].has_tables)
        return frag_fgt_fail(reader, "tables are given for no trace, or twice for one");
    if (bytes != 12 + streams * 8 + pools * 16 || pools == 0)
        return frag_fgt_fail(reader, "the tables of a trace have the wrong size");
    frag_trace *trace = &reader->recording->traces[number];
    reader->states[number].has_tables = true;
    reader->states[number].scan = frag_trace_scan_create();
    trace->stream_count = (uint32_t)streams;
    trace->pool_count = (uint32_t)pools;
    trace->stream_handles = frag_alloc((size_t)streams, sizeof *trace->stream_handles);
    trace->pool_ids = frag_alloc((size_t)pools, sizeof *trace->pool_ids);
    in += 12;
    for (uint32_t i = 0; i < trace->stream_count; i++, in += 8)
        trace->stream_handles[i] = frag_fgt_get(in, 8);
    for (uint32_t i = 0; i < trace->pool_count; i++, in += 16)
        trace->pool_ids[i] = (frag_pool_id){frag_fgt_get(in, 8), frag_fgt_get(in + 8, 8)};
    return true;
}

static bool read_figures(frag_fgt_reader *reader, const unsigned char *in, size_t bytes)
{
    uint64_t number = bytes < 4 ? UINT64_MAX : frag_fgt_get(in, 4);
    if (number >= reader->recording->trace_count ||
        reader->recording->traces[number].figures != NULL)
        return frag_fgt_fail(reader, "figures are given for no trace, or twice for one");
    frag_trace *trace = &reader->recording->traces[number];
    trace->figures = frag_fgt_figures_get(in + 4, bytes - 4);
    return trace->figures != NULL ||
           frag_fgt_fail(reader, "the figures of a trace have the wrong size");
}

/* ---- one chunk of events */
static bool find_columns(frag_fgt_reader *reader, uint32_t count,
                         frag_fgt_place places[FRAG_FGT_COLUMN_COUNT])
{
    const unsigned char *in = reader->payload + FRAG_FGT_CHUNK_BYTES;
    uint64_t column_count = frag_fgt_get(reader->payload + 8, 4);
    uint32_t known_columns = reader->major > 1 ? FRAG_FGT_COLUMN_COUNT : FRAG_FGT_COLUMN_TAKEN_SLOT;
    size_t left = reader->payload_bytes - FRAG_FGT_CHUNK_BYTES;
    if (column_count * FRAG_FGT_COLUMN_BYTES > left)
        return frag_fgt_fail(reader, "a chunk of events is too short for its columns");
    const unsigned char *stored = in + column_count * FRAG_FGT_COLUMN_BYTES;
    left -= (size_t)column_count * FRAG_FGT_COLUMN_BYTES;
    for (uint64_t i = 0; i < column_count; i++, in += FRAG_FGT_COLUMN_BYTES) {
        frag_fgt_place place = {
            /* In version 1 all values of a dictionary had 8 bytes. */
            .coding = {in[1], in[2], reader->major > 1 ? in[3] : 0},
            .raw_bytes = (uint32_t)frag_fgt_get(in + 4, 4),
            .stored_bytes = (uint32_t)frag_fgt_get(in + 8, 4),
            .stored = stored,
        };
        if (place.stored_bytes > left)
            return frag_fgt_fail(reader, "a chunk of events is too short for its columns");
        stored += place.stored_bytes;
        left -= place.stored_bytes;
        /* Columns that a newer minor version added say nothing that this version knows of. */
        if (in[0] == 0 || in[0] >= known_columns)
            continue;
        if (places[in[0]].stored != NULL)
            return frag_fgt_fail(reader, "a chunk of events has a column twice");
        if (reader->major == 1 && in[1] > FRAG_FGT_PLANES)
            return frag_fgt_fail(reader, "a column has an encoding that version 1 does not know");
        if (place.raw_bytes > FRAG_FGT_RAW_BYTES_MAX(count) || place.raw_bytes < place.stored_bytes)
            return frag_fgt_fail(reader, "a column has an impossible size");
        places[in[0]] = place;
    }
    return places[FRAG_FGT_COLUMN_OP].stored != NULL ||
           frag_fgt_fail(reader, "a chunk of events has no ops");
}

static void grow_trace(frag_trace *trace, frag_fgt_trace_state *state, uint64_t count)
{
    size_t old = state->capacity;
    if (count <= old)
        return;
    trace->events =
        frag_grow(trace->events, &state->capacity, (size_t)count, sizeof *trace->events);
    size_t capacity = state->capacity;
    frag_memory_will_fill(trace->events, capacity * sizeof *trace->events);
    frag_trace_resize_columns(trace, old, capacity);
}

bool frag_fgt_read_events(frag_fgt_reader *reader, frag_trace *trace, frag_fgt_trace_state *state,
                          uint32_t count)
{
    frag_fgt_place places[FRAG_FGT_COLUMN_COUNT] = {{{0}, 0, 0, NULL}};
    if (!find_columns(reader, count, places))
        return false;
    uint64_t first = trace->event_count;
    /* Room for the whole trace at once where the file is large enough to hold it. */
    bool is_plausible =
        !frag_input_is_compressed(reader->input) &&
        state->event_count / FRAG_FGT_EVENTS_PER_BYTE <= frag_input_raw_bytes(reader->input);
    grow_trace(trace, state, is_plausible ? state->event_count : first + count);
    const frag_fgt_chunk chunk = {
        .major = reader->major,
        .places = places,
        .trace = trace,
        .slots = &state->slots,
        .recording = reader->recording,
        .scan = state->scan,
        .capacity = state->capacity,
        .first = first,
        .count = count,
        .with_sites = reader->options->with_sites,
        .with_columns = keeps_columns(reader),
    };
    if (!frag_fgt_chunk_read(reader->chunks, &chunk, reader->error))
        return false;
    trace->event_count += count;
    return true;
}

/* Keeps where a chunk was, for the index to be compared with. */
static void note_chunk(frag_fgt_reader *reader, uint32_t number, uint32_t count, uint64_t first)
{
    *FRAG_APPEND(reader->met, reader->met_count, reader->met_capacity) =
        (frag_fgt_index_entry){.trace = number,
                               .count = count,
                               .first = first,
                               .offset = reader->section_offset,
                               .opening = reader->opening_offset};
    reader->opening_offset = 0;
}

bool frag_fgt_read_chunk_head(frag_fgt_reader *reader, uint32_t *number, uint32_t *count)
{
    if (reader->payload_bytes < FRAG_FGT_CHUNK_BYTES)
        return frag_fgt_fail(reader, "a chunk of events is too short");
    *number = (uint32_t)frag_fgt_get(reader->payload, 4);
    *count = (uint32_t)frag_fgt_get(reader->payload + 4, 4);
    if (*number >= reader->recording->trace_count)
        return frag_fgt_fail(reader, "a chunk of events is of no trace");
    return (*count > 0 && *count <= FRAG_FGT_CHUNK_EVENTS &&
            *count / FRAG_FGT_EVENTS_PER_BYTE <= reader->payload_bytes) ||
           frag_fgt_fail(reader, "a chunk claims more events than its bytes can hold");
}

static bool read_chunk(frag_fgt_reader *reader)
{
    uint32_t number = 0;
    uint32_t count = 0;
    if (!frag_fgt_read_chunk_head(reader, &number, &count))
        return false;
    frag_trace *trace = &reader->recording->traces[number];
    frag_fgt_trace_state *state = &reader->states[number];
    if (count > state->event_count - trace->event_count)
        return frag_fgt_fail(reader, "a trace has more events than its summary says");
    note_chunk(reader, number, count, trace->event_count);
    reader->event_total += count;
    if (frag_input_outgrows(reader->input, reader->event_total, OUTER_EVENTS_FREE,
                            OUTER_EVENTS_PER_BYTE))
        return frag_fgt_fail(reader, "there are more events than the compressed file can hold");
    if (trace->event_count == 0)
        state->leaves_out_events = reader->options->figures_only && trace->figures != NULL;
    if (state->leaves_out_events) {
        trace->event_count += count;
        return true;
    }
    return frag_fgt_read_events(reader, trace, state, count);
}

/* What a reader of everything does with an index: it must tell where the chunks are. */
static bool check_index(frag_fgt_reader *reader)
{
    size_t count = 0;
    frag_fgt_index_entry *index =
        frag_fgt_index_get(reader->payload, reader->payload_bytes, &count);
    if (index == NULL)
        return frag_fgt_fail(reader, "the index has the wrong size");
    bool ok = count == reader->met_count;
    for (size_t i = 0; ok && i < count; i++) {
        const frag_fgt_index_entry *met = &reader->met[i];
        ok = index[i].trace == met->trace && index[i].count == met->count &&
             index[i].first == met->first && index[i].offset == met->offset &&
             index[i].opening == met->opening;
    }
    frag_free(index);
    return ok || frag_fgt_fail(reader, "the index does not tell where the events are");
}

/* ---- sections */
bool frag_fgt_read_unpacked(frag_fgt_reader *reader, frag_fgt_table_reader *read)
{
    unsigned char *table = NULL;
    size_t bytes = 0;
    if (!unpack_table(reader, &table, &bytes))
        return false;
    bool ok = read(reader, table, bytes);
    frag_free(table);
    return ok;
}

bool frag_fgt_read_known(frag_fgt_reader *reader, uint32_t kind)
{
    if (kind != FRAG_FGT_SUMMARY && reader->recording->trace_count < reader->trace_count)
        return frag_fgt_fail(reader, "a trace has no summary");
    switch (kind) {
    case FRAG_FGT_SUMMARY:
        return read_summary(reader);
    case FRAG_FGT_STRINGS:
        return frag_fgt_read_unpacked(reader, read_strings);
    case FRAG_FGT_METADATA:
        return frag_fgt_read_unpacked(reader, read_metadata);
    case FRAG_FGT_FRAMES:
        return !reader->options->with_sites || frag_fgt_read_unpacked(reader, read_frames);
    case FRAG_FGT_SITES:
        return !reader->options->with_sites || frag_fgt_read_unpacked(reader, read_sites);
    case FRAG_FGT_TABLES:
        return frag_fgt_read_unpacked(reader, read_trace_tables);
    case FRAG_FGT_EVENTS:
        return read_chunk(reader);
    case FRAG_FGT_FIGURES:
        return frag_fgt_read_unpacked(reader, read_figures);
    case FRAG_FGT_OPENING:
    case FRAG_FGT_OPENING_SLOTS:
        if (reader->opening_offset == 0)
            reader->opening_offset = reader->section_offset;
        return true;
    case FRAG_FGT_INDEX:
        return check_index(reader);
    default:
        reader->is_at_end = true;
        return reader->payload_bytes == 0 || frag_fgt_fail(reader, "the end mark is not empty");
    }
}

bool frag_fgt_next_section(frag_fgt_reader *reader, uint32_t *kind)
{
    unsigned char head[FRAG_FGT_SECTION_BYTES];
    reader->section_offset = frag_input_offset(reader->input);
    reader->payload_bytes = 0;
    if (!frag_input_read(reader->input, head, sizeof head, reader->error))
        return false;
    *kind = (uint32_t)frag_fgt_get(head, 4);
    uint64_t bytes = frag_fgt_get(head + 8, 8);
    if (*kind == 0 || frag_fgt_get(head + 4, 4) != 0)
        return frag_fgt_fail(reader, "what should be the head of a section is not one");
    if (*kind > FRAG_FGT_KIND_LAST)
        return skip_payload(reader, bytes);
    if (!read_payload(reader, bytes))
        return false;
    if (frag_hash_bytes(reader->payload, reader->payload_bytes) != frag_fgt_get(head + 16, 8))
        return frag_fgt_fail(reader, "a section does not match its checksum");
    return true;
}

static bool read_section(frag_fgt_reader *reader)
{
    uint32_t kind = 0;
    return frag_fgt_next_section(reader, &kind) &&
           (kind > FRAG_FGT_KIND_LAST || frag_fgt_read_known(reader, kind));
}

static bool read_header(frag_fgt_reader *reader)
{
    unsigned char head[FRAG_FGT_HEADER_BYTES];
    if (!frag_input_read(reader->input, head, sizeof head, reader->error))
        return false;
    if (memcmp(head, FRAG_FGT_MAGIC, FRAG_FGT_MAGIC_BYTES) != 0)
        return frag_fail_at(reader->error, 0,
                            "the file does not begin like a .fgt; expected one that fraglab wrote");
    reader->major = (uint32_t)frag_fgt_get(head + 8, 2);
    if (reader->major == 0 || reader->major > FRAG_FGT_MAJOR)
        return frag_fail_at(reader->error, 8,
                            "the file has format version %u; this fraglab reads versions 1 to %u",
                            reader->major, FRAG_FGT_MAJOR);
    reader->trace_count = (uint32_t)frag_fgt_get(head + 12, 4);
    return reader->trace_count > 0 || frag_fgt_fail(reader, "the file holds no trace");
}

/* A column without a value other than 0 says nothing: it is as if absent, which is how we write it.
 */
static void drop_if_zero(void **column, uint64_t bytes)
{
    const char *first = *column;
    if (first == NULL || bytes == 0 || first[0] != 0 ||
        memcmp(first, first + 1, (size_t)bytes - 1) != 0)
        return;
    frag_free(*column);
    *column = NULL;
}

void frag_fgt_drop_zero_columns(frag_trace *trace)
{
    uint64_t count = trace->event_count;
    void *columns[] = {trace->addresses, trace->times_ns, trace->block_bytes,
                       trace->sites,     trace->pools,    trace->notes};
    for (size_t i = 0; i < 6; i++)
        drop_if_zero(&columns[i], count * (i < 3 ? 8 : 4));
    trace->addresses = columns[0];
    trace->times_ns = columns[1];
    trace->block_bytes = columns[2];
    trace->sites = columns[3];
    trace->pools = columns[4];
    trace->notes = columns[5];
}

/* Figures that nobody asked for are looked at and dropped: events may change, they would not. */
static bool finish_figures(frag_fgt_reader *reader, frag_trace *trace)
{
    const char *doubt = trace->figures == NULL
                            ? NULL
                            : frag_trace_figures_doubt(trace->figures, reader->recording, trace);
    if (doubt != NULL)
        return frag_fgt_fail(reader, doubt);
    if (!reader->options->figures_only) {
        frag_free(trace->figures);
        trace->figures = NULL;
    }
    return true;
}

/* Validates one trace and compares it with what its summary promised. */
static bool finish_trace(frag_fgt_reader *reader, uint32_t number)
{
    frag_trace *trace = &reader->recording->traces[number];
    frag_fgt_trace_state *state = &reader->states[number];
    if (!state->has_tables)
        return frag_fgt_fail(reader, "a trace has no tables");
    if (trace->event_count != state->event_count)
        return frag_fgt_fail(reader, "a trace has fewer events than its summary says");
    if (state->leaves_out_events) {
        trace->stats = state->stats;
        trace->slot_count = state->slot_count;
        return finish_figures(reader, trace);
    }
    frag_fgt_drop_zero_columns(trace);
    if (!frag_trace_accept(reader->recording, trace, state->scan, reader->error))
        return false;
    if (trace->times_ns == NULL && !keeps_columns(reader)) {
        trace->stats.time_first_ns = state->stats.time_first_ns;
        trace->stats.time_last_ns = state->stats.time_last_ns;
    }
    /* Not in the summary: it follows from the events. */
    state->stats.peak_attempted_bytes = trace->stats.peak_attempted_bytes;
    if (memcmp(&trace->stats, &state->stats, sizeof trace->stats) != 0 ||
        trace->slot_count != state->slot_count)
        return frag_fgt_fail(reader, "the events of a trace do not add up to its summary");
    if (!finish_figures(reader, trace))
        return false;
    if (!keeps_columns(reader))
        return true;
    char promised[FRAG_DIGEST_TEXT_BYTES];
    memcpy(promised, trace->digest, sizeof promised);
    frag_trace_digest(reader->recording, trace);
    return strcmp(promised, trace->digest) == 0 ||
           frag_fgt_fail(reader, "the content of a trace does not match its digest");
}

static bool read_all(frag_fgt_reader *reader)
{
    bool is_read = false;
    if (!read_header(reader) ||
        (reader->options->window != NULL && !frag_fgt_read_window(reader, &is_read)))
        return false;
    if (is_read)
        return true;
    while (!reader->is_at_end)
        if (!read_section(reader))
            return false;
    const unsigned char *rest = NULL;
    size_t count = 0;
    if (!frag_input_peek(reader->input, 1, &rest, &count, reader->error))
        return false;
    if (count > 0)
        return frag_fgt_fail(reader, "the file goes on after its end mark");
    for (uint32_t i = 0; i < reader->recording->trace_count; i++)
        if (!finish_trace(reader, i))
            return false;
    return true;
}

static bool read_fgt(frag_input *input, const frag_load_options *options, frag_recording *recording,
                     frag_findings *findings, frag_error *error)
{
    (void)findings;
    frag_fgt_reader reader = {
        .input = input, .options = options, .recording = recording, .error = error};
    reader.chunks = frag_fgt_chunk_reader_create();
    *recording = (frag_recording){0};
    frag_strings_add(&recording->strings, "", 0);
    recording->sites = frag_grow(NULL, &reader.site_capacity, 1, sizeof *recording->sites);
    recording->sites[recording->site_count++] = (frag_site){0};
    recording->name = frag_copy_text(frag_input_name(input));
    bool ok = read_all(&reader);
    for (uint32_t i = 0; i < recording->trace_count; i++) {
        frag_fgt_slots_destroy(&reader.states[i].slots);
        frag_trace_scan_destroy(reader.states[i].scan);
    }
    frag_free(reader.states);
    frag_free(reader.index);
    frag_free(reader.met);
    frag_free(reader.copy);
    frag_fgt_chunk_reader_destroy(reader.chunks);
    if (!ok) {
        frag_recording_destroy(recording);
        frag_error_in(error, frag_input_name(input));
    }
    return ok;
}

static bool is_like_fgt(const unsigned char *bytes, size_t count)
{
    return count >= FRAG_FGT_MAGIC_BYTES &&
           memcmp(bytes, FRAG_FGT_MAGIC, FRAG_FGT_MAGIC_BYTES) == 0;
}

static const char *lacks_line_ends(const unsigned char *bytes, size_t count)
{
    static const char start[] = {'\x89', 'F', 'G', 'T', '\0'};
    return frag_look_starts(bytes, count, start)
               ? "the file was a .fgt but its line ends were changed; copy it as binary"
               : NULL;
}

const frag_format frag_format_fgt = {
    .what = "fraglab's binary columns",
    .page = "trace-format.md#the-fgt-form-version-32",
    .is_like = is_like_fgt,
    .has_magic = true,
    .lacks = lacks_line_ends,
    .keeps_what_is_asked = true,
    .read = read_fgt,
};
