"""Programs at random on small tensors that the host wrote, beside the same on the CPU: views, changes in place, what is made of them."""
import random

import torch

PIECES = ("t.clone()", "t.contiguous()", "t.long()", "t.int()", "t.float()", "t.bool()", "t.flatten()", "t.ravel()", "t.reshape(-1)", "t.sum()", "t.sum(-1)",
          "t.amax(0)", "t.cumsum(0)", "t.unsqueeze(0)", "t.transpose(0, -1)", "t.flip(0)", "t.sort(-1)[0]", "t.nonzero()", "t.unique()", "t != 3", "t > 2",
          "t + 1", "t * 2", "t % 3", "t.expand(2, *t.shape) + 0", "t.roll(1, 0)", "t.tile(2)", "torch.where(t > 3, t, 0 * t)", "torch.stack([t, t])",
          "torch.zeros_like(t, dtype=torch.int64)", "t.new_ones(t.shape)", "t.chunk(2, 0)[0]", "t.unbind(0)[0]", "t.squeeze()", "t.diff(dim=0)", "t.argmax(-1)",
          "t.clamp(0, 4)", "t.narrow(0, 0, 1)", "t[t > 2]", "torch.nn.functional.pad(t, (1, 1))", "t.gather(0, torch.zeros_like(t, dtype=torch.int64))",
          "torch.fliplr(t)", "t.atan()", "torch.zeros(t.shape, device=t.device).masked_fill(t > 3, 2)", "t.reshape(2, -1).to_sparse_csr().to_dense()",
          "t.reshape(2, -1).to_sparse_csc().ccol_indices()", "torch.cumsum(t, 0, out=t.new_empty(t.shape).long())",
          "torch.view_as_complex(torch.stack([t, t], -1).double()).conj().imag + 0", "torch.fft.fftshift(t)", "t[place]", "t[place].clone()")
PAIRS = ("t + u", "t * u", "t == u", "torch.maximum(t, u)", "torch.where(t > u, t, u)", "torch.cat([t, u])", "torch.isin(t, u)",
         "torch.bucketize(t, u.flatten().sort()[0])", "t[u.long().flatten() % t.shape[0]]", "torch.outer(t.flatten(), u.flatten())", "t.masked_fill(u.bool(), 1)")
CHANGES = ("t.fill_(3)", "t.zero_()", "t.add_(1)", "t.mul_(2)", "t[place] = 4", "t[place] += 1", "t[t > 3] = 0", "t.masked_fill_(t == 2, -1)", "t.clamp_(0, 9)",
           "t[place].fill_(2)", "t[place].zero_()", "t.neg_()", "t[..., 0] = 1", "t[0].copy_(t[-1])", "t.T[0] = 2", "t.view(-1)[0] = 8",
           "t.logical_not_()", "torch.mul(t, 2, out=t)", "torch.add(t, u, out=t)", "t.swapaxes_(0, -1)", "t.unsqueeze_(0)")


def place_in(shape, choice):
    kinds = [lambda size: choice.randrange(size), lambda size: slice(choice.randrange(size), size), lambda size: slice(None, None, choice.randint(1, 3)),
             lambda size: slice(None, -1)]
    return tuple(choice.choice(kinds)(size) for size in shape[:choice.randint(1, len(shape))])


def done(text, t, u, place):
    """What the text makes; None: it changes t."""
    names = {"t": t, "u": u, "place": place, "torch": torch}
    if text in CHANGES:
        exec(text, names)
        return None
    return eval(text, names)


def numbers(tensor):
    return tuple(tensor.shape), str(tensor.dtype), [round(float(number), 4) for number in tensor.flatten().tolist()]


def made(choice):
    tensor = torch.tensor([choice.randint(-5, 20) for _ in range(24)]).view(choice.choice([(24,), (4, 6), (2, 3, 4), (6, 1, 4)]))
    return choice.choice([tensor, tensor, tensor > 5, tensor.float(), tensor.int()])


def differs(seed):
    """The step after which a tensor is not what it is on the CPU; None: there is none."""
    choice = random.Random(seed)
    host = [made(choice) for _ in range(3)]
    device = [tensor.cuda() for tensor in host]
    for _ in range(choice.randint(3, 12)):
        text = choice.choice(choice.choice([PIECES, PAIRS, CHANGES]))
        at, other = choice.randrange(len(host)), choice.randrange(len(host))
        if host[at].numel() == 0 or host[at].dim() == 0:
            continue
        place = place_in(host[at].shape, choice)
        try:
            result = done(text, host[at], host[other], place)
        except (RuntimeError, IndexError, TypeError):
            return None  # half of a change may be done
        other = done(text, device[at], device[other], place)
        if result is not None and result.numel() < 1000:  # what is larger than 64 KiB is not followed
            host.append(result)
            device.append(other)
        if any(numbers(mine) != numbers(its) for mine, its in zip(host, device)):
            return text
    return None


wrong = {seed: text for seed in range(800) if (text := differs(seed)) is not None}
assert not wrong, wrong
print("done")
# expect: fits=true
