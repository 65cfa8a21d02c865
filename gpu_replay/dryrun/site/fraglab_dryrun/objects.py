"""Python objects in collectives of torch.distributed (broadcast_object_list and its kin).

They are pickled, copied to the device, cut and joined there by kernels, and unpickled on the other
side, so every byte matters. While one of these functions runs, each operation whose arguments are
all known is done once more on the host, and its results are written into those of the device; and
pieces of any size are kept and carried. The device's own operations and requests are as ever."""
import contextlib
import ctypes
import functools
import importlib
import sys

from . import values

NAMES = ("all_gather_object", "gather_object", "broadcast_object_list", "scatter_object_list",
         "send_object_list", "recv_object_list")
OF_ZERO = "torch.distributed.optim.zero_redundancy_optimizer"
# Pieces and all of them: more than an object that is sent will have.
KEPT = b"shadow=1GiB/16GiB"


class Shadow:
    """The bytes of tensors that the software CUDA knows."""

    def __init__(self, torch):
        self.torch = torch
        self.get = values.software("frag_software_read")
        self.put = values.software("frag_software_write")
        self.set = values.software("frag_software_set")
        if self.get is not None:
            self.get.restype = ctypes.c_size_t
            self.get.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
            self.put.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
            self.put.restype = None
            self.set.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t]

    def read(self, tensor):
        """A copy on the host, or None."""
        if not tensor.is_contiguous():
            return None
        count = tensor.numel() * tensor.element_size()
        host = self.torch.empty(tensor.shape, dtype=tensor.dtype)
        known = self.get(tensor.data_ptr(), host.data_ptr(), count) if count else 0
        return host if known == count else None

    def pad(self, tensor):
        """What a tensor got at its end when it was made longer: any value will do."""
        host = self.torch.empty(tensor.shape, dtype=tensor.dtype)
        self.get(tensor.data_ptr(), host.data_ptr(), host.numel() * host.element_size())
        self.write(tensor, host)

    def write(self, tensor, host):
        if tensor.is_contiguous() and tensor.shape == host.shape and tensor.dtype == host.dtype:
            host = host.contiguous()
            self.put(tensor.data_ptr(), host.data_ptr(), host.numel() * host.element_size())


def make_mode(torch, shadow):
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_flatten, tree_map

    def on_device(value):
        return isinstance(value, torch.Tensor) and value.is_cuda

    class OnHostToo(TorchDispatchMode):
        def __torch_dispatch__(self, function, _types, arguments=(), named=None):
            named = named or {}
            before = self.on_host(function, arguments, named)
            result = function(*arguments, **named)
            if before is not None:
                self.repeat(function, before, result)
            elif "resize" in function._schema.name and on_device(result):
                shadow.pad(result)
            return result

        def on_host(self, function, arguments, named):
            """The arguments with copies in the place of tensors; None: it is not to be repeated.
            What is allocated without a value stays unknown, and views need nothing."""
            schema = function._schema
            returns_view = any(value.alias_info is not None and not value.alias_info.is_write
                               for value in schema.returns)
            if function.namespace != "aten" or returns_view or "empty" in schema.name or "resize" in schema.name:
                return None
            found = [value for value in tree_flatten((arguments, named))[0]
                     if isinstance(value, torch.Tensor)]
            if not found or not all(on_device(value) for value in found):
                return None
            copies = {id(value): shadow.read(value) for value in found}
            if any(copy is None for copy in copies.values()):
                return None

            def on_cpu(value):
                if isinstance(value, torch.device):
                    return torch.device("cpu")
                return copies[id(value)] if isinstance(value, torch.Tensor) else value

            return tree_map(on_cpu, (arguments, named))

        def repeat(self, function, before, result):
            """Results in place are results too: the tensor that is returned is the one written."""
            targets = tree_flatten(result)[0]
            if not targets or not all(on_device(value) for value in targets):
                return
            found = tree_flatten(function(*before[0], **before[1]))[0]
            for target, value in zip(targets, found):
                shadow.write(target, value)

    return OnHostToo


def install(torch, run, after_import):
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available():
        return
    shadow = Shadow(torch)
    if shadow.get is None:
        return
    c10d = importlib.import_module("torch.distributed.distributed_c10d")
    mode = make_mode(torch, shadow)
    before = b"shadow=%d/%d" % (run.followed, run.followed * 1024)

    def wrap(function, mode=mode):
        @functools.wraps(function)
        def carried(*arguments, **named):
            shadow.set(KEPT, None, 0)
            try:
                with mode():
                    return function(*arguments, **named)
            finally:
                shadow.set(before, None, 0)

        return carried

    for name in NAMES:
        function = getattr(c10d, name, None)
        if function is None:
            continue
        replaced = wrap(function)
        for module in list(sys.modules.values()):
            if getattr(module, "__name__", "").startswith("torch.distributed") and \
                    module.__dict__.get(name) is function:
                setattr(module, name, replaced)

    def wrap_state(module):
        module._broadcast_object = wrap(module._broadcast_object, contextlib.nullcontext)  # by copies alone

    after_import.call(OF_ZERO, wrap_state)
