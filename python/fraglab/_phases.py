"""Phases of training, and what memory they needed, from the history in a snapshot of PyTorch."""
from __future__ import annotations

import bisect
from typing import Any, NamedTuple


class Mark(NamedTuple):
    """At a time of the system's clock, which is that of the history too; stage "START", "END" or "" (a point)."""

    time_us: int
    name: str
    stage: str


class Peak(NamedTuple):
    name: str
    requested_bytes: int
    reserved_bytes: int


# What an entry of the history adds to requested and reserved bytes, times its size.
CHANGES = {"alloc": (1, 0), "free_completed": (-1, 0), "segment_alloc": (0, 1), "segment_map": (0, 1), "segment_free": (0, -1), "segment_unmap": (0, -1)}


def keep_since(snapshot: dict[str, Any], time_us: int) -> None:
    """Drops entries of a history that had begun before the recording."""
    snapshot["device_traces"] = [[entry for entry in trace if entry.get("time_us", time_us) >= time_us] for trace in snapshot["device_traces"]]
    if "external_annotations" in snapshot:
        snapshot["external_annotations"] = [mark for mark in snapshot["external_annotations"] if mark.get("time_us", time_us) >= time_us]


def request_count(snapshot: dict[str, Any]) -> int:
    return sum(entry["action"] == "alloc" for trace in snapshot["device_traces"] for entry in trace)


def ran_out(snapshot: dict[str, Any]) -> bool:
    return any(entry["action"] == "oom" for trace in snapshot["device_traces"] for entry in trace)


def without_empty(marks: list[Mark], snapshot: dict[str, Any]) -> list[Mark]:
    """Leaves out phases in which nothing was requested, such as that between a backward pass and its optimizer step."""
    times = sorted(entry.get("time_us", 0) for trace in snapshot["device_traces"] for entry in trace if entry["action"] == "alloc")
    kept: list[Mark] = []
    for mark in marks:
        begin = kept[-1] if kept else None
        if mark.stage == "END" and begin is not None and begin.stage == "START" and begin.name == mark.name and bisect.bisect_left(times, begin.time_us) == bisect.bisect_left(times, mark.time_us):
            kept.pop()
        else:
            kept.append(mark)
    return kept


def annotate(snapshot: dict[str, Any], marks: list[Mark]) -> None:
    """Puts marks where PyTorch's own annotations are: every command of fraglab and PyTorch's viewer find them there."""
    devices = [number for number, trace in enumerate(snapshot["device_traces"]) if trace]
    added = [{"stage": mark.stage, "name": mark.name, "device": device, "time_us": mark.time_us} for mark in marks for device in devices]
    snapshot["external_annotations"] = list(snapshot.get("external_annotations") or []) + added


def main_device(snapshot: dict[str, Any]) -> int:
    """That which holds most at the end, else has the longest history."""
    held = [0] * (len(snapshot["device_traces"]) or 1)
    for segment in snapshot["segments"]:
        if segment["device"] < len(held):
            held[segment["device"]] += segment["total_size"]
    lengths = [len(trace) for trace in snapshot["device_traces"]] or [0]
    return max(range(len(held)), key=lambda device: (held[device], lengths[device]))


def start(snapshot: dict[str, Any], device: int) -> tuple[int, int]:
    """Requested and reserved bytes before the first entry: those at the end less all changes."""
    segments = [segment for segment in snapshot["segments"] if segment["device"] == device]
    requested = sum(block.get("requested_size", block["size"]) for segment in segments for block in segment["blocks"] if block["state"].startswith("active"))
    reserved = sum(segment["total_size"] for segment in segments)
    for entry in snapshot["device_traces"][device] if snapshot["device_traces"] else ():
        change = CHANGES.get(entry["action"])
        if change is not None:
            requested -= change[0] * entry["size"]
            reserved -= change[1] * entry["size"]
    return requested, reserved


def peaks(snapshot: dict[str, Any], marks: list[Mark]) -> list[Peak]:
    """The most of requested and of reserved bytes inside each phase, in order of their first, and "in all", on the device that holds most."""
    device = main_device(snapshot)
    requested, reserved = start(snapshot, device)
    found: dict[str, list[int]] = {}
    running: list[str] = []
    all_ = [requested, reserved]

    def raise_to(most: list[int]) -> None:
        most[0], most[1] = max(most[0], requested), max(most[1], reserved)

    waiting = sorted(marks, key=lambda mark: mark.time_us)
    at = 0
    for entry in snapshot["device_traces"][device] if snapshot["device_traces"] else ():
        while at < len(waiting) and waiting[at].time_us <= entry.get("time_us", 0):
            name, stage = waiting[at].name, waiting[at].stage
            at += 1
            if stage == "START":
                running.append(name)
                raise_to(found.setdefault(name, [0, 0]))
            elif stage == "END" and name in running:
                running.remove(name)
        change = CHANGES.get(entry["action"])
        if change is None:
            continue
        requested += change[0] * entry["size"]
        reserved += change[1] * entry["size"]
        raise_to(all_)
        for name in running:
            raise_to(found[name])
    return [Peak(name, *most) for name, most in found.items()] + [Peak("in all", *all_)]
