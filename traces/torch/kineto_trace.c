/* Traces of PyTorch's profiler (Kineto): Chrome traces with an event "[memory]" for each piece of
 * memory that was given out or taken back, where it ran with profile_memory=True, and
 * "[OutOfMemory]" for each request that failed. Sizes are those of the allocator's blocks.
 * Source: pytorch/pytorch, torch/csrc/autograd/profiler_kineto.cpp.
 *
 * There is a trace for each device. Memory of the CPU is read where there is no other. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/json.h"
#include "base/memory.h"
#include "traces/exchange/live_blocks.h"
#include "traces/exchange/size_pairs.h"
#include "traces/format_look.h"
#include "traces/formats.h"
#include "traces/torch/chrome_events.h"

/* c10::DeviceType */
#define TYPE_CPU 0
#define TYPE_MAX 255
#define DEVICE_MAX 65535
/* Microseconds of the year 2255, beyond which nanoseconds have no room. */
#define TIME_US_MAX 9e15

typedef enum memory_op { MEMORY_ALLOC, MEMORY_FREE, MEMORY_FAILED } memory_op;

static const char *const op_names[] = {"[memory]", "[memory]", "[OutOfMemory]"};

typedef struct memory_event {
    uint64_t time_ns;
    uint64_t number; /* from 0, among the events of memory in the file */
    uint64_t address;
    uint64_t bytes;
    uint64_t allocated_bytes; /* as recorded, behind this event */
    uint64_t reserved_bytes;
    memory_op op;
    uint16_t device;
    uint8_t type;
    bool has_allocated;
} memory_event;

/* The arguments of an event; names as in the file. */
typedef enum argument {
    ARGUMENT_TYPE,
    ARGUMENT_DEVICE,
    ARGUMENT_ADDRESS,
    ARGUMENT_BYTES,
    ARGUMENT_ALLOCATED,
    ARGUMENT_RESERVED,
    ARGUMENT_COUNT
} argument;

static const char *const argument_names[ARGUMENT_COUNT] = {
    "Device Type", "Device Id", "Addr", "Bytes", "Total Allocated", "Total Reserved",
};

typedef struct arguments {
    int64_t values[ARGUMENT_COUNT];
    const frag_json_value *found[ARGUMENT_COUNT]; /* NULL: not there */
    bool is_given[ARGUMENT_COUNT];                /* a whole number */
} arguments;

typedef struct kineto_reader {
    frag_chrome_events events;
    frag_error *error;
    frag_findings *findings;
    memory_event *rows;
    size_t row_count;
    size_t row_capacity;
    uint64_t addressless_count; /* events that lack an address */
    uint64_t addressless_line;  /* of the first of them */
    bool has_addresses;         /* an event has one */
} kineto_reader;

/* ---- what it is */

/* Does it begin like a Chrome trace: an array of objects, or an object with a member that only
 * such a trace has? */
static bool is_like_kineto(const unsigned char *bytes, size_t count)
{
    size_t seen = count < FRAG_FORMAT_LOOK_BYTES ? count : FRAG_FORMAT_LOOK_BYTES;
    size_t start = frag_look_past_space(bytes, seen, 0);
    size_t inside = frag_look_past_space(bytes, seen, start + 1);
    if (inside >= seen)
        return false;
    /* every event has a phase; a log of JSON objects has none */
    if (bytes[start] == '[')
        return bytes[inside] == '{' && frag_look_contains(bytes, seen, "\"ph\"");
    return bytes[start] == '{' && (frag_look_contains(bytes, seen, "\"traceEvents\"") ||
                                   frag_look_contains(bytes, seen, "\"schemaVersion\""));
}

/* ---- an event */

static bool fail_event(kineto_reader *reader, const char *what, const frag_json_value *value,
                       const char *expected)
{
    char found[FRAG_JSON_FOUND_MAX];
    return frag_fail_line(reader->error, reader->events.event_line, 0,
                          "\"%s\" of the event %s; expected %s", what,
                          frag_json_found(value, found), expected);
}

static bool fail_argument(kineto_reader *reader, const arguments *given, argument which,
                          const char *expected)
{
    return fail_event(reader, argument_names[which], given->found[which], expected);
}

static bool take_argument(void *context, const char *key, const frag_json_value *value)
{
    arguments *given = context;
    for (int i = 0; i < ARGUMENT_COUNT; i++)
        if (strcmp(key, argument_names[i]) == 0) {
            given->found[i] = value;
            given->is_given[i] = frag_json_read_signed(value, &given->values[i]);
        }
    return true;
}

static bool read_time(kineto_reader *reader, const frag_json *json, memory_event *event)
{
    double time_us = 0;
    if (!frag_json_read_ratio(frag_json_at(json, "ts"), &time_us) || !(time_us >= 0) ||
        time_us > TIME_US_MAX)
        return fail_event(reader, "ts", frag_json_at(json, "ts"), "microseconds");
    event->time_ns = (uint64_t)llround(time_us * 1000);
    return true;
}

static bool is_within(const arguments *given, argument which, int64_t min, int64_t max)
{
    return given->is_given[which] && given->values[which] >= min && given->values[which] <= max;
}

/* If the type of the device is missing, its number decides: the CPU has none. */
static bool read_device(kineto_reader *reader, const arguments *given, memory_event *event)
{
    int64_t type = given->values[ARGUMENT_TYPE];
    if (!is_within(given, ARGUMENT_DEVICE, -1, DEVICE_MAX))
        return fail_argument(reader, given, ARGUMENT_DEVICE, "a whole number from -1 to 65535");
    int64_t device = given->values[ARGUMENT_DEVICE];
    if (given->found[ARGUMENT_TYPE] == NULL)
        type = device < 0 ? TYPE_CPU : 1;
    else if (!is_within(given, ARGUMENT_TYPE, 0, TYPE_MAX))
        return fail_argument(reader, given, ARGUMENT_TYPE, "a whole number from 0 to 255");
    if (type != TYPE_CPU && device < 0)
        return fail_argument(reader, given, ARGUMENT_DEVICE, "a whole number from 0 to 65535");
    event->type = (uint8_t)type;
    event->device = type == TYPE_CPU ? 0 : (uint16_t)device;
    return true;
}

/* PyTorch 1.8 to 1.10 wrote none. */
static bool read_address(kineto_reader *reader, const arguments *given, memory_event *event)
{
    if (given->found[ARGUMENT_ADDRESS] == NULL) {
        if (reader->addressless_count++ == 0)
            reader->addressless_line = reader->events.event_line;
        return true;
    }
    if (!is_within(given, ARGUMENT_ADDRESS, 0, INT64_MAX))
        return fail_argument(reader, given, ARGUMENT_ADDRESS, "an address");
    event->address = (uint64_t)given->values[ARGUMENT_ADDRESS];
    reader->has_addresses = true;
    return true;
}

static bool read_arguments(kineto_reader *reader, frag_json *json, memory_event *event)
{
    const int64_t bytes_max = (int64_t)FRAG_REQUEST_BYTES_MAX;
    arguments given = {0};
    const frag_json_value *members = frag_json_at(json, "args");
    if (members == NULL || !frag_json_each_in(members, take_argument, &given))
        return fail_event(reader, "args", members, "an object");
    if (!read_device(reader, &given, event))
        return false;
    if (!is_within(&given, ARGUMENT_BYTES, event->op == MEMORY_FAILED ? 0 : -bytes_max, bytes_max))
        return fail_argument(reader, &given, ARGUMENT_BYTES,
                             "a whole number of bytes, below zero for a release");
    int64_t bytes = given.values[ARGUMENT_BYTES];
    if (event->op != MEMORY_FAILED && !read_address(reader, &given, event))
        return false;
    event->op = event->op == MEMORY_ALLOC && bytes < 0 ? MEMORY_FREE : event->op;
    event->bytes = (uint64_t)(bytes < 0 ? -bytes : bytes);
    event->has_allocated = is_within(&given, ARGUMENT_ALLOCATED, 0, INT64_MAX);
    if (event->has_allocated)
        event->allocated_bytes = (uint64_t)given.values[ARGUMENT_ALLOCATED];
    if (is_within(&given, ARGUMENT_RESERVED, 0, INT64_MAX))
        event->reserved_bytes = (uint64_t)given.values[ARGUMENT_RESERVED];
    return true;
}

/* Events about anything else are passed by. */
static bool read_json(kineto_reader *reader, frag_json *json)
{
    const char *name = NULL;
    memory_event event = {.number = reader->row_count};
    if (!frag_json_read_text(frag_json_at(json, "name"), &name) ||
        (strcmp(name, op_names[MEMORY_ALLOC]) != 0 && strcmp(name, op_names[MEMORY_FAILED]) != 0))
        return true;
    event.op = strcmp(name, op_names[MEMORY_FAILED]) == 0 ? MEMORY_FAILED : MEMORY_ALLOC;
    if (!read_time(reader, json, &event) || !read_arguments(reader, json, &event))
        return false;
    *FRAG_APPEND(reader->rows, reader->row_count, reader->row_capacity) = event;
    return true;
}

/* Most events are of other kinds; only those that may be of memory are parsed. */
static bool read_events(kineto_reader *reader)
{
    const char *text = NULL;
    size_t length = 0;
    while (frag_chrome_next(&reader->events, &text, &length)) {
        if (strstr(text, op_names[MEMORY_ALLOC]) == NULL &&
            strstr(text, op_names[MEMORY_FAILED]) == NULL)
            continue;
        frag_error error = {0};
        frag_json *json = frag_json_parse(text, length, &error);
        if (json == NULL)
            return frag_fail_line(reader->error, reader->events.event_line, 0, "%s",
                                  error.sentence);
        bool ok = read_json(reader, json);
        frag_json_destroy(json);
        if (!ok)
            return false;
    }
    if (reader->events.has_failed)
        return false;
    if (reader->events.is_cut_off)
        frag_findings_add(
            reader->findings, "array-not-closed",
            "the array of events has no end, as when a program is killed; events may be missing",
            false, 0, reader->row_count, "%s", "the end of the file");
    if (reader->row_count == 0)
        return frag_fail(reader->error, FRAG_E_INPUT,
                         "the trace has no [memory] events; record it with profile_memory=True");
    if (reader->has_addresses && reader->addressless_count > 0)
        return frag_fail_line(reader->error, reader->addressless_line, 0,
                              "the event has no \"Addr\" although others have; expected an "
                              "address, or none in all of the trace");
    return reader->row_count < FRAG_SLOT_NONE / 4 ||
           frag_fail(reader->error, FRAG_E_INPUT, "there are more than 2^30 [memory] events");
}

/* ---- devices */

static int compare_events(const void *one, const void *other)
{
    const memory_event *a = one;
    const memory_event *b = other;
    bool is_a_cpu = a->type == TYPE_CPU;
    if (is_a_cpu != (b->type == TYPE_CPU))
        return is_a_cpu ? 1 : -1;
    return frag_compare_then(frag_compare(a->device, b->device),
                             frag_compare_then(frag_compare(a->time_ns, b->time_ns),
                                               frag_compare(a->number, b->number)));
}

/* Sorts by device and time; what is left out stands at the end. */
static bool choose_events(kineto_reader *reader, size_t *count)
{
    memory_event *rows = reader->rows;
    qsort(rows, reader->row_count, sizeof *rows, compare_events);
    *count = reader->row_count;
    if (rows[0].type == TYPE_CPU)
        return true;
    for (size_t i = 0; i < *count; i++) {
        if (rows[i].type == TYPE_CPU) {
            frag_findings_add(reader->findings, "memory-of-the-cpu",
                              "memory of the CPU is left out where there is some of a device",
                              false, 0, rows[i].number, "%s, %" PRIu64 " bytes",
                              op_names[rows[i].op], rows[i].bytes);
        } else if (rows[i].type != rows[0].type) {
            return frag_fail(reader->error, FRAG_E_INPUT,
                             "the trace has memory of devices of types %u and %u; expected one "
                             "type beside the CPU",
                             rows[0].type, rows[i].type);
        }
    }
    while (rows[*count - 1].type == TYPE_CPU)
        --*count;
    return true;
}

/* ---- traces */

/* What PyTorch says is allocated must go along with what it gave out. */
static void check_total(kineto_reader *reader, const memory_event *event,
                        const memory_event *before, uint32_t device)
{
    if (!event->has_allocated || event->op == MEMORY_FAILED ||
        (before != NULL && !before->has_allocated))
        return;
    bool is_free = event->op == MEMORY_FREE;
    uint64_t allocated = event->allocated_bytes;
    /* Modulo 2^64: a total that has no room for its event is one that does not go along. */
    uint64_t expected = is_free ? allocated + event->bytes : allocated - event->bytes;
    if (before == NULL && expected > 0)
        frag_findings_add(reader->findings, "live-before-recording",
                          "memory was allocated before the recording began; it is not in the trace",
                          false, device, event->number, "%" PRIu64 " bytes", expected);
    else if (before != NULL && expected != before->allocated_bytes)
        frag_findings_add(reader->findings, "total-does-not-follow",
                          "\"Total Allocated\" does not go on from the event before: events are "
                          "missing, or threads passed each other",
                          false, device, event->number,
                          "%" PRIu64 " bytes before, %" PRIu64 " after %s%" PRIu64,
                          before->allocated_bytes, allocated, is_free ? "-" : "+", event->bytes);
}

/* What is live on a device: by address, or by size where the trace has no addresses. */
typedef struct live_memory {
    frag_live_blocks blocks;
    frag_size_pairs pairs;
    bool is_by_size;
} live_memory;

static void add_call(live_memory *live, memory_op op, const frag_live_call *call)
{
    if (op == MEMORY_ALLOC && live->is_by_size)
        frag_size_pairs_alloc(&live->pairs, call);
    else if (op == MEMORY_ALLOC)
        frag_live_alloc(&live->blocks, call);
    else if (op == MEMORY_FREE && live->is_by_size)
        frag_size_pairs_free(&live->pairs, call);
    else if (op == MEMORY_FREE)
        frag_live_free(&live->blocks, call);
    else
        frag_live_alloc_failed(&live->blocks, call);
}

static void add_event(kineto_reader *reader, live_memory *live, const memory_event *event)
{
    frag_live_call call = {
        .time_ns = event->time_ns + reader->events.base_time_ns,
        .address = event->address,
        .bytes = event->bytes,
        .entry = event->number,
        .text = op_names[event->op],
    };
    if (event->bytes == 0)
        frag_findings_add(reader->findings, "request-of-nothing",
                          "no memory was asked for or given back; the event was left out", false,
                          live->blocks.device, event->number, "%s of 0 bytes", call.text);
    else
        add_call(live, event->op, &call);
}

/* The trace of the device of rows[0]; returns how many of the rows it has. */
static size_t add_device(kineto_reader *reader, frag_builder *builder, const memory_event *rows,
                         size_t count)
{
    uint32_t device = rows[0].device;
    live_memory live = {
        .blocks = {.builder = builder, .findings = reader->findings, .device = device},
        .pairs = {.builder = builder, .findings = reader->findings, .device = device},
        .is_by_size = reader->addressless_count > 0,
    };
    const memory_event *before = NULL;
    uint64_t reserved_peak = 0;
    size_t i = 0;
    frag_builder_device(builder, device);
    for (; i < count && rows[i].device == device; i++) {
        check_total(reader, &rows[i], before, device);
        if (rows[i].op != MEMORY_FAILED)
            before = &rows[i];
        reserved_peak =
            rows[i].reserved_bytes > reserved_peak ? rows[i].reserved_bytes : reserved_peak;
        add_event(reader, &live, &rows[i]);
    }
    frag_live_destroy(&live.blocks);
    frag_size_pairs_destroy(&live.pairs);
    if (reserved_peak > 0) {
        char key[64];
        char text[32];
        snprintf(key, sizeof key, "kineto.reserved_peak_bytes.%" PRIu32, device);
        snprintf(text, sizeof text, "%" PRIu64, reserved_peak);
        frag_builder_metadata(builder, key, text);
    }
    return i;
}

static bool read_kineto(frag_input *input, const frag_load_options *options,
                        frag_recording *recording, frag_findings *findings, frag_error *error)
{
    (void)options;
    kineto_reader reader = {
        .events = {.input = input, .error = error}, .error = error, .findings = findings};
    size_t count = 0;
    *recording = (frag_recording){0};
    bool ok = read_events(&reader) && choose_events(&reader, &count);
    if (ok) {
        frag_builder *builder = frag_builder_create(recording);
        frag_builder_metadata(builder, "source", "kineto");
        frag_builder_metadata(builder, "kineto.memory_of",
                              reader.rows[0].type == TYPE_CPU ? "cpu" : "device");
        if (reader.addressless_count > 0)
            frag_builder_metadata(builder, FRAG_GUESSED_KEY, FRAG_GUESSED_PAIRS);
        for (size_t i = 0; i < count;)
            i += add_device(&reader, builder, reader.rows + i, count - i);
        ok = frag_builder_finish(builder, frag_input_name(input), error);
    }
    frag_chrome_destroy(&reader.events);
    frag_free(reader.rows);
    return ok;
}

const frag_format frag_format_kineto = {
    .what = "trace of PyTorch's profiler, Chrome's JSON",
    .page = "exchange.md#traces-of-pytorchs-profiler",
    .is_like = is_like_kineto,
    .read = read_kineto,
};
