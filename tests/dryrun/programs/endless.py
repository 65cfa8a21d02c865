"""Waits in a loop for a value of the device."""
import torch

x = torch.randn(5, device="cuda") * 3
loss = x.sum()
while loss.item() < 1:
    loss = (x * 2).sum()
# expect: fits=null status=1 ended_by=loop
