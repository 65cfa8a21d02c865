"""Arguments of Python made into what C takes; what is wrong is a TypeError or a UsageError that names the argument."""
from __future__ import annotations

import functools
import os
import re

from fraglab._native import UNLIMITED, Error, InputError, SystemFailure, UsageError

_UNITS = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50,
          "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "PB": 10**15}


def size(value: int | str | None, what: str) -> int:
    """Bytes: a whole number, or a text like "24GiB" as on the command line; None is 0, the default."""
    if value is None:
        return 0
    return _text_size(value, what) if isinstance(value, str) else count(value, what)


@functools.lru_cache(maxsize=256)
def _text_size(value: str, what: str) -> int:
    if value == "unlimited":
        return UNLIMITED
    match = re.fullmatch(r"([0-9]+)(?:\.([0-9]+))?(?: *([A-Za-z]+))?", value, re.A)
    unit = _UNITS.get(match.group(3) or "") if match else None
    if match is None or unit is None or (match.group(2) and unit == 1):
        raise UsageError(f"{what}: '{value}' is not a size; write one like 64KiB, 1.5GiB or 4096 (KiB, MiB, GiB are 1024s; kB, MB, GB 1000s)", where=what)
    fraction = (match.group(2) or "")[:9]
    return count(int(match.group(1)) * unit + (int(fraction) * unit // 10 ** len(fraction) if fraction else 0), what)


def count(value: int, what: str, most: int = UNLIMITED) -> int:
    """A whole number from 0 to most."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{what} is {type(value).__name__}; expected a whole number")
    value = value.__index__()
    if not 0 <= value <= most:
        raise UsageError(f"{what}: {value} is out of range; expected 0 to {most}", where=what)
    return value


def text(value: str | None, what: str) -> bytes | None:
    """UTF-8 with no zero inside; None stays None."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(f"{what} is {type(value).__name__}; expected str")
    if "\0" in value:
        raise UsageError(f"{what}: holds a zero character", where=what)
    try:
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise UsageError(f"{what}: cannot be written as UTF-8", where=what) from None


def given_text(value: str, what: str) -> bytes:
    """As text, where None is none."""
    if value is None:
        raise TypeError(f"{what} is None; expected str")
    return text(value, what)


def path(value: str | bytes | os.PathLike, what: str = "path") -> bytes:
    try:
        encoded = os.fsencode(value)
    except TypeError:
        raise TypeError(f"{what} is {type(value).__name__}; expected a path") from None
    if b"\0" in encoded:
        raise UsageError(f"{what}: holds a zero character", where=what)
    return encoded


def unreadable(error: OSError, file: bytes, is_open: bool = False) -> Error:
    """As the library says it of a file that it cannot open, or cannot read any further."""
    name = os.fsdecode(file)
    sentence = f"cannot be {'read' if is_open else 'opened'} ({error.strerror}); expected a readable file"
    return SystemFailure(f"{name}: {sentence}", 4, name, sentence) if is_open else InputError(f"{name}: {sentence}", 3, name, sentence)


def content(value: str | bytes | os.PathLike, what: str) -> bytes:
    """Of a file."""
    file = path(value, what)
    stream = None
    try:
        with open(file, "rb") as stream:
            return stream.read()
    except OSError as error:
        raise unreadable(error, file, stream is not None) from None


def flag(value: bool, what: str) -> int:
    if not isinstance(value, bool):
        raise TypeError(f"{what} is {type(value).__name__}; expected True or False")
    return int(value)
