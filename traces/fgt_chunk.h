/* One chunk of a .fgt: from its columns to events. */
#ifndef FRAG_TRACES_FGT_CHUNK_H
#define FRAG_TRACES_FGT_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/codec.h"
#include "sim/base/error.h"
#include "sim/trace.h"
#include "traces/fgt.h"

/* ---- which slot comes next: the one given back last, else the lowest that was never taken */

/* Free slots in a stack, the next one on top. As many fresh ones as are asked for lie below those
 * that were given back, so that taking needs no question. */
typedef struct frag_fgt_slots {
    uint32_t *free;
    size_t count;
    size_t capacity;
    uint32_t fresh; /* slots below this are or were in the stack */
} frag_fgt_slots;

/* Makes room for that many events, whatever they do. */
void frag_fgt_slots_reserve(frag_fgt_slots *slots, uint32_t events);
void frag_fgt_slots_destroy(frag_fgt_slots *slots);

/* Does the event take a slot away from the free ones, or give one back? */
static inline bool frag_fgt_takes_slot(uint32_t op, uint32_t flags)
{
    return op == FRAG_OP_ALLOC && (flags & FRAG_EVENT_FAILED) == 0;
}

static inline bool frag_fgt_gives_slot(uint32_t op, uint32_t flags)
{
    return (op == FRAG_OP_FREE && (flags & FRAG_EVENT_DEFERRED) == 0) || op == FRAG_OP_COMPLETE;
}

/* Events whose addresses replay needs, and that may have a block size. */
static inline bool frag_fgt_is_held(uint32_t op, uint32_t flags)
{
    return frag_op_is_observed(op) || (flags & FRAG_EVENT_INITIAL) != 0;
}

/* ---- reading */

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
