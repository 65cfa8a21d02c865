"""Peaks of the plain-PyTorch functions that Liger-Kernel's benchmarks compare their kernels with.

    python liger.py KERNEL MODE CONFIG X...

CONFIG is JSON, as in benchmark/data/all_benchmark_data.csv of linkedin/Liger-Kernel. Written anew
from what the benchmarks measure: torch.cuda.max_memory_allocated() of a repetition, the median of ten, all X in one
process. Up to the spring of 2026 a benchmark made the module of each provider before it measured one of them, so that
the others' parameters are on the card too: beside().
"""
import gc
import json
import statistics
import sys

import torch
from torch import nn

CARD = "cuda"


def beside(*shapes, dtype=torch.float32):
    """The parameters of a module that is made and not used."""
    return [torch.zeros(shape, dtype=dtype, device=CARD) for shape in shapes]


class RootMeanSquare(nn.Module):
    """Llama's norm: 32-bit inside, the input's type outside; with a residual it is added first and returned."""

    def __init__(self, size, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, hidden, residual=None):
        kind = hidden.dtype
        hidden = hidden.to(torch.float32)
        if residual is not None:
            residual = residual.to(torch.float32)
            hidden = hidden + residual
            residual = hidden
        variance = hidden.pow(2).mean(-1, keepdim=True)
        hidden = hidden * torch.rsqrt(variance + self.eps)
        normed = self.weight * hidden.to(kind)
        return normed if residual is None else (normed, residual.to(kind))


class Gated(nn.Module):
    """The feed-forward block of Llama: down(act(gate(x)) * up(x))."""

    def __init__(self, size, inner, act):
        super().__init__()
        self.gate = nn.Linear(size, inner, bias=False)
        self.up = nn.Linear(size, inner, bias=False)
        self.down = nn.Linear(inner, size, bias=False)
        self.act = {"silu": nn.SiLU(), "gelu_pytorch_tanh": nn.GELU(approximate="tanh")}[act]

    def forward(self, x):
        return self.down(self.act(self.gate(x)) * self.up(x))


def normed(layer, shape, dtype):
    """A forward and a backward pass of a norm, whose gradients stay."""
    x = torch.randn(shape, dtype=dtype, device=CARD)
    dy = torch.randn_like(x)
    x.requires_grad_(True)

    def full():
        y = layer(x)
        y.backward(dy, retain_graph=True)

    return full


def by_mode(mode, forward, x, gradient):
    """One of the three that a benchmark of a layer measures."""
    if mode == "forward":
        return forward
    if mode == "backward":
        dy = gradient(x)
        y = forward()
        return lambda: y.backward(dy, retain_graph=True)

    def full():
        y = forward()
        y.backward(gradient(y), retain_graph=True)

    return full


def cross_entropy(size, c, mode):
    loss = nn.CrossEntropyLoss()
    rows = c["B"] * c["T"]
    logits = torch.randn(rows, size, requires_grad=True, device=CARD)
    target = torch.randint(size, (rows, 1), device=CARD).squeeze(1)
    return lambda: loss(logits, target).backward()


class Scattered(torch.autograd.Function):
    """A look-up as Liger's kernels do it: its backward pass fills the gradient where it lies."""

    @staticmethod
    def forward(ctx, table, ids):
        ctx.save_for_backward(ids.view(-1), table)
        out = torch.empty(ids.numel(), table.shape[1], dtype=table.dtype, device=CARD)
        return out.view(*ids.shape, -1)

    @staticmethod
    def backward(ctx, gradient):
        return torch.zeros_like(ctx.saved_tensors[1]), None


def embedding(size, c, mode, provider="eager"):
    table = nn.Embedding(size, c["D"], _weight=torch.empty(size, c["D"])).to(CARD).to(c["dtype"])
    other = nn.Parameter(torch.empty(size, c["D"]).to(CARD).to(c["dtype"]))
    compiled = torch.compile(table, backend="aot_eager")  # at its first call; what it keeps alive is Inductor's too
    ids = torch.randint(0, size, (c["B"], c["T"]), device=CARD)
    look_up = {"liger": lambda: Scattered.apply(other, ids), "eager": lambda: table(ids), "compiled": lambda: compiled(ids)}[provider]

    def full(other=other, compiled=compiled):
        out = look_up()
        out.backward(torch.randn_like(out))

    return look_up if mode == "forward" else full


def layer_norm(size, c, mode):
    other = beside(size, size)
    once = normed(nn.LayerNorm(size, eps=c["eps"]).to(CARD), (c["M"], size), c["dtype"])
    return lambda other=other: once()


def group_norm(size, c, mode):
    # Every mode of its memory benchmark runs both passes.
    other = beside(size, size)
    layer = nn.GroupNorm(num_groups=size // c["channels_per_group"], num_channels=size, eps=c["eps"]).to(CARD)
    once = normed(layer, (c["M"], size, c["H"]), c["dtype"])
    return lambda other=other: once()


def rms_norm(size, c, mode):
    other = beside(size)
    once = normed(RootMeanSquare(size, c["eps"]).to(CARD), (c["M"], size), c["dtype"])
    return lambda other=other: once()


def fused_add_rms_norm(size, c, mode):
    # Beside it: the fused one, and one of two weights.
    other = beside(size, size, size)
    layer = RootMeanSquare(size, c["eps"]).to(CARD)
    x = torch.randn(c["M"], size, dtype=c["dtype"], device=CARD)
    residual = torch.randn(c["M"], size, dtype=c["dtype"], device=CARD)
    dy = torch.randn_like(x)
    ds = torch.randn_like(residual)
    x.requires_grad_(True)
    residual.requires_grad_(True)

    def full(other=other):
        y, s = layer(x, residual)
        torch.autograd.backward((y, s), (dy, ds))

    return full


def megatron_rms_norm(size, c, mode):
    layer = nn.RMSNorm(size, eps=1e-6).to(CARD).to(torch.bfloat16)
    x = torch.randn(c["S"], c["B"], size, device=CARD, dtype=torch.bfloat16, requires_grad=True)

    def full():
        y = layer(x)
        y.sum().backward()  # y is held during the backward pass

    return full


def gated(size, c, mode):
    """geglu and swiglu differ in the activation alone."""
    batch = c["bsz"] if "bsz" in c else c["B"]
    x = torch.randn(batch, size, c["hidden_size"], device=CARD, dtype=c["dtype"], requires_grad=True)
    layer = Gated(c["hidden_size"], c["intermediate_size"], c["hidden_act"]).to(CARD).to(c["dtype"])
    layer(x).backward(x)  # the benchmark of speed came before; cuBLAS has a workspace for each thread
    layer.zero_grad()
    x.grad = None
    return by_mode(mode, lambda: layer(x), x, torch.randn_like)


def softmax(size, c, mode):
    # M is in the configuration, but the input has N numbers.
    layer = nn.Softmax(dim=-1)
    x = torch.randn(size, device=CARD, dtype=c["dtype"], requires_grad=True)
    return by_mode(mode, lambda: layer(x), x, torch.ones_like)


def fused_linear_cross_entropy(rows, c, mode):
    head = nn.Linear(c["H"], c["V"], bias=False, dtype=c["dtype"]).to(CARD)
    other = beside((c["V"], c["H"]), dtype=c["dtype"])
    loss = nn.CrossEntropyLoss(ignore_index=-100, reduction="mean")
    x = torch.randn(rows, c["H"], requires_grad=True, dtype=c["dtype"], device=CARD)
    target = torch.randint(c["V"], (rows, 1), dtype=torch.long, device=CARD).squeeze(1)

    def full(other=other):
        loss(head(x), target).backward()  # the logits are not

    return full


KERNELS = {
    "cross_entropy": cross_entropy,
    "embedding": embedding,
    "fused_add_rms_norm": fused_add_rms_norm,
    "fused_linear_cross_entropy": fused_linear_cross_entropy,
    "geglu": gated,
    "group_norm": group_norm,
    "layer_norm": layer_norm,
    "megatron_rms_norm": megatron_rms_norm,
    "rms_norm": rms_norm,
    "softmax": softmax,
    "swiglu": gated,
}


def benchmark_of_speed(once):
    """The requests of triton.testing.do_bench. How often it repeats hangs on the card's clock (13 to 2,500 times, by its
    published speeds); what is live and cached in the end does not: 10 to 1,000 repetitions give the same figures."""
    once()
    flushed = torch.empty(64_000_000, dtype=torch.int, device=CARD)
    for _ in range(20):
        once()
    del flushed


def before_embedding(config, sizes):
    """What the benchmark did until it measured this configuration. Tables that were compiled, and their gradients, are
    in circles of references and stay until Python's collector runs. It runs where objects are made, so while something is
    compiled; which compilation it was is in no script. The published figures leave one: the first of the second
    configuration, since all tables compiled before it are gone and all later ones are there."""
    bert = {"B": 32, "T": 512, "D": 768, "dtype": torch.float32}
    llama = {"B": 8, "T": 2048, "D": 4096, "dtype": torch.float32}
    gc.disable()
    collected = (llama["D"], "forward", "compiled", sizes[0])
    for c in bert, llama:
        for mode in "forward", "full":
            for provider in "liger", "eager", "compiled":
                for size in sizes:
                    once = embedding(size, c, mode, provider)
                    if (c["D"], mode, provider, size) == collected:
                        gc.collect()
                    benchmark_of_speed(once)
                    del once
    measured = [(c, provider) for c in (bert, llama) for provider in ("liger", "eager", "compiled")]
    for c, provider in measured[: measured.index((config, "eager"))]:
        for size in sizes:
            median_peak(embedding(size, c, "full", provider))


BEFORE = {"embedding": before_embedding}


def median_peak(once):
    peaks = []
    for _ in range(10):
        torch.cuda.reset_peak_memory_stats()
        once()
        peaks.append(torch.cuda.max_memory_allocated())
    return statistics.median_low(peaks)


def main(kernel, mode, config, sizes):
    config = json.loads(config)
    if "dtype" in config:
        config["dtype"] = getattr(torch, config["dtype"].split(".")[-1])
    sizes = [int(size) for size in sizes]
    if kernel in BEFORE:
        BEFORE[kernel](config, sizes)
    for size in sizes:
        print("peak", size, median_peak(KERNELS[kernel](size, config, mode)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:4], sys.argv[4:])
