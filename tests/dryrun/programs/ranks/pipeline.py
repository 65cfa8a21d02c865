"""Pipeline parallel on two ranks."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe


def pipeline_parallel(rank):
    part = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256)).cuda()
    # What a stage is given needs gradients where a stage before it waits for them.
    example = torch.randn(4, 256, device="cuda", requires_grad=rank > 0)
    stage = PipelineStage(part, rank, 2, torch.device("cuda", rank), input_args=(example,), output_args=(part(example),))
    schedule = ScheduleGPipe(stage, n_microbatches=4, loss_fn=nn.functional.mse_loss)
    optimizer = torch.optim.SGD(part.parameters(), 0.1)
    for _ in range(2):
        optimizer.zero_grad()
        if rank == 0:
            schedule.step(torch.randn(16, 256, device="cuda"))
        else:
            schedule.step(target=torch.randn(16, 256, device="cuda"))
        optimizer.step()


rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
pipeline_parallel(rank)
dist.destroy_process_group()
print("done")
# options: --gpus 2
# run: torchrun --nproc-per-node 2
# expect: fits=true processes=2 identical
