#include "report/columns.h"

#include <string.h>

#include "base/formats/codec.h"
#include "base/error.h"
#include "base/memory.h"

enum { VARINT_BYTES_MAX = 10, LINE_GROUPS = 30 }; /* a group is 3 bytes as 4 characters */

void frag_columns_begin(frag_columns *columns)
{
    columns->last = 0;
}

void frag_columns_add(frag_columns *columns, uint64_t value)
{
    columns->bytes = frag_grow(columns->bytes, &columns->capacity,
                               columns->count + VARINT_BYTES_MAX, sizeof *columns->bytes);
    while (value >= 0x80) {
        columns->bytes[columns->count++] = (unsigned char)(value | 0x80);
        value >>= 7;
    }
    columns->bytes[columns->count++] = (unsigned char)value;
}

void frag_columns_add_step(frag_columns *columns, uint64_t value)
{
    FRAG_ASSERT(value <= FRAG_COLUMN_MAX);
    uint64_t step =
        value >= columns->last ? (value - columns->last) << 1 : ((columns->last - value) << 1) - 1;
    frag_columns_add(columns, step);
    columns->last = value;
}

void frag_columns_add_bytes(frag_columns *columns, const char *bytes, size_t count)
{
    columns->bytes = frag_grow(columns->bytes, &columns->capacity, columns->count + count,
                               sizeof *columns->bytes);
    memcpy(columns->bytes + columns->count, bytes, count);
    columns->count += count;
}

static void print_group(const unsigned char *bytes, size_t count, FILE *stream)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t group = (uint32_t)bytes[0] << 16;
    group |= count > 1 ? (uint32_t)bytes[1] << 8 : 0;
    group |= count > 2 ? (uint32_t)bytes[2] : 0;
    char text[4] = {digits[group >> 18], digits[group >> 12 & 63],
                    count > 1 ? digits[group >> 6 & 63] : '=',
                    count > 2 ? digits[group & 63] : '='};
    fwrite(text, 1, sizeof text, stream);
}

void frag_columns_pack(const frag_columns *columns, frag_packed_columns *packed)
{
    packed->bytes =
        frag_codec_pack(FRAG_CODEC_GZIP, columns->bytes, columns->count, &packed->count);
}

uint64_t frag_packed_columns_printed(const frag_packed_columns *packed)
{
    uint64_t groups = ((uint64_t)packed->count + 2) / 3;
    return groups * 4 + groups / LINE_GROUPS;
}

void frag_packed_columns_print(const frag_packed_columns *packed, FILE *stream)
{
    for (size_t i = 0; i < packed->count; i += 3) {
        print_group(packed->bytes + i, packed->count - i, stream);
        if (i / 3 % LINE_GROUPS == LINE_GROUPS - 1)
            fputc('\n', stream);
    }
}

void frag_packed_columns_destroy(frag_packed_columns *packed)
{
    frag_free(packed->bytes);
    *packed = (frag_packed_columns){0};
}

void frag_columns_destroy(frag_columns *columns)
{
    frag_free(columns->bytes);
    *columns = (frag_columns){0};
}
