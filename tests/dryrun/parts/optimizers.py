"""All optimizers of torch.optim, one by one, for each tensor, by lists, fused and capturable."""
import inspect

import torch
from torch import nn


def train(model, optimizer):
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    for _ in range(2):
        model(torch.randn(8, 32, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()


def variants(name, make):
    """Those that this release's signature takes; Adagrad's fused one is for the CPU alone up to 2.9."""
    taken = [word for word in ("foreach", "fused", "capturable") if word in inspect.signature(make.__init__).parameters]
    if name == "Adagrad" and "cuda_unsupported=True" in inspect.getsource(make):
        taken.remove("fused")
    return [{}] + [{word: True} for word in taken]


ran = 0
names = ("SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "Adagrad", "Adadelta", "ASGD", "Adafactor", "Muon")
for name in names:
    make = getattr(torch.optim, name, None)
    for more in variants(name, make) if make is not None else []:
        model = nn.Linear(32, 32, bias=name != "Muon").cuda()
        train(model, make(model.parameters(), **more))
        ran += 1
assert ran >= 30, ran
model = nn.Linear(32, 32).cuda()
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)


def closure():
    optimizer.zero_grad()
    loss = model(torch.randn(8, 32, device="cuda")).pow(2).sum()
    loss.backward()
    return loss


optimizer.step(closure)
average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
average.update_parameters(model)
average.update_parameters(model)
print("done")
# expect: fits=true identical
