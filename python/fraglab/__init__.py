"""What a program's GPU-memory requests do to an allocator, without a GPU.

    import fraglab

    recording = fraglab.open("snapshot.pickle")
    result = recording.run("pytorch:expandable_segments=true", capacity="24GiB")
    print(result.peak.reserved_bytes, result.oom)

Sizes are bytes, times nanoseconds, events count from 0. Calls let other Python threads run, Ctrl-C ends a
long one, and what fails is a ``fraglab.Error`` with the place and one sentence. Nothing here imports PyTorch.
"""
from __future__ import annotations

from fraglab._native import Cancelled, Error, HostMemoryError, InputError, InputWarning, SystemFailure, UsageError, library
from fraglab._places import find_bin, find_library, find_samples
from fraglab._policy import Device, Policy
from fraglab._record import OomWatch, Session, record
from fraglab._recording import Recording, Trace, open
from fraglab._results import Columns, Fields, Layout, Result, Timeline
from fraglab._studies import Comparison, Tuned, cards, compare, diff, explain, limit_memory, plan, policies, ranks, sweep, tune

__all__ = [
    "Cancelled", "Columns", "Comparison", "Device", "Error", "Fields", "HostMemoryError", "InputError", "InputWarning", "Layout", "OomWatch", "Policy", "Recording", "Result", "Session", "SystemFailure", "Timeline", "Trace", "Tuned", "UsageError",
    "cards", "commit", "compare", "diff", "explain", "find_bin", "find_library", "find_samples", "limit_memory", "open", "plan", "policies", "ranks", "record", "sweep", "tune", "version",
]


def version() -> str:
    """Of the library: "0.1.0"."""
    return library.version().decode()


def commit() -> str:
    """Of its source, or "unknown"."""
    return library.commit().decode()


def __getattr__(name: str) -> str:
    if name == "__version__":
        return version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load_ipython_extension(shell) -> None:
    """``%load_ext fraglab``: the magics %fraglab and %%fraglab (docs/python.md)."""
    from fraglab._magic import Magic

    Magic(shell).register()
