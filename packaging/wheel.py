#!/usr/bin/env python3
"""Writes the wheel of an installed fraglab, with nothing but Python's standard library.

    packaging/wheel.py --prefix build/wheel/tree/usr/local --tag py3-none-manylinux_2_17_x86_64 --out build/wheel [--licences FOLDER]

The prefix is one that `make install` has filled. In the wheel it is the folder fraglab/_root beside the
modules of python/fraglab; the man page and the completions go where the environment keeps its own.
The same files give the same bytes: entries are sorted, and their time is SOURCE_DATE_EPOCH.
"""
from __future__ import annotations

import argparse
import base64
import hashlib
import os
import pathlib
import re
import stat
import sys
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SAMPLES = ("gpt-varlen-oom.pickle.zst", "unet.pickle.zst", "resnet-vary.pickle.zst", "model-parallel.pickle.zst", "gpt-varlen.pickle.zst", "gpt-train.pickle.zst", "README.md")
# What is installed but not carried: 4 MB of pages and pictures, and what a program in C is linked to.
LEFT_OUT = re.compile(r"share/doc/|lib/pkgconfig/|lib/libfraglab\.(a|so)$")
# The same place below any prefix, so that `man` and shells of an environment find them.
OF_ENVIRONMENT = ("share/man/", "share/bash-completion/", "share/zsh/", "share/fish/")
PYTEST_PLUGIN = "[pytest11]\nfraglab = fraglab.pytest_plugin\n"
EARLIEST = 315532800  # 1980: a zip file knows nothing older


def version() -> str:
    return re.search(r"^VERSION = (\S+)$", (ROOT / "Makefile").read_text(), re.M).group(1)


def epoch() -> int:
    return max(int(os.environ.get("SOURCE_DATE_EPOCH", EARLIEST)), EARLIEST)


def metadata() -> str:
    """METADATA, as the packaging guides call it; the long description is python/README.md."""
    lines = [
        "Metadata-Version: 2.4",
        "Name: fraglab",
        f"Version: {version()}",
        "Summary: What a program's GPU-memory requests do to an allocator, without a GPU",
        "License-Expression: MIT",
        "License-File: LICENSE",
        "Keywords: GPU,CUDA,PyTorch,memory,allocator,fragmentation,out of memory",
        "Classifier: Environment :: Console",
        "Classifier: Environment :: GPU",
        "Classifier: Intended Audience :: Developers",
        "Classifier: Intended Audience :: Science/Research",
        "Classifier: Operating System :: POSIX :: Linux",
        "Classifier: Programming Language :: C",
        "Classifier: Programming Language :: Python :: 3",
        "Classifier: Topic :: Software Development :: Debuggers",
        "Classifier: Typing :: Typed",
        "Requires-Python: >=3.9",
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join(lines) + "\n\n" + (ROOT / "python/README.md").read_text()


def real_bytes(path: pathlib.Path) -> bytes:
    """Of a file, or of what a link leads to. A wheel has no links: libcuda.so, which only a compiler opens, becomes a script of the linker."""
    if path.is_symlink() and path.name == "libcuda.so":
        return b"/* GNU ld script */\nINPUT(libcuda.so.1)\n"
    return path.read_bytes()


def entries(prefix: pathlib.Path, licences: pathlib.Path | None) -> dict[str, tuple[bytes, bool]]:
    """Names in the wheel, each with its bytes and whether it is a program or a library."""
    name = f"fraglab-{version()}"
    found = {}
    for path in sorted(prefix.rglob("*")):
        relative = path.relative_to(prefix).as_posix()
        if path.is_dir() or LEFT_OUT.match(relative):
            continue
        # Each folder of the software CUDA has its own copy; a process loads one of them.
        if re.fullmatch(r"lib/fraglab/software-cuda/[^/]+\.so[.0-9]*", relative):
            continue
        place = f"{name}.data/data/{relative}" if relative.startswith(OF_ENVIRONMENT) else f"fraglab/_root/{relative}"
        data = real_bytes(path)
        found[place] = (data, bool(path.stat().st_mode & stat.S_IXUSR) and data[:2] in (b"\x7fE", b"#!"))
    for path in sorted((ROOT / "python/fraglab").rglob("*")):
        if path.suffix in (".py", ".typed", ".pyi"):
            found["fraglab/" + path.relative_to(ROOT / "python/fraglab").as_posix()] = (path.read_bytes(), False)
    for sample in SAMPLES:
        found[f"fraglab/_root/share/fraglab/samples/{sample}"] = ((ROOT / "traces/samples" / sample).read_bytes(), False)
    info = f"{name}.dist-info"
    found[f"{info}/licenses/LICENSE"] = ((ROOT / "LICENSE").read_bytes(), False)
    for path in sorted(licences.iterdir()) if licences else ():
        found[f"{info}/licenses/linked/{path.name}"] = (path.read_bytes(), False)
    found[f"{info}/entry_points.txt"] = (("[console_scripts]\nfraglab = fraglab.__main__:main\n\n" + PYTEST_PLUGIN).encode(), False)
    found[f"{info}/METADATA"] = (metadata().encode(), False)
    return found


def digest(data: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def write_zip(path: pathlib.Path, files: dict[str, tuple[bytes, bool]]) -> None:
    """In the order of the dictionary; replaces the file at path when it is whole."""
    beside = path.with_name(path.name + ".tmp")
    with zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, (data, is_executable) in files.items():
            entry = zipfile.ZipInfo(name, time.gmtime(epoch())[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, for the permissions
            entry.external_attr = (stat.S_IFREG | (0o755 if is_executable else 0o644)) << 16
            archive.writestr(entry, data)
    os.replace(beside, path)


def write_wheel(folder: pathlib.Path, tag: str, files: dict[str, tuple[bytes, bool]]) -> str:
    """Adds WHEEL and RECORD, and returns the name of the file. The folder dist-info comes last, as recommended."""
    info = f"fraglab-{version()}.dist-info"
    files = dict(files)
    files[f"{info}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: fraglab\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(), False)
    ordered = dict(sorted(files.items(), key=lambda item: (item[0].startswith(info), item[0])))
    record = "".join(f"{name},{digest(data)},{len(data)}\n" for name, (data, _) in ordered.items())
    ordered[f"{info}/RECORD"] = ((record + f"{info}/RECORD,,\n").encode(), False)
    folder.mkdir(parents=True, exist_ok=True)
    name = f"fraglab-{version()}-{tag}.whl"
    write_zip(folder / name, ordered)
    return name


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Write the wheel of an installed fraglab.")
    parser.add_argument("--prefix", type=pathlib.Path, required=True, help="what `make install` has filled")
    parser.add_argument("--tag", required=True, help="py3-none-manylinux_2_17_x86_64")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for the wheel")
    parser.add_argument("--licences", type=pathlib.Path, help="folder with the licences of linked libraries")
    given = parser.parse_args(arguments)
    if not (given.prefix / "bin/fraglab").is_file():
        print(f"wheel.py: there is no bin/fraglab in {given.prefix}; expected what make install writes", file=sys.stderr)
        return 1
    name = write_wheel(given.out, given.tag, entries(given.prefix, given.licences))
    print(given.out / name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
