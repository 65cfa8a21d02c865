# PyTorch 2.12 puts rms_norm on autocast's list of 32 bits: its output doubles.
# source: https://github.com/pytorch/pytorch/issues/188955
# package: torch 2.11.0 2.12.0
# gpu: rtx4090
import torch

norm = torch.nn.RMSNorm(1024).to("cuda", torch.bfloat16)
with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
    norm(torch.randn(4096, 1024, device="cuda", dtype=torch.bfloat16))
