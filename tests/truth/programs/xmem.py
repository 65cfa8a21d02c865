"""Training as xMem's measurements do it (Stone-ResearchLife/xMem, perf_estimator/trainer): 32-bit, three steps.

    python xmem.py MODEL OPTIMIZER CLEARED BATCH

CLEARED is where gradients are cleared: "first", before the batch is loaded, or "late", just before the backward pass, so
that they are held during the forward pass. Images are CIFAR's, enlarged to 86 x 86. Prints what is reserved at most.
"""
import sys

import torch
import torchvision

MODELS = {
    "ConvNeXtBase": lambda: torchvision.models.convnext_base(weights=None),
    "MnasNet": lambda: torchvision.models.MNASNet(alpha=1.0, num_classes=10),
}


def train(model, optimizer, cleared, batch):
    model.cuda().train()
    optimizer = getattr(torch.optim, optimizer)(model.parameters(), lr=0.001)
    criterion = torch.nn.CrossEntropyLoss()
    for _ in range(3):
        images, labels = torch.randn(batch, 3, 86, 86), torch.randint(0, 10, (batch,))
        if cleared == "first":
            optimizer.zero_grad()
        images, labels = images.cuda(), labels.cuda()
        outputs = model(images)
        loss = criterion(outputs, labels)
        if cleared == "late":
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.max(outputs, 1)


name, kind, place, size = sys.argv[1:]
train(MODELS[name](), kind, place, int(size))
print("peak", size, torch.cuda.max_memory_reserved())
