"""Triton kernels of one's own: plain, autotuned, inside an autograd function."""
import torch
import triton
import triton.language as tl


@triton.jit
def scale(x, y, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, factor * tl.load(x + at, mask=at < n), mask=at < n)


@triton.autotune([triton.Config({"BLOCK": n}, num_warps=4) for n in (128, 256)], key=["n"])
@triton.jit
def square(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(y + at, value * value, mask=at < n)


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        y = torch.empty_like(x)
        scale[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), 2.0, BLOCK=256)
        return y

    @staticmethod
    def backward(context, grad):
        return Scale.forward(context, grad.contiguous())


weight = torch.randn(1 << 16, device="cuda", requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
for _ in range(2):
    Scale.apply(weight).sum().backward()
    optimizer.step()
out = torch.empty_like(weight)
square[lambda meta: (triton.cdiv(out.numel(), meta["BLOCK"]),)](weight.detach(), out, out.numel())
torch.cuda.synchronize()
print("done")
# needs: triton
# expect: fits=true steps=2
