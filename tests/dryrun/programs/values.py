"""What is done where a zero would be wrong."""
import torch

p = torch.randn(5, device="cuda")
assert torch.multinomial(p, 3, replacement=True).shape == (3,)
assert torch.normal(p, p).shape == (5,)
assert torch.repeat_interleave(p, torch.tensor([1, 2, 3, 1, 1], device="cuda")).shape == (8,)
assert p.repeat_interleave((p > 0).long()).shape == (5,)
assert (p < 2).all()
assert torch.distributions.Categorical(p).sample().shape == ()
assert torch.distributions.Normal(p, p).rsample().shape == (5,)
loss = p.mean()
assert (loss - 1).abs() < 1e-5 and not loss > 9, loss
if not torch.isfinite(loss):
    raise SystemExit("diverged")
if loss.isnan() or not loss < 9:
    raise ValueError(loss)
print("done")
# expect: fits=true
