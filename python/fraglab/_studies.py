"""Explanations of messages, searches, sweeps and comparisons."""
from __future__ import annotations

import json
import os
from ctypes import POINTER, byref, c_char_p, c_size_t, c_uint32, c_void_p, cast
from typing import Any, Iterable, Mapping, Sequence, overload

from fraglab import _native
from fraglab._arguments import content, count, flag, path, size, text, unreadable
from fraglab._native import library
from fraglab._pictures import grid, show_bytes, table
from fraglab._recording import Recording, handles, open as open_recording, open_silently, parse_policy, device_options, stored_by, thread_count
from fraglab._results import Fields, Result


def is_recording(data: bytes) -> bool:
    try:
        open_silently(data)
    except _native.Error:
        return False
    return True


@overload
def explain(source: str | bytes | os.PathLike[str] | BaseException) -> dict[str, Any]: ...
@overload
def explain(source: Recording, **options: Any) -> list[dict[str, Any]]: ...


def explain(source: str | bytes | os.PathLike[str] | BaseException | Recording, **options: Any) -> dict[str, Any] | list[dict[str, Any]]:
    """Explain why memory ran out.

    A str or bytes is the text of a log or a message, an exception its message, a PathLike a file of text: the answer is
    the dictionary that ``fraglab explain --format jsonl`` prints. Text without such a message is no error: ``verdict`` says so.
    A Recording: as ``recording.explain(**options)``.
    """
    if isinstance(source, Recording):
        return source.explain(**options)
    if options:
        raise TypeError(f"{', '.join(options)}: only a Recording is explained with options")
    if isinstance(source, str) and len(source) < 4096 and source.isprintable() and os.path.isfile(source):
        raise _native.UsageError(f"source: {source!r} is a file, and would be read as a message; expected pathlib.Path({source!r}) for a log, fraglab.open({source!r}).explain() for a recording", where="source")
    if isinstance(source, BaseException):
        source = str(source)
    if isinstance(source, os.PathLike):
        data = content(source, "source")
        if b"\0" in data and is_recording(data):
            raise _native.UsageError(f"source: {os.fspath(source)!r} is a recording; expected fraglab.open({os.fspath(source)!r}).explain()", where="source")
        source = data
    if isinstance(source, str):
        source = source.encode("utf-8", "replace")
    if not isinstance(source, (bytes, bytearray, memoryview)):
        raise TypeError(f"source is {type(source).__name__}; expected text, an exception, a path or a Recording")
    data = bytes(source)
    return json.loads(stored_by(library.explain_text, arguments=(data, len(data))))


def policies(name: str | None = None) -> list[dict[str, Any]]:
    """The bundled policies, or that of a name: rules, options with defaults and ranges."""
    return [json.loads(line) for line in stored_by(library.policies_json, arguments=(text(name, "name"),)).splitlines()]


def cards() -> list[dict[str, Any]]:
    """The bundled cards, as ``fraglab device list --format jsonl`` prints them."""
    return [json.loads(line) for line in stored_by(library.cards_json, arguments=()).splitlines()]


def limit_memory(bytes: int | str, folder: str | os.PathLike | None = None) -> None:
    """Large arrays of recordings take at most so much memory of this process; those beyond lie in temporary files.

    bytes: a number, or a text such as "2GiB"; folder: on a disk (None: $TMPDIR, else /var/tmp). As ``--memory`` on the
    command line. Before other threads call fraglab.
    """
    error = _native.new_error()
    _native.check(library.limit_memory(size(bytes, "bytes"), None if folder is None else path(folder, "folder"), byref(error)), error)


def plan(model: str | os.PathLike, *, gpu: str, conf: str | None = None, **knobs: Any) -> dict[str, Any]:
    """Does a described model fit on a card? The dictionary that ``fraglab plan --format jsonl`` prints.

    model: a workload file in YAML or the config.json of a model; gpu: a card such as "rtx3060", or a size; conf:
    PYTORCH_CUDA_ALLOC_CONF of the program; knobs: those of docs/workloads.md, such as batch=4, tokens="512,64".
    """
    words = _texts((f"{key}={_knob(value)}" for key, value in knobs.items()), "knobs")
    options = _native.PlanOptions(gpu=text(gpu, "gpu"), conf=text(conf, "conf"), knobs=cast(words, POINTER(c_char_p)), knob_count=len(words) - 1)
    return json.loads(stored_by(library.plan, arguments=(path(model, "model"), byref(options)), threads=1))


def _knob(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(str(item) for item in value)
    return str(value)


class Tuned(Fields):
    """What a search found: the fields that ``fraglab tune --format jsonl`` prints, and these.

    ``policy_text`` is for ``run``; ``setting`` what is to be set in the program (of pytorch PYTORCH_CUDA_ALLOC_CONF; "":
    nothing tried is better); ``memory_fraction`` for set_per_process_memory_fraction, or None.
    """

    __slots__ = ("policy_text", "setting", "memory_fraction")
    policy_text: str
    setting: str
    memory_fraction: str | None

    def __init__(self, members: dict[str, Any], policy_text: str, setting: str, memory_fraction: str | None) -> None:
        super().__init__(members)
        for name, value in (("policy_text", policy_text), ("setting", setting), ("memory_fraction", memory_fraction)):
            object.__setattr__(self, name, value)

    def __reduce__(self):
        return Tuned, (self._object, self.policy_text, self.setting, self.memory_fraction)

    def _repr_html_(self) -> str:
        return table([("policy", self.policy_text), ("setting", self.setting or "nothing tried is better"), ("memory fraction", self.memory_fraction)], "tuned")


def tune(recordings: Recording | Sequence[Recording], policy: str = "pytorch", *, goal: str = "peak", held_out: Sequence[Recording] = (), settings: int = 0, max_seconds: int = 0, seed: int = 0,
         bounds: bool = False, threads: int = 1, **device: Any) -> Tuned:
    """Search the options of a policy for the least memory on every trace of the recordings.

    goal: "peak" (of reserved bytes) or "min-capacity". held_out: reported, but not searched on. settings: to try
    (0: 400; at most 10000). max_seconds: then the result depends on the machine. device: capacity, gpu, used_by_others, latency, address_rule and fail_call as of ``run``.
    """
    goals = {"peak": 0, "min-capacity": 1}
    if goal not in goals:
        raise _native.UsageError(f"goal: {goal!r} is unknown; expected peak or min-capacity", where="goal")
    opened = [_recording_handle(item) for item in ([recordings] if isinstance(recordings, Recording) else recordings)]
    others = [_recording_handle(item) for item in held_out]
    if not opened:
        raise _native.UsageError("recordings: there is none; expected at least one", where="recordings")
    run = device_options(tune, device)
    other_handles = handles(others)
    options = _native.TuneOptions(held_out=other_handles, held_out_count=len(others), goal=goals[goal], with_bounds=flag(bounds, "bounds"), settings=count(settings, "settings"),
                                  max_seconds=count(max_seconds, "max_seconds"), seed=count(seed, "seed"))
    options.device = _native.ctypes.pointer(run)
    tuned = stored_by(library.tune, library.tuned_destroy, arguments=(handles(opened), len(opened), parse_policy(policy).value, byref(options)), threads=thread_count(threads))
    fraction = library.tuned_memory_fraction(tuned.value)
    return Tuned(json.loads(library.tuned_json(tuned.value)), library.tuned_policy(tuned.value).decode(), library.tuned_setting(tuned.value).decode(), fraction.decode() if fraction else None)


def _recording_handle(item: Any) -> _native.Handle:
    if not isinstance(item, Recording):
        raise TypeError(f"recordings has {type(item).__name__}; expected Recording")
    return item._handle


def diff(before: Recording, after: Recording, *, by: str = "site", at: str | None = None, at_after: str | None = None, before_trace: int | None = None, after_trace: int | None = None,
         policy: str | None = None, replays: bool = True, **device: Any) -> Fields:
    """What differs between two recordings of one program, or two moments of one recording.

    by: what blocks are added up by: "site", "stack", "purpose" or "size". at: what is looked at, as after ``--at``: "peak"
    (default), "end", an event "120", "A..B", a mark "step 3" or "NAME[N]"; at_after: of the second, where it is another place.
    policy: what both are replayed with; None: pytorch, with the settings of the recording where it holds some. replays=False:
    nothing is replayed. device: capacity, gpu, used_by_others, latency, address_rule and fail_call as of ``run``.
    Fields: ``sides`` (two, in bytes and events), ``requests`` and ``groups``, the largest change of live bytes first.
    """
    handles_of = [_recording_handle(before), _recording_handle(after)]
    numbers = [item._trace(handle, number) for item, handle, number in zip((before, after), handles_of, (before_trace, after_trace))]
    parsed = parse_policy(policy) if policy is not None else None
    run = device_options(diff, device)
    options = _native.DiffOptions(by=text(by, "by"), at_before=text(at, "at"), at_after=text(at_after if at_after is not None else at, "at_after"), policy=parsed.value if parsed else None,
                                  without_replays=flag(not flag(replays, "replays"), "replays"))
    arguments = (handles_of[0].value, numbers[0], handles_of[1].value, numbers[1], byref(run), byref(options))
    return Fields(json.loads(stored_by(library.diff, arguments=arguments, threads=1)))


def ranks(recordings: Sequence[Recording] | str | os.PathLike, *, numbers: Sequence[int] | None = None, stages: Sequence[str] = (), policy: str | None = None, settings: bool = False, **device: Any) -> Fields:
    """The ranks of one job side by side: what each needs, how uneven they are, which is out of memory first (docs/ranks.md).

    recordings: open ones, or a folder of .pickle, .pkl and .fgt files, or the path of one recording of several devices. numbers: of the ranks; None: those in the names of the
    recordings, else their order. stages: ranks that are to be alike, as those of a pipeline stage ("0-3,8"); those in none are one
    too. policy: of the replays; None: pytorch, with the settings of each recording where it holds some. device: capacity, gpu, used_by_others, latency, address_rule and fail_call as of ``run``.
    Fields: ``ranks``, ``stages`` (``requested_bytes`` and ``peak``: least, mean, most, ``imbalance_ratio``; ``sites``: what the rank
    with the highest peak holds and the one with the lowest does not) and ``first_oom_rank``. settings: try the usual ones on all ranks,
    too: ``tried``, and ``best_policy``, with which none runs out of memory.
    """
    opened = _folder(recordings) if isinstance(recordings, (str, os.PathLike)) else list(recordings)
    handles_of = [_recording_handle(item) for item in opened]
    if numbers is not None and len(numbers) != len(opened):
        raise _native.UsageError(f"numbers: there are {len(numbers)} for {len(opened)} recordings", where="numbers")
    given = None if numbers is None else (c_uint32 * len(opened))(*[count(number, "numbers", 2**32 - 1) for number in numbers])
    names = _texts(stages, "stages")
    parsed = parse_policy(policy) if policy is not None else None
    run = device_options(ranks, device)
    options = _native.RanksOptions(numbers=given, stages=names, stage_count=len(names) - 1, policy=parsed.value if parsed else None, tries_settings=flag(settings, "settings"))
    return Fields(json.loads(stored_by(library.ranks, arguments=(handles(handles_of), len(opened), byref(run), byref(options)), threads=1)))


def _folder(folder: str | os.PathLike) -> list[Recording]:
    if not os.path.isdir(folder):
        return [open_recording(folder)]
    try:
        found = os.listdir(folder)
    except OSError as error:
        raise unreadable(error, path(folder)) from None
    names = sorted(name for name in found if not name.startswith(".") and any(kind in name for kind in (".pickle", ".pkl", ".fgt")))
    return [open_recording(os.path.join(folder, name)) for name in names]


def sweep(experiment: str | os.PathLike | Mapping[str, Any], *, folder: str | os.PathLike | None = None, output: str | os.PathLike | None = None, overwrite: bool = False, counts_only: bool = False,
          threads: int = 1) -> list[dict[str, Any]]:
    """Run all combinations of an experiment: the path of its file (docs/sweep.md), or the same as a dictionary.

    Returns the rows, each as ``fraglab sweep`` writes it; a combination that a policy refuses is a row that says so.
    folder: where relative paths of a dictionary begin. output: a file that rows are appended to; those it has already are
    not computed again nor returned.
    """
    options = _native.SweepOptions(folder=path(folder, "folder") if folder is not None else None, output=path(output, "output") if output is not None else None,
                                   overwrite=flag(overwrite, "overwrite"), counts_only=flag(counts_only, "counts_only"))
    stored = c_void_p()
    if isinstance(experiment, Mapping):
        data = json.dumps(dict(experiment), default=os.fspath).encode()
        _native.call(library.sweep_memory, data, len(data), byref(options), byref(stored), None, threads=thread_count(threads))
    else:
        _native.call(library.sweep_path, path(experiment, "experiment"), byref(options), byref(stored), None, threads=thread_count(threads))
    return [json.loads(line) for line in _native.take_text(stored).splitlines()]


class Comparison:
    """What got worse between two sets of rows. ``has_finding``: something is worse, or a row could not be compared."""

    def __init__(self, handle: _native.Handle) -> None:
        self.has_finding = bool(library.comparison_has_finding(handle.value))
        self._lines = library.comparison_json(handle.value).decode("utf-8", "replace")

    def to_json(self) -> str:
        """As ``fraglab compare --format jsonl`` prints it."""
        return self._lines

    def to_dicts(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._lines.splitlines()]

    def _repr_html_(self) -> str:
        rows = self.to_dicts()
        changed = [row for row in rows if row.get("verdict", "same") not in ("same", "within")]
        shown = [[row["trace"], row["policy"], row["metric"], *(_shown(row["metric"], row[side]) for side in ("base", "now")), row["verdict"]] for row in changed]
        noted = [[row["trace"], row["policy"], row.get("problem") or row.get("note")] for row in rows if row.get("schema") == "fraglab.compare-row/1"]
        parts = [table([("finding", "something is worse" if self.has_finding else "nothing is worse"), ("metrics that changed", len(changed))], "comparison")]
        parts += [grid(["trace", "policy", "metric", "base", "now", "verdict"], shown, "changes")] if shown else []
        parts += [grid(["trace", "policy", "note"], noted, "rows with a note")] if noted else []
        return "".join(parts)

    def __repr__(self) -> str:
        return f"<fraglab.Comparison: {'something is worse' if self.has_finding else 'nothing is worse'}>"


def _shown(metric: str, value: Any) -> Any:
    return show_bytes(value) if metric.endswith("_bytes") and isinstance(value, int) else value


def compare(base: Any, now: Any, *, fail_above: str | None = None, thresholds: Iterable[str] = (), metrics: Iterable[str] = (), allow_missing: bool = False) -> Comparison:
    """Compare rows: each side is a Result, a list of them, bytes of rows (one JSON object a line), or the path of a file of them.

    fail_above: how much a metric may get worse: "1%" (default), "16MiB", or both joined by a comma; thresholds
    "METRIC=AMOUNT"; metrics: compare only these.
    """
    limits = _texts(thresholds, "thresholds")
    names = _texts(metrics, "metrics")
    options = _native.CompareOptions(fail_above=text(fail_above, "fail_above"), thresholds=cast(limits, POINTER(c_char_p)), threshold_count=len(limits) - 1, metrics=cast(names, POINTER(c_char_p)),
                                     metric_count=len(names) - 1, allow_missing=flag(allow_missing, "allow_missing"))
    left, right = _rows(base, "base"), _rows(now, "now")
    return Comparison(stored_by(library.compare_memory, library.comparison_destroy, arguments=(left, c_size_t(len(left)), right, c_size_t(len(right)), byref(options))))


def _texts(items: Iterable[str], what: str):
    if isinstance(items, str):
        raise TypeError(f"{what} is str; expected a list of texts")
    encoded = [text(item, what) for item in items]
    if None in encoded:
        raise TypeError(f"{what} has None; expected str")
    return (c_char_p * (len(encoded) + 1))(*encoded)


def _rows(rows: Any, what: str) -> bytes:
    if isinstance(rows, Result):
        return rows.to_json().encode()
    if isinstance(rows, (bytes, bytearray, memoryview)):
        return bytes(rows)
    if isinstance(rows, (str, os.PathLike)):
        return content(rows, what)
    if isinstance(rows, Iterable) and not isinstance(rows, Mapping):
        rows = list(rows)
        if all(isinstance(row, Result) for row in rows):
            return "".join(row.to_json() for row in rows).encode()
    raise TypeError(f"{what} is {type(rows).__name__}; expected a Result, a list of them, bytes of rows or a path")
