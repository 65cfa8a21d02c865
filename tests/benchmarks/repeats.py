#!/usr/bin/env python3
"""How much of recordings repeats exactly, and after how many of its steps a policy is in a state again that it was in.

    repeats.py POLICY,POLICY... TRACE...

A step repeats when its requests are those of the step before, in the same order, each freed as many events later. Of the steps
but the first two it prints the share of all events: what a replay could leave out at most. It could if the blocks at the end of a step lay as
at the end of an earlier one, which is looked for in the placements of a run (`--placement`) of each policy; so traces of one device,
whose run needs no capacity.
"""
import collections
import csv
import os
import subprocess
import sys
import tempfile

WINDOW = 32  # events; windows that are the same lie a step apart
TRIES = 40
SILENT = {"segment_alloc", "segment_free", "segment_map", "segment_unmap", "oom", "mark"}
DEFINITIONS = {"#", "meta", "frame", "site", "string", "streams", "pools", "device", ""}


def events(path):
    """What each event says to a policy; None: nothing. Of a free: how long ago its block was requested."""
    text = subprocess.run(["./fraglab", "trace", "convert", path, "-", "--to", "text", "-q"], stdout=subprocess.PIPE, text=True, check=True)
    found, born = [], {}
    for line in text.stdout.split("\n"):
        words = line.split(" ")
        where = tuple(word for word in words if word.startswith(("pool=", "stream=")))
        if words[0] in DEFINITIONS:
            continue
        if words[0] in SILENT or "initial" in words:
            found.append(None if words[0] in SILENT else line)
        elif words[0] == "alloc":
            found.append((words[0], words[2], where))
        elif words[0] == "free":
            found.append((words[0], "deferred" in words, len(found) - born.get(words[1], 0)))
        else:
            found.append(line)
        if words[0] == "alloc":
            born[words[1]] = len(found) - 1
    return found


def longest(said, period):
    """First event and number of those that are the same a period later, at most."""
    best = (0, 0)
    start = 0
    for i in range(len(said) - period + 1):
        if i == len(said) - period or said[i] != said[i + period]:
            best = max(best, (i - start, start))
            start = i + 1
    return best[1], best[0]


def repeat(said):
    """Period, first event and end of what leaves out most."""
    numbers, last, apart = {}, {}, collections.Counter()
    ids = [numbers.setdefault(what, len(numbers)) for what in said]
    for i in range(len(ids) - WINDOW):
        window = hash(tuple(ids[i : i + WINDOW]))
        if window in last:
            apart[i - last[window]] += 1
        last[window] = i
    best = (0, 1, 0, 0)
    for period, _ in apart.most_common(TRIES):
        first, count = longest(ids, period)
        steps = (count + period) // period
        best = max(best, ((steps - 2) * period, period, first, first + period + count))
    return best[1:] if best[0] > 0 else (1, 0, 0)


def returns_after(path, policy, period, first, end):
    """Steps until the blocks lie as before, and how many steps before that was; None: never."""
    with tempfile.TemporaryDirectory() as folder:
        placement = os.path.join(folder, "placement.csv")
        subprocess.run(["./fraglab", "run", path, "-p", policy, "--placement", placement, "-q"], stdout=subprocess.DEVNULL, check=True)
        with open(placement, newline="") as file:
            blocks = [(int(row["lower"]), int(row["upper"]), row["size"], row["offset"]) for row in csv.DictReader(file)]
    blocks.sort()
    live, known, at = [], {}, 0
    for step, event in enumerate(range(first, end + 1, period)):
        while at < len(blocks) and blocks[at][0] < event:
            live.append(blocks[at])
            at += 1
        live = [block for block in live if block[1] > event]
        # A block is either the one that lay there, or was requested as many steps later.
        state = frozenset((offset, size, event - lower if lower >= first else -lower) for lower, _, size, offset in live)
        if state in known:
            return step, step - known[state]
        known[state] = step
    return None


def main():
    policies = sys.argv[1].split(",")
    print("| trace | events | steps | left out | " + " | ".join(policies) + " |\n| --- | ---: | ---: | ---: |" + " --- |" * len(policies))
    for path in sys.argv[2:]:
        said = events(path)
        period, first, end = repeat(said)
        steps = (end - first) // period
        row = "| %s | %d | %d of %d | %.0f %% |" % (os.path.basename(path), len(said), steps, period, 100 * max(steps - 2, 0) * period / len(said))
        for policy in policies:
            found = returns_after(path, policy, period, first, end) if steps > 2 else None
            row += " %s |" % ("never" if found is None else "step %d, as %d before" % found)
        print(row, flush=True)


if __name__ == "__main__":
    main()
