"""A small GPT, with autocast and without, with checkpointing and without, GradScaler, fused Adam."""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.behind = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.mix(self.before(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.feed(self.behind(x))


class GPT(nn.Module):
    def __init__(self, checkpoints, words=1000, width=256, layers=4, length=128):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, 4) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.checkpoints = checkpoints

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpoints else block(x)
        return self.head(self.norm(x))


def train(autocast, checkpoints, fused):
    model = GPT(checkpoints).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), fused=fused)
    scaler = torch.amp.GradScaler("cuda", enabled=autocast == torch.float16)
    for _ in range(2):
        ids = torch.randint(0, 1000, (8, 128)).cuda()
        with torch.autocast("cuda", dtype=autocast or torch.float16, enabled=autocast is not None):
            logits = model(ids)
            loss = nn.functional.cross_entropy(logits.view(-1, 1000), ids.view(-1))
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


for autocast in (None, torch.bfloat16, torch.float16):
    for checkpoints in (False, True):
        train(autocast, checkpoints, fused=checkpoints)
print("done")
# expect: fits=true identical again
