/* What the events of a text trace say that does not fit together, though each of them can be read:
 * recordings that lack entries, or begin in the middle of a program, have such things. */
#ifndef FRAG_TEXT_TEXT_TRACE_NOTES_H
#define FRAG_TEXT_TEXT_TRACE_NOTES_H

#include "traces/builder.h"
#include "traces/findings.h"
#include "traces/number_map.h"

typedef struct frag_text_notes {
    frag_findings *findings;
    uint32_t device;
    uint64_t event;
    uint64_t line;
    frag_number_map blocks;   /* live ones: address to slot */
    frag_number_map segments; /* held ones, by address */
    uint64_t *address_of;     /* by slot: where its live block is; 0: not known */
    size_t slot_count;
    bool *is_pool_begun;
    size_t pool_count;
    bool is_capturing;
    uint64_t time_ns; /* of the last event that has one */
} frag_text_notes;

/* Events of another device follow. */
void frag_text_notes_begin(frag_text_notes *notes, uint32_t device);
void frag_text_notes_take(frag_text_notes *notes, const frag_build_event *event, uint64_t line);
void frag_text_notes_destroy(frag_text_notes *notes);

#endif
