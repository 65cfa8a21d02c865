#include "allocators/gmlake_state.h"
#include "allocators/index_audit.h"

#define NONE FRAG_LAKE_NONE

/* ---- walking: where the chunks are, not where they belong */

/* A part of a home, in address order. */
typedef struct home_part {
    uint64_t address;
    uint64_t bytes;
    uint32_t id;   /* the block it lies in */
    bool is_there; /* its chunks are at home */
} home_part;

/* The run that is away and reaches beyond this address first. */
static const frag_lake_run *next_away(const frag_policy *policy, uint32_t header, uint64_t address)
{
    const frag_lake_run *first = NULL;
    for (uint32_t at = policy->sides[header].runs; at != NONE; at = policy->runs[at].next_of_home) {
        const frag_lake_run *run = &policy->runs[at];
        if (run->is_here && run->address + run->bytes > address &&
            (first == NULL || run->address < first->address))
            first = run;
    }
    return first;
}

/* The part of a home that begins at this address, inside this block. */
static home_part part_at(const frag_policy *policy, uint32_t header, uint64_t address, uint32_t id)
{
    const frag_block *block = &policy->space.blocks[id];
    uint64_t end = block->address + block->bytes;
    home_part part = {address, end - address, id, block->state == FRAG_BLOCK_HOLE};
    if (block->state == FRAG_BLOCK_BUSY) {
        part.is_there = policy->sides[id].use == FRAG_LAKE_GRANTED;
        return part;
    }
    const frag_lake_run *away = next_away(policy, header, address);
    if (away == NULL || away->address >= end)
        return part;
    part.is_there = away->address > address;
    part.bytes = part.is_there ? away->address - address : away->address + away->bytes - address;
    return part;
}

static bool next_part(const frag_policy *policy, uint32_t header, home_part *part)
{
    const frag_block *block = &policy->space.blocks[part->id];
    uint64_t address = part->address + part->bytes;
    uint32_t id = address < block->address + block->bytes ? part->id : block->next;
    if (id == header)
        return false;
    *part = part_at(policy, header, address, id);
    return true;
}

static uint64_t stretch_bytes(const frag_policy *policy, uint32_t header, home_part part)
{
    uint64_t bytes = part.bytes;
    while (next_part(policy, header, &part) && part.is_there)
        bytes += part.bytes;
    return bytes;
}

static void walk_home(const frag_policy *policy, uint32_t header, frag_span_visitor *visit,
                      void *context)
{
    const frag_block *blocks = policy->space.blocks;
    home_part part = part_at(policy, header, blocks[header].address, blocks[header].next);
    bool was_there = false;
    do {
        bool is_hole = blocks[part.id].state == FRAG_BLOCK_HOLE;
        frag_span span = {.kind = FRAG_SPAN_SEGMENT,
                          .address = part.address,
                          .stream = policy->sides[header].stream,
                          .is_growing = true};
        if (part.is_there && !was_there) {
            span.bytes = stretch_bytes(policy, header, part);
            visit(context, &span);
        }
        was_there = part.is_there;
        if (!part.is_there)
            continue;
        span.kind = is_hole ? FRAG_SPAN_HOLE : FRAG_SPAN_BLOCK;
        span.bytes = part.bytes;
        span.handle = is_hole ? 0 : part.id;
        span.is_growing = false;
        visit(context, &span);
    } while (next_part(policy, header, &part));
}

static void show(const frag_policy *policy, uint32_t header, frag_span span,
                 frag_span_visitor *visit, void *context)
{
    span.stream = policy->sides[header].stream;
    visit(context, &span);
}

/* Granted ranges are a segment with one block; of others, each run that is there is a segment. */
static void walk_stitched(const frag_policy *policy, uint32_t header, frag_span_visitor *visit,
                          void *context)
{
    const frag_block *whole = &policy->space.blocks[header];
    if (policy->space.blocks[whole->next].state == FRAG_BLOCK_BUSY) {
        frag_span span = {.kind = FRAG_SPAN_SEGMENT,
                          .address = whole->address,
                          .bytes = whole->bytes,
                          .is_growing = true};
        show(policy, header, span, visit, context);
        span.kind = FRAG_SPAN_BLOCK;
        span.handle = whole->next;
        span.is_growing = false;
        show(policy, header, span, visit, context);
        return;
    }
    for (uint32_t at = policy->sides[header].runs; at != NONE;
         at = policy->runs[at].next_of_range) {
        if (!policy->runs[at].is_here)
            continue;
        frag_span span = {.kind = FRAG_SPAN_SEGMENT,
                          .address = policy->runs[at].place,
                          .bytes = policy->runs[at].bytes,
                          .is_growing = true};
        show(policy, header, span, visit, context);
        span.kind = FRAG_SPAN_HOLE;
        span.is_growing = false;
        show(policy, header, span, visit, context);
    }
}

static void walk_small(const frag_policy *policy, uint32_t header, frag_span_visitor *visit,
                       void *context)
{
    const frag_block *blocks = policy->space.blocks;
    frag_span span = {.kind = FRAG_SPAN_SEGMENT,
                      .address = blocks[header].address,
                      .bytes = blocks[header].bytes,
                      .is_small_pool = true};
    show(policy, header, span, visit, context);
    for (uint32_t id = blocks[header].next; id != header; id = blocks[id].next) {
        bool is_hole = blocks[id].state == FRAG_BLOCK_HOLE;
        span = (frag_span){.kind = is_hole ? FRAG_SPAN_HOLE : FRAG_SPAN_BLOCK,
                           .address = blocks[id].address,
                           .bytes = blocks[id].bytes,
                           .handle = is_hole ? 0 : id};
        show(policy, header, span, visit, context);
    }
}

void frag_lake_walk(const frag_policy *policy, frag_span_visitor *visit, void *context)
{
    for (uint32_t id = policy->space.first_header; id != NONE; id = policy->space.blocks[id].link)
        if (policy->sides[id].kind == FRAG_LAKE_HOME)
            walk_home(policy, id, visit, context);
        else if (policy->sides[id].kind == FRAG_LAKE_STITCHED)
            walk_stitched(policy, id, visit, context);
        else
            walk_small(policy, id, visit, context);
}

/* ---- checking */

/* Bytes of a range of a home that are not free. */
static uint64_t busy_bytes(const frag_policy *policy, const frag_lake_run *run)
{
    const frag_block *blocks = policy->space.blocks;
    uint64_t end = run->address + run->bytes;
    uint64_t sum = 0;
    for (uint32_t id = blocks[run->home].next; id != run->home; id = blocks[id].next) {
        uint64_t from = blocks[id].address > run->address ? blocks[id].address : run->address;
        uint64_t to = blocks[id].address + blocks[id].bytes;
        to = to < end ? to : end;
        if (blocks[id].state == FRAG_BLOCK_BUSY && from < to)
            sum += to - from;
    }
    return sum;
}

static bool check_stitched(const frag_policy *policy, uint32_t header, frag_error *error)
{
    const frag_block *blocks = policy->space.blocks;
    uint32_t whole = blocks[header].next;
    bool is_granted = blocks[whole].state == FRAG_BLOCK_BUSY;
    uint64_t place = blocks[header].address;
    uint64_t busy = 0;
    if (blocks[whole].bytes != blocks[header].bytes)
        return frag_fail(error, FRAG_E_INPUT, "the stitched range %u was cut", header);
    for (uint32_t at = policy->sides[header].runs; at != NONE;
         at = policy->runs[at].next_of_range) {
        const frag_lake_run *run = &policy->runs[at];
        if (run->stitched != header || run->place != place ||
            policy->sides[run->home].stream != policy->sides[header].stream)
            return frag_fail(error, FRAG_E_INPUT, "run %u is not where its range has it", at);
        if (is_granted &&
            (!run->is_here || policy->sides[run->piece].use != FRAG_LAKE_LENT ||
             blocks[run->piece].address != run->address || blocks[run->piece].bytes != run->bytes))
            return frag_fail(error, FRAG_E_INPUT, "run %u was granted and is not lent", at);
        if (!is_granted && run->is_here && busy_bytes(policy, run) != 0)
            return frag_fail(error, FRAG_E_INPUT, "run %u is away while its home is in use", at);
        place += run->bytes;
        busy += busy_bytes(policy, run);
    }
    return (place == blocks[header].address + blocks[header].bytes &&
            busy == policy->sides[header].busy_bytes) ||
           frag_fail(error, FRAG_E_INPUT, "the stitched range %u does not know its runs", header);
}

static bool check_home(const frag_policy *policy, uint32_t header, uint64_t *held,
                       frag_error *error)
{
    const frag_block *blocks = policy->space.blocks;
    for (uint32_t id = blocks[header].next; id != header; id = blocks[id].next) {
        bool is_hole = blocks[id].state == FRAG_BLOCK_HOLE;
        if (blocks[id].link != header)
            return frag_fail(error, FRAG_E_INPUT, "block %u does not know its segment", id);
        if (is_hole && blocks[blocks[id].next].state == FRAG_BLOCK_HOLE)
            return frag_fail(error, FRAG_E_INPUT, "block %u was not joined with the next", id);
        if (policy->sides[header].kind == FRAG_LAKE_HOME &&
            blocks[id].bytes % policy->chunk_bytes != 0)
            return frag_fail(error, FRAG_E_INPUT, "block %u is not made of chunks", id);
        if (is_hole || policy->sides[id].use != FRAG_LAKE_LOST)
            *held += blocks[id].bytes;
    }
    uint64_t end = 0;
    for (const frag_lake_run *run = next_away(policy, header, 0); run != NULL;
         run = next_away(policy, header, end)) {
        if (run->address < end)
            return frag_fail(error, FRAG_E_INPUT, "a chunk of segment %u is in two places", header);
        end = run->address + run->bytes;
    }
    return true;
}

static bool is_of_index(const void *context, uint32_t id, uint32_t index)
{
    const frag_policy *policy = context;
    return frag_lake_index(policy, policy->space.blocks[id].link) == &policy->indexes[index];
}

bool frag_lake_check(const frag_policy *policy, frag_error *error)
{
    const frag_block *blocks = policy->space.blocks;
    uint64_t usable_count = 0;
    uint64_t held = 0;
    uint64_t stitched = 0;
    frag_index_audit audit = {
        .blocks = blocks, .state = FRAG_BLOCK_HOLE, .belongs = is_of_index, .context = policy};
    if (!frag_block_space_check(&policy->space, &usable_count, error))
        return false;
    usable_count = 0;
    for (uint32_t id = policy->space.first_header; id != NONE; id = blocks[id].link) {
        bool is_stitched = policy->sides[id].kind == FRAG_LAKE_STITCHED;
        if (is_stitched ? !check_stitched(policy, id, error)
                        : !check_home(policy, id, &held, error))
            return false;
        stitched += is_stitched ? blocks[id].bytes : 0;
        for (uint32_t at = blocks[id].next; at != id; at = blocks[at].next)
            usable_count +=
                blocks[at].state == FRAG_BLOCK_HOLE && frag_lake_is_usable(policy, id) ? 1 : 0;
    }
    for (uint32_t i = 0; i < policy->index_count; i++)
        if (!frag_index_audit_take(&audit, &policy->store, &policy->indexes[i], i, error))
            return false;
    if (audit.is_wrong || audit.count != usable_count)
        return frag_fail(error, FRAG_E_INPUT, "the indexes and the %llu usable blocks differ",
                         (unsigned long long)usable_count);
    return (held == policy->held_bytes && stitched == policy->stitched_bytes) ||
           frag_fail(error, FRAG_E_INPUT, "held or stitched bytes are counted wrongly");
}
