"""Matrix products of all kinds: plain, batched, strided, in half precision, with bias and epilogue, integers."""
import torch

a = torch.randn(96, 64, device="cuda", requires_grad=True)
b = torch.randn(64, 32, device="cuda", requires_grad=True)
(a @ b).sum().backward()
for dtype in (torch.float16, torch.bfloat16, torch.float64, torch.complex64, torch.complex128):
    x = torch.ones(4, 32, 32, device="cuda", dtype=dtype)
    torch.bmm(x, x)
    torch.baddbmm(x, x, x)
    x[0] @ x[0, 0]
    torch.addmm(x[0, 0], x[0], x[1])
    torch.einsum("bij,bjk->bik", x, x)
    torch.dot(x[0, 0], x[0, 1])
    torch.linalg.vector_norm(x)
    torch.addr(x[0], x[0, 0], x[0, 1])
torch._int_mm(torch.ones(32, 32, device="cuda", dtype=torch.int8), torch.ones(32, 32, device="cuda", dtype=torch.int8))
q = torch.randn(2, 4, 64, 32, device="cuda", dtype=torch.float16)
torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
torch.cuda.synchronize()
print("done")
# expect: fits=true
