#include "traces/pickle/pickle_write.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"

/* Readers take the items of a batch at once: as many as Python's own writer gives them. */
#define BATCH_ITEMS 1000u

enum {
    OP_PROTO = 0x80,
    OP_STOP = '.',
    OP_MARK = '(',
    OP_EMPTY_LIST = ']',
    OP_APPENDS = 'e',
    OP_EMPTY_DICT = '}',
    OP_SETITEMS = 'u',
    OP_TUPLE2 = 0x86,
    OP_SHORT_TEXT = 0x8c,
    OP_TEXT = 'X',
    OP_INT1 = 'K',
    OP_INT2 = 'M',
    OP_INT4 = 'J',
    OP_LONG1 = 0x8a,
    OP_FLOAT = 'G',
    OP_TRUE = 0x88,
    OP_FALSE = 0x89,
    OP_MEMOIZE = 0x94,
    OP_GET1 = 'h',
    OP_GET4 = 'j',
};

static void put_byte(frag_pickle_writer *writer, unsigned byte)
{
    putc((int)byte, writer->stream);
}

/* The lowest bytes, the least first. */
static void put_little(frag_pickle_writer *writer, uint64_t value, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        put_byte(writer, (unsigned)(value >> 8 * i & 0xff));
}

void frag_pickle_writer_begin(frag_pickle_writer *writer, FILE *stream)
{
    *writer = (frag_pickle_writer){.stream = stream};
    put_byte(writer, OP_PROTO);
    put_byte(writer, 4);
}

void frag_pickle_writer_end(frag_pickle_writer *writer)
{
    FRAG_ASSERT(writer->depth == 0);
    put_byte(writer, OP_STOP);
    frag_strings_destroy(&writer->strings);
    frag_free(writer->string_memo);
    writer->string_memo = NULL;
}

/* ---- containers */

static void open_container(frag_pickle_writer *writer, unsigned op)
{
    FRAG_ASSERT(writer->depth < FRAG_PICKLE_WRITE_DEPTH_MAX);
    put_byte(writer, op);
    put_byte(writer, OP_MARK);
    writer->item_counts[writer->depth++] = 0;
}

static void close_container(frag_pickle_writer *writer, unsigned op)
{
    FRAG_ASSERT(writer->depth > 0);
    put_byte(writer, op);
    writer->depth--;
}

void frag_pickle_list_begin(frag_pickle_writer *writer)
{
    open_container(writer, OP_EMPTY_LIST);
}

void frag_pickle_list_item(frag_pickle_writer *writer)
{
    uint32_t *count = &writer->item_counts[writer->depth - 1];
    if (*count == BATCH_ITEMS) {
        put_byte(writer, OP_APPENDS);
        put_byte(writer, OP_MARK);
        *count = 0;
    }
    ++*count;
}

void frag_pickle_list_end(frag_pickle_writer *writer)
{
    close_container(writer, OP_APPENDS);
}

void frag_pickle_dict_begin(frag_pickle_writer *writer)
{
    open_container(writer, OP_EMPTY_DICT);
}

void frag_pickle_dict_end(frag_pickle_writer *writer)
{
    close_container(writer, OP_SETITEMS);
}

/* ---- the memo */

uint32_t frag_pickle_memoize(frag_pickle_writer *writer)
{
    put_byte(writer, OP_MEMOIZE);
    return writer->memo_count++;
}

void frag_pickle_put_again(frag_pickle_writer *writer, uint32_t memo)
{
    FRAG_ASSERT(memo < writer->memo_count);
    put_byte(writer, memo <= UINT8_MAX ? OP_GET1 : OP_GET4);
    put_little(writer, memo, memo <= UINT8_MAX ? 1 : 4);
}

/* ---- values */

static void put_new_text(frag_pickle_writer *writer, const char *bytes, size_t length)
{
    bool is_short = length <= UINT8_MAX;
    FRAG_ASSERT(length <= UINT32_MAX);
    put_byte(writer, is_short ? OP_SHORT_TEXT : OP_TEXT);
    put_little(writer, length, is_short ? 1 : 4);
    for (size_t at = 0; at < length;) {
        size_t step = frag_text_sequence((const unsigned char *)bytes + at, length - at);
        if (step == 0)
            put_byte(writer, '?');
        else
            fwrite(bytes + at, 1, step, writer->stream);
        at += step == 0 ? 1 : step;
    }
}

void frag_pickle_put_bytes(frag_pickle_writer *writer, const char *bytes, size_t length)
{
    uint32_t known = writer->strings.count;
    uint32_t id = frag_strings_add(&writer->strings, bytes, length);
    if (id < known) {
        frag_pickle_put_again(writer, writer->string_memo[id]);
        return;
    }
    put_new_text(writer, bytes, length);
    writer->string_memo = frag_grow(writer->string_memo, &writer->string_capacity, (size_t)id + 1,
                                    sizeof *writer->string_memo);
    writer->string_memo[id] = frag_pickle_memoize(writer);
}

void frag_pickle_put_text(frag_pickle_writer *writer, const char *text)
{
    frag_pickle_put_bytes(writer, text, strlen(text));
}

void frag_pickle_put_unsigned(frag_pickle_writer *writer, uint64_t value)
{
    if (value <= UINT8_MAX) {
        put_byte(writer, OP_INT1);
        put_little(writer, value, 1);
    } else if (value <= UINT16_MAX) {
        put_byte(writer, OP_INT2);
        put_little(writer, value, 2);
    } else if (value <= INT32_MAX) {
        put_byte(writer, OP_INT4);
        put_little(writer, value, 4);
    } else {
        /* Two's complement: the highest bit is the sign. */
        unsigned count = 5;
        while (count < 9 && value >> (8 * count - 1) != 0)
            count++;
        put_byte(writer, OP_LONG1);
        put_byte(writer, count);
        put_little(writer, value, count < 8 ? count : 8);
        if (count == 9)
            put_byte(writer, 0);
    }
}

void frag_pickle_put_signed(frag_pickle_writer *writer, int64_t value)
{
    if (value >= 0) {
        frag_pickle_put_unsigned(writer, (uint64_t)value);
        return;
    }
    bool is_short = value >= INT32_MIN;
    put_byte(writer, is_short ? OP_INT4 : OP_LONG1);
    if (!is_short)
        put_byte(writer, 8);
    put_little(writer, (uint64_t)value, is_short ? 4 : 8);
}

void frag_pickle_put_float(frag_pickle_writer *writer, double value)
{
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    put_byte(writer, OP_FLOAT);
    for (unsigned i = 8; i-- > 0;)
        put_byte(writer, (unsigned)(bits >> 8 * i & 0xff));
}

void frag_pickle_put_bool(frag_pickle_writer *writer, bool is_true)
{
    put_byte(writer, is_true ? OP_TRUE : OP_FALSE);
}

void frag_pickle_put_pair(frag_pickle_writer *writer, uint64_t first, uint64_t second)
{
    frag_pickle_put_unsigned(writer, first);
    frag_pickle_put_unsigned(writer, second);
    put_byte(writer, OP_TUPLE2);
}
