"""Operators that look at values themselves, in C++: also in a backward pass, where no Python runs."""
import torch

zeros = torch.zeros(5, 3, device="cuda").add(1)
assert torch.unique(zeros).numel() >= 1 and torch.unique(zeros, dim=0).shape[0] >= 1
assert torch.unique_consecutive(zeros, return_counts=True)[1].numel() >= 1
assert torch.isin(zeros, torch.zeros(25, device="cuda")).shape == (5, 3)
unknown = torch.randn(5, 3, device="cuda")
assert torch.equal(unknown, unknown + 1) and torch.allclose(unknown, unknown + 1)
matrices = torch.randn(3, 5, 5, device="cuda")
assert torch.linalg.eig(matrices)[1].shape == (3, 5, 5) and torch.linalg.eigvals(matrices[0]).shape == (5,)
counts = torch.randint(0, 9, (5,), device="cuda")
for more in ({}, {"fweights": counts}, {"aweights": counts.float(), "correction": 0}, {"fweights": counts, "aweights": counts.float()}):
    x = torch.randn(3, 5, device="cuda", requires_grad=True)
    torch.cov(x, **more).sum().backward()
torch.corrcoef(x).sum().backward()
value = torch.zeros((), device="cuda", requires_grad=True)
torch.zeros((), device="cuda").requires_grad_().mul(1).index_fill(0, torch.tensor([0], device="cuda"), value).backward()
torch.segment_reduce(torch.randn(9, device="cuda"), "sum", lengths=torch.tensor([2, 7], device="cuda"))
spectrum = torch.stft(torch.randn(64, device="cuda"), 16, window=torch.ones(16, device="cuda"), return_complex=True)
assert torch.istft(spectrum, 16, window=torch.ones(16, device="cuda")).shape == (64,)
# Targets of which nothing is known, or of more than is kept.
adaptive = torch.nn.AdaptiveLogSoftmaxWithLoss(16, 1000, [100, 300]).cuda()
for targets in (torch.randint(0, 1000, (64,), device="cuda"), torch.randint(0, 1000, (20000,), device="cuda"),
                torch.randn(64, 1000, device="cuda").argmax(1)):
    adaptive(torch.randn(len(targets), 16, device="cuda"), targets).loss.backward()
assert torch.mode(torch.randn(5000, device="cuda")).values.shape == () and torch.mode(torch.randn(2, 3000, device="cuda")).indices.shape == (2,)
print("done")
# expect: fits=true identical
