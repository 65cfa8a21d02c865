#include "allocators/frameworks/composed_growth.h"

#include "base/bits.h"
#include "base/bytes.h"

#define REGION_UNIT 256u
/* What RMM rounds the rest of a limit to. */
#define LIMIT_UNIT 256u
/* A step that has grown to this is as good as any larger one. */
#define STEP_MAX ((uint64_t)1 << 60)

/* Asks for a segment of which so much is usable. */
static bool ask(frag_composed *composed, uint32_t list, uint64_t usable, uint32_t *hole)
{
    uint64_t unit = composed->growth.ask_unit;
    uint64_t bytes = unit > 1 ? frag_align_up(usable, unit) : usable;
    uint64_t address = 0;
    if (frag_device_malloc(composed->space.device, bytes, &address) != FRAG_DEVICE_OK)
        return false;
    *hole = frag_composed_add(composed, list, address, bytes, usable);
    return true;
}

bool frag_grow_plain(frag_composed *composed, const frag_shortage *shortage, uint32_t *hole)
{
    return ask(composed, shortage->list, shortage->bytes, hole);
}

/* ---- RMM's pool */

bool frag_grow_doubling(frag_composed *composed, const frag_shortage *shortage, uint32_t *hole)
{
    frag_growth_state *growth = &composed->growth;
    uint64_t wanted = shortage->bytes;
    uint64_t bytes = frag_larger(wanted, growth->step_bytes);
    if (growth->limit_bytes != FRAG_UNLIMITED) {
        uint64_t left = growth->step_bytes < growth->limit_bytes
                            ? frag_align_up(growth->limit_bytes - growth->step_bytes, LIMIT_UNIT)
                            : 0;
        if (wanted > left)
            return false;
        bytes = frag_larger(wanted, left / 2);
    }
    while (!ask(composed, shortage->list, bytes, hole)) {
        if (bytes == wanted)
            return false;
        bytes = frag_larger(wanted, bytes / 2);
    }
    growth->step_bytes += bytes;
    return true;
}

void frag_grow_initial(frag_composed *composed, uint32_t list, uint64_t bytes)
{
    uint32_t hole = 0;
    composed->has_failed = !ask(composed, list, bytes, &hole);
    composed->growth.step_bytes = bytes;
}

/* ---- the BFC allocators */

/* The product is one of single precision, as in the libraries. */
static uint64_t nine_tenths(uint64_t bytes)
{
    float product = (float)bytes * 0.9f;
    return frag_align_up((uint64_t)product, REGION_UNIT);
}

static uint64_t doubled(uint64_t step)
{
    return step < STEP_MAX ? 2 * step : step;
}

/* The size to begin with. The step stays raised even when nothing comes of it. */
static uint64_t region_bytes(frag_growth_state *growth, uint64_t wanted, uint64_t available,
                             bool *is_raised)
{
    if (growth->is_exact)
        return wanted;
    *is_raised = wanted > growth->step_bytes;
    while (wanted > growth->step_bytes)
        growth->step_bytes = doubled(growth->step_bytes);
    uint64_t bytes = growth->step_bytes < available ? growth->step_bytes : available;
    if (growth->steps_early && !*is_raised)
        growth->step_bytes = doubled(growth->step_bytes) < growth->step_max
                                 ? doubled(growth->step_bytes)
                                 : growth->step_max;
    return bytes;
}

static bool extend(frag_composed *composed, const frag_shortage *shortage, uint32_t *hole)
{
    frag_growth_state *growth = &composed->growth;
    uint64_t wanted = shortage->bytes;
    uint64_t left =
        composed->held_bytes < growth->limit_bytes ? growth->limit_bytes - composed->held_bytes : 0;
    uint64_t available = left / REGION_UNIT * REGION_UNIT;
    bool is_raised = false;
    if (wanted > available)
        return false;
    uint64_t bytes = region_bytes(growth, wanted, available, &is_raised);
    while (!ask(composed, shortage->list, bytes, hole)) {
        uint64_t next = nine_tenths(bytes);
        /* At 2304 bytes rounding up undoes the step: the libraries then ask for ever, or not at
         * all. */
        if (next < wanted || next < growth->give_up_below || next >= bytes)
            return false;
        bytes = next;
    }
    if (!growth->is_exact && !growth->steps_early && !is_raised)
        growth->step_bytes = doubled(growth->step_bytes);
    return true;
}

bool frag_grow_region(frag_composed *composed, const frag_shortage *shortage, uint32_t *hole)
{
    if (extend(composed, shortage, hole))
        return true;
    uint64_t idle = composed->growth.collects ? frag_composed_idle_bytes(composed) : 0;
    uint64_t limit = composed->growth.limit_bytes;
    uint64_t left = composed->held_bytes < limit ? limit - composed->held_bytes : 0;
    if (idle == 0 || shortage->bytes > left + idle)
        return false;
    frag_composed_give_back(composed);
    return extend(composed, shortage, hole);
}

/* ---- CuPy */

static bool is_above_limit(const frag_composed *composed, uint64_t bytes)
{
    uint64_t limit = composed->growth.limit_bytes;
    return limit != FRAG_UNLIMITED && composed->held_bytes + bytes > limit;
}

bool frag_grow_within_limit(frag_composed *composed, const frag_shortage *shortage, uint32_t *hole)
{
    if (is_above_limit(composed, shortage->bytes)) {
        frag_composed_give_back(composed);
        if (is_above_limit(composed, shortage->bytes))
            return false;
    }
    /* The third try is the one after Python's garbage collection, which finds nothing here; once
     * all is given back there is no more. */
    for (int try = 0; try < 3; try++) {
        if (ask(composed, shortage->list, shortage->bytes, hole))
            return true;
        frag_composed_give_back(composed);
    }
    return false;
}

/* ---- Paddle */

bool frag_grow_chunk(frag_composed *composed, const frag_shortage *shortage, uint32_t *hole)
{
    const frag_growth_state *growth = &composed->growth;
    uint32_t list = composed->rules.lists == FRAG_LISTS_BY_SIZE ? shortage->list : 0;
    uint64_t bytes = frag_larger(shortage->bytes, growth->chunk_bytes[list]);
    if (growth->empties_first)
        frag_composed_give_back(composed);
    if (ask(composed, shortage->list, bytes, hole))
        return true;
    frag_composed_give_back(composed);
    return ask(composed, shortage->list, bytes, hole);
}

/* ---- MXNet */

/* The two releases differ where the request takes exactly what is free, with nothing in reserve. */
static bool leaves_reserve(const frag_composed *composed, uint64_t bytes)
{
    const frag_growth_state *growth = &composed->growth;
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;
    if (frag_device_memory_info(composed->space.device, &free_bytes, &total_bytes) !=
            FRAG_DEVICE_OK ||
        total_bytes == FRAG_UNLIMITED)
        return true;
    uint64_t reserve = total_bytes / 100 * growth->reserve_percent +
                       total_bytes % 100 * growth->reserve_percent / 100;
    bool may_take_all = !growth->spares_a_byte;
    return free_bytes > reserve && bytes <= free_bytes - reserve &&
           (may_take_all || free_bytes > bytes);
}

bool frag_grow_with_reserve(frag_composed *composed, const frag_shortage *shortage, uint32_t *hole)
{
    if (shortage->bytes > composed->growth.segment_max)
        return false;
    if (!leaves_reserve(composed, shortage->bytes))
        frag_composed_give_back(composed);
    if (ask(composed, shortage->list, shortage->bytes, hole))
        return true;
    frag_composed_give_back(composed);
    return ask(composed, shortage->list, shortage->bytes, hole);
}
