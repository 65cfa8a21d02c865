#include "traces/exchange/csv_lines.h"

#include <string.h>

#include "base/formats/lines.h"

bool frag_csv_next(frag_csv_lines *lines, const char **text, size_t *length, frag_error *error)
{
    static const frag_line_limit limit = {FRAG_CSV_LINE_BYTES_MAX, "a few fields"};
    frag_line line = {.number = lines->line};
    frag_input_skip(lines->input, lines->taken);
    lines->taken = 0;
    lines->has_failed = !frag_line_find(lines->input, &limit, &line, error);
    if (lines->has_failed || line.taken == 0)
        return false;
    lines->is_ended = line.is_ended;
    lines->taken = line.taken;
    lines->line = line.number;
    *text = line.bytes;
    *length = line.length;
    return true;
}

int frag_csv_split(const char *text, size_t length, frag_csv_field *fields, int fields_max)
{
    int count = 0;
    size_t start = 0;
    for (size_t i = 0; i <= length; i++) {
        if (i < length && text[i] != ',')
            continue;
        if (count == fields_max)
            return -1;
        fields[count++] = (frag_csv_field){text + start, i - start};
        start = i + 1;
    }
    return count;
}

bool frag_csv_is(const frag_csv_field *field, const char *text)
{
    return field->length == strlen(text) && memcmp(field->bytes, text, field->length) == 0;
}

bool frag_csv_number(const frag_csv_field *field, uint64_t max, uint64_t *value)
{
    *value = 0;
    if (field->length == 0 || field->length > 20)
        return false;
    for (size_t i = 0; i < field->length; i++) {
        if (field->bytes[i] < '0' || field->bytes[i] > '9')
            return false;
        uint64_t digit = (uint64_t)(field->bytes[i] - '0');
        if (digit > max || *value > (max - digit) / 10)
            return false;
        *value = *value * 10 + digit;
    }
    return true;
}

bool frag_csv_hexadecimal(const frag_csv_field *field, uint64_t *value)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *bytes = field->bytes;
    size_t length = field->length;
    if (length > 2 && bytes[0] == '0' && (bytes[1] == 'x' || bytes[1] == 'X')) {
        bytes += 2;
        length -= 2;
    }
    *value = 0;
    for (size_t i = 0; i < length; i++) {
        const char *digit = bytes[i] != '\0' ? strchr(digits, bytes[i]) : NULL;
        if (digit == NULL)
            return false;
        *value = *value << 4 | ((uint64_t)(digit - digits) & 15);
    }
    return length > 0 && length <= 16;
}
