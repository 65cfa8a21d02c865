"""Tables and pictures as HTML and SVG that need no script, no network and no other package; every text in them is escaped."""
from __future__ import annotations

import html
from typing import Any, Iterable, Sequence

WIDTH, HEIGHT = 640, 120
NEVER = 2**64 - 1
MOST_BOXES = 1500  # of a map: what is smaller cannot be seen, and a page with more of them is slow
ROWS = 10


def show(value: Any) -> str:
    return "–" if value is None else f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def show_bytes(count: int | None) -> str:
    """For people: 5.61 GiB."""
    if count is None:
        return "–"
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if abs(count) >= unit:
            return f"{count / unit:.2f} {name}"
    return f"{count} B"


def table(rows: Iterable[tuple[str, Any]], caption: str) -> str:
    """A plain table of two columns."""
    body = "".join(f"<tr><th style='text-align:left'>{html.escape(str(name))}</th><td>{html.escape(show(value))}</td></tr>" for name, value in rows)
    return f"<table><caption>{html.escape(caption)}</caption>{body}</table>"


def grid(columns: Sequence[str], rows: Sequence[Sequence[Any]], caption: str) -> str:
    """A table with a heading; how many rows are left out stands below."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(show(value))}</td>" for value in row) + "</tr>" for row in rows[:ROWS])
    more = f"<p>{len(rows) - ROWS:,} more</p>" if len(rows) > ROWS else ""
    return f"<table><caption>{html.escape(caption)}</caption><tr>{head}</tr>{body}</table>{more}"


def flatten(row: dict[str, Any], before: str = "") -> dict[str, Any]:
    """One level, named by paths as the columns of --format csv: ``peak.reserved_bytes``. Options of a policy stay one value."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        path = before + name
        if isinstance(value, dict) and path != "policy.options":
            flat.update(flatten(value, path + "."))
        else:
            flat[path] = value
    return flat


def fields(members: dict[str, Any], caption: str) -> str:
    """Any object of fields: a table of its values, then one for each list of objects in it."""
    flat = flatten(members)
    lists = {name: value for name, value in flat.items() if isinstance(value, list)}
    parts = [table([(name, _value(name, value)) for name, value in flat.items() if name not in lists], caption)]
    for name, items in lists.items():
        rows = [flatten(item) if isinstance(item, dict) else {name: item} for item in items]
        columns = [column for column in dict.fromkeys(column for row in rows for column in row) if not any(isinstance(row.get(column), list) for row in rows)]
        parts.append(grid([_words(column) for column in columns], [[_value(column, row.get(column)) for column in columns] for row in rows], f"{name}: {len(items):,}"))
    return "".join(parts)


def _words(path: str) -> str:
    return path.replace("_bytes", "").replace("_", " ")


def _value(name: str, value: Any) -> Any:
    return show_bytes(value) if name.endswith("bytes") and isinstance(value, int) and not isinstance(value, bool) else value


def _steps(points: list[tuple[int, int]], last: int, top: int) -> str:
    """A polyline of a level that holds until the next event."""
    def place(event: int, size: int) -> str:
        return f"{event * WIDTH / max(last, 1):.1f},{HEIGHT - size * (HEIGHT - 6) / max(top, 1):.1f}"

    corners, before = [], 0
    for event, size in points:
        corners += [place(event, before), place(event, size)]
        before = size
    return " ".join([*corners, place(last, before)])


def levels(timeline: list[tuple[int, int, int]], limit: int | None = None) -> str:
    """Requested (filled) and reserved bytes over events, with a line at the limit. timeline: event, requested, reserved; at least one."""
    last = timeline[-1][0]
    top = max([level[2] for level in timeline] + [level[1] for level in timeline] + ([limit] if limit else []))
    requested = _steps([(event, size) for event, size, _ in timeline], last, top)
    reserved = _steps([(event, size) for event, _, size in timeline], last, top)
    line = f"<line x1='0' x2='{WIDTH}' y1='{HEIGHT - limit * (HEIGHT - 6) / top:.1f}' y2='{HEIGHT - limit * (HEIGHT - 6) / top:.1f}' stroke='#b00020' stroke-dasharray='4'/>" if limit else ""
    return (f"<svg viewBox='0 0 {WIDTH} {HEIGHT}' width='{WIDTH}' role='img' aria-label='requested and reserved bytes'><polygon points='0,{HEIGHT} {requested} {WIDTH},{HEIGHT}' fill='#7aa6d6'/>"
            f"<polyline points='{reserved}' fill='none' stroke='#333'/>{line}</svg>")


Box = tuple[int, int, int, int]  # first event, event after the last (NEVER: the end), address, bytes


def _rows(ranges: list[tuple[int, int]]) -> tuple[list[tuple[int, int, int]], int]:
    """Where ranges of addresses are drawn: (first, end, place), one behind the other, as what lies between them is not the program's; and their sum."""
    merged: list[list[int]] = []
    for first, end in sorted(ranges):
        if merged and first <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([first, end])
    placed, used = [], 0
    for first, end in merged:
        placed.append((first, end, used))
        used += end - first
    return placed, used


def boxes(segments: list[Box], blocks: list[Box], last: int) -> str:
    """A map: blocks (filled) in segments (grey), events from left to right, addresses from bottom to top. The largest are drawn."""
    import bisect

    placed, total = _rows([(address, address + size) for _, _, address, size in segments])
    starts = [first for first, _, _ in placed]

    def draw(box: Box, colour: str) -> str:
        begin, end, address, size = box
        first, _, place = placed[bisect.bisect_right(starts, address) - 1]
        left, right = begin * WIDTH / max(last, 1), min(end, last) * WIDTH / max(last, 1)
        high = size * 2 * HEIGHT / total
        return f"<rect x='{left:.1f}' y='{2 * HEIGHT - (place + address - first) * 2 * HEIGHT / total - high:.2f}' width='{max(right - left, 0):.1f}' height='{high:.2f}' fill='{colour}'/>"

    if not total:
        return ""
    largest = sorted(blocks, key=lambda box: (-(min(box[1], last) - box[0]) * box[3], box))[:MOST_BOXES]
    held = sorted(segments, key=lambda box: (-(min(box[1], last) - box[0]) * box[3], box))[:MOST_BOXES]
    left_out = f"<p>the {MOST_BOXES:,} largest of {len(blocks):,} blocks</p>" if len(blocks) > MOST_BOXES else ""
    return (f"<svg viewBox='0 0 {WIDTH} {2 * HEIGHT}' width='{WIDTH}' role='img' aria-label='map of blocks in segments'>" + "".join(draw(box, "#d9d9d9") for box in held)
            + "".join(draw(box, ("#7aa6d6", "#5b8bc0", "#9abde3")[number % 3]) for number, box in enumerate(largest)) + f"</svg>{left_out}")


def spans(layout: list[tuple[int, int, int]]) -> str:
    """One bar: segments one behind the other in order of address, with their blocks (filled) and holes (grey). layout: kind (0 segment, 1 block, 2 hole), address, bytes."""
    segments = [(0, 1, address, size) for kind, address, size in layout if kind == 0]
    blocks = [(0, 1, address, size) for kind, address, size in layout if kind == 1]
    return boxes(segments, blocks, 1)
