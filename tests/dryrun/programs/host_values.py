"""What the host wrote can be read back, in every way; what a kernel computed is no old value."""
import torch

lengths = torch.tensor([3, 1, 2]).cuda()
assert lengths.tolist() == [3, 1, 2] and lengths[1].item() == 1
mask = torch.tensor([True, False, True]).cuda()
assert mask.cpu().tolist() == [True, False, True]
grid = torch.arange(12.0).reshape(3, 4).pin_memory().cuda(non_blocking=True)
assert grid.cpu().sum().item() == 66
copy = torch.empty_like(lengths)
copy.copy_(lengths)
assert copy.tolist() == [3, 1, 2]
# The allocator hands the same block out again: its old bytes are not the new tensor's.
address = lengths.data_ptr()
del lengths
fresh = torch.empty(3, dtype=torch.int64, device="cuda")
assert fresh.data_ptr() == address and fresh.tolist() == [0, 0, 0]
assert (torch.ones(3, device="cuda") * 2).sum().item() == 6
total = (torch.randn(3, device="cuda") * 2).sum()
assert total.item() == 0
for piece in torch.randn(6, 8).cuda().split(torch.tensor([1, 2, 3]).cuda().tolist()):
    piece.mul_(2)

# Masks: counted where the host wrote them; else all elements, forward and backward alike.
x = torch.randn(4, 64, 10, device="cuda", requires_grad=True)
ids = torch.randint(0, 10, (4, 64)).cuda()
unknown = torch.randn(4, 64, device="cuda") > 0
known = torch.tensor([True, False] * 32).cuda()
for step in range(2):
    chosen = x[~unknown]
    assert chosen.shape == (256, 10)
    (chosen.sum() + x[0][known].sum()).backward()
    assert x.grad.shape == x.shape
    ids[unknown] = 0
    assert torch.masked_select(ids, unknown).shape == (256,)
    assert torch.where(unknown)[0].shape == (256,)
    assert ids[0][known].shape == (32,)
    assert known.nonzero().shape == (32, 1)
    assert torch.zeros(8, dtype=torch.bool).cuda().nonzero().shape == (0, 1)
    assert torch.arange(6).repeat(4).cuda().unique().shape == (6,)
    pairs = torch.tensor([[1, 2], [3, 4], [1, 2], [1, 2]]).cuda()
    assert pairs.unique(dim=0).shape == (2, 2) and torch.unique_consecutive(pairs, dim=0).shape == (3, 2)
    assert torch.unique_consecutive(pairs[:, 0].contiguous()).shape == (3,)
    drawn = torch.randn(40, 3, device="cuda").long()  # each slice is taken once
    assert [len(part) for part in torch.unique(drawn, dim=0, return_inverse=True, return_counts=True)] == [40, 40, 40]

# expect: status=0 ended_by=exit identical
