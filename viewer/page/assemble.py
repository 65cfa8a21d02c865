#!/usr/bin/env python3
"""Puts the viewer's page together: assemble.py OBJECTS PAGE

OBJECTS is the folder of viewer.wasm and of the page_parts.c that the report in it was built from."""
import base64
import gzip
import hashlib
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
SHARED = [HERE.parent.parent / "report" / "page" / name for name in ("columns.js", "format.js", "theme.js")]
DEVICES = HERE.parent.parent / "devices"
STYLE = HERE.parent.parent / "report" / "page" / "page.css"


def packed(content):
    return base64.b64encode(gzip.compress(content, 9, mtime=0)).decode()


def hash_of(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def report_hash(objects, name):
    """The hash of what the library writes into a report."""
    parts = (objects / "report" / "page" / "page_parts.c").read_text()
    return "'" + re.search(rf'frag_page_{name}_hash\[\] = "([^"]+)"', parts).group(1) + "'"


def main():
    objects, target = (pathlib.Path(argument) for argument in sys.argv[1:3])
    read = lambda *paths: "".join(path.read_text() for path in paths)
    script = read(*SHARED, HERE / "library.js", HERE / "viewer.js")
    style = read(STYLE, HERE / "viewer.css")
    worker = "'use strict';\n" + read(HERE / "core.js", HERE / "worker.js")
    # Nothing is fetched. The frame of the report takes this policy over, and has a stricter one of its own.
    policy = ("default-src 'none'; "
              f"script-src {hash_of(script)} {report_hash(objects, 'script')} 'wasm-unsafe-eval'; "
              f"style-src {hash_of(style)} {report_hash(objects, 'style')}; "
              "worker-src blob:; frame-src blob:; img-src data:; base-uri 'none'; form-action 'none'")
    cards = {f"devices/{path.name}": path.read_text() for path in sorted(DEVICES.glob("*.yaml"))}
    parts = {"policy": policy, "style": style, "script": script, "worker": worker,
             "files": packed(json.dumps(cards).encode()), "module": packed((objects / "viewer.wasm").read_bytes())}
    for name in ("script", "worker", "style"):
        if re.search(r"</(script|style)", parts[name], re.I):
            sys.exit(f"assemble.py: the {name} would end its own element")
    page = re.sub(r"\{\{([a-z]+)\}\}", lambda place: parts[place.group(1)], (HERE / "viewer.html").read_text())
    target.write_text(page)
    print(f"{target}: {target.stat().st_size:,} bytes")


main()
