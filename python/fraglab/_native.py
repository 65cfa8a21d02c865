"""libfraglab.so.0 through ctypes: structures, functions, errors, and contexts that Ctrl-C ends."""
from __future__ import annotations

import ctypes
import sys
import threading
import warnings
from ctypes import POINTER, byref, c_char, c_char_p, c_int, c_int32, c_size_t, c_uint32, c_uint64, c_void_p, sizeof
from typing import Sequence

from fraglab._places import find_library

UNLIMITED = 2**64 - 1
ALL_TRACES = ctypes.c_size_t(-1).value


# ---- errors


class Error(Exception):
    """A call failed. ``str()`` is the place and one sentence: what was found, and what would be right.

    ``code`` is that of the library (2 usage, 3 input, 4 system, 5 host memory, 6 cancelled); ``where`` a
    file, option or member, or ""; ``line`` and ``column`` count from 1, ``offset`` is a byte of the file
    after decompression; None: not known. That simulated memory runs out is no error but a result.
    """

    def __init__(self, text: str, code: int = 2, where: str = "", sentence: str = "", line: int | None = None, column: int | None = None, offset: int | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.code, self.where, self.sentence = code, where, sentence or text
        self.line, self.column, self.offset = line, column, offset

    def __str__(self) -> str:
        return self.text

    def __reduce__(self):
        return type(self), (self.text, self.code, self.where, self.sentence, self.line, self.column, self.offset)


class UsageError(Error, ValueError):
    """What the caller asks for is wrong: an unknown policy, a bad option, a closed recording."""


class InputError(Error, ValueError):
    """A file's content is wrong, or it cannot be opened."""


class SystemFailure(Error, OSError):
    """The operating system refused."""


class HostMemoryError(Error, MemoryError):
    """Host memory ran out."""


class Cancelled(Error):
    """A callback of the caller ended the call."""


class InputWarning(UserWarning):
    """Something to know about an input that was read all the same."""


KINDS = {2: UsageError, 3: InputError, 4: SystemFailure, 5: HostMemoryError, 6: Cancelled}


class ErrorRecord(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("code", c_int32), ("has_offset", c_int32), ("line", c_uint64), ("column", c_uint64), ("offset", c_uint64),
                ("where", c_char * 256), ("sentence", c_char * 512)]


# ---- structures, as in fraglab.h


class Sized(ctypes.Structure):
    """A structure whose first member is its own size."""

    def __init__(self, **members) -> None:
        super().__init__(size=sizeof(type(self)), **members)


class ContextOptions(Sized):
    _fields_ = [("size", c_size_t), ("user", c_void_p), ("is_cancelled", c_void_p), ("progress", c_void_p), ("warn", c_void_p), ("environment", c_void_p), ("threads", c_uint32)]


class OpenOptions(Sized):
    _fields_ = [("size", c_size_t), ("format", c_char_p), ("name", c_char_p), ("with_sites", c_int32)]


class Facts(Sized):
    _fields_ = [("size", c_size_t), ("device", c_uint64), ("event_count", c_uint64), ("request_count", c_uint64), ("failed_count", c_uint64), ("stream_count", c_uint64),
                ("pool_count", c_uint64), ("initial_bytes", c_uint64), ("peak_requested_bytes", c_uint64), ("peak_requested_event", c_uint64), ("bound_bytes", c_uint64),
                ("observed_reserved_peak_bytes", c_uint64), ("digest", c_char * 33)]


class CutOptions(Sized):
    _fields_ = [("size", c_size_t), ("first_event", c_uint64), ("end_event", c_uint64), ("start_ns", c_uint64), ("end_ns", c_uint64), ("first_mark", c_char_p), ("last_mark", c_char_p)]


class Event(ctypes.Structure):
    _fields_ = [("op", c_uint32), ("pool", c_uint32), ("id", c_uint64), ("bytes", c_uint64), ("stream", c_uint64), ("time_ns", c_uint64)]


class Frame(ctypes.Structure):
    _fields_ = [("function", c_char_p), ("file", c_char_p), ("line", c_uint32)]


class BuilderOptions(Sized):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("device", c_uint32)]


class PolicyRequest(ctypes.Structure):
    _fields_ = [("bytes", c_uint64), ("stream", c_uint32), ("pool", c_uint32)]


class PolicyGrant(ctypes.Structure):
    _fields_ = [("address", c_uint64), ("bytes", c_uint64)]


class PolicyFunctions(Sized):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("user", c_void_p), ("begin", c_void_p), ("alloc", c_void_p), ("free", c_void_p), ("empty_cache", c_void_p)]


class RunOptions(Sized):
    _fields_ = [("size", c_size_t), ("capacity_bytes", c_uint64), ("used_by_others_bytes", c_uint64), ("label", c_char_p), ("gpu", c_char_p), ("latency", c_char_p),
                ("address_rule", c_char_p), ("fail_call", c_uint64), ("check_every", c_uint64), ("skip_oom", c_int32), ("with_bounds", c_int32), ("stats_at", c_char_p), ("with_timing", c_int32)]


class RunFileOptions(Sized):
    _fields_ = [("size", c_size_t), ("at", c_char_p), ("overwrite", c_int32)]


class Capacity(Sized):
    _fields_ = [("size", c_size_t), ("capacity_bytes", c_uint64), ("failing_above_bytes", c_uint64), ("enough_bytes", c_uint64), ("runs", c_uint64), ("below_event", c_uint64),
                ("below_requested_bytes", c_uint64)]


class VerifyOptions(Sized):
    _fields_ = [("size", c_size_t), ("capacity_bytes", c_uint64), ("count_all", c_int32)]


class Sample(ctypes.Structure):
    _fields_ = [(name, c_uint64) for name in ("event", "requested_bytes", "allocated_bytes", "active_bytes", "reserved_bytes")]


class Placement(ctypes.Structure):
    _fields_ = [(name, c_uint64) for name in ("event", "free_event", "end_event", "address", "block_bytes", "rounded_bytes")]


class Segment(ctypes.Structure):
    _fields_ = [(name, c_uint64) for name in ("begin_event", "end_event", "address", "bytes")] + [("stream", c_uint32), ("pool", c_uint32)]


class Span(ctypes.Structure):
    _fields_ = [(name, c_uint32) for name in ("kind", "stream", "pool", "is_waiting")] + [(name, c_uint64) for name in ("address", "bytes", "requested_bytes")]


class DiffOptions(Sized):
    _fields_ = [("size", c_size_t), ("by", c_char_p), ("at_before", c_char_p), ("at_after", c_char_p), ("policy", c_void_p), ("without_replays", c_int32)]


class LeaksOptions(Sized):
    _fields_ = [("size", c_size_t), ("mark", c_char_p), ("policy", c_void_p)]


class RanksOptions(Sized):
    _fields_ = [("size", c_size_t), ("numbers", POINTER(c_uint32)), ("stages", POINTER(c_char_p)), ("stage_count", c_size_t), ("policy", c_void_p), ("tries_settings", c_int32)]


class ExplainOptions(Sized):
    _fields_ = [("size", c_size_t), ("capacity_bytes", c_uint64), ("memory_fraction", c_char_p), ("whole", c_void_p), ("policies", POINTER(c_void_p)), ("policy_count", c_size_t),
                ("as_text", c_int32)]


class SweepOptions(Sized):
    _fields_ = [("size", c_size_t), ("folder", c_char_p), ("user", c_void_p), ("row", c_void_p), ("output", c_char_p), ("overwrite", c_int32), ("counts_only", c_int32), ("replay_all", c_int32)]


class PlanOptions(Sized):
    _fields_ = [("size", c_size_t), ("gpu", c_char_p), ("conf", c_char_p), ("knobs", POINTER(c_char_p)), ("knob_count", c_size_t)]


class TuneOptions(Sized):
    _fields_ = [("size", c_size_t), ("held_out", POINTER(c_void_p)), ("held_out_count", c_size_t), ("goal", c_int32), ("with_bounds", c_int32), ("settings", c_uint64),
                ("max_seconds", c_uint64), ("seed", c_uint64), ("device", POINTER(RunOptions))]


class CompareOptions(Sized):
    _fields_ = [("size", c_size_t), ("fail_above", c_char_p), ("thresholds", POINTER(c_char_p)), ("threshold_count", c_size_t), ("metrics", POINTER(c_char_p)), ("metric_count", c_size_t),
                ("allow_missing", c_int32)]


# ---- functions: name, type of the result, types of the arguments

_E = POINTER(ErrorRecord)
_H = POINTER(c_void_p)  # where a handle, a text or bytes are stored
_FUNCTIONS = {
    "version": (c_char_p, []),
    "commit": (c_char_p, []),
    "free": (None, [c_void_p]),
    "error_text": (c_void_p, [_E, c_char_p, c_size_t]),
    "context_create": (c_int, [POINTER(ContextOptions), _H, _E]),
    "context_destroy": (None, [c_void_p]),
    "limit_memory": (c_int, [c_uint64, c_char_p, _E]),
    "open_path": (c_int, [c_void_p, c_char_p, POINTER(OpenOptions), _H, _E]),
    "open_memory": (c_int, [c_void_p, c_void_p, c_size_t, POINTER(OpenOptions), _H, _E]),
    "recording_close": (None, [c_void_p]),
    "recording_trace_count": (c_size_t, [c_void_p]),
    "recording_main_trace": (c_size_t, [c_void_p]),
    "recording_trace_facts": (c_int, [c_void_p, c_size_t, POINTER(Facts), _E]),
    "recording_json": (c_int, [c_void_p, _H, _E]),
    "recording_write": (c_int, [c_void_p, c_char_p, c_char_p, c_int, _E]),
    "recording_write_memory": (c_int, [c_void_p, c_char_p, _H, POINTER(c_size_t), _E]),
    "recording_cut": (c_int, [c_void_p, c_size_t, POINTER(CutOptions), _H, _E]),
    "builder_create": (c_int, [POINTER(BuilderOptions), _H, _E]),
    "builder_set": (c_int, [c_void_p, c_char_p, c_char_p, _E]),
    "builder_add": (c_int, [c_void_p, POINTER(Event), c_size_t, _E]),
    "builder_stack": (c_int, [c_void_p, POINTER(Frame), c_size_t, _E]),
    "builder_mark": (c_int, [c_void_p, c_char_p, c_uint64, _E]),
    "builder_finish": (c_int, [c_void_p, _H, _E]),
    "builder_destroy": (None, [c_void_p]),
    "policy_create": (c_int, [c_void_p, _H, _E]),
    "device_malloc": (c_int, [c_void_p, c_uint64, POINTER(c_uint64)]),
    "device_free": (c_int, [c_void_p, c_uint64]),
    "device_synchronize": (c_int, [c_void_p]),
    "device_capacity": (c_uint64, [c_void_p]),
    "policy_parse": (c_int, [c_char_p, _H, _E]),
    "policy_destroy": (None, [c_void_p]),
    "policies_json": (c_int, [c_char_p, _H, _E]),
    "cards_json": (c_int, [_H, _E]),
    "run": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p, POINTER(RunOptions), _H, _E]),
    "result_destroy": (None, [c_void_p]),
    "result_json": (c_char_p, [c_void_p]),
    "run_write": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p, POINTER(RunOptions), c_char_p, c_char_p, POINTER(RunFileOptions), _E]),
    "min_capacity": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p, POINTER(RunOptions), POINTER(Capacity), _E]),
    "verify_json": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p, POINTER(VerifyOptions), _H, _E]),
    "history_record": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p, POINTER(RunOptions), c_size_t, _H, _E]),
    "history_destroy": (None, [c_void_p]),
    "history_samples": (c_size_t, [c_void_p, POINTER(Sample), c_size_t]),
    "history_placements": (c_size_t, [c_void_p, POINTER(Placement), c_size_t]),
    "history_segments": (c_size_t, [c_void_p, POINTER(Segment), c_size_t]),
    "layout_at": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p, POINTER(RunOptions), c_uint64, _H, _E]),
    "layout_destroy": (None, [c_void_p]),
    "layout_spans": (c_size_t, [c_void_p, POINTER(Span), c_size_t]),
    "explain_text": (c_int, [c_char_p, c_size_t, _H, _E]),
    "explain_recording": (c_int, [c_void_p, c_void_p, POINTER(ExplainOptions), _H, _E]),
    "diff": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, POINTER(RunOptions), POINTER(DiffOptions), _H, _E]),
    "leaks": (c_int, [c_void_p, c_void_p, c_size_t, POINTER(RunOptions), POINTER(LeaksOptions), _H, _E]),
    "ranks": (c_int, [c_void_p, _H, c_size_t, POINTER(RunOptions), POINTER(RanksOptions), _H, _E]),
    "sweep_path": (c_int, [c_void_p, c_char_p, POINTER(SweepOptions), _H, c_void_p, _E]),
    "sweep_memory": (c_int, [c_void_p, c_char_p, c_size_t, POINTER(SweepOptions), _H, c_void_p, _E]),
    "plan": (c_int, [c_void_p, c_char_p, POINTER(PlanOptions), _H, _E]),
    "tune": (c_int, [c_void_p, _H, c_size_t, c_void_p, POINTER(TuneOptions), _H, _E]),
    "tuned_destroy": (None, [c_void_p]),
    "tuned_json": (c_char_p, [c_void_p]),
    "tuned_policy": (c_char_p, [c_void_p]),
    "tuned_setting": (c_char_p, [c_void_p]),
    "tuned_memory_fraction": (c_char_p, [c_void_p]),
    "compare_paths": (c_int, [c_char_p, c_char_p, POINTER(CompareOptions), _H, _E]),
    "compare_memory": (c_int, [c_char_p, c_size_t, c_char_p, c_size_t, POINTER(CompareOptions), _H, _E]),
    "comparison_destroy": (None, [c_void_p]),
    "comparison_json": (c_char_p, [c_void_p]),
    "comparison_has_finding": (c_int, [c_void_p]),
}


class Library:
    """The functions of libfraglab, without their prefix; loaded at the first use of one."""

    def __getattr__(self, name: str):
        path = find_library()
        try:
            loaded = ctypes.CDLL(path)
        except OSError as error:
            raise SystemFailure(f"{path} cannot be loaded ({error}); install the package's wheel, or run make in a source tree", 4) from None
        for function, (result, arguments) in _FUNCTIONS.items():
            try:
                entry = getattr(loaded, "fraglab_" + function)
            except AttributeError:
                raise SystemFailure(f"{path} has no fraglab_{function}, so it is older than this package; install both from one release", 4) from None
            entry.restype, entry.argtypes = result, arguments
            setattr(self, function, entry)
        if name not in _FUNCTIONS:
            raise AttributeError(name)
        return getattr(self, name)


library = Library()


# What a method of a policy in Python has raised, by thread, until the call of the library has returned.
_raised: dict[int, BaseException] = {}


def keep_raised(error: BaseException) -> None:
    _raised.setdefault(threading.get_ident(), error)


def check(code: int, record: ErrorRecord) -> None:
    """Raises what the code says; 0 is fine."""
    if code == 0:
        return
    if _raised:
        raised = _raised.pop(threading.get_ident(), None)
        if raised is not None:
            raise raised
    text = ctypes.create_string_buffer(1024)
    library.error_text(byref(record), text, len(text))
    raise KINDS.get(code, Error)(text.value.decode("utf-8", "replace"), code, record.where.decode("utf-8", "replace"), record.sentence.decode("utf-8", "replace"),
                                 record.line or None, record.column or None, record.offset if record.has_offset else None)


def new_error() -> ErrorRecord:
    return ErrorRecord(sizeof(ErrorRecord))


def take_text(stored: c_void_p) -> str:
    """The text that a call has stored, which is given back."""
    try:
        return ctypes.string_at(stored.value).decode("utf-8", "replace")
    finally:
        library.free(stored)


def take_bytes(stored: c_void_p, count: int) -> bytes:
    try:
        return ctypes.string_at(stored.value, count)
    finally:
        library.free(stored)


class Handle:
    """What the library made. It is given back with the last reference: after a close, when the calls of other threads that use it have ended."""

    __slots__ = ("value", "destroy")

    def __init__(self, stored: c_void_p, destroy) -> None:
        self.value, self.destroy = stored.value, destroy

    def __reduce__(self):
        raise TypeError("a handle of the library cannot be copied")

    def __del__(self) -> None:
        # The collector may run in a function that the library has called, which may not call it back.
        if _busy and threading.get_ident() in _busy:
            _deferred.append((self.destroy, self.value))
        else:
            self.destroy(self.value)


_busy: set[int] = set()  # threads in a call that asks Python something
_deferred: list[tuple] = []


def _leave() -> None:
    """The end of such a call: gives back what was dropped meanwhile."""
    _busy.discard(threading.get_ident())
    _destroy_deferred()


def _destroy_deferred() -> None:
    while _deferred:
        destroy, value = _deferred.pop()
        destroy(value)


# ---- contexts

_CANCELLED = ctypes.CFUNCTYPE(c_int, c_void_p)
_WARN = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)


class Interrupt:
    """Context of one call in the main thread, which runs Python's signal handlers while C works.

    The library asks many times a second whether to go on. Its question resumes a generator, and a handler's
    exception (KeyboardInterrupt, or one of a timeout) is raised where that stands: inside the try.
    """

    def __init__(self, threads: int) -> None:
        self.raised: BaseException | None = None
        self.steps = self._watch()
        next(self.steps)
        self.function = _CANCELLED(self.steps.send)
        self.handle = c_void_p()
        error = new_error()
        options = ContextOptions(is_cancelled=ctypes.cast(self.function, c_void_p), threads=threads)
        check(library.context_create(byref(options), byref(self.handle), byref(error)), error)

    def _watch(self):
        while True:
            try:
                while True:
                    yield 0 if self.raised is None else 1
            except GeneratorExit:
                return
            except BaseException as error:  # noqa: B902  whatever a handler raises is handed on after the call
                # Without this frame: whoever clears those of a traceback, as unittest does, would end the generator.
                self.raised = error.with_traceback(error.__traceback__.tb_next if error.__traceback__ else None)


_interrupts: dict[int, Interrupt] = {}
_plain = threading.local()


class _Plain:
    """Context of a thread that no signal reaches: it only says how many threads a call may use."""

    def __init__(self, threads: int) -> None:
        self.handle = c_void_p()
        error = new_error()
        options = ContextOptions(threads=threads)
        check(library.context_create(byref(options), byref(self.handle), byref(error)), error)

    def __del__(self) -> None:
        if self.handle.value:
            library.context_destroy(self.handle)


def call(function, *arguments, threads: int = 1) -> None:
    """Calls a function of the library whose first argument is a context and whose last one the error."""
    error = ErrorRecord(_ERROR_SIZE)
    if _get_ident() != _MAIN:
        known = _plain.__dict__
        context = known.get(threads) or known.setdefault(threads, _Plain(threads)) if threads > 1 else None
        code = function(context.handle if context else None, *arguments, byref(error))
        if _deferred and not _busy:
            _destroy_deferred()
        if code:
            check(code, error)
        return
    interrupt = _interrupts.get(threads) or _interrupts.setdefault(threads, Interrupt(threads))
    if _MAIN in _busy:  # a signal handler calls the library, which says that it may not
        check(function(None, *arguments, byref(error)), error)
        return
    _busy.add(_MAIN)
    try:
        code = function(interrupt.handle, *arguments, byref(error))
    finally:
        _busy.discard(_MAIN)
        if _deferred:
            _destroy_deferred()
        raised, interrupt.raised = interrupt.raised, None
    if raised is not None:
        raise raised
    if code:
        check(code, error)


_ERROR_SIZE = sizeof(ErrorRecord)
_get_ident = threading.get_ident
_MAIN = threading.main_thread().ident


class Listening:
    """Context that collects what a person should know about an input; what a call has stored is in a Handle before tell says it."""

    def __init__(self) -> None:
        self.sentences: list[str] = []
        self.raised: BaseException | None = None
        self.function = _WARN(lambda user, sentence: self.sentences.append(sentence.decode("utf-8", "replace")))
        self.steps = self._watch()
        next(self.steps)
        self.asked = _CANCELLED(self.steps.send)
        self.handle = c_void_p()

    _watch = Interrupt._watch

    def __enter__(self) -> "Listening":
        error = new_error()
        is_main = threading.get_ident() == _MAIN
        options = ContextOptions(warn=ctypes.cast(self.function, c_void_p), is_cancelled=ctypes.cast(self.asked, c_void_p) if is_main else None)
        check(library.context_create(byref(options), byref(self.handle), byref(error)), error)
        _busy.add(threading.get_ident())
        return self

    def __exit__(self, *exception) -> None:
        _leave()
        library.context_destroy(self.handle)

    def end(self, code: int, record: ErrorRecord) -> None:
        """Raises what a signal handler has raised during the call, else what the code says."""
        if self.raised is not None:
            raise self.raised
        check(code, record)


def warn(sentences: Sequence[str]) -> None:
    """InputWarnings at the line outside the package that has called it."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        level, frame = level + 1, frame.f_back
    for sentence in sentences:
        warnings.warn(sentence, InputWarning, stacklevel=level)
