"""Faster R-CNN of torchvision, in training and in evaluation, which takes boxes of many classes class after class."""
import torch
import torchvision

model = torchvision.models.detection.fasterrcnn_resnet50_fpn(weights=None, weights_backbone=None).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
images = [torch.rand(3, 240, 320).cuda() for _ in range(2)]
targets = [{"boxes": torch.tensor([[10.0, 10.0, 100.0, 100.0], [50.0, 60.0, 200.0, 190.0]]).cuda(), "labels": torch.tensor([1, 2]).cuda()} for _ in range(2)]
for _ in range(2):
    loss = sum(model(images, targets).values())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
before = torch.cuda.memory_stats()["allocation.all.allocated"]
with torch.no_grad():
    answers = model(images)
# Two images, 90 classes: a few requests for each.
assert torch.cuda.memory_stats()["allocation.all.allocated"] - before < 10000
assert all(len(answer["boxes"]) == 100 for answer in answers)
# needs: torchvision
# gpu: rtx3060
# expect: steps=2 identical
