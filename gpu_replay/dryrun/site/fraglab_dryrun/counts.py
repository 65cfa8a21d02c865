"""How many elements a mask selects, when only a kernel would know: the number decides the size of what
comes next, and none would be far too little. All are taken, or as many percent as --selected
says; what the host wrote is counted."""
import ctypes
import functools
import math
import os
import threading

from . import boxes, values


# Of a view with gaps: the most elements between its first and its last.
span_max = 32768


UNSEEN = (0, 0)


def address_of(tensor):
    """0 under torch.func, where tensors are wrapped."""
    try:
        return tensor.data_ptr()
    except RuntimeError:
        return 0


forget = None  # of the software CUDA, once changes in place are watched (known.py)
range_of = None  # between which numbers whole numbers lie, once they are followed (ranges.py)


def owner_of(tensor):
    """The tensor of which others are views: all of them have one version."""
    base = tensor._base
    return tensor if base is None else base


def version_of(tensor):
    try:
        return tensor._version
    except RuntimeError:  # of inference
        return 0


def note_version(tensor, more=0):
    """All changes of a tensor until now are known, and as many more."""
    version = version_of(tensor) + more
    if version != 0:
        owner = owner_of(tensor)
        seen = getattr(owner, "_fraglab_seen", None)
        if seen is None:
            owner._fraglab_seen = [version, address_of(owner)]
        else:
            seen[:] = version, address_of(owner)


def share_version(tensor, detached):
    """The two have one count of changes, and so one note of what was seen."""
    owner = owner_of(tensor)
    if address_of(owner) == address_of(detached):
        seen = getattr(owner, "_fraglab_seen", None)
        if seen is None:
            seen = owner._fraglab_seen = [*UNSEEN]
        detached._fraglab_seen = seen


def is_unchanged(tensor):
    """Has nothing changed it but what was watched, as far as PyTorch counts?"""
    base = tensor._base
    owner = tensor if base is None else base
    version, address = getattr(owner, "_fraglab_seen", UNSEEN)
    return version_of(tensor) == (version if version == 0 or address == address_of(owner) else 0)


def expect_change(tensor):
    """A change that PyTorch has counted before it is made."""
    owner = owner_of(tensor)
    if version_of(tensor) == getattr(owner, "_fraglab_seen", (0, 0))[0] + 1:
        note_version(tensor)


def storage_of(tensor):
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return 0


def refresh(tensor):
    """What a tensor on the device held before a change in place that nobody watched, as of an optimizer, is not known any more."""
    if forget is None or is_unchanged(tensor):
        return
    try:
        storage = tensor.untyped_storage()
        forget(storage.data_ptr(), storage.nbytes())
    except (RuntimeError, NotImplementedError):
        return  # under torch.func
    note_version(tensor)


def span_of(view):
    """How many elements from its first to its last."""
    if view.is_contiguous():
        return max(view.numel(), 1)
    return 1 + sum((size - 1) * stride for size, stride in zip(view.shape, view.stride()))


def strided(torch, view):
    """A view with gaps, by way of all between its first and its last byte."""
    span = span_of(view)
    flat = read_whole(torch, torch.as_strided(view.data, (span,), (1,))) if span <= span_max else None
    return torch.as_strided(flat, view.shape, view.stride()).clone() if flat is not None else None


def on_host(torch, tensor):
    """A copy of a tensor on the device all of whose bytes the host wrote; None: not known."""
    if values.software("frag_software_read") is None or tensor.numel() == 0 or tensor.layout is not torch.strided:
        return None
    refresh(tensor)
    held = read_whole(torch, tensor) if tensor.is_contiguous() else strided(torch, tensor)
    if held is not None and tensor.is_conj():
        held = held.conj().resolve_conj()
    return -held if held is not None and tensor.is_neg() else held


def read_whole(torch, tensor):
    """The same of one without gaps, which is what PyTorch's count of changes says (a view of a view knows of none)."""
    address = address_of(tensor)
    held = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
    size = tensor.numel() * tensor.element_size()
    return held if address != 0 and values.software("frag_software_read")(address, held.data_ptr(), size) == size else None


def large(tensor):
    """Bytes of the most whole numbers that it is, or is made of."""
    size = 0 if tensor.is_floating_point() else tensor.numel() * tensor.element_size()
    return max(size, getattr(tensor, "_fraglab_large", 0))


def most_of(tensor):
    """How many elements of a mask can be set, where indices set them; None: not known. A change that nobody saw makes
    another version of the tensor."""
    count, version = getattr(tensor, "_fraglab_most", None) or (None, None)
    return count if count is not None and tensor._version == version else None


def note_most(tensor, count):
    if count is None or tensor.is_inference():
        tensor._fraglab_most = None
    else:
        tensor._fraglab_most = (min(count, tensor.numel()), tensor._version)


def different(tensor):
    """How many different whole numbers there can be; None: not known."""
    found = range_of(tensor) if range_of is not None else None
    return min(found[1] - found[0] + 1, tensor.numel()) if found is not None else None


def evenly(count, parts):
    """So many elements in so many parts."""
    return [count * (part + 1) // parts - count * part // parts for part in range(parts)]


class Counts:
    def __init__(self, torch, run):
        self.torch = torch
        self.run = run
        self.watch = run.watch_of_values
        self.is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)
        self.share = run.settings.get("selected", 100) / 100
        self.parts = []  # how many elements each of the next masks selects

    def is_plain(self, tensor):
        return type(tensor) in (self.torch.Tensor, self.torch.nn.Parameter) and tensor.is_cuda

    def choose(self, elements, tensor=None, count=None):
        """Of so many elements; count tells it from the tensor where that is known."""
        held = on_host(self.torch, tensor) if tensor is not None else None
        if held is not None:
            return values.Choice(int(count(held)), elements, True)
        most = most_of(tensor) if tensor is not None else None
        if most is not None:
            return values.Choice(most, elements, False)
        return values.Choice(math.ceil(elements * self.share), elements, False, large(tensor) if tensor is not None else 0)

    def of_mask(self, mask):
        if self.parts and most_of(mask) is None:
            note_most(mask, self.parts.pop(0))
        return self.choose(mask.numel(), mask, lambda held: held.count_nonzero())

    def of_blocks(self, tensor, blocksize):
        """Those in which an element is not 0."""
        height, width = blocksize
        return self.choose(tensor.numel() // (height * width), tensor, lambda held: (held != 0).unflatten(-1, (-1, width)).any(-1).
                           unflatten(-2, (-1, height)).any(-2).count_nonzero())

    def wrap_compressed(self, name):
        """A method that makes a sparse tensor, of elements or of blocks."""
        function = getattr(self.torch.Tensor, name, None)
        if function is None:
            return

        @functools.wraps(function)
        def compressed(tensor, *arguments, **named):
            blocks = [value for value in (*arguments, *named.values()) if isinstance(value, (tuple, list))]
            if not self.is_plain(tensor) or tensor.layout is not self.torch.strided or any(type(value) is int for value in arguments):
                return function(tensor, *arguments, **named)
            return self.around(function, lambda: self.of_blocks(tensor, *blocks[:1] or [(1, 1)]), (tensor, *arguments), named)

        setattr(self.torch.Tensor, name, compressed)

    def of_unique(self, name):
        """name: unique or unique_consecutive, of all elements or of the slices along a dimension."""
        def choose(tensor, dim=None):
            if tensor.dtype is self.torch.bool and dim is None and name == "unique":
                return self.of_mask(tensor)  # those that are true are counted there
            if self.parts and dim is None:
                return values.Choice(len(self.parts), tensor.numel(), False)
            elements = tensor.numel() if dim is None else tensor.shape[dim]
            choice = self.choose(elements, tensor, lambda held: getattr(held, name)(dim=dim).shape[dim or 0])
            most = different(tensor) if dim is None and name == "unique" and not choice.is_known else None
            choice.count = choice.count if most is None else min(choice.count, most)
            return choice

        return choose

    def watch_sums(self):
        """How many elements are left of a sparse tensor when equal ones are added up, which functions of C++ do, too. False: not known there."""
        summed = values.software("frag_software_get_sum")
        try:
            library = os.path.join(os.path.dirname(self.torch.__file__), "lib", "libtorch_python.so")
            wrap = ctypes.PyDLL(library)["_Z16THPVariable_WrapRKN2at10TensorBaseE"]
        except (OSError, AttributeError):
            return False
        if summed is None:
            return False
        summed.restype, wrap.argtypes, wrap.restype = ctypes.c_void_p, [ctypes.c_void_p], ctypes.py_object

        def choose(size):
            sparse = summed() if size in (4, 8) else None
            if not sparse or "_coalesce" not in self.watch.stack.operators():
                return None
            tensor = wrap(sparse)
            places = tensor._indices()
            most = min(tensor._nnz(), math.prod(tensor.shape[:tensor.sparse_dim()]))
            return self.choose(most, places, lambda held: held.unique(dim=1).shape[1])

        self.watch.sum = choose
        return True

    def around(self, function, choose, arguments, named):
        """The function, while reads of a count give the chosen one."""
        choices = self.watch.choices
        thread = threading.get_ident()
        if thread in choices or self.is_compiling():
            return function(*arguments, **named)
        choice = choices[thread] = choose()
        try:
            result = function(*arguments, **named)
        finally:
            choices.pop(thread, None)
        self.again_in_backward(result if result is not None else arguments[0], choice)
        return result

    def again_in_backward(self, result, choice):
        """The backward pass of an index counts the same mask once more."""
        node = getattr(result, "grad_fn", None)
        if node is None or not type(node).__name__.startswith(("Index", "CopySlices")):
            return
        choices = self.watch.choices

        def before(_gradients):
            choices[threading.get_ident()] = choice

        def after(_inputs, _outputs):
            choices.pop(threading.get_ident(), None)

        node.register_prehook(before)
        node.register_hook(after)

    def wrap(self, owner, name, choose, is_counting=lambda arguments: True, words=()):
        """A function that counts elements of its first tensor; choose wants to know these arguments by name, too."""
        function = getattr(owner, name, None)
        if function is None:
            return

        @functools.wraps(function)
        def counting(*arguments, **named):
            tensor = arguments[0] if arguments else named.get("input")
            if not self.is_plain(tensor) or not is_counting([*arguments, *named]):
                return function(*arguments, **named)
            given = {word: named[word] for word in words if word in named}
            return self.around(function, lambda: choose(tensor, **given), arguments, named)

        setattr(owner, name, counting)

    def wrap_masked(self, owner, name):
        """A function of a tensor and a mask."""
        function = getattr(owner, name, None)
        if function is None:
            return

        @functools.wraps(function)
        def masked(*arguments, **named):
            mask = named.get("mask", arguments[1] if len(arguments) > 1 else None)
            if not self.is_plain(mask):
                return function(*arguments, **named)
            return self.around(function, lambda: self.of_mask(mask), arguments, named)

        setattr(owner, name, masked)

    def wrap_combinations(self):
        function = getattr(self.torch, "combinations", None)
        if function is None:
            return

        @functools.wraps(function)
        def combinations(tensor, r=2, with_replacement=False):
            if not self.is_plain(tensor):
                return function(tensor, r, with_replacement)
            elements = tensor.numel() + (max(r - 1, 0) if with_replacement else 0)
            choose = lambda: values.Choice(math.comb(elements, r), tensor.numel() ** r, True)
            return self.around(function, choose, (tensor, r, with_replacement), {})

        self.torch.combinations = combinations

    def mask_in(self, index):
        """The first mask on a device in an index."""
        for part in index if isinstance(index, tuple) else (index,):
            if isinstance(part, self.torch.Tensor) and part.dtype in (self.torch.bool, self.torch.uint8) and \
                    self.is_plain(part) and part.dim() > 0:
                return part
        return None

    def wrap_index(self, name):
        function = getattr(self.torch.Tensor, name, None)
        if function is None:
            return

        @functools.wraps(function)
        def indexed(tensor, index, *value):
            mask = self.mask_in(index)
            if mask is None:
                return function(tensor, index, *value)
            return self.around(function, lambda: self.of_mask(mask), (tensor, index, *value), {})

        setattr(self.torch.Tensor, name, indexed)

    def wrap_clusters(self, module):
        """torch.nn.AdaptiveLogSoftmaxWithLoss: each of its targets is in one cluster."""
        forward = module.forward

        @functools.wraps(forward)
        def clustered(layer, tensor, target):
            if self.is_plain(target) and target.dim() == 1 and not self.is_compiling() and on_host(self.torch, target) is None:
                places = [len(target) * place // layer.n_classes for place in (0, *layer.cutoffs)]
                self.parts = [end - begin for begin, end in zip(places, places[1:])]
                self.run.note_sentence("AdaptiveLogSoftmaxWithLoss: the targets are on the device; they are taken evenly from all classes")
            try:
                return forward(layer, tensor, target)
            finally:
                self.parts = []

        module.forward = clustered


def install(torch, run, after_import):
    read = values.software("frag_software_read")
    if read is not None:
        read.argtypes, read.restype = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t], ctypes.c_size_t
    counts = Counts(torch, run)
    if hasattr(torch.nn, "AdaptiveLogSoftmaxWithLoss"):
        counts.wrap_clusters(torch.nn.AdaptiveLogSoftmaxWithLoss)
    for owner in (torch, torch.Tensor):
        for name in ("nonzero", "argwhere"):
            counts.wrap(owner, name, counts.of_mask)
        for name in ("unique", "unique_consecutive"):
            counts.wrap(owner, name, counts.of_unique(name), words=("dim",))
        counts.wrap_masked(owner, "masked_select")
        counts.wrap(owner, "index_select", lambda tensor: counts.choose(tensor._nnz()), lambda arguments: arguments[0].is_sparse)
    if not counts.watch_sums():
        counts.wrap(torch.Tensor, "coalesce", lambda tensor: counts.choose(tensor._nnz()),
                    lambda arguments: not arguments[0].is_coalesced())
    counts.wrap_combinations()
    for name in ("to_sparse", "to_sparse_coo", "to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc"):
        counts.wrap_compressed(name)
    counts.wrap(torch, "where", counts.of_mask, lambda arguments: len(arguments) == 1)
    for name in ("__getitem__", "__setitem__"):
        counts.wrap_index(name)
    after_import.call("torchvision.ops.boxes", boxes.Boxes(counts).wrap)
