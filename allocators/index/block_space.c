#include "allocators/index/block_space.h"

/* Address space asked for when nothing else limits it; what would need more is out of memory. */
#define RANGE_BYTES_MAX ((uint64_t)1 << 43)

/* Holes have a busy block below them or are the first of their segment; segments are never more
 * than the requests that made them. Each segment needs a header too. */
uint32_t frag_block_space_records(const frag_policy_limits *limits, frag_space_kind kind)
{
    uint64_t segment_count =
        kind == FRAG_SPACE_GROWING ? 1 : limits->request_count + limits->initial_segment_count;
    uint64_t count = 2 * (uint64_t)limits->live_count_max + 2 * segment_count + 3;
    return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX - 1;
}

size_t frag_block_space_bytes(const frag_policy_limits *limits, frag_space_kind kind)
{
    return frag_free_records_bytes(frag_block_space_records(limits, kind)) + 64;
}

uint32_t frag_block_space_add_segment(frag_block_space *space, uint64_t address, uint64_t bytes)
{
    uint32_t id = frag_block_take_record(space);
    space->blocks[id] = (frag_block){.address = address,
                                     .bytes = bytes,
                                     .previous = id,
                                     .next = id,
                                     .state = FRAG_BLOCK_HEADER,
                                     .link = FRAG_BLOCK_NONE};
    if (space->last_header == FRAG_BLOCK_NONE)
        space->first_header = id;
    else
        space->blocks[space->last_header].link = id;
    space->last_header = id;
    return id;
}

/* Puts a hole at the end of a ring. */
uint32_t frag_block_space_append_hole(frag_block_space *space, uint32_t header, uint64_t address,
                                      uint64_t bytes)
{
    uint32_t id = frag_block_take_record(space);
    uint32_t last = space->blocks[header].previous;
    space->blocks[id] = (frag_block){.address = address,
                                     .bytes = bytes,
                                     .previous = last,
                                     .next = header,
                                     .state = FRAG_BLOCK_HOLE};
    space->blocks[last].next = id;
    space->blocks[header].previous = id;
    return id;
}

void frag_block_space_create_bare(frag_block_space *space, const frag_policy_setup *setup,
                                  uint32_t record_max)
{
    *space = (frag_block_space){
        .device = setup->device,
        .record_max = record_max,
        .record_count = 1,
        .unused = FRAG_BLOCK_NONE,
        .kind = FRAG_SPACE_SEGMENTS,
        .align = 1,
        .grow_bytes = 1,
        .first_header = FRAG_BLOCK_NONE,
        .last_header = FRAG_BLOCK_NONE,
        .may_adjoin = true,
    };
    space->blocks = frag_free_records_take(setup->arena, record_max);
}

/* All that the requests can ever take when nothing is reused, but not more than the device can map:
 * then its end decides how far the range grows, see note_end. */
static uint64_t range_bytes(const frag_policy_setup *setup, uint64_t align, uint64_t grow_bytes)
{
    uint64_t page = setup->device->page_bytes;
    uint64_t slack = 0;
    uint64_t bytes = 0;
    if (!frag_multiply(setup->limits.request_count, align + grow_bytes + page, &slack) ||
        !frag_add(slack, setup->limits.requested_bytes_total, &bytes) || bytes > RANGE_BYTES_MAX)
        bytes = RANGE_BYTES_MAX;
    if (setup->device->capacity_bytes < bytes)
        bytes = setup->device->capacity_bytes;
    return frag_round_up(bytes == 0 ? 1 : bytes, page);
}

bool frag_block_space_create(frag_block_space *space, const frag_policy_setup *setup,
                             const frag_block_space_setup *shape, frag_error *error)
{
    *space = (frag_block_space){
        .device = setup->device,
        .record_max = frag_block_space_records(&setup->limits, shape->kind),
        .record_count = 1,
        .unused = FRAG_BLOCK_NONE,
        .kind = shape->kind,
        .align = shape->align,
        .grow_bytes = shape->grow_bytes,
        .first_header = FRAG_BLOCK_NONE,
        .last_header = FRAG_BLOCK_NONE,
        .hooks = shape->hooks,
        .context = shape->context,
    };
    space->blocks = frag_free_records_take(setup->arena, space->record_max);
    if (shape->kind == FRAG_SPACE_SEGMENTS)
        return true;
    uint64_t bytes = range_bytes(setup, shape->align, shape->grow_bytes);
    uint64_t address = 0;
    if (frag_device_reserve(setup->device, bytes, &address) != FRAG_DEVICE_OK)
        return frag_fail(error, FRAG_E_SYSTEM, "the device refused %llu bytes of address space %s",
                         (unsigned long long)bytes, setup->device->failure);
    (void)frag_block_space_add_segment(space, address, 0);
    space->range_end = address + bytes;
    space->is_range_whole = bytes >= setup->device->capacity_bytes;
    return true;
}

/* What would have gone so far from the start of the range does not fit into it. Into that of a
 * larger device it might. */
static void note_end(const frag_block_space *space, uint64_t bytes)
{
    if (space->is_range_whole)
        frag_device_note_need(space->device, bytes - space->device->page_bytes + 1, true);
}

/* Maps the least number of growth steps that make the last hole large enough; single pages when the
 * device has no room for a whole step. */
static bool grow_range(frag_block_space *space, uint64_t bytes, uint32_t *hole)
{
    frag_block *header = &space->blocks[space->first_header];
    uint32_t last = header->previous;
    bool is_last_free = space->blocks[last].state == FRAG_BLOCK_HOLE;
    uint64_t has = is_last_free ? space->blocks[last].bytes : 0;
    uint64_t page = space->device->page_bytes;
    uint64_t end = header->address + header->bytes;
    uint64_t least = has >= bytes ? 0 : frag_round_up(bytes - has, page);
    uint64_t step = frag_round_up(frag_round_up(least, space->grow_bytes), page);
    uint64_t room = space->range_end - end;
    if (step > room)
        note_end(space, header->bytes + (least > room ? least : step));
    if (least > room)
        return false;
    uint64_t mapped = step <= room ? step : least;
    if (mapped != 0 && frag_device_map(space->device, end, mapped) != FRAG_DEVICE_OK) {
        if (mapped == least || frag_device_map(space->device, end, least) != FRAG_DEVICE_OK)
            return false;
        mapped = least;
    }
    header->bytes += mapped;
    if (is_last_free) {
        space->hooks->remove(space->context, last);
        space->blocks[last].bytes += mapped;
        *hole = last;
    } else {
        *hole = frag_block_space_append_hole(space, space->first_header, end, mapped);
    }
    return true;
}

static void trim_range(frag_block_space *space)
{
    frag_block *header = &space->blocks[space->first_header];
    uint32_t last = header->previous;
    if (space->blocks[last].state != FRAG_BLOCK_HOLE)
        return;
    uint64_t end = header->address + header->bytes;
    uint64_t from_start = space->blocks[last].address - header->address;
    uint64_t keep = header->address + frag_round_up(from_start, space->device->page_bytes);
    if (keep >= end || frag_device_unmap(space->device, keep, end - keep) != FRAG_DEVICE_OK)
        return;
    header->bytes -= end - keep;
    space->hooks->remove(space->context, last);
    space->blocks[last].bytes -= end - keep;
    if (space->blocks[last].bytes == 0)
        frag_block_unlink(space, last);
    else
        space->hooks->insert(space->context, last);
}

static bool add_segment(frag_block_space *space, uint64_t bytes, uint32_t *hole)
{
    uint64_t step =
        frag_round_up(frag_round_up(bytes, space->grow_bytes), space->device->page_bytes);
    uint64_t address = 0;
    if (frag_device_malloc(space->device, step, &address) != FRAG_DEVICE_OK)
        return false;
    uint32_t header = frag_block_space_add_segment(space, address, step);
    *hole = frag_block_space_append_hole(space, header, address, step);
    return true;
}

void frag_block_space_sweep(frag_block_space *space)
{
    uint32_t kept = FRAG_BLOCK_NONE;
    uint32_t next = FRAG_BLOCK_NONE;
    uint32_t first = FRAG_BLOCK_NONE;
    for (uint32_t id = space->first_header; id != FRAG_BLOCK_NONE; id = next) {
        next = space->blocks[id].link;
        if (space->blocks[id].state == FRAG_BLOCK_UNUSED) {
            frag_block_give_record(space, id);
            continue;
        }
        if (kept == FRAG_BLOCK_NONE)
            first = id;
        else
            space->blocks[kept].link = id;
        kept = id;
    }
    if (kept != FRAG_BLOCK_NONE)
        space->blocks[kept].link = FRAG_BLOCK_NONE;
    space->first_header = first;
    space->last_header = kept;
}

static void trim_segments(frag_block_space *space)
{
    uint32_t kept = FRAG_BLOCK_NONE;
    uint32_t next = FRAG_BLOCK_NONE;
    for (uint32_t id = space->first_header; id != FRAG_BLOCK_NONE; id = next) {
        frag_block *header = &space->blocks[id];
        next = header->link;
        uint32_t only = header->next;
        bool is_free =
            space->blocks[only].state == FRAG_BLOCK_HOLE && space->blocks[only].next == id;
        if (is_free &&
            frag_device_free(space->device, header->address, header->bytes) == FRAG_DEVICE_OK) {
            space->hooks->remove(space->context, only);
            frag_block_give_record(space, only);
            frag_block_give_record(space, id);
            continue;
        }
        if (kept == FRAG_BLOCK_NONE)
            space->first_header = id;
        else
            space->blocks[kept].link = id;
        header->link = FRAG_BLOCK_NONE;
        kept = id;
    }
    space->last_header = kept;
    if (kept == FRAG_BLOCK_NONE)
        space->first_header = FRAG_BLOCK_NONE;
}

void frag_block_space_trim(frag_block_space *space)
{
    frag_device_for_all(space->device);
    if (space->kind == FRAG_SPACE_GROWING)
        trim_range(space);
    else
        trim_segments(space);
}

bool frag_block_space_grow(frag_block_space *space, uint64_t bytes, uint32_t *hole)
{
    frag_device_for_all(space->device);
    if (space->kind == FRAG_SPACE_GROWING) {
        if (grow_range(space, bytes, hole))
            return true;
        /* Pages at the end would count towards the request anyway; they only stop being held. */
        trim_range(space);
        return false;
    }
    if (add_segment(space, bytes, hole))
        return true;
    trim_segments(space);
    return add_segment(space, bytes, hole);
}

void frag_block_space_walk(const frag_block_space *space, frag_span_visitor *visit, void *context)
{
    for (uint32_t id = space->first_header; id != FRAG_BLOCK_NONE; id = space->blocks[id].link) {
        const frag_block *header = &space->blocks[id];
        if (header->bytes == 0)
            continue;
        frag_span span = {.kind = FRAG_SPAN_SEGMENT,
                          .address = header->address,
                          .bytes = header->bytes,
                          .is_growing = space->kind == FRAG_SPACE_GROWING};
        visit(context, &span);
        uint64_t end = header->address + header->bytes;
        for (uint32_t at = header->next; at != id; at = space->blocks[at].next) {
            const frag_block *block = &space->blocks[at];
            bool is_hole = block->state == FRAG_BLOCK_HOLE;
            bool is_last_hole = is_hole && block->next == id;
            span = (frag_span){.kind = is_hole ? FRAG_SPAN_HOLE : FRAG_SPAN_BLOCK,
                               .address = block->address,
                               .bytes = is_last_hole ? end - block->address : block->bytes,
                               .handle = is_hole ? 0 : at};
            visit(context, &span);
        }
    }
}

static bool check_ring(const frag_block_space *space, uint32_t id, uint64_t *hole_count,
                       uint64_t *record_count, frag_error *error)
{
    const frag_block *header = &space->blocks[id];
    uint64_t address = header->address;
    uint32_t before = id;
    for (uint32_t at = header->next; at != id; before = at, at = space->blocks[at].next) {
        const frag_block *block = &space->blocks[at];
        bool is_hole = block->state == FRAG_BLOCK_HOLE;
        if (++*record_count > space->record_count || (!is_hole && block->state != FRAG_BLOCK_BUSY))
            return frag_fail(error, FRAG_E_INPUT,
                             "block space: the ring of segment %u is broken at %u", id, at);
        if (block->previous != before || block->address != address || block->bytes == 0)
            return frag_fail(error, FRAG_E_INPUT, "block space: block %u does not follow block %u",
                             at, before);
        if (is_hole && !space->may_adjoin && space->blocks[before].state == FRAG_BLOCK_HOLE)
            return frag_fail(error, FRAG_E_INPUT, "block space: holes %u and %u were not joined",
                             before, at);
        address += block->bytes;
        *hole_count += is_hole;
    }
    uint64_t end = header->address + header->bytes;
    if (header->previous != before || address > end || end - address > space->tail_max)
        return frag_fail(error, FRAG_E_INPUT, "block space: blocks do not fill segment %u", id);
    return true;
}

bool frag_block_space_check(const frag_block_space *space, uint64_t *hole_count, frag_error *error)
{
    uint64_t record_count = 1; /* [0] */
    *hole_count = 0;
    for (uint32_t id = space->first_header; id != FRAG_BLOCK_NONE; id = space->blocks[id].link) {
        if (++record_count > space->record_count || space->blocks[id].state != FRAG_BLOCK_HEADER)
            return frag_fail(error, FRAG_E_INPUT,
                             "block space: the list of segments is broken at %u", id);
        if (!check_ring(space, id, hole_count, &record_count, error))
            return false;
    }
    for (uint32_t id = space->unused; id != FRAG_BLOCK_NONE; id = space->blocks[id].next)
        if (++record_count > space->record_count || space->blocks[id].state != FRAG_BLOCK_UNUSED)
            return frag_fail(error, FRAG_E_INPUT,
                             "block space: the list of unused records is broken at %u", id);
    return record_count == space->record_count ||
           frag_fail(error, FRAG_E_INPUT, "block space: a record is lost");
}
