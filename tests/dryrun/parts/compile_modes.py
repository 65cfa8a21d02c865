"""torch.compile in its modes, with CUDA graphs and with autotuned kernels; flex_attention; torch.export."""
import copy

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeCopyMode, FakeTensor, FakeTensorMode
from torch.nn.attention.flex_attention import create_block_mask, flex_attention


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))

    def forward(self, x):
        return self.inner(x) + x


for mode in ("default", "reduce-overhead", "max-autotune-no-cudagraphs"):
    torch._dynamo.reset()
    model = Net().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    compiled = torch.compile(model, mode=mode)
    for _ in range(4):
        compiled(torch.randn(16, 64, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    print(mode)

q, k, v = (torch.randn(1, 2, 256, 32, device="cuda", dtype=torch.half, requires_grad=True) for _ in range(3))
mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 256, 256, device="cuda")
torch.compile(flex_attention)(q, k, v, block_mask=mask).sum().backward()
x = torch.randn(4, 64, device="cuda")
assert torch.export.export(Net().cuda(), (x,)).module()(x).shape == x.shape
# A module becomes fake as a whole, as torch.compile of 2.4 makes it.
with FakeCopyMode(FakeTensorMode()):
    assert isinstance(copy.deepcopy(nn.Embedding(16, 8).cuda()).weight.data, FakeTensor)
print("done")
# needs: triton
# expect: fits=true steps=4
