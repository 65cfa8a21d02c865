"""Image models of timm: ViT, ConvNeXt, EfficientNet; channels last, autocast, GradScaler, clipping and an average of weights."""
import timm
import timm.optim
import torch
from timm.utils import ModelEmaV3

for name, more in (("vit_tiny_patch16_224", {"img_size": 64}), ("convnext_atto", {}), ("efficientnet_b0", {})):
    model = timm.create_model(name, num_classes=10, **more).cuda().to(memory_format=torch.channels_last)
    average = ModelEmaV3(model)
    optimizer = timm.optim.create_optimizer_v2(model, opt="lamb", lr=1e-3)
    scaler = torch.amp.GradScaler("cuda")
    for _ in range(2):
        x = torch.randn(4, 3, 64, 64).pin_memory().cuda(non_blocking=True).to(memory_format=torch.channels_last)
        with torch.autocast("cuda", torch.half):
            loss = torch.nn.functional.cross_entropy(model(x), torch.randint(0, 10, (4,)).cuda())
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        average.update(model)
        assert loss.item() == loss.item()
print("done")
# needs: timm torchvision
# expect: fits=true steps=2 identical again
