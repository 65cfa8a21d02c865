"""Whole numbers and masks that the host wrote: what small operators make of them on the device is computed
on the host too and written beside the result, so that a length, a count or an index that a script
reads is the true one. What changes one in place without being understood makes it unknown."""
import ctypes
import functools

from . import counts, values

# The most bytes of a tensor that is looked at.
BYTES_MAX = 65536
OPERATORS = ("sum", "prod", "max", "min", "amax", "amin", "any", "all", "count_nonzero", "cumsum", "argmax", "argmin",
             "eq", "ne", "lt", "le", "gt", "ge", "logical_not", "logical_and", "logical_or", "clamp", "flip", "abs",
             "diff", "isin", "sort", "argsort", "bitwise_and", "bitwise_or", "bitwise_not", "add", "sub", "mul", "cat", "stack",
             "div", "floor_divide", "remainder", "ceil", "floor", "round", "minimum", "maximum", "cumprod", "bincount", "topk",
             "nonzero", "argwhere", "unique", "unique_consecutive", "where", "gather", "masked_select", "masked_fill", "roll",
             "tril", "triu", "repeat_interleave", "searchsorted")
METHODS = ("long", "int", "bool", "clone", "contiguous", "float", "mean", "__eq__", "__ne__", "__lt__", "__le__", "__gt__",
           "__ge__", "__and__", "__or__", "__xor__", "__invert__", "__add__", "__radd__", "__sub__", "__rsub__", "__mul__",
           "__rmul__", "__truediv__", "__floordiv__", "__mod__", "__neg__", "reshape", "repeat", "to")
CREATORS = ("zeros", "ones", "full", "arange", "zeros_like", "ones_like", "full_like", "eye", "tril_indices", "triu_indices")
NEW = ("new_zeros", "new_ones", "new_full")
IN_PLACE = ("__iadd__", "__isub__", "__imul__", "__itruediv__", "__ifloordiv__", "__imod__", "__ipow__", "__iand__", "__ior__",
            "__ixor__", "__ilshift__", "__irshift__", "__setitem__")  # and all methods whose name ends with _, but for:
NO_VALUES = {"resize_", "resize_as_", "resize_as_sparse_", "sparse_resize_", "sparse_resize_and_clear_", "set_", "detach_",
             "requires_grad_", "share_memory_", "squeeze_", "unsqueeze_", "t_", "transpose_", "swapaxes_", "swapdims_",
             "as_strided_", "rename_"}
DRAWN = {"random_", "uniform_", "bernoulli_"}  # by draws.py
WRITERS = ("scatter_", "fill_", "__setitem__")
# What becomes of masks whose elements indices set: as many as in all of them, or the same.
UNIONS = ("cat", "stack", "logical_or", "bitwise_or", "__or__")
COPIES = ("bool", "clone", "contiguous", "reshape", "to", "long", "int", "float")
SUMS = ("add", "sub", "__add__", "__radd__", "__sub__", "__rsub__")
RANDOM = {"normal_", "exponential_", "cauchy_", "log_normal_", "geometric_"}


def is_small(tensor):
    return tensor.numel() * tensor.element_size() <= BYTES_MAX


class Unknown(Exception):
    """A tensor among the arguments of which the host does not know every byte."""


NEVER = -1


def version_of(tensor):
    return None if tensor.is_inference() else tensor._version


class Known:
    def __init__(self, torch, run):
        self.torch = torch
        self.run = run
        self.watch = run.watch_of_values
        self.whole = {torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}
        self.plain = {torch.Tensor, torch.nn.Parameter}
        self.is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)
        self.write = values.software("frag_software_write")
        self.forget = values.software("frag_software_forget")
        self.is_inside = False

    def is_followed(self, tensor):
        """Whole numbers, and others whose bytes were written here and not changed since, with views of them."""
        if tensor.dtype in self.whole:
            return True
        written = tensor if hasattr(tensor, "_fraglab_known") else tensor._base
        return written is not None and getattr(written, "_fraglab_known", NEVER) == version_of(tensor)

    def is_watched(self, tensor):
        return type(tensor) in self.plain and tensor.is_cuda and is_small(tensor) and self.is_followed(tensor)

    def on_host(self, value):
        """An argument as it is on the host."""
        if isinstance(value, (tuple, list)):
            return type(value)(self.on_host(part) for part in value)
        if isinstance(value, self.torch.device):
            return self.torch.device("cpu")
        if not isinstance(value, self.torch.Tensor) or not value.is_cuda:
            return value
        if not self.is_watched(value):
            raise Unknown
        held = counts.on_host(self.torch, value)
        if held is None:
            if value.numel() > 0:
                raise Unknown
            return self.torch.empty(value.shape, dtype=value.dtype, device="cpu")
        return held

    def keep(self, result, held):
        """Notes what the bytes of a result on the device are."""
        if isinstance(result, tuple):
            for one, other in zip(result, held):
                self.keep(one, other)
        elif isinstance(result, self.torch.Tensor) and result.is_cuda and result.is_contiguous() and \
                result.shape == held.shape and result.dtype == held.dtype and result.numel() > 0 and is_small(result) and \
                counts.address_of(result) != 0:
            held = held.contiguous()
            self.write(result.data_ptr(), held.data_ptr(), held.numel() * held.element_size())
            if result.dtype not in self.whole:
                result._fraglab_known = version_of(result)

    def first_tensor(self, arguments):
        first = arguments[0] if arguments else None
        return first[0] if isinstance(first, (tuple, list)) and first else first

    def is_wanted(self, arguments):
        tensor = self.first_tensor(arguments)
        return type(tensor) in self.plain and not self.is_inside and not self.is_compiling() and self.is_watched(tensor)

    def is_watched_by_others(self):
        """A graph that is captured will see other values; a mode of the script would see what is done here."""
        return self.torch.cuda.is_current_stream_capturing() or self.torch._C._len_torch_dispatch_stack() > 0

    def held(self, function, arguments, named):
        """What the function gives on the host; None: not known."""
        if self.is_watched_by_others():
            return None
        self.is_inside = True
        try:
            with self.torch.no_grad():
                return function(*[self.on_host(value) for value in arguments],
                                **{name: self.on_host(value) for name, value in named.items()})
        except (Unknown, RuntimeError, TypeError, ValueError, IndexError):  # also under vmap, where nothing has an address
            return None
        finally:
            self.is_inside = False

    def number(self, value):
        """A number of the device as it is on the host; 0 where it is unknown."""
        if not isinstance(value, self.torch.Tensor) or value.dim() > 0 or value.dtype not in self.whole:
            return value
        try:
            return self.on_host(value)
        except Unknown:
            return self.torch.zeros((), dtype=value.dtype, device="cpu")

    def assumed(self, function, arguments, named):
        """A number that is unknown is 0, so that one more is 1; or what is known of the line."""
        number = arguments[0]
        if number.dim() > 0 or number.dtype is self.torch.bool or self.is_watched_by_others() or named:
            return None
        length = self.watch.length_at(values.caller_of(1))
        if length is not None:
            return self.torch.tensor(length, dtype=number.dtype, device="cpu")
        return self.held(function, [self.number(value) for value in arguments], {})

    def picked(self, source, index, result):
        """Elements that an unknown index picks from known ones: evenly from all of them."""
        if source.dim() != 1 or index.dim() != 1 or result.numel() == 0 or not is_small(result) or self.is_watched_by_others():
            return
        held = self.held(lambda host: host, (source,), {})
        if held is None:
            return
        steps = self.torch.arange(result.numel(), device="cpu") * held.numel() // result.numel()
        self.keep(result, held[steps])
        self.run.note_sentence("an index that only a GPU would know picks from numbers of the host: they are taken evenly")

    def wrap_picks(self, name, place):
        """A function of a tensor and an index."""
        function = getattr(self.torch.Tensor, name)

        @functools.wraps(function)
        def pick(*arguments, **named):
            if not self.is_wanted(arguments):
                return function(*arguments, **named)
            held = self.held(function, arguments, named)
            result = function(*arguments, **named)
            index = arguments[place] if len(arguments) > place else None
            if held is not None:
                self.keep(result, held)
            elif type(index) in self.plain and index.is_cuda and not named:
                self.picked(arguments[0], index, result)
            return result

        setattr(self.torch.Tensor, name, pick)

    def names_device(self, arguments, named):
        """to() with a device as a word or a number."""
        return any(isinstance(value, (int, str)) and not isinstance(value, bool) for value in (*arguments[1:], *named.values()))

    def wrap(self, owner, name):
        function = getattr(owner, name, None)
        if function is None:
            return

        @functools.wraps(function)
        def computed(*arguments, **named):
            if owner is self.torch and self.is_compiling():
                return function(*arguments, **named)
            if name in UNIONS + COPIES and not self.is_compiling() and \
                    getattr(self.first_tensor(arguments), "_fraglab_most", None) is not None:
                return self.unite(function, name, arguments, named)
            if "out" in named and not self.is_compiling():
                result = function(*arguments, **named)
                self.forget_all(named["out"])
                return result
            if not self.is_wanted(arguments) or (name == "to" and self.names_device(arguments, named)):
                return function(*arguments, **named)
            held = self.held(function, arguments, named)
            result = function(*arguments, **named)
            if held is None and name in SUMS:
                held = self.assumed(function, arguments, named)
            if held is not None:
                self.keep(result, held)
            return result

        setattr(owner, name, computed)

    def forget_all(self, results):
        for result in results if isinstance(results, (tuple, list)) else (results,):
            if type(result) in self.plain and result.is_cuda and counts.address_of(result) != 0:
                self.settle(result, None)

    def unite(self, function, name, arguments, named):
        parts = arguments[0] if isinstance(arguments[0], (tuple, list)) else arguments[:1 if name in COPIES else 2]
        most = [counts.most_of(part) for part in parts]
        result = function(*arguments, **named)
        counts.note_most(result, None if None in most else sum(most))
        return result

    def reached(self, name, tensor, arguments):
        """The most elements of a tensor that an index in place reaches; None: not known."""
        if name == "scatter_" and len(arguments) > 1:
            return arguments[1].numel()
        places = arguments[0] if isinstance(arguments[0], tuple) else arguments[:1]
        if name != "__setitem__" or not all(isinstance(place, int) or isinstance(place, self.torch.Tensor) and
                                            place.dtype in self.whole - {self.torch.bool, self.torch.uint8} for place in places):
            return None
        shapes = [place.shape for place in places if isinstance(place, self.torch.Tensor)]
        return self.torch.broadcast_shapes(*shapes).numel() * tensor.shape[len(places):].numel()

    def wrap_classes(self, owner, name, word):
        """A function that makes as many classes as the greatest number asks for, or what an argument says."""
        function = getattr(owner, name, None)
        if function is None:
            return

        @functools.wraps(function)
        def classed(*arguments, **named):
            given = named.get(word, -1)
            if not self.is_compiling() and self.is_wanted(arguments) and len(arguments) < 2 and (given < 0 or word == "minlength"):
                host = self.held(lambda numbers: numbers, arguments, {})
                if host is not None and host.numel() > 0:
                    named[word] = max(given, int(host.max()) + 1)
            return function(*arguments, **named)

        setattr(owner, name, classed)

    def wrap_in_place(self, name):
        function = getattr(self.torch.Tensor, name, None)
        if function is None:
            return

        @functools.wraps(function)
        def changed(tensor, *arguments, **named):
            if not self.is_compiling() and getattr(tensor, "_fraglab_most", None) is not None:
                most, more = counts.most_of(tensor), self.reached(name, tensor, arguments)
                result = change(tensor, *arguments, **named)
                counts.note_most(tensor, most + more if most is not None and more is not None else None)
                return result
            return change(tensor, *arguments, **named)

        def change(tensor, *arguments, **named):
            if not self.is_wanted((tensor,)) or self.torch._C._len_torch_dispatch_stack() > 0:
                return function(tensor, *arguments, **named)
            held = None
            if name not in RANDOM:
                def on_host(host, *others, **more):
                    function(host, *others, **more)
                    return host

                held = self.held(on_host, (tensor, *arguments), named)
            if held is None and name in WRITERS:
                held = self.overwritten(function, tensor, arguments, named)
            result = function(tensor, *arguments, **named)
            if held is None and name == "copy_" and self.is_plain_copy(tensor, *arguments[:1]):
                return result
            try:
                self.settle(tensor, held)
            except RuntimeError:
                pass
            return result

        setattr(self.torch.Tensor, name, changed)

    @staticmethod
    def is_plain_copy(tensor, source=None):
        """The software CUDA has copied what is known of the bytes."""
        return source is not None and tensor.dtype is source.dtype and tensor.shape == source.shape and tensor.is_contiguous() and source.is_contiguous()

    def overwritten(self, function, tensor, arguments, named):
        """An unknown tensor all of whose elements are set, as in the inverse of a permutation."""
        def change(*places):
            made = self.torch.zeros(tensor.shape, dtype=tensor.dtype, device="cpu")
            reached = self.torch.zeros(tensor.shape, dtype=self.torch.bool, device="cpu")
            function(made, *places)
            function(reached, *places[:-1], True)
            return made if reached.all() else None

        return self.held(change, arguments, {}) if not named else None

    def settle(self, tensor, held):
        if held is not None and tensor.is_contiguous():
            self.keep(tensor, held)
        elif tensor.numel() > 0:
            span = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
            self.forget(tensor.data_ptr(), span * tensor.element_size())

    def wrap_creator(self, owner, name):
        function = getattr(owner, name, None)
        if function is None:
            return

        @functools.wraps(function)
        def created(*arguments, **named):
            if self.is_compiling():
                return function(*arguments, **named)
            result = function(*arguments, **named)
            # Masks of attention, chances, counters: in whatever type.
            is_number = name.endswith(("ones", "full")) or name.endswith("zeros") and result.numel() == 1
            if type(result) is self.torch.Tensor and (is_number or result.dtype in self.whole) and not self.is_inside and \
                    result.is_cuda and is_small(result) and "out" not in named:
                held = self.held(function, self.shapes(arguments), {**named, "device": "cpu", "pin_memory": False})
                if held is not None:
                    self.keep(result, held)
            if "zeros" in name and type(result) is self.torch.Tensor and result.is_cuda and not self.is_inside and \
                    result.dtype in (self.torch.bool, self.torch.uint8):
                counts.note_most(result, 0)
            return result

        setattr(owner, name, created)

    def shapes(self, arguments):
        """zeros_like and others want a tensor for its shape and type alone."""
        return [self.torch.empty(value.shape, dtype=value.dtype, device="cpu")
                if isinstance(value, self.torch.Tensor) and value.is_cuda else value for value in arguments]


def keep_device_contexts():
    """`with torch.device("cuda")` knows PyTorch's own functions by identity: it has to list them before."""
    try:
        from torch.utils import _device

        _device._device_constructors()
    except (ImportError, AttributeError):
        pass


def install(torch, run):
    if not hasattr(torch, "int64"):
        return None  # a PyTorch of the tests, whose tensors have no type
    known = Known(torch, run)
    if known.write is None or known.forget is None:
        return None
    keep_device_contexts()
    known.write.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    known.forget.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    known.write.restype = known.forget.restype = None
    for owner in (torch, torch.Tensor):
        known.wrap_classes(owner, "bincount", "minlength")
    known.wrap_classes(torch.nn.functional, "one_hot", "num_classes")
    for name in OPERATORS:
        known.wrap(torch, name)
        known.wrap(torch.Tensor, name)
    for name in METHODS:
        known.wrap(torch.Tensor, name)
    known.wrap_picks("__getitem__", 1)
    known.wrap_picks("index_select", 2)
    methods = {name for name in dir(torch.Tensor) if name.endswith("_") and not name.startswith("_")}
    for name in (*IN_PLACE, *sorted(methods - NO_VALUES - DRAWN)):
        known.wrap_in_place(name)
    for name in CREATORS:
        known.wrap_creator(torch, name)
    for name in NEW:
        known.wrap_creator(torch.Tensor, name)
    return known
