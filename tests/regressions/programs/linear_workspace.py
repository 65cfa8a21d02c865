# The workspace of cuBLASLt used to be freed after the call; since PyTorch 2.7 it is kept, by stream.
# source: https://github.com/pytorch/pytorch/pull/145130
# package: torch 2.6.0 2.9.1
# gpu: rtx4090
import torch

layers = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.Linear(1024, 1024)).to("cuda")
layers(torch.randn(640, 1024, device="cuda")).sum().backward()
