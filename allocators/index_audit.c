#include "allocators/index_audit.h"

typedef struct audit_step {
    frag_index_audit *audit;
    uint32_t number;
} audit_step;

static void check_entry(void *context, const frag_free_entry *entry)
{
    const audit_step *step = context;
    frag_index_audit *audit = step->audit;
    const frag_block *block = &audit->blocks[entry->id];
    bool is_right =
        block->state == audit->state && block->bytes == entry->size &&
        block->address == entry->tie &&
        (audit->belongs == NULL || audit->belongs(audit->context, entry->id, step->number));
    audit->is_wrong = audit->is_wrong || !is_right;
    audit->count++;
}

bool frag_index_audit_take(frag_index_audit *audit, const frag_free_index *index, uint32_t number,
                           frag_error *error)
{
    audit_step step = {audit, number};
    if (!frag_free_index_check(index, error))
        return false;
    frag_free_index_visit(index, check_entry, &step);
    return true;
}
