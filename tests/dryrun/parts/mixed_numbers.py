"""Programs at random that change values by other ways than methods of tensors, beside the same on the CPU: captured graphs, operators called by
name, out=, inference mode, views of another type, other tensors over the same memory, transforms of functions. What is known has to be the same."""
import contextlib
import os
import random

import torch
from fraglab_dryrun import counts

METHODS = ("t.add_(1)", "t.mul_(2)", "t.fill_(3)", "t.zero_()", "t[:1] = 4", "t[1:] += 1", "t.copy_(u)", "t.view(-1)[1:2] = 7", "t.mT.neg_()", "t.clamp_(0, 9)")
NAMED = ("torch.ops.aten.add_(t, 1)", "torch.ops.aten.mul_.Tensor(t, u)", "torch.ops.aten.fill_(t, 5)", "torch.ops.aten.zero_(t)", "torch.ops.aten.copy_(t, u)",
         "torch.ops.aten.add.out(t, u, out=t)", "torch.ops.aten.index_fill_(t, 0, i, 6)", "torch.ops.aten.neg_(t.view(-1)[::2])", "torch._foreach_add_([t, v], 1)",
         "torch.ops.aten.clamp.out(u, 1, 4, out=t)", "torch.ops.aten.masked_fill_(t, t > 3, 0)", "torch.ops.aten._foreach_mul_([t, v], 2)", "torch.relu_(t)")
OUT = ("torch.add(u, 1, out=t)", "torch.special.multigammaln(f + 9, 1, out=f)", "torch.index_select(u, 0, i, out=s)", "torch.special.xlog1py(f, g, out=f)",
       "torch.nn.functional.hardtanh(f, 0, 3, inplace=True)", "torch._C._nn.hardtanh(g, 0, 2, out=f)", "torch.linalg.vector_norm(g, out=n)",
       "torch.special.round(g / 2, out=f)", "torch.polar(g, f, out=c)", "torch.addcmul(g, f, f, out=f)", "torch.neg(u, out=t)", "torch.max(t, 0, out=(m, k))")
TYPED = ("t.view(torch.int16)[..., 0] = 1", "t.view(torch.int16).add_(1)", "t.view(torch.uint8).zero_()", "t.view(torch.uint8)[..., ::8] = 9",
         "t.view(torch.int32)[..., ::2] += 3", "f.view(torch.int32).bitwise_and_(0x7fff0000)", "f.view(torch.int32)[2] = 0x40400000", "t.view(torch.int32).mul_(2)",
         "torch.ops.aten.add_(t.view(torch.int16), 1)")
SHARED = ("a = torch.from_dlpack(t); torch.ops.aten.add_(a, 1)", "torch.from_dlpack(t).mul_(2)", "a = torch.from_dlpack(t); a[0] = 3",
          "a = e(t); a.set_(t); torch.ops.aten.add_(a, 2)", "a = e(t); a.set_(t.untyped_storage(), 0, (3,), (2,)); a.fill_(8)", "t.data.add_(1)",
          "torch.ops.aten.add_(t.data, 1)", "torch.ops.aten.mul_(t.detach(), 2)", "a = alias(t); a.add_(1)", "a = alias(t); torch.ops.aten.add_(a, 3)",
          "a = e(t); a.data = t; torch.ops.aten.neg_(a)", "a = e(t); a.set_(u); a.add_(1)", "a = torch.from_dlpack(f); torch._foreach_add_([a], 1.0)",
          "torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(t)).zero_()")
MADE = ("r = torch.vmap(lambda x: x * 2 + 1)(t)", "r = torch.vmap(lambda x, y: (x > y).long())(t, u)", "r = torch.vmap(lambda x: x.sum())(t)",
        "r = torch.func.grad(lambda x: (x * x).sum())(f)", "r = torch.func.jacrev(lambda x: x * x)(f)", "r = torch.func.jacfwd(lambda x: x * 3)(f)",
        "r = torch.func.hessian(lambda x: (x ** 3).sum())(f)", "r = torch.func.vjp(lambda x: x * 2, f)[0]", "r = torch.func.jvp(lambda x: x * x, (f,), (g,))[1]",
        "r = torch.func.functionalize(lambda x: x.add(1).mul_(2))(t)", "r = torch.ops.aten.add(t, u)", "r = torch.ops.aten.cumsum(t, 0)", "r = t.view(torch.int32) + 1",
        "r = t.view(torch.uint8).sum()", "r = t + u", "r = (t > u).sum()", "r = t[t > 2].numel() + 0 * t", "r = torch.from_dlpack(t) + 1",
        "r = torch.vmap(torch.sum)(t.view(-1, 1))")
# What needs no copy from the host, which a capture cannot have.
GRAPHED = (*METHODS, *NAMED, *(text for text in TYPED if "= " not in text), "torch.clamp_(t, 1, 6)", "torch.neg(u, out=t)", "torch.add(u, 1, out=t)", "r = t + u",
           "r = t.clone()", "r = (t * 2 + u) - 1", "r = torch.zeros(3, dtype=torch.long, device=t.device) + 1", "r = t[i]", "torch.from_dlpack(t).mul_(2)")
ERRORS = (RuntimeError, TypeError, IndexError, BufferError, ValueError)


class Interface:
    def __init__(self, tensor):
        self.tensor = tensor
        self.__cuda_array_interface__ = tensor.__cuda_array_interface__


def alias(tensor):
    return torch.as_tensor(Interface(tensor), device="cuda") if tensor.is_cuda else torch.from_dlpack(tensor)


def begin(choice):
    whole = torch.tensor([choice.randint(-5, 20) for _ in range(6)]).view(choice.choice([(6, 1), (2, 3), (3, 2)]))
    return {"t": whole, "u": whole.flip(0) + 1, "v": whole * 0 + 2, "f": torch.tensor([1.0, 2, 3, 4]), "g": torch.tensor([2.0, 0, 5, -1]), "i": torch.tensor([1, 0]),
            "s": whole[:2] * 0, "n": torch.tensor(0.0), "c": torch.zeros(4, dtype=torch.complex64), "m": whole[0] * 0, "k": whole[0] * 0}


def compare(host, device, found):
    """Counts which tensors are right and unknown, and returns those that are wrong."""
    wrong = []
    for name in [name for name, value in host.items() if isinstance(value, torch.Tensor)]:
        mine, its = host[name].detach(), device[name].detach()
        read, held = its.clone().cpu(), counts.on_host(torch, its)
        is_right = held is not None and all(number.shape == mine.shape and torch.allclose(number, mine, equal_nan=True) for number in (read, held))
        found["unknown" if held is None else "right"] += held is None or is_right
        if held is not None and not is_right:
            wrong.append(name)
    return wrong


def step(texts, repeats, host, device, graphs, found):
    """One line, or a graph of several that is replayed so often. Returns the names of wrong tensors."""
    if repeats == 0:
        exec(texts[0], host)
        exec(texts[0], device)
        return compare(host, device, found)
    graphs.append(torch.cuda.CUDAGraph())
    with torch.cuda.graph(graphs[-1]):
        for text in texts:
            exec(text, device)
    made = device.pop("r", None)
    wrong = compare(host, device, found)  # nothing has happened yet
    for _ in range(repeats):
        graphs[-1].replay()
        for text in texts:
            exec(text, host)
    if made is not None:
        device["r"] = made
    return wrong or compare(host, device, found)


def differs(seed, found):
    """The steps to the one after which a tensor is not what it is on the CPU, and which; None: there is none."""
    choice, done, graphs = random.Random(seed), [], []
    around = torch.inference_mode if choice.random() < 0.4 else contextlib.nullcontext
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        pass  # what graphs share is not made in inference mode
    with around():
        host = {name: value.clone() for name, value in begin(choice).items()}
        device = {name: value.cuda() for name, value in host.items()}
        for names in (host, device):
            names.update(torch=torch, alias=alias, e=lambda tensor: tensor.new_empty(0))
        for _ in range(choice.randint(2, 7)):
            repeats = choice.choice([0, 0, 0, 0, 1, 2, 3])
            kinds = [GRAPHED] if repeats else [METHODS, NAMED, OUT, TYPED, SHARED, MADE]
            texts = [choice.choice(choice.choice(kinds)) for _ in range(choice.randint(1, 4) if repeats else 1)]
            trial = {name: value.detach().clone() if isinstance(value, torch.Tensor) else value for name, value in host.items()}
            try:
                for text in texts:
                    exec(text, trial)
            except ERRORS:
                continue
            done.append((texts, repeats))
            wrong = step(texts, repeats, host, device, graphs, found)
            if wrong:
                return done, wrong
            for name in ("a", "r"):
                host.pop(name, None), device.pop(name, None)
    return None


found = {"right": 0, "unknown": 0}
first, count = int(os.environ.get("FIRST", 0)), int(os.environ.get("COUNT", 200))
wrong = {seed: steps for seed in range(first, first + count) if (steps := differs(seed, found)) is not None}
print(count, "programs,", len(wrong), "wrong;", found)
assert not wrong, wrong
assert found["right"] > 50 * found["unknown"]
print("done")
# expect: fits=true
