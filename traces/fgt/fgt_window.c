/* Reads a window of a .fgt with its index: tables, the nearest opening before it, and the chunks to
 * its end. */
#include <string.h>

#include "base/memory.h"
#include "traces/cut.h"
#include "traces/fgt/fgt_reader.h"
#include "traces/number_map.h"

#define TAIL_BYTES (FRAG_FGT_INDEX_TAIL_BYTES + FRAG_FGT_SECTION_BYTES) /* with the end mark */

/* Reads the index from the end of the file; none there: reader->index stays NULL. */
static bool read_index(frag_fgt_reader *reader)
{
    unsigned char tail[TAIL_BYTES];
    uint64_t file_bytes = frag_input_raw_bytes(reader->input);
    if (file_bytes < FRAG_FGT_HEADER_BYTES + FRAG_FGT_SECTION_BYTES + TAIL_BYTES ||
        !frag_input_seek(reader->input, file_bytes - TAIL_BYTES))
        return true;
    if (!frag_input_read(reader->input, tail, sizeof tail, reader->error))
        return false;
    uint64_t bytes = frag_fgt_get(tail, 8);
    uint64_t behind = 2 * FRAG_FGT_SECTION_BYTES;
    const unsigned char *end = tail + FRAG_FGT_INDEX_TAIL_BYTES;
    bool may_be = frag_fgt_get(end, 8) == FRAG_FGT_END && frag_fgt_get(end + 8, 8) == 0 &&
                  bytes <= file_bytes - behind - FRAG_FGT_HEADER_BYTES &&
                  frag_input_seek(reader->input, file_bytes - behind - bytes);
    unsigned char head[FRAG_FGT_SECTION_BYTES];
    if (!may_be)
        return true;
    if (!frag_input_read(reader->input, head, sizeof head, reader->error))
        return false;
    /* Not the head of an index: a file from before there were any. */
    if (frag_fgt_get(head, 8) != FRAG_FGT_INDEX || frag_fgt_get(head + 8, 8) != bytes)
        return true;
    uint32_t kind = 0;
    frag_input_seek(reader->input, file_bytes - behind - bytes);
    if (!frag_fgt_next_section(reader, &kind))
        return false;
    reader->index =
        frag_fgt_index_get(reader->payload, reader->payload_bytes, &reader->index_count);
    return reader->index != NULL || frag_fgt_fail(reader, "the index has the wrong size");
}

/* All before the first events; then the reader stands in front of those. */
static bool read_tables(frag_fgt_reader *reader)
{
    for (;;) {
        uint32_t kind = 0;
        if (!frag_fgt_next_section(reader, &kind))
            return false;
        if (kind == FRAG_FGT_EVENTS || kind == FRAG_FGT_OPENING || kind == FRAG_FGT_END ||
            kind == FRAG_FGT_OPENING_SLOTS || kind == FRAG_FGT_INDEX)
            return frag_input_seek(reader->input, reader->section_offset);
        if (kind <= FRAG_FGT_KIND_LAST && !frag_fgt_read_known(reader, kind))
            return false;
    }
}

/* Chunks of one trace after the other, without a gap, in the order of the file. */
static bool judge_index(frag_fgt_reader *reader)
{
    uint32_t trace = 0;
    uint64_t events = 0;
    uint64_t offset = FRAG_FGT_HEADER_BYTES;
    bool ok = reader->recording->trace_count == reader->trace_count;
    for (size_t i = 0; ok && i < reader->index_count; i++) {
        const frag_fgt_index_entry *entry = &reader->index[i];
        while (trace < reader->trace_count && events == reader->states[trace].event_count) {
            trace++;
            events = 0;
        }
        ok = entry->trace == trace && trace < reader->trace_count && entry->first == events &&
             entry->count > 0 && entry->count <= reader->states[trace].event_count - events &&
             entry->offset > offset && entry->offset < frag_input_raw_bytes(reader->input) &&
             entry->opening < entry->offset && (entry->opening == 0 || entry->opening > offset);
        events += entry->count;
        offset = entry->offset;
    }
    for (; ok && trace < reader->trace_count; trace++, events = 0)
        ok = events == reader->states[trace].event_count;
    return ok || frag_fgt_fail(reader, "the index does not fit the summaries");
}

/* Which entries of the index a window needs, at least: from one to behind another. */
typedef struct index_range {
    size_t first;
    size_t end;
} index_range;

/* The events [first, end) of a trace. */
static index_range find_chunks(const frag_fgt_reader *reader, uint32_t number, uint64_t first,
                               uint64_t end)
{
    index_range range = {SIZE_MAX, 0};
    for (size_t i = 0; i < reader->index_count; i++) {
        const frag_fgt_index_entry *entry = &reader->index[i];
        if (entry->trace != number || entry->first + entry->count <= first || entry->first >= end)
            continue;
        range.first = range.first < i ? range.first : i;
        range.end = i + 1;
    }
    return range;
}

static index_range find_times(const frag_fgt_reader *reader, const frag_window *window,
                              uint32_t number)
{
    index_range range = {SIZE_MAX, 0};
    for (size_t i = 0; i < reader->index_count; i++) {
        const frag_fgt_index_entry *entry = &reader->index[i];
        if (entry->trace != number || entry->time_last_ns == 0 ||
            entry->time_last_ns < window->first || entry->time_first_ns >= window->end)
            continue;
        range.first = range.first < i ? range.first : i;
        range.end = i + 1;
    }
    return range;
}

/* From the first mark of a name on; where its end is, events have to tell. */
static index_range find_mark(const frag_fgt_reader *reader, const frag_window *window,
                             uint32_t number)
{
    const frag_trace_figures *figures = reader->recording->traces[number].figures;
    const frag_strings *strings = &reader->recording->strings;
    for (uint32_t i = 0; figures != NULL && i < figures->mark_count; i++)
        if (figures->marks[i].name < strings->count &&
            strcmp(frag_strings_get(strings, figures->marks[i].name), window->first_mark) == 0)
            return find_chunks(reader, number, figures->marks[i].first_event, UINT64_MAX);
    return (index_range){SIZE_MAX, 0};
}

/* The trace that a window is of; false: that is to be judged where all is loaded. */
static bool find_trace(const frag_fgt_reader *reader, frag_window *window)
{
    const frag_recording *recording = reader->recording;
    window->trace = 0;
    if (!window->has_device)
        return recording->trace_count == 1;
    for (; window->trace < recording->trace_count; window->trace++)
        if (recording->traces[window->trace].device == window->device)
            return true;
    return false;
}

static index_range find_window(const frag_fgt_reader *reader, const frag_window *window)
{
    uint64_t count = reader->states[window->trace].event_count;
    uint64_t end = window->end == UINT64_MAX ? count : window->end;
    switch (window->kind) {
    case FRAG_WINDOW_EVENTS:
        return window->first < end && end <= count
                   ? find_chunks(reader, window->trace, window->first, end)
                   : (index_range){SIZE_MAX, 0};
    case FRAG_WINDOW_TIMES:
        return find_times(reader, window, window->trace);
    case FRAG_WINDOW_MARKS:
        return find_mark(reader, window, window->trace);
    default:
        return (index_range){SIZE_MAX, 0};
    }
}

static bool read_free_slots(frag_fgt_reader *reader, const unsigned char *in, size_t bytes)
{
    if (bytes < 8 || bytes % 4 != 0 || frag_fgt_get(in, 4) != reader->options->window->trace)
        return frag_fgt_fail(reader, "the free slots of an opening have the wrong size");
    frag_fgt_slots *slots = &reader->states[reader->options->window->trace].slots;
    frag_fgt_slots_destroy(slots);
    slots->fresh = (uint32_t)frag_fgt_get(in + 4, 4);
    slots->count = bytes / 4 - 2;
    slots->free = frag_grow(NULL, &slots->capacity, slots->count + 1, sizeof *slots->free);
    for (size_t i = 0; i < slots->count; i++)
        slots->free[i] = (uint32_t)frag_fgt_get(in + 8 + 4 * i, 4);
    return true;
}

/* Appends the events of the section that was read. */
static bool append_events(frag_fgt_reader *reader, uint32_t count_wanted)
{
    uint32_t number = 0;
    uint32_t count = 0;
    if (!frag_fgt_read_chunk_head(reader, &number, &count))
        return false;
    if (number != reader->options->window->trace || (count_wanted != 0 && count != count_wanted))
        return frag_fgt_fail(reader, "a chunk of events is not the one that the index names");
    return frag_fgt_read_events(reader, &reader->recording->traces[number], &reader->states[number],
                                count);
}

static bool read_opening(frag_fgt_reader *reader, uint64_t offset)
{
    uint32_t kind = 0;
    if (!frag_input_seek(reader->input, offset))
        return frag_fgt_fail(reader, "the index names an opening that is not in the file");
    for (;;) {
        if (!frag_fgt_next_section(reader, &kind))
            return false;
        if (kind == FRAG_FGT_OPENING_SLOTS)
            return frag_fgt_read_unpacked(reader, read_free_slots);
        if (kind != FRAG_FGT_OPENING)
            return frag_fgt_fail(reader, "the index names an opening that is none");
        if (!append_events(reader, 0))
            return false;
    }
}

static bool read_indexed_chunk(frag_fgt_reader *reader, const frag_fgt_index_entry *entry)
{
    uint32_t kind = 0;
    if (!frag_input_seek(reader->input, entry->offset) || !frag_fgt_next_section(reader, &kind))
        return frag_fgt_fail(reader, "the index names a chunk that is not in the file");
    return kind == FRAG_FGT_EVENTS
               ? append_events(reader, entry->count)
               : frag_fgt_fail(reader, "a chunk of events is not the one that the index names");
}

/* Slots as if the events left out had never been: a whole trace has dense ones. A slot that is
 * released but was never taken becomes none, for frag_trace_accept to judge. */
static void renumber_slots(frag_trace *trace)
{
    frag_number_map numbers = {0};
    uint32_t *free_slots = frag_alloc((size_t)trace->event_count, sizeof *free_slots);
    size_t free_count = 0;
    uint32_t next = 0;
    for (uint64_t i = 0; i < trace->event_count; i++) {
        frag_event *event = &trace->events[i];
        uint32_t slot = event->slot;
        uint64_t number = FRAG_SLOT_NONE;
        if (frag_fgt_takes_slot(event->op, event->flags)) {
            number = free_count > 0 ? free_slots[--free_count] : next++;
            frag_number_map_set(&numbers, slot, number);
        } else if (frag_op_is_of_block(event->op)) {
            frag_number_map_get(&numbers, slot, &number);
        } else {
            continue;
        }
        event->slot = (uint32_t)number;
        if (!frag_fgt_gives_slot(event->op, event->flags) || number == FRAG_SLOT_NONE)
            continue;
        frag_number_map_remove(&numbers, slot);
        free_slots[free_count++] = event->slot;
    }
    frag_number_map_destroy(&numbers);
    frag_free(free_slots);
}

/* Where a window of times or marks is among the events that were read. */
static bool locate_window(const frag_fgt_reader *reader, frag_window *window)
{
    frag_error none = {0};
    frag_cut_range range = {0};
    const frag_trace *trace = &reader->recording->traces[window->trace];
    bool is_found = window->kind == FRAG_WINDOW_TIMES
                        ? frag_cut_find_times(trace, (frag_cut_times){window->first, window->end},
                                              &range, &none)
                        : frag_cut_find_marks(reader->recording, trace, window->first_mark,
                                              window->last_mark, &range, &none);
    window->found_first = range.first;
    window->found_end = range.end;
    return is_found;
}

/* Events that were not accepted yet may name strings that are not there. */
static bool are_marks_named(const frag_fgt_reader *reader, const frag_trace *trace)
{
    for (uint64_t i = 0; i < trace->event_count; i++)
        if (trace->events[i].op == FRAG_OP_MARK &&
            trace->events[i].slot >= reader->recording->strings.count)
            return false;
    return true;
}

/* Of a mark whose end is sought: is it time to look again, after so many chunks? */
static bool is_power_of_two(size_t count)
{
    return (count & (count - 1)) == 0;
}

/* Reads the opening that is nearest before the window, and on to its end. */
static bool read_indexed(frag_fgt_reader *reader, index_range needed)
{
    frag_window *window = reader->options->window;
    frag_trace *trace = &reader->recording->traces[window->trace];
    frag_fgt_trace_state *state = &reader->states[window->trace];
    size_t start = needed.first;
    while (reader->index[start].opening == 0 && reader->index[start].first > 0)
        start--;
    frag_trace_scan_destroy(state->scan);
    state->scan = NULL;
    if (reader->index[start].opening != 0 && !read_opening(reader, reader->index[start].opening))
        return false;
    window->left_out = reader->index[start].first - trace->event_count;
    for (size_t i = start; i < needed.end; i++) {
        if (!read_indexed_chunk(reader, &reader->index[i]))
            return false;
        window->is_found = window->kind == FRAG_WINDOW_MARKS && i >= needed.first &&
                           is_power_of_two(i - needed.first + 1) &&
                           are_marks_named(reader, trace) && locate_window(reader, window);
        if (window->is_found)
            break;
    }
    if (window->kind == FRAG_WINDOW_EVENTS) {
        uint64_t end = window->end == UINT64_MAX ? state->event_count : window->end;
        window->found_first = window->first - window->left_out;
        window->found_end = end - window->left_out;
        window->is_found = true;
    }
    frag_fgt_drop_zero_columns(trace);
    renumber_slots(trace);
    if (!frag_trace_accept(reader->recording, trace, NULL, reader->error))
        return false;
    window->is_found = window->is_found || locate_window(reader, window);
    return window->is_found || frag_fgt_fail(reader, "the window is not where the index says");
}

bool frag_fgt_read_window(frag_fgt_reader *reader, bool *is_read)
{
    frag_window *window = reader->options->window;
    *is_read = false;
    window->is_found = false;
    if (window->kind == FRAG_WINDOW_ALL || !read_index(reader))
        return window->kind == FRAG_WINDOW_ALL;
    if (reader->index == NULL || !frag_input_seek(reader->input, FRAG_FGT_HEADER_BYTES)) {
        frag_input_seek(reader->input, FRAG_FGT_HEADER_BYTES);
        return true;
    }
    if (!read_tables(reader) || !judge_index(reader))
        return false;
    if (!find_trace(reader, window) || !reader->states[window->trace].has_tables)
        return true;
    index_range needed = find_window(reader, window);
    if (needed.first >= needed.end)
        return true;
    *is_read = true;
    return read_indexed(reader, needed);
}
