"""Two ranks on one card: each sees what the other holds, and the second runs out of what the first has left."""
import os
import sys

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
mine = torch.empty(3 << 30, dtype=torch.uint8, device="cuda:0") if rank == 0 else torch.empty(1, device="cuda:0")
dist.barrier()
free, total = torch.cuda.mem_get_info(0)
assert total - free > 3 << 30, (free, total)
failed = False
if rank == 1:
    try:
        torch.empty(2 << 30, dtype=torch.uint8, device="cuda:0")
    except torch.cuda.OutOfMemoryError as error:
        failed = True
        print(error, file=sys.stderr)
dist.barrier()
assert failed == (rank == 1)
if rank == 0:
    del mine
    torch.cuda.empty_cache()
dist.barrier()
if rank == 1:
    mine = torch.empty(2 << 30, dtype=torch.uint8, device="cuda:0")
os.sched_yield()
dist.destroy_process_group()
# gpu: 4GiB
# run: torchrun --nproc-per-node 2
# expect: processes=2 fits=true
