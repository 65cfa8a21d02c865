#!/usr/bin/env python3
"""Writes the JSON Schemas of this folder from the tables of docs/result-format.md and docs/json-objects.md: schemas/write.py [--check]

A table is the one place where a field is described. A path `a.b[].c` is c of each object in the list a.b, `{a,b}_bytes` are two fields,
and "optional" among the types is said of a field that is left out at times. --check: exits with 1 if a file is not what the tables say.
"""
from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
TYPES = {"text": "string", "number": "number", "bytes": "integer", "ns": "integer", "ratio": "number", "flag": "boolean", "object": "object", "list": "array", "null": "null"}
# Name, heading of the table (the first below it), title, fields that are always there (None: all that are not optional).
TABLES = (
    ("compare", "## Rows of compare", "A row of fraglab compare --format jsonl for a metric", None),
    ("compare-row", "### A row that is not compared", "A row of fraglab compare --format jsonl for a row that is not compared or has a note", None),
    ("compare-summary", "### The end of a comparison", "The last row of fraglab compare --format jsonl", None),
    ("verify", "## A row of verify", "A row of fraglab verify --format jsonl", ["schema", "policy", "verify"]),
    ("verify-golden", "### Against golden logs", "A row of fraglab verify --against golden --format jsonl", None),
    ("trace-info", "### A row of trace info", "A row of fraglab trace info --format jsonl", None),
    ("policies", "### A row of policies", "A row of fraglab policies --format jsonl", None),
    ("device-list", "### A row of device list", "A row of fraglab device list --format jsonl", None),
    ("gpu", "### A row of doctor", "A row of fraglab doctor --format jsonl", None),
    ("explain-message", "## Explain: a message", "What fraglab explain --format jsonl prints of a message or log", None),
    ("explain-recording", "## Explain: a recording", "What fraglab explain --format jsonl prints of a device of a recording", None),
    ("tune", "## Tune", "What fraglab tune --format jsonl prints of a policy", None),
    ("plan", "## Plan", "What fraglab plan --format jsonl prints of a card", None),
    ("diff-site", "## Diff: a call site", "What fraglab diff --format jsonl prints of a call site", None),
    ("diff", "## Diff", "What fraglab diff --format json prints", None),
    ("leak", "## Leaks: a leak", "What fraglab leaks --format jsonl prints of a leak", None),
    ("leaks", "## Leaks", "What fraglab leaks --format json prints", None),
    ("ranks", "## Ranks", "What fraglab ranks --format jsonl prints", None),
    ("dryrun", "## Dryrun", "What fraglab dryrun --report FILE.jsonl writes of a process", None),
    ("bisect-step", "## Bisect: a release", "What fraglab bisect --format jsonl prints of a release", None),
    ("bisect", "## Bisect: the answer", "What fraglab bisect --format jsonl prints at the end", None),
)


def fields(page: str, heading: str) -> list[tuple[str, str, str]]:
    """(path, type, meaning) of the first table below a heading."""
    below = page[page.index(heading + "\n"):]
    rows = re.search(r"^\| field \| type \| meaning \|\n\| --- .*\n((?:\|.*\n)+)", below, re.M)[1]
    return [tuple(cell.strip() for cell in line.strip("|\n").split(" | ", 2)) for line in (row[1:].strip() for row in rows.splitlines())]


def golden_fields(page: str) -> list[tuple[str, str, str]]:
    """Four are "as above" on the page."""
    shared = ("`schema`", "`policy.name`", "`policy.label`", "`verify.is_identical`")
    return [row for row in fields(page, "## A row of verify") if row[0] in shared] + fields(page, "### Against golden logs")


def leaf(type_: str, meaning: str) -> dict:
    names = [TYPES[name] for name in type_.split(" or ")]
    said = {"type": names[0] if len(names) == 1 else names}
    constant = re.fullmatch(r"`(fraglab\.[a-z-]+/\d+)`|\"([a-z-]+)\"|(\d+)", meaning)
    if constant:
        said = {"const": constant[1] or constant[2] or int(constant[3])}
    meaning = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", meaning).strip(" |")
    return {**said, "description": meaning} if meaning else said


def alternatives(path: str) -> list[str]:
    """`peak.{allocated,reserved}_bytes` is two paths."""
    braces = re.search(r"\{([^}]*)\}", path)
    return [path] if braces is None else [longer for name in braces[1].split(",") for longer in alternatives(path[:braces.start()] + name + path[braces.end():])]


def inside(place: dict, name: str, can_be_null: set[str]) -> dict:
    """The object at a name of another; with [] after it, what each item of a list is."""
    is_list = name.endswith("[]")
    name = name.removesuffix("[]")
    member = place["properties"].setdefault(name, {"type": "array"} if is_list else {"type": ["object", "null"] if name in can_be_null else "object", "properties": {}})
    place = member.setdefault("items", {"type": "object"}) if is_list else member
    place.setdefault("properties", {})
    return place


def schema(rows: list[tuple[str, str, str]], title: str, required: list[str] | None) -> dict:
    top: dict = {"type": "object", "properties": {}}
    can_be_null = set(re.findall(r"`(\w+)` is null", " ".join(meaning for _, _, meaning in rows)))
    for written, type_, meaning in rows:
        for path in alternatives(written.strip("`")):
            *parents, name = path.split(".")
            place = top
            for parent in parents:
                place = inside(place, parent, can_be_null)
            said = leaf(type_.removesuffix(", optional"), meaning)
            if name.endswith("[]"):
                place["properties"].setdefault(name.removesuffix("[]"), {"type": "array"})["items"] = said
            else:
                place["properties"][name] = {**said, **({"optional": True} if type_.endswith(", optional") else {})}
    demand(top, required)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, "description": "Later versions may add fields; none changes its meaning.", **top}


def demand(place: dict, required: list[str] | None) -> bool:
    """Lists the fields that are always there; an object of which all are optional is so itself. True: there is one that is not."""
    always = [name for name, member in place["properties"].items() if is_always(member, required)]
    place["required"] = always if required is None else required
    return bool(always)


def is_always(member: dict, required: list[str] | None) -> bool:
    within = None if required is None else []
    if "properties" in member.get("items", {}):
        demand(member["items"], within)
    is_filled = demand(member, within) if "properties" in member else True
    return not member.pop("optional", False) and is_filled


def all_files() -> dict[str, str]:
    page = "".join((ROOT / f"docs/{name}.md").read_text(encoding="utf-8") for name in ("result-format", "json-objects"))
    files = {name: json.dumps(schema(golden_fields(page) if name == "verify-golden" else fields(page, heading), title, required), indent=1, ensure_ascii=False) + "\n" for name, heading, title, required in TABLES}
    files["run"] = subprocess.run([str(ROOT / "fraglab"), "help", "--schema"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return files


def main(arguments: list[str]) -> int:
    wrong = 0
    for name, text in all_files().items():
        path = ROOT / f"schemas/{name}.json"
        if "--check" not in arguments:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            wrong = 1
            print(f"schemas/{name}.json is not what the docs say; schemas/write.py writes it anew")
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
