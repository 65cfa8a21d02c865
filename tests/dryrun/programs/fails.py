"""Fails for its own reasons."""
import torch

block = torch.empty(1 << 20, device="cuda")
raise ValueError("no such data")
# expect: fits=null status=1 exception=ValueError:_no_such_data
