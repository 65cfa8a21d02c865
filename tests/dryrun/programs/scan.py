"""Scans, sorts and reductions of CUB, whose code is chosen by compute capability: on a card of 8.9."""
import torch

x = torch.rand(1000, device="cuda")
x.cumsum(0), x.sort(), x.topk(10), x.unique(), x.sum(), x.argsort(), torch.multinomial(x, 3, replacement=True)
print("done")
# gpu: l4
# expect: fits=true identical
