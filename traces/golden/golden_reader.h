/* What the readers of golden logs share, whatever library made them: the members of a line, ids,
 * and keeping what was read. */
#ifndef FRAG_GOLDEN_GOLDEN_READER_H
#define FRAG_GOLDEN_GOLDEN_READER_H

#include "base/json.h"
#include "traces/golden/golden_log.h"

typedef struct frag_golden_reader {
    frag_input *input;
    frag_golden_log *log;
    frag_error *error;
    uint64_t line; /* from 1 */
    frag_json *json;
    size_t line_capacity;
    size_t call_capacity;
    size_t note_capacity;
    size_t figure_capacity;
    size_t block_capacity;
    size_t segment_capacity;
    uint32_t *owners; /* by id: index of the alloc line + 1; 0: nothing is held for it */
    size_t owner_capacity;
    uint64_t id_end; /* ids below were used */
} frag_golden_reader;

/* A member of the current line, by its key. false: it is missing or of another kind or range, and
 * the error says what was found and expected. */
bool frag_golden_read_count(const frag_golden_reader *reader, const char *key, uint64_t max,
                            uint64_t *value);
bool frag_golden_read_text(const frag_golden_reader *reader, const char *key, const char **text);
bool frag_golden_read_flag(const frag_golden_reader *reader, const char *key, bool *flag);
/* The "size" of a request. */
bool frag_golden_read_size(const frag_golden_reader *reader, uint64_t *bytes);
/* Of a fraction line: its "value". */
bool frag_golden_read_fraction(const frag_golden_reader *reader, frag_golden_line *line);
/* Says what the member at a path ("params.event_order") is, or that it is missing, and what was
 * expected; returns false. */
bool frag_golden_fail_member(const frag_golden_reader *reader, const char *key,
                             const char *expected);

uint32_t frag_golden_keep_text(frag_golden_reader *reader, const char *text);
void frag_golden_keep_call(frag_golden_reader *reader, const frag_golden_call *call);
void frag_golden_keep_figure(frag_golden_reader *reader, const char *name, int64_t value);
void frag_golden_keep_line(frag_golden_reader *reader, const frag_golden_line *line);

/* The id of an alloc line, whose is_oom is known; that of a line about a served one. */
bool frag_golden_take_id(frag_golden_reader *reader, frag_golden_line *line);
bool frag_golden_find_id(frag_golden_reader *reader, frag_golden_line *line);

/* ---- golden_torch.c: logs of PyTorch. These take the line in reader->json. */
bool frag_golden_torch_read_head(frag_golden_reader *reader);
bool frag_golden_torch_read_line(frag_golden_reader *reader);

/* ---- golden_peers.c: logs of the pools of other frameworks, likewise. */
bool frag_golden_peer_read_head(frag_golden_reader *reader);
bool frag_golden_peer_read_line(frag_golden_reader *reader);

#endif
