"""More than the card has, not caught."""
import torch
from torch import nn

model = nn.Sequential(*[nn.Linear(4096, 4096) for _ in range(60)]).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    model(torch.randn(2048, 4096, device="cuda")).sum().backward()
    optimizer.step()
# gpu: 8GiB
# expect: fits=false status=1 identical
