"""The batch is halved until it fits; then mixed precision with a GradScaler and an average of the weights."""
import gc

import torch
from torch import nn

net = nn.Sequential(nn.Linear(2048, 8192), nn.ReLU(), nn.Linear(8192, 2048), nn.ReLU(), nn.Linear(2048, 1000)).cuda()
average = torch.optim.swa_utils.AveragedModel(net, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.999))
optimizer = torch.optim.AdamW(net.parameters())
scaler = torch.amp.GradScaler("cuda")


def step(batch):
    x = torch.randn(batch, 2048, device="cuda")
    y = torch.randint(1000, (batch,), device="cuda")
    with torch.autocast("cuda", torch.float16):
        loss = nn.functional.cross_entropy(net(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    average.update_parameters(net)


batch = 1 << 17
while batch:
    try:
        step(batch)
        break
    except torch.cuda.OutOfMemoryError:
        print("out of memory with", batch)
    optimizer.zero_grad(set_to_none=True)
    gc.collect()
    torch.cuda.empty_cache()
    batch //= 2
step(batch)
print("a batch of", batch)
# gpu: 2GiB
# expect: fits=false status=0 steps=2 identical
