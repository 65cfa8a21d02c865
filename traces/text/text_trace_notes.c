#include "traces/text/text_trace_notes.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"

static void note(frag_text_notes *notes, bool is_inconsistency, const char *kind,
                 const char *meaning)
{
    frag_findings_add(notes->findings, kind, meaning, is_inconsistency, notes->device, notes->event,
                      "line %" PRIu64, notes->line);
}

/* ---- addresses */

static void keep_address(frag_text_notes *notes, uint32_t slot, uint64_t address)
{
    size_t old = notes->slot_count;
    if (slot >= old) {
        notes->address_of = frag_grow(notes->address_of, &notes->slot_count, (size_t)slot + 1,
                                      sizeof *notes->address_of);
        memset(notes->address_of + old, 0, (notes->slot_count - old) * sizeof *notes->address_of);
    }
    notes->address_of[slot] = address;
}

static void check_end(frag_text_notes *notes, const frag_build_event *event)
{
    uint64_t bytes = event->bytes > event->block_bytes ? event->bytes : event->block_bytes;
    if (bytes > 0 && bytes - 1 > UINT64_MAX - event->address)
        note(notes, true, "end-beyond-addresses",
             "bytes at an address end beyond 2^64, where there is nothing: one of both is wrong");
}

static void take_alloc(frag_text_notes *notes, const frag_build_event *event)
{
    frag_number_map *blocks = &notes->blocks;
    if (event->slot == FRAG_SLOT_NONE || event->address == 0)
        return;
    check_end(notes, event);
    if (blocks->capacity == 0)
        frag_number_map_grow(blocks);
    size_t place = frag_number_map_find(blocks, event->address);
    uint64_t before = blocks->places[place].value;
    if (before != 0) {
        note(notes, true, "address-served-again",
             "an address came back that was still in use: a free is missing, or the address is "
             "wrong; both blocks are live");
        notes->address_of[before - 1] = 0;
        blocks->places[place].value = (uint64_t)event->slot + 1;
    } else {
        frag_number_map_add_at(blocks, place, event->address, event->slot);
    }
    keep_address(notes, event->slot, event->address);
}

static void take_free(frag_text_notes *notes, const frag_build_event *event)
{
    if (event->slot >= notes->slot_count || notes->address_of[event->slot] == 0)
        return;
    frag_number_map_remove(&notes->blocks, notes->address_of[event->slot]);
    notes->address_of[event->slot] = 0;
}

static void take_segment(frag_text_notes *notes, const frag_build_event *event)
{
    uint64_t held = 0;
    if (event->address == 0)
        return;
    check_end(notes, event);
    if (frag_number_map_get(&notes->segments, event->address, &held))
        note(notes, true, "segment-given-again",
             "the device gave a segment where one was held: a segment_free is missing, or the "
             "address is wrong");
    frag_number_map_set(&notes->segments, event->address, 0);
}

/* ---- what is begun and ended */

static bool was_begun(frag_text_notes *notes, uint32_t pool)
{
    size_t old = notes->pool_count;
    if (pool >= old) {
        notes->is_pool_begun = frag_grow(notes->is_pool_begun, &notes->pool_count, (size_t)pool + 1,
                                         sizeof *notes->is_pool_begun);
        memset(notes->is_pool_begun + old, 0,
               (notes->pool_count - old) * sizeof *notes->is_pool_begun);
    }
    return notes->is_pool_begun[pool];
}

static void take_pool_end(frag_text_notes *notes, uint32_t pool)
{
    if (!was_begun(notes, pool))
        note(notes, false, "pool-not-begun",
             "a pool was ended or released that was not begun before: that was before the "
             "recording, or is missing");
}

static void take_capture(frag_text_notes *notes, bool begins)
{
    if (notes->is_capturing == begins)
        note(notes, false, "capture-out-of-turn",
             "a capture began inside another, or ended where none had begun");
    notes->is_capturing = begins;
}

static void take_time(frag_text_notes *notes, uint64_t time_ns)
{
    if (time_ns == 0)
        return;
    if (time_ns < notes->time_ns)
        note(notes, false, "time-goes-back",
             "an event has an earlier time than one before it; events stay in the order of the "
             "lines");
    notes->time_ns = time_ns;
}

void frag_text_notes_take(frag_text_notes *notes, const frag_build_event *event, uint64_t line)
{
    notes->line = line;
    take_time(notes, event->time_ns);
    switch (event->op) {
    case FRAG_OP_ALLOC:
        take_alloc(notes, event);
        break;
    case FRAG_OP_FREE:
        take_free(notes, event);
        break;
    case FRAG_OP_SEGMENT_ALLOC:
        take_segment(notes, event);
        break;
    case FRAG_OP_SEGMENT_MAP:
    case FRAG_OP_SEGMENT_UNMAP:
        check_end(notes, event);
        break;
    case FRAG_OP_SEGMENT_FREE:
        check_end(notes, event);
        frag_number_map_remove(&notes->segments, event->address);
        break;
    case FRAG_OP_POOL_BEGIN:
    case FRAG_OP_POOL_CREATE:
        (void)was_begun(notes, event->slot);
        notes->is_pool_begun[event->slot] = true;
        break;
    case FRAG_OP_POOL_END:
    case FRAG_OP_POOL_RELEASE:
        take_pool_end(notes, event->slot);
        break;
    case FRAG_OP_CAPTURE_BEGIN:
    case FRAG_OP_CAPTURE_END:
        take_capture(notes, event->op == FRAG_OP_CAPTURE_BEGIN);
        break;
    default:
        break;
    }
    notes->event++;
}

void frag_text_notes_begin(frag_text_notes *notes, uint32_t device)
{
    frag_findings *findings = notes->findings;
    frag_text_notes_destroy(notes);
    *notes = (frag_text_notes){.findings = findings, .device = device};
}

void frag_text_notes_destroy(frag_text_notes *notes)
{
    frag_number_map_destroy(&notes->blocks);
    frag_number_map_destroy(&notes->segments);
    frag_free(notes->address_of);
    frag_free(notes->is_pool_begun);
}
