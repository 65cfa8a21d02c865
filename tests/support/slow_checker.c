#include "tests/support/slow_checker.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define SPACE_END ((uint64_t)1 << 60)    /* of all addresses, as on the simulated device */
#define RESERVED_MAX ((uint64_t)1 << 46) /* a byte is kept for each page of it */

static slow_device *from_base(frag_device *device)
{
    return (slow_device *)(void *)device;
}

static uint64_t in_pages(const slow_device *device, uint64_t bytes)
{
    uint64_t page = device->base.page_bytes;
    return bytes % page == 0 ? bytes : bytes + page - bytes % page;
}

static bool has_room(slow_device *device, uint64_t bytes)
{
    device->space_calls++;
    if (device->refuse_every != 0 && device->space_calls % device->refuse_every == 0)
        return false;
    return device->held_bytes + in_pages(device, bytes) <= device->base.capacity_bytes;
}

static frag_device_result slow_malloc(frag_device *base, uint64_t bytes, uint64_t *address)
{
    slow_device *device = from_base(base);
    if (bytes > SPACE_END - device->next_address || !has_room(device, bytes))
        return FRAG_DEVICE_OUT_OF_MEMORY;
    *address = device->next_address;
    /* A page between segments, so that none can be mistaken for a neighbour. */
    device->next_address += in_pages(device, bytes) + base->page_bytes;
    *FRAG_APPEND(device->segments, device->segment_count, device->segment_capacity) =
        (slow_range){*address, bytes};
    device->held_bytes += in_pages(device, bytes);
    device->policy_bytes += bytes;
    return FRAG_DEVICE_OK;
}

static frag_device_result slow_free(frag_device *base, uint64_t address, uint64_t bytes)
{
    slow_device *device = from_base(base);
    for (size_t i = 0; i < device->segment_count; i++) {
        if (device->segments[i].address != address)
            continue;
        FRAG_ASSERT(device->segments[i].bytes == bytes);
        device->segments[i] = device->segments[--device->segment_count];
        device->held_bytes -= in_pages(device, bytes);
        device->policy_bytes -= bytes;
        return FRAG_DEVICE_OK;
    }
    FRAG_ASSERT(false && "freed what the device never gave");
    return FRAG_DEVICE_FAILED;
}

static frag_device_result slow_reserve(frag_device *base, uint64_t bytes, uint64_t *address)
{
    slow_device *device = from_base(base);
    uint64_t pages = in_pages(device, bytes);
    if (pages > RESERVED_MAX)
        return FRAG_DEVICE_OUT_OF_MEMORY;
    device->reservations = frag_grow(device->reservations, &device->reservation_capacity,
                                     device->reservation_count + 1, sizeof *device->reservations);
    *address = device->next_address;
    device->next_address += pages + base->page_bytes;
    slow_reservation *made = &device->reservations[device->reservation_count++];
    made->range = (slow_range){*address, bytes};
    made->is_mapped = frag_alloc((size_t)(pages / base->page_bytes), 1);
    return FRAG_DEVICE_OK;
}

static frag_device_result slow_unreserve(frag_device *base, uint64_t address, uint64_t bytes)
{
    slow_device *device = from_base(base);
    for (size_t i = 0; i < device->reservation_count; i++) {
        slow_reservation *gone = &device->reservations[i];
        if (gone->range.address != address)
            continue;
        FRAG_ASSERT(gone->range.bytes == bytes);
        FRAG_ASSERT(memchr(gone->is_mapped, 1,
                           (size_t)(in_pages(device, bytes) / base->page_bytes)) == NULL);
        free(gone->is_mapped);
        *gone = device->reservations[--device->reservation_count];
        return FRAG_DEVICE_OK;
    }
    FRAG_ASSERT(false && "unreserved what the device never gave");
    return FRAG_DEVICE_FAILED;
}

/* Pages of a range inside a reservation: were all of them as told? They are set to the other state.
 */
static void turn_pages(slow_device *device, uint64_t address, uint64_t bytes, unsigned char was)
{
    uint64_t page_bytes = device->base.page_bytes;
    FRAG_ASSERT(bytes != 0 && bytes % page_bytes == 0);
    for (size_t i = 0; i < device->reservation_count; i++) {
        slow_reservation *home = &device->reservations[i];
        if (address < home->range.address ||
            address + bytes > home->range.address + home->range.bytes)
            continue;
        FRAG_ASSERT((address - home->range.address) % page_bytes == 0);
        unsigned char *first = &home->is_mapped[(address - home->range.address) / page_bytes];
        size_t count = (size_t)(bytes / page_bytes);
        FRAG_ASSERT(memchr(first, !was, count) == NULL);
        memset(first, !was, count);
        return;
    }
    FRAG_ASSERT(false && "mapped outside of what is reserved");
}

static frag_device_result slow_map(frag_device *base, uint64_t address, uint64_t bytes)
{
    slow_device *device = from_base(base);
    if (!has_room(device, bytes))
        return FRAG_DEVICE_OUT_OF_MEMORY;
    turn_pages(device, address, bytes, 0);
    device->held_bytes += bytes;
    device->policy_bytes += bytes;
    return FRAG_DEVICE_OK;
}

static bool do_overlap(slow_range one, slow_range other)
{
    return one.address < other.address + other.bytes && other.address < one.address + one.bytes;
}

static frag_device_result slow_unmap(frag_device *base, uint64_t address, uint64_t bytes)
{
    slow_device *device = from_base(base);
    for (size_t i = 0; i < device->alias_count; i++) {
        slow_range source = {device->aliases[i].source, device->aliases[i].range.bytes};
        FRAG_ASSERT(!do_overlap(device->aliases[i].range, (slow_range){address, bytes}) &&
                    !do_overlap(source, (slow_range){address, bytes}));
    }
    turn_pages(device, address, bytes, 1);
    device->held_bytes -= bytes;
    device->policy_bytes -= bytes;
    return FRAG_DEVICE_OK;
}

/* Is mapped, and not for a second time. */
static void require_source(slow_device *device, uint64_t address, uint64_t bytes)
{
    for (size_t i = 0; i < device->alias_count; i++)
        FRAG_ASSERT(!do_overlap(device->aliases[i].range, (slow_range){address, bytes}));
    turn_pages(device, address, bytes, 1);
    turn_pages(device, address, bytes, 0);
}

static frag_device_result slow_map_again(frag_device *base, uint64_t address, uint64_t bytes,
                                         uint64_t source)
{
    slow_device *device = from_base(base);
    require_source(device, source, bytes);
    turn_pages(device, address, bytes, 0);
    *FRAG_APPEND(device->aliases, device->alias_count, device->alias_capacity) =
        (slow_alias){{address, bytes}, source};
    return FRAG_DEVICE_OK;
}

static frag_device_result slow_unmap_again(frag_device *base, uint64_t address, uint64_t bytes)
{
    slow_device *device = from_base(base);
    uint64_t found = 0;
    turn_pages(device, address, bytes, 1);
    for (size_t i = 0; i < device->alias_count;) {
        slow_range range = device->aliases[i].range;
        if (!do_overlap(range, (slow_range){address, bytes})) {
            i++;
            continue;
        }
        found += range.bytes;
        device->aliases[i] = device->aliases[--device->alias_count];
    }
    FRAG_ASSERT(found == bytes);
    return FRAG_DEVICE_OK;
}

static frag_device_result slow_memory_info(frag_device *base, bool is_look, uint64_t *free_bytes,
                                           uint64_t *total_bytes)
{
    (void)is_look;
    *total_bytes = base->capacity_bytes;
    *free_bytes = base->capacity_bytes - from_base(base)->held_bytes;
    return FRAG_DEVICE_OK;
}

static frag_device_result slow_synchronize(frag_device *base)
{
    (void)base;
    return FRAG_DEVICE_OK;
}

static const frag_device_ops slow_ops = {
    .name = "slow",
    .malloc = slow_malloc,
    .free = slow_free,
    .reserve = slow_reserve,
    .unreserve = slow_unreserve,
    .map = slow_map,
    .unmap = slow_unmap,
    .map_again = slow_map_again,
    .unmap_again = slow_unmap_again,
    .memory_info = slow_memory_info,
    .synchronize = slow_synchronize,
};

void slow_checker_create(slow_checker *checker, uint64_t capacity_bytes, uint64_t page_bytes)
{
    memset(checker, 0, sizeof *checker);
    checker->device.base = (frag_device){.ops = &slow_ops,
                                         .name = "slow",
                                         .capacity_bytes = capacity_bytes,
                                         .page_bytes = page_bytes,
                                         .needs.refused_min_bytes = UINT64_MAX};
    checker->device.next_address = (uint64_t)1 << 40;
}

void slow_checker_destroy(slow_checker *checker)
{
    for (size_t i = 0; i < checker->device.reservation_count; i++)
        free(checker->device.reservations[i].is_mapped);
    free(checker->device.reservations);
    free(checker->device.segments);
    free(checker->device.aliases);
    free(checker->device.base.streams.clocks);
    free(checker->blocks);
}

static bool problem(slow_checker *checker, const char *what, uint64_t address, uint64_t bytes)
{
    if (checker->problem[0] == '\0')
        snprintf(checker->problem, sizeof checker->problem, "%s: %" PRIu64 " bytes at 0x%" PRIx64,
                 what, bytes, address);
    return false;
}

/* Does the policy hold all of this range? */
static bool is_held(const slow_checker *checker, uint64_t address, uint64_t bytes)
{
    const slow_device *device = &checker->device;
    for (size_t i = 0; i < device->segment_count; i++)
        if (address >= device->segments[i].address &&
            address + bytes <= device->segments[i].address + device->segments[i].bytes)
            return true;
    uint64_t page_bytes = device->base.page_bytes;
    for (size_t i = 0; i < device->reservation_count; i++) {
        const slow_reservation *home = &device->reservations[i];
        if (address < home->range.address ||
            address + bytes > home->range.address + home->range.bytes)
            continue;
        uint64_t first = (address - home->range.address) / page_bytes;
        uint64_t last = (address + bytes - 1 - home->range.address) / page_bytes;
        return memchr(&home->is_mapped[first], 0, (size_t)(last - first + 1)) == NULL;
    }
    return false;
}

/* The next part of a range that is mapped in one piece, once or for a second time, and where its
 * memory is mapped first. The range becomes the rest. */
static slow_range next_memory(const slow_device *device, slow_range *range)
{
    slow_range memory = *range;
    for (size_t i = 0; i < device->alias_count; i++) {
        const slow_alias *alias = &device->aliases[i];
        if (range->address < alias->range.address ||
            range->address >= alias->range.address + alias->range.bytes)
            continue;
        uint64_t skipped = range->address - alias->range.address;
        uint64_t left = alias->range.bytes - skipped;
        memory.address = alias->source + skipped;
        memory.bytes = left < range->bytes ? left : range->bytes;
    }
    range->address += memory.bytes;
    range->bytes -= memory.bytes;
    return memory;
}

static bool do_share_memory(const slow_device *device, slow_range one, slow_range other)
{
    while (one.bytes > 0) {
        slow_range memory = next_memory(device, &one);
        for (slow_range left = other; left.bytes > 0;)
            if (do_overlap(memory, next_memory(device, &left)))
                return true;
    }
    return false;
}

bool slow_checker_grant(slow_checker *checker, const frag_request *request, frag_grant *granted)
{
    if (!checker->ops->alloc(checker->policy, request, granted))
        return false;
    frag_grant grant = *granted;
    if (grant.block_bytes < request->bytes)
        return problem(checker, "a block is smaller than its request", grant.address,
                       grant.block_bytes);
    if (checker->ops->rounded != NULL) {
        uint64_t rounded = checker->ops->rounded(checker->policy, request->bytes);
        if (rounded < request->bytes || grant.block_bytes < rounded)
            return problem(checker, "a block is smaller than the rounded request", grant.address,
                           grant.block_bytes);
    }
    if (grant.address % checker->align != 0)
        return problem(checker, "a block is not aligned", grant.address, grant.block_bytes);
    if (!is_held(checker, grant.address, grant.block_bytes))
        return problem(checker, "a block lies outside of the segments", grant.address,
                       grant.block_bytes);
    for (size_t i = 0; i < checker->block_count; i++) {
        const slow_block *other = &checker->blocks[i];
        if (grant.address < other->address + other->bytes &&
            other->address < grant.address + grant.block_bytes)
            return problem(checker, "a block lies over another", grant.address, grant.block_bytes);
        if (checker->device.alias_count > 0 &&
            do_share_memory(&checker->device, (slow_range){grant.address, grant.block_bytes},
                            (slow_range){other->address, other->bytes}))
            return problem(checker, "a block has memory of another", grant.address,
                           grant.block_bytes);
        if (grant.handle == other->handle)
            return problem(checker, "two blocks have one handle", grant.address, grant.block_bytes);
    }
    *FRAG_APPEND(checker->blocks, checker->block_count, checker->block_capacity) =
        (slow_block){.address = grant.address,
                     .bytes = grant.block_bytes,
                     .requested_bytes = request->bytes,
                     .pool = request->pool,
                     .handle = grant.handle};
    return true;
}

bool slow_checker_alloc(slow_checker *checker, const frag_request *request)
{
    frag_grant grant = {0};
    return slow_checker_grant(checker, request, &grant);
}

void slow_checker_free(slow_checker *checker, size_t block, uint32_t stream)
{
    frag_handle handle = checker->blocks[block].handle;
    if (checker->blocks[block].is_shared)
        checker->blocks[block].is_waiting = true;
    else
        checker->blocks[block] = checker->blocks[--checker->block_count];
    checker->ops->free(checker->policy, handle, stream);
}

void slow_checker_use(slow_checker *checker, size_t block, uint32_t stream)
{
    slow_block *at = &checker->blocks[block];
    if (!at->is_waiting && checker->ops->use(checker->policy, at->handle, stream))
        at->is_shared = true;
}

void slow_checker_complete(void *context, frag_handle handle)
{
    slow_checker *checker = context;
    for (size_t i = 0; i < checker->block_count; i++) {
        if (checker->blocks[i].handle != handle)
            continue;
        if (!checker->blocks[i].is_waiting)
            problem(checker, "a block completes that is in use", checker->blocks[i].address,
                    checker->blocks[i].bytes);
        checker->blocks[i] = checker->blocks[--checker->block_count];
        return;
    }
    problem(checker, "a block completes that is not live", 0, handle);
}

typedef struct walk_state {
    slow_checker *checker;
    uint64_t segment_end; /* of the segment being walked */
    uint64_t at;          /* where the next span must start */
    uint64_t segment_bytes;
    uint64_t block_bytes;
    size_t block_count;
} walk_state;

static void see_block(slow_checker *checker, const frag_span *span)
{
    for (size_t i = 0; i < checker->block_count; i++) {
        const slow_block *block = &checker->blocks[i];
        if (block->handle != span->handle)
            continue;
        if (block->address != span->address || block->bytes != span->bytes)
            problem(checker, "the walk tells another block than was granted", span->address,
                    span->bytes);
        return;
    }
    problem(checker, "the walk tells a block that is not live", span->address, span->bytes);
}

static void see_span(void *context, const frag_span *span)
{
    walk_state *state = context;
    slow_checker *checker = state->checker;
    if (span->bytes == 0)
        problem(checker, "the walk tells an empty span", span->address, 0);
    if (span->kind == FRAG_SPAN_SEGMENT) {
        if (state->at != state->segment_end)
            problem(checker, "blocks and holes do not fill the segment", state->at,
                    state->segment_end - state->at);
        if (!is_held(checker, span->address, span->bytes))
            problem(checker, "the walk tells a segment that is not held", span->address,
                    span->bytes);
        state->at = span->address;
        state->segment_end = span->address + span->bytes;
        state->segment_bytes += span->bytes;
        return;
    }
    if (span->address != state->at)
        problem(checker, "the walk leaves a gap or goes back", span->address, span->bytes);
    state->at = span->address + span->bytes;
    if (span->kind != FRAG_SPAN_BLOCK)
        return;
    see_block(checker, span);
    state->block_count++;
    state->block_bytes += span->bytes;
}

bool slow_checker_audit(slow_checker *checker)
{
    walk_state state = {.checker = checker};
    checker->ops->walk(checker->policy, see_span, &state);
    if (state.at != state.segment_end)
        problem(checker, "blocks and holes do not fill the last segment", state.at,
                state.segment_end - state.at);
    uint64_t live_bytes = 0;
    for (size_t i = 0; i < checker->block_count; i++)
        live_bytes += checker->blocks[i].bytes;
    if (state.block_count != checker->block_count || state.block_bytes != live_bytes)
        problem(checker, "the walk misses blocks", 0, live_bytes - state.block_bytes);
    if (state.segment_bytes != checker->device.policy_bytes)
        problem(checker, "the walk and the device differ on what is held", 0, state.segment_bytes);
    if (checker->device.base.reserved_bytes != checker->device.policy_bytes)
        problem(checker, "the device counts reserved bytes wrongly", 0,
                checker->device.base.reserved_bytes);
    frag_error error = {0};
    if (!checker->ops->check(checker->policy, &error) && checker->problem[0] == '\0')
        snprintf(checker->problem, sizeof checker->problem, "its own check: %.200s",
                 error.sentence);
    return checker->problem[0] == '\0';
}
