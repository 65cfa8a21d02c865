"""Two ranks: what the host wrote goes through collectives, then DistributedDataParallel trains."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
counts = torch.tensor([rank + 1, 10 * rank], device="cuda")
dist.all_reduce(counts)
assert counts.tolist() == [3, 10], counts
pieces = [torch.zeros(1, dtype=torch.int64, device="cuda") for _ in range(2)]
dist.all_gather(pieces, torch.tensor([rank], device="cuda"))
assert [int(piece) for piece in pieces] == [0, 1], pieces
if rank == 0:
    dist.send(torch.tensor([7, 8]).cuda(), 1)
else:
    message = torch.zeros(2, dtype=torch.int64, device="cuda")
    dist.recv(message, 0)
    assert message.tolist() == [7, 8]
model = nn.parallel.DistributedDataParallel(
    nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.Linear(64, 8)).cuda(), device_ids=[rank]
)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(4, 64, device="cuda")).sum().backward()
    optimizer.step()
# A work that nobody waits for: its tensor is free at a place of the script, not of the clock.
before = torch.cuda.memory_allocated()
work = dist.all_reduce(torch.ones(1000, device="cuda"), async_op=True)
dist.all_reduce(counts)
del work
assert torch.cuda.memory_allocated() == before
with Join([model]):
    for _ in range(3 + rank):
        model(torch.randn(4, 64, device="cuda")).sum().backward()
        optimizer.step()
dist.barrier()
dist.destroy_process_group()
print("done")
# options: --gpus 2
# run: torchrun --nproc-per-node 2
# expect: fits=true again
