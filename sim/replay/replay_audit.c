/* What --check finds: every block that the policy grants, and every so many events its layout,
 * against what it has granted, what the program holds and what the device gave. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sim/replay/replay.h"
#include "sim/replay/replay_state.h"

/* What was granted by this handle last. */
typedef struct audited_block {
    uint64_t address;
    uint64_t bytes;
    uint64_t held_at; /* the audit that found it held by the program, and */
    uint64_t seen_at; /* in the walk */
} audited_block;

typedef struct audited_range {
    uint64_t address;
    uint64_t bytes;
} audited_range;

struct frag_audit_keeper {
    audited_block *blocks; /* by handle */
    size_t block_count;
    audited_range *segments;
    size_t segment_count;
    size_t segment_capacity;
    uint64_t number;   /* of the audit, from 1 */
    uint64_t at;       /* where the next span of the walk must begin */
    uint64_t end;      /* of the segment being walked */
    uint64_t live;     /* blocks that the program holds, */
    uint64_t seen;     /* and those of the walk */
    frag_error broken; /* the first rule that is */
};

frag_audit_keeper *frag_audit_create(void)
{
    return frag_alloc(1, sizeof(frag_audit_keeper));
}

void frag_audit_destroy(frag_audit_keeper *audit)
{
    if (audit == NULL)
        return;
    frag_free(audit->blocks);
    frag_free(audit->segments);
    frag_free(audit);
}

static void breaks(frag_audit_keeper *audit, const char *what, uint64_t address, uint64_t bytes)
{
    if (audit->broken.code == FRAG_E_NONE)
        frag_fail(&audit->broken, FRAG_E_INPUT, "%s: %llu bytes at 0x%llx", what,
                  (unsigned long long)bytes, (unsigned long long)address);
}

/* ---- what is granted */

void frag_audit_note(frag_replay *replay, uint64_t requested_bytes, const frag_grant *grant)
{
    frag_audit_keeper *audit = replay->audit;
    uint64_t address = grant->address;
    if (grant->block_bytes < requested_bytes)
        breaks(audit, "a block is smaller than its request", address, grant->block_bytes);
    if (grant->block_bytes > UINT64_MAX - address)
        breaks(audit, "a block lies beyond all addresses", address, grant->block_bytes);
    if (grant->handle >= FRAG_HANDLE_LIMIT) {
        breaks(audit, "the handle of a block is not below 2^28", address, grant->block_bytes);
        return;
    }
    if (grant->handle >= audit->block_count)
        audit->blocks = frag_grow(audit->blocks, &audit->block_count, (size_t)grant->handle + 1,
                                  sizeof *audit->blocks);
    audited_block *block = &audit->blocks[grant->handle];
    *block = (audited_block){.address = address, .bytes = grant->block_bytes};
}

/* ---- what is held */

static void hold(frag_audit_keeper *audit, uint32_t handle)
{
    if (handle >= audit->block_count)
        return; /* its grant was no good */
    audited_block *block = &audit->blocks[handle];
    if (block->held_at == audit->number)
        breaks(audit, "two live blocks have one handle", block->address, block->bytes);
    block->held_at = audit->number;
    audit->live++;
}

static void hold_all(const frag_replay *replay)
{
    frag_audit_keeper *audit = replay->audit;
    uint32_t waiting = frag_use_handle_max(replay);
    audit->live = 0;
    /* One more than the trace's: the slot of a request that failed when recorded. */
    for (uint32_t i = 0; i <= replay->trace->slot_count; i++)
        if (frag_slot_is_held(replay, i))
            hold(audit, replay->slots[i].handle);
    for (uint32_t handle = 0; handle < waiting; handle++)
        if (frag_use_held(replay, handle) != NULL)
            hold(audit, handle);
}

/* ---- the walk */

static void end_segment(frag_audit_keeper *audit)
{
    if (audit->at != audit->end)
        breaks(audit, "blocks and holes do not fill their segment", audit->at,
               audit->end - audit->at);
}

static void see_block(frag_audit_keeper *audit, const frag_span *span)
{
    audited_block *block = span->handle < audit->block_count ? &audit->blocks[span->handle] : NULL;
    audit->seen++;
    if (block == NULL || block->held_at != audit->number || block->seen_at == audit->number)
        breaks(audit, "the walk shows a block that is not live, or twice", span->address,
               span->bytes);
    else if (block->address != span->address || block->bytes != span->bytes)
        breaks(audit, "the walk shows another block than was granted", span->address, span->bytes);
    if (block != NULL)
        block->seen_at = audit->number;
}

static void see_span(void *context, const frag_span *span)
{
    frag_audit_keeper *audit = context;
    if (span->bytes == 0 || span->bytes > UINT64_MAX - span->address)
        breaks(audit, "the walk shows a span of no bytes, or beyond all addresses", span->address,
               span->bytes);
    if (span->kind == FRAG_SPAN_SEGMENT) {
        end_segment(audit);
        audit->at = span->address;
        audit->end = span->address + span->bytes;
        *FRAG_APPEND(audit->segments, audit->segment_count, audit->segment_capacity) =
            (audited_range){span->address, span->bytes};
        return;
    }
    if (span->address != audit->at || span->bytes > audit->end - audit->at)
        breaks(audit, "the walk leaves a gap, goes back or leaves its segment", span->address,
               span->bytes);
    audit->at = span->address + span->bytes;
    if (span->kind == FRAG_SPAN_BLOCK)
        see_block(audit, span);
}

static int compare_ranges(const void *left, const void *right)
{
    const audited_range *a = left;
    const audited_range *b = right;
    return (a->address > b->address) - (a->address < b->address);
}

static void look_for_overlaps(frag_audit_keeper *audit)
{
    audited_range *segments = audit->segments;
    if (audit->segment_count > 0)
        qsort(segments, audit->segment_count, sizeof *segments, compare_ranges);
    for (size_t i = 1; i < audit->segment_count; i++)
        if (segments[i].address - segments[i - 1].address < segments[i - 1].bytes)
            breaks(audit, "two segments overlap", segments[i].address, segments[i].bytes);
}

static void walk(const frag_replay *replay)
{
    frag_audit_keeper *audit = replay->audit;
    audit->at = audit->end = audit->seen = 0;
    audit->segment_count = 0;
    replay->ops->walk(replay->policy, see_span, audit);
    end_segment(audit);
    look_for_overlaps(audit);
    if (audit->seen != audit->live && audit->broken.code == FRAG_E_NONE)
        frag_fail(&audit->broken, FRAG_E_INPUT, "the walk shows %llu blocks; %llu are live",
                  (unsigned long long)audit->seen, (unsigned long long)audit->live);
}

/* ---- the audit */

static bool ask_policy(const frag_replay *replay, frag_error *error)
{
    if (replay->ops->check == NULL || replay->ops->check(replay->policy, error))
        return true;
    return error->code == FRAG_E_NONE &&
           frag_fail(error, FRAG_E_INPUT, "its own check fails, and does not say why");
}

/* The layout against what the engine has counted. */
static bool compare_sums(const frag_replay *replay, frag_error *error)
{
    frag_decomposition parts;
    frag_replay_decompose(replay, &parts);
    if (parts.reserved_bytes != replay->device->reserved_bytes)
        return frag_fail(error, FRAG_E_INPUT, "the layout holds %llu bytes; the device gave %llu",
                         (unsigned long long)parts.reserved_bytes,
                         (unsigned long long)replay->device->reserved_bytes);
    if (parts.requested_bytes != replay->level.requested_bytes)
        return frag_fail(error, FRAG_E_INPUT,
                         "the layout serves %llu requested bytes; %llu were requested",
                         (unsigned long long)parts.requested_bytes,
                         (unsigned long long)replay->level.requested_bytes);
    return true;
}

static bool find_broken(const frag_replay *replay, frag_error *error)
{
    frag_audit_keeper *audit = replay->audit;
    audit->number++;
    if (!frag_audit_has_failed(replay)) {
        if (!ask_policy(replay, error))
            return false;
        hold_all(replay);
        walk(replay);
    }
    if (!frag_audit_has_failed(replay))
        return compare_sums(replay, error);
    *error = audit->broken;
    return false;
}

bool frag_audit_has_failed(const frag_replay *replay)
{
    return replay->audit->broken.code != FRAG_E_NONE;
}

/* The event that was replayed last. */
static uint64_t last_event(const frag_replay *replay)
{
    uint64_t event = frag_replay_event(replay);
    return replay->has_stopped || event == 0 ? event : event - 1;
}

bool frag_audit_run(const frag_replay *replay, frag_error *error)
{
    frag_error found = {0};
    return find_broken(replay, &found) ||
           frag_fail(error, FRAG_E_INPUT,
                     "--check after event %llu: the policy %s breaks its contract: %s",
                     (unsigned long long)last_event(replay), replay->named, found.sentence);
}
