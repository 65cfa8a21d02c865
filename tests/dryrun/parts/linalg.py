"""Decompositions and solvers: cuSOLVER and the batched functions of cuBLAS, in all four types."""
import torch

torch.backends.cuda.preferred_linalg_library("cusolver")
for dtype in (torch.float32, torch.float64, torch.complex64, torch.complex128):
    a = torch.eye(48, device="cuda", dtype=dtype)
    batch = torch.eye(24, device="cuda", dtype=dtype).repeat(3, 1, 1)
    for x in (a, batch):
        torch.linalg.cholesky_ex(x)
        torch.linalg.qr(x)
        torch.linalg.qr(x, mode="complete")
        torch.linalg.lu_factor_ex(x)
        torch.linalg.solve_ex(x, x)
        torch.linalg.inv_ex(x)
        torch.linalg.eigh(x)
        torch.linalg.eigvalsh(x)
        torch.linalg.svdvals(x)
        for driver in ("gesvd", "gesvdj", "gesvda"):
            torch.linalg.svd(x, full_matrices=False, driver=driver)
        torch.linalg.lstsq(x, x)
        torch.linalg.solve_triangular(x, x, upper=True)
        torch.cholesky_solve(x, x)
        torch.linalg.ldl_factor_ex(x)
        torch.linalg.det(x)
    tall = torch.ones(60, 20, device="cuda", dtype=dtype)
    torch.linalg.qr(tall)
    torch.linalg.svd(tall)
    torch.linalg.pinv(tall)
torch.linalg.matrix_exp(torch.zeros(8, 8, device="cuda"))
torch.cuda.synchronize()
print("done")
# expect: fits=true
