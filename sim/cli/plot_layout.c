#include "sim/cli/plot_layout.h"

#include <stdlib.h>

#include "sim/base/memory.h"

/* A policy and a device that pass every call on and note what came of it. The engine sees them as
 * any other; the policy inside sees the device outside, so that its calls come by here. */
typedef struct recorder recorder;

struct frag_policy {
    recorder *owner;
};

struct recorder {
    frag_device device; /* first: the policy is found from its device */
    frag_device *inner_device;
    struct frag_policy policy;
    frag_policy *inner_policy;
    const frag_policy_ops *inner;
    frag_policy_ops ops;
    const frag_trace *trace;
    frag_layout *layout;
    size_t *block_of; /* by handle */
    size_t block_of_capacity;
    size_t *open; /* segments held now */
    size_t open_count;
    size_t open_capacity;
};

/* ---- blocks */

static void note_block(recorder *record, const frag_life *life, frag_handle handle)
{
    frag_layout *layout = record->layout;
    layout->blocks = frag_grow(layout->blocks, &layout->block_capacity, layout->block_count + 1,
                               sizeof *layout->blocks);
    record->block_of = frag_grow(record->block_of, &record->block_of_capacity, (size_t)handle + 1,
                                 sizeof *record->block_of);
    record->block_of[handle] = layout->block_count;
    layout->blocks[layout->block_count++] = *life;
}

static frag_life life_now(const recorder *record, uint64_t address, uint64_t bytes)
{
    uint64_t event = record->device.event;
    bool has_site = record->trace->sites != NULL && event < record->trace->event_count;
    return (frag_life){
        .begin = event,
        .end = UINT64_MAX,
        .address = address,
        .bytes = bytes,
        .site = has_site ? record->trace->sites[event] : 0,
    };
}

static bool pass_alloc(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    recorder *record = policy->owner;
    if (!record->inner->alloc(record->inner_policy, request, grant))
        return false;
    frag_life life = life_now(record, grant->address, grant->block_bytes);
    life.requested_bytes = request->bytes;
    life.stream = request->stream;
    note_block(record, &life, grant->handle);
    return true;
}

static void pass_free(frag_policy *policy, frag_handle handle)
{
    recorder *record = policy->owner;
    record->layout->blocks[record->block_of[handle]].end = record->device.event;
    record->inner->free(record->inner_policy, handle);
}

static bool pass_adopt(frag_policy *policy, const frag_span *segment, frag_adopted_block *blocks,
                       uint32_t block_count)
{
    recorder *record = policy->owner;
    if (!record->inner->adopt(record->inner_policy, segment, blocks, block_count))
        return false;
    for (uint32_t i = 0; i < block_count; i++) {
        frag_life life = life_now(record, blocks[i].address, blocks[i].block_bytes);
        life.requested_bytes = blocks[i].requested_bytes;
        life.stream = segment->stream;
        life.site = 0;
        note_block(record, &life, blocks[i].handle);
    }
    return true;
}

static void pass_empty_cache(frag_policy *policy, uint32_t pool)
{
    policy->owner->inner->empty_cache(policy->owner->inner_policy, pool);
}

static void pass_set_limit(frag_policy *policy, uint64_t limit_bytes)
{
    policy->owner->inner->set_limit(policy->owner->inner_policy, limit_bytes);
}

static void pass_pool_change(frag_policy *policy, frag_pool_change change, uint32_t pool,
                             uint32_t stream)
{
    policy->owner->inner->pool_change(policy->owner->inner_policy, change, pool, stream);
}

static void pass_walk(const frag_policy *policy, frag_span_visitor *visit, void *context)
{
    policy->owner->inner->walk(policy->owner->inner_policy, visit, context);
}

static frag_policy *pass_create(const frag_policy_setup *setup, frag_error *error)
{
    recorder *record = (recorder *)(void *)setup->device;
    record->inner_policy = record->inner->create(setup, error);
    record->policy.owner = record;
    return record->inner_policy != NULL ? &record->policy : NULL;
}

/* ---- segments */

static void open_segment(recorder *record, const frag_life *life)
{
    frag_layout *layout = record->layout;
    layout->segments = frag_grow(layout->segments, &layout->segment_capacity,
                                 layout->segment_count + 1, sizeof *layout->segments);
    record->open = frag_grow(record->open, &record->open_capacity, record->open_count + 1,
                             sizeof *record->open);
    record->open[record->open_count++] = layout->segment_count;
    layout->segments[layout->segment_count++] = *life;
}

/* Ends what is held of a range; what stands out of it on either side goes on as a segment of its
 * own. */
static void close_range(recorder *record, uint64_t address, uint64_t bytes)
{
    uint64_t end = address + bytes;
    for (size_t i = 0; i < record->open_count;) {
        frag_life *found = &record->layout->segments[record->open[i]];
        frag_life whole = *found;
        uint64_t whole_end = whole.address + whole.bytes;
        if (whole_end <= address || whole.address >= end) {
            i++;
            continue;
        }
        found->end = record->device.event;
        record->open[i] = record->open[--record->open_count];
        whole.begin = record->device.event;
        if (whole.address < address) {
            frag_life below = whole;
            below.bytes = address - whole.address;
            open_segment(record, &below);
        }
        if (whole_end > end) {
            frag_life above = whole;
            above.address = end;
            above.bytes = whole_end - end;
            open_segment(record, &above);
        }
    }
}

static recorder *of_device(frag_device *device)
{
    return (recorder *)(void *)device;
}

static frag_device_result pass_malloc(frag_device *device, uint64_t bytes, uint64_t *address)
{
    recorder *record = of_device(device);
    frag_device_result result =
        record->inner_device->ops->malloc(record->inner_device, bytes, address);
    frag_life life = life_now(record, *address, bytes);
    if (result == FRAG_DEVICE_OK)
        open_segment(record, &life);
    return result;
}

static frag_device_result pass_device_free(frag_device *device, uint64_t address, uint64_t bytes)
{
    recorder *record = of_device(device);
    close_range(record, address, bytes);
    return record->inner_device->ops->free(record->inner_device, address, bytes);
}

static frag_device_result pass_reserve(frag_device *device, uint64_t bytes, uint64_t *address)
{
    recorder *record = of_device(device);
    return record->inner_device->ops->reserve(record->inner_device, bytes, address);
}

static frag_device_result pass_unreserve(frag_device *device, uint64_t address, uint64_t bytes)
{
    recorder *record = of_device(device);
    return record->inner_device->ops->unreserve(record->inner_device, address, bytes);
}

static frag_device_result pass_map(frag_device *device, uint64_t address, uint64_t bytes)
{
    recorder *record = of_device(device);
    frag_device_result result =
        record->inner_device->ops->map(record->inner_device, address, bytes);
    frag_life life = life_now(record, address, bytes);
    life.is_mapped = true;
    if (result == FRAG_DEVICE_OK)
        open_segment(record, &life);
    return result;
}

static frag_device_result pass_unmap(frag_device *device, uint64_t address, uint64_t bytes)
{
    recorder *record = of_device(device);
    close_range(record, address, bytes);
    return record->inner_device->ops->unmap(record->inner_device, address, bytes);
}

static frag_device_result pass_memory_info(frag_device *device, uint64_t *free_bytes,
                                           uint64_t *total_bytes)
{
    recorder *record = of_device(device);
    return record->inner_device->ops->memory_info(record->inner_device, free_bytes, total_bytes);
}

static frag_device_result pass_synchronize(frag_device *device)
{
    recorder *record = of_device(device);
    return record->inner_device->ops->synchronize(record->inner_device);
}

static frag_device_result pass_device_adopt(frag_device *device, uint64_t address, uint64_t bytes,
                                            bool is_mapped_range)
{
    recorder *record = of_device(device);
    frag_device_result result =
        record->inner_device->ops->adopt(record->inner_device, address, bytes, is_mapped_range);
    frag_life life = life_now(record, address, bytes);
    life.is_mapped = is_mapped_range;
    if (result == FRAG_DEVICE_OK)
        open_segment(record, &life);
    return result;
}

static const frag_device_ops device_ops = {
    .name = "sim",
    .malloc = pass_malloc,
    .free = pass_device_free,
    .reserve = pass_reserve,
    .unreserve = pass_unreserve,
    .map = pass_map,
    .unmap = pass_unmap,
    .memory_info = pass_memory_info,
    .synchronize = pass_synchronize,
    .adopt = pass_device_adopt,
};

static void set_up(recorder *record)
{
    const frag_policy_ops *inner = record->inner;
    record->ops = *inner;
    record->ops.create = pass_create;
    record->ops.alloc = pass_alloc;
    record->ops.free = pass_free;
    record->ops.empty_cache = inner->empty_cache != NULL ? pass_empty_cache : NULL;
    record->ops.set_limit = inner->set_limit != NULL ? pass_set_limit : NULL;
    record->ops.pool_change = inner->pool_change != NULL ? pass_pool_change : NULL;
    record->ops.adopt = inner->adopt != NULL ? pass_adopt : NULL;
    record->ops.walk = pass_walk;
    /* Only audits and decompositions ask these, and neither happens here. */
    record->ops.rounded = NULL;
    record->ops.check = NULL;
    record->ops.use = NULL;
    record->ops.defer = NULL;
    record->ops.capture = NULL;
    record->ops.configure = NULL;
    record->ops.describe_oom = NULL;
    record->ops.stats = NULL;
    record->device = *record->inner_device;
    record->device.ops = &device_ops;
}

/* ---- offsets */

static int compare_addresses(const void *left, const void *right)
{
    const frag_life *a = left;
    const frag_life *b = right;
    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return a->bytes < b->bytes ? -1 : a->bytes > b->bytes;
}

/* Ranges that some segment covered at some time, in order, each with its offset. */
static frag_life *merge_segments(const frag_layout *layout, size_t *count, uint64_t *offset_end)
{
    frag_life *ranges = frag_alloc(layout->segment_count, sizeof *ranges);
    for (size_t i = 0; i < layout->segment_count; i++)
        ranges[i] = layout->segments[i];
    qsort(ranges, layout->segment_count, sizeof *ranges, compare_addresses);
    *count = 0;
    for (size_t i = 0; i < layout->segment_count; i++) {
        frag_life *last = *count > 0 ? &ranges[*count - 1] : NULL;
        uint64_t end = ranges[i].address + ranges[i].bytes;
        if (last == NULL || ranges[i].address > last->address + last->bytes)
            ranges[(*count)++] = ranges[i];
        else if (end > last->address + last->bytes)
            last->bytes = end - last->address;
    }
    uint64_t offset = 0;
    for (size_t i = 0; i < *count; i++) {
        ranges[i].offset = offset;
        offset += ranges[i].bytes;
    }
    *offset_end = offset;
    return ranges;
}

static uint64_t offset_of(const frag_life *ranges, size_t count, uint64_t address)
{
    size_t low = 0;
    size_t high = count;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (ranges[middle].address <= address)
            low = middle;
        else
            high = middle;
    }
    return ranges[low].offset + (address - ranges[low].address);
}

static void finish(frag_layout *layout)
{
    for (size_t i = 0; i < layout->segment_count; i++)
        if (layout->segments[i].end > layout->event_end)
            layout->segments[i].end = layout->event_end;
    for (size_t i = 0; i < layout->block_count; i++)
        if (layout->blocks[i].end > layout->event_end)
            layout->blocks[i].end = layout->event_end;
    if (layout->segment_count == 0)
        return;
    size_t count = 0;
    frag_life *ranges = merge_segments(layout, &count, &layout->offset_end);
    for (size_t i = 0; i < layout->segment_count; i++)
        layout->segments[i].offset = offset_of(ranges, count, layout->segments[i].address);
    for (size_t i = 0; i < layout->block_count; i++)
        layout->blocks[i].offset = offset_of(ranges, count, layout->blocks[i].address);
    free(ranges);
}

/* An observer makes the engine tell the device before each event which it is. */
static void tell_events(void *context, uint64_t event, const frag_level *level)
{
    (void)context;
    (void)event;
    (void)level;
}

bool frag_layout_record(const frag_recording *recording, const frag_trace *trace,
                        const frag_policy_ops *ops, const frag_option_value *values,
                        const frag_device_spec *device, bool (*is_interrupted)(void),
                        frag_layout *layout, frag_error *error)
{
    *layout = (frag_layout){0};
    recorder *record = frag_alloc(1, sizeof *record);
    frag_recorded_segment *segments = NULL;
    record->inner_device = frag_device_open(trace, device, &segments);
    record->inner = ops;
    record->trace = trace;
    record->layout = layout;
    set_up(record);
    frag_replay *replay =
        frag_replay_create(recording, trace, &record->ops, values, &record->device, error);
    bool ok = replay != NULL;
    if (ok) {
        frag_replay_options options = {
            .stop_after = UINT64_MAX,
            .observer = tell_events,
            .is_interrupted = is_interrupted,
        };
        frag_replay_result result;
        ok = frag_replay_run(replay, &options, &result, error);
        layout->event_end = result.events;
        layout->oom = result.oom;
    }
    frag_replay_destroy(replay);
    frag_device_destroy(record->inner_device);
    free(segments);
    free(record->block_of);
    free(record->open);
    free(record);
    if (ok)
        finish(layout);
    else
        frag_layout_destroy(layout);
    return ok;
}

void frag_layout_destroy(frag_layout *layout)
{
    free(layout->segments);
    free(layout->blocks);
    *layout = (frag_layout){0};
}
