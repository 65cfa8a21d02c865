"""Recordings, and those built event by event."""
from __future__ import annotations

import ctypes
import functools
import json
import os
import sys
from ctypes import byref, c_size_t, c_void_p
from types import FrameType
from typing import Any, Iterable, Mapping, Sequence

from fraglab import _native
from fraglab._arguments import count, flag, given_text, path, size, text
from fraglab._native import UsageError, library
from fraglab._pictures import show_bytes, table
from fraglab._policy import Policy, python_policy
from fraglab._results import MOST_DRAWN, Fields, Result


def stored_by(function, destroy=None, *, arguments: tuple, threads: int | None = None):
    """Calls a function that stores a handle (destroy given) or a text. threads None: it takes no context."""
    stored = c_void_p()
    if threads is None:
        error = _native.new_error()
        _native.check(function(*arguments, byref(stored), byref(error)), error)
    else:
        _native.call(function, *arguments, byref(stored), threads=threads)
    return _native.Handle(stored, destroy) if destroy is not None else _native.take_text(stored)


@functools.lru_cache(maxsize=256)
def _parse(name: str) -> _native.Handle:
    return stored_by(library.policy_parse, library.policy_destroy, arguments=(text(name, "policy"),))


def parse_policy(name: str | type[Policy], *, takes_python: bool = False) -> _native.Handle:
    """The policy of a text as after --policy, or of a class. Those of a file are read anew, as it may have changed."""
    if takes_python and isinstance(name, type) and issubclass(name, Policy):
        return python_policy(name)
    if not isinstance(name, str):
        expected = "str, as after --policy" + (", or a class derived from fraglab.Policy" if takes_python else "")
        raise TypeError(f"policy is {type(name).__name__}; expected {expected}")
    return _parse.__wrapped__(name) if "/" in name else _parse(name)


def handles(items: Sequence[_native.Handle]):
    return (c_void_p * max(len(items), 1))(*[item.value for item in items])


def run_options(capacity=None, gpu=None, used_by_others=None, label=None, latency=None, address_rule=None, fail_call=0, check_every=0, skip_oom=False, bounds=False, stats_at=None, timing=False, **unknown) -> _native.RunOptions:
    """The structure of the options of run, of which those of the device are options of other functions, too."""
    if unknown:
        raise _unknown_option(next(iter(unknown)), _RUN_OPTIONS)
    options = _native.RunOptions()
    if capacity is not None:
        options.capacity_bytes = size(capacity, "capacity")
        if options.capacity_bytes == 0:
            raise UsageError("capacity: 0 is out of range; expected bytes above 0, or None", where="capacity")
    if gpu is not None:
        options.gpu = text(os.fspath(gpu) if isinstance(gpu, os.PathLike) else gpu, "gpu")
    if used_by_others is not None:
        options.used_by_others_bytes = size(used_by_others, "used_by_others")
    if label is not None:
        options.label = text(label, "label")
    if latency is not None:
        options.latency = path(latency, "latency")
    if address_rule is not None:
        options.address_rule = text(address_rule, "address_rule")
    if fail_call:
        options.fail_call = count(fail_call, "fail_call")
    if check_every:
        options.check_every = count(check_every, "check_every")
    if skip_oom:
        options.skip_oom = flag(skip_oom, "skip_oom")
    if bounds:
        options.with_bounds = flag(bounds, "bounds")
    if stats_at is not None:
        options.stats_at = text(stats_at if isinstance(stats_at, str) else str(count(stats_at, "stats_at")), "stats_at")
    if timing:
        options.with_timing = flag(timing, "timing")
    return options


_RUN_OPTIONS = run_options.__code__.co_varnames[:run_options.__code__.co_argcount]


def _unknown_option(name: str, known: Sequence[str]) -> TypeError:
    import difflib

    nearest = difflib.get_close_matches(name, known, 1, 0.75)
    return TypeError(f"there is no option {name}; " + (f"did you mean {nearest[0]}?" if nearest else "expected one of " + ", ".join(known)))


_DEVICE_OPTIONS = ("capacity", "gpu", "used_by_others", "latency", "address_rule", "fail_call")


def device_options(function: Any, options: dict[str, Any], known: Sequence[str] = _DEVICE_OPTIONS) -> _native.RunOptions:
    """Those of run_options that a function takes beside options of its own; others of run are refused where they are set."""
    for name, value in options.items():
        if name not in _RUN_OPTIONS:
            raise _unknown_option(name, tuple(dict.fromkeys((*function.__kwdefaults__, *known))))
        if name not in known and value:
            raise TypeError(f"{function.__name__} has no option {name}")
    return run_options(**options)


_PLAIN = frozenset((int, str, type(None)))  # what a cache tells apart as run_options does
_device_options = functools.lru_cache(maxsize=256, typed=True)(run_options)


def thread_count(threads: int) -> int:
    threads = count(threads, "threads", 4096)
    return max(threads, 1)


class Recording:
    """What a program asked of its GPU's memory: one trace for each device. Made by ``fraglab.open`` or ``Trace.finish``.

    Never changed by what uses it: several threads may use one at a time. ``trace`` as an argument is the
    number of a trace; None is that of the device which requests most at one time. Policies are texts as
    after ``--policy``: "best-fit", "pytorch:expandable_segments=true", "pytorch:recorded", "./mine.so"; ``run`` and
    ``min_capacity`` take a class derived from ``fraglab.Policy``, too.
    Sizes are bytes or texts like "24GiB". Failures are ``fraglab.Error``, wrong types TypeError.
    """

    def __init__(self, handle: _native.Handle, warnings: Sequence[str] = ()) -> None:
        if not isinstance(handle, _native.Handle):
            raise TypeError("expected fraglab.open(...) or Trace.finish() to make a recording")
        self._open: _native.Handle | None = handle
        self.warnings = tuple(warnings)

    @property
    def _handle(self) -> _native.Handle:
        handle = self._open
        if handle is None:
            raise UsageError("the recording is closed")
        return handle

    def close(self) -> None:
        """Give its memory back as soon as no call and no result needs it. Again is allowed."""
        self._open = None

    def __reduce__(self):
        raise TypeError("a recording cannot be copied or pickled; its write() makes a file, which open() reads")

    def __enter__(self) -> "Recording":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __len__(self) -> int:
        """The number of traces."""
        return library.recording_trace_count(self._handle.value)

    def __bool__(self) -> bool:
        return True

    @property
    def main_trace(self) -> int:
        """The number of the trace of the device that requests most at one time."""
        return library.recording_main_trace(self._handle.value)

    def _trace(self, handle: _native.Handle, trace: int | None) -> int:
        if trace is None:
            return library.recording_main_trace(handle.value)
        return count(trace, "trace", 2**63)

    def to_dict(self) -> dict[str, Any]:
        """name, recorded_by, metadata (the recorded program's settings and more), findings (what did not fit together), traces."""
        return json.loads(stored_by(library.recording_json, arguments=(self._handle.value,)))

    def facts(self, trace: int | None = None) -> Fields:
        """device, event_count, request_count, failed_count, stream_count, pool_count, initial_bytes, peak_requested_bytes,
        peak_requested_event, bound_bytes, observed_reserved_peak_bytes (0: not recorded) and digest of a trace."""
        handle = self._handle
        facts, error = _native.Facts(), _native.new_error()
        _native.check(library.recording_trace_facts(handle.value, self._trace(handle, trace), byref(facts), byref(error)), error)
        members = {name: getattr(facts, name) for name, _ in facts._fields_ if name != "size"}
        return Fields({**members, "digest": facts.digest.decode()})

    def run(self, policy: str | type[Policy] = "pytorch", *, trace: int | None = None, capacity: int | str | None = None, gpu: str | os.PathLike | None = None, **options: Any) -> Result:
        """Replay a trace with a policy on the simulated device.

        capacity: bytes of the device (None: unlimited, or what the card has); gpu: a card by name or file
        ("rtx4090"). Further options: used_by_others (bytes of the capacity), label, latency (a file),
        address_rule ("lowest", "bump", "recorded"), fail_call (this malloc or map, from 1, fails), check_every
        (audit every so many events), skip_oom=True (go on without a request that does not fit), bounds=True,
        stats_at ("peak", "oom", "end" or an event: the row gets ``memory_stats``, as torch.cuda.memory_stats() returns them),
        timing=True (wall time; rows then differ from run to run).
        Simulated memory that runs out is a result: ``result.oom``. Ctrl-C ends a long run.
        """
        handle = self._handle
        number = self._trace(handle, trace)
        parsed = parse_policy(policy) if type(policy) is str else parse_policy(policy, takes_python=True)
        is_plain = not options and type(capacity) in _PLAIN and type(gpu) in _PLAIN
        given = _device_options(capacity, gpu) if is_plain else run_options(capacity, gpu, **options)
        stored = c_void_p()
        _native.call(library.run, handle.value, number, parsed.value, byref(given), byref(stored))
        try:
            line = library.result_json(stored)
        finally:
            library.result_destroy(stored)
        return Result(line, (handle, number, parsed, given))

    def min_capacity(self, policy: str | type[Policy] = "pytorch", *, trace: int | None = None, **options: Any) -> Fields:
        """Find the least capacity with which no request fails. Options are those of ``run`` for the device: gpu, used_by_others, latency, address_rule, fail_call.

        Fields: capacity_bytes (None: none is enough), failing_above_bytes (the largest capacity above it that fails;
        None: none), enough_bytes (0: unknown), runs, below_event and below_requested_bytes (of the failure with one page less).
        """
        handle = self._handle
        given = device_options(Recording.min_capacity, options, _DEVICE_OPTIONS[1:])
        parsed = parse_policy(policy, takes_python=True)
        found = _native.Capacity()
        _native.call(library.min_capacity, handle.value, self._trace(handle, trace), parsed.value, byref(given), byref(found))
        members = {name: getattr(found, name) for name, _ in found._fields_ if name != "size"}
        return Fields({name: None if value == _native.UNLIMITED else value for name, value in members.items()})

    def verify(self, policy: str | None = None, *, trace: int | None = None, capacity: int | str | None = None, count_all: bool = False) -> Fields:
        """Does the policy do what the recorded allocator did, call by call? ``.verify.is_identical``; else ``.verify.first`` says where not.

        policy None: that which the recording names. Opened with sites=False, a recording has no addresses: UsageError.
        """
        handle = self._handle
        parsed = parse_policy(policy) if policy is not None else None
        options = _native.VerifyOptions(capacity_bytes=size(capacity, "capacity"), count_all=flag(count_all, "count_all"))
        line = stored_by(library.verify_json, arguments=(handle.value, self._trace(handle, trace), parsed.value if parsed else None, byref(options)), threads=1)
        return Fields(json.loads(line))

    def explain(self, *, capacity: int | str | None = None, memory_fraction: str | None = None, whole: "Recording | None" = None, policies: Sequence[str] = (),
                threads: int = 1) -> list[dict[str, Any]]:
        """What held the memory when the program ran out (or would with that capacity), and which settings get past it.

        One dictionary for each device with something to explain, as ``fraglab explain --format jsonl`` prints it.
        """
        return [json.loads(line) for line in self._explain(0, capacity, memory_fraction, whole, policies, threads).splitlines()]

    def explain_text(self, **options: Any) -> str:
        """The same as text for a person."""
        return self._explain(1, **options)

    def _explain(self, as_text: int, capacity=None, memory_fraction=None, whole=None, policies: Sequence[str] = (), threads: int = 1) -> str:
        handle = self._handle
        if whole is not None and not isinstance(whole, Recording):
            raise TypeError(f"whole is {type(whole).__name__}; expected a Recording")
        if isinstance(policies, str):
            raise TypeError("policies is str; expected a list of texts")
        other = whole._handle if whole is not None else None
        parsed = [parse_policy(policy) for policy in policies]
        options = _native.ExplainOptions(capacity_bytes=size(capacity, "capacity"), memory_fraction=text(memory_fraction, "memory_fraction"), whole=other.value if other else None,
                                         policies=handles(parsed), policy_count=len(parsed), as_text=as_text)
        return stored_by(library.explain_recording, arguments=(handle.value, byref(options)), threads=thread_count(threads))

    def leaks(self, *, mark: str | None = None, policy: str | None = None, trace: int | None = None, **device: Any) -> Fields:
        """What is kept step after step, the fastest first; with capacity or gpu also the step in which the device is full.

        mark: steps begin at the marks of that name; None: they are found. policy: of the replays; None: pytorch, with the settings of
        the recording where it holds some. device: capacity, gpu, used_by_others, latency, address_rule and fail_call as of ``run``. Fields: ``leaks``, ``no_leaks`` (what only looks like one),
        ``steps``, ``forecast`` (docs/leaks.md). Too few steps are an InputError.
        """
        handle = self._handle
        parsed = parse_policy(policy) if policy is not None else None
        run = device_options(Recording.leaks, device)
        options = _native.LeaksOptions(mark=text(mark, "mark"), policy=parsed.value if parsed else None)
        return Fields(json.loads(stored_by(library.leaks, arguments=(handle.value, self._trace(handle, trace), byref(run), byref(options)), threads=1)))

    def write(self, file: str | os.PathLike, format: str = "fgt", *, overwrite: bool = False) -> None:
        """Write it as "fgt", "text" or "minimalloc". The file is whole or not there; one that exists is a UsageError without overwrite."""
        error = _native.new_error()
        _native.check(library.recording_write(self._handle.value, text(format, "format") or b"", path(file, "file"), flag(overwrite, "overwrite"), byref(error)), error)

    def to_bytes(self, format: str = "fgt") -> bytes:
        """The bytes of such a file."""
        stored, length, error = c_void_p(), c_size_t(), _native.new_error()
        _native.check(library.recording_write_memory(self._handle.value, text(format, "format") or b"", byref(stored), byref(length), byref(error)), error)
        return _native.take_bytes(stored, length.value)

    def cut(self, first_event: int = 0, end_event: int = 0, *, trace: int | None = None, first_mark: str | None = None, last_mark: str | None = None) -> "Recording":
        """A recording of a piece of a trace: events from first to before end (0: the end of the trace), or from first_mark to the end of last_mark (None: of the first)."""
        handle = self._handle
        options = _native.CutOptions(first_event=count(first_event, "first_event"), end_event=count(end_event, "end_event"), first_mark=text(first_mark, "first_mark"), last_mark=text(last_mark, "last_mark"))
        return Recording(stored_by(library.recording_cut, library.recording_close, arguments=(handle.value, self._trace(handle, trace), byref(options))))

    def __repr__(self) -> str:
        if self._open is None:
            return "<fraglab.Recording, closed>"
        facts = self.facts()
        return f"<fraglab.Recording {self.to_dict()['name']}: {facts.request_count} requests, peak requested {show_bytes(facts.peak_requested_bytes)}>"

    def _repr_html_(self) -> str:
        row, facts = self.to_dict(), self.facts()
        return table([("recorded by", row.get("recorded_by")), ("traces", len(self)), ("events", facts.event_count), ("requests", facts.request_count),
                      ("peak requested", show_bytes(facts.peak_requested_bytes)), ("recorded peak reserved", show_bytes(facts.observed_reserved_peak_bytes or None))], row["name"]) + self._picture(facts)

    def _picture(self, facts: Fields) -> str:
        """Of what was requested, which no policy changes, and what PyTorch's allocator reserves for it."""
        if not 0 < facts.event_count <= MOST_DRAWN:
            return ""
        try:
            return self.run("pytorch:recorded")._pictures()
        except UsageError:  # it holds no settings
            return self.run("pytorch")._pictures()


def open(source: str | os.PathLike | bytes | bytearray | memoryview | Mapping[str, Any], *, format: str | None = None, name: str | None = None, sites: bool = True) -> Recording:
    """Open a recording: a path, the bytes of such a file, or the dictionary of ``torch.cuda.memory._snapshot()``.

    format: as after --from ("snapshot"); None: told by the content. name: for people and rows. sites=False
    leaves out call stacks and recorded addresses: less memory, but no verify. Raises InputError with the place in
    the file. What a person should know about an input that was read all the same is an InputWarning and
    ``recording.warnings``.
    """
    recording = open_silently(source, format=format, name=name, sites=sites)
    _native.warn(recording.warnings)
    return recording


def open_silently(source: Any, *, format: str | None = None, name: str | None = None, sites: bool = True) -> Recording:
    """As open, without warnings."""
    options = _native.OpenOptions(format=text(format, "format"), name=text(name, "name"), with_sites=flag(sites, "sites"))
    stored, error = c_void_p(), _native.new_error()
    if isinstance(source, (str, os.PathLike)):
        file = path(source, "source")
        with _native.Listening() as listening:
            code = library.open_path(listening.handle, file, byref(options), byref(stored), byref(error))
    else:
        data = _bytes_of(source)
        with _native.Listening() as listening:
            code = library.open_memory(listening.handle, data, len(data), byref(options), byref(stored), byref(error))
    handle = _native.Handle(stored, library.recording_close)
    listening.end(code, error)
    return Recording(handle, listening.sentences)


def _bytes_of(source: Any) -> bytes:
    if isinstance(source, Mapping):
        import pickle

        try:
            return pickle.dumps(dict(source), 4)
        except Exception as error:  # of whatever objects are in it
            raise TypeError(f"the snapshot cannot be pickled ({error}); expected what torch.cuda.memory._snapshot() returns") from None
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source)
    raise TypeError(f"source is {type(source).__name__}; expected a path, bytes, or the dictionary of torch.cuda.memory._snapshot()")


# Of a deep stack the innermost lines are kept.
FRAMES_MAX = 128


def _frames_of(frame: FrameType | None) -> list[tuple[str, str, int]]:
    made = []
    while frame is not None and len(made) < FRAMES_MAX:
        made.append((frame.f_code.co_name, frame.f_code.co_filename, frame.f_lineno or 0))
        frame = frame.f_back
    return made


class Trace:
    """A recording of one's own, built event by event. Belongs to one thread at a time.

        trace = fraglab.Trace("mine")
        trace.alloc("weights", "512MiB")
        trace.free("weights")
        recording = trace.finish()

    A block's name is any hashable value, and may be used again after its free. Adding what makes no sense (a
    free of nothing) is an InputError that names the event; those before it stay.

    With stacks=True every event has the Python stack of the line that adds it, as a recording of PyTorch has:
    leaks(), diff() and the table of call sites then name your lines. stack() gives another one.
    """

    ALLOC, FREE, USE, SYNC, EMPTY_CACHE = range(5)

    def __init__(self, name: str = "built", *, device: int = 0, settings: Mapping[str, str] | None = None, stacks: bool = False) -> None:
        """settings: facts about the program, such as {"torch.conf": "expandable_segments:True", "torch.version_hint": "2.9"}."""
        options = _native.BuilderOptions(name=text(name, "name"), device=count(device, "device", 2**32 - 1))
        self._builder: _native.Handle | None = stored_by(library.builder_create, library.builder_destroy, arguments=(byref(options),))
        self._ids: dict[Any, int] = {}
        self._next = 1
        self._stacks = bool(stacks)
        for key, value in (settings or {}).items():
            error = _native.new_error()
            _native.check(library.builder_set(self._builder.value, given_text(key, "settings: a name"), given_text(value, f"settings: {key}"), byref(error)), error)

    def __reduce__(self):
        raise TypeError("a trace cannot be copied or pickled; its finish() makes a recording, of which write() makes a file")

    def _open(self) -> _native.Handle:
        if self._builder is None:
            raise UsageError("the trace is finished; build a new one")
        return self._builder

    def _add(self, op: int, **members: int) -> None:
        builder = self._open()
        if self._stacks:
            self._set_stack(_frames_of(sys._getframe(2)))
        event, error = _native.Event(op=op, **members), _native.new_error()
        _native.check(library.builder_add(builder.value, byref(event), 1, byref(error)), error)

    def _set_stack(self, frames: Sequence[tuple[str, str, int]]) -> None:
        below = (_native.Frame * len(frames))()
        for frame, (function, file, line) in zip(below, frames):
            frame.function, frame.file, frame.line = text(function, "function"), text(file, "file"), count(line, "line", 2**32 - 1)
        error = _native.new_error()
        _native.check(library.builder_stack(self._open().value, below, len(frames), byref(error)), error)

    def stack(self, frames: Iterable[tuple[str, str, int]] | None) -> None:
        """All events from now on have this call stack: (function, file, line), innermost first. None: not known."""
        self._open()
        self._stacks = False
        made = []
        for frame in frames or ():
            if not isinstance(frame, (tuple, list)) or len(frame) != 3:
                raise TypeError(f"frames holds {frame!r}; expected a function, a file and a line")
            made.append(tuple(frame))
        self._set_stack(made)

    def mark(self, name: str, *, time_ns: int = 0) -> None:
        """The start of a step or a phase: what leaks() and cut() find steps by."""
        error = _native.new_error()
        _native.check(library.builder_mark(self._open().value, text(name, "name"), count(time_ns, "time_ns"), byref(error)), error)

    def _id(self, block: Any, what: str) -> int:
        try:
            number = self._ids.get(block)
        except TypeError:
            raise TypeError(f"block is {type(block).__name__}, which cannot be a name; expected a str or a number") from None
        if number is None:
            raise UsageError(f"{what}: no block {block!r} is live", where=what)
        return number

    def alloc(self, block: Any, bytes: int | str, *, stream: int = 0, pool: int = 0, time_ns: int = 0) -> None:
        """Request bytes (1 to 2**56 - 1) for a block on a stream; pool 0, or the number of a private pool."""
        try:
            is_live = block in self._ids
        except TypeError:
            raise TypeError(f"block is {type(block).__name__}, which cannot be a name; expected a str or a number") from None
        if is_live:
            raise UsageError(f"alloc: the block {block!r} is live already; free it first, or choose another name", where="alloc")
        self._add(self.ALLOC, id=self._next, bytes=size(bytes, "bytes"), stream=count(stream, "stream"), pool=count(pool, "pool", 2**32 - 1), time_ns=count(time_ns, "time_ns"))
        self._ids[block] = self._next
        self._next += 1

    def free(self, block: Any, *, time_ns: int = 0) -> None:
        """Give a live block back."""
        self._add(self.FREE, id=self._id(block, "free"), time_ns=count(time_ns, "time_ns"))
        del self._ids[block]

    def use(self, block: Any, stream: int, *, time_ns: int = 0) -> None:
        """The block is used on another stream (record_stream): its place is free only when that has done its work."""
        self._add(self.USE, id=self._id(block, "use"), stream=count(stream, "stream"), time_ns=count(time_ns, "time_ns"))

    def sync(self, *, time_ns: int = 0) -> None:
        """Every stream has done its work."""
        self._add(self.SYNC, time_ns=count(time_ns, "time_ns"))

    def empty_cache(self, *, time_ns: int = 0) -> None:
        """The program asks for cached memory to be given back."""
        self._add(self.EMPTY_CACHE, time_ns=count(time_ns, "time_ns"))

    def finish(self) -> Recording:
        """Make the recording; the trace can then not be added to."""
        builder, self._builder = self._builder, None
        if builder is None:
            raise UsageError("the trace is finished; build a new one")
        return Recording(stored_by(library.builder_finish, library.recording_close, arguments=(builder.value,)))
