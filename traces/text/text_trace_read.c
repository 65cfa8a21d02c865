/* The reader of the text form of traces; mistakes are reported with line and column. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/formats/lines.h"
#include "base/memory.h"
#include "traces/builder.h"
#include "traces/format_look.h"
#include "traces/formats.h"
#include "traces/text/text_trace.h"
#include "traces/text/text_trace_notes.h"

#define LINE_BYTES_MAX ((size_t)8 << 20)
#define SLOT_SLACK 65536 /* as in frag_trace_check */

typedef enum slot_state { SLOT_FREE, SLOT_LIVE, SLOT_WAITING } slot_state;

typedef struct slot_record {
    uint64_t stream; /* handle */
    slot_state state;
} slot_record;

/* A line and how far it has been understood. */
typedef struct line_cursor {
    const char *bytes;
    size_t length;
    size_t at;
    uint64_t number;
} line_cursor;

/* The attributes of a line so far, each of which comes once. */
enum { SEEN_STREAM = 1, SEEN_ADDRESS = 2, SEEN_TIME = 4, SEEN_BLOCK = 8, SEEN_BYTES = 16 };
enum { SEEN_POOL = 32, SEEN_NOTE = 64, SEEN_SITE = 128 };

typedef struct text_reader {
    frag_input *input;
    frag_builder *builder;
    frag_recording *recording;
    frag_error *error;
    uint64_t version;
    line_cursor line;
    size_t line_taken; /* bytes of the input */
    frag_text string;  /* the string read last */
    bool has_device;
    uint32_t device;
    bool has_streams; /* defined by a line: stream=N is an index */
    bool has_pools;
    uint64_t *streams;
    size_t stream_capacity;
    uint32_t stream_count;
    uint32_t pool_count;
    uint64_t event_count;
    bool is_past_prologue;
    slot_record *slots;
    size_t slot_capacity;
    size_t slot_count;
    frag_text_notes notes;
} text_reader;

/* ---- words */
static bool fail_here(text_reader *reader, size_t at, const char *problem)
{
    const line_cursor *line = &reader->line;
    size_t end = at;
    while (end < line->length && line->bytes[end] != ' ' && line->bytes[end] != '\t' &&
           end - at < 40)
        end++;
    char found[48];
    for (size_t i = at; i < end; i++)
        found[i - at] = (unsigned char)line->bytes[i] >= 0x20 ? line->bytes[i] : '?';
    found[end - at] = '\0';
    if (end == at)
        return frag_fail_line(reader->error, line->number, at + 1, "the line ends; %s", problem);
    return frag_fail_line(reader->error, line->number, at + 1, "found '%s'; %s", found, problem);
}

static void skip_blanks(line_cursor *line)
{
    while (line->at < line->length &&
           (line->bytes[line->at] == ' ' || line->bytes[line->at] == '\t'))
        line->at++;
}

static bool is_at_end(line_cursor *line)
{
    skip_blanks(line);
    return line->at == line->length;
}

/* The next word, up to a blank or behind a '='. */
static size_t take_word(line_cursor *line, const char **word)
{
    skip_blanks(line);
    *word = line->bytes + line->at;
    size_t start = line->at;
    while (line->at < line->length && line->bytes[line->at] != ' ' && line->bytes[line->at] != '\t')
        if (line->bytes[line->at++] == '=')
            break;
    return line->at - start;
}

static bool is_word(const char *word, size_t length, const char *wanted)
{
    return strlen(wanted) == length && memcmp(word, wanted, length) == 0;
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return 16;
}

/* Decimal, or hexadecimal after 0x; stops in front of a ':' so that pools can be read with it. */
static bool take_number(text_reader *reader, uint64_t max, const char *expected, uint64_t *number)
{
    line_cursor *line = &reader->line;
    skip_blanks(line);
    size_t start = line->at;
    uint64_t base = 10;
    if (line->length - start > 2 && line->bytes[start] == '0' && line->bytes[start + 1] == 'x') {
        base = 16;
        line->at += 2;
    }
    uint64_t value = 0;
    size_t digits = line->at;
    for (; line->at < line->length; line->at++) {
        uint64_t digit = (uint64_t)digit_value(line->bytes[line->at]);
        if (digit >= base)
            break;
        if (value > (UINT64_MAX - digit) / base)
            return fail_here(reader, start, expected);
        value = value * base + digit;
    }
    bool is_whole = line->at == line->length || line->bytes[line->at] == ' ' ||
                    line->bytes[line->at] == '\t' || line->bytes[line->at] == ':';
    if (line->at == digits || !is_whole || value > max)
        return fail_here(reader, start, expected);
    *number = value;
    return true;
}

static bool take_escape(text_reader *reader)
{
    line_cursor *line = &reader->line;
    size_t start = line->at++;
    char c = line->at < line->length ? line->bytes[line->at] : ' ';
    if (c == 'x' && line->length - line->at > 2) {
        int value =
            digit_value(line->bytes[line->at + 1]) * 16 + digit_value(line->bytes[line->at + 2]);
        if (digit_value(line->bytes[line->at + 1]) < 16 &&
            digit_value(line->bytes[line->at + 2]) < 16) {
            char byte = (char)(unsigned char)value;
            frag_text_add_bytes(&reader->string, &byte, 1);
            line->at += 3;
            return true;
        }
    }
    const char *plain = c == 'n'    ? "\n"
                        : c == 't'  ? "\t"
                        : c == 'r'  ? "\r"
                        : c == '"'  ? "\""
                        : c == '\\' ? "\\"
                                    : NULL;
    if (plain == NULL)
        return fail_here(reader, start,
                         "expected one of \\n \\t \\r \\\" \\\\ or \\x and two hexadecimal digits");
    frag_text_add_bytes(&reader->string, plain, 1);
    line->at++;
    return true;
}

static bool take_string(text_reader *reader, uint32_t *id)
{
    line_cursor *line = &reader->line;
    skip_blanks(line);
    size_t start = line->at;
    if (start == line->length || line->bytes[start] != '"')
        return fail_here(reader, start, "expected a string in double quotes");
    frag_text_clear(&reader->string);
    for (line->at++; line->at < line->length && line->bytes[line->at] != '"';) {
        if (line->bytes[line->at] == '\\') {
            if (!take_escape(reader))
                return false;
            continue;
        }
        size_t run = line->at;
        while (line->at < line->length && line->bytes[line->at] != '"' &&
               line->bytes[line->at] != '\\')
            line->at++;
        frag_text_add_bytes(&reader->string, line->bytes + run, line->at - run);
    }
    if (line->at == line->length)
        return fail_here(reader, start, "expected a closing double quote on the same line");
    line->at++;
    if (line->at < line->length && line->bytes[line->at] != ' ' && line->bytes[line->at] != '\t')
        return fail_here(reader, line->at, "expected a blank after the string");
    *id =
        frag_builder_string(reader->builder, reader->string.length == 0 ? "" : reader->string.bytes,
                            reader->string.length);
    return true;
}

static bool expect_end(text_reader *reader)
{
    return is_at_end(&reader->line) ||
           fail_here(reader, reader->line.at, "expected nothing more on this line");
}

/* ---- definitions */
static bool read_meta(text_reader *reader)
{
    uint32_t key = 0;
    uint32_t value = 0;
    if (!take_string(reader, &key) || !take_string(reader, &value))
        return false;
    frag_builder_metadata_strings(reader->builder, key, value);
    return true;
}

static bool read_frame(text_reader *reader)
{
    frag_frame frame = {0};
    uint64_t number = 0;
    uint32_t expected = reader->recording->frame_count;
    if (!take_string(reader, &frame.name) || !take_string(reader, &frame.file) ||
        !take_number(reader, UINT32_MAX, "expected a line number", &number))
        return false;
    frame.line = (uint32_t)number;
    return frag_builder_frame(reader->builder, frame) == expected ||
           fail_here(reader, 0, "expected each frame once, as they are numbered by their order");
}

static bool read_site(text_reader *reader)
{
    uint32_t *frames = NULL;
    size_t capacity = 0;
    uint32_t count = 0;
    uint32_t expected = reader->recording->site_count;
    bool ok = true;
    while (ok && !is_at_end(&reader->line)) {
        uint64_t frame = 0;
        size_t at = reader->line.at;
        ok = take_number(reader, UINT32_MAX, "expected the number of a frame", &frame) &&
             (frame < reader->recording->frame_count ||
              fail_here(reader, at,
                        "expected the number of a frame defined above (the first is 0)"));
        *FRAG_APPEND(frames, count, capacity) = (uint32_t)frame;
    }
    if (ok && frag_builder_site(reader->builder, frames, count) != expected)
        ok = fail_here(reader, 0,
                       "expected each call site once, as they are numbered by their order");
    frag_free(frames);
    return ok;
}

static void begin_device(text_reader *reader, uint32_t device)
{
    frag_builder_device(reader->builder, device);
    reader->device = device;
    reader->has_device = true;
    reader->has_streams = false;
    reader->has_pools = false;
    reader->stream_count = 0;
    reader->pool_count = 1;
    reader->event_count = 0;
    reader->is_past_prologue = false;
    reader->slot_count = 0;
    frag_text_notes_begin(&reader->notes, device);
}

static bool read_device(text_reader *reader)
{
    uint64_t device = 0;
    skip_blanks(&reader->line);
    size_t at = reader->line.at;
    if (!take_number(reader, UINT32_MAX, "expected the number of a device", &device))
        return false;
    if (reader->has_device && device <= reader->device)
        return fail_here(reader, at,
                         "expected a higher number than that of the device before (one without a "
                         "'device' line is 0)");
    begin_device(reader, (uint32_t)device);
    return true;
}

static bool may_define(text_reader *reader, bool is_defined)
{
    if (is_defined)
        return fail_here(reader, 0, "expected this definition once for each device");
    if (reader->event_count > 0)
        return fail_here(reader, 0, "expected this definition before the events of the device");
    return true;
}

static bool read_streams(text_reader *reader)
{
    if (!may_define(reader, reader->has_streams))
        return false;
    while (!is_at_end(&reader->line)) {
        uint64_t handle = 0;
        size_t at = reader->line.at;
        if (!take_number(reader, UINT64_MAX, "expected the handle of a stream", &handle))
            return false;
        if (reader->stream_count == FRAG_STREAM_ALL)
            return fail_here(reader, at, "expected at most 65535 streams");
        *FRAG_APPEND(reader->streams, reader->stream_count, reader->stream_capacity) = handle;
    }
    frag_builder_streams(reader->builder, reader->streams, reader->stream_count);
    reader->has_streams = true;
    return true;
}

static bool take_pool_id(text_reader *reader, frag_pool_id *id, bool *is_pair)
{
    if (!take_number(reader, UINT64_MAX, "expected a pool", &id->low))
        return false;
    line_cursor *line = &reader->line;
    *is_pair = line->at < line->length && line->bytes[line->at] == ':';
    if (!*is_pair)
        return true;
    line->at++;
    id->high = id->low;
    size_t at = line->at;
    if (!take_number(reader, UINT64_MAX, "expected the second half of a pool", &id->low))
        return false;
    return line->at == line->length || line->bytes[line->at] != ':' ||
           fail_here(reader, at, "expected two halves");
}

static bool read_pools(text_reader *reader)
{
    if (!may_define(reader, reader->has_pools))
        return false;
    reader->pool_count = 0;
    while (!is_at_end(&reader->line)) {
        frag_pool_id id = {0};
        bool is_pair = false;
        size_t at = reader->line.at;
        if (!take_pool_id(reader, &id, &is_pair))
            return false;
        if (!is_pair)
            return fail_here(reader, at, "expected a pool as two numbers, like 0:1");
        if (frag_builder_pool(reader->builder, id) != reader->pool_count)
            return fail_here(reader, at, "expected each pool once, the default pool 0:0 first");
        reader->pool_count++;
    }
    if (reader->pool_count == 0)
        return fail_here(reader, reader->line.at, "expected pools, the default pool 0:0 first");
    reader->has_pools = true;
    return true;
}

/* ---- events */
static bool take_stream(text_reader *reader, frag_build_event *event)
{
    line_cursor *line = &reader->line;
    size_t at = line->at;
    if (line->length - at >= 3 && memcmp(line->bytes + at, "all", 3) == 0) {
        line->at += 3;
        event->is_stream_all = true;
        return (event->op == FRAG_OP_SYNC || event->op == FRAG_OP_POOL_BEGIN) ||
               fail_here(reader, at, "expected one stream");
    }
    if (!take_number(reader, UINT64_MAX, "expected a stream", &event->stream))
        return false;
    event->is_stream_all = false;
    if (!reader->has_streams)
        return true;
    if (event->stream >= reader->stream_count)
        return fail_here(reader, at,
                         "expected the place of a stream in the 'streams' line (the first is 0)");
    event->stream = reader->streams[event->stream];
    return true;
}

static bool take_pool(text_reader *reader, uint32_t *pool)
{
    frag_pool_id id = {0};
    bool is_pair = false;
    skip_blanks(&reader->line);
    size_t at = reader->line.at;
    if (!take_pool_id(reader, &id, &is_pair))
        return false;
    if (reader->has_pools && !is_pair) {
        if (id.low >= reader->pool_count)
            return fail_here(reader, at,
                             "expected the place of a pool in the 'pools' line (the first is 0)");
        *pool = (uint32_t)id.low;
        return true;
    }
    *pool = frag_builder_pool(reader->builder, id);
    if (reader->has_pools && *pool >= reader->pool_count)
        return fail_here(reader, at, "expected a pool that is in the 'pools' line");
    return true;
}

static bool is_first(text_reader *reader, uint32_t *seen, uint32_t what, size_t at)
{
    bool is_again = (*seen & what) != 0;
    *seen |= what;
    return !is_again || fail_here(reader, at, "expected each attribute once");
}

static bool take_site(text_reader *reader, uint32_t *site)
{
    uint64_t number = 0;
    size_t at = reader->line.at;
    if (!take_number(reader, UINT32_MAX, "expected the number of a call site", &number))
        return false;
    if (number >= reader->recording->site_count)
        return fail_here(reader, at,
                         "expected the number of a call site defined above (the first is 1)");
    *site = (uint32_t)number;
    return true;
}

static bool take_flag(text_reader *reader, const char *word, size_t length, size_t at,
                      frag_build_event *event)
{
    for (uint32_t flag = 1; flag < 256; flag *= 2) {
        if (!is_word(word, length, frag_text_flag_name((uint8_t)flag)))
            continue;
        if ((event->flags & flag) != 0)
            return fail_here(reader, at, "expected each word once");
        event->flags |= (uint8_t)flag;
        return (frag_op_flags(event->op) & flag) != 0 ||
               fail_here(reader, at, "expected no such word with this op");
    }
    return fail_here(reader, at,
                     "expected stream=, addr=, time=, site=, pool=, note=, block=, bytes= or a "
                     "word such as initial or deferred");
}

static bool take_attribute(text_reader *reader, const char *key, size_t length, size_t at,
                           frag_build_event *event, uint32_t *seen)
{
    if (is_word(key, length, "stream="))
        return (frag_op_has_stream(event->op) ||
                fail_here(reader, at, "expected no stream with this op")) &&
               is_first(reader, seen, SEEN_STREAM, at) && take_stream(reader, event);
    if (is_word(key, length, "addr=") || is_word(key, length, "free="))
        return is_first(reader, seen, SEEN_ADDRESS, at) &&
               take_number(reader, UINT64_MAX, "expected an address or bytes", &event->address);
    if (is_word(key, length, "time="))
        return is_first(reader, seen, SEEN_TIME, at) &&
               take_number(reader, UINT64_MAX, "expected nanoseconds", &event->time_ns);
    if (is_word(key, length, "block="))
        return is_first(reader, seen, SEEN_BLOCK, at) &&
               take_number(reader, UINT64_MAX, "expected bytes", &event->block_bytes);
    if (is_word(key, length, "bytes=")) {
        frag_text_shape shape = frag_text_shape_of(event->op);
        if (shape == FRAG_TEXT_BYTES || shape == FRAG_TEXT_SLOT_BYTES || shape == FRAG_TEXT_LIMIT)
            return fail_here(reader, at, "expected the bytes right after the op, and once");
        return is_first(reader, seen, SEEN_BYTES, at) &&
               take_number(reader, UINT64_MAX, "expected bytes", &event->bytes);
    }
    if (is_word(key, length, "pool="))
        return is_first(reader, seen, SEEN_POOL, at) && take_pool(reader, &event->pool);
    if (is_word(key, length, "note="))
        return is_first(reader, seen, SEEN_NOTE, at) && take_string(reader, &event->note);
    if (is_word(key, length, "site="))
        return is_first(reader, seen, SEEN_SITE, at) && take_site(reader, &event->site);
    return take_flag(reader, key, length, at, event);
}

static bool take_slot(text_reader *reader, frag_build_event *event)
{
    line_cursor *line = &reader->line;
    skip_blanks(line);
    size_t at = line->at;
    uint64_t slot = 0;
    if (event->op == FRAG_OP_ALLOC && line->at < line->length && line->bytes[line->at] == '-') {
        line->at++;
        event->slot = FRAG_SLOT_NONE;
        bool is_alone = line->at == line->length || line->bytes[line->at] == ' ' ||
                        line->bytes[line->at] == '\t';
        return is_alone ||
               fail_here(reader, at, "expected a slot, or '-' alone for an alloc that failed");
    }
    if (!take_number(reader, reader->event_count + SLOT_SLACK,
                     "expected a slot: a small number, dense from 0", &slot))
        return false;
    event->slot = (uint32_t)slot;
    slot_state state = slot < reader->slot_count ? reader->slots[slot].state : SLOT_FREE;
    if (event->op == FRAG_OP_ALLOC && state != SLOT_FREE)
        return fail_here(reader, at, "expected a slot that is not in use");
    if ((event->op == FRAG_OP_FREE || event->op == FRAG_OP_USE) && state != SLOT_LIVE)
        return fail_here(reader, at, "expected a slot that is live");
    if (event->op == FRAG_OP_COMPLETE && state != SLOT_WAITING)
        return fail_here(reader, at, "expected a slot that a deferred free has released before");
    return true;
}

/* A share of the capacity as a decimal number; in version 1 as billionths. */
static bool take_ratio(text_reader *reader, uint64_t *code)
{
    if (reader->version == 1)
        return take_number(reader, 1000000000,
                           "expected billionths of the capacity, 0 to 1000000000", code);
    enum { RATIO_CHARS_MAX = 64 };
    char text[RATIO_CHARS_MAX + 1];
    const char *word = NULL;
    skip_blanks(&reader->line);
    size_t at = reader->line.at;
    size_t length = take_word(&reader->line, &word);
    size_t kept = length <= RATIO_CHARS_MAX ? length : 0;
    memcpy(text, word, kept);
    text[kept] = '\0';
    double ratio = 0;
    frag_error refusal = {0};
    if (!frag_ratio_parse(text, 0, 1, &ratio, &refusal))
        return fail_here(reader, at, "expected a share of the capacity, 0 to 1");
    *code = frag_ratio_code(ratio);
    return true;
}

/* The number of a limit, which was passed over: a word behind it says what it is. */
static bool take_limit(text_reader *reader, size_t at, frag_build_event *event)
{
    size_t end = reader->line.at;
    reader->line.at = at;
    bool ok = (event->flags & FRAG_EVENT_RATIO) != 0
                  ? take_ratio(reader, &event->bytes)
                  : take_number(reader, UINT64_MAX,
                                "expected bytes, or a share of the capacity and 'ratio' behind it",
                                &event->bytes);
    reader->line.at = end;
    return ok;
}

static bool take_shape(text_reader *reader, frag_build_event *event)
{
    frag_text_shape shape = frag_text_shape_of(event->op);
    switch (shape) {
    case FRAG_TEXT_SLOT:
        return take_slot(reader, event);
    case FRAG_TEXT_SLOT_BYTES: {
        if (!take_slot(reader, event))
            return false;
        skip_blanks(&reader->line);
        size_t at = reader->line.at;
        return take_number(reader, FRAG_REQUEST_BYTES_MAX,
                           "expected bytes, " FRAG_REQUEST_BYTES_RANGE, &event->bytes) &&
               (event->bytes > 0 ||
                fail_here(reader, at, "expected bytes, " FRAG_REQUEST_BYTES_RANGE));
    }
    case FRAG_TEXT_BYTES:
        return take_number(reader, UINT64_MAX, "expected bytes", &event->bytes);
    case FRAG_TEXT_LIMIT: {
        const char *number = NULL;
        return take_word(&reader->line, &number) > 0 ||
               fail_here(reader, reader->line.at, "expected bytes, or a share of the capacity");
    }
    case FRAG_TEXT_POOL_OR_NOTHING: {
        skip_blanks(&reader->line);
        const line_cursor *line = &reader->line;
        bool has_pool =
            line->at < line->length && line->bytes[line->at] >= '0' && line->bytes[line->at] <= '9';
        event->slot = FRAG_SLOT_NONE;
        return !has_pool || take_pool(reader, &event->slot);
    }
    case FRAG_TEXT_POOL:
        return take_pool(reader, &event->slot);
    case FRAG_TEXT_STRING:
        return take_string(reader, &event->slot);
    default:
        return true;
    }
}

/* Follows the life of the slot, so that the mistake is reported on its own line. */
static void keep_slot(text_reader *reader, frag_build_event *event, bool has_stream)
{
    if (event->op == FRAG_OP_ALLOC && event->slot != FRAG_SLOT_NONE) {
        if (event->slot >= reader->slot_count) {
            reader->slots = frag_grow(reader->slots, &reader->slot_capacity,
                                      (size_t)event->slot + 1, sizeof *reader->slots);
            memset(reader->slots + reader->slot_count, 0,
                   (event->slot + 1 - reader->slot_count) * sizeof *reader->slots);
            reader->slot_count = (size_t)event->slot + 1;
        }
        reader->slots[event->slot] = (slot_record){event->stream, SLOT_LIVE};
    } else if (event->op == FRAG_OP_FREE || event->op == FRAG_OP_COMPLETE) {
        slot_record *slot = &reader->slots[event->slot];
        if (!has_stream)
            event->stream = slot->stream;
        slot->state = (event->flags & FRAG_EVENT_DEFERRED) != 0 ? SLOT_WAITING : SLOT_FREE;
    }
}

static bool read_event(text_reader *reader, frag_op op)
{
    if (!reader->has_device)
        begin_device(reader, 0);
    frag_build_event event = {.op = op};
    event.is_stream_all = op == FRAG_OP_SYNC || op == FRAG_OP_POOL_BEGIN;
    if (reader->has_streams && reader->stream_count > 0)
        event.stream = reader->streams[0];
    uint32_t seen = 0;
    skip_blanks(&reader->line);
    size_t shape_at = reader->line.at;
    if (!take_shape(reader, &event))
        return false;
    while (!is_at_end(&reader->line)) {
        const char *key = NULL;
        size_t at = reader->line.at;
        size_t length = take_word(&reader->line, &key);
        if (!take_attribute(reader, key, length, at, &event, &seen))
            return false;
    }
    if (op == FRAG_OP_LIMIT && !take_limit(reader, shape_at, &event))
        return false;
    bool has_failed = (event.flags & FRAG_EVENT_FAILED) != 0;
    if (op == FRAG_OP_ALLOC && has_failed != (event.slot == FRAG_SLOT_NONE))
        return fail_here(reader, 0, "expected slot '-' if and only if the alloc failed");
    bool is_initial = (event.flags & FRAG_EVENT_INITIAL) != 0;
    if (is_initial && reader->is_past_prologue)
        return fail_here(reader, 0, "expected all initial events before any other");
    reader->is_past_prologue = !is_initial;
    keep_slot(reader, &event, (seen & SEEN_STREAM) != 0);
    frag_text_notes_take(&reader->notes, &event, reader->line.number);
    frag_builder_add(reader->builder, &event);
    reader->event_count++;
    return true;
}

/* ---- lines */
static bool read_definition(text_reader *reader, const char *word, size_t length, bool *is_known)
{
    uint32_t string = 0;
    *is_known = true;
    if (is_word(word, length, "string"))
        return take_string(reader, &string);
    if (is_word(word, length, "meta"))
        return read_meta(reader);
    if (is_word(word, length, "frame"))
        return read_frame(reader);
    if (is_word(word, length, "site"))
        return read_site(reader);
    if (is_word(word, length, "device"))
        return read_device(reader);
    bool is_streams = is_word(word, length, "streams");
    if (is_streams || is_word(word, length, "pools")) {
        if (!reader->has_device)
            begin_device(reader, 0);
        return is_streams ? read_streams(reader) : read_pools(reader);
    }
    *is_known = false;
    return true;
}

static bool read_line(text_reader *reader)
{
    line_cursor *line = &reader->line;
    if (is_at_end(line) || line->bytes[line->at] == '#')
        return true;
    size_t at = line->at;
    const char *word = NULL;
    size_t length = take_word(line, &word);
    bool is_known = false;
    if (!read_definition(reader, word, length, &is_known))
        return false;
    if (is_known)
        return expect_end(reader);
    frag_op op = FRAG_OP_ALLOC;
    if (!frag_op_find(word, length, &op))
        return fail_here(
            reader, at,
            "expected an op such as alloc or free, or a definition such as device or streams");
    return read_event(reader, op);
}

/* Takes the line before, and shows the next one; *has_line false: there is none. */
static bool next_line(text_reader *reader, bool *has_line)
{
    static const frag_line_limit limit = {LINE_BYTES_MAX, "a trace with one event a line"};
    frag_line found = {.number = reader->line.number};
    frag_input_skip(reader->input, reader->line_taken);
    if (!frag_line_find(reader->input, &limit, &found, reader->error))
        return false;
    *has_line = found.taken > 0;
    reader->line = (line_cursor){found.bytes, found.length, 0, found.number};
    reader->line_taken = found.taken;
    return true;
}

static bool read_first_line(text_reader *reader)
{
    bool has_line = false;
    if (!next_line(reader, &has_line))
        return false;
    static const char start[] = FRAG_TEXT_START;
    if (!has_line || reader->line.length < sizeof start - 1 ||
        memcmp(reader->line.bytes, start, sizeof start - 1) != 0)
        return frag_fail_line(reader->error, 1, 1,
                              "the first line is not that of a text trace; expected '%s'",
                              FRAG_TEXT_FIRST_LINE);
    reader->line.at = sizeof start - 1;
    static const char expected[] = "expected version 1 or 2, those that this fraglab reads";
    if (!take_number(reader, FRAG_TEXT_VERSION, expected, &reader->version))
        return false;
    if (reader->version == 0)
        return fail_here(reader, sizeof start - 1, expected);
    return expect_end(reader);
}

static bool read_lines(text_reader *reader)
{
    if (!read_first_line(reader))
        return false;
    for (;;) {
        bool has_line = false;
        if (!next_line(reader, &has_line))
            return false;
        if (!has_line)
            return true;
        if (!read_line(reader))
            return false;
    }
}

static bool read_text(frag_input *input, const frag_load_options *options,
                      frag_recording *recording, frag_findings *findings, frag_error *error)
{
    /* Everything is read, so that the digest is that of the file; the caller drops what it does not
     * want. */
    (void)options;
    *recording = (frag_recording){0};
    text_reader reader = {.input = input,
                          .recording = recording,
                          .error = error,
                          .pool_count = 1,
                          .notes.findings = findings};
    reader.builder = frag_builder_create(recording);
    bool ok = frag_builder_end(reader.builder, read_lines(&reader), input, error);
    frag_text_destroy(&reader.string);
    frag_free(reader.streams);
    frag_free(reader.slots);
    frag_text_notes_destroy(&reader.notes);
    return ok || frag_error_in(error, frag_input_name(input));
}

static bool is_like_text(const unsigned char *bytes, size_t count)
{
    return frag_look_starts(bytes, count, FRAG_TEXT_START);
}

const frag_format frag_format_text = {
    .what = "fraglab's text form",
    .page = "trace-format.md#the-text-form",
    .is_like = is_like_text,
    .read = read_text,
};
