"""Every request of 10 MiB or more is a segment of its own, rounded to 2 MiB, which is what PyTorch
does with them; freed segments are used again by requests of the same size."""
import ctypes
import time
import traceback

observers = []
MIB = 1 << 20
PAGE = 2 * MIB


class OutOfMemoryError(RuntimeError):
    pass


class Device:
    def __init__(self):
        self.runtime = None
        self.history = None
        self.has_stacks = False
        self.max_entries = 1
        self.count = 0
        self.free = {}
        self.live = {}
        self.sizes = {}
        self.waiting = []
        self.mallocs = self.frees = self.ooms = 0
        self.peaks = self.levels()

    def levels(self):
        live = list(self.live.items())
        return {"requested_bytes": sum(size for _, size in live), "allocated_bytes": sum(self.sizes[address] for address, _ in live),
                "reserved_bytes": sum(self.sizes.values())}

    def raise_peaks(self):
        for name, now in self.levels().items():
            self.peaks[name] = max(self.peaks[name], now)

    def reset_count(self, index=0):
        self.count = 0

    def reset_peaks(self, index):
        self.peaks = self.levels()

    def count_devices(self):
        count = ctypes.c_int()
        try:
            return count.value if ctypes.CDLL("libcudart.so.12").cudaGetDeviceCount(ctypes.byref(count)) == 0 else 0
        except OSError:
            return 0

    def mem_get_info(self):
        self.begin()
        free = ctypes.c_size_t()
        total = ctypes.c_size_t()
        self.runtime.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def begin(self):
        if self.runtime is None:
            self.runtime = ctypes.CDLL("libcudart.so.12")
            for function in self.waiting:
                function()

    def record(self, enabled, context, stacks, max_entries, clear_history):
        if enabled not in (None, "all", "state"):
            raise RuntimeError("expected state to be 'state', 'all', or None")
        if enabled is None or clear_history or self.history is None:
            self.history = None if enabled is None else []
        self.max_entries = max_entries
        self.has_stacks = context is not None

    def frames(self):
        """Innermost first, without those of this file."""
        stack = traceback.extract_stack() if self.has_stacks else []
        return [{"name": frame.name, "filename": frame.filename, "line": frame.lineno}
                for frame in reversed(stack) if frame.filename != __file__]

    def note(self, action, address, size, **more):
        if self.history is not None:
            self.history.append({"action": action, "addr": address, "size": size, "stream": 0,
                                 "time_us": time.time_ns() // 1000, "frames": self.frames(), **more})
            del self.history[:-self.max_entries]

    def malloc(self, size):
        address = ctypes.c_void_p()
        if self.runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(size)) != 0:
            return None
        self.mallocs += 1
        return address.value

    def release(self, address, size):
        self.runtime.cudaFree(ctypes.c_void_p(address))
        self.frees += 1
        del self.sizes[address]
        self.note("segment_free", address, size)

    def take_segment(self, segment):
        address = self.malloc(segment)
        if address is None and any(self.free.values()):
            self.empty()
            address = self.malloc(segment)
        return address

    def empty(self):
        for size, addresses in self.free.items():
            for idle in addresses:
                self.release(idle, size)
        self.free.clear()

    def take(self, size):
        self.begin()
        segment = (size + PAGE - 1) // PAGE * PAGE
        if self.free.get(segment):
            address = self.free[segment].pop()
        else:
            address = self.take_segment(segment)
            if address is None:
                return self.fail(size)
            self.sizes[address] = segment
            self.note("segment_alloc", address, segment)
        self.count += 1
        self.live[address] = size
        self.raise_peaks()
        self.note("alloc", address, size)
        return address

    def fail(self, size):
        free, total = self.mem_get_info()
        self.ooms += 1
        self.note("oom", free, size, device_free=free)
        for observer in observers:
            observer(0, size, total, free)
        raise OutOfMemoryError("CUDA out of memory. Tried to allocate %.2f MiB. GPU 0 has a total capacity of %.2f GiB "
                               "of which %.2f MiB is free." % (size / MIB, total / 1024 / MIB, free / MIB))

    def give_back(self, address):
        size = self.live.pop(address)
        self.note("free_requested", address, size)
        self.note("free_completed", address, size)
        self.free.setdefault(self.sizes[address], []).append(address)

    def snapshot(self, pool):
        segments = []
        history = [dict(entry) for entry in self.history or []]
        for address, segment in sorted(self.sizes.items()):
            size = self.live.get(address)
            blocks = [{"address": address, "size": segment, "requested_size": size or 0,
                       "state": "active_allocated" if size else "inactive", "frames": []}]
            segments.append({"device": 0, "address": address, "total_size": segment, "stream": 0,
                             "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False,
                             "allocated_size": segment if size else 0, "active_size": segment if size else 0,
                             "requested_size": size or 0, "frames": [], "blocks": blocks})
        self.note("snapshot", 0, sum(self.live.values()))
        return {"segments": segments, "device_traces": [history],
                "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1,
                                       "garbage_collection_threshold": 0.0, "expandable_segments": False,
                                       "pinned_num_register_threads": 1, "release_lock_on_cudamalloc": False,
                                       "pinned_use_cuda_host_register": False, "roundup_power2_divisions": {}}}


device = Device()


class Block:
    def __init__(self, size):
        self.address = device.take(size)

    def __del__(self):
        if getattr(self, "address", None) is not None and device is not None:
            device.give_back(self.address)


def read_value(kind=ctypes.c_float):
    """A number of four bytes that was never written to the device, read as .item() would."""
    device.begin()
    number = kind()
    if not device.live:
        device.kept = Block(10 * MIB)
    address = next(iter(device.live))
    device.runtime.cudaMemcpy(ctypes.byref(number), ctypes.c_void_p(address), ctypes.c_size_t(4), ctypes.c_int(2))
    return number.value
