"""DeepSpeed ZeRO 1, 2 and 3 on two ranks: the more is shared out, the less a rank holds."""
import os

import deepspeed
import torch
import torch.distributed as dist
from torch import nn

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
deepspeed.init_distributed("nccl")
held = []
for stage in (1, 2, 3):
    model = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(4)))
    engine, _, _, _ = deepspeed.initialize(
        model=model,
        model_parameters=model.parameters(),
        config={
            "train_micro_batch_size_per_gpu": 4,
            "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "torch_adam": True}},
            "bf16": {"enabled": True},
            "zero_optimization": {"stage": stage, "reduce_bucket_size": 1000000, "stage3_prefetch_bucket_size": 1000000,
                                  "stage3_param_persistence_threshold": 1000},
            "steps_per_print": 1000,
        },
    )
    for _ in range(3):
        loss = engine(torch.randn(4, 1024, device="cuda", dtype=torch.bfloat16)).float().sum()
        engine.backward(loss)
        engine.step()
    held.append(torch.cuda.memory_allocated())
    engine.destroy()
    del engine, model, loss
    torch.cuda.empty_cache()
dist.destroy_process_group()
print("done", held)
# options: --gpus 2
# run: torchrun --nproc-per-node 2
# needs: deepspeed
# expect: fits=true processes=2
