#include "allocators/index/index_audit.h"

typedef struct audit_step {
    frag_index_audit *audit;
    uint32_t number;
} audit_step;

static void check_block(void *context, uint32_t id)
{
    const audit_step *step = context;
    frag_index_audit *audit = step->audit;
    bool is_right = audit->blocks[id].state == audit->state &&
                    (audit->belongs == NULL || audit->belongs(audit->context, id, step->number));
    audit->is_wrong = audit->is_wrong || !is_right;
    audit->count++;
}

bool frag_index_audit_take(frag_index_audit *audit, const frag_free_index_store *store,
                           const frag_free_index *index, uint32_t number, frag_error *error)
{
    audit_step step = {audit, number};
    if (!frag_free_index_check(store, index, error))
        return false;
    frag_free_index_visit(store, index, check_block, &step);
    return true;
}

bool frag_index_audit_take_by_address(frag_index_audit *audit, const frag_address_index *index,
                                      uint32_t number, frag_error *error)
{
    audit_step step = {audit, number};
    if (!frag_address_index_check(index, error))
        return false;
    frag_address_index_visit(index, check_block, &step);
    return true;
}
