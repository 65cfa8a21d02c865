"""Tensor parallel on two ranks."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


def tensor_parallel():
    mesh = init_device_mesh("cuda", (2,))
    model = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)).cuda()
    model = parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    assert model[0].weight.to_local().shape == (512, 256)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.randn(8, 256, device="cuda")).sum().backward()
        optimizer.step()


def values():
    """What the host wrote is followed on the local tensors."""
    mesh = init_device_mesh("cuda", (2,))
    numbers = distribute_tensor(torch.arange(12.0).view(4, 3).cuda(), mesh, [Shard(0)])
    assert numbers.sum().full_tensor().item() == 66 and (numbers > 5).sum().full_tensor().item() == 6
    assert (numbers * 2 + 1).full_tensor()[3, 2].item() == 23 and numbers.max().full_tensor().item() == 11
    assert numbers.redistribute(mesh, [Replicate()]).to_local().sum().item() == 66
    numbers.add_(1)
    assert numbers.full_tensor()[0, 0].item() == 1
    torch._foreach_mul_([numbers], 2.0)
    assert numbers.full_tensor().sum().item() in (156, 0)  # 0: unknown, from 2.15 on


rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
tensor_parallel()
values()
dist.destroy_process_group()
print("done")
# options: --gpus 2
# run: torchrun --nproc-per-node 2
# expect: fits=true processes=2 identical
