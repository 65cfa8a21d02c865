/* The contract between fraglab and the module that speaks MPI: a shared object that the one binary
 * opens when it was started as one of several processes (ranks). So the binary itself needs no MPI
 * library.
 *
 * A rank sends bytes to another; what one rank sends to one other arrives in that order. All
 * functions are called from the thread that joined. An error within the MPI library ends every rank
 * of the job with the library's own words. */
#ifndef FRAG_CLUSTER_RANK_MODULE_H
#define FRAG_CLUSTER_RANK_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAG_RANK_MODULE_ABI 1
/* The module's one exported symbol: a frag_rank_module. */
#define FRAG_RANK_MODULE_SYMBOL "frag_rank_module_table"

typedef struct frag_rank_facts {
    uint32_t rank;   /* of this process, from 0 */
    uint32_t count;  /* of all processes */
    uint32_t shared; /* processes that may use some core that this one may use; itself included */
    char host[256];
} frag_rank_facts;

typedef struct frag_rank_module {
    uint32_t abi;
    /* "Open MPI v4.1.4"; may be asked without joining. */
    void (*library)(char *text, size_t text_bytes);
    /* Waits for all ranks. Once in the life of a process. */
    void (*join)(frag_rank_facts *facts);
    /* At most INT_MAX bytes. Returns when bytes may be used again, for long messages not before the
     * other rank receives. */
    void (*send)(uint32_t to, const void *bytes, size_t count);
    /* Is a message there? Its sender and length. Does not wait. */
    bool (*poll)(uint32_t *from, size_t *count);
    /* The next message of that rank, of that length. */
    void (*receive)(uint32_t from, void *bytes, size_t count);
    /* Waits for all ranks, which must have received what was sent to them. */
    void (*leave)(void);
} frag_rank_module;

/* This process as one of several that were started together. */
typedef struct frag_ranks {
    const frag_rank_module *module; /* NULL: this process is alone */
    frag_rank_facts facts;
} frag_ranks;

#endif
