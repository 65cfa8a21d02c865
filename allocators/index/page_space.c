#include "allocators/index/page_space.h"

#include "allocators/index/index_audit.h"
#include "base/bytes.h"

/* Address space asked for in all, and of it for the last area. */
#define RANGE_BYTES_MAX ((uint64_t)1 << 43)

static uint64_t void_count_max(const frag_policy_limits *limits, uint32_t area_count)
{
    return (uint64_t)limits->live_count_max + 2 * (uint64_t)area_count + 64;
}

/* Busy blocks, voids, headers, and a hole on one side of each. */
static uint32_t record_count_max(const frag_policy_limits *limits, uint32_t area_count)
{
    uint64_t count = 2 * ((uint64_t)limits->live_count_max + void_count_max(limits, area_count) +
                          area_count + 2);
    return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX - 1;
}

static uint32_t label_count_of(const frag_policy_limits *limits)
{
    return limits->stream_count + 2;
}

size_t frag_page_space_bytes(const frag_policy_limits *limits, uint32_t area_count)
{
    uint32_t records = record_count_max(limits, area_count);
    uint64_t indexes = (uint64_t)area_count * (label_count_of(limits) + 1);
    return frag_free_records_bytes(records) + (size_t)indexes * sizeof(frag_free_index) +
           area_count * sizeof(frag_page_area) + 4 * 64 +
           frag_free_index_store_bytes(records, indexes);
}

static void insert_hole(frag_page_space *space, uint32_t area, uint32_t id)
{
    uint32_t label = space->records.blocks[id].link;
    frag_free_index_insert(&space->store, frag_page_space_holes(space, area, label), id);
}

static void remove_hole(frag_page_space *space, uint32_t area, uint32_t id)
{
    uint32_t label = space->records.blocks[id].link;
    frag_free_index_remove(&space->store, frag_page_space_holes(space, area, label), id);
}

static void insert_void(frag_page_space *space, uint32_t area, uint32_t id)
{
    frag_free_index_insert(&space->store, &space->voids[area], id);
    space->void_count++;
}

static void remove_void(frag_page_space *space, uint32_t area, uint32_t id)
{
    frag_free_index_remove(&space->store, &space->voids[area], id);
    space->void_count--;
}

/* A record of its own for the last bytes of one that no index holds. */
static uint32_t split_off(frag_page_space *space, uint32_t id, uint64_t bytes)
{
    uint32_t after = frag_block_take_record(&space->records);
    frag_block *low = &space->records.blocks[id];
    low->bytes -= bytes;
    space->records.blocks[after] = (frag_block){.address = low->address + low->bytes,
                                                .bytes = bytes,
                                                .previous = id,
                                                .next = low->next,
                                                .state = low->state,
                                                .link = low->link};
    space->records.blocks[low->next].previous = after;
    low->next = after;
    return after;
}

/* Joins a record that no index holds with neighbours of its kind. Returns the lowest. */
static uint32_t join(frag_page_space *space, uint32_t area, uint32_t id)
{
    frag_block *blocks = space->records.blocks;
    bool is_hole = blocks[id].state == FRAG_BLOCK_HOLE;
    for (int side = 0; side < 2; side++) {
        uint32_t other = side == 0 ? blocks[id].previous : blocks[id].next;
        if (blocks[other].state != blocks[id].state)
            continue;
        if (is_hole)
            remove_hole(space, area, other);
        else
            remove_void(space, area, other);
        uint32_t low = side == 0 ? other : id;
        uint32_t high = side == 0 ? id : other;
        blocks[low].bytes += blocks[high].bytes;
        blocks[low].link = frag_page_label_join(space, blocks[low].link, blocks[high].link);
        frag_block_unlink(&space->records, high);
        id = low;
    }
    if (is_hole)
        insert_hole(space, area, id);
    else
        insert_void(space, area, id);
    return id;
}

/* At most half of the space for the last area, the remainder in equal powers of two. */
static bool reserve(frag_page_space *space, uint64_t needed_bytes, frag_error *error)
{
    frag_device *device = space->device;
    uint64_t half = RANGE_BYTES_MAX / 2;
    uint64_t last = frag_round_up(needed_bytes < half ? needed_bytes : half, device->page_bytes);
    while (((uint64_t)1 << space->shift) % device->page_bytes != 0)
        space->shift++;
    while (((uint64_t)1 << space->shift) < needed_bytes &&
           ((uint64_t)2 << space->shift) * space->area_count <= half)
        space->shift++;
    uint64_t each = (uint64_t)1 << space->shift;
    uint64_t others = each * (space->area_count - 1);
    if (frag_device_reserve(device, others + last, &space->base) != FRAG_DEVICE_OK)
        return frag_fail(error, FRAG_E_SYSTEM, "the device refused %llu bytes of address space %s",
                         (unsigned long long)(others + last), device->failure);
    space->last_base = space->base + others;
    for (uint32_t area = 0; area < space->area_count; area++) {
        uint64_t address = space->base + each * area;
        uint64_t bytes = area + 1 < space->area_count ? each : last;
        uint32_t header = frag_block_space_add_segment(&space->records, address, bytes);
        uint32_t id = frag_block_space_append_hole(&space->records, header, address, bytes);
        space->records.blocks[id].state = FRAG_BLOCK_VOID;
        space->areas[area].header = header;
        insert_void(space, area, id);
    }
    return true;
}

bool frag_page_space_create(frag_page_space *space, const frag_policy_setup *setup,
                            uint32_t area_count, uint64_t needed_bytes, frag_error *error)
{
    frag_device *device = setup->device;
    uint32_t stream_count = setup->limits.stream_count;
    *space = (frag_page_space){
        .device = device,
        .area_count = area_count,
        .label_count = label_count_of(&setup->limits),
        .mixed = stream_count,
        .clean = stream_count + 1,
        .void_max = (uint32_t)void_count_max(&setup->limits, area_count),
    };
    uint32_t records = record_count_max(&setup->limits, area_count);
    frag_block_space_create_bare(&space->records, setup, records);
    uint32_t hole_indexes = area_count * space->label_count;
    frag_free_index_store_create(&space->store, setup->arena, space->records.blocks, records,
                                 hole_indexes + area_count, false);
    space->holes = frag_arena_take(setup->arena, hole_indexes, sizeof *space->holes);
    space->voids = frag_arena_take(setup->arena, area_count, sizeof *space->voids);
    space->areas = frag_arena_take(setup->arena, area_count, sizeof *space->areas);
    return reserve(space, needed_bytes, error);
}

typedef struct run_search {
    const frag_page_space *space;
    uint64_t bytes;
    frag_page_run best;
    bool is_found;
} run_search;

static void look_at_void(void *context, uint32_t id)
{
    run_search *at = context;
    const frag_block *blocks = at->space->records.blocks;
    const frag_block *hollow = &blocks[id];
    const frag_block *low = &blocks[hollow->previous];
    const frag_block *high = &blocks[hollow->next];
    uint64_t below = low->state == FRAG_BLOCK_HOLE ? low->bytes : 0;
    uint64_t above = high->state == FRAG_BLOCK_HOLE ? high->bytes : 0;
    uint64_t page = at->space->device->page_bytes;
    FRAG_ASSERT(below < at->bytes && above < at->bytes);
    /* Of a hole on either side; where neither is enough, the whole void joins the two. */
    frag_page_run run = {.hollow = id, .missing = hollow->bytes, .room = hollow->bytes};
    uint64_t more = above > below ? above : below;
    if (more + hollow->bytes >= at->bytes) {
        run.missing = frag_round_up(at->bytes - more, page);
        run.is_high = above > below;
    } else if (below + hollow->bytes + above < at->bytes) {
        return;
    }
    if (!at->is_found || run.missing < at->best.missing ||
        (run.missing == at->best.missing && hollow->address < blocks[at->best.hollow].address))
        at->best = run;
    at->is_found = true;
}

bool frag_page_space_place(const frag_page_space *space, uint32_t area, uint64_t bytes,
                           frag_page_run *run)
{
    run_search at = {.space = space, .bytes = bytes};
    frag_free_index_visit(&space->store, &space->voids[area], look_at_void, &at);
    *run = at.best;
    return at.is_found;
}

bool frag_page_space_map(frag_page_space *space, const frag_page_run *run, uint64_t bytes,
                         uint32_t *hole)
{
    frag_block *blocks = space->records.blocks;
    uint32_t id = run->hollow;
    uint32_t area = frag_page_space_area_of(space, blocks[id].address);
    FRAG_ASSERT(blocks[id].state == FRAG_BLOCK_VOID && blocks[id].bytes >= bytes);
    uint64_t rest = blocks[id].bytes - bytes;
    uint64_t from = blocks[id].address + (run->is_high ? rest : 0);
    if (frag_device_map(space->device, from, bytes) != FRAG_DEVICE_OK)
        return false;
    remove_void(space, area, id);
    if (rest > 0) {
        uint32_t high = split_off(space, id, run->is_high ? bytes : rest);
        insert_void(space, area, run->is_high ? id : high);
        id = run->is_high ? high : id;
    }
    blocks[id].state = FRAG_BLOCK_HOLE;
    blocks[id].link = space->clean;
    space->mapped_bytes += bytes;
    space->areas[area].mapped_bytes += bytes;
    *hole = join(space, area, id);
    return true;
}

/* Whole pages inside a hole, in bytes. */
static uint64_t pages_inside(const frag_page_space *space, uint32_t hole)
{
    const frag_block *block = &space->records.blocks[hole];
    uint64_t page = space->device->page_bytes;
    uint64_t from = frag_round_up(block->address, page);
    uint64_t to = (block->address + block->bytes) / page * page;
    return to > from ? to - from : 0;
}

uint64_t frag_page_space_unmap(frag_page_space *space, uint32_t hole, uint64_t bytes,
                               frag_page_run *run)
{
    frag_block *blocks = space->records.blocks;
    uint64_t page = space->device->page_bytes;
    uint64_t end = blocks[hole].address + blocks[hole].bytes;
    uint64_t to = end / page * page;
    uint64_t inside = pages_inside(space, hole);
    uint64_t taken = bytes < inside ? bytes / page * page : inside;
    uint32_t area = frag_page_space_area_of(space, blocks[hole].address);
    if (taken == 0 || space->void_count >= space->void_max ||
        frag_device_unmap(space->device, to - taken, taken) != FRAG_DEVICE_OK)
        return 0;
    remove_hole(space, area, hole);
    if (end > to)
        insert_hole(space, area, split_off(space, hole, end - to));
    uint32_t hollow = hole;
    if (blocks[hole].bytes > taken) {
        hollow = split_off(space, hole, taken);
        insert_hole(space, area, hole);
    }
    blocks[hollow].state = FRAG_BLOCK_VOID;
    blocks[hollow].link = space->clean;
    space->mapped_bytes -= taken;
    space->areas[area].mapped_bytes -= taken;
    /* The void above gives up its record to this one. */
    bool takes_over = run != NULL && blocks[hollow].next == run->hollow;
    uint32_t whole = join(space, area, hollow);
    if (takes_over)
        run->hollow = whole;
    return taken;
}

uint64_t frag_page_space_give_back(frag_page_space *space, uint32_t area)
{
    const frag_block *blocks = space->records.blocks;
    uint32_t header = space->areas[area].header;
    uint64_t call_count = 0;
    uint32_t next = header;
    for (uint32_t id = blocks[header].next; id != header; id = next) {
        next = blocks[id].next;
        if (blocks[id].state != FRAG_BLOCK_HOLE)
            continue;
        /* A void above becomes part of the one that the hole leaves. */
        if (blocks[next].state == FRAG_BLOCK_VOID)
            next = blocks[next].next;
        if (frag_page_space_unmap(space, id, FRAG_UNLIMITED, NULL) > 0)
            call_count++;
    }
    return call_count;
}

typedef struct donor_search {
    const frag_page_space *space;
    frag_page_donor *wanted;
    uint32_t hole;
    bool is_found;
} donor_search;

static void look_at_hole(void *context, uint32_t id)
{
    donor_search *at = context;
    frag_page_donor *wanted = at->wanted;
    const frag_block *hole = &at->space->records.blocks[id];
    const frag_page_run *run = wanted->spared;
    if (run != NULL) {
        bool is_whole = run->missing == run->room;
        bool is_low_spared = is_whole || !run->is_high;
        bool is_high_spared = is_whole || run->is_high;
        if ((is_low_spared && hole->next == run->hollow) ||
            (is_high_spared && hole->previous == run->hollow))
            return;
    }
    uint64_t has = pages_inside(at->space, id);
    uint64_t best = wanted->best_bytes;
    bool is_better = best < wanted->enough ? has > best : has < best && has >= wanted->enough;
    if (has < wanted->least || !is_better)
        return;
    wanted->best_bytes = has;
    at->hole = id;
    at->is_found = true;
}

bool frag_page_space_donor(const frag_page_space *space, uint32_t area, frag_page_donor *wanted,
                           uint32_t *hole)
{
    donor_search at = {.space = space, .wanted = wanted};
    for (uint32_t label = 0; label < space->label_count; label++)
        frag_free_index_visit(&space->store, frag_page_space_holes(space, area, label),
                              look_at_hole, &at);
    if (at.is_found)
        *hole = at.hole;
    return at.is_found;
}

void frag_page_space_relabel(frag_page_space *space, uint32_t hole, uint32_t label)
{
    uint32_t area = frag_page_space_area_of(space, space->records.blocks[hole].address);
    remove_hole(space, area, hole);
    space->records.blocks[hole].link = label;
    insert_hole(space, area, hole);
}

uint32_t frag_page_space_cut(frag_page_space *space, uint32_t area, uint32_t hole, uint64_t bytes)
{
    frag_block *rest = &space->records.blocks[hole];
    FRAG_ASSERT(rest->state == FRAG_BLOCK_HOLE && rest->bytes >= bytes);
    if (rest->bytes == bytes) {
        remove_hole(space, area, hole);
        rest->state = FRAG_BLOCK_BUSY;
        return hole;
    }
    uint32_t block = frag_block_cut(&space->records, hole, bytes);
    frag_free_index_change(&space->store, frag_page_space_holes(space, area, rest->link), hole);
    return block;
}

/* Gives a hole that an index holds a new place and label. */
static inline void change_hole(frag_page_space *space, uint32_t area, uint32_t id,
                               const frag_block *to)
{
    frag_block *hole = &space->records.blocks[id];
    frag_free_index *from = frag_page_space_holes(space, area, hole->link);
    bool is_same = hole->link == to->link;
    hole->address = to->address;
    hole->bytes = to->bytes;
    hole->link = to->link;
    if (is_same) {
        frag_free_index_change(&space->store, from, id);
        return;
    }
    frag_free_index_remove(&space->store, from, id);
    insert_hole(space, area, id);
}

void frag_page_space_free(frag_page_space *space, uint32_t id, uint32_t label)
{
    frag_block *blocks = space->records.blocks;
    frag_block *block = &blocks[id];
    uint32_t area = frag_page_space_area_of(space, block->address);
    uint32_t low = block->previous;
    uint32_t high = block->next;
    bool joins_low = blocks[low].state == FRAG_BLOCK_HOLE;
    bool joins_high = blocks[high].state == FRAG_BLOCK_HOLE;
    block->link = label;
    if (!joins_low && !joins_high) {
        block->state = FRAG_BLOCK_HOLE;
        insert_hole(space, area, id);
        return;
    }
    frag_block whole = *block;
    if (joins_high) {
        whole.bytes += blocks[high].bytes;
        whole.link = frag_page_label_join(space, whole.link, blocks[high].link);
    }
    frag_block_unlink(&space->records, id);
    if (!joins_low) {
        change_hole(space, area, high, &whole);
        return;
    }
    if (joins_high) {
        remove_hole(space, area, high);
        frag_block_unlink(&space->records, high);
    }
    whole.address = blocks[low].address;
    whole.bytes += blocks[low].bytes;
    whole.link = frag_page_label_join(space, whole.link, blocks[low].link);
    change_hole(space, area, low, &whole);
}

void frag_page_space_walk(const frag_page_space *space, frag_span_visitor *visit, void *context)
{
    const frag_block *blocks = space->records.blocks;
    for (uint32_t area = 0; area < space->area_count; area++) {
        uint32_t header = space->areas[area].header;
        for (uint32_t id = blocks[header].next; id != header;) {
            if (blocks[id].state == FRAG_BLOCK_VOID) {
                id = blocks[id].next;
                continue;
            }
            frag_span span = {
                .kind = FRAG_SPAN_SEGMENT, .address = blocks[id].address, .is_growing = true};
            uint32_t end = id;
            for (; end != header && blocks[end].state != FRAG_BLOCK_VOID; end = blocks[end].next)
                span.bytes += blocks[end].bytes;
            visit(context, &span);
            for (; id != end; id = blocks[id].next) {
                bool is_hole = blocks[id].state == FRAG_BLOCK_HOLE;
                span = (frag_span){.kind = is_hole ? FRAG_SPAN_HOLE : FRAG_SPAN_BLOCK,
                                   .address = blocks[id].address,
                                   .bytes = blocks[id].bytes,
                                   .handle = is_hole ? 0 : id};
                visit(context, &span);
            }
        }
    }
}

static uint32_t area_of(const frag_page_space *space, uint32_t id)
{
    return frag_page_space_area_of(space, space->records.blocks[id].address);
}

static bool is_hole_of(const void *context, uint32_t id, uint32_t number)
{
    const frag_page_space *space = context;
    return area_of(space, id) * space->label_count + space->records.blocks[id].link == number;
}

static bool is_void_of(const void *context, uint32_t id, uint32_t area)
{
    return area_of(context, id) == area;
}

static bool check_indexes(const frag_page_space *space, uint64_t hole_count, uint64_t void_count,
                          frag_error *error)
{
    const frag_block *blocks = space->records.blocks;
    frag_index_audit holes = {
        .blocks = blocks, .state = FRAG_BLOCK_HOLE, .belongs = is_hole_of, .context = space};
    frag_index_audit voids = {
        .blocks = blocks, .state = FRAG_BLOCK_VOID, .belongs = is_void_of, .context = space};
    for (uint32_t area = 0; area < space->area_count; area++) {
        for (uint32_t label = 0; label < space->label_count; label++)
            if (!frag_index_audit_take(&holes, &space->store,
                                       frag_page_space_holes(space, area, label),
                                       area * space->label_count + label, error))
                return false;
        if (!frag_index_audit_take(&voids, &space->store, &space->voids[area], area, error))
            return false;
    }
    bool is_whole =
        holes.count == hole_count && voids.count == void_count && void_count == space->void_count;
    return (is_whole && !holes.is_wrong && !voids.is_wrong) ||
           frag_fail(error, FRAG_E_INPUT, "page space: the indexes and the %llu holes differ",
                     (unsigned long long)hole_count);
}

bool frag_page_space_check(const frag_page_space *space, frag_error *error)
{
    const frag_block *blocks = space->records.blocks;
    uint64_t page = space->device->page_bytes;
    uint64_t hole_count = 0;
    uint64_t void_count = 0;
    uint64_t mapped_all = 0;
    for (uint32_t area = 0; area < space->area_count; area++) {
        uint32_t header = space->areas[area].header;
        uint64_t address = blocks[header].address;
        uint64_t mapped = 0;
        uint32_t before = header;
        for (uint32_t id = blocks[header].next; id != header; before = id, id = blocks[id].next) {
            const frag_block *at = &blocks[id];
            bool is_void = at->state == FRAG_BLOCK_VOID;
            bool is_hole = at->state == FRAG_BLOCK_HOLE;
            if (at->previous != before || at->address != address || at->bytes == 0 ||
                (!is_void && !is_hole && at->state != FRAG_BLOCK_BUSY))
                return frag_fail(error, FRAG_E_INPUT, "page space: record %u does not follow %u",
                                 id, before);
            if ((is_void || is_hole) && blocks[before].state == at->state)
                return frag_fail(error, FRAG_E_INPUT, "page space: %u and %u were not joined",
                                 before, id);
            if (is_void && (at->address % page != 0 || at->bytes % page != 0))
                return frag_fail(error, FRAG_E_INPUT, "page space: void %u is no whole pages", id);
            address += at->bytes;
            mapped += is_void ? 0 : at->bytes;
            hole_count += is_hole;
            void_count += is_void;
        }
        if (address != blocks[header].address + blocks[header].bytes ||
            mapped != space->areas[area].mapped_bytes)
            return frag_fail(error, FRAG_E_INPUT, "page space: area %u is not filled", area);
        mapped_all += mapped;
    }
    if (mapped_all != space->mapped_bytes)
        return frag_fail(error, FRAG_E_INPUT, "page space: %llu bytes are mapped, not %llu",
                         (unsigned long long)mapped_all, (unsigned long long)space->mapped_bytes);
    return check_indexes(space, hole_count, void_count, error);
}
