"""torch.profiler over CUDA runs to its end; its trace has what the host did."""
import json
import os
import tempfile

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

x = torch.ones(64, 64, device="cuda")
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], profile_memory=True, record_shapes=True) as p:
    with record_function("products"):
        (x @ x).sum()
    torch.cuda.synchronize()
names = {event.key for event in p.key_averages()}
assert "products" in names and "aten::mm" in names, sorted(names)
p.key_averages().table(sort_by="self_cpu_time_total")
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "trace.json")
    p.export_chrome_trace(path)
    assert json.load(open(path))["traceEvents"]
with profile(activities=[ProfilerActivity.CUDA], schedule=schedule(wait=1, warmup=1, active=1)) as p:
    for _ in range(3):
        x = x @ x
        p.step()
with torch.autograd.profiler.emit_nvtx():
    x @ x
torch.cuda.nvtx.range_push("a")
torch.cuda.nvtx.range_pop()
print("done")
# expect: fits=true
