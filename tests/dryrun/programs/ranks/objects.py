"""Python objects in collectives, small ones and some of more bytes than are kept otherwise."""
import os

import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))


def make(number, size):
    return {"rank": number, "text": bytes(range(256)) * (size * (number + 1))}


for size in (0, 1, 1000):
    found = [make(0, size), "two", None] if rank == 0 else [None] * 3
    dist.broadcast_object_list(found, src=0)
    assert found == [make(0, size), "two", None], size
    found = [None] * 2
    dist.all_gather_object(found, make(rank, size))
    assert found == [make(0, size), make(1, size)], size
    found = [None] * 2 if rank == 0 else None
    dist.gather_object(make(rank, size), found, dst=0)
    assert rank != 0 or found == [make(0, size), make(1, size)], size
    found = [None]
    dist.scatter_object_list(found, [make(0, size), make(1, size)] if rank == 0 else None, src=0)
    assert found == [make(rank, size)], size
    if hasattr(dist, "send_object_list"):
        found = [make(0, size), 3]
        if rank == 0:
            dist.send_object_list(found, dst=1)
        else:
            found = [None, None]
            dist.recv_object_list(found, src=0)
        assert found == [make(0, size), 3], size
layer = torch.nn.Linear(400, 400).cuda()
optimizer = ZeroRedundancyOptimizer(layer.parameters(), torch.optim.Adam, lr=0.1)
layer(torch.ones(2, 400, device="cuda")).sum().backward()
optimizer.step()
optimizer.consolidate_state_dict(to=0)
dist.destroy_process_group()
print("done")
# options: --gpus 2
# run: torchrun --nproc-per-node 2
# expect: fits=true
