/* A device log as a recording: who holds what is followed from call to call, so that each piece of
 * memory becomes one request (or one observed segment) of its device, whatever calls made it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/formats/sqlite_file.h"
#include "base/memory.h"
#include "sim/device/device_log_format.h"
#include "traces/builder.h"
#include "traces/exchange/nsys_database.h"
#include "traces/formats.h"
#include "traces/number_map.h"
#include "traces/exchange/device_log.h"

#define OUT_OF_MEMORY 2
#define NOTHING UINT64_MAX

/* A piece of memory. Made by cuMemCreate, it lives as long as somebody has its handle or a mapping
 * of it; else until it is freed. */
typedef struct memory_piece {
    uint64_t address; /* 0: from cuMemCreate */
    uint64_t bytes;
    uint64_t stream;
    uint64_t handle_count;
    uint64_t first_mapping;
    uint64_t previous; /* of the pieces alive on its device */
    uint64_t next;
    uint32_t pool;
    uint32_t slot;
    uint16_t device;
    bool is_from_create;
    bool is_counted; /* false: not the device's own memory */
    bool is_over;
} memory_piece;

typedef struct mapping {
    uint64_t address;
    uint64_t bytes;
    uint64_t piece;
    uint64_t previous; /* of the same piece */
    uint64_t next;
} mapping;

/* An event of the recording to be; slots and pools are numbered when its trace is built. */
typedef struct step {
    frag_build_event event;
    uint64_t piece; /* NOTHING: none */
    uint32_t pool;  /* 0: the default pool */
    uint16_t device;
} step;

typedef struct follower {
    const frag_device_log *log;
    frag_device_log_view view;
    frag_findings *findings;
    const frag_device_record *record; /* the current one */
    memory_piece *pieces;
    size_t piece_count;
    size_t piece_capacity;
    mapping *mappings;
    size_t mapping_count;
    size_t mapping_capacity;
    step *steps;
    size_t step_count;
    size_t step_capacity;
    uint64_t alive[FRAG_DEVICE_LOG_DEVICES_MAX]; /* first piece */
    bool is_seen[FRAG_DEVICE_LOG_DEVICES_MAX];
    frag_number_map by_address;
    frag_number_map by_handle;
    frag_number_map by_mapping;
    frag_number_map pools; /* number and device of a pool by its handle */
    uint32_t pool_count;
} follower;

/* ---- findings */

static void note(follower *follow, bool is_inconsistency, const char *kind, const char *meaning)
{
    const frag_device_record *record = follow->record;
    uint32_t device = record->device == FRAG_DEVICE_UNKNOWN ? 0 : record->device;
    const char *call = frag_log_call_name(record->call);
    frag_findings_add(follow->findings, kind, meaning, is_inconsistency, device, record->number - 1,
                      "%s, address 0x%" PRIx64 ", %" PRIu64 " bytes, result %d",
                      call != NULL ? call : "unknown call", record->address, record->bytes,
                      record->result);
}

static void note_unknown(follower *follow)
{
    note(follow, false, "free-of-unknown-address",
         "memory came from before the recording, or from a call that is not recorded (an array, "
         "another process); its free was left out");
}

static void note_served_again(follower *follow)
{
    note(follow, true, "address-served-again",
         "an address or handle came back that was still in use: calls are missing; what had it was "
         "taken as freed just before");
}

/* ---- steps */

static uint64_t unix_time(const follower *follow)
{
    const frag_device_log_header *header = &follow->log->header;
    uint64_t time = follow->record->time_ns;
    /* Modulo 2^64: a call may lie just before the moment at which both clocks were read. */
    return header->start_unix_ns == 0 ? 0
                                      : header->start_unix_ns + (time - header->start_monotonic_ns);
}

static void add_step(follower *follow, uint16_t device, uint64_t piece, uint32_t pool,
                     frag_build_event event)
{
    event.time_ns = unix_time(follow);
    follow->is_seen[device] = true;
    *FRAG_APPEND(follow->steps, follow->step_count, follow->step_capacity) =
        (step){.event = event, .piece = piece, .pool = pool, .device = device};
}

static bool is_as_requests(const follower *follow)
{
    return follow->view == FRAG_DEVICE_LOG_AS_REQUESTS;
}

/* ---- pieces */

static uint16_t known_device(follower *follow)
{
    if (follow->record->device != FRAG_DEVICE_UNKNOWN)
        return follow->record->device;
    note(follow, false, "device-not-known",
         "the thread had no device when it asked; taken as device 0");
    return 0;
}

static uint64_t add_piece(follower *follow, memory_piece piece)
{
    follow->pieces = frag_grow(follow->pieces, &follow->piece_capacity, follow->piece_count + 1,
                               sizeof *follow->pieces);
    uint64_t index = follow->piece_count++;
    piece.first_mapping = NOTHING;
    piece.previous = NOTHING;
    piece.next = follow->alive[piece.device];
    if (piece.next != NOTHING)
        follow->pieces[piece.next].previous = index;
    follow->alive[piece.device] = index;
    follow->pieces[index] = piece;
    return index;
}

static void begin_piece(follower *follow, uint64_t index)
{
    const memory_piece *piece = &follow->pieces[index];
    if (!piece->is_counted || (piece->is_from_create && !is_as_requests(follow)))
        return;
    add_step(follow, piece->device, index, piece->pool,
             (frag_build_event){
                 .op = is_as_requests(follow) ? FRAG_OP_ALLOC : FRAG_OP_SEGMENT_ALLOC,
                 .bytes = piece->bytes,
                 .address = piece->address,
                 .stream = piece->stream,
             });
}

static void end_piece(follower *follow, uint64_t index, uint64_t stream)
{
    memory_piece *piece = &follow->pieces[index];
    if (piece->previous != NOTHING)
        follow->pieces[piece->previous].next = piece->next;
    else
        follow->alive[piece->device] = piece->next;
    if (piece->next != NOTHING)
        follow->pieces[piece->next].previous = piece->previous;
    piece->is_over = true;
    if (!piece->is_from_create)
        frag_number_map_remove(&follow->by_address, piece->address);
    if (!piece->is_counted || (piece->is_from_create && !is_as_requests(follow)))
        return;
    add_step(follow, piece->device, index, piece->pool,
             (frag_build_event){
                 .op = is_as_requests(follow) ? FRAG_OP_FREE : FRAG_OP_SEGMENT_FREE,
                 .bytes = piece->bytes,
                 .address = piece->address,
                 .stream = stream,
             });
}

/* A piece may have had several handles, of which some are still in the table when it is over. */
static bool find_by_handle(follower *follow, uint64_t handle, uint64_t *piece)
{
    if (!frag_number_map_get(&follow->by_handle, handle, piece))
        return false;
    if (follow->pieces[*piece].is_over)
        frag_number_map_remove(&follow->by_handle, handle);
    return !follow->pieces[*piece].is_over;
}

/* ---- mappings */

static void add_mapping_step(follower *follow, const mapping *mapped, frag_op op)
{
    const memory_piece *piece = &follow->pieces[mapped->piece];
    if (piece->is_counted && !is_as_requests(follow))
        add_step(follow, piece->device, NOTHING, 0,
                 (frag_build_event){.op = op, .bytes = mapped->bytes, .address = mapped->address});
}

static void end_mapping(follower *follow, uint64_t index)
{
    const mapping *mapped = &follow->mappings[index];
    memory_piece *piece = &follow->pieces[mapped->piece];
    if (mapped->previous != NOTHING)
        follow->mappings[mapped->previous].next = mapped->next;
    else
        piece->first_mapping = mapped->next;
    if (mapped->next != NOTHING)
        follow->mappings[mapped->next].previous = mapped->previous;
    frag_number_map_remove(&follow->by_mapping, mapped->address);
    add_mapping_step(follow, mapped, FRAG_OP_SEGMENT_UNMAP);
    if (piece->first_mapping == NOTHING && piece->handle_count == 0)
        end_piece(follow, mapped->piece, 0);
}

static void follow_map(follower *follow)
{
    const frag_device_record *record = follow->record;
    uint64_t piece = 0;
    uint64_t before = 0;
    if (!find_by_handle(follow, record->other, &piece)) {
        note(follow, false, "map-of-unknown-memory",
             "memory came from before the recording or from another process; its mapping was left "
             "out");
        return;
    }
    if (frag_number_map_get(&follow->by_mapping, record->address, &before)) {
        note_served_again(follow);
        end_mapping(follow, before);
    }
    follow->mappings = frag_grow(follow->mappings, &follow->mapping_capacity,
                                 follow->mapping_count + 1, sizeof *follow->mappings);
    uint64_t index = follow->mapping_count++;
    uint64_t next = follow->pieces[piece].first_mapping;
    follow->mappings[index] =
        (mapping){record->address, record->bytes, piece, .previous = NOTHING, .next = next};
    if (next != NOTHING)
        follow->mappings[next].previous = index;
    follow->pieces[piece].first_mapping = index;
    frag_number_map_set(&follow->by_mapping, record->address, index);
    add_mapping_step(follow, &follow->mappings[index], FRAG_OP_SEGMENT_MAP);
}

/* One call may unmap several mappings that lie side by side. */
static void follow_unmap(follower *follow)
{
    uint64_t address = follow->record->address;
    uint64_t left = follow->record->bytes;
    uint64_t index = 0;
    while (left > 0 && frag_number_map_get(&follow->by_mapping, address, &index)) {
        uint64_t bytes = follow->mappings[index].bytes;
        end_mapping(follow, index);
        if (bytes == 0 || bytes >= left)
            return;
        address += bytes;
        left -= bytes;
    }
    note_unknown(follow);
}

/* ---- calls that take memory */

/* A handle belongs to the pool that has it now; numbers are not used again. */
static uint32_t pool_of(const follower *follow, uint64_t handle, uint16_t *device)
{
    uint64_t known = 0;
    if (handle == 0 || !frag_number_map_get(&follow->pools, handle, &known))
        return 0;
    *device = (uint16_t)(known >> 32);
    return (uint32_t)known;
}

static void follow_failure(follower *follow)
{
    const frag_device_record *record = follow->record;
    bool is_taking = record->call == FRAG_LOG_MALLOC || record->call == FRAG_LOG_CREATE ||
                     record->call == FRAG_LOG_MALLOC_ASYNC;
    bool is_mapping = record->call == FRAG_LOG_MAP || record->call == FRAG_LOG_SET_ACCESS;
    bool is_host = (record->flags & FRAG_LOG_OF_HOST) != 0;
    if (record->result != OUT_OF_MEMORY || is_host || (!is_taking && !is_mapping)) {
        note(follow, false, "failed-call",
             "a call failed for another reason than a lack of device memory; it was left out");
        return;
    }
    uint64_t index = 0;
    uint16_t device = record->device;
    uint32_t pool = is_taking ? pool_of(follow, record->other, &device) : 0;
    if (record->call == FRAG_LOG_MAP && find_by_handle(follow, record->other, &index))
        device = follow->pieces[index].device;
    else if (is_mapping && frag_number_map_get(&follow->by_mapping, record->address, &index))
        device = follow->pieces[follow->mappings[index].piece].device;
    if (device == FRAG_DEVICE_UNKNOWN)
        device = known_device(follow);
    uint64_t bytes =
        record->bytes <= FRAG_REQUEST_BYTES_MAX ? record->bytes : FRAG_REQUEST_BYTES_MAX;
    add_step(follow, device, NOTHING, pool,
             (frag_build_event){.op = FRAG_OP_OOM,
                                .bytes = bytes,
                                .stream = record->stream,
                                .address = is_taking ? record->address : 0});
    if (is_as_requests(follow) && is_taking && bytes > 0)
        add_step(follow, device, NOTHING, pool,
                 (frag_build_event){.op = FRAG_OP_ALLOC,
                                    .flags = FRAG_EVENT_FAILED,
                                    .slot = FRAG_SLOT_NONE,
                                    .bytes = bytes,
                                    .stream = record->stream});
}

static void follow_malloc(follower *follow, bool is_counted)
{
    const frag_device_record *record = follow->record;
    uint64_t before = 0;
    if (record->bytes == 0 || record->address == 0)
        return; /* the device answers with null and does nothing */
    if (frag_number_map_get(&follow->by_address, record->address, &before)) {
        note_served_again(follow);
        end_piece(follow, before, record->stream);
    }
    uint16_t device = record->device;
    uint32_t pool = pool_of(follow, record->other, &device);
    if (device == FRAG_DEVICE_UNKNOWN)
        device = is_counted ? known_device(follow) : 0;
    uint64_t index = add_piece(follow, (memory_piece){.address = record->address,
                                                      .bytes = record->bytes,
                                                      .stream = record->stream,
                                                      .pool = pool,
                                                      .device = device,
                                                      .is_counted = is_counted});
    frag_number_map_set(&follow->by_address, record->address, index);
    begin_piece(follow, index);
}

static void drop_handle(follower *follow, uint64_t handle, uint64_t piece)
{
    frag_number_map_remove(&follow->by_handle, handle);
    follow->pieces[piece].handle_count = 0;
    if (follow->pieces[piece].first_mapping == NOTHING)
        end_piece(follow, piece, 0);
}

static void follow_create(follower *follow)
{
    const frag_device_record *record = follow->record;
    bool is_host = (record->flags & FRAG_LOG_OF_HOST) != 0;
    uint64_t before = 0;
    if (record->bytes == 0)
        return;
    if (find_by_handle(follow, record->other, &before)) {
        note_served_again(follow);
        drop_handle(follow, record->other, before);
    }
    uint16_t device = record->device;
    if (device == FRAG_DEVICE_UNKNOWN)
        device = is_host ? 0 : known_device(follow);
    uint64_t index = add_piece(follow, (memory_piece){.bytes = record->bytes,
                                                      .handle_count = 1,
                                                      .device = device,
                                                      .is_from_create = true,
                                                      .is_counted = !is_host});
    frag_number_map_set(&follow->by_handle, record->other, index);
    begin_piece(follow, index);
}

/* ---- calls that give it back */

static void follow_free(follower *follow)
{
    const frag_device_record *record = follow->record;
    uint64_t index = 0;
    if (record->address == 0)
        return;
    if (!frag_number_map_get(&follow->by_address, record->address, &index)) {
        note_unknown(follow);
        return;
    }
    bool is_async = record->call == FRAG_LOG_FREE_ASYNC || record->call == FRAG_LOG_ACTIVITY_FREE;
    end_piece(follow, index, is_async ? record->stream : follow->pieces[index].stream);
}

static void follow_release(follower *follow)
{
    uint64_t piece = 0;
    if (!find_by_handle(follow, follow->record->other, &piece) ||
        follow->pieces[piece].handle_count == 0)
        note_unknown(follow);
    else if (--follow->pieces[piece].handle_count == 0)
        drop_handle(follow, follow->record->other, piece);
}

/* The handle of what is mapped at an address, once more. */
static void follow_retain(follower *follow)
{
    const frag_device_record *record = follow->record;
    uint64_t piece = 0;
    uint64_t index = 0;
    if (find_by_handle(follow, record->other, &piece)) {
        follow->pieces[piece].handle_count++;
    } else if (frag_number_map_get(&follow->by_mapping, record->address, &index)) {
        piece = follow->mappings[index].piece;
        follow->pieces[piece].handle_count++;
        frag_number_map_set(&follow->by_handle, record->other, piece);
    } else {
        note_unknown(follow);
    }
}

/* Everything on the device is gone, handles and mappings too. */
static void follow_reset(follower *follow)
{
    uint16_t device = known_device(follow);
    while (follow->alive[device] != NOTHING) {
        uint64_t index = follow->alive[device];
        memory_piece *piece = &follow->pieces[index];
        piece->handle_count = 0;
        if (piece->first_mapping == NOTHING)
            end_piece(follow, index, piece->stream);
        while (follow->pieces[index].first_mapping != NOTHING)
            end_mapping(follow, follow->pieces[index].first_mapping);
    }
}

/* ---- pools */

static void follow_pool(follower *follow)
{
    const frag_device_record *record = follow->record;
    uint16_t device = record->device;
    if (record->call == FRAG_LOG_POOL_CREATE) {
        device = known_device(follow);
        uint32_t pool = ++follow->pool_count;
        frag_number_map_set(&follow->pools, record->other, (uint64_t)device << 32 | pool);
        if (is_as_requests(follow))
            add_step(follow, device, NOTHING, pool, (frag_build_event){.op = FRAG_OP_POOL_CREATE});
        return;
    }
    uint32_t pool = pool_of(follow, record->other, &device);
    if (pool == 0)
        return; /* the default pool, or one of another process: nothing of it is in the trace */
    if (record->call == FRAG_LOG_POOL_DESTROY)
        frag_number_map_remove(&follow->pools, record->other);
    if (!is_as_requests(follow))
        return;
    if (record->call == FRAG_LOG_POOL_DESTROY)
        add_step(follow, device, NOTHING, pool, (frag_build_event){.op = FRAG_OP_POOL_RELEASE});
    else if (record->call == FRAG_LOG_POOL_TRIM && record->bytes == 0)
        add_step(follow, device, NOTHING, pool, (frag_build_event){.op = FRAG_OP_EMPTY_CACHE});
}

/* ---- the log */

static void follow_call(follower *follow, uint32_t call)
{
    if (follow->record->result != 0) {
        follow_failure(follow);
        return;
    }
    switch (call) {
    case FRAG_LOG_MALLOC:
    case FRAG_LOG_MALLOC_ASYNC:
        follow_malloc(follow, (follow->record->flags & FRAG_LOG_OF_HOST) == 0);
        return;
    case FRAG_LOG_MANAGED:
        note(follow, false, "managed-memory",
             "memory that host and device share has no fixed place; it was left out");
        follow_malloc(follow, false);
        return;
    case FRAG_LOG_HOST_MALLOC:
        follow_malloc(follow, false);
        return;
    case FRAG_LOG_FREE:
    case FRAG_LOG_FREE_ASYNC:
    case FRAG_LOG_HOST_FREE:
        follow_free(follow);
        return;
    case FRAG_LOG_CREATE:
        follow_create(follow);
        return;
    case FRAG_LOG_RELEASE:
        follow_release(follow);
        return;
    case FRAG_LOG_RETAIN:
        follow_retain(follow);
        return;
    case FRAG_LOG_MAP:
        follow_map(follow);
        return;
    case FRAG_LOG_UNMAP:
        follow_unmap(follow);
        return;
    case FRAG_LOG_POOL_CREATE:
    case FRAG_LOG_POOL_DESTROY:
    case FRAG_LOG_POOL_TRIM:
        follow_pool(follow);
        return;
    case FRAG_LOG_DEVICE_RESET:
        follow_reset(follow);
        return;
    default:
        /* Address ranges, access, settings: no memory of the device changes hands. */
        if (frag_log_call_name(call) == NULL)
            note(follow, false, "unknown-call",
                 "a newer recorder wrote a call that this fraglab does not know; it was left out");
        return;
    }
}

/* CUPTI may report memory only afterwards, by activities, if its callbacks saw no call. */
static bool needs_activities(const frag_device_log *log)
{
    bool has_any = false;
    for (size_t i = 0; i < log->record_count; i++) {
        uint32_t call = log->records[i].call;
        if (call == FRAG_LOG_MALLOC || call == FRAG_LOG_MALLOC_ASYNC || call == FRAG_LOG_FREE ||
            call == FRAG_LOG_FREE_ASYNC)
            return false;
        has_any = has_any || call == FRAG_LOG_ACTIVITY_ALLOC;
    }
    return has_any;
}

static int compare_times(const void *left, const void *right)
{
    const frag_device_record *a = *(const frag_device_record *const *)left;
    const frag_device_record *b = *(const frag_device_record *const *)right;
    return frag_compare_then(frag_compare(a->time_ns, b->time_ns),
                             frag_compare(a->number, b->number));
}

static void follow_log(follower *follow)
{
    const frag_device_log *log = follow->log;
    bool with_activities = needs_activities(log);
    const frag_device_record **order = frag_alloc(log->record_count, sizeof *order);
    for (size_t i = 0; i < log->record_count; i++)
        order[i] = &log->records[i];
    if (with_activities)
        qsort(order, log->record_count, sizeof *order, compare_times);
    for (size_t i = 0; i < log->record_count; i++) {
        follow->record = order[i];
        uint32_t call = order[i]->call;
        if (call != FRAG_LOG_ACTIVITY_ALLOC && call != FRAG_LOG_ACTIVITY_FREE)
            follow_call(follow, call);
        else if (with_activities)
            follow_call(follow, call == FRAG_LOG_ACTIVITY_ALLOC ? FRAG_LOG_MALLOC_ASYNC
                                                                : FRAG_LOG_FREE_ASYNC);
    }
    frag_free(order);
}

static void note_end(const frag_device_log *log, frag_findings *findings)
{
    uint64_t begun = log->header.begun_count;
    if (log->missing_count > 0)
        frag_findings_add(findings, "tail-missing",
                          "the log was cut: calls that its header counts are not there", false, 0,
                          begun - log->missing_count, "%" PRIu64 " of %" PRIu64 " calls",
                          log->missing_count, begun);
    if (log->unfinished_count > 0)
        frag_findings_add(findings, "unfinished-call",
                          "the program ended within these calls; what they did is not known", false,
                          0, begun, "%" PRIu64 " of %" PRIu64 " calls", log->unfinished_count,
                          begun);
    if (log->header.end_monotonic_ns == 0)
        frag_findings_add(findings, "no-end",
                          "the program did not end by exit: it was killed, called _exit, or became "
                          "another one; what it made until then is there",
                          false, 0, begun, "process %" PRIu32, log->header.pid);
    if ((log->header.flags & FRAG_DEVICE_LOG_STOPPED) != 0)
        frag_findings_add(findings, "stopped",
                          "the log could not grow any more; later calls are not in it", false, 0,
                          begun, "after %" PRIu64 " calls", begun);
}

/* ---- building */

static void add_number(frag_builder *builder, const char *key, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    if (value != 0)
        frag_builder_metadata(builder, key, text);
}

static void add_metadata(frag_builder *builder, const frag_device_log *log)
{
    const frag_device_log_header *header = &log->header;
    frag_builder_metadata(builder, "source", "device-log");
    frag_builder_metadata(builder, "record.by",
                          header->recorded_by == FRAG_RECORDED_BY_CUPTI ? "cupti" : "preload");
    frag_builder_metadata(builder, "record.command", log->command);
    add_number(builder, "record.process", header->pid);
    add_number(builder, "record.cuda_runtime", header->runtime_version);
    add_number(builder, "record.cuda_driver", header->driver_version);
}

static void build_device(const follower *follow, frag_builder *builder, uint16_t device)
{
    frag_builder_device(builder, device);
    for (size_t i = 0; i < follow->step_count; i++) {
        const step *made = &follow->steps[i];
        if (made->device != device)
            continue;
        frag_build_event event = made->event;
        uint32_t pool = frag_builder_pool(builder, (frag_pool_id){0, made->pool});
        memory_piece *piece = made->piece != NOTHING ? &follow->pieces[made->piece] : NULL;
        if (event.op == FRAG_OP_ALLOC && piece != NULL)
            piece->slot = frag_builder_slot_take(builder);
        if (event.op == FRAG_OP_ALLOC || event.op == FRAG_OP_FREE)
            event.pool = pool;
        else if (event.op == FRAG_OP_POOL_CREATE || event.op == FRAG_OP_POOL_RELEASE ||
                 event.op == FRAG_OP_EMPTY_CACHE)
            event.slot = pool;
        if (piece != NULL && (event.op == FRAG_OP_ALLOC || event.op == FRAG_OP_FREE))
            event.slot = piece->slot;
        frag_builder_add(builder, &event);
        if (event.op == FRAG_OP_FREE)
            frag_builder_slot_give(builder, event.slot);
    }
}

static follower *follow_one(const frag_device_log *log, frag_device_log_view view,
                            frag_findings *findings)
{
    follower *follow = frag_alloc(1, sizeof *follow);
    *follow = (follower){.log = log, .view = view, .findings = findings};
    for (uint32_t i = 0; i < FRAG_DEVICE_LOG_DEVICES_MAX; i++)
        follow->alive[i] = NOTHING;
    follow_log(follow);
    note_end(log, findings);
    return follow;
}

static void destroy_follower(follower *follow)
{
    frag_free(follow->pieces);
    frag_free(follow->mappings);
    frag_free(follow->steps);
    frag_number_map_destroy(&follow->by_address);
    frag_number_map_destroy(&follow->by_handle);
    frag_number_map_destroy(&follow->by_mapping);
    frag_number_map_destroy(&follow->pools);
    frag_free(follow);
}

void frag_device_logs_build(const frag_device_log *logs, size_t log_count,
                            frag_device_log_view view, frag_builder *builder,
                            frag_findings *findings)
{
    follower **followers = frag_alloc(log_count, sizeof(follower *));
    for (size_t i = 0; i < log_count; i++)
        followers[i] = follow_one(&logs[i], view, findings);
    for (uint16_t device = 0; device < FRAG_DEVICE_LOG_DEVICES_MAX; device++) {
        bool is_built = false;
        for (size_t i = 0; i < log_count; i++) {
            if (!followers[i]->is_seen[device])
                continue;
            FRAG_ASSERT(!is_built);
            build_device(followers[i], builder, device);
            is_built = true;
        }
    }
    for (size_t i = 0; i < log_count; i++)
        destroy_follower(followers[i]);
    frag_free(followers);
}

bool frag_device_log_record(const frag_device_log *log, frag_device_log_view view, const char *name,
                            frag_recording *recording, frag_findings *findings, frag_error *error)
{
    *recording = (frag_recording){0};
    frag_builder *builder = frag_builder_create(recording);
    add_metadata(builder, log);
    frag_device_logs_build(log, 1, view, builder, findings);
    return frag_builder_finish(builder, name, error);
}

static bool read_log(frag_input *input, bool as_segments, frag_recording *recording,
                     frag_findings *findings, frag_error *error)
{
    frag_device_log log;
    if (!frag_device_log_read(input, &log, error))
        return false;
    frag_device_log_view view =
        as_segments ? FRAG_DEVICE_LOG_AS_SEGMENTS : FRAG_DEVICE_LOG_AS_REQUESTS;
    bool ok = frag_device_log_record(&log, view, "", recording, findings, error);
    frag_device_log_destroy(&log);
    return ok;
}

/* Device calls stand in two formats. */
static bool read_device_calls(frag_input *input, bool as_segments, frag_recording *recording,
                              frag_findings *findings, frag_error *error)
{
    const unsigned char *bytes = NULL;
    size_t count = 0;
    if (!frag_input_peek(input, FRAG_SQLITE_MAGIC_BYTES, &bytes, &count, error))
        return false;
    if (!frag_nsys_is_like(bytes, count))
        return read_log(input, as_segments, recording, findings, error);
    return frag_nsys_read(input,
                          as_segments ? FRAG_DEVICE_LOG_AS_SEGMENTS : FRAG_DEVICE_LOG_AS_REQUESTS,
                          recording, findings, error);
}

static bool read_as_requests(frag_input *input, const frag_load_options *options,
                             frag_recording *recording, frag_findings *findings, frag_error *error)
{
    (void)options;
    return read_device_calls(input, false, recording, findings, error);
}

static bool read_as_segments(frag_input *input, const frag_load_options *options,
                             frag_recording *recording, frag_findings *findings, frag_error *error)
{
    (void)options;
    return read_device_calls(input, true, recording, findings, error);
}

static bool is_like_device_log(const unsigned char *bytes, size_t count)
{
    return count >= FRAG_DEVICE_LOG_MAGIC_BYTES &&
           memcmp(bytes, FRAG_DEVICE_LOG_MAGIC, FRAG_DEVICE_LOG_MAGIC_BYTES) == 0;
}

const frag_format frag_format_device_log = {
    .what = "a recorder's log of device calls, taken as requests",
    .page = "recording.md#from-log-to-recording",
    .is_like = is_like_device_log,
    .has_magic = true,
    .read = read_as_requests,
};

const frag_format frag_format_device_segments = {
    .what = "the same, taken as what an allocator asked: observed segments",
    .page = "recording.md#from-log-to-recording",
    .read = read_as_segments,
};
