/* Checkpoints around several blocks: of n blocks each √n, rounded up, are made anew together (Chen
 * et al., 2016, arXiv:1604.06174), so that about √n inputs are kept and √n blocks' activations come
 * back at a time. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "workload/families/family.h"

enum { KEPT_MAX = 4 };

struct frag_block_groups {
    uint64_t size;
    unsigned char *region; /* region_head, then the context of each block of the group */
    size_t capacity;
    frag_tensor kept[KEPT_MAX];
    uint32_t kept_count;
};

/* What a group is run with; contexts of its blocks follow. */
typedef struct region_head {
    frag_region *run;
    size_t bytes; /* of each context, in whole units of the head */
    uint64_t count;
} region_head;

static frag_tensor run_group(frag_tape *tape, const void *context, frag_tensor input)
{
    const region_head *head = context;
    const unsigned char *at = (const unsigned char *)context + sizeof *head;
    frag_tensor hidden = frag_tape_keep(tape, input);
    for (uint64_t i = 0; i < head->count; i++)
        frag_tape_set(tape, &hidden, head->run(tape, at + i * head->bytes, hidden));
    return hidden;
}

frag_block_groups *frag_block_groups_create(const frag_workload *workload)
{
    frag_block_groups *groups = frag_alloc(1, sizeof *groups);
    groups->size = (uint64_t)ceil(sqrt((double)workload->network.layers));
    return groups;
}

void frag_block_groups_destroy(frag_block_groups *groups)
{
    if (groups == NULL)
        return;
    frag_free(groups->region);
    frag_free(groups);
}

static void add_kept(frag_block_groups *groups, frag_tensor tensor)
{
    for (uint32_t i = 0; i < groups->kept_count; i++)
        if (groups->kept[i] == tensor)
            return;
    FRAG_ASSERT(groups->kept_count < KEPT_MAX);
    groups->kept[groups->kept_count++] = tensor;
}

static void add_block(frag_block_groups *groups, const frag_region_call *block)
{
    const size_t unit = sizeof(region_head);
    const size_t bytes = (block->context_bytes + unit - 1) / unit * unit;
    region_head head = {block->run, bytes, 0};
    if (groups->region != NULL)
        memcpy(&head, groups->region, sizeof head);
    if (head.count == 0)
        head = (region_head){block->run, bytes, 0};
    FRAG_ASSERT(head.run == block->run && head.bytes == bytes);
    size_t end = sizeof head + (size_t)(head.count + 1) * bytes;
    groups->region = frag_grow(groups->region, &groups->capacity, end, 1);
    memcpy(groups->region + end - bytes, block->context, block->context_bytes);
    head.count++;
    memcpy(groups->region, &head, sizeof head);
    for (uint32_t i = 0; i < block->kept_count; i++)
        if (block->kept[i] != 0)
            add_kept(groups, block->kept[i]);
}

void frag_block_groups_pass(frag_tape *tape, frag_block_groups *groups,
                            const frag_region_call *block, bool is_last, frag_tensor *hidden)
{
    region_head head;
    add_block(groups, block);
    memcpy(&head, groups->region, sizeof head);
    if (head.count < groups->size && !is_last)
        return;
    const frag_region_call all = {run_group, groups->region,
                                  sizeof head + (size_t)head.count * head.bytes, groups->kept,
                                  groups->kept_count};
    frag_tape_set(tape, hidden, frag_tape_checkpoint(tape, &all, *hidden));
    groups->kept_count = 0;
    head.count = 0;
    memcpy(groups->region, &head, sizeof head);
}
