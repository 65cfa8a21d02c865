/* Looking at the pytorch policy: its segments and blocks, and the audit of its structures. */
#include "allocators/pytorch/pytorch_state.h"

/* Is this the first block of a segment, or of a mapped stretch of an expandable one? */
static bool is_head(const frag_policy *policy, uint32_t id)
{
    const frag_pytorch_block *at = frag_pytorch_at(policy, id);
    if (at->list == FRAG_PYTORCH_UNUSED || (at->list & FRAG_PYTORCH_UNMAPPED) != 0)
        return false;
    return at->prev == FRAG_PYTORCH_NONE ||
           (frag_pytorch_at(policy, at->prev)->list & FRAG_PYTORCH_UNMAPPED) != 0;
}

static uint32_t next_mapped(const frag_policy *policy, uint32_t id)
{
    uint32_t next = frag_pytorch_at(policy, id)->next;
    bool is_mapped = next != FRAG_PYTORCH_NONE &&
                     (frag_pytorch_at(policy, next)->list & FRAG_PYTORCH_UNMAPPED) == 0;
    return is_mapped ? next : FRAG_PYTORCH_NONE;
}

void frag_pytorch_walk(const frag_policy *policy, frag_span_visitor *visit, void *context)
{
    for (uint32_t head = 1; head < policy->block_count; head++) {
        if (!is_head(policy, head))
            continue;
        const frag_pytorch_list *list = frag_pytorch_list_at(policy, frag_pytorch_at(policy, head));
        frag_span span = {
            .kind = FRAG_SPAN_SEGMENT,
            .address = frag_pytorch_at(policy, head)->address,
            .stream = list->stream,
            .pool = list->pool,
            .is_growing = (frag_pytorch_at(policy, head)->list & FRAG_PYTORCH_EXPANDABLE) != 0,
            .is_small_pool = list->is_small,
        };
        for (uint32_t id = head; id != FRAG_PYTORCH_NONE; id = next_mapped(policy, id))
            span.bytes += frag_pytorch_at(policy, id)->bytes;
        visit(context, &span);
        for (uint32_t id = head; id != FRAG_PYTORCH_NONE; id = next_mapped(policy, id)) {
            const frag_pytorch_block *at = frag_pytorch_at(policy, id);
            span.kind = (at->list & FRAG_PYTORCH_IN_USE) != 0 ? FRAG_SPAN_BLOCK : FRAG_SPAN_HOLE;
            span.address = at->address;
            span.bytes = at->bytes;
            span.handle = id;
            visit(context, &span);
        }
    }
}

static bool check_neighbours(const frag_policy *policy, uint32_t id, frag_error *error)
{
    const frag_pytorch_block *at = frag_pytorch_at(policy, id);
    const frag_pytorch_block *after = frag_pytorch_at(policy, at->next);
    if (after->prev != id || after->address != at->address + at->bytes)
        return frag_fail(error, FRAG_E_INPUT, "block %u and its next do not touch", id);
    uint32_t own = FRAG_PYTORCH_LIST_MASK | FRAG_PYTORCH_EXPANDABLE;
    if ((after->list & own) != (at->list & own))
        return frag_fail(error, FRAG_E_INPUT, "block %u and its next are in different lists", id);
    bool is_in_use = ((after->list | at->list) & FRAG_PYTORCH_IN_USE) != 0;
    if (!is_in_use && after->list == at->list)
        return frag_fail(error, FRAG_E_INPUT, "blocks %u and %u are free side by side", id,
                         at->next);
    return true;
}

bool frag_pytorch_check(const frag_policy *policy, frag_error *error)
{
    uint64_t reserved = 0;
    uint64_t free_blocks = 0;
    for (uint32_t id = 1; id < policy->block_count; id++) {
        const frag_pytorch_block *at = frag_pytorch_at(policy, id);
        if (at->list == FRAG_PYTORCH_UNUSED)
            continue;
        if (at->bytes == 0)
            return frag_fail(error, FRAG_E_INPUT, "block %u is empty", id);
        reserved += (at->list & FRAG_PYTORCH_UNMAPPED) != 0 ? 0 : at->bytes;
        free_blocks += frag_pytorch_is_free(at) ? 1 : 0;
        uint32_t pool = frag_pytorch_list_at(policy, at)->pool;
        if (policy->place_bits != 0 && frag_pytorch_is_free(at) &&
            frag_pytorch_find_place(policy, pool, at->address, at->bytes) != id)
            return frag_fail(error, FRAG_E_INPUT, "free block %u is not found by its address", id);
        if (at->next != FRAG_PYTORCH_NONE && !check_neighbours(policy, id, error))
            return false;
    }
    if (reserved != policy->reserved_bytes)
        return frag_fail(error, FRAG_E_INPUT, "blocks add up to %llu bytes; reserved are %llu",
                         (unsigned long long)reserved, (unsigned long long)policy->reserved_bytes);
    if (policy->place_bits != 0 && policy->place_count != free_blocks)
        return frag_fail(error, FRAG_E_INPUT, "%u blocks are kept by address; %llu are free",
                         policy->place_count, (unsigned long long)free_blocks);
    for (uint32_t i = 0; i < policy->list_count; i++) {
        if (!frag_free_index_check(&policy->store, &policy->indexes[i], error))
            return false;
        free_blocks -= frag_free_index_count(&policy->store, &policy->indexes[i]);
    }
    if (free_blocks != 0)
        return frag_fail(error, FRAG_E_INPUT, "%llu free blocks are in no list",
                         (unsigned long long)free_blocks);
    return frag_pytorch_check_ranges(policy, error);
}
