#include "studies/verify/golden_compare.h"

#include <inttypes.h>
#include <string.h>

#include "allocators/pytorch/pytorch_options.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "sim/device.h"
#include "sim/replay/replay.h"
#include "studies/verify/golden_layout.h"

#define SMALL_PAGE_BYTES ((uint64_t)2 << 20)
#define LARGE_PAGE_BYTES ((uint64_t)20 << 20)
/* Handles on the software device of the logs of other frameworks' pools. */
#define LEGACY_STREAM ((uint64_t)1)
#define EVENT_FIRST_UP ((uint64_t)0x600010)
#define EVENT_FIRST_DOWN ((uint64_t)0x5ffff0)
#define EVENT_STEP ((uint64_t)16)

typedef struct golden_comparison golden_comparison;

/* One device of the log. */
typedef struct side {
    golden_comparison *owner;
    const frag_trace *trace;
    frag_device *device;
    frag_replay *replay;
} side;

/* A statistic of the policy, and the line of the log at which it was taken. */
typedef struct held_stat {
    int64_t value;
    const frag_golden_line *line;
} held_stat;

struct golden_comparison {
    const frag_golden_log *log;
    frag_golden_result *result;
    side sides[FRAG_GOLDEN_DEVICES_MAX];
    const frag_golden_line *line; /* being compared */
    bool sets_devices;            /* the library sets a device before it empties its cache */
    uint32_t current;             /* the device that the program has set, as far as lines say */
    /* ---- what the policy did during the line */
    bool has_answer;
    bool is_served;
    uint64_t address;
    frag_golden_call *calls;
    size_t call_count;
    size_t call_capacity;
    frag_golden_note *notes;
    size_t note_count;
    size_t note_capacity;
    bool is_reservation_vain; /* the range at vain_address got no memory, and goes back */
    uint64_t vain_address;
    /* ---- over the whole log, by the names of its last line */
    uint64_t create_count;
    uint64_t create_fail_count;
    uint64_t unmap_count;
    held_stat *stats;          /* by string of the log */
    frag_golden_layout layout; /* at the snapshot line */
    size_t segment_next;
};

/* ---- watching */

static void keep_call(golden_comparison *state, frag_golden_call call)
{
    state->create_count +=
        call.kind == FRAG_GOLDEN_CALL_CREATE && !call.is_refused ? call.count : 0;
    state->create_fail_count += call.kind == FRAG_GOLDEN_CALL_CREATE && call.is_refused ? 1 : 0;
    state->unmap_count += call.kind == FRAG_GOLDEN_CALL_UNMAP ? call.count : 0;
    if (state->call_count > 0 &&
        frag_golden_call_merge(&state->calls[state->call_count - 1], &call))
        return;
    *FRAG_APPEND(state->calls, state->call_count, state->call_capacity) = call;
}

static uint64_t usual_page_bytes(const golden_comparison *state, uint64_t bytes)
{
    return state->log->library == 0 && bytes % LARGE_PAGE_BYTES == 0 ? LARGE_PAGE_BYTES
                                                                     : SMALL_PAGE_BYTES;
}

/* The size of the pages behind a range, of which the device is asked as a whole: as the log has it
 * for that place, where it divides the range. */
static uint64_t page_bytes_at(const golden_comparison *state, frag_golden_call_kind kind,
                              uint64_t address, uint64_t bytes)
{
    for (size_t i = 0; i < state->line->calls.count; i++) {
        const frag_golden_call *call = &state->log->calls[state->line->calls.first + i];
        if (call->kind == kind && address >= call->address &&
            address - call->address < call->bytes * call->count && bytes % call->bytes == 0)
            return call->bytes;
    }
    return usual_page_bytes(state, bytes);
}

/* As above when the device refuses: the log has no place then, but the same calls before. */
static uint64_t refused_page_bytes(const golden_comparison *state, uint64_t bytes)
{
    size_t at = state->call_count > 0 ? state->call_count - 1 : 0;
    for (; at < state->line->calls.count; at++) {
        const frag_golden_call *call = &state->log->calls[state->line->calls.first + at];
        if (call->kind == FRAG_GOLDEN_CALL_CREATE && call->is_refused && bytes % call->bytes == 0)
            return call->bytes;
    }
    return usual_page_bytes(state, bytes);
}

/* Where the library creates pages before it reserves a range for them, none is reserved, and none
 * given back, when they are refused. */
static void drop_reservation(golden_comparison *state, uint64_t bytes)
{
    if (!state->log->creates_first || state->call_count == 0)
        return;
    const frag_golden_call *last = &state->calls[state->call_count - 1];
    if (last->kind != FRAG_GOLDEN_CALL_RESERVE || last->bytes != bytes)
        return;
    state->is_reservation_vain = true;
    state->vain_address = last->address;
    state->call_count--;
}

/* One map call stands for the library's creating and mapping of pages, one by one. It stops at the
 * first that is refused, and releases those it has. */
static void keep_map(golden_comparison *state, const side *at, uint64_t address, uint64_t bytes,
                     bool is_refused)
{
    uint64_t page = is_refused ? refused_page_bytes(state, bytes)
                               : page_bytes_at(state, FRAG_GOLDEN_CALL_MAP, address, bytes);
    uint64_t count = bytes / page;
    if (is_refused) {
        drop_reservation(state, bytes);
        uint64_t free_bytes = 0;
        uint64_t total_bytes = 0;
        /* The look is ours, not a call of the policy. */
        frag_device_look_at_memory(at->device, &free_bytes, &total_bytes);
        count = free_bytes / page;
    }
    if (count > 0)
        keep_call(state, (frag_golden_call){FRAG_GOLDEN_CALL_CREATE, false, 0, page, count});
    if (!is_refused) {
        keep_call(state, (frag_golden_call){FRAG_GOLDEN_CALL_MAP, false, address, page, count});
        return;
    }
    keep_call(state, (frag_golden_call){FRAG_GOLDEN_CALL_CREATE, true, 0, page, 1});
    if (count > 0)
        keep_call(state, (frag_golden_call){FRAG_GOLDEN_CALL_RELEASE, false, 0, page, count});
}

static void keep_second(golden_comparison *state, frag_golden_call_kind kind, uint64_t address,
                        uint64_t bytes)
{
    uint64_t page = page_bytes_at(state, kind, address, bytes);
    keep_call(state, (frag_golden_call){kind, false, address, page, bytes / page});
}

/* Waits as the logs of other frameworks' pools have them: streams by handle, the default stream by
 * its legacy one where it waits; events by handles that count up or down in order of creation. */
static void note_wait(golden_comparison *state, const side *at, const frag_device_report *report)
{
    frag_device_call call = report->call;
    uint64_t address = report->address;
    uint64_t number = call == FRAG_DEVICE_EVENT_WAIT ? report->stream : address;
    uint64_t handle = frag_trace_stream_handle(at->trace, (uint32_t)number);
    if (call == FRAG_DEVICE_EVENT_WAIT)
        keep_call(state, (frag_golden_call){FRAG_GOLDEN_CALL_WAIT, false,
                                            handle == 0 ? LEGACY_STREAM : handle,
                                            state->log->are_events_descending
                                                ? EVENT_FIRST_DOWN - EVENT_STEP * address
                                                : EVENT_FIRST_UP + EVENT_STEP * address,
                                            1});
    else if (call == FRAG_DEVICE_STREAM_WAIT)
        keep_call(state, (frag_golden_call){FRAG_GOLDEN_CALL_SYNC, false, handle, 0, 1});
    else if (call == FRAG_DEVICE_SYNCHRONIZE)
        keep_call(state, (frag_golden_call){FRAG_GOLDEN_CALL_DEVSYNC, false, 0, 0, 1});
}

/* All that was recorded on a stream is done. */
static void finish_stream(side *of, uint64_t handle)
{
    for (uint32_t i = 0; i < of->trace->stream_count; i++)
        if (of->trace->stream_handles[i] == handle)
            frag_device_stream_done(of->device, i);
}

static void note_call(void *context, const frag_device_report *report)
{
    uint64_t address = report->address;
    uint64_t bytes = report->bytes;
    const side *at = context;
    golden_comparison *state = at->owner;
    bool is_refused = report->result != FRAG_DEVICE_OK;
    uint64_t page = 0;
    switch (report->call) {
    case FRAG_DEVICE_MALLOC:
        keep_call(state,
                  (frag_golden_call){FRAG_GOLDEN_CALL_MALLOC, is_refused, address, bytes, 1});
        break;
    case FRAG_DEVICE_FREE:
        keep_call(state, (frag_golden_call){FRAG_GOLDEN_CALL_FREE, false, address,
                                            state->log->library != 0 ? bytes : 0, 1});
        break;
    case FRAG_DEVICE_RESERVE:
        keep_call(state, (frag_golden_call){FRAG_GOLDEN_CALL_RESERVE, false, address, bytes, 1});
        break;
    case FRAG_DEVICE_UNRESERVE:
        if (state->is_reservation_vain && state->vain_address == address) {
            state->is_reservation_vain = false;
            break;
        }
        keep_call(state, (frag_golden_call){FRAG_GOLDEN_CALL_VFREE, false, address, bytes, 1});
        break;
    case FRAG_DEVICE_MAP:
        if (report->is_second_map)
            keep_second(state, FRAG_GOLDEN_CALL_ALIAS, address, bytes);
        else
            keep_map(state, at, address, bytes, is_refused);
        break;
    case FRAG_DEVICE_UNMAP:
        if (report->is_second_map) {
            keep_second(state, FRAG_GOLDEN_CALL_UNALIAS, address, bytes);
            break;
        }
        page = page_bytes_at(state, FRAG_GOLDEN_CALL_UNMAP, address, bytes);
        keep_call(state,
                  (frag_golden_call){FRAG_GOLDEN_CALL_UNMAP, false, address, page, bytes / page});
        break;
    default: /* calls that look or wait */
        if (report->call == FRAG_DEVICE_STREAM_WAIT && at->device->streams.waits_elsewhere)
            finish_stream(&state->sides[state->current],
                          frag_trace_stream_handle(at->trace, (uint32_t)address));
        if (state->log->has_waits)
            note_wait(state, at, report);
        break;
    }
}

static void note_event(void *context, const frag_note *note)
{
    static const frag_golden_note_kind kinds[] = {
        [FRAG_NOTE_ALLOC] = FRAG_GOLDEN_NOTE_A,
        [FRAG_NOTE_FREE_REQUESTED] = FRAG_GOLDEN_NOTE_FR,
        [FRAG_NOTE_FREE_COMPLETED] = FRAG_GOLDEN_NOTE_FC,
        [FRAG_NOTE_SEGMENT_ALLOC] = FRAG_GOLDEN_NOTE_SA,
        [FRAG_NOTE_SEGMENT_FREE] = FRAG_GOLDEN_NOTE_SF,
        [FRAG_NOTE_SEGMENT_MAP] = FRAG_GOLDEN_NOTE_SM,
        [FRAG_NOTE_SEGMENT_UNMAP] = FRAG_GOLDEN_NOTE_SU,
        [FRAG_NOTE_OOM] = FRAG_GOLDEN_NOTE_OOM,
    };
    const side *at = context;
    golden_comparison *state = at->owner;
    *FRAG_APPEND(state->notes, state->note_count, state->note_capacity) =
        (frag_golden_note){kinds[note->kind], note->address, note->bytes,
                           frag_trace_stream_handle(at->trace, note->stream)};
}

static void note_answer(void *context, const frag_request *request, const frag_grant *grant)
{
    (void)request;
    golden_comparison *state = ((const side *)context)->owner;
    state->has_answer = true;
    state->is_served = grant != NULL;
    state->address = grant != NULL ? grant->address : 0;
}

/* ---- comparing */

/* Says what is different; the caller adds both sides' words. Returns false, as comparisons do. */
static bool differ(golden_comparison *state, const char *kind)
{
    state->result->kind = kind;
    return false;
}

static bool compare_answer(golden_comparison *state)
{
    const frag_golden_line *line = state->line;
    frag_golden_result *result = state->result;
    const char *message = frag_strings_get(&state->log->strings, line->text);
    const char *words = frag_replay_oom_message(state->sides[line->device].replay);
    bool is_oom = state->has_answer && !state->is_served;
    if (!state->has_answer && state->log->library != 0)
        return true; /* nothing was asked for */
    if (line->is_oom != is_oom) {
        if (line->is_oom)
            frag_text_add(&result->library, "out of memory%s%s", message[0] != '\0' ? ": " : "",
                          message);
        else
            frag_text_add(&result->library, "0x%" PRIx64, line->address);
        if (is_oom)
            frag_text_add(&result->policy, "out of memory%s%s", words[0] != '\0' ? ": " : "",
                          words);
        else
            frag_text_add(&result->policy, "0x%" PRIx64, state->address);
        return differ(state, "oom");
    }
    if (!is_oom && line->address != state->address) {
        frag_text_add(&result->library, "0x%" PRIx64, line->address);
        frag_text_add(&result->policy, "0x%" PRIx64, state->address);
        return differ(state, "address");
    }
    if (is_oom) {
        result->ooms++;
        if (state->log->library == 0 && strcmp(words, message) != 0) {
            frag_text_add(&result->library, "%s", message);
            frag_text_add(&result->policy, "%s", words[0] != '\0' ? words : "(no message)");
            return differ(state, "message");
        }
    }
    return true;
}

#define SHOWN_MAX 4u

static void add_call(frag_text *text, const frag_golden_call *call)
{
    frag_text_add(text, "%s%s", text->length > 0 ? ", " : "", frag_golden_call_name(call->kind));
    if (call->address != 0)
        frag_text_add(text, " 0x%" PRIx64, call->address);
    if (call->bytes != 0)
        frag_text_add(text, " %" PRIu64, call->bytes);
    if (call->count != 1)
        frag_text_add(text, " x %" PRIu64, call->count);
    if (call->is_refused)
        frag_text_add(text, " refused");
}

static void add_calls(frag_text *text, const frag_golden_call *calls, size_t from, size_t count)
{
    for (size_t i = from; i < count && i < from + SHOWN_MAX; i++)
        add_call(text, &calls[i]);
    if (count > from + SHOWN_MAX)
        frag_text_add(text, ", ...");
    if (from >= count)
        frag_text_add(text, from == 0 ? "none" : "no more");
}

static bool is_same_call(const frag_golden_call *a, const frag_golden_call *b)
{
    return a->kind == b->kind && a->is_refused == b->is_refused && a->address == b->address &&
           a->bytes == b->bytes && a->count == b->count;
}

/* A library that did not return repeated its last call until it was stopped; the policy makes it
 * once. */
static bool is_repeated(const frag_golden_call *calls, size_t from, size_t count)
{
    for (size_t i = from; from > 0 && i < count; i++)
        if (!is_same_call(&calls[i], &calls[from - 1]))
            return false;
    return from > 0;
}

static bool compare_calls(golden_comparison *state, frag_golden_list list, bool is_hang)
{
    size_t count = list.count;
    const frag_golden_call *calls = count > 0 ? &state->log->calls[list.first] : state->calls;
    size_t at = 0;
    while (at < count && at < state->call_count && is_same_call(&calls[at], &state->calls[at]))
        at++;
    state->result->device_events += at;
    if (at == state->call_count && (at == count || (is_hang && is_repeated(calls, at, count))))
        return true;
    add_calls(&state->result->library, calls, at, count);
    add_calls(&state->result->policy, state->calls, at, state->call_count);
    return differ(state, "device_calls");
}

static void add_notes(frag_text *text, const frag_golden_note *notes, size_t from, size_t count)
{
    for (size_t i = from; i < count && i < from + SHOWN_MAX; i++)
        frag_text_add(text, "%s%s 0x%" PRIx64 " %" PRIu64 " stream 0x%" PRIx64,
                      text->length > 0 ? ", " : "", frag_golden_note_name(notes[i].kind),
                      notes[i].address, notes[i].bytes, notes[i].stream);
    if (count > from + SHOWN_MAX)
        frag_text_add(text, ", ...");
    if (from >= count)
        frag_text_add(text, from == 0 ? "none" : "no more");
}

/* The events that follow from a request alone, which the log leaves out. */
static size_t plain_notes(const golden_comparison *state, frag_golden_note notes[2])
{
    const frag_golden_line *line = state->line;
    bool is_free = line->op == FRAG_GOLDEN_FREE;
    if ((line->op != FRAG_GOLDEN_ALLOC && !is_free) || line->is_oom)
        return 0;
    const frag_golden_line *alloc = &state->log->lines[line->owner];
    if (alloc->bytes == 0)
        return 0;
    notes[0] = (frag_golden_note){is_free ? FRAG_GOLDEN_NOTE_FR : FRAG_GOLDEN_NOTE_A,
                                  alloc->address, alloc->bytes, alloc->stream};
    notes[1] = notes[0];
    notes[1].kind = FRAG_GOLDEN_NOTE_FC;
    return is_free ? 2 : 1;
}

static bool compare_notes(golden_comparison *state)
{
    frag_golden_note plain[2];
    const frag_golden_note *notes = plain;
    size_t count = state->line->notes.count;
    if (!state->log->has_events)
        return true;
    if (!state->line->has_notes)
        count = plain_notes(state, plain);
    else if (count > 0)
        notes = &state->log->notes[state->line->notes.first];
    size_t at = 0;
    while (at < count && at < state->note_count && notes[at].kind == state->notes[at].kind &&
           notes[at].address == state->notes[at].address &&
           notes[at].bytes == state->notes[at].bytes && notes[at].stream == state->notes[at].stream)
        at++;
    state->result->trace_events += at;
    if (at == count && at == state->note_count)
        return true;
    add_notes(&state->result->library, notes, at, count);
    add_notes(&state->result->policy, state->notes, at, state->note_count);
    return differ(state, "trace_events");
}

static bool compare_request(golden_comparison *state)
{
    bool ok = (state->line->op != FRAG_GOLDEN_ALLOC || compare_answer(state)) &&
              compare_calls(state, state->line->calls, state->line->is_hang) &&
              compare_notes(state);
    state->result->requests += ok ? 1 : 0;
    return ok;
}

/* ---- statistics, segments, counts */

static void visit_stat(void *context, const char *name, int64_t value)
{
    golden_comparison *state = context;
    uint32_t id = 0;
    if (frag_strings_find(&state->log->strings, name, strlen(name), &id))
        state->stats[id] = (held_stat){value, state->line};
}

static bool compare_stats(golden_comparison *state)
{
    const frag_golden_line *line = state->line;
    frag_replay_stats(state->sides[line->device].replay, visit_stat, state);
    for (size_t i = 0; i < line->items.count; i++) {
        const frag_golden_figure *figure = &state->log->figures[line->items.first + i];
        const held_stat *held = &state->stats[figure->name];
        bool is_told = held->line == line;
        if (is_told && held->value == figure->value)
            continue;
        frag_text_add(&state->result->library, "%s is %" PRId64,
                      frag_strings_get(&state->log->strings, figure->name), figure->value);
        if (is_told)
            frag_text_add(&state->result->policy, "%" PRId64, held->value);
        else
            frag_text_add(&state->result->policy, "no such statistic");
        return differ(state, "stats");
    }
    state->result->stat_lines++;
    return true;
}

static bool compare_snapshot(golden_comparison *state)
{
    frag_golden_layout_destroy(&state->layout);
    state->segment_next = 0;
    for (uint32_t i = 0; i < state->log->device_count; i++)
        frag_golden_layout_add(&state->layout, state->sides[i].replay, state->sides[i].trace);
    if (state->layout.segment_count == state->line->bytes)
        return true;
    frag_text_add(&state->result->library, "%" PRIu64 " segments", state->line->bytes);
    frag_text_add(&state->result->policy, "%zu segments", state->layout.segment_count);
    return differ(state, "segments");
}

static bool compare_segment(golden_comparison *state)
{
    size_t index = state->segment_next++;
    if (index >= state->layout.segment_count) {
        frag_text_add(&state->result->library, "a segment more");
        frag_text_add(&state->result->policy, "%zu segments", state->layout.segment_count);
        return differ(state, "segments");
    }
    if (!frag_golden_layout_compare(&state->layout, index, state->log, state->line,
                                    &state->result->library, &state->result->policy))
        return differ(state, "segments");
    state->result->segments++;
    return true;
}

/* A count of the last line, by its name in the log. */
typedef struct end_count {
    const char *name;
    uint64_t value;
} end_count;

static bool compare_counts(golden_comparison *state, const end_count *counts, size_t count)
{
    const frag_golden_list *items = &state->line->items;
    for (size_t i = 0; i < items->count; i++) {
        const frag_golden_figure *figure = &state->log->figures[items->first + i];
        const char *name = frag_strings_get(&state->log->strings, figure->name);
        for (size_t j = 0; j < count; j++)
            if (strcmp(counts[j].name, name) == 0 && (int64_t)counts[j].value != figure->value) {
                frag_text_add(&state->result->library, "%" PRId64 " %s", figure->value, name);
                frag_text_add(&state->result->policy, "%" PRIu64, counts[j].value);
                return differ(state, "end");
            }
    }
    return true;
}

static bool compare_end(golden_comparison *state)
{
    uint64_t asked = 0;
    uint64_t refused = 0;
    uint64_t frees = 0;
    for (uint32_t i = 0; i < state->log->device_count; i++) {
        const frag_device *device = state->sides[i].device;
        asked += device->counts.calls[FRAG_DEVICE_MALLOC];
        refused += device->counts.failed_calls[FRAG_DEVICE_MALLOC];
        frees += device->counts.calls[FRAG_DEVICE_FREE];
    }
    const end_count counts[] = {
        {"mallocs", asked - refused},
        {"malloc_fails", refused},
        {"frees", frees},
        {"creates", state->create_count},
        {"create_fails", state->create_fail_count},
        {"unmaps", state->unmap_count},
        {"ooms", state->result->ooms},
    };
    if (state->log->has_hung)
        return true; /* what was counted until it was stopped */
    const frag_device *device = state->sides[0].device;
    const end_count peer_counts[] = {
        {"ooms", state->result->ooms},
        {"driver_mallocs", asked},
        {"driver_refusals", refused},
        {"driver_frees", frees},
        {"peak_reserved", device->reserved_peak_bytes},
        {"reserved_end", device->reserved_bytes},
        {"event_records", device->counts.calls[FRAG_DEVICE_EVENT_RECORD]},
        {"stream_waits", device->counts.calls[FRAG_DEVICE_EVENT_WAIT]},
        {"syncs", device->counts.calls[FRAG_DEVICE_STREAM_WAIT] +
                      device->counts.calls[FRAG_DEVICE_SYNCHRONIZE]},
    };
    return state->log->library == 0
               ? compare_counts(state, counts, sizeof counts / sizeof counts[0])
               : compare_counts(state, peer_counts, sizeof peer_counts / sizeof peer_counts[0]);
}

/* ---- line by line */

static bool compare_line(golden_comparison *state)
{
    switch (state->line->op) {
    case FRAG_GOLDEN_STATS:
        return compare_stats(state);
    case FRAG_GOLDEN_SNAPSHOT:
        return compare_snapshot(state);
    case FRAG_GOLDEN_SEGMENT:
        return compare_segment(state);
    case FRAG_GOLDEN_END:
        return compare_end(state);
    case FRAG_GOLDEN_ERROR:
        state->result->has_failed = true;
        return true;
    default:
        state->result->has_failed = state->result->has_failed || state->line->is_hang;
        return compare_request(state);
    }
}

/* What construction did; a difference is one of the head. */
static bool compare_start(golden_comparison *state)
{
    if (state->log->library == 0)
        return true;
    state->result->is_identical = compare_calls(state, state->log->start_calls, false);
    state->result->line = state->result->is_identical ? 0 : 1;
    return state->result->is_identical;
}

/* Up to 2.14 the library empties the caches of all devices with one of them set, the one that the
 * lines before named: a stream that it waits for then is one of that device. */
static void set_current(golden_comparison *state)
{
    const frag_golden_line *line = state->line;
    switch (line->op) {
    case FRAG_GOLDEN_FREE:
    case FRAG_GOLDEN_RECORD_STREAM:
    case FRAG_GOLDEN_COMPLETE:
    case FRAG_GOLDEN_EMPTY_CACHE:
    case FRAG_GOLDEN_SETTINGS:
    case FRAG_GOLDEN_STATS:
        break;
    default:
        state->current = line->device;
        break;
    }
    for (uint32_t d = 0; d < state->log->device_count; d++)
        state->sides[d].device->streams.waits_elsewhere =
            line->op == FRAG_GOLDEN_EMPTY_CACHE && d != state->current && !state->sets_devices;
}

static bool run_lines(golden_comparison *state, const uint64_t *ends,
                      const frag_golden_options *options, frag_error *error)
{
    const frag_golden_log *log = state->log;
    for (uint32_t i = 0; i < log->line_count; i++) {
        state->line = &log->lines[i];
        state->has_answer = false;
        state->address = 0;
        state->call_count = 0;
        state->note_count = 0;
        set_current(state);
        if (log->is_choice_free && state->line->op == FRAG_GOLDEN_ALLOC)
            frag_replay_prefer(state->sides[0].replay, state->line->address);
        for (uint32_t d = 0; d < log->device_count; d++)
            if (!frag_replay_advance(state->sides[d].replay, ends[(size_t)d * log->line_count + i],
                                     error)) {
                error->line = frag_golden_line_number(i);
                return false;
            }
        if (!compare_line(state)) {
            state->result->is_identical = false;
            state->result->line = frag_golden_line_number(i);
            return true;
        }
        if (frag_is_cancelled(options->context))
            return true;
    }
    return true;
}

static bool open_side(golden_comparison *state, uint32_t number, const frag_recording *recording,
                      const frag_policy_spec *spec, const frag_golden_options *options,
                      frag_error *error)
{
    side *opened = &state->sides[number];
    opened->owner = state;
    opened->trace = &recording->traces[number];
    frag_sim_device_options device = {
        .device = number,
        .capacity_bytes = state->log->capacity_bytes,
        .address_rule = state->log->is_bump ? FRAG_ADDRESS_BUMP : FRAG_ADDRESS_LOWEST,
        .has_endless_reserves = true,
        .reserves_beside = number > 0 ? state->sides[0].device : NULL,
        .page_bytes = state->log->page_bytes,
        .base_address = state->log->is_bump ? state->log->malloc_base : 0,
        .gap_bytes = state->log->gap_bytes,
        .is_descending = state->log->is_descending,
    };
    opened->device = frag_sim_device_create(&device);
    opened->device->watch.on_call = note_call;
    opened->device->watch.on_call_context = opened;
    opened->replay = frag_replay_create(
        &(frag_run_setup){recording, opened->trace, spec->ops, spec->values, NULL}, opened->device,
        error);
    frag_replay_options replay = {
        .is_oom_skipped = true,
        .stop_after = FRAG_UNLIMITED,
        .check_every = options->check_every,
        .on_grant = note_answer,
        .on_grant_context = opened,
        .on_note = note_event,
        .on_note_context = opened,
        .keeps_stats = true,
    };
    return opened->replay != NULL && frag_replay_start(opened->replay, &replay, error);
}

/* Does the log say that the library refused the settings in the same words? */
static bool is_refused_alike(const frag_golden_log *log, const frag_error *error)
{
    if (log->line_count == 0 || log->lines[0].op != FRAG_GOLDEN_ERROR ||
        error->code != FRAG_E_USAGE)
        return false;
    const char *words = frag_strings_get(&log->strings, log->lines[0].text);
    size_t length = strlen(words);
    size_t whole = strlen(error->sentence);
    return length > 0 && length <= whole && strcmp(error->sentence + whole - length, words) == 0;
}

bool frag_golden_compare(const frag_golden_log *log, const frag_recording *recording,
                         const uint64_t *ends, const frag_policy_spec *spec,
                         const frag_golden_options *options, frag_golden_result *result,
                         frag_error *error)
{
    *result = (frag_golden_result){.is_identical = true};
    golden_comparison *state = frag_alloc(1, sizeof *state);
    state->log = log;
    state->result = result;
    uint32_t version = 0;
    state->sets_devices = frag_pytorch_version(log->torch, "", &version, NULL) && version >= 215;
    state->stats = frag_alloc(log->strings.count, sizeof *state->stats);
    bool ok = true;
    for (uint32_t i = 0; ok && i < log->device_count; i++)
        ok = open_side(state, i, recording, spec, options, error);
    if (ok && compare_start(state))
        ok = run_lines(state, ends, options, error);
    if (!ok && is_refused_alike(log, error)) {
        *error = (frag_error){.code = FRAG_E_NONE};
        result->has_failed = true;
        ok = true;
    }
    for (uint32_t i = log->device_count; i > 0; i--) {
        frag_replay_destroy(state->sides[i - 1].replay);
        frag_device_destroy(state->sides[i - 1].device);
    }
    frag_golden_layout_destroy(&state->layout);
    frag_free(state->stats);
    frag_free(state->calls);
    frag_free(state->notes);
    frag_free(state);
    return ok;
}

void frag_golden_result_destroy(frag_golden_result *result)
{
    frag_text_destroy(&result->library);
    frag_text_destroy(&result->policy);
}
