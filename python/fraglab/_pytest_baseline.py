"""The file of accepted figures that is kept in a repository: one line for each test, release of PyTorch and card."""
from __future__ import annotations

import json
import os
import pathlib
from typing import Any

from fraglab._arguments import size
from fraglab._native import InputError
from fraglab._pictures import show_bytes

SCHEMA = 1
COMPARED = ("requested_bytes", "allocated_bytes", "reserved_bytes", "device_calls")
# A record is that of a test under these; what it was made with may differ, but not silently.
UNDER = ("test", "torch", "gpu", "device")
MADE_WITH = ("fraglab", "digest")


def load(path: pathlib.Path) -> list[dict[str, Any]]:
    """An InputError says what is wrong with the file; one that is not there is empty."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: the baseline cannot be read ({error})", 3, str(path)) from None
    try:
        file = json.loads(text)
    except ValueError as error:
        raise InputError(f"{path}: expected JSON ({error}); take the file from the repository, or make it anew with --fraglab-update", 3, str(path)) from None
    records = file.get("figures") if isinstance(file, dict) else None
    if not isinstance(records, list) or file.get("schema") != SCHEMA:
        raise InputError(f"{path}: expected a baseline of schema {SCHEMA} with a list 'figures'; make it anew with --fraglab-update", 3, str(path))
    for number, record in enumerate(records):
        wrong = [name for name in COMPARED if not isinstance(record, dict) or not isinstance(record.get(name), int) or isinstance(record.get(name), bool) or record[name] < 0]
        if wrong or not all(isinstance(record.get(name), (str, type(None))) for name in UNDER + MADE_WITH):
            raise InputError(f"{path}: figures[{number}] is no record of a test; expected {', '.join(UNDER + MADE_WITH)} as texts and {', '.join(COMPARED)} as whole numbers", 3, str(path))
    return records


def key(record: dict[str, Any]) -> tuple[str, ...]:
    return tuple(record.get(name) or "" for name in UNDER)


def save(path: pathlib.Path, records: list[dict[str, Any]], new: list[dict[str, Any]]) -> None:
    """New ones take the places of those under the same; a line each, in order, so that a diff shows what changed."""
    merged = {key(record): record for record in records}
    merged.update({key(record): record for record in new})
    lines = [json.dumps({name: record.get(name) for name in (*UNDER, *COMPARED, *MADE_WITH)}, ensure_ascii=False) for _, record in sorted(merged.items())]
    text = f'{{"schema": {SCHEMA}, "figures": [\n' + ",\n".join(lines) + "\n]}\n"
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, path)


def amount(text: str | int, what: str) -> tuple[float, int]:
    """How much a figure may grow: "1%" as a ratio, else bytes."""
    if isinstance(text, str) and text.endswith("%"):
        try:
            ratio = float(text[:-1]) / 100
        except ValueError:
            ratio = -1.0
        if not 0 <= ratio <= 100:
            raise ValueError(f"{what}: '{text}' is not a share; write one like 1%")
        return ratio, 0
    return 0.0, size(text, what)


def under(record: dict[str, Any]) -> str:
    return f"torch {record.get('torch')} on {record.get('gpu')} ({record.get('device')})"


def made_with(record: dict[str, Any]) -> str:
    return f"fraglab {record.get('fraglab')}" + (f", software CUDA {record['digest']}" if record.get("digest") else "")


def compare(now: dict[str, Any], records: list[dict[str, Any]], fail_above: str | int) -> tuple[str | None, str | None]:
    """(what is wrong, what is good to know) of a test's figures, each None if nothing."""
    base = next((record for record in records if key(record) == key(now)), None)
    if base is None:
        others = "; there is one for " + ", ".join(sorted({under(record) for record in records})) if records else ""
        return f"there is no baseline for {under(now)}{others}; pytest --fraglab --fraglab-update writes it", None
    ratio, bytes_ = amount(fail_above, "fail_above")
    grown, shrunk = [], []
    for name in COMPARED:
        change = now[name] - base[name]
        allowed = base[name] * ratio if name == "device_calls" else base[name] * ratio + bytes_
        show = str if name == "device_calls" else show_bytes
        label = name.replace("_bytes", "").replace("_", " ")
        if change > allowed:
            grown.append(f"{label} {show(base[name])} -> {show(now[name])} ({change:+,})")
        elif change < 0:
            shrunk.append(f"{label} {show(base[name])} -> {show(now[name])} ({change:+,})")
    differs = [name for name in MADE_WITH if (base.get(name) or "") != (now.get(name) or "")]
    drift = f"the baseline was made with {made_with(base)}, this is {made_with(now)}" if differs else None
    if grown:
        text = "above the baseline: " + ", ".join(grown)
        return text + (f"; {drift}: the change may be fraglab's own" if drift else ""), None
    if shrunk:
        return None, "below the baseline: " + ", ".join(shrunk) + "; --fraglab-update keeps it" + (f"; {drift}" if drift else "")
    return None, f"{drift}, and the figures are equal; --fraglab-update records it" if drift else None
