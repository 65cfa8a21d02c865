"""States that are saved and come back: distributed checkpoints, files that are mapped, and activations kept on the CPU or computed anew."""
import functools
import tempfile

import torch
import torch.distributed.checkpoint as checkpoints
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, checkpoint_sequential, create_selective_checkpoint_contexts

blocks = nn.ModuleList([nn.TransformerEncoderLayer(64, 4, 128, batch_first=True) for _ in range(4)]).cuda()
x = torch.randn(2, 32, 64, device="cuda", requires_grad=True)


def inner(x):
    return checkpoint(blocks[1], checkpoint(blocks[0], x, use_reentrant=False), use_reentrant=False)


def policy(_context, operator, *_arguments, **_named):
    return CheckpointPolicy.MUST_SAVE if operator == torch.ops.aten.mm.default else CheckpointPolicy.PREFER_RECOMPUTE


checkpoint(lambda x: blocks[2](inner(x)), x, use_reentrant=False).sum().backward()
checkpoint_sequential(blocks, 2, x, use_reentrant=False).sum().backward()
checkpoint(blocks[3], x, use_reentrant=True).sum().backward()
checkpoint(blocks[0], x, use_reentrant=False,
           context_fn=functools.partial(create_selective_checkpoint_contexts, policy)).sum().backward()
with torch.autograd.graph.save_on_cpu(pin_memory=True):
    blocks[1](x).sum().backward()
with torch.autograd.detect_anomaly():
    blocks[0](x).mean().backward()
optimizer = torch.optim.AdamW(blocks.parameters())
optimizer.step()
optimizer.zero_grad()
with tempfile.TemporaryDirectory() as folder:
    model, moments = get_state_dict(blocks, optimizer)
    checkpoints.save({"model": model, "moments": moments}, checkpoint_id=folder)
    checkpoints.load({"model": model, "moments": moments}, checkpoint_id=folder)
    set_state_dict(blocks, optimizer, model_state_dict=model, optim_state_dict=moments)
    torch.save(blocks.state_dict(), folder + "/blocks.pt")
    blocks.load_state_dict(torch.load(folder + "/blocks.pt", map_location="cuda"))
    blocks.load_state_dict(torch.load(folder + "/blocks.pt", mmap=True, weights_only=True))
torch.cuda.reset_accumulated_memory_stats()
print("done")
# expect: fits=true identical
