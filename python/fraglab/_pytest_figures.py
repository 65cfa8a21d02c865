"""What a test needed of GPU memory, measured in the process that runs it: PyTorch's own counts, and who held the memory."""
from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import os
import sys
from typing import Any, Iterator

from fraglab import _phases, _torch

# Names of the figures, and of PyTorch's counts that they come from.
PEAKS = {"requested_bytes": "requested_bytes.all.peak", "allocated_bytes": "allocated_bytes.all.peak", "reserved_bytes": "reserved_bytes.all.peak"}
POINTS = 400  # of a drawn timeline


def is_dry() -> bool:
    return bool(os.environ.get("FRAGLAB_DRYRUN"))


@functools.lru_cache(maxsize=1)
def digest() -> str:
    """Of the software CUDA that this process runs on, as its answers are part of the figures; "" on a GPU."""
    found = hashlib.sha256()
    files = [path for path in os.environ.get("LD_PRELOAD", "").split(":") if "software-cuda" in path] if is_dry() else []
    for path in files:
        with open(path, "rb") as file:
            found.update(os.path.basename(path).encode() + b"\0" + file.read())
    return found.hexdigest()[:16] if files else ""


def unknown_reads() -> dict[str, int]:
    """How often a value was read, by place, that only a GPU would compute; nothing on a GPU."""
    run = getattr(sys.modules.get("fraglab_dryrun"), "run", None)
    return dict(getattr(run, "places", {}))


def used_torch() -> Any:
    """torch, if it is imported and uses CUDA."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and hasattr(torch, "cuda") and torch.cuda.is_initialized() else None


def settle(torch: Any) -> None:
    """Gives back what nobody refers to any more, and the workspaces that cuBLAS keeps for each thread."""
    gc.collect()
    clear = getattr(torch._C, "_cuda_clearCublasWorkspaces", None)
    if clear is not None:
        clear()


def live_bytes() -> int:
    """Requested bytes of live blocks on all devices."""
    torch = used_torch()
    if torch is None:
        return 0
    settle(torch)
    return sum(torch.cuda.memory_stats(device).get("requested_bytes.all.current", 0) for device in range(torch.cuda.device_count()))


class Meter:
    """One test: from before its setup to after its teardown."""

    def __init__(self) -> None:
        self.peaks: dict[int, dict[str, int]] = {}
        self.live_before = 0
        self.calls_before = 0
        self.reset: Any = None
        self.started_history = False

    def begin(self) -> None:
        torch = used_torch()
        if torch is not None:
            self.live_before = live_bytes()
            torch.cuda.empty_cache()
            self.calls_before = self._device_calls(torch)
        if "torch" in sys.modules and getattr(getattr(sys.modules["torch"], "version", None), "cuda", None) is not None:
            sys.modules["torch"].cuda._lazy_call(self._begin_counting)

    def begin_late(self) -> None:
        """Where the test, or a fixture, was what imported torch."""
        if self.reset is None and not self.started_history:
            torch = used_torch()
            if torch is not None:
                self._begin_counting()

    def _begin_counting(self) -> None:
        torch = sys.modules["torch"]
        reset = getattr(torch._C, "_cuda_resetPeakMemoryStats", None)
        for device in range(torch.cuda.device_count()):
            torch.cuda.reset_peak_memory_stats(device)
        if reset is not None and self.reset is None:
            self.reset = reset

            def reset_later(device: int) -> Any:
                self._note_peaks(device)  # a test that resets the peaks for its own figures
                return reset(device)

            torch._C._cuda_resetPeakMemoryStats = reset_later
        if not _torch.is_history_on(torch):
            with contextlib.suppress(RuntimeError):  # cudaMallocAsync keeps none
                _torch.start_history(torch, True, None)
                self.started_history = True

    def _device_calls(self, torch: Any) -> int:
        stats = [torch.cuda.memory_stats(device) for device in range(torch.cuda.device_count())]
        return sum(found.get("num_device_alloc", found.get("segment.all.allocated", 0)) + found.get("num_device_free", found.get("segment.all.freed", 0)) for found in stats)

    def _note_peaks(self, device: int) -> None:
        stats = sys.modules["torch"].cuda.memory_stats(device)
        peaks = self.peaks.setdefault(device, dict.fromkeys(PEAKS, 0))
        for name, stat in PEAKS.items():
            peaks[name] = max(peaks[name], stats.get(stat, 0))

    def figures(self) -> dict[str, Any]:
        """Those of the device that reserved most; zeros where CUDA was not used."""
        torch = used_torch()
        if torch is None:
            return {**dict.fromkeys(PEAKS, 0), "device_calls": 0, "torch": None, "gpu": None}
        for device in range(torch.cuda.device_count()):
            self._note_peaks(device)
        device = max(self.peaks, key=lambda number: self.peaks[number]["reserved_bytes"])
        return {**self.peaks[device], "device_calls": self._device_calls(torch) - self.calls_before, "torch": str(torch.__version__), "gpu": torch.cuda.get_device_name(device)}

    def snapshot(self) -> dict[str, Any] | None:
        torch = used_torch()
        return torch.cuda.memory._snapshot() if torch is not None and self.started_history else None

    def end(self) -> None:
        torch = used_torch()
        if torch is None:
            return
        if self.reset is not None:
            torch._C._cuda_resetPeakMemoryStats = self.reset
        if self.started_history:
            _torch.stop_history(torch)


# ---- who held the memory


def is_library(path: str) -> bool:
    torch = getattr(sys.modules.get("torch"), "__file__", None)
    return "site-packages" in path or "dist-packages" in path or bool(torch and path.startswith(os.path.dirname(torch)))


def place(frames: list[dict[str, Any]]) -> str:
    """The innermost line that is not of an installed package, else of any."""
    lines = [frame for frame in frames if frame["line"]]
    own = [frame for frame in lines if not is_library(frame["filename"])]
    return next((f"{os.path.basename(frame['filename'])}:{frame['line']} {frame['name']}" for frame in own or lines), "without a call stack")


def walk(snapshot: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any], int, int]]:
    """Of the device that holds most: entry, and requested and reserved bytes after it."""
    device = _phases.main_device(snapshot)
    requested, reserved = _phases.start(snapshot, device)
    for number, entry in enumerate(snapshot["device_traces"][device] if snapshot["device_traces"] else ()):
        change = _phases.CHANGES.get(entry["action"])
        if change is not None:
            requested += change[0] * entry["size"]
            reserved += change[1] * entry["size"]
        yield number, entry, requested, reserved


def holders(snapshot: dict[str, Any], at_end: bool) -> list[tuple[str, int, int]]:
    """Places with bytes and blocks that were live at the peak of requested bytes, or are at the end; the largest first."""
    live: dict[int, tuple[str, int]] = {}
    peak, found = -1, {}
    for _, entry, requested, _ in walk(snapshot):
        if entry["action"] == "alloc":
            live[entry["addr"]] = (place(entry.get("frames", [])), entry["size"])
        elif entry["action"] == "free_completed":
            live.pop(entry["addr"], None)
        if requested > peak and not at_end:
            peak, found = requested, dict(live)
    sums: dict[str, list[int]] = {}
    for name, size in (live if at_end else found).values():
        sums.setdefault(name, [0, 0])
        sums[name][0] += size
        sums[name][1] += 1
    return sorted(((name, *pair) for name, pair in sums.items()), key=lambda row: (-row[1], row[0]))


def timeline(snapshot: dict[str, Any]) -> list[tuple[int, int, int]]:
    """(event, requested, reserved), thinned out: of each stretch the last entry and the highest."""
    levels = [(number, requested, reserved) for number, _, requested, reserved in walk(snapshot)]
    step = max(1, len(levels) * 2 // POINTS)
    kept = []
    for begin in range(0, len(levels), step):
        stretch = levels[begin:begin + step]
        kept += sorted({max(stretch, key=lambda level: level[1]), stretch[-1]})
    return kept
