# Since PyTorch 2.5 the attention in plain operations computes 16-bit inputs in 32 bits.
# source: https://github.com/pytorch/pytorch/pull/128922
# package: torch 2.4.0 2.6.0
# gpu: rtx4090
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

query, key, value = (torch.randn(2, 8, 512, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3))
with sdpa_kernel(SDPBackend.MATH):
    torch.nn.functional.scaled_dot_product_attention(query, key, value)
