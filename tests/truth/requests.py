"""Two recordings, request by request: FRAGLAB REAL DRY [SIZE,SIZE...]. SIZEs are those of the dry run that may differ, such as
the workspaces that its report calls uncertain. Exits 1 when anything else differs, 2 when a recording cannot be compared.

A free is equal when it frees the same request after the same request; blocks live at the start are told apart by size."""
import collections
import difflib
import os
import subprocess
import sys
import tempfile

SHOWN = 10
ROUNDING = 512  # of PyTorch; a recording names the block only of what was live at its start


class Recording:
    def __init__(self, lines):
        self.sizes = []  # of each request
        self.frees = []  # (requests before it, number of the request or None, size)
        self.peaks = dict.fromkeys(("requested", "allocated", "reserved"), 0)
        self._now = dict(self.peaks)
        self._live = {}
        self._devices = 0
        for line in lines:
            self._take(line.split())

    def _add(self, what, count):
        self._now[what] += count
        self.peaks[what] = max(self.peaks[what], self._now[what])

    def _take(self, words):
        if not words:
            return
        fields = dict(word.split("=", 1) for word in words if "=" in word)
        if words[0] == "device":
            self._devices += 1
        elif words[0] == "alloc":
            self._take_alloc(words, fields)
        elif words[0] == "free":
            number, size, block = self._live.pop(words[1])
            self.frees.append((len(self.sizes), number, size))
            self._add("requested", -size)
            self._add("allocated", -block)
        elif words[0] in ("segment_alloc", "segment_map"):
            self._add("reserved", int(words[1]))
        elif words[0] in ("segment_free", "segment_unmap"):
            self._add("reserved", -int(words[1]))
        if self._devices > 1:
            sys.stderr.write("requests: a recording has more than one device; one at a time can be compared\n")
            sys.exit(2)

    def _take_alloc(self, words, fields):
        size = int(words[2])
        block = int(fields.get("block", 0)) or max(1, -(-size // ROUNDING)) * ROUNDING
        number = None
        if "initial" not in words:
            number = len(self.sizes)
            self.sizes.append(size)
        self._live[words[1]] = (number, size, block)
        self._add("requested", size)
        self._add("allocated", block)


def read(fraglab, path):
    with tempfile.TemporaryDirectory() as folder:
        text = os.path.join(folder, "recording.txt")
        run = subprocess.run([fraglab, "trace", "convert", path, "--to", "text", "-o", text], capture_output=True, text=True, check=False)
        if run.returncode:
            sys.stderr.write(run.stderr)
            sys.exit(2)
        with open(text, encoding="utf-8") as file:
            return Recording(file)


def align(real, dry):
    """Pairs of numbers of requests, None where the other recording has none."""
    pairs = []
    for _, a, a_end, b, b_end in difflib.SequenceMatcher(None, real, dry, autojunk=False).get_opcodes():
        both = min(a_end - a, b_end - b)
        pairs += [(a + i, b + i) for i in range(both)]
        pairs += [(i, None) for i in range(a + both, a_end)] + [(None, i) for i in range(b + both, b_end)]
    return pairs


def frees(recording, name_of):
    """How often each free occurs: (pair after which, pair that is freed or None, size where live at the start)."""
    return collections.Counter((name_of[place - 1] if place else -1, None if number is None else name_of[number], size if number is None else None)
                               for place, number, size in recording.frees)


def differences(real, dry, pairs, uncertain):
    """Lines for requests that differ, and how many are equal, and of uncertain size."""
    lines, equal, unsure = [], 0, 0
    for a, b in pairs:
        if b is None:
            lines.append(f"request {a + 1} of {real.sizes[a]:,} bytes is in the real recording only")
        elif a is None:
            lines.append(f"request {b + 1} of {dry.sizes[b]:,} bytes is in the dry run only")
        elif real.sizes[a] == dry.sizes[b]:
            equal += 1
        elif dry.sizes[b] in uncertain:
            unsure += 1
        else:
            lines.append(f"request {a + 1} has {real.sizes[a]:,} bytes, in the dry run {dry.sizes[b]:,}")
    return lines, equal, unsure


def free_differences(real, dry, pairs):
    ours = frees(real, {a: i for i, (a, _) in enumerate(pairs) if a is not None})
    theirs = frees(dry, {b: i for i, (_, b) in enumerate(pairs) if b is not None})
    lines = []
    for where, only in (("real recording", ours - theirs), ("dry run", theirs - ours)):
        side = 0 if where == "real recording" else 1
        for (place, pair, size), count in sorted(only.items(), key=lambda item: item[0][0]):
            what = f"a block of {size:,} bytes that was live at the start" if pair is None else f"request {pairs[pair][side] + 1}"
            after = f"after request {pairs[place][side] + 1}" if place >= 0 else "before the first request"
            lines += [f"the free of {what} comes {after} in the {where} only"] * count
    return lines, sum((ours & theirs).values())


def main(fraglab, real_path, dry_path, sizes=""):
    real, dry = read(fraglab, real_path), read(fraglab, dry_path)
    pairs = align(real.sizes, dry.sizes)
    lines, equal, unsure = differences(real, dry, pairs, {int(size) for size in sizes.split(",") if size})
    moved, equal_frees = free_differences(real, dry, pairs)
    print(f"requests: {len(real.sizes):,} real, {len(dry.sizes):,} dry, {equal:,} equal, {unsure:,} of uncertain size")
    print(f"frees: {len(real.frees):,} real, {len(dry.frees):,} dry, {equal_frees:,} equal")
    for what, peak in real.peaks.items():
        print(f"peak {what}: {peak:,} real, {dry.peaks[what]:,} dry, {dry.peaks[what] - peak:+,}")
    every = lines + moved
    for line in every[:SHOWN]:
        print(line)
    if len(every) > SHOWN:
        print(f"and {len(every) - SHOWN:,} more")
    return 1 if every else 0


sys.exit(main(*sys.argv[1:]))
