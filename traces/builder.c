#include "traces/builder.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/memory.h"

typedef struct slot_stack {
    uint32_t *free;
    size_t capacity;
    uint32_t count;
    uint32_t next; /* never taken so far */
} slot_stack;

/* What is kept of the trace being built, beside the trace itself. */
typedef struct device_state {
    size_t capacity;      /* of events and of every column there is */
    size_t expected;      /* events */
    frag_strings streams; /* handles, by stream */
    size_t stream_capacity;
    uint64_t last_handle;
    uint32_t last_stream;
    bool is_stream_order_fixed;
    frag_strings pools; /* by pool */
    size_t pool_capacity;
    slot_stack slots;
    bool is_short;
    uint32_t open_stretches;
    uint32_t seen_stretches;
    uint32_t *makers; /* by slot: the stretch, from 1, that was seen to take it last and keeps it */
    size_t maker_capacity;
    size_t maker_count;
    size_t stretch_capacity;
    size_t again_capacity;
} device_state;

struct frag_builder {
    frag_recording *recording;
    frag_trace *trace; /* begun last; NULL: none yet */
    device_state device;
    size_t metadata_capacity;
    size_t frame_capacity;
    size_t site_frame_capacity;
    size_t site_capacity;
    size_t trace_capacity;
    frag_strings frames; /* by frame */
    frag_strings sites;  /* the frames of each */
    bool has_too_many_streams;
    bool has_placed;
    bool has_no_digest;
    uint32_t full_device;
};

/* ---- tables of the recording */

/* The number of a row of a table, where equal bytes are one row; is_new: it is the last one. */
static uint32_t intern(frag_strings *rows, const void *row, size_t bytes, bool *is_new)
{
    uint32_t count = rows->count;
    uint32_t id = frag_strings_add(rows, row, bytes);
    *is_new = id == count;
    return id;
}

uint32_t frag_builder_string(frag_builder *builder, const char *bytes, size_t length)
{
    return frag_strings_add(&builder->recording->strings, bytes, length);
}

uint32_t frag_builder_text(frag_builder *builder, const char *bytes, size_t length)
{
    char *copy = frag_alloc(length + 1, 1);
    memcpy(copy, bytes, length);
    for (size_t at = 0; at < length;) {
        size_t step = frag_text_sequence((const unsigned char *)copy + at, length - at);
        if (step == 0 || copy[at] == '\0') {
            copy[at] = '?';
            step = 1;
        }
        at += step;
    }
    uint32_t id = frag_builder_string(builder, copy, length);
    frag_free(copy);
    return id;
}

void frag_builder_metadata_strings(frag_builder *builder, uint32_t key, uint32_t value)
{
    frag_recording *recording = builder->recording;
    recording->metadata =
        frag_grow(recording->metadata, &builder->metadata_capacity,
                  (size_t)recording->metadata_count + 1, sizeof *recording->metadata);
    recording->metadata[recording->metadata_count][0] = key;
    recording->metadata[recording->metadata_count][1] = value;
    recording->metadata_count++;
}

void frag_builder_metadata(frag_builder *builder, const char *key, const char *value)
{
    /* One after the other: as arguments they would get their ids as the compiler likes. */
    uint32_t value_id = frag_builder_string(builder, value, strlen(value));
    uint32_t key_id = frag_builder_string(builder, key, strlen(key));
    frag_builder_metadata_strings(builder, key_id, value_id);
}

uint32_t frag_builder_frame(frag_builder *builder, frag_frame frame)
{
    frag_recording *recording = builder->recording;
    bool is_new = false;
    uint32_t id = intern(&builder->frames, &frame, sizeof frame, &is_new);
    if (!is_new)
        return id;
    *FRAG_APPEND(recording->frames, recording->frame_count, builder->frame_capacity) = frame;
    return id;
}

uint32_t frag_builder_site(frag_builder *builder, const uint32_t *frames, uint32_t count)
{
    frag_recording *recording = builder->recording;
    bool is_new = false;
    uint32_t id = intern(&builder->sites, count > 0 ? (const void *)frames : "",
                         count * sizeof *frames, &is_new);
    if (!is_new)
        return id;
    FRAG_ASSERT(count <= UINT32_MAX - recording->site_frame_count);
    *FRAG_APPEND(recording->sites, recording->site_count, builder->site_capacity) =
        (frag_site){recording->site_frame_count, count};
    recording->site_frames =
        frag_grow(recording->site_frames, &builder->site_frame_capacity,
                  (size_t)recording->site_frame_count + count, sizeof *recording->site_frames);
    if (count > 0)
        memcpy(recording->site_frames + recording->site_frame_count, frames,
               count * sizeof *frames);
    recording->site_frame_count += count;
    return id;
}

frag_builder *frag_builder_create(frag_recording *recording)
{
    frag_builder *builder = frag_alloc(1, sizeof *builder);
    builder->recording = recording;
    frag_strings_add(&recording->strings, "", 0);
    uint32_t empty_stack = frag_builder_site(builder, NULL, 0);
    FRAG_ASSERT(empty_stack == 0);
    return builder;
}

/* ---- the trace of one device */
/* The order in which streams happen to be used must not matter to what is replayed: two recordings
 * of the same program name them alike. */
static void sort_streams(frag_trace *trace)
{
    uint32_t count = trace->stream_count;
    uint64_t(*pairs)[2] = frag_alloc(count, sizeof *pairs);
    uint16_t *moved_to = frag_alloc(count, sizeof *moved_to);
    bool is_sorted = true;
    for (uint32_t i = 0; i < count; i++) {
        pairs[i][0] = trace->stream_handles[i];
        pairs[i][1] = i;
        is_sorted = is_sorted && (i == 0 || pairs[i - 1][0] < pairs[i][0]);
    }
    if (!is_sorted) {
        qsort(pairs, count, sizeof *pairs, frag_compare_numbers);
        for (uint32_t i = 0; i < count; i++) {
            trace->stream_handles[i] = pairs[i][0];
            moved_to[pairs[i][1]] = (uint16_t)i;
        }
        for (uint64_t i = 0; i < trace->event_count; i++)
            if (trace->events[i].stream < count &&
                (frag_op_has_stream(trace->events[i].op) || trace->events[i].op == FRAG_OP_ONCE))
                trace->events[i].stream = moved_to[trace->events[i].stream];
    }
    frag_free(pairs);
    frag_free(moved_to);
}

static void resize_events(frag_builder *builder, size_t capacity)
{
    frag_trace *trace = builder->trace;
    trace->events = frag_realloc(trace->events, capacity, sizeof *trace->events);
    frag_trace_resize_columns(trace, builder->device.capacity, capacity);
    builder->device.capacity = capacity;
}

/* Without stretches everything is done once. */
static void forget_once(frag_trace *trace)
{
    for (uint64_t i = 0; i < trace->event_count; i++)
        if (trace->events[i].op == FRAG_OP_ONCE)
            trace->events[i].op = FRAG_OP_ALLOC;
}

static void end_device(frag_builder *builder)
{
    if (builder->trace != NULL && builder->trace->event_count > 0)
        resize_events(builder, builder->trace->event_count);
    if (builder->trace != NULL && !builder->device.is_stream_order_fixed)
        sort_streams(builder->trace);
    if (builder->device.seen_stretches > 0 && builder->trace->stretch_count == 0)
        forget_once(builder->trace);
    if (builder->device.is_short) {
        builder->trace->slot_count = builder->device.slots.next;
        frag_trace_measure_short(builder->trace);
    }
    frag_strings_destroy(&builder->device.streams);
    frag_strings_destroy(&builder->device.pools);
    frag_free(builder->device.slots.free);
    frag_free(builder->device.makers);
    builder->device = (device_state){0};
}

void frag_builder_device(frag_builder *builder, uint32_t device)
{
    frag_recording *recording = builder->recording;
    FRAG_ASSERT(builder->trace == NULL || device > builder->trace->device);
    end_device(builder);
    recording->traces = frag_grow(recording->traces, &builder->trace_capacity,
                                  (size_t)recording->trace_count + 1, sizeof *recording->traces);
    builder->trace = &recording->traces[recording->trace_count++];
    *builder->trace = (frag_trace){.device = device};
    frag_builder_pool(builder, (frag_pool_id){0, 0});
}

uint32_t frag_builder_pool(frag_builder *builder, frag_pool_id id)
{
    if (builder->trace == NULL)
        frag_builder_device(builder, 0);
    frag_trace *trace = builder->trace;
    device_state *device = &builder->device;
    bool is_new = false;
    uint32_t pool = intern(&device->pools, &id, sizeof id, &is_new);
    if (!is_new)
        return pool;
    *FRAG_APPEND(trace->pool_ids, trace->pool_count, device->pool_capacity) = id;
    return pool;
}

static uint16_t intern_stream(frag_builder *builder, uint64_t handle)
{
    frag_trace *trace = builder->trace;
    device_state *device = &builder->device;
    if (handle == device->last_handle && trace->stream_count > 0)
        return (uint16_t)device->last_stream;
    bool is_new = false;
    uint32_t stream = intern(&device->streams, &handle, sizeof handle, &is_new);
    if (stream >= FRAG_STREAM_ALL) {
        if (!builder->has_too_many_streams)
            builder->full_device = trace->device;
        builder->has_too_many_streams = true;
        return 0;
    }
    if (is_new) {
        *FRAG_APPEND(trace->stream_handles, trace->stream_count, device->stream_capacity) = handle;
    }
    device->last_handle = handle;
    device->last_stream = stream;
    return (uint16_t)stream;
}

void frag_builder_streams(frag_builder *builder, const uint64_t *handles, uint32_t count)
{
    if (builder->trace == NULL)
        frag_builder_device(builder, 0);
    FRAG_ASSERT(builder->trace->stream_count == 0);
    for (uint32_t i = 0; i < count; i++)
        intern_stream(builder, handles[i]);
    builder->device.is_stream_order_fixed = true;
}

void frag_builder_expect(frag_builder *builder, uint64_t event_count)
{
    if (builder->trace == NULL)
        frag_builder_device(builder, 0);
    FRAG_ASSERT(builder->trace->event_count == 0);
    builder->device.expected = (size_t)event_count;
}

void frag_builder_reuse(frag_builder *builder, frag_event *events, size_t capacity)
{
    frag_builder_expect(builder, 0);
    FRAG_ASSERT(builder->trace->events == NULL);
    builder->trace->events = events;
    builder->device.capacity = capacity;
}

/* ---- events */
static void set_64(uint64_t **column, size_t capacity, uint64_t index, uint64_t value)
{
    if (value == 0)
        return;
    if (*column == NULL)
        *column = frag_alloc(capacity, sizeof **column);
    (*column)[index] = value;
}

static void set_32(uint32_t **column, size_t capacity, uint64_t index, uint32_t value)
{
    if (value == 0)
        return;
    if (*column == NULL)
        *column = frag_alloc(capacity, sizeof **column);
    (*column)[index] = value;
}

void frag_builder_add(frag_builder *builder, const frag_build_event *event)
{
    if (builder->trace == NULL)
        frag_builder_device(builder, 0);
    frag_trace *trace = builder->trace;
    size_t room = builder->device.capacity, expected = builder->device.expected;
    if (trace->event_count == room)
        resize_events(builder, room > 0 ? room * 2 : expected > 1024 ? expected : 1024);
    uint64_t index = trace->event_count++;
    size_t capacity = builder->device.capacity;
    uint16_t stream = 0;
    /* What a reader leaves in a field that the op does not have must not become content. */
    if (frag_op_has_stream(event->op))
        stream = event->is_stream_all ? FRAG_STREAM_ALL : intern_stream(builder, event->stream);
    trace->events[index] = (frag_event){
        .op = (uint8_t)event->op,
        .flags = event->flags,
        .stream = stream,
        .slot = frag_op_has_slot(event->op) ? event->slot : 0,
        .bytes = event->bytes,
    };
    builder->has_placed = builder->has_placed || (event->flags & FRAG_EVENT_PLACED) != 0;
    set_64(&trace->addresses, capacity, index, event->address);
    set_64(&trace->times_ns, capacity, index, event->time_ns);
    set_32(&trace->sites, capacity, index, event->site);
    set_32(&trace->pools, capacity, index, event->pool);
    set_32(&trace->notes, capacity, index, event->note);
    set_64(&trace->block_bytes, capacity, index, event->block_bytes);
}

uint64_t frag_builder_event_count(const frag_builder *builder)
{
    return builder->trace->event_count;
}

uint32_t frag_builder_slot_count(const frag_builder *builder)
{
    return builder->device.slots.next;
}

uint32_t frag_builder_slot_take(frag_builder *builder)
{
    if (builder->trace == NULL)
        frag_builder_device(builder, 0);
    slot_stack *slots = &builder->device.slots;
    if (slots->count > 0)
        return slots->free[--slots->count];
    FRAG_ASSERT(slots->next < FRAG_SLOT_NONE);
    return slots->next++;
}

void frag_builder_slot_give(frag_builder *builder, uint32_t slot)
{
    slot_stack *slots = &builder->device.slots;
    FRAG_ASSERT(slot < slots->next);
    if (builder->device.open_stretches > 0)
        return;
    *FRAG_APPEND(slots->free, slots->count, slots->capacity) = slot;
}

void frag_builder_repeat(frag_builder *builder, uint64_t first, uint64_t end, uint32_t *slots)
{
    frag_trace *trace = builder->trace;
    FRAG_ASSERT(first <= end && end <= trace->event_count);
    size_t least = (size_t)(trace->event_count + (end - first));
    if (least > builder->device.capacity)
        resize_events(builder,
                      least > 2 * builder->device.capacity ? least : 2 * builder->device.capacity);
    for (uint64_t i = first; i < end; i++) {
        frag_event *again = &trace->events[trace->event_count++];
        *again = trace->events[i];
        if (again->op == FRAG_OP_ALLOC) {
            again->slot = slots[again->slot] = frag_builder_slot_take(builder);
        } else if (again->op == FRAG_OP_FREE) {
            again->slot = slots[again->slot];
            frag_builder_slot_give(builder, again->slot);
        }
    }
}

void frag_builder_shorten(frag_builder *builder)
{
    FRAG_ASSERT(builder->trace->event_count == 0);
    builder->device.is_short = true;
}

bool frag_builder_is_short(const frag_builder *builder)
{
    return builder->device.is_short;
}

void frag_builder_begin_stretch(frag_builder *builder)
{
    builder->device.open_stretches += builder->device.is_short;
}

/* Gives the stretch back all that it takes, but for what is left in the place of others? */
static bool is_closed(const frag_trace *trace, const frag_stretch *stretch, uint32_t maker,
                      uint32_t *makers)
{
    uint64_t kept = stretch->count;
    for (uint32_t i = 0; i < stretch->count; i++)
        makers[stretch->from[i]] = maker;
    for (uint64_t i = stretch->first; i < stretch->end; i++) {
        const frag_event *event = &trace->events[i];
        if (event->op == FRAG_OP_ALLOC) {
            makers[event->slot] = maker;
            kept++;
        } else if (event->op == FRAG_OP_FREE) {
            if (makers[event->slot] != maker)
                return false;
            makers[event->slot] = 0;
            kept--;
        } else if (event->op == FRAG_OP_AGAIN) {
            const frag_again *again = &trace->agains[event->slot];
            const frag_stretch *of = &trace->stretches[again->stretch];
            for (uint32_t k = 0; k < of->count; k++) {
                uint32_t from = again->is_done ? again->at[k] : of->to[k];
                if (makers[from] != maker)
                    return false;
                makers[from] = 0;
                makers[again->at[k]] = maker;
            }
        }
    }
    bool is_left = kept == stretch->count;
    for (uint32_t i = 0; i < stretch->count; i++)
        is_left = is_left && makers[stretch->to[i]] == maker;
    return is_left;
}

bool frag_builder_end_stretch(frag_builder *builder, const frag_stretch *stretch, uint32_t *number)
{
    frag_trace *trace = builder->trace;
    device_state *device = &builder->device;
    size_t slots = device->slots.next;
    device->open_stretches--;
    device->makers =
        frag_grow(device->makers, &device->maker_capacity, slots, sizeof *device->makers);
    for (; device->maker_count < slots; device->maker_count++)
        device->makers[device->maker_count] = 0;
    if (!is_closed(trace, stretch, ++device->seen_stretches, device->makers))
        return false;
    *number = trace->stretch_count;
    *FRAG_APPEND(trace->stretches, trace->stretch_count, device->stretch_capacity) = *stretch;
    return true;
}

void frag_builder_again(frag_builder *builder, const frag_again *again)
{
    frag_trace *trace = builder->trace;
    frag_builder_add(builder, &(frag_build_event){.op = FRAG_OP_AGAIN});
    trace->events[trace->event_count - 1].slot = trace->again_count;
    *FRAG_APPEND(trace->agains, trace->again_count, builder->device.again_capacity) = *again;
}

void frag_builder_once(frag_builder *builder)
{
    if (builder->device.open_stretches > 0)
        builder->trace->events[builder->trace->event_count - 1].op = FRAG_OP_ONCE;
}

static void destroy_builder(frag_builder *builder)
{
    end_device(builder);
    frag_strings_destroy(&builder->frames);
    frag_strings_destroy(&builder->sites);
    frag_free(builder);
}

void frag_builder_skip_digest(frag_builder *builder)
{
    builder->has_no_digest = true;
}

bool frag_builder_finish(frag_builder *builder, const char *name, frag_error *error)
{
    frag_recording *recording = builder->recording;
    if (builder->trace == NULL)
        frag_builder_device(builder, 0);
    if (builder->has_placed && frag_recording_get(recording, FRAG_PLACED_KEY) == NULL)
        frag_builder_metadata(builder, FRAG_PLACED_KEY, "yes");
    bool is_full = builder->has_too_many_streams;
    bool has_digest = !builder->has_no_digest;
    uint32_t full_device = builder->full_device;
    destroy_builder(builder);
    recording->name = frag_copy_text(name);
    bool ok = !is_full ||
              frag_fail(error, FRAG_E_INPUT,
                        "device %u uses more than 65535 streams; expected fewer", full_device);
    for (uint32_t i = 0; ok && i < recording->trace_count; i++) {
        ok = recording->traces[i].stretch_count > 0 ||
             frag_trace_accept(recording, &recording->traces[i], NULL, error);
        if (ok && has_digest)
            frag_trace_digest(recording, &recording->traces[i]);
    }
    if (!ok)
        frag_recording_destroy(recording);
    return ok;
}

void frag_builder_abandon(frag_builder *builder)
{
    if (builder == NULL)
        return;
    frag_recording *recording = builder->recording;
    destroy_builder(builder);
    frag_recording_destroy(recording);
}

bool frag_builder_end(frag_builder *builder, bool is_read, frag_input *input, frag_error *error)
{
    if (is_read)
        return frag_builder_finish(builder, frag_input_name(input), error);
    frag_builder_abandon(builder);
    return false;
}
