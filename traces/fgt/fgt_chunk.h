/* One chunk of a .fgt: from its columns to events. */
#ifndef FRAG_FGT_FGT_CHUNK_H
#define FRAG_FGT_FGT_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/formats/codec.h"
#include "base/error.h"
#include "sim/trace/trace.h"
#include "traces/fgt/fgt.h"
#include "traces/fgt/fgt_events.h"

/* A column as it lies in the file. */
typedef struct frag_fgt_place {
    frag_fgt_coding coding;
    uint32_t raw_bytes;
    uint32_t stored_bytes;
    const unsigned char *stored; /* NULL: the chunk has no such column */
} frag_fgt_place;

typedef struct frag_fgt_chunk {
    uint32_t major;               /* version of the file */
    const frag_fgt_place *places; /* FRAG_FGT_COLUMN_COUNT; the op's is there */
    frag_trace *trace;            /* with room for the events, and for each column that it has */
    frag_fgt_slots *slots;        /* of the trace */
    const frag_recording *recording;
    frag_trace_scan *scan; /* of the trace; NULL: its tables are not known yet */
    uint64_t capacity;     /* events that columns are to have room for */
    uint64_t first;        /* index of the chunk's first event in the trace */
    uint32_t count;        /* its events */
    bool with_sites;
    bool with_columns;
} frag_fgt_chunk;

/* Memory for one chunk at a time, used again for the next. */
typedef struct frag_fgt_chunk_reader frag_fgt_chunk_reader;
frag_fgt_chunk_reader *frag_fgt_chunk_reader_create(void);
void frag_fgt_chunk_reader_destroy(frag_fgt_chunk_reader *reader);

/* Fills events and columns; what they say is for frag_trace_accept to judge. FRAG_E_INPUT when a
 * column cannot be decoded. */
bool frag_fgt_chunk_read(frag_fgt_chunk_reader *reader, const frag_fgt_chunk *chunk,
                         frag_error *error);

/* For the tables of a recording, which are compressed alike. */
frag_unpacker *frag_fgt_chunk_unpacker(frag_fgt_chunk_reader *reader);

#endif
