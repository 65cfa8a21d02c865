# Since PyTorch 2.5 rms_norm computes 16-bit inputs in 32 bits (2.9 has a kernel for it).
# source: https://github.com/pytorch/pytorch/pull/133085
# package: torch 2.4.0 2.6.0
# gpu: rtx4090
import torch

norm = torch.nn.RMSNorm(1024).to("cuda", torch.bfloat16)
with torch.no_grad():
    norm(torch.randn(4096, 1024, device="cuda", dtype=torch.bfloat16))
