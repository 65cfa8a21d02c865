/* What the resources of RMM share: options, units, and the pool that others stand on. */
#ifndef FRAG_FRAMEWORKS_RMM_H
#define FRAG_FRAMEWORKS_RMM_H

#include "allocators/frameworks/composed.h"

/* What the pool, fixed size and arena round requests to. */
#define FRAG_RMM_UNIT 256u
/* What a resource asks of the one below it is rounded to this. */
#define FRAG_RMM_ASK_UNIT 16u
/* The number of the default stream, whose raw handle is 0 and which construction works on. Where
 * the program never names it, it is one behind the program's. */
uint32_t frag_rmm_default_stream(const frag_policy_setup *setup);

#define FRAG_RMM_INITIAL_OPTION                                                                    \
    {                                                                                              \
        .key = "initial_pool_size", .type = FRAG_OPTION_BYTES, .default_text = "0", .min = 0,      \
        .max = 1024 * FRAG_GIB, .help = "what the pool takes at construction, a multiple of 256"   \
    }
#define FRAG_RMM_MAXIMUM_OPTION                                                                    \
    {                                                                                              \
        .key = "maximum_pool_size", .type = FRAG_OPTION_BYTES, .default_text = "unlimited",        \
        .min = 0, .max = FRAG_UNLIMITED, .help = "the most it takes, a multiple of 256"            \
    }
#define FRAG_RMM_ORDER_OPTION                                                                      \
    {                                                                                              \
        .key = "event_order", .type = FRAG_OPTION_ENUM, .default_text = "up",                      \
        .choices = "up|down",                                                                      \
        .help = "streams' lists are searched by the handles of their events; these count up in "   \
                "the order in which streams appear, or down"                                       \
    }

/* Are the sizes what RMM takes? false: FRAG_E_USAGE. */
bool frag_rmm_pool_check(const frag_option_value *initial, const frag_option_value *maximum,
                         frag_error *error);
/* A pool over the device. The first segment may be refused: it serves nothing then. */
void frag_rmm_pool_create(frag_composed *pool, const frag_policy_setup *setup,
                          const frag_composed_scale *scale, uint64_t initial, uint64_t maximum,
                          frag_event_counter *counter);

#endif
