"""What is allocated after one nn.Linear(1024, 1024, bias=False) of (1, 512, 1024): pytorch/pytorch issue 104604."""
import torch

layer = torch.nn.Linear(1024, 1024, bias=False).to("cuda")
x = torch.randn(1, 512, 1024, device="cuda")
y = layer(x)
print("peak", "after", torch.cuda.memory_allocated())
