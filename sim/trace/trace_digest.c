/* The digest of a trace: everything it says, in one order whatever the form it was read from. */
#include <stddef.h>
#include <string.h>

#include "base/bits.h"
#include "base/memory.h"
#include "sim/trace/trace.h"

#define DIGEST_BATCH 4096

typedef struct digest_state {
    frag_digest *digest;
    unsigned char buffer[DIGEST_BATCH * 16];
    size_t used;
    uint32_t *numbers; /* of string id: its place in order of first use; 0: not used yet */
    uint32_t *used_ids;
    size_t used_ids_capacity;
    uint32_t used_count;
} digest_state;

static void flush(digest_state *digester)
{
    frag_digest_add(digester->digest, digester->buffer, digester->used);
    digester->used = 0;
}

static void put(digest_state *digester, uint64_t value, size_t bytes)
{
    if (digester->used + bytes > sizeof digester->buffer)
        flush(digester);
    unsigned char *out = digester->buffer + digester->used;
    for (size_t i = 0; i < bytes; i++)
        out[i] = (unsigned char)(value >> (8 * i));
    digester->used += bytes;
}

static void put_string(digest_state *digester, const frag_strings *strings, uint32_t id)
{
    size_t length = frag_strings_length(strings, id);
    const char *bytes = frag_strings_get(strings, id);
    put(digester, length, 8);
    flush(digester);
    frag_digest_add(digester->digest, bytes, length);
}

/* Strings are numbered by first use, so that a table with more strings (those of call stacks) or in
 * another order means the same. "" is 0. */
static uint32_t string_number(digest_state *digester, const frag_strings *strings, uint32_t id)
{
    if (id == 0 || frag_strings_length(strings, id) == 0)
        return 0;
    if (digester->numbers[id] == 0) {
        *FRAG_APPEND(digester->used_ids, digester->used_count, digester->used_ids_capacity) = id;
        digester->numbers[id] = digester->used_count;
    }
    return digester->numbers[id];
}

static bool has_value_64(const uint64_t *column, uint64_t count)
{
    for (uint64_t i = 0; column != NULL && i < count; i++)
        if (column[i] != 0)
            return true;
    return false;
}

static bool has_value_32(const uint32_t *column, uint64_t count)
{
    for (uint64_t i = 0; column != NULL && i < count; i++)
        if (column[i] != 0)
            return true;
    return false;
}

static void put_column_64(digest_state *digester, uint32_t tag, const uint64_t *column,
                          uint64_t count)
{
    if (!has_value_64(column, count))
        return;
    put(digester, tag, 4);
    if (frag_is_little_endian()) { /* as it lies in memory */
        flush(digester);
        frag_digest_add(digester->digest, column, count * sizeof *column);
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        put(digester, column[i], 8);
}

/* Are the 16 bytes of an event those that are digested, but for slots that are strings? */
static bool is_event_digested_as_is(void)
{
    return frag_is_little_endian() && sizeof(frag_event) == 16 && offsetof(frag_event, op) == 0 &&
           offsetof(frag_event, flags) == 1 && offsetof(frag_event, stream) == 2 &&
           offsetof(frag_event, slot) == 4 && offsetof(frag_event, bytes) == 8;
}

/* Events from an index that are digested as they lie in memory, up to one whose slot is a string.
 */
static uint64_t put_run(digest_state *digester, const frag_trace *trace, uint64_t first)
{
    uint64_t end = first;
    while (end < trace->event_count && trace->events[end].op != FRAG_OP_CONFIG &&
           trace->events[end].op != FRAG_OP_MARK)
        end++;
    flush(digester);
    frag_digest_add(digester->digest, trace->events + first, (end - first) * sizeof(frag_event));
    return end;
}

static void put_events(digest_state *digester, const frag_recording *recording,
                       const frag_trace *trace)
{
    for (uint64_t i = 0; i < trace->event_count; i++) {
        if (is_event_digested_as_is())
            i = put_run(digester, trace, i);
        if (i == trace->event_count)
            return;
        const frag_event *event = &trace->events[i];
        uint32_t slot = event->slot;
        if (event->op == FRAG_OP_CONFIG || event->op == FRAG_OP_MARK)
            slot = string_number(digester, &recording->strings, slot);
        put(digester,
            event->op | (uint64_t)event->flags << 8 | (uint64_t)event->stream << 16 |
                (uint64_t)slot << 32,
            8);
        put(digester, event->bytes, 8);
    }
}

static void put_columns(digest_state *digester, const frag_recording *recording,
                        const frag_trace *trace)
{
    put_column_64(digester, 1, trace->addresses, trace->event_count);
    put_column_64(digester, 2, trace->times_ns, trace->event_count);
    if (has_value_32(trace->pools, trace->event_count)) {
        put(digester, 3, 4);
        for (uint64_t i = 0; i < trace->event_count; i++)
            put(digester, trace->pools[i], 4);
    }
    if (has_value_32(trace->notes, trace->event_count)) {
        put(digester, 4, 4);
        for (uint64_t i = 0; i < trace->event_count; i++)
            put(digester, string_number(digester, &recording->strings, trace->notes[i]), 4);
    }
    put_column_64(digester, 5, trace->block_bytes, trace->event_count);
}

void frag_trace_digest(const frag_recording *recording, frag_trace *trace)
{
    static const char tag[] = "fraglab trace digest 1\n";
    digest_state *digester = frag_alloc(1, sizeof *digester);
    digester->digest = frag_digest_create();
    digester->numbers = frag_alloc(recording->strings.count, sizeof *digester->numbers);
    frag_digest_add(digester->digest, tag, sizeof tag - 1);
    put(digester, recording->metadata_count, 4);
    for (uint32_t i = 0; i < recording->metadata_count; i++) {
        put_string(digester, &recording->strings, recording->metadata[i][0]);
        put_string(digester, &recording->strings, recording->metadata[i][1]);
    }
    put(digester, trace->device, 4);
    put(digester, trace->stream_count, 4);
    for (uint32_t i = 0; i < trace->stream_count; i++)
        put(digester, trace->stream_handles[i], 8);
    put(digester, trace->pool_count, 4);
    for (uint32_t i = 0; i < trace->pool_count; i++) {
        put(digester, trace->pool_ids[i].high, 8);
        put(digester, trace->pool_ids[i].low, 8);
    }
    put(digester, trace->event_count, 8);
    put_events(digester, recording, trace);
    put_columns(digester, recording, trace);
    put(digester, digester->used_count, 4);
    for (uint32_t i = 0; i < digester->used_count; i++)
        put_string(digester, &recording->strings, digester->used_ids[i]);
    frag_digest_add(digester->digest, digester->buffer, digester->used);
    frag_digest_finish(digester->digest, trace->digest);
    frag_free(digester->numbers);
    frag_free(digester->used_ids);
    frag_free(digester);
}
