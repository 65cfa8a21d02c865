"""Sparse matrices: conversions, products with dense ones, sampled products, triangular solvers, sums."""
import torch

indices = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
for dtype in (torch.float32, torch.float64, torch.complex64, torch.complex128):
    coo = torch.sparse_coo_tensor(indices, torch.ones(4, dtype=dtype), (4, 4)).cuda()
    dense = torch.ones(4, 8, device="cuda", dtype=dtype)
    torch.sparse.mm(coo, dense)
    csr = torch.sparse_csr_tensor(torch.tensor([0, 1, 2, 3, 4]), torch.tensor([1, 0, 3, 2]), torch.ones(4, dtype=dtype), (4, 4)).cuda()
    csr @ dense
    csr @ dense[:, 0]
    torch.sparse.sampled_addmm(csr, dense, dense.t().contiguous())
    torch.triangular_solve(dense, csr)
    torch.add(csr, csr)
    csr @ csr
    bsr = torch.sparse_bsr_tensor(torch.tensor([0, 1, 2]), torch.tensor([0, 1]), torch.ones(2, 2, 2, dtype=dtype), (4, 4)).cuda()
    bsr @ dense
    torch.triangular_solve(dense, bsr)
torch.cuda.synchronize()
print("done")
# expect: fits=true
