"""A small program that trains for some steps and leaks in the way that its argument names, or does what looks like a leak and is none.

    python program.py KIND [STEPS]; python program.py --list prints each kind with what `fraglab leaks` has to say of it
"""
import sys

# What is to be found: a kind of leak, or None.
KINDS = {
    # leaks
    "loss-list": "scalar", "loss-sum": "scalar", "metric-dict": "scalar",
    "outputs-list": "graph", "outputs-with-grad": "graph", "hidden-list": "graph", "hook-features": "graph", "checkpoint-outputs": "graph",
    "inputs-list": "kept", "gradients-list": "kept", "weights-history": "kept", "attribute": "kept", "dict-by-step": "kept", "cycle": "kept", "closure": "kept",
    "every-third-step": "kept", "late": "kept", "replay-buffer": "kept",
    "cache-cat": "growing", "running-cat": "growing",
    "loss-total": "graph", "log-history": "scalar", "exceptions": "graph", "hooks": "kept", "memo": "kept", "detached-outputs": "graph",
    "parameter-groups": "optimizer", "padded-cat": "growing",
    # lookalikes
    "plain": None, "no-set-to-none": None, "momentum": None, "ring-buffer": None, "best-copy": None, "evaluation-list": None, "cache-per-shape": None,
    "ema": None, "lengths-vary": None, "accumulate": None,
    "prefetch": None, "lazy-caches": None, "cache-by-epoch": None, "warm-up": None, "evaluation-by-epoch": None, "memo-bounded": None, "best-of": None,
    "lengths-grow": None,
}


def main(kind, steps):
    import collections
    import functools
    import gc

    import torch
    from torch import nn
    from torch.nn import functional as F

    torch.manual_seed(0)
    gc.disable()

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm, self.wide, self.narrow = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            return x + self.narrow(F.gelu(self.wide(self.norm(x))))

    class Net(nn.Module):
        def __init__(self, width=128):
            super().__init__()
            self.blocks = nn.ModuleList(Block(width) for _ in range(3))
            self.head = nn.Linear(width, 10)

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return self.head(x)

    model = Net().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9) if kind == "momentum" else torch.optim.AdamW(model.parameters())
    kept, table, total, cache, ring, best, ema = [], {}, 0, None, [], None, None
    features = []
    if kind == "hook-features":
        model.blocks[1].register_forward_hook(lambda module, given, out: features.append(out))

    class Node:
        pass

    def fail(x):
        out = model(x)
        raise ValueError(len(out))

    def positions(step):
        return torch.zeros(64, 128, device="cuda") + step

    remember = functools.lru_cache(maxsize=4 if kind == "memo-bounded" else None)(positions)
    queue = collections.deque()

    for step in range(steps):
        length = 64 + 16 * (step * 7 % 5) if kind in ("lengths-vary", "cache-per-shape") else 64
        if kind == "lengths-grow":
            length = 16 * min(step + 1, 8)
        x = torch.randn((8 * min(step + 1, 6) if kind == "warm-up" else 32) * length, 128, device="cuda")
        y = torch.zeros(len(x), dtype=torch.long, device="cuda")
        out = model(x)
        loss = F.cross_entropy(out, y)
        if kind == "parameter-groups":
            prompt = nn.Parameter(torch.zeros(64, 128, device="cuda"))
            optimizer.add_param_group({"params": [prompt]})
            loss = loss + prompt.sum()
        if not (kind == "accumulate" and step % 4):
            optimizer.zero_grad(set_to_none=kind != "no-set-to-none")
        loss.backward()
        if kind == "gradients-list":
            kept.append(model.head.weight.grad.clone())
        optimizer.step()
        if kind == "loss-list":
            kept.append(loss)
        elif kind == "loss-sum":
            kept.append(loss.detach())
        elif kind == "metric-dict":
            table[step] = (out.argmax(1) == y).float().mean()
        elif kind == "outputs-list":
            kept.append(out)
        elif kind == "outputs-with-grad":
            kept.append(model(x))
        elif kind == "hidden-list":
            kept.append(model.blocks[0](x))
        elif kind == "checkpoint-outputs":
            from torch.utils.checkpoint import checkpoint

            kept.append(checkpoint(model.blocks[0], x.requires_grad_(), use_reentrant=False))
        elif kind == "inputs-list":
            kept.append(x)
        elif kind == "weights-history":
            kept.append([p.detach().clone() for p in model.parameters()])
        elif kind == "attribute":
            setattr(model, f"seen_{step}", x[:64].clone())
        elif kind == "dict-by-step":
            table[step] = x.mean(0, keepdim=True).expand(32, 128).contiguous()
        elif kind == "cycle":
            a, b = Node(), Node()
            a.other, b.other, a.data = b, a, x[:256].clone()
            del a, b
        elif kind == "closure":
            part = x[:128].clone()
            kept.append(lambda part=part: part.sum())
        elif kind == "every-third-step" and step % 3 == 0:
            kept.append(x[:512].clone())
        elif kind == "late" and step >= steps // 2:
            kept.append(x[:512].clone())
        elif kind == "replay-buffer":
            kept.extend((x[i].clone(), y[i].clone()) for i in range(8))
        elif kind == "cache-cat":
            cache = x[:32] if cache is None else torch.cat([cache, x[:32]])
        elif kind == "running-cat":
            table["seen"] = torch.cat([table["seen"], out.detach()]) if "seen" in table else out.detach()
        elif kind == "loss-total":
            total = total + F.cross_entropy(model(x), y)
        elif kind == "log-history":
            kept.append({"loss": loss.detach(), "norm": model.head.weight.detach().norm(), "rate": out.detach().max()})
        elif kind == "exceptions":
            try:
                fail(x[:256])
            except ValueError as error:
                kept.append(error)
        elif kind == "hooks":
            mask = torch.ones(64, 128, device="cuda")
            model.head.register_forward_pre_hook(lambda module, given, mask=mask: None)
            del mask
        elif kind in ("memo", "memo-bounded"):
            remember(step)
        elif kind == "detached-outputs" and step % 4 == 3:
            table[step // 4] = out.detach()
        elif kind == "padded-cat":
            wide = torch.zeros(32 * (step + 1), 128, device="cuda")
            if cache is not None:
                wide[:len(cache)] = cache
            cache = wide
        elif kind == "prefetch":
            queue.extend(torch.zeros(512, 128, device="cuda") for _ in range(2 if len(queue) < 8 else 1))
            queue.popleft()
        elif kind == "lazy-caches" and step in (1, 2, 5, 9):
            table[step] = torch.zeros(256, 256, device="cuda")
        elif kind == "cache-by-epoch":
            cache = x[:32] if step % 6 == 0 else torch.cat([cache, x[:32]])
        elif kind == "evaluation-by-epoch" and step % 6 == 5:
            with torch.no_grad():
                results = torch.cat([model(torch.zeros(4096, 128, device="cuda")) for _ in range(8)])
                table["score"] = results.mean()
            del results
        elif kind == "best-of":
            kept = sorted(kept + [(step * 5 % 24, x[:256].clone())], key=lambda entry: entry[0])[:5]
        elif kind == "ring-buffer":
            ring = (ring + [x[:512].clone()])[-4:]
        elif kind == "best-copy" and step in (0, 7):
            best = [p.detach().clone() for p in model.parameters()]
        elif kind == "evaluation-list" and step % 5 == 4:
            with torch.no_grad():
                results = [model(x) for _ in range(6)]
            del results
        elif kind == "cache-per-shape":
            table.setdefault(length, torch.zeros(length, length, device="cuda"))
        elif kind == "ema":
            with torch.no_grad():
                if step == 5:
                    ema = [p.detach().clone() for p in model.parameters()]
    return kept, table, total, cache, ring, best, ema, features


if __name__ == "__main__":
    if sys.argv[1] == "--list":
        for name, found in KINDS.items():
            print(name, found or "-")
    else:
        main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 24)
