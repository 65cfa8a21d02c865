/* The pieces of the .fgt format that its reader and writer share; docs/trace-format.md has it byte
 * by byte. */
#ifndef FRAG_TRACES_FGT_H
#define FRAG_TRACES_FGT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/error.h"

#define FRAG_FGT_MAGIC                                                                             \
    "\x89"                                                                                         \
    "FGT\r\n\x1a\n"
#define FRAG_FGT_MAGIC_BYTES 8
#define FRAG_FGT_MAJOR 1
#define FRAG_FGT_MINOR 0
#define FRAG_FGT_HEADER_BYTES 16
#define FRAG_FGT_SECTION_BYTES 24
#define FRAG_FGT_CHUNK_BYTES 12 /* before the column headers */
#define FRAG_FGT_COLUMN_BYTES 12
#define FRAG_FGT_CHUNK_EVENTS 65536u
/* A chunk holds at most this many events per byte (the writer pads), a table at most so many bytes
 * per byte: what a file makes its reader allocate stays in proportion to the file. */
#define FRAG_FGT_EVENTS_PER_BYTE 8u
#define FRAG_FGT_TABLE_RATIO 1024u

typedef enum frag_fgt_section {
    FRAG_FGT_SUMMARY = 1, /* of one trace */
    FRAG_FGT_STRINGS = 2,
    FRAG_FGT_METADATA = 3,
    FRAG_FGT_FRAMES = 4,
    FRAG_FGT_SITES = 5,
    FRAG_FGT_TABLES = 6, /* streams and pools of one trace */
    FRAG_FGT_EVENTS = 7, /* one chunk */
    FRAG_FGT_END = 8,
} frag_fgt_section;

typedef enum frag_fgt_column {
    FRAG_FGT_COLUMN_OP = 1,
    FRAG_FGT_COLUMN_FLAGS = 2,
    FRAG_FGT_COLUMN_STREAM = 3,
    FRAG_FGT_COLUMN_SLOT = 4, /* plus one, so that none is 0 */
    FRAG_FGT_COLUMN_BYTES_ASKED = 5,
    FRAG_FGT_COLUMN_POOL = 6,
    FRAG_FGT_COLUMN_BLOCK_BYTES = 7,
    FRAG_FGT_COLUMN_HELD_ADDRESS = 8, /* of INITIAL and observed events */
    FRAG_FGT_COLUMN_ADDRESS = 9,      /* of all others */
    FRAG_FGT_COLUMN_TIME = 10,
    FRAG_FGT_COLUMN_SITE = 11,
    FRAG_FGT_COLUMN_NOTE = 12,
    FRAG_FGT_COLUMN_COUNT
} frag_fgt_column;

typedef enum frag_fgt_encoding {
    FRAG_FGT_PLAIN = 0, /* values of width bytes */
    FRAG_FGT_DICTIONARY =
        1,               /* distinct values, then indices of width bytes (0: there is one value) */
    FRAG_FGT_PLANES = 2, /* the lowest byte of every value, then the next one, ... width planes */
} frag_fgt_encoding;

static inline uint64_t frag_fgt_get(const unsigned char *bytes, uint32_t count)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < count; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

static inline void frag_fgt_put(unsigned char *bytes, uint64_t value, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
}

/* Room that any column of a chunk needs, encoded. */
#define FRAG_FGT_RAW_BYTES_MAX (4 + (size_t)FRAG_FGT_CHUNK_EVENTS * 10)

/* Encodes count (1 to FRAG_FGT_CHUNK_EVENTS) values; *width is chosen. Returns the encoded size. */
size_t frag_fgt_encode(frag_fgt_encoding encoding, const uint64_t *values, uint32_t count,
                       unsigned char *raw, uint8_t *width);

/* The reverse; FRAG_E_INPUT when the bytes are not such a column or hold a value above value_max.
 */
bool frag_fgt_decode(frag_fgt_encoding encoding, uint32_t width, const unsigned char *raw,
                     size_t raw_bytes, uint64_t value_max, uint64_t *values, uint32_t count,
                     frag_error *error);

/* Addresses and times differ little from one to the next. is_back undoes it. */
void frag_fgt_difference(uint64_t *values, uint32_t count, bool is_back);

/* Addresses of requests: a block is freed where it was allocated. */
#define FRAG_FGT_GUESSES 65536u
void frag_fgt_guess(uint64_t *addresses, const uint32_t *slots, uint32_t count, uint64_t *guesses,
                    bool is_back);

#endif
