"""Two ranks of 64, one after the other: FSDP, and objects that go around."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel

try:
    from torch.distributed.fsdp import fully_shard
except ImportError:
    from torch.distributed._composable.fsdp import fully_shard


def train(model):
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.randn(8, 1024, device="cuda")).sum().backward()
        optimizer.step()


device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
dist.init_process_group("nccl", device_id=device)
rank = dist.get_rank()
assert (rank, dist.get_world_size(), device.index) in ((0, 64, 0), (63, 64, 7)), rank
# Lists go through a flat tensor, as by NCCL.
piece, pieces = torch.ones(1 << 18, device="cuda"), [torch.empty(1 << 18, device="cuda") for _ in range(64)]
for call in (lambda: dist.all_gather(pieces, piece), lambda: dist.reduce_scatter(piece, pieces),
             lambda: dist.all_gather(pieces, piece, async_op=True).wait()):
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    assert torch.cuda.max_memory_allocated() - before == 64 << 20, torch.cuda.max_memory_allocated() - before
    assert torch.cuda.memory_allocated() == before
del piece, pieces
train(nn.parallel.DistributedDataParallel(nn.Linear(1024, 8).cuda(), device_ids=[device.index]))
train(FullyShardedDataParallel(nn.Linear(1024, 64).cuda(), device_id=device.index))
model = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(4))).cuda()
for layer in model:
    fully_shard(layer)
fully_shard(model)
assert model[0].weight.to_local().shape[0] == 16
train(model)
train(fully_shard(nn.Linear(1024, 1024).cuda(), mesh=init_device_mesh("cuda", (8, 8), mesh_dim_names=("dp", "tp"))["dp"]))
objects = ["mine"]
dist.broadcast_object_list(objects, src=0)
assert objects == ["mine"]
gathered = [None] * 64
dist.all_gather_object(gathered, {"rank": rank})
assert gathered[rank] == {"rank": rank}
dist.barrier()
dist.destroy_process_group()
print("done")
# gpu: h100-80gb
# options: --ranks 64 --only 0,63
# expect: fits=true processes=2
