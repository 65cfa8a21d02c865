#!/usr/bin/env python3
"""What the hooks of pre-commit do: check_files.py size|experiment|workload|latency [--most SIZE] FILE...

size: no file is larger than SIZE (1MiB). The others: fraglab, which is to be in PATH, reads each file with the parser that it uses.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "KiB": 2**10, "MiB": 2**20}
# The least trace that a latency table can be used with.
TRACE = "# fraglab trace 2\nalloc 0 512\n"


def size_of(text: str) -> int:
    found = re.fullmatch(r"(\d+)\s*([A-Za-z]*)", text)
    if not found or found[2] not in UNITS:
        sys.exit(f"--most: '{text}' is no size; write one like 1MiB")
    return int(found[1]) * UNITS[found[2]]


def too_large(files: list, most: int) -> int:
    wrong = 0
    for file in files:
        size = os.path.getsize(file)
        if size > most:
            wrong = 1
            print(f"{file}: a recording of {size:,} bytes, at most {most:,} are allowed; cut it (fraglab trace cut) or compress it (zstd -19)")
    return wrong


def commands(kind: str, file: str, folder: str) -> list:
    if kind == "experiment":
        return ["sweep", "--check", file]
    if kind == "workload":
        return ["trace", "generate", "-f", "-q", file, "-o", os.path.join(folder, "trace.fgt")]
    trace = os.path.join(folder, "none.txt")
    with open(trace, "w", encoding="utf-8") as out:
        out.write(TRACE)
    return ["run", "-q", trace, "--policy", "direct", "--latency", file]


def unreadable(kind: str, files: list) -> int:
    if shutil.which("fraglab") is None:
        print("fraglab is not in PATH; pip install fraglab")
        return 1
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            done = subprocess.run(["fraglab", *commands(kind, file, folder)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace", check=False)
            if done.returncode != 0:
                wrong = 1
                print(done.stderr.strip() or f"{file}: fraglab ended with {done.returncode}")
    return wrong


def main(words: list) -> int:
    if not words or words[0] not in ("size", "experiment", "workload", "latency"):
        sys.exit(__doc__)
    kind, files, most = words[0], [], 2**20
    rest = words[1:]
    while rest:
        word = rest.pop(0)
        if word == "--most" and rest:
            most = size_of(rest.pop(0))
        elif word.startswith("--most="):
            most = size_of(word[len("--most="):])
        else:
            files.append(word)
    return too_large(files, most) if kind == "size" else unreadable(kind, files)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
