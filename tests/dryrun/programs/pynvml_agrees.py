"""The management library, here and in another process, nvidia-smi, the runtime and PyTorch name one card and count the same bytes."""
import os
import subprocess
import sys

import pynvml
import torch

held = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")
pynvml.nvmlInit()
card = pynvml.nvmlDeviceGetHandleByIndex(0)
properties = torch.cuda.get_device_properties(0)
assert pynvml.nvmlDeviceGetName(card) == properties.name
assert pynvml.nvmlDeviceGetCudaComputeCapability(card) == (properties.major, properties.minor)
memory = pynvml.nvmlDeviceGetMemoryInfo(card)
free, total = torch.cuda.mem_get_info()
assert memory.free == free and memory.total >= total and memory.used >= held.numel()
assert [(process.pid, process.usedGpuMemory) for process in pynvml.nvmlDeviceGetComputeRunningProcesses(card)] == [(os.getpid(), total - free)]
other = """import pynvml
pynvml.nvmlInit()
card = pynvml.nvmlDeviceGetHandleByIndex(0)
print([(process.pid, process.usedGpuMemory) for process in pynvml.nvmlDeviceGetComputeRunningProcesses(card)])"""
shown = subprocess.check_output([sys.executable, "-c", other], text=True)
assert shown.strip() == str([(os.getpid(), total - free)]), shown
shown = subprocess.check_output(["nvidia-smi", "--query-gpu=memory.used,memory.free", "--format=csv,noheader,nounits"], text=True)
assert shown.strip() == "%d, %d" % (total - free >> 20, free >> 20), shown

# needs: pynvml
# expect: fits=true status=0 ended_by=exit
