#include "studies/verify/golden_layout.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/memory.h"

typedef struct layout_visit {
    frag_golden_layout *layout;
    const frag_trace *trace;
} layout_visit;

static void add_segment(layout_visit *visit, const frag_span *span)
{
    frag_golden_layout *layout = visit->layout;
    const frag_trace *trace = visit->trace;
    *FRAG_APPEND(layout->segments, layout->segment_count, layout->segment_capacity) =
        (frag_held_segment){
            .segment = {.address = span->address,
                        .bytes = span->bytes,
                        .stream = frag_trace_stream_handle(trace, span->stream),
                        .pool = span->pool < trace->pool_count ? trace->pool_ids[span->pool]
                                                               : (frag_pool_id){0},
                        .is_small = span->is_small_pool,
                        .is_expandable = span->is_growing},
            .device = trace->device,
            .blocks = {layout->block_count, 0},
        };
}

static void visit_span(void *context, const frag_span *span, const frag_block_view *block)
{
    layout_visit *visit = context;
    frag_golden_layout *layout = visit->layout;
    if (span->kind == FRAG_SPAN_SEGMENT) {
        add_segment(visit, span);
        return;
    }
    frag_held_segment *held = &layout->segments[layout->segment_count - 1];
    frag_golden_block added = {span->address, span->bytes, 0, 'I'};
    if (block != NULL) {
        added.state = block->is_waiting ? 'P' : 'A';
        added.requested_bytes = block->requested_bytes;
        held->segment.allocated_bytes += block->is_waiting ? 0 : span->bytes;
        held->segment.active_bytes += span->bytes;
        held->segment.requested_bytes += block->requested_bytes;
    }
    *FRAG_APPEND(layout->blocks, layout->block_count, layout->block_capacity) = added;
    held->blocks.count++;
}

static int compare_addresses(const void *left, const void *right)
{
    uint64_t a = ((const frag_held_segment *)left)->segment.address;
    uint64_t b = ((const frag_held_segment *)right)->segment.address;
    return frag_compare(a, b);
}

void frag_golden_layout_add(frag_golden_layout *layout, const frag_replay *replay,
                            const frag_trace *trace)
{
    layout_visit visit = {layout, trace};
    size_t first = layout->segment_count;
    frag_replay_walk(replay, visit_span, &visit);
    if (layout->segment_count > first)
        qsort(layout->segments + first, layout->segment_count - first, sizeof *layout->segments,
              compare_addresses);
}

static void add_segment_text(frag_text *text, const frag_golden_segment *segment, uint32_t device)
{
    frag_text_add(text,
                  "segment 0x%" PRIx64 " of %" PRIu64 " bytes, device %" PRIu32
                  ", stream 0x%" PRIx64 ", %s%s, pool %" PRIu64 " %" PRIu64 ", allocated %" PRIu64
                  ", active %" PRIu64 ", requested %" PRIu64,
                  segment->address, segment->bytes, device, segment->stream,
                  segment->is_small ? "small" : "large",
                  segment->is_expandable ? " expandable" : "", segment->pool.high,
                  segment->pool.low, segment->allocated_bytes, segment->active_bytes,
                  segment->requested_bytes);
}

static bool is_same_segment(const frag_golden_segment *a, const frag_golden_segment *b)
{
    return a->address == b->address && a->bytes == b->bytes && a->stream == b->stream &&
           a->is_small == b->is_small && a->is_expandable == b->is_expandable &&
           a->pool.high == b->pool.high && a->pool.low == b->pool.low &&
           a->allocated_bytes == b->allocated_bytes && a->active_bytes == b->active_bytes &&
           a->requested_bytes == b->requested_bytes;
}

static void add_block_text(frag_text *text, const frag_golden_block *blocks, size_t index,
                           size_t count)
{
    if (index < count)
        frag_text_add(text,
                      "block %zu at 0x%" PRIx64 ", %" PRIu64 " bytes, requested %" PRIu64 ", %c",
                      index + 1, blocks[index].address, blocks[index].bytes,
                      blocks[index].requested_bytes, blocks[index].state);
    else
        frag_text_add(text, "%zu blocks", count);
}

bool frag_golden_layout_compare(const frag_golden_layout *layout, size_t index,
                                const frag_golden_log *log, const frag_golden_line *line,
                                frag_text *library, frag_text *policy)
{
    const frag_held_segment *held = &layout->segments[index];
    const frag_golden_segment *logged = &log->segments[line->segment];
    if (held->device != line->device || !is_same_segment(&held->segment, logged)) {
        add_segment_text(library, logged, line->device);
        add_segment_text(policy, &held->segment, held->device);
        return false;
    }
    const frag_golden_block *mine = &layout->blocks[held->blocks.first];
    const frag_golden_block *theirs =
        line->items.count > 0 ? &log->blocks[line->items.first] : mine;
    size_t at = 0;
    while (at < held->blocks.count && at < line->items.count &&
           mine[at].address == theirs[at].address && mine[at].bytes == theirs[at].bytes &&
           mine[at].requested_bytes == theirs[at].requested_bytes &&
           mine[at].state == theirs[at].state)
        at++;
    if (at == held->blocks.count && at == line->items.count)
        return true;
    add_block_text(library, theirs, at, line->items.count);
    add_block_text(policy, mine, at, held->blocks.count);
    return false;
}

void frag_golden_layout_destroy(frag_golden_layout *layout)
{
    frag_free(layout->segments);
    frag_free(layout->blocks);
    *layout = (frag_golden_layout){0};
}
