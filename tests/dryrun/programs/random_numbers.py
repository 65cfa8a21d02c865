"""Random numbers of all distributions, multinomial and dropout."""
import torch

x = torch.empty(64, 64, device="cuda")
for fill in ("normal_", "uniform_", "exponential_", "cauchy_", "log_normal_", "random_", "bernoulli_"):
    getattr(x, fill)()
x.geometric_(0.5)
torch.randperm(100, device="cuda")
torch.multinomial(torch.ones(4, 10, device="cuda"), 3, replacement=True)
torch.nn.functional.dropout(x, 0.5)
torch.poisson(torch.ones(8, device="cuda"))
torch.cuda.synchronize()
print("done")
# expect: fits=true
