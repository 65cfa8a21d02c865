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

from . import known, values

NAMES = ("all_gather_object", "gather_object", "broadcast_object_list", "scatter_object_list",
         "send_object_list", "recv_object_list")
OF_ZERO = "torch.distributed.optim.zero_redundancy_optimizer"
# Pieces and all of them: more than an object that is sent will have.
KEPT = b"shadow=1GiB/16GiB"


def install(torch, run, follow, after_import):
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available():
        return
    if follow is None:
        return
    keep = values.software("frag_software_set")
    keep.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t]
    c10d = importlib.import_module("torch.distributed.distributed_c10d")
    before = b"shadow=%d/%d" % (run.followed, run.followed * 1024)

    def wrap(function, mode=follow.further.mode):
        @functools.wraps(function)
        def carried(*arguments, **named):
            keep(KEPT, None, 0)
            most, known.bytes_max = known.bytes_max, 2 ** 30
            try:
                with mode(True):
                    return function(*arguments, **named)
            finally:
                keep(before, None, 0)
                known.bytes_max = most

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
