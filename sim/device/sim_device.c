/* The simulated device: pages are counted, addresses follow a rule, nothing is touched.
 *
 * A malloc takes whole pages (2 MiB on every GPU of today) or what a measured footprint says, fails
 * when that would exceed capacity less what others use, and synchronises nothing. Sources for the
 * behaviour: docs/metrics.md, "device". */
#include <inttypes.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "sim/device.h"
#include "sim/device/footprint.h"
#include "sim/device/ranges.h"

#define MALLOC_BASE ((uint64_t)0x700000000000)
#define RESERVE_BASE ((uint64_t)0x600000000000)
#define SPACE_BYTES ((uint64_t)1 << 60) /* of mallocs; addresses are only numbers here */
/* Each device has places of its own in both spaces; a seventeenth shares those of the first. */
#define DEVICE_SHIFT 40
#define DEVICE_PLACES 16u
#define ADOPTION FRAG_DEVICE_CALL_COUNT /* what was held before the trace: no call */
/* Reserved ranges lie below the mallocs while there is room, then far above them; on a device with
 * endless reserves from their base on without end. */
#define RESERVE_BYTES (MALLOC_BASE - RESERVE_BASE)
#define FAR_RESERVE_BASE ((uint64_t)1 << 62)
#define FAR_RESERVE_BYTES ((uint64_t)1 << 62)

/* The recorded addresses of one size, handed out in order. */
typedef struct size_queue {
    uint64_t bytes;
    size_t next;
    size_t end;
} size_queue;

typedef struct ordered_segment {
    uint64_t bytes;
    size_t order;
    uint64_t address;
} ordered_segment;

typedef struct sim_device sim_device;

struct sim_device {
    frag_device base;
    frag_sim_device_options options;
    uint64_t held_bytes; /* as taken from free memory */
    uint64_t boundary;   /* below: recorded places; from here on: new addresses */
    frag_ranges recorded_space;
    frag_ranges new_space;
    frag_ranges reserve_space;
    uint64_t bump;
    uint64_t reserve_bump;
    uint64_t reserve_end; /* of the ranges that reserve_bump goes through now */
    bool is_ascending; /* the recorded mallocs ascend and never reuse a range; new ones do the same
                        */
    size_t recorded_next; /* of an ascending recording: the next malloc, while all were the same */
    uint64_t space_calls; /* mallocs and maps so far, for fail_call */
    ordered_segment *segments;
    size_queue *queues;
    size_t queue_count;
    sim_device *reserving; /* whose address reservations are taken: its own or another's */
};

static sim_device *from_base(frag_device *device)
{
    return (sim_device *)(void *)device;
}

/* What a malloc takes from free memory; maps take whole pages. */
static uint64_t malloc_takes(const sim_device *sim, uint64_t bytes)
{
    return sim->options.footprint != NULL ? frag_footprint_bytes(sim->options.footprint, bytes)
                                          : frag_round_up(bytes, sim->base.page_bytes);
}

/* Takes so much for a call of these bytes, if there is room and what stands behind gives it. Keeps
 * the thresholds that tell where another capacity would differ. */
static frag_device_result charge(sim_device *sim, frag_device_call call, uint64_t taken,
                                 uint64_t bytes, uint64_t *address)
{
    uint64_t need = sim->held_bytes + sim->options.used_by_others_bytes + taken;
    bool is_injected = call != ADOPTION && ++sim->space_calls == sim->options.fail_call;
    if (is_injected || need > sim->base.capacity_bytes) {
        frag_device_note_need(&sim->base, need, true);
        return FRAG_DEVICE_OUT_OF_MEMORY;
    }
    frag_device_result result = FRAG_DEVICE_OK;
    if (sim->options.backing != NULL && call != ADOPTION)
        result = sim->options.backing->get(sim->options.backing->context, call, bytes, address);
    if (result != FRAG_DEVICE_OK)
        return result;
    frag_device_note_need(&sim->base, need, false);
    sim->held_bytes += taken;
    return FRAG_DEVICE_OK;
}

static void uncharge(sim_device *sim, uint64_t taken)
{
    FRAG_ASSERT(taken <= sim->held_bytes);
    sim->held_bytes -= taken;
}

/* The next recorded address of this size, if there is one left. */
static bool next_recorded(sim_device *sim, uint64_t bytes, uint64_t *address)
{
    size_t low = 0;
    size_t high = sim->queue_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (sim->queues[middle].bytes < bytes)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == sim->queue_count || sim->queues[low].bytes != bytes)
        return false;
    if (sim->queues[low].next == sim->queues[low].end)
        return false;
    *address = sim->segments[sim->queues[low].next++].address;
    return true;
}

/* The address of the next recorded malloc, if this one and all before it had the recorded sizes. */
static bool next_in_step(sim_device *sim, uint64_t bytes, uint64_t *address)
{
    const frag_sim_device_options *options = &sim->options;
    if (sim->recorded_next == options->recorded_count)
        return false;
    const frag_recorded_segment *segment = &options->recorded[sim->recorded_next];
    sim->recorded_next = segment->bytes == bytes ? sim->recorded_next + 1 : options->recorded_count;
    *address = segment->address;
    return segment->bytes == bytes;
}

/* A driver whose recorded addresses ascend is assumed to keep ascending until the space is used up.
 */
static bool next_above(sim_device *sim, uint64_t pages, uint64_t *address)
{
    *address = sim->bump;
    if (!sim->is_ascending || !frag_ranges_take_at(&sim->new_space, sim->bump, pages))
        return false;
    sim->bump += pages;
    return true;
}

static bool place_as_recorded(sim_device *sim, uint64_t bytes, uint64_t pages, uint64_t *address)
{
    bool is_known =
        sim->is_ascending ? next_in_step(sim, bytes, address) : next_recorded(sim, bytes, address);
    if (is_known && frag_ranges_take_at(&sim->recorded_space, *address, pages))
        return true;
    return next_above(sim, pages, address);
}

/* Never the same address again: upwards to the end of the space, or downwards to 0. */
static bool place_in_turn(sim_device *sim, uint64_t pages, uint64_t *address)
{
    uint64_t room = sim->boundary + SPACE_BYTES - sim->bump;
    if (sim->options.is_descending)
        room = sim->bump;
    if (pages > room || sim->options.gap_bytes > room - pages)
        return false;
    uint64_t step = pages + sim->options.gap_bytes;
    sim->bump = sim->options.is_descending ? sim->bump - step : sim->bump + step;
    *address = sim->options.is_descending ? sim->bump : sim->bump - step;
    return true;
}

static bool place(sim_device *sim, uint64_t bytes, uint64_t *address)
{
    uint64_t pages = frag_round_up(bytes, sim->base.page_bytes);
    if (sim->options.address_rule == FRAG_ADDRESS_GIVEN)
        return true;
    if (sim->options.address_rule == FRAG_ADDRESS_RECORDED &&
        place_as_recorded(sim, bytes, pages, address))
        return true;
    if (sim->options.address_rule == FRAG_ADDRESS_BUMP)
        return place_in_turn(sim, pages, address);
    return frag_ranges_take_lowest(&sim->new_space, pages, address);
}

static frag_device_result sim_malloc(frag_device *device, uint64_t bytes, uint64_t *address)
{
    sim_device *sim = from_base(device);
    uint64_t taken = malloc_takes(sim, bytes);
    frag_device_result result = charge(sim, FRAG_DEVICE_MALLOC, taken, bytes, address);
    if (result != FRAG_DEVICE_OK)
        return result;
    if (place(sim, bytes, address))
        return FRAG_DEVICE_OK;
    uncharge(sim, taken); /* no address space is left, whatever the capacity */
    return FRAG_DEVICE_OUT_OF_MEMORY;
}

static frag_device_result sim_free(frag_device *device, uint64_t address, uint64_t bytes)
{
    sim_device *sim = from_base(device);
    uint64_t pages = frag_round_up(bytes, device->page_bytes);
    uncharge(sim, malloc_takes(sim, bytes));
    if (sim->options.address_rule == FRAG_ADDRESS_GIVEN)
        return FRAG_DEVICE_OK;
    if (address < sim->boundary && !sim->options.is_descending)
        frag_ranges_give(&sim->recorded_space, address, pages);
    else if (sim->options.address_rule != FRAG_ADDRESS_BUMP)
        frag_ranges_give(&sim->new_space, address, pages);
    return FRAG_DEVICE_OK;
}

/* Never the same addresses again. */
static bool reserve_in_turn(sim_device *sim, uint64_t pages, uint64_t *address)
{
    if (pages > sim->reserve_end - sim->reserve_bump && sim->reserve_bump < FAR_RESERVE_BASE &&
        !sim->options.has_endless_reserves) {
        sim->reserve_bump = FAR_RESERVE_BASE;
        sim->reserve_end = FAR_RESERVE_BASE + FAR_RESERVE_BYTES;
    }
    if (pages > sim->reserve_end - sim->reserve_bump)
        return false;
    *address = sim->reserve_bump;
    sim->reserve_bump += pages;
    return true;
}

static frag_device_result sim_reserve(frag_device *device, uint64_t bytes, uint64_t *address)
{
    const frag_sim_device_options *options = &from_base(device)->options;
    if (options->backing != NULL) {
        frag_device_result result =
            options->backing->get(options->backing->context, FRAG_DEVICE_RESERVE, bytes, address);
        if (result != FRAG_DEVICE_OK || options->address_rule == FRAG_ADDRESS_GIVEN)
            return result;
    }
    sim_device *sim = from_base(device)->reserving;
    uint64_t pages = frag_round_up(bytes, device->page_bytes);
    bool is_placed = sim->options.address_rule == FRAG_ADDRESS_BUMP
                         ? reserve_in_turn(sim, pages, address)
                         : frag_ranges_take_lowest(&sim->reserve_space, pages, address);
    return is_placed ? FRAG_DEVICE_OK : FRAG_DEVICE_OUT_OF_MEMORY;
}

static frag_device_result sim_unreserve(frag_device *device, uint64_t address, uint64_t bytes)
{
    sim_device *sim = from_base(device)->reserving;
    if (sim->options.address_rule != FRAG_ADDRESS_BUMP &&
        sim->options.address_rule != FRAG_ADDRESS_GIVEN)
        frag_ranges_give(&sim->reserve_space, address, frag_round_up(bytes, device->page_bytes));
    return FRAG_DEVICE_OK;
}

static frag_device_result sim_map(frag_device *device, uint64_t address, uint64_t bytes)
{
    FRAG_ASSERT(bytes % device->page_bytes == 0);
    return charge(from_base(device), FRAG_DEVICE_MAP, bytes, bytes, &address);
}

static frag_device_result sim_unmap(frag_device *device, uint64_t address, uint64_t bytes)
{
    (void)address;
    uncharge(from_base(device), bytes);
    return FRAG_DEVICE_OK;
}

static frag_device_result sim_memory_info(frag_device *device, bool is_look, uint64_t *free_bytes,
                                          uint64_t *total_bytes)
{
    (void)is_look;
    sim_device *sim = from_base(device);
    *total_bytes = device->capacity_bytes;
    *free_bytes = FRAG_UNLIMITED;
    if (device->capacity_bytes != FRAG_UNLIMITED) {
        uint64_t used = sim->held_bytes + sim->options.used_by_others_bytes;
        *free_bytes = used < device->capacity_bytes ? device->capacity_bytes - used : 0;
    }
    return FRAG_DEVICE_OK;
}

static frag_device_result sim_synchronize(frag_device *device)
{
    (void)device;
    return FRAG_DEVICE_OK;
}

static frag_device_result sim_adopt(frag_device *device, uint64_t address, uint64_t bytes,
                                    bool is_mapped_range)
{
    sim_device *sim = from_base(device);
    uint64_t taken = is_mapped_range ? bytes : malloc_takes(sim, bytes);
    frag_device_result result = charge(sim, ADOPTION, taken, bytes, NULL);
    if (result != FRAG_DEVICE_OK)
        return result;
    if (!is_mapped_range && sim->options.address_rule != FRAG_ADDRESS_GIVEN) {
        bool is_placed = frag_ranges_take_at(&sim->recorded_space, address,
                                             frag_round_up(bytes, device->page_bytes));
        FRAG_ASSERT(is_placed);
        /* It may lie where address space is reserved otherwise. */
        frag_device_keep_clear(device, address, bytes);
    }
    return FRAG_DEVICE_OK;
}

/* Ascending addresses continue after a place in the remaining space. */
static void keep_bump_above(uint64_t *bump, uint64_t space_end, uint64_t address, uint64_t end)
{
    if (address < space_end && end > *bump)
        *bump = end < space_end ? end : space_end;
}

static void sim_keep_clear(frag_device *device, uint64_t address, uint64_t bytes)
{
    sim_device *sim = from_base(device);
    uint64_t end = bytes < UINT64_MAX - address ? address + bytes : UINT64_MAX;
    frag_ranges_clear(&sim->new_space, address, end - address);
    frag_ranges_clear(&sim->reserving->reserve_space, address, end - address);
    keep_bump_above(&sim->bump, sim->boundary + SPACE_BYTES, address, end);
    keep_bump_above(&sim->reserving->reserve_bump, sim->reserving->reserve_end, address, end);
}

/* What changes while it runs, the device itself apart. */
typedef struct sim_state {
    uint64_t held_bytes;
    uint64_t bump;
    uint64_t reserve_bump;
    uint64_t reserve_end;
    size_t recorded_next;
    uint64_t space_calls;
} sim_state;

/* Not of one that shares address space with another, or stands before real memory. */
static bool sim_keep(const frag_device *device, frag_image *image)
{
    const sim_device *sim = (const sim_device *)(const void *)device;
    if (sim->reserving != sim || sim->options.backing != NULL)
        return false;
    frag_image_add(image,
                   &(sim_state){sim->held_bytes, sim->bump, sim->reserve_bump, sim->reserve_end,
                                sim->recorded_next, sim->space_calls},
                   sizeof(sim_state));
    frag_ranges_keep(&sim->recorded_space, image);
    frag_ranges_keep(&sim->new_space, image);
    frag_ranges_keep(&sim->reserve_space, image);
    frag_image_add(image, sim->queues, sim->queue_count * sizeof *sim->queues);
    return true;
}

static void sim_bring_back(frag_device *device, frag_image *image)
{
    sim_device *sim = from_base(device);
    sim_state state;
    frag_image_take(image, &state, sizeof state);
    sim->held_bytes = state.held_bytes;
    sim->bump = state.bump;
    sim->reserve_bump = state.reserve_bump;
    sim->reserve_end = state.reserve_end;
    sim->recorded_next = state.recorded_next;
    sim->space_calls = state.space_calls;
    frag_ranges_return(&sim->recorded_space, image);
    frag_ranges_return(&sim->new_space, image);
    frag_ranges_return(&sim->reserve_space, image);
    frag_image_take(image, sim->queues, sim->queue_count * sizeof *sim->queues);
}

static void sim_destroy(frag_device *device)
{
    sim_device *sim = from_base(device);
    frag_ranges_destroy(&sim->recorded_space);
    frag_ranges_destroy(&sim->new_space);
    frag_ranges_destroy(&sim->reserve_space);
    frag_free(sim->segments);
    frag_free(sim->queues);
    frag_free(sim);
}

static const frag_device_ops sim_ops = {
    .name = "sim",
    .malloc = sim_malloc,
    .free = sim_free,
    .reserve = sim_reserve,
    .unreserve = sim_unreserve,
    .map = sim_map,
    .unmap = sim_unmap,
    .memory_info = sim_memory_info,
    .synchronize = sim_synchronize,
    .adopt = sim_adopt,
    .keep_clear = sim_keep_clear,
    .keep = sim_keep,
    .bring_back = sim_bring_back,
    .destroy = sim_destroy,
};

static int compare_segments(const void *left, const void *right)
{
    const ordered_segment *a = left, *b = right;
    return frag_compare_then(frag_compare(a->bytes, b->bytes), frag_compare(a->order, b->order));
}

/* Sorts the recorded segments that were malloc'ed during the trace into one queue per size. */
static void queue_recorded(sim_device *sim)
{
    const frag_sim_device_options *options = &sim->options;
    size_t count = options->recorded_count - options->initial_count;
    sim->segments = frag_alloc(count, sizeof *sim->segments);
    sim->queues = frag_alloc(count, sizeof *sim->queues);
    for (size_t i = 0; i < count; i++) {
        const frag_recorded_segment *segment = &options->recorded[options->initial_count + i];
        sim->segments[i] = (ordered_segment){segment->bytes, i, segment->address};
    }
    qsort(sim->segments, count, sizeof *sim->segments, compare_segments);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || sim->segments[i].bytes != sim->segments[i - 1].bytes)
            sim->queues[sim->queue_count++] = (size_queue){sim->segments[i].bytes, i, i};
        sim->queues[sim->queue_count - 1].end = i + 1;
    }
}

/* Does every recorded malloc lie above all segments before it? */
static bool do_mallocs_ascend(const frag_sim_device_options *options)
{
    uint64_t top = 0;
    for (size_t i = 0; i < options->recorded_count; i++) {
        const frag_recorded_segment *segment = &options->recorded[i];
        if (i >= options->initial_count && segment->address < top)
            return false;
        if (segment->address + segment->bytes > top)
            top = segment->address + segment->bytes;
    }
    return options->recorded_count > options->initial_count;
}

frag_device *frag_sim_device_create(const frag_sim_device_options *options)
{
    sim_device *sim = frag_alloc(1, sizeof *sim);
    sim->options = *options;
    sim->base = (frag_device){
        .ops = &sim_ops,
        .name = "sim",
        .capacity_bytes = options->capacity_bytes,
        .page_bytes = options->page_bytes == 0 ? FRAG_DEVICE_PAGE_BYTES : options->page_bytes,
        .needs.refused_min_bytes = FRAG_UNLIMITED,
        .ordinal = options->device,
    };
    FRAG_ASSERT(options->address_rule == FRAG_ADDRESS_BUMP ||
                (options->base_address == 0 && options->gap_bytes == 0 && !options->is_descending));
    uint64_t place = (uint64_t)(options->device % DEVICE_PLACES) << DEVICE_SHIFT;
    sim->boundary = MALLOC_BASE + place;
    if (options->base_address != 0)
        sim->boundary = options->base_address;
    for (size_t i = 0; i < options->recorded_count; i++) {
        uint64_t end = options->recorded[i].address + options->recorded[i].bytes;
        if (end > sim->boundary)
            sim->boundary = frag_round_up(end, (uint64_t)1 << 40);
    }
    sim->reserving =
        options->reserves_beside != NULL ? from_base(options->reserves_beside)->reserving : sim;
    sim->bump = sim->boundary;
    sim->reserve_bump = RESERVE_BASE + place;
    frag_ranges_create(&sim->recorded_space, 0, sim->boundary);
    frag_ranges_create(&sim->new_space, sim->boundary, SPACE_BYTES);
    sim->reserve_end =
        options->has_endless_reserves ? FAR_RESERVE_BASE : RESERVE_BASE + RESERVE_BYTES;
    frag_ranges_create(&sim->reserve_space, sim->reserve_bump,
                       sim->reserve_end - sim->reserve_bump);
    if (!options->has_endless_reserves)
        frag_ranges_give(&sim->reserve_space, FAR_RESERVE_BASE, FAR_RESERVE_BYTES);
    if (options->address_rule == FRAG_ADDRESS_RECORDED) {
        sim->is_ascending = do_mallocs_ascend(options);
        sim->recorded_next = options->initial_count;
        if (!sim->is_ascending)
            queue_recorded(sim);
    }
    return &sim->base;
}
