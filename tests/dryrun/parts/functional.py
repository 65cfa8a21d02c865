"""torch.func, nested and sparse tensors, checkpoints, packed sequences, quantised products, linear algebra, FFT."""
import torch
from torch import nn
from torch.func import functional_call, grad, hessian, jacrev, jvp, vmap
from torch.utils.checkpoint import checkpoint

model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)).cuda()
weights = {name: p.detach() for name, p in model.named_parameters()}
x = torch.randn(12, 8, device="cuda")
each = vmap(grad(lambda w, row: functional_call(model, w, row).sum()), in_dims=(None, 0))(weights, x)
assert each["0.weight"].shape == (12, 16, 8)
jacrev(lambda row: functional_call(model, weights, row))(x[0])
hessian(lambda row: functional_call(model, weights, row).sum())(x[0])
jvp(lambda row: row @ torch.ones(8, 3, device="cuda"), (x,), (x,))
grad(lambda row: row[row > 0].sum())(x)
assert torch.tensor([x.sum(), x.mean()]).tolist() == [0, 0]  # a tensor is no sequence

ragged = torch.nested.nested_tensor([torch.randn(n, 16) for n in (3, 5, 2)], device="cuda", layout=torch.jagged)
nn.Linear(16, 16).cuda()(ragged).values().sum().backward()
big = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.GELU()) for _ in range(4))).cuda()
y = torch.randn(32, 64, device="cuda", requires_grad=True)
for block in big:
    y = checkpoint(block, y, use_reentrant=False)
y.sum().backward()
coo = torch.sparse_coo_tensor([[0, 1, 2], [2, 0, 1]], [1.0, 2.0, 3.0], (3, 3), device="cuda")
torch.sparse.mm(coo, torch.randn(3, 4, device="cuda", requires_grad=True)).sum().backward()

eye = (2 * torch.eye(6)).repeat(2, 1, 1).cuda().requires_grad_()
parts = (torch.linalg.svd(eye), torch.linalg.qr(eye), torch.linalg.eigh(eye), (torch.linalg.cholesky(eye),), (torch.linalg.inv(eye),),
         (torch.linalg.solve(eye, eye),), torch.linalg.lstsq(eye, eye)[:1], (torch.linalg.det(eye),), (torch.linalg.pinv(eye),))
for part in parts:
    sum(p.abs().sum() for p in part if p.numel()).backward(retain_graph=True)
torch.fft.irfft2(torch.fft.rfft2(torch.randn(4, 16, 16, device="cuda", requires_grad=True))).sum().backward()
if hasattr(torch, "_scaled_mm"):
    a = torch.randn(32, 64, device="cuda").to(torch.float8_e4m3fn)
    one = torch.ones((), device="cuda")
    assert torch._scaled_mm(a, a.t(), one, one, out_dtype=torch.bfloat16).shape == (32, 32)
print("done")
# expect: fits=true identical again
