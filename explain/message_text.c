#include "explain/message_text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/memory.h"
#include "sim/base/text.h"

/* A terminal's title can hold any text; longer than this it is no code but damage. */
enum { TERMINAL_TEXT_MAX = 256 };

typedef struct cursor {
    const unsigned char *bytes;
    size_t length;
    size_t at;
} cursor;

static unsigned char byte_after(const cursor *from, size_t steps)
{
    return steps < from->length - from->at ? from->bytes[from->at + steps] : 0;
}

/* Length of "ESC", "\033", "\x1b" or "\u001b" at the cursor, 0: none. */
static size_t escape_length(const cursor *from)
{
    static const char *const written[] = {"\\033", "\\x1b", "\\x1B", "\\u001b", "\\u001B"};
    if (byte_after(from, 0) == 0x1b)
        return 1;
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
        size_t length = strlen(written[i]);
        if (from->length - from->at >= length &&
            memcmp(from->bytes + from->at, written[i], length) == 0)
            return length;
    }
    return 0;
}

/* Length of the terminal code that begins at the cursor, 0: none. */
static size_t terminal_length(const cursor *from)
{
    size_t length = escape_length(from);
    if (length == 0)
        return 0;
    unsigned char kind = byte_after(from, length);
    if (kind == '[') {
        for (size_t i = length + 1; i < length + TERMINAL_TEXT_MAX; i++) {
            unsigned char byte = byte_after(from, i);
            if (byte >= 0x40 && byte <= 0x7e)
                return i + 1;
            if (byte < 0x20 || byte > 0x7e)
                break;
        }
        return length + 1;
    }
    if (kind == ']')
        for (size_t i = length + 1; i < length + TERMINAL_TEXT_MAX; i++)
            if (byte_after(from, i) == 0x07)
                return i + 1;
    return length;
}

/* What a sequence outside ASCII stands for: 0 for nothing, as blanks and box drawing. */
static char plain_of(const unsigned char *bytes, size_t length)
{
    if (length == 2 && bytes[0] == 0xc2 && bytes[1] == 0xa0)
        return 0; /* no-break space */
    if (length == 3 && bytes[0] == 0xe2 && (bytes[1] == 0x94 || bytes[1] == 0x95))
        return 0; /* box drawing */
    if (length == 3 && bytes[0] == 0xe2 && bytes[1] == 0x80 && bytes[2] <= 0x8f)
        return 0; /* spaces, zero width */
    if (length == 3 && bytes[0] == 0xe2 && bytes[1] == 0x80)
        return bytes[2] == 0x98 || bytes[2] == 0x99 ? '\'' : '"';
    if (length == 3 && bytes[0] == 0xef && bytes[1] == 0xbb && bytes[2] == 0xbf)
        return 0; /* byte order mark */
    if (length == 3 && bytes[0] == 0xef && bytes[1] == 0xbc && bytes[2] >= 0x81 && bytes[2] <= 0x9f)
        return (char)(bytes[2] - 0x60); /* full-width signs */
    return FRAG_MESSAGE_FOREIGN;
}

static void add_line(frag_message_text *text, uint64_t line)
{
    text->lines =
        frag_grow(text->lines, &text->line_capacity, text->line_count + 1, sizeof *text->lines);
    text->lines[text->line_count].at = text->length;
    text->lines[text->line_count].line = line;
    text->line_count++;
}

void frag_message_text_make(frag_message_text *text, const char *bytes, size_t length)
{
    *text = (frag_message_text){.bytes = frag_alloc(length + 1, 1)};
    cursor from = {.bytes = (const unsigned char *)bytes, .length = length};
    uint64_t line = 1;
    bool is_line_start = true;
    while (from.at < length) {
        unsigned char byte = from.bytes[from.at];
        size_t code = terminal_length(&from);
        char plain = (char)byte;
        size_t taken = 1;
        if (code > 0) {
            from.at += code;
            continue;
        }
        if (byte == '\\' && byte_after(&from, 1) == 'n') {
            plain = '\n';
            taken = 2;
        } else if (byte == '\\' && (byte_after(&from, 1) == '"' || byte_after(&from, 1) == '\'')) {
            from.at++;
            continue;
        } else if (byte >= 0x80) {
            taken = frag_text_sequence(from.bytes + from.at, length - from.at);
            plain = taken == 0 ? FRAG_MESSAGE_FOREIGN : plain_of(from.bytes + from.at, taken);
            taken = taken == 0 ? 1 : taken;
        } else if (byte <= ' ' && byte != '\n') {
            plain = 0;
        } else if (is_line_start && (byte == '>' || byte == '|')) {
            plain = 0;
        } else if (byte >= 'A' && byte <= 'Z') {
            plain = (char)(byte - 'A' + 'a');
        }
        from.at += taken;
        if (plain == '\n') {
            line += byte == '\n';
            if (!is_line_start)
                text->bytes[text->length++] = '\n';
            is_line_start = true;
        } else if (plain != 0) {
            if (is_line_start)
                add_line(text, line);
            is_line_start = false;
            text->bytes[text->length++] = plain;
        }
    }
    text->bytes[text->length] = '\0';
}

void frag_message_text_destroy(frag_message_text *text)
{
    free(text->bytes);
    free(text->lines);
    *text = (frag_message_text){0};
}

uint64_t frag_message_text_line(const frag_message_text *text, size_t at)
{
    size_t low = 0;
    size_t high = text->line_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (text->lines[middle].at <= at)
            low = middle;
        else
            high = middle;
    }
    return text->line_count == 0 ? 1 : text->lines[low].line;
}
