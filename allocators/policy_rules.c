#include "allocators/policy_rules.h"

#include <stddef.h>
#include <string.h>

/* What several policies say alike. */
#define TO_ALIGN "to multiples of align"
#define LOW_END "always; the low end is handed out, the remainder stays free"
#define NEIGHBOURS "with free neighbours, at once"
#define OF_ITS_SEGMENT "with free neighbours of its segment, at once"
#define NEVER "never"
#define FIT_JOINS "with free neighbours of the range or of its segment, at once"
#define IGNORED "ignored: every stream may use a block as soon as it is free"
#define FIT_CUTS                                                                                   \
    "unless the remainder is below min_split; the low end is "                                     \
    "handed out. With max_split, larger holes are not split "                                      \
    "and serve only requests above it"
#define MAPPED_AT_ITS_END                                                                          \
    "one address range, mapped at its end in steps of grow, or by just the pages "                 \
    "needed if the device has no room for a step; the last "                                       \
    "hole is extended. "
#define ONE_RANGE                                                                                  \
    MAPPED_AT_ITS_END "What is free at the end goes back on empty_cache and before a request "     \
                      "fails"
#define FIT_GROWS                                                                                  \
    MAPPED_AT_ITS_END "Or device mallocs in multiples of grow (space=segments). Free memory at "   \
                      "the end, or all free segments, goes back "                                  \
                      "on empty_cache and before a request fails; then the "                       \
                      "device is asked again"
#define SLAB_ROUNDS "multiples of 512 bytes; above large to whole pages"
#define SLAB_TAKES                                                                                 \
    "the lowest free slot in the slab of its class that got "                                      \
    "one last (newly opened, or full before); else in a free "                                     \
    "slab. Above large the smallest free segment that is "                                         \
    "large enough, if it exceeds the request by at most the "                                      \
    "share surplus"
#define SLAB_CUTS "slabs into equal slots of one class; slots and large segments never"
#define SLAB_JOINS "never; a slab whose slots are all free serves any class"
#define SLAB_GROWS                                                                                 \
    "device mallocs of slab bytes, above large of the "                                            \
    "request. Up to keep bytes of free ones are cached; one "                                      \
    "more goes back at once, and all go back on empty_cache "                                      \
    "and when the device refuses, which is then asked again"
#define GOOD_FIT "the newest hole of the first non-empty list whose holes are all large enough"
#define NEWEST_OF_SIZE "the newest of exactly the rounded size"
#define MXNET_GROWS                                                                                \
    "device mallocs of exactly the rounded request. Everything cached goes back first if less "    \
    "than reserve "                                                                                \
    "percent of the device (version=2.0: nothing) would stay "                                     \
    "free, and again when the device refuses, which is then "                                      \
    "asked once more; of one size the longest free goes first"
#define RMM_STREAMS                                                                                \
    "free blocks belong to the stream that freed them; a stream that takes another's waits for it"

static const frag_policy_rules rules[] = {
    {.policy = "pytorch",
     .rounding = "to multiples of 512, or to a share of a power of two (roundup_power2_divisions)",
     .takes = "the smallest of its stream, pool and size class (up to 1 MiB, or above); of equal "
              "ones the lowest, from 2.12 on that whose record was made first, from 2.13 on that "
              "in the oldest segment. Oversize blocks (max_split_size_mb) only for oversize "
              "requests, with a surplus of at most max_non_split_rounding_mb",
     .cuts = "if the remainder has at least 512 bytes (small or expandable blocks) or more than 1 "
             "MiB (others); the low end is handed out. Oversize blocks never",
     .joins = "with free neighbours of its segment, once every stream that used it is done",
     .grows = "device mallocs of 2 MiB for small requests, of large_segment_size_mb for those "
              "below 10 MiB, else of the request in multiples of 2 MiB; or pages mapped where "
              "expandable_segments end. Above garbage_collection_threshold old cached segments go "
              "back first; when the device refuses, oversize ones that are large enough, then "
              "all, and it is asked again",
     .streams = "a block stays with the stream that its segment was taken for"},
    {.policy = "best-fit",
     .rounding = TO_ALIGN,
     .takes = "the smallest hole that is large enough; of equal ones the lowest",
     .cuts = FIT_CUTS,
     .joins = FIT_JOINS,
     .grows = FIT_GROWS,
     .streams = IGNORED},
    {.policy = "first-fit",
     .rounding = TO_ALIGN,
     .takes = "the lowest hole that is large enough",
     .cuts = FIT_CUTS,
     .joins = FIT_JOINS,
     .grows = FIT_GROWS,
     .streams = IGNORED},
    {.policy = "next-fit",
     .rounding = TO_ALIGN,
     .takes = "the first hole that is large enough, searching from the end of the last grant (or "
              "the start of the hole that now covers it), then from the start of memory",
     .cuts = FIT_CUTS,
     .joins = FIT_JOINS,
     .grows = FIT_GROWS,
     .streams = IGNORED},
    {.policy = "worst-fit",
     .rounding = TO_ALIGN,
     .takes = "the largest hole; of equal ones the lowest",
     .cuts = FIT_CUTS,
     .joins = FIT_JOINS,
     .grows = FIT_GROWS,
     .streams = IGNORED},
    {.policy = "size-class",
     .rounding = "to the next of the classes, 4 to a doubling, all " SLAB_ROUNDS,
     .takes = SLAB_TAKES,
     .cuts = SLAB_CUTS,
     .joins = SLAB_JOINS,
     .grows = SLAB_GROWS,
     .streams = IGNORED},
    {.policy = "slab",
     .rounding = "to the next of the classes, 1 to a doubling, all " SLAB_ROUNDS,
     .takes = SLAB_TAKES,
     .cuts = SLAB_CUTS,
     .joins = SLAB_JOINS,
     .grows = SLAB_GROWS,
     .streams = IGNORED},
    {.policy = "buddy",
     .rounding = "to one of the sizes: min_block times powers of two, or as sizes= says",
     .takes = "the smallest free block that is large enough, of equal ones the lowest; where the "
              "device has no room for its pages, the smallest that lies on mapped ones",
     .cuts = "in two until a part has the size: the lower part is used, or the upper one if that "
             "is smaller, large enough and mapped",
     .joins = "with its buddy, the other part of the block it was split from, if that is wholly "
              "free; then again, one level up",
     .grows = "one address range, mapped as far as blocks reach, in steps of grow, or by just the "
              "pages needed if the device has no room for a step. Free memory at its end goes "
              "back on empty_cache and before a request fails",
     .streams = IGNORED},
    {.policy = "tlsf",
     .rounding = TO_ALIGN,
     .takes = GOOD_FIT "; 2^sli lists to a doubling. With search_own then the newest hole of the "
                       "list of its own size that is large enough",
     .cuts = LOW_END,
     .joins = NEIGHBOURS,
     .grows = ONE_RANGE,
     .streams = IGNORED},
    {.policy = "tlsf-conte",
     .rounding = "to multiples of 8, at least 24, and 8 for the record of the next block",
     .takes = "the newest hole of the first list whose holes all are large enough; lists are 8 "
              "bytes apart up to 256, then 32 to a doubling. With align above 8 one that is "
              "larger by align and 32 bytes; the part before the aligned place is freed",
     .cuts = "if the remainder has at least 32 bytes, its record included; the low end is handed "
             "out",
     .joins = NEIGHBOURS,
     .grows = "with size, one device malloc at the start, and no more. Without, " ONE_RANGE,
     .streams = IGNORED},
    {.policy = "tlsf-vma",
     .rounding = TO_ALIGN "; with round=false only offsets are rounded, and the bytes skipped "
                          "before one are a hole",
     .takes = "the newest hole of the first list above the request's own, where all are large "
              "enough; else the end of memory; else one of its own list, even if that fits "
              "exactly. min_memory: own list, end, lists above; min_offset: the lowest. Lists "
              "are 8 bytes apart up to 256, then 32 to a doubling",
     .cuts = LOW_END,
     .joins = "with free neighbours, at once; what touches the end of memory is in no list",
     .grows = "with size, one device malloc at the start, and no more. Without, " ONE_RANGE,
     .streams = IGNORED},
    {.policy = "half-fit",
     .rounding = TO_ALIGN,
     .takes = GOOD_FIT "; one list to a doubling",
     .cuts = LOW_END,
     .joins = NEIGHBOURS,
     .grows = ONE_RANGE,
     .streams = IGNORED},
    {.policy = "direct",
     .rounding = "to whole pages of the device",
     .takes = "none: nothing is kept",
     .cuts = NEVER,
     .joins = NEVER,
     .grows = "a device malloc for each request, a device free for each release",
     .streams = "ignored: no block is free for a stream to use"},
    {.policy = "composed",
     .rounding = "as rounding= says: to multiples of unit, at least to unit, to powers of two of "
                 "at least unit, or to multiples of unit; the last two above linear to multiples "
                 "of that",
     .takes = "of the lists chosen by lists=, the smallest that is large enough, then the lowest; "
              "or the newest of exactly the size (pick=exact)",
     .cuts = "as split= says: always (low or high end handed out), only if the block is at least "
             "twice the request or the remainder at least surplus, or never",
     .joins = "as merge= says: with free neighbours of its list in its segment, also across "
              "segments that touch, or never",
     .grows = "as grow= and give_back= say",
     .streams = "ignored, or a free block stays with the stream it was first taken for "
                "(lists=by-stream), or goes to the one that freed it (lists=shared)"},
    {.policy = "tf-bfc",
     .rounding = "to multiples of 256",
     .takes = "the smallest chunk that is large enough; of equal ones the lowest",
     .cuts = "if the chunk is at least twice the request or the remainder at least 128 MiB "
             "(fragmentation_fraction); the low end is handed out",
     .joins = OF_ITS_SEGMENT,
     .grows = "regions of 2 MiB that double, each smaller by a tenth for every refusal of the "
              "device; or all of memory_limit at once (allow_growth=false). They stay, unless "
              "garbage_collection gives idle ones back before a request fails",
     .streams = IGNORED},
    {.policy = "ort-arena",
     .rounding = "to multiples of 256",
     .takes = "the smallest chunk that is large enough; of equal ones the lowest",
     .cuts = "if the chunk is at least twice the request or the remainder at least "
             "max_dead_bytes_per_chunk; the low end is handed out",
     .joins = OF_ITS_SEGMENT,
     .grows = "regions of 1 MiB that double up to 1 GiB, each smaller by a tenth for every "
              "refusal of the device; or of the request (kSameAsRequested). Idle ones go back on "
              "empty_cache, but for the first where they double",
     .streams = IGNORED},
    {.policy = "rmm-pool",
     .rounding = "to multiples of 256",
     .takes = "the smallest of its stream, of equal ones the lowest; then of other streams, in "
              "the order of their events; then of all blocks of such a stream, coalesced with its "
              "own",
     .cuts = LOW_END,
     .joins = "with free neighbours of its stream in its segment, at once",
     .grows = "device mallocs as large as all before, at least the request, halved while the "
              "device refuses; nothing goes back",
     .streams = RMM_STREAMS},
    {.policy = "rmm-binning",
     .rounding = "to the block of its bin, powers of two from min_size_exponent to "
                 "max_size_exponent; above as the upstream does",
     .takes = "the oldest of its bin and stream, then of other streams; above the bins as "
              "rmm-pool, or no cached block (upstream=cuda)",
     .cuts = "slabs into equal blocks of a bin; above the bins as the upstream does",
     .joins = "never; above the bins as the upstream does",
     .grows = "slabs of 128 blocks, taken from the upstream, that stay",
     .streams = RMM_STREAMS},
    {.policy = "rmm-fixed-size",
     .rounding = "to block_size; larger requests fail",
     .takes = "the oldest of its stream, then of other streams",
     .cuts = "slabs into equal blocks",
     .joins = NEVER,
     .grows = "slabs of blocks_to_preallocate blocks, the first at construction, that stay",
     .streams = RMM_STREAMS},
    {.policy = "rmm-arena",
     .rounding = "to multiples of 256, or to four classes to a doubling (size_classes)",
     .takes = "the lowest of its stream's superblocks; for requests above 1 MiB, or if its own "
              "have none, of the global superblocks, which then belong to the stream",
     .cuts = "always; the low end is handed out. Superblocks of at least 1 MiB are split off "
             "empty ones",
     .joins = "with free neighbours of its superblock; superblocks that touch, when they come "
              "back empty to the global ones",
     .grows = "one device malloc of arena_size at construction, and never more; a request that "
              "fails makes all streams give their superblocks back, and is tried again",
     .streams = "superblocks belong to a stream until it gives them back"},
    {.policy = "cupy",
     .rounding = "to multiples of 512",
     .takes = "the smallest chunk of its stream that is large enough; of equal ones the lowest "
              "(CuPy: any)",
     .cuts = LOW_END,
     .joins = OF_ITS_SEGMENT,
     .grows = "device mallocs of exactly the request; idle ones go back on empty_cache, and when "
              "the limit or the device refuses a malloc",
     .streams = "a chunk stays with the stream that its segment was taken for"},
    {.policy = "paddle-auto-growth",
     .rounding = "to multiples of alignment",
     .takes = "the smallest block that is large enough, of the small or the large pool; of equal "
              "ones the lowest",
     .cuts = "always; the high end is handed out, the remainder stays free",
     .joins = OF_ITS_SEGMENT,
     .grows = "chunks of the request, at least chunk_size; idle ones go back on empty_cache, when "
              "the device refuses, and with free_idle_chunk at once",
     .streams = IGNORED},
    {.policy = "vma",
     .rounding = TO_ALIGN ", as the driver does for buffers",
     .takes = "in the first memory block that has room, as tlsf-vma does, with lists 64 bytes "
              "apart up to 256. Blocks come in the order of their free bytes, the fewest first, "
              "with min_time the most; but each call swaps only the first pair that is out of "
              "order",
     .cuts = LOW_END,
     .joins = OF_ITS_SEGMENT,
     .grows = "blocks of preferred_block_size (an eighth of a heap up to 1 GiB); the first ones "
              "of an eighth, a quarter, a half of it, if that is twice the request. Above half of "
              "it a device malloc of the request alone, and also when a block is refused or would "
              "use more than 80 % of the heap. One empty block is kept (none while more than that "
              "share is used); the block that a free made empty last goes back",
     .streams = IGNORED},
    {.policy = "mxnet-naive",
     .rounding = "to multiples of page_size; results above large_alloc_round_size to multiples of "
                 "that",
     .takes = NEWEST_OF_SIZE,
     .cuts = NEVER,
     .joins = NEVER,
     .grows = MXNET_GROWS ", size by size in the order of a hash table (std::unordered_map as GCC "
                          "has it)",
     .streams = IGNORED},
    {.policy = "mxnet-round",
     .rounding =
         "to powers of two; above 2^round_linear_cutoff to multiples of that. Requests above "
         "16 GiB fail: the library crashes on them",
     .takes = NEWEST_OF_SIZE,
     .cuts = NEVER,
     .joins = NEVER,
     .grows = MXNET_GROWS ", the smallest sizes first",
     .streams = IGNORED},
    {.policy = "cuda-async",
     .rounding = "to multiples of 512",
     .takes = "the smallest, of equal ones the lowest, of what its stream freed or all may use; "
              "then of what streams freed before it waited for them (follow_events); of other "
              "streams the smallest of each, if that is seen to be done (opportunistic); after "
              "new memory was refused, one that it has to wait for (internal_waits)",
     .cuts = LOW_END,
     .joins = "with free neighbours of its chunk that the same stream freed or all may use",
     .grows = "device mallocs in multiples of grow, or of the request where that is refused, up "
              "to max_size. Free chunks that no stream may still use go back, the oldest first: "
              "above release_threshold when the program synchronises, all on empty_cache and when "
              "the device refuses, which is then asked again",
     .streams = "a free block belongs to the stream that freed it until the program synchronises "
                "with that; where there is but one stream, to all"},
    {.policy = "gmlake",
     .rounding = "to multiples of 512, above 1 MiB of 2 MiB",
     .takes = "the smallest of its stream and kind, of equal ones the lowest; then the smallest "
              "stitched range that nobody has and no piece of which is in use, of at most "
              "reuseLimit times the request, from its low end; from fragLimit on two or more free "
              "blocks, the largest first, of equal ones the highest, whose chunks are mapped side "
              "by side a second time, the last block's low end",
     .cuts = "always, above 1 MiB in chunks of 2 MiB; the low end is handed out",
     .joins = OF_ITS_SEGMENT,
     .grows = "device mallocs of 2 MiB for small requests, mapped ranges of 20 MiB below 10 MiB, "
              "else of the request; stitching comes before, after, or last (defragLevel). Whole "
              "free segments go back when the device refuses, with the ranges made of them, and "
              "on empty_cache, with all ranges that nobody has",
     .streams = "a block stays with the stream that its memory was taken for"},
    {.policy = "frugal",
     .rounding = TO_ALIGN,
     .takes = "the smallest of its stream in its area (up to small, above, or those of a private "
              "pool), of equal ones the lowest; then of what all may use; then of other streams, "
              "which it waits for. Only then are pages mapped",
     .cuts = LOW_END,
     .joins = "with free neighbours of its area, at once",
     .grows =
         "pages are mapped where the fewest are missing, where there is room by at least grow, "
         "for small requests a quarter of it; rather than make a new peak up to two large "
         "holes give up theirs (call_worth), and as many as it takes when the device refuses. "
         "All free pages go back on empty_cache",
     .streams = "a free block belongs to the stream that used it; where several did, each waits "
                "for the others"},
    {.policy = "offline",
     .rounding = TO_ALIGN "; outside the packing to whole pages",
     .takes = "its place in a packing of the whole trace, but for requests that failed when they "
              "were recorded",
     .cuts = NEVER,
     .joins = NEVER,
     .grows = "one device malloc of the packing's height, which goes back on empty_cache when "
              "nothing is in it; requests outside it get one each until they are freed",
     .streams = "ignored: the lifetimes that are packed are those of the trace"},
    {.policy = "planned",
     .rounding = TO_ALIGN,
     .takes = "its place in a packing of the start and one iteration, where sizes come in that "
              "order, which six of them in a row find again, and the place is free. Else as "
              "best-fit; where many sizes of late were not expected, before that the smallest gap "
              "in the plan's range",
     .cuts = "places never; else as best-fit",
     .joins = "places never; else as best-fit",
     .grows = "one device malloc for the plan, which goes back on empty_cache and before a "
              "request fails, when nothing is in it; for the rest as best-fit",
     .streams = IGNORED},
};

const frag_policy_rules *frag_policy_rules_find(const char *name)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (strcmp(rules[i].policy, name) == 0)
            return &rules[i];
    return NULL;
}
