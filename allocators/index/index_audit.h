/* Audit of free indexes against the blocks that they name: what the `check` of a policy asks of
 * each of its indexes. */
#ifndef FRAG_INDEX_INDEX_AUDIT_H
#define FRAG_INDEX_INDEX_AUDIT_H

#include "allocators/index/address_index.h"
#include "allocators/index/block_space.h"
#include "allocators/index/free_index.h"

/* Must the block of that id be in the index of that number? */
typedef bool frag_index_audit_belongs(const void *context, uint32_t id, uint32_t number);

/* The first four are set by the caller, who lends them; the rest begins as zero. */
typedef struct frag_index_audit {
    const frag_block *blocks;          /* records by id */
    uint32_t state;                    /* that every indexed block has */
    frag_index_audit_belongs *belongs; /* NULL: any block may be in any index */
    const void *context;               /* handed to belongs */
    uint64_t count;                    /* entries seen so far */
    bool is_wrong;                     /* an entry was not as its block, or in a foreign index */
} frag_index_audit;

/* Audits the index itself, then each entry against its block. The number is the caller's own for
 * this index. false: the index is broken, FRAG_E_INPUT. */
bool frag_index_audit_take(frag_index_audit *audit, const frag_free_index_store *store,
                           const frag_free_index *index, uint32_t number, frag_error *error);

/* The same for an index by address, whose store knows these blocks. */
bool frag_index_audit_take_by_address(frag_index_audit *audit, const frag_address_index *index,
                                      uint32_t number, frag_error *error);

#endif
