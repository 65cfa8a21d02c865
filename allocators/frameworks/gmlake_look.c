/* Reading the state of gmlake: the walk over segments and blocks, and the check of its structures.
 */
#include "allocators/frameworks/gmlake_state.h"
#include "allocators/index/index_audit.h"

#define NONE FRAG_LAKE_NONE

/* ---- walking: each chunk is reported once, in the stitched range if that is granted */

static bool is_here(const frag_policy *policy, uint32_t id)
{
    return policy->space.blocks[id].state == FRAG_BLOCK_HOLE || !policy->sides[id].is_lent;
}

/* A home without the pieces that are lent: each stretch between them is reported as a segment. */
static void walk_home(const frag_policy *policy, uint32_t header, frag_span_visitor *visit,
                      void *context)
{
    const frag_block *blocks = policy->space.blocks;
    bool was_here = false;
    for (uint32_t id = blocks[header].next; id != header; id = blocks[id].next) {
        frag_span span = {.kind = FRAG_SPAN_SEGMENT,
                          .address = blocks[id].address,
                          .stream = policy->sides[header].stream,
                          .is_growing = true};
        if (is_here(policy, id) && !was_here) {
            for (uint32_t at = id; at != header && is_here(policy, at); at = blocks[at].next)
                span.bytes += blocks[at].bytes;
            visit(context, &span);
        }
        was_here = is_here(policy, id);
        if (!was_here)
            continue;
        bool is_hole = blocks[id].state == FRAG_BLOCK_HOLE;
        span.kind = is_hole ? FRAG_SPAN_HOLE : FRAG_SPAN_BLOCK;
        span.bytes = blocks[id].bytes;
        span.handle = is_hole ? 0 : id;
        span.is_growing = false;
        visit(context, &span);
    }
}

static void show(const frag_policy *policy, uint32_t header, frag_span span,
                 frag_span_visitor *visit, void *context)
{
    span.stream = policy->sides[header].stream;
    visit(context, &span);
}

/* The granted part is a segment with one block; the remainder is reported with its home. */
static void walk_stitched(const frag_policy *policy, uint32_t header, frag_span_visitor *visit,
                          void *context)
{
    const frag_block *whole = &policy->space.blocks[header];
    uint64_t lent_bytes = policy->sides[header].lent_bytes;
    if (lent_bytes == 0)
        return;
    frag_span span = {.kind = FRAG_SPAN_SEGMENT,
                      .address = whole->address,
                      .bytes = lent_bytes,
                      .is_growing = true};
    show(policy, header, span, visit, context);
    span.kind = FRAG_SPAN_BLOCK;
    span.handle = whole->next;
    span.is_growing = false;
    show(policy, header, span, visit, context);
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
    const frag_lake_side *range = &policy->sides[header];
    uint32_t whole = blocks[header].next;
    uint64_t mapped = 0;
    uint64_t lent = 0;
    uint64_t busy = 0;
    if (blocks[whole].bytes != blocks[header].bytes ||
        (blocks[whole].state == FRAG_BLOCK_BUSY) != (range->lent_bytes > 0))
        return frag_fail(error, FRAG_E_INPUT, "the stitched range %u was cut", header);
    for (uint32_t at = range->runs; at != NONE; at = policy->runs[at].next_of_range) {
        const frag_lake_run *run = &policy->runs[at];
        if (run->stitched != header || policy->sides[run->home].stream != range->stream)
            return frag_fail(error, FRAG_E_INPUT, "run %u is not of its range", at);
        if (run->piece != NONE &&
            (blocks[run->piece].state != FRAG_BLOCK_BUSY || !policy->sides[run->piece].is_lent ||
             blocks[run->piece].address != run->address || lent != mapped))
            return frag_fail(error, FRAG_E_INPUT, "run %u was granted and is not lent", at);
        lent += run->piece != NONE ? blocks[run->piece].bytes : 0;
        mapped += run->bytes;
        busy += busy_bytes(policy, run);
    }
    return (mapped == blocks[header].bytes && lent == range->lent_bytes &&
            busy == range->busy_bytes) ||
           frag_fail(error, FRAG_E_INPUT, "the stitched range %u does not know its runs", header);
}

static bool check_home(const frag_policy *policy, uint32_t header, uint64_t *held, uint64_t *lent,
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
        *held += blocks[id].bytes;
        *lent += is_here(policy, id) ? 0 : blocks[id].bytes;
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
    uint64_t lent = 0;
    uint64_t granted = 0;
    frag_index_audit audit = {
        .blocks = blocks, .state = FRAG_BLOCK_HOLE, .belongs = is_of_index, .context = policy};
    if (!frag_block_space_check(&policy->space, &usable_count, error))
        return false;
    usable_count = 0;
    for (uint32_t id = policy->space.first_header; id != NONE; id = blocks[id].link) {
        bool is_stitched = policy->sides[id].kind == FRAG_LAKE_STITCHED;
        if (is_stitched ? !check_stitched(policy, id, error)
                        : !check_home(policy, id, &held, &lent, error))
            return false;
        stitched += is_stitched ? blocks[id].bytes : 0;
        granted += is_stitched ? policy->sides[id].lent_bytes : 0;
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
    if (lent != granted)
        return frag_fail(error, FRAG_E_INPUT, "%llu bytes are lent to nobody",
                         (unsigned long long)(lent - granted));
    return (held == policy->held_bytes && stitched == policy->stitched_bytes) ||
           frag_fail(error, FRAG_E_INPUT, "held or stitched bytes are counted wrongly");
}
