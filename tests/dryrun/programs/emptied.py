"""Calls of empty_cache before more memory is taken: a recording alone does not tell them from requests that needed the room."""
import torch

for megabytes in (30, 50, 70):
    block = torch.empty(megabytes << 20, dtype=torch.uint8, device="cuda")
    del block
    torch.cuda.empty_cache()
graph = torch.cuda.CUDAGraph()
pool = torch.cuda.graph_pool_handle()
small = torch.ones(1000, device="cuda")
with torch.cuda.graph(graph, pool=pool):  # empties the cache first
    out = small + 1
if hasattr(torch, "accelerator") and hasattr(torch.accelerator, "empty_cache"):
    block = torch.empty(110 << 20, dtype=torch.uint8, device="cuda")
    del block
    torch.accelerator.empty_cache()
    block = torch.empty(130 << 20, dtype=torch.uint8, device="cuda")
print("done")
# expect: fits=true identical
