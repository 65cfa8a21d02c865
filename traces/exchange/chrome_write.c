#include "traces/exchange/chrome_write.h"

#include <inttypes.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/memory.h"

/* Threads of the process that stands for a device. */
enum { THREAD_MEMORY = 1, THREAD_CALLS = 2 };

/* Viewers keep process and thread 0 for the idle machine. */
static uint32_t process_of(const frag_chrome_writer *writer)
{
    return writer->trace->device + 1;
}

static frag_json *begin_event(const frag_chrome_writer *writer, const char *phase, const char *name,
                              uint64_t event)
{
    frag_json *json = frag_json_create();
    frag_json_text(json, "ph", phase);
    frag_json_text(json, "name", name);
    frag_json_number(json, "pid", process_of(writer));
    frag_json_number(json, "tid", THREAD_MEMORY);
    frag_json_number(json, "ts", event);
    return json;
}

static void end_event(frag_chrome_writer *writer, frag_json *json)
{
    fputs(writer->has_events ? "," : "{\"traceEvents\":[\n", writer->stream);
    frag_json_write(json, writer->stream, false);
    writer->has_events = true;
}

static void write_hexadecimal(frag_json *json, const char *path, uint64_t number)
{
    char text[32];
    snprintf(text, sizeof text, "0x%" PRIx64, number);
    frag_json_text(json, path, text);
}

static void write_thread_name(frag_chrome_writer *writer, uint64_t thread, const char *name)
{
    frag_json *json = begin_event(writer, "M", "thread_name", 0);
    frag_json_number(json, "tid", thread);
    frag_json_text(json, "args.name", name);
    end_event(writer, json);
}

/* Each as a slice of an equal part of the event's microsecond. */
static void write_calls(frag_chrome_writer *writer)
{
    static const char *const results[] = {
        [FRAG_DEVICE_OK] = "ok",
        [FRAG_DEVICE_OUT_OF_MEMORY] = "out of memory",
        [FRAG_DEVICE_FAILED] = "failed",
    };
    double share = 1.0 / (double)(writer->call_count > 0 ? writer->call_count : 1);
    for (size_t i = 0; i < writer->call_count; i++) {
        const frag_call_note *call = &writer->calls[i];
        frag_json *json = begin_event(writer, "X", frag_device_call_name(call->call), call->event);
        frag_json_number(json, "tid", THREAD_CALLS);
        frag_json_ratio(json, "ts", (double)call->event + (double)i * share);
        frag_json_ratio(json, "dur", share);
        frag_json_text(json, "cat", "device call");
        if (call->address > 0)
            write_hexadecimal(json, "args.address", call->address);
        if (call->bytes > 0)
            frag_json_number(json, "args.bytes", call->bytes);
        frag_json_text(json, "args.result", results[call->result]);
        if (call->modelled_ns > 0)
            frag_json_ratio(json, "args.modelled_ns", call->modelled_ns);
        end_event(writer, json);
    }
    writer->call_count = 0;
}

void frag_chrome_writer_begin(frag_chrome_writer *writer, const frag_trace *trace, const char *name)
{
    if (writer->trace != NULL)
        write_calls(writer);
    writer->trace = trace;
    writer->has_level = false;
    frag_json *json = begin_event(writer, "M", "process_name", 0);
    char text[256];
    snprintf(text, sizeof text, "%s, device %" PRIu32, name, trace->device);
    frag_json_text(json, "args.name", text);
    end_event(writer, json);
    write_thread_name(writer, THREAD_MEMORY, "memory");
    write_thread_name(writer, THREAD_CALLS, "device calls");
}

/* A slice of its own track, from "b" to the "e" of the same process, category and id. */
static void write_slice(frag_chrome_writer *writer, bool is_begin, const char *category,
                        uint64_t id, const frag_note *note)
{
    frag_json *json =
        begin_event(writer, is_begin ? "b" : "e", FRAG_BYTES(note->bytes), note->event);
    frag_json_text(json, "cat", category);
    write_hexadecimal(json, "id2.local", id);
    if (is_begin) {
        write_hexadecimal(json, "args.address", note->address);
        frag_json_number(json, "args.bytes", note->bytes);
        if (note->block_bytes > 0)
            frag_json_number(json, "args.block_bytes", note->block_bytes);
        write_hexadecimal(json, "args.stream",
                          frag_trace_stream_handle(writer->trace, note->stream));
    }
    end_event(writer, json);
}

static void write_point(frag_chrome_writer *writer, const char *name, const frag_note *note)
{
    bool is_oom = note->kind == FRAG_NOTE_OOM;
    frag_json *json = begin_event(writer, "i", name, note->event);
    frag_json_text(json, "s", "p");
    frag_json_number(json, "args.bytes", note->bytes);
    if (is_oom)
        frag_json_number(json, "args.device_free_bytes", note->address);
    else
        write_hexadecimal(json, "args.address", note->address);
    end_event(writer, json);
}

void frag_chrome_writer_note(void *context, const frag_note *note)
{
    frag_chrome_writer *writer = context;
    switch (note->kind) {
    case FRAG_NOTE_ALLOC:
    case FRAG_NOTE_HELD_BLOCK:
        write_slice(writer, true, "request", note->alloc_event, note);
        break;
    case FRAG_NOTE_FREE_REQUESTED:
        write_slice(writer, false, "request", note->alloc_event, note);
        break;
    case FRAG_NOTE_FREE_COMPLETED:
        break; /* seen in the distance between active and allocated bytes */
    case FRAG_NOTE_SEGMENT_ALLOC:
    case FRAG_NOTE_HELD_SEGMENT:
        write_slice(writer, true, "segment", note->address, note);
        break;
    case FRAG_NOTE_SEGMENT_FREE:
        write_slice(writer, false, "segment", note->address, note);
        break;
    case FRAG_NOTE_SEGMENT_MAP:
    case FRAG_NOTE_HELD_RANGE:
        write_point(writer, "map", note);
        break;
    case FRAG_NOTE_SEGMENT_UNMAP:
        write_point(writer, "unmap", note);
        break;
    case FRAG_NOTE_OOM:
        write_point(writer, "out of memory", note);
        break;
    }
}

void frag_chrome_writer_call(void *context, const frag_call_note *call)
{
    frag_chrome_writer *writer = context;
    if (writer->call_count > 0 && writer->calls[0].event != call->event)
        write_calls(writer);
    *FRAG_APPEND(writer->calls, writer->call_count, writer->call_capacity) = *call;
}

static bool is_same_level(const frag_level *one, const frag_level *other)
{
    return one->requested_bytes == other->requested_bytes &&
           one->allocated_bytes == other->allocated_bytes &&
           one->active_bytes == other->active_bytes && one->reserved_bytes == other->reserved_bytes;
}

void frag_chrome_writer_observe(void *context, const frag_replay *replay, uint64_t event,
                                const frag_level *level)
{
    (void)replay;
    frag_chrome_writer *writer = context;
    const struct {
        const char *name;
        uint64_t bytes;
    } counters[] = {
        {"requested", level->requested_bytes},
        {"allocated", level->allocated_bytes},
        {"active", level->active_bytes},
        {"reserved", level->reserved_bytes},
    };
    bool is_new = !writer->has_level || !is_same_level(&writer->level, level);
    for (size_t i = 0; is_new && i < sizeof counters / sizeof counters[0]; i++) {
        frag_json *json = begin_event(writer, "C", counters[i].name, event);
        frag_json_number(json, "args.bytes", counters[i].bytes);
        end_event(writer, json);
    }
    writer->level = *level;
    writer->has_level = true;
    write_calls(writer); /* last, as they lie within the event's microsecond */
}

void frag_chrome_writer_finish(frag_chrome_writer *writer, const char *tool)
{
    if (writer->trace != NULL)
        write_calls(writer);
    frag_json *json = frag_json_create();
    frag_json_text(json, "tool", tool);
    frag_json_text(json, "time", "1 us is 1 event of the trace");
    fputs(writer->has_events ? "],\n\"displayTimeUnit\":\"ns\",\"otherData\":"
                             : "{\"traceEvents\":[],\n\"displayTimeUnit\":\"ns\",\"otherData\":",
          writer->stream);
    frag_json_write(json, writer->stream, false);
    fputs("}\n", writer->stream);
}

void frag_chrome_writer_destroy(frag_chrome_writer *writer)
{
    frag_free(writer->calls);
    *writer = (frag_chrome_writer){0};
}
