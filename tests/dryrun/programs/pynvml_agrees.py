"""The management library, the runtime and PyTorch name one card and count the same bytes."""
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

# needs: pynvml
# expect: fits=true status=0 ended_by=exit
