"""The page of --fraglab-report: one HTML file with figures, timelines and who held the memory; it needs no network."""
from __future__ import annotations

import html
import os
from typing import Any

from fraglab._pictures import levels, show_bytes

STYLE = """body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:64rem;padding:0 1rem;color:#1a1a1a;background:#fff}
table{border-collapse:collapse;width:100%}th,td{padding:.3rem .6rem;text-align:right;border-bottom:1px solid #ddd}th:first-child,td:first-child{text-align:left}
svg{width:100%;height:auto;background:#f6f6f6}h2{font-size:1rem;margin:2rem 0 .5rem}.above{color:#b00020}pre{overflow:auto}"""


def _test(number: int, found: dict[str, Any]) -> str:
    limit = found["wishes"]["limit"]
    parts = [f"<h2 id='t{number}'>{html.escape(found['test'])}</h2>"]
    if found.get("timeline"):
        parts.append(levels(found["timeline"], limit))
    if found.get("holders"):
        rows = "".join(f"<tr><td>{html.escape(name)}</td><td>{show_bytes(size)}</td><td>{count}</td></tr>" for name, size, count in found["holders"])
        parts.append(f"<table><tr><th>live at the peak of requested bytes</th><th>bytes</th><th>blocks</th></tr>{rows}</table>")
    if found["note"]:
        parts.append(f"<p>{html.escape(found['note'])}</p>")
    return "".join(parts)


def problem(path: str) -> str | None:
    """Why no page can be written there; None: it can."""
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        return f"there is no folder {folder}; make it, or choose another"
    if os.path.isdir(path):
        return "it is a folder; name a file in it"
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        return "it cannot be written; choose a writable place"
    return None


def write(path: str, tests: list[dict[str, Any]]) -> None:
    tests = sorted(tests, key=lambda found: (-found["reserved_bytes"], found["test"]))
    rows = "".join(f"<tr><td><a href='#t{number}'>{html.escape(found['test'])}</a></td><td>{show_bytes(found['requested_bytes'])}</td><td>{show_bytes(found['allocated_bytes'])}</td>"
                   f"<td>{show_bytes(found['reserved_bytes'])}</td><td>{found['device_calls']}</td><td>{show_bytes(found['leaked_bytes'])}</td><td>{show_bytes(found['wishes']['limit'])}</td></tr>"
                   for number, found in enumerate(tests))
    cards = "; ".join(sorted({f"{found['gpu']} ({found['device']}), torch {found['torch']}" for found in tests if found["gpu"]}))
    page = (f"<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' content='width=device-width'><title>GPU memory of tests</title><style>{STYLE}</style>"
            f"<h1>GPU memory of tests</h1><p>{html.escape(cards)}. Filled: requested bytes; line: reserved bytes; dashed: the limit. From left to right: requests and frees.</p>"
            f"<table><tr><th>test</th><th>requested</th><th>allocated</th><th>reserved</th><th>device calls</th><th>leaked</th><th>limit</th></tr>{rows}</table>"
            + "".join(_test(number, found) for number, found in enumerate(tests)) + "</html>\n")
    with open(path, "w", encoding="utf-8") as file:
        file.write(page)
