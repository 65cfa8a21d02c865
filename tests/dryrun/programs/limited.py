"""A script that lets PyTorch have a quarter of the card runs out of that, and its replay does too."""
import torch

torch.cuda.set_per_process_memory_fraction(0.25)
held = []
try:
    while True:
        held.append(torch.empty(200 << 20, dtype=torch.uint8, device="cuda"))
except torch.cuda.OutOfMemoryError as error:
    assert "5.91 GiB allowed" in str(error)
print(len(held))
# expect: fits=false identical
