/* Whether a trace can be replayed: its events in one pass that measures them too, then its tables
 * and columns. */
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/memory.h"
#include "sim/trace/trace.h"
#include "sim/trace/trace_plain.h"

/* Slots may be numbered as a person likes, but not so sparsely that the slot tables of a small file
 * take much memory. */
#define SLOT_SLACK 65536
#define SLOTS_AT_FIRST 64

/* What is known of a slot as events go by: 0 where it is free, the bytes of a live block, or this.
 */
#define SLOT_WAITING ((uint64_t)1 << 63)

/* More than any program can ask for; keeps every sum far from wrapping around. */

/* ---- checking and measuring, in one pass over the events */
struct frag_trace_scan {
    const frag_recording *recording;
    const frag_trace *trace;
    frag_trace_stats stats;
    frag_error *error;
    uint64_t next; /* event */
    bool is_after_prologue;
    bool has_failed;
    uint64_t *slots;
    uint32_t slot_count;
    size_t slot_capacity;
    uint64_t requested_bytes;
    uint64_t total_bytes; /* of all allocs */
    uint64_t taken_count; /* slots live or waiting */
    uint64_t observed_bytes;
};

static bool fail_event(const frag_trace_scan *scan, uint64_t index, const char *problem,
                       uint64_t found, const char *remedy)
{
    const frag_event *event = &scan->trace->events[index];
    return frag_fail(scan->error, FRAG_E_INPUT, "event %llu of device %u (%s) %s %llu; %s",
                     (unsigned long long)index, scan->trace->device,
                     event->op < FRAG_OP_COUNT ? frag_op_name((frag_op)event->op) : "unknown op",
                     problem, (unsigned long long)found, remedy);
}

/* Makes room for a slot that is used for the first time. */
static bool grow_slots(frag_trace_scan *scan, uint64_t index, uint32_t slot)
{
    if (slot == FRAG_SLOT_NONE || slot > index + SLOT_SLACK)
        return fail_event(scan, index, "uses slot", slot,
                          "expected a dense number that starts from 0");
    if (slot >= scan->slot_capacity) {
        size_t old = scan->slot_capacity;
        scan->slots =
            frag_grow(scan->slots, &scan->slot_capacity, (size_t)slot + 1, sizeof *scan->slots);
        memset(scan->slots + old, 0, (scan->slot_capacity - old) * sizeof *scan->slots);
    }
    scan->slot_count = slot + 1;
    return true;
}

/* Slots below this may be used for the first time without a look at anything but their state, which
 * is there and zero. */
static uint32_t fresh_slot_limit(const frag_trace_scan *scan)
{
    uint64_t dense = scan->next + SLOT_SLACK;
    uint64_t limit = scan->slot_capacity < dense ? scan->slot_capacity : dense;
    return limit < FRAG_SLOT_NONE ? (uint32_t)limit : FRAG_SLOT_NONE;
}

static bool is_live(uint64_t state)
{
    return state != 0 && state != SLOT_WAITING;
}

/* Of sums that failed requests are part of: what is more than can be counted is the most. */
static uint64_t sum_up_to_max(uint64_t sum, uint64_t bytes)
{
    return bytes <= INT64_MAX - sum ? sum + bytes : INT64_MAX;
}

static bool scan_alloc(frag_trace_scan *scan, uint64_t index)
{
    const frag_event *event = &scan->trace->events[index];
    frag_trace_stats *stats = &scan->stats;
    bool is_initial = (event->flags & FRAG_EVENT_INITIAL) != 0;
    if (event->bytes - 1 >= FRAG_REQUEST_BYTES_MAX)
        return fail_event(scan, index, "asks for bytes:", event->bytes,
                          "expected " FRAG_REQUEST_BYTES_RANGE);
    bool has_failed = (event->flags & FRAG_EVENT_FAILED) != 0;
    if ((event->flags & FRAG_EVENT_PLACED) != 0 && (is_initial || has_failed))
        return fail_event(scan, index, "is PLACED and INITIAL or FAILED: flags", event->flags,
                          "expected only requests that were served to be placed");
    /* Requests that failed can be of any size, and as many as there are. */
    scan->total_bytes += has_failed ? 0 : event->bytes;
    if (scan->total_bytes > FRAG_TRACE_BYTES_MAX)
        return fail_event(scan, index, "brings the sum of all requests to", scan->total_bytes,
                          "expected at most 2^62 bytes");
    if (!is_initial) {
        stats->request_count++;
        stats->requested_bytes_total = sum_up_to_max(stats->requested_bytes_total, event->bytes);
    }
    if (has_failed) {
        if (is_initial)
            return fail_event(scan, index, "is INITIAL and FAILED: flags", event->flags,
                              "expected one of the two");
        if (event->slot != FRAG_SLOT_NONE)
            return fail_event(scan, index, "failed but has slot", event->slot, "expected none");
        stats->failed_count++;
        if (scan->requested_bytes + event->bytes > stats->peak_attempted_bytes)
            stats->peak_attempted_bytes = scan->requested_bytes + event->bytes;
        return true;
    }
    if (event->slot >= scan->slot_count && !grow_slots(scan, index, event->slot))
        return false;
    if (scan->slots[event->slot] != 0)
        return fail_event(scan, index, "takes slot", event->slot,
                          "which is still in use; expected a free one");
    scan->slots[event->slot] = event->bytes;
    scan->requested_bytes += event->bytes;
    scan->taken_count++;
    if (is_initial) {
        stats->initial_count++;
        stats->initial_bytes += event->bytes;
    }
    if (scan->requested_bytes > stats->peak_requested_bytes) {
        stats->peak_requested_bytes = scan->requested_bytes;
        stats->peak_requested_event = index;
    }
    if (scan->taken_count > stats->live_count_max)
        stats->live_count_max = scan->taken_count;
    return true;
}

static bool scan_free(frag_trace_scan *scan, uint64_t index)
{
    const frag_event *event = &scan->trace->events[index];
    uint64_t state = event->slot < scan->slot_count ? scan->slots[event->slot] : 0;
    if (!is_live(state))
        return fail_event(scan, index, "releases slot", event->slot,
                          state == 0 ? "which is not in use; expected an alloc before it"
                                     : "which was released before and waits for its complete");
    if ((event->flags & FRAG_EVENT_DEFERRED) != 0) {
        scan->slots[event->slot] = SLOT_WAITING;
    } else {
        if ((event->flags & FRAG_EVENT_INITIAL) != 0)
            return fail_event(
                scan, index, "is INITIAL but not DEFERRED: flags", event->flags,
                "expected only blocks that wait for a stream to be released before the start");
        scan->slots[event->slot] = 0;
        scan->taken_count--;
    }
    scan->requested_bytes -= state;
    return true;
}

static bool scan_complete(frag_trace_scan *scan, uint64_t index)
{
    uint32_t slot = scan->trace->events[index].slot;
    if (slot >= scan->slot_count || scan->slots[slot] != SLOT_WAITING)
        return fail_event(scan, index, "completes slot", slot,
                          "which has no deferred free; expected one before it");
    scan->slots[slot] = 0;
    scan->taken_count--;
    return true;
}

static bool scan_segment(frag_trace_scan *scan, uint64_t index)
{
    const frag_event *event = &scan->trace->events[index];
    if (event->bytes > FRAG_REQUEST_BYTES_MAX)
        return fail_event(scan, index, "has bytes:", event->bytes, "expected at most 2^56 - 1");
    if (event->op == FRAG_OP_SEGMENT_ALLOC || event->op == FRAG_OP_SEGMENT_MAP) {
        scan->observed_bytes += event->bytes;
        if (scan->observed_bytes > FRAG_TRACE_BYTES_MAX)
            return fail_event(scan, index, "brings the segments held to", scan->observed_bytes,
                              "expected at most 2^62 bytes");
        if (scan->observed_bytes > scan->stats.observed_reserved_peak_bytes)
            scan->stats.observed_reserved_peak_bytes = scan->observed_bytes;
    } else {
        /* A recording may begin after the segment was made: what is not known cannot be given back.
         */
        scan->observed_bytes -=
            event->bytes < scan->observed_bytes ? event->bytes : scan->observed_bytes;
    }
    return true;
}

/* Everything that is neither alloc nor free. */
static bool scan_rare(frag_trace_scan *scan, uint64_t index)
{
    const frag_event *event = &scan->trace->events[index];
    switch ((frag_op)event->op) {
    case FRAG_OP_USE:
        if (event->slot >= scan->slot_count || !is_live(scan->slots[event->slot]))
            return fail_event(scan, index, "uses slot", event->slot,
                              "which is not live; expected an alloc before it");
        return true;
    case FRAG_OP_COMPLETE:
        return scan_complete(scan, index);
    case FRAG_OP_LIMIT:
        if ((event->flags & FRAG_EVENT_RATIO) != 0 && !frag_ratio_is_code(event->bytes))
            return fail_event(scan, index, "limits to a share of the capacity:", event->bytes,
                              "expected billionths, at most 1000000000, or the bits of a double "
                              "from 0 to 1 that is not a whole number of billionths");
        return true;
    case FRAG_OP_EMPTY_CACHE:
        if (event->slot == FRAG_SLOT_NONE)
            return true;
        /* fall through */
    case FRAG_OP_POOL_BEGIN:
    case FRAG_OP_POOL_END:
    case FRAG_OP_POOL_RELEASE:
    case FRAG_OP_POOL_CREATE:
    case FRAG_OP_POOL_ON_OOM:
    case FRAG_OP_POOL_NO_SPLIT:
        if (event->op == FRAG_OP_POOL_ON_OOM && event->flags != FRAG_EVENT_BEGIN &&
            event->flags != FRAG_EVENT_END)
            return fail_event(scan, index, "has flags", event->flags,
                              "expected begin or end, one of the two");
        if (event->slot >= scan->trace->pool_count)
            return fail_event(scan, index, "names pool", event->slot,
                              "which is not in the table of pools");
        return true;
    case FRAG_OP_STATS_RESET:
        if (event->bytes == 0 || event->bytes > (FRAG_RESET_PEAKS | FRAG_RESET_SUMS))
            return fail_event(scan, index, "resets", event->bytes,
                              "expected 1 (peaks), 2 (sums) or 3 (both)");
        return true;
    case FRAG_OP_MARK:
        if ((event->flags & FRAG_EVENT_BEGIN) != 0 && (event->flags & FRAG_EVENT_END) != 0)
            return fail_event(scan, index, "begins and ends at once: flags", event->flags,
                              "expected one of the two");
        /* fall through */
    case FRAG_OP_CONFIG:
        if (event->slot >= scan->recording->strings.count)
            return fail_event(scan, index, "names string", event->slot,
                              "which is not in the table of strings");
        return true;
    case FRAG_OP_SEGMENT_ALLOC:
    case FRAG_OP_SEGMENT_FREE:
    case FRAG_OP_SEGMENT_MAP:
    case FRAG_OP_SEGMENT_UNMAP:
        return scan_segment(scan, index);
    default:
        return true;
    }
}

/* What an op does not have is 0, so that equal traces have equal bytes. */
static bool check_unused(const frag_trace_scan *scan, uint64_t index)
{
    const frag_event *event = &scan->trace->events[index];
    if (!frag_op_has_slot(event->op) && event->slot != 0)
        return fail_event(scan, index, "has slot", event->slot, "expected 0, as this op has none");
    if (!frag_op_has_stream(event->op) && event->stream != 0)
        return fail_event(scan, index, "has stream", event->stream,
                          "expected 0, as this op has none");
    return true;
}

/* Any one event, with all checks. */
static bool scan_event(frag_trace_scan *scan, uint64_t index)
{
    const frag_trace *trace = scan->trace;
    const frag_event *event = &trace->events[index];
    uint32_t stream_count = trace->stream_count > 0 ? trace->stream_count : 1;
    uint32_t op = event->op;
    if (op >= FRAG_OP_COUNT)
        return fail_event(scan, index, "has op", op,
                          "expected one that docs/trace-format.md names");
    if ((event->flags & ~frag_op_flags(op)) != 0)
        return fail_event(scan, index, "has flags", event->flags,
                          "some of which do not go with this op");
    if (event->stream >= stream_count &&
        !(event->stream == FRAG_STREAM_ALL && (op == FRAG_OP_SYNC || op == FRAG_OP_POOL_BEGIN)))
        return fail_event(scan, index, "names stream", event->stream,
                          "which is not in the table of streams");
    bool is_initial = (event->flags & FRAG_EVENT_INITIAL) != 0;
    if (is_initial && scan->is_after_prologue)
        return fail_event(scan, index, "is INITIAL after the prologue: flags", event->flags,
                          "expected all INITIAL events before any other");
    scan->is_after_prologue = !is_initial;
    scan->stats.op_counts[op]++;
    if (op > FRAG_OP_FREE && !check_unused(scan, index))
        return false;
    return op == FRAG_OP_ALLOC  ? scan_alloc(scan, index)
           : op == FRAG_OP_FREE ? scan_free(scan, index)
                                : scan_rare(scan, index);
}

bool frag_plain_begin(const frag_trace_scan *scan, uint64_t first, frag_plain_state *state)
{
    if (scan->has_failed || scan->next != first)
        return false;
    *state = (frag_plain_state){
        .slots = scan->slots,
        .slot_count = scan->slot_count,
        .slot_limit = fresh_slot_limit(scan),
        .live_room = scan->stats.live_count_max - scan->taken_count,
        .requested_bytes = scan->requested_bytes,
        .peak_bytes = scan->stats.peak_requested_bytes,
        .peak_index = UINT64_MAX,
    };
    return true;
}

void frag_plain_end(frag_trace_scan *scan, const frag_plain_state *state, uint64_t base,
                    const frag_plain_run *run)
{
    frag_trace_stats *stats = &scan->stats;
    FRAG_ASSERT(run->count <= FRAG_PLAIN_EVENTS_MAX);
    scan->total_bytes += run->bytes;
    scan->has_failed = !run->is_sound || state->wrong >> 63 != 0 ||
                       state->peak_bytes > FRAG_TRACE_BYTES_MAX ||
                       scan->total_bytes > FRAG_TRACE_BYTES_MAX;
    stats->op_counts[FRAG_OP_ALLOC] += run->alloc_count;
    stats->op_counts[FRAG_OP_FREE] += run->count - run->alloc_count;
    stats->request_count += run->alloc_count;
    stats->requested_bytes_total = sum_up_to_max(stats->requested_bytes_total, run->bytes);
    stats->peak_requested_bytes = state->peak_bytes;
    if (state->peak_index != UINT64_MAX)
        stats->peak_requested_event = base + state->peak_index;
    if (scan->taken_count + run->live_rise > stats->live_count_max)
        stats->live_count_max = scan->taken_count + run->live_rise;
    scan->taken_count += run->alloc_count;
    scan->taken_count -= run->count - run->alloc_count;
    scan->slot_count = state->slot_count;
    scan->requested_bytes = state->requested_bytes;
    scan->next += run->count;
    scan->is_after_prologue = scan->is_after_prologue || run->count > 0;
}

/* Goes over some plain events that lie in memory; true: it stopped in front of anything else. A
 * function of its own, so that all it needs stays in registers. */
static FRAG_NOINLINE bool scan_plain(frag_trace_scan *scan, uint64_t event_count)
{
    const frag_event *events = scan->trace->events + scan->next;
    uint64_t first = scan->next;
    uint64_t end =
        event_count - first < FRAG_PLAIN_EVENTS_MAX ? event_count - first : FRAG_PLAIN_EVENTS_MAX;
    uint64_t stream_last = scan->trace->stream_count > 0 ? scan->trace->stream_count - 1 : 0;
    uint64_t total = 0;
    uint64_t wrong_streams = 0; /* bit 63 */
    uint64_t wrong_bytes = 0;   /* bits that no request has, nor one less */
    frag_plain_state begun;
    bool ok = frag_plain_begin(scan, first, &begun);
    FRAG_ASSERT(ok);
    frag_plain_state state = begun;
    int64_t room = (int64_t)state.live_room;
    int64_t room_lowest = 0;
    uint64_t i = 0;
    for (; i < end; i++) {
        const frag_event *event = &events[i];
        uint64_t is_free = event->op;
        if (FRAG_UNLIKELY((is_free >> 1 | event->flags) != 0))
            break;
        uint64_t if_alloc = is_free - 1;
        uint64_t bytes = event->bytes & if_alloc;
        if (FRAG_UNLIKELY(!frag_plain_step(&state, i, event->slot, if_alloc, bytes)))
            break;
        total += bytes;
        wrong_streams |= stream_last - event->stream;
        wrong_bytes |= (event->bytes | (event->bytes - 1)) & if_alloc;
        room += (int64_t)(2 * is_free) - 1;
        if (FRAG_UNLIKELY(room < room_lowest))
            room_lowest = room;
    }
    int64_t live_gain = (int64_t)state.live_room - room;
    const frag_plain_run run = {
        .count = (uint32_t)i,
        .alloc_count = (uint32_t)(((int64_t)i + live_gain) / 2),
        .live_rise = state.live_room - (uint64_t)room_lowest,
        .bytes = total,
        .is_sound = wrong_streams >> 63 == 0 && wrong_bytes < FRAG_PLAIN_REQUEST_BYTES,
    };
    begun = state;
    frag_plain_end(scan, &begun, first, &run);
    return i < end;
}

/* false: an event is wrong, and the error says which. */
static bool scan_events_one_by_one(frag_trace_scan *scan, uint64_t event_count)
{
    while (scan->next < event_count)
        if (!scan_event(scan, scan->next++))
            return false;
    return true;
}

/* false: some event may be wrong; the slow path finds out which. */
static bool scan_events(frag_trace_scan *scan, uint64_t event_count)
{
    while (scan->next < event_count) {
        bool is_stopped = scan_plain(scan, event_count);
        if (scan->has_failed || (is_stopped && !scan_event(scan, scan->next++)))
            return false;
    }
    return true;
}

static void scan_begin(frag_trace_scan *scan)
{
    frag_free(scan->slots);
    *scan = (frag_trace_scan){0};
    scan->slots = frag_grow(NULL, &scan->slot_capacity, SLOTS_AT_FIRST, sizeof *scan->slots);
    memset(scan->slots, 0, scan->slot_capacity * sizeof *scan->slots);
}

frag_trace_scan *frag_trace_scan_create(void)
{
    frag_trace_scan *scan = frag_alloc(1, sizeof *scan);
    scan_begin(scan);
    return scan;
}

void frag_trace_scan_to(frag_trace_scan *scan, const frag_recording *recording,
                        const frag_trace *trace, uint64_t event_count)
{
    scan->recording = recording;
    scan->trace = trace;
    scan->error = NULL;
    scan->has_failed = scan->has_failed || !scan_events(scan, event_count);
}

void frag_trace_scan_destroy(frag_trace_scan *scan)
{
    if (scan == NULL)
        return;
    frag_free(scan->slots);
    frag_free(scan);
}

static bool scan_trace(const frag_recording *recording, const frag_trace *trace,
                       frag_trace_scan *before, frag_trace_stats *stats, uint32_t *slot_count,
                       frag_error *error)
{
    frag_trace_scan own = {0};
    frag_trace_scan *scan = before != NULL ? before : &own;
    if (before == NULL)
        scan_begin(scan);
    frag_trace_scan_to(scan, recording, trace, trace->event_count);
    if (scan->has_failed)
        scan_begin(scan);
    scan->recording = recording;
    scan->trace = trace;
    scan->error = error;
    bool ok = scan_events_one_by_one(scan, trace->event_count);
    scan->stats.end_requested_bytes = scan->requested_bytes;
    scan->stats.observed_reserved_end_bytes = scan->observed_bytes;
    *stats = scan->stats;
    *slot_count = scan->slot_count;
    frag_free(own.slots);
    if (!ok || trace->times_ns == NULL)
        return ok;
    for (uint64_t i = 0; i < trace->event_count && stats->time_first_ns == 0; i++)
        stats->time_first_ns = trace->times_ns[i];
    for (uint64_t i = trace->event_count; i > 0 && stats->time_last_ns == 0; i--)
        stats->time_last_ns = trace->times_ns[i - 1];
    return true;
}

/* ---- tables and columns */
static bool check_ids(const frag_trace *trace, const uint32_t *ids, uint32_t count,
                      const char *what, frag_error *error)
{
    if (ids == NULL)
        return true;
    uint32_t max = 0;
    for (uint64_t i = 0; i < trace->event_count; i++)
        max = ids[i] > max ? ids[i] : max;
    if (max == 0 || max < count)
        return true;
    uint64_t index = 0;
    while (ids[index] != max)
        index++;
    return frag_fail(error, FRAG_E_INPUT, "event %llu of device %u names %s %u; the table has %u",
                     (unsigned long long)index, trace->device, what, max, count);
}

static bool check_block_bytes(const frag_trace *trace, frag_error *error)
{
    for (uint64_t i = 0; trace->block_bytes != NULL && i < trace->event_count; i++) {
        const frag_event *event = &trace->events[i];
        uint64_t bytes = trace->block_bytes[i];
        if (bytes == 0)
            continue;
        bool is_held = event->op == FRAG_OP_ALLOC && (event->flags & FRAG_EVENT_INITIAL) != 0;
        if (!is_held || bytes < event->bytes || bytes > FRAG_REQUEST_BYTES_MAX)
            return frag_fail(error, FRAG_E_INPUT,
                             "event %llu of device %u has a block of %llu bytes; expected block "
                             "sizes only for INITIAL allocs, and no smaller than the request",
                             (unsigned long long)i, trace->device, (unsigned long long)bytes);
    }
    return true;
}

static int compare_pools(const void *left, const void *right)
{
    const frag_pool_id *a = left, *b = right;
    return frag_compare_then(frag_compare(a->high, b->high), frag_compare(a->low, b->low));
}

/* The text form could not distinguish two entries with the same meaning. */
static bool check_distinct(const frag_trace *trace, frag_error *error)
{
    size_t count =
        (size_t)trace->stream_count > trace->pool_count ? trace->stream_count : trace->pool_count;
    frag_pool_id *sorted = frag_alloc(count, sizeof *sorted);
    bool ok = true;
    for (uint32_t i = 0; i < trace->stream_count; i++)
        sorted[i] = (frag_pool_id){0, trace->stream_handles[i]};
    qsort(sorted, trace->stream_count, sizeof *sorted, compare_pools);
    for (uint32_t i = 1; ok && i < trace->stream_count; i++)
        if (compare_pools(&sorted[i - 1], &sorted[i]) == 0)
            ok = frag_fail(error, FRAG_E_INPUT,
                           "stream 0x%llx of device %u is in the table twice; expected once",
                           (unsigned long long)sorted[i].low, trace->device);
    if (ok && trace->pool_count > 0) {
        memcpy(sorted, trace->pool_ids, trace->pool_count * sizeof *sorted);
        if (sorted[0].high != 0 || sorted[0].low != 0)
            ok = frag_fail(error, FRAG_E_INPUT,
                           "pool 0 of device %u is not the default pool 0:0; expected that",
                           trace->device);
        qsort(sorted, trace->pool_count, sizeof *sorted, compare_pools);
    }
    for (uint32_t i = 1; ok && i < trace->pool_count; i++)
        if (compare_pools(&sorted[i - 1], &sorted[i]) == 0)
            ok = frag_fail(error, FRAG_E_INPUT,
                           "pool %llu:%llu of device %u is in the table twice; expected once",
                           (unsigned long long)sorted[i].high, (unsigned long long)sorted[i].low,
                           trace->device);
    frag_free(sorted);
    return ok;
}

static bool check_recording(const frag_recording *recording, frag_error *error)
{
    uint32_t strings = recording->strings.count;
    for (uint32_t i = 0; i < recording->metadata_count; i++)
        if (recording->metadata[i][0] >= strings || recording->metadata[i][1] >= strings)
            return frag_fail(error, FRAG_E_INPUT,
                             "metadata entry %u names a string beyond the %u in the table", i,
                             strings);
    for (uint32_t i = 0; i < recording->frame_count; i++)
        if (recording->frames[i].name >= strings || recording->frames[i].file >= strings)
            return frag_fail(error, FRAG_E_INPUT,
                             "frame %u names a string beyond the %u in the table", i, strings);
    for (uint32_t i = 0; i < recording->site_frame_count; i++)
        if (recording->site_frames[i] >= recording->frame_count)
            return frag_fail(error, FRAG_E_INPUT, "a call site names frame %u; the table has %u",
                             recording->site_frames[i], recording->frame_count);
    for (uint32_t i = 0; i < recording->site_count; i++) {
        frag_site site = recording->sites[i];
        if (site.first > recording->site_frame_count ||
            site.count > recording->site_frame_count - site.first)
            return frag_fail(error, FRAG_E_INPUT,
                             "call site %u reaches beyond the %u frames of all call sites", i,
                             recording->site_frame_count);
    }
    return true;
}

static bool check_all(const frag_recording *recording, const frag_trace *trace,
                      frag_trace_scan *scan, frag_trace_stats *stats, uint32_t *slot_count,
                      frag_error *error)
{
    if (trace->stream_count > FRAG_STREAM_ALL)
        return frag_fail(error, FRAG_E_INPUT, "device %u has %u streams; expected at most 65535",
                         trace->device, trace->stream_count);
    return check_recording(recording, error) && check_distinct(trace, error) &&
           scan_trace(recording, trace, scan, stats, slot_count, error) &&
           check_ids(trace, trace->sites, recording->site_count, "call site", error) &&
           check_ids(trace, trace->pools, trace->pool_count, "pool", error) &&
           check_ids(trace, trace->notes, recording->strings.count, "string", error) &&
           check_block_bytes(trace, error);
}

bool frag_trace_check(const frag_recording *recording, const frag_trace *trace, frag_error *error)
{
    frag_trace_stats stats;
    uint32_t slot_count = 0;
    if (!check_all(recording, trace, NULL, &stats, &slot_count, error))
        return false;
    if (trace->slot_count != 0 && slot_count > trace->slot_count)
        return frag_fail(error, FRAG_E_INPUT,
                         "device %u uses slot %u; expected slots below its slot count of %u",
                         trace->device, slot_count - 1, trace->slot_count);
    return true;
}

bool frag_trace_accept(const frag_recording *recording, frag_trace *trace, frag_trace_scan *scan,
                       frag_error *error)
{
    return check_all(recording, trace, scan, &trace->stats, &trace->slot_count, error);
}

void frag_trace_measure(frag_trace *trace)
{
    /* Strings are not known here and were checked before: any id will do. */
    frag_recording any = {.strings = {.count = UINT32_MAX}};
    bool ok = scan_trace(&any, trace, NULL, &trace->stats, &trace->slot_count, NULL);
    FRAG_ASSERT(ok);
}
