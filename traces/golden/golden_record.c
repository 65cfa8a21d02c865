/* A golden log as a recording: requests become events of the trace of their device, and what the
 * library did is kept beside them as observed events, as in recordings of whole programs. */
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "sim/device.h"
#include "traces/builder.h"
#include "traces/format_look.h"
#include "traces/golden/golden_log.h"
#include "traces/formats.h"

#define MALLOC_BASE ((uint64_t)0x700000000000)
#define DEVICE_SPACE_BITS 40

/* An address range reserved by a device, or a segment: the facts that do not follow from its
 * address. */
typedef struct known_range {
    uint64_t address;
    uint64_t bytes;
    uint64_t stream;
    uint32_t device;
} known_range;

typedef struct golden_recorder {
    const frag_golden_log *log;
    frag_builder *builder;
    uint32_t device;      /* whose trace is being made */
    uint64_t event_count; /* of it so far */
    uint32_t *slots;      /* by alloc line */
    known_range *reserved;
    size_t reserved_count;
    size_t reserved_capacity;
    /* Segments from cudaMalloc, for logs without trace events: a cudaFree has no size there. */
    known_range *segments;
    size_t segment_count;
    size_t segment_capacity;
} golden_recorder;

static void add_event(golden_recorder *recorder, const frag_build_event *event)
{
    frag_builder_add(recorder->builder, event);
    recorder->event_count++;
}

/* ---- what the library did */

static void keep_reserved(golden_recorder *recorder, const frag_golden_line *line)
{
    for (size_t i = 0; i < line->calls.count; i++) {
        const frag_golden_call *call = &recorder->log->calls[line->calls.first + i];
        if (call->kind != FRAG_GOLDEN_CALL_RESERVE)
            continue;
        *FRAG_APPEND(recorder->reserved, recorder->reserved_count, recorder->reserved_capacity) =
            (known_range){call->address, call->bytes, line->stream, line->device};
    }
}

/* The device of a segment: each has its own range for cudaMalloc, and all share one for
 * reservations, of which the last one made at an address counts. */
static uint32_t device_at(const golden_recorder *recorder, uint64_t address)
{
    if (recorder->log->library != 0)
        return 0;
    if (address >= MALLOC_BASE)
        return (uint32_t)((address - MALLOC_BASE) >> DEVICE_SPACE_BITS);
    for (size_t i = recorder->reserved_count; i > 0; i--) {
        const known_range *range = &recorder->reserved[i - 1];
        if (address >= range->address && address - range->address < range->bytes)
            return range->device;
    }
    return 0;
}

static void observe_notes(golden_recorder *recorder, const frag_golden_line *line)
{
    static const frag_op ops[FRAG_GOLDEN_NOTE_COUNT] = {
        [FRAG_GOLDEN_NOTE_SA] = FRAG_OP_SEGMENT_ALLOC,
        [FRAG_GOLDEN_NOTE_SF] = FRAG_OP_SEGMENT_FREE,
        [FRAG_GOLDEN_NOTE_SM] = FRAG_OP_SEGMENT_MAP,
        [FRAG_GOLDEN_NOTE_SU] = FRAG_OP_SEGMENT_UNMAP,
        [FRAG_GOLDEN_NOTE_OOM] = FRAG_OP_OOM,
    };
    for (size_t i = 0; i < line->notes.count; i++) {
        const frag_golden_note *note = &recorder->log->notes[line->notes.first + i];
        if (note->kind < FRAG_GOLDEN_NOTE_SA)
            continue;
        uint32_t device =
            note->kind == FRAG_GOLDEN_NOTE_OOM ? line->device : device_at(recorder, note->address);
        if (device == recorder->device)
            add_event(recorder, &(frag_build_event){.op = ops[note->kind],
                                                    .address = note->address,
                                                    .bytes = note->bytes,
                                                    .stream = note->stream});
    }
}

static void observe_malloc(golden_recorder *recorder, const frag_golden_line *line,
                           const frag_golden_call *call)
{
    *FRAG_APPEND(recorder->segments, recorder->segment_count, recorder->segment_capacity) =
        (known_range){call->address, call->bytes, line->stream, recorder->device};
    add_event(recorder, &(frag_build_event){.op = FRAG_OP_SEGMENT_ALLOC,
                                            .address = call->address,
                                            .bytes = call->bytes,
                                            .stream = line->stream});
}

static void observe_free(golden_recorder *recorder, const frag_golden_call *call)
{
    for (size_t i = 0; i < recorder->segment_count; i++) {
        known_range *segment = &recorder->segments[i];
        if (segment->address != call->address)
            continue;
        add_event(recorder, &(frag_build_event){.op = FRAG_OP_SEGMENT_FREE,
                                                .address = segment->address,
                                                .bytes = segment->bytes,
                                                .stream = segment->stream});
        *segment = recorder->segments[--recorder->segment_count];
        return;
    }
}

/* Libraries without trace events: their device calls show the same. */
static void observe_calls(golden_recorder *recorder, const frag_golden_line *line)
{
    for (size_t i = 0; i < line->calls.count; i++) {
        const frag_golden_call *call = &recorder->log->calls[line->calls.first + i];
        if (call->is_refused || device_at(recorder, call->address) != recorder->device)
            continue;
        if (call->kind == FRAG_GOLDEN_CALL_MALLOC)
            observe_malloc(recorder, line, call);
        else if (call->kind == FRAG_GOLDEN_CALL_FREE)
            observe_free(recorder, call);
        else if (call->kind == FRAG_GOLDEN_CALL_MAP || call->kind == FRAG_GOLDEN_CALL_UNMAP)
            add_event(recorder, &(frag_build_event){.op = call->kind == FRAG_GOLDEN_CALL_MAP
                                                              ? FRAG_OP_SEGMENT_MAP
                                                              : FRAG_OP_SEGMENT_UNMAP,
                                                    .address = call->address,
                                                    .bytes = call->bytes * call->count,
                                                    .stream = line->stream});
    }
}

/* ---- what the program asked for */

static void add_alloc(golden_recorder *recorder, const frag_golden_line *line)
{
    if (line->bytes == 0)
        return; /* the library answers with null and does nothing */
    uint32_t slot = line->is_oom ? FRAG_SLOT_NONE : frag_builder_slot_take(recorder->builder);
    recorder->slots[line->owner] = slot;
    add_event(recorder, &(frag_build_event){.op = FRAG_OP_ALLOC,
                                            .flags = line->is_oom ? FRAG_EVENT_FAILED : 0,
                                            .slot = slot,
                                            .bytes = line->bytes,
                                            .address = line->address,
                                            .stream = line->stream});
}

static void add_of_block(golden_recorder *recorder, const frag_golden_line *line)
{
    const frag_golden_line *alloc = &recorder->log->lines[line->owner];
    if (alloc->bytes == 0)
        return;
    uint32_t slot = recorder->slots[line->owner];
    if (line->op == FRAG_GOLDEN_RECORD_STREAM) {
        add_event(recorder,
                  &(frag_build_event){.op = FRAG_OP_USE, .slot = slot, .stream = line->stream});
        return;
    }
    add_event(recorder, &(frag_build_event){.op = FRAG_OP_FREE,
                                            .slot = slot,
                                            .address = alloc->address,
                                            .bytes = alloc->bytes,
                                            .stream = recorder->log->library != 0 ? line->stream
                                                                                  : alloc->stream});
    frag_builder_slot_give(recorder->builder, slot);
}

static void add_pool(golden_recorder *recorder, const frag_golden_line *line)
{
    static const frag_op ops[FRAG_GOLDEN_OP_COUNT] = {
        [FRAG_GOLDEN_POOL_CREATE] = FRAG_OP_POOL_CREATE,
        [FRAG_GOLDEN_POOL_BEGIN] = FRAG_OP_POOL_BEGIN,
        [FRAG_GOLDEN_POOL_END] = FRAG_OP_POOL_END,
        [FRAG_GOLDEN_POOL_RELEASE] = FRAG_OP_POOL_RELEASE,
        [FRAG_GOLDEN_POOL_USE_ON_OOM] = FRAG_OP_POOL_ON_OOM,
        [FRAG_GOLDEN_POOL_NO_SPLIT] = FRAG_OP_POOL_NO_SPLIT,
    };
    frag_build_event event = {.op = ops[line->op],
                              .slot = frag_builder_pool(recorder->builder, line->pool)};
    if (line->op == FRAG_GOLDEN_POOL_BEGIN) {
        event.is_stream_all = line->is_stream_all;
        event.stream = line->stream;
    }
    if (line->op == FRAG_GOLDEN_POOL_USE_ON_OOM)
        event.flags = line->is_on ? FRAG_EVENT_BEGIN : FRAG_EVENT_END;
    add_event(recorder, &event);
}

static uint32_t settings_of(const golden_recorder *recorder, const frag_golden_line *line)
{
    const char *text = frag_strings_get(&recorder->log->strings, line->text);
    return frag_builder_string(recorder->builder, text, strlen(text));
}

/* Requests that reach every device. */
static bool is_for_all(uint32_t op)
{
    return op == FRAG_GOLDEN_COMPLETE || op == FRAG_GOLDEN_EMPTY_CACHE ||
           op == FRAG_GOLDEN_SETTINGS;
}

static void add_request(golden_recorder *recorder, const frag_golden_line *line)
{
    frag_build_event event = {0};
    switch (line->op) {
    case FRAG_GOLDEN_ALLOC:
        add_alloc(recorder, line);
        return;
    case FRAG_GOLDEN_FREE:
    case FRAG_GOLDEN_RECORD_STREAM:
        add_of_block(recorder, line);
        return;
    case FRAG_GOLDEN_COMPLETE:
        event = (frag_build_event){.op = FRAG_OP_SYNC, .stream = line->stream};
        break;
    case FRAG_GOLDEN_EMPTY_CACHE:
        event.op = FRAG_OP_EMPTY_CACHE;
        event.slot =
            line->has_pool ? frag_builder_pool(recorder->builder, line->pool) : FRAG_SLOT_NONE;
        break;
    case FRAG_GOLDEN_FRACTION:
        event = (frag_build_event){
            .op = FRAG_OP_LIMIT, .flags = FRAG_EVENT_RATIO, .bytes = line->bytes};
        break;
    case FRAG_GOLDEN_CAPTURE_BEGIN:
        event.op = FRAG_OP_CAPTURE_BEGIN;
        break;
    case FRAG_GOLDEN_CAPTURE_END:
        event.op = FRAG_OP_CAPTURE_END;
        break;
    case FRAG_GOLDEN_RESET_PEAK:
        event = (frag_build_event){.op = FRAG_OP_STATS_RESET, .bytes = FRAG_RESET_PEAKS};
        break;
    case FRAG_GOLDEN_RESET_ACCUMULATED:
        event = (frag_build_event){.op = FRAG_OP_STATS_RESET, .bytes = FRAG_RESET_SUMS};
        break;
    case FRAG_GOLDEN_SETTINGS:
        event = (frag_build_event){.op = FRAG_OP_CONFIG, .slot = settings_of(recorder, line)};
        break;
    default:
        add_pool(recorder, line);
        return;
    }
    add_event(recorder, &event);
}

/* What a request made the library do stands before it when it is served or refused, as in
 * recordings of whole programs, and behind it when it only gives something back. */
static void add_line(golden_recorder *recorder, const frag_golden_line *line)
{
    bool is_here = line->device == recorder->device || is_for_all(line->op);
    bool is_alloc = line->op == FRAG_GOLDEN_ALLOC;
    keep_reserved(recorder, line);
    if (is_here && !is_alloc)
        add_request(recorder, line);
    if (recorder->log->has_events)
        observe_notes(recorder, line);
    else
        observe_calls(recorder, line);
    if (is_here && is_alloc)
        add_request(recorder, line);
}

static void record_device(golden_recorder *recorder, uint32_t device, uint64_t *ends)
{
    const frag_golden_log *log = recorder->log;
    frag_builder_device(recorder->builder, device);
    recorder->device = device;
    recorder->event_count = 0;
    recorder->reserved_count = 0;
    recorder->segment_count = 0;
    observe_calls(recorder, &(frag_golden_line){.calls = log->start_calls});
    for (uint32_t i = 0; i < log->line_count; i++) {
        if (frag_golden_is_request(log->lines[i].op))
            add_line(recorder, &log->lines[i]);
        if (ends != NULL)
            ends[(size_t)device * log->line_count + i] = recorder->event_count;
    }
}

/* "2.9" of "2.9.1": the part that distinguishes releases. */
static void add_version(frag_builder *builder, const frag_golden_log *log)
{
    char version[sizeof log->torch];
    memcpy(version, log->torch, sizeof version);
    char *dot = strchr(version, '.');
    dot = dot != NULL ? strchr(dot + 1, '.') : NULL;
    if (dot != NULL)
        *dot = '\0';
    frag_builder_metadata(builder, "torch.version_hint", version);
}

bool frag_golden_log_record(const frag_golden_log *log, const char *name, frag_recording *recording,
                            uint64_t **ends, frag_error *error)
{
    *recording = (frag_recording){0};
    golden_recorder recorder = {.log = log, .builder = frag_builder_create(recording)};
    recorder.slots = frag_alloc(log->line_count, sizeof *recorder.slots);
    uint64_t *all =
        ends != NULL ? frag_alloc((size_t)log->line_count * log->device_count, sizeof *all) : NULL;
    char capacity[24];
    snprintf(capacity, sizeof capacity, "%" PRIu64, log->capacity_bytes);
    frag_builder_metadata(recorder.builder, "source", "golden");
    if (log->library == 0) {
        add_version(recorder.builder, log);
        frag_builder_metadata(recorder.builder, "torch.conf",
                              frag_strings_get(&log->strings, log->conf));
    } else {
        frag_builder_metadata(recorder.builder, "golden.library",
                              frag_strings_get(&log->strings, log->library));
        frag_builder_metadata(recorder.builder, "golden.policy",
                              frag_strings_get(&log->strings, log->policy));
    }
    if (log->capacity_bytes != FRAG_UNLIMITED)
        frag_builder_metadata(recorder.builder, "golden.capacity", capacity);
    frag_builder_metadata(recorder.builder, "golden.va",
                          log->is_descending ? "down"
                          : log->is_bump     ? "bump"
                                             : "firstfit");
    for (uint32_t device = 0; device < log->device_count; device++)
        record_device(&recorder, device, all);
    frag_free(recorder.slots);
    frag_free(recorder.reserved);
    frag_free(recorder.segments);
    bool ok = frag_builder_finish(recorder.builder, name, error);
    if (ok && ends != NULL)
        *ends = all;
    else
        frag_free(all);
    return ok;
}

static bool read_golden(frag_input *input, const frag_load_options *options,
                        frag_recording *recording, frag_findings *findings, frag_error *error)
{
    (void)options;
    (void)findings;
    frag_golden_log log;
    if (!frag_golden_log_read(input, &log, error))
        return false;
    bool ok = frag_golden_log_record(&log, "", recording, NULL, error);
    frag_golden_log_destroy(&log);
    return ok;
}

/* Writers of golden logs put what they are first. */
static bool is_like_golden(const unsigned char *bytes, size_t count)
{
    return frag_look_starts(bytes, count, "{\"golden\"") ||
           frag_look_starts(bytes, count, "{ \"golden\"");
}

const frag_format frag_format_golden = {
    .what = "log of an allocator library under a random script, JSON Lines",
    .page = "trace-format.md#golden-logs",
    .is_like = is_like_golden,
    .read = read_golden,
};
