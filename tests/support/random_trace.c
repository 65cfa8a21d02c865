#include "tests/support/random_trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "tests/support/xorshift.h"

enum { POPULAR_SIZES = 12, INITIAL_MAX = 20 };

/* Tastes differ from trace to trace, so that each does something often. */
typedef struct taste {
    size_t event_count;
    uint32_t stream_count;
    uint32_t pool_count; /* private ones */
    uint32_t live_max;
    uint32_t size_doublings; /* the largest size is 2 to the power of this */
    uint32_t grain;          /* sizes are multiples of this, often */
    uint32_t popular_percent;
    uint64_t popular[POPULAR_SIZES];
    uint32_t use_percent;
    uint32_t defer_percent;
    uint32_t rare_per_mille; /* neither alloc nor free */
    uint32_t newest_percent; /* frees of what came last */
    uint32_t other_stream_percent;
} taste;

typedef struct live_block {
    uint32_t number;
    uint8_t stream;
} live_block;

typedef struct trace_draft {
    random_trace *trace;
    uint64_t bits;
    taste taste;
    live_block *live;
    size_t live_count;
    size_t live_capacity;
    live_block *waiting; /* freed, complete is to come */
    size_t waiting_count;
    size_t waiting_capacity;
    uint32_t block_count;
    bool is_rising;
    uint8_t open_pools[RANDOM_POOLS_MAX]; /* innermost last */
    uint32_t open_count;
    uint32_t captures;
} trace_draft;

static uint64_t draw(trace_draft *at, uint64_t limit)
{
    return limit == 0 ? 0 : xorshift_next(&at->bits) % limit;
}

static bool chance(trace_draft *at, uint32_t percent)
{
    return draw(at, 100) < percent;
}

static random_event *add(trace_draft *at, frag_op op)
{
    random_trace *trace = at->trace;
    random_event *event = FRAG_APPEND(trace->events, trace->count, trace->capacity);
    *event = (random_event){.op = (uint8_t)op};
    return event;
}

/* Every order of size alike. */
static uint64_t any_size(trace_draft *at)
{
    uint64_t top = (uint64_t)1 << draw(at, at->taste.size_doublings + 1);
    uint64_t bytes = top / 2 + 1 + draw(at, top - top / 2);
    uint64_t grain = at->taste.grain;
    return chance(at, 70) && bytes > grain ? bytes / grain * grain : bytes;
}

static uint64_t size_of(trace_draft *at)
{
    if (chance(at, at->taste.popular_percent))
        return at->taste.popular[draw(at, POPULAR_SIZES)];
    return any_size(at);
}

static uint8_t any_stream(trace_draft *at)
{
    return (uint8_t)draw(at, at->taste.stream_count);
}

static uint8_t any_pool(trace_draft *at)
{
    return (uint8_t)(1 + draw(at, at->taste.pool_count));
}

/* Sizes up to 16 MiB mostly, as programs have them; some traces have smaller or far larger ones. */
static uint32_t draw_doublings(trace_draft *at)
{
    static const uint8_t usual[] = {12, 20, 24, 24, 26, 28, 30};
    uint64_t what = draw(at, 40);
    return what == 0 ? 50 : what < 3 ? 40 : usual[draw(at, sizeof usual)];
}

static void draw_taste(trace_draft *at)
{
    static const uint32_t grains[] = {1, 256, 512, 512, 1 << 20, 2 << 20};
    taste *drawn = &at->taste;
    drawn->event_count = 50 + (size_t)draw(at, 1u << (6 + draw(at, 6)));
    drawn->stream_count = chance(at, 40) ? 1 : 1 + (uint32_t)draw(at, RANDOM_STREAMS_MAX);
    drawn->pool_count = chance(at, 50) ? 0 : 1 + (uint32_t)draw(at, RANDOM_POOLS_MAX - 1);
    drawn->live_max = 1 + (uint32_t)draw(at, 1u << (2 + draw(at, 8)));
    drawn->size_doublings = draw_doublings(at);
    drawn->grain = grains[draw(at, sizeof grains / sizeof grains[0])];
    drawn->popular_percent = (uint32_t)draw(at, 100);
    drawn->use_percent = drawn->stream_count > 1 ? (uint32_t)draw(at, 15) : 0;
    drawn->defer_percent = chance(at, 50) ? 0 : (uint32_t)draw(at, 40);
    drawn->rare_per_mille = chance(at, 30) ? 0 : (uint32_t)draw(at, 60);
    drawn->newest_percent = (uint32_t)draw(at, 100);
    drawn->other_stream_percent = chance(at, 60) ? 0 : (uint32_t)draw(at, 30);
    for (int i = 0; i < POPULAR_SIZES; i++)
        drawn->popular[i] = any_size(at);
}

static void keep(live_block **blocks, size_t *count, size_t *capacity, live_block block)
{
    *blocks = frag_grow(*blocks, capacity, *count + 1, sizeof **blocks);
    (*blocks)[(*count)++] = block;
}

static void add_alloc(trace_draft *at, uint8_t flags)
{
    random_event *event = add(at, FRAG_OP_ALLOC);
    event->flags = flags;
    event->bytes = size_of(at);
    event->stream = any_stream(at);
    if (at->open_count > 0 && !chance(at, 20))
        event->pool = at->open_pools[draw(at, at->open_count)];
    else if (at->taste.pool_count > 0 && chance(at, 10))
        event->pool = any_pool(at);
    if ((flags & FRAG_EVENT_FAILED) != 0)
        return;
    event->block = at->block_count++;
    keep(&at->live, &at->live_count, &at->live_capacity, (live_block){event->block, event->stream});
}

static void add_free(trace_draft *at)
{
    size_t back =
        (size_t)(chance(at, at->taste.newest_percent) ? draw(at, 4) : draw(at, at->live_count));
    size_t i = back < at->live_count ? at->live_count - 1 - back : 0;
    live_block block = at->live[i];
    memmove(&at->live[i], &at->live[i + 1], (at->live_count - i - 1) * sizeof block);
    at->live_count--;
    random_event *event = add(at, FRAG_OP_FREE);
    event->block = block.number;
    event->stream = chance(at, at->taste.other_stream_percent) ? any_stream(at) : block.stream;
    if (!chance(at, at->taste.defer_percent))
        return;
    event->flags = FRAG_EVENT_DEFERRED;
    keep(&at->waiting, &at->waiting_count, &at->waiting_capacity, block);
}

static void add_complete(trace_draft *at)
{
    size_t i = (size_t)draw(at, chance(at, 70) ? 1 : at->waiting_count);
    live_block block = at->waiting[i];
    memmove(&at->waiting[i], &at->waiting[i + 1], (at->waiting_count - i - 1) * sizeof block);
    at->waiting_count--;
    random_event *event = add(at, FRAG_OP_COMPLETE);
    event->block = block.number;
    event->stream = block.stream;
}

static void open_or_close_pool(trace_draft *at)
{
    if (at->open_count > 0 && (chance(at, 50) || at->open_count == RANDOM_POOLS_MAX)) {
        /* The innermost mostly; programs with threads close others too. */
        uint32_t i = chance(at, 80) ? at->open_count - 1 : (uint32_t)draw(at, at->open_count);
        add(at, FRAG_OP_POOL_END)->pool = at->open_pools[i];
        memmove(&at->open_pools[i], &at->open_pools[i + 1], at->open_count - i - 1);
        at->open_count--;
        return;
    }
    random_event *event = add(at, FRAG_OP_POOL_BEGIN);
    event->pool = any_pool(at);
    event->stream = chance(at, 50) ? RANDOM_STREAM_ALL : any_stream(at);
    at->open_pools[at->open_count++] = event->pool;
}

static void add_pool_event(trace_draft *at)
{
    uint64_t what = draw(at, 10);
    if (what < 5) {
        open_or_close_pool(at);
    } else if (what < 7) {
        add(at, FRAG_OP_POOL_RELEASE)->pool = any_pool(at);
    } else if (what < 8) {
        add(at, FRAG_OP_POOL_CREATE)->pool = any_pool(at);
    } else if (what < 9) {
        random_event *event = add(at, FRAG_OP_POOL_ON_OOM);
        event->pool = any_pool(at);
        event->flags = chance(at, 50) ? FRAG_EVENT_BEGIN : FRAG_EVENT_END;
    } else {
        add(at, FRAG_OP_POOL_NO_SPLIT)->pool = any_pool(at);
    }
}

static void add_limit(trace_draft *at)
{
    random_event *event = add(at, FRAG_OP_LIMIT);
    bool is_ratio = chance(at, 50);
    event->flags = is_ratio ? FRAG_EVENT_RATIO : 0;
    if (is_ratio)
        event->bytes = chance(at, 30) ? 1000000000 : draw(at, 1000000001);
    else
        event->bytes = chance(at, 30) ? FRAG_UNLIMITED : any_size(at) * (1 + draw(at, 64));
}

static const char *any_settings(trace_draft *at)
{
    static const char *const texts[] = {
        "max_split_size_mb:32",
        "max_split_size_mb:200,garbage_collection_threshold:0.6",
        "expandable_segments:True",
        "expandable_segments:False",
        "roundup_power2_divisions:4",
        "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
        "garbage_collection_threshold:0.1",
        "large_segment_size_mb:40,max_non_split_rounding_mb:30",
        "per_process_memory_fraction:0.5",
        "throw_on_cudamalloc_oom:True",
        "graph_capture_record_stream_reuse:True",
        "nonsense:1",
        "",
    };
    return texts[draw(at, sizeof texts / sizeof texts[0])];
}

static void add_rare(trace_draft *at)
{
    uint64_t what = draw(at, 100);
    if (what < 25) {
        random_event *event = add(at, FRAG_OP_SYNC);
        event->stream = chance(at, 40) ? RANDOM_STREAM_ALL : any_stream(at);
    } else if (what < 40) {
        random_event *event = add(at, FRAG_OP_EMPTY_CACHE);
        event->pool = at->taste.pool_count > 0 && chance(at, 30) ? any_pool(at) : 0;
    } else if (what < 48) {
        add_limit(at);
    } else if (what < 56) {
        add(at, FRAG_OP_CONFIG)->settings = any_settings(at);
    } else if (what < 60) {
        add(at, FRAG_OP_STATS_RESET)->bytes = 1 + draw(at, 3);
    } else if (what < 66) {
        bool begins = at->captures == 0 || (at->captures < 3 && chance(at, 20));
        (void)add(at, begins ? FRAG_OP_CAPTURE_BEGIN : FRAG_OP_CAPTURE_END);
        at->captures += begins ? 1 : UINT32_MAX;
    } else if (what < 70) {
        add_alloc(at, FRAG_EVENT_FAILED);
    } else if (at->taste.pool_count > 0) {
        add_pool_event(at);
    }
}

static void add_event(trace_draft *at)
{
    if (draw(at, 150) == 0)
        at->is_rising = !at->is_rising;
    if (draw(at, 1000) < at->taste.rare_per_mille) {
        add_rare(at);
    } else if (at->live_count > 0 && chance(at, at->taste.use_percent)) {
        random_event *event = add(at, FRAG_OP_USE);
        event->block = at->live[draw(at, at->live_count)].number;
        event->stream = any_stream(at);
    } else if (at->waiting_count > 0 && chance(at, at->taste.defer_percent)) {
        add_complete(at);
    } else if (at->live_count == 0 ||
               (at->live_count < at->taste.live_max && chance(at, at->is_rising ? 70 : 40))) {
        add_alloc(at, 0);
    } else {
        add_free(at);
    }
}

/* Blocks from before the recording began, some of them freed and waiting. */
static void add_start(trace_draft *at)
{
    uint64_t count = chance(at, 80) ? 0 : draw(at, INITIAL_MAX);
    for (uint64_t i = 0; i < count; i++) {
        add_alloc(at, FRAG_EVENT_INITIAL);
        if (chance(at, 80))
            continue;
        live_block block = at->live[--at->live_count];
        random_event *event = add(at, FRAG_OP_FREE);
        *event = (random_event){.op = FRAG_OP_FREE,
                                .flags = FRAG_EVENT_INITIAL | FRAG_EVENT_DEFERRED,
                                .stream = block.stream,
                                .block = block.number};
        keep(&at->waiting, &at->waiting_count, &at->waiting_capacity, block);
    }
}

void random_trace_draw(random_trace *trace, uint64_t seed)
{
    trace_draft at = {.trace = trace, .bits = (seed + 1) * 0x9e3779b97f4a7c15u, .is_rising = true};
    at.bits = at.bits != 0 ? at.bits : 1;
    trace->count = 0;
    draw_taste(&at);
    add_start(&at);
    while (trace->count < at.taste.event_count)
        add_event(&at);
    free(at.live);
    free(at.waiting);
}

/* ---- the text form */

enum block_state { GONE, LIVE, WAITING };

typedef struct writing {
    frag_text *text;
    unsigned char *states; /* by block */
    uint32_t *slots;       /* by block */
    uint32_t *spare;       /* slots that were given back, the last first */
    uint32_t spare_count;
    uint32_t slot_count;
} writing;

static uint32_t take_slot(writing *at)
{
    return at->spare_count > 0 ? at->spare[--at->spare_count] : at->slot_count++;
}

static void write_places(writing *at, const random_event *event)
{
    if (event->stream != RANDOM_STREAM_ALL && frag_op_has_stream(event->op))
        frag_text_add(at->text, " stream=%u", event->stream);
    if (event->op == FRAG_OP_ALLOC && event->pool != 0)
        frag_text_add(at->text, " pool=%u", event->pool);
    if ((event->flags & FRAG_EVENT_INITIAL) != 0)
        frag_text_add(at->text, " initial");
    frag_text_add(at->text, "\n");
}

static void write_alloc(writing *at, const random_event *event)
{
    if ((event->flags & FRAG_EVENT_FAILED) != 0) {
        frag_text_add(at->text, "alloc - %llu failed", (unsigned long long)event->bytes);
    } else {
        at->slots[event->block] = take_slot(at);
        at->states[event->block] = LIVE;
        frag_text_add(at->text, "alloc %u %llu", at->slots[event->block],
                      (unsigned long long)event->bytes);
    }
    write_places(at, event);
}

/* false: the event is not about a block, and still to be written. */
static bool write_block_event(writing *at, const random_event *event)
{
    bool is_complete = event->op == FRAG_OP_COMPLETE;
    if (event->op != FRAG_OP_FREE && event->op != FRAG_OP_USE && !is_complete)
        return false;
    unsigned char *state = &at->states[event->block];
    if (*state != (is_complete ? WAITING : LIVE))
        return true;
    bool is_deferred = (event->flags & FRAG_EVENT_DEFERRED) != 0;
    frag_text_add(at->text, "%s %u%s", frag_op_name((frag_op)event->op), at->slots[event->block],
                  is_deferred ? " deferred" : "");
    write_places(at, event);
    if (event->op == FRAG_OP_USE)
        return true;
    *state = is_deferred ? WAITING : GONE;
    if (!is_deferred)
        at->spare[at->spare_count++] = at->slots[event->block];
    return true;
}

static void write_rare(writing *at, const random_event *event)
{
    frag_text *text = at->text;
    frag_text_add(text, "%s", frag_op_name((frag_op)event->op));
    if ((event->flags & FRAG_EVENT_RATIO) != 0)
        frag_text_add(text, " %.9f ratio", (double)event->bytes / 1e9);
    else if (event->op == FRAG_OP_LIMIT || event->op == FRAG_OP_STATS_RESET)
        frag_text_add(text, " %llu", (unsigned long long)event->bytes);
    else if (event->op == FRAG_OP_CONFIG)
        frag_text_add(text, " \"%s\"", event->settings);
    else if (event->pool != 0)
        frag_text_add(text, " %u", event->pool);
    if (event->op == FRAG_OP_POOL_ON_OOM)
        frag_text_add(text, (event->flags & FRAG_EVENT_BEGIN) != 0 ? " begin" : " end");
    write_places(at, event);
}

void random_trace_write(const random_trace *trace, frag_text *text)
{
    uint32_t block_count = 1;
    for (size_t i = 0; i < trace->count; i++)
        if (trace->events[i].block >= block_count)
            block_count = trace->events[i].block + 1;
    writing at = {.text = text,
                  .states = frag_alloc(block_count, 1),
                  .slots = frag_alloc(block_count, sizeof(uint32_t)),
                  .spare = frag_alloc(block_count, sizeof(uint32_t))};
    frag_text_add(text, "# fraglab trace 2\n");
    for (size_t i = 0; i < trace->count; i++) {
        const random_event *event = &trace->events[i];
        if (event->op == FRAG_OP_ALLOC)
            write_alloc(&at, event);
        else if (!write_block_event(&at, event))
            write_rare(&at, event);
    }
    free(at.states);
    free(at.slots);
    free(at.spare);
}

void random_trace_destroy(random_trace *trace)
{
    free(trace->events);
    *trace = (random_trace){0};
}
