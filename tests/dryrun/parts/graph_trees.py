"""CUDA graph trees of torch.compile: trained, then evaluated with two batch sizes, so that graphs are recorded behind others that
were replayed, for which the private pool is brought back to a layout of before; then all is given up, and the same again."""
import gc

import torch
from torch import nn

model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Dropout(0.1), nn.Linear(512, 256)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def work(compiled):
    model.train()
    for _ in range(3):
        torch.compiler.cudagraph_mark_step_begin()
        compiled(torch.randn(64, 256, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    model.eval()
    with torch.no_grad():
        for batch in (64, 96):
            for _ in range(3):
                compiled(torch.randn(batch, 256, device="cuda")).argmax(-1).cpu()


for _ in range(2):
    work(torch.compile(model, mode="reduce-overhead"))
    torch._dynamo.reset()
    gc.collect()
    torch.cuda.empty_cache()
print("done")
# needs: triton
# expect: fits=true steps=6 identical
