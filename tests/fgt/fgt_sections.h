/* Looking into the bytes of a .fgt, and repairing them. */
#ifndef FRAG_FGT_FGT_SECTIONS_H
#define FRAG_FGT_FGT_SECTIONS_H

#include "base/digest.h"
#include "traces/fgt/fgt.h"

/* Where the n-th section begins. */
static inline size_t section_at(const char *file, size_t number)
{
    size_t at = FRAG_FGT_HEADER_BYTES;
    while (number-- > 0)
        at +=
            FRAG_FGT_SECTION_BYTES + (size_t)frag_fgt_get((const unsigned char *)file + at + 8, 8);
    return at;
}

static inline size_t index_at(const char *file, size_t bytes)
{
    size_t number = 0;
    while (section_at(file, number) < bytes && file[section_at(file, number)] != FRAG_FGT_INDEX)
        number++;
    return section_at(file, number);
}

/* Damages bytes behind the checksums, which are repaired: the reader itself must stand it. */
static inline void repair_checksums(unsigned char *file, size_t bytes)
{
    size_t at = FRAG_FGT_HEADER_BYTES;
    while (bytes - at >= FRAG_FGT_SECTION_BYTES) {
        uint64_t length = frag_fgt_get(file + at + 8, 8);
        if (length > bytes - at - FRAG_FGT_SECTION_BYTES)
            return;
        frag_fgt_put(file + at + 16,
                     frag_hash_bytes(file + at + FRAG_FGT_SECTION_BYTES, (size_t)length), 8);
        at += FRAG_FGT_SECTION_BYTES + (size_t)length;
    }
}

#endif
