#include "messages/message_escape.h"

#include <string.h>

#include "base/memory.h"

enum {
    TERMINAL_TEXT_MAX = 256, /* a title can hold any text; longer than this it is damage */
    TAG_MAX = 200,
    PREFIX_MAX = 160
};

static unsigned char byte_at(const unsigned char *bytes, size_t length, size_t at)
{
    return at < length ? bytes[at] : 0;
}

static bool starts_with(const unsigned char *bytes, size_t length, const char *start)
{
    size_t count = strlen(start);
    return length >= count && memcmp(bytes, start, count) == 0;
}

static bool is_digit(unsigned char byte)
{
    return byte >= '0' && byte <= '9';
}

static unsigned char lower(unsigned char byte)
{
    return byte >= 'A' && byte <= 'Z' ? (unsigned char)(byte - 'A' + 'a') : byte;
}

/* ---- terminals */
static size_t escape_length(const unsigned char *bytes, size_t length)
{
    static const char *const written[] = {"\\033", "\\x1b", "\\x1B", "\\u001b", "\\u001B"};
    if (byte_at(bytes, length, 0) == 0x1b)
        return 1;
    if (starts_with(bytes, length, "^[["))
        return 2;
    for (size_t i = 0; i < sizeof written / sizeof *written; i++)
        if (starts_with(bytes, length, written[i]))
            return strlen(written[i]);
    return 0;
}

size_t frag_escape_terminal(const unsigned char *bytes, size_t length)
{
    size_t start = escape_length(bytes, length);
    if (start == 0)
        return 0;
    unsigned char kind = byte_at(bytes, length, start);
    if (kind == '[') {
        for (size_t i = start + 1; i < start + TERMINAL_TEXT_MAX; i++) {
            unsigned char byte = byte_at(bytes, length, i);
            if (byte >= 0x40 && byte <= 0x7e)
                return i + 1;
            if (byte < 0x20 || byte > 0x7e)
                break;
        }
        return start + 1;
    }
    if (kind == ']')
        for (size_t i = start + 1; i < start + TERMINAL_TEXT_MAX; i++)
            if (byte_at(bytes, length, i) == 0x07)
                return i + 1;
    return start;
}

/* ---- JSON and Python */
static unsigned hex_digit(unsigned char byte)
{
    byte = lower(byte);
    if (is_digit(byte))
        return byte - (unsigned)'0';
    return byte >= 'a' && byte <= 'f' ? byte - (unsigned)'a' + 10 : 16;
}

/* "00XX" of a character in ASCII; 0: another. */
static char unicode_escape(const unsigned char *bytes, size_t length)
{
    if (length < 4 || bytes[0] != '0' || bytes[1] != '0')
        return 0;
    unsigned value = hex_digit(bytes[2]) * 16 + hex_digit(bytes[3]);
    return hex_digit(bytes[2]) < 8 && hex_digit(bytes[3]) < 16 && value >= ' ' ? (char)value : 0;
}

size_t frag_escape_backslash(const unsigned char *bytes, size_t length, char *plain)
{
    *plain = 0;
    if (byte_at(bytes, length, 0) != '\\')
        return 0;
    switch (byte_at(bytes, length, 1)) {
    case 'n':
        *plain = '\n';
        return 2;
    case 'r':
    case 't':
        return 2;
    case '"':
    case '\'':
    case '/':
    case '\\':
        return 1;
    case 'u':
        *plain = unicode_escape(bytes + 2, length - 2);
        return *plain != 0 ? 6 : 0;
    default:
        return 0;
    }
}

/* ---- HTML */
/* "&#39;" or "&#x27;" of a character in ASCII. */
static size_t number_entity_length(const unsigned char *bytes, size_t length, char *plain)
{
    bool is_hex = lower(byte_at(bytes, length, 2)) == 'x';
    unsigned base = is_hex ? 16 : 10;
    unsigned value = 0;
    size_t at = is_hex ? 3 : 2;
    size_t start = at;
    if (!starts_with(bytes, length, "&#"))
        return 0;
    for (; value < 128 && hex_digit(byte_at(bytes, length, at)) < base; at++)
        value = value * base + hex_digit(bytes[at]);
    if (at == start || value >= 128 || byte_at(bytes, length, at) != ';')
        return 0;
    *plain = value > ' ' ? (char)value : 0;
    return at + 1;
}

static size_t entity_length(const unsigned char *bytes, size_t length, char *plain)
{
    static const struct {
        const char *name;
        char plain;
    } entities[] = {
        {"&gt;", '>'},   {"&lt;", '<'},    {"&amp;", '&'},
        {"&quot;", '"'}, {"&apos;", '\''}, {"&nbsp;", 0},
    };
    for (size_t i = 0; i < sizeof entities / sizeof *entities; i++)
        if (starts_with(bytes, length, entities[i].name)) {
            *plain = entities[i].plain;
            return strlen(entities[i].name);
        }
    return number_entity_length(bytes, length, plain);
}

static bool shapes_text(const unsigned char *name, size_t length)
{
    static const char *const tags[] = {"a",   "b",    "br",   "code", "dd", "div",
                                       "em",  "font", "i",    "kbd",  "li", "p",
                                       "pre", "samp", "span", "td",   "tr", "strong"};
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (strlen(tags[i]) == length && memcmp(tags[i], name, length) == 0)
            return true;
    return false;
}

/* A tag ends what stands before it, as a line end does. */
static size_t tag_length(const unsigned char *bytes, size_t length)
{
    size_t name = byte_at(bytes, length, 1) == '/' ? 2 : 1;
    size_t end = name;
    while (byte_at(bytes, length, end) >= 'a' && byte_at(bytes, length, end) <= 'z')
        end++;
    unsigned char after = byte_at(bytes, length, end);
    if ((after != '>' && after != ' ' && after != '/') || !shapes_text(bytes + name, end - name))
        return 0;
    for (; end < TAG_MAX; end++) {
        unsigned char byte = byte_at(bytes, length, end);
        if (byte == '>')
            return end + 1;
        if (byte == 0 || byte == '\n' || byte == '<')
            break;
    }
    return 0;
}

size_t frag_escape_html(const unsigned char *bytes, size_t length, char *plain)
{
    *plain = 0;
    if (byte_at(bytes, length, 0) == '&')
        return entity_length(bytes, length, plain);
    if (byte_at(bytes, length, 0) != '<')
        return 0;
    *plain = '\n';
    return tag_length(bytes, length);
}

/* ---- prefixes of a logger */

/* Could these bytes belong to a message? */
static bool has_word(const unsigned char *bytes, size_t length, const char *const *words)
{
    for (size_t i = 0; i < length; i++)
        for (size_t j = 0; words[j] != NULL; j++) {
            size_t k = 0;
            while (words[j][k] != '\0' && i + k < length &&
                   lower(bytes[i + k]) == (unsigned char)words[j][k])
                k++;
            if (words[j][k] == '\0')
                return true;
        }
    return false;
}

static bool is_telling(const unsigned char *bytes, size_t length)
{
    static const char *const words[] = {"memory", "alloc",     "error:", "cuda",
                                        "fail",   "exhausted", NULL};
    return has_word(bytes, length, words);
}

bool frag_escape_says_error(const unsigned char *bytes, size_t length)
{
    static const char *const words[] = {"error", "fatal", "critical", NULL};
    return has_word(bytes, length, words);
}

size_t frag_escape_prefix(const unsigned char *bytes, size_t length, size_t before, size_t at)
{
    size_t start = at;
    size_t prefix = 0;
    while (at < length && at - start < PREFIX_MAX && before < start) {
        if (is_digit(bytes[before]) && is_digit(bytes[at])) {
            while (before < start && is_digit(bytes[before]))
                before++;
            while (at < length && is_digit(bytes[at]))
                at++;
            continue;
        }
        if (bytes[before] != bytes[at] || bytes[at] == '\n')
            break;
        bool is_mark = bytes[at] == ' ' && at > start && strchr(":])|", bytes[at - 1]) != NULL;
        before++;
        at++;
        if (is_mark)
            prefix = at - start;
    }
    return prefix == 0 || is_telling(bytes + start, prefix) ? 0 : prefix;
}

/* ---- UTF-16 */

/* 1: little endian, 2: big endian, 0: neither. Without a mark, text in ASCII tells itself. */
static int utf16_kind(const unsigned char *bytes, size_t length)
{
    enum { LOOK = 64 };
    size_t zeros[2] = {0, 0};
    if (length < 4 || length % 2 != 0)
        return 0;
    if (bytes[0] == 0xff && bytes[1] == 0xfe)
        return 1;
    if (bytes[0] == 0xfe && bytes[1] == 0xff)
        return 2;
    size_t look = length < LOOK ? length : LOOK;
    for (size_t i = 0; i < look; i++)
        zeros[i % 2] += bytes[i] == 0;
    return zeros[1] == look / 2 && zeros[0] == 0   ? 1
           : zeros[0] == look / 2 && zeros[1] == 0 ? 2
                                                   : 0;
}

bool frag_escape_utf16(const char *bytes, size_t length, frag_text *text)
{
    const unsigned char *from = (const unsigned char *)bytes;
    int kind = utf16_kind(from, length);
    *text = (frag_text){0};
    if (kind == 0)
        return false;
    char out[3 * 256];
    size_t used = 0;
    for (size_t i = 0; i < length; i += 2) {
        unsigned unit =
            kind == 1 ? from[i] | (unsigned)from[i + 1] << 8 : from[i + 1] | (unsigned)from[i] << 8;
        if (unit < 0x80) {
            out[used++] = (char)unit;
        } else if (unit < 0x800) {
            out[used++] = (char)(0xc0 | unit >> 6);
            out[used++] = (char)(0x80 | (unit & 0x3f));
        } else {
            out[used++] = (char)(0xe0 | unit >> 12);
            out[used++] = (char)(0x80 | (unit >> 6 & 0x3f));
            out[used++] = (char)(0x80 | (unit & 0x3f));
        }
        if (used > sizeof out - 3 || i + 2 >= length) {
            frag_text_add_bytes(text, out, used);
            used = 0;
        }
    }
    return true;
}

/* ---- letters outside ASCII, as JSON writes them */

/* "\\uXXXX" of a character outside ASCII; 0: none stands there. */
static unsigned foreign_escape(const unsigned char *bytes, size_t length)
{
    unsigned value = 0;
    if (length < 6 || bytes[0] != '\\' || bytes[1] != 'u')
        return 0;
    for (size_t i = 2; i < 6; i++) {
        if (hex_digit(bytes[i]) > 15)
            return 0;
        value = value * 16 + hex_digit(bytes[i]);
    }
    bool is_surrogate = value >= 0xd800 && value <= 0xdfff;
    return value >= 0x80 && !is_surrogate ? value : 0;
}

static size_t next_foreign(const unsigned char *bytes, size_t length, size_t at)
{
    const unsigned char *found = bytes + at;
    while (at < length && (found = memchr(bytes + at, '\\', length - at)) != NULL) {
        at = (size_t)(found - bytes);
        if (foreign_escape(found, length - at) != 0)
            return at;
        at++;
    }
    return length;
}

bool frag_escape_unicode(const char *bytes, size_t length, frag_text *text)
{
    const unsigned char *from = (const unsigned char *)bytes;
    size_t at = next_foreign(from, length, 0);
    *text = (frag_text){0};
    if (at == length)
        return false;
    for (size_t start = 0; start < length; at = next_foreign(from, length, start)) {
        frag_text_add_bytes(text, bytes + start, at - start);
        unsigned unit = at < length ? foreign_escape(from + at, length - at) : 0;
        char out[3];
        size_t used = 0;
        if (unit >= 0x800)
            out[used++] = (char)(0xe0 | unit >> 12);
        if (unit > 0)
            out[used++] = (char)(unit >= 0x800 ? 0x80 | (unit >> 6 & 0x3f) : 0xc0 | unit >> 6);
        if (unit > 0)
            out[used++] = (char)(0x80 | (unit & 0x3f));
        frag_text_add_bytes(text, out, used);
        start = unit > 0 ? at + 6 : length;
    }
    return true;
}
