/* Settings of PyTorch's native CUDA caching allocator, and what each release makes of them. */
#ifndef FRAG_PYTORCH_PYTORCH_SETTINGS_H
#define FRAG_PYTORCH_PYTORCH_SETTINGS_H

#include "base/bits.h"
#include "sim/policy.h"

#define FRAG_PYTORCH_SMALL_MAX ((uint64_t)1 << 20) /* up to here a rounded request is small */
#define FRAG_PYTORCH_SMALL_SEGMENT ((uint64_t)2 << 20)
#define FRAG_PYTORCH_LARGE_MIN                                                                     \
    ((uint64_t)10 << 20) /* from here a request has a segment of its size */
#define FRAG_PYTORCH_ROUND ((uint64_t)512)
#define FRAG_PYTORCH_SEGMENT_ROUND ((uint64_t)2 << 20)

/* How ties between free blocks of equal size are broken; changed in 2.12 and again in 2.13. */
typedef enum frag_pytorch_tie {
    FRAG_PYTORCH_TIE_ADDRESS,       /* up to 2.11 */
    FRAG_PYTORCH_TIE_BLOCK_NUMBER,  /* 2.12: order in which block records were made */
    FRAG_PYTORCH_TIE_SEGMENT_NUMBER /* from 2.13: order of segments, then address */
} frag_pytorch_tie;

typedef struct frag_pytorch_settings {
    uint32_t version; /* 2.13 is 213 */
    frag_pytorch_tie tie;
    bool is_configured;       /* a settings string was read; the next one is set at run time */
    uint64_t max_split_bytes; /* FRAG_UNLIMITED: none */
    uint64_t non_split_rounding_bytes; /* the slack of oversize blocks */
    uint64_t large_segment_bytes;
    double gc_threshold;    /* 0: off */
    double key_fraction;    /* per_process_memory_fraction as last parsed; throws_on_oom tests it */
    double memory_fraction; /* of the limit set at creation */
    bool has_fraction;      /* a limit is set at creation */
    bool throws_on_oom;
    bool is_expandable;
    bool reuses_at_end;     /* graph_capture_record_stream_reuse */
    double reserve_ratio;   /* address space of one expandable segment: share of the capacity */
    uint64_t reserve_bytes; /* ... or bytes; both 0: 9/8 of the capacity */
    bool has_divisions;
    uint64_t divisions[16]; /* by power of two of MiB; 0 or 1: off */
} frag_pytorch_settings;

/* The defaults of a release. */
void frag_pytorch_settings_reset(frag_pytorch_settings *settings, uint32_t version);

/* The memory limit for a share of the capacity; FRAG_UNLIMITED: none. Up to 2.9 the whole card is a
 * limit, too; from 2.13 on bytes are rounded to nearest, before they were truncated. */
uint64_t frag_pytorch_share_bytes(const frag_pytorch_settings *settings, double share,
                                  uint64_t capacity);
/* The least capacity of which the part (of 1: all, or the garbage_collection_threshold) of the
 * share is so many bytes, or more. share: above 0, and one that limits. */
uint64_t frag_pytorch_share_capacity(const frag_pytorch_settings *settings, double share,
                                     double part, uint64_t bytes);

/* The rounding of roundup_power2_divisions; falls back to multiples of 512. */
uint64_t frag_pytorch_round_divided(const frag_pytorch_settings *settings, uint64_t bytes);

/* A request's size as the allocator looks for it: round_size of the library. */
static inline uint64_t frag_pytorch_round(const frag_pytorch_settings *settings, uint64_t bytes)
{
    if (FRAG_UNLIKELY(settings->has_divisions))
        return frag_pytorch_round_divided(settings, bytes);
    return frag_align_up(bytes, FRAG_PYTORCH_ROUND);
}

#endif
