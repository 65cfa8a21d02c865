#include "traces/torch/snapshot_page.h"

#include <string.h>

#include "base/memory.h"
#include "traces/format_look.h"
#include "traces/formats.h"

enum {
    WINDOW_BYTES = 1 << 18,
    ZEROS_MAX = 3,          /* behind the pickle, so that its base64 needs no padding */
    BASE64_NONE = 64,       /* no digit of base64 */
    MARKER_BYTES_MAX = 128, /* a marker with the blanks in it */
    EXPANSION_MAX = 2000,   /* as of a compressed pickle */
    EXPANSION_FREE_BYTES = 16 << 20
};

/* ---- what it is */

bool frag_snapshot_page_is_like(const unsigned char *bytes, size_t count)
{
    size_t seen = count < FRAG_FORMAT_LOOK_BYTES ? count : FRAG_FORMAT_LOOK_BYTES;
    return frag_look_begins(bytes, seen, "<") &&
           (frag_look_contains(bytes, seen, "add_local_files") ||
            frag_look_contains(bytes, seen, "\"base64\"") ||
            frag_look_contains(bytes, seen, "alloc_data = {"));
}

/* ---- finding it */

/* How many bytes of text stand before the snapshot: "base64", a colon and a quotation mark, with
 * blanks between. 0: it is none. */
static size_t snapshot_marker(const unsigned char *bytes, size_t count)
{
    static const char name[] = "\"base64\"";
    if (!frag_look_starts(bytes, count, name))
        return 0;
    size_t colon = frag_look_past_space(bytes, count, sizeof name - 1);
    if (!frag_look_starts(bytes + colon, count - colon, ":"))
        return 0;
    size_t quote = frag_look_past_space(bytes, count, colon + 1);
    return frag_look_starts(bytes + quote, count - quote, "\"") ? quote + 1 : 0;
}

/* The same before the data of a drawing. */
static size_t plot_marker(const unsigned char *bytes, size_t count)
{
    static const char name[] = "alloc_data = {";
    return frag_look_starts(bytes, count, name) ? sizeof name - 2 : 0;
}

bool frag_snapshot_page_find(frag_input *input, frag_page_kind *kind, frag_error *error)
{
    for (;;) {
        const unsigned char *bytes = NULL;
        size_t count = 0;
        if (!frag_input_peek(input, WINDOW_BYTES, &bytes, &count, error))
            return false;
        for (size_t at = 0; at < count; at++) {
            size_t snapshot = snapshot_marker(bytes + at, count - at);
            size_t plot = plot_marker(bytes + at, count - at);
            if (snapshot == 0 && plot == 0)
                continue;
            *kind = snapshot > 0 ? FRAG_PAGE_SNAPSHOT : FRAG_PAGE_PLOT;
            frag_input_skip(input, at + snapshot + plot);
            return true;
        }
        if (count < WINDOW_BYTES)
            return frag_fail_at(error, frag_input_offset(input) + count,
                                "the web page holds no snapshot; expected a page that "
                                "torch.cuda._memory_viz wrote (trace_plot, segment_plot)");
        frag_input_skip(input, count - MARKER_BYTES_MAX);
    }
}

/* ---- base64 */

static void make_digits(unsigned char digits[256])
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    memset(digits, BASE64_NONE, 256);
    for (unsigned char i = 0; i < 64; i++)
        digits[(unsigned char)alphabet[i]] = i;
}

typedef struct base64_text {
    unsigned char digits[256];
    unsigned char *bytes;
    size_t count;
    size_t capacity;
    uint32_t bits; /* of the digits that are no whole byte yet */
    unsigned bit_count;
    size_t padding; /* '=' that came; nothing but more of them may follow */
} base64_text;

/* Digits up to one that is none; *used of them. */
static void decode_digits(base64_text *text, const unsigned char *bytes, size_t count, size_t *used)
{
    size_t at = 0;
    text->bytes = frag_grow(text->bytes, &text->capacity, text->count + count + 1, 1);
    for (; at < count && text->digits[bytes[at]] != BASE64_NONE; at++) {
        text->bits = text->bits << 6 | text->digits[bytes[at]];
        text->bit_count += 6;
        if (text->bit_count >= 8) {
            text->bit_count -= 8;
            text->bytes[text->count++] = (unsigned char)(text->bits >> text->bit_count);
        }
    }
    *used = at;
}

static bool fail_digit(frag_error *error, uint64_t offset, unsigned char byte)
{
    return frag_fail_at(error, offset,
                        "found byte 0x%02x in the snapshot that the page holds; expected base64",
                        byte);
}

static bool check_expansion(const frag_input *input, size_t count, frag_error *error)
{
    if (frag_input_outgrows(input, count, EXPANSION_FREE_BYTES, EXPANSION_MAX))
        return frag_fail_at(
            error, frag_input_offset(input),
            "the compressed page grows to more than %d times its size; no real one does",
            EXPANSION_MAX);
    return true;
}

static bool decode_text(base64_text *text, frag_input *input, frag_error *error)
{
    for (;;) {
        const unsigned char *bytes = NULL;
        size_t count = 0;
        size_t used = 0;
        if (!frag_input_peek(input, 1, &bytes, &count, error) ||
            !check_expansion(input, text->count, error))
            return false;
        if (count == 0)
            return frag_fail_at(
                error, frag_input_offset(input),
                "the page ends inside the snapshot that it holds; it was cut off, copy it again");
        if (text->padding == 0)
            decode_digits(text, bytes, count, &used);
        uint64_t offset = frag_input_offset(input) + used;
        unsigned char byte = used < count ? bytes[used] : '\0';
        bool is_whole = used == count;
        frag_input_skip(input, is_whole ? used : used + 1);
        if (is_whole)
            continue;
        if (byte == '"')
            return true;
        if (byte != '=' || ++text->padding > 2)
            return fail_digit(error, offset, byte);
    }
}

bool frag_snapshot_page_decode(frag_input *input, unsigned char **bytes, size_t *count,
                               frag_error *error)
{
    base64_text *text = frag_alloc(1, sizeof *text);
    make_digits(text->digits);
    bool ok = decode_text(text, input, error);
    for (int i = 0; ok && i < ZEROS_MAX && text->count > 0; i++)
        text->count -= text->bytes[text->count - 1] == '\0' ? 1 : 0;
    if (ok) {
        *bytes = text->bytes;
        *count = text->count;
    } else {
        frag_free(text->bytes);
    }
    frag_free(text);
    return ok;
}
