#include "studies/verify/verify_rounding.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/pytorch/pytorch_settings.h"
#include "base/bits.h"
#include "base/bytes.h"
#include "base/memory.h"

enum {
    OCTAVES = FRAG_ROUNDING_OCTAVES,
    WAYS = FRAG_ROUNDING_WAYS,
    /* More says no more, and costs memory. */
    EVENTS_MAX = 1 << 21,
};

typedef struct octave {
    uint64_t exact_counts[WAYS]; /* what the way says is what is there */
    uint32_t contradicted;       /* bit of each way that cannot be */
    bool is_seen;
} octave;

/* ---- live blocks in the order of addresses: a bit for each address that ever was one, with words
 * above that say which words are not 0 */

enum { LEVELS = 4 };

typedef struct live_set {
    uint64_t *levels[LEVELS];
    uint64_t *addresses; /* by rank */
    uint32_t *slots;     /* by rank */
    bool *begins;        /* by rank: a segment has begun there */
    uint32_t count;
} live_set;

static void create_live(live_set *live, const frag_trace *trace, uint64_t end)
{
    live->addresses = frag_alloc(end, sizeof *live->addresses);
    for (uint64_t i = 0; i < end; i++)
        if (trace->events[i].op == FRAG_OP_ALLOC && trace->addresses[i] != 0)
            live->addresses[live->count++] = trace->addresses[i];
    qsort(live->addresses, live->count, sizeof *live->addresses, frag_compare_numbers);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < live->count; i++)
        if (kept == 0 || live->addresses[kept - 1] != live->addresses[i])
            live->addresses[kept++] = live->addresses[i];
    live->count = kept;
    live->slots = frag_alloc(kept, sizeof *live->slots);
    live->begins = frag_alloc(kept, sizeof *live->begins);
    size_t words = kept;
    for (int i = 0; i < LEVELS; i++) {
        words = words / 64 + 1;
        live->levels[i] = frag_alloc(words, sizeof *live->levels[i]);
    }
}

static void destroy_live(live_set *live)
{
    for (int i = 0; i < LEVELS; i++)
        frag_free(live->levels[i]);
    frag_free(live->addresses);
    frag_free(live->slots);
    frag_free(live->begins);
}

static uint32_t rank_of(const live_set *live, uint64_t address)
{
    uint32_t low = 0;
    uint32_t high = live->count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (live->addresses[middle] <= address)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static bool is_live(const live_set *live, uint32_t rank)
{
    return (live->levels[0][rank / 64] >> (rank % 64) & 1) != 0;
}

static void set_live(live_set *live, uint32_t rank, bool is_now)
{
    for (int i = 0; i < LEVELS; i++) {
        uint64_t *word = &live->levels[i][rank / 64];
        uint64_t before = *word;
        uint64_t bit = (uint64_t)1 << (rank % 64);
        *word = is_now ? before | bit : before & ~bit;
        if ((before != 0) == (*word != 0))
            return;
        rank /= 64;
    }
}

/* The nearest live rank above or below; false: there is none. */
static bool find_live(const live_set *live, uint32_t rank, bool is_above, uint32_t *found)
{
    int level = 0;
    uint64_t word = 0;
    for (; level < LEVELS; level++) {
        uint64_t bit = (uint64_t)1 << (rank % 64);
        word = live->levels[level][rank / 64] & (is_above ? ~(bit | (bit - 1)) : bit - 1);
        if (word != 0)
            break;
        rank /= 64;
    }
    if (level == LEVELS)
        return false;
    rank = rank / 64 * 64 + (is_above ? frag_bit_low(word) : frag_bit_high(word));
    while (level-- > 0) {
        word = live->levels[level][rank];
        rank = rank * 64 + (is_above ? frag_bit_low(word) : frag_bit_high(word));
    }
    *found = rank;
    return true;
}

/* ---- weighing */

typedef struct weighing {
    frag_pytorch_settings ways[WAYS];
    octave octaves[OCTAVES];
} weighing;

static void create_ways(weighing *all)
{
    for (uint32_t way = 0; way < WAYS; way++) {
        frag_pytorch_settings *settings = &all->ways[way];
        frag_pytorch_settings_reset(settings, way == FRAG_ROUNDING_NONE ? 203 : 215);
        settings->has_divisions = way != FRAG_ROUNDING_PLAIN;
        for (uint32_t i = 0; i < OCTAVES; i++)
            settings->divisions[i] = way == FRAG_ROUNDING_PLAIN ? 0 : (uint64_t)1 << (way - 1);
    }
}

static octave *octave_of(weighing *all, uint64_t bytes)
{
    uint32_t high = frag_bit_high(bytes);
    return &all->octaves[high <= 20 ? 0 : high - 20 < OCTAVES ? high - 20 : OCTAVES - 1];
}

static void note(octave *at, uint32_t way, bool is_possible, bool is_exact)
{
    at->is_seen = true;
    at->contradicted |= is_possible ? 0 : 1u << way;
    at->exact_counts[way] += is_possible && is_exact ? 1 : 0;
}

/* No other block was nearer than so many bytes behind the request. */
static void weigh_room(weighing *all, uint64_t bytes, uint64_t room)
{
    octave *at = octave_of(all, bytes);
    for (uint32_t way = 0; way < WAYS && room != FRAG_UNLIMITED; way++) {
        uint64_t rounded = frag_pytorch_round(&all->ways[way], bytes);
        note(at, way, rounded <= room, rounded == room);
    }
}

/* A segment was taken for the request. Which segments requests of 1 to 10 MiB get is a setting. */
static void weigh_segment(weighing *all, uint64_t bytes, uint64_t segment)
{
    octave *at = octave_of(all, bytes);
    for (uint32_t way = 0; way < WAYS; way++) {
        uint64_t rounded = frag_pytorch_round(&all->ways[way], bytes);
        if (rounded <= FRAG_PYTORCH_SMALL_MAX)
            note(at, way, segment == FRAG_PYTORCH_SMALL_SEGMENT, false);
        else if (rounded < FRAG_PYTORCH_LARGE_MIN)
            note(at, way, segment != FRAG_PYTORCH_SMALL_SEGMENT, false);
        else
            note(at, way, segment == frag_align_up(rounded, FRAG_PYTORCH_SEGMENT_ROUND), true);
    }
}

/* ---- reading */

typedef struct block {
    uint64_t bytes;
    uint64_t room;
    uint32_t rank;
    bool is_weighed;
} block;

static void come(weighing *all, live_set *live, block *blocks, const frag_trace *trace, uint64_t i)
{
    const frag_event *event = &trace->events[i];
    uint32_t rank = rank_of(live, trace->addresses[i]);
    block *own = &blocks[event->slot];
    bool is_known = (event->flags & FRAG_EVENT_INITIAL) == 0 && event->bytes > 0;
    *own = (block){event->bytes, FRAG_UNLIMITED, rank, is_known};
    if (is_live(live, rank)) { /* odd; the block there may have been put off */
        own->is_weighed = false;
        return;
    }
    /* Where another segment begins, the one before may end with memory of no block. */
    uint32_t other = 0;
    if (find_live(live, rank, true, &other) && !live->begins[other])
        own->room = live->addresses[other] - live->addresses[rank];
    if (find_live(live, rank, false, &other) && !live->begins[rank]) {
        block *below = &blocks[live->slots[other]];
        uint64_t room = live->addresses[rank] - live->addresses[other];
        below->room = room < below->room ? room : below->room;
    }
    live->slots[rank] = event->slot;
    set_live(live, rank, true);
    if (i > 0 && trace->events[i - 1].op == FRAG_OP_SEGMENT_ALLOC && is_known &&
        trace->addresses[i - 1] == trace->addresses[i])
        weigh_segment(all, event->bytes, trace->events[i - 1].bytes);
}

static void begin_segment(live_set *live, uint64_t address)
{
    uint32_t rank = rank_of(live, address);
    if (live->count > 0 && live->addresses[rank] == address)
        live->begins[rank] = true;
}

static void go(weighing *all, live_set *live, block *blocks, uint32_t slot)
{
    block *own = &blocks[slot];
    if (own->bytes > 0 && is_live(live, own->rank) && live->slots[own->rank] == slot) {
        set_live(live, own->rank, false);
        if (own->is_weighed)
            weigh_room(all, own->bytes, own->room);
    }
    own->bytes = 0;
}

static void read_blocks(weighing *all, const frag_trace *trace, uint64_t end)
{
    live_set live = {.count = 0};
    create_live(&live, trace, end);
    block *blocks = frag_alloc(trace->slot_count, sizeof *blocks);
    for (uint64_t i = 0; i < end; i++) {
        const frag_event *event = &trace->events[i];
        if (event->op == FRAG_OP_ALLOC && event->slot != FRAG_SLOT_NONE && trace->addresses[i] != 0)
            come(all, &live, blocks, trace, i);
        else if (event->op == FRAG_OP_SEGMENT_ALLOC)
            begin_segment(&live, trace->addresses[i]);
        else if (event->op == FRAG_OP_FREE)
            go(all, &live, blocks, event->slot);
    }
    for (uint32_t slot = 0; slot < trace->slot_count; slot++)
        go(all, &live, blocks, slot);
    frag_free(blocks);
    destroy_live(&live);
}

/* ---- concluding */

/* The ways that explain an octave about as well as the best: blocks that were not split look like
 * others, too. */
static uint32_t good_ways(const octave *at)
{
    uint64_t most = 0;
    uint32_t good = 0;
    for (uint32_t way = 0; way < WAYS; way++)
        if ((at->contradicted >> way & 1) == 0 && at->exact_counts[way] > most)
            most = at->exact_counts[way];
    for (uint32_t way = 0; way < WAYS; way++)
        if ((at->contradicted >> way & 1) == 0 && 2 * at->exact_counts[way] >= most)
            good |= 1u << way;
    return good;
}

/* The way that is good for most octaves; of several the plain one, then the coarsest division. */
static uint32_t usual_way(const weighing *all)
{
    uint32_t counts[WAYS] = {0};
    uint32_t usual = FRAG_ROUNDING_PLAIN;
    for (uint32_t i = 0; i < OCTAVES; i++)
        for (uint32_t way = 0; way < WAYS; way++)
            counts[way] += all->octaves[i].is_seen && (good_ways(&all->octaves[i]) >> way & 1);
    for (uint32_t way = 0; way < WAYS; way++)
        if (counts[way] > counts[usual] ||
            (usual == FRAG_ROUNDING_NONE && counts[way] == counts[usual]))
            usual = way;
    return usual;
}

static uint32_t choose(const octave *at, uint32_t usual)
{
    uint32_t good = good_ways(at);
    uint32_t best = FRAG_ROUNDING_PLAIN;
    if (good == 0 || (good >> FRAG_ROUNDING_PLAIN & 1) != 0)
        return (good >> usual & 1) != 0 ? usual : FRAG_ROUNDING_PLAIN;
    if ((good >> usual & 1) != 0)
        return usual;
    for (uint32_t way = WAYS; way-- > 0;)
        if ((good >> way & 1) != 0 &&
            (best == FRAG_ROUNDING_PLAIN || at->exact_counts[way] >= at->exact_counts[best]))
            best = way;
    return best;
}

void frag_rounding_read(const frag_trace *trace, frag_rounding *rounding)
{
    *rounding = (frag_rounding){.ways = {0}};
    if (trace->addresses == NULL)
        return;
    uint64_t end = 0;
    while (end < trace->event_count && end < EVENTS_MAX && trace->events[end].op != FRAG_OP_CONFIG)
        end++;
    weighing all = {0};
    create_ways(&all);
    read_blocks(&all, trace, end);
    uint32_t usual = usual_way(&all);
    for (uint32_t i = 0; i < OCTAVES; i++) {
        const octave *at = &all.octaves[i];
        rounding->ways[i] = choose(at, usual);
        rounding->possible[i] = at->is_seen ? ((1u << WAYS) - 1) & ~at->contradicted : 0;
    }
}

/* ---- reporting */

bool frag_rounding_is_old(const frag_rounding *rounding)
{
    bool is_old = false;
    for (uint32_t i = 0; i < OCTAVES; i++)
        is_old |= rounding->possible[i] != 0 && rounding->ways[i] == FRAG_ROUNDING_NONE;
    return is_old;
}

static uint64_t division_of(uint32_t way)
{
    return way == FRAG_ROUNDING_PLAIN ? 1 : (uint64_t)1 << (way - 1);
}

/* The next octave that is reported. Before 2.4 a list has no word for the plain way. */
static uint32_t next_told(const frag_rounding *rounding, uint32_t at)
{
    bool is_old = frag_rounding_is_old(rounding);
    while (at < OCTAVES &&
           (rounding->possible[at] == 0 || (is_old && rounding->ways[at] == FRAG_ROUNDING_PLAIN)))
        at++;
    return at;
}

/* Do all octaves with evidence agree on one way? */
static bool is_uniform(const frag_rounding *rounding, uint32_t *way)
{
    bool is_first = true;
    bool is_same = true;
    *way = FRAG_ROUNDING_PLAIN;
    for (uint32_t i = 0; i < OCTAVES; i++) {
        if (rounding->possible[i] == 0)
            continue;
        is_same = is_same && (is_first || rounding->ways[i] == *way);
        *way = rounding->ways[i];
        is_first = false;
    }
    return is_same;
}

void frag_rounding_text(const frag_rounding *rounding, char text[FRAG_ROUNDING_TEXT_BYTES])
{
    uint32_t way = 0;
    text[0] = '\0';
    if (is_uniform(rounding, &way)) {
        if (way != FRAG_ROUNDING_PLAIN)
            snprintf(text, FRAG_ROUNDING_TEXT_BYTES, "%" PRIu64, division_of(way));
        return;
    }
    /* The first item stands for all smaller octaves, too. */
    uint32_t first = next_told(rounding, 0);
    way = rounding->ways[first];
    for (uint32_t next = first; next < OCTAVES && rounding->ways[next] == way;
         next = next_told(rounding, next + 1))
        first = next;
    size_t used = 0;
    for (uint32_t i = first; i < OCTAVES; i = next_told(rounding, i + 1))
        used += (size_t)snprintf(text + used, FRAG_ROUNDING_TEXT_BYTES - used, "%c%u:%" PRIu64,
                                 used == 0 ? '[' : ',', 1u << i, division_of(rounding->ways[i]));
    snprintf(text + used, FRAG_ROUNDING_TEXT_BYTES - used, "]");
}
