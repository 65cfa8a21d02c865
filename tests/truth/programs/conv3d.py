"""One Conv3d of the arguments IN OUT DTYPE PADDING on one picture of each FRAMESxHEIGHTxWIDTH: the most allocated."""
import sys

import torch

inputs, outputs, dtype, padding = sys.argv[1:5]
with torch.no_grad():
    conv = torch.nn.Conv3d(int(inputs), int(outputs), 3, padding=int(padding)).to("cuda:0", dtype=getattr(torch, dtype))
    for size in sys.argv[5:]:
        given = torch.empty([1, int(inputs), *map(int, size.split("x"))], dtype=getattr(torch, dtype), device="cuda:0")
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        conv(given)
        print("peak", size, torch.cuda.max_memory_allocated())
        del given
