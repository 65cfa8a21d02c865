#include "sim/replay/history.h"

#include <string.h>

#include "base/memory.h"

/* ---- requests */

static uint64_t count_allocs(const frag_trace *trace)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < trace->event_count; i++)
        count += trace->events[i].op == FRAG_OP_ALLOC;
    return count;
}

bool frag_request_list_create(frag_request_list *list, const frag_trace *trace, frag_error *error)
{
    *list = (frag_request_list){0};
    uint64_t count = count_allocs(trace);
    if (count >= FRAG_REQUEST_NONE)
        return frag_fail(
            error, FRAG_E_INPUT,
            "the trace has more than 4 billion requests; draw a part of it: fraglab trace cut");
    list->count = (uint32_t)count;
    list->events = frag_alloc((size_t)count, sizeof *list->events);
    list->free_events = frag_alloc((size_t)count, sizeof *list->free_events);
    list->by_event = frag_alloc((size_t)trace->event_count, sizeof *list->by_event);
    uint32_t *by_slot = frag_alloc(trace->slot_count, sizeof *by_slot);
    uint32_t next = 0;
    for (uint64_t i = 0; i < trace->event_count; i++) {
        const frag_event *event = &trace->events[i];
        list->by_event[i] = FRAG_REQUEST_NONE;
        if (event->op == FRAG_OP_ALLOC) {
            list->events[next] = i;
            /* What failed when recorded is given back at once by a policy that serves it. */
            bool has_failed = (event->flags & FRAG_EVENT_FAILED) != 0;
            list->free_events[next] = has_failed ? i : FRAG_UNLIMITED;
            list->by_event[i] = next;
            if (event->slot < trace->slot_count)
                by_slot[event->slot] = next;
            next++;
        } else if (event->op == FRAG_OP_FREE) {
            list->free_events[by_slot[event->slot]] = i;
        }
    }
    frag_free(by_slot);
    return true;
}

void frag_request_list_destroy(frag_request_list *list)
{
    frag_free(list->events);
    frag_free(list->free_events);
    frag_free(list->by_event);
    *list = (frag_request_list){0};
}

/* ---- a run */

/* One place of a list by address. What was given back stays in its place until that is taken, or
 * the list is packed: many segments come and go in any order. */
typedef struct open_piece {
    uint64_t address;
    uint64_t end;
    size_t segment;
    bool is_gone;
} open_piece;

typedef struct recorder {
    const frag_request_list *requests;
    frag_history *history;
    open_piece *open; /* by address; pieces that are not gone do not overlap */
    size_t open_count;
    size_t open_capacity;
    size_t gone_count;
} recorder;

static frag_placement *placement_of(const recorder *record, const frag_note *note)
{
    uint32_t number = record->requests->by_event[note->alloc_event];
    FRAG_ASSERT(number != FRAG_REQUEST_NONE);
    return &record->history->placements[number];
}

/* The place of the first piece that ends above the address. */
static size_t find_open(const recorder *record, uint64_t address)
{
    size_t low = 0;
    size_t high = record->open_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (record->open[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Puts a piece in the place of one that is gone, or between two. */
static void put_piece(recorder *record, const open_piece *piece)
{
    size_t place = find_open(record, piece->address);
    open_piece *open = record->open;
    for (size_t i = place; i < record->open_count && open[i].address < piece->end; i++) {
        FRAG_ASSERT(open[i].is_gone);
        open[i].address = piece->end;
        open[i].end = open[i].end > piece->end ? open[i].end : piece->end;
    }
    bool is_before = place > 0 && open[place - 1].is_gone;
    bool is_covered =
        place < record->open_count && open[place].is_gone && open[place].end == piece->end;
    if (is_before || is_covered) {
        place -= is_covered ? 0 : 1;
        record->gone_count--;
    } else {
        record->open = frag_grow(record->open, &record->open_capacity, record->open_count + 1,
                                 sizeof *record->open);
        memmove(&record->open[place + 1], &record->open[place],
                (record->open_count - place) * sizeof *record->open);
        record->open_count++;
    }
    record->open[place] = *piece;
}

static void open_segment(recorder *record, const frag_held_segment *segment)
{
    frag_history *history = record->history;
    history->segments = frag_grow(history->segments, &history->segment_capacity,
                                  history->segment_count + 1, sizeof *history->segments);
    history->segments[history->segment_count] = *segment;
    put_piece(record, &(open_piece){.address = segment->address,
                                    .end = segment->address + segment->bytes,
                                    .segment = history->segment_count++});
}

static void begin_segment(recorder *record, const frag_note *note)
{
    frag_held_segment segment = {
        .begin = note->event,
        .end = FRAG_UNLIMITED,
        .address = note->address,
        .bytes = note->bytes,
        .stream = note->stream,
        .pool = note->pool,
        .is_mapped = note->kind == FRAG_NOTE_SEGMENT_MAP || note->kind == FRAG_NOTE_HELD_RANGE,
    };
    if (segment.bytes > 0)
        open_segment(record, &segment);
}

static void pack(recorder *record)
{
    size_t kept = 0;
    for (size_t i = 0; i < record->open_count; i++)
        if (!record->open[i].is_gone)
            record->open[kept++] = record->open[i];
    record->open_count = kept;
    record->gone_count = 0;
}

/* Ends what is held of a range; what stands out of it on either side goes on as a segment of its
 * own. */
static void end_range(recorder *record, const frag_note *note)
{
    uint64_t end = note->address + note->bytes;
    frag_held_segment below = {0};
    frag_held_segment above = {0};
    for (size_t i = find_open(record, note->address);
         i < record->open_count && record->open[i].address < end; i++) {
        open_piece *piece = &record->open[i];
        if (piece->is_gone)
            continue;
        frag_held_segment *found = &record->history->segments[piece->segment];
        piece->is_gone = true;
        record->gone_count++;
        found->end = note->event;
        if (piece->address < note->address) {
            below = *found;
            below.bytes = note->address - piece->address;
        }
        if (piece->end > end) {
            above = *found;
            above.address = end;
            above.bytes = piece->end - end;
        }
    }
    if (record->gone_count > record->open_count / 2 + 64)
        pack(record);
    frag_held_segment *const rests[] = {&below, &above};
    for (size_t i = 0; i < 2; i++) {
        rests[i]->begin = note->event;
        rests[i]->end = FRAG_UNLIMITED;
        if (rests[i]->bytes > 0)
            open_segment(record, rests[i]);
    }
}

static void take_note(void *context, const frag_note *note)
{
    recorder *record = context;
    switch (note->kind) {
    case FRAG_NOTE_ALLOC:
    case FRAG_NOTE_HELD_BLOCK:
        *placement_of(record, note) = (frag_placement){
            .address = note->address,
            .block_bytes = note->block_bytes,
            .rounded_bytes = note->rounded_bytes,
            .end = FRAG_UNLIMITED,
        };
        break;
    case FRAG_NOTE_FREE_COMPLETED:
        placement_of(record, note)->end = note->event;
        break;
    case FRAG_NOTE_SEGMENT_ALLOC:
    case FRAG_NOTE_SEGMENT_MAP:
    case FRAG_NOTE_HELD_SEGMENT:
    case FRAG_NOTE_HELD_RANGE:
        begin_segment(record, note);
        break;
    case FRAG_NOTE_SEGMENT_FREE:
    case FRAG_NOTE_SEGMENT_UNMAP:
        end_range(record, note);
        break;
    case FRAG_NOTE_FREE_REQUESTED:
    case FRAG_NOTE_OOM:
        break;
    }
}

static void add_step(frag_history *history, uint64_t event, uint64_t reserved_bytes)
{
    *FRAG_APPEND(history->steps, history->step_count, history->step_capacity) =
        (frag_reserved_step){event, reserved_bytes};
}

static void observe(void *context, const frag_replay *replay, uint64_t event,
                    const frag_level *level)
{
    (void)replay;
    frag_history *history = ((recorder *)context)->history;
    uint64_t last = history->step_count > 0 ? history->steps[history->step_count - 1].reserved_bytes
                                            : FRAG_UNLIMITED;
    if (level->reserved_bytes != last)
        add_step(history, event, level->reserved_bytes);
}

static void keep_result(void *context, const frag_replay *replay, const frag_replay_result *result)
{
    frag_history *history = context;
    (void)replay;
    history->result = *result;
    /* A run that ended while the state at the start was made saw no event. */
    if (history->step_count == 0)
        add_step(history, 0, result->final.reserved_bytes);
}

bool frag_history_record(const frag_run_setup *setup, const frag_request_list *requests,
                         const frag_run_options *run, frag_history *history, frag_error *error)
{
    recorder record = {.requests = requests, .history = history};
    frag_replay_options options = {
        .is_oom_skipped = run->is_oom_skipped,
        .stop_after = FRAG_UNLIMITED,
        .observer = observe,
        .observer_context = &record,
        .on_note = take_note,
        .on_note_context = &record,
        .is_start_noted = true,
        .context = run->context,
    };
    *history = (frag_history){0};
    history->placements = frag_alloc(requests->count, sizeof *history->placements);
    bool ok = run->plan != NULL ? frag_run_look_planned(setup, run->plan, NULL, &options,
                                                        keep_result, history, error)
                                : frag_run_look(setup, &options, keep_result, history, error);
    frag_free(record.open);
    if (!ok)
        frag_history_destroy(history);
    return ok;
}

void frag_history_destroy(frag_history *history)
{
    frag_free(history->placements);
    frag_free(history->segments);
    frag_free(history->steps);
    *history = (frag_history){0};
}
