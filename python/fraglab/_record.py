"""Recording from Python: ``with fraglab.record("x.pickle"):``, phases of training, and what is done when memory runs out."""
from __future__ import annotations

import contextlib
import functools
import os
import pickle
import sys
import threading
import time
import weakref
from typing import Any, Callable, Iterator

from fraglab import _phases, _torch
from fraglab._arguments import count, flag, path
from fraglab._native import SystemFailure, UsageError
from fraglab._phases import Mark
from fraglab._recording import Recording, open as open_recording
from fraglab._pictures import show_bytes


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _now_us() -> int:
    return time.time_ns() // 1000


def _write(file: str, snapshot: dict[str, Any]) -> None:
    """The file is whole or not there."""
    beside = f"{file}.{os.getpid()}.tmp"
    try:
        with open(beside, "wb") as stream:
            with contextlib.suppress(OSError):  # a file that is replaced keeps its permissions
                os.fchmod(stream.fileno(), os.stat(file).st_mode & 0o777)
            pickle.dump(snapshot, stream)
        os.replace(beside, file)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise SystemFailure(f"{file}: the recording cannot be written ({error.strerror})", 4, file) from None


class Hooks:
    """What tells of steps and passes: all of PyTorch's optimizers call global hooks, and backward() goes through torch.autograd.backward."""

    def __init__(self, torch: Any) -> None:
        self.autograd, self.backward, self.depth = torch.autograd, torch.autograd.backward, 0
        import importlib

        optimizer = importlib.import_module("torch.optim.optimizer")
        self.handles = [register(hook) for register, hook in ((getattr(optimizer, "register_optimizer_step_pre_hook", None), self.before_step),
                                                               (getattr(optimizer, "register_optimizer_step_post_hook", None), self.after_step)) if register is not None]

        @functools.wraps(self.backward)
        def backward(*arguments: Any, **named: Any) -> Any:
            self.depth += 1  # a checkpoint calls it once more inside
            if self.depth == 1:
                _for_all(lambda session: session._enter_phase("backward"))
            try:
                return self.backward(*arguments, **named)
            finally:
                self.depth -= 1
                if self.depth == 0:
                    _for_all(lambda session: session._enter_phase("forward"))

        self.replaced = backward
        torch.autograd.backward = backward

    def before_step(self, *_: Any) -> None:
        _for_all(lambda session: session._enter_phase("optimizer"))

    def after_step(self, optimizer: Any, *_: Any) -> None:
        _for_all(lambda session: session._after_step(optimizer))

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()
        if self.autograd.backward is self.replaced:
            self.autograd.backward = self.backward


_sessions: list["Session"] = []
_hooks: Hooks | None = None
_lock = threading.RLock()


def _for_all(do: Callable[["Session"], None]) -> None:
    for session in tuple(_sessions):
        do(session)


class Session:
    """One recording: a context manager, or what decorates a function. Made by ``fraglab.record``.

    ``steps_done`` optimizer steps so far; afterwards ``file`` (None: not written), ``recording`` (a Recording; None:
    nothing was recorded), ``peaks`` (by phase: name, requested_bytes, reserved_bytes; of the device that holds most, ``peaks_device``) and ``answer`` (the text).
    """

    def __init__(self, file: Any = None, *, steps: int | None = None, skip: int = 0, stacks: bool = False, max_entries: int | None = None, quiet: bool = False) -> None:
        self.file: str | None = os.fsdecode(path(file, "file")) if file is not None else None
        self._arguments = dict(file=file, steps=steps, skip=skip, stacks=stacks, max_entries=max_entries, quiet=quiet)
        self._steps = count(steps, "steps") if steps is not None else None
        if self._steps == 0:
            raise UsageError("steps: 0 is out of range; expected 1 or more, or None", where="steps")
        self._skip, self._stacks = count(skip, "skip"), bool(flag(stacks, "stacks"))
        self._entries = count(max_entries, "max_entries") if max_entries is not None else None
        self._quiet = bool(flag(quiet, "quiet"))
        self.steps_done = 0
        self.peaks: list[_phases.Peak] = []
        self.peaks_device = 0
        self.answer = ""
        self._snapshot: dict[str, Any] | None = None
        self._recording: Recording | None = None
        self._marks: list[Mark] = []
        self._phase: str | None = None
        self._counts: Any = weakref.WeakKeyDictionary()
        self._torch: Any = None
        self._state = "new"
        self._begun_us = 0
        self._was_on = False
        self._owner = 0

    # ---- from begin to end

    def start(self) -> "Session":
        """Begin; from a notebook or a callback, where ``with`` cannot stand."""
        global _hooks
        if self._state != "new":
            raise UsageError("this recording has been started already; make a new one with fraglab.record(...)")
        self._torch = _torch.load()
        self._state = "waiting"
        with _lock:
            _sessions.append(self)
            if _hooks is None:
                _hooks = Hooks(self._torch)
        if self._skip == 0:
            self._torch.cuda._lazy_call(self._begin)  # CUDA is not initialised for us: the program may fork first
        return self

    def _begin(self) -> None:
        if self._state != "waiting":
            return
        self._was_on = _torch.is_history_on(self._torch)
        if not self._was_on:  # the program's own stays as it is
            _torch.start_history(self._torch, self._stacks, self._entries)
        self._owner, self._begun_us, self._state = os.getpid(), _now_us(), "recording"
        self._enter_phase("forward")

    def stop(self) -> "Session":
        """End: writes the file and prints the answer. Again does nothing, as when the steps are over."""
        global _hooks
        with _lock:
            if self._state in ("new", "ended"):
                return self
            was_recording = self._state == "recording" and self._owner == os.getpid()
            self._enter_phase(None)
            self._state = "ended"
            if self in _sessions:
                _sessions.remove(self)
            if not _sessions and _hooks is not None:
                _hooks.remove()
                _hooks = None
        if was_recording:
            self._finish()
        else:
            self._tell(f"fraglab: nothing was recorded, as CUDA was not used{'' if self._skip == 0 else f' or there were no more than {self._skip} steps'}; {_torch.NO_GPU}"
                       if not self._torch.cuda.is_available() else "fraglab: nothing was recorded, as CUDA was not used meanwhile")
        return self

    def _finish(self) -> None:
        snapshot = self._torch.cuda.memory._snapshot()
        if not self._was_on:
            _torch.stop_history(self._torch)
        _phases.keep_since(snapshot, self._begun_us if self._was_on else 0)
        self._marks = _phases.without_empty(self._marks, snapshot)
        self.peaks, self.peaks_device = _phases.peaks(snapshot, self._marks), _phases.main_device(snapshot)
        _phases.annotate(snapshot, self._marks)
        self._snapshot = snapshot
        if self.file is not None:
            self.file = _torch.rank_path(self.file)
            _write(self.file, snapshot)
        self._tell(self._make_answer())

    @property
    def recording(self) -> Recording | None:
        """What was recorded, opened."""
        if self._recording is None and self._snapshot is not None:
            self._recording = open_recording(self._snapshot, name=os.path.basename(self.file) if self.file else "recorded")
        return self._recording

    def __enter__(self) -> "Session":
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """As a decorator: each call is a recording of its own; the file is that of the last one."""
        if not callable(function):
            raise TypeError(f"{type(function).__name__} cannot be decorated; expected a function")

        @functools.wraps(function)
        def recorded(*arguments: Any, **named: Any) -> Any:
            with Session(**self._arguments):
                return function(*arguments, **named)

        return recorded

    # ---- phases

    def _mark(self, name: str, stage: str = "") -> None:
        if self._state == "recording":
            self._marks.append(Mark(_now_us(), name, stage))

    def _enter_phase(self, name: str | None) -> None:
        """Ends the phase that hooks have begun, and begins another one; None: none."""
        if self._phase is not None:
            self._mark(self._phase, "END")
        if name is not None:
            self._mark(name, "START")
        self._phase = name

    def _after_step(self, optimizer: Any) -> None:
        """Of several optimizers, such as a GAN's, the one with the most steps numbers them, and that with the fewest ends."""
        self._counts[optimizer] = self._counts.get(optimizer, 0) + 1
        most = max(self._counts.values())
        if self._state == "waiting" and self._skip and most >= self._skip:
            self._counts.clear()
            self._skip = 0
            self._torch.cuda._lazy_call(self._begin)
            return
        if self._state != "recording":
            return
        self._enter_phase(None)
        if most > self.steps_done:
            self.steps_done = most
            self._mark(f"step {most}")
        if self._steps is not None and min(self._counts.values()) >= self._steps:
            self.stop()
        else:
            self._enter_phase("forward")

    # ---- the answer

    def _tell(self, text: str) -> None:
        self.answer = text
        if not self._quiet:
            _say(text)

    def _make_answer(self) -> str:
        assert self._snapshot is not None
        where = f" in {self.file}" if self.file else ""
        lines = [f"fraglab: {self.steps_done} step{'' if self.steps_done == 1 else 's'}, {_phases.request_count(self._snapshot):,} requests recorded{where} (torch {self._torch.__version__})"]
        lines += [f"  {'peak':<14} {'requested':>12} {'reserved':>12}"]
        lines += [f"  {peak.name:<14} {show_bytes(peak.requested_bytes):>12} {show_bytes(peak.reserved_bytes):>12}" for peak in self.peaks]
        if _phases.ran_out(self._snapshot) and self.recording is not None:
            lines.append(self.recording.explain_text().rstrip())
        else:
            lines += self._verdict()
        if self.file:
            lines.append(f"  next: fraglab explain {self.file}; fraglab tune {self.file}")
        return "\n".join(lines)

    def _verdict(self) -> Iterator[str]:
        cuda, device = self._torch.cuda, self.peaks_device
        free, total = cuda.mem_get_info(device)
        left = free + cuda.memory_reserved(device) - self.peaks[-1].reserved_bytes
        yield f"  left of the card's {show_bytes(total)} at the peak: {show_bytes(max(left, 0))}"
        recording = self.recording
        if recording is None or _phases.request_count(self._snapshot or {}) == 0:
            return
        now = recording.run("pytorch:recorded").peak.reserved_bytes
        other = recording.run("pytorch:recorded,expandable_segments=true").peak.reserved_bytes
        if other < now * 0.98:
            yield f"  PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True would need {show_bytes(now - other)} less"


class OomWatch:
    """Waits for memory to run out. ``files``: what was written. Ends with ``close`` or as a context manager."""

    def __init__(self, file: Any = "oom.pickle", *, stacks: bool = True, max_entries: int | None = 100_000, keep: int = 3, quiet: bool = False) -> None:
        self._file = os.fsdecode(path(file, "file")) if file is not None else None
        self._keep, self._quiet = count(keep, "keep"), bool(flag(quiet, "quiet"))
        self._stacks = bool(flag(stacks, "stacks"))
        self._entries = count(max_entries, "max_entries") if max_entries is not None else None
        self.files: list[str] = []
        self.count = 0
        self.answer = ""
        self._is_open = True
        self._did_start = False
        self._torch = _torch.load()
        self._torch.cuda._lazy_call(self._begin)
        _torch.listen_for_oom(self._torch, self._on_oom)

    def _begin(self) -> None:
        self._did_start = self._is_open and not _torch.is_history_on(self._torch)
        if self._did_start:
            _torch.start_history(self._torch, self._stacks, self._entries)

    def _on_oom(self, device: int, requested: int, _allocated: int, _free: int) -> None:
        self.count += 1
        if self.count > self._keep:
            return  # a program that catches the error and tries again would fill the disk
        snapshot = self._torch.cuda.memory._snapshot()
        lines = [f"fraglab: GPU {device} ran out of memory: {show_bytes(requested)} requested"]
        if self._file is not None:
            stem, end = os.path.splitext(_torch.rank_path(self._file))
            file = f"{stem}{end}" if self.count == 1 else f"{stem}-{self.count}{end}"
            _write(file, snapshot)
            self.files.append(file)
            lines.append(f"recorded in {file}; fraglab report {file} -o page.html draws it")
        lines.append(open_recording(snapshot, name=os.path.basename(self.files[-1]) if self.files else "recorded").explain_text().rstrip())
        self.answer = "\n".join(lines)
        if not self._quiet:
            _say(self.answer)

    def close(self) -> None:
        """Stop waiting."""
        if not self._is_open:
            return
        self._is_open = False
        _torch.unlisten_for_oom(self._on_oom)
        if self._did_start:
            _torch.stop_history(self._torch)

    def __enter__(self) -> "OomWatch":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class Recorder:
    """Record what PyTorch asks of GPU memory: ``with fraglab.record("x.pickle"):``, or ``@fraglab.record("x.pickle")``.

    file: the recording, as torch.cuda.memory._dump_snapshot() writes it; a second rank's is FILE-rank1; None: only
    in memory. steps: end after so many optimizer steps; skip: begin after so many. stacks=True: which line asked for
    what. max_entries: keep the last so many. quiet=True: print nothing. Phases (forward, backward, optimizer) and steps
    are marked by hooks. Works on a GPU, and in `fraglab dryrun` without one. PyTorch is imported when it begins.
    """

    def __call__(self, file: Any = None, **options: Any) -> Session:
        return Session(file, **options)

    def on_oom(self, file: Any = "oom.pickle", **options: Any) -> OomWatch:
        """From now on, when memory runs out: write the file at once and explain on stderr, whether or not the program catches the error.

        stacks (True), max_entries (100,000: the last ones), keep (3: so many files at most; then x-2.pickle), quiet.
        """
        return OomWatch(file, **options)

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Mark a phase of the program in every recording that runs, such as "evaluation"; without one it does nothing."""
        if not isinstance(name, str):
            raise TypeError(f"name is {type(name).__name__}; expected str")
        before = [(session, session._phase) for session in tuple(_sessions)]
        _for_all(lambda session: session._enter_phase(name))
        try:
            yield
        finally:
            for session, phase in before:
                session._enter_phase(phase if session._state == "recording" else None)

    def mark(self, name: str) -> None:
        """Mark a point."""
        if not isinstance(name, str):
            raise TypeError(f"name is {type(name).__name__}; expected str")
        _for_all(lambda session: session._mark(name))

    def __repr__(self) -> str:
        return "<fraglab.record>"


record = Recorder()
