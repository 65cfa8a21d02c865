"""A GAN with two optimizers, gradient penalty and an average of the weights; a VAE with a reparametrised sample."""
import copy

import torch
from torch import nn

make = nn.Sequential(nn.ConvTranspose2d(16, 32, 4), nn.BatchNorm2d(32), nn.ReLU(), nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Tanh()).cuda()
judge = nn.Sequential(nn.utils.spectral_norm(nn.Conv2d(3, 16, 4, 2, 1)), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(16 * 16, 1)).cuda()
makers, judges = torch.optim.Adam(make.parameters(), betas=(0.5, 0.9)), torch.optim.Adam(judge.parameters())
average = copy.deepcopy(make)
for _ in range(3):
    real = torch.randn(8, 3, 8, 8).cuda()
    fake = make(torch.randn(8, 16, 1, 1, device="cuda"))
    share = torch.rand(8, 1, 1, 1, device="cuda")
    mixed = (share * real + (1 - share) * fake.detach()).requires_grad_()
    slope, = torch.autograd.grad(judge(mixed).sum(), mixed, create_graph=True)
    loss = judge(fake.detach()).mean() - judge(real).mean() + 10 * (slope.flatten(1).norm(dim=1) - 1).pow(2).mean()
    judges.zero_grad()
    loss.backward()
    judges.step()
    makers.zero_grad()
    (-judge(fake).mean()).backward()
    makers.step()
    with torch.no_grad():
        torch._foreach_lerp_(list(average.parameters()), list(make.parameters()), 0.01)

code, draw = nn.Linear(64, 2 * 8).cuda(), nn.Linear(8, 64).cuda()
optimizer = torch.optim.Adagrad([*code.parameters(), *draw.parameters()])
for _ in range(3):
    x = torch.rand(32, 64, device="cuda")
    mean, deviation = code(x).chunk(2, 1)
    hidden = torch.distributions.Normal(mean, deviation.exp())
    apart = torch.distributions.kl_divergence(hidden, torch.distributions.Normal(0.0, 1.0)).sum()
    loss = nn.functional.binary_cross_entropy_with_logits(draw(hidden.rsample()), x) + apart
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done")
# expect: fits=true steps=3 identical
