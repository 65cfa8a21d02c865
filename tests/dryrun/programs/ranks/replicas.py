"""DataParallel on two devices of one process."""
import torch
from torch import nn

model = nn.DataParallel(nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 8)).cuda())
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(16, 256, device="cuda")).sum().backward()
    optimizer.step()
assert torch.cuda.max_memory_allocated(1) > 0
# options: --gpus 2
# expect: fits=true steps=3 processes=1
