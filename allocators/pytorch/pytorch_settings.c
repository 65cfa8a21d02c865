#include "allocators/pytorch/pytorch_settings.h"

#include <math.h>

#include "base/bytes.h"

void frag_pytorch_settings_reset(frag_pytorch_settings *settings, uint32_t version)
{
    *settings = (frag_pytorch_settings){
        .version = version,
        .tie = version >= 213   ? FRAG_PYTORCH_TIE_SEGMENT_NUMBER
               : version == 212 ? FRAG_PYTORCH_TIE_BLOCK_NUMBER
                                : FRAG_PYTORCH_TIE_ADDRESS,
        .max_split_bytes = FRAG_UNLIMITED,
        .non_split_rounding_bytes = 20 * FRAG_MIB,
        .large_segment_bytes = 20 * FRAG_MIB,
        .key_fraction = 1,
        .memory_fraction = 1,
    };
}

uint64_t frag_pytorch_share_bytes(const frag_pytorch_settings *settings, double share,
                                  uint64_t capacity)
{
    if (share >= 1 && settings->version >= 210)
        return FRAG_UNLIMITED;
    double bytes = share * (double)capacity;
    return (uint64_t)(settings->version >= 213 ? round(bytes) : bytes);
}

uint64_t frag_pytorch_share_capacity(const frag_pytorch_settings *settings, double share,
                                     double part, uint64_t bytes)
{
    uint64_t low = 0;
    uint64_t high = FRAG_UNLIMITED / 4;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        uint64_t limit = frag_pytorch_share_bytes(settings, share, middle);
        if ((uint64_t)(part * (double)limit) >= bytes)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

uint64_t frag_pytorch_round_divided(const frag_pytorch_settings *settings, uint64_t bytes)
{
    uint32_t high = frag_bit_high(bytes);
    uint32_t interval = high <= 20 ? 0 : high - 20 < 15 ? high - 20 : 15;
    uint64_t division = settings->divisions[interval];
    uint64_t least = settings->version < 204 ? 1 : 2;
    if (division < least || bytes <= FRAG_PYTORCH_ROUND * division)
        return frag_align_up(bytes, FRAG_PYTORCH_ROUND);
    uint64_t floor = (uint64_t)1 << high;
    if (bytes == floor || division == 1)
        return bytes;
    uint64_t step = floor >> frag_bit_high(division);
    return frag_align_up(bytes, step);
}
