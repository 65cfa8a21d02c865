#!/usr/bin/env python3
"""Writes fraglab-VERSION.dist-info, by which pip, pytest and importlib.metadata know an installed package:

    packaging/dist_info.py FOLDER INSTALLER

FOLDER is where Python's modules are installed, with the folder fraglab in it; INSTALLER the name of what
owns the files, such as debian. For packages of a system, whose
program and library are elsewhere; a wheel has its own (packaging/wheel.py).
"""
from __future__ import annotations

import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import wheel  # noqa: E402


def write(folder: pathlib.Path, installer: str) -> None:
    """Three files; no RECORD, so that pip leaves what is another installer's alone."""
    info = folder / f"fraglab-{wheel.version()}.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    for name, text in (("METADATA", wheel.metadata()), ("entry_points.txt", wheel.PYTEST_PLUGIN), ("INSTALLER", installer + "\n")):
        (info / name).write_text(text)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    write(pathlib.Path(sys.argv[1]), sys.argv[2])
