/* The state of a reader of a .fgt, and what the readers of everything and of a window share. */
#ifndef FRAG_FGT_FGT_READER_H
#define FRAG_FGT_FGT_READER_H

#include "traces/fgt/fgt.h"
#include "traces/fgt/fgt_chunk.h"
#include "traces/formats.h"
#include "traces/window.h"

/* What the file says of a trace, beside the trace itself. */
typedef struct frag_fgt_trace_state {
    frag_trace_stats stats; /* as the summary has it */
    uint64_t event_count;
    uint32_t slot_count;
    size_t capacity;
    frag_fgt_slots slots;
    frag_trace_scan *scan; /* once there are tables */
    bool has_tables;
    bool leaves_out_events; /* decided at the first chunk: the figures are there and enough */
} frag_fgt_trace_state;

typedef struct frag_fgt_reader {
    frag_input *input;
    const frag_load_options *options;
    frag_recording *recording;
    frag_error *error;
    uint32_t major;
    uint32_t trace_count; /* as the header has it */
    frag_fgt_trace_state *states;
    size_t state_capacity;
    size_t trace_capacity;
    size_t metadata_capacity;
    size_t frame_capacity;
    size_t site_capacity;
    size_t site_frame_capacity;
    const unsigned char *payload; /* in the input's window, or what of it was read */
    size_t payload_bytes;
    unsigned char *copy; /* of a payload that is too large for the window */
    size_t copy_capacity;
    frag_fgt_chunk_reader *chunks;
    uint64_t event_total;
    bool is_at_end;
    frag_fgt_index_entry *index;
    size_t index_count;
    frag_fgt_index_entry *met; /* chunks that were read, as the index is to have them */
    size_t met_count;
    size_t met_capacity;
    uint64_t section_offset; /* of the section that is being read */
    uint64_t opening_offset; /* of an opening that waits for its chunk; 0: none */
} frag_fgt_reader;

/* FRAG_E_INPUT where the reader stands: what is wrong, and that the file is damaged. */
bool frag_fgt_fail(frag_fgt_reader *reader, const char *what);

/* Reads the next section; of kinds that a newer minor version added, payload_bytes is 0. */
bool frag_fgt_next_section(frag_fgt_reader *reader, uint32_t *kind);
/* Does what a reader of everything does with it. */
bool frag_fgt_read_known(frag_fgt_reader *reader, uint32_t kind);

/* The payload as a table. */
typedef bool frag_fgt_table_reader(frag_fgt_reader *reader, const unsigned char *in, size_t bytes);
bool frag_fgt_read_unpacked(frag_fgt_reader *reader, frag_fgt_table_reader *read);

/* What the payload of a chunk, or of a piece of an opening, begins with. */
bool frag_fgt_read_chunk_head(frag_fgt_reader *reader, uint32_t *number, uint32_t *count);
/* Appends the events of the payload to the trace. */
bool frag_fgt_read_events(frag_fgt_reader *reader, frag_trace *trace, frag_fgt_trace_state *state,
                          uint32_t count);
void frag_fgt_drop_zero_columns(frag_trace *trace);

/* Reads the window that is asked for, behind the header, if the file has an index and the window is
 * in the trace; else *is_read is false, and everything is to be read from where the reader stands.
 */
bool frag_fgt_read_window(frag_fgt_reader *reader, bool *is_read);

#endif
