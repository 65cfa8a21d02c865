"""Children of a process that imported torch and did not use the GPU: each has a recording of its own."""
import os

import torch

for count in range(1, 4):
    if os.fork() == 0:
        held = [torch.empty(2**20, device="cuda") for _ in range(count)]
        raise SystemExit
    os.wait()
# expect: fits=true processes=3
