"""Whole numbers and masks that the host wrote: what small operators make of them on the device is computed
on the host too and written beside the result, so that a length, a count or an index that a script
reads is the true one. What changes one in place without being understood makes it unknown."""
import ctypes
import functools
import importlib

from . import counts, further, ranges, ranks, values

# The most bytes of a tensor that is looked at (--follow).
bytes_max = 65536
OPERATORS = ("sum", "prod", "max", "min", "amax", "amin", "any", "all", "count_nonzero", "cumsum", "argmax", "argmin",
             "eq", "ne", "lt", "le", "gt", "ge", "logical_not", "logical_and", "logical_or", "clamp", "flip", "abs",
             "diff", "isin", "sort", "argsort", "bitwise_and", "bitwise_or", "bitwise_not", "add", "sub", "mul", "cat", "stack",
             "div", "floor_divide", "remainder", "ceil", "floor", "round", "minimum", "maximum", "cumprod", "bincount", "topk",
             "nonzero", "argwhere", "flatten", "ravel", "unique", "unique_consecutive", "where", "gather", "masked_select", "masked_fill", "roll",
             "tril", "triu", "repeat_interleave", "searchsorted", "isnan", "isinf", "isfinite", "isposinf", "isneginf", "nan_to_num",
             "nansum", "nanmean", "nanmedian", "nanquantile", "quantile", "median", "mode", "kthvalue", "std", "var", "norm", "histc",
             "bucketize", "aminmax", "cummax", "cummin", "sign", "neg", "square", "sqrt", "rsqrt", "reciprocal", "pow", "exp", "log",
             "log2", "trunc", "frac", "fmod", "lerp", "clip", "clamp_min", "clamp_max", "gcd", "lcm", "bitwise_xor",
             "bitwise_left_shift", "bitwise_right_shift", "logical_xor", "take", "take_along_dim", "diag", "trace", "kron", "outer",
             "block_diag", "cartesian_prod", "tile", "hstack", "vstack", "concat", "rot90", "unravel_index", "diag_embed",
             "greater", "greater_equal", "less", "less_equal", "not_equal", "multiply", "subtract", "divide", "true_divide", "negative",
             "absolute", "log1p", "expm1", "exp2", "log10", "sin", "cos", "atan2", "hypot", "logsumexp", "dist", "cdist", "float_power",
             "acos", "asin", "atan", "arccos", "arcsin", "arctan", "arctan2", "tan", "cosh", "sinh", "fliplr", "flipud", "fmax", "fmin",
             "cross", "diagflat", "deg2rad", "rad2deg", "sgn", "narrow_copy", "addcmul", "addcdiv", "ldexp", "matrix_power", "xlogy",
             "sum_to_size", "fix", "inverse", "det", "heaviside", "dstack", "column_stack", "var_mean", "std_mean", "cov", "logaddexp", "nextafter", "copysign", "signbit")
# These copy a tensor whole and then change the copy.
CHANGED_COPIES = ("sort", "msort", "argsort", "cumsum", "cumprod", "scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy",
                  "index_fill", "index_put", "index_reduce", "masked_fill", "masked_scatter", "put", "select_scatter", "slice_scatter",
                  "diagonal_scatter", "addmv", "addmm", "addr", "baddbmm", "addbmm", "renorm", "as_strided_scatter", "cholesky_inverse", "triangular_solve")
METHODS = ("long", "int", "bool", "clone", "contiguous", "float", "mean", "__eq__", "__ne__", "__lt__", "__le__", "__gt__",
           "__ge__", "__and__", "__or__", "__xor__", "__invert__", "__add__", "__radd__", "__sub__", "__rsub__", "__mul__",
           "__rmul__", "__truediv__", "__floordiv__", "__mod__", "__neg__", "__pow__", "__rpow__", "__rtruediv__", "__rfloordiv__",
           "__rmod__", "__lshift__", "__rshift__", "__abs__", "double", "half", "byte", "short", "char", "bfloat16", "type", "type_as", "__rand__", "__ror__",
           "__rxor__", "reshape", "repeat", "to")
CREATORS = ("zeros", "ones", "full", "arange", "zeros_like", "ones_like", "full_like", "eye", "tril_indices", "triu_indices",
            "linspace", "logspace")
NEW = ("new_zeros", "new_ones", "new_full")
IN_PLACE = ("__iadd__", "__isub__", "__imul__", "__itruediv__", "__ifloordiv__", "__imod__", "__ipow__", "__iand__", "__ior__",
            "__ixor__", "__ilshift__", "__irshift__", "__setitem__")  # and all methods whose name ends with _, but for:
NO_VALUES = {"resize_", "resize_as_", "resize_as_sparse_", "sparse_resize_", "sparse_resize_and_clear_", "set_", "detach_",
             "requires_grad_", "share_memory_", "squeeze_", "unsqueeze_", "t_", "transpose_", "swapaxes_", "swapdims_",
             "as_strided_", "rename_"}
DRAWN = {"random_", "uniform_", "bernoulli_"}  # by draws.py
SETTERS = ("fill_", "zero_", "copy_")
WRITERS = (*SETTERS, "scatter_", "__setitem__")
# Of masks, counts and neighbours; products with weights are what a network makes of its input.
PRODUCTS = ("einsum", "matmul", "__matmul__", "mm", "bmm", "mv", "dot", "inner", "tensordot")
# These begin with zeros, in whatever type, that nothing has changed since: sums of equal places, in the end, or masks of attention.
COUNTED = ("scatter_add", "index_add", "index_put", "scatter", "scatter_reduce", "index_fill", "scatter_add_", "index_add_", "index_put_",
           "scatter_", "scatter_reduce_", "index_fill_", "__setitem__", "masked_fill", "masked_fill_", "cat", "stack", "fill_diagonal_")
# What becomes of masks whose elements indices set: as many as in all of them, or the same.
UNIONS = ("cat", "stack", "logical_or", "bitwise_or", "__or__")
COPIES = ("bool", "clone", "contiguous", "reshape", "to", "long", "int", "float")
SUMS = ("add", "sub", "__add__", "__radd__", "__sub__", "__rsub__")
RANDOM = {"normal_", "exponential_", "cauchy_", "log_normal_", "geometric_"}

RUNS_MAX = 4096  # pieces of a view with gaps
FEW = 16


def is_small(tensor):
    return tensor.numel() * tensor.element_size() <= bytes_max


class Unknown(Exception):
    """A tensor among the arguments of which the host does not know every byte."""


class Known:
    def __init__(self, torch, run):
        self.torch = torch
        self.run = run
        self.watch = run.watch_of_values
        self.whole = {torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}
        self.plain = {torch.Tensor, torch.nn.Parameter}
        self.is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)
        self.is_capturing = getattr(torch._C, "_cuda_isCurrentStreamCapturing", torch.cuda.is_current_stream_capturing)
        self.mode_count = torch._C._len_torch_dispatch_stack
        self.write = values.software("frag_software_write")
        self.forget = values.software("frag_software_forget")
        self.read = values.software("frag_software_read")
        self.byte = ctypes.create_string_buffer(1)
        self.first_byte = ctypes.addressof(self.byte)
        self.seen = b""  # where bytes are read to be counted
        self.strided, self.sparse = torch.strided, torch.sparse_coo
        self.compressed = {torch.sparse_csr: ("crow_indices", "col_indices"), torch.sparse_bsr: ("crow_indices", "col_indices"),
                           torch.sparse_csc: ("ccol_indices", "row_indices"), torch.sparse_bsc: ("ccol_indices", "row_indices")}
        self.is_inside = False
        self.is_partial = False  # of some argument on the host the values were not known, but the places of a sparse one were
        self.captured = None  # calls while a graph is captured, when is_inside is set (further.py)
        self.written = None  # storages that were changed while a custom operator runs
        self.further = further.Further(self)
        self.ranges = ranges.Ranges(torch, self.whole, lambda: bytes_max, self.is_watched_by_others)
        self.functorch = getattr(torch._C, "_functorch", None)
        self.is_batched = getattr(self.functorch, "is_batchedtensor", lambda tensor: False)

    def is_followed(self, tensor):
        """Whole numbers, and others whose first byte is known: most are not, and need no look at the rest."""
        if tensor.dtype in self.whole:
            return True
        try:
            address = tensor.data_ptr()
        except RuntimeError:  # under torch.func
            while self.is_batched(tensor):
                tensor = self.functorch.get_unwrapped(tensor)
            address = counts.address_of(tensor)
        return address != 0 and self.read(address, self.first_byte, 1) == 1

    def is_plain(self, tensor):
        return type(tensor) in self.plain and tensor.is_cuda and tensor.layout is self.torch.strided

    def is_trained(self, arguments):
        tensors = [value for part in arguments for value in (part if isinstance(part, (tuple, list)) else (part,))]
        return any(isinstance(value, self.torch.Tensor) and value.requires_grad for value in tensors)

    def is_sparse(self, tensor):
        return type(tensor) in self.plain and tensor.is_cuda and tensor.layout is self.torch.sparse_coo and tensor._nnz() > 0

    def is_watched(self, tensor):
        """Asked of every operator: in the order that ends soonest."""
        if type(tensor) not in self.plain or not tensor.is_cuda:
            return False
        layout = tensor.layout
        if layout is not self.strided:
            return layout is self.sparse and tensor._nnz() > 0 or layout in self.compressed
        return tensor.nbytes <= bytes_max and self.is_followed(tensor)

    def on_host(self, value):
        """An argument as it is on the host."""
        if isinstance(value, (tuple, list)):
            return type(value)(self.on_host(part) for part in value)
        if isinstance(value, self.torch.device):
            return self.torch.device("cpu")
        if not isinstance(value, self.torch.Tensor) or not value.is_cuda:
            return value
        if self.is_sparse(value):
            return self.sparse_on_host(value)
        if not self.is_watched(value):
            if is_small(value) and self.is_zeros(value):
                return self.torch.zeros(value.shape, dtype=value.dtype, device="cpu")
            raise Unknown
        if value.layout in self.compressed:
            places = [self.on_host(part) for part in self.places_of(value)]
            return self.torch.sparse_compressed_tensor(*places, self.values_on_host(value.values()), value.shape, layout=value.layout)
        if self.is_batched(value):  # by vmap
            inner = self.on_host(self.functorch.get_unwrapped(value))
            return self.functorch._add_batch_dim(inner, self.functorch.maybe_get_bdim(value), self.functorch.maybe_get_level(value))
        held = counts.on_host(self.torch, value)
        if held is None:
            if value.numel() > 0:
                raise Unknown
            return self.torch.empty(value.shape, dtype=value.dtype, device="cpu")
        return held

    def sparse_on_host(self, tensor):
        """Its places are known; its values may not be."""
        places, found = self.on_host(tensor._indices()), self.values_on_host(tensor._values())
        found = found.repeat_interleave(2, 0)[::2]  # not in a row, so that sums have the elements of both behind each other, as with CUDA
        return self.torch.sparse_coo_tensor(places, found, tensor.shape, is_coalesced=tensor.is_coalesced())

    def values_on_host(self, found):
        try:
            return self.on_host(found)
        except Unknown:
            self.is_partial = True
            return self.torch.ones(found.shape, dtype=found.dtype, device="cpu")

    def places_of(self, tensor):
        return [getattr(tensor, name)() for name in self.compressed[tensor.layout]]

    def is_kept(self, result):
        """Two small tensors may make a large one, of which nothing is noted."""
        return any(self.is_kept(one) for one in result) if isinstance(result, (tuple, list)) else \
            not isinstance(result, self.torch.Tensor) or result.layout is not self.strided or is_small(result)

    def keep(self, result, held):
        """Notes what the bytes of a result on the device are."""
        if isinstance(result, (tuple, list)):
            for one, other in zip(result, held):
                self.keep(one, other)
        elif not isinstance(result, self.torch.Tensor):
            pass  # a number, a name
        elif self.is_sparse(result):
            is_partial, self.is_partial = self.is_partial, False
            if held.is_sparse and result._nnz() == held._nnz():
                self.keep(result._indices(), held._indices())
                if not is_partial:
                    self.keep(result._values(), held._values())
        elif result.layout in self.compressed:
            is_partial, self.is_partial = self.is_partial, False
            if held.layout is result.layout and held._nnz() == result._nnz():
                self.keep(self.places_of(result), self.places_of(held))
                if not is_partial:
                    self.keep(result.values(), held.values())
        elif self.is_partial:
            self.is_partial = False
        elif self.is_batched(result):
            if self.is_batched(held):
                inner, place = self.functorch.get_unwrapped(held), self.functorch.maybe_get_bdim(held)
                self.keep(self.functorch.get_unwrapped(result), inner.movedim(place, self.functorch.maybe_get_bdim(result)))
        elif self.is_plain(result) and result.shape == held.shape and result.dtype == held.dtype and result.numel() > 0 and \
                is_small(result) and counts.address_of(result) != 0 and counts.span_of(result) == result.numel():
            laid = held.contiguous() if result.is_contiguous() else \
                self.torch.empty_strided(result.shape, result.stride(), dtype=held.dtype, device="cpu").copy_(held)
            self.write(result.data_ptr(), laid.data_ptr(), laid.numel() * laid.element_size())
            counts.note_version(result)

    def pad(self, tensor):
        """What a tensor got at its end when it was made longer: any value will do."""
        held = self.torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
        self.read(tensor.data_ptr(), held.data_ptr(), held.numel() * held.element_size())
        self.keep(tensor, held)

    def first_tensor(self, arguments):
        first = arguments[0] if arguments else None
        if isinstance(first, (str, int, float)) and len(arguments) > 1:
            first = arguments[1]  # of einsum, or a power of a number
        return first[0] if isinstance(first, (tuple, list)) and first else first

    def is_wanted(self, arguments):
        return not self.is_inside and not self.is_compiling() and self.is_watched(self.first_tensor(arguments))

    def refresh(self, tensor):
        if type(tensor) in self.plain and not counts.is_unchanged(tensor) and self.is_plain(tensor) and not self.is_watched_by_others():
            counts.refresh(tensor)

    def is_watched_by_others(self):
        """A graph that is captured will see other values; a mode of the script would see what is done here."""
        return self.is_capturing() or self.mode_count() > 0

    def held(self, function, arguments, named):
        """What the function gives on the host; None: not known."""
        if self.is_watched_by_others():
            return None
        self.is_inside, self.is_partial = True, False
        threads = self.torch.get_num_threads()
        try:
            self.torch.set_num_threads(1)  # of OpenMP, which takes longer to wake than numbers so few to compute
            with self.torch.no_grad():
                return function(*[self.on_host(value) for value in arguments],
                                **{name: self.on_host(value) for name, value in named.items()})
        except (Unknown, RuntimeError, TypeError, ValueError, IndexError):  # also under torch.func.grad, where nothing has an address
            return None
        finally:
            self.torch.set_num_threads(threads)
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

    def none_of_few(self, arguments, named):
        """torch.isin: numbers that only a GPU would know, as drawn tokens, are none of a few known ones, as those that end an answer."""
        few = arguments[1] if len(arguments) == 2 and not named and not self.is_watched_by_others() else None
        if few is None or isinstance(few, self.torch.Tensor) and (few.numel() > FEW or self.held(lambda host: host, (few,), {}) is None):
            return None
        self.run.note_sentence("torch.isin: numbers that only a GPU would know are taken to be none of a few known ones")
        return self.torch.zeros(arguments[0].shape, dtype=self.torch.bool, device="cpu")

    def picked(self, source, index, result):
        """Elements that an unknown index picks from known ones: evenly from all of them."""
        if not self.is_plain(source) or source.dim() != 1 or index.dim() != 1 or result.numel() == 0 or not is_small(result) or self.is_watched_by_others():
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
            if "out" in named and not self.is_inside and not self.is_compiling():
                return self.into(function, arguments[0], arguments, named)
            index = arguments[place] if len(arguments) > place else None
            if self.captured is not None and any(isinstance(part, self.torch.Tensor) for part in (index if type(index) is tuple else (index,))):
                return self.captured.call(function, arguments, named)
            if not self.is_wanted(arguments):
                result = function(*arguments, **named)
                if not self.is_inside and type(arguments[0]) in self.plain:
                    self.ranges.note(name, arguments, result)
                return result
            held = self.held(function, arguments, named)
            result = function(*arguments, **named)
            if held is not None:
                self.keep(result, held)
                return result
            if type(index) in self.plain and index.is_cuda and not named:
                self.picked(arguments[0], index, result)
            self.ranges.note(name, arguments, result)
            return result

        setattr(self.torch.Tensor, name, pick)

    def wrap_sparse(self, name):
        """A method that is only followed for sparse tensors, whose numbers it moves."""
        plain = getattr(self.torch.Tensor, name)
        self.wrap(self.torch.Tensor, name)
        followed = getattr(self.torch.Tensor, name)

        @functools.wraps(plain)
        def turned(tensor, *arguments, **named):
            return (followed if tensor.is_sparse else plain)(tensor, *arguments, **named)

        setattr(self.torch.Tensor, name, turned)

    def names_device(self, arguments, named):
        """to() with a device as a word or a number."""
        return any(isinstance(value, (int, str)) and not isinstance(value, bool) for value in (*arguments[1:], *named.values()))

    def wrap(self, owner, name):
        function = getattr(owner, name, None)
        if function is None:
            return
        is_union, is_product = name in UNIONS + COPIES, name in PRODUCTS

        is_counted, is_moved, is_changed_copy, is_sum = name in COUNTED, name in ("to", "type"), name in CHANGED_COPIES, name in SUMS
        is_ranged = name in ranges.NAMES

        @functools.wraps(function)
        def computed(*arguments, **named):
            if self.is_compiling() or self.is_inside:
                return function(*arguments, **named) if self.captured is None else self.captured.call(function, arguments, named)
            first = arguments[0] if arguments else None
            if type(first) not in self.plain:
                first = self.first_tensor(arguments)
            if type(first) in self.plain:
                self.refresh(first)
            elif hasattr(first, "_local_tensor"):
                return self.further.call(function, arguments, named)
            if is_union and getattr(first, "_fraglab_most", None) is not None:
                return self.unite(function, name, arguments, named)
            if "out" in named:
                return self.into(function, first, arguments, named)
            if is_counted:
                self.settle_zeros(first)
            if not self.is_watched(first) or is_moved and self.names_device(arguments, named) or is_product and self.is_trained(arguments):
                result = function(*arguments, **named)
                if is_changed_copy:
                    self.forget_all(result)
                self.note_large(first, result)
                if is_ranged:
                    self.ranges.note(name, arguments, result)
                return result
            result = function(*arguments, **named)
            held = self.held(function, arguments, named) if self.is_kept(result) else None
            if held is None and is_sum:
                held = self.assumed(function, arguments, named)
            if held is None and name == "isin":
                held = self.none_of_few(arguments, named)
            if held is not None:
                self.keep(result, held)
                return result
            if is_changed_copy:
                self.forget_all(result)
            if is_ranged:
                self.ranges.note(name, arguments, result)
            return result

        setattr(owner, name, computed)

    def into(self, function, first, arguments, named):
        """A function that writes what it makes into a tensor that it is given."""
        out = named["out"]
        self.refresh(out)
        others = {name: value for name, value in named.items() if name != "out"}
        held = self.held(function, arguments, others) if self.is_watched(first) else None
        result = function(*arguments, **named)
        outs, made = (value if isinstance(value, (tuple, list)) else [value] for value in (out, held))
        for tensor, number in zip(outs, made if len(made) == len(outs) else [None] * len(outs)):
            if isinstance(number, self.torch.Tensor) and self.is_plain(tensor) and number.shape == tensor.shape:
                self.settle(tensor, number.to(tensor.dtype))
                counts.note_version(tensor)
            else:
                self.forget_all(tensor)
        return result

    def note_large(self, first, result):
        """What is made of whole numbers that are too many to be followed."""
        if type(first) in self.plain and first.dtype in self.whole and first.is_cuda and not is_small(first) and \
                type(result) is self.torch.Tensor and not self.is_inside:
            result._fraglab_large = counts.large(first)

    def is_zeros(self, tensor):
        """As it was made, as far as PyTorch counts."""
        return getattr(tensor, "_fraglab_zeros", None) == (counts.version_of(tensor), counts.address_of(tensor))

    def settle_zeros(self, tensor):
        """What a script adds to, place by place: until then zeros are likelier to be filled by a kernel that nobody sees."""
        owner = counts.owner_of(tensor) if type(tensor) in self.plain else None
        if getattr(owner, "_fraglab_zeros", None) is None or not self.is_plain(tensor) or self.is_watched_by_others():
            return
        if self.is_zeros(owner):
            self.keep(owner, self.torch.zeros_like(owner, device="cpu"))

    def forget_all(self, results):
        for result in results if isinstance(results, (tuple, list)) else (results,):
            if self.is_plain(result) and counts.address_of(result) != 0:
                self.settle(result, None)
                if self.captured is not None:
                    self.captured.note_held(result, None)

    def forget_unwritten(self, targets, function, arguments, named):
        """Calls a function that changes these: what it does not write by functions that are watched, a kernel writes."""
        outer, self.written = self.written, set()
        try:
            return function(*arguments, **named)
        finally:
            self.forget_all([tensor for tensor in targets if counts.storage_of(tensor) not in self.written])
            self.written = outer and outer | self.written

    def unite(self, function, name, arguments, named):
        parts = arguments[0] if isinstance(arguments[0], (tuple, list)) else arguments[:1 if name in COPIES else 2]
        most = [counts.most_of(part) for part in parts]
        result = function(*arguments, **named)
        counts.note_most(result, None if None in most else sum(most))
        held = self.held(function, arguments, named) if self.is_watched(parts[0]) and self.is_kept(result) else None
        if held is not None:
            self.keep(result, held)
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
            elif given < 0 and arguments and self.is_plain(arguments[0]):
                self.run.note_large("%s:%d" % self.watch.name_of(values.caller_of(1)), counts.large(arguments[0]))
            return function(*arguments, **named)

        setattr(owner, name, classed)

    def wrap_in_place(self, name):
        function = getattr(self.torch.Tensor, name, None)
        if function is None:
            return

        is_counted, is_copy = name in COUNTED, name == "copy_"

        @functools.wraps(function)
        def changed(tensor, *arguments, **named):
            if self.is_compiling():
                return function(tensor, *arguments, **named)
            if getattr(tensor, "_fraglab_most", None) is not None:
                most, more = counts.most_of(tensor), self.reached(name, tensor, arguments)
                result = change(tensor, *arguments, **named)
                counts.note_most(tensor, most + more if most is not None and more is not None else None)
                return result
            return change(tensor, *arguments, **named)

        def change(tensor, *arguments, **named):
            if not self.is_plain(tensor) or self.is_inside or self.is_watched_by_others():
                if hasattr(tensor, "_local_tensor"):
                    return self.further.call(function, (tensor, *arguments), named)
                if self.captured is not None and self.is_plain(tensor):
                    return self.captured.call(function, (tensor, *arguments), named, [tensor])
                return function(tensor, *arguments, **named)
            self.refresh(tensor)
            if arguments:
                self.refresh(arguments[0])
            if is_counted:
                self.settle_zeros(tensor)
            target, held = self.foreseen(function, tensor, arguments, named)
            result = function(tensor, *arguments, **named)
            if held is not None or not is_copy or not self.is_plain_copy(tensor, *arguments[:1]):
                try:
                    self.settle(target, held)
                except RuntimeError:
                    pass
            counts.note_version(tensor)
            if self.written is not None:
                self.written.add(counts.storage_of(tensor))
            return result

        setattr(self.torch.Tensor, name, changed)

    def foreseen(self, function, tensor, arguments, named):
        """What of a tensor a change in place sets, and what is in it then; None: not known."""
        held, name = None, function.__name__
        if name in RANDOM:
            return tensor, None
        if self.is_watched(tensor):
            def on_host(host, *others, **more):
                function(host, *others, **more)
                return host

            held = self.held(on_host, (tensor, *arguments), named)
        if held is None and name in WRITERS:
            held = self.overwritten(function, tensor, arguments, named)
        return self.part(tensor, *arguments) if held is None and name == "__setitem__" else (tensor, held)

    @staticmethod
    def is_plain_copy(tensor, source=None):
        """The software CUDA has copied what is known of the bytes."""
        return source is not None and tensor.dtype is source.dtype and tensor.shape == source.shape and \
            tensor.is_contiguous() and source.is_contiguous()

    def part(self, tensor, index, value):
        """What an assignment sets, as a view, and what is in it then."""
        places = index if isinstance(index, tuple) else (index,)
        if any(isinstance(place, (self.torch.Tensor, list, bool)) for place in places):
            return tensor, None
        try:
            view = tensor[index]
        except (TypeError, IndexError):
            return tensor, None
        made = self.torch.zeros(view.shape, dtype=view.dtype, device="cpu") if is_small(view) else None
        return view, self.held(lambda host: made.copy_(host) if isinstance(host, self.torch.Tensor) else made.fill_(host),
                               (value,), {}) if made is not None else None

    def overwritten(self, function, tensor, arguments, named):
        """An unknown tensor all of whose elements are set, as in the inverse of a permutation."""
        if not is_small(tensor):
            return None

        def change(*places):
            if function.__name__ in SETTERS:
                return function(self.torch.zeros(tensor.shape, dtype=tensor.dtype, device="cpu"), *places)
            made = self.torch.zeros(tensor.shape, dtype=tensor.dtype, device="cpu")
            reached = self.torch.zeros(tensor.shape, dtype=self.torch.bool, device="cpu")
            function(made, *places)
            function(reached, *places[:-1], True)
            return made if reached.all() else None

        return self.held(change, arguments, {}) if not named else None

    def settle(self, tensor, held):
        if tensor.is_conj() or tensor.is_neg():
            held = None
        if held is not None and counts.span_of(tensor) == tensor.numel():
            self.keep(tensor, held)
        elif tensor.is_contiguous():
            self.forget(tensor.data_ptr(), tensor.nbytes)
        elif tensor.numel() > 0 and not self.settle_runs(tensor, held):
            self.forget(tensor.data_ptr(), counts.span_of(tensor) * tensor.element_size())

    def settle_runs(self, tensor, held):
        """The same of a small view with gaps, which keep what they hold: piece by piece. False: there are too many pieces."""
        torch, size, span = self.torch, tensor.element_size(), counts.span_of(tensor)
        if span * size > bytes_max or tensor.is_complex():
            return False
        if held is None:
            if len(self.seen) < span * size:
                self.seen = ctypes.create_string_buffer(bytes_max)
            if self.read(tensor.data_ptr(), self.seen, span * size) == 0:
                return True  # nothing to forget, as of most networks' numbers
        places, order = torch.as_strided(torch.arange(span), tensor.shape, tensor.stride()).flatten().sort()
        steps = places[1:] - places[:-1]
        ends = [*((steps != 1).nonzero().flatten() + 1).tolist(), places.numel()]
        if len(ends) > RUNS_MAX or (steps == 0).any():  # elements that lie in one place
            return False
        is_known = held is not None and held.shape == tensor.shape and held.dtype == tensor.dtype and not self.is_partial
        numbers = held.flatten()[order] if is_known else None
        first = 0
        for end in ends:
            address, length = tensor.data_ptr() + int(places[first]) * size, (end - first) * size
            if is_known:
                self.write(address, numbers.data_ptr() + first * size, length)
            else:
                self.forget(address, length)
            first = end
        return True

    def wrap_comparison(self, owner, name):
        """A function of two tensors whose answer is no tensor; of unknown ones it is true (operators.py)."""
        function = getattr(owner, name)

        @functools.wraps(function)
        def compared(*arguments, **named):
            held = self.held(function, arguments, named) if self.is_wanted(arguments) else None
            result = function(*arguments, **named)
            return result if held is None else held

        setattr(owner, name, compared)

    def wrap_shape(self, name):
        """A method that changes a tensor in place, but no values in its storage, which may be another then."""
        function = getattr(self.torch.Tensor, name, None)
        if function is None:
            return

        @functools.wraps(function)
        def shaped(tensor, *arguments, **named):
            if not self.is_plain(tensor) or self.is_compiling():
                return function(tensor, *arguments, **named)
            is_unchanged = counts.is_unchanged(tensor)
            result = function(tensor, *arguments, **named)
            if is_unchanged or name == "set_":
                counts.note_version(tensor)
            return result

        setattr(self.torch.Tensor, name, shaped)

    def wrap_detached(self, owner):
        function = owner.detach

        @functools.wraps(function)
        def detached(tensor, *arguments, **named):
            result = function(tensor, *arguments, **named)
            if not self.is_compiling() and self.is_watched(tensor) and not self.is_sparse(tensor):
                counts.share_version(tensor, result)
            return result

        owner.detach = detached

    def wrap_typed_views(self):
        """A view of another type has the count of changes of its tensor, but does not say of which."""
        function, kind = self.torch.Tensor.view, self.torch.dtype

        @functools.wraps(function)
        def view(tensor, *arguments, **named):
            result = function(tensor, *arguments, **named)
            if (type(arguments[0]) is kind if arguments else named) and result._base is None and self.is_plain(result):
                counts.share_version(tensor, result)
            return result

        self.torch.Tensor.view = view

    def wrap_copies(self):
        """A deep copy has the notes of what it was copied from, but a version of its own."""
        function = self.torch.Tensor.__deepcopy__

        @functools.wraps(function)
        def copied(tensor, memo):
            self.refresh(tensor)
            result = function(tensor, memo)
            if self.is_plain(result):
                counts.note_version(result)
            return result

        self.torch.Tensor.__deepcopy__ = copied

    def wrap_moves(self):
        """Modules that are moved set the data of their parameters, whose versions stay."""
        apply = self.torch.nn.Module._apply

        @functools.wraps(apply)
        def applied(module, *arguments, **named):
            for parameter in module._parameters.values():
                self.refresh(parameter)
            result = apply(module, *arguments, **named)
            for parameter in module._parameters.values():
                if self.is_plain(parameter):
                    counts.note_version(parameter)
            return result

        self.torch.nn.Module._apply = applied

    def wrap_scales(self):
        """GradScaler: an overflow of gradients that only a kernel would know has not happened."""
        torch, update, check = self.torch, self.torch._amp_update_scale_, self.torch._amp_foreach_non_finite_check_and_unscale_

        def on_host(scale, tracker, found, *numbers):
            update(scale, tracker, found, *numbers)
            return scale, tracker

        @functools.wraps(update)
        def updated(scale, tracker, *numbers):
            held = self.held(on_host, (scale, tracker, *numbers), {}) if not self.is_compiling() else None
            result = update(scale, tracker, *numbers)
            if held is not None:
                self.keep((scale, tracker), held)
            elif self.captured is not None:
                self.forget_all((scale, tracker))
            for tensor in (scale, tracker):
                counts.note_version(tensor)
            return result

        @functools.wraps(check)
        def checked(gradients, found, scale):
            infinite = [self.held(lambda host: not host.isfinite().all(), (gradient,), {}) for gradient in gradients
                        if self.is_watched(gradient)] if not self.is_compiling() else []
            check(gradients, found, scale)
            if any(infinite):
                self.keep(found, torch.ones(found.shape, dtype=found.dtype, device="cpu"))
            elif self.captured is not None:
                self.captured.note_held(found, None)
            counts.note_version(found)

        torch._amp_update_scale_, torch._amp_foreach_non_finite_check_and_unscale_ = updated, checked

    def wrap_collective(self, c10d, name):
        """What is sent and received the stand-in for NCCL knows; PyTorch may count it as a change."""
        function = getattr(c10d, name, None)
        if function is None:
            return

        @functools.wraps(function)
        def carried(*arguments, **named):
            if self.is_compiling():
                return function(*arguments, **named)
            parts = [value if isinstance(value, (tuple, list)) else (value,) for value in (*arguments, *named.values())]
            tensors = [value for part in parts for value in part if self.is_plain(value)]
            for tensor in tensors:
                self.refresh(tensor)
            result = function(*arguments, **named)
            for tensor in tensors:
                counts.note_version(tensor)
            return result

        ranks.replace(c10d, name, carried)

    def wrap_statistics(self, name):
        """A layer that changes its running mean and variance, which PyTorch does not count."""
        function = getattr(self.torch, name, None)
        if function is None:
            return

        @functools.wraps(function)
        def normed(*arguments, **named):
            result = function(*arguments, **named)
            if not self.is_compiling():
                self.forget_all(arguments[3:5])
            return result

        setattr(self.torch, name, normed)

    def wrap_creator(self, owner, name):
        function = getattr(owner, name, None)
        if function is None:
            return

        @functools.wraps(function)
        def created(*arguments, **named):
            if self.is_compiling():
                return function(*arguments, **named)
            result = function(*arguments, **named)
            # Masks of attention, chances, counters, limits of bins: in whatever type. Zeros are written without a kernel.
            is_number = "zeros" not in name or result.numel() == 1 or result.dtype in self.whole
            is_followed = type(result) is self.torch.Tensor and result.is_cuda and is_small(result) and "out" not in named
            if is_followed and self.is_inside:
                if self.captured is not None and is_number:
                    with self.torch.no_grad():
                        self.captured.note_held(result, function(*self.shapes(arguments), **{**named, "device": "cpu", "pin_memory": False}))
            elif is_followed and not is_number:
                result._fraglab_zeros = (counts.version_of(result), counts.address_of(result)) if not result.is_inference() else None
            elif is_followed:
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


def make(torch, run):
    """None: not over the software CUDA."""
    if not hasattr(torch, "int64"):
        return None  # a PyTorch of the tests, whose tensors have no type
    known = Known(torch, run)
    if known.write is None or known.forget is None:
        return None
    known.write.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    known.forget.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    known.write.restype = known.forget.restype = None
    known.read.argtypes, known.read.restype = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t], ctypes.c_size_t
    return known


def install(torch, run, known, after_import):
    global bytes_max
    if known is None:
        return
    keep_device_contexts()
    bytes_max = run.followed
    counts.span_max = bytes_max // 2
    counts.forget, counts.range_of, known.watch.refresh = known.forget, known.ranges.of, known.refresh
    for owner in (torch, torch.Tensor):
        known.wrap_classes(owner, "bincount", "minlength")
    known.wrap_classes(torch.nn.functional, "one_hot", "num_classes")
    for name in ("one_hot", "pad"):
        known.wrap(torch.nn.functional, name)
    for name in dict.fromkeys((*OPERATORS, *CHANGED_COPIES, *PRODUCTS)):
        known.wrap(torch, name)
        known.wrap(torch.Tensor, name)
    for name in METHODS:
        known.wrap(torch.Tensor, name)
    for owner, name in ((torch.nn.utils.rnn, "pad_sequence"), (torch.linalg, "norm"), (torch.linalg, "vector_norm"),
                        (torch, "_foreach_norm"), (torch.sparse, "sum"), (torch.fft, "fftshift"), (torch.fft, "ifftshift")):
        known.wrap(owner, name)
    for name in ("coalesce", "to_dense", "to_sparse", "to_sparse_coo", "to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc"):
        known.wrap(torch.Tensor, name)
    for name in ("t", "transpose"):
        known.wrap_sparse(name)
    known.wrap_picks("__getitem__", 1)
    known.wrap_picks("index_select", 2)
    methods = {name for name in dir(torch.Tensor) if name.endswith("_") and not name.startswith("_")}
    for name in (*IN_PLACE, *sorted(methods - NO_VALUES - DRAWN)):
        known.wrap_in_place(name)
    for name in NO_VALUES:
        known.wrap_shape(name)
    for name in ("batch_norm", "native_batch_norm", "instance_norm"):
        known.wrap_statistics(name)
    for owner in (torch, torch.Tensor):
        for name in ("equal", "allclose"):
            known.wrap_comparison(owner, name)
    known.wrap_copies()
    known.wrap_typed_views()
    for owner in (torch, torch.Tensor):
        known.wrap_detached(owner)
    known.wrap_moves()
    if hasattr(torch, "_amp_update_scale_"):
        known.wrap_scales()
    if torch.distributed.is_available():
        for name in (*ranks.COLLECTIVES, "recv", "irecv"):
            known.wrap_collective(importlib.import_module("torch.distributed.distributed_c10d"), name)
    for name in CREATORS:
        known.wrap_creator(torch, name)
    for name in ("fftfreq", "rfftfreq"):
        known.wrap_creator(torch.fft, name)
    for name in NEW:
        known.wrap_creator(torch.Tensor, name)
    further.install(known, after_import)
