"""What recording needs of PyTorch: its history of the caching allocator, its out-of-memory observer. Imports torch only when asked."""
from __future__ import annotations

import os
import sys
from typing import Any, Callable

from fraglab._native import SystemFailure

UNBOUNDED = 2**62
NO_GPU = "this machine has no GPU that PyTorch can use; run the program without one: fraglab dryrun --gpu rtx4090 -- python ..."


def load() -> Any:
    """torch, built for CUDA."""
    try:
        import torch
    except ImportError as error:
        raise SystemFailure(f"recording needs PyTorch, which cannot be imported ({error}); install torch for CUDA in {sys.prefix}", 4) from None
    if getattr(torch.version, "cuda", None) is None:
        raise SystemFailure(f"torch {torch.__version__} is not built for CUDA; recording needs a build for CUDA, which a dry run runs without a GPU too", 4)
    return torch


def is_history_on(torch: Any) -> bool:
    asked = getattr(torch._C, "_cuda_isHistoryEnabled", None)
    return bool(asked()) if asked is not None else False


def start_history(torch: Any, stacks: bool, max_entries: int | None) -> None:
    """The arguments changed twice: 2.1 and newer, 2.0."""
    record, entries = torch.cuda.memory._record_memory_history, max_entries or UNBOUNDED
    try:
        record(enabled="all", context="alloc" if stacks else None, stacks="python", max_entries=entries)
    except TypeError:
        record(enabled=True, record_context=stacks, trace_alloc_max_entries=entries, trace_alloc_record_context=stacks)


def stop_history(torch: Any) -> None:
    try:
        torch.cuda.memory._record_memory_history(enabled=None)
    except TypeError:
        torch.cuda.memory._record_memory_history(enabled=False)


def rank_path(file: str) -> str:
    """Rank 0 writes the file itself, rank 1 FILE-rank1, as a dry run does."""
    rank = os.environ.get("RANK", "")
    return f"{file}-rank{rank}" if rank.isdigit() and int(rank) > 0 else file


_oom_listeners: list[Callable[[int, int, int, int], None]] = []
_observed: set[int] = set()  # processes, as a fork may come between


def listen_for_oom(torch: Any, listener: Callable[[int, int, int, int], None]) -> None:
    """PyTorch has no way to take an observer back, so it gets one, once, when CUDA is initialised."""
    _oom_listeners.append(listener)
    if os.getpid() not in _observed:
        _observed.add(os.getpid())
        torch.cuda._lazy_call(lambda: torch._C._cuda_attach_out_of_memory_observer(_tell_oom))


def unlisten_for_oom(listener: Callable[[int, int, int, int], None]) -> None:
    if listener in _oom_listeners:
        _oom_listeners.remove(listener)


def _tell_oom(device: int, requested: int, allocated: int, free: int) -> None:
    for listener in list(_oom_listeners):
        try:
            listener(device, requested, allocated, free)
        except Exception as error:  # the program's own error is the one to be raised
            print(f"fraglab: what was recorded when memory ran out is lost: {error}", file=sys.stderr)
