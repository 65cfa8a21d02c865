#include "traces/exchange/live_blocks.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"

static void note(frag_live_blocks *live, const frag_live_call *call, bool is_inconsistency,
                 const char *kind, const char *meaning)
{
    frag_findings_add(live->findings, kind, meaning, is_inconsistency, live->device, call->entry,
                      "%s at 0x%" PRIx64 ", %" PRIu64 " bytes", call->text, call->address,
                      call->bytes);
}

static void end_block(frag_live_blocks *live, const frag_live_call *call, uint64_t stream,
                      uint64_t slot)
{
    frag_build_event event = {
        .op = FRAG_OP_FREE,
        .slot = (uint32_t)slot,
        .stream = stream,
        .address = call->address,
        .time_ns = call->time_ns,
    };
    frag_builder_add(live->builder, &event);
    frag_builder_slot_give(live->builder, (uint32_t)slot);
    frag_number_map_remove(&live->by_address, call->address);
}

void frag_live_alloc(frag_live_blocks *live, const frag_live_call *call)
{
    uint64_t before = 0;
    if (frag_number_map_get(&live->by_address, call->address, &before)) {
        note(live, call, true, "address-served-again",
             "an address came back that was still in use: its release is missing; what had it was "
             "taken as freed just before");
        end_block(live, call, live->blocks[before].stream, before);
    }
    uint32_t slot = frag_builder_slot_take(live->builder);
    live->blocks =
        frag_grow(live->blocks, &live->block_capacity, (size_t)slot + 1, sizeof *live->blocks);
    live->blocks[slot] = (frag_live_block){call->bytes, call->stream};
    frag_number_map_set(&live->by_address, call->address, slot);
    frag_build_event event = {
        .op = FRAG_OP_ALLOC,
        .slot = slot,
        .bytes = call->bytes,
        .stream = call->stream,
        .address = call->address,
        .time_ns = call->time_ns,
        .site = call->site,
    };
    frag_builder_add(live->builder, &event);
}

void frag_live_alloc_failed(frag_live_blocks *live, const frag_live_call *call)
{
    frag_build_event event = {
        .op = FRAG_OP_ALLOC,
        .flags = FRAG_EVENT_FAILED,
        .slot = FRAG_SLOT_NONE,
        .bytes = call->bytes,
        .stream = call->stream,
        .time_ns = call->time_ns,
    };
    frag_builder_add(live->builder, &event);
}

void frag_live_free(frag_live_blocks *live, const frag_live_call *call)
{
    uint64_t slot = 0;
    if (!frag_number_map_get(&live->by_address, call->address, &slot)) {
        note(live, call, false, "free-of-unknown-address",
             "memory came from before the recording, or was not asked for in it; its free was left "
             "out");
        return;
    }
    if (live->blocks[slot].bytes != call->bytes)
        note(live, call, true, "free-of-other-size",
             "memory was freed with another size than it was asked for with; the size of the "
             "request counts");
    end_block(live, call, call->stream, slot);
}

void frag_live_destroy(frag_live_blocks *live)
{
    frag_number_map_destroy(&live->by_address);
    frag_free(live->blocks);
}
