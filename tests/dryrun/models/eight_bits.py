"""bitsandbytes, whose own compiled CUDA code is loaded and launched: 8-bit and paged Adam, Int8 and NF4 layers."""
import bitsandbytes as bnb
import torch
from torch import nn


def train(model, optimizer, dtype=torch.float32):
    for _ in range(2):
        model(torch.randn(8, 256, device="cuda", dtype=dtype)).float().pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256)).cuda()
for make in (bnb.optim.Adam8bit, bnb.optim.AdamW8bit, bnb.optim.PagedAdamW8bit, bnb.optim.Lion8bit, bnb.optim.SGD8bit):
    options = {"momentum": 0.9} if make is bnb.optim.SGD8bit else {}
    train(model, make(model.parameters(), lr=1e-3, **options))
half = nn.Sequential(bnb.nn.Linear8bitLt(256, 256, has_fp16_weights=False, threshold=6.0), nn.Linear(256, 256)).half().cuda()
train(half, torch.optim.SGD(half[1].parameters(), lr=0.1), torch.half)
four = bnb.nn.Linear4bit(256, 256, compute_dtype=torch.bfloat16, quant_type="nf4", compress_statistics=True).cuda()
adapter = nn.Linear(256, 256).cuda().bfloat16()
train(nn.Sequential(four, adapter), torch.optim.SGD(adapter.parameters(), lr=0.1), torch.bfloat16)
assert four.weight.dtype == torch.uint8 and four.weight.numel() == 256 * 256 // 2
print("done")
# needs: bitsandbytes
# expect: fits=true identical
