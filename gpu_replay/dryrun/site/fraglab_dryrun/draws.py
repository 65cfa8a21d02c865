"""Random numbers that small tensors of the device are filled with: the seed and how much was drawn
before stand on the host, so they are the card's own (curand's Philox generator, in the layout of
ATen/native/cuda/DistributionTemplates.h). What comes of logarithms or sums may differ in its last bits."""
import ctypes
import functools
import math
import os

from . import counts, known, values

BLOCK = 256  # threads
WORD = 2.0 ** -32


class Asked(ctypes.Structure):
    """frag_software_draws of gpu_replay/software/software_cuda.h."""

    _fields_ = [("seed", ctypes.c_uint64), ("offset", ctypes.c_uint64), ("thread_count", ctypes.c_uint64),
                ("range", ctypes.c_uint64), ("is_wide", ctypes.c_bool)]


class Stream:
    """What a generator had drawn before a function; how much that function drew is taken back from what it has drawn now."""

    def __init__(self, torch, draw, device, generator):
        self.torch = torch
        self.call = draw
        self.seed, self.offset = (generator or torch.cuda.default_generators[device.index]).get_state().view(torch.int64).tolist()
        card = torch.cuda.get_device_properties(device)
        self.threads_max = card.multi_processor_count * (card.max_threads_per_multi_processor // BLOCK) * BLOCK

    def back(self, count):
        self.offset -= (count + 3) // 4 * 4

    def words(self, count, threads, span=0, is_wide=False):
        found = self.torch.empty(count, dtype=self.torch.int64, device="cpu")
        self.call(ctypes.byref(Asked(self.seed % 2 ** 64, self.offset, threads, span, is_wide)), found.data_ptr(), count)
        return found

    def elements(self, count, span=0, is_wide=False):
        """A number for each element, as the kernels of distributions hand them out."""
        threads = min((count + BLOCK - 1) // BLOCK * BLOCK, self.threads_max)
        self.back(((count - 1) // (threads * (2 if is_wide else 4)) + 1) * 4)
        return self.words(count, threads, span, is_wide)

    def uniform(self, words):
        """Above 0, at most 1."""
        return words.float() * WORD + WORD / 2


class Draws:
    def __init__(self, torch, follow, draw):
        self.torch = torch
        self.known = follow
        self.draw = draw
        self.floats = {torch.float32, torch.float16, torch.bfloat16}

    @functools.cached_property
    def wide_from(self):
        """The least range whose numbers are drawn from 64 bits for every type; releases before 2.7: None."""
        path = os.path.join(os.path.dirname(self.torch.__file__), "include", "ATen", "native", "cuda", "DistributionTemplates.h")
        try:
            with open(path, encoding="utf-8") as header:
                return 1 << 28 if "1ULL << 28" in header.read() else None
        except OSError:
            return 1 << 28

    def numbers(self, stream, count, dtype, low, high):
        """From low on, below high."""
        long = dtype in (self.torch.int64, self.torch.float64, self.torch.float32, self.torch.bfloat16)
        is_wide = high - low >= (self.wide_from or (1 << 32 if long else 1 << 64))
        return stream.elements(count, high - low, is_wide) + low

    # ---- by function: what is in the result

    def integers(self, stream, result, arguments, named):
        bounds = [value for value in arguments if isinstance(value, int)][:2]
        low, high = bounds if len(bounds) == 2 else [0, *bounds, None][:2]
        low, high = named.get("low", low), named.get("high", high)
        return self.numbers(stream, result.numel(), result.dtype, low, high).to(result.dtype)

    def random_(self, stream, result, arguments, named):
        low, high = [0, *arguments][-2:] if arguments else (named.get("from", 0), named.get("to"))
        if high is not None:
            return self.numbers(stream, result.numel(), result.dtype, low, high).to(result.dtype)
        if result.dtype not in self.known.whole:
            return None
        span = 2 if result.dtype is self.torch.bool else self.torch.iinfo(result.dtype).max + 1
        return stream.elements(result.numel(), span, result.dtype is self.torch.int64).to(result.dtype)

    def uniform(self, stream, result, arguments, named):
        return self.between(stream, result, 0, 1)

    def uniform_(self, stream, result, arguments, named):
        low, high = (*arguments, 0, 1)[:2] if len(arguments) != 1 else (arguments[0], 1)
        return self.between(stream, result, named.get("from", low), named.get("to", high))

    def between(self, stream, result, low, high):
        if result.dtype not in self.floats or result.requires_grad:
            return None
        low, high = self.torch.tensor([low, high], dtype=result.dtype, device="cpu").tolist()
        found = (stream.uniform(stream.elements(result.numel())).double() * (high - low) + low).to(result.dtype)
        return found.masked_fill_(found == high, low)

    def permutation(self, stream, result, arguments, named):
        """Sorted by keys of so many bits that equal ones are rare; these are put in order once more."""
        count = result.numel()
        bits = math.ceil(math.log2(count - (6 * count * count + 1) / (math.log(0.9) * 12)))
        if bits > 31:
            return None
        stream.back(count)
        again = stream.offset
        keys = self.numbers(stream, count, self.torch.int32, -2 ** 31, 2 ** 31 - 1) & ((1 << bits) - 1)
        keys, order = keys.sort(stable=True)
        order = order.tolist()
        stream.offset = again
        for begin in (keys[1:] == keys[:-1]).nonzero().flatten().tolist():
            if begin > 0 and keys[begin - 1] == keys[begin]:
                continue
            size = int((keys == keys[begin]).sum())
            if size > 5:
                return None
            words = stream.words(4 * (begin + 1), 0)[-4:].tolist()
            for left in range(size - 1, 0, -1):
                other = begin + words.pop(0) % (left + 1)
                order[begin + left], order[other] = order[other], order[begin + left]
        return self.torch.tensor(order, dtype=result.dtype, device="cpu")

    def trials(self, stream, result, arguments, named):
        return self.bernoulli_(stream, result, [*arguments, *[value for name, value in named.items() if name in ("input", "p")]][-1:], {})

    def bernoulli_(self, stream, result, arguments, named):
        chance = named.get("p", arguments[0] if arguments else 0.5)
        if not isinstance(chance, self.torch.Tensor):
            return (stream.uniform(stream.elements(result.numel())).double() < chance).to(result.dtype)
        chance = self.known.on_host(chance)
        stream.back(10)
        found = stream.uniform(stream.words(result.numel(), 0))
        return (found.view(result.shape) <= chance.float()).to(result.dtype)

    def multinomial(self, stream, result, arguments, named):
        weights, samples, *rest = (*arguments, *[named[name] for name in ("input", "num_samples") if name in named])
        weights = counts.on_host(self.torch, weights)
        if weights is None:
            return None
        weights = weights.float()
        rows = weights.view(-1, weights.shape[-1])
        if not (rest[0] if rest else named.get("replacement", False)) or samples == 1:
            drawn = stream.uniform(stream.elements(weights.numel())).view(rows.shape)
            shares = rows / -self.torch.where(drawn >= 1 - 2 ** -24, -(2.0 ** -24), drawn.log())
            return shares.topk(samples).indices.view(result.shape)
        stream.back(4)
        threads = (samples + 127) // 128 * 128  # for each row
        drawn = stream.uniform(stream.words(4 * threads * len(rows), 0)[::4]).view(len(rows), threads)[:, :samples]
        sums = (rows / rows.sum(1, keepdim=True)).cumsum(1)
        found = self.torch.searchsorted(sums, drawn.contiguous()).clamp_max(rows.shape[1] - 1)
        return found.view(result.shape)

    # ---- around the functions

    def held(self, find, result, arguments, named):
        if self.known.is_watched_by_others() or counts.address_of(result) == 0:
            return None
        self.known.is_inside = True
        try:
            with self.torch.no_grad():
                stream = Stream(self.torch, self.draw, result.device, named.get("generator"))
                found = find(stream, result, arguments, named)
                return found.view(result.shape) if found is not None else None
        except (known.Unknown, RuntimeError, TypeError, ValueError, IndexError):
            return None
        finally:
            self.known.is_inside = False

    def wrap(self, owner, name, find):
        function = getattr(owner, name, None)
        if function is None:
            return
        is_in_place = name.endswith("_")

        @functools.wraps(function)
        def drawn(*arguments, **named):
            if self.known.is_compiling():
                return function(*arguments, **named)
            result = function(*arguments, **named)
            if type(result) is not self.torch.Tensor or not result.is_cuda or result.numel() == 0:
                return result
            if self.known.is_inside:
                if self.known.captured is not None:
                    self.known.captured.note_held(result, None)
                return result
            held = None
            if known.is_small(result) and result.is_contiguous() and "out" not in named:
                held = self.held(find, result, arguments[1:] if is_in_place else arguments, named)
            if held is not None:
                self.known.keep(result, held)
            elif is_in_place or "out" in named:
                self.known.settle(result, None)
            if is_in_place:
                counts.note_version(result)
            return result

        setattr(owner, name, drawn)


def install(torch, follow):
    draw = values.software("frag_software_draw")
    if draw is None or follow is None:
        return
    draw.argtypes = [ctypes.POINTER(Asked), ctypes.c_void_p, ctypes.c_size_t]
    draw.restype = None
    draws = Draws(torch, follow, draw)
    for name, find in (("randint", draws.integers), ("randint_like", draws.integers), ("rand", draws.uniform),
                       ("rand_like", draws.uniform), ("randperm", draws.permutation), ("bernoulli", draws.trials),
                       ("multinomial", draws.multinomial)):
        for owner in (torch, torch.Tensor):
            draws.wrap(owner, name, find)
    for name in ("random_", "uniform_", "bernoulli_"):
        draws.wrap(torch.Tensor, name, getattr(draws, name))
