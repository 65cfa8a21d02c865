"""Random numbers of small tensors are the card's own: what was printed by GPUs after manual_seed(0), and what follows from it."""
import torch

torch.manual_seed(0)
first, second = torch.rand(10, device="cuda"), torch.rand(10, device="cuda")
assert torch.round(first, decimals=4).tolist()[:4] == torch.tensor([0.3990, 0.5167, 0.0249, 0.9401]).tolist(), first
assert int(second[0].item() * 10000) == 9722 and (second < 0.5).sum().item() == 6
assert sum(bool(value > 0.5) for value in first) == 6 and bool(first.view(2, 5)[1, 0] > 0.7)
torch.manual_seed(0)
assert torch.randint(0, 100, (8,), device="cuda").tolist() == [41, 97, 91, 72, 53, 4, 3, 33]

state = torch.cuda.get_rng_state()
labels = torch.randint(0, 1000, (4000,), device="cuda")
counts = labels.bincount()
assert counts.shape == (int(labels.max()) + 1,) and int(counts.sum()) == 4000 and 900 < len(labels.unique()) < 1000
assert torch.nn.functional.one_hot(labels % 7).shape == (4000, 7)
torch.cuda.set_rng_state(state)
assert torch.equal(torch.empty(4000, dtype=torch.long, device="cuda").random_(1000), labels)
assert torch.randint(2 ** 40, (9,), device="cuda").max().item() > 2 ** 30
for count in (1, 2, 100, 5000):
    assert sorted(torch.randperm(count, device="cuda").tolist()) == [*range(count)]
masked = torch.rand(8, 64, device="cuda") < 0.15
assert 40 < int(masked.sum()) < 120 and torch.randn(8, 64, device="cuda")[masked].shape == (int(masked.sum()),)
chosen = torch.bernoulli(torch.full((8, 64), 0.15, device="cuda")).bool()
assert 40 < len(chosen.nonzero()) < 120 and int(torch.empty(4000, dtype=torch.bool, device="cuda").bernoulli_(0.5).sum()) in range(1800, 2200)
weights = torch.tensor([0.0, 0.5, 0.5]).cuda()
assert set(torch.multinomial(weights, 50, replacement=True).tolist()) == {1, 2}
assert torch.multinomial(weights, 2).sort().values.tolist() == [1, 2]
generator = torch.Generator("cuda").manual_seed(0)
assert torch.randint(0, 100, (8,), device="cuda", generator=generator)[0].item() == 41

# What was drawn and then changed by a kernel is no longer known, in whatever way it was changed.
numbers = torch.randint(1, 9, (5,), device="cuda")
numbers.copy_(torch.randn(5, device="cuda"))
assert numbers.tolist() == [0] * 5
numbers = torch.randint(1, 9, (5,), device="cuda")
numbers.index_reduce_(0, torch.randn(5, device="cuda").argsort(), numbers + 1, "prod")
assert numbers.tolist() == [0] * 5
numbers = torch.randint(1, 9, (5,), device="cuda")
torch.argmax(torch.randn(5, 7, device="cuda"), 1, out=numbers)
assert numbers.tolist() == [0] * 5
share = torch.rand(4, device="cuda")
share.erfinv_()
assert (share * 2).sum().item() != 0  # computed on the host
share.add_(torch.randn(4, device="cuda"))
assert (share * 2).sum().item() == 0
# expect: fits=true identical again
