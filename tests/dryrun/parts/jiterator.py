"""Kernels that PyTorch compiles when it runs: jiterator, functions without compiled kernels, TorchScript's fuser."""
import torch

f = torch.cuda.jiterator._create_jit_fn("template <typename T> T twice(T x) { return x + x; }")
f(torch.ones(8, device="cuda"))
g = torch.cuda.jiterator._create_multi_output_jit_fn(
    "template <typename T> void both(T x, T& a, T& b) { a = x; b = -x; }", num_outputs=2)
g(torch.ones(8, device="cuda"))
x = torch.ones(16, device="cuda")
torch.special.i1(x)
torch.special.bessel_j0(x)
torch.lcm(torch.ones(8, device="cuda", dtype=torch.int32), torch.ones(8, device="cuda", dtype=torch.int32))
torch.sinh(torch.ones(8, device="cuda", dtype=torch.complex64))


@torch.jit.script
def fused(a, b):
    return torch.relu(a * b + a).sigmoid() * b


for _ in range(4):
    fused(x, x)
torch.cuda.synchronize()
print("done")
# expect: fits=true
