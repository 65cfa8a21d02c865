"""Two ranks train with FullyShardedDataParallel, and with fully_shard."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel

try:
    from torch.distributed.fsdp import fully_shard
except ImportError:
    from torch.distributed._composable.fsdp import fully_shard


def make_model():
    return nn.Sequential(*(nn.Linear(256, 256) for _ in range(4))).cuda()


def train(model):
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(8, 256, device="cuda")).sum().backward()
        optimizer.step()


rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
train(FullyShardedDataParallel(make_model(), device_id=rank))
model = make_model()
for layer in model:
    fully_shard(layer)
train(fully_shard(model))
dist.destroy_process_group()
print("done")
# options: --gpus 2
# run: torchrun --nproc-per-node 2
# expect: fits=true
