#include "gpu_replay/torch/torch_card.h"

#include "base/memory.h"

uint32_t frag_torch_block_take(frag_torch_device *device)
{
    device->held_count++;
    uint32_t number = device->unused_block;
    if (number != FRAG_TORCH_NONE) {
        device->unused_block = device->blocks[number].next;
        return number;
    }
    device->blocks = frag_grow(device->blocks, &device->block_capacity,
                               (size_t)device->block_count + 1, sizeof *device->blocks);
    return device->block_count++;
}

static void give_block(frag_torch_device *device, uint32_t number)
{
    device->held_count--;
    device->blocks[number].next = device->unused_block;
    device->unused_block = number;
}

void frag_torch_block_release(frag_torch_device *device, uint32_t number)
{
    frag_torch_block block = device->blocks[number];
    frag_torch_count_remove(&device->counts.active_bytes, block.block_bytes);
    frag_torch_count_remove(&device->counts.active, 1);
    give_block(device, number);
    device->streams[block.stream].free_count++;
    if (block.freed_on != block.stream)
        device->streams[block.freed_on].free_count++;
    frag_device_for(device->device, block.stream, block.pool);
    device->policy.ops->free(device->policy.policy, block.handle, block.freed_on);
}

void frag_torch_block_complete(frag_torch_device *device, uint32_t number)
{
    frag_torch_log_add(device->log, &(frag_torch_event){.op = FRAG_OP_COMPLETE,
                                                        .slot = number,
                                                        .stream = device->blocks[number].freed_on});
    frag_torch_block_release(device, number);
}
