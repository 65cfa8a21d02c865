"""A script that decides by values of the GPU is told so; loops that wait for all of them go to their own end."""
import torch

finished = torch.zeros(2, dtype=torch.bool).cuda()
tokens = torch.ones(2, 1, dtype=torch.long, device="cuda")
for _ in range(30):
    following = torch.randn(2, 50, device="cuda").argmax(-1)
    finished |= following == 2
    tokens = torch.cat([tokens, following[:, None]], 1)
    if finished.all():
        break
assert tokens.shape == (2, 31)


def evaluate():
    total = torch.randn(4, device="cuda").sum().item()
    return total / 4


best = evaluate()
if best < 1:
    torch.empty(1024, device="cuda")
if torch.randn(4, device="cuda").isnan().any():
    raise ValueError("not a number")
total = [total for total in (1, 2) if total > 1]
total = evaluate()
torch.linalg.svd(torch.randn(3, 3, device="cuda"))
print(total)
# expect: fits=true decisions=2
