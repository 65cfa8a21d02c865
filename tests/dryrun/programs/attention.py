"""Scaled dot-product attention by each of its implementations, forward and backward."""
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention


def run(backend, dtype=torch.bfloat16, with_mask=False, key_heads=4, **options):
    q = torch.randn(2, 4, 64, 64, device="cuda", dtype=dtype, requires_grad=True)
    k, v = (torch.randn(2, key_heads, 64, 64, device="cuda", dtype=dtype, requires_grad=True) for _ in range(2))
    mask = torch.zeros(2, 4, 64, 64, device="cuda", dtype=dtype) if with_mask else None
    with sdpa_kernel(backend):
        scaled_dot_product_attention(q, k, v, attn_mask=mask, **options).sum().backward()
    assert q.grad.shape == q.shape and k.grad.shape == k.shape


cudnn = SDPBackend.CUDNN_ATTENTION
run(cudnn)
run(cudnn, torch.half, is_causal=True)
run(cudnn, with_mask=True)
run(cudnn, key_heads=2, enable_gqa=True)
run(SDPBackend.FLASH_ATTENTION, dropout_p=0.1)
run(SDPBackend.EFFICIENT_ATTENTION, with_mask=True)
run(SDPBackend.MATH)
run([cudnn, SDPBackend.FLASH_ATTENTION, SDPBackend.MATH])
print("done")
# expect: fits=true identical
