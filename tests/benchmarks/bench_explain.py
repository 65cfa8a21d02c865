#!/usr/bin/env python3
"""What `explain --capacity` costs on recordings of millions of events.

    bench_explain.py FOLDER [EVENTS]

Writes two trainings with steps of varying length into FOLDER, 4 million events each: `leak` keeps two blocks of every step,
`vary` none. Explains each on a device that is too small, and prints a table in Markdown: seconds of processor time, of all
threads and the system, and by the clock, and the largest resident size.
"""
import os
import random
import subprocess
import sys
import time

LAYERS = 24
CAPACITIES = {"leak": "1800MiB", "vary": "650MiB"}


def training(leaks, events):
    draw = random.Random(1)
    count = written = 0
    shapes = [draw.randrange(1, 400) for _ in range(20)]

    def alloc(size):
        nonlocal count, written
        count += 1
        written += 1
        lines.append("alloc %d %d" % (count, size))
        return count

    def free(block):
        nonlocal written
        written += 1
        lines.append("free %d" % block)

    lines = ["# fraglab trace 2"]
    for _ in range(300):
        alloc(512 * draw.randrange(1, 8000))
    while written < events:
        tokens = draw.randrange(16, 128)
        kept = []
        for _ in range(LAYERS):
            for i in range(8):
                kept.append(alloc(512 * shapes[i] * tokens // 32 + 512))
                if i % 3 == 0:
                    free(alloc(512 * shapes[8 + i] * tokens // 16 + 512))
        if leaks:
            alloc(512 * draw.randrange(1, 1200))
            alloc(512)
        for block in reversed(kept):
            gradient = alloc(512 * shapes[16 + block % 4] * tokens // 32 + 512)
            free(block)
            free(gradient)
        yield from lines
        lines.clear()


def main():
    folder, events = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 4000000
    os.makedirs(folder, exist_ok=True)
    print("| recording | events | command | processor time | by the clock | memory |\n| --- | ---: | --- | ---: | ---: | ---: |")
    for name, capacity in CAPACITIES.items():
        text, trace = os.path.join(folder, name + ".txt"), os.path.join(folder, name + ".fgt")
        with open(text, "w") as file:
            file.writelines(line + "\n" for line in training(name == "leak", events))
        subprocess.run(["./fraglab", "trace", "convert", text, trace, "-f", "-q"], check=True)
        os.remove(text)
        start = time.monotonic()
        child = subprocess.Popen(["./fraglab", "explain", trace, "--capacity", capacity, "-q"], stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
        if status != 0:
            sys.exit("explain failed")
        seconds = time.monotonic() - start
        print("| `%s` | %s | `explain --capacity %s` | %.1f s | %.1f s | %.2f GB |"
              % (name, "{:,}".format(events), capacity, used.ru_utime + used.ru_stime, seconds, used.ru_maxrss / 1e6), flush=True)


if __name__ == "__main__":
    main()
