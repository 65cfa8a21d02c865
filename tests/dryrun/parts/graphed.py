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
assert [state["step"].item() for state in adam.state.values()] == [5] * 4
# A replay changes what the host wrote, as far as that is known.
count, rows, mean = torch.zeros(2, dtype=torch.long, device="cuda"), torch.tensor([3, 4], device="cuda"), torch.nn.BatchNorm1d(128).cuda()
with torch.cuda.graph(graph := torch.cuda.CUDAGraph()):
    before = rows.clone()
    count += rows
    rows.zero_()
    rows.add_(1)
    torch._foreach_add_([adam.param_groups[0]["params"][1].data], 1.0)
    mean(x)
assert count.tolist() == [0, 0]
rows.copy_(torch.tensor([3, 4]))
model[0].bias.data.fill_(1)
mean.running_mean.fill_(1)
for _ in range(2):
    graph.replay()
assert (count.tolist(), rows.tolist(), before.tolist()) == ([4, 5], [1, 1], [1, 1])
assert model[0].bias.tolist()[0] == 3 and mean.running_mean.tolist()[0] == 0 and mean.num_batches_tracked.item() == 2
with torch.cuda.stream(side):
    big = torch.empty(64 << 20, device="cuda", dtype=torch.uint8)
big.record_stream(torch.cuda.current_stream())
del big
torch.cuda.synchronize()
torch.cuda.empty_cache()
print("done")
# options: --conf expandable_segments:True
# expect: fits=true identical
