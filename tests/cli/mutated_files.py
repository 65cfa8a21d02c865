#!/usr/bin/env python3
"""Changed copies of recordings, given to the commands that read them.

    tests/cli/mutated_files.py [--count N] [--seed S] [--keep FOLDER] PROGRAM FILE...

Each copy has one to four changes: another number in the place of one, a flipped bit, bytes taken
out or doubled. Whatever a file holds, a command ends with 0 to 3 (docs/result-format.md, "Exit
codes"): 4 says that the system refused, and a signal is a bug. The same seed gives the same copies.
"""
import argparse
import os
import random
import re
import subprocess
import sys
import tempfile

# Sizes and addresses next to what readers and devices take.
NUMBERS = [0, 1, 16, 17, 255, 511, 512, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40,
           (1 << 47) - 1, 1 << 47, (1 << 48) - 512, 1 << 55, 1 << 56, 1 << 62, (1 << 63) - 1]
POLICIES = "pytorch,best-fit,composed,frugal,buddy,tlsf,cuda-async"
COMMANDS = [
    ["run", "FILE", "--policy", POLICIES],
    ["run", "FILE", "--policy", POLICIES, "--capacity", "64MiB", "--on-oom", "skip"],
    ["trace", "check", "FILE"],
    ["trace", "info", "FILE"],
    ["trace", "convert", "FILE", "--to", "text", "-o", "-"],
    ["explain", "FILE", "--capacity", "64MiB"],
    ["verify", "FILE"],
    ["min-capacity", "FILE", "--policy", "pytorch"],
    ["plot", "sites", "FILE"],
    ["plot", "map", "FILE", "--policy", "pytorch"],
    ["diff", "FILE", "FILE", "--at", "peak", "--at", "end"],
    ["leaks", "FILE", "--capacity", "64MiB"],
    ["ranks", "FILE", "FILE", "--capacity", "64MiB"],
]
PICKLED_NUMBERS = {b"K"[0]: 2, b"M"[0]: 3, b"J"[0]: 5}  # with the opcode, in bytes
LONG = 0x8A  # its length in the next byte


def number_places(data):
    """Where numbers stand in a pickle: (start, bytes)."""
    for at, op in enumerate(data[:-10]):
        if op in PICKLED_NUMBERS:
            yield at, PICKLED_NUMBERS[op]
        elif op == LONG and data[at + 1] <= 8:
            yield at, 2 + data[at + 1]


def another_number(rng, data, is_text):
    number = max(0, rng.choice(NUMBERS) + rng.choice([0, 0, 0, 1, -1, 512]))
    if is_text:
        places = [found.span() for found in re.finditer(rb"0x[0-9a-f]+|\d+", data)]
        written = str(number).encode()
    else:
        places = [(at, at + length) for at, length in number_places(data)]
        written = bytes([LONG, 9]) + number.to_bytes(9, "little")
    if places:
        start, end = rng.choice(places)
        data[start:end] = written


def change(rng, data, is_text):
    at = rng.randrange(len(data))
    end = at + rng.randrange(1, 64)
    kind = rng.random()
    if kind < 0.7:
        another_number(rng, data, is_text)
    elif kind < 0.85:
        data[at] ^= 1 << rng.randrange(8)
    elif kind < 0.93 and len(data) > 64:
        del data[at:end]
    else:
        data[at:at] = data[at:end]


def changed_copy(rng, path):
    with open(path, "rb") as file:
        data = bytearray(file.read())
    is_text = b"\0" not in data
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        change(rng, data, is_text)
    return bytes(data)


def run(program, command, path):
    words = [program] + [path if word == "FILE" else word for word in command]
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", help="folder for the copies that show a fault")
    parser.add_argument("program")
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    faults = 0
    ends = {}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.count):
            source = rng.choice(options.files)
            data = changed_copy(rng, source)
            path = os.path.join(options.keep or folder, f"{number}-{os.path.basename(source)}")
            with open(path, "wb") as file:
                file.write(data)
            command = rng.choice(COMMANDS)
            end = run(options.program, command, path)
            ends[end.returncode] = ends.get(end.returncode, 0) + 1
            if 0 <= end.returncode <= 3:
                os.remove(path)
                continue
            faults += 1
            print(f"exit {end.returncode}: {' '.join(command).replace('FILE', path)}")
            print(end.stderr.decode(errors="replace")[-400:])
    print(f"{options.count} files, exit codes {dict(sorted(ends.items()))}")
    sys.exit(1 if faults > 0 or options.count == 0 else 0)


if __name__ == "__main__":
    main()
