#include "traces/torch/chrome_events.h"

#include <string.h>

#define WINDOW_BYTES ((size_t)1 << 16)
#define DEPTH_MAX 64
#define END (-1)

enum { STATE_START, STATE_FIRST_EVENT, STATE_NEXT_EVENT, STATE_MEMBERS, STATE_OVER };

/* ---- bytes */

static void keep_visible(frag_chrome_events *events)
{
    if (events->is_keeping)
        frag_text_add_bytes(&events->text, (const char *)events->bytes + events->mark,
                            events->at - events->mark);
    events->mark = events->at;
}

static bool see_more(frag_chrome_events *events)
{
    keep_visible(events);
    frag_input_skip(events->input, events->at);
    events->at = 0;
    events->mark = 0;
    events->count = 0;
    events->has_failed = !frag_input_peek(events->input, WINDOW_BYTES, &events->bytes,
                                          &events->count, events->error);
    return !events->has_failed && events->count > 0;
}

/* The next byte, which stays; END: there is none, or has_failed. */
static int look(frag_chrome_events *events)
{
    if (events->at == events->count && (events->has_failed || !see_more(events)))
        return END;
    return events->bytes[events->at];
}

static void take(frag_chrome_events *events)
{
    events->line += events->bytes[events->at] == '\n' ? 1 : 0;
    events->at++;
}

static int look_past_space(frag_chrome_events *events)
{
    int byte = look(events);
    while (byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r') {
        take(events);
        byte = look(events);
    }
    return byte;
}

static bool fail(frag_chrome_events *events, const char *expected)
{
    if (!events->has_failed) {
        int byte = look(events);
        if (byte == END)
            frag_fail_line(events->error, events->line, 0, "the file ends early; expected %s",
                           expected);
        else if (byte > ' ' && byte < 0x7f)
            frag_fail_line(events->error, events->line, 0, "found '%c'; expected %s", byte,
                           expected);
        else
            frag_fail_line(events->error, events->line, 0, "found byte 0x%02x; expected %s", byte,
                           expected);
    }
    events->has_failed = true;
    return false;
}

/* ---- values */

static bool take_string(frag_chrome_events *events)
{
    take(events);
    for (int byte = look(events); byte != '"'; byte = look(events)) {
        if (byte == '\\')
            take(events);
        if (look(events) == END)
            return fail(events, "the end of a text");
        take(events);
    }
    take(events);
    return true;
}

static bool take_scalar(frag_chrome_events *events)
{
    int byte = look(events);
    if (byte == END || strchr(",:]} \t\r\n", byte) != NULL)
        return fail(events, "a value");
    while (byte != END && strchr(",:]} \t\r\n\"[{", byte) == NULL) {
        take(events);
        byte = look(events);
    }
    return true;
}

/* An array or object to its end. */
static bool take_nested(frag_chrome_events *events)
{
    uint64_t is_array = 0; /* bit per level, the innermost lowest */
    int depth = 0;
    do {
        int byte = look(events);
        if (events->text.length > FRAG_CHROME_EVENT_BYTES_MAX)
            return fail(events, "an event of at most 16 MiB");
        if (byte == END)
            return fail(events, "the end of an event");
        if (byte == '"') {
            (void)take_string(events); /* without an end it is that of the file, seen next */
            continue;
        }
        if (byte == '[' || byte == '{') {
            if (depth == DEPTH_MAX)
                return fail(events, "at most 64 levels of brackets");
            depth++;
            is_array = is_array << 1 | (byte == '[' ? 1 : 0);
        } else if (byte == ']' || byte == '}') {
            if ((is_array & 1) != (byte == ']' ? 1u : 0u))
                return fail(events, byte == ']' ? "'}'" : "']'");
            depth--;
            is_array >>= 1;
        }
        take(events);
    } while (depth > 0);
    return true;
}

static bool take_value(frag_chrome_events *events)
{
    int byte = look_past_space(events);
    if (byte == '"')
        return take_string(events);
    if (byte == '[' || byte == '{')
        return take_nested(events);
    return take_scalar(events);
}

/* As take_value; its text is in events->text. */
static bool keep_value(frag_chrome_events *events)
{
    look_past_space(events);
    frag_text_clear(&events->text);
    events->mark = events->at;
    events->is_keeping = true;
    bool ok = take_value(events);
    keep_visible(events);
    events->is_keeping = false;
    return ok && !events->has_failed;
}

/* ---- around the events */

static bool is_text(const frag_chrome_events *events, const char *text)
{
    return events->text.length == strlen(text) &&
           memcmp(events->text.bytes, text, events->text.length) == 0;
}

static void read_base_time(frag_chrome_events *events)
{
    uint64_t time = 0;
    for (size_t i = 0; i < events->text.length; i++) {
        char digit = events->text.bytes[i];
        if (digit < '0' || digit > '9' || time > (uint64_t)INT64_MAX / 10 - 1)
            return; /* whatever it is, times are then those of the events */
        time = time * 10 + (uint64_t)(digit - '0');
    }
    events->base_time_ns = time;
}

/* Members up to the array of events, or to the end. */
static bool read_members(frag_chrome_events *events, bool is_first)
{
    for (;; is_first = false) {
        int byte = look_past_space(events);
        if (byte == '}') {
            take(events);
            events->state = STATE_OVER;
            return true;
        }
        if (!is_first && byte != ',')
            return fail(events, "',' or '}'");
        if (!is_first) {
            take(events);
            byte = look_past_space(events);
        }
        if (byte != '"')
            return fail(events, "the name of a member");
        if (!keep_value(events))
            return false;
        bool is_events = is_text(events, "\"traceEvents\"");
        bool is_base = is_text(events, "\"baseTimeNanoseconds\"");
        if (look_past_space(events) != ':')
            return fail(events, "':'");
        take(events);
        if (is_events) {
            if (look_past_space(events) != '[')
                return fail(events, "'[', the array of events");
            take(events);
            events->state = STATE_FIRST_EVENT;
            return true;
        }
        if (is_base ? !keep_value(events) : !take_value(events))
            return false;
        if (is_base)
            read_base_time(events);
    }
}

static bool read_start(frag_chrome_events *events)
{
    events->line = 1;
    int byte = look_past_space(events);
    if (byte != '[' && byte != '{')
        return fail(events, "'[' or '{', the start of a Chrome trace");
    take(events);
    events->is_object = byte == '{';
    events->state = STATE_FIRST_EVENT;
    return byte == '[' || read_members(events, true);
}

/* Of the array: a comma, or the end. A profiler that writes a plain array may be killed before it
 * closes it, which readers of the format are to accept. */
static bool read_between(frag_chrome_events *events, bool is_first)
{
    int byte = look_past_space(events);
    if (byte == END && !events->has_failed && !events->is_object) {
        events->is_cut_off = true;
        events->state = STATE_OVER;
        return true;
    }
    if (byte == ']') {
        take(events);
        events->state = STATE_OVER;
        return !events->is_object || read_members(events, false);
    }
    if (is_first)
        return true;
    if (byte != ',')
        return fail(events, "',' or ']'");
    take(events);
    if (look_past_space(events) == END && !events->has_failed && !events->is_object) {
        events->is_cut_off = true;
        events->state = STATE_OVER;
    }
    return true;
}

bool frag_chrome_next(frag_chrome_events *events, const char **text, size_t *length)
{
    if (events->state == STATE_START && !read_start(events))
        return false;
    while (events->state == STATE_FIRST_EVENT || events->state == STATE_NEXT_EVENT) {
        int before = events->state;
        if (!read_between(events, before == STATE_FIRST_EVENT))
            return false;
        if (events->state != before)
            continue;
        if (look_past_space(events) != '{')
            return fail(events, "'{', an event");
        events->event_line = events->line;
        events->state = STATE_NEXT_EVENT;
        if (!keep_value(events))
            return false;
        *text = events->text.bytes;
        *length = events->text.length;
        return true;
    }
    return look_past_space(events) != END && fail(events, "the end of the file");
}

void frag_chrome_destroy(frag_chrome_events *events)
{
    frag_text_destroy(&events->text);
}
