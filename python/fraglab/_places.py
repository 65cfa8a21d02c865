"""Where the program and the library of this package are: inside an installed wheel, in a source tree, or on the system."""
from __future__ import annotations

import os
import pathlib
import shutil

HERE = pathlib.Path(__file__).resolve().parent


def _source_tree() -> pathlib.Path | None:
    """The folder that this file's package was checked out in."""
    tree = HERE.parent.parent
    return tree if (tree / "include" / "fraglab.h").is_file() and (tree / "api").is_dir() else None


def _first(paths: list[pathlib.Path]) -> str | None:
    return next((str(path) for path in paths if path.is_file()), None)


def find_bin() -> str:
    """Return the path of the program ``fraglab`` that belongs to this package.

    Inside an installed package it is the package's own; in a source tree what ``make`` built; else the
    one of ``PATH``. Raises FileNotFoundError with a sentence if there is none.
    """
    tree = _source_tree()
    found = _first([HERE / "_root/bin/fraglab"] + ([tree / "fraglab"] if tree else []))
    if found is not None and not os.access(found, os.X_OK):
        raise FileNotFoundError(f"{found} may not be executed; install the package again with pip, which keeps permissions")
    found = found or shutil.which("fraglab")
    if found is None:
        raise FileNotFoundError(f"there is no program fraglab in {HERE / '_root/bin'} nor in PATH; install the package's wheel, or run make in a source tree")
    return found


def find_library() -> str:
    """Return what libfraglab.so.0 is loaded by: ``FRAGLAB_LIBRARY`` if that is set, the package's own, that of a source tree, or its plain name."""
    given = os.environ.get("FRAGLAB_LIBRARY")
    if given:
        return given
    tree = _source_tree()
    return _first([HERE / "_root/lib/libfraglab.so.0"] + ([tree / "build/release/library/libfraglab.so.0"] if tree else [])) or "libfraglab.so.0"


def find_samples() -> str:
    """Return the folder of the recordings that come with the package, to try things out on.

    Raises FileNotFoundError with a sentence if there is none.
    """
    tree = _source_tree()
    places = [HERE / "_root/share/fraglab/samples", *([tree / "traces/samples"] if tree else []), pathlib.Path("/usr/share/fraglab/samples"), pathlib.Path("/usr/local/share/fraglab/samples")]
    for place in places:
        if (place / "README.md").is_file():
            return str(place)
    raise FileNotFoundError(f"there are no samples in {', '.join(map(str, places))}; install the package's wheel")
