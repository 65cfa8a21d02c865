#!/usr/bin/env python3
"""What pip calls to build fraglab from its source (PEP 517): make with the libraries of the system.

packaging/backend.py FOLDER writes the source distribution there: everything but what tests read.
"""
from __future__ import annotations

import gzip
import io
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import wheel  # noqa: E402

ROOT = wheel.ROOT
# 20 MB that nothing but tests and pages need.
LEFT_OUT = ("tests/data/", "tests/fuzz/corpus/", "docs/figures/", "build/")


def _git(*arguments: str) -> str | None:
    """The answer of git, if this is a clone of fraglab rather than a folder inside another one."""
    if not (ROOT / ".git").exists():
        return None
    answer = subprocess.run(["git", "-C", str(ROOT), *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return answer.stdout if answer.returncode == 0 else None


def source_files() -> list[str]:
    """What is tracked, or in an unpacked source distribution what is there."""
    listed = _git("ls-files", "-z")
    if listed is not None:
        names = listed.split("\0")
    else:
        names = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*")]
    return sorted(name for name in names if name and name != "PKG-INFO" and not name.startswith(LEFT_OUT) and "__pycache__" not in name and (ROOT / name).is_file())


def _source_bytes(name: str) -> bytes:
    """A file; in VERSION.commit stands what git says, as in a tarball of a forge."""
    data = (ROOT / name).read_bytes()
    commit = _git("describe", "--always", "--dirty", "--abbrev=12", "--exclude", "*") if name == "VERSION.commit" else None
    if commit is not None:
        date = (_git("log", "-1", "--format=%cs") or "").strip()
        text = re.sub(r"^commit .*$", "commit " + commit.strip(), data.decode(), flags=re.M)
        data = re.sub(r"^date .*$", "date " + date, text, flags=re.M).encode()
    return data


def build_sdist(sdist_directory: str, config_settings: dict | None = None) -> str:
    """Writes fraglab-VERSION.tar.gz, the same bytes for the same files and SOURCE_DATE_EPOCH."""
    name = f"fraglab-{wheel.version()}"
    members = [("PKG-INFO", wheel.metadata().encode(), 0o644)]
    members += [(file, _source_bytes(file), 0o755 if os.access(ROOT / file, os.X_OK) else 0o644) for file in source_files()]
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for member, data, mode in members:
            entry = tarfile.TarInfo(f"{name}/{member}")
            entry.size, entry.mode, entry.mtime = len(data), mode, wheel.epoch()
            archive.addfile(entry, io.BytesIO(data))
    folder = pathlib.Path(sdist_directory)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{name}.tar.gz", "wb") as file:
        with gzip.GzipFile("", "wb", 9, file, mtime=wheel.epoch()) as packed:
            packed.write(content.getvalue())
    return f"{name}.tar.gz"


def build_wheel(wheel_directory: str, config_settings: dict | None = None, metadata_directory: str | None = None) -> str:
    """Builds with make and writes a wheel for this system alone. Installs no packages: says which are missing."""
    environment = dict(os.environ, FRAG_SETUP_INSTALL="no")
    with tempfile.TemporaryDirectory(prefix="fraglab-") as folder:
        make = [os.environ.get("MAKE", "make"), "--no-print-directory", "-s", f"-j{os.cpu_count() or 1}", "install", "MPI=no", f"DESTDIR={folder}", "PREFIX=/usr/local"]
        done = subprocess.run(make, cwd=ROOT, env=environment, check=False)
        if done.returncode != 0:
            raise RuntimeError("make did not build fraglab; the lines above say why")
        files = wheel.entries(pathlib.Path(folder) / "usr/local", None)
    platform = re.sub(r"[^A-Za-z0-9]", "_", sysconfig.get_platform())
    return wheel.write_wheel(pathlib.Path(wheel_directory), f"py3-none-{platform}", files)


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/wheel")
    print(target / build_sdist(str(target)))
