"""CUDA graphs with a shared pool, and a MemPool."""
import torch
from torch import nn

model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)).cuda()
data = torch.randn(64, 512, device="cuda")
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side), torch.no_grad():
    model(data)
torch.cuda.current_stream().wait_stream(side)
first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
with torch.no_grad(), torch.cuda.graph(first):
    out = model(data)
with torch.no_grad(), torch.cuda.graph(second, pool=first.pool()):
    again = model(data + 1)
first.replay()
second.replay()
pool = torch.cuda.MemPool()
with torch.cuda.use_mem_pool(pool):
    inside = torch.empty(1 << 22, device="cuda")
del inside
print("done")
# expect: fits=true
