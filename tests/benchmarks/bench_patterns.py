#!/usr/bin/env python3
"""Patterns on which an allocator that walks its lists gets slow, and a sweep of a thousand configurations.

    bench_patterns.py FOLDER

Writes the traces into FOLDER and prints two tables in Markdown: nanoseconds an event, by policy, of the replay alone
(build/release/tests/bench), and seconds of the sweep, of all cores together and by the clock.

`equal`: 20,000 holes of one size among busy blocks; a random one is given back and one is asked for.
`remainders`: the same holes, and requests of half their size that come and go.
`live-N`: N blocks of a thousand sizes are live; a random one is given back and another asked for.
`restored-N`: a private pool of N segments is emptied and brought back, in another order, so that each request names its place.
"""
import json
import os
import random
import subprocess
import sys
import time

POLICIES = ["best-fit", "worst-fit", "first-fit", "next-fit", "tlsf", "buddy", "pytorch", "pytorch:expandable_segments=true"]
HOLES = 20000
ROUNDS = 100000
SEGMENT = 12 << 20
STEPS = 900  # of a generated training: about a million events


def holes():
    for block in range(2 * HOLES):
        yield "alloc %d 4194304" % block
    for block in range(0, 2 * HOLES, 2):
        yield "free %d" % block


def equal(draw):
    yield from holes()
    live = list(range(2 * HOLES, 2 * HOLES + HOLES // 2))
    for block in live:
        yield "alloc %d 4194304" % block
    for block in range(live[-1] + 1, live[-1] + 1 + ROUNDS):
        at = draw.randrange(len(live))
        yield "free %d" % live[at]
        yield "alloc %d 4194304" % block
        live[at] = block


def remainders(draw):
    yield from holes()
    # Sizes that differ a little: what repeats exactly would be replayed once only.
    for block in range(2 * HOLES, 2 * HOLES + ROUNDS):
        yield "alloc %d %d" % (block, 512 * draw.randrange(3000, 4096))
        yield "free %d" % block


def live(draw, count):
    blocks = list(range(count))
    for block in blocks:
        yield "alloc %d %d" % (block, 512 * draw.randrange(1, 1000))
    for block in range(count, count + ROUNDS):
        at = draw.randrange(count)
        yield "free %d" % blocks[at]
        yield "alloc %d %d" % (block, 512 * draw.randrange(1, 1000))
        blocks[at] = block


def restored(count):
    line = "alloc %%d %d addr=%%d pool=1" % SEGMENT
    base = 0x7F0000000000
    for block in range(count):
        yield line % (block, base + block * SEGMENT)
    for block in range(count):
        yield "free %d" % block
    for block in reversed(range(count)):
        yield line % (block, base + block * SEGMENT) + " placed"


def write(folder, name, lines):
    path = os.path.join(folder, name)
    with open(path + ".txt", "w") as file:
        file.write("# fraglab trace 2\n" + "\n".join(lines) + "\n")
    subprocess.run(["./fraglab", "trace", "convert", path + ".txt", path + ".fgt", "-f", "-q"], check=True)
    os.remove(path + ".txt")
    return path + ".fgt"


def measure(path):
    """Nanoseconds an event, by policy."""
    command = ["build/release/tests/bench", "--replay-only", "--policy", ",".join(POLICIES[:-1]), "--policy", POLICIES[-1], path]
    # Its exit code says whether targets are met, which these traces have none of.
    shown = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.split("\n")
    lines = [line.split() for line in shown if line.startswith(os.path.basename(path))]
    return {policy: float(words[3]) for policy in POLICIES for words in lines if words[1] == policy[:26]}


def sweep(folder):
    with open("traces/workloads/gpt2-varying.yaml") as file:
        workload = file.read().replace("steps: 12", "steps: %d" % STEPS)
    for name, text in (("w.yaml", workload), ("sweep.yaml", """\
name: a thousand configurations
traces: [sweep.fgt]
policies:
  - policy: pytorch
    options:
      max_split_size_mb: {from: 21, to: 70, step: 1}
      garbage_collection_threshold: {from: 0.5, to: 0.9, step: 0.1}
      roundup_power2_divisions: [1, 2, 4, 8]
capacities: [7GiB]
""")):
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)
    trace, rows = os.path.join(folder, "sweep.fgt"), os.path.join(folder, "rows.jsonl")
    subprocess.run(["./fraglab", "trace", "generate", os.path.join(folder, "w.yaml"), "-o", trace, "-f"], check=True, stdout=subprocess.DEVNULL)
    before, start = os.times(), time.monotonic()
    subprocess.run(["./fraglab", "sweep", os.path.join(folder, "sweep.yaml"), "-o", rows, "-f", "-q"], check=True)
    seconds, after = time.monotonic() - start, os.times()
    with open(rows) as file:
        read = [json.loads(line) for line in file]
    used = after.children_user + after.children_system - before.children_user - before.children_system
    print("\n| configurations | events | processor time | by the clock |\n| ---: | ---: | ---: | ---: |")
    print("| {:,} | {:,} | {:.1f} s | {:.1f} s |".format(len(read), read[0]["trace"]["events"], used, seconds))


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    draw = random.Random(1)
    cases = [("equal", equal(draw)), ("remainders", remainders(draw))]
    cases += [("live-%d" % count, live(draw, count)) for count in (1000, 10000, 100000, 1000000)]
    cases += [("restored-%d" % count, restored(count)) for count in (1000, 10000, 100000)]
    print("| ns/event | " + " | ".join(POLICIES) + " |\n| --- |" + " ---: |" * len(POLICIES))
    for name, lines in cases:
        found = measure(write(folder, name, lines))
        print("| %s | " % name + " | ".join("%.0f" % found[policy] if policy in found else "–" for policy in POLICIES) + " |", flush=True)
    sweep(folder)


if __name__ == "__main__":
    main()
