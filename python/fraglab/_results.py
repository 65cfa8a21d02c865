"""What runs give: rows, timelines, layouts."""
from __future__ import annotations

import ctypes
import json
from typing import TYPE_CHECKING, Any, Callable, Iterator

from fraglab import _native
from fraglab._native import UNLIMITED, library
from fraglab._pictures import boxes, fields, flatten, levels, show_bytes, spans, table

if TYPE_CHECKING:
    import pandas

# A notebook shows pictures of runs up to this many events: they are replayed for it.
MOST_DRAWN = 1_000_000


class Fields:
    """A JSON object whose members are attributes: ``result.peak.reserved_bytes``. ``to_dict()`` is the object itself."""

    __slots__ = ("_object",)

    def __init__(self, members: dict[str, Any]) -> None:
        object.__setattr__(self, "_object", members)

    def __getattr__(self, name: str) -> Any:
        try:
            value = self._object[name]
        except KeyError:
            raise AttributeError(f"there is no {name}; expected one of {', '.join(self._object)}") from None
        return Fields(value) if isinstance(value, dict) else value

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("fields of a result are not changed")

    def __dir__(self) -> list[str]:
        return [*self._object, "to_dict"]

    def __repr__(self) -> str:
        return f"Fields({self._object!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fields) and other._object == self._object

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self):
        return Fields, (self._object,)

    def _repr_html_(self) -> str:
        name = self._object.get("name", self._object.get("kind", self._object.get("schema", "fields")))
        return fields(self._object, str(name))

    def to_dict(self) -> dict[str, Any]:
        return self._object


class Result:
    """The row of a run. Its fields are attributes, as docs/result-format.md lists them: ``result.peak.reserved_bytes``.

    ``result.oom`` is None unless simulated memory ran out. Bytes are int, times int nanoseconds, ratios
    float from 0 to 1; what is not known is None.
    """

    def __init__(self, line: str | bytes, run: tuple | None = None) -> None:
        self._stored, self._run, self._row = line, run, None

    @property
    def _line(self) -> str:
        line = self._stored
        if isinstance(line, bytes):  # as the library gave it: not every row is read
            line = self._stored = line.decode("utf-8", "replace")
        return line

    def to_json(self) -> str:
        """The very line that ``fraglab run --format jsonl`` prints, its newline included."""
        return self._line

    def to_dict(self) -> dict[str, Any]:
        """The row as a dictionary of dictionaries."""
        if self._row is None:
            self._row = json.loads(self._line)
        return self._row

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas.DataFrame of this one row, with columns named by paths. Raises ImportError without pandas."""
        import pandas

        return pandas.DataFrame([flatten(self.to_dict())])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(Fields(self.to_dict()), name)

    def __getitem__(self, path: str) -> Any:
        """A field by its path: ``result["peak.reserved_bytes"]``. Raises KeyError if there is none."""
        if not isinstance(path, str):
            raise TypeError(f"path is {type(path).__name__}; expected str")
        value: Any = self.to_dict()
        for name in path.split("."):
            if not isinstance(value, dict) or name not in value:
                raise KeyError(path)
            value = value[name]
        return value

    def __dir__(self):
        return [*super().__dir__(), *self.to_dict()]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Result) and other._line == self._line

    def __hash__(self) -> int:
        return hash(self._line)

    def __reduce__(self):
        return Result, (self._line,)

    def __repr__(self) -> str:
        end = f", out of memory at event {self.oom.event}" if self.oom is not None else ""
        return f"<fraglab.Result {self.policy.label} on {self.trace.name}: peak reserved {show_bytes(self.peak.reserved_bytes)}{end}>"

    def _repr_html_(self) -> str:
        rows = [("policy", self.policy.label), ("peak requested", show_bytes(self.peak.requested_bytes)), ("peak allocated", show_bytes(self.peak.allocated_bytes)),
                ("peak reserved", show_bytes(self.peak.reserved_bytes)), ("device calls (malloc, map)", self.device_calls.malloc + self.device_calls.map),
                ("out of memory", f"at event {self.oom.event:,}" if self.oom is not None else "no")]
        return table(rows, self.trace.name) + self._pictures()

    def _pictures(self) -> str:
        if self._run is None or not self.trace.events:
            return ""
        if self.trace.events > MOST_DRAWN:
            return f"<p>no pictures, as there are {self.trace.events:,} events; .timeline() draws them</p>"
        try:
            return self.timeline(1000)._drawn()
        except _native.Error as error:
            return table([("no pictures", error)], "")

    def _again(self):
        if self._run is None:
            raise _native.UsageError("this result is only a row; run the recording anew for its timeline or layout")
        return self._run

    def timeline(self, samples: int = 4000) -> "Timeline":
        """Replay the run and return its levels, placements and segments as arrays.

        At most ``samples`` levels (10 or more) are kept, with every peak among them.
        """
        from fraglab._arguments import count

        recording, trace, policy, options = self._again()
        samples = count(samples, "samples", 2**32)
        if samples < 10:
            raise _native.UsageError(f"samples: {samples} is out of range; expected 10 or more", where="samples")
        stored = ctypes.c_void_p()
        _native.call(library.history_record, recording.value, trace, policy.value, ctypes.byref(options), samples, ctypes.byref(stored))
        return Timeline(_native.Handle(stored, library.history_destroy))

    def layout(self, event: int | None = None) -> "Layout":
        """Replay the run and return the layout right after an event (None: at the end).

        ``result.layout(result.peak.reserved_at_event)`` is that at the peak. Where memory runs out before, it is the one there.
        """
        from fraglab._arguments import count

        recording, trace, policy, options = self._again()
        at = UNLIMITED if event is None else count(event, "event")
        stored = ctypes.c_void_p()
        _native.call(library.layout_at, recording.value, trace, policy.value, ctypes.byref(options), at, ctypes.byref(stored))
        return Layout(_native.Handle(stored, library.layout_destroy))


class Columns:
    """Records of C as one array for each member: memoryviews of shape (n,) and format "Q" or "I" that share one buffer.

    ``numpy.asarray(columns.address)`` copies nothing. Missing values ("never") are 2**64 - 1.
    """

    def __init__(self, kind: Any, fill: Callable[[Any, int], int]) -> None:
        length = fill(None, 0)
        records = (kind * length)()
        fill(records, length)
        self._length = length
        bytes_ = memoryview(records).cast("B").toreadonly() if length else memoryview(b"")
        for name, type_ in kind._fields_:
            field = getattr(kind, name)
            code = "Q" if ctypes.sizeof(type_) == 8 else "I"
            step = ctypes.sizeof(kind) // field.size
            self.__dict__[name] = bytes_.cast(code)[field.offset // field.size::step]
        self._names = [name for name, _ in kind._fields_]

    def __len__(self) -> int:
        return self._length

    def to_dicts(self) -> list[dict[str, int]]:
        columns = [self.__dict__[name].tolist() for name in self._names]
        return [dict(zip(self._names, row)) for row in zip(*columns)]

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas.DataFrame with one column for each member. Raises ImportError without pandas."""
        import pandas

        return pandas.DataFrame({name: self.__dict__[name].tolist() for name in self._names})

    def __repr__(self) -> str:
        return f"<fraglab.Columns {', '.join(self._names)}: {self._length} records>"


class Placements(Columns):
    """Where each request was placed."""

    event: memoryview
    free_event: memoryview
    end_event: memoryview
    address: memoryview
    block_bytes: memoryview
    rounded_bytes: memoryview


class Segments(Columns):
    """What was held."""

    begin_event: memoryview
    end_event: memoryview
    address: memoryview
    bytes: memoryview
    stream: memoryview
    pool: memoryview


class Timeline(Columns):
    """Levels right after events: ``event``, ``requested_bytes``, ``allocated_bytes``, ``active_bytes``, ``reserved_bytes``.

    ``placements`` says where each request was placed (``event``, ``free_event``, ``end_event``, ``address``,
    ``block_bytes``, ``rounded_bytes``); ``segments`` what was held (``begin_event``, ``end_event``, ``address``,
    ``bytes``, ``stream``, ``pool``). Each is Columns; 2**64 - 1 as an event: never.
    """

    event: memoryview
    requested_bytes: memoryview
    allocated_bytes: memoryview
    active_bytes: memoryview
    reserved_bytes: memoryview

    def __init__(self, handle: _native.Handle) -> None:
        super().__init__(_native.Sample, lambda out, room: library.history_samples(handle.value, out, room))
        self.placements = Placements(_native.Placement, lambda out, room: library.history_placements(handle.value, out, room))
        self.segments = Segments(_native.Segment, lambda out, room: library.history_segments(handle.value, out, room))

    def _drawn(self) -> str:
        if not len(self):
            return ""
        held = self.segments
        segments = list(zip(held.begin_event, held.end_event, held.address, held.bytes))
        put = self.placements
        blocks = [box for box in zip(put.event, put.end_event, put.address, put.block_bytes) if box[3]]  # 0: not served
        return levels(list(zip(self.event, self.requested_bytes, self.reserved_bytes))) + boxes(segments, blocks, self.event[-1])

    def _repr_html_(self) -> str:
        peak = max(self.reserved_bytes, default=0)
        rows = [("levels", len(self)), ("placements", len(self.placements)), ("segments", len(self.segments)), ("peak reserved", show_bytes(peak))]
        return table(rows, "timeline") + self._drawn()


class Layout(Columns):
    """Spans of device memory in order of address, each segment before what is inside it.

    ``kind`` is Layout.SEGMENT, BLOCK or HOLE; ``address``, ``bytes``, ``requested_bytes`` (of a block),
    ``stream``, ``pool``, ``is_waiting`` (1: freed by the program, but still waiting for a stream).
    """

    SEGMENT, BLOCK, HOLE = 0, 1, 2
    kind: memoryview
    stream: memoryview
    pool: memoryview
    is_waiting: memoryview
    address: memoryview
    bytes: memoryview
    requested_bytes: memoryview

    def __init__(self, handle: _native.Handle) -> None:
        super().__init__(_native.Span, lambda out, room: library.layout_spans(handle.value, out, room))

    def _of(self, kind: int) -> Iterator[int]:
        return (size for size, which in zip(self.bytes, self.kind) if which == kind)

    def _repr_html_(self) -> str:
        return table([("segments", show_bytes(sum(self._of(self.SEGMENT)))), ("blocks", show_bytes(sum(self._of(self.BLOCK)))),
                      ("holes", show_bytes(sum(self._of(self.HOLE)))), ("largest hole", show_bytes(max(self._of(self.HOLE), default=0)))], "layout") + spans(list(zip(self.kind, self.address, self.bytes)))
