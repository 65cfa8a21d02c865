"""Whole numbers that are too many to be followed, but lie between known ones: there are no more different ones than that."""
import torch


def count(tensor):
    return len(torch.unique(tensor))


labels = torch.arange(10, device="cuda").expand(20000, 10)[:, 1:].reshape(-1)
assert count(labels) == 9
picked = labels[torch.rand(len(labels), device="cuda") > 0.5]  # all of them, as far as is known
assert count(picked) == 9
unknown = torch.randn(100000, device="cuda").argsort()
assert count(unknown) == 100000
rest = unknown % 7
assert count(rest) == 7
assert count(torch.cat([picked, rest.clone()])) == 10
assert count(torch.cat([picked, unknown])) == len(picked) + len(unknown)
assert count(unknown[:5] % 7) == 5
picked *= 3
assert count(picked) == len(picked)
# expect: identical
