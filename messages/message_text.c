#include "messages/message_text.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/text.h"
#include "messages/message_escape.h"
#include "messages/message_language.h"

enum { OWNER_REACH = 48 }; /* of a line, where its prefix says who writes */

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
        return (char)(bytes[2] - 0x60); /* full-width signs and digits, */
    if (length == 3 && bytes[0] == 0xef && bytes[1] == 0xbc && bytes[2] >= 0xa0)
        return (char)(bytes[2] - 0x60); /* capitals */
    if (length == 3 && bytes[0] == 0xef && bytes[1] == 0xbd && bytes[2] <= 0x9e)
        return (char)(bytes[2] - 0x20); /* and small letters */
    if (length == 3 && bytes[0] == 0xe3 && bytes[1] == 0x80 && bytes[2] <= 0x82)
        return bytes[2] == 0x80 ? 0 : bytes[2] == 0x81 ? ',' : '.';
    return FRAG_MESSAGE_FOREIGN;
}

/* The number that stands behind the name, plus one; 0: none does. */
static uint64_t number_behind(const char *start, size_t length, const char *name)
{
    size_t name_length = strlen(name);
    for (size_t i = 0; i + name_length < length; i++) {
        uint64_t number = 0;
        size_t at = i + name_length;
        if (strncasecmp(start + i, name, name_length) != 0)
            continue;
        at += start[at] == '=' || start[at] == ' ';
        if (at == length || start[at] < '0' || start[at] > '9')
            continue;
        for (size_t digits = 0; at < length && digits < 9 && start[at] >= '0' && start[at] <= '9';
             digits++)
            number = number * 10 + (uint64_t)(start[at++] - '0');
        return number + 1;
    }
    return 0;
}

static uint64_t owner_of(const unsigned char *line, size_t left)
{
    const unsigned char *end = memchr(line, '\n', left < OWNER_REACH ? left : OWNER_REACH);
    size_t length = end != NULL ? (size_t)(end - line) : left < OWNER_REACH ? left : OWNER_REACH;
    uint64_t rank = number_behind((const char *)line, length, "rank");
    return rank != 0 ? rank : number_behind((const char *)line, length, "pid=");
}

static void add_line(frag_message_text *text, uint64_t line, uint64_t owner)
{
    text->lines =
        frag_grow(text->lines, &text->line_capacity, text->line_count + 1, sizeof *text->lines);
    text->lines[text->line_count].at = text->length;
    text->lines[text->line_count].line = line;
    text->lines[text->line_count].owner = owner;
    text->line_count++;
}

typedef struct maker {
    const unsigned char *bytes;
    size_t length;
    size_t at;
    uint64_t line;
    size_t line_at;       /* where it begins */
    bool is_line_start;   /* nothing of this line is in the text yet */
    bool has_gap;         /* a blank was left out since the last byte */
    bool has_bar;         /* this line began with a "|" */
    bool has_error;       /* this line began with a prefix that said "error" */
    uint64_t phrase_line; /* the last one with words of another language */
    frag_language language;
    frag_message_text *text;
} maker;

static void put(maker *state, char plain)
{
    frag_message_text *text = state->text;
    if (plain == '\n') {
        if (!state->is_line_start)
            text->bytes[text->length++] = '\n';
        state->is_line_start = true;
        state->has_bar = false;
    } else if (plain != 0) {
        if (state->is_line_start)
            add_line(text, state->line,
                     owner_of(state->bytes + state->line_at, state->length - state->line_at));
        bool is_capital = plain >= 'A' && plain <= 'Z';
        text->marks[text->length] =
            (unsigned char)((state->has_gap || state->is_line_start ? FRAG_MESSAGE_WORD : 0) |
                            (is_capital ? FRAG_MESSAGE_CAPITAL : 0) |
                            (state->has_bar ? FRAG_MESSAGE_BAR : 0) |
                            (state->has_error ? FRAG_MESSAGE_ERROR : 0));
        state->has_bar = false;
        state->has_error = false;
        state->is_line_start = false;
        state->has_gap = false;
        text->bytes[text->length++] = is_capital ? (char)(plain - 'A' + 'a') : plain;
    }
}

/* What a single byte of ASCII stands for: 0 for nothing, as blanks. A carriage return ends a line
 * of a progress bar. */
static char plain_byte(const maker *state)
{
    unsigned char byte = state->bytes[state->at];
    unsigned char next = state->at + 1 < state->length ? state->bytes[state->at + 1] : '\n';
    bool is_quote = (state->is_line_start && (byte == '>' || byte == '|')) ||
                    (byte == '|' && (next == '\n' || next == '\r'));
    return byte == '\r' ? '\n' : is_quote || (byte <= ' ' && byte != '\n') ? 0 : (char)byte;
}

/* Words of another language give way to English ones, which are no longer: the room for the text
 * relies on it. Returns how many bytes they take, 0: none stand here. */
static size_t take_phrase(maker *state)
{
    const char *english = NULL;
    size_t taken = frag_language_phrase(&state->language, state->bytes, state->length, state->at,
                                        state->phrase_line == state->line, &english);
    if (taken == 0)
        return 0;
    state->phrase_line = state->line;
    state->has_gap = true;
    for (; *english != '\0'; english++)
        if (*english == ' ')
            state->has_gap = true;
        else
            put(state, *english);
    state->has_gap = true;
    return taken;
}

/* "•", "‣", "▪", "◦": an item of a list, like "-". */
static bool is_bullet(const unsigned char *bytes, size_t length)
{
    static const char *const bullets[] = {"\xe2\x80\xa2", "\xe2\x80\xa3", "\xe2\x96\xaa",
                                          "\xe2\x97\xa6"};
    for (size_t i = 0; length == 3 && i < sizeof bullets / sizeof *bullets; i++)
        if (memcmp(bytes, bullets[i], length) == 0)
            return true;
    return false;
}

/* One character, however it is written. */
static void take(maker *state)
{
    const unsigned char *bytes = state->bytes + state->at;
    size_t left = state->length - state->at;
    char plain = 0;
    size_t taken = frag_language_may_begin(&state->language, *bytes) ? take_phrase(state) : 0;
    if (taken > 0) {
        state->at += taken;
        return;
    }
    if (*bytes > ' ' && *bytes < 0x7f && strchr("\\^<&>|", *bytes) == NULL) {
        put(state, (char)*bytes);
        state->at++;
        return;
    }
    taken = frag_escape_terminal(bytes, left);
    bool is_terminal = taken > 0;
    if (taken == 0)
        taken = frag_escape_backslash(bytes, left, &plain);
    if (taken == 0)
        taken = frag_escape_html(bytes, left, &plain);
    if (taken == 0 && *bytes >= 0x80) {
        taken = frag_text_sequence(bytes, left);
        plain = taken == 0                                        ? FRAG_MESSAGE_FOREIGN
                : state->is_line_start && is_bullet(bytes, taken) ? '-'
                                                                  : plain_of(bytes, taken);
        taken = taken == 0 ? 1 : taken;
    } else if (taken == 0) {
        state->has_bar |= state->is_line_start && *bytes == '|';
        plain = plain_byte(state);
        taken = 1;
    }
    state->has_gap |= plain == 0 && !is_terminal;
    put(state, plain);
    state->has_gap |= taken == 3 && *bytes == 0xe3 && plain != FRAG_MESSAGE_FOREIGN; /* "。" */
    state->at += taken;
}

void frag_message_text_make(frag_message_text *text, const char *bytes, size_t length)
{
    *text =
        (frag_message_text){.bytes = frag_alloc(length + 1, 1), .marks = frag_alloc(length + 1, 1)};
    maker state = {.bytes = (const unsigned char *)bytes,
                   .length = length,
                   .line = 1,
                   .is_line_start = true,
                   .text = text};
    frag_language_init(&state.language);
    while (state.at < length) {
        bool is_end = bytes[state.at] == '\n';
        take(&state);
        if (!is_end)
            continue;
        state.line++;
        size_t prefix = frag_escape_prefix(state.bytes, length, state.line_at, state.at);
        state.line_at = state.at;
        state.has_error = frag_escape_says_error(state.bytes + state.at, prefix);
        state.at += prefix;
    }
    text->bytes[text->length] = '\0';
    text->marks[text->length] = FRAG_MESSAGE_WORD;
}

void frag_message_text_destroy(frag_message_text *text)
{
    frag_free(text->bytes);
    frag_free(text->marks);
    frag_free(text->lines);
    *text = (frag_message_text){0};
}

static size_t find_line(const frag_message_text *text, size_t at)
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
    return low;
}

uint64_t frag_message_text_line(const frag_message_text *text, size_t at)
{
    return text->line_count == 0 ? 1 : text->lines[find_line(text, at)].line;
}

uint64_t frag_message_text_owner(const frag_message_text *text, size_t at)
{
    return text->line_count == 0 ? 0 : text->lines[find_line(text, at)].owner;
}

size_t frag_message_text_line_start(const frag_message_text *text, size_t at)
{
    return text->line_count == 0 ? 0 : text->lines[find_line(text, at)].at;
}

size_t frag_message_text_line_end(const frag_message_text *text, size_t at, size_t reach)
{
    size_t left = text->length - at < reach ? text->length - at : reach;
    const char *end = memchr(text->bytes + at, '\n', left);
    return end != NULL ? (size_t)(end - text->bytes) : at + left;
}

static bool is_letter(char byte)
{
    return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z');
}

bool frag_message_text_has_windows_path(const char *text, size_t length)
{
    for (size_t i = 0; i + 3 < length; i++)
        if (text[i + 1] == ':' && text[i + 2] == '\\' && is_letter(text[i]) &&
            (i == 0 || !(is_letter(text[i - 1]) || (text[i - 1] >= '0' && text[i - 1] <= '9'))) &&
            (text[i] <= 'Z' || (is_letter(text[i + 3]) && strchr("nrtu", text[i + 3]) == NULL)))
            return true;
    return false;
}
