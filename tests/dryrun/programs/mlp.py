"""A perceptron, trained with AdamW in batches of changing size."""
import torch
from torch import nn

model = nn.Sequential(nn.Linear(784, 2048), nn.ReLU(), nn.Linear(2048, 1024), nn.GELU(), nn.Dropout(0.1), nn.Linear(1024, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(5):
    data = torch.randn(16 + 8 * step, 784).cuda()
    loss = nn.functional.cross_entropy(model(data), torch.randint(0, 10, (16 + 8 * step,)).cuda())
    optimizer.zero_grad(set_to_none=step % 2 == 0)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
print("done")
# expect: fits=true steps=5 identical again
