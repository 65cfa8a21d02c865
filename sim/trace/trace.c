#include "sim/trace/trace.h"

#include <float.h>
#include <string.h>

#include "base/bits.h"
#include "base/memory.h"

static const char *const op_names[FRAG_OP_COUNT] = {FRAG_OPS(FRAG_SECOND_OF_2)};

static const uint8_t op_flags[FRAG_OP_COUNT] = {
    [FRAG_OP_ALLOC] =
        FRAG_EVENT_INITIAL | FRAG_EVENT_FAILED | FRAG_EVENT_INFERRED | FRAG_EVENT_PLACED,
    [FRAG_OP_FREE] = FRAG_EVENT_INITIAL | FRAG_EVENT_DEFERRED | FRAG_EVENT_INFERRED,
    [FRAG_OP_EMPTY_CACHE] = FRAG_EVENT_INFERRED,
    [FRAG_OP_LIMIT] = FRAG_EVENT_RATIO,
    [FRAG_OP_POOL_BEGIN] = FRAG_EVENT_INFERRED,
    [FRAG_OP_POOL_END] = FRAG_EVENT_INFERRED,
    [FRAG_OP_POOL_RELEASE] = FRAG_EVENT_INFERRED,
    [FRAG_OP_MARK] = FRAG_EVENT_BEGIN | FRAG_EVENT_END,
    [FRAG_OP_SEGMENT_ALLOC] = FRAG_EVENT_INITIAL | FRAG_EVENT_INFERRED,
    [FRAG_OP_SEGMENT_FREE] = FRAG_EVENT_INFERRED,
    [FRAG_OP_SEGMENT_MAP] = FRAG_EVENT_INITIAL,
    [FRAG_OP_POOL_CREATE] = FRAG_EVENT_INFERRED,
    [FRAG_OP_POOL_ON_OOM] = FRAG_EVENT_BEGIN | FRAG_EVENT_END,
};

const char *frag_op_name(frag_op op)
{
    FRAG_ASSERT((uint32_t)op < FRAG_OP_COUNT);
    return op_names[op];
}

bool frag_op_find(const char *name, size_t length, frag_op *op)
{
    for (uint32_t i = 0; i < FRAG_OP_COUNT; i++)
        if (strlen(op_names[i]) == length && memcmp(op_names[i], name, length) == 0) {
            *op = (frag_op)i;
            return true;
        }
    return false;
}

bool frag_op_has_stream(uint32_t op)
{
    return op <= FRAG_OP_OOM && op != FRAG_OP_EMPTY_CACHE && op != FRAG_OP_LIMIT &&
           op != FRAG_OP_POOL_END && op != FRAG_OP_POOL_RELEASE && op != FRAG_OP_CONFIG &&
           op != FRAG_OP_MARK;
}

bool frag_op_has_slot(uint32_t op)
{
    return (op != FRAG_OP_SYNC && op != FRAG_OP_LIMIT && op < FRAG_OP_SEGMENT_ALLOC) ||
           (op >= FRAG_OP_POOL_CREATE && op <= FRAG_OP_POOL_NO_SPLIT);
}

bool frag_op_is_of_block(uint32_t op)
{
    return op == FRAG_OP_FREE || op == FRAG_OP_USE || op == FRAG_OP_COMPLETE;
}

uint8_t frag_op_flags(uint32_t op)
{
    FRAG_ASSERT(op < FRAG_OP_COUNT);
    return op_flags[op];
}

#define BILLION 1000000000u

uint64_t frag_ratio_code(double ratio)
{
    FRAG_ASSERT(ratio >= 0 && ratio <= 1);
    uint64_t billionths = (uint64_t)(ratio * BILLION + 0.5);
    if ((double)billionths / BILLION == ratio)
        return billionths;
    if (ratio < DBL_MIN)
        return 0;
    uint64_t bits = 0;
    memcpy(&bits, &ratio, sizeof bits);
    return bits;
}

double frag_ratio_value(uint64_t code)
{
    if (code <= BILLION)
        return (double)code / BILLION;
    double ratio = 0;
    memcpy(&ratio, &code, sizeof ratio);
    return ratio;
}

bool frag_ratio_is_code(uint64_t code)
{
    double ratio = frag_ratio_value(code);
    return ratio >= 0 && ratio <= 1 && frag_ratio_code(ratio) == code;
}

uint64_t frag_trace_start(const frag_trace *trace)
{
    uint64_t start = 0;
    while (start + 1 < trace->event_count && (trace->events[start].flags & FRAG_EVENT_INITIAL) != 0)
        start++;
    return start;
}

const frag_trace *frag_recording_device_trace(const frag_recording *recording, uint64_t device)
{
    for (uint32_t i = 0; i < recording->trace_count; i++)
        if (recording->traces[i].device == device)
            return &recording->traces[i];
    return NULL;
}

const frag_trace *frag_recording_main_trace(const frag_recording *recording)
{
    const frag_trace *main = NULL;
    for (uint32_t i = 0; i < recording->trace_count; i++) {
        const frag_trace *trace = &recording->traces[i];
        if (main == NULL || frag_trace_bound_bytes(trace) > frag_trace_bound_bytes(main))
            main = trace;
    }
    return main;
}

const char *frag_recording_get(const frag_recording *recording, const char *key)
{
    uint32_t id = 0;
    if (!frag_strings_find(&recording->strings, key, strlen(key), &id))
        return NULL;
    for (uint32_t i = 0; i < recording->metadata_count; i++)
        if (recording->metadata[i][0] == id)
            return frag_strings_get(&recording->strings, recording->metadata[i][1]);
    return NULL;
}

bool frag_recording_is_problem(const frag_recording *recording)
{
    return frag_recording_get(recording, FRAG_PROBLEM_KEY) != NULL;
}

bool frag_recording_needs_columns(const frag_recording *recording)
{
    return frag_recording_is_problem(recording) ||
           frag_recording_get(recording, FRAG_PLACED_KEY) != NULL;
}

static void *resize_column(void *column, size_t old, size_t capacity, size_t item_bytes)
{
    if (column == NULL)
        return NULL;
    unsigned char *resized = frag_realloc(column, capacity, item_bytes);
    if (capacity > old)
        memset(resized + old * item_bytes, 0, (capacity - old) * item_bytes);
    return resized;
}

void frag_trace_resize_columns(frag_trace *trace, size_t old, size_t capacity)
{
    trace->addresses = resize_column(trace->addresses, old, capacity, sizeof *trace->addresses);
    trace->times_ns = resize_column(trace->times_ns, old, capacity, sizeof *trace->times_ns);
    trace->sites = resize_column(trace->sites, old, capacity, sizeof *trace->sites);
    trace->pools = resize_column(trace->pools, old, capacity, sizeof *trace->pools);
    trace->notes = resize_column(trace->notes, old, capacity, sizeof *trace->notes);
    trace->block_bytes =
        resize_column(trace->block_bytes, old, capacity, sizeof *trace->block_bytes);
}

void frag_trace_destroy(frag_trace *trace)
{
    frag_free(trace->events);
    frag_free(trace->addresses);
    frag_free(trace->times_ns);
    frag_free(trace->sites);
    frag_free(trace->pools);
    frag_free(trace->notes);
    frag_free(trace->block_bytes);
    frag_free(trace->stream_handles);
    frag_free(trace->pool_ids);
    frag_free(trace->figures);
    frag_free(trace->stretches);
    frag_free(trace->agains);
    *trace = (frag_trace){0};
}

void frag_recording_destroy(frag_recording *recording)
{
    for (uint32_t i = 0; i < recording->trace_count; i++)
        frag_trace_destroy(&recording->traces[i]);
    frag_free(recording->traces);
    frag_free(recording->name);
    frag_free(recording->metadata);
    frag_strings_destroy(&recording->strings);
    frag_free(recording->frames);
    frag_free(recording->site_frames);
    frag_free(recording->sites);
    *recording = (frag_recording){0};
}
