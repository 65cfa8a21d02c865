"""A multilayer perceptron trains for three steps, with dropout and the fused AdamW, under autocast and a gradient scaler."""
import torch

model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Dropout(0.1), torch.nn.LayerNorm(128),
                            torch.nn.Linear(128, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
scaler = torch.amp.GradScaler("cuda")
for step in range(3):
    x = torch.randn(32, 64, device="cuda")
    y = torch.randint(0, 10, (32,)).cuda()
    with torch.autocast("cuda"):
        loss = torch.nn.functional.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
print("done")
# expect: fits=true steps=3 identical again
