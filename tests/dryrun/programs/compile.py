"""torch.compile: Inductor's kernels by Triton, which a dry run does not run; its workers record nothing."""
import torch
from torch import nn

# Before memory of the GPU is in use, and with no way around what cannot be compiled.
torch.compile(nn.Linear(4, 4), backend="eager", fullgraph=True)(torch.zeros(2, 4))
model = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
compiled = torch.compile(model)
for _ in range(3):
    compiled(torch.randn(32, 256, device="cuda")).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
print("done")
# needs: triton
# expect: fits=true steps=3
