# PyTorch 2.9 does not give 16-bit 3-D convolutions to its cuDNN, and unfolds the input instead.
# source: https://github.com/pytorch/pytorch/issues/166643
# package: torch 2.6.0 2.9.1
# gpu: h100
import torch

convolution = torch.nn.Conv3d(8, 16, 3).to("cuda", torch.bfloat16)
with torch.no_grad():
    convolution(torch.randn(2, 8, 16, 32, 32, device="cuda", dtype=torch.bfloat16))
