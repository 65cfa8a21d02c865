"""Two recordings, request by request: one of a real GPU, and the dry run's of the same script and release. --help has the options.

The recording of a GPU may begin later, or hold the last events of a ring: the requests of the dry run that it is compared
with are a window of the dry run, which is printed with how many other places have the same sizes.
A free is equal when it frees the same request after the same request; blocks live at the start are told apart by size.
Exits 1 when anything differs, 2 when a recording cannot be compared."""
import argparse
import collections
import difflib
import json
import os
import subprocess
import sys
import tempfile

SHOWN = 10
ROUNDING = 512  # of PyTorch; a recording names the block only of what was live at its start
RUN = 8  # sizes in a row that find a place where a few others differ
KINDS = ("requested", "allocated", "reserved")

Free = collections.namedtuple("Free", "place number size")  # place: requests before it; number: None where live at the start
Window = collections.namedtuple("Window", "first end others")  # others: places with the same sizes, None where sizes differ


class Recording:
    """Requests and frees of one device."""

    def __init__(self, lines, device):
        self.sizes = []
        self.frees = []
        self.changes = []  # (requests before it, requested, allocated, reserved): by how much they change
        self._live = {}
        self._device = 0
        for line in lines:
            words = line.split()
            if words and words[0] == "device":
                self._device = int(words[1])
            elif words and self._device == device:
                self._take(words)

    def _change(self, requested=0, allocated=0, reserved=0):
        self.changes.append((len(self.sizes), requested, allocated, reserved))

    def _take(self, words):
        fields = dict(word.split("=", 1) for word in words if "=" in word)
        if words[0] == "alloc":
            self._take_alloc(words, fields)
        elif words[0] == "free":
            number, size, block = self._live.pop(words[1])
            self.frees.append(Free(len(self.sizes), number, size))
            self._change(-size, -block)
        elif words[0] in ("segment_alloc", "segment_map"):
            self._change(reserved=int(words[1]))
        elif words[0] in ("segment_free", "segment_unmap"):
            self._change(reserved=-int(words[1]))

    def _take_alloc(self, words, fields):
        size = int(words[2])
        block = int(fields.get("block", 0)) or max(1, -(-size // ROUNDING)) * ROUNDING
        self._live[words[1]] = (None if "initial" in words else len(self.sizes), size, block)
        self._change(size, block)
        if "initial" not in words:
            self.sizes.append(size)

    def peaks(self, first, end):
        """Of each kind, while requests first to end are made."""
        now, peaks = [0, 0, 0], [0, 0, 0]
        for place, *change in self.changes:
            now = [a + b for a, b in zip(now, change)]
            if place < first:
                peaks = now  # at the window's start
            elif place <= end:
                peaks = [max(a, b) for a, b in zip(peaks, now)]
        return dict(zip(KINDS, peaks))

    def cut(self, window, leading, trailing):
        """The requests of a window, with that many frees before its first one and after its last one, if others come there."""
        first, end = window.first, window.end
        part = Recording((), 0)
        part.sizes = self.sizes[first:end]
        before = [free for free in self.frees if free.place == first]
        after = [free for free in self.frees if free.place == end]
        inside = [free for free in self.frees if first < free.place < end]
        kept = (before if first == 0 else before[max(0, len(before) - leading):]) + inside
        if end > first:
            kept += after if end == len(self.sizes) else after[:trailing]
        part.frees = [Free(free.place - first, None if free.number is None or free.number < first else free.number - first,
                           free.size) for free in kept]
        return part


def read(fraglab, path, device):
    with tempfile.TemporaryDirectory() as folder:
        text = os.path.join(folder, "recording.txt")
        run = subprocess.run([fraglab, "trace", "convert", path, "--to", "text", "-o", text], capture_output=True, text=True, check=False)
        if run.returncode:
            sys.stderr.write(run.stderr)
            sys.exit(2)
        with open(text, encoding="utf-8", errors="surrogateescape") as file:
            recording = Recording(file, device)
    if not recording.sizes:
        sys.stderr.write(f"compare_requests: {path} has no requests of device {device} in its history\n")
        sys.exit(2)
    return recording


# ---- the window


def places(real, dry, unsure):
    """Where in the dry run all sizes are those of the real recording."""
    def is_at(place):
        for i, size in enumerate(real):
            if dry[place + i] != size and dry[place + i] not in unsure:
                return False
        return True

    return [place for place in range(len(dry) - len(real) + 1) if is_at(place)]


def likeliest_window(real, dry):
    """Where no place has all sizes: most runs of sizes say by how much the dry run is ahead, the first and the last run near that
    say where the window begins and ends. Layers and steps are alike: of several places of a run the nearest is taken."""
    found = collections.defaultdict(list)
    for place in range(len(dry) - RUN + 1):
        found[tuple(dry[place:place + RUN])].append(place)
    ahead = [[place - number for place in found[tuple(real[number:number + RUN])]] for number in range(len(real) - RUN + 1)]
    votes = collections.Counter(offset for offsets in ahead for offset in offsets)
    near = max(votes, key=lambda offset: (votes[offset], offset), default=None)
    if near is None:
        return Window(0, len(dry), None)
    slack = len(real) // 20 + RUN

    def first_near(runs):
        nearest = (min(offsets, key=lambda offset: abs(offset - near)) for offsets in runs if offsets)
        return next(offset for offset in nearest if abs(offset - near) <= slack)

    return Window(max(0, first_near(ahead)), min(len(dry), first_near(reversed(ahead)) + len(real)), None)


def find_window(real, dry, wanted, unsure):
    if wanted == "whole" or wanted == "auto" and len(real) == len(dry):
        return Window(0, len(dry), None)
    if wanted == "last":
        return Window(max(0, len(dry) - len(real)), len(dry), None)
    found = places(real, dry, unsure)
    if not found:
        return likeliest_window(real, dry)
    first = found[-1] if found[-1] == len(dry) - len(real) else found[0]
    return Window(first, first + len(real), len(found) - 1)


# ---- the comparison


def align(real, dry):
    """Pairs of numbers of requests, None where the other recording has none."""
    pairs = []
    for _, a, a_end, b, b_end in difflib.SequenceMatcher(None, real, dry, autojunk=False).get_opcodes():
        both = min(a_end - a, b_end - b)
        pairs += [(a + i, b + i) for i in range(both)]
        pairs += [(i, None) for i in range(a + both, a_end)] + [(None, i) for i in range(b + both, b_end)]
    return pairs


def align_fast(real, dry):
    """Most recordings begin and end with equal sizes: only what is between has to be aligned."""
    shorter = min(len(real), len(dry))
    head = next((i for i in range(shorter) if real[i] != dry[i]), shorter)
    tail = next((i for i in range(shorter - head) if real[-1 - i] != dry[-1 - i]), shorter - head)
    middle = align(real[head:len(real) - tail], dry[head:len(dry) - tail])
    pairs = [(i, i) for i in range(head)]
    pairs += [(None if a is None else a + head, None if b is None else b + head) for a, b in middle]
    return pairs + [(len(real) - i, len(dry) - i) for i in range(tail, 0, -1)]


def frees(recording, name_of):
    """How often each free occurs: (pair after which, pair that is freed or None, size where live at the start)."""
    return collections.Counter((name_of[free.place - 1] if free.place else -1, None if free.number is None else name_of[free.number],
                               free.size if free.number is None else None) for free in recording.frees)


def request_differences(real, dry, pairs, unsure):
    """Lines for requests that differ, and how many are equal, and of uncertain size."""
    lines, equal, uncertain = [], 0, 0
    for a, b in pairs:
        if b is None:
            lines.append(f"request {a + 1} of {real.sizes[a]:,} bytes is in the real recording only")
        elif a is None:
            lines.append(f"request {b + 1} of {dry.sizes[b]:,} bytes is in the dry run only")
        elif real.sizes[a] == dry.sizes[b]:
            equal += 1
        elif dry.sizes[b] in unsure:
            uncertain += 1
        else:
            lines.append(f"request {a + 1} has {real.sizes[a]:,} bytes, in the dry run {dry.sizes[b]:,}")
    return lines, equal, uncertain


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


def compare(real, dry, wanted, unsure):
    window = find_window(real.sizes, dry.sizes, wanted, unsure)
    is_whole = window.first == 0 and window.end == len(dry.sizes)
    leading = sum(free.place == 0 for free in real.frees)
    trailing = sum(free.place == len(real.sizes) for free in real.frees)
    part = dry if is_whole else dry.cut(window, leading, trailing)
    pairs = align_fast(real.sizes, part.sizes)
    lines, equal, uncertain = request_differences(real, part, pairs, unsure)
    moved, equal_frees = free_differences(real, part, pairs)
    dry_peaks = dry.peaks(window.first, window.end)
    return {"requests": {"real": len(real.sizes), "dry": len(part.sizes), "equal": equal, "uncertain": uncertain},
            "frees": {"real": len(real.frees), "dry": len(part.frees), "equal": equal_frees},
            "window": {"first": window.first + 1, "last": window.end, "of": len(dry.sizes), "other_places": window.others},
            "peaks": {kind: {"real": peak, "dry": dry_peaks[kind]} for kind, peak in real.peaks(0, len(real.sizes)).items()},
            "differences": lines + moved}


def describe(window):
    if window["first"] == 1 and window["last"] == window["of"]:
        return "all requests of the dry run"
    last = ", its last ones" if window["last"] == window["of"] else ""
    text = f"requests {window['first']:,} to {window['last']:,} of {window['of']:,} of the dry run{last}"
    others = window["other_places"]
    if others is None:
        return text
    return text + ("; the sizes are so at no other place" if not others else f"; the sizes are so at {others:,} other place{'s' * (others > 1)}")


def show(found):
    requests, free = found["requests"], found["frees"]
    print(f"window: {describe(found['window'])}")
    print(f"requests: {requests['real']:,} real, {requests['dry']:,} dry, {requests['equal']:,} equal, {requests['uncertain']:,} of uncertain size")
    print(f"frees: {free['real']:,} real, {free['dry']:,} dry, {free['equal']:,} equal")
    for kind, peak in found["peaks"].items():
        print(f"peak {kind}: {peak['real']:,} real, {peak['dry']:,} dry, {peak['dry'] - peak['real']:+,}")
    for line in found["differences"][:SHOWN]:
        print(line)
    if len(found["differences"]) > SHOWN:
        print(f"and {len(found['differences']) - SHOWN:,} more")


def window_of(text):
    if text in ("auto", "whole", "last"):
        return text
    raise argparse.ArgumentTypeError("expected auto, whole or last")


def main():
    parser = argparse.ArgumentParser(prog="compare_requests", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fraglab")
    parser.add_argument("real", help="the recording of a GPU")
    parser.add_argument("dry", help="the dry run's")
    parser.add_argument("uncertain", nargs="?", default="", help="SIZE,SIZE...: sizes of the dry run that may differ: those of cuDNN's workspaces, from its report")
    parser.add_argument("--window", type=window_of, default="auto",
                        help="of the dry run: whole, its last requests, or where the sizes are (auto, default; whole where both have as many)")
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="one JSON object; all differences are in it")
    asked = parser.parse_args()
    unsure = {int(size) for size in asked.uncertain.split(",") if size}
    found = compare(read(asked.fraglab, asked.real, asked.device), read(asked.fraglab, asked.dry, asked.device), asked.window, unsure)
    if asked.json:
        print(json.dumps(found))
    else:
        show(found)
    return 1 if found["differences"] else 0


if __name__ == "__main__":
    sys.exit(main())
