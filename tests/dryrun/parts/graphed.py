"""Graphed callables, a MemPool, streams with record_stream, and a captured training step, in expandable segments."""
import torch
from torch import nn



def make():
    return nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Dropout(0.1), nn.Linear(256, 128)).cuda()


model = make()
graphed = torch.cuda.make_graphed_callables(model, (torch.randn(16, 128, device="cuda", requires_grad=True),))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    graphed(torch.randn(16, 128, device="cuda", requires_grad=True)).sum().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
model, x = make(), torch.randn(16, 128, device="cuda")
adam = torch.optim.Adam(model.parameters(), capturable=True)
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(2):
        adam.zero_grad()
        model(x).sum().backward()
        adam.step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
adam.zero_grad()
with torch.cuda.graph(graph):
    loss = model(x).sum()
    loss.backward()
    adam.step()
for _ in range(3):
    x.copy_(torch.randn(16, 128))
    graph.replay()
with torch.cuda.stream(side):
    big = torch.empty(64 << 20, device="cuda", dtype=torch.uint8)
big.record_stream(torch.cuda.current_stream())
del big
torch.cuda.synchronize()
torch.cuda.empty_cache()
print("done")
# options: --conf expandable_segments:True
# expect: fits=true identical
