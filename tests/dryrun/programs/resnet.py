"""ResNet-50 of torchvision, channels last, mixed precision with a gradient scaler."""
import torch
import torchvision

model = torchvision.models.resnet50().cuda().to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
scaler = torch.amp.GradScaler("cuda")
for _ in range(2):
    images = torch.randn(8, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
    with torch.autocast("cuda", torch.half):
        loss = torch.nn.functional.cross_entropy(model(images), torch.randint(0, 1000, (8,)).cuda())
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
print("done")
# needs: torchvision
# expect: fits=true steps=2 identical
