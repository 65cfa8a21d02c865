/* The writer of the text form of traces. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "traces/text/text_trace.h"

static void write_string(FILE *stream, const frag_strings *strings, uint32_t id)
{
    const char *bytes = frag_strings_get(strings, id);
    size_t length = frag_strings_length(strings, id);
    putc('"', stream);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c == '"' || c == '\\')
            fprintf(stream, "\\%c", c);
        else if (c == '\n')
            fputs("\\n", stream);
        else if (c < 0x20 || c == 0x7f)
            fprintf(stream, "\\x%02x", c);
        else
            putc(c, stream);
    }
    putc('"', stream);
}

static void write_definitions(const frag_recording *recording, FILE *stream)
{
    const frag_strings *strings = &recording->strings;
    for (uint32_t id = 1; id < strings->count; id++) {
        fputs("string ", stream);
        write_string(stream, strings, id);
        putc('\n', stream);
    }
    for (uint32_t i = 0; i < recording->metadata_count; i++) {
        fputs("meta ", stream);
        write_string(stream, strings, recording->metadata[i][0]);
        putc(' ', stream);
        write_string(stream, strings, recording->metadata[i][1]);
        putc('\n', stream);
    }
    for (uint32_t i = 0; i < recording->frame_count; i++) {
        fputs("frame ", stream);
        write_string(stream, strings, recording->frames[i].name);
        putc(' ', stream);
        write_string(stream, strings, recording->frames[i].file);
        fprintf(stream, " %" PRIu32 "\n", recording->frames[i].line);
    }
    for (uint32_t i = 1; i < recording->site_count; i++) {
        frag_site site = recording->sites[i];
        fputs("site", stream);
        for (uint32_t j = 0; j < site.count; j++)
            fprintf(stream, " %" PRIu32, recording->site_frames[site.first + j]);
        putc('\n', stream);
    }
}

static void write_trace_definitions(const frag_trace *trace, FILE *stream)
{
    fprintf(stream, "device %" PRIu32 "\nstreams", trace->device);
    for (uint32_t i = 0; i < trace->stream_count; i++)
        fprintf(stream, " 0x%" PRIx64, trace->stream_handles[i]);
    fputs("\npools", stream);
    for (uint32_t i = 0; i < trace->pool_count; i++)
        fprintf(stream, " %" PRIu64 ":%" PRIu64, trace->pool_ids[i].high, trace->pool_ids[i].low);
    putc('\n', stream);
}

static void write_number(FILE *stream, const char *name, uint64_t value)
{
    if (value != 0)
        fprintf(stream, " %s=%" PRIu64, name, value);
}

static void write_slot(FILE *stream, uint32_t slot)
{
    if (slot == FRAG_SLOT_NONE)
        fputs(" -", stream);
    else
        fprintf(stream, " %" PRIu32, slot);
}

/* The shortest decimal number that reads back as the share. */
static void write_ratio(FILE *stream, uint64_t code)
{
    enum { DIGITS_MAX = 17 }; /* enough for any double */
    double ratio = frag_ratio_value(code);
    char text[DIGITS_MAX + 16];
    for (int digits = 1; digits <= DIGITS_MAX; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, ratio);
        if (strtod(text, NULL) == ratio)
            break;
    }
    fprintf(stream, " %s", text);
}

/* What stands right after the op; returns whether the bytes were part of it. */
static bool write_shape(const frag_recording *recording, const frag_event *event, FILE *stream)
{
    frag_text_shape shape = frag_text_shape_of((frag_op)event->op);
    switch (shape) {
    case FRAG_TEXT_SLOT:
    case FRAG_TEXT_POOL:
        write_slot(stream, event->slot);
        return false;
    case FRAG_TEXT_POOL_OR_NOTHING:
        if (event->slot != FRAG_SLOT_NONE)
            write_slot(stream, event->slot);
        return false;
    case FRAG_TEXT_SLOT_BYTES:
        write_slot(stream, event->slot);
        fprintf(stream, " %" PRIu64, event->bytes);
        return true;
    case FRAG_TEXT_BYTES:
        fprintf(stream, " %" PRIu64, event->bytes);
        return true;
    case FRAG_TEXT_LIMIT:
        if ((event->flags & FRAG_EVENT_RATIO) != 0)
            write_ratio(stream, event->bytes);
        else
            fprintf(stream, " %" PRIu64, event->bytes);
        return true;
    case FRAG_TEXT_STRING:
        putc(' ', stream);
        write_string(stream, &recording->strings, event->slot);
        return false;
    default:
        return false;
    }
}

/* The stream a line means when it names none: that of the alloc for what ends a block. */
static uint16_t usual_stream(const frag_event *event, const uint16_t *slot_streams)
{
    if (event->op == FRAG_OP_SYNC || event->op == FRAG_OP_POOL_BEGIN)
        return FRAG_STREAM_ALL;
    if (event->op == FRAG_OP_FREE || event->op == FRAG_OP_COMPLETE)
        return slot_streams[event->slot];
    return 0;
}

static void write_event(const frag_recording *recording, const frag_trace *trace, uint64_t index,
                        uint16_t *slot_streams, FILE *stream)
{
    const frag_event *event = &trace->events[index];
    fputs(frag_op_name((frag_op)event->op), stream);
    bool has_bytes = write_shape(recording, event, stream);
    for (uint32_t flag = 1; flag < 256; flag *= 2)
        if ((event->flags & flag) != 0)
            fprintf(stream, " %s", frag_text_flag_name((uint8_t)flag));
    if (frag_op_has_stream(event->op) && event->stream != usual_stream(event, slot_streams)) {
        if (event->stream == FRAG_STREAM_ALL)
            fputs(" stream=all", stream);
        else
            fprintf(stream, " stream=%u", event->stream);
    }
    if (event->op == FRAG_OP_ALLOC && event->slot != FRAG_SLOT_NONE)
        slot_streams[event->slot] = event->stream;
    if (!has_bytes)
        write_number(stream, "bytes", event->bytes);
    if (trace->addresses != NULL && trace->addresses[index] != 0) {
        if (event->op == FRAG_OP_OOM)
            write_number(stream, "free", trace->addresses[index]);
        else
            fprintf(stream, " addr=0x%" PRIx64, trace->addresses[index]);
    }
    if (trace->block_bytes != NULL)
        write_number(stream, "block", trace->block_bytes[index]);
    if (trace->pools != NULL)
        write_number(stream, "pool", trace->pools[index]);
    if (trace->times_ns != NULL)
        write_number(stream, "time", trace->times_ns[index]);
    if (trace->sites != NULL)
        write_number(stream, "site", trace->sites[index]);
    if (trace->notes != NULL && trace->notes[index] != 0) {
        fputs(" note=", stream);
        write_string(stream, &recording->strings, trace->notes[index]);
    }
    putc('\n', stream);
}

bool frag_text_write(const frag_recording *recording, FILE *stream, frag_error *error)
{
    fputs(FRAG_TEXT_FIRST_LINE "\n", stream);
    write_definitions(recording, stream);
    for (uint32_t i = 0; i < recording->trace_count; i++) {
        const frag_trace *trace = &recording->traces[i];
        uint16_t *slot_streams = frag_alloc(trace->slot_count, sizeof *slot_streams);
        write_trace_definitions(trace, stream);
        for (uint64_t index = 0; index < trace->event_count; index++)
            write_event(recording, trace, index, slot_streams, stream);
        frag_free(slot_streams);
    }
    if (ferror(stream) != 0)
        return frag_fail(error, FRAG_E_SYSTEM, "writing failed (%s); is the disk full?",
                         strerror(errno));
    return true;
}
