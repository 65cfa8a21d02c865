#include "report/markup.h"

#include <stdbool.h>
#include <string.h>

#include "base/text.h"

#define REPLACEMENT "\xef\xbf\xbd"

/* U+FFFE and U+FFFF are no characters, and U+0080 to U+009F control the terminal, not the text. */
static bool is_plain(const unsigned char *bytes, size_t length)
{
    if (length == 1)
        return (*bytes >= 0x20 || *bytes == '\n' || *bytes == '\t') && *bytes != 0x7f;
    if (length == 2 && bytes[0] == 0xc2)
        return bytes[1] >= 0xa0;
    return length != 3 || bytes[0] != 0xef || bytes[1] != 0xbf || bytes[2] < 0xbe;
}

static void write_piece(FILE *stream, const char *text, size_t length,
                        void (*write)(FILE *stream, const char *piece, size_t length))
{
    for (size_t at = 0; at < length;) {
        const unsigned char *bytes = (const unsigned char *)text + at;
        size_t sequence = frag_text_sequence(bytes, length - at);
        if (sequence == 0 || !is_plain(bytes, sequence))
            fputs(REPLACEMENT, stream);
        else
            write(stream, text + at, sequence);
        at += sequence > 0 ? sequence : 1;
    }
}

static void write_html(FILE *stream, const char *piece, size_t length)
{
    switch (*piece) {
    case '&':
        fputs("&amp;", stream);
        break;
    case '<':
        fputs("&lt;", stream);
        break;
    case '>':
        fputs("&gt;", stream);
        break;
    case '"':
        fputs("&quot;", stream);
        break;
    case '\'':
        fputs("&#39;", stream);
        break;
    default:
        fwrite(piece, 1, length, stream);
    }
}

static void write_json(FILE *stream, const char *piece, size_t length)
{
    unsigned char first = (unsigned char)*piece;
    bool is_line_end = length == 3 && memcmp(piece, "\xe2\x80\xa8", 2) == 0 &&
                       ((unsigned char)piece[2] == 0xa8 || (unsigned char)piece[2] == 0xa9);
    if (is_line_end)
        fputs((unsigned char)piece[2] == 0xa8 ? "\\u2028" : "\\u2029", stream);
    else if (first == '"' || first == '\\')
        fprintf(stream, "\\%c", first);
    else if (first < 0x20 || first == '<' || first == '>' || first == '&')
        fprintf(stream, "\\u%04x", first);
    else
        fwrite(piece, 1, length, stream);
}

void frag_markup_text(FILE *stream, const char *text)
{
    write_piece(stream, text, strlen(text), write_html);
}

void frag_markup_json(FILE *stream, const char *text)
{
    if (text == NULL) {
        fputs("null", stream);
        return;
    }
    fputc('"', stream);
    write_piece(stream, text, strlen(text), write_json);
    fputc('"', stream);
}
