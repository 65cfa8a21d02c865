"""Convolutions of every kind and BatchNorm, forward and backward, by cuDNN."""
import torch
from torch import nn

LAST = torch.channels_last


def run(layer, *shape, dtype=torch.float32, layout=None):
    layer = layer.to("cuda", dtype)
    x = torch.randn(*shape, device="cuda", dtype=dtype)
    if layout:
        layer, x = layer.to(memory_format=layout), x.to(memory_format=layout)
    x.requires_grad_()
    y = layer(x)
    y.sum().backward()
    assert x.grad.shape == x.shape and all(p.grad.shape == p.shape for p in layer.parameters())
    return y.shape


assert run(nn.Conv1d(8, 16, 5, padding=2), 2, 8, 64) == (2, 16, 64)
assert run(nn.Conv2d(8, 16, 3), 2, 8, 16, 16) == (2, 16, 14, 14)
assert run(nn.Conv3d(4, 8, 3, padding=1), 2, 4, 8, 8, 8) == (2, 8, 8, 8, 8)
assert run(nn.ConvTranspose1d(8, 16, 4, 2, 1), 2, 8, 16) == (2, 16, 32)
assert run(nn.ConvTranspose2d(8, 16, 4, 2, 1), 2, 8, 16, 16) == (2, 16, 32, 32)
assert run(nn.ConvTranspose3d(4, 8, 4, 2, 1), 1, 4, 4, 4, 4) == (1, 8, 8, 8, 8)
run(nn.Conv2d(8, 16, 3, groups=4), 2, 8, 16, 16)
run(nn.Conv2d(8, 8, 3, groups=8), 2, 8, 16, 16)
run(nn.Conv2d(8, 8, 3, groups=8), 2, 8, 16, 16, dtype=torch.half, layout=LAST)
run(nn.Conv2d(8, 16, 3, dilation=2, padding=2), 2, 8, 16, 16)
run(nn.Conv2d(8, 16, 3), 2, 8, 16, 16, dtype=torch.half)
run(nn.Conv2d(8, 16, 3), 2, 8, 16, 16, dtype=torch.bfloat16, layout=LAST)
run(nn.Conv2d(8, 16, 3), 2, 8, 16, 16, dtype=torch.double)
for name in ("benchmark", "deterministic", "allow_tf32"):
    before = getattr(torch.backends.cudnn, name)
    setattr(torch.backends.cudnn, name, not before)
    run(nn.Conv2d(8, 32, 3), 2, 8, 20, 20)
    setattr(torch.backends.cudnn, name, before)
run(nn.BatchNorm2d(16).cuda(), 4, 16, 8, 8)
run(nn.BatchNorm2d(16).cuda(), 4, 16, 8, 8, layout=LAST)
run(nn.BatchNorm3d(4).cuda(), 2, 4, 3, 3, 3)
print("done")
# expect: fits=true identical
