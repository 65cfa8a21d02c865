/* The pieces of the .fgt format that its reader and writer share; docs/trace-format.md has it byte
 * by byte. */
#ifndef FRAG_FGT_FGT_H
#define FRAG_FGT_FGT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/text.h"
#include "sim/trace/trace.h"
#include "sim/trace/trace_figures.h"

#define FRAG_FGT_MAGIC                                                                             \
    "\x89"                                                                                         \
    "FGT\r\n\x1a\n"
#define FRAG_FGT_MAGIC_BYTES 8
#define FRAG_FGT_MAJOR 3 /* what is written; files of versions 1 and 2 are read too */
#define FRAG_FGT_MINOR 2
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
    FRAG_FGT_FIGURES = 9,        /* of one trace */
    FRAG_FGT_OPENING = 10,       /* events from before a chunk that have a say in it */
    FRAG_FGT_OPENING_SLOTS = 11, /* the free slots there; ends an opening */
    FRAG_FGT_INDEX = 12,
    FRAG_FGT_KIND_LAST = FRAG_FGT_INDEX
} frag_fgt_section;

typedef enum frag_fgt_column {
    FRAG_FGT_COLUMN_OP = 1,
    FRAG_FGT_COLUMN_FLAGS = 2,
    FRAG_FGT_COLUMN_STREAM = 3,
    FRAG_FGT_COLUMN_SLOT = 4,        /* plus one, so that none is 0; of events that take none */
    FRAG_FGT_COLUMN_BYTES_ASKED = 5, /* of allocs */
    FRAG_FGT_COLUMN_POOL = 6,
    FRAG_FGT_COLUMN_BLOCK_BYTES = 7,  /* of INITIAL and observed events */
    FRAG_FGT_COLUMN_HELD_ADDRESS = 8, /* of the same */
    FRAG_FGT_COLUMN_ADDRESS = 9,      /* of all others */
    FRAG_FGT_COLUMN_TIME = 10,
    FRAG_FGT_COLUMN_SITE = 11,
    FRAG_FGT_COLUMN_NOTE = 12,
    FRAG_FGT_COLUMN_TAKEN_SLOT = 13,  /* plus one; of events that take one. Absent: as foreseen */
    FRAG_FGT_COLUMN_OTHER_BYTES = 14, /* of events that are no allocs */
    FRAG_FGT_COLUMN_COUNT
} frag_fgt_column;

/* Is it a part of events, or stored beside them? */
static inline bool frag_fgt_is_of_event(frag_fgt_column column)
{
    return column <= FRAG_FGT_COLUMN_BYTES_ASKED || column >= FRAG_FGT_COLUMN_TAKEN_SLOT;
}

typedef enum frag_fgt_encoding {
    FRAG_FGT_PLAIN = 0,      /* values of width bytes */
    FRAG_FGT_DICTIONARY = 1, /* distinct values, then places among them of width bytes */
    FRAG_FGT_PLANES = 2, /* the lowest byte of every value, then the next one, ... width planes */
    FRAG_FGT_BITS = 3,   /* distinct values, then places among them of width bits */
} frag_fgt_encoding;

typedef struct frag_fgt_coding {
    uint8_t encoding;
    uint8_t width;       /* 0: there is one distinct value, and no places */
    uint8_t value_width; /* bytes of each distinct value; 0: 8 */
} frag_fgt_coding;

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

/* The same behind a text. */
void frag_fgt_add(frag_text *text, uint64_t value, uint32_t bytes);

/* Room that a column of count values needs at most, encoded. */
#define FRAG_FGT_RAW_BYTES_MAX(count) (4 + (size_t)(count)*10)

/* Memory for encoding one column at a time, and what several encodings of it share. */
typedef struct frag_fgt_encoder frag_fgt_encoder;
frag_fgt_encoder *frag_fgt_encoder_create(void);
void frag_fgt_encoder_destroy(frag_fgt_encoder *encoder);

/* count (1 to FRAG_FGT_CHUNK_EVENTS) values, which stay as they are until the next. */
void frag_fgt_encoder_take(frag_fgt_encoder *encoder, const uint64_t *values, uint32_t count);

/* Encodes the values that were taken; the widths are chosen. Returns the size. */
size_t frag_fgt_encode(frag_fgt_encoder *encoder, frag_fgt_encoding encoding, unsigned char *raw,
                       frag_fgt_coding *coding);

/* The values of one column, from the first to the last, some at a time: so that those of several
 * columns meet while they are in the nearest cache. */
typedef struct frag_fgt_cursor {
    frag_fgt_coding coding;
    const unsigned char *places; /* NULL: every value is the constant */
    size_t places_bytes;
    uint64_t *table; /* distinct values; NULL: the values stand for themselves */
    uint32_t distinct;
    uint32_t count;
    uint32_t next;
    uint64_t constant;
    uint64_t value_max; /* no value is above */
} frag_fgt_cursor;

/* A column of count values that is in raw, which outlives the cursor. value_max is one less than a
 * power of two. FRAG_E_INPUT when the bytes cannot be such a column; then nothing is to be closed.
 * A cursor that is all zero, but for its count, is a column of zeros. */
bool frag_fgt_cursor_open(frag_fgt_cursor *cursor, frag_fgt_coding coding, const unsigned char *raw,
                          size_t raw_bytes, uint64_t value_max, uint32_t count, frag_error *error);

/* The next count values; FRAG_E_INPUT when one is above value_max or not in the dictionary. */
bool frag_fgt_cursor_next(frag_fgt_cursor *cursor, uint64_t *values, uint32_t count,
                          frag_error *error);
/* The same of a column that was opened with a value_max of UINT32_MAX or less. */
bool frag_fgt_cursor_next_32(frag_fgt_cursor *cursor, uint32_t *values, uint32_t count,
                             frag_error *error);

/* Is every value 0, whatever next would say? */
static inline bool frag_fgt_cursor_is_zero(const frag_fgt_cursor *cursor)
{
    return cursor->places == NULL && cursor->constant == 0;
}

/* All values of a column that has none above 255. */
bool frag_fgt_cursor_bytes(frag_fgt_cursor *cursor, uint8_t *values, frag_error *error);
void frag_fgt_cursor_close(frag_fgt_cursor *cursor);

/* Times differ little from one to the next: makes values differences, the first from last, or
 * is_back undoes it. Returns the last value. */
uint64_t frag_fgt_difference(uint64_t *values, uint32_t count, uint64_t last, bool is_back);

/* Addresses of requests: a block is freed where it was allocated. Turns an address into what is
 * stored, or is_back the other way; guesses begin as zeros. */
#define FRAG_FGT_GUESSES 65536u
uint64_t frag_fgt_guess(uint64_t *guesses, uint32_t slot, uint64_t value, bool is_back);

/* The numbers of a trace that its summary holds, in their order in the file. */
#define FRAG_FGT_SUMMARY_NUMBERS 13
void frag_fgt_summary_numbers(frag_trace_stats *stats, uint64_t *numbers[FRAG_FGT_SUMMARY_NUMBERS]);

/* The table of figures, behind the number of its trace: adds it, or makes figures of it (NULL: its
 * size is wrong). */
void frag_fgt_figures_put(const frag_trace_figures *figures, frag_text *table);
frag_trace_figures *frag_fgt_figures_get(const unsigned char *in, size_t bytes);

/* ---- the index */

/* Where a chunk is, and what tells whether a window needs it. */
#define FRAG_FGT_INDEX_ENTRY_BYTES 48u
#define FRAG_FGT_INDEX_TAIL_BYTES 8u /* its size once more, in front of the end mark */
typedef struct frag_fgt_index_entry {
    uint32_t trace;
    uint32_t count;
    uint64_t first;         /* event */
    uint64_t offset;        /* of its section */
    uint64_t time_first_ns; /* the earliest; 0: no event has a time */
    uint64_t time_last_ns;  /* the latest */
    uint64_t opening;       /* offset of the first section of its opening; 0: it has none */
} frag_fgt_index_entry;

/* The payload of the index. */
void frag_fgt_index_put(const frag_fgt_index_entry *entries, size_t count, frag_text *payload);
/* The entries, for the caller to free; NULL: the payload is none. */
frag_fgt_index_entry *frag_fgt_index_get(const unsigned char *payload, size_t bytes, size_t *count);

bool frag_fgt_write(const frag_recording *recording, FILE *stream, frag_error *error);

/* The same with other sizes than the usual ones, which suit large traces. */
typedef struct frag_fgt_sizes {
    uint32_t chunk_events;   /* up to FRAG_FGT_CHUNK_EVENTS */
    uint64_t opening_events; /* there is an opening after so many, */
    uint32_t opening_ratio;  /* and so many times the events that one has */
} frag_fgt_sizes;
bool frag_fgt_write_sized(const frag_recording *recording, frag_fgt_sizes sizes, FILE *stream,
                          frag_error *error);

#endif
