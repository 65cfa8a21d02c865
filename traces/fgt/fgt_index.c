/* The payload of the index of a .fgt. */
#include "base/memory.h"
#include "traces/fgt/fgt.h"

#define HEAD_BYTES 8u

void frag_fgt_add(frag_text *text, uint64_t value, uint32_t bytes)
{
    unsigned char number[8];
    frag_fgt_put(number, value, bytes);
    frag_text_add_bytes(text, (const char *)number, bytes);
}

void frag_fgt_index_put(const frag_fgt_index_entry *entries, size_t count, frag_text *payload)
{
    size_t before = payload->length;
    frag_fgt_add(payload, count, 4);
    frag_fgt_add(payload, FRAG_FGT_INDEX_ENTRY_BYTES, 4);
    for (size_t i = 0; i < count; i++) {
        frag_fgt_add(payload, entries[i].trace, 4);
        frag_fgt_add(payload, entries[i].count, 4);
        frag_fgt_add(payload, entries[i].first, 8);
        frag_fgt_add(payload, entries[i].offset, 8);
        frag_fgt_add(payload, entries[i].time_first_ns, 8);
        frag_fgt_add(payload, entries[i].time_last_ns, 8);
        frag_fgt_add(payload, entries[i].opening, 8);
    }
    frag_fgt_add(payload, payload->length - before + FRAG_FGT_INDEX_TAIL_BYTES, 8);
}

frag_fgt_index_entry *frag_fgt_index_get(const unsigned char *payload, size_t bytes, size_t *count)
{
    if (bytes < HEAD_BYTES + FRAG_FGT_INDEX_TAIL_BYTES)
        return NULL;
    uint64_t entry_count = frag_fgt_get(payload, 4);
    uint64_t entry_bytes = frag_fgt_get(payload + 4, 4);
    if (entry_bytes < FRAG_FGT_INDEX_ENTRY_BYTES ||
        bytes != HEAD_BYTES + entry_count * entry_bytes + FRAG_FGT_INDEX_TAIL_BYTES ||
        frag_fgt_get(payload + bytes - FRAG_FGT_INDEX_TAIL_BYTES, 8) != bytes)
        return NULL;
    *count = (size_t)entry_count;
    frag_fgt_index_entry *entries = frag_alloc(*count, sizeof *entries);
    const unsigned char *in = payload + HEAD_BYTES;
    for (size_t i = 0; i < *count; i++, in += entry_bytes)
        entries[i] = (frag_fgt_index_entry){
            .trace = (uint32_t)frag_fgt_get(in, 4),
            .count = (uint32_t)frag_fgt_get(in + 4, 4),
            .first = frag_fgt_get(in + 8, 8),
            .offset = frag_fgt_get(in + 16, 8),
            .time_first_ns = frag_fgt_get(in + 24, 8),
            .time_last_ns = frag_fgt_get(in + 32, 8),
            .opening = frag_fgt_get(in + 40, 8),
        };
    return entries;
}
