#include "base/text.h"

#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/digest.h"
#include "base/memory.h"

void frag_text_add_bytes(frag_text *text, const char *bytes, size_t length)
{
    text->bytes = frag_grow(text->bytes, &text->capacity, text->length + length + 1, 1);
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

void frag_text_add(frag_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    FRAG_ASSERT(length >= 0);
    text->bytes = frag_grow(text->bytes, &text->capacity, text->length + (size_t)length + 1, 1);
    vsnprintf(text->bytes + text->length, (size_t)length + 1, format, again);
    va_end(again);
    text->length += (size_t)length;
}

static bool is_plain_word(const char *word)
{
    return *word != '\0' &&
           word[strspn(word,
                       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,+-")] ==
               '\0';
}

void frag_text_add_word(frag_text *text, const char *word)
{
    if (is_plain_word(word)) {
        frag_text_add(text, "%s", word);
        return;
    }
    frag_text_add(text, "'");
    for (const char *at = word; *at != '\0'; at++)
        frag_text_add(text, *at == '\'' ? "'\\''" : "%c", *at);
    frag_text_add(text, "'");
}

void frag_text_clear(frag_text *text)
{
    text->length = 0;
    if (text->bytes != NULL)
        text->bytes[0] = '\0';
}

void frag_text_destroy(frag_text *text)
{
    frag_free(text->bytes);
    *text = (frag_text){0};
}

bool frag_text_ends(const char *text, const char *ending)
{
    size_t length = strlen(text);
    size_t ending_length = strlen(ending);
    return length >= ending_length && strcmp(text + length - ending_length, ending) == 0;
}

const char *frag_path_name(const char *path)
{
    return path + frag_path_folder_bytes(path);
}

size_t frag_path_folder_bytes(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? (size_t)(slash - path) + 1 : 0;
}

size_t frag_text_mark_bytes(const void *bytes, size_t count)
{
    static const char mark[] = {'\xef', '\xbb', '\xbf'};
    return count >= sizeof mark && memcmp(bytes, mark, sizeof mark) == 0 ? sizeof mark : 0;
}

size_t frag_text_sequence(const unsigned char *bytes, size_t count)
{
    size_t length = bytes[0] < 0x80   ? 1
                    : bytes[0] < 0xc2 ? 0
                    : bytes[0] < 0xe0 ? 2
                    : bytes[0] < 0xf0 ? 3
                    : bytes[0] < 0xf5 ? 4
                                      : 0;
    if (length > count)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
    if (length == 3 &&
        ((bytes[0] == 0xe0 && bytes[1] < 0xa0) || (bytes[0] == 0xed && bytes[1] > 0x9f)))
        return 0;
    if (length == 4 &&
        ((bytes[0] == 0xf0 && bytes[1] < 0x90) || (bytes[0] == 0xf4 && bytes[1] > 0x8f)))
        return 0;
    return length;
}

void frag_text_write_csv(FILE *stream, const char *field)
{
    if (strpbrk(field, ",\"\r\n") == NULL) {
        fputs(field, stream);
        return;
    }
    fputc('"', stream);
    for (; *field != '\0'; field++) {
        if (*field == '"')
            fputc('"', stream);
        fputc(*field, stream);
    }
    fputc('"', stream);
}

/* The place in the table of these bytes, or of the empty place where they would go. */
static uint32_t find_place(const frag_strings *strings, const char *bytes, size_t length)
{
    uint32_t mask = strings->table_capacity - 1;
    uint32_t at = (uint32_t)frag_hash_bytes(bytes, length) & mask;
    while (strings->table[at] != 0) {
        uint32_t id = strings->table[at] - 1;
        if (frag_strings_length(strings, id) == length &&
            memcmp(frag_strings_get(strings, id), bytes, length) == 0)
            return at;
        at = (at + 1) & mask;
    }
    return at;
}

static void grow_table(frag_strings *strings)
{
    frag_free(strings->table);
    strings->table_capacity = strings->table_capacity == 0 ? 64 : strings->table_capacity * 2;
    strings->table = frag_alloc(strings->table_capacity, sizeof *strings->table);
    for (uint32_t id = 0; id < strings->count; id++) {
        uint32_t at =
            find_place(strings, frag_strings_get(strings, id), frag_strings_length(strings, id));
        strings->table[at] = id + 1;
    }
}

uint32_t frag_strings_add(frag_strings *strings, const char *bytes, size_t length)
{
    if (strings->count * 2 >= strings->table_capacity)
        grow_table(strings);
    uint32_t at = find_place(strings, bytes, length);
    if (strings->table[at] != 0)
        return strings->table[at] - 1;
    FRAG_ASSERT(strings->count < UINT32_MAX / 4);
    strings->bytes =
        frag_grow(strings->bytes, &strings->bytes_capacity, strings->bytes_used + length + 1, 1);
    strings->offsets = frag_grow(strings->offsets, &strings->offsets_capacity,
                                 (size_t)strings->count + 2, sizeof *strings->offsets);
    strings->offsets[strings->count] = strings->bytes_used;
    if (length > 0)
        memcpy(strings->bytes + strings->bytes_used, bytes, length);
    strings->bytes[strings->bytes_used + length] = '\0';
    strings->bytes_used += length + 1;
    strings->table[at] = ++strings->count;
    strings->offsets[strings->count] = strings->bytes_used;
    return strings->count - 1;
}

bool frag_strings_find(const frag_strings *strings, const char *bytes, size_t length, uint32_t *id)
{
    if (strings->count == 0)
        return false;
    uint32_t at = find_place(strings, bytes, length);
    if (strings->table[at] == 0)
        return false;
    *id = strings->table[at] - 1;
    return true;
}

const char *frag_strings_get(const frag_strings *strings, uint32_t id)
{
    FRAG_ASSERT(id < strings->count);
    return strings->bytes + strings->offsets[id];
}

size_t frag_strings_length(const frag_strings *strings, uint32_t id)
{
    FRAG_ASSERT(id < strings->count);
    return strings->offsets[id + 1] - strings->offsets[id] - 1;
}

void frag_strings_destroy(frag_strings *strings)
{
    frag_free(strings->bytes);
    frag_free(strings->offsets);
    frag_free(strings->table);
    *strings = (frag_strings){0};
}

#define NAME_MAX_BYTES 64

/* Insertions, deletions, substitutions and swaps of neighbours that turn a into b (optimal string
 * alignment). */
static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[3][NAME_MAX_BYTES + 1];
    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3];
        const size_t *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            row[j] = frag_smaller(frag_smaller(row[j - 1], above[j]) + 1,
                                  above[j - 1] + (a[i - 1] != b[j - 1] ? 1 : 0));
            bool is_swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (is_swap)
                row[j] = frag_smaller(row[j], two_above[j - 2] + 1);
        }
    }
    return rows[a_length % 3][b_length];
}

const char *frag_nearest_name(const char *text, const char *const *names, size_t count)
{
    size_t length = strlen(text);
    if (length > NAME_MAX_BYTES)
        return NULL;
    size_t limit = length / 3 > 0 ? length / 3 : 1;
    const char *nearest = NULL;
    for (size_t i = 0; i < count; i++) {
        size_t name_length = strlen(names[i]);
        if (name_length > NAME_MAX_BYTES)
            continue;
        size_t distance = edit_distance(text, length, names[i], name_length);
        /* A long name is often typed only in part: its beginning counts, one edit worse. */
        if (length >= 4 && name_length > length)
            distance = frag_smaller(
                distance, frag_smaller(edit_distance(text, length, names[i], length),
                                       edit_distance(text, length, names[i], length + 1)) +
                              1);
        if (distance <= limit) {
            limit = distance - (distance > 0 ? 1 : 0);
            nearest = names[i];
            if (distance == 0)
                break;
        }
    }
    return nearest;
}
