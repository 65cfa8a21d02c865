"""A small training program with the memory behaviour of real ones, for the dry run.

    python3 train.py [--model mlp|cnn|transformer] [--steps N] [--seed N] [--streams] [--oom] [--graph]

Batches change their size from step to step, and an evaluation without gradients comes in between.
With --streams a second stream prepares the next batch; with --oom a request cannot be served; with
--graph a CUDA graph is captured and replayed at the end. It prints one line a step and "done".
"""
import argparse
import random

import torch
from torch import nn


class Transformer(nn.Module):
    def __init__(self, width=256, heads=4, layers=3, words=1000):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, batch_first=True)
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, words)

    def forward(self, words):
        return self.head(self.body(self.embed(words))).mean(dim=1)


def mlp():
    return nn.Sequential(nn.Linear(784, 2048), nn.ReLU(), nn.Linear(2048, 1024), nn.GELU(),
                         nn.Dropout(0.1), nn.Linear(1024, 10))


def cnn():
    layers = []
    for inside, outside in ((3, 32), (32, 64), (64, 128)):
        layers += [nn.Conv2d(inside, outside, 3, padding=1), nn.BatchNorm2d(outside), nn.ReLU(),
                   nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))


def batch(model, size, length):
    if model == "mlp":
        return torch.randn(size, 784)
    if model == "cnn":
        return torch.randn(size, 3, length, length)
    return torch.randint(0, 1000, (size, length))


def replay_graph(model, data):
    """Two graphs with one private pool, and the cache emptied behind them."""
    model.eval()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), torch.no_grad():
        model(data)
    torch.cuda.current_stream().wait_stream(side)
    first = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(first):
        out = model(data)
    first.replay()
    second = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(second, pool=first.pool()):
        again = model(data + 1)
    second.replay()
    del out, again
    first.reset()
    second.reset()
    torch.cuda.empty_cache()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="mlp", choices=("mlp", "cnn", "transformer"))
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--streams", action="store_true")
    parser.add_argument("--oom", action="store_true")
    parser.add_argument("--graph", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    chance = random.Random(options.seed)
    # Convolutions go through matrix products: what cuDNN takes is not known to the byte.
    torch.backends.cudnn.enabled = False
    model = {"mlp": mlp, "cnn": cnn, "transformer": Transformer}[options.model]().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    side = torch.cuda.Stream() if options.streams else None
    for step in range(options.steps):
        data = batch(options.model, chance.randrange(4, 48), chance.randrange(16, 48))
        if side is None:
            data = data.cuda()
        else:
            with torch.cuda.stream(side):
                data = data.pin_memory().cuda(non_blocking=True)
            torch.cuda.current_stream().wait_stream(side)
            data.record_stream(torch.cuda.current_stream())
        loss = model(data).float().pow(2).mean()
        optimizer.zero_grad(set_to_none=step % 2 == 0)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 4 == 3:
            with torch.no_grad():
                model(batch(options.model, 64, 48).cuda())
        if step == options.steps // 2:
            del loss
            torch.cuda.empty_cache()
        if options.oom and step == options.steps // 2 + 1:
            try:
                torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
            except torch.cuda.OutOfMemoryError as error:
                print("refused:", str(error).split(".")[0])
        print("step", step, "batch", tuple(data.shape))
    if options.graph:
        replay_graph(model, data)
    print("done")


main()
