/* How frameworks name private pools; shared by traces and policies. */
#ifndef FRAG_SIM_POOL_ID_H
#define FRAG_SIM_POOL_ID_H

#include <stdint.h>

typedef struct frag_pool_id {
    uint64_t high; /* as the framework names it; {0, 0} is the default pool */
    uint64_t low;
} frag_pool_id;

#endif
