#!/usr/bin/env python3
"""Checks what a wheel promises: packaging/check_wheel.py [--glibc 2.17 | --musl] [--bytes 12000000] [--without TEXT]... FILE

Of every program and library in it: that it is of the architecture in the wheel's name, the newest version of a
glibc symbol, that nothing but the C library and the wheel's own libraries is needed, that no run path leads out of the wheel, and that none of the texts
(a folder of the build machine) stands in it. Of the file: its size, sorted entries, one time, and that
RECORD lists every file with its digest. Prints a line for each thing that is wrong, and exits 1.
"""
from __future__ import annotations

import argparse
import pathlib
import re
import struct
import sys
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from wheel import digest  # noqa: E402

GLIBC = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
MUSL = {"libc.so"}  # musl's loader answers to this name itself
MACHINES = {62: "x86_64", 183: "aarch64"}
DYNAMIC, DYNAMIC_NEEDED, DYNAMIC_STRINGS, DYNAMIC_RPATH, DYNAMIC_RUNPATH, DYNAMIC_VERNEED = 2, 1, 5, 15, 29, 0x6FFFFFFE


class Elf:
    """What the loader reads of a 64-bit little-endian program or library."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        if data[4:6] != b"\x02\x01":
            raise ValueError("expected a 64-bit little-endian ELF file")
        machine, = struct.unpack_from("<H", data, 18)
        self.machine = MACHINES.get(machine, f"machine {machine}")
        offset, = struct.unpack_from("<Q", data, 32)
        size, count = struct.unpack_from("<HH", data, 54)
        self.segments = [struct.unpack_from("<IIQQQQQQ", data, offset + i * size) for i in range(count)]
        self.dynamic: list[tuple[int, int]] = []
        for kind, _, start, _, _, length, _, _ in self.segments:
            if kind == DYNAMIC:
                self.dynamic = [struct.unpack_from("<QQ", data, start + i) for i in range(0, length, 16)]
        self.strings = self.place(dict(self.dynamic).get(DYNAMIC_STRINGS, 0))

    def place(self, address: int) -> int:
        """The offset in the file of what is loaded there."""
        for kind, _, offset, start, _, length, _, _ in self.segments:
            if kind == 1 and start <= address < start + length:
                return address - start + offset
        return 0

    def text(self, offset: int) -> str:
        begin = self.strings + offset
        return self.data[begin:self.data.index(b"\0", begin)].decode()

    def texts(self, tag: int) -> list[str]:
        return [self.text(value) for kind, value in self.dynamic if kind == tag]

    def versions(self) -> list[str]:
        """Of symbols that other libraries must have: "GLIBC_2.17"."""
        found = []
        at = self.place(dict(self.dynamic).get(DYNAMIC_VERNEED, 0))
        while at:
            _, count, _, entry, following = struct.unpack_from("<HHIII", self.data, at)
            entry += at
            for _ in range(count):
                _, _, _, name, step = struct.unpack_from("<IHHII", self.data, entry)
                found.append(self.text(name))
                entry += step
            at = at + following if following else 0
        return found


def newer(version: str, limit: str) -> bool:
    return [int(part) for part in version.split(".")] > [int(part) for part in limit.split(".")]


def check_binary(name: str, data: bytes, own: set[str], glibc: str | None, machine: str) -> list[str]:
    """glibc None: musl."""
    elf = Elf(data)
    wrong = []
    if elf.machine != machine:
        wrong.append(f"{name}: is for {elf.machine}; expected {machine}")
    for version in elf.versions():
        match = re.fullmatch(r"GLIBC_([0-9.]+)", version)
        if glibc is None or match is None or newer(match.group(1), glibc):
            wrong.append(f"{name}: needs {version}; expected " + (f"GLIBC_{glibc} or older" if glibc else "no versions, as of musl"))
    for library in elf.texts(DYNAMIC_NEEDED):
        if library not in (GLIBC if glibc else MUSL) and library not in own:
            wrong.append(f"{name}: needs {library}, which is neither of {'glibc' if glibc else 'musl'} nor in the wheel")
    for path in elf.texts(DYNAMIC_RPATH) + elf.texts(DYNAMIC_RUNPATH):
        if any(not part.startswith("$ORIGIN") for part in path.split(":")):
            wrong.append(f"{name}: looks for libraries in {path}; expected $ORIGIN")
    return wrong


def check_record(files: dict[str, bytes]) -> list[str]:
    record = [name for name in files if name.endswith(".dist-info/RECORD")]
    if len(record) != 1:
        return [f"has {len(record)} files RECORD; expected one"]
    wrong = []
    listed = {}
    for line in files[record[0]].decode().splitlines():
        name, checksum, _ = line.rsplit(",", 2)
        listed[name] = checksum
    for name in sorted(set(files) ^ set(listed)):
        wrong.append(f"{name}: is " + ("not in RECORD" if name in files else "in RECORD alone"))
    for name, checksum in listed.items():
        if checksum and name in files and checksum != digest(files[name]):
            wrong.append(f"{name}: its digest is not that of RECORD")
    return wrong


def check_wheel(path: pathlib.Path, glibc: str | None, size: int, without: list[str]) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
        files = {info.filename: archive.read(info) for info in infos}
    wrong = check_record(files)
    if path.stat().st_size > size:
        wrong.append(f"has {path.stat().st_size} bytes; expected at most {size}")
    if len({info.date_time for info in infos}) != 1:
        wrong.append("its entries have several times; expected SOURCE_DATE_EPOCH")
    plain = [info.filename for info in infos if ".dist-info/" not in info.filename]
    if plain != sorted(plain) or len(files) != len(infos):
        wrong.append("its entries are not sorted, or one is there twice")
    machine = "aarch64" if path.stem.endswith("aarch64") else "x86_64"
    own = {name.rsplit("/", 1)[-1] for name in files if ".so" in name}
    for name, data in files.items():
        if data[:4] == b"\x7fELF":
            wrong += check_binary(name, data, own, glibc, machine)
        for text in without:
            if text.encode() in data:
                wrong.append(f"{name}: holds '{text}', a path of the machine that built it")
    return wrong


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Check what a wheel promises.")
    parser.add_argument("--glibc", default="2.17")
    parser.add_argument("--musl", dest="glibc", action="store_const", const=None)
    parser.add_argument("--bytes", type=int, default=12000000)
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("wheel", type=pathlib.Path)
    given = parser.parse_args(arguments)
    wrong = check_wheel(given.wheel, given.glibc, given.bytes, given.without)
    for line in wrong:
        print(f"{given.wheel.name}: {line}", file=sys.stderr)
    if not wrong:
        print(f"{given.wheel}: {given.wheel.stat().st_size} bytes, {'glibc ' + given.glibc if given.glibc else 'musl'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
