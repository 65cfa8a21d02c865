#include "tests/benchmarks/bench_traces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "traces/builder.h"

enum {
    SITES = 200,
    PARAMETERS = 290,
    LAYERS = 32,
    LAYER_KEPT = 9, /* activations a layer keeps for its way back */
    LAYER_SHAPES = 24,
    SERVING_STREAMS = 4,
    SERVING_LOW = 6000, /* live blocks between which the load swings */
    SERVING_HIGH = 12000
};

/* A trace that is being made; events after its end are dropped. */
typedef struct maker {
    frag_builder *builder;
    uint64_t left;
    uint64_t random;
    uint64_t time_ns;
    uint32_t sites[SITES];
} maker;

/* SplitMix64: Steele, Lea, Flood, OOPSLA 2014. */
static uint64_t draw(maker *made, uint64_t limit)
{
    made->random += 0x9e3779b97f4a7c15u;
    uint64_t mixed = made->random;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return (mixed ^ (mixed >> 31)) % limit;
}

/* least times 1 to 2^doublings; each doubling is half as frequent as the one before: a power law.
 */
static uint64_t draw_power_law(maker *made, uint64_t least, uint32_t doublings)
{
    uint64_t bits = draw(made, (uint64_t)1 << 32) | (uint64_t)1 << doublings;
    uint64_t low = least << frag_bit_low(bits);
    return low + draw(made, low);
}

static void begin(maker *made, frag_recording *recording, uint64_t seed, uint64_t event_count)
{
    *made = (maker){.left = event_count, .random = seed, .time_ns = 1700000000000000000};
    *recording = (frag_recording){0};
    made->builder = frag_builder_create(recording);
    for (uint32_t i = 0; i < SITES; i++) {
        char name[32];
        int length = snprintf(name, sizeof name, "function_%u", i);
        uint32_t string = frag_builder_string(made->builder, name, (size_t)length);
        uint32_t file = frag_builder_string(made->builder, "program.py", 10);
        uint32_t frame = frag_builder_frame(made->builder, (frag_frame){string, file, i + 1});
        made->sites[i] = frag_builder_site(made->builder, &frame, 1);
    }
    frag_builder_device(made->builder, 0);
}

/* Returns the slot, or FRAG_SLOT_NONE when the trace is full. */
static uint32_t request(maker *made, uint64_t bytes, uint32_t stream)
{
    if (made->left == 0)
        return FRAG_SLOT_NONE;
    made->left--;
    made->time_ns += 500 + draw(made, 20000);
    frag_build_event event = {
        .op = FRAG_OP_ALLOC,
        .slot = frag_builder_slot_take(made->builder),
        .bytes = bytes,
        .stream = stream,
        .time_ns = made->time_ns,
        .site = made->sites[draw(made, SITES)],
    };
    frag_builder_add(made->builder, &event);
    return event.slot;
}

static void give_back(maker *made, uint32_t slot, uint32_t stream)
{
    if (slot == FRAG_SLOT_NONE || made->left == 0)
        return;
    made->left--;
    made->time_ns += 500 + draw(made, 5000);
    frag_build_event event = {
        .op = FRAG_OP_FREE, .slot = slot, .stream = stream, .time_ns = made->time_ns};
    frag_builder_add(made->builder, &event);
    frag_builder_slot_give(made->builder, slot);
}

/* ---- training */

/* Bytes of each shape for every 16 tokens of the batch, the same in every layer. */
typedef struct shapes {
    uint64_t unit_bytes[LAYER_SHAPES];
} shapes;

static uint64_t shape_bytes(const shapes *all, uint32_t shape, uint64_t tokens)
{
    return all->unit_bytes[shape % LAYER_SHAPES] * (tokens / 16);
}

/* Work space that is gone before the next request that stays. */
static void use_briefly(maker *made, const shapes *all, uint64_t tokens, uint32_t count)
{
    uint32_t slots[4];
    for (uint32_t i = 0; i < count; i++)
        slots[i] = request(made,
                           draw(made, 3) == 0
                               ? draw_power_law(made, 4, 16)
                               : shape_bytes(all, (uint32_t)draw(made, LAYER_SHAPES), tokens),
                           0);
    while (count-- > 0)
        give_back(made, slots[count], 0);
}

static void run_step(maker *made, const shapes *all)
{
    static const uint64_t longest = 4096;
    uint64_t tokens = longest - draw(made, longest / 4);
    uint32_t kept[LAYERS * LAYER_KEPT];
    uint32_t gradients[LAYERS];
    for (uint32_t layer = 0; layer < LAYERS; layer++)
        for (uint32_t i = 0; i < LAYER_KEPT; i++) {
            kept[layer * LAYER_KEPT + i] = request(made, shape_bytes(all, i, tokens), 0);
            use_briefly(made, all, tokens, (uint32_t)draw(made, 3));
        }
    for (uint32_t layer = LAYERS; layer-- > 0;) {
        for (uint32_t i = LAYER_KEPT; i-- > 0;) {
            use_briefly(made, all, tokens, 1 + (uint32_t)draw(made, 3));
            give_back(made, kept[layer * LAYER_KEPT + i], 0);
        }
        gradients[layer] = request(made, (uint64_t)25 * FRAG_MIB, 0);
    }
    for (uint32_t layer = 0; layer < LAYERS; layer++) {
        use_briefly(made, all, 512, 2);
        give_back(made, gradients[layer], 0);
    }
}

bool bench_trace_training(uint64_t event_count, frag_recording *recording, frag_error *error)
{
    maker made;
    begin(&made, recording, 1, event_count);
    shapes all;
    for (uint32_t i = 0; i < LAYER_SHAPES; i++)
        all.unit_bytes[i] = draw_power_law(&made, 4096, 7);
    for (uint32_t i = 0; i < PARAMETERS; i++)
        request(&made, draw_power_law(&made, 64 * FRAG_KIB, 10), 0);
    while (made.left > 0)
        run_step(&made, &all);
    return frag_builder_finish(made.builder, "synthetic-training", error);
}

/* ---- serving */

typedef struct held {
    uint32_t slot;
    uint32_t stream;
} held;

bool bench_trace_serving(uint64_t event_count, frag_recording *recording, frag_error *error)
{
    maker made;
    begin(&made, recording, 2, event_count);
    held *blocks = frag_alloc(SERVING_HIGH, sizeof *blocks);
    uint32_t count = 0;
    bool is_rising = true;
    while (made.left > 0) {
        if (count == SERVING_HIGH)
            is_rising = false;
        else if (count < SERVING_LOW)
            is_rising = true;
        bool is_request =
            count == 0 || (count < SERVING_HIGH && draw(&made, 100) < (is_rising ? 55u : 45u));
        if (is_request) {
            uint32_t stream = (uint32_t)draw(&made, SERVING_STREAMS);
            blocks[count++] =
                (held){request(&made, draw_power_law(&made, 512, 18), stream), stream};
        } else {
            uint32_t at = (uint32_t)draw(&made, count);
            give_back(&made, blocks[at].slot, blocks[at].stream);
            blocks[at] = blocks[--count];
        }
    }
    free(blocks);
    return frag_builder_finish(made.builder, "synthetic-serving", error);
}
