import sys

from .._allocator import OutOfMemoryError, device
from . import memory


def _lazy_call(function):
    if device.runtime is None:
        device.waiting.append(function)
    else:
        function()


def is_initialized():
    return device.runtime is not None


def _is_in_bad_fork():
    return False


def init():
    device.begin()


def is_available():
    return device.count_devices() > 0


def device_count():
    return 1


def get_device_name(index=0):
    return "a card of the tests"


def empty_cache():
    sys.modules["torch._C"]._cuda_emptyCache()


def mem_get_info(index=0):
    return device.mem_get_info()


def memory_reserved(index=0):
    return sum(device.sizes.values())


def memory_stats_as_nested_dict(index=0):
    return {"allocation": {"all": {"allocated": device.count}}}


def memory_stats(index=0):
    stats = {"num_device_alloc": device.mallocs, "num_device_free": device.frees, "num_ooms": device.ooms, "allocation.all.allocated": device.count}
    for name, now in device.levels().items():
        stats[name + ".all.current"] = now
        stats[name + ".all.peak"] = device.peaks[name]
    return stats


def reset_peak_memory_stats(index=0):
    sys.modules["torch._C"]._cuda_resetPeakMemoryStats(index)


def reset_accumulated_memory_stats(index=0):
    sys.modules["torch._C"]._cuda_resetAccumulatedMemoryStats(index)


def max_memory_reserved(index=0):
    return sum(device.sizes.values())
