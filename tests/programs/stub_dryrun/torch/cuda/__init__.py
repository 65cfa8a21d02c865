from .._allocator import OutOfMemoryError, device
from . import memory


def _lazy_call(function):
    if device.runtime is None:
        device.waiting.append(function)
    else:
        function()


def device_count():
    return 1


def memory_stats_as_nested_dict(index=0):
    return {"allocation": {"all": {"allocated": device.count}}}


def max_memory_reserved(index=0):
    return sum(device.sizes.values())
